"""What a system is: anything that answers questions and may show the contexts that it answered from."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from judgecal.engine import Budget
from judgecal.experiment import CostEstimate, RunOptions
from judgecal.models import ModelSpec
from judgecal.rag.answering.questions import Question
from judgecal.records import Context, Failure, Item, well_formed

MOST_BYTES = 10_000_000
"""The longest answer that is taken, its contexts included; contexts are larger than what a judge says."""

Setting = str | int | float | bool
"""The value of a factor."""


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """What a system gave for one question, or the failure in its place.

    Attributes:
        system: its name, with the settings that differ in a sweep.
        question: the group of the question.
        answer: the text, "" where the system said nothing; None where there is no answer, then `error` says
            why.
        contexts: what it answered from, best first; None where the system shows none.
        error: why there is no answer; None where there is one.
        latency_s: from the request to the whole answer, None where the system was not asked now.
        first_s: from the request to the first token or byte, None where that cannot be told.
        prompt_tokens, completion_tokens: as the model told them, None where it did not.
        cost_usd: summed over attempts, None where it is not known.
        at: UTC, ISO 8601; "" where it is not known.
        repeat: which of several answers to one question, from 0.
    """

    system: str
    question: str
    answer: str | None
    contexts: tuple[Context, ...] | None = None
    error: Failure | None = None
    latency_s: float | None = None
    first_s: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    at: str = ""
    repeat: int = field(default=0, metadata={"json": False})  # journals of evaluate hold one answer each

    def __post_init__(self) -> None:
        """Whoever gave it, and through whichever file: texts that every file can hold."""
        if self.answer is not None:
            object.__setattr__(self, "answer", well_formed(self.answer))
        if self.contexts is not None:
            object.__setattr__(self, "contexts", tuple(map(_well_formed, self.contexts)))
        if self.error is not None:
            object.__setattr__(self, "error", Failure(self.error.kind, well_formed(self.error.message)))

    @property
    def item_id(self) -> str:
        """Of the answer as an item: `<group>::<system>`, from the second repeat on `::2` ..."""
        return f"{self.question}::{self.system}" + (f"::{self.repeat + 1}" if self.repeat else "")

    def item(self, question: Question) -> Item:
        """The answer as judges see it and `gold sheet` draws it."""
        return Item(
            self.item_id,
            question.group,
            question.question,
            self.answer or "",
            reference_answers=question.reference_answers,
            system=self.system,
            reference_documents=question.reference_documents,
            contexts=self.contexts or (),
            tags=question.tags,
        )


@dataclass(frozen=True, slots=True)
class Asking:
    """How systems are asked.

    Attributes:
        folder: the system's own, in the experiment: its journals and what it has built are kept there.
        options: of calls to models.
        budget: shared by all systems and judges of the run. What calls models spends of it; the servers and
            functions of others have no price that we know.
    """

    folder: Path
    options: RunOptions
    budget: Budget


class System(Protocol):
    """A system, made of its table in the configuration; making it calls nobody and reads no document."""

    @property
    def name(self) -> str:
        """As tables show it: `NAME`, in a sweep `NAME(chunk=512, top_n=2)`."""
        ...

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The factors with their values, in the order of the configuration."""
        ...

    @property
    def shows_contexts(self) -> bool:
        """Whether answers come with their contexts."""
        ...

    def config(self) -> dict[str, Any]:
        """What decides its answers, as JSON values and without a key: what a run resumes by."""
        ...

    def models(self) -> Sequence[ModelSpec]:
        """The models that it calls through the engine, whose prices a budget must know."""
        ...

    def check(self, questions: Sequence[Question]) -> list[str]:
        """What would keep it from answering, said before the first call."""
        ...

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """What `answer` would call now; nothing is written."""
        ...

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """One answer a question, in their order. What the folder holds of an earlier run is not asked again,
        but for failures of the wire.
        """
        ...


def contexts_of(value: Any) -> tuple[Context, ...]:
    """What a system gave as its contexts: a text, or a list of texts or of `{text, document_id?, score?}`.

    A score that is no finite number becomes NaN or stays infinite; `ask_all` leaves it out and says so.

    Raises:
        ValueError: it is something else; the message says which one and what was found.
    """
    listed = value if isinstance(value, list | tuple) else [value]
    return tuple(_context(one, place) for place, one in enumerate(listed, start=1))


def _context(value: Any, place: int) -> Context:
    if isinstance(value, Context):
        value = {"text": value.text, "document_id": value.document_id, "score": value.score}
    given: Mapping[str, Any] = value if isinstance(value, Mapping) else {"text": value}
    text, document, score = given.get("text"), given.get("document_id"), given.get("score")
    if not isinstance(text, str):
        raise ValueError(
            f"number {place}: a text or {{text, document_id, score}} is needed, found {value!r:.80}"
        )
    return Context(
        text, None if document is None else str(document), None if score is None else number_of(score)
    )


def number_of(value: Any) -> float:
    """A number, one of numpy's too; NaN where it is none, or none that a double holds."""
    try:
        return math.nan if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
    except OverflowError:  # whole numbers have no end
        return math.nan


def _well_formed(context: Context) -> Context:
    document = context.document_id
    return Context(
        well_formed(context.text), None if document is None else well_formed(document), context.score
    )
