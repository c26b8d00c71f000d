"""Local judges of retrieval: whether the contexts hold what the reference, or the answer, says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from judgecal.errors import InputError
from judgecal.judges.local import local_judge
from judgecal.judges.local._words import NO_REFERENCE, key_words, runs, share_in_words, words
from judgecal.records import Item

_LENGTH = 3  # of the runs of words that are looked for


def check_k(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Refuse settings whose `k` is neither a number of contexts nor `all`."""
    k = settings.get("k", "all")
    if k != "all" and not (k.isascii() and k.isdigit() and int(k)):
        raise InputError(f"k must be a whole number from 1, or all, found {k!r:.40}")
    return ()


def _first(contexts: Sequence[str], k: str) -> tuple[Sequence[str], int]:
    """The first `k` contexts, and over how many they count: over `k`, were fewer returned, or over all."""
    return (contexts, len(contexts)) if k == "all" else (contexts[: int(k)], int(k))


@local_judge(
    "percentage",
    source="Jaccard index of words",
    needs="contexts, reference_answers (else the answer)",
    check=check_k,
)
def context_precision(
    contexts: Sequence[str],
    item: Item,
    *,
    overlap: Annotated[float, (0.0, 1.0)] = 0.1,
    against: Literal["reference", "answer"] = "reference",
    k: str = "all",
) -> tuple[float | None, str]:
    """Share of the contexts that overlap with an item's reference answer, in percent, with a note why.

    A context counts where the Jaccard index of its key words and those of a reference answer (of the answer
    itself where the item has no reference) is above `overlap`: `context_precision(overlap=0.2)@local`. A long
    context beside a short answer has a small index whatever it says, so the threshold belongs to the length
    of the contexts. `against=answer` compares with the answer in any case; `k=3` is precision at 3: of the
    first three, over three. Needs contexts.
    """
    references = item.reference_answers if against == "reference" else ()
    wanted = [held for reference in references or (item.answer,) if (held := key_words(reference))]
    if not wanted:
        return None, "neither reference nor answer has a key word to look for"
    chosen, n = _first(contexts, k)
    missed = [text for text in chosen if _jaccard(key_words(text), wanted) <= overlap]
    good = len(chosen) - len(missed)
    return 100.0 * good / n, share_in_words(good, n, "contexts", missed)


def _jaccard(words: frozenset[str], others: Sequence[frozenset[str]]) -> float:
    """The largest index with one of the others."""
    shared = [(len(words & other), len(words) + len(other)) for other in others]
    return max(common / (whole - common) for common, whole in shared)


@local_judge("percentage", source="trigram recall", needs="reference_answers, contexts")
def context_recall(
    reference_answers: Sequence[str], contexts: Sequence[str] = ()
) -> float | tuple[None, str]:
    """Share of the reference answer's word trigrams that the contexts hold, in percent, with a note why.

    Of a reference of one or two words the whole is looked for. What a context says in other words is not
    seen. The best of equally right references counts. An item without contexts gets 0. Needs contexts and a
    reference answer.
    """
    shares = [_share(reference, contexts) for reference in reference_answers if words(reference)]
    return 100.0 * max(shares) if shares else (None, NO_REFERENCE)


def _share(reference: str, contexts: Sequence[str]) -> float:
    length = min(_LENGTH, len(words(reference)))
    wanted = runs(reference, length)
    held = frozenset[tuple[str, ...]]().union(*(wanted & runs(context, length) for context in contexts))
    return len(held) / len(wanted)


@local_judge("percentage", source="trigram overlap over k", check=check_k)
def recall_at_k(answer: str, contexts: Sequence[str], *, k: str = "all") -> tuple[float | None, str]:
    """Share of the contexts that hold a trigram of the answer, over k, in percent, with a note why.

    How much of what was retrieved the answer takes up, as some evaluations define recall at k without
    reference documents: a context counts where three neighbouring words of the answer stand in it (all, of an
    answer of one or two). `recall_at_k(k=5)@local` takes the first five, over five; else it is over all.
    Needs contexts.
    """
    length = min(_LENGTH, len(words(answer)))
    if not length:
        return None, "the answer holds no word to look for"
    wanted = runs(answer, length)
    chosen, n = _first(contexts, k)
    missed = [context for context in chosen if wanted.isdisjoint(runs(context, length))]
    good = len(chosen) - len(missed)
    return 100.0 * good / n, share_in_words(good, n, "contexts", missed)


@local_judge(
    "percentage", source="recall of retrieval", needs="reference_documents, contexts with a document_id"
)
def document_recall(item: Item) -> tuple[float | None, str]:
    """Share of an item's reference documents that are among its contexts, in percent, with a note why.

    Recall of retrieval by `document_id`, compared letter for letter; no text is read. An item without
    contexts gets 0: nothing was retrieved. Needs `reference_documents` and contexts with a `document_id`.
    """
    wanted = tuple(dict.fromkeys(item.reference_documents))
    retrieved = {context.document_id for context in item.contexts if context.document_id}
    if not wanted:
        return None, "the item has no reference documents"
    if item.contexts and not retrieved:
        return None, "the item has no contexts with a document_id"
    missed = [document for document in wanted if document not in retrieved]
    n, n_retrieved = len(wanted), len(wanted) - len(missed)
    return 100.0 * n_retrieved / n, share_in_words(n_retrieved, n, "reference documents", missed)
