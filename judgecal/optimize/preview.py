"""What `optimize` would call, before any call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judgecal.engine import Budget, ReplySchema, worst_cost_usd
from judgecal.experiment import CostEstimate, plan_calls, stored_rows, together
from judgecal.judges import PromptJudge
from judgecal.models import ModelSpec
from judgecal.optimize.optimizers import OPTIMIZERS, candidates
from judgecal.optimize.run import OptimizeRun
from judgecal.optimize.training import Bounds, Training

_CHARS_PER_TOKEN = 4
_INSTRUCTION_TOKENS = 4096  # of a model that states no longest reply
_EXAMPLES_SHOWN = 10  # judged answers in one prompt of the model that writes, at most


@dataclass(frozen=True, slots=True)
class Preview:
    """Calls, tokens and cost of a run, at most."""

    plan: CostEstimate
    bounds: Bounds  # the optimiser's own part; what its record holds already is not taken off
    optimizer: str
    reflection: str | None  # alias of the model that writes instructions, if one does

    @property
    def own_calls(self) -> str:
        """How many of the calls are the optimiser's own, in a sentence; empty where it makes none."""
        if not self.bounds.task:
            return ""
        parts = [f"at most {self.bounds.task} of the judge's model"]
        if self.reflection:
            parts.append(
                f"at most {self.bounds.reflection} of {self.reflection}, which writes the instructions"
            )
        own = " and ".join(parts)
        return (
            f"Of these {self.optimizer} itself makes {own}; the settings are bounds, and it may need fewer."
        )


def preview_optimize(run: OptimizeRun) -> Preview:
    """Calls, tokens and cost at most; nothing is written.

    The candidates of `labeled` need no calls, so theirs is the very prompt that would be sent. Those of
    another optimiser are not there yet: those of `labeled` with as many demos stand in, with room for as many
    instructions as can be written. Its own calls are counted by its settings, in the longest prompt, and so
    is the confirmation.
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
    scored = together(plans)
    plans.append(_own_calls(training, longest, bounds))
    plans.append(_room_for_instructions(training, scored.calls + bounds.task, bounds))
    return Preview(together(plans), bounds, run.optimizer, run.reflection_alias)


def _stand_ins(run: OptimizeRun, training: Training, bounds: Bounds) -> list[PromptJudge]:
    made = list(candidates("labeled", training))
    if run.optimizer != "labeled":
        # Those with enough demos first, the shortest of them before the others; then the longest there are.
        made.sort(key=lambda one: (one.n_demos < bounds.demos, abs(one.n_demos - bounds.demos)))
        made = made[: bounds.candidates]
    return [run.judge_of(candidate) for candidate in made]


def _own_calls(training: Training, longest: PromptJudge, bounds: Bounds) -> CostEstimate:
    """The optimiser's calls of both models, at the size of its largest prompt."""
    messages = max((longest.messages(item) for item in training.items), key=_size)
    shown = [{"role": "user", "content": messages[-1]["content"]} for _ in range(_EXAMPLES_SHOWN)]
    task = _repeated(training.judge.model, bounds.task, messages, longest.schema)
    return together([task, _repeated(training.reflection_model, bounds.reflection, [*messages, *shown])])


def _repeated(
    spec: ModelSpec, calls: int, messages: Sequence[Mapping[str, str]], schema: ReplySchema | None = None
) -> CostEstimate:
    usd = calls * worst_cost_usd(spec, messages, schema) if spec.priced or not calls else None
    return CostEstimate(calls, 0, calls * _size(messages) // _CHARS_PER_TOKEN, usd, None if calls else 0.0)


def _room_for_instructions(training: Training, calls: int, bounds: Bounds) -> CostEstimate:
    """What the instructions that are not written yet may add to every prompt of the judge."""
    tokens = bounds.written * (training.reflection_model.max_tokens or _INSTRUCTION_TOKENS)
    extra = training.judge.model.cost_usd(tokens, 0)
    # The bound is in its cost: nearly all instructions are far shorter, so the estimate of tokens leaves it
    # out.
    return CostEstimate(0, 0, 0, None if extra is None else calls * extra, 0.0)


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)
