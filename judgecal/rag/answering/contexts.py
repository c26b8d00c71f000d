"""What an answerer is given beside a question: a controlled context, the naive chain's documents, or nothing.

Controlled: the reference documents, then those that BM25 ranks highest without them, so that a wrong answer
is the answerer's own. Naive (`topk`): BM25's first k, whatever they are. Closed book (`none`): no document.
Own (`own`): the contexts of the question's item, each with its number from 0 in front, as citations name it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.experiment import CostEstimate, models_of, open_journal, plan_calls, run_trials, stored_rows
from judgecal.goldset import GoldSet
from judgecal.models import ModelSpec
from judgecal.rag.answering.answerer import Answerer
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.local_search import price_of
from judgecal.rag.evaluation.system import Asking, Setting, SystemAnswer
from judgecal.rag.retrieval.collection import Collection
from judgecal.rag.retrieval.collection import Question as Query
from judgecal.rag.retrieval.indexes import Bm25, tokenizer_named
from judgecal.rag.retrieval.ranking import by_bm25
from judgecal.records import Context, Failure, Item, Judgement

ContextKind = Literal["controlled", "topk", "none", "own", "recorded"]
_KINDS: tuple[ContextKind, ...] = ("controlled", "topk", "none", "own")
_PLACES = ("first", "last", "middle")
_MOST = 10**9  # documents of an option
_DEPENDS_ON: dict[ContextKind, tuple[str, ...]] = {
    "controlled": ("distractors", "position", "without_reference", "tokenizer"),
    "topk": ("k", "tokenizer"),
    "own": ("shuffle",),
}


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """Which contexts are made, and how; an option of one kind is no part of another."""

    kinds: tuple[ContextKind, ...] = ("controlled",)  # recorded alone where all answers come from a file
    k: int = 5  # documents of `topk`
    distractors: int = 3  # documents beside the reference documents, in a controlled context
    position: str = "first"  # of the reference documents among them: first, last, middle, or a number from 1
    without_reference: bool = False  # leave them out of a controlled context: does the answerer refuse?
    tokenizer: str = "words"  # which words BM25 sees
    shuffle: bool = False  # whether a question's own contexts are handed over in another order, by the seed

    @classmethod
    def named(cls, names: Sequence[str] | None, **options: Any) -> ContextOptions:
        """The contexts of these names, one run after the other, checked; None where nobody is called."""
        if names is not None and not names:
            raise InputError("--contexts is empty: give controlled, topk, none, own, or several by commas")
        for name in names or ():
            if name not in _KINDS:
                raise unknown_name("context", name, _KINDS)
        kinds = ("recorded",) if names is None else tuple(names)
        made = cls(cast("tuple[ContextKind, ...]", kinds), **options)
        made.check()
        return made

    def check(self) -> None:
        """Refuse what makes no context."""
        problems = [
            f"{name} must be from {least} to {_MOST:,}, found {str(value)[:12]}"
            for name, value, least in (("-k", self.k, 1), ("--distractors", self.distractors, 0))
            if not least <= value <= _MOST
        ]
        last, place = max(self.distractors, 0) + 1, self.position
        if place not in _PLACES and not (place.isdecimal() and 1 <= int(place) <= last):
            problems.append(
                f"--position must be {', '.join(_PLACES)} or a number from 1 to {last} (one more than the "
                f"distractors), found {place!r}"
            )
        if self.without_reference and "controlled" not in self.kinds:
            problems.append(f"--without-reference is for --contexts controlled, found {self.kinds[0]}")
        if self.shuffle and "own" not in self.kinds:
            problems.append(f"--shuffle is for --contexts own, found {self.kinds[0]}")
        refuse(problems)

    def of(self, kind: ContextKind) -> dict[str, Any]:
        """What an experiment's configuration says: the options that this kind depends on."""
        return {name: getattr(self, name) for name in _DEPENDS_ON.get(kind, ())}


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


ServedBy = Mapping[ContextKind, Mapping[str, Served]]
"""Kind of context -> group of a question -> what it comes with."""


