"""The journal: what it holds after writes, tears, kills and two writers at once."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.log import Journal, read_journal
from judgecal.errors import BusyError, JudgecalError
from judgecal.records import ErrorKind, Failure, Judgement, Key


def row(
    item: str = "i1", *, verdict: float | None = 85.0, kind: ErrorKind | None = None, **more: Any
) -> Judgement:
    error = Failure(kind, "why") if kind else None
    return Judgement(item, "sha", "j@m", "print", 0, None if kind else verdict, error=error, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "experiment" / "judgements.jsonl"


def write(path: Path, *rows: Judgement) -> None:
    with Journal(path) as journal:
        for one in rows:
            journal.append(one)


def test_rows_come_back_as_they_went_in(path: Path) -> None:
    rows = [row("i1", reasoning="é\n\u2028"), row("i2", kind="parse", raw_reply="?"), row("i3", cost_usd=0.5)]
    write(path, *rows)
    assert list(read_journal(path)) == rows
    assert path.read_bytes().count(b"\n") == 3


def test_the_last_line_of_a_key_wins(path: Path) -> None:
    write(path, row(kind="timeout"), row(verdict=70.0))
    write(path, row(verdict=60.0))
    with Journal(path) as journal:
        assert journal.latest[row().key].verdict == 60.0
        assert len(journal.latest) == 1


WIRE = ("transport", "rate_limit", "server", "timeout", "budget")
REPLY = ("parse", "out_of_range", "refused", "context_length")


@pytest.mark.parametrize("retry_unscored", [False, True])
@pytest.mark.parametrize("kind", [None, *WIRE, *REPLY])
def test_what_is_settled_is_not_called_again(
    path: Path, kind: ErrorKind | None, retry_unscored: bool
) -> None:
    write(path, row(kind=kind))
    with Journal(path) as journal:
        settled = journal.settled(row().key, retry_unscored=retry_unscored) is not None
    # a verdict always; a failed wire never; a reply without a verdict unless it was asked for
    assert settled == (kind is None or (kind in REPLY and not retry_unscored))


def test_a_changed_text_fingerprint_or_repeat_is_another_key(path: Path) -> None:
    write(path, row())
    with Journal(path) as journal:
        for other in (("i1", "new", "print", 0), ("i1", "sha", "new", 0), ("i1", "sha", "print", 1)):
            assert journal.settled(other, retry_unscored=False) is None


@pytest.mark.parametrize("torn", [b"{", b'{"item_id": "i2", "verd', b"\xc3", b"\x00" * 9])
def test_a_torn_last_line_is_cut_and_counted(path: Path, torn: bytes) -> None:
    write(path, row())
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    with Journal(path) as journal:
        assert journal.mended == len(torn)
        assert list(journal.latest) == [row().key]
        journal.append(row("i2"))
    assert [kept.item_id for kept in read_journal(path)] == ["i1", "i2"]


def test_a_torn_line_longer_than_the_window_is_found(path: Path) -> None:
    write(path, row())
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * (3 << 20))
    with Journal(path) as journal:
        assert journal.mended == 3 << 20
    assert path.read_bytes() == whole


def test_a_reader_leaves_a_torn_line_alone(path: Path) -> None:
    write(path, row())
    path.write_bytes(path.read_bytes() + b'{"it')
    assert len(list(read_journal(path))) == 1
    assert path.read_bytes().endswith(b'{"it')


_GOOD = row().as_json()
BROKEN = {
    "no JSON": b"{not json}",
    "no object": b"[1, 2]",
    "a text": b'"x"',
    "nothing": b"",
    "not UTF-8": b'{"item_id": "\xff"}',
    "a field missing": b'{"item_id": "i1"}',
    "a list for an id": json.dumps({**_GOOD, "item_id": ["i1"]}).encode(),
    "a text for a repeat": json.dumps({**_GOOD, "repeat": "0"}).encode(),
    "true for a verdict": json.dumps({**_GOOD, "verdict": True}).encode(),
    "no number": json.dumps({**_GOOD, "verdict": float("nan")}).encode(),
    "a number beyond all": json.dumps(_GOOD).replace("85.0", "1e400").encode(),
    "a number of 400 digits": json.dumps({**_GOOD, "prompt_tokens": 10**400}).encode(),
    "a list for tokens": json.dumps({**_GOOD, "prompt_tokens": [1]}).encode(),
    "a number for a text": json.dumps({**_GOOD, "reasoning": 5}).encode(),
    "a number for a unit": json.dumps({**_GOOD, "unit": 5}).encode(),
    "null for attempts": json.dumps({**_GOOD, "attempts": None}).encode(),
    "a list without end": b"[" * 100_000,
    "NUL bytes": b"\0" * 64,
    "a byte order mark": b"\xef\xbb\xbf" + json.dumps(_GOOD).encode(),
    "an unknown error": json.dumps({**_GOOD, "error": {"kind": "boom", "message": ""}}).encode(),
    "a text for an error": json.dumps({**_GOOD, "error": "boom"}).encode(),
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_line_in_the_middle_is_named_once_and_not_there(
    path: Path, line: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    write(path, row("i1"), row("i2"))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + b"\n" + second)
    damaged = path.read_bytes()
    for _ in range(2):
        with Journal(path) as journal:
            assert sorted(key.item_id for key in journal.latest) == ["i1", "i2"]
    assert [one.item_id for one in read_journal(path)] == ["i1", "i2"]
    assert capsys.readouterr().err.count(f"{path}:2: no judgement can be read from this line") == 1
    assert path.read_bytes() == damaged
    with Journal(path) as journal:
        journal.append(row("i3"))
        assert sorted(key.item_id for key in journal.latest) == ["i1", "i2", "i3"]


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "\U0001f642", "line\nbreak\r", "\u2028"])
def test_any_text_survives_the_file(path: Path, text: str) -> None:
    kept = row("i1", kind="parse", raw_reply=text, reasoning=text)
    write(path, kept)
    assert list(read_journal(path)) == [kept]


def test_a_second_process_is_told_to_wait(path: Path) -> None:
    holder = _python(
        "from judgecal.engine.log import Journal\n"
        "with Journal(Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n",
        path,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match="another judgecal process"):
            Journal(path)
    finally:
        holder.communicate(timeout=10)
    write(path, row())  # and free again once the holder has ended


def test_a_kill_at_any_moment_leaves_whole_lines(path: Path) -> None:
    writer = _python(
        "from judgecal.engine.log import Journal\n"
        "from judgecal.records import Judgement\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for k in range(10**9):\n"
        "    journal.append(Judgement(f'i{k}', 's', 'j@m', 'f', 0, 1.0, reasoning='x' * 500))\n"
        "    print(k, flush=True)\n",
        path,
    )
    assert writer.stdout is not None
    for _ in range(200):
        said = int(writer.stdout.readline())
    writer.kill()
    rest = writer.stdout.read().split("\n")
    writer.communicate(timeout=10)
    said = max([said, *(int(word) for word in rest[:-1])])
    with Journal(path) as journal:  # neither the lock nor the lines are lost
        assert len(journal.latest) in (said + 1, said + 2)
        assert Key(f"i{said}", "s", "f", 0) in journal.latest


def _python(code: str, path: Path) -> subprocess.Popen[str]:
    head = "import sys\nfrom pathlib import Path\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_without_a_path_rows_stay_in_memory(tmp_path: Path) -> None:
    with Journal(None) as journal:
        journal.append(row())
        assert journal.settled(row().key, retry_unscored=False) == row()
    assert list(tmp_path.iterdir()) == []


def test_a_closed_journal_writes_into_no_other_file(path: Path) -> None:
    with Journal(path) as journal:
        pass
    with pytest.raises(ValueError, match="closed"):
        journal.append(row())


# --- a disk that is full ------------------------------------------------------------------------------------


class FullDisk:
    """`os.write` on a disk with room for so many bytes: it takes a part, and then says that there is no
    room."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._write = os.write

    def __call__(self, file: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(file, data[: self.room])
        self.room -= written
        return written


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_full_disk_leaves_whole_lines_and_one_message(
    path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    write(path, row("i0"))
    size = path.stat().st_size
    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", FullDisk(size + int(share * size)))
        journal.append(row("i1"))
        with pytest.raises(OSError, match="journal takes no more rows: No space left") as caught:
            journal.append(row("i2"))
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
        assert path.stat().st_size == 2 * size
        monkeypatch.undo()  # room again
        journal.append(row("i3"))
    with Journal(path) as journal:
        assert journal.mended == 0
        assert [key[0] for key in journal.latest] == ["i0", "i1", "i3"]


def test_a_line_is_one_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = []
    real = os.write
    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", lambda file, data: writes.append(data) or real(file, data))
        journal.append(row(reasoning="x" * 1_000_000))
    assert [data.count(b"\n") for data in writes] == [1]


# --- the line -----------------------------------------------------------------------------------------------


def test_a_look_reads_when_it_is_asked_and_writes_nothing(path: Path) -> None:
    write(path, row())
    before = path.read_bytes()
    looked = Journal.looked_at(path)
    path.write_bytes(before + b'{"torn')
    assert looked.settled(row().key, retry_unscored=False) == row()
    looked.append(row("i2"))
    assert path.read_bytes() == before + b'{"torn'
    assert Journal.looked_at(path.with_name("none.jsonl")).latest == {}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows deletes no open file")
@pytest.mark.parametrize("again", [False, True])
def test_a_journal_that_was_deleted_takes_no_row(path: Path, again: bool) -> None:
    with Journal(path) as journal:
        journal.append(row("i1"))
        shutil.rmtree(path.parent)
        if again:
            write(path, row("other"))
        with pytest.raises(JudgecalError, match=r"was deleted or replaced while this ran.* gone with it"):
            journal.append(row("i2"))
    assert not again or [one.item_id for one in read_journal(path)] == ["other"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_a_journal_is_the_user_s_alone_to_read(path: Path) -> None:
    write(path, row("i1"))
    assert path.stat().st_mode & 0o777 == 0o600


def test_rows_of_one_append_are_read_back(path: Path) -> None:
    rows = [row("a"), row("b", kind="parse", reasoning="é" * 300), row("a", verdict=5.0), row("c")]
    with Journal(path) as journal:
        journal.append(*rows[:3])
        journal.append(rows[3])
        assert dict(journal.latest) == {one.key: one for one in rows}
    with Journal(path) as journal:
        assert dict(journal.latest) == {one.key: one for one in rows}
