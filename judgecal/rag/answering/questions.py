"""What an answerer is asked, one question a group (no label is read); and answers recorded elsewhere.

A set marks a question that has no answer: by the field `answerable` (no), the tag `unanswerable` or the rule
`expect.refuse` of its items. Where it marks none, a reference that says that there is nothing to find does.

Which answers decline is a rule and no reading, where no judge says it. An answer refuses where its first 160
characters hold one of the phrases that the embedded model knows (English, a few German and Polish ones), or
where it is blank. A refusal in other words is missed, and counts as an answer.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse
from judgecal.goldset import Columns, GoldSet
from judgecal.goldset.wording import grouped
from judgecal.models.embedded.text import take_apart
from judgecal.records import Context, Item, well_formed
from judgecal.scale import Scale
from judgecal.tables import Row, Table, read_table

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


def refuses(answer: str, message: str | None = None) -> bool:
    """Whether an answer declines, or is blank; `message`: the words that it was told to decline with."""
    told = message is not None and message.strip(" .").casefold() in answer.casefold()
    return told or not answer.strip() or take_apart(answer).refuses


def says_unanswerable(references: Sequence[str]) -> bool:
    """Whether the reference answers say that there is none ("The answer is not in the document.").

    Narrower than `refuses`: a reference may well be about something that was not found.
    """
    return bool(references) and all(_NOTHING_TO_FIND.fullmatch(text) for text in references)


@dataclass(frozen=True)
class Question:
    """A question with what all items of its group say, each once, in file order; tags are those all share."""

    group: str
    question: str  # the wording of the group's first item
    reference_answers: tuple[str, ...]
    reference_documents: tuple[str, ...]
    tags: tuple[str, ...] = ()
    # Of its first item: the contexts that it brings along, and the rules that an answer is held to.
    contexts: tuple[Context, ...] = ()
    expect: Mapping[str, Any] = field(default_factory=dict, hash=False)
    marked: bool | None = None  # whether it has an answer, as the set says; None where that marks no question

    @cached_property
    def answerable(self) -> bool:
        """Whether it has an answer: as it is marked, else by the rule of `says_unanswerable`."""
        return not says_unanswerable(self.reference_answers) if self.marked is None else self.marked

    def item(self, contexts: tuple[Context, ...] = ()) -> Item:
        """The question as it is put to an answerer: without the reference."""
        return Item(self.group, self.group, self.question, "", contexts=contexts)


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a set, and what was noticed while they were read."""

    asked: tuple[Question, ...]
    notes: tuple[str, ...] = ()


def questions_of(gold: GoldSet, *, without: Collection[str] = ()) -> Questions:
    """One question a group, in file order; some groups may be left out, and rejected drafts are."""
    items = [item for item in gold.items if item.group not in gold.turned_down.union(without)]
    asked = by_group(items)
    if not asked:
        raise InputError(f"gold set {gold.name}: no question is left to ask")
    wordings = Counter(group for group, _ in dict.fromkeys((item.group, item.question) for item in items))
    several = [name for name, n in wordings.items() if n > 1]
    note = f"{len(several)} questions have more than one wording; we ask the first: "
    notes = (note + listed(several, sealed=gold.test_groups),) if several else ()
    return Questions(asked, (*notes, *wording_notes(asked), *gold.draft_notes()))


def sealed_names(gold: GoldSet) -> frozenset[str]:
    """The names of the questions of test."""
    groups = {item.group for item in gold.items}
    of_test = [item for item in gold.items if item.group in gold.test_groups]
    others = {name for item in of_test for name in (item.item_id, f"{item.group} {item.item_id}")}
    return gold.test_groups | (others - groups)


def wording_notes(asked: Sequence[Question]) -> list[str]:
    """That questions count as unanswerable by nothing but how their reference is worded."""
    n = sum(question.marked is None and not question.answerable for question in asked)
    how = "by the wording of their reference alone: a column answerable, or a tag unanswerable, is surer"
    return [f"{n} of {len(asked)} questions count as having no answer, {how}"] if n else []


def _marked(item: Item) -> bool | None:
    """Whether there is an answer, as the item says; ValueError: its field is neither yes nor no."""
    said = item.fields.get("answerable", "").strip()
    if said:
        return bool(_YES_OR_NO.read(said))
    return False if "unanswerable" in item.tags or item.expect.get("refuse") is True else None


