"""A gold set that waits for labels, and a desk on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.desk.desk import Desk, Labelling
from judgecal.goldset import load_gold
from tests.support.command import ROOT
from tests.support.gold import made_gold, made_items
from tests.support.pages import OPEN


def waiting(
    folder: Path, n: int, *, scale: str = 'kind = "binary"', texts: Mapping[str, Any] | None = None
) -> Path:
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
    """The lines of the journal of labels; none before the first act."""
    path = folder / "labels.jsonl"
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


@dataclass
class Served:
    """`judgecal gold label` in a process of its own."""

    process: subprocess.Popen[str]
    links: dict[str, str]

    @property
    def address(self) -> str:
        """Without what stands behind #."""
        return next(iter(self.links.values())).partition("#")[0]

    def headers(self, rater: str) -> dict[str, str]:
        """What a rater's page sends with every act."""
        name, _, token = self.links[rater].partition("#")[2].rpartition(".")
        return {"Judgecal-Rater": name, "Judgecal-Token": token}

    def ended(self) -> tuple[int, str, str]:
        """Wait for its end; code, stdout, stderr."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def interrupt(self) -> tuple[int, str, str]:
        """As by Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()


@contextlib.contextmanager
def served(folder: Path, *argv: str) -> Iterator[Served]:
    """A command that serves, in a workspace, until the block ends."""
    command = [sys.executable, "-m", "judgecal", "gold", *argv, "--no-open"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=folder, env=environment, **pipes)
    try:
        assert process.stderr is not None
        links = {}
        for line in process.stderr:
            words = line.split()
            if len(words) == 2 and words[1].startswith("http://"):
                links[words[0]] = words[1]
            elif links or (line.startswith("judgecal: ") and "one link for" not in line):
                break
            if links and len(links) == _n_raters(argv):
                break
        yield Served(process, links)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _n_raters(argv: Sequence[str]) -> int:
    return len(argv[argv.index("--raters") + 1].split(",")) if "--raters" in argv else 1
