"""What a result about judges comes to: whom to use and for what, how sure that is, and what is not known.

One function decides, over what `selection.decision` knows; every command that is about judges prints it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from judgecal.experiment.agreement import Entry, GoldSummary, JudgeEntry, LabelledTable, RaterEntry, TableRate
from judgecal.experiment.stored import Unread, UnreadReplies
from judgecal.judges.protocol import JudgeName
from judgecal.records import Estimate, Headline
from judgecal.report.wording import (
    OWN_LABELS,
    between,
    count,
    count_of,
    fitting,
    in_a_row,
    percent,
    plain,
    points,
    sentence,
    sentences,
)
from judgecal.selection.decision import Evidence, Recommendation
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.stand_in import MIN_SHARED, StandIn

_MESSAGE = 160  # characters of a message in a headline
CANNOT_TELL = "We cannot tell whom to use."
NOT_DRAWN = (
    "What share of all answers is right: the judge says something else of the labelled ones than of the "
    "rest, so the labels were not drawn at random."
)
_MANY_TIES = 0.1  # share of the items on which raters tie: from here on settling them is the next step


def judges_headline(evidence: Evidence) -> Headline:
    """Return the Headline (which judge to use, and for what) from Evidence on judges.

    Where raters tie no judge's number counts the items; where they are many, to settle them is the next step.
    """
    nothing = unread_headline(evidence.unread)
    if nothing is not None:
        return nothing
    headline, gold = naming_unread(_ranked(evidence), evidence.unread), evidence.result.gold
    if evidence.result.table is not None:
        return _of_table(headline, evidence, evidence.result.table)
    if not gold.n_tied:
        return headline
    sheet = f"judgecal gold sheet {gold.set} --ties -o ties.csv"
    what = f"How judges do on the {_ties(gold)}, the harder ones: {sheet} sends them to another rater."
    many = evidence.basis.may_choose and gold.n_tied >= _MANY_TIES * (gold.n_items + gold.n_tied)
    settle = f"judgecal gold label {gold.set} --adjudicate" if many else headline.next
    return replace(headline, unknown=(what, *headline.unknown), next=settle)


def _ties(gold: GoldSummary) -> str:
    """`12 of 120 answers (10%) on which raters tie`; empty where they tie on none."""
    n_all = gold.n_items + gold.n_tied
    share = f"{gold.n_tied:,} of {n_all:,} {gold.noun} ({gold.n_tied / max(1, n_all):.0%})"
    return f"{share} on which raters tie" * bool(gold.n_tied)


def _of_table(headline: Headline, evidence: Evidence, table: LabelledTable) -> Headline:
    """A headline on a table that is no gold set yet: what the judge says of it and what people say first; no
    command that needs the set but the one that makes it."""
    gold, judge = evidence.result.gold, evidence.pick and (evidence.pick.judge or evidence.pick.best)
    rate = next((rate for rate in table.rates if rate.judge == judge), None)
    first = () if rate is None else rate_in_words(rate, gold)
    because, more = fitting(*first, *headline.because, *headline.more)
    unknown = sentences(
        rate is not None and not rate.drawn and NOT_DRAWN,
        *(what for what in headline.unknown if "judgecal " not in what),
        "Whether it holds on other answers: nothing is sealed here, and gold import keeps some for that.",
    )
    return replace(headline, because=because, more=more, unknown=unknown, next=table.keep)


def rate_in_words(rate: TableRate, gold: GoldSummary) -> tuple[str, ...]:
    """Return a tuple of sentences from a TableRate and a GoldSummary: as judged, labelled, corrected."""
    whom, n = raters_in_words(gold.labels_by)[0], f"{count(rate.raw.n_expected)} {gold.noun}"
    binary = gold.scale == "binary"

    def value(number: float | None) -> str:
        if number is None:
            return "an unknown part"
        return f"{points(number)}%" if binary else plain(number, 2)

    raw = value(rate.raw.value)
    judged = f"passes {raw} of the {n}" if binary else f"gives the {n} {raw} on average"
    labels = f"{rate.judge} {judged}; {whom}: {value(rate.people.value)}"
    if rate.people.n == rate.raw.n_expected:
        return (f"{labels}.",)
    ends, corrected = "", rate.corrected
    if corrected.low is not None and corrected.high is not None:
        ends = f" [{value(corrected.low).rstrip('%')}, {value(corrected.high).rstrip('%')}]"
    return sentences(
        f"{labels} of the {count(rate.people.n)} labelled.",
        rate.drawn and f"Corrected for its errors: {value(corrected.value)}{ends} of all.",
    )


def _ranked(evidence: Evidence) -> Headline:
    """Whom to use and for what, in one sentence; in the next what it reaches beside people and the floor."""
    result, gold, losses, pick = evidence.result, evidence.result.gold, evidence.losses, evidence.pick
    if losses is None or pick is None:
        values = [judge.entry.decided_by(evidence.metric) for judge in evidence.measured]
        why = next((value.reason for value in values if value.reason), "nothing was judged")
        return Headline("too few", CANNOT_TELL, (sentence(why),), next=f"judgecal gold check {gold.set}")
    best, may_choose, floor = pick.best, evidence.basis.may_choose, evidence.floor[0]
    unknown, entry = _unknown(evidence, floor.loss, pick), entry_of(evidence, pick.judge or best)
    if not may_choose:
        what = f"Choose nobody from this: all are sealed test {gold.noun}."
        following = f"judgecal score --gold {gold.set} --judge '{best}'"
        if entry.kind == "recorded":
            option = "--split open" if evidence.kept else "--help"
            following = f"judgecal agreement --gold {gold.set} {option}"
        because, more = fitting(*_agreement(evidence, best, best))
        return Headline("none", what, because, unknown, following, "none", more)
    where = on_train_and_dev(evidence.basis.n_groups) * bool(gold.n_test_items)
    if pick.judge is None:
        several, constant = len(losses.by_judge) > 1, always(floor.judge, gold.scale)
        what, reasons, following = nobody(pick, gold, entry.kind, constant, len(losses.by_judge))
        who = f"So far {best}" if pick.too_few else f"The best, {best}," if several else "It"
        lead = f"Its lead over {constant}{where}: {points(floor.loss.value)} points ({_ends(floor.loss)})."
        reached, beside = _agreement(evidence, best, who), beside_free(pick, where)
        because, more = fitting(*reached, *(reasons if pick.too_few else (lead,)), *beside)
        return Headline(pick.kind, what, because, unknown, following, pick.kind, more)
    because, more = fitting(
        *_agreement(evidence, pick.judge),
        *beside_free(pick, where),
        *not_told_apart(pick, where),
        _beside_a_person(entry.stand_in, evidence),
    )
    chip, what = use(pick.judge, entry.stand_in, evidence.margin, gold.noun)
    return Headline(pick.kind, what, because, unknown, f"judgecal select {result.experiment}", chip, more)


def nobody(
    pick: Recommendation, gold: GoldSummary, kind: str, constant: str, n_judges: int
) -> tuple[str, tuple[str, ...], str]:
    """Return texts from a Recommendation of nobody, a GoldSummary, a kind, a constant's name and n_judges."""
    if pick.too_few:
        what, _, why = pick.too_few.partition(": ")
        return f"{what}.", (why,), f"judgecal gold sheet {gold.set} -o sheet.csv"
    # a recorded or local judge has no prompt to begin with, so that the embedded model gets one; the set
    # starter is the one that the command takes anyway
    name = JudgeName.read(pick.best) if kind == "prompt" else None
    pairs = gold.noun == "pairs"
    which = f"{'--signature pairwise_v1 ' * pairs}--model embedded"
    if name and not name.program:
        which = f"--signature {name.signature} --model {name.model}"
    following = f"judgecal optimize {f'--gold {gold.set} ' * (gold.set != 'starter')}{which}"
    if gold.scale == "nominal" and not pairs and (not name or name.program):
        following = "judgecal judges"  # no shipped signature has the words of these labels
    better = f"shown to agree with {raters_in_words(gold.labels_by)[0]} better than {constant}."
    if n_judges == 1:
        return f"Do not use {pick.best} yet.", (f"It is not {better}",), following
    return f"Use none of these {n_judges:,} judges yet.", (f"None is {better}",), following


