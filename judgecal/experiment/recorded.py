"""Judgements recorded anywhere, read from a file as columns of the agreement table."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from judgecal.engine.log import now
from judgecal.errors import InputError, notice, refuse
from judgecal.experiment.agreement_table import Verdicts
from judgecal.experiment.judgements import refuse_unfit
from judgecal.experiment.parquet_files import VerdictRows
from judgecal.goldset import GoldSet
from judgecal.goldset.labels import judged_twice, read_verdict, verdict_scale
from judgecal.judges import RecordedJudge
from judgecal.records import ITEM_UNIT, ORDERS, PAIR_UNIT, ErrorKind, Failure, Item, Judgement
from judgecal.scale import Scale
from judgecal.signatures import CHUNK
from judgecal.tables import Columns, Row, Table, json_line, read_table

_UNIT = re.compile(rf"{ITEM_UNIT}|{CHUNK}:\d+|{PAIR_UNIT} ({'|'.join(ORDERS)})", re.ASCII)
_NO_AMOUNT = -1.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """Judgements read from a file."""

    name: str  # of the file
    columns: tuple[Verdicts, ...]  # one judge each, in the order of their first row
    config: Mapping[str, Any]  # what an experiment's configuration says of them
    notes: tuple[str, ...]  # of rows that name no item of the set


def read_recorded(
    path: Path,
    gold: GoldSet,
    *,
    columns: Columns | None = None,
    verdict_scale: str | None = None,
    where: str | None = None,
) -> Recorded:
    """Read recorded judgements and find each judge's scale.

    A column `repeat` (from 0) tells several judgements of one item apart, and `unit` says of which context
    one is (`chunk:<n>`, from 0; by default `item`), or with `order` that it is one of a pair. Where no judge
    column is named it is `judge`, and without such a column the whole file is one judge, named after it.
    Verdicts are read on `verdict_scale`; by default on the people's, or where more of a judge's verdicts can
    be read so as percentages or as fractions of 1. An empty or unreadable verdict is an unscored row; `error`
    may say why there is none. `where` is what messages call the file.
    """
    named_scale = None if verdict_scale is None else Scale.parse(verdict_scale)
    table = read_table(path)
    table.where = where or table.where
    named = (columns or Columns(usual=True)).resolved(table.columns, path, only=("item", "verdict"))
    judge_column = named.judge
    item_column, verdict_column = named.item or "item_id", named.verdict or "verdict"
    table.require(item_column, verdict_column, *([judge_column] if judge_column is not None else []))
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
        return row.cells.get(judge_column or "judge", path.stem).strip()

    by_judge: dict[str, list[Row]] = {}
    for row in known:
        by_judge.setdefault(judge_of(row), []).append(row)
    _check_rows(table, by_judge, known)
    # of a file its bytes, of a data set of the Hub its rows
    content = path.read_bytes() if path.is_file() else repr([row.cells for row in table.rows]).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    judged = [
        _column(
            judge,
            [(items[row.cells[item_column]], row) for row in rows],
            table,
            verdict_column,
            sha256,
            gold.scale,
            named_scale,
        )
        for judge, rows in by_judge.items()
    ]
    config = {"file": path.name, "sha256": sha256, "judge_column": judge_column}
    config |= {"verdict": verdict_column, "item": item_column}
    config |= {} if verdict_scale is None else {"verdict_scale": verdict_scale}
    scales = {column.judge: str(column.scale) for column in judged if str(column.scale) != str(gold.scale)}
    notes = []
    if len(known) < len(table.rows):
        absent = [judge for judge in dict.fromkeys(map(judge_of, table.rows)) if judge not in by_judge]
        among = f", all those of {', '.join(absent)} among them" if absent else ""
        notes.append(f"{len(table.rows) - len(known)} rows of {path.name} name no item of the set{among}")
    return Recorded(
        path.name, tuple(judged), {**config, "scales": scales} if scales else config, tuple(notes)
    )


def recorded_fingerprint(sha256: str, judge: str) -> str:
    """16 hex digits of a judge in a file of recorded judgements; `sha256` is the file's."""
    return hashlib.sha256(f"{sha256}\n{judge}".encode()).hexdigest()[:16]


def _check_rows(table: Table, by_judge: Mapping[str, Sequence[Row]], known: Sequence[Row]) -> None:
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
        f"{table.at(row)}: unit must be item, chunk:<n>, n from 0, or pair, its order ab or ba, found "
        f"{_unit(row)!r}"
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
        given = f"{len(known)} rows go from {min(repeats)} to {max(repeats)}"
        problems.append(f"{table.where}: the column repeat counts 0, 1, ..., and here {given}")
    refuse(problems, most=50)


def _amount(row: Row, name: str) -> float | None:
    """What a judgement cost or took; None where the file does not say, `_NO_AMOUNT` of no amount."""
    text = row.cells.get(name, "").strip()
    try:
        value = float(text) if text else None
    except ValueError:
        return _NO_AMOUNT
    return value if value is None or 0.0 <= value < math.inf else _NO_AMOUNT


def _unit(row: Row) -> str:
    """The unit, of a pair with its order behind it."""
    return " ".join(f"{row.cells.get('unit', '')} {row.cells.get('order', '')}".split()) or ITEM_UNIT


def _repeat_text(row: Row) -> str:
    return row.cells.get("repeat", "").strip() or "0"


