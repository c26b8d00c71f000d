"""OpenAI's chat completions, which most providers and local servers speak too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.engine.calls import MOST_BYTES, Message, Reply, ReplySchema, count, joined_text
from judgecal.engine.transport.provider_errors import at
from judgecal.errors import InputError
from judgecal.models import ModelSpec, with_version

# Their users write the address without the version, as litellm wants it.
_VERSION_ADDED = ("ollama", "ollama_chat", "mistral")
_PATH = "/chat/completions"
_CUT = ("length", "max_tokens", "model_length")


class Wire:
    """Chat completions of one model. InputError where its address is not known."""

    most_bytes = MOST_BYTES

    def __init__(self, spec: ModelSpec, key: str | None) -> None:
        self.url = endpoint(spec, _PATH)
        self.headers: Mapping[str, str] = key_header(key)
        self._fixed = _settings(spec)
        self._spec = spec

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> dict[str, Any]:
        """The messages as they are, with the model's settings."""
        body = {**self._fixed, "messages": messages}
        return body if schema is None else {**body, "response_format": _response_format(schema, self._spec)}

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The first choice."""
        choice, usage, model = at(data, "choices", 0), data.get("usage"), data.get("model")
        content = at(choice, "message", "content")
        text = content if isinstance(content, str) else joined_text(content)
        return Reply(
            text,
            model if isinstance(model, str) and model else self._spec.id,
            prompt_tokens=count(at(usage, "prompt_tokens")),
            completion_tokens=count(at(usage, "completion_tokens")),
            stopped=_stopped(choice, text),
        )


def endpoint(spec: ModelSpec, path: str) -> str:
    """Where a model of a server that speaks OpenAI's format is asked, by the path of what is asked for."""
    base = spec.address.rstrip("/")
    if not base:
        raise InputError(
            f'model {spec.alias}: transport = "http" speaks OpenAI\'s format to {spec.provider}: set api_base'
        )
    if base.endswith(path):
        return base
    return (with_version(base, "v1") if spec.provider in _VERSION_ADDED else base) + path


def key_header(key: str | None) -> dict[str, str]:
    """The header that carries a key; none where there is none."""
    return {"authorization": f"Bearer {key}"} if key else {}


def _settings(spec: ModelSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {"model": model_name(spec)}
    if spec.sent_temperature is not None:
        settings["temperature"] = spec.sent_temperature
    if spec.max_tokens is not None:
        settings["max_completion_tokens" if spec.reasons else "max_tokens"] = spec.max_tokens
    return settings


def model_name(spec: ModelSpec) -> str:
    """The name that the server knows; Fireworks wants its models' full path."""
    name = spec.id.partition("/")[2]
    if spec.provider != "fireworks_ai" or name.startswith("accounts/") or "#" in name:
        return name
    return f"accounts/fireworks/{name if name.startswith(('models/', 'routers/')) else f'models/{name}'}"


def _response_format(schema: ReplySchema, spec: ModelSpec) -> dict[str, Any]:
    spoken = schema.spoken(spec)
    if schema.form == "json_object":
        return {"type": "json_object", "schema": spoken}
    return {"type": "json_schema", "json_schema": {"name": "judgement", "strict": True, "schema": spoken}}


def _stopped(choice: Any, text: str) -> str:
    if not text and at(choice, "message", "refusal"):
        return "content_filter"
    reason = at(choice, "finish_reason")
    if reason in _CUT:
        return "length"
    return reason if isinstance(reason, str) else "stop"
