"""Looks at the test split: every use of its labels is written down, and a decision pays for the ones before.

Decision k is taken and shown at level 1 - 0.05 * 6 / (pi^2 k^2). As the sum of 1 / k^2 is pi^2 / 6, all
decisions on the same test labels together err in at most 5%, however many there will be.

What a look is hangs on content alone: what the judges said of the test items (in whatever order, under
whatever name), by what they are held, and the texts and labels of the test items. So a second `--name`, a
copy of a judge or the same test items among others are the same look, and new verdicts of the same judge are
another. Decisions count together where at least half of the items of the smaller of their test splits are in
the other: a copy of a set under another name is no new set, nor is one that has grown, or whose labels were
mended.

A decision is written in the log and in the folder of the experiment that it was taken in. What the log lacks
is counted from those folders, from results of experiments that name a decision, and from the locks beside
`experiments/`, and written back. A line that cannot be read is named and counts as one decision on whatever
test labels are asked about: to count one too few is what would err.
"""

from __future__ import annotations

import datetime
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from judgecal.artefacts import SCHEMA, check_schema, json_object, read_json
from judgecal.errors import InputError, listed, notice
from judgecal.goldset import GoldSet
from judgecal.records import Item, Judgement, digest

LOOKS_FILE = "test_looks.jsonl"
_LOCK_FILE = ".test_looks.lock"
LookKind = Literal["decision", "report", "gate"]
_DECISION = "decision"
_SHARED = 0.5
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """Where a look stands among the decisions on the same test labels.

    Attributes:
        number: decisions so far, this one included; 0 before the first.
        new: whether this very look is made for the first time.
    """

    number: int
    new: bool

    @property
    def reused(self) -> bool:
        """Whether the test labels had served a decision before."""
        return self.number > 1

    @property
    def level(self) -> float:
        """The nominal coverage at which this decision is shown: 0.9696 of the first, 0.9924 of the second."""
        return self.level_within(0.95)

    def level_within(self, level: float) -> float:
        """The coverage of this decision's interval where all decisions together err in at most 1 - level."""
        return 1.0 - (1.0 - level) * 6.0 / (math.pi * max(1, self.number)) ** 2

    def sentence(self, gold: str, level: float = 0.95) -> str:
        """What is printed about it; all decisions together err in at most 1 - `level`."""
        if not self.number:
            return f"test labels of {gold}: looked at, no decision taken on them yet"
        return (
            f"decision {self.number} on the test labels of {gold}{', reused' * self.reused}: shown at level "
            f"{self.level_within(level):.4g}, so that all decisions on them together err in at most "
            f"{100.0 * (1.0 - level):.3g}%"
        )


def look_at_test(
    experiments: Path,
    gold: GoldSet,
    items: Iterable[Item],
    *,
    experiment: str,
    kind: LookKind,
    by: str,
    judges: Mapping[str, str],
) -> Look:
    """Write a look down and say which one it is.

    The same verdicts by the same question on the same test items and labels are one look, however often made;
    more items under a larger `--limit` are another look, for the first one's answer was known when it was
    asked for.

    Args:
        items: what is looked at; those of the splits train and dev among them do not count.
        experiment: the slug; a decision is written into that folder too.
        by: what is asked, such as "compare by macro_agreement".
        judges: fingerprint -> `verdicts_sha` of those who are decided on.

    Raises:
        InputError: a line of the log was written by a later judgecal.
    """
    about = {"gold": gold.name, "gold_sha256": gold.sha256, "experiment": experiment, "kind": kind, "by": by}
    this = {**about, **_judges(judges), **_content(gold, items)}
    folder = experiments / experiment
    experiments.mkdir(parents=True, exist_ok=True)
    # No other process may look between the reading, which gives this look its number, and the writing.
    with FileLock(experiments / _LOCK_FILE):
        rows, lost, unreadable = _looks(experiments, gold)
        if lost:
            _write_back(experiments, lost)
            rows = [*rows, *lost]
        look = _placed(rows, this, unreadable)
        if look.new:
            _append(experiments, this)
        of_folder = _rows(folder / LOOKS_FILE)[0] if kind == _DECISION and folder.is_dir() else [this]
        if all(_key(row) != _key(this) for row in of_folder):
            _append(folder, this)
    return look


