"""Documents and questions from files: tables, a folder of texts, qrels beside a table of queries."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgecal.errors import InputError
from judgecal.goldset.rows import Document
from judgecal.retrieval.corpus import Collection, DocumentPile, Question, refuse_problems, some
from judgecal.retrieval.trec import read_qrels
from judgecal.tables import Row, Table, decode, read_bytes, read_table
from judgecal.workspace import shown

__all__ = ["FileColumns", "collection_of_files"]

_TEXT_FILES = (".txt", ".text", ".md")
_MARK = "<id>"
_SAYS_NOTHING = ("documents", "corpus", "questions", "queries", "qrels")

# The name of the contract first, then what data sets of the field call the same.
_DOCUMENT_ID = ("document_id", "doc_id", "docid", "_id", "id")
_TEXT = ("text", "document_extracted", "contents", "body")
_QUESTION_ID = ("question_id", "query_id", "qid", "_id", "id")
_QUESTION = ("question", "query", "text")
_REFERENCE = ("reference_documents", "document_id", "doc_id", "docid")


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Which column is what; None takes the first usual name that the file has.

    Attributes:
        document_id, text, title: of the documents; a title may be absent.
        question_id, question: of the questions; without ids they are numbered by their line.
        reference: the reference documents: an id, a JSON list, or ids between separators.
        separator: the text between ids in one cell.
        id_pattern: what wraps an id in a file's name or a document's id, with `<id>` in its place.
    """

    document_id: str | None = None
    text: str | None = None
    title: str | None = None
    question_id: str | None = None
    question: str | None = None
    reference: str | None = None
    separator: str | None = None
    id_pattern: str | None = None


def collection_of_files(
    documents: Path | None, questions: Path | None, *, qrels: Path | None = None, columns: FileColumns
) -> Collection:
    """Read a collection from files.

    Args:
        documents: a table, or a folder of text files; None where a run is all there is to rank.
        questions: a table; None where qrels name the questions and a run holds their rankings.
        qrels: relevance by question and document, instead of a column of the questions.
        columns: which column is what.

    Raises:
        InputError: whatever is wrong with the files, each with its line.
    """
    unwrap = _unwrap(columns.id_pattern)
    found: tuple[Document, ...] | None = None
    repeated: dict[str, int] = {}
    notes: list[str] = []
    if documents is not None:
        found, repeated, notes = _documents(documents, columns, unwrap)
    judged = read_qrels(qrels) if qrels is not None else None
    if questions is not None:
        asked = _questions(questions, columns, judged)
        notes += _without_text(judged or {}, asked, questions)
    else:
        asked = tuple(Question(name, "", grades) for name, grades in (judged or {}).items())
    sources = [path.name for path in (questions, qrels) if path is not None]
    return Collection(
        name=_named(documents or questions or qrels or Path("run")),
        documents=found,
        questions=asked,
        documents_from=documents.name if documents else "",
        questions_from="+".join(sources),
        graded=judged is not None,
        repeated=repeated,
        notes=tuple(notes),
    )


def _named(path: Path) -> str:
    """A file's name, or its folder's where that says more."""
    return path.resolve().parent.name if path.stem in _SAYS_NOTHING else path.stem


def _unwrap(pattern: str | None) -> Callable[[str], str | None]:
    """From a name to the id in it; None where the name does not fit."""
    if pattern is None:
        return lambda name: name
    if pattern.count(_MARK) != 1:
        raise InputError(f"--id-pattern {pattern!r}: write {_MARK} once, such as manual_{_MARK}.txt")
    before, _, after = pattern.partition(_MARK)
    form = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)

    def inner(name: str) -> str | None:
        match = form.fullmatch(name)
        return match[1] if match else None

    return inner


def _documents(
    path: Path, columns: FileColumns, unwrap: Callable[[str], str | None]
) -> tuple[tuple[Document, ...], dict[str, int], list[str]]:
    pile = DocumentPile()
    odd: list[str] = []
    notes: list[str] = []
    rows = (
        _folder(path, columns.id_pattern, notes)
        if path.is_dir()
        else _table_of_documents(path, columns, pile)
    )
    for document, name, where in rows:
        inner = unwrap(name)
        if inner is None:
            odd.append(name)
        elif columns.id_pattern is not None:
            document = Document(inner, document.title, document.text)
        pile.add(document, where)
    documents, repeated = pile.done()
    if not documents:
        raise InputError(f"{shown(path)}: holds no documents")
    if odd:
        notes.append(
            f"{len(odd)} of {len(documents)} names do not fit --id-pattern {columns.id_pattern} and are ids as they "
            f"are: {some(odd)}"
        )
    return documents, repeated, notes


