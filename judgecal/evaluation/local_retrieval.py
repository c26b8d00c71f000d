"""What a local pipeline finds for a question: chunks by an index, over themselves or their children, then a reranker.

What is searched is built once for all pipelines of a process that share documents, chunk options, children and index.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from judgecal.answering import Answerer
from judgecal.answering.questions import Question
from judgecal.engine import CallFailed
from judgecal.errors import InputError
from judgecal.evaluation.local_config import LocalConfig
from judgecal.evaluation.system import Asking
from judgecal.experiment import CostEstimate, RunOptions, open_journal, plan_calls, run_trials, stored_rows
from judgecal.judges import Judge, judge_named
from judgecal.records import ITEM_UNIT, Context, Failure, Item, Judgement
from judgecal.retrieval.chunking import Child, Chunk, best_children, sentences_of
from judgecal.retrieval.indexes import Index, index_named
from judgecal.workspace import Workspace

RERANKING_FILE = "reranking.jsonl"
"""In the system's folder: the journal of the reranker's judgements."""

SUMMARIES_FILE = "summaries.jsonl"
"""In the system's folder: the journal of the model that summarises chunks."""

_SHARED = 2  # indexes that are held at once: the one that most settings of a sweep share, and another


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was found: the text (a chunk's own, or its best child's), and the chunk as it is handed over."""

    text: str
    context: Context  # its score is that of who ranked last


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found for a question, best first, or why nothing could be; in how many seconds, and for how much."""

    candidates: tuple[Candidate, ...] = ()
    failure: Failure | None = None
    seconds: float | None = None
    cost_usd: float | None = 0.0


class Searched:
    """Chunks, and the index over them or over their children.

    Raises:
        InputError: there is no chunk.
    """

    def __init__(self, config: LocalConfig, chunks: Sequence[Chunk], children: Sequence[Child] | None) -> None:
        self._chunks = chunks
        self._children = children
        texts = [one.text for one in (chunks if children is None else children)]
        self._index: Index = index_named(config.index, texts, tokenizer=config.tokenizer)
        # So many children more than one a chunk may stand before the last chunk that is wanted.
        self._most = 1 if children is None else max(Counter(one.parent for one in children).values())

    def best(self, question: str, k: int) -> Retrieved:
        """The best k chunks, or all where there are fewer."""
        start = time.perf_counter()
        hits = self._index.search([question], (k - 1) * self._most + 1)
        numbers, scores = hits.chunks[0].tolist(), hits.scores[0].tolist()
        found = self._candidates(numbers, dict(zip(numbers, scores, strict=True)), k)
        return Retrieved(tuple(found), seconds=time.perf_counter() - start)

    def _candidates(self, numbers: Sequence[int], scores: Mapping[int, float], k: int) -> Iterator[Candidate]:
        children = self._children
        for one in numbers if children is None else best_children(numbers, children, k):
            chunk = self._chunks[one if children is None else children[one].parent]
            context = Context(chunk.text.strip(), chunk.document_id, scores[one])
            yield Candidate(context.text if children is None else children[one].text, context)


_built: OrderedDict[str, Searched] = OrderedDict()


def shared(key: str, build: Callable[[], Searched]) -> Searched:
    """What is searched under a key, built where this process does not hold it; the two used last are held."""
    found = _built.pop(key, None) or build()
    _built[key] = found
    while len(_built) > _SHARED:
        _built.popitem(last=False)
    return found


def summaries_of(chunks: Sequence[Chunk], summariser: Answerer, asking: Asking) -> list[Child]:
    """A summary of each chunk, in their order; what the journal in the folder holds is not asked again.

    Raises:
        CallFailed: there is no summary of a chunk.
    """
    items, options = summary_items(chunks), once(asking)
    with open_journal(asking.folder / SUMMARIES_FILE, options, long=True) as journal:
        rows = run_trials(
            [summariser], items, journal=journal, options=options, budget=asking.budget, label="summaries of chunks"
        )
    if failed := [row for row in rows if row.error is not None]:
        first, error = failed[0], failed[0].error or Failure("server", "")
        message = f"{len(failed):,} of {len(chunks):,} chunks have no summary, the first is {first.item_id}"
        raise CallFailed(error.kind, f"{message}: {error.message}", retry=False)
    return [Child(str(row.verdict), number) for number, row in enumerate(rows)]


def summary_items(chunks: Sequence[Chunk]) -> list[Item]:
    """Chunks as they are put to who summarises them."""
    return [Item(one.chunk_id, one.document_id, "", "", contexts=(Context(one.text),)) for one in chunks]


