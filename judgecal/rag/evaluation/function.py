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
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from judgecal.engine.log import now
from judgecal.errors import InputError, described, unknown_name
from judgecal.experiment import CostEstimate
from judgecal.models import ModelSpec
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.answer_journal import Answered, ask_all, ask_at_once, preview_asking
from judgecal.rag.evaluation.system import MOST_BYTES, Asking, Setting, SystemAnswer, contexts_of
from judgecal.records import Failure
from judgecal.signatures import RAN, read_source, run_source

_KEYS = ("answer", "contexts", "prompt_tokens", "completion_tokens", "cost_usd")
_COUNTS = _KEYS[2:]
_GRACE_S = 1.0  # for functions that go on when the run ends


class FunctionConfig(BaseModel):
    """The table of such a system."""

    model_config = ConfigDict(extra="forbid", strict=True)
    function: str  # `FILE.py:function` or `module:function`
    # Seconds for one question, of an `async` function alone: no other one can be ended; None for no limit.
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
    # Questions at once; a function that is not `async` is called in so many threads.
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 1


class FunctionSystem:
    """A function that answers questions.

    Args:
        name: as tables show it.
        config: its table.
        settings: the factors with their values.
        folders: where its file is looked for, in this order.
    """

    def __init__(
        self,
        name: str,
        config: FunctionConfig,
        *,
        settings: Mapping[str, Setting] | None = None,
        folders: Sequence[Path] = (Path(),),
    ) -> None:
        self.name = name
        self.settings: Mapping[str, Setting] = dict(settings or {})
        self._config = config
        self._folders = folders

    @property
    def shows_contexts(self) -> bool:
        """Whether answers may come with their contexts: not where the function says that it returns `str`."""
        return inspect.signature(self._loaded[0]).return_annotation not in (str, "str")

    def config(self) -> dict[str, Any]:
        """The function, and the text of the file that it stands in: another text is asked anew."""
        return {
            "function": self._config.function,
            "sha256": hashlib.sha256(self._loaded[1].encode()).hexdigest(),
        }

    def models(self) -> Sequence[ModelSpec]:
        """None that we know: the function calls its own."""
        return ()

    def check(self, questions: Sequence[Question]) -> list[str]:
        """What would keep it from being asked: it cannot be loaded, or does not take a question."""
        try:
            call, _ = self._loaded
        except InputError as error:
            return [f"{self.name}: {problem}" for problem in error.problems]
        problems = []
        try:
            inspect.signature(call).bind("a question")
        except TypeError as error:
            problems.append(f"{self._config.function} must take one argument, the question ({error})")
        if self._config.timeout is not None and not inspect.iscoroutinefunction(call):
            problems.append("timeout is for async functions, as no other one can be ended: leave it out")
        return [f"{self.name}: {problem}" for problem in problems]

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """How many questions are due; what the function pays for is not known, and in no budget."""
        return preview_asking(self, questions, asking)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """One answer a question, in their order; what the folder holds is not asked again."""

        async def work_off(due: Sequence[Question], take: Answered) -> None:
            call, at_once, timeout_s = self._loaded[0], self._config.concurrency, self._config.timeout
            loop = asyncio.get_running_loop()
            with contextlib.ExitStack() as last:
                if inspect.iscoroutinefunction(call):
                    apart = _OwnLoop()
                    last.callback(apart.close)

                    def outcome(text: str) -> Awaitable[_Outcome]:
                        return apart.run(_awaited(call, text), timeout_s)

                else:
                    # In threads, as it may run an event loop; timed there, as it may wait for its turn.
                    threads = ThreadPoolExecutor(at_once, "system")
                    last.callback(threads.shutdown, wait=False, cancel_futures=True)

                    def outcome(text: str) -> Awaitable[_Outcome]:
                        context = contextvars.copy_context()
                        return loop.run_in_executor(threads, context.run, _called, call, text)

                async def answered(question: Question) -> SystemAnswer:
                    given = await outcome(question.question)
                    empty = SystemAnswer(self.name, question.group, None, latency_s=given.latency_s, at=now())
                    return replace(empty, **given.fields)

                await ask_at_once(due, take, answered, concurrency=at_once)

        return ask_all(self, questions, asking, work_off)

    @cached_property
    def _loaded(self) -> tuple[Callable[[str], Any], str]:
        """The function and the text of its file."""
        place, _, name = self._config.function.rpartition(":")
        if not place or not name.isidentifier():
            advice = "write FILE.py:function or module:function"
            raise InputError(f"{self._config.function!r} is no function: {advice}")
        if place.endswith(".py"):
            path = next((folder / place for folder in self._folders if (folder / place).is_file()), None)
            if path is None:
                folders = ", ".join(str(folder.resolve()) for folder in self._folders)
                raise InputError(f"there is no file {place} in {folders}")
            text = read_source(path)
            names: Mapping[str, Any] = vars(run_source(path, text))
        else:
            names, text = _imported(place)
        call = names.get(name)
        if not callable(call):
            functions = [key for key, value in names.items() if inspect.isfunction(value) and key[0] != "_"]
            raise unknown_name(f"function in {place}", name, functions)
        return call, text


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of a question: fields of the answer or the failure, and the function's own seconds."""

    fields: Mapping[str, Any]
    latency_s: float | None = None


