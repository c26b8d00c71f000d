"""What `optimize` would call, before any call."""

from __future__ import annotations

import dataclasses

from judgecal.engine import Budget, Journal
from judgecal.experiment import Plan, plan_calls
from judgecal.judges import Judge
from judgecal.optimize.candidates import Training, candidates
from judgecal.optimize.run import OptimizeRun

__all__ = ["preview_optimize"]


def preview_optimize(run: OptimizeRun) -> Plan:
    """Calls, tokens and cost at most; nothing is written.

    The candidates of `labeled` need no calls, so theirs is the very prompt that would be sent. Those of another
    optimiser are not there yet: the longest of `labeled` stand in, and its training calls are counted as one a
    train item and draw. The confirmation is counted with the longest prompt.
    """
    run.check()
    stored = run.experiment.journal if run.experiment.journal.exists() else None
    judges = _stand_ins(run)
    with Journal(stored) as journal:
        plans = [plan_calls([run.judge, *judges], run.items("dev"), journal, run.options)]
        if run.optimizer != "labeled":
            once = dataclasses.replace(run.options, repeats=1)
            plans += [plan_calls([judge], run.items("train"), journal, once) for judge in judges]
        if run.final:
            longest = max(judges, key=lambda judge: len(str(judge.demos)))
            rest = [item for split in ("train", "test") for item in run.items(split)]
            plans.append(plan_calls([run.judge, longest], rest, journal, run.options))
    return _sum(plans)


def _stand_ins(run: OptimizeRun) -> list[Judge]:
    training = Training(
        judge=run.judge,
        items=run.items("train"),
        labels=run.gold.labels,
        people=run.gold.scale,
        seed=run.seed,
        budget=Budget(None),
    )
    made = list(candidates("labeled", training))
    if run.optimizer != "labeled":
        made = sorted(made, key=lambda candidate: -candidate.n_demos)[:3]
    return [run.judge_of(candidate) for candidate in made]


def _sum(plans: list[Plan]) -> Plan:
    costs = [plan.usd_at_most for plan in plans]
    known = [cost for cost in costs if cost is not None]
    return Plan(
        calls=sum(plan.calls for plan in plans),
        stored=sum(plan.stored for plan in plans),
        prompt_tokens=sum(plan.prompt_tokens for plan in plans),
        usd_at_most=sum(known) if len(known) == len(costs) else None,
    )
