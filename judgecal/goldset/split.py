"""Which split a question belongs to: decided by its own hash, so it never moves when a set grows."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

__all__ = ["SPLITS", "SPLIT_NAMES", "Splits", "members"]

SPLITS = ("train", "dev", "test")
"""train gives demonstrations, dev chooses, test is sealed."""

_MEMBERS = {
    "train": ("train",),
    "dev": ("dev",),
    "test": ("test",),
    "open": ("train", "dev"),
    "all": SPLITS,
}
SPLIT_NAMES = tuple(_MEMBERS)
"""What `--split` takes: the three splits, `open` (train and dev) and `all`."""


@dataclass(frozen=True, slots=True)
class Splits:
    """The seed and the shares of a card's `[splits]`; the shares are of questions and sum to 1."""

    seed: int = 0
    train: float = 0.25
    dev: float = 0.30
    test: float = 0.45

    def of(self, group: str) -> str:
        """The split of a question: `train`, `dev` or `test`."""
        text = f"{self.seed}:{group}".encode("utf-8", "surrogatepass")
        position = int(hashlib.sha256(text).hexdigest()[:16], 16) / 2**64
        if position < self.train:
            return "train"
        # The shares may sum to 1 only within rounding: without a test share nothing falls there.
        return "dev" if position < self.train + self.dev or self.test == 0.0 else "test"

    def problems(self, where: str) -> list[str]:
        """What is wrong with the shares, if anything."""
        shares = {"train": self.train, "dev": self.dev, "test": self.test}
        found = [
            f"{where}: [splits] {name} must lie between 0 and 1, found {share:g}"
            for name, share in shares.items()
            if not 0.0 <= share <= 1.0
        ]
        total = math.fsum(shares.values())
        if not found and not math.isclose(total, 1.0, abs_tol=1e-9):
            listed = ", ".join(f"{name} {share:g}" for name, share in shares.items())
            found.append(f"{where}: [splits] must sum to 1, found {total:g} ({listed}): change one of them")
        return found


def members(split: str) -> tuple[str, ...] | None:
    """The splits that a `--split` name stands for; None for an unknown name."""
    return _MEMBERS.get(split)
