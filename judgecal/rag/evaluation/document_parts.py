"""What lies behind the numbers of `evaluate`: contexts, factors, pairs, documents, failures, judges."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence

from judgecal.rag.evaluation.result import EvaluateResult, Failures
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.charts import Axis, interval_picture
from judgecal.report.document import Block, Folded, Gallery, Grid, Paragraph, Rung, Section, section, table
from judgecal.report.wording import in_a_row

_SHOWN = 20  # rows of a long table that stand open
_BESIDE = 4  # systems in a table
_MESSAGE = 180  # characters of a message in a table
_KINDS = {"controlled": "controlled", "topk": "retrieved", "own": "its own", "none": "closed book"}


def turned(estimate: Estimate) -> Estimate:
    """A difference the other way round."""
    ends = (estimate.value, estimate.high, estimate.low)
    value, low, high = (None if end is None else -end for end in ends)
    return dataclasses.replace(estimate, value=value, low=low, high=high)


def contexts_section(result: EvaluateResult) -> Section | None:
    """One answerer with several kinds of contexts: what retrieval costs; None where none has several."""
    kinds: dict[str, dict[str, str]] = {}
    for setting in result.settings:
        if setting.contexts:
            kinds.setdefault(setting.table, {})[setting.contexts] = setting.system
    kinds = {name: systems for name, systems in kinds.items() if len(systems) > 1}
    if not kinds:
        return None
    totals = {system.system: numbers.estimate(system.total, 2) for system in result.systems}
    pairs = {(pair.a, pair.b): pair.difference for pair in result.comparisons}

    def costs(systems: dict[str, str]) -> str:
        """The controlled total less the retrieved one, paired by question."""
        a, b = systems.get("controlled", ""), systems.get("topk", "")
        difference = pairs.get((a, b)) or (turned(pairs[b, a]) if (b, a) in pairs else None)
        return numbers.DASH if difference is None else numbers.difference(difference, 2)

    there = [kind for kind in _KINDS if any(kind in systems for systems in kinds.values())]
    rows = [
        [name, *(totals.get(systems.get(kind, ""), numbers.DASH) for kind in there), costs(systems)]
        for name, systems in kinds.items()
    ]
    caption = (
        "Fix the retriever or the answerer? Total with the right document in hand (controlled), with the "
        "documents that BM25 ranks first (retrieved), and with none (closed book: what it knows by heart). "
        "Retrieval costs the controlled total less the retrieved one, paired by question; what is missing to "
        "1 with the right document in hand is lost by the answerer."
    )
    header = ["answerer", *(_KINDS[kind] for kind in there), "retrieval costs"]
    return Section("contexts", "Where the points go", caption, [Grid(header, rows, short=True)])


def curves_section(result: EvaluateResult) -> Section | None:
    """What each factor of a sweep does; None without a sweep."""
    if not result.curves:
        return None
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
        rungs = []
        for level in curve.levels:
            name, total = str(level.level), numbers.estimate(level.value, 2)
            counts = map(numbers.count, (level.value.n, level.value.n_unscored))
            rows.append([name, total, "yes" if name in tied else "no", *counts])
            rungs.append(Rung(name, level.value, total, strong=name in tied))
        pictures.append(interval_picture(rungs, Axis("total, 0 to 1"), title=title))
    levels = Grid(["level", "total", "may be the best", "n", "unscored"], rows, short=True)
    caption = (
        "What each factor does to the total, the others at the base. Each line is the interval of one level. "
        "Levels answer the same questions, so lines that overlap may still differ: the table says which "
        f"may be the best, at {result.best.level:.0%} for all factors together."
    )
    return Section("factors", "What each factor does", caption, [Gallery(pictures), levels])


def sections_behind(result: EvaluateResult) -> list[Section]:
    """Those that have anything to show, in their order."""
    return [*_comparisons(result), *_documents(result), *_failures(result), _judges(result)]


def _comparisons(result: EvaluateResult) -> list[Section]:
    """Every two systems; those that are told apart first. None where there is but one."""
    if not result.comparisons:
        return []
    best, n_pairs = result.best.best, len(result.comparisons)
    open_pairs = [pair for pair in result.comparisons if not pair.apart]
    text = f"{n_pairs - len(open_pairs):,} of {numbers.count_of(n_pairs, 'pair')} differ, after Holm."
    if best is not None and any(best in (pair.a, pair.b) for pair in open_pairs):
        text += (
            f" Whether {best} is the best is one question about the highest alone and needs no "
            "correction for the number of pairs, so single pairs may stay open here."
        )
    pairs = sorted(result.comparisons, key=lambda pair: 1.0 if pair.p_adjusted is None else pair.p_adjusted)
    differences = table(
        pairs,
        {
            "a": lambda pair: pair.a,
            "b": lambda pair: pair.b,
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
    return [section("pairs", "Differences, paired by question", caption, text, _long(differences))]


def _long(whole: Grid) -> list[Block]:
    """A table; what goes beyond the first rows opens on demand."""
    first, more = whole.rows[:_SHOWN], whole.rows[_SHOWN:]
    blocks: list[Block] = [Grid(whole.header, first, left=whole.left, title=whole.title)]
    if more:
        blocks.append(Folded(f"{len(more):,} more", [Grid(whole.header, more, left=whole.left)]))
    return blocks


def _documents(result: EvaluateResult) -> list[Section]:
    """Totals by document, and what is told apart within one; none where no question names its document."""
    if not result.documents:
        return []
    systems = [system.system for system in result.systems]
    totals = {(summary.document, summary.system): summary.total for summary in result.documents}
    documents = list(dict.fromkeys(document for document, _ in totals))
    documents.sort(key=lambda document: sum(totals[document, system].value or 0.0 for system in systems))
    blocks: list[Block] = []
    for at in range(0, len(systems), _BESIDE):
        some = systems[at : at + _BESIDE]
        rows = [
            [
                f"{document} ({totals[document, some[0]].n_expected:,})",
                *(numbers.estimate(totals[document, system], 2) for system in some),
            ]
            for document in documents
        ]
        blocks += _long(Grid(["document (n)", *some], rows))
    pairs = result.document_comparisons
    apart = [pair for pair in pairs if pair.apart]
    if apart:
        blocks += _long(
            table(
                apart,
                {
                    "document": lambda pair: str(pair.document),
                    "higher": lambda pair: pair.a if pair.decision == "A" else pair.b,
                    "lower": lambda pair: pair.b if pair.decision == "A" else pair.a,
                    "by": lambda pair: numbers.plain(abs(pair.difference.value or 0.0)),
                    "p (Holm)": lambda pair: numbers.plain(pair.p_adjusted),
                },
                left=3,
                title="Differences within a document",
            )
        )
    elif pairs:
        blocks.append(Paragraph(f"None of {len(pairs):,} pairs differs within a document, after Holm."))
    caption = (
        "Which documents everybody answers badly, and which only one system does. Total, the lowest first; n "
        "is the number of questions. Within a document of ten questions or more systems are compared."
    )
    return [Section("documents", "By document", caption, blocks)]


def _failures(result: EvaluateResult) -> list[Section]:
    """Why there are no answers, and no verdicts on answers; none where nothing failed."""

    def failed(title: str, who: str, what: str, rows: Sequence[Failures]) -> list[Block]:
        hidden = "(of test questions alone: not shown)"
        columns = table(
            rows,
            {
                who: lambda row: row.name,
                "failure": lambda row: row.kind,
                "the first said": lambda row: textwrap.shorten(
                    row.message or hidden, _MESSAGE, placeholder=" ..."
                ),
                what: lambda row: numbers.count(row.n),
            },
            left=3,
            title=title,
        )
        return [columns] if rows else []

    blocks = failed("Questions without an answer", "system", "questions", result.failures)
    blocks += failed("Answers without a verdict", "column", "answers", result.failed_verdicts)
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
