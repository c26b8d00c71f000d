"""What is wrong with a collection or a run, named and counted: nothing of it leaves n in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from judgecal.errors import listed
from judgecal.rag.retrieval.corpus import Collection
from judgecal.rag.retrieval.trec import Run

_EXAMPLES = 5
_TRIED = 200  # ids looked at for something that wraps them

_FOLDS: dict[str, Callable[[str], str]] = {
    "white space at their ends": str.strip,
    "case": str.casefold,
    "the ending of a file's name": lambda name: PurePath(name).stem if PurePath(name).suffix else name,
    "the folders before a file's name": lambda name: PurePath(name).name or name,
    "zeros in front": lambda name: name.lstrip("0") or name,
}


@dataclass(frozen=True, slots=True)
class MissingReferences:
    """Reference documents that the corpus lacks, and the questions that name them.

    `n_unanswerable` questions name none that is there: they score 0.
    """

    n_questions: int
    n_unanswerable: int
    n_documents: int
    questions: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnmatchedIds:
    """How many ids only the questions have and only the documents have of them, and what may be the
    matter."""

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

    def notes(self, n_questions: int, sealed: frozenset[str]) -> Iterable[str]:
        for names, what in (
            (self.absent_questions, f"of {n_questions} questions are absent from the run and score 0"),
            (self.unknown_questions, "questions of the run are none of these and were passed over"),
            (self.unknown_documents, "documents of the run are not in the corpus and keep their ranks"),
        ):
            if names:
                yield f"{len(names)} {what}: {listed(names, sealed=sealed)}"


@dataclass(frozen=True, slots=True)
class Findings:
    """All of it; `unmatched_ids` is None where every id matches, `run` where BM25 ranked."""

    missing_references: MissingReferences
    unmatched_ids: UnmatchedIds | None
    empty_documents: EmptyDocuments
    duplicates: Duplicates
    run: RunFindings | None

    def notes(self, *, n_questions: int, n_documents: int | None, sealed: frozenset[str]) -> list[str]:
        """The findings in words, the gravest first; questions that are `sealed` are counted."""
        missing, ids, empty, twice = (
            self.missing_references,
            self.unmatched_ids,
            self.empty_documents,
            self.duplicates,
        )
        notes = []
        if missing.n_questions:
            notes.append(
                f"{missing.n_questions} of {n_questions} questions name {missing.n_documents} reference documents that "
                f"the corpus lacks ({listed(missing.documents)}); {missing.n_unanswerable} of them name no other and "
                f"score 0: {listed(missing.questions, sealed=sealed)}"
            )
        if ids is not None and ids.n_documents:
            named, spare = (", ".join(map(repr, names)) for names in (ids.references, ids.documents))
            notes.append(
                f"ids without a partner: {ids.n_references} that questions name, such as {named}, and "
                f"{ids.n_documents} documents that no question names, such as {spare}"
                + (f"; {ids.hint}" if ids.hint else "")
            )
        for n, names, what in (
            (empty.n, empty.documents, f"of {n_documents} documents are empty and can never be found"),
            (twice.n_rows, twice.documents, "rows repeat a document with the same text and count once"),
        ):
            if names:
                notes.append(f"{n} {what}: {listed(names)}")
        if twice.n_same_text:
            notes.append(
                f"{twice.n_same_text} documents share their text with another id: which of them is found is chance"
            )
        return [*notes, *(self.run.notes(n_questions, sealed) if self.run else ())]


def findings_of(collection: Collection, run: Run | None) -> Findings:
    """Look for everything that can be wrong with a collection, and with a run on it."""
    documents = collection.documents or ()
    empty = tuple(one.document_id for one in documents if not one.text.strip())
    texts = Counter(one.text for one in documents if one.text.strip())
    missing = _missing_references(collection)
    return Findings(
        missing,
        _unmatched_ids(collection, missing.documents),
        EmptyDocuments(len(empty), empty),
        Duplicates(
            sum(collection.repeated.values()),
            tuple(collection.repeated),
            sum(count for count in texts.values() if count > 1),
        ),
        None if run is None else _run_findings(run, collection),
    )


def _missing_references(collection: Collection) -> MissingReferences:
    documents: dict[str, None] = {}
    questions: list[str] = []
    unanswerable = 0
    for question in collection.questions:
        absent = [name for name in question.reference_documents if collection.lacks(name)]
        if absent:
            documents.update(dict.fromkeys(absent))
            questions.append(question.question_id)
            unanswerable += len(absent) == len(question.reference_documents)
    return MissingReferences(len(questions), unanswerable, len(documents), tuple(questions), tuple(documents))


def _unmatched_ids(collection: Collection, absent: Sequence[str]) -> UnmatchedIds | None:
    if not absent or collection.documents is None:
        return None
    named = {name for question in collection.questions for name in question.grades}
    spare = [one.document_id for one in collection.documents if one.document_id not in named]
    shown, hint = tuple(spare[:_EXAMPLES]), _hint(absent, spare)
    return UnmatchedIds(len(absent), tuple(absent[:_EXAMPLES]), len(spare), shown, hint)


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


def _run_findings(run: Run, collection: Collection) -> RunFindings:
    asked = {question.question_id for question in collection.questions}
    scored = [question.question_id for question in collection.questions if question.reference_documents]
    unknown = {name for ranked in run.ranked.values() for name in ranked if collection.lacks(name)}
    return RunFindings(
        absent_questions=tuple(name for name in scored if name not in run.ranked),
        unknown_questions=tuple(name for name in run.ranked if name not in asked),
        unknown_documents=tuple(sorted(unknown)),
    )
