"""What lies behind the numbers of `evaluate`: pairs, documents, kinds of questions, the worst, who judged."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from judgecal.rag.evaluation.question_parts import COMPLEXITY_RULE
from judgecal.rag.evaluation.result import EvaluateResult, WorstAnswer, WorstQuestion
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.document import Block, Cell, Folded, Paragraph, Record, Section, Table, table
from judgecal.report.intervals import in_percent

_SHOWN = 20  # rows of a long table that stand open
_LETTERS, _APART, _NARROWEST = 110, 3, 6
"""Letters of a table beside its first column, between two columns, of the narrowest column."""
_OPEN = 2  # coloured tables that stand open
_WIDTH = 60  # characters of a question in a table


def corrected_section(result: EvaluateResult) -> list[Section]:
    """Shares of right answers with the judge's own errors taken out; none where no lock allows it."""
    if not result.corrected:
        return []
    caption = (
        "Serves the report of quality: the share that people would call right, if the judge errs here as on "
        "the set that it was locked on. Of the n questions that it gave a verdict on."
    )
    shares = table(
        result.corrected,
        {
            "system": lambda one: result.labels[one.system],
            "corrected": lambda one: numbers.DASH if one.corrected is None else in_percent(one.corrected),
            "raw": lambda one: in_percent(one.raw),
            "n": lambda one: f"{one.raw.n:,}/{one.raw.n_expected:,}",
            "made by": lambda one: one.method or one.reason or numbers.DASH,
        },
    )
    return [Section("corrected", "Right answers, corrected for the judge's errors", caption, [shares])]


def comparisons_section(result: EvaluateResult) -> list[Section]:
    """Every two systems; those that are told apart first. None where there is but one."""
    if not result.comparisons:
        return []
    label, best = result.labels, result.best.best
    apart = sum(pair.decision in ("A", "B") for pair in result.comparisons)
    text = f"{apart:,} of {numbers.count_of(len(result.comparisons), 'pair')} are told apart, after Holm."
    pairs = sorted(result.comparisons, key=lambda one: one.p_adjusted if one.p_adjusted is not None else 1.0)
    if best is not None and any(best in (one.a, one.b) and one.decision not in ("A", "B") for one in pairs):
        text += (
            f" That {label[best]} is shown to be the best is one question, asked of the highest alone: it "
            "needs no correction for the number of pairs, so that single pairs may stay open here."
        )
    differences = table(
        pairs,
        {
            "a": lambda pair: label[pair.a],
            "b": lambda pair: label[pair.b],
            f"a - b [{pairs[0].difference.level:.4g}]": lambda pair: numbers.difference(pair.difference, 3),
            "p (Holm)": lambda pair: numbers.plain(pair.p_adjusted),
            "higher": lambda pair: {"A": "a", "B": "b"}.get(pair.decision, pair.decision),
            "detectable": lambda pair: numbers.plain(pair.smallest_detectable),
        },
        left=2,
    )
    caption = (
        "Serves whoever asks about two of them: the difference in total on the same questions. Detectable "
        "is what these questions would show in four runs of five."
    )
    blocks: list[Block] = [Paragraph(text), *_long(differences)]
    return [Section("pairs", "Differences, paired by question", caption, blocks)]


def _long(whole: Table) -> list[Block]:
    """A table; what goes beyond the first rows opens on demand."""
    first, rest = whole.rows[:_SHOWN], whole.rows[_SHOWN:]
    shown: list[Block] = [Table(whole.header, first, left=whole.left, title=whole.title)]
    if rest:
        shown.append(Folded(f"{len(rest):,} more", [Table(whole.header, rest, left=whole.left)]))
    return shown


