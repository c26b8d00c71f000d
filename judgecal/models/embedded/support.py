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
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from judgecal.models.embedded.text import (
    END,
    MAX_CHARS,
    MAX_SOURCE,
    NO_CONTENT,
    analyse,
    read_tokens,
    refuses,
    weight,
)

_HEAD, _NEAR = 5, 0.8  # letters by which a long word may stand for another: "regulator", "regulation"
_LEAST_WORDS = 2  # of a sentence that can be called unsupported
_LONG_TEXT = 400.0  # words at which a text has its full length

Words = Mapping[str, str]
"""Content tokens in order, each with the word as first written."""
Content = Sequence[tuple[str, str]]
Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Source:
    """A text that others are held against.

    Each token with the sentences that hold it, the tokens a line each, and those that stand side by side.
    """

    places: Mapping[str, Sequence[int]]
    lines: str
    pairs: Pairs

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


def _read(text: str) -> tuple[Content, Pairs]:
    """The content tokens with their words, `END` between sentences, and those side by side in a sentence."""
    content = [pair for pair in zip(*read_tokens(text), strict=True) if pair[0] not in NO_CONTENT]
    tokens = [token for token, _ in content]
    return content, frozenset([pair for pair in pairwise(tokens) if END not in pair])


@lru_cache(maxsize=256)
def _read_source(text: str) -> Source:
    content, pairs = _read(text)
    places: dict[str, list[int]] = {}
    place = 0
    for token, _ in content:
        if token is END:
            place += 1
        elif token not in places:
            places[token] = [place]
        elif places[token][-1] != place:
            places[token].append(place)
    return Source(places=places, lines="\n".join(["", *places, ""]), pairs=pairs)


def read_source(text: str) -> Source:
    """Take a source apart, once for one that keeps coming back; its first 60,000 characters."""
    return _read_source(text[:MAX_SOURCE])


class Coverage(NamedTuple):
    """How much of some words a source holds, 0..1: anywhere, and at most within one sentence."""

    anywhere: float
    together: float
    missing: tuple[str, ...]  # as written

    @property
    def share(self) -> float:
        """The mean of the share held anywhere and the share held in one sentence."""
        return (self.anywhere + self.together) / 2.0


def held(words: Words, source: Source) -> Coverage:
    """How much of some words a source holds (`Coverage`); of no words everything is held."""
    sentences: defaultdict[int, float] = defaultdict(float)
    total, there, missing = 0.0, 0.0, []
    for token, word in words.items():
        worth = weight(token, word[0].isupper())
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


def content_words(text: str) -> Words:
    """The first 500 content tokens of a text.

    >>> content_words("The ferry to Holm runs twice.")
    {'ferr': 'ferry', 'holm': 'Holm', 'run': 'runs', 'twic': 'twice'}
    """
    taken, words = analyse(text), dict[str, str]()
    for token, word in zip(taken.tokens, taken.words, strict=True):
        if token not in NO_CONTENT:
            words.setdefault(token, word)
    return words


class Support:
    """How far a source holds a text, given the question; any strings are accepted."""

    def __init__(self, question: str, text: str, source: str) -> None:
        """Read all three; what is measured waits until it is asked for."""
        self.text, self.asked, self.source = text, content_words(question), read_source(source)
        content, self.pairs = _read(text[:MAX_CHARS])
        self.sentences, self.words = [dict[str, str]()], dict[str, str]()
        for token, word in content:
            if token is END:
                self.sentences.append({})
            else:
                self.sentences[-1].setdefault(token, word)
                self.words.setdefault(token, word)

    @cached_property
    def backed(self) -> Sequence[tuple[Coverage, Words]]:
        """Each sentence's words that the question lacks, and how far the source holds them."""
        asked = self.asked
        parts = [{token: word for token, word in s.items() if token not in asked} for s in self.sentences]
        return [(held(part, self.source), part) for part in parts if part]

    @cached_property
    def grounds(self) -> tuple[float, float, float]:
        """The shares of the words, of the words in one sentence of the source, and of pairs side by side."""
        size = sum(len(part) for _, part in self.backed)
        words = sum(match.anywhere * len(part) for match, part in self.backed) / size if size else 1.0
        together = sum(match.together * len(part) for match, part in self.backed) / size if size else 1.0
        pairs = self.pairs
        return words, together, len(pairs & self.source.pairs) / len(pairs) if pairs else together

    @property
    def missing(self) -> Sequence[str]:
        """The words, as written, that the source lacks."""
        return list(dict.fromkeys(word for match, _ in self.backed for word in match.missing))

    @property
    def taken_up(self) -> float:
        """The share of the question's words in the text."""
        worth = {token: weight(token, word[0].isupper()) for token, word in self.asked.items()}
        return sum(worth[token] for token in worth if token in self.words) / (sum(worth.values()) or 1.0)

    @property
    def asked_source(self) -> float:
        """The share of the question's words in the source."""
        return held(self.asked, self.source).share if self.asked else 0.0

    def measures(self) -> Sequence[float]:
        """What demos can teach about, each 0..1."""
        middle, places = (self.grounds[0] + self.grounds[1]) / 2.0, self.source.places
        facts = {token: word for _, part in self.backed for token, word in part.items()}

        def backed_share(tokens: Sequence[str]) -> float:
            return sum(self.source.near(token)[0] for token in tokens) / len(tokens) if tokens else middle

        least = [match.share for match, part in self.backed if len(part) >= _LEAST_WORDS]
        return (
            *self.grounds,
            min(least, default=middle),
            backed_share([token for token in facts if token[0] == "#"]),
            backed_share([token for token, word in facts.items() if word[0].isupper()]),
            len(self.words.keys() & places.keys()) / (len(places) or 1),
            self.taken_up,
            self.asked_source,
            float(refuses(self.text)),
            min(1.0, math.log1p(len(self.words)) / math.log1p(_LONG_TEXT)),
            len(facts) / (len(self.words) or 1),  # what the question did not say
        )
