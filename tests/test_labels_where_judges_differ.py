"""Rows without labels, and labels where judges differ: bounds, estimates, the draw, and the commands."""

from __future__ import annotations

import csv
import itertools
import json
import math
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.experiment.folder import Experiment
from judgecal.experiment.rows import UnlabelledRows
from judgecal.goldset import Card, GoldSet, load_gold, write_gold
from judgecal.goldset.draw import draw
from judgecal.records import Failure, Item, Rating
from judgecal.scale import Scale
from judgecal.selection import migrate as migrate_module
from judgecal.stats.disagreement import (
    KnownClasses,
    Outlook,
    VerdictPairs,
    by_rows,
    draw_strata,
    labels_needed,
    loss_on_labels,
    worst_loss,
)
from judgecal.stats.intervals import mean_estimate, t_quantile, wilson
from judgecal.stats.prediction_powered import LabelledRows, unseen_variance
from judgecal.workspace import find_workspace
from tests.support.command import Run

BINARY, TENS = Scale.parse("binary"), Scale.parse("percentage", step=10.0)
N = 2000


def two(old: Any, new: Any, scale: Scale = BINARY, metric: str = "macro_agreement") -> VerdictPairs:
    old = np.asarray(old, dtype=np.float64)
    return VerdictPairs(old, np.asarray(new, dtype=np.float64), np.arange(len(old)), scale, metric)


def differing(n: int, *, passed: int, failed: int) -> VerdictPairs:
    """Half of n rows pass by the old judge; the new one fails so many of these, and passes so many others."""
    old = np.arange(n) % 2.0
    new = old.copy()
    new[np.flatnonzero(old == 1.0)[:passed]] = 0.0
    new[np.flatnonzero(old == 0.0)[:failed]] = 1.0
    return two(old, new)


def test_the_labels_that_people_might_give_are_the_steps_of_their_scale() -> None:
    for scale, n in (("binary", 2), ("ordinal:1:5", 5), ("points:0:5:0.5", 11)):
        assert len(two([0.0], [1.0], Scale.parse(scale))._labels()) == n


def test_the_worst_loss_by_hand() -> None:
    """Half of the share that passes no more over the passing, and of that which now passes over the failing."""
    known = KnownClasses(np.array([2] * 300 + [0] * 100), np.arange(400))
    worst = worst_loss(differing(N, passed=40, failed=10), known, level=0.95)
    assert worst is not None and worst.value == pytest.approx((40 / N / 0.75 + 10 / N / 0.25) / 2)
    assert worst.high is not None and worst.high > worst.value
    assert (
        worst_loss(differing(N, passed=40, failed=10), None, level=0.95) is None
    )  # without the mix of labels
    one_class = KnownClasses(np.full(400, 2), np.arange(400))
    assert worst_loss(differing(N, passed=40, failed=10), one_class, level=0.95) is None


def test_the_worst_loss_of_a_mean_is_the_distance_and_of_a_missing_verdict_the_whole() -> None:
    old = np.full(N, 50.0)
    new = np.where(np.arange(N) < 100, 80.0, 50.0)
    new[:10] = np.nan
    worst = worst_loss(two(old, new, TENS, "mean_agreement"), None, level=0.95)
    # without a verdict: at the label 50 the farthest lies half the scale away, at the ends the old is as far
    assert worst is not None and worst.value == pytest.approx((90 * 0.3 + 10 * 0.5) / N)
    better = two(new, old, TENS, "mean_agreement").ends(None)[1]
    assert better[:10].max() <= 0.0  # against a missing verdict nobody loses


@pytest.mark.parametrize("n", [1, 5, 20, 300])
def test_rows_on_which_only_the_new_judge_has_a_verdict_bound_its_loss_by_nothing(n: int) -> None:
    """They are counted as unscored, and what can only be won makes no bound worse or endless."""
    old = np.full(N, 50.0)
    bare = worst_loss(two(old, old, TENS, "mean_agreement"), None, level=0.95)
    old[:n] = np.nan
    worst = worst_loss(two(old, np.full(N, 50.0), TENS, "mean_agreement"), None, level=0.95)
    assert worst is not None and bare is not None and worst.n_unscored == n
    assert worst.value is not None and worst.low == min(0.0, worst.value) <= (worst.high or -1.0)
    assert (worst.high or 0.0) <= (bare.high or 0.0) + 1e-3
    labels = LabelledRows(np.arange(60), np.full(60, 50.0), np.ones(60))
    assert loss_on_labels(
        two(old, np.full(N, 50.0), TENS, "mean_agreement"), labels, level=0.95
    ).loss.n_unscored == min(n, 60)


