"""`recall_at_k@local`: share of the contexts that hold a trigram of the answer, over k, in percent.

How much of what was retrieved the answer takes up, as some evaluations define recall at k without reference
documents: a context counts where three neighbouring words of the answer stand in it (all, of an answer of one
or two). `recall_at_k(k=5)@local` takes the first five, over five; else it is over all. Needs contexts.
"""

from __future__ import annotations

from collections.abc import Sequence

from judgecal.judges.local._words import check_k, first, runs, share_told, words

SCALE = "percentage"
SOURCE = "trigram overlap over k"
CHECK = check_k
_LENGTH = 3


def recall_at_k(answer: str, contexts: Sequence[str], *, k: str = "all") -> tuple[float | None, str]:
    """100 x contexts with a trigram of the answer / k; None where the answer holds no word."""
    length = min(_LENGTH, len(words(answer)))
    if not length:
        return None, "the answer holds no word to look for"
    wanted = runs(answer, length)
    chosen, n = first(contexts, k)
    missed = [context for context in chosen if wanted.isdisjoint(runs(context, length))]
    good = len(chosen) - len(missed)
    return 100.0 * good / n, share_told(good, n, "contexts", missed)
