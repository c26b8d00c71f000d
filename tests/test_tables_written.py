"""CSV that is written in one form, and read as it is said to be."""

from __future__ import annotations

import codecs
from pathlib import Path

import polars as pl
import pytest

from judgecal.errors import InputError
from judgecal.tables import open_table, write_table
from judgecal.tables.table import Table

ROWS = "Frage;Note\r\nÖffnung?;3,5\r\nPreis?;4\r\n"


def written(source: Table, path: Path) -> bytes:
    """The table with a column of numbers behind it."""
    write_table(path, pl.DataFrame({"verdict": [85.5, 70.0]}), source)
    return path.read_bytes()


def test_the_output_has_commas_and_is_utf_8_whatever_the_input_was(tmp_path: Path) -> None:
    path, text = tmp_path / "de.csv", 'Frage,Note,verdict\nÖffnung?,"3,5",85.5\nPreis?,4,70\n'
    for content in (codecs.BOM_UTF8 + ROWS.encode(), ROWS.encode("cp1252"), ROWS.encode("utf-16")):
        path.write_bytes(content)
        assert written(open_table(path), tmp_path / "out.csv").decode() == text
    assert b"\t85.5\n" in written(open_table(path), tmp_path / "out.tsv")


def test_what_is_said_of_a_file_goes_before_what_it_tells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a;b\n1;Őr\n2;3\n".encode("cp1250"))
    assert open_table(path, "cp1250").filled().rows[0].cells["b"] == "Őr"
    for given, message in (
        ("utf-8", "t.csv:2: not UTF-8"),
        ("nonsense", "--encoding nonsense is none that is known"),
        ("rot13", "--encoding rot13 is none that is known"),
        ("utf-16", "t.csv: broken UTF-16"),
    ):
        with pytest.raises(InputError, match=message):
            open_table(path, given)
    with pytest.raises(InputError, match="is no such file"):
        open_table(tmp_path / "t.jsonl", "utf-8")
