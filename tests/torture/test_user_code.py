"""Functions of a user's that raise and return what they should not: rows with an error, one end, and nobody
waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.hostile_code import CLASSES, WHATS
from tests.torture.world import SET, Ended, World

STUBBORN = """

async def stubborn(question):
    while True:
        try:
            await asyncio.sleep(0.01)
        except BaseException:
            pass
"""
_CONFIG = """
[questions]
gold = "{set}"
split = "all"
[judges]
local = ["token_f1@local"]
[[systems]]
name = "plain"
kind = "python"
function = "mine.py:plain"
[[systems]]
name = "waiting"
kind = "python"
function = "mine.py:waiting"
[[systems]]
name = "stubborn"
kind = "python"
function = "mine.py:stubborn"
timeout = 0.05
concurrency = 64
"""


def write(world: World) -> None:
    world.make(len(WHATS))
    world.write_items(
        [{"item_id": f"i{n}", "question": what} for n, what in enumerate([*WHATS, "trap", "large", "well"])]
    )
    own = (
        "def plain(question):\n    return act(question)\n\n\nasync def waiting(question):\n    return "
        "act(question)\n"
    )
    score = "def score(question: str) -> bool:\n    return question == 'well' or act(question)\n"
    (world.root / "mine.py").write_text(f"{CLASSES}\n\n{own}\n\n{score}{STUBBORN}")
    (world.root / "sweep.toml").write_text(_CONFIG.format(set=SET))


def sound(ended: Ended) -> None:
    assert ended.code == 4, (ended.code, ended.err[-2000:])
    assert (
        "Traceback" not in ended.err and "internal error" not in ended.err and "destroyed" not in ended.err
    ), ended.err
    assert ended.peak_mb < 700.0


@pytest.mark.parametrize("real", [False, True])
def test_a_judge_and_systems_of_hostile_code(world: World, real: bool) -> None:
    write(world)
    judged = world.run(
        ["score", "--judge", "mine.py:score@python", "--gold", SET, "--split", "all", "--json"], real=real
    )
    sound(judged)
    assert json.loads(judged.out)["judges"][0]["n"] == 1
    for _ in range(2):  # the second one takes the answers from the journal
        ended = world.run(["evaluate", "sweep.toml", "--name", "sweep", "--json"], real=real, timeout=60.0)
        sound(ended)
    answers = list(Path(world.experiments / "sweep").rglob("answers.jsonl"))
    assert sum(path.stat().st_size for path in answers) < 100_000
