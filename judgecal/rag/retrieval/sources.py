"""Documents, questions, qrels and runs from files, and RepLiQA."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.goldset.rows import Document
from judgecal.rag.retrieval.corpus import Collection, DocumentPile, Question, Run
from judgecal.rag.retrieval.extract import ENDINGS, NoTextError, extract
from judgecal.tables import Row, Table, decode, json_lines, read_bytes, read_table
from judgecal.workspace import shown

Grades = Mapping[str, Mapping[str, int]]
PlacedDocument = tuple[Document, str, str]
"""A document, the name that an id pattern is held against, and where it stands."""

_MARK = "<id>"
_SAYS_NOTHING = ("documents", "corpus", "questions", "queries", "qrels")  # then the folder's name says more

# The name of the contract first, then what data sets of the field call the same.
_DOCUMENT_ID = ("document_id", "doc_id", "docid", "_id", "id")
_TEXT = ("text", "document_extracted", "contents", "body")
_QUESTION_ID = ("question_id", "query_id", "qid", "_id", "id")
_QUESTION = ("question", "query", "text")
_REFERENCE = ("reference_documents", "document_id", "doc_id", "docid")
_HEADER = 10_000  # characters of a first line

_JSON_LINES = (".jsonl", ".ndjson")
_RUN_FORM = "question Q0 document rank score tag"
_QRELS_FORM = "question 0 document relevance"

REPLIQA = "ServiceNow/repliqa"
_UNANSWERABLE = "the answer is not found in the document"
_NEAR = 0.8  # of difflib's ratio; the wordings differ in a word or two
_REPLIQA_COLUMNS = ["document_id", "document_extracted", "question_id", "question", "answer"]
_BATCH = 256


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
    id_pattern: str | None = None  # what wraps an id in a file's name or a document's id, `<id>` in its place


def collection_of_files(
    documents: Path | None, questions: Path | None, *, qrels: Path | None = None, columns: FileColumns
) -> Collection:
    """Documents (a table, a folder of files or one file), questions (a table), qrels instead of references.

    `documents` is None where a run is all there is to rank, `questions` where qrels name them.
    """
    unwrap = _unwrap(columns.id_pattern)
    corpus: tuple[Document, ...] | None = None
    repeated: dict[str, int] = {}
    notes: list[str] = []
    if documents is not None:
        corpus, repeated = _documents(documents, columns, unwrap, notes)
    judged = read_qrels(qrels) if qrels is not None else None
    if questions is not None:
        rows = _questions(questions, columns, judged)
        known = {question.question_id for question in rows}
        missing = [name for name in judged or {} if name not in known]
        if missing:
            notes.append(
                f"{len(missing)} of {len(judged or {})} questions of the qrels are not in {questions.name} "
                f"and could not be asked: {listed(missing)}"
            )
    else:
        rows = tuple(Question(name, "", grades) for name, grades in (judged or {}).items())
    path = documents or questions or qrels or Path("run")
    return Collection(
        name=path.resolve().parent.name if path.stem in _SAYS_NOTHING else path.stem,
        documents=corpus,
        questions=rows,
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
    """The documents of a table or folder, and how often which came again; the rest goes to `notes`."""
    pile, odd = DocumentPile(), list[str]()
    rows: Iterable[PlacedDocument]
    if path.is_dir():
        rows = _folder(path, columns.id_pattern, notes)
    elif path.suffix.lower() in ENDINGS and not _is_table(path, columns):
        try:
            rows = [_file(path, columns.id_pattern)]
        except NoTextError as error:
            raise InputError(f"{shown(path)}: {error}") from error
    else:
        rows = _table_of_documents(path, columns, pile)
    for document, name, where in rows:
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
            f"{len(odd)} of {len(documents)} names do not fit --id-pattern {columns.id_pattern} and are ids "
            f"as they are: {listed(odd)}"
        )
    return documents, repeated


def _is_table(path: Path, columns: FileColumns) -> bool:
    """Whether a file with a document's ending is a table: a text whose first line names an id and a text."""
    if path.suffix.lower() != ".txt":
        return False
    with path.open(encoding="utf-8", errors="replace") as opened:
        first = set(re.findall(r"\w+", opened.readline(_HEADER)))
    named = columns.document_id is not None or columns.text is not None
    return named or bool(first & set(_DOCUMENT_ID) and first & set(_TEXT))


def _file(path: Path, pattern: str | None) -> PlacedDocument:
    """The document in a file; without a pattern its id is the name without ending."""
    named_with_ending = pattern is not None and pattern.lower().endswith(tuple(ENDINGS))
    extracted = extract(path)
    document = Document(path.stem, extracted.title, extracted.text)
    return document, path.name if named_with_ending else path.stem, shown(path)


