"""Parquet files, read and written by polars with the types that the table's own columns have; the rows of
frames; and data sets of the Hugging Face Hub at the address `hf:org/name[/config][:split]`.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError, error_text
from judgecal.tables.formats import Format
from judgecal.tables.table import NoRowsError, Table
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
                size = int(sum(texts.row(0))) if texts.width else 0
                too_much = unpacks_to_much(size, path, most=math.inf)
            if too_much:
                raise InputError(f"{where}: {too_much}: save the file again, or as CSV")
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{where}: cannot be read as Parquet ({reason}): save the file again") from None
    return Table.of_frame(where, frame, path=path, name=path.name, source=path.name)


def frame_table(frame: Any) -> Table:
    """Return the table of a polars or pandas frame."""
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
        frame = pl.concat([source.typed(source.columns).head(frame.height), frame], how="horizontal")
    frame.write_parquet(draft)


_HUB = "hf:"
_FORM = "hf:org/name[/config][:split]"
_NAME = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:/([\w.-]+))?", re.ASCII)
_ADVICE = (
    f"the form is {_FORM}; without a network import the split's Parquet file; for a private set log in with "
    "`hf auth login`"
)


def _read_hub(text: str) -> Table:
    """Read one split of a data set at an address; its rows are numbered from 1."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read by the Hub's client when it is loaded
    import datasets
    import yaml

    path, _, split = text.removeprefix(_HUB).partition(":")
    failures = (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError, yaml.YAMLError)
    if (parts := _NAME.fullmatch(path)) is None:
        raise InputError(f"{text}: cannot be read as {_FORM}")
    try:
        data = datasets.load_dataset(parts[1], name=parts[2], split=split or None)
    except failures as error:
        raise InputError(f"{text}: cannot be loaded: {error_text(error)} ({_ADVICE})") from None
    if not split:
        if len(data) > 1:
            named = ", ".join(f"{name} ({part.num_rows:,} rows)" for name, part in data.items())
            raise InputError(
                f"{text}: has {len(data)} splits, {named}: name one, as in {text}:{next(iter(data))} "
                "(several are joined by +)"
            )
        data = next(iter(data.values()))
    if not data.num_rows:
        raise NoRowsError(f"{text}: the split holds no rows")
    source = f"{text} ({data.num_rows:,} rows, fingerprint {data._fingerprint})"
    return Table.of_frame(text, _named_classes(data), name=text, source=source)


def _named_classes(data: Any) -> pl.DataFrame:
    """The split as a data frame, its class labels by their names; -1, the mark of a hidden label, as null."""
    import datasets
    import polars as pl

    frame: pl.DataFrame = data.to_polars()
    classes = {name: kind for name, kind in data.features.items() if isinstance(kind, datasets.ClassLabel)}
    return frame.with_columns(
        pl.col(name).replace_strict(dict(enumerate(kind.names)), default=None, return_dtype=pl.String)
        for name, kind in classes.items()
    )


FORMATS = (
    Format("Parquet", (".parquet",), _read, _write),
    Format("a data set of the Hub, hf:org/name", address=(_HUB, _read_hub)),
)
