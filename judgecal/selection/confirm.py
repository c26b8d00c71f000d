"""Confirm a chosen judge once, on test, and gather what its lock holds: verdicts, noise, fitted threshold.

The chosen judge is called on what the experiment lacks: test items for the confirmation, and the other labelled items
for the lock. Its calls are stored in the selection's own experiment, so that those of the first one stay what all of
its judges were asked.
"""

from __future__ import annotations

import dataclasses
import datetime
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judgecal.engine import Budget, Journal, require_prices
from judgecal.errors import InputError
from judgecal.experiment import (
    Column,
    Experiment,
    Judgements,
    Look,
    RunOptions,
    StoredExperiment,
    Table,
    asked_items,
    look_at_test,
    models_of,
    open_experiment,
    open_journal,
    require_keys,
    run_trials,
    stored_rows,
    verdict_matrix,
)
from judgecal.judges import Judge
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item
from judgecal.scale import Scale
from judgecal.selection.choice import MeasuredJudge, open_items
from judgecal.selection.lock import FittedThreshold, Lock, Noise, make_lock
from judgecal.stats.agreement import prepare
from judgecal.stats.retest import repeatability
from judgecal.stats.sample import Bools, Floats
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What is confirmed and where.

    Attributes:
        workspace: where looks are logged.
        stored: the experiment that was chosen from.
        experiment: the selection's own.
        options: how to call; `repeats` on test items, one call of the others.
        seed: of the bootstrap.
    """

    workspace: Workspace
    stored: StoredExperiment
    experiment: Experiment
    options: RunOptions
    seed: int

    def test_items(self) -> tuple[Item, ...]:
        """The items of the confirmation: all of test; of recorded judgements those that were asked.

        Raises:
            InputError: there is none.
        """
        gold, recorded = self.stored.gold, self.stored.experiment.config["command"] == "agreement"
        if not recorded:
            return asked_items(gold, "test", limit=self.options.limit)
        items = [item for item in self.stored.items if gold.split_of(item.group) == "test"]
        if not items:
            raise InputError(
                f"{self.stored.experiment.slug} holds no test item to confirm on: run judgecal agreement with "
                "--split all"
            )
        return tuple(items[: self.options.limit])

    def look(self, judge: str) -> Look:
        """Write the decision down; the same command on the same items is the same look."""
        return look_at_test(
            self.workspace.experiments,
            gold=self.stored.gold.name,
            gold_sha256=self.stored.gold.sha256,
            experiment=f"{self.experiment.slug}: select {judge}",
            kind="decision",
            n_items=len(self.test_items()),
        )


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What test says of the chosen judge.

    Attributes:
        look: where this stands among the decisions on test.
        table: the test items, at the level of the look.
        estimates: METRIC -> Estimate, an unscored item counted as wrong.
        complete: the same over the scored items alone.
        rows: its judgements over test and the items that it was chosen on.
        n_lost: calls that ended on the wire or at the budget: the same command makes them again.
    """

    look: Look
    table: Table
    estimates: Mapping[str, Estimate]
    complete: Mapping[str, Estimate]
    rows: Judgements
    n_lost: int = 0

    @property
    def n_unscored(self) -> int:
        """Judgements without a verdict."""
        return len(self.rows.unscored)


def confirm(asked: Confirmation, chosen: MeasuredJudge) -> Confirmed:
    """Confirm a recorded judge from its recorded verdicts."""
    look = asked.look(chosen.column.judge)
    return _confirmed(asked, look, chosen.column, repeats=chosen.repeats)


