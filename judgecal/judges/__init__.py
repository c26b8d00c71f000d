"""What can judge: a prompt to a model, a rule of judgecal's own, or a function of the user's.

What needs DSPy is loaded when it is first asked for: to read an experiment back takes no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError
from judgecal.judges.function import FunctionJudge, GivenFunction, LocalJudge, PythonJudge, is_program
from judgecal.judges.protocol import JudgeName
from judgecal.scale import Scale
from judgecal.workspace import Workspace, find_workspace

if TYPE_CHECKING:
    from judgecal.goldset import GoldSet
    from judgecal.judges.prompt import PromptJudge


def judge_named(
    spec: str | JudgeName | Callable[..., Any],
    *,
    scale: Scale | str | None = None,
    model: str | None = None,
    signature: str | None = None,
    trained_on: GoldSet | Iterable[str] | None = None,
    workspace: Workspace | None = None,
) -> PromptJudge | FunctionJudge:
    """Return the PromptJudge or FunctionJudge of a spec: a text, JudgeName, function or DSPy program.

    A function takes what it reads of an item by the names of its parameters (`question`, `answer`,
    `reference_answer`, `contexts` ...) and returns a verdict, or a verdict and the reason for it.

    Any `dspy.Module` is scored as it stands, with the models that DSPy is set to: it takes what `forward`
    takes, its verdict is the field `verdict` or its only one, and what it pays is not known here. One prompt
    that plain DSPy compiled (a `Predict` or `ChainOfThought`) is with `model` a judge like any other: kept as
    `experiments/program-.../program.json`, for locks and commands.

    >>> judge = judgecal.Judge("token_f1@local")
    >>> judge.kind, str(judge.scale), judge.unit
    ('local', 'percentage', 'item')
    >>> judgecal.Judge(lambda answer: len(answer) < 100, scale="binary").inputs
    ('answer',)

    Args:
        scale: of a function's or a program's verdicts; where nothing says it, that of the gold set.
        model: an alias of the models, for a compiled prompt.
        signature: the workspace's signature that a compiled prompt is of.
        trained_on: the gold set whose train split a compiled program has seen, or the groups; () for none.
        workspace: the current one where not given.
    """
    workspace = workspace or find_workspace()
    scale = Scale.parse(scale) if isinstance(scale, str) else scale
    if is_program(spec):
        from judgecal.judges.module import as_function, groups_seen, program_judge

        if model is not None:
            return program_judge(spec, model, signature, trained_on, workspace)
        call, own_scale = as_function(spec)
        judge = GivenFunction(call, scale=scale or own_scale, workspace=workspace)
        judge.program = spec
        compiled = any(predictor.demos for predictor in spec.predictors())
        judge.trained_on = groups_seen(judge.name, compiled, trained_on)
        return judge
    if model or signature or trained_on:
        raise InputError("model=, signature= and trained_on= are for a program of DSPy's: leave them out")
    if not isinstance(spec, str | JudgeName):
        return GivenFunction(spec, scale=scale, workspace=workspace)
    if scale is not None:
        raise InputError(f"{spec} has a scale of its own: leave scale= out")
    name = spec if isinstance(spec, JudgeName) else JudgeName.parse(spec)
    if name.kind == "local":
        return LocalJudge(name, workspace=workspace)
    if name.kind == "python":
        return PythonJudge(name, workspace=workspace)
    from judgecal.judges.prompt import PromptJudge

    return PromptJudge(name, workspace=workspace)
