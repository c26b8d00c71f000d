"""Documents and questions from files (tables, a folder of documents, qrels beside a table of queries) and
RepLiQA."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.goldset.rows import Document
from judgecal.rag.retrieval.corpus import Collection, DocumentPile, Question
from judgecal.rag.retrieval.extract import ENDINGS, NoTextError, extract
from judgecal.rag.retrieval.trec import read_qrels
from judgecal.tables import Row, Table, read_table
from judgecal.workspace import shown

Grades = Mapping[str, Mapping[str, int]]
Placed = tuple[Document, str, str]  # a document, the name that an id pattern is held against, where it stands

_MARK = "<id>"
_SAYS_NOTHING = ("documents", "corpus", "questions", "queries", "qrels")  # then the folder's name says more

# The name of the contract first, then what data sets of the field call the same.
_DOCUMENT_ID = ("document_id", "doc_id", "docid", "_id", "id")
_TEXT = ("text", "document_extracted", "contents", "body")
_QUESTION_ID = ("question_id", "query_id", "qid", "_id", "id")
_QUESTION = ("question", "query", "text")
_REFERENCE = ("reference_documents", "document_id", "doc_id", "docid")

REPLIQA = "ServiceNow/repliqa"
_UNANSWERABLE = "the answer is not found in the document"
_NEAR = 0.8  # of difflib's ratio; the wordings differ in a word or two
_REPLIQA_COLUMNS = ("document_id", "document_extracted", "question_id", "question", "answer")
_BATCH = 256
_HEADER = 10_000  # characters of a first line


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Which column is what; None takes the first usual name that the file has."""

    document_id: str | None = None
    text: str | None = None
    title: str | None = None  # may be absent
    question_id: str | None = None  # without ids questions are numbered by their line
    question: str | None = None
    reference: str | None = None  # an id, a JSON list, or ids between separators
    separator: str | None = None
    id_pattern: str | None = (
        None  # what wraps an id in a file's name or a document's id, with `<id>` in its place
    )


def collection_of_files(
    documents: Path | None, questions: Path | None, *, qrels: Path | None = None, columns: FileColumns
) -> Collection:
    """Read a collection: documents from a table, a folder of files (judgecal.rag.retrieval.extract) or one
    such file, questions from a table, and qrels instead of a column of references.

    `documents` is None where a run is all there is to rank, `questions` where qrels name them.

    Raises:
        InputError: whatever is wrong with the files, each with its line.
    """
    unwrap = _unwrap(columns.id_pattern)
    corpus: tuple[Document, ...] | None = None
    repeated: dict[str, int] = {}
    notes: list[str] = []
    if documents is not None:
        corpus, repeated = _documents(documents, columns, unwrap, notes)
    judged = read_qrels(qrels) if qrels is not None else None
    if questions is not None:
        asked = _questions(questions, columns, judged)
        known = {question.question_id for question in asked}
        missing = [name for name in judged or {} if name not in known]
        if missing:
            notes.append(
                f"{len(missing)} of {len(judged or {})} questions of the qrels are not in {questions.name} and could "
                f"not be asked: {listed(missing)}"
            )
    else:
        asked = tuple(Question(name, "", grades) for name, grades in (judged or {}).items())
    path = documents or questions or qrels or Path("run")
    return Collection(
        name=path.resolve().parent.name if path.stem in _SAYS_NOTHING else path.stem,
        documents=corpus,
        questions=asked,
        documents_from=documents.name if documents else "",
        questions_from="+".join(path.name for path in (questions, qrels) if path is not None),
        graded=judged is not None,
        repeated=repeated,
        notes=tuple(notes),
    )


def _unwrap(pattern: str | None) -> Callable[[str], str | None]:
    """From a name to the id in it; None where the name does not fit."""
    if pattern is None:
        return lambda name: name
    if pattern.count(_MARK) != 1:
        raise InputError(f"--id-pattern {pattern!r}: write {_MARK} once, such as manual_{_MARK}.txt")
    before, _, after = pattern.partition(_MARK)
    form = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)
    return lambda name: match[1] if (match := form.fullmatch(name)) else None


