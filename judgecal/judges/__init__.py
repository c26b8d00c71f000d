"""What can judge: a program over the engine."""

from judgecal.judges.adapter import JudgeAdapter
from judgecal.judges.judge import Judge, JudgeName, item_inputs
from judgecal.judges.programfile import ProgramFile, load_program, save_program
from judgecal.judges.verdict import read_reply

__all__ = [
    "Judge",
    "JudgeAdapter",
    "JudgeName",
    "ProgramFile",
    "item_inputs",
    "load_program",
    "read_reply",
    "save_program",
]
