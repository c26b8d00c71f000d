"""Values with their intervals on one axis, a line each: what results of every kind hold their numbers against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgecal.records import Estimate
from judgecal.report.charts import ACCENT, INK, SOFT, drawn, rows_of, shortened
from judgecal.report.document import Picture, Table

_NAME = 34  # characters of a name beside its line
_ROOM = 0.06  # of the axis beyond the outermost end
_WIDE = 430
_NARROW = 320


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One line of the picture.

    Attributes:
        name: before the line.
        found: value and interval, in the units of the axis.
        text: behind the line, as `numbers` writes it.
        strong: whether it is what the decision is about.
        hollow: whether it stands beside: drawn as an empty square.
    """

    name: str
    found: Estimate
    text: str
    strong: bool = False
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """What the lines stand on.

    Attributes:
        title: quantity and unit.
        full: drawn as an upright line: what a value is held against, such as 0.
        dashed: drawn as a dashed one: a margin.
        low, high: what the axis reaches at least.
    """

    title: str
    full: float | None = None
    dashed: float | None = None
    low: float | None = None
    high: float | None = None


def in_points(found: Estimate) -> Estimate:
    """A share, or a difference of shares, in points of 100."""
    value, low, high = (None if end is None else 100.0 * end for end in (found.value, found.low, found.high))
    return Estimate(
        value, low, high, found.level, found.n, found.n_expected, found.n_groups, found.n_unscored, found.method,
        found.reason,
    )  # fmt: skip


def interval_picture(
    rows: Sequence[IntervalRow], axis: Axis, *, title: str = "", numbers: Table | None = None, short: bool = False
) -> Picture:
    """The picture, wide and for a phone; `numbers` is the table behind it, which stands alone where `short`."""
    return Picture(
        draw=lambda: _drawn(rows, axis, narrow=False),
        says="; ".join(f"{row.name}: {row.text}" for row in rows),
        title=title,
        narrow=lambda: _drawn(rows, axis, narrow=True),
        numbers=numbers,
        short=short,
    )


def _drawn(rows: Sequence[IntervalRow], axis: Axis, *, narrow: bool) -> str:
    import altair as alt

    width, step = (_NARROW, 46) if narrow else (_WIDE, 30)
    height = step * len(rows)
    data = [_placed(row, place, step, narrow=narrow) for place, row in enumerate(rows)]
    x_axis = alt.Axis(title=axis.title, format="~r", tickCount=6, grid=not narrow)
    shared: dict[str, Any] = {
        "scale": alt.Scale(domain=list(_domain(rows, axis)), nice=False, zero=False),
        "axis": x_axis,
    }
    x, begins = alt.X("at:Q", **shared), alt.X("from:Q", **shared)
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, height], reverse=True, nice=False))
    marks = [*_uprights(axis, len(rows), step, x, y, narrow=narrow)]
    for kind in ("strong", "plain", "hollow"):
        marks += _marks([row for row in data if row["kind"] == kind], x, begins, y)
    marks += [
        alt.Chart(rows_of(data))
        .mark_text(align=align, baseline="middle", color=colour, fontSize=12.5, dy=dy)
        .encode(x=alt.value(at), y=y, text=f"{field}:N")
        for field, align, at, dy, colour in _words(width, narrow=narrow)
    ]
    return drawn(alt.layer(*marks).properties(width=width, height=height, padding=_padding(narrow=narrow)))


def _padding(*, narrow: bool) -> dict[str, int]:
    """A reader's letters may be wider than those drawn with."""
    return {"left": 0 if narrow else 28, "right": 8, "top": 6, "bottom": 4}


def _words(width: int, *, narrow: bool) -> list[tuple[str, Literal["left", "right"], float, float, str]]:
    """Field, alignment, x, dy and colour: on a narrow page above the line."""
    if narrow:
        return [("name", "left", 0.0, -16.0, INK), ("text", "right", float(width), -16.0, SOFT)]
    return [("name", "right", -18.0, 0.0, INK), ("text", "right", width + 170.0, 0.0, INK)]


def _placed(row: IntervalRow, place: int, step: int, *, narrow: bool) -> dict[str, Any]:
    found = row.found
    kind = "strong" if row.strong else "hollow" if row.hollow else "plain"
    known = found.value is not None and found.low is not None and found.high is not None
    return {
        "y": step * (place + (0.72 if narrow else 0.5)),
        "name": shortened(row.name, _NAME - 9 if narrow else _NAME),
        "text": row.text,
        "kind": kind,
        "at": found.value,
        "from": found.low if known else None,
        "to": found.high if known else None,
    }


_STYLES = {"strong": (ACCENT, "circle", True), "plain": (INK, "circle", True), "hollow": (SOFT, "square", False)}
"""Colour, shape and whether it is filled: shape tells kinds apart where colour does not."""


def _marks(rows: Sequence[Mapping[str, object]], x: Any, begins: Any, y: Any) -> list[Any]:
    import altair as alt

    seen = [row for row in rows if row["at"] is not None]
    if not seen:
        return []
    colour, shape, filled = _STYLES[str(seen[0]["kind"])]
    lines = alt.Chart(rows_of([row for row in seen if row["from"] is not None]))
    points = alt.Chart(rows_of(seen))
    return [
        lines.mark_rule(color=colour, strokeWidth=2.5).encode(x=begins, x2="to:Q", y=y),
        points.mark_point(color=colour, shape=shape, filled=filled, size=80, opacity=1.0, strokeWidth=2).encode(
            x=x, y=y
        ),
    ]


def _uprights(axis: Axis, n: int, step: int, x: Any, y: Any, *, narrow: bool) -> list[Any]:
    """Upright lines: whole, or where names stand above the lines in a piece for each, so that none is crossed."""
    import altair as alt

    pieces = [(step * (k + 0.56), step * (k + 0.92)) for k in range(n)] if narrow else [(0.0, float(step * n))]
    styles: list[tuple[float | None, dict[str, Any]]] = [
        (axis.full, {"color": SOFT, "strokeWidth": 1}),
        (axis.dashed, {"color": ACCENT, "strokeDash": [4, 3], "strokeWidth": 1.5}),
    ]
    return [
        alt.Chart(rows_of([{"at": at, "y": top, "to_y": bottom} for top, bottom in pieces]))
        .mark_rule(**style)
        .encode(x=x, y=y, y2="to_y:Q")
        for at, style in styles
        if at is not None
    ]


def _domain(rows: Sequence[IntervalRow], axis: Axis) -> tuple[float, float]:
    """Wide enough for every end and every upright line."""
    ends = [end for row in rows for end in (row.found.value, row.found.low, row.found.high)]
    known = [end for end in (*ends, axis.full, axis.dashed, axis.low, axis.high) if end is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = _ROOM * (high - low) or 1.0
    return low - room, high + room
