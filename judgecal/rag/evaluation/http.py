"""A system over HTTP, asked each question once and timed.

What a reply of status 2xx holds at the paths of its table is the answer and its contexts. Everything else
is an error with a name: another status, a page, a path that is missing, a body that was cut off, a server
that hangs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgecal.engine import CallFailed
from judgecal.engine.log import now
from judgecal.engine.transport.redaction import redacted
from judgecal.rag.evaluation.http_client import HttpClient, HttpConfig, Received, failed, value_at
from judgecal.rag.evaluation.system import (
    Answered,
    Asking,
    System,
    SystemAnswer,
    ask_all,
    ask_at_once,
    contexts_of,
)
from judgecal.rag.questions import Question
from judgecal.records import Context, ErrorKind, Failure

_READ_S = 1.0  # to read an answer that came at the last moment
_DECIDES_NO_ANSWER = {"timeout", "concurrency"}


@dataclass
class HttpSystem(System):
    """A service that answers questions over HTTP; which models it calls, and what they cost, is not known."""

    name: str
    table: HttpConfig

    @property
    def shows_contexts(self) -> bool:
        return self.table.contexts is not None

    def config(self) -> dict[str, Any]:
        """The table without what decides no answer."""
        return self.table.model_dump(mode="json", exclude=_DECIDES_NO_ANSWER)

    def check(self, questions: Sequence[Question]) -> list[str]:
        return [*self.table.problems()]

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        table = self.table

        async def work_off(due: Sequence[Question], take: Answered) -> None:
            async with HttpClient(table.secrets(), table.concurrency) as client:
                service = _Service(self.name, table, client)
                await ask_at_once(due, take, service.answer, concurrency=table.concurrency)

        return ask_all(self, questions, asking, work_off)


class _Service:
    """The service as one run asks it."""

    def __init__(self, name: str, table: HttpConfig, client: HttpClient) -> None:
        self.name, self.table, self.client = name, table, client
        self._secrets = table.secrets()

    async def answer(self, question: Question) -> SystemAnswer:
        """The answer to a question, or why there is none."""
        table = self.table
        try:
            received = await self.client.send(table.request(question.question), timeout_s=table.timeout)
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
