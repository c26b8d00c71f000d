"""A pipeline of our own: documents cut into chunks, an index, perhaps a reranker, and a model that answers.

Every call to a model goes through the engine, with its journals in the folder: `retrieved.jsonl` holds what
was found for each question and how long that took, `embeddings.jsonl`, `summaries.jsonl` and
`reranking.jsonl` what models gave for that, `replies.jsonl` those of the model that answers. So an
interrupted run asks nobody again who has replied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judgecal.engine import CallFailed
from judgecal.engine.log import now
from judgecal.errors import InputError, notice
from judgecal.experiment import CostEstimate, models_of, together
from judgecal.goldset import Document
from judgecal.judges import Respondent
from judgecal.models import ModelSpec
from judgecal.rag.answering.answerer import Answerer
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.local_search import (
    Embedder,
    QueryVector,
    Retrieved,
    Searched,
    added,
    asked_each,
    call,
    plan,
    price_of,
    query_vectors,
    rerank,
    reranker_named,
    shared,
    texts_to_embed,
    with_candidates,
)
from judgecal.rag.evaluation.system import AnswerJournal, Asking, System, SystemAnswer
from judgecal.rag.retrieval.chunking import Child, Chunk, ChunkOptions, chunks_of, pieces_of, sentences_of
from judgecal.rag.retrieval.indexes import DenseIndex, Vectors, check_index, embedding_model, index_named
from judgecal.records import RETRIED_ON_RESUME, Context, ErrorKind, Failure, Item, Judgement, digest
from judgecal.workspace import Workspace

# Journals in the system's folder: what was found, as rows of `AnswerJournal`; what models replied.
RETRIEVED_FILE, REPLIES_FILE = "retrieved.jsonl", "replies.jsonl"
SUMMARIES_FILE, EMBEDDINGS_FILE = "summaries.jsonl", "embeddings.jsonl"
RERANKING_FILE = "reranking.jsonl"

_SUMMARY = "rag/summary"  # the signature that summarises a chunk
_AT_ONCE = 64  # calls for vectors whose replies are held at once: 2,048 texts
_VERSION = "2"  # counts changes of the code that change what is found: of chunks, children, BM25, vectors
# Whose version decides what is found, by how the setting begins that needs it.
_LIBRARIES = {"lsa": "scikit-learn", "stem:": "PyStemmer", "sentencex:": "sentencex"}
_TABLE = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
Many = Annotated[int, Field(ge=1, le=10_000)]


class ChunkConfig(BaseModel):
    """How documents are cut, as `ChunkOptions` has it; `min` is two thirds of `max` where it is left out."""

    model_config = _TABLE
    min: int | None = None  # characters that a chunk has before it may end, by default two thirds of `max`
    max: int = 1200  # characters of a chunk at most
    # From `min` on a chunk goes on while it holds this share of the next sentence's words; with `meaning`,
    # while their cosine is at least this.
    similar: float = 0.25
    meaning: str | None = None  # the alias or litellm id of an embedding model, which compares sentences
    overlap: int = 0  # characters of the sentences before a chunk that stand at its start too
    sentences: str = "plain"  # who ends sentences: `plain`, or `sentencex:LANGUAGE`

    @property
    def options(self) -> ChunkOptions:
        """The same, for the function that cuts."""
        least = self.max * 2 // 3 if self.min is None else self.min
        return ChunkOptions(least, self.max, self.similar, self.overlap, self.sentences)


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
    chunk: ChunkConfig = ChunkConfig()  # how documents are cut: whole sentences up to a size
    index: str = "bm25"  # `bm25`, `lsa`, `lsa:DIMENSIONS` or `embed:MODEL`, an alias or a litellm id
    tokenizer: str = "words"  # which words `bm25` and `lsa` see: `words`, `split` or `stem:LANGUAGE`
    # `plain`: the index's best chunks. `rerank`: the best of `top_k` by the reranker. `parent`: the chunks
    # whose children the index finds best. `both`: those whose children the reranker puts first.
    strategy: Literal["plain", "rerank", "parent", "both"] = "plain"
    top_k: Many = 10  # chunks that the reranker is given
    top_n: Many = 3  # chunks that the answerer is given
    # A judge of single contexts, or a reranking model's alias or litellm id; ties stay in the index's order.
    reranker: str = "mosaic/chunk_relevance@embedded"
    # Searched for `parent` and `both`: sentences, or a summary of each chunk by the answerer's model.
    children: Literal["sentences", "summaries"] = "sentences"
    answerer: AnswererConfig = AnswererConfig()  # who answers from the chunks

    @property
    def reranks(self) -> bool:
        """Whether a reranker has a say."""
        return self.strategy in ("rerank", "both")

    @property
    def searches_children(self) -> bool:
        """Whether parts of a chunk are searched in its place."""
        return self.strategy in ("parent", "both")

    def problems(self) -> Iterator[str]:
        """What of the settings makes no pipeline, one message each."""
        for check in (self.chunk.options.check, lambda: check_index(self.index, tokenizer=self.tokenizer)):
            try:
                check()
            except InputError as error:
                yield from error.problems
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
    documents: Callable[[], Sequence[Document]]  # the texts that are searched
    workspace: Workspace  # where signatures and model aliases are found

    shows_contexts = True

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
    def summariser(self) -> Answerer | None:
        """Who summarises chunks, where summaries are searched; the model inside judgecal cannot."""
        if not self.table.searches_children or self.table.children != "summaries":
            return None
        answerer = Answerer(f"{_SUMMARY}@{self.table.answerer.model}", workspace=self.workspace)
        return None if answerer.model.embedded else answerer

    @cached_property
    def embedder(self) -> Embedder | None:
        """Who embeds, where the index is one of vectors."""
        model = embedding_model(self.table.index)
        return None if model is None else Embedder(model, workspace=self.workspace)

    @cached_property
    def joiner(self) -> Embedder | None:
        """Who says which sentences mean alike, where chunks are joined by meaning."""
        model = self.table.chunk.meaning
        return None if model is None else Embedder(model, workspace=self.workspace)

    def models(self) -> Sequence[ModelSpec]:
        """Those of who answers, reranks, summarises and embeds; InputError: there is no such model."""
        called = (self.answerer, self.reranker, self.summariser, self.embedder, self.joiner)
        return models_of(respondent for respondent in called if respondent is not None)

    def check(self, questions: Sequence[Question]) -> list[str]:
        problems = list(self.table.problems())
        if not any(document.text.strip() for document in self.documents()):
            problems.append(
                "there is no document with a text to search: give [documents] path, or a set that has some"
            )
        for called in ("answerer", "reranker", "summariser", "embedder", "joiner"):
            try:
                respondent: Respondent | None = getattr(self, called)
                if called == "answerer":
                    signature, model = self.answerer.signature, self.answerer.model
                    if not self.answerer.reads_contexts:
                        problems.append(
                            f"signature {signature.name} has no input context, so that no chunk would reach "
                            "it"
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
        decides = {**self._searched, "strategy": table.strategy, "top_n": table.top_n}
        if reranker:
            by = {"name": reranker.name, "fingerprint": reranker.fingerprint}
            decides |= {"top_k": table.top_k, "reranker": by}
        return decides

    @cached_property
    def _searched(self) -> dict[str, Any]:
        """What decides what is searched: who shares it shares the index."""
        table = self.table
        texts = [[document.document_id, document.title, document.text] for document in self.documents()]
        children: str | dict[str, Any] | None = None
        if table.searches_children:
            children = "sentences" if table.children == "sentences" else "leading sentences"
            children = self.summariser.config() if self.summariser else children
        settings = (table.index, table.tokenizer, table.chunk.sentences)
        versions = {"judgecal's retrieval": _VERSION}
        for beginning, library in _LIBRARIES.items():
            if any(setting.startswith(beginning) for setting in settings):
                versions[library] = version(library)
        return {
            "documents": digest(texts),
            "chunk": dataclasses.asdict(table.chunk.options)
            | ({"meaning": self.joiner.fingerprint} if self.joiner else {}),
            "index": self.embedder.fingerprint if self.embedder else table.index,
            "tokenizer": None if self.embedder else table.tokenizer,
            "children": children,
            "versions": versions,
        }

    # --- one question after the other

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """What `answer` would call now; before a search, what would be found is known from BM25."""
        with_contexts = self._journal(asking).settled(questions)
        due = [question for question in questions if question.group not in with_contexts]
        estimates = list[CostEstimate]()
        if due:
            estimates, retrieved = self._preview_search(due, asking)
            with_contexts |= self._rows(due, retrieved)
        estimates.append(plan(self.answerer, _items(questions, with_contexts), asking, REPLIES_FILE))
        return together(estimates)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        with self._journal(asking).open() as journal:
            with_contexts = journal.settled(questions)
            due = [question for question in questions if question.group not in with_contexts]
            with_contexts |= self._rows(due, self._search(due, asking) if due else ())
            for question in due:
                journal.add(question, with_contexts[question.group])
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

    @property
    def _n(self) -> int:
        return self.table.top_k if self.table.reranks else self.table.top_n

    def _preview_search(
        self, due: Sequence[Question], asking: Asking
    ) -> tuple[list[CostEstimate], list[Retrieved]]:
        """What `_search` would call, and about what it would find.

        That is what BM25 finds in the place of vectors, in chunks joined by words, with leading sentences in
        the place of summaries; a reranker leaves it as it is.
        """
        chunks, estimates = chunks_of(self.documents(), self.table.chunk.options), []
        if self.joiner:
            items = texts_to_embed(pieces_of(self.documents(), self.table.chunk.options))
            estimates.append(plan(self.joiner, items, asking, EMBEDDINGS_FILE))
        children = self._offline_children(chunks)
        texts = _texts(chunks, children)
        if self.summariser:
            estimates.append(plan(self.summariser, _to_summarise(chunks), asking, SUMMARIES_FILE))
        if self.embedder:
            items = [*texts_to_embed(texts), *asked_each(question.question for question in due)]
            estimates.append(plan(self.embedder, items, asking, EMBEDDINGS_FILE))
        index = "bm25" if self.embedder else self.table.index
        searched = Searched(index_named(index, texts, tokenizer=self.table.tokenizer), chunks, children)
        retrieved = [searched.best(question.question, self._n) for question in due]
        if self.reranker:
            items = with_candidates(due, retrieved)
            estimates.append(plan(self.reranker, items, asking, RERANKING_FILE))
        return estimates, retrieved

    def _search(self, due: Sequence[Question], asking: Asking) -> list[Retrieved]:
        """What is found for each question; where nothing can be searched, why not stands for each of them."""
        try:
            if self.embedder:
                self._embed_questions(self.embedder, due, asking)
            searched = shared(digest(self._searched), lambda: self._build(asking))
        except CallFailed as failed:
            # Nothing was searched: whatever it was, the next run tries again.
            kind: ErrorKind = failed.kind if failed.kind in RETRIED_ON_RESUME else "server"
            return [Retrieved(failure=Failure(kind, str(failed)))] * len(due)
        retrieved = [searched.best(question.question, self._n) for question in due]
        return rerank(self.reranker, due, retrieved, asking, RERANKING_FILE) if self.reranker else retrieved

    def _build(self, asking: Asking) -> Searched:
        table = self.table
        documents, options, alike = self.documents(), table.chunk.options, None
        if self.joiner:
            alike = self._vectors(self.joiner, pieces_of(documents, options), asking)
        chunks = chunks_of(documents, options, alike)
        children: list[Child] | None
        if self.summariser:
            items, label = _to_summarise(chunks), "summaries of chunks"
            rows = _replies(self.summariser, items, asking, SUMMARIES_FILE, label)
            children = [Child(str(row.verdict), number) for number, row in enumerate(rows)]
        else:
            children = self._offline_children(chunks)
        texts = _texts(chunks, children)
        if self.embedder:
            queries = query_vectors(self.embedder.fingerprint)

            def vector_of(question: str) -> Vectors:
                vector = queries[question].vector
                assert vector is not None, "a question without a vector is not searched for"
                return vector

            vectors = self._vectors(self.embedder, texts, asking)
            return Searched(DenseIndex(vectors, vector_of), chunks, children, queries)
        if table.searches_children and table.children == "summaries" and not self.summariser:
            notice(
                f"judgecal: {self.name}: the leading sentence of each chunk stands in for its summary, as "
                "the model embedded writes none"
            )
        return Searched(index_named(table.index, texts, tokenizer=table.tokenizer), chunks, children)

    def _offline_children(self, chunks: Sequence[Chunk]) -> list[Child] | None:
        """What is searched in place of chunks, made without a call; None where they are searched."""
        if not self.table.searches_children:
            return None
        children = sentences_of(chunks, self.table.chunk.sentences)
        if self.table.children == "sentences":
            return children
        leading: dict[int, Child] = {}
        for child in children:
            leading.setdefault(child.parent, child)
        return list(leading.values())

    def _vectors(self, embedder: Embedder, texts: Sequence[str], asking: Asking) -> Vectors:
        """The vectors of texts; those of one size are held at once."""
        from judgecal.engine.transport.wires import vectors_in

        items, parts = texts_to_embed(texts), list[Vectors]()
        for start in range(0, len(items), _AT_ONCE):
            part, label = items[start : start + _AT_ONCE], f"vectors of {len(texts):,} texts"
            rows = _replies(embedder, part, asking, EMBEDDINGS_FILE, label)
            parts += [vectors_in(str(row.verdict)) for row in rows]
        sizes = {part.shape[1] for part in parts}
        if len(sizes) > 1:
            message = f"{embedder.name} gave vectors of {sorted(sizes)} dimensions"
            raise CallFailed("server", message, retry=False)
        return np.concatenate(parts)

    def _embed_questions(self, embedder: Embedder, due: Sequence[Question], asking: Asking) -> None:
        """Add the vectors of questions that this process does not have yet, or why there is none."""
        from judgecal.engine.transport.wires import vectors_in

        known = query_vectors(embedder.fingerprint)
        texts = [question.question for question in due]
        wanted = [text for text in texts if text not in known or known[text].failure]
        rows = call(embedder, asked_each(wanted), asking, EMBEDDINGS_FILE, long=True)
        for text, row in zip(wanted, rows, strict=True):
            vector = failure = None
            if row.error:
                failure = Failure(row.error.kind, f"{embedder.name}: the question: {row.error.message}")
            else:
                vector = vectors_in(str(row.verdict))[0]
            known[text] = QueryVector(vector, failure, row.latency_s, price_of(row, embedder.model))


def _items(questions: Sequence[Question], with_contexts: Mapping[str, SystemAnswer]) -> list[Item]:
    """The questions for which something was found, with their contexts."""
    answers = [(question, with_contexts[question.group]) for question in questions]
    return [question.item(answer.contexts or ()) for question, answer in answers if answer.error is None]


def _texts(chunks: Sequence[Chunk], children: Sequence[Child] | None) -> list[str]:
    return [part.text for part in (chunks if children is None else children)]


def _to_summarise(chunks: Sequence[Chunk]) -> list[Item]:
    return [
        Item(chunk.chunk_id, chunk.document_id, "", "", contexts=(Context(chunk.text),)) for chunk in chunks
    ]


def _replies(
    respondent: Respondent, items: Sequence[Item], asking: Asking, file: str, label: str
) -> Sequence[Judgement]:
    """A verdict on each item, CallFailed where one has none; the journal's rows are not called for again."""
    rows = call(respondent, items, asking, file, long=True, label=label)
    if failed := rows.unscored:
        error = failed[0].error or Failure("server", "no reply")
        calls = f"{label}: {len(failed):,} of {len(items):,} calls to {respondent.name} failed"
        raise CallFailed(error.kind, f"{calls}, the first by {error.kind}: {error.message}", retry=False)
    return rows
