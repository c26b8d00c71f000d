"""The judge: features to a share 0..1, refitted to the demos of the prompt, with a sentence that says why.

A logistic model over `features.NAMES`. Its coefficients come from `weights.json`, which names the data that
they were fitted on (by `tests/benchmarks/embedded_fit.py`). It is a floor: what word overlap, numbers and
names alone can tell.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgecal.errors import listed
from judgecal.models.embedded.features import BARE_TOKENS, NAMES, AnswerFeatures, compare
from judgecal.models.embedded.prompt import Layout, alternatives, read_examples, read_layout
from judgecal.models.embedded.text import NEGATIONS, STOPWORDS

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
_SCHEMA = 2
_STEPS = 8
_SHARPEST = 6.0
_LOGIT_CAP = 30.0
# Of two long texts too little was learnt: there the F1 of the words that the question has not takes the
# model's place, bit by bit with the tokens of the shorter one. From one half on it says little more: two good
# answers in words of their own seldom share more.
_LONG_FROM, _LONG = 20, 50
_LONG_SLOPE, _LONG_MIDDLE = 20.0, 0.285
_TOP_SLOPE, _TOP = 4.0, 2.3

_ANSWER_LENGTH, _REFERENCE_LENGTH, _NEW_WORDS = (
    NAMES.index(name) for name in ("answer_length", "reference_length", "new_words")
)

Vector = NDArray[np.float64]

# What the fitting data cannot teach: it has next to no refusals in its references and no yes/no questions.
RULES: dict[str, tuple[float, str]] = {
    "both refuse": (0.98, "The answer and the reference both say that it cannot be answered."),
    "refusal against a fact": (0.03, "The answer refuses, but the reference gives an answer."),
    "fact against a refusal": (
        0.04,
        "The reference says that it cannot be answered, but the answer states something.",
    ),
    "same yes or no": (0.95, "The answer and the reference agree on yes or no."),
    "opposite yes or no": (0.04, "The answer and the reference disagree on yes or no."),
    "empty answer": (0.01, "The answer is empty."),
    "the reference itself": (1.0, "The answer is the reference, word for word."),
}
"""A rule that decides alone -> the share 0..1 and the sentence that says why."""
_FEW = 30  # tokens
_TELLING_NEGATION = 0.2


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear map from raw features to a logit; `by_words`: how much the F1 of long texts' words counts."""

    intercept: float
    slopes: tuple[float, ...]
    by_words: float = 1.0

    def plain(self, values: Sequence[float]) -> float:
        """The logit without regard to length."""
        return self.intercept + float(sum(map(mul, self.slopes, values)))

    def logit(self, values: Sequence[float]) -> float:
        """The logit of one row of features."""
        long = _long(values)
        if not long:
            return self.plain(values)
        shared = values[_NEW_WORDS]
        by_words = min(_LONG_SLOPE * (shared - _LONG_MIDDLE), _TOP_SLOPE * shared + _TOP)
        return self.plain(values) + self.by_words * long * (by_words - zero_shot().plain(values))


@dataclass(frozen=True, slots=True)
class Weights:
    """The shipped coefficients, standardised."""

    mean: Vector
    sd: Vector
    intercept: float
    coefficients: Vector
    penalty: dict[str, float]

    def raw(self, intercept: float, coefficients: Vector, by_words: float = 1.0) -> LinearModel:
        """The same map for features as they come, not standardised."""
        slopes = coefficients / self.sd
        return LinearModel(float(intercept - slopes @ self.mean), tuple(map(float, slopes)), by_words)


@lru_cache(maxsize=1)
def shipped() -> Weights:
    """The weights beside this module. ValueError where the file has another schema or other features."""
    data: dict[str, Any] = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
    if data["schema"] != _SCHEMA or list(data["features"]) != list(NAMES):
        raise ValueError(
            f"{WEIGHTS_FILE.name}: schema {data['schema']} or its features do not fit this version"
        )
    mean, sd, coefficients = (
        np.array([data["features"][name][key] for name in NAMES]) for key in ("mean", "sd", "coefficient")
    )
    penalty = {name: float(value) for name, value in data["refit"].items()}
    return Weights(mean, sd, float(data["intercept"]), coefficients, penalty)


@lru_cache(maxsize=1)
def zero_shot() -> LinearModel:
    """The judge without demos."""
    weights = shipped()
    return weights.raw(weights.intercept, weights.coefficients)


def _long(values: Sequence[float]) -> float:
    """How far two texts are too long for the model, 0..1."""
    shorter = math.expm1(min(values[_ANSWER_LENGTH], values[_REFERENCE_LENGTH]))
    return min(1.0, max(0.0, (shorter - _LONG_FROM) / (_LONG - _LONG_FROM)))


def sigmoid(logits: Vector) -> Vector:
    """The logistic function, safe for any finite logit."""
    result: Vector = 1.0 / (1.0 + np.exp(-np.clip(logits, -_LOGIT_CAP, _LOGIT_CAP)))
    return result


