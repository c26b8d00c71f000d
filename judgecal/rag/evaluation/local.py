"""A pipeline of our own: documents cut into chunks, an index, perhaps a reranker, and a model that answers.

Models are called through the engine as judges are, and their verdict is their reply, with journals in the
folder: `retrieved.jsonl` holds what was found for each question and how long that took, `reranking.jsonl`
what the reranker gave for that, `replies.jsonl` those of the model that answers; beside the folder
`embeddings.jsonl` holds the vectors of all systems. So an interrupted run asks nobody again who has replied.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgecal.engine.budget import CostEstimate, together
from judgecal.engine.calls import CallFailed, Message, ParsedReply
from judgecal.engine.log import now
from judgecal.errors import InputError
from judgecal.experiment.trials import models_of, open_journal, plan_calls, run_trials, stored_rows
from judgecal.goldset import GoldDocument
from judgecal.judges import judge_named
from judgecal.judges.protocol import JudgeName, Respondent
from judgecal.models import ModelSpec, for_task, load_catalogue
from judgecal.models.catalogue import Task
from judgecal.rag.evaluation.answerer import Answerer
from judgecal.rag.evaluation.contexts import ContextConfig, question_contexts
from judgecal.rag.evaluation.system import AnswerJournal, Asking, System, SystemAnswer
from judgecal.rag.questions import Question
from judgecal.rag.retrieval.indexes import (
    Bm25Index,
    Chunk,
    ChunkOptions,
    DenseIndex,
    Vectors,
    chunks_of,
    embedding_model,
)
from judgecal.records import (
    ITEM_UNIT,
    RETRIED_ON_RESUME,
    Context,
    ErrorKind,
    Failure,
    Item,
    Judgement,
    digest,
)
from judgecal.signatures import list_signatures
from judgecal.workspace import Workspace

# Journals in the system's folder: what was found, as rows of `AnswerJournal`; what the answerer replied.
RETRIEVED_FILE, REPLIES_FILE = "retrieved.jsonl", "replies.jsonl"
_VERSION = "3"  # counts changes of the code that change what is found: of chunks, BM25, vectors
_TABLE = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
Many = Annotated[int, Field(ge=1, le=10_000)]
EMBEDDINGS_FILE, RERANKING_FILE = "embeddings.jsonl", "reranking.jsonl"
"""What models replied: the vectors of all systems, and of each system how candidates were reranked."""
_AT_ONCE = 64  # calls for vectors whose replies are held at once: 2,048 texts
_TEXTS_A_CALL = 32  # embedded at once; of 4,096 dimensions they keep within the largest reply of the engine
_HELD = 2  # indexes at once: what most settings of a sweep share, and another


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
        """Yield a message for each setting that makes no pipeline."""
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


# --- calls


def call(
    respondent: Respondent, items: Sequence[Item], asking: Asking, file: str, *, label: str | None = None
) -> tuple[Judgement, ...]:
    """Return Judgements, a tuple, by a Respondent on Items under an Asking; `file`: the journal's name."""
    options = asking.options
    with open_journal(asking.folder / file, options) as journal:
        return run_trials(
            [respondent], items, journal=journal, options=options, budget=asking.budget, label=label
        )


def plan(respondent: Respondent, items: Sequence[Item], asking: Asking, file: str) -> CostEstimate:
    """What `call` would call; nothing is written."""
    return plan_calls([respondent], items, stored_rows(asking.folder / file), asking.options)


def known_sum(*values: float | None) -> float | None:
    """Add up numbers; None where one of them is not known."""
    return None if None in values else sum(value for value in values if value is not None)


def price_of(row: Judgement, model: ModelSpec | None) -> float | None:
    """From a Judgement and a ModelSpec or None, return its USD (stored: by the model's price) or None."""
    if not row.cached or model is None:
        return row.cost_usd
    written = row.completion_tokens if model.task == "chat" else 0
    return model.cost_usd(row.prompt_tokens, written)


# --- what is searched


