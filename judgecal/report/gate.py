"""The document of `gate`: pass, fail, changed or cannot tell; who answers, the loss, flips, the flipped
items."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from judgecal.errors import listed
from judgecal.goldset import GoldSet
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Document,
    Fact,
    Folded,
    Paragraph,
    Record,
    Section,
    Table,
    from_summary,
    notes_section,
    table,
)
from judgecal.report.intervals import Axis, change_of, change_picture, in_percent, of_metric, share_blocks
from judgecal.report.judges_headline import unread_headline
from judgecal.report.wording import AS_WRONG, OWN_LABELS, glossary, sentence, sentences
from judgecal.selection.gate import FlippedItem, GateResult
from judgecal.stats.metrics import amount_of, metric_facts, rows_of

Texts = Mapping[str, tuple[str, str]]
"""Id -> question and answer, of the items that may be shown."""


_ACTS = {
    "pass": "go on with this judge.",
    "fail": "stop using this judge.",
    "inconclusive": "cannot tell whether the judge has drifted.",
    "changed": "another judge answers under this name.",
}
_SHOWN = 10  # flipped items; the others unfold
_LONGEST = 80  # characters of an id in a sentence
_MANY_UNSCORED = 0.10  # share of the judgements
_FLIP_RATE = "How often a verdict falls on the other side of the lock's cut than the locked one."
_NOISE = "How often two calls of the judge on one item did so at lock time: what flips without any drift."
_WORDS = (("flip rate", _FLIP_RATE), ("noise", _NOISE), "odd one out", "margin", "locked", AS_WRONG)


def texts_of(gold: GoldSet) -> Texts:
    """Those of a gold set: all but the items of test."""
    return {item.item_id: (item.asked, item.answer) for item in gold.select("open")}


def gate_document(result: GateResult, texts: Texts) -> Document:
    """What a gate found; items that are not among the `texts` are counted and not shown."""
    return Document(
        title=f"{result.experiment}: a locked judge judged anew",
        about=(
            f"{result.experiment} · {result.judge} against its lock of {result.locked_at} ({result.lock}), "
            f"on {result.items}; {result.gold.in_words}"
        ),
        headline=_headline(result),
        facts=[_loss_fact(result), *_odd_fact(result), _flip_fact(result)],
        sections=[
            _flips(result),
            _loss(result, texts),
            _items(result, texts),
            *notes_section(_notes(result), words=glossary(*_WORDS)),
        ],
        **from_summary(result),
    )


def verdict_in_words(verdict: float | str | None) -> str:
    """`85`, `yes`, or `unscored`."""
    if verdict is None:
        return "unscored"
    return verdict if isinstance(verdict, str) else f"{verdict:g}"


def _headline(result: GateResult) -> Headline:
    decision, model, why = result.decision, result.model_id, sentence(result.why)
    nothing = unread_headline(result.unread)
    if nothing is not None:
        return replace(nothing, because=(*nothing.because, f"So the gate says {decision}: {why}"))
    act, now = f"{decision.upper()}: {_ACTS[decision]}", ", ".join(model.now)
    if result.model_changed and decision == "pass":
        act = "PASS: go on with this judge under its new model id; no change of its verdicts is shown."
    following = {
        "pass": f"judgecal plan --lock {shlex.quote(result.lock)}",
        "fail": f"judgecal report {result.experiment} --open",
        "inconclusive": f"judgecal gate --lock {result.lock} --repeats-max {2 * result.repeats_max}"
        if result.loss_below is not None
        else f"judgecal gold sheet {result.gold.set} -o sheet.csv",  # without a bound no further pass helps
        "changed": f"judgecal score --judge {result.judge} --gold {result.gold.set} --no-cache",
    }
    changed = f"MODEL CHANGED: the provider now answers as {now}; locked was {model.locked}."
    because = sentences(result.model_changed and changed, why)
    return Headline(decision, act, because, _unknown(result), following[decision])


def _unknown(result: GateResult) -> tuple[str, ...]:
    """What weighs most comes first."""
    rate, noise, drift = result.flip_rate, result.noise, ""
    if result.smallest_detectable is not None:
        smallest = amount_of(result.smallest_detectable, result.metric, result.gold.scale)
        drift = (
            f"Whether there is a drift below {smallest} of {result.metric}: these items show one of that "
            "size in four runs of five, a smaller one more rarely."
        )
    within = bool(rate.value) and rate.low is not None and noise.high is not None and rate.low <= noise.high
    return sentences(
        result.decision == "inconclusive"
        and result.repeats < result.repeats_max
        and "What further passes would show: the budget ended before they were made.",
        drift,
        within
        and "Whether the flips are more than the judge's noise at lock time: they are not shown to be.",
        result.odd_one_out is None
        and "Whether another judge answers: that takes three calls of an item, at lock time and now "
        "together.",
        result.model_id.locked is None and "Whether the provider changed the model: the lock names none.",
        result.gold.labels_by == "project" and OWN_LABELS,
        "How it judges what production sends now: these items are the ones that it was locked on.",
    )


def _share(share: Estimate) -> str:
    return f"none ({share.reason})" if share.value is None else in_percent(share)


def _flip_fact(result: GateResult) -> Fact:
    """Flips against the noise at lock time; of a scale without a mark, changes against it."""
    rate, noise = result.flip_rate, result.noise
    changed = f"{_share(result.changed)} of raw verdicts changed at all"
    if rate.value is None:
        same = result.noise_unchanged
        floor = f"none ({same.reason})"
        if same.value is not None:
            floor = f"{numbers.percent(1.0 - same.value, 1)} ({_calls(result)})"
        return Fact("No flip rate", f"({rate.reason}); {changed}, noise floor {floor}.")
    floor = f"{_share(noise)} ({_calls(result)})" if noise.value is not None else _share(noise)
    against = ""
    if rate.low is not None and noise.high is not None:
        against = ": above it" if rate.low > noise.high else ": not shown to be above it"
    return Fact(
        in_percent(rate),
        f"flip rate of {rate.n} items against the locked verdicts, noise floor {floor}{against}; {changed}.",
    )


def _calls(result: GateResult) -> str:
    calls = result.noise_calls
    return f"{numbers.count(calls.n_items)} items called {numbers.count(calls.n_calls)} times at lock time"


def _odd_fact(result: GateResult) -> Iterator[Fact]:
    """Who answers: how far the calls of now lie from those of the lock, beside what chance gives."""
    odd = result.odd_one_out
    if odd is None or odd.between is None:
        return
    if not odd.n_differ:
        equal = f"the calls of all {numbers.count(odd.n)} items are equal, at lock time and now"
        yield Fact("0", f"odd ones out: {equal}.")
        return
    shown = "no other judge is shown"
    if odd.changed:
        shown = "another judge is shown"
    elif odd.doubtful:
        shown = "that is rare, and no proof of another judge"
    yield Fact(
        f"{odd.between:.3g}" if odd.graded else numbers.percent(odd.between, 1),
        f"odd one out: {odd.in_words}; {numbers.count(odd.n_differ)} of {numbers.count(odd.n)} items have "
        f"calls that are not all equal, p at most {odd.p_at_most:.1g}: {shown}.",
    )


def _loss_fact(result: GateResult) -> Fact:
    metric, scale = result.metric, result.gold.scale
    through, raw = "", ""
    if result.raw_difference is not None:
        through = " through the lock's calibration map"
        raw = f"; {change_of(result.raw_difference, metric, scale)} of the raw verdicts"
    bound = ""
    if result.loss_below is not None:
        below = amount_of(max(result.loss_below, 0.0), metric, scale)
        bound = f"; the loss stays below {below} (one-sided)"
    return Fact(
        change_of(result.difference, metric, scale),
        f"difference in {result.metric}{through}, now - locked, at level {result.level:.4g}, margin "
        f"{amount_of(result.margin, metric, scale)}{bound}{raw}.",
    )


def _flips(result: GateResult) -> Section:
    shares = [
        ("flipped since the lock", result.flip_rate, True),
        ("noise at lock time", result.noise, False),
        ("raw verdict changed at all", result.changed, False),
    ]
    caption = (
        "Serves the question whether there is more than noise: flips that lie within the noise are what "
        f"this judge does on any day. Noise was taken from {_calls(result)}. The lock's cut tells a flip; a "
        "change of the verdict on one side of it is none."
    )
    blocks = share_blocks(shares, Axis("% of items", low=0.0), of=" of items")
    return Section("flips", "Flips against noise", caption, blocks)


def _loss(result: GateResult, texts: Texts) -> Section:
    scale = result.gold.scale
    sides = [("now − locked", result.difference, True)]
    if result.unscored_judgements:
        sides.append(("without unscored items", result.complete_case, False))
    if result.raw_difference is not None:
        sides.append(("of the raw verdicts", result.raw_difference, False))
    losing = "right" if metric_facts(result.metric).direction == "less" else "left"
    caption = (
        "Serves the decision: pass where the loss is shown to end before the dashed margin of "
        f"{amount_of(result.margin, result.metric, scale)}, fail where over two passes the line lies "
        f"{losing} of that margin, or {losing} of 0 with a loss beyond the margin that the changes common "
        f"to all passes bear out. {numbers.count(result.repeats)} of at most "
        f"{numbers.count(result.repeats_max)} passes were made, without stored answers or an earlier "
        f"journal; means are of single calls. An unscored item counts as {result.gold.unscored_counts_as}; "
        "intervals are by question."
    )
    blocks: list[Block] = [change_picture(sides, result.metric, unit=scale, margin=result.margin)]
    if result.difference.low is None and result.difference.reason:
        blocks.append(Paragraph(f"No interval: {result.difference.reason}."))
    blocks += [Paragraph(text, short=True) for text in _unscored(result, texts)]
    return Section("loss", "Difference against the margin", caption, [*blocks, _metrics(result)])


def _unscored(result: GateResult, texts: Texts) -> Iterator[str]:
    """How many, why, and what stands without them."""
    rows, expected = result.unscored_judgements, result.gold.n_items * max(1, result.repeats)
    shares = result.unscored
    if rows or shares.locked:
        yield (
            f"Unscored: {numbers.percent(shares.locked, 1)} of the calls at lock time, "
            f"{numbers.percent(shares.now, 1)} now; a rise shown to exceed "
            f"{numbers.percent(shares.tolerance)} fails."
        )
    if not rows:
        return
    kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(row.kind for row in rows).most_common())
    ids = list(dict.fromkeys(row.item_id for row in rows))
    head = "MANY UNSCORED: " if len(rows) > _MANY_UNSCORED * expected else ""
    alone = change_of(result.complete_case, result.metric, result.gold.scale)
    yield (
        f"{head}{len(rows)} of {expected} judgements are unscored ({kinds}) and count as "
        f"{result.gold.unscored_counts_as}; without their items the difference is {alone}: "
        f"{listed(ids, _SHOWN, sealed=frozenset(ids) - texts.keys())}."
    )


def _metrics(result: GateResult) -> Table:
    """The metric of the decision and those beside it, all through the lock's map where that decides; then
    raw."""
    leading, mapped, scale = result.metric, bool(result.now_calibrated), result.gold.scale
    then, now = (result.locked_calibrated, result.now_calibrated) if mapped else (result.locked, result.now)
    names = [name for name in dict.fromkeys([leading, *rows_of(now)]) if name in now]
    rows = [(name, name, then[name], now[name]) for name in names]
    if mapped:
        rows.append((f"{leading}, raw", leading, result.locked[leading], result.now[leading]))
    level = f"[{result.now[leading].level:.4g}]"
    return table(
        rows,
        {
            "metric": lambda row: row[0],
            f"locked {level}": lambda row: of_metric(row[2], row[1], scale),
            f"now {level}": lambda row: of_metric(row[3], row[1], scale),
            "n": lambda row: f"{row[3].n}/{row[3].n_expected}",
            "unscored": lambda row: numbers.count(row[3].n_unscored),
        },
        title="Then and now" + " through the lock's calibration map" * mapped,
        chosen=leading,
        short=True,
    )


def _items(result: GateResult, texts: Texts) -> Section:
    flipped, n = [item for item in result.flipped if item.item_id in texts], len(result.flipped)
    blocks: list[Block] = [Paragraph("No item flipped.")]
    if n:
        blocks = [Paragraph(_flipped(result, flipped), short=True)]
    if n and not texts:
        gone = "The gold set is gone, has changed or is not at hand, so every item counts as one of test."
        blocks.append(Paragraph(gone))
    records = []
    for item in flipped:
        then, now = (", ".join(map(verdict_in_words, verdicts)) for verdicts in (item.locked, item.now))
        question, answer = texts[item.item_id]
        facts = [("Question", question), ("Answer", answer), ("Locked", then), ("Now", now)]
        records.append(Record(item.item_id, facts))
    blocks += records[:_SHOWN]
    if records[_SHOWN:]:
        blocks.append(Folded(f"{numbers.count(len(records) - _SHOWN)} more", records[_SHOWN:]))
    # how many items' verdicts went up and how many down on average, where they are numbers
    moved = [_mean(item.now) - _mean(item.locked) for item in result.flipped]
    up, down = sum(by > 0 for by in moved), sum(by < 0 for by in moved)
    sides = f" ({numbers.count(up)} went up, {numbers.count(down)} down)" if up or down else ""
    caption = (
        f"Serves the search for the cause: {numbers.count_of(n, 'item')} judged otherwise than when the "
        f"judge was locked{sides}. Changes all to one side look like a drift, to both sides like noise."
    )
    return Section("items", "Flipped items", caption, blocks)


def _flipped(result: GateResult, shown: Sequence[FlippedItem]) -> str:
    """How many, and the first that may be shown, with the verdicts then and now; an endless id is cut."""
    did = "changed" if result.flip_rate.value is None else "flipped"
    passes = " in some pass" if result.repeats > 1 else ""
    items = [
        f"{item.item_id if len(item.item_id) <= _LONGEST else item.item_id[:_LONGEST] + '...'} "
        f"({' '.join(map(verdict_in_words, item.locked))} -> {' '.join(map(verdict_in_words, item.now))})"
        for item in shown
    ]
    n_sealed = len(result.flipped) - len(shown)
    sealed = f"{numbers.count(n_sealed)} of test, which are counted and never shown" if n_sealed else ""
    named = "; ".join(filter(None, (listed(items, _SHOWN), sealed)))
    return f"{numbers.count_of(len(result.flipped), 'item')} {did}{passes}: {named}."


def _mean(verdicts: Sequence[float | str | None]) -> float:
    known = [verdict for verdict in verdicts if isinstance(verdict, int | float)]
    return sum(known) / len(known) if known else math.nan


def _notes(result: GateResult) -> list[str]:
    model, passes = result.model_id, f"{result.repeats} of at most {result.repeats_max} passes"
    return [
        f"This gate spent {numbers.money(result.usd)} USD, in {passes}.",
        f"Model: locked {model.locked or 'unknown'}, now {', '.join(model.now) or 'unknown'}.",
        *map(sentence, result.notes),
    ]
