"""The learnt part: measures to a share 0..1 by a logistic regression a family, refitted to a prompt's demos.

The coefficients stand in `weights.json`, which names the data that they were fitted on, by scikit-learn, in
`tests/benchmarks/embedded_fit.py`. To score is a dot product: scikit-learn is imported for demos alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgecal.errors import listed
from judgecal.models.embedded.compare import AGAINST, NAMES, RULES, Comparison
from judgecal.models.embedded.text import END, analyse

WEIGHTS_FILE = Path(__file__).with_name("weights.json")
GROUNDS = ("words", "together", "beside")
Vector = NDArray[np.float64]
_CAP = 30.0
_GRID = np.linspace(-3.0, 3.0, 7)
_PRIOR = 6.0  # demos that the shipped share counts as
_REACH = 0.5  # of a measure beside the share: how far demos move it


class Linear(NamedTuple):
    """A linear map from the measures of a family to a logit."""

    intercept: float
    slopes: Sequence[float]

    def share(self, values: Sequence[float]) -> float:
        """The share 0..1 of one row of measures."""
        return sigmoid(float(self.intercept + sum(map(mul, self.slopes, values))))


def sigmoid(logit: float) -> float:
    """The logistic function, safe for any finite logit."""
    return 1.0 / (1.0 + math.exp(-max(-_CAP, min(_CAP, logit))))


@lru_cache(maxsize=8)
def shipped(family: str, names: tuple[str, ...]) -> Linear:
    """The shipped map of a family for measures of these names."""
    fitted = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))[family]
    return Linear(fitted["intercept"], tuple(fitted["coefficients"][name] for name in names))


def correctness(comparison: Comparison, linear: Linear | None = None) -> float:
    """The share 0..1 to which the answer is right: by a rule where one decides, else by the fitted map."""
    if comparison.rule is not None:
        return RULES[comparison.rule][0]
    share = (linear or shipped("correctness", NAMES)).share(comparison.values)
    return share * min([AGAINST[name][0] for name in comparison.against], default=1.0)


def worded(words: Sequence[str]) -> str:
    """Words in a sentence, long ones cut."""
    return listed([word[:40] for word in words])


def reasoning(comparison: Comparison) -> str:
    """One to three sentences: what of the reference the answer has, what it lacks, what speaks against it."""
    if comparison.rule is not None:
        return RULES[comparison.rule][1]
    key = {token: word for token, word in comparison.reference.written.items() if token in comparison.key}
    matched = worded([word for token, word in key.items() if token not in comparison.missing])
    missing = worded([word for token, word in key.items() if token in comparison.missing])
    about = (
        f"The answer has {matched} from the reference"
        if matched
        else "The answer has no key word of the reference"
    )
    about += f"; it lacks {missing}." if missing else "."
    return " ".join([about, *(AGAINST[name][1] for name in comparison.against[:2])])


def support(question: str, text: str, source: str) -> tuple[tuple[float, float, float], Sequence[str]]:
    """Return the shares of a text's words that a source holds (`GROUNDS`), and the words that it lacks.

    What the question says already counts neither for nor against. A paraphrase shares few words, so it counts
    as unsupported: this is a floor.
    """
    asked, given, held = analyse(question).content, analyse(text), analyse(source)
    new = given.content - asked
    shared, parts = new & held.content, [new.intersection(tokens) for tokens in given.sentences]
    total = sum(map(len, parts))
    words = sum(len(part & shared) for part in parts) / total if total else 1.0
    pieces = [*filter(None, map(shared.intersection, held.sentences))] if shared else []
    most = sum(max(map(len, map(part.__and__, pieces)), default=0) for part in parts)
    together = most / total if total else 1.0
    pairs = {pair for pair in given.pairs if END not in pair}
    beside = len(pairs & held.pairs) / len(pairs) if pairs else together
    lacking = new - shared
    missing = [word for token, word in given.written.items() if token in lacking]
    return (words, together, beside), missing


def refit(shares: Sequence[float], rows: Sequence[Sequence[float]], labels: Sequence[float]) -> Linear:
    """A logistic regression of labels 0..1 on the logit of the share and the measures, as demos teach it.

    What is shipped is in it as made-up demos at the demos' mean measures: at each logit as often right as it
    says. A graded label is a bit of either class.
    """
    from sklearn.linear_model import LogisticRegression

    measures = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
    middle, reach = measures.mean(axis=0), np.append(1.0, np.full(measures.shape[1], _REACH))
    grid = np.column_stack([_GRID, np.zeros((len(_GRID), len(middle)))])
    design = (
        np.vstack([np.column_stack([[logit(share) for share in shares], measures - middle]), grid]) * reach
    )
    goals = np.append(labels, 1.0 / (1.0 + np.exp(-_GRID)))
    weights = np.append(np.ones(len(labels)), np.full(len(_GRID), _PRIOR / len(_GRID)))
    twice = np.append(weights * goals, weights * (1.0 - goals)) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=300)
    model.fit(np.vstack([design, design]), np.repeat([1, 0], len(goals)), sample_weight=twice)
    slopes = model.coef_[0] * reach
    return Linear(float(model.intercept_[0] - slopes[1:] @ middle), tuple(map(float, slopes)))


def logit(share: float) -> float:
    """The log odds of a share, which is kept from 0 and 1."""
    share = min(0.999, max(0.001, share))
    return math.log(share / (1.0 - share))
