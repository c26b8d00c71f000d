"""What a result about judges comes to: whom to use and for what, how sure that is, and what is not known.

One function decides, over what `selection.decision` knows; every command that is about judges prints it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from judgecal.experiment.losses import LossPicture
from judgecal.experiment.result import Entry, GoldSummary, JudgeEntry, RaterEntry
from judgecal.experiment.stored import Unread, UnreadJudge
from judgecal.judges.protocol import JudgeName
from judgecal.records import Estimate, Headline
from judgecal.report.numbers import between, count, count_of, money, percent, points
from judgecal.report.wording import OWN_LABELS, in_a_row, sentences
from judgecal.selection.decision import ChosenJudge, JudgesDecision
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.stand_in import MIN_SHARED, StandIn

_MESSAGE = 160  # characters of a message in a headline
_MANY_TIES = 0.1  # share of the items on which raters tie: from here on settling them is the next step


def judges_headline(decision: JudgesDecision) -> Headline:
    """Whom to use and for what; where nothing could be read that alone; judges without any verdict by name.

    Where raters tie no judge's number counts the items; where they are many, to settle them is the next step.
    """
    nothing = unread_headline(decision.unread)
    if nothing is not None:
        return nothing
    headline, gold = naming_unread(_ranked(decision), decision.unread), decision.result.gold
    if not gold.n_tied:
        return headline
    sheet = f"judgecal gold sheet {gold.set} --ties -o ties.csv"
    what = f"How judges do on the {gold.ties_in_words}, the harder ones: {sheet} sends them to another rater."
    many = decision.basis.may_choose and gold.n_tied >= _MANY_TIES * (gold.n_items + gold.n_tied)
    settle = f"judgecal gold adjudicate {gold.set}" if many else headline.next
    return replace(headline, unknown=(what, *headline.unknown), next=settle)


def _ranked(decision: JudgesDecision) -> Headline:
    """Whom to use and for what, in one sentence; in the next what it reaches beside people and the floor."""
    result, gold, losses, pick = decision.result, decision.result.gold, decision.losses, decision.pick
    if losses is None or pick is None:
        values = [judge.entry.decided_by(decision.metric) for judge in decision.measured]
        why = next((value.reason for value in values if value.reason), "nothing was judged")
        return Headline("too few", f"Cannot tell whom to use: {why}.", next=f"judgecal gold check {gold.set}")
    best, may_choose, floor = pick.best, decision.basis.may_choose, losses.floor[0]
    unknown, entry = _unknown(decision, floor.loss, pick), entry_of(decision, pick.judge or best)
    if not may_choose:
        what = "Choose nobody from this: all of its items are test items, which confirm and do not choose."
        following = f"judgecal score --gold {gold.set} --judge '{best}'"
        if entry.kind == "recorded":
            option = "--split open" if decision.kept else "--help"
            following = f"judgecal agreement --gold {gold.set} {option}"
        return Headline("none", what, (_agreement(decision, losses, best, best),), unknown, following)
    where = on_train_and_dev(decision.basis.n_groups) * bool(gold.n_test_items)
    if pick.judge is None:
        several, constant = len(losses.judges) > 1, always(floor.judge, gold.scale)
        what, following = nobody(pick, gold, entry.kind, constant, len(losses.judges))
        who, apart = f"So far {best}{', the best,' * several}", ""
        if not pick.too_few:
            who = f"The best, {best}," if several else "It"
            apart = f" ({points(floor.loss.value)} points apart, {_ends(floor.loss)}{where})"
        reached = _agreement(decision, losses, best, who, apart)
        return Headline(pick.kind, what, (reached, *beside_free(pick, where)), unknown, following)
    because = sentences(
        _agreement(decision, losses, pick.judge),
        _beside_a_person(entry.stand_in, decision.margin),
        _beside_the_best(decision, losses, pick),
        beside_free(pick, where),
        not_told_apart(pick, where),
    )
    what = use(pick.judge, entry.stand_in, decision.margin)
    return Headline(pick.kind, what, because, unknown, f"judgecal select {result.experiment}")


def nobody(pick: ChosenJudge, gold: GoldSummary, kind: str, constant: str, n_judges: int) -> tuple[str, str]:
    """What to do where nobody may be chosen, and the command; `kind` is the best judge's."""
    if pick.too_few:
        return pick.too_few, f"judgecal gold sheet {gold.set} -o sheet.csv"
    # a recorded or local judge has no prompt to begin with, so that the embedded model gets one; the set
    # starter is the one that the command takes anyway
    name = JudgeName.read(pick.best) if kind == "prompt" else None
    which = "--model embedded"
    if name and not name.program:
        which = f"--signature {name.signature} --model {name.model}"
    following = f"judgecal optimize {f'--gold {gold.set} ' * (gold.set != 'starter')}{which}"
    better = f"shown to agree with {raters_in_words(gold.labels_by)[0]} better than {constant}."
    if n_judges == 1:
        return f"Do not use {pick.best} yet: it is not {better}", following
    return f"Use none of these {n_judges} judges: none is {better}", following


