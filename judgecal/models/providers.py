"""What is known of a model before any call: its provider, its price, and what may be shown of its address."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import urllib.parse
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from judgecal.errors import InputError


class Provider(NamedTuple):
    """What is known of a provider before any call.

    Attributes:
        wire: its format in `engine/transport/wires.py`; None leaves it to DSPy's client.
        key_follows: only its own servers and gateways to them speak its format: the key goes to another
            endpoint too.
    """

    key_env: str | None = None  # the variable that holds its key; None where none is needed
    wire: str | None = None
    base: str | None = None  # its address
    key_follows: bool = False


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("OPENAI_API_KEY", "openai", "https://api.openai.com/v1"),
    "gemini": Provider("GEMINI_API_KEY", "gemini", "https://generativelanguage.googleapis.com", True),
    "anthropic": Provider("ANTHROPIC_API_KEY", "anthropic", "https://api.anthropic.com", True),
    "mistral": Provider("MISTRAL_API_KEY", "openai", "https://api.mistral.ai/v1"),
    "groq": Provider("GROQ_API_KEY", "openai", "https://api.groq.com/openai/v1"),
    "openrouter": Provider("OPENROUTER_API_KEY", "openai", "https://openrouter.ai/api/v1"),
    "deepseek": Provider("DEEPSEEK_API_KEY", "openai", "https://api.deepseek.com"),
    "xai": Provider("XAI_API_KEY", "openai", "https://api.x.ai/v1"),
    "together_ai": Provider("TOGETHERAI_API_KEY", "openai", "https://api.together.ai/v1"),
    "fireworks_ai": Provider("FIREWORKS_AI_API_KEY", "openai", "https://api.fireworks.ai/inference/v1"),
    "hosted_vllm": Provider(None, "openai", "http://localhost:8000/v1"),
    "lm_studio": Provider(None, "openai", "http://localhost:1234/v1"),
    "ollama": Provider(None, "openai", "http://localhost:11434/v1"),
    "ollama_chat": Provider(None, "openai", "http://localhost:11434/v1"),
    "cohere": Provider("COHERE_API_KEY", base="https://api.cohere.com/v2"),
    "azure": Provider("AZURE_API_KEY"),
    "cerebras": Provider("CEREBRAS_API_KEY"),
    "deepinfra": Provider("DEEPINFRA_API_KEY"),
    "nvidia_nim": Provider("NVIDIA_NIM_API_KEY"),
    "perplexity": Provider("PERPLEXITYAI_API_KEY"),
    "sambanova": Provider("SAMBANOVA_API_KEY"),
    "voyage": Provider("VOYAGE_API_KEY", base="https://api.voyageai.com/v1"),
    "jina_ai": Provider("JINA_AI_API_KEY", base="https://api.jina.ai/v1"),
}
"""A provider that speaks one of the formats here is one more line; a new format is a class of `wires.py`."""


def price_row(model_id: str) -> Mapping[str, Any]:
    """The price file's row of a litellm id; it lists some providers' models without the provider."""
    rows = _price_file()
    provider, _, model = model_id.partition("/")
    row = rows.get(model_id) or rows.get(model, {})
    same = row.get("litellm_provider", provider) == provider
    return row if same and "input_cost_per_token" in row else {}


@cache
def _price_file() -> Mapping[str, Any]:
    module = importlib.util.find_spec("litellm")
    if module is None or module.origin is None:
        raise InputError("litellm is not installed: reinstall judgecal")
    path = Path(module.origin).parent / "model_prices_and_context_window_backup.json"
    rows: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return rows


_STARS = "***"
_SHOWN_QUERIES = ("api-version", "api_version")  # part of what is asked, and never a secret
_LIKE_A_TOKEN = 20  # characters of a segment of a path


def shown_address(address: str) -> str:
    """An address without what may be a secret: user, fragment, query values, token-like path segments.

    What is left tells one server from another: a segment leaves four digits of its sha256. An address that
    cannot be read is shown as stars.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        path = "/".join(_hashed(part) if _is_token(part) else part for part in parts.path.split("/"))
        pairs = [(name, value if name.lower() in _SHOWN_QUERIES else _STARS) for name, value in _query(parts)]
    except ValueError:
        return _STARS
    query = "&".join(f"{name}={value}" if value else name for name, value in pairs)
    return urllib.parse.urlunsplit((parts.scheme, host, path, query, ""))


def hidden_parts(address: str) -> tuple[str, ...]:
    """What `shown_address` leaves out, as it stands and as it is meant."""
    try:
        parts = urllib.parse.urlsplit(address)
        hidden = [parts.username, parts.password, parts.fragment]
        hidden += [part for part in parts.path.split("/") if _is_token(part)]
        hidden += [value for name, value in _query(parts) if name.lower() not in _SHOWN_QUERIES]
    except ValueError:
        return ()
    return tuple(
        dict.fromkeys(form for part in hidden if part for form in (part, urllib.parse.unquote(part)))
    )


def _query(parts: urllib.parse.SplitResult) -> Iterator[tuple[str, str]]:
    for pair in filter(None, parts.query.split("&")):
        name, equals, value = pair.partition("=")
        # A query without a name is a value: it may be the token itself.
        yield (name, value) if equals else (_STARS, name)


def _hashed(segment: str) -> str:
    return _STARS + hashlib.sha256(segment.encode("utf-8", "surrogatepass")).hexdigest()[:4]


def _is_token(segment: str) -> bool:
    """Whether a segment of a path looks like a token: long, letters mixed with digits or in both cases."""
    letters = any(char.isalpha() for char in segment)
    mixed = any(char.isdigit() for char in segment) or (
        segment != segment.lower() and segment != segment.upper()
    )
    return len(segment) >= _LIKE_A_TOKEN and letters and mixed
