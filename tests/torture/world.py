"""A workspace to be mistreated in: items, an alias for a server, commands run as processes, the journal read
back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgecal.workspace import init_workspace

ROOT = Path(__file__).resolve().parent.parent.parent
SET = "made"
_ITEM = re.compile(rb"item-(\w+)")


def item_of(body: bytes) -> str:
    """Which item a request is about: its question says so."""
    found = _ITEM.findall(body)
    return found[-1].decode() if found else "?"


@dataclass
class Ended:
    """What a process came to."""

    code: int
    out: str
    err: str
    seconds: float
    peak_mb: float = 0.0  # of a forked command: the most memory that it held


class Launcher:
    """The process that forks command lines."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.launcher"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.heard()

    def heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the launcher has died")
        found: dict[str, Any] = json.loads(line)
        return found

    def start(self, command: Mapping[str, Any]) -> int:
        """Fork a child; gives its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self.heard()["pid"])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()


@dataclass
class Running:
    """A started command."""

    pid: int
    begun: float
    files: tuple[Path, Path]
    end: Callable[[float], tuple[int, float]]

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sign)

    def wait(self, timeout: float = 120.0) -> Ended:
        code, peak_mb = self.end(timeout)
        out, err = (path.read_text(encoding="utf-8", errors="replace") for path in self.files)
        return Ended(code, out, err, time.monotonic() - self.begun, peak_mb)

    def left_over(self, patience_s: float = 5.0) -> list[str]:
        """Processes of the same session that still run after it: workers that nobody stops."""
        until = time.monotonic() + patience_s
        while (found := _session(self.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        return found


def _session(leader: int) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            state, _, _, session = rest.split()[:4]
            if int(session) == leader and state != "Z" and path.parent.name != str(leader):
                found.append(name.partition("(")[2])
    return found


@dataclass
class World:
    """One workspace, its cache and the commands run in it."""

    folder: Path
    launcher: Launcher
    count: int = 0
    env: dict[str, str] = field(default_factory=dict)
    runs: int = 0

    @property
    def root(self) -> Path:
        return self.folder / "workspace"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    def make(self, count: int) -> None:
        """The workspace with one gold set of so many items."""
        self.count = count
        init_workspace(self.root)
        gold = self.root / "gold" / SET
        gold.mkdir()
        card = (self.root / "gold" / "starter" / "card.toml").read_text(encoding="utf-8")
        (gold / "card.toml").write_text(card.replace('name = "starter"', f'name = "{SET}"'), encoding="utf-8")
        self.write_items([{"item_id": f"i{n}", "question": f"What is item-{n}?"} for n in range(count)])

    def write_items(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Items with what they lack filled in, and a label for each."""
        gold = self.root / "gold" / SET
        common = {"answer": "Seven.", "reference_answer": "It is seven."}
        rows = [{"group": item["item_id"], **common, **item} for item in items]
        labels = [{"item_id": item["item_id"], "rater": "curator_a", "label": 50} for item in items]
        for name, lines in (("items", rows), ("ratings", labels)):
            (gold / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def alias(self, api_base: str, **settings: Any) -> None:
        values = {
            "id": "openai/mine",
            "api_base": api_base,
            "timeout": 30.0,
            "max_concurrency": 8,
            **settings,
        }
        values.setdefault("input_usd_per_1m", 1.0)
        values.setdefault("output_usd_per_1m", 1.0)
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
        (self.root / "judgecal.toml").write_text(f"[models.mine]\n{lines}")

    def score(self, *argv: str) -> list[str]:
        """The command line that most of this is about."""
        return ["score", "--models", "mine", "--gold", SET, "--split", "all", "--name", "run", *argv]

    def start(self, argv: Sequence[str], *, real: bool = False, **command: Any) -> Running:
        """Start a command line, forked from the launcher or as `python -m judgecal`."""
        self.runs += 1
        files = tuple(self.folder / f"{self.runs}.{kind}" for kind in ("out", "err"))
        env = {"JUDGECAL_CACHE_DIR": str(self.cache), **self.env}
        start = self._start_real if real else self._start_forked
        return start(argv, files, env, command)  # type: ignore[arg-type]

    def _start_forked(
        self, argv: Sequence[str], files: tuple[Path, Path], env: dict[str, str], command: dict[str, Any]
    ) -> Running:
        begun = time.monotonic()
        paths = {"out": str(files[0]), "err": str(files[1]), "cwd": str(self.root)}
        pid = self.launcher.start({"argv": list(argv), "env": env, **paths, **command})

        def end(timeout: float) -> tuple[int, float]:
            with _killed_after(pid, timeout):
                heard = self.launcher.heard()
                return int(heard["code"]), float(heard["peak_mb"])

        return Running(pid, begun, files, end)

    def _start_real(
        self, argv: Sequence[str], files: tuple[Path, Path], env: dict[str, str], _: dict[str, Any]
    ) -> Running:
        begun = time.monotonic()
        with files[0].open("w") as out, files[1].open("w") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "judgecal", *argv], cwd=self.root, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True, env={**os.environ, **env},
            )  # fmt: skip

        def end(timeout: float) -> tuple[int, float]:
            with _killed_after(process.pid, timeout):
                return process.wait(), 0.0

        return Running(process.pid, begun, files, end)

    def run(
        self, argv: Sequence[str], *, timeout: float = 120.0, real: bool = False, **command: Any
    ) -> Ended:
        return self.start(argv, real=real, **command).wait(timeout)

    def rows(self, *, model: str = "mine", slug: str = "run") -> list[dict[str, Any]]:
        """The journal's whole lines about one model, each of which must be JSON."""
        path = self.experiments / slug / "judgements.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [row for row in found if f"@{model}" in row["judge"]]

    def check_whole(self, *, slug: str = "run") -> None:
        """Every item has exactly one verdict in the journal."""
        verdicts = Counter(row["item_id"] for row in self.rows(slug=slug) if row["verdict"] is not None)
        assert verdicts == {f"i{n}": 1 for n in range(self.count)}


@contextlib.contextmanager
def _killed_after(pid: int, timeout: float) -> Iterator[None]:
    """A command that hangs is killed, so that its wait ends."""
    import threading

    def stop() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(timeout, stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