@dataclass(frozen=True, slots=True)
class RankedContext:
    """A chunk that was found, and what is handed over: the chunk itself, or the document that it is of."""

    text: str
    context: Context  # its score is that of who ranked last


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The candidates for a question, best first, or why there are none."""

    candidates: tuple[RankedContext, ...] = ()
    failure: Failure | None = None
    seconds: float | None = None
    cost_usd: float | None = 0.0


@dataclass(frozen=True)
class Searched:
    """Chunks, and the index over them."""

    index: Bm25Index | DenseIndex
    chunks: Sequence[Chunk]

    @functools.cached_property
    def _most(self) -> int:
        """So many chunks of one document may stand before the last document that is wanted."""
        return max(Counter(chunk.document_id for chunk in self.chunks).values())

    def best(self, query: str | Vectors, k: int, parents: Mapping[str, str] | None = None) -> Retrieved:
        """Return the best k chunks for a query, a text or its vector, as Retrieved.

        With `parents`, the texts of documents by id, it is the best k documents, each by its best chunk.
        """
        start, n = time.perf_counter(), k if parents is None else (k - 1) * self._most + 1
        if isinstance(self.index, Bm25Index):
            numbers, scores = self.index.search([str(query)], n)
        elif len(query) != self.index.dimensions:  # as where the server has changed
            message = f"a vector of {len(query)} dimensions, the chunks have {self.index.dimensions}"
            return Retrieved(failure=Failure("server", message))
        else:
            numbers, scores = self.index.search(np.asarray(query)[None, :], n)
        candidates: dict[str, RankedContext] = {}
        for number, score in zip(numbers[0].tolist(), scores[0].tolist(), strict=True):
            chunk = self.chunks[number]
            name = chunk.chunk_id if parents is None else chunk.document_id
            text = chunk.text.strip()
            handed = text if parents is None else parents[chunk.document_id].strip()
            candidates.setdefault(name, RankedContext(text, Context(handed, chunk.document_id, score)))
        return Retrieved(tuple(candidates.values())[:k], seconds=time.perf_counter() - start)


_built: OrderedDict[str, Searched] = OrderedDict()


def shared(key: str, build: Callable[[], Searched]) -> Searched:
    """Return the Searched of a key, made by a function `build` unless this process holds it; two are held."""
    searched = _built.pop(key, None) or build()
    _built[key] = searched
    while len(_built) > _HELD:
        _built.popitem(last=False)
    return searched


# --- models with another task than chat


class _TaskModel:
    """One of them; its `name` is that of the model's alias, or its id."""

    unit = ITEM_UNIT
    schema = None
    _task: Task

    def __init__(self, name: str, *, workspace: Workspace) -> None:
        self.model: ModelSpec = for_task(load_catalogue(workspace).resolve(name), self._task)
        self.name = name

    @functools.cached_property
    def fingerprint(self) -> str:
        """16 hex digits over the model and its settings."""
        return digest([self._task, self.model.settings()])[:16]

    def check_items(self, items: Sequence[Item]) -> None:
        """Nothing but texts is needed."""

    def messages(self, item: Item) -> Sequence[Message]:
        """The question where there is one, then the contexts, a message each."""
        texts = [item.question] * bool(item.question) + [context.text for context in item.contexts]
        return [{"role": "user", "content": text} for text in texts]


class Embedder(_TaskModel):
    """Vectors of the contexts of an item; the verdict is the reply, as `transport.embeddings` writes it."""

    _task = "embeddings"

    def read(self, text: str) -> ParsedReply:
        """Parse the text of a reply into a ParsedReply with usable vectors, or the failure."""
        from judgecal.engine.transport.wires import vectors_in

        try:
            vectors_in(text)
        except ValueError as error:
            return ParsedReply(None, failure=Failure("parse", f"no vectors that can be used: {error}"))
        return ParsedReply(text)


def texts_to_embed(texts: Sequence[str]) -> list[Item]:
    """Pack texts in their order into a list of Items of up to 32 texts each, a call an item.

    A text that is blank, which servers refuse, is sent as a full stop.
    """
    sent = [text if text.strip() else "." for text in texts]
    batches = [sent[start : start + _TEXTS_A_CALL] for start in range(0, len(sent), _TEXTS_A_CALL)]
    names = [digest(batch)[:16] for batch in batches]
    return [
        Item(name, name, "", "", contexts=tuple(map(Context, batch)))
        for name, batch in zip(names, batches, strict=True)
    ]


