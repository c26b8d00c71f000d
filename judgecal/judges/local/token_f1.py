"""`token_f1@local`: F1 of the words that answer and reference share, in percent, as SQuAD counts; the best
reference.

Words as in SQuAD's evaluation: without case, punctuation (of all scripts, deleted) and English articles;
beyond it, texts are taken in Unicode's compatibility form, and a Han character or a kana is a word by itself.
Order is not seen, and neither is a negation. Needs a reference answer.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Sequence

from judgecal.judges.local._words import Characters, by_itself, folded

SCALE = "percentage"
SOURCE = "Rajpurkar et al. 2016 (SQuAD)"
_ARTICLES = frozenset({"a", "an", "the"})


def token_f1(answer: str, reference_answers: Sequence[str]) -> float:
    """100 x F1 with the reference that gives most; 0 for an empty answer to a reference that is not."""
    answered = _tokens(answer)
    return 100.0 * max(_f1(answered, _tokens(reference)) for reference in reference_answers)


def _becomes(char: str) -> str | None:
    if by_itself(char):
        return f" {char} "
    return None if char in string.punctuation or unicodedata.category(char)[0] == "P" else char


_CHARACTERS = Characters(_becomes)


def _tokens(text: str) -> list[str]:
    return [word for word in folded(text).translate(_CHARACTERS).split() if word not in _ARTICLES]


def _f1(answered: Sequence[str], reference: Sequence[str]) -> float:
    if not answered or not reference:
        return float(not answered and not reference)
    left: dict[str, int] = {}
    for word in reference:
        left[word] = left.get(word, 0) + 1
    shared = 0
    for word in answered:
        if left.get(word):
            left[word] -= 1
            shared += 1
    return 2.0 * shared / (len(answered) + len(reference))