def _folder(path: Path, pattern: str | None, notes: list[str]) -> list[tuple[Document, str, str]]:
    """A document for each text file, in the order of names: without a pattern the id is the name without ending."""
    found, problems, passed_over = [], [], []
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.is_file():
            continue
        if file.suffix.lower() not in _TEXT_FILES:
            passed_over.append(file.name)
            continue
        text, wrong = decode(read_bytes(file), shown(file))
        problems += wrong
        # A pattern may or may not name the ending.
        ending = pattern is not None and pattern.lower().endswith(_TEXT_FILES)
        found.append((Document(file.stem, None, text), file.name if ending else file.stem, shown(file)))
    refuse_problems(problems)
    if passed_over:
        notes.append(
            f"{len(passed_over)} files of {shown(path)} are no text ({', '.join(_TEXT_FILES)}) and were passed over: "
            f"{some(passed_over)}"
        )
    return found


def _table_of_documents(
    path: Path, columns: FileColumns, pile: DocumentPile
) -> list[tuple[Document, str, str]]:
    table = read_table(path)
    name, text = _column(table, columns.document_id, _DOCUMENT_ID), _column(table, columns.text, _TEXT)
    title = columns.title or ("title" if "title" in table.columns else None)
    table.require(name, text, *([title] if title else []))
    found = []
    for row in table.rows:
        if not row.cells[name].strip():
            pile.refuse(f"{table.at(row)}: {name} is empty: give the document an id or take the row out")
            continue
        headed = (row.cells[title] or None) if title else None
        found.append((Document(row.cells[name], headed, row.cells[text]), row.cells[name], table.at(row)))
    return found


def _column(table: Table, given: str | None, usual: Sequence[str]) -> str:
    """The column that was named, else the first usual one; the contract's name where there is none."""
    return given or next((name for name in usual if name in table.columns), usual[0])


def _questions(
    path: Path, columns: FileColumns, judged: Mapping[str, Mapping[str, int]] | None
) -> tuple[Question, ...]:
    table = read_table(path)
    text = _column(table, columns.question, _QUESTION)
    name = columns.question_id or next((one for one in _QUESTION_ID if one in table.columns), None)
    reference = None if judged is not None else _column(table, columns.reference, _REFERENCE)
    table.require(*(one for one in (text, name, reference) if one is not None))
    found: dict[str, Question] = {}
    problems: list[str] = []
    for row in table.rows:
        asked = row.cells[name] if name else f"line-{row.line}"
        if not asked.strip() or not row.cells[text].strip():
            empty = text if asked.strip() else name
            problems.append(f"{table.at(row)}: {empty} is empty: fill it in or take the row out")
            continue
        grades = (
            _references(row, reference, columns.separator) if reference else (judged or {}).get(asked, {})
        )
        before = found.get(asked)
        if before is not None and before.question != row.cells[text]:
            problems.append(
                f"{table.at(row)}: question {asked!r} has another text before: give it an id of its own"
            )
            continue
        found[asked] = Question(asked, row.cells[text], {**(before.grades if before else {}), **grades})
    refuse_problems(problems)
    return tuple(found.values())


def _references(row: Row, column: str, separator: str | None) -> dict[str, int]:
    """The ids in a cell: a list of JSON, or text, which may hold a JSON list itself."""
    text = row.cells[column].strip()
    parts: Sequence[str] = row.parts(column, separator)
    if text.startswith("[") and not isinstance(row.raw.get(column), list):
        try:
            listed = json.loads(text)
        except ValueError:  # an id that begins with a bracket
            listed = None
        if isinstance(listed, list):
            parts = [str(one) for one in listed]
    return dict.fromkeys(parts, 1)


def _without_text(
    judged: Mapping[str, Mapping[str, int]], asked: Sequence[Question], path: Path
) -> list[str]:
    known = Counter(question.question_id for question in asked)
    missing = [name for name in judged if name not in known]
    if not missing:
        return []
    return [
        f"{len(missing)} of {len(judged)} questions of the qrels are not in {path.name} and could not be asked: "
        f"{some(missing)}"
    ]
