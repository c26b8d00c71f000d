"""How many small mistakes in the deciding code the tests would see: `python -m tests.benchmarks.mutations -n 300 --seed 7`.

With `--again` the output of an earlier run: then what was seen there is not tried again. `--trace` names a folder that
keeps which test reaches which line, for a further run on the same code.

Places are drawn at random from the statistics, the selection, and what decides in `experiment` and `production`: a
comparison turned, an operator swapped, a constant moved by one, a condition negated, `min` for `max`. Each mistake is
made alone in a copy of the checkout, in a process that is forked from one with every library loaded. Those tests run
that reach its line, of the module's own files first and then the quickest, until one fails. A test that fails without
any mistake counts for nothing. The test that sees a mistake is printed; a mistake that no test sees is listed.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import itertools
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import CoverageData

from tests.benchmarks.driver import Bench

ROOT = Path(__file__).resolve().parents[2]
DECIDING = (
    "stats/*.py", "selection/*.py", "production/results.py", "production/judged.py", "production/rate.py",
    "experiment/agreement.py", "experiment/agreement_table.py", "experiment/compare.py", "experiment/looks.py",
    "experiment/people.py", "experiment/verdicts.py",
)  # fmt: skip
_SWAPS: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Add: "-", ast.Sub: "+",
    ast.Mult: "/", ast.Div: "*", ast.And: "or", ast.Or: "and", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in",
    ast.NotIn: "in",
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LIBRARIES = (
    "numpy", "scipy.stats", "scipy.optimize", "scipy.sparse", "sklearn.linear_model", "sklearn.isotonic", "polars",
    "pyarrow.parquet", "pydantic", "jinja2", "typer", "hypothesis", "pytest", "openpyxl", "aiohttp", "rapidfuzz",
    "litellm", "dspy", "datasets",
)  # fmt: skip
_COMMANDS = r"\b(?:agreement|compare|score|select|gate|migrate|rate|judge|reliability|labels|alt_test)\b"
_OTHERS = r"test_(?:layers|optimize_[akmor]|bulk|web|table|evaluation|help|mtrag|mlflow|any_signature)"  # slow, or of no use


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
        return f"survives: {self.place}"

    @property
    def place(self) -> str:
        """Where it is, and what is changed."""
        source, place = self.path.read_text(encoding="utf-8"), self.path.relative_to(ROOT)
        return f"{place}:{self.lines[1]} `{source[self.start : self.end]}` -> `{self.text}`"


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
    """The test files that name a module, or what it is part of."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return _files(rf"{re.escape(name)}\b|from {re.escape(name.rpartition('.')[0])} import")


def deciding_tests(paths: list[Path]) -> list[str]:
    """The test files that name one of the modules, or run a command that decides."""
    commands = _files(rf"judgecal\(\s*\"{_COMMANDS}|import judgecal$|import .*{_COMMANDS}")
    return sorted({"tests/test_golden.py", *commands, *(test for path in paths for test in tests_of(path))})


def _files(pattern: str) -> list[str]:
    files = (ROOT / "tests").glob("test_*.py")
    able = [test for test in files if re.search(pattern, test.read_text(encoding="utf-8"), re.MULTILINE)]
    return sorted(f"tests/{test.name}" for test in able if not re.match(_OTHERS, test.name))


