"""What an optimiser may see of the train split, what it climbs there, and what it makes.

It climbs agreement with the people, 0 to 1, over examples in which every stratum stands equally often, so
that no weight of a stratum is taken for the quality of a judge.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import dspy

from judgecal.engine.budget import Budget
from judgecal.errors import InputError, visible_line
from judgecal.experiment.score import asked_items
from judgecal.goldset import GoldSet
from judgecal.judges.chat import neutralised, typed_verdict
from judgecal.judges.module import only_predictor
from judgecal.judges.prompt import PromptJudge
from judgecal.judges.protocol import item_inputs, lacking_inputs
from judgecal.judges.reply import read_verdict
from judgecal.models import ModelSpec
from judgecal.records import Item
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.signatures import ITEM_INPUTS, LoadedSignature, load_signature, loaded_class, signature_on

ITEM_ID = "dspy_judgecal_item_id"
"""Key under which an example carries its item's id.

It is no field of the signature, and DSPy hides keys with this prefix, so no prompt shows it.
"""
SUCCESS = 0.9
"""Agreement from which a reply is kept as an example of good judging: where DSPy hands over a trace."""
CLIMBED_ON = 60
"""Examples that a program is climbed on at most; with more, calls grow faster than what is learnt."""
# A judge's alias allows for a verdict; instructions are longer, and half of them would be worse than none.
_INSTRUCTION_TOKENS = 4096
_NOTES_QUOTED = 3  # of one item
_NOTE_CHARS = 300


class AgreementMetric:
    """A DSPy metric over the labels (by item id) of the training items: agreement, 0 to 1.

    Called as DSPy calls metrics, from several threads. With `pred_name` (as GEPA asks again for the feedback
    on a prediction that it has scored) it returns score and feedback in words.

    Args:
        words: by item id, what the feedback adds: what is to be seen of an answer, what raters noted.
    """

    def __init__(
        self,
        signature: LoadedSignature,
        people: Scale,
        labels: Mapping[str, Label],
        *,
        words: Mapping[str, str] | None = None,
    ) -> None:
        self._signature, self._people = signature, people
        self._labels, self._words = dict(labels), words or {}
        self._common = common_scale(people, signature.judge_scale())

    def __call__(
        self,
        example: dspy.Example,
        prediction: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> float | dspy.Prediction:
        item_id = example.get(ITEM_ID)
        if item_id not in self._labels:
            raise InputError("make the examples of a metric by judgecal.examples, of the same gold set")
        label, value = self._labels[item_id], getattr(prediction, str(self._signature.verdict), None)
        verdict = None if value is None else read_verdict(self._signature, value)[0]
        agreement = self.agreement(label, verdict)
        if pred_name is not None:
            words = self.feedback(label, verdict) + self._words.get(item_id, "")
            return dspy.Prediction(score=agreement, feedback=words)
        return agreement if trace is None else agreement >= SUCCESS

    def agreement(self, label: Label, verdict: Label | None) -> float:
        """Return the agreement of a label and a verdict (or None), 0..1: 1 - |verdict - label| / range.

        Without a verdict: that of the verdict farthest from the label.
        """
        if isinstance(label, str) or isinstance(verdict, str):
            return float(label == verdict)
        common, target = self._common, onto(self._common, self._people, label)
        given = common.farthest(target)
        if verdict is not None:
            given = onto(common, self._signature.judge_scale(), verdict)
        return 1.0 - abs(given - target) / common.span

    def feedback(self, label: Label, verdict: Label | None) -> str:
        """Return a text for a label and a verdict: what it should get, and where the verdict lies off it."""
        scale = self._signature.judge_scale()
        if isinstance(label, str) or isinstance(verdict, str) or scale.kind == "binary":
            wanted, given = label_as_verdict(self._signature, label, self._people), verdict
            if verdict is None:
                return f"It should get {wanted}; the reply held no usable verdict."
            if not isinstance(verdict, str):
                yes, no = self._signature.words or (True, False)
                given = yes if verdict else no
            agrees = "agrees" if given == wanted else "does not"
            return f"It should get {wanted}; the verdict {given} {agrees}."
        target = onto(scale, self._people, label)
        wanted = f"It should get {target:g} on the scale from {scale.low:g} to {scale.high:g}"
        if verdict is None:
            return f"{wanted}; the reply held no usable verdict: it must give one number on that scale."
        off = verdict - target
        if abs(off) < scale.span / 100.0:
            return f"{wanted}; the verdict {verdict:g} agrees."
        return f"{wanted}; the verdict {verdict:g} is {abs(off):g} too {'high' if off > 0 else 'low'}."


def notes_in_words(gold: GoldSet, signature: LoadedSignature) -> dict[str, str]:
    """From a GoldSet and a LoadedSignature, return item id -> its raters' notes, as quotes in a text.

    A note is a text of people's, and goes into a prompt: it can forge no field there and acts on no terminal.
    """
    quotes: dict[str, list[str]] = {}
    for rating in gold.ratings:
        remark = ": ".join(text for text in (rating.reason, rating.note) if text and text.strip())
        if not remark or rating.item_id not in gold.labels:
            continue
        text, who = visible_line(" ".join(remark.split())), "A rater"
        text = text[: _NOTE_CHARS - 4] + " ..." if len(text) > _NOTE_CHARS else text
        if rating.label not in (None, gold.labels[rating.item_id]):
            who += f" who said {label_as_verdict(signature, rating.label, gold.scale)}"
        quotes.setdefault(rating.item_id, []).append(f' {who} noted: "{neutralised({"note": text})["note"]}"')
    return {item_id: "".join(notes[:_NOTES_QUOTED]) for item_id, notes in quotes.items()}


def stratum_of(label: Label, scale: Scale) -> Any:
    """Return what a label is of on a scale: a class of a nominal one, a third of any other."""
    return label if isinstance(label, str) else scale.stratum(label)


def label_as_verdict(signature: LoadedSignature, label: Label, people: Scale) -> Any:
    """From a LoadedSignature, a label and people's Scale, return the label as a verdict field's value.

    A label that the verdict's type cannot hold (67.5 for an `int`) goes to the nearest that it can.
    """
    scale = signature.judge_scale()
    common_scale(people, scale)
    if isinstance(label, str):
        return label
    value = onto(scale, people, label)
    if scale.kind == "binary":
        middle = people.kind == "binary" or people.pass_at is None
        number, mark = (value, 0.5) if middle else (label, people.pass_at or 0.0)
        value = float(number >= mark)
    return typed_verdict(signature, value)


def to_example(signature: LoadedSignature, item: Item, label: Label, people: Scale) -> dspy.Example:
    """From a LoadedSignature, an Item, its label and people's Scale, make a `dspy.Example`."""
    inputs = item_inputs(signature.inputs, item)
    verdict = {str(signature.verdict): label_as_verdict(signature, label, people)}
    return dspy.Example(**inputs, **verdict, **{ITEM_ID: item.item_id}).with_inputs(*inputs)


