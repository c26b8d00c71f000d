"""CSV that is written as the input was, and read as it is said to be."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.tables import Output, open_table, writing
from judgecal.tables.table import Table

ROWS = "Frage;Note\r\nÖffnung?;3,5\r\nPreis?;4\r\n"


def written(source: Table, path: Path) -> bytes:
    """The table with a column of numbers behind it."""
    with writing(path, Output.of(source, path, [("verdict", "number")])) as write:
        for piece in source.pieces():
            write(piece, [(85.5,), (70.0,)])
    return path.read_bytes()


def test_a_spreadsheet_that_wrote_the_input_opens_the_output(tmp_path: Path) -> None:
    path = tmp_path / "de.csv"
    path.write_bytes(codecs.BOM_UTF8 + ROWS.encode())
    text = written(open_table(path), tmp_path / "out.csv")
    assert text.startswith(codecs.BOM_UTF8)
    assert text.decode("utf-8-sig") == "Frage;Note;verdict\nÖffnung?;3,5;85,5\nPreis?;4;70\n"
    again = open_table(tmp_path / "out.csv").filled()
    assert [row.cells["verdict"] for row in again.rows] == ["85,5", "70"]

    path.write_bytes(ROWS.replace("3,5", "3.5").encode("cp1252"))  # which no mark tells from UTF-8
    text = written(open_table(path), tmp_path / "out.csv")
    assert text.startswith(codecs.BOM_UTF8) and b";85.5\n" in text
    path.write_bytes(ROWS.replace(";", "\t").encode())
    assert b"\t85.5\n" in written(open_table(path), tmp_path / "out.csv")
    assert b"\t85.5\n" in written(open_table(path), tmp_path / "out.tsv")
    path.write_bytes(ROWS.replace(",", ".").replace(";", ",").encode())
    assert written(open_table(path), tmp_path / "out.csv").startswith(b"Frage,Note,verdict\n")


def test_what_is_said_of_a_file_goes_before_what_it_tells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a;b\n1;Őr\n2;3\n".encode("cp1250"))
    assert open_table(path, "cp1250").filled().rows[0].cells["b"] == "Őr"
    for given, message in (
        ("utf-8", "t.csv:2: not UTF-8"),
        ("nonsense", "--encoding nonsense is none that is known"),
        ("rot13", "--encoding rot13 is none that is known"),
        ("utf-16", "is not utf-16 .*: leave --encoding out"),
    ):
        with pytest.raises(InputError, match=message):
            open_table(path, given)
    with pytest.raises(InputError, match="is no such file"):
        open_table(tmp_path / "t.jsonl", "utf-8")
