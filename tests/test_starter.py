"""The starter set is what its card and README say; a change of it must be meant."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import pairwise

import pytest

from judgecal.goldset import GoldSet, check_gold, load_gold
from tests.support.command import ROOT

STARTER = ROOT / "gold" / "starter"
TAGS = {
    "answered_unanswerable": 24,
    "contradiction": 19,
    "exact": 18,
    "extra_detail": 20,
    "format_noise": 15,
    "injection": 20,
    "long_winded": 13,
    "negation": 32,
    "number_format": 28,
    "other_document": 20,
    "other_language": 14,
    "outside_knowledge": 15,
    "paraphrase": 20,
    "partial": 43,
    "refusal_on_answerable": 13,
    "refusal_on_unanswerable": 25,
    "terse": 33,
    "vague": 17,
    "wrong_fact": 39,
}


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


def test_the_readme_quotes_what_is_there(starter: GoldSet) -> None:
    text = (STARTER / "README.md").read_text(encoding="utf-8")
    for tag, count in TAGS.items():
        parts = [
            sum(tag in item.tags for item in starter.select(split)) for split in ("train", "dev", "test")
        ]
        assert f"| `{tag}` | {count} | {', '.join(map(str, parts))} |" in text
    cells = re.search(r"\| items \|([ \d|]+)\|\n", text)
    assert cells is not None
    edges = [0, 1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 101]
    counts = [sum(low <= label < high for label in starter.labels.values()) for low, high in pairwise(edges)]
    assert [int(cell) for cell in cells[1].split("|")] == counts
