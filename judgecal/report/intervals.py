"""Values with their intervals on one axis, a line each: what results of every kind hold their numbers
against."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.charts import Tick, place, shortened, ticks
from judgecal.report.document import Block, Paragraph, Picture, Table
from judgecal.report.html import plot
from judgecal.scale import Scale
from judgecal.stats.metrics import digits_of, metric_facts
from judgecal.stats.sample import as_scale

_SAID = 3  # words whose shares are in a sentence
_ROOM = 0.06  # of the axis beyond the outermost end


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One line of the picture.

    Attributes:
        found: value and interval, in the units of the axis.
        text: behind the line, as `numbers` writes it.
        strong: whether it is what the decision is about.
        hollow: whether it stands beside: drawn as an empty square.
        beside: a second value of the same thing on another footing: drawn as a diamond.
        band: whether it is what the band of the axis shows.
    """

    name: str
    found: Estimate
    text: str
    strong: bool = False
    hollow: bool = False
    beside: float | None = None
    band: bool = False

    @property
    def tone(self) -> str:
        """How the style sheet knows it."""
        return "strong" if self.strong else "hollow" if self.hollow else "people" if self.band else "plain"


@dataclass(frozen=True, slots=True)
class Axis:
    """What the lines stand on.

    Attributes:
        title: quantity and unit.
        full: drawn as an upright line: what a value is held against, such as 0.
        dashed: drawn as a dashed one: a margin.
        low, high: what the axis reaches at least.
        band: from where to where values lie that the others are held against.
    """

    title: str
    full: float | None = None
    dashed: float | None = None
    low: float | None = None
    high: float | None = None
    band: tuple[float, float] | None = None


def in_points(found: Estimate) -> Estimate:
    """A share, or a difference of shares, in points of 100."""
    return _times(found, 100.0)


def _times(found: Estimate, factor: float) -> Estimate:
    value, low, high = (None if end is None else factor * end for end in (found.value, found.low, found.high))
    return dataclasses.replace(found, value=value, low=low, high=high)


def of_metric(found: Estimate | None, name: str, unit: Scale | str, *, on: Scale | str | None = None) -> str:
    """The value of a metric with its interval: a share in percent, else with the digits that it needs.

    `unit` is the scale that it is in units of, `on` the one in whose units it is to be written.
    """
    facts = metric_facts(name)
    if found is None or facts.unit == "coefficient":
        return numbers.estimate(found)
    if facts.unit == "share":
        return in_percent(found)
    shown = as_scale(on or unit)
    return numbers.estimate(_times(found, shown.span / as_scale(unit).span), digits_of(name, shown))


def change_of(found: Estimate | None, name: str, unit: Scale | str) -> str:
    """A change of a metric with its interval: of a share in points of 100, else as `of_metric`."""
    if found is not None and found.value is not None and metric_facts(name).unit == "share":
        return f"{numbers.difference(in_points(found), 1)} points"
    return numbers.difference(found, digits_of(name, unit))


def in_percent(found: Estimate) -> str:
    """A share with its interval in percent; a dash where it has no value."""
    return numbers.DASH if found.value is None else f"{numbers.estimate(in_points(found), 1)}%"


def said_in_words(shares: Mapping[str, Estimate]) -> str:
    """`Of 1,200 answers 62.0% [59.0, 65.0] are "refund"`: the most frequent words (word -> share), and how
    many more.

    It is of the answers that have a verdict; there is one word at least.
    """
    said = [
        f'{in_percent(share)} {"are " * (not at)}"{word}"' for at, (word, share) in enumerate(shares.items())
    ]
    more = len(said) - _SAID
    said = [
        *said[:_SAID],
        *([numbers.count_of(more, "other word") + " make up the rest"] if more > 0 else []),
    ]
    joined = " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))
    return f"Of {numbers.count(next(iter(shares.values())).n)} answers {joined}"


def share_row(name: str, found: Estimate, *, strong: bool) -> IntervalRow:
    """A share in percent; one from when the judge was locked is hollow."""
    return IntervalRow(name, in_points(found), in_percent(found), strong, hollow=name.endswith("lock time"))


def share_blocks(
    shares: Sequence[tuple[str, Estimate, bool]], axis: Axis, *, of: str = "", short: bool = False
) -> list[Block]:
    """Shares (name, 0..1, whether the decision is about it) on one axis with their table, and why one has no
    value."""
    known = [one for one in shares if one[1].value is not None]
    cells = [
        [
            name,
            in_percent(found),
            f"{found.level:.4g}",
            numbers.count(found.n),
            numbers.count(found.n_unscored),
        ]
        for name, found, _ in known
    ]
    table = Table(["", f"share{of}", "level", "n", "unscored"], cells)
    rows = [share_row(name, found, strong=strong) for name, found, strong in known]
    blocks: list[Block] = [interval_picture(rows, axis, numbers=table, short=short)] if rows else []
    return blocks + [
        Paragraph(f"No number for {name}: {one.reason}.") for name, one, _ in shares if one.value is None
    ]


def in_units(found: Estimate, name: str) -> Estimate:
    """The value of a metric as an axis has it: a share in points of 100, else as it is."""
    return in_points(found) if metric_facts(name).unit == "share" else found


def axis_of(name: str) -> str:
    """What stands at an axis of a metric."""
    return f"{name}{', %' * (metric_facts(name).unit == 'share')}"


