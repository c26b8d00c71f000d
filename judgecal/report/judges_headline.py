"""What a result about judges comes to: whom to use and for what, how sure that is, and what is not known
beside it.

One function decides, over what `selection.standing` knows: score, agreement, report, the index and select
print it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from judgecal.experiment.losses import LossPicture
from judgecal.experiment.result import Entry, GoldSummary, JudgeEntry, RaterEntry
from judgecal.judges.protocol import JudgeName
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.unread import naming_unread, unread_headline
from judgecal.report.wording import in_a_row
from judgecal.selection.decision import Pick
from judgecal.selection.standing import Standing
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.stand_in import MIN_SHARED, StandIn

_MANY_TIES = 0.1  # share of the items on which raters tie: from here on settling them is the next step


def deciding(one: Entry, metric: str) -> Estimate:
    """The number that a line is decided by; a person's as it is, where that is better than once
    calibrated."""
    mapped = one.decided_by(metric)
    if not isinstance(one, RaterEntry):
        return mapped
    return max(one.as_wrong[metric], mapped, key=lambda found: found.value or 0.0)


def judges_headline(found: Standing) -> Headline:
    """Whom to use and for what; where nothing could be read that alone, and judges without any verdict by
    name."""
    return unread_headline(found.unread) or _with_ties(found, naming_unread(_ranked(found), found.unread))


def _with_ties(found: Standing, headline: Headline) -> Headline:
    """Where raters tie no judge's number counts the items; where they are many, to settle them is the next
    step."""
    gold = found.result.gold
    if not gold.n_tied:
        return headline
    sheet = f"judgecal gold sheet {gold.set} --ties -o ties.csv"
    what = f"How judges do on the {gold.ties_in_words}, the harder ones: {sheet} sends them to another rater."
    many = found.basis.may_choose and gold.n_tied >= _MANY_TIES * (gold.n_items + gold.n_tied)
    settle = f"judgecal gold adjudicate {gold.set}" if many else headline.next
    return replace(headline, unknown=(what, *headline.unknown), next=settle)


def _ranked(found: Standing) -> Headline:
    """Whom to use and for what, in one sentence; in the next what it reaches beside people and the floor."""
    slug, gold = found.result.experiment, found.result.gold
    if found.losses is None or found.pick is None:
        why = next((one.reason for one in found.values.values() if one.reason), "nothing was judged")
        return Headline("too few", f"Cannot tell whom to use: {why}.", next=f"judgecal gold check {gold.set}")
    losses, pick = found.losses, found.pick
    unknown, best, where = tuple(_unknown(found, losses, pick)), pick.best, _choosing(found)
    if not found.basis.may_choose:
        what = "Choose nobody from this: all of its items are test items, which confirm and do not choose."
        return Headline(
            "none", what, (agreement_sentence(found, best, best),), unknown, _on_open(found, best)
        )
    if pick.judge is None:
        what, following = nobody(pick, gold, _entry(found, best).kind, _constant(found), len(losses.judges))
        several = len(losses.judges) > 1
        if pick.too_few:
            seen = agreement_sentence(found, best, f"So far {best}{', the best,' * several}")
        else:
            seen = _not_above(found, losses, best, f"The best, {best}," if several else "It")
        return Headline(pick.kind, what, (seen, *beside_free(pick, where)), unknown, following)
    because = [
        agreement_sentence(found, pick.judge),
        *_below_a_person(found, pick.judge),
        *_beside_the_best(found, losses, pick),
        *beside_free(pick, where),
        *not_told_apart(pick, where),
    ]
    what = use(pick.judge, _entry(found, pick.judge).stand_in, found.margin)
    return Headline(pick.kind, what, tuple(because), unknown, f"judgecal select {slug}")


def nobody(pick: Pick, gold: GoldSummary, kind: str, constant: str, n_judges: int) -> tuple[str, str]:
    """What to do where nobody may be chosen, and the command; `kind` is the best judge's."""
    if pick.too_few:
        return pick.too_few, f"judgecal gold sheet {gold.set} -o sheet.csv"
    name = JudgeName.read(pick.best) if kind == "prompt" else None
    # a recorded or local judge has no prompt to begin with, so that the embedded model gets one; the set
    # starter is the one that the command takes anyway
    which = (
        f"--signature {name.signature} --model {name.model}"
        if name and not name.program
        else "--model embedded"
    )
    following = f"judgecal optimize {f'--gold {gold.set} ' * (gold.set != 'starter')}{which}"
    better = f"shown to agree with {raters_in_words(gold.labels_by)[0]} better than {constant}."
    if n_judges == 1:
        return f"Do not use {pick.best} yet: it is not {better}", following
    return f"Use none of these {n_judges} judges: none is {better}", following


