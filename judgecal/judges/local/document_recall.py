"""`document_recall@local`: share of the item's reference documents that are among its contexts, in percent.

Recall of retrieval by `document_id`, compared letter for letter; no text is read. Needs `reference_documents` and
contexts with a `document_id`.
"""

from __future__ import annotations

from judgecal.records import Item

SCALE = "percentage"


def document_recall(item: Item) -> float:
    """100 x reference documents found / reference documents. ValueError: one side names no document."""
    wanted = frozenset(item.reference_documents)
    retrieved = {context.document_id for context in item.contexts if context.document_id}
    if not wanted or not retrieved:
        raise ValueError(f"there is no {'document id in the contexts' if wanted else 'reference document'}")
    return 100.0 * len(wanted & retrieved) / len(wanted)
