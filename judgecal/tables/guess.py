"""Which columns of a table hold people's labels, and which a judge's verdicts, where nobody says it.

Names decide, and a look at the cells: what is no label by its cells (a text, a row's id) is none by its name.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence

from judgecal.errors import InputError, listed
from judgecal.scale import FALSE_WORDS, TRUE_WORDS
from judgecal.tables.columns import GOLD, Columns
from judgecal.tables.table import Table

_PEOPLE = re.compile(
    r"humans?|person|people|annotat(?:or|ors|ion|ions)|raters?|experts?|reviewers?|curators?|gold|adjudicated"
)
_JUDGE = re.compile(
    r"judges?|llms?|ai|model|autorater|gpt.*|chatgpt.*|claude.*|gemini.*|gemma.*|llama.*|mistral.*|mixtral.*"
    r"|qwen.*|deepseek.*|grok.*|phi|nova|haiku|sonnet|opus|prometheus"
)
_OFTEN_PEOPLE, _OFTEN_JUDGE = re.compile("labels?"), re.compile("verdicts?|scores?|predict(?:ed|ion)")
_BESIDE = frozenset({
    "reason", "reasons", "reasoning", "explanation", "rationale", "comment", "comments", "note", "notes",
    "feedback", "critique", "id", "ids", "name", "version", "date", "at", "answer", "answers", "response",
    "reference", "output", "question", "prompt", "context", "contexts", "confidence", "email", "url",
})  # fmt: skip
"""What a name ends in that is neither label nor verdict, whoever else stands in it."""
_AMOUNTS = frozenset({"cost", "usd", "latency", "seconds", "ms", "time", "tokens", "duration"})
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_AMOUNT = re.compile(r"[+-]?\d+(?:[.,]\d+)?\s*(?:%|/\s*\d+)?")
_SHARE = re.compile(r"0(?:[.,]\d+)?|1(?:[.,]0+)?")
_LONGEST, _MOST_WORDS = 40, 20  # characters of a label, and different ones that are no numbers


def guess_columns(columns: Columns, table: Table) -> Columns:
    """Return Columns with labels and verdicts guessed by their names, from Columns and a Table.

    InputError: no column is people's by its name, or where none is a judge's, some may be; with the options
    that say it.
    """
    columns = columns.resolved(table.columns)
    if GOLD in columns.labels:  # what people settled on, and no rater
        columns = dataclasses.replace(
            columns, gold_label=GOLD, labels=tuple(name for name in columns.labels if name != GOLD)
        )
    used = {*columns.item_names, *columns.label_names, *columns.verdicts}
    open_, people, judges = list[str](), list[str](), list[str]()
    for name in table.columns:
        if name not in used and _like_labels(_filled(table, name)):
            {None: open_, "people": people, "judge": judges}.get(_whose(name), []).append(name)
    if not columns.labels and not columns.gold_label:
        if not people:
            raise InputError(_unknown(table, [*open_, *judges], "people's labels"))
        alike = [name for name in open_ if _fits(table, name, people)]
        if alike and not columns.verdicts and not judges:
            raise InputError(_unknown(table, alike, "a judge's verdicts"))
        settled = [name for name in people if "adjudicated" in _words(name) or _words(name)[0] == GOLD][:1]
        labels = tuple(name for name in people if name not in settled)
        columns = dataclasses.replace(columns, labels=labels, gold_label=next(iter(settled), None))
    return columns if columns.verdicts else dataclasses.replace(columns, verdicts=tuple(judges))


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(name)] or [""]


def _whose(name: str) -> str | None:
    """`people`, `judge`, `neither`, or None where the name leaves it open."""
    words = _words(name)
    if words[-1] in _BESIDE or not _AMOUNTS.isdisjoint(words):
        return "neither"
    for people, judge in ((_PEOPLE, _JUDGE), (_OFTEN_PEOPLE, _OFTEN_JUDGE)):
        either = any(map(people.fullmatch, words)), any(map(judge.fullmatch, words))
        if any(either):
            return None if all(either) else "people" if either[0] else "judge"
    return None


def _filled(table: Table, name: str) -> Counter[str]:
    """How often each text stands in a column; empty cells aside."""
    counts = table.frame[name].str.strip_chars().value_counts()
    return Counter({cell: n for cell, n in counts.iter_rows() if cell})


def _like_labels(cells: Counter[str]) -> bool:
    """Whether cells may be labels or verdicts: short, and numbers or few different words; no ids."""
    n, numbers = cells.total(), all(map(_AMOUNT.fullmatch, cells))
    ids = len(cells) == n > _MOST_WORDS and all(cell.isdecimal() for cell in cells)
    few = len(cells) <= _MOST_WORDS and (len(cells) < n or n < _MOST_WORDS)
    return bool(cells) and max(map(len, cells)) <= _LONGEST and (few or (numbers and not ids))


def _fits(table: Table, name: str, labels: Sequence[str]) -> bool:
    """Whether the cells of a column may be verdicts beside such labels: their words, yes and no, 0 to 1."""
    words = {cell.casefold() for label in labels for cell in _filled(table, label)}
    cells = {cell.casefold() for cell in _filled(table, name)}
    return cells <= words | TRUE_WORDS | FALSE_WORDS or all(map(_SHARE.fullmatch, cells))


def _unknown(table: Table, candidates: Sequence[str], what: str) -> str:
    """Why nothing can be measured yet, and both ways to say what a column is."""
    names = "human, label, gold, annotator, rater: people's; judge, verdict, score, a model's name: a judge's"
    ways = "; ".join(f"--label {name!r} or --verdict {name!r}" for name in candidates[:4])
    if not ways:
        ways = f"--label COL, and --verdict COL for a judge's; the columns are {listed(table.columns, 12)}"
    return f"{table.top}: no column is {what} by its name ({names}) and its cells: say it: {ways}"
