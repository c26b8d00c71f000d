"""The metrics among the local judges: known values, edges, other scripts."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.judges import judge_named
from judgecal.judges.local._words import EDITION, NO_KEY_WORDS, key_words, words
from judgecal.judges.local.overlaps import supported
from judgecal.records import Context, Item, digest

GOLDEN = Path(__file__).parent / "golden" / "text_metrics.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
REFERENCE = ("wer", "token_f1", "rouge_l", "context_recall")
CONTEXT = ("context_precision", "context_recall", "faithfulness_overlap", "hallucination_overlap")
METRICS = (*REFERENCE, *CONTEXT[:1], *CONTEXT[2:], "relevancy_overlap", "document_recall", "recall_at_k")
HARBOUR = "The harbour wall was built in 1863 by Elias Crane. It cost forty thousand pounds."
ENDS = (
    "Dr. Crane came at 3.5 km. Was it e.g. cold? Yes!\n1. Wool sold.\n- Tin sold (twice).\n\nNo. 5 sank 14. "
    "Mai. 海は青い。空も。"
)
FERRY = "Ferries leave the northern quay every morning except Sundays."


def item(
    answer: str = "Elias Crane built the wall.",
    *references: str,
    contexts: tuple[str, ...] = (),
    question: str = "Who built the harbour wall?",
) -> Item:
    return Item(
        "i", "g", question, answer, reference_answers=references, contexts=tuple(map(Context, contexts))
    )


@functools.cache
def judge_of(name: str) -> Any:
    return judge_named(name if "@" in name else f"{name}@local")


def said(name: str, one: Item) -> tuple[float | None, str]:
    """Verdict and reason of a local judge."""
    reading = judge_of(name).verdict(one)
    return reading.verdict, reading.failure.message if reading.failure else reading.reasoning


def verdict(name: str, one: Item) -> float | None:
    return said(name, one)[0]


# --- known values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["answer"][:24] or "empty")
@pytest.mark.parametrize("name", ["wer", "token_f1", "rouge_l"])
def test_values_of_independent_implementations(name: str, case: dict[str, Any]) -> None:
    """jiwer's rate (turned, not below 0), SQuAD's script, rouge-score; the best of equal references."""
    found = verdict(name, item(case["answer"], *case["references"]))
    assert found == pytest.approx(case[name], abs=1e-9)


@pytest.mark.parametrize(
    ("answer", "contexts", "faithful", "real"),
    [
        ("Elias Crane built the wall in 1863.", (HARBOUR,), 100.0, 100.0),  # elias crane built wall 1863
        ("Elias Crane built the wall in 1863. Whales sang loudly.", (HARBOUR,), 50.0, 50.0),
        (
            "Elias Crane left on Sundays.",
            (HARBOUR, FERRY),
            100.0,
            100.0,
        ),  # 3 of 4: the contexts are taken together
        ("Elias Crane adored whales.", (HARBOUR,), 0.0, 100.0),  # 2 of 4: neither faithful nor made up
        ("The wall cost forty million dollars.", (HARBOUR,), 0.0, 100.0),  # 3 of 5: 0.6 is not above 0.6
        (
            "- Elias Crane built it\n- dolphins helped",
            (HARBOUR,),
            50.0,
            50.0,
        ),  # a point of a list is a sentence
    ],
)
def test_sentences_with_their_key_words_in_the_contexts(
    answer: str, contexts: tuple[str, ...], faithful: float, real: float
) -> None:
    one = item(answer, contexts=contexts)
    counted = [verdict(f"{name}_overlap(share=0.6)@local", one) for name in ("faithfulness", "hallucination")]
    assert counted == [faithful, real]


def test_words_of_one_sentence_and_beside_each_other_weigh_more_than_words_strewn_about() -> None:
    both = (HARBOUR, FERRY)
    told = item("Elias Crane built the harbour wall in 1863.", contexts=both)
    mixed = item("Elias Crane built forty quays every Sundays morning.", contexts=(*both, "Quays."))
    one, other = (verdict("faithfulness_overlap", each) for each in (told, mixed))
    # elias crane built harbour wall 1863: all there, all in one sentence; 4 of 7 pairs: elias crane, the harbour ...
    assert one == pytest.approx(100 * (1 + 1 + 4 / 7) / 3)
    # all 8 there; 3 in one sentence; of 7 pairs one: elias crane
    assert other == pytest.approx(100 * (1 + 3 / 8 + 1 / 7) / 3)
    assert verdict("hallucination_overlap", told) == one
    assert verdict("hallucination_overlap(rest=true)@local", told) == pytest.approx(100.0 - (one or 0.0))
    assert judge_of("hallucination(rest=true)@local").name == "hallucination_overlap(rest=true)@local"


def test_contexts_that_the_answer_takes_up_over_k() -> None:
    one = item(
        "Elias Crane built the harbour wall in 1863", contexts=(FERRY, "the harbour wall", HARBOUR, HARBOUR)
    )
    assert said("recall_at_k", one)[0] == 75.0  # "the harbour wall" in three of four
    assert said("recall_at_k(k=2)@local", one) == (50.0, f"1 of 2 contexts; not: {FERRY}")
    assert verdict("recall_at_k(k=8)@local", one) == pytest.approx(37.5)
    assert verdict("recall_at_k", item("Crane", contexts=(HARBOUR, FERRY))) == 50.0
    assert verdict("recall_at_k", item("?", contexts=(FERRY,))) is None
    against = replace(one, reference_answers=("Ferries leave the northern quay",))
    assert verdict("context_precision(k=1)@local", against) == 100.0
    assert verdict("context_precision(against=answer, k=1)@local", against) == 0.0
    assert (
        judge_of("context_precision(against=answer, k=all)@local").name
        == "context_precision(against=answer)@local"
    )
    with pytest.raises(InputError, match="k must be a whole number from 1, or all"):
        judge_named("recall_at_k(k=0)@local")


def test_a_threshold_stands_in_the_name() -> None:
    one = item("Elias Crane adored whales.", "Elias Crane built the wall in 1863", contexts=(HARBOUR, FERRY))
    assert verdict("faithfulness_overlap(share=0.4)@local", one) == 100.0
    assert verdict("hallucination_overlap(share=0.4)@local", one) == 0.0
    # The harbour's 10 key words and the reference's 5 have 5 in common: 5 / 10.
    assert key_words(HARBOUR) == frozenset(
        words("harbour wall built 1863 elias crane cost forty thousand pounds")
    )
    assert verdict("context_precision(overlap=0.49)@local", one) == 50.0
    assert verdict("context_precision(overlap=0.5)@local", one) == 0.0


def test_the_share_of_a_reference_that_the_contexts_hold() -> None:
    text = "the wall was built in 1863 by John"  # 6 trigrams, the first and the last are not in the context
    assert verdict("context_recall", item("x", text, contexts=(FERRY, HARBOUR))) == pytest.approx(400 / 6)
    assert (
        verdict("context_recall", item("x", text, "Elias Crane", contexts=(HARBOUR,))) == 100.0
    )  # the best of both
    assert verdict("context_recall", item("x", "Crane Elias", contexts=(HARBOUR,))) == 0.0


def test_the_share_of_a_question_that_the_answer_takes_up() -> None:
    assert verdict("relevancy_overlap", item("Elias Crane built the wall.")) == pytest.approx(200 / 3)
    assert verdict("relevancy_overlap", item("Ferries leave early.")) == 0.0


def test_the_share_of_the_reference_documents_that_were_retrieved() -> None:
    one = replace(item(), reference_documents=("a", "b"), contexts=(Context("x", "b"), Context("y", "c")))
    assert said("document_recall", one) == (50.0, "1 of 2 reference documents; not: a")
    assert verdict("document_recall", replace(one, reference_documents=("b", "b"))) == 100.0
    assert verdict("document_recall", replace(one, contexts=())) == 0.0


# --- edges --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    "one",
    [
        item("", "Paris", contexts=(HARBOUR,)),
        item("?!", "...", contexts=("",), question="?"),
        item("", ""),
        item(),
        item("a" * 200_000, "b " * 50_000, contexts=("\n" * 10_000, "." * 100_000)),
        item("\ud800", "\ud800", contexts=("\ud800 \x00",), question="\ud800"),
    ],
    ids=["empty answer", "no words", "nothing", "no references or contexts", "long", "half characters"],
)
def test_a_verdict_or_a_reason(name: str, one: Item) -> None:
    found, why = said(name, one)
    assert (found is None and why) or (found is not None and 0.0 <= found <= 100.0)


@pytest.mark.parametrize(
    ("name", "one", "found"),
    [
        *((name, item("", "Paris", contexts=(HARBOUR,)), 0.0) for name in REFERENCE),
        ("faithfulness_overlap", item("", contexts=(HARBOUR,)), "no sentence of the answer has a key word"),
        (
            "hallucination_overlap",
            item("Yes.", contexts=(FERRY,)),
            "no sentence of the answer has a key word",
        ),
        *((name, item("Paris is big", "Paris"), 0.0) for name in CONTEXT[1:]),  # nothing holds it
        ("context_precision", item("Paris", "Paris"), "the item has no contexts"),
        *(
            (name, item("Paris", contexts=(FERRY,)), "the item has no reference_answers")
            for name in REFERENCE
        ),
        ("wer", item("Paris", "?"), "no reference answer holds a word"),
        ("relevancy_overlap", item("Paris", question="Who?"), "the question has no key word"),
        ("document_recall", item(), "the item has no reference documents"),
        (
            "document_recall",
            replace(item(), reference_documents=("a",), contexts=(Context("x"),)),
            "the item has no contexts with a document_id",
        ),
    ],
)
def test_nothing_to_count_is_unscored_with_its_reason_or_0(name: str, one: Item, found: float | str) -> None:
    value, why = said(name, one)
    assert value == found if isinstance(found, float) else (value is None and found in why)


# --- other scripts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Größe, ＡＢＣ — naïve!", ["grösse", "abc", "naïve"]),  # folded: case, full width
        ("हिन्दी में", ["हिन्दी", "में"]),  # vowel signs are marks on letters
        ("東京タワーは高い。", list("東京タワーは高い")),  # Han and kana stand for themselves
        ("서울은 크다", ["서울은", "크다"]),
        ("ภาษาไทย", ["ภาษาไทย"]),  # not taken apart
        ("don't 3.5 U.S.", ["don", "t", "3", "5", "u", "s"]),
    ],
)
def test_words_of_many_scripts(text: str, found: list[str]) -> None:
    assert words(text) == [one for part in found for one in words(part)] and len(words(text)) == len(found)


def test_languages_without_spaces() -> None:
    assert verdict("token_f1", item("東京都", "東京")) == pytest.approx(80.0)
    assert verdict("wer", item("東京都", "東京")) == 50.0
    assert [round(one.held, 2) for one in supported("東京は高い。海は青い。", ("東京は高い",))] == [1.0, 0.5]
    assert verdict("token_f1", item("ภาษาไทยดี", "ภาษาไทย")) == 0.0  # a phrase of Thai is one word


def test_what_is_no_key_word_is_part_of_the_metrics() -> None:
    """Sentences and key words come from modules whose texts no fingerprint covers: raise EDITION where this
    changes."""
    told = [sorted(NO_KEY_WORDS), [one.text for one in supported(ENDS, ())]]
    assert (EDITION, digest(told)[:16]) == (4, "c82e0dec2cac9c5c")
