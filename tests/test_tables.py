"""Reading people's tables: the line of every row, and one clear message for everything malformed."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import datasets
import polars as pl
import pytest

from judgecal.errors import InputError
from judgecal.tables import Table, read_table
from tests.support.hub import hub_folder, keep_off_the_hub


@pytest.fixture(autouse=True)
def _off_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keep_off_the_hub(monkeypatch, tmp_path)


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


def test_how_a_file_was_read_stands_in_the_notes(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, ";;\nq;a\xa0;l\xa0(0-5)\nWie groß?;3 €;3,5\n".encode("cp1252")))
    assert rows_of(table) == [(3, {"q": "Wie groß?", "a": "3 €", "l (0-5)": "3,5"})]
    assert [note.split("t.csv")[1] for note in table.notes] == [
        ": a semicolon separates the cells",
        ": read as Windows-1252, since it is not UTF-8: if texts are garbled, give --encoding",
    ]
    late = "q,a\n" + "x,y\n" * 50_000 + "x,café\n"
    assert read_table(write(tmp_path, late.encode("cp1252"))).rows[-1].cells["a"] == "café"
    mixed = (late + "x,naïve\n").encode("cp1252") + "x,über\n".encode()
    assert "t.csv:50002: not UTF-8" in problems_of(write(tmp_path, mixed))[0]


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


def test_a_missing_column_names_the_nearest(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "question,answer\n1,2\n"))
    table.require("question", "answer")
    with pytest.raises(InputError) as error:
        table.require("qestion", "answer", "zzz", "zzz")
    assert [problem.split(": ", 1)[1] for problem in error.value.problems] == [
        "unknown column 'qestion': did you mean question?",
        "unknown column 'zzz': known: question, answer",
    ]


def test_a_tsv_with_quoting_stays_quoted(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, 'q\ta\n"one\ttwo\nthree"\t"say ""so"""\n', "t.tsv"))
    assert rows_of(table) == [(2, {"q": "one\ttwo\nthree", "a": 'say "so"'})] and table.notes == ()
    assert "broken quoting" in problems_of(write(tmp_path, 'q\ta\n1\n2\t"Song" by X\n', "t.tsv"))[0]


@pytest.mark.parametrize(
    ("prefix", "suffix", "taken"), [("", "", ""), ('{"version": 2, "items": ', ', "n": []}', "items")]
)
def test_json_arrays(tmp_path: Path, prefix: str, suffix: str, taken: str) -> None:
    rows = ('{"q": "a", "n": 3, "f": 0.5, "t": true, "r": ["x"]}', '{"q": "b", "n": NaN, "h": HUMAN}', "{}")
    array = "[" + ",\n".join(rows).replace("HUMAN", '{"s": 1, "who": {"id": "w"}}') + "]"
    table = read_table(write(tmp_path, prefix + array + suffix, "t.json"))
    assert table.columns == ("q", "n", "f", "t", "r", "h", "h.s", "h.who", "h.who.id")
    first, second = table.rows
    assert (first.cells["n"], first.raw["n"], first.cells["t"], first.parts("r")) == ("3", 3, "true", ("x",))
    assert [second.cells[name] for name in ("n", "h", "h.s", "h.who.id")] == [
        "",
        '{"s": 1, "who": {"id": "w"}}',
        "1",
        "w",
    ]
    assert table.at(second).endswith("t.json:row 2")
    assert [note.split(": ")[1] for note in table.notes] == (
        [f"took the array {taken} (3 objects)"] if taken else []
    )
    assert (table.name, table.source) == ("t.json", "t.json")


