"""A row of a production table as an item, and why parts of it are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from judgecal.judges import Judge, lacking_inputs
from judgecal.records import Item, digest

UNREADABLE = "cannot be read"
# Under which name the reader says what it could not read, for each input that is made of it.
_MADE_OF = {
    "answer": "response",
    "answer_under_test": "response",
    "context": "retrieved_context",
    "contexts": "retrieved_context",
    "chunk": "retrieved_context",
    "reference_answer": "expected_response",
    "reference_answers": "expected_response",
    "question": "request",
}
_ALWAYS = (
    "question",
    "answer",
    "answer_under_test",
    "response",
)  # what every item has, if only as an empty text
_WORDS = {
    "context": "context",
    "contexts": "context",
    "chunk": "context",
    "reference_answer": "expected response",
    "reference_answers": "expected response",
}


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row as an item, and why parts of it are not there: the name of the part -> the reason."""

    item: Item
    problems: Mapping[str, str] = field(default_factory=dict)

    def shown(self, judge: Judge) -> Item:
        """The item as a judge takes it: a prompt judge is shown no context without a text.

        One that reads all of the item may read the documents, which are no part of an item's sha: they become
        a part of its id, so that no verdict outlives them in the journal.
        """
        if "item" in judge.inputs:
            ids = [self.item.reference_documents, [context.document_id for context in self.item.contexts]]
            return replace(self.item, item_id=f"{self.item.item_id}#{digest(ids)[:8]}")
        if judge.kind != "prompt" or all(context.text.strip() for context in self.item.contexts):
            return self.item
        texts = tuple(context for context in self.item.contexts if context.text.strip())
        return replace(self.item, contexts=texts)

    def lacking(self, judge: Judge) -> str | None:
        """What a judge asks for and the row has not; None where it has all. An answer may be empty."""
        if (
            "item" in judge.inputs
        ):  # it reads what it needs: a part that cannot be read must not pass for none
            return "; ".join(why for why in self.problems.values() if UNREADABLE in why) or None
        absent = set(lacking_inputs(judge.inputs, self.shown(judge)))
        absent |= {
            name for name in judge.inputs if name in _ALWAYS and _MADE_OF.get(name, name) in self.problems
        }
        reasons = [
            self.problems.get(_MADE_OF.get(name, name), f"there is no {_WORDS.get(name, name)}")
            for name in judge.inputs
            if name in absent
        ]
        return "; ".join(dict.fromkeys(reasons)) or None
