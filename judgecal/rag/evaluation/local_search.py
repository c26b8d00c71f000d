"""What a local pipeline searches, and the models that embed texts and rerank candidates.

An index is built once for all pipelines of a process that share documents, chunk options and index. Models
are called through the engine as judges are, and their verdict is their reply: so they share its journals,
budget, stored replies, retries and redaction. Vectors are journalled for all systems of an experiment.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.engine import Message, ParsedReply
from judgecal.errors import InputError
from judgecal.experiment import CostEstimate, open_journal, plan_calls, run_trials, stored_rows
from judgecal.judges import JudgeName, Respondent, judge_named
from judgecal.models import ModelSpec, for_task, load_catalogue
from judgecal.models.catalogue import Task
from judgecal.rag.evaluation.system import Asking
from judgecal.rag.questions import Question
from judgecal.rag.retrieval.chunking import Chunk
from judgecal.rag.retrieval.indexes import Bm25Index, DenseIndex, Vectors
from judgecal.records import ITEM_UNIT, Context, Failure, Item, Judgement, digest
from judgecal.signatures import list_signatures
from judgecal.workspace import Workspace

EMBEDDINGS_FILE, RERANKING_FILE = "embeddings.jsonl", "reranking.jsonl"
"""What models replied: the vectors of all systems, and of each system how candidates were reranked."""
_AT_ONCE = 64  # calls for vectors whose replies are held at once: 2,048 texts
_TEXTS_A_CALL = 32  # embedded at once; of 4,096 dimensions they keep within the largest reply of the engine
_HELD = 2  # indexes at once: what most settings of a sweep share, and another


def call(
    respondent: Respondent,
    items: Sequence[Item],
    asking: Asking,
    file: str,
    *,
    long: bool = False,
    label: str | None = None,
) -> tuple[Judgement, ...]:
    """A reply to each item; what the journal of this name in the folder holds is not called for again."""
    options = asking.options
    with open_journal(asking.folder / file, options, long=long) as journal:
        return run_trials(
            [respondent], items, journal=journal, options=options, budget=asking.budget, label=label
        )


def plan(respondent: Respondent, items: Sequence[Item], asking: Asking, file: str) -> CostEstimate:
    """What `call` would call; nothing is written."""
    return plan_calls([respondent], items, stored_rows(asking.folder / file), asking.options)


def added(*values: float | None) -> float | None:
    """The sum; None where a part of it is not known."""
    return None if None in values else sum(value for value in values if value is not None)


def price_of(row: Judgement, model: ModelSpec | None) -> float | None:
    """What a call costs whoever makes it: of a stored reply its model's price, None where not known."""
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
        """The best k chunks for a text, or the vector of one, or all where there are fewer.

        With `parents`, the texts of documents by id, it is the best k documents, each by its best chunk.
        """
        start, n = time.perf_counter(), k if parents is None else (k - 1) * self._most + 1
        if isinstance(self.index, Bm25Index):
            hits = self.index.search([str(query)], n)
        elif len(query) != self.index.dimensions:  # as where the server has changed
            message = f"a vector of {len(query)} dimensions, the chunks have {self.index.dimensions}"
            return Retrieved(failure=Failure("server", message))
        else:
            hits = self.index.search(np.asarray(query)[None, :], n)
        candidates: dict[str, RankedContext] = {}
        for number, score in zip(hits.chunks[0].tolist(), hits.scores[0].tolist(), strict=True):
            chunk = self.chunks[number]
            name = chunk.chunk_id if parents is None else chunk.document_id
            text = chunk.text.strip()
            handed = text if parents is None else parents[chunk.document_id].strip()
            candidates.setdefault(name, RankedContext(text, Context(handed, chunk.document_id, score)))
        return Retrieved(tuple(candidates.values())[:k], seconds=time.perf_counter() - start)


_built: OrderedDict[str, Searched] = OrderedDict()


