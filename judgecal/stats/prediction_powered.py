"""The mean label of a table of judged rows, from the labels of some of them and the judge's verdicts on all.

Labels that were drawn from the rows say how far the verdicts are off, and the verdicts on all rows carry that
to the whole table (PPI++: Angelopoulos, Duchi and Zrnic 2023; survey samplers know it as the difference
estimator). A judge without worth gets a weight of 0: then it is the mean of the labels. Which intervals hold
was settled by measuring (`tests/benchmarks/corrected_rate.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from judgecal.records import Estimate
from judgecal.stats.intervals import MIN_GROUPS, Interval, freedom, t_quantile, too_few, wilson
from judgecal.stats.sample import Floats, Ints

_FOLDS = 10
PSEUDO = 0.35
"""So much of a row of each kind is added over all strata, so that no error seen is not none."""
KINDS = 0.5
"""Of a row of each kind is added before a slope is taken, so that few labels give no steep one."""
# labels up to which an interval that verdicts make is as long on its shorter side as on the other
_SKEWED = 15.0
_WHOLE = 0.9  # from here on whole groups were drawn, of which few may carry most of the variance
_EPS = 1e-12
_SLACK = 1e-9  # of a mean that strata make exact


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """The rows of a table that people labelled.

    Attributes:
        at: their places in the table, each once.
        label: of each, on the scale on which the verdicts are.
        chance: with which each was drawn, above 0 and at most 1; None where it was the same for all rows.
    """

    at: Ints
    label: Floats
    chance: Floats | None = None

    @property
    def heavy(self) -> Floats:
        """1 / the chance of each; 1 where all rows were as likely."""
        return np.ones(len(self.at)) if self.chance is None else 1.0 / self.chance

    def among(self, rows: np.typing.NDArray[np.bool_]) -> LabelledRows:
        """Return the LabelledRows among those of a mask, an array of booleans, with their places there."""
        inside = rows[self.at]
        place = np.cumsum(rows) - 1
        chance = None if self.chance is None else self.chance[inside]
        return LabelledRows(place[self.at[inside]].astype(np.int64), self.label[inside], chance)


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean over a table, corrected by its labels, beside what the labels alone give."""

    estimate: Estimate
    plain: Estimate  # from the labels alone
    weight: float  # of the verdicts, 0..1, the mean over the folds
    labels_saved: int  # more labels that a plain sample would need for as short an interval


@dataclass(frozen=True, slots=True)
class _Linear:
    """A mean, and what each labelled row adds to it beyond what is expected."""

    value: float
    parts: Floats  # n, with the correction for a finite table in it
    group: Ints  # n
    heavy: Floats  # n, 1 / the chance of being drawn
    left: float  # the part of the rows that is not labelled, by weight
    # how much products of rows of one group count, beside what a finite table takes away, 0..1
    together: float
    extra: float  # variance for what was not seen in so few rows
    two_valued: bool
    weighed: bool  # whether verdicts have a weight in it, and no strata take it away
    n_groups: int

    @property
    def variance(self) -> float:
        return _clustered(self.parts, self.group, self.heavy, self.together) + self.extra


def corrected_mean(
    verdicts: Floats,
    groups: Ints,
    labelled: LabelledRows,
    *,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
    seed: int = 0,
) -> Corrected:
    """Return the Corrected mean label, from verdicts and groups of all rows, two arrays, and LabelledRows.

    The verdicts' weight is tuned on other groups than those that it is given to. Labels weigh by 1 / the
    chance of being drawn (Hajek 1971). The variance is that of the draw: rows of one group that were drawn
    together count as one, rows that were drawn one by one do not, which is told from the pairs within groups
    that are labelled.

    Args:
        verdicts: N, in low..high, NaN where unscored; such a row counts with the mean of the others until
            labelled.
        groups: N codes, 0 and above.
        low, high: the ends of the scale.
        seed: of the folds.

    Returns:
        Estimates without a value where there is no label, and without an interval on fewer than ten labelled
        groups.
    """
    span = high - low
    scaled = replace(labelled, label=(labelled.label - low) / span)
    filled, n_unscored = _filled((verdicts - low) / span)
    counts = Estimate(None, level=level, n=len(labelled.at), n_expected=len(verdicts), n_unscored=n_unscored)
    if not len(labelled.at):
        none = replace(counts, reason="no row has a label")
        return Corrected(none, none, 0.0, 0)
    weight = tuned_weights(filled[scaled.at], scaled, groups[scaled.at], seed=seed)
    tuned, plain = (_linear(filled, groups, scaled, linear) for linear in (weight, np.zeros_like(weight)))
    corrected, alone = (
        _interval(linear, level=level, name=name).of(linear.value, replace(counts, n_groups=linear.n_groups))
        for linear, name in ((tuned, "PPI++"), (plain, "mean"))
    )
    return Corrected(
        estimate=_on_scale(corrected, low, span),
        plain=_on_scale(alone, low, span),
        weight=float(weight.mean()),
        labels_saved=_saved(plain.variance, tuned.variance, n=len(labelled.at), n_rows=len(verdicts)),
    )