class _First:
    """A plugin of pytest that writes down the first test that fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: object) -> None:
        if getattr(report, "failed", False) and not self.path.exists():
            self.path.write_text(str(getattr(report, "nodeid", "")), encoding="utf-8")

    def pytest_collectreport(self, report: object) -> None:
        self.pytest_runtest_logreport(report)


def run_pytest(copy: Path, *args: str, cpu_s: float) -> str | None:
    """Run pytest in a fork, in a copy of the checkout; give the first test that fails, None where all pass."""
    first = copy / ".first"
    first.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            os.chdir(copy)
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))
            output = os.open(copy / ".output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ.update(PYTHONPATH=str(copy), COVERAGE_FILE=str(copy / ".reached"))
            sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(ROOT)))]
            for name in [name for name in sys.modules if name.partition(".")[0] in ("judgecal", "tests")]:
                del sys.modules[name]
            import pytest

            code = int(
                pytest.main(["-q", "-p", "no:cacheprovider", "-n", "0", *args], plugins=[_First(first)])
            )
        finally:
            os._exit(code)
    patience = time.monotonic() + 20 * cpu_s
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > patience:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a test has left behind
    code = os.waitstatus_to_exitcode(ended[1])
    if code == 0:
        return None
    return first.read_text(encoding="utf-8") if first.exists() else f"ended with {code}"


class Reached:
    """Which test functions reach which lines, and how long each takes: measured once, in a copy of the checkout."""

    def __init__(self, copy: Path, trace: Path, files: list[Path], tests: list[str]) -> None:
        places = [str(path.relative_to(ROOT)) for path in files]
        config, times = copy / ".mutations.ini", trace / "times.xml"
        config.write_text(
            "[run]\nrelative_files = true\ninclude =\n" + "".join(f"    {place}\n" for place in places)
        )
        traced = ["--cov", f"--cov-config={config}", "--cov-context=test", "--cov-report="]
        if not times.exists():
            run_pytest(copy, *traced, f"--junitxml={times}", *tests, cpu_s=7200)
            shutil.copy(copy / ".reached", trace / "reached")
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
            f"{len(self.seconds):,} tests, {sum(self.seconds.values()):.0f} s; "
            f"fail without a mistake: {', '.join(sorted(failing)) or 'none'}",
            flush=True,
        )
        data = CoverageData(str(trace / "reached"))
        data.read()
        self.contexts = {place: data.contexts_by_lineno(place) for place in places}

    def tests(self, mutant: Mutant, most_s: float) -> list[str]:
        """What to run for a mistake: those named as the module is, then the quickest first; whole files where the
        line runs as its module is imported, or never."""
        lines = range(mutant.lines[0], mutant.lines[1] + 1)
        contexts = self.contexts[str(mutant.path.relative_to(ROOT))]
        names = {name for line in lines for name in contexts.get(line, ())}
        if names <= {""}:
            own = tests_of(mutant.path)
            able = [name for name in self.seconds if _file(name) in own]
        else:
            fixtures = {_file(name) for name in names if name.endswith("|setup")}
            called = {_function(name.rpartition("|")[0]) for name in names if name}
            able = [name for name in self.seconds if name in called or _file(name) in fixtures]
        able.sort(key=lambda name: (not near(mutant, name), self.seconds[name], name))
        spent = itertools.accumulate(self.seconds[name] for name in able)
        return [name for name, total in zip(able, spent, strict=True) if total <= most_s]


def near(mutant: Mutant, test: str) -> bool:
    """Whether a test stands in a file that is named as the module is."""
    return mutant.path.stem in _file(test)


def _file(name: str) -> str:
    return name.partition("::")[0]


def _function(name: str) -> str:
    return name.partition("[")[0]


def seen_by(mutant: Mutant, copy: Path, tests: list[str], number: int) -> str | None:
    """The test that fails with the mistake in a copy of the checkout; the near ones run alone first."""
    place, listed = copy / mutant.path.relative_to(ROOT), copy / ".tests.txt"
    source, before = mutant.path.read_text(encoding="utf-8"), place.stat().st_mtime
    first = [test for test in tests if near(mutant, test)]
    place.write_text(source[: mutant.start] + mutant.text + source[mutant.end :], encoding="utf-8")
    os.utime(
        place, (before + number, before + number)
    )  # compiled anew, however quickly mistakes follow each other
    try:
        for part in filter(None, (first, tests[len(first) :])):
            listed.write_text("\n".join(part))
            if (test := run_pytest(copy, "-x", f"@{listed}", cpu_s=600)) is not None:
                return test
        return None
    finally:
        place.write_text(source, encoding="utf-8")
        os.utime(place, (before, before))


def main() -> int:
    """Draw, run and list."""
    quick = {"n": 1, "only": "stats/metrics.py", "tests": ["tests/test_stats_strata.py"]}
    flags: dict[str, Any] = {"seed": 0, "again": "", "trace": "", "seconds": 120, "only": "", "tests": []}
    bench = Bench(__doc__, n=300, of="mistakes", quick=quick, **flags)
    options = bench.options
    gone = [pattern for pattern in DECIDING if not any((ROOT / "judgecal").glob(pattern))]
    assert not gone, f"no such files: {gone}"
    files = sorted({path for pattern in DECIDING for path in (ROOT / "judgecal").glob(pattern)})
    files = [path for path in files if options.only in path.as_posix()]
    every = [mutant for path in files for mutant in mutants(path)]
    drawn = random.Random(options.seed).sample(every, min(bench.n, len(every)))
    before = Path(options.again).read_text(encoding="utf-8") if options.again else ""
    n_before, drawn = len(drawn), [mutant for mutant in drawn if f"seen: {mutant.place} by " not in before]
    n_before -= len(drawn)
    print(f"{len(every):,} places in {len(files)} files, {len(drawn)} tried, seed {options.seed}", flush=True)
    os.environ.update(OPENBLAS_NUM_THREADS="1", LITELLM_LOCAL_MODEL_COST_MAP="True")
    for name in _LIBRARIES[: -3 if bench.quick else None]:
        importlib.import_module(name)
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", "site")
        )
        paths = sorted({mutant.path for mutant in drawn})
        trace = Path(options.trace or folder)
        trace.mkdir(exist_ok=True)
        reached = Reached(copy, trace, paths, options.tests or deciding_tests(paths))
        for number, mutant in enumerate(drawn, 1):
            test = seen_by(mutant, copy, reached.tests(mutant, options.seconds), number)
            alive += test is None
            print(f"{mutant.survived}" if test is None else f"seen: {mutant.place} by {test}", flush=True)
            if number % 50 == 0:
                print(f"{number - alive} of {number} seen by a test", flush=True)
    n = n_before + len(drawn)
    print(f"{n - alive} of {n} seen by a test, {n_before} of them in the earlier run: {1 - alive / n:.1%}")
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
