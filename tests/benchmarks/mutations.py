"""How many small mistakes in the deciding code the tests would see: `python -m tests.benchmarks.mutations [N] [SEED]`.

In place of N the output of an earlier run: then the mistakes that survived there are tried again.

N places (300) are drawn at random from the statistics and from what decides in `selection`: a comparison turned, an
operator swapped, a constant moved by one, a condition negated, `min` for `max`. Each mistake is made alone in a copy of
the checkout, and those tests run that reach its line, the module's own first and then the quickest, of the files that
name the module, directly or through the module that it is part of. A test that fails without any mistake counts for
nothing. A mistake that no test sees is listed. One process a CPU; an hour or two.
"""

from __future__ import annotations

import ast
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[2]
DECIDING = (
    "stats/*.py", "selection/decision.py", "selection/rules.py", "selection/confirm.py",
    "selection/pass_rates.py",
)  # fmt: skip
_SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Add: "-", ast.Sub: "+",
    ast.Mult: "/", ast.Div: "*", ast.And: "or", ast.Or: "and", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in",
    ast.NotIn: "in",
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_PATIENCE_S = 900
_TESTS_S = 240  # of tests for one mistake, as long as they took when lines were traced


@dataclass(frozen=True)
class Mutant:
    """One mistake: the text between two offsets of a file is another."""

    path: Path
    lines: tuple[int, int]
    start: int
    end: int
    text: str

    @property
    def survived(self) -> str:
        """What is printed of one that no test sees."""
        source, place = self.path.read_text(encoding="utf-8"), self.path.relative_to(ROOT)
        return f"survives: {place}:{self.lines[1]} `{source[self.start : self.end]}` -> `{self.text}`"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mistake that can be made in a file."""
    source = path.read_text(encoding="utf-8")
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()

    def at(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[tuple[int, int, str]]:
        start, end = at(left.end_lineno or 0, left.end_col_offset or 0), at(right.lineno, right.col_offset)
        symbol = re.search(r"not in|is not|<=|>=|==|!=|[<>+\-*/]|\b(?:and|or|is|in)\b", source[start:end])
        if symbol and type(operator) in _SWAPS and "#" not in source[start:end]:
            yield start + symbol.start(), start + symbol.end(), _SWAPS[type(operator)]

    def spanned(node: ast.expr, text: str) -> Iterator[tuple[int, int, str]]:
        start, end = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
        yield start, end, text.replace("SOURCE", source[start:end])

    def changes(node: ast.AST) -> Iterator[tuple[int, int, str]]:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, right, operator in zip(sides, sides[1:], node.ops, strict=False):
                yield from between(left, right, operator)
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], node.op)
        elif isinstance(node, ast.If | ast.IfExp):
            yield from spanned(node.test, "(not (SOURCE))")
        elif isinstance(node, ast.Name) and node.id in _NAMES and isinstance(node.ctx, ast.Load):
            yield from spanned(node, _NAMES[node.id])
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield from spanned(node, str(not node.value) if isinstance(node.value, bool) else "(SOURCE + 1)")

    def walked(node: ast.AST, first: int) -> Iterator[Mutant]:
        for start, end, text in changes(node):
            yield Mutant(path, (first, source.count("\n", 0, start) + 1), start, end, text)
        for child in ast.iter_child_nodes(node):
            yield from walked(child, child.lineno if isinstance(child, ast.stmt) else first)

    yield from walked(ast.parse(source), 1)


def tests_of(path: Path) -> list[str]:
    """The test files that name a module."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    named = rf"{re.escape(name)}\b|from {re.escape(name.rpartition('.')[0])} import"
    files = (test for test in (ROOT / "tests").glob("test_*.py") if re.search(named, test.read_text()))
    return sorted(
        f"tests/{test.name}" for test in files if test.name not in ("test_golden.py", "test_layers.py")
    )


