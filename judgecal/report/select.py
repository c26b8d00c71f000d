"""The document of `select`: who is chosen and why, every judge with its bound, what test says, the lock."""

from __future__ import annotations

from collections.abc import Iterator

from judgecal.records import Estimate, Headline
from judgecal.report.charts import Axis, axis_of, in_percent, interval_picture, metric_row, metric_text
from judgecal.report.document import Document, Paragraph, Section, section, stored_document, table
from judgecal.report.judges_headline import (
    CANNOT_TELL,
    always,
    beside_free,
    naming_unread,
    nobody,
    not_told_apart,
    on_train_and_dev,
    raters_in_words,
    reach_in_words,
    unread_headline,
    use,
)
from judgecal.report.wording import (
    DASH,
    OWN_LABELS,
    between,
    count,
    fitting,
    gold_in_words,
    money,
    seconds,
    sentence,
    sentences,
)
from judgecal.selection.select_result import SelectResult
from judgecal.stats.metrics import amount_of, metric_facts

_OUT = ("over the caps", "not above the floor", "below the floor", "not confirmed")


def select_document(result: SelectResult) -> Document:
    """Lay out a SelectResult, the judge chosen and confirmed, as a Document."""
    gold = result.gold
    return stored_document(
        result,
        f"{result.experiment}: a judge chosen",
        f"Chosen from {result.chosen_from} on train and dev; {gold_in_words(gold)}. An item without a "
        f"verdict counts as {gold.unscored_counts_as}.",
        unread_headline(result.unread) or naming_unread(_headline(result), result.unread),
        _judges(result),
        _lock(result),
        notes=(
            *map(sentence, result.notes),
            f"Decisions taken on the test labels of {gold.set} so far: {result.test_looks}.",
            f"This selection spent {money(result.usd)} USD.",
        ),
    )


def _headline(result: SelectResult) -> Headline:
    """What `judges_headline` says of the judge, and what test says of its agreement."""
    gold, pick, check = result.gold, result.choice, f"judgecal gold check {result.gold.set}"
    if result.refused is not None:
        what = f"Do not use {result.refused.judge}: test does not bear out what chose it."
        because, more = fitting(sentence(result.refused.why), *_reached(result))
        return Headline("none", what, because, next=check, chip="none", more=more)
    held = [judge for judge in result.judges if judge.verdict != "over the caps"]
    report, where = (
        f"judgecal report {result.chosen_from}",
        on_train_and_dev(gold.n_groups) * (not gold.n_test_items),
    )
    if pick is None and held:
        return Headline("too few", CANNOT_TELL, (sentence(result.why),), next=check)
    if pick is None:
        return Headline(
            "none", "Choose nobody.", (sentence(result.why),), next=f"{report} --full", chip="none"
        )
    if result.chosen is None:
        kind = next(judge.kind for judge in result.judges if judge.judge == pick.best)
        what, reasons, following = nobody(pick, gold, kind, always(pick.floor.judge, gold.scale), len(held))
        why = "--allow-below-floor chooses anyway." if pick.too_few else sentence(result.why)
        because, more = fitting(*reasons, why, *beside_free(pick, where))
        return Headline(pick.kind, what, because, next=following, chip=pick.kind, more=more)
    chip, what = use(result.chosen, result.stand_in, result.margin, gold.noun)
    raters = raters_in_words(gold.labels_by)[1]
    if pick.kind == "none":
        chip, what = "none", f"{result.chosen} was taken, though not shown to beat the best constant."
    elif pick.too_few:
        chip, what = "too few", f"{result.chosen} was taken, on too few questions to tell."
    among, rated = "", list(result.stand_in.raters.values()) if result.stand_in else []
    if rated and _leads(result):  # on the items of the experiment that raters share
        people, judge = between([rater.person for rater in rated]), between([rater.judge for rater in rated])
        items = "train and dev" if gold.split == "open" else "all splits together"
        among = f"On {items}, {raters} reach {people} with each other, {judge} with it."
    chooses = pick.kind in ("use", "tied")
    beaten = chooses and pick.free and not pick.free.shown
    because, more = fitting(
        *sentences(
            bool(result.doubt) and sentence(f"Test does not confirm it: {result.doubt}"),
            _reached(result),
            bool(beaten) and f"It is not shown to beat the free {pick.free.judge if pick.free else ''}.",
            among,
            pick.too_few,
            chooses and not_told_apart(pick, where),
            chooses and beside_free(pick, where),
            sentence(result.why),
        )
    )
    cheaper = f"about {result.more_questions or 0:,} more questions would show it."
    unknown = sentences(  # what weighs most comes first
        gold.labels_by == "project" and OWN_LABELS,
        result.more_questions is not None and f"Whether a cheaper judge is good enough: {cheaper}",
        result.lock is None and "How often the judge contradicts itself: it was not called again.",
    )
    following = f"{report} --open" if result.lock is None else f"judgecal gate --lock {result.lock}"
    return Headline(pick.kind, what, because, unknown, following, chip, more)


