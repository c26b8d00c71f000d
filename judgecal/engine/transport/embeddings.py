"""Vectors of texts in OpenAI's format, `POST /embeddings`: a message a text.

The text of the reply is the vectors in the order of the texts, each as little-endian 32-bit floats in base64,
with a blank between two.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from judgecal.engine.calls import Message, Reply, ReplySchema, count
from judgecal.engine.transport.openai import endpoint, key_header, model_name
from judgecal.engine.transport.provider_errors import at
from judgecal.engine.transport.rerank import in_order
from judgecal.models import ModelSpec

Vectors = npt.NDArray[np.float32]
"""Texts x dimensions."""

_FLOAT = np.dtype("<f4")


class Wire:
    """The embeddings of one model. InputError where its address is not known."""

    most_bytes = 8_000_000  # a number takes up to 30 bytes on the way

    def __init__(self, spec: ModelSpec, key: str | None) -> None:
        self.url = endpoint(spec, "/embeddings")
        self.headers: Mapping[str, str] = key_header(key)
        self._spec = spec

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """The texts of the messages."""
        return {"model": model_name(self._spec), "input": [message["content"] for message in messages]}

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The vectors, as this module writes them."""
        return vectors_reply(data, len(messages), self._spec)


def vectors_reply(data: Mapping[str, Any], n: int, spec: ModelSpec) -> Reply:
    """The vectors in an answer, in the order of their indices.

    Raises:
        CallFailed: there are not n of them.
    """
    rows = in_order(data.get("data"), n, "vectors")
    model = data.get("model")
    return Reply(
        " ".join(
            base64.b64encode(np.asarray(row["embedding"], dtype=_FLOAT).tobytes()).decode() for row in rows
        ),
        model if isinstance(model, str) and model else spec.id,
        prompt_tokens=count(at(data.get("usage"), "prompt_tokens")),
    )


def vectors_in(text: str) -> Vectors:
    """The vectors of a reply's text, each of length 1.

    Raises:
        ValueError: there is none, they have different lengths, or hold what is no finite number or nothing
            but 0.
    """
    rows = [
        np.frombuffer(base64.b64decode(vector, validate=True), dtype=_FLOAT) for vector in text.split(" ")
    ]
    if not rows[0].size or len({len(row) for row in rows}) > 1:
        raise ValueError("vectors of different lengths, or of none")
    vectors = np.stack(rows)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not norms.all():
        raise ValueError("a vector without a direction: it holds no finite numbers, or nothing but 0")
    unit: Vectors = vectors / norms
    return unit
