"""`select`: leave out who is over the caps, choose on open items, confirm once on test, lock."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal
from judgecal.errors import InputError
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    Judgements,
    RunOptions,
    StoredExperiment,
    Table,
    gold_config,
    open_experiment,
    plan_calls,
    together,
    verdict_matrix,
)
from judgecal.judges import Judge, judge_named
from judgecal.records import Item
from judgecal.selection.choice import Caps, MeasuredJudge, choose, measure, open_items, repeats_of
from judgecal.selection.confirm import (
    Confirmation,
    Confirmed,
    call_again,
    confirm,
    fit_threshold,
    journal_of,
    judge_again,
    noise_items,
    noise_of,
    other_items,
)
from judgecal.selection.lock import LockedJudge, Noise, make_lock, write_lock
from judgecal.selection.select_result import OpenChoice, Selection, SelectResult
from judgecal.stats import leading_metric, metric_named
from judgecal.stats.simultaneous import Losses, losses_against_best
from judgecal.workspace import Workspace

MARGIN = 0.03
"""The loss that is allowed where not said otherwise, in units of the metric."""


def select_config(
    stored: StoredExperiment, *, metric: str | None, margin: float, caps: Caps, repeats: int, seed: int
) -> dict[str, Any]:
    """The resolved configuration of a selection: what it asks, not how it calls or where the lock goes.

    Raises:
        InputError: a cap or the margin is none.
    """
    _check_asked(margin, caps)
    return {
        "command": "select",
        "gold": gold_config(stored.gold),
        "chosen_from": stored.experiment.slug,
        "judges": [column.judge for column in stored.columns[: stored.asked]],
        "metric": metric or leading_metric(stored.gold.scale),
        "margin": margin,
        "caps": caps.config(),
        "repeats": repeats,
        "seed": seed,
    }


def _check_asked(margin: float, caps: Caps) -> None:
    caps.check()
    if not 0.0 < margin < math.inf:
        raise InputError(f"--margin must be above 0 and finite, found {margin:g}")


@dataclass(frozen=True, slots=True)
class SelectRun:
    """Everything that `select` needs.

    Attributes:
        workspace: where looks are logged.
        stored: the experiment to choose from.
        experiment: the selection's own, for its calls and its result.
        options: how to call; its repeats are those of the confirmation.
        caps: what a judge may be at most.
        metric: by which; the leading one of the set where not given.
        margin: the loss against the best that is allowed.
        noise_calls: of each item at lock time; 0 for none.
        output: where the lock goes.
        seed: of draws.
    """

    workspace: Workspace
    stored: StoredExperiment
    experiment: Experiment
    options: RunOptions
    caps: Caps
    metric: str | None
    margin: float
    noise_calls: int
    output: Path
    seed: int

    @property
    def recorded(self) -> bool:
        """Whether the judgements were recorded elsewhere: nobody can be called."""
        return bool(self.stored.experiment.config["command"] == "agreement")

    @property
    def by(self) -> str:
        """The metric that decides."""
        return self.metric or leading_metric(self.stored.gold.scale)

    @property
    def asked(self) -> Confirmation:
        """What the confirmation needs."""
        return Confirmation(self.workspace, self.stored, self.experiment, self.options, self.seed)

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or logged.

        Raises:
            InputError: a cap, the margin or the noise calls are none; the metric does not fit; there is no item to
                choose on or to confirm on; or the lock cannot go where it should.
        """
        _check_asked(self.margin, self.caps)
        problems = []
        if self.noise_calls < 0 or self.noise_calls == 1:
            problems.append(f"--noise-calls is 0, or 2 and more, found {self.noise_calls}: one call shows no noise")
        if self.output.is_dir():
            problems.append(f"--output {self.output} is a folder: name a file")
        if problems:
            raise InputError(problems)
        metric_named(self.by, self.stored.gold.scale)
        if not open_items(self.stored, limit=self.options.limit):
            raise InputError(
                f"{self.stored.experiment.slug} holds no item of train or dev to choose on: run judgecal score with "
                "--split open (test only confirms)"
            )
        self.asked.test_items()

    def decide(self) -> OpenChoice:
        """The choice, from what the experiment holds; nothing is called, written or logged.

        Raises:
            InputError: as `check`; or no judge has a value in the metric.
        """
        self.check()
        items = open_items(self.stored, limit=self.options.limit)
        table = Table(self.stored.gold, items, repeats_of(self.stored), self.seed)
        found = measure(self.stored, table)
        within = [one for one in found if self.caps.over(one.candidate) is None]
        if not within:
            return OpenChoice(table, found)
        losses = self._losses(table, within)
        choice = choose([one.candidate for one in within], losses, margin=self.margin, metric=self.by)
        return OpenChoice(table, found, losses, choice)

    def _losses(self, table: Table, within: Sequence[MeasuredJudge]) -> Losses:
        columns = [one.column for one in within]
        return losses_against_best(
            table.labels,
            {one.column.judge: verdict_matrix(one.column.rows, table.items, one.repeats) for one in within},
            scale=table.gold.scale,
            scales={column.judge: column.scale for column in columns},
            metric=self.by,
            groups=table.groups,
            level=table.level,
            seed=self.seed,
        )

    def run(self) -> SelectResult:
        """Choose on open items, confirm on test, and write the lock where there is one.

        Raises:
            InputError: as `check`; or the chosen judge is not what it was, or its key is not set.
        """
        decided = self.decide()
        selection = Selection(self.asked, decided, self.caps, self.by, self.margin)
        if decided.choice is not None and self.recorded:
            open_experiment(self.experiment)
            why = "its judgements were recorded: there is no prompt to lock"
            confirmed = confirm(self.asked, decided.chosen)
            selection = dataclasses.replace(selection, confirmed=confirmed, lock_reason=why)
        elif decided.choice is not None:
            selection = self._called(selection)
        else:
            open_experiment(self.experiment)
        result = selection.result()
        self.experiment.write_summary(result)
        return result

    def _called(self, selection: Selection) -> Selection:
        """Confirm a judge that can be called, measure its noise, and lock it."""
        decided = selection.decided
        judge, budget = self._judge(decided.chosen), Budget(self.options.budget_usd)
        confirmed = judge_again(self.asked, judge, decided.chosen, budget=budget)
        selection = dataclasses.replace(selection, confirmed=confirmed, usd=budget.spent_usd)
        if confirmed.n_lost:
            lost = f"{confirmed.n_lost} calls were lost on the wire or for want of budget"
            return dataclasses.replace(selection, lock_reason=f"{lost}: the same command makes them again, then locks")
        noise, rows = self._noise(judge, confirmed, budget)
        lock = make_lock(
            judge,
            gold=self.stored.gold,
            rows=confirmed.rows,
            agreement=confirmed.estimates,
            own_cut=fit_threshold(decided.table, decided.chosen.column),
            noise=noise,
            noise_rows=rows,
            metric=self.by,
            margin=self.margin,
            workspace=self.workspace,
        )
        write_lock(self.output, lock)
        return dataclasses.replace(selection, lock=lock, output=self.output, noise_rows=rows, usd=budget.spent_usd)

    def _noise(self, judge: Judge, confirmed: Confirmed, budget: Budget) -> tuple[Noise, Judgements]:
        gold = self.stored.gold
        items = self._noise_items({row.item_id for row in confirmed.rows})
        rows = Judgements([])
        if self.noise_calls:
            now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
            path = self.experiment.folder / f"noise-{now}.jsonl"
            rows = call_again(judge, items, n_calls=self.noise_calls, path=path, options=self.options, budget=budget)
        noise = noise_of(
            rows, items, n_calls=self.noise_calls, people=gold.scale, judge_scale=judge.scale, seed=self.seed
        )
        return noise, rows

    def _noise_items(self, locked: Container[str]) -> tuple[Item, ...]:
        """Drawn from the items of the lock, so that a gate later calls the same."""
        return noise_items([item for item in self.stored.gold.items if item.item_id in locked], seed=self.seed)

    def _judge(self, chosen: MeasuredJudge) -> Judge:
        """The chosen judge, if it still is what the experiment called; what can be wrong with it is told now.

        Raises:
            InputError: its signature, program or model has changed or is gone.
        """
        name = chosen.column.judge
        judge = judge_named(name, workspace=self.workspace)
        told = {str(one["judge"]): one["fingerprint"] for one in self.stored.experiment.config["judges"]}
        if judge.fingerprint != told[name]:
            raise InputError(
                f"{name} has changed since {self.stored.experiment.slug}: its signature, program, model or price is "
                "not what was scored; run the experiment's command again, then select from the new one"
            )
        LockedJudge.of(judge, self.workspace)
        return judge

    def preview(self) -> CostEstimate:
        """What confirmation and noise would call; the choice is made, nothing is written.

        Raises:
            InputError: as `run`.
        """
        decided = self.decide()
        if decided.choice is None or self.recorded:
            return CostEstimate(0, 0, 0, 0.0, 0.0)
        judge = self._judge(decided.chosen)
        test, rest = self.asked.test_items(), other_items(self.asked, judge)
        drawn = self._noise_items({item.item_id for item in (*test, *rest)})
        journal = journal_of(self.asked, decided.chosen)
        runs = [(test, journal, self.options.repeats), (rest, journal, 1)]
        runs += [(drawn, Journal(None), self.noise_calls)] if self.noise_calls else []
        return together(
            [
                plan_calls([judge], items, stored, dataclasses.replace(self.options, repeats=repeats))
                for items, stored, repeats in runs
            ]
        )