def _reached(result: SelectResult) -> Iterator[str]:
    """Its agreement on test; of the metric of all headlines with the floor of the same items."""
    on, metric = result.confirmed_on, result.metric
    if on is None:
        return
    value, mapped = _confirmed(result)
    unscored = f", {count(value.n_unscored)} unscored" * (value.n_unscored > 0)
    items = f"On test ({count(on.n_items)} items{unscored})"
    if not _leads(result) or result.floor is None:
        yield f"{items} its {metric} is {metric_text(value, metric, result.gold.scale)}."
        return
    free = ("saying the same every time", result.floor.value, None)
    yield from reach_in_words(f"{items} it", value, result.gold, mapped=mapped, free=free)


def _leads(result: SelectResult) -> bool:
    return result.metric == ("accuracy" if result.gold.scale == "nominal" else "macro_agreement")


def _confirmed(result: SelectResult) -> tuple[Estimate, bool]:
    """The metric on test, and whether it is that of calibrated verdicts."""
    through = result.confirmed_calibrated if metric_facts(result.metric).calibrated else {}
    return through.get(result.metric, result.confirmed[result.metric]), bool(through)


def _judges(result: SelectResult) -> Section:
    metric, scale = result.metric, result.gold.scale
    ranked = sorted(result.judges, key=lambda judge: (judge.loss is None, judge.loss or 0.0))

    def amount(size: float | None) -> str:
        return DASH if size is None else amount_of(size, metric, scale)

    judges = table(
        ranked,
        {
            "judge": lambda judge: judge.judge,
            f"{metric} ({100 * result.level:.4g}% interval)": lambda judge: metric_text(
                judge.value, metric, scale
            ),
            "loss": lambda judge: amount(judge.loss),
            "at most": lambda judge: amount(judge.loss_at_most),
            "verdict": lambda judge: judge.verdict,
            "USD/1k": lambda judge: money(judge.usd_per_1k),
            "p95": lambda judge: seconds(judge.p95_s),
            "n": lambda judge: f"{judge.n:,}/{judge.n_expected:,}",
            "unscored": lambda judge: count(judge.n_unscored),
        },
        chosen=result.chosen,
        short=True,
    )
    rows = [
        metric_row(
            judge.judge,
            judge.value,
            metric,
            scale,
            strong=judge.verdict == "chosen",
            hollow=judge.verdict in _OUT,
        )
        for judge in ranked
        if judge.value.value is not None
    ]
    bounds = (
        f" At most: the loss against whoever is truly best, at level {result.level:.4g} for all judges at "
        f"once ({result.bounds}). The margin is {amount_of(result.margin, metric, scale)}."
    )
    return section(
        "judges",
        "Judges on open items",
        "We take the cheapest judge that is shown to lose less than the "
        f"margin.{bounds if result.bounds else ''}",
        judges,
        bool(rows) and interval_picture(rows, Axis(axis_of(metric))),
        (Paragraph(f"{driver}.", short=True) for driver in result.driven),
        (f"Not taken: {judge.judge}: {judge.why}." for judge in result.rejected),
    )


def _lock(result: SelectResult) -> Section:
    noise, calibration, written = (
        result.noise,
        result.calibration,
        f"we wrote no lock: {result.lock_reason}",
    )
    first, calls, mapped = sentence(written), "", ""
    if result.lock is not None and noise is not None:
        first = f"Locked in {result.lock} (sha256 {str(result.lock_sha256)[:12]})."
        flips, reason = in_percent(noise.flip_rate), noise.flip_rate.reason
        because = f" ({reason})" if reason else ""
        calls = f"Noise: {noise.n_calls:,} calls of {noise.n_items:,} items; flip rate {flips}{because}."
        if calibration is not None:
            mapped = f"The lock holds its calibration map, fitted on {calibration.fitted_on}."
    return section(
        "lock",
        "The lock",
        "gate, judge and migrate read the lock.",
        Paragraph(first, short=True),
        calls,
        mapped,
        result.test_look and Paragraph(sentence(result.test_look), short=True),
    )
