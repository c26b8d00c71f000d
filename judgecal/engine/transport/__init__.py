"""How one call reaches a model. Nothing above this package knows which way a model takes.

A transport makes one attempt; retries belong to `engine.run`.
"""

from judgecal.engine.transport.base import Transport
from judgecal.engine.transport.choice import open_transport

__all__ = ["Transport", "open_transport"]