def leading_sentences(chunks: Sequence[Chunk], sentences: str) -> list[Child]:
    """The first sentence of each chunk: what stands in for its summary where no model writes one."""
    first: dict[int, Child] = {}
    for child in sentences_of(chunks, sentences):
        first.setdefault(child.parent, child)
    return list(first.values())


def once(asking: Asking) -> RunOptions:
    """The options with one call for each item: repeats are the judges', and the limit was applied to the questions."""
    return dataclasses.replace(asking.options, repeats=1, limit=None)


class Reranker(Protocol):
    """What puts candidates into another order."""

    def config(self) -> dict[str, str]:
        """What decides the order."""
        ...

    def problems(self) -> list[str]:
        """What would keep it from it."""
        ...

    def preview(self, questions: Sequence[Question], found: Sequence[Retrieved], asking: Asking) -> CostEstimate:
        """What `rerank` would call; nothing is written."""
        ...

    def rerank(self, questions: Sequence[Question], found: Sequence[Retrieved], asking: Asking) -> list[Retrieved]:
        """The candidates of each question in the new order, with its own scores, and its time and cost added."""
        ...


def reranker_named(name: str, *, workspace: Workspace) -> Reranker:
    """The reranker of that name.

    Raises:
        InputError: there is none, or it does not judge single contexts.
    """
    return JudgeReranker(judge_named(name, workspace=workspace))


def candidate_items(questions: Sequence[Question], found: Sequence[Retrieved]) -> list[Item]:
    """Questions with the texts of their candidates as contexts."""
    return [
        question.item(tuple(Context(one.text) for one in retrieved.candidates))
        for question, retrieved in zip(questions, found, strict=True)
    ]


class JudgeReranker:
    """A judge of single contexts: the better its verdict, the further to the front; equal ones stay as they were.

    The seconds are those of the longest call, as the calls of a question are made at once; of the model inside
    judgecal, which has one core, those of all.

    Raises:
        InputError: it judges whole items, or its verdicts have no order.
    """

    def __init__(self, judge: Judge) -> None:
        if judge.unit == ITEM_UNIT or not judge.scale.numeric:
            raise InputError(
                f"reranker {judge.name} must judge single contexts on a scale with an order, such as "
                "mosaic/chunk_relevance@embedded"
            )
        self._judge = judge

    def config(self) -> dict[str, str]:
        """Its string, and what makes its verdicts."""
        return {"judge": self._judge.name, "fingerprint": self._judge.fingerprint}

    def problems(self) -> list[str]:
        """A key that is not set."""
        try:
            if self._judge.model is not None:
                self._judge.model.key()
        except InputError as error:
            return list(error.problems)
        return []

    def preview(self, questions: Sequence[Question], found: Sequence[Retrieved], asking: Asking) -> CostEstimate:
        """As `Reranker`."""
        journal = stored_rows(asking.folder / RERANKING_FILE)
        return plan_calls([self._judge], candidate_items(questions, found), journal, once(asking))

    def rerank(self, questions: Sequence[Question], found: Sequence[Retrieved], asking: Asking) -> list[Retrieved]:
        """As `Reranker`; what the journal in the folder holds is not judged again."""
        items, options = candidate_items(questions, found), once(asking)
        rows: dict[str, list[Judgement]] = {item.item_id: [] for item in items}
        with open_journal(asking.folder / RERANKING_FILE, options) as journal:
            for row in run_trials([self._judge], items, journal=journal, options=options, budget=asking.budget):
                rows[row.item_id].append(row)
        return [self._reranked(one, rows[item.item_id]) for one, item in zip(found, items, strict=True)]

    def _reranked(self, found: Retrieved, rows: Sequence[Judgement]) -> Retrieved:
        failed = next((row.error for row in rows if row.error is not None), None)
        if failed is not None:
            return Retrieved(failure=Failure(failed.kind, f"reranker {self._judge.name}: {failed.message}"))
        scored = [
            Candidate(one.text, dataclasses.replace(one.context, score=float(row.verdict or 0)))
            for one, row in zip(found.candidates, rows, strict=True)
        ]
        at_once = self._judge.model is not None and not self._judge.model.embedded
        times = [row.latency_s for row in rows]
        longest = max((one for one in times if one is not None), default=0.0)
        return Retrieved(
            tuple(sorted(scored, key=lambda one: -(one.context.score or 0.0))),
            seconds=added(found.seconds, longest if at_once and None not in times else added(*times)),
            cost_usd=added(found.cost_usd, *(row.cost_usd for row in rows)),
        )


def added(*values: float | None) -> float | None:
    """The sum; None where a part of it is not known."""
    return None if None in values else sum(value for value in values if value is not None)
