"""Import questions with rules for their answers as a gold set that waits for labels."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from judgecal.errors import InputError, listed, notice
from judgecal.exchange.rag_ifeval import has_rules, join_answers, read_answers, read_questions
from judgecal.goldset.card import UNKNOWN_LICENCE, Card
from judgecal.goldset.imports import Imported
from judgecal.goldset.write import write_gold
from judgecal.scale import Scale
from judgecal.tables import read_table
from judgecal.workspace import Workspace


def holds_rules(file: str) -> bool:
    """Whether a file is a table of questions with rules."""
    path = Path(file)
    return (
        path.suffix.lower() in (".json", ".jsonl", ".ndjson")
        and path.is_file()
        and has_rules(read_table(path))
    )


def import_rules(
    files: Sequence[str],
    *,
    name: str,
    workspace: Workspace,
    answers: str | None = None,
    replace: bool = False,
) -> Imported:
    """Write the questions of a file to `gold/<name>`, with the answers of another one where it is given.

    People's labels are to be percentages, as the rules' verdicts are. Without answers the items have empty
    ones.
    """
    workspace.require_writable("gold import")
    if len(files) > 1:
        raise InputError(f"gold import reads one file of questions, found {len(files)}")
    table = read_table(files[0])
    if not has_rules(table):
        raise InputError(
            f"{table.where}: --answers belongs to questions with rules: each row has id, question, context "
            "(a list of document ids) and expect (an object)"
        )
    questions = read_questions(table, Path(files[0]))
    items, notes = list(questions.items), list(questions.notes)
    if answers is not None:
        items, unanswered = join_answers(questions.items, read_answers(answers))
        notes += unanswered
    elif not any(item.answer for item in items):
        notes.append(
            f"questions alone: judgecal rules {name} --answers FILE holds a system's answers to their rules"
        )
    if questions.left_out:
        notice(f"judgecal: not taken over: {listed(questions.left_out)}")
    command = ["judgecal", "gold", "import", table.name, "--as", name]
    card = Card(
        name=name,
        scale=Scale.parse("percentage"),
        version="1",
        licence=table.licence or UNKNOWN_LICENCE,
        source=table.source,
        made_by=shlex.join([*command, *(["--answers", Path(answers).name] if answers else [])]),
    )
    gold = write_gold(card, items, (), workspace=workspace, replace=replace, readme=_readme(name))
    counts = ", ".join(f"{rule} {count}" for rule, count in questions.conditions.items())
    notes.insert(0, f"{sum(questions.conditions.values())} conditions: {counts}")
    return Imported.of(gold, n_rows=table.n_rows, skipped={"without any content": table.n_empty}, notes=notes)


def _readme(name: str) -> str:
    return (
        f"# The gold set `{name}`\n\nQuestions with rules for their answers, in the shape of RAG-IFEval.\n\n"
        "Say here where the questions come from, and fill in `licence` in card.toml.\n"
    )
