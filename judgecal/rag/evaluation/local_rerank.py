"""Who puts the candidates of a local pipeline into another order: a judge of single contexts, or a reranking
model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from judgecal.errors import InputError
from judgecal.experiment import CostEstimate, RunOptions, open_journal, plan_calls, run_trials, stored_rows
from judgecal.judges import JudgeName, Respondent, judge_named
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.local_index import Candidate, Retrieved, added, price_of
from judgecal.rag.evaluation.system import Asking
from judgecal.rag.retrieval.model_calls import RerankModel
from judgecal.records import ITEM_UNIT, Context, Failure, Item, Judgement
from judgecal.signatures import list_signatures
from judgecal.workspace import Workspace

RERANKING_FILE = "reranking.jsonl"
"""In the system's folder: the journal of the reranker's judgements."""


def once(asking: Asking) -> RunOptions:
    """The options with one call for each item: repeats are the judges', and the limit was applied to the
    questions."""
    return dataclasses.replace(asking.options, repeats=1, limit=None)


def reranker_named(name: str, *, workspace: Workspace) -> Reranker:
    """The reranker of that name: a judge of single contexts by its string, or a reranking model by its alias
    or id.

    Raises:
        InputError: there is none, or the judge judges whole items, or without an order.
    """
    if JudgeName.read(name) is None:
        if name in list_signatures(workspace):
            raise InputError(f"reranker {name} is a signature: write {name}@MODEL, such as {name}@embedded")
        return Reranker(RerankModel(name, workspace=workspace))
    judge = judge_named(name, workspace=workspace)
    if judge.unit == ITEM_UNIT or not judge.scale.numeric:
        raise InputError(
            f"reranker {judge.name} must judge single contexts on a scale with an order, such as "
            "mosaic/chunk_relevance@embedded"
        )
    return Reranker(judge)


class Reranker:
    """The better the verdict on a candidate, the further to the front; equal ones stay as they were.

    The seconds are those of the longest call, as the calls of a question are made at once; of the model
    inside judgecal, which has one core, those of all.
    """

    def __init__(self, respondent: Respondent) -> None:
        self.respondent = respondent

    def config(self) -> dict[str, str]:
        """Who it is, and what makes its verdicts."""
        return {"name": self.respondent.name, "fingerprint": self.respondent.fingerprint}

    def preview(
        self, questions: Sequence[Question], found: Sequence[Retrieved], asking: Asking
    ) -> CostEstimate:
        """What `rerank` would call; nothing is written."""
        journal = stored_rows(asking.folder / RERANKING_FILE)
        return plan_calls([self.respondent], _items(questions, found), journal, once(asking))

    def rerank(
        self, questions: Sequence[Question], found: Sequence[Retrieved], asking: Asking
    ) -> list[Retrieved]:
        """The candidates of each question in the new order, with its own scores, and its time and cost added.

        What the journal in the folder holds is not judged again.
        """
        items, options = _items(questions, found), once(asking)
        rows: dict[str, list[Judgement]] = {item.item_id: [] for item in items}
        with open_journal(asking.folder / RERANKING_FILE, options) as journal:
            for row in run_trials(
                [self.respondent], items, journal=journal, options=options, budget=asking.budget
            ):
                rows[row.item_id].append(row)
        named = zip(questions, found, strict=True)
        return [
            self._reranked(one, rows[question.group]) if one.candidates else one for question, one in named
        ]

    def _reranked(self, found: Retrieved, rows: Sequence[Judgement]) -> Retrieved:
        failed = next((row.error for row in rows if row.error is not None), None)
        if failed is not None:
            return Retrieved(
                failure=Failure(failed.kind, f"reranker {self.respondent.name}: {failed.message}")
            )
        scored = [
            Candidate(one.text, dataclasses.replace(one.context, score=score))
            for one, score in zip(found.candidates, self._scores(rows), strict=True)
        ]
        at_once = self.respondent.model is not None and not self.respondent.model.embedded
        times = [row.latency_s for row in rows]
        longest = max((one for one in times if one is not None), default=0.0)
        return Retrieved(
            tuple(sorted(scored, key=lambda one: -(one.context.score or 0.0))),
            seconds=added(found.seconds, longest if at_once and None not in times else added(*times)),
            cost_usd=added(found.cost_usd, *(price_of(row, self.respondent.model) for row in rows)),
        )

    def _scores(self, rows: Sequence[Judgement]) -> list[float]:
        if self.respondent.unit == ITEM_UNIT:  # one call for all candidates
            return [float(score) for score in json.loads(str(rows[0].verdict))]
        return [float(row.verdict or 0) for row in rows]


def _items(questions: Sequence[Question], found: Sequence[Retrieved]) -> list[Item]:
    """Questions with the texts of their candidates as contexts; without those that have none."""
    return [
        question.item(tuple(Context(one.text) for one in retrieved.candidates))
        for question, retrieved in zip(questions, found, strict=True)
        if retrieved.candidates
    ]
