"""Fits the embedded model's `weights.json`: `python -m tests.benchmarks.embedded_fit [--data DATA] [--write]`.

Learned across sets, so that what holds in one alone counts little: answers of five systems to TriviaQA's
questions (EVOUNA's tq.csv, Apache-2.0), students' answers in English and German (SAF, MIT) and to a tutor in
electricity (SemEval-2013's Beetle half, CC BY-SA 3.0). Each set has the same weight and an intercept of its own.
NQ301, EVOUNA's NQ half, which shares questions with it, and SciEntsBank are in no coefficient: they are what the
judge is checked on, and what the handbook optimises on. Kept are the coefficients alone, never a row.

Without `--write` it prints how a fit does on a set that it has not seen: each of the four left out in turn, and
the three that are never in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgecal.models.embedded.features import NAMES, compare
from judgecal.models.embedded.judge import WEIGHTS_FILE
from tests.benchmarks.driver import Bench
from tests.benchmarks.free_judges import Labelled, correctness_sets, figures, shown

Vector = NDArray[np.float64]

FITTED_ON = ("evouna tq", "saf english", "saf german", "beetle")
# The inverse L2 strength for sets that weigh 5,000 rows each; the mean AUC over left-out sets is flat around it.
_INVERSE_L2 = 0.03
_ROWS = 5_000.0
# A rare flag would otherwise get a tiny standard deviation, and one demo with it a huge pull.
_LEAST_SD = 0.1
# Set by hand, logit per unit of the raw feature: the data has next to no yes/no questions, and a wrong number
# in an otherwise right sentence hardly occurs there either.
HAND_SET = {"yes_no_agree": 0.5, "yes_no_conflict": -2.0, "negation_mismatch": -5.0, "number_conflict": -5.0}
# How hard the refit to demos is held to its prior (`judge.refit`): found while looking at 16 and 32 demos of
# ScientsBank, Beetle and NQ301. The labels of the first and the last are in no coefficient.
REFIT = {"intercept": 0.3, "slope": 10.0, "feature": 100.0, "decisiveness": 0.2}

Rows = Mapping[str, tuple[Vector, Vector]]
"""Of each set its features (n x features) and labels 0..1 (n)."""


def features(sets: Mapping[str, Labelled]) -> Rows:
    """The features of all items of all sets."""
    rows = {}
    for name, labelled in sets.items():
        values = [compare(one.question, one.reference_answers, one.answer).values for one in labelled.items]
        top = 100.0 if labelled.scale == "percentage" else 1.0
        rows[name] = np.array(values), np.array(labelled.labels) / top
    return rows


def _logistic(design: Vector, labels: Vector, weights: Vector) -> Vector:
    """The coefficients of a logistic model without an intercept; a graded label is a bit of either class."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_INVERSE_L2, max_iter=5000, fit_intercept=False)
    model.fit(
        np.vstack([design, design]),
        np.repeat([1.0, 0.0], len(labels)),
        sample_weight=np.concatenate([weights * labels, weights * (1.0 - labels)]),
    )
    return np.asarray(model.coef_[0], dtype=np.float64)


def fit(rows: Rows, names: Sequence[str]) -> dict[str, Any]:
    """Mean, sd, intercept and coefficients, fitted on sets; the same rows give the same."""
    values, labels = (np.concatenate([rows[name][part] for name in names]) for part in (0, 1))
    sizes = [len(rows[name][1]) for name in names]
    weights = np.repeat([_ROWS / size for size in sizes], sizes)
    which = np.repeat(np.eye(len(names)), sizes, axis=0)
    mean = np.average(values, axis=0, weights=weights)
    sd = np.maximum(np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights)), _LEAST_SD)
    standard = (values - mean) / sd
    count = len(NAMES)
    # an intercept a set: its share of right answers is nothing that holds elsewhere
    coefficients = _logistic(np.hstack([standard, 3.0 * which]), labels, weights)[:count]
    for name, slope in HAND_SET.items():
        at = NAMES.index(name)
        coefficients[at] = slope * sd[at]
    # the cut: right and wrong answers of each set weigh the same
    logits = standard @ coefficients
    right = weights * labels / np.repeat([rows[name][1].mean() for name in names], sizes)
    wrong = weights * (1.0 - labels) / np.repeat([1.0 - rows[name][1].mean() for name in names], sizes)
    places = np.quantile(logits, np.linspace(0.01, 0.99, 197))
    gains = [right[logits >= place].sum() + wrong[logits < place].sum() for place in places]
    intercept = -float(places[int(np.argmax(gains))])
    return {"mean": mean, "sd": sd, "intercept": intercept, "coefficients": coefficients}


def content(rows: Rows) -> dict[str, Any]:
    """The content of `weights.json`."""
    found = fit(rows, FITTED_ON)

    def rounded(value: float) -> float:
        return float(f"{value:.4g}")

    return {
        "schema": 2,
        "fitted_on": "EVOUNA tq.csv (Apache-2.0), SAF English and German (MIT), SemEval-2013 Beetle "
        "(CC BY-SA 3.0): people's labels, each set with the same weight and its own intercept",
        "n": {name: len(rows[name][1]) for name in FITTED_ON},
        "inverse_l2": _INVERSE_L2,
        "intercept": rounded(found["intercept"]),
        "refit": REFIT,
        "features": {
            name: {
                "mean": rounded(found["mean"][i]),
                "sd": rounded(found["sd"][i]),
                "coefficient": rounded(found["coefficients"][i]),
                **({"set_by": "hand"} if name in HAND_SET else {}),
            }
            for i, name in enumerate(NAMES)
        },
    }


def main() -> int:
    bench = Bench(__doc__, n=0, of="unused", data="../shared/data", write=False)
    sets = correctness_sets(Path(bench.options.data))
    rows = features(sets)
    if bench.options.write:
        WEIGHTS_FILE.write_text(json.dumps(content(rows), indent=1) + "\n", encoding="utf-8")
        bench.line(f"{WEIGHTS_FILE.name}: {len(NAMES)} features")
        return 0
    bench.head("a fit on the other sets, by its linear model alone (no rule for refusals, yes and no)")
    for name, labelled in sets.items():
        found = fit(rows, [one for one in FITTED_ON if one != name])
        logits = (rows[name][0] - found["mean"]) / found["sd"] @ found["coefficients"] + found["intercept"]
        order, macro = figures(labelled, list(100.0 / (1.0 + np.exp(-logits))))
        bench.line(f"  {name:<14} n = {len(logits):6,}  AUC {shown(order):<22} macro {shown(macro)}")
    return bench.end("scikit-learn", "numpy")


if __name__ == "__main__":
    sys.exit(main())
