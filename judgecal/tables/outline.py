"""What a file begins with, for telling whose it is; read once, however many ask."""

from __future__ import annotations

import contextlib
import functools
from itertools import islice
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.tables.json_files import json_value, read_json
from judgecal.tables.separated import dialect_of, separated_records
from judgecal.tables.text import ending_of, text_lines

_ROWS, _KEYS, _TEXT, _DEPTH = 3, 500, 500, 9


def outline(path: Path) -> Any:
    """The beginning of a file as a JSON value; of a table it is a list of the first rows, each an object.

    Every list in it is cut to three elements, every text to 500 characters. None: the file cannot be read, or
    it is neither JSON, JSON lines, CSV, TSV nor Parquet.
    """
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return None
    return _outline(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _outline(path: Path, size: int, stamp: int) -> Any:
    """By size and time of change too, so that a file which was written again is read again."""
    with contextlib.suppress(InputError):
        return _pared(_beginning(path), _DEPTH)
    return None


def _beginning(path: Path) -> Any:
    ending = ending_of(path)
    if ending == ".json":
        return read_json(path)
    if ending in (".jsonl", ".ndjson"):
        lines = (line for line in text_lines(path, newline="\n") if line.strip())
        return [json_value(line, str(path)) for line in islice(lines, _ROWS)]
    if ending in (".csv", ".tsv", ".tab"):
        records = separated_records(path, dialect_of(path))
        header = next(records, (1, []))[1]
        rows = [dict(zip(header, cells, strict=False)) for _, cells in islice(records, _ROWS)]
        return rows or [dict.fromkeys(header, "")]
    return _first_rows(path) if ending == ".parquet" else None


def _first_rows(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            batch = next(file.iter_batches(batch_size=_ROWS), None)
            return (
                batch.to_pylist()
                if batch is not None and batch.num_rows
                else [dict.fromkeys(file.schema.names)]
            )
    except (pa.ArrowException, OSError):
        return None


def _pared(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value[:_TEXT]
    if isinstance(value, dict):
        return {key: _pared(inner, depth - 1) for key, inner in islice(value.items(), _KEYS)} if depth else {}
    if isinstance(value, list):
        return [_pared(inner, depth - 1) for inner in value[:_ROWS]] if depth else []
    return value
