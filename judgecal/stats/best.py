"""Which of several judges or systems may be the best, and whether a single one is shown to be."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from judgecal.stats.sample import Bools
from judgecal.stats.simultaneous import Losses

_LEAST = 7.0
"""An error is at least that of so many groups that differ: five that all differ one way, at p = 0.06 by their
signs, then show nothing, and six, at p = 0.03, do."""


def not_told_apart(losses: Losses) -> tuple[str, ...]:
    """Those that cannot be told apart from the best, in the order asked for; all with a value where there are
    no bounds.

    `losses` are made without a margin. Two rules, either of which may narrow the set; d_ij is how much i lies
    above j, s_ij the error by group that the difference would have if there were none, s^2 + d^2 / G:

    - j is left out where some i has d_ij > c_j s_ij, c_j being the critical value of all comparisons with j
    at once
      and at least t below. The truly best stays with chance `level`. Source: Hsu (1984), by the critical
      values of Dunnett (1955).
    - The highest stands alone where it has d_ij > t s_ij over each other j, t two-sided at `level` and not
    corrected
      for their number: that the highest of several equal ones is so far above the second is the rarer the
      more they are. Source: Gutmann and Maymin (1987), for independent means of one variance;
      tests/benchmarks/sweeps.py simulates it for paired answers.
    """
    if losses.pairs is None:
        return tuple(name for name, loss in losses.by_judge.items() if loss.value is not None)
    pairs, own = losses.pairs, np.eye(len(losses.pairs.names), dtype=np.bool_)
    if np.isnan(pairs.errors).any():
        return tuple(pairs.names)
    above = pairs.differences
    error = np.sqrt(np.maximum(pairs.errors**2, _LEAST * pairs.units**2) + above**2 / losses.n_groups)
    place = pairs.names.index(losses.best)
    t = stdtrit(pairs.df, 0.5 + losses.level / 2.0)
    alone: Bools = above[place] > t[place] * error[place]
    if np.all(alone | own[place]):
        return (losses.best,)
    beaten: Bools = ((above > np.maximum(pairs.critical.T, t) * error) & ~own).any(axis=0)
    return tuple(name for name, out in zip(pairs.names, beaten.tolist(), strict=True) if not out)
