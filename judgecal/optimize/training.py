"""What an optimiser is, what it may see of the train split, and what it makes."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from judgecal.engine import Budget
from judgecal.judges import PromptJudge, item_inputs
from judgecal.models import ModelSpec
from judgecal.optimize.metric import ITEM_ID, AgreementMetric, label_as_verdict, stratum_of
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.signatures import LoadedSignature


def to_example(signature: LoadedSignature, item: Item, label: Label, people: Scale) -> dspy.Example:
    """An example whose verdict is the people's label; it has no reasoning, for people gave none."""
    inputs = item_inputs(signature.inputs, item)
    values = {
        **inputs,
        str(signature.verdict): label_as_verdict(signature, label, people),
        ITEM_ID: item.item_id,
    }
    return dspy.Example(**values).with_inputs(*inputs)


def balanced_order(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, seed: int
) -> list[Item]:
    """Items in a drawn order whose every beginning is balanced over the strata and spread over the questions.

    Strata (classes on a nominal scale) take turns; within one, a question gives its second item only when
    every other question has given its first. The first k make a demo set of size k.
    """
    queues = _queues(items, labels, scale, seed=seed)
    longest = max(map(len, queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def balanced_sample(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, size: int, seed: int
) -> list[Item]:
    """About `size` items in which every stratum that there is stands equally often, a rare one by repetition.

    The plain mean of agreement over them is `macro_agreement` (of a sample, where `size` is smaller than a
    stratum times the strata). A repeated item is the same request to a model, so it is paid once.
    """
    queues = _queues(items, labels, scale, seed=seed)
    turns = max(1, min(size, len(items)) // len(queues))
    return [queue[turn % len(queue)] for turn in range(turns) for queue in queues]


def split_by_question(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, seed: int
) -> tuple[list[Item], list[Item]]:
    """Two halves without a common question, the strata spread over both; one question alone is in both."""
    by_group: dict[str, list[Item]] = {}
    for item in balanced_order(items, labels, scale, seed=seed):
        by_group.setdefault(item.group, []).append(item)
    if len(by_group) < 2:
        return list(items), list(items)
    halves: tuple[list[Item], list[Item]] = ([], [])
    counts: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())
    for members in by_group.values():
        kinds = [stratum_of(labels[item.item_id], scale) for item in members]
        # To the half that has less of what this question brings; of equals the smaller, then the first.
        side = min((0, 1), key=lambda one: (sum(counts[one][k] for k in kinds), len(halves[one]), one))
        halves[side].extend(members)
        counts[side].update(kinds)
    return halves


def _queues(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, seed: int
) -> list[list[Item]]:
    """The items of each class in a drawn order; no question comes again before all others came."""
    rng = random.Random(seed)
    drawn = list(items)
    rng.shuffle(drawn)
    seen: Counter[tuple[Any, str]] = Counter()
    by_class: dict[Any, list[tuple[int, Item]]] = {}
    for item in drawn:
        kind = stratum_of(labels[item.item_id], scale)
        by_class.setdefault(kind, []).append((seen[kind, item.group], item))
        seen[kind, item.group] += 1
    classes = sorted(by_class, key=str)
    rng.shuffle(classes)
    return [[item for _, item in sorted(by_class[kind], key=lambda pair: pair[0])] for kind in classes]


CLIMBED_ON = 60
"""Examples that a program is climbed on at most; with more, calls grow faster than what is learnt."""
# A judge's alias allows for a verdict; instructions are longer, and half of them would be worse than none.
_INSTRUCTION_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled program under a name such as `labeled-16-draw2`, and the groups whose labels it carries.

    Attributes:
        trained_on: groups of its demos; all of train where instructions were written with its labels in
            sight.
        rated, unusable: replies that the optimiser asked for and held against labels while it made this one,
            and those of them without a verdict; where it made several at once, they stand with the first.
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
    """What an optimiser may see: the train split and its labels, nothing of dev or test; how it is run."""

    judge: PromptJudge
    items: Sequence[Item]
    labels: Mapping[str, Label]  # by item id, of these items
    people: Scale
    seed: int
    budget: Budget
    reflection: ModelSpec | None = None  # who writes instructions; the judge's own model where None
    log: Path | None = None  # where its calls are kept and found
    notes: Mapping[str, Sequence[Rating]] = field(default_factory=dict)  # by item id, the ratings with a note
    use_cache: bool = False  # take stored replies of other experiments
    quiet: bool = False

    def metric(self, *, weighted: bool = True) -> AgreementMetric:
        """A fresh metric with counts of its own."""
        return AgreementMetric(
            self.judge.signature, self.people, self.labels, weighted=weighted, notes=self.notes
        )

    @property
    def reflection_model(self) -> ModelSpec:
        """The model that writes instructions."""
        return reflection_spec(self.reflection or self.judge.model)

    def student(self) -> dspy.Predict:
        """The judge's program, to be changed."""
        return self.judge.program.deepcopy()

    def examples(self, draw: int) -> list[dspy.Example]:
        """The train split as examples, in a balanced order of its own for each draw."""
        seed = self.seed * 1000 + draw
        return self._as_examples(balanced_order(self.items, self.labels, self.people, seed=seed))

    def balanced(self, items: Sequence[Item]) -> list[dspy.Example]:
        """Train examples, `CLIMBED_ON` at most, in which every stratum stands equally often."""
        sample = balanced_sample(items, self.labels, self.people, size=CLIMBED_ON, seed=self.seed)
        return self._as_examples(sample)

    def halves(self) -> tuple[list[dspy.Example], list[dspy.Example]]:
        """Train in two halves without a common question, balanced: to learn from, and to climb on."""
        learn, climb = split_by_question(self.items, self.labels, self.people, seed=self.seed)
        return self.balanced(learn), self.balanced(climb)

    def candidate(self, name: str, program: dspy.Predict, *, saw_all: bool = False) -> Candidate:
        """A candidate of what DSPy made, which is changed: its demos hold the signature's own fields alone.

        `saw_all`: every label of train had a part in it, not those of its demos alone.
        """
        signature = self.judge.signature
        fields = [*signature.cls.input_fields, *signature.cls.output_fields]
        # A demo is an answer to learn from: one whose reply was not usable is none.
        demos = [demo for demo in program.demos if demo.get(str(signature.verdict)) is not None]
        program.demos = [dspy.Example(**{f: demo[f] for f in fields if f in demo}) for demo in demos]
        shown = {tuple(demo[field] for field in signature.inputs) for demo in program.demos}
        trained_on = frozenset(
            item.group
            for item in self.items
            if saw_all or tuple(item_inputs(signature.inputs, item).values()) in shown
        )
        return Candidate(name, program, trained_on)

    def _as_examples(self, items: Iterable[Item]) -> list[dspy.Example]:
        made = {}
        for item in items:
            if item.item_id not in made:
                label = self.labels[item.item_id]
                made[item.item_id] = to_example(self.judge.signature, item, label, self.people)
        return [made[item.item_id] for item in items]


def reflection_spec(spec: ModelSpec) -> ModelSpec:
    """A model with room for instructions in its reply, as far as the model itself allows."""
    if spec.max_tokens is None:
        return spec
    room = max(spec.max_tokens, min(_INSTRUCTION_TOKENS, spec.reply_limit or _INSTRUCTION_TOKENS))
    return dataclasses.replace(spec, max_tokens=room)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an optimiser can take at most, by its own settings."""

    candidates: int  # programs that it hands over to be scored on dev
    task: int = 0  # calls of the judge's model while it works
    reflection: int = 0  # calls of the model that writes instructions
    written: int = 0  # replies of that model which one judge's instructions can hold
    demos: int = 0  # of one of its programs

    @property
    def calls(self) -> int:
        """Calls that it makes itself, of both models."""
        return self.task + self.reflection


@dataclass(frozen=True, slots=True)
class Optimizer:
    """How one optimiser makes its candidates, one by one, and what it takes."""

    make: Callable[[Training], Iterator[Candidate]]
    settings: Mapping[str, Any]  # what it will try, for an experiment's configuration
    bounds: Callable[[Training], Bounds]
    reflects: bool = False  # whether it uses a model that writes instructions
