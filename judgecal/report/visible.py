"""Text of other people's, shown and never acted on: the one place that makes unseen characters visible."""

from __future__ import annotations

import re

# What moves a cursor, changes colours or turns the direction of what follows.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Text without anything that acts: control characters, turns of direction and lone surrogates as their codes."""
    return UNSEEN.sub(_code, text)


def _code(found: re.Match[str]) -> str:
    point = ord(found[0])
    if point < 0x20:
        return chr(0x2400 + point)  # Unicode's own pictures of control characters
    return "\u2421" if point == 0x7F else f"[U+{point:04X}]"
