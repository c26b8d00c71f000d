"""`agreement`: judgements recorded anywhere, held against a gold set, beside judges that call nobody."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import get_args

from judgecal.engine import Journal
from judgecal.engine.log import now
from judgecal.errors import InputError, notice, refuse
from judgecal.experiment.agreement import Column, StoredExperiment, Table
from judgecal.experiment.chunks import refuse_unfit
from judgecal.experiment.floor import check_judge
from judgecal.experiment.folder import Experiment, plan_experiment
from judgecal.experiment.people import tied_items
from judgecal.experiment.result import AgreementResult
from judgecal.experiment.score import asked_items, gold_config, hold_against_people, judge_config
from judgecal.experiment.trials import RunOptions, run_trials
from judgecal.goldset import GoldSet
from judgecal.goldset.labels import judged_twice, read_verdict, verdict_scale
from judgecal.judges import Judge, RecordedJudge
from judgecal.records import ITEM_UNIT, ErrorKind, Failure, Item, Judgement
from judgecal.scale import Scale
from judgecal.signatures import CHUNK
from judgecal.tables import Columns, Row, read_table
from judgecal.tables import Table as FileTable
from judgecal.workspace import Workspace

_JUDGE_COLUMN = "judge"
_UNIT = re.compile(rf"{ITEM_UNIT}|{CHUNK}:\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Judgements read from a file."""

    name: str  # of the file
    sha256: str
    columns: tuple[Column, ...]  # one judge each, in the order of their first row
    repeats: int  # the most judgements that one judge gave of one item
    unmatched: int  # rows that name no item of the set
    absent: tuple[str, ...] = ()  # judges all of whose rows are among those
    read_by: Mapping[str, str | None] = field(
        default_factory=dict
    )  # its columns, and the scale that was named


def read_recorded(
    path: Path,
    gold: GoldSet,
    *,
    columns: Columns | None = None,
    judge_column: str | None = None,
    verdict_scale: str | None = None,
) -> Recorded:
    """Read recorded judgements and find each judge's scale.

    A column `repeat` (from 0) tells several judgements of one item apart, and `unit` says of which context
    one is (`chunk:<n>`, from 0; by default `item`). Where no judge column is named it is `judge`, and without
    such a column the whole file is one judge, named after it. Verdicts are read on `verdict_scale`; by
    default on the people's, or where more of a judge's verdicts can be read so as percentages or as fractions
    of 1. An empty or unreadable verdict is an unscored row; `error` may say why there is none.
    """
    named_scale = None if verdict_scale is None else Scale.parse(verdict_scale)
    table = read_table(path)
    named = (columns or Columns(usual=True)).resolved(table.columns, path, only=("item", "verdict"))
    item_column, verdict_column = named.item or "item_id", named.verdict or "verdict"
    table.require(item_column, verdict_column, *([judge_column] if judge_column is not None else []))
    read_by = {"judge_column": judge_column, "verdict": verdict_column, "item": item_column}
    read_by |= {} if verdict_scale is None else {"verdict_scale": verdict_scale}
    judge_column = judge_column or _JUDGE_COLUMN
    items = {item.item_id: item for item in gold.items}
    known = [row for row in table.rows if row.cells[item_column] in items]
    if not known:
        raise InputError(
            f"{table.where}: no value of column {item_column} is an item of gold set {gold.name} "
            f"(found {table.rows[0].cells[item_column]!r}, items look like {gold.items[0].item_id!r})"
            if table.rows
            else f"{table.where}: there are no rows"
        )

    def judge_of(row: Row) -> str:
        return (row.cells[judge_column] if judge_column in table.columns else path.stem).strip()

    by_judge: dict[str, list[Row]] = {}
    for row in known:
        by_judge.setdefault(judge_of(row), []).append(row)
    _check_rows(table, by_judge, known)
    # of a file its bytes, of a data set of the Hub its rows
    content = path.read_bytes() if path.is_file() else repr([row.cells for row in table.rows]).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    reader = _Reader(table, gold, items, item_column, verdict_column, sha256, named_scale)
    judged = tuple(reader.column(judge, rows) for judge, rows in by_judge.items())
    repeats = 1 + max(row.repeat for column in judged for row in column.rows)
    absent = tuple(judge for judge in dict.fromkeys(map(judge_of, table.rows)) if judge not in by_judge)
    return Recorded(path.name, sha256, judged, repeats, len(table.rows) - len(known), absent, read_by)


