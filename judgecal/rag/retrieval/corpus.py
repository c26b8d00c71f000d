"""What a retriever is tested on: documents, and questions that name their reference documents."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from judgecal.errors import InputError, refuse
from judgecal.goldset.gold_set import GoldSet
from judgecal.goldset.rows import Document
from judgecal.records import Item


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what is known of its documents; its text is empty where only qrels and a run were given.

    `grades`: document id to relevance, in the order given: above 0 a reference document, else judged and
    none.
    """

    question_id: str
    question: str
    grades: Mapping[str, int]

    @property
    def reference_documents(self) -> tuple[str, ...]:
        """The ids of the documents that answer it."""
        return tuple(name for name, grade in self.grades.items() if grade > 0)


@dataclass(frozen=True)
class Collection:
    """Documents and questions, both in file order with unique ids, and what was noticed while they were
    read."""

    name: str  # what the results are called after: a gold set, a file, a split
    documents: tuple[Document, ...] | None  # None where only qrels and a run were given
    questions: tuple[Question, ...]
    documents_from: str  # as the run line names it
    questions_from: str
    graded: bool = (
        False  # the relevance comes from qrels: a document may have been judged and be no reference
    )
    repeated: Mapping[str, int] = field(default_factory=dict)  # how often an id came again with the same text
    notes: tuple[str, ...] = ()
    sealed: frozenset[str] = (
        frozenset()
    )  # the test questions of a gold set: they count, and are shown nowhere

    @property
    def gold(self) -> str | None:
        """The gold set that all of it comes from."""
        return self.name if self.questions_from.startswith("gold:") else None

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(document.document_id for document in self.documents or ())

    def lacks(self, document_id: str) -> bool:
        """Whether the corpus is known and has no such document."""
        return self.documents is not None and document_id not in self._ids

    @cached_property
    def shas(self) -> tuple[str | None, str]:
        """sha256 of the documents (ids, titles, texts) and of the questions (ids, texts, grades), in their
        order."""
        documents = None
        if self.documents is not None:
            documents = _sha((one.document_id, one.title or "", one.text) for one in self.documents)
        grades = (
            (one.question_id, one.question, *(f"{name} {grade}" for name, grade in one.grades.items()))
            for one in self.questions
        )
        return documents, _sha(grades)


def _sha(rows: Iterable[tuple[str, ...]]) -> str:
    total = hashlib.sha256()
    for row in rows:
        for part in row:
            data = part.encode("utf-8", "surrogatepass")
            total.update(b"%d:" % len(data))
            total.update(data)
        total.update(b"\n")
    return total.hexdigest()


class DocumentPile:
    """Documents as they are read: an id may come again with the same text, never with another one."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._first: dict[str, str] = {}
        self._repeated: Counter[str] = Counter()
        self._problems: list[str] = []

    def add(self, document: Document, where: str) -> None:
        """One document, and where it stands."""
        name = document.document_id
        before = self._documents.setdefault(name, document)
        first = self._first.setdefault(name, where)
        if before is document:
            return
        if (before.text, before.title) == (document.text, document.title):
            self._repeated[name] += 1
            return
        what = "text" if before.text != document.text else "title"
        self.refuse(
            f"{where}: document {name!r} has another {what} than at {first}: give each document an id of its own"
        )

    def refuse(self, problem: str) -> None:
        """A row that is no document."""
        self._problems.append(problem)

    def done(self) -> tuple[tuple[Document, ...], dict[str, int]]:
        """The documents in the order of their first appearance, and how often which came again.

        Raises:
            InputError: an id stands for different texts, or a row was no document: the first ones are listed.
        """
        refuse(self._problems)
        return tuple(self._documents.values()), dict(self._repeated)


def collection_of_gold(gold: GoldSet) -> Collection:
    """One question a group, with the reference documents of all its items; no label is read.

    Raises:
        InputError: the set has no documents.
    """
    if not gold.documents:
        raise InputError(
            f"gold set {gold.name} has no documents: put them into documents.jsonl "
            "(document_id, title, text), or give --documents and --questions"
        )
    groups: dict[str, list[Item]] = {}
    for item in gold.items:
        if item.group not in gold.turned_down:
            groups.setdefault(item.group, []).append(item)
    questions = (
        Question(group, items[0].question, {name: 1 for item in items for name in item.reference_documents})
        for group, items in groups.items()
    )
    source = f"gold:{gold.name}@{gold.sha256[:12]}"
    several = sum(len({item.question for item in items}) > 1 for items in groups.values())
    notes = (f"{several} groups hold more than one wording: the first was asked",) if several else ()
    notes = (*notes, *gold.draft_notes())
    return Collection(
        gold.name, gold.documents, tuple(questions), source, source, notes=notes, sealed=gold.test_groups
    )
