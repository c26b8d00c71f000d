"""What stands in the files of other tools: cells that hold lists, beginnings of files, members of archives."""

from __future__ import annotations

import json
import struct
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from judgecal.errors import InputError
from judgecal.exchange import files
from judgecal.exchange.exports import formats, read_export
from judgecal.exchange.files import nested, open_archive, outline
from tests.support.exports import FIXTURES, read_or_refused, written

REAL = FIXTURES / "inspect"
RUN = {"eval": {"task": "sums", "run_id": "r", "model": "small"}}
SAMPLE = {"id": 1, "input": "Why?", "output": {"completion": "So."}, "scores": {"match": {"value": "C"}}}


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('["a", null]', ["a", None]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("['two\\nlines', '\"quoted\"']", ["two\nlines", '"quoted"']),
        ("['one' 'two'\n 'three']", ["one", "two", "three"]),
        ("array(['one', 'two'], dtype=object)", ["one", "two"]),
        ("[4 5]", [4, 5]),
        ("[ 1.  -0.5  nan]", [1.0, -0.5, None]),
        ("[None 'yes' True]", [None, "yes", True]),
        ("[array(['a', 'b'], dtype=object) array(['c'], dtype=object)]", [["a", "b"], ["c"]]),
        ("[['a' 'b']\n ['c']]", [["a", "b"], ["c"]]),
        ("[{'a': 1} {'a': 2}]", [{"a": 1}, {"a": 2}]),
        (
            "[{'role': 'user', 'n': np.float64(0.5), 'x': nan, 'y': -1}]",
            [{"role": "user", "n": 0.5, "x": None, "y": -1}],
        ),
        ("{'at': datetime.datetime(2026, 1, 2)}", {"at": "datetime.datetime(2026, 1, 2)"}),
        ("[(1, 2)]", [[1, 2]]),
    ],
)
def test_a_nested_cell_is_read_as_json_or_as_python_prints_it(cell: str, value: Any) -> None:
    assert nested(cell, numbers=True) == value


@pytest.mark.parametrize(
    "cell",
    [
        "(yes)", "(1, 2)", "(1) (2)", "[1][2]", "[1] [2]", "[4 5]", "[1 - 2]", "{1} {2}", "array(1) + array(2)",
        "[see 3]", "[x]", "{", "[1, 2", "0.5", "yes", "", "['a' + 'b']", "[__import__('os')]", "{'a': 1, **b}",
        "[" * 5000 + "]" * 5000, "[" + "-" * 50_000 + "1]", "['" + "a" * 300_001 + "']", "[\x00]",
    ],
)  # fmt: skip
def test_what_is_no_list_stays_text(cell: str) -> None:
    start = time.perf_counter()
    value = nested(cell)
    assert value == cell or value == ["__import__('os')"], "nothing is run"
    assert time.perf_counter() - start < 20


def test_an_outline_is_the_same_for_every_format(tmp_path: Path) -> None:
    rows = [{"id": str(n), "text": "word " * 200} for n in range(9)]
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    outlines = [outline(tmp_path / f"a.{ending}") for ending in ("csv", "parquet", "json", "jsonl")]
    assert all(one == outlines[0] for one in outlines)
    assert len(outlines[0]) == 3 and len(outlines[0][0]["text"]) == 500


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.parquet", "a.eval", "missing.json"])
def test_an_outline_of_what_cannot_be_read_is_none(tmp_path: Path, name: str) -> None:
    if not name.startswith("missing"):
        (tmp_path / name).write_bytes(b'{"a": [1, \n"\xff')
    assert outline(tmp_path / name) is None


def test_a_file_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}')
    assert outline(path) == {"a": 1}
    path.write_text('{"a": 10}')
    assert outline(path) == {"a": 10}