def question_items(questions: Sequence[Question]) -> list[Item]:
    """Make each question an item of one text."""
    return [texts_to_embed([question.question])[0] for question in questions]


def embed_items(
    embedder: Embedder, items: Sequence[Item], asking: Asking, label: str | None = None
) -> list[tuple[Judgement, Vectors | None]]:
    """Return (Judgement, Vectors or None) for each Item that an Embedder embeds under an Asking."""
    from judgecal.engine.transport.wires import vectors_in

    shared_asking = dataclasses.replace(asking, folder=asking.folder.parent)
    rows: list[tuple[Judgement, Vectors | None]] = []
    for start in range(0, len(items), _AT_ONCE):
        part = items[start : start + _AT_ONCE]
        for row in call(embedder, part, shared_asking, EMBEDDINGS_FILE, label=label):
            vectors = None if row.verdict is None else vectors_in(str(row.verdict))
            rows.append((dataclasses.replace(row, verdict=None), vectors))  # the text is far larger
    return rows


def plan_vectors(embedder: Embedder, items: Sequence[Item], asking: Asking) -> CostEstimate:
    """What `embed_items` would call."""
    return plan(embedder, items, dataclasses.replace(asking, folder=asking.folder.parent), EMBEDDINGS_FILE)


class RerankModel(_TaskModel):
    """The relevance of an item's contexts to its question; the verdict is a JSON list, a score each."""

    _task = "rerank"

    def read(self, text: str) -> ParsedReply:
        """Parse a reply's text into a ParsedReply where all scores are finite numbers, or a Failure."""
        if not all(math.isfinite(score) for score in json.loads(text)):
            return ParsedReply(None, failure=Failure("parse", f"a score is not a finite number: {text:.80}"))
        return ParsedReply(text)


def reranker_named(name: str, *, workspace: Workspace) -> Respondent:
    """Return the Respondent of a name in a Workspace: a judge of single contexts, or a reranking model."""
    if JudgeName.read(name) is None:
        if name in list_signatures(workspace):
            raise InputError(f"reranker {name} is a signature: write {name}@MODEL, such as {name}@embedded")
        return RerankModel(name, workspace=workspace)
    judge = judge_named(name, workspace=workspace)
    if judge.unit == ITEM_UNIT or not judge.scale.numeric:
        raise InputError(
            f"reranker {judge.name} must judge single contexts on a scale with an order, such as "
            "mosaic/chunk_relevance@embedded"
        )
    return judge


def candidate_items(questions: Sequence[Question], retrieved: Sequence[Retrieved]) -> list[Item]:
    """From Questions and a Retrieved for each, make Items with the texts as contexts; empty are left out."""
    return [
        question.item(tuple(Context(candidate.text) for candidate in hit.candidates))
        for question, hit in zip(questions, retrieved, strict=True)
        if hit.candidates
    ]


def rerank(
    reranker: Respondent, questions: Sequence[Question], retrieved: Sequence[Retrieved], asking: Asking
) -> list[Retrieved]:
    """From a reranker (Respondent), Questions, their Retrieved and an Asking, return a list of Retrieved.

    The better the verdict on a candidate, the further to the front; equal ones stay as they were. The seconds
    are those of the longest call, as the calls of a question are made at once; of the model inside judgecal,
    which has one core, those of all.
    """
    rows: dict[str, list[Judgement]] = {}
    for row in call(reranker, candidate_items(questions, retrieved), asking, RERANKING_FILE):
        rows.setdefault(row.item_id, []).append(row)
    return [
        _reranked(reranker, before, rows[question.group]) if before.candidates else before
        for question, before in zip(questions, retrieved, strict=True)
    ]


