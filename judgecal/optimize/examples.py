"""Gold items as DSPy examples: an item's inputs with the people's label where the verdict stands."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import dspy

from judgecal.judges import item_inputs
from judgecal.records import Item
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.signatures import LoadedSignature

__all__ = [
    "ITEM_ID",
    "balanced_order",
    "balanced_sample",
    "label_as_verdict",
    "split_by_question",
    "to_example",
]

ITEM_ID = "dspy_judgecal_item_id"
"""Key under which an example carries its item's id.

It is no field of the signature, and DSPy hides keys with this prefix, so no prompt shows it: neither the judge's nor
those in which an optimiser shows whole examples to the model that writes instructions.
"""


def to_example(signature: LoadedSignature, item: Item, label: Label, people: Scale) -> dspy.Example:
    """An example whose verdict is the people's label; it has no reasoning, for people gave none."""
    inputs = item_inputs(signature, item)
    values = {
        **inputs,
        str(signature.verdict): label_as_verdict(signature, label, people),
        ITEM_ID: item.item_id,
    }
    return dspy.Example(**values).with_inputs(*inputs)


def label_as_verdict(signature: LoadedSignature, label: Label, people: Scale) -> Any:
    """A people's label in the type and on the scale of a signature's verdict.

    A label that the verdict's type cannot hold (67.5 for an `int`) goes to the nearest that it can.

    Raises:
        InputError: one side is nominal and the other is not.
    """
    scale = signature.judge_scale()
    if isinstance(label, str):
        common_scale(people, scale)
        return label
    common_scale(people, scale)
    value = onto(scale, people, label)
    annotation = signature.cls.output_fields[signature.verdict].annotation
    if scale.kind == "binary":
        passed = (
            value >= 0.5 if people.pass_at is None or people.kind == "binary" else label >= people.pass_at
        )
        if signature.words:
            return signature.words[0] if passed else signature.words[1]
        return passed if annotation is bool else int(passed)
    whole = annotation is int or bool(get_args(annotation))
    return round(value) if whole else value


def balanced_order(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, seed: int
) -> list[Item]:
    """Items in a drawn order whose every beginning is balanced over the strata and spread over the questions.

    Strata (classes on a nominal scale) take turns; within one, a question gives its second item only when every
    other question has given its first. The first k make a demo set of size k.
    """
    queues = _queues(items, labels, scale, seed=seed)
    longest = max(map(len, queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def balanced_sample(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, size: int, seed: int
) -> list[Item]:
    """About `size` items in which every stratum that there is stands equally often, a rare one by repetition.

    The plain mean of agreement over them is `macro_agreement` (of a sample, where `size` is smaller than a stratum
    times the strata). A repeated item is the same request to a model, so it is paid once.
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
        kinds = [_class(labels[item.item_id], scale) for item in members]
        # To the half that has less of what this question brings; of equals the smaller, then the first.
        side = min((0, 1), key=lambda one: (sum(counts[one][k] for k in kinds), len(halves[one]), one))
        halves[side].extend(members)
        counts[side].update(kinds)
    return halves


def _class(label: Label, scale: Scale) -> Any:
    return label if isinstance(label, str) else scale.stratum(label)


def _queues(
    items: Sequence[Item], labels: Mapping[str, Label], scale: Scale, *, seed: int
) -> list[list[Item]]:
    """The items of each class in a drawn order; within one, no question comes again before all others came."""
    rng = random.Random(seed)
    drawn = list(items)
    rng.shuffle(drawn)
    seen: Counter[tuple[Any, str]] = Counter()
    by_class: dict[Any, list[tuple[int, Item]]] = {}
    for item in drawn:
        kind = _class(labels[item.item_id], scale)
        by_class.setdefault(kind, []).append((seen[kind, item.group], item))
        seen[kind, item.group] += 1
    classes = sorted(by_class, key=str)
    rng.shuffle(classes)
    return [[item for _, item in sorted(by_class[kind], key=lambda pair: pair[0])] for kind in classes]