@pytest.mark.parametrize("scale", ["binary", "tens", "mean"])
def test_with_every_label_the_loss_is_that_of_the_metric(scale: str) -> None:
    """Against the metric itself, on all rows."""
    from judgecal.stats import agreement

    rng = np.random.default_rng(0)
    people = BINARY if scale == "binary" else TENS
    labels = rng.integers(0, 2, N) * 1.0 if scale == "binary" else rng.integers(0, 11, N) * 10.0
    old = np.where(rng.random(N) < 0.8, labels, people.high - labels)
    new = np.where(rng.random(N) < 0.9, old, people.high - old)
    metric = "mean_agreement" if scale == "mean" else "macro_agreement"
    found = loss_on_labels(
        two(old, new, people, metric), LabelledRows(np.arange(N), labels, np.ones(N)), level=0.95
    )
    values = [
        agreement(labels, side, scale=people, metrics=[metric])[metric].value or 0.0 for side in (old, new)
    ]
    assert found.loss.value == pytest.approx(values[0] - values[1])
    assert (
        found.loss.low is not None
        and found.upper is not None
        and found.loss.low < found.loss.value < found.upper
    )


def test_what_too_few_labels_decide_is_nothing_with_its_reason() -> None:
    rows = differing(N, passed=100, failed=100)
    differ, agree = np.flatnonzero(rows.differ), np.flatnonzero(~rows.differ)

    def on(at: Any, labels: Any) -> tuple[float | None, str]:
        found = loss_on_labels(
            rows, LabelledRows(at, np.asarray(labels, dtype=np.float64), np.ones(len(at))), level=0.95
        )
        return found.upper, str(found.loss.reason)

    assert on(differ[:9], np.arange(9) % 2) == (None, "9 groups: fewer than 10 give no interval")
    assert on(differ[:40], np.arange(40) < 5)[1].startswith("5 labels in a class")
    assert on(agree[:40], np.arange(40) % 2)[1].startswith("none of the labels is of a row on which")
    assert on(differ[:40], np.arange(40) % 2)[0] is not None


def test_labels_are_drawn_mostly_where_judges_differ_and_each_row_can_be() -> None:
    rows = differing(N, passed=60, failed=40)
    strata, spreads = draw_strata(rows, np.array([0.5, 0.0, 0.5]))
    shares = np.bincount(strata, minlength=len(spreads)) * spreads
    differ = np.array([rows.differ[strata == code].any() for code in range(len(spreads))])
    assert (shares > 0.0).all() and shares[differ].sum() / shares.sum() == pytest.approx(0.75)
    assert np.allclose(shares[~differ], shares[~differ][0])  # of those where they agree each class alike


def test_a_plan_waits_for_fifteen_labels_of_each_class() -> None:
    """Hardly a row differs: fifteen labels of each of two equal classes set the number."""
    rows, outlook = (
        differing(4000, passed=2, failed=2),
        Outlook(0.0, 0.01, (0.5, 0.5), np.array([0.5, 0.0, 0.5])),
    )
    how: dict[str, Any] = {"strata": np.zeros(4000, dtype=np.int64), "sizes": lambda n: [n]}
    assert labels_needed(rows, outlook, margin=0.03, level=0.97, **how) == 30


def test_percentages_lose_what_their_scale_says() -> None:
    graded = two([0.0], [50.0], Scale.parse("percentage"), "mean_agreement")
    assert by_rows("mean_agreement", graded.scale) and by_rows("accuracy", BINARY)
    assert not by_rows("accuracy", Scale.parse("nominal")) and not by_rows("accuracy", graded.scale)
    assert not by_rows("kappa", BINARY)
    assert [end.tolist() for end in graded.ends(None)] == [[pytest.approx(-0.5)], [0.5]]


