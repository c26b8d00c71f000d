"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.engine.calls import MOST_BYTES, Message, Reply, ReplySchema, count, joined_text, system_text
from judgecal.engine.transport.provider_errors import at
from judgecal.models import ModelSpec, with_version

_PATH = "/messages"
_VERSION = "2023-06-01"
# The format wants a longest reply; a budget counts with the same number where the user names none.
_LONGEST_REPLY = 8192
_STOPPED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
# A cached part of the prompt is counted apart, and is part of the prompt all the same.
_PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Wire:
    """Messages of one model; `/v1/messages` is appended to its `api_base`."""

    most_bytes = MOST_BYTES

    def __init__(self, spec: ModelSpec, key: str | None) -> None:
        base = spec.address.rstrip("/")
        self.url = base if base.endswith(_PATH) else with_version(base, "v1") + _PATH
        self.headers: Mapping[str, str] = {
            "anthropic-version": _VERSION,
            **({"x-api-key": key} if key else {}),
        }
        self._fixed = _settings(spec)
        self._spec = spec

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """The turns; the system message stands apart from them."""
        turns = [message for message in messages if message["role"] != "system"]
        body: dict[str, Any] = {**self._fixed, "messages": turns}
        if system := system_text(messages):
            body["system"] = system
        if schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema.spoken(self._spec)}}
        return body

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The text blocks."""
        usage, model, reason = data.get("usage"), data.get("model"), data.get("stop_reason")
        return Reply(
            joined_text(data.get("content")),
            model if isinstance(model, str) and model else self._spec.id,
            prompt_tokens=_prompt_tokens(usage),
            completion_tokens=count(at(usage, "output_tokens")),
            stopped=_STOPPED.get(reason, reason) if isinstance(reason, str) else "stop",
        )


def _settings(spec: ModelSpec) -> dict[str, Any]:
    longest = spec.max_tokens or min(spec.reply_limit or _LONGEST_REPLY, _LONGEST_REPLY)
    settings: dict[str, Any] = {"model": spec.id.partition("/")[2], "max_tokens": longest}
    if spec.sent_temperature is not None:
        settings["temperature"] = spec.sent_temperature
    return settings


def _prompt_tokens(usage: Any) -> int | None:
    if count(at(usage, "input_tokens")) is None:
        return None
    return sum(count(at(usage, name)) or 0 for name in _PROMPT_COUNTS)
