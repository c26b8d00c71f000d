"""The document of `cache path` and `cache clear`."""

from __future__ import annotations

from judgecal.engine.cache import StoredReplies
from judgecal.records import Headline
from judgecal.report.document import Document
from judgecal.report.numbers import count


def replies_document(result: StoredReplies) -> Document:
    """Where the store is and what it holds, or held."""
    if result.n_deleted is not None:
        said = f"{_replies(result.n_deleted)} deleted from {result.path}."
        because = "Journals of experiments stay: what they hold is not called again."
        return Document(
            "Stored replies", "", Headline("cleared", said, (because,), next="judgecal score"), []
        )
    held = f"{_replies(result.n)}, {result.n_bytes / 1e6:,.1f} MB"
    because = (
        "A request that was answered before is taken from there and costs nothing; --no-cache asks anew."
    )
    where = f"Replies are stored in {result.path} ({held})."
    return Document(
        "Stored replies", "", Headline("stored", where, (because,), next="judgecal cache clear"), []
    )


def _replies(n: int) -> str:
    return "1 reply" if n == 1 else f"{count(n)} replies"
