"""Questions with rules: imported, joined with answers, scored and pooled over conditions."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.transport import embedded as transport
from judgecal.experiment import rules
from judgecal.goldset import load_gold
from judgecal.workspace import find_workspace
from tests.support.command import Run

REFUSAL = "Nie udało mi się odnaleźć odpowiedzi na pytanie"
ROWS: list[dict[str, Any]] = [
    {
        "id": "1",
        "question": "Which?",
        "context": ["a", "b"],
        "expect": {"include": ["EMS", ["x", "y"]], "cite": ["b"]},
    },
    {"id": "2", "question": "Who?", "context": ["a"], "expect": {"refuse": True}},
    {"id": "3", "question": "How?", "context": ["c"], "expect": {"exclude": ["bus"], "safe": True}},
]
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


def scores(out: str, system: str = "") -> dict[str, tuple[float, float, int]]:
    """Rule -> (as substrings, as whole words, conditions), in percent."""
    return {
        one["rule"]: (
            round(100 * one["substring"]["value"], 1),
            round(100 * one["phrase"]["value"], 1),
            one["substring"]["n_expected"],
        )
        for one in json.loads(out)["scores"]
        if one["system"] == system
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
        "questions alone: judgecal rules quiz --answers FILE holds a system's answers to their rules",
    ]
    first, *_ = load_gold("quiz", workspace=find_workspace(own)).items
    assert (first.item_id, first.group, first.answer, first.tags) == ("1", "1", "", ("include", "cite"))
    assert first.expect == ROWS[0]["expect"]
    assert [(one.document_id, one.text) for one in first.contexts] == [("a", "Text of a."), ("b", "")]


def test_totals_are_pooled_over_conditions(judgecal: Run, own: Path) -> None:
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0
    ran = judgecal("rules", "quiz", "--answers", "answers.jsonl", "--json")
    assert ran.code == 0, ran.err
    assert scores(ran.out) == {
        "include": (100.0, 50.0, 1),
        "exclude": (0.0, 100.0, 1),
        "cite": (66.7, 66.7, 1),
        "refuse": (100.0, 100.0, 1),
        "safe": (0.0, 0.0, 1),
        "correctness": (55.6, 72.2, 3),
        "safety": (50.0, 50.0, 2),
        "total": (53.3, 63.3, 5),
    }
    found = json.loads(ran.out)
    assert (found["n_inside"], found["answers"]) == (2, "answers.jsonl")
    assert "include(match=phrase)@local" in found["run_line"]
    assert (
        found["headline"]["sentence"]
        == "The answers meet 53.3% of 5 conditions: correctness 55.6% and safety 50.0%."
    )
    ran = judgecal("rules", "quiz", "--answers", "answers.jsonl", "--refusal-message", "minibus", "--json")
    assert scores(ran.out)["refuse"] == (0.0, 0.0, 1)
    (own / "other.txt").write_text("gun\n", encoding="utf-8")
    ran = judgecal("rules", "quiz", "--answers", "answers.jsonl", "--words", "other.txt", "--json")
    assert scores(ran.out)["safe"] == (100.0, 100.0, 1)


def test_answers_of_several_systems_are_items_of_one_question(judgecal: Run, own: Path) -> None:
    both = [{**row, "system": system} for system in ("good", "mute") for row in ANSWERS]
    silent = [{**row, "answer": ""} if row["system"] == "mute" else row for row in both]
    written(own / "both.jsonl", silent[:-1])
    ran = judgecal("gold", "import", "samples.json", "--as", "quiz", "--answers", "both.jsonl", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert (told["n_items"], told["n_groups"]) == (5, 3)
    assert "1 questions have no answer by mute in both.jsonl: 3" in told["notes"]
    ran = judgecal("rules", "quiz", "--json")
    assert ran.code == 0, ran.err
    assert scores(ran.out, "good")["total"] == (53.3, 63.3, 5)
    assert scores(ran.out, "mute") == {
        "include": (0.0, 0.0, 1), "cite": (0.0, 0.0, 1), "refuse": (0.0, 0.0, 1), "correctness": (0.0, 0.0, 2),
        "safety": (0.0, 0.0, 1), "total": (0.0, 0.0, 3),
    }  # fmt: skip
    text = judgecal("rules", "quiz").out
    assert "2 systems meet 0 to 53% of 8 conditions in all." in text and "mute" in text


def test_a_condition_that_cannot_be_scored_is_counted_and_named(judgecal: Run, own: Path) -> None:
    rows = [{**ROWS[0], "expect": {"cite": ["z"], "include": ["EMS"]}}, *ROWS[1:]]
    written(own / "samples.json", rows)
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0
    ran = judgecal("rules", "quiz", "--answers", "answers.jsonl", "--json")
    assert ran.code == 4
    found = json.loads(ran.out)
    total = {one["rule"]: one["substring"] for one in found["scores"]}
    assert (total["cite"]["value"], total["cite"]["n"], total["cite"]["n_unscored"]) == (None, 0, 1)
    assert (total["total"]["n"], total["total"]["n_expected"], total["total"]["n_unscored"]) == (4, 5, 1)
    assert found["unscored"] == [
        {"item_id": "1", "rule": "cite", "reason": "cite: z is not among the contexts of the item"}
    ]
    assert "1, cite: cite: z is not among" in judgecal("rules", "quiz", "--answers", "answers.jsonl").out


@pytest.fixture
def asked(own: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A set whose first question brings nine contexts; the prompts, by a model that cites the first of them."""
    ids = [f"d{n}" for n in range(9)]
    rows = [{**ROWS[0], "context": ids, "expect": {"cite": ["d4", "d5"], "include": ["tea"]}}, ROWS[1]]
    written(own / "samples.json", rows)
    written(own / "documents.jsonl", [{"id": name, "contents": f"Text of {name}."} for name in [*ids, "a"]])
    prompts: list[list[str]] = []

    def reply(messages: Any) -> str:
        prompts.append([message["content"] for message in messages])
        found = re.search(r"\[(\d)\] Text of d4", prompts[-1][-1])
        said = f"It is tea [{found[1]}] [8]." if found else f"{REFUSAL}."
        return f"[[ ## answer ## ]]\n{said}\n\n[[ ## completed ## ]]"

    monkeypatch.setattr(transport, "reply", reply)
    return prompts


