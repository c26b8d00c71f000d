"""How a text is cut into words and sentences, and in which forms two texts are held against each other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from judgecal.models.embedded.text import strip_accents

_DIGITS = r"\d+(?:[.,:]\d+)*"
_WORD = re.compile(rf"[぀-ヿ㐀-鿿]|{_DIGITS}|[^\W\d_]+")
_ARTICLES = frozenset({"a", "an", "the"})
_MARKS, _CLOSING, _OPENING = ".!?…", "\"'”’»›)\\]", "\"'“‘„«‹([¿¡"
# Each run of marks is looked at once, and given up whole: a long row of dots costs no more than a text.
_END = re.compile(rf"(?<![{_MARKS}])[{_MARKS}]++[{_CLOSING}]*+\s++|[。！？]++[」』”’]*+\s*+|\n\s*\n\s*")
# What stands before a full stop that ends no sentence, and what behind it: initials and abbreviations ("e.g."
# needs no place in the list), "fig. 3", "1. a point of a list", "14. November", "19. Jahrhundert".
_ABBREVIATIONS = (
    "adm|al|approx|bzgl|bzw|ca|capt|cf|col|cp|dr|eds?|etc|evtl|ff|geb|gen|ggf|hr|ing|inkl|jr|mrs?|ms|mt|op|prof|rev"
    "|sgt|(?-i:max)|sra?|st|str|tel|usw|vgl|vs"
)
_NO_END = (
    (re.compile(rf"\b(?:{_ABBREVIATIONS}|[^\W\d_])\Z", re.IGNORECASE), re.compile("")),
    (
        re.compile(r"(?:\d|\b(?:art|eq|figs?|max|min|mind|nos?|nr|pp|sect?|vol))\Z", re.IGNORECASE),
        re.compile(r"[€$£]?\d"),
    ),
    (re.compile(r"(?:\A|\n)\s*\d{1,3}\Z"), re.compile("")),
    (re.compile(r"\b\d{1,2}\Z"), re.compile("Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrh|Weltkr")),
)
_LOOKED_AT = 20  # characters before the end of a sentence

Span = tuple[int, int]
"""From a character to the one behind the last, in a text."""
_T = TypeVar("_T")
_K = TypeVar("_K", bound=Hashable)
_Shingle = tuple[str, ...]


def grouped(things: Iterable[_T], key: Callable[[_T], _K]) -> dict[_K, list[_T]]:
    """Return a dict from things and a function `key`: key(thing) -> list of things, in their order."""
    groups: defaultdict[_K, list[_T]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return dict(groups)


def plain_text(text: str) -> str:
    """A text for comparison: case and spacing make no other question."""
    return " ".join(text.split()).casefold()


def normal_text(text: str) -> str:
    """A text without case, accents, punctuation and English articles; one of signs alone as it is."""
    return " ".join(words(text)) or text.strip()


def words(text: str) -> list[str]:
    """The words of a text, without case, accents, punctuation and English articles; digits are words."""
    return [word for word in _WORD.findall(strip_accents(text).casefold()) if word not in _ARTICLES]


def shingles(text: str, size: int = 2, *, ends: bool = True) -> frozenset[_Shingle]:
    """Return the frozenset of runs of `size` neighbouring words of a text; with `ends`, ends are words."""
    run = [*[""] * ends, *words(text), *[""] * ends]
    return frozenset(zip(*(run[start:] for start in range(size)), strict=False))


def sentence_spans(text: str) -> list[Span]:
    """Return a list of Spans, of a text's sentences in order, each with the white space behind.

    They end at `.`, `!`, `?` or an ellipsis before white space, unless a small letter follows (in a text that
    has capitals), or the full stop is that of an initial, a usual abbreviation, the number of a list or of a
    German date; at CJK full stops; and at blank lines.
    """
    start, spans, cased = 0, list[Span](), not text.islower()
    for match in _END.finditer(text):
        if _ends(text, start, match, cased=cased):
            spans.append((start, match.end()))
            start = match.end()
    return [*spans, (start, len(text))] if start < len(text) else spans


def _ends(text: str, start: int, match: re.Match[str], *, cased: bool) -> bool:
    """Whether a sentence ends where a mark and white space stand."""
    if match[0].count("\n") > 1 or match[0][0] not in _MARKS:
        return True
    following = text[match.end() : match.end() + 8].lstrip(_OPENING)
    if cased and following[:1].islower():
        return False
    if match[0][0] != "." or match[0][1] in _MARKS:
        return True
    piece = text[max(start, match.start() - _LOOKED_AT) : match.start()]
    return not any(before.search(piece) and behind.match(following) for before, behind in _NO_END)


def sentences(text: str) -> list[str]:
    return [piece for start, end in sentence_spans(text) if (piece := text[start:end].strip())]
