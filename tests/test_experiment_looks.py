"""Looks at the test split: what is one look, which count together, and what becomes of a deleted log."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.experiment.looks import foresee_look, look_at_test, looks_so_far, verdicts_sha
from judgecal.goldset import GoldSet, load_gold
from judgecal.records import Item, Judgement
from tests.support.gold import made_gold, made_items, rated

PEOPLE = {"full": 1, "half": 0, "none": 0}


def gold_set(folder: Path, name: str, n_groups: int = 40, people: dict[str, int] | None = None) -> GoldSet:
    """Answers to questions of which near half are of test."""
    rows = made_items(n_groups)
    return load_gold(made_gold(folder / name, rows, rated(rows, people or PEOPLE), scale='kind = "binary"'))


@pytest.fixture
def gold(tmp_path: Path) -> GoldSet:
    return gold_set(tmp_path / "gold", "s")


def by_name(judges: Sequence[str]) -> dict[str, str]:
    """Judges of which each says something of its own."""
    return {judge: f"what {judge} said" for judge in judges}


def look(folder: Path, gold: GoldSet, judges: Sequence[str], **other: Any) -> tuple[int, bool]:
    """A decision's number, and whether it is new."""
    how = {"experiment": "e", "kind": "decision", "by": "compare by kappa", "items": gold.items, **other}
    found = look_at_test(folder, gold, how.pop("items"), judges=by_name(judges), **how)
    return found.number, found.new


def test_looks_are_counted_by_decision(tmp_path: Path, gold: GoldSet) -> None:
    assert looks_so_far(tmp_path, gold) == 0
    assert look(tmp_path, gold, "ab", kind="report", by="report") == (0, True)
    assert look(tmp_path, gold, "ab") == (1, True)
    assert look(tmp_path, gold, "ab") == (1, False)  # the same command again
    assert look(tmp_path, gold, "ac") == (2, True)
    assert look(tmp_path, gold, "ab", by="compare by accuracy") == (3, True)
    assert look(tmp_path, gold, "a", kind="gate", by="gate") == (3, True)  # logged, not counted
    assert looks_so_far(tmp_path, gold) == 3
    assert foresee_look(tmp_path, gold, gold.items, by="compare by kappa", judges=by_name("ca")).number == 2
    assert foresee_look(tmp_path, gold, gold.items, by="compare by kappa", judges=by_name("cb")).number == 4
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "test_looks.jsonl").read_text().splitlines()]
    assert kinds == ["report", "decision", "decision", "decision", "gate"]
    drawn = [item for item in gold.items if item not in gold.select("test")][
        :7
    ]  # of a draw every item counts
    assert look(tmp_path, gold, "a", kind="draw", by="draw", items=drawn) == (1, True)
    assert json.loads((tmp_path / "test_looks.jsonl").read_text().splitlines()[-1])["n_items"] == 7


def test_what_is_the_same_look(tmp_path: Path, gold: GoldSet) -> None:
    assert look(tmp_path, gold, "ab") == (1, True)
    assert look(tmp_path, gold, "ba") == (1, False)
    assert look(tmp_path, gold, "ab", experiment="another name") == (1, False)
    assert look(tmp_path, gold, "ab", items=gold.select("test")) == (1, False)
    assert look(tmp_path, gold_set(tmp_path / "gold", "copy"), "ab") == (1, False)
    few: list[Item] = list(gold.select("test"))[:9]
    assert look(tmp_path, gold, "ab", items=few) == (2, True)  # the first answer was known
    assert foresee_look(tmp_path, gold, [], by="x").number == 1  # without an item nothing has been seen


def test_half_of_the_items_are_the_same_test_labels(tmp_path: Path, gold: GoldSet) -> None:
    test = list(gold.select("test"))
    shown, others = test[:10], test[10:20]
    assert look(tmp_path, gold, "ab", items=shown) == (1, True)
    for shared, number in ((4, 1), (5, 2)):
        items = [*shown[:shared], *others[shared:]]
        assert foresee_look(tmp_path, gold, items, by="x").number == number


def test_a_look_is_what_the_judges_said_whatever_their_names(tmp_path: Path, gold: GoldSet) -> None:
    def by(judge: str, flipped: int = 0) -> dict[str, str]:
        """A judge that passes all items but the first so many of test."""
        test = [item.item_id for item in gold.select("test")]
        rows = [
            Judgement(item.item_id, item.sha, judge, judge, 0, float(item.item_id not in test[:flipped]))
            for item in gold.items
        ]
        return {judge: verdicts_sha(gold, gold.items, rows)}

    def decide(**judges: str) -> tuple[int, bool]:
        about = {"experiment": "e", "kind": "decision", "by": "select by kappa"}
        found = look_at_test(tmp_path, gold, gold.items, judges=judges, **about)  # type: ignore[arg-type]
        return found.number, found.new

    assert decide(**by("a")) == (1, True)
    assert decide(**by("twin")) == (1, False)  # the same verdicts under another name
    assert decide(**by("a", flipped=1)) == (2, True)  # the same name, and another verdict
    assert decide(**by("a"), **by("b", flipped=1)) == (3, True)
    assert decide(**by("d", flipped=1), **by("c")) == (3, False)
    train = [Judgement(item.item_id, item.sha, "j", "j", 0, 1.0) for item in gold.select("open")]
    assert verdicts_sha(gold, gold.items, train) == verdicts_sha(gold, gold.items, [])  # test alone counts


