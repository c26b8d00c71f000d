"""Whom to use, decided once: agreement, score, report, the index and `select` all say what stands here.

Every judge is measured on open items and held to the caps; the cheapest shown good enough is chosen. "Not
significantly different" is no reason to take the cheap one: with few items nobody differs significantly from
anybody, and the cheapest is often the worst. So a loss must be shown to be small, and where it cannot be, the
best judge is taken and said to be taken for want of questions: it was not shown to be good enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judgecal.errors import InputError
from judgecal.experiment.agreement import AgreementResult, Entry, StoredExperiment, entry
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.stored import Unread, stored_prompts, unread_of
from judgecal.experiment.verdicts import (
    FloorLoss,
    SliceTable,
    VerdictShape,
    floor_loss,
    judge_shape,
    judge_slices,
    paired_loss,
)
from judgecal.goldset import JUDGEMENTS
from judgecal.judges.protocol import JudgeName
from judgecal.models import EMBEDDED, ModelSpec
from judgecal.probes.result import KeptProbes, stored_probes
from judgecal.probes.rules import families_named
from judgecal.records import Item
from judgecal.stats import leading_metric
from judgecal.stats.means import stratum_that_drives
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.simultaneous import Losses, losses_against_best
from judgecal.workspace import Workspace

MIN_QUESTIONS = 20
"""On fewer questions nobody is recommended: one of them is worth five points or more."""
_EPS = 1e-12


# --- what judges cost and say


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """One judge as production would see it, measured on the items that it is chosen on."""

    column: Verdicts  # its judgements, priced: a stored reply was free, a new one is not
    entry: Entry  # its line of the agreement table on those items
    repeats: int  # judgements of each item that it was asked for
    usd_per_1k: float | None  # cost of a thousand judgements; None where it is not known, which is never 0
    free: bool = False  # a local judge or the embedded model, by its kind and not by its price
    probes: KeptProbes | None = None  # what experiments of `probe` say of it; None where there are none

    @property
    def judge(self) -> str:
        return self.column.judge

    @property
    def rank(self) -> tuple[float, float]:
        """Cheapest first, then quickest; what is not known comes last."""
        p95_s = self.entry.latency_s.p95
        return (
            math.inf if self.usd_per_1k is None else self.usd_per_1k,
            math.inf if p95_s is None else p95_s,
        )


@dataclass(frozen=True, slots=True)
class Caps:
    """What a judge may be at most, and at least; None and empty ask for nothing. The unknown keeps no cap."""

    usd_per_1k: float | None = None  # dollars for a thousand judgements
    allow_below_floor: bool = False  # also a judge not shown to beat the best constant, or on test does not
    allow_unconfirmed: bool = False  # also one that on test falls further than chance and the choice explain
    broken: Mapping[str, float] = field(default_factory=dict)  # family of probes -> share broken, 0..1

    def check(self) -> None:
        """Refuse caps that no judge could keep or exceed."""
        families_named([*self.broken])
        usd = self.usd_per_1k
        if usd is not None and not 0.0 <= usd < math.inf:
            raise InputError(f"--max-usd-per-1k must be 0 or more and finite, found {usd:g}")

    def config(self) -> dict[str, Any]:
        """Return the caps as a dict of plain values for a configuration."""
        return {
            "max_usd_per_1k": self.usd_per_1k,
            "max_broken": ",".join(f"{name}={100 * most:g}" for name, most in self.broken.items()),
            "allow_below_floor": self.allow_below_floor,
            "allow_unconfirmed": self.allow_unconfirmed,
        }

    def over(self, judge: MeasuredJudge) -> str | None:
        """Say in a sentence why a MeasuredJudge exceeds the own caps; None where it is within them."""
        reasons, usd, cap = [], judge.usd_per_1k, self.usd_per_1k
        if cap is not None and usd is None:
            reasons.append(f"nobody knows its cost, and the cap is {cap:g} USD per 1,000 judgements")
        elif cap is not None and usd is not None and usd > cap:
            reasons.append(f"its cost is {usd:.4g} USD per 1,000 judgements, and the cap is {cap:g}")
        for name, most in self.broken.items():
            if judge.probes is None or not judge.probes.answers(name):
                reasons.append(f"nobody knows how many of its {name} probes are broken (judgecal probe)")
                continue
            broken = judge.probes.broken(name, level=1.0 - 0.05 / len(self.broken))
            if broken.low is not None and broken.low > most:
                share = f"{broken.value or 0.0:.1%} of its {name} probes are broken"
                reasons.append(f"{share}, and the cap is {most:.1%}")
        return "; ".join(reasons) or None


def open_items(stored: StoredExperiment, *, limit: int | None = None) -> tuple[Item, ...]:
    """The items that may choose: those of train and dev, in file order, the first `limit`."""
    return tuple(item for item in stored.items if item.group not in stored.gold.test_groups)[:limit]


def measure(
    stored: StoredExperiment,
    table: AgreementTable,
    entries: Mapping[str, Entry] | None = None,
    *,
    metrics: Sequence[str] | None = None,
) -> list[MeasuredJudge]:
    """Return a list of MeasuredJudges, from a StoredExperiment and an AgreementTable of the items to use.

    A model is priced as the experiment's configuration says; a judge that is free by its kind (local, or the
    embedded model) is so recorded or called.
    `entries` are what is known of judges on these very items, and need not be measured again; `metrics` those
    that are needed, all where not given.
    """
    models = {str(judge["judge"]): judge.get("model") for judge in stored.experiment.config.get("judges", ())}
    measured, probes = [], stored_probes(stored.experiment.folder.parent, stored.gold)
    for column in stored.judges:
        name = JudgeName.read(column.judge)
        free = name is not None and (name.kind == "local" or name.model == EMBEDDED)
        if model := models.get(column.judge):
            prices = {name: model.get(name) for name in ("input_usd_per_1m", "output_usd_per_1m")}
            spec = ModelSpec(column.judge, str(model["id"]), api_base=model.get("api_base"), **prices)
            column = replace(column, price=spec.cost_usd)
            free = spec.embedded
        line = (entries or {}).get(column.judge) or entry(Entry, table, column, metrics=metrics)
        usd = 0.0 if free else line.usd_per_1k
        kept_probes = probes.get(column.rows[0].judge_fingerprint) if column.rows else None
        measured.append(MeasuredJudge(column, line, table.repeats, usd, free, kept_probes))
    return measured


# --- who is chosen


@dataclass(frozen=True, slots=True)
class CheapestWithin:
    """Who was taken."""

    judge: str
    within: tuple[str, ...]  # all shown to lose less than the margin against the truly best, cheapest first
    why: str
    # about how many more questions of train and dev would show that a judge that costs no more is good
    # enough; None where that is shown already, all others cost more, none came within the margin, or it is
    # out of reach
    more_questions: int | None = None
    nearest: str | None = None  # the judge that they would show it of


def choose(judges: Sequence[MeasuredJudge], losses: Losses, *, margin: float, metric: str) -> CheapestWithin:
    """Return CheapestWithin, from MeasuredJudges, their Losses, the margin allowed and a metric's name.

    Of equally cheap ones the quickest, then the better one, then by name: where neither cost nor latency is
    known, as of recorded judgements, nothing speaks for any but the best. Where none is shown to, the judge
    with the best value is taken (of equals the cheapest), and `why` says that it is no more than that.
    `losses` is made with the same margin, of these judges at least.
    """
    seen = {judge: math.inf if loss.loss is None else loss.loss for judge, loss in losses.by_judge.items()}
    ranked = sorted(judges, key=lambda judge: (*judge.rank, seen[judge.judge], judge.judge))
    usd_of = {judge.judge: judge.rank[0] for judge in ranked}
    names = list(usd_of)
    if len(losses.by_judge) == 1:
        return CheapestWithin(names[0], tuple(names), "it is the only judge that may be chosen")
    allowed = amount_of(margin, metric)
    uppers = {judge: losses.by_judge[judge].upper for judge in names}
    within = tuple(judge for judge in names if (upper := uppers[judge]) is not None and upper < margin)
    least = min(seen[judge] for judge in names) + _EPS
    taken = within[0] if within else next(judge for judge in names if seen[judge] <= least)
    if seen[taken] > least:
        why = (
            f"it is the cheapest of the {len(within)} judges that are shown to lose less than {allowed} of "
            f"{in_words(metric)} against the best (it loses at most "
            f"{amount_of(uppers[taken] or 0.0, metric)})"
        )
        return CheapestWithin(taken, within, why)
    why = f"of the judges that may be chosen it has the best {in_words(metric)} here"
    if not within:
        why += f", but it may lose the margin of {allowed} or more against the truly best"
    if losses.reason is not None:
        return CheapestWithin(taken, within, f"{why}: {losses.reason}")
    needed = {
        judge: losses.questions_needed(judge, margin)
        for judge in names
        if judge not in (taken, *within) and usd_of[judge] <= usd_of[taken]
    }
    countable = {judge: n - losses.n_groups for judge, n in needed.items() if n is not None}
    nearest = min(countable, key=lambda judge: countable[judge], default=None)
    if nearest is None or countable[nearest] > OUT_OF_REACH:
        why += "; more labels would hardly show that one that costs no more is as good"
        return CheapestWithin(taken, within, why)
    more = max(1, countable[nearest])
    would = f"about {more:,} more labelled question{'s' * (more > 1)} in train and dev would settle it"
    why += f"; {nearest} costs no more and may be as good: {would}, if it is as good as it looks"
    return CheapestWithin(taken, within, why, more, nearest)


def in_words(metric: str) -> str:
    """A metric in a sentence: those that lead are agreement with the labels, the others have their names."""
    return "agreement with the labels" if metric in ("macro_agreement", "accuracy") else metric


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Whom to use, on the items that choose, and the kind of headline that this makes."""

    kind: Literal["use", "tied", "too few", "none"]
    judge: str | None  # None where nobody is shown to beat the best constant, or nobody may be chosen here
    best: str  # who has the best value
    floor: FloorLoss  # what the best constant loses against the best judge
    # about how many would show that `cheaper` is good enough; None where that is settled
    more_questions: int | None = None
    cheaper: str | None = None
    tied: tuple[str, ...] = ()  # those that are not shown to be worse than the best
    # what the strongest free judge loses against that judge; None without another, or where that judge is
    # free itself
    free: FloorLoss | None = None
    too_few: str | None = None  # what there is too little of, and what to label


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """The choice with what it rests on; without losses where nobody is within the caps or has a value,
    without choice where nobody is shown to beat the best constant."""

    table: AgreementTable
    measured: Sequence[MeasuredJudge]  # every judge that was asked for
    losses: Losses | None = None  # of those within the caps
    # likewise: judge -> the lower end of what it loses against the best, paired; 0 of the best
    lows: Mapping[str, float | None] = field(default_factory=dict)
    floors: Mapping[str, FloorLoss] = field(default_factory=dict)  # judge -> what the best constant loses
    choice: CheapestWithin | None = None
    pick: Recommendation | None = None

    @property
    def chosen(self) -> MeasuredJudge:
        """The chosen judge; ask only where there is one."""
        assert self.choice is not None  # the caller has looked
        return self.measured_judge(self.choice.judge)

    def measured_judge(self, judge: str) -> MeasuredJudge:
        return next(measured for measured in self.measured if measured.judge == judge)

    def not_above(self, judge: str) -> str | None:
        """Say why a judge, by its name, is not shown to beat the best constant; None where it is."""
        floor = self.floors.get(judge)
        if floor is not None and not self.measured_judge(judge).entry.n:
            return "it gave no verdict on any item"
        if floor is None or floor.shown:
            return None
        constant, lead = floor.judge.removeprefix("constant "), floor.loss
        if lead.low is None or lead.high is None:
            unknown = f"than always saying {constant} ({lead.reason})"
            return f"it is not shown to agree better with the labels {unknown}"
        shown = "is shown to agree less with" if floor.below else "is not shown to agree better with"
        share = metric_facts(floor.metric).unit == "share"
        ends = (f"{100.0 * end:+.1f}" if share else f"{end:+.3f}" for end in (lead.low, lead.high))
        return f"it {shown} the labels than always saying {constant} ({' to '.join(ends)}{' points' * share})"


