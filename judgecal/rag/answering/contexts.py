"""What an answerer is given beside a question: a controlled context, the naive chain's documents, or nothing.

Controlled: the reference documents, then those that BM25 ranks highest without them, so that a wrong answer
is the answerer's own. Naive (`topk`): BM25's first k, whatever they are. Closed book (`none`): no document.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.experiment import (
    CostEstimate,
    RunOptions,
    models_of,
    open_journal,
    plan_calls,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.goldset import Document, GoldSet
from judgecal.models import ModelSpec
from judgecal.rag.answering.answerer import Answerer
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.local_search import price_of
from judgecal.rag.evaluation.system import Asking, Setting, SystemAnswer
from judgecal.rag.retrieval.bm25 import Bm25, tokenizer_named
from judgecal.rag.retrieval.corpus import Collection
from judgecal.rag.retrieval.corpus import Question as Query
from judgecal.rag.retrieval.ranking import Pairs, Ranking, by_bm25
from judgecal.records import Context, Failure, Item, Judgement

ContextKind = Literal["controlled", "topk", "none", "recorded"]
_KINDS: tuple[ContextKind, ...] = ("controlled", "topk", "none")
_PLACES = ("first", "last", "middle")
_MOST = 10**9  # documents of an option


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """How a context is made."""

    kind: ContextKind = "controlled"  # recorded where all answers come from a file
    k: int = 5  # documents of `topk`
    distractors: int = 3  # documents beside the reference documents, in a controlled context
    position: str = "first"  # of the reference documents among them: first, last, middle, or a number from 1
    without_reference: bool = False  # leave them out: does the answerer refuse?
    tokenizer: str = "words"  # which words BM25 sees

    def check(self) -> None:
        """Refuse what makes no context."""
        problems = [
            f"{name} must be from {least} to {_MOST:,}, found {str(value)[:12]}"
            for name, value, least in (("-k", self.k, 1), ("--distractors", self.distractors, 0))
            if not least <= value <= _MOST
        ]
        last = max(self.distractors, 0) + 1
        if self.position not in _PLACES and not (
            self.position.isdecimal() and 1 <= int(self.position) <= last
        ):
            problems.append(
                f"--position must be {', '.join(_PLACES)} or a number from 1 to {last} (one more than the "
                f"distractors), found {self.position!r}"
            )
        if self.without_reference and self.kind != "controlled":
            problems.append(f"--without-reference is for --contexts controlled, found {self.kind}")
        refuse(problems)

    def place(self, distractors: int) -> int:
        """How many distractors stand before the reference documents."""
        wanted = {"first": 0, "last": distractors, "middle": distractors // 2}.get(self.position)
        return min(int(self.position) - 1, distractors) if wanted is None else wanted

    def config(self) -> dict[str, Any]:
        """What an experiment's configuration says: the options that this kind depends on."""
        options: dict[ContextKind, tuple[str, ...]] = {
            "controlled": ("distractors", "position", "without_reference", "tokenizer"),
            "topk": ("k", "tokenizer"),
        }
        return {name: getattr(self, name) for name in ("kind", *options.get(self.kind, ()))}


def context_options(
    kinds: Sequence[str], options: ContextOptions, *, called: bool = True
) -> list[ContextOptions]:
    """The contexts to run one after the other, by name; an option of one kind is no part of another.

    `recorded` is for runs in which no answerer is called.
    """
    if not kinds:
        raise InputError("--contexts is empty: give controlled, topk, none, or several by commas")
    known = _KINDS if called else get_args(ContextKind)
    made = []
    for kind in kinds:
        if kind not in known:
            raise unknown_name("context", kind, _KINDS)
        left_out = options.without_reference and (kind == "controlled" or "controlled" not in kinds)
        made.append(dataclasses.replace(options, kind=cast(ContextKind, kind), without_reference=left_out))
        made[-1].check()
    return made


@dataclass(frozen=True, slots=True)
class Served:
    """What one question comes with.

    `rank` and `score` are those of the best reference document by BM25 among all documents, None where it is
    not in the corpus; `ties` counts the other documents with the same score.
    """

    contexts: tuple[Context, ...] = ()  # handed over, in their order; a title stands above its text
    rank: int | None = None
    score: float | None = None
    ties: int = 0
    holds_reference: bool = False  # whether a reference document is among the contexts
    problem: tuple[str, str] | None = None  # why it cannot be asked with such a context: kind and message


