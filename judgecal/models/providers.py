"""What is known of providers before any call: the variable of a key, the format that is spoken, the
address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Provider(NamedTuple):
    """What is known of a provider before any call.

    Attributes:
        key_env: the variable that holds its key; None where none is needed.
        wire: the module of `engine/transport` that speaks its format; None leaves it to DSPy's client.
        base: its address.
        key_follows: only its own servers and gateways to them speak its format: the key goes to another
            endpoint too.
        batches: it takes many requests at once and answers within a day, for less; the wire's module says
            how.
    """

    key_env: str | None = None
    wire: str | None = None
    base: str | None = None
    key_follows: bool = False
    batches: bool = False


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("OPENAI_API_KEY", "openai", "https://api.openai.com/v1", batches=True),
    "gemini": Provider("GEMINI_API_KEY", "gemini", "https://generativelanguage.googleapis.com", True, True),
    "anthropic": Provider("ANTHROPIC_API_KEY", "anthropic", "https://api.anthropic.com", True, True),
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
    "cohere": Provider("COHERE_API_KEY"),
    "azure": Provider("AZURE_API_KEY"),
    "cerebras": Provider("CEREBRAS_API_KEY"),
    "deepinfra": Provider("DEEPINFRA_API_KEY"),
    "nvidia_nim": Provider("NVIDIA_NIM_API_KEY"),
    "perplexity": Provider("PERPLEXITYAI_API_KEY"),
    "sambanova": Provider("SAMBANOVA_API_KEY"),
    "voyage": Provider("VOYAGE_API_KEY"),
    "jina_ai": Provider("JINA_AI_API_KEY"),
}
"""A provider that speaks one of the formats here is one more line; a new format is also one more module."""
