"""Runs of batches through the engine, in this process and in forked ones that are killed at a moment."""

from __future__ import annotations

import functools
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from judgecal.bulk.batch import BatchPolicy, run_batches
from judgecal.bulk.batch_client import BatchClient
from judgecal.bulk.batch_log import BatchLog
from judgecal.engine import Budget, Call, Journal, ReplyCache
from judgecal.models import ModelSpec
from judgecal.records import Key
from tests.support.calls import read_number

QUICK = BatchPolicy(first_wait_s=0.01, longest_wait_s=0.05, settle_s=0.05)
Moment = Literal[
    "before it is sent", "before the id is noted", "while it waits", "while it is read", "half journalled"
]
MOMENTS: tuple[Moment, ...] = (
    "before it is sent", "before the id is noted", "while it waits", "while it is read", "half journalled",
)  # fmt: skip


def due_calls(journal: Journal, count: int, *, size: int = 0) -> Iterator[Call]:
    """Those of so many calls that the journal does not settle."""
    for number in range(count):
        messages = [
            {"role": "system", "content": "Judge." + size * "."},
            {"role": "user", "content": f"Is it right? {number}"},
        ]
        key = Key(f"i{number}", "sha", "print", 0)
        if journal.settled(key, retry_unscored=False) is None:
            yield Call(key, "judge@stub", functools.partial(list, messages), read_number)


def batched(spec: ModelSpec, folder: Path, count: int, *, cache: bool = False, **how: Any) -> Budget:
    """One run of a folder's experiment; gives its budget."""
    size = how.pop("size", 0)
    total_usd, keeps_ledger = how.pop("total_usd", None), how.pop("ledger", False)
    budget = Budget(None, total_usd=total_usd, ledger=folder / "spending.json" if keeps_ledger else None)
    with Journal(folder / "judgements.jsonl") as journal:
        asked = [(spec, functools.partial(due_calls, journal, count, size=size))]
        kept = {"policy": QUICK, "budget": budget, **how}
        store = ReplyCache(folder / "cache") if cache else None
        try:
            run_batches(asked, journal=journal, cache=store, **kept)
        finally:
            budget.save()
    return budget


def killed(moment: Moment, run: Callable[[], object], *, after: int = 1) -> int:
    """Run in a forked child that kills itself at the moment; its signal, or 0 where it came to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        code = 1
        try:
            _arm(moment, after)
            run()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)


def _arm(moment: Moment, after: int) -> None:
    """Have this process die at a moment, for good."""
    left = after

    def die() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def dies_after(owner: type, name: str) -> None:
        made = getattr(owner, name)

        def wrapped(*args: Any, **named: Any) -> Any:
            found = made(*args, **named)
            die()
            return found

        setattr(owner, name, wrapped)

    def dies_once_awaited(owner: type, name: str) -> None:
        made = getattr(owner, name)

        async def wrapped(*args: Any, **named: Any) -> Any:
            found = await made(*args, **named)
            die()
            return found

        setattr(owner, name, wrapped)

    if moment == "before it is sent":
        dies_after(BatchLog, "intend")
    elif moment == "before the id is noted":
        dies_once_awaited(BatchClient, "hand_in")
    elif moment == "while it waits":
        dies_once_awaited(BatchClient, "state")
    elif moment == "while it is read":
        dies_once_awaited(BatchClient, "fetch")
    else:
        dies_after(Journal, "append")
