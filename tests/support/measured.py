"""Rows of measured answers, for tests of what they come to."""

from __future__ import annotations

from collections.abc import Sequence

from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.records import Failure


def measured_row(
    system: str,
    place: int,
    correctness: float | None = 1.0,
    *,
    answered: bool | None = True,
    answerable: bool = True,
    failed: bool = False,
    latency_s: float | None = None,
    cost_usd: float | None = 0.001,
    document: str = "d",
) -> Measured:
    question = f"q{place}"
    error = Failure("timeout", "no reply in 30 s") if failed else None
    text = None if failed else "It is so."
    given = SystemAnswer(system, question, text, error=error, latency_s=latency_s, cost_usd=cost_usd)
    share = None if failed else correctness
    return Measured(
        system, question, (document,), answerable, given, answered, share, {"faithfulness": share}
    )


def of_totals(system: str, totals: Sequence[float | None]) -> list[Measured]:
    return [measured_row(system, place, total) for place, total in enumerate(totals)]
