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
from judgecal.rag.answering import Answerer
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.local_config import LocalConfig
from judgecal.rag.evaluation.local_index import (
    QueryVector,
    Retrieved,
    Searched,
    dense,
    price_of,
    query_vectors,
    shared,
)
from judgecal.rag.evaluation.local_rerank import Reranker, once, reranker_named
from judgecal.rag.evaluation.system import Asking
from judgecal.rag.retrieval.chunking import Child, Chunk, chunks_of, sentences_of
from judgecal.rag.retrieval.indexes import Vectors, embedding_model, index_named
from judgecal.rag.retrieval.model_calls import Embedder, texts_to_embed
from judgecal.records import RETRIED_ON_RESUME, Context, ErrorKind, Failure, Item, Judgement, digest
from judgecal.workspace import Workspace

SUMMARIES_FILE = "summaries.jsonl"
"""In the system's folder: the journal of the model that summarises chunks."""

EMBEDDINGS_FILE = "embeddings.jsonl"
"""In the system's folder: the journal of the model that embeds chunks and questions."""

_SUMMARY = "rag/summary"
"""The signature that summarises a chunk."""

_AT_ONCE = 64  # calls for vectors whose replies are held at once: 2,048 texts

_VERSION = "1"
"""Counts changes of the code that change what is found: of chunks, children, BM25 and what is built of
vectors."""

_LIBRARIES = {"lsa": "scikit-learn", "stem:": "PyStemmer", "sentencex:": "sentencex"}
"""Whose version decides what is found, by how the setting begins that asks for it."""