def change_picture(
    changes: Sequence[tuple[str, Estimate, bool]], metric: str, *, unit: Scale | str, margin: float
) -> Picture:
    """Changes of a metric (name, change, whether it decides) held against 0 and the loss that is allowed."""
    facts = metric_facts(metric)
    share = facts.unit == "share"
    rows = [
        IntervalRow(name, in_units(found, metric), change_of(found, metric, unit), strong, hollow=not strong)
        for name, found, strong in changes
    ]
    dashed = (margin if facts.direction == "less" else -margin) * (100.0 if share else 1.0)
    return interval_picture(rows, Axis(f"change of {metric}{', points' * share}", full=0.0, dashed=dashed))


def interval_picture(
    rows: Sequence[IntervalRow],
    axis: Axis,
    *,
    title: str = "",
    numbers: Table | None = None,
    short: bool = False,
) -> Picture:
    """The picture, wide and for a phone; `numbers` is the table behind it, which stands alone where
    `short`."""
    return Picture(
        draw=lambda: _drawn(rows, axis, narrow=False),
        says="; ".join(f"{row.name}: {row.text}" for row in rows),
        title=title,
        narrow=lambda: _drawn(rows, axis, narrow=True),
        numbers=numbers,
        short=short,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """A line in pixels."""

    name: str
    text: str
    tone: str
    y: float
    text_y: float
    at: float | None
    low: float | None
    high: float | None
    beside: float | None


@dataclass(frozen=True, slots=True)
class _Plot:
    """The picture in pixels, as `plots.html` draws it. On a phone names and numbers stand above their
    lines."""

    width: int
    left: float
    right: float
    top: float
    bottom: float
    name_x: float
    name_anchor: str
    text_x: float
    text_anchor: str
    longest: int  # characters of a name
    step: float
    title: str = ""
    ticks: Sequence[Tick] = ()
    rows: Sequence[_Row] = ()
    band: tuple[float, float] | None = None
    full: float | None = None
    dashed: float | None = None


_WIDE = _Plot(860, 236.0, 660.0, 4.0, 0.0, 216.0, "end", 684.0, "start", 32, 26.0)
_NARROW = _Plot(340, 8.0, 332.0, 4.0, 0.0, 2.0, "start", 338.0, "end", 25, 40.0)
_BAND = 3.0  # pixels of a band at least
_LETTER, _GAP = 7.6, 20.0  # pixels of a letter on average, and between a name and its line
_BOLD = 1.1  # how much wider letters are in bold


def _drawn(rows: Sequence[IntervalRow], axis: Axis, *, narrow: bool) -> str:
    shape = _for_names(_NARROW if narrow else _WIDE, rows)
    low, high = _domain(rows, axis)

    def at(value: float | None) -> float | None:
        return None if value is None else place(value, low, high, shape.left, shape.right)

    lines = [_placed(row, at, shape, number) for number, row in enumerate(rows)]
    band = None
    if axis.band is not None:
        begin, end = (place(value, low, high, shape.left, shape.right) for value in axis.band)
        band = (begin - max(0.0, (_BAND - (end - begin)) / 2.0), max(_BAND, round(end - begin, 1)))
    return plot(
        "intervals",
        dataclasses.replace(
            shape,
            bottom=shape.top + shape.step * len(rows) + 4.0,
            title=axis.title,
            ticks=ticks(low, high, shape.left, shape.right),
            rows=lines,
            band=band,
            full=at(axis.full),
            dashed=at(axis.dashed),
        ),
    )


def _for_names(shape: _Plot, rows: Sequence[IntervalRow]) -> _Plot:
    """As much room for names as the longest needs: beside the lines up to half of the picture, above them up
    to the numbers."""
    longest = max((int(len(row.name) * (_BOLD if row.strong else 1.0)) for row in rows), default=0)
    if _above(shape):
        room = shape.text_x - 3.0 * _LETTER - _LETTER * max((len(row.text) for row in rows), default=0)
        return dataclasses.replace(shape, longest=int(room / _LETTER))
    left = min(max(shape.left, _LETTER * longest + _GAP), shape.width / 2.0)
    return dataclasses.replace(shape, left=left, name_x=left - _GAP, longest=int((left - _GAP) / _LETTER))


def _above(shape: _Plot) -> bool:
    """Whether names and numbers stand above their lines."""
    return shape.name_anchor == "start"


def _placed(row: IntervalRow, at: Callable[[float | None], float | None], shape: _Plot, number: int) -> _Row:
    found = row.found
    known = found.value is not None and found.low is not None and found.high is not None
    top, above = shape.top + shape.step * number, _above(shape)
    return _Row(
        name=shortened(row.name, shape.longest),
        text=row.text,
        tone=row.tone,
        y=top + shape.step * (0.72 if above else 0.5),
        text_y=top + (14.0 if above else shape.step * 0.5 + 4.5),
        at=at(found.value),
        low=at(found.low) if known else None,
        high=at(found.high) if known else None,
        beside=at(row.beside),
    )


def _domain(rows: Sequence[IntervalRow], axis: Axis) -> tuple[float, float]:
    """Wide enough for every end and every upright line."""
    ends = [end for row in rows for end in (row.found.value, row.found.low, row.found.high, row.beside)]
    ends += [axis.full, axis.dashed, axis.low, axis.high, *(axis.band or ())]
    known = [end for end in ends if end is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = _ROOM * (high - low) or 1.0
    return low - room * (low != axis.low), high + room * (high != axis.high)
