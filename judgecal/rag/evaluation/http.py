"""A system over HTTP: set up, asked each question once, timed, and taken down again however the run ends.

What a reply of status 2xx holds at the JMESPaths of its table is the answer and its contexts. Everything else
is an error with a name: another status, a page, a path that is missing, a body that was cut off, a server
that hangs. What the setup has made is kept in the folder until it is taken down, so that a run that was
killed finds it again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jmespath

from judgecal.engine import CallFailed
from judgecal.engine.log import now
from judgecal.engine.transport.redaction import redacted
from judgecal.errors import notice
from judgecal.experiment import CostEstimate
from judgecal.goldset import Document
from judgecal.models import ModelSpec
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.answer_journal import Answered, ask_all, ask_at_once, preview_asking
from judgecal.rag.evaluation.http_client import (
    DOCUMENT_NAMES,
    HttpClient,
    HttpConfig,
    Received,
    Request,
    StepConfig,
    address,
    filled,
    names_in,
    resolved,
)
from judgecal.rag.evaluation.system import Asking, Setting, SystemAnswer, contexts_of
from judgecal.records import RETRIED_ON_RESUME, Context, ErrorKind, Failure, digest
from judgecal.workspace import write_text

__all__ = ["HttpConfig", "HttpSystem"]

SETUP_FILE = "setup.json"
"""In the system's folder, while what the setup made is there: what it captured, and whether it is done."""
LEFT_FILE = "setup-left.json"
"""Beside it: what an earlier setup made and nothing takes down any more, as the table has changed since."""

_READ_S = 1.0  # to read an answer that came at the last moment

# What of a table makes no answer another one.
_DECIDES_NOTHING: dict[str, Any] = {
    "timeout": True,
    "concurrency": True,
    "retry_dropped": True,
    "setup": {"teardown": True, "steps": {"__all__": {"every", "time_limit"}}},
}


class HttpSystem:
    """A service that answers questions over HTTP.

    Args:
        name: as tables show it.
        config: its table.
        settings: the factors with their values.
        documents: gives the texts for steps with `each = "document"`; called where there are such steps.
    """

    def __init__(
        self,
        name: str,
        config: HttpConfig,
        *,
        settings: Mapping[str, Setting] | None = None,
        documents: Callable[[], Sequence[Document]] = tuple,
    ) -> None:
        self.name = name
        self.settings: Mapping[str, Setting] = dict(settings or {})
        self._config = config
        self._documents = documents

    @property
    def shows_contexts(self) -> bool:
        """Whether answers come with their contexts."""
        return self._config.contexts is not None

    def config(self) -> dict[str, Any]:
        """The table without what decides no answer, and the documents that its setup sends."""
        table: dict[str, Any] = self._config.model_dump(mode="json", exclude=_DECIDES_NOTHING)
        if any(step.each for step in self._config.setup.steps):
            table["documents"] = digest(
                [[text.document_id, text.title, text.text] for text in self._documents()]
            )
        return table

    def models(self) -> Sequence[ModelSpec]:
        """None that we know: the service calls its own."""
        return ()

    def check(self, questions: Sequence[Question]) -> list[str]:
        """What would keep it from being asked: the table, and variables that are not set."""
        problems = [*self._config.problems()]
        if any(step.each for step in self._config.setup.steps) and not self._documents():
            problems.append('a setup step has each = "document", and there is no document')
        return [f"{self.name}: {problem}" for problem in problems]

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """How many questions are due; what the service costs its owner is not known, and in no budget."""
        return preview_asking(self, questions, asking)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """One answer a question, in their order; the service is set up where a question is due."""

        async def work_off(due: Sequence[Question], take: Answered) -> None:
            config = self._config
            dropped = config.retry_dropped
            async with HttpClient(config.secrets(), config.concurrency, retry_dropped=dropped) as client:
                await _Run(self.name, config, client, asking).work_off(due, take, self._documents)

        return ask_all(self, questions, asking, work_off)