def newton(design: Vector, labels: Vector, *, prior: Vector, penalty: Vector) -> Vector:
    """The maximum of the fractional Bernoulli likelihood less the quadratic penalty around `prior`."""
    point = prior.copy()
    for _ in range(_STEPS):
        shares = sigmoid(design @ point)
        gradient = design.T @ (shares - labels) + penalty * (point - prior)
        curvature = (design * (shares * (1.0 - shares))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        # A full step can overshoot where the shares are near 0 or 1: no logit moves by more than 4 at a time.
        reach = float(np.abs(design @ step).max())
        point = point - step * min(1.0, 4.0 / max(reach, 1e-9))
    return point


def decisiveness(logits: Vector, labels: Vector, *, caution: float) -> float:
    """By how much to sharpen the logits so that the verdicts come nearest to the labels in absolute error.

    A likelihood makes an unsure judge timid: all verdicts near the middle. People's labels are seldom there,
    and agreement is an absolute error. The penalty keeps a few demos from turning the judge into a switch.
    """
    factors = np.exp(np.linspace(0.0, math.log(_SHARPEST), 12))
    loss = [
        float(np.abs(labels - sigmoid(logits * factor)).sum()) + caution * math.log(factor) ** 2
        for factor in factors
    ]
    return float(factors[int(np.argmin(loss))])


def refit(rows: Vector, labels: Vector) -> LinearModel:
    """The judge after reading demos: raw features (n x features) and labels 0..1 (n), n at least 1.

    Free are the intercept, how much the shipped coefficients count, and, held much tighter, each of them.
    """
    weights, n = shipped(), len(labels)
    standard = (rows - weights.mean) / weights.sd
    shipped_logits = np.array([zero_shot().logit(row) for row in rows.tolist()]) - weights.intercept
    design = np.column_stack([np.ones(n), shipped_logits, standard])
    prior = np.concatenate([[weights.intercept, 1.0], np.zeros(len(NAMES))])
    names = ["intercept", "slope", *["feature"] * len(NAMES)]
    penalty = np.array([weights.penalty[name] for name in names])
    point = newton(design, labels, prior=prior, penalty=penalty)
    point = point * decisiveness(design @ point, labels, caution=weights.penalty["decisiveness"])
    return weights.raw(float(point[0]), point[1] * weights.coefficients + point[2:], float(point[1]))


def compare_inputs(layout: Layout, inputs: dict[str, str]) -> AnswerFeatures | None:
    """Compare the fields of one item; None where the prompt or the item has no reference to compare with."""
    references = alternatives(inputs.get(layout.reference or "", ""))
    if layout.answer is None or not references:
        return None
    return compare(inputs.get(layout.question or "", ""), references, inputs.get(layout.answer, ""))


@lru_cache(maxsize=64)
def learnt(prefix: tuple[str, ...]) -> LinearModel:
    """The judge for a prompt's prefix (system message, demo turns); fitted once a prefix and process."""
    layout = read_layout(prefix[0])
    rows, labels = [], []
    for example in read_examples(prefix[0], prefix[1:]):
        comparison = compare_inputs(layout, dict(example.inputs))
        if comparison is not None:
            rows.append(comparison.values)
            labels.append(example.label)
    return refit(np.array(rows), np.array(labels)) if rows else zero_shot()


def rule(comparison: AnswerFeatures) -> str | None:
    """The name of the rule in `RULES` that decides this item alone, or None."""
    answer, reference = comparison.answer, comparison.reference
    reference_refuses = reference.refuses and len(reference.tokens) <= _FEW
    if not answer.tokens:
        return "empty answer"
    if reference_refuses:
        return "both refuse" if answer.refuses else "fact against a refusal"
    if answer.joined and answer.joined == reference.joined:
        return "the reference itself"
    short = _FEW if len(reference.tokens) > _FEW else 2 * _FEW
    if answer.refuses and comparison.missing and len(answer.tokens) <= short:
        return "refusal against a fact"
    # A bare yes or no decides; so does an opposite one at the head of both texts. Long texts say more.
    said, meant = comparison.answer_polarity, comparison.reference_polarity
    long = len(reference.tokens) > _FEW and (said == meant or len(answer.tokens) > _FEW)
    if not said or not meant or long:
        return None
    if answer.polarity and reference.polarity and said != meant:
        return "opposite yes or no"
    plain = all(token in STOPWORDS or token in NEGATIONS for token in comparison.foreign)
    bare = (answer.polarity and (plain or len(answer.tokens) <= BARE_TOKENS)) or (
        reference.polarity and len(reference.tokens) <= BARE_TOKENS
    )
    if not bare:
        return None
    return "same yes or no" if said == meant else "opposite yes or no"


def verdict(comparison: AnswerFeatures, linear: LinearModel) -> float:
    """The share 0..1 to which the answer is right, by a rule where one decides, else by the model."""
    decided = rule(comparison)
    if decided is not None:
        return RULES[decided][0]
    logit = max(-_LOGIT_CAP, min(_LOGIT_CAP, linear.logit(comparison.values)))
    return 1.0 / (1.0 + math.exp(-logit))


def _listed(words: Sequence[str]) -> str:
    return listed([word[:40] for word in words])


def reasoning(comparison: AnswerFeatures) -> str:
    """One to three sentences: what of the reference the answer has, what it lacks, what speaks against it."""
    decided = rule(comparison)
    if decided is not None:
        return RULES[decided][1]
    written = dict(zip(comparison.reference.tokens, comparison.reference.words, strict=True))
    matched = [written[token] for token in comparison.matched]
    missing = [written[token] for token in comparison.missing]
    if matched:
        about = f"The answer has {_listed(matched)} from the reference"
        about += f", but lacks {_listed(missing)}." if missing else "."
    else:
        about = "The answer shares no key word"
        about += f" with the reference; it lacks {_listed(missing)}." if missing else "."
    as_written = dict(zip(comparison.answer.tokens, comparison.answer.words, strict=True))
    against = []
    if comparison.value("number_conflict"):
        numbers = [as_written[token] for token in comparison.foreign if token[0] == "#"]
        against.append(f"It gives another number: {_listed(numbers)}.")
    if comparison.value("name_conflict"):
        names = [as_written[token] for token in comparison.foreign if token in comparison.answer.names]
        against.append(f"It names something else: {_listed(names)}.")
    if comparison.value("negation_mismatch") >= _TELLING_NEGATION:
        against.append("One of the two has a negation and the other has not.")
    return " ".join([about, *against[:2]])
