"""Files of the web: each way in which a transfer can go wrong is one message, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.tables.download import Known, Limits, fetch_file
from tests.support.http import Answer
from tests.support.raw_host import RawHost, moved, raw_host, sent

DATA = b"question,label\n" + b"why?,yes\n" * 500
SHA = hashlib.sha256(DATA).hexdigest()
FAST = Limits(max_bytes=1 << 20, read_s=0.3, total_s=0.6)


@pytest.fixture(scope="module")
def shared_host() -> Iterator[RawHost]:
    with raw_host() as host:
        yield host


@pytest.fixture
def host(shared_host: RawHost) -> RawHost:
    shared_host.files.clear()
    shared_host.asked.clear()
    return shared_host


def test_a_file_is_fetched_once_and_its_sha256_stands_beside_it(host: RawHost, tmp_path: Path) -> None:
    url, path = host.put("/a.csv", DATA), tmp_path / "set" / "a.csv"
    first = fetch_file(url, path, known=Known(SHA, "says a test", ""))
    again = fetch_file(url, path)
    assert (first.sha256, first.n_bytes, path.read_bytes()) == (SHA, len(DATA), DATA)
    assert again == first and host.asked == ["/a.csv"]
    assert sorted(one.name for one in path.parent.iterdir()) == ["a.csv", "a.csv.json"]


def test_a_stored_file_that_somebody_changed_is_fetched_again(host: RawHost, tmp_path: Path) -> None:
    url, path = host.put("/a.csv", DATA), tmp_path / "a.csv"
    fetch_file(url, path)
    path.write_bytes(DATA[:-9])
    assert fetch_file(url, path).sha256 == SHA and path.read_bytes() == DATA and len(host.asked) == 2


def test_a_file_of_another_address_is_not_taken_for_this_one(host: RawHost, tmp_path: Path) -> None:
    fetch_file(host.put("/a.csv", DATA), tmp_path / "a.csv")
    assert fetch_file(host.put("/b.csv", b"x"), tmp_path / "a.csv").n_bytes == 1


def test_a_file_without_a_stated_length_is_taken_too(host: RawHost, tmp_path: Path) -> None:
    assert fetch_file(host.put("/a", sent(DATA, chunked=True)), tmp_path / "a").sha256 == SHA


def test_a_long_transfer_says_how_much_has_come(
    host: RawHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("judgecal.tables.download._NOTICED_S", 0.0)
    fetch_file(host.put("/a.csv", b"x" * (3 << 19)), tmp_path / "a.csv")
    assert "judgecal: 1 MB of 1 MB\n" in capsys.readouterr().err


def test_redirects_are_followed(host: RawHost, tmp_path: Path) -> None:
    host.put("/b", moved("/c", 307))
    host.put("/c", DATA)
    found = fetch_file(host.put("/a", moved(f"{host.root}/b")), tmp_path / "a")
    assert found.sha256 == SHA and found.url.endswith("/a") and host.asked == ["/a", "/b", "/c"]


def refused(url: str, path: Path, *, known: Known | None = None, again: bool = False) -> str:
    """The one message; nothing that was not there before is there after."""
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    with pytest.raises(InputError) as stop:
        fetch_file(url, path, known=known, again=again, limits=FAST)
    assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before
    assert len(stop.value.problems) == 1
    return str(stop.value)


LARGE = sent(b"x" * 3000, headers={"content-encoding": "gzip"})


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (sent(b"no", 404), "there is no such file (404)"),
        (sent(b"no", 403), "gated or private"),
        (sent(b"no", 401), "gated or private"),
        (sent(b"no", 429), "cannot answer now (429)"),
        (sent(b"no", 503), "cannot answer now (503)"),
        (sent(b"no", 418), "answered 418"),
        (sent(b"\n <!DOCTYPE html><p>Log in"), "sent an HTML page"),
        (sent(b"<html><body>Moved"), "sent an HTML page"),
        (sent(b""), "sent an empty file"),
        (sent(DATA, cut=1000), f"broke off: {len(DATA):,} bytes were announced, {len(DATA) - 1000:,} came"),
        (sent(DATA, chunked=True, cut=1000), "the connection broke off (IncompleteRead)"),
        (sent(b"x" * ((1 << 20) + 1)), "has 1,048,577 bytes, and we fetch at most 1,048,576"),
        (sent(b"x" * ((1 << 20) + 1), chunked=True), "has more than 1,048,576 bytes"),
        (sent(DATA, headers={"content-encoding": "gzip"}), "the server sent gzip, which we did not ask for"),
        (sent(DATA, drip_s=0.5), "sent nothing for 0.3 s"),
        (sent(DATA * 3, drip_s=0.1), "took longer than 0.6 s"),
        (sent(status=302), "redirects (302) without an address"),
        (moved("/a"), "redirects in a circle"),
        (moved("ftp://127.0.0.1/a"), "another scheme: we do not follow it"),
        (moved("https://example.invalid/a"), "another scheme: we do not follow it"),
        (moved("file:///etc/hostname"), "another scheme: we do not follow it"),
        (moved("http://example.invalid/a"), "must begin with https:// (redirected from"),
        (moved("http://u:p@127.0.0.1/a"), "holds a user or a password"),
        (moved("http://127.0.0.1:99999/a"), "is not an address"),
    ],
)
def test_what_a_server_may_do(host: RawHost, tmp_path: Path, answer: Answer, says: str) -> None:
    assert says in refused(host.put("/a", answer), tmp_path / "a")


def test_redirects_end(host: RawHost, tmp_path: Path) -> None:
    for n in range(9):
        host.put(f"/{n}", moved(f"/{n + 1}"))
    assert "redirects more than 5 times" in refused(f"{host.root}/0", tmp_path / "a") and len(host.asked) == 6


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://example.com/a", "must begin with https://"),
        ("file:///etc/passwd", "is not an address"),
        ("/etc/passwd", "is not an address"),
        ("https://u:secret@example.com/a", "https://example.com/a: holds a user"),
        ("https://example.com/a b", "is not an address"),
        ("https://example.com/a\x1b[2J", "is not an address"),
        ("https://127.0.0.1:1/a", "cannot be reached"),
    ],
)
def test_addresses(tmp_path: Path, url: str, says: str) -> None:
    message = refused(url, tmp_path / "a")
    assert says in message and "secret" not in message


def test_what_must_be_another_file_is_refused(host: RawHost, tmp_path: Path) -> None:
    url = host.put("/a", DATA)
    known = Known("0" * 64, "says a test", "do this")
    message = refused(url, tmp_path / "a", known=known)
    assert f"must be {'0' * 64}, says a test, found {SHA} in the file at its source" in message
    fetch_file(url, tmp_path / "a")
    message = refused(url, tmp_path / "a", known=known)
    assert "in the file stored at" in message and message.endswith(": do this")


def test_a_changed_file_is_told_and_the_old_one_stays(host: RawHost, tmp_path: Path) -> None:
    url = host.put("/a", DATA, DATA + b"more\n")
    fetch_file(url, tmp_path / "a")
    message = refused(url, tmp_path / "a", again=True)
    assert (
        "the file has changed since" in message and SHA in message and (tmp_path / "a").read_bytes() == DATA
    )


def test_a_killed_process_leaves_no_half_file(host: RawHost, tmp_path: Path) -> None:
    url, path = host.put("/a", sent(DATA, drip_s=0.3), DATA), tmp_path / "a"
    call = f"fetch_file({url!r}, Path({str(path)!r}))"
    code = f"from pathlib import Path; from judgecal.tables.download import fetch_file; {call}"
    process = subprocess.Popen([sys.executable, "-c", code])
    while not host.asked:
        time.sleep(0.02)
    time.sleep(0.5)
    process.kill()
    process.wait()
    (draft,) = tmp_path.iterdir()
    assert not path.exists() and draft.stat().st_size < len(DATA)
    os.utime(draft, (0, 0))
    assert fetch_file(url, path).sha256 == SHA
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "a.json"], (
        "what was left of the first is gone"
    )


def test_what_broke_off_is_had_by_running_it_again(host: RawHost, tmp_path: Path) -> None:
    url = host.put("/a", sent(DATA, cut=100), DATA)
    refused(url, tmp_path / "a")
    assert fetch_file(url, tmp_path / "a").sha256 == SHA
