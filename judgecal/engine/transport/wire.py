"""What a wire format promises, and how the formats read a reply whose shape nobody vouches for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from judgecal.engine.calls import Message, Reply

__all__ = ["Wire", "at", "count", "joined_text", "system_text", "with_version"]

_VERSION = re.compile(r"/v\d+[a-z0-9]*$")


class Wire(Protocol):
    """How one kind of server is spoken to.

    Attributes:
        url: where every call of the model goes; it never holds a key.
        headers: sent with every call, the key among them.
    """

    url: str
    headers: Mapping[str, str]

    def payload(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The body of a call, to be written as JSON."""
        ...

    def reply(self, data: Mapping[str, Any]) -> Reply:
        """The reply in the body of an answer; where it holds no text, the text is empty."""
        ...


def at(value: Any, *path: str | int) -> Any:
    """The value at a path of keys and positions, None where the path leads nowhere."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def count(value: Any) -> int | None:
    """A number of tokens, None where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def joined_text(parts: Any) -> str:
    """The text of a list of parts, less those that are a model's thoughts."""
    if not isinstance(parts, list):
        return ""
    texts = (
        part.get("text")
        for part in parts
        if isinstance(part, dict) and part.get("type", "text") == "text" and not part.get("thought")
    )
    return "".join(text for text in texts if isinstance(text, str))


def system_text(messages: Sequence[Message]) -> str:
    """What the system messages say, for formats that take it apart from the turns."""
    return "\n\n".join(message["content"] for message in messages if message["role"] == "system")


def with_version(base: str, version: str) -> str:
    """An address that ends in a version: its own, or the given one where it names none."""
    base = base.rstrip("/")
    return base if _VERSION.search(base) else f"{base}/{version}"
