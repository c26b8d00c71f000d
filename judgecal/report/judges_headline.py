"""What a result about judges comes to: whom to use and for what, how sure that is, and what is not known beside it.

One function decides, over what `selection.standing` knows: score, agreement, report, the index and select print it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judgecal.experiment.losses import LossPicture
from judgecal.experiment.result import Entry, JudgeEntry, RaterEntry
from judgecal.judges.protocol import JudgeName
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.wording import in_a_row
from judgecal.selection.standing import MIN_QUESTIONS, Pick, Standing
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.stand_in import MIN_SHARED, StandIn
from judgecal.stats.strata import stratum_that_drives

_MANY_ANSWERS = 2  # to a question on average: from here on it is said that questions are few, and not answers


def deciding(one: Entry, metric: str) -> Estimate:
    """The number that a line is decided by; a person's as it is, where that is better than once calibrated."""
    mapped = one.decided_by(metric)
    if not isinstance(one, RaterEntry):
        return mapped
    return max(one.as_wrong[metric], mapped, key=lambda found: found.value or 0.0)


def judges_headline(found: Standing) -> Headline:
    """Whom to use and for what, in one sentence; in the next what it reaches beside people and the floor."""
    slug, gold = found.result.experiment, found.result.gold
    if found.losses is None or found.pick is None:
        why = next((one.reason for one in found.values.values() if one.reason), "nothing was judged")
        return Headline("too few", f"Cannot tell whom to use: {why}.", next=f"judgecal gold check {gold.set}")
    losses, pick = found.losses, found.pick
    unknown, best = tuple(_unknown(found, losses, pick)), pick.best
    if pick.judge is None:
        what = "Choose nobody from this: all of its items are test items, which confirm and do not choose."
        return Headline("none", what, (agreement_sentence(found, best, best),), unknown, _on_open(found, best))
    few = _too_few(found, losses)
    if few is not None:
        so_far = f"So far {best}{', the best,' * (len(losses.judges) > 1)}"
        label = f"judgecal gold sheet {gold.set} -o sheet.csv"
        return Headline("too few", few, (agreement_sentence(found, best, so_far),), unknown, label)
    if not losses.floor[0].shown:
        seen, following = _below_floor(found, losses, best), _optimise(found, best)
        return Headline("none", _nobody(found, losses, best), (seen,), unknown, following)
    tied = _tied(found, losses, best)
    because = [
        agreement_sentence(found, pick.judge),
        *_below_a_person(found, pick.judge),
        *_beside_the_best(found, losses, pick),
        *_not_told_apart(found, pick, tied),
    ]
    alone = (pick.judge,) in found.alike
    kind = "use" if alone and not tied else "tied"
    stand_in = _entry(found, pick.judge).stand_in
    what = use(pick.judge, stand_in, found.margin)
    return Headline(kind, what, tuple(because), unknown, f"judgecal select {slug}")


def _on_open(found: Standing, judge: str) -> str:
    """The command that has a judge on items which may choose."""
    gold = found.result.gold.set
    if _entry(found, judge).kind == "recorded":
        return f"judgecal agreement --gold {gold}{'' if found.kept else ' --judgements FILE'} --split open"
    return f"judgecal score --gold {gold} --judge '{judge}'"


def _optimise(found: Standing, judge: str) -> str:
    """The command that looks for a better prompt; a recorded or local judge has none, so that the user names it."""
    name = JudgeName.read(judge) if _entry(found, judge).kind == "prompt" else None
    which = f"--signature {name.signature} --model {name.model}" if name and not name.program else "--model MODEL"
    gold = found.result.gold.set
    return f"judgecal optimize {f'--gold {gold} ' * (gold != 'starter')}{which}"  # the starter is what it takes anyway


def _entry(found: Standing, judge: str) -> JudgeEntry:
    return next(one for one in found.result.judges if one.judge == judge)


def use(judge: str, stand_in: StandIn | None, margin: float) -> str:
    """For what a judge is good: in a person's place only where that is shown."""
    may = None if stand_in is None else stand_in.shown(margin)
    if may:
        return f"Use {judge}: it may stand in for a person."
    if may is None:
        return f"Use {judge} to triage; whether it could replace a person is not known."
    return f"Use {judge} to triage, not to replace a person."


