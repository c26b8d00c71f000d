"""What luck and the choice among several explain: of a gain where one chooses, of a fall elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from judgecal.scale import Scale
from judgecal.stats.agreement import jackknifed, parts_of_mean, prepare, terms_of
from judgecal.stats.intervals import MIN_GROUPS, jackknife_error, linear_error
from judgecal.stats.means import Linear, Means, linearise
from judgecal.stats.metrics import metric_named
from judgecal.stats.sample import Floats, Labels, Sample

N_DRAWS = 10_000
STANDARD_ERRORS = 2.58
"""So far below the questions that chose it the only judge may lie: by chance in 0.5% of samples."""


@dataclass(frozen=True)
class Held:
    """Labels of some items, and the verdicts of a judge on them (n or n x R; None = unscored: as wrong)."""

    labels: Labels
    verdicts: Iterable[object]
    scale: Scale  # of the verdicts
    groups: Labels
    weights: Floats | None = None


@dataclass(frozen=True, slots=True)
class Fall:
    """How far the metric is below that of the questions that chose (of errors: above), and what luck
    explains."""

    value: float
    at_most: float

    @property
    def unexplained(self) -> bool:
        """Whether neither chance nor the choice explains it."""
        return self.value > self.at_most


def fall_between(chosen_on: Held, test: Held, *, people: Scale, metric: str, n_judges: int) -> Fall | None:
    """How far a judge fell that was chosen among several; None where either part knows no error.

    The two parts share no question, so that the squared errors of both add up. One of k judges may lie
    z(0.005 / k) of these errors below (2.58 for one): then with chance 0.995 none of the k lies further
    below, whichever was chosen (Bonferroni), as an allowance for the luck of the winner.
    """
    known = [_measured(part, people, metric) for part in (chosen_on, test)]
    if any(part is None for part in known):
        return None
    (before, before_error), (after, after_error) = (part for part in known if part is not None)
    sign = -1.0 if metric_named(metric, people)[0].direction == "less" else 1.0
    reach = -float(ndtri(float(ndtr(-STANDARD_ERRORS)) / n_judges))
    return Fall(sign * (before - after), reach * math.hypot(before_error, after_error))


LUCK = 0.8
"""So often the largest gain among equal candidates is below what counts as more than luck."""


def gain_by_luck(
    before: Held,
    candidates: Sequence[Held],
    *,
    people: Scale,
    metric: str,
    of_fit: Sequence[float],
    seed: int = 0,
) -> float | None:
    """The `LUCK` point of the largest gain over a judge among candidates that are all as good as it, on these
    items.

    Of one candidate that is 0.84 errors by group of the paired gain (by t); of several it is drawn from the
    joint distribution of all gains, whose covariances are seen. `of_fit` are the errors that fitting the maps
    adds to each gain. None where no error can be known.
    """
    sides = [_linear(one, people, metric) for one in (before, *candidates)]
    if any(side is None for side in sides):
        return None
    parts = [parts_of_mean(side) for side in sides if side is not None]
    return largest_by_luck(np.array([part - parts[0] for part in parts[1:]]), of_fit, seed=seed)


def largest_by_luck(gains: Floats, of_fit: Sequence[float], *, seed: int = 0) -> float:
    """The `LUCK` point of the largest of some gains were all 0, from the k x G parts that groups have in
    each; `of_fit` as in `gain_by_luck`."""
    n_groups = gains.shape[1]
    gains = (gains - gains.mean(axis=1, keepdims=True)) * math.sqrt(n_groups / (n_groups - 1.0))
    if len(gains) == 1:
        return float(stdtrit(n_groups - 1.0, LUCK) * math.hypot(float(np.sqrt((gains**2).sum())), of_fit[0]))
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((N_DRAWS, n_groups)) @ gains.T
    draws += rng.standard_normal(draws.shape) * np.array(of_fit)
    tails = np.sqrt(rng.chisquare(n_groups - 1.0, N_DRAWS) / (n_groups - 1.0))
    return float(np.quantile(draws.max(axis=1) / tails, LUCK))


def _linear(part: Held, people: Scale, metric: str) -> Linear | None:
    chosen, at_mark = metric_named(metric, people)
    sample = _sample(part, people)
    terms = terms_of(chosen, sample, at_mark)
    return linearise(terms, sample) if isinstance(terms, Means) and sample.n_groups >= MIN_GROUPS else None


def _sample(part: Held, people: Scale) -> Sample:
    how: dict[str, Any] = {"groups": part.groups, "weights": part.weights}
    return prepare(part.labels, part.verdicts, people=people, judge_scale=part.scale, unscored="wrong", **how)


def _measured(part: Held, people: Scale, metric: str) -> tuple[float, float] | None:
    """The metric with its standard error by group; None where it has none."""
    chosen, at_mark = metric_named(metric, people)
    sample = _sample(part, people)
    terms = terms_of(chosen, sample, at_mark)
    if isinstance(terms, str) or sample.n_groups < MIN_GROUPS:
        return None
    if isinstance(terms, Means):
        linear = linearise(terms, sample)
        known = None if linear is None else (linear.value, linear_error(linear)[0])
    else:
        left_out = jackknifed(terms, sample)
        known = None if left_out is None else (left_out[0], jackknife_error(left_out[1]))
    return known if known is not None and math.isfinite(known[1]) else None
