"""The document of `select`: who is chosen and why, every judge with its bound, what test says, the lock."""

from __future__ import annotations

from collections.abc import Iterator

from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Document,
    Fact,
    Paragraph,
    Section,
    from_summary,
    notes_section,
    table,
)
from judgecal.report.intervals import Axis, axis_of, in_percent, interval_picture, metric_row, of_metric
from judgecal.report.judges_headline import (
    always,
    beside_free,
    naming_unread,
    nobody,
    not_told_apart,
    raters_in_words,
    reach_in_words,
    unread_headline,
    use,
)
from judgecal.report.wording import AS_WRONG, OWN_LABELS, glossary, sentence
from judgecal.selection.select_result import RejectedJudge, SelectResult
from judgecal.stats.metrics import amount_of, metric_facts

_WORDS = glossary("loss", "at most", "margin", "noise", AS_WRONG)
_OUT = ("over the caps", "not above the floor", "below the floor", "not confirmed")


def select_document(result: SelectResult) -> Document:
    """What a selection comes to."""
    gold, on = result.gold, "all labelled items" if _on_all(result) else "train and dev"
    return Document(
        title=f"{result.experiment}: a judge chosen",
        about=(
            f"Chosen from {result.chosen_from} on {on}; {gold.in_words}. An unscored item counts as "
            f"{gold.unscored_counts_as}."
        ),
        headline=unread_headline(result.unread) or naming_unread(_headline(result), result.unread),
        facts=_facts(result),
        sections=[_judges(result), _lock(result), *notes_section([*_notes(result)], words=_WORDS)],
        **from_summary(result),
    )


def _on_all(result: SelectResult) -> bool:
    """Whether the items that chose the judge measure it too."""
    return result.confirmed_on is not None and result.confirmed_on.split == "all"


def _headline(result: SelectResult) -> Headline:
    """What `judges_headline` says of the judge, and what test says of its agreement."""
    if result.refused is not None:
        return _refused(result, result.refused)
    if result.chosen is None:
        return _nobody(result)
    report, pick, where = f"judgecal report {result.chosen_from} --open", result.choice, _where(result)
    following = report if result.lock is None else f"judgecal gate --lock {result.lock}"
    assert pick is not None  # it comes with a choice
    what = use(result.chosen, result.stand_in, result.margin)
    if pick.kind == "none":
        whom, _ = raters_in_words(result.gold.labels_by)
        what = (
            f"{result.chosen} was taken, though it is not shown to agree with {whom} better than the best "
            "constant."
        )
    elif pick.too_few:
        what = f"{result.chosen} was taken, though questions are too few to tell whom to use."
    few = [pick.too_few] if pick.too_few else []
    doubt = [sentence(f"Test does not confirm it: {result.doubt}")] if result.doubt else []
    chooses = pick.kind in ("use", "tied")
    beside = (*beside_free(pick, where), *not_told_apart(pick, where)) if chooses else ()
    because = (*few, *_reached(result), *_beside_people(result), *doubt, *beside, sentence(result.why))
    return Headline(pick.kind, what, because, tuple(_unknown(result)), following)


def _refused(result: SelectResult, refused: RejectedJudge) -> Headline:
    what = f"Do not use {refused.judge}: test does not bear out what chose it."
    because = (sentence(refused.why), *_reached(result))
    return Headline("none", what, because, next=f"judgecal gold check {result.gold.set}")


def _nobody(result: SelectResult) -> Headline:
    pick, why = result.choice, sentence(result.why)
    if pick is None:
        few = any(one.verdict != "over the caps" for one in result.judges)
        if few:
            what, following = (
                f"Cannot tell whom to use: {result.why}.",
                f"judgecal gold check {result.gold.set}",
            )
            return Headline("too few", what, next=following)
        return Headline(
            "none", f"Choose nobody: {result.why}.", next=f"judgecal report {result.chosen_from} --full"
        )
    kind = next(one.kind for one in result.judges if one.judge == pick.best)
    constant = always(pick.floor.judge, result.gold.scale)
    held = [one for one in result.judges if one.verdict != "over the caps"]
    what, following = nobody(pick, result.gold, kind, constant, len(held))
    why = "--allow-below-floor chooses all the same." if pick.too_few else why
    return Headline(pick.kind, what, (why, *beside_free(pick, _where(result))), next=following)


def _where(result: SelectResult) -> str:
    """On which questions the choice rests, where they are not all."""
    return (
        ""
        if result.gold.n_test_items
        else f" on the {numbers.count(result.gold.n_groups)} questions of train and dev"
    )


def _reached(result: SelectResult) -> Iterator[str]:
    """Its agreement on test, where the metric is the one of all headlines with the floor of the same
    items."""
    on, metric = result.confirmed_on, result.metric
    if on is None:
        return
    found, mapped = _confirmed(result)
    where = "the items that chose it" if _on_all(result) else "test"
    items = f"On {where} ({numbers.count(on.n_items)} items, {numbers.count(found.n_unscored)} unscored)"
    if not _leads(result) or result.floor is None:
        yield f"{items} its {metric} is {of_metric(found, metric, result.gold.scale)}."
        return
    floor, constant = result.floor.value, "the best constant there"
    yield reach_in_words(f"{items} it", found, result.gold, mapped=mapped, floor=floor, constant=constant)


def _beside_people(result: SelectResult) -> Iterator[str]:
    """People with each other and the judge with them, on the items of the experiment that raters share."""
    beside = list(result.stand_in.raters.values()) if result.stand_in else []
    if not beside or not _leads(result):
        return
    people, judge = (
        numbers.between([one.person for one in beside]),
        numbers.between([one.judge for one in beside]),
    )
    where = "train and dev" if result.gold.split == "open" else "all splits together"
    _, raters = raters_in_words(result.gold.labels_by)
    yield (
        f"On what raters share of {where} {raters} agree with each other to {people}, and it with each to "
        f"{judge}."
    )