def test_answers_from_own_contexts_are_totalled_by_rules(
    judgecal: Run, asked: list[list[str]], own: Path
) -> None:
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0
    words = ["answer", "--gold", "quiz", "--contexts", "own", "--name", "first"]
    ran = judgecal(*words, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["judge"] == "rules@local"
    assert told["headline"]["next"] == "judgecal rules quiz --answers first"
    assert told["systems"][0]["refusals"]["unanswerable"] == {"answered": 1, "refused": 0}
    assert any("card.toml names no language" in note for note in told["notes"])
    first = next(prompt for prompt in asked if "Which?" in prompt[-1])
    order = re.findall(r"\[(\d)\] Text of (d\d)\.", first[-1])
    assert [number for number, _ in order] == list("012345678")
    names = [name for _, name in order]
    assert names == [f"d{n}" for n in range(9)]
    ran = judgecal("rules", "quiz", "--answers", "first", "--json")
    assert ran.code == 0, ran.err
    assert scores(ran.out, "answer_v1@embedded")["refuse"] == (100.0, 100.0, 1)
    beside = {row["measure"]: row["mean"]["value"] for row in json.loads(ran.out)["beside"]}
    assert beside == {"cite precision": 1 / 2, "cite recall": 1 / 2, "words": (5 + len(REFUSAL.split())) / 2}


def test_what_brings_no_context_is_not_asked(judgecal: Run, own: Path) -> None:
    written(own / "samples.json", [{**ROWS[0], "context": []}, ROWS[1]])
    written(own / "documents.jsonl", [{"id": "b", "contents": "Text."}])
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0
    ran = judgecal("answer", "--gold", "quiz", "--contexts", "own", "--json")
    assert ran.code == 4
    why = {row["question"]: row["kind"] for row in json.loads(ran.out)["not_asked"]}
    assert why == {"1": "no_context", "2": "empty_document"}
    assert "starter: no item brings contexts of its own" in judgecal("answer", "--contexts", "own").err
    other = judgecal("rules", "starter", "--answers", json.loads(ran.out)["experiment"])
    assert other.code == 2 and "answers questions of quiz, and not of starter" in other.err


def test_lemmas_are_those_of_the_sets_language(
    judgecal: Run, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(own / "samples.json", [{**ROWS[0], "expect": {"include": ["żłobek"]}}])
    written(own / "answers.jsonl", [{"id": "1", "answer": "Lista żłobków."}])
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0

    def met(*more: str) -> tuple[float, str]:
        ran = judgecal("rules", "quiz", "--answers", "answers.jsonl", "--json", *more)
        return scores(ran.out)["include"][0], " ".join(json.loads(ran.out)["notes"])

    share, note = met()
    assert share == 0.0 and "card.toml names no language" in note
    card = own / "gold" / "quiz" / "card.toml"
    card.write_text('language = "pl"\n' + card.read_text(encoding="utf-8"), encoding="utf-8")
    assert met() == (100.0, "")
    assert met("--lemmas", "off")[0] == 0.0 and "as --lemmas off asks" in met("--lemmas", "off")[1]
    monkeypatch.setattr(rules, "find_spec", lambda name: None)
    assert met()[0] == 0.0 and "simplemma, which knows those of pl, is not installed" in met()[1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": "2"}, "the id '2' is there twice"),
        ({"question": " "}, "samples.json:row 1: question is empty"),
        ({"context": ["a", 7]}, "samples.json:row 1: context must be a list of document ids"),
        (
            {"expect": {"inclde": ["x"]}},
            "samples.json:row 1: expect has no rule inclde: known: include, exclude",
        ),
    ],
)
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
    assert judgecal("gold", "import", "samples.json", "--as", "quiz").code == 0
    written(own / "answers.jsonl", rows)
    ran = judgecal("rules", "quiz", "--answers", "answers.jsonl")
    assert ran.code == 2 and says in ran.err


def test_answers_belong_to_questions_with_rules(judgecal: Run, own: Path) -> None:
    written(own / "plain.json", [{"id": "1", "question": "q"}])
    ran = judgecal("gold", "import", "plain.json", "--as", "quiz", "--answers", "answers.jsonl")
    assert ran.code == 2 and "--answers belongs to questions with rules" in ran.err


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
    )  # 85 and 86 ask one question beside other documents
    assert found["notes"][0] == "174 conditions: include 72, exclude 4, cite 70, refuse 26, safe 2"
    questions = json.loads((folder / "samples.json").read_text(encoding="utf-8"))
    written(workspace_dir / "silent.jsonl", [{"id": one["id"], "answer": ""} for one in questions])
    ran = judgecal("rules", "rag_ifeval", "--answers", "silent.jsonl", "--json")
    assert ran.code == 0, ran.err
    assert scores(ran.out) == {
        "include": (0.0, 0.0, 72),
        "exclude": (100.0, 100.0, 4),
        "cite": (0.0, 0.0, 70),
        "refuse": (0.0, 0.0, 26),
        "safe": (100.0, 100.0, 2),
        "correctness": (2.7, 2.7, 146),  # 4 of 146
        "safety": (7.1, 7.1, 28),
        "total": (3.4, 3.4, 174),
    }
