"""The documents of `gate` and `migrate`: has the locked judge drifted, may another one take its place."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from judgecal.errors import listed
from judgecal.experiment import Experiment, GoldSummary
from judgecal.experiment.rows import ROWS, sheet_command
from judgecal.goldset import GoldSet, unchanged_gold
from judgecal.goldset.load import read_items
from judgecal.records import Estimate, Headline, Item
from judgecal.report.charts import (
    change_in_points,
    change_of,
    change_picture,
    in_percent,
    of_metric,
    points_of,
)
from judgecal.report.document import Document, Fact, Grid, Paragraph, Section, section, stored_document, table
from judgecal.report.explorer import Explorer, ExplorerRow, Said, row_of, shown
from judgecal.report.judges_headline import raters_in_words, unread_headline
from judgecal.report.numbers import count, count_of, money, p_value, percent
from judgecal.report.rows import rows_section
from judgecal.report.wording import OWN_LABELS, failures_in_words, fitting, sentence, sentences
from judgecal.scale import Label
from judgecal.selection.gate import FlippedItem, GateResult
from judgecal.selection.migrate import ChurnResult, MigrateResult, OldAndNew
from judgecal.stats.metrics import amount_of, metric_facts, rows_of
from judgecal.workspace import Workspace

_ACTS = {
    "pass": "Go on with this judge until the next gate.",
    "fail": "Stop using this judge.",
    "inconclusive": "We cannot tell whether this judge has drifted.",
    "changed": "Another judge answers under this name.",
}
_SHOWN = 10  # flipped items; the others unfold
_LONGEST = 80  # characters of an id in a sentence
_CHIPS = 8  # verdicts at most that have a filter each
_MANY_UNSCORED = 0.10  # share of the judgements
_in_words = partial(shown, binary=False)


def open_ids(gold: GoldSet | None) -> frozenset[str]:
    """The items that may be shown: all but those of test; none where the set is gone."""
    return frozenset(item.item_id for item in gold.select("open")) if gold else frozenset()


def gate_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The document of `gate` with the flipped items; test items are counted, all of them where the set is
    gone.
    """
    result = experiment.read_summary(GateResult)
    gold = unchanged_gold(result.gold.set, result.gold.sha256, workspace=workspace)
    return replace(gate_document(result, open_ids(gold)), explorer=_flips(result, gold))


