"""Pictures of values with their intervals and of two axes, and how the values of a metric are written.

Python places every mark in pixels, `plots.html` draws, the style sheet colours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judgecal.records import Estimate
from judgecal.report.document import Grid, Hundred, Ladder, Outcome, Picture, Rung
from judgecal.report.html import plot
from judgecal.report.wording import DASH, count, count_of, difference, estimate, interval, percent, shortened
from judgecal.scale import Scale
from judgecal.stats.metrics import digits_of, metric_facts
from judgecal.stats.sample import as_scale

_NAMED = 3  # words whose shares are in a sentence
_ROOM = 0.06  # of an axis beyond the outermost end

# --- how values are written, and in which units


def in_points(share: Estimate) -> Estimate:
    """A share, or a difference of shares, in points of 100."""
    return _times(share, 100.0)


def _times(value: Estimate, factor: float) -> Estimate:
    ends = (value.value, value.low, value.high)
    middle, low, high = (None if end is None else factor * end for end in ends)
    return dataclasses.replace(value, value=middle, low=low, high=high)


def complement(share: Estimate) -> Estimate:
    """Return the Estimate of 1 less a share, given the share as an Estimate."""
    ends = (share.value, share.high, share.low)
    value, low, high = (None if end is None else 1.0 - end for end in ends)
    return dataclasses.replace(share, value=value, low=low, high=high)


def in_units(value: Estimate, metric: str) -> Estimate:
    """The value of a metric as an axis has it: a share in points of 100, else as it is."""
    return in_points(value) if metric_facts(metric).unit == "share" else value


def axis_of(metric: str) -> str:
    """The title of a metric's axis."""
    return f"{metric}{', %' * (metric_facts(metric).unit == 'share')}"


def metric_text(
    value: Estimate | None, metric: str, unit: Scale | str, *, on: Scale | str | None = None
) -> str:
    """Write an Estimate (or None) as text with its interval, given the metric's name and a Scale.

    `unit` is the scale that it is in units of, `on` the one in whose units it is to be written.
    """
    kind = metric_facts(metric).unit
    if value is None or kind == "coefficient":
        return estimate(value)
    if kind == "share":
        return in_percent(value)
    shown = as_scale(on or unit)
    return estimate(_times(value, shown.span / as_scale(unit).span), digits_of(metric, shown))


def change_of(change: Estimate | None, metric: str, unit: Scale | str) -> str:
    """Write a change (Estimate or None) as text, given the metric's name and a Scale; a share in points."""
    if change is not None and change.value is not None and metric_facts(metric).unit == "share":
        return f"{change_in_points(change)} points"
    return difference(change, digits_of(metric, unit))


def points_text(share: Estimate | None, digits: int = 1) -> str:
    """A share with its interval in points of 100: `84.9 [82.3, 87.0]`; a dash without one."""
    return DASH if share is None else estimate(in_points(share), digits)


def change_in_points(change: Estimate | None) -> str:
    """A difference of shares with its interval in points of 100: `+2.5 [-1.5, +6.6]`."""
    return DASH if change is None else difference(in_points(change), 1)


def in_percent(share: Estimate) -> str:
    """A share with its interval in percent; a dash where it has no value."""
    return DASH if share.value is None else f"{points_text(share)}%"


def word_shares_text(shares: Mapping[str, Estimate]) -> str:
    """Write a mapping, word -> Estimate of its share, as text: `Of 1,200 rows 62.0% are "refund"`.

    `shares` is word -> share of the rows that have a verdict; there is one word at least.
    """
    first, more = list(shares.items())[:_NAMED], len(shares) - _NAMED
    parts = [f'{in_percent(share)} {"are " * (not at)}"{word}"' for at, (word, share) in enumerate(first)]
    if more > 0:
        parts.append(f"{count_of(more, 'other word')} make up the rest")
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"Of {count(first[0][1].n)} rows {listed}"


# --- axes


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis in pixels, and its number."""

    at: float
    text: str


def place(value: float, low: float, high: float, begin: float, end: float) -> float:
    """The pixel of a value on an axis from `low` to `high`."""
    return round(begin + (value - low) / (high - low) * (end - begin), 1)


def ticks(low: float, high: float, begin: float, end: float, *, most: int = 7) -> list[Tick]:
    """Return a list of Ticks at round numbers from low to high, placed on an axis from begin to end."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1.0, 2.0, 5.0, 10.0) if power * nice >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [Tick(place(n * step, low, high, begin, end), f"{n * step:.6g}") for n in range(first, last + 1)]


