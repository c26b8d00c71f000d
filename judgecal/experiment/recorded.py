"""Judgements recorded anywhere, read from a file, alone or beside people's labels in one table."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from judgecal.engine.log import now
from judgecal.errors import InputError, notice, refuse
from judgecal.experiment.agreement_table import Verdicts
from judgecal.experiment.judgements import VerdictRows, refuse_unfit, values_of
from judgecal.goldset import GoldSet, Imported, Splits, import_gold
from judgecal.goldset.labels import label_text, read_verdict, verdict_scale
from judgecal.judges.protocol import RecordedJudge
from judgecal.scale import Scale
from judgecal.tables import Columns, Table, read_table
from judgecal.tables.guess import guess_columns

_AMOUNTS = ("cost_usd", "latency_s")
_TEXTS = ("reasoning", "error", "error.message", *_AMOUNTS)
_OPEN = Splits(train=0.0, dev=1.0, test=0.0)
_FORCE = ", or --force if the scale is right"
_NO_NAME = re.compile(r"[^\w.-]+|^[.-]+|[.-]+$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Judgements read from a file."""

    judges: tuple[RecordedJudge, ...]  # in the order of their first row
    columns: tuple[Verdicts, ...]  # of these
    config: Mapping[str, Any]  # what an experiment's configuration says of them
    notes: tuple[str, ...] = ()  # of rows that name no item of the set


def read_recorded(
    path: Path, gold: GoldSet, *, columns: Columns | None = None, verdict_scale: str | None = None
) -> Recorded:
    """Read the file at a path, with the GoldSet whose items it is about, as Recorded judgements.

    Without a column `judge`, or the one named, the whole file is one judge, named after it. Verdicts
    are read on `verdict_scale`, by default as most can be read. An empty or unreadable verdict
    is an unscored row; `error` may say why there is none. Where a column `repeat` counts several
    judgements of an item, the first (0) is read.
    """
    table = read_table(path)
    named = (columns or Columns(usual=True)).resolved(table.columns, path, only=("item", "verdict"))
    item_column, verdict_column = named.item or "item_id", named.verdict or "verdict"
    table.require(item_column, verdict_column, *([named.judge] if named.judge is not None else []))
    frame, judge_column = table.frame, named.judge or "judge"
    judge = pl.col(judge_column).str.strip_chars() if judge_column in table.fields else pl.lit(path.stem)
    repeat = pl.col("repeat").str.strip_chars() if "repeat" in table.fields else pl.lit("0")
    rows = frame.select(
        pl.Series("line", table.numbers, dtype=pl.Int64),
        pl.col(item_column).alias("item_id"),
        judge.alias("judge"),
        pl.col(verdict_column).alias("cell"),
        *(pl.col(name).str.strip_chars() for name in _TEXTS if name in table.fields),
        repeat.alias("repeat"),
    )
    every = rows.filter(pl.col("repeat").is_in(["", "0"])).drop("repeat")
    of_set = every.filter(pl.col("item_id").is_in([item.item_id for item in gold.items]))
    if not len(of_set):
        raise InputError(
            f"{table.where}: no value of column {item_column} is an item of gold set {gold.name} "
            f"(found {every['item_id'][0]!r}, items look like {gold.items[0].item_id!r})"
            if len(every)
            else f"{table.where}: there are no rows"
        )
    _check_rows(table, of_set)
    # of a file its bytes, of a data set of the Hub its rows
    content = path.read_bytes() if path.is_file() else repr([row.cells for row in table.rows]).encode()
    left_out = {
        "are further repeats, of which score measures the noise": rows.height - every.height,
        "name no item of the set": every.height - of_set.height,
    }
    of_judges = of_set.partition_by("judge", maintain_order=True)
    config = {"judge_column": named.judge, "verdict": verdict_column, "item": item_column}
    recorded = _recorded(gold, of_judges, table, content, verdict_scale, config)
    return dataclasses.replace(
        recorded, notes=tuple(f"{n} rows of {path.name} {why}" for why, n in left_out.items() if n)
    )


