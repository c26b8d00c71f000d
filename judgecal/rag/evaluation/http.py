"""A system over HTTP: set up, asked each question once, timed, and taken down again however the run ends.

What a reply of status 2xx holds at the paths of its table is the answer and its contexts. Everything else
is an error with a name: another status, a page, a path that is missing, a body that was cut off, a server
that hangs. What the setup has made is kept in the folder until it is taken down, so that a run that was
killed finds it again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgecal.artefacts import read_json
from judgecal.engine import CallFailed
from judgecal.engine.log import now
from judgecal.engine.transport.redaction import redacted
from judgecal.errors import notice
from judgecal.goldset import Document
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.http_client import (
    DOCUMENT_NAMES,
    HttpClient,
    HttpConfig,
    Received,
    Request,
    StepConfig,
    address,
    failed,
    filled,
    names_in,
    resolved,
    value_at,
)
from judgecal.rag.evaluation.system import (
    Answered,
    Asking,
    System,
    SystemAnswer,
    ask_all,
    ask_at_once,
    contexts_of,
)
from judgecal.records import RETRIED_ON_RESUME, Context, ErrorKind, Failure, digest
from judgecal.workspace import write_text

SETUP_FILE = "setup.json"
"""While what the setup made is there: what it captured, and whether it is done. Another setup has a folder of
its own."""

_READ_S = 1.0  # to read an answer that came at the last moment

# What of a table makes no answer another one.
_DECIDES_NOTHING: dict[str, Any] = {
    "timeout": True,
    "concurrency": True,
    "setup": {"teardown": True, "steps": {"__all__": {"every", "time_limit"}}},
}

Documents = Callable[[], Sequence[Document]]
"""Gives the texts for steps with `each = "document"`; called where there are such steps."""


@dataclass
class HttpSystem(System):
    """A service that answers questions over HTTP; which models it calls, and what they cost, is not known."""

    name: str
    table: HttpConfig
    documents: Documents = tuple

    @property
    def shows_contexts(self) -> bool:
        return self.table.contexts is not None

    def config(self) -> dict[str, Any]:
        """The table without what decides no answer, and the documents that its setup sends."""
        config: dict[str, Any] = self.table.model_dump(mode="json", exclude=_DECIDES_NOTHING)
        if self.table.setup.sends_documents:
            config["documents"] = digest(
                [[document.document_id, document.title, document.text] for document in self.documents()]
            )
        return config

    def check(self, questions: Sequence[Question]) -> list[str]:
        problems = [*self.table.problems()]
        if self.table.setup.sends_documents and not self.documents():
            problems.append('a setup step has each = "document", and there is no document')
        return problems

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        table = self.table

        async def work_off(due: Sequence[Question], take: Answered) -> None:
            async with HttpClient(table.secrets(), table.concurrency) as client:
                await _Run(self.name, table, client, asking).work_off(due, take, self.documents)

        return ask_all(self, questions, asking, work_off)


class _Run:
    """The questions of one run that are due, between the setup and its end."""

    def __init__(self, name: str, table: HttpConfig, client: HttpClient, asking: Asking) -> None:
        self.name, self.table, self.client = name, table, client
        self._captured: dict[str, Any] = {}
        self._file = asking.folder / SETUP_FILE
        self._headers, self._secrets = resolved(table.headers), table.secrets()

    async def work_off(self, due: Sequence[Question], take: Answered, documents: Documents) -> None:
        """Ask every question that is due; where the setup fails, its failure stands for each of them.

        Where none is due there is only to take down what a run that was killed after its last answer left.
        """
        if not due:
            if self._file.exists():
                self._take_over()
                await self._take_down()
            return
        try:
            await self._set_up(documents)
            await ask_at_once(due, take, self._answer, concurrency=self.table.concurrency)
        except CallFailed as failure:
            # Nothing was asked: whatever it was, the next run sets up again and asks.
            kind: ErrorKind = failure.kind if failure.kind in RETRIED_ON_RESUME else "server"
            for question in due:
                take(question, self._without_answer(question, kind, str(failure)))
        finally:
            await self._take_down()

    async def _answer(self, question: Question) -> SystemAnswer:
        table, values = self.table, {**self._captured, "question": question.question}
        request = Request(table.method, address(table.url, values), self._headers, filled(table.body, values))
        try:
            received = await self.client.send(request, timeout_s=table.timeout)
        except CallFailed as failure:
            return self._without_answer(question, failure.kind, str(failure))
        latency_s, first_s = received.latency_s, received.first_byte_s
        timed = SystemAnswer(self.name, question.group, None, latency_s=latency_s, first_s=first_s, at=now())
        try:
            # In a thread, for a stream of 10 MB takes seconds in which no other question would go on.
            async with asyncio.timeout(max(_READ_S, table.timeout - latency_s)):
                text, contexts, first_s = await asyncio.to_thread(self._read, received)
        except TimeoutError:
            message = f"the answer came, and could not be read within {table.timeout:g} s"
            return replace(timed, error=Failure("timeout", message))
        except CallFailed as failure:
            return replace(timed, error=Failure(failure.kind, self._plain(str(failure))))
        return replace(timed, answer=self._plain(text), contexts=contexts, first_s=first_s)

    def _without_answer(self, question: Question, kind: ErrorKind, message: str) -> SystemAnswer:
        failure = Failure(kind, self._plain(message))
        return SystemAnswer(self.name, question.group, None, error=failure, at=now())

    def _plain(self, text: str) -> str:
        return redacted(text, self._secrets)

    # --- what a reply holds

    def _read(self, received: Received) -> tuple[str, tuple[Context, ...] | None, float | None]:
        """The answer, its contexts, and the seconds to the first token or byte."""
        if not received.is_stream:
            path, parts = self.table.answer, [self._json(received)]
            if path is None:
                raise _unreadable("the reply does not stream, and the table has no answer")
            text = _value_at(path, parts[0], "answer")
            if not isinstance(text, str):
                raise _unreadable(f"answer {path}: a text is needed, found {text!r:.80}")
            return text, self._contexts(parts), received.first_byte_s
        path = self.table.token
        if path is None:
            raise _unreadable(f"the reply streams ({received.kind}): say with token where a piece stands")
        what = "an event of the stream"
        events = [(when, self._parsed(data, what)) for when, data in received.events()]
        tokens = [(when, _found(path, data)) for when, data in events]
        pieces = [(when, piece) for when, piece in tokens if isinstance(piece, str)]
        if not pieces:
            last = json.dumps(events[-1][1])[:200] if events else "no event"
            raise _unreadable(f"token {path}: no event of the stream holds it; the last: {last}")
        first_s = next((when for when, piece in pieces if piece), None)
        return "".join(piece for _, piece in pieces), self._contexts([data for _, data in events]), first_s

    def _contexts(self, parts: Sequence[Any]) -> tuple[Context, ...] | None:
        """The contexts in the first part that has them; None where the table names no path for them."""
        table, path = self.table, self.table.contexts
        if path is None:
            return None
        part = next((part for part in parts if _found(path, part) is not None), parts[0] if parts else None)
        passages = _value_at(path, part, "contexts")
        for key, further, name in (
            ("document_id", table.context_ids, "context_ids"),
            ("score", table.context_scores, "context_scores"),
        ):
            if further is not None:
                values = _value_at(further, part, name)
                if (
                    not isinstance(passages, list)
                    or not isinstance(values, list)
                    or len(passages) != len(values)
                ):
                    raise _unreadable(
                        f"{name} {further}: one for each of contexts is needed, found {values!r:.80}"
                    )
                each = [text if isinstance(text, dict) else {"text": text} for text in passages]
                passages = [{**text, key: value} for text, value in zip(each, values, strict=True)]
        try:
            contexts = contexts_of(passages)
        except ValueError as error:
            raise _unreadable(f"contexts {path}, {error}") from error
        return tuple(
            Context(
                self._plain(context.text),
                context.document_id and self._plain(context.document_id),
                context.score,
            )
            for context in contexts
        )

    def _json(self, received: Received) -> Any:
        return self._parsed(received.body, f"the answer ({received.kind})")

    def _parsed(self, data: bytes, what: str) -> Any:
        """JSON, or a failure that says what stands there instead."""
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            page = "an HTML page" if data.lstrip()[:1] == b"<" else "no JSON"
            # As an error page under status 200 it passes, so a resumed run asks again.
            message = f"{what} is {page}: {self.client.quoted(data) or 'it is empty'}"
            raise failed("server", message) from None

    # --- before and after

    async def _set_up(self, documents: Documents) -> None:
        """All steps, unless an interrupted run of this table left them done; half a setup is taken down."""
        setup = self.table.setup
        if not setup.steps or self._take_over():
            return
        if self._captured:
            await self._take_down()
        for step in setup.steps:
            try:
                async with asyncio.timeout(step.time_limit):
                    await self._step(step, documents() if step.each else (None,))
            except TimeoutError:
                message = f"setup step {step.name}: not done within its time limit of {step.time_limit:g} s"
                raise failed("timeout", message) from None
            except CallFailed as failure:
                raise failed(failure.kind, f"setup step {step.name}: {failure}") from failure
            self._keep(done=step is setup.steps[-1])

    async def _step(self, step: StepConfig, documents: Sequence[Document | None]) -> None:
        """One request of a step for each document, repeated until what the step waits for is true."""
        captured: dict[str, list[Any]] = {name: [] for name in step.capture}
        headers = self._headers if step.headers is None else resolved(step.headers)
        for document in documents:
            texts = {name: getattr(document, name) or "" for name in DOCUMENT_NAMES} if document else {}
            values = {**self._captured, **texts}
            request = Request(step.method, address(step.url, values), headers, filled(step.body, values))
            while True:
                received = await self.client.send(request, timeout_s=step.time_limit)
                if step.until is None:
                    break
                value, wanted = _found(step.until, self._json(received)), filled(step.equals, values)
                if value == wanted and isinstance(value, bool) == isinstance(wanted, bool):
                    break
                await asyncio.sleep(step.every)
            for name, path in step.capture.items():
                captured[name].append(_value_at(path, self._json(received), f"capture of {name}"))
        self._captured |= captured if step.each else {name: values[0] for name, values in captured.items()}

    async def _take_down(self) -> None:
        """All steps of the teardown that something was made for; one that fails keeps no other back.

        What was captured is then kept, so that the next run takes it down before it sets up anew.
        """
        lacking, failures = set(self.table.setup.captured) - self._captured.keys(), 0
        for step in self.table.setup.teardown:
            if lacking & names_in([step.url, step.body]):
                continue
            try:
                async with asyncio.timeout(step.time_limit):
                    await self._step(step, (None,))
            except (TimeoutError, CallFailed) as failure:
                why = str(failure) or f"not done within its time limit of {step.time_limit:g} s"
                failures += 1
                notice(f"judgecal: {self.name}: teardown step {step.name}: {self._plain(why)}")
        if failures and self._captured:
            self._keep(done=False)
            left = "what the setup made may be left on the server; the next run takes it down"
            notice(f"judgecal: {self.name}: {left}. Where it is gone, delete {self._file}")
        else:
            self._file.unlink(missing_ok=True)
        self._captured.clear()

    def _keep(self, *, done: bool) -> None:
        write_text(self._file, json.dumps({"done": done, "captured": self._captured}))

    def _take_over(self) -> bool:
        """Take over what an interrupted run of this setup has captured; whether its setup came to its end."""
        if not self._file.exists():
            return False
        state = read_json(self._file, absent="no setup")
        self._captured = state["captured"]
        return bool(state["done"])


def _unreadable(message: str) -> CallFailed:
    return failed("parse", message)


def _found(path: str, data: Any) -> Any:
    """What data holds at a path, None where it holds nothing."""
    try:
        return value_at(path, data)
    except LookupError:
        return None


def _value_at(path: str, data: Any, what: str) -> Any:
    try:
        return value_at(path, data)
    except LookupError as error:
        raise _unreadable(f"{what} {path}: the reply does not hold it ({error})") from error
