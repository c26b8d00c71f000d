"""Which column of a table is what: one answer for every command that takes a table, and one reader of items.

What no option names has the column of its usual name, which is what our own files call it. A table that
judgecal wrote under other names has them in a file beside it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from judgecal.artefacts import SCHEMA, check_keys, read_json, read_toml, validated
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.records import Context, Item, Pair, Turn
from judgecal.signatures import ITEM_INPUTS
from judgecal.tables.table import Row
from judgecal.workspace import CONFIG_TABLES, Workspace, write_text

_PLAIN_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def read_contexts(row: Row, column: str, where: str, problems: list[str]) -> tuple[Context, ...]:
    """Return a tuple of Contexts, from a Row, a column's name, `where`, and the list that takes problems. A
    cell is one text, or a list (in a text cell: a JSON list) of texts or of {document_id, text, score}; empty
    ones are passed over, and a score that is no number.
    """
    value = listed_cell(row.raw.get(column))
    contexts = []
    for place, part in enumerate(value if isinstance(value, list) else [value], start=1):
        entry = part if isinstance(part, dict) else {"text": "" if part is None else part}
        text, name = entry.get("text"), entry.get("document_id")
        score: Any = entry.get("score")
        if not isinstance(text, str):
            text = json.dumps(part, ensure_ascii=False)
            what = f"context {place} must be a text or an object with a text, found {text[:60]}"
            problems.append(f"{where}: column {column!r}: {what}")
        scored = isinstance(score, int | float) and not isinstance(score, bool)
        number = float(score) if scored and abs(score) <= sys.float_info.max else None
        contexts.append(Context(text, None if name in (None, "") else str(name), number))
    return tuple(context for context in contexts if context.text.strip())


def listed_cell(value: Any) -> Any:
    """Return a cell's value; of a text that is a JSON list the list, as tables without lists write it."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):  # a text may only begin like a list
            parsed = json.loads(value)
            return parsed if isinstance(parsed, list) else value
    return value


def read_conversation(row: Row, column: str, where: str, problems: list[str]) -> tuple[Turn, ...]:
    """Return a tuple of Turns, from a Row, a column's name, `where`, and the list that takes problems. They
    are {role, content}s, or their JSON.
    """
    value = listed_cell(row.raw.get(column))
    if value in (None, ""):
        return ()
    parts = value if isinstance(value, list) else []
    pairs = [(part.get("role"), part.get("content")) for part in parts if isinstance(part, dict)]
    turns = [Turn(role, text) for role, text in pairs if isinstance(role, str) and isinstance(text, str)]
    if not isinstance(value, list) or len(turns) < len(value):
        problems.append(
            f"{where}: column {column!r}: a conversation must be a list of objects {{role, content}} with "
            f"texts, found {row.cells[column][:60]!r}"
        )
    return tuple(turns)


def read_tags(row: Row, column: str) -> Iterator[str]:
    """Yield tags, texts, from a Row and a column's name: a text, each of a list, the name for true."""
    value = listed_cell(row.raw.get(column))
    for part in value if isinstance(value, list) else [value]:
        text = str(part).strip()
        if part is None or not text or text.lower() == "false":
            continue
        if text.lower() == "true":
            yield column
        else:
            yield f"{column}={text}" if _PLAIN_NUMBER.fullmatch(text) else text


