"""A `dspy.LM` for DSPy's own optimisers, on the same models and under the same budget."""

from __future__ import annotations

import threading
from typing import Any

from judgecal.engine.budget import Budget, worst_cost_usd
from judgecal.engine.calls import Message
from judgecal.engine.transport.dspy_client import dspy_client
from judgecal.errors import BudgetError
from judgecal.models import ModelSpec

__all__ = ["program_lm"]


def program_lm(spec: ModelSpec, budget: Budget) -> Any:
    """A `dspy.LM` for DSPy's own optimisers: the same model and settings, its calls counted against the budget.

    Raises:
        InputError: the model's key is not set.
    """
    import dspy

    from judgecal.models.embedded import AsyncEmbeddedEngine, EmbeddedEngine

    if spec.embedded:
        return dspy.LM(spec.id, engine=EmbeddedEngine(), async_engine=AsyncEmbeddedEngine(), cache=False)
    engine = _Metered(spec, budget)
    sampling = {"temperature": spec.temperature, "max_tokens": spec.max_tokens}
    # The client inside the engine retries; two layers of retries would multiply.
    return dspy.LM(spec.id, engine=engine, cache=False, num_retries=0, **sampling)


class _Metered:
    """A DSPy engine over DSPy's own client that holds every call against the budget first."""

    def __init__(self, spec: ModelSpec, budget: Budget) -> None:
        self._spec = spec
        self._budget = budget
        self._lm = dspy_client(spec, retries=3)
        self._lock = threading.Lock()

    def complete(self, request: Any) -> Any:
        """One response, or an error where the call could overrun the budget."""
        limit = self._budget.limit_usd
        worst = worst_cost_usd(self._spec, _messages(request)) if limit is not None else 0.0
        with self._lock:
            if not self._budget.hold(worst):
                raise BudgetError(f"the next call of the optimiser could overrun {limit:g} USD")
        cost = 0.0
        try:
            response = self._lm(request)
            known = self._spec.cost_usd(response.usage.input_tokens, response.usage.output_tokens)
            cost = worst if known is None else known
        finally:
            with self._lock:
                self._budget.settle(worst, cost)
        return response

    def close(self) -> None:
        """Nothing is held open."""


def _messages(request: Any) -> list[Message]:
    system = (
        request.system if isinstance(request.system, str) else "".join(p.text for p in request.system or ())
    )
    turns = [{"role": message.role, "content": message.text or ""} for message in request.messages]
    return [{"role": "system", "content": system}, *turns]
