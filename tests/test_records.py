"""Records: rows in and out of JSON, shas, and the one shape of a number."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

import pytest

from judgecal import load_gold
from judgecal.engine.log import row_of
from judgecal.records import (
    Context,
    Estimate,
    Failure,
    Item,
    Judgement,
    Turn,
    as_plain,
    canonical_json,
    digest,
)

ITEM = Item(
    "i", "g", "q", "a", reference_answers=("r", "s"), contexts=(Context("c", document_id="d", score=0.5),)
)
JUDGEMENT = Judgement("i", "sha", "v3@m", "print", 0, 85.0, reasoning="because", cost_usd=0.5)


def test_alternatives_are_shown_in_one_line() -> None:
    assert ITEM.reference_answer == "r | s"
    assert replace(ITEM, reference_answers=()).reference_answer is None
    assert replace(ITEM, reference_answers=("",)).reference_answer == ""


# change of an item -> is a stored verdict stale?
CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({"question": "q2"}, True),
    ({"answer": ""}, True),
    ({"reference_answers": ("r | s",)}, True),
    ({"reference_answers": ()}, True),
    ({"contexts": (Context("c2"),)}, True),
    ({"contexts": (Context("c"),)}, False),
    ({"conversation": (Turn("user", "hi"),)}, True),
    ({"fields": {"tone": "formal"}}, True),
    ({"expect": {"include": ["x"]}}, True),
    ({"conversation": (), "fields": {}, "expect": {}, "inclusion_probability": 0.5}, False),
    ({"item_id": "j", "group": "h", "system": "x", "tags": ("t",), "reference_documents": ("d",)}, False),
]


@pytest.mark.parametrize(("change", "stale"), CHANGES)
def test_the_sha_follows_the_text_that_a_judge_may_see(change: dict[str, Any], stale: bool) -> None:
    assert len(ITEM.sha) == 16
    assert (replace(ITEM, **change).sha != ITEM.sha) == stale


def test_items_of_the_starter_keep_their_shas() -> None:
    """A new field of `Item` is no reason to pay for old judgements again."""
    items = load_gold("starter").items
    shas = {
        "starter-001": "599c3b06a6ac1118",
        "starter-002": "07a6e880cf058ff1",
        "starter-220": "7a7d6a8d1ca447fd",
    }
    assert {item.item_id: item.sha for item in items if item.item_id in shas} == shas
    all_of_them = "278149e51c2a6dfafdf30f5dd5b906060a85dad617d3ddbb0362e0c83c37c697"
    assert digest([[item.item_id, item.sha] for item in items]) == all_of_them


ROWS = [
    JUDGEMENT,
    replace(JUDGEMENT, verdict=None, error=Failure("parse", "no"), raw_reply="\ud800\x00"),
    replace(JUDGEMENT, verdict="spam", model_id="m-1", cached=True, attempts=0, unit="chunk:0"),
    replace(JUDGEMENT, verdict="A", unit="pair", order="ba", chances={"A": 0.9, "B": 0.1}),
]


@pytest.mark.parametrize("row", ROWS)
def test_a_judgement_comes_back_from_json(row: Judgement) -> None:
    assert row_of(json.dumps(row.as_json()).encode()) == row


def test_a_journal_line_has_the_fields_of_the_contract() -> None:
    names = (
        "item_id item_sha judge judge_fingerprint repeat verdict reasoning raw_reply error attempts "
        "latency_s prompt_tokens completion_tokens cost_usd model_id cached replied_at at unit order "
        "chances why_said"
    )
    assert set(JUDGEMENT.as_json()) == set(names.split())


def test_the_key_is_item_text_judge_repeat_unit_and_order() -> None:
    assert JUDGEMENT.key == ("i", "sha", "print", 0, "item", None)
    assert replace(JUDGEMENT, unit="chunk:3").key.unit == "chunk:3"
    assert replace(JUDGEMENT, order="ab").key != replace(JUDGEMENT, order="ba").key


def test_canonical_json_has_one_form() -> None:
    assert canonical_json({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'
    assert digest("é") == hashlib.sha256('"é"'.encode()).hexdigest()
    assert digest("\ud800") != digest("\ud801")
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(math.nan)


def test_a_result_as_json_holds_no_nan() -> None:
    plain = as_plain({"a": math.nan, "b": (math.inf, 1), "c": Estimate(None, reason="why"), 3: True})
    assert (plain["a"], plain["b"], plain["3"]) == (None, [None, 1], True)
    assert (plain["c"]["value"], plain["c"]["reason"]) == (None, "why")
    json.dumps(plain, allow_nan=False)
    with pytest.raises(TypeError, match="set has no JSON form"):
        as_plain({"a": {1}})


def test_an_estimate_has_the_keys_of_the_contract() -> None:
    names = "value low high level n n_expected n_groups n_unscored method reason"
    assert list(Estimate(1.0).as_json()) == names.split()


@pytest.mark.parametrize(
    ("low", "high", "clear"),
    [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False), (0.0, 0.1, False), (None, None, False)],
)
def test_an_interval_is_clear_of_zero_or_not(low: float | None, high: float | None, clear: bool) -> None:
    assert Estimate(0.1, low, high).clear_of_zero == clear
