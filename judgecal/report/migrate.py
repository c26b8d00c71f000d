"""The document of `migrate`: the decision, the paired difference, and what would change in production."""

from __future__ import annotations

from collections.abc import Iterator

from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Document,
    Heading,
    Paragraph,
    Record,
    Section,
    Table,
    from_summary,
    notes_section,
)
from judgecal.report.gate import verdict_in_words
from judgecal.report.intervals import change_of, change_picture, in_points, of_metric
from judgecal.report.judges_headline import raters_in_words
from judgecal.report.wording import OWN_LABELS, glossary, sentence
from judgecal.selection.churn import ChangedRow, ChurnResult, SystemChurn
from judgecal.selection.migrate import MigrateResult
from judgecal.stats.metrics import amount_of

_UNSCORED = (
    "unscored",
    "No verdict could be had or read. On gold items it counts as wrong; it is in no number of the churn.",
)


def migrate_document(result: MigrateResult) -> Document:
    """What a migration comes to."""
    sections = [_difference(result)]
    if result.churn is not None:
        sections.append(_churn(result.churn))
    return Document(
        title=f"{result.experiment}: another judge in the locked one's place",
        about=f"{result.gold.in_words}. An unscored item counts as {result.gold.unscored_counts_as}.",
        headline=_headline(result),
        sections=[*sections, *notes_section([*_notes(result)], words=glossary("margin", "churn", _UNSCORED))],
        **from_summary(result),
    )


def _headline(result: MigrateResult) -> Headline:
    old, new, (whom, _) = result.old, result.new, raters_in_words(result.gold.labels_by)
    said = {
        "pass": f"PASS: {new} may take the place of {old}: it is shown to agree with {whom} about as well.",
        "fail": f"FAIL: {new} may not take the place of {old}.",
        "inconclusive": f"INCONCLUSIVE: cannot tell whether {new} loses more than the margin against {old}.",
    }
    following = f"judgecal gate --lock {result.lock}"
    if result.new_lock:
        following = f"judgecal gate --lock {result.new_lock}"
    elif result.decision == "pass":
        following = f"judgecal migrate --lock {result.lock} --to '{new}' -o new.lock.json"
    elif result.decision == "inconclusive":
        following = f"judgecal gold sheet {result.gold.set} -o sheet.csv"
    because = (sentence(result.why),)
    return Headline(result.decision, said[result.decision], because, tuple(_unknown(result)), following)


def _unknown(result: MigrateResult) -> Iterator[str]:
    """What weighs most comes first."""
    if result.churn is None:
        yield "How many verdicts change in production: no table of recent answers was given (--on)."
    if result.gold.labels_by == "project":
        yield OWN_LABELS
    yield "Whether the new judge is noisier than the old one: each was called once on an item."


def _seen(found: Estimate, metric: str, scale: str) -> str:
    """The difference; without its interval where no item differs, which would show nothing of what others may
    do."""
    return "no item differs" if found.low == found.high == 0.0 else change_of(found, metric, scale)


def _difference(result: MigrateResult) -> Section:
    metric, scale, whole = result.metric, result.gold.scale, result.all_items
    sides = [
        ("test: can fail it", result.difference, result.old_value, result.new_value),
        ("all: can pass it", whole.difference, whole.old_value, whole.new_value),
    ]
    cells = [
        [name, _seen(found, metric, scale), *(of_metric(Estimate(one), metric, scale) for one in (old, new)),
         f"{found.n}/{found.n_expected}"]
        for name, found, old, new in sides
    ]  # fmt: skip
    header = [result.metric, f"new - old [{result.difference.level:.4g}]", "old", "new", "n"]
    blocks: list[Block] = [Table(header, cells, short=True)]
    known = [(one[0], one[1], one is sides[0]) for one in sides if one[1].value is not None]
    if known:
        blocks.append(change_picture(known, metric, unit=scale, margin=result.margin))
    blocks.append(Paragraph(sentence(result.test_look), short=True))
    blocks.append(Paragraph(f"old: {result.old} ({result.lock}); new: {result.new}", short=True))
    blocks.append(Paragraph(f"On test {_percent(result.flip_rate)} % of the items change sides.", short=True))
    caption = (
        "Serves the decision: the loss has to be shown to end before the dashed margin of "
        f"{amount_of(result.margin, metric, scale)} on all "
        "items that neither trained nor chose the new judge. Train and dev chose the old one, which only "
        "makes it harder to pass; test alone can fail the new one."
    )
    return Section("difference", "New against old", caption, blocks)


def _churn(churn: ChurnResult) -> Section:
    flips = churn.flip_rate
    said = f"Churn on {churn.file}: {flips.reason}."
    if flips.value is not None:
        said = (
            f"Churn on {churn.file}: {_percent(flips)} % of {flips.n} rows change sides "
            f"({churn.pass_to_fail} from pass to fail, {churn.fail_to_pass} from fail to pass)."
        )
    header = [
        "system",
        "rows",
        "change sides %",
        "pass to fail",
        "fail to pass",
        "rate, points",
        "mean, points",
    ]
    table = Table(header, [_churn_row(one) for one in (*churn.systems, churn)], short=True)
    blocks: list[Block] = [Paragraph(said, short=True), table]
    examples = churn.examples
    for words, rows in (
        ("Passed, would fail", examples.pass_to_fail),
        ("Failed, would pass", examples.fail_to_pass),
    ):
        blocks += [Heading(words), *(_record(one) for one in rows)] if rows else []
    lost = churn.n_unscored
    if churn.n_lacking:
        lacking = f"{churn.n_lacking} rows lack what the judges ask for and are in none of these numbers."
        blocks.append(Paragraph(lacking, short=True))
    if lost.old or lost.new:
        unscored = f"{lost.old} by the old judge, {lost.new} by the new one."
        blocks.append(Paragraph(f"Unscored, and in none of these numbers: {unscored}", short=True))
    caption = "Serves whoever reads the rates: what moves when the judge is replaced, and by how much."
    return Section("churn", "What changes in production", caption, blocks)


def _churn_row(one: SystemChurn) -> list[str]:
    return [
        one.system or "(none named)", f"{one.n}/{one.n_expected}", _percent(one.flip_rate),
        numbers.count(one.pass_to_fail), numbers.count(one.fail_to_pass),
        numbers.difference(in_points(one.rate_change), 1), numbers.difference(one.mean_change, 1),
    ]  # fmt: skip


def _percent(found: Estimate) -> str:
    return numbers.estimate(in_points(found), 1)


def _record(one: ChangedRow) -> Record:
    old, new = (verdict_in_words(side.verdict) for side in (one.old, one.new))
    facts = [
        ("Question", one.question),
        ("Answer", one.answer),
        ("Old", one.old.reasoning),
        ("New", one.new.reasoning),
    ]
    named = f", {one.system}" if one.system else ""
    return Record(f"Row {one.row}{named}: {old} -> {new}", facts)


def _notes(result: MigrateResult) -> Iterator[str]:
    if result.n_called_again:
        yield (
            f"The lock holds no verdict of {result.n_called_again} items: the old judge was called for them."
        )
    yield from map(sentence, result.notes)
    if result.new_lock:
        yield (
            "new lock: "
            f"{result.new_lock}{', written with --force against the decision' if result.forced else ''}"
        )
    elif result.new_lock_reason:
        yield sentence(result.new_lock_reason)
