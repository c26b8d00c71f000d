"""Fits the embedded model's `weights.json`: `python -m tests.benchmarks.embedded_fit [--data DATA] [--write]`.

Correctness is learned across sets, so that what holds in one alone counts little: answers of five systems to
TriviaQA's questions (EVOUNA's tq.csv, Apache-2.0), students' answers in English and German (SAF, MIT) and to a tutor
in electricity (SemEval-2013's Beetle half, CC BY-SA 3.0), and the long answers of MTRAG (completeness, Apache-2.0).
Each set has the same weight and an intercept of its own. Groundedness is learned on MTRAG's faithfulness. Kept are the
coefficients alone, never a row.

NQ301, EVOUNA's NQ half and SciEntsBank are in no coefficient. They were looked at all the same: the measures were
dropped, and the parts that are left where something speaks against an answer set, while looking at the areas under
the curve of all ten sets and at the probes of NQ301, SciEntsBank, SAF and the starter.

Without `--write` it prints how a fit does on a set that it has not seen: each of the five left out in turn, and the
three that are never in; and MTRAG's faithfulness with each conversation left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from judgecal.models.embedded import judge
from judgecal.models.embedded.judge import NAMES, Comparison
from judgecal.scale import Scale
from tests.benchmarks.driver import Bench
from tests.benchmarks.free_judges import Labelled, correctness_sets, figures, made_up, mtrag, shown

FITTED_ON = ("evouna tq", "saf english", "saf german", "beetle", "mtrag completeness")
_INVERSE_L2 = {
    "correctness": 0.1,
    "groundedness": 0.001,
}  # for sets that weigh 5,000 rows each; the area is flat
_ROWS = 5_000.0
# Shares in whole percents that crowd near 0 or 100 lose their order, in German first.
_SURE = 0.7
# A rare flag would otherwise get a tiny standard deviation, and one demo with it a huge pull.
_LEAST_SD = 0.1

Rows = Mapping[str, tuple[judge.Vector, judge.Vector]]
"""Of each set its features (n x features) and labels 0..1 (n)."""


def features(labelled: Labelled) -> tuple[judge.Vector, judge.Vector]:
    """The features and labels of the items of a set that no rule decides."""
    scale, rows = Scale.parse(labelled.scale), []
    for item, label in zip(labelled.items, labelled.labels, strict=True):
        comparison = Comparison(item.question, item.reference_answers, item.answer)
        if comparison.rule is None and not {*comparison.against} - {"elsewhere"}:
            rows.append([*comparison.values, (label - scale.low) / scale.span])
    table = np.array(rows)
    return table[:, :-1], table[:, -1]


def grounds(labelled: Labelled) -> tuple[judge.Vector, judge.Vector]:
    """The measures of support of MTRAG's answers, and their grades as shares."""
    rows = [
        judge.support(item.question, item.answer, "\n\n".join(each.text for each in item.contexts))[0]
        for item in labelled.items
    ]
    return np.array(rows), (np.array(labelled.labels) - 1.0) / 3.0


def fit(rows: Rows, names: Sequence[str], inverse_l2: float) -> judge.Linear:
    """The linear map fitted on sets; its cut is where right and wrong answers of each set weigh the same."""
    values, labels = (np.concatenate([rows[name][part] for name in names]) for part in (0, 1))
    sizes = [len(rows[name][1]) for name in names]
    weights = np.repeat([_ROWS / size for size in sizes], sizes)
    # an intercept a set: its share of right answers is nothing that holds elsewhere
    of_set = 3.0 * np.repeat(np.eye(len(names)), sizes, axis=0)
    mean = np.average(values, axis=0, weights=weights)
    sd = np.maximum(np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights)), _LEAST_SD)
    design = np.hstack([(values - mean) / sd, of_set])
    model = LogisticRegression(C=inverse_l2, max_iter=5000, fit_intercept=False)
    # a graded label is a bit of either class
    goals = np.concatenate([weights * labels, weights * (1.0 - labels)])
    model.fit(np.vstack([design, design]), np.repeat([1, 0], len(labels)), sample_weight=goals + 1e-12)
    slopes = model.coef_[0][: values.shape[1]] / sd
    logits = values @ slopes
    shares = np.repeat([rows[name][1].mean() for name in names], sizes)
    right, wrong = weights * labels / shares, weights * (1.0 - labels) / (1.0 - shares)
    places = np.quantile(logits, np.linspace(0.01, 0.99, 197))
    gains = [right[logits >= place].sum() + wrong[logits < place].sum() for place in places]
    sure = _SURE if len(names) > 1 else 1.0
    return judge.Linear(-sure * float(places[int(np.argmax(gains))]), tuple(sure * float(s) for s in slopes))


