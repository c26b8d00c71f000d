"""Tables that come in and go out: CSV, JSON, Parquet and data sets of the Hub; one module a family of
formats."""

from judgecal.tables.columns import GOLD, OF_IMPORTS, OF_ITEMS, PAIR, Columns, read_columns, write_columns
from judgecal.tables.formats import check_output, open_table, read_table, write_table
from judgecal.tables.json_files import json_line, json_lines, json_value, read_json, write_json_lines
from judgecal.tables.separated import read_separated
from judgecal.tables.table import NoRowsError, Row, Table
from judgecal.tables.text import decode, defuse, read_bytes, same_text, undefuse

__all__ = [
    "GOLD", "OF_IMPORTS", "OF_ITEMS", "PAIR", "Columns", "NoRowsError", "Row",
    "Table", "check_output", "decode", "defuse", "json_line", "json_lines", "json_value",
    "open_table", "read_bytes", "read_columns", "read_json", "read_separated", "read_table", "same_text",
    "undefuse", "write_columns", "write_json_lines", "write_table",
]  # fmt: skip
