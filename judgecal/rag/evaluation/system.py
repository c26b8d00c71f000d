"""What a system is: anything that answers questions and may show the contexts that it answered from.

Answers are kept in a journal, `answers.jsonl` in the system's folder, one line an answer, written as it
arrives. A line belongs to the whole configuration that was asked and to the question's wording, so that a
setting that changes is asked anew and one that does not is asked once, whatever interrupts the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
import math
import numbers
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from judgecal.engine.budget import Budget, CostEstimate
from judgecal.engine.log import Log
from judgecal.engine.run import Progress, RunOptions, run_to_end
from judgecal.errors import notice
from judgecal.models import ModelSpec
from judgecal.rag.questions import Question
from judgecal.records import RETRIED_ON_RESUME, Context, Failure, Item, as_plain, digest, well_formed

MOST_BYTES = 10_000_000
"""The longest answer that is taken, its contexts included; contexts are larger than what a judge says."""

Setting = str | int | float | bool
"""The value of a factor."""


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """What a system gave for one question, or the failure in its place."""

    system: str  # its name, with the settings that differ in a sweep
    question: str  # the group of the question
    answer: str | None  # "" where the system said nothing; None where `error` says why there is none
    contexts: tuple[Context, ...] | None = None  # best first; None where the system shows none
    error: Failure | None = None
    latency_s: float | None = None  # from the request to the whole answer; None where it was not asked now
    first_s: float | None = None  # to the first token or byte; None where that cannot be told
    prompt_tokens: int | None = None  # as the model reported them, as `completion_tokens`
    completion_tokens: int | None = None
    cost_usd: float | None = None  # summed over attempts, None where it is not known
    at: str = ""  # UTC, ISO 8601; "" where it is not known

    def __post_init__(self) -> None:
        """Whoever gave it, and through whichever file: texts that every file can hold."""

        def clean(context: Context) -> Context:
            document = context.document_id and well_formed(context.document_id)
            return Context(well_formed(context.text), document, context.score)

        object.__setattr__(self, "answer", self.answer and well_formed(self.answer))
        if self.contexts is not None:
            object.__setattr__(self, "contexts", tuple(map(clean, self.contexts)))
        if self.error is not None:
            object.__setattr__(self, "error", Failure(self.error.kind, well_formed(self.error.message)))

    @property
    def item_id(self) -> str:
        """The id of the answer's item, `<group>::<system>`."""
        return f"{self.question}::{self.system}"

    def item(self, question: Question) -> Item:
        """Return the answer, joined with a Question, as the Item that judges see and `gold sheet` draws."""
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
            expect=question.expect,
        )


@dataclass(frozen=True, slots=True)
class Asking:
    """How systems are asked."""

    folder: Path  # the system's own, in the experiment: its journals and what it has built are kept there
    options: RunOptions  # of calls to models
    # Shared by all systems and judges of the run. What calls models spends of it; the servers and functions
    # of others have no price that we know.
    budget: Budget


class System(Protocol):
    """A system, made of its table in the configuration; making it calls nobody and reads no document."""

    name: str  # as tables show it: `NAME`, in a sweep `NAME(chunk=512, top_n=2)`

    @property
    def shows_contexts(self) -> bool:
        """Whether answers come with their contexts."""
        ...

    def config(self) -> dict[str, Any]:
        """What decides its answers, as JSON values and without a key: what a run resumes by."""
        ...

    def models(self) -> Sequence[ModelSpec]:
        """The models that it calls through the engine, whose prices a budget must know."""
        return ()

    def check(self, questions: Sequence[Question]) -> list[str]:
        """What would keep it from answering, without its name, said before the first call."""
        return []

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """Return the CostEstimate of answering Questions under an Asking (folder and options)."""
        retry = asking.options.retry_unscored
        journal = AnswerJournal(asking.folder / ANSWERS_FILE, self.config(), retry_unscored=retry)
        stored = len(journal.settled(questions))
        return CostEstimate(len(questions) - stored, stored, 0, 0.0)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """Return a list with a SystemAnswer to each of the Questions, in order, asked under an Asking.

        What the folder holds of an earlier run is not asked again, but for failures of the wire.
        """
        ...


