"""What a result says of verdicts that were read from stored replies."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from judgecal.experiment import StoredVerdicts, stored_notes
from judgecal.records import Judgement

NOW = datetime.fromisoformat("2026-03-15T12:00:00+00:00")


def row(ago: timedelta | None, verdict: float | None = 1.0, model_id: str | None = "m") -> Judgement:
    replied_at = None if ago is None else (NOW - ago).isoformat()
    return Judgement(
        "i", "sha", "j@m", "print", 0, verdict, model_id=model_id, replied_at=replied_at, at=NOW.isoformat()
    )


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=20), "less than a minute old (2026-03-15)"),
        (timedelta(minutes=1), "1 minute old"),
        (timedelta(minutes=119), "119 minutes old"),
        (timedelta(hours=3), "3 hours old"),
        (timedelta(hours=47), "47 hours old"),
        (timedelta(days=40), "40 days old (2026-02-03)"),
    ],
)
def test_the_age_of_the_oldest_is_said_in_one_unit(ago: timedelta, shown: str) -> None:
    rows = [row(None), row(ago), row(timedelta()), row(ago, verdict=None), row(None, model_id=None)]
    (note,) = stored_notes(rows)
    assert note.startswith("2 of 3 verdicts were read from stored replies")
    assert shown in note


def test_nothing_stored_is_nothing_said_and_parts_add_up() -> None:
    assert stored_notes([row(None), row(timedelta(days=1), verdict=None)]) == []
    whole, part = StoredVerdicts(), StoredVerdicts()
    whole.add(row(timedelta(hours=5)))
    part.add(row(timedelta(days=9)))
    whole.extend(part)
    assert (whole.n, whole.n_called, whole.age) == (2, 2, timedelta(days=9))
    assert whole.notes()[0].startswith("all 2 verdicts were read")
