"""What `optimize` would call, before any call."""

from __future__ import annotations

import dataclasses

from judgecal.engine import Budget
from judgecal.experiment import Plan, plan_calls, stored_rows
from judgecal.judges import Judge
from judgecal.optimize.candidates import candidates
from judgecal.optimize.run import OptimizeRun

__all__ = ["preview_optimize"]


def preview_optimize(run: OptimizeRun) -> Plan:
    """Calls, tokens and cost at most; nothing is written.

    The candidates of `labeled` need no calls, so theirs is the very prompt that would be sent. Those of another
    optimiser are not there yet: the longest of `labeled` stand in, and its training calls are counted as one a
    train item and draw. The confirmation is counted with the longest prompt.
    """
    run.check()
    stored = stored_rows(run.experiment.journal)
    judges = _stand_ins(run)
    plans = [plan_calls([run.judge, *judges], run.items("dev"), stored, run.options)]
    if run.optimizer != "labeled":
        once = dataclasses.replace(run.options, repeats=1)
        plans += [plan_calls([judge], run.items("train"), stored, once) for judge in judges]
    if run.final:
        longest = max(judges, key=lambda judge: len(str(judge.demos)))
        rest = [item for split in ("train", "test") for item in run.items(split)]
        plans.append(plan_calls([run.judge, longest], rest, stored, run.options))
    return _sum(plans)


def _stand_ins(run: OptimizeRun) -> list[Judge]:
    made = list(candidates("labeled", run.training(Budget(None))))
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
