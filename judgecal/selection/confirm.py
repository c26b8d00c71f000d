"""What `select` asks, the one confirmation on test, and the lock: verdicts, noise, fitted threshold.

The chosen judge is called on what the experiment lacks: test items for the confirmation, and the other
labelled items for the lock. Its calls are stored in the selection's own experiment, so that the first
experiment stays as it was.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal, require_prices
from judgecal.engine.log import now
from judgecal.errors import InputError, notice
from judgecal.experiment import (
    Column,
    Experiment,
    Judgements,
    Look,
    LookKind,
    RunOptions,
    StoredExperiment,
    Table,
    asked_items,
    gold_config,
    item_scale,
    look_at_test,
    models_of,
    open_experiment,
    open_journal,
    plan_experiment,
    require_keys,
    run_trials,
    stored_rows,
    verdict_matrix,
    verdicts_sha,
)
from judgecal.experiment.floor import constant_entry
from judgecal.experiment.people import tied_items
from judgecal.judges import Judge
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Judgement
from judgecal.scale import Label
from judgecal.selection.choice import MARGIN, Caps, MeasuredJudge, in_words, open_items
from judgecal.selection.lock import Lock, LockedGold, LockedJudge, Noise, model_ids, versions
from judgecal.stats import Calibration, leading_metric, metric_facts
from judgecal.stats.confirmation import Held, fall_between
from judgecal.stats.retest import repeatability
from judgecal.workspace import Workspace

NOISE_CALLS = 3
"""Calls of each locked item, where not said otherwise."""


@dataclass(frozen=True, kw_only=True)
class SelectRequest:
    """What is asked of `select`, and where its result goes."""

    workspace: Workspace
    stored: StoredExperiment  # the experiment to choose from
    options: RunOptions  # how to call; `repeats` on test items, one call of the others
    caps: Caps = field(default_factory=Caps)
    metric: str | None = None  # by which; the leading one of the set where not given
    margin: float = MARGIN  # the loss against the best that is allowed
    noise_calls: int = NOISE_CALLS  # of each item at lock time; 0 for none
    output: Path = Path("judge.lock.json")  # where the lock goes
    seed: int = 0
    replace: bool = False  # whether a lock that is there may be written over
    on_all: bool = (
        False  # whether all labelled items choose, test among them: then none is left to confirm on
    )
    out: str | None = None  # the slug of its experiment; None for the usual one

    @cached_property
    def experiment(self) -> Experiment:
        """The selection's own, for its calls and its result: what it asks, not how it calls or locks."""
        config = {
            "command": "select",
            "gold": gold_config(self.stored.gold),
            "chosen_from": self.stored.experiment.slug,
            "judges": [column.judge for column in self.stored.columns[: self.stored.asked]],
            "metric": self.by,
            "margin": self.margin,
            "caps": self.caps.config(),
            "repeats": self.options.repeats,
            "seed": self.seed,
            **({"split": "all"} if self.on_all else {}),
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

    @property
    def choosing_items(self) -> tuple[Item, ...]:
        """The items that choose: those of train and dev, or all that the experiment holds."""
        if self.on_all:
            return self.stored.items[: self.options.limit]
        return open_items(self.stored, limit=self.options.limit)

    def test_items(self) -> tuple[Item, ...]:
        """The items of the confirmation: all of test; of recorded judgements those that were asked.

        Where all items choose, these are they. Refused where there is none.
        """
        gold = self.stored.gold
        if self.on_all:
            return self.choosing_items
        if not self.recorded:
            return asked_items(gold, "test", limit=self.options.limit)
        items = [item for item in self.stored.items if gold.split_of(item.group) == "test"]
        if not items:
            raise InputError(
                f"{self.stored.experiment.slug} holds no test item to confirm on: run judgecal agreement "
                "with --split all"
            )
        return tuple(items[: self.options.limit])

    def verdicts_sha(self, rows: Sequence[Judgement]) -> str:
        """What a judge said of test, whatever its name."""
        return verdicts_sha(self.stored.gold, self.test_items(), rows)

    def seen(self, judges: Mapping[str, str]) -> dict[str, Any]:
        """What makes the look at test: the same verdicts by the same metric on the same items are the same
        one.

        `judges`: fingerprint -> what it said of test (`verdicts_sha`).
        """
        return {
            "experiments": self.workspace.experiments,
            "gold": self.stored.gold,
            "items": self.test_items(),
            "by": f"select by {self.by}{' on all' * self.on_all}",
            "judges": judges,
        }


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What test says of a judge; where all items chose it, what they say of it."""

    look: Look  # where this stands among the decisions on test
    table: (
        Table  # the test items, at the level of the look; where all items chose, that of the choice among k
    )
    column: Column  # its judgements over test and the items that it was chosen on
    estimates: Mapping[str, Estimate]  # METRIC -> Estimate, an unscored item counted as wrong
    complete: Mapping[str, Estimate]  # the same over the scored items alone
    calibration: Calibration | None  # its map, fitted on train and dev
    calibrated: Mapping[str, Estimate]  # as `estimates`, what test says through the map

    @classmethod
    def on(cls, look: Look, table: Table, column: Column, *, on_all: bool = False) -> Confirmed:
        """Hold a judge on the items of a table; on all items its map is cross-fitted, as none is unseen."""
        calibration, agreements = calibrate(table, column, everything=on_all), table.agreements(column)
        through = agreements["calibrated"] if on_all else table.through(calibration, column)
        return cls(look, table, column, agreements["as_wrong"], agreements["agreement"], calibration, through)

    @property
    def n_lost(self) -> int:
        """Calls that ended on the wire or at the budget: the same command makes them again."""
        return sum(map(_lost, self.column.rows))

    def decided_by(self, metric: str) -> Estimate:
        """What test says in a metric: through the map where that asks for it and there is one."""
        through = self.calibrated if metric_facts(metric).calibrated else {}
        return through.get(metric, self.estimates[metric])


def _lost(row: Judgement) -> bool:
    return row.error is not None and row.error.kind in RETRIED_ON_RESUME


def confirm(request: SelectRequest, judges: Mapping[str, str], column: Column, *, repeats: int) -> Confirmed:
    """Hold the chosen judge on test, and write down the look at `judges`, which are decided on.

    Where all items chose one of k judges, each of the k intervals errs in a k-th of what the decision may. So
    the chosen one's holds, whichever that is (Bonferroni). Where calls were lost nothing is decided yet: that
    look is logged and not counted.
    """
    decides = request.recorded or not any(map(_lost, column.rows))
    kind: LookKind = "decision" if decides else "report"
    look = look_at_test(**request.seen(judges), experiment=request.experiment.slug, kind=kind)
    level = 1.0 - (1.0 - look.level) / len(judges) if request.on_all else look.level
    table = Table(request.stored.gold, request.test_items(), repeats, request.seed, level)
    return Confirmed.on(look, table, column, on_all=request.on_all)


def judge_again(
    request: SelectRequest, judge: Judge, chosen: MeasuredJudge, judges: Mapping[str, str], *, budget: Budget
) -> Confirmed:
    """Call the chosen judge on what the experiment lacks, then confirm it on test.

    `judges` are decided on; where that is the chosen one alone, by what it says now.
    """
    test, rest = request.test_items(), other_items(request, judge)
    options, once = request.options, dataclasses.replace(request.options, repeats=1)
    require_prices(models_of([judge]), options.limit_usd)  # all that can be wrong is told before the calls
    require_keys([judge], [*test, *rest], journal_of(request, chosen), options)
    judge.check_items([*test, *rest])
    open_experiment(request.experiment)
    with open_journal(request.experiment.journal, options) as journal:
        copy_rows(chosen, journal)
        rows = [
            *run_trials([judge], test, journal=journal, options=options, budget=budget),
            *run_trials([judge], rest, journal=journal, options=once, budget=budget),
        ]
    column = Column.of(judge, Judgements(rows))
    decided_on = judges if request.on_all else dict.fromkeys(judges, request.verdicts_sha(column.rows))
    return confirm(request, decided_on, column, repeats=options.repeats)


def other_items(request: SelectRequest, judge: Judge) -> tuple[Item, ...]:
    """What the lock holds beside test: the labelled items of train and dev that the judge was not trained on.

    With a limit those that it was chosen on: each split is cut alike. None where all items chose.
    """
    if request.on_all:
        return ()
    if request.options.limit is not None:
        return open_items(request.stored, limit=request.options.limit)
    gold = request.stored.gold
    untrained = asked_items(gold, "all", without_groups=judge.trained_on)
    return tuple(item for item in untrained if gold.split_of(item.group) != "test")


def journal_of(request: SelectRequest, chosen: MeasuredJudge) -> Journal:
    """What is judged already, to look at: nothing is written."""
    journal = stored_rows(request.experiment.journal)
    copy_rows(chosen, journal)
    return journal


def copy_rows(chosen: MeasuredJudge, journal: Journal) -> None:
    """Take the judge's rows from the experiment that it was chosen from, but for those to be tried again."""
    for row in chosen.column.stored:
        if row.key not in journal.latest and not _lost(row):
            journal.append(row)


def calibrate(test: Table, column: Column, *, everything: bool = False) -> Calibration | None:
    """The map of a judge, fitted on the items of train and dev that it judged, or on test too."""
    gold, judged = test.gold, {row.item_id for row in column.rows}
    known = tuple(
        item
        for item in gold.items
        if item.item_id in judged
        and item.item_id in gold.labels
        and (everything or gold.split_of(item.group) != "test")
    )
    table = dataclasses.replace(test, items=known)
    return table.calibration(column, fitted_on=f"{'all' if everything else 'train and dev'} of {gold.name}")


@dataclass(frozen=True, slots=True)
class Upheld:
    """Whether test upholds the choice."""

    refused: str | None  # why no lock is written; None where one may be
    doubt: str | None  # why test does not confirm the judge, lock or no lock; None where it does


def upheld(
    chosen: MeasuredJudge, confirmed: Confirmed, *, chosen_on: Table, metric: str, n_judges: int, caps: Caps
) -> Upheld:
    """Hold the chosen one of so many judges on test against the best constant, and against what chose it."""
    problems, test = [], confirmed.table

    def figure(value: float | None, by: str) -> str:
        if value is None:
            return "unknown"
        return f"{100.0 * value:.1f}%" if in_words(by) != by else f"{value:.3g}"

    floors = constant_entry(test).as_wrong
    # of a correlation a constant has none
    at = metric if floors[metric].value is not None else leading_metric(chosen_on.gold.scale)
    estimate, floor = confirmed.decided_by(at), floors[at].value
    if estimate.value is not None and floor is not None:
        lead = estimate.value - floor
        if (-lead if metric_facts(at).direction == "less" else lead) <= 0.0:
            pair = f"{figure(estimate.value, at)} against {figure(floor, at)}"
            why = f"on test it does no better than the best constant ({in_words(at)} {pair})"
            problems.append((why, caps.allow_below_floor, "--allow-below-floor"))

    # from the questions that chose, each by a map that did not see it, to test, by the map of all of them
    known = chosen_on.of(chosen.column)
    column = dataclasses.replace(chosen.column, rows=confirmed.column.rows, calls=())
    before = known.calibrated(column) if metric_facts(metric).calibrated else None
    map_of = confirmed.calibration
    sides = []
    for table, mapped in ((known, before), (test, None)):
        rows = verdict_matrix(column.rows, table.items, table.repeats)
        if table is test and before is not None and map_of is not None:
            mapped = [[map_of.apply(verdict) for verdict in row] for row in rows]
        scale = column.scale if mapped is None else table.gold.scale
        sides.append(
            Held(table.labels, rows if mapped is None else mapped, scale, table.groups, table.weights)
        )
    fall = fall_between(sides[0], sides[1], people=test.gold.scale, metric=metric, n_judges=n_judges)
    if fall is not None and fall.unexplained:
        luck = f"chance and the choice among {n_judges} judges explain" if n_judges > 1 else "chance explains"
        on_test, on_open = confirmed.decided_by(metric), chosen.entry
        cause = (
            "most often questions of train and dev have leaked into the prompt or the training of the judge"
        )
        if on_test.n_unscored * on_open.n_expected > 2 * on_open.n_unscored * on_test.n_expected:
            n, of = on_test.n_unscored, on_test.n_expected
            cause = f"{n} of {of} test items have no verdict, and count as wrong"
        why = (
            f"on test its {in_words(metric)} is {figure(fall.value, metric)} worse than on the questions "
            f"that chose it, and {luck} {figure(fall.at_most, metric)}: {cause}"
        )
        problems.append((why, caps.allow_unconfirmed, "--allow-unconfirmed"))
    refused = [f"{why}; {flag} locks it all the same" for why, allowed, flag in problems if not allowed]
    doubt = "; ".join(why for why, _, _ in problems) or None
    if doubt is None and not shown_above_floor(test, estimate, at):
        doubt = f"its interval there holds the {figure(floor, at)} of the best constant"
        if estimate.low is None or estimate.high is None or floor is None:
            reason = estimate.reason or floors[at].reason
            doubt = f"test cannot tell whether it beats the best constant: {reason}"
    return Upheld("; ".join(refused) or None, doubt)


def shown_above_floor(test: Table, estimate: Estimate, metric: str) -> bool:
    """Whether the interval of a judge on the test items lies above what the best constant has there."""
    floor = constant_entry(test).as_wrong[metric].value
    if estimate.low is None or estimate.high is None or floor is None:
        return False
    return estimate.high < floor if metric_facts(metric).direction == "less" else estimate.low > floor


NOISE_FILE = "noise.jsonl"
"""The journal of those calls, in the folder of the selection."""


def lock_judge(
    judge: Judge,
    confirmed: Confirmed,
    *,
    metric: str,
    margin: float,
    confirmed_on_test: bool,
    noise_calls: int = NOISE_CALLS,
    folder: Path,
    options: RunOptions,
    budget: Budget,
    workspace: Workspace,
) -> tuple[Lock, Judgements]:
    """Call a confirmed judge afresh, and make its lock; with the rows of those calls.

    `gate` holds the judge to those: the call that chose it flatters it, and one alone does not tell its
    noise.

    Args:
        confirmed_on_test: whether test shows it above the best constant and bears the choice out.
        noise_calls: of each item; 0 makes none. Their journal goes into the folder.
    """
    test, rows = confirmed.table, Judgements(confirmed.column.rows)
    gold, verdicts = test.gold, {row.item_id: row.verdict for row in rows if row.repeat == 0}
    items = tuple(item for item in gold.items if item.item_id in verdicts)
    called = dataclasses.replace(test, items=items, repeats=noise_calls)
    again = Judgements([])
    if noise_calls:
        afresh = dataclasses.replace(options, repeats=noise_calls, use_cache=False, retry_unscored=False)
        # A journal of its own: these calls take nothing from earlier ones, and the same command goes on here.
        path = folder / NOISE_FILE
        if measured_again(folder, options):
            path.rename(folder / f"noise-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S%fZ}.jsonl")
        with open_journal(path, afresh) as journal:
            if journal.latest and not options.quiet:
                stored = f"{len(journal.latest)} calls of the lock are stored with this selection"
                notice(f"judgecal: {stored}; --no-cache makes them anew")
            label = f"{judge.name}, calls of the lock"
            again = run_trials([judge], items, journal=journal, options=afresh, budget=budget, label=label)
    calls = whole_calls(again, items, noise_calls)
    given = [verdict for row in calls.values() for verdict in row] or [*verdicts.values()]
    split = "all" if any(gold.split_of(item.group) != "test" for item in test.items) else "test"
    n_tied = len(tied_items(gold, split, test.items))
    model_id = next(iter([*model_ids(again), *model_ids(rows)]), None)
    locked = LockedJudge.of(judge, workspace, model_id=model_id)
    lock = Lock(
        **{field.name: getattr(locked, field.name) for field in dataclasses.fields(locked)},
        gold=LockedGold(
            gold.name,
            gold.sha256,
            split,
            str(gold.scale),
            gold.scale.pass_at,
            ties=n_tied / (n_tied + len(test.items)),
        ),
        verdicts=verdicts,
        calls=calls,
        unscored=given.count(None) / len(given),
        agreement=confirmed.estimates,
        calibrated=confirmed.calibrated,
        calibration=confirmed.calibration,
        confirmed_on_test=confirmed_on_test,
        noise=noise_of(judge, again, called, confirmed.calibration),
        metric=metric,
        margin=margin,
        versions=versions(),
        locked_at=now(),
    )
    return lock, again


def whole_calls(rows: Judgements, items: Sequence[Item], repeats: int) -> dict[str, tuple[Label | None, ...]]:
    """Item id -> its verdicts, of the repeats of which no call was lost on the wire or for want of budget."""
    lost = {row.repeat for row in rows if _lost(row)}
    whole = [repeat for repeat in range(repeats) if repeat not in lost]
    matrix = zip(items, verdict_matrix(rows, items, repeats), strict=True)
    return {item.item_id: tuple(row[at] for at in whole) for item, row in matrix if whole}


def measured_again(folder: Path, options: RunOptions) -> bool:
    """Whether a selection that came to its end calls for its noise anew, and does not take its own calls."""
    return not options.use_cache and (folder / NOISE_FILE).exists() and (folder / "summary.json").exists()


def noise_of(judge: Judge, rows: Judgements, called: Table, calibration: Calibration | None) -> Noise:
    """What the calls say of the noise: flips of verdicts through the map, equal ones of raw verdicts."""
    if not called.repeats:
        none = Estimate(None, reason="no noise calls were made")
        return Noise(none, none, 0, 0)
    people, verdicts = called.gold.scale, verdict_matrix(rows, called.items, called.repeats)
    shared: dict[str, Any] = {"scale": people, "groups": called.groups, "seed": called.seed}
    estimates = repeatability(verdicts, judge_scale=item_scale(judge), **shared).estimates
    same, why = estimates["exact_agreement"], f"the scale {people} has no pass mark"
    blank = dataclasses.replace(same, value=None, low=None, high=None, method="", reason=why)
    if calibration is not None:
        mapped = [[calibration.apply(verdict) for verdict in row] for row in verdicts]
        estimates = repeatability(mapped, **shared).estimates
    flips = (estimate for name, estimate in estimates.items() if name.startswith("flip_rate"))
    return Noise(next(flips, blank), same, len(called.items), called.repeats)
