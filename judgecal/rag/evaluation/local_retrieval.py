"""What a local pipeline finds for each question, and what decides it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from judgecal.engine import CallFailed
from judgecal.errors import notice
from judgecal.experiment import CostEstimate, open_journal, plan_calls, run_trials, stored_rows
from judgecal.goldset import Document
from judgecal.judges import Respondent
from judgecal.rag.answering.answerer import Answerer
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.local_config import LocalConfig
from judgecal.rag.evaluation.local_search import (
    Embedder,
    QueryVector,
    Reranker,
    Retrieved,
    Searched,
    dense,
    once,
    price_of,
    query_vectors,
    reranker_named,
    shared,
    texts_to_embed,
)
from judgecal.rag.evaluation.system import Asking
from judgecal.rag.retrieval.chunking import Child, Chunk, chunks_of, sentences_of
from judgecal.rag.retrieval.indexes import Vectors, embedding_model, index_named
from judgecal.records import RETRIED_ON_RESUME, Context, ErrorKind, Failure, Item, Judgement, digest
from judgecal.workspace import Workspace

SUMMARIES_FILE = "summaries.jsonl"
"""In the system's folder: the journal of the model that summarises chunks."""

EMBEDDINGS_FILE = "embeddings.jsonl"
"""In the system's folder: the journal of the model that embeds chunks and questions."""

_SUMMARY = "rag/summary"  # the signature that summarises a chunk
_AT_ONCE = 64  # calls for vectors whose replies are held at once: 2,048 texts
_VERSION = "1"  # counts changes of the code that change what is found: of chunks, children, BM25, vectors
# Whose version decides what is found, by how the setting begins that needs it.
_LIBRARIES = {"lsa": "scikit-learn", "stem:": "PyStemmer", "sentencex:": "sentencex"}


