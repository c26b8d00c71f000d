"""The answerer: the sentence of a context that shares most with a question. No model of language, a floor."""

from __future__ import annotations

import math
import re
from collections import Counter

from judgecal.models.embedded.text import analyse, take_apart

NOT_FOUND = "The answer is not in the document."
_MAX_CONTEXT = 60_000
_MAX_SENTENCES = 400
_LEAST_COVERAGE = 0.4
_BREAK = re.compile(r"(?<=[.!?])[\"'”)]*\s+|\n+")
_WANTS_NUMBER = re.compile(
    r"\b(?:when|how (?:many|much|long|old|far|often)|what (?:year|date|time))\b", re.IGNORECASE
)
_WANTS_NAME = re.compile(r"\b(?:who|whom|whose|where)\b", re.IGNORECASE)


def sentences(context: str) -> list[str]:
    """A text's sentences and lines, without blanks; at most its first 60,000 characters and 400 sentences."""
    parts = (part.strip() for part in _BREAK.split(context[:_MAX_CONTEXT]))
    return [part for part in parts if part][:_MAX_SENTENCES]


def _printable(text: str) -> str:
    """One line that any encoder takes and no adapter mistakes for a field marker."""
    line = " ".join(text.replace("\x00", " ").replace("[[", "[").split())
    return line.encode("utf-8", "replace").decode("utf-8")


def best_sentence(question: str, context: str) -> str | None:
    """The sentence with the greatest share of the question's words, rare ones counting more; None below 0.4."""
    asked = analyse(question).content
    found = sentences(context)
    # not cached: a document's sentences are read once, and would drive the references out of the cache
    parsed = [take_apart(sentence) for sentence in found]
    spread = Counter(token for text in parsed for token in text.content & asked)
    weights = {token: math.log(1.0 + len(found) / (1.0 + spread[token])) for token in asked}
    total = sum(weights.values())
    if not total or not found:
        return None
    number, name = _WANTS_NUMBER.search(question), _WANTS_NAME.search(question)
    best, best_score, best_coverage = 0, -1.0, 0.0
    for place, text in enumerate(parsed):
        coverage = sum(weights[token] for token in text.content & asked) / total
        news = text.content - asked
        bonus = 0.15 * bool(number and text.numbers & news) + 0.1 * bool(name and text.names & news)
        score = coverage + (bonus if coverage else 0.0) - (0.2 if not news else 0.0)
        if score > best_score:
            best, best_score, best_coverage = place, score, coverage
    return _printable(found[best]) if best_coverage >= _LEAST_COVERAGE else None


def answer(question: str, context: str) -> tuple[str, str]:
    """(answer, why): a sentence of the context, or `NOT_FOUND` where nothing overlaps enough."""
    sentence = best_sentence(question, context)
    if sentence is None:
        return NOT_FOUND, "No sentence of the document shares enough words with the question."
    return sentence, "This sentence of the document shares the most words with the question."
