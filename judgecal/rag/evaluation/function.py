"""A system that is a function of the user's: `FILE.py:function`, or `module:function` of an installed module.

It is given the question, a text, and returns the answer, or `{answer, contexts, prompt_tokens,
completion_tokens, cost_usd}` of which only `answer` must be there. It may be `async`. What it raises is the
error of that question.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import importlib
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from judgecal.engine.log import now
from judgecal.errors import InputError, described, unknown_name
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.system import (
    MOST_BYTES,
    Answered,
    Asking,
    System,
    SystemAnswer,
    ask_all,
    ask_at_once,
    contexts_of,
)
from judgecal.records import Failure
from judgecal.signatures import RAN, read_source, run_source

_KEYS = ("answer", "contexts", "prompt_tokens", "completion_tokens", "cost_usd")
_GRACE_S = 1.0  # for functions that go on when the run ends

_Row = dict[str, Any]
"""What came of a question: fields of its answer, or `error` in their place; and the function's seconds."""


class FunctionConfig(BaseModel):
    """The table of such a system."""

    model_config = ConfigDict(extra="forbid", strict=True)
    function: str  # `FILE.py:function` or `module:function`
    # Seconds for one question, of an `async` function alone: no other one can be ended.
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
    # Questions at once; a function that is not `async` is called in so many threads.
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 1


@dataclass
class FunctionSystem(System):
    """A function that answers questions; which models it calls, and what they cost, is not known."""

    name: str
    table: FunctionConfig
    folders: Sequence[Path] = (Path(),)  # where its file is looked for, in this order

    @property
    def shows_contexts(self) -> bool:
        """Whether answers may come with their contexts: not where the function says that it returns `str`."""
        return inspect.signature(self._loaded[0]).return_annotation not in (str, "str")

    def config(self) -> dict[str, Any]:
        """The function, and the text of the file that it stands in: another text is asked anew."""
        sha256 = hashlib.sha256(self._loaded[1].encode()).hexdigest()
        return {"function": self.table.function, "sha256": sha256}

    def check(self, questions: Sequence[Question]) -> list[str]:
        try:
            call, _ = self._loaded
        except InputError as error:
            return list(error.problems)
        problems = []
        try:
            inspect.signature(call).bind("a question")
        except TypeError as error:
            problems.append(f"{self.table.function} must take one argument, the question ({error})")
        if self.table.timeout is not None and not inspect.iscoroutinefunction(call):
            problems.append("timeout is for async functions, as we cannot stop others: leave it out")
        return problems

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        call, concurrency = self._loaded[0], self.table.concurrency

        async def work_off(due: Sequence[Question], take: Answered) -> None:
            loop = asyncio.get_running_loop()
            with contextlib.ExitStack() as at_end:
                if inspect.iscoroutinefunction(call):
                    apart = _OwnLoop()
                    at_end.callback(apart.close)

                    def row_of(text: str) -> Awaitable[_Row]:
                        return apart.run(_awaited(call, text), self.table.timeout)

                else:
                    # In threads, as it may run an event loop; timed there, as it may wait for its turn.
                    threads = ThreadPoolExecutor(concurrency, "system")
                    at_end.callback(threads.shutdown, wait=False, cancel_futures=True)

                    def row_of(text: str) -> Awaitable[_Row]:
                        context = contextvars.copy_context()
                        return loop.run_in_executor(threads, context.run, _called, call, text)

                async def answered(question: Question) -> SystemAnswer:
                    row = await row_of(question.question)
                    return replace(SystemAnswer(self.name, question.group, None, at=now()), **row)

                await ask_at_once(due, take, answered, concurrency=concurrency)

        return ask_all(self, questions, asking, work_off)

    @cached_property
    def _loaded(self) -> tuple[Callable[[str], Any], str]:
        place, _, name = self.table.function.rpartition(":")
        if not place or not name.isidentifier():
            advice = "write FILE.py:function or module:function"
            raise InputError(f"{self.table.function!r} is no function: {advice}")
        names: Mapping[str, Any]
        if place.endswith(".py"):
            path = next((folder / place for folder in self.folders if (folder / place).is_file()), None)
            if path is None:
                folders = ", ".join(str(folder.resolve()) for folder in self.folders)
                raise InputError(f"there is no file {place} in {folders}")
            text = read_source(path)
            names = vars(run_source(path, text))
        else:
            try:
                module = importlib.import_module(place)
                RAN[Path(module.__file__ or place)] = None
                names, text = vars(module), inspect.getsource(module)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # the user's code: whatever it raises on loading
                advice = "install it, or write FILE.py:function"
                raise InputError(f"module {place} cannot be loaded ({described(error)}): {advice}") from error
        call = names.get(name)
        if not callable(call):
            functions = [key for key, value in names.items() if inspect.isfunction(value) and key[0] != "_"]
            raise unknown_name(f"function in {place}", name, functions)
        return call, text


