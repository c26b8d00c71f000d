"""Pipelines of our own: what each strategy hands over, what is asked again and what is not, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgecal.artefacts import validated
from judgecal.goldset import GoldDocument, load_gold
from judgecal.rag.evaluation import local
from judgecal.rag.evaluation.local import LocalConfig, LocalSystem
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.rag.questions import Question, collection_of_gold
from judgecal.records import Context, digest
from judgecal.workspace import Workspace, find_workspace
from tests.support import evaluated
from tests.support.command import Run
from tests.support.evaluated import asking, errors, handed
from tests.support.server import StubServer, failing, running

DOCUMENTS = (
    GoldDocument("harbour", "Harbour", "The harbour has two cranes. They were built by Ostrander and Sons."),
    GoldDocument("mill", "Mill", "The mill stands by the weir. Its wheel has forty paddles. Rye is ground here."),
    GoldDocument("school", None, "The school has a wheel of fortune at its fair. Every pupil may turn the wheel once."),
    GoldDocument("inn", None, "Nobody at the inn knows of cranes. The soup is barley."),
)  # fmt: skip
PADDLES = Question("q-paddles", "How many paddles has the wheel of the mill?", ("forty",), ("mill",))
CRANES = Question("q-cranes", "Who built the cranes of the harbour?", ("Ostrander and Sons",), ("harbour",))
QUESTIONS = [PADDLES, CRANES]
JUDGE = """
def barley(question: str, chunk: str) -> bool:
    return "barley" in chunk

def broken(question: str, chunk: str) -> bool:
    raise ValueError("no idea")