def contexts_of(value: Any) -> tuple[Context, ...]:
    """Return a tuple of Contexts from a value: a text, or a list of texts or `{text, document_id, score}`.

    A score that is no finite number (numpy's are numbers) is left out, and that is said once a run.

    Raises:
        ValueError: it is something else; the message says which one and what was found.
    """
    contexts = []
    for place, given in enumerate(value if isinstance(value, list | tuple) else [value], start=1):
        fields: Any = given if isinstance(given, Mapping) else {"text": given}
        if isinstance(given, Context):
            fields = dataclasses.asdict(given)
        text, document, score = fields.get("text"), fields.get("document_id"), fields.get("score")
        if not isinstance(text, str):
            needed = "a text or {text, document_id, score} is needed"
            raise ValueError(f"number {place}: {needed}, found {given!r:.80}")
        if score is not None:
            number, is_number = math.nan, isinstance(score, numbers.Real) and not isinstance(score, bool)
            if is_number:
                with contextlib.suppress(OverflowError):  # whole numbers have no end
                    number = float(score)
            if not math.isfinite(number):
                _say_left_out()
            score = number if math.isfinite(number) else None
        contexts.append(Context(text, None if document is None else str(document), score))
    return tuple(contexts)


@functools.cache
def _say_left_out() -> None:
    notice("judgecal: some scores of contexts are not finite numbers, so we left them out")


# --- answers that were given

ANSWERS_FILE = "answers.jsonl"

_Row = tuple[str, str, SystemAnswer]
"""A configuration, a question's key, and the answer."""


class AnswerJournal(Log[_Row]):
    """The answers to one configuration of a system; for one question the last line counts.

    Args:
        config: what decides its answers, as JSON values.
        retry_unscored: whether failures are due again that are none of the wire.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], *, retry_unscored: bool) -> None:
        super().__init__(path, "answer", encode=_line_of, decode=_row_of)
        self._config, self._retry = digest(config)[:16], retry_unscored

    def settled(self, questions: Sequence[Question]) -> dict[str, SystemAnswer]:
        """Return group -> stored SystemAnswer for those Questions that need not be asked again."""
        latest = {key: answer for config, key, answer in self.rows() if config == self._config}
        answers = {question.group: latest.get(_key(question)) for question in questions}
        return {
            group: answer
            for group, answer in answers.items()
            if answer is not None
            and (answer.error is None or not (self._retry or answer.error.kind in RETRIED_ON_RESUME))
        }

    def add(self, question: Question, answer: SystemAnswer) -> None:
        self.append((self._config, _key(question), answer))


def _key(question: Question) -> str:
    return digest([question.group, question.question])[:16]


def _line_of(row: _Row) -> bytes:
    config, question, answer = row
    return json.dumps({"config": config, "asked": question, **as_plain(answer)}).encode("ascii")


def _row_of(line: bytes) -> _Row:
    """Raises one of DAMAGED: the line holds no answer."""
    values = json.loads(line)
    config, question = values.pop("config"), values.pop("asked")
    contexts, error = values.pop("contexts"), values.pop("error")
    if type(values["answer"]) not in (str, type(None)):
        raise ValueError("its answer is not text")
    answer = SystemAnswer(
        **values,
        contexts=None if contexts is None else tuple(Context(**context) for context in contexts),
        error=None if error is None else Failure(error["kind"], error["message"]),
    )
    if not (answer.answer is None) == (answer.error is not None):
        raise ValueError("it holds neither an answer nor why there is none")
    return config, question, answer


Ask = Callable[[Question], Awaitable[SystemAnswer]]


def ask_all(
    system: System,
    questions: Sequence[Question],
    asking: Asking,
    connected: Callable[[], AbstractAsyncContextManager[Ask]],
    *,
    concurrency: int,
) -> list[SystemAnswer]:
    """Ask a System Questions under an Asking by a `connected` function at a concurrency: SystemAnswers.

    `connected` opens what asks one question, so many of which are asked at once.

    Raises:
        BusyError: another process holds the folder.
    """
    options, journal_file = asking.options, asking.folder / ANSWERS_FILE
    with AnswerJournal(
        journal_file, system.config(), retry_unscored=options.retry_unscored
    ).open() as journal:
        answers = journal.settled(questions)
        due = [question for question in questions if question.group not in answers]
        progress = None if options.quiet else Progress(system.name, len(due))
        waiting = iter(due)

        async def one_after_the_other(ask: Ask) -> None:
            for question in waiting:
                answer = await ask(question)
                journal.add(question, answer)
                answers[question.group] = answer
                if progress:
                    progress.add(scored=answer.error is None, cost_usd=answer.cost_usd)

        async def main() -> None:
            async with connected() as ask:
                places = range(min(concurrency, len(due)))
                tasks = [asyncio.create_task(one_after_the_other(ask)) for _ in places]
                try:
                    await asyncio.gather(*tasks)
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)

        try:
            if due:
                run_to_end(main)
        finally:
            if progress:
                progress.close()
    return [dataclasses.replace(answers[question.group], system=system.name) for question in questions]
