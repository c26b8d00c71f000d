"""What one judge loses against another, from the rows on which they differ.

Two judges that give the same verdict on a row are right or wrong there together: neither loses anything. So a
loss is bounded without a label (`worst_loss`), and labels are best spent where
verdicts differ (`loss_on_labels`). Of a row on which they differ the loss lies between the least and the
largest that any label would make of it; r says how far up it lies, 0..1. The mean of r among the labelled
rows, carried over to all rows of the table, is the loss of the table; that mean is a share, and has Wilson's
interval on its effective n, by question (`intervals.score_interval`).

A macro metric divides by the share of each class of labels, which labels on rows where judges agree tell,
post-stratified by the verdict that both gave (Holt and Smith 1979); the error of the shares joins that of the
loss by its derivative (Woodruff 1971). Simulated: `tests/benchmarks/labels_where_judges_differ.py`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtrit

from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats.intervals import MIN_GROUPS, mean_estimate, score_interval, t_quantile, too_few
from judgecal.stats.means import MIN_STRATUM, LinearMean, Means
from judgecal.stats.prediction_powered import PSEUDO, LabelledRows, unseen_variance
from judgecal.stats.sample import Bools, Floats, Ints
from judgecal.stats.significance import POWER

MACRO = ("macro_agreement", "balanced_accuracy")
_CLASSES = 3  # thirds of a scale; a binary one has the first and the last
_FEWER, _MORE = _CLASSES, _CLASSES + 1  # cells of rows on which the candidate's verdict is lower, higher
_GRID = 120  # labels that are tried on a scale without steps
_TOGETHER = 0.25  # how alike the losses of two rows of a question are taken to be, in a plan
_MORE_VARIANCE = 1.1  # for what a plan does not know: the shares of the classes, and the rows as a sample
_AGREEING = 0.25  # the part of a draw on which judges agree
_SPARE = 1.5  # times the labels of a class that are wanted, so that four draws in five hold as many
_EPS = 1e-12


def by_rows(metric: str, scale: Scale) -> bool:
    """Return whether a loss is a mean over rows, so that each bounds it, from a metric's name and a Scale."""
    if not scale.numeric:
        return False
    return metric in (*MACRO, "mean_agreement") or (metric == "accuracy" and scale.kind == "binary")


