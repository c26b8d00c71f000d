"""`rouge_l@local`: ROUGE-L, F1 of the longest common subsequence of words, in percent; the best reference.

As rouge-score counts it without a stemmer, whole texts and not line by line: case and punctuation are not
seen, order is. Letters of all scripts count. Needs a reference answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

from judgecal.judges.local._words import words

SCALE = "percentage"
SOURCE = "Lin 2004 (ROUGE-L; rapidfuzz)"


def rouge_l(answer: str, reference_answers: Sequence[str]) -> float:
    """100 x F1 with the reference that gives most; 0 where either text holds no word."""
    answered = words(answer)
    return 100.0 * max(_f1(answered, words(reference)) for reference in reference_answers)


def _f1(answered: Sequence[str], reference: Sequence[str]) -> float:
    if not answered or not reference:
        return 0.0
    return 2.0 * LCSseq.similarity(answered, reference) / (len(answered) + len(reference))
