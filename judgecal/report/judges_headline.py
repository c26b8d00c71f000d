"""The headline of a result about judges: whom to use, how sure that is, and what is not known beside it."""

from __future__ import annotations

from collections.abc import Iterator

from judgecal.experiment.losses import JudgeLoss, LossPicture
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.judges_people import stand_in_note
from judgecal.report.wording import sentence
from judgecal.selection.standing import Pick, Standing
from judgecal.stats.stand_in import MIN_SHARED


def judges_headline(found: Standing) -> Headline:
    """Whom to use, how sure that is, and at what price."""
    slug = found.result.experiment
    if found.losses is None or found.pick is None:
        why = next((one.reason for one in found.values.values() if one.reason), "nothing was judged")
        return Headline(
            "too few",
            f"Cannot tell whom to use: no {found.metric}, as {why}.",
            next=f"judgecal report {slug} --format html",
        )
    kind, act, reasons = _decision(found, found.losses, found.pick)
    because = "; ".join([*reasons[1:], *_in_a_persons_place(found, found.pick), *_scope(found, found.pick)])
    follow = f"judgecal select {slug}" if found.chosen else f"judgecal report {slug} --format html"
    return Headline(
        kind, f"{act}: {reasons[0]}.", (sentence(because),), tuple(_unknown(found, found.losses, found.pick)), follow
    )


def _decision(found: Standing, losses: LossPicture, pick: Pick) -> tuple[str, str, list[str]]:
    """Kind, what to do, and why."""
    best, constant = pick.best, losses.floor[0]
    several = len(losses.judges) > 1
    once = " once calibrated" if any(one.calibrated for one in found.result.judges) else ""
    value = f"{best} has {found.metric} {numbers.plain(_loss_of(losses, best).value)}{once}"
    if pick.judge is None:
        why = "all of its items are test items, which confirm and do not choose"
        return "none", "Choose nobody from this", [why, value]
    if constant.loss.low is None:
        return ("too few", "Cannot tell whom to use", [value, constant.loss.reason or "there is no interval"])
    if not constant.shown:
        who = f"the best, {best}, is" if several else f"{best} is"
        said = constant.judge.removeprefix("constant ")
        why = f"{who} not shown to agree with people better than always saying {said} ({_points(constant.loss)})"
        return "none", "Use none of them" if several else "Do not use it yet", [why]
    if not several:
        shown = numbers.estimate(found.values[pick.judge])
        return ("use", f"Use {pick.judge}", [f"{found.metric} {shown}{once}, and no other judge to hold it against"])
    return ("use", f"Use {pick.judge}", list(_against_the_rest(found, losses, pick, _loss_of(losses, pick.judge))))


def _loss_of(losses: LossPicture, judge: str) -> JudgeLoss:
    return next(one for one in losses.judges if one.judge == judge)


def _against_the_rest(found: Standing, losses: LossPicture, pick: Pick, chosen: JudgeLoss) -> Iterator[str]:
    judges, best = losses.judges, pick.best
    if chosen.judge == best and chosen.high is not None:
        most = numbers.points(chosen.high)
        yield f"the best of {len(judges)} here; were another truly better, it loses at most {most} points"
    elif chosen.high is not None:
        yield f"at most {numbers.points(chosen.high)} points below the best"
    else:
        yield f"{numbers.points(chosen.loss)} points below the best, without a bound ({chosen.reason})"
    if chosen.judge != best and chosen.loss:
        yield from _price(found, chosen.judge, best)
    others = [one for one in pick.within if one != chosen.judge]
    if not others:
        yield f"no other of the {len(judges)} is shown to stay within {100.0 * found.margin:g} points"
    elif len(others) == len(judges) - 1 and not any(one.loss for one in judges):
        yield f"all {len(judges)} agree with people alike"


def _price(found: Standing, judge: str, best: str) -> Iterator[str]:
    prices = {one.judge: one.usd_per_1k for one in found.candidates}
    ours, theirs = prices[judge], prices[best]
    if ours is None or theirs is None:
        return
    if theirs:
        yield f"{numbers.money(ours)} instead of {numbers.money(theirs)} USD per 1,000"
    else:
        yield f"{numbers.money(ours)} USD per 1,000, as much as the best"


def _scope(found: Standing, pick: Pick) -> Iterator[str]:
    """Unscored, questions, sampling: what the rest of the sentence rests on."""
    name = pick.judge or pick.best
    shown = next(one for one in found.candidates if one.judge == name)
    yield f"{numbers.count(shown.n_unscored)} of {numbers.count(shown.n_expected)} unscored"
    sampling = {"random": "drawn at random", "curated": "curated"}.get(found.sampling)
    yield ", ".join(filter(None, (f"{numbers.count(found.basis.n_groups)} questions", sampling)))


def _unknown(found: Standing, losses: LossPicture, pick: Pick) -> Iterator[str]:
    """What weighs most comes first."""
    yield from _unconfirmed(found, pick)
    for one in losses.floor[1:]:
        if not one.shown:
            yield f"Whether it is better than {one.judge}, which is free: {_points(one.loss)}."
    if found.result.gold.labels_by == "project":
        yield "Whether people agree with these labels: the project itself made them."
    if pick.more_questions is not None:
        more = f"about {numbers.count(pick.more_questions)} more questions would show it"
        yield f"Whether {pick.cheaper} is good enough: {more}, if it is as good as it looks."
    yield from _no_people(found)
    if not any(one.retest for one in found.result.judges):
        yield "How often a judge contradicts itself: each item was judged once (--repeats 3 would tell)."
    if any(one.usd_per_1k is None for one in found.candidates):
        yield "What the judges cost: some have no price, so price chose nothing."
    if found.sampling == "curated":
        yield "Rates in production: the items were picked, so the mix is no product's."
    elif found.sampling == "unknown":
        yield "Rates in production: the card does not say how the items were sampled."


def _unconfirmed(found: Standing, pick: Pick) -> Iterator[str]:
    if pick.judge is None:
        yield "Whom to use: judges are chosen on train and dev (judgecal score --split open)."
        return
    if found.chosen is None:
        yield "Whether another prompt or model would do: only these were asked."
        return
    n_test, slug = found.result.gold.n_test_items, found.result.experiment
    sealed = f" The {numbers.count(n_test)} test items here took no part in it." if n_test else ""
    confirms = f"judgecal select {slug} confirms once on test.{sealed}"
    yield f"Whether it holds on questions that did not choose it: {confirms}"


def _in_a_persons_place(found: Standing, pick: Pick) -> Iterator[str]:
    """What the judge to use, or the best one, is good for beside people."""
    one = next(one for one in found.result.judges if one.judge == (found.chosen or pick.best))
    if one.stand_in is not None:
        yield f"in a person's place: {stand_in_note(one.stand_in, found.margin)}"


def _no_people(found: Standing) -> Iterator[str]:
    if not any(one.enough for one in found.result.raters):
        yield f"How well people agree with each other: no two raters share {MIN_SHARED} items."


def _points(loss: Estimate) -> str:
    if loss.low is None or loss.high is None:
        return f"{numbers.points(loss.value)} points, without an interval"
    return f"{numbers.points(loss.value)} points, {numbers.points(loss.low)} to {numbers.points(loss.high)}"