@dataclass(frozen=True)
class VerdictPairs:
    """Verdicts of two judges on N rows, both on the people's scale.

    Attributes:
        reference, candidate: N; NaN where unscored, which counts as the verdict farthest from any label.
        groups: N, the code of each row's question.
    """

    reference: Floats
    candidate: Floats
    groups: Ints
    scale: Scale
    metric: str

    @property
    def n(self) -> int:
        return len(self.reference)

    @property
    def macro(self) -> bool:
        return self.metric in MACRO

    @property
    def unscored(self) -> Bools:
        """N: whether one of the judges gave no verdict on the row."""
        return np.asarray(np.isnan(self.reference) | np.isnan(self.candidate), dtype=np.bool_)

    @cached_property
    def differ(self) -> Bools:
        """N: whether the two verdicts on the row differ."""
        same = (self.reference == self.candidate) | (np.isnan(self.reference) & np.isnan(self.candidate))
        return np.asarray(~same, dtype=np.bool_)

    @cached_property
    def cells(self) -> Ints:
        """N: the class of the verdict that both gave, or which side the candidate lies on."""
        cells = np.where((self.candidate > self.reference) | np.isnan(self.reference), _MORE, _FEWER)
        return np.where(self.differ, cells, self.class_of(self.reference)).astype(np.int64)

    def class_of(self, labels: Floats) -> Ints:
        """Return the stratum (0, 1 or 2; 0 of none) of each label in an array, an array."""
        distinct, place = np.unique(labels, return_inverse=True)
        classes = [0 if math.isnan(label) else self.scale.stratum(label) for label in distinct.tolist()]
        return np.array(classes, dtype=np.int64)[place]

    def share_differing(self, *, level: float) -> Estimate:
        """Return the Estimate, at a level, of the share of rows on which these judges differ."""
        share = mean_estimate(self.differ.astype(np.float64), self.groups, level=level)
        return replace(share, n_unscored=int(self.unscored.sum()))

    def heights(self, labels: Floats, shares: Floats | None) -> Floats:
        """Return rows' weights, an array, from labels and class shares or None: 1, or 1 / (k share)."""
        if shares is None:
            return np.ones(len(labels))
        weights = np.where(shares > _EPS, 1.0 / (np.maximum(shares, _EPS) * (shares > _EPS).sum()), 0.0)
        return np.asarray(weights[self.class_of(labels)], dtype=np.float64)

    def losses(self, at: Ints, labels: Floats, shares: Floats | None) -> Floats:
        """Return losses, an array, from rows' places, their labels, and class shares or None."""
        near = [_closeness(side[at], labels, self.scale) for side in (self.reference, self.candidate)]
        return (near[0] - near[1]) * self.heights(labels, shares)

    def ends(self, shares: Floats | None) -> tuple[Floats, Floats]:
        """Return two arrays, least and largest loss by any label on each row, from class shares or None."""
        verdicts = np.stack([self.reference, self.candidate])
        pairs, place = np.unique(
            np.nan_to_num(verdicts[:, self.differ], nan=np.inf), axis=1, return_inverse=True
        )
        pairs = np.where(np.isinf(pairs), np.nan, pairs)
        lows, highs = np.zeros(self.n), np.zeros(self.n)
        if pairs.shape[1]:
            labels = self._labels()
            if shares is not None:
                labels = labels[shares[self.class_of(labels)] > _EPS]
            near = [_closeness(side[:, None], labels[None, :], self.scale) for side in pairs]
            lost = (near[0] - near[1]) * self.heights(labels, shares)
            lows[self.differ], highs[self.differ] = lost.min(axis=1)[place], lost.max(axis=1)[place]
        return lows, highs

    def _labels(self) -> Floats:
        """The labels that people might give."""
        scale = self.scale
        step = 1.0 if scale.kind == "binary" else scale.step
        n = _GRID if step is None else round(scale.span / step)
        return np.asarray(np.linspace(scale.low, scale.high, n + 1), dtype=np.float64)


def _closeness(verdicts: Floats, labels: Floats, scale: Scale) -> Floats:
    far = np.maximum(labels - scale.low, scale.high - labels)
    apart = np.where(np.isnan(verdicts), far, np.abs(verdicts - labels))
    return np.asarray(1.0 - apart / scale.span, dtype=np.float64)


# --- without a label


@dataclass(frozen=True)
class KnownClasses:
    """Labels drawn at random from rows like these, for the share of each class of labels."""

    classes: Ints  # strata of the labels
    groups: Ints

    @property
    def shares(self) -> Floats:
        return np.bincount(self.classes, minlength=_CLASSES) / max(1, len(self.classes))

    def least(self, level: float) -> Floats | None:
        """Return lower bounds of these class shares, an array, at a level; None if a class may be empty."""
        there = np.unique(self.classes)
        each = 1.0 - 2.0 * (1.0 - level) / len(there)
        lows = np.zeros(_CLASSES)
        for code in there.tolist():
            lows[code] = mean_estimate(self.classes == code, self.groups, level=each).low or 0.0
        return lows if len(there) > 1 and (lows[there] > _EPS).all() else None


