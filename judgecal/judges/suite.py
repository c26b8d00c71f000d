"""Suites: judges that run together over one table, and the columns that they fill.

A suite is the file `suites/NAME.toml` of the workspace:

    schema = 1

    [judges.groundedness]
    judge = "mosaic/groundedness"     # a judge's string; or lock = "experiments/.../judge.lock.json"
    column = "response/llm_judged/groundedness"  # what its columns begin with; this is the default
    aggregate = "rating"              # what of its verdicts goes there; by default what its unit asks for

A prompt judge without a model behind an `@` runs on the model that is chosen when the suite is run. Judges of
one column stand in for each other: of those that have one column, the first that a row has the inputs for
judges it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from judgecal.artefacts import read_toml, validated
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.judges.protocol import JudgeName
from judgecal.signatures import CHUNK
from judgecal.workspace import Workspace

Aggregate = Literal["rating", "precision", "share"]
"""What of a judge's verdicts goes into the columns: `rating` the verdict on an item with its rationale,
`precision` those on its chunks and the share of them that pass, `share` the verdict alone as a number from 0
to 1.
"""


class _SuiteMember(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    judge: str | None = None
    lock: str | None = None
    column: str | None = None
    aggregate: Aggregate | None = None


class _SuiteTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    judges: dict[str, _SuiteMember] = {}


@dataclass(frozen=True, slots=True)
class SuiteJudge:
    """One judge of a suite, as its file has it."""

    name: str  # what the suite calls it
    judge: str | None = None  # its string, which may lack the model; None where there is a lock
    lock: Path | None = None  # the path of its lock; None where there is a judge
    column: str | None = None  # what its columns begin with; None for the usual place
    aggregate: Aggregate | None = None  # None for what its unit asks for

    @property
    def lacks_model(self) -> bool:
        """Whether the judge is a prompt that runs on whatever model is chosen."""
        return self.judge is not None and "@" not in self.judge

    def judge_on(self, model: str) -> JudgeName:
        """Return this judge's JudgeName, on a model by name where it has none; InputError of a lock."""
        if self.judge is None:
            raise InputError(f"{self.name}: has a lock and no judge's string")
        return JudgeName.parse(f"{self.judge}@{model}" if self.lacks_model else self.judge)

    def column_of(self, unit: str) -> str:
        """What its columns begin with, by default where Mosaic AI Agent Evaluation has judges of its unit."""
        return self.column or f"{'retrieval' if unit == CHUNK else 'response'}/llm_judged/{self.name}"

    def aggregate_of(self, unit: str) -> Aggregate:
        """How the verdicts on a unit are aggregated for the columns."""
        return self.aggregate or ("precision" if unit == CHUNK else "rating")


@dataclass(frozen=True, slots=True)
class Suite:
    """Judges that run together; `name` is the file's without its ending."""

    name: str
    judges: tuple[SuiteJudge, ...]


def list_suites(workspace: Workspace) -> list[str]:
    """Return suite names in a Workspace, a sorted list; a leading underscore or dot hides a file."""
    stems = (path.stem for path in workspace.suites.glob("*.toml"))
    return sorted(name for name in stems if not name.startswith(("_", ".")))


def load_suite(name_or_path: str | Path, *, workspace: Workspace) -> Suite:
    """Load a Suite from a Workspace, by a name or the path of a file (`name_or_path`)."""
    text = str(name_or_path)
    path = Path(text) if text.endswith(".toml") else workspace.suites / f"{text}.toml"
    if not text.endswith(".toml") and text not in list_suites(workspace):
        raise unknown_name("suite", text, list_suites(workspace))
    table = validated(_SuiteTable, read_toml(path), str(path))
    if not table.judges:
        raise InputError(f"{path}: holds no judge: add [judges.NAME] with judge or lock")
    problems: list[str] = []
    judges: list[SuiteJudge] = []
    for name, entry in table.judges.items():
        faults = []
        if (entry.judge is None) == (entry.lock is None):
            faults.append("give either judge, a judge's string, or lock, the path of a judge.lock.json")
        if entry.judge is not None and not entry.judge.strip():
            faults.append("judge is empty: write signature, signature@model or NAME@local")
        elif entry.judge is not None and "@" in entry.judge:
            try:
                JudgeName.parse(entry.judge)
            except InputError as error:
                faults.extend(error.problems)
        if entry.column is not None and not entry.column.strip():
            faults.append("column is empty: name it, or leave it out")
        problems += [f"{path}: judges.{name}: {problem}" for problem in faults]
        lock = None if entry.lock is None else workspace.root / entry.lock
        judges.append(SuiteJudge(name, entry.judge, lock, entry.column, entry.aggregate))
    refuse(problems)
    return Suite(path.stem, tuple(judges))