def pytest(copy: Path, *args: str, timeout_s: float | None = None) -> int:
    """The exit code of pytest in a copy of the checkout; 1 where it does not end in time."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    environment = {**os.environ, "PYTHONPATH": str(copy), "COVERAGE_FILE": str(copy / ".reached")}
    try:
        return subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=timeout_s, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return 1


class Reached:
    """Which test functions reach which lines, and how long each takes: measured once, in a copy of the checkout."""

    def __init__(self, copy: Path, files: list[Path]) -> None:
        places = [str(path.relative_to(ROOT)) for path in files]
        config, times = copy / ".mutations.ini", copy / ".times.xml"
        config.write_text(
            "[run]\nrelative_files = true\ninclude =\n" + "".join(f"    {place}\n" for place in places)
        )
        traced = ["--cov", f"--cov-config={config}", "--cov-context=test", "--cov-report="]
        tests = sorted({test for path in files for test in tests_of(path)})
        pytest(copy, "-n", "auto", "--dist", "loadgroup", *traced, f"--junitxml={times}", *tests)
        self.seconds: dict[str, float] = defaultdict(float)
        failing = set()
        for case in ET.parse(times).iter("testcase"):
            name = _function(case.get("classname", "").replace(".", "/") + ".py::" + case.get("name", ""))
            self.seconds[name] += float(case.get("time", 0))
            if case.find("failure") is not None or case.find("error") is not None:
                failing.add(name)
        for name in failing:
            del self.seconds[name]
        print(
            f"{len(self.seconds):,} tests; fail without a mistake: {', '.join(sorted(failing)) or 'none'}",
            flush=True,
        )
        data = CoverageData(str(copy / ".reached"))
        data.read()
        self.contexts = {place: data.contexts_by_lineno(place) for place in places}

    def tests(self, mutant: Mutant) -> list[str]:
        """What to run for a mistake: those named as the module is, then the quickest first; whole files where the
        line runs as its module is imported, or never."""
        place, own = str(mutant.path.relative_to(ROOT)), tests_of(mutant.path)
        lines = range(mutant.lines[0], mutant.lines[1] + 1)
        names = {name for line in lines for name in self.contexts[place].get(line, ())}
        if names <= {""}:
            reaching = set(self.seconds)
        else:
            fixtures = {_file(name) for name in names if name.endswith("|setup")}
            called = {_function(name.rpartition("|")[0]) for name in names if name}
            reaching = {name for name in self.seconds if name in called or _file(name) in fixtures}
        able = [name for name in reaching if _file(name) in own]
        able.sort(key=lambda name: (not near(mutant, name), self.seconds[name], name))
        spent = itertools.accumulate(self.seconds[name] for name in able)
        return [name for name, total in zip(able, spent, strict=True) if total <= _TESTS_S]


def near(mutant: Mutant, test: str) -> bool:
    """Whether a test stands in a file that is named as the module is."""
    return mutant.path.stem in _file(test)


def _file(name: str) -> str:
    return name.partition("::")[0]


def _function(name: str) -> str:
    return name.partition("[")[0]


def survives(mutant: Mutant, copy: Path, tests: list[str]) -> bool:
    """Whether the tests pass with the mistake in a copy of the checkout; the near ones run alone first."""
    place, listed = copy / mutant.path.relative_to(ROOT), copy / ".tests.txt"
    source = mutant.path.read_text(encoding="utf-8")
    first = [test for test in tests if near(mutant, test)]
    place.write_text(source[: mutant.start] + mutant.text + source[mutant.end :], encoding="utf-8")
    try:
        for part in filter(None, (first, tests[len(first) :])):
            listed.write_text("\n".join(part))
            if pytest(copy, "-x", "-n", "0", f"@{listed}", timeout_s=_PATIENCE_S) != 0:
                return False
        return True
    finally:
        place.write_text(source, encoding="utf-8")


def main(argv: list[str]) -> None:
    """Draw, run and list."""
    n, seed = argv[0] if argv else "300", int(argv[1]) if len(argv) > 1 else 0
    files = sorted({path for pattern in DECIDING for path in (ROOT / "judgecal").glob(pattern)})
    every = [mutant for path in files for mutant in mutants(path)]
    if n.isdigit():
        drawn = random.Random(seed).sample(every, min(int(n), len(every)))
        print(f"{len(every):,} places in {len(files)} files, {len(drawn)} drawn with seed {seed}", flush=True)
    else:
        survived = set(Path(n).read_text(encoding="utf-8").splitlines())
        drawn = [mutant for mutant in every if mutant.survived in survived]
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(os.cpu_count() or 1):
            copy = Path(folder) / str(number)
            shutil.copytree(
                ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "site")
            )
            copies.put(copy)
        reached = Reached(copy, sorted({mutant.path for mutant in drawn}))

        def tried(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                return survives(mutant, copy, reached.tests(mutant))
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            alive = []
            for mutant, lives in zip(drawn, pool.map(tried, drawn), strict=True):
                if lives:
                    alive.append(mutant)
                    print(mutant.survived, flush=True)
    share = 1 - len(alive) / len(drawn)
    print(f"{len(drawn) - len(alive)} of {len(drawn)} seen by a test: {share:.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
