"""What a gate is going to do, and its passes: the judge over all locked items, called afresh."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from judgecal.engine import Budget, Journal, require_prices
from judgecal.errors import InputError, JudgecalError
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    Judgements,
    RunOptions,
    gold_config,
    item_scale,
    models_of,
    plan_calls,
    plan_experiment,
    refuse_unequal,
    require_keys,
    run_trials,
    stored_rows,
    verdict_matrix,
)
from judgecal.experiment.trials import MOST_REPEATS
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges import Judge
from judgecal.records import RETRIED_ON_RESUME, Item, Judgement
from judgecal.scale import Label
from judgecal.selection.gate_rule import GateRule, LockedAndCurrent
from judgecal.selection.lock import Lock
from judgecal.stats import Calibration, metric_named
from judgecal.workspace import Workspace

REPEATS_MAX = 3
"""Passes over the items, the first one included, where not said otherwise."""

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Gate:
    """Everything that a gate needs."""

    workspace: Workspace  # where the alias, the gold set and the experiments are
    lock: Lock
    path: Path
    gold: GoldSet  # what it names; the judge is made from the lock alone
    judge: Judge
    rule: GateRule
    options: RunOptions  # how to call; the budget is for all passes
    repeats_max: int  # passes that may be made
    seed: int
    experiment: Experiment

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The labelled items with a locked verdict, in file order; refused where the gold set lacks one."""
        labelled = {item.item_id: item for item in self.gold.items if item.item_id in self.gold.labels}
        lacking = sorted(self.lock.verdicts.keys() - labelled.keys())
        if lacking or not self.lock.verdicts:
            what = f"holds verdicts on {', '.join(lacking[:3])}, which {self.gold.name} has no label of"
            raise InputError(
                f"{self.path}: the lock {what if lacking else 'holds no verdict'}: run judgecal select again"
            )
        return tuple(item for item_id, item in labelled.items() if item_id in self.lock.verdicts)

    def both_times(self, now: list[list[Label | None]]) -> LockedAndCurrent:
        """The passes beside the locked verdicts."""
        return LockedAndCurrent(
            labels=[self.gold.labels[item.item_id] for item in self.items],
            then=[self.lock.calls_of(item.item_id) for item in self.items],
            now=now,
            groups=[item.group for item in self.items],
            people=self.gold.scale,
            judge=item_scale(self.judge),
            calibrate=None if self.calibration is None else self.calibration.apply,
        )

    @property
    def calibration(self) -> Calibration | None:
        """The map through which the loss is decided; None where the metric is of verdicts as they are.

        One that gives every verdict the same label would show no loss whatever the judge says, so it is none.
        """
        metric, _ = metric_named(self.rule.metric, self.gold.scale)
        calibration = self.lock.calibration
        return None if calibration is None or calibration.constant or not metric.calibrated else calibration

    def check(self) -> None:
        """Refuse what cannot be run before anything is written."""
        metric_named(self.rule.metric, self.gold.scale)
        refuse_unequal(self.gold, self.items, "gate")
        require_prices(models_of([self.judge]), self.options.limit_usd)
        self.judge.check_items(self.items)
        if (self.experiment.folder / "summary.json").exists():
            raise InputError(
                f"{self.experiment.folder}: this gate has ended, and a gate calls afresh: leave --name away "
                "or name another one; only a gate that was interrupted goes on"
            )

    def preview(self) -> CostEstimate:
        """What the first pass would call; nothing is written."""
        self.check()
        return plan_calls([self.judge], self.items, stored_rows(self.experiment.journal), self.options)

    def require_key(self) -> None:
        """Refuse where a call is due and the model's key is not set."""
        require_keys([self.judge], self.items, stored_rows(self.experiment.journal), self.options)


def plan_gate(
    workspace: Workspace,
    lock: Lock,
    path: Path,
    *,
    margin: float | None = None,
    level: float = 0.95,
    budget_usd: float | None = None,
    budget_total_usd: float | None = None,
    repeats_max: int = REPEATS_MAX,
    seed: int = 0,
    out: str | None = None,
    trust_lock: bool = False,
) -> Gate:
    """A gate of a lock that was read from `path`; nothing is written.

    `margin` is the lock's where not given, `budget_usd` is for all passes, `budget_total_usd` for those of an
    interrupted gate too, and `out` is its slug to go on with, or a name of one's own. `trust_lock` is as
    `Lock.runnable` has it. Everything that is not as it was locked is refused at once, with every option out
    of range.
    """
    options = RunOptions(budget_usd=budget_usd, budget_total_usd=budget_total_usd, use_cache=False)
    problems = []
    if not 1 <= repeats_max <= MOST_REPEATS:
        problems.append(f"--repeats-max must be from 1 to {MOST_REPEATS:,}, found {str(repeats_max)[:12]}")

    def made(make: Callable[[], _Made]) -> _Made | None:
        """None where it cannot be, with the problems added to the others."""
        try:
            return make()
        except InputError as error:
            problems.extend(error.problems)
            return None

    made(options.check)
    rule = made(lambda: GateRule(lock.metric, lock.margin if margin is None else margin, level))
    gold = made(lambda: load_gold(lock.gold.set, workspace=workspace))
    if gold is not None:
        made(lambda: lock.require_gold(gold))
    judge = made(lambda: lock.runnable(workspace, trust_lock=trust_lock))
    if rule is None or gold is None or judge is None or problems:
        raise InputError(problems)
    # what the lock says of its judge, so that neither endpoint nor price is in it
    judge_config: dict[str, Any] = {"judge": lock.judge, "fingerprint": lock.fingerprint}
    if lock.signature is not None and lock.model is not None:
        judge_config["signature_fingerprint"] = lock.signature.fingerprint
        judge_config["model"] = {"id": lock.model.id, **lock.model.settings}
    config = {
        "command": "gate",
        "gold": gold_config(gold),
        "lock": lock.sha256,
        "judge": judge_config,
        "metric": rule.metric,
        "margin": rule.margin,
        "level": rule.level,
        "repeats_max": repeats_max,
        "seed": seed,
    }
    now = datetime.datetime.now(datetime.UTC)  # to the millisecond: two gates never share a folder
    started = f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z"
    slug = out or f"{plan_experiment(workspace, config, out=None).slug}-{started}"
    experiment = plan_experiment(workspace, config, out=slug)
    return Gate(workspace, lock, path, gold, judge, rule, options, repeats_max, seed, experiment)


