"""What a retriever is tested on: documents, questions with references; of a gold set or files."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from judgecal.errors import InputError, listed, refuse
from judgecal.goldset import GoldDocument, GoldSet
from judgecal.goldset.wording import grouped
from judgecal.tables import Columns, Row, Table, decode, read_bytes, read_table
from judgecal.workspace import shown

_Placed = tuple[GoldDocument, str]
"""A document and where it stands."""

_ENDINGS = (".txt", ".text", ".md")  # of a document's file
_SAYS_NOTHING = ("documents", "corpus", "questions", "queries", "qrels")  # then the folder's name says more

# The name of the contract first, then what data sets of the field call the same.
_DOCUMENT_ID = ("document_id", "doc_id", "docid", "_id", "id")
_TEXT = ("text", "document_extracted", "contents", "body")
_QUESTION_ID = ("question_id", "query_id", "qid", "_id", "id")
_QUESTION = ("question", "query", "text")
_REFERENCE = ("reference_documents", "document_id", "doc_id", "docid")
_USUAL = Columns()


@dataclass(frozen=True, slots=True)
class Query:
    """A question and what is known of its documents; its text is empty where only qrels and a run were given.

    `grades`: document id to relevance, in the order given; above 0 a reference document, else judged only.
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
    documents: tuple[GoldDocument, ...] | None  # None where only qrels and a run were given
    questions: tuple[Query, ...]
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
    def numbers(self) -> dict[str, int]:
        """The place of each document by its id, from 0."""
        return {document.document_id: place for place, document in enumerate(self.documents or ())}

    def lacks(self, document_id: str) -> bool:
        """Whether the corpus is known and has no such document."""
        return self.documents is not None and document_id not in self.numbers

    @cached_property
    def shas(self) -> tuple[str | None, str]:
        """sha256 of the documents (ids, titles, texts) and the questions (ids, texts, grades), in order."""
        documents = None
        if self.documents is not None:
            documents = _sha((each.document_id, each.title or "", each.text) for each in self.documents)
        questions = (
            (each.question_id, each.question, *(f"{name} {grade}" for name, grade in each.grades.items()))
            for each in self.questions
        )
        return documents, _sha(questions)


def _sha(rows: Iterable[tuple[str, ...]]) -> str:
    total = hashlib.sha256()
    for row in rows:
        for part in row:
            data = part.encode("utf-8", "surrogatepass")
            total.update(b"%d:" % len(data))
            total.update(data)
        total.update(b"\n")
    return total.hexdigest()


class _Pile:
    """Documents as they are read: an id may come again with the same text, never with another one."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[GoldDocument, str]] = {}
        self.repeated: Counter[str] = Counter()
        self.problems: list[str] = []

    def add(self, document: GoldDocument, where: str) -> None:
        """One document, and where it stands."""
        name = document.document_id
        before, first = self._first.setdefault(name, (document, where))
        if before is document:
            return
        if (before.text, before.title) == (document.text, document.title):
            self.repeated[name] += 1
            return
        what = "text" if before.text != document.text else "title"
        message = f"document {name!r} has another {what} than at {first}: give each document an id of its own"
        self.problems.append(f"{where}: {message}")

    def documents(self) -> tuple[GoldDocument, ...]:
        """In the order of their first appearance."""
        refuse(self.problems)
        return tuple(document for document, _ in self._first.values())


def collection_of_gold(gold: GoldSet) -> Collection:
    """One question a group, with the reference documents of all its items; no label is read."""
    if not gold.documents:
        raise InputError(
            f"gold set {gold.name} has no documents: put them into documents.jsonl "
            "(document_id, title, text), or give --documents and --questions"
        )
    accepted = (item for item in gold.items if item.group not in gold.turned_down)
    groups = grouped(accepted, lambda item: item.group)
    questions = tuple(
        Query(group, items[0].question, {name: 1 for item in items for name in item.reference_documents})
        for group, items in groups.items()
    )
    source = f"gold:{gold.name}@{gold.sha256[:12]}"
    several = sum(len({item.question for item in items}) > 1 for items in groups.values())
    notes = [f"{several} groups hold more than one wording: we asked the first"] if several else []
    notes += gold.draft_notes()
    sealed = gold.test_groups
    return Collection(gold.name, gold.documents, questions, source, source, notes=tuple(notes), sealed=sealed)


# --- of files


def collection_of_files(
    documents: Path | None, questions: Path | None, *, qrels: Path | None = None, columns: Columns = _USUAL
) -> Collection:
    """Documents (a table, a folder of files or one file), questions (a table), qrels instead of references.

    `documents` is None where a run is all there is to rank, `questions` where qrels name them. What `columns`
    do not name has the first usual name that the file has; `group` holds the questions' ids, without which
    they are numbered by their line.
    """
    notes, pile = list[str](), _Pile()
    corpus = None if documents is None else _documents(documents, columns, pile, notes)
    judged = None if qrels is None else read_qrels(qrels)
    if questions is not None:
        asked = _questions(questions, columns, judged)
        known = {question.question_id for question in asked}
        missing = [name for name in judged or {} if name not in known]
        if missing:
            of = f"{len(missing)} of {len(judged or {})} questions of the qrels are not in {questions.name}"
            notes.append(f"{of}, so we could not ask them: {listed(missing)}")
    else:
        asked = tuple(Query(name, "", grades) for name, grades in (judged or {}).items())
    path = documents or questions or qrels or Path("run")
    return Collection(
        name=path.resolve().parent.name if path.stem in _SAYS_NOTHING else path.stem,
        documents=corpus,
        questions=asked,
        documents_from=documents.name if documents else "",
        questions_from="+".join(path.name for path in (questions, qrels) if path is not None),
        graded=judged is not None,
        repeated=pile.repeated,
        notes=tuple(notes),
    )


def _documents(path: Path, columns: Columns, pile: _Pile, notes: list[str]) -> tuple[GoldDocument, ...]:
    """The documents of a table, folder or file, by way of a pile; what else was seen goes to `notes`."""
    rows: Iterable[_Placed]
    if path.is_dir():
        rows = _folder(path, notes)
    elif path.suffix.lower() in _ENDINGS:
        rows = [_file(path)]
    else:
        rows = _table_of_documents(path, columns, pile.problems)
    for document, where in rows:
        pile.add(document, where)
    documents = pile.documents()
    if not documents:
        raise InputError("; ".join([f"{shown(path)}: holds no documents", *notes]))
    return documents


def _file(path: Path) -> _Placed:
    """The document in a file; its id is the name without ending."""
    text, problems = decode(read_bytes(path), shown(path))
    refuse(problems)
    return GoldDocument(path.stem, None, text), shown(path)


def _folder(path: Path, notes: list[str]) -> list[_Placed]:
    """A document for each file with an ending of a document, in the order of names; not of hidden ones."""
    files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    documents: list[_Placed] = []
    problems: list[str] = []
    for file in files:
        if file.suffix.lower() in _ENDINGS:
            try:
                documents.append(_file(file))
            except InputError as error:
                problems += error.problems
    refuse(problems)
    if others := [file.name for file in files if file.suffix.lower() not in _ENDINGS]:
        of = f"{len(others)} files of {shown(path)} are no text ({', '.join(_ENDINGS)})"
        notes.append(f"{of}, so we skipped them: {listed(others)}")
    return documents


def _table_of_documents(path: Path, columns: Columns, problems: list[str]) -> Iterator[_Placed]:
    table = read_table(path)
    columns = columns.resolved(table.columns, only=())
    name, text = _column(table, columns.document, _DOCUMENT_ID), _column(table, columns.text, _TEXT)
    title = columns.title or ("title" if "title" in table.columns else None)
    table.require(name, text, *([title] if title else []))
    for row in table.rows:
        if row.cells[name].strip():
            headed = (row.cells[title] or None) if title else None
            yield GoldDocument(row.cells[name], headed, row.cells[text]), table.at(row)
        else:
            problems.append(f"{table.at(row)}: {name} is empty: give the document an id or remove the row")


def _column(table: Table, given: str | None, usual: Sequence[str]) -> str:
    """The column that was named, else the first usual one; the contract's name where there is none."""
    return given or next((name for name in usual if name in table.columns), usual[0])


