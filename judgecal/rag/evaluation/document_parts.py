"""What lies behind the numbers of `evaluate`: pairs, documents, kinds of questions, the worst ones, who
judged."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from judgecal.rag.evaluation.comparisons import SystemComparison
from judgecal.rag.evaluation.question_parts import COMPLEXITY_RULE, QuestionPart
from judgecal.rag.evaluation.result import EvaluateResult, WorstAnswer, WorstQuestion
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.document import Block, Cell, Folded, Paragraph, Record, Section, Table
from judgecal.report.intervals import in_percent

_SHOWN = 20  # rows of a long table that stand open
_LETTERS, _APART, _NARROWEST = (
    110,
    3,
    6,
)  # of a table beside its first column, between two columns, of a column
_OPEN = 2  # coloured tables that stand open
_WIDTH = 60  # characters of a question in a table


def corrected_section(result: EvaluateResult) -> list[Section]:
    """Shares of right answers with the judge's own errors taken out; none where no lock allows it."""
    if not result.corrected:
        return []
    rows = [
        [
            result.labels[one.system],
            numbers.DASH if one.corrected is None else in_percent(one.corrected),
            in_percent(one.raw),
            f"{one.raw.n:,}/{one.raw.n_expected:,}",
            one.method or one.reason or numbers.DASH,
        ]
        for one in result.corrected
    ]
    caption = (
        "Serves the report of quality: the share that people would call right, if the judge errs here as on the set "
        "that it was locked on. Of the n questions that it gave a verdict on."
    )
    header = ["system", "corrected", "raw", "n", "made by"]
    return [
        Section(
            "corrected", "Right answers, corrected for the judge's errors", caption, [Table(header, rows)]
        )
    ]


def comparisons_section(result: EvaluateResult) -> list[Section]:
    """Every two systems; those that are told apart first. None where there is but one."""
    if not result.comparisons:
        return []
    told = [one for one in result.comparisons if one.decision in ("A", "B")]
    text = f"{len(told):,} of {numbers.count_of(len(result.comparisons), 'pair')} are told apart, after Holm."
    caption = (
        "Serves whoever asks about two of them: the difference in total on the same questions. Detectable is what "
        "these questions would show in four runs of five."
    )
    pairs = sorted(result.comparisons, key=lambda one: one.p_adjusted if one.p_adjusted is not None else 1.0)
    best = result.best.best
    if best is not None and any(best in (one.a, one.b) and one.decision not in ("A", "B") for one in pairs):
        text += (
            f" That {result.labels[best]} is shown to be the best is one question, asked of the highest alone: it needs no "
            "correction for the number of pairs, so that single pairs may stay open here."
        )
    blocks: list[Block] = [Paragraph(text), *_long(_pairs(pairs, result.labels))]
    return [Section("pairs", "Differences, paired by question", caption, blocks)]


def _pairs(pairs: Sequence[SystemComparison], label: Mapping[str, str]) -> Table:
    rows = [
        [
            label[one.a],
            label[one.b],
            numbers.difference(one.difference, 3),
            numbers.plain(one.p_adjusted),
            {"A": "a", "B": "b"}.get(one.decision, one.decision),
            numbers.plain(one.smallest_detectable),
        ]
        for one in pairs
    ]
    level = f"a - b [{pairs[0].difference.level:.4g}]" if pairs else "a - b"
    return Table(["a", "b", level, "p (Holm)", "higher", "detectable"], rows, left=2)


def _long(table: Table) -> list[Block]:
    """A table; what goes beyond the first rows opens on demand."""
    first, rest = table.rows[:_SHOWN], table.rows[_SHOWN:]
    shown: list[Block] = [Table(table.header, first, left=table.left, title=table.title)]
    return (
        [*shown, Folded(f"{len(rest):,} more", [Table(table.header, rest, left=table.left)])]
        if rest
        else shown
    )


def documents_section(result: EvaluateResult) -> list[Section]:
    """Totals by document, and what is told apart within one; none where no question names its document."""
    if not result.documents:
        return []
    label = result.labels
    means = [(str(one.document), label[one.system], one.total) for one in result.documents]
    blocks = _heatmap(means, "document", result, worst_first=True)
    blocks += _within_documents(result)
    rows = [
        [
            str(one.document),
            label[one.system],
            numbers.estimate(one.total, 2),
            numbers.estimate(one.answered, 2),
            numbers.estimate(one.answer_correctness, 2),
            f"{one.n:,}/{one.n_expected:,}",
            numbers.seconds(one.latency_s.p50),
        ]
        for one in result.documents
    ]
    header = ["document", "system", "total", "answered", "answer_correctness", "n", "p50"]
    blocks.append(Folded("Every document and system", [Table(header, rows, left=2)]))
    caption = (
        "Serves the next mend: which documents are answered badly by all, and which by one. Total, the darker the "
        "higher, the lowest first; n is the number of questions."
    )
    return [Section("documents", "By document", caption, blocks)]


