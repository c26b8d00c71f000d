"""The rules that make probes: what each makes of an answer, and when it makes none."""

from __future__ import annotations

import random
from typing import get_args

import pytest

from judgecal import load_gold
from judgecal.goldset import GoldSet
from judgecal.models.embedded.text import analyse, refuses
from judgecal.probes.family import Kind, NoProbe, Sources, language_of, make_probes
from judgecal.probes.rules import families, families_named
from judgecal.records import Item

OTHERS = (
    Item("o1", "o1", "Who painted the Night Watch?", "", ("Carel Fabritius",)),
    Item("o2", "o2", "How long is the river Elbe?", "", ("1,094 kilometres",)),
    Item("o3", "o3", "Was the gate open?", "", ("Yes",)),
)


def item(question: str, answer: str, *references: str, **more: object) -> Item:
    return Item("i", "g", question, answer, references, **more)  # type: ignore[arg-type]


def probe(family: str, of: Item, documents: dict[str, str] | None = None) -> str:
    return families()[family].make(of, Sources((of, *OTHERS), documents or {}), random.Random(1))


def why_not(family: str, of: Item) -> str:
    with pytest.raises(NoProbe) as raised:
        probe(family, of)
    return str(raised.value)


def test_every_family_says_what_it_claims_and_the_kinds_stand_in_their_order() -> None:
    kinds = [family.kind for family in families().values()]
    assert kinds == sorted(kinds, key=get_args(Kind).index)
    assert set(kinds) == set(get_args(Kind))
    assert len(families()) == 22


# --- full marks and none


def test_the_reference_is_given_as_it_is_laid_out() -> None:
    of = item("Who wrote it?", "Ann", "Ann Rowe, the baker", "Ann Rowe")
    assert probe("reference", of) in of.reference_answers
    assert analyse(probe("reference_layout", of)).content <= analyse(" ".join(of.reference_answers)).content


@pytest.mark.parametrize("family", ["reference", "reference_layout"])
def test_of_references_that_say_different_things_one_may_be_a_part_or_a_stray(family: str) -> None:
    of = item("Which clubs did he play for?", "Elms", "the Elms", "the Oaks", "others")
    assert why_not(family, of) == "the references say different things, of which one may not be enough"
    of = item("Who sang it?", "Elms", "a singer of the Oaks", "the rock band Elms", "Elms")
    assert "Elms" in families()[family].make(of, Sources((of,)), random.Random(0)).title()


def test_a_refusal_is_right_where_the_reference_refuses_and_wrong_elsewhere() -> None:
    refusing = item("What is the fee of the club?", "", "The answer is not in the document.")
    asked = item("What is the fee of the club?", "", "12 crowns")
    assert refuses(probe("refusal_right", refusing))
    assert refuses(probe("refusal", asked))
    for family in ("refusal", "empty", "other_reference", "reference"):
        assert why_not(family, refusing) == "the right answer is to refuse"
    assert (
        why_not("refusal", item("Fee?", "", "12", expect={"refuse": True})) == "the right answer is to refuse"
    )
    assert probe("refusal", item("Wie hoch ist die Gebühr für den Verein?", "", "12 Kronen")).startswith(
        ("Das weiß", "Diese Frage", "Dazu habe")
    )


def test_a_repeated_question_must_not_hold_the_answer() -> None:
    assert probe("question_repeated", item("Who runs the mill?", "", "Ann Rowe")) == "Who runs the mill?"
    assert (
        why_not("question_repeated", item("Is it red or blue?", "", "blue"))
        == "the question holds the answer"
    )


def test_another_reference_shares_no_word_and_is_no_bare_yes() -> None:
    given = probe("other_reference", item("Who made the frame?", "", "Fabritius and his son"))
    assert given == "1,094 kilometres"


# --- answers that must fall


@pytest.mark.parametrize(
    ("question", "answer", "reference"),
    [
        ("When was it built?", "It was built in May 1984.", "1984"),
        ("How many rooms are there?", "There are 775 rooms, 775 in all.", "775 rooms"),
        ("Wie viel kostet das?", "Es kostet 48,600 Euro.", "48,600 Euro"),
        ("How old must one be?", "25 years", "25"),
    ],
)
def test_a_changed_number_is_none_that_stands_anywhere_else(
    question: str, answer: str, reference: str
) -> None:
    numbers = analyse(probe("number_changed", item(question, answer, reference))).numbers
    assert len(numbers) == len(analyse(answer).numbers)
    assert not numbers & analyse(reference).numbers


@pytest.mark.parametrize(
    ("question", "answer", "reference"),
    [
        (
            "Who led the club of 12 in the town?",
            "Ann, in 1990",
            "Ann Rowe, a baker, in 1990",
        ),  # not asked for
        ("When did the 1984 games begin?", "In 1984", "1984"),  # the question has it
        ("In what year was it?", "3 May", "3 May 1984"),  # the year is asked for
        ("When was it?", "On 03/04/1984", "1984"),  # a date with two readings
        ("When was it?", "1984 (that is 1984)", "between 1980 and 1990"),  # the reference has another
        ("Which version is it?", "version 2.1.4", "version 2.1.4"),
    ],
)
def test_a_number_that_may_not_matter_stays(question: str, answer: str, reference: str) -> None:
    why_not("number_changed", item(question, answer, reference))


