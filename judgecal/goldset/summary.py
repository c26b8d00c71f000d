"""The plain counts of a set, in the shape that `--json` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from judgecal.goldset.check import Problem
from judgecal.goldset.gold_set import GoldSet
from judgecal.goldset.split import SPLITS

__all__ = ["check_summary", "split_counts"]


def split_counts(gold: GoldSet) -> dict[str, dict[str, int]]:
    """split -> `n_items` and `n_groups`."""
    chosen = {split: gold.select(split) for split in SPLITS}
    return {
        split: {"n_items": len(items), "n_groups": gold.n_groups(items)} for split, items in chosen.items()
    }


def check_summary(gold: GoldSet, problems: Iterable[Problem]) -> dict[str, Any]:
    """The object that `gold check --json` prints."""
    return {
        "set": gold.name,
        "n_items": len(gold.items),
        "n_groups": gold.n_groups(gold.items),
        "n_documents": len(gold.documents),
        "splits": split_counts(gold),
        "tags": dict(sorted(Counter(tag for item in gold.items for tag in set(item.tags)).items())),
        "problems": [
            {"kind": found.kind, "where": found.where, "message": found.message} for found in problems
        ],
    }
