"""How much each of several judges may lose against the best of them, with bounds that hold for all at once.

The best is not known, so every judge takes its turn as the best one (multiple comparisons with the best: Hsu
1984, after Dunnett's comparisons with a control, 1955).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import stdtrit

from judgecal.errors import InputError
from judgecal.scale import Scale
from judgecal.stats.agreement import jackknifed, prepare, pseudo_values, terms_of
from judgecal.stats.calibration import DecidingVerdicts, calibrated
from judgecal.stats.intervals import MIN_GROUPS, check_level, linear_error, too_few
from judgecal.stats.means import LinearMean, Means, Stratum, driven_in_words, linearise, strata_of, too_thin
from judgecal.stats.metrics import Metric, leading_metric, metric_named
from judgecal.stats.paired import difference_of
from judgecal.stats.sample import Bools, Floats, Sample, as_scale, as_sequence
from judgecal.stats.significance import POWER

N_DRAWS = 20_000
"""Draws of the joint distribution; a critical value is then good to about one in a hundred."""

_EPS = 1e-12
_ALIKE = 1e-6  # of the widest spread: judges less apart are alike, as rounding alone leaves some 1e-8


def critical_values(
    parts: Floats, df: Floats, *, counted: Bools | None = None, level: float | Floats, n_draws: int, seed: int
) -> Floats:
    """Return k x k critical values, from groups' parts, df (two arrays), a level, n_draws and a seed.

    With one other judge that is a plain t, and its exact quantile is taken; so it is for a judge that is like
    every other on each group. `parts` are k x G, each judge's influence by group, which sums to 0; `df` k x
    k, the fewest of a judge's are taken for all its differences; `counted` k x k, the others j that count for
    judge i, all of them where not given; `level` may be one for each judge i. Source: Dunnett (1955) for
    comparisons with one control.
    """
    covariance = parts @ parts.T
    spread = np.diag(covariance)
    apart = np.sqrt(np.maximum(spread[:, None] + spread[None, :] - 2.0 * covariance, 0.0))
    varying = apart > _ALIKE * math.sqrt(max(float(spread.max()), _EPS))
    varying &= np.array(
        [varying[:j, j].all() for j in range(len(parts))]
    )  # of judges that are alike the first counts
    if counted is not None:
        varying &= counted
    values, vectors = np.linalg.eigh(covariance)
    scores = (vectors * np.sqrt(np.maximum(values, 0.0))) @ _normals(len(parts), n_draws, seed)
    critical, levels = np.zeros(df.shape), np.broadcast_to(level, len(parts))
    for i, others in enumerate(varying):
        spare = max(1, math.floor(np.nanmin(df[i], initial=parts.shape[1] - 1.0)))
        if others.sum() < 2:
            critical[i] = stdtrit(spare, levels[i])
            continue
        largest = ((scores[i] - scores[others]) / apart[i, others][:, None]).max(axis=0)
        critical[i] = np.quantile(largest * _widening(spare, n_draws, seed), levels[i])
    return critical


@lru_cache(maxsize=4)
def _normals(k: int, n_draws: int, seed: int) -> Floats:
    """k x n_draws standard normals."""
    return np.random.default_rng(seed).standard_normal((k, n_draws))


@lru_cache(maxsize=128)
def _widening(df: int, n_draws: int, seed: int) -> Floats:
    """What makes normal draws those of t: 1 / sqrt(chi-squared / df), n_draws of them."""
    rng = np.random.default_rng([seed, df])
    return np.asarray(1.0 / np.sqrt(rng.chisquare(df, n_draws) / df), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Loss:
    """What one judge loses against the best."""

    value: float | None  # the metric, unscored items counted as wrong; None where undefined
    # the best value less its own (of errors its own less the lowest); 0 for the best
    loss: float | None = None
    # the loss against the truly best is below it, for all at once; None for a `reason`
    upper: float | None = None
    reason: str | None = None
    strata: tuple[Stratum, ...] = ()  # of the paired difference to the best one, of a macro metric


@dataclass(frozen=True)
class Losses:
    """All judges' losses, in the order asked for."""

    best: str  # the judge with the best value; the first of equals
    by_judge: Mapping[str, Loss]
    level: float  # at which all bounds hold together; `method` says how they were made
    n_groups: int
    method: str
    # differences, errors, degrees of freedom and critical values behind them; None without bounds
    pairs: _Pairs | None
    reason: str | None = None  # why there are no bounds

    @property
    def driven(self) -> list[str]:
        """Which strata the bounds hang on, a sentence each without its full stop; none without bounds."""
        if self.pairs is None:
            return []
        return driven_in_words((self.best, judge, loss.strata) for judge, loss in self.by_judge.items())

    def questions_needed(self, judge: str, margin: float) -> int | None:
        """Return the number of questions, or None, to show a judge, by name, to lose less than a margin.

        Takes the differences seen for the true ones: with d_i the difference of another judge i from this
        one, r_i = margin - d_i, and s_i and u_i as in the bound on G questions, G (c_i + t_power)^2 (s_i^2 +
        u_i r_i) / r_i^2, the most over i; None without bounds, or where some judge was seen to be better by
        the margin or more.
        """
        return None if self.pairs is None else self.pairs.needed(judge, margin, self.n_groups)


