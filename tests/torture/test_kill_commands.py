"""`kill -9` at random moments of judge, gate, select and optimize, and of the dspy and litellm transports.

The same command goes on: nothing is lost, and nothing is paid twice but the calls that were in flight.
"""

from __future__ import annotations

import csv
import json
import random
import re
import signal
import time
from dataclasses import dataclass

import pytest

from tests.benchmarks.stub import Answer, Served, completion, http, running
from tests.support.instructed import PHRASE, instructed
from tests.torture.conftest import LEVEL
from tests.torture.world import SET, World, item_of

ITEMS, AT_ONCE = 120, 8
KILLS = 6 if LEVEL == "full" else 1
LOCK = ["--lock", "judge.lock.json"]
_GRADE = re.compile(rb"grade-(\d+)")


@dataclass
class Judge:
    """A served judge that reads the grade off the answer under test, after a while."""

    rng: random.Random

    def __call__(self, _head: bytes, body: bytes) -> Answer:
        grade = (_GRADE.findall(body) or [b"50"])[-1].decode()
        text = f"[[ ## correctness_reasoning ## ]]\nok\n\n[[ ## correctness_percentage ## ]]\n{grade}\n\n"
        return Answer(http(completion(f"{text}[[ ## completed ## ]]")).data, self.rng.uniform(0.002, 0.03))


@dataclass
class Instructed:
    """As `Judge`, wrong on every third answer until its instructions hold the phrase that its writer gives."""

    rng: random.Random

    def __call__(self, _head: bytes, body: bytes) -> Answer:
        reply = instructed(PHRASE, "correctness_percentage", self.judged)(json.loads(body))
        return Answer(http(completion(reply)).data, self.rng.uniform(0.002, 0.03))

    @staticmethod
    def judged(before: str, asked: str, _steady: bool) -> str:
        grade = int(_GRADE.findall(asked.encode())[-1])
        item = int(item_of(asked.encode()))
        right = PHRASE in before or item % 4 != 0
        return json.dumps(
            {"correctness_reasoning": "ok", "correctness_percentage": grade if right else 100 - grade}
        )


def graded(world: World) -> None:
    """A set whose people and whose judge agree, and a table of production answers."""
    world.make(ITEMS)
    grades = [(0, 50, 100)[number % 3] for number in range(ITEMS)]
    items = [
        {"item_id": f"i{number}", "question": f"What is item-{number}?", "answer": f"It is grade-{grade}."}
        for number, grade in enumerate(grades)
    ]
    world.write_items(items)
    rows = [
        {"item_id": f"i{n}", "rater": who, "label": grade}
        for n, grade in enumerate(grades)
        for who in ("a", "b")
    ]
    ratings = world.root / "gold" / SET / "ratings.jsonl"
    ratings.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with (world.root / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["q", "a", "r"])
        table.writerows(
            (f"Why item-{n}?", f"It is grade-{grade}.", "Seven.") for n, grade in enumerate(grades)
        )


def prepared(world: World) -> None:
    """What the other commands start from: a scored experiment and a lock."""
    world.env["JUDGECAL_CACHE_DIR"] = str(world.folder / "cache-prepared")
    for argv in (world.score("--no-cache"), ["select", "run", "--name", "lock", "-o", "judge.lock.json"]):
        ended = world.run(argv)
        assert ended.code == 0, ended


TABLE = ("rows.csv", "-o", "out.csv", "--col", "question=q", "--col", "answer=a", "--col", "reference=r")
COMMANDS = {
    "judge": ["judge", *TABLE, *LOCK],
    "gate": ["gate", *LOCK],
    "select": ["select", "run", "-o", "again.lock.json", "--replace"],
    "optimize": ["optimize", "--gold", SET, "--model", "mine", "--optimizer", "labeled"],
}


def killed_and_resumed(world: World, stub: Served, rng: random.Random, argv: list[str], whole: int) -> None:
    """Kill a command at a random call of its `whole` many, run it again, and hold what was paid against
    that."""
    stub.reset()
    run = world.start(argv)
    after, until = rng.randrange(1, whole + 1), time.monotonic() + 60.0
    while stub.calls < after and time.monotonic() < until:
        time.sleep(0.0005)
    time.sleep(rng.uniform(0.0, 0.03))
    run.kill(signal.SIGKILL)
    run.wait()
    time.sleep(0.05)
    again = world.run(argv)
    assert (again.code, "Traceback" in again.err) == (0, False), again
    assert stub.calls <= whole + AT_ONCE, (
        f"{stub.calls - whole} calls were paid twice, after a kill at call {after}"
    )
    assert not run.left_over(), "processes outlive the one that was killed"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_command_goes_on(world: World, name: str) -> None:
    rng = random.Random(name)
    graded(world)
    with running(Judge(rng)) as stub:
        world.alias(stub.api_base, max_concurrency=AT_ONCE)
        prepared(world)

        def fresh(run: str) -> list[str]:
            world.env["JUDGECAL_CACHE_DIR"] = str(world.folder / f"cache-{run}")
            return [word.replace("out.csv", f"{run}.csv") for word in COMMANDS[name]] + ["--name", run]

        stub.reset()
        ended = world.run(fresh("whole"))
        assert ended.code == 0, ended
        whole = stub.calls
        assert whole >= 30
        for number in range(KILLS):
            killed_and_resumed(world, stub, rng, fresh(f"cut{number}"), whole)


def test_auto_goes_on_in_its_instructions_and_on_dev(world: World) -> None:
    """A kill in GEPA, in the race, or on test: the same judge is taken, and no call of the log stands twice."""
    rng = random.Random("auto")
    graded(world)
    with running(Instructed(rng)) as stub:
        world.alias(stub.api_base, max_concurrency=AT_ONCE)

        def fresh(run: str) -> list[str]:
            world.env["JUDGECAL_CACHE_DIR"] = str(world.folder / f"cache-{run}")
            return ["optimize", "--gold", SET, "--model", "mine", "--name", run]

        def taken(run: str) -> list[object]:
            folder = world.experiments / run
            result = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
            lines = (folder / "optimizer_calls.jsonl").read_text(encoding="utf-8").splitlines()
            keys = [call["key"] for call in map(json.loads, lines) if not call["error"]]
            assert len(keys) == len(set(keys)) > 30
            return [result[name] for name in ("chosen", "decision", "prompts")]

        ended = world.run(fresh("whole"))
        assert ended.code == 0, ended
        whole = stub.calls
        assert PHRASE in (world.experiments / "whole" / "program.json").read_text(encoding="utf-8")
        for number in range(2 * KILLS):
            killed_and_resumed(world, stub, rng, fresh(f"cut{number}"), whole)
            assert taken(f"cut{number}") == taken("whole")
