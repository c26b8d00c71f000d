"""A small RAG system over HTTP, of the standard library alone: `python rag_server.py [PORT]`, on this machine only.

POST /collections                    -> {"id"}: a new collection
POST /collections/ID/documents       {"document_id", "text"} -> {"n_chunks"}: its sentences, to be found
GET /collections/ID                  -> {"stored", "pending"}: how many sentences there are, and are still to come
POST /collections/ID/query           {"query"} -> {"answer": {"text"}, "sources": [{"passage", "file", "score"}]}
DELETE /collections/ID               -> {}

It answers with the sentence that shares most words with the question, rare words counting more, and refuses where it
finds none: good enough to be measured.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COLLECTIONS: dict[str, list[tuple[str, str]]] = {}
"""Each collection's sentences, with the document that each is of."""
ENOUGH = 12.0  # below this score there is no answer


def words(text: str) -> set[str]:
    """The words that a text has, without case."""
    return set(re.findall(r"\w+", text.lower()))


def found(collection: str, question: str) -> list[dict[str, Any]]:
    """The three best sentences, best first."""
    sentences = COLLECTIONS[collection]
    seen = Counter(word for _, text in sentences for word in words(text))
    weight = {word: math.log(1 + len(sentences) / seen[word]) for word in words(question) if word in seen}
    scored = [(sum(weight.get(word, 0.0) for word in words(text)), file, text) for file, text in sentences]
    best = sorted(scored, key=lambda one: -one[0])[:3]
    return [
        {"passage": text, "file": file, "score": round(score, 3)} for score, file, text in best if score > 0
    ]


def answered(collection: str, question: str) -> dict[str, Any]:
    """The answer, and what it was taken from."""
    sources = found(collection, question)
    sure = sources and sources[0]["score"] >= ENOUGH
    text = sources[0]["passage"] if sure else "I cannot find that in the documents."
    return {"answer": {"text": text}, "sources": sources}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """All methods are told apart by the path."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        parts = self.path.strip("/").split("/")
        known = len(parts) > 1 and parts[1] in COLLECTIONS
        if parts == ["collections"] and self.command == "POST":
            name = f"c{len(COLLECTIONS) + 1}"
            COLLECTIONS[name] = []
            self.send({"id": name})
        elif not known or parts[0] != "collections":
            self.send({"error": "there is no such collection"}, status=404)
        elif parts[2:] == ["documents"]:
            chunks = re.split(r"(?<=[.!?])\s+", body["text"].strip())
            COLLECTIONS[parts[1]] += [(body["document_id"], chunk) for chunk in chunks]
            self.send({"n_chunks": len(chunks)})
        elif parts[2:] == ["query"]:
            self.send(answered(parts[1], body["query"]))
        elif self.command == "DELETE":
            del COLLECTIONS[parts[1]]
            self.send({})
        else:
            self.send({"stored": len(COLLECTIONS[parts[1]]), "pending": 0})

    do_POST = do_DELETE = do_GET  # noqa: N815

    def send(self, reply: dict[str, Any], status: int = 200) -> None:
        """Send a reply of JSON."""
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8765), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
