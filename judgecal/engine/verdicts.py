"""Verdicts of judges that call nobody: timed and recorded like any other, for nothing."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from judgecal.engine.calls import Reading
from judgecal.engine.run import Progress
from judgecal.records import Judgement, Key

__all__ = ["OwnVerdict", "take_verdicts"]


@dataclass(frozen=True, slots=True)
class OwnVerdict:
    """One judgement that needs no call: its key, the judge's string, and what gives the verdict."""

    key: Key
    judge: str
    give: Callable[[], Reading]


def take_verdicts(
    due: Iterable[OwnVerdict], *, record: Callable[[Judgement], None], progress: Progress | None = None
) -> None:
    """Take every verdict, and hand each judgement to `record` as it comes.

    Raises:
        OSError: `record` could not write.
    """
    for one in due:
        start = time.perf_counter()
        reading = one.give()
        took = time.perf_counter() - start
        row = Judgement(
            *one.key[:2],
            judge=one.judge,
            judge_fingerprint=one.key.judge_fingerprint,
            repeat=one.key.repeat,
            unit=one.key.unit,
            verdict=reading.verdict,
            reasoning=reading.reasoning,
            error=reading.failure,
            latency_s=round(took, 6),
            cost_usd=0.0,
            at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        record(row)
        if progress:
            progress.add(scored=row.verdict is not None, cost_usd=0.0)
