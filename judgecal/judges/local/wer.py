"""`wer@local`: word accuracy, 100 less the word error rate in percent, against the nearest reference answer.

The word error rate of speech recognition: words put in, left out and replaced, over the words of the
reference, here without case and punctuation. A rate is a distance and may exceed 1; the verdict is turned, so
that more is better, and ends at 0: an answer in which the reference is one word of many gets 0 whatever else
it says. Needs a reference answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein

from judgecal.judges.local._words import NO_REFERENCE, words

SCALE = "percentage"
SOURCE = "word error rate, as jiwer counts it (rapidfuzz)"


def wer(answer: str, reference_answers: Sequence[str]) -> tuple[float | None, str]:
    """100 x (1 - word error rate), at least 0; 0 for an empty answer, None without words to hold it to."""
    answered = words(answer)
    references = [sequence for answer in reference_answers if (sequence := words(answer))]
    if not references:
        return None, NO_REFERENCE
    rate = min(Levenshtein.distance(reference, answered) / len(reference) for reference in references)
    return 100.0 * max(0.0, 1.0 - rate), f"word error rate {rate:.3f}"
