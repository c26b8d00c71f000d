"""`document_recall@local`: share of the item's reference documents that are among its contexts, in percent.

Recall of retrieval by `document_id`, compared letter for letter; no text is read. An item without contexts
gets 0: nothing was retrieved. Needs `reference_documents` and contexts with a `document_id`.
"""

from __future__ import annotations

from judgecal.judges.local._words import share_told
from judgecal.records import Item

SCALE = "percentage"
SOURCE = "recall of retrieval"
NEEDS = "reference_documents, contexts with a document_id"


def document_recall(item: Item) -> tuple[float | None, str]:
    """100 x reference documents found / reference documents; None where a side has no id."""
    wanted = tuple(dict.fromkeys(item.reference_documents))
    retrieved = {context.document_id for context in item.contexts if context.document_id}
    if not wanted:
        return None, "the item has no reference documents"
    if item.contexts and not retrieved:
        return None, "the item has no contexts with a document_id"
    missed = [document for document in wanted if document not in retrieved]
    n_retrieved = len(wanted) - len(missed)
    return 100.0 * n_retrieved / len(wanted), share_told(
        n_retrieved, len(wanted), "reference documents", missed
    )
