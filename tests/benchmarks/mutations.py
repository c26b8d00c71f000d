"""How many small mistakes in the deciding code the tests would see: `python -m tests.benchmarks.mutations [N] [SEED]`.

N places (300) are drawn at random from the statistics and from what decides in `selection`: a comparison turned, an
operator swapped, a constant moved by one, a condition negated, `min` for `max`. Each mistake is made alone in a copy of
the checkout, and the tests run that name the module, directly or through the module that it is part of. A mistake that
no test sees survives and is listed. Two processes at once; ten minutes to an hour.
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
DECIDING = (
    "stats/*.py",
    "selection/decision.py",
    "selection/rules.py",
    "selection/confirm.py",
    "selection/pass_rates.py",
)
_SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Add: "-", ast.Sub: "+",
    ast.Mult: "/", ast.Div: "*", ast.And: "or", ast.Or: "and", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in",
    ast.NotIn: "in",
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_PATIENCE_S = 3000


@dataclass(frozen=True)
class Mutant:
    """One mistake: the text between two offsets of a file is another."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def shown(self, source: str) -> str:
        """The line before and after."""
        place = self.path.relative_to(ROOT)
        return f"{place}:{self.line} `{source[self.start : self.end]}` -> `{self.text}`"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mistake that can be made in a file."""
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()

    def at(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Mutant]:
        start, end = at(left.end_lineno or 0, left.end_col_offset or 0), at(right.lineno, right.col_offset)
        symbol = re.search(r"not in|is not|<=|>=|==|!=|[<>+\-*/]|\b(?:and|or|is|in)\b", source[start:end])
        if symbol and type(operator) in _SWAPS and "#" not in source[start:end]:
            swapped = _SWAPS[type(operator)]
            yield Mutant(path, left.lineno, start + symbol.start(), start + symbol.end(), swapped)

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, right, operator in zip(sides, sides[1:], node.ops, strict=False):
                yield from between(left, right, operator)
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], node.op)
        elif isinstance(node, ast.If | ast.IfExp):
            start, end = (
                at(node.test.lineno, node.test.col_offset),
                at(node.test.end_lineno or 0, node.test.end_col_offset or 0),
            )
            yield Mutant(path, node.test.lineno, start, end, f"(not ({source[start:end]}))")
        elif isinstance(node, ast.Name) and node.id in _NAMES and isinstance(node.ctx, ast.Load):
            start = at(node.lineno, node.col_offset)
            yield Mutant(path, node.lineno, start, start + len(node.id), _NAMES[node.id])
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            start, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
            moved = str(not node.value) if isinstance(node.value, bool) else f"({node.value!r} + 1)"
            yield Mutant(path, node.lineno, start, end, moved)


def tests_of(path: Path) -> list[str]:
    """The test files that name a module, those that are named after it first."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    named = rf"{re.escape(name)}\b|from {re.escape(name.rpartition('.')[0])} import"
    files = [
        test for test in sorted((ROOT / "tests").glob("test_*.py")) if re.search(named, test.read_text())
    ]
    files = [test for test in files if test.name not in ("test_golden.py", "test_layers.py")]
    return [
        str(test.relative_to(ROOT))
        for test in sorted(files, key=lambda test: (path.stem not in test.stem, test.name))
    ]


def survives(mutant: Mutant, copy: Path) -> bool:
    """Whether the tests that name its module pass with the mistake in a copy of the checkout."""
    place = copy / mutant.path.relative_to(ROOT)
    source = mutant.path.read_text(encoding="utf-8")
    place.write_text(source[: mutant.start] + mutant.text + source[mutant.end :], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests_of(mutant.path)]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ran = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=_PATIENCE_S, check=False
        )
        return ran.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        place.write_text(source, encoding="utf-8")


def main(argv: list[str]) -> None:
    """Draw, run and list."""
    n, seed = int(argv[0]) if argv else 300, int(argv[1]) if len(argv) > 1 else 0
    files = sorted({path for pattern in DECIDING for path in (ROOT / "judgecal").glob(pattern)})
    every = [mutant for path in files for mutant in mutants(path)]
    drawn = random.Random(seed).sample(every, min(n, len(every)))
    print(f"{len(every):,} places in {len(files)} files, {len(drawn)} drawn with seed {seed}", flush=True)
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(os.cpu_count() or 1):
            copy = Path(folder) / str(number)
            ignored = shutil.ignore_patterns(
                ".git", ".venv*", ".mypy_cache", ".ruff_cache", "__pycache__", "site"
            )
            shutil.copytree(ROOT, copy, ignore=ignored)
            copies.put(copy)

        def tried(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                return survives(mutant, copy)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            alive = []
            for mutant, lives in zip(drawn, pool.map(tried, drawn), strict=True):
                if lives:
                    alive.append(mutant)
                    print("survives:", mutant.shown(mutant.path.read_text(encoding="utf-8")), flush=True)
    share = 1 - len(alive) / len(drawn)
    print(f"{len(drawn) - len(alive)} of {len(drawn)} seen by a test: {share:.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
