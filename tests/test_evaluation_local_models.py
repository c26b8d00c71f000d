"""Pipelines that embed and rerank by models: OpenAI's `/embeddings`, Cohere's `/rerank`, a server's faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgecal.artefacts import validated
from judgecal.errors import AuthError
from judgecal.goldset import GoldDocument
from judgecal.rag.evaluation import local
from judgecal.rag.evaluation.local import LocalConfig, LocalSystem
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.rag.questions import Question
from judgecal.workspace import Workspace, find_workspace
from tests.support import evaluated
from tests.support.evaluated import asking, errors, handed
from tests.support.http import Answer, as_answer
from tests.support.server import StubServer, failing, running

WORDS = ("crane", "mill", "soup", "school")
DOCUMENTS = tuple(
    GoldDocument(f"d-{word}", None, f"Of the {word}, number {n}.") for n, word in enumerate(WORDS)
)
QUESTIONS = [Question(f"q-{word}", f"What of the {word}?", (), ()) for word in ("soup", "crane")]
ALIAS = '[models.{name}]\nid = "openai/{name}"\napi_base = "{base}"\ninput_usd_per_1m = 10.0\n'


def vector(text: str) -> list[float]:
    """One dimension a word, and one that all texts share."""
    return [*(float(word in text) for word in WORDS), 0.1]


def served(body: dict[str, Any]) -> Answer | str:
    """Vectors or scores, in the reverse order of the texts, with their indices."""
    if "documents" in body:
        rows = [
            {"index": n, "relevance_score": float("mill" in text)} for n, text in enumerate(body["documents"])
        ]
        return as_answer({"results": rows[::-1], "meta": {"billed_units": {"search_units": 1}}})
    if "input" not in body:
        return "[[ ## answer ## ]]\nYes.\n\n[[ ## completed ## ]]"
    vectors = [{"index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
    tokens = sum(len(text) for text in body["input"]) // 4
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return as_answer({"data": vectors[::-1], "model": "e", "usage": usage})


def forget() -> None:
    local._built.clear()


@pytest.fixture
def workspace(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """In which no call is tried again."""
    forget()
    monkeypatch.setattr("judgecal.engine.call_runner.Policy.wait", lambda *_: None)
    return find_workspace(workspace_dir)


@pytest.fixture
def server(workspace: Workspace) -> Iterator[StubServer]:
    with running(served) as stub:
        text = "".join(ALIAS.format(name=name, base=stub.api_base) for name in ("emb", "rank"))
        workspace.config_file.write_text(text)
        yield stub


def made(workspace: Workspace, documents: Any = DOCUMENTS, **table: Any) -> LocalSystem:
    config = validated(LocalConfig, {"chunk": {"min": 500, "max": 500}, "top_n": 1, **table}, "sweep.toml")
    return LocalSystem("ours", config, lambda: documents, workspace)


def ask(system: LocalSystem, folder: Path, questions: Any = QUESTIONS, **options: Any) -> list[SystemAnswer]:
    return evaluated.ask(system, questions, folder, **options)


def test_vectors_find_and_are_paid_once(workspace: Workspace, tmp_path: Path, server: StubServer) -> None:
    system = made(workspace, index="embed:emb")
    planned = system.preview(QUESTIONS, asking(tmp_path / "new"))
    assert planned.calls == 1 + 2 + 2  # the chunks, the questions, the answers of the model inside judgecal
    assert server.calls == 0
    answers = ask(system, tmp_path / "1", use_cache=False)
    assert [handed(one) for one in answers] == [["d-soup"], ["d-crane"]]
    assert server.paths == ["/v1/embeddings"] * 3
    assert [len(one["input"]) for one in server.bodies[1:]] == [1, 1]
    assert answers[0].cost_usd == pytest.approx(len(QUESTIONS[0].question) // 4 * 10e-6)
    assert answers[0].latency_s is not None and answers[0].latency_s > 0
    assert ask(system, tmp_path / "1", use_cache=False) == answers
    # Another setting of a sweep: its questions are embedded already, and it knows how long that took.
    other = ask(made(workspace, index="embed:emb", top_n=2), tmp_path / "2", use_cache=False)
    assert server.calls == 3 and all(one.latency_s is not None for one in other)
    # A new process, of which the journal of this one is all that is left.
    forget()
    more = [*QUESTIONS, Question("q-new", "And the mill?", (), ())]
    assert handed(ask(system, tmp_path / "1", more, use_cache=False)[2]) == ["d-mill"]
    assert server.calls == 4


def spoilt(change: Any) -> Any:
    """What the server sends for chunks, with something wrong."""

    def script(body: dict[str, Any]) -> Answer | str:
        answer = served(body)
        if "input" not in body or len(body["input"]) == 1 or not isinstance(answer, Answer):
            return answer
        changed = change(json.loads(answer.body))
        return changed if isinstance(changed, Answer) else as_answer(changed)

    return script


def each(vector_of: Any) -> Any:
    return lambda data: {"data": [{**one, "embedding": vector_of(one)} for one in data["data"]]}


FAULTS: dict[str, tuple[Any, str]] = {
    "refused": (lambda _: failing(400, "not these"), "failed, the first by refused: HTTP 400: not these"),
    "too few": (lambda data: {"data": data["data"][1:]}, "the server's answer holds 3 vectors, 4 were asked"),
    "no vectors": (lambda _: {"hello": 1}, "the server's answer holds no vectors, 4 were asked for"),
    "twice": (lambda data: {"data": data["data"][:1] * 4}, "holds 4 vectors, 4 were asked for"),
    "words": (each(lambda _: ["x"]), "cannot be read (ValueE"),
    "zeros": (each(lambda _: [0.0]), "nothing but 0"),
    "infinite": (each(lambda _: [float("inf")]), "no finite"),
    "uneven": (each(lambda one: [1.0] * (1 + one["index"])), "vectors of different lengths"),
    "page": (lambda _: Answer(200, b"<html>hello</html>"), "the server's answer is not JSON: hello"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_without_vectors_of_the_chunks_each_question_says_why(
    workspace: Workspace, tmp_path: Path, fault: str, server: StubServer
) -> None:
    change, message = FAULTS[fault]
    server.script = spoilt(change)
    system, first = (
        made(workspace, index="embed:emb"),
        "server: vectors of 4 texts: 1 of 1 calls to emb failed, the ",
    )
    for error in errors(ask(system, tmp_path)):
        assert error.startswith(f"{first}first by ") and message in error
    server.script = served
    retried = ask(system, tmp_path, retry_unscored=True)
    assert [handed(one) for one in retried] == [["d-soup"], ["d-crane"]]


def test_a_question_without_a_vector_is_a_row_of_its_own(
    workspace: Workspace, tmp_path: Path, server: StubServer
) -> None:
    def script(body: dict[str, Any]) -> Answer | str:
        return failing(400, "too rude") if body.get("input") == [QUESTIONS[0].question] else served(body)

    server.script = script
    answers = ask(made(workspace, index="embed:emb"), tmp_path)
    assert errors(answers) == ["refused: emb: the question: HTTP 400: too rude", ""]
    assert handed(answers[1]) == ["d-crane"]


def test_the_budget_holds_and_a_refused_key_ends_the_run(
    workspace: Workspace, tmp_path: Path, server: StubServer
) -> None:
    system = made(workspace, index="embed:emb")
    answers = ask(system, tmp_path / "1", budget_usd=1e-9, use_cache=False)
    assert [one.error.kind for one in answers if one.error] == ["budget"] * 2 and server.calls == 0
    server.script = lambda _: failing(401, "no")
    with pytest.raises(AuthError, match="model emb"):
        ask(system, tmp_path / "2")


def test_a_reranking_model_chooses(workspace: Workspace, tmp_path: Path, server: StubServer) -> None:
    table = {"strategy": "rerank", "reranker": "rank", "top_k": 4}
    system = made(workspace, **table)
    answers = ask(system, tmp_path)
    assert [handed(one) for one in answers] == [["d-mill"]] * 2
    assert server.paths == ["/v1/rerank"] * 2 and server.bodies[0]["top_n"] == 4
    assert server.bodies[0]["query"] in [one.question for one in QUESTIONS]
    assert ask(system, tmp_path) == answers and server.calls == 2
    server.script = lambda body: as_answer({"results": [{"index": 0, "relevance_score": 1.0}]})
    changed = made(workspace, **{**table, "top_k": 3})
    error = errors(ask(changed, tmp_path / "odd", use_cache=False))[0]
    assert error.endswith("reranker rank: the server's answer holds 1 scores, 3 were asked for")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"index": "embed:embedded"}, "model embedded cannot be asked for embeddings"),
        ({"index": "embed"}, "index 'embed': name a model behind embed:"),
        ({"index": "embed:gpt-4oo"}, "unknown model 'gpt-4oo': did you mean gpt-4o"),
        ({"index": "embed:openai/text-embedding-3-small"}, "set the variable OPENAI_API_KEY"),
        ({"strategy": "rerank", "reranker": "cohere/rerank-v3.5"}, "set the variable COHERE_API_KEY"),
        ({"strategy": "rerank", "reranker": "mosaic/chunk_relevance"}, "write mosaic/chunk_relevance@MODEL"),
    ],
)
def test_what_cannot_embed_or_rerank_is_said(workspace: Workspace, table: dict[str, Any], said: str) -> None:
    assert said in "\n".join(made(workspace, **table).check(QUESTIONS))
