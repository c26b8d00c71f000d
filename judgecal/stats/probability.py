"""The chance that an answer is right given a graded verdict: the map from verdicts to probabilities, for
`brier`.

For binary labels the map of `calibration` is a cut, as the decision is one of yes and no. How much a judge
knows beyond its cut shows where its verdicts are read as probabilities. They are fitted by least squares
among all non-decreasing maps (isotonic regression by pooling adjacent violators: Ayer et al. 1955), on other
questions than those that they are given to, and on counts that are smoothed over the less of the verdicts'
ranks the more there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from judgecal.scale import Scale
from judgecal.stats.calibration import FOLDS, fold_numbers, smoothed
from judgecal.stats.sample import Floats, as_scale, codes_of, read_both

# standard deviation of the smoothing, as a share of the verdicts, times the root of their number
_WIDTH = 0.3


def cross_fitted_probabilities(
    gold_labels: Iterable[object],
    judge_labels: Iterable[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str,
    groups: Iterable[Hashable] | None = None,
    seed: int = 0,
    weights: Floats | None = None,
) -> list[list[float | None]] | None:
    """Graded verdicts on binary labels as percentages of being right, n x R: each item's from the other
    questions.

    Two judges that differ by a strictly increasing rescaling have the same; all verdicts alike have the base
    rate. An unscored verdict stays None. Arguments and errors as in `cross_fitted`.

    Returns:
        None where the labels are not binary, the verdicts are, or fewer than ten questions are labelled.
    """
    people, judge = as_scale(scale), as_scale(judge_scale)
    if people.kind != "binary" or judge.kind == "binary" or not judge.numeric:
        return None
    gold, verdicts, _ = read_both(gold_labels, judge_labels, people=people, judge=judge)
    fold, known = fold_numbers(gold, codes_of(groups, len(gold)), seed), ~np.isnan(verdicts + gold[:, None])
    if fold is None or not known.any():
        return None
    heavy = np.ones(len(gold)) if weights is None else weights
    chances = np.full(verdicts.shape, np.nan)
    for part in range(FOLDS):
        others, own = known & (fold != part)[:, None], fold == part
        used = others if others.any() else known  # one part may hold all verdicts
        right, weight = (np.broadcast_to(one[:, None], used.shape)[used] for one in (gold, heavy))
        chances[own] = _fitted(verdicts[used], right, weight, at=verdicts[own])
    rows = (100.0 * np.where(np.isnan(verdicts), np.nan, chances)).tolist()
    return [[None if chance != chance else chance for chance in row] for row in rows]


def _fitted(verdicts: Floats, right: Floats, weight: Floats, *, at: Floats) -> Floats:
    """The non-decreasing chances with the least squared error, read at other verdicts."""
    from scipy.optimize import isotonic_regression  # 220 modules that every command would load with it

    known, code = np.unique(verdicts, return_inverse=True)
    size, passes = (np.bincount(code, weights=one).astype(np.float64) for one in (weight, weight * right))
    both = smoothed(np.stack([size, passes], axis=1), size, width=_WIDTH / len(verdicts) ** 0.5)
    chance: Floats = isotonic_regression(both[:, 1] / both[:, 0], weights=size).x
    return chance[np.maximum(0, np.searchsorted(known, at, side="right") - 1)]