GOLD = "gold"
"""The rater of adjudicated labels."""
PAIR = ("answer_a", "answer_b", "system_a", "system_b")
USUAL: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "prompt", "instruction", "input", "user_input", "frage", "q"),
    "answer": (
        "answer", "answer_under_test", "response", "output", "completion", "actual_output", "antwort", "a",
    ),
    "reference": (
        "reference_answer", "reference", "expected", "expected_answer", "expected_output", "ground_truth",
        "gold_answer", "ideal",
    ),
    "contexts": ("contexts", "context", "retrieved_contexts", "retrieved_context"),
    "conversation": ("conversation",),
    "item": ("item_id",),
    "group": ("group", "question_id", "query_id", "prompt_id"),
    "system": ("system",),
    "verdict": ("verdict",),
    **{part: (part, part.replace("answer", "response").replace("system", "model")) for part in PAIR},
}  # fmt: skip
"""The columns that are taken where no option names any: the first of them that the table has, whatever its
case; of a group's names the first alone, where there is a question."""
OF_ITEMS = tuple(part for part in USUAL if part != "verdict")
_BESIDE = (*USUAL, "fields", "reference_separator")  # what a table that we wrote says of its columns
PARTS: Mapping[str, str] = {
    **{part: part for part in OF_ITEMS},
    "tag": "tags", "note": "notes", "rater": "rater", "gold": "gold_label",
    **{part: part for part in ("judge", "document", "text", "title")},
}  # fmt: skip
"""What `--col` calls a part of a table -> its field of `Columns`."""
OF_IMPORTS = (*OF_ITEMS, "tag", "note", "rater", "gold")
"""The parts of a table with people's labels."""
_SEVERAL = frozenset({"contexts", "tag", "note"})
PART_OF_INPUT = {
    "answer_under_test": "answer", "response": "answer", "reference_answer": "reference",
    "reference_answers": "reference", "context": "contexts", "chunk": "contexts",
}  # fmt: skip
"""Input of a judge -> the part that it is filled from, where the two have different names."""
_OPTION_OF = {
    "labels": "--label", "verdict": "--verdict", "verdicts": "--verdict",
    "reference_separator": "--reference-separator",
}  # fmt: skip
_NEAR = 0.8  # how alike a name and a part are that is taken for misspelt


def read_columns(
    entries: Iterable[str],
    *,
    takes: Collection[str] = OF_ITEMS,
    inputs: Collection[str] | None = None,
    workspace: Workspace | None = None,
    **more: Any,
) -> Columns:
    """Return the Columns that a list of `--col` entries, texts `PART=COLUMN`, names.

    `takes`: the parts that the command takes. `inputs`: those of the judges, which are parts too; None where
    no judge is known yet: then any name may be that of an input, unless it is close to a part's. `workspace`:
    whose `judgecal.toml` names the columns of the parts that no option names.
    """
    named: dict[str, list[str]] = {}
    fields: dict[str, str] = {}
    problems: list[str] = []
    parts = [part for part in PARTS if part in takes]
    any_input = inputs is None or "item" in inputs  # a judge that takes the item reads every field
    for entry in entries:
        name, sign, column = (text.strip() for text in entry.partition("="))
        part, near = PART_OF_INPUT.get(name, name), difflib.get_close_matches(name, parts, n=1, cutoff=_NEAR)
        if not (sign and name and column):
            problems.append(f"--col {entry}: write PART=COLUMN, such as --col {parts[0]}=COLUMN")
        elif part in takes:
            before = named.setdefault(part, [])
            if before and part not in _SEVERAL:
                problems.append(f"--col {part} is given twice, as {before[0]} and as {column}: keep one")
            before.append(column)
            fields |= {name: column} if name in {*(inputs or ())} - ITEM_INPUTS else {}
        elif fields.setdefault(name, column) != column:
            problems.append(f"--col {name} is given twice, as {fields[name]} and as {column}: keep one")
        elif not (name.isidentifier() and not near if any_input else name in (inputs or ())):
            problems.append(f"--col {entry}: {unknown_name('part', name, [*parts, *sorted(inputs or ())])}")
    defaults = {} if workspace is None else workspace_columns(workspace)
    refuse(problems)
    given: Any = {
        PARTS[part]: tuple(columns) if part in _SEVERAL else columns[0] for part, columns in named.items()
    }
    return Columns(
        **given,
        fields=tuple(fields.items()),
        usual=True,
        defaults=tuple((part, column) for part, column in defaults.items() if part in takes),
        **more,
    )


def workspace_columns(workspace: Workspace) -> dict[str, str]:
    """Return part -> column, a dict of texts, as `[columns]` of a Workspace's `judgecal.toml` names them."""
    path = workspace.config_file
    config = read_toml(path) if path.is_file() else {}
    table, where = config.get("columns", {}), f"{path}: [columns]"
    if not isinstance(table, dict):
        raise InputError(f"{path}: columns must be a table: [columns]")
    problems = [*check_keys(config, CONFIG_TABLES, str(path)), *check_keys(table, PARTS, where)]
    problems += [
        f"{where}: {part} must be the name of a column, found {column!r}"
        for part, column in table.items()
        if not (isinstance(column, str) and column.strip())
    ]
    refuse(problems)
    return table


