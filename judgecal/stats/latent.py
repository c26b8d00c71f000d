"""Agreement with the latent truth: how often a rater or a judge is right, where nobody knows who is.

Two people who agree are not both right, and a rater is held against raters who err as well: what they reach with each
other lies below what each reaches with the truth. Given the truth, errors are taken to be independent; the shares of
the classes and every rater's errors are then those under which the ratings seen are the most likely.
Source: Dawid and Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from judgecal.records import Estimate, Result
from judgecal.scale import Scale
from judgecal.stats.intervals import MIN_GROUPS, Interval, bootstrap_interval, too_few
from judgecal.stats.reliability import groups_of, read_ratings
from judgecal.stats.sample import Floats, Ints, as_scale
from judgecal.stats.stand_in import MIN_SHARED

N_BOOT = 200
"""Draws of groups; the model is fitted to all of them at once."""

_ROUNDS = 1000
_STILL = 1e-6
_SMOOTH = 1e-6  # what was never seen is not impossible
_GRADED = "labels with an order: an error has a size there, and this model knows right and wrong alone"
_FEW = f"it takes {MIN_SHARED} items with three ratings, or with two where there are but two raters"
_THREE = "errors are independent given the truth, each rater with its own on each label"
_TWO = (
    "errors are independent given the truth; as two raters cannot tell which of them errs, both are taken to err "
    "equally often, on each label alike"
)


@dataclass(frozen=True, slots=True)
class Latent(Result):
    """What raters and judges reach with the latent truth.

    Attributes:
        raters, judges: name -> how often it says the truth, the mean over the classes.
        prevalence: class -> its share of the items.
        assumes: what has to hold for that; nothing is told where there is a `reason`.
        n, n_groups: items with two ratings or more, and their questions.
    """

    raters: Mapping[str, Estimate] = field(default_factory=dict)
    judges: Mapping[str, Estimate] = field(default_factory=dict)
    prevalence: Mapping[str, float] = field(default_factory=dict)
    assumes: str = ""
    n: int = 0
    n_groups: int = 0
    reason: str | None = None


def latent_truth(
    ratings: Mapping[str, Mapping[Hashable, object]],
    judges: Mapping[str, Mapping[Hashable, object]],
    *,
    scale: Scale | str,
    groups: Mapping[Hashable, Hashable],
    level: float = 0.95,
    n_boot: int = N_BOOT,
    seed: int = 0,
) -> Latent:
    """Fit the truth to what people say, and tell how often people and judges say it.

    People alone fix the shares of the classes and their own errors; each judge's errors are fitted with those held and
    without the other judges, so that judges who err alike do not outvote people. Intervals: cluster bootstrap.

    Args:
        ratings: rater -> item -> label, people without those who were mostly asked to break ties.
        judges: judge -> item -> verdict on the same scale; None, or no item, = unscored, and left out.
        groups: the question of each item.

    Raises:
        InputError: a label is none of the scale, an item has no group.
    """
    people = as_scale(scale)
    if people.kind not in ("binary", "nominal"):
        return Latent(reason=_GRADED)
    both = {**{f"rater {one}": row for one, row in ratings.items()}, **{f"judge {one}": judges[one] for one in judges}}
    read = read_ratings(both, scale=people)
    rated = (~np.isnan(read.labels[:, : len(ratings)])).sum(axis=1) >= 2
    codes = np.where(np.isnan(read.labels), -1.0, read.labels).astype(np.int64)[rated]
    group_of = np.unique(groups_of(groups, read.items)[rated], return_inverse=True)[1]
    own = {name: codes[:, at] for at, name in enumerate(ratings) if (codes[:, at] >= 0).sum() >= MIN_SHARED}
    given = np.array(list(own.values())).reshape(len(own), len(codes)) >= 0
    three = int((given.sum(axis=0) >= 3).sum()) >= MIN_SHARED
    n, n_groups = len(codes), len(np.unique(group_of))
    if len(own) < 2 or not (three or len(own) == 2):
        return Latent(n=n, n_groups=n_groups, reason=_FEW)
    words = list(read.words) if people.kind == "nominal" else ["0", "1"]
    table = np.stack(list(own.values()), axis=1)
    fit = _Fit.of(table, group_of, n_classes=len(words), symmetric=not three, n_boot=n_boot, seed=seed)
    said = {name: codes[:, len(ratings) + at] for at, name in enumerate(judges)}
    return Latent(
        raters={name: _estimate(fit.rater(at), own[name], group_of, level) for at, name in enumerate(own)},
        judges={name: _estimate(fit.judge(verdicts), verdicts, group_of, level) for name, verdicts in said.items()},
        prevalence=dict(zip(words, fit.prior[0].tolist(), strict=True)),
        assumes=_THREE if three else _TWO,
        n=n,
        n_groups=n_groups,
    )


def _estimate(draws: Floats, codes: Ints, group_of: Ints, level: float) -> Estimate:
    """The first of the draws is of the items themselves, the others of draws of their groups."""
    used = codes >= 0
    n_groups = len(np.unique(group_of[used]))
    counts = Estimate(None, level=level, n=int(used.sum()), n_expected=len(used), n_groups=n_groups)
    if not used.any():
        return replace(counts, reason="no verdict on these items")
    few = Interval(reason=too_few(n_groups)) if n_groups < MIN_GROUPS else None
    return (few or bootstrap_interval(draws[1:], level=level)).of(float(draws[0]), counts)


@dataclass(frozen=True)
class _Fit:
    """The model fitted to D samples at once: the items themselves, then draws of their groups.

    Items with the same ratings are one pattern (P of them); `drawn` D x G says how often each group is in a sample.
    """

    drawn: Floats
    pattern_of: Ints  # n
    group_of: Ints  # n
    prior: Floats  # D x K
    errors: Floats  # D x R x K x K: truth, then label
    joint: Floats  # D x P x K: the truth's share times the likelihood of the pattern

    @classmethod
    def of(cls, codes: Ints, group_of: Ints, *, n_classes: int, symmetric: bool, n_boot: int, seed: int) -> _Fit:
        """Fit to n x R labels as class numbers, -1 = missing."""
        patterns, pattern_of = np.unique(codes, axis=0, return_inverse=True)
        pattern_of = pattern_of.reshape(-1)
        n_groups = int(group_of.max()) + 1
        chance = np.full(n_groups, 1.0 / n_groups)
        draws = np.random.default_rng(seed).multinomial(n_groups, chance, size=n_boot)
        drawn = np.vstack([np.ones(n_groups), draws])
        said = (patterns[:, :, None] == np.arange(n_classes)).astype(np.float64)  # P x R x K
        weights = drawn @ _counted(group_of, pattern_of, n_groups, len(patterns))  # D x P
        truth = np.broadcast_to(said.sum(axis=1) / said.sum(axis=(1, 2))[:, None], (len(drawn), *said.shape[::2]))
        before = np.zeros(1)
        for _ in range(_ROUNDS):
            prior, errors = _most_likely(truth, weights, said, symmetric=symmetric)
            joint = prior[:, None, :] * np.exp(_flat(np.log(errors)) @ said.reshape(len(said), -1).T).swapaxes(1, 2)
            truth = joint / joint.sum(axis=2, keepdims=True)
            if before.shape == errors.shape and np.abs(errors - before).max() < _STILL:
                break
            before = errors
        return cls(drawn, pattern_of, group_of, prior, errors, joint)

    def rater(self, at: int) -> Floats:
        """D: how often a rater says the truth, the mean over the classes."""
        return np.asarray(np.diagonal(self.errors[:, at], axis1=1, axis2=2).mean(axis=1))

    def judge(self, codes: Ints) -> Floats:
        """D: the same of a judge, from n verdicts as class numbers; the people's part of the fit is held."""
        n_classes, used = self.prior.shape[1], codes >= 0
        cells = self.pattern_of[used] * n_classes + codes[used]
        shape = (self.drawn.shape[1], self.joint.shape[1] * n_classes)
        seen = (self.drawn @ _counted(self.group_of[used], cells, *shape)).reshape(len(self.drawn), -1, n_classes)
        truth = np.repeat((self.joint / self.joint.sum(axis=2, keepdims=True))[..., None], n_classes, axis=3)
        before = np.zeros(1)
        for _ in range(_ROUNDS):
            errors = np.einsum("dpv,dpkv->dkv", seen, truth) + _SMOOTH
            errors /= errors.sum(axis=2, keepdims=True)
            if before.shape == errors.shape and np.abs(errors - before).max() < _STILL:
                break
            before = errors
            joint = self.joint[..., None] * errors[:, None]
            truth = joint / joint.sum(axis=2, keepdims=True)
        return np.asarray(np.diagonal(errors, axis1=1, axis2=2).mean(axis=1))