def losses_against_best(
    gold_labels: Iterable[object],
    judges: Mapping[str, Iterable[object]],
    *,
    scale: Scale | str,
    scales: Mapping[str, Scale | str] | None = None,
    metric: str | None = None,
    groups: Iterable[Hashable] | None = None,
    margin: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    n_draws: int = N_DRAWS,
    calibrate: bool = True,
    weights: Floats | None = None,
    deciding: DecidingVerdicts[str] | None = None,
) -> Losses:
    """Return the Losses against the best judge, from gold labels, labels by judge's name, and a Scale.

    The loss of judge j stays below the most, over the other judges i, of value_i - value_j + b_ij (at least
    0), where b = c^2 u / 2 + c sqrt(s^2 + c^2 u^2 / 4) solves b^2 = c^2 (s^2 + u b):

    - s is the error by group of the paired difference, linearised, or by the jackknife for coefficients;
    - u is what one more group that differs would add: b / u of them would, if judge j truly lost b more than
    was seen.
      As in Wilson's interval of a rate, the variance is that at the bound. u is sum(p^2) / sum(|p|) over the
      groups' parts p of the difference and one further group with the whole range; of the stratum that has
      most, as what is lost may all lie where little was seen to differ. Where no group differs: `_Alike`;
    - c_i is the `level` point of the largest of (Z_i - Z_j) / s_ij over j.

    Were judge i the best, then with chance `level` all its differences lie below value_i - value_j + b_ij at
    once, whichever judge i that is. With a margin, in units of the metric, the bounds serve one claim: that a
    judge loses less than it. Judges clearly beyond it leave c (`_Pairs.of`). `n_draws`: of the t; the others
    as in `compare_all`.
    """
    check_level(level)
    people, judge_scales = as_scale(scale), scales or {}
    chosen, at_mark = metric_named(metric or leading_metric(people), people)
    if chosen.direction == "neither":
        raise InputError(f"{chosen.name} ranks nobody: choose by a metric of agreement")
    labels, codes = as_sequence(gold_labels), None if groups is None else as_sequence(groups)
    options: dict[str, Any] = {"groups": codes, "weights": weights}
    mapped = calibrate and chosen.calibrated
    once = deciding or calibrated(labels, judges, scale=people, scales=judge_scales, mapped=mapped, **options)
    options |= {"people": people, "unscored": "wrong"}
    samples = {
        judge: prepare(labels, verdicts, judge_scale=once.scales[judge], **options)
        for judge, verdicts in once.verdicts.items()
    }
    units = {str(sample.scale) for sample in samples.values() if chosen.unit == "scale"}
    if len(units) > 1:
        raise InputError(f"{chosen.name} is in units of {' and of '.join(sorted(units))}: choose by another")
    read = {judge: _worth(chosen, sample, at_mark=at_mark) for judge, sample in samples.items()}
    if all(isinstance(worth, str) for worth in read.values()):
        raise InputError(
            f"no judge has a value in {chosen.name}: {next(iter(read.values()), 'none is given')}"
        )
    n_groups = next(iter(samples.values())).n_groups
    valued = {judge: worth for judge, worth in read.items() if not isinstance(worth, str)}
    best = max(valued, key=lambda judge: valued[judge].merit)
    why, pairs = _no_bounds(list(valued.values()), n_groups, chosen.name), None
    if why is None:
        pairs = _Pairs.of(valued, n_groups, margin=margin, level=level, seed=seed, n_draws=n_draws)
    by_judge = {
        judge: Loss(None, reason=worth)
        if isinstance(worth, str)
        else _loss(judge, worth, valued[best], pairs, why)
        for judge, worth in read.items()
    }
    method = "multiple comparisons with the best by group, multivariate t" if pairs else ""
    if pairs is not None and not pairs.counted.all():
        method += ", without judges clearly beyond the margin"
    return Losses(best, by_judge, level, n_groups, method, pairs, why)


