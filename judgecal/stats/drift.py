"""Has a judge changed since it was locked? Its calls of then beside those of now: whether another judge
answers behind its name.

The same judge test. Where nothing has changed, it is chance alone which of an item's calls were the lock's:
of three calls that are not all equal, one of the lock and two of now, the lock's is the odd one out in a
third. So every way to deal the calls of a question out to then and now is as likely as the one that was seen,
whatever the noise of the judge and however the items of a question hang together. What is summed over the
questions is how far a call of the lock lies from one of now, and, where verdicts are numbers, how far they
have gone up or down. Another judge makes that sum larger than chance does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.scale import Label
from judgecal.stats.sample import Floats, Ints, Labels, codes_of, renumbered

Verdict = Label | None
Calls = Sequence[Sequence[Verdict]]

CHANGED_LEVEL = 1e-5
"""Chance of a false alarm in one test. Three a night for 250 nights: under 1% of users."""
DOUBTFUL_LEVEL = 0.05
"""Below this the calls are no proof of another judge, but a further pass is worth its price."""

_MOST = 4  # calls of either side that count: 70 ways to deal eight calls out
_THETAS = np.geomspace(0.1, 1000.0, 80)  # times the inverse of the sum's standard deviation
_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class DriftTest:
    """Calls of the lock beside calls of now, on the items with a verdict in all of them."""

    n: int  # these items, and those of them whose calls are not all equal
    n_differ: int
    graded: bool  # whether distances are of numbers; else they are shares of pairs of calls that differ
    # distance of a locked verdict from one of now, the mean over pairs of calls and items, on the judge's
    # scale; of words and of binary verdicts the share of pairs that differ. None without items
    between: float | None
    # the same if nothing had changed: the mean over all ways to deal each question's calls out
    expected: float | None
    shift: float | None  # how far verdicts went up, mean now - mean then; None of words
    # the chance, if nothing had changed, of calls so far apart or moved so far is this or less
    p_at_most: float

    @property
    def changed(self) -> bool:
        """Whether another judge is shown to answer."""
        return self.p_at_most < CHANGED_LEVEL

    @property
    def doubtful(self) -> bool:
        """Whether the drift is worth another look."""
        return self.p_at_most < DOUBTFUL_LEVEL

    @property
    def in_words(self) -> str:
        """What was seen, and what would be if nothing had changed."""
        if self.between is None or self.expected is None:
            return "no item has a verdict in all of its calls"
        if not self.graded:
            return (
                f"{100.0 * self.between:.1f}% of verdicts differ from the locked verdicts; chance gives "
                f"{100.0 * self.expected:.1f}%"
            )
        return (
            f"verdicts lie {self.between:.3g} from the locked ones and moved by {self.shift or 0.0:+.3g} on "
            f"average, where {self.expected:.3g} apart is what chance gives"
        )


def same_judge_test(then: Calls, now: Calls, groups: Labels) -> DriftTest | None:
    """Return a DriftTest of the same judge, from Calls then, Calls now and items' groups; None if none.

    Args:
        then, now: n x k verdicts of the lock and n x m of now; None = unscored, and the item is left out. The
            first four calls of either side count.
        groups: the question of each item.

    Returns:
        None where an item has fewer than three calls: of two, neither is the odd one.
    """
    k, m = min(len(then[0]), _MOST), min(len(now[0]), _MOST)
    if k + m < 3:
        return None
    rows = [[*before[:k], *after[:m]] for before, after in zip(then, now, strict=True)]
    whole = [place for place, row in enumerate(rows) if None not in row]
    if not whole:
        return DriftTest(0, 0, False, None, None, None, 1.0)
    verdicts: list[list[Verdict]] = [rows[place] for place in whole]
    numeric = all(isinstance(verdict, int | float) for row in verdicts for verdict in row)
    numbers = {word: at for at, word in enumerate(sorted({str(each) for row in verdicts for each in row}))}
    calls = np.array(
        verdicts if numeric else [[numbers[str(each)] for each in row] for row in verdicts], dtype=np.float64
    )
    codes = renumbered(codes_of(groups, len(groups))[whole])
    apart = np.abs(calls[:, :, None] - calls[:, None, :])
    if not numeric:
        apart = (apart > 0.0).astype(np.float64)
    deals = _deals(k, m)
    pairs = (deals[:, :, None] * (1.0 - deals[:, None, :]) / (k * m)).reshape(len(deals), -1)
    distances = apart.reshape(len(calls), -1) @ pairs.T
    sums, shift = [distances], None
    if numeric:
        moved = calls @ ((1.0 - deals) / m - deals / k).T
        sums += [moved, -moved]
        shift = round(float(moved[:, 0].mean()), 9)
    return DriftTest(
        n=len(calls),
        n_differ=int((apart.max(axis=(1, 2)) > 0.0).sum()),
        graded=numeric and not np.isin(calls, (0.0, 1.0)).all(),
        between=float(distances[:, 0].mean()),
        expected=float(distances.mean()),
        shift=shift,
        p_at_most=min(1.0, len(sums) * min(permutation_p_bound(each, codes) for each in sums)),
    )


def unscored_rise_p(then: Calls, now: Calls, groups: Labels) -> float:
    """Return a bound on the p value of more unscored calls, from Calls then, Calls now, items' groups."""
    k, m = min(len(then[0]), _MOST), min(len(now[0]), _MOST)
    rows = [[*before[:k], *after[:m]] for before, after in zip(then, now, strict=True)]
    missing = np.array([[verdict is None for verdict in row] for row in rows], dtype=np.float64)
    return permutation_p_bound(missing @ (1.0 - _deals(k, m)).T, codes_of(groups, len(rows)))


def permutation_p_bound(scores: Floats, codes: Ints) -> float:
    """Return an upper bound on a sum's p value, from scores (n x deals) and question codes, two arrays.

    Each question's calls are dealt out at random, for all of its items alike, and the questions one by one.
    With x the score of a deal less that of the one seen, the chance is at most the product over questions of
    the mean of exp(theta x) for any theta >= 0; the smallest over a grid of theta is taken. Source: Chernoff
    (1952).

    Args:
        scores: n x deals, the first column is what was seen.
        codes: 0..G-1, the question of each item.
    """
    summed = np.zeros((int(codes.max()) + 1, scores.shape[1]))
    np.add.at(summed, codes, scores)
    x = summed - summed[:, :1]
    x = x[np.abs(x).max(axis=1) > _EPS]
    if not len(x):
        return 1.0
    theta = _THETAS / math.sqrt(float(x.var(axis=1).sum()))
    grown = np.logaddexp.reduce(x[:, :, None] * theta, axis=1).sum(axis=0) - len(x) * math.log(x.shape[1])
    return math.exp(min(0.0, float(grown.min())))


def _deals(k: int, m: int) -> Floats:
    """Deals x calls, 1 where a call is the lock's; the first deal is the one that was seen."""
    deals = np.zeros((math.comb(k + m, k), k + m))
    for row, chosen in zip(deals, itertools.combinations(range(k + m), k), strict=True):
        row[list(chosen)] = 1.0
    return deals