def migrate_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The document of `migrate` with the items on which the judges fall on different sides."""
    result, rows = experiment.read_summary(MigrateResult), experiment.folder / ROWS
    gold = unchanged_gold(result.gold.set, result.gold.sha256, workspace=workspace)
    on = read_items(rows) if result.churn and rows.is_file() else ()
    return replace(migrate_document(result), explorer=_flips(result, gold, on))


def _flips(
    result: GateResult | MigrateResult, gold: GoldSet | None, on: Sequence[Item] = ()
) -> Explorer | None:
    """The flipped items with the verdict then and now, those of test counted; and flipped rows without
    labels.
    """
    items, rows = {item.item_id: item for item in (gold.select("open") if gold else ())}, []
    churn = result.churn if isinstance(result, MigrateResult) else None
    known = {item.sha for item in (gold.items if gold else ())}  # those of test are sealed in a table too
    unlabelled = {item.item_id: item for item in on if item.sha not in known}

    def said(verdicts: Sequence[Label | None], passed: Sequence[bool | None]) -> Said:
        raw = ", ".join(map(_in_words, verdicts))
        sides = dict.fromkeys(shown(side, binary=True) for side in passed)
        return Said(", ".join(sides), raw) if sides else Said(raw)

    def row(flip: FlippedItem, item: Item, label: str) -> ExplorerRow:
        now = said(flip.now, flip.now_passed)
        both = [said(flip.locked, flip.locked_passed), now]
        return row_of(item, label=label, said=both, marks=[f"now:{now.verdict}"])

    for flip in result.flipped:
        if gold is not None and flip.item_id in items:
            label = shown(gold.labels.get(flip.item_id), binary=gold.scale.kind == "binary")
            rows.append(row(flip, items[flip.item_id], label))
    n_sealed = len(result.flipped) - len(rows)
    flips = churn.flipped if churn else ()
    rows += [row(flip, unlabelled.pop(flip.item_id), "") for flip in flips if flip.item_id in unlabelled]
    if not rows:
        return None
    marks = dict.fromkeys(row.marks[0] for row in rows)
    return Explorer(
        f"{count_of(len(rows), 'open answer')} with another verdict now",
        rows,
        ["locked", "now"],
        {mark: mark.replace(":", " ") for mark in marks if len(marks) <= _CHIPS},
        n_sealed=n_sealed,
    )


def gate_document(result: GateResult, visible: Collection[str]) -> Document:
    """What a gate found; items that are not among those `visible` are counted."""
    model, passes = result.model_id, f"{result.repeats} of at most {result.repeats_max} passes"
    return stored_document(
        result,
        f"{result.experiment}: a locked judge, asked again",
        f"{result.experiment} · {result.judge} against its lock of {result.locked_at} ({result.lock}), on "
        f"{result.items}; {result.gold.in_words}",
        _gate_headline(result),
        _loss(result, visible),
        _items(result, visible),
        bool(result.probes)
        and section(
            "probes",
            "Is it easier to fool?",
            "The share of the lock's probes that are broken, then and now; paired, Holm over the families.",
            table(
                result.probes,
                {
                    "family": lambda one: one.family,
                    "locked": lambda one: in_percent(one.locked),
                    "now": lambda one: in_percent(one.now),
                    "change, points": lambda one: change_in_points(one.difference),
                    "p (Holm)": lambda one: p_value(one.p_value),
                    "easier": lambda one: "yes" if one.easier else "",
                },
                short=True,
            ),
        ),
        facts=[*_gate_facts(result)],
        notes=(
            f"This gate spent {money(result.usd)} USD, in {passes}.",
            f"Model: locked {model.locked or 'unknown'}, now {', '.join(model.now) or 'unknown'}.",
            *map(sentence, result.notes),
        ),
    )


def _gate_headline(result: GateResult) -> Headline:
    decision, model, why = result.decision, result.model_id, sentence(result.why)
    nothing = unread_headline(result.unread)
    if nothing is not None:
        because, more = fitting(f"So the gate says {decision}.", *nothing.because, *nothing.more, why)
        return replace(nothing, because=because, more=more)
    act = _ACTS[decision]
    if result.model_changed and decision == "pass":
        act = "Go on with this judge, under its new model id."
    again = f"judgecal score --judge {shlex.quote(result.judge)} --gold {result.gold.set} --no-cache"
    following = {
        "pass": shlex.join(["judgecal", "judge", "answers.csv", "--lock", result.lock, "-o", "judged.csv"]),
        "fail": again,
        # without a bound, or where all calls say the same, no further pass helps
        "inconclusive": _more_labels(result.gold)
        if result.loss_below is None or (result.odd_one_out and not result.odd_one_out.n_differ)
        else f"judgecal gate --lock {result.lock} --repeats-max {2 * result.repeats_max}",
        "changed": again,
    }
    changed = f"The model changed: the provider now answers as {', '.join(model.now)}, not {model.locked}."
    smallest = result.smallest_detectable
    amount = "" if smallest is None else amount_of(smallest, result.metric, result.gold.scale)
    unknown = sentences(  # what weighs most comes first
        decision == "inconclusive"
        and result.repeats < result.repeats_max
        and "What further passes would show: the budget ended before they were made.",
        bool(amount)
        and f"Whether there is a drift below {amount} of {result.metric}: these items reveal one of "
        "that size in four runs of five, a smaller one less often.",
        result.gold.labels_by == "project" and OWN_LABELS,
        "How it judges what production sends now: these items are the ones that it was locked on.",
    )
    because, more = fitting(*sentences(result.model_changed and changed, why))
    return Headline(decision, act, because, unknown, following[decision], more=more)


def _more_labels(gold: GoldSummary) -> str:
    """The cheapest way to more labels: those that ties hold up, else a sheet."""
    return (
        f"judgecal gold label {gold.set} --adjudicate"
        if gold.n_tied
        else f"judgecal gold sheet {gold.set} -o sheet.csv"
    )


def _gate_facts(result: GateResult) -> Iterator[Fact]:
    """The loss; who answers: how far the calls of now lie from those of the lock, beside what chance gives;
    flips against the noise at lock time, of a scale without a mark changes against it.
    """
    metric, scale, odd = result.metric, result.gold.scale, result.odd_one_out
    through, raw, bound = "", "", ""
    if result.raw_difference is not None:
        through = " through the lock's calibration map"
        raw = f"; {change_of(result.raw_difference, metric, scale)} of the raw verdicts"
    if result.loss_below is not None:
        below = amount_of(max(result.loss_below, 0.0), metric, scale)
        bound = f"; the loss stays below {below} (one-sided)"
    yield Fact(
        change_of(result.difference, metric, scale),
        f"difference in {metric}{through}, now - locked, at level {result.level:.4g}, margin "
        f"{amount_of(result.margin, metric, scale)}{bound}{raw}.",
    )
    if odd is not None and odd.between is not None:
        shown = "no other judge is shown"
        if odd.changed:
            shown = "another judge is shown"
        elif odd.doubtful:
            shown = "that is rare, but it does not prove another judge"
        far = f"{odd.between:.3g}" if odd.graded else percent(odd.between, 1)
        says = (
            f"{odd.in_words}; {count(odd.n_differ)} of {count(odd.n)} items have calls that differ, p at "
            f"most {odd.p_at_most:.1g}: {shown}."
        )
        if not odd.n_differ:
            far, says = (
                "0",
                (f"all {count(odd.n)} items got the same verdict from every call, at lock time and now."),
            )
        yield Fact(far, f"odd one{'s' * (not odd.n_differ)} out: {says}")

    def share_or_why(share: Estimate) -> str:
        return f"none ({share.reason})" if share.value is None else in_percent(share)

    rate, noise, same = result.flip_rate, result.noise, result.noise_unchanged
    changed, calls = (f"{share_or_why(result.changed)} of raw verdicts changed", f" ({_calls(result)})")
    if rate.value is None:
        floor = f"none ({same.reason})" if same.value is None else percent(1.0 - same.value, 1) + calls
        yield Fact("No flip rate", f"({rate.reason}); {changed}, noise floor {floor}.")
        return
    floor, against = share_or_why(noise) + calls * (noise.value is not None), ""
    if rate.low is not None and noise.high is not None:
        against = ": above it" if rate.low > noise.high else ": not shown to be above it"
    says = (
        f"flip rate of {rate.n} items compared with the locked verdicts, noise {floor}{against}; {changed}."
    )
    yield Fact(in_percent(rate), says)


def _calls(result: GateResult) -> str:
    calls = result.noise_calls
    return f"{count(calls.n_items)} items called {count(calls.n_calls)} times at lock time"


def _loss(result: GateResult, visible: Collection[str]) -> Section:
    metric, scale, rows = result.metric, result.gold.scale, result.unscored_judgements
    expected, shares = result.gold.n_items * max(1, result.repeats), result.unscored
    sides = [("now − locked", result.difference, True)]
    if rows:
        sides.append(("without unscored items", result.complete_case, False))
    if result.raw_difference is not None:
        sides.append(("of the raw verdicts", result.raw_difference, False))
    losing = "right" if metric_facts(metric).direction == "less" else "left"
    kinds = failures_in_words(Counter(row.kind for row in rows))
    ids = list(dict.fromkeys(row.item_id for row in rows))
    unscored = sentences(  # how many, why, and what stands without them
        bool(rows or shares.locked)
        and f"No verdict: {percent(shares.locked, 1)} of the calls at lock time, "
        f"{percent(shares.now, 1)} now; the gate fails once a rise above "
        f"{percent(shares.tolerance)} is shown.",
        bool(rows)
        and f"{'MANY UNSCORED: ' * (len(rows) > _MANY_UNSCORED * expected)}{len(rows)} of {expected} "
        f"judgements have no verdict ({kinds}) and count as {result.gold.unscored_counts_as}; "
        "without their items the difference is "
        f"{change_of(result.complete_case, metric, scale)}: "
        f"{listed(ids, _SHOWN, sealed=frozenset(ids) - {*visible})}.",
    )
    return section(
        "loss",
        "Difference against the margin",
        "The gate passes where the loss is shown to end before the dashed margin of "
        f"{amount_of(result.margin, metric, scale)}. It fails where over two passes the line lies {losing} "
        f"of that margin, or {losing} of 0 with a loss beyond the margin that the changes common to all "
        f"passes confirm. We made {count(result.repeats)} of at most {count(result.repeats_max)} passes, "
        "without stored answers or an earlier journal; means are of single calls. An item without a "
        f"verdict counts as {result.gold.unscored_counts_as}; intervals are by question.",
        change_picture(sides, metric, unit=scale, margin=result.margin),
        result.difference.low is None
        and bool(result.difference.reason)
        and f"No interval: {result.difference.reason}.",
        (Paragraph(text, short=True) for text in unscored),
        _metrics(result),
    )


def _metrics(result: GateResult) -> Grid:
    """The deciding metric and those beside it, all through the lock's map where that decides; then raw."""
    leading, mapped, scale = result.metric, bool(result.now_calibrated), result.gold.scale
    then, now = (result.locked_calibrated, result.now_calibrated) if mapped else (result.locked, result.now)
    names = [name for name in dict.fromkeys([leading, *rows_of(now)]) if name in now]
    rows = [(name, name, then[name], now[name]) for name in names]
    if mapped:
        rows.append((f"{leading}, raw", leading, result.locked[leading], result.now[leading]))
    level = f"({100 * result.now[leading].level:.4g}% interval)"
    return table(
        rows,
        {
            "metric": lambda row: row[0],
            f"locked {level}": lambda row: of_metric(row[2], row[1], scale),
            f"now {level}": lambda row: of_metric(row[3], row[1], scale),
            "n": lambda row: f"{row[3].n}/{row[3].n_expected}",
            "unscored": lambda row: count(row[3].n_unscored),
        },
        title="Then and now" + " through the lock's calibration map" * mapped,
        chosen=leading,
        short=True,
    )


