"""What a retriever is tested on: documents, questions with their references, rankings; and their faults."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from judgecal.errors import InputError, listed, refuse
from judgecal.goldset.gold_set import GoldSet
from judgecal.goldset.rows import Document
from judgecal.records import Item

_EXAMPLES = 5
_TRIED = 200  # ids looked at for something that wraps them


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
    """Documents and questions, both in file order with unique ids, and what was noticed while reading."""

    name: str  # what the results are called after: a gold set, a file, a split
    documents: tuple[Document, ...] | None  # None where only qrels and a run were given
    questions: tuple[Question, ...]
    documents_from: str  # as the run line names it
    questions_from: str
    graded: bool = False  # by qrels: a document may have been judged and be no reference
    repeated: Mapping[str, int] = field(default_factory=dict)  # how often an id came again with the same text
    notes: tuple[str, ...] = ()
    sealed: frozenset[str] = frozenset()  # test questions of a gold set: they count, and are shown nowhere

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
        """sha256 of the documents (ids, titles, texts) and the questions (ids, texts, grades), in order."""
        documents = None
        if self.documents is not None:
            documents = _sha((each.document_id, each.title or "", each.text) for each in self.documents)
        grades = (
            (each.question_id, each.question, *(f"{name} {grade}" for name, grade in each.grades.items()))
            for each in self.questions
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


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of a retriever of the user's own."""

    name: str
    sha256: str
    ranked: dict[str, list[str]]  # question id to document ids, best first
    scores: dict[str, list[float]]  # their scores, where there are any


class DocumentPile:
    """Documents as they are read: an id may come again with the same text, never with another one."""

    def __init__(self) -> None:
        self._documents: dict[str, tuple[Document, str]] = {}
        self._repeated: Counter[str] = Counter()
        self._problems: list[str] = []

    def add(self, document: Document, where: str) -> None:
        """One document, and where it stands."""
        name = document.document_id
        before, first = self._documents.setdefault(name, (document, where))
        if before is document:
            return
        if (before.text, before.title) == (document.text, document.title):
            self._repeated[name] += 1
            return
        what = "text" if before.text != document.text else "title"
        self.refuse(
            f"{where}: document {name!r} has another {what} than at {first}: give each document an id of its "
            "own"
        )

    def refuse(self, problem: str) -> None:
        """A row that is no document."""
        self._problems.append(problem)

    def done(self) -> tuple[tuple[Document, ...], dict[str, int]]:
        """The documents in the order of their first appearance, and how often which came again."""
        refuse(self._problems)
        return tuple(document for document, _ in self._documents.values()), dict(self._repeated)


def collection_of_gold(gold: GoldSet) -> Collection:
    """One question a group, with the reference documents of all its items; no label is read."""
    if not gold.documents:
        raise InputError(
            f"gold set {gold.name} has no documents: put them into documents.jsonl "
            "(document_id, title, text), or give --documents and --questions"
        )
    groups: dict[str, list[Item]] = {}
    for item in gold.items:
        if item.group not in gold.turned_down:
            groups.setdefault(item.group, []).append(item)
    questions = tuple(
        Question(group, items[0].question, {name: 1 for item in items for name in item.reference_documents})
        for group, items in groups.items()
    )
    source = f"gold:{gold.name}@{gold.sha256[:12]}"
    several = sum(len({item.question for item in items}) > 1 for items in groups.values())
    notes = [f"{several} groups hold more than one wording: the first was asked"] if several else []
    notes += gold.draft_notes()
    return Collection(
        gold.name, gold.documents, questions, source, source, notes=tuple(notes), sealed=gold.test_groups
    )


# What is wrong with a collection or a run, named and counted: nothing of it leaves n in silence.


@dataclass(frozen=True, slots=True)
class MissingReferences:
    """Reference documents that the corpus lacks, and the questions that name them."""

    n_questions: int
    n_unanswerable: int  # questions that name none that is there: they score 0
    n_documents: int
    questions: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnmatchedIds:
    """Ids that only the questions or only the documents have: how many, the first, what may be the matter."""

    n_references: int
    references: tuple[str, ...]
    n_documents: int
    documents: tuple[str, ...]
    hint: str | None