@dataclass
class _Run:
    """The questions of one run that are due, between the setup and its end."""

    name: str
    config: HttpConfig
    client: HttpClient
    asking: Asking

    def __post_init__(self) -> None:
        self._captured: dict[str, Any] = {}
        self._file = self.asking.folder / SETUP_FILE
        self._headers = resolved(self.config.headers)
        self._secrets = self.config.secrets()

    async def work_off(
        self, due: Sequence[Question], take: Answered, documents: Callable[[], Sequence[Document]]
    ) -> None:
        """Ask every question that is due; where the setup fails, its failure stands for each of them.

        Where none is due there is only to take down what a run that was killed after its last answer left.
        """
        if not due:
            if self._file.exists():
                self._left_over()
                await self._take_down()
            return
        try:
            try:
                await self._set_up(documents)
            except CallFailed as failed:
                # Nothing was asked: whatever it was, the next run sets up again and asks.
                kind: ErrorKind = failed.kind if failed.kind in RETRIED_ON_RESUME else "server"
                for question in due:
                    take(question, self._failed(question, kind, str(failed)))
            else:
                await ask_at_once(due, take, self._answer, concurrency=self.config.concurrency)
        finally:
            await self._take_down()

    async def _answer(self, question: Question) -> SystemAnswer:
        config, values = self.config, {**self._captured, "question": question.question}
        url, body = address(config.url, values), filled(config.body, values)
        request = Request(config.method, url, self._headers, body)
        try:
            received = await self.client.send(request, timeout_s=config.timeout)
        except CallFailed as failed:
            return self._failed(question, failed.kind, str(failed))
        latency_s, first_s = received.latency_s, received.first_byte_s
        timed = SystemAnswer(self.name, question.group, None, latency_s=latency_s, first_s=first_s, at=now())
        try:
            # In a thread, for a stream of 10 MB takes seconds in which no other question would go on.
            async with asyncio.timeout(max(_READ_S, config.timeout - latency_s)):
                text, contexts, first_s = await asyncio.to_thread(self._read, received)
        except TimeoutError:
            message = f"the answer came, and could not be read within {config.timeout:g} s"
            return replace(timed, error=Failure("timeout", message))
        except CallFailed as failed:
            return replace(timed, error=Failure(failed.kind, redacted(str(failed), self._secrets)))
        return replace(timed, answer=redacted(text, self._secrets), contexts=contexts, first_s=first_s)

    def _failed(self, question: Question, kind: ErrorKind, message: str) -> SystemAnswer:
        failure = Failure(kind, redacted(message, self._secrets))
        return SystemAnswer(self.name, question.group, None, error=failure, at=now())

    # --- what a reply holds

    def _read(self, received: Received) -> tuple[str, tuple[Context, ...] | None, float | None]:
        """The answer, its contexts, and the seconds to the first token or byte."""
        if received.is_stream:
            return self._read_stream(received)
        path, data = self.config.answer, self._json(received)
        if path is None:
            raise _unreadable("the reply does not stream, and the table has no answer")
        text = _value_at(path, data, "answer")
        if not isinstance(text, str):
            raise _unreadable(f"answer {path}: a text is needed, found {text!r:.80}")
        return text, self._contexts([data]), received.first_byte_s

    def _read_stream(self, received: Received) -> tuple[str, tuple[Context, ...] | None, float | None]:
        path = self.config.token
        if path is None:
            raise _unreadable(f"the reply streams ({received.kind}): give token, a JMESPath")
        events = received.events()
        timed = [(when, _parsed(data, "an event of the stream", self.client)) for when, data in events]
        tokens = [(when, _search(path, data, "token")) for when, data in timed]
        pieces = [(when, piece) for when, piece in tokens if isinstance(piece, str)]
        if not pieces:
            last = json.dumps(timed[-1][1])[:200] if timed else "no event"
            raise _unreadable(f"token {path}: no event of the stream holds it; the last: {last}")
        first_s = next((when for when, piece in pieces if piece), None)
        return "".join(piece for _, piece in pieces), self._contexts([data for _, data in timed]), first_s

    def _contexts(self, parts: Sequence[Any]) -> tuple[Context, ...] | None:
        """The contexts in the first part that has them; None where the table names no path for them."""
        path = self.config.contexts
        if path is None:
            return None
        values = (_search(path, part, "contexts") for part in parts)
        passages = next((value for value in values if value is not None), None)
        if passages is None:
            raise _unreadable(f"contexts {path}: the reply does not hold it")
        try:
            contexts = contexts_of(passages)
        except ValueError as error:
            raise _unreadable(f"contexts {path}, {error}") from error

        def plain(text: str) -> str:
            return redacted(text, self._secrets)

        return tuple(
            Context(plain(context.text), context.document_id and plain(context.document_id), context.score)
            for context in contexts
        )

    def _json(self, received: Received) -> Any:
        return _parsed(received.body, f"the answer ({received.kind})", self.client)

    # --- before and after

    async def _set_up(self, documents: Callable[[], Sequence[Document]]) -> None:
        """All steps, unless an interrupted run of this table left them done; half a setup is taken down."""
        setup = self.config.setup
        if not setup.steps or self._left_over():
            return
        if self._captured:
            await self._take_down()
        for step in setup.steps:
            texts = documents() if step.each else (None,)
            try:
                async with asyncio.timeout(step.time_limit):
                    await self._step(step, texts)
            except TimeoutError:
                message = f"setup step {step.name}: not done within its time limit of {step.time_limit:g} s"
                raise CallFailed("timeout", message, retry=False) from None
            except CallFailed as failed:
                raise CallFailed(failed.kind, f"setup step {step.name}: {failed}", retry=False) from failed
            self._keep(done=step is setup.steps[-1])

    async def _step(self, step: StepConfig, documents: Sequence[Document | None]) -> None:
        gathered: dict[str, list[Any]] = {name: [] for name in step.capture}
        for document in documents:
            texts = {name: getattr(document, name) or "" for name in DOCUMENT_NAMES} if document else {}
            received = await self._until(step, {**self._captured, **texts})
            for name, path in step.capture.items():
                gathered[name].append(_value_at(path, self._json(received), f"capture of {name}"))
        self._captured |= gathered if step.each else {name: values[0] for name, values in gathered.items()}

    async def _until(self, step: StepConfig, values: Mapping[str, Any]) -> Received:
        """One request of a step, repeated until what the step waits for is true."""
        headers = self._headers if step.headers is None else resolved(step.headers)
        request = Request(step.method, address(step.url, values), headers, filled(step.body, values))
        while True:
            received = await self.client.send(request, timeout_s=step.time_limit)
            if step.until is None:
                return received
            seen = {"reply": self._json(received), "captured": self._captured}
            if _search(step.until, seen, "until") is True:
                return received
            await asyncio.sleep(step.every)

    async def _take_down(self) -> None:
        """All steps of the teardown that something was made for; one that fails keeps no other back.

        What was captured is then kept, so that the next run takes it down before it sets up anew.
        """
        lacking, failures = set(self.config.setup.captured) - self._captured.keys(), 0
        for step in self.config.setup.teardown:
            if lacking & names_in([step.url, step.body]):
                continue
            try:
                async with asyncio.timeout(step.time_limit):
                    await self._step(step, (None,))
            except (TimeoutError, CallFailed) as failed:
                why = str(failed) or f"not done within its time limit of {step.time_limit:g} s"
                failures += 1
                notice(f"judgecal: {self.name}: teardown step {step.name}: {redacted(why, self._secrets)}")
        if failures and self._captured:
            self._keep(done=False)
            left = f"this may be left on the server: {self._named(self._captured)}"
            advice = f"the next run takes it down. Where it is gone, delete {self._file}"
            notice(f"judgecal: {self.name}: {left}; {advice}")
        else:
            self._file.unlink(missing_ok=True)
        self._captured.clear()

    def _keep(self, *, done: bool) -> None:
        state = {"setup": self._digest(), "done": done, "captured": self._captured}
        write_text(self._file, json.dumps(state))

    def _left_over(self) -> bool:
        """Take over what an interrupted run has captured; whether its setup came to its end.

        What this table cannot take down is said, and kept under another name.
        """
        if not self._file.exists():
            return False
        try:
            state = json.loads(self._file.read_text(encoding="utf-8"))
            made_by, captured, done = state["setup"], dict(state["captured"]), state["done"] is True
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._give_up(f"it cannot be read ({type(error).__name__}), so what it made is not known")
            return False
        if made_by != self._digest():
            self._give_up(f"the setup has changed since; it made {self._named(captured)}")
            return False
        self._captured = captured
        return done

    def _give_up(self, why: str) -> None:
        kept = self._file.with_name(LEFT_FILE)
        self._file.replace(kept)
        notice(
            f"judgecal: {self.name}: something of an earlier run may be left on the server, and is not taken "
            f"down: {why}. See {kept}"
        )

    def _named(self, captured: Mapping[str, Any]) -> str:
        """What was captured, each shortened: `collection = "c1"`."""
        shown = (f"{name} = {json.dumps(value)[:60]}" for name, value in captured.items())
        return redacted(", ".join(shown), self._secrets) or "nothing that was captured"

    def _digest(self) -> str:
        return digest(self.config.setup.model_dump(mode="json"))


def _parsed(data: bytes, what: str, client: HttpClient) -> Any:
    """JSON, or a failure that says what stands there instead."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        page = "an HTML page" if data.lstrip()[:1] == b"<" else "no JSON"
        # As an error page under status 200 it passes, so a resumed run asks again.
        message = f"{what} is {page}: {client.quoted(data) or 'it is empty'}"
        raise CallFailed("server", message, retry=False) from None


def _unreadable(message: str) -> CallFailed:
    return CallFailed("parse", message, retry=False)


def _search(path: str, data: Any, what: str) -> Any:
    try:
        return jmespath.search(path, data)
    except (jmespath.exceptions.JMESPathError, TypeError, RecursionError) as error:
        raise _unreadable(f"{what} {path}: {' '.join(str(error).split())[:200]}") from error


def _value_at(path: str, data: Any, what: str) -> Any:
    """What data holds at a path, which is something."""
    value = _search(path, data, what)
    if value is None:
        keys = f"it is {data!r:.80}"
        if isinstance(data, dict):
            keys = f"its keys are {', '.join(map(str, data))[:120]}"
        raise _unreadable(f"{what} {path}: the reply does not hold it ({keys})")
    return value
