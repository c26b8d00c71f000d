"""Questions with rules for their answers, in the shape of RAG-IFEval's `samples.json`, and answers to them.

    [{"id": "1", "question": "...", "context": ["document-id", ...],
      "expect": {"include": [...], "cite": [...]}}]

`expect` holds the rules that an answer is held to (include, exclude, cite, refuse, safe). The texts of the
contexts are in a file `documents.jsonl` beside it (`{"id", "contents"}`), where there is one. An answer may
stand in the row, as `answer`; or in another table by the question's id, the columns `id`, `answer` and maybe
`system`.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.goldset.card import UNKNOWN_LICENCE, Card
from judgecal.goldset.imports import Imported
from judgecal.goldset.write import write_gold
from judgecal.records import Context, Item
from judgecal.scale import Scale
from judgecal.tables.formats import read_table
from judgecal.tables.table import Table
from judgecal.workspace import Workspace

RULES = ("include", "exclude", "cite", "refuse", "safe")
"""The rules that are known, in the benchmark's order."""
_NEEDED = frozenset({"id", "question", "context", "expect"})
_KNOWN = _NEEDED | {"answer", "system", "tags"}
_DOCUMENTS = "documents.jsonl"


def holds_rules(file: str) -> bool:
    """Return whether a file (path) is a table of questions with rules."""
    path = Path(file)
    is_json = path.suffix.lower() in (".json", ".jsonl", ".ndjson") and path.is_file()
    return is_json and _has_rules(read_table(path))


def _has_rules(table: Table) -> bool:
    """Whether a table has the shape: every row a question with contexts and an object of rules."""
    return bool(table.rows) and all(
        row.raw.keys() >= _NEEDED
        and isinstance(row.raw["expect"], dict)
        and isinstance(row.raw["context"], list)
        for row in table.rows
    )


def import_rules(
    files: Sequence[str],
    *,
    name: str,
    workspace: Workspace,
    answers: str | None = None,
    replace: bool = False,
) -> Imported:
    """Import files of questions with rules to a Workspace as the gold set `name`; return Imported.

    People's labels are to be percentages, as the rules' verdicts are. Without answers they are empty.
    """
    workspace.require_writable("gold import")
    if len(files) > 1:
        raise InputError(f"gold import reads one file of questions, found {len(files)}")
    table = read_table(files[0])
    if not _has_rules(table):
        raise InputError(
            f"{table.where}: --answers belongs to questions with rules: each row has id, question, context "
            "(a list of document ids) and expect (an object)"
        )
    items = _questions(table, Path(files[0]))
    conditions = {rule: sum(rule in item.expect for item in items) for rule in RULES}
    counts = ", ".join(f"{rule} {count}" for rule, count in conditions.items())
    notes = [f"{sum(conditions.values())} conditions: {counts}"]
    without = {context.document_id for item in items for context in item.contexts if not context.text}
    if without:
        notes.append(f"{len(without):,} documents have no text: put {_DOCUMENTS} beside {table.name}")
    if answers is not None:
        items, unanswered = _answered(items, answers)
        notes += unanswered
    elif not any(item.answer for item in items):
        notes.append("questions alone: judgecal evaluate holds the answers of systems to their rules")
    columns = {name for row in table.rows for name in row.raw if not name.startswith("expect.")}
    if left_out := sorted(columns - _KNOWN):
        notice(f"judgecal: not taken over: {listed(left_out)}")
    command = ["judgecal", "gold", "import", table.name, "--as", name]
    card = Card(
        name=name,
        scale=Scale.parse("percentage"),
        version="1",
        licence=UNKNOWN_LICENCE,
        source=table.source,
        made_by=shlex.join([*command, *(["--answers", Path(answers).name] if answers else [])]),
    )
    readme = (
        f"# The gold set `{name}`\n\nQuestions with rules for their answers, in the shape of RAG-IFEval.\n\n"
        "Say here where the questions come from, and fill in `licence` in card.toml.\n"
    )
    gold = write_gold(card, items, (), workspace=workspace, replace=replace, readme=readme)
    return Imported.of(gold, n_rows=table.n_rows, skipped={"without any content": table.n_empty}, notes=notes)


def _questions(table: Table, path: Path) -> list[Item]:
    """An item a question, its answer empty where the table has none."""
    texts: dict[str, str] = {}
    if (beside := path.with_name(_DOCUMENTS)).is_file():
        documents = read_table(beside)
        documents.require("id", "contents")
        texts = {row.cells["id"]: row.cells["contents"] for row in documents.rows}
    items: list[Item] = []
    problems: list[str] = []
    groups: dict[str, str] = {}  # one question may stand there twice, beside other documents
    for row in table.rows:
        where, cells, context, expect = table.at(row), row.cells, row.raw["context"], row.raw["expect"]
        item_id, question = cells["id"].strip(), cells["question"]
        for name, text in (("id", item_id), ("question", question)):
            if not text.strip():
                problems.append(f"{where}: {name} is empty: fill it in")
        ids = [name for name in context if isinstance(name, str) and name]
        if len(ids) < len(context):
            problems.append(f"{where}: context must be a list of document ids")
        if unknown := sorted(expect.keys() - {*RULES}):
            problems.append(f"{where}: expect has no rule {', '.join(unknown)}: known: {', '.join(RULES)}")
        item = Item(
            item_id=item_id,
            group=groups.setdefault(question.strip(), item_id),
            question=question,
            answer=cells.get("answer", ""),
            system=cells.get("system", "").strip() or None,
            contexts=tuple(Context(texts.get(name, ""), name) for name in ids),
            tags=tuple(rule for rule in RULES if rule in expect),
            expect=expect,
        )
        items.append(item)
    for item_id, n in Counter(item.item_id for item in items).items():
        if n > 1:
            problems.append(f"{table.where}: the id {item_id!r} is there twice: ids must differ")
    refuse(problems)
    return items


def _answered(items: Sequence[Item], file: str | Path) -> tuple[list[Item], list[str]]:
    """The items with a file's answers, an item a system and question, and notes on what found no partner."""
    answers = read_table(file)
    if not answers.rows:
        raise InputError(f"{answers.where}: holds no answer")
    column = "id" if "id" in answers.columns else "item_id"
    answers.require(column, "answer")
    by_id = {item.item_id: item for item in items}
    joined: dict[tuple[str, str], Item] = {}
    problems: list[str] = []
    for row in answers.rows:
        item_id, system = row.cells[column].strip(), row.cells.get("system", "").strip()
        item, by = by_id.get(item_id), f" by {system}" * bool(system)
        if item is None:
            problems.append(f"{answers.at(row)}: no question has the id {item_id!r}")
        elif (item_id, system) in joined:
            problems.append(f"{answers.at(row)}: a second answer to {item_id!r}{by}")
        else:
            named = f"{item_id}-{system}" if system else item_id
            answer = row.cells["answer"]
            item = replace(item, item_id=named, answer=answer, system=system or item.system)
            joined[item_id, system] = item
    refuse(problems)
    notes = []
    for system in dict.fromkeys(system for _, system in joined):
        if missing := [item_id for item_id in by_id if (item_id, system) not in joined]:
            by = f" by {system}" * bool(system)
            notes.append(
                f"{len(missing):,} questions have no answer{by} in {answers.name}: {listed(missing)}"
            )
    return list(joined.values()), notes