def _folder(path: Path, pattern: str | None, notes: list[str]) -> list[PlacedDocument]:
    """A document for each file with an ending of a document, in the order of names; not of hidden ones."""
    files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    documents: list[PlacedDocument] = []
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
        f"{len(names)} of {len(files)} files of {shown(path)} are not in the corpus: {cause} "
        f"({listed(names)})"
        for cause, names in without.items()
    ]
    passed_over = [file.name for file in files if file.suffix.lower() not in ENDINGS]
    if passed_over:
        notes.append(
            f"{len(passed_over)} files of {shown(path)} are no documents ({', '.join(ENDINGS)}) and were "
            f"passed over: {listed(passed_over)}"
        )
    return documents


def _table_of_documents(path: Path, columns: FileColumns, pile: DocumentPile) -> Iterator[PlacedDocument]:
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
    id_column = columns.question_id or next((name for name in _QUESTION_ID if name in table.columns), None)
    reference = None if judged is not None else _column(table, columns.reference, _REFERENCE)
    table.require(*(name for name in (text, id_column, reference) if name is not None))
    questions: dict[str, Question] = {}
    problems: list[str] = []
    for row in table.rows:
        name = row.cells[id_column] if id_column else f"line-{row.line}"
        before = questions.get(name)
        if not name.strip() or not row.cells[text].strip():
            empty = text if name.strip() else id_column
            problems.append(f"{table.at(row)}: {empty} is empty: fill it in or take the row out")
        elif before is not None and before.question != row.cells[text]:
            problems.append(
                f"{table.at(row)}: question {name!r} has another text before: give it an id of its own"
            )
        else:
            grades = dict(before.grades) if before else {}
            if reference:
                grades |= dict.fromkeys(references_in(row, reference, columns.separator), 1)
            else:
                grades |= (judged or {}).get(name, {})
            questions[name] = Question(name, row.cells[text], grades)
    refuse(problems)
    return tuple(questions.values())


def references_in(row: Row, column: str, separator: str | None) -> Sequence[str]:
    """The ids in a cell: a list of JSON, or text, which may hold a JSON list itself."""
    text = row.cells[column].strip()
    parts: Sequence[str] = row.parts(column, separator)
    if text.startswith("[") and not isinstance(row.raw.get(column), list):
        try:
            ids = json.loads(text)
        except (ValueError, RecursionError):  # an id that begins with a bracket
            ids = None
        if isinstance(ids, list):
            parts = [str(name) for name in ids]
    return parts


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Relevance by question and document.

    Lines are `question 0 document relevance` (TREC), or `question document relevance` under a header (BEIR).
    """

    def is_whole(text: str) -> bool:
        return text.removeprefix("-").isdecimal()

    relevance: dict[str, dict[str, int]] = {}
    problems: list[str] = []
    for line, parts in _lines(path, problems):
        if line == 1 and not is_whole(parts[-1]):
            continue  # a header
        if len(parts) not in (3, 4) or not is_whole(parts[-1]):
            problems.append(f"{shown(path)}:{line}: not `{_QRELS_FORM}` with a whole number: mend the line")
            continue
        judged = relevance.setdefault(parts[0], {})
        if judged.setdefault(parts[-2], int(parts[-1])) != int(parts[-1]):
            problems.append(
                f"{shown(path)}:{line}: {parts[-2]} is judged {judged[parts[-2]]} for question {parts[0]} "
                "already: keep one line"
            )
    if not relevance and not problems:
        problems.append(f"{shown(path)}:1: the file holds no judgement: each line is `{_QRELS_FORM}`")
    refuse(problems)
    return relevance


def read_run(path: Path) -> Run:
    """JSON lines of `{"question_id": ..., "ranked": [ids]}` (.jsonl, .ndjson), else TREC's six columns.

    TREC's are put into order by score, ties by document id from z to a, scores in single precision and the
    rank column of no account: as trec_eval reads them, so that its numbers are ours.
    """
    data = read_bytes(path)
    problems: list[str] = []
    ranked: dict[str, list[str]] = {}
    scores: dict[str, list[float]] = {}
    if path.suffix.lower() in _JSON_LINES:
        ranked = _ranked_in_json(data, shown(path), problems)
    else:
        for question, scored in _scored_in_trec(path, problems).items():
            ranked[question] = sorted(sorted(scored, reverse=True), key=scored.__getitem__, reverse=True)
            scores[question] = [scored[name] for name in ranked[question]]
    if not ranked and not problems:
        problems.append(f"{shown(path)}:1: the file holds no ranking")
    refuse(problems)
    return Run(path.name, hashlib.sha256(data).hexdigest(), ranked, scores)


def _lines(path: Path, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Each line that is not blank, cut at white space."""
    text, wrong = decode(read_bytes(path), shown(path))
    problems.extend(wrong)
    for line, source in enumerate(text.split("\n"), start=1):
        if parts := source.split():
            yield line, parts


