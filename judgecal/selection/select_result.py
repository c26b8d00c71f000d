"""What `select` comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judgecal.errors import listed
from judgecal.experiment import (
    GoldSummary,
    StoredExperiment,
    looks_so_far,
    run_line,
    summary_of_gold,
    verdict_notes,
)
from judgecal.experiment.floor import constant_entry
from judgecal.experiment.people import judge_beside_people
from judgecal.experiment.stored import Unread, unread_of
from judgecal.goldset import split_notes
from judgecal.judges import JudgeKind
from judgecal.records import Estimate, Judgement, Result
from judgecal.selection.choice import MeasuredJudge, in_words
from judgecal.selection.confirm import Confirmed, SelectRequest, Upheld
from judgecal.selection.decision import ChosenJudge, OpenChoice
from judgecal.selection.lock import Lock, Noise, model_ids
from judgecal.stats import Calibration
from judgecal.stats.metrics import amount_of
from judgecal.stats.stand_in import StandIn

JudgeVerdict = Literal[
    "chosen",
    "within the margin",
    "not confirmed",
    "not shown",
    "not above the floor",
    "below the floor",
    "over the caps",
]
_REJECTED = ("not confirmed", "not shown", "not above the floor", "below the floor", "over the caps")


@dataclass(frozen=True, slots=True)
class RejectedJudge:
    """A judge that is not within the margin, and why."""

    judge: str
    why: str


@dataclass(frozen=True, slots=True)
class JudgeOnOpen:
    """One judge on the items that it is chosen on."""

    judge: str
    n: int  # judgements with a verdict, asked for, and without
    n_expected: int
    n_unscored: int
    value: Estimate  # the metric that decides, an unscored item counted as wrong
    complete_case: Estimate  # the same without such items
    loss: float | None  # against the best seen, and the bound of the loss against whoever is truly best
    loss_at_most: float | None
    reason: str | None  # why there is no bound, or which caps it is over
    usd_per_1k: float | None  # of a judgement; None where not known
    p95_s: float | None
    verdict: JudgeVerdict
    kind: JudgeKind = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectResult(Result):
    """What a selection comes to."""

    experiment: str
    chosen_from: str
    # the judge, None where nobody is within the caps and above the floor, or test refuses the choice; whether
    # it is shown to lose less than the margin against the truly best, or only has the best value; and the
    # sentence that says why
    chosen: str | None
    shown: bool
    why: str
    metric: str
    margin: float
    # within_margin, rejected: all that are shown to lose less than the margin, cheapest first; the others
    within_margin: tuple[str, ...]
    rejected: tuple[RejectedJudge, ...]
    # about how many more would show a cheaper judge good enough; None where nothing of that kind
    more_questions: int | None
    best: str | None  # who has the best value; None where nobody is within the caps
    level: float  # of the bounds on the losses, for all judges at once, and how they were made
    bounds: str
    judges: tuple[JudgeOnOpen, ...]
    gold: GoldSummary
    # confirmed, confirmed_complete, confirmed_on: METRIC -> Estimate on test, an unscored item counted as
    # wrong; the same of the scored ones; the test items. Empty and None where nobody was chosen. Where all
    # items chose (the split of confirmed_on is "all"), on these, at a level that allows for the choice
    confirmed: Mapping[str, Estimate]
    confirmed_complete: Mapping[str, Estimate]
    confirmed_on: GoldSummary | None
    test_looks: int  # decisions so far, what this one is in words, and whether test had served before
    test_look: str | None
    reused: bool
    lock: str | None  # where the lock went and its hash, or why there is none
    lock_sha256: str | None
    lock_reason: str | None
    noise: Noise | None
    # the map of the judge, fitted on train and dev, and as `confirmed` what test says through it; where all
    # items chose, fitted on these, and what they say cross-fitted
    calibration: Calibration | None
    confirmed_calibrated: Mapping[str, Estimate]
    usd: float
    n_unscored: int  # of the calls of this selection, and where they are
    journal: str
    notes: tuple[str, ...]
    run_line: str
    driven: tuple[str, ...] = ()  # where one stratum of the labels makes most of a bound
    choice: ChosenJudge | None = None  # whom the items that choose speak for; None without a value
    # of the chosen judge: why it is not above the floor, where that was allowed; beside people, None without
    # two raters; and what the best constant has of the metric on the items of `confirmed`
    below_floor: str | None = None
    stand_in: StandIn | None = None
    floor: Estimate | None = None
    unread: Unread | None = None  # the judges without any verdict
    # confirmed_on_test: whether test shows the choice above the best constant, and bears out what chose it
    # (None where nobody was held on it); doubt: why not; refused: the judge that test refused, and why
    confirmed_on_test: bool | None = None
    doubt: str | None = None
    refused: RejectedJudge | None = None


def select_result(
    request: SelectRequest,
    decided: OpenChoice,
    confirmed: Confirmed | None = None,
    *,
    lock: Lock | None = None,
    lock_reason: str = "nobody was chosen",
    noise_rows: Sequence[Judgement] = (),
    usd: float = 0.0,
    upheld: Upheld | None = None,
) -> SelectResult:
    """All that was asked, decided on open items, confirmed on test and locked, as it is shown.

    Args:
        lock_reason: why there is no lock.
        noise_rows: the calls at lock time.
        upheld: what test says of the choice; None where no item is left to say it, or calls lack.
    """
    stored, metric, on_all = request.stored, request.by, request.on_all
    gold, table, losses, pick = stored.gold, decided.table, decided.losses, decided.pick
    choice, refused = decided.choice, None
    if choice is not None and upheld is not None and upheld.refused is not None:
        refused, choice = RejectedJudge(choice.judge, upheld.refused), None
    judges = tuple(_judge_on_open(request, decided, judge, refused) for judge in decided.measured)
    rejected = (judge for judge in judges if judge.verdict in _REJECTED)
    on_test = None if upheld is None else upheld.doubt is None
    on_test = False if upheld is None and on_all and confirmed else on_test
    stand_in = None
    if decided.choice is not None and len(gold.peers) > 1:  # beside people on all items, as `score` holds it
        stand_in = judge_beside_people(stored.table, decided.chosen.column, n_judges=stored.asked)
    n_unscored = 0  # recorded judgements are nobody's to call again
    if confirmed is not None and (lock is not None or confirmed.n_lost):
        n_unscored = sum(row.verdict is None for row in (*confirmed.column.rows, *noise_rows))
    return SelectResult(
        experiment=request.experiment.slug,
        chosen_from=stored.experiment.slug,
        chosen=choice.judge if choice else None,
        shown=bool(choice and choice.shown),
        why=refused.why if refused else _why(request, decided, confirmed),
        metric=metric,
        margin=request.margin,
        within_margin=choice.within if choice else (),
        rejected=tuple(
            RejectedJudge(judge.judge, _why_rejected(request, decided, judge, refused)) for judge in rejected
        ),
        more_questions=choice.more_questions if choice else None,
        best=losses.best if losses else None,
        level=table.level,
        bounds=losses.method if losses else "",
        judges=judges,
        gold=summary_of_gold(table, "all" if on_all else stored.split),
        confirmed=dict(confirmed.estimates) if confirmed else {},
        confirmed_complete=dict(confirmed.complete) if confirmed else {},
        confirmed_on=summary_of_gold(confirmed.table, "all" if on_all else "test") if confirmed else None,
        test_looks=confirmed.look.number if confirmed else looks_so_far(request.workspace.experiments, gold),
        test_look=confirmed.look.sentence(gold.name) if confirmed and not confirmed.n_lost else None,
        reused=confirmed.look.reused if confirmed else False,
        lock=str(request.output) if lock else None,
        lock_sha256=lock.sha256 if lock else None,
        lock_reason=None if lock else lock_reason,
        noise=lock.noise if lock else None,
        calibration=confirmed.calibration if confirmed else None,
        confirmed_calibrated=dict(confirmed.calibrated) if confirmed else {},
        usd=usd,
        n_unscored=n_unscored,
        journal=str(request.experiment.journal),
        notes=_notes(
            stored, decided, model_ids(confirmed.column.rows) if confirmed and lock else [], noise_rows
        ),
        driven=tuple(losses.driven) if losses else (),
        choice=pick,
        run_line=_run_line(request, decided),
        below_floor=decided.not_above(choice.judge) if choice else None,
        stand_in=stand_in,
        unread=unread_of(stored),
        floor=constant_entry(confirmed.table if confirmed else table).as_wrong[metric],
        confirmed_on_test=on_test,
        doubt=upheld.doubt if upheld else None,
        refused=refused,
    )


def _run_line(request: SelectRequest, decided: OpenChoice) -> str:
    caps = {name: cap for name, cap in request.caps.config().items() if cap not in (None, [], False)}
    slug = request.stored.experiment.slug
    extra = {"experiment": slug, "metric": request.by, "margin": f"{request.margin:g}", **caps}
    judges = [
        f"{judge.judge}[{judge.column.rows[0].judge_fingerprint[:8]}]"
        for judge in decided.measured
        if judge.column.rows
    ]
    return run_line(decided.table, "all" if request.on_all else "open", judges, extra)


def _judge_on_open(
    request: SelectRequest, decided: OpenChoice, judge: MeasuredJudge, refused: RejectedJudge | None
) -> JudgeOnOpen:
    losses, entry, choice = decided.losses, judge.entry, decided.choice
    loss, over = losses.by_judge.get(judge.judge) if losses else None, request.caps.over(judge)
    floor = decided.floors.get(judge.judge)
    verdict: JudgeVerdict = "not shown"
    if over is not None:
        verdict = "over the caps"
    elif choice and judge.judge == choice.judge:
        verdict = "not confirmed" if refused else "chosen"
    elif floor is not None and not floor.shown:
        verdict = "below the floor" if floor.below else "not above the floor"
    elif choice and judge.judge in choice.within:
        verdict = "within the margin"
    return JudgeOnOpen(
        judge=judge.judge,
        n=entry.n,
        n_expected=entry.n_expected,
        n_unscored=entry.n_unscored,
        value=entry.decided_by(request.by),
        complete_case=entry.agreement[request.by],
        loss=loss.loss if loss else None,
        loss_at_most=loss.upper if loss else None,
        reason=loss.reason if loss else over,
        usd_per_1k=judge.usd_per_1k,
        p95_s=entry.latency_s.p95,
        verdict=verdict,
        kind=judge.column.kind,
    )


def _why_rejected(
    request: SelectRequest, decided: OpenChoice, judge: JudgeOnOpen, refused: RejectedJudge | None
) -> str:
    """Why a judge is not among those that may be chosen."""
    if refused and judge.judge == refused.judge:
        return refused.why
    if judge.verdict != "over the caps" and (why := decided.not_above(judge.judge)):
        return why
    if judge.loss_at_most is None:
        return judge.reason or "there is no bound of its loss"
    metric = request.by
    loss, margin = (amount_of(size, metric) for size in (judge.loss_at_most, request.margin))
    return f"it may lose up to {loss} of {in_words(metric)} against the best, the margin is {margin}"


def _why(request: SelectRequest, decided: OpenChoice, confirmed: Confirmed | None) -> str:
    """Why somebody was chosen, or nobody."""
    choice, pick = decided.choice, decided.pick
    if choice is not None:
        if not request.on_all or decided.losses is None or confirmed is None:
            return choice.why
        n, k = len(set(confirmed.table.groups)), len(decided.losses.by_judge)
        return (
            f"{choice.why}; it is chosen and measured on the same {n:,} questions, none is left to confirm "
            f"it: the interval allows for the choice among {k} judge{'s' * (k != 1)}"
        )
    if pick is None:
        within = [judge for judge in decided.measured if request.caps.over(judge) is None]
        values = [judge.entry.decided_by(request.by) for judge in within]
        return f"no judge has a value: {values[0].reason}" if values else "no judge is within the caps"
    if pick.too_few:
        return f"{pick.too_few.removesuffix('.')}; --allow-below-floor chooses all the same"
    several = f"none of the {len(decided.floors)} judges within the caps is shown above the floor; of "
    lead = f"{several}{pick.best}: " if len(decided.floors) > 1 else ""
    return f"{lead}{decided.not_above(pick.best)}; --allow-below-floor chooses all the same"


def _notes(
    stored: StoredExperiment, decided: OpenChoice, chosen_by: list[str], noise_rows: Sequence[Judgement]
) -> tuple[str, ...]:
    """What else the reader must know; `chosen_by`: the model ids behind the verdicts of a lock."""
    gold, choice, notes = stored.gold, decided.choice, []
    if choice and (why := decided.not_above(choice.judge)):
        notes.append(f"chosen though not shown above the floor: {why}")
    for judge in decided.measured:
        judged = {row.item_id for row in judge.column.rows}
        absent = [item.item_id for item in decided.table.items if item.item_id not in judged]
        if absent:
            items = f"{len(absent)} item{'s' * (len(absent) != 1)} ({listed(absent, sealed=gold.test_ids)})"
            notes.append(f"{judge.judge} has no judgement of {items}, unscored here")
    unknown = [judge.judge for judge in decided.measured if judge.usd_per_1k is None]
    if unknown:
        costs = f"cost{'s' * (len(unknown) == 1)} is not known: they rank as the dearest"
        notes.append(f"what {', '.join(unknown)} {costs}")
    now = model_ids(noise_rows)
    if len({*chosen_by, *now}) > 1:
        notes.append(
            f"the verdicts came from {', '.join(chosen_by)}, the calls at lock time from "
            f"{', '.join(now) or 'none'}: the model under the alias has changed, so score again"
        )
    notes += stored.notes
    if stored.tied:
        n = len(stored.tied)
        notes.append(
            f"raters tie on {n} items, the harder ones: what is confirmed and locked is without them"
        )
    columns = [judge.column for judge in decided.measured]
    return (*notes, *split_notes(gold), *verdict_notes(gold.scale, columns))
