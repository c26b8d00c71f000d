"""Tables as files of any format, written and read back."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A table in the format of the ending; in a CSV file a cell that is no text is JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in _DELIMITERS:
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, list(rows[0]), delimiter=_DELIMITERS[path.suffix])
            out.writeheader()
            for row in rows:
                out.writerow({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()})
    elif path.suffix == ".parquet":
        import polars as pl

        pl.DataFrame(list(rows), infer_schema_length=None).write_parquet(path)
    else:
        lines = [json.dumps(row) for row in rows]
        path.write_text(
            "".join(f"{line}\n" for line in lines) if path.suffix == ".jsonl" else f"[{','.join(lines)}]"
        )
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """A table back; a cell of CSV is text."""
    if path.suffix in _DELIMITERS:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file, delimiter=_DELIMITERS[path.suffix]))
    if path.suffix == ".parquet":
        import polars as pl

        return pl.read_parquet(path).to_dicts()
    text = path.read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = (
        [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    )
    return rows


def parsed(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a CSV file with numbers, lists and what is empty as in the other formats."""

    def value(cell: Any) -> Any:
        if cell == "":
            return None
        as_json = isinstance(cell, str) and (cell[0] == "[" or re.fullmatch(r"[\d.]+", cell))
        return json.loads(cell) if as_json else cell

    return {name: value(cell) for name, cell in row.items()}
