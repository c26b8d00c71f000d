"""Judges of pairs: both orders, what a contradiction counts as, and what stands beside their agreement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judgecal.experiment.judgements import whole_items
from judgecal.judges import judge_named
from judgecal.judges.protocol import units_of
from judgecal.records import Failure, Item, Judgement, Pair
from judgecal.scale import Scale
from judgecal.workspace import Workspace
from tests.support.command import Run, check_estimate, one_object
from tests.support.gold import made_gold

ITEM = Item("i", "g", "What is 2 + 2?", "", pair=Pair("4", "It is 5, I think", "small", "large"))
ROW = Judgement("i", "sha", "j", "f", 0, "A", "because", latency_s=1.0, cost_usd=0.5, unit="pair", order="ab")
SCALE = Scale("nominal", 0.0, 0.0, categories=("A", "B", "tie"))
JUDGES = '''from typing import Literal

Verdict = Literal["A", "B", "tie"]


def first(answer_a: str, answer_b: str) -> Verdict:
    return "A"


def forced(answer_a: str, answer_b: str) -> Literal["A", "B"]:
    return "A"


def knows(answer_a: str, answer_b: str) -> Verdict:
    """Finds the right one where it is clear, else takes the first."""
    if "unclear" in answer_a + answer_b:
        return "A"
    return "A" if "right" in answer_a else "B" if "right" in answer_b else "tie"


def graded(answer_a: str, answer_b: str) -> bool:
    return True
'''


@pytest.fixture
def pairs(workspace_dir: Path) -> Path:
    """30 questions with a pair each, the right answer on either side, unclear in 6; 6 are ties for people."""
    rows, ratings = [], []
    for n in range(30):
        label = "tie" if n % 5 == 4 else "AB"[n % 2]
        right, wrong = f"the right one{', unclear' * (n % 5 == 0)}", f"another, {'and longer ' * (n % 3)}"
        answers = (wrong, wrong) if label == "tie" else (right, wrong) if label == "A" else (wrong, right)
        systems = {"system_a": "small", "system_b": "large"}
        row = {"item_id": f"i{n}", "group": f"g{n}", "question": f"Which of {n}?", **systems}
        rows.append({**row, "answer_a": answers[0], "answer_b": answers[1]})
        ratings += [(f"i{n}", rater, label) for rater in ("ann", "bob")]
    (workspace_dir / "checks.py").write_text(JUDGES, encoding="utf-8")
    return made_gold(workspace_dir / "gold" / "pairs", rows, ratings, scale='kind = "nominal"')


def test_a_pair_is_asked_about_in_both_orders(workspace: Workspace) -> None:
    judge = judge_named("longer_answer@local", workspace=workspace)
    swapped = replace(ITEM, pair=Pair("It is 5, I think", "4", "large", "small"))
    assert [*units_of(judge, ITEM)] == [("pair", "ab", ITEM), ("pair", "ba", swapped)]


@pytest.mark.parametrize(
    ("ab", "ba", "ties", "verdict", "error"),
    [
        ("A", "A", True, "A", None),
        ("tie", "tie", True, "tie", None),
        ("A", "B", True, "tie", None),
        ("A", "tie", True, "tie", None),
        ("A", "B", False, None, "inconsistent"),
        (None, "B", True, None, "parse"),
    ],
)
def test_two_orders_make_one_judgement(
    ab: str | None, ba: str, ties: bool, verdict: str | None, error: str | None
) -> None:
    failed = Failure("parse", "no verdict") if ab is None else None
    rows = [replace(ROW, verdict=ab, error=failed), replace(ROW, verdict=ba, order="ba", reasoning="so")]
    (whole,) = whole_items(rows, SCALE if ties else replace(SCALE, categories=("A", "B")))
    assert (whole.verdict, whole.error and whole.error.kind) == (verdict, error)
    assert (whole.unit, whole.order, whole.cost_usd) == ("item", None, 1.0)
    assert whole.reasoning == "[A first] because\n[B first, as A] so"


def test_who_always_takes_the_first_place_is_seen_and_gains_nothing(judgecal: Run, pairs: Path) -> None:
    judges = [
        word for name in ("first", "forced", "knows") for word in ("--judge", f"checks.py:{name}@python")
    ]
    found = one_object(judgecal("score", "--gold", "pairs", "--split", "all", *judges, "--json"), code=4)
    first, forced, knows = found["judges"]
    for entry in found["judges"]:
        check_estimate(entry["first_place"])
        check_estimate(entry["consistent"])
    # every pair is a contradiction: a tie where the judge has ties, as people say of 6 in 30, else unscored
    assert (first["first_place"]["value"], first["consistent"]["value"]) == (1.0, 0.0)
    assert (first["agreement"]["accuracy"]["value"], first["n_unscored"]) == (0.2, 0)
    assert (forced["n_unscored"], forced["unscored"]) == (30, {"inconsistent": 30})
    # 24 pairs are clear, 6 of them ties; of the others each is a contradiction
    assert knows["consistent"]["value"] == 0.8
    assert knows["first_place"]["value"] == pytest.approx((18 + 12) / 48)
    assert knows["agreement"]["accuracy"]["value"] == 0.8
    # the free judges of pairs, and the rows of a journal that say which answer they mean
    assert [entry["judge"] for entry in found["floor"]] == [
        "best constant", "longer_answer@local", "pairwise_v1@embedded"
    ]  # fmt: skip
    again = one_object(judgecal("report", found["experiment"], "--json"))["result"]
    assert (again["judges"], again["floor"]) == (found["judges"], found["floor"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--gold", "pairs", "--judge", "wer@local"), "wer@local judges single answers, and "),
        (("--judge", "longer_answer@local"), "longer_answer@local judges pairs, and "),
        (("--gold", "pairs", "--judge", "checks.py:graded@python"), "a judge of pairs says A, B or tie, and"),
    ],
)
def test_pairs_and_single_answers_are_held_apart(
    judgecal: Run, pairs: Path, words: tuple[str, ...], message: str
) -> None:
    ran = judgecal("score", *words)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
