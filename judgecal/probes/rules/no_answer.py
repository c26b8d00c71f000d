"""Answers that must get none: nothing is answered, or another question is."""

from __future__ import annotations

import random

from judgecal.models.embedded.text import analyse
from judgecal.probes.family import Family, LeftOut, Sources, answered, language_of
from judgecal.records import Item

REFUSALS = {
    "en": (
        "I don't know.",
        "Sorry, I cannot answer this question.",
        "I could not find any information on that.",
    ),
    "de": (
        "Das weiß ich nicht.",
        "Diese Frage kann ich leider nicht beantworten.",
        "Dazu habe ich keine Angabe.",
    ),
    "pl": ("Nie wiem.", "Nie mogę odpowiedzieć na to pytanie.", "Brak informacji na ten temat."),
    "es": ("No lo sé.", "No puedo responder a esta pregunta."),
}
_SHORT, _LONG, _TIMES = 15, 60, 6  # words of a short reference, of a long context, and how much longer it is


def _refusal(item: Item, _sources: Sources, rng: random.Random) -> str:
    answered(item)
    return rng.choice(REFUSALS[language_of(item)])


def _empty(item: Item, _sources: Sources, _rng: random.Random) -> str:
    answered(item)
    return ""


def _question(item: Item, _sources: Sources, _rng: random.Random) -> str:
    asked = analyse(item.question).content
    if not asked:
        raise LeftOut("there is no question")
    if any(analyse(text).content <= asked for text in answered(item)):
        raise LeftOut("the question holds the answer")
    return item.question


def _other(item: Item, sources: Sources, rng: random.Random) -> str:
    answered(item)
    return sources.foreign(item, rng)


def _context(item: Item, sources: Sources, _rng: random.Random) -> str:
    longest = max(len(text.split()) for text in answered(item))
    texts = [context.text for context in item.contexts]
    texts = texts or [
        sources.documents[name] for name in item.reference_documents if name in sources.documents
    ]
    if not texts:
        raise LeftOut("there is no context")
    if longest > _SHORT or len(texts[0].split()) < max(_LONG, _TIMES * longest):
        raise LeftOut("the context is not much longer than the answer")
    return texts[0]


FAMILIES = (
    Family("refusal", "none", "that refuse", _refusal),
    Family("empty", "none", "that are empty", _empty),
    Family("question_repeated", "none", "that repeat the question", _question),
    Family("other_reference", "none", "that are another question's reference", _other),
    Family("context_whole", "none", "that copy the context where a short one was asked for", _context),
)
