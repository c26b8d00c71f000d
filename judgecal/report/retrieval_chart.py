"""The charts of `retrieval`: rank histogram, recall over what is handed on, windows beside chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judgecal.report.charts import ACCENT, LINE, WARM, drawn, rows_of
from judgecal.retrieval import RetrievalResult

Chart = Callable[[RetrievalResult], Any]

_WIDTH, _NARROW, _HEIGHT = 620, 300, 220
_LABELLED = (1, 3, 5, 10, 20, 50, 100)
_SCALE = 2.0  # pixels of a PNG to a point


def drawing(chart: Chart, result: RetrievalResult, *, narrow: bool = False) -> Callable[[], str]:
    """Gives the chart as SVG for a page when that is made; `narrow` for a phone."""

    def draw() -> str:
        made = chart(result)
        return drawn(made.properties(width=_NARROW).configure_axisX(labelFontSize=9.5) if narrow else made)

    return draw


def chart_file(result: RetrievalResult, ending: str) -> bytes:
    """All charts as one picture, .svg or .png."""
    import altair as alt
    import vl_convert

    charts = [
        rank_chart(result).properties(title="Rank of the reference document"),
        hand_on_chart(result).properties(title="How many documents to hand on"),
    ]
    charts += [window_chart(result).properties(title="Windows of consecutive questions")] if result.spread else []
    together = alt.vconcat(*charts)
    spec = together.configure_view(strokeWidth=0).properties(background="white").to_dict()
    if ending == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=_SCALE))
    return str(vl_convert.vegalite_to_svg(spec)).encode("utf-8")


def rank_chart(result: RetrievalResult) -> Any:
    """How many questions have their reference document at which rank; those of the first k in the accent."""
    import altair as alt

    total = sum(one.n for one in result.histogram)
    rows = [
        {
            "ranks": one.ranks.replace("not found", "none"),
            "n": one.n,
            "share": f"{100 * one.n / total:.1f}%",
            "inside": place < result.k and one.ranks != "not found",
        }
        for place, one in enumerate(result.histogram)
    ]
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X("ranks:N", sort=None, title="rank of the reference document", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("n:Q", title="questions"),
    )
    bars = base.mark_bar().encode(color=alt.condition("datum.inside", alt.value(ACCENT), alt.value(WARM)))
    shares = base.mark_text(dy=-6, fontSize=11).encode(text="share:N")
    return (bars + shares).properties(width=_WIDTH, height=_HEIGHT)


def hand_on_chart(result: RetrievalResult) -> Any:
    """Recall against the tokens handed on; against k where tokens are not known."""
    import altair as alt

    k = result.k
    by_tokens = all(one.tokens for one in result.hand_on)
    rows = [
        {
            "k": one.k,
            "at": one.tokens if by_tokens else one.k,
            "name": f"k={one.k}" if one.k in (*_LABELLED, k) else "",
            "recall": one.recall.value,
            "low": one.recall.low,
            "high": one.recall.high,
        }
        for one in result.hand_on
    ]
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X(
            "at:Q",
            scale=alt.Scale(type="log", nice=False, padding=20),
            axis=alt.Axis(labelOverlap="greedy", labelSeparation=10),
            title=f"{'tokens handed on, on average' if by_tokens else 'documents handed on'} (log scale)",
        )
    )
    recall = alt.Y("recall:Q", scale=alt.Scale(zero=False, domainMax=1.0), title="recall")
    chosen = alt.condition(f"datum.k == {k}", alt.value(WARM), alt.value(ACCENT))
    layers = [
        base.mark_line(color=ACCENT).encode(y=recall),
        base.mark_point(filled=True, size=50, opacity=1.0).encode(y=recall, color=chosen),
        base.mark_text(dy=14, dx=14, fontSize=11).encode(y=recall, text="name:N"),
    ]
    if all(one.recall.low is not None for one in result.hand_on):
        band = base.mark_area(color=ACCENT, opacity=0.15)
        layers.insert(0, band.encode(y=alt.Y("low:Q", title="recall"), y2="high:Q"))
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)


def window_chart(result: RetrievalResult) -> Any:
    """The windows' scores, each beside where 95% of the random draws lie."""
    import altair as alt

    rows = [
        {
            "start": int(row.name.partition("_")[0]),
            "score": row.score,
            "low": row.chance[0],
            "high": row.chance[1],
            "outside": row.outside is not None,
        }
        for row in result.windows
        if row.chance is not None
    ]
    base = alt.Chart(rows_of(rows)).encode(
        x=alt.X("start:Q", scale=alt.Scale(nice=False, padding=14), title="first question of the window")
    )
    width = max(1.0, min(14.0, 0.6 * _WIDTH / max(len(rows), 1)))
    band = base.mark_rule(color=LINE, strokeWidth=width).encode(
        y=alt.Y("low:Q", scale=alt.Scale(zero=False), title="mean score; grey: 95% of random draws"), y2="high:Q"
    )
    points = base.mark_point(filled=True, size=55, opacity=1.0).encode(
        y=alt.Y("score:Q", scale=alt.Scale(zero=False)),
        color=alt.condition("datum.outside", alt.value(WARM), alt.value(ACCENT)),
    )
    return (band + points).properties(width=_WIDTH, height=_HEIGHT)
