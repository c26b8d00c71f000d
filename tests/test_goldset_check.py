"""The audit of `gold check`: each family of findings on a set made for it, what is left alone, and the
speed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.goldset import Card, GoldDocument, GoldSet, Problem, RaterCard, check_gold, load_gold
from judgecal.goldset.wording import sentences
from judgecal.records import Context, Item, Rating
from judgecal.scale import Label, Scale
from judgecal.workspace import Workspace
from tests.support.command import Run
from tests.support.gold import made_gold, made_items, rated

LONG = (
    "The council voted on Thursday evening to raise the old sea wall along the harbour, because the storm "
    "had shown everybody in the lower town that the present one is far too low for the tides of autumn and "
    "winter, and it wants the work to be finished before the children go back to school"
)


def build(
    items: Sequence[Item],
    labels: dict[str, dict[str, Label]] | None = None,
    *,
    scale: Scale | None = None,
    documents: Sequence[GoldDocument] = (),
    explained: dict[str, str] | None = None,
    ratings: Sequence[Rating] = (),
) -> GoldSet:
    """A set of `rater -> item -> label`; without labels one rater gives every item the label 100."""
    given = labels or ({} if ratings else {"a": {item.item_id: 100.0 for item in items}})
    rows = [
        *ratings,
        *(Rating(i, rater, label) for rater, rated in given.items() for i, label in rated.items()),
    ]
    card = Card(
        name="made",
        scale=scale or Scale.parse("percentage"),
        version="1",
        licence="MIT",
        source="s",
        made_by="m",
        raters={row.rater: RaterCard("w") for row in rows},
        explained=explained or {},
    )
    return GoldSet("made", Path("made"), card, tuple(items), tuple(rows), tuple(documents), "0" * 64)


def found(gold: GoldSet, kind: str, *, workspace: Workspace | None = None) -> list[Problem]:
    return [problem for problem in check_gold(gold, workspace=workspace) if problem.kind == kind]


def item(name: str, answer: str, *, question: str = "Who won?", group: str = "g", **more: Any) -> Item:
    return Item(name, group, question, answer, **more)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "212 homes were flooded.",
            "**212 homes** were flooded!",
        ),  # case, punctuation and markup are no difference
        ("The ferry sails at noon", "ferry sails at noon."),  # nor is an English article
        ("", " "),
    ],
)
def test_duplicates(first: str, second: str) -> None:
    (problem,) = found(build([item("1", first), item("2", second)]), "duplicate")
    assert problem.where == "1, 2"
    assert "2 items have the same answer" in problem.message and "labelled 100" in problem.message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LONG, LONG.replace("Thursday", "Thursday the 14th")),  # another number
        (LONG, LONG.replace("is far too", "is not far too")),  # a negation
        (LONG, LONG.replace("autumn", "spring")),
    ],
)
def test_minimal_pairs_are_no_duplicates(first: str, second: str) -> None:
    assert not found(build([item("1", first), item("2", second)]), "duplicate")


def test_duplicates_only_where_the_same_is_asked() -> None:
    other = item("2", LONG, contexts=(Context("another passage"),))
    assert not found(build([item("1", LONG), other]), "duplicate")
    assert not found(build([item("1", LONG), item("2", LONG, question="Why?")]), "duplicate")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("Dr. Asgood paid 3.5 crowns at 9.40 p.m. on Sunday.", 1),
        ("Mr. Piet A. Brandel came, i.e. he was there.", 1),
        ("It says 'no.' Then it says (yes.) And then?", 3),
        ("no end", 1),
        ("Room No. 5. It is shut. The answer is no. Yes.", 4),
        ("1. Take the train. 2. Hand it in.", 2),
        ("Am 14. November kam der Sturm. Er ging am 15.", 2),
        ("", 0),
        ("第一。第二。", 2),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert len(sentences(text)) == count


def test_documents() -> None:
    named = item("1", "x", reference_documents=("d1",))
    (problem,) = found(build([named]), "no_documents")
    assert "1 items name 1 reference documents (d1)" in problem.message
    assert not found(build([named], documents=[GoldDocument("d1", None, "A text.")]), "no_documents")


def leaky(tmp_path: Path, gold: GoldSet) -> Workspace:
    """A workspace whose signature quotes the set's first dev question and whose program its first test
    question."""
    dev, test = gold.select("dev")[0], gold.select("test")[0]
    (tmp_path / "signatures").mkdir()
    (tmp_path / "gold").mkdir()
    docstring = f'"""Rate.\n\n    - Question: {dev.question} -> 9.\n    """'
    (tmp_path / "signatures" / "mine.py").write_text(
        f"import dspy\n\n\nclass Mine(dspy.Signature):\n    {docstring}\n", encoding="utf-8"
    )
    (tmp_path / "signatures" / "broken.py").write_text("class (", encoding="utf-8")
    run = tmp_path / "experiments" / "optimize-made"
    run.mkdir(parents=True)
    program = {"step": {"demos": [{"question": test.question.upper(), "correctness_percentage": 100}]}}
    (run / "program.json").write_text(json.dumps(program), encoding="utf-8")
    return Workspace(tmp_path, tmp_path / "experiments")


def test_leaks_into_signatures_and_programs(tmp_path: Path) -> None:
    words = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty"]
    items = [
        item(
            str(n),
            "x",
            group=f"g{n}",
            question=f"Where does the {one} road meet the {two} road of {one}{two}?",
        )
        for n, (one, two) in enumerate((a, b) for a in words for b in words if a != b)
    ]
    gold = build(items)
    workspace = leaky(tmp_path, gold)
    signature, program = found(gold, "leak", workspace=workspace)
    assert "signatures/mine.py:5" in signature.where and signature.where.endswith(
        gold.select("dev")[0].item_id
    )
    assert "of dev (100% or more of their runs of 3 words" in signature.message
    assert "program.json" in program.where and "1 items of test" in program.message
    assert not found(gold, "leak")  # without a workspace nothing is searched


def test_explained_findings_carry_the_reason(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, tmp_path / "experiments")
    gold = build([item("1", "x")], explained={"thin_split": "by design"})
    problems = check_gold(gold, workspace=workspace)
    assert {p.explained for p in problems if p.kind == "thin_split"} == {"by design"}
    assert {p.explained for p in problems if p.kind != "thin_split"} == {None}


def test_the_card_reads_and_refuses_explanations(workspace_dir: Path) -> None:
    card = workspace_dir / "gold" / "starter" / "card.toml"
    text = card.read_text(encoding="utf-8").split("\n[explained]")[0]
    workspace = Workspace(workspace_dir, workspace_dir / "experiments")
    card.write_text(f'{text}\n[explained]\nthin_stratum = "small"\n', encoding="utf-8")
    assert load_gold("starter", workspace=workspace).card.explained == {"thin_stratum": "small"}
    card.write_text(f'{text}\n[explained]\nthin_rater = ""\nthin_split = 3\n', encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_gold("starter", workspace=workspace)
    line = text.count("\n") + 3
    assert [problem.split("card.toml:")[1] for problem in error.value.problems] == [
        f"{line}: explained.thin_rater: empty: say why, or remove it",
        f"{line + 1}: explained.thin_split: Input should be a valid string, found 3",
    ]


def test_lines_of_ratings(workspace_dir: Path) -> None:
    folder = workspace_dir / "gold" / "lined"
    folder.mkdir()
    (folder / "card.toml").write_text(
        'name = "lined"\n[scale]\nkind = "percentage"\nstep = 5\n', encoding="utf-8"
    )
    (folder / "items.jsonl").write_text(
        '\n{"item_id": "1", "question": "q", "answer": "a"}\n', encoding="utf-8"
    )
    rows = [
        '{"item_id": "1", "rater": "a", "label": 50}',
        "",
        '{"item_id": "1", "rater": "b", "label": 52}',
        "",
    ]
    rows += ['{"item_id": "1", "rater": "gold", "label": 90}']
    (folder / "ratings.jsonl").write_text("\n".join(rows), encoding="utf-8")
    gold = load_gold("lined", workspace=Workspace(workspace_dir, workspace_dir / "experiments"))
    assert gold.place(gold.ratings[1:2]) == "ratings.jsonl:3"


def test_questions_in_two_splits_reach_the_notes_of_what_decides(judgecal: Run, workspace_dir: Path) -> None:
    """One question of train is asked again in test; the set's card may explain it."""
    rows = made_items(30)
    splits = "seed = 0\ntrain = 0.3\ndev = 0.3\ntest = 0.4"
    folder = workspace_dir / "gold" / "made"
    made_gold(folder, rows, rated(rows, {"full": 100, "half": 50, "none": 0}), splits=splits)
    gold = load_gold(folder)
    first, last = (gold.select(name)[0].group for name in ("train", "test"))
    text = next(row["question"] for row in rows if row["group"] == first)
    rows = [{**row, "question": text} if row["group"] == last else row for row in rows]
    shutil.rmtree(folder)
    made_gold(folder, rows, rated(rows, {"full": 100, "half": 50, "none": 0}), splits=splits)
    note = "1 question stands in two splits: what was learnt"
    ran = judgecal("score", "--gold", "made", "--judge", "exact_match@local", "--name", "s", "--json")
    chosen = judgecal("select", "s", "--allow-below-floor", "--json")
    for printed in (ran, chosen):
        assert any(one.startswith(note) for one in json.loads(printed.out)["notes"]), printed.err
    with (folder / "card.toml").open("a") as card:
        card.write('\n[explained]\nquestion_in_two_groups = "asked twice on purpose"\n')
    again = judgecal("score", "--gold", "made", "--judge", "exact_match@local", "--name", "t", "--json")
    assert not any("two splits" in one for one in json.loads(again.out)["notes"])
