"""The journal of a system's answers: `answers.jsonl` in its folder, one line an answer, written as it
arrives.

A line belongs to the whole configuration that was asked and to the question's wording, so that a setting that
changes is asked anew and one that does not is asked once, whatever interrupts the run. For one key the last
line counts.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from judgecal.engine import Progress
from judgecal.engine.log import Log
from judgecal.engine.run import run_to_end
from judgecal.errors import notice
from judgecal.experiment import CostEstimate, RunOptions
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.system import Asking, System, SystemAnswer
from judgecal.records import RETRIED_ON_RESUME, Context, Failure, as_plain, digest

FILE = "answers.jsonl"


class AnswerJournal:
    """The answers to one configuration of a system, held by one process at a time.

    Args:
        folder: the system's own; made if it is not there.
        config: what decides its answers, as JSON values.
        name: of the file, where it holds something else than a system's answers.

    Raises:
        BusyError: another process holds it.
    """

    def __init__(self, folder: Path, config: dict[str, Any], *, name: str = FILE) -> None:
        self._config = digest(config)[:16]
        self._log = _answers_log(folder / name).open()
        try:
            self._latest = _latest(self._log, self._config)
        except BaseException:
            self._log.close()
            raise

    def __enter__(self) -> AnswerJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.close()

    def settled(self, question: Question, *, retry_unscored: bool) -> SystemAnswer | None:
        """The answer that makes asking needless, or None where the question is due.

        Failures of the wire are due again; another failure only with `retry_unscored`.
        """
        return _settled(self._latest, question, retry_unscored=retry_unscored)

    def append(self, question: Question, answer: SystemAnswer) -> None:
        """Add one answer, as `Log.append`."""
        self._log.append((self._config, _key(question), answer))
        self._latest[_key(question)] = answer


_Row = tuple[str, str, SystemAnswer]
"""A configuration, a question's key, and the answer."""


def _latest(log: Log[_Row], config: str) -> dict[str, SystemAnswer]:
    """The last answer to each question under one configuration."""
    return {question: answer for asked_under, question, answer in log.rows() if asked_under == config}


def _settled(
    latest: Mapping[str, SystemAnswer], question: Question, *, retry_unscored: bool
) -> SystemAnswer | None:
    row = latest.get(_key(question))
    if row is None or row.error is None:
        return row
    return None if retry_unscored or row.error.kind in RETRIED_ON_RESUME else row


def stored_in(
    path: Path, config: dict[str, Any], questions: Sequence[Question], options: RunOptions
) -> dict[str, SystemAnswer]:
    """The same of one file, of what it holds under one configuration."""
    latest = _latest(_answers_log(path), digest(config)[:16])
    found = {one.group: _settled(latest, one, retry_unscored=options.retry_unscored) for one in questions}
    return {group: answer for group, answer in found.items() if answer is not None}


def preview_asking(system: System, questions: Sequence[Question], asking: Asking) -> CostEstimate:
    """Of a system that has no price: how many questions are due, and how many are answered."""
    stored = len(stored_in(asking.folder / FILE, system.config(), questions, asking.options))
    return CostEstimate(len(questions) - stored, stored, 0, 0.0)


def _key(question: Question) -> str:
    return digest([question.group, question.question])[:16]


def _line_of(row: _Row) -> bytes:
    config, question, answer = row
    return json.dumps({"config": config, "asked": question, **as_plain(answer)}).encode("ascii")


def _row_of(line: bytes) -> _Row:
    """Raises one of DAMAGED: the line holds no answer."""
    values = json.loads(line)
    config, asked = values.pop("config"), values.pop("asked")
    contexts, error = values.pop("contexts"), values.pop("error")
    if type(values["answer"]) not in (str, type(None)):
        raise ValueError("its answer is no text")
    answer = SystemAnswer(
        **values,
        contexts=None if contexts is None else tuple(Context(**one) for one in contexts),
        error=None if error is None else Failure(error["kind"], error["message"]),
    )
    if not (answer.answer is None) == (answer.error is not None):
        raise ValueError("it holds neither an answer nor why there is none")
    return config, asked, answer


_answers_log = functools.partial(Log[_Row], what="answer", encode=_line_of, decode=_row_of)


Answered = Callable[[Question, SystemAnswer], None]
"""Takes each answer as it comes."""


def ask_all(
    system: System,
    questions: Sequence[Question],
    asking: Asking,
    work_off: Callable[[Sequence[Question], Answered], Awaitable[None]],
) -> list[SystemAnswer]:
    """One answer a question, in their order: what the journal holds, and what `work_off` gives for the
    others.

    `work_off` gets the questions that are due, which may be none.

    Raises:
        BusyError: another process holds the folder.
    """
    config = system.config()
    with AnswerJournal(asking.folder, config) as journal:
        retry = asking.options.retry_unscored
        stored = {one.group: journal.settled(one, retry_unscored=retry) for one in questions}
        given = {group: answer for group, answer in stored.items() if answer is not None}
        due = [one for one in questions if one.group not in given]
        progress = None if asking.options.quiet else Progress(system.name, len(due))

        odd: list[float] = []  # scores of contexts

        def take(question: Question, answer: SystemAnswer) -> None:
            answer = _with_numbers(answer, odd)
            journal.append(question, answer)
            given[question.group] = answer
            if progress:
                progress.add(scored=answer.error is None, cost_usd=answer.cost_usd)

        async def main() -> None:
            await work_off(due, take)

        try:
            run_to_end(main)
        finally:
            if progress:
                progress.close()
            if odd:
                notice(
                    f"judgecal: {system.name}: {len(odd):,} scores of contexts are no finite numbers (such "
                    f"as {odd[0]}) and were left out"
                )
    return [dataclasses.replace(given[one.group], system=system.name) for one in questions]


def _with_numbers(answer: SystemAnswer, odd: list[float]) -> SystemAnswer:
    """An answer whose scores are finite numbers or None; what was none is added to `odd`."""
    bad = [
        one.score for one in answer.contexts or () if one.score is not None and not math.isfinite(one.score)
    ]
    if not bad:
        return answer
    odd += bad
    finite = (
        one if one.score is None or math.isfinite(one.score) else dataclasses.replace(one, score=None)
        for one in answer.contexts or ()
    )
    return dataclasses.replace(answer, contexts=tuple(finite))


async def ask_at_once(
    due: Sequence[Question],
    take: Answered,
    answer: Callable[[Question], Awaitable[SystemAnswer]],
    *,
    concurrency: int,
) -> None:
    """Ask questions, so many at once, and hand on each answer as it comes; an exception ends the others."""
    waiting = iter(due)

    async def one_after_the_other() -> None:
        for question in waiting:
            take(question, await answer(question))

    tasks = [asyncio.create_task(one_after_the_other()) for _ in range(min(concurrency, len(due)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
