"""Looks at the test split: every use of its labels is written down, and a decision pays for the ones before.

From the second decision on a set the test split is *reused*: numbers stand at level 1 - 0.05 / looks (Bonferroni).
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judgecal.errors import InputError
from judgecal.workspace import SCHEMA, check_schema

LOOKS_FILE = "test_looks.jsonl"
LookKind = Literal["decision", "report", "gate"]
_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Look:
    """Where a look stands among the decisions on one gold set.

    Attributes:
        number: decisions so far, this one included; 0 before the first.
        new: whether this very look was written now, or an identical command had made it before.
    """

    number: int
    new: bool

    @property
    def reused(self) -> bool:
        """Whether the test labels had served a decision before."""
        return self.number > 1

    @property
    def level(self) -> float:
        """The nominal coverage at which this decision is shown."""
        return 1.0 - _ALPHA / max(1, self.number)

    def sentence(self, gold: str, level: float | None = None) -> str:
        """What is printed about it; `level` where it is not that of an interval at 0.95."""
        if not self.number:
            return f"test labels of {gold}: looked at, no decision taken on them yet"
        note = f", reused: shown at level {self.level if level is None else level:.4g}" if self.reused else ""
        return f"test labels of {gold}: decision {self.number}{note}"


def look_at_test(
    experiments: Path, *, gold: str, gold_sha256: str, experiment: str, kind: LookKind, n_items: int
) -> Look:
    """Write a look down and say which one it is.

    The same experiment on as many test items looks once, however often it is run; a larger `--limit` is another
    look, for the first one's answer was known when it was asked for.

    Raises:
        InputError: the log cannot be read.
    """
    rows = [row for row in _rows(experiments / LOOKS_FILE) if row["gold"] == gold]
    made = [(row["experiment"], row.get("n_items")) for row in rows if row["kind"] == kind]
    this = (experiment, n_items)
    if this not in made:
        about = {"gold": gold, "gold_sha256": gold_sha256, "experiment": experiment}
        _append(experiments, {**about, "kind": kind, "n_items": n_items})
    if kind != "decision":
        return Look(sum(row["kind"] == "decision" for row in rows), this not in made)
    return Look([*made, this].index(this) + 1, this not in made)


def looks_so_far(experiments: Path, gold: str) -> int:
    """How many decisions have been taken on the test labels of a gold set."""
    return sum(row["gold"] == gold and row["kind"] == "decision" for row in _rows(experiments / LOOKS_FILE))


def _append(experiments: Path, row: dict[str, Any]) -> None:
    experiments.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with (experiments / LOOKS_FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"schema": SCHEMA, "at": now, **row}) + "\n")


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            row["gold"], row["experiment"], row["kind"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}:{number}: no test look can be read from this line: {error}") from error
        check_schema(row, f"{path}:{number}")
        rows.append(row)
    return rows
