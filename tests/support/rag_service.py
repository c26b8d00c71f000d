"""A small RAG service on 127.0.0.1: three documents, BM25, streams, and seeded faults."""

from __future__ import annotations

import contextlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from judgecal.goldset import GoldDocument
from judgecal.rag.retrieval.indexes import Bm25, words_of
from tests.support.http import Answer, Request, as_answer, serve

DOCUMENTS = (
    GoldDocument("rivers", None, "The Rhine rises in the Alps. It reaches the North Sea near Rotterdam."),
    GoldDocument(
        "metals", None, "Mercury is a liquid metal at room temperature. Iron melts at 1538 degrees Celsius."
    ),
    GoldDocument("birds", None, "The albatross has the widest wings of all birds. Penguins cannot fly."),
)
_SENTENCES = [
    (document.document_id, text) for document in DOCUMENTS for text in re.split(r"(?<=\.) ", document.text)
]
FAULTS = ("500", "html", "cut", "shape", "elsewhere")
"""What a question that is hit by a fault gets: a status, a page under 200, half a body, another shape, a
redirect."""


@dataclass
class RagService:
    """A running service; numbers may be changed between requests.

    Attributes:
        asked: how often each question came.
        slept: seconds that the service took for a question, and to its first piece.
        keys: values of the header `authorization`.
    """

    root: str = ""
    seed: int = 0
    faults: float = 0.0  # share of the questions that meet one
    query_s: float = 0.02  # at least; some take up to twice as long
    busy: int = 0  # questions that are turned away by 503 first
    asked: Counter[str] = field(default_factory=Counter)
    slept: dict[str, tuple[float, float]] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)

    def fault_of(self, question: str) -> str | None:
        """The fault that a question meets, the same one each time; None for most."""
        draw = random.Random(f"{self.seed} {question!a}")
        return draw.choice(FAULTS) if draw.random() < self.faults else None

    def table(self, **further: Any) -> dict[str, Any]:
        """The table of a system that asks this service."""
        return {
            "url": f"{self.root}/query",
            "body": {"query": "{question}"},
            "answer": "answer.text",
            "contexts": "sources.*.passage",
            "context_ids": "sources.*.file",
            **further,
        }


def _found(question: str) -> list[dict[str, Any]]:
    """The two sentences that BM25 ranks highest."""
    scores = Bm25.of([words_of(text) for _, text in _SENTENCES]).scores([words_of(question)])[0]
    best = sorted(range(len(_SENTENCES)), key=lambda place: -scores[place])[:2]
    return [
        {"passage": _SENTENCES[place][1], "file": _SENTENCES[place][0], "score": float(scores[place])}
        for place in best
    ]


def inline(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(one)}" for key, one in value.items()) + " }"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else json.dumps(value)


@contextlib.contextmanager
def rag_service(**settings: Any) -> Iterator[RagService]:
    """Serve until the block ends."""
    service = RagService(**settings)
    with serve(lambda request: _answer(service, request)) as service.root:
        yield service


def _answer(service: RagService, request: Request) -> Answer:
    body, key = request.json(), request.headers.get("authorization", "")
    service.keys.add(key)
    question = body["query"]
    service.asked[question] += 1
    if service.busy > 0:
        service.busy -= 1
        return as_answer({"error": "busy"}, 503)
    start = time.perf_counter()
    time.sleep(service.query_s * (1 + random.Random(ascii(question)).random()))
    faults = {
        "html": Answer(200, b"<html><body><h1>Bad gateway</h1></body></html>", content_type="text/html"),
        "cut": Answer(200, b'{"answer": {"te' + bytes(100), cut=100),
        "shape": as_answer({"result": "of another shape"}),
        "elsewhere": as_answer({}, 307, location="http://elsewhere.example/login"),
        "500": as_answer({"error": f"out of memory; {key}"}, 500),
    }
    if fault := service.fault_of(question):
        return faults[fault]
    sources = _found(question)
    text = sources[0]["passage"]

    def stream() -> Iterator[bytes]:
        yield f": a comment\n\ndata: {json.dumps({'sources': sources})}\n\n".encode()
        time.sleep(service.query_s)
        first = time.perf_counter() - start
        for word in re.findall(r"\S+\s*", text):
            yield f"event: token\ndata: {json.dumps({'delta': word})}\n\n".encode()
            time.sleep(service.query_s / 10)
        service.slept[question] = (time.perf_counter() - start, first)
        yield b"data: [DONE]\n\n"

    if body.get("stream"):
        return Answer(content_type="text/event-stream; charset=utf-8", pieces=stream())
    service.slept[question] = (time.perf_counter() - start,) * 2
    return as_answer({"answer": {"text": text}, "sources": sources})