def test_the_bound_of_a_loss_by_hand() -> None:
    """Rows that are all alike have no spread: what is left is one more row that loses all."""
    c = t_quantile(0.9, N - 1)  # one-sided at 95%
    for apart in (0.0, 30.0):
        old = np.full(N, 50.0)
        worst = worst_loss(two(old, old + apart, TENS, "mean_agreement"), None, level=0.95)
        lost = 0.3 if apart else 0.0
        step = (lost**2 / N + 1 / N**2) / (lost + 1 / N)
        high = lost + c**2 * step / 2 + c * math.sqrt((c * step) ** 2 / 4)
        assert worst is not None and worst.high == pytest.approx(high) and worst.level == 0.95
    # By a macro metric half of the level goes to the shares of the classes, and a row of the rarest loses most.
    known = KnownClasses(np.array([2] * 300 + [0] * 100), np.arange(400))
    rare = mean_estimate([1.0] * 100 + [0.0] * 300, range(400), level=0.975).low
    same = worst_loss(differing(N, passed=0, failed=0), known, level=0.95)
    high = t_quantile(0.95, N - 1) ** 2 / N / (2 * (rare or 0.0))
    assert same is not None and same.high == pytest.approx(high) and same.level == 0.975
    thirds = KnownClasses(np.arange(300) % 3, np.arange(300))
    third = mean_estimate([1.0] * 100 + [0.0] * 200, range(300), level=1 - 0.1 / 3).low
    assert thirds.least(0.95) == pytest.approx([third] * 3) and thirds.shares == pytest.approx([1 / 3] * 3)
    few = worst_loss(two([50.0] * 9, [50.0] * 9, TENS, "mean_agreement"), None, level=0.95)
    ten = worst_loss(two([50.0] * 10, [50.0] * 10, TENS, "mean_agreement"), None, level=0.95)
    assert few is not None and few.high is None and ten is not None and ten.high is not None


def test_the_loss_on_drawn_labels_by_hand() -> None:
    """Of 400 rows the new judge fails 80 that the old one passed; 40 of these have labels, 25 of them a pass."""
    n, differ, m = 400, 80, 40
    rows = two(np.ones(n), np.where(np.arange(n) < differ, 0.0, 1.0), metric="accuracy")
    passes, chance = np.arange(m) < 25, np.where(np.arange(m) % 2, 0.5, 0.25)
    found = loss_on_labels(rows, LabelledRows(np.arange(m), passes * 1.0, chance), level=0.95)
    heavy = 1.0 / chance / (1.0 / chance).sum()
    right = float(heavy @ passes)
    assert found.loss.value == pytest.approx(differ / n * (2 * right - 1))
    variance = float((heavy**2 * (passes - right) ** 2).sum()) * m / (m - 1)
    effective = right * (1 - right) / max(variance, right * (1 - right) * float((heavy**2).sum()))
    of_rows = np.where(np.arange(n) < differ, 2 * right - 1, 0.0)
    sampled = float(of_rows.var()) / (n - 1)

    def ends(level: float) -> list[float]:
        t = t_quantile(level, m - 1)
        sides = zip((-1, 1), wilson(right, effective, t), strict=True)
        reach = [s * math.hypot(2 * differ / n * (end - right), t * math.sqrt(sampled)) for s, end in sides]
        return [differ / n * (2 * right - 1) + part for part in reach]

    assert [found.loss.low, found.loss.high] == pytest.approx(ends(0.95))
    assert found.upper == pytest.approx(ends(0.9)[1])
    assert (found.n_differ, found.classes, found.loss.n_groups, found.loss.n_unscored) == (m, (), m, 0)


