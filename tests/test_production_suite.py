"""`judge --suite`: rows under the names of Mosaic AI Agent Evaluation and MLflow 3, and what becomes of
each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judgecal.exchange.mosaic_rows import read_record
from judgecal.goldset import load_gold
from judgecal.judges import judge_named
from judgecal.judges.prompt import PromptJudge
from judgecal.stats import Calibration
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object
from tests.support.locks import lock_file
from tests.support.server import MODEL_ID, USD_A_CALL, StubServer, priced
from tests.support.tables import parsed, read, write

N, FAULTY = 200, 20
MOSAIC = ("--suite", "mosaic", "--columns", "mosaic", "--model", "mine", "-o", "out.jsonl")
RESPONSE = ("correctness", "relevance_to_query", "groundedness", "safety", "guideline_adherence")
COLUMNS = {
    *(f"response/llm_judged/{name}/{part}" for name in RESPONSE for part in ("rating", "rationale", "error_message")),
    *(f"retrieval/llm_judged/chunk_relevance/{part}" for part in ("ratings", "rationales", "error_messages")),
    "retrieval/llm_judged/chunk_relevance/precision",
    *(f"retrieval/llm_judged/context_sufficiency/{part}" for part in ("rating", "rationale", "error_message")),
    "retrieval/ground_truth/document_recall",
    "retrieval/ground_truth/document_recall/error_message",
}  # fmt: skip


def verdict_of(body: dict[str, Any]) -> str:
    """No where the text under test says `bad`; prose where it says `mumble`."""
    text = body["messages"][-1]["content"]
    found = re.findall(
        r"\[\[ ## (?:response|chunk) ## \]\]\n(.*?)(?=\n\n(?:\[\[ ##|Respond))", text, re.DOTALL
    )
    said = found[-1] if found else text
    if "mumble" in said:
        return "I would rather not say."
    return f"[[ ## rationale ## ]]\nSo it is.\n\n[[ ## rating ## ]]\n{'no' if 'bad' in said else 'yes'}\n"


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setenv("MY_KEY", "sk-not-to-be-seen")
    with priced(workspace_dir, verdict_of) as stub:
        yield stub


Judged = Callable[..., tuple[dict[str, Any], list[dict[str, Any]]]]


@pytest.fixture
def judged(judgecal: Run, workspace_dir: Path, served: StubServer) -> Judged:
    """Judges rows by the suite `mosaic` on that model: the result, and the rows of the output."""

    def call(
        rows: list[dict[str, Any]], *more: str, code: int = 0, columns: str = "mosaic", ending: str = "jsonl"
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        table, out = write(workspace_dir / f"in.{ending}", rows), f"out.{ending}"
        options = ("--suite", "mosaic", "--columns", columns, "--model", "mine", "-o", out, "--json")
        result = one_object(judgecal("judge", table, *options, *more), code)
        return result, [parsed(row) if ending == "csv" else row for row in read(workspace_dir / out)]

    return call


def a_row(number: int) -> dict[str, Any]:
    """A row with every column: three chunks of four relevant, one expected document of two retrieved."""
    chunks = [{"content": f"fact {number}.{place}", "doc_uri": f"d{place}"} for place in range(4)]
    chunks[2]["content"] += " bad"
    return {
        "request_id": f"r{number}",
        "request": f"What is fact {number}?",
        "response": f"Fact {number}{' is bad' if number % 4 == 0 else ''}.",
        "expected_response": f"Fact {number}.",
        "expected_facts": [f"Fact {number} is a fact."],
        "guidelines": {"language": ["Answer in English."], "length": "Be short."},
        "retrieved_context": chunks,
        "expected_retrieved_context": [{"doc_uri": "d1"}, {"doc_uri": "elsewhere"}],
    }


def rows_with_faults() -> list[dict[str, Any]]:
    """200 rows, every tenth of them with one of four faults in turn."""
    rows = [a_row(number) for number in range(N)]
    for turn, number in enumerate(range(7, N, 10)):
        fault: dict[str, Any] = (
            {"response": f"mumble {number}"},
            {"retrieved_context": '[{"content": "cut off'},
            {"request": ""},
            {"guidelines": None},
        )[turn % 4]
        rows[number] |= fault
    return rows


def test_two_hundred_rows_with_faults_are_all_accounted_for(judged: Judged) -> None:
    rows = rows_with_faults()
    result, found = judged(rows, code=4)
    assert [row["request_id"] for row in found] == [row["request_id"] for row in rows]
    assert set(found[0]) - set(rows[0]) == COLUMNS
    faulty = set(range(7, N, 10))
    assert (result["suite"], result["n"], result["n_unscored"], len(faulty)) == ("mosaic", N, FAULTY, FAULTY)
    for number, row in enumerate(found):
        if number in faulty:
            continue
        good = "no" if number % 4 == 0 else "yes"
        assert [row[f"response/llm_judged/{name}/rating"] for name in RESPONSE] == [good] * 5, number
        assert row["retrieval/llm_judged/chunk_relevance/ratings"] == ["yes", "yes", "no", "yes"]
        assert row["retrieval/llm_judged/chunk_relevance/error_messages"] == [None] * 4
        assert row["retrieval/llm_judged/chunk_relevance/precision"] == 0.75
        assert row["retrieval/ground_truth/document_recall"] == 0.5
    mumbled, cut, unasked, unguided = (found[number] for number in (7, 17, 27, 37))
    for name in RESPONSE:
        assert mumbled[f"response/llm_judged/{name}/rating"] is None
        assert mumbled[f"response/llm_judged/{name}/error_message"].startswith(
            "parse: no rating in the reply"
        )
    assert mumbled["retrieval/llm_judged/chunk_relevance/precision"] == 0.75
    assert cut["response/llm_judged/correctness/rating"] == "yes"
    why = "input: retrieved_context cannot be read: not JSON"
    assert cut["response/llm_judged/groundedness/error_message"].startswith(why)
    assert cut["retrieval/llm_judged/chunk_relevance/error_messages"][0].startswith(why)
    assert cut["retrieval/llm_judged/chunk_relevance/precision"] is None
    assert cut["retrieval/ground_truth/document_recall"] is None
    assert cut["retrieval/ground_truth/document_recall/error_message"].startswith(why)
    assert unasked["response/llm_judged/safety/error_message"] == "input: the question is empty"
    assert unasked["retrieval/ground_truth/document_recall"] == 0.5
    assert (
        unguided["response/llm_judged/guideline_adherence/error_message"] == "input: there is no guidelines"
    )
    assert unguided["response/llm_judged/safety/rating"] == "yes"


def test_the_numbers_of_a_run(judged: Judged, served: StubServer) -> None:
    result, _ = judged([a_row(number) for number in range(12)])
    rates = {name: rate["raw"] for name, rate in result["rates"].items()}
    for name in RESPONSE:
        found = rates[name]
        assert (found["value"], found["n"], found["n_expected"], found["n_unscored"]) == (0.75, 12, 12, 0)
        assert found["low"] < 0.75 < found["high"]
        assert result["rates"][name]["n_unscored"] == 0
    assert (rates["chunk_relevance"]["value"], rates["chunk_relevance"]["n"]) == (0.75, 12)
    assert (rates["document_recall"]["value"], rates["document_recall"]["n"]) == (0.5, 12)
    assert result["rates"]["chunk_relevance"]["n_chunks_unscored"] == 0
    assert served.calls == 12 * 6 + 48
    assert result["usd"] == pytest.approx(120 * USD_A_CALL)
    assert {one["name"] for one in result["left_out"]} == {"correctness_facts", "context_sufficiency_facts"}
    assert {one["lock"] for one in result["judges"]} == {None}


def test_judges_without_their_columns_are_left_out_and_said(judgecal: Run, judged: Judged) -> None:
    facts = {"response": "A number.", "expected_facts": ["It is."]}
    result, found = judged([{"request": f"What is {number}?", **facts} for number in "ab"])
    assert set(result["rates"]) == {"correctness_facts", "relevance_to_query", "safety"}
    left_out = {one["name"]: one["why"] for one in result["left_out"]}
    assert left_out["groundedness"] == "there is no context in 2 of 2 rows"
    assert left_out["correctness"] == "there is no expected response in 2 of 2 rows"
    assert set(left_out) == {
        "correctness", "groundedness", "guideline_adherence", "chunk_relevance", "context_sufficiency",
        "context_sufficiency_facts", "document_recall",
    }  # fmt: skip
    assert found[0]["response/llm_judged/correctness/rating"] == "yes"  # the column is that of both
    assert "response/llm_judged/groundedness/rating" not in found[0]
    page = judgecal("report", result["experiment"], "--full").out
    assert "there is no context in 2 of 2 rows" in " ".join(page.split())


def test_each_row_has_the_first_judge_of_a_column_that_it_can_feed(judged: Judged) -> None:
    rows = [a_row(number) for number in range(4)]
    for row in rows[2:]:
        del row["expected_response"]
    result, _ = judged(rows)
    assert (result["rates"]["correctness"]["n"], result["left_out"]) == (4, [])


def test_what_is_written_for_mlflow_is_read_from_it(
    judgecal: Run, workspace_dir: Path, judged: Judged
) -> None:
    rows = [{"inputs": {"question": f"Why {n}?"}, "outputs": f"{'mumble' if n == 2 else 'Because'} {n}.",
             "expectations": {"expected_response": f"Because {n}."}} for n in range(4)]  # fmt: skip
    for ending in ("jsonl", "csv", "parquet"):
        judged(rows, code=4, columns="mlflow", ending=ending)
        back = one_object(judgecal("gold", "import", f"out.{ending}", "--from", "mlflow", "--as", f"back-{ending}",
                                   "--scale", "binary", "--json"))  # fmt: skip
        assert (back["n_items"], back["raters"]) == (4, {})
        assert set(back["judges"].values()) == {4} and back["n_rows"] == 4 * (1 + len(back["judges"]))
        kept = read(workspace_dir / "gold" / f"back-{ending}" / "judgements.jsonl")
        of = [row for row in kept if row["judge"] == "mosaic/correctness@mine"]
        assert [row["verdict"] is None for row in of] == [False, False, True, False]
        assert of[2]["error"].startswith("parse: ") and of[0]["verdict"] in (1, "yes")


def test_plain_columns_take_the_column_options(judged: Judged) -> None:
    answers = {"r": "good", "c": ["one", "bad two"]}
    rows = [{"q": f"Why {n}?", "a": "bad" if n else "good", **answers} for n in range(2)]
    names = ("--col", "question=q", "--col", "answer=a", "--col", "reference=r", "--col", "contexts=c")
    _, found = judged(rows, *names, columns="plain")
    assert [row["correctness_verdict"] for row in found] == [1.0, 0.0]
    assert [row["correctness_passed"] for row in found] == [True, False]
    assert found[0]["chunk_relevance_verdicts"] == [1.0, 0.0] and found[0]["chunk_relevance_precision"] == 0.5
    assert "guideline_adherence_verdict" not in found[0]
    for name, usd in (("correctness", USD_A_CALL), ("chunk_relevance", 2 * USD_A_CALL)):
        assert found[0][f"{name}_cost_usd"] == pytest.approx(usd) and found[0][f"{name}_latency_s"] >= 0.0
        assert found[0][f"{name}_model_id"] == MODEL_ID


def test_a_chunk_without_a_text_is_not_asked_about(judged: Judged) -> None:
    chunks = [{"doc_uri": "d1"}, {"content": "a fact", "doc_uri": "d2"}, {"content": "mumble"}]
    result, (found,) = judged([a_row(1) | {"retrieved_context": chunks}], code=4)
    errors = found["retrieval/llm_judged/chunk_relevance/error_messages"]
    assert (errors[0], errors[1], errors[2][:6]) == ("input: the chunk has no text", None, "parse:")
    assert found["retrieval/llm_judged/chunk_relevance/ratings"] == [None, "yes", None]
    assert found["retrieval/llm_judged/chunk_relevance/precision"] == 1.0
    assert result["rates"]["chunk_relevance"]["n_chunks_unscored"] == 2
    assert found["retrieval/ground_truth/document_recall"] == 0.5


def test_a_run_goes_on_where_it_stopped_with_one_budget(
    judgecal: Run, workspace_dir: Path, served: StubServer
) -> None:
    table = write(workspace_dir / "in.jsonl", [a_row(number) for number in range(6)])
    options = ("judge", table, *MOSAIC, "--no-cache", "--json")
    first = judgecal(*options, "--budget-usd", str(25.5 * USD_A_CALL))
    made = served.calls
    assert first.code == 4 and 0 < made < 60
    assert "budget: " in (workspace_dir / "out.jsonl").read_text()
    again = judgecal(*options)
    assert again.code == 0 and served.calls == 60
    plan = one_object(judgecal(*options, "--dry-run"))
    assert (plan["calls"], plan["stored"]) == (0, 66)  # with document_recall of six rows


def test_a_lock_among_others_writes_what_a_single_one_does(judgecal: Run, workspace_dir: Path) -> None:
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    gold = load_gold(workspace_dir / "gold" / "starter")
    turned = Calibration(
        (30.0,), (10.0, 80.0), 100, 50
    )  # other labels, and a cut below the people's mark of 75
    a = lock_file(workspace_dir / "a.lock.json", judge, gold, calibration=turned)
    b = lock_file(workspace_dir / "b.lock.json", judge, gold)
    rows = [
        {"question": one.question, "answer": one.answer, "reference": one.reference_answer}
        for one in gold.items
    ]
    table = write(workspace_dir / "in.jsonl", rows[:60])
    words = "--col question=question --col answer=answer --col reference=reference --json"
    single = one_object(judgecal("judge", table, "--lock", a, "-o", "one.jsonl", *words.split()))
    both = one_object(judgecal("judge", table, "--lock", a, "--lock", b, "-o", "both.jsonl", *words.split()))
    names = {"verdict": "verdict", "passed": "passed", "calibrated": "calibrated", "model_id": "model_id"}
    pairs = list(zip(read(workspace_dir / "one.jsonl"), read(workspace_dir / "both.jsonl"), strict=True))
    for one, other in pairs:
        assert [one[name] for name in names] == [other[f"correctness_v3_{name}"] for name in names.values()]
        assert {
            "correctness_v3_cost_usd",
            "correctness_v3_latency_s",
            "correctness_v3_2_calibrated",
        } <= other.keys()
    assert any(one["passed"] and one["verdict"] < 75 for one, _ in pairs)
    (alone,) = single["rates"].values()
    shown = both["rates"]["correctness_v3"]
    assert (shown["raw"], shown["calibrated"]) == (alone["raw"], alone["calibrated"])
    assert shown["raw"] != alone["calibrated"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "say who judges: give --lock LOCK"),
        (("--suite", "mosaic", "--lock", "in.jsonl"), "say who judges"),
        (("--suite", "mosaic", "--columns", "mosiac"), "--columns is one of plain, mosaic, mlflow"),
        (("--suite", "mosaic", "--columns", "mosaic", "--col", "question=q"), "--col question=q: --columns mosaic reads"),
        (("--lock", "in.jsonl", "--model", "mine"), "a lock names its own model"),
        (("--suite", "mosaic"), "the judge asks for question: name the column with --col question="),
        (("--suite", "mosaik"), "unknown suite 'mosaik'"),
        (("--suite", "bare", "--columns", "mosaic"), "bare: a: unknown signature 'nowhere'"),
        (("--suite", "mixed", "--columns", "mosaic"), "fill one column, and differ in unit or scale"),
        (("--suite", "wrong", "--columns", "mosaic"), "aggregate 'precision' fits no judge of item"),
        (("--suite", "mosaic", "--columns", "mosaic", "--col", "group=g"), "unknown column 'g'"),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly(
    judgecal: Run, workspace_dir: Path, options: tuple[str, ...], message: str
) -> None:
    suites = workspace_dir / "suites"
    (suites / "bare.toml").write_text('[judges.a]\njudge = "nowhere"\n')
    (suites / "mixed.toml").write_text(
        '[judges.a]\njudge = "mosaic/safety"\ncolumn = "c"\n[judges.b]\njudge = "correctness_v3"\ncolumn = '
        '"c"\n'
    )
    (suites / "wrong.toml").write_text('[judges.a]\njudge = "mosaic/safety"\naggregate = "precision"\n')
    table = write(workspace_dir / "in.jsonl", [a_row(1)])
    ran = judgecal("judge", table, "-o", "out.jsonl", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err, ran.err
    assert not (workspace_dir / "experiments").exists()


# --- one record as an item


@pytest.mark.parametrize(
    ("request_", "question"),
    [
        ("Why?", "Why?"),
        ({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"},
                       {"role": "user", "content": "Why?"}]}, "Why?"),
        ({"query": "Why?", "history": [{"role": "user", "content": "Hi"}]}, "Why?"),
        ('{"messages": [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]}', "Why?"),
        ({"question": "Why?", "user": "u1"}, "Why?"),
        ({"anything": "Why?"}, "Why?"),
        ('{"json": "as a question"}', '{"json": "as a question"}'),
        ("[1] Why?", "[1] Why?"),
        ({"a": 1, "b": 2}, '{"a": 1, "b": 2}'),
    ],
)  # fmt: skip
def test_a_request_in_every_form(request_: Any, question: str) -> None:
    for name in ("request", "inputs"):
        assert read_record({name: request_, "response": "x"}).item.question == question


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("So.", "So."),
        ({"choices": [{"message": {"role": "assistant", "content": "So."}}]}, "So."),
        ('{"choices": [{"message": {"content": "So."}}]}', "So."),
        ({"messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]}, "So."),
        ({"output": [{"type": "message", "content": [{"type": "output_text", "text": "So."}]}]}, "So."),
        ({"response": "So.", "latency": 3}, "So."),
        ([{"role": "assistant", "content": "So."}], "So."),
        ('{"answer": 42}', '{"answer": 42}'),
        ("", ""),
    ],
)
def test_a_response_in_every_form(response: Any, answer: str) -> None:
    for name in ("response", "outputs"):
        found = read_record({"request": "Why?", name: response})
        assert (found.item.answer, [*found.problems]) == (answer, ["expected_response"])


def test_facts_and_guidelines_are_lines() -> None:
    record = {
        "request": "?", "response": "x", "expected_facts": '["one", "two"]',
        "guidelines": {"tone": ["Be kind.", "Be calm."], "length": "Be short."},
    }  # fmt: skip
    fields = read_record(record).item.fields
    assert fields["expected_facts"] == "- one\n- two"
    assert fields["guidelines"] == "- tone: Be kind.\n- tone: Be calm.\n- length: Be short."
    assert read_record({"request": "?", "guidelines": "Be short."}).item.fields["guidelines"] == "Be short."


@pytest.mark.parametrize("odd", ["[1, 2]", "[{", '{"content": ', [3], "[[]]"])
def test_contexts_that_cannot_be_read_are_a_problem_and_no_crash(odd: Any) -> None:
    found = read_record({"request": "?", "response": "x", "retrieved_context": odd})
    assert found.item.contexts == ()
    assert "retrieved_context cannot be read" in found.problems["retrieved_context"]


def test_a_changed_document_is_another_item_for_who_reads_it() -> None:
    """`document_recall` reads nothing else, and a stored verdict must not outlive it."""
    record = {"request": "?", "response": "x", "retrieved_context": [{"content": "c", "doc_uri": "d1"}]}
    other = {**record, "retrieved_context": [{"content": "c", "doc_uri": "d2"}]}
    wanted = {**record, "expected_retrieved_context": [{"doc_uri": "d1"}]}
    recall = judge_named("document_recall@local")
    shown = [read_record(one).shown(recall) for one in (record, other, wanted)]
    assert len({item.item_id for item in shown}) == 3 and len({item.sha for item in shown}) == 1