def _flat(errors: Floats) -> Floats:
    """D x R x K x K as D x K x RK: all labels of all raters, by the truth."""
    draws, raters, classes, _ = errors.shape
    return errors.swapaxes(1, 2).reshape(draws, classes, raters * classes)


def _counted(rows: Ints, columns: Ints, n_rows: int, n_columns: int) -> Floats:
    return (
        np.bincount(rows * n_columns + columns, minlength=n_rows * n_columns).reshape(n_rows, n_columns).astype(float)
    )


def _most_likely(truth: Floats, weights: Floats, said: Floats, *, symmetric: bool) -> tuple[Floats, Floats]:
    """Shares of the classes (D x K) and errors (D x R x K x K), where the truth of each pattern is known by chance."""
    share = truth * weights[..., None]  # D x P x K
    prior = share.sum(axis=1) + _SMOOTH
    counts = (share.swapaxes(1, 2) @ said.reshape(len(said), -1)).reshape(*prior.shape, *said.shape[1:]).swapaxes(1, 2)
    n_classes = prior.shape[1]
    if symmetric:
        right = np.trace(counts, axis1=2, axis2=3).sum(axis=1) / counts.sum(axis=(1, 2, 3))
        right = np.clip(right, _SMOOTH, 1.0 - _SMOOTH)[:, None, None, None]
        errors = np.where(np.eye(n_classes) > 0.0, right, (1.0 - right) / (n_classes - 1.0))
        errors = np.broadcast_to(errors, counts.shape)
    else:
        errors = (counts + _SMOOTH) / (counts + _SMOOTH).sum(axis=3, keepdims=True)
    return prior / prior.sum(axis=1, keepdims=True), errors
