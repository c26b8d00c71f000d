"""Texts as the metrics among the local judges see them: words, key words, runs of words, sentences.

A word is a run of letters, digits and the marks on them, in Unicode's compatibility form and without case;
anything else parts two words. A Han character or a kana is a word by itself. Other scripts that are written
without spaces (Thai, Lao, Khmer, Burmese) are not taken apart: what stands between two spaces is one word
there, so that metrics find too little in common. Key words are those that are not among the most frequent
English ones, a negation being one of those; of another language every word is a key word, so that its small
words count as found in nearly any text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from judgecal.errors import InputError
from judgecal.goldset.wording import sentences
from judgecal.models.embedded.text import NEGATIONS, POLAR, STOPWORDS

EDITION = 3
"""Of what is taken from other modules, whose texts the fingerprints of the metrics do not cover."""
NO_REFERENCE = "no reference answer holds a word"
NO_CLAIM = "no sentence of the answer has a key word to look for"

NO_KEY_WORDS = STOPWORDS | NEGATIONS | POLAR | {"yes"}
_REMEMBERED = 20_000  # characters; more than any language writes with
_CACHED = 50_000  # characters of a text that is kept with its words
_SHOWN = 120  # characters of a text that a reason quotes
_LIST_POINT = re.compile(r"\n(?=[^\S\n]*(?:[-*•–]|\d{1,3}[.)])\s)")
_BY_ITSELF = re.compile(
    r"[\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class Characters(dict[int, str | None]):
    """What each character becomes, for `str.translate`; found when the character first comes up."""

    def __init__(self, becomes: Callable[[str], str | None]) -> None:
        super().__init__()
        self._becomes = becomes

    def __missing__(self, code: int) -> str | None:
        replacement = self._becomes(chr(code))
        if len(self) < _REMEMBERED:
            self[code] = replacement
        return replacement


def by_itself(char: str) -> bool:
    """Whether a character is a word by itself: Han and kana, which are written without spaces."""
    return _BY_ITSELF.match(char) is not None


def folded(text: str) -> str:
    """The text without case, in Unicode's compatibility form (NFKC)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _of_a_word(char: str) -> str:
    if by_itself(char):
        return f" {char} "
    return char if unicodedata.category(char)[0] in "LMN" else " "


_WORD_CHARACTERS = Characters(_of_a_word)


def words(text: str) -> list[str]:
    """The words of a text in their order; "don't" is two and "3.5" too, as ROUGE counts."""
    return folded(text).translate(_WORD_CHARACTERS).split()


def key_words(text: str) -> frozenset[str]:
    """The words that are not among the most frequent English ones, without order.

    Those of a text that may come again soon, such as a context, are kept.
    """
    return _key_words(text) if len(text) <= _CACHED else _key_words.__wrapped__(text)


@lru_cache(maxsize=256)
def _key_words(text: str) -> frozenset[str]:
    return frozenset(words(text)) - NO_KEY_WORDS


def runs(text: str, length: int) -> frozenset[tuple[str, ...]]:
    """The runs of so many neighbouring words of a text; kept as `key_words` keeps words."""
    return _runs(text, length) if len(text) <= _CACHED else _runs.__wrapped__(text, length)


@lru_cache(maxsize=256)
def _runs(text: str, length: int) -> frozenset[tuple[str, ...]]:
    sequence = words(text)
    return frozenset(zip(*(sequence[start:] for start in range(length)), strict=False))


class Sentence(NamedTuple):
    """A sentence of an answer, how far the contexts hold it (0..1), and its key words."""

    text: str
    held: float
    n_words: int


@lru_cache(maxsize=256)
def _places(text: str) -> dict[str, list[int]]:
    """Each key word of a text with the sentences that hold it."""
    places: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences(text)):
        for word in _key_words.__wrapped__(sentence):
            places.setdefault(word, []).append(place)
    return places


def supported(answer: str, contexts: Sequence[str], *, beside: bool = False) -> list[Sentence]:
    """Each sentence of an answer with how far the contexts hold it.

    The share of its key words that stand in some context; `beside`: the mean of this, of the share of its
    neighbouring words that stand side by side in some context, and of its key words that one sentence of a
    context holds at most. A point of a list is a sentence; one without a key word says nothing that could be
    looked up and is left out.
    """
    sets = [key_words(context) for context in contexts]
    shares = []
    for point in _LIST_POINT.split(answer):
        for sentence in sentences(point):
            asked = _key_words.__wrapped__(sentence)
            if not asked:
                continue
            share = len(frozenset[str]().union(*(asked & held for held in sets))) / len(asked)
            if beside:
                pairs = _runs.__wrapped__(sentence, 2)
                shared_pairs = frozenset[tuple[str, ...]]().union(
                    *(pairs & runs(context, 2) for context in contexts)
                )
                best = max((_most_together(asked, context) for context in contexts), default=0) / len(asked)
                share = (share + best + (len(shared_pairs) / len(pairs) if pairs else best)) / 3.0
            shares.append(Sentence(sentence, share, len(asked)))
    return shares


def _most_together(key_words: frozenset[str], context: str) -> int:
    """The most of some words that one sentence of a context holds."""
    places = (_places if len(context) <= _CACHED else _places.__wrapped__)(context)
    counts: dict[int, int] = {}
    for word in key_words:
        for place in places.get(word, ()):
            counts[place] = counts.get(place, 0) + 1
    return max(counts.values(), default=0)


def mean_held(sentences: Sequence[Sentence]) -> float:
    """How far sentences are held, 0..1, each counting by its key words."""
    return sum(sentence.held * sentence.n_words for sentence in sentences) / sum(
        sentence.n_words for sentence in sentences
    )


def check_k(settings: Mapping[str, str]) -> None:
    """Refuse a `k` that is neither a number of contexts nor `all`."""
    k = settings.get("k", "all")
    if k != "all" and not (k.isascii() and k.isdigit() and int(k)):
        raise InputError(f"k must be a whole number from 1, or all, found {k!r:.40}")


def first(contexts: Sequence[str], k: str) -> tuple[Sequence[str], int]:
    """The first `k` contexts, and over how many they count: over `k`, were fewer returned, or over all."""
    return (contexts, len(contexts)) if k == "all" else (contexts[: int(k)], int(k))


def share_told(good: int, whole: int, what: str, others: Sequence[str]) -> str:
    """`3 of 5 sentences; not: ...`: how many of the whole count, and the first that does not."""
    first = f"; not: {others[0][:_SHOWN]}{'...' * (len(others[0]) > _SHOWN)}" if others else ""
    return f"{good} of {whole} {what}{first}"
