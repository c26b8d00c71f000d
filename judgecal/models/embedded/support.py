"""How far a source holds a text: shares of its words, numbers and names, sentence by sentence.

What the question says already counts neither for nor against. Words that stand in one sentence of the
source, or side by side there, say more than the same words strewn over it. A paraphrase shares few words, so
it counts as unsupported: this is a floor.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from judgecal.models.embedded.text import (
    END,
    MAX_CHARS,
    MAX_SOURCE,
    NO_CONTENT,
    analyse,
    read_tokens,
    refuses,
)

NAMES: tuple[str, ...] = (
    "words", "together", "beside", "least", "numbers", "names", "covered", "asked", "asked_source", "refuses",
    "length", "news",
)  # fmt: skip
"""The measures of a text, each 0..1.

The share of its words that the source has, of its words at most in one sentence of the source, and of its
pairs of neighbouring words; the least supported sentence; of its numbers and names the share that the source
has; the share of the source that the text covers; the share of the question's words in the text, and in the
source; whether the text refuses; its length; the share of it that the question did not say.
"""
_HEAD, _NEAR = 5, 0.8  # letters by which a long word may stand for another: "regulator", "regulation"
_LEAST_WORDS = 2  # of a sentence that can be called unsupported
_LONG_TEXT = 400.0  # words at which a text has its full length


@dataclass(frozen=True, slots=True)
class Source:
    """A text that others are held against.

    Each token with the sentences that hold it, the tokens a line each, and those that stand side by side.
    """

    places: Mapping[str, Sequence[int]]
    lines: str
    pairs: frozenset[tuple[str, str]]

    def near(self, token: str) -> tuple[float, Sequence[int]]:
        """How near the source comes to a token, 0..1, and in which sentences.

        A long word may stand for another with the same first letters ("regulator", "regulation").
        """
        if token in self.places:
            return 1.0, self.places[token]
        head, places = f"\n{token[:_HEAD]}", set[int]()
        start = self.lines.find(head) if len(token) > _HEAD and token[0] != "#" else -1
        while start >= 0:
            end = self.lines.index("\n", start + 1)
            if end - start > len(head):
                places.update(self.places[self.lines[start + 1 : end]])
            start = self.lines.find(head, end)
        return _NEAR * bool(places), tuple(places)


def content_sentences(text: str) -> tuple[list[dict[str, str]], frozenset[tuple[str, str]]]:
    """The content tokens of each sentence, with the word as first written, and those side by side."""
    tokens, words = read_tokens(text[:MAX_SOURCE])
    parts, pairs, last = [dict[str, str]()], set[tuple[str, str]](), ""
    for token, word in zip(tokens, words, strict=True):
        if token is END:
            parts.append({})
            last = ""
        elif token not in NO_CONTENT:
            parts[-1].setdefault(token, word)
            pairs.add((last, token))
            last = token
    return parts, frozenset([pair for pair in pairs if pair[0]])


@lru_cache(maxsize=256)
def _read_source(text: str) -> Source:
    parts, pairs = content_sentences(text)
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, part in enumerate(parts):
        for token in part:
            places[token].append(place)
    return Source(places=dict(places), lines="\n".join(["", *places, ""]), pairs=pairs)


def read_source(text: str) -> Source:
    """Take a source apart, once for one that keeps coming back; its first 60,000 characters."""
    return _read_source(text[:MAX_SOURCE])


def weight(token: str, word: str) -> float:
    """A number or a name says more than a common word, a long word more than a short one."""
    if token[0] == "#" or word[0].isupper():
        return 2.0
    return 0.6 if len(token) < 4 else 1.0


class Coverage(NamedTuple):
    """How much of some words a source holds, 0..1: anywhere, and at most within one sentence."""

    anywhere: float
    together: float
    missing: tuple[str, ...]  # as written

    @property
    def share(self) -> float:
        """The mean of both."""
        return (self.anywhere + self.together) / 2.0


def held(words: Mapping[str, str], source: Source) -> Coverage:
    """Look for words (token -> as written) in a source; of no words everything is held."""
    sentences: defaultdict[int, float] = defaultdict(float)
    total, there, missing = 0.0, 0.0, []
    for token, word in words.items():
        worth = weight(token, word)
        total += worth
        near, places = source.near(token)
        if not near:
            missing.append(word)
        there += worth * near
        for place in places:
            sentences[place] += worth * near
    if not total:
        return Coverage(1.0, 1.0, ())
    return Coverage(there / total, max(sentences.values(), default=0.0) / total, tuple(missing))


def content_words(text: str) -> Mapping[str, str]:
    """A text's content tokens in order, each with the word as first written; its first 500.

    >>> content_words("The ferry to Holm runs twice.")
    {'ferry': 'ferry', 'holm': 'Holm', 'run': 'runs', 'twic': 'twice'}
    """
    words: dict[str, str] = {}
    taken = analyse(text)
    for token, word in zip(taken.tokens, taken.words, strict=True):
        if token not in NO_CONTENT:
            words.setdefault(token, word)
    return words


class Support(NamedTuple):
    """The measures in the order of `NAMES`, the words of the text, and those that the source lacks."""

    values: tuple[float, ...]
    words: Mapping[str, str]
    missing: tuple[str, ...]


def support(question: str, text: str, source: str) -> Support:
    """Hold a text against its source, given the question; any strings are accepted."""
    asked, backing = content_words(question), read_source(source)
    parts, pairs = content_sentences(text[:MAX_CHARS])
    whole = {token: word for part in reversed(parts) for token, word in part.items()}
    new = [{token: word for token, word in part.items() if token not in asked} for part in parts]
    backed = [(held(part, backing), len(part)) for part in new if part]
    size = sum(n for _, n in backed)

    def mean(shares: Sequence[float]) -> float:
        weighed = sum(share * n for share, (_, n) in zip(shares, backed, strict=True))
        return weighed / size if size else 1.0

    words, together = (
        mean([match.anywhere for match, _ in backed]),
        mean([match.together for match, _ in backed]),
    )
    both = (words + together) / 2.0
    facts = {token: word for part in new for token, word in part.items()}

    def found(tokens: Sequence[str]) -> float:
        return sum(backing.near(token)[0] for token in tokens) / len(tokens) if tokens else both

    asked_there = sum(weight(token, word) for token, word in asked.items() if token in whole)
    values = (
        words,
        together,
        len(pairs & backing.pairs) / len(pairs) if pairs else together,
        min((match.share for match, n in backed if n >= _LEAST_WORDS), default=both),
        found([token for token in facts if token[0] == "#"]),
        found([token for token, word in facts.items() if word[0].isupper()]),
        len(whole.keys() & backing.places.keys()) / (len(backing.places) or 1),
        asked_there / (sum(weight(*pair) for pair in asked.items()) or 1.0),
        held(asked, backing).share if asked else 0.0,
        float(refuses(text)),
        min(1.0, math.log1p(len(whole)) / math.log1p(_LONG_TEXT)),
        len(facts) / (len(whole) or 1),
    )
    missing = dict.fromkeys(word for match, _ in backed for word in match.missing)
    return Support(values, whole, tuple(missing))