def worst_loss(judges: VerdictPairs, known: KnownClasses | None, *, level: float) -> Estimate | None:
    """Bound a loss, an Estimate or None, from VerdictPairs, KnownClasses or None, and a level.

    Plain means: at most |a - b| a row. By a macro metric a row of a rare class weighs more, so the shares of
    the classes have to be bounded from below first; the level is halved between rows and shares (Bonferroni).

    Returns:
        None by a macro metric without the shares, or where a class may be empty.
    """
    shares = least = None
    if judges.macro:
        level = 1.0 - (1.0 - level) / 2.0
        least = None if known is None else known.least(level)
        if known is None or least is None:
            return None
        shares = known.shares
    value, highs = float(judges.ends(shares)[1].mean()), judges.ends(least)[1]
    n_groups = len(np.unique(judges.groups))
    counts = Estimate(value, level=level, n=judges.n, n_expected=judges.n, n_groups=n_groups)
    counts = replace(counts, n_unscored=int(judges.unscored.sum()))
    if n_groups < MIN_GROUPS:
        return replace(counts, reason=too_few(n_groups, gives="bound"))
    whole = 1.0 if least is None else 1.0 / (float((least > 0.0).sum()) * float(least[least > 0.0].min()))
    high = _upper(highs, judges.groups, whole, level)
    return replace(counts, low=min(0.0, value), high=high, method="largest loss a row, bounded by question")


def _upper(values: Floats, groups: Ints, whole: float, level: float) -> float:
    """One-sided bound of a mean of rows of which few are not 0, as that of `losses_against_best`: the
    variance is that at the bound, and one more question with the `whole` of it counts in its step."""
    _, group_codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    mean, n_groups = float(values.mean()), len(sizes)
    parts = np.bincount(group_codes, weights=values) / len(values)
    spread = float(((parts - mean * sizes / len(values)) ** 2).sum()) * n_groups / (n_groups - 1.0)
    more = whole / n_groups
    step = float((parts**2).sum() + more**2) / float(np.abs(parts).sum() + more)  # some rows can only win
    c = float(stdtrit(n_groups - 1.0, level))
    return mean + c**2 * step / 2.0 + c * math.sqrt(spread + (c * step) ** 2 / 4.0)


# --- with labels


@dataclass(frozen=True, slots=True)
class LossOnLabels:
    """What labels say of a candidate's loss."""

    loss: Estimate  # reference less candidate, two-sided at the level
    upper: float | None  # one-sided at the level; None without an interval
    n_differ: int  # labels on rows where the judges differ
    classes: tuple[int, ...]  # labels of each class; empty by a plain metric


