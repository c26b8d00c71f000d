"""What each room of the tree weighs: `tests/budget.toml` says what it may."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support.command import ROOT

PACKAGE = ROOT / "judgecal"
TESTS = ROOT / "tests"
WINGS = ("rag", "exchange", "bulk", "desk")
BUDGET = tomllib.loads((TESTS / "budget.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Weight:
    """Lines and files."""

    lines: int = 0
    files: int = 0


def weight(paths: Iterable[Path]) -> Weight:
    """Of some files together."""
    sizes = [len(path.read_text(encoding="utf-8").splitlines()) for path in paths]
    return Weight(sum(sizes), len(sizes))


def rooms() -> dict[str, Weight]:
    """Room -> its weight; `top` are the modules beside the rooms, `core` is what is no wing."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        room, *below = path.relative_to(PACKAGE).parts
        for name in (room if below else "top", "all", *(["core"] if room not in WINGS else [])):
            files[name].append(path)
    files["tests"] = sorted(TESTS.rglob("*.py"))
    return {name: weight(paths) for name, paths in sorted(files.items())}