def use(judge: str, stand_in: StandIn | None, margin: float) -> str:
    """For what a judge is good: in a person's place only where that is shown."""
    may = None if stand_in is None else stand_in.shown(margin)
    if may:
        return f"Use {judge}: it may stand in for a person."
    if may is None:
        return f"Use {judge} to triage; whether it could replace a person is not known."
    return f"Use {judge} to triage, not to replace a person."


# --- where nothing could be read


def unread_headline(unread: Unread | None) -> Headline | None:
    """Nothing could be read, so nobody is ranked; None where some judge has a verdict."""
    if unread is None or not unread.all:
        return None
    most, several = max(unread.judges, key=lambda judge: judge.n), len(unread.judges) > 1
    who = f"none of {len(unread.judges)} judges gave a" if several else f"{most.judge} gave no"
    what = f"Nothing could be read: {who} verdict on any of {count_of(most.n, 'item')}."
    because = [
        f"{f'Of {judge.judge} most often' if several else 'Most often'}: {_failure(judge)}."
        for judge in unread.judges[:3]
    ]
    journal = f"{unread.journal} holds what came instead."
    return Headline("unread", what, (*because, journal), next=unread.again)


def naming_unread(headline: Headline, unread: Unread | None) -> Headline:
    """A headline that names the judges without any verdict too, each with its reason."""
    if unread is None or not unread.judges:
        return headline
    reasons = [
        f"{judge.judge} gave no verdict on any of {count_of(judge.n, 'item')}: {_failure(judge)}."
        for judge in unread.judges
    ]
    names = in_a_row([judge.judge for judge in unread.judges])
    again = f"How {names} would do: {unread.again} asks again."
    return replace(headline, because=(*headline.because, *reasons), unknown=(*headline.unknown, again))


def _failure(judge: UnreadJudge) -> str:
    """The commonest message, shortened; without one what kind of failure it is."""
    if judge.message is None:
        return f"the failure is of kind {judge.kind}"
    text = " ".join(judge.message.split()).rstrip(".")
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} ..."


# --- what a judge reaches


def _agreement(
    decision: JudgesDecision, losses: LossPicture, judge: str, who: str = "It", apart: str = ""
) -> str:
    """How well a judge agrees with people, people with each other, it with each of them, and the floor."""
    result, metric, pick = decision.result, decision.metric, decision.pick
    entry, people = entry_of(decision, judge), [rater for rater in result.raters if rater.enough]
    free = pick.free.judge if pick and pick.free else None
    every = {line.judge: line for line in (*result.floor, *result.judges)}
    return reach_in_words(
        who,
        deciding(entry, metric),
        result.gold,
        mapped=bool(entry.calibrated),
        floor=result.floor[0].decided_by(metric).value,
        constant=always(losses.floor[0].judge, result.gold.scale),
        people=[deciding(rater, metric).value for rater in people],
        beside=[
            deciding(line, metric).value for rater in people for line in rater.judges if line.judge == judge
        ],
        free=(free, deciding(every[free], metric).value) if free in every else None,
        ties=result.gold.ties_in_words,
        apart=apart,
    )