def recorded_fingerprint(sha256: str, judge: str) -> str:
    """16 hex digits of a judge in a file of recorded judgements; `sha256` is the file's."""
    return hashlib.sha256(f"{sha256}\n{judge}".encode()).hexdigest()[:16]


def _check_rows(table: FileTable, by_judge: Mapping[str, Sequence[Row]], known: Sequence[Row]) -> None:
    problems = [
        f"{table.at(rows[0])}: the judge has no name: fill it in"
        for judge, rows in by_judge.items()
        if not judge
    ]
    problems += [
        f"{table.at(row)}: {name} must be a number from 0, or empty, found {row.cells[name]!r}"
        for row in known
        for name in ("cost_usd", "latency_s")
        if _amount(row, name) is _NO_AMOUNT
    ]
    problems += [
        f"{table.at(row)}: unit must be item or chunk:<n>, n from 0, found {_unit(row)!r}"
        for row in known
        if not _UNIT.fullmatch(_unit(row))
    ]
    problems += [
        f"{table.at(rows[0])}: {judge} judges both items and single contexts (unit): give these another name"
        for judge, rows in by_judge.items()
        if len({_unit(row) == ITEM_UNIT for row in rows}) > 1
    ]
    odd = [row for row in known if not _repeat_text(row).isdecimal()]
    problems += [
        f"{table.at(row)}: repeat must be a whole number from 0, found {row.cells['repeat']!r}" for row in odd
    ]
    repeats = [] if odd else [int(_repeat_text(row)) for row in known]
    if repeats and not 0 == min(repeats) <= max(repeats) < len(known):
        found = f"{len(known)} rows go from {min(repeats)} to {max(repeats)}"
        problems.append(f"{table.where}: the column repeat counts 0, 1, ..., and here {found}")
    refuse(problems, most=50)


_NO_AMOUNT = -1.0


def _amount(row: Row, name: str) -> float | None:
    """What a judgement cost or took; None where the file does not say, `_NO_AMOUNT` of no amount."""
    text = row.cells.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return _NO_AMOUNT
    return value if 0.0 <= value < math.inf else _NO_AMOUNT


def _unit(row: Row) -> str:
    return row.cells.get("unit", "").strip() or ITEM_UNIT


def _repeat_text(row: Row) -> str:
    return row.cells.get("repeat", "").strip() or "0"


@dataclass(frozen=True, slots=True)
class _Reader:
    table: FileTable
    gold: GoldSet
    items: Mapping[str, Item]
    item_column: str
    verdict_column: str
    sha256: str
    scale: Scale | None  # that the user named

    def column(self, judge: str, rows: Sequence[Row]) -> Column:
        """One judge's rows as judgements."""
        seen: dict[tuple[str, int, str], int] = {}
        problems = []
        for row in rows:
            key = (row.cells[self.item_column], int(_repeat_text(row)), _unit(row))
            if key in seen:
                first = self.table.number(seen[key])
                problems.append(f"{self.table.at(row)}: {judged_twice(judge, key[0], first)}")
            seen.setdefault(key, row.line)
        refuse(problems, most=50)
        read_as, people = self.scale or self._read_as(judge, rows), self.gold.scale
        scale = Scale.parse("percentage") if read_as.from_fraction else read_as
        if (scale.kind, scale.low, scale.high) == (people.kind, people.low, people.high) and scale is read_as:
            scale = people  # but for its steps
        unit = ITEM_UNIT if all(_unit(row) == ITEM_UNIT for row in rows) else CHUNK
        recorded = RecordedJudge(judge, scale, recorded_fingerprint(self.sha256, judge), unit=unit)
        refuse_unfit(recorded, [self.items[row.cells[self.item_column]] for row in rows])
        at = now()
        return Column.of(recorded, [self._judgement(recorded, read_as, row, at) for row in rows])

    def _read_as(self, judge: str, rows: Sequence[Row]) -> Scale:
        """The scale that the verdicts are read on, where the user named none."""
        people, where = self.gold.scale, f"judgecal: {self.table.where}"
        scale = verdict_scale(people, (row.cells[self.verdict_column] for row in rows))
        if scale.from_fraction:
            notice(f"{where}: all verdicts of {judge} lie in 0..1: read as fractions of 1")
        elif scale.kind in ("ordinal", "points") and (scale.low, scale.high) != (people.low, people.high):
            notice(f"{where}: {judge} is read on {scale}, which its verdicts fit (--verdict-scale)")
        return scale

    def _judgement(self, judge: RecordedJudge, read_as: Scale, row: Row, at: str) -> Judgement:
        text = row.cells[self.verdict_column]
        verdict, failure = read_verdict(read_as, text)
        if not text.strip():
            failure = _failure(row) or failure
        item = self.items[row.cells[self.item_column]]
        return Judgement(
            item_id=item.item_id,
            item_sha=item.sha,
            judge=judge.name,
            judge_fingerprint=judge.fingerprint,
            repeat=int(_repeat_text(row)),
            verdict=verdict,
            reasoning=row.cells.get("reasoning", ""),
            raw_reply=text if failure else None,
            error=failure,
            latency_s=_amount(row, "latency_s"),
            cost_usd=_amount(row, "cost_usd"),
            at=at,
            unit=_unit(row),
        )


