"""The pictures of a document about judges: each judge's small ones, which share their axes, and the losses of all."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.experiment.verdicts import JudgeShape
from judgecal.report import numbers
from judgecal.report.charts import ACCENT, INK, LINE, SOFT, drawn, rows_of, shortened
from judgecal.report.intervals import Style, Words, axes, layered, lines_and_points, uprights, words

_WIDTH = 210
_JITTER = 0.025  # of the range, to either side
_NAME = 30  # characters of a name beside its line
_ROOM = 1.25  # of the axis beyond the widest judge
_LEFT = 3.0  # times as far to the left at most: people may be better by more than judges differ


def matrix(cells: Sequence[tuple[str, str, float | None]]) -> str:
    """Agreement by prompt (rows) and model (columns), given as (prompt, model, value): the darker, the better."""
    import altair as alt

    known = [value for _, _, value in cells if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    rows = [
        {"prompt": prompt, "model": shortened(model, 20), "shade": _shade(one, low, high), "text": numbers.plain(one)}
        for prompt, model, one in cells
    ]
    models, prompts = (list(dict.fromkeys(str(row[name]) for row in rows)) for name in ("model", "prompt"))
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X(
            "model:N", sort=models, title=None, axis=alt.Axis(orient="top", labelAngle=-30, domain=False, ticks=False)
        ),
        y=alt.Y("prompt:N", sort=prompts, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=140)),
    )
    squares = base.mark_rect(color=ACCENT, cornerRadius=3).encode(
        opacity=alt.Opacity("shade:Q", scale=None, legend=None)
    )
    texts = base.mark_text(color=INK, fontSize=12).encode(text="text:N")
    return drawn((squares + texts).properties(width=76 * len(models), height=38 * len(prompts)))


def _shade(value: float | None, low: float, high: float) -> float:
    """Light enough that the number in it can be read in either theme."""
    if value is None:
        return 0.0
    return 0.08 + 0.42 * ((value - low) / (high - low) if high > low else 0.5)


def differences(shape: JudgeShape, *, most: float) -> str:
    """How far verdicts lie from labels, in percent of the range: left of 0 too low, right of it too high.

    Args:
        shape: one judge's.
        most: the highest share of any judge, so that all share one axis.
    """
    import altair as alt

    rows = [{"from": at - 4.4, "to": at + 4.4, "share": 100.0 * share, "base": 0.0} for at, share in shape.differences]
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[-106, 106], nice=False),
        axis=alt.Axis(title="verdict − label, % of the range", values=[-100, -50, 0, 50, 100], grid=False),
    )
    y = alt.Y(
        "share:Q",
        scale=alt.Scale(domain=[0, 100.0 * most], nice=False),
        axis=alt.Axis(title=None, tickCount=3, labelExpr="datum.value + '%'"),
    )
    bars = alt.Chart(rows_of(rows)).mark_rect(color=INK, opacity=0.7).encode(x=x, x2="to:Q", y=y, y2="base:Q")
    zero = alt.Chart(rows_of([{"from": 0.0}])).mark_rule(color=LINE).encode(x=x)
    mean = [] if shape.bias is None else [{"from": shape.bias}]
    bias = alt.Chart(rows_of(mean)).mark_rule(color=ACCENT, strokeWidth=2).encode(x=x)
    return drawn((zero + bars + bias).properties(width=_WIDTH, height=110))


def points(shape: JudgeShape) -> str:
    """Verdict against label, jittered so that equal points do not hide each other; dashed where people pass."""
    import altair as alt

    low, high = shape.low, shape.high
    draw = random.Random(0)  # the same jitter in every run
    shift = _JITTER * (high - low) * (2.5 if len({label for label, _ in shape.points}) == 2 else 1.0)
    rows = [
        {"label": label + draw.uniform(-shift, shift), "verdict": verdict + draw.uniform(-shift, shift)}
        for label, verdict in shape.points
    ]
    room = 0.12 * (high - low)
    scale = alt.Scale(domain=[low - room, high + room], nice=False)
    ends: dict[str, Any] = {"labelExpr": "datum.value < 0.5 ? 'fail' : 'pass'"} if shape.binary else {}
    ticks: dict[str, Any] = {"values": [low, high] if ends else [low, (low + high) / 2.0, high], "grid": False, **ends}
    x = alt.X("label:Q", scale=scale, axis=alt.Axis(title="people's label", **ticks))
    y = alt.Y("verdict:Q", scale=scale, axis=alt.Axis(title="verdict", **ticks))
    dots = alt.Chart(rows_of(rows)).mark_circle(color=INK, size=16, opacity=0.35).encode(x=x, y=y)
    ends_of_scale = [{"label": low, "verdict": low}, {"label": high, "verdict": high}]
    equal = alt.Chart(rows_of(ends_of_scale)).mark_line(color=LINE).encode(x=x, y=y)
    return drawn(alt.layer(equal, dots, *_marks(shape.mark, x, y)).properties(width=_WIDTH, height=_WIDTH))


def _marks(mark: float | None, x: Any, y: Any) -> list[Any]:
    """The pass mark on either axis; the top left of the four fields holds the false passes."""
    import altair as alt

    if mark is None:
        return []
    dashed: dict[str, Any] = {"color": ACCENT, "strokeDash": [4, 3]}
    across = alt.Chart(rows_of([{"label": mark}])).mark_rule(**dashed).encode(x=x)
    along = alt.Chart(rows_of([{"verdict": mark}])).mark_rule(**dashed).encode(y=y)
    return [across, along]


def kappa_over_cut(shape: JudgeShape) -> str:
    """Kappa with the people as the judge's cut moves; dashed at the people's mark, which is the one that counts."""
    import altair as alt

    rows = [{"cut": cut, "kappa": kappa} for cut, kappa in shape.kappa_over_cut if kappa is not None]
    low, high = shape.low, shape.high
    x = alt.X(
        "cut:Q",
        scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(title="judge's cut", values=[low, (low + high) / 2.0, high], grid=False),
    )
    y = alt.Y(
        "kappa:Q",
        scale=alt.Scale(domain=[min(0.0, *(r["kappa"] for r in rows), 0.0), 1.0]),
        axis=alt.Axis(title="kappa", tickCount=3),
    )
    line = alt.Chart(rows_of(rows)).mark_line(color=INK, interpolate="step-before").encode(x=x, y=y)
    mark = alt.Chart(rows_of([{"cut": shape.mark}])).mark_rule(color=ACCENT, strokeDash=[4, 3]).encode(x=x)
    return drawn((line + mark).properties(width=_WIDTH, height=130))


def calibration(shape: JudgeShape) -> str:
    """The people's mean label of verdicts of about one height, with intervals, and the map from verdict to label."""
    import altair as alt

    low, high = shape.low, shape.high
    rows = [
        {"verdict": one.verdict, "label": one.label, "low": one.low, "high": one.high, "n": one.n}
        for one in shape.calibration
    ]
    scale = alt.Scale(domain=[low, high], nice=False, padding=8)
    ticks = [low, (low + high) / 2.0, high]
    x = alt.X("verdict:Q", scale=scale, axis=alt.Axis(title="verdict", values=ticks, grid=False))
    people = alt.Axis(title="people's label", values=ticks)
    y = alt.Y("label:Q", scale=scale, axis=people)
    ends = [{"verdict": at, "label": at} for at in (low, high)]
    steps = [{"verdict": at, "label": label} for at, label in shape.calibration_map]
    steps += [{"verdict": high, "label": steps[-1]["label"]}] if steps else []
    layers = [
        alt.Chart(rows_of(ends)).mark_line(color=SOFT, strokeDash=[2, 3], strokeWidth=1).encode(x=x, y=y),
        alt.Chart(rows_of(steps)).mark_line(color=ACCENT, interpolate="step-after").encode(x=x, y=y),
        alt.Chart(rows_of([row for row in rows if row["low"] is not None]))
        .mark_rule(color=INK)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, axis=people), y2="high:Q"),
        alt.Chart(rows_of(rows))
        .mark_circle(color=INK, opacity=1.0)
        .encode(x=x, y=y, size=alt.Size("n:Q", scale=alt.Scale(range=[20, 160]), legend=None)),
    ]
    return drawn(alt.layer(*layers).properties(width=_WIDTH, height=150))