@dataclass(frozen=True, slots=True)
class SelectionTest:
    """Whether the labelled rows are like the table in what the judge says of them.

    Attributes:
        differs: whether a draw at random, with the recorded chances, would show such rows in less than 1%.
        labelled: the mean verdict (a share, where verdicts pass or fail) as the labelled rows have it.
        table: the same of all rows.
    """

    differs: bool
    labelled: Estimate
    table: float


def selection_test(
    verdicts: Floats,
    groups: Ints,
    labelled: LabelledRows,
    *,
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
) -> SelectionTest:
    """Return a SelectionTest of labelled rows' choice, from all rows' verdicts, groups and LabelledRows."""
    table = float(verdicts.mean())
    difference = corrected_mean(
        np.full(len(verdicts), low), groups, labelled, low=low, high=high, level=0.99, seed=seed
    ).plain
    if difference.low is None or difference.high is None:
        return SelectionTest(False, difference, table)
    return SelectionTest(not difference.low - _SLACK <= table <= difference.high + _SLACK, difference, table)


def tuned_weights(verdict: Floats, labelled: LabelledRows, group: Ints, *, seed: int = 0) -> Floats:
    """Return weights 0..1, an array, from verdicts, LabelledRows and groups of rows; 0 below ten groups. It
    is fitted on the rows of other groups.

    It is the slope of the label on the verdict, which makes the variance of the corrected mean least.
    """
    names = np.unique(group)
    if len(names) < MIN_GROUPS:
        return np.zeros(len(verdict))
    fold_of = np.random.default_rng(seed).permutation(len(names)) % _FOLDS
    fold = fold_of[np.searchsorted(names, group)]
    weights = np.zeros(len(verdict))
    for part in range(_FOLDS):
        others = fold != part
        heavy = labelled.heavy[others]
        steep = slope(labelled.label[others], verdict[others], heavy / heavy.mean(), pseudo=KINDS)
        weights[~others] = min(1.0, max(0.0, steep))
    return weights


def slope(label: Floats, verdict: Floats, heavy: Floats | None = None, *, pseudo: float = 0.0) -> float:
    """Return the least-squares slope, a float, of labels on verdicts, two arrays; 0 where none differs.

    `pseudo` of a row of each kind is among them: right and wrong, at the lowest and at the highest verdict.
    """
    if not len(label) or float(np.ptp(verdict)) <= _EPS:
        return 0.0
    ends = 2 * [float(verdict.min()), float(verdict.max())]
    weight = np.append(np.ones(len(label)) if heavy is None else heavy, 4 * [pseudo])
    every, right = np.append(verdict, ends), np.append(label, [0.0, 0.0, 1.0, 1.0])
    apart = every - np.average(every, weights=weight)
    return float((weight * apart * right).sum()) / float((weight * apart**2).sum())


def _filled(verdicts: Floats) -> tuple[Floats, int]:
    """Verdicts, the mean where there is none, which is no error: the labels correct any guess."""
    missing = np.isnan(verdicts)
    n_missing = int(missing.sum())
    if not n_missing:
        return verdicts, 0
    scored = verdicts[~missing]
    return np.where(missing, scored.mean() if len(scored) else 0.0, verdicts), n_missing


