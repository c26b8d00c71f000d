"""What `select` asks, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.agreement import GoldSummary, StoredExperiment, constant_entry, verdict_notes
from judgecal.experiment.folder import Experiment, plan_experiment
from judgecal.experiment.looks import looks_so_far
from judgecal.experiment.people import judge_beside_people
from judgecal.experiment.score import asked_items, gold_config, run_line, summary_of_gold
from judgecal.experiment.stored import Unread, unread_of
from judgecal.goldset import split_notes
from judgecal.judges.protocol import JudgeKind
from judgecal.records import Estimate, Item, Judgement, Result
from judgecal.selection.confirm import Confirmed, Upheld
from judgecal.selection.decision import Caps, MeasuredJudge, OpenChoice, Recommendation, in_words, open_items
from judgecal.selection.lock import Lock, Noise, model_ids
from judgecal.stats import Calibration, leading_metric
from judgecal.stats.metrics import amount_of
from judgecal.stats.significance import MARGIN
from judgecal.stats.stand_in import StandIn
from judgecal.workspace import Workspace

JudgeVerdict = Literal[
    "chosen",
    "within the margin",
    "not confirmed",
    "not shown",
    "not above the floor",
    "below the floor",
    "over the caps",
]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A judge that is not within the margin, and why."""

    judge: str
    why: str


@dataclass(frozen=True, slots=True)
class OpenScore:
    """One judge on the items that it is chosen on."""

    judge: str
    n: int  # judgements with a verdict, asked for, and without
    n_expected: int
    n_unscored: int
    value: Estimate  # the metric that decides, an unscored item counted as wrong
    complete_case: Estimate  # the same without such items
    loss: float | None  # against the best seen, and the bound of the loss against whoever is truly best
    loss_at_most: float | None
    usd_per_1k: float | None  # of a judgement; None where not known
    p95_s: float | None
    verdict: JudgeVerdict
    kind: JudgeKind = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectResult(Result):
    """What a selection comes to."""

    experiment: str
    chosen_from: str
    # the judge, None where nobody is within the caps and above the floor, or test refuses the choice, and the
    # sentence that says why
    chosen: str | None
    why: str
    metric: str
    margin: float
    # within_margin, rejected: all that are shown to lose less than the margin, cheapest first; the others
    within_margin: tuple[str, ...]
    rejected: tuple[Rejection, ...]
    # about how many more would show a cheaper judge good enough; None where nothing of that kind
    more_questions: int | None
    level: float  # of the bounds on the losses, for all judges at once, and how they were made
    bounds: str
    judges: tuple[OpenScore, ...]
    gold: GoldSummary
    # confirmed, confirmed_complete, confirmed_on: METRIC -> Estimate on test, an unscored item counted as
    # wrong; the same of the scored ones; the test items. Empty and None where nobody was chosen
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
    # the map of the judge, fitted on train and dev, and as `confirmed` what test says through it
    calibration: Calibration | None
    confirmed_calibrated: Mapping[str, Estimate]
    usd: float
    n_unscored: int  # of the calls of this selection
    notes: tuple[str, ...]
    run_line: str
    driven: tuple[str, ...] = ()  # where one stratum of the labels makes most of a bound
    choice: Recommendation | None = None  # whom the items that choose speak for; None without a value
    # of the chosen judge: beside people, None without two raters; what the best constant has of the metric
    # on the items of `confirmed`
    stand_in: StandIn | None = None
    floor: Estimate | None = None
    unread: Unread | None = None  # the judges without any verdict
    # confirmed_on_test: whether test shows the choice above the best constant, and bears out what chose it
    # (None where nobody was held on it); doubt: why not; refused: the judge that test refused, and why
    confirmed_on_test: bool | None = None
    doubt: str | None = None
    refused: Rejection | None = None


