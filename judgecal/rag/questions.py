"""Questions and documents: one reader of them for `retrieval`, `answer`, `evaluate` and `gold make`.

A set marks a question that has no answer: by the field `answerable` (no), the tag `unanswerable` or the rule
`expect.refuse` of its items. Where it marks none, a reference that says that there is nothing to find does.

Which answers decline is a rule and no reading, where no judge says it. An answer refuses where its first 160
characters hold one of the phrases that the embedded model knows (English, a few German and Polish ones), or
where it is blank. A refusal in other words is missed, and counts as an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse
from judgecal.goldset import GoldDocument, GoldSet
from judgecal.goldset.wording import grouped
from judgecal.models.embedded.text import refuses as refuses_at_once
from judgecal.records import Context, Item, digest, well_formed
from judgecal.scale import Scale
from judgecal.tables import Columns, Row, Table, decode, read_bytes, read_table
from judgecal.tables.columns import listed_cell
from judgecal.workspace import shown

_YES_OR_NO = Scale.parse("binary")
_SOURCE = r"(?:documents?|contexts?|texts?|passages?|articles?|sources?)"
_NOTHING_TO_FIND = re.compile(
    rf"""\W*(?:
      (?:(?:the|an|this)\ )?(?:answer|question|information)
        \ (?:(?:is|was|are|were|can|could|does|do)\ ?(?:not|n't)|cannot)
        \ [^.]*\b(?:answered|found|determined
          |(?:in|by|from)\ (?:the|this|these|any)\ (?:\w+\ ){{0,2}}{_SOURCE})
      | not\ (?:\w+\ )?in\ (?:the|this)\ (?:\w+\ ){{0,2}}{_SOURCE} | unanswerable | no\ answer
    )\W*""",
    re.IGNORECASE | re.VERBOSE,
)
_ENDINGS = (".txt", ".text", ".md")  # of a document's file
_SAYS_NOTHING = ("documents", "corpus", "questions", "queries", "qrels")  # then the folder's name says more
# The name of the contract first, then what data sets of the field call the same.
_DOCUMENT_ID = ("document_id", "doc_id", "docid", "_id", "id")
_TEXT = ("text", "document_extracted", "contents", "body")
_QUESTION_ID = ("question_id", "query_id", "qid", "_id")
_QUESTION = ("question", "query", "text")
_REFERENCE = ("reference_documents", "document_id", "doc_id", "docid")
USUAL = Columns(usual=True)


def refuses(answer: str, message: str | None = None) -> bool:
    """Return whether an answer's text declines, or is blank."""
    declines = message is not None and message.strip(" .").casefold() in answer.casefold()
    return declines or not answer.strip() or refuses_at_once(answer)


def says_unanswerable(references: Sequence[str]) -> bool:
    """Return whether the texts of reference answers say that there is none ("not in the document").

    Narrower than `refuses`: a reference may well be about something that was not found.
    """
    return bool(references) and all(_NOTHING_TO_FIND.fullmatch(text) for text in references)


@dataclass(frozen=True)
class Question:
    """A question with what all items of its group say, each once, in file order; tags are those all share."""

    group: str
    question: str  # the wording of the group's first item; empty where only qrels and a run were given
    reference_answers: tuple[str, ...] = ()
    reference_documents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    # Of its first item: the contexts that it brings along, and the rules that an answer is held to.
    contexts: tuple[Context, ...] = ()
    expect: Mapping[str, Any] = field(default_factory=dict, hash=False)
    marked: bool | None = None  # whether it has an answer, as the set says; None where that marks no question
    # Of qrels: document id -> relevance, in their order; above 0 a reference document, else judged only.
    qrels: Mapping[str, int] | None = field(default=None, hash=False)

    @cached_property
    def answerable(self) -> bool:
        """Whether the question has an answer: as it is marked, else by `says_unanswerable`."""
        return not says_unanswerable(self.reference_answers) if self.marked is None else self.marked

    @property
    def grades(self) -> Mapping[str, int]:
        """The relevance of the judged documents."""
        return dict.fromkeys(self.reference_documents, 1) if self.qrels is None else self.qrels

    def item(self, contexts: tuple[Context, ...] = ()) -> Item:
        """The question as it is put to an answerer: without the reference."""
        return Item(self.group, self.group, self.question, "", contexts=contexts)

    def judged_by(self, qrels: Mapping[str, int]) -> Question:
        """Return the Question with the reference documents of qrels, a dict: document -> relevance."""
        references = tuple(name for name, grade in qrels.items() if grade > 0)
        return replace(self, reference_documents=references, qrels=qrels)


@dataclass(frozen=True)
class Collection:
    """Questions and documents, both in file order with unique ids, and what was noticed while reading."""

    name: str  # what the results are called after: a gold set, a file, a split
    questions: tuple[Question, ...]
    documents: tuple[GoldDocument, ...] | None = None  # None where there are none
    questions_from: str = ""  # as a run line names them
    documents_from: str = ""
    gold: GoldSet | None = None  # that the questions are of
    split: str | None = None  # of the gold set
    notes: tuple[str, ...] = ()
    sealed: frozenset[str] = frozenset()  # test questions of a gold set: they count, and are shown nowhere

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The place of each document by its id, from 0."""
        return {document.document_id: place for place, document in enumerate(self.documents or ())}

    def lacks(self, document_id: str) -> bool:
        """Whether the corpus is known and has no such document."""
        return self.documents is not None and document_id not in self.numbers

    @cached_property
    def documents_sha(self) -> str:
        """sha256 of the documents (ids, titles, texts), in order."""
        return digest([[each.document_id, each.title, each.text] for each in self.documents or ()])

    @cached_property
    def questions_sha(self) -> str:
        """sha256 of the questions (ids, texts, references, documents), in order."""
        return digest(
            [
                [each.group, each.question, each.reference_answers, [*each.grades.items()]]
                for each in self.questions
            ]
        )


# --- of a gold set


def collection_of_gold(gold: GoldSet, split: str = "all") -> Collection:
    """Return a Collection made from a GoldSet (its split), a Question for each group; no label is read."""
    items = [item for item in gold.select(split) if item.group not in gold.turned_down]
    if not items:
        raise InputError(f"gold set {gold.name}: no question is left to ask")
    wordings = Counter(group for group, _ in dict.fromkeys((item.group, item.question) for item in items))
    several = [name for name, n in wordings.items() if n > 1]
    note = f"{len(several)} questions have more than one wording; we ask the first: "
    notes = [note + listed(several, sealed=gold.test_groups)] if several else []
    n_rejected = len(gold.turned_down)
    notes += [f"left out, as people turned them down: {n_rejected} questions"] if n_rejected else []
    source, questions = f"gold:{gold.name}@{gold.sha256[:12]}", by_group(items)
    return Collection(
        gold.name,
        questions,
        gold.documents or None,
        questions_from=source,
        documents_from=source,
        gold=gold,
        split=split,
        notes=tuple(notes),
        sealed=sealed_names(gold) & {question.group for question in questions},
    )


def sealed_names(gold: GoldSet) -> frozenset[str]:
    """Return a frozenset of names: the test questions of a GoldSet."""
    groups = {item.group for item in gold.items}
    of_test = [item for item in gold.items if item.group in gold.test_groups]
    others = {name for item in of_test for name in (item.item_id, f"{item.group} {item.item_id}")}
    return gold.test_groups | (others - groups)


def wording_notes(questions: Sequence[Question]) -> list[str]:
    """Return a list of notes on Questions that count as unanswerable by their reference's wording alone."""
    n = sum(question.marked is None and not question.answerable for question in questions)
    why = "by the wording of their reference alone: a column answerable, or a tag unanswerable, is surer"
    return [f"{n} of {len(questions)} questions count as having no answer, {why}"] if n else []


def _marked(item: Item) -> bool | None:
    """Whether there is an answer, as the item says; ValueError: its field is neither yes nor no."""
    cell = item.fields.get("answerable", "").strip()
    if cell:
        return bool(_YES_OR_NO.read(cell))
    return False if "unanswerable" in item.tags or item.expect.get("refuse") is True else None


def by_group(items: Iterable[Item]) -> tuple[Question, ...]:
    """Return a tuple of Questions made from Items, a Question for each group, in the groups' order.

    Each further item of a group and system that has rules (`expect`) is a question of its own, named by its
    id: a benchmark may ask one thing twice. Where any is marked, those that are not have an answer; where
    items of one differ, the first mark counts.
    """
    items = list(items)
    names: dict[str, list[str]] = {item.group: [] for item in items}
    n_ruled: Counter[tuple[str, str | None]] = Counter()

    def name_of(item: Item) -> str:
        of_group, place = names[item.group], n_ruled[item.group, item.system]
        n_ruled[item.group, item.system] += bool(item.expect)
        if place >= len(of_group):
            other = f"{item.group} {item.item_id}" if item.item_id in names else item.item_id
            of_group.append(well_formed(other if of_group else item.group))
        return of_group[place]

    groups = grouped(items, name_of)
    marks, problems = dict[str, bool](), list[str]()
    for group, item in ((group, item) for group, rows in groups.items() for item in rows):
        try:
            if (mark := _marked(item)) is not None:
                marks.setdefault(group, mark)
        except ValueError as error:
            problems.append(f"item {item.item_id}: answerable must be yes or no: {error}")
    refuse(problems)
    return tuple(
        Question(
            group,
            well_formed(rows[0].question),
            tuple(dict.fromkeys(well_formed(text) for item in rows for text in item.reference_answers)),
            tuple(dict.fromkeys(well_formed(name) for item in rows for name in item.reference_documents)),
            tuple(well_formed(tag) for tag in rows[0].tags if all(tag in item.tags for item in rows)),
            rows[0].contexts,
            rows[0].expect,
            marks.get(group, True) if marks else None,
        )
        for group, rows in groups.items()
    )


# --- of files


def collection_of_files(
    documents: Path | None,
    questions: Path | None,
    *,
    qrels: Path | None = None,
    columns: Columns = USUAL,
    references: str | None = None,
) -> Collection:
    """Read a Collection from two paths or None: a file of documents and a file of questions.

    What `columns` do not name has the first usual name that the file has; `group` holds the questions' ids,
    by default their wordings, `references` the ids of their reference documents.
    """
    corpus, notes = (None, list[str]()) if documents is None else read_documents(documents, columns)
    judged = None if qrels is None else read_qrels(qrels)
    if questions is None:
        read = tuple(Question(name, "").judged_by(grades) for name, grades in (judged or {}).items())
    else:
        read = _questions(questions, columns, references, is_judged=judged is not None)
    if questions is not None and judged is not None:
        missing = judged.keys() - {question.group for question in read}
        if missing:
            message = f"{len(missing)} of {len(judged)} questions of the qrels are not in {questions.name}"
            notes.append(f"{message}, so we could not ask them: {listed(sorted(missing))}")
        read = tuple(question.judged_by(judged.get(question.group, {})) for question in read)
    path = documents or questions or qrels or Path("run")
    return Collection(
        path.resolve().parent.name if path.stem in _SAYS_NOTHING else path.stem,
        read,
        corpus,
        questions_from="+".join(path.name for path in (questions, qrels) if path is not None),
        documents_from=documents.name if documents else "",
        notes=tuple(notes),
    )


def read_documents(path: Path, columns: Columns = USUAL) -> tuple[tuple[GoldDocument, ...], list[str]]:
    """Read a tuple of GoldDocuments and a list of remarks from the path of a table, folder or text.

    An id may come again with the same text, never with another one.
    """
    notes, problems = list[str](), list[str]()
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
        rows = [_text_document(file, problems) for file in files if file.suffix.lower() in _ENDINGS]
        if others := [file.name for file in files if file.suffix.lower() not in _ENDINGS]:
            skipped = f"{len(others)} files of {shown(path)} are no text ({', '.join(_ENDINGS)})"
            notes.append(f"{skipped}, so we skipped them: {listed(others)}")
    elif path.suffix.lower() in _ENDINGS:
        rows = [_text_document(path, problems)]
    else:
        rows = [*_table_documents(path, columns, problems)]
    first, repeated = dict[str, tuple[GoldDocument, str]](), Counter[str]()
    for document, where in rows:
        name = document.document_id
        before, place = first.setdefault(name, (document, where))
        if before is document:
            continue
        if before == document:
            repeated[name] += 1
            continue
        what = "text" if before.text != document.text else "title"
        message = f"document {name!r} has another {what} than at {place}: give each document an id of its own"
        problems.append(f"{where}: {message}")
    refuse(problems)
    if not first:
        raise InputError("; ".join([f"{shown(path)}: holds no documents", *notes]))
    if repeated:
        n = repeated.total()
        notes.append(f"{n} rows repeat a document with the same text and count once: {listed([*repeated])}")
    return tuple(document for document, _ in first.values()), notes


def _text_document(path: Path, problems: list[str]) -> tuple[GoldDocument, str]:
    """The document in a text file; its id is the name without ending."""
    text, undecoded = decode(read_bytes(path), shown(path))
    problems += undecoded
    return GoldDocument(path.stem, None, text), shown(path)


def _table_documents(path: Path, columns: Columns, problems: list[str]) -> Iterator[tuple[GoldDocument, str]]:
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
    path: Path, columns: Columns, references: str | None, *, is_judged: bool
) -> tuple[Question, ...]:
    """The questions of a table; those of several rows with the references of all of them."""
    table = read_table(path)
    columns = columns.resolved(table.columns, only=("reference",))
    # Answers that stand in the same table have an id a row, and a question has several rows.
    ids = (*_QUESTION_ID, *(["id"] if "system" not in table.columns else []))
    usual = next((name for name in ids if name in table.columns), None)
    named = None if is_judged else references or _column(table, None, _REFERENCE)
    columns = replace(
        columns,
        question=_column(table, columns.question, _QUESTION),
        group=columns.group or usual,
        answer=None,
        usual=False,
    )
    marks = dict(columns.fields).get("answerable") or "answerable"
    required = [*columns.names, *([references] if references and not is_judged else [])]
    table.require(*required)
    items, problems, wordings = list[Item](), list[str](), dict[str, str]()
    for row in table.rows:
        where = table.at(row)
        item = columns.read_item(row, where, item_id=str(row.line), problems=problems)
        if wordings.setdefault(item.group, item.question) != item.question:
            problems.append(f"{where}: question {item.group!r} has another text before: give it its own id")
        documents = _ids_in(row, named, columns.reference_separator) if named and named in row.cells else ()
        fields = {"answerable": row.cells.get(marks, "")}
        items.append(replace(item, reference_documents=tuple(documents), fields=fields))
    refuse(problems)
    if not items:
        raise InputError(f"{table.where}: holds no question")
    return by_group(items)


def _ids_in(row: Row, column: str, separator: str | None) -> Sequence[str]:
    """The ids in a cell: a list, in a text cell a JSON list, or text."""
    value = listed_cell(row.raw.get(column))
    return [str(name) for name in value] if isinstance(value, list) else row.parts(column, separator)


def cut_lines(path: Path, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, list of cells) from a path; what is no text is added to a list `problems`."""
    text, undecoded = decode(read_bytes(path), shown(path))
    problems += undecoded
    for line, source in enumerate(text.split("\n"), start=1):
        if parts := source.split():
            yield line, parts


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Read TREC qrels from a path as a dict: question -> document -> relevance.

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
