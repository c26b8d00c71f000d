"""`context_precision@local`: share of the contexts that overlap with the reference answer, in percent.

A context counts where the Jaccard index of its key words and those of a reference answer (of the answer
itself where the item has no reference) is above `overlap`: `context_precision(overlap=0.2)@local`. A long
context beside a short answer has a small index whatever it says, so the threshold belongs to the length of
the contexts. Needs contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from judgecal.judges.local._words import key_words, share_told
from judgecal.records import Item

SCALE = "percentage"
SOURCE = "Jaccard index of words"
NEEDS = "contexts, reference_answers (else the answer)"


def context_precision(
    contexts: Sequence[str], item: Item, *, overlap: Annotated[float, (0.0, 1.0)] = 0.1
) -> tuple[float | None, str]:
    """100 x contexts above the threshold / contexts; None where there is no key word to compare with."""
    wanted = [found for one in item.reference_answers or (item.answer,) if (found := key_words(one))]
    if not wanted:
        return None, "neither reference nor answer has a key word to look for"
    missed = [one for one in contexts if _jaccard(key_words(one), wanted) <= overlap]
    good = len(contexts) - len(missed)
    return 100.0 * good / len(contexts), share_told(good, len(contexts), "contexts", missed)


def _jaccard(one: frozenset[str], others: Sequence[frozenset[str]]) -> float:
    """The largest index with one of the others."""
    shared = [(len(one & other), len(one) + len(other)) for other in others]
    return max(both / (whole - both) for both, whole in shared)