def judge_again(asked: Confirmation, judge: Judge, chosen: MeasuredJudge, *, budget: Budget) -> Confirmed:
    """Call the chosen judge on what the experiment lacks, then confirm it on test.

    Raises:
        InputError: an item lacks an input, a key is not set, or a budget meets a model without a price.
    """
    test, rest = asked.test_items(), other_items(asked, judge)
    once = dataclasses.replace(asked.options, repeats=1)
    require_prices(models_of([judge]), asked.options.budget_usd)  # all that can be wrong is told before the look
    require_keys([judge], [*test, *rest], journal_of(asked, chosen), asked.options)
    judge.check_items([*test, *rest])
    open_experiment(asked.experiment)
    look = asked.look(judge.name)
    with open_journal(asked.experiment.journal, asked.options) as journal:
        take_over(chosen, journal)
        rows = [
            *run_trials([judge], test, journal=journal, options=asked.options, budget=budget),
            *run_trials([judge], rest, journal=journal, options=once, budget=budget),
        ]
    column = Column.of(judge, Judgements(rows))
    return _confirmed(asked, look, column, repeats=asked.options.repeats)


def other_items(asked: Confirmation, judge: Judge) -> tuple[Item, ...]:
    """What the lock holds beside test: the labelled items of train and dev that the judge was not trained on.

    With a limit those that it was chosen on: each split is cut alike.
    """
    if asked.options.limit is not None:
        return open_items(asked.stored, limit=asked.options.limit)
    gold = asked.stored.gold
    return tuple(
        item
        for item in asked_items(gold, "all", without_groups=judge.trained_on)
        if gold.split_of(item.group) != "test"
    )


def journal_of(asked: Confirmation, chosen: MeasuredJudge) -> Journal:
    """What is judged already, to look at: nothing is written."""
    journal = stored_rows(asked.experiment.journal)
    take_over(chosen, journal)
    return journal


def take_over(chosen: MeasuredJudge, journal: Journal) -> None:
    """Copy the judge's rows from the experiment that it was chosen from, but for those that are to be tried again."""
    for row in chosen.column.rows:
        lost = row.error is not None and row.error.kind in RETRIED_ON_RESUME
        if row.key not in journal.latest and not lost:
            journal.append(row)


def _confirmed(asked: Confirmation, look: Look, column: Column, *, repeats: int) -> Confirmed:
    table = Table(asked.stored.gold, asked.test_items(), repeats, asked.seed, look.level)
    found = table.agreements(column)
    lost = [row for row in column.rows if row.error and row.error.kind in RETRIED_ON_RESUME]
    return Confirmed(look, table, found["as_wrong"], found["agreement"], Judgements(column.rows), len(lost))


NOISE_ITEMS = 30
"""Items that are called."""
NOISE_CALLS = 3
"""Calls of each, where not said otherwise."""


def noise_items(items: Sequence[Item], *, seed: int, n: int = NOISE_ITEMS) -> tuple[Item, ...]:
    """A seeded draw of items: one of each question before a second of any, as items of one question are alike."""
    rng = random.Random(seed)
    drawn = rng.sample(list(items), len(items))
    seen: dict[str, int] = {}
    turns = []
    for item in drawn:
        seen[item.group] = seen.get(item.group, 0) + 1
        turns.append(seen[item.group])
    order = sorted(range(len(drawn)), key=lambda place: (turns[place], place))
    return tuple(drawn[place] for place in order[:n])


def call_again(
    judge: Judge, items: Sequence[Item], *, n_calls: int, path: Path, options: RunOptions, budget: Budget
) -> Judgements:
    """Call every item anew, so many times; the rows are kept in a journal of their own.

    Raises:
        InputError: as `run_trials`.
    """
    afresh = dataclasses.replace(options, repeats=n_calls, use_cache=False, retry_unscored=False)
    with open_journal(path, afresh) as journal:
        return run_trials([judge], items, journal=journal, options=afresh, budget=budget, label=f"{judge.name}, noise")


def noise_of(
    rows: Judgements, items: Sequence[Item], *, n_calls: int, people: Scale, judge_scale: Scale, seed: int
) -> Noise:
    """What the calls say of the judge's noise; without calls, the reason."""
    if n_calls < 2:
        none = Estimate(None, reason="no noise calls were made")
        return Noise(none, none, 0, n_calls)
    found = repeatability(
        verdict_matrix(rows, items, n_calls),
        scale=people,
        judge_scale=judge_scale,
        groups=[item.group for item in items],
        seed=seed,
    )
    blank = dataclasses.replace(
        found.estimates["exact_agreement"],
        value=None,
        low=None,
        high=None,
        method="",
        reason=f"the scale {people} has no pass mark",
    )
    flips = (each for name, each in found.estimates.items() if name.startswith("flip_rate"))
    return Noise(next(flips, blank), found.estimates["exact_agreement"], len(items), n_calls)


