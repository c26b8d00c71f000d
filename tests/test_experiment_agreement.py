"""Agreement by tag and system, both ends of the unscored, repeats and the alternative annotator test beside a
judge."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from judgecal.experiment import agreement_table as agreement_module
from judgecal.experiment.agreement import Entry, constant_entry, entry, judge_entry
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.people import EPSILONS, alt_tests
from judgecal.goldset import GoldSet, load_gold
from judgecal.records import Failure, Judgement
from judgecal.scale import Label, Scale
from judgecal.stats import alt_test
from judgecal.workspace import Workspace
from tests.support.gold import made_gold, made_items


def test_no_map_is_fitted_for_a_constant(gold: GoldSet, monkeypatch: pytest.MonkeyPatch) -> None:
    table = AgreementTable(gold, gold.select("open"))
    found = constant_entry(table)
    assert found.calibrated == found.agreement and found.calibrated["skill"].value == 0.0

    def fit(*_: object, **__: object) -> None:
        raise AssertionError("a map of a constant")

    monkeypatch.setattr(agreement_module, "cross_fit", fit)
    assert constant_entry(table) == found


# --- a judge's entry


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    """40 questions of three answers, two raters, tags and systems."""
    rows = made_items(40)
    for number, row in enumerate(rows):
        row["tags"] = [row["kind"], *(["odd"] if number % 2 else [])]
        row["system"] = f"s{number % 2}"
    labels = {"full": 100.0, "half": 50.0, "none": 0.0}
    ratings: list[tuple[str, str, Label]] = [
        (row["item_id"], rater, labels[row["kind"]]) for row in rows for rater in ("ann", "bob")
    ]
    scale = 'kind = "percentage"\nmin = 0\nmax = 100\npass_at = 75'
    return load_gold(made_gold(workspace.gold / "made", rows, ratings, scale=scale), workspace=workspace)


def rows_of(gold: GoldSet, verdicts: Sequence[Sequence[Label | None]], **more: Any) -> list[Judgement]:
    failed = Failure("parse", "no verdict")
    return [
        Judgement(item.item_id, item.sha, "j", "f", n, v, error=failed if v is None else None, **more)
        for item, row in zip(gold.items, verdicts, strict=True)
        for n, v in enumerate(row)
    ]


def judged(
    gold: GoldSet, verdicts: Sequence[Sequence[Label | None]], scale: str | None = None, **more: Any
) -> tuple[AgreementTable, Verdicts]:
    """A judge's verdicts, of as many repeats as they have, and the table of all items."""
    column = Verdicts("j", Scale.parse(scale) if scale else gold.scale, rows_of(gold, verdicts, **more))
    return AgreementTable(gold, gold.items, max(map(len, verdicts))), column


def test_an_entry_and_what_explains_it(gold: GoldSet) -> None:
    """Raw it passes full and half answers alike, with 90 and 80 in turn; no map takes them apart."""
    verdicts: list[list[Label | None]] = [[90.0], [80.0], [0.0], [80.0], [90.0], [0.0]] * 20
    table, column = judged(gold, verdicts)
    found = judge_entry(table, column)
    plain = entry(Entry, table, column).as_json()
    assert {key: value for key, value in found.as_json().items() if key in plain} == plain
    mapped = table.calibrated(column)[:, 0].tolist()
    # Two raters who always agree: the judge is as close only where it says the same once calibrated.
    human, *others = alt_tests(table, column)
    assert [test.winning_rate for test in (human, *others)] == [0.0, 0.0, 0.0]
    same = [a == b for a, b in zip(mapped, [100, 50, 0] * 40, strict=True)]
    assert human.advantage_probability == pytest.approx(np.mean(same))
    assert human.n_items == {"ann": 120, "bob": 120}
    assert found.retest is None
    assert json.dumps(human.passed)


def test_an_entry_with_repeats_and_failures(gold: GoldSet) -> None:
    """Once calibrated the half answer's second call is a full one's; the first is right."""
    verdicts: list[list[Label | None]] = [[100.0, 100.0], [60.0, 100.0], [0.0, None]] * 40
    table, column = judged(gold, verdicts)
    found = judge_entry(table, column)
    retest = found.retest
    assert (retest.repeats, retest.n_items) == (2, 80)
    assert (retest.exact_agreement.value, retest.flip_rate.value) == (0.5, 0.5)
    # squares 0 and 1250, one degree of freedom each
    # As wrong, repeat by repeat: strata 1, 0.9 and 1; then 1, 0.5 and 0. Calibrated the first is right.
    assert found.as_wrong["macro_agreement"].value == pytest.approx((2.9 / 3 + 1.5 / 3) / 2)
    assert found.calibrated["macro_agreement"].value == pytest.approx((3.0 / 3 + 1.5 / 3) / 2)


