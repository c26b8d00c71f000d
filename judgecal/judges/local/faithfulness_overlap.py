"""`faithfulness_overlap@local`: how far the contexts hold the answer's sentences, in percent.

Of each sentence the mean of three shares: of its key words in the contexts, of its neighbouring words that
stand side by side there, and of its key words at most in one sentence of a context; sentences count by their
key words. Words that the contexts only hold strewn about weigh little so.
`faithfulness_overlap(share=0.6)@local` counts sentences instead: those with more than that share of their key
words in the contexts, whatever the order. A stand-in for the faithfulness that RAG evaluations ask a model
for: it sees no negation or paraphrase, and takes "the text does not say" for a claim. An item without
contexts gets 0, as nothing holds its answer. Needs contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from judgecal.judges.local._words import NO_CLAIM, mean_held, share_told, supported

SCALE = "percentage"
SOURCE = "word and word-pair overlap by sentence"
NEEDS = "answer, contexts"


def faithfulness_overlap(
    answer: str, contexts: Sequence[str] = (), *, share: Annotated[float, (0.0, 1.0)] = 0.0
) -> tuple[float | None, str]:
    """100 x the mean of the sentences' shares, or sentences above `share` / sentences.

    None where no sentence has a key word.
    """
    sentences = supported(answer, contexts, beside=not share)
    if not sentences:
        return None, NO_CLAIM
    missed = [sentence.text for sentence in sentences if sentence.held <= (share or 0.5)]
    good = len(sentences) - len(missed)
    reason = share_told(good, len(sentences), "sentences", missed)
    return 100.0 * (good / len(sentences) if share else mean_held(sentences)), reason
