"""`relevancy_overlap@local`: share of the question's key words that the answer takes up, in percent.

A word-overlap stand-in for the relevance that RAG evaluations ask a model for: it sees whether the answer
speaks of the same things, not whether it answers. A short right answer ("in 1969") gets 0. Needs a question.
"""

from __future__ import annotations

from judgecal.judges.local._words import key_words

SCALE = "percentage"
SOURCE = "key-word overlap"


def relevancy_overlap(question: str, answer: str) -> float | tuple[None, str]:
    """100 x the question's key words in the answer / its key words; None where the question has none."""
    wanted = key_words(question)
    if not wanted:
        return None, "the question has no key word"
    return 100.0 * len(wanted & key_words(answer)) / len(wanted)
