"""A gold set that waits for labels, and a desk on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.goldset import load_gold
from judgecal.web.desk import Desk, Labelling
from tests.support.gold import made_gold, made_items
from tests.support.pages import OPEN


def waiting(folder: Path, n: int, *, scale: str = 'kind = "binary"', texts: Mapping[str, Any] | None = None) -> Path:
    """A set of n items, each on a question of its own, that nobody has labelled."""
    rows = [{**row, "kind": ""} for row in made_items(n)[::3]]
    return made_gold(folder, [{**row, **(texts or {})} for row in rows], (), scale=scale, splits=OPEN)


def desk_of(folder: Path, raters: Sequence[str] = ("ann",), **how: Any) -> Desk:
    """The desk of a set's items."""
    gold = load_gold(folder, labelling=True)
    return Desk(Labelling(gold, gold.items, raters, **how))


def act(desk: Desk, rater: str, verb: str, **sent: Any) -> dict[str, Any]:
    """One act, on its own loop."""
    return asyncio.run(desk.act(rater, verb, sent))


def ratings(folder: Path) -> list[dict[str, Any]]:
    """The rows of ratings.jsonl."""
    return [json.loads(line) for line in (folder / "ratings.jsonl").read_text(encoding="utf-8").splitlines()]


def journal(folder: Path) -> list[dict[str, Any]]:
    """The lines of the journal of labels."""
    return [json.loads(line) for line in (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
