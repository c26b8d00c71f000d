"""The embedded model: a judge and an answerer that need no key, no network and no downloaded weights.

It compares words, numbers and names, and is meant as a floor and as a first run without a key: any language
model worth paying for should beat it. Replies are a pure function of the messages and of `VERSION`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["VERSION", "reply", "weighed_reply"]

# The first part counts changes of the code that change replies, the second is the weights' own hash.
VERSION: str = f"8-{hashlib.sha256(Path(__file__).with_name('weights.json').read_bytes()).hexdigest()[:8]}"


def reply(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the assistant's text for chat messages (`role`, `content`), in the format they ask for."""
    return weighed_reply(messages)[0]


def weighed_reply(messages: Sequence[Mapping[str, str]]) -> tuple[str, dict[str, float]]:
    """Return the reply to chat messages, and verdict -> chance for what it chose from; none for a number."""
    # numpy loads with the first reply, so that reading `VERSION` costs nothing
    from judgecal.models.embedded.replies import make_reply

    return make_reply(messages)
