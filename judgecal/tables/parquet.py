"""Parquet files, read and written by polars with the types that the table's own columns have; the rows of
frames; and data sets of the Hugging Face Hub, or folders of the same form, at the address
`hf:org/name[/config][:split]`, or `hf:./folder[:split]` for a folder.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError
from judgecal.records import is_missing
from judgecal.tables.formats import Format
from judgecal.tables.table import NoRowsError, Table, plain
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


def _write(draft: Path, frame: pl.DataFrame, source: Table | None) -> None:
    import polars as pl

    if source is not None:
        frame = pl.concat([source.typed(source.columns).head(frame.height), frame], how="horizontal")
    frame.write_parquet(draft)


_HUB = "hf:"
_FORM = "hf:org/name[/config][:split]"
_PART = re.compile(r"[\w.-]+", re.ASCII)


def _read_hub(text: str) -> Table:
    """Read one split of a data set; its rows are numbered from 1.

    InputError: the address is none, the data set or the split cannot be had (the message lists the splits and
    says what to do without a network), or it holds no rows.
    """
    path, config, split = _parse(text)
    data = _load(text, path, config, split)
    if split is None:
        if len(data) > 1:
            named = ", ".join(f"{name} ({part.num_rows:,} rows)" for name, part in data.items())
            raise InputError(
                f"{text}: has {len(data)} splits, {named}: name one, as in {text}:{next(iter(data))} "
                "(several are joined by +)"
            )
        data = next(iter(data.values()))
    if not data.num_rows:
        raise NoRowsError(f"{text}: the split holds no rows")
    name = text
    if Path(path).is_absolute():  # without the way to a folder
        name = f"{_HUB}{Path(path).name}" + (f":{split}" if split else "")
    where = "a local folder" if Path(path).is_dir() else "Hugging Face Hub"
    source = f"{name} ({where}, {data.num_rows:,} rows, fingerprint {data._fingerprint})"
    return Table.of_frame(text, _named_classes(data), name=name, source=source)


def _parse(text: str) -> tuple[str, str | None, str | None]:
    """What `load_dataset` takes for an address: path, config and split, None where it does not say."""
    path, _, split = text.removeprefix(_HUB).partition(":")
    if path.startswith((".", "/")):
        if not Path(path).is_dir():
            raise InputError(f"{text}: there is no folder {path}")
        return path, None, split or None
    parts = path.split("/")
    if len(parts) > 3 or not all(_PART.fullmatch(part) for part in parts):
        raise InputError(f"{text}: cannot be read as {_FORM}; write ./ before a folder")
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else None, split or None


def _load(text: str, path: str, config: str | None, split: str | None) -> Any:
    """What `load_dataset` gives: a data set where a split is named, else all splits by name."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read by the Hub's client when it is loaded
    import datasets
    import yaml

    failures = (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError, yaml.YAMLError)
    try:
        return datasets.load_dataset(path, name=config, split=split)
    except failures as error:
        advice = f"the form is {_FORM}; see the data set's own page and card"
        if isinstance(error, ConnectionError):
            advice = "connect, or fetch the split's Parquet file where there is a network and import that"
        elif isinstance(error, datasets.exceptions.DatasetNotFoundError):
            advice = "check the name; of a private set log in with `hf auth login` and accept its terms"
        elif "script" in str(error):
            advice = "code of a data set is not run: fetch its Parquet copy"
        raise InputError(f"{text}: cannot be loaded: {_first(error)} ({advice})") from None


def _first(error: BaseException) -> str:
    """The first two lines of what it says, and of what it was raised from."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]).rstrip(".:") or type(error).__name__
    return text if error.__cause__ is None else f"{text}: {_first(error.__cause__)}"


def _named_classes(data: Any) -> pl.DataFrame:
    """The split as a data frame, its class labels by their names; -1, the mark of a hidden label, as null."""
    import datasets
    import polars as pl

    def named(expression: pl.Expr, feature: Any) -> pl.Expr:
        names = dict(enumerate(feature.names))
        return expression.replace_strict(names, default=None, return_dtype=pl.String)

    frame: pl.DataFrame = data.to_polars()
    for column, feature in data.features.items():
        inner = getattr(feature, "feature", None)
        if isinstance(feature, datasets.ClassLabel):
            frame = frame.with_columns(named(pl.col(column), feature))
        elif isinstance(inner, datasets.ClassLabel):
            frame = frame.with_columns(pl.col(column).list.eval(named(pl.element(), inner)))
    return frame


FORMATS = (
    Format("Parquet", (".parquet",), _read, _write),
    Format("a data set of the Hub, hf:org/name", address=(_HUB, _read_hub)),
)
