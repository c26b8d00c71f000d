"""The picture of `intervals` as a block of pages that are no document yet."""

from __future__ import annotations

from collections.abc import Sequence

from judgecal.report import intervals
from judgecal.report.intervals import Axis, IntervalRow, in_points
from judgecal.report.page_blocks import Picture, Table

__all__ = ["Axis", "IntervalRow", "in_points", "interval_picture"]


def interval_picture(
    rows: Sequence[IntervalRow], axis: Axis, *, title: str = "", numbers: Table | None = None
) -> Picture:
    """The picture, wide and for a phone."""
    made = intervals.interval_picture(rows, axis, title=title)
    return Picture(made.draw(), made.says, made.title, made.narrow() if made.narrow else "", numbers)