def test_the_macro_loss_weighs_each_class_by_its_share_among_rows_like_these() -> None:
    """Labels are carried over to the rows with the same pair of verdicts; no label there, then all labels."""
    rows = differing(N, passed=100, failed=40)  # 900 and 960 agree to pass and to fail
    old, new = rows.reference, rows.candidate
    picked = {(1, 0): (30, 18), (0, 1): (20, 5), (1, 1): (40, 36), (0, 0): (30, 6)}
    at = [np.flatnonzero((old == pair[0]) & (new == pair[1]))[: n[0]] for pair, n in picked.items()]
    labels = np.concatenate([np.arange(n) < passes for n, passes in picked.values()]) * 1.0
    found = loss_on_labels(rows, LabelledRows(np.concatenate(at), labels, np.full(120, 0.1)), level=0.95)
    passing = (100 * 18 / 30 + 40 * 5 / 20 + 900 * 36 / 40 + 960 * 6 / 30) / N
    lost = (100 * 18 / 30 - 40 * 5 / 20) / passing / 2 - (100 * 12 / 30 - 40 * 15 / 20) / (1 - passing) / 2
    assert found.loss.value == pytest.approx(lost / N) and found.classes == (55, 65)


def test_the_interval_of_a_macro_loss_by_hand() -> None:
    """What can be lost by Wilson's, the shares of the classes by their derivative, by pair of verdicts; of rows
    to pass by both judges two have labels, of rows to fail by both none."""
    n, differ = 400, 100
    old = np.repeat([1.0, 1.0, 0.0], [differ, 200, 100])
    rows = two(old, np.where(np.arange(n) < differ, 0.0, old))
    at, right = np.arange(62), np.array([1.0] * 24 + [0.0] * 36 + [1.0, 0.0])
    at[60:] = [differ, differ + 1]
    found = loss_on_labels(rows, LabelledRows(at, right, np.full(62, 0.1)), level=0.95)
    every = right.mean()
    passing = 0.25 * 0.4 + 0.5 * 0.5 + 0.25 * every
    low, high = -0.5 / (1 - passing), 0.5 / passing  # what a row on which they differ loses at most, and wins
    value = 0.25 * (0.4 * high + 0.6 * low)
    assert found.loss.value == pytest.approx(value)
    t, total = t_quantile(0.95, 61), 0.25 * (high - low)
    ends = wilson(0.4, 59.0 * 60 / 60, t)
    of_rows = np.where(np.arange(n) < differ, 0.4 * high + 0.6 * low, 0.0)
    slope = np.array([-0.25 * 0.6 * low / (1 - passing), -0.25 * 0.4 * high / passing])  # of the two shares
    parts = [
        part * math.sqrt(k / max(1, k - 1)) * (np.array([1 - y, y]) - np.array([1 - rate, rate])) @ slope
        for y, part, k, rate in [
            *((y, 0.25 / 60, 60, 0.4) for y in right[:60]), *((y, 0.5 / 2, 2, 0.5) for y in right[60:])
        ]
    ]  # fmt: skip
    unseen = 0.5**2 * unseen_variance(2.0, slope.mean(), slope.tolist(), 0.35)
    unseen += 0.25**2 * unseen_variance(0.0, 0.0, slope.tolist(), 0.35)
    fixed = of_rows.var() / (n - 1) + np.square(parts).sum() * 62 / 61 + unseen
    reach = [math.hypot(total * (end - 0.4), t * math.sqrt(fixed)) for end in ends]
    assert [found.loss.low, found.loss.high] == pytest.approx([value - reach[0], value + reach[1]], rel=1e-3)


def test_a_verdict_that_is_missing_lies_farthest_on_any_scale() -> None:
    ordinal = Scale.parse("ordinal:1:5")
    pair = two([np.nan], [3.0], ordinal, "mean_agreement")
    assert [end.tolist() for end in pair.ends(None)] == [[-0.5], [-0.5]]


def test_strata_of_a_draw_by_hand() -> None:
    """Thirds of what can be lost; where judges agree a twentieth of the draw, by a macro metric a quarter."""
    apart = np.repeat([0.0, 10.0, 30.0, 40.0, 60.0, 90.0], 100)
    strata, spreads = draw_strata(two(np.zeros(600), apart, TENS, "mean_agreement"), None)
    assert strata.tolist() == np.repeat([0, 1, 1, 2, 2, 3], 100).tolist()
    wide = np.sqrt([(0.2**2 + 0.6**2) / 2, (0.8**2 + 1.2**2) / 2, 1.8**2])
    agreeing = (200 * wide[:2].sum() + 100 * wide[2]) * 0.05 / 0.95 / 100
    assert spreads == pytest.approx([agreeing, *wide])
    strata, spreads = draw_strata(differing(N, passed=60, failed=40), np.array([0.5, 0.0, 0.5]))
    assert np.bincount(strata).tolist() == [960, 940, 100]
    assert spreads == pytest.approx([200 / 3 / 2 / 960, 200 / 3 / 2 / 940, 2.0])


