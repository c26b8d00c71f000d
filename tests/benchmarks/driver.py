"""What the benchmarks share: options, processes, worlds of made-up people and judges, and promises that are counted."""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Task, Found = TypeVar("Task"), TypeVar("Found")

CORRELATION = 0.3  # of the latent scores of the items of one question


def latent(rng: np.random.Generator, n_groups: int, size: int | Ints = 2, *, k: int | None = None) -> Floats:
    """Normal scores of the items of `n_groups` questions, correlated within the question; k rows of them where given.

    `size` is the number of items of each question, or one number for each.
    """
    rows = () if k is None else (k,)
    between = np.repeat(np.sqrt(CORRELATION) * rng.standard_normal((*rows, n_groups)), size, axis=-1)
    scores: Floats = between + np.sqrt(1.0 - CORRELATION) * rng.standard_normal(between.shape)
    return scores


def slack(share: float, n: int) -> float:
    """Two standard errors of a share of n samples."""
    return 2.0 * math.sqrt(share * (1.0 - share) / n)


class Bench:
    """One benchmark: its options, its lines as they come, and how many of its promises are broken.

    `--quick` takes seconds, shows that a benchmark still runs, and promises nothing.

    Args:
        doc: the module's docstring, shown by `--help`.
        n: how much is drawn by default, `-n` at the command line; `of` says what is drawn.
        quick: the defaults of a quick run, of which n is 2 where it is not named.
        flags: further options with their defaults: True or False is a switch, a list may be repeated.
    """

    def __init__(
        self, doc: str | None, *, n: int, of: str, quick: Mapping[str, Any] | None = None, **flags: Any
    ) -> None:
        parser = argparse.ArgumentParser(
            description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("-n", type=int, default=n, help=f"{of} (default {n:,})")
        for name, default in flags.items():
            option = f"--{name.replace('_', '-')}"
            if isinstance(default, bool):
                parser.add_argument(option, action=argparse.BooleanOptionalAction, default=default)
            elif isinstance(default, list):
                parser.add_argument(option, action="append", default=default)
            else:
                parser.add_argument(option, type=type(default), default=default)
        parser.add_argument("--quick", action="store_true", help="a few seconds that only show that it runs")
        self.quick = "--quick" in sys.argv
        if self.quick:
            parser.set_defaults(**{"n": 2, **(quick or {})})
        self.options = parser.parse_args()
        self.n: int = self.options.n
        self.of = of
        self.broken = 0
        self._start = time.perf_counter()

    def each(self, task: Callable[[Task], Found], settings: Iterable[Task]) -> Iterator[tuple[Task, Found]]:
        """A task over settings, on all cores, each with what it came to, in their order."""
        settings = list(settings)
        if self.quick:
            yield from ((setting, task(setting)) for setting in settings)
            return
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read by the processes that are started
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
            yield from zip(settings, pool.map(task, settings), strict=True)

    def some(self, settings: Iterable[Task]) -> list[Task]:
        """All settings; of a quick run the first and the last."""
        every = list(settings)
        return [every[0], every[-1]] if self.quick and len(every) > 2 else every

    def head(self, *texts: str) -> None:
        """What the next lines are about."""
        print("", *texts, sep="\n", flush=True)

    def line(self, text: str, *, kept: bool = True) -> None:
        """One line; a promise that is not kept is marked and counted."""
        broken = not kept and not self.quick
        self.broken += broken
        print(text + "   BROKEN" * broken, flush=True)

    def target(
        self, what: str, value: float, *, least: float | None = None, most: float | None = None
    ) -> None:
        """One measured target: at least, or at most, so much."""
        kept = (least is None or value >= least) and (most is None or value <= most)
        wanted = f"at least {least:g}" if least is not None else f"at most {most:g}"
        self.line(f"  -> {what}: {value:.3g}, target {wanted}: {'met' if kept else 'missed'}", kept=kept)

    def end(self, *packages: str) -> int:
        """What was run, and the exit code: 1 where a promise is broken."""
        promises = "no promise broken" if not self.broken else f"promises broken: {self.broken}"
        promises = "nothing is promised of a quick run" if self.quick else promises
        versions = "".join(f"{name} {version(name)}, " for name in packages)
        machine = f"{versions}Python {platform.python_version()}, {os.cpu_count()} cores"
        seconds = time.perf_counter() - self._start
        print(f"\n{promises}; {self.n:,} {self.of}, {seconds:.0f} s; {machine}", flush=True)
        return int(self.broken > 0)