def _column(
    judge: str,
    rows: Sequence[tuple[Item, Row]],
    table: Table,
    verdict_column: str,
    sha256: str,
    people: Scale,
    named: Scale | None,
) -> Verdicts:
    seen: dict[tuple[str, int, str], int] = {}
    problems = []
    for item, row in rows:
        key = (item.item_id, int(_repeat_text(row)), _unit(row))
        if key in seen:
            first = table.number(seen[key])
            problems.append(f"{table.at(row)}: {judged_twice(judge, key[0], first)}")
        seen.setdefault(key, row.line)
    refuse(problems, most=50)
    cells = (row.cells[verdict_column] for _, row in rows)
    read_as, scale = _scales(judge, cells, people, named, table.where)
    unit = next((re.split(r"\W", unit)[0] for _, _, unit in seen), ITEM_UNIT)
    recorded = RecordedJudge(judge, scale, recorded_fingerprint(sha256, judge), unit=unit)
    refuse_unfit(recorded, [item for item, _ in rows])
    at, judgements = now(), []
    for (item, row), (_, repeat, unit) in zip(rows, seen, strict=True):
        text = row.cells[verdict_column]
        verdict, failure = read_verdict(read_as, text)
        if not text.strip():
            failure = _failure(row) or failure
        judgements.append(
            Judgement(
                item_id=item.item_id,
                item_sha=item.sha,
                judge=judge,
                judge_fingerprint=recorded.fingerprint,
                repeat=repeat,
                verdict=verdict,
                reasoning=row.cells.get("reasoning", ""),
                raw_reply=text if failure else None,
                error=failure,
                latency_s=_amount(row, "latency_s"),
                cost_usd=_amount(row, "cost_usd"),
                at=at,
                unit=unit.partition(" ")[0],
                order=unit.partition(" ")[2] or None,
            )
        )
    return Verdicts.from_calls(recorded, judgements)


def _scales(
    judge: str, cells: Iterable[str], people: Scale, named: Scale | None, where: str
) -> tuple[Scale, Scale]:
    """The scale that a judge's cells are read on, and that of its verdicts; what was told by them is said."""
    read_as = named or verdict_scale(people, cells)
    if named is None and read_as.from_fraction:
        notice(f"judgecal: {where}: all verdicts of {judge} lie in 0..1: we read them as fractions of 1")
    elif named is None and read_as.kind in ("ordinal", "points"):
        fits = f"we read {judge} on {read_as}, which its verdicts fit (--verdict-scale overrides)"
        notice(*([f"judgecal: {where}: {fits}"] * ((read_as.low, read_as.high) != (people.low, people.high))))
    if read_as.from_fraction:
        return read_as, Scale.parse("percentage")
    if (read_as.kind, read_as.low, read_as.high) == (people.kind, people.low, people.high):
        return read_as, people  # but for its steps
    return read_as, read_as


def recorded_in_table(
    gold: GoldSet, judgements: Sequence[Mapping[str, Any]], *, file: str, where: str, scale: str | None
) -> Recorded:
    """The judges whose verdicts stand in columns of a table that people's labels stand in too.

    Args:
        judgements: {item_id, judge, verdict} of the table's rows, the verdict as a text or a number.
        file: the table's name; `where` is what messages call it.
        scale: of all verdicts; by default told by them (`read_recorded`).
    """
    named = None if scale is None else Scale.parse(scale)
    items = {item.item_id: item for item in gold.items}
    by_judge: dict[str, dict[str, str]] = {}
    problems, at, columns = list[str](), now(), list[Verdicts]()
    for row in judgements:
        cells, verdict = by_judge.setdefault(row["judge"], {}), row["verdict"]
        if row["item_id"] in cells:
            problems.append(f"{where}: {judged_twice(row['judge'], row['item_id'], 'another row')}")
        cells[row["item_id"]] = (
            verdict if isinstance(verdict, str) else "" if verdict is None else json.dumps(verdict)
        )
    refuse(problems, most=50)
    sha256 = hashlib.sha256("".join(f"{json_line(row)}\n" for row in judgements).encode()).hexdigest()
    for judge, cells in by_judge.items():
        read_as, own_scale = _scales(judge, cells.values(), gold.scale, named, where)
        recorded = RecordedJudge(judge, own_scale, recorded_fingerprint(sha256, judge), unit=ITEM_UNIT)
        refuse_unfit(recorded, gold.items)
        read = {cell: read_verdict(read_as, cell) for cell in dict.fromkeys(cells.values())}
        pairs = [read[cell] for cell in cells.values()]
        verdicts = [verdict for verdict, _ in pairs]
        rows = VerdictRows.from_columns(
            len(cells),
            item_id=list(cells),
            item_sha=[items[item_id].sha for item_id in cells],
            judge=[judge] * len(cells),
            judge_fingerprint=[recorded.fingerprint] * len(cells),
            repeat=[0] * len(cells),
            **({"verdict": verdicts} if own_scale.numeric else {"word": verdicts}),
            raw_reply=[
                cell if failure else None for cell, (_, failure) in zip(cells.values(), pairs, strict=True)
            ],
            error_kind=[failure and failure.kind for _, failure in pairs],
            error_message=[failure and failure.message for _, failure in pairs],
            at=[at] * len(cells),
        )
        columns.append(Verdicts(judge, own_scale, rows))
    config: dict[str, Any] = {"file": file, "sha256": sha256, "judge_column": None}
    config |= {"verdict": "verdict", "item": "item_id"} | ({} if scale is None else {"verdict_scale": scale})
    scales = {column.judge: str(column.scale) for column in columns if str(column.scale) != str(gold.scale)}
    return Recorded(file, tuple(columns), {**config, "scales": scales} if scales else config, ())


def _failure(row: Row) -> Failure | None:
    """The error recorded in the place of a verdict: a text, or {kind, message} as a journal has it."""
    message = row.cells.get("error.message") or row.cells.get("error", "")
    kinds: dict[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}
    kind = kinds.get(row.cells.get("error.kind", ""), "code")
    return Failure(kind, message.strip()) if message.strip() else None
