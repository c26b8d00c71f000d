"""A signature with inputs that nobody foresaw and words for verdicts, from the import of its gold set to the
report."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment.score import floor_judges
from judgecal.experiment.stored import read_experiment
from judgecal.judges import judge_named
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object, write_signature
from tests.support.server import StubServer, running

WORDS = ("follows", "breaks", "unclear")
COLUMNS = (
    "--col", "policy=policy_text", "--col", "customer_message=customer_message", "--col", "agent_reply=reply",
)  # fmt: skip


def rows(n: int = 240, *, seed: int = 1) -> list[dict[str, str]]:
    """What agents replied, with a word that tells the label in most of them."""
    draw, made = random.Random(seed), []
    for number in range(n):
        word = WORDS[number % 3]
        cue = word if draw.random() < 0.8 else draw.choice(WORDS)
        made.append({
            "case": f"c{number}", "policy_text": f"Rule {number % 7}: refund within {number % 30} days.",
            "customer_message": f"Can I return order {number}?", "reply": f"Reply {number}, which {cue}.",
            "label": word, "why": f"it {word}", "shift": "night",
        })  # fmt: skip
    return made


def write(path: Path, made: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(made[0]))
        out.writeheader()
        out.writerows(made)
    return path


def reply(body: dict[str, Any]) -> str:
    """A model that sees the word, and without demos takes every `unclear` for `follows`."""
    asked = body["messages"][-1]["content"]
    word = next((one for one in WORDS if f"which {one}." in asked), "unclear")
    if word == "unclear" and len(body["messages"]) < 4:
        word = "follows"
    return f"[[ ## reasoning ## ]]\nIt says so.\n\n[[ ## verdict ## ]]\n{word}\n\n[[ ## completed ## ]]"


@pytest.fixture
def served(workspace_dir: Path) -> Iterator[StubServer]:
    with running(reply) as stub:
        (workspace_dir / "judgecal.toml").write_text(
            f'[models.mine]\nid = "openai/mine"\napi_base = "{stub.api_base}"\ninput_usd_per_1m = 1.0\n'
            "output_usd_per_1m = 2.0\nmax_tokens = 100\n"
        )
        yield stub


def test_from_import_to_report(
    judgecal: Run, workspace_dir: Path, served: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    inputs = "policy,customer_message,agent_reply"
    write_signature(workspace_dir, "policy", inputs, f"Literal{[*WORDS]}")
    table = write(workspace_dir / "cases.csv", rows())
    done = judgecal(
        "gold", "import", table, "--as", "cases", "--col", "item=case", *COLUMNS, "--label", "label", "--col",
        "note=why", "--scale", "nominal",
    )  # fmt: skip
    assert done.code == 0 and "not taken over: shift" in done.err, done.err
    assert judgecal("gold", "check", "cases").code == 0
    assert one_object(judgecal("judges", "policy", "--json"))["problems"] == []

    judge = ("--signature", "policy", "--model", "mine", "--gold", "cases")
    better = one_object(judgecal("optimize", *judge, "--optimizer", "labeled", "--json"))
    assert better["decision"] == "better" and better["metric"] == "accuracy"
    compiled = better["judge"]
    scored = one_object(
        judgecal("score", "--judge", "policy@mine", "--judge", compiled, "--gold", "cases", "--json")
    )
    first, second = scored["judges"]
    assert second["agreement"]["accuracy"]["value"] > first["agreement"]["accuracy"]["value"]
    assert first["n_unscored"] == second["n_unscored"] == 0
    assert [one["judge"] for one in scored["floor"]] == ["best constant", "policy@embedded"]
    selected = one_object(judgecal("select", scored["experiment"], "-o", "lock.json", "--json"))
    assert selected["chosen"] == compiled and selected["lock"] == "lock.json"
    gated = one_object(judgecal("gate", "--lock", "lock.json", "--json"))
    assert gated["decision"] == "pass"

    write(workspace_dir / "new.csv", [{**row, "label": ""} for row in rows(30, seed=2)])
    ran = judgecal("judge", "new.csv", "--lock", "lock.json", "-o", "out.csv", *COLUMNS, "--json")
    judged = one_object(ran)
    assert (judged["n"], judged["n_unscored"]) == (30, 0)
    _shares_are_told(judged)
    with (workspace_dir / "out.csv").open(newline="", encoding="utf-8") as file:
        out = list(csv.DictReader(file))
    assert all(f"which {row['verdict']}." in row["reply"] for row in out)
    (workspace_dir / "suites" / "words.toml").write_text('[judges.policy]\njudge = "policy@mine"\n')
    suited = one_object(
        judgecal("judge", "new.csv", "--suite", "words", "-o", "suite.csv", *COLUMNS, "--json")
    )
    assert suited["rates"]["policy"]["shares"]["unclear"]["value"] == 0.0, (
        "a word that was never said has a share too"
    )
    assert suited["rates"]["policy"]["shares"]["unclear"]["high"] > 0.05
    assert (
        suited["headline"]["sentence"].startswith("Of 30 rows ") and suited["headline"]["kind"] == "raw rate"
    )
    for experiment in (
        suited["experiment"],
        scored["experiment"],
        better["experiment"],
        judged["experiment"],
    ):
        for form in ("text", "md", "html"):
            ran = judgecal("report", experiment, "--format", form)
            assert ran.code == 0, ran.err


def _shares_are_told(judged: dict[str, Any]) -> None:
    """Each word with its share and interval, and the headline says them."""
    (rate,) = judged["rates"].values()
    assert set(rate["shares"]) == set(WORDS) and sum(
        one["value"] for one in rate["shares"].values()
    ) == pytest.approx(1)
    shares = [one["value"] for one in rate["shares"].values()]
    assert shares == sorted(shares, reverse=True)
    for one in rate["shares"].values():
        assert 0 < one["low"] < one["value"] < one["high"] < 1 and (one["n"], one["n_groups"]) == (30, 30)
    assert rate["raw"]["value"] is None and rate["raw"]["reason"]
    say = judged["headline"]["sentence"]
    assert judged["headline"]["kind"] == "raw rate" and say.startswith("Of 30 rows ")
    assert all(f'"{word}"' in say for word in WORDS)
    assert "0 of 30 unscored; 30 questions." in judged["headline"]["because"]


def test_judges_of_other_families_have_their_own_signature_on_the_embedded_model_as_a_floor(
    judgecal: Run, workspace_dir: Path, served: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    served.script = lambda body: (
        "[[ ## rationale ## ]]\nSo.\n\n[[ ## rating ## ]]\nyes\n\n[[ ## completed ## ]]"
    )
    rows = [
        {
            "q": f"What is {n}?",
            "a": f"It is {n + n % 2}00.",
            "c": f"Number {n} is {n}00.",
            "y": str(1 - n % 2),
        }
        for n in range(40)
    ]
    table = write(workspace_dir / "t.csv", rows)
    assert judgecal("gold", "import", table, "--as", "facts", "--col", "question=q", "--col", "answer=a", "--col", "contexts=c",
                    "--label", "y", "--scale", "binary").code == 0  # fmt: skip
    names = ("mosaic/groundedness", "mosaic/chunk_relevance", "mosaic/correctness")
    asked = [word for name in names[:2] for word in ("--judge", f"{name}@mine")]
    found = one_object(
        judgecal("score", *asked, "--gold", "facts", "--split", "all", "--name", "s", "--json")
    )
    assert [one["judge"] for one in found["floor"]] == [
        "best constant",
        *(f"{name}@embedded" for name in names[:2]),
    ]
    assert all(one["n_unscored"] == 0 and one["n"] == 40 for one in found["floor"][1:])
    assert found["floor"][1]["agreement"]["accuracy"]["value"] == 1.0, (
        "the embedded model reads the context's numbers"
    )
    assert found["floor_reason"] is None
    workspace = find_workspace(workspace_dir)
    stored = read_experiment(workspace, "s")
    judges = [judge_named(name, workspace=workspace) for name in (f"{names[2]}@mine", "wer@local")]
    assert floor_judges(stored.table, judges) == ("correctness_v3@embedded",)
    ran = judgecal("report", "s")
    assert ran.code == 0 and "mosaic/groundedness@embedded" in ran.out


def test_a_column_of_the_fields_name_is_taken_in_production(judgecal: Run, workspace_dir: Path) -> None:
    code = "def kind(policy: str, tone: str) -> bool:\n    return tone in policy\n"
    (workspace_dir / "kinds.py").write_text(code, encoding="utf-8")
    made = [{"policy": f"be kind {n}", "t": "kind" if n % 2 else "rude", "y": str(n % 2)} for n in range(80)]
    table = write(workspace_dir / "t.csv", made)
    assert judgecal("gold", "import", table, "--as", "tones", "--col", "policy=policy", "--col", "tone=t", "--label", "y",
                    "--scale", "binary").code == 0  # fmt: skip
    found = one_object(judgecal("score", "--judge", "kinds.py:kind@python", "--gold", "tones", "--json"))
    assert found["judges"][0]["agreement"]["accuracy"]["value"] == 1.0
    assert judgecal("select", found["experiment"], "-o", "lock.json").code == 0
    lines = [
        {"policy": "be kind", "tone": "kind"},
        {"policy": "be kind", "tone": "rude"},
        {"policy": "be kind"},
    ]
    (workspace_dir / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    ran = judgecal("judge", "new.jsonl", "--lock", "lock.json", "-o", "out.jsonl")
    assert ran.code == 4, ran.err
    out = [json.loads(line) for line in (workspace_dir / "out.jsonl").read_text().splitlines()]
    assert [row["passed"] for row in out] == [True, False, None] and out[2][
        "error"
    ] == "input: there is no tone"
