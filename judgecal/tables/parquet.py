"""Parquet files, read and written by polars with the types that the table's own columns have; and the rows of
frames.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError, error_text
from judgecal.tables.formats import Format
from judgecal.tables.table import Table
from judgecal.tables.text import unpacks_to_much
from judgecal.workspace import shown

if TYPE_CHECKING:
    import polars as pl


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
                size = sum(map(sum, texts.rows()))
                too_much = unpacks_to_much(size, path, most=math.inf)
            if too_much:
                raise InputError(f"{where}: {too_much}: save the file again, or as CSV")
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{where}: cannot be read as Parquet ({reason}): save the file again") from None
    return Table.of_frame(where, frame, path=path)


def frame_table(frame: Any) -> Table:
    """Return the Table of a polars or pandas frame."""
    import polars as pl
    import pyarrow as pa

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
    try:
        return Table.of_frame("the frame", pl.from_pandas(frame), **about)
    except (pl.exceptions.PolarsError, pa.ArrowException) as error:
        raise InputError(
            f"the frame cannot be read: {error_text(error)}: give each column one type"
        ) from None


def _write(draft: Path, frame: pl.DataFrame, source: Table | None) -> None:
    import polars as pl

    if source is not None:
        typed = source.frame if source.values is None else source.values
        frame = pl.concat([typed.select(source.columns).head(frame.height), frame], how="horizontal")
    frame.write_parquet(draft)


FORMATS = (Format((".parquet",), _read, _write),)
