"""The documents of `gate` and `migrate`: has the locked judge drifted, may another one take its place."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from judgecal.experiment.agreement import GoldSummary
from judgecal.experiment.rows import OnRows
from judgecal.records import Estimate, Headline
from judgecal.report.charts import (
    change_in_points,
    change_of,
    change_picture,
    in_percent,
    metric_text,
    points_text,
)
from judgecal.report.document import Document, Fact, Grid, Paragraph, Section, section, stored_document, table
from judgecal.report.judges_headline import raters_in_words, unread_headline
from judgecal.report.wording import (
    DASH,
    OWN_LABELS,
    count,
    failures_in_words,
    fitting,
    gold_in_words,
    money,
    p_value,
    percent,
    sentence,
    sentences,
)
from judgecal.selection.gate import MOST_PASSES, GateResult
from judgecal.selection.migrate import MigrateResult, OldAndNew
from judgecal.selection.rules import UNSCORED_TOLERANCE
from judgecal.stats.metrics import amount_of, metric_facts, rows_of

_ACTS = {
    "pass": "Go on with this judge until the next gate.",
    "fail": "Stop using this judge.",
    "inconclusive": "We cannot tell whether this judge has drifted.",
    "changed": "Another judge answers under this name.",
}


def gate_document(result: GateResult) -> Document:
    """Lay out a GateResult, whether a locked judge drifted, as a Document."""
    return stored_document(
        result,
        f"{result.experiment}: a locked judge, asked again",
        f"{result.experiment} · {result.judge} against its lock of {result.locked_at} ({result.lock}); "
        f"{gold_in_words(result.gold)}",
        _gate_headline(result),
        _loss(result),
        bool(result.probes)
        and section(
            "probes",
            "Is it easier to fool?",
            "The share of the lock's probes that are broken, then and now; paired, Holm over the families.",
            table(
                result.probes,
                {
                    "family": lambda probes: probes.family,
                    "locked": lambda probes: in_percent(probes.locked),
                    "now": lambda probes: in_percent(probes.now),
                    "change, points": lambda probes: change_in_points(probes.difference),
                    "p (Holm)": lambda probes: p_value(probes.p_value),
                    "easier": lambda probes: "yes" if probes.easier else "",
                },
                short=True,
            ),
        ),
        facts=[*_gate_facts(result)],
        notes=(
            f"This gate spent {money(result.usd)} USD, in {count(result.repeats)} of at most "
            f"{MOST_PASSES} passes.",
            f"Model: locked {result.locked_model or 'unknown'}, now {', '.join(result.models) or 'unknown'}.",
            *map(sentence, result.notes),
        ),
    )


def _gate_headline(result: GateResult) -> Headline:
    decision, why = result.decision, sentence(result.why)
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
        "inconclusive": _more_labels(result.gold)
        if result.loss_below is None or result.repeats > 1
        else f"judgecal gate --lock {result.lock}",
        "changed": again,
    }
    models = ", ".join(result.models)
    changed = f"The model changed: the provider now answers as {models}, not {result.locked_model}."
    smallest = result.smallest_detectable
    amount = "" if smallest is None else amount_of(smallest, result.metric, result.gold.scale)
    unknown = sentences(  # what weighs most comes first
        decision == "inconclusive"
        and result.repeats < 2
        and "What further passes would show: they could not be made.",
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
    """The loss; how far the calls of now lie from those of the lock; flips against the noise at lock time."""
    metric, scale, odd = result.metric, result.gold.scale, result.odd_one_out
    through = " through the lock's calibration map" * bool(result.now_calibrated)
    bound = ""
    if result.loss_below is not None:
        below = amount_of(max(result.loss_below, 0.0), metric, scale)
        bound = f"; the loss stays below {below} (one-sided)"
    yield Fact(
        change_of(result.difference, metric, scale),
        f"difference in {metric}{through}, now - locked, at level {result.difference.level:.4g}, margin "
        f"{amount_of(result.margin, metric, scale)}{bound}.",
    )
    if odd is not None and odd.between is not None:
        shows = "another judge is shown" if odd.changed else "no other judge is shown"
        yield Fact(
            f"{odd.between:.3g}" if odd.graded else percent(odd.between, 1),
            f"odd one out: {odd.in_words}; {count(odd.n_differ)} of {count(odd.n)} items have calls that "
            f"differ, p at most {odd.p_at_most:.1g}: {shows}.",
        )

    def share_or_why(share: Estimate) -> str:
        return f"none ({share.reason})" if share.value is None else in_percent(share)

    yield Fact(
        share_or_why(result.flip_rate),
        f"flip rate of {count(result.flip_rate.n)} items compared with the locked verdicts, noise at lock "
        f"time {share_or_why(result.noise)}.",
    )


def _loss(result: GateResult) -> Section:
    metric, scale, shares = result.metric, result.gold.scale, result.unscored
    sides = [("now − locked", result.difference, True)]
    if result.unscored_kinds:
        sides.append(("without unscored items", result.complete_case, False))
    losing = "right" if metric_facts(metric).direction == "less" else "left"
    n, expected = sum(result.unscored_kinds.values()), result.gold.n_items * max(1, result.repeats)
    unscored = sentences(
        bool(n or shares.locked)
        and f"No verdict: {percent(shares.locked, 1)} of the calls at lock time, {percent(shares.now, 1)} "
        f"now; the gate fails once a rise above {percent(UNSCORED_TOLERANCE)} is shown.",
        n > 0
        and f"{count(n)} of {count(expected)} judgements have no verdict "
        f"({failures_in_words(result.unscored_kinds)}) and count as {result.gold.unscored_counts_as}; "
        f"without their items the difference is {change_of(result.complete_case, metric, scale)}.",
    )
    return section(
        "loss",
        "Difference against the margin",
        "The gate passes where the loss is shown to end before the dashed margin of "
        f"{amount_of(result.margin, metric, scale)}. It fails where over two passes the line lies {losing} "
        f"of that margin, or {losing} of 0 with a loss beyond the margin that the changes common to all "
        "passes confirm. No stored answer is taken; means are of single calls, intervals by question.",
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
            f"locked {level}": lambda row: metric_text(row[2], row[1], scale),
            f"now {level}": lambda row: metric_text(row[3], row[1], scale),
            "n": lambda row: f"{row[3].n}/{row[3].n_expected}",
            "unscored": lambda row: count(row[3].n_unscored),
        },
        title="Then and now" + " through the lock's calibration map" * mapped,
        chosen=leading,
        short=True,
    )


# --- migrate


def migrate_document(result: MigrateResult) -> Document:
    """Lay out a MigrateResult as a Document: the paired difference, and what changes in production."""
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
        sheet = result.sheet_command
        following = sheet or result.go_on or _more_labels(result.gold)
    unknown = sentences(  # what weighs most comes first
        result.on_rows is None
        and "How many verdicts change in production: give recent answers without labels (--on FILE). Labels "
        "are then needed only where the two judges differ.",
        result.gold.labels_by == "project" and OWN_LABELS,
        "Whether the new judge is noisier than the old one: each was called once on an item.",
    )
    about_as_well = f"It is shown to agree with {whom} about as well." * (result.decision == "pass")
    because, more = fitting(about_as_well, sentence(result.why))
    return stored_document(
        result,
        f"{result.experiment}: replacing a locked judge",
        f"{gold_in_words(result.gold)}. An item without a verdict counts as "
        f"{result.gold.unscored_counts_as}.",
        Headline(result.decision, says[result.decision], because, unknown, following, more=more),
        _difference(result),
        rows_section(result.on_rows, result.metric, result.gold.scale),
        notes=sentences(
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

    def change(difference: Estimate) -> str:
        """Without its interval where no item differs, which would show nothing of what others may do."""
        return (
            "no item differs"
            if difference.low == difference.high == 0.0
            else change_of(difference, metric, scale)
        )

    values = table(
        sides.items(),
        {
            metric: lambda side: side[0],
            f"new - old ({100 * result.difference.level:.4g}% interval)": lambda side: change(
                side[1].difference
            ),
            "old": lambda side: metric_text(Estimate(side[1].old_value), metric, scale),
            "new": lambda side: metric_text(Estimate(side[1].new_value), metric, scale),
            "n": lambda side: f"{side[1].difference.n}/{side[1].difference.n_expected}",
        },
        short=True,
    )
    measured = [
        (name, side.difference, side is not whole)
        for name, side in sides.items()
        if side.difference.value is not None
    ]
    lines = (
        sentence(result.test_look),
        f"old: {result.old} ({result.lock}); new: {result.new}",
        f"On test {points_text(result.flip_rate)}% of the items change sides.",
    )
    return section(
        "difference",
        "New against old",
        "The new judge passes where its loss is shown to end before the dashed margin of "
        f"{amount_of(result.margin, metric, scale)} on all items that neither trained nor chose it. Train "
        "and dev chose the old judge, which only makes it harder to pass; only test can fail the new one.",
        values,
        bool(measured) and change_picture(measured, metric, unit=scale, margin=result.margin),
        (Paragraph(line, short=True) for line in lines),
    )


def rows_section(on: OnRows | None, metric: str, scale: str) -> Section | None:
    """Return a Section or None, from OnRows (unlabelled rows) or None, a metric's name and a scale's name."""
    if on is None:
        return None
    worst = on.differ.worst_loss

    def number(n: int | None) -> str:
        return DASH if n is None else count(n)

    values = table(
        [on],
        {
            "judges": lambda on: f"{on.reference}, {on.candidate}",
            "rows": lambda on: count(on.differ.n),
            "differ": lambda on: in_percent(on.differ.share),
            "loses at most": lambda _: (
                DASH if worst is None or worst.high is None else amount_of(worst.high, metric, scale)
            ),
            "labels": lambda on: count(on.n_labels),
            "first - second": lambda on: DASH if on.loss is None else change_of(on.loss, metric, scale),
            "needed": lambda on: number(on.labels_needed),
            "at random": lambda on: number(on.labels_at_random),
        },
        short=True,
    )
    return section(
        "rows",
        "Where they differ",
        "Where two judges say the same, neither loses to the other, whatever people say. So labels are best "
        "spent where they differ. Loses at most: the second judge, whatever the labels. Needed: labels for a "
        "decision in four draws of five, drawn mostly where they differ, and drawn at random.",
        values,
        [Paragraph(sentence(on.look), short=True)] if on.look else False,
    )