def _within_documents(result: EvaluateResult) -> list[Block]:
    """Pairs that are told apart within one document."""
    label = result.labels
    told = [
        [document, label[pair.higher], label[pair.b if pair.decision == "A" else pair.a],
         numbers.plain(abs(pair.difference.value or 0.0)), numbers.plain(pair.p_adjusted)]
        for document, pairs in result.document_comparisons.items()
        for pair in pairs
        if pair.decision in ("A", "B")
    ]  # fmt: skip
    if told:
        header = ["document", "higher", "lower", "by", "p (Holm)"]
        return _long(Table(header, told, left=3, title="Told apart within a document"))
    if not result.document_comparisons:
        return [Paragraph("No document has ten questions: nothing is compared within one.")]
    pairs = sum(map(len, result.document_comparisons.values()))
    within = numbers.count_of(len(result.document_comparisons), "document")
    return [Paragraph(f"None of {pairs:,} pairs is told apart within any of {within}, after Holm.")]


def _heatmap(
    means: Sequence[tuple[str, str, Estimate]],
    name: str,
    result: EvaluateResult,
    *,
    worst_first: bool = False,
) -> list[Block]:
    """Totals (part, system, estimate) as coloured tables, of which as many columns stand beside each other as
    fit.

    What takes more room, parts or systems, stands in the rows; of many rows the first ones are open.
    """
    found = {(part, system): total for part, system, total in means}
    parts, systems = (
        list(dict.fromkeys(part for part, _, _ in means)),
        [result.labels[one.system] for one in result.systems],
    )
    n = {part: total.n_expected for part, _, total in means}
    if worst_first:
        parts.sort(key=lambda part: sum(found[part, system].value or 0.0 for system in systems))
    counted = {part: f"{part} ({n[part]:,})" for part in parts}
    transposed = _breadth(list(counted.values())) < _breadth(systems)
    columns = [counted[part] for part in parts] if transposed else systems
    cells = {
        (system if transposed else counted[part], counted[part] if transposed else system): Cell(
            numbers.estimate(total, 2), heat=total.value
        )
        for (part, system), total in found.items()
    }
    widest = max([_NARROWEST, *map(len, columns), *(len(cell.text) for cell in cells.values())])
    most = max(1, _LETTERS // (widest + _APART))
    across = -(-len(columns) // -(-len(columns) // most))  # as many in each table
    corner = "system" if transposed else f"{name} (n)"
    rows = systems if transposed else list(counted.values())
    tables = [
        Table(
            [corner, *columns[at : at + across]],
            [[row, *(cells[row, column] for column in columns[at : at + across])] for row in rows],
        )
        for at in range(0, len(columns), across)
    ]
    blocks = [block for table in tables[:_OPEN] for block in _long(table)]
    return (
        [*blocks, Folded(f"{len(columns) - _OPEN * across:,} more", tables[_OPEN:])]
        if tables[_OPEN:]
        else blocks
    )


def _breadth(names: Sequence[str]) -> int:
    """Letters that columns of these names need."""
    return len(names) * max(map(len, names), default=0)


def _by_part(
    parts: Sequence[QuestionPart], label: Mapping[str, str], row: Callable[[QuestionPart], Sequence[str]]
) -> list[list[str]]:
    """A heading for each part, and a row a system."""
    found: list[list[str]] = []
    for name, own in groupby(parts, key=lambda one: one.part):
        listed = list(own)
        found.append([f"{name}: {numbers.count_of(listed[0].total.n_expected, 'question')}"])
        found += [[label[one.system], *row(one)] for one in listed]
    return found


def complexity_section(result: EvaluateResult) -> list[Section]:
    """Latency by class of complexity."""
    if not result.by_complexity:
        return []
    rows = _by_part(
        result.by_complexity,
        result.labels,
        lambda one: (
            numbers.seconds(one.latency_s.p50),
            numbers.seconds(one.latency_s.p95),
            numbers.count(one.latency_s.n),
            numbers.estimate(one.total, 2),
        ),
    )
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
        "Serves the next mend: what kind of question goes wrong. Total, the darker the higher, with its n; nothing "
        "here is corrected for the number of cells, and below ten questions there is no interval."
    )
    return [Section("tags", "By tag", caption, _heatmap(means, "tag", result))]


def worst_section(result: EvaluateResult) -> list[Section]:
    """The questions that went worst over all systems, with what was retrieved."""
    if not result.worst:
        return []
    rows = [
        [
            textwrap.shorten(one.text, _WIDTH, placeholder=" ..."),
            ", ".join(one.documents) or numbers.DASH,
            _found_by(one),
            numbers.plain(one.mean_score, 2),
        ]
        for one in result.worst
    ]
    caption = (
        "Serves the next step: what to mend in the documents, the retrieval or the prompt. By mean score over all "
        f"{len(result.systems)} {'systems' if result.design is None else 'settings'}: the total, and where there is no "
        "answer to give 1 for a refusal and 0 for an answer. Questions of test are counted and not shown."
    )
    table = Table(["question", "reference document", "retrieved by", "mean score"], rows, left=3)
    blocks: list[Block] = [
        table,
        Folded("What each answered, and from what", [_record(one, result.labels) for one in result.worst]),
    ]
    return [Section("worst", "Worst questions", caption, blocks)]


def _found_by(one: WorstQuestion) -> str:
    """How many systems retrieved a reference document."""
    showing = [each.retrieved for each in one.answers if each.retrieved is not None]
    if not showing:
        return "no contexts"
    if not one.documents:
        return numbers.DASH
    found = sum(bool(set(one.documents) & set(names)) for names in showing)
    return f"{found} of {len(showing)}"


def _record(one: WorstQuestion, label: Mapping[str, str]) -> Record:
    facts = [
        ("Reference", " | ".join(one.reference) or "none: the right answer is a refusal"),
        ("Document", ", ".join(one.documents) or "none named"),
        *((label[each.system], _answer(each)) for each in one.answers),
    ]
    return Record(one.text, facts, f"{one.question} · mean score {numbers.plain(one.mean_score, 2)}")


def _answer(one: WorstAnswer) -> str:
    said = one.answer if one.answer is not None else "(no answer)"
    if one.error is not None:
        said = f"{one.error.kind}: {one.error.message}"
    retrieved = "no contexts" if one.retrieved is None else ", ".join(one.retrieved) or "nothing retrieved"
    scored = "unscored" if one.total is None else f"total {numbers.plain(one.total, 2)}"
    return f"{said or '(empty)'}\n{scored}; from: {retrieved}"


def failures_section(result: EvaluateResult) -> list[Section]:
    """Why there are no answers, and no verdicts on answers; none where nothing failed."""
    tables = [
        _failed(
            "Questions without an answer",
            ["system", "questions"],
            [(result.labels[one.system], one.kind, one.message, one.n) for one in result.failures],
        ),
        _failed(
            "Answers without a verdict",
            ["column", "answers"],
            [(one.column, one.kind, one.message, one.n) for one in result.failed_verdicts],
        ),
    ]
    blocks: list[Block] = [table for table in tables if table.rows]
    caption = (
        "Serves whoever runs the systems and the judges: what came instead of an answer, or of a verdict on one, with "
        "the first message of its kind. A question without an answer counts as 0 in the total, and so does one "
        "without a verdict that the total needs."
    )
    return [Section("failures", "What failed", caption, blocks)] if blocks else []


def _failed(title: str, names: Sequence[str], failures: Sequence[tuple[str, str, str | None, int]]) -> Table:
    rows = [
        [
            who,
            kind,
            textwrap.shorten(
                message or "(of test questions alone: not shown)", 3 * _WIDTH, placeholder=" ..."
            ),
            numbers.count(n),
        ]
        for who, kind, message, n in failures
    ]
    return Table([names[0], "failure", "the first said", names[1]], rows, left=3, title=title)


def judges_section(result: EvaluateResult) -> Section:
    """Who filled each column, and whether anybody held it against people."""
    rows = [
        [
            one.column,
            one.judge,
            one.lock or "none",
            "nobody knows" if one.lock is None else numbers.estimate(one.agreement, 2),
        ]
        for one in result.judges
    ]
    caption = (
        "Serves whoever relies on the numbers: who judged, and whether that was held against people. A judge without "
        "a lock is used all the same, and nobody knows whether it agrees with people."
    )
    if any(one.calibrated for one in result.judges):
        caption += " Verdicts of a lock with a map are taken to the people's scale by it; the raw ones stand in state 3."
    return Section(
        "judges",
        "Who judged",
        caption,
        [Table(["column", "judge", "lock", "agreement with people"], rows, left=3)],
    )
