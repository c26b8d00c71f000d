"""Tables that come in and go out: CSV, JSON, Parquet and data sets of the Hub; one module a family of
formats."""

from judgecal.tables.cells import CELL_LIMIT, defuse, is_error, same_text, undo
from judgecal.tables.columns import GOLD, Columns, read_fields, write_beside
from judgecal.tables.formats import (
    Format,
    Kind,
    Output,
    Write,
    check_output,
    open_source,
    read_table,
    writing,
)
from judgecal.tables.json_files import json_line, json_lines, json_value, read_json, write_json_lines
from judgecal.tables.nested import nested
from judgecal.tables.outline import outline
from judgecal.tables.partitions import Partition, Partitions, Place, Stamp, list_partitions
from judgecal.tables.separated import PaddedSource
from judgecal.tables.table import (
    FileSource,
    NoRowsError,
    Piece,
    Record,
    RecordSource,
    Row,
    Source,
    Table,
    record_row,
)
from judgecal.tables.text import decode, read_bytes
from judgecal.tables.xlsx_writer import Form, write_form
from judgecal.tables.zip_members import Archive, open_archive

__all__ = [
    "CELL_LIMIT", "GOLD", "Archive", "Columns", "FileSource", "Form", "Format", "Kind", "NoRowsError",
    "Output", "PaddedSource", "Partition", "Partitions", "Piece", "Place", "Record", "RecordSource", "Row",
    "Source", "Stamp", "Table", "Write", "check_output", "decode", "defuse", "is_error", "json_line",
    "json_lines", "json_value", "list_partitions", "nested", "open_archive", "open_source", "outline",
    "read_bytes", "read_fields", "read_json", "read_table", "record_row", "same_text", "undo", "write_beside",
    "write_form", "write_json_lines", "writing",
]  # fmt: skip