def _no_bounds(valued: Sequence[_Worth], n_groups: int, metric: str) -> str | None:
    """Why no loss has a bound; None where they have."""
    if n_groups < MIN_GROUPS:
        return too_few(n_groups, gives="bound")
    if any(worth.lame for worth in valued):
        return "some judge's metric is undefined without one of the groups"
    linear = valued[0].linear
    return None if linear is None else too_thin(strata_of(linear, valued[0].sample), metric)


@dataclass(frozen=True)
class _Worth:
    """One judge's metric with what its error is made of."""

    value: float
    sign: float  # -1 where less is better
    linear: LinearMean | None  # the linearised mean, or None for a coefficient
    sample: Sample  # what it is read from
    parts: Floats  # G x S, what each group adds to the value in each filled stratum
    whole: Floats  # S, what a group would add that differs by the whole range: that of an item of the stratum
    largest: float  # the largest that a group can add, times G: w of `_Alike`; NaN where nothing bounds it
    most: float  # the width of that range

    @property
    def merit(self) -> float:
        return self.sign * self.value

    @property
    def lame(self) -> bool:
        """Whether it has no error: a coefficient that is undefined without some group."""
        return not bool(np.all(np.isfinite(self.parts)))


def _worth(metric: Metric, sample: Sample, *, at_mark: bool) -> _Worth | str:
    terms = terms_of(metric, sample, at_mark)
    sign = -1.0 if metric.direction == "less" else 1.0
    if isinstance(terms, str):
        return terms
    if isinstance(terms, Means):
        linear = linearise(terms, sample)
        if linear is None:
            return terms.undefined
        most = terms.high - terms.low
        weight = linear.share @ linear.weights
        whole = (most if math.isfinite(most) else 1.0) * (linear.share.T @ weight)
        largest = most * len(weight) * float(weight.max()) if terms.plain else math.nan
        parts, filled = (
            (linear.influence + linear.ratios * linear.share) * linear.weights,
            linear.weights > 0.0,
        )
        return _Worth(linear.value, sign, linear, sample, parts[:, filled], whole[filled], largest, most)
    left_out = jackknifed(terms)
    if left_out is None:
        return terms.undefined
    parts, whole = pseudo_values(*left_out)[:, None], np.array([2.0 / sample.n_groups])
    return _Worth(left_out[0], sign, None, sample, parts, whole, math.nan, 2.0)


def _loss(judge: str, worth: _Worth, best: _Worth, pairs: _Pairs | None, why: str | None) -> Loss:
    loss = Loss(worth.value, best.merit - worth.merit, reason=why)
    if worth is not best and worth.linear is not None and best.linear is not None:
        loss = replace(loss, strata=strata_of(difference_of(best.linear, worth.linear)[1], best.sample))
    if pairs is None:
        return loss
    upper = pairs.upper(judge)
    if math.isnan(upper):
        return replace(loss, reason="a stratum rests on one group: no error can be known")
    return replace(loss, upper=min(upper, worth.most))


@dataclass(frozen=True)
class _Alike:
    """Pairs of which no group differs, as of two judges with the same verdicts: what proves the same to be no
    luck.

    A judge that truly loses d differs on d / w of the questions or more, w being the weight of the largest
    question in the metric over their mean weight (times the range): no question loses more. So it gives the
    other's verdicts on all G with chance (1 - d / w)^G at most, and the loss stays below w (1 - a^(1/G)) with
    chance 1 - a. All m pairs alike of a judge have a = (1 - level) / m; what a claim needs of it,
    (1 - margin / w)^G, is lost to the bounds of the others. Only for means over items:
    nothing bounds what a question loses in others.
    """

    pairs: Bools  # k x k
    largest: float  # w
    n_groups: int
    chances: Floats  # k x k, a

    def spent(self, margin: float) -> Floats:
        """k: the chance that the claims against each judge take."""
        needed = (1.0 - min(1.0, margin / self.largest)) ** self.n_groups
        return np.asarray(needed * (self.pairs & (needed <= self.chances)).sum(axis=1), dtype=np.float64)

    def bound(self) -> Floats:
        """k x k: what the loss stays below."""
        return np.asarray(self.largest * (1.0 - self.chances ** (1.0 / self.n_groups)), dtype=np.float64)

    def needed(self, margin: float) -> Floats:
        """k x k: groups at which the loss would be shown to be less than the margin."""
        if margin >= self.largest:
            return np.ones(self.chances.shape)
        return np.asarray(np.log(self.chances) / math.log(1.0 - margin / self.largest), dtype=np.float64)


