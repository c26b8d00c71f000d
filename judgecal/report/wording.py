"""Words that several reports share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LABELLED_BY = {"people": " by people", "project": " by the project itself, not by people"}


def labelled_by(gold: Mapping[str, Any]) -> str:
    """Who gave the labels, to stand behind the word; empty where the card does not say."""
    return _LABELLED_BY.get(gold["labels_by"], "")


def sentence(text: str) -> str:
    """A note as a sentence of its own; the name of a metric or a judge keeps its first letter."""
    named = not text.split(maxsplit=1)[0].rstrip(",:").isalpha()
    return f"{text}." if named else f"{text[0].upper()}{text[1:]}."


def unscored_counts_as(gold: Mapping[str, Any]) -> str:
    """What an unscored item counts as, on the scale of the labels."""
    return "a wrong verdict" if gold["scale"] == "nominal" else "the verdict farthest from its label"