def loss_on_labels(judges: VerdictPairs, drawn: LabelledRows, *, level: float) -> LossOnLabels:
    """Return the LossOnLabels of the candidate, from VerdictPairs, LabelledRows drawn, and a level.

    No interval on fewer than ten labelled questions, without a label where they differ, or by a macro metric
    with fewer than ten labels of a class.
    """
    at, weight = drawn.at, drawn.heavy
    inside, n_groups = judges.differ[at], len(np.unique(judges.groups[at]))
    counts = Estimate(None, level=level, n=len(at), n_expected=len(at), n_groups=n_groups)
    counts = replace(counts, n_unscored=int(judges.unscored[at].sum()))
    shares, of_shares = None, np.zeros((len(at), _CLASSES))
    classes: tuple[int, ...] = ()
    if judges.macro:
        shares, of_shares = _shares(judges, drawn, weight)
        n_of_class = np.bincount(judges.class_of(drawn.label), minlength=_CLASSES)
        there = [0, 2] if judges.scale.kind == "binary" else np.flatnonzero(n_of_class).tolist()
        classes = tuple(int(n_of_class[code]) for code in there)

    def refused(why: str) -> LossOnLabels:
        return LossOnLabels(replace(counts, reason=why), None, int(inside.sum()), classes)

    if n_groups < MIN_GROUPS:
        return refused(too_few(n_groups))
    if judges.macro and (len(classes) < 2 or min(classes) < MIN_STRATUM):
        few = min(classes) if len(classes) > 1 else 0
        return refused(f"{few} labels in a class of answers: below {MIN_STRATUM} we decide nothing")
    if not judges.differ.any():
        same = replace(counts, value=0.0, low=0.0, high=0.0, method="no row differs")
        return LossOnLabels(same, 0.0, 0, classes)
    if not inside.any():
        return refused("none of the labels is of a row on which the judges differ")
    lows, highs = judges.ends(shares)
    wide = highs - lows
    cells = np.where(judges.differ, judges.cells, -1)
    if len(np.unique(cells[at][inside])) < len(np.unique(cells[judges.differ])):
        cells = np.where(judges.differ, _FEWER, -1)  # one side has no label: both are one
    lost = judges.losses(at, drawn.label, shares)
    place = np.divide(lost - lows[at], wide[at], out=np.zeros(len(at)), where=wide[at] > _EPS)
    if wide.sum() <= _EPS:  # no label makes a difference
        cells, wide = np.where(judges.differ, _FEWER, -1), np.where(judges.differ, _EPS, 0.0)
    linear, total, expected = _linear(judges, drawn, cells, wide, np.round(np.clip(place, 0.0, 1.0), 9))
    least = float(lows.mean())
    value = least + total * linear.value
    of_rows = lows + wide * expected  # the rows are a sample themselves, by question
    fixed = _clustered((of_rows - of_rows.mean()) / judges.n, judges.groups)
    if shares is not None:
        by_class = judges.class_of(drawn.label)
        carried = np.bincount(by_class, np.where(inside, _by_cell(judges, at, weight) * lost, 0.0), _CLASSES)
        slopes = np.where(shares > _EPS, -carried / np.maximum(shares, _EPS), 0.0)
        fixed += _clustered(of_shares @ slopes, judges.groups[at])
        fixed += _unseen(judges, judges.cells[at], slopes[by_class], slopes[shares > _EPS].tolist())

    def limits(two_sided: float) -> tuple[float, float]:
        ends = score_interval(linear, level=two_sided)
        if ends.low is None or ends.high is None:  # every r alike: a share like any other
            ends = score_interval(replace(linear, two_valued=True), level=two_sided)
        assert ends.low is not None and ends.high is not None
        other = t_quantile(two_sided, n_groups - 1.0) ** 2 * fixed
        below, above = (total * abs(end - linear.value) for end in (ends.low, ends.high))
        return value - math.sqrt(below**2 + other), value + math.sqrt(above**2 + other)

    low, high = limits(level)
    method = f"weighted by the draw, Wilson on the effective n of what can be lost, t({n_groups - 1})"
    estimate = replace(counts, value=value, low=low, high=high, method=method)
    return LossOnLabels(estimate, limits(2.0 * level - 1.0)[1], int(inside.sum()), classes)


def _shares(judges: VerdictPairs, drawn: LabelledRows, weight: Floats) -> tuple[Floats, Floats]:
    """The share of each class of labels, post-stratified by `cells`, and each label's part in its error."""
    member = judges.class_of(drawn.label)[:, None] == np.arange(_CLASSES)
    cells, shares, parts = judges.cells[drawn.at], np.zeros(_CLASSES), np.zeros(member.shape)
    overall, by_cell = weight @ member / weight.sum(), _by_cell(judges, drawn.at, weight)
    for cell in np.unique(judges.cells).tolist():
        in_cell, n = cells == cell, int((cells == cell).sum())
        size = float((judges.cells == cell).mean())
        rate = by_cell[in_cell] @ member[in_cell] / size if n else overall
        shares += size * rate
        parts[in_cell] = (
            by_cell[in_cell][:, None] * math.sqrt(n / max(1.0, n - 1.0)) * (member[in_cell] - rate)
        )
    return shares, parts


def _by_cell(judges: VerdictPairs, at: Ints, weight: Floats) -> Floats:
    """The part of all rows that each label stands for: those of its cell, by weight."""
    whole = np.bincount(judges.cells[at], weight, _MORE + 1)
    part = np.bincount(judges.cells, minlength=_MORE + 1) / judges.n / np.maximum(whole, _EPS)
    return np.asarray(weight * part[judges.cells[at]], dtype=np.float64)


def _unseen(judges: VerdictPairs, cells: Ints, parts: Floats, kinds: Sequence[float]) -> float:
    """Variance for the classes that few labels of rows on which the judges agree may not have shown."""
    added = 0.0
    for cell in np.unique(judges.cells[~judges.differ]).tolist():
        in_cell, size = cells == cell, float((judges.cells == cell).mean())
        mean_part = float(parts[in_cell].mean()) if in_cell.any() else 0.0
        added += size**2 * unseen_variance(float(in_cell.sum()), mean_part, kinds, PSEUDO)
    return added


