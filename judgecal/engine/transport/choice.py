"""Which way a model takes: chosen by its provider, unless its alias says another."""

from __future__ import annotations

from judgecal.engine.transport.anthropic_wire import AnthropicWire
from judgecal.engine.transport.base import Transport
from judgecal.engine.transport.dspy_client import DspyTransport
from judgecal.engine.transport.embedded import EmbeddedTransport
from judgecal.engine.transport.gemini_wire import GeminiWire
from judgecal.engine.transport.openai_wire import BASES, OpenAIWire
from judgecal.engine.transport.wire import Wire
from judgecal.errors import InputError
from judgecal.models import ModelSpec

__all__ = ["open_transport", "way_of"]


def open_transport(spec: ModelSpec) -> Transport:
    """The transport of a model.

    Raises:
        InputError: the model's key is not set, or its address is not known.
    """
    way = way_of(spec)
    if way == "embedded":
        return EmbeddedTransport()
    if way == "http":
        from judgecal.engine.transport.http import HttpTransport  # aiohttp takes a quarter of a second

        return HttpTransport(spec, _wire(spec))
    return DspyTransport(spec)


def way_of(spec: ModelSpec) -> str:
    """`embedded`, `http`, `dspy` or `litellm`; the last two are DSPy's client, which then chooses or is told."""
    if spec.embedded:
        return "embedded"
    if spec.transport != "auto":
        return spec.transport
    return "http" if spec.provider in BASES or spec.provider in ("gemini", "anthropic") else "dspy"


def _wire(spec: ModelSpec) -> Wire:
    key = spec.key()
    if spec.provider == "gemini":
        return GeminiWire(spec, key)
    if spec.provider == "anthropic":
        return AnthropicWire(spec, key)
    base = spec.api_base or BASES.get(spec.provider)
    if base is None:
        raise InputError(
            f'model {spec.alias}: transport = "http" speaks OpenAI\'s format to {spec.provider}: set api_base'
        )
    return OpenAIWire(spec, key, base)