def archive(path: Path, members: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as out:
        for name, value in members.items():
            out.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return path


def test_a_member_that_was_written_again_counts_as_it_is_last(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "w") as out:
        out.writestr("header.json", json.dumps(RUN))
        out.writestr("samples/1_epoch_1.json", json.dumps({**SAMPLE, "scores": {"match": {"value": "I"}}}))
        out.writestr("samples/1_epoch_1.json", json.dumps(SAMPLE))
    export = read_export([path], "inspect")
    assert [one.value for one in export.judgements] == [1.0] and export.n_records == 2


def test_an_archive_of_a_run_that_was_cut_off_is_read_by_its_journal(tmp_path: Path) -> None:
    members = {"_journal/start.json": RUN, "samples/1_epoch_1.json": SAMPLE}
    path = archive(tmp_path / "log.eval", members, zipfile.ZIP_STORED)
    assert formats()["inspect"].holds([path]) and len(read_export([path], "inspect").judgements) == 1


def test_a_member_in_several_frames_is_read_whole(tmp_path: Path) -> None:
    """Inspect cuts a large member into frames of Zstandard."""
    data = json.dumps({**RUN, "note": "a" * 1000}).encode()
    packed = b"".join(bytes(pa.compress(part, "zstd")) for part in (data[:300], data[300:]))
    path = archive(tmp_path / "log.eval", {"header.json": packed}, zipfile.ZIP_STORED)
    whole = bytearray(path.read_bytes())
    for mark, method, crc, size in ((b"PK\x03\x04", 8, 14, 22), (b"PK\x01\x02", 10, 16, 24)):
        place = whole.rindex(mark)
        struct.pack_into("<H", whole, place + method, 93)
        struct.pack_into("<L", whole, place + crc, zlib.crc32(data))
        struct.pack_into("<L", whole, place + size, len(data))
    path.write_bytes(whole)
    with open_archive(path) as opened:
        assert opened.json("header.json")["note"] == "a" * 1000


def test_names_in_an_archive_are_never_paths(tmp_path: Path) -> None:
    members = {
        "header.json": RUN,
        "samples/../../../evil_epoch_1.json": SAMPLE,
        "../outside.json": {"a": 1},
        "/etc/outside.json": {"a": 1},
    }
    folder = tmp_path / "in"
    folder.mkdir()
    export = read_export([archive(folder / "log.eval", members)], "inspect")
    assert len(export.items) == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "log.eval"]


@pytest.mark.parametrize(
    ("limit", "said"), [("LARGEST", "has 3,000,002 bytes"), ("LARGEST_SUM", "hold over")]
)
def test_an_archive_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    members = {"header.json": RUN, "samples/1_epoch_1.json": json.dumps("a" * 3_000_000)}
    path = archive(tmp_path / "log.eval", members)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(files, limit, 1_000_000)
    with pytest.raises(InputError, match=said):
        read_export([path], "inspect")


@pytest.mark.parametrize("file", ["deflated", "zstandard"])
def test_a_member_that_is_longer_than_it_says_is_refused(tmp_path: Path, file: str) -> None:
    """The size that the archive tells is a lie: no more than that is unpacked."""
    path = tmp_path / "log.eval"
    if file == "zstandard":
        path.write_bytes((REAL / "log.eval").read_bytes())
    else:
        archive(path, {"header.json": {**RUN, "note": "a" * 10_000}})
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02", 0, data.rindex(b"header.json"))
    struct.pack_into("<L", data, place + 24, 10)  # the size, unpacked
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"header\.json: cannot be unpacked"):
        read_export([path], "inspect")


def test_a_log_that_is_cut_off_or_spoilt_anywhere_never_ends_in_a_traceback(tmp_path: Path) -> None:
    whole = (REAL / "log.eval").read_bytes()
    path = tmp_path / "log.eval"
    n_refused = 0
    for place in range(0, len(whole), 211):
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]):
            path.write_bytes(data)
            formats()["inspect"].holds([path])
            n_refused += read_or_refused(path, "inspect") is None
    assert n_refused > 60


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "log.eval", {"header.json": RUN})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="encrypted"):
        read_export([path], "inspect")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="is not a zip archive"),
        open_archive(written(tmp_path / "a.eval", "no")),
    ):
        pass
    with pytest.raises(InputError, match="there is no such file"), open_archive(tmp_path / "missing.eval"):
        pass
