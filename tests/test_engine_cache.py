"""The store of replies: its key, its bound, and a file that cannot be used."""

from __future__ import annotations

import sqlite3
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from judgecal.engine.cache import ReplyCache, cache_folder, cache_key, open_cache
from judgecal.engine.calls import Reply
from judgecal.errors import InputError
from judgecal.models import ModelSpec

SPEC = ModelSpec("a", "openai/x", temperature=0.0, max_tokens=10)
MESSAGES = [{"role": "user", "content": "hello"}]


def stored(cache: ReplyCache, key: str) -> Reply | None:
    found = cache.get(key)
    return found and found[0]


def test_a_reply_comes_back_whole_also_in_another_process(tmp_path: Path) -> None:
    reply = Reply("85 \ud800\x00", "x-2026", prompt_tokens=3, completion_tokens=None, stopped="length")
    with ReplyCache(tmp_path / "new" / "folder") as cache:
        assert cache.get("k") is None
        cache.put("k", Reply("old", "x"))
        cache.put("k", reply)
    with ReplyCache(tmp_path / "new" / "folder") as cache:
        assert stored(cache, "k") == reply


def test_the_key_holds_what_is_sent_and_where() -> None:
    key = cache_key(SPEC, MESSAGES, 0)
    others = [
        cache_key(replace(SPEC, id="openai/y"), MESSAGES, 0),
        cache_key(replace(SPEC, api_base="http://127.0.0.1:1/v1"), MESSAGES, 0),
        cache_key(replace(SPEC, temperature=0.1), MESSAGES, 0),
        cache_key(replace(SPEC, max_tokens=11), MESSAGES, 0),
        cache_key(SPEC, [{"role": "user", "content": "hello "}], 0),
        cache_key(SPEC, MESSAGES, 1),
    ]
    assert len({key, *others}) == 7
    same = [replace(SPEC, alias="b"), replace(SPEC, timeout=1.0), replace(SPEC, input_usd_per_1m=1.0)]
    assert {cache_key(spec, MESSAGES, 0) for spec in same} == {key}


def test_a_file_beyond_the_bound_loses_its_older_half(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as cache:
        for number in range(10):
            cache.put(f"k{number}", Reply("x" * 10_000, "m"))
        cache.flush(now=True)
        cache._db.execute("UPDATE replies SET at = CAST(substr(key, 2) AS REAL)")
    with ReplyCache(tmp_path, max_bytes=50_000) as cache:
        kept = [number for number in range(10) if cache.get(f"k{number}")]
    assert kept == [6, 7, 8, 9]  # the row in the middle goes with the older ones
    assert cache.path.stat().st_size < 100_000


def test_a_reply_is_served_with_the_time_of_its_storing(tmp_path: Path) -> None:
    before = time.time()
    with ReplyCache(tmp_path) as cache:
        cache.put("k", Reply("85", "m"))
    with ReplyCache(tmp_path) as cache:
        found = cache.get("k")
        assert found is not None
        assert before <= found[1] <= time.time()


def test_without_use_replies_are_added_and_a_store_that_cannot_be_opened_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGECAL_CACHE_DIR", str(tmp_path))
    with open_cache(use=False) as cache:
        assert cache is not None
        cache.put("k", Reply("85", "m"))
        assert cache.get("k") is None
    with open_cache() as cache:
        assert cache is not None
        assert stored(cache, "k") == Reply("85", "m")
    (tmp_path / "replies.sqlite").write_bytes(b"not a database " * 100)
    with open_cache(use=False) as cache:
        assert cache is None
    with pytest.raises(InputError, match="--no-cache"):
        open_cache()


@pytest.mark.parametrize(
    "text",
    [
        '{"text": 1',
        "[]",
        "null",
        "{}",
        '{"text": 1, "model_id": "m"}',
        '{"text": "x", "model_id": null}',
        '{"text": "x", "model_id": "m", "prompt_tokens": "9"}',
        '{"text": "x", "model_id": "m", "prompt_tokens": 1e400}',
        '{"text": "x", "model_id": "m", "latency_s": NaN}',
        '{"text": "x", "model_id": "m", "prompt_tokens": 1' + "0" * 400 + "}",
        "[" * 100_000,
        b"\x00\xff",
        7,
    ],
)
def test_a_damaged_row_is_named_and_not_there(
    tmp_path: Path, text: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with ReplyCache(tmp_path) as cache:
        cache._db.execute("INSERT INTO replies VALUES ('k', ?, 0)", (text,))
        assert cache.get("k") is None
        assert "replies.sqlite: no stored reply k can be read" in capsys.readouterr().err
        cache.put("k", Reply("anew", "m"))
        assert stored(cache, "k") == Reply("anew", "m")


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_replies_are_the_user_s_alone_to_read(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with ReplyCache(folder) as cache:
        cache.put("k", Reply("x", "m"))
        cache.flush(now=True)
        modes = {path.name: path.stat().st_mode & 0o777 for path in [folder, *folder.iterdir()]}
    assert modes.pop("cache") == 0o700
    assert "replies.sqlite" in modes and set(modes.values()) == {0o600}, modes


def test_a_store_that_takes_no_more_costs_no_judgement(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as cache:
        cache._db.execute("PRAGMA query_only = ON")
        with pytest.raises(sqlite3.Error):
            cache._db.execute("DELETE FROM replies")
        cache.put("k", Reply("85", "m"))
        assert cache.get("k") is None


def test_the_folder_is_the_one_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUDGECAL_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("JUDGECAL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "judgecal"


def _stored(folder: Path) -> int:
    with sqlite3.connect(folder / "replies.sqlite") as db:
        return int(db.execute("SELECT COUNT(*) FROM replies").fetchone()[0])


def test_replies_go_to_the_file_together_and_at_the_end(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as cache:
        for number in range(6):
            cache.put(f"k{number}", Reply(str(number), "m"))
        assert _stored(tmp_path) == 0
        assert stored(cache, "k5") == Reply("5", "m")  # also what is not there yet
        cache.put("k6", Reply("6", "m"))
    assert _stored(tmp_path) == 7


def test_no_lock_is_held_between_batches(tmp_path: Path) -> None:
    with ReplyCache(tmp_path) as one, ReplyCache(tmp_path) as other:
        one.put("a", Reply("1", "m"))
        other.put("b", Reply("2", "m"))
        other.flush(now=True)
        one.flush(now=True)
        assert (stored(one, "b"), stored(other, "a")) == (Reply("2", "m"), Reply("1", "m"))
