"""Batches: the same rows as live, each once, nothing paid twice, whatever happens in between."""

from __future__ import annotations

import functools
import json
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgecal.bulk.batch import run_batches
from judgecal.engine import Budget, Call, Journal, Policy, read_journal, run_calls
from judgecal.errors import AuthError, InputError, JudgecalError
from tests.support.batch_runs import MOMENTS, QUICK, Moment, batched, due_calls, killed
from tests.support.batch_server import KINDS, BatchServer, batches_at, text_of

N = 60


def number_of(body: dict[str, Any]) -> int:
    return int(text_of(body).rpartition(" ")[2])


def every_tenth_fails_once(body: dict[str, Any], before: int) -> str | int:
    number = number_of(body)
    return 500 if number % 10 == 3 and before == 0 else str(number % 7)


def verdicts(folder: Path) -> dict[str, Any]:
    """Item -> verdict, of a journal that has each once."""
    rows = list(read_journal(folder / "judgements.jsonl"))
    assert all(count == 1 for count in Counter(row.key for row in rows).values())
    return {row.item_id: row.verdict for row in rows}


def events(folder: Path) -> list[str]:
    return [json.loads(line)["event"] for line in (folder / "batches.jsonl").read_text().splitlines()]


def check_whole(server: BatchServer, folder: Path, n: int = N) -> None:
    assert verdicts(folder) == {f"i{number}": number % 7 for number in range(n)}
    assert server.billed and set(server.billed.values()) <= {0, 1}
    assert sum(server.billed.values()) == n


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_rows_of_live_calls_at_half_the_price(kind: str, tmp_path: Path) -> None:
    with batches_at(kind, every_tenth_fails_once) as server:
        batched(server.model(), tmp_path, N)
        check_whole(server, tmp_path)
        sent = [body for batch in server.batches.values() for body in batch.bodies.values()]
        server.asked.clear()
        with Journal(tmp_path / "live.jsonl") as journal:
            quick = Policy(first_wait_s=0.01)
            run_calls(list(due_calls(journal, N)), server.model(), record=journal.append, policy=quick)
        live = {row.key: row for row in read_journal(tmp_path / "live.jsonl")}
    assert {json.dumps(body) for body in sent} == {json.dumps(body) for body in server.live}
    for row in read_journal(tmp_path / "judgements.jsonl"):
        other = live[row.key]
        assert (row.verdict, row.reasoning, row.model_id, row.prompt_tokens, row.attempts) == (
            other.verdict, other.reasoning, other.model_id, other.prompt_tokens, other.attempts,
        )  # fmt: skip
        assert row.latency_s is None
        assert row.cost_usd == pytest.approx((other.cost_usd or 0.0) / 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_a_moment_nothing_is_lost_or_paid_twice(kind: str, moment: Moment, tmp_path: Path) -> None:
    with batches_at(kind, every_tenth_fails_once) as server:
        after = N // 2 if moment == "half journalled" else 1
        run = functools.partial(batched, server.model(), tmp_path, N, ledger=kind == "openai")
        assert killed(moment, run, after=after) == signal.SIGKILL
        budget = run()
        check_whole(server, tmp_path)
    assert events(tmp_path).count("read") == len(server.batches) == 2
    cost = sum(row.cost_usd or 0.0 for row in read_journal(tmp_path / "judgements.jsonl"))
    if kind == "openai":
        assert cost <= json.loads((tmp_path / "spending.json").read_text())["spent_usd"] <= cost * 1.02 + 0.01
    assert budget.reserved_usd == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_expired_batch_did_not_come_to_goes_into_another(kind: str, tmp_path: Path) -> None:
    with batches_at(kind, lambda body, _: str(number_of(body) % 7), expires=(0,)) as server:
        batched(server.model(), tmp_path, N)
        sizes = [len(batch.bodies) for batch in server.batches.values()]
    assert verdicts(tmp_path) == {f"i{number}": number % 7 for number in range(N)}
    if kind == "gemini":  # which gives nothing of a batch that has expired
        assert sizes == [N, N]
    else:
        assert sizes == [N, N // 2]
    assert set(server.billed.values()) == {1}


def test_three_batches_are_tried_and_then_the_row_has_an_error(tmp_path: Path) -> None:
    def fails(body: dict[str, Any], _: int) -> str | int:
        return {1: 500, 2: 400, 3: "no number"}.get(number_of(body), "5")

    with batches_at("openai", fails) as server:
        batched(server.model(), tmp_path, 5)
        sizes = [len(batch.bodies) for batch in server.batches.values()]
    rows = {row.item_id: row for row in read_journal(tmp_path / "judgements.jsonl")}
    assert sizes == [5, 1, 1]
    found = {name: (row.error.kind if row.error else None, row.attempts) for name, row in rows.items()}
    assert found == {
        "i0": (None, 1), "i1": ("server", 3), "i2": ("refused", 1), "i3": ("parse", 1), "i4": (None, 1),
    }  # fmt: skip


def test_a_resumed_run_asks_for_more_and_takes_what_waits(tmp_path: Path) -> None:
    with batches_at("openai", every_tenth_fails_once) as server:
        killed("while it waits", lambda: batched(server.model(), tmp_path, 20))
        batched(server.model(), tmp_path, N)
        check_whole(server, tmp_path)
        assert [len(batch.bodies) for batch in server.batches.values()][:2] == [20, N - 20]


def test_batches_are_split_at_the_limits_of_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judgecal.bulk.provider_batches import OpenAIBatches as Batches

    monkeypatch.setattr(Batches, "most_requests", 25)
    with batches_at("openai", every_tenth_fails_once) as server:
        batched(server.model(), tmp_path, N)
        check_whole(server, tmp_path)
        assert [len(batch.bodies) for batch in server.batches.values()] == [25, 25, 10, 6]
    monkeypatch.setattr(Batches, "most_bytes", 12_000)
    with batches_at("openai", every_tenth_fails_once) as server:
        (tmp_path / "small").mkdir()
        batched(server.model(), tmp_path / "small", N)
        check_whole(server, tmp_path / "small")
        assert max(len(data) for data in server.files.values()) <= 12_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_answer_to_the_handing_in_is_looked_for(kind: str, tmp_path: Path) -> None:
    with batches_at(kind, every_tenth_fails_once) as server:
        server.losing = True
        batched(server.model(), tmp_path, N)
        check_whole(server, tmp_path)


def test_errors_that_pass_are_waited_out(tmp_path: Path) -> None:
    with batches_at("anthropic", every_tenth_fails_once) as server:
        server.broken = [503, 529]
        batched(server.model(), tmp_path, N)
        check_whole(server, tmp_path)


def test_somebody_elses_batch_of_as_many_requests_is_not_taken_for_ours(tmp_path: Path) -> None:
    with batches_at("anthropic", every_tenth_fails_once) as server:
        assert killed("before it is sent", lambda: batched(server.model(), tmp_path, N)) == signal.SIGKILL
        other = {f"other-{n}": {"messages": [{"role": "user", "content": f"else {n}"}]} for n in range(N)}
        server.take("", other)
        batched(server.model(), tmp_path, N)
        assert verdicts(tmp_path) == {f"i{number}": number % 7 for number in range(N)}
        ours = {key: count for key, count in server.billed.items() if "else" not in key}
    assert set(ours.values()) <= {0, 1}


def test_a_budget_holds_at_the_worst_of_a_batch(tmp_path: Path) -> None:
    with batches_at("openai", lambda *_: "5") as server:
        budget = batched(
            server.model(), tmp_path, N, total_usd=0.02, size=2000
        )  # a token a byte: 0.0011 at most
        sizes = [len(batch.bodies) for batch in server.batches.values()]
    rows = list(read_journal(tmp_path / "judgements.jsonl"))
    spent = sum(row.cost_usd or 0.0 for row in rows)
    assert spent == pytest.approx(budget.spent_usd)
    assert {row.error.kind for row in rows if row.error} == {"budget"}
    assert sum(row.error is None for row in rows) == sum(sizes) < N
    assert len(sizes) == 3  # what the first ones really cost left room for more
    assert spent <= 0.02
    assert len(rows) == N


def test_an_interrupted_run_says_what_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with batches_at("openai", every_tenth_fails_once) as server:

        def stop(*_: Any) -> Any:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("judgecal.bulk.batch_client.BatchClient.state", stop)
            with pytest.raises(KeyboardInterrupt):
                batched(server.model(), tmp_path, N)
        said = capsys.readouterr().err
        assert "batch_0000 of 60 requests goes on at openai" in said
        assert "the same command takes its replies" in said
        batched(server.model(), tmp_path, N)
        check_whole(server, tmp_path)


def test_a_server_without_a_batch_api_is_named(tmp_path: Path) -> None:
    with batches_at("openai", every_tenth_fails_once) as server:
        model = server.model(api_base=f"{server.address}/elsewhere")
        with pytest.raises(AuthError, match="may have no batch API: run the command without --batch"):
            batched(model, tmp_path, 3)
        assert events(tmp_path) == ["intended", "void"]


def test_a_batch_that_the_provider_does_not_know_is_not_paid_again_unasked(tmp_path: Path) -> None:
    with batches_at("openai", every_tenth_fails_once) as server:
        killed("while it waits", lambda: batched(server.model(), tmp_path, 3))
        path = tmp_path / "batches.jsonl"
        path.write_text(path.read_text().replace("batch_0000", "gone"))
        with pytest.raises(JudgecalError, match="are the key and the address those"):
            batched(server.model(), tmp_path, 3)
        assert len(server.batches) == 1


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "batches.jsonl").write_text('{"event": "intended"}\n')
    with (
        batches_at("openai", every_tenth_fails_once) as server,
        pytest.raises(InputError, match=r"batches\.jsonl:1"),
    ):
        batched(server.model(), tmp_path, 3)


def test_stored_replies_are_taken_and_added(tmp_path: Path) -> None:
    with batches_at("gemini", every_tenth_fails_once) as server:
        batched(server.model(), tmp_path, 10, cache=True)
        (tmp_path / "judgements.jsonl").unlink()
        batched(server.model(), tmp_path, 20, cache=True)
        check_whole(server, tmp_path, 20)
        assert sum(row.cached for row in read_journal(tmp_path / "judgements.jsonl")) == 10


def test_the_policy_waits_longer_and_not_for_ever() -> None:
    assert QUICK.wait(0) == 0.01
    assert QUICK.wait(1000) == 0.05


def test_batches_that_are_too_many_at_once_come_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judgecal.bulk.provider_batches import OpenAIBatches as Batches

    monkeypatch.setattr(Batches, "most_requests", 10)
    with batches_at("openai", lambda body, _: str(number_of(body) % 7), pending=3, queue=10) as server:
        batched(server.model(), tmp_path, N)
        check_whole(server, tmp_path)
        assert sum(batch.over for batch in server.batches.values()) > 3


def test_a_key_that_is_refused_for_every_row_ends_the_run_and_not_the_next_one(tmp_path: Path) -> None:
    with batches_at("openai", lambda _, before: "5" if before else 401) as server:
        with pytest.raises(AuthError, match="refused the key"):
            batched(server.model(), tmp_path, 3)
        assert events(tmp_path) == ["intended", "submitted", "reading", "read"]
        batched(server.model(), tmp_path, 3)
    assert set(verdicts(tmp_path).values()) == {5.0}


def two_models(server: BatchServer, folder: Path, *wanted: str) -> int:
    """Judge five items by models of one server; the judgements that the journal holds then."""

    def due(journal: Journal, judge: str) -> list[Call]:
        calls = [
            replace(call, key=call.key._replace(judge_fingerprint=judge)) for call in due_calls(journal, 5)
        ]
        return [call for call in calls if journal.settled(call.key, retry_unscored=False) is None]

    with Journal(folder / "judgements.jsonl") as journal:
        models = [replace(server.model(), id=f"anthropic/{name}") for name in wanted]
        asked = [(model, functools.partial(due, journal, model.id)) for model in models]
        run_batches(asked, journal=journal, budget=Budget(None), policy=QUICK)
        return len(journal.latest)


def test_the_batches_of_two_models_wait_together(tmp_path: Path) -> None:
    with batches_at("anthropic", lambda *_: "5", pending=3) as server:
        assert two_models(server, tmp_path, "one", "two") == 10
        made = [at for at, path in enumerate(server.paths) if path.endswith("/batches")]
        read = [at for at, path in enumerate(server.paths) if path.endswith("/results")]
    assert len(made) == len(read) == 2
    assert max(made) < min(read)


def test_two_nameless_batches_of_one_size_are_told_apart(tmp_path: Path) -> None:
    with batches_at("anthropic", lambda *_: "5") as server:
        for name in ("one", "two"):
            killed("before the id is noted", lambda name=name: two_models(server, tmp_path, name))
        assert two_models(server, tmp_path, "one", "two") == 10
        assert len(server.batches) == 2
        assert set(server.billed.values()) == {1}