# --- values with their intervals, a line each


@dataclass(frozen=True, slots=True)
class Axis:
    """What the lines stand on."""

    title: str  # quantity and unit
    full: float | None = None  # drawn as an upright line: what a value is held against, such as 0
    dashed: float | None = None  # drawn as a dashed one: a margin
    low: float | None = None  # what the axis reaches at least
    high: float | None = None
    free: Rung | None = None  # a zone up to what it reaches
    people: Rung | None = None  # a zone from what they reach on


def metric_row(
    name: str, value: Estimate, metric: str, unit: Scale | str, *, strong: bool = False, hollow: bool = False
) -> Rung:
    """Return a picture's Rung from a name, an Estimate, the metric's name and a Scale (`unit`)."""
    return Rung(name, in_units(value, metric), metric_text(value, metric, unit), strong, hollow)


def change_row(name: str, change: Estimate, metric: str, unit: Scale | str, *, strong: bool) -> Rung:
    """Return a Rung from a name, a change (Estimate), a metric's name, a Scale and whether it is `strong`."""
    text = change_of(change, metric, unit)
    return Rung(name, in_units(change, metric), text, strong, hollow=not strong)


def share_row(name: str, share: Estimate, *, strong: bool = False) -> Rung:
    """A picture's row for a share, in percent."""
    return Rung(name, in_points(share), in_percent(share), strong)


def change_picture(
    changes: Sequence[tuple[str, Estimate, bool]], metric: str, *, unit: Scale | str, margin: float
) -> Picture:
    """Draw a Picture: (name, Estimate, whether it decides) changes, a metric's name, a Scale and a margin."""
    facts = metric_facts(metric)
    share = facts.unit == "share"
    rows = [change_row(name, change, metric, unit, strong=strong) for name, change, strong in changes]
    dashed = (margin if facts.direction == "less" else -margin) * (100.0 if share else 1.0)
    return interval_picture(rows, Axis(f"change of {metric}{', points' * share}", full=0.0, dashed=dashed))


def interval_picture(
    rows: Sequence[Rung],
    axis: Axis,
    *,
    title: str = "",
    numbers: Grid | None = None,
    short: bool = False,
    note: str = "",
) -> Picture:
    """Return a Picture that draws Rungs with their intervals on an Axis."""
    zones = (_free(axis), _reached(axis.people))
    return Picture(
        draw=lambda: _drawn(rows, axis),
        says="; ".join(filter(None, (*(f"{row.name}: {row.text}" for row in rows), *zones))),
        title=title,
        numbers=numbers,
        short=short,
        note=note,
    )


def ladder_picture(ladder: Ladder, title: str, *, note: str = "") -> Picture:
    """Return a Picture that draws an agreement Ladder under a title."""
    axis = Axis(ladder.title, low=ladder.below, free=ladder.free, people=ladder.people)
    return dataclasses.replace(interval_picture(ladder.rungs, axis, title=title, note=note), ladder=ladder)


_WIDTH, _LEFT, _ZONES = 712, 130.0, 24.0  # of the picture, of the lines, the height of the zones' names
_STEPS = (36.0, 26.0)  # pixels from line to line: of a few, of many
_TOP, _FEW = 4.0, 6
_LETTER, _WIDER_LETTER = 6.2, 7.6  # pixels of a letter of a number and of a name, on average
_GAP = 20.0  # between a name and its line
_BOLD = 1.2  # how much wider letters are in bold