@dataclass(frozen=True)
class _Pairs:
    """Every judge i against every other j: k x k tables of i less j."""

    names: Sequence[str]
    differences: Floats
    errors: Floats
    units: Floats
    df: Floats
    counted: Bools  # whether j counts in the critical value of i: not where it is clearly beyond the margin
    critical: Floats
    alike: _Alike | None  # None without a margin, where judges alike lose nothing to each other

    @classmethod
    def of(
        cls,
        valued: Mapping[str, _Worth],
        n_groups: int,
        *,
        margin: float | None,
        level: float,
        seed: int,
        n_draws: int,
    ) -> _Pairs:
        """The tables of judges with a value.

        A judge j with (value_i - value_j - margin) / s_ij >= sqrt(2 log log G) is clearly worse by more than
        the margin: it does not count in the critical value of the others. Source: Hansen (2005).
        """
        worths = list(valued.values())
        merits = np.array([worth.merit for worth in worths])
        differences = merits[:, None] - merits[None, :]
        errors, units, df, same = _apart(worths)
        # As in the paired comparison: one more group without a difference would make that of a spread of 0.
        errors = np.maximum(errors, np.abs(differences) / (n_groups + 1.0))
        parts = np.array([worth.parts.sum(axis=1) for worth in worths])
        parts -= parts.mean(axis=1, keepdims=True)
        drawn = partial(critical_values, parts, df, n_draws=n_draws, seed=seed)
        critical, counted, alike = drawn(level=level), np.ones(df.shape, dtype=np.bool_), None
        if margin is None:
            units = np.where(same, 0.0, units)
        else:
            counted = differences - margin < errors * math.sqrt(2.0 * math.log(math.log(n_groups)))
            counted |= np.isnan(errors)
            levels: float | Floats = level
            if math.isfinite(worths[0].largest):
                chances = (1.0 - level) / np.maximum(same.sum(axis=1, keepdims=True), 1.0)
                alike = _Alike(same, worths[0].largest, n_groups, np.broadcast_to(chances, same.shape))
                levels = np.minimum(level + alike.spent(margin), 1.0)
            critical = np.where(counted, drawn(counted=counted, level=levels), critical)
        return cls(tuple(valued), differences, errors, units, df, counted, critical, alike)

    def upper(self, judge: str) -> float:
        """The bound of one judge's loss; 0 where it stands alone."""
        j = self.names.index(judge)
        c, s, u = self.critical[:, j], self.errors[:, j], self.units[:, j]
        bounds = self.differences[:, j] + c**2 * u / 2.0 + c * np.sqrt(s**2 + (c * u) ** 2 / 4.0)
        if self.alike is not None:
            bounds = np.where(self.alike.pairs[:, j], self.alike.bound()[:, j], bounds)
        return float(max(0.0, np.delete(bounds, j).max(initial=0.0)))

    def needed(self, judge: str, margin: float, n_groups: int) -> int | None:
        j = self.names.index(judge)
        others = [i for i in range(len(self.names)) if i != j]
        room = margin - self.differences[others, j]
        s, u = self.errors[others, j], self.units[others, j]
        if not np.all(room > _EPS) or np.isnan(s).any():
            return None
        reach = (self.critical[others, j] + stdtrit(self.df[others, j], POWER)) ** 2
        needed = n_groups * reach * (s**2 + u * room) / room**2
        if self.alike is not None:
            needed = np.where(self.alike.pairs[others, j], self.alike.needed(margin)[others, j], needed)
        return math.ceil(float(needed.max(initial=0.0)))


def _apart(worths: Sequence[_Worth]) -> tuple[Floats, Floats, Floats, Bools]:
    """k x k: the error by group of each paired difference, the part of one more group, the degrees of
    freedom, and whether no group differs."""
    k = len(worths)
    errors, units, df = np.zeros((k, k)), np.zeros((k, k)), np.full((k, k), len(worths[0].parts) - 1.0)
    same = np.zeros((k, k), dtype=np.bool_)
    for i in range(k):
        for j in range(i):
            errors[i, j], df[i, j] = _error(worths[i], worths[j])
            size, whole = np.abs(worths[i].parts - worths[j].parts), worths[i].whole
            units[i, j] = (((size**2).sum(axis=0) + whole**2) / (size.sum(axis=0) + whole)).max()
            same[i, j] = size.max() <= _EPS
    lower = np.tril_indices(k, -1)
    for table in (errors, units, df, same):
        table.T[lower] = table[lower]
    return errors, units, df, same


def _error(first: _Worth, other: _Worth) -> tuple[float, float]:
    if first.linear is None or other.linear is None:
        apart, n_groups = (first.parts - other.parts)[:, 0], len(first.parts)
        spread = float(((apart - apart.mean()) ** 2).sum())
        return math.sqrt(spread * n_groups / (n_groups - 1.0)), n_groups - 1.0
    ours, theirs = first.linear, other.linear
    difference = replace(
        ours, ratios=ours.ratios - theirs.ratios, influence=ours.influence - theirs.influence
    )
    return linear_error(difference)
