"""A budget in money, checked before each call with the worst case of those in flight, so never overrun."""

from __future__ import annotations

from collections.abc import Sequence

from judgecal.engine.calls import Message
from judgecal.errors import InputError
from judgecal.models import ModelSpec

__all__ = ["Budget", "require_prices", "worst_cost_usd"]

# What a provider may put around a message beside its text.
_TOKENS_PER_MESSAGE = 8
_UNBOUNDED_REPLY = 8192  # only for a preview: a budget wants a bound that holds


class Budget:
    """Money that calls may spend in one command.

    Args:
        limit_usd: the most that may be spent, or None for no limit.

    Attributes:
        spent_usd: what finished calls cost.
    """

    def __init__(self, limit_usd: float | None) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self._held_usd = 0.0

    def hold(self, worst_usd: float) -> bool:
        """Set aside the worst cost of a call; False where that could overrun the limit."""
        if (
            self.limit_usd is not None
            and self.spent_usd + self._held_usd + worst_usd > self.limit_usd + 1e-12
        ):
            return False
        self._held_usd += worst_usd
        return True

    def fits(self, worst_usd: float) -> bool:
        """Whether a call would fit once every other call has given back what it does not need."""
        return self.limit_usd is None or self.spent_usd + worst_usd <= self.limit_usd + 1e-12

    def settle(self, worst_usd: float, cost_usd: float) -> None:
        """Give back what was set aside and book what the call cost."""
        self._held_usd = max(0.0, self._held_usd - worst_usd)
        self.spent_usd += cost_usd


def worst_cost_usd(spec: ModelSpec, messages: Sequence[Message]) -> float:
    """An upper bound of one call's cost: a token is at least one byte, and the reply is as long as it may be."""
    size = sum(len(m["content"].encode("utf-8", "surrogatepass")) + _TOKENS_PER_MESSAGE for m in messages)
    return spec.cost_usd(size, spec.max_tokens or spec.reply_limit or _UNBOUNDED_REPLY) or 0.0


def require_prices(specs: Sequence[ModelSpec], limit_usd: float | None) -> None:
    """Refuse a budget that cannot be held: a price is not known, or a reply has no longest length.

    Raises:
        InputError: names each such model and what to set.
    """
    if limit_usd is None:
        return
    if limit_usd <= 0:
        raise InputError(f"--budget-usd must be above 0, found {limit_usd:g}")
    unpriced = sorted({spec.alias for spec in specs if not spec.priced})
    problems = []
    if unpriced:
        problems.append(
            f"--budget-usd: the price of {', '.join(unpriced)} is not known: set input_usd_per_1m and "
            "output_usd_per_1m under [models.NAME] in judgecal.toml"
        )
    endless = sorted(
        {spec.alias for spec in specs if _paid(spec) and not (spec.max_tokens or spec.reply_limit)}
    )
    if endless:
        problems.append(
            f"--budget-usd: a reply of {', '.join(endless)} has no known longest length, so no bound on its cost: set "
            "max_tokens under [models.NAME] in judgecal.toml"
        )
    if problems:
        raise InputError(problems)


def _paid(spec: ModelSpec) -> bool:
    return spec.priced and bool(spec.input_usd_per_1m or spec.output_usd_per_1m)