def serve(questions: Sequence[Question], gold: GoldSet, options: ContextOptions) -> dict[str, Served]:
    """The context of every question, by its group.

    A question whose controlled context cannot be made (its reference document is missing or empty, or it
    names none and yet has an answer) carries the problem and no context.
    """
    options.check()
    if not gold.documents:
        if options.kind in ("controlled", "topk"):
            raise InputError(
                f"gold set {gold.name} has no documents: put them into documents.jsonl (document_id, title, "
                "text), or ask without any by --contexts none"
            )
        return {question.group: Served() for question in questions}
    return _Shelf(gold.documents, options).serve(questions)


def corpus_notes(
    questions: Sequence[Question], gold: GoldSet, served: Mapping[str, Served], options: ContextOptions
) -> list[str]:
    """What is wrong with documents and references, and how often the naive chain finds them."""
    known = {one.document_id for one in gold.documents}
    blank = [one.document_id for one in gold.documents if not one.text.strip()]
    nameless = [one.group for one in questions if not one.reference_documents]
    missing = [one.group for one in questions if not known.issuperset(one.reference_documents)]
    named = functools.partial(listed, sealed=gold.test_groups)
    notes = []
    if blank:
        what = (
            "BM25 ranks them like any other" if options.kind == "topk" else "never handed over as distractors"
        )
        empty = "document is empty" if len(blank) == 1 else "documents are empty"
        notes.append(f"{len(blank)} {empty} ({listed(blank)}): {what}")
    if missing and gold.documents:
        notes.append(f"{_questions(missing)} a reference document that the corpus lacks: {named(missing)}")
    if nameless and options.kind != "none":
        notes.append(f"{_questions(nameless)} no reference document: {named(nameless)}")
    if options.kind == "topk":
        found = sum(served[one.group].holds_reference for one in questions)
        notes.append(
            f"a reference document is among those handed over for {found} of {len(questions)} questions"
        )
    return notes


def _questions(groups: Sequence[str]) -> str:
    return "1 question names" if len(groups) == 1 else f"{len(groups)} questions name"


class _Shelf:
    """The documents, indexed, and how they are handed over."""

    def __init__(self, documents: Sequence[Document], options: ContextOptions) -> None:
        self._documents, self._options = documents, options
        self._number = {one.document_id: place for place, one in enumerate(documents)}
        self._contexts = [
            Context(f"{one.title}\n\n{one.text}" if one.title else one.text, one.document_id)
            for one in documents
        ]
        self._blank = frozenset(place for place, one in enumerate(documents) if not one.text.strip())

    def serve(self, questions: Sequence[Question]) -> dict[str, Served]:
        tokens = tokenizer_named(self._options.tokenizer)
        queries = tuple(
            Query(one.group, one.question, dict.fromkeys(one.reference_documents, 1)) for one in questions
        )
        pairs = Pairs.of(Collection("answer", tuple(self._documents), queries, "gold", "gold"))
        most = max(len(one.reference_documents) for one in questions)
        keep = max(self._options.k, self._options.distractors + most + len(self._blank))
        index = Bm25.of(tokens(one.text) for one in self._documents)
        ranking = by_bm25(index, [tokens(one.question) for one in questions], pairs, keep=keep)
        standing = _best(pairs, ranking)
        return {
            one.group: self._served(one, ranking.head[place].tolist(), standing.get(place))
            for place, one in enumerate(questions)
        }

    def _served(
        self, question: Question, head: Sequence[int], standing: tuple[int, float, int] | None
    ) -> Served:
        problem = self._problem(question)
        own = [self._number[name] for name in question.reference_documents if name in self._number]
        chosen = [] if problem else self._chosen(own, head)
        contexts, holds = tuple(self._contexts[place] for place in chosen), not set(own).isdisjoint(chosen)
        rank, score, ties = standing or (None, None, 0)
        return Served(contexts, rank, score, ties, holds, problem)

    def _chosen(self, own: Sequence[int], head: Sequence[int]) -> list[int]:
        """Which are handed over; `own` are the reference documents, `head` those that BM25 ranks highest."""
        if self._options.kind in ("none", "recorded"):
            return []
        if self._options.kind == "topk":
            return list(head[: self._options.k])
        others = [place for place in head if place not in own and place not in self._blank]
        others = others[: self._options.distractors]
        if self._options.without_reference:
            return others
        before = self._options.place(len(others))
        return [*others[:before], *own, *others[before:]]

    def _problem(self, question: Question) -> tuple[str, str] | None:
        """Why the reference documents cannot be handed over, where a full controlled context needs them."""
        if self._options.kind != "controlled" or self._options.without_reference:
            return None
        names = question.reference_documents
        if not names and question.answerable:
            return "no_reference_document", "names no reference document"
        for name in names:
            if name not in self._number:
                return "missing_document", f"reference document {name} is not in the corpus"
            if self._number[name] in self._blank:
                return "empty_document", f"reference document {name} is empty"
        return None