def balanced(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, seed: int, size: int | None = None
) -> list[Item]:
    """Return Items as a list in balanced order, by labels (item id -> Label), a Scale and a seed.

    So is every beginning, and it is spread over the questions. Strata (classes on a nominal scale) take
    turns; within one, a question gives its second item only when every other has given its first. Without a
    size each item comes once. With it, about so many come in which every stratum stands equally often, a rare
    one by repetition: the plain mean of agreement over them is `macro_agreement`. A repeated item is the same
    request to a model, so it is paid once.
    """
    rng, seen = random.Random(seed), Counter[tuple[Any, str]]()
    by_class: dict[Any, list[tuple[int, Item]]] = {}
    for item in rng.sample(items, len(items)):
        kind = stratum_of(labels[item.item_id], scale)
        by_class.setdefault(kind, []).append((seen[kind, item.group], item))
        seen[kind, item.group] += 1
    classes = rng.sample(sorted(by_class, key=str), len(by_class))
    queues = [[item for _, item in sorted(by_class[kind], key=lambda pair: pair[0])] for kind in classes]
    if size is None:
        return [item for turn in itertools.zip_longest(*queues) for item in turn if item is not None]
    turns = max(1, min(size, len(items)) // len(queues))
    return [queue[turn % len(queue)] for turn in range(turns) for queue in queues]


def parts_by_question(
    items: Sequence[Item], labels: Mapping[str, Label], *, seed: int, n: int
) -> list[tuple[Item, ...]]:
    """Cut Items by whole questions into a list of `n` parts, by labels (item id -> Label) and a seed."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    rng = random.Random(seed)

    def goodness(members: Sequence[Item]) -> tuple[float, str, float]:
        values = [labels[item.item_id] for item in members]
        numbers = [float(value) for value in values if not isinstance(value, str)]
        return (sum(numbers) / len(numbers) if numbers else 0.0, str(values[0]), rng.random())

    ordered = sorted(groups.values(), key=goodness)
    first = rng.randrange(n)
    dealt = [ordered[(first + part) % n :: n] for part in range(n)]
    return [tuple(item for members in part for item in members) for part in dealt if part]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled program under a name such as `labeled-16-draw2`."""

    name: str
    program: dspy.Module
    # groups of its demos; all of train where instructions were written with its labels in sight
    trained_on: frozenset[str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What `auto` may take."""

    gepa_calls: int  # of both models; GEPA is left out at 0
    candidates: int  # that start on dev
    go_on: tuple[int, int]  # of them after a third of dev's questions, and after two
    demos: int  # in a prompt, at most


PLANS = (
    Plan(140, 4, (3, 2), 32),
    Plan(90, 4, (2, 1), 16),
    Plan(60, 3, (2, 1), 8),
    Plan(0, 2, (1, 1), 8),
    Plan(0, 1, (1, 1), 8),
)
"""From the whole to the least."""


@dataclass(frozen=True, slots=True)
class Training:
    """What an optimiser may see: the train split and its labels, nothing of dev or test; how it is run."""

    judge: PromptJudge
    items: Sequence[Item]
    labels: Mapping[str, Label]  # by item id, of these items
    people: Scale
    seed: int
    budget: Budget
    writer: ModelSpec  # who writes instructions
    log: Path | None = None  # where its calls are kept and found
    words: Mapping[str, str] = field(default_factory=dict)  # by item id, what feedback adds
    use_cache: bool = False  # take stored replies of other experiments
    quiet: bool = False
    plan: Plan = PLANS[0]
    remarks: list[str] = field(default_factory=list)  # what did not come about, for the result

    def metric(self) -> AgreementMetric:
        """Return the AgreementMetric over the training items."""
        return AgreementMetric(self.judge.signature, self.people, self.labels, words=self.words)

    def examples(self, draw: int) -> list[dspy.Example]:
        """Return the train split as a list of `dspy.Example`s, in a balanced order by the number `draw`."""
        seed = self.seed * 1000 + draw
        return self._as_examples(balanced(self.items, self.labels, self.people, seed=seed))

    def balanced(self, items: Sequence[Item], size: int = CLIMBED_ON) -> list[dspy.Example]:
        """Return at most `size` examples of these items, every stratum equally often."""
        return self._as_examples(balanced(items, self.labels, self.people, seed=self.seed, size=size))

    def halves(self, climbed_on: int = CLIMBED_ON) -> tuple[list[dspy.Example], list[dspy.Example]]:
        """Return train as two balanced lists of examples, no common question: to learn from, to climb on."""
        learn, *climb = parts_by_question(self.items, self.labels, seed=self.seed, n=2)
        return self.balanced(learn), self.balanced(climb[0] if climb else learn, climbed_on)

    def candidate(self, name: str, program: dspy.Predict, *, saw_all: bool = False) -> Candidate:
        """Return a Candidate of a name and a program (dspy.Predict), its demos cut to its own fields.

        `saw_all`: every label of train had a part in it, not those of its demos alone.
        """
        signature = self.judge.signature
        fields, names = signature.cls.fields, signature.inputs
        demos = [
            {name: demo[name] for name in fields if demo.get(name) is not None} for demo in program.demos
        ]
        program.demos = [dspy.Example(**demo) for demo in demos if signature.verdict in demo]
        shown = {tuple(demo[name] for name in names) for demo in program.demos}
        saw = {
            item.group for item in self.items if saw_all or tuple(item_inputs(names, item).values()) in shown
        }
        return Candidate(name, program, self.judge.trained_on | saw)

    def _as_examples(self, items: Sequence[Item]) -> list[dspy.Example]:
        signature, people = self.judge.signature, self.people
        return [to_example(signature, item, self.labels[item.item_id], people) for item in items]


def reflection_spec(spec: ModelSpec) -> ModelSpec:
    """Return a ModelSpec as a ModelSpec with room for instructions in its reply, as far as it allows."""
    if spec.max_tokens is None:
        return spec
    room = max(spec.max_tokens, min(_INSTRUCTION_TOKENS, spec.reply_limit or _INSTRUCTION_TOKENS))
    return dataclasses.replace(spec, max_tokens=room)


# --- a gold set for DSPy's own optimisers and `dspy.Evaluate`

_USUAL = ("question", "answer", "reference_answer", "context", "conversation")
Signed: TypeAlias = LoadedSignature | type[dspy.Signature] | dspy.Module | str | None


def examples(gold: GoldSet, *, split: str = "train", signature: Signed = None) -> list[dspy.Example]:
    """Return the labelled items of a GoldSet as a list of `dspy.Example`s, labels as verdicts.

    >>> made = judgecal.examples(judgecal.load_gold("starter"), signature="correctness_v3")
    >>> sorted(made[0].inputs().keys()), type(made[0].correctness_percentage).__name__
    (['answer_under_test', 'question', 'reference_answer'], 'int')

    Args:
        signature: whose fields they have: a signature's class or name, or a program with one prompt. Without
            it the fields are those that every item has (`question`, `answer` ...) and `verdict`.
    """
    loaded, items = _loaded(gold, signature), asked_items(gold, split)
    if any(item.item_id in gold.test_ids for item in items):
        raise InputError(
            f"split {split} of gold set {gold.name} has test items, and test is sealed: take examples of "
            "train, dev or open, and hold the finished program against test by judgecal.score"
            f"(..., split={split!r})"
        )
    return [to_example(loaded, item, gold.labels[item.item_id], gold.scale) for item in items]


def metric(gold: GoldSet, *, signature: Signed = None) -> AgreementMetric:
    """Return the AgreementMetric, 0 to 1, of a GoldSet for DSPy's optimisers and `dspy.Evaluate`.

    It is 1 - |verdict - label| / range (of words 1 where they are equal), and a verdict that cannot be read
    counts as the one farthest from the label. Bootstrapping keeps replies from 0.9 on; GEPA gets feedback in
    words. A program that raises never reaches it.

    >>> gold = judgecal.load_gold("starter")
    >>> rate = judgecal.metric(gold, signature="correctness_v3")
    >>> example = judgecal.examples(gold, signature="correctness_v3")[0]
    >>> rate(example, example)  # a prediction that says what people say
    1.0

    Args:
        signature: as for `examples`.
    """
    loaded = _loaded(gold, signature)
    return AgreementMetric(loaded, gold.scale, gold.labels, words=notes_in_words(gold, loaded))


def _loaded(gold: GoldSet, signature: Signed) -> LoadedSignature:
    if signature is None:
        fields = sorted({name for item in gold.items for name in item.fields} - ITEM_INPUTS)
        lacking = {name for item in gold.items for name in lacking_inputs((*_USUAL, *fields), item)}
        return signature_on(gold.scale, [name for name in (*_USUAL, *fields) if name not in lacking])
    if isinstance(signature, str):
        signature = load_signature(signature)
    elif not isinstance(signature, LoadedSignature):
        cls = only_predictor(signature).signature if isinstance(signature, dspy.Module) else signature
        signature = loaded_class(cls, cls.__name__)
    common_scale(gold.scale, signature.judge_scale())
    return signature
