"""Which split a question belongs to: decided by its own hash, so it never moves when a set grows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.goldset.gold_set import GoldSet

__all__ = ["SPLITS", "Splits", "require_splits"]

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


def require_splits(gold: GoldSet, needed: Mapping[str, int]) -> None:
    """Refuse a set whose splits hold too few questions for a command.

    Args:
        gold: the set.
        needed: groups needed, by split name (`open` and `all` too).

    Raises:
        InputError: lists each split that is too small: what it has, what is needed, what to do.
    """
    problems = []
    for split, least in needed.items():
        found = gold.n_groups(gold.select(split))
        if found < least:
            problems.append(
                f"gold set {gold.name!r}: the split {split} has {found} questions and this command needs {least}: "
                "add questions, or choose another [splits] seed in card.toml before anyone looks at a label"
            )
    if problems:
        raise InputError(problems)