def use(judge: str, stand_in: StandIn | None, margin: float, noun: str) -> tuple[str, str]:
    """Return (chip, sentence) from a judge's name, its StandIn test or None, a margin and the items' noun."""
    may = None if stand_in is None else stand_in.shown(margin)
    if may:
        return "use", f"Use {judge}: it may stand in for a person."
    if may is None:
        return "triage only", f"{judge} may sort {noun}; whether it could replace a person is open."
    return "triage only", f"{judge} may sort {noun}. It may not replace a person."


# --- where nothing could be read


def unread_headline(unread: Unread | None) -> Headline | None:
    """Return a Headline from Unread judges (or None) where nothing could be read; else None."""
    if unread is None or not unread.all:
        return None
    several, n = len(unread.judges) > 1, max(judge.n for judge in unread.judges)
    who = "no judge" if several else unread.judges[0].judge
    because = [
        f"{f'Of {judge.judge} most often' if several else 'Most often'}: {_failure(judge)}."
        for judge in unread.judges[:3]
    ]
    journal = f"{unread.journal} holds what came instead."
    first, more = fitting(
        *because[:1],
        journal,
        *because[1:],
        f"{'They were' if several else 'It was'} asked about {count_of(n, 'answer')}.",
    )
    what = f"Nothing could be read: {who} gave a verdict." if several else f"Nothing could be read of {who}."
    return Headline("unread", what, first, next=unread.again, more=more)


