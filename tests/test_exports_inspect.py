"""Inspect's logs, and the archives that hold them."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, formats, read_export
from judgecal.tables import open_archive, zip_members
from tests.support.exports import FIXTURES, read_or_refused, read_spoilt, written

REAL = FIXTURES / "inspect"
RUN = {"task": "sums", "run_id": "r", "model": "small", "scorers": [{"name": "match", "options": {}}]}


def score(value: Any, **further: Any) -> dict[str, Any]:
    return {"value": value, "answer": "a", "explanation": "because", "history": [], **further}


def sample(n: int, epoch: int = 1, answer: str = "Yes.", **scores: Any) -> dict[str, Any]:
    said = {"choices": [{"message": {"role": "assistant", "content": answer}}], "completion": answer}
    return {
        "id": n,
        "epoch": epoch,
        "input": f"Question {n}?",
        "target": "Yes",
        "output": said,
        "scores": scores,
    }


def log(*samples: Any, **run: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {**RUN, **run}, "samples": list(samples)}


def read(tmp_path: Path, value: Any) -> Export:
    return read_export([written(tmp_path / "log.json", value)], "inspect")


def archive(path: Path, members: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as out:
        for name, value in members.items():
            out.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return path


def test_a_log_without_samples_is_refused(tmp_path: Path) -> None:
    """As `--no-log-samples` leaves it."""
    value = json.loads((REAL / "log.json").read_text())
    del value["samples"]
    path = written(tmp_path / "log.json", value)
    assert formats()["inspect"].holds([path])
    with pytest.raises(InputError, match="holds no samples: run the evaluation without --no-log-samples"):
        read_export([path], "inspect")


@pytest.mark.parametrize(
    ("values", "read_as"),
    [
        (["C", "P", "I", "N"], [1.0, 0.5, 0.0, 0.0]),
        (["A", "B", "C", "N"], ["A", "B", "C", "N"]),  # categories of the scorer's own
        ([True, 0.25, "yes", "C"], [True, 0.25, "yes", "C"]),
    ],
)
def test_letters_are_numbers_where_a_scorer_gave_no_other_words(
    tmp_path: Path, values: list[Any], read_as: list[Any]
) -> None:
    export = read(tmp_path, log(*(sample(n, match=score(value)) for n, value in enumerate(values))))
    assert [one.value for one in export.judgements] == read_as


@pytest.mark.parametrize(
    ("given", "value", "error"),
    [
        (score("I", reason="invalid_response_format"), 0.0, None),  # the system's fault: the verdict stands
        (score("I", reason="refusal"), 0.0, None),
        (score("I", reason="scoring_failed"), None, "scoring_failed: because"),
        (score(None, reason="no_response"), None, "no_response: because"),
        (score(None, metadata={"unscored_reason": "grader_failed"}), None, "grader_failed: because"),
        (score(None, explanation=None), None, "the scorer gave no value (NaN)"),
    ],
)
def test_a_reason_is_the_systems_fault_or_the_judges(
    tmp_path: Path, given: dict[str, Any], value: Any, error: str | None
) -> None:
    (judged,) = read(tmp_path, log(sample(1, match=given))).judgements
    assert (judged.value, judged.error) == (value, error)


@pytest.mark.parametrize(
    ("scorer", "options", "roles", "judge"),
    [
        ("match", {}, {"grader": {"model": "big"}}, "match"),
        ("mine", {"model": "big"}, None, "mine@big"),
        ("mine", {"model": {"model": "big"}}, None, "mine@big"),
        ("model_graded_qa", {"model": ["a", "b"]}, None, "model_graded_qa@a+b"),
        ("model_graded_qa", {}, {"grader": {"model": "big"}}, "model_graded_qa@big"),
        ("model_graded_qa", {}, None, "model_graded_qa@small"),
    ],
)
def test_a_judge_is_named_with_the_model_that_the_log_tells(
    tmp_path: Path, scorer: str, options: Any, roles: Any, judge: str
) -> None:
    run = {"scorers": [{"name": scorer, "options": options}], "model_roles": roles}
    export = read(tmp_path, log(sample(1, **{scorer: score("C")}), **run))
    assert [one.by for one in export.judgements] == [judge]


def test_an_older_log_tells_the_model_beside_the_results_and_has_no_completion(tmp_path: Path) -> None:
    value = log(sample(1, mine=score("C")))
    del value["eval"]["scorers"], value["samples"][0]["output"]["completion"]
    value["results"] = {"scores": [{"name": "mine", "scorer": "mine", "params": {"model": "big"}}]}
    export = read(tmp_path, value)
    assert [one.by for one in export.judgements] == ["mine@big"] and export.items["1"].answer == "Yes."


def test_failed_and_invalid_samples_are_skipped_by_name(tmp_path: Path) -> None:
    failed = {**sample(1, answer="", match=score("I")), "error": {"message": "out of time"}}
    late = {**sample(2, match=score("C")), "error": {"message": "out of time"}}
    invalid = {**sample(3, match=score("C")), "invalidation": {"author": "Bo"}}
    export = read(tmp_path, log(failed, late, invalid))
    assert list(export.items) == ["2"] and len(export.judgements) == 1
    assert export.skipped == {
        "a sample that ended in an error and has no answer": 1, "a score of a sample that ended in an error": 1,
        "a sample that was declared invalid": 1, "a score of a sample that was declared invalid": 1,
    }  # fmt: skip


def test_two_logs_of_one_task_are_two_systems(tmp_path: Path) -> None:
    files = [
        written(
            tmp_path / f"{model}.json", log(sample(1, answer=f"By {model}.", match=score("C")), model=model)
        )
        for model in ("small", "big")
    ]
    export = read_export(files, "inspect")
    assert sorted(item.system or "" for item in export.items.values()) == ["big", "small"]
    assert all(name.startswith("1:") for name in export.items)


def test_a_member_that_was_written_again_counts_as_it_is_last(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "w") as out:
        out.writestr("header.json", json.dumps({"eval": RUN}))
        out.writestr("samples/1_epoch_1.json", json.dumps(sample(1, match=score("I"))))
        out.writestr("samples/1_epoch_1.json", json.dumps(sample(1, match=score("C"))))
    export = read_export([path], "inspect")
    assert [one.value for one in export.judgements] == [1.0] and export.n_records == 2


def test_an_archive_of_a_run_that_was_cut_off_is_read_by_its_journal(tmp_path: Path) -> None:
    members = {"_journal/start.json": {"eval": RUN}, "samples/1_epoch_1.json": sample(1, match=score("C"))}
    path = archive(tmp_path / "log.eval", members, zipfile.ZIP_STORED)
    assert formats()["inspect"].holds([path]) and len(read_export([path], "inspect").judgements) == 1


def test_a_member_in_several_frames_is_read_whole(tmp_path: Path) -> None:
    """Inspect cuts a large member into frames of Zstandard."""
    data = json.dumps({"eval": RUN, "note": "a" * 1000}).encode()
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


# --- hostile archives


def test_names_in_an_archive_are_never_paths(tmp_path: Path) -> None:
    members = {
        "header.json": {"eval": RUN},
        "samples/../../../evil_epoch_1.json": sample(1, match=score("C")),
        "../outside.json": {"a": 1},
        "/etc/outside.json": {"a": 1},
    }
    folder = tmp_path / "in"
    folder.mkdir()
    export = read_export([archive(folder / "log.eval", members)], "inspect")
    assert len(export.items) == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "log.eval"]


@pytest.mark.parametrize(
    ("limit", "said"), [("LARGEST", "holds 3,000,002 bytes"), ("LARGEST_SUM", "hold over")]
)
def test_an_archive_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    members = {"header.json": {"eval": RUN}, "samples/1_epoch_1.json": json.dumps("a" * 3_000_000)}
    path = archive(tmp_path / "log.eval", members)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(zip_members, limit, 1_000_000)
    with pytest.raises(InputError, match=said):
        read_export([path], "inspect")


@pytest.mark.parametrize("file", ["deflated", "zstandard"])
def test_a_member_that_is_longer_than_it_says_is_refused(tmp_path: Path, file: str) -> None:
    """The size that the archive tells is a lie: no more than that is unpacked."""
    path = tmp_path / "log.eval"
    if file == "zstandard":
        path.write_bytes((REAL / "log.eval").read_bytes())
    else:
        archive(path, {"header.json": {"eval": {**RUN, "note": "a" * 10_000}}})
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
    path = archive(tmp_path / "log.eval", {"header.json": {"eval": RUN}})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="encrypted"):
        read_export([path], "inspect")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="is no zip archive"),
        open_archive(written(tmp_path / "a.eval", "no")),
    ):
        pass
    with pytest.raises(InputError, match="there is no such file"), open_archive(tmp_path / "missing.eval"):
        pass


def test_a_log_with_any_value_spoilt_never_ends_in_a_traceback(tmp_path: Path) -> None:
    edits = [score("I"), {"value": "C", "provenance": {"author": "Bo", "reason": "it is right"}}]
    one = sample(1, match=score("C", history=edits), two=score({"form": 1, "tone": 0.5}))
    one["input"] = [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]
    one |= {"choices": ["a", "b"], "attachments": {"f00": "long"}, "metadata": {"a": 1}, "error": None}
    whole = log(one, model_roles={"grader": {"model": "big"}})
    assert read_spoilt(tmp_path, "inspect", {"log.json": whole}) > 100