def _called(call: Callable[[str], Any], text: str) -> _Row:
    row, start = _Row(), time.perf_counter()
    with _errors_into(row):
        value = call(text)
        row["latency_s"] = time.perf_counter() - start
        row |= _read(value)
    return row


async def _awaited(call: Callable[[str], Awaitable[Any]], text: str) -> _Row:
    """The same of an async function."""
    row, start = _Row(), time.perf_counter()
    with _errors_into(row):
        value = await call(text)
        row["latency_s"] = time.perf_counter() - start
        row |= _read(value)
    return row


@contextlib.contextmanager
def _errors_into(row: _Row) -> Iterator[None]:
    """Take what the user's code raises, or a value of its own wherever it is looked at, as the row's error.

    An interrupt ends the run.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's code: whatever it raises
        row["error"] = Failure("code", described(error))


def _read(value: Any) -> _Row:
    """The answer's fields in what a function returned, or why it holds no answer."""
    try:
        given: Mapping[str, Any] = value if isinstance(value, Mapping) else {"answer": value}
        unknown = [str(key) for key in given if key not in _KEYS]
        if unknown:
            raise ValueError(f"unknown key {unknown[0]!r}: known are {', '.join(_KEYS)}")
        if not isinstance(given.get("answer"), str):
            raise ValueError(f"a text or {{answer, contexts, ...}} is needed, found {value!r:.80}")
        fields = {key: part for key, part in given.items() if part is not None}
        for key in _KEYS[2:]:
            count = fields.get(key, 0)
            kinds = int | float if key == "cost_usd" else int
            if not isinstance(count, kinds) or isinstance(count, bool) or not 0 <= count < 1e15:
                raise ValueError(f"{key} must be a number from 0, found {count!r:.40}")
        if "contexts" in fields:
            try:
                fields["contexts"] = contexts_of(fields["contexts"])
            except ValueError as error:
                raise ValueError(f"contexts, {error}") from error
        fields["answer"] = str.__str__(fields["answer"])  # of a text with methods of its own the text alone
    except ValueError as error:
        return {"error": Failure("parse", f"what it returned: {described(error).partition(': ')[2]}")}
    texts = [fields["answer"], *(context.text for context in fields.get("contexts", ()))]
    sizes = (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if sum(sizes) > MOST_BYTES:
        return {"error": Failure("length", f"the answer is larger than {MOST_BYTES // 1_000_000} MB")}
    return fields


class _OwnLoop:
    """An event loop in its own thread: an `async` function that nothing can end holds up nobody there."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="system", daemon=True)
        self._thread.start()

    def _turn(self) -> None:
        while True:
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):  # of a task that the function has begun; the others go on
                continue
            return

    async def run(self, work: Coroutine[Any, Any, _Row], timeout_s: float | None) -> _Row:
        """What the work comes to in time; after that it is cancelled, and not waited for."""
        coming = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        try:
            await asyncio.wait({coming}, timeout=timeout_s)
            if coming.done():
                return coming.result()
            return {"error": Failure("timeout", f"no answer within {timeout_s:g} s")}
        finally:
            coming.cancel()

    def close(self) -> None:
        """Cancel what goes on; what does not end by that stays in its thread, which dies with the process."""

        async def cancelled() -> bool:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            return not tasks or not (await asyncio.wait(tasks, timeout=_GRACE_S))[1]

        try:
            ended = asyncio.run_coroutine_threadsafe(cancelled(), self._loop).result(2 * _GRACE_S)
        except TimeoutError:  # it holds the loop itself
            return
        if ended:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