def decide(
    stored: StoredExperiment,
    table: AgreementTable,
    measured: Sequence[MeasuredJudge],
    *,
    metric: str,
    margin: float,
    caps: Caps,
) -> OpenChoice:
    """Return OpenChoice: StoredExperiment, AgreementTable, MeasuredJudges, metric's name, margin and Caps.

    A price that is not known ranks as the dearest; a free judge is known to cost nothing by its kind.
    """
    within = [judge for judge in measured if caps.over(judge) is None]
    if all(judge.entry.decided_by(metric).value is None for judge in within):
        return OpenChoice(table, measured)
    columns, k = {judge.judge: judge.column for judge in within}, len(within)
    deciding = table.deciding(columns, calibrated=metric_facts(metric).calibrated)
    options: dict[str, Any] = {"metric": metric, "margin": margin, **table.shared}
    losses = losses_against_best(table.labels, deciding.verdicts, deciding=deciding, **options)
    best, lows = columns[losses.best], dict[str, float | None]()
    floors, leading = {}, leading_metric(table.gold.scale)
    for column in columns.values():
        low = 0.0 if column is best else paired_loss(table, best, column, metric).loss.low
        lows[column.judge] = low
        floor = floor_loss(table, column, metric=metric, n_judges=k)
        if floor.loss.value is None and metric != leading:  # a constant has no correlation, say
            floor = floor_loss(table, column, metric=leading, n_judges=k)
        floors[column.judge] = floor
    enough = len(set(table.groups)) >= MIN_QUESTIONS
    able = [
        judge
        for judge in within
        if judge.entry.n and (caps.allow_below_floor or (floors[judge.judge].shown and enough))
    ]
    choice = choose(able, losses, margin=margin, metric=metric) if able else None
    decided = OpenChoice(table, measured, losses, lows, floors, choice)
    return replace(decided, pick=_recommendation(stored, decided, losses, metric))


