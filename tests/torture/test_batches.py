"""5,000 rows by batches of each provider: one in ten fails once, a batch expires, and the run is killed five
times."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judgecal.bulk.provider_batches import FORMATS
from judgecal.engine import Journal, Policy, read_journal, run_calls
from tests.support.batch_runs import MOMENTS, batched, due_calls, killed
from tests.support.batch_server import KINDS, batches_at, text_of
from tests.torture.conftest import LEVEL

N = 5_000 if LEVEL == "full" else 500


def fails_one_in_ten(body: dict[str, Any], before: int) -> str | int:
    number = int(text_of(body).rpartition(" ")[2])
    if number % 10 == 3 and before == 0:
        return (500, 429)[number // 10 % 2]
    return str(number % 7) if number % 1000 else "no number"


def mixed_up(lines: list[str]) -> list[str]:
    """Each line twice, in an order of its own."""
    return random.Random(len(lines)).sample(lines * 2, 2 * len(lines))


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_comes_once_and_is_paid_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = FORMATS[kind]
    monkeypatch.setattr(batches, "most_requests", N // 5)
    begun = time.monotonic()
    with batches_at(kind, fails_one_in_ten, expires=(2,), results=mixed_up) as server:
        spec = server.model()
        for moment in MOMENTS:
            after = N // 3 if moment == "half journalled" else 2
            assert killed(moment, lambda: batched(spec, tmp_path, N), after=after) == signal.SIGKILL, moment
        batched(spec, tmp_path, N)
        print(f"{kind}: {N} rows, {len(server.batches)} batches, {time.monotonic() - begun:.1f} s")
        assert max(server.billed.values()) == 1
        assert sum(server.billed.values()) == N
        rows = list(read_journal(tmp_path / "judgements.jsonl"))
        assert Counter(row.key for row in rows) == Counter({row.key: 1 for row in rows})
        assert len(rows) == N
        server.asked.clear()
        with Journal(tmp_path / "live.jsonl") as journal:
            calls = list(due_calls(journal, N))
            run_calls(
                calls, spec, record=journal.append, policy=Policy(first_wait_s=0.01, longest_wait_s=0.05)
            )
    live = {
        row.item_id: (row.verdict, row.error and row.error.kind)
        for row in read_journal(tmp_path / "live.jsonl")
    }
    assert {row.item_id: (row.verdict, row.error and row.error.kind) for row in rows} == live
