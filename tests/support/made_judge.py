"""A measured judge by hand, for tests and simulations of the choice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from judgecal.experiment.agreement import Entry, Latency
from judgecal.experiment.agreement_table import Verdicts
from judgecal.scale import Scale
from judgecal.selection.decision import MeasuredJudge


def made_judge(
    judge: str,
    *,
    usd_per_1k: float | None = 1.0,
    p95_s: float | None = 1.0,
    n_expected: int = 100,
    n_unscored: int = 0,
) -> MeasuredJudge:
    """A judge with what the choice and the caps ask about, and no judgements."""
    counts = {"n": n_expected - n_unscored, "n_expected": n_expected, "n_unscored": n_unscored}
    entry = SimpleNamespace(latency_s=Latency(None, p95_s), usd_per_1k=usd_per_1k, **counts)
    column = Verdicts(judge, Scale.parse("binary"), ())
    return MeasuredJudge(column, cast("Entry", entry), 1, usd_per_1k)