def test_parquet_keeps_types(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        {
            "q": ["a", None],
            "n": [3, None],
            "b": [True, False],
            "f": pl.Series([0.1, float("nan")], dtype=pl.Float32),
            "list": [["x", "y"], None],
            "human": [{"score": 0.7, "by": ["w"]}, {"score": None, "by": None}],
            "on": [datetime.date(2026, 1, 2), None],
            "d": [decimal.Decimal("1.50"), None],
            "c": pl.Series(["good", None], dtype=pl.Categorical),
            "image": [b"x", None],
        },
        schema_overrides={"human": pl.Struct({"score": pl.Float64, "by": pl.List(pl.String)})},
    ).write_parquet(path)
    table = read_table(path)
    first, second = table.rows
    assert dict(first.cells) == {
        "q": "a", "n": "3", "b": "true", "f": "0.1", "list": '["x", "y"]',
        "human": '{"score": 0.7, "by": ["w"]}', "human.score": "0.7", "human.by": '["w"]', "on": "2026-01-02",
        "d": "1.50", "c": "good",
    }  # fmt: skip
    assert (first.raw["n"], first.raw["b"], first.parts("list")) == (3, True, ("x", "y"))
    assert {name for name, cell in second.cells.items() if cell} == {"b", "human"}
    assert table.at(second).endswith("t.parquet:row 2") and "left out image: bytes" in table.notes[0]


FEATURES = {
    "id": datasets.Value("string"),
    "question": datasets.Value("string"),
    "refs": datasets.Sequence(datasets.Value("string")),
    "score": datasets.Value("float32"),
    "label": datasets.ClassLabel(names=["correct", "contradictory"]),
}
TRAIN: list[dict[str, Any]] = [
    {"id": "1", "question": "Q1", "refs": ["r", "s"], "score": 0.1, "label": 0},
    {"id": "2", "question": "Q2", "refs": None, "score": None, "label": -1},
]
TEST: list[dict[str, Any]] = [{"id": "3", "question": "Q3", "refs": [], "score": 1.0, "label": 1}]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; in it stand the data sets org/name (two configs) and org/one (one split, no
    card)."""
    here = tmp_path / "here"
    configs = {"default": {"train": TRAIN, "test": TEST}, "other": {"only": TEST}}
    hub_folder(here / "org" / "name", configs, FEATURES, licence="cc-by-4.0")
    (here / "org" / "one").mkdir()
    (here / "org" / "one" / "data.jsonl").write_text('{"q": "Q", "n": 1}\n', encoding="utf-8")
    monkeypatch.chdir(here)
    return here


def test_a_split_of_a_data_set(hub: Path) -> None:
    table = read_table("hf:org/name:train")
    first, second = table.rows
    assert dict(first.cells) == {
        "id": "1", "question": "Q1", "refs": '["r", "s"]', "score": "0.1", "label": "correct",
    }  # fmt: skip
    assert first.parts("refs") == ("r", "s")
    assert (second.cells["score"], second.cells["label"], second.parts("refs")) == ("", "", ())
    assert table.at(second) == "hf:org/name:train:row 2"
    assert table.name == "hf:org/name:train"
    assert table.source.startswith("hf:org/name:train (2 rows, fingerprint ")


@pytest.mark.parametrize(
    ("address", "ids"),
    [
        ("hf:org/name:train+test", "123"),
        ("hf:org/name:train[1:]", "2"),
        ("hf:org/name/other", "3"),
        ("hf:org/name/other:only", "3"),
    ],
)
def test_addresses(hub: Path, address: str, ids: str) -> None:
    assert "".join(row.cells["id"] for row in read_table(address).rows) == ids


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("hf:org/name", "hf:org/name: has 2 splits, train (2 rows), test (1 rows): name one, as in hf:org/name:train"),
        ("hf:org/name:tst", "ValueError: Unknown split \"tst\". Should be one of ['train', 'test']. (the form is hf:org/name[/"),
        ("hf:org/name/oter:x", "BuilderConfig 'oter' not found. Available: ['default', 'other']"),
        ("hf:org/gone:train", "cannot be loaded: ConnectionError: Couldn't reach 'org/gone' on the Hub (OfflineModeIsEnabled) ("),
        ("hf:a/b/c/d", "cannot be read as hf:org/name[/config][:split]"),
        ("hf:", "cannot be read as hf:org/name"),
        ("hf:org/na me", "cannot be read as hf:org/name"),
    ],
)  # fmt: skip
def test_data_sets_that_cannot_be_had(hub: Path, address: str, message: str) -> None:
    (problem,) = problems_of(address)
    assert message in problem