"""
WHOLE = {"chunk": {"min": 500, "max": 500}}
"""A document is one chunk."""
SMALL = {"chunk": {"min": 0, "max": 60}}
"""A sentence is one chunk."""
BY_STUB = {**WHOLE, "answerer": {"model": "stub"}}


def forget() -> None:
    """As a new process: nothing that was built is held."""
    local._built.clear()


@pytest.fixture
def workspace(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (workspace_dir / "checks.py").write_text(JUDGE)
    forget()
    monkeypatch.chdir(workspace_dir)
    return find_workspace(workspace_dir)


def made(workspace: Workspace, documents: Any = DOCUMENTS, **table: Any) -> LocalSystem:
    config = validated(LocalConfig, table, "sweep.toml: systems[1]")
    return LocalSystem("ours", config, lambda: documents, workspace)


def ask(system: LocalSystem, folder: Path, questions: Any = QUESTIONS, **options: Any) -> list[SystemAnswer]:
    return evaluated.ask(system, questions, folder, **options)


def alias(workspace: Workspace, server: StubServer) -> None:
    lines = ["[models.stub]", 'id = "openai/stub"', f'api_base = "{server.api_base}"', "max_tokens = 100"]
    lines += ["input_usd_per_1m = 1.0", "output_usd_per_1m = 1.0", 'structured = "off"']
    workspace.config_file.write_text("\n".join(lines) + "\n")


def answered(text: str = "Forty.") -> str:
    return f"[[ ## answer ## ]]\n{text}\n\n[[ ## completed ## ]]"


# --- what is handed over


def test_a_reranker_chooses_among_the_first(workspace: Workspace, tmp_path: Path) -> None:
    table = {**WHOLE, "strategy": "rerank", "reranker": "checks.py:barley@python", "top_n": 1}
    assert handed(ask(made(workspace, **table, top_k=1), tmp_path / "1")[1]) == ["harbour"]
    everyone = ask(made(workspace, **table, top_k=4), tmp_path / "4")
    assert [handed(one) for one in everyone] == [["inn"], ["inn"]]
    assert everyone[0].contexts is not None and everyone[0].contexts[0].score == 1.0
    # Equal verdicts stay in the order of the index.
    rest = ask(made(workspace, **{**table, "top_n": 2}, top_k=4), tmp_path / "2")
    assert [handed(one) for one in rest] == [["inn", "mill"], ["inn", "harbour"]]
    embedded = ask(made(workspace, **WHOLE, strategy="rerank", top_k=3, top_n=1), tmp_path / "embedded")
    assert [handed(one) for one in embedded] == [["mill"], ["harbour"]]


def test_chunks_are_searched_and_their_documents_handed_over(workspace: Workspace, tmp_path: Path) -> None:
    answers = ask(made(workspace, **SMALL, strategy="parent", top_n=2), tmp_path)
    assert [handed(one)[0] for one in answers] == ["mill", "harbour"]
    # different documents, though one has two good chunks
    assert [len(set(handed(one))) for one in answers] == [2, 2]
    assert answers[0].contexts is not None and answers[0].contexts[0].text == DOCUMENTS[1].text


def test_the_keys_of_rag_ifeval_reach_the_model(workspace: Workspace, tmp_path: Path) -> None:
    """Where the reference stands, a seeded order of own contexts, a system message and the words to refuse by."""
    seen: list[list[str]] = []

    def reply(body: dict[str, Any]) -> str:
        seen.append([message["content"] for message in body["messages"]])
        return answered("I do not know.")

    own = replace(PADDLES, contexts=tuple(Context(f"text {place}", f"d{place}") for place in range(9)))
    answerer = {"model": "stub", "system_message": "Be brief.", "refusal_message": "I do not know."}
    orders: dict[str, list[str | None]] = {}
    with running(reply) as server:
        alias(workspace, server)
        for name, contexts in {
            "first": {"kind": "controlled", "distractors": 2},
            "last": {"kind": "controlled", "distractors": 2, "position": "last"},
            "own": {"kind": "own"},
            "seed 1": {"kind": "own", "shuffle": 1},
        }.items():
            system = made(workspace, contexts=contexts, answerer=answerer)
            (answer,) = ask(system, tmp_path / name, [own], use_cache=False)
            orders[name] = handed(answer)
            assert answer.answer == "I do not know." and answer.contexts is not None
            told, asked = seen[-1][0], seen[-1][-1]
            assert "Be brief." in told and told.rstrip().endswith("I do not know.")
            places = [asked.index(context.text) for context in answer.contexts]
            assert places == sorted(places)
    assert orders["first"][0] == orders["last"][-1] == "mill"
    assert orders["first"][1:] == orders["last"][:-1] and len(orders["last"]) == 3
    assert orders["own"] == [f"d{place}" for place in range(9)]
    assert orders["seed 1"] != orders["own"] == sorted(map(str, orders["seed 1"]))


# --- what is asked again


UNCHANGED: list[dict[str, Any]] = [
    {"top_k": 7}, {"reranker": "mosaic/chunk_relevance@gpt-4o"}, {"chunk": {"max": 1200, "min": 800}}, {"strategy": "plain"},
]  # fmt: skip
CHANGED: list[dict[str, Any]] = [
    {"top_n": 4}, {"chunk": {"max": 900}},
    {"chunk": {"overlap": 10}}, {"strategy": "rerank"}, {"strategy": "parent"},
    {"strategy": "both"}, {"strategy": "rerank", "top_k": 7}, {"answerer": {"signature": "answer_v2"}},
    {"answerer": {"model": "gpt-4o"}}, {"answerer": {"model": "gpt-4o", "temperature": 0.5}},
    {"strategy": "rerank", "reranker": "mosaic/chunk_relevance@gpt-4o"},
]  # fmt: skip


def test_the_configuration_is_what_decides_an_answer(workspace: Workspace) -> None:
    base = made(workspace).config()
    assert json.loads(json.dumps(base)) == base
    assert [made(workspace, **table).config() == base for table in UNCHANGED] == [True] * len(UNCHANGED)
    others = [json.dumps(made(workspace, **table).config(), sort_keys=True) for table in CHANGED]
    assert len({json.dumps(base, sort_keys=True), *others}) == len(CHANGED) + 1
    renamed = [GoldDocument("other", None, DOCUMENTS[0].text), *DOCUMENTS[1:]]
    assert made(workspace, documents=renamed).config() != base


def test_what_is_found_is_what_this_version_finds(workspace: Workspace, tmp_path: Path) -> None:
    """Where this fails and the starter's documents are the same, raise local._VERSION too.

    Answers that are stored elsewhere were made from other contexts then.
    """
    gold = load_gold("starter", workspace=workspace)
    found: list[SystemAnswer] = []
    for table in ({}, {"strategy": "parent"}):
        system = made(workspace, documents=gold.documents, chunk={"max": 512}, **table)
        found += ask(system, tmp_path / str(len(found)), collection_of_gold(gold).questions[:10])
    texts = [[one.text for one in answer.contexts or ()] for answer in found]
    assert digest(texts)[:16] == "cecc01bcd75ddbbf"


def test_what_was_asked_is_not_asked_again(workspace: Workspace, tmp_path: Path) -> None:
    with running(lambda _: answered()) as server:
        alias(workspace, server)
        system = made(workspace, **BY_STUB)
        first = ask(system, tmp_path, use_cache=False)
        assert ask(system, tmp_path, use_cache=False) == first  # its latency and cost too
        assert server.calls == 2
        told = [(one.answer, one.prompt_tokens, one.cost_usd) for one in first]
        assert told == [("Forty.", 1000, 0.00105)] * 2
        assert all(one.latency_s is not None and one.latency_s > 0 for one in first)
        ask(
            system,
            tmp_path,
            [PADDLES, Question("q-new", "Where does the mill stand?", (), ())],
            use_cache=False,
        )
        assert server.calls == 3
        warmer = made(workspace, **WHOLE, answerer={"model": "stub", "temperature": 0.7})
        ask(warmer, tmp_path, use_cache=False)
        assert [body.get("temperature") for body in server.bodies] == [None, None, None, 0.7, 0.7]


def test_a_failed_answer_is_a_row_and_is_asked_again(workspace: Workspace, tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> Any:
        text = body["messages"][-1]["content"]
        return failing(400, "not this one") if "paddles has" in text else answered("By Ostrander.")

    with running(script) as server:
        alias(workspace, server)
        system = made(workspace, **BY_STUB)
        answers = ask(system, tmp_path)
        assert [one.answer for one in answers] == [None, "By Ostrander."]
        error = errors(answers)[0]
        assert error.startswith("refused: ") and "not this one" in error
        assert handed(answers[0])[0] == "mill"  # what it was asked with is known
        server.script = lambda _: answered()
        assert errors(ask(system, tmp_path))[0] == error  # no failure of the wire
        again = ask(system, tmp_path, retry_unscored=True)
        assert [one.answer for one in again] == ["Forty.", "By Ostrander."]


def test_a_failed_reranker_is_the_error_of_its_question(workspace: Workspace, tmp_path: Path) -> None:
    table = {**WHOLE, "strategy": "rerank", "reranker": "checks.py:broken@python", "top_k": 3}
    answers = ask(made(workspace, **table), tmp_path)
    assert [(one.answer, one.contexts) for one in answers] == [(None, None)] * 2
    for error in errors(answers):
        assert "reranker checks.py:broken@python: " in error and "no idea" in error


def test_a_preview_counts_every_call_and_writes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> str:
        return answered() if "answer ##" in body["messages"][0]["content"] else "No."

    with running(script) as server:
        alias(workspace, server)
        new = asking(tmp_path / "new")
        both = {"strategy": "both", "reranker": "mosaic/chunk_relevance@stub"}
        planned = made(workspace, **BY_STUB, **both, top_k=3).preview(QUESTIONS, new)
        assert (planned.calls, planned.stored) == (2 * 3 + 2, 0)
        assert planned.usd_at_most is not None and planned.usd_at_most > 0
        assert not new.folder.exists() and server.calls == 0
        plain = made(workspace, **BY_STUB)
        ask(plain, tmp_path / "new", [PADDLES])
        after = plain.preview(QUESTIONS, new)
        assert (after.calls, after.stored) == (1, 1)


# --- what is refused


def test_everything_that_would_keep_it_from_answering_is_said_at_once(workspace: Workspace) -> None:
    wrong = made(
        workspace, documents=[GoldDocument("blank", None, " ")], index="bm52", strategy="rerank", top_k=2,
        chunk={"min": 30, "max": 20}, reranker="rag/relevancy@embedded", answerer={"model": "gpt-4"},
    )  # fmt: skip
    told = "\n".join(wrong.check(QUESTIONS))
    for part in (
        "min must be 0 to max", "unknown index 'bm52': did you mean bm25", "top_n must not be above top_k",
        "no document with a text", "unknown model 'gpt-4': did you mean gpt-4o", "must judge single contexts",
    ):  # fmt: skip
        assert part in told
    keyless = made(
        workspace,
        answerer={"model": "gpt-4o"},
        strategy="rerank",
        reranker="mosaic/chunk_relevance@claude-haiku",
    )
    first, second = keyless.check(QUESTIONS)
    assert "OPENAI_API_KEY" in first and "ANTHROPIC_API_KEY" in second


def test_a_budget_without_a_price_is_refused_before_anybody_is_asked(
    judgecal: Run, workspace: Workspace
) -> None:
    text = '[questions]\ngold = "starter"\n[[systems]]\nname = "ours"\nkind = "local"\n'
    text += 'index = "embed:hosted_vllm/nobody"\nanswerer = { model = "llama3" }\n'
    (workspace.root / "sweep.toml").write_text(text)
    ran = judgecal("evaluate", "sweep.toml", "--limit", "2", "--budget-usd", "1")
    assert ran.code == 2
    assert "--budget-usd: the price of hosted_vllm/nobody is not known" in " ".join(ran.err.split())
    assert not (workspace.root / "experiments").exists()