def documents_section(result: EvaluateResult) -> list[Section]:
    """Totals by document, and what is told apart within one; none where no question names its document."""
    if not result.documents:
        return []
    label = result.labels
    means = [(str(one.document), label[one.system], one.total) for one in result.documents]
    apart = [
        (document, pair)
        for document, pairs in result.document_comparisons.items()
        for pair in pairs
        if pair.decision in ("A", "B")
    ]
    within: list[Block]
    if apart:
        within = _long(
            table(
                apart,
                {
                    "document": lambda row: row[0],
                    "higher": lambda row: label[row[1].higher],
                    "lower": lambda row: label[row[1].b if row[1].decision == "A" else row[1].a],
                    "by": lambda row: numbers.plain(abs(row[1].difference.value or 0.0)),
                    "p (Holm)": lambda row: numbers.plain(row[1].p_adjusted),
                },
                left=3,
                title="Told apart within a document",
            )
        )
    elif not result.document_comparisons:
        within = [Paragraph("No document has ten questions: nothing is compared within one.")]
    else:
        pairs = sum(map(len, result.document_comparisons.values()))
        documents = numbers.count_of(len(result.document_comparisons), "document")
        within = [Paragraph(f"None of {pairs:,} pairs is told apart within any of {documents}, after Holm.")]
    every = table(
        result.documents,
        {
            "document": lambda one: str(one.document),
            "system": lambda one: label[one.system],
            "total": lambda one: numbers.estimate(one.total, 2),
            "answered": lambda one: numbers.estimate(one.answered, 2),
            "answer_correctness": lambda one: numbers.estimate(one.answer_correctness, 2),
            "n": lambda one: f"{one.n:,}/{one.n_expected:,}",
            "p50": lambda one: numbers.seconds(one.latency_s.p50),
        },
        left=2,
    )
    caption = (
        "Serves the next mend: which documents are answered badly by all, and which by one. Total, the "
        "darker the higher, the lowest first; n is the number of questions."
    )
    heatmap = _heatmap(means, "document", result, worst_first=True)
    folded = Folded("Every document and system", [every])
    return [Section("documents", "By document", caption, [*heatmap, *within, folded])]