def naming_unread(headline: Headline, unread: Unread | None) -> Headline:
    """Return a Headline from a Headline and Unread (judges without verdict) or None, naming those first."""
    if unread is None or not unread.judges:
        return headline
    names = in_a_row([judge.judge for judge in unread.judges])
    n_asked = count_of(max(judge.n for judge in unread.judges), "answer")
    reasons = [f"{judge.judge}: {_failure(judge)}." for judge in unread.judges]
    none = f"{names} gave no verdict on any of {n_asked}."
    because, more = fitting(none, *headline.because, *headline.more, *reasons)
    again = f"How {names} would do: {unread.again} asks again."
    return replace(headline, because=because, more=more, unknown=(*headline.unknown, again))


def _failure(judge: UnreadReplies) -> str:
    """The commonest message, shortened; without one what kind of failure it is."""
    if judge.message is None:
        return f"the failure is of kind {judge.kind}"
    text = " ".join(judge.message.split()).rstrip(".")
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} ..."


# --- what a judge reaches


def _agreement(evidence: Evidence, judge: str, who: str = "It") -> tuple[str, ...]:
    """How well a judge agrees with people, people with each other and with it, and what is free."""
    result, metric, pick = evidence.result, evidence.metric, evidence.pick
    entry, people = entry_of(evidence, judge), [rater for rater in result.raters if rater.enough]
    every = {line.judge: line for line in (*result.floor, *result.judges)}
    reaches = deciding(result.floor[0], metric).value
    name = always(evidence.floor[0].judge, result.gold.scale)
    beaten = None if pick is None or pick.judge or pick.too_few or not evidence.basis.may_choose else False
    if pick and pick.free and pick.judge:
        beaten, name = pick.free.shown, pick.free.judge
        reaches = deciding(every[name], metric).value if name in every else None
    return reach_in_words(
        who,
        deciding(entry, metric),
        result.gold,
        mapped=bool(entry.calibrated),
        free=(name, reaches, beaten),
        people=[deciding(rater, metric).value for rater in people],
        beside=[
            deciding(line, metric).value for rater in people for line in rater.judges if line.judge == judge
        ],
        ties=_ties(result.gold),
    )


