"""Wording: one measure of near-identical texts, and reference answers that say too much or what no document
says.

The measure is the Jaccard index of word pairs: the texts without case, accents, punctuation and English
articles, cut into pairs of neighbouring words (the ends count as words), shared pairs over all pairs. Texts
that differ in a number or in a negation are never near-identical: that is another question, or another
answer.

What a reference must not say is for people to judge. The checks here are heuristics on words, numbers and
names; their messages say so, and what they rest on.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from judgecal.errors import listed
from judgecal.goldset.finding import Checks, Findings
from judgecal.goldset.gold_set import GoldSet
from judgecal.models.embedded.text import NO, STOPWORDS, YES, Text, strip_accents, take_apart
from judgecal.records import Item

MEASURE = "Jaccard index of word pairs"

_WORD = re.compile(r"[぀-ヿ㐀-鿿]|\d+(?:[.,:]\d+)*|[^\W\d_]+")
_ARTICLES = frozenset({"a", "an", "the"})
_PIECE = re.compile(r"\S.{0,480}(?!\S)|\S{1,480}", re.DOTALL)  # short enough that no word of it is cut off
_ROUNDING = 1e-9

_T = TypeVar("_T")
_Shingle = tuple[str, ...]


def words(text: str) -> list[str]:
    """The words of a text, without case, accents, punctuation and English articles; digits are words."""
    found = _WORD.findall(strip_accents(text).casefold())
    return [word for word in found if word not in _ARTICLES]


def shingles(text: str, size: int = 2, *, ends: bool = True) -> frozenset[_Shingle]:
    """The runs of `size` neighbouring words; with `ends` the text's two ends count as words."""
    found = [*[""] * ends, *words(text), *[""] * ends]
    return frozenset(zip(*(found[start:] for start in range(size)), strict=False))


def containment(part: frozenset[_Shingle], whole: frozenset[_Shingle]) -> float:
    """Share of the part's runs that the whole holds, 0..1; 0 for a part without any."""
    return len(part & whole) / len(part) if part else 0.0


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
    parts: defaultdict[Hashable, list[_T]] = defaultdict(list)
    for thing in things:
        # Numbers make the key: a thousand texts of one template differ in nothing else.
        parts[within(thing), _numbers(text(thing))].append(thing)
    for members in parts.values():
        if len(members) > 1:
            yield from _Leaders(members, text, least).found()


def _numbers(text: str) -> tuple[str, ...]:
    return tuple(sorted(re.findall(r"\d+(?:[.,:]\d+)*", text)))


class _Leaders(Generic[_T]):
    """The first text of each cluster, indexed by its rarest word pairs."""

    def __init__(self, members: Sequence[_T], text: Callable[[_T], str], least: float) -> None:
        self._members, self._least = members, least
        self._texts = [text(member) for member in members]
        self._sets = [shingles(one) for one in self._texts]
        self._counts = Counter(pair for one in self._sets for pair in one)
        self._index: defaultdict[_Shingle, list[int]] = defaultdict(list)
        self._guards: dict[int, Hashable] = {}

    def found(self) -> Iterator[tuple[list[_T], float]]:
        joined: dict[int, list[int]] = {}
        lows: dict[int, float] = {}
        for place, pairs in enumerate(self._sets):
            prefix = self._prefix(pairs)
            leader, index = self._leader(place, pairs, prefix)
            joined.setdefault(leader, []).append(place)
            lows[leader] = min(lows.get(leader, 1.0), index)
            if leader == place:
                for pair in prefix:
                    self._index[pair].append(place)
        for leader, places in joined.items():
            if len(places) > 1:
                yield [self._members[place] for place in places], lows[leader]

    def _prefix(self, pairs: frozenset[_Shingle]) -> list[_Shingle]:
        """The rarest pairs, so many that two sets near enough to each other share one of them."""
        ordered = sorted(pairs, key=lambda pair: (self._counts[pair], pair))
        return ordered[: len(ordered) - math.ceil(self._least * len(ordered) - _ROUNDING) + 1]

    def _leader(
        self, place: int, pairs: frozenset[_Shingle], prefix: Sequence[_Shingle]
    ) -> tuple[int, float]:
        """The first leader near enough, and the index; the text itself where there is none."""
        for other in sorted({other for pair in prefix for other in self._index[pair]}):
            shared = len(pairs & self._sets[other])
            index = shared / (len(pairs) + len(self._sets[other]) - shared)
            if index >= self._least - _ROUNDING and self._guard(place) == self._guard(other):
                return other, index
        return place, 1.0

    def _guard(self, place: int) -> Hashable:
        """Numbers written as words, negations, a leading yes or no."""
        if place not in self._guards:
            read = analyse_long(self._texts[place])
            numbers = frozenset(number for text in read for number in text.numbers)
            negations = sum(text.negations for text in read)
            self._guards[place] = (numbers, negations, read[0].polarity if read else 0)
        return self._guards[place]


