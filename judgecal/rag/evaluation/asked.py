"""What `evaluate` asks, and what systems search: a gold set, or files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judgecal.errors import InputError, listed, refuse
from judgecal.goldset import Columns, Document, GoldSet, load_gold
from judgecal.rag.answering.questions import Question, by_group, questions_of
from judgecal.rag.evaluation.config import QuestionsTable
from judgecal.rag.retrieval import FileColumns, collection_of_files
from judgecal.rag.retrieval.sources import references_in
from judgecal.records import Item
from judgecal.tables import read_table
from judgecal.workspace import Workspace, shown


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """Questions, as they were read.

    Attributes:
        name: of the set, or of the file without its ending.
        sha256: of the content.
        asked: in file order, after `split` and without `limit`.
        sealed: groups of test, whose text is shown nowhere.
        split: of the set; None for a file.
        made_by: as the set's card says; None where nothing says so.
        documents: of the set; empty where it has none.
        notes: what was noticed while they were read.
    """

    name: str
    sha256: str
    asked: tuple[Question, ...]
    sealed: frozenset[str] = frozenset()
    split: str | None = None
    made_by: str | None = None
    documents: tuple[Document, ...] = ()
    notes: tuple[str, ...] = ()


def read_questions(table: QuestionsTable, folder: Path, workspace: Workspace) -> QuestionSource:
    """The questions of a configuration, one a group.

    Args:
        folder: from where paths are taken.
    """
    if table.file is not None:
        return _of_file(folder / table.file, table)
    name = str(table.gold)
    gold = load_gold(
        folder / name if (folder / name / "items.jsonl").is_file() else name, workspace=workspace
    )
    return _of_gold(gold, table.split)


def _of_gold(gold: GoldSet, split: str) -> QuestionSource:
    groups = {item.group for item in gold.select(split)}
    found = questions_of(gold, without={item.group for item in gold.items} - groups)
    return QuestionSource(
        gold.name,
        gold.sha256,
        found.asked,
        sealed=gold.test_groups & groups,
        split=split,
        made_by=gold.card.made_by,
        documents=gold.documents,
        notes=found.notes,
    )


def _of_file(path: Path, columns: QuestionsTable) -> QuestionSource:
    table = read_table(path)
    single = (columns.question, columns.reference, columns.id, columns.documents)
    table.require(*(name for name in single if name is not None), *columns.tags)
    read = Columns(
        columns.question,
        None,
        reference=columns.reference,
        group=columns.id,
        reference_separator=columns.separator,
        tags=tuple(columns.tags),
    )
    items, problems = [], list[str]()
    for row in table.rows:
        item = read.read_item(row, table.at(row), item_id=str(row.line), problems=problems)
        named = () if columns.documents is None else references_in(row, columns.documents, columns.separator)
        items.append(replace(item, reference_documents=tuple(named)))
    refuse(problems)
    if not items:
        raise InputError(f"{table.where}: holds no question")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return QuestionSource(path.stem, sha256, by_group(items), notes=(*table.notes, *_differing(items)))


def _differing(items: Sequence[Item]) -> Iterator[str]:
    """A note on the questions that stand in several rows with different references."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for item in items:
        found.setdefault(item.group, set()).add(item.reference_answers)
    several = [name for name, references in found.items() if len(references) > 1]
    if several:
        n = "1 question stands" if len(several) == 1 else f"{len(several)} questions stand"
        yield (
            f"{n} in several rows with different references, each of which is taken as right: "
            f"{listed(several)}"
        )


def read_documents(path: Path) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """Those of a table, a folder of files, or one file, and what was noticed while they were read."""
    if not path.exists():
        raise InputError(f"documents: {shown(path)}: there is no such file or folder")
    found = collection_of_files(path, None, columns=FileColumns())
    if not found.documents:
        raise InputError(f"{shown(path)}: holds no document")
    return found.documents, found.notes


def lexically_easy(questions: Sequence[Question], documents: Sequence[Document]) -> tuple[int, int | None]:
    """How many questions name a document that is there, and of how many of these BM25 ranks it first; None
    where there is none of them. A tie for the first place counts.
    """
    place = {one.document_id: number for number, one in enumerate(documents)}
    own = {one.group: [place[name] for name in one.reference_documents if name in place] for one in questions}
    naming = [one for one in questions if own[one.group]]
    if not naming:
        return 0, None
    from judgecal.rag.retrieval.bm25 import Bm25, tokenizer_named

    words = tokenizer_named("words")
    index = Bm25.of([words(f"{one.title or ''} {one.text}") for one in documents])
    scores = index.scores([words(one.question) for one in naming])
    easy = (row[own[one.group]].max() >= row.max() for one, row in zip(naming, scores, strict=True))
    return len(naming), int(sum(easy))