def _recorded(
    gold: GoldSet,
    of_judges: Sequence[pl.DataFrame],
    table: Table,
    content: bytes,
    scale: str | None,
    config: Mapping[str, Any],
) -> Recorded:
    """The judges of some frames, a row a judgement, with what a configuration says of them."""
    config = {"file": table.path.name, "sha256": hashlib.sha256(content).hexdigest(), **config}
    config |= {} if scale is None else {"verdict_scale": scale}
    items = {item.item_id: item for item in gold.items}
    named = None if scale is None else Scale.parse(scale)
    judges, columns = list[RecordedJudge](), list[Verdicts]()
    for rows in of_judges:
        judge = rows["judge"][0]
        twice = rows.filter(~pl.col("item_id").is_first_distinct()).select("line", "item_id").iter_rows()
        again = "again: delete one of its rows"
        refuse([f"{table.place(line)}: {judge} judged item {item} {again}" for line, item in twice])
        read_as, of_verdicts = _scales(judge, rows["cell"].to_list(), gold.scale, named, table.where)
        fingerprint = hashlib.sha256(f"{config['sha256']}\n{judge}".encode()).hexdigest()[:16]
        recorded = RecordedJudge(judge, of_verdicts, fingerprint)
        item_ids = rows["item_id"].to_list()
        refuse_unfit(recorded, [items[item_id] for item_id in item_ids])
        said = pl.Float64 if of_verdicts.numeric else pl.String
        schema = {"cell": pl.String, "said": said, "kind": pl.String, "message": pl.String}
        read = list[tuple[Any, ...]]()
        for cell in rows["cell"].unique().to_list():
            verdict, failure = read_verdict(read_as, cell)
            read.append((cell, verdict, failure and failure.kind, failure and failure.message))
        verdicts = pl.DataFrame(read, schema=schema, orient="row")
        rows = rows.with_columns(pl.lit("").alias(name) for name in _TEXTS if name not in rows.columns)
        empty = pl.col("cell").str.strip_chars() == ""
        why = pl.coalesce(pl.col("error.message").replace("", None), pl.col("error").replace("", None))
        stated = empty & why.is_not_null()
        failed = pl.col("kind").is_not_null()
        frame = rows.join(verdicts, on="cell", how="left", maintain_order="left").select(
            "item_id",
            "judge",
            "reasoning",
            pl.col("said").alias("verdict" if of_verdicts.numeric else "word"),
            item_sha=pl.Series([items[item_id].sha for item_id in item_ids]),
            judge_fingerprint=pl.lit(fingerprint),
            repeat=0,
            raw_reply=pl.when(failed).then(pl.col("cell")),
            error_kind=pl.when(stated).then(pl.lit("code")).otherwise(pl.col("kind")),
            error_message=pl.when(stated).then(why).otherwise(pl.col("message")),
            **{name: pl.col(name).replace("", None).cast(pl.Float64) for name in _AMOUNTS},
            at=pl.lit(now()),
        )
        judges.append(recorded)
        columns.append(Verdicts.from_calls(recorded, VerdictRows.from_frame(frame)))
    return Recorded(tuple(judges), tuple(columns), config)


def _check_rows(table: Table, rows: pl.DataFrame) -> None:
    """Refuse rows whose judge or amounts cannot be read."""
    judged, problems = rows.unique("judge", maintain_order=True), list[str]()
    for line in judged.filter(pl.col("judge") == "")["line"].to_list():
        problems.append(f"{table.place(line)}: the judge has no name: fill it in")
    for name in (name for name in _AMOUNTS if name in rows.columns):
        amount = pl.col(name).cast(pl.Float64, strict=False)
        wrong = (pl.col(name) != "") & ~((amount >= 0.0) & amount.is_finite()).fill_null(value=False)
        for line, text in rows.filter(wrong).select("line", name).iter_rows():
            problems.append(f"{table.place(line)}: {name} must be a number from 0, or empty, found {text!r}")
    refuse(problems)