def _leads(result: SelectResult) -> bool:
    """Whether the metric is the one of all headlines."""
    return result.metric == ("accuracy" if result.gold.scale == "nominal" else "macro_agreement")


def _confirmed(result: SelectResult) -> tuple[Estimate, bool]:
    """The metric on test, and whether it is that of calibrated verdicts."""
    through = result.confirmed_calibrated if metric_facts(result.metric).calibrated else {}
    return through.get(result.metric, result.confirmed[result.metric]), bool(through)


def _unknown(result: SelectResult) -> Iterator[str]:
    """What weighs most comes first."""
    if result.gold.labels_by == "project":
        yield OWN_LABELS
    if result.more_questions is not None:
        yield (
            f"Whether a cheaper judge is good enough: about {result.more_questions:,} more questions would "
            "show it."
        )
    if result.noise is None:
        yield "How often the judge contradicts itself: it was not called again."


def _facts(result: SelectResult) -> list[Fact]:
    on = result.confirmed_on
    if on is None:
        return []
    found, through = _confirmed(result)
    metric, scale = result.metric, result.gold.scale
    raw = f" (raw {of_metric(Estimate(result.confirmed[metric].value), metric, scale)})" if through else ""
    why = f" ({found.reason})" if found.reason else ""
    mapped = " through its calibration map" if through else ""
    where, own = "confirmed on test", "its own agreement, not the one that won"
    if _on_all(result):
        mapped = ", cross-fitted," if through else ""
        where, own = "on the items that chose it", "the interval allows for the choice"
    says = (
        f"{result.metric}{mapped}{raw} {where}{why} at level {found.level:.4g}, {on.n_items} items on "
        f"{on.n_groups} questions, {found.n_unscored} unscored: {own}."
    )
    return [Fact(of_metric(found, metric, scale), says)]


def _judges(result: SelectResult) -> Section:
    metric, scale = result.metric, result.gold.scale
    ranked = sorted(result.judges, key=lambda judge: (judge.loss is None, judge.loss or 0.0))

    def size(loss: float | None) -> str:
        return numbers.DASH if loss is None else amount_of(loss, metric, scale)

    judges = table(
        ranked,
        {
            "judge": lambda judge: judge.judge,
            f"{metric} [{result.level:.4g}]": lambda judge: of_metric(judge.value, metric, scale),
            "loss": lambda judge: size(judge.loss),
            "at most": lambda judge: size(judge.loss_at_most),
            "verdict": lambda judge: judge.verdict,
            "USD/1k": lambda judge: numbers.money(judge.usd_per_1k),
            "p95": lambda judge: numbers.seconds(judge.p95_s),
            "n": lambda judge: f"{judge.n}/{judge.n_expected}",
            "unscored": lambda judge: numbers.count(judge.n_unscored),
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
    blocks: list[Block] = [judges]
    if rows:
        blocks.append(interval_picture(rows, Axis(axis_of(metric))))
    blocks += [Paragraph(f"{one}.", short=True) for one in result.driven]
    blocks += [Paragraph(f"Not taken: {one.judge}: {one.why}.") for one in result.rejected]
    caption = "Serves the choice: the cheapest judge that is shown to lose less than the margin is taken."
    if result.bounds:
        caption += (
            " At most: the loss against whoever is truly best, at level "
            f"{result.level:.4g} for all judges at once ({result.bounds}). The margin is "
            f"{amount_of(result.margin, metric, scale)}."
        )
    title = "Judges on all items" if _on_all(result) else "Judges on open items"
    return Section("judges", title, caption, blocks)


def _lock(result: SelectResult) -> Section:
    caption = "Serves whoever runs the judge: the lock is what gate, judge and migrate read."
    return Section("lock", "The lock", caption, list(_lock_blocks(result)))


def _lock_blocks(result: SelectResult) -> Iterator[Block]:
    """Where it is, and the look that it took; the rest is on the page."""
    for place, one in enumerate(_lock_lines(result)):
        yield Paragraph(one, short=place == 0)
    if result.test_look:
        yield Paragraph(sentence(result.test_look), short=True)


def _lock_lines(result: SelectResult) -> Iterator[str]:
    noise, calibration = result.noise, result.calibration
    if result.lock is None or noise is None:
        yield sentence(f"no lock was written: {result.lock_reason}")
        return
    yield f"Locked in {result.lock} (sha256 {str(result.lock_sha256)[:12]})."
    if noise.n_calls < 2:
        yield sentence(str(noise.flip_rate.reason))
    else:
        yield (
            f"Noise: {noise.n_calls} calls of {noise.n_items} items; flip rate {_or_why(noise.flip_rate)}, "
            f"exact agreement of two calls {_or_why(noise.exact_agreement)}."
        )
    if calibration is not None:
        yield (
            f"Its calibration map, fitted on {numbers.count(calibration.n)} judgements of "
            f"{calibration.fitted_on}, is in the lock: judge writes the raw verdict and the calibrated one."
        )


def _or_why(found: Estimate) -> str:
    value = in_percent(found)
    return f"{value} ({found.reason})" if found.reason else value


def _notes(result: SelectResult) -> Iterator[str]:
    yield from map(sentence, result.notes)
    yield f"Decisions taken on the test labels of {result.gold.set} so far: {result.test_looks}."
    yield f"This selection spent {numbers.money(result.usd)} USD."
