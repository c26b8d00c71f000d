"""Candidates: compiled programs to be held against each other on dev.

DSPy's optimisers make them from train alone; which one is taken is decided by our own scoring of dev, so that a
failed call is a row with an error and not a silent zero.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from judgecal.engine import Budget
from judgecal.engine.transport import program_lm
from judgecal.judges import Judge, JudgeAdapter, item_inputs
from judgecal.judges.verdict import read_reply
from judgecal.models import ModelSpec
from judgecal.optimize.examples import balanced_order, to_example
from judgecal.optimize.metric import AgreementMetric
from judgecal.records import Item
from judgecal.scale import Label, Scale
from judgecal.signatures import LoadedSignature

__all__ = ["OPTIMIZERS", "Candidate", "Training", "auto_optimizer", "candidates", "optimizer_settings"]

_LABELED_SIZES = (4, 8, 16, 32)
_DRAWS = 3
_BOOTSTRAPPED = 4
_BOOTSTRAP_LABELED = 12
# A reply is taken as an example of good judging where it lies within a tenth of the scale from the people.
_GOOD_ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled program and the groups whose labels it carries.

    Attributes:
        name: what tells it from the others, such as `labeled-16-draw2`.
        program: the `dspy.Predict`.
        trained_on: groups of its demos.
        rated: replies that the optimiser asked for and held against labels while it made this one.
        unusable: those of them without a verdict.
    """

    name: str
    program: dspy.Predict
    trained_on: frozenset[str]
    rated: int = 0
    unusable: int = 0

    @property
    def n_demos(self) -> int:
        """Demos in its prompt."""
        return len(self.program.demos)


@dataclass(frozen=True, slots=True)
class Training:
    """What an optimiser may see: the train split and its labels, nothing of dev or test.

    Attributes:
        judge: the judge before.
        items: train items.
        labels: item id -> gold label, of these items.
        people: the people's scale.
        seed: of every draw.
        budget: money that its calls may spend.
    """

    judge: Judge
    items: Sequence[Item]
    labels: Mapping[str, Label]
    people: Scale
    seed: int
    budget: Budget

    @property
    def metric(self) -> AgreementMetric:
        """A fresh metric with counts of its own."""
        return AgreementMetric(self.judge.signature, self.people, self.labels)

    def examples(self, draw: int) -> list[dspy.Example]:
        """The train split as examples, in a balanced order of its own for each draw."""
        order = balanced_order(self.items, self.labels, self.people, seed=self.seed * 1000 + draw)
        return [
            to_example(self.judge.signature, item, self.labels[item.item_id], self.people) for item in order
        ]


def candidates(optimizer: str, training: Training) -> Iterator[Candidate]:
    """The candidates of an optimiser, by its name in `OPTIMIZERS`, made one by one."""
    return OPTIMIZERS[optimizer](training)


def optimizer_settings(optimizer: str) -> dict[str, Any]:
    """What an optimiser will try, for an experiment's configuration: a change here is another experiment."""
    if optimizer == "labeled":
        return {"sizes": list(_LABELED_SIZES), "draws": _DRAWS}
    bounds = {"bootstrapped": _BOOTSTRAPPED, "labeled": _BOOTSTRAP_LABELED, "threshold": _GOOD_ENOUGH}
    return {**bounds, "draws": _DRAWS}


def auto_optimizer(model: ModelSpec) -> str:
    """What `auto` stands for: `labeled`, which makes no training calls and cannot fail on a bad reply."""
    return "labeled"


def _labeled(training: Training) -> Iterator[Candidate]:
    """Demos that carry people's labels: how many, and which, is for dev to say."""
    sizes = [size for size in _LABELED_SIZES if size < len(training.items)] or [len(training.items)]
    for draw in range(_DRAWS):
        ordered = training.examples(draw)
        for size in sizes:
            compiled = dspy.LabeledFewShot(k=size).compile(_student(training), trainset=ordered, sample=False)
            yield _candidate(training, f"labeled-{size}-draw{draw + 1}", compiled)


def _fewshot(training: Training) -> Iterator[Candidate]:
    """Demos with the judge's own reasoning, where its verdict met the people's label, filled up with labels."""
    for draw in range(_DRAWS):
        metric = training.metric
        optimizer = dspy.BootstrapFewShot(
            metric=metric,
            metric_threshold=_GOOD_ENOUGH,
            max_bootstrapped_demos=_BOOTSTRAPPED,
            max_labeled_demos=min(_BOOTSTRAP_LABELED, len(training.items)),
            max_errors=len(training.items) + 1,
        )
        lm = program_lm(training.judge.model, training.budget)
        adapter = _OptimiserAdapter(training.judge.signature)
        # DSPy prints to stdout while it works, and stdout is the command's result.
        with (
            contextlib.redirect_stdout(sys.stderr),
            dspy.context(lm=lm, adapter=adapter, disable_history=True),
        ):
            compiled = optimizer.compile(_student(training), trainset=training.examples(draw))
        made = _candidate(training, f"fewshot-draw{draw + 1}", compiled)
        yield dataclasses.replace(made, rated=metric.calls, unusable=metric.unusable)


OPTIMIZERS: dict[str, Callable[[Training], Iterator[Candidate]]] = {"labeled": _labeled, "fewshot": _fewshot}
"""Optimisers by name; `auto` picks one of them."""


class _OptimiserAdapter(JudgeAdapter):
    """Gives an unusable reply to the metric as a missing verdict: it counts as the worst, and is counted."""

    def __init__(self, signature: LoadedSignature) -> None:
        super().__init__()
        self._judged = signature

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        if set(signature.output_fields) != set(self._judged.cls.output_fields):
            fields: dict[str, Any] = super().parse(signature, completion)  # an optimiser's own question
            return fields
        reading = read_reply(self._judged, completion)
        found: dict[str, Any] = dict.fromkeys(signature.output_fields)
        found[str(self._judged.verdict)] = _typed(self._judged, reading.verdict)
        if self._judged.reasoning:
            found[self._judged.reasoning] = reading.reasoning
        return found


def _typed(signature: LoadedSignature, verdict: Label | None) -> Any:
    """A verdict in the field's own type, so that a demo made of it looks like any other."""
    if isinstance(verdict, str) or verdict is None:
        return verdict
    if signature.words:
        return signature.words[0] if verdict else signature.words[1]
    annotation = signature.cls.output_fields[signature.verdict].annotation
    if annotation is bool:
        return bool(verdict)
    return verdict if annotation is float else round(verdict)


def _student(training: Training) -> dspy.Predict:
    return training.judge.program.deepcopy()


def _candidate(training: Training, name: str, program: dspy.Predict) -> Candidate:
    """Find out which questions the demos came from, and keep only the signature's own fields in them."""
    signature = training.judge.signature
    groups: dict[tuple[str, ...], set[str]] = {}
    for item in training.items:
        groups.setdefault(tuple(item_inputs(signature, item).values()), set()).add(item.group)
    trained_on: set[str] = set()
    kept = []
    for demo in program.demos:
        trained_on |= groups[tuple(demo[field] for field in signature.inputs)]
        fields = [*signature.cls.input_fields, *signature.cls.output_fields]
        kept.append(dspy.Example(**{field: demo[field] for field in fields if field in demo}))
    program.demos = kept
    return Candidate(name, program, frozenset(trained_on))
