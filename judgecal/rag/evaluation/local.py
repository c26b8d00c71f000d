"""A pipeline of our own: documents cut into chunks, an index, perhaps a reranker, and a model that answers.

Every call to a model goes through the engine, with its journals in the folder: `retrieved.jsonl` holds what
was found for each question and how long that took, `reranking.jsonl` what the reranker gave for that,
`replies.jsonl` those of the model that answers; beside the folder `embeddings.jsonl` holds the vectors of all
systems. So an interrupted run asks nobody again who has replied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgecal.engine import CallFailed
from judgecal.engine.log import now
from judgecal.errors import InputError
from judgecal.experiment import CostEstimate, models_of, together
from judgecal.goldset import GoldDocument
from judgecal.judges import Respondent
from judgecal.models import ModelSpec
from judgecal.rag.evaluation.answerer import Answerer
from judgecal.rag.evaluation.contexts import ContextConfig, serve
from judgecal.rag.evaluation.local_search import (
    RERANKING_FILE,
    Embedder,
    Retrieved,
    Searched,
    added,
    asked_each,
    call,
    embedded,
    plan,
    plan_vectors,
    price_of,
    rerank,
    reranker_named,
    shared,
    texts_to_embed,
    with_candidates,
)
from judgecal.rag.evaluation.system import AnswerJournal, Asking, System, SystemAnswer
from judgecal.rag.questions import Question
from judgecal.rag.retrieval.chunking import Chunk, ChunkOptions, chunks_of
from judgecal.rag.retrieval.indexes import Bm25Index, DenseIndex, embedding_model
from judgecal.records import RETRIED_ON_RESUME, ErrorKind, Failure, Item, digest
from judgecal.workspace import Workspace

# Journals in the system's folder: what was found, as rows of `AnswerJournal`; what the answerer replied.
RETRIEVED_FILE, REPLIES_FILE = "retrieved.jsonl", "replies.jsonl"
_VERSION = "3"  # counts changes of the code that change what is found: of chunks, BM25, vectors
_TABLE = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
Many = Annotated[int, Field(ge=1, le=10_000)]


class AnswererConfig(BaseModel):
    """Who answers, and what it is told."""

    model_config = _TABLE
    signature: str = "answer_v1"  # a signature with an input `context`
    model: str = "embedded"  # an alias or a litellm id
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None  # by default that of the alias
    system_message: str | None = None  # in the place of the signature's instructions
    refusal_message: str | None = None  # the words to refuse with, which the instructions then ask for


class LocalConfig(BaseModel):
    """The table of a local pipeline."""

    model_config = _TABLE
    contexts: ContextConfig = ContextConfig()  # what is handed over instead of what the index finds
    chunk: ChunkOptions = ChunkOptions()  # how documents are cut: whole sentences up to a size
    index: str = "bm25"  # `bm25`, or `embed:MODEL`, an alias or a litellm id
    # `plain`: the index's best chunks. `rerank`: the best of `top_k` by the reranker. `parent`: the whole
    # documents of the best chunks, each once. `both`: those of the chunks that the reranker puts first.
    strategy: Literal["plain", "rerank", "parent", "both"] = "plain"
    top_k: Many = 10  # chunks that the reranker is given; with parents the best one of as many documents
    top_n: Many = 3  # chunks, or documents, that the answerer is given
    # A judge of single contexts, or a reranking model's alias or litellm id; ties stay in the index's order.
    reranker: str = "mosaic/chunk_relevance@embedded"
    answerer: AnswererConfig = AnswererConfig()  # who answers from them

    @property
    def reranks(self) -> bool:
        """Whether a reranker has a say."""
        return self.strategy in ("rerank", "both")

    def problems(self) -> Iterator[str]:
        """What of the settings makes no pipeline, one message each."""
        yield from self.chunk.problems()
        try:
            embedding_model(self.index)
        except InputError as error:
            yield from error.problems
        yield from self.contexts.problems()
        if self.reranks and self.top_n > self.top_k:
            yield (
                "top_n must not be above top_k, which the reranker chooses from: "
                f"found {self.top_n} and {self.top_k}"
            )


@dataclass
class LocalSystem(System):
    """A pipeline of our own.

    The latency of an answer is that of its question alone: the search, the reranker's calls, and the reply of
    the model that answers; not the time in which the index was made, nor what a call waited for its turn. It
    is not known where a reply was stored by another experiment. The cost is that of the calls for the
    question; a stored reply counts at the model's price, as if it had been asked for. The tokens are those of
    the answer's call.
    """

    name: str
    table: LocalConfig
    documents: Callable[[], Sequence[GoldDocument]]  # the texts that are searched
    workspace: Workspace  # where signatures and model aliases are found

    @property
    def shows_contexts(self) -> bool:
        """Whether answers rest on any: not closed book."""
        return self.table.contexts.kind != "none"

    # --- who is called

    @cached_property
    def answerer(self) -> Answerer:
        how = self.table.answerer.model_dump()
        return Answerer(f"{how.pop('signature')}@{how.pop('model')}", workspace=self.workspace, **how)

    @cached_property
    def reranker(self) -> Respondent | None:
        """Who reranks, where the strategy has one."""
        return reranker_named(self.table.reranker, workspace=self.workspace) if self.table.reranks else None

    @cached_property
    def embedder(self) -> Embedder | None:
        """Who embeds, where the index is one of vectors."""
        model = embedding_model(self.table.index)
        return None if model is None else Embedder(model, workspace=self.workspace)

    def models(self) -> Sequence[ModelSpec]:
        """Those of who answers, reranks and embeds; InputError: there is no such model."""
        called = (self.answerer, self.reranker, self.embedder)
        return models_of(respondent for respondent in called if respondent is not None)

    def check(self, questions: Sequence[Question]) -> list[str]:
        problems, kind = list(self.table.problems()), self.table.contexts.kind
        if kind not in ("none", "own") and not any(document.text.strip() for document in self.documents()):
            problems.append(
                "there is no document with a text to search: give [documents] path, or a set that has some"
            )
        if kind == "own" and not any(question.contexts for question in questions):
            problems.append("no question brings contexts of its own: leave contexts own out")
        for called in ("answerer", "reranker", "embedder"):
            try:
                respondent: Respondent | None = getattr(self, called)
                if called == "answerer":
                    signature, model = self.answerer.signature, self.answerer.model
                    if kind != "none" and not self.answerer.reads_contexts:
                        problems.append(
                            f"signature {signature.name} has no input context or contexts, so that no "
                            "document would reach it: give it one, or use contexts none"
                        )
                    if self.table.answerer.temperature is not None and model.sent_temperature is None:
                        problems.append(
                            f"model {model.alias} takes no temperature: leave answerer.temperature out"
                        )
                if respondent is not None and respondent.model is not None:
                    respondent.model.key()
            except InputError as error:
                problems += error.problems
        return list(dict.fromkeys(problems))

    # --- what decides an answer

    def config(self) -> dict[str, Any]:
        """The documents, and the settings that decide the contexts and the answer."""
        return {"retrieval": self._decides_contexts(), "answerer": self.answerer.config()}

    def _decides_contexts(self) -> dict[str, Any]:
        table, reranker = self.table, self.reranker
        if self._chosen:
            return {"contexts": table.contexts.decides(), "documents": self._searched["documents"]}
        decides = {**self._searched, "strategy": table.strategy, "top_n": table.top_n}
        if reranker:
            by = {"name": reranker.name, "fingerprint": reranker.fingerprint}
            decides |= {"top_k": table.top_k, "reranker": by}
        return decides

    @property
    def _chosen(self) -> bool:
        """Whether contexts are chosen by a rule, and not searched for."""
        return self.table.contexts.kind != "search"

    @cached_property
    def _searched(self) -> dict[str, Any]:
        """What decides what is searched: who shares it shares the index."""
        table = self.table
        texts = [[document.document_id, document.title, document.text] for document in self.documents()]
        return {
            "documents": digest(texts),
            "chunk": [table.chunk.least, table.chunk.max, table.chunk.overlap],
            "index": self.embedder.fingerprint if self.embedder else table.index,
            "version": _VERSION,
        }

    # --- one question after the other

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """What `answer` would call now; before a search, what would be found is known from BM25."""
        with_contexts = self._served(questions) or self._journal(asking).settled(questions)
        due = [question for question in questions if question.group not in with_contexts]
        estimates = list[CostEstimate]()
        if due:
            estimates, retrieved = self._preview_search(due, asking)
            with_contexts |= self._rows(due, retrieved)
        estimates.append(plan(self.answerer, _items(questions, with_contexts), asking, REPLIES_FILE))
        return together(estimates)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        with_contexts = self._served(questions) or self._searched_for(questions, asking)
        items = _items(questions, with_contexts)
        rows = call(self.answerer, items, asking, REPLIES_FILE, label=self.name)
        replies = {row.item_id: row for row in rows}
        answers = []
        for question in questions:
            answer = dataclasses.replace(with_contexts[question.group], system=self.name)
            reply = replies.get(question.group)
            if reply is not None:  # else nothing was found, so nobody was asked
                answer = dataclasses.replace(
                    answer,
                    answer=None if reply.verdict is None else str(reply.verdict),
                    error=reply.error,
                    latency_s=added(answer.latency_s, reply.latency_s),
                    prompt_tokens=reply.prompt_tokens,
                    completion_tokens=reply.completion_tokens,
                    cost_usd=added(answer.cost_usd, price_of(reply, self.answerer.model)),
                    at=reply.at,
                )
            answers.append(answer)
        return answers

    def _served(self, questions: Sequence[Question]) -> dict[str, SystemAnswer]:
        """By group, the contexts that are chosen by a rule, as answers that are not there yet."""
        if not self._chosen:
            return {}
        served = serve(questions, self.documents(), self.table.contexts)
        answer = SystemAnswer(self.name, "", "", latency_s=0.0, cost_usd=0.0)
        return {
            group: SystemAnswer(self.name, group, None, error=Failure("refused", f"not asked: {given}"))
            if isinstance(given, str)
            else dataclasses.replace(answer, question=group, contexts=given)
            for group, given in served.items()
        }

    def _searched_for(self, questions: Sequence[Question], asking: Asking) -> dict[str, SystemAnswer]:
        with self._journal(asking).open() as journal:
            with_contexts = journal.settled(questions)
            due = [question for question in questions if question.group not in with_contexts]
            with_contexts |= self._rows(due, self._search(due, asking) if due else ())
            for question in due:
                journal.add(question, with_contexts[question.group])
        return with_contexts

    def _journal(self, asking: Asking) -> AnswerJournal:
        """What was found for each question: contexts, or why there are none."""
        path, retry = asking.folder / RETRIEVED_FILE, asking.options.retry_unscored
        return AnswerJournal(path, self._decides_contexts(), retry_unscored=retry)

    def _rows(self, due: Sequence[Question], retrieved: Sequence[Retrieved]) -> dict[str, SystemAnswer]:
        """By group, what was found as an answer that is not there yet."""
        rows = {}
        for question, found in zip(due, retrieved, strict=True):
            contexts = tuple(candidate.context for candidate in found.candidates[: self.table.top_n])
            rows[question.group] = SystemAnswer(
                self.name,
                question.group,
                None if found.failure else "",
                None if found.failure else contexts,
                found.failure,
                latency_s=found.seconds,
                cost_usd=found.cost_usd,
                at=now(),
            )
        return rows

    # --- what is found

    def _preview_search(
        self, due: Sequence[Question], asking: Asking
    ) -> tuple[list[CostEstimate], list[Retrieved]]:
        """What `_search` would call, and about what it would find.

        That is what BM25 finds in the place of vectors; a reranker leaves it as it is.
        """
        chunks, estimates = self._chunks(), list[CostEstimate]()
        texts = [chunk.text for chunk in chunks]
        if self.embedder:
            items = [*texts_to_embed(texts), *asked_each(due)]
            estimates.append(plan_vectors(self.embedder, items, asking))
        searched, k, parents = Searched(Bm25Index(texts), chunks), *self._wanted()
        retrieved = [searched.best(question.question, k, parents) for question in due]
        if self.reranker:
            items = with_candidates(due, retrieved)
            estimates.append(plan(self.reranker, items, asking, RERANKING_FILE))
        return estimates, retrieved

    def _search(self, due: Sequence[Question], asking: Asking) -> list[Retrieved]:
        """What is found for each question; where nothing can be searched, why not stands for each of them."""
        try:
            searched = shared(digest(self._searched), lambda: self._build(asking))
        except CallFailed as failed:
            # Nothing was searched: whatever it was, the next run tries again.
            kind: ErrorKind = failed.kind if failed.kind in RETRIED_ON_RESUME else "server"
            return [Retrieved(failure=Failure(kind, str(failed)))] * len(due)
        k, parents = self._wanted()
        if self.embedder is None:
            retrieved = [searched.best(question.question, k, parents) for question in due]
        else:
            retrieved = list[Retrieved]()
            for row, vectors in embedded(self.embedder, asked_each(due), asking):
                if vectors is None:
                    error = row.error or Failure("server", "no reply")
                    message = f"{self.embedder.name}: the question: {error.message}"
                    retrieved.append(Retrieved(failure=Failure(error.kind, message)))
                    continue
                found = searched.best(vectors[0], k, parents)
                seconds = added(row.latency_s, found.seconds)
                cost = price_of(row, self.embedder.model)
                retrieved.append(dataclasses.replace(found, seconds=seconds, cost_usd=cost))
        return rerank(self.reranker, due, retrieved, asking) if self.reranker else retrieved

    def _chunks(self) -> list[Chunk]:
        return chunks_of(self.documents(), self.table.chunk)

    def _wanted(self) -> tuple[int, Mapping[str, str] | None]:
        """How many candidates are searched for, and the documents that are handed over in their place."""
        table, parents = self.table, None
        if table.strategy in ("parent", "both"):
            parents = {document.document_id: document.text for document in self.documents()}
        return table.top_k if table.reranks else table.top_n, parents

    def _build(self, asking: Asking) -> Searched:
        """The index over the chunks; CallFailed where one has no vector."""
        chunks = self._chunks()
        texts = [chunk.text for chunk in chunks]
        if not self.embedder:
            return Searched(Bm25Index(texts), chunks)
        label = f"vectors of {len(texts):,} texts"
        rows = embedded(self.embedder, texts_to_embed(texts), asking, label)
        parts = [vectors for _, vectors in rows if vectors is not None]
        if len(parts) < len(rows):
            error = next(row.error for row, vectors in rows if vectors is None) or Failure(
                "server", "no reply"
            )
            calls = (
                f"{label}: {len(rows) - len(parts):,} of {len(rows):,} calls to {self.embedder.name} failed"
            )
            message = f"{calls}, the first by {error.kind}: {error.message}"
            raise CallFailed(error.kind, message, retry=False)
        if len(sizes := {part.shape[1] for part in parts}) > 1:
            message = f"{self.embedder.name} gave vectors of {sorted(sizes)} dimensions"
            raise CallFailed("server", message, retry=False)
        return Searched(DenseIndex(np.concatenate(parts)), chunks)


def _items(questions: Sequence[Question], with_contexts: Mapping[str, SystemAnswer]) -> list[Item]:
    """The questions for which something was found, with their contexts."""
    answers = [(question, with_contexts[question.group]) for question in questions]
    return [question.item(answer.contexts or ()) for question, answer in answers if answer.error is None]