def foresee_look(
    experiments: Path,
    gold: GoldSet,
    items: Iterable[Item],
    *,
    by: str,
    judges: Mapping[str, str] | None = None,
) -> Look:
    """Which decision a run would take; nothing is written. Without judges, whose verdicts may not be known
    yet, a new one."""
    rows, lost, unreadable = _looks(experiments, gold)
    this = {"kind": _DECISION, "by": by, **_judges(judges or {}), **_content(gold, items)}
    return _placed([*rows, *lost], this, unreadable)


def looks_so_far(experiments: Path, gold: GoldSet) -> int:
    """How many decisions have been taken on the test labels of a gold set, under whatever name."""
    return foresee_look(experiments, gold, gold.items, by="").number - 1


def verdicts_sha(gold: GoldSet, items: Iterable[Item], rows: Iterable[Judgement]) -> str:
    """What a judge said of the labelled test items among these, by their texts; a missing verdict is none
    said."""
    labels = gold.labels
    test = {
        one.item_id: one.sha for one in items if one.item_id in labels and gold.split_of(one.group) == "test"
    }
    given = [row for row in rows if row.item_id in test and row.verdict is not None]
    return digest(sorted([test[row.item_id], row.repeat, str(row.verdict)] for row in given))[:16]


def _judges(judges: Mapping[str, str]) -> dict[str, list[str]]:
    return {"judges": sorted(judges), "verdicts": sorted(set(judges.values()))}


def _content(gold: GoldSet, items: Iterable[Item]) -> dict[str, Any]:
    """The labelled test items: a short hash of each one's text, and one hash of all texts and labels."""
    labels = gold.labels
    test = [item for item in items if item.item_id in labels and gold.split_of(item.group) == "test"]
    shas = sorted({item.sha[:8] for item in test})
    content = digest(sorted([item.sha, str(labels[item.item_id])] for item in test))[:16]
    return {"n_items": len(test), "content": content, "items": " ".join(shas)}


def _placed(rows: Sequence[_Row], this: _Row, unreadable: int) -> Look:
    """Its place among the decisions on these test labels; a look that decides nothing stands behind the last.

    Those that cannot be read stand before all others, for none of them may be passed over.
    """
    before: list[tuple[Any, ...]] = []
    for row in rows:
        if _key(row) == _key(this) and this["kind"] == _DECISION:
            return Look(unreadable + len(before) + 1, new=False)
        if row["kind"] == _DECISION and _key(row) not in before and _same_items(row, this):
            before.append(_key(row))
    if this["kind"] == _DECISION:
        return Look(unreadable + len(before) + 1, new=True)
    return Look(unreadable + len(before), all(_key(row) != _key(this) for row in rows))


def _key(row: _Row) -> tuple[Any, ...]:
    named = () if row["kind"] == _DECISION else (row["experiment"],)
    return (row["kind"], row["by"], *row["verdicts"], row["content"], *named)


def _same_items(a: _Row, b: _Row) -> bool:
    ours, theirs = set(a["items"].split()), set(b["items"].split())
    return len(ours & theirs) >= _SHARED * min(len(ours), len(theirs)) > 0.0


def _looks(experiments: Path, gold: GoldSet) -> tuple[list[_Row], list[_Row], int]:
    """The looks of the log, decisions that it lacks (of experiments' folders and of locks), how many are
    unreadable."""
    rows, unreadable = _rows(experiments / LOOKS_FILE)
    keys = {_key(row) for row in rows}
    folders: list[_Row] = []
    for path in sorted(experiments.glob(f"*/{LOOKS_FILE}")):
        of_folder, torn = _rows(path)
        folders += of_folder
        if all(
            row["experiment"] != path.parent.name for row in rows
        ):  # else the log has what the folder lost
            unreadable += torn
    lost = {
        _key(row): row for row in sorted(folders, key=lambda row: str(row["at"])) if _key(row) not in keys
    }
    for path in sorted(experiments.glob("*/summary.json")):
        logged = (path.parent / LOOKS_FILE).exists() or path.parent.name in {
            row["experiment"] for row in rows
        }
        if not logged:
            row = _decision_of(path, gold, name=path.parent.name)
            lost |= {_key(row): row} if row else {}
    for path in sorted(experiments.absolute().parent.glob("*.lock.json")):
        row, known = _decision_of(path, gold, name=path.name), [*rows, *lost.values()]
        if row and not any(
            _same_items(row, one) and set(row["judges"]) <= set(one["judges"]) for one in known
        ):
            lost[_key(row)] = row
    return rows, list(lost.values()), unreadable


