"""`hallucination_overlap@local`: share of the answer's sentences that are not made up, in percent; 100 is the
best.

The opposite of `faithfulness_overlap`: a sentence counts as made up where more than `share` (0.6) of its key
words stand in no context. Between the two thresholds a sentence is neither made up nor faithful. An item
without contexts gets 0. Needs contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from judgecal.judges.local._words import NO_CLAIM, share_told, supported

SCALE = "percentage"
SOURCE = "key-word overlap by sentence"
NEEDS = "answer, contexts"


def hallucination_overlap(
    answer: str, contexts: Sequence[str] = (), *, share: Annotated[float, (0.0, 1.0)] = 0.6
) -> tuple[float | None, str]:
    """100 x (1 - sentences made up / sentences); None where no sentence has a key word."""
    sentences = supported(answer, contexts)
    if not sentences:
        return None, NO_CLAIM
    made_up = [text for text, found in sentences if 1.0 - found > share]
    good = len(sentences) - len(made_up)
    return 100.0 * good / len(sentences), share_told(good, len(sentences), "sentences", made_up)