def _scales(
    judge: str, cells: Iterable[str], people: Scale, named: Scale | None, where: str
) -> tuple[Scale, Scale]:
    """The scale that a judge's cells are read on, and that of its verdicts; what was told by them is said."""
    read_as = named or verdict_scale(people, cells)
    moved = read_as.kind in ("ordinal", "points") and (read_as.low, read_as.high) != (people.low, people.high)
    if named is None and (moved or read_as.from_fraction):
        what = "as fractions of 1" if read_as.from_fraction else f"on {read_as}"
        fits = "which its verdicts fit (--verdict-scale overrides)"
        notice(f"judgecal: {where}: we read {judge} {what}, {fits}")
    if read_as.from_fraction:
        return read_as, Scale.parse("percentage")
    if (read_as.kind, read_as.low, read_as.high) == (people.kind, people.low, people.high):
        return read_as, people  # but for its steps
    return read_as, read_as


def read_labelled_table(
    file: Path, columns: Columns, verdict_scale: str | None, **of_import: Any
) -> tuple[GoldSet, Recorded, dict[str, Any]]:
    """Read a file by Columns, a verdict scale, import options: GoldSet, Recorded, configuration.

    No split of it is sealed, as whoever has such a table has seen all of it.
    """
    table = read_table(file, of_import["encoding"])
    columns = guess_columns(columns, table)
    name = _NO_NAME.sub("-", file.stem).strip("-_") or "table"
    if not columns.verdicts:
        taken = ", ".join(f"{column} as {what}" for column, what in columns.taken().items())
        raise InputError(
            f"{table.top}: no column holds a judge's verdicts ({taken}): name one with --verdict COL, or let "
            f"a judge judge the answers: judgecal gold import {shlex.quote(str(file))} --as {name} "
            f"{columns.options()}, then judgecal score --gold {name} --judge NAME (judgecal judges has them)"
        )
    try:
        made = import_gold(
            table, name=name, columns=columns, workspace=None, splits=_OPEN, quiet=True, **of_import
        )
    except InputError as error:  # --force is an option of imports alone
        without = (problem.replace(_FORCE, "") for problem in error.problems)
        raise InputError(without) from None
    gold = made.gold
    if len(labels := {*gold.labels.values()}) == 1:
        what, binary = label_text(labels.pop()), gold.scale.kind == "binary"
        raise InputError(
            f"{table.top}: all {len(gold.labels):,} labels are "
            f"{ {'1': 'yes', '0': 'no'}[what] if binary else what }, so that whoever always says that is "
            "right: add answers that people label otherwise"
        )
    recorded = _judges_of_table(made, table, verdict_scale)
    typed = shlex.join(["judgecal", "gold", "import", file.name, "--as", name])
    config = {
        "file": str(file),
        "columns": columns.taken(),
        "left_out": list(made.left_out),
        "notes": [note for note in made.notes if " have no gold label " not in note],
        "options": gold.card.made_by.removeprefix(typed).strip(),
    }
    return gold, recorded, config


def _judges_of_table(made: Imported, table: Table, scale: str | None) -> Recorded:
    """The judges whose verdicts stand in columns of the table; refused where one of these holds none."""
    read, of_judges = made.read, list[pl.DataFrame]()
    assert read is not None  # of a table
    for judge, cells in read.verdicts.items():
        columns = [
            pl.Series("line", table.numbers, dtype=pl.Int64),
            pl.Series("item_id", read.item_ids, dtype=pl.String),
            pl.Series("cell", cells, dtype=pl.String).fill_null(""),
        ]
        of_judges.append(pl.DataFrame(columns).with_columns(judge=pl.lit(judge)))
    content = repr([read.item_ids, *read.verdicts.items()]).encode()
    recorded = _recorded(made.gold, of_judges, table, content, scale, {})
    for column in recorded.columns:
        if not any(verdict is not None for verdict in values_of(column.rows, "verdict")):
            texts = sorted({row.cells[column.judge] for row in table.rows} - {""})
            raise InputError(
                f"{table.top}: column {column.judge!r} holds no verdict beside {made.gold.scale} labels "
                f"({', '.join(texts[:3]) or 'it is empty'}): name the others with --verdict, or say by --map "
                "what its words mean; where judges stand one below the other, import the labels and give the "
                "verdicts as --judgements FILE"
            )
    return recorded