@dataclass(frozen=True, slots=True)
class Reach:
    """What a judge reaches: its agreement with people, and what stands beside that.

    Attributes:
        value: of the leading metric, where it asks for that once calibrated (`mapped` says whether it is).
        scale: of the labels, by its name.
        labels_by: who gave the labels, as the set's card says.
        people, beside: each rater's agreement with the others, and the judge's on the same items.
        floor: what `constant` reaches, in words.
    """

    value: Estimate
    scale: str
    labels_by: str
    mapped: bool
    people: Sequence[float | None]
    beside: Sequence[float | None]
    floor: float | None
    constant: str

    def sentence(self, who: str) -> str:
        """All of it, of a judge by its name or as a pronoun."""
        graded = self.scale not in ("binary", "nominal")
        to = "to" if graded else "on"
        whom, raters = raters_in_words(self.labels_by)
        parts = [f"{who} agrees with {whom} {to} {_share(self.value, graded)}{self._weighing}"]
        if self.people:
            own, its = numbers.between(self.people), numbers.between(self.beside)
            parts.append(f"{raters} agree with each other {to} {own}, and it with each of them {to} {its}")
        parts.append(f"{self.constant} reaches {numbers.percent(self.floor, 1)}")
        return "; ".join(parts) + "."

    @property
    def _weighing(self) -> str:
        """What weighs alike in the number."""
        if self.scale == "nominal":
            return ""
        if self.scale == "binary":
            return ", good and bad ones weighing alike"
        return f"{' once calibrated' * self.mapped}, low, middle and high labels weighing alike"


def raters_in_words(labels_by: str) -> tuple[str, str]:
    """Whom a judge agrees with, and who agrees with each other: only people's labels are called theirs."""
    return ("the project's own labels", "its raters") if labels_by == "project" else ("people", "people")


def agreement_sentence(found: Standing, judge: str, who: str = "It") -> str:
    """How well a judge agrees with people, people with each other, it with each of them, and the floor."""
    result, metric = found.result, found.metric
    entry = _entry(found, judge)
    people = [one for one in result.raters if one.enough]
    beside = [one for rater in people for one in rater.judges if one.judge == judge]
    reach = Reach(
        value=deciding(entry, metric),
        scale=result.gold.scale,
        labels_by=result.gold.labels_by,
        mapped=bool(entry.calibrated),
        people=[deciding(one, metric).value for one in people],
        beside=[deciding(one, metric).value for one in beside],
        floor=result.floor[0].decided_by(metric).value,
        constant=always(found.losses.floor[0].judge, result.gold.scale) if found.losses else "the best constant",
    )
    return reach.sentence(who)


def _share(one: Estimate, graded: bool) -> str:
    """`84.9% of answers [82.3, 87.0]`; graded labels agree to a share and not on answers."""
    of = "" if graded else " of answers"
    value, low, high = (numbers.points(end) for end in (one.value, one.low, one.high))
    return f"{value}%{of}" if one.low is None else f"{value}%{of} [{low}, {high}]"


def always(constant: str, scale: str) -> str:
    """`always saying 45`, of a constant by its name."""
    said = constant.removeprefix("constant ")
    word = {"0": "fail", "1": "pass"}.get(said, said) if scale == "binary" else said
    return f"always saying {word}"


def _nobody(found: Standing, losses: LossPicture, best: str) -> str:
    than = always(losses.floor[0].judge, found.result.gold.scale)
    if len(losses.judges) == 1:
        return f"Do not use {best} yet: it is not shown to agree with people better than {than}."
    return f"Use none of these {len(losses.judges)} judges: none is shown to agree with people better than {than}."


def _below_floor(found: Standing, losses: LossPicture, best: str) -> str:
    who = f"The best, {best}," if len(losses.judges) > 1 else "It"
    lead = losses.floor[0].loss
    where = _choosing(found)
    apart = f" ({numbers.points(lead.value)} points apart, {_ends(lead)}{where})"
    return agreement_sentence(found, best, who).removesuffix(".") + f"{apart}."


def _ends(found: Estimate) -> str:
    return f"{numbers.points(found.low)} to {numbers.points(found.high)}"


def _too_few(found: Standing, losses: LossPicture) -> str | None:
    """How many more questions to label, and of which kind; None where there are enough to decide by.

    A lead on fewer than MIN_QUESTIONS is not carried on to how many would show it: its own error is hardly known there.
    """
    floor, n_groups = losses.floor[0], found.basis.n_groups
    if n_groups >= MIN_QUESTIONS and floor.loss.low is not None:
        return None
    thin = [one for one in floor.strata if one.thin and one.more]
    more = [MIN_QUESTIONS - n_groups, *(math.ceil((one.more or 0) * n_groups / one.n) for one in thin)]
    if max(more) < 1:
        return f"Too little to tell whom to use: {floor.loss.reason}."
    driver = stratum_that_drives(floor.strata)
    kinds = [f'at least {one.more} more "{one.name}" labels' for one in thin]
    kinds += [f'above all with "{driver.name}" labels'] if driver is not None and not thin else []
    which = f", {'with ' * bool(thin)}{' and '.join(kinds)}" if kinds else ""
    here = numbers.count_of(n_groups, "question") + " of train and dev" * bool(_choosing(found))
    if found.basis.n_items >= _MANY_ANSWERS * n_groups:
        here = f"{numbers.count(found.basis.n_items)} answers to {here}"
    say = f"Label about {numbers.count(max(more))} more question{'s' * (max(more) != 1)}{which}"
    return f"Too few questions to tell whom to use: {here}. {say}."


