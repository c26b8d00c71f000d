"""A small RAG service on 127.0.0.1: collections, documents that are stored slowly, BM25, streams, and seeded
faults."""

from __future__ import annotations

import contextlib
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from judgecal.goldset import Document
from judgecal.rag.retrieval.bm25 import Bm25, tokenizer_named

DOCUMENTS = (
    Document("rivers", None, "The Rhine rises in the Alps. It reaches the North Sea near Rotterdam."),
    Document(
        "metals", None, "Mercury is a liquid metal at room temperature. Iron melts at 1538 degrees Celsius."
    ),
    Document("birds", None, "The albatross has the widest wings of all birds. Penguins cannot fly."),
)
FAULTS = ("500", "html", "cut", "shape", "elsewhere")
"""What a question that is hit by a fault gets: a status, a page under 200, half a body, another shape, a
redirect."""


@dataclass
class RagService:
    """A running service; numbers may be changed between requests.

    Attributes:
        asked: how often each question came.
        slept: seconds that the service took for a question, and to its first piece.
        requests: method and path of all others, in their order.
        keys: values of the header `authorization`.
    """

    root: str = ""
    seed: int = 0
    faults: float = 0.0  # share of the questions that meet one
    query_s: float = 0.02  # at least; some take up to twice as long
    store_s: float = 0.01  # a chunk
    stores: bool = True  # False: what is sent is never stored
    deletes: bool = True  # False: a collection cannot be deleted
    busy: int = 0  # questions that are turned away by 503 first
    asked: Counter[str] = field(default_factory=Counter)
    slept: dict[str, tuple[float, float]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    chunks: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault_of(self, question: str) -> str | None:
        """The fault that a question meets, the same one each time; None for most."""
        draw = random.Random(f"{self.seed} {question!a}")
        return draw.choice(FAULTS) if draw.random() < self.faults else None

    def table(self, **further: Any) -> dict[str, Any]:
        """The table of a system that asks one collection of this service."""
        one = f"{self.root}/collections/{{collection}}"
        steps = [
            {"name": "create", "url": f"{self.root}/collections", "capture": {"collection": "id"}},
            {
                "name": "ingest", "url": f"{one}/documents", "each": "document",
                "body": {"document_id": "{document_id}", "text": "{text}"}, "capture": {"sent": "n_chunks"},
            },
            {
                "name": "wait", "method": "GET", "url": one, "every": 0.01, "time_limit": 5.0,
                "until": "reply.stored >= sum(captured.sent)",
            },
        ]  # fmt: skip
        return {
            "url": f"{one}/query",
            "body": {"query": "{question}"},
            "answer": "answer.text",
            "contexts": "sources[].{text: passage, document_id: file, score: score}",
            "setup": {"steps": steps, "teardown": [{"name": "delete", "method": "DELETE", "url": one}]},
            **further,
        }

    def store(self, collection: str, document: str, text: str) -> int:
        """Store a document's sentences, one after the other in the background; how many there are."""
        sentences = re.split(r"(?<=\.) ", text)

        def slowly() -> None:
            for sentence in sentences:
                time.sleep(self.store_s)
                with self.lock:
                    self.chunks[collection].append((document, sentence))

        if self.stores:
            threading.Thread(target=slowly, daemon=True).start()
        return len(sentences)

    def found(self, collection: str, question: str) -> list[dict[str, Any]]:
        """The two sentences that BM25 ranks highest."""
        with self.lock:
            chunks = list(self.chunks[collection])
        words = tokenizer_named("words")
        scores = Bm25.of([words(text) for _, text in chunks]).scores([words(question)])[0]
        best = sorted(range(len(chunks)), key=lambda place: -scores[place])[:2]
        return [{"passage": chunks[at][1], "file": chunks[at][0], "score": float(scores[at])} for at in best]


def inline(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(one)}" for key, one in value.items()) + " }"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else json.dumps(value)


@contextlib.contextmanager
def rag_service(**settings: Any) -> Iterator[RagService]:
    """Serve until the block ends."""
    service = RagService(**settings)
    server = _Server(("127.0.0.1", 0), _handler(service))
    service.root = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """A client that hung up is part of the tests."""


def _handler(service: RagService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self.serve()

        do_POST = do_DELETE = do_GET  # noqa: N815

        def serve(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(size)) if size else {}
            service.keys.add(self.headers.get("authorization", ""))
            parts = self.path.strip("/").split("/")
            if parts[-1] == "query":
                self.query(parts[1], body)
                return
            service.requests.append(f"{self.command} {self.path}")
            if self.path == "/collections":
                name = f"c{len(service.chunks) + 1}"
                service.chunks[name] = []
                self.send({"id": name})
            elif parts[-1] == "documents":
                self.send({"n_chunks": service.store(parts[1], body["document_id"], body["text"])})
            elif self.command == "DELETE" and not service.deletes:
                self.send({"error": "locked"}, status=409)
            elif self.command == "DELETE":
                del service.chunks[parts[1]]
                self.send({})
            else:
                self.send({"stored": len(service.chunks[parts[1]])})

        def query(self, collection: str, body: dict[str, Any]) -> None:
            question = body["query"]
            service.asked[question] += 1
            if service.busy > 0:
                service.busy -= 1
                self.send({"error": "busy"}, status=503)
                return
            start = time.perf_counter()
            time.sleep(service.query_s * (1 + random.Random(ascii(question)).random()))
            fault = service.fault_of(question)
            if fault:
                self.fail(fault)
                return
            sources = service.found(collection, question)
            text = sources[0]["passage"]
            if body.get("stream"):
                self.stream(text, sources, start, question)
                return
            service.slept[question] = (time.perf_counter() - start,) * 2
            self.send({"answer": {"text": text}, "sources": sources})

        def stream(self, text: str, sources: list[Any], start: float, question: str) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream; charset=utf-8")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.chunk(f": a comment\n\ndata: {json.dumps({'sources': sources})}\n\n")
            time.sleep(service.query_s)
            first = time.perf_counter() - start
            for word in re.findall(r"\S+\s*", text):
                self.chunk(f"event: token\ndata: {json.dumps({'delta': word})}\n\n")
                time.sleep(service.query_s / 10)
            service.slept[question] = (time.perf_counter() - start, first)
            self.chunk("data: [DONE]\n\n")
            self.chunk("")

        def chunk(self, text: str) -> None:
            data = text.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

        def fail(self, fault: str) -> None:
            if fault == "html":
                self.send(b"<html><body><h1>Bad gateway</h1></body></html>", kind="text/html")
            elif fault == "cut":
                self.send(b'{"answer": {"te', cut=100)
            elif fault == "shape":
                self.send({"result": "of another shape"})
            elif fault == "elsewhere":
                self.send({}, status=307, location="http://elsewhere.example/login")
            else:
                self.send({"error": f"out of memory; {self.headers.get('authorization')}"}, status=500)

        def send(
            self,
            body: Any,
            *,
            status: int = 200,
            kind: str = "application/json",
            cut: int = 0,
            location: str = "",
        ) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data) + cut))
            if location:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = self.close_connection or bool(cut)

    return Handler