def _linear(verdicts: Floats, groups: Ints, labelled: LabelledRows, weight: Floats) -> _Linear:
    """The corrected mean, linearised by row.

    Where the weights of the labels add up to the rows of the table, the draw had strata of known sizes: then
    a row is held against the others of its chance, else against all.
    """
    n_rows, n, verdict = len(verdicts), len(labelled.at), verdicts[labelled.at]
    chance = np.full(n, n / n_rows) if labelled.chance is None else labelled.chance
    heavy = 1.0 / chance
    total = float(heavy.sum())
    # rows that are all labelled need no guess
    weight = weight.mean() + (weight - weight.mean()) * (1.0 - chance)
    residual = labelled.label - weight * verdict
    centre = float(heavy @ residual) / total
    value = centre + float(heavy @ weight) / total * float(verdicts.mean())
    stratum = np.zeros(n, dtype=np.int64)
    if abs(total - n_rows) <= 1e-6 * n_rows:
        stratum = _alone_with_others(np.unique(np.round(chance, 12), return_inverse=True)[1])
    size = np.bincount(stratum).astype(np.float64)
    middle = (np.bincount(stratum, weights=heavy * residual) / np.bincount(stratum, weights=heavy))[stratum]
    several = (size / np.maximum(size - 1.0, 1.0))[stratum]
    parts = heavy / total * (residual - middle) * np.sqrt((1.0 - chance) * several)
    two_valued = bool(np.isin(labelled.label, (0.0, 1.0)).all())
    group = groups[labelled.at]
    left = float(heavy @ (1.0 - chance)) / total
    unseen = heavy * np.sqrt(1.0 - chance) / total
    return _Linear(
        value=min(1.0, max(0.0, value)),
        parts=parts,
        group=group,
        heavy=heavy,
        left=left,
        together=_together(groups, group, heavy, left),
        extra=_unseen(labelled.label, weight * verdict, stratum, unseen) if two_valued else 0.0,
        two_valued=two_valued,
        weighed=bool(weight.any()) and not stratum.any(),
        n_groups=len(np.unique(group)),
    )


def _alone_with_others(stratum: Ints) -> Ints:
    """Codes 0, 1, ... of strata; one with a single row joins its neighbour, as it shows no spread."""
    size = np.bincount(stratum)
    while len(size) > 1 and size.min() < 2:
        lone = int(size.argmin())
        stratum = np.where(stratum == lone, lone - 1 if lone else 1, stratum)
        stratum = np.unique(stratum, return_inverse=True)[1]
        size = np.bincount(stratum)
    return stratum.astype(np.int64)


def _together(groups: Ints, group: Ints, heavy: Floats, left: float) -> float:
    """How much the products of two labelled rows of one group count in the variance of a draw.

    That is 1 - pi_i pi_j / pi_ij of Horvitz and Thompson (1952), with pi_ij, the chance that both are drawn,
    told from the pairs that were, against all pairs of a labelled row and another of its group; over 1 - pi,
    which the parts have in them: 0 where rows were drawn one by one, 1 where whole groups were.
    """
    others = np.bincount(groups)[group] - 1.0
    _, group_codes = np.unique(group, return_inverse=True)
    drawn = float((np.bincount(group_codes, weights=heavy) ** 2).sum() - (heavy**2).sum())
    pairs = float((heavy * others).sum())
    return 0.0 if drawn <= pairs or min(pairs, left) <= 0.0 else min(1.0, (1.0 - pairs / drawn) / left)


def _clustered(parts: Floats, group: Ints, heavy: Floats, together: float) -> float:
    """Variance of a sum of rows of which the products within a group count by `together`.

    A group's sum is taken against the mean of the others (the jackknife: Tukey 1958); two degrees of freedom
    are gone, for the mean and for the weight of the verdicts.
    """
    _, group_codes = np.unique(group, return_inverse=True)
    share = np.bincount(group_codes, weights=heavy) / float(heavy.sum())
    sums = np.bincount(group_codes, weights=parts) / np.maximum(1.0 - share, 0.1)
    alone = float((parts**2).sum())
    whole = float((sums**2).sum()) * (len(sums) - 1.0) ** 2 / (len(sums) * max(1.0, len(sums) - 2.0))
    return max(alone / 2.0, alone + together * (whole - alone))


