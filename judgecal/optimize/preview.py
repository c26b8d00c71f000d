"""What `optimize` would call, before any call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judgecal.engine import Budget, worst_cost_usd
from judgecal.experiment import Plan, plan_calls, stored_rows
from judgecal.judges import Judge
from judgecal.models import ModelSpec
from judgecal.optimize.candidates import OPTIMIZERS, candidates
from judgecal.optimize.optimizer import Bounds
from judgecal.optimize.run import OptimizeRun
from judgecal.optimize.training import Training

__all__ = ["Preview", "preview_optimize"]

_CHARS_PER_TOKEN = 4
_INSTRUCTION_TOKENS = 4096  # of a model that states no longest reply
_EXAMPLES_SHOWN = 10  # judged answers in one prompt of the model that writes, at most


@dataclass(frozen=True, slots=True)
class Preview:
    """Calls, tokens and cost of a run.

    Attributes:
        plan: of the whole run, at most.
        bounds: the optimiser's own part of the calls, at most; what its record holds already is not taken off.
        reflection: alias of the model that writes instructions, if one does.
    """

    plan: Plan
    bounds: Bounds
    reflection: str | None


def preview_optimize(run: OptimizeRun) -> Preview:
    """Calls, tokens and cost at most; nothing is written.

    The candidates of `labeled` need no calls, so theirs is the very prompt that would be sent. Those of another
    optimiser are not there yet: those of `labeled` with as many demos stand in, with room for as many instructions as
    can be written. Its own calls are counted by its settings, in the longest prompt, and so is the confirmation.
    """
    run.check()
    stored = stored_rows(run.experiment.journal)
    training = run.training(Budget(None))
    bounds = OPTIMIZERS[run.optimizer].bounds(training)
    judges = _stand_ins(run, training, bounds)
    longest = max(judges, key=lambda judge: len(str(judge.demos)))
    plans = [plan_calls([run.judge, *judges], run.items("dev"), stored, run.options)]
    if run.final:
        rest = [item for split in ("train", "test") for item in run.items(split)]
        plans.append(plan_calls([run.judge, longest], rest, stored, run.options))
    scored = _sum(plans)
    plans.append(_own_calls(training, longest, bounds))
    plans.append(_room_for_instructions(training, scored.calls + bounds.task, bounds))
    return Preview(_sum(plans), bounds, run.reflection_alias)


def _stand_ins(run: OptimizeRun, training: Training, bounds: Bounds) -> list[Judge]:
    made = list(candidates("labeled", training))
    if run.optimizer != "labeled":
        # Those with enough demos first, the shortest of them before the others; then the longest there are.
        made.sort(key=lambda one: (one.n_demos < bounds.demos, abs(one.n_demos - bounds.demos)))
        made = made[: bounds.candidates]
    return [run.judge_of(candidate) for candidate in made]


def _own_calls(training: Training, longest: Judge, bounds: Bounds) -> Plan:
    """The optimiser's calls of both models, at the size of its largest prompt."""
    messages = max((longest.messages(item) for item in training.items), key=_size)
    shown = [{"role": "user", "content": messages[-1]["content"]} for _ in range(_EXAMPLES_SHOWN)]
    task = _repeated(training.judge.model, bounds.task, messages)
    return _sum([task, _repeated(training.reflection_model, bounds.reflection, [*messages, *shown])])


def _repeated(spec: ModelSpec, calls: int, messages: Sequence[Mapping[str, str]]) -> Plan:
    usd = calls * worst_cost_usd(spec, messages) if spec.priced or not calls else None
    return Plan(calls, 0, calls * _size(messages) // _CHARS_PER_TOKEN, usd, None if calls else 0.0)


def _room_for_instructions(training: Training, calls: int, bounds: Bounds) -> Plan:
    """What the instructions that are not written yet may add to every prompt of the judge."""
    tokens = bounds.written * (training.reflection_model.max_tokens or _INSTRUCTION_TOKENS)
    extra = training.judge.model.cost_usd(tokens, 0)
    # The bound is in its cost: nearly all instructions are far shorter, so the estimate of tokens leaves it out.
    return Plan(0, 0, 0, None if extra is None else calls * extra, 0.0)


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)


def _sum(plans: list[Plan]) -> Plan:
    costs = [plan.usd_at_most for plan in plans]
    known = [cost for cost in costs if cost is not None]
    seconds = [plan.seconds for plan in plans]
    told = [took for took in seconds if took is not None]
    return Plan(
        calls=sum(plan.calls for plan in plans),
        stored=sum(plan.stored for plan in plans),
        prompt_tokens=sum(plan.prompt_tokens for plan in plans),
        usd_at_most=sum(known) if len(known) == len(costs) else None,
        seconds=sum(told) if len(told) == len(seconds) else None,
    )
