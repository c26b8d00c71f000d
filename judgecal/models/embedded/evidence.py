"""What one text holds of another: shares of its words, numbers and names, sentence by sentence.

Words count by their stems, numbers by value, a name or a number twice a common word; what the question says
already counts neither for nor against. Neighbourhood counts: words that stand in one sentence of the source,
or side by side there, say more than the same words strewn over it. A paraphrase shares few words, so it
counts as unsupported: this is a floor.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from judgecal.models.embedded.text import END, content_tokens, content_words, refuses, word_list

NAMES: tuple[str, ...] = tuple(
    word_list("grounded support least covered numbers names asked asked_source refuses length news")
)
"""What `Weighed` measures, each 0..1.

How far the source holds the text: the mean of the shares of its words, of its words at most in one sentence
of the source, and of its pairs of neighbouring words; the mean of the first two, and that of the least
supported sentence; the share of the source that the text covers; of the text's numbers and names, the share
that the source has; the share of the question's words in the text, and in the source; whether the text
refuses; its length; the share of it that the question did not say.
"""
_LONG = 60_000
_MAX_TEXT = 6000
_HEAD = 5  # letters by which two long words can stand for each other: "regulator", "regulation"
_NEAR = 0.8
_LEAST_WORDS = 2  # of a sentence that can be called unsupported
_LONG_TEXT = 400.0  # words at which a text has its full length


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that others are held against, taken apart.

    `places`: each token, and the sentences that hold it; `lines`: the same tokens, a line each; `pairs`: the
    tokens that stand side by side.
    """

    places: Mapping[str, Sequence[int]]
    lines: str
    pairs: frozenset[tuple[str, str]]

    def near(self, token: str) -> tuple[float, Sequence[int]]:
        """How near the source comes to a token, 0..1, and in which sentences."""
        if token in self.places:
            return 1.0, self.places[token]
        places: set[int] = set()
        if len(token) > _HEAD and token[0] != "#":
            head = f"\n{token[:_HEAD]}"
            start = self.lines.find(head)
            while start >= 0:
                end = self.lines.index("\n", start + 1)
                if end - start > len(head):
                    places.update(self.places[self.lines[start + 1 : end]])
                start = self.lines.find(head, end)
        return _NEAR * bool(places), tuple(places)


def read_source(text: str) -> SourceText:
    """Take a text apart, once for one that keeps coming back; its first 60,000 characters."""
    return _cached(text[:_LONG])


@lru_cache(maxsize=512)
def _cached(text: str) -> SourceText:
    tokens, _ = content_tokens(text)
    ends: list[int] = []
    places: dict[str, list[int]] = {END: ends}
    place = 0
    for token in tokens:
        where = places.get(token)
        if where is None:
            places[token] = [place]
        elif where is ends:
            place += 1
        elif where[-1] != place:
            where.append(place)
    del places[END]
    return SourceText(places, "\n".join(["", *places, ""]), frozenset(pairwise(tokens)))


def weight(token: str, word: str) -> float:
    """A number or a name says more than a common word, a long word more than a short one."""
    if token[0] == "#" or word[0].isupper():
        return 2.0
    return 0.6 if len(token) < 4 else 1.0


@dataclass(frozen=True, slots=True)
class WordCoverage:
    """How much of some words a source holds, 0..1: anywhere, and at most within one sentence."""

    anywhere: float
    together: float
    missing: tuple[str, ...]  # as written

    @property
    def share(self) -> float:
        """The mean of both."""
        return (self.anywhere + self.together) / 2.0


def held(words: Mapping[str, str], source: SourceText) -> WordCoverage:
    """Look for words (token -> as written) in a source; of no words everything is held."""
    sentences: defaultdict[int, float] = defaultdict(float)
    total, found, missing, places = 0.0, 0.0, [], source.places
    for token, word in words.items():
        worth = weight(token, word)
        total += worth
        where = places.get(token)
        if where is None:
            near, where = source.near(token)
            if not near:
                missing.append(word)
                continue
            worth *= near
        found += worth
        for place in where:
            sentences[place] += worth
    if not total:
        return WordCoverage(1.0, 1.0, ())
    return WordCoverage(found / total, max(sentences.values(), default=0.0) / total, tuple(missing))


class Weighed:
    """A text held against its source, given the question; any strings are accepted.

    Attributes:
        words: its content tokens, each with the word as first written.
        grounded, support: as in `NAMES`.
        missing: the words that the source lacks, as written.
    """

    def __init__(self, question: str, text: str, source: str) -> None:
        self._asked, self._source, self._text = content_words(question), read_source(source), text
        self.words: dict[str, str] = {}
        part: dict[str, str] = {}
        parts, asked, all_words = [part], self._asked, self.words
        tokens, written = content_tokens(text[:_MAX_TEXT])
        for token, word in zip(tokens, written, strict=True):
            if token == END:
                part = {}
                parts.append(part)
            else:
                all_words.setdefault(token, word)
                if token not in asked:
                    part.setdefault(token, word)
        pairs = {pair for pair in pairwise(tokens) if END not in pair}
        self._backed = [(held(part, self._source), len(part)) for part in parts if part]
        size = sum(n for _, n in self._backed)
        words = sum(one.anywhere * n for one, n in self._backed) / size if size else 1.0
        together = sum(one.together * n for one, n in self._backed) / size if size else 1.0
        beside = len(pairs & self._source.pairs) / len(pairs) if pairs else together
        self.grounded = (words + together + beside) / 3.0
        self.support = (words + together) / 2.0
        self.missing = tuple(dict.fromkeys(word for one, _ in self._backed for word in one.missing))

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The measures in the order of `NAMES`."""
        asked, whole, places = self._asked, self.words, self._source.places
        new = {token: word for token, word in whole.items() if token not in asked}
        values = {
            "grounded": self.grounded,
            "support": self.support,
            "least": min((one.share for one, n in self._backed if n >= _LEAST_WORDS), default=self.support),
            "covered": len(whole.keys() & places.keys()) / (len(places) or 1),
            "numbers": self._found([token for token in new if token[0] == "#"]),
            "names": self._found([token for token, word in new.items() if word[0].isupper()]),
            "asked": echoed(asked, whole),
            "asked_source": held(asked, self._source).share if asked else 0.0,
            "refuses": float(refuses(self._text)),
            "length": min(1.0, math.log1p(len(whole)) / math.log1p(_LONG_TEXT)),
            "news": len(new) / (len(whole) or 1),
        }
        return tuple(values[name] for name in NAMES)

    def _found(self, tokens: Sequence[str]) -> float:
        return sum(self._source.near(token)[0] for token in tokens) / len(tokens) if tokens else self.support


def echoed(asked: Mapping[str, str], words: Container[str]) -> float:
    """The weighted share of a question's words that is said again, 0..1."""
    weights = {token: weight(token, word) for token, word in asked.items()}
    return sum(weights[token] for token in asked if token in words) / (sum(weights.values()) or 1.0)
