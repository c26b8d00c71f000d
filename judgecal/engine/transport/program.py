"""A `dspy.LM` for DSPy's own optimisers, whose calls the engine makes."""

from __future__ import annotations

import contextvars
import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any

from judgecal.engine.calls import Message
from judgecal.models import ModelSpec

if TYPE_CHECKING:
    from judgecal.engine.program_calls import ProgramCalls

__all__ = ["program_lm"]

_asked_rollout: contextvars.ContextVar[int | None] = contextvars.ContextVar("judgecal_rollout", default=None)


def program_lm(spec: ModelSpec, calls: ProgramCalls, *, purpose: str = "task") -> Any:
    """A `dspy.LM` whose calls are made by `calls`: with the model's settings, unless DSPy asks for others.

    The embedded model answers in the calling thread and costs nothing, so it needs none of it.

    Args:
        spec: the model.
        calls: limits, budget, retries, cache and record; open while the LM is used.
        purpose: `task` or `reflection`, for the record.
    """
    import dspy

    from judgecal.models.embedded import AsyncEmbeddedEngine, EmbeddedEngine

    if spec.embedded:
        return dspy.LM(spec.id, engine=EmbeddedEngine(), async_engine=AsyncEmbeddedEngine(), cache=False)
    # Under a name of our own: DSPy has rules and prices for other names, and neither applies here. The calls are
    # retried by the engine; two layers of retries would multiply.
    engine = _Engine(spec, calls, purpose)
    return _lm_class()(f"judgecal/{spec.alias}", engine=engine, cache=False, num_retries=0)


@cache
def _lm_class() -> Any:
    import dspy

    class ProgramLM(dspy.LM):  # type: ignore[misc]
        """Tells its engine which sample is asked for: DSPy takes that out of the request."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            asked = _asked_rollout.set(kwargs.get("rollout_id", self.kwargs.get("rollout_id")))
            try:
                return super().__call__(*args, **kwargs)
            finally:
                _asked_rollout.reset(asked)

    return ProgramLM


class _Engine:
    """A DSPy engine that sends what it is given through `ProgramCalls`."""

    def __init__(self, spec: ModelSpec, calls: ProgramCalls, purpose: str) -> None:
        self._spec = spec
        self._calls = calls
        self._purpose = purpose

    def complete(self, request: Any) -> Any:
        """One response; a reply without text goes on as a blank, which DSPy parses like any other."""
        from dspy.lm15 import Message as Turn
        from dspy.lm15 import Response, Usage

        from judgecal.engine.program_attempts import ProgramCall

        reply = self._calls.ask(
            ProgramCall(self._asked(request), _messages(request), self._purpose, _sample())
        )
        text = "" if reply.stopped == "content_filter" else reply.text
        read, written = reply.prompt_tokens or 0, reply.completion_tokens or 0
        return Response(
            id=None,
            model=reply.model_id,
            message=Turn.assistant(text or " "),
            finish_reason="length" if reply.stopped == "length" else "stop",
            usage=Usage(input_tokens=read, output_tokens=written, total_tokens=read + written),
        )

    def _asked(self, request: Any) -> ModelSpec:
        """The model with the sampling settings of this request."""
        asked = {name: getattr(request.config, name) for name in ("temperature", "max_tokens")}
        return dataclasses.replace(
            self._spec, **{n: value for n, value in asked.items() if value is not None}
        )

    def close(self) -> None:
        """Nothing is held open."""


def _sample() -> int:
    """0 where DSPy asks for no sample in particular, and from 1 on its rollouts."""
    rollout = _asked_rollout.get()
    return 0 if rollout is None else 1 + rollout


def _messages(request: Any) -> list[Message]:
    system = (
        request.system if isinstance(request.system, str) else "".join(p.text for p in request.system or ())
    )
    turns: list[Message] = [
        {"role": message.role, "content": message.text or ""} for message in request.messages
    ]
    return [{"role": "system", "content": system}, *turns] if system else turns
