"""Values with their intervals on one axis, a line each: what results of every kind hold their numbers against."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.charts import ACCENT, INK, SOFT, drawn, rows_of, shortened
from judgecal.report.document import Block, Paragraph, Picture, Table
from judgecal.stats.metrics import metric_facts

_NAME = 34  # characters of a name beside its line
_ROOM = 0.06  # of the axis beyond the outermost end
_WIDE = 430
_NARROW = 320


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One line of the picture.

    Attributes:
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
    return dataclasses.replace(found, value=value, low=low, high=high)


def in_percent(found: Estimate) -> str:
    """A share with its interval in percent; a dash where it has no value."""
    return numbers.DASH if found.value is None else f"{numbers.estimate(in_points(found), 1)}%"


def share_row(name: str, found: Estimate, *, strong: bool) -> IntervalRow:
    """A share in percent; one from when the judge was locked is hollow."""
    return IntervalRow(name, in_points(found), in_percent(found), strong, hollow=name.endswith("lock time"))


def share_blocks(
    shares: Sequence[tuple[str, Estimate, bool]], axis: Axis, *, of: str = "", short: bool = False
) -> list[Block]:
    """Shares (name, 0..1, whether the decision is about it) on one axis with their table, and why one has no value."""
    known = [one for one in shares if one[1].value is not None]
    cells = [
        [name, in_percent(found), f"{found.level:.4g}", numbers.count(found.n), numbers.count(found.n_unscored)]
        for name, found, _ in known
    ]
    table = Table(["", f"share{of}", "level", "n", "unscored"], cells)
    rows = [share_row(name, found, strong=strong) for name, found, strong in known]
    blocks: list[Block] = [interval_picture(rows, axis, numbers=table, short=short)] if rows else []
    return blocks + [Paragraph(f"No number for {name}: {one.reason}.") for name, one, _ in shares if one.value is None]


def change_picture(
    changes: Sequence[tuple[str, Estimate, bool]], metric: str, *, digits: int, margin: float
) -> Picture:
    """Changes of a metric (name, change, whether it decides) held against 0 and the loss that is allowed."""
    rows = [
        IntervalRow(name, found, numbers.difference(found, digits), strong, hollow=not strong)
        for name, found, strong in changes
    ]
    less = metric_facts(metric).direction == "less"
    return interval_picture(rows, Axis(f"change of {metric}", full=0.0, dashed=margin if less else -margin))


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
    width, step = (_NARROW, 46) if narrow else (_WIDE, 30)
    data = [_placed(row, place, step, narrow=narrow) for place, row in enumerate(rows)]
    x, begins, y = axes(axis.title, _domain(rows, axis), step * len(rows), narrow=narrow)
    tops = [(step * (k + 0.56), step * (k + 0.92)) for k in range(len(rows))]
    marks = uprights(axis.full, axis.dashed, tops if narrow else [(0.0, float(step * len(rows)))], x, y)
    for kind, style in _STYLES.items():
        marks += lines_and_points([row for row in data if row["kind"] == kind], style, x, begins, y)
    return layered([*marks, *words(data, _words(width, narrow=narrow), y)], width, step * len(rows), narrow=narrow)


def axes(title: str, domain: tuple[float, float], height: float, *, narrow: bool) -> tuple[Any, Any, Any]:
    """Where a value lies, where its interval begins, and the pixel of its line from the top."""
    import altair as alt

    shared: dict[str, Any] = {
        "scale": alt.Scale(domain=list(domain), nice=False, zero=False),
        "axis": alt.Axis(title=title, format="~r", tickCount=6, grid=not narrow),
    }
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, height], reverse=True, nice=False))
    return alt.X("at:Q", **shared), alt.X("from:Q", **shared), y


def layered(marks: Sequence[Any], width: int, height: float, *, narrow: bool) -> str:
    """The marks as one picture; a reader's letters may be wider than those drawn with."""
    import altair as alt

    padding = {"left": 0 if narrow else 28, "right": 8, "top": 6, "bottom": 4}
    return drawn(alt.layer(*marks).properties(width=width, height=height, padding=padding))


Words = tuple[str, Literal["left", "right"], float, float, str]
"""What is written on each line: field, alignment, x, dy and colour."""


def words(rows: Sequence[Mapping[str, object]], texts: Sequence[Words], y: Any) -> list[Any]:
    """What stands beside the lines, or above them."""
    import altair as alt

    return [
        alt.Chart(rows_of(rows))
        .mark_text(align=align, baseline="middle", color=colour, fontSize=12.5, dy=dy)
        .encode(x=alt.value(at), y=y, text=f"{field}:N")
        for field, align, at, dy, colour in texts
    ]


def _words(width: int, *, narrow: bool) -> list[Words]:
    """On a narrow page above the line."""
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


Style = tuple[str, str, bool]
"""Colour, shape and whether it is filled: shape tells kinds apart where colour does not."""

_STYLES = {"strong": (ACCENT, "circle", True), "plain": (INK, "circle", True), "hollow": (SOFT, "square", False)}


def lines_and_points(rows: Sequence[Mapping[str, object]], style: Style, x: Any, begins: Any, y: Any) -> list[Any]:
    """The intervals and values of rows of one style; what lies beyond the axis is an arrow at its end."""
    import altair as alt

    seen = [row for row in rows if row["at"] is not None]
    if not seen:
        return []
    colour, shape, filled = style
    lines = alt.Chart(rows_of([row for row in seen if row["from"] is not None]))
    points = alt.Chart(rows_of([row for row in seen if not row.get("beyond")]))
    arrows = alt.Chart(rows_of([row for row in seen if row.get("beyond")]))
    solid: dict[str, Any] = {"filled": filled, "size": 80, "opacity": 1.0, "strokeWidth": 2}
    return [
        lines.mark_rule(color=colour, strokeWidth=2.5).encode(x=begins, x2="to:Q", y=y),
        points.mark_point(color=colour, shape=shape, **solid).encode(x=x, y=y),
        arrows.mark_text(color=colour, fontSize=14).encode(x=x, y=y, text="beyond:N"),
    ]


def uprights(
    full: float | None, dashed: float | None, pieces: Sequence[tuple[float, float]], x: Any, y: Any
) -> list[Any]:
    """Upright lines: whole, or where names stand above the lines in a piece for each, so that none is crossed."""
    import altair as alt

    styles: list[tuple[float | None, dict[str, Any]]] = [
        (full, {"color": SOFT, "strokeWidth": 1}),
        (dashed, {"color": ACCENT, "strokeDash": [4, 3], "strokeWidth": 1.5}),
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