def _reranked(reranker: Respondent, before: Retrieved, rows: Sequence[Judgement]) -> Retrieved:
    failed = next((row.error for row in rows if row.error is not None), None)
    if failed is not None:
        return Retrieved(failure=Failure(failed.kind, f"reranker {reranker.name}: {failed.message}"))
    if reranker.unit == ITEM_UNIT:  # one call for all candidates
        scores = [float(score) for score in json.loads(str(rows[0].verdict))]
    else:
        scores = [float(row.verdict or 0) for row in rows]
    scored = [
        RankedContext(candidate.text, dataclasses.replace(candidate.context, score=score))
        for candidate, score in zip(before.candidates, scores, strict=True)
    ]
    model, times = reranker.model, [row.latency_s for row in rows]
    at_once = model is not None and not model.embedded and None not in times
    longest = max((seconds for seconds in times if seconds is not None), default=0.0)
    return Retrieved(
        tuple(sorted(scored, key=lambda candidate: -(candidate.context.score or 0.0))),
        seconds=known_sum(before.seconds, *([longest] if at_once else times)),
        cost_usd=known_sum(before.cost_usd, *(price_of(row, model) for row in rows)),
    )


# --- the pipeline


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
        options = self.table.answerer.model_dump()
        name = f"{options.pop('signature')}@{options.pop('model')}"
        return Answerer(name, workspace=self.workspace, **options)

    @cached_property
    def reranker(self) -> Respondent | None:
        """The model or judge that reranks, where the strategy has one."""
        return reranker_named(self.table.reranker, workspace=self.workspace) if self.table.reranks else None

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedding model, where the index is one of vectors."""
        model = embedding_model(self.table.index)
        return None if model is None else Embedder(model, workspace=self.workspace)

    def models(self) -> Sequence[ModelSpec]:
        """Return the ModelSpecs that answer, rerank and embed; InputError: there is no such model."""
        called = (self.answerer, self.reranker, self.embedder)
        return models_of(respondent for respondent in called if respondent is not None)

    def check(self, questions: Sequence[Question]) -> list[str]:
        """Return a message for each thing that keeps the pipeline from being asked these questions."""
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
        """Return the CostEstimate of answering Questions under an Asking; BM25 stands in for a search."""
        with_contexts = self._served(questions) or self._journal(asking).settled(questions)
        due = [question for question in questions if question.group not in with_contexts]
        estimates = list[CostEstimate]()
        if due:
            estimates, retrieved = self._preview_search(due, asking)
            with_contexts |= self._rows(due, retrieved)
        estimates.append(plan(self.answerer, _items(questions, with_contexts), asking, REPLIES_FILE))
        return together(estimates)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """Return the pipeline's SystemAnswer to each of the Questions, asked under an Asking."""
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
                    latency_s=known_sum(answer.latency_s, reply.latency_s),
                    prompt_tokens=reply.prompt_tokens,
                    completion_tokens=reply.completion_tokens,
                    cost_usd=known_sum(answer.cost_usd, price_of(reply, self.answerer.model)),
                    at=reply.at,
                )
            answers.append(answer)
        return answers

    def _served(self, questions: Sequence[Question]) -> dict[str, SystemAnswer]:
        """By group, the contexts that are chosen by a rule, as answers that are not there yet."""
        if not self._chosen:
            return {}
        served = question_contexts(questions, self.documents(), self.table.contexts)
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
        for question, hit in zip(due, retrieved, strict=True):
            contexts = tuple(candidate.context for candidate in hit.candidates[: self.table.top_n])
            rows[question.group] = SystemAnswer(
                self.name,
                question.group,
                None if hit.failure else "",
                None if hit.failure else contexts,
                hit.failure,
                latency_s=hit.seconds,
                cost_usd=hit.cost_usd,
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
            items = [*texts_to_embed(texts), *question_items(due)]
            estimates.append(plan_vectors(self.embedder, items, asking))
        searched, k, parents = Searched(Bm25Index(texts), chunks), *self._wanted()
        retrieved = [searched.best(question.question, k, parents) for question in due]
        if self.reranker:
            items = candidate_items(due, retrieved)
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
            for row, vectors in embed_items(self.embedder, question_items(due), asking):
                if vectors is None:
                    error = row.error or Failure("server", "no reply")
                    message = f"{self.embedder.name}: the question: {error.message}"
                    retrieved.append(Retrieved(failure=Failure(error.kind, message)))
                    continue
                hit = searched.best(vectors[0], k, parents)
                seconds = known_sum(row.latency_s, hit.seconds)
                cost = price_of(row, self.embedder.model)
                retrieved.append(dataclasses.replace(hit, seconds=seconds, cost_usd=cost))
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
        rows = embed_items(self.embedder, texts_to_embed(texts), asking, label)
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
