"""Parquet: read a record batch at a time, and written with the types that the table's own columns have; and
the rows of frames."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError
from judgecal.records import is_missing
from judgecal.tables.formats import Format, Output, Write
from judgecal.tables.table import FileSource, Piece, RecordSource, Unit, record_row

if TYPE_CHECKING:
    import polars as pl

_BATCH = 4096  # rows read at a time, where they are not long
_BATCH_BYTES = 4_000_000
_BUFFER = 1 << 20  # bytes of a column read at a time; without it a whole row group is held
_ROW_GROUP = 65_536


class ParquetSource(FileSource):
    """A Parquet file: a piece has the rows as JSON values, and the record batch as it is."""

    unit: Unit = "row"

    def _survey(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                self.schema, self.n_rows = file.schema_arrow, file.metadata.num_rows
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{self.where}: cannot be read as Parquet ({reason}): save the file again"
            ) from None
        self.columns = tuple(self.schema.names)
        _, self.bytes_columns = without_bytes(self.schema.empty_table())
        texts = [field for field in self.schema if field.name not in self.bytes_columns]
        self.fields = tuple(dict.fromkeys(name for field in texts for name in _fields(field, field.name)))

    def _pieces(self) -> Iterator[Piece]:
        import pyarrow.parquet as pq

        first = 0
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER) as file:
            groups = (file.metadata.row_group(place) for place in range(file.metadata.num_row_groups))
            longest = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
            for batch in file.iter_batches(batch_size=max(1, min(_BATCH, _BATCH_BYTES // max(1, longest)))):
                records = frame_records(without_bytes(batch)[0])
                yield Piece([record_row(first + number, record) for number, record in records], batch)
                first += len(records)


def _fields(field: Any, name: str) -> Iterator[str]:
    """The name of a column, and the dotted names of the fields of objects in it."""
    import pyarrow as pa

    yield name
    for inner in field.type if pa.types.is_struct(field.type) else ():
        yield from _fields(inner, f"{name}.{inner.name}")


def without_bytes(table: Any) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A frame without the columns that hold bytes (pictures, sound), and their names; of Arrow or a frame."""
    import polars as pl

    frame = table if isinstance(table, pl.DataFrame) else pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)

    def holds_bytes(dtype: Any) -> bool:
        if isinstance(dtype, pl.List | pl.Array):
            return holds_bytes(dtype.inner)
        if isinstance(dtype, pl.Struct):
            return any(holds_bytes(field.dtype) for field in dtype.fields)
        return dtype in (pl.Binary, pl.Object)

    left_out = tuple(name for name, dtype in frame.schema.items() if holds_bytes(dtype))
    return frame.drop(left_out), left_out


def frame_records(frame: pl.DataFrame) -> list[tuple[int, dict[str, Any]]]:
    """Each row with its number, from 1: field -> JSON value.

    Lists and structs stay lists and objects, whole numbers whole; null and NaN are None; a date or a time is
    its ISO text. A 32-bit float is the shortest decimal that means it: 0.1, not 0.10000000149011612.
    """
    import polars as pl

    def with_floats(dtype: Any, floats: Any) -> Any:
        """The type with another one in place of 32-bit floats, within lists and structs too."""
        if isinstance(dtype, pl.List):
            return pl.List(with_floats(dtype.inner, floats))
        if isinstance(dtype, pl.Struct):
            return pl.Struct({field.name: with_floats(field.dtype, floats) for field in dtype.fields})
        return floats if dtype == pl.Float32 else dtype

    narrow = {name: dtype for name, dtype in frame.schema.items() if with_floats(dtype, pl.String) != dtype}
    for floats in (pl.String, pl.Float64):  # its text is the shortest decimal
        frame = frame.cast({name: with_floats(dtype, floats) for name, dtype in narrow.items()})
    rows = enumerate(frame.iter_rows(named=True), start=1)
    return [(number, {key: _plain(value) for key, value in row.items()}) for number, row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date too
        return value.isoformat()
    if isinstance(value, datetime.timedelta | decimal.Decimal):
        return str(value)
    return value


class FrameSource(RecordSource):
    """The rows of a polars frame, or of any other with `to_dict("records")`, as pandas has it."""

    unit: Unit = "row"

    def __init__(self, frame: Any) -> None:
        super().__init__("the frame")
        self.source = f"a {type(frame).__module__.partition('.')[0]} {type(frame).__name__}"
        if not (hasattr(frame, "to_dicts") or hasattr(frame, "to_dict")) or not hasattr(frame, "columns"):
            raise InputError(f"give a polars or pandas frame, found {self.source}")
        names = [str(name) for name in frame.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"the frame has several columns {', '.join(twice)}: rename all but one")
        if hasattr(frame, "to_dicts"):
            stored, self.bytes_columns = without_bytes(frame)
            self._held = frame_records(stored)
        else:
            self._held = list(enumerate(map(_unboxed, frame.to_dict("records")), start=1))
        self.survey()
        if not self.n_rows:
            raise InputError("the frame has no rows")


def _unboxed(value: Any) -> Any:
    """A JSON value of what a frame holds as Python or numpy objects."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, dict):
        return {str(key): _unboxed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_unboxed(part) for part in value]
    plain = None if is_missing(value) else _plain(value)
    return plain if isinstance(plain, bool | int | float | None) else str(plain)


@contextlib.contextmanager
def _writer(draft: Path, output: Output) -> Iterator[Write]:
    """The rows a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"text": pa.string(), "number": pa.float64(), "count": pa.int64(), "flag": pa.bool_()}
    types |= {"texts": pa.list_(pa.string()), "numbers": pa.list_(pa.float64())}
    more = pa.schema([(name, types[kind]) for name, kind in output.added.items()])
    source = output.source
    if isinstance(source, ParquetSource):
        own = source.schema
    else:
        own = pa.schema([(name, _arrow_type(source.types.get(name, set()))) for name in source.columns])
    schema = pa.schema([*own, *more], metadata=own.metadata)
    with pq.ParquetWriter(draft, schema) as out:
        waiting: list[Any] = []

        def flush() -> None:
            if waiting:
                out.write_table(pa.concat_tables(waiting))
                waiting.clear()

        def write(piece: Piece, added: Sequence[Sequence[Any]]) -> None:
            arrays = [] if piece.batch is None else piece.batch.columns
            for field in own if piece.batch is None else ():
                values = [row.raw.get(field.name) for row in piece.rows]
                if pa.types.is_string(field.type):  # what is no text is its JSON
                    texts = [row.cells.get(field.name) for row in piece.rows]
                    values = [
                        None if value is None else text for value, text in zip(values, texts, strict=True)
                    ]
                arrays.append(pa.array(_utf8(values), field.type))
            columns = zip(*map(_utf8, added), strict=True)
            arrays += [pa.array(column, field.type) for column, field in zip(columns, more, strict=True)]
            waiting.append(pa.Table.from_arrays(arrays, schema=schema))
            if sum(table.num_rows for table in waiting) >= _ROW_GROUP:
                flush()

        yield write
        flush()


def _arrow_type(kinds: set[str]) -> Any:
    """The type of a column by what all of its values are; else text."""
    import pyarrow as pa

    if kinds and kinds <= {"int", "float"}:
        return pa.float64() if "float" in kinds else pa.int64()
    return pa.bool_() if kinds == {"bool"} else pa.string()


def _utf8(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_utf8(part) for part in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


FORMATS = (Format("Parquet", (".parquet",), ParquetSource, _writer, holds_bytes=True),)
