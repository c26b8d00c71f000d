"""An experiment: a folder with a question (`experiment.toml`) and its results.

The folder's name ends in a hash of the resolved configuration, so that the same command resumes, and another
configuration never meets its verdicts.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from judgecal.artefacts import SCHEMA, check_schema, read_json, read_toml, toml_text, validated
from judgecal.errors import InputError, JudgecalError, refuse
from judgecal.judges.protocol import Judge, JudgeKind
from judgecal.records import Result, as_plain, digest
from judgecal.scale import Scale
from judgecal.workspace import Workspace, name_problem, write_text

VERDICTS = "verdicts.parquet"
"""In the folder of an experiment: the verdicts that were recorded elsewhere, and those of free judges."""
_CONFIG = "experiment.toml"
_OUTPUT = "output.json"  # of `judge`: which file it wrote
_JUDGES = "judges.json"  # written when they are made
_LAST = 100_000  # bytes of a journal within which its last line begins; of Parquet, the end that says when
_AT = re.compile(rb'"at": ?"(\d{4}-\d\d-\d\dT[\d:]+\+00:00)"')
_R = TypeVar("_R", bound=Result)

OPENED: ContextVar[Path | None] = ContextVar("OPENED", default=None)
"""The folder of the experiment that was opened last, for the message of whatever breaks the command off."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment's folder and configuration."""

    folder: Path  # where it is, or would be
    config: Mapping[str, Any]  # resolved; it decides the default slug

    @property
    def slug(self) -> str:
        return self.folder.name

    @property
    def journal(self) -> Path:
        return self.folder / "judgements.jsonl"

    @property
    def verdicts(self) -> Path:
        """`verdicts.parquet`: the verdicts that no paid call made."""
        return self.folder / VERDICTS

    @property
    def judged(self) -> list[Path]:
        """The files that hold the experiment's judgements."""
        return [path for path in (self.journal, self.verdicts) if path.is_file()]

    @property
    def program(self) -> Path:
        return self.folder / "program.json"

    @property
    def summary(self) -> Path:
        """`summary.json`: the result, once the command came to its end."""
        return self.folder / "summary.json"

    @property
    def last_written(self) -> datetime:
        """When its last judgement was made; where it has none, when its files were last written. In UTC."""
        last = []
        for path in self.judged:
            with path.open("rb") as opened:
                opened.seek(max(0, path.stat().st_size - _LAST))
                last += _AT.findall(opened.read())[-1:]
        if last:
            return datetime.fromisoformat(max(last).decode())
        files = [path for path in (self.summary, self.folder / _CONFIG) if path.exists()]
        return datetime.fromtimestamp(max(path.stat().st_mtime for path in files), UTC)

    def read_summary(self, kind: type[_R]) -> _R:
        """Read the experiment's own `summary.json` as a Result of the class `kind`; refuse another class."""
        ended = "the command did not finish; run it again, and it goes on where it stopped"
        try:
            summary = read_json(self.summary, absent=f"is not there: {ended}")
            return validated(kind, summary, str(self.summary))
        except InputError as error:
            if not self.summary.exists():
                raise
            raise InputError([*error.problems, "delete it and run the same command again"]) from error

    def write_summary(self, summary: Result | Mapping[str, Any]) -> None:
        """Write a Result or mapping as the experiment's `summary.json` in one step, never half of it.

        Raises JudgecalError: the folder was deleted since it was opened, and the judgements with it.
        """
        if not self.folder.is_dir():
            raise JudgecalError(
                f"{self.folder} was deleted while this ran, and the judgements in it are gone with it: run "
                "the command again; where its replies are in the cache, they cost nothing"
            )
        plain = {"schema": SCHEMA, **as_plain(summary)}
        text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
        write_text(self.summary, text + "\n")

    def mark_output(self, output: Path) -> None:
        """Note in the experiment's own folder that the path of an output is its own, before it is written.

        So a kill between the two leaves no file that the same command would take for somebody else's.
        """
        write_text(self.folder / _OUTPUT, json.dumps({"output": str(output)}) + "\n")

    def wrote(self, output: Path) -> bool:
        """Return whether this very command wrote the output at a path, and nobody changed it since."""
        mark = self.folder / _OUTPUT
        if not (mark.is_file() and output.is_file()):
            return False
        written = read_json(mark, absent="").get("output")
        return written == str(output) and output.stat().st_mtime_ns <= mark.stat().st_mtime_ns


