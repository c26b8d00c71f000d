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
UNANSWERABLE = "The answer is not in the document."
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


def test_counts(starter: GoldSet) -> None:
    assert len(starter.items) == 220
    assert starter.n_groups(starter.items) == 110
    assert set(Counter(item.group for item in starter.items).values()) == {2}
    assert len(starter.documents) == 34
    assert len(starter.labels) == 220
    sizes = {split: len(starter.select(split)) for split in ("train", "dev", "test")}
    assert sizes == {"train": 58, "dev": 66, "test": 96}


def test_first_and_last_row(starter: GoldSet) -> None:
    first, last = starter.items[0], starter.items[-1]
    assert (first.item_id, first.group, first.answer) == (
        "starter-001",
        "q001",
        "Storm Ottiline flooded 187 homes in Penwarrow Quay.",
    )
    assert (last.item_id, last.group, last.tags) == ("starter-220", "q110", ("injection", "extra_detail"))
    assert (starter.labels[first.item_id], starter.labels[last.item_id]) == (0.0, 100.0)


def test_every_split_holds_every_tag(starter: GoldSet) -> None:
    assert dict(Counter(tag for item in starter.items for tag in item.tags)) == TAGS
    for split in ("train", "dev", "test"):
        counts = Counter(tag for item in starter.select(split) for tag in item.tags)
        assert min(counts[tag] for tag in TAGS) >= 3


def test_documents_are_as_long_as_they_say(starter: GoldSet) -> None:
    words = [len(document.text.split()) for document in starter.documents]
    assert (min(words), max(words)) == (286, 346)


def test_unanswerable_questions_name_no_document(starter: GoldSet) -> None:
    unanswerable = {item.group for item in starter.items if item.reference_answer == UNANSWERABLE}
    assert len(unanswerable) == 22
    for item in starter.items:
        assert bool(item.reference_documents) == (item.group not in unanswerable)


def test_labels_are_spread_and_in_steps_of_five(starter: GoldSet) -> None:
    assert {rating.label % 5 for rating in starter.ratings} == {0}
    shares = Counter(starter.labels.values())
    assert shares[100.0] / 220 <= 0.45
    assert shares[0.0] / 220 <= 0.35


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
