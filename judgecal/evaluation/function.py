"""A system that is a function of the user's: `FILE.py:function`, or `module:function` of an installed module.

It is given the question, a text, and returns the answer, or `{answer, contexts, prompt_tokens, completion_tokens,
cost_usd}` of which only `answer` must be there. It may be `async`. What it raises is the error of that question.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import importlib
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from judgecal.answering.questions import Question
from judgecal.engine.transport.redaction import one_line
from judgecal.errors import InputError, unknown_name
from judgecal.evaluation.answer_journal import Answered, ask_all, ask_at_once, now, preview_asking
from judgecal.evaluation.system import Asking, Setting, SystemAnswer, contexts_of
from judgecal.experiment import CostEstimate
from judgecal.models import ModelSpec
from judgecal.records import Failure
from judgecal.signatures import read_source, run_source

_KEYS = ("answer", "contexts", "prompt_tokens", "completion_tokens", "cost_usd")
_COUNTS = _KEYS[2:]


class FunctionConfig(BaseModel):
    """The table of such a system.

    Attributes:
        function: `FILE.py:function` or `module:function`.
        timeout: seconds for one question, of an `async` function alone: no other one can be ended; None for no limit.
        concurrency: questions at once; a function that is not `async` is called in so many threads.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    function: str
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
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
        """Whether answers may come with their contexts: they do not where the function says that it returns `str`."""
        return inspect.signature(self._loaded[0]).return_annotation not in (str, "str")

    def config(self) -> dict[str, Any]:
        """The function, and the text of the file that it stands in: another text is asked anew."""
        return {"function": self._config.function, "sha256": hashlib.sha256(self._loaded[1].encode()).hexdigest()}

    def models(self) -> Sequence[ModelSpec]:
        """None that we know: the function calls its own."""
        return ()

    def check(self, questions: Sequence[Question]) -> list[str]:
        """What would keep it from being asked: it cannot be loaded, or does not take a question."""
        try:
            call, _ = self._loaded
        except InputError as error:
            return [f"{self.name}: {problem}" for problem in error.problems]
        found = []
        try:
            inspect.signature(call).bind("a question")
        except TypeError as error:
            found.append(f"{self.name}: {self._config.function} must take one argument, the question ({error})")
        if self._config.timeout is not None and not inspect.iscoroutinefunction(call):
            found.append(f"{self.name}: timeout is for async functions, as no other one can be ended: leave it out")
        return found

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """How many questions are due; what the function pays for is not known, and is no part of the budget."""
        return preview_asking(self, questions, asking)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """One answer a question, in their order; what the folder holds is not asked again."""

        async def work_off(due: Sequence[Question], take: Answered) -> None:
            threads = ThreadPoolExecutor(self._config.concurrency, "system")
            try:
                await ask_at_once(
                    due, take, lambda one: self._answer(one, threads), concurrency=self._config.concurrency
                )
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

        return ask_all(self, questions, asking, work_off)

    async def _answer(self, question: Question, threads: Executor) -> SystemAnswer:
        empty = SystemAnswer(self.name, question.group, None, at=now())
        call = self._loaded[0]
        if inspect.iscoroutinefunction(call):
            value, raised, latency_s = await _awaited(call, question.question, self._config.timeout)
        else:  # in a thread, as it may run an event loop of its own; timed there, as it may wait for its turn
            loop, own = asyncio.get_running_loop(), contextvars.copy_context()
            value, raised, latency_s = await loop.run_in_executor(threads, own.run, _called, call, question.question)
        if raised is not None:
            return replace(empty, error=raised)
        timed = replace(empty, latency_s=latency_s)
        try:
            return replace(timed, **_read(value))
        except ValueError as error:
            return replace(timed, error=Failure("parse", one_line(f"what it returned: {error}", ())))

    @cached_property
    def _loaded(self) -> tuple[Callable[[str], Any], str]:
        """The function and the text of its file.

        Raises:
            InputError: there is none, or loading it raised.
        """
        place, _, name = self._config.function.rpartition(":")
        if not place or not name.isidentifier():
            raise InputError(f"{self._config.function!r} is no function: write FILE.py:function or module:function")
        if place.endswith(".py"):
            path = next((folder / place for folder in self._folders if (folder / place).is_file()), None)
            if path is None:
                raise InputError(
                    f"there is no file {place} in {', '.join(str(one.resolve()) for one in self._folders)}"
                )
            text = read_source(path)
            found: Mapping[str, Any] = vars(run_source(path, text))
        else:
            found, text = _imported(place)
        call = found.get(name)
        if not callable(call):
            own = [key for key, one in found.items() if inspect.isfunction(one) and not key.startswith("_")]
            raise unknown_name(f"function in {place}", name, own)
        return call, text


def _called(call: Callable[[str], Any], text: str) -> tuple[Any, Failure | None, float]:
    """What a function returned or raised, and the seconds that it took."""
    start = time.perf_counter()
    try:
        return call(text), None, time.perf_counter() - start
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code: what it raises is the row's error
        return None, _raised(error), time.perf_counter() - start


async def _awaited(call: Callable[[str], Any], text: str, timeout_s: float | None) -> tuple[Any, Failure | None, float]:
    """The same of an async function, which is ended after so many seconds."""
    start, limit = time.perf_counter(), asyncio.timeout(timeout_s)
    try:
        async with limit:
            value = await call(text)
        return value, None, time.perf_counter() - start
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        late = Failure("timeout", f"no answer within {timeout_s:g} s") if limit.expired() else None
        return None, late or _raised(error), time.perf_counter() - start


def _raised(error: BaseException) -> Failure:
    said = f": {error}" if str(error) else ""
    return Failure("code", one_line(f"{type(error).__name__}{said}", ()))


def _imported(module: str) -> tuple[Mapping[str, Any], str]:
    try:
        loaded = importlib.import_module(module)
        return vars(loaded), inspect.getsource(loaded)
    except Exception as error:  # the user's code: whatever it raises on loading
        raise InputError(
            f"module {module} cannot be loaded ({type(error).__name__}: {error}): install it, or write FILE.py:function"
        ) from error


def _read(value: Any) -> dict[str, Any]:
    """Fields of the answer in what a function returned.

    Raises:
        ValueError: it is neither a text nor a table with one; the message says what was found.
    """
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {"answer": value}
    unknown = [str(key) for key in given if key not in _KEYS]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}: known are {', '.join(_KEYS)}")
    if not isinstance(given.get("answer"), str):
        raise ValueError(f"a text or {{answer, contexts, ...}} is needed, found {value!r:.80}")
    fields = {key: one for key, one in given.items() if one is not None}
    for key in _COUNTS:
        one = fields.get(key, 0)
        kinds = int | float if key == "cost_usd" else int
        if not isinstance(one, kinds) or isinstance(one, bool) or not 0 <= one < 1e15:
            raise ValueError(f"{key} must be a number from 0, found {one!r:.40}")
    if "contexts" in fields:
        try:
            fields["contexts"] = contexts_of(fields["contexts"])
        except ValueError as error:
            raise ValueError(f"contexts, {error}") from error
    return fields