def _decision_of(path: Path, gold: GoldSet, *, name: str) -> _Row | None:
    """The decision on test labels of this set that a result or a lock stands for; None where there is none.

    A lock names its judge and its items; of a result all labelled test items count. What cannot be read is
    said.
    """
    try:
        stored = read_json(path, absent="gone since it was listed")
        if path.name == "summary.json" and (
            stored.get("gold") is None or "reference_document_score" in stored
        ):
            return None  # of a command that needs no labels; the retriever's names the set that its questions are of
        ours = stored["gold"]["set"] == gold.name or stored["gold"]["sha256"] == gold.sha256
        locked = "verdicts" in stored and "fingerprint" in stored
        items = [item for item in gold.items if not locked or item.item_id in stored["verdicts"]]
        judge = str(stored["fingerprint"]) if locked else name
        decided = locked or stored.get("test_look") is not None
        given = dict(stored["verdicts"]) if locked else {}
        rows = [Judgement(one, "", judge, judge, 0, verdict) for one, verdict in given.items()]
    except (OSError, InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        _say_unreadable(path, f"{type(error).__name__}: {error}")
        return None
    content = _content(gold, items)
    if not (ours and decided and content["n_items"]):
        return None
    about = {"gold": gold.name, "gold_sha256": gold.sha256, "experiment": name, "kind": _DECISION}
    judges = {judge: verdicts_sha(gold, items, rows) if locked else judge}
    return {**about, "by": "lock" if locked else "result", **_judges(judges), **content}


@cache
def _say_unreadable(path: Path, why: str) -> None:
    """Once a run: the looks are counted more often than that."""
    notice(
        f"judgecal: {path} cannot be read ({why}): a decision on test labels that it may stand for is not counted; "
        "mend it, or move it away"
    )


def _write_back(experiments: Path, lost: Sequence[_Row]) -> None:
    for row in lost:
        _append(experiments, row)
    places = listed(list(dict.fromkeys(str(row["experiment"]) for row in lost)))
    plural = "s" * (len(lost) != 1)
    notice(
        f"judgecal: {experiments / LOOKS_FILE} lacked {len(lost)} decision{plural} on test labels that {places} hold"
        f"{'s' * (len(lost) == 1)}: counted and written back"
    )


def _append(folder: Path, row: _Row) -> None:
    """One line in one write; behind a line that was torn it begins a line of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = json.dumps({"schema": SCHEMA, "at": now, **row}) + "\n"
    path = folder / LOOKS_FILE
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else f"\n{line}"
        file.write(line.encode("ascii"))


_COLUMNS = ("at", "experiment", "kind", "by", "content", "items")


def _rows(path: Path) -> tuple[list[_Row], int]:
    """The looks of a log, and how many of its lines cannot be read; those are named."""
    if not path.exists():
        return [], 0
    rows: list[_Row] = []
    lines = [
        (number, line) for number, line in enumerate(path.read_bytes().split(b"\n"), start=1) if line.strip()
    ]
    for number, line in lines:
        try:
            row = json_object(line, "")
            if not all(isinstance(row.get(name), str) for name in _COLUMNS) or not all(
                _texts(row.get(name)) for name in ("judges", "verdicts")
            ):
                raise InputError(
                    f"it needs the texts {', '.join(_COLUMNS)} and the lists judges and verdicts"
                )
        except InputError as error:
            _say_unreadable_line(f"{path}:{number}", str(error).removeprefix(": "))
            continue
        check_schema(row, f"{path}:{number}")
        rows.append(row)
    return rows, len(lines) - len(rows)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


@cache
def _say_unreadable_line(where: str, why: str) -> None:
    """Once a run, as `_say_unreadable`."""
    notice(
        f"judgecal: {where}: no test look can be read from this line ({why}): it counts as one decision on the test "
        "labels, as nobody can say that it was none; mend the line, or delete it where you know that it was none"
    )
