"""A small RAG system over HTTP, of the standard library alone, on this machine only:

    python rag_server.py DOCUMENTS.jsonl [PORT]

POST /query  {"query"} -> {"answer": {"text"}, "sources": [{"passage", "file", "score"}]}

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
from pathlib import Path
from typing import Any

SENTENCES: list[tuple[str, str]] = []
"""The document of each sentence, and the sentence."""
ENOUGH = 12.0  # below this score there is no answer


def words(text: str) -> set[str]:
    """The words that a text has, without case."""
    return set(re.findall(r"\w+", text.lower()))


def found(question: str) -> list[dict[str, Any]]:
    """The three best sentences, best first."""
    seen = Counter(word for _, text in SENTENCES for word in words(text))
    weight = {word: math.log(1 + len(SENTENCES) / seen[word]) for word in words(question) if word in seen}
    scored = [(sum(weight.get(word, 0.0) for word in words(text)), file, text) for file, text in SENTENCES]
    best = sorted(scored, key=lambda one: -one[0])[:3]
    return [
        {"passage": text, "file": file, "score": round(score, 3)} for score, file, text in best if score > 0
    ]


def answered(question: str) -> dict[str, Any]:
    """The answer, and what it was taken from."""
    sources = found(question)
    sure = sources and sources[0]["score"] >= ENOUGH
    text = sources[0]["passage"] if sure else "I cannot find that in the documents."
    return {"answer": {"text": text}, "sources": sources}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer a question."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path == "/query":
            self.send(answered(body["query"]))
        else:
            self.send({"error": "there is only /query"}, status=404)

    def send(self, reply: dict[str, Any], status: int = 200) -> None:
        """Send a reply of JSON."""
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    SENTENCES += [
        (document["document_id"], sentence)
        for document in map(json.loads, Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())
        for sentence in re.split(r"(?<=[.!?])\s+", document["text"].strip())
    ]
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 8765), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
