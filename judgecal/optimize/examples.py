"""Gold items as DSPy examples: an item's inputs with the people's label where the verdict stands."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import dspy

from judgecal.judges import item_inputs
from judgecal.records import Item
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.signatures import LoadedSignature

__all__ = ["ITEM_ID", "balanced_order", "label_as_verdict", "to_example"]

ITEM_ID = "judgecal_item_id"
"""Key under which an example carries its item's id; it is no field of the signature, so no prompt shows it."""


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
    rng = random.Random(seed)
    drawn = list(items)
    rng.shuffle(drawn)
    seen: dict[tuple[Any, str], int] = {}
    by_class: dict[Any, list[tuple[int, Item]]] = {}
    for item in drawn:
        label = labels[item.item_id]
        kind = label if isinstance(label, str) else scale.stratum(label)
        turn = seen[kind, item.group] = seen.get((kind, item.group), -1) + 1
        by_class.setdefault(kind, []).append((turn, item))
    classes = sorted(by_class, key=str)
    rng.shuffle(classes)
    queues = [sorted(by_class[kind], key=lambda pair: pair[0]) for kind in classes]
    longest = max(map(len, queues), default=0)
    return [queue[place][1] for place in range(longest) for queue in queues if place < len(queue)]