@dataclass(frozen=True, slots=True)
class EmptyDocuments:
    """Documents without a text."""

    n: int
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Rows that repeat a document, under which ids, and how many documents share a text with another id."""

    n_rows: int
    documents: tuple[str, ...]
    n_same_text: int


@dataclass(frozen=True, slots=True)
class RunFindings:
    """What of a run and of the collection does not meet."""

    absent_questions: tuple[str, ...]
    unknown_questions: tuple[str, ...]
    unknown_documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All of it."""

    missing_references: MissingReferences
    unmatched_ids: UnmatchedIds | None  # None where every id matches
    empty_documents: EmptyDocuments
    duplicates: Duplicates
    run: RunFindings | None  # None where BM25 ranked

    def notes(self, *, n_questions: int, n_documents: int | None, sealed: frozenset[str]) -> Iterator[str]:
        """The findings in words, the gravest first; questions that are `sealed` are counted."""
        missing, ids, twice = self.missing_references, self.unmatched_ids, self.duplicates
        if missing.n_questions:
            yield (
                f"{missing.n_questions} of {n_questions} questions name {missing.n_documents} reference "
                f"documents that the corpus lacks ({listed(missing.documents)}); {missing.n_unanswerable} of "
                f"them name no other and score 0: {listed(missing.questions, sealed=sealed)}"
            )
        if ids is not None and ids.n_documents:
            named, spare = (", ".join(map(repr, names)) for names in (ids.references, ids.documents))
            yield (
                f"ids without a partner: {ids.n_references} that questions name, such as {named}, and "
                f"{ids.n_documents} documents that no question names, such as {spare}"
                + (f"; {ids.hint}" if ids.hint else "")
            )
        empty = self.empty_documents
        if empty.n:
            yield (
                f"{empty.n} of {n_documents} documents are empty and can never be found: "
                f"{listed(empty.documents)}"
            )
        if twice.n_rows:
            documents = listed(twice.documents)
            yield f"{twice.n_rows} rows repeat a document with the same text and count once: {documents}"
        if twice.n_same_text:
            yield (
                f"{twice.n_same_text} documents share their text with another id: which of them is found is "
                "chance"
            )
        if self.run is not None:
            for names, what in (
                (
                    self.run.absent_questions,
                    f"of {n_questions} questions are absent from the run and score 0",
                ),
                (self.run.unknown_questions, "questions of the run are none of these and were passed over"),
                (
                    self.run.unknown_documents,
                    "documents of the run are not in the corpus and keep their ranks",
                ),
            ):
                if names:
                    yield f"{len(names)} {what}: {listed(names, sealed=sealed)}"


def findings_of(collection: Collection, run: Run | None) -> Findings:
    """Look for everything that can be wrong with a collection, and with a run on it."""
    documents, questions = collection.documents or (), collection.questions
    empty = tuple(document.document_id for document in documents if not document.text.strip())
    texts = Counter(document.text for document in documents if document.text.strip())
    absent = {
        question.question_id: [name for name in question.reference_documents if collection.lacks(name)]
        for question in questions
    }
    incomplete = [question for question in questions if absent[question.question_id]]
    lost = sum(len(absent[each.question_id]) == len(each.reference_documents) for each in incomplete)
    missing = tuple(dict.fromkeys(name for each in incomplete for name in absent[each.question_id]))
    unmatched = None
    if missing:
        named = {name for question in questions for name in question.grades}
        spare = [document.document_id for document in documents if document.document_id not in named]
        first, hint = tuple(spare[:_EXAMPLES]), _hint(missing, spare)
        unmatched = UnmatchedIds(len(missing), missing[:_EXAMPLES], len(spare), first, hint)
    of_run = None
    if run is not None:
        known = {question.question_id for question in questions}
        scored = [question.question_id for question in questions if question.reference_documents]
        unknown = {name for ranked in run.ranked.values() for name in ranked if collection.lacks(name)}
        of_run = RunFindings(
            absent_questions=tuple(name for name in scored if name not in run.ranked),
            unknown_questions=tuple(name for name in run.ranked if name not in known),
            unknown_documents=tuple(sorted(unknown)),
        )
    same_text = sum(count for count in texts.values() if count > 1)
    return Findings(
        MissingReferences(
            len(incomplete), lost, len(missing), tuple(each.question_id for each in incomplete), missing
        ),
        unmatched,
        EmptyDocuments(len(empty), empty),
        Duplicates(sum(collection.repeated.values()), tuple(collection.repeated), same_text),
        of_run,
    )


_FOLDS: dict[str, Callable[[str], str]] = {
    "white space at their ends": str.strip,
    "case": str.casefold,
    "the ending of a file's name": lambda name: PurePath(name).stem if PurePath(name).suffix else name,
    "the folders before a file's name": lambda name: PurePath(name).name or name,
    "zeros in front": lambda name: name.lstrip("0") or name,
}


def _hint(absent: Sequence[str], spare: Sequence[str]) -> str | None:
    """What the ids differ in, where one simple thing accounts for some of them."""
    for what, fold in _FOLDS.items():
        folded = {fold(name) for name in spare}
        matched = sum(fold(name) in folded for name in absent)
        if matched:
            return f"{matched} of {len(absent)} would match but for {what}: make the ids the same"
    for name in absent[:_TRIED]:
        for longer in spare[:_TRIED]:
            before, inside, after = longer.partition(name)
            if name and inside and before + after:
                return f"the documents' ids wrap the questions': --id-pattern '{before}<id>{after}'"
    return None