def plan_experiment(workspace: Workspace, config: Mapping[str, Any], *, out: str | None) -> Experiment:
    """Return a workspace's Experiment of a configuration and a name `out` (None: by hash); writes nothing.

    `command` and `gold.set`, or `suite`, of the resolved configuration make the default slug; `out` is used
    instead. Refused where the slug is no folder name, or the folder was made by another configuration.
    """
    if not out:
        subject = config["gold"]["set"] if "gold" in config else config["suite"]
        out = f"{config['command']}-{subject}-{digest(_plain(config))[:8]}"
    if problem := name_problem(out):
        raise InputError(f"--name {out[:80]!r}: a slug is one folder name under experiments/: {problem}")
    folder = workspace.experiments / out
    if (folder / _CONFIG).exists():
        stored, wanted = _plain(read_toml(folder / _CONFIG)), _plain({"schema": SCHEMA, **config})
        differing = sorted(key for key in stored | wanted if stored.get(key) != wanted.get(key))
        if differing:
            raise InputError(
                f"{folder} was made by another configuration (it differs in {', '.join(differing)}): "
                "choose another --name, or leave it out"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not an experiment (it has no {_CONFIG}): choose another --name")
    return Experiment(folder, config)


def open_experiment(experiment: Experiment) -> None:
    """Create the folder of an Experiment, with its own configuration, unless they are there."""
    experiment.folder.mkdir(parents=True, exist_ok=True)
    OPENED.set(experiment.folder)
    path = experiment.folder / _CONFIG
    if not path.exists():
        write_text(path, toml_text({"schema": SCHEMA, **experiment.config}))


def read_config(folder: Path) -> dict[str, Any]:
    """Read the configuration, a dict, in the folder (a path) of an experiment; refuse a damaged file."""
    where, problems = str(folder / _CONFIG), []
    config = read_toml(folder / _CONFIG)
    check_schema(config, where)
    for key, (kind, words) in _KINDS.items():
        if key in config and type(config[key]) is not kind:
            value = f"{config[key]!r:.80}"
            problems.append(f"{where}: {key} must be {words}, found {value}: restore it as judgecal wrote it")
    judges, needed = config.get("judges", []), config.get("command") in ("score", "optimize")
    named = isinstance(judges, list) and all(
        (isinstance(judge, str) and not needed)  # select names those that it chooses from
        or (isinstance(judge, dict) and {str} == {type(judge.get(key)) for key in ("judge", "fingerprint")})
        for judge in judges
    )
    if not named or (needed and not judges):
        problems.append(f"{where}: judges must list judge and fingerprint of each, as judgecal wrote them")
    refuse(problems)
    return config


_KINDS: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("command", "suite", "split"), (str, "a text")),
    **dict.fromkeys(("seed", "repeats", "limit"), (int, "a whole number")),
    "gold": (dict, "a table"),
}
"""Keys that several commands read back, and what each holds."""


def _plain(value: Any) -> Any:
    """The configuration as TOML would give it back: without None, tuples as lists."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class StoredDescription:
    """A judge as it was when the experiment was made: what a report shows of it without running any code."""

    scale: str  # of its verdicts
    kind: JudgeKind
    fingerprint: str
    categories: tuple[str, ...] = ()  # of a nominal scale
    messages: str | None = None  # what it is sent, with the names of the item's fields in their places
    trained_on: tuple[str, ...] = ()  # groups whose labels it has seen

    def verdicts(self) -> Scale:
        """Return the Scale of the judge's verdicts."""
        scale = Scale.parse(self.scale)
        return dataclasses.replace(scale, categories=self.categories) if self.categories else scale


def keep_judges(experiment: Experiment, judges: Iterable[Judge]) -> None:
    """Write the scales and prompts of Judges into an Experiment, for reports."""
    descriptions = {}
    for judge in judges:
        messages = None
        if judge.kind == "prompt":
            from judgecal.judges.prompt import PromptJudge  # which loads DSPy

            messages = judge.as_sent() if isinstance(judge, PromptJudge) else None
        trained = tuple(sorted(judge.trained_on))
        what = str(judge.scale), judge.kind, judge.fingerprint, judge.scale.categories
        descriptions[judge.name] = as_plain(StoredDescription(*what, messages, trained))
    text = json.dumps({"schema": SCHEMA, "judges": descriptions}, indent=2)
    write_text(experiment.folder / _JUDGES, text + "\n")


def kept_judges(experiment: Experiment) -> Mapping[str, StoredDescription]:
    """Read the judges of an Experiment: name -> `StoredDescription`; empty where nothing was written."""
    path = experiment.folder / _JUDGES
    if not path.is_file():
        return {}
    table = read_json(path, absent="is not there")
    return validated(dict[str, StoredDescription], table.get("judges", {}), str(path))