def questions_to_show(lead: Estimate) -> int | None:
    """About how many more questions would show a lead, were it what it looks; None without one, or out of reach."""
    if lead.value is None or lead.low is None or lead.value <= 0.0 or lead.low > 0.0:
        return None
    more = math.ceil(lead.n_groups * ((lead.value - lead.low) / lead.value) ** 2) - lead.n_groups
    return max(1, more) if more <= OUT_OF_REACH else None


def _tied(found: Standing, losses: LossPicture, best: str) -> list[str]:
    """The judges that are not shown to be worse than the best, without those that gave its verdicts."""
    same = next(names for names in found.alike if best in names)
    others = [one for one in losses.judges if one.judge not in same]
    return [one.judge for one in others if one.low is None or one.low <= 0.0]


def _not_told_apart(found: Standing, pick: Pick, tied: Sequence[str]) -> Iterator[str]:
    same = next(names for names in found.alike if pick.judge in names)
    twins = [name for name in same if name != pick.judge]
    if twins:
        yield f"{in_a_row(twins)} gave the same verdicts."
    others = [name for name in tied if name != pick.judge]
    beside = "it" if pick.judge == pick.best or pick.judge not in tied else f"it or {pick.best}"
    if others:
        where = _choosing(found)
        yield f"{in_a_row(others)} cannot be told from {beside}{where}."


def _choosing(found: Standing) -> str:
    """Which questions a choice rests on, where they are not all."""
    if not found.result.gold.n_test_items or not found.basis.may_choose:
        return ""
    return f" on the {numbers.count(found.basis.n_groups)} questions of train and dev"


def _beside_the_best(found: Standing, losses: LossPicture, pick: Pick) -> Iterator[str]:
    """What a judge costs that is not the best one, and how much it may lose."""
    chosen = next(one for one in losses.judges if one.judge == pick.judge)
    if chosen.judge == pick.best or not chosen.loss:
        return
    price = ", ".join(_price(found, chosen.judge, pick.best))
    loss = f"{numbers.points(chosen.loss)} points below {pick.best}, the best"
    bound = (
        f", without a bound ({chosen.reason})" if chosen.high is None else f", at most {numbers.points(chosen.high)}"
    )
    yield f"It is {loss}{bound}{f', for {price}' if price else ''}."


def _price(found: Standing, judge: str, best: str) -> Iterator[str]:
    prices = {one.judge: one.usd_per_1k for one in found.candidates}
    ours, theirs = prices[judge], prices[best]
    if ours is None or theirs is None:
        return
    if theirs:
        yield f"{numbers.money(ours)} instead of {numbers.money(theirs)} USD per 1,000"
    else:
        yield f"{numbers.money(ours)} USD per 1,000, as much as the best"


def _unknown(found: Standing, losses: LossPicture, pick: Pick) -> Iterator[str]:
    """What weighs most comes first."""
    yield from _unconfirmed(found, pick)
    for one in losses.floor[1:]:
        if not one.shown:
            yield f"Whether it is better than {one.judge}, which is free: {_points(one.loss)}."
    if found.result.gold.labels_by == "project":
        yield "Whether people agree with these labels: the project itself made them."
    stand_in = _entry(found, pick.judge or pick.best).stand_in
    if stand_in is not None and stand_in.at_worst is None:
        yield f"Whether {pick.judge or pick.best} could replace a person: {stand_in.reason}."
    lead = losses.floor[0].loss
    to_show = questions_to_show(lead)
    if pick.judge is not None and to_show is not None and found.basis.n_groups >= MIN_QUESTIONS:
        more = f"about {numbers.count(to_show)} more questions"
        yield f"Whether {pick.best} beats the best constant: {more} would show it, if it is as good as it looks."
    if pick.more_questions is not None and found.basis.n_groups >= MIN_QUESTIONS:
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


def _below_a_person(found: Standing, judge: str) -> Iterator[str]:
    """Why a judge is said to stand in for a person, or is not, where that was tested."""
    stand_in = _entry(found, judge).stand_in
    if stand_in is None or stand_in.at_worst is None:
        return
    shown = stand_in.shown(found.margin)
    if stand_in.at_worst > -found.margin and not shown:
        yield "It is not shown to agree with every person better than a constant does."
        return
    worst, rater, n = min((one.at_worst or 0.0, rater, one.n) for rater, one in stand_in.raters.items())
    below = f"{numbers.points(-worst)} points below {rater} ({numbers.count(n)} shared items)"
    if shown:
        yield f"It is shown to lie at most {below}."
    else:
        yield f"It may lie up to {below}, and {100.0 * found.margin:g} are allowed."


def _no_people(found: Standing) -> Iterator[str]:
    if not any(one.enough for one in found.result.raters):
        yield f"How well people agree with each other: no two raters share {MIN_SHARED} items."


def _points(loss: Estimate) -> str:
    if loss.low is None or loss.high is None:
        return f"{numbers.points(loss.value)} points, without an interval"
    return f"{numbers.points(loss.value)} points, {numbers.points(loss.low)} to {numbers.points(loss.high)}"