def _questions(
    path: Path, columns: Columns, judged: Mapping[str, Mapping[str, int]] | None
) -> tuple[Query, ...]:
    """The questions of a table; those of several rows with the references of all of them."""
    table = read_table(path)
    columns = columns.resolved(table.columns, only=())
    text = _column(table, columns.question, _QUESTION)
    id_column = columns.group or next((name for name in _QUESTION_ID if name in table.columns), None)
    reference = None if judged is not None else _column(table, columns.reference, _REFERENCE)
    table.require(*(name for name in (text, id_column, reference) if name is not None))
    questions: dict[str, Query] = {}
    problems: list[str] = []
    for row in table.rows:
        name = row.cells[id_column] if id_column else f"line-{row.line}"
        before = questions.get(name)
        if not name.strip() or not row.cells[text].strip():
            empty = text if name.strip() else id_column
            problems.append(f"{table.at(row)}: {empty} is empty: fill it in or remove the row")
        elif before is not None and before.question != row.cells[text]:
            twice = f"question {name!r} has another text before: give it an id of its own"
            problems.append(f"{table.at(row)}: {twice}")
        else:
            grades = dict(before.grades) if before else {}
            if reference:
                grades |= dict.fromkeys(references_in(row, reference, columns.reference_separator), 1)
            else:
                grades |= (judged or {}).get(name, {})
            questions[name] = Query(name, row.cells[text], grades)
    refuse(problems)
    return tuple(questions.values())


def references_in(row: Row, column: str, separator: str | None) -> Sequence[str]:
    """The ids in a cell: a list of JSON, or text, which may hold a JSON list itself."""
    text = row.cells[column].strip()
    if text.startswith("[") and not isinstance(row.raw.get(column), list):
        try:
            ids = json.loads(text)
        except (ValueError, RecursionError):  # an id that begins with a bracket
            ids = None
        if isinstance(ids, list):
            return [str(name) for name in ids]
    return row.parts(column, separator)


def cut_lines(path: Path, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Each line of a file that is not blank by its number, cut at white space."""
    text, wrong = decode(read_bytes(path), shown(path))
    problems += wrong
    for line, source in enumerate(text.split("\n"), start=1):
        if parts := source.split():
            yield line, parts


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Relevance by question and document.

    Lines are `question 0 document relevance` (TREC), or `question document relevance` under a header (BEIR).
    """
    relevance: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    name, form = shown(path), "`question 0 document relevance`"
    for line, parts in cut_lines(path, problems):
        where, whole = f"{name}:{line}", parts[-1].removeprefix("-").isdecimal()
        if line == 1 and not whole:
            continue  # a header
        if len(parts) not in (3, 4) or not whole:
            problems.append(f"{where}: not {form} with a whole number: fix the line")
            continue
        judged, document, grade = relevance.setdefault(parts[0], {}), parts[-2], int(parts[-1])
        if judged.setdefault(document, grade) != grade:
            already = f"{document} is judged {judged[document]} for question {parts[0]} already"
            problems.append(f"{where}: {already}: keep one line")
    if not relevance and not problems:
        problems.append(f"{name}:1: the file holds no judgement: each line is {form}")
    refuse(problems)
    return relevance
