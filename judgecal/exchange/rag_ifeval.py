"""Questions with rules for their answers, in the shape of RAG-IFEval's `samples.json`, and answers to them.

    [{"id": "1", "question": "...", "context": ["document-id", ...], "expect": {"include": [...], "cite":
    [...]}}]

`expect` holds the rules that an answer is held to (include, exclude, cite, refuse, safe). The texts of the
contexts are in a file `documents.jsonl` beside it (`{"id", "contents"}`), where there is one. An answer may
stand in the row, as `answer`; or in another table by the question's id, the columns `id`, `answer` and maybe
`system`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse
from judgecal.records import Context, Item
from judgecal.tables.formats import read_table
from judgecal.tables.table import Row, Table

RULES = ("include", "exclude", "cite", "refuse", "safe")
"""The rules that are known, in the benchmark's order."""

_OWN = frozenset({"id", "question", "context", "expect"})
_KNOWN = _OWN | {"answer", "system", "tags"}
_DOCUMENTS = "documents.jsonl"


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions with their rules: one item each, its answer empty where the file has none.

    `conditions`: how many questions have each rule. `notes`: what the set's owner should know. `left_out`:
    the columns that nothing is taken from.
    """

    items: tuple[Item, ...]
    conditions: dict[str, int]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def has_rules(table: Table) -> bool:
    """Whether a table has the shape: every row a question with contexts and an object of rules."""
    return bool(table.rows) and all(
        row.raw.keys() >= _OWN
        and isinstance(row.raw["expect"], dict)
        and isinstance(row.raw["context"], list)
        for row in table.rows
    )


def read_questions(table: Table, path: Path) -> Questions:
    """The questions of a table that `has_rules`, which was read from a path."""
    texts = _document_texts(path.with_name(_DOCUMENTS))
    problems: list[str] = []
    groups: dict[str, str] = {}  # one question may stand there twice, beside other documents
    items = tuple(_item(row, table.at(row), texts, problems) for row in table.rows)
    items = tuple(
        replace(item, group=groups.setdefault(item.question.strip(), item.item_id)) for item in items
    )
    twice = [item_id for item_id, count in Counter(item.item_id for item in items).items() if count > 1]
    refuse(
        [
            *problems,
            *(f"{table.where}: the id {item_id!r} stands twice: ids must differ" for item_id in twice),
        ]
    )
    own = {name for row in table.rows for name in row.raw if not name.startswith("expect.")}
    without = {context.document_id for item in items for context in item.contexts if not context.text}
    notes = (
        [f"{len(without):,} documents have no text: put {_DOCUMENTS} beside {table.name}"] if without else []
    )
    return Questions(
        items=items,
        conditions={rule: sum(rule in item.expect for item in items) for rule in RULES},
        notes=tuple(notes),
        left_out=tuple(sorted(own - _KNOWN)),
    )


def _item(row: Row, where: str, texts: dict[str, str], problems: list[str]) -> Item:
    raw = row.raw
    number, question = row.cells["id"].strip(), row.cells["question"]
    problems += [f"{where}: {name} is empty: fill it in" for name, text in (("id", number), ("question", question))
                 if not text.strip()]  # fmt: skip
    ids = [one for one in raw["context"] if isinstance(one, str) and one]
    if len(ids) < len(raw["context"]):
        problems.append(f"{where}: context must be a list of document ids")
    unknown = sorted(raw["expect"].keys() - set(RULES))
    if unknown:
        problems.append(f"{where}: expect has no rule {', '.join(unknown)}: known: {', '.join(RULES)}")
    return Item(
        item_id=number,
        group=number,
        question=question,
        answer=row.cells.get("answer", ""),
        system=row.cells.get("system", "").strip() or None,
        contexts=tuple(Context(texts.get(one, ""), one) for one in ids),
        tags=tuple(rule for rule in RULES if rule in raw["expect"]),
        expect=raw["expect"],
    )


def _document_texts(path: Path) -> dict[str, str]:
    """The texts of documents by id; none where there is no such file."""
    if not path.is_file():
        return {}
    table = read_table(path)
    table.require("id", "contents")
    return {row.cells["id"]: row.cells["contents"] for row in table.rows}


def join_answers(items: Sequence[Item], answers: Table) -> tuple[list[Item], list[str]]:
    """The items with a table's answers, an item a system and question, and notes on what found no partner."""
    number = "id" if "id" in answers.columns else "item_id"
    answers.require(number, "answer")
    by_id = {item.item_id: item for item in items}
    found: dict[tuple[str, str], Item] = {}
    problems: list[str] = []
    for row in answers.rows:
        item_id, system = row.cells[number].strip(), row.cells.get("system", "").strip()
        if item_id not in by_id:
            problems.append(f"{answers.at(row)}: {item_id!r} is the id of no question")
        elif (item_id, system) in found:
            problems.append(
                f"{answers.at(row)}: a second answer to {item_id!r}{f' by {system}' * bool(system)}"
            )
        else:
            found[item_id, system] = _answered(by_id[item_id], row.cells["answer"], system)
    refuse(problems)
    return list(found.values()), _unanswered(by_id, found, answers)


def _answered(item: Item, answer: str, system: str) -> Item:
    item_id = f"{item.item_id}-{system}" if system else item.item_id
    return replace(item, item_id=item_id, answer=answer, system=system or item.system)


def _unanswered(items: Iterable[str], found: dict[tuple[str, str], Any], answers: Table) -> list[str]:
    notes = []
    for system in dict.fromkeys(system for _, system in found):
        missing = [item_id for item_id in items if (item_id, system) not in found]
        if missing:
            by = f" by {system}" * bool(system)
            notes.append(
                f"{len(missing):,} questions have no answer{by} in {answers.name}: {listed(missing)}"
            )
    return notes


def read_answers(path: str | Path) -> Table:
    """A table of answers. InputError: it cannot be read, or has none."""
    table = read_table(path)
    if not table.rows:
        raise InputError(f"{table.where}: holds no answer")
    return table


def answered(items: Sequence[Item], file: str | Path) -> tuple[list[Item], list[str]]:
    """Items with the answers of a file, and what is to be said of those that it lacks."""
    return join_answers(items, read_answers(file))