def _recommendation(
    stored: StoredExperiment, decided: OpenChoice, losses: Losses, metric: str
) -> Recommendation:
    """Whom the headline names."""
    table, floors, choice, best = decided.table, decided.floors, decided.choice, losses.best
    judge = choice.judge if choice else None
    subject = decided.measured_judge(judge or best)
    free = None
    if not subject.free:  # the free judge that comes nearest to it, among those asked for and the floor
        beside = (*(judge.column for judge in decided.measured if judge.free), *stored.floor)
        k = len(floors)
        lost = (
            floor_loss(table, subject.column, metric=metric, n_judges=k, floor=column) for column in beside
        )
        measured = (loss for loss in lost if loss.loss.value is not None)
        free = min(measured, key=lambda loss: loss.loss.value or 0.0, default=None)
    tied = tuple(
        name
        for name, low in decided.lows.items()
        if name != best and (low is None or low <= 0.0 or (free and free.judge == name and not free.shown))
    )
    few = None
    kind: Literal["use", "tied", "too few", "none"] = "tied" if tied else "use"
    if judge is None or not floors[judge].shown or len(set(table.groups)) < MIN_QUESTIONS:
        few = _too_few(table, floors[best])
        kind = "too few" if few else "none"
    return Recommendation(
        kind=kind,
        judge=judge,
        best=best,
        floor=floors[best],
        more_questions=choice.more_questions if choice else None,
        cheaper=choice.nearest if choice else None,
        tied=tied,
        free=free,
        too_few=few,
    )


