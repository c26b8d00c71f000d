"""The room in which one of DSPy's optimisers works: its models, its adapter, its noise, and its end."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy

from judgecal.engine.cache import open_cache
from judgecal.engine.calls import read_guarded
from judgecal.engine.run import Progress
from judgecal.errors import InputError, Stopped
from judgecal.experiment.trials import say_remarks
from judgecal.judges.chat import JudgeAdapter, neutralised, typed_verdict
from judgecal.judges.prompt import PromptJudge
from judgecal.judges.reply import read_reply
from judgecal.optimize.program_calls import CALL_LOG, ProgramCalls, program_lm, schema_now, width
from judgecal.optimize.training import Training


class JudgeProgram(dspy.Module):  # type: ignore[misc]
    """Judges one case."""  # optimisers show this source to the model that writes instructions

    def __init__(self, judge: PromptJudge) -> None:
        super().__init__()
        self.judge = judge.program.deepcopy()

    def forward(self, **inputs: Any) -> Any:
        """Return the prediction of the judge for the inputs of an item."""
        return self.judge(**inputs)


class OptimiserAdapter(JudgeAdapter):
    """The judges' adapter for an optimiser's calls, its own questions among them.

    An unusable reply of the judge goes to the metric as a missing verdict: it counts as the worst, and is
    counted.
    """

    def __init__(self, judge: PromptJudge) -> None:
        super().__init__(in_json=judge.schema is not None)
        self._schema, self._judged = judge.schema, judge.signature

    def asks_for_json(self, signature: type[dspy.Signature]) -> bool:
        """Whether the calls of a signature ask for JSON: the judge's alone, others go as DSPy puts them."""
        return super().asks_for_json(signature) and self._is_the_judge(signature)

    def __call__(self, lm: Any, *args: Any, signature: type[dspy.Signature], **more: Any) -> Any:
        """Put a call as DSPy does, the judge's own held to its schema."""
        before = schema_now.set(self._schema if self._is_the_judge(signature) else None)
        try:
            return super().__call__(lm, *args, signature=signature, **more)
        finally:
            schema_now.reset(before)

    def _is_the_judge(self, signature: type[dspy.Signature]) -> bool:
        return set(signature.output_fields) == set(self._judged.cls.output_fields)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Parse a completion (text) by a dspy.Signature into a dict of fields; a lone text needs no mark."""
        if self._is_the_judge(signature):
            reading = read_guarded(functools.partial(read_reply, self._judged), completion)
            fields: dict[str, Any] = dict.fromkeys(signature.output_fields)
            fields[str(self._judged.verdict)] = typed_verdict(self._judged, reading.verdict)
            if self._judged.reasoning:
                fields[self._judged.reasoning] = reading.reasoning
            return fields
        try:
            fields = super().parse(signature, completion)
        except dspy.AdapterParseError:
            text = completion.strip().removeprefix("```").removesuffix("```").strip()
            (only, *more) = signature.output_fields.items()
            if more or only[1].annotation is not str or not text or "[[ ##" in text:
                raise
            fields = {only[0]: text}
        # It may quote texts under test, and goes into prompts: as the instructions of a judge, as a demo.
        return neutralised(fields)


@contextlib.contextmanager
def compiling(training: Training, optimizer: str, *, calls_at_most: int) -> Iterator[ProgramCalls]:
    """Yield the ProgramCalls, `calls_at_most`, of an optimizer by name on a Training; score outside it.

    Raises:
        JudgecalError: what ended it: a refused key, a spent budget, a provider that is down, or a reply of
            the reflection model that DSPy cannot go on without.
    """
    with contextlib.ExitStack() as stack:
        cache = stack.enter_context(open_cache(use=training.use_cache))
        progress = None
        if not training.quiet:
            stack.callback(say_remarks, training.budget, ended=False)  # which is an error here
            progress = Progress(f"{optimizer}, at most", calls_at_most)
            stack.callback(progress.close)
        calls = ProgramCalls(training.budget, log=training.log, cache=cache, progress=progress)
        stack.enter_context(calls)
        # stdout is the command's result, and what ends an optimiser is raised
        logger = logging.getLogger("dspy")
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)
        nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
        stack.enter_context(contextlib.redirect_stdout(nowhere))
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        judge = training.judge
        lm, adapter = program_lm(judge.model, calls), OptimiserAdapter(judge)
        settings = {"num_threads": width(judge.model), "disable_history": True}
        stack.enter_context(dspy.context(lm=lm, adapter=adapter, **settings))
        try:
            yield calls
        except Stopped:
            pass  # `calls.error` says why
        except dspy.AdapterParseError as error:
            reply = " ".join(str(error.lm_response).split())[:80]
            raise InputError(
                f"optimizer {optimizer}: model {training.writer.alias} was asked for "
                f"{', '.join(error.signature.output_fields)} and its reply holds none: {reply!r}; its "
                f"replies are in {CALL_LOG}: try another --reflection-model"
            ) from error
        if calls.error is not None:
            raise calls.error
