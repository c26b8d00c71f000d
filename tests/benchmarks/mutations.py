"""How many small mistakes in the deciding code the tests would see: `python -m tests.benchmarks.mutations -n 300 --seed 7`.

`--trace` names a file that keeps which test reaches which line, for a further run on the same code.

Places are drawn at random from the statistics, the selection, and what decides in `experiment` and `production`: a
comparison turned, an operator swapped, a constant moved by one, a condition negated, `min` for `max`. The tests are
collected once. Each mistake is made alone in a fork of that session, in the code of the functions that are loaded; one
that acts as its module is imported has the modules imported anew. Those tests run that reach its line, until one fails:
those first that are named as the module is, then those that saw most mistakes so far, then the quickest. A test that
fails without any mistake counts for nothing. The test that sees a mistake is printed; one that no test sees is listed.
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.abc
import importlib.util
import itertools
import json
import os
import random
import re
import resource
import select
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import coverage
import pytest

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
_COMMANDS = r"\b(?:agreement|compare|score|select|gate|migrate|rate|judge|reliability|labels|alt_test)\b"
_OTHERS = r"test_(?:layers|optimize_[akmor]|bulk|web|table|evaluation|help|mtrag|mlflow|any_signature)"  # slow, or of no use

_NETS = (
    "tests/test_golden.py",
    "tests/test_pinned_numbers.py",
    "tests/test_small_worlds.py",
)  # over all modules


@dataclass(frozen=True)
class Mutant:
    """One mistake: the text between two offsets of a file is another."""

    path: Path
    lines: tuple[int, int]
    start: int
    end: int
    text: str

    @property
    def place(self) -> str:
        """Where it is, and what is changed."""
        source, place = self.path.read_text(encoding="utf-8"), self.path.relative_to(ROOT)
        return f"{place}:{self.lines[1]} `{source[self.start : self.end]}` -> `{self.text}`"

    @property
    def module(self) -> str:
        """The name of its module."""
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    @property
    def source(self) -> str:
        """The text of its file with the mistake in it."""
        source = self.path.read_text(encoding="utf-8")
        return source[: self.start] + self.text + source[self.end :]


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
            if isinstance(child, ast.keyword) and child.arg in ("slots", "kw_only", "strict"):
                continue  # of memory, of how a class is called, a guard of lengths that are equal: no result hangs on it
            yield from walked(child, child.lineno if isinstance(child, ast.stmt) else first)

    yield from walked(ast.parse(source), 1)


def tests_of(path: Path) -> list[str]:
    """The test files that name a module, or what it is part of."""
    name = re.escape(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return _files(rf"{name}\b|(?:from|import) {name.rpartition('.')[0][:-1]}\b")


def deciding_tests(paths: list[Path]) -> list[str]:
    """The test files that name one of the modules, or run a command that decides."""
    commands = _files(rf"judgecal\(\s*\"{_COMMANDS}|import judgecal$|import .*{_COMMANDS}")
    return sorted({*_NETS, *commands, *(test for path in paths for test in tests_of(path))})


def _files(pattern: str) -> list[str]:
    files = (ROOT / "tests").glob("test_*.py")
    able = [test for test in files if re.search(pattern, test.read_text(encoding="utf-8"), re.MULTILINE)]
    return sorted(f"tests/{test.name}" for test in able if not re.match(_OTHERS, test.name))


class _First:
    """A plugin of pytest that keeps the first test that fails."""

    test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.test = self.test or report.nodeid * bool(report.failed)

    pytest_collectreport = pytest_runtest_logreport


class _Wrong(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module with a mistake in it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.name = mutant, mutant.module

    def find_spec(self, name: str, *_: Any) -> Any:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.mutant.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, str(self.mutant.path), "exec"), vars(module))


class Session:
    """A session of pytest whose tests are collected once and run in forks; what it finds of each mistake is printed.

    `trace` keeps which test reaches which line; the tests of a mistake take at most `most_s` together.
    """

    def __init__(self, drawn: Sequence[Mutant], trace: Path, most_s: float) -> None:
        self.drawn, self.trace, self.most_s, self.alive = drawn, trace, most_s, 0
        self.saw = Counter[str]()  # how many mistakes each test saw; without one these do not fail

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        for mutant in self.drawn:
            importlib.import_module(mutant.module)
        with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            if not self.trace.exists():
                forked(self._traced, cpu_s=7200)
            reached = json.loads(self.trace.read_text(encoding="utf-8"))
            self.seconds, self.failing, self.tests_at = (
                reached["seconds"],
                set(reached["failing"]),
                reached["at"],
            )
            fail = ", ".join(sorted(self.failing)) or "none"
            print(
                f"{len(self.items):,} tests, {sum(self.seconds.values()):.0f} s; fail without a mistake: {fail}",
                flush=True,
            )
            for mutant in self.drawn:
                test = self.seen_by(mutant)
                self.alive += test is None
                print(
                    f"survives: {mutant.place}" if test is None else f"seen: {mutant.place} by {test}",
                    flush=True,
                )
        return True

    def _traced(self) -> str:
        """Run every test, and write down how long each took, which failed, and which reaches which line."""
        places = sorted({str(mutant.path) for mutant in self.drawn})
        measured = coverage.Coverage(include=places, data_file=None, config_file=False)
        seconds, failing = {}, []
        measured.start()
        for name, item in self.items.items():
            measured.switch_context(name)
            start = time.process_time()
            failing += [name] * bool(_failed([item]))
            seconds[name] = time.process_time() - start
        measured.stop()
        lines = measured.get_data()
        at = {place: lines.contexts_by_lineno(place) for place in places}
        self.trace.write_text(
            json.dumps({"seconds": seconds, "failing": failing, "at": at}), encoding="utf-8"
        )
        return ""

    def seen_by(self, mutant: Mutant) -> str | None:
        """The test that fails with a mistake, and does not fail without it."""
        codes = _patches(mutant)
        while True:
            tests = self.tests(mutant, at_import=codes is None)
            test = forked(partial(self._with, mutant, codes, tests), cpu_s=self.most_s + 60)
            if test is None or test not in self.items:
                return test
            if test in self.saw or not forked(partial(_failed, [self.items[test]]), cpu_s=self.most_s + 60):
                self.saw[test] += 1
                return test
            self.failing.add(test)

    def tests(self, mutant: Mutant, *, at_import: bool) -> list[str]:
        """The tests to run for a mistake, in order; where it acts as its module is imported, those of the files that
        name the module."""
        if at_import:
            own = {*tests_of(mutant.path), *_NETS}
            able = [name for name in self.items if name.partition("::")[0] in own]
        else:
            at = self.tests_at[str(mutant.path)]
            lines = range(mutant.lines[0], mutant.lines[1] + 1)
            able = list({name for line in lines for name in at.get(str(line), ()) if name in self.items})
        able = [name for name in able if name not in self.failing]
        able.sort(
            key=lambda name: (
                mutant.path.stem not in name,
                -self.saw[name],
                self.seconds.get(name, 0.0),
                name,
            )
        )
        spent = itertools.accumulate(self.seconds.get(name, 0.0) for name in able)
        return [name for name, total in zip(able, spent, strict=True) if total <= self.most_s]

    def _with(self, mutant: Mutant, codes: dict[FunctionType, CodeType] | None, tests: Sequence[str]) -> str:
        if codes is None:
            for name in [name for name in sys.modules if name.partition(".")[0] in ("judgecal", "tests")]:
                del sys.modules[name]
            sys.meta_path.insert(0, _Wrong(mutant))
            first = _First()
            ended = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-n", "0", *tests], plugins=[first])
            return first.test or "an import that fails" * (ended not in (0, 5))
        for function, code in codes.items():
            function.__code__ = code
        return _failed([self.items[name] for name in tests])


def _failed(items: Sequence[pytest.Item]) -> str:
    """The first of some collected tests that fails; empty where none does."""
    from _pytest.runner import runtestprotocol

    for item, following in itertools.zip_longest(items, items[1:]):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return str(item.nodeid)
    return ""


def _patches(mutant: Mutant) -> dict[FunctionType, CodeType] | None:
    """The loaded functions that hold a mistake, with their code as it is with it; None where it acts at import."""
    old, new = (
        list(_codes(compile(source, str(mutant.path), "exec")))
        for source in (mutant.path.read_text(encoding="utf-8"), mutant.source)
    )
    wrong = [before for before, after in zip(old, new, strict=True) if _own(before) != _own(after)]
    loaded = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == str(mutant.path):
            loaded[thing.__code__.co_qualname, thing.__code__.co_firstlineno].append(thing)
    patches: dict[FunctionType, CodeType] = {}
    for code in wrong:
        holders = [
            (functions, after)
            for before, after in zip(old, new, strict=True)
            if code in _codes(before)
            and (functions := loaded.get((before.co_qualname, before.co_firstlineno)))
        ]
        if not holders:
            return None
        patches |= dict.fromkeys(holders[0][0], holders[0][1])
    return patches


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _own(code: CodeType) -> tuple[Any, ...]:
    constants = [repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType)]
    return code.co_code, constants, code.co_names


def forked(run: Callable[[], str], *, cpu_s: float) -> str | None:
    """What a function gives in a fork, None where that is empty; how the fork ended, where it did not finish."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))
            for output in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), output)
            os.write(writing, b"=" + run().encode())
        finally:
            os._exit(0)
    os.close(writing)
    ready = select.select([reading], [], [], 20.0 * cpu_s)[0]
    answer = os.read(reading, 65536).decode() if ready else "no end"
    os.close(reading)
    os.killpg(child, signal.SIGKILL)  # with what a test has left behind
    os.waitpid(child, 0)
    return (answer[1:] or None) if answer.startswith("=") else "a fork that ended early"