def reach_in_words(
    who: str,
    value: Estimate,
    gold: GoldSummary,
    *,
    mapped: bool,
    free: tuple[str, float | None, bool | None],
    people: Sequence[float | None] = (),
    beside: Sequence[float | None] = (),
    ties: str = "",
) -> tuple[str, ...]:
    """Return a tuple of sentences: judge's name, Estimate, GoldSummary, `mapped`, free judge (a tuple).

    Args:
        who: the judge, by its name or as a pronoun.
        value: of the leading metric, where it asks for that once calibrated (`mapped` says whether it is).
        free: the strongest free judge or, where no other is free, the best constant in words; what it
            reaches, and whether this one is shown to beat it (None: not asked).
        people, beside: each rater's agreement with the others, and the judge's on the same items.
        ties: the items on which raters tie, in words; a judge's number is without them, what is said of
            people and the judge is on all that two raters share.
    """
    whom, raters = raters_in_words(gold.labels_by)
    share = f"{points(value.value)}%"
    if value.low is not None:
        share += f" [{points(value.low)}, {points(value.high)}]"
    kinds = f"good and bad {gold.noun}" if gold.scale == "binary" else "low, middle and high labels"
    calibrated = " calibrated" * (mapped and gold.scale != "binary")
    reached_by_judge = f"{who} reaches {share}{calibrated} agreement with {whom}, {kinds} weighing the same."
    if gold.scale == "nominal":
        reached_by_judge = f"{who} agrees with {whom} on {share} of {gold.noun}."
    name, reaches, beaten = free
    beats = "; it is shown to beat that" if beaten else ", which it is not shown to beat"
    reached = f"{percent(reaches, 1)}{'' if beaten is None else beats}"
    constant = name.startswith("saying ")
    of_free = f"S{name[1:]} would get {reached}." if constant else f"The free {name} reaches {reached}."
    if reaches is None and beaten is not None:
        of_free = f"It is {'not ' * (not beaten)}shown to beat the free {name}."
    return sentences(
        reached_by_judge,
        of_free,
        bool(people)
        and f"{raters.capitalize()} reach {between(people)} with each other, {between(beside)} with it.",
        bool(ties)
        and f"The {ties} count {'only where raters are held beside raters' if people else 'nowhere'}.",
    )


def deciding(entry: Entry, metric: str) -> Estimate:
    """Return the Estimate that decides, from an Entry (judge or rater) and a metric's name."""
    mapped = entry.decided_by(metric)
    if not isinstance(entry, RaterEntry):
        return mapped
    return max(entry.as_wrong[metric], mapped, key=lambda reached: reached.value or 0.0)


def entry_of(evidence: Evidence, judge: str) -> JudgeEntry:
    """Find a judge's entry by its name."""
    return next(entry for entry in evidence.result.judges if entry.judge == judge)


def raters_in_words(labels_by: str) -> tuple[str, str]:
    """Words for whom a judge agrees with, and for the raters; only people's labels are theirs."""
    return ("the project's own labels", "its raters") if labels_by == "project" else ("people", "people")


def always(constant: str, scale: str) -> str:
    """Return in words, from a constant's name and a scale's name: `saying "45" every time`."""
    verdict = constant.removeprefix("constant ")
    word = {"0": "fail", "1": "pass"}.get(verdict, verdict) if scale == "binary" else verdict
    return f'saying "{word}" every time'


def on_train_and_dev(n_groups: int) -> str:
    """Words for the questions of train and dev, where a choice rests on them alone."""
    return f" on the {count(n_groups)} questions of train and dev"


# --- beside whom


def beside_free(pick: Recommendation, where: str) -> tuple[str, ...]:
    """Return a tuple of sentences on a Recommendation's lead over a free judge, given a text `where`."""
    free = pick.free
    if free is None:
        return ()
    loss, side = free.loss, "above"
    if loss.value is not None and loss.value < 0.0:
        low, high = (None if end is None else -end for end in (loss.high, loss.low))
        loss, side = replace(loss, value=-loss.value, low=low, high=high), "below"
    ends = ", without an interval" if loss.low is None or loss.high is None else f" ({_ends(loss)})"
    lead = f"{points(loss.value)} points {side} the free {free.judge}"
    return (f"{pick.judge or pick.best} is {lead}{where}{ends}.",)


