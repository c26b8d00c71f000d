"""A system that is a function of the user's: `FILE.py:function`.

It is given the question, a text, and returns the answer, or `{answer, contexts, prompt_tokens,
completion_tokens, cost_usd}` of which only `answer` must be there. It may be `async`: each call then has an
event loop of its own. What it raises is the error of that question.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from judgecal.engine.log import now
from judgecal.errors import InputError, error_text, unknown_name
from judgecal.rag.evaluation.system import MOST_BYTES, Ask, Asking, System, SystemAnswer, ask_all, contexts_of
from judgecal.rag.questions import Question
from judgecal.records import Failure
from judgecal.signatures import read_source, run_source

_KEYS = ("answer", "contexts", "prompt_tokens", "completion_tokens", "cost_usd")

_Row = dict[str, Any]
"""What came of a question: fields of its answer, or `error` in their place; and the function's seconds."""


class FunctionConfig(BaseModel):
    """The table of such a system."""

    model_config = ConfigDict(extra="forbid", strict=True)
    function: str  # `FILE.py:function`
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 1  # questions at once, each in a thread of its own


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
        """Return the function's name and its file's text as a dict: another text is asked anew."""
        sha256 = hashlib.sha256(self._loaded[1].encode()).hexdigest()
        return {"function": self.table.function, "sha256": sha256}

    def check(self, questions: Sequence[Question]) -> list[str]:
        """Return a message for each thing that keeps the function from being asked these Questions."""
        try:
            call, _ = self._loaded
        except InputError as error:
            return list(error.problems)
        problems = []
        try:
            inspect.signature(call).bind("a question")
        except TypeError as error:
            problems.append(f"{self.table.function} must take one argument, the question ({error})")
        return problems

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """Return the function's SystemAnswer to each of the Questions, called in threads under an Asking."""
        call, concurrency = self._loaded[0], self.table.concurrency

        @contextlib.asynccontextmanager
        async def connected() -> AsyncIterator[Ask]:
            # In threads, as it may run an event loop; timed there, as it may wait for its turn.
            threads, loop = ThreadPoolExecutor(concurrency, "system"), asyncio.get_running_loop()

            async def answered(question: Question) -> SystemAnswer:
                context = contextvars.copy_context()
                row = await loop.run_in_executor(threads, context.run, _called, call, question.question)
                return replace(SystemAnswer(self.name, question.group, None, at=now()), **row)

            try:
                yield answered
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

        return ask_all(self, questions, asking, connected, concurrency=concurrency)

    @cached_property
    def _loaded(self) -> tuple[Callable[[str], Any], str]:
        place, _, name = self.table.function.rpartition(":")
        if not place.endswith(".py") or not name.isidentifier():
            raise InputError(f"{self.table.function!r} is no function: write FILE.py:function")
        path = next((folder / place for folder in self.folders if (folder / place).is_file()), None)
        if path is None:
            folders = ", ".join(str(folder.resolve()) for folder in self.folders)
            raise InputError(f"there is no file {place} in {folders}")
        text = read_source(path)
        names = vars(run_source(path, text))
        call = names.get(name)
        if not callable(call):
            functions = [key for key, value in names.items() if inspect.isfunction(value) and key[0] != "_"]
            raise unknown_name(f"function in {place}", name, functions)
        return call, text


def _called(call: Callable[[str], Any], text: str) -> _Row:
    """What comes of one question; an interrupt ends the run."""
    row, start = _Row(), time.perf_counter()
    try:
        value = call(text)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        row["latency_s"] = time.perf_counter() - start
        return row | _read(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's code, and values of its own: whatever they raise
        return row | {"error": Failure("code", error_text(error))}


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
        return {"error": Failure("parse", f"what it returned: {error_text(error).partition(': ')[2]}")}
    texts = [fields["answer"], *(context.text for context in fields.get("contexts", ()))]
    sizes = (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if sum(sizes) > MOST_BYTES:
        return {"error": Failure("length", f"the answer is larger than {MOST_BYTES // 1_000_000} MB")}
    return fields
