"""Reading people's tables: the line of every row, and one clear message for everything malformed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.goldset import Table, read_table

CELL = st.text(st.characters(exclude_characters="\0\ufeff", exclude_categories=["Cs"]), max_size=12)


def write(tmp_path: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems_of(path: Path | str) -> tuple[str, ...]:
    with pytest.raises(InputError) as error:
        read_table(path)
    return error.value.problems


def rows_of(table: Table) -> list[tuple[int, dict[str, str]]]:
    return [(row.line, dict(row.cells)) for row in table.rows]


def test_rows_know_the_line_where_they_begin(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, '\ufeffq, a\r\n"one\r\ntwo",x\r\n\r\n,\r\n"a ""b""",y\r\n'))
    assert table.columns == ("q", "a")
    assert rows_of(table) == [(2, {"q": "one\r\ntwo", "a": "x"}), (6, {"q": 'a "b"', "a": "y"})]
    assert table.at(table.rows[1]).endswith("t.csv:6")


def test_tsv_and_unnamed_columns(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "\tq\n0\twhat, then?\n", "t.tsv"))
    assert rows_of(table) == [(2, {"column 1": "0", "q": "what, then?"})]


def test_json_values_stay_usable(tmp_path: Path) -> None:
    text = '{"q": "a", "n": 0.5, "r": ["x", "y "]}\n\n{"q": "b\u2028c", "n": NaN, "s": null, "t": true}\n'
    table = read_table(write(tmp_path, text, "t.jsonl"))
    assert table.columns == ("q", "n", "r", "s", "t")
    first, second = table.rows
    assert (first.cells["n"], first.raw["n"], first.cells["s"], first.line) == ("0.5", 0.5, "", 1)
    assert first.parts("r") == ("x", "y")
    assert (second.cells["q"], second.cells["n"], second.cells["t"], second.line) == (
        "b\u2028c",
        "",
        "true",
        3,
    )
    assert second.parts("r") == ()


def test_parts_are_cut_at_the_separator(tmp_path: Path) -> None:
    row = read_table(write(tmp_path, "r\na | b || c| \n")).rows[0]
    assert row.parts("r") == ("a | b || c| ",)
    assert row.parts("r", " | ") == ("a", "b || c|")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q,a\n1,2,3\n1\n", "t.csv:2: 3 cells where the header names 2 columns"),
        ('q,a\n1,2\n"x\ny,2\n1,2\n', "t.csv:3: a quote opened in the row that begins here is never closed"),
        ('q,a\n1,2\n"x"y,2\n', "t.csv:3: broken quoting in the row that begins in line 3"),
        ("q,a,q\n1,2,3\n", "t.csv:1: 2 columns are named 'q': rename all but one"),
        ("q;a\n1;2\n", "t.csv:1: one column only, and a semicolon in its name"),
        ("", "t.csv:1: the file holds no rows"),
        ("q,a\n,\n", "t.csv:1: the file holds no rows"),
        (
            b"q,a\n1,2\n1,caf\xe9\n",
            "t.csv:3: not UTF-8: byte 0xe9 at byte 6 of the line, byte 13 of the file",
        ),
        ("q,a\n1,2\n".encode("utf-16"), "t.csv:1: the file is UTF-16"),
        ("q,a\n1,2\n".encode("utf-16-le"), "t.csv:1: holds a NUL byte, so it may be UTF-16"),
    ],
)
def test_malformed_csv(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert message in problems_of(write(tmp_path, text))[0]


def test_every_ragged_row_is_listed(tmp_path: Path) -> None:
    assert len(problems_of(write(tmp_path, "q,a\n1\n1,2\n1,2,3\n"))) == 2


def test_malformed_json_lines(tmp_path: Path) -> None:
    found = problems_of(write(tmp_path, '{"q": 1}\n{"q": \n[1]\n', "t.jsonl"))
    assert "t.jsonl:2: broken JSON at column" in found[0] and "t.jsonl:3: a JSON list" in found[1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.parquet", "Parquet cannot be read yet: save it as CSV, TSV or JSONL first"),
        ("t.json", "JSON cannot be read yet: save it as CSV, TSV or JSONL first"),
        ("t.xlsx", "unknown ending '.xlsx': it must be .csv, .tsv or .jsonl"),
        ("none.csv", "none.csv: there is no such file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    assert message in problems_of(tmp_path / name)[0]
    assert "cannot be read yet" in problems_of("hf:org/name:test")[0]


def test_a_missing_column_names_the_nearest(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "question,answer\n1,2\n"))
    table.require("question", "answer")
    with pytest.raises(InputError) as error:
        table.require("qestion", "answer", "zzz", "zzz")
    assert [problem.split(": ", 1)[1] for problem in error.value.problems] == [
        "unknown column 'qestion': did you mean question?",
        "unknown column 'zzz': known: question, answer",
    ]


def test_a_cell_longer_than_the_csv_modules_limit(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    table = read_table(write(tmp_path, "q\n" + "x" * 200_000 + "\n"))
    assert len(table.rows[0].cells["q"]) == 200_000
    assert csv.field_size_limit() == limit


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8))
def test_what_csv_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["k", "a", "b"])
        writer.writerows(("k", *pair) for pair in pairs)
    found = read_table(path).rows
    assert [(row.cells["a"], row.cells["b"]) for row in found] == pairs