class Retrieval:
    """Chunks, an index and perhaps a reranker, as a table has them.

    Args:
        name: of the pipeline, for messages.
        config: its table.
        documents: gives the texts that are searched.
        workspace: where signatures and model aliases are found.
    """

    def __init__(
        self,
        name: str,
        config: LocalConfig,
        documents: Callable[[], Sequence[Document]],
        workspace: Workspace,
    ) -> None:
        self._name = name
        self._config = config
        self._documents = documents
        self._workspace = workspace

    # --- who is asked

    @cached_property
    def reranker(self) -> Reranker | None:
        """Who reranks, where that is asked for. InputError: there is no such judge or model."""
        return (
            reranker_named(self._config.reranker, workspace=self._workspace) if self._config.reranks else None
        )

    @cached_property
    def summariser(self) -> Answerer | None:
        """Who summarises chunks, where that is asked for; the model inside judgecal cannot.

        InputError: there is no such model, or the workspace has no such signature.
        """
        config = self._config
        if not config.searches_children or config.children != "summaries":
            return None
        found = Answerer(f"{_SUMMARY}@{config.answerer.model}", workspace=self._workspace)
        return None if found.model.embedded else found

    @cached_property
    def embedder(self) -> Embedder | None:
        """Who embeds, where that is asked for. InputError: there is no such model."""
        model = embedding_model(self._config.index)
        return None if model is None else Embedder(model, workspace=self._workspace)

    def respondents(self) -> Iterator[Callable[[], Respondent | None]]:
        """Gives each of those who are called beside the answerer; it raises InputError where there is no such
        one."""
        yield lambda: self.reranker.respondent if self.reranker else None
        yield lambda: self.summariser
        yield lambda: self.embedder

    # --- what decides what is found

    def config(self) -> dict[str, Any]:
        """The documents, and every setting that decides what is handed over."""
        config = self._config
        found = {**self._searched, "strategy": config.strategy, "top_n": config.top_n}
        if self.reranker:
            found |= {"top_k": config.top_k, "reranker": self.reranker.config()}
        return found

    @cached_property
    def _searched(self) -> dict[str, Any]:
        """What decides what is searched: who shares it shares the index."""
        config = self._config
        texts = [[one.document_id, one.title, one.text] for one in self._documents()]
        return {
            "documents": digest(texts),
            "chunk": dataclasses.asdict(config.chunk.options),
            "index": self.embedder.fingerprint if self.embedder else config.index,
            "tokenizer": None if self.embedder else config.tokenizer,
            "children": self._children if config.searches_children else None,
            "versions": dict(self._versions()),
        }

    @property
    def _children(self) -> str | dict[str, Any]:
        if self._config.children == "sentences":
            return "sentences"
        return self.summariser.config() if self.summariser else "leading sentences"

    def _versions(self) -> Iterator[tuple[str, str]]:
        yield "judgecal's retrieval", _VERSION
        settings = (self._config.index, self._config.tokenizer, self._config.chunk.sentences)
        for beginning, library in _LIBRARIES.items():
            if any(one.startswith(beginning) for one in settings):
                yield library, version(library)

    # --- finding

    def preview(self, due: Sequence[Question], asking: Asking) -> tuple[list[CostEstimate], list[Retrieved]]:
        """What `find` would call, and about what it would find; nothing is written.

        That is what BM25 finds in the place of vectors, and leading sentences in the place of summaries; a
        reranker leaves it as it is.
        """
        options, chunks = once(asking), self._chunks()
        children = self._offline_children(chunks)
        estimates = []
        if self.summariser:
            journal = stored_rows(asking.folder / SUMMARIES_FILE)
            estimates.append(plan_calls([self.summariser], _to_summarise(chunks), journal, options))
        if self.embedder:
            queries = [one.question for one in due]
            items = [
                *texts_to_embed(_texts(chunks, children)),
                *(texts_to_embed([one])[0] for one in queries),
            ]
            estimates.append(
                plan_calls([self.embedder], items, stored_rows(asking.folder / EMBEDDINGS_FILE), options)
            )
        index = "bm25" if self.embedder else self._config.index
        texts = _texts(chunks, children)
        searched = Searched(index_named(index, texts, tokenizer=self._config.tokenizer), chunks, children)
        found = [searched.best(one.question, self._n) for one in due]
        if self.reranker:
            estimates.append(self.reranker.preview(due, found, asking))
        return estimates, found

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
        found = [searched.best(one.question, self._n) for one in due]
        return self.reranker.rerank(due, found, asking) if self.reranker else found

    @property
    def _n(self) -> int:
        """Chunks that the index is asked for."""
        return self._config.top_k if self._config.reranks else self._config.top_n

    def _chunks(self) -> list[Chunk]:
        return chunks_of(self._documents(), self._config.chunk.options)

    def _build(self, asking: Asking) -> Searched:
        chunks = self._chunks()
        children = self._summaries(chunks, asking) if self.summariser else self._offline_children(chunks)
        texts = _texts(chunks, children)
        if self.embedder:
            queries = query_vectors(self.embedder.fingerprint)
            return Searched(
                dense(self._vectors(self.embedder, texts, asking), queries), chunks, children, queries
            )
        if self._config.searches_children and self._config.children == "summaries" and not self.summariser:
            notice(
                f"judgecal: {self._name}: the leading sentence of each chunk stands in for its summary, as the model "
                "embedded writes none"
            )
        return Searched(
            index_named(self._config.index, texts, tokenizer=self._config.tokenizer), chunks, children
        )

    def _offline_children(self, chunks: Sequence[Chunk]) -> list[Child] | None:
        """What is searched in place of chunks, made without a call; None where they themselves are
        searched."""
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

    def _summaries(self, chunks: Sequence[Chunk], asking: Asking) -> list[Child]:
        assert self.summariser is not None
        rows = _asked(self.summariser, _to_summarise(chunks), asking, SUMMARIES_FILE, "summaries of chunks")
        return [Child(str(row.verdict), number) for number, row in enumerate(rows)]

    def _vectors(self, embedder: Embedder, texts: Sequence[str], asking: Asking) -> Vectors:
        """The vectors of texts; those of one size are held at once."""
        from judgecal.engine.transport.embeddings import vectors_in

        items, parts = texts_to_embed(texts), list[Vectors]()
        for start in range(0, len(items), _AT_ONCE):
            part = items[start : start + _AT_ONCE]
            rows = _asked(embedder, part, asking, EMBEDDINGS_FILE, f"vectors of {len(texts):,} texts")
            parts += [vectors_in(str(row.verdict)) for row in rows]
        sizes = {part.shape[1] for part in parts}
        if len(sizes) > 1:
            raise CallFailed(
                "server", f"{embedder.name} gave vectors of {sorted(sizes)} dimensions", retry=False
            )
        return np.concatenate(parts)

    def _embed_questions(self, embedder: Embedder, due: Sequence[Question], asking: Asking) -> None:
        """Add the vectors of questions that this process does not have yet, or why there is none."""
        from judgecal.engine.transport.embeddings import vectors_in

        known, options = query_vectors(embedder.fingerprint), once(asking)
        wanted = [one.question for one in due if one.question not in known or known[one.question].failure]
        items = [texts_to_embed([text])[0] for text in wanted]
        with open_journal(asking.folder / EMBEDDINGS_FILE, options, long=True) as journal:
            rows = run_trials([embedder], items, journal=journal, options=options, budget=asking.budget)
        for text, row in zip(wanted, rows, strict=True):
            failure = row.error and Failure(
                row.error.kind, f"{embedder.name}: the question: {row.error.message}"
            )
            vector = None if failure else vectors_in(str(row.verdict))[0]
            known[text] = QueryVector(vector, failure, row.latency_s, price_of(row, embedder.model))


def _texts(chunks: Sequence[Chunk], children: Sequence[Child] | None) -> list[str]:
    return [one.text for one in (chunks if children is None else children)]


def _to_summarise(chunks: Sequence[Chunk]) -> list[Item]:
    return [Item(one.chunk_id, one.document_id, "", "", contexts=(Context(one.text),)) for one in chunks]


def _asked(
    respondent: Respondent, items: Sequence[Item], asking: Asking, name: str, label: str
) -> Sequence[Judgement]:
    """A verdict on each item; what the journal of that name holds is not asked again.

    Raises:
        CallFailed: there is none on one of them.
    """
    options = once(asking)
    with open_journal(asking.folder / name, options, long=True) as journal:
        rows = run_trials(
            [respondent], items, journal=journal, options=options, budget=asking.budget, label=label
        )
    if failed := rows.unscored:
        error = failed[0].error or Failure("server", "no reply")
        message = (
            f"{label}: {len(failed):,} of {len(items):,} calls to {respondent.name} failed, the first by"
        )
        raise CallFailed(error.kind, f"{message} {error.kind}: {error.message}", retry=False)
    return rows
