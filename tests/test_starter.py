"""The starter set is what its card and README say; a change of it must be meant."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from judgecal.goldset import GoldSet, check_gold, load_gold
from tests.support.command import ROOT

STARTER = ROOT / "gold" / "starter"


@pytest.fixture(scope="module")
def starter() -> GoldSet:
    return load_gold(STARTER)


def test_both_raters_rated_everything_and_nobody_is_called_human(starter: GoldSet) -> None:
    assert Counter(rating.rater for rating in starter.ratings) == {"curator_a": 220, "curator_b": 220}
    assert starter.card.labels_by == "project"
    a, b = (starter.ratings_by_rater[name] for name in ("curator_a", "curator_b"))
    assert max(abs(float(a[item]) - float(b[item])) for item in a) <= 10  # else a row of `gold` would be due


def test_the_rubric_is_the_one_that_the_labels_were_given_by(starter: GoldSet) -> None:
    digest = hashlib.sha256((STARTER / "RUBRIC.md").read_bytes()).hexdigest()
    assert starter.card.rubric_sha256 == digest


def test_every_finding_of_the_audit_is_explained_in_the_card(starter: GoldSet) -> None:
    assert {problem.kind for problem in check_gold(starter)} <= set(starter.card.explained)