def _documents(
    path: Path, columns: FileColumns, unwrap: Callable[[str], str | None], notes: list[str]
) -> tuple[tuple[Document, ...], dict[str, int]]:
    """The documents of a table or folder, and how often which came again; what else to know goes to
    `notes`."""
    pile = DocumentPile()
    odd: list[str] = []
    for document, name, where in _placed(path, columns, pile, notes):
        inner = unwrap(name)
        if inner is None:
            odd.append(name)
        elif columns.id_pattern is not None:
            document = Document(inner, document.title, document.text)
        pile.add(document, where)
    documents, repeated = pile.done()
    if not documents:
        raise InputError("; ".join([f"{shown(path)}: holds no documents", *notes]))
    if odd:
        notes.append(
            f"{len(odd)} of {len(documents)} names do not fit --id-pattern {columns.id_pattern} and are ids as they "
            f"are: {listed(odd)}"
        )
    return documents, repeated


def _placed(path: Path, columns: FileColumns, pile: DocumentPile, notes: list[str]) -> Iterable[Placed]:
    if path.is_dir():
        return _folder(path, columns.id_pattern, notes)
    if path.suffix.lower() in ENDINGS and not _is_table(path, columns):
        try:
            return [_file(path, columns.id_pattern)]
        except NoTextError as error:
            raise InputError(f"{shown(path)}: {error}") from error
    return _table_of_documents(path, columns, pile)


def _is_table(path: Path, columns: FileColumns) -> bool:
    """Whether a file with the ending of a document is a table: a text file whose first line names an id and a
    text."""
    if path.suffix.lower() != ".txt":
        return False
    named = {columns.document_id, columns.text} - {None}
    with path.open(encoding="utf-8", errors="replace") as opened:
        first = set(re.findall(r"\w+", opened.readline(_HEADER)))
    return bool(named) or bool(first & set(_DOCUMENT_ID) and first & set(_TEXT))


def _file(path: Path, pattern: str | None) -> Placed:
    """The document in a file; without a pattern its id is the name without ending."""
    ending = pattern is not None and pattern.lower().endswith(
        tuple(ENDINGS)
    )  # a pattern may or may not name it
    extracted = extract(path)
    document = Document(path.stem, extracted.title, extracted.text)
    return document, path.name if ending else path.stem, shown(path)


def _folder(path: Path, pattern: str | None, notes: list[str]) -> list[Placed]:
    """A document for each file with an ending of a document, in the order of names; hidden ones are not
    looked at."""
    files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    documents: list[Placed] = []
    problems: dict[str, None] = {}
    without: dict[str, list[str]] = {}
    for file in files:
        if file.suffix.lower() in ENDINGS:
            try:
                documents.append(_file(file, pattern))
            except NoTextError as error:
                without.setdefault(str(error), []).append(file.name)
            except InputError as error:
                problems |= dict.fromkeys(error.problems)
    refuse(list(problems))
    notes += [
        f"{len(names)} of {len(files)} files of {shown(path)} are not in the corpus: {cause} ({listed(names)})"
        for cause, names in without.items()
    ]
    passed_over = [file.name for file in files if file.suffix.lower() not in ENDINGS]
    if passed_over:
        notes.append(
            f"{len(passed_over)} files of {shown(path)} are no documents ({', '.join(ENDINGS)}) and were passed over: "
            f"{listed(passed_over)}"
        )
    return documents


def _table_of_documents(path: Path, columns: FileColumns, pile: DocumentPile) -> Iterable[Placed]:
    table = read_table(path)
    name, text = _column(table, columns.document_id, _DOCUMENT_ID), _column(table, columns.text, _TEXT)
    title = columns.title or ("title" if "title" in table.columns else None)
    table.require(name, text, *([title] if title else []))
    for row in table.rows:
        if row.cells[name].strip():
            headed = (row.cells[title] or None) if title else None
            yield Document(row.cells[name], headed, row.cells[text]), row.cells[name], table.at(row)
        else:
            pile.refuse(f"{table.at(row)}: {name} is empty: give the document an id or take the row out")


def _column(table: Table, given: str | None, usual: Sequence[str]) -> str:
    """The column that was named, else the first usual one; the contract's name where there is none."""
    return given or next((name for name in usual if name in table.columns), usual[0])


