"""`exact_match@local`: 1 where the answer is one of the reference answers, letter for letter once both are
folded.

Folding is Unicode NFKC and casefold; white space becomes single spaces, punctuation at both ends is left
away.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

SCALE = "binary"
SOURCE = "SQuAD, exact match"


def exact_match(answer: str, reference_answers: Sequence[str]) -> bool:
    """Whether the folded answer equals a folded reference answer."""
    return _folded(answer) in {_folded(reference) for reference in reference_answers}


def _folded(text: str) -> str:
    if text.isascii():
        words = " ".join(text.lower().split())
    else:
        once = unicodedata.normalize("NFKC", text).casefold()
        words = " ".join(unicodedata.normalize("NFKC", once).split())
    start, end = 0, len(words)
    while start < end and _outer(words[start]):
        start += 1
    while start < end and _outer(words[end - 1]):
        end -= 1
    return words[start:end] or words


def _outer(char: str) -> bool:
    """Whether a character is left away at the ends."""
    return char == " " or unicodedata.category(char).startswith("P")
