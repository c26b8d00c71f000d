"""What `optimize` would call, before any call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judgecal.engine import Budget, ReplySchema, worst_cost_usd
from judgecal.experiment import CostEstimate, plan_calls, stored_rows, together
from judgecal.experiment.trials import likely_usd
from judgecal.models import ModelSpec
from judgecal.optimize.optimizers import OPTIMIZERS, Bounds, candidates
from judgecal.optimize.run import OptimizeRun

_CHARS_PER_TOKEN = 4
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
        bound = "these are bounds, and it may need fewer"
        return f"Of these {self.optimizer} itself makes {' and '.join(parts)}; {bound}."


def preview_optimize(run: OptimizeRun) -> Preview:
    """Calls, tokens and cost at most; nothing is written.

    The candidates of `labeled` need no calls, so theirs is the very prompt that would be sent. Those of
    another optimiser are not there yet: those of `labeled` with as many demos stand in, with room for as many
    instructions as can be written. Its own calls are counted by its settings, in the longest prompt, and so
    is the confirmation.
    """
    run.check()
    stored, training = stored_rows(run.experiment.journal), run.training(Budget(None))
    bounds = OPTIMIZERS[run.optimizer].bounds(training)
    judges = [run.judge_of(candidate) for candidate in candidates("labeled", training)]
    if run.optimizer != "labeled":
        # Those with enough demos first, the shortest of them before the others; then the longest there are.
        judges.sort(key=lambda judge: (len(judge.demos) < bounds.demos, abs(len(judge.demos) - bounds.demos)))
        judges = judges[: bounds.candidates]
    longest = max(judges, key=lambda judge: len(str(judge.demos)))
    plans = [
        plan_calls([run.judge, *judges], [*run.items("dev"), *run.probed["dev"].items], stored, run.options)
    ]
    if run.final:
        rest = [item for split in ("train", "test") for item in run.items(split)] + run.probed["test"].items
        plans.append(plan_calls([run.judge, longest], rest, stored, run.options))
    n_judged = together(plans).calls + bounds.task
    # the optimiser's calls of both models, at the size of its largest prompt
    messages = max((longest.messages(item) for item in training.items), key=_size)
    asked = [{"role": "user", "content": messages[-1]["content"]} for _ in range(_EXAMPLES_SHOWN)]
    writer, model = training.reflection_model, training.model
    plans.append(_repeated(model, bounds.task, messages, longest.schema))
    plans.append(_repeated(writer, bounds.reflection, [*messages, *asked]))
    # What the instructions that are not written yet may add to every prompt of the judge. The bound is in its
    # cost: nearly all instructions are far shorter, so the estimate of tokens leaves it out.
    extra = model.cost_usd(bounds.written * (writer.longest_reply or 0), 0)
    plans.append(CostEstimate(0, 0, 0, None if extra is None else n_judged * extra, 0.0))
    return Preview(together(plans), bounds, run.optimizer, run.reflection_alias)


def _repeated(
    spec: ModelSpec, calls: int, messages: Sequence[Mapping[str, str]], schema: ReplySchema | None = None
) -> CostEstimate:
    if not calls:
        return CostEstimate(0, 0, 0, 0.0, 0.0)
    tokens = calls * _size(messages) // _CHARS_PER_TOKEN
    usd = calls * worst_cost_usd(spec, messages, schema) if spec.priced and spec.bounded else None
    likely, unbounded = likely_usd(spec, calls, tokens), () if spec.bounded else (spec.alias,)
    return CostEstimate(calls, 0, tokens, usd, usd_likely=likely, unbounded=unbounded)


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)