def fit_threshold(table: Table, column: Column) -> FittedThreshold | None:
    """The cut between two verdicts with the highest balanced accuracy; of equals the nearest to the people's mark.

    Repeats count as judgements of their own; unscored ones are left out.

    Returns:
        None where the scale has no pass mark, the verdicts are no grades, or one class has no scored item.
    """
    people = table.gold.scale
    if not people.numeric or (people.kind != "binary" and people.pass_at is None):
        return None
    rows = verdict_matrix(column.rows, table.items, table.repeats)
    sample = prepare(table.labels, rows, people=people, judge_scale=column.scale, groups=table.groups, unscored="drop")
    marked = sample if people.kind == "binary" else sample.at_mark
    if sample.scale.kind == "binary" or marked.classes is None or not len(sample.gold):
        return None
    passes: Bools = np.broadcast_to(marked.classes.gold[:, None] == 1, sample.scored.shape)[sample.scored]
    mark = sample.scale.low + sample.scale.span / 2.0 if sample.scale.pass_at is None else sample.scale.pass_at
    found = _best_cut(sample.verdicts[sample.scored], passes, mark)
    if found is None:
        return None
    return FittedThreshold(*found, n_items=len(sample.gold), n_groups=sample.n_groups)


def _best_cut(verdicts: Floats, passes: Bools, mark: float) -> tuple[float, float] | None:
    """Cut and balanced accuracy; the cuts lie half-way between neighbouring verdicts."""
    values = np.unique(verdicts)
    if len(values) < 2 or passes.all() or not passes.any():
        return None
    cuts = (values[1:] + values[:-1]) / 2.0
    tpr = 1.0 - np.searchsorted(np.sort(verdicts[passes]), cuts) / passes.sum()
    tnr = np.searchsorted(np.sort(verdicts[~passes]), cuts) / (~passes).sum()
    balanced = np.round((tpr + tnr) / 2.0, 12)
    best = np.flatnonzero(balanced == balanced.max())
    nearest = best[np.argmin(np.abs(cuts[best] - mark))]
    return float(cuts[nearest]), float(balanced[nearest])


def lock_migrated(
    judge: Judge,
    rows: Judgements,
    *,
    tables: tuple[Table, Table],
    metric: str,
    margin: float,
    budget: Budget,
    folder: Path,
    options: RunOptions,
    workspace: Workspace,
) -> Lock:
    """Measure the judge's noise by calls afresh, and make its lock.

    Args:
        judge: it.
        rows: its judgements of all items.
        tables: the test items, on which it was confirmed, and those of train and dev, on which its own cut is fitted.
        metric, margin: by which it was held against the old one.
        budget, options: of the noise calls.
        folder: where their journal goes.
        workspace: where its program is.

    Raises:
        InputError: as `run_trials`.
    """
    test, fit = tables
    gold, column = test.gold, Column.of(judge, rows)
    judged = {row.item_id for row in rows}
    items = noise_items([item for item in gold.items if item.item_id in judged], seed=test.seed)
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
    path = folder / f"noise-{now}.jsonl"
    again = call_again(judge, items, n_calls=NOISE_CALLS, path=path, options=options, budget=budget)
    noise = noise_of(again, items, n_calls=NOISE_CALLS, people=gold.scale, judge_scale=judge.scale, seed=test.seed)
    return make_lock(
        judge,
        gold=gold,
        rows=rows,
        agreement=test.agreements(column)["as_wrong"],
        own_cut=fit_threshold(fit, column),
        noise=noise,
        noise_rows=again,
        metric=metric,
        margin=margin,
        workspace=workspace,
    )