class Retrieval:
    """Chunks, an index and perhaps a reranker, as a pipeline's table has them; its name is for messages."""

    def __init__(
        self,
        name: str,
        config: LocalConfig,
        documents: Callable[[], Sequence[Document]],
        workspace: Workspace,
    ) -> None:
        self._name, self._config, self._documents, self._workspace = name, config, documents, workspace

    # --- who is called

    @cached_property
    def reranker(self) -> Reranker | None:
        """Who reranks, where the strategy has one."""
        config = self._config
        return reranker_named(config.reranker, workspace=self._workspace) if config.reranks else None

    @cached_property
    def summariser(self) -> Answerer | None:
        """Who summarises chunks, where summaries are searched; the model inside judgecal cannot."""
        config = self._config
        if not config.searches_children or config.children != "summaries":
            return None
        answerer = Answerer(f"{_SUMMARY}@{config.answerer.model}", workspace=self._workspace)
        return None if answerer.model.embedded else answerer

    @cached_property
    def embedder(self) -> Embedder | None:
        """Who embeds, where the index is one of vectors."""
        model = embedding_model(self._config.index)
        return None if model is None else Embedder(model, workspace=self._workspace)

    def respondents(self) -> Iterator[Callable[[], Respondent | None]]:
        """Gives each of those who are called beside the answerer; a call refuses a name that is unknown."""
        yield lambda: self.reranker.respondent if self.reranker else None
        yield lambda: self.summariser
        yield lambda: self.embedder

    # --- what decides what is found

    def config(self) -> dict[str, Any]:
        """The documents, and every setting that decides what is handed over."""
        config = self._config
        decides = {**self._searched, "strategy": config.strategy, "top_n": config.top_n}
        if self.reranker:
            decides |= {"top_k": config.top_k, "reranker": self.reranker.config()}
        return decides

    @cached_property
    def _searched(self) -> dict[str, Any]:
        """What decides what is searched: who shares it shares the index."""
        config = self._config
        texts = [[document.document_id, document.title, document.text] for document in self._documents()]
        children: str | dict[str, Any] | None = None
        if config.searches_children:
            children = "sentences" if config.children == "sentences" else "leading sentences"
            children = self.summariser.config() if self.summariser else children
        settings = (config.index, config.tokenizer, config.chunk.sentences)
        versions = {"judgecal's retrieval": _VERSION}
        for beginning, library in _LIBRARIES.items():
            if any(setting.startswith(beginning) for setting in settings):
                versions[library] = version(library)
        return {
            "documents": digest(texts),
            "chunk": dataclasses.asdict(config.chunk.options),
            "index": self.embedder.fingerprint if self.embedder else config.index,
            "tokenizer": None if self.embedder else config.tokenizer,
            "children": children,
            "versions": versions,
        }

    # --- finding

    def preview(self, due: Sequence[Question], asking: Asking) -> tuple[list[CostEstimate], list[Retrieved]]:
        """What `find` would call, and about what it would find; nothing is written.

        That is what BM25 finds in the place of vectors, and leading sentences in the place of summaries; a
        reranker leaves it as it is.
        """
        options, chunks = once(asking), chunks_of(self._documents(), self._config.chunk.options)
        children = self._offline_children(chunks)
        texts, estimates = _texts(chunks, children), []
        if self.summariser:
            journal = stored_rows(asking.folder / SUMMARIES_FILE)
            estimates.append(plan_calls([self.summariser], _to_summarise(chunks), journal, options))
        if self.embedder:
            items = [*texts_to_embed(texts), *(texts_to_embed([question.question])[0] for question in due)]
            journal = stored_rows(asking.folder / EMBEDDINGS_FILE)
            estimates.append(plan_calls([self.embedder], items, journal, options))
        index = "bm25" if self.embedder else self._config.index
        searched = Searched(index_named(index, texts, tokenizer=self._config.tokenizer), chunks, children)
        retrieved = [searched.best(question.question, self._n) for question in due]
        if self.reranker:
            estimates.append(self.reranker.preview(due, retrieved, asking))
        return estimates, retrieved

    def find(self, due: Sequence[Question], asking: Asking) -> list[Retrieved]:
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
        return self.reranker.rerank(due, retrieved, asking) if self.reranker else retrieved

    @property
    def _n(self) -> int:
        """Chunks that the index gives."""
        return self._config.top_k if self._config.reranks else self._config.top_n

    def _build(self, asking: Asking) -> Searched:
        config = self._config
        chunks = chunks_of(self._documents(), config.chunk.options)
        if self.summariser:
            label = "summaries of chunks"
            rows = _replies(self.summariser, _to_summarise(chunks), asking, SUMMARIES_FILE, label)
            children: list[Child] | None
            children = [Child(str(row.verdict), number) for number, row in enumerate(rows)]
        else:
            children = self._offline_children(chunks)
        texts = _texts(chunks, children)
        if self.embedder:
            queries = query_vectors(self.embedder.fingerprint)
            index = dense(self._vectors(self.embedder, texts, asking), queries)
            return Searched(index, chunks, children, queries)
        if config.searches_children and config.children == "summaries" and not self.summariser:
            notice(
                f"judgecal: {self._name}: the leading sentence of each chunk stands in for its summary, as "
                "the model embedded writes none"
            )
        return Searched(index_named(config.index, texts, tokenizer=config.tokenizer), chunks, children)

    def _offline_children(self, chunks: Sequence[Chunk]) -> list[Child] | None:
        """What is searched in place of chunks, made without a call; None where they are searched."""
        if not self._config.searches_children:
            return None
        children = sentences_of(chunks, self._config.chunk.sentences)
        if self._config.children == "sentences":
            return children
        first: dict[int, Child] = {}
        for child in children:
            first.setdefault(child.parent, child)
        return list(first.values())

    # --- calls to models

    def _vectors(self, embedder: Embedder, texts: Sequence[str], asking: Asking) -> Vectors:
        """The vectors of texts; those of one size are held at once."""
        from judgecal.engine.transport.embeddings import vectors_in

        items, parts = texts_to_embed(texts), list[Vectors]()
        for start in range(0, len(items), _AT_ONCE):
            part = items[start : start + _AT_ONCE]
            rows = _replies(embedder, part, asking, EMBEDDINGS_FILE, f"vectors of {len(texts):,} texts")
            parts += [vectors_in(str(row.verdict)) for row in rows]
        sizes = {part.shape[1] for part in parts}
        if len(sizes) > 1:
            message = f"{embedder.name} gave vectors of {sorted(sizes)} dimensions"
            raise CallFailed("server", message, retry=False)
        return np.concatenate(parts)

    def _embed_questions(self, embedder: Embedder, due: Sequence[Question], asking: Asking) -> None:
        """Add the vectors of questions that this process does not have yet, or why there is none."""
        from judgecal.engine.transport.embeddings import vectors_in

        known, options = query_vectors(embedder.fingerprint), once(asking)
        questions = [question.question for question in due]
        wanted = [text for text in questions if text not in known or known[text].failure]
        items = [texts_to_embed([text])[0] for text in wanted]
        with open_journal(asking.folder / EMBEDDINGS_FILE, options, long=True) as journal:
            rows = run_trials([embedder], items, journal=journal, options=options, budget=asking.budget)
        for text, row in zip(wanted, rows, strict=True):
            failure = None
            if row.error:
                failure = Failure(row.error.kind, f"{embedder.name}: the question: {row.error.message}")
            vector = None if failure else vectors_in(str(row.verdict))[0]
            known[text] = QueryVector(vector, failure, row.latency_s, price_of(row, embedder.model))


def _texts(chunks: Sequence[Chunk], children: Sequence[Child] | None) -> list[str]:
    return [part.text for part in (chunks if children is None else children)]


def _to_summarise(chunks: Sequence[Chunk]) -> list[Item]:
    return [
        Item(chunk.chunk_id, chunk.document_id, "", "", contexts=(Context(chunk.text),)) for chunk in chunks
    ]


def _replies(
    respondent: Respondent, items: Sequence[Item], asking: Asking, name: str, label: str
) -> Sequence[Judgement]:
    """A verdict on each item, CallFailed where one has none; the journal's rows are not called for again."""
    options = once(asking)
    with open_journal(asking.folder / name, options, long=True) as journal:
        rows = run_trials(
            [respondent], items, journal=journal, options=options, budget=asking.budget, label=label
        )
    if failed := rows.unscored:
        error = failed[0].error or Failure("server", "no reply")
        calls = f"{label}: {len(failed):,} of {len(items):,} calls to {respondent.name} failed"
        raise CallFailed(error.kind, f"{calls}, the first by {error.kind}: {error.message}", retry=False)
    return rows