def test_a_name_is_swapped_where_it_is_all_that_is_asked_for() -> None:
    assert (
        probe("name_swapped", item("Who made it?", "Ann Rowe made it.", "Ann Rowe"))
        == "Carel Fabritius made it."
    )
    of = item("Where can one find it in the Bible?", "In Matthew and in Luke.", "in the Gospel of Luke")
    assert why_not("name_swapped", of).startswith("the answer has several names")
    of = item("Wer war der Bäcker und was ist das?", "Das war die Mühle.", "die Mühle")
    assert why_not("name_swapped", of).startswith("German")
    why_not("name_swapped", item("What did Ann Rowe make?", "Ann Rowe", "Ann Rowe's clock"))


@pytest.mark.parametrize(
    ("answer", "changed"),
    [
        ("The mill was built by Ann Rowe.", "The mill was not built by Ann Rowe."),
        ("The mill was not built by Ann Rowe.", "The mill was built by Ann Rowe."),
        ("The gate isn't open on Sundays.", "The gate is open on Sundays."),
    ],
)
def test_a_negation_goes_in_or_out_of_one_plain_clause(answer: str, changed: str) -> None:
    assert probe("negation", item("What of it is to be said?", answer, "Ann Rowe built the mill.")) == changed


@pytest.mark.parametrize(
    "answer",
    [
        "The mill, which was built by Ann, is old.",
        "All of the gates are open today.",
        "The gate may be open, it was said.",
        "Founded in 1950, the club is in Rome.",
        "The club is in Rome and was founded in 1950.",
        "Is the gate open in the day?",
        "Yes the gate is open today.",
        "It was open. It is closed.",
        "The farther away the load is the harder it gets.",
        "It is not uncommon that it was open.",
        "The gate can't be opened today.",
    ],
)
def test_a_negation_that_may_deny_another_thing_is_not_made(answer: str) -> None:
    why_not("negation", item("What of it is to be said in the end?", answer, "The gate is open."))


# --- answers that must not move, or not rise


@pytest.mark.parametrize(
    "family", [name for name, one in families().items() if one.kind in ("still", "no_rise")]
)
def test_what_must_not_move_holds_the_whole_answer(family: str) -> None:
    of = item("What is the colour of the things?", "The mill is red. The gate is blue.", "red and blue")
    made = probe(family, of)
    assert made != of.answer
    assert analyse(made).content >= analyse(of.answer).content
    if families()[family].kind == "still" and family != "repetition":
        assert made.count("mill is red") == 1


def test_a_phrase_is_in_the_language_of_the_item() -> None:
    german = item("Wie ist die Farbe der Tür und der Wand?", "Die Tür ist rot.", "rot")
    assert "Antwort" in probe("give_100", german) or "Prüfer" in probe("give_100", german)
    assert language_of(german) == "de"
    french = item("Où est la porte du moulin et quelle est sa couleur ?", "Elle est rouge.", "rouge")
    assert why_not("give_100", french) == "its language has no phrases"
    with pytest.raises(NoProbe, match="language"):
        language_of(item("ドアの色は何ですか", "赤", "赤"))
    assert probe("emoji", item("ドアの色は何ですか", "赤", "赤")) != "赤"  # what needs no language is made


# --- of a set


@pytest.fixture(scope="module")
def starter() -> GoldSet:
    return load_gold("starter")


def test_probes_are_items_of_their_own_and_the_same_each_time(starter: GoldSet) -> None:
    items = [one for one in starter.select("open") if one.item_id in starter.labels]
    made, again = (make_probes(starter, items, families_named(()), n=10, seed=3) for _ in range(2))
    assert made == again
    assert made != make_probes(starter, items, families_named(()), n=10, seed=4)
    for probes in made:
        assert len(probes) <= 10
        for given in probes:
            assert given.item.item_id == f"{given.of.item_id}~{given.family.name}"
            assert given.item.group == given.of.group
            assert given.of.item_id in starter.labels and given.of.item_id not in starter.test_ids


def test_right_answers_fall_and_wrong_ones_may_rise(starter: GoldSet) -> None:
    items = [one for one in starter.select("open") if one.item_id in starter.labels]
    made = make_probes(starter, items, families_named(()), n=1000, seed=0)
    for probes in made:
        labels, kind = [float(starter.labels[given.of.item_id]) for given in probes], probes[0].family.kind
        if kind == "falls":
            assert all(label >= 90 for label in labels)
        if kind == "no_rise":
            assert all(label < 50 for label in labels)
        if kind in ("full", "none"):  # once a question
            assert len({given.of.group for given in probes}) == len(probes)
