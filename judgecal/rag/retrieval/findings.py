"""What of a collection or a run does not meet, named and counted, so that nothing leaves n in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from judgecal.errors import listed
from judgecal.rag.retrieval.collection import Collection
from judgecal.rag.retrieval.ranking import Run

_EXAMPLES = 5


def lacking_references(collection: Collection) -> dict[str, list[str]]:
    """The reference documents that the corpus lacks, by the question that names them."""
    return {
        question.question_id: absent
        for question in collection.questions
        if (absent := [name for name in question.reference_documents if collection.lacks(name)])
    }


def unfindable(collection: Collection) -> int:
    """How many questions name reference documents, and none that the corpus has: they score 0."""
    lacking = lacking_references(collection)
    return sum(lacking.get(each.question_id) == [*each.reference_documents] for each in collection.questions)


def findings(collection: Collection, n_scored: int) -> Iterator[str]:
    """What is wrong with a collection, in words, the gravest first; test questions are counted, not named."""
    documents, lacking = collection.documents or (), lacking_references(collection)
    if lacking:
        missing = list(dict.fromkeys(name for absent in lacking.values() for name in absent))
        yield (
            f"{len(lacking)} of {n_scored} questions name {len(missing)} reference documents that the corpus "
            f"lacks ({listed(missing)}); {unfindable(collection)} of these questions name no other and score "
            f"0: {listed([*lacking], sealed=collection.sealed)}"
        )
        named = {name for question in collection.questions for name in question.grades}
        if spare := [document.document_id for document in documents if document.document_id not in named]:
            first, others = (", ".join(map(repr, names[:_EXAMPLES])) for names in (missing, spare))
            yield (
                f"ids without a partner: {len(missing)} that questions name, such as {first}, and "
                f"{len(spare)} documents that no question names, such as {others}: make the ids the same"
            )
    if empty := [document.document_id for document in documents if not document.text.strip()]:
        of = f"{len(empty)} of {len(documents)} documents are empty, and no search can find them"
        yield f"{of}: {listed(empty)}"
    if collection.repeated:
        n = sum(collection.repeated.values())
        repeated = f"{n} rows repeat a document with the same text and count once"
        yield f"{repeated}: {listed([*collection.repeated])}"
    texts = Counter(document.text for document in documents if document.text.strip())
    if same_text := sum(count for count in texts.values() if count > 1):
        shared = f"{same_text} documents share their text with another id"
        yield f"{shared}: which of them a search finds is chance"


def run_findings(collection: Collection, run: Run, n_scored: int) -> Iterator[str]:
    """What of a run does not meet the collection."""
    known = {question.question_id: bool(question.reference_documents) for question in collection.questions}
    ranked = {name for ids in run.ranked.values() for name in ids}
    for names, what in (
        (
            [name for name in known if known[name] and name not in run.ranked],
            f"of {n_scored} questions are missing from the run and score 0",
        ),
        (
            [name for name in run.ranked if name not in known],
            "questions of the run are not in the set, so we skipped them",
        ),
        (
            sorted(filter(collection.lacks, ranked)),
            "documents of the run are not in the corpus and keep their ranks",
        ),
    ):
        if names:
            yield f"{len(names)} {what}: {listed(names, sealed=collection.sealed)}"
