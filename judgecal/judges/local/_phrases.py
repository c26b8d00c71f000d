"""Phrases in an answer, for the rules over `expect`: both sides are normalised, then one is looked for in the
other.

Normalised as RAG-IFEval does it: lower case, letters and digits alone, and where a language is named each
word in its dictionary form (by simplemma, the extra `lemmas`), so that an inflected form is found too.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Literal

from judgecal.errors import unknown_name

Match = Literal["substring", "phrase"]
"""`substring`: the letters of the phrase stand anywhere, so that "HEMS" holds "EMS", as the benchmark has it;
`phrase`: its words stand there as whole words."""

_WORD = re.compile(r"[^\W_]+")
_ASCII = "".join(char if char.isalnum() else " " for char in map(chr, range(128)))
_NO_ENTRY = "each entry of the rule must be a phrase or a list of alternative phrases"
_MOST_WORDS = 1 << 17  # whose dictionary forms are held
_NAMED = 3  # phrases that a reason names


def check_language(settings: Mapping[str, str]) -> None:
    """Refuse a setting `lemmas` that is no language of simplemma's."""
    if language := settings.get("lemmas"):
        _lemmas(language)


def words_of(text: str, lemmas: str = "") -> list[str]:
    """The words of a text: lower case, composed letters, dictionary forms where a language is named."""
    if text.isascii():  # ten times as fast, and what most texts are
        words = text.lower().translate(_ASCII).split()
    else:
        words = _WORD.findall(unicodedata.normalize("NFC", text).lower())
    return list(map(_lemmas(lemmas).__getitem__, words)) if lemmas else words


def phrases_in(answer: str, rule: object, match: Match, lemmas: str) -> tuple[list[str], list[str]] | str:
    """The entries of a rule that an answer holds, and those that it does not; or what is wrong with the rule.

    A rule is a list of entries; an entry is a phrase, or a list of alternatives of which one is enough.
    """
    entries = [rule] if isinstance(rule, str) else rule
    if not isinstance(entries, list | tuple) or not entries:
        return "the rule must be a list of phrases"
    mark = " " if match == "phrase" else ""
    text = f"{mark}{' '.join(words_of(answer, lemmas))}{mark}"
    present: list[str] = []
    absent: list[str] = []
    for entry in entries:
        alternatives = (entry,) if isinstance(entry, str) else entry
        if not isinstance(alternatives, list | tuple) or not alternatives:
            return _NO_ENTRY
        held = False
        for phrase in alternatives:
            if not isinstance(phrase, str):
                return _NO_ENTRY
            words = _normalised(phrase, lemmas, mark)
            if not words:
                return f"the phrase {phrase!r} has no word"
            held = held or words in text
        (present if held else absent).append(entry if isinstance(entry, str) else " or ".join(entry))
    return present, absent


def named(phrases: list[str]) -> str:
    """The first few phrases, for a reason."""
    return "; ".join(phrases[:_NAMED]) + f" and {len(phrases) - _NAMED} more" * (len(phrases) > _NAMED)


@functools.lru_cache(maxsize=1 << 14)
def _normalised(phrase: str, lemmas: str, mark: str) -> str:
    """The words of a phrase between two marks; empty where it has none."""
    words = words_of(phrase, lemmas)
    return f"{mark}{' '.join(words)}{mark}" if words else ""


class _Lemmas(dict[str, str]):
    """Dictionary forms, looked up once a word."""

    def __init__(self, look_up: Callable[[str], str]) -> None:
        self._look_up = look_up

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_WORDS:
            self.clear()
        # Once more: "orzeczenia" gives the noun "orzeczenie", and that the verb "orzec".
        self[word] = lemma = self._look_up(self._look_up(word).lower()).lower()
        return lemma


@functools.cache
def _lemmas(language: str) -> _Lemmas:
    import simplemma
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    if language not in SUPPORTED_LANGUAGES:
        raise unknown_name("language of lemmas", language, sorted(SUPPORTED_LANGUAGES))
    # Its smaller dictionaries take 70 MB in place of 420, and are slower by what `_Lemmas` looks up once
    # alone.
    return _Lemmas(functools.partial(simplemma.lemmatize, lang=language, low_memory=True))