def _heatmap(
    means: Sequence[tuple[str, str, Estimate]],
    name: str,
    result: EvaluateResult,
    *,
    worst_first: bool = False,
) -> list[Block]:
    """Totals (part, system, estimate) as coloured tables, with as many columns beside each other as fit.

    What takes more room, parts or systems, stands in the rows; of many rows the first ones are open.
    """
    totals = {(part, system): total for part, system, total in means}
    parts = list(dict.fromkeys(part for part, _, _ in means))
    systems = [result.labels[one.system] for one in result.systems]
    if worst_first:
        parts.sort(key=lambda part: sum(totals[part, system].value or 0.0 for system in systems))
    n = {part: total.n_expected for part, _, total in means}
    counted = {part: f"{part} ({n[part]:,})" for part in parts}
    texts = {key: Cell(numbers.estimate(total, 2), heat=total.value) for key, total in totals.items()}
    names = list(counted.values())
    breadths = (len(some) * max(map(len, some), default=0) for some in (names, systems))
    if next(breadths) < next(breadths):
        header, columns, rows = "system", names, systems
        cells = {(system, counted[part]): cell for (part, system), cell in texts.items()}
    else:
        header, columns, rows = f"{name} (n)", systems, names
        cells = {(counted[part], system): cell for (part, system), cell in texts.items()}
    widest = max([_NARROWEST, *map(len, columns), *(len(cell.text) for cell in cells.values())])
    most = max(1, _LETTERS // (widest + _APART))
    across = -(-len(columns) // -(-len(columns) // most))  # as many in each table
    tables = [
        Table([header, *some], [[row, *(cells[row, column] for column in some)] for row in rows])
        for at in range(0, len(columns), across)
        for some in [columns[at : at + across]]
    ]
    blocks = [block for one in tables[:_OPEN] for block in _long(one)]
    if tables[_OPEN:]:
        blocks.append(Folded(f"{len(columns) - _OPEN * across:,} more", tables[_OPEN:]))
    return blocks


def complexity_section(result: EvaluateResult) -> list[Section]:
    """Latency by class of complexity: a heading for each, and a row a system."""
    if not result.by_complexity:
        return []
    rows: list[list[str]] = []
    for name, parts in groupby(result.by_complexity, key=lambda one: one.part):
        some = list(parts)
        rows.append([f"{name}: {numbers.count_of(some[0].total.n_expected, 'question')}"])
        rows += [
            [
                result.labels[one.system],
                numbers.seconds(one.latency_s.p50),
                numbers.seconds(one.latency_s.p95),
                numbers.count(one.latency_s.n),
                numbers.estimate(one.total, 2),
            ]
            for one in some
        ]
    caption = (
        "Serves who plans for load: whether questions that ask for more take longer, and are answered worse."
    )
    blocks: list[Block] = [
        Paragraph(f"The class of a question, by a rule of our own that nobody has rated: {COMPLEXITY_RULE}."),
        *_long(Table(["system", "p50", "p95", "n with a latency", "total"], rows)),
    ]
    return [Section("complexity", "By complexity of the question", caption, blocks)]


def tags_section(result: EvaluateResult) -> list[Section]:
    """Totals by tag as a coloured table; none where no question has one."""
    if not result.by_tag:
        return []
    means = [(one.part, result.labels[one.system], one.total) for one in result.by_tag]
    caption = (
        "Serves the next mend: what kind of question goes wrong. Total, the darker the higher, with its n; "
        "nothing here is corrected for the number of cells, and below ten questions there is no interval."
    )
    return [Section("tags", "By tag", caption, _heatmap(means, "tag", result))]


def worst_section(result: EvaluateResult) -> list[Section]:
    """The questions that went worst over all systems, with what was retrieved."""
    if not result.worst:
        return []

    def found_by(one: WorstQuestion) -> str:
        """How many systems retrieved a reference document."""
        retrieved = [answer.retrieved for answer in one.answers if answer.retrieved is not None]
        if not retrieved:
            return "no contexts"
        if not one.documents:
            return numbers.DASH
        return f"{sum(bool(set(one.documents) & set(names)) for names in retrieved)} of {len(retrieved)}"

    def record(one: WorstQuestion) -> Record:
        facts = [
            ("Reference", " | ".join(one.reference) or "none: the right answer is a refusal"),
            ("Document", ", ".join(one.documents) or "none named"),
            *((result.labels[answer.system], _answer(answer)) for answer in one.answers),
        ]
        return Record(one.text, facts, f"{one.question} · mean score {numbers.plain(one.mean_score, 2)}")

    caption = (
        "Serves the next step: what to mend in the documents, the retrieval or the prompt. By mean score "
        f"over all {len(result.systems)} {'systems' if result.design is None else 'settings'}: the total, "
        "and where there is no answer to give 1 for a refusal and 0 for an answer. Questions of test are "
        "counted and not shown."
    )
    worst = table(
        result.worst,
        {
            "question": lambda one: textwrap.shorten(one.text, _WIDTH, placeholder=" ..."),
            "reference document": lambda one: ", ".join(one.documents) or numbers.DASH,
            "retrieved by": found_by,
            "mean score": lambda one: numbers.plain(one.mean_score, 2),
        },
        left=3,
    )
    records = Folded("What each answered, and from what", list(map(record, result.worst)))
    return [Section("worst", "Worst questions", caption, [worst, records])]


def _answer(one: WorstAnswer) -> str:
    text = one.answer if one.answer is not None else "(no answer)"
    if one.error is not None:
        text = f"{one.error.kind}: {one.error.message}"
    retrieved = "no contexts" if one.retrieved is None else ", ".join(one.retrieved) or "nothing retrieved"
    scored = "unscored" if one.total is None else f"total {numbers.plain(one.total, 2)}"
    return f"{text or '(empty)'}\n{scored}; from: {retrieved}"


def failures_section(result: EvaluateResult) -> list[Section]:
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

    of_systems = [(result.labels[one.system], one.kind, one.message, one.n) for one in result.failures]
    of_columns = [(one.column, one.kind, one.message, one.n) for one in result.failed_verdicts]
    blocks = failed("Questions without an answer", "system", "questions", of_systems)
    blocks += failed("Answers without a verdict", "column", "answers", of_columns)
    caption = (
        "Serves whoever runs the systems and the judges: what came instead of an answer, or of a verdict on "
        "one, with the first message of its kind. A question without an answer counts as 0 in the total, "
        "and so does one without a verdict that the total needs."
    )
    return [Section("failures", "What failed", caption, blocks)] if blocks else []


def judges_section(result: EvaluateResult) -> Section:
    """Who filled each column, and whether anybody held it against people."""
    caption = (
        "Serves whoever relies on the numbers: who judged, and whether that was held against people. A "
        "judge without a lock is used all the same, and nobody knows whether it agrees with people."
    )
    if any(one.calibrated for one in result.judges):
        caption += (
            " Verdicts of a lock with a map are taken to the people's scale by it; the raw ones stand in "
            "state 3."
        )
    who = table(
        result.judges,
        {
            "column": lambda one: one.column,
            "judge": lambda one: one.judge,
            "lock": lambda one: one.lock or "none",
            "agreement with people": lambda one: (
                "nobody knows" if one.lock is None else numbers.estimate(one.agreement, 2)
            ),
        },
        left=3,
    )
    return Section("judges", "Who judged", caption, [who])
