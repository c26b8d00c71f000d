"""What the page and the command say of labelling, and the buttons that each scale has."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest

from judgecal.desk.progress import Timing, adjudication, contested, label_progress, opinions_of
from judgecal.desk.server import choices_of, progress_words, typed_of
from judgecal.experiment.people import rater_agreement
from judgecal.goldset import Card, GoldSet, load_gold
from judgecal.records import Item, Rating
from judgecal.scale import Scale
from judgecal.stats.intervals import mean_estimate
from tests.support.command import Run, one_object
from tests.support.desk import ratings
from tests.support.gold import made_gold, made_items, rated
from tests.support.pages import OPEN, recorded


def a_set(
    said: dict[str, dict[int, float | None]], n: int = 60, *, scale: str = "binary", **item: Any
) -> GoldSet:
    """n items; rater -> number of the item -> label, None where it could not tell."""
    items = tuple(
        Item(f"i{k}", f"g{k}", "why?", "so", **{name: of(k) for name, of in item.items()}) for k in range(n)
    )
    every = [
        Rating(f"i{k}", rater, label, reason=None if label is not None else "cannot tell")
        for rater, own in said.items()
        for k, label in own.items()
    ]
    return GoldSet("made", Path(), Card("made", Scale.parse(scale)), items, tuple(every), (), "")


def two(n: int, shared: int, *, seed: int = 0) -> dict[str, dict[int, float | None]]:
    rng = random.Random(seed)
    truth = [float(rng.random() < 0.6) for _ in range(n)]
    return {
        "ann": {k: truth[k] for k in range(n)},
        "bob": {k: truth[k] if rng.random() < 0.8 else 1.0 - truth[k] for k in range(shared)},
    }


@pytest.mark.parametrize("wrong", [(), (1,)])
def test_the_first_labels_of_a_draw_are_not_enough(wrong: tuple[int, ...]) -> None:
    """All of them right, or all but one of little weight: that leaves no spread, and knows next to
    nothing."""
    said = {"ann": {k: float(k not in wrong) for k in range(12)}}
    gold = a_set(said, inclusion_probability=lambda k: 1.0 if k == 1 else 0.05 if k % 2 else 0.1)
    found = label_progress(gold, gold.items, ("ann",))
    assert found.half_width is not None and found.half_width > 0.1 and not found.enough
    gold = a_set(
        {"ann": dict.fromkeys(range(12), 80.0)},
        scale="percentage",
        inclusion_probability=lambda k: 0.1 + k / 100,
    )
    found = label_progress(gold, gold.items, ("ann",))
    assert found.half_width is None and not found.enough


def test_numbers_are_those_of_the_other_commands() -> None:
    gold = a_set(two(50, 30))
    found = label_progress(
        gold, gold.items, ("ann", "bob"), timing=Timing({"ann": [2.0, 9.0, 4.0]}, {"ann": (5, 4)})
    )
    assert (found.n_items, found.n_labelled, found.n_overlap) == (60, 50, 30)
    assert found.agreement is not None
    assert found.agreement.value == rater_agreement(gold).reliability["krippendorff_alpha"].value
    labels = [item for item in gold.items if item.item_id in gold.labels]
    rate = mean_estimate(
        [float(gold.labels[item.item_id]) for item in labels], [item.group for item in labels]
    )
    assert found.rate == rate and rate.low is not None and rate.high is not None
    assert found.half_width == pytest.approx((rate.high - rate.low) / 2.0)
    assert found.n_more == 10  # as few are left
    assert found.half_width_more == pytest.approx(found.half_width * (rate.n / (rate.n + 10)) ** 0.5)
    assert (found.raters["ann"].seconds, found.raters["ann"].same) == (4.0, 4) and not found.enough
    said = dict(progress_words(found, "ann", 50, rates=True)["lines"])
    assert (
        said["Your second looks"] == "4 of 5 said the same" and "on 30 items" in said["Agreement of raters"]
    )


def test_too_early_says_so_and_enough_says_stop() -> None:
    gold = a_set(two(40, 12))
    found = label_progress(gold, gold.items, ("ann", "bob"), target=0.3)
    assert found.agreement is None and found.enough
    said = progress_words(found, "ann", 40, rates=True)
    assert ("Agreement of raters", "too early: 12 of 20 items that two have labelled") in said["lines"]
    blind = dict(progress_words(found, "ann", 40, rates=False)["lines"])
    assert blind == {"All raters together": "40 of 60 items"}
    assert said["advice"] == "The rate is known to ±30 points, as was asked for: you may stop here."
    assert not label_progress(gold, gold.items, ("ann", "bob"), target=0.05).enough
    half = label_progress(gold, gold.items, ("ann",)).half_width
    beside = label_progress(gold, gold.items, ("ann",), judge_leaves=0.25).half_width
    assert half is not None and beside == pytest.approx(half / 2.0)


def test_no_label_is_no_number() -> None:
    gold = a_set({"ann": {0: None}})
    found = label_progress(gold, gold.items, ("ann", "bob"))
    assert (found.n_labelled, found.raters["ann"].cannot_tell, found.half_width) == (0, 1, None)
    words = a_set({}, scale="nominal")
    assert label_progress(words, words.items, ("ann",)).rate is None


def test_labels_that_were_drawn_weigh_by_their_chance() -> None:
    said = {"ann": {k: float(k % 2 == 0) for k in range(60)}}
    gold = a_set(said, inclusion_probability=lambda k: 0.9 if k % 2 == 0 else 0.1)
    found = label_progress(gold, gold.items, ("ann",))
    assert found.rate is not None and found.rate.value == pytest.approx(0.1) and found.half_width is not None


def test_adjudication_counts_what_it_changed() -> None:
    said: dict[str, dict[int, float | None]] = {
        "ann": {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: None},
        "bob": {0: 0.0, 1: 0.0, 2: 0.0, 3: 1.0, 4: 1.0},
        "cyd": {1: 0.0, 2: 0.0},
    }
    gold = a_set(said, 6)
    assert set(opinions_of(gold)) == {"i0", "i1", "i2"} == {item.item_id for item in contested(gold)}
    settled = (Rating("i0", "gold", 1.0), Rating("i1", "gold", 1.0), Rating("i2", "gold", 0.0))
    found = adjudication(dataclasses.replace(gold, ratings=(*gold.ratings, *settled)))
    assert (found.n_differ, found.n_left, found.n_settled, found.n_ties, found.n_changed) == (3, 0, 3, 1, 1)
    assert {rater: (one.n, one.same) for rater, one in found.raters.items()} == {
        "ann": (3, 2),
        "bob": (3, 1),
        "cyd": (2, 1),
    }
    unclear = adjudication(dataclasses.replace(gold, ratings=(*gold.ratings, Rating("i0", "gold", None))))
    assert (unclear.n_left, unclear.n_cannot_tell, unclear.n_settled) == (2, 1, 0)


@pytest.mark.parametrize(
    ("scale", "anchors", "keys", "typed"),
    [
        ("binary", {"yes": "right", "0": "wrong"}, "y 1 1 Yes right|n 2 0 No wrong", None),
        ("ordinal:0:3", {}, "0 0 0|1 1 1|2 2 2|3 3 3", None),
        ("ordinal:1:10", {}, "|".join(f"{k % 10} {k} {k}" for k in range(1, 11)), None),
        ("points:0:2:0.5", {}, "0 0 0| 0.5 0.5|1 1 1| 1.5 1.5|2 2 2", None),
        ("percentage", {}, "1 0 0|2 25 25|3 50 50|4 75 75|5 100 100", {"low": 0.0, "high": 100.0, "step": None}),
        ("percentage", {"0": "none", "60": "most", "100": "all"}, "1 0 0 none|2 60 60 most|3 100 100 all", ...),
        ("points:0:5", {}, "1 0 0|2 1.25 1.25|3 2.5 2.5|4 3.75 3.75|5 5 5", {"low": 0.0, "high": 5.0, "step": None}),
        ("nominal", {}, "", {"words": True}),
    ],
)  # fmt: skip
def test_buttons_and_keys(scale: str, anchors: dict[str, str], keys: str, typed: Any) -> None:
    card = Card("made", Scale.parse(scale), anchors=anchors)
    found = [
        "".join([one.key, " ", one.said, " ", one.name, f" {one.meaning}" * bool(one.meaning)])
        for one in choices_of(card)
    ]
    assert "|".join(found) == keys
    assert typed is ... or typed_of(card.scale) == typed
    words = Scale("nominal", 0.0, 0.0, categories=("good", "bad"))
    assert [(one.key, one.said) for one in choices_of(Card("w", words))] == [("1", "good"), ("2", "bad")]
    assert typed_of(words) is None


async def _labels(server: Any, _: Any) -> None:
    """Every rater labels 12 items."""
    for rater in server.desk.task.raters:
        for _ in range(12):
            told = await server.desk.act(rater, "next", {})
            if told["item"] is None:
                return
            await server.desk.act(rater, "label", {"item": told["item"]["key"], "label": "50"})


def test_an_experiments_items_with_a_draft_and_drawn_where_judges_differ(
    judgecal: Run, workspace_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_items(20)
    labels = [one for one in rated(made, {"full": 100, "half": 50, "none": 0}) if one[0] < "i010"]
    made_gold(workspace_dir / "gold" / "made", made, labels, splits=OPEN)
    full = [100 if row["kind"] == "full" else 0 for row in made]
    recorded(judgecal, tmp_path, {"high": full, "low": [100 - one for one in full]}, made)
    monkeypatch.setattr("judgecal.desk.server.DeskServer.serve", _labels)
    words = ("gold", "label", "rec", "--raters", "cyd", "--next", "strata", "-n", "15", "--json")
    found = one_object(judgecal(*words))
    assert (found["set"], found["n_items"], found["n_labelled"]) == ("rec-labels", 15, 12)
    drawn = load_gold(workspace_dir / "gold" / "rec-labels")
    assert all(item.inclusion_probability for item in drawn.items) and drawn.card.sampling == "stratified"
    assert (
        one_object(judgecal(*words))["n_labelled"] == 15
    )  # the same command goes on with the set that is there
    ran = judgecal("gold", "label", "rec", "--raters", "bob", "--draft", "high", "--next", "in-order")
    assert ran.code == 0, ran.err
    own = [row for row in ratings(workspace_dir / "gold" / "made") if row["rater"] == "bob"]
    assert len(own) == 12 and all(row["saw_draft"] for row in own)
    assert judgecal("gold", "label", "rec", "--draft", "higher").code == 2
