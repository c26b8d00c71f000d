"""What can judge: a prompt to a model, a rule of judgecal's own, or a function of the user's."""

from judgecal.judges.chat import JudgeAdapter
from judgecal.judges.function import FunctionJudge, LocalJudge, PythonJudge, local_judges
from judgecal.judges.prompt import ProgramFile, PromptJudge, load_program, program_of, save_program
from judgecal.judges.protocol import (
    ITEM_INPUTS,
    Judge,
    JudgeKind,
    JudgeName,
    RecordedJudge,
    Respondent,
    calls_a_model,
    decides_itself,
    item_inputs,
    lacking_inputs,
    units_of,
)
from judgecal.judges.reply import read_reply, reply_fields
from judgecal.workspace import Workspace, find_workspace

__all__ = [
    "ITEM_INPUTS",
    "FunctionJudge",
    "Judge",
    "JudgeAdapter",
    "JudgeKind",
    "JudgeName",
    "LocalJudge",
    "ProgramFile",
    "PromptJudge",
    "PythonJudge",
    "RecordedJudge",
    "Respondent",
    "calls_a_model",
    "decides_itself",
    "item_inputs",
    "judge_named",
    "lacking_inputs",
    "load_program",
    "local_judges",
    "program_of",
    "read_reply",
    "reply_fields",
    "save_program",
    "units_of",
]


def judge_named(spec: str | JudgeName, *, workspace: Workspace | None = None) -> PromptJudge | FunctionJudge:
    """The judge of a string, of whatever kind; `workspace` is the current one by default.

    Raises:
        InputError: the string names something that is not there or cannot judge.
    """
    workspace = workspace or find_workspace()
    name = JudgeName.parse(spec) if isinstance(spec, str) else spec
    if name.kind == "local":
        return LocalJudge(name)
    if name.kind == "python":
        return PythonJudge(name, workspace=workspace)
    return PromptJudge(name, workspace=workspace)
