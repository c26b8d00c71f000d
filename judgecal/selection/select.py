"""`select`: leave out who is over the caps, choose on open items, confirm once on test, lock."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.engine import Journal
from judgecal.errors import InputError, listed, refuse
from judgecal.experiment import (
    CostEstimate,
    Look,
    RunOptions,
    foresee_look,
    open_experiment,
    plan_calls,
    read_experiment,
    refuse_unequal,
    together,
)
from judgecal.experiment.chunks import whole_items
from judgecal.judges import Judge, JudgeName, judge_named
from judgecal.selection.choice import MARGIN, Caps, MeasuredJudge, measure, repeats_of
from judgecal.selection.confirm import (
    NOISE_FILE,
    Confirmed,
    SelectRequest,
    Upheld,
    confirm,
    journal_of,
    judge_again,
    lock_judge,
    measured_again,
    other_items,
    upheld,
)
from judgecal.selection.decision import OpenChoice, decide
from judgecal.selection.lock import LockedJudge, lock_problems, reply_fingerprint, write_lock
from judgecal.selection.select_result import SelectResult, select_result
from judgecal.stats import metric_named
from judgecal.workspace import find_workspace


@dataclass(frozen=True, kw_only=True)
class SelectRun(SelectRequest):
    """A selection from what an experiment holds."""

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or logged."""
        self.caps.check()
        if not 0.0 < self.margin < math.inf:
            raise InputError(f"--margin must be above 0 and finite, found {self.margin:g}")
        _ = self.experiment  # whose slug may be none
        problems, slug = [], self.stored.experiment.slug
        if self.noise_calls < 0 or self.noise_calls == 1:
            problems.append(
                f"--noise-calls is 0, or 2 and more, found {self.noise_calls}: one call shows no noise"
            )
        problems += [] if self.recorded else lock_problems(self.output, replace=self.replace)
        refuse(problems)
        metric_named(self.by, self.stored.gold.scale)
        refuse_unequal(self.stored.gold, self.stored.items, "select")
        if self.on_all:  # refuse to choose on all labels what has not judged them all, or knows some of them
            if self.stored.split != "all":
                command = "agreement" if self.recorded else "score"
                problems.append(
                    f"{slug} holds the {self.stored.split} items: to choose on all labels, run judgecal "
                    f"{command} with --split all"
                )
            judges = [
                column for column in self.stored.columns[: self.stored.asked] if column.kind == "prompt"
            ]
            compiled = [
                column.judge for column in judges if JudgeName.parse(column.judge).program is not None
            ]
            if compiled:
                problems.append(
                    f"{listed(compiled)} of {slug} was compiled by an optimiser, which saw labels: choose "
                    "with --split open, which leaves those out and confirms on test; or score the judges "
                    "that were not compiled"
                )
            refuse(problems)
        if not self.choosing_items:
            raise InputError(
                f"{slug} holds no item of train or dev to choose on: run judgecal score with --split open "
                "(test only confirms)"
            )
        self.test_items()

    def decide(self) -> OpenChoice:
        """The choice, from what the experiment holds; nothing is called, written or logged."""
        self.check()
        table = dataclasses.replace(self.stored.table, items=self.choosing_items, seed=self.seed)
        measured = measure(self.stored, table)
        if self.on_all:  # the choice is a decision on test labels itself
            within = [judge for judge in measured if self.caps.over(judge) is None]
            table = dataclasses.replace(table, level=foresee_look(**self.seen(self._verdicts(within))).level)
        return decide(self.stored, table, measured, metric=self.by, margin=self.margin, caps=self.caps)

    def run(self) -> SelectResult:
        """Choose on open items, confirm on test, and write the lock where there is one."""
        decided = self.decide()
        if decided.choice is None:
            open_experiment(self.experiment)
            result = select_result(self, decided)
        elif self.recorded:
            open_experiment(self.experiment)
            chosen, why = decided.chosen, "its judgements were recorded: there is no prompt to lock"
            confirmed = confirm(self, self._decided_on(decided), chosen.column, repeats=chosen.repeats)
            held = self._upheld(decided, confirmed)
            result = select_result(self, decided, confirmed, lock_reason=why, upheld=held)
        else:
            result = self._called(decided)
        self.experiment.write_summary(result)
        return result

    def _called(self, decided: OpenChoice) -> SelectResult:
        """Confirm a judge that can be called, measure its noise, and lock it."""
        judge, budget = self._judge(decided.chosen), self.options.open_budget(self.experiment.folder)
        confirmed = judge_again(self, judge, decided.chosen, self._decided_on(decided), budget=budget)
        if confirmed.n_lost:
            lost = f"{confirmed.n_lost} calls were lost on the wire or for want of budget"
            why = f"{lost}: the same command makes them again, then locks"
            return select_result(self, decided, confirmed, lock_reason=why, usd=budget.spent_usd)
        held = self._upheld(decided, confirmed)
        if held is not None and held.refused:
            why, usd = held.refused, budget.spent_usd
            return select_result(self, decided, confirmed, lock_reason=why, upheld=held, usd=usd)
        lock, noise_rows = lock_judge(
            judge,
            confirmed,
            metric=self.by,
            margin=self.margin,
            confirmed_on_test=held is not None and held.doubt is None,
            noise_calls=self.noise_calls,
            folder=self.experiment.folder,
            options=self.options,
            budget=budget,
            workspace=self.workspace,
        )
        write_lock(self.output, lock)
        made: dict[str, Any] = {"lock": lock, "noise_rows": noise_rows, "upheld": held}
        return select_result(self, decided, confirmed, usd=budget.spent_usd, **made)

    def _upheld(self, decided: OpenChoice, confirmed: Confirmed) -> Upheld | None:
        """What test says of the choice; None where all items chose, so that none is left to say anything."""
        if self.on_all or decided.losses is None:
            return None
        return upheld(
            decided.chosen,
            confirmed,
            chosen_on=decided.table,
            metric=self.by,
            n_judges=len(decided.losses.by_judge),
            caps=self.caps,
        )

    def _judge(self, chosen: MeasuredJudge) -> Judge:
        """The chosen judge, refused where it is not what the experiment called, or could not be locked."""
        name = chosen.judge
        judge = judge_named(name, workspace=self.workspace)
        configured = self.stored.experiment.config["judges"]
        fingerprints = {str(config["judge"]): config["fingerprint"] for config in configured}
        if judge.fingerprint != fingerprints[name]:
            raise InputError(
                f"{name} has changed since {self.stored.experiment.slug}: its signature, program, model or "
                "price is not what was scored; run the experiment's command again, then select from the new "
                "one"
            )
        LockedJudge.of(judge, self.workspace)
        return judge

    def foresee(self) -> Look | None:
        """Which decision on test labels a run would take; None where nobody is chosen."""
        decided = self.decide()
        if decided.choice is None:
            return None
        if not self.recorded:
            self._judge(decided.chosen)
        judges = self._decided_on(decided)
        if not (self.recorded or self.on_all):  # what it said of test so far, which may be nothing
            stored = whole_items([*journal_of(self, decided.chosen).latest.values()])
            judges = dict.fromkeys(judges, self.verdicts_sha(stored))
        return foresee_look(**self.seen(judges))

    def _decided_on(self, decided: OpenChoice) -> dict[str, str]:
        """The judges that a look decides on: the chosen one, or on all items all within the caps."""
        if not self.on_all or decided.losses is None:
            return self._verdicts([decided.chosen])
        return self._verdicts([judge for judge in decided.measured if judge.judge in decided.losses.by_judge])

    def _verdicts(self, judges: list[MeasuredJudge]) -> dict[str, str]:
        """Fingerprint -> its verdicts on test, of some judges."""

        def fingerprint(judge: MeasuredJudge) -> str:
            if self.recorded:
                return judge.column.rows[0].judge_fingerprint
            return reply_fingerprint(judge_named(judge.judge, workspace=self.workspace))

        return {fingerprint(judge): self.verdicts_sha(judge.column.rows) for judge in judges}

    def preview(self) -> CostEstimate:
        """What confirmation and noise would call; the choice is made, nothing is written."""
        decided = self.decide()
        if decided.choice is None or self.recorded:
            return CostEstimate(0, 0, 0, 0.0, 0.0)
        judge = self._judge(decided.chosen)
        test, rest = self.test_items(), other_items(self, judge)
        journal = journal_of(self, decided.chosen)
        runs = [(test, journal, self.options.repeats), (rest, journal, 1)]
        if self.noise_calls:
            anew = measured_again(self.experiment.folder, self.options)
            made = Journal(None) if anew else Journal.looked_at(self.experiment.folder / NOISE_FILE)
            runs.append(((*test, *rest), made, self.noise_calls))
        plans = [
            plan_calls([judge], items, stored, dataclasses.replace(self.options, repeats=repeats))
            for items, stored, repeats in runs
        ]
        return together(plans)


def select(
    experiment: str | Path,
    *,
    metric: str | None = None,
    margin: float = MARGIN,
    caps: Caps | None = None,
    on_all: bool = False,
    output: str | Path = "judge.lock.json",
    replace: bool = False,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> SelectResult:
    """Choose the cheapest judge shown to lose less than the margin against the best, confirm and lock it.

    Calls the chosen judge on the items of test, and again for its noise: this costs calls, and is a look at
    test.

    Args:
        experiment: slug or folder of the experiment that holds the judges.
        metric: by which; the leading one of the labels' scale where not given.
        margin: the loss against the best judge that is allowed.
        caps: what a judge may cost at most, and the like.
        on_all: choose on all items, so that none confirms.
        output: where the lock goes; `replace`: also over one that is there.
        name: slug of the new experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    stored = read_experiment(where, str(experiment))
    options = RunOptions(repeats=repeats_of(stored), budget_usd=budget_usd)
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
        on_all=on_all,
        out=name,
    )
    return run.run()