def reach_in_words(
    who: str,
    value: Estimate,
    gold: GoldSummary,
    *,
    mapped: bool,
    floor: float | None,
    constant: str,
    people: Sequence[float | None] = (),
    beside: Sequence[float | None] = (),
    free: tuple[str, float | None] | None = None,
    ties: str = "",
    apart: str = "",
) -> str:
    """What a judge reaches, and what stands beside that.

    Args:
        who: the judge, by its name or as a pronoun.
        value: of the leading metric, where it asks for that once calibrated (`mapped` says whether it is).
        floor: what `constant` reaches, in words.
        people, beside: each rater's agreement with the others, and the judge's on the same items.
        free: the strongest free judge and what it reaches, where the judge costs money.
        ties: the items on which raters tie, in words; a judge's number is without them, so that what is said
            of people and the judge on all items stands in a sentence of its own.
        apart: how far it lies from the floor.
    """
    graded, (whom, raters) = gold.scale not in ("binary", "nominal"), raters_in_words(gold.labels_by)
    weighing = {"nominal": "", "binary": ", good and bad ones weighing alike"}.get(
        gold.scale, f"{' once calibrated' * mapped}, low, middle and high labels weighing alike"
    )
    share = f"{points(value.value)}%{'' if graded else ' of answers'}"
    if value.low is not None:
        share += f" [{points(value.low)}, {points(value.high)}]"
    to = "to" if graded else "on"  # graded labels agree to a share and not on answers
    among = ""
    if people:
        each = f"{raters} agree with each other {to} {between(people)}"
        among = f"{each}, and it with each of them {to} {between(beside)}"
    without = f", without the {ties}" if ties else ""
    also = f", {free[0]}, which is free, {percent(free[1], 1)}" if free else ""
    parts = sentences(
        f"{who} agrees with {whom} {to} {share}{weighing}{without}",
        not ties and among,
        f"{constant} reaches {percent(floor, 1)}{apart}{also}",
    )
    on_all = f" On all that two raters share, ties included, {among}." if among and ties else ""
    return f"{'; '.join(parts)}.{on_all}"


def deciding(entry: Entry, metric: str) -> Estimate:
    """What a line is decided by; a person's number as it is, where that is better than once calibrated."""
    mapped = entry.decided_by(metric)
    if not isinstance(entry, RaterEntry):
        return mapped
    return max(entry.as_wrong[metric], mapped, key=lambda reached: reached.value or 0.0)


def entry_of(decision: JudgesDecision, judge: str) -> JudgeEntry:
    """The numbers of a judge by its name."""
    return next(entry for entry in decision.result.judges if entry.judge == judge)


def raters_in_words(labels_by: str) -> tuple[str, str]:
    """Whom a judge agrees with, and who agrees with each other: only people's labels are called theirs."""
    return ("the project's own labels", "its raters") if labels_by == "project" else ("people", "people")


def always(constant: str, scale: str) -> str:
    """`always saying 45`, of a constant by its name."""
    verdict = constant.removeprefix("constant ")
    word = {"0": "fail", "1": "pass"}.get(verdict, verdict) if scale == "binary" else verdict
    return f"always saying {word}"


def on_train_and_dev(n_groups: int) -> str:
    """On which questions a choice rests, where they are not all."""
    return f" on the {count(n_groups)} questions of train and dev"


# --- beside whom


def beside_free(pick: ChosenJudge, where: str) -> tuple[str, ...]:
    """The strongest free judge beside one that costs money; `where`: on which questions, where not on all."""
    free, judge = pick.free, pick.judge or pick.best
    if free is None:
        return ()
    lead = f"{points(free.loss.value)} points"
    if free.shown:
        above = f"{lead} above {free.judge}, the strongest free judge"
        return (f"{judge} is {above}{where} ({_ends(free.loss)}).",)
    bounded = free.loss.low is not None and free.loss.high is not None
    ends = _ends(free.loss) if bounded else "without an interval"
    return (f"{judge} is not shown to beat the free {free.judge}{where}: {lead}, {ends}.",)


def not_told_apart(pick: ChosenJudge, where: str) -> tuple[str, ...]:
    """Who gave the same verdicts as the judge to use, and who cannot be told from it."""
    same = [judge for judge in pick.twins if judge not in pick.rescaled]
    others = [name for name in pick.tied if name not in (pick.judge, pick.free and pick.free.judge)]
    beside = "it" if pick.judge == pick.best or pick.judge not in pick.tied else f"it or {pick.best}"
    return sentences(
        bool(same) and f"{in_a_row(same)} gave the same verdicts.",
        bool(pick.rescaled) and f"Once calibrated, the verdicts of {in_a_row(pick.rescaled)} are the same.",
        bool(others) and f"{in_a_row(others)} cannot be told from {beside}{where}.",
    )