def _best(pairs: Pairs, ranking: Ranking) -> Mapping[int, tuple[int, float, int]]:
    """Question number -> rank, score and ties of its best reference document in the corpus."""
    found: dict[int, tuple[int, float, int]] = {}
    for place in np.flatnonzero(pairs.document >= 0).tolist():
        question = int(pairs.question[place])
        here = (int(ranking.rank[place]), float(ranking.score[place]), int(ranking.ties[place]))
        found[question] = min(found.get(question, here), here)
    return found


# --- who answers from them

ANSWERS_FILE = "answers.jsonl"
"""In the experiment: the journal of all answers, as judgements whose verdicts are texts."""


class ContextAnswerers:
    """Every answerer with every kind of context: a local system whose documents are chosen, not found.

    A prompt that two contexts share is sent once. The cost of a stored reply is its model's price.

    Args:
        served: kind of context -> group of a question -> what it comes with.
    """

    name, shows_contexts = "answerers", True

    def __init__(
        self, answerers: Sequence[Answerer], served: Mapping[ContextKind, Mapping[str, Served]]
    ) -> None:
        self.answerers, self.served = answerers, served
        self.rows: Sequence[Judgement] = ()  # of the journal, once they have answered
        self.settings: Mapping[str, Setting] = {}

    def journal(self, folder: Path) -> Path:
        """Of their answers, in the folder of an experiment."""
        return folder / ANSWERS_FILE

    def config(self) -> dict[str, Any]:
        """The answerers; the contexts stand in the experiment's own configuration."""
        return {"systems": [one.config() for one in self.answerers]}

    def models(self) -> Sequence[ModelSpec]:
        """Those of the answerers."""
        return models_of(self.answerers)

    def requests(self, questions: Sequence[Question]) -> list[Item]:
        """Every question as answerers see it, once for each context that differs."""
        items = [
            question.item(served[question.group].contexts)
            for served in self.served.values()
            for question in questions
            if served[question.group].problem is None
        ]
        return list({(item.item_id, item.sha): item for item in items}.values())

    def check(self, questions: Sequence[Question]) -> list[str]:
        """Documents that a prompt has no place for."""
        problems: list[str] = []
        for answerer in self.answerers:
            try:
                answerer.check_items(self.requests(questions))
            except InputError as error:
                problems += error.problems
        return problems

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """What `answer` would call now."""
        journal = stored_rows(asking.folder / ANSWERS_FILE)
        return plan_calls(self.answerers, self.requests(questions), journal, asking.options)

    def require_keys(self, questions: Sequence[Question], folder: Path, options: RunOptions) -> None:
        """InputError: a call is due, and the key for it is not set."""
        require_keys(self.answerers, self.requests(questions), stored_rows(folder / ANSWERS_FILE), options)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """Each answerer x context x question x repeat; a question that cannot be asked so is a failure."""
        with open_journal(asking.folder / ANSWERS_FILE, asking.options) as journal:
            self.rows = run_trials(
                self.answerers,
                self.requests(questions),
                journal=journal,
                options=asking.options,
                budget=asking.budget,
            )
        replies = {(row.judge, row.item_id, row.item_sha, row.repeat): row for row in self.rows}
        found = []
        for answerer, (kind, served), question, repeat in itertools.product(
            self.answerers, self.served.items(), questions, range(asking.options.repeats)
        ):
            name, here = system_name(answerer.name, kind, self.served), served[question.group]
            if here.problem is not None:
                failure = Failure("refused", f"not asked: {here.problem[1]}")
                found.append(SystemAnswer(name, question.group, None, error=failure, repeat=repeat))
                continue
            row = replies[answerer.name, question.group, question.item(here.contexts).sha, repeat]
            text = None if row.verdict is None else str(row.verdict)
            found.append(
                SystemAnswer(
                    name,
                    question.group,
                    text,
                    here.contexts,
                    row.error or (Failure("parse", "no answer in the reply") if text is None else None),
                    latency_s=row.latency_s,
                    prompt_tokens=row.prompt_tokens,
                    completion_tokens=row.completion_tokens,
                    cost_usd=price_of(row, answerer.model),
                    at=row.at,
                    repeat=repeat,
                )
            )
        return found


def system_name(system: str, context: ContextKind, contexts: Iterable[ContextKind]) -> str:
    """What tells a system apart from the same one with another context; its own name where there is one."""
    several = sum(kind != "recorded" for kind in contexts) > 1
    return f"{system} ({context})" if several and context != "recorded" else system