def _scored_in_trec(path: Path, problems: list[str]) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for line, parts in _lines(path, problems):
        try:
            score = float(np.float32(parts[4])) if len(parts) == 6 else np.nan
        except ValueError:
            score = np.nan
        if np.isnan(score):
            problems.append(
                f"{shown(path)}:{line}: not `{_RUN_FORM}`: mend the line (name a file of JSON lines .jsonl)"
            )
            continue
        scored = rows.setdefault(parts[0], {})
        if parts[2] in scored:
            twice = f"question {parts[0]} has document {parts[2]} twice"
            problems.append(f"{shown(path)}:{line}: {twice}: keep one line")
        scored[parts[2]] = score
    return rows


def _ranked_in_json(data: bytes, where: str, problems: list[str]) -> dict[str, list[str]]:
    text, wrong = decode(data, where)
    lines = json_lines(text, where)
    problems.extend([*wrong, *lines.problems])
    rankings: dict[str, list[str]] = {}
    for line, row in lines.rows:
        name, ids = row.get("question_id"), row.get("ranked")
        well_formed = isinstance(ids, list) and all(type(value) in (str, int) for value in ids)
        if not isinstance(name, str | int) or not isinstance(ids, list) or not well_formed:
            problems.append(f'{where}:{line}: not {{"question_id": id, "ranked": [ids]}}: mend the line')
            continue
        ranked = [str(value) for value in ids]
        if len(set(ranked)) < len(ranked):
            twice = next(each for place, each in enumerate(ranked) if each in ranked[:place])
            problems.append(f"{where}:{line}: document {twice} is ranked twice: keep one")
        elif rankings.setdefault(str(name), ranked) is not ranked:
            problems.append(f"{where}:{line}: question {name} stands there already: keep one line")
    return rankings


def load_repliqa(split: str, *, cache_dir: str | None = None) -> Collection:
    """A split of RepLiQA (Monteiro et al. 2024, https://arxiv.org/abs/2406.11811): made-up documents.

    A row is a question, so documents repeat. About one in five has no answer in its document and names no
    reference. `split` is such as `repliqa_0`, or `DIR:repliqa_0` for a local copy; `cache_dir` is that of
    `datasets`.
    """
    folder, _, name = split.rpartition(":")
    rows = _load(folder or REPLIQA, name, cache_dir)
    missing = [column for column in _REPLIQA_COLUMNS if column not in rows.column_names]
    if missing:
        raise InputError(f"{split}: {unknown_name('column', each, rows.column_names)}" for each in missing)
    pile, questions, problems, number = DocumentPile(), dict[str, Question](), list[str](), 0
    for batch in rows.select_columns(_REPLIQA_COLUMNS).iter(_BATCH):
        for cells in zip(*(batch[column] for column in _REPLIQA_COLUMNS), strict=True):
            number += 1
            document_id, text, question_id, wording, answer = (
                "" if cell is None else str(cell) for cell in cells
            )
            where = f"{split}: row {number}"
            pile.add(Document(document_id, None, text), where)
            question = Question(question_id, wording, {document_id: 1} if answerable(answer) else {})
            if not wording.strip():
                problems.append(f"{where}: question is empty")
            elif questions.setdefault(question_id, question) is not question:
                problems.append(f"{where}: question_id {question_id!r} stands in a row before already")
    documents, _ = pile.done()  # every question repeats its document: that is the form of the data
    if not documents:
        raise InputError(f"{split}: holds no rows")
    refuse(problems)
    note = (
        'a question whose answer is "The answer is not found in the document.", or nearly so, names no '
        "reference "
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
        message = " ".join(str(error).split())[:300]
        raise InputError(
            f"--repliqa {split}: {source} cannot be loaded ({type(error).__name__}: {message}): the splits "
            "are repliqa_0 to repliqa_4; where the Hub cannot be reached, give a local copy of the data set "
            "as DIR:SPLIT"
        ) from error


def answerable(answer: str) -> bool:
    """Whether an answer is one, and not (nearly) the sentence that there is none in the document."""
    words = " ".join(re.findall(r"\w+", answer.lower().replace("n't", " not").replace("cannot", "can not")))
    if "not" not in words.split():
        return True
    return difflib.SequenceMatcher(None, words, _UNANSWERABLE, autojunk=False).ratio() < _NEAR
