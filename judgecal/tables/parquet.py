"""Parquet files, read and written by polars with the types that the table's own columns have; and the rows of
frames.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.records import is_missing
from judgecal.tables.formats import Format, Output, OutputRows
from judgecal.tables.table import Table, escaped, plain
from judgecal.tables.text import unpacks_to_much
from judgecal.workspace import shown


def _read(path: Path) -> Table:
    """Read a Parquet file; what it unpacks to is held against what it says before a value is read."""
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = shown(path)
    try:
        with pq.ParquetFile(path) as file:
            meta = file.metadata
            size = sum(meta.row_group(place).total_byte_size for place in range(meta.num_row_groups))
            if not (too_much := unpacks_to_much(size, path, most=math.inf)):
                # what is packed may be one text in many rows
                frame = pl.read_parquet(path, glob=False)
                texts = frame.select(pl.col(pl.String).str.len_bytes().cast(pl.Float64).sum())
                size = int(sum(texts.row(0))) if texts.width else 0
                too_much = unpacks_to_much(size, path, most=math.inf)
            if too_much:
                raise InputError(f"{where}: {too_much}: save the file again, or as CSV")
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{where}: cannot be read as Parquet ({reason}): save the file again") from None
    return Table.of_frame(where, frame, path=path, name=path.name, source=path.name)


def frame_table(frame: Any) -> Table:
    """The table of a polars frame, or of any other with `to_dict("records")`, as pandas has it."""
    import polars as pl

    source = f"a {type(frame).__module__.partition('.')[0]} {type(frame).__name__}"
    if not (hasattr(frame, "to_dicts") or hasattr(frame, "to_dict")) or not hasattr(frame, "columns"):
        raise InputError(f"give a polars or pandas frame, found {source}")
    names = [str(name) for name in frame.columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"the frame has several columns {', '.join(twice)}: rename all but one")
    if not len(frame):
        raise InputError("the frame has no rows")
    about: Any = {"name": "the frame", "source": source}
    if isinstance(frame, pl.DataFrame):
        return Table.of_frame("the frame", frame, **about)
    records = enumerate(map(_unboxed, frame.to_dict("records")), start=1)
    return Table.of_records("the frame", records, unit="row", **about)


def _unboxed(value: Any) -> Any:
    """A JSON value of what a frame holds as Python or numpy objects."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {str(key): _unboxed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_unboxed(part) for part in value]
    unboxed = None if is_missing(value) else plain(value)
    return unboxed if isinstance(unboxed, bool | int | float | None) else str(unboxed)


def _write(draft: Path, output: Output, rows: OutputRows) -> None:
    """The rows of the source that are written, with what is added, as one table."""
    import polars as pl

    kinds: dict[str, Any] = {"text": pl.String, "number": pl.Float64, "count": pl.Int64, "flag": pl.Boolean}
    kinds |= {"texts": pl.List(pl.String), "numbers": pl.List(pl.Float64)}
    schema = {name: kinds[kind] for name, kind in output.added.items()}
    added = pl.DataFrame([_utf8(values) for _, values in rows], schema=schema, orient="row")
    if output.source is not None:
        added = pl.concat([output.source.typed(output.own).head(added.height), added], how="horizontal")
    added.write_parquet(draft)


def _utf8(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_utf8(part) for part in value]
    return escaped(value) if isinstance(value, str) else value


FORMATS = (Format("Parquet", (".parquet",), _read, _write),)
