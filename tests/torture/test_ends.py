"""Where there is no room, no server and no turn: one clear message, nothing lost, and the same command
resumes."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.stub import REPLY, Answer, completion, http, running
from tests.torture.conftest import LEVEL
from tests.torture.world import Ended, World

GOOD = http(completion(REPLY)).data
FULL = LEVEL == "full"


def clear(ended: Ended, *codes: int) -> str:
    """One message, and no innards; gives stderr."""
    assert ended.code in codes, ended
    assert "Traceback" not in ended.err, ended.err
    assert len(ended.err.strip().splitlines()) <= 4, ended.err
    return ended.err


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """A file system of its own, with so much room; skips where none may be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def fast(rng: random.Random) -> Answer:
    return Answer(GOOD, rng.uniform(0.0, 0.01))


@pytest.mark.parametrize("kilobytes", [16, 40, 64] if FULL else [40])
def test_a_full_disk(world: World, kilobytes: int) -> None:
    rng = random.Random(kilobytes)
    world.make(300)
    with running(lambda _head, _body: fast(rng)) as stub:
        world.alias(stub.api_base)
        with small_disk(world.experiments, kilobytes):
            err = clear(world.run(world.score("--no-cache")), 2)
            assert "No space left" in err
            called, kept = stub.calls, len(world.rows())
            assert called - kept <= 2 * 8, "more was lost than was in flight"
            moved = world.folder / "kept"
            shutil.copytree(world.experiments, moved)
        shutil.copytree(moved, world.experiments, dirs_exist_ok=True)
        ended = world.run(world.score("--no-cache"))
        assert ended.code == 0, ended.err
        world.check_whole()
        assert stub.calls == called + 300 - kept


def test_files_that_may_not_grow(world: World) -> None:
    """The same where nothing may be mounted: the system refuses to let a file grow."""
    rng = random.Random(1)
    world.make(300)
    with running(lambda _head, _body: fast(rng)) as stub:
        world.alias(stub.api_base)
        clear(world.run(world.score("--no-cache"), limit_bytes=60_000), 2)
        called, kept = stub.calls, len(world.rows())
        assert 0 < called - kept <= 2 * 8
        assert world.run(world.score("--no-cache")).code == 0
        world.check_whole()
        assert stub.calls == called + 300 - kept


@pytest.mark.parametrize("what", ["experiments", "run", "journal", "cache"])
def test_a_file_in_place_of_a_folder(world: World, what: str) -> None:
    world.make(20)
    places = {"experiments": world.experiments, "run": world.experiments / "run", "cache": world.cache}
    place = places.get(what, world.experiments / "run" / "judgements.jsonl")
    with running(lambda _head, _body: Answer(GOOD)) as stub:
        world.alias(stub.api_base)
        if what == "journal":
            assert world.run(world.score("--limit", "5")).code == 0
            place.rename(place.with_suffix(".away"))
            place.mkdir()
        else:
            shutil.rmtree(place, ignore_errors=True)
            place.write_text("in the way")
        called = stub.calls
        err = clear(world.run(world.score()), 2)
        assert place.name in err
        assert stub.calls == called, "called, and nowhere to keep it"
        place.rmdir() if what == "journal" else place.unlink()
        if what == "journal":
            place.with_suffix(".away").rename(place)
        assert world.run(world.score()).code == 0
        world.check_whole()


def test_a_server_that_is_not_there(world: World) -> None:
    world.make(200)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: a connection is refused
        world.alias(f"http://127.0.0.1:{held.getsockname()[1]}/v1", max_concurrency=16)
        ended = world.run(world.score(), timeout=300.0)
    err = clear(ended, 2, 4)
    assert err.strip(), "nothing is said"
    assert ended.seconds < 90.0
    assert all(row["error"]["kind"] == "transport" for row in world.rows())
    with running(lambda _head, _body: Answer(GOOD)) as stub:
        world.alias(stub.api_base)
        # Another address is another judge; the folder keeps its configuration, so the run has a folder of its
        # own.
        again = world.run([*world.score(), "--name", "again"])
        assert again.code == 0, again.err
        world.check_whole(slug="again")


def test_the_second_process_on_one_experiment_says_so(world: World) -> None:
    world.make(40)
    with running(lambda _head, _body: Answer(GOOD, 0.2)) as stub:
        world.alias(stub.api_base, max_concurrency=4)
        first = world.start(world.score(), real=True)
        until = time.monotonic() + 30
        while stub.calls < 4 and time.monotonic() < until:
            time.sleep(0.01)
        err = clear(world.run(world.score()), 2)
        assert "another" in err
        ended = first.wait()
        assert ended.code == 0, ended.err
        assert stub.calls == 40
        world.check_whole()
