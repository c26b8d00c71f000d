"""Which transport a model takes."""

from __future__ import annotations

from judgecal.engine.transport.base import Transport
from judgecal.engine.transport.dspy_client import DspyTransport
from judgecal.engine.transport.embedded import EmbeddedTransport
from judgecal.models import ModelSpec

__all__ = ["open_transport"]


def open_transport(spec: ModelSpec) -> Transport:
    """The transport of a model.

    Raises:
        InputError: the model's key is not set.
    """
    return EmbeddedTransport() if spec.embedded else DspyTransport(spec)
