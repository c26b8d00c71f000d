"""What `select` asks, the one confirmation on test, and what a lock holds: verdicts, noise, fitted threshold.

The chosen judge is called on what the experiment lacks: test items for the confirmation, and the other
labelled items for the lock. Its calls are stored in the selection's own experiment, so that those of the
first one stay what all of its judges were request.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    item_scale,
    look_at_test,
    models_of,
    open_experiment,
    open_journal,
    require_keys,
    run_trials,
    stored_rows,
    verdict_matrix,
    verdicts_sha,
)
from judgecal.experiment.people import tied_items
from judgecal.judges import Judge
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Judgement
from judgecal.scale import Label
from judgecal.selection.choice import Caps, MeasuredJudge, open_items
from judgecal.selection.lock import Lock, LockedGold, LockedJudge, Noise, model_ids, versions
from judgecal.stats import Calibration, leading_metric, metric_facts
from judgecal.stats.retest import repeatability
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SelectRequest:
    """What is asked of `select`, and where its result goes."""

    workspace: Workspace
    stored: StoredExperiment  # the experiment to choose from
    experiment: Experiment  # the selection's own, for its calls and its result
    options: RunOptions  # how to call; `repeats` on test items, one call of the others
    caps: Caps
    metric: str | None  # by which; the leading one of the set where not given
    margin: float  # the loss against the best that is allowed
    noise_calls: int  # of each item at lock time; 0 for none
    output: Path  # where the lock goes
    seed: int
    replace: bool = False  # whether a lock that is there may be written over
    on_all: bool = (
        False  # whether all labelled items choose, test among them: then nothing is left to confirm on
    )

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

        Where all items choose, these are they.

        Raises InputError: there is none.
        """
        gold = self.stored.gold
        if self.on_all:
            return self.choosing_items
        if not self.recorded:
            return asked_items(gold, "test", limit=self.options.limit)
        items = [item for item in self.stored.items if gold.split_of(item.group) == "test"]
        if not items:
            raise InputError(
                f"{self.stored.experiment.slug} holds no test item to confirm on: run judgecal agreement with "
                "--split all"
            )
        return tuple(items[: self.options.limit])

    def look(self, judges: Mapping[str, str], *, decides: bool) -> Look:
        """Write the look at judges down: fingerprint -> what it said of test (`verdicts_sha`).

        Where calls were lost nothing is decided yet: that look is logged and not counted.
        """
        kind: LookKind = "decision" if decides else "report"
        return look_at_test(**self.seen(judges), experiment=self.experiment.slug, kind=kind)

    def verdicts_sha(self, rows: Sequence[Judgement]) -> str:
        """What a judge said of test, whatever its name."""
        return verdicts_sha(self.stored.gold, self.test_items(), rows)

    def seen(self, judges: Mapping[str, str]) -> dict[str, Any]:
        """What makes the look at test: the same verdicts by the same metric on the same items are the same
        one."""
        return {
            "experiments": self.workspace.experiments,
            "gold": self.stored.gold,
            "items": self.test_items(),
            "by": f"select by {self.by}{' on all' * self.on_all}",
            "judges": judges,
        }


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What test says of the chosen judge; where all items chose, what they say of it."""

    look: Look  # where this stands among the decisions on test
    table: Table  # the test items, at the level of the look; where all items chose, that of the choice among k judges
    estimates: Mapping[str, Estimate]  # METRIC -> Estimate, an unscored item counted as wrong
    complete: Mapping[str, Estimate]  # the same over the scored items alone
    rows: Judgements  # its judgements over test and the items that it was chosen on
    calibration: (
        Calibration | None
    )  # its map, fitted on train and dev, and as `estimates` what test says through it
    calibrated: Mapping[str, Estimate]
    n_lost: int = 0  # calls that ended on the wire or at the budget: the same command makes them again

    def decided_by(self, metric: str) -> Estimate:
        """What test says in a metric: through the map where that asks for it and there is one."""
        through = self.calibrated if metric_facts(metric).calibrated else {}
        return through.get(metric, self.estimates[metric])


def confirm(request: SelectRequest, chosen: MeasuredJudge, judges: Mapping[str, str]) -> Confirmed:
    """Confirm a recorded judge from its recorded verdicts; `judges` are decided on (`SelectRequest.look`)."""
    return _confirmed(request, judges, chosen.column, repeats=chosen.repeats)


def judge_again(
    request: SelectRequest, judge: Judge, chosen: MeasuredJudge, judges: Mapping[str, str], *, budget: Budget
) -> Confirmed:
    """Call the chosen judge on what the experiment lacks, then confirm it on test.

    `judges` are decided on; where that is the chosen one alone, by what it says now.

    Raises InputError: an item lacks an input, a key is not set, or a budget meets a model without a price.
    """
    test, rest = request.test_items(), other_items(request, judge)
    once = dataclasses.replace(request.options, repeats=1)
    require_prices(
        models_of([judge]), request.options.limit_usd
    )  # all that can be wrong is told before the calls
    require_keys([judge], [*test, *rest], journal_of(request, chosen), request.options)
    judge.check_items([*test, *rest])
    open_experiment(request.experiment)
    with open_journal(request.experiment.journal, request.options) as journal:
        take_over(chosen, journal)
        rows = [
            *run_trials([judge], test, journal=journal, options=request.options, budget=budget),
            *run_trials([judge], rest, journal=journal, options=once, budget=budget),
        ]
    column = Column.of(judge, Judgements(rows))
    decided_on = judges if request.on_all else dict.fromkeys(judges, request.verdicts_sha(column.rows))
    return _confirmed(request, decided_on, column, repeats=request.options.repeats)


def other_items(request: SelectRequest, judge: Judge) -> tuple[Item, ...]:
    """What the lock holds beside test: the labelled items of train and dev that the judge was not trained on.

    With a limit those that it was chosen on: each split is cut alike. None where all items chose.
    """
    if request.on_all:
        return ()
    if request.options.limit is not None:
        return open_items(request.stored, limit=request.options.limit)
    gold = request.stored.gold
    return tuple(
        item
        for item in asked_items(gold, "all", without_groups=judge.trained_on)
        if gold.split_of(item.group) != "test"
    )


def journal_of(request: SelectRequest, chosen: MeasuredJudge) -> Journal:
    """What is judged already, to look at: nothing is written."""
    journal = stored_rows(request.experiment.journal)
    take_over(chosen, journal)
    return journal


def take_over(chosen: MeasuredJudge, journal: Journal) -> None:
    """Copy the judge's rows from the experiment that it was chosen from, but for those that are to be tried
    again."""
    for row in chosen.column.stored:
        lost = row.error is not None and row.error.kind in RETRIED_ON_RESUME
        if row.key not in journal.latest and not lost:
            journal.append(row)


def _confirmed(
    request: SelectRequest, judges: Mapping[str, str], column: Column, *, repeats: int
) -> Confirmed:
    """Where all items chose one of k judges, each of the k intervals errs in a k-th of what the decision may.

    So the chosen one's holds, whichever that is (Bonferroni); its map is cross-fitted there, as no item is
    unseen.
    """
    lost = [row for row in column.rows if row.error and row.error.kind in RETRIED_ON_RESUME]
    look = request.look(judges, decides=request.recorded or not lost)
    level = 1.0 - (1.0 - look.level) / len(judges) if request.on_all else look.level
    table = Table(request.stored.gold, request.test_items(), repeats, request.seed, level)
    found = table.agreements(column)
    calibration = calibrate(table, column, everything=request.on_all)
    return Confirmed(
        look=look,
        table=table,
        estimates=found["as_wrong"],
        complete=found["agreement"],
        rows=Judgements(column.rows),
        calibration=calibration,
        calibrated=found["calibrated"] if request.on_all else table.through(calibration, column),
        n_lost=len(lost),
    )


def calibrate(test: Table, column: Column, *, everything: bool = False) -> Calibration | None:
    """The map of a judge, fitted on the train and dev items that it judged, or on test too; `test` names the
    set."""
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


NOISE_CALLS = 3
"""Calls of each locked item, where not said otherwise."""
NOISE_FILE = "noise.jsonl"
"""The journal of those calls, in the folder of the selection."""


def lock_judge(
    judge: Judge,
    rows: Judgements,
    test: Table,
    *,
    agreement: Mapping[str, Estimate],
    calibration: Calibration | None,
    calibrated: Mapping[str, Estimate],
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
        rows: its judgements of train, dev and test.
        test, agreement, calibrated: the items that it was confirmed on, and what they say; `calibration` is
            its map.
        confirmed_on_test: whether test shows it above the best constant and bears the choice out.
        noise_calls: of each item; 0 makes none. Their journal goes into the folder.

    Raises InputError: as `run_trials` and `LockedJudge.of`.
    """
    gold, verdicts = test.gold, {row.item_id: row.verdict for row in rows if row.repeat == 0}
    called = dataclasses.replace(
        test, items=tuple(i for i in gold.items if i.item_id in verdicts), repeats=noise_calls
    )
    again = _called_afresh(judge, called, folder=folder, options=options, budget=budget)
    calls = _whole_calls(again, called)
    said = [verdict for row in calls.values() for verdict in row] or [*verdicts.values()]
    split = "all" if any(gold.split_of(item.group) != "test" for item in test.items) else "test"
    n_tied = len(tied_items(gold, split, test.items))
    ties = n_tied / (n_tied + len(test.items))
    locked = LockedJudge.of(
        judge, workspace, model_id=next(iter([*model_ids(again), *model_ids(rows)]), None)
    )
    lock = Lock(
        **{field.name: getattr(locked, field.name) for field in dataclasses.fields(locked)},
        gold=LockedGold(gold.name, gold.sha256, split, str(gold.scale), gold.scale.pass_at, ties),
        verdicts=verdicts,
        calls=calls,
        unscored=said.count(None) / len(said),
        agreement=agreement,
        calibrated=calibrated,
        calibration=calibration,
        confirmed_on_test=confirmed_on_test,
        noise=noise_of(judge, again, called, calibration),
        metric=metric,
        margin=margin,
        versions=versions(),
        locked_at=now(),
    )
    return lock, again


