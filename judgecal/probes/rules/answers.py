"""Answers that must get full marks, as the reference, or none, as what answers nothing."""

from __future__ import annotations

import random

from judgecal.models.embedded.text import analyse, sentences
from judgecal.probes.family import Family, NoProbe, Sources, kept, right_answers
from judgecal.records import Item

_OPENING = 3  # sentences of a context that a reader may take for the answer
_SHORT, _LONG, _TIMES = 15, 60, 6  # words of a short reference, of a long context, and how much longer it is


def _agreed(item: Item) -> list[str]:
    """The references that more than half of the references hold: of a list, one may be a part, or a stray."""
    contents = {text: analyse(text).content for text in right_answers(item)}
    agreed = [
        text
        for text, content in contents.items()
        if sum(map(content.issubset, contents.values())) * 2 > len(contents)
    ]
    if not agreed:
        raise NoProbe("the references say different things, of which one may not be enough")
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


def _question(item: Item, _sources: Sources, _rng: random.Random) -> str:
    if not (question_words := analyse(item.question).content):
        raise NoProbe("there is no question")
    if any(analyse(text).content <= question_words for text in right_answers(item)):
        raise NoProbe("the question holds the answer")
    return item.question


def _other(item: Item, sources: Sources, rng: random.Random) -> str:
    right_answers(item)
    return sources.foreign(item, rng)


def _context(item: Item, sources: Sources, _rng: random.Random) -> str:
    longest, documents = max(len(text.split()) for text in right_answers(item)), sources.documents
    texts = [context.text for context in item.contexts]
    texts = texts or [documents[name] for name in item.reference_documents if name in documents]
    if not texts:
        raise NoProbe("there is no context")
    if longest > _SHORT or len(texts[0].split()) < max(_LONG, _TIMES * longest):
        raise NoProbe("the context is not much longer than the answer")
    if kept(" ".join(sentences(texts[0])[:_OPENING]), item) >= 0.5:
        raise NoProbe("the context begins with the answer")
    return texts[0]


FAMILIES = (
    Family("reference", "full", "references", _reference),
    Family("reference_layout", "full", "references in another layout", _layout),
    Family("question_repeated", "none", "repeated questions", _question),
    Family("other_reference", "none", "other questions' references", _other),
    Family("context_whole", "none", "copied contexts", _context),
)