def _beside_a_person(stand_in: StandIn | None, margin: float) -> str:
    """Why a judge is said to stand in for a person, or is not, where that was tested."""
    if stand_in is None or stand_in.at_worst is None:
        return ""
    shown = stand_in.shown(margin)
    if stand_in.at_worst > -margin and not shown:
        return "It is not shown to agree with every person better than a constant does."
    raters = stand_in.raters.items()
    worst, rater, n = min((beside.at_worst or 0.0, name, beside.n) for name, beside in raters)
    below = f"{points(-worst)} points below {rater} ({count(n)} shared items)"
    if shown:
        return f"It is shown to lie at most {below}."
    return f"It may lie up to {below}, and {100.0 * margin:g} are allowed."


def _beside_the_best(decision: JudgesDecision, losses: LossPicture, pick: ChosenJudge) -> str:
    """What a judge costs that is not the best one, and how much it may lose."""
    chosen = next(loss for loss in losses.judges if loss.judge == pick.judge)
    if chosen.judge == pick.best or not chosen.loss:
        return ""
    bound = f", at most {points(chosen.high)}"
    if chosen.high is None:
        bound = f", without a bound ({chosen.reason})"
    prices = {judge.judge: judge.usd_per_1k for judge in decision.measured}
    price, best_price = prices[chosen.judge], prices[pick.best]
    cost = ""
    if price is not None and best_price is not None:
        instead = f" instead of {money(best_price)}" * bool(best_price)
        cost = f", for {money(price)}{instead} USD per 1,000{', as much as the best' * (not best_price)}"
    return f"It is {points(chosen.loss)} points below {pick.best}, the best{bound}{cost}."


def _ends(loss: Estimate) -> str:
    return f"{points(loss.low)} to {points(loss.high)}"


# --- what is not known


def _unknown(decision: JudgesDecision, lead: Estimate, pick: ChosenJudge) -> tuple[str, ...]:
    """What weighs most comes first; `lead`: of the best judge over the best constant."""
    result, may_choose, judge = decision.result, decision.basis.may_choose, pick.judge or pick.best
    sealed = f" The {count(result.gold.n_test_items)} test items here took no part in it."
    stand_in, to_show = entry_of(decision, judge).stand_in, _questions_to_show(lead)
    unpriced = [judge.judge for judge in decision.measured if judge.usd_per_1k is None]
    costs, rank = ("costs", "it ranks") if len(unpriced) == 1 else ("cost", "they rank")
    shown = "more questions would show it, if it is as good as it looks."
    return sentences(
        "Whom to use: judges are chosen on train and dev (judgecal score --split open)."
        if not may_choose
        else "Whether another prompt or model would do: only these were asked."
        if decision.chosen is None
        else f"Whether it holds on questions that did not choose it: judgecal select {result.experiment} "
        f"confirms once on test.{sealed * bool(result.gold.n_test_items)}",
        result.gold.labels_by == "project" and OWN_LABELS,
        stand_in is not None
        and stand_in.at_worst is None
        and f"Whether {judge} could replace a person: {stand_in.reason}.",
        may_choose
        and pick.kind == "none"
        and to_show is not None
        and f"Whether {pick.best} beats the best constant: about {count(to_show)} {shown}",
        pick.more_questions is not None
        and f"Whether {pick.cheaper} is good enough: about {count(pick.more_questions)} {shown}",
        not any(rater.enough for rater in result.raters)
        and f"How well people agree with each other: no two raters share {MIN_SHARED} items.",
        not any(entry.retest for entry in result.judges)
        and "How often a judge contradicts itself: each item was judged once (--repeats 3 would tell).",
        bool(unpriced) and f"What {in_a_row(unpriced)} {costs}: without a price {rank} as the dearest.",
        decision.sampling == "curated"
        and "Rates in production: the items were picked, so the mix is no product's.",
        decision.sampling == "unknown"
        and "Rates in production: the card does not say how the items were sampled.",
    )


def _questions_to_show(lead: Estimate) -> int | None:
    """About how many more questions would show a lead as large as this; None without one, or out of reach."""
    if lead.value is None or lead.low is None or lead.value <= 0.0 or lead.low > 0.0:
        return None
    more = math.ceil(lead.n_groups * ((lead.value - lead.low) / lead.value) ** 2) - lead.n_groups
    return max(1, more) if more <= OUT_OF_REACH else None