def test_an_outlook_by_hand() -> None:
    """Of 30 items that only the old judge passes 20 are right, of 10 that only the new one passes 7."""
    n, labels = 100, np.zeros(100)
    old, new = labels.copy(), labels.copy()
    old[:30], new[30:40] = 1.0, 1.0
    labels[:20], labels[30:37], labels[40:63] = 1.0, 1.0, 1.0  # half of all
    outlook = Outlook.of(two(old, new), labels)
    assert outlook.shares is not None and outlook.shares.tolist() == [0.5, 0.0, 0.5]
    assert list(outlook.places) == pytest.approx([21 / 32, 4 / 12])
    lost = np.repeat([1.0, -1.0, -1.0, 1.0, 0.0], [20, 10, 7, 3, 60])
    assert (outlook.loss, outlook.error) == pytest.approx((lost.mean(), math.sqrt(lost.var() / (n - 1))))
    assert outlook.planned(0.2) == pytest.approx(lost.mean() * 0.01 / (0.01 + outlook.error**2))
    assert replace(outlook, loss=-0.1).planned(0.2) == 0.0
    one = old * (np.arange(n) < 1)  # a single row differs, and none the other way
    assert list(Outlook.of(two(one, 0 * one, metric="accuracy"), labels).places) == pytest.approx(
        [2 / 3, 0.5]
    )


