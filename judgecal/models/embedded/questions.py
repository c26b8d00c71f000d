"""Questions made of a passage: a gap cut into one of its sentences, and what stood there as the answer.

The gap is a number, else a name, else the longest word. Nothing is understood and nothing is said in other
words, so such a question is found by its words alone: it shows how the command works, and measures next to
nothing. A question without an answer in the passage asks for particulars (an address, an insurance company
...) of somebody or something named there. What a passage is too poor for gets an empty question.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from judgecal.models.embedded.prompt import Field, Layout
from judgecal.models.embedded.text import content_words, sentences

_NUMBER = re.compile(r"(?<![\w.,:])\d+(?:[.,:]\d+)*(?![\w])")
_NAME = re.compile(r"(?<![\w'’-])[A-Z][^\W\d_]+(?: [A-Z][^\W\d_]+)?")
_WORD = re.compile(r"[^\W\d_]{6,}")
_POINTS = re.compile(
    r"\b(?:he|she|it|they|him|his|hers?|its|them|their|this|that|these|those|here|there|such|above|below)\b"
    r"|\b(?:the|this|that) (?:passage|text|document|excerpt|article|context)\b",
    re.IGNORECASE,
)
_LEAST, _MOST = 6, 40  # words of a sentence
_NAMED = 5  # letters of a name
_PARTICULARS = (
    "telephone number, postal address, insurance company and tax office",
    "bank account, registration plate, website and accountant",
    "blood group, passport number, favourite colour and shoe size",
    "electricity bill, landlord, broadband provider and solicitor",
)


@dataclass(frozen=True, slots=True)
class _Gap:
    sentence: str
    holed: str
    missing: str
    kind: str


def makes_questions(layout: Layout) -> bool:
    """Whether a prompt asks for a question: one of its outputs is called so."""
    return any(field.name == "question" for field in layout.outputs)


def points_elsewhere(question: str) -> str | None:
    """The first word that only a reader of the document understands ("the text", "he"), if any."""
    found = _POINTS.search(question)
    return found.group() if found else None


def make_question(layout: Layout, inputs: Mapping[str, str]) -> dict[str, str]:
    """The outputs of a prompt, by their names: question, answer and quotes as far as it asks for them.

    A prompt without a quote wants a question that the passage does not answer; one with two passages and two
    quotes a question about both; one with two passages and one quote a question that names something of the
    other passage.
    """
    passages = [inputs.get(field.name, "") for field in layout.inputs if "passage" in field.name]
    first, other = (*passages, "", "")[:2]
    quotes = [field for field in layout.outputs if "quote" in field.name]
    if not quotes:
        return _filled(layout.outputs, _particulars(first), "", ())
    gap = _gap(first)
    if gap is None:
        return _filled(layout.outputs, "", "", ())
    if len(quotes) > 1:
        also = _gap(other)
        if also is None:
            return _filled(layout.outputs, "", "", ())
        question = f'What belongs in the gaps: "{gap.holed}" and "{also.holed}"'
        return _filled(
            layout.outputs, question, f"{gap.missing}; {also.missing}", (gap.sentence, also.sentence)
        )
    asked = f'hich {gap.kind} belongs in the gap: "{gap.holed}"'
    if len(passages) > 1:
        stranger = next(iter(_subjects(other, without=first)), None)
        asked = "" if stranger is None else f"Leaving aside {stranger}, w{asked}"
    else:
        asked = f"W{asked}"
    return _filled(layout.outputs, asked, gap.missing, (gap.sentence,))


def _filled(
    outputs: tuple[Field, ...], question: str, answer: str, quotes: tuple[str, ...]
) -> dict[str, str]:
    left = list(quotes)
    values = {"question": question, "answer": answer}
    return {
        field.name: values[field.name]
        if field.name in values
        else left.pop(0)
        if "quote" in field.name and left
        else ""
        for field in outputs
    }


def _subjects(passage: str, *, without: str = "") -> list[str]:
    """What a question can name: longer names, not at the start of a sentence; else the longest words."""
    names = [name for sentence in sentences(passage) for name in _NAME.findall(sentence, 1)]
    names = [name for name in names if len(name) >= _NAMED and not name.isupper()]
    words = [
        f"the {word}" for word in sorted(_WORD.findall(passage), key=len, reverse=True) if word.islower()
    ]
    there = without.casefold()
    return [one for one in (*names, *words) if one.removeprefix("the ").casefold() not in there]


def _particulars(passage: str) -> str:
    subjects = _subjects(passage)
    place = zlib.crc32(passage.encode("utf-8", "replace"))
    own = content_words(passage)
    fit = [one for one in _PARTICULARS if not own.keys() & content_words(one).keys()]
    return f"What are the {fit[place % len(fit)]} of {subjects[0]}?" if fit and subjects else ""


def _gap(passage: str) -> _Gap | None:
    """The longest sentence that can be asked about: with a number, a name, or else a long word."""
    fit = [
        one
        for one in sentences(passage)
        if _LEAST <= len(one.split()) <= _MOST and not _POINTS.search(one) and '"' not in one
    ]
    for kind, pattern in (("number", _NUMBER), ("name", _NAME), ("word", _WORD)):
        for sentence in sorted(fit, key=len, reverse=True):
            found = max(pattern.finditer(sentence, 1), key=lambda match: len(match[0]), default=None)
            if found is not None:
                holed = f"{sentence[: found.start()]}___{sentence[found.end() :]}"
                return _Gap(sentence, holed, found[0], kind)
    return None
