"""How each kind of server is spoken to over HTTP: where a call goes, what it holds, what the reply is.

What is asked of a model other than a reply to messages takes the same way. Vectors: a message a text; the
text of the reply is the vectors in the order of the texts, each as little-endian 32-bit floats in base64,
with a blank between two. Relevance: the first message is the query, each other one a text; the text of the
reply is a JSON list of the scores in the order of the texts.
"""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judgecal.engine.calls import (
    MOST_BYTES,
    CallFailed,
    Message,
    Reply,
    ReplySchema,
    count,
    joined_text,
    system_text,
)
from judgecal.engine.transport.chances import tokens_in
from judgecal.engine.transport.provider_errors import at
from judgecal.errors import InputError
from judgecal.models import ModelSpec, with_version

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
    """Texts x dimensions."""

_FLOAT = "<f4"


class Wire:
    """One model's format; made from the model and its key, if it wants one. InputError: no address is known.

    Attributes:
        url: where every call of the model goes; it never holds a key.
        headers: sent with every call, the key among them.
        most_bytes: of an answer, once decompressed; a larger one is not read to its end.
        chances: of how many tokens a place they are asked for.
    """

    most_bytes = MOST_BYTES
    chances = 0
    url: str
    headers: Mapping[str, str]

    def __init__(self, spec: ModelSpec, key: str | None) -> None:
        self.spec = spec
        self._spoken: dict[str, dict[str, Any]] = {}
        self.address(spec, key)

    def spoken(self, schema: ReplySchema) -> dict[str, Any]:
        """Return a ReplySchema as JSON that the model's server understands, made once."""
        if schema.key not in self._spoken:
            self._spoken[schema.key] = schema.spoken(self.spec)
        return self._spoken[schema.key]

    def address(self, spec: ModelSpec, key: str | None) -> None:
        """Set `url` and `headers`."""
        raise NotImplementedError

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """The body of a call, to be written as JSON; a reply is held to the schema where there is one."""
        raise NotImplementedError

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The reply to messages in the body of an answer; where it holds no text, the text is empty."""
        raise NotImplementedError


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _model_of(data: Mapping[str, Any], spec: ModelSpec, name: str = "model") -> str:
    """The model as its server names it, else as it was asked for."""
    model = data.get(name)
    return model if isinstance(model, str) and model else spec.id


class OpenAI(Wire):
    """OpenAI's chat completions, which most providers and local servers speak too."""

    path = "/chat/completions"
    format = 'in OpenAI\'s format by transport = "http"'
    _version_added = ("ollama", "ollama_chat", "mistral")  # their users write the address without it
    _cut = ("length", "max_tokens", "model_length")

    def address(self, spec: ModelSpec, key: str | None) -> None:
        """Set URL and headers from a ModelSpec and a key or None: `path` below its address, key as bearer."""
        base = spec.address.rstrip("/")
        if not base or not (spec.api_base or spec.known_provider.wire in (None, "openai")):
            raise InputError(f"model {spec.alias}: {spec.provider} is spoken to {self.format}: set api_base")
        if not base.endswith(self.path):
            base = (with_version(base, "v1") if spec.provider in self._version_added else base) + self.path
        self.url = base
        self.headers = {"authorization": f"Bearer {key}"} if key else {}

    @property
    def model(self) -> str:
        """The name that the server knows."""
        return self.spec.id.partition("/")[2]

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """Return a call's body (dict): the messages as they are, with the model's settings."""
        spec, body = self.spec, dict[str, Any](model=self.model)
        if spec.sent_temperature is not None:
            body["temperature"] = spec.sent_temperature
        if spec.max_tokens is not None:
            body["max_completion_tokens" if spec.reasons else "max_tokens"] = spec.max_tokens
        if self.chances:
            body |= {"logprobs": True, "top_logprobs": self.chances}
        body["messages"] = messages
        if schema is not None:
            strict = {"name": "judgement", "strict": True, "schema": self.spoken(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": strict}
        return body

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """From an answer's JSON data and the messages, return the Reply: its first choice."""
        choice, usage = _fields(at(data, "choices", 0)), _fields(data.get("usage"))
        message, reason = _fields(choice.get("message")), choice.get("finish_reason")
        content = message.get("content")
        text = content if isinstance(content, str) else joined_text(content)
        stopped = "length" if reason in self._cut else reason if isinstance(reason, str) else "stop"
        if not text and message.get("refusal"):
            stopped = "content_filter"
        return Reply(
            text,
            _model_of(data, self.spec),
            prompt_tokens=count(usage.get("prompt_tokens")),
            completion_tokens=count(usage.get("completion_tokens")),
            stopped=stopped,
            tokens=tokens_in(text, at(choice, "logprobs", "content")) if self.spec.weighs else None,
        )


class Anthropic(Wire):
    """Anthropic's messages."""

    _path = "/messages"
    # The format wants a longest reply; a budget counts with the same number where the user names none.
    _longest_reply = 8192
    _stopped: Mapping[str, str] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "content_filter",
    }
    # A cached part of the prompt is counted apart, and is part of the prompt all the same.
    _prompt_counts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

    def address(self, spec: ModelSpec, key: str | None) -> None:
        """Set URL and headers from a ModelSpec and a key or None: `/v1/messages` below its address."""
        base = spec.address.rstrip("/")
        self.url = base if base.endswith(self._path) else with_version(base, "v1") + self._path
        self.headers = {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """Return a call's body (dict) of messages; the system message stands apart from the turns."""
        spec = self.spec
        longest = spec.max_tokens or min(spec.reply_limit or self._longest_reply, self._longest_reply)
        body: dict[str, Any] = {"model": spec.id.partition("/")[2], "max_tokens": longest}
        if spec.sent_temperature is not None:
            body["temperature"] = spec.sent_temperature
        body["messages"] = [message for message in messages if message["role"] != "system"]
        if system := system_text(messages):
            body["system"] = system
        if schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": self.spoken(schema)}}
        return body

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """From an answer's JSON data and the messages, return the Reply: its text blocks."""
        usage, reason = data.get("usage"), data.get("stop_reason")
        counts = [count(at(usage, name)) for name in self._prompt_counts]
        return Reply(
            joined_text(data.get("content")),
            _model_of(data, self.spec),
            prompt_tokens=None if counts[0] is None else sum(number or 0 for number in counts),
            completion_tokens=count(at(usage, "output_tokens")),
            stopped=self._stopped.get(reason, reason) if isinstance(reason, str) else "stop",
        )


class Gemini(Wire):
    """Google's generateContent. The key goes in a header: a key in a URL ends up in logs."""

    _roles: Mapping[str, str] = {"user": "user", "assistant": "model"}
    _filtered = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")

    def address(self, spec: ModelSpec, key: str | None) -> None:
        """Set URL and headers from a ModelSpec and a key or None: `/v1beta/models/NAME:generateContent`."""
        name = urllib.parse.quote(spec.id.partition("/")[2].removeprefix("models/"), safe="")
        self.url = f"{with_version(spec.address, 'v1beta')}/models/{name}:generateContent"
        self.headers = {"x-goog-api-key": key} if key else {}

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """Return a call's body (dict) of messages; the system message stands apart from the turns.

        The schema goes in the subset of OpenAPI that Google takes; the order of the fields must be said
        there.
        """
        turns = [
            {"role": self._roles[message["role"]], "parts": [{"text": message["content"]}]}
            for message in messages
            if message["role"] != "system"
        ]
        body: dict[str, Any] = {"contents": turns}
        if system := system_text(messages):
            body["systemInstruction"] = {"parts": [{"text": system}]}
        settings = {"temperature": self.spec.sent_temperature, "maxOutputTokens": self.spec.max_tokens}
        config: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        if self.chances:
            config |= {"responseLogprobs": True, "logprobs": self.chances}
        if schema is not None:
            spoken = self.spoken(schema)["properties"]
            fields = {name: {**field, "type": field["type"].upper()} for name, field in spoken.items()}
            names = [*fields]
            whole = {"type": "OBJECT", "properties": fields, "required": names, "propertyOrdering": names}
            config |= {"responseMimeType": "application/json", "responseSchema": whole}
        return body | ({"generationConfig": config} if config else {})

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """From an answer's JSON data and the messages, return the Reply: its first candidate."""
        candidate, usage = at(data, "candidates", 0), data.get("usageMetadata")
        reason, stopped = at(candidate, "finishReason"), "stop"

        def tokens(*names: str) -> int | None:
            """Google leaves out a count of zero; without any usage nothing is known."""
            if not isinstance(usage, dict) or not usage:
                return None
            counts = [count(usage.get(name, 0)) for name in names]
            counted = [number for number in counts if number is not None]
            return sum(counted) if len(counted) == len(counts) else None

        if at(data, "promptFeedback", "blockReason") or reason in self._filtered:
            stopped = "content_filter"
        elif isinstance(reason, str):
            stopped = "length" if reason == "MAX_TOKENS" else reason.lower()
        text = joined_text(at(candidate, "content", "parts"))
        given = at(candidate, "logprobsResult") if self.spec.weighs else None
        return Reply(
            text,
            _model_of(data, self.spec, "modelVersion"),
            prompt_tokens=tokens("promptTokenCount"),
            completion_tokens=tokens("candidatesTokenCount", "thoughtsTokenCount"),
            stopped=stopped,
            tokens=tokens_in(text, at(given, "chosenCandidates"), at(given, "topCandidates")),
        )


class Embeddings(OpenAI):
    """Vectors of texts in OpenAI's format."""

    path = "/embeddings"
    format = "in OpenAI's format for vectors"
    most_bytes = 8_000_000  # a number takes up to 30 bytes on the way

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """The texts of the messages."""
        return {"model": self.model, "input": [message["content"] for message in messages]}

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The vectors of an answer as a reply, which `vectors_in` reads."""
        return vectors_reply(data, len(messages), self.spec)


class Rerank(OpenAI):
    """The relevance of texts to a query in Cohere's format, which other servers speak too."""

    path = "/rerank"
    format = "in Cohere's format for relevance"

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """Return a call's body (dict) for JSON: the query and the texts of the messages."""
        query, *texts = [message["content"] for message in messages]
        return {"model": self.model, "query": query, "documents": texts, "top_n": len(texts)}

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The relevance scores of an answer as a reply in JSON."""
        return scores_reply(data, len(messages) - 1, self.spec)


WIRES: Mapping[str, type[Wire]] = {
    "openai": OpenAI,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "embeddings": Embeddings,
    "rerank": Rerank,
}
"""By the name of the format that a provider's row in `models` gives, or of the task."""


def vectors_reply(data: Mapping[str, Any], n: int, spec: ModelSpec) -> Reply:
    """From an answer's JSON data, a number n of vectors and a ModelSpec, return the Reply, in index order.

    Raises:
        CallFailed: there are not n of them.
    """
    import numpy as np

    rows = _in_order(data.get("data"), n, "vectors")
    vectors = (np.asarray(row["embedding"], dtype=_FLOAT).tobytes() for row in rows)
    text = " ".join(base64.b64encode(vector).decode() for vector in vectors)
    return Reply(text, _model_of(data, spec), prompt_tokens=count(at(data.get("usage"), "prompt_tokens")))


def vectors_in(text: str) -> Vectors:
    """Return the vectors that a text of a reply holds, as an array, a row each.

    Raises:
        ValueError: there is none, they have different lengths, or hold what is not a finite number or nothing
            but 0.
    """
    import numpy as np

    rows = [
        np.frombuffer(base64.b64decode(vector, validate=True), dtype=_FLOAT) for vector in text.split(" ")
    ]
    if not rows[0].size or len({len(row) for row in rows}) > 1:
        raise ValueError("vectors of different lengths, or of none")
    vectors = np.stack(rows)
    norms = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(norms).all() or not norms.all():
        raise ValueError("a vector without a direction: it holds no finite numbers, or nothing but 0")
    return vectors


def scores_reply(data: Mapping[str, Any], n: int, spec: ModelSpec) -> Reply:
    """From an answer's JSON data, a number n of scores and a ModelSpec, return the Reply, in index order.

    Raises:
        CallFailed: there are not n of them.
    """
    rows, usage = _in_order(data.get("results", data.get("data")), n, "scores"), data.get("usage")
    text = json.dumps([float(row["relevance_score"]) for row in rows])
    tokens = count(at(usage, "prompt_tokens")) or count(at(usage, "total_tokens"))
    return Reply(text, _model_of(data, spec), prompt_tokens=tokens)


def _in_order(rows: Any, n: int, what: str) -> list[Mapping[str, Any]]:
    """The rows of an answer by their `index`, which must go from 0 to n - 1.

    Raises:
        CallFailed: they do not.
    """
    by_index = {at(row, "index"): row for row in rows} if isinstance(rows, list) else {}
    if len(by_index) != n or any(number not in by_index for number in range(n)):
        number = len(rows) if isinstance(rows, list) else "no"
        message = f"the server's answer holds {number} {what}, {n} were asked for"
        raise CallFailed("server", message, retry=True)
    return [by_index[number] for number in range(n)]