@dataclass(frozen=True, kw_only=True)
class SelectRequest:
    """What is asked of `select`, and where its result goes."""

    workspace: Workspace
    stored: StoredExperiment  # the experiment to choose from
    options: RunOptions  # how to call; `repeats` on test items, one call of the others
    caps: Caps = field(default_factory=Caps)
    metric: str | None = None  # by which; the leading one of the set where not given
    margin: float = MARGIN  # the loss against the best that is allowed
    output: Path = Path("judge.lock.json")  # where the lock goes
    seed: int = 0
    replace: bool = False  # whether a lock that is there may be written over
    out: str | None = None  # the slug of its experiment; None for the usual one

    @cached_property
    def experiment(self) -> Experiment:
        """The selection's own, for its calls and its result: what it asks, not how it calls or locks."""
        config = {
            "command": "select",
            "gold": gold_config(self.stored.gold),
            "chosen_from": self.stored.experiment.slug,
            "judges": [column.judge for column in self.stored.judges],
            "metric": self.by,
            "margin": self.margin,
            "caps": self.caps.config(),
            "repeats": self.options.repeats,
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def recorded(self) -> bool:
        """Whether the judgements were recorded elsewhere: nobody can be called."""
        return bool(self.stored.experiment.config["command"] == "agreement")

    @property
    def by(self) -> str:
        """The metric that decides."""
        return self.metric or leading_metric(self.stored.gold.scale)

    # --- which items

    @property
    def choosing_items(self) -> tuple[Item, ...]:
        """The items that choose: those of train and dev."""
        return open_items(self.stored, limit=self.options.limit)

    @property
    def test_items(self) -> tuple[Item, ...]:
        """The items of the confirmation: all of test; of recorded judgements those that were asked. Refused
        where there is none."""
        gold = self.stored.gold
        if not self.recorded:
            return asked_items(gold, "test", limit=self.options.limit)
        items = tuple(item for item in self.stored.items if gold.split_of(item.group) == "test")
        if not items:
            slug, again = self.stored.experiment.slug, "run judgecal agreement with --split all"
            if "table" in self.stored.experiment.config:
                again = f"judgecal report {slug} ends with the command that imports its table"
            raise InputError(f"{slug} holds no test item to confirm on: {again}")
        return items[: self.options.limit]


def select_result(
    run: SelectRequest,
    decided: OpenChoice,
    confirmed: Confirmed | None = None,
    *,
    lock: Lock | None = None,
    lock_reason: str = "nobody was chosen",
    noise_rows: Sequence[Judgement] = (),
    usd: float = 0.0,
    held: Upheld | None = None,
) -> SelectResult:
    """Return the SelectResult from a SelectRequest (the run) and its OpenChoice, with what test confirmed.

    `noise_rows`: the calls at lock time; `held`: what test says of the choice, None where no item is left to
    say it, or calls lack.
    """
    stored, table, losses, choice = run.stored, decided.table, decided.losses, decided.choice
    gold, refused, on_test = stored.gold, None, None if held is None else held.doubt is None
    if choice is not None and held is not None and held.refused is not None:
        refused, choice = Rejection(choice.judge, held.refused), None
    judges = [_judge_on_open(run, decided, judge, refused) for judge in decided.measured]
    stand_in = None
    if decided.choice is not None and len(gold.peers) > 1:  # beside people on all items, as `score` holds it
        stand_in = judge_beside_people(stored.table, decided.chosen.column, n_judges=len(stored.judges))
    n_unscored = 0  # recorded judgements are nobody's to call again
    if confirmed is not None and (lock is not None or confirmed.n_lost):
        n_unscored = sum(row.verdict is None for row in (*confirmed.column.rows, *noise_rows))
    caps = {name: cap for name, cap in run.caps.config().items() if cap not in (None, "", False)}
    chosen_by = model_ids(confirmed.column.rows) if confirmed and lock else []
    slug = stored.experiment.slug
    extra = {"experiment": slug, "metric": run.by, "margin": f"{run.margin:g}", **caps}
    rows = [judge.column.rows for judge in decided.measured if judge.column.rows]
    names = [f"{row.judge}[{row.judge_fingerprint[:8]}]" for row, *_ in rows]
    return SelectResult(
        experiment=run.experiment.slug,
        chosen_from=slug,
        chosen=choice.judge if choice else None,
        why=refused.why if refused else _why(run, decided),
        metric=run.by,
        margin=run.margin,
        within_margin=choice.within if choice else (),
        rejected=tuple(Rejection(judge.judge, why) for judge, why in judges if why is not None),
        more_questions=choice.more_questions if choice else None,
        level=table.level,
        bounds=losses.method if losses else "",
        judges=tuple(judge for judge, _ in judges),
        gold=summary_of_gold(table, stored.split),
        confirmed=dict(confirmed.estimates) if confirmed else {},
        confirmed_complete=dict(confirmed.complete) if confirmed else {},
        confirmed_on=summary_of_gold(confirmed.table, "test") if confirmed else None,
        test_looks=confirmed.look.number if confirmed else looks_so_far(run.workspace.experiments, gold),
        test_look=confirmed.look.sentence(gold.name) if confirmed and not confirmed.n_lost else None,
        reused=confirmed.look.reused if confirmed else False,
        lock=str(run.output) if lock else None,
        lock_sha256=lock.sha256 if lock else None,
        lock_reason=None if lock else lock_reason,
        noise=lock.noise if lock else None,
        calibration=confirmed.calibration if confirmed else None,
        confirmed_calibrated=dict(confirmed.calibrated) if confirmed else {},
        usd=usd,
        n_unscored=n_unscored,
        notes=_notes(run, decided, chosen_by, noise_rows),
        driven=tuple(losses.driven) if losses else (),
        choice=decided.pick,
        run_line=run_line(table, "open", names, extra),
        stand_in=stand_in,
        unread=unread_of(stored),
        floor=constant_entry(confirmed.table if confirmed else table, [run.by]).as_wrong[run.by],
        confirmed_on_test=on_test,
        doubt=held.doubt if held else None,
        refused=refused,
    )


def _judge_on_open(
    run: SelectRequest, decided: OpenChoice, judge: MeasuredJudge, refused: Rejection | None
) -> tuple[OpenScore, str | None]:
    """A judge's line, and why it is not among those within the margin; None where it is."""
    name, entry, choice, floor = judge.judge, judge.entry, decided.choice, decided.floors.get(judge.judge)
    loss, over = decided.losses.by_judge.get(name) if decided.losses else None, run.caps.over(judge)
    reason, upper = (loss.reason, loss.upper) if loss else (over, None)
    verdict: JudgeVerdict = "not shown"
    if over is not None:
        verdict = "over the caps"
    elif choice and name == choice.judge:
        verdict = "not confirmed" if refused else "chosen"
    elif floor is not None and not floor.shown:
        verdict = "below the floor" if floor.below else "not above the floor"
    elif choice and name in choice.within:
        verdict = "within the margin"
    why: str | None = None
    if refused and name == refused.judge:
        why = refused.why
    elif verdict not in ("chosen", "within the margin"):
        why = None if verdict == "over the caps" else decided.not_above(name)
        if why is None and upper is None:
            why = reason or "there is no bound of its loss"
        elif why is None and upper is not None:
            most, margin = (amount_of(size, run.by) for size in (upper, run.margin))
            why = f"it may lose up to {most} of {in_words(run.by)} against the best, the margin is {margin}"
    line = OpenScore(
        judge=name,
        n=entry.n,
        n_expected=entry.n_expected,
        n_unscored=entry.n_unscored,
        value=entry.decided_by(run.by),
        complete_case=entry.agreement[run.by],
        loss=loss.loss if loss else None,
        loss_at_most=upper,
        usd_per_1k=judge.usd_per_1k,
        p95_s=entry.latency_s.p95,
        verdict=verdict,
        kind=judge.column.kind,
    )
    return line, why


def _why(run: SelectRequest, decided: OpenChoice) -> str:
    """Why somebody was chosen, or nobody."""
    choice, pick = decided.choice, decided.pick
    if choice is not None:
        return choice.why
    if pick is None:
        within = [judge for judge in decided.measured if run.caps.over(judge) is None]
        values = [judge.entry.decided_by(run.by) for judge in within]
        return f"no judge has a value: {values[0].reason}" if values else "no judge is within the caps"
    if pick.too_few:
        return f"{pick.too_few.removesuffix('.')}; --allow-below-floor chooses anyway"
    return f"{pick.best}: {decided.not_above(pick.best)}; --allow-below-floor chooses anyway"


def _notes(
    run: SelectRequest, decided: OpenChoice, chosen_by: Sequence[str], noise_rows: Sequence[Judgement]
) -> tuple[str, ...]:
    """What else the reader must know; `chosen_by`: the model ids behind the verdicts of a lock."""
    stored, gold, notes = run.stored, run.stored.gold, [*run.stored.notes]
    now = model_ids(noise_rows)
    if len({*chosen_by, *now}) > 1:
        notes.append(
            f"the verdicts came from {', '.join(chosen_by)}, the calls at lock time from "
            f"{', '.join(now) or 'none'}: the model under the alias has changed, so score again"
        )
    if n := len(stored.tied):
        notes.append(f"raters tie on {n} items, the harder ones: we confirm and lock without them")
    columns = [judge.column for judge in decided.measured]
    return (*notes, *split_notes(gold), *verdict_notes(gold.scale, columns))
