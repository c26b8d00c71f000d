"""Words that several reports share."""

from __future__ import annotations


def sentence(text: str) -> str:
    """A note as a sentence of its own; the name of a metric or a judge keeps its first letter."""
    named = not text.split(maxsplit=1)[0].rstrip(",:").isalpha()
    return f"{text}." if named else f"{text[0].upper()}{text[1:]}."