def _content(linear: judge.Linear, names: Sequence[str], fitted_on: str, rows: Rows) -> dict[str, Any]:
    coefficients = {name: float(f"{slope:.4g}") for name, slope in zip(names, linear.slopes, strict=True)}
    n = {name: len(labels) for name, (_, labels) in rows.items()}
    intercept = float(f"{linear.intercept:.4g}")
    return {"fitted_on": fitted_on, "n": n, "intercept": intercept, "coefficients": coefficients}


def main() -> int:
    bench = Bench(__doc__, n=0, of="unused", data="../shared/data", write=False)
    data = Path(bench.options.data)
    if bench.quick:
        linear = fit({"made up": features(made_up())}, ["made up"], _INVERSE_L2["correctness"])
        bench.line(f"made up: intercept {linear.intercept:.2f}, {len(linear.slopes)} slopes")
        return bench.end()
    sets = {**correctness_sets(data), "mtrag completeness": mtrag(data, "completeness")}
    rows = {name: features(sets[name]) for name in FITTED_ON}
    faithful = mtrag(data)
    backed = {"mtrag": grounds(faithful)}
    strengths = _INVERSE_L2
    if bench.options.write:
        correctness = fit(rows, FITTED_ON, strengths["correctness"])
        groundedness = fit(backed, ["mtrag"], strengths["groundedness"])
        sources = (
            "EVOUNA tq.csv (Apache-2.0), SAF English and German (MIT), SemEval-2013 Beetle (CC BY-SA 3.0), "
            "MTRAG completeness (Apache-2.0): people's labels of answers that no rule decides, each set with the same weight and its own intercept"
        )
        content = {
            "schema": 4,
            "correctness": _content(correctness, NAMES, sources, rows),
            "groundedness": _content(
                groundedness, judge.GROUNDS, "MTRAG, people's faithfulness (Apache-2.0)", backed
            ),
        }
        judge.WEIGHTS_FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return bench.end("scikit-learn")
    bench.head("a fit on the other sets")
    for name, labelled in sets.items():
        linear = fit(rows, [other for other in FITTED_ON if other != name], strengths["correctness"])
        verdicts = []
        for item in labelled.items:
            comparison = Comparison(item.question, item.reference_answers, item.answer)
            verdicts.append(100.0 * judge.correctness(comparison, linear))
        order, macro = figures(labelled, verdicts)
        bench.line(f"  {name:<14} n = {len(verdicts):6,}  AUC {shown(order):<22} macro {shown(macro)}")
    values, labels = backed["mtrag"]
    groups, verdicts = [item.group for item in faithful.items], [0.0] * len(labels)
    for train, rest in GroupKFold(20).split(values, labels, groups):
        linear = fit({"mtrag": (values[train], labels[train])}, ["mtrag"], strengths["groundedness"])
        for at in rest:
            verdicts[at] = 100.0 * linear.share(values[at].tolist())
    order, macro = figures(faithful, verdicts)
    bench.line(f"  {'mtrag':<14} n = {len(verdicts):6,}  AUC {shown(order):<22} macro {shown(macro)}")
    return bench.end("scikit-learn", "numpy")


if __name__ == "__main__":
    sys.exit(main())