def test_which_sets_count_together(tmp_path: Path, gold: GoldSet) -> None:
    for number, judges in enumerate(("ab", "ac", "ad"), start=1):
        assert look(tmp_path, gold, judges) == (number, True)
    grown = gold_set(tmp_path / "gold", "grown", n_groups=120)
    mended = gold_set(tmp_path / "gold", "mended", people={"full": 1, "half": 1, "none": 0})
    assert looks_so_far(tmp_path, grown) == looks_so_far(tmp_path, mended) == 3
    assert look(tmp_path, mended, "ab") == (4, True)  # other labels: another decision on the same items
    items = tuple(dataclasses.replace(item, question=f"{item.question} Why?") for item in gold.items)
    assert looks_so_far(tmp_path, dataclasses.replace(gold, items=items)) == 0


def test_a_decision_pays_for_those_before(tmp_path: Path, gold: GoldSet) -> None:
    about: dict[str, Any] = {"experiment": "e", "kind": "decision", "by": "x"}
    made = [look_at_test(tmp_path, gold, gold.items, judges=by_name(name), **about) for name in "abcdefghij"]
    assert [one.reused for one in made[:2]] == [False, True]
    assert [one.level for one in made[:3]] == pytest.approx([0.9696036, 0.9924009, 0.9966226])
    assert made[2].level_within(0.9) == pytest.approx(1 - 0.1 * 6 / (math.pi * 3) ** 2)
    assert sum(1 - one.level for one in made) < 0.05
    assert made[0].sentence("s") == (
        "decision 1 on the test labels of s: shown at level 0.9696, so that all decisions on them together "
        "err in at most 5%"
    )
    third = made[2].sentence("s")
    assert third.startswith("decision 3 on the test labels of s, reused: shown at level 0.9966, so")


def test_a_deleted_log_is_a_deleted_log(tmp_path: Path, gold: GoldSet) -> None:
    """The log is all that is known: neither the folders of experiments nor locks tell of looks."""
    (tmp_path / "e").mkdir()
    assert look(tmp_path, gold, "ab") == (1, True)
    assert [path.name for path in tmp_path.rglob("test_looks.jsonl")] == ["test_looks.jsonl"]
    (tmp_path / "test_looks.jsonl").unlink()
    assert looks_so_far(tmp_path, gold) == 0
    assert look(tmp_path, gold, "ab") == (1, True)


def test_a_log_of_a_later_judgecal_is_refused(tmp_path: Path, gold: GoldSet) -> None:
    look(tmp_path, gold, "ab")
    row = json.loads((tmp_path / "test_looks.jsonl").read_text())
    with (tmp_path / "test_looks.jsonl").open("a") as file:
        file.write(json.dumps({**row, "schema": 2}) + "\n")
    with pytest.raises(InputError, match="newer than this judgecal"):
        look(tmp_path, gold, "ac")


ROW = {
    "schema": 1, "at": "", "experiment": "a", "kind": "decision", "by": "", "judges": [], "verdicts": [], "content": "",
    "items": "",
}  # fmt: skip
DAMAGED = [
    b"{",
    b'{"gold": "s"}',
    b"null",
    b"[1]",
    b"\xff\xfe",
    b"\0\0\0",
    b"[" * 100_000,
    json.dumps({**ROW, "judges": [[1]]}).encode(),
    json.dumps({**ROW, "verdicts": ""}).encode(),
    json.dumps(ROW).replace('"at": ""', '"at": 1e400').encode(),
    json.dumps({**ROW, "kind": []}).encode(),
    json.dumps({**ROW, "kind": "gate", "items": None}).encode(),
]


@pytest.mark.parametrize("line", DAMAGED)
def test_a_damaged_look_is_named_once_and_counts(
    tmp_path: Path, gold: GoldSet, line: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """A count too small would take a decision at a level that it has no right to."""
    log = tmp_path / "test_looks.jsonl"
    assert look(tmp_path, gold, "ab") == (1, True)
    with log.open("ab") as file:
        file.write(line + b"\n")
    assert look(tmp_path, gold, "ab") == (2, False)
    assert look(tmp_path, gold, "ac") == (3, True)
    assert looks_so_far(tmp_path, gold) == 3
    assert capsys.readouterr().err.count(f"{log}:2: no test look can be read from this line") == 1


def test_a_line_torn_at_any_byte_counts_as_one(tmp_path: Path, gold: GoldSet) -> None:
    log = tmp_path / "test_looks.jsonl"
    look(tmp_path, gold, "ab"), look(tmp_path, gold, "ac")
    whole = log.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first + 1, len(whole) + 1, 7):
        log.write_bytes(whole[:end])
        assert looks_so_far(tmp_path, gold) == 2
        assert look(tmp_path, gold, "ad") == (3, True)
        assert looks_so_far(tmp_path, gold) == 3
    log.write_bytes(whole[:first] + b"\n" + whole[first:])  # an empty line was none
    assert looks_so_far(tmp_path, gold) == 2


LOOKER = """
import sys
from pathlib import Path
from judgecal.experiment.looks import look_at_test
from judgecal.goldset import load_gold
folder, who, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
gold = load_gold(str(folder / "gold" / "s"))
print("ready", flush=True)
sys.stdin.readline()
for n in range(rounds):
    about = dict(experiment="e", kind="decision", by="x", judges={who: f"{who}-{n}"})
    print(look_at_test(folder / "experiments", gold, gold.items, **about).number, flush=True)
"""


def test_six_processes_at_once_count_every_look(tmp_path: Path, gold: GoldSet) -> None:
    """Six times twenty decisions: each number from 1 to 120 is given once."""
    assert len(gold.items) > 100
    command = [sys.executable, "-c", LOOKER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, who, "20"], **pipes) for who in "abcdef"]  # type: ignore[call-overload]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        numbers = [int(line) for process in processes for line in process.communicate(timeout=240)[0].split()]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert sorted(numbers) == list(range(1, 121))
    assert looks_so_far(tmp_path / "experiments", gold) == 120
