"""`select`: leave out who is over the caps, choose on open items, confirm once on test, lock.

The chosen judge is called on what the experiment lacks: test items for the confirmation, and the other
labelled items for the lock. Its calls are stored in the selection's own experiment, so that the first
experiment stays as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgecal.engine.budget import Budget, CostEstimate, require_prices, together
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, refuse
from judgecal.experiment.agreement import refuse_unequal
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.folder import open_experiment
from judgecal.experiment.looks import LookKind, look_at_test, verdicts_sha
from judgecal.experiment.score import asked_items
from judgecal.experiment.stored import read_experiment
from judgecal.experiment.trials import (
    ExperimentJournal,
    models_of,
    plan_calls,
    recorder,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.judges import judge_named
from judgecal.judges.protocol import Judge, single_calls
from judgecal.records import Item, Judgement
from judgecal.selection.confirm import (
    NOISE_CALLS,
    NOISE_FILE,
    Confirmed,
    Upheld,
    check_choice,
    is_lost,
    lock_judge,
)
from judgecal.selection.decision import Caps, MeasuredJudge, OpenChoice, decide, measure
from judgecal.selection.lock import LockedJudge, lock_problems, reply_fingerprint, write_lock
from judgecal.selection.select_result import SelectRequest, SelectResult, select_result
from judgecal.stats import leading_metric, metric_named
from judgecal.stats.significance import MARGIN
from judgecal.workspace import find_workspace


@dataclass(frozen=True, kw_only=True)
class SelectRun(SelectRequest):
    """A selection from what an experiment holds."""

    def _other_items(self, judge: Judge) -> tuple[Item, ...]:
        """What the lock holds beside test: the labelled items of train and dev that the judge was not trained
        on.

        With a limit those that it was chosen on: each split is cut alike.
        """
        if self.options.limit is not None:
            return self.choosing_items
        gold = self.stored.gold
        untrained = asked_items(gold, "all", without_groups=judge.trained_on)
        return tuple(item for item in untrained if gold.split_of(item.group) != "test")

    # --- what is asked

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or logged."""
        self.caps.check()
        if not 0.0 < self.margin < math.inf:
            raise InputError(f"--margin must be above 0 and finite, found {self.margin:g}")
        _ = self.experiment  # whose slug may be none
        refuse([] if self.recorded else lock_problems(self.output, replace=self.replace))
        metric_named(self.by, self.stored.gold.scale)
        refuse_unequal(self.stored.gold, self.stored.items, "select")
        if not self.choosing_items:
            raise InputError(
                f"{self.stored.experiment.slug} holds no item of train or dev to choose on: run judgecal "
                "score with --split open (test only confirms)"
            )
        _ = self.test_items

    def decide(self) -> OpenChoice:
        """Return the OpenChoice from what the experiment holds; nothing is called, written or logged."""
        self.check()
        table = replace(self.stored.table, items=self.choosing_items, seed=self.seed)
        metrics = list({self.by: 0, leading_metric(self.stored.gold.scale): 0})
        measured = measure(self.stored, table, metrics=metrics)
        return decide(self.stored, table, measured, metric=self.by, margin=self.margin, caps=self.caps)

    def _judge(self, chosen: MeasuredJudge) -> Judge:
        """The chosen judge, refused where it is not what the experiment called, or could not be locked."""
        judge = judge_named(chosen.judge, workspace=self.workspace)
        configured = self.stored.experiment.config["judges"]
        fingerprints = {str(config["judge"]): config["fingerprint"] for config in configured}
        if judge.fingerprint != fingerprints[chosen.judge]:
            raise InputError(
                f"{chosen.judge} has changed since {self.stored.experiment.slug}: its signature, "
                "program, model or price is not what was scored; run the experiment's command again, "
                "then select from the new experiment"
            )
        LockedJudge.from_judge(judge, self.workspace)
        return judge

    # --- the look at test

    def _confirm(self, chosen: MeasuredJudge, column: Verdicts, repeats: int) -> Confirmed:
        """Hold the chosen judge on test, and write down the look. Where calls were lost nothing is decided
        yet: that look is logged and not counted."""
        kind: LookKind = "decision" if self.recorded or not any(map(is_lost, column.rows)) else "report"
        fingerprint = chosen.column.rows[0].judge_fingerprint
        if not self.recorded:
            fingerprint = reply_fingerprint(judge_named(chosen.judge, workspace=self.workspace))
        look = look_at_test(
            self.workspace.experiments,
            self.stored.gold,
            self.test_items,
            experiment=self.experiment.slug,
            kind=kind,
            by=f"select by {self.by}",
            judges={fingerprint: verdicts_sha(self.stored.gold, self.test_items, column.rows)},
        )
        table = AgreementTable(self.stored.gold, self.test_items, repeats, self.seed, look.level)
        return Confirmed.from_table(look, table, column)

    # --- the calls

    def _copy_rows(self, chosen: MeasuredJudge, journal: Journal, take: Callable[..., None]) -> None:
        """Take the judge's calls from the experiment that it was chosen from, but those to be tried again."""
        single, _ = single_calls(chosen.column.rows[0].judge_fingerprint)
        for row in stored_rows(self.stored.experiment.journal).latest.values():
            if row.judge_fingerprint == single and row.key not in journal.latest and not is_lost(row):
                take(row)

    def _journal(self, chosen: MeasuredJudge) -> Journal:
        """What is judged already, to look at: nothing is written."""
        journal = stored_rows(self.experiment.journal)
        self._copy_rows(chosen, journal, journal.append)
        return journal

    def preview(self) -> CostEstimate:
        """Return the CostEstimate of confirmation and noise; the choice is made, nothing is written."""
        decided = self.decide()
        if decided.choice is None or self.recorded:
            return CostEstimate(0, 0, 0, 0.0, 0.0)
        judge, journal = self._judge(decided.chosen), self._journal(decided.chosen)
        test, others = self.test_items, self._other_items(judge)
        runs = [(test, journal, self.options.repeats), (others, journal, 1)]
        made = Journal.looked_at(self.experiment.folder / NOISE_FILE)
        runs.append(((*test, *others), made, NOISE_CALLS))
        return together([
            plan_calls([judge], items, stored, replace(self.options, repeats=repeats))
            for items, stored, repeats in runs
        ])  # fmt: skip

    def run(self) -> SelectResult:
        """Choose on open items, confirm on test, write the lock, if any, and return the SelectResult."""
        decided = self.decide()
        open_experiment(self.experiment)
        if decided.choice is None:
            result = select_result(self, decided)
        elif self.recorded:
            chosen, why = decided.chosen, "its judgements were recorded: there is no prompt to lock"
            confirmed = self._confirm(chosen, chosen.column, chosen.repeats)
            result = select_result(
                self, decided, confirmed, lock_reason=why, held=self._upheld(decided, confirmed)
            )
        else:
            result = self._called(decided)
        self.experiment.write_summary(result)
        return result

    def _called(self, decided: OpenChoice) -> SelectResult:
        """Call the chosen judge on what the experiment lacks, confirm it, measure its noise, and lock it."""
        chosen, options = decided.chosen, self.options
        judge, budget = self._judge(chosen), Budget(options.budget_usd)
        test, others = self.test_items, self._other_items(judge)
        # all that can be wrong is said before the calls
        require_prices(models_of([judge]), options.budget_usd)
        require_keys([judge], [*test, *others], self._journal(chosen), options)
        judge.check_items([*test, *others])
        open_experiment(self.experiment)
        rows: list[Judgement] = []
        with ExperimentJournal(self.experiment, [judge], options) as journal:
            self._copy_rows(chosen, journal, recorder(journal, judge))
            for items, repeats in ((test, options.repeats), (others, 1)):
                each = replace(options, repeats=repeats)
                rows += run_trials([judge], items, journal=journal, options=each, budget=budget)
        column = Verdicts.from_calls(judge, rows)
        confirmed = self._confirm(chosen, column, options.repeats)
        if confirmed.n_lost:
            lost = f"{confirmed.n_lost:,} calls were lost (connection or budget)"
            why = f"{lost}: the same command makes them again, then locks"
            return select_result(self, decided, confirmed, lock_reason=why, usd=budget.spent_usd)
        held = self._upheld(decided, confirmed)
        if held is not None and held.refused:
            usd = budget.spent_usd
            return select_result(self, decided, confirmed, lock_reason=held.refused, held=held, usd=usd)
        lock, noise_rows = lock_judge(
            judge,
            confirmed,
            metric=self.by,
            margin=self.margin,
            confirmed_on_test=held is not None and held.doubt is None,
            folder=self.experiment.folder,
            options=options,
            budget=budget,
            workspace=self.workspace,
        )
        write_lock(self.output, lock)
        made: dict[str, Any] = {"lock": lock, "noise_rows": noise_rows, "held": held}
        return select_result(self, decided, confirmed, usd=budget.spent_usd, **made)

    def _upheld(self, decided: OpenChoice, confirmed: Confirmed) -> Upheld | None:
        """What test says of the choice."""
        if decided.losses is None:
            return None
        return check_choice(
            decided.chosen,
            confirmed,
            chosen_on=decided.table,
            metric=self.by,
            n_judges=len(decided.losses.by_judge),
            caps=self.caps,
        )


def select(
    experiment: str | Path,
    *,
    metric: str | None = None,
    margin: float = MARGIN,
    caps: Caps | None = None,
    output: str | Path = "judge.lock.json",
    replace: bool = False,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> SelectResult:
    """Choose an experiment's cheapest judge within a margin, confirm and lock it; return a SelectResult.

    Calls the chosen judge on the items of test, and again for its noise: this costs calls, and is a look at
    test.

    Args:
        experiment: slug or folder of the experiment that holds the judges.
        metric: by which; the leading one of the labels' scale where not given.
        margin: the loss against the best judge that is allowed.
        caps: what a judge may cost at most, and the like.
        output: where the lock goes; `replace`: also over one that is there.
        name: slug of the new experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    stored = read_experiment(where, str(experiment))
    options = RunOptions(repeats=stored.table.repeats, budget_usd=budget_usd)
    options.check()
    run = SelectRun(
        workspace=where,
        stored=stored,
        options=options,
        caps=caps or Caps(),
        metric=metric,
        margin=margin,
        output=Path(output),
        seed=seed,
        replace=replace,
        out=name,
    )
    return run.run()
