"""What luck and the choice among several explain: of a gain where one chooses, of a fall elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from judgecal.scale import Scale
from judgecal.stats.agreement import jackknifed, parts_of_mean, prepare, terms_of
from judgecal.stats.intervals import MIN_GROUPS, jackknife_error, linear_error
from judgecal.stats.means import LinearMean, Means, linearise
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
class Drop:
    """How far the metric is below that of the questions that chose (of errors: above), and what luck
    explains."""

    value: float
    at_most: float

    @property
    def unexplained(self) -> bool:
        """Whether neither chance nor the choice explains it."""
        return self.value > self.at_most


def fall_between(chosen_on: Held, test: Held, *, people: Scale, metric: str, n_judges: int) -> Drop | None:
    """Return a Drop or None, from Held of choice, Held of test, people's Scale, metric and n_judges.

    The two parts share no question, so that the squared errors of both add up. One of k judges may lie
    z(0.005 / k) of these errors below (2.58 for one), allowing for the luck of the winner (Bonferroni).
    """
    parts = [_measured(part, people, metric) for part in (chosen_on, test)]
    if any(part is None for part in parts):
        return None
    (before, before_error), (after, after_error) = (part for part in parts if part is not None)
    sign = -1.0 if metric_named(metric, people)[0].direction == "less" else 1.0
    reach = -float(ndtri(float(ndtr(-STANDARD_ERRORS)) / n_judges))
    return Drop(sign * (before - after), reach * math.hypot(before_error, after_error))


LUCK = 0.8
"""So often the largest gain among equal candidates is below what counts as more than luck."""


@dataclass(frozen=True)
class Gains:
    """Gains of k candidates over a judge in a metric on the same items, with their errors by question."""

    values: Floats  # k
    covariance: Floats  # k x k
    of_fit: Floats  # k, what fitting the maps adds to each error
    n_groups: int

    @classmethod
    def over(
        cls, before: Held, candidates: Sequence[Held], *, people: Scale, metric: str, of_fit: Sequence[float]
    ) -> Gains | None:
        """Return Gains or None: a Held before, Held candidates, people's Scale, metric, errors of fit."""
        sides = [_linear(judged, people, metric) for judged in (before, *candidates)]
        if any(side is None for side in sides):
            return None
        values = np.array([side.value for side in sides if side is not None])
        parts = np.array([parts_of_mean(side) for side in sides if side is not None])
        return cls.of_parts(values[1:] - values[0], parts[1:] - parts[0], of_fit)

    @classmethod
    def of_parts(cls, values: Floats, parts: Floats, of_fit: Sequence[float] | None = None) -> Gains:
        """Make Gains from k values, an array, and the k x G parts of questions in each gain, another."""
        n = parts.shape[1]
        centred = (parts - parts.mean(axis=1, keepdims=True)) * math.sqrt(n / (n - 1.0))
        fits = np.zeros(len(values)) if of_fit is None else np.asarray(of_fit)
        return cls(values, centred @ centred.T, fits, n)

    @property
    def errors(self) -> Floats:
        """Standard errors of the gains."""
        return cast(Floats, np.hypot(np.sqrt(np.diag(self.covariance)), self.of_fit))

    def losses_shown(self, level: float) -> list[bool]:
        """Return a list of booleans: each gain is shown below 0 at a level, by a t of a single side."""
        reach = float(stdtrit(self.n_groups - 1.0, level))
        shown: list[bool] = (self.values + reach * self.errors < 0.0).tolist()
        return shown

    def joined(self, part: Gains, places: Sequence[int], dropped: Sequence[int]) -> Gains:
        """Join other Gains `part` to these: places of these in it, and places of the dropped there.

        Args:
            places: of each of these in `part`.
            dropped: their places in `part`.
        """
        chosen, share = [*places, *dropped], part.n_groups / self.n_groups
        apart = np.sqrt(np.diag(part.covariance)[chosen])
        near = part.covariance[np.ix_(chosen, chosen)] / np.outer(apart, apart).clip(1e-300)
        shrunk = apart[len(places) :] * math.sqrt(share)
        errors = np.concatenate([np.sqrt(np.diag(self.covariance)), shrunk])
        covariance = near * np.outer(errors, errors)
        covariance[: len(places), : len(places)] = self.covariance
        values = np.concatenate([self.values, part.values[list(dropped)]])
        fits = np.concatenate([self.of_fit, share * part.of_fit[list(dropped)]])
        return Gains(values, covariance, fits, self.n_groups)

    def by_luck(self, seed: int = 0) -> float:
        """Return the gain, a float, that the best of equally good candidates shows by luck (`LUCK`).

        Of one candidate that is 0.84 errors by group of the paired gain (by t); of several it is drawn from
        the joint distribution of all gains.
        """
        degrees = self.n_groups - 1.0
        if len(self.values) == 1:
            return float(stdtrit(degrees, LUCK) * self.errors[0])
        rng = np.random.default_rng(seed)
        roots, axes = np.linalg.eigh(self.covariance)
        draws = rng.standard_normal((N_DRAWS, len(roots))) @ (axes * np.sqrt(roots.clip(0.0))).T
        draws += rng.standard_normal(draws.shape) * self.of_fit
        tails = np.sqrt(rng.chisquare(degrees, N_DRAWS) / degrees)
        return float(np.quantile(draws.max(axis=1) / tails, LUCK))


def _linear(part: Held, people: Scale, metric: str) -> LinearMean | None:
    chosen, at_mark = metric_named(metric, people)
    sample = _sample(part, people)
    terms = terms_of(chosen, sample, at_mark)
    return linearise(terms, sample) if isinstance(terms, Means) and sample.n_groups >= MIN_GROUPS else None


def _sample(part: Held, people: Scale) -> Sample:
    options: dict[str, Any] = {"groups": part.groups, "weights": part.weights}
    return prepare(
        part.labels, part.verdicts, people=people, judge_scale=part.scale, unscored="wrong", **options
    )


def _measured(part: Held, people: Scale, metric: str) -> tuple[float, float] | None:
    """The metric with its standard error by group; None where it has none."""
    chosen, at_mark = metric_named(metric, people)
    sample = _sample(part, people)
    terms = terms_of(chosen, sample, at_mark)
    if isinstance(terms, str) or sample.n_groups < MIN_GROUPS:
        return None
    if isinstance(terms, Means):
        linear = linearise(terms, sample)
        measured = None if linear is None else (linear.value, linear_error(linear)[0])
    else:
        left_out = jackknifed(terms)
        measured = None if left_out is None else (left_out[0], jackknife_error(left_out[1]))
    return measured if measured is not None and math.isfinite(measured[1]) else None
