"""The learnt part: measures to a share 0..1 by a logistic regression a family, refitted to a prompt's demos.

The coefficients stand in `weights.json`, which names the data that they were fitted on, by scikit-learn, in
`tests/benchmarks/embedded_fit.py`. To score is a dot product: scikit-learn is imported for demos alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import mul
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgecal.errors import listed
from judgecal.models.embedded.compare import NAMES, Comparison

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
Vector = NDArray[np.float64]
_CAP = 30.0

RULES: Mapping[str, tuple[float, str]] = {
    "empty answer": (0.01, "The answer is empty."),
    "both refuse": (1.0, "The answer and the reference both say that it cannot be answered."),
    "fact against a refusal": (
        0.04,
        "The reference says that it cannot be answered, but the answer states something.",
    ),
    "the reference itself": (1.0, "The answer is the reference, word for word."),
    "refusal against a fact": (0.01, "The answer refuses, but the reference gives an answer."),
    "same yes or no": (0.95, "The answer and the reference agree on yes or no."),
    "opposite yes or no": (0.04, "The answer and the reference disagree on yes or no."),
}
"""A rule that decides alone -> the share and the sentence that says why."""
AGAINST: Mapping[str, tuple[float, str]] = {
    "retraction": (0.03, "The answer takes back what it says."),
    "echo": (0.03, "The answer only repeats the question."),
    "dump": (0.03, "The answer is a long text that is mostly about other things."),
    "polarity": (0.1, "One of the two denies what the other states."),
    "denial": (0.4, "The answer denies something, and the reference does not."),
    "number": (0.15, "It gives another number than the reference."),
    "name": (0.15, "It names something else than the reference."),
}
"""What speaks against an answer, whatever it shares -> the part of its share that is left, and why."""
_FEW = 30  # tokens
_LONG_FROM, _LONG = 20, 50  # tokens of the shorter text
# Of the F1 of long texts' words, set by hand: two good answers seldom share more than half of them.
_STEEP, _MIDDLE, _TOP_SLOPE, _TOP = 20.0, 0.285, 4.0, 2.3


class Linear(NamedTuple):
    """A linear map from the measures of a family to a logit."""

    intercept: float
    slopes: tuple[float, ...]

    def logit(self, values: Sequence[float]) -> float:
        """The logit of one row of measures."""
        return float(self.intercept + sum(map(mul, self.slopes, values)))


def sigmoid(logit: float) -> float:
    """The logistic function, safe for any finite logit."""
    return 1.0 / (1.0 + math.exp(-max(-_CAP, min(_CAP, logit))))


@lru_cache(maxsize=8)
def shipped(family: str, names: tuple[str, ...]) -> Linear:
    """The shipped `Linear` map of a family for measures of these names."""
    fitted = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))[family]
    return Linear(fitted["intercept"], tuple(fitted["coefficients"][name] for name in names))


def rule(comparison: Comparison) -> str | None:
    """The name of the rule in `RULES` that decides a comparison alone, or None."""
    answer, reference = comparison.answer, comparison.reference
    if not answer.tokens:
        return "empty answer"
    if reference.refuses and len(reference.tokens) <= _FEW:
        return "both refuse" if answer.refuses else "fact against a refusal"
    if answer.joined and answer.joined == reference.joined:
        return "the reference itself"
    short = _FEW if len(reference.tokens) > _FEW else 2 * _FEW
    if answer.refuses and comparison.missing and len(answer.tokens) <= short:
        return "refusal against a fact"
    # A bare yes or no decides; so does an opposite one at the head of both texts. Long texts say more.
    meant, said = comparison.polarities
    long = len(reference.tokens) > _FEW and (said == meant or len(answer.tokens) > _FEW)
    if not said or not meant or long or comparison.against:
        return None
    if said != meant and (comparison.bare or (answer.polarity and reference.polarity)):
        return "opposite yes or no"
    return "same yes or no" if comparison.bare and said == meant else None


def correctness(comparison: Comparison, linear: Linear | None = None) -> float:
    """The share 0..1 to which a compared answer is right, by a rule or else by the fitted map.

    Of two long texts too little was learnt: there the F1 of the words that the question has not takes its
    place, bit by bit with the tokens of the shorter one.
    """
    decided = rule(comparison)
    if decided is not None:
        return RULES[decided][0]
    linear, values = linear or shipped("correctness", NAMES), comparison.values
    shorter = min(len(comparison.answer.tokens), len(comparison.reference.tokens))
    logit, long = linear.logit(values), min(1.0, max(0.0, (shorter - _LONG_FROM) / (_LONG - _LONG_FROM)))
    if long:
        shared = comparison.features["new_words"]
        logit += long * (min(_STEEP * (shared - _MIDDLE), _TOP_SLOPE * shared + _TOP) - logit)
    return sigmoid(logit) * min([AGAINST[name][0] for name in comparison.against], default=1.0)


def worded(words: Sequence[str]) -> str:
    """Words in a sentence, long ones cut."""
    return listed([word[:40] for word in words])


def reasoning(comparison: Comparison) -> str:
    """One to three sentences: what of the reference the answer has, what it lacks, what speaks against it."""
    decided = rule(comparison)
    if decided is not None:
        return RULES[decided][1]
    matched, missing = map(worded, comparison.key_words())
    about = "The answer shares no key word with the reference"
    if matched:
        about = f"The answer has {matched} from the reference"
    about += f"{', but' if matched else '; it'} lacks {missing}." if missing else "."
    return " ".join([about, *(AGAINST[name][1] for name in comparison.against[:2])])


# --- what the demos of a prompt teach

_GRID = np.linspace(-3.0, 3.0, 7)
_PRIOR = 6.0  # demos that the shipped share counts as
_REACH = 0.5  # of a measure beside the share: how far demos move it


class Learnt(NamedTuple):
    """What demos taught: a logit a class (one of two classes) of the logit of the share and the measures."""

    classes: tuple[float, ...]
    intercepts: Vector
    slopes: Vector

    def shares(self, share: float, measures: Sequence[float]) -> Vector:
        """An item's learnt class shares, from its share and measures; of two classes the upper one's."""
        logits = self.intercepts + self.slopes @ np.array([_logit(share), *measures])
        if len(logits) == 1:
            return np.array([sigmoid(float(logits[0]))])
        chances: Vector = np.exp(logits - logits.max())
        return chances / float(chances.sum())


def _logit(share: float) -> float:
    share = min(0.999, max(0.001, share))
    return math.log(share / (1.0 - share))


def refit(
    shares: Sequence[float], rows: Sequence[Sequence[float]], labels: Sequence[float], levels: Sequence[float]
) -> Learnt:
    """Fit a logistic regression of demo labels on the logit of the share and the measures (`Learnt`).

    What is shipped is in it as made-up demos at the demos' mean measures: at each logit as often right as it
    says, or of a scale without an order with the label whose level is nearest.

    Args:
        labels: 0..1, a graded one a bit of either class; of a scale without an order the places of its words.
        levels: of such a scale, how good each word is, 0..1; else nothing.
    """
    from sklearn.linear_model import LogisticRegression

    measures = np.asarray(rows, dtype=np.float64)
    middle, reach = measures.mean(axis=0), np.append(1.0, np.full(measures.shape[1], _REACH))
    grid = np.column_stack([_GRID, np.zeros((len(_GRID), len(middle)))])
    design = (
        np.vstack([np.column_stack([[_logit(share) for share in shares], measures - middle]), grid]) * reach
    )
    upper = 1.0 / (1.0 + np.exp(-_GRID))
    weights = np.append(np.ones(len(labels)), np.full(len(_GRID), _PRIOR / len(_GRID)))
    model = LogisticRegression(C=1.0, max_iter=300)
    if levels:
        nearest = np.abs(upper[:, None] - np.asarray(levels)).argmin(axis=1)
        model.fit(design, np.append(labels, nearest).astype(int), sample_weight=weights)
    else:
        goals = np.append(labels, upper)
        twice = np.append(weights * goals, weights * (1.0 - goals)) + 1e-9
        model.fit(np.vstack([design, design]), np.repeat([1, 0], len(goals)), sample_weight=twice)
    slopes = model.coef_ * reach
    intercepts = model.intercept_ - slopes[:, 1:] @ middle
    return Learnt(tuple(map(float, model.classes_)), intercepts, slopes)
