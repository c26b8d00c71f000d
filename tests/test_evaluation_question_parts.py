"""Systems on parts of the questions: tags, and classes of complexity."""

from __future__ import annotations

import pytest

from judgecal.errors import InputError
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.question_parts import (
    COMPLEXITY_RULE,
    KEY_WORDS,
    by_complexity,
    by_tag,
    complexity_of,
)
from tests.support.evaluated import measured_row

LONG = " ".join(["word"] * 21)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("When was the bridge built?", "simple"),
        ("How many spans has it?", "simple"),
        ("Show me everyone who knows.", "simple"),
        ("How was the bridge built?", "medium"),
        ("How many spans has it, and why?", "medium"),
        ("When was it built? Who paid?", "medium"),
        (LONG, "medium"),
        (" ".join(["word"] * 20), "simple"),
        ("Why was it built? Who paid?", "complex"),
        (f"Compare these: {LONG}", "complex"),
        (f"Why? What? {LONG}", "complex"),
    ],
)
def test_complexity(question: str, found: str) -> None:
    assert complexity_of(question) == found


def test_the_rule_names_its_words() -> None:
    assert all(word in COMPLEXITY_RULE for word in KEY_WORDS)


def questions() -> list[Question]:
    words = {0: "Why?", 1: "When?", 2: "Why? And what?"}
    tags = {0: ("a",), 1: ("a", "b"), 2: ()}
    return [Question(f"q{place}", words[place % 3], ("x",), (), tags[place % 3]) for place in range(36)]


def test_parts_by_hand() -> None:
    """Twelve questions a class; s is right on the simple ones, half right on the medium ones, unscored on the
    rest."""
    given = {0: 0.5, 1: 1.0, 2: None}
    rows = [measured_row("s", place, given[place % 3], latency_s=float(place % 3)) for place in range(36)]
    found = by_complexity(rows, questions())
    assert [(one.part, one.total.value) for one in found] == [
        ("simple", 1.0),
        ("medium", 0.5),
        ("complex", 0.0),
    ]
    assert [one.latency_s.mean for one in found] == [1.0, 0.0, 2.0]
    assert (found[2].total.n_expected, found[2].total.n_unscored) == (12, 12)
    tags = by_tag(rows, questions())
    assert [(one.part, one.total.value, one.total.n_expected) for one in tags] == [
        ("a", 0.75, 24),
        ("b", 1.0, 12),
    ]
    assert tags[0].total.low is not None and tags[0].total.low < 0.75


def test_few_questions_have_no_interval_and_unknown_ones_are_named() -> None:
    rows = [measured_row("s", place) for place in range(3)]
    assert by_tag(rows, questions())[0].total.low is None
    with pytest.raises(InputError, match="question q99 was measured, and is not among the questions"):
        by_tag([*rows, measured_row("s", 99)], questions())
