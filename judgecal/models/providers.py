"""What is known of providers before any call: where their keys and endpoints are set, and what an address may be."""

from __future__ import annotations

import os
import re
import urllib.parse

from judgecal.errors import InputError

__all__ = ["address_problem", "base_in_environment", "key_variable", "thinks_first"]

_KEYS = {
    "openai": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "xai": "XAI_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "azure": "AZURE_API_KEY",
    "cerebras": "CEREBRAS_API_KEY",
    "deepinfra": "DEEPINFRA_API_KEY",
    "nvidia_nim": "NVIDIA_NIM_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "sambanova": "SAMBANOVA_API_KEY",
}
# Formats that only these providers' own servers and gateways to them speak: the key goes to another endpoint too.
_KEY_FOLLOWS = ("gemini", "anthropic")
# Where the endpoint of a provider may be set in the environment, as litellm and DSPy read it.
_BASE_VARIABLES = ("_API_BASE", "_BASE_URL")
_NO_PASSWORD = "must hold no user and password: name the variable of a key with key_env"
_THINKS_FIRST = re.compile(r"openai/(o\d+|gpt-([5-9]|\d{2,})(\.\d+)?(?!.*-chat))(?![a-z0-9])")


def key_variable(provider: str, api_base: str | None) -> str | None:
    """The variable that holds a provider's key; None where none is needed.

    Another endpoint is sent no key of the machine, unless only a gateway to the provider can be meant, and then
    the key where there is one.
    """
    variable = _KEYS.get(provider)
    if api_base is None or variable is None:
        return variable
    follows = provider in _KEY_FOLLOWS and (os.environ.get(variable) or "").strip()
    return variable if follows else None


def base_in_environment(provider: str) -> str | None:
    """A gateway named by the environment: a provider's public endpoint must not be sent what is meant for it.

    Raises:
        InputError: the address holds a password, which would be shown wherever the endpoint is.
    """
    prefix = "OLLAMA" if provider == "ollama_chat" else provider.upper()
    for variable in (prefix + end for end in _BASE_VARIABLES):
        base = (os.environ.get(variable) or "").strip()
        if "@" in base:
            raise InputError(f"the variable {variable} {_NO_PASSWORD}")
        if base:
            return base
    return None


def thinks_first(model_id: str) -> bool:
    """Whether a litellm id is one of OpenAI's models that think before they reply.

    They take no temperature, and name the longest reply in another way.
    """
    return bool(_THINKS_FIRST.match(model_id))


def address_problem(address: str) -> str | None:
    """What is wrong with an endpoint's address, None where it will do; a password in it is not quoted."""
    try:
        parts = urllib.parse.urlsplit(address)
        named, secret = parts.scheme in ("http", "https") and parts.hostname, parts.username or parts.password
    except ValueError:
        named, secret = None, None
    if secret or "@" in address:
        return _NO_PASSWORD
    return None if named else f"must be an http or https address, found {address!r}"
