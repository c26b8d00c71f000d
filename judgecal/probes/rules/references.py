"""Answers that must get full marks: the reference itself, however it is laid out."""

from __future__ import annotations

import random

from judgecal.models.embedded.text import refuses, sentences
from judgecal.probes.family import Family, LeftOut, Sources, answered, language_of
from judgecal.probes.rules.no_answer import REFUSALS
from judgecal.records import Item


def _reference(item: Item, _sources: Sources, rng: random.Random) -> str:
    return rng.choice(answered(item))


def _layout(item: Item, _sources: Sources, rng: random.Random) -> str:
    text = rng.choice(answered(item))
    layouts = [f"**{text}**", f"\n\n{text}\n\n", "\n".join(f"- {part}" for part in sentences(text) or [text])]
    plain = not any(char.isdigit() for char in text) and all(word[1:].islower() for word in text.split())
    if plain and len(text.upper()) == len(text):  # else case may carry a meaning: mW, pH, a name's
        layouts.append(text.upper())
    return rng.choice(layouts)


def _shortest(item: Item, _sources: Sources, _rng: random.Random) -> str:
    references = answered(item)
    if len(references) == 1:
        raise LeftOut("there is one reference")
    return min(references, key=len)


def _refusal_right(item: Item, _sources: Sources, rng: random.Random) -> str:
    if not any(map(refuses, item.reference_answers)):
        raise LeftOut("the reference does not refuse")
    if not all(len(text.split()) <= 30 for text in item.reference_answers):
        raise LeftOut("the reference says more than that it refuses")
    return rng.choice(REFUSALS[language_of(item)])


FAMILIES = (
    Family("reference", "full", "that are the reference", _reference),
    Family("reference_layout", "full", "that are the reference in another layout", _layout),
    Family("shortest_alternative", "full", "that are the shortest of several right ones", _shortest),
    Family("refusal_right", "full", "that refuse, as the reference does", _refusal_right),
)
