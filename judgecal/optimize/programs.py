"""What can be optimised: a prompt, or a program of DSPy's as a whole, with all its prompts."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any, TypeAlias

import dspy

from judgecal.errors import InputError
from judgecal.goldset import GoldSet
from judgecal.judges.chat import typed_verdict
from judgecal.judges.function import FunctionJudge, GivenFunction
from judgecal.judges.module import as_function, own_signature, verdict_of
from judgecal.judges.prompt import PromptJudge
from judgecal.judges.protocol import Judge
from judgecal.models import ModelSpec, load_catalogue
from judgecal.records import digest
from judgecal.scale import Scale
from judgecal.signatures import LoadedSignature, loaded_class, signature_on, verdict_fields
from judgecal.workspace import Workspace

_NO_SETTING = vars(dspy.Module())  # what DSPy itself keeps there


class ModuleJudge(GivenFunction):
    """A program none of whose prompts has a model of its own, so that all ask one of judgecal's (`asks`).

    A verdict is asked for while the calls of `judgecal.optimize` are open.
    """

    signature: LoadedSignature  # type: ignore[assignment]

    def __init__(
        self,
        judge: FunctionJudge,
        program: dspy.Module,
        model: ModelSpec,
        people: Scale,
        workspace: Workspace,
    ) -> None:
        self._origin, self._people, self._workspace = judge, people, workspace
        scale = (judge.on(people) if isinstance(judge, GivenFunction) else judge).scale
        super().__init__(as_function(program)[0], scale=scale, workspace=workspace)
        self.program, self.asks, self.name, self.trained_on = program, model, judge.name, judge.trained_on
        self.demos = [demo for predictor in program.predictors() for demo in predictor.demos]
        source = judge.fingerprint  # typed into a shell, nobody can say that it is the same
        if isinstance(judge, GivenFunction):
            with contextlib.suppress(OSError, TypeError):
                source = Path(inspect.getfile(type(program))).read_text(encoding="utf-8")
        set_to = [
            {
                name: json.dumps(value, skipkeys=True, default=lambda _: "")
                for name, value in vars(part).items()
                if name not in _NO_SETTING
            }
            for _, part in program.named_sub_modules()
            if not isinstance(part, dspy.Predict)
        ]
        prompts = [
            [predictor.signature.model_json_schema(), [*map(dict, predictor.demos)]]
            for predictor in program.predictors()
        ]
        self.fingerprint = digest([source, str(set_to), str(prompts), str(scale), model.settings()])[:16]
        self.signature = dataclasses.replace(signature_on(scale, self.inputs), name=judge.name)
        self._fields = verdict_fields(cls) if (cls := own_signature(program)) else []
        with contextlib.suppress(InputError):  # a number without bounds says no scale
            if cls and (loaded := loaded_class(cls, judge.name)).scale == scale:
                self.signature = loaded

    def compiled(self, program: dspy.Module, name: str, trained_on: frozenset[str]) -> ModuleJudge:
        """Return a ModuleJudge of a program (dspy.Module), with a name and the set of groups trained on."""
        judge = ModuleJudge(self._origin, program, self.asks, self._people, self._workspace)
        judge.name, judge.trained_on = name, trained_on
        return judge

    def prediction(self, output: Any) -> dspy.Prediction:
        """Return an output of the program as a `dspy.Prediction`, with the signature's verdict, reasoning."""
        reading = self.reading(
            verdict_of(output, self._fields) if isinstance(output, dspy.Prediction) else output
        )
        verdict = {str(self.signature.verdict): typed_verdict(self.signature, reading.verdict)}
        return dspy.Prediction(**verdict, **{self.signature.reasoning or "reasoning": reading.reasoning})


Optimised: TypeAlias = PromptJudge | ModuleJudge
"""What can be optimised: a prompt, or a program of several."""


def model_of(judge: Optimised) -> ModelSpec:
    """The model that is asked for the verdict."""
    return judge.asks if isinstance(judge, ModuleJudge) else judge.model


def to_optimise(judge: Judge, gold: GoldSet, model: str | None, workspace: Workspace) -> Optimised:
    """Return what can be optimised, an Optimised, of a Judge, GoldSet, model's name or None, Workspace."""
    if isinstance(judge, PromptJudge) and model is None:
        return judge
    if not isinstance(judge, FunctionJudge) or judge.program is None:
        what = "has no prompt: take a signature@model, or a program of DSPy's"
        if isinstance(judge, PromptJudge):
            what = "has a model already: leave model= out"
        raise InputError(f"{judge.name} {what}")
    if model is None:
        what = "say which model all its prompts are to ask, model=ALIAS or a litellm id"
        raise InputError(f"{judge.name} is a program of DSPy's: {what}; the calls then are judgecal's own")
    program = judge.program
    if "forward" in vars(program) or not program.predictors() or not hasattr(type(program), "forward"):
        what = "has no prompt, or no forward of its class's own, which DSPy's optimisers call"
        raise InputError(f"{judge.name} {what}: score and compare take it")
    program = program.deepcopy()
    program.set_lm(None)
    program._compiled = False  # DSPy would leave its prompts alone
    return ModuleJudge(judge, program, load_catalogue(workspace).resolve(model), gold.scale, workspace)