def not_told_apart(pick: Recommendation, where: str) -> tuple[str, ...]:
    """Return a tuple of sentences on a Recommendation's tied judges, given a text `where`."""
    others = [name for name in pick.tied if name not in (pick.judge, pick.free and pick.free.judge)]
    beside = "it" if pick.judge == pick.best or pick.judge not in pick.tied else f"it or {pick.best}"
    return sentences(
        bool(others)
        and f"{in_a_row(others)} {'do' if len(others) > 1 else 'does'} about as well as {beside}{where}."
    )


def _beside_a_person(stand_in: StandIn | None, evidence: Evidence) -> str:
    """Why a judge is said to stand in for a person, or is not, where that was tested."""
    if stand_in is None or stand_in.at_worst is None:
        return ""
    margin, shown = evidence.margin, stand_in.shown(evidence.margin)
    if stand_in.at_worst > -margin and not shown:
        return "It is not shown to agree with every person better than a constant does."
    raters = stand_in.raters.items()
    worst, rater, n = min((beside.at_worst or 0.0, name, beside.n) for name, beside in raters)
    return (
        f"Next to {rater} it could be {points(-worst)} points worse ({count(n)} {evidence.result.gold.noun} "
        f"both rated); we allow {100.0 * margin:g}."
    )


def _ends(loss: Estimate) -> str:
    return f"{points(loss.low)} to {points(loss.high)}"


# --- what is not known


def _unknown(evidence: Evidence, lead: Estimate, pick: Recommendation) -> tuple[str, ...]:
    """What weighs most comes first; `lead`: of the best judge over the best constant."""
    result, may_choose, judge = evidence.result, evidence.basis.may_choose, pick.judge or pick.best
    n_sealed, noun, free = result.gold.n_test_items, result.gold.noun, pick.free
    stand_in, to_show = entry_of(evidence, judge).stand_in, _questions_to_show(lead)
    sealed = f"the {count(n_sealed)} sealed test {noun}" if n_sealed else "questions that did not choose it"
    beats = ""
    if free is not None and not free.shown and not free.below:
        needed = _questions_to_show(free.loss)
        tell = "" if needed is None else f"; about {count(needed)} more questions would tell"
        gap = f"{points(free.loss.value)} points, {_ends(free.loss)}"
        where = on_train_and_dev(evidence.basis.n_groups) * bool(n_sealed)
        beats = f"Whether it beats the free {free.judge}{where}: {gap}{tell}."
    shown = "more questions would show it, if it is as good as it looks."
    return sentences(
        may_choose and beats,
        "Whom to use: judges are chosen on train and dev (judgecal score --split open)."
        if not may_choose
        else "Whether another prompt or model would do: only these were asked."
        if evidence.chosen is None
        else f"Whether it holds on {sealed}: judgecal select {result.experiment} confirms it once.",
        result.gold.labels_by == "project" and OWN_LABELS,
        stand_in is not None
        and stand_in.at_worst is None
        and f"Whether {judge} could replace a person: {stand_in.reason}.",
        may_choose
        and pick.kind == "none"
        and to_show is not None
        and f"Whether {pick.best} beats the best constant: about {count(to_show)} {shown}",
        pick.more_questions is not None
        and f"{pick.cheaper} may be good enough; about {count(pick.more_questions)} more "
        "labelled questions would settle it.",
        not any(rater.enough for rater in result.raters)
        and f"How well people agree with each other: no two raters share {MIN_SHARED} items.",
        not any(entry.retest for entry in result.judges)
        and "Whether a judge says the same twice: it was asked once (--repeats 3 would tell).",
        evidence.sampling in ("curated", "unknown")
        and "Rates in production: the card does not say that these items were drawn at random there.",
    )


def _questions_to_show(lead: Estimate) -> int | None:
    """About how many more questions would show a lead as large as this; None without one, or out of reach."""
    if lead.value is None or lead.low is None or lead.value <= 0.0 or lead.low > 0.0:
        return None
    more = math.ceil(lead.n_groups * ((lead.value - lead.low) / lead.value) ** 2) - lead.n_groups
    return max(1, more) if more <= OUT_OF_REACH else None