def measured_again(folder: Path, options: RunOptions) -> bool:
    """Whether a selection that came to its end is to call for its noise once more, and not to take its own
    calls."""
    return not options.use_cache and (folder / NOISE_FILE).exists() and (folder / "summary.json").exists()


def _called_afresh(
    judge: Judge, called: Table, *, folder: Path, options: RunOptions, budget: Budget
) -> Judgements:
    if not called.repeats:
        return Judgements([])
    afresh = dataclasses.replace(options, repeats=called.repeats, use_cache=False, retry_unscored=False)
    # A journal of its own: these calls take nothing from earlier ones of the judge, and the same command goes
    # on here.
    path = folder / NOISE_FILE
    if measured_again(folder, options):
        path.rename(folder / f"noise-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S%fZ}.jsonl")
    with open_journal(path, afresh) as journal:
        if journal.latest and not options.quiet:
            n = len(journal.latest)
            notice(
                f"judgecal: {n} calls of the lock are stored with this selection; --no-cache makes them anew"
            )
        label = f"{judge.name}, calls of the lock"
        return run_trials([judge], called.items, journal=journal, options=afresh, budget=budget, label=label)


def _whole_calls(rows: Judgements, called: Table) -> dict[str, tuple[Label | None, ...]]:
    """Item id -> its verdicts, of the repeats of which no call was lost on the wire or for want of budget."""
    lost = {row.repeat for row in rows if row.error is not None and row.error.kind in RETRIED_ON_RESUME}
    whole = [repeat for repeat in range(called.repeats) if repeat not in lost]
    matrix = zip(called.items, verdict_matrix(rows, called.items, called.repeats), strict=True)
    return {item.item_id: tuple(row[at] for at in whole) for item, row in matrix if whole}


def noise_of(judge: Judge, rows: Judgements, called: Table, calibration: Calibration | None) -> Noise:
    """What the calls say of the judge's noise: flips of verdicts through its map, equal ones of those as they
    are."""
    if not called.repeats:
        none = Estimate(None, reason="no noise calls were made")
        return Noise(none, none, 0, 0)
    people, verdicts = called.gold.scale, verdict_matrix(rows, called.items, called.repeats)
    shared: dict[str, Any] = {"scale": people, "groups": called.groups, "seed": called.seed}
    found = repeatability(verdicts, judge_scale=item_scale(judge), **shared).estimates
    same, why = found["exact_agreement"], f"the scale {people} has no pass mark"
    blank = dataclasses.replace(same, value=None, low=None, high=None, method="", reason=why)
    if calibration is not None:
        found = repeatability(
            [[calibration.apply(one) for one in row] for row in verdicts], **shared
        ).estimates
    flips = (each for name, each in found.items() if name.startswith("flip_rate"))
    return Noise(next(flips, blank), same, len(called.items), called.repeats)
