"""`hallucination_overlap@local`: how far the answer is not made up, in percent; 100 is the best.

Graded, it is the verdict of `faithfulness_overlap`. `hallucination_overlap(share=0.6)@local` counts
sentences: one is made up where more than that share of its key words stand in no context, so that between the
two thresholds a sentence is neither made up nor faithful. `hallucination_overlap(rest=true)@local` is what
other tools call hallucination: 1 - faithfulness, 100 being the worst. An item without contexts gets 0, with
`rest=true` 100. Needs contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from judgecal.judges.local._words import NO_CLAIM, mean_held, share_told, supported

SCALE = "percentage"
SOURCE = "word and word-pair overlap by sentence"
NEEDS = "answer, contexts"


def hallucination_overlap(
    answer: str,
    contexts: Sequence[str] = (),
    *,
    share: Annotated[float, (0.0, 1.0)] = 0.0,
    rest: bool = False,
) -> tuple[float | None, str]:
    """How far they are held, or 100 x (1 - sentences made up / sentences); with `rest` 100 less that."""
    sentences = supported(answer, contexts, beside=not share)
    if not sentences:
        return None, NO_CLAIM
    made_up = [sentence.text for sentence in sentences if 1.0 - sentence.held > (share or 0.5)]
    good = len(sentences) - len(made_up)
    reason = share_told(good, len(sentences), "sentences", made_up)
    verdict = 100.0 * good / len(sentences) if share else 100.0 * mean_held(sentences)
    return 100.0 - verdict if rest else verdict, reason