def _too_few(table: AgreementTable, floor: FloorLoss) -> str | None:
    """How many more questions to label, and of which kind; None where there are enough to decide by.

    A lead on fewer than MIN_QUESTIONS is not carried on to how many would show it: its error is hardly known
    there.
    """
    n_groups = len(set(table.groups))
    if n_groups >= MIN_QUESTIONS and floor.loss.low is not None:
        return None
    thin = [stratum for stratum in floor.strata if stratum.thin and stratum.more]
    needed = (math.ceil((stratum.more or 0) * n_groups / stratum.n) for stratum in thin)
    more = max([MIN_QUESTIONS - n_groups, *needed])
    if more < 1:
        return f"Too little to tell whom to use: {floor.loss.reason}."
    where = f"{len(table.items):,} items on {n_groups:,} question{'s' * (n_groups != 1)}"
    kinds = [f'at least {stratum.more} more "{stratum.name}" labels' for stratum in thin]
    driver = stratum_that_drives(floor.strata)
    if driver is not None and not thin:
        kinds = [f'above all with "{driver.name}" labels']
    which = f", {'with ' * bool(thin)}{' and '.join(kinds)}" if kinds else ""
    say = f"Label about {more:,} more question{'s' * (more != 1)}{which}"
    return f"Too few questions to tell whom to use: {where}. {say}."