def _questions(path: Path, columns: FileColumns, judged: Grades | None) -> tuple[Question, ...]:
    table = read_table(path)
    text = _column(table, columns.question, _QUESTION)
    name = columns.question_id or next((one for one in _QUESTION_ID if one in table.columns), None)
    reference = None if judged is not None else _column(table, columns.reference, _REFERENCE)
    table.require(*(one for one in (text, name, reference) if one is not None))
    questions: dict[str, Question] = {}
    problems: list[str] = []
    for row in table.rows:
        asked = row.cells[name] if name else f"line-{row.line}"
        before = questions.get(asked)
        if not asked.strip() or not row.cells[text].strip():
            empty = text if asked.strip() else name
            problems.append(f"{table.at(row)}: {empty} is empty: fill it in or take the row out")
        elif before is not None and before.question != row.cells[text]:
            problems.append(
                f"{table.at(row)}: question {asked!r} has another text before: give it an id of its own"
            )
        else:
            named = references_in(row, reference, columns.separator) if reference else ()
            grades = dict.fromkeys(named, 1) if reference else (judged or {}).get(asked, {})
            questions[asked] = Question(
                asked, row.cells[text], {**(before.grades if before else {}), **grades}
            )
    refuse(problems)
    return tuple(questions.values())


def references_in(row: Row, column: str, separator: str | None) -> Sequence[str]:
    """The ids in a cell: a list of JSON, or text, which may hold a JSON list itself."""
    text = row.cells[column].strip()
    parts: Sequence[str] = row.parts(column, separator)
    if text.startswith("[") and not isinstance(row.raw.get(column), list):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):  # an id that begins with a bracket
            listed = None
        if isinstance(listed, list):
            parts = [str(one) for one in listed]
    return parts


def load_repliqa(split: str, *, cache_dir: str | None = None) -> Collection:
    """A split of RepLiQA (Monteiro et al. 2024, https://arxiv.org/abs/2406.11811): questions on made-up
    documents.

    A row is a question, so documents repeat. About one in five has no answer in its document and names no
    reference. `split` is such as `repliqa_0`, or `DIR:repliqa_0` for a local copy; `cache_dir` is that of
    `datasets`.

    Raises:
        InputError: the data set cannot be had or lacks a column, or a document's id stands for two texts.
    """
    folder, _, name = split.rpartition(":")
    rows = _load(folder or REPLIQA, name, cache_dir)
    missing = [one for one in _REPLIQA_COLUMNS if one not in rows.column_names]
    if missing:
        raise InputError(f"{split}: {unknown_name('column', one, rows.column_names)}" for one in missing)
    pile, questions, problems, number = DocumentPile(), dict[str, Question](), list[str](), 0
    for batch in rows.select_columns(list(_REPLIQA_COLUMNS)).iter(_BATCH):
        for cells in zip(*(batch[column] for column in _REPLIQA_COLUMNS), strict=True):
            number += 1
            document_id, text, question_id, asked, answer = (
                "" if cell is None else str(cell) for cell in cells
            )
            where = f"{split}: row {number}"
            pile.add(Document(document_id, None, text), where)
            question = Question(question_id, asked, {document_id: 1} if answerable(answer) else {})
            if not asked.strip():
                problems.append(f"{where}: question is empty")
            elif questions.setdefault(question_id, question) is not question:
                problems.append(f"{where}: question_id {question_id!r} stands in a row before already")
    documents, _ = pile.done()  # every question repeats its document: that is the form of the data
    if not documents:
        raise InputError(f"{split}: holds no rows")
    refuse(problems)
    note = (
        'a question whose answer is "The answer is not found in the document.", or nearly so, names no reference '
        "document"
    )
    source = f"repliqa:{name}"
    return Collection(name, documents, tuple(questions.values()), source, source, notes=(note,))


def _load(source: str, split: str, cache_dir: str | None) -> Any:
    """The one call that loads it."""
    from datasets import load_dataset

    if source != REPLIQA and not Path(source).is_dir():
        raise InputError(f"--repliqa {source}:{split}: there is no folder {source}")
    try:
        return load_dataset(source, split=split, cache_dir=cache_dir)
    except (OSError, ValueError) as error:  # what `datasets` raises offline, without such a set or split
        said = " ".join(str(error).split())[:300]
        raise InputError(
            f"--repliqa {split}: {source} cannot be loaded ({type(error).__name__}: {said}): the splits are repliqa_0 "
            "to repliqa_4; where the Hub cannot be reached, give a local copy of the data set as DIR:SPLIT"
        ) from error


def answerable(answer: str) -> bool:
    """Whether an answer is one, and not the sentence (or nearly the sentence) that there is none in the
    document."""
    said = " ".join(re.findall(r"\w+", answer.lower().replace("n't", " not").replace("cannot", "can not")))
    if "not" not in said.split():
        return True
    return difflib.SequenceMatcher(None, said, _UNANSWERABLE, autojunk=False).ratio() < _NEAR
