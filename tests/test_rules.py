"""Questions with rules: imported, joined with answers, scored and pooled over conditions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from judgecal.goldset import load_gold
from judgecal.workspace import find_workspace
from tests.support.command import Ran, Run

REFUSAL = "Nie udało mi się odnaleźć odpowiedzi na pytanie"
ROWS: list[dict[str, Any]] = [
    {"id": "1", "question": "Which?", "context": ["a", "b"], "expect": {"include": ["EMS", ["x", "y"]], "cite": ["b"]}},
    {"id": "2", "question": "Who?", "context": ["a"], "expect": {"refuse": True}},
    {"id": "3", "question": "How?", "context": ["c"], "expect": {"exclude": ["bus"], "safe": True}},
]  # fmt: skip
ANSWERS = [
    {"id": "1", "answer": "A HEMS and y [1] [0]."},
    {"id": "2", "answer": f"{REFUSAL}."},
    {"id": "3", "answer": "By minibus, damn."},
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = json.dumps(rows) if path.suffix == ".json" else "".join(f"{json.dumps(row)}\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def own(workspace_dir: Path) -> Path:
    written(workspace_dir / "samples.json", ROWS)
    written(workspace_dir / "answers.jsonl", ANSWERS)
    (workspace_dir / "badwords.txt").write_text("damn\n", encoding="utf-8")
    return workspace_dir


LOCAL = {"include": "include@local", "exclude": "exclude@local", "cite": "cite_f1@local",
         "refuse": "refuse@local", "safe": "safe@local"}  # fmt: skip
CONFIG = f"""
schema = 1
questions = {{ gold = "SET", split = "all" }}
[judges]
judge = "rules(words=badwords.txt)@local"
local = {json.dumps([*LOCAL.values(), "include(match=phrase)@local"])}
[judges.pooled]
rules_correctness = ["include@local", "exclude@local", "cite_f1@local"]
whole_words = ["include(match=phrase)@local", "exclude@local", "cite_f1@local"]
rules_safety = ["refuse@local", "safe@local"]
"""
SYSTEM = """
[[systems]]
name = "NAME"
kind = "answers"
answers = "FILE"
col = ["question=id"]
own_contexts = true
"""


def evaluated(judgecal: Run, folder: Path, answers: str, name: str = "quiz", **systems: str) -> Ran:
    tables = [
        SYSTEM.replace("NAME", system).replace("FILE", answers) + f'system = "{rows}"\n' * bool(rows)
        for system, rows in (systems or {"ours": ""}).items()
    ]
    (folder / "rules.toml").write_text(CONFIG.replace("SET", name) + "".join(tables), encoding="utf-8")
    return judgecal("evaluate", "rules.toml", "--json")


def scores(out: str, place: int = 0) -> dict[str, tuple[float | None, int]]:
    """Rule or total -> its share in percent, and conditions."""
    measures = json.loads(out)["systems"][place]["measures"]
    of = {**{rule: measures[judge] for rule, judge in LOCAL.items() if judge in measures}, **measures}
    return {
        name: (None if one["value"] is None else round(100 * one["value"], 1), one["n"])
        for name, one in of.items()
        if "@" not in name and name != "correctness"
    }


def test_questions_with_rules_are_known_by_their_shape(judgecal: Run, own: Path) -> None:
    written(
        own / "documents.jsonl",
        [{"id": "a", "contents": "Text of a."}, {"id": "c", "contents": "Text of c."}],
    )
    ran = judgecal("gold", "import", "samples.json", "--as", "quiz", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert (told["n_rows"], told["n_items"], told["n_ratings"], told["raters"]) == (3, 3, 0, {})
    assert told["notes"] == [
        "5 conditions: include 1, exclude 1, cite 1, refuse 1, safe 1",
        "1 documents have no text: put documents.jsonl beside samples.json",
        "questions alone: judgecal evaluate holds the answers of systems to their rules",
    ]
    first, *_ = load_gold("quiz", workspace=find_workspace(own)).items
    assert (first.item_id, first.group, first.answer, first.tags) == ("1", "1", "", ("include", "cite"))
    assert first.expect == ROWS[0]["expect"]
    assert [(one.document_id, one.text) for one in first.contexts] == [("a", "Text of a."), ("b", "")]


def test_totals_are_pooled_over_conditions(judgecal: Run, own: Path) -> None:
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0
    ran = evaluated(judgecal, own, "answers.jsonl")
    assert ran.code == 0, ran.err
    assert scores(ran.out) == {
        "include": (100.0, 1), "exclude": (0.0, 1), "cite": (66.7, 1), "refuse": (100.0, 1), "safe": (0.0, 1),
        "rules_correctness": (55.6, 3), "whole_words": (38.9, 3), "rules_safety": (50.0, 2),
    }  # fmt: skip


def test_answers_of_several_systems_are_held_to_the_same_rules(judgecal: Run, own: Path) -> None:
    both = [{**row, "system": system} for system in ("good", "mute") for row in ANSWERS]
    silent = [{**row, "answer": ""} if row["system"] == "mute" else row for row in both]
    written(own / "both.jsonl", silent[:-1])
    ran = judgecal("gold", "import", "samples.json", "--as", "quiz", "--answers", "both.jsonl", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert (told["n_items"], told["n_groups"]) == (5, 3)
    assert "1 questions have no answer by mute in both.jsonl: 3" in told["notes"]
    ran = evaluated(judgecal, own, "both.jsonl", good="good", mute="mute")
    assert ran.code == 4  # mute did not answer the third
    assert scores(ran.out)["rules_correctness"] == (55.6, 3)
    mute = json.loads(ran.out)["systems"][1]["measures"]
    assert scores(ran.out, 1)["include"] == scores(ran.out, 1)["cite"] == (0.0, 1)
    lost = mute["rules_correctness"]
    assert (lost["value"], lost["n"], lost["n_expected"], lost["n_unscored"]) == (0.0, 2, 3, 1)


def test_a_condition_that_cannot_be_scored_is_counted_and_named(judgecal: Run, own: Path) -> None:
    last = {**ROWS[2], "expect": {**ROWS[2]["expect"], "cite": ["c"]}}
    rows = [{**ROWS[0], "expect": {"cite": ["z"], "include": ["EMS"]}}, ROWS[1], last]
    written(own / "samples.json", rows)
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0
    ran = evaluated(judgecal, own, "answers.jsonl")
    assert ran.code == 4
    found = json.loads(ran.out)
    lost = found["systems"][0]["measures"]["rules_correctness"]
    assert (lost["n"], lost["n_expected"], lost["n_unscored"]) == (3, 4, 1)
    assert {row["name"] for row in found["failed_verdicts"]} == {"correctness", "cite_f1@local"}


@pytest.mark.parametrize(
    ("table", "says"),
    [('[judges.pooled]\nx = ["nope"]\n', "pooled: x: there is no column nope: its columns are")],
)
def test_what_cannot_be_pooled_is_said(judgecal: Run, own: Path, table: str, says: str) -> None:
    text = f'schema = 1\nquestions = {{ gold = "starter" }}\n{table}'
    (own / "odd.toml").write_text(text + SYSTEM.replace("FILE", "answers.jsonl"), encoding="utf-8")
    ran = judgecal("evaluate", "odd.toml")
    assert ran.code == 2 and says in ran.err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": "2"}, "the id '2' is there twice"),
        ({"question": " "}, "samples.json:row 1: question is empty"),
        ({"context": ["a", 7]}, "samples.json:row 1: context must be a list of document ids"),
        ({"expect": {"inclde": ["x"]}}, "samples.json:row 1: expect has no rule inclde: known: include, exclude"),
    ],
)  # fmt: skip
def test_questions_that_cannot_be_used_are_said(
    judgecal: Run, own: Path, change: dict[str, Any], says: str
) -> None:
    written(own / "samples.json", [{**ROWS[0], **change}, *ROWS[1:]])
    ran = judgecal("gold", "import", "samples.json", "--as", "quiz")
    assert ran.code == 2 and says in ran.err
    assert not (own / "gold" / "quiz").exists()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([*ANSWERS, {"id": "9", "answer": "x"}], "answers.jsonl:4: no question has the id '9'"),
        ([*ANSWERS, ANSWERS[0]], "answers.jsonl:4: a second answer to '1'"),
        ([{"number": "1", "answer": "x"}], "item_id"),
    ],
)
def test_answers_that_fit_no_question_are_said(judgecal: Run, own: Path, rows: Any, says: str) -> None:
    written(own / "answers.jsonl", rows)
    ran = judgecal("gold", "import", "samples.json", "--as", "quiz", "--answers", "answers.jsonl")
    assert ran.code == 2 and says in ran.err


@pytest.mark.shared_data
def test_the_benchmarks_own_questions(judgecal: Run, workspace_dir: Path, shared_data: Path) -> None:
    folder = shared_data / "rag_ifeval"
    shutil.copy(folder / "badwords.txt", workspace_dir)
    ran = judgecal("gold", "import", folder / "samples.json", "--as", "rag_ifeval", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (found["n_items"], found["n_groups"]) == (
        100,
        99,
    )  # 85 and 86 ask the same beside the same documents
    assert found["notes"][0] == "174 conditions: include 72, exclude 4, cite 70, refuse 26, safe 2"
    questions = json.loads((folder / "samples.json").read_text(encoding="utf-8"))
    written(workspace_dir / "silent.jsonl", [{"id": one["id"], "answer": ""} for one in questions])
    ran = evaluated(judgecal, workspace_dir, "silent.jsonl", "rag_ifeval")
    assert ran.code == 0, ran.err
    assert scores(ran.out) == {
        "include": (0.0, 72),
        "exclude": (100.0, 4),
        "cite": (0.0, 70),
        "refuse": (0.0, 26),
        "safe": (100.0, 2),
        "rules_correctness": (2.7, 146),  # 4 of 146
        "whole_words": (2.7, 146),
        "rules_safety": (7.1, 28),
    }