def _linear(
    judges: VerdictPairs, drawn: LabelledRows, cells: Ints, wide: Floats, place: Floats
) -> tuple[LinearMean, float, Floats]:
    """The mean place of the losses, linearised by question within each side on which they differ; what all
    rows can lose and win together, a row; and N, the mean place of each row's side."""
    at, codes = drawn.at, np.unique(cells[cells >= 0])
    sizes = np.array([wide[cells == code].sum() for code in codes])
    _, groups = np.unique(judges.groups[at], return_inverse=True)
    shape, n_groups = (len(codes),), int(groups.max()) + 1
    rates, items, n_of, expected = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(judges.n)
    influence, share = np.zeros((n_groups, *shape)), np.zeros((n_groups, *shape))
    for number, code in enumerate(codes.tolist()):
        in_cell = cells[at] == code
        heavy = wide[at][in_cell] * drawn.heavy[in_cell]
        heavy = heavy / heavy.sum()
        rates[number] = heavy @ place[in_cell]
        items[number] = 1.0 / float(heavy @ heavy)
        n_of[number] = len(np.unique(groups[in_cell]))
        influence[:, number] = np.bincount(
            groups[in_cell], heavy * (place[in_cell] - rates[number]), n_groups
        )
        share[:, number] = np.bincount(groups[in_cell], heavy, n_groups)
        expected[cells == code] = rates[number]
    used = np.ones((1, 1), dtype=np.bool_)
    blank = np.zeros((1, 1, 1))
    linear = LinearMean(
        weights=sizes / sizes.sum(),
        ratios=rates,
        influence=influence,
        share=share,
        items=items,
        groups=n_of,
        all_groups=n_groups,
        repeats=used[0],
        two_valued=bool(np.isin(place[judges.differ[at]], (0.0, 1.0)).all()),
        means=Means(blank, blank, used, 0.0, 1.0),
    )
    return linear, float(sizes.sum()) / judges.n, expected


def _clustered(parts: Floats, groups: Ints) -> float:
    _, group_codes = np.unique(groups, return_inverse=True)
    sums = np.bincount(group_codes, weights=parts)
    return float((sums**2).sum()) * len(sums) / max(1.0, len(sums) - 1.0)


# --- the draw, and how many labels


def draw_strata(judges: VerdictPairs, shares: Floats | None) -> tuple[Ints, Floats]:
    """Return two arrays, strata of rows and their spreads, from VerdictPairs and class shares or None.

    Rows on which the judges agree are parted by the class of the verdict, the others by how much can be lost
    on them. Labels where they agree tell the shares of the classes by a macro metric: a quarter of the draw,
    each class alike; else they are there so that every row has a chance, a twentieth.

    Returns:
        N strata, 0 and up without gaps; their spreads as `goldset.draw.allocate` takes them, by which alone
        labels are shared out.
    """
    lows, highs = judges.ends(shares)
    wide, differ = highs - lows, judges.differ
    place = np.ceil(3.0 * wide / max(float(wide.max()), _EPS) - _EPS)
    kinds = np.where(differ, _CLASSES + place, judges.cells if judges.macro else 0)
    _, strata = np.unique(kinds, return_inverse=True)
    sizes = np.bincount(strata)
    spreads = np.sqrt(np.bincount(strata, wide**2) / sizes)
    agree = np.bincount(strata, differ) == 0
    part = _AGREEING if judges.macro else _AGREEING / 5.0
    total = float(sizes @ spreads) or 1.0
    even = total * part / (1.0 - part) / max(1, int(agree.sum()))
    return strata.astype(np.int64), np.asarray(np.where(agree, even / sizes, spreads), dtype=np.float64)