@dataclass(frozen=True)
class Columns:
    """Which column is what; None where there is no such column, or where `usual` is to find it by its usual
    name (`resolved`).

    `labels`: one column a rater, named as the rater; or a single column, and `rater` says whose label it is.
    The adjudicated `gold_label` may be one of them too. `notes`: what the raters wrote beside them, in the
    order of `labels` (without labels, beside the adjudicated one). `group` is by default the question's text.
    An answer may be empty, a question may not. `reference_separator` is the text between equally right
    reference answers. `contexts` are put one after the other. `answer_a` and `answer_b`, in place of
    `answer`, make pairs. `fields`: (name, column), for the inputs of a judge that have no other place; with
    them an item may do without question and answer. `tags` as `read_tags` reads them. `verdicts`: one column
    a judge, named as it is; a row that holds them needs no texts, and its question is then called by the row.
    `document` (its id), `text` and `title` are of a table of documents, `judge` (the judge's name) of one of
    judgements. `defaults`: (part, column), what a workspace calls the parts; taken where the table has such a
    column.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    # in the order in which the options are printed
    question: str | None = None
    answer: str | None = None
    answer_a: str | None = None
    answer_b: str | None = None
    system_a: str | None = None
    system_b: str | None = None
    reference: str | None = None
    contexts: tuple[str, ...] = ()
    conversation: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    gold_label: str | None = None
    notes: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    item: str | None = None
    group: str | None = None
    system: str | None = None
    verdict: str | None = None
    rater: str | None = None
    reference_separator: str | None = None
    judge: str | None = None
    document: str | None = None
    text: str | None = None
    title: str | None = None
    usual: bool = False
    defaults: tuple[tuple[str, str], ...] = ()

    def resolved(
        self, header: Collection[str], path: Path | None = None, *, only: Collection[str] = OF_ITEMS
    ) -> Columns:
        """Return these Columns, completed for a table's header, a list of names, if no option names any. It
        is what the file beside `path` says, else the workspace's default, else the column of the usual name.

        `only`: the parts that are looked for by their usual names.
        """
        if not self.usual:
            return self
        beside = {} if path is None else _named_beside(path, header)
        taken = {*self.names, self.verdict}
        defaults = {PARTS[part]: name for part, name in self.defaults if name in header and name not in taken}
        taken |= {*defaults.values(), *Columns(**beside).names}
        free = {
            name.strip().casefold().replace(" ", "_"): name for name in [*header][::-1] if name not in taken
        }
        free |= {name: name for name in header if name not in taken}  # a name as it is goes first
        there = ((part, name) for part in only for name in USUAL[part][::-1] if name in free)
        usual = {part: free[name] for part, name in there}  # the first name of a part goes first
        one_answer = self.answer or "answer" in defaults or ("answer" in only and "answer" in free)
        passed_over = {*PAIR}
        if self.fields and not (self.question or self.answer or self.pairs):
            passed_over |= {"question", "answer"}
        elif self.pairs or (not one_answer and all(usual.get(part) for part in PAIR[:2])):
            passed_over = {"answer"}
        columns: dict[str, Any] = {}
        for part in dict.fromkeys((*_BESIDE, *defaults)):
            column = beside.get(part) or defaults.get(part) or usual.get(part)
            if column and not getattr(self, part) and part not in passed_over:
                several = part in ("contexts", "tags", "notes") and isinstance(column, str)
                columns[part] = (column,) if several else column
        by_name = "group" in columns and columns["group"] == usual.get("group")
        if by_name and (self.question or "question" in columns):
            columns["group"] = free.get("group")
        return dataclasses.replace(self, **columns, usual=False)

    @property
    def pairs(self) -> bool:
        """Whether a row is a pair of answers."""
        return self.answer_a is not None

    def _columns(self, *fields: str) -> tuple[str, ...]:
        return tuple(column for _, _, column in self._named(fields))

    @cached_property
    def item_names(self) -> tuple[str, ...]:
        """The columns that make an item."""
        single = ("question", "answer", *PAIR, "reference", "item", "group", "system", "conversation")
        return self._columns(*single, "contexts", "fields", "tags")

    @property
    def label_names(self) -> tuple[str, ...]:
        """The columns that make ratings."""
        return self._columns("labels", "gold_label", "rater", "notes")

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that the table must have."""
        return (*self.item_names, *self.label_names, *self.verdicts)

    @property
    def raters(self) -> tuple[str, ...]:
        """The label columns that are raters of their own: all but one that is `gold` by name and option."""
        return tuple(name for name in self.labels if (name, self.gold_label) != (GOLD, GOLD))

    def note_of(self, label: str) -> str | None:
        """Return the name of the notes' column, or None, from the name of the label column beside it."""
        beside = self.labels or (self.gold_label,)
        return dict(zip(beside, self.notes, strict=False)).get(label)

    def problems(self) -> list[str]:
        """Return a list of problems, texts: these columns' options that contradict each other."""
        problems, judged = [], bool(self.verdicts)
        if self.question is None and not (self.fields or judged):
            instead = "items without one need --col NAME=COLUMN for an input of the judge"
            problems.append(f"--col question=COLUMN is missing ({instead})")
        whole = self.answer is None and self.answer_a and self.answer_b
        if self._columns(*PAIR) and not whole:
            problems.append("a pair has --col answer_a= and --col answer_b=, and no answer: name both")
        if not (self.answer or self.pairs or judged) and (self.question is not None or not self.fields):
            problems.append("--col answer=COLUMN is missing (only items without a question may do without)")
        named = Counter((*self.labels, *self.verdicts, *(name for name, _ in self.fields)))
        named.update({*self.label_names} & {*self.verdicts})  # people's, and a judge's
        problems += [f"{name!r} is named {n} times: name it once" for name, n in named.items() if n > 1]
        if self.rater is not None and len(self.labels) != 1:
            problems.append(f"--col rater= takes one --label column, found {len(self.labels)}")
        if self.rater is None and GOLD in self.labels and self.gold_label != GOLD:
            mend = f"give it as --col gold={GOLD}, or rename the column"
            problems.append(f"--label {GOLD}: {GOLD!r} is kept for the adjudicated label: {mend}")
        if self.notes and len(self.notes) != (len(self.labels) or (self.gold_label is not None)):
            times = f"{len(self.notes)} times and --label {len(self.labels)} times"
            problems.append(f"--col note= is given {times}: give one for each --label, in their order")
        if self.reference_separator is not None and not (self.reference_separator and self.reference):
            problems.append("--reference-separator stands within --col reference=: give both")
        return problems

    def read_item(self, row: Row, where: str, *, item_id: str, problems: list[str]) -> Item:
        """Return an Item, from a Row, `where`, an item id, and the list that takes problems. Problems are of
        what is empty and may not be.
        """
        cells = row.cells
        nameless = f"row {row.line}" if self.verdicts and not self.fields else ""
        question = nameless if self.question is None else cells[self.question]
        answer = "" if self.answer is None else cells[self.answer]
        group = question if self.group is None else cells[self.group].strip()
        if self.question is not None and not question.strip():
            mend = "fill it in, or take the row out"
            problems.append(f"{where}: column {self.question!r}: the question is empty: {mend}")
        if self.group is not None and not group:
            mend = "fill it in, or go without the column: then each question is its own group"
            problems.append(f"{where}: column {self.group!r}: the group is empty: {mend}")
        fields = {name: cells[column] for name, column in self.fields if cells[column].strip()}
        if self.question is None and self.fields and not fields:
            problems.append(f"{where}: every field is empty: fill one in, or remove the row")
        contexts = (part for column in self.contexts for part in read_contexts(row, column, where, problems))
        tags = (tag for column in self.tags for tag in read_tags(row, column))
        turns, pair, references = self.conversation, None, tuple[str, ...]()
        if self.reference is not None:
            references = row.parts(self.reference, self.reference_separator)
        if self.answer_a is not None and self.answer_b is not None:
            a, b = (cells.get(column or "", "").strip() or None for column in (self.system_a, self.system_b))
            pair = Pair(cells[self.answer_a], cells[self.answer_b], a, b)
        return Item(
            item_id,
            group,
            question,
            answer,
            reference_answers=references,
            system=None if self.system is None else cells[self.system].strip() or None,
            contexts=tuple(contexts),
            tags=tuple(dict.fromkeys(tags)),
            conversation=() if turns is None else read_conversation(row, turns, where, problems),
            fields=fields,
            pair=pair,
        )

    def read_row(self, row: Row) -> Item:
        """Return the Item of a Row, whatever is missing: its id may be empty, its group is the question."""
        names = self.item_names
        if any(name not in row.cells for name in names):
            row = Row(row.line, dict.fromkeys(names, "") | dict(row.cells), row.raw)
        named = "" if self.item is None else row.cells[self.item].strip()
        item = self.read_item(row, "", item_id=named, problems=[])
        return item if item.group else dataclasses.replace(item, group=item.question)

    def taken(self) -> dict[str, str]:
        """Return these columns' names -> what each is taken as, a dict of texts."""
        taken: dict[str, list[str]] = {}
        for field, part, column in self._named(_FIELDS):
            if field != "reference_separator":
                what = f"field {part}" if field == "fields" else field.removesuffix("s").replace("_", " ")
                taken.setdefault(column, []).append(what)
        return {column: " and ".join(what) for column, what in taken.items()}

    def typed(self) -> list[str]:
        """Return the options that name these columns, as a list of words."""
        words = [
            (_OPTION_OF[field], column) if field in _OPTION_OF else ("--col", f"{part}={column}")
            for field, part, column in self._named(_FIELDS)
        ]
        return [word for pair in dict.fromkeys(words) for word in pair]

    def options(self) -> str:
        """The options that name the columns, as they are typed."""
        return shlex.join(self.typed())

    def _named(self, fields: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Yield (field, what `--col` calls the part, column) of each column that some fields name."""
        for field in fields:
            value, part = getattr(self, field), _PART_OF_FIELD.get(field, field)
            for column in value if isinstance(value, tuple) else [value] * (value is not None):
                yield (field, *column) if field == "fields" else (field, part, column)


_FIELDS = tuple(each.name for each in dataclasses.fields(Columns) if each.name not in ("usual", "defaults"))
_PART_OF_FIELD = {field: part for part, field in PARTS.items()}


def columns_file(path: Path) -> Path:
    """The file beside a table that says what its columns are, where its header does not."""
    return path.with_name(f"{path.name}.columns.json")


def write_columns(path: Path, columns: Columns, header: Collection[str]) -> None:
    """Write a file beside a table, from its path, its Columns and its header; none where the header does."""
    usual = Columns(usual=True, defaults=columns.defaults).resolved(header, only=USUAL)
    named = {part: getattr(columns, part) for part in _BESIDE if getattr(columns, part)}
    if all(getattr(usual, part) == value for part, value in named.items()):
        columns_file(path).unlink(missing_ok=True)
    else:
        text = json.dumps({"schema": SCHEMA, **named}, ensure_ascii=False, indent=1)
        write_text(columns_file(path), f"{text}\n")


def _named_beside(path: Path, header: Collection[str]) -> Mapping[str, Any]:
    """What the file beside a table says of its columns; what the table has no more is passed over."""
    file = columns_file(path)
    if not file.is_file():
        return {}
    named = validated(Columns, read_json(file, absent="there is no such file"), str(file))
    return {
        part: getattr(named, part)
        for part in _BESIDE
        if getattr(named, part) and (part == "reference_separator" or {*named._columns(part)} <= {*header})
    }


def left_out(columns: Sequence[str], *used: str) -> list[str]:
    """Return the list of columns, of those given, that nothing is taken from: not used, nor part of such."""

    def is_used(column: str) -> bool:
        return any(f"{name}.".startswith(f"{column}.") or column.startswith(f"{name}.") for name in used)

    return [column for column in columns if not is_used(column)]
