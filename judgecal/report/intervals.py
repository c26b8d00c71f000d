"""Values with their intervals on one axis, a line each: how results of every kind show their numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.charts import place, shortened, ticks
from judgecal.report.document import Block, Paragraph, Picture, Table, table
from judgecal.report.html import plot
from judgecal.scale import Scale
from judgecal.stats.metrics import digits_of, metric_facts
from judgecal.stats.sample import as_scale

_NAMED = 3  # words whose shares are in a sentence
_ROOM = 0.06  # of the axis beyond the outermost end


# --- how values are written, and in which units


def in_points(share: Estimate) -> Estimate:
    """A share, or a difference of shares, in points of 100."""
    return _times(share, 100.0)


def _times(estimate: Estimate, factor: float) -> Estimate:
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = (None if end is None else factor * end for end in ends)
    return dataclasses.replace(estimate, value=value, low=low, high=high)


def in_units(estimate: Estimate, metric: str) -> Estimate:
    """The value of a metric as an axis has it: a share in points of 100, else as it is."""
    return in_points(estimate) if metric_facts(metric).unit == "share" else estimate


def axis_of(metric: str) -> str:
    """What stands at an axis of a metric."""
    return f"{metric}{', %' * (metric_facts(metric).unit == 'share')}"


def of_metric(
    estimate: Estimate | None, metric: str, unit: Scale | str, *, on: Scale | str | None = None
) -> str:
    """The value of a metric with its interval: a share in percent, else with the digits that it needs.

    `unit` is the scale that it is in units of, `on` the one in whose units it is to be written.
    """
    facts = metric_facts(metric)
    if estimate is None or facts.unit == "coefficient":
        return numbers.estimate(estimate)
    if facts.unit == "share":
        return in_percent(estimate)
    shown = as_scale(on or unit)
    return numbers.estimate(_times(estimate, shown.span / as_scale(unit).span), digits_of(metric, shown))


def change_of(change: Estimate | None, metric: str, unit: Scale | str) -> str:
    """A change of a metric with its interval: of a share in points of 100, else as `of_metric`."""
    if change is not None and change.value is not None and metric_facts(metric).unit == "share":
        return f"{numbers.difference(in_points(change), 1)} points"
    return numbers.difference(change, digits_of(metric, unit))


def in_percent(share: Estimate) -> str:
    """A share with its interval in percent; a dash where it has no value."""
    return numbers.DASH if share.value is None else f"{numbers.estimate(in_points(share), 1)}%"


def said_in_words(shares: Mapping[str, Estimate]) -> str:
    """`Of 1,200 answers 62.0% [59.0, 65.0] are "refund"`: the most frequent words, and how many more.

    `shares` is word -> share of the answers that have a verdict; there is one word at least.
    """
    first, more = list(shares.items())[:_NAMED], len(shares) - _NAMED
    parts = [f'{in_percent(share)} {"are " * (not at)}"{word}"' for at, (word, share) in enumerate(first)]
    if more > 0:
        parts.append(f"{numbers.count_of(more, 'other word')} make up the rest")
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"Of {numbers.count(first[0][1].n)} answers {listed}"


# --- pictures


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One line of the picture."""

    name: str
    value: Estimate  # in the units of the axis
    text: str  # behind the line, as `numbers` writes it
    strong: bool = False  # what the decision is about
    hollow: bool = False  # stands beside: drawn as an empty square
    beside: float | None = None  # a second value of the same thing on another footing: drawn as a diamond
    band: bool = False  # what the band of the axis shows


@dataclass(frozen=True, slots=True)
class Axis:
    """What the lines stand on."""

    title: str  # quantity and unit
    full: float | None = None  # drawn as an upright line: what a value is held against, such as 0
    dashed: float | None = None  # drawn as a dashed one: a margin
    low: float | None = None  # what the axis reaches at least
    high: float | None = None
    band: tuple[float, float] | None = None  # where values lie that the others are held against


def metric_row(
    name: str, value: Estimate, metric: str, unit: Scale | str, *, strong: bool = False, hollow: bool = False
) -> IntervalRow:
    """The value of a metric in the units of `axis_of`, written as `of_metric`."""
    return IntervalRow(name, in_units(value, metric), of_metric(value, metric, unit), strong, hollow)


def change_row(name: str, change: Estimate, metric: str, unit: Scale | str, *, strong: bool) -> IntervalRow:
    """A change of a metric; one that decides nothing is hollow."""
    text = change_of(change, metric, unit)
    return IntervalRow(name, in_units(change, metric), text, strong, hollow=not strong)


def share_row(name: str, share: Estimate, *, strong: bool) -> IntervalRow:
    """A share in percent; one from when the judge was locked is hollow."""
    return IntervalRow(name, in_points(share), in_percent(share), strong, hollow=name.endswith("lock time"))


