"""The engine of `judge --engine ray`: a file is a task on one core of a Ray cluster, or of this machine.

Budget and calls at once are divided among the workers. One that ends gives back what it has not spent, so
that all of them together never spend more than the budget; one that is lost gives nothing back, for it cannot
say what it has spent. No key goes through Ray's messages, its dashboard or its logs: each worker takes it
from its own environment, by the name in `judgecal.toml`.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from judgecal.bulk.files import FileTask
from judgecal.engine.budget import Budget
from judgecal.errors import BusyError, InputError, JudgecalError, error_text, not_installed, notice
from judgecal.production.results import RowCounts
from judgecal.production.suite import SuiteColumn

_TRIES = 3  # of a file whose worker is lost
_STORE_BYTES = 256 * 2**20  # for what tasks give back, which is some 20 bytes a row


def require_ray() -> Any:
    """Return the ray module, with its usage statistics off; InputError where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise not_installed("--engine ray needs", "ray", "ray", instead="leave out --engine") from None
    return ray


@contextlib.contextmanager
def _started() -> Iterator[Any]:
    """Ray: the cluster that RAY_ADDRESS names, else this machine on 127.0.0.1, without a dashboard."""
    ray, options = require_ray(), dict[str, Any](log_to_driver=False, logging_level="ERROR")
    if os.environ.get("RAY_ADDRESS", "local") == "local":
        options |= {"address": "local", "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        options["_node_ip_address"] = "127.0.0.1"
    with contextlib.redirect_stdout(io.StringIO()):  # Ray prints there, where the result goes
        try:
            context = ray.init(**options)
        except (Exception, SystemExit) as error:  # of a machine that is too busy it raises either
            name = "RAY_ADDRESS names a cluster that runs; without it, Ray is started on this machine"
            raise InputError(f"Ray cannot be started or reached ({error_text(error)}): {name}") from error
        with context:
            yield ray


def judge_on_ray(
    tasks: Sequence[FileTask], column: SuiteColumn, limit_usd: float | None
) -> Iterator[tuple[int, RowCounts]]:
    """Yield (task number, RowCounts) of FileTasks judged on Ray for a SuiteColumn, by a limit in USD."""
    model = column.judges[0].judge.model
    at_once = (model and model.max_concurrency) or len(tasks)
    with _started() as ray:
        workers = min(max(1, int(ray.cluster_resources().get("CPU", 1))), len(tasks), at_once)
        each = "" if limit_usd is None else f"begins with {limit_usd / workers:.4g} of {limit_usd:g} USD and "
        each += f"may make 1/{workers} of the calls at once"
        notice(f"judgecal: {len(tasks)} files on {workers} workers of Ray; each {each}")
        options = replace(tasks[0].options, quiet=True, processes=workers)
        remote = ray.remote(max_retries=0)(_judge_file)
        waiting = deque((number, 1) for number in range(len(tasks)))
        running: dict[Any, tuple[int, int, float]] = {}  # task of Ray -> number, try and share of the budget
        left = limit_usd or 0.0  # what no worker holds
        enough = 0.5 * left / workers  # with less, a file waits for what another one gives back
        try:
            while waiting or running:
                while waiting and len(running) < workers and (left >= enough or not running):
                    number, attempt = waiting.popleft()
                    share = max(0.0, left) / min(workers - len(running), len(waiting) + 1)
                    left -= share
                    task = replace(tasks[number], options=options)
                    ref = remote.remote(task, None if limit_usd is None else share)
                    running[ref] = number, attempt, share
                for ref in ray.wait([*running])[0]:
                    number, attempt, share = running.pop(ref)
                    name = tasks[number].name
                    try:
                        rows, spent, remarks = ray.get(ref)
                    except ray.exceptions.RayError as error:
                        notice(f"judgecal: {_why_lost(error, name, attempt)}: another one goes on with it")
                        waiting.append((number, attempt + 1))
                        continue
                    left += (share - spent) if limit_usd else 0.0
                    notice(*(f"judgecal: {name}: {remark}" for remark in [f"{rows.n:,} rows", *remarks]))
                    yield number, rows
        finally:
            for ref in running:
                ray.cancel(ref, force=True)


def _why_lost(error: Exception, name: str, attempt: int) -> str:
    """That a worker was lost, or that the journal of one that was is still held; raises what else it was."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception) and not isinstance(cause, BusyError):
        raise cause if isinstance(cause, JudgecalError) else error
    lost = f"{name}: its worker was lost ({error_text(error)})"
    if attempt == _TRIES:
        raise JudgecalError(f"{lost} {_TRIES} times: the same command goes on from its journal") from error
    return lost


def _judge_file(task: FileTask, limit_usd: float | None) -> tuple[RowCounts, float, list[str]]:
    """In a worker: the rows, what was spent, and what a user must hear of the money."""
    budget = Budget(limit_usd)
    return task.judge(budget), budget.spent_usd, budget.remarks()
