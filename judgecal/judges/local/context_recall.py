"""`context_recall@local`: share of the reference answer's word trigrams that stand in the contexts, in
percent.

Of a reference of one or two words the whole is looked for. What a context says in other words is not seen.
The best of equally right references counts. An item without contexts gets 0. Needs contexts and a reference
answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from judgecal.judges.local._words import NO_REFERENCE, runs, words

SCALE = "percentage"
SOURCE = "trigram recall"
NEEDS = "reference_answers, contexts"
_LENGTH = 3


def context_recall(
    reference_answers: Sequence[str], contexts: Sequence[str] = ()
) -> float | tuple[None, str]:
    """100 x trigrams found / trigrams of the reference; None where no reference holds a word."""
    shares = [_share(reference, contexts) for reference in reference_answers if words(reference)]
    return 100.0 * max(shares) if shares else (None, NO_REFERENCE)


def _share(reference: str, contexts: Sequence[str]) -> float:
    length = min(_LENGTH, len(words(reference)))
    wanted = runs(reference, length)
    held = frozenset[tuple[str, ...]]().union(*(wanted & runs(context, length) for context in contexts))
    return len(held) / len(wanted)
