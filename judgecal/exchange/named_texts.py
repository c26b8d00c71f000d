"""Items out of records whose fields people named themselves, told by the names that are usual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgecal.exchange.exports import contexts_of, text_of
from judgecal.exchange.traced import asked_of
from judgecal.records import Item
from judgecal.tables.nested import nested

_ROLES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "user_input", "prompt", "instruction", "input", "user_query", "messages", "chat"),
    "answer": (
        "answer_under_test", "response", "answer", "output", "completion", "generation", "model_output",
        "actual_output",
    ),
    "reference": (
        "reference_answer", "reference", "expected_output", "expected_answer", "expected_response", "ground_truth",
        "expected", "target",
    ),
    "contexts": ("contexts", "context", "retrieved_contexts", "retrieval_context", "documents", "passages", "chunks"),
    "system": ("system", "model", "model_name"),
}  # fmt: skip


def named_item(item_id: str, record: Mapping[str, Any]) -> Item:
    """An item with the texts of a record; what has no usual name is a field of the item."""
    names = {name.lower().strip(): name for name in record}
    roles = {
        role: next(
            (names[one] for one in usual if one in names and record[names[one]] not in (None, "", [], {})),
            None,
        )
        for role, usual in _ROLES.items()
    }

    def found(role: str) -> Any:
        name = roles[role]
        return None if name is None else record[name]

    asked, reference = asked_of(nested(found("question"))), nested(found("reference"))
    references = reference if isinstance(reference, list) else [reference]
    rest = {name: text_of(value) for name, value in record.items() if name not in roles.values()}
    return Item(
        item_id,
        asked.question or item_id,
        asked.question,
        text_of(found("answer")),
        tuple(text for text in map(text_of, references) if text),
        system=text_of(found("system")) or None,
        contexts=contexts_of(nested(found("contexts"))),
        conversation=asked.conversation,
        fields={**asked.fields, **{name: text for name, text in rest.items() if text.strip()}},
    )