_MOST_LOST = 0.05  # share of a pass's calls
_SPARE = 1.1  # replies vary in length: a pass is begun where so many times the dearest one before is left


class Passes:
    """Whole passes of a judge over items, one after the other; of the options' `repeats` nothing is read.

    `rows` are the judgements of all passes that were made, `n` counts the passes that count, and `stopped`
    says why no further pass was begun, or is not counted; None while one may be.
    """

    def __init__(
        self,
        judge: Judge,
        items: Sequence[Item],
        *,
        journal: Journal,
        options: RunOptions,
        budget: Budget,
        most: int,
    ) -> None:
        self._judge, self._items, self._journal = judge, items, journal
        self._options, self._budget, self._most = options, budget, most
        self.rows = Judgements(())
        self.n = 0
        self.stopped: str | None = None

    def another(self) -> bool:
        """Make a further pass; False where none can be had, and `stopped` says why.

        Raises JudgecalError: not one call of the first pass came through.
        """
        self.stopped = self._ended()
        if self.stopped is None:
            rows = self._run(self.n + 1)
            if any(_lost(row) for row in rows):  # an outage may have passed: once more, these calls alone
                rows = self._run(self.n + 1)
            self._keep(rows)
        return self.stopped is None

    @property
    def matrix(self) -> list[list[Label | None]]:
        """Verdicts of the passes that count, items x passes; those of the first one where none was whole."""
        return verdict_matrix(self.rows, self._items, max(1, self.n))

    @property
    def counted(self) -> Judgements:
        """The rows of the passes that count; those of the first one where none was whole."""
        return Judgements(row for row in self.rows if row.repeat < max(1, self.n))

    @property
    def usd(self) -> float | None:
        """What all calls of this gate cost; None where some model has no price."""
        costs = [row.cost_usd for row in self.rows if not _unpaid(row)]
        return None if None in costs else sum(cost or 0.0 for cost in costs)

    def _ended(self) -> str | None:
        if self.n >= self._most:
            made = f"{self.n} passes were" if self.n > 1 else "one pass was"
            return f"{made} made, as many as --repeats-max allows"
        limit = self._budget.limit_usd
        costs = [
            sum(row.cost_usd or 0.0 for row in self.rows if row.repeat == repeat) for repeat in range(self.n)
        ]
        if costs and limit is not None and self._budget.spent_usd + _SPARE * max(costs) > limit:
            return f"a further pass would not fit the budget of {limit:g} USD"
        return None

    def _run(self, passes: int) -> Judgements:
        options = dataclasses.replace(self._options, repeats=passes, use_cache=False)
        return run_trials(
            [self._judge],
            self._items,
            journal=self._journal,
            options=options,
            budget=self._budget,
            label=f"{self._judge.name}, pass {passes} of at most {self._most}",
        )

    def _keep(self, rows: Judgements) -> None:
        """Count the pass, or say why it does not count."""
        latest = [row for row in rows if row.repeat == self.n]
        self.rows = rows
        if not self.n and all(_lost(row) for row in latest):
            errors = [row.error for row in latest if row.error]
            counts = Counter(error.kind for error in errors).most_common()
            kinds = ", ".join(f"{kind} {n}" for kind, n in counts)
            first = f"the first said: {errors[0].message}"
            raise JudgecalError(f"{self._judge.name}: not one call came through: {kinds}; {first}")
        unpaid, lost = sum(map(_unpaid, rows)), sum(map(_lost, latest))
        if unpaid:
            limit = self._budget.limit_usd or 0.0
            self.stopped = f"the budget of {limit:g} USD ended with {unpaid} of {len(rows)} calls to make"
        elif lost > _MOST_LOST * len(latest):  # they would count as wrong, and that is not the judge's doing
            self.stopped = f"{lost} of {len(latest)} calls of a pass were lost on the wire"
        else:
            self.n += 1


def _lost(row: Judgement) -> bool:
    """Whether a call ended on the wire."""
    return row.error is not None and row.error.kind in RETRIED_ON_RESUME and not _unpaid(row)


def _unpaid(row: Judgement) -> bool:
    """Whether a call was not made for want of money."""
    return row.error is not None and row.error.kind == "budget"