def serve(
    questions: Sequence[Question], gold: GoldSet, options: ContextOptions, *, seed: int = 0
) -> ServedBy:
    """The contexts of every question; `seed` decides the order of those that are shuffled.

    A question whose controlled context cannot be made (its reference document is missing or empty, or it
    names none and yet has an answer) carries the problem and no context.
    """
    documents = gold.documents
    own = _own_contexts(questions, gold, options, seed)
    if not documents:
        if {"controlled", "topk"} & set(options.kinds):
            raise InputError(
                f"gold set {gold.name} has no documents: put them into documents.jsonl (document_id, title, "
                "text), or ask without any by --contexts none"
            )
        return {
            kind: own if kind == "own" else {question.group: Served() for question in questions}
            for kind in options.kinds
        }
    tokens, n_distractors = tokenizer_named(options.tokenizer), options.distractors
    queries = tuple(
        Query(each.group, each.question, dict.fromkeys(each.reference_documents, 1)) for each in questions
    )
    collection = Collection("answer", documents, queries, "gold", "gold")
    handed = [
        Context(
            f"{document.title}\n\n{document.text}" if document.title else document.text, document.document_id
        )
        for document in documents
    ]
    blank = {place for place, document in enumerate(documents) if not document.text.strip()}
    most = max(len(each.reference_documents) for each in questions)
    keep = max(options.k, n_distractors + most + len(blank))
    index = Bm25.of(tokens(document.text) for document in documents)
    ranking = by_bm25(index, [tokens(each.question) for each in questions], collection, keep=keep)

    def problem(question: Question) -> tuple[str, str] | None:
        """Why the reference documents cannot be handed over."""
        if not question.reference_documents and question.answerable:
            return "no_reference_document", "names no reference document"
        for name in question.reference_documents:
            if collection.lacks(name):
                return "missing_document", f"reference document {name} is not in the corpus"
            if collection.numbers[name] in blank:
                return "empty_document", f"reference document {name} is empty"
        return None

    def served(kind: ContextKind, place: int, question: Question) -> Served:
        head, chosen, why = ranking.head[place].tolist(), list[int](), None
        references = [
            collection.numbers[name] for name in question.reference_documents if not collection.lacks(name)
        ]
        if kind == "topk":
            chosen = head[: options.k]
        elif kind == "controlled":
            others = [number for number in head if number not in references and number not in blank]
            chosen = others[:n_distractors]
            if not options.without_reference:
                why, n, position = problem(question), len(chosen), options.position
                places = {"first": 0, "last": n, "middle": n // 2}  # distractors before the references
                before = places[position] if position in places else min(int(position) - 1, n)
                chosen = [] if why else [*chosen[:before], *references, *chosen[before:]]
        best = int(ranking.best[place])
        return Served(
            tuple(handed[number] for number in chosen),
            rank=None if best < 0 else int(ranking.rank[best]),
            score=None if best < 0 else float(ranking.score[best]),
            ties=int(ranking.best_ties[place]),
            holds_reference=not set(references).isdisjoint(chosen),
            problem=why,
        )

    return {
        kind: own
        if kind == "own"
        else {each.group: served(kind, place, each) for place, each in enumerate(questions)}
        for kind in options.kinds
    }


def _own_contexts(
    questions: Sequence[Question], gold: GoldSet, options: ContextOptions, seed: int
) -> Mapping[str, Served]:
    """Of every question, those that it brings along; refused where only they are asked for, and none is."""
    if options.kinds == ("own",) and not any(question.contexts for question in questions):
        raise InputError(
            f"gold set {gold.name}: no item brings contexts of its own: leave --contexts own out"
        )
    return {each.group: _own(each, seed if options.shuffle else None) for each in questions}


def _own(question: Question, seed: int | None) -> Served:
    """A question's own contexts, numbered; with a seed in another order, the same one for each question."""
    contexts = list(question.contexts)
    if not contexts:
        return Served(problem=("no_context", "brings no context of its own"))
    if empty := [context for context in contexts if not context.text.strip()]:
        named = empty[0].document_id or "one"
        return Served(
            problem=("empty_document", f"{len(empty)} of its contexts have no text, such as {named}")
        )
    if seed is not None:
        random.Random(f"{seed} {question.group}").shuffle(contexts)
    handed = tuple(
        dataclasses.replace(context, text=f"[{number}] {context.text}")
        for number, context in enumerate(contexts)
    )
    known = {context.document_id for context in contexts}
    references = set(question.reference_documents)
    holds = not references.isdisjoint(known) if references else question.answerable
    return Served(handed, holds_reference=holds)


def corpus_notes(questions: Sequence[Question], gold: GoldSet, served: ServedBy) -> list[str]:
    """What is wrong with documents and references, and how often the naive chain finds them."""
    known = {document.document_id for document in gold.documents}
    blank = [document.document_id for document in gold.documents if not document.text.strip()]
    nameless = [each.group for each in questions if not each.reference_documents]
    missing = [each.group for each in questions if not known.issuperset(each.reference_documents)]
    named = functools.partial(listed, sealed=gold.test_groups)

    def name(groups: Sequence[str]) -> str:
        return "1 question names" if len(groups) == 1 else f"{len(groups)} questions name"

    notes = []
    if "own" in served:
        sets: dict[str, set[tuple[Context, ...]]] = {}
        for item in gold.items:
            sets.setdefault(item.group, set()).add(item.contexts)
        if several := [each.group for each in questions if len(sets.get(each.group, ())) > 1]:
            others = "bring other contexts than the first, which we hand over"
            notes.append(f"of {len(several)} of the questions further items {others}: {named(several)}")
    for kind in served:
        if blank and kind != "own":
            what = "BM25 ranks them like any other" if kind == "topk" else "never handed over as distractors"
            empty = "document is empty" if len(blank) == 1 else "documents are empty"
            notes.append(f"{len(blank)} {empty} ({listed(blank)}): {what}")
        if missing and gold.documents:
            notes.append(f"{name(missing)} a reference document that the corpus lacks: {named(missing)}")
        if nameless and kind not in ("none", "own"):
            notes.append(f"{name(nameless)} no reference document: {named(nameless)}")
        if kind == "topk":
            n = sum(served[kind][each.group].holds_reference for each in questions)
            among = "a reference document is among those handed over"
            notes.append(f"{among} for {n} of {len(questions)} questions")
    return list(dict.fromkeys(notes))


# --- who answers from them

ANSWERS_FILE = "answers.jsonl"
"""In the experiment: the journal of all answers, as judgements whose verdicts are texts."""


def system_name(system: str, context: ContextKind, contexts: Iterable[ContextKind]) -> str:
    """What tells a system apart from the same one with another context; its own name where there is one."""
    several = sum(kind != "recorded" for kind in contexts) > 1
    return f"{system} ({context})" if several and context != "recorded" else system


class ContextAnswerers:
    """Every answerer with every kind of context: a local system whose documents are chosen, not found.

    A prompt that two contexts share is sent once. The cost of a stored reply is its model's price.
    """

    name, shows_contexts = "answerers", True

    def __init__(self, answerers: Sequence[Answerer], served: ServedBy) -> None:
        self.answerers, self.served = answerers, served
        self.rows: Sequence[Judgement] = ()  # of the journal, once they have answered
        self.settings: Mapping[str, Setting] = {}

    def systems(self) -> Iterator[tuple[str, Answerer, ContextKind]]:
        """Each by the name of its answers."""
        for answerer in self.answerers:
            for kind in self.served:
                yield system_name(answerer.name, kind, self.served), answerer, kind

    def config(self) -> dict[str, Any]:
        """The answerers; the contexts stand in the experiment's own configuration."""
        return {"systems": [answerer.config() for answerer in self.answerers]}

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

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """Each answerer x context x question x repeat; a question that cannot be asked so is a failure."""
        requests, options = self.requests(questions), asking.options
        with open_journal(asking.folder / ANSWERS_FILE, options) as journal:
            self.rows = run_trials(
                self.answerers, requests, journal=journal, options=options, budget=asking.budget
            )
        replies = {(row.judge, row.item_id, row.item_sha, row.repeat): row for row in self.rows}
        answers = []
        for name, answerer, kind in self.systems():
            for question, repeat in itertools.product(questions, range(options.repeats)):
                served = self.served[kind][question.group]
                answer = SystemAnswer(name, question.group, None, repeat=repeat)
                if served.problem is not None:
                    failure = Failure("refused", f"not asked: {served.problem[1]}")
                    answers.append(dataclasses.replace(answer, error=failure))
                    continue
                sha = question.item(served.contexts).sha
                row = replies[answerer.name, question.group, sha, repeat]
                text = None if row.verdict is None else str(row.verdict)
                answer = dataclasses.replace(
                    answer,
                    answer=text,
                    contexts=served.contexts,
                    error=row.error or (Failure("parse", "no answer in the reply") if text is None else None),
                    latency_s=row.latency_s,
                    prompt_tokens=row.prompt_tokens,
                    completion_tokens=row.completion_tokens,
                    cost_usd=price_of(row, answerer.model),
                    at=row.at,
                )
                answers.append(answer)
        return answers
