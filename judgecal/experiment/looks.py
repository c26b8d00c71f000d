"""Looks at the test split: every use of its labels is written down, and a decision pays for the ones before.

Decision k is taken and shown at level 1 - 0.05 * 6 / (pi^2 k^2). As the sum of 1 / k^2 is pi^2 / 6, all
decisions on the same test labels together err in at most 5%. A look is known by content alone: what judges
said of the test items, their texts and labels, whatever the names. Decisions count together where at least
half of the items of the smaller of their test splits are in the other. A line that cannot be read counts as a
decision: to count one too few is what would err.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from judgecal.artefacts import SCHEMA, check_schema, json_object
from judgecal.engine.log import Log, now
from judgecal.errors import InputError, notice
from judgecal.goldset import GoldSet
from judgecal.records import Item, Judgement, digest

LOOKS_FILE = "test_looks.jsonl"
_LOCK_FILE = ".test_looks.lock"
LookKind = Literal["decision", "report", "gate", "draw"]
_DECISION, DRAW = "decision", "draw"
_SHARED = 0.5
_TEXTS = ("at", "experiment", "kind", "by", "content", "items")
_LISTS = ("judges", "verdicts")
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """Where a look stands among the decisions on the same test labels."""

    number: int  # decisions so far, this one included; 0 before the first
    new: bool  # whether this very look is made for the first time

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

    def sentence(self, gold: str, level: float = 0.95, *, labels: str = "test labels") -> str:
        """Return the sentence on this look at the labels of a gold set, by the set's name, at a level."""
        if not self.number:
            return f"{labels} of {gold}: seen, but no decision taken on them yet"
        return (
            f"decision {self.number} on the {labels} of {gold}{', reused' * self.reused}: shown at level "
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
    """Return a Look, logged in a folder, from GoldSet, Items, experiment, kind, `by`, judge -> hash.

    The same verdicts by the same question on the same test items and labels are one look, however often made;
    more items under a larger `--limit` are another look, for the first one's answer was known when it was
    asked for.

    Args:
        items: what is looked at; those of the splits train and dev among them do not count. Of a draw (kind
            `draw`) all count, and its decisions are numbered apart from those on test.
        experiment: the slug.
        by: what is asked, such as "compare by macro_agreement".
        judges: fingerprint -> `verdicts_sha` of those who are decided on.
    """
    about = {"gold": gold.name, "gold_sha256": gold.sha256, "experiment": experiment, "kind": kind, "by": by}
    this, path = {**about, **_content(gold, items, judges, kind)}, experiments / LOOKS_FILE
    experiments.mkdir(parents=True, exist_ok=True)
    # No other process may look between the reading, which gives this look its number, and the writing.
    with FileLock(experiments / _LOCK_FILE):
        look = _placed(path, this)
        if look.new:
            with _looks_log(path, lambda *_: None).open(lock=False) as log:
                log.append({"schema": SCHEMA, "at": now(), **this})
    return look


def foresee_look(
    experiments: Path,
    gold: GoldSet,
    items: Iterable[Item],
    *,
    by: str,
    judges: Mapping[str, str] | None = None,
) -> Look:
    """Return the Look that deciding by a metric on GoldSet and Items would be, from an experiments folder.

    Without judges, whose verdicts may not be known yet, a new one.
    """
    this = {"kind": _DECISION, "by": by, **_content(gold, items, judges or {}, "decision")}
    return _placed(experiments / LOOKS_FILE, this)


def looks_so_far(experiments: Path, gold: GoldSet) -> int:
    """How many decisions have been taken on the test labels of a gold set, under whatever name."""
    return foresee_look(experiments, gold, gold.items, by="").number - 1


def verdicts_sha(gold: GoldSet, items: Iterable[Item], rows: Iterable[Judgement]) -> str:
    """Return the hash of a judge's verdicts, from a GoldSet, Items and Judgements, on labelled test items."""
    test = {item.item_id: item.sha for item in _labelled_test(gold, items)}
    given = [row for row in rows if row.item_id in test and row.verdict is not None]
    return digest(sorted([test[row.item_id], row.repeat, str(row.verdict)] for row in given))[:16]


def seen_judges(
    gold: GoldSet, items: Iterable[Item], judged: Iterable[Sequence[Judgement]]
) -> dict[str, str]:
    """Return fingerprint -> `verdicts_sha`, from a GoldSet, Items and the Judgements of each judge."""
    shown = list(items)
    return {rows[0].judge_fingerprint: verdicts_sha(gold, shown, rows) for rows in judged if rows}


def _labelled_test(gold: GoldSet, items: Iterable[Item]) -> list[Item]:
    labels, test = gold.labels, gold.test_groups
    return [item for item in items if item.group in test and item.item_id in labels]


def _content(
    gold: GoldSet, items: Iterable[Item], judges: Mapping[str, str], kind: LookKind
) -> dict[str, Any]:
    """What judges said, a short hash of each labelled test item's text, and one of all texts and labels."""
    labels = gold.labels
    test = [item for item in items if item.item_id in labels] if kind == DRAW else _labelled_test(gold, items)
    return {
        "judges": sorted(judges),
        "verdicts": sorted(set(judges.values())),
        "n_items": len(test),
        "content": digest(sorted([item.sha, str(labels[item.item_id])] for item in test))[:16],
        "items": " ".join(sorted({item.sha[:8] for item in test})),
    }


def _placed(path: Path, this: _Row) -> Look:
    """Its place among the decisions on these test labels in a log; a look that decides nothing stands behind
    the last.

    Lines that cannot be read stand before all others, for none of them may be passed over.
    """
    unreadable: set[str] = set()

    def damaged(where: str, error: Exception) -> None:
        unreadable.add(where)
        _say_unreadable(where, str(error))

    def key(row: _Row) -> tuple[Any, ...]:
        named = () if row["kind"] in (_DECISION, DRAW) else (row["experiment"],)
        return (row["kind"], row["by"], *row["verdicts"], row["content"], *named)

    before, taken, shown = list[tuple[Any, ...]](), False, set(this["items"].split())
    counted = DRAW if this["kind"] == DRAW else _DECISION
    decides, rows = this["kind"] == counted, [row for row in _looks_log(path, damaged).rows() if row]
    for row in rows:
        taken = taken or key(row) == key(this)
        if taken and decides:
            break
        items = set(row["items"].split())
        alike = len(items & shown) >= _SHARED * min(len(items), len(shown)) > 0.0
        if row["kind"] == counted and alike and key(row) not in before:
            before.append(key(row))
    return Look(len(unreadable) + len(before) + decides, new=not taken)


def _looks_log(path: Path, damaged: Callable[[str, Exception], None]) -> Log[_Row]:
    """The log in a file. A line that was torn stays, as it may have been a decision."""
    return Log(
        path,
        "look",
        encode=lambda row: json.dumps(row).encode("ascii"),
        decode=_row_of,
        damaged=damaged,
        ended=lambda _: True,
        mode=0o666,  # it holds no texts, and is for all who share the experiments
    )


def _row_of(line: bytes) -> _Row:
    """The look of a line, nothing of a blank one. Raises ValueError: it is none."""
    if not line.strip():
        return {}
    try:
        row = json_object(line.rstrip(b"\n"), "")
    except InputError as error:
        raise ValueError(str(error).removeprefix(": ")) from error
    lists = [value for name in _LISTS for value in (row.get(name),) if isinstance(value, list)]
    texts = [row.get(name) for name in _TEXTS] + [text for texts in lists for text in texts]
    if len(lists) < len(_LISTS) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"it needs the texts {', '.join(_TEXTS)} and the lists {' and '.join(_LISTS)}")
    check_schema(row, "")
    return row


@cache
def _say_unreadable(where: str, why: str) -> None:
    """Once a run: the looks are counted more often than that."""
    notice(
        f"judgecal: {where}: no test look can be read from this line ({why}): we count it as a decision on "
        "the test labels, to be safe; fix the line, or delete it if you know that there was no decision"
    )
