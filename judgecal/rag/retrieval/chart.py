"""The charts of `retrieval`: rank histogram, recall over what is handed on, windows beside chance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from judgecal.rag.retrieval import RetrievalResult
from judgecal.report.charts import Frame, Mark, Tick, apart
from judgecal.report.html import plot, source

Chart = Callable[[RetrievalResult, int], str]

WIDE, NARROW = 660, 340
"""Pixels of a chart on a page, and on a phone."""

_LABELLED = (1, 3, 5, 10, 20, 50, 100)
_SHARE_FROM = 36.0  # pixels of a bar that has room for a share with a digit behind the point
_VARIABLE = re.compile(r"(--[a-z-]+): ([^;]+);")


def chart_file(result: RetrievalResult) -> str:
    """All charts as one SVG that stands alone, in the colours of the page by daylight."""
    charts = [
        ("Rank of the reference document", rank_chart),
        ("How many documents to hand on", hand_on_chart),
    ]
    charts += [("Windows of consecutive questions", window_chart)] if result.spread else []
    sheet = source("page.css")
    colours = dict(_VARIABLE.findall(sheet.partition("}")[0]))
    rules = "\n".join(line for line in sheet.splitlines() if line.startswith(".plot"))
    style = re.sub(r"var\((--[a-z-]+)\)", lambda found: colours[found[1]], rules)
    return plot("sheet", {"charts": [(title, draw(result, WIDE)) for title, draw in charts], "style": style})


def rank_chart(result: RetrievalResult, width: int) -> str:
    """How many questions have their reference document at which rank; those of the first k in the accent."""
    bins, total = result.histogram, sum(one.n for one in result.histogram)
    most = max(one.n for one in bins)
    frame = Frame(
        width, (0.0, len(bins)), (0.0, max(most, 1) * 1.02), ("rank of the reference document", "questions")
    )
    bar = frame.x(1.0) - frame.x(0.0)
    digits = 1 if bar >= _SHARE_FROM else 0
    marks, shares = [], []
    for number, one in enumerate(bins):
        inside = number < result.k and one.ranks != "not found"
        ends = (frame.x(number + 0.12), frame.y(one.n), frame.x(number + 0.88), frame.bottom)
        marks.append(Mark("bar", *ends, tone="accent" if inside else "warm"))
        shares.append(Tick(frame.x(number + 0.5), f"{100 * one.n / total:.{digits}f}%"))
    heights = {frame.x(number + 0.5): frame.y(one.n) for number, one in enumerate(bins)}
    marks += [Mark("text", one.at, heights[one.at] - 5.0, text=one.text) for one in apart(shares)]
    ranks = [Tick(frame.x(n + 0.5), one.ranks.replace("not found", "none")) for n, one in enumerate(bins)]
    return frame.drawn(marks, apart(ranks))


def hand_on_chart(result: RetrievalResult, width: int) -> str:
    """Recall against the tokens handed on, against k where those are not known; with its interval as a
    band."""
    points = result.hand_on
    by_tokens = all(one.tokens for one in points)
    at = [float(one.tokens or 0.0) if by_tokens else float(one.k) for one in points]
    known = [end for one in points for end in (one.recall.value, one.recall.low) if end is not None]
    title = f"{'tokens handed on, on average' if by_tokens else 'documents handed on'} (log scale)"
    ends = (0.85 * min(at), 1.18 * max(at))
    frame = Frame(width, ends, (min(known, default=0.0) - 0.02, 1.0), (title, "recall"), log=True)
    dots = [(frame.x(x), frame.y(one.recall.value or 0.0), one) for x, one in zip(at, points, strict=True)]
    marks = list(_band(frame, result, at))
    marks.append(Mark("path", text="M" + "L".join(f"{x} {y}" for x, y, _ in dots), tone="map"))
    marks += [Mark("dot", x, y, tone="warm" if one.k == result.k else "accent") for x, y, one in dots]
    named = apart(Tick(x, f"k={one.k}") for x, _, one in dots if one.k in (*_LABELLED, result.k))
    below = {x: y for x, y, _ in dots}
    marks += [Mark("text", one.at, below[one.at] + 18.0, text=one.text) for one in named]
    return frame.drawn(marks)


def _band(frame: Frame, result: RetrievalResult, at: list[float]) -> Iterator[Mark]:
    """The interval of the recall; none where one of the points has none."""
    ends = [(one.recall.low, one.recall.high) for one in result.hand_on]
    if any(low is None or high is None for low, high in ends):
        return
    course = [(x, high or 0.0) for x, (_, high) in zip(at, ends, strict=True)]
    course += [(x, low or 0.0) for x, (low, _) in reversed(list(zip(at, ends, strict=True)))]
    corners = (f"{frame.x(x)} {frame.y(min(end, 1.0))}" for x, end in course)
    yield Mark("path", text=f"M{'L'.join(corners)}Z", tone="area")


def window_chart(result: RetrievalResult, width: int) -> str:
    """The windows' scores, each beside where 95% of the random draws lie."""
    windows = [
        (int(row.name.partition("_")[0]), row.score, row.chance, row.outside is not None)
        for row in result.windows
        if row.chance is not None and row.score is not None
    ]
    ends = [end for _, score, chance, _ in windows for end in (score, *chance)]
    low, high, last = min(ends), max(ends), max(start for start, *_ in windows)
    room, side = 0.06 * (high - low) or 0.05, 0.04 * last or 1.0
    titles = ("first question of the window", "mean score; grey: 95% of random draws")
    frame = Frame(width, (-side, last + side), (low - room, high + room), titles)
    half = max(0.5, min(7.0, 0.3 * (frame.right - frame.left) / len(windows)))
    marks = []
    for start, score, chance, outside in windows:
        x = frame.x(start)
        marks.append(Mark("bar", x - half, frame.y(chance[1]), x + half, frame.y(chance[0]), tone="chance"))
        marks.append(Mark("dot", x, frame.y(score), tone="warm" if outside else "accent"))
    return frame.drawn(marks)