def main() -> int:
    """Draw, run and list."""
    quick = {"n": 1, "only": "stats/metrics.py", "tests": ["tests/test_stats_strata.py"]}
    flags: dict[str, Any] = {"seed": 0, "trace": "", "seconds": 60, "only": "", "tests": []}
    bench = Bench(__doc__, n=300, of="mistakes", quick=quick, **flags)
    options = bench.options
    gone = [pattern for pattern in DECIDING if not any((ROOT / "judgecal").glob(pattern))]
    assert not gone, f"no such files: {gone}"
    files = sorted({path for pattern in DECIDING for path in (ROOT / "judgecal").glob(pattern)})
    files = [path for path in files if options.only in path.as_posix()]
    every = [mutant for path in files for mutant in mutants(path)]
    drawn = random.Random(options.seed).sample(every, min(bench.n, len(every)))
    print(f"{len(every):,} places in {len(files)} files, {len(drawn)} drawn, seed {options.seed}", flush=True)
    os.environ.update(OPENBLAS_NUM_THREADS="1", POLARS_MAX_THREADS="1", LITELLM_LOCAL_MODEL_COST_MAP="True")
    tests = options.tests or deciding_tests(sorted({mutant.path for mutant in drawn}))
    with tempfile.TemporaryDirectory() as folder:
        session = Session(drawn, Path(options.trace or f"{folder}/trace.json"), options.seconds)
        pytest.main(["-q", "-p", "no:cacheprovider", "-n", "0", *tests], plugins=[session])
    seen = len(drawn) - session.alive
    print(f"{seen} of {len(drawn)} seen by a test: {seen / len(drawn):.1%}")
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