@dataclass(frozen=True, slots=True)
class DecisionItems:
    """What judges are held against each other on."""

    split: str
    n_items: int
    n_groups: int
    may_choose: bool  # false where that is test items alone


@dataclass(frozen=True)
class Evidence:
    """What is known of the judges of an experiment: everything that its report shows."""

    result: AgreementResult  # what the command printed, over all items
    sampling: str
    basis: DecisionItems  # what the losses and the choice rest on
    metric: str
    margin: float
    losses: Losses | None  # against the best judge; None where no judge has a value of the metric
    lows: Mapping[str, float | None]  # judge -> the lower end of its loss, paired
    floor: tuple[FloorLoss, ...]  # what the floor loses against the best judge; empty without losses
    measured: tuple[MeasuredJudge, ...]  # each judge as production would see it
    pick: Recommendation | None  # whom to use; None without losses
    shapes: tuple[VerdictShape, ...]  # verdicts beside labels, over all items
    table: AgreementTable  # over all items
    open_items: tuple[Item, ...]  # of these
    prompts: Mapping[str, str] = field(default_factory=dict)  # what a prompt judge is sent, where known
    unread: Unread | None = None  # who has no verdict at all
    kept: bool = False  # whether the recorded judgements came with the set, so that no file need be named
    slices: SliceTable | None = None  # where the headline's judge fails, over the open items

    @property
    def chosen(self) -> str | None:
        """The judge to use; None where nobody is shown above the floor, or questions are too few."""
        return self.pick.judge if self.pick else None


def decide_on_judges(
    workspace: Workspace, stored: StoredExperiment, *, margin: float, result: AgreementResult
) -> Evidence:
    """Gather Evidence from a Workspace, a StoredExperiment, a margin and an AgreementResult.

    Judges are held against each other on the items that may choose (train and dev), as `select` does; where
    the experiment holds test items alone, on those, and then nobody is chosen. Counts and tables are over all
    items. `result` is what the command came to.
    """
    gold, whole = stored.gold, stored.table
    metric, chosen_on = leading_metric(gold.scale), open_items(stored)
    tied = tuple(item for item in stored.tied if not chosen_on or gold.split_of(item.group) != "test")
    table = replace(whole, items=chosen_on or stored.items, tied=tied)
    by_name = {judge.judge: judge for judge in result.judges} if table.items == stored.items else None
    measured = tuple(measure(stored, table, by_name))
    columns = [judge.column for judge in measured]
    decided = decide(stored, table, measured, metric=metric, margin=margin, caps=Caps())
    pick, floor = decided.pick, tuple[FloorLoss, ...]()
    if pick is not None and not chosen_on:
        pick = replace(pick, kind="none", judge=None, more_questions=None, cheaper=None)
    if decided.losses is not None:  # the floor beside the best of the judges
        best, k = decided.measured_judge(decided.losses.best).column, len(decided.floors)
        beside = (floor_loss(table, best, metric=metric, n_judges=k, floor=column) for column in stored.floor)
        floor = (decided.floors[best.judge], *beside)
    slices = None
    if pick is not None and chosen_on:
        subject = [column.judge for column in columns].index(pick.judge or pick.best)
        slices = judge_slices(replace(whole, items=chosen_on), columns[subject])
    result = replace(result, slices=slices.entries if slices else ())
    split = "test" if not chosen_on else "open" if stored.split == "all" else stored.split
    recorded = stored.experiment.config.get("recorded", {}).get("file") == JUDGEMENTS
    return Evidence(
        result=result,
        sampling=gold.card.sampling,
        basis=DecisionItems(split, len(table.items), len(set(table.groups)), bool(chosen_on)),
        metric=metric,
        margin=margin,
        losses=decided.losses,
        lows=decided.lows,
        floor=floor,
        measured=measured,
        pick=pick,
        shapes=tuple(judge_shape(whole, column) for column in columns),
        table=whole,
        open_items=chosen_on,
        prompts=stored_prompts(stored),
        unread=unread_of(stored),
        kept=recorded and (gold.path / JUDGEMENTS).is_file(),
        slices=slices,
    )
