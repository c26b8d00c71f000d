"""What a result must say of verdicts that were read from stored replies: how many, and how old they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from judgecal.records import Judgement


@dataclass(slots=True)
class StoredVerdicts:
    """A count of judgements, a row at a time."""

    n: int = 0  # verdicts that were read from stored replies; a reply of the same run is none
    n_called: int = 0  # all verdicts of models
    oldest: str | None = None  # when the oldest of those replies was given, UTC in ISO 8601
    age: timedelta = timedelta()  # how old it was when the verdict was taken

    def add(self, row: Judgement) -> None:
        """Count a judgement."""
        if row.verdict is None or row.model_id is None:
            return
        self.n_called += 1
        if row.replied_at is not None:
            self.n += 1
            self._hold(
                row.replied_at, datetime.fromisoformat(row.at) - datetime.fromisoformat(row.replied_at)
            )

    def extend(self, other: StoredVerdicts) -> None:
        """Count all that another one counted."""
        self.n += other.n
        self.n_called += other.n_called
        if other.oldest is not None:
            self._hold(other.oldest, other.age)

    def _hold(self, replied_at: str, age: timedelta) -> None:
        if self.oldest is None or replied_at < self.oldest:
            self.oldest, self.age = replied_at, age

    def notes(self) -> list[str]:
        """The sentence for a reader, without its full stop; none where nothing was stored."""
        if self.oldest is None:
            return []
        share = (
            f"{self.n:,} of {self.n_called:,} verdicts"
            if self.n < self.n_called
            else f"all {self.n:,} verdicts"
        )
        return [
            f"{share} were read from stored replies, which cost nothing; the oldest reply was "
            f"{_shown(self.age)} old ({self.oldest[:10]}); --no-cache asks anew"
        ]


def stored_notes(rows: Iterable[Judgement]) -> list[str]:
    """`StoredVerdicts.notes` of some judgements."""
    counted = StoredVerdicts()
    for row in rows:
        counted.add(row)
    return counted.notes()


def _shown(age: timedelta) -> str:
    """A length of time in one unit: minutes below two hours, hours below two days, else days."""
    minutes = max(0, round(age.total_seconds() / 60))
    n, unit = (minutes, "minute") if minutes < 120 else (minutes // 60, "hour")
    if minutes >= 2 * 24 * 60:
        n, unit = age.days, "day"
    return f"{n} {unit}{'s' * (n != 1)}" if n else "less than a minute"