def test_the_alternative_annotator_test_is_that_of_stats(gold: GoldSet) -> None:
    rng = np.random.default_rng(0)
    ratings = [
        dataclasses.replace(rating, label=float(np.clip(rating.label + rng.integers(-20, 21), 0, 100)))
        for rating in gold.ratings
        if isinstance(rating.label, float)
    ]
    people = dataclasses.replace(gold, ratings=tuple(ratings))
    said = [float(np.clip(label + rng.integers(-15, 16), 0, 100)) for label in (100, 50, 0) * 40]
    # The second repeat is another judge altogether: one call is what the test is about, and it once
    # calibrated.
    table, column = judged(people, [[v, 0.0] for v in said])
    tests = alt_tests(table, column)
    said = np.nan_to_num(AgreementTable(people, people.items).calibrated(column)[:, 0]).tolist()
    groups = {item.item_id: item.group for item in people.items}
    for found, epsilon in zip(tests, EPSILONS, strict=True):
        verdicts: dict[str, float] = dict(zip(groups, said, strict=True))
        how: dict[str, Any] = {"scale": people.scale, "epsilon": epsilon, "groups": groups}
        direct = alt_test(people.ratings_by_rater, verdicts, **how)
        assert found.winning_rate == direct.winning_rate
        assert found.p_values == pytest.approx(direct.p_values)
        assert found.advantage_probability == pytest.approx(direct.advantage_probability)
        assert found.nearer == direct.nearer


@pytest.mark.parametrize(
    ("people", "judge", "labels", "verdicts"),
    [
        ('kind = "binary"', "percentage", (1, 0, 0), (60.0, 40.0, 0.0)),  # cut at 50
        ('kind = "binary"\npass_at = 70', "percentage", (1, 0, 0), (70.0, 69.0, 0.0)),
        ('kind = "ordinal"\nmin = 0\nmax = 4', "percentage", (4, 2, 0), (100.0, 50.0, 0.0)),
        ('kind = "percentage"\nmin = 0\nmax = 100', "ordinal:1:5", (100, 50, 0), (5.0, 3.0, 1.0)),
        ('kind = "nominal"\ncategories = ["a", "b"]', "nominal", ("a", "b", "b"), ("a", "b", "b")),
    ],
)
def test_labels_and_verdicts_meet_on_one_scale(
    workspace: Workspace, people: str, judge: str, labels: Sequence[Label], verdicts: Sequence[Label]
) -> None:
    """Whatever the two scales, a judge that says what both raters say is as close as they are on every
    item."""
    gold = two_raters(workspace, people, labels)
    table, column = judged(gold, [[verdict] for verdict in verdicts] * 12, judge)
    human = alt_tests(table, column)[-1]
    assert (human.epsilon, human.advantage_probability, human.winning_rate) == (0.1, 1.0, 1.0)


def two_raters(workspace: Workspace, scale: str, labels: Sequence[Label]) -> GoldSet:
    """Twelve questions of three answers, on whose labels both raters agree."""
    rows, by_kind = made_items(12), dict(zip(("full", "half", "none"), labels, strict=True))
    ratings = [(row["item_id"], rater, by_kind[row["kind"]]) for row in rows for rater in ("ann", "bob")]
    return load_gold(made_gold(workspace.gold / "scaled", rows, ratings, scale=scale), workspace=workspace)


def test_a_word_that_the_card_does_not_list_is_only_wrong(workspace: Workspace) -> None:
    gold = two_raters(workspace, 'kind = "nominal"\ncategories = ["a", "b"]', "aaa")
    human, *_ = alt_tests(*judged(gold, [["zebra"], ["a"], ["a"]] * 12, "nominal"))
    assert human.advantage_probability == pytest.approx(2 / 3)


def test_repeats_that_were_not_given_have_no_verdict(gold: GoldSet) -> None:
    """A judge asked once beside one asked three times."""
    table, column = judged(gold, [[float(n)] for n in range(120)])
    three = dataclasses.replace(table, repeats=3)
    verdicts = three.verdicts(column)
    assert verdicts.shape == (120, 3) and verdicts[7, 0] == 7.0 and np.isnan(verdicts[:, 1:]).all()
    assert as_lists(verdicts[:2]) == [[0.0, None, None], [1.0, None, None]]
    assert as_lists(np.array([["a", None]], dtype=object)) == [["a", None]]
    assert as_lists(np.array([[1.0, 2.0]])) == [[1.0, 2.0]]