def analyse_long(text: str) -> list[Text]:
    """A text of any length taken apart, in pieces short enough to be read whole."""
    return [take_apart(piece) for piece in _PIECE.findall(text)]


_MOST_SENTENCES = 3
_LEAST_FOUND = 0.5
_MANY_NUMBERS = 3
# "one" is more often the pronoun than the number.
_NO_NUMBER = frozenset({"#1"})
# The lexicon's yes and no are English; a bare word of agreement stands in no document.
_POLAR = YES | NO | frozenset({"ja", "nein", "doch", "si", "oui", "non", "tak", "nie", "sim", "nao", "nee"})

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
_WH = re.compile(r"\b(?:who|whom|whose|when|where|which|what|why|how)\b", re.IGNORECASE)
_ASKS_MORE = re.compile(
    r"\b(?:and|or|list|name|describe|explain|summari[sz]e|compare|why|all|every|each|steps|reasons?"
    r"|(?:what|which|who|where)\s+(?:are|were)|how(?!\s+(?:many|much|long|old|far|often|tall|high|large|big|wide)\b))\b",
    re.IGNORECASE,
)
_QUANTITY = re.compile(r"\bhow\s+(?:many|much|long|old|far|often|tall|high|large|big|wide)\b", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d_a-z][^\W\d_]+")


def sentences(text: str) -> list[str]:
    """The sentences of a text: cut behind `.`, `!`, `?` before a space, and at blank lines.

    A full stop behind a known abbreviation, a single letter, the number of a list or of a German date ends
    none.
    """
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if _is_end(text, start, end.end()):
            found.append(text[start : end.end()].strip())
            start = end.end()
    found.append(text[start:].strip())
    return [piece for piece in found if piece]


def _is_end(text: str, start: int, end: int) -> bool:
    """Whether a sentence from `start` ends at `end`; no more is looked at than decides it."""
    piece, rest = text[max(start, end - _LOOKED_AT) : end], text[end : end + _LOOKED_AT]
    if _ABBREVIATION.search(piece) and rest.strip():
        return False
    if _NUMBERED.search(piece):
        return not rest.lstrip()[:1].isdigit() and not text[start : start + _LOOKED_AT].strip()[:1].isdigit()
    return not (_GERMAN_DATE.search(piece) and _MONTH.match(rest))


@dataclass(frozen=True)
class _Reference:
    """One reference answer to one question, and the items that share it."""

    question: str
    alternatives: tuple[str, ...]
    documents: tuple[str, ...]
    items: list[Item]

    @cached_property
    def asked(self) -> Text:
        """The question taken apart."""
        return take_apart(self.question)


def _references(gold: GoldSet) -> Iterator[_Reference]:
    same: defaultdict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Item]] = defaultdict(list)
    for item in gold.items:
        if item.reference_answers:
            same[item.question, item.reference_answers, item.reference_documents].append(item)
    return (_Reference(*key, items) for key, items in same.items())


def _long(gold: GoldSet) -> Findings:
    for reference in _references(gold):
        count = max(len(sentences(text)) for text in reference.alternatives)
        if count > _MOST_SENTENCES:
            yield (
                reference.items,
                f"the reference answer has {count} sentences (reported above {_MOST_SENTENCES}): a judge "
                "takes each for a point that the answer must make; keep the fewest facts that make it right",
            )


