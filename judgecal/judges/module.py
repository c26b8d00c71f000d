"""A program of DSPy's as a judge: any `dspy.Module` as it is, or one prompt that plain DSPy compiled."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any

import dspy

from judgecal.errors import InputError
from judgecal.goldset import GoldSet
from judgecal.judges.chat import neutralised
from judgecal.judges.prompt import PromptJudge, save_program, with_prompt
from judgecal.judges.protocol import JudgeName
from judgecal.records import digest
from judgecal.scale import Scale
from judgecal.signatures import load_signature, scale_of_field, verdict_fields
from judgecal.workspace import Workspace

_OWN_FORWARDS = (dspy.Predict.forward, dspy.ChainOfThought.forward)
_WITHOUT = "or leave model= out, and it is scored as it is, with the models that it calls itself"


def only_predictor(program: dspy.Module) -> dspy.Predict:
    """Return the one dspy.Predict of a program (dspy.Module); InputError where it has none or several."""
    predictors = program.predictors()
    if len(predictors) != 1:
        what = f"has {len(predictors)} prompts that can be changed, and not one"
        raise InputError(f"{type(program).__name__} {what}")
    return predictors[0]


def as_function(program: dspy.Module) -> tuple[Callable[..., Awaitable[Any]], Scale | None]:
    """Return a program (dspy.Module) as a pair: a judge's async function, and its prompt's Scale or None.

    The function takes what `forward` takes, and returns verdict and reasoning. The program is called in a
    thread, as it stands, with the models that DSPy is set to there; what an item says can forge no field.
    """
    takes = _parameters_of(program)
    parameters = [take for take in takes if take.kind in (take.POSITIONAL_OR_KEYWORD, take.KEYWORD_ONLY)]
    scale, cls = None, own_signature(program)
    fields = verdict_fields(cls) if cls else []
    if cls:
        parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in cls.input_fields]
    if cls and len(fields) == 1:
        with contextlib.suppress(InputError):  # a number without bounds says no scale
            scale = scale_of_field(cls.output_fields[fields[0]], fields[0])[0]

    async def judged(**inputs: Any) -> Any:
        in_json = isinstance(dspy.settings.adapter, dspy.JSONAdapter)
        harmless = neutralised(inputs, keys=fields if in_json else ())
        is_async = not hasattr(type(program), "forward")
        prediction = await (program.acall(**harmless) if is_async else asyncio.to_thread(program, **harmless))
        return verdict_of(prediction, fields) if isinstance(prediction, dspy.Prediction) else prediction

    judged.__name__ = type(program).__name__
    vars(judged)["__signature__"] = inspect.Signature(parameters)
    return judged, scale


def _parameters_of(program: dspy.Module) -> Collection[inspect.Parameter]:
    cls = type(program)  # DSPy warns of whoever takes `program.forward`
    forward = getattr(cls, "forward", None) or getattr(cls, "aforward", None)
    if forward is None or inspect.iscoroutinefunction(getattr(cls, "forward", None)):
        raise InputError(f"{cls.__name__} has no forward that can be called: one that is async is aforward")
    return inspect.signature(forward.__get__(program)).parameters.values()


def own_signature(program: dspy.Module) -> type[dspy.Signature] | None:
    """Return the dspy.Signature of a program (dspy.Module) that takes any input; else None."""
    if all(take.kind is not take.VAR_KEYWORD for take in _parameters_of(program)):
        return None
    cls: type[dspy.Signature] = only_predictor(program).signature
    return cls


def verdict_of(prediction: dspy.Prediction, declared: Sequence[str]) -> tuple[Any, str | None]:
    """Return (verdict, reasoning or None) of a dspy.Prediction, by the names of declared output fields.

    Args:
        declared: the verdicts of the program's signature, where there is one.
    """
    fields = dict(prediction.items())
    names = ["verdict"] if "verdict" in fields else list(fields) if len(fields) == 1 else declared
    names = names or [name for name, value in fields.items() if isinstance(value, int | float)]
    if len(names) != 1:
        raise ValueError(f"which of {', '.join(fields)} is the verdict? call it verdict")
    texts = [value for name, value in fields.items() if name not in names and isinstance(value, str)]
    return fields[names[0]], texts[0] if texts else None


def program_judge(
    program: dspy.Module,
    model: str,
    signature: str | None,
    trained_on: GoldSet | Iterable[str] | None,
    workspace: Workspace,
) -> PromptJudge:
    """Return the PromptJudge of a dspy.Module, names of model and signature, trained_on and a Workspace."""
    where = type(program).__name__
    if getattr(type(program), "forward", None) not in _OWN_FORWARDS:
        what = "has a forward of its own: give the model to judgecal.optimize(..., model=ALIAS),"
        raise InputError(f"{where} {what} {_WITHOUT}")
    predictor = only_predictor(program)
    names, state = list(predictor.signature.fields), predictor.dump_state()
    if signature is None:
        raise InputError(f"{where}: name the workspace's signature that it is of, signature=NAME, {_WITHOUT}")
    loaded = load_signature(signature, workspace=workspace)
    fields = list(loaded.cls.fields)
    if names != fields:
        raise InputError(f"{where}: its fields are not those of signature {loaded.name}: {', '.join(fields)}")
    demos = [{name: demo[name] for name in fields if name in demo} for demo in state["demos"]]
    compiled = bool(demos) or state["signature"]["instructions"] != loaded.cls.instructions
    groups = groups_seen(where, compiled, trained_on)
    prompt = {"signature": state["signature"], "demos": demos}
    stored = with_prompt(dspy.Predict(loaded.cls), prompt, where)
    slug = f"program-{digest([loaded.name, loaded.fingerprint, prompt, sorted(groups)])[:8]}"
    path = workspace.experiments / slug / "program.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    save_program(path, stored, signature=loaded, trained_on=groups)
    return PromptJudge(JudgeName(loaded.name, model, slug), workspace=workspace)


def groups_seen(where: str, compiled: bool, trained_on: GoldSet | Iterable[str] | None) -> frozenset[str]:
    """Return the groups a program saw: `where` (its name), `compiled`, trained_on (GoldSet or groups)."""
    if compiled and trained_on is None:
        raise InputError(
            f"{where} was compiled, and we do not know which questions it has seen: say trained_on=gold for "
            "those of the set's train split, or trained_on=() for none"
        )
    if isinstance(trained_on, GoldSet):
        return frozenset(item.group for item in trained_on.select("train"))
    return frozenset(trained_on or ())
