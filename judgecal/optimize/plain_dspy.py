"""A gold set for DSPy's optimisers and `dspy.Evaluate`: its items as examples, agreement as the metric."""

from __future__ import annotations

from typing import Any, TypeAlias

import dspy

from judgecal.errors import InputError
from judgecal.experiment import asked_items
from judgecal.goldset import GoldSet
from judgecal.judges import ITEM_INPUTS, item_inputs, lacking_inputs
from judgecal.judges.module import only_predictor
from judgecal.optimize.training import ITEM_ID, AgreementMetric, notes_of, to_example
from judgecal.scale import common_scale
from judgecal.signatures import LoadedSignature, load_signature, loaded_class, signature_on

_SUCCESS = 0.9  # agreement from which a reply is kept as an example of good judging
_USUAL = ("question", "answer", "reference_answer", "context", "conversation")
Signed: TypeAlias = LoadedSignature | type[dspy.Signature] | dspy.Module | str | None


def examples(gold: GoldSet, *, split: str = "train", signature: Signed = None) -> list[dspy.Example]:
    """The labelled items of a split as `dspy.Example`s: inputs are set, the people's label is the verdict.

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
    return [
        to_example(loaded, item, gold.labels[item.item_id], gold.scale).without(ITEM_ID) for item in items
    ]


def metric(gold: GoldSet, *, signature: Signed = None) -> AgreementMetric:
    """A metric for DSPy's optimisers and `dspy.Evaluate`: agreement with a gold set's people, 0 to 1.

    It is 1 - |verdict - label| / range (of words 1 where they are equal), and a verdict that cannot be read
    counts as the one farthest from the label. Bootstrapping keeps replies from 0.9 on; GEPA gets feedback in
    words. A program that raises never reaches it, so hold its `calls` against the examples.

    >>> gold = judgecal.load_gold("starter")
    >>> rate = judgecal.metric(gold, signature="correctness_v3")
    >>> example = judgecal.examples(gold, signature="correctness_v3")[0]
    >>> rate(example, example)  # a prediction that says what people say
    1.0

    Args:
        signature: as for `examples`.
    """
    return _PlainMetric(gold, _loaded(gold, signature))


class _PlainMetric(AgreementMetric):
    def __init__(self, gold: GoldSet, signature: LoadedSignature) -> None:
        super().__init__(signature, gold.scale, gold.labels, notes=notes_of(gold))
        labelled = (item for item in gold.items if item.item_id in gold.labels)
        self._items = {tuple(item_inputs(signature.inputs, item).values()): item.item_id for item in labelled}
        self._set = gold.name

    def __call__(self, example: Any, prediction: Any, trace: Any = None, *more: Any, **named: Any) -> Any:
        score = super().__call__(example, prediction, trace, *more, **named)
        return score >= _SUCCESS if trace is not None and isinstance(score, float) else score

    def item_of(self, example: dspy.Example) -> str:
        """The id of the item whose texts these are."""
        texts = tuple(example.get(name) for name in self._signature.inputs)
        if texts not in self._items:
            what = "make examples and metric with the same signature, judgecal.examples(gold, signature=...)"
            raise InputError(f"gold set {self._set} has no labelled item with this example's inputs: {what}")
        return self._items[texts]


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
