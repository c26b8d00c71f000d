"""What an answerer is given beside a question where no index is searched.

Controlled: the reference documents, then those that BM25 ranks highest without them, so that a wrong answer
is the answerer's own. Naive (`topk`): BM25's first k, whatever they are. Closed book (`none`): no document.
Own (`own`): the contexts of the question's item, each with its number from 0 in front, as citations name it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgecal.goldset import GoldDocument
from judgecal.rag.questions import Question
from judgecal.rag.retrieval.indexes import Bm25Index
from judgecal.records import Context

_PLACES = ("first", "last", "middle")
_DEPENDS_ON: Mapping[str, tuple[str, ...]] = {
    "controlled": ("distractors", "position"),
    "topk": ("k",),
    "own": ("shuffle",),
}


class ContextConfig(BaseModel):
    """Which documents stand beside a question; an option of one kind is no part of another."""

    model_config = ConfigDict(extra="forbid", strict=True)
    # `search`: what the index finds. `controlled`: the reference documents and those that BM25 ranks highest
    # beside them. `topk`: BM25's first. `none`: closed book. `own`: those that the question's item has.
    kind: Literal["search", "controlled", "topk", "none", "own"] = "search"
    k: Annotated[int, Field(ge=1, le=10**9)] = 5  # documents of `topk`
    distractors: Annotated[int, Field(ge=0, le=10**9)] = 3  # documents beside the reference documents
    position: str = "first"  # of the reference documents among them: first, last, middle, or a number from 1
    shuffle: int | None = None  # the seed by which a question's own contexts are put into another order

    def problems(self) -> Iterator[str]:
        """Yield a message for each setting that makes no context."""
        last, place = self.distractors + 1, self.position
        if place not in _PLACES and not (place.isdecimal() and 1 <= int(place) <= last):
            yield (
                f"contexts.position must be {', '.join(_PLACES)} or a number from 1 to {last} (one more than "
                f"the distractors), found {place!r}"
            )
        if self.shuffle is not None and self.kind != "own":
            yield f"contexts.shuffle is for own contexts, found {self.kind}"

    def decides(self) -> dict[str, Any]:
        """The options that contexts of this kind depend on, with their values."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in _DEPENDS_ON.get(self.kind, ())}}


def question_contexts(
    questions: Sequence[Question], documents: Sequence[GoldDocument], options: ContextConfig
) -> dict[str, tuple[Context, ...] | str]:
    """Return group -> Contexts of Questions, from GoldDocuments by a ContextConfig, or why there are none.

    A controlled context cannot be made where the reference document is missing or empty, or where a question
    names none and yet has an answer.
    """
    if options.kind == "own":
        return {question.group: _own(question, options.shuffle) for question in questions}
    if options.kind == "none":
        return {question.group: () for question in questions}
    handed = [
        Context(
            f"{document.title}\n\n{document.text}" if document.title else document.text, document.document_id
        )
        for document in documents
    ]
    numbers = {document.document_id: number for number, document in enumerate(documents)}
    blank = {number for number, document in enumerate(documents) if not document.text.strip()}
    most = max((len(each.reference_documents) for each in questions), default=0)
    keep = max(options.k, options.distractors + most + len(blank))
    index = Bm25Index([document.text for document in documents])
    heads, _ = index.search([each.question for each in questions], keep)

    def problem(question: Question) -> str | None:
        """Why the reference documents cannot be handed over."""
        if not question.reference_documents and question.answerable:
            return "names no reference document"
        for name in question.reference_documents:
            if name not in numbers:
                return f"reference document {name} is not in the corpus"
            if numbers[name] in blank:
                return f"reference document {name} is empty"
        return None

    def served(place: int, question: Question) -> tuple[Context, ...] | str:
        head: list[int] = heads[place].tolist()
        if options.kind == "topk":
            return tuple(handed[number] for number in head[: options.k])
        references = [numbers[name] for name in question.reference_documents if name in numbers]
        others = [number for number in head if number not in references and number not in blank]
        chosen = others[: options.distractors]
        if why := problem(question):
            return why
        n, position = len(chosen), options.position
        places = {"first": 0, "last": n, "middle": n // 2}  # distractors before the references
        before = places[position] if position in places else min(int(position) - 1, n)
        chosen = [*chosen[:before], *references, *chosen[before:]]
        return tuple(handed[number] for number in chosen)

    return {each.group: served(place, each) for place, each in enumerate(questions)}


def _own(question: Question, seed: int | None) -> tuple[Context, ...] | str:
    """A question's own contexts, numbered; with a seed in another order, the same one for each question."""
    contexts = list(question.contexts)
    if not contexts:
        return "brings no context of its own"
    if empty := [context for context in contexts if not context.text.strip()]:
        named = empty[0].document_id or "one"
        return f"{len(empty)} of its contexts have no text, such as {named}"
    if seed is not None:
        random.Random(f"{seed} {question.group}").shuffle(contexts)
    numbered = enumerate(contexts)
    return tuple(replace(context, text=f"[{number}] {context.text}") for number, context in numbered)