def shared(key: str, build: Callable[[], Searched]) -> Searched:
    """What is searched under a key, built where this process does not hold it; the two used last are held."""
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
        """The text, where it holds vectors that can be used."""
        from judgecal.engine.transport.wires import vectors_in

        try:
            vectors_in(text)
        except ValueError as error:
            return ParsedReply(None, failure=Failure("parse", f"no vectors that can be used: {error}"))
        return ParsedReply(text)


def texts_to_embed(texts: Sequence[str]) -> list[Item]:
    """Texts as items of up to 32 each, in their order; one item's vectors come with one call.

    A text that is blank, which servers refuse, is sent as a full stop.
    """
    sent = [text if text.strip() else "." for text in texts]
    batches = [sent[start : start + _TEXTS_A_CALL] for start in range(0, len(sent), _TEXTS_A_CALL)]
    names = [digest(batch)[:16] for batch in batches]
    return [
        Item(name, name, "", "", contexts=tuple(map(Context, batch)))
        for name, batch in zip(names, batches, strict=True)
    ]


def asked_each(questions: Sequence[Question]) -> list[Item]:
    """Questions as items of one text each."""
    return [texts_to_embed([question.question])[0] for question in questions]


def embedded(
    embedder: Embedder, items: Sequence[Item], asking: Asking, label: str | None = None
) -> list[tuple[Judgement, Vectors | None]]:
    """The reply to each item, and the vectors in it; no text of the experiment is embedded twice."""
    from judgecal.engine.transport.wires import vectors_in

    shared_asking = dataclasses.replace(asking, folder=asking.folder.parent)
    rows: list[tuple[Judgement, Vectors | None]] = []
    for start in range(0, len(items), _AT_ONCE):
        part = items[start : start + _AT_ONCE]
        for row in call(embedder, part, shared_asking, EMBEDDINGS_FILE, long=True, label=label):
            vectors = None if row.verdict is None else vectors_in(str(row.verdict))
            rows.append((dataclasses.replace(row, verdict=None), vectors))  # the text is far larger
    return rows


def plan_vectors(embedder: Embedder, items: Sequence[Item], asking: Asking) -> CostEstimate:
    """What `embedded` would call."""
    return plan(embedder, items, dataclasses.replace(asking, folder=asking.folder.parent), EMBEDDINGS_FILE)


class RerankModel(_TaskModel):
    """The relevance of an item's contexts to its question; the verdict is a JSON list, a score each."""

    _task = "rerank"

    def read(self, text: str) -> ParsedReply:
        """The text, where all scores are finite numbers."""
        if not all(math.isfinite(score) for score in json.loads(text)):
            return ParsedReply(None, failure=Failure("parse", f"a score is not a finite number: {text:.80}"))
        return ParsedReply(text)


def reranker_named(name: str, *, workspace: Workspace) -> Respondent:
    """A judge of single contexts by its string, or a reranking model by its alias or id."""
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


def with_candidates(questions: Sequence[Question], retrieved: Sequence[Retrieved]) -> list[Item]:
    """Questions with the texts of their candidates as contexts; without those that have none."""
    return [
        question.item(tuple(Context(candidate.text) for candidate in found.candidates))
        for question, found in zip(questions, retrieved, strict=True)
        if found.candidates
    ]


def rerank(
    reranker: Respondent, questions: Sequence[Question], retrieved: Sequence[Retrieved], asking: Asking
) -> list[Retrieved]:
    """The candidates of each question in the new order, with its own scores, and its time and cost added.

    The better the verdict on a candidate, the further to the front; equal ones stay as they were. The seconds
    are those of the longest call, as the calls of a question are made at once; of the model inside judgecal,
    which has one core, those of all.
    """
    rows: dict[str, list[Judgement]] = {}
    for row in call(reranker, with_candidates(questions, retrieved), asking, RERANKING_FILE):
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
        seconds=added(before.seconds, *([longest] if at_once else times)),
        cost_usd=added(before.cost_usd, *(price_of(row, model) for row in rows)),
    )
