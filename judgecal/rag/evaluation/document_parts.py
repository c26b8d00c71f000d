"""What lies behind the numbers of `evaluate`: factors, pairs, parts of questions, who judged."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial

from judgecal.rag.evaluation.comparisons import FactorCurve
from judgecal.rag.evaluation.result import EvaluateResult
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.charts import Frame, Mark, Tick, apart
from judgecal.report.document import Block, Folded, Gallery, Grid, Paragraph, Picture, Section, table
from judgecal.report.numbers import shortened
from judgecal.report.wording import in_a_row

_SHOWN = 20  # rows of a long table that stand open
_BESIDE = 4  # systems in a table
_CURVE = 330  # pixels
_WIDTH = 60  # characters of a question in a table


def curves_section(result: EvaluateResult) -> list[Section]:
    """What each factor of a sweep does; none without a sweep."""
    if not result.curves:
        return []
    several = len({curve.table for curve in result.curves}) > 1
    rows: list[list[str]] = []
    pictures = []
    for curve in result.curves:
        best = curve.best_of
        tied = [candidate.name for candidate in best.not_told_apart]
        verdict = f"{in_a_row(tied)} may be the best"
        if best.best is not None:
            verdict = f"{best.best} is shown to be the best"
        elif len(tied) == len(curve.levels):
            verdict = "any may be the best"
        title = f"{f'{curve.table}, ' if several else ''}{curve.factor}: {verdict}"
        rows.append([title])
        totals = []
        for level in curve.levels:
            name, total = str(level.level), numbers.estimate(level.value, 2)
            counts = map(numbers.count, (level.value.n, level.value.n_unscored))
            rows.append([name, total, "yes" if name in tied else "no", *counts])
            totals.append(f"{name}: {total}")
        alternative = f"{curve.factor}: {'; '.join(totals)}"
        pictures.append(Picture(partial(_curve_drawn, curve), alternative, title=title))
    levels = Grid(["level", "total", "may be the best", "n", "unscored"], rows, short=True)
    caption = (
        "What each factor does to the total, the others at the base. Each line is the interval of one level. "
        "Levels answer the same questions, so lines that overlap may still differ: the table says which "
        f"may be the best, at {result.best.level:.0%} for all factors together."
    )
    return [Section("factors", "What each factor does", caption, [Gallery(pictures), levels])]


def _curve_drawn(curve: FactorCurve) -> str:
    """Levels side by side in their order, joined where they are numbers."""
    values = [level.value for level in curve.levels]
    known = [
        end for estimate in values for end in (estimate.value, estimate.low, estimate.high) if end is not None
    ]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.08 * (high - low) or 0.05
    titles = (curve.factor, "total")
    frame = Frame(_CURVE, (0.0, float(len(values))), (low - room, min(high + room, 1.0 + room)), titles)
    tied = {candidate.name for candidate in curve.best_of.not_told_apart}
    names = [str(level.level) for level in curve.levels]
    marks, course, below = [], [], []
    widest = max(int((frame.right - frame.left) / len(values) / 7.0), 5)
    for place, (name, estimate) in enumerate(zip(names, values, strict=True)):
        x = frame.x(place + 0.5)
        below.append(Tick(x, shortened(name, widest)))
        if estimate.low is not None and estimate.high is not None:
            marks.append(Mark("line", x, frame.y(estimate.low), x, frame.y(estimate.high)))
        if estimate.value is not None:
            y = frame.y(estimate.value)
            course.append(f"{x} {y}")
            marks.append(Mark("dot", x, y, tone="accent" if name in tied else "soft"))
    levels = [level.level for level in curve.levels]
    if all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels):
        marks.insert(0, Mark("path", text=f"M{'L'.join(course)}", tone="soft"))
    return frame.drawn(marks, apart(below))


def sections_behind(result: EvaluateResult) -> list[Section]:
    """Those that have anything to show, in their order."""
    return [*_comparisons(result), *_documents(result), *_tags(result), *_failures(result), _judges(result)]


def _comparisons(result: EvaluateResult) -> list[Section]:
    """Every two systems; those that are told apart first. None where there is but one."""
    if not result.comparisons:
        return []
    labels, best = result.labels, result.best.best
    n_pairs = len(result.comparisons)
    open_pairs = [pair for pair in result.comparisons if pair.decision not in ("A", "B")]
    text = f"{n_pairs - len(open_pairs):,} of {numbers.count_of(n_pairs, 'pair')} differ, after Holm."
    if best is not None and any(best in (pair.a, pair.b) for pair in open_pairs):
        text += (
            f" Whether {labels[best]} is the best is one question about the highest alone and needs no "
            "correction for the number of pairs, so single pairs may stay open here."
        )
    pairs = sorted(result.comparisons, key=lambda pair: 1.0 if pair.p_adjusted is None else pair.p_adjusted)
    differences = table(
        pairs,
        {
            "a": lambda pair: labels[pair.a],
            "b": lambda pair: labels[pair.b],
            f"a - b ({100 * pairs[0].difference.level:.4g}% interval)": lambda pair: numbers.difference(
                pair.difference, 3
            ),
            "p (Holm)": lambda pair: numbers.plain(pair.p_adjusted),
            "higher": lambda pair: {"A": "a", "B": "b"}.get(pair.decision, pair.decision),
            "detectable": lambda pair: numbers.plain(pair.smallest_detectable),
            "n": lambda pair: f"{pair.complete_case.n:,}/{pair.difference.n_expected:,}",
        },
        left=2,
    )
    caption = (
        "The difference in total between any two, on the same questions. Detectable: the difference "
        "that these questions would reveal in four runs of five."
    )
    blocks: list[Block] = [Paragraph(text), *_long(differences)]
    return [Section("pairs", "Differences, paired by question", caption, blocks)]


def _long(whole: Grid) -> list[Block]:
    """A table; what goes beyond the first rows opens on demand."""
    first, rest = whole.rows[:_SHOWN], whole.rows[_SHOWN:]
    blocks: list[Block] = [Grid(whole.header, first, left=whole.left, title=whole.title)]
    if rest:
        blocks.append(Folded(f"{len(rest):,} more", [Grid(whole.header, rest, left=whole.left)]))
    return blocks


def _documents(result: EvaluateResult) -> list[Section]:
    """Totals by document, and what is told apart within one; none where no question names its document."""
    if not result.documents:
        return []
    labels, compared = result.labels, result.document_comparisons
    apart = [
        (document, pair)
        for document, pairs in compared.items()
        for pair in pairs
        if pair.decision in ("A", "B")
    ]
    within: list[Block] = [Paragraph("No document has ten questions, so we compare nothing within one.")]
    if apart:
        within = _long(
            table(
                apart,
                {
                    "document": lambda row: row[0],
                    "higher": lambda row: labels[row[1].higher],
                    "lower": lambda row: labels[row[1].b if row[1].decision == "A" else row[1].a],
                    "by": lambda row: numbers.plain(abs(row[1].difference.value or 0.0)),
                    "p (Holm)": lambda row: numbers.plain(row[1].p_adjusted),
                },
                left=3,
                title="Differences within a document",
            )
        )
    elif compared:
        n_pairs = sum(map(len, compared.values()))
        documents = numbers.count_of(len(compared), "document")
        text = f"None of {n_pairs:,} pairs differs within any of {documents}, after Holm."
        within = [Paragraph(text)]
    caption = (
        "Which documents everybody answers badly, and which only one system does. Total, the lowest first; n "
        "is the number of questions."
    )
    totals = {(str(summary.document), labels[summary.system]): summary.total for summary in result.documents}
    by_document = _totals(totals, "document", result, worst_first=True)
    return [Section("documents", "By document", caption, [*by_document, *within])]


def _totals(
    totals: dict[tuple[str, str], Estimate], name: str, result: EvaluateResult, *, worst_first: bool = False
) -> list[Block]:
    """Totals by (part, system): a row a part, a few systems beside each other."""
    systems = [result.labels[system.system] for system in result.systems]
    parts = list(dict.fromkeys(part for part, _ in totals))
    if worst_first:
        parts.sort(key=lambda part: sum(totals[part, system].value or 0.0 for system in systems))
    n = {part: total.n_expected for (part, _), total in totals.items()}
    blocks: list[Block] = []
    for at in range(0, len(systems), _BESIDE):
        some = systems[at : at + _BESIDE]
        rows = [
            [f"{part} ({n[part]:,})", *(numbers.estimate(totals[part, system], 2) for system in some)]
            for part in parts
        ]
        blocks += _long(Grid([f"{name} (n)", *some], rows))
    return blocks


def _tags(result: EvaluateResult) -> list[Section]:
    """Totals by tag; none where no question has one."""
    if not result.by_tag:
        return []
    totals = {(part.part, result.labels[part.system]): part.total for part in result.by_tag}
    caption = (
        "What kind of question goes wrong. Total, with its n. Nothing here is corrected for the number of "
        "cells, and below ten questions there is no interval."
    )
    return [Section("tags", "By tag", caption, _totals(totals, "tag", result))]


def _failures(result: EvaluateResult) -> list[Section]:
    """Why there are no answers, and no verdicts on answers; none where nothing failed."""

    def failed(
        title: str, who: str, what: str, rows: Sequence[tuple[str, str, str | None, int]]
    ) -> list[Block]:
        hidden = "(of test questions alone: not shown)"
        columns = table(
            rows,
            {
                who: lambda row: row[0],
                "failure": lambda row: row[1],
                "the first said": lambda row: textwrap.shorten(
                    row[2] or hidden, 3 * _WIDTH, placeholder=" ..."
                ),
                what: lambda row: numbers.count(row[3]),
            },
            left=3,
            title=title,
        )
        return [columns] if rows else []

    of_systems = [
        (result.labels[failure.system], failure.kind, failure.message, failure.n)
        for failure in result.failures
    ]
    of_columns = [
        (failure.column, failure.kind, failure.message, failure.n) for failure in result.failed_verdicts
    ]
    blocks = failed("Questions without an answer", "system", "questions", of_systems)
    blocks += failed("Answers without a verdict", "column", "answers", of_columns)
    caption = (
        "What came instead of an answer or a verdict, with the first message of its kind. A question "
        "without an answer counts as 0 in the total, and so does a question without a verdict that the "
        "total needs."
    )
    return [Section("failures", "What failed", caption, blocks)] if blocks else []


def _judges(result: EvaluateResult) -> Section:
    """Who filled each column, and whether anybody held it against people."""
    caption = (
        "Who judged, and whether they were compared with people. We also use a judge without a lock, "
        "but nobody knows whether it agrees with people."
    )
    if any(judge.calibrated for judge in result.judges):
        caption += " A lock with a map takes verdicts to the people's scale; the raw verdicts are "
        caption += "in state 3."
    who = table(
        result.judges,
        {
            "column": lambda judge: judge.column,
            "judge": lambda judge: judge.judge,
            "lock": lambda judge: judge.lock or "none",
            "agreement with people": lambda judge: (
                "nobody knows" if judge.lock is None else numbers.estimate(judge.agreement, 2)
            ),
        },
        left=3,
    )
    return Section("judges", "Who judged", caption, [who])