def _called(call: Callable[[str], Any], text: str) -> _Outcome:
    """What a function returned or raised; an interrupt ends the run."""
    start = time.perf_counter()
    try:
        value = call(text)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's code: what it raises is the row's error
        return _Outcome({"error": _raised(error)})
    return _Outcome(_fields(value), time.perf_counter() - start)


async def _awaited(call: Callable[[str], Awaitable[Any]], text: str) -> _Outcome:
    """The same of an async function."""
    start = time.perf_counter()
    try:
        value = await call(text)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return _Outcome({"error": _raised(error)})
    return _Outcome(_fields(value), time.perf_counter() - start)


def _fields(value: Any) -> Mapping[str, Any]:
    try:
        return _read(value)
    except ValueError as error:
        return {"error": Failure("parse", f"what it returned: {described(error).partition(': ')[2]}")}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a value of the user's may raise wherever it is looked at
        return {"error": _raised(error)}


def _raised(error: BaseException) -> Failure:
    return Failure("code", described(error))


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

    async def run(self, work: Coroutine[Any, Any, _Outcome], timeout_s: float | None) -> _Outcome:
        """What the work comes to in time; after that it is cancelled, and not waited for."""
        coming = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        try:
            await asyncio.wait({coming}, timeout=timeout_s)
            if coming.done():
                return coming.result()
            return _Outcome({"error": Failure("timeout", f"no answer within {timeout_s:g} s")})
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


def _imported(module: str) -> tuple[Mapping[str, Any], str]:
    try:
        loaded = importlib.import_module(module)
        RAN[Path(loaded.__file__ or module)] = None
        return vars(loaded), inspect.getsource(loaded)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's code: whatever it raises on loading
        advice = "install it, or write FILE.py:function"
        raise InputError(f"module {module} cannot be loaded ({described(error)}): {advice}") from error


def _read(value: Any) -> dict[str, Any]:
    """The answer's fields in what a function returned; ValueError where it holds no text."""
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {"answer": value}
    unknown = [str(key) for key in given if key not in _KEYS]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}: known are {', '.join(_KEYS)}")
    if not isinstance(given.get("answer"), str):
        raise ValueError(f"a text or {{answer, contexts, ...}} is needed, found {value!r:.80}")
    fields = {key: part for key, part in given.items() if part is not None}
    for key in _COUNTS:
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
    texts = [fields["answer"], *(context.text for context in fields.get("contexts", ()))]
    sizes = (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if sum(sizes) > MOST_BYTES:
        return {"error": Failure("length", f"the answer is larger than {MOST_BYTES // 1_000_000} MB")}
    return fields