@pytest.mark.parametrize(("size", "margin"), [(1, 0.03), (2, 0.06)])
def test_a_plan_by_hand(size: int, margin: float) -> None:
    """The fewest labels whose error, for such losses of such questions, fits in what is left of the margin."""
    n, differ = 2000, 200
    old = np.where(np.arange(n) < differ, 1.0, 0.0)
    rows = VerdictPairs(old, np.zeros(n), np.arange(n) // size, BINARY, "accuracy")
    outlook = Outlook(0.01, 0.005, (0.4, 0.5), None)
    of_row = 4 * 0.4 * 0.6 / n**2
    together = 0.25 * (size - 1) * of_row * differ
    room = margin - outlook.planned(margin)

    def reach(m: int) -> float:
        spread = math.sqrt(1.1 * n / m * differ * of_row + together)
        return (t_quantile(2 * 0.97 - 1, m - 1) + 0.8416212335729143) * spread

    expected = next(m for m in range(10, n) if reach(m) <= room)
    options: dict[str, Any] = {"strata": np.zeros(n, dtype=np.int64), "sizes": lambda m: [m]}
    assert labels_needed(rows, outlook, margin=margin, level=0.97, **options) == expected
    assert labels_needed(rows, replace(outlook, loss=0.0), margin=0.5, level=0.97, **options) == 10
    assert labels_needed(rows, outlook, margin=0.012, level=0.97, **options) is None


# --- rows and the labels of a draw


def rows_of(n: int = 400, *, trained: frozenset[str] = frozenset(), answers: str = "said") -> UnlabelledRows:
    """20 labelled questions, and n rows of which two judges differ on every fifth; q3 of the rows is a known one."""
    known = [Item(f"k{at}", f"k{at}", f"known {at}?", "so", ()) for at in range(20)]
    ratings = tuple(Rating(item.item_id, "gold", float(at % 2)) for at, item in enumerate(known))
    gold = GoldSet("g", Path(), Card("g", BINARY), tuple(known), ratings, (), "")
    asked = ["known 3?" if at == 3 else f"new {at}?" for at in range(n)]
    items = [Item(f"r{at}", question, question, f"{answers} {at}", ()) for at, question in enumerate(asked)]
    said = [[at % 2, (at + (at % 5 == 0)) % 2] for at in range(n)]
    side = [float(at % 2) for at in range(20)]
    rows = UnlabelledRows.of(
        gold, "macro_agreement", ("old", "new"), (None, None), (known, [side, side]),
        zip(items, said, strict=True), where="recent.csv", trained=trained,
    )  # fmt: skip
    assert rows is not None
    return rows


def drawn_set(rows: UnlabelledRows, label: Any, *, n: int = 200, twice: bool = False) -> GoldSet:
    """A draw of the rows, labelled by what is given of each item; None of one that waits."""
    items = draw(rows.draws(), n, at_large=0.0).items
    ratings = [Rating(item.item_id, "ann", label(item)) for item in items if label(item) is not None]
    if twice:  # another rater says the opposite of the first
        ratings.append(Rating(ratings[0].item_id, "bob", 1.0 - (ratings[0].label or 0.0)))
    return GoldSet("drawn", Path(), Card("drawn", BINARY), items, tuple(ratings), (), "")


def by_old(item: Item) -> float:
    return int(item.item_id[1:]) % 2.0


def test_rows_on_questions_that_trained_a_judge_are_left_out_by_their_text_too() -> None:
    rows = rows_of(trained=frozenset({"k3"}))
    assert len(rows.items) == 399 and rows.n_left_out == 1
    on = rows.decide(margin=0.03, level=0.95)
    assert on.differ.share.n_expected == 400 and "(1 rows left out)" in on.why


def test_labels_of_other_texts_or_of_a_table_that_has_grown_are_refused() -> None:
    labels = drawn_set(rows_of(), by_old)
    assert len(rows_of().labelled(labels).at) == 200
    with pytest.raises(InputError, match="200 of its labelled items are none of these 400"):
        rows_of(answers="changed").labelled(labels)
    with pytest.raises(
        InputError, match="was drawn from 400 rows, and 0 of its labelled items are none of these 500"
    ):
        rows_of(500).labelled(labels)


def test_a_judge_under_another_name_and_rows_in_another_order_are_the_same_decision(tmp_path: Path) -> None:
    rows, labels = rows_of(), drawn_set(rows_of(), by_old)
    back = slice(None, None, -1)
    turned = replace(
        rows,
        items=rows.items[back],
        judges=("old-2", "new-2"),
        verdicts=(rows.verdicts[0][back], rows.verdicts[1][back]),
    )
    where = Experiment(tmp_path / "experiments" / "c", {"command": "migrate"})
    levels = [one.at_level(where, labels)["level"] for one in (rows, turned, rows)]
    assert levels == [pytest.approx(0.9696, abs=1e-4)] * 3


def test_labels_decide_which_way_the_new_judge_is() -> None:
    """Where the two differ the old one is right on all, or the new one."""
    rows = rows_of()
    for label, decision in ((by_old, "fail"), (lambda item: rows.verdicts[1][int(item.item_id[1:])], "pass")):
        drawn = rows.labelled(drawn_set(rows, label))
        assert rows.decide(margin=0.03, level=0.95, drawn=drawn).decision == decision


# --- the commands

OLD, NEW = "checks.py:old@python", "checks.py:new@python"
MIGRATE = ("migrate", "--lock", "judge.lock.json", "--to", NEW, "--on", "recent.csv", "--name", "m", "--json")


@pytest.fixture
def judged(workspace_dir: Path, judgecal: Run) -> Path:
    """Two judges that read their verdict from the answer, the old one locked on 300 labelled questions, and
    1,500 rows in `recent.csv`."""
    rng = np.random.default_rng(3)

    def world(n: int, name: str) -> tuple[Any, list[str]]:
        labels = rng.random(n) < 0.6
        differ = rng.random(n) < 0.08
        old = labels ^ (rng.random(n) < np.where(differ, 0.5, 0.08))
        verdicts = zip(old, old ^ differ, strict=True)
        return labels, [f"{name} {at} {'ny'[int(a)]}{'ny'[int(b)]}" for at, (a, b) in enumerate(verdicts)]

    checks = "def {}(answer: str) -> bool:\n    return answer[{}] == 'y'\n"
    (workspace_dir / "checks.py").write_text(checks.format("old", -2) + "\n\n" + checks.format("new", -1))
    labels, answers = world(300, "answer")
    items = [Item(f"g{at}", f"q{at}", f"asked {at}?", answer, ()) for at, answer in enumerate(answers)]
    card = Card("prod", BINARY, source="made", made_by="people", labels_by="people", sampling="random")
    ratings = [Rating(item.item_id, "ann", float(label)) for item, label in zip(items, labels, strict=True)]
    write_gold(card, items, ratings, workspace=find_workspace(workspace_dir))
    hidden, answers = world(1500, "said")
    with (workspace_dir / "recent.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "answer"])
        rows.writerows([f"new {at}?", answer] for at, answer in enumerate(answers))
    (workspace_dir / "hidden.json").write_text(
        json.dumps({f"new {at}?": bool(one) for at, one in enumerate(hidden)})
    )
    assert judgecal("score", "--gold", "prod", "--judge", OLD, "--name", "e").code == 0
    assert judgecal("select", "e").code == 0
    return workspace_dir


def fill(sheet: Path, hidden: dict[str, bool]) -> None:
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": "yes" if hidden[row["question"]] else "no"} for row in rows)


def test_from_rows_to_a_sheet_to_a_decision_that_costs_no_look_at_test(judgecal: Run, judged: Path) -> None:
    first = json.loads(judgecal(*MIGRATE).out)
    assert (first["decision"], first["decided_by"], first["differ"]["n"]) == ("inconclusive", "gold", 1500)
    assert stat.S_IMODE((judged / "experiments" / "m" / "rows.json").stat().st_mode) == 0o600
    following = first["headline"]["next"].split()
    assert following[:5] == ["judgecal", "gold", "sheet", "m", "--strata"] and "labels.csv" in following
    hidden = json.loads((judged / "hidden.json").read_text())
    assert judgecal(*following[1:]).code == 0
    fill(judged / "labels.csv", hidden)
    assert judgecal("gold", "import", "labels.csv", "--sheet", "--as", "labels").code == 0
    looks = judged / "experiments" / "test_looks.jsonl"
    before = [json.loads(line)["kind"] for line in looks.read_text().splitlines()]
    decided = json.loads(judgecal(*MIGRATE, "--labels", "labels").out)
    kinds = [json.loads(line)["kind"] for line in looks.read_text().splitlines()]
    assert kinds == [*before, "draw"]
    assert decided["on_rows"]["loss"]["level"] == pytest.approx(0.9696, abs=1e-4)
    # the same again is the same decision; an extended draw is another one, at the level of the second
    again = json.loads(judgecal(*MIGRATE, "--labels", "labels").out)
    assert again["on_rows"] == decided["on_rows"]
    extend = "gold sheet m --strata disagreement -n 60 --labels labels -o more.csv"
    assert judgecal(*extend.split()).code == 0
    chances = {one.inclusion_probability for one in load_gold(judged / "gold" / "labels").items}
    assert None not in chances and len(chances) <= 4
    fill(judged / "more.csv", hidden)
    assert judgecal("gold", "import", "more.csv", "--sheet", "--as", "labels").code == 0
    third = json.loads(judgecal(*MIGRATE, "--labels", "labels").out)
    assert third["on_rows"]["loss"]["level"] == pytest.approx(0.9924, abs=1e-4)
    assert third["on_rows"]["n_labels"] == decided["on_rows"]["n_labels"] + 60


def test_what_cannot_be_done_is_refused(judgecal: Run, judged: Path) -> None:
    refused = judgecal(*MIGRATE, "--labels", "prod")
    assert refused.code == 2 and "drawn with a recorded chance" in refused.err
    sheet = judgecal("gold", "sheet", "e", "--strata", "disagreement", "-n", "20", "-o", "sheet.csv")
    assert sheet.code == 2 and "e/rows.json: no rows without labels were kept" in sheet.err


def test_calls_that_were_lost_decide_nothing(
    judgecal: Run, judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would count as wrong, and that is not the judge's doing."""
    real, numbers = migrate_module.judgement_of, itertools.count()

    def first_lost(*arguments: Any) -> Any:
        lost = {} if next(numbers) else {"verdict": None, "error": Failure("budget", "spent")}
        return replace(real(*arguments), **lost)

    monkeypatch.setattr(migrate_module, "judgement_of", first_lost)
    found = json.loads(judgecal(*MIGRATE).out)
    assert (found["decision"], found["on_rows"]) == ("inconclusive", None)
    assert "1 calls were lost" in found["why"] and "--on" in found["headline"]["next"]
