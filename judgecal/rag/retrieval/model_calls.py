"""Models that embed texts or rerank candidates, asked through the engine as judges are: their verdict is
their reply.

So they share its journals, budget, stored replies, retries and redaction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cached_property

from judgecal.engine import Message, Reading
from judgecal.models import ModelSpec, for_task, load_catalogue
from judgecal.models.catalogue import Task
from judgecal.records import ITEM_UNIT, Context, Failure, Item, digest
from judgecal.workspace import Workspace

TEXTS_A_CALL = 32
"""Texts that are embedded at once; of 4,096 dimensions they keep within the largest reply of the engine."""


class _TaskModel:
    """A model with another task than chat; its `name` is that of the model's alias, or its id."""

    unit = ITEM_UNIT
    schema = None
    _task: Task

    def __init__(self, name: str, *, workspace: Workspace) -> None:
        self.model: ModelSpec = for_task(load_catalogue(workspace).resolve(name), self._task)
        self.name = name

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over the model and its settings."""
        return digest([self._task, self.model.settings()])[:16]

    def check_items(self, items: Sequence[Item]) -> None:
        """Nothing more is asked for than texts."""

    def messages(self, item: Item) -> Sequence[Message]:
        """The question where there is one, then the contexts, a message each."""
        texts = [item.question] * bool(item.question) + [one.text for one in item.contexts]
        return [{"role": "user", "content": text} for text in texts]


class Embedder(_TaskModel):
    """Vectors of the contexts of an item; the verdict is the reply's text, as `transport.embeddings` writes
    it.

    Raises:
        InputError: there is no such model, or it is the one inside judgecal.
    """

    _task = "embeddings"

    def read(self, text: str) -> Reading:
        """The text, where it holds vectors that can be used."""
        from judgecal.engine.transport.embeddings import vectors_in

        try:
            vectors_in(text)
        except ValueError as error:
            return Reading(None, failure=Failure("parse", f"no vectors that can be used: {error}"))
        return Reading(text)


class RerankModel(_TaskModel):
    """The relevance of an item's contexts to its question; the verdict is a JSON list of scores, one a
    context.

    Raises:
        InputError: there is no such model, or it is the one inside judgecal.
    """

    _task = "rerank"

    def read(self, text: str) -> Reading:
        """The text, where all scores are finite numbers."""
        if not all(math.isfinite(score) for score in json.loads(text)):
            return Reading(None, failure=Failure("parse", f"a score is no finite number: {text:.80}"))
        return Reading(text)


def texts_to_embed(texts: Sequence[str]) -> list[Item]:
    """Texts as items of up to 32 each, in their order; one item's vectors come with one call.

    A text that is blank, which servers refuse, is sent as a full stop.
    """
    sent = [text if text.strip() else "." for text in texts]
    batches = [sent[start : start + TEXTS_A_CALL] for start in range(0, len(sent), TEXTS_A_CALL)]
    return [_to_embed(batch) for batch in batches]


def _to_embed(texts: Sequence[str]) -> Item:
    name = digest(list(texts))[:16]
    return Item(name, name, "", "", contexts=tuple(Context(text) for text in texts))
