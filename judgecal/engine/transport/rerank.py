"""The relevance of texts to a query in Cohere's format, `POST /rerank`, which other servers speak too.

The first message is the query, each other one a text. The text of the reply is a JSON list of the scores in
the order of the texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.engine.calls import MOST_BYTES, CallFailed, Message, Reply, ReplySchema, count
from judgecal.engine.transport.openai import endpoint, key_header, model_name
from judgecal.engine.transport.provider_errors import at
from judgecal.models import ModelSpec


class Wire:
    """A reranker. InputError where its address is not known."""

    most_bytes = MOST_BYTES

    def __init__(self, spec: ModelSpec, key: str | None) -> None:
        self.url = endpoint(spec, "/rerank")
        self.headers: Mapping[str, str] = key_header(key)
        self._spec = spec

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """The query and the texts."""
        query, *texts = [message["content"] for message in messages]
        return {"model": model_name(self._spec), "query": query, "documents": texts, "top_n": len(texts)}

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The scores, as this module writes them."""
        return scores_reply(data, len(messages) - 1, self._spec)


def scores_reply(data: Mapping[str, Any], n: int, spec: ModelSpec) -> Reply:
    """The scores in an answer, in the order of their indices.

    Raises:
        CallFailed: there are not n of them.
    """
    rows = in_order(data.get("results", data.get("data")), n, "scores")
    model, usage = data.get("model"), data.get("usage")
    return Reply(
        json.dumps([float(row["relevance_score"]) for row in rows]),
        model if isinstance(model, str) and model else spec.id,
        prompt_tokens=count(at(usage, "prompt_tokens")) or count(at(usage, "total_tokens")),
    )


def in_order(rows: Any, n: int, what: str) -> list[Mapping[str, Any]]:
    """The rows of an answer by their `index`, which must go from 0 to n - 1.

    Raises:
        CallFailed: they do not.
    """
    by_index = {at(row, "index"): row for row in rows} if isinstance(rows, list) else {}
    if len(by_index) != n or any(number not in by_index for number in range(n)):
        number = len(rows) if isinstance(rows, list) else "no"
        raise CallFailed(
            "server", f"the server's answer holds {number} {what}, {n} were asked for", retry=True
        )
    return [by_index[number] for number in range(n)]