def _unseen(label: Floats, guess: Floats, stratum: Ints, heavy: Floats) -> float:
    """Variance that a part of a row of each kind would add to each stratum: right and wrong, at its lowest
    and its highest verdict.
    """
    added, n_strata = 0.0, int(stratum.max()) + 1
    for code in range(n_strata):
        in_stratum = stratum == code
        n, residual = int(in_stratum.sum()), float((label - guess)[in_stratum].mean())
        kinds = [
            end - at
            for end in (0.0, 1.0)
            for at in (float(guess[in_stratum].min()), float(guess[in_stratum].max()))
        ]
        added += float(heavy[in_stratum].sum()) ** 2 * unseen_variance(n, residual, kinds, PSEUDO / n_strata)
    return added


def unseen_variance(n: float, residual: float, kinds: Sequence[float], pseudo: float) -> float:
    """Return a mean's variance, from n, its residual, kinds of row to add, and `pseudo` of a row of each."""
    total = n + len(kinds) * pseudo
    middle = (n * residual + pseudo * sum(kinds)) / total
    squares = pseudo * sum((kind - middle) ** 2 for kind in kinds) + n * (residual - middle) ** 2
    return squares / total**2


def _interval(linear: _Linear, *, level: float, name: str) -> Interval:
    """Wilson's interval on the effective n of a share, t on the logit of any other mean."""
    if linear.n_groups < MIN_GROUPS:
        return Interval(reason=too_few(linear.n_groups))
    value, variance, n = linear.value, linear.variance, len(linear.parts)
    spread = value * (1.0 - value)
    df = _freedom(linear) if linear.together > _WHOLE else linear.n_groups - 1.0
    if variance <= _EPS**2:
        every = float(np.abs(linear.parts).sum()) <= _EPS
        return (
            Interval(value, value, f"{name}, every row is labelled")
            if every
            else Interval(reason="no spread")
        )
    if linear.two_valued:
        low, high = share_limits(value, n, variance, t_quantile(level, df), evened=linear.weighed)
        return Interval(low, high, f"{name}, Wilson on the effective n, t({df:.3g})")
    if spread <= _EPS:
        return Interval(reason="no spread between groups to make an interval from")
    df = _freedom(linear)
    middle, half = float(logit(value)), t_quantile(level, df) * math.sqrt(variance) / spread
    return Interval(float(expit(middle - half)), float(expit(middle + half)), f"{name}, logit, t({df:.3g})")


def share_limits(
    value: float, n: int, variance: float, quantile: float, *, evened: bool
) -> tuple[float, float]:
    """Return Wilson's (low, high) of a share, from its value, n labels, variance, quantile, evened or not.

    What verdicts leave of labels leans to the ends, so the shorter side is lengthened, the more the fewer the
    labels.
    """
    near = (value * n + 2.0 * PSEUDO) / (n + 4.0 * PSEUDO)
    low, high = wilson(value, near * (1.0 - near) / variance, quantile)
    if not evened:
        return low, high
    down, up = value - low, high - value
    part = min(1.0, _SKEWED / n)
    down, up = down + part * max(0.0, up - down), up + part * max(0.0, down - up)
    return max(0.0, value - down), min(1.0, value + up)


def _freedom(linear: _Linear) -> float:
    """Degrees of freedom of the variance, by the groups' parts."""
    _, codes = np.unique(linear.group, return_inverse=True)
    sums: Floats = np.bincount(codes, weights=linear.parts).astype(np.float64)
    return linear.n_groups - 1.0 if float((sums**2).sum()) <= _EPS else freedom(sums, linear.n_groups)


def _on_scale(share: Estimate, low: float, span: float) -> Estimate:
    value, lower, upper = (
        None if number is None else low + span * number for number in (share.value, share.low, share.high)
    )
    return replace(share, value=value, low=lower, high=upper)


def _saved(plain: float, tuned: float, *, n: int, n_rows: int) -> int:
    """More labels that the labels alone would need: their variance falls by 1 / n - 1 / N."""
    if tuned <= 0.0 or plain <= tuned or n >= n_rows:
        return 0
    per_label = plain / (1.0 / n - 1.0 / n_rows)
    return max(0, math.floor(1.0 / (tuned / per_label + 1.0 / n_rows)) - n)
