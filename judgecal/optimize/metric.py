"""What optimisers climb: agreement with the people, so that the strata count equally.

An unusable reply counts as the verdict farthest from its label, and is counted.

The strata count equally in one of two ways. Weighted: each item's agreement is multiplied by its stratum's
weight, which can exceed 1 in a rare stratum. Plain: the agreement itself, 0 to 1, over examples in which
every stratum stands equally often (`training.balanced_sample`). The optimisers that write instructions take
the second. GEPA passes over a batch that is perfect (1.0), SIMBA compares scores of different items and draws
by their size, and both would take the weight of a stratum for the quality of a judge; scores divided by the
largest weight would mend neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, get_args

import dspy

from judgecal.errors import visible_line
from judgecal.judges.chat import neutralised
from judgecal.judges.reply import read_verdict
from judgecal.records import Rating
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.signatures import LoadedSignature

ITEM_ID = "dspy_judgecal_item_id"
"""Key under which an example carries its item's id.

It is no field of the signature, and DSPy hides keys with this prefix, so no prompt shows it: neither the
judge's nor those in which an optimiser shows whole examples to the model that writes instructions.
"""
_NOTES_QUOTED = 3  # of one item
_NOTE_CHARS = 300


class AgreementMetric:
    """A DSPy metric over the labels (by item id) of the training items, whose strata make the weights.

    `notes` (by item id) are those items' ratings with a note, which the feedback quotes.

    Called as DSPy calls metrics, from several threads. It returns the weighted agreement of one prediction,
    from 0 up; over the training items its mean is `macro_agreement`. With `pred_name` (as GEPA asks again for
    the feedback on a prediction that it has scored) it returns score and feedback in words. In bootstrapping
    (a trace and no `pred_name`) it returns the plain agreement, 0 to 1, so that a threshold means the same in
    every stratum. `calls` counts the predictions rated so far, `unusable` those of them without a verdict.
    """

    def __init__(
        self,
        signature: LoadedSignature,
        people: Scale,
        labels: Mapping[str, Label],
        *,
        weighted: bool = True,
        notes: Mapping[str, Sequence[Rating]] | None = None,
    ) -> None:
        self._signature = signature
        self._people = people
        self._labels = dict(labels)
        self._notes = dict(notes or {})
        self._common = common_scale(people, signature.judge_scale())
        sizes = Counter(stratum_of(label, people) for label in self._labels.values())
        n = len(self._labels)  # the mean weight over the items is 1
        self._weights = {one: n / (len(sizes) * size) if weighted else 1.0 for one, size in sizes.items()}
        self._counting = Lock()
        self.calls = 0
        self.unusable = 0

    def __call__(
        self,
        example: dspy.Example,
        prediction: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> float | dspy.Prediction:
        label, verdict = self._labels[example[ITEM_ID]], self._verdict(prediction)
        agreement = self.agreement(label, verdict)
        weighted = agreement * self._weights[stratum_of(label, self._people)]
        if pred_name is not None:
            words = self.feedback(label, verdict) + self.quoted_notes(example[ITEM_ID])
            return dspy.Prediction(score=weighted, feedback=words)
        with self._counting:
            self.calls += 1
            self.unusable += verdict is None
        return agreement if trace is not None else weighted

    def in_words(self, example: dspy.Example, prediction: Any) -> dspy.Prediction:
        """Score and feedback at once, for an optimiser that takes both where it scores."""
        self(example, prediction)
        return self(example, prediction, pred_name="judge")

    def agreement(self, label: Label, verdict: Label | None) -> float:
        """1 - |verdict - label| / range on the common scale (nominal: 1 where equal); 0..1.

        Without a verdict: that of the verdict farthest from the label.
        """
        if isinstance(label, str) or isinstance(verdict, str):
            return float(label == verdict)
        common, target = self._common, onto(self._common, self._people, label)
        given = (
            common.farthest(target)
            if verdict is None
            else onto(common, self._signature.judge_scale(), verdict)
        )
        return 1.0 - abs(given - target) / common.span

    def feedback(self, label: Label, verdict: Label | None) -> str:
        """What the people said, by how much and in which direction the verdict was off, in words."""
        if isinstance(label, str) or isinstance(verdict, str):
            return self._in_words(label, verdict)
        scale = self._signature.judge_scale()
        if scale.kind == "binary":
            return self._in_words(label, verdict)
        target = onto(scale, self._people, label)
        people = f"People gave {target:g} on the scale from {scale.low:g} to {scale.high:g}"
        if verdict is None:
            return f"{people}; the reply held no usable verdict: it must give one number on that scale."
        off = verdict - target
        if abs(off) < scale.span / 100.0:
            return f"{people}; the verdict {verdict:g} agrees."
        return f"{people}; the verdict {verdict:g} is {abs(off):g} too {'high' if off > 0 else 'low'}."

    def _in_words(self, label: Label, verdict: Label | None) -> str:
        """Feedback where the verdict is a word, in the words (or the bool) of the verdict's own type."""
        wanted = label_as_verdict(self._signature, label, self._people)
        if verdict is None:
            return f"People say {wanted}; the reply held no usable verdict."
        given = verdict
        if not isinstance(verdict, str):
            yes, no = self._signature.words or (True, False)
            given = yes if verdict else no
        return f"People say {wanted}; the verdict {given} {'agrees' if given == wanted else 'does not'}."

    def quoted_notes(self, item_id: str) -> str:
        """What raters noted of an item, the first few notes, each cut short; empty where they noted nothing.

        A note is a text of people's, and goes into a prompt: it can forge no field there and acts on no
        terminal.
        """
        quotes = []
        for rating in self._notes.get(item_id, ())[:_NOTES_QUOTED]:
            text = visible_line(" ".join((rating.note or "").split()))
            text = text[: _NOTE_CHARS - 4] + " ..." if len(text) > _NOTE_CHARS else text
            said = "" if rating.label in (None, self._labels[item_id]) else self._own_label(rating)
            quotes.append(f' A rater{said} noted: "{neutralised({"note": text})["note"]}"')
        return "".join(quotes)

    def _own_label(self, rating: Rating) -> str:
        assert rating.label is not None
        return f" who said {label_as_verdict(self._signature, rating.label, self._people)}"

    def _verdict(self, prediction: Any) -> Label | None:
        value = getattr(prediction, str(self._signature.verdict), None)
        return None if value is None else read_verdict(self._signature, value)[0]


def stratum_of(label: Label, scale: Scale) -> Any:
    """What counts equally with the others: a class of a nominal scale, a third of any other."""
    return label if isinstance(label, str) else scale.stratum(label)


def label_as_verdict(signature: LoadedSignature, label: Label, people: Scale) -> Any:
    """A people's label in the type and on the scale of a signature's verdict.

    A label that the verdict's type cannot hold (67.5 for an `int`) goes to the nearest that it can.
    """
    scale = signature.judge_scale()
    common_scale(people, scale)
    if isinstance(label, str):
        return label
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