def beside_free(pick: Pick, where: str) -> Iterator[str]:
    """The strongest free judge beside one that costs money; `where`: on which questions, where those are not
    all."""
    free = pick.free
    if free is None:
        return
    judge = pick.judge or pick.best
    if free.shown:
        lead = f"{numbers.points(free.loss.value)} points above {free.judge}, the strongest free judge"
        yield f"{judge} is {lead}{where} ({_ends(free.loss)})."
    else:
        yield f"{judge} is not shown to beat the free {free.judge}{where}: {_points(free.loss)}."


def _on_open(found: Standing, judge: str) -> str:
    """The command that has a judge on items which may choose."""
    gold = found.result.gold.set
    if _entry(found, judge).kind == "recorded":
        return f"judgecal agreement --gold {gold}{' --split open' if found.kept else ' --help'}"
    return f"judgecal score --gold {gold} --judge '{judge}'"


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
        ties: the items on which raters tie, in words; a judge's number is without them, so that what is said
            of people and the judge on all items stands in a sentence of its own.
        free: the strongest free judge and what it reaches, where the judge costs money.
    """

    value: Estimate
    scale: str
    labels_by: str
    mapped: bool
    people: Sequence[float | None]
    beside: Sequence[float | None]
    floor: float | None
    constant: str
    ties: str = ""
    free: tuple[str, float | None] | None = None

    def sentence(self, who: str, apart: str = "") -> str:
        """All of it, of a judge by its name or as a pronoun; `apart`: how far it lies from the floor."""
        graded = self.scale not in ("binary", "nominal")
        to = "to" if graded else "on"
        whom, raters = raters_in_words(self.labels_by)
        without = f", without the {self.ties}" if self.ties else ""
        parts = [f"{who} agrees with {whom} {to} {_share(self.value, graded)}{self._weighing}{without}"]
        people = ""
        if self.people:
            own, its = numbers.between(self.people), numbers.between(self.beside)
            people = f"{raters} agree with each other {to} {own}, and it with each of them {to} {its}"
        parts += [people] if people and not self.ties else []
        free = f", {self.free[0]}, which is free, {numbers.percent(self.free[1], 1)}" if self.free else ""
        parts.append(f"{self.constant} reaches {numbers.percent(self.floor, 1)}{apart}{free}")
        also = f" On all that two raters share, ties included, {people}." if people and self.ties else ""
        return f"{'; '.join(parts)}.{also}"

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


def agreement_sentence(found: Standing, judge: str, who: str = "It", apart: str = "") -> str:
    """How well a judge agrees with people, people with each other, it with each of them, and the floor."""
    result, metric = found.result, found.metric
    entry = _entry(found, judge)
    people = [one for one in result.raters if one.enough]
    beside = [one for rater in people for one in rater.judges if one.judge == judge]
    free = found.pick.free.judge if found.pick and found.pick.free else None
    reach = Reach(
        value=deciding(entry, metric),
        scale=result.gold.scale,
        labels_by=result.gold.labels_by,
        mapped=bool(entry.calibrated),
        people=[deciding(one, metric).value for one in people],
        beside=[deciding(one, metric).value for one in beside],
        floor=result.floor[0].decided_by(metric).value,
        constant=_constant(found),
        free=next(
            (
                (one.judge, deciding(one, metric).value)
                for one in (*result.judges, *result.floor)
                if one.judge == free
            ),
            None,
        ),
        ties=result.gold.ties_in_words,
    )
    return reach.sentence(who, apart)


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


def _constant(found: Standing) -> str:
    return (
        always(found.losses.floor[0].judge, found.result.gold.scale) if found.losses else "the best constant"
    )


def _not_above(found: Standing, losses: LossPicture, best: str, who: str) -> str:
    """What the best judge reaches, with how far it lies from the best constant."""
    lead = losses.floor[0].loss
    apart = f" ({numbers.points(lead.value)} points apart, {_ends(lead)}{_choosing(found)})"
    return agreement_sentence(found, best, who, apart)


def _ends(found: Estimate) -> str:
    return f"{numbers.points(found.low)} to {numbers.points(found.high)}"


def questions_to_show(lead: Estimate) -> int | None:
    """About how many more questions would show a lead, were it what it looks; None without one, or out of
    reach."""
    if lead.value is None or lead.low is None or lead.value <= 0.0 or lead.low > 0.0:
        return None
    more = math.ceil(lead.n_groups * ((lead.value - lead.low) / lead.value) ** 2) - lead.n_groups
    return max(1, more) if more <= OUT_OF_REACH else None


def not_told_apart(pick: Pick, where: str) -> Iterator[str]:
    """Who gave the same verdicts as the judge to use, and who cannot be told from it."""
    same = [one for one in pick.twins if one not in pick.rescaled]
    if same:
        yield f"{in_a_row(same)} gave the same verdicts."
    if pick.rescaled:
        yield f"Once calibrated, the verdicts of {in_a_row(pick.rescaled)} are the same."
    free = pick.free.judge if pick.free else None
    others = [name for name in pick.tied if name not in (pick.judge, free)]
    beside = "it" if pick.judge == pick.best or pick.judge not in pick.tied else f"it or {pick.best}"
    if others:
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
        f", without a bound ({chosen.reason})"
        if chosen.high is None
        else f", at most {numbers.points(chosen.high)}"
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
    if found.result.gold.labels_by == "project":
        yield "Whether people agree with these labels: the project itself made them."
    stand_in = _entry(found, pick.judge or pick.best).stand_in
    if stand_in is not None and stand_in.at_worst is None:
        yield f"Whether {pick.judge or pick.best} could replace a person: {stand_in.reason}."
    lead = losses.floor[0].loss
    to_show = questions_to_show(lead)
    if found.basis.may_choose and pick.kind == "none" and to_show is not None:
        more = f"about {numbers.count(to_show)} more questions"
        yield f"Whether {pick.best} beats the best constant: {more} would show it, if it is as good as it looks."
    if pick.more_questions is not None:
        more = f"about {numbers.count(pick.more_questions)} more questions would show it"
        yield f"Whether {pick.cheaper} is good enough: {more}, if it is as good as it looks."
    yield from _no_people(found)
    if not any(one.retest for one in found.result.judges):
        yield "How often a judge contradicts itself: each item was judged once (--repeats 3 would tell)."
    unpriced = [one.judge for one in found.candidates if one.usd_per_1k is None]
    if unpriced:
        costs, rank = ("costs", "it ranks") if len(unpriced) == 1 else ("cost", "they rank")
        yield f"What {in_a_row(unpriced)} {costs}: without a price {rank} as the dearest."
    if found.sampling == "curated":
        yield "Rates in production: the items were picked, so the mix is no product's."
    elif found.sampling == "unknown":
        yield "Rates in production: the card does not say how the items were sampled."


def _unconfirmed(found: Standing, pick: Pick) -> Iterator[str]:
    if not found.basis.may_choose:
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
