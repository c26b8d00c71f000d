"""Gold labels, splits and the audit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.goldset import Card, GoldSet, RaterCard, Splits, check_gold, require_splits
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def build(
    labels: dict[str, dict[str, Label]],
    *,
    scale: str = "binary",
    items: Sequence[Item] | None = None,
    splits: Splits | None = None,
    step: float | None = None,
) -> GoldSet:
    """A set of `rater -> item -> label`, one item a question unless items are given."""
    ids = dict.fromkeys(item_id for rated in labels.values() for item_id in rated)
    rows = items or [Item(item_id, item_id, f"question {item_id}", f"answer {item_id}") for item_id in ids]
    card = Card(
        name="made",
        scale=Scale.parse(scale, step=step),
        version="1",
        licence="MIT",
        source="s",
        made_by="m",
        raters={rater: RaterCard("w") for rater in labels},
        splits=splits or Splits(),
    )
    ratings = [Rating(i, rater, label) for rater, rated in labels.items() for i, label in rated.items()]
    return GoldSet("made", Path("made"), card, tuple(rows), tuple(ratings), (), "0" * 64)


def kinds(gold: GoldSet) -> set[str]:
    return {problem.kind for problem in check_gold(gold)}


def test_majority_tie_and_adjudication() -> None:
    gold = build(
        {
            "a": {"1": 1.0, "2": 1.0, "3": 0.0, "4": 1.0},
            "b": {"1": 1.0, "2": 0.0, "3": 1.0, "4": 0.0},
            "c": {"1": 0.0, "3": 1.0},
            "gold": {"4": 0.0},
        }
    )
    assert gold.labels == {"1": 1.0, "3": 1.0, "4": 0.0}
    assert gold.raters == ("a", "b", "c")
    assert "gold" not in gold.ratings_by_rater
    assert [p.message for p in check_gold(gold) if p.kind == "unlabelled"] == [
        "item '2' has no gold label: the raters tie: add a rating by 'gold' or by one more rater"
    ]


def test_median_of_numbers() -> None:
    gold = build(
        {"a": {"1": 10.0, "2": 0.0}, "b": {"1": 100.0, "2": 5.0}, "c": {"1": 20.0}}, scale="percentage"
    )
    assert gold.labels == {"1": 20.0, "2": 2.5}


def test_nominal_majority() -> None:
    gold = build({"a": {"1": "x"}, "b": {"1": "x"}, "c": {"1": "y"}}, scale="nominal")
    assert gold.labels == {"1": "x"}


def test_label_without_a_rater_is_the_others_and_never_gold() -> None:
    gold = build(
        {
            "a": {"1": 1.0, "2": 1.0, "3": 1.0, "5": 1.0},
            "b": {"1": 0.0, "2": 0.0, "4": 1.0},
            "c": {"1": 0.0, "2": 1.0},
            "gold": {"1": 1.0, "3": 0.0, "5": 0.0},
        }
    )
    assert gold.label_without("a") == {"1": 0.0}  # 2: the others tie; 3 and 5: nobody else; 4: not rated by a
    assert gold.label_without("b") == {"2": 1.0}
    with pytest.raises(InputError, match="unknown rater 'gold'"):
        gold.label_without("gold")


@given(st.lists(st.text(max_size=20), unique=True, min_size=1, max_size=40), st.integers(0, 5))
def test_a_question_never_moves_when_the_set_grows(groups: list[str], seed: int) -> None:
    splits = Splits(seed)
    few = {group: splits.of(group) for group in groups[: len(groups) // 2]}
    assert {group: splits.of(group) for group in few} == few
    for group, split in few.items():
        text = f"{seed}:{group}".encode("utf-8", "surrogatepass")
        u = int(hashlib.sha256(text).hexdigest()[:16], 16) / 2**64
        assert split == ("train" if u < 0.25 else "dev" if u < 0.25 + 0.30 else "test")


def test_select_splits_by_group_in_file_order() -> None:
    items = [Item(str(n), f"g{n % 50}", "q", "a") for n in range(200)]
    gold = build({"a": {"0": 1.0}}, items=items)
    parts = {split: gold.select(split) for split in ("train", "dev", "test")}
    assert sum(map(len, parts.values())) == 200 and gold.select("all") == tuple(items)
    assert {i.group for i in parts["train"]}.isdisjoint(i.group for i in parts["dev"])
    opened = gold.select("open")
    assert sorted(int(i.item_id) for i in opened) == [int(i.item_id) for i in opened]
    assert set(opened) == set(parts["train"]) | set(parts["dev"])
    left = gold.select("open", without_groups={opened[0].group})
    assert opened[0].group not in {i.group for i in left} and len(left) == len(opened) - 4
    with pytest.raises(InputError, match=r"unknown split 'tets': did you mean test\?"):
        gold.select("tets")


def test_require_splits_lists_each_that_is_too_small() -> None:
    gold = build({"a": {str(n): 1.0 for n in range(8)}})
    require_splits(gold, {"all": 8})
    with pytest.raises(InputError) as error:
        require_splits(gold, {"train": 30, "test": 30, "all": 8})
    assert len(error.value.problems) == 2
    assert "the split train has" in error.value.problems[0] and "needs 30" in error.value.problems[0]
    assert "before anyone looks at a label" in error.value.problems[1]


def test_the_audit_of_a_sound_set_is_silent() -> None:
    rated = {str(n): float(n % 2) for n in range(120)}
    assert check_gold(build({"a": rated, "b": rated})) == []


def test_each_audit_finding() -> None:
    same = Item("1", "g1", "What is it?", "This", tags=("rare",))
    items = [same, Item("2", "g2", "what  IS it?", "this"), Item("3", "g3", "Other?", "x")]
    gold = build({"a": {"1": 1.0, "2": 0.0}, "b": {"1": 1.0}}, items=items)
    found = {problem.kind: problem for problem in check_gold(gold)}
    assert set(found) == {
        "unlabelled",
        "unlike_labels",
        "question_in_two_groups",
        "thin_split",
        "thin_stratum",
        "thin_rater",
        "thin_tag",
    }
    assert "labelled 1, 0" in found["unlike_labels"].message
    assert "2 groups (g1, g2)" in found["question_in_two_groups"].message
    assert found["unlabelled"].message == "item '3' has no gold label: nobody rated it"


def test_near_constant_off_step_and_between() -> None:
    rated: dict[str, Label] = {str(n): 100.0 for n in range(50)}
    assert "near_constant" in kinds(build({"a": rated}, scale="percentage"))
    assert "off_step" in kinds(build({"a": {"1": 37.0}}, scale="percentage", step=5))
    assert "off_step" not in kinds(build({"a": {"1": 35.0}}, scale="percentage", step=5))
    assert "between_categories" in kinds(build({"a": {"1": 2.0}, "b": {"1": 3.0}}, scale="ordinal:0:4"))


def test_nominal_strata_are_its_categories() -> None:
    gold = build({"a": {str(n): "xy"[n % 2] for n in range(100)}}, scale="nominal")
    assert "thin_stratum" not in kinds(gold)