def _items(result: GateResult, visible: Collection[str]) -> Section:
    """How many flipped, and those that may be shown, with the verdicts then and now; an endless id is cut."""
    flipped, n = [item for item in result.flipped if item.item_id in visible], len(result.flipped)

    def mean(verdicts: Sequence[float | str | None]) -> float:
        known = [verdict for verdict in verdicts if isinstance(verdict, int | float)]
        return sum(known) / len(known) if known else math.nan

    def shortly(item: FlippedItem) -> str:
        name = item.item_id if len(item.item_id) <= _LONGEST else f"{item.item_id[:_LONGEST]}..."
        return f"{name} ({' '.join(map(_in_words, item.locked))} -> {' '.join(map(_in_words, item.now))})"

    did = "changed" if result.flip_rate.value is None else "flipped"
    passes = " in some pass" if result.repeats > 1 else ""
    n_sealed = n - len(flipped)
    sealed = f"{count(n_sealed)} of test, which we count and never show" if n_sealed else ""
    named = "; ".join(filter(None, (listed(list(map(shortly, flipped)), _SHOWN), sealed)))
    # how many items' verdicts went up and how many down on average, where they are numbers
    moved = [mean(item.now) - mean(item.locked) for item in result.flipped]
    up, down = sum(by > 0 for by in moved), sum(by < 0 for by in moved)
    sides = f" ({count(up)} went up, {count(down)} down)" if up or down else ""
    return section(
        "flipped",
        "Flipped items",
        f"What changed: {count_of(n, 'item')} with another verdict than at lock time{sides}. Changes all "
        "to one side look like drift, changes to both sides like noise.",
        Paragraph(f"{count_of(n, 'item')} {did}{passes}: {named}.", short=True) if n else "No item flipped.",
        bool(n and not visible)
        and "The gold set has changed or is not here, so we treat every item as a test item and show none.",
    )


