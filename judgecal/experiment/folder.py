"""An experiment: a folder with a question (`experiment.toml`) and its results.

The folder's name ends in a hash of the resolved configuration, so that the same command resumes, and another
configuration never meets its verdicts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from judgecal.artefacts import SCHEMA, check_schema, read_json, read_toml, toml_text, validated
from judgecal.errors import InputError, JudgecalError, refuse
from judgecal.records import Result, as_plain, digest
from judgecal.workspace import Workspace, name_problem, write_text

_CONFIG = "experiment.toml"
_OUTPUT = "output.json"  # of `judge`: which file it wrote
_LAST = 100_000  # bytes of a journal within which its last line begins
_AT = re.compile(rb'"at": ?"(\d{4}-\d\d-\d\dT[\d:]+\+00:00)"')
_HEAD = 200  # characters of a summary within which it says what code made it
_SOURCES = (".py", ".html", ".css", ".js")
_R = TypeVar("_R", bound=Result)

OPENED: ContextVar[Path | None] = ContextVar("OPENED", default=None)
"""The folder of the experiment that was opened last, for the message of whatever breaks the command off."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment's folder and configuration.

    `folder` is where it is, or would be; what the resolved configuration holds decides the default slug.
    """

    folder: Path
    config: Mapping[str, Any]

    @property
    def slug(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def journal(self) -> Path:
        """`judgements.jsonl`."""
        return self.folder / "judgements.jsonl"

    @property
    def program(self) -> Path:
        """`program.json`."""
        return self.folder / "program.json"

    @property
    def summary(self) -> Path:
        """`summary.json`: the result, once the command came to its end."""
        return self.folder / "summary.json"

    @property
    def last_written(self) -> datetime:
        """When its last judgement was made; where it has none, when its files were last written. In UTC."""
        if self.journal.is_file():
            with self.journal.open("rb") as opened:
                opened.seek(max(0, self.journal.stat().st_size - _LAST))
                found = _AT.findall(opened.read())
            if found:
                return datetime.fromisoformat(found[-1].decode())
        files = [path for path in (self.summary, self.folder / _CONFIG) if path.exists()]
        return datetime.fromtimestamp(max(path.stat().st_mtime for path in files), UTC)

    def read_summary(self, kind: type[_R]) -> _R:
        """The result that `write_summary` left, as the class that it was.

        Raises:
            InputError: there is none, as after an interruption, or it is no such result.
        """
        absent = (
            "is not there: the command did not come to its end; run it again, it goes on where it stopped"
        )
        try:
            told = read_json(self.summary, absent=absent)
            told.pop("code", None)
            return validated(kind, told, str(self.summary))
        except InputError as error:
            if not self.summary.exists():
                raise
            raise InputError([*error.problems, "delete it and run the same command again"]) from error

    @property
    def is_summary_current(self) -> bool:
        """Whether `summary.json` is of this code, and not older than the journal."""
        if not (self.journal.is_file() and self.summary.is_file()):
            return False
        with self.summary.open(encoding="utf-8", errors="replace") as opened:
            head = opened.read(_HEAD)
        newer = self.journal.stat().st_mtime_ns > self.summary.stat().st_mtime_ns
        return f'"code": "{code_sha()}"' in head and not newer

    def write_summary(self, summary: Result | Mapping[str, Any]) -> None:
        """Write a result as `summary.json` in one step, so that a reader never meets half of it.

        Raises JudgecalError: the folder was deleted since it was opened, and the judgements with it.
        """
        if not self.folder.is_dir():
            raise JudgecalError(
                f"{self.folder} was deleted while this ran, and the judgements in it are gone with it: run the command "
                "again; where its replies are in the cache, they cost nothing"
            )
        text = json.dumps(
            {"schema": SCHEMA, "code": code_sha(), **as_plain(summary)},
            indent=2,
            ensure_ascii=False,
            allow_nan=False,
        )
        write_text(self.summary, text + "\n")

    def mark_output(self, output: Path) -> None:
        """Note that an output is this experiment's, when it is written and not yet under its name.

        So a kill between the two leaves no file that the same command would take for somebody else's.
        """
        write_text(self.folder / _OUTPUT, json.dumps({"output": str(output)}) + "\n")

    def wrote(self, output: Path) -> bool:
        """Whether an output that is there is what this very command wrote before, and nobody changed it
        since."""
        mark = self.folder / _OUTPUT
        if not (mark.is_file() and output.is_file()):
            return False
        told = read_json(mark, absent="").get("output")
        return told == str(output) and output.stat().st_mtime_ns <= mark.stat().st_mtime_ns


@cache
def code_sha() -> str:
    """16 hex digits over the sources of the package: what other code made is made again."""
    total, folder = hashlib.sha256(), Path(__file__).parent.parent
    for path in sorted(path for path in folder.rglob("*.*") if path.suffix in _SOURCES):
        total.update(f"{path.relative_to(folder)}\n".encode())
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def plan_experiment(workspace: Workspace, config: Mapping[str, Any], *, out: str | None) -> Experiment:
    """Name the experiment of a configuration and hold it against what is there; nothing is written.

    `command` and `gold.set`, or `suite`, of the resolved configuration make the default slug; `out` is used
    instead.

    Raises:
        InputError: the slug is no folder name, or the folder was made by another configuration.
    """
    slug = out or _slug(config)
    if problem := name_problem(slug):
        raise InputError(f"--name {slug[:80]!r}: a slug is one folder name under experiments/: {problem}")
    folder = workspace.experiments / slug
    if (folder / _CONFIG).exists():
        stored = read_toml(folder / _CONFIG)
        differing = _differences(_plain(stored), _plain({"schema": SCHEMA, **config}))
        if differing:
            raise InputError(
                f"{folder} was made by another configuration (it differs in {', '.join(differing)}): "
                "choose another --name, or leave it out"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is no experiment (it has no {_CONFIG}): choose another --name")
    return Experiment(folder, config)


def _slug(config: Mapping[str, Any]) -> str:
    subject = config["gold"]["set"] if "gold" in config else config["suite"]
    return f"{config['command']}-{subject}-{digest(_plain(config))[:8]}"


def open_experiment(experiment: Experiment) -> None:
    """Make the folder and write its configuration, unless they are there."""
    experiment.folder.mkdir(parents=True, exist_ok=True)
    OPENED.set(experiment.folder)
    path = experiment.folder / _CONFIG
    if not path.exists():
        write_text(path, toml_text({"schema": SCHEMA, **experiment.config}))


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of an experiment on disk.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    config = read_toml(folder / _CONFIG)
    check_schema(config, str(folder / _CONFIG))
    refuse(list(_odd_values(config, str(folder / _CONFIG))))
    return config


_KINDS: Mapping[str, tuple[type, str]] = {
    "command": (str, "a text"),
    "suite": (str, "a text"),
    "split": (str, "a text"),
    "seed": (int, "a whole number"),
    "repeats": (int, "a whole number"),
    "limit": (int, "a whole number"),
    "gold": (dict, "a table"),
}
"""Keys that several commands read back, and what each holds."""


def _odd_values(config: Mapping[str, Any], where: str) -> Iterator[str]:
    """What judgecal did not write so."""
    for key, (kind, words) in _KINDS.items():
        if key in config and type(config[key]) is not kind:
            yield f"{where}: {key} must be {words}, found {config[key]!r:.80}: bring it back as judgecal wrote it"
    judges, needed = config.get("judges", []), config.get("command") in ("score", "optimize")
    named = isinstance(judges, list) and all(
        (isinstance(one, str) and not needed)  # select names those that it chooses from
        or (isinstance(one, dict) and all(isinstance(one.get(key), str) for key in ("judge", "fingerprint")))
        for one in judges
    )
    if not named or (needed and not judges):
        yield f"{where}: judges must list judge and fingerprint of each, as judgecal wrote them"


def _plain(value: Any) -> Any:
    """The configuration as TOML would give it back: without None, tuples as lists."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _differences(stored: Any, wanted: Any, where: str = "") -> list[str]:
    if isinstance(stored, dict) and isinstance(wanted, dict):
        keys = sorted(stored.keys() | wanted.keys())
        found = (
            _differences(stored.get(key), wanted.get(key), f"{where}.{key}" if where else key) for key in keys
        )
        return [name for names in found for name in names]
    return [] if stored == wanted else [where]
