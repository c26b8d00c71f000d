"""`faithfulness_overlap@local`: share of the answer's sentences whose key words the contexts hold, in
percent.

A sentence counts where more than `share` (0.6) of its key words stand in some context: a word-overlap
stand-in for the faithfulness that RAG evaluations ask a model for. It sees no order, negation or paraphrase,
and takes "the text does not say" for a claim. An item without contexts gets 0, as nothing holds its answer.
Needs contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from judgecal.judges.local._words import NO_CLAIM, share_told, supported

SCALE = "percentage"
SOURCE = "key-word overlap by sentence"
NEEDS = "answer, contexts"


def faithfulness_overlap(
    answer: str, contexts: Sequence[str] = (), *, share: Annotated[float, (0.0, 1.0)] = 0.6
) -> tuple[float | None, str]:
    """100 x sentences above the threshold / sentences; None where no sentence has a key word."""
    sentences = supported(answer, contexts)
    if not sentences:
        return None, NO_CLAIM
    missed = [text for text, found in sentences if found <= share]
    good = len(sentences) - len(missed)
    return 100.0 * good / len(sentences), share_told(good, len(sentences), "sentences", missed)
