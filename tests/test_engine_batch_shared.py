"""Batches that a later run asks only in part, or together with another model's: nothing is paid twice or
forgotten."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgecal.bulk.batch import run_batches
from judgecal.engine import Budget, Call, Journal, read_journal
from judgecal.engine.calls import ReplySchema
from judgecal.errors import AuthError, JudgecalError
from tests.support.batch_runs import QUICK, batched, due_calls, killed
from tests.support.batch_server import KINDS, BatchServer, batches_at, text_of

N = 20


def says(body: dict[str, Any], _: int) -> str:
    return str(int(text_of(body).rpartition(" ")[2]) % 7)


def spent(folder: Path) -> float:
    return float(json.loads((folder / "spending.json").read_text())["spent_usd"])


def test_what_a_smaller_run_leaves_in_a_batch_is_taken_by_the_next_one(tmp_path: Path) -> None:
    with batches_at("openai", says) as server:
        run = functools.partial(batched, server.model(), tmp_path, ledger=True)
        assert killed("while it waits", lambda: run(N)) == signal.SIGKILL
        run(5)
        assert killed("half journalled", lambda: run(12), after=2) == signal.SIGKILL
        run(12)
        run(N)
        assert len(server.batches) == 1
        assert set(server.billed.values()) == {1}
    rows = list(read_journal(tmp_path / "judgements.jsonl"))
    assert {row.item_id: row.verdict for row in rows} == {f"i{n}": n % 7 for n in range(N)}
    assert len(rows) == N
    assert sum(row.cost_usd or 0.0 for row in rows) <= spent(tmp_path)


def test_what_waits_counts_as_spent_when_a_process_is_killed(tmp_path: Path) -> None:
    (tmp_path / "spending.json").write_text('{"schema": 1, "spent_usd": 1.0}')
    with batches_at("openai", says) as server:
        run = functools.partial(batched, server.model(), tmp_path, N, ledger=True)
        assert killed("while it waits", run) == signal.SIGKILL
        run()
    cost = sum(row.cost_usd or 0.0 for row in read_journal(tmp_path / "judgements.jsonl"))
    assert spent(tmp_path) >= 1.0 + cost


def two_settings(server: BatchServer, folder: Path) -> None:
    """Judge some items by one model at two temperatures."""

    def due(journal: Journal, judge: str) -> list[Call]:
        calls = [
            replace(call, key=call.key._replace(judge_fingerprint=judge)) for call in due_calls(journal, N)
        ]
        return [call for call in calls if journal.settled(call.key, retry_unscored=False) is None]

    with Journal(folder / "judgements.jsonl") as journal:
        asked = [
            (replace(server.model(), alias=f"t{t}", temperature=t), functools.partial(due, journal, f"t{t}"))
            for t in (0.0, 1.0)
        ]
        run_batches(asked, journal=journal, budget=Budget(None), policy=QUICK)


def test_two_settings_of_one_model_resume_each_its_own_batch(tmp_path: Path) -> None:
    with batches_at("anthropic", lambda *_: "5", pending=6) as server:
        assert killed("while it waits", lambda: two_settings(server, tmp_path), after=3) == signal.SIGKILL
        two_settings(server, tmp_path)
        assert len(server.batches) == 2
        assert set(server.billed.values()) == {1}
    assert len(list(read_journal(tmp_path / "judgements.jsonl"))) == 2 * N


def test_two_settings_look_once_for_a_batch_whose_id_is_lost(tmp_path: Path) -> None:
    with batches_at("openai", lambda *_: "5") as server:
        assert (
            killed("before the id is noted", lambda: two_settings(server, tmp_path), after=2)
            == signal.SIGKILL
        )
        two_settings(server, tmp_path)
        assert len(server.batches) == 2
        assert set(server.billed.values()) == {1}
    assert len(list(read_journal(tmp_path / "judgements.jsonl"))) == 2 * N


GRADE = ReplySchema({"grade": {"type": "integer", "minimum": 0, "maximum": 3}})


def test_a_schema_that_the_live_call_was_refused_is_in_no_batch(tmp_path: Path) -> None:
    def refuses(body: dict[str, Any], before: int) -> str | int:
        return 400 if "grade" in json.dumps(body) else says(body, before)

    with batches_at("openai", refuses) as server, Journal(tmp_path / "judgements.jsonl") as journal:
        asked = [(server.model(), lambda: [replace(call, schema=GRADE) for call in due_calls(journal, 7)])]
        run_batches(asked, journal=journal, budget=Budget(None), policy=QUICK)
        sizes = [len(batch.bodies) for batch in server.batches.values()]
    rows = {row.item_id: row.verdict for row in read_journal(tmp_path / "judgements.jsonl")}
    assert (rows, len(server.live), sizes) == ({f"i{n}": n for n in range(7)}, 2, [6])


def test_a_list_whose_key_may_not_read_it_leaves_the_batch_as_it_is(tmp_path: Path) -> None:
    with batches_at("openai", says) as server:
        server.losing = True
        with pytest.raises(JudgecalError, match="which may have been handed in: let the key list batches"):
            _refusing_the_list(lambda: batched(server.model(), tmp_path, N))
        batched(server.model(), tmp_path, N)
        assert len(server.batches) == 1


def _refusing_the_list(run: Callable[[], object]) -> None:
    """A run while the key may not list batches."""
    with pytest.MonkeyPatch.context() as patch:

        async def refused(*_: Any) -> list[str]:
            raise AuthError("HTTP 403: this key may not list batches")

        patch.setattr("judgecal.bulk.provider_batches.OpenAIBatches.find", refused)
        run()


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_that_never_ends_is_read_once(kind: str, tmp_path: Path) -> None:
    with batches_at(kind, says) as server:
        assert killed("before it is sent", lambda: batched(server.model(), tmp_path, N)) == signal.SIGKILL
        server.take(
            "else", {"other": {"messages": [{"content": "x 1"}], "contents": [{"parts": [{"text": "x 1"}]}]}}
        )
        server.endless = True
        batched(server.model(), tmp_path, N)
        assert set(server.billed.values()) == {1}


def test_a_batch_that_never_ends_is_not_waited_for_forever(tmp_path: Path) -> None:
    with batches_at("gemini", says, pending=10**9) as server:
        with pytest.raises(
            JudgecalError, match=r"batches/0000 of 20 requests has not ended at gemini .* cancelled"
        ):
            batched(server.model(), tmp_path, N, policy=replace(QUICK, longest_s=0.2))
        server.pending = 0
        batched(server.model(), tmp_path, N)
        assert len(server.batches) == 1


def test_a_provider_that_is_away_for_a_while_does_not_end_the_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with batches_at("anthropic", says, pending=3) as server:
        server.broken = [0, *[503] * 30]
        batched(server.model(), tmp_path, N)
        assert len(server.batches) == 1
    assert capsys.readouterr().err.count("anthropic does not say how a batch stands") == 1


def test_a_clock_that_was_put_back_is_not_waited_for(tmp_path: Path) -> None:
    with batches_at("openai", says) as server:
        assert killed("before it is sent", lambda: batched(server.model(), tmp_path, N)) == signal.SIGKILL
        path = tmp_path / "batches.jsonl"
        line = json.loads(path.read_text())
        path.write_text(json.dumps({**line, "at": line["at"] + 86_400.0}) + "\n")
        batched(server.model(), tmp_path, N)
        assert len(server.batches) == 1


def test_a_page_in_the_place_of_an_answer_is_quoted_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen-anywhere")
    with batches_at("openai", says) as server:
        server.page = b"<html><b>Sign in</b> as sk-not-to-be-seen-anywhere</html>"
        with pytest.raises(JudgecalError) as error:
            batched(server.model(), tmp_path, N, policy=replace(QUICK, attempts=2, questions=2))
    assert "is not JSON: Sign in as" in str(error.value)
    assert "not-to-be-seen" not in str(error.value)
    assert "not-to-be-seen" not in (tmp_path / "batches.jsonl").read_text()


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_one_damaged_line_does_not_hold_up_the_others(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with batches_at(kind, says) as server:
        server.damaged = "batch_0000"
        batched(server.model(), tmp_path, N)
        sizes = [len(batch.bodies) for batch in server.batches.values()]
    rows = list(read_journal(tmp_path / "judgements.jsonl"))
    assert {row.item_id: row.verdict for row in rows} == {f"i{n}": n % 7 for n in range(N)}
    assert (len(rows), sizes) == (N, [N, 1])
    assert "lines of its results that cannot be read: 1;" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_results_that_name_no_request_are_of_none(kind: str, tmp_path: Path) -> None:
    def nameless(lines: list[str]) -> list[str]:
        return [re.sub(r'"custom_id": "[^"]*"|"metadata": {"key": "[^"]*"}', '"x": 1', one) for one in lines]

    with batches_at(kind, says) as server:
        server.results = nameless
        batched(server.model(), tmp_path, 3)
        assert len(server.batches) == QUICK.tries
    rows = list(read_journal(tmp_path / "judgements.jsonl"))
    assert [(row.verdict, row.error and row.error.kind) for row in rows] == [(None, "server")] * 3


@pytest.mark.parametrize("lines", [["<html>busy</html>"], ["{", '{"custom_id": 3'], ["null", "[]"]])
def test_results_that_stay_unreadable_are_not_asked_for_for_an_hour(lines: list[str], tmp_path: Path) -> None:
    with batches_at("openai", says) as server:
        server.results = lambda _: lines
        with contextlib.suppress(JudgecalError):
            batched(server.model(), tmp_path, 2)
        fetched = sum("/content" in path for path in server.paths)
        assert fetched <= 2 * QUICK.attempts * QUICK.tries
    assert all(row.verdict is None for row in read_journal(tmp_path / "judgements.jsonl"))
