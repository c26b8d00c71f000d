"""P values for grouped items: is a difference more than chance?"""

from __future__ import annotations

import numpy as np

from judgecal.stats.sample import Floats

__all__ = ["N_PERM", "sign_flip_p"]

N_PERM = 10_000
"""Monte Carlo draws of a sign flip test."""

_EXACT = 16  # parts up to which all 2^k sign patterns are enumerated
_BLOCK = 250_000  # signs in one block: small enough to stay in the cache
_EPS = 1e-12


def sign_flip_p(parts: Floats, *, n_perm: int = N_PERM, seed: int = 0) -> tuple[float, str]:
    """Two-sided p that the groups' parts of a difference add up to so much by chance of their signs.

    Exact over all sign patterns up to 16 parts that are not 0; above, `n_perm` seeded draws with the +1 rule,
    (1 + hits) / (1 + draws). Source: Fisher (1935); Phipson and Smyth (2010) for the +1.
    """
    moving = parts[np.abs(parts) > _EPS]
    observed = abs(float(moving.sum()))
    reached = observed - 1e-9 * float(np.abs(moving).sum())  # ties are ties in spite of rounding
    if len(moving) <= _EXACT:
        sums = np.zeros(1)
        for part in moving.tolist():
            sums = np.concatenate([sums + part, sums - part])
        return float(np.mean(np.abs(sums) >= reached)), "sign flips by group, exact"
    rng = np.random.default_rng(seed)
    hits, block = 0, max(1, _BLOCK // len(moving))
    for start in range(0, n_perm, block):
        flips = rng.random((min(block, n_perm - start), len(moving))) < 0.5
        hits += int(np.sum(np.abs(moving.sum() - 2.0 * (flips @ moving)) >= reached))
    return (1.0 + hits) / (1.0 + n_perm), f"sign flips by group, {n_perm} draws"
