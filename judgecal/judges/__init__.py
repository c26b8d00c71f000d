"""What can judge: a prompt to a model, a rule of judgecal's own, or a function of the user's.

What needs DSPy is loaded when it is first asked for: to read an experiment back takes no model.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError
from judgecal.judges.function import (
    FunctionJudge,
    GivenFunction,
    LocalJudge,
    PythonJudge,
    local_judges,
    set_local,
)
from judgecal.judges.protocol import (
    Caller,
    Decider,
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
from judgecal.scale import Scale
from judgecal.signatures import ITEM_INPUTS
from judgecal.workspace import Workspace, find_workspace

if TYPE_CHECKING:
    from judgecal.judges.chat import JudgeAdapter
    from judgecal.judges.prompt import ProgramFile, PromptJudge, load_program, program_of, save_program

_PROMPT = ("ProgramFile", "PromptJudge", "load_program", "program_of", "save_program")

__all__ = [
    "ITEM_INPUTS",
    "Caller",
    "Decider",
    "FunctionJudge",
    "GivenFunction",
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
    "set_local",
    "units_of",
]


def __getattr__(name: str) -> Any:
    if name != "JudgeAdapter" and name not in _PROMPT:
        raise AttributeError(f"module 'judgecal.judges' has no attribute {name!r}")
    module = "judgecal.judges.prompt" if name in _PROMPT else "judgecal.judges.chat"
    globals()[name] = value = getattr(importlib.import_module(module), name)
    return value


def judge_named(
    spec: str | JudgeName | Callable[..., Any],
    *,
    scale: Scale | str | None = None,
    workspace: Workspace | None = None,
) -> PromptJudge | FunctionJudge:
    """The judge of a string, of whatever kind, or a function as a judge.

    A function takes what it reads of an item by the names of its parameters (`question`, `answer`,
    `reference_answer`, `contexts` ...) and returns a verdict, or a verdict and the reason for it.

    >>> judge = judgecal.Judge("token_f1@local")
    >>> judge.kind, str(judge.scale), judge.unit
    ('local', 'percentage', 'item')
    >>> judgecal.Judge(lambda answer: len(answer) < 100, scale="binary").inputs
    ('answer',)

    Args:
        scale: of a function's verdicts; where nothing says it, that of the gold set.
        workspace: the current one where not given.

    Raises:
        InputError: the string names something that is not there or cannot judge.
    """
    workspace = workspace or find_workspace()
    if not isinstance(spec, str | JudgeName):
        return GivenFunction(
            spec, scale=Scale.parse(scale) if isinstance(scale, str) else scale, workspace=workspace
        )
    if scale is not None:
        raise InputError(f"{spec} has a scale of its own: leave scale= out")
    name = JudgeName.parse(spec) if isinstance(spec, str) else spec
    if name.kind == "local":
        return LocalJudge(name, workspace=workspace)
    if name.kind == "python":
        return PythonJudge(name, workspace=workspace)
    from judgecal.judges.prompt import PromptJudge

    return PromptJudge(name, workspace=workspace)
