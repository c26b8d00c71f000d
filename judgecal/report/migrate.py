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
    from_summary,
    notes_section,
    table,
)
from judgecal.report.gate import verdict_in_words
from judgecal.report.intervals import change_of, change_picture, in_points, of_metric
from judgecal.report.judges_headline import raters_in_words
from judgecal.report.wording import OWN_LABELS, glossary, sentence, sentences
from judgecal.selection.churn import ChangedRow, ChurnResult, SystemChurn
from judgecal.selection.migrate import MigrateResult, OldAndNew
from judgecal.stats.metrics import amount_of

_UNSCORED = (
    "No verdict could be had or read. On gold items it counts as wrong; it is in no number of the churn."
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
        sections=[
            *sections,
            *notes_section([*_notes(result)], words=glossary("margin", "churn", ("unscored", _UNSCORED))),
        ],
        **from_summary(result),
    )


def _headline(result: MigrateResult) -> Headline:
    old, new, (whom, _) = result.old, result.new, raters_in_words(result.gold.labels_by)
    says = {
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
    unknown = sentences(  # what weighs most comes first
        result.churn is None
        and "How many verdicts change in production: no table of recent answers was given (--on).",
        result.gold.labels_by == "project" and OWN_LABELS,
        "Whether the new judge is noisier than the old one: each was called once on an item.",
    )
    return Headline(result.decision, says[result.decision], (sentence(result.why),), unknown, following)


def _difference(result: MigrateResult) -> Section:
    metric, scale, whole = result.metric, result.gold.scale, result.all_items
    sides = {
        "test: can fail it": OldAndNew(result.difference, result.old_value, result.new_value),
        "all: can pass it": whole,
    }

    def change(difference: Estimate) -> str:
        """Without its interval where no item differs, which would show nothing of what others may do."""
        same = difference.low == difference.high == 0.0
        return "no item differs" if same else change_of(difference, metric, scale)

    blocks: list[Block] = [
        table(
            sides.items(),
            {
                metric: lambda side: side[0],
                f"new - old [{result.difference.level:.4g}]": lambda side: change(side[1].difference),
                "old": lambda side: of_metric(Estimate(side[1].old_value), metric, scale),
                "new": lambda side: of_metric(Estimate(side[1].new_value), metric, scale),
                "n": lambda side: f"{side[1].difference.n}/{side[1].difference.n_expected}",
            },
            short=True,
        )
    ]
    known = [
        (name, side.difference, side is not whole)
        for name, side in sides.items()
        if side.difference.value is not None
    ]
    if known:
        blocks.append(change_picture(known, metric, unit=scale, margin=result.margin))
    blocks.append(Paragraph(sentence(result.test_look), short=True))
    blocks.append(Paragraph(f"old: {result.old} ({result.lock}); new: {result.new}", short=True))
    blocks.append(Paragraph(f"On test {_percent(result.flip_rate)} % of the items change sides.", short=True))
    caption = (
        "Serves the decision: the loss has to be shown to end before the dashed margin of "
        f"{amount_of(result.margin, metric, scale)} on all items that neither trained nor chose the new "
        "judge. Train and dev chose the old one, which only makes it harder to pass; test alone can fail "
        "the new one."
    )
    return Section("difference", "New against old", caption, blocks)


def _churn(churn: ChurnResult) -> Section:
    flips = churn.flip_rate
    says = f"Churn on {churn.file}: {flips.reason}."
    if flips.value is not None:
        says = (
            f"Churn on {churn.file}: {_percent(flips)} % of {flips.n} rows change sides "
            f"({churn.pass_to_fail} from pass to fail, {churn.fail_to_pass} from fail to pass)."
        )
    systems: tuple[SystemChurn, ...] = (*churn.systems, churn)
    columns = table(
        systems,
        {
            "system": lambda system: system.system or "(none named)",
            "rows": lambda system: f"{system.n}/{system.n_expected}",
            "change sides %": lambda system: _percent(system.flip_rate),
            "pass to fail": lambda system: numbers.count(system.pass_to_fail),
            "fail to pass": lambda system: numbers.count(system.fail_to_pass),
            "rate, points": lambda system: numbers.difference(in_points(system.rate_change), 1),
            "mean, points": lambda system: numbers.difference(system.mean_change, 1),
        },
        short=True,
    )
    blocks: list[Block] = [Paragraph(says, short=True), columns]
    examples = {
        "Passed, would fail": churn.examples.pass_to_fail,
        "Failed, would pass": churn.examples.fail_to_pass,
    }
    for heading, rows in examples.items():
        blocks += [Heading(heading), *map(_record, rows)] if rows else []
    lost = churn.n_unscored
    if churn.n_lacking:
        lacking = f"{churn.n_lacking} rows lack what the judges ask for and are in none of these numbers."
        blocks.append(Paragraph(lacking, short=True))
    if lost.old or lost.new:
        unscored = f"{lost.old} by the old judge, {lost.new} by the new one."
        blocks.append(Paragraph(f"Unscored, and in none of these numbers: {unscored}", short=True))
    caption = "Serves whoever reads the rates: what moves when the judge is replaced, and by how much."
    return Section("churn", "What changes in production", caption, blocks)


def _percent(share: Estimate) -> str:
    return numbers.estimate(in_points(share), 1)


def _record(row: ChangedRow) -> Record:
    old, new = (verdict_in_words(side.verdict) for side in (row.old, row.new))
    facts = [
        ("Question", row.question),
        ("Answer", row.answer),
        ("Old", row.old.reasoning),
        ("New", row.new.reasoning),
    ]
    system = f", {row.system}" if row.system else ""
    return Record(f"Row {row.row}{system}: {old} -> {new}", facts)


def _notes(result: MigrateResult) -> Iterator[str]:
    if result.n_called_again:
        items = f"{result.n_called_again} items: the old judge was called for them"
        yield f"The lock holds no verdict of {items}."
    yield from map(sentence, result.notes)
    if result.new_lock:
        yield f"new lock: {result.new_lock}{', written with --force against the decision' * result.forced}"
    elif result.new_lock_reason:
        yield sentence(result.new_lock_reason)
