"""What each room and each feature of the tree weighs: `tests/budget.toml` says what it may, a page of the handbook
says what it does. `python -m tests.support.ledger` prints the rooms as they are, in the form of the budget."""

from __future__ import annotations

import fnmatch
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
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

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.lines + other.lines, self.files + other.files)


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


def feature_of(path: Path, kind: str) -> str | None:
    """The first feature of the budget with a pattern that a file meets: `code` below judgecal/, `tests` below tests/."""
    name = path.relative_to(PACKAGE if kind == "code" else TESTS).as_posix()
    features: Mapping[str, Mapping[str, list[str]]] = BUDGET["features"]
    return next(
        (
            feature
            for feature, patterns in features.items()
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns[kind])
        ),
        None,
    )


def features() -> dict[str, tuple[Weight, Weight]]:
    """Feature -> the weight of its code and of its tests."""
    weights = {name: (Weight(), Weight()) for name in BUDGET["features"]}
    for place, (kind, folder) in enumerate((("code", PACKAGE), ("tests", TESTS))):
        for path in sorted(folder.rglob("*.py")):
            name = feature_of(path, kind)
            if name is not None:
                pair = list(weights[name])
                pair[place] += weight([path])
                weights[name] = (pair[0], pair[1])
    return weights


def ledger_page() -> str:
    """The page of the handbook, in hundreds of lines."""
    rows = [
        f"| {name} | {round(code.lines, -2):,} | {code.files} | {round(tests.lines, -2):,} |\n"
        for name, (code, tests) in features().items()
    ]
    return (
        "<!-- Written by `python -m tests.support.handbook`; a change goes into tests/budget.toml. -->\n\n"
        "# What it weighs\n\nLines of code of each feature with its comments and docstrings, in hundreds, "
        "and of its tests. What a room may hold\nstands in `tests/budget.toml`, and a test fails beyond "
        "it.\n\n"
        "| feature | lines | files | lines of tests |\n| --- | ---: | ---: | ---: |\n" + "".join(rows)
    )


def main() -> None:
    """The rooms as they are."""
    for name, now in rooms().items():
        print(f"{name} = {{ lines = {now.lines}, files = {now.files} }}")


if __name__ == "__main__":
    main()