def share_blocks(
    shares: Sequence[tuple[str, Estimate, bool]], axis: Axis, *, of: str = "", short: bool = False
) -> list[Block]:
    """Shares (name, 0..1, whether the decision is about it) on one axis, and why one has no value."""
    known = [row for row in shares if row[1].value is not None]
    cells = table(
        known,
        {
            "": lambda row: row[0],
            f"share{of}": lambda row: in_percent(row[1]),
            "level": lambda row: f"{row[1].level:.4g}",
            "n": lambda row: numbers.count(row[1].n),
            "unscored": lambda row: numbers.count(row[1].n_unscored),
        },
    )
    rows = [share_row(name, share, strong=strong) for name, share, strong in known]
    blocks: list[Block] = [interval_picture(rows, axis, numbers=cells, short=short)] if rows else []
    unknown = [(name, share.reason) for name, share, _ in shares if share.value is None]
    return blocks + [Paragraph(f"No number for {name}: {reason}.") for name, reason in unknown]


def change_picture(
    changes: Sequence[tuple[str, Estimate, bool]], metric: str, *, unit: Scale | str, margin: float
) -> Picture:
    """Changes of a metric (name, change, whether it decides) held against 0 and the loss that is allowed."""
    facts = metric_facts(metric)
    share = facts.unit == "share"
    rows = [change_row(name, change, metric, unit, strong=strong) for name, change, strong in changes]
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
    """The picture, wide and for a phone; `numbers` is the table behind it, which stands alone where short."""
    return Picture(
        draw=lambda: _drawn(rows, axis, _WIDE),
        says="; ".join(f"{row.name}: {row.text}" for row in rows),
        title=title,
        narrow=lambda: _drawn(rows, axis, _NARROW),
        numbers=numbers,
        short=short,
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where names, lines and numbers stand, in pixels; on a phone names and numbers are above their lines."""

    width: int
    left: float  # of the lines
    right: float
    step: float  # from line to line
    name_x: float
    text_x: float
    above: bool


_WIDE = _Shape(860, 236.0, 660.0, 26.0, 216.0, 684.0, above=False)
_NARROW = _Shape(340, 8.0, 332.0, 40.0, 2.0, 338.0, above=True)
_TOP = 4.0
_BAND = 3.0  # pixels of a band at least
_LETTER, _GAP = 7.6, 20.0  # pixels of a letter on average, and between a name and its line
_BOLD = 1.1  # how much wider letters are in bold


def _drawn(rows: Sequence[IntervalRow], axis: Axis, shape: _Shape) -> str:
    low, high = _domain(rows, axis)
    left, name_x, longest = _room_for_names(shape, rows)

    def at(value: float | None) -> float | None:
        return None if value is None else place(value, low, high, left, shape.right)

    lines = []
    for number, row in enumerate(rows):
        top, value = _TOP + shape.step * number, row.value
        known = value.value is not None and value.low is not None and value.high is not None
        lines.append(
            {
                "name": shortened(row.name, longest),
                "text": row.text,
                "tone": "strong"
                if row.strong
                else "hollow"
                if row.hollow
                else "people"
                if row.band
                else "plain",
                "y": top + shape.step * (0.72 if shape.above else 0.5),
                "text_y": top + (14.0 if shape.above else shape.step * 0.5 + 4.5),
                "at": at(value.value),
                "low": at(value.low) if known else None,
                "high": at(value.high) if known else None,
                "beside": at(row.beside),
            }
        )
    band = None
    if axis.band is not None:
        begin, end = (place(value, low, high, left, shape.right) for value in axis.band)
        band = (begin - max(0.0, (_BAND - (end - begin)) / 2.0), max(_BAND, round(end - begin, 1)))
    return plot(
        "intervals",
        {
            "width": shape.width,
            "left": left,
            "right": shape.right,
            "top": _TOP,
            "bottom": _TOP + shape.step * len(rows) + 4.0,
            "name_x": name_x,
            "name_anchor": "start" if shape.above else "end",
            "text_x": shape.text_x,
            "text_anchor": "end" if shape.above else "start",
            "title": axis.title,
            "ticks": ticks(low, high, left, shape.right),
            "rows": lines,
            "band": band,
            "full": at(axis.full),
            "dashed": at(axis.dashed),
        },
    )


def _room_for_names(shape: _Shape, rows: Sequence[IntervalRow]) -> tuple[float, float, int]:
    """Where lines begin, where names stand, and the characters of a name.

    Names beside the lines have up to half of the picture, those above them what the numbers leave.
    """
    if shape.above:
        room = shape.text_x - 3.0 * _LETTER - _LETTER * max((len(row.text) for row in rows), default=0)
        return shape.left, shape.name_x, int(room / _LETTER)
    longest = max((int(len(row.name) * (_BOLD if row.strong else 1.0)) for row in rows), default=0)
    left = min(max(shape.left, _LETTER * longest + _GAP), shape.width / 2.0)
    return left, left - _GAP, int((left - _GAP) / _LETTER)


def _domain(rows: Sequence[IntervalRow], axis: Axis) -> tuple[float, float]:
    """Wide enough for every end and every upright line."""
    ends = [end for row in rows for end in (row.value.value, row.value.low, row.value.high, row.beside)]
    ends += [axis.full, axis.dashed, axis.low, axis.high, *(axis.band or ())]
    known = [end for end in ends if end is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = _ROOM * (high - low) or 1.0
    return low - room * (low != axis.low), high + room * (high != axis.high)
