"""Answers that must get full marks, as the reference, or none, as what answers nothing."""

from __future__ import annotations

import random
import re

from judgecal.models.embedded.text import analyse, refuses, sentences
from judgecal.probes.family import Family, LeftOut, Sources, answered, kept, language_of
from judgecal.records import Item

_REFUSALS = {
    "en": "I don't know. | Sorry, I cannot answer this question. | I could not find any information on that.",
    "de": "Das weiß ich nicht. | Diese Frage kann ich leider nicht beantworten. | "
    "Dazu habe ich keine Angabe.",
    "pl": "Nie wiem. | Nie mogę odpowiedzieć na to pytanie. | Brak informacji na ten temat.",
    "es": "No lo sé. | No puedo responder a esta pregunta.",
}
_MORE = re.compile(r"\b(?:but|however|aber|jedoch|ale|jednak|pero)\b.*\w", re.IGNORECASE)
_OPENING = 3  # sentences of a context that a reader may take for the answer
_SHORT, _LONG, _TIMES = 15, 60, 6  # words of a short reference, of a long context, and how much longer it is


def _agreed(item: Item) -> list[str]:
    """The references that more than half of the references hold: of a list, one may be a part, or a stray."""
    contents = {text: analyse(text).content for text in answered(item)}
    agreed = [
        text
        for text, own in contents.items()
        if sum(map(own.issubset, contents.values())) * 2 > len(contents)
    ]
    if not agreed:
        raise LeftOut("the references say different things, of which one may not be enough")
    return agreed


def _reference(item: Item, _sources: Sources, rng: random.Random) -> str:
    return rng.choice(_agreed(item))


def _layout(item: Item, _sources: Sources, rng: random.Random) -> str:
    text = rng.choice(_agreed(item))
    layouts = [f"**{text}**", f"\n\n{text}\n\n", "\n".join(f"- {part}" for part in sentences(text) or [text])]
    plain = not any(char.isdigit() for char in text) and all(word[1:].islower() for word in text.split())
    if plain and len(text.upper()) == len(text):  # else case may carry a meaning: mW, pH, a name's
        layouts.append(text.upper())
    return rng.choice(layouts)


def _shortest(item: Item, _sources: Sources, _rng: random.Random) -> str:
    if len(answered(item)) == 1:
        raise LeftOut("there is one reference")
    return min(_agreed(item), key=len)


def _refusal(item: Item, _sources: Sources, rng: random.Random) -> str:
    answered(item)
    return rng.choice(_REFUSALS[language_of(item)].split(" | "))


def _refusal_right(item: Item, _sources: Sources, rng: random.Random) -> str:
    if not item.reference_answers or not all(map(refuses, item.reference_answers)):
        raise LeftOut("the reference does not refuse")
    if any(len(text.split()) > 30 or _MORE.search(text) for text in item.reference_answers):
        raise LeftOut("the reference says more than that it refuses")
    return rng.choice(_REFUSALS[language_of(item)].split(" | "))


def _empty(item: Item, _sources: Sources, _rng: random.Random) -> str:
    answered(item)
    return ""


def _question(item: Item, _sources: Sources, _rng: random.Random) -> str:
    if not (asked := analyse(item.question).content):
        raise LeftOut("there is no question")
    if any(analyse(text).content <= asked for text in answered(item)):
        raise LeftOut("the question holds the answer")
    return item.question


def _other(item: Item, sources: Sources, rng: random.Random) -> str:
    answered(item)
    return sources.foreign(item, rng)


def _context(item: Item, sources: Sources, _rng: random.Random) -> str:
    longest, known = max(len(text.split()) for text in answered(item)), sources.documents
    texts = [context.text for context in item.contexts]
    texts = texts or [known[name] for name in item.reference_documents if name in known]
    if not texts:
        raise LeftOut("there is no context")
    if longest > _SHORT or len(texts[0].split()) < max(_LONG, _TIMES * longest):
        raise LeftOut("the context is not much longer than the answer")
    if kept(" ".join(sentences(texts[0])[:_OPENING]), item) >= 0.5:
        raise LeftOut("the context begins with the answer")
    return texts[0]


FAMILIES = (
    Family("reference", "full", "references", _reference),
    Family("reference_layout", "full", "references in another layout", _layout),
    Family("shortest_alternative", "full", "shortest references", _shortest),
    Family("refusal_right", "full", "right refusals", _refusal_right),
    Family("refusal", "none", "refusals", _refusal),
    Family("empty", "none", "empty answers", _empty),
    Family("question_repeated", "none", "repeated questions", _question),
    Family("other_reference", "none", "other questions' references", _other),
    Family("context_whole", "none", "copied contexts", _context),
)