def _failure(row: Row) -> Failure | None:
    """The error recorded in the place of a verdict: a text, or {kind, message} as a journal has it."""
    message = row.cells.get("error.message") or row.cells.get("error", "")
    kinds: dict[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}
    kind = kinds.get(row.cells.get("error.kind", ""), "code")
    return Failure(kind, message.strip()) if message.strip() else None


@dataclass(frozen=True, kw_only=True)
class AgreementRun:
    """Everything that `agreement` needs."""

    workspace: Workspace
    gold: GoldSet
    recorded: Recorded
    beside: tuple[Judge, ...] = ()  # judges that stand in the table beside the recorded ones
    split: str = "all"
    options: RunOptions = field(default_factory=RunOptions)
    seed: int = 0
    out: str | None = None  # the slug of its experiment; None for the usual one

    @cached_property
    def experiment(self) -> Experiment:
        """Where it goes."""
        recorded, scale = self.recorded, str(self.gold.scale)
        scales = {
            column.judge: str(column.scale) for column in recorded.columns if str(column.scale) != scale
        }
        file = {"file": recorded.name, "sha256": recorded.sha256, **recorded.read_by}
        config = {
            "command": "agreement",
            "gold": gold_config(self.gold),
            "split": self.split,
            "recorded": {**file, "scales": scales} if scales else file,
            **({"judges": [judge_config(judge) for judge in self.beside]} if self.beside else {}),
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def items(self) -> tuple[Item, ...]:
        """The labelled items of the split, judged or not: an item without a row is unscored."""
        return asked_items(self.gold, self.split, limit=self.options.limit)

    def check(self) -> None:
        """Refuse a slug that cannot be used, and judges that cannot stand beside the recorded ones."""
        _, items = self.experiment, (*self.items, *self._tied)
        recorded = {column.judge for column in self.recorded.columns}
        for judge in self.beside:
            if judge.name in recorded:
                raise InputError(f"{self.recorded.name} holds a judge {judge.name} too: rename it there")
            if judge.trained_on or not (judge.model is None or judge.model.embedded):
                why = "was trained on labels" if judge.trained_on else "calls a model"
                raise InputError(
                    f"{judge.name} {why}: agreement makes no calls, so use judgecal score for it"
                )
            check_judge(self.gold, judge, items)
            judge.check_items(items)

    @property
    def _tied(self) -> tuple[Item, ...]:
        return tied_items(self.gold, self.split, self.items)

    def run(self) -> tuple[AgreementResult, StoredExperiment]:
        """The result, and the experiment that it is of: the rows are kept in its journal."""
        self.check()  # before anything is written
        table, recorded = Table(self.gold, self.items, 1, self.seed, tied=self._tied), self.recorded
        notes = []
        if recorded.unmatched:
            absent = f", all those of {', '.join(recorded.absent)} among them" if recorded.absent else ""
            notes.append(f"{recorded.unmatched} rows of {recorded.name} name no item of the set{absent}")

        def judged(journal: Journal) -> list[Column]:
            for row in (row for column in recorded.columns for row in column.rows):
                if row.key not in journal.latest:
                    journal.append(row)
            rows = run_trials(self.beside, (*table.items, *table.tied), journal=journal, options=self.options)
            return [*recorded.columns, *(Column.of(judge, rows.of(judge.name)) for judge in self.beside)]

        return hold_against_people(
            self.workspace,
            self.experiment,
            table,
            self.split,
            self.beside,
            judged,
            options=self.options,
            notes=notes,
        )
