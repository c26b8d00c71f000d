"""Hostile tables at the front door: each is read as it is, or refused in one message with exit code 2, and
nothing is written.
"""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pyarrow.parquet as pq
import pytest

from judgecal.errors import InputError
from judgecal.tables import read_table
from tests.support.command import Run

HEAD = "q,human,judge\n"
WORDS = "".join(f"{n},{'yes' if n % 3 else 'no'},{'yes' if n % 2 else 'no'}\n" for n in range(12))


def book(*rows: list[Any], change: Callable[[Any], None] | None = None) -> bytes:
    """A workbook with these rows."""
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    if change is not None:
        change(made.active)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def repacked(content: bytes, part: str, change: Callable[[bytes], bytes], *more: tuple[str, bytes]) -> bytes:
    """A workbook with one of its parts changed, and more of them."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name == part else old.read(name))
        for name, text in more:
            new.writestr(name, text)
    return out.getvalue()


def parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(frame.to_arrow(), out, **options)
    return out.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
PLAIN = book(["q", "human"], ["Q1", "yes"])
LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha">' + b"".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">'.encode() for a, b in zip("abcdefgh", "bcdefghi", strict=True)
) + b"]>"  # fmt: skip

REFUSED: dict[str, tuple[str, str | bytes, str]] = {
    "nothing": ("t.csv", "", "t.csv:1: the file holds no rows"),
    "a header alone": ("t.csv", HEAD, "t.csv:1: the file holds no rows"),
    "rows of nothing": ("t.csv", HEAD + ",,\n,,\n", "t.csv:1: the file holds no rows"),
    "a ragged row": ("t.csv", HEAD + "1,2,3,4\n1\n", "t.csv:2: 4 cells where the header names 3 columns"),
    "an open quote": ("t.csv", HEAD + '1,2,3\n"x\ny,2,3\n', "t.csv:3: a quote opened in the row that begins here"),
    "a quote in a cell": ("t.csv", HEAD + '"x"y,2,3\n', "t.csv:2: broken quoting in the row that begins in line 2"),
    "two columns of one name": ("t.csv", "q,q,human\n1,2,3\n", "t.csv:1: 2 columns are named 'q'"),
    "one column with a separator": ("t.csv", "q;human\n1\n2\n", "1 cells where the header names 2 columns"),
    "two separators": ("t.csv", "q,a;human\nx,1;y\n", "may be separated by a comma or a semicolon (2 columns)"),
    "titles": ("t.csv", "Ratings,,\n,,\nq,a,l\n1,2,3\n", "t.csv:1: the first row has one cell"),
    "NUL": ("t.csv", (HEAD + "1,2,\0\n").encode(), "t.csv:2: holds a NUL byte, so it may be UTF-16"),
    "a byte of no encoding": ("t.csv", b"q,human\n1,2\n1,z\x9doty\n", "t.csv:3: not UTF-8: byte 0x9d"),
    "two encodings": ("t.csv", "q,é\n1,ü\n".encode() + "ü,2\n".encode("cp1252"), "t.csv:3: not UTF-8"),
    "UTF-16 without a mark": ("t.csv", HEAD.encode("utf-16-le"), "t.csv:1: holds a NUL byte, so it may be UTF-16"),
    "half of UTF-16": ("t.csv", HEAD.encode("utf-16")[:-1], "t.csv: broken UTF-16"),
    "UTF-32": ("t.csv", HEAD.encode("utf-32"), "t.csv: the file is UTF-32"),
    "an archive by another name": ("t.csv", PLAIN, "the file is a zip archive"),
    "an old workbook by another name": ("t.csv", b"\xd0\xcf\x11\xe0" * 9, "an old or encrypted file of Excel"),
    "broken JSON lines": ("t.jsonl", '{"q": 1}\n{"q": \n', "t.jsonl:2: broken JSON at column"),
    "a list in a line": ("t.jsonl", '{"q": 1}\n[1]\n', "t.jsonl:2: found a JSON list"),
    "a key twice": ("t.jsonl", '{"q": 1, "q": 2}\n', "the key 'q' is there twice in one object"),
    "a constant": ("t.jsonl", '{"q": "Q", "human": Infinityy}\n', "t.jsonl:1: broken JSON"),
    "100,000 brackets": ("t.json", "[" * 100_000, "broken JSON (nested too deeply)"),
    "100,000 brackets in a line": ("t.jsonl", '{"a":' * 100_000, "broken JSON (nested too deeply)"),
    "JSON lines called JSON": ("t.json", '{"q": 1}\n{"q": 2}\n', "t.json:2: a second JSON object follows"),
    "two arrays": ("t.json", '{"a": [{"q": 1}], "b": [{"q": 1}]}', "2 arrays of objects, found a (1), b (1): write one"),
    "no array": ("t.json", '"text"', "t.json: holds no arrays of objects, found str"),
    "an array of anything": ("t.json", '[{"q": 1}, 7, [2]]', "t.json:row 2: a JSON int, where each row"),
    "objects of nothing": ("t.json", "[{}, {}]", "t.json: the file holds no rows"),
    "no Parquet": ("t.parquet", HEAD, "t.parquet: cannot be read as Parquet ("),
    "Parquet of nothing": ("t.parquet", parquet(pl.DataFrame({"q": pl.Series([], dtype=pl.String)})),
                           "t.parquet: the file holds no rows"),
    "no workbook": ("t.xlsx", HEAD, "is not a workbook: save it as .xlsx"),
    "a workbook of nothing": ("t.xlsx", book(), "no sheet of the workbook holds anything"),
    "an old workbook": ("t.xlsx", b"\xd0\xcf\x11\xe0" * 9, "is encrypted, or of an Excel before 2007"),
    "a workbook bomb": ("t.xlsx", repacked(PLAIN, "", bytes, ("xl/media/a.bin", bytes(200_000_000))),
                        "unpacks to 200 MB, and 200 MB are read at most: save the sheet as CSV"),
    "a bomb of rows": ("t.xlsx", repacked(PLAIN, SHEET, lambda xml: xml.replace(
        b"</sheetData>", b'<row r="9"><c r="A9"><v>1</v></c></row>' * 600_000 + b"</sheetData>")),
        "unpacks to 23 MB, more than 100 times its size: save the sheet as CSV"),
    "few values far apart": ("t.xlsx", repacked(PLAIN, SHEET, lambda xml: xml.replace(b"</sheetData>", b"".join(
        b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(3, 200)) + b"</sheetData>")),
        "spreads few values over more than 2,000,000 cells"),
    "a bomb of Parquet": ("t.parquet", parquet(pl.DataFrame({"q": ["x" * 100] * 300_000}), use_dictionary=False,
                                               compression="zstd"), "more than 100 times its size: save the file"),
    "a text in very many rows of Parquet": ("t.parquet", parquet(pl.DataFrame({"q": ["x" * 20_000] * 9_000})),
                                            "unpacks to 180 MB, more than 100 times its size"),
    "a key of its own in each row": ("t.jsonl", "".join(f'{{"q{n}": 1}}\n' for n in range(8_000)),
                                     "holds 8,000 different keys in 8,000 rows"),
    "entities within entities": ("t.xlsx", repacked(PLAIN, SHEET, lambda xml: LAUGHS + xml.replace(b"Q1", b"&i;")),
                                 "cannot be read as a workbook ("),
    "a row far away": ("t.xlsx", repacked(PLAIN, SHEET, lambda xml: xml.replace(
        b"</sheetData>", b'<row r="999999999"><c r="A999999999"><v>1</v></c></row></sheetData>')),
        "has more than 1,000,000 rows: save it as CSV or Parquet"),
    "a formula without a value": ("t.xlsx", book(["q", "human"], ["Q", "=1+1"]), "cells B2: formulas whose values"),
    "merged headers": ("t.xlsx", book(["q", "human", None], [None, "a", "b"], ["Q", "yes", "no"],
                                      change=lambda sheet: sheet.merge_cells("B1:C1")), "cells B1:C1 are merged"),
    "an ending of no table": ("t.ods", HEAD, "unknown ending '.ods': it must be one of"),
}  # fmt: skip

READ: dict[str, tuple[str, str | bytes, list[list[str]]]] = {
    "formulas": ("t.csv", "q,human\n\"=HYPERLINK(\"\"http://x\"\")\",'=1+1\n", [['=HYPERLINK("http://x")', "=1+1"]]),
    "escapes": ("t.csv", "q,human\n\x1b[31mred\x07,\u202eyes\n", [["\x1b[31mred\x07", "\u202eyes"]]),
    "entities": ("t.csv", "q,human\n&lt;b&gt; <script>,&amp;\n", [["&lt;b&gt; <script>", "&amp;"]]),
    "a workbook's escapes": ("t.xlsx", book(["q", "human"], ["_x000D_\nx", "a&amp;b"]), [["\nx", "a&amp;b"]]),
    "UTF-16": ("t.csv", "q,human\nä,yes\n".encode("utf-16"), [["ä", "yes"]]),
    "half a surrogate pair": ("t.jsonl", '{"q": "half \\ud83d", "c": ["x\\udc00"]}\n', [["half \ufffd", '["x\ufffd"]']]),
    "line ends in cells": ("t.csv", 'q,human\r\n"a\r\nb\n",yes\r\n', [["a\r\nb\n", "yes"]]),
    "NaN": ("t.jsonl", '{"q": "Q", "human": NaN}\n', [["Q", ""]]),
    "dates and percentages": ("t.xlsx", book(["q", "human"], ["Q", 0.85], change=lambda sheet: setattr(
        sheet["B2"], "number_format", "0%")), [["Q", "85%"]]),
    "numbers of 400 digits": ("t.jsonl", '{"q": ' + "9" * 400 + ', "human": 1}\n', [["9" * 400, "1"]]),
    "dots in keys": ("t.jsonl", '{"q": {"a": 1}, "q.a": 2}\n', [['{"a": 1}', "2"]]),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_hostile_table_is_refused_in_one_message(judgecal: Run, workspace_dir: Path, kind: str) -> None:
    name, content, message = REFUSED[kind]
    path = workspace_dir / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {entry.name for entry in workspace_dir.iterdir()}
    begun = time.process_time()
    ran = judgecal("agreement", name)
    assert time.process_time() - begun < 5.0, "of the processor, on any machine"
    assert ran.code == 2 and ran.out == "" and message in ran.err, ran.err
    assert sum(line.startswith("judgecal: ") for line in ran.err.splitlines()) == 1, ran.err
    assert {entry.name for entry in workspace_dir.iterdir()} == before


@pytest.mark.parametrize("kind", READ)
def test_what_looks_hostile_and_is_a_table_is_read_as_it_is(tmp_path: Path, kind: str) -> None:
    name, content, rows = READ[kind]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    read = read_table(path).rows
    assert [list(row.cells.values()) for row in read] == rows
    assert json.dumps([dict(row.raw) for row in read], ensure_ascii=False).encode(), "as every file holds it"


def test_what_is_no_file_is_refused_unread(tmp_path: Path) -> None:
    """Folders, pipes and devices: opening one of them would wait, or never end."""
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    for name in ("folder", "pipe", "device"):
        with pytest.raises(InputError, match=rf"{name}\.csv: is not a file"):
            read_table(tmp_path / f"{name}.csv")
    with pytest.raises(InputError, match="there is no such file"):
        read_table(tmp_path / "none.xlsx")


def test_3000_columns_and_500_lines_of_problems_are_no_wall_of_text(
    judgecal: Run, workspace_dir: Path
) -> None:
    names = [f"column_{n}" for n in range(3_000)]
    (workspace_dir / "wide.csv").write_text(",".join(names) + "\n" + ",".join("x" * 3_000) + "\n")
    assert len(read_table(workspace_dir / "wide.csv").columns) == 3_000
    wide = judgecal("agreement", "wide.csv")
    (workspace_dir / "ragged.csv").write_text(HEAD + "1\n" * 500)
    ragged = judgecal("agreement", "ragged.csv")
    for ran in (wide, ragged):
        assert ran.code == 2 and len(ran.err) < 3_000, ran.err[:400]
    (workspace_dir / "whole.csv").write_text(HEAD + WORDS)
    assert judgecal("agreement", "whole.csv").code == 0