@dataclass(frozen=True)
class Outlook:
    """What labelled items elsewhere let expect of the rows where two judges differ."""

    loss: float  # of the candidate, as it looks there
    error: float  # its standard error
    # where between least and most the losses lie on average, where its verdict is lower, and higher; 0..1
    places: tuple[float, float]
    shares: Floats | None  # of each class of labels, by a macro metric

    @classmethod
    def of(cls, judges: VerdictPairs, labels: Floats) -> Outlook:
        """Make an Outlook on the loss, from VerdictPairs and an array of labels of all their items."""
        shares, every = None, np.arange(judges.n)
        if judges.macro:
            shares = np.bincount(judges.class_of(labels), minlength=_CLASSES) / judges.n
        lost, (lows, highs), places = judges.losses(every, labels, shares), judges.ends(shares), []
        for side in (_FEWER, _MORE):
            on_side = judges.differ & (judges.cells == side)
            wide = float((highs - lows)[on_side].sum())
            pseudo = wide / max(1, int(on_side.sum())) or 1.0  # a row each way, so that no few rows settle it
            places.append((float((lost - lows)[on_side].sum()) + pseudo) / (wide + 2.0 * pseudo))
        error = math.sqrt(_clustered((lost - lost.mean()) / judges.n, judges.groups))
        return cls(float(lost.mean()), error, (places[0], places[1]), shares)

    def planned(self, margin: float) -> float:
        """Return the loss to plan by, a float, for a margin: as it looks, shrunk if few labels say so.

        Shrunk to 0 as if losses of judges that are worth a look had a standard deviation of half the margin.
        """
        trust = (margin / 2.0) ** 2
        return max(0.0, self.loss * trust / (trust + self.error**2))


def labels_needed(
    judges: VerdictPairs,
    outlook: Outlook,
    *,
    margin: float,
    level: float,
    strata: Ints,
    sizes: Callable[[int], Sequence[int]],
) -> int | None:
    """Count labels to draw: VerdictPairs, Outlook, margin, level, rows' strata, function n -> their sizes.

    With the planned loss l and the variance v of n labels of this draw, by weights and by question:
    margin - l >= (t_level + z_power) sqrt(v).

    Args:
        strata: N, which stratum of the draw each row is in; `sizes(n)`: how many labels each has of n.

    Returns:
        None where the loss as it looks is beyond the margin, or all rows would not do.
    """
    lows, highs = judges.ends(outlook.shares)
    wide, room = highs - lows, margin - outlook.planned(margin)
    if room <= _EPS:
        return None
    place = np.where(judges.cells == _MORE, outlook.places[1], outlook.places[0])
    squares = wide**2 * place * (1.0 - place) / judges.n**2
    counts = np.bincount(strata)
    by_stratum = np.bincount(strata, weights=squares, minlength=len(counts))
    _, group_codes = np.unique(judges.groups, return_inverse=True)
    together = float((np.bincount(group_codes, weights=np.sqrt(squares)) ** 2).sum() - squares.sum())
    kinds = _class_rates(judges, outlook, strata, len(counts))

    def enough(n: int) -> bool:
        drawn = np.maximum(np.array(sizes(n), dtype=np.float64), _EPS)
        if kinds is not None and (drawn @ kinds).min() < _SPARE * MIN_STRATUM:
            return False
        variance = _MORE_VARIANCE * float((counts / drawn) @ by_stratum) + _TOGETHER * together
        reach = float(stdtrit(max(1.0, n - 1.0), level)) + float(ndtri(POWER))
        return room >= reach * math.sqrt(variance)

    if not enough(judges.n):
        return None
    return bisect.bisect_left(range(judges.n), True, lo=min(MIN_GROUPS, judges.n), key=enough)


def _class_rates(judges: VerdictPairs, outlook: Outlook, strata: Ints, n: int) -> Floats | None:
    """S x k: the part of each stratum's rows whose label is of each class, were verdicts right that agree."""
    if outlook.shares is None:
        return None
    there = np.flatnonzero(outlook.shares > _EPS)
    rates = np.zeros((n, len(there)))
    for place, code in enumerate(there.tolist()):
        expected = np.where(judges.differ, outlook.shares[code], judges.cells == code)
        rates[:, place] = np.bincount(strata, expected, n) / np.maximum(np.bincount(strata, minlength=n), 1)
    return rates