# --- migrate


def migrate_document(result: MigrateResult) -> Document:
    """What a migration comes to: the paired difference, and what would change in production."""
    old, new, (whom, _) = result.old, result.new, raters_in_words(result.gold.labels_by)
    says = {
        "pass": f"{new} may take the place of {old}.",
        "fail": f"{new} may not take the place of {old}.",
        "inconclusive": f"We cannot tell whether {new} may take the place of {old}.",
    }
    following = f"judgecal gate --lock {result.lock}"
    if result.new_lock:
        following = f"judgecal gate --lock {result.new_lock}"
    elif result.decision == "pass":
        following = f"judgecal migrate --lock {result.lock} --to '{new}' -o new.lock.json"
    elif result.decision == "inconclusive":
        sheet = None if result.on_rows is None else sheet_command(result.experiment, result.on_rows)
        following = sheet or result.go_on or _more_labels(result.gold)
    unknown = sentences(  # what weighs most comes first
        result.churn is None
        and "How many verdicts change in production: give recent answers without labels (--on FILE). Labels "
        "are then needed only where the two judges differ.",
        result.gold.labels_by == "project" and OWN_LABELS,
        "Whether the new judge is noisier than the old one: each was called once on an item.",
    )
    about_as_well = f"It is shown to agree with {whom} about as well." * (result.decision == "pass")
    because, more = fitting(about_as_well, sentence(result.why))
    items = f"{result.n_called_again} items: we called the old judge for them"
    return stored_document(
        result,
        f"{result.experiment}: replacing a locked judge",
        f"{result.gold.in_words}. An item without a verdict counts as {result.gold.unscored_counts_as}.",
        Headline(result.decision, says[result.decision], because, unknown, following, more=more),
        _difference(result),
        rows_section(result.on_rows, result.metric, result.gold.scale),
        _churn(result.churn) if result.churn else None,
        notes=sentences(
            bool(result.n_called_again) and f"The lock holds no verdict for {items}.",
            map(sentence, result.notes),
            f"new lock: {result.new_lock}"
            if result.new_lock
            else result.new_lock_reason and sentence(result.new_lock_reason),
        ),
    )


