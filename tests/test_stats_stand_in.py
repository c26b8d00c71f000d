"""A judge in a person's place: by hand, at the edges, and whether it is said too often."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit

from judgecal.stats import agreement
from judgecal.stats.stand_in import StandIn, paired_labels, stand_in

ITEMS = [f"i{number}" for number in range(60)]
GROUPS = {item: item for item in ITEMS}
TRUTH = {item: float(number % 2) for number, item in enumerate(ITEMS)}


def turned(*numbers: int) -> dict[str, float]:
    """The truth with these items wrong."""
    return {item: 1.0 - label if at in numbers else label for at, (item, label) in enumerate(TRUTH.items())}


def held(ratings: Any, verdicts: Any, **more: Any) -> Any:
    return stand_in(ratings, verdicts, **{"scale": "binary", "groups": GROUPS} | more)


def test_pairs_hold_what_ties_would_lose() -> None:
    ratings = {"a": {"1": 1, "2": 1, "3": 0}, "b": {"1": 0, "2": 1}, "c": {"1": 1, "4": 0}}
    assert paired_labels(ratings, "a") == [("1", 0), ("1", 1), ("2", 1)]  # 3: nobody else
    assert paired_labels(ratings, "c") == [("1", 1), ("1", 0)]


def test_a_judge_beside_two_people_by_hand() -> None:
    """bob errs on 6 passes, ann on none, the judge on 3 passes and 3 fails: against bob ann is right on 24 of
    30 passes and on all fails that he gives."""
    ann, bob, judge = TRUTH, turned(1, 3, 5, 7, 9, 11), turned(1, 3, 13, 0, 2, 4)
    found = held({"ann": ann, "bob": bob}, judge)
    # Beside bob, against ann's labels: 30 passes and 30 fails. bob 24/30 and 30/30, the judge 27/30 and
    # 27/30.
    assert (found.raters["bob"].judge, found.raters["bob"].person) == pytest.approx((0.9, 0.9))
    # Beside ann, against bob's: 24 passes (of which the judge errs on 13) and 36 fails (6 true passes, of
    # which it fails two with him).
    assert found.raters["ann"].person == pytest.approx((1.0 + 30 / 36) / 2)
    assert found.raters["ann"].judge == pytest.approx((23 / 24 + 29 / 36) / 2)
    one = found.raters["ann"]
    assert one.difference == pytest.approx(one.judge - one.person) and one.at_worst < one.difference
    assert (one.n, one.n_expected, one.n_groups, one.n_unscored) == (60, 60, 60, 0)
    assert found.at_worst == min(one.at_worst for one in found.raters.values())
    assert found.shown(0.03) is False and found.shown(1.0) is True
    # The person's own number is that of `agreement` against the other's labels.
    same = agreement(list(bob.values()), list(ann.values()), scale="binary", metrics=["macro_agreement"])
    assert one.person == pytest.approx(same["macro_agreement"].value)


def test_sameness_on_what_was_seen_is_no_proof() -> None:
    """A judge that says what ann says on all 60: it may lose t^2 / G, near the rule of three."""
    found = held({"ann": TRUTH, "bob": turned(1, 3)}, TRUTH)
    one = found.raters["ann"]
    assert (one.difference, one.at_worst) == (0.0, pytest.approx(-(stdtrit(59, 0.95) ** 2) / 60))
    assert found.raters["bob"].difference > 0.0
    assert found.shown(0.03) is False and found.shown(0.05) is True


def test_judges_share_the_chance_to_err() -> None:
    ratings, judge = {"ann": TRUTH, "bob": turned(1, 3, 5)}, turned(2, 4, 6, 9)
    alone, among_five = held(ratings, judge), held(ratings, judge, n_judges=5)
    assert (alone.level, among_five.level) == pytest.approx((0.95, 0.99))
    assert among_five.at_worst < alone.at_worst


def test_unscored_is_wrong_and_not_asked_is_nothing() -> None:
    ratings = {"ann": TRUTH, "bob": turned(1, 3, 5)}
    lost = {item: None if at < 5 else label for at, (item, label) in enumerate(TRUTH.items())}
    found = held(ratings, lost)
    assert found.raters["bob"].n_unscored == 5
    assert found.raters["bob"].judge == pytest.approx((27 / 30 + 28 / 30) / 2)
    unasked = dict(list(TRUTH.items())[5:])
    found = held(ratings, unasked)
    assert (found.at_worst, found.shown(0.5)) == (None, None)
    assert found.reason == "beside ann: the judge did not see 5 of the 60 items"


def test_few_items_and_few_questions_show_nothing() -> None:
    few = {item: TRUTH[item] for item in ITEMS[:29]}
    found = held({"ann": TRUTH, "bob": TRUTH, "cat": few}, TRUTH)
    assert found.raters.keys() == {"ann", "bob"}
    assert found.left_out == {"cat": "29 items shared with another: fewer than 30"}
    assert found.raters["ann"].n == 60
    nobody = held({"ann": TRUTH, "cat": few}, TRUTH)
    assert (nobody.reason, nobody.at_worst) == ("no rater shares 30 items on 10 questions with another", None)
    clustered = held(
        {"ann": TRUTH, "bob": turned(1)}, TRUTH, groups={item: int(item[1:]) % 9 for item in ITEMS}
    )
    assert clustered.shown(1.0) is None and clustered.left_out["ann"].startswith("9 questions shared")


def test_a_constant_never_stands_in_however_little_people_agree() -> None:
    """Raters of a scale of 0..4 who err by 2.5: the constant 2 agrees with either 10 points better than they
    do."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 600)
    ann, bob = (
        dict(enumerate(np.clip(np.round(truth + rng.normal(0, 2.5, 600)), 0, 4).tolist())) for _ in range(2)
    )
    raw = agreement(list(bob.values()), [2.0] * 600, scale="ordinal:0:4", metrics=["macro_agreement"])
    people = agreement(
        list(bob.values()), list(ann.values()), scale="ordinal:0:4", metrics=["macro_agreement"]
    )
    assert (raw["macro_agreement"].value or 0.0) > (people["macro_agreement"].value or 1.0) + 0.05
    constant = dict.fromkeys(range(600), 2.0)
    found = held({"ann": ann, "bob": bob}, constant, scale="ordinal:0:4", groups={i: i for i in range(600)})
    assert not any(one.beats_constant for one in found.raters.values()) and found.shown(0.2) is False
    # On two labels where people agree by chance alone, a judge that guesses is no worse than they are.
    guessed = [{i: float(label) for i, label in enumerate(rng.integers(0, 2, 3000))} for _ in range(3)]
    groups = {i: i for i in range(3000)}
    found = held({"ann": guessed[0], "bob": guessed[1]}, guessed[2], groups=groups)
    assert found.at_worst > -0.06 and found.shown(0.06) is False


