"""The sentences of an answer: the one that matters cut, or all of them in another order."""

from __future__ import annotations

import random
import re

from judgecal.goldset.wording import sentences
from judgecal.models.embedded.text import analyse
from judgecal.probes.family import Family, NoProbe, Sources, answered, kept, language_of
from judgecal.records import Item

_MARKED = re.compile(r"[*_#`|]|^\s*(?:[-•]|\d+[.)])\s", re.MULTILINE)
# what ties a sentence to the one before it
_TIED = {
    "en": re.compile(
        r"(?i)\b(?:it|its|he|she|him|his|her|they|them|their|this|that|these|those|such|one|ones|other|another|also|then"
        r"|there|here|however|therefore|thus|hence|moreover|instead|first|second|third|next|finally|later|both|which"
        r"|so|but|and then|because|otherwise|same|former|latter|after|before|yes|no|or|following|examples?"
        r"|and|now|while|evidence)\b"
    ),
    "de": re.compile(
        r"(?i)\b(?:er|sie|es|ihn|ihm|ihr\w*|sein\w*|dies\w*|das|jene\w*|diese\w*|solch\w*|dann|danach|dabei|dazu|damit"
        r"|daher|deshalb|also|auch|au(?:ß|ss)erdem|jedoch|aber|zuerst|zunächst|anschließend|anschluss|zudem|zusätzlich|dort|hier|so|denn"
        r"|weiterhin|ebenfalls|andere\w*|beide\w*|ja|nein|beziehungsweise|sofern|falls|wenn|weiteren|darunter)\b"
    ),
}
_STEPS = re.compile(
    r"(?i)\b(?:steps?|order|process|procedure|how (?:do|does|did|would|should|can|could|to)|list|wie geh\w+"
    r"|schritte?|reihenfolge|ablauf)\b"
)
_ASKS_NAME = re.compile(r"(?i)\b(?:who|whose|whom|when|which|how (?:many|much|old|long|far|tall))\b")
_OTHERWISE = re.compile(r"(?i)\b(?:where|what|why|names?|mean\w*)\b")  # what goes by other words, too
_NAME_WITHIN = re.compile(r"(?<=[\w,;\"“‘(] )[A-ZÀ-ÖØ-Þ]\w+|(?<=[\"“‘(])[A-ZÀ-ÖØ-Þ]\w+")
_STEM = 5  # letters: Nepal, Nepalese
_SMALL = 3  # letters of a word that a name may hold in small ones: of, the, van
_MOST = 8


def _several(text: str) -> list[str]:
    """Sentences and lines; not one alone."""
    parts = [part for line in text.splitlines() for part in sentences(line)]
    if len(parts) < 2:
        raise NoProbe("the answer is one sentence")
    return parts


def _cut(item: Item, _sources: Sources, _rng: random.Random) -> str:
    references = [analyse(text) for text in answered(item)]
    parts, question_words = _several(item.answer), analyse(item.question).content
    words = (re.findall(r"\w+", text) for text in item.reference_answers)
    # no more than a name or a number: one word, or every long one written as a name
    named = all(
        len(sentence_words) == 1
        or not any(word[0].islower() for word in sentence_words if len(word) > _SMALL)
        for sentence_words in words
    )
    if not named or _OTHERWISE.search(item.question) or not _ASKS_NAME.search(item.question):
        raise NoProbe("it asks for no name and no number, and several sentences may say it")
    stems = {word[:_STEM] for reference in references for word in reference.content - question_words}
    for place, part in enumerate(parts):
        remaining, cut = " ".join(parts[:place] + parts[place + 1 :]), analyse(part)
        left = analyse(remaining)
        again = left.polarity or left.numbers or stems & {word[:_STEM] for word in left.content}
        others = analyse(" ".join(_NAME_WITHIN.findall(remaining))).content - question_words
        if others or len(left.content & question_words) > len(
            cut.content & question_words
        ):  # the rest may be what answers
            continue
        if kept(part, item) >= 0.5 and stems & {word[:_STEM] for word in cut.content} and not again:
            return remaining
    raise NoProbe("no sentence alone holds what the reference says")


def _order(item: Item, _sources: Sources, rng: random.Random) -> str:
    parts, language = _several(item.answer), language_of(item)
    if language not in _TIED:
        raise NoProbe("the rule knows English and German")
    if _STEPS.search(item.question):
        raise NoProbe("the question may ask for an order")
    tied = any(_TIED[language].search(part) or part[-1] not in ".!" for part in parts)
    if tied or len(parts) > _MOST or _MARKED.search(item.answer):
        raise NoProbe("the sentences may hang on each other")
    return " ".join(parts[1:] + parts[:1]) if rng.random() < 0.5 else " ".join(parts[::-1])


FAMILIES = (
    Family("key_sentence_cut", "falls", "cut answers", _cut),
    Family("sentence_order", "still", "reordered sentences", _order),
)
