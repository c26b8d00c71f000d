"""`context_precision@local`: share of the contexts that overlap with the reference answer, in percent.

A context counts where the Jaccard index of its key words and those of a reference answer (of the answer
itself where the item has no reference) is above `overlap`: `context_precision(overlap=0.2)@local`. A long
context beside a short answer has a small index whatever it says, so the threshold belongs to the length of
the contexts. `against=answer` compares with the answer in any case; `k=3` is precision at 3: of the first
three, over three. Needs contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from judgecal.judges.local._words import check_k, first, key_words, share_told
from judgecal.records import Item

SCALE = "percentage"
SOURCE = "Jaccard index of words"
NEEDS = "contexts, reference_answers (else the answer)"
CHECK = check_k


def context_precision(
    contexts: Sequence[str],
    item: Item,
    *,
    overlap: Annotated[float, (0.0, 1.0)] = 0.1,
    against: Literal["reference", "answer"] = "reference",
    k: str = "all",
) -> tuple[float | None, str]:
    """100 x contexts above the threshold / contexts or k; None where there is no key word to compare with."""
    references = item.reference_answers if against == "reference" else ()
    wanted = [held for reference in references or (item.answer,) if (held := key_words(reference))]
    if not wanted:
        return None, "neither reference nor answer has a key word to look for"
    chosen, n = first(contexts, k)
    missed = [text for text in chosen if _jaccard(key_words(text), wanted) <= overlap]
    good = len(chosen) - len(missed)
    return 100.0 * good / n, share_told(good, n, "contexts", missed)


def _jaccard(words: frozenset[str], others: Sequence[frozenset[str]]) -> float:
    """The largest index with one of the others."""
    shared = [(len(words & other), len(words) + len(other)) for other in others]
    return max(common / (whole - common) for common, whole in shared)