def by_group(items: Iterable[Item]) -> tuple[Question, ...]:
    """One question a group, in the order in which they first occur, in texts that every file can hold.

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


_QUESTION_COLUMNS = ("question_id", "group", "question")
_Key = tuple[str, str]
"""A system and the group of a question."""


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """Answers read from a file."""

    name: str
    sha256: str
    columns: Mapping[str, str | None]  # which column was read as what
    rows: Mapping[str, Mapping[str, str]]  # system -> group -> answer, in the order of the file
    unmatched: tuple[str, ...]  # what rows name that is no question
    n_rows: int
    contexts: Mapping[_Key, tuple[Context, ...]] = field(default_factory=dict)  # empty without such a column
    latency_s: Mapping[_Key, float] = field(default_factory=dict)  # without those whose cell is empty
    errors: Mapping[_Key, str] = field(default_factory=dict)  # why there is no answer, as the file says it

    def config(self) -> dict[str, Any]:
        """What a configuration says of it."""
        return {"file": self.name, "sha256": self.sha256, **self.columns}


def read_answers(
    path: Path,
    questions: Sequence[Question],
    question_column: str | None,
    answer_column: str,
    system_column: str | None,
    *,
    measured: bool = False,
    table: Table | None = None,
) -> RecordedAnswers:
    """`--answers FILE`: answers of a system elsewhere to the questions of a set, in any format of tables.

    A question is named by its id or by its text; a wording that two questions share names neither. Without a
    question column it is `question_id`, `group` or `question`, the first that is there; the system is column
    `system`, and without it the file is one system. Where what was `measured` is asked for, columns
    `contexts`, `latency_s` and `error` are read too, if they are there. `table` is the file, if it was read
    already.
    """
    table = table or read_table(path)
    usual = next((name for name in _QUESTION_COLUMNS if name in table.columns), _QUESTION_COLUMNS[0])
    question_column = question_column or usual
    system_column = system_column or ("system" if "system" in table.columns else None)
    contexts = ("contexts",) if measured and "contexts" in table.columns else ()
    columns = Columns(question_column, answer_column, system=system_column, contexts=contexts)
    table.require(*columns.names)
    wordings = Counter(each.question.strip() for each in questions)
    by_name = {
        each.question.strip(): each.group for each in questions if wordings[each.question.strip()] == 1
    }
    by_name |= {each.group.strip(): each.group for each in questions}
    problems: list[str] = []
    unmatched: list[str] = []
    matched: dict[_Key, tuple[Item, Row]] = {}
    for row in table.rows:
        item: Item = columns.read_item(row, table.at(row), item_id="", problems=problems)
        system, group = item.system or path.stem, by_name.get(well_formed(item.question).strip())
        if group is None:
            unmatched.append(item.question)
            continue
        _, first = matched.setdefault((system, group), (item, row))
        if first is not row:
            already = f"{system} answers {group} on line {first.line} already"
            problems.append(f"{table.at(row)}: {already}: keep one row")
    latency_s: dict[_Key, float] = {}
    for key, (_, row) in matched.items() if measured and "latency_s" in table.columns else ():
        cell = row.cells["latency_s"].strip()
        try:
            seconds = float(cell or 0)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds < math.inf:
            wrong = f"column 'latency_s': must be seconds from 0, found {cell!r:.40}"
            problems.append(f"{table.at(row)}: {wrong}")
        if cell:
            latency_s[key] = seconds
    refuse(problems)
    if not matched:
        looks = questions[0]
        raise InputError(
            f"{table.where}: no value of column {question_column} is a question of the set (found "
            f"{unmatched[0]!r}; questions look like {looks.group!r} or {looks.question!r})"
        )
    rows: dict[str, dict[str, str]] = {}
    for (system, group), (item, _) in matched.items():
        rows.setdefault(system, {})[group] = item.answer
    errors = (
        {key: row.cells.get("error", "").strip() for key, (_, row) in matched.items()} if measured else {}
    )
    return RecordedAnswers(
        path.name,
        hashlib.sha256(path.read_bytes()).hexdigest(),
        {"question_column": question_column, "answer_column": answer_column, "system_column": system_column},
        rows,
        tuple(unmatched),
        len(table.rows),
        {key: item.contexts for key, (item, _) in matched.items()} if contexts else {},
        latency_s,
        {key: error for key, error in errors.items() if error},
    )
