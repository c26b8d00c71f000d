"""What one text holds of another: shares of its words, numbers and names, sentence by sentence.

Words count by their stems, numbers by value, a name or a number twice a common word; what the question says
already counts neither for nor against. A paraphrase shares few words, so it counts as unsupported: this is a
floor.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judgecal.models.embedded.text import MAX_CHARS, content_words, refuses, sentences, word_list

NAMES: tuple[str, ...] = tuple(
    word_list("support least covered numbers names asked asked_source refuses length news")
)
"""What `weigh` measures, each 0..1.

The share of the text that its source supports, and of its least supported sentence; the share of the source
that the text covers; of the text's numbers and names, the share that the source has; the share of the
question's words in the text, and in the source; whether the text refuses; its length; the share of it that
the question did not say.
"""
_SENTENCES = 40  # of a text that is judged
_LONG = 60_000
_HEAD = 5  # letters by which two long words can stand for each other: "regulator", "regulation"
_NEAR = 0.8
_LEAST_WORDS = 2  # of a sentence that can be called unsupported
_LONG_TEXT = 400.0  # words at which a text has its full length


@dataclass(frozen=True, slots=True)
class Source:
    """A text that others are held against, taken apart.

    `windows`: each token, and the places of two sentences in a row that hold it.
    """

    windows: Mapping[str, tuple[int, ...]]
    heads: Mapping[str, tuple[int, ...]]  # the same by the first letters of long words

    def find(self, token: str) -> tuple[float, tuple[int, ...]]:
        """How near the source comes to a token, 0..1, and where."""
        if token in self.windows:
            return 1.0, self.windows[token]
        near = self.heads.get(token[:_HEAD]) if len(token) > _HEAD and token[0] != "#" else None
        return (_NEAR, near) if near else (0.0, ())


def read_source(text: str) -> Source:
    """Take a text apart, once for one that keeps coming back; its first 60,000 characters, 400 sentences."""
    return _cached(text[:_LONG])


@lru_cache(maxsize=128)
def _cached(text: str) -> Source:
    windows: dict[str, dict[int, None]] = {}
    heads: dict[str, dict[int, None]] = {}
    for place, sentence in enumerate(sentences(text)):
        for token in content_words(sentence):
            # The window that begins here, and the one that began with the sentence before.
            for window in (place - 1, place):
                windows.setdefault(token, {})[window] = None
                if len(token) > _HEAD and token[0] != "#":
                    heads.setdefault(token[:_HEAD], {})[window] = None
    return Source(*({token: tuple(where) for token, where in places.items()} for places in (windows, heads)))


def weight(token: str, word: str) -> float:
    """A number or a name says more than a common word, a long word more than a short one."""
    if token[0] == "#" or word[0].isupper():
        return 2.0
    return 0.6 if len(token) < 4 else 1.0


@dataclass(frozen=True, slots=True)
class Held:
    """How much of some words a source holds, 0..1: anywhere, and at most within two sentences in a row."""

    anywhere: float
    together: float
    missing: tuple[str, ...]  # as written

    @property
    def share(self) -> float:
        """The mean of both."""
        return (self.anywhere + self.together) / 2.0


def held(words: Mapping[str, str], source: Source) -> Held:
    """Look for words (token -> as written) in a source; of no words everything is held."""
    total = sum(weight(token, word) for token, word in words.items())
    if not total:
        return Held(1.0, 1.0, ())
    windows: defaultdict[int, float] = defaultdict(float)
    found, missing = 0.0, []
    for token, word in words.items():
        near, where = source.find(token)
        worth = near * weight(token, word)
        found += worth
        for window in where:
            windows[window] += worth
        if not near:
            missing.append(word)
    return Held(found / total, max(windows.values(), default=0.0) / total, tuple(missing))


@dataclass(frozen=True, slots=True)
class Weighed:
    """A text beside its source: the measures in the order of `NAMES`, and the words that the source lacks."""

    values: tuple[float, ...]
    missing: tuple[str, ...]

    def value(self, name: str) -> float:
        """One measure by its name."""
        return self.values[NAMES.index(name)]


def weigh(question: str, text: str, source: str) -> Weighed:
    """Hold a text against its source, given the question; any strings are accepted."""
    asked, backing = content_words(question), read_source(source)
    parts = [content_words(part) for part in sentences(text[:MAX_CHARS])[:_SENTENCES]]
    whole = {token: word for part in reversed(parts) for token, word in part.items()}
    news = [{token: word for token, word in part.items() if token not in asked} for part in parts]
    new = {token: word for part in news for token, word in part.items()}
    backed = [held(part, backing) for part in news if part]
    sizes = [len(part) for part in news if part]
    support = sum(part.share * size for part, size in zip(backed, sizes, strict=True))
    support = support / sum(sizes) if sizes else 1.0
    weights = {token: weight(token, word) for token, word in asked.items()}
    total, echoed = sum(weights.values()), sum(weights[token] for token in asked if token in whole)
    least = [part.share for part, size in zip(backed, sizes, strict=True) if size >= _LEAST_WORDS]
    values = {
        "support": support,
        "least": min(least, default=support),
        "covered": sum(token in whole for token in backing.windows) / (len(backing.windows) or 1),
        "numbers": _backed([token for token in new if token[0] == "#"], backing, empty=support),
        "names": _backed([token for token, word in new.items() if word[0].isupper()], backing, empty=support),
        "asked": echoed / total if total else 0.0,  # the weighted share that is said again
        "asked_source": held(asked, backing).share if asked else 0.0,
        "refuses": float(refuses(text)),
        "length": min(1.0, math.log1p(len(whole)) / math.log1p(_LONG_TEXT)),
        "news": len(new) / (len(whole) or 1),
    }
    missing = tuple(dict.fromkeys(word for part in backed for word in part.missing))
    return Weighed(tuple(values[name] for name in NAMES), missing)


def _backed(tokens: Sequence[str], source: Source, *, empty: float) -> float:
    return sum(source.find(token)[0] for token in tokens) / len(tokens) if tokens else empty
