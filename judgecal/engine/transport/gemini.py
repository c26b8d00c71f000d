"""Google's generateContent. The key goes in a header: a key in a URL ends up in logs."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.engine.calls import MOST_BYTES, Message, Reply, ReplySchema, count, joined_text, system_text
from judgecal.engine.transport.provider_errors import at
from judgecal.models import ModelSpec, with_version

_ROLES = {"user": "user", "assistant": "model"}
_FILTERED = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")


class Wire:
    """generateContent of one model; `/v1beta/models/NAME:generateContent` is appended to its `api_base`."""

    most_bytes = MOST_BYTES

    def __init__(self, spec: ModelSpec, key: str | None) -> None:
        name = urllib.parse.quote(spec.id.partition("/")[2].removeprefix("models/"), safe="")
        self.url = f"{with_version(spec.address, 'v1beta')}/models/{name}:generateContent"
        self.headers: Mapping[str, str] = {"x-goog-api-key": key} if key else {}
        self._config = _generation(spec)
        self._spec = spec

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """The turns; the system message stands apart from them."""
        body: dict[str, Any] = {
            "contents": [
                {"role": _ROLES[message["role"]], "parts": [{"text": message["content"]}]}
                for message in messages
                if message["role"] != "system"
            ]
        }
        if system := system_text(messages):
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if config := {**self._config, **_response_schema(schema, self._spec)}:
            body["generationConfig"] = config
        return body

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The first candidate; its thoughts are billed as the reply is, so they count with it."""
        candidate, usage = at(data, "candidates", 0), data.get("usageMetadata")
        model = data.get("modelVersion")
        return Reply(
            joined_text(at(candidate, "content", "parts")),
            model if isinstance(model, str) and model else self._spec.id,
            prompt_tokens=_tokens(usage, "promptTokenCount"),
            completion_tokens=_tokens(usage, "candidatesTokenCount", "thoughtsTokenCount"),
            stopped=_stopped(at(candidate, "finishReason"), at(data, "promptFeedback", "blockReason")),
        )


def _generation(spec: ModelSpec) -> dict[str, Any]:
    settings = {"temperature": spec.sent_temperature, "maxOutputTokens": spec.max_tokens}
    return {name: value for name, value in settings.items() if value is not None}


def _response_schema(schema: ReplySchema | None, spec: ModelSpec) -> dict[str, Any]:
    """The schema in the subset of OpenAPI that Google takes; the order of the fields must be said there."""
    if schema is None:
        return {}
    fields = {
        name: {**field, "type": field["type"].upper()}
        for name, field in schema.spoken(spec)["properties"].items()
    }
    names = list(fields)
    whole = {"type": "OBJECT", "properties": fields, "required": names, "propertyOrdering": names}
    return {"responseMimeType": "application/json", "responseSchema": whole}


def _tokens(usage: Any, *names: str) -> int | None:
    """Google leaves out a count of zero; without any usage nothing is known."""
    if not isinstance(usage, dict) or not usage:
        return None
    counts = [count(usage.get(name, 0)) for name in names]
    known = [number for number in counts if number is not None]
    return sum(known) if len(known) == len(counts) else None


def _stopped(reason: Any, blocked: Any) -> str:
    if blocked or reason in _FILTERED:
        return "content_filter"
    if reason == "MAX_TOKENS":
        return "length"
    return reason.lower() if isinstance(reason, str) else "stop"
