"""Agreement beyond chance on categories: 1 - observed / expected disagreement."""

from __future__ import annotations

import numpy as np

from judgecal.errors import InputError
from judgecal.stats.resampling import Totals, divide
from judgecal.stats.sample import Floats, Sample

__all__ = ["kappa", "kappa_quadratic"]


def kappa(sample: Sample) -> Totals | str:
    """Cohen's kappa, -1..1: 1 - sum(w O) / sum(w E), w = 1 off the diagonal, E from both margins.

    Undefined where no disagreement is expected (both raters constant and equal). Source: Cohen (1960).
    """
    return _cohen(sample, quadratic=False)


def kappa_quadratic(sample: Sample) -> Totals | str:
    """Weighted kappa with the squared distance of the categories' values, -1..1; the whole scale counts.

    Weights by value and not by rank among the observed labels. Source: Cohen (1968).
    """
    return _cohen(sample, quadratic=True)


def _cohen(sample: Sample, *, quadratic: bool) -> Totals | str:
    classes = sample.classes
    if classes is None:
        raise InputError(f"scale {sample.scale} has no classes without a pass mark")
    if classes.problem:
        return classes.problem
    q = len(classes.values)
    weights = _disagreement(classes.values, quadratic=quadratic)
    verdicts = np.where(sample.scored, classes.verdicts, 0.0).astype(np.int64)
    one = np.eye(q)
    gold = np.broadcast_to(one[classes.gold][:, None, :], (*verdicts.shape, q))
    observed = weights[classes.gold[:, None], verdicts][..., None]
    terms = np.concatenate([observed, gold, one[verdicts]], axis=2)

    def combine(totals: Floats) -> Floats:
        disagreement, ours, theirs = totals[..., 0], totals[..., 1 : q + 1], totals[..., q + 1 :]
        expected = ((ours @ weights) * theirs).sum(axis=-1)
        return 1.0 - divide(disagreement * ours.sum(axis=-1), expected)

    return Totals.of(
        terms, sample, combine, undefined="no disagreement is expected: both sides are constant and equal"
    )


def _disagreement(values: Floats, *, quadratic: bool) -> Floats:
    apart = np.abs(values[:, None] - values[None, :])
    return apart**2 if quadratic else (apart > 0.0).astype(np.float64)
