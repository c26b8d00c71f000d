"""A host of raw files on 127.0.0.1: each path has its answers in turn, the last one again and again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.http import Answer, Request, serve

_CLOSED = {"connection": "close"}


def sent(body: bytes = b"", status: int = 200, **how: Any) -> Answer:
    """What is sent for a path, on a connection of its own."""
    how["headers"] = {**how.get("headers", {}), **_CLOSED}
    return Answer(status, body, content_type="", **how)


def moved(to: str, status: int = 302) -> Answer:
    """A redirect."""
    return sent(status=status, headers={"location": to})


@dataclass
class RawHost:
    """A running host: `files` may change between requests, `asked` are the paths in the order of the requests."""

    root: str
    files: dict[str, list[Answer]]
    asked: list[str] = field(default_factory=list)

    def put(self, path: str, *answers: Answer | bytes) -> str:
        """Serve these under a path, one after the other; gives its address."""
        self.files[path] = [sent(answer) if isinstance(answer, bytes) else answer for answer in answers]
        return self.root + path


@contextlib.contextmanager
def raw_host() -> Iterator[RawHost]:
    """Serve until the block ends."""
    host = RawHost("", {})

    def handler(request: Request) -> Answer:
        host.asked.append(request.path)
        answers = host.files.get(request.path) or [sent(b"no such file", 404)]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    with serve(handler) as host.root:
        yield host