def test_a_person_who_needs_no_map_is_not_held_to_one() -> None:
    """Two people who differ by a point at most on a percentage scale: a map fitted to 60 items costs them
    more."""
    rng = np.random.default_rng(0)
    ann = {item: float(rng.integers(0, 101)) for item in ITEMS}
    bob = {item: float(np.clip(label + rng.integers(-1, 2), 0, 100)) for item, label in ann.items()}
    rough = {item: float(np.clip(label + rng.integers(-30, 31), 0, 100)) for item, label in ann.items()}
    found = held({"ann": ann, "bob": bob}, rough, scale="percentage").raters["ann"]
    raw = agreement(list(bob.values()), list(ann.values()), scale="percentage", metrics=["macro_agreement"])
    assert found.person == pytest.approx(raw["macro_agreement"].value) and found.person > 0.99
    assert found.difference == pytest.approx(found.judge - found.person) and found.at_worst < found.difference


def test_a_judge_that_is_worse_by_the_margin_is_seldom_said_to_stand_in() -> None:
    """120 questions, people right on 90%, a judge 10 points worse on a margin of 10: 5% of 60 samples, and
    noise."""
    said = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 120)
        labels = [
            dict(enumerate(np.where(rng.random(120) < right, truth, 1 - truth).tolist()))
            for right in (0.9, 0.9)
        ]
        judge = np.where(rng.random(120) < 0.9 - 0.1 / 0.8, truth, 1 - truth).tolist()
        found = stand_in(
            {"a": labels[0], "b": labels[1]},
            dict(enumerate(judge)),
            scale="binary",
            groups={i: i for i in range(120)},
        )
        said += bool(found.shown(0.1))
    assert said <= 6  # 5% of 60 and two standard errors


def test_every_person_and_every_constant_have_to_be_passed() -> None:
    cases = [(-0.02, (True, True), True), (-0.02, (True, False), False), (-0.03, (True, True), False)]
    for worst, beats, shown in (*cases, (None, (True, True), None)):
        raters: Any = {str(place): SimpleNamespace(beats_constant=one) for place, one in enumerate(beats)}
        assert StandIn("accuracy", 0.95, raters, worst).shown(0.03) is shown
