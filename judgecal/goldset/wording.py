"""One measure of near-identical texts, and how a text is cut into words and sentences.

The measure is the Jaccard index of word pairs: the texts without case, accents, punctuation and English
articles, cut into pairs of neighbouring words (the ends count as words), shared pairs over all pairs. Texts
that differ in a number or in a negation are never near-identical: that is another question, or another
answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from judgecal.models.embedded.text import Text, strip_accents, take_apart

MEASURE = "Jaccard index of word pairs"

_DIGITS = r"\d+(?:[.,:]\d+)*"
_WORD = re.compile(rf"[぀-ヿ㐀-鿿]|{_DIGITS}|[^\W\d_]+")
_ARTICLES = frozenset({"a", "an", "the"})
_PIECE = re.compile(r"\S.{0,480}(?!\S)|\S{1,480}", re.DOTALL)  # short enough that no word of it is cut off
_ROUNDING = 1e-9
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mrs?|Ms|Dr|Prof|St|vs|approx|ca|etc|e\.g|i\.e|z\.B|d\.h|a\.m|p\.m|[^\W\d_]))\.$", re.IGNORECASE
)
# "No. 5", "1. a point of a list", "14. November"
_NUMBERED = re.compile(r"(?:\b(?:Nos?|Nr)|^\s*\d{1,3})\.$", re.IGNORECASE)
_GERMAN_DATE = re.compile(r"\b\d{1,2}\.$")
_MONTH = re.compile(r"\s*(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)")
# Possessive, and from the first of a row: a text may be a million full stops.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"')\]”]*+(?=\s+[^\s\W]|\s*$)|[。！？]|\n\s*\n")
_LOOKED_AT = 80  # characters on either side of the end of a sentence

_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)
_Shingle = tuple[str, ...]


def grouped(things: Iterable[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    """The things by what their key gives, in their order."""
    groups: defaultdict[_K, list[_T]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return groups


def plain_text(text: str) -> str:
    """A text for comparison: case and spacing make no other question."""
    return " ".join(text.split()).casefold()


def words(text: str) -> list[str]:
    """The words of a text, without case, accents, punctuation and English articles; digits are words."""
    return [word for word in _WORD.findall(strip_accents(text).casefold()) if word not in _ARTICLES]


def shingles(text: str, size: int = 2, *, ends: bool = True) -> frozenset[_Shingle]:
    """The runs of `size` neighbouring words; with `ends` the text's two ends count as words."""
    run = [*[""] * ends, *words(text), *[""] * ends]
    return frozenset(zip(*(run[start:] for start in range(size)), strict=False))


def clusters(
    things: Iterable[_T], *, text: Callable[[_T], str], within: Callable[[_T], Hashable], least: float
) -> Iterator[tuple[list[_T], float]]:
    """Groups of two or more things with texts near-identical to the group's first, and the least Jaccard
    index with it.

    A thing joins the first cluster whose first text it is near enough to (an index of `least` or more, above
    0 and at most 1) and with which it is equal in `within`; only those first texts are compared, and only
    where they share one of their rarest word pairs (prefix filtering: no pair at or above the threshold is
    missed by it), so that a set of many thousand texts takes seconds.
    """

    def numbers(thing: _T) -> Hashable:
        """A thousand texts of one template differ in nothing else."""
        return within(thing), tuple(sorted(re.findall(_DIGITS, text(thing))))

    for members in grouped(things, numbers).values():
        if len(members) > 1:
            for places, index in _clusters([text(member) for member in members], least):
                yield [members[place] for place in places], index


def _clusters(texts: Sequence[str], least: float) -> Iterator[tuple[list[int], float]]:
    sets = [shingles(text) for text in texts]
    counts = Counter(pair for pairs in sets for pair in pairs)
    leaders: defaultdict[_Shingle, list[int]] = defaultdict(list)  # by each of their rarest pairs
    guards: dict[int, Hashable] = {}
    joined: dict[int, list[int]] = {}
    lows: dict[int, float] = {}

    def guard(place: int) -> Hashable:
        """Numbers written as words, negations, a leading yes or no."""
        if place not in guards:
            read = analyse_long(texts[place])
            numbers = frozenset(number for part in read for number in part.numbers)
            negations = sum(part.negations for part in read)
            guards[place] = (numbers, negations, read[0].polarity if read else 0)
        return guards[place]

    for place, pairs in enumerate(sets):
        # The rarest pairs, so many that two sets near enough to each other share one of them.
        rarest = sorted(pairs, key=lambda pair: (counts[pair], pair))
        rarest = rarest[: len(pairs) - math.ceil(least * len(pairs) - _ROUNDING) + 1]
        leader, index = place, 1.0
        for other in sorted({other for pair in rarest for other in leaders[pair]}):
            shared = len(pairs & sets[other])
            jaccard = shared / (len(pairs) + len(sets[other]) - shared)
            if jaccard >= least - _ROUNDING and guard(place) == guard(other):
                leader, index = other, jaccard
                break
        else:
            for pair in rarest:
                leaders[pair].append(place)
        joined.setdefault(leader, []).append(place)
        lows[leader] = min(lows.get(leader, 1.0), index)
    yield from ((places, lows[leader]) for leader, places in joined.items() if len(places) > 1)


def analyse_long(text: str) -> list[Text]:
    """A text of any length taken apart, in pieces short enough to be read whole."""
    return [take_apart(piece) for piece in _PIECE.findall(text)]


def sentences(text: str) -> list[str]:
    """The sentences of a text: cut behind `.`, `!`, `?` before a space, and at blank lines.

    A full stop behind a known abbreviation, a single letter, the number of a list or of a German date ends
    none.
    """

    def ends_at(end: int) -> bool:
        """Whether the sentence from `start` ends there; no more is looked at than decides it."""
        piece, rest = text[max(start, end - _LOOKED_AT) : end], text[end : end + _LOOKED_AT]
        if _ABBREVIATION.search(piece) and rest.strip():
            return False
        if _NUMBERED.search(piece):
            first = text[start : start + _LOOKED_AT].strip()[:1]
            return not rest.lstrip()[:1].isdigit() and not first.isdigit()
        return not (_GERMAN_DATE.search(piece) and _MONTH.match(rest))

    found, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if ends_at(match.end()):
            found.append(text[start : match.end()].strip())
            start = match.end()
    return [piece for piece in [*found, text[start:].strip()] if piece]