def _drawn(rows: Sequence[Rung], axis: Axis) -> str:
    """The lines as SVG; their axis is wide enough for every end and every upright line.

    Names beside the lines have up to half of the picture.
    """
    ends = [end for row in rows for end in (row.value.value, row.value.low, row.value.high, row.beside)]
    zones = [zone.value for zone in (axis.free, axis.people) if zone]
    ends += [
        axis.full,
        axis.dashed,
        axis.low,
        axis.high,
        *(end for zone in zones for end in (zone.value, zone.low, zone.high)),
    ]
    marks = [end for end in ends if end is not None]
    low, high = min(marks, default=0.0), max(marks, default=1.0)
    room = _ROOM * (high - low) or 1.0
    low, high = low - room * (low != axis.low), high + room * (high != axis.high)
    texts = [len(row.text) * (_BOLD if row.strong else 1.0) for row in rows]
    longest = int(max([*texts, len(_reached(axis.people))], default=0))
    right = _WIDTH - 2.0 - max(_WIDER_LETTER * longest, 40.0) - 6.0
    letters = max((int(len(row.name) * (_BOLD if row.strong else 1.0)) for row in rows), default=0)
    left = min(max(_LEFT, _WIDER_LETTER * letters + _GAP), _WIDTH / 2.0)
    step, first = _STEPS[len(rows) > _FEW], _TOP + _ZONES * bool(zones)

    def at(value: float | None) -> float | None:
        return None if value is None else place(value, low, high, left, right)

    lines = []
    for number, row in enumerate(rows):
        top, value = first + step * number, row.value
        bounded = value.value is not None and value.low is not None and value.high is not None
        tones = {"strong": row.strong, "hollow": row.hollow, "plain": True}
        lines.append(
            {
                "name": shortened(row.name, int((left - _GAP) / _WIDER_LETTER + 1e-6)),
                "text": row.text,
                "show": row.show,
                "tone": next(tone for tone, is_so in tones.items() if is_so),
                "y": top + step * 0.5,
                "text_y": top + step * 0.5 + 4.5,
                "at": at(value.value),
                "low": at(value.low) if bounded else None,
                "high": at(value.high) if bounded else None,
                "beside": at(row.beside),
            }
        )
    named = shortened(_free(axis), int((right - left) / _LETTER))
    people_at = [at(axis.people.value.low), at(axis.people.value.value)] if axis.people else []
    return plot(
        "intervals",
        {
            "width": _WIDTH,
            "left": left,
            "right": right,
            "top": _TOP,
            "bottom": first + step * len(rows) + 4.0,
            "name_x": left - _GAP,
            "text_x": right + 10.0,
            "title": axis.title,
            "ticks": ticks(low, high, left, right),
            "rows": lines,
            "free": (at(axis.free.value.value), named) if axis.free else None,
            "people": ([x for x in people_at if x is not None], _reached(axis.people)),
            "live": any(row.show for row in rows),
            "full": at(axis.full),
            "dashed": at(axis.dashed),
        },
    )


def _free(axis: Axis) -> str:
    return f"free: {_reached(axis.free, ' reaches ')}" if axis.free else ""


def _reached(zone: Rung | None, between: str = ": ") -> str:
    return f"{zone.name}{between}{zone.text}" if zone else ""


# --- a hundred answers


def hundred(
    judge: str,
    right: float,
    false_fail: Estimate,
    false_pass: Estimate,
    *,
    note: str = "",
    shown: bool = False,
) -> Hundred:
    """Return Hundred from a judge's name, the share right, and Estimates of false fails and false passes.

    Args:
        right: the share that people pass, 0..1.
        false_fail: of what people pass, the share that the judge fails.
        false_pass: of what people fail, the share that it passes.
        shown: whether the page's explorer has these answers.
    """
    rejected, through = (rate.value or 0.0 for rate in (false_fail, false_pass))

    def often(rate: Estimate, what: str) -> str:
        return (
            ""
            if rate.value is None
            else f"{percent(rate.value)} of {what} ones{interval(in_points(rate), 0)}"
        )

    outcomes = [
        Outcome("caught", (1.0 - right) * (1.0 - through), "bad, caught", "", "case:agree\nperson:fail"),
        Outcome(
            "through",
            (1.0 - right) * through,
            "bad, let through",
            often(false_pass, "bad"),
            "case:false pass",
        ),
        Outcome("rejected", right * rejected, "good, rejected", often(false_fail, "good"), "case:false fail"),
        Outcome("passed", right * (1.0 - rejected), "good, passed", "", "case:agree\nperson:pass"),
    ]
    if not shown:
        outcomes = [dataclasses.replace(outcome, show="") for outcome in outcomes]
    return Hundred(f"What {judge} does with 100 answers like these", outcomes, note)
