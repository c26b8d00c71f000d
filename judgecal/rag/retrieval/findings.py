"""What of a collection or a run does not meet, named and counted, so that nothing leaves n in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from judgecal.errors import listed
from judgecal.rag.retrieval.collection import Collection
from judgecal.rag.retrieval.ranking import Run

_EXAMPLES = 5


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
    """Ids that only the questions or only the documents have: how many, and the first."""

    n_references: int
    references: tuple[str, ...]
    n_documents: int
    documents: tuple[str, ...]


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

    def notes(self, collection: Collection, n_scored: int) -> Iterator[str]:
        """The findings in words, the gravest first; test questions are counted, and not named."""
        missing, ids, twice = self.missing_references, self.unmatched_ids, self.duplicates
        empty, sealed, n_documents = self.empty_documents, collection.sealed, len(collection.documents or ())
        if missing.n_questions:
            yield (
                f"{missing.n_questions} of {n_scored} questions name {missing.n_documents} reference "
                f"documents that the corpus lacks ({listed(missing.documents)}); {missing.n_unanswerable} "
                f"of these questions name no other and score 0: {listed(missing.questions, sealed=sealed)}"
            )
        if ids is not None and ids.n_documents:
            named, spare = (", ".join(map(repr, names)) for names in (ids.references, ids.documents))
            yield (
                f"ids without a partner: {ids.n_references} that questions name, such as {named}, and "
                f"{ids.n_documents} documents that no question names, such as {spare}: make the ids the same"
            )
        if empty.n:
            of = f"{empty.n} of {n_documents} documents are empty, and no search can find them"
            yield f"{of}: {listed(empty.documents)}"
        if twice.n_rows:
            repeated = f"{twice.n_rows} rows repeat a document with the same text and count once"
            yield f"{repeated}: {listed(twice.documents)}"
        if twice.n_same_text:
            shared = f"{twice.n_same_text} documents share their text with another id"
            yield f"{shared}: which of them a search finds is chance"
        if self.run is not None:
            absent = f"of {n_scored} questions are missing from the run and score 0"
            unknown = "documents of the run are not in the corpus and keep their ranks"
            for names, what in (
                (self.run.absent_questions, absent),
                (self.run.unknown_questions, "questions of the run are not in the set, so we skipped them"),
                (self.run.unknown_documents, unknown),
            ):
                if names:
                    yield f"{len(names)} {what}: {listed(names, sealed=sealed)}"


def findings_of(collection: Collection, run: Run | None) -> Findings:
    """Look for everything that can be wrong with a collection, and with a run on it."""
    documents, questions = collection.documents or (), collection.questions
    empty = tuple(document.document_id for document in documents if not document.text.strip())
    texts = Counter(document.text for document in documents if document.text.strip())
    lacking = {
        question.question_id: absent
        for question in questions
        if (absent := [name for name in question.reference_documents if collection.lacks(name)])
    }
    lost = sum(lacking.get(each.question_id) == [*each.reference_documents] for each in questions)
    missing = tuple(dict.fromkeys(name for absent in lacking.values() for name in absent))
    unmatched = run_findings = None
    if missing:
        named = {name for question in questions for name in question.grades}
        spare = tuple(document.document_id for document in documents if document.document_id not in named)
        examples = missing[:_EXAMPLES], spare[:_EXAMPLES]
        unmatched = UnmatchedIds(len(missing), examples[0], len(spare), examples[1])
    if run is not None:
        known = {question.question_id: bool(question.reference_documents) for question in questions}
        unknown = {name for ranked in run.ranked.values() for name in ranked if collection.lacks(name)}
        run_findings = RunFindings(
            absent_questions=tuple(name for name in known if known[name] and name not in run.ranked),
            unknown_questions=tuple(name for name in run.ranked if name not in known),
            unknown_documents=tuple(sorted(unknown)),
        )
    same_text = sum(count for count in texts.values() if count > 1)
    return Findings(
        MissingReferences(len(lacking), lost, len(missing), tuple(lacking), missing),
        unmatched,
        EmptyDocuments(len(empty), empty),
        Duplicates(sum(collection.repeated.values()), tuple(collection.repeated), same_text),
        run_findings,
    )
