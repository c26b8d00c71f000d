"""A pipeline of our own: documents cut into chunks, an index, perhaps a reranker, and a model that answers.

Every call to a model goes through the engine, with its journals in the folder: `retrieved.jsonl` holds what
was found for each question and how long that took, `embeddings.jsonl`, `summaries.jsonl` and
`reranking.jsonl` what models gave for that, `replies.jsonl` those of the model that answers. So an
interrupted run asks nobody again who has replied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from judgecal.engine.log import now
from judgecal.errors import InputError
from judgecal.experiment import (
    CostEstimate,
    models_of,
    open_journal,
    plan_calls,
    run_trials,
    stored_rows,
    together,
)
from judgecal.goldset import Document
from judgecal.models import ModelSpec
from judgecal.rag.answering.answerer import Answerer
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.answer_journal import AnswerJournal, stored_in
from judgecal.rag.evaluation.local_config import LocalConfig
from judgecal.rag.evaluation.local_retrieval import Retrieval
from judgecal.rag.evaluation.local_search import Retrieved, added, once, price_of
from judgecal.rag.evaluation.system import Asking, Setting, SystemAnswer
from judgecal.records import Item, Judgement
from judgecal.workspace import Workspace

__all__ = ["LocalConfig", "LocalSystem"]

RETRIEVED_FILE = "retrieved.jsonl"
"""In the system's folder: what was found for each question, as rows of `AnswerJournal`."""

REPLIES_FILE = "replies.jsonl"
"""In the system's folder: the journal of the model that answers; its verdicts are the answers' texts."""


class LocalSystem:
    """A pipeline of our own.

    The latency of an answer is that of its question alone: the search, the reranker's calls, and the reply of
    the model that answers; not the time in which the index was made, nor what a call waited for its turn. It
    is not known where a reply was stored by another experiment. The cost is that of the calls for the
    question; a stored reply counts at the model's price, as if it had been asked for. The tokens are those of
    the answer's call.

    Args:
        name: as tables show it.
        config: its table.
        settings: the factors with their values.
        documents: gives the texts that are searched.
        workspace: where signatures and model aliases are found.
    """

    shows_contexts = True

    def __init__(
        self,
        name: str,
        config: LocalConfig,
        *,
        settings: Mapping[str, Setting] | None = None,
        documents: Callable[[], Sequence[Document]],
        workspace: Workspace,
    ) -> None:
        self.name = name
        self.settings: Mapping[str, Setting] = dict(settings or {})
        self._config = config
        self._documents = documents
        self._workspace = workspace
        self._retrieval = Retrieval(name, config, documents, workspace)

    def config(self) -> dict[str, Any]:
        """The documents, and the settings that decide the contexts and the answer."""
        return {"retrieval": self._retrieval.config(), "answerer": self._answerer.config()}

    def models(self) -> Sequence[ModelSpec]:
        """Those of who answers, reranks, summarises and embeds; InputError: there is no such model."""
        asked = [self._answerer, *(respondent() for respondent in self._retrieval.respondents())]
        return models_of(one for one in asked if one is not None)

    def check(self, questions: Sequence[Question]) -> list[str]:
        """Settings, names, keys that are not set, and documents that lack."""
        found = list(self._config.problems())
        if not any(one.text.strip() for one in self._documents()):
            found.append(
                "there is no document with a text to search: give [documents] path, or a set that has some"
            )
        for respondent in (lambda: self._answerer, *self._retrieval.respondents()):
            try:
                asked = respondent()
                if asked is self._answerer:
                    found += self._answerer_problems()
                if asked is not None and asked.model is not None:
                    asked.model.key()
            except InputError as error:
                found += error.problems
        return [f"{self.name}: {problem}" for problem in dict.fromkeys(found)]

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """What `answer` would call now; before a search, what would be found is known from BM25."""
        options, estimates = once(asking), list[CostEstimate]()
        found = stored_in(asking.folder / RETRIEVED_FILE, self._retrieval.config(), questions, options)
        due = [one for one in questions if one.group not in found]
        if due:
            estimates, hits = self._retrieval.preview(due, asking)
            found |= {one.group: self._row(one, hit) for one, hit in zip(due, hits, strict=True)}
        replies = stored_rows(asking.folder / REPLIES_FILE)
        return together(
            [*estimates, plan_calls([self._answerer], _asked(questions, found), replies, options)]
        )

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """One answer a question, in their order; what the folder holds is not asked again."""
        found, options = self._retrieved(questions, asking), once(asking)
        items = _asked(questions, found)
        with open_journal(asking.folder / REPLIES_FILE, options) as journal:
            rows = run_trials(
                [self._answerer],
                items,
                journal=journal,
                options=options,
                budget=asking.budget,
                label=self.name,
            )
        replies = {row.item_id: row for row in rows}
        return [self._answered(found[one.group], replies.get(one.group)) for one in questions]

    # --- who is asked

    @cached_property
    def _answerer(self) -> Answerer:
        who = self._config.answerer
        return Answerer(
            f"{who.signature}@{who.model}", workspace=self._workspace, temperature=who.temperature
        )

    def _answerer_problems(self) -> list[str]:
        answerer, found = self._answerer, list[str]()
        if not answerer.reads_contexts:
            found.append(
                f"signature {answerer.signature.name} has no input context, so that no chunk would reach it"
            )
        if self._config.answerer.temperature is not None and answerer.model.sent_temperature is None:
            found.append(f"model {answerer.model.alias} takes no temperature: leave answerer.temperature out")
        return found

    # --- one question after the other

    def _retrieved(self, questions: Sequence[Question], asking: Asking) -> dict[str, SystemAnswer]:
        """What was found for each question, by its group: contexts, or why there are none."""
        with AnswerJournal(asking.folder, self._retrieval.config(), name=RETRIEVED_FILE) as journal:
            retry = asking.options.retry_unscored
            stored = {one.group: journal.settled(one, retry_unscored=retry) for one in questions}
            found = {group: one for group, one in stored.items() if one is not None}
            due = [one for one in questions if one.group not in found]
            for question, retrieved in zip(
                due, self._retrieval.find(due, asking) if due else (), strict=True
            ):
                found[question.group] = self._row(question, retrieved)
                journal.append(question, found[question.group])
        return found

    def _row(self, question: Question, found: Retrieved) -> SystemAnswer:
        contexts = tuple(one.context for one in found.candidates[: self._config.top_n])
        return SystemAnswer(
            self.name,
            question.group,
            None if found.failure else "",
            None if found.failure else contexts,
            found.failure,
            latency_s=found.seconds,
            cost_usd=found.cost_usd,
            at=now(),
        )

    def _answered(self, found: SystemAnswer, reply: Judgement | None) -> SystemAnswer:
        """What was found and what was replied to it, as one answer."""
        if reply is None:  # nothing was found, so nobody was asked
            return dataclasses.replace(found, system=self.name)
        return dataclasses.replace(
            found,
            system=self.name,
            answer=None if reply.verdict is None else str(reply.verdict),
            error=reply.error,
            latency_s=added(found.latency_s, reply.latency_s),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost_usd=added(found.cost_usd, price_of(reply, self._answerer.model)),
            at=reply.at,
        )


def _asked(questions: Sequence[Question], found: Mapping[str, SystemAnswer]) -> list[Item]:
    """The questions for which something was found, with their contexts."""
    return [one.item(found[one.group].contexts or ()) for one in questions if found[one.group].error is None]