def _difference(result: MigrateResult) -> Section:
    metric, scale, whole = result.metric, result.gold.scale, result.all_items
    sides = {
        "test: can fail it": OldAndNew(result.difference, result.old_value, result.new_value),
        "all: can pass it": whole,
    }

    def change(of: Estimate) -> str:
        """Without its interval where no item differs, which would show nothing of what others may do."""
        return "no item differs" if of.low == of.high == 0.0 else change_of(of, metric, scale)

    values = table(
        sides.items(),
        {
            metric: lambda side: side[0],
            f"new - old ({100 * result.difference.level:.4g}% interval)": lambda side: change(
                side[1].difference
            ),
            "old": lambda side: of_metric(Estimate(side[1].old_value), metric, scale),
            "new": lambda side: of_metric(Estimate(side[1].new_value), metric, scale),
            "n": lambda side: f"{side[1].difference.n}/{side[1].difference.n_expected}",
        },
        short=True,
    )
    known = [
        (name, side.difference, side is not whole)
        for name, side in sides.items()
        if side.difference.value is not None
    ]
    lines = (
        sentence(result.test_look),
        f"old: {result.old} ({result.lock}); new: {result.new}",
        f"On test {points_of(result.flip_rate)}% of the items change sides.",
    )
    return section(
        "difference",
        "New against old",
        "The new judge passes where its loss is shown to end before the dashed margin of "
        f"{amount_of(result.margin, metric, scale)} on all items that neither trained nor chose it. Train "
        "and dev chose the old judge, which only makes it harder to pass; only test can fail the new one.",
        values,
        bool(known) and change_picture(known, metric, unit=scale, margin=result.margin),
        (Paragraph(line, short=True) for line in lines),
    )


def _churn(churn: ChurnResult) -> Section:
    flips, to_fail, to_pass = churn.changes.flip_rate, churn.changes.pass_to_fail, churn.changes.fail_to_pass
    says = f"Churn on {churn.file}: {flips.reason}."
    if flips.value is not None:
        says = (
            f"Churn on {churn.file}: {points_of(flips)}% of {flips.n} rows change sides "
            f"({to_fail} from pass to fail, {to_pass} from fail to pass)."
        )
    missing = sentences(
        bool(churn.n_lacking)
        and f"{churn.n_lacking} rows lack what the judges ask for; these numbers leave them out.",
        bool(churn.n_unscored)
        and f"{count_of(churn.n_unscored, 'verdict')} could not be had; these numbers leave their rows out.",
    )
    return section(
        "churn",
        "What changes in production",
        "What moves when you replace the judge, and by how much.",
        Paragraph(says, short=True),
        (Paragraph(text, short=True) for text in missing),
    )
