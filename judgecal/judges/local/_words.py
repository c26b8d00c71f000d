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
from collections.abc import Callable, Sequence
from functools import lru_cache

from judgecal.models.embedded.text import NEGATIONS, POLAR, STOPWORDS

EDITION = 4
"""Of what is taken from other modules, whose texts the fingerprints of the metrics do not cover."""
NO_REFERENCE = "no reference answer holds a word"

NO_KEY_WORDS = STOPWORDS | NEGATIONS | POLAR | {"yes"}
_REMEMBERED = 20_000  # characters; more than any language writes with
CACHED = 50_000  # characters of a text that is kept with its words
_SHOWN = 120  # characters of a text that a reason quotes
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
    """Return a text without case, as a text in Unicode's compatibility form (NFKC)."""
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
    """Return the frozenset of a text's words that are not among the most frequent English ones.

    Those of a text that may come again soon, such as a context, are kept.
    """
    return _key_words(text) if len(text) <= CACHED else key_words_anew(text)


def key_words_anew(text: str) -> frozenset[str]:
    """The same of a text that will not come again."""
    return frozenset(words(text)) - NO_KEY_WORDS


_key_words = lru_cache(maxsize=256)(key_words_anew)


def runs(text: str, length: int) -> frozenset[tuple[str, ...]]:
    """The runs of so many neighbouring words of a text; kept as `key_words` keeps words."""
    return _runs(text, length) if len(text) <= CACHED else runs_anew(text, length)


def runs_anew(text: str, length: int) -> frozenset[tuple[str, ...]]:
    """Return the frozenset of word runs of a `length` in a text, without a cache."""
    sequence = words(text)
    return frozenset(zip(*(sequence[start:] for start in range(length)), strict=False))


_runs = lru_cache(maxsize=256)(runs_anew)


def share_in_words(good: int, whole: int, what: str, others: Sequence[str]) -> str:
    """Return `3 of 5 sentences; not: ...`, a text, from good, whole (numbers), `what` they are and others."""
    first = f"; not: {others[0][:_SHOWN]}{'...' * (len(others[0]) > _SHOWN)}" if others else ""
    return f"{good} of {whole} {what}{first}"
