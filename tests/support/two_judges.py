"""Labels with the verdicts of two judges, made up."""

from __future__ import annotations

import numpy as np

__all__ = ["labels"]


def labels(n: int, *, seed: int = 0) -> tuple[list[float], list[float], list[float]]:
    """Labels of a percentage scale, verdicts near them and verdicts farther from them."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 101, n).astype(float)
    a, b = (np.clip(gold + rng.normal(0, sd, n), 0, 100) for sd in (10, 30))
    return gold.tolist(), a.tolist(), b.tolist()