def _more_than_asked(gold: GoldSet) -> Findings:
    for reference in _references(gold):
        if _asks_one_thing(reference.question):
            extra = [_extra(text, reference) for text in reference.alternatives]
            worst = max(extra, key=len)
            if worst:
                yield (
                    reference.items,
                    f"the question asks for one thing, and the reference answer also gives {listed(worst)} "
                    "(heuristic: numbers and names behind its first sentence, in neither that nor the "
                    f"question; or {_MANY_NUMBERS} numbers for one quantity): keep what is asked, or an "
                    f"answer is held to more",
                )


def _asks_one_thing(question: str) -> bool:
    """One question word, and nothing that asks for several things or an account; English alone."""
    return len(_WH.findall(question)) == 1 and question.count("?") <= 1 and not _ASKS_MORE.search(question)


def _extra(text: str, reference: _Reference) -> list[str]:
    parts = sentences(text)
    quantity = _QUANTITY.search(reference.question) is not None
    if not (quantity or len(parts) > 1) or len(parts) > _MOST_SENTENCES or not parts:
        return []  # one sentence says one thing; more than three are told as long_reference
    first = take_apart(parts[0])
    known = reference.asked.content | first.content | _NO_NUMBER
    found = [fact for part in parts[1:] for fact in _facts(part, known)]
    numbers = sorted(first.numbers - reference.asked.numbers - _NO_NUMBER)
    if not found and quantity and len(numbers) >= _MANY_NUMBERS:
        return [number.removeprefix("#") for number in numbers]
    return list(dict.fromkeys(found))


def _facts(sentence: str, known: frozenset[str]) -> Iterator[str]:
    """The numbers and names of a sentence that are not known; its first word is no name."""
    read = take_apart(sentence)
    names = {match.group() for match in _NAME.finditer(strip_accents(sentence)) if match.start() > 0}
    for token, word in zip(read.tokens, read.words, strict=True):
        if token not in known and (token in read.numbers or (word in names and token in read.content)):
            yield word


def _unsupported(gold: GoldSet) -> Findings:
    texts = {document.document_id: document.text for document in gold.documents}
    read: dict[str, frozenset[str]] = {}
    for reference in _references(gold):
        if not reference.documents or not texts:
            continue
        there = frozenset[str]().union(*(_document_words(name, texts, read) for name in reference.documents))
        missing = [_missing(text, reference, there) for text in reference.alternatives]
        if all(missing):
            yield (
                reference.items,
                f"{listed(min(missing, key=len))}: not in {listed([*reference.documents])}, where the "
                "reference answer should stand (heuristic: a number that they lack, or fewer than half of "
                "its words by their stems): mend the reference or its documents; a computed number or "
                "another language is no error",
            )


def _document_words(name: str, texts: Mapping[str, str], read: dict[str, frozenset[str]]) -> frozenset[str]:
    if name not in read:
        read[name] = frozenset(token for part in analyse_long(texts[name]) for token in part.tokens)
    return read[name]


def _missing(text: str, reference: _Reference, there: frozenset[str]) -> list[str]:
    """The words of a reference that its documents lack, if they are numbers or more than half; as written."""
    parts = analyse_long(text)
    if any(part.refuses for part in parts):
        return []
    asked = reference.asked.content | STOPWORDS | _POLAR | _NO_NUMBER
    facts = {
        token: word
        for part in parts
        for token, word in zip(part.tokens, part.words, strict=True)
        if token in part.content and token not in asked
    }
    missing = {token: word for token, word in facts.items() if token not in there}
    numbers = [word for token, word in missing.items() if token.startswith("#")]
    few = len(facts) - len(missing) < _LEAST_FOUND * len(facts)
    return list(missing.values()) if few else numbers


REFERENCE_CHECKS: Checks = {
    "long_reference": _long,
    "reference_beyond_question": _more_than_asked,
    "unsupported_reference": _unsupported,
}