# --- what each judge loses


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One line of the plot; values are shares, drawn as points.

    Attributes:
        name, beside: what stands before the line, and behind it (the price).
        tone: `chosen`, `judge`, `floor` or `person`.
        loss, low, high: against the best judge; None where not known.
        reason: why there is no interval.
    """

    name: str
    tone: str
    loss: float | None
    low: float | None = None
    high: float | None = None
    beside: str = ""
    reason: str | None = None

    @property
    def text(self) -> str:
        """The loss with its interval, in points."""
        if self.loss is None:
            return numbers.DASH
        ends = (self.low, self.high)
        if None in ends:
            return numbers.points(self.loss)
        return f"{numbers.points(self.loss)} [{', '.join(numbers.points(end) for end in ends)}]"


@dataclass(frozen=True, slots=True)
class _Layout:
    """Pixels. On a narrow page the name stands above its line, and so does what stood beside it."""

    width: int
    step: int
    above: bool

    def texts(self) -> list[Words]:
        """What is written on each line."""
        if self.above:
            return [
                ("name", "left", 0.0, -17.0, INK),
                ("both", "right", float(self.width), -17.0, SOFT),
                ("heading", "left", 0.0, -20.0, SOFT),
            ]
        return [
            ("heading", "right", -18.0, 0.0, SOFT),
            ("name", "right", -18.0, 0.0, INK),
            ("text", "right", self.width + 150.0, 0.0, INK),
            ("beside", "right", self.width + 260.0, 0.0, SOFT),
        ]


_WIDE, _NARROW = _Layout(430, 30, False), _Layout(320, 50, True)


def forest(rows: Sequence[ForestRow], *, margin: float, narrow: bool = False) -> str:
    """The picture as SVG; wide, or narrow for a phone."""
    layout = _NARROW if narrow else _WIDE
    low, high = _domain(rows, margin)
    places, headings = _places(rows, layout)
    height, step = places[-1] + layout.step, layout.step
    x, begins, y = axes("points lost against the best judge", (low, high), height, narrow=narrow)
    data = [_placed(row, place, layout, low, high) for row, place in zip(rows, places, strict=True)]
    pieces = [(top + 0.58 * step, top + 0.95 * step) for top in places] if narrow else [(0.6 * step, height)]
    marks = uprights(0.0, 100.0 * margin, pieces, x, y)
    for tone, style in _TONES.items():
        marks += lines_and_points([row for row in data if row["tone"] == tone], style, x, begins, y)
    return layered([*marks, *words([*data, *headings], layout.texts(), y)], layout.width, height, narrow=narrow)


_HEADINGS = {"judge": "", "floor": "the floor", "person": "people, like for like"}


def _places(rows: Sequence[ForestRow], layout: _Layout) -> tuple[list[float], list[dict[str, Any]]]:
    """The top of each row in pixels, and the heading of each kind of row with the place where it stands."""
    at, before = (0.0 if layout.above else 1.0) * layout.step, ""
    places, headings = [], []
    if not layout.above:
        headings.append({**_HEADING, "y": 0.3 * layout.step, "text": "points lost", "beside": "USD per 1,000"})
    for row in rows:
        kind = "judge" if row.tone == "chosen" else row.tone
        if before and kind != before:
            at += 0.9 * layout.step
            dy = -0.5 if not layout.above else 0.1
            headings.append({**_HEADING, "y": at + dy * layout.step + 6.0, "heading": _HEADINGS[kind]})
        places.append(at)
        at, before = at + layout.step, kind
    return places, headings


_HEADING = {"name": "", "text": "", "beside": "", "both": "", "heading": ""}


_TONES: Mapping[str, Style] = {
    "chosen": (ACCENT, "circle", True),
    "judge": (INK, "circle", True),
    "floor": (SOFT, "square", False),
    "person": (SOFT, "diamond", True),
}


def _placed(row: ForestRow, place: float, layout: _Layout, low: float, high: float) -> dict[str, Any]:
    """A row in points and pixels, cut to the axis; what lies beyond it is an arrow at its end."""

    def cut(value: float | None) -> float | None:
        return None if value is None else min(max(100.0 * value, low), high)

    at, beyond = cut(row.loss), ""
    if row.loss is not None and at != 100.0 * row.loss:
        beyond = "▶" if 100.0 * row.loss > high else "◀"
    drawn_line = row.low is not None and row.high is not None and not beyond
    return {
        **_HEADING,
        "y": place + layout.step * (0.72 if layout.above else 0.5),
        "name": shortened(row.name, _NAME),
        "text": row.text,
        "beside": row.beside,
        "both": " · ".join(filter(None, (numbers.points(row.loss), row.beside))),
        "tone": row.tone,
        "at": at,
        "from": cut(row.low) if drawn_line else None,
        "to": cut(row.high) if drawn_line else None,
        "beyond": beyond,
    }


def _domain(rows: Sequence[ForestRow], margin: float) -> tuple[float, float]:
    """The axis in points: wide enough for every judge, not stretched by a floor or people far away."""
    ends = [end for row in rows if row.tone in ("chosen", "judge") for end in (row.loss, row.high) if end is not None]
    right = _ROOM * max(2.0 * margin, *ends, margin)
    lows = [end for row in rows for end in (row.loss, row.low) if end is not None]
    left = max(min([0.0, *lows]), -_LEFT * right)
    return 100.0 * (left - 0.04 * (right - left)), 100.0 * right
