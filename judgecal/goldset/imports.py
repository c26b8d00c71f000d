"""Import a table of labelled answers as a gold set: all of it, or nothing and every problem in one message."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from judgecal.errors import InputError
from judgecal.goldset.card import CARD_KEPT, Card, read_card
from judgecal.goldset.columns import Columns
from judgecal.goldset.gold_set import GoldSet
from judgecal.goldset.load import CARD
from judgecal.goldset.reading import UNKNOWN_LICENCE, Reading, percent
from judgecal.goldset.spread import spread
from judgecal.goldset.write import name_problems, write_gold
from judgecal.scale import Scale
from judgecal.tables import Table, read_table
from judgecal.workspace import Workspace

__all__ = ["LISTED", "Imported", "import_gold", "read_mapping"]

LISTED = 50
"""How many problems of one file are printed; the rest is counted."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Imported:
    """The set as written, and what its owner should know of how it was read."""

    gold: GoldSet
    notes: tuple[str, ...]


def import_gold(
    file: str | Path,
    *,
    name: str,
    columns: Columns,
    scale: str,
    workspace: Workspace,
    pass_at: float | None = None,
    mapping: Mapping[str, str] | None = None,
    replace: bool = False,
) -> Imported:
    """Read a table and write it to `gold/<name>`.

    Args:
        file: CSV, TSV, JSONL, JSON, Parquet, or the address of a data set: `hf:org/name[:split]`.
        name: the name of the new set.
        columns: which column is what; a `*` in the answer's and the labels' stands for each system's name.
        scale: the labels' scale; `fraction` is 0..1 and stored as a percentage.
        workspace: where the set goes.
        pass_at: the people's pass mark; for `fraction` it is read as the labels are, 0..1.
        mapping: label cells to rewrite before the scale reads them; an empty text makes a missing rating.
        replace: replace a set of this name. Its splits, its licence and what its card says of its raters are
            kept: no question moves to another split because a set grew.

    Raises:
        InputError: lists every problem (the first `LISTED`, and how many more). Then nothing has been written.
    """
    workspace.require_writable("gold import")
    mapping = mapping or {}
    problems = name_problems(name, workspace=workspace, replace=replace)
    labels = _attempt(lambda: _scale(scale, pass_at), problems)
    found = _attempt(lambda: _table(file, columns), problems)
    if found is None or labels is None:
        raise InputError(_first(problems))
    reading = Reading(*found, name=name, scale=labels, mapping=mapping)
    reading.read()
    problems += reading.problems
    if problems:
        raise InputError(_first(problems))
    command = _command(reading.table, name, columns=columns, scale=scale, pass_at=pass_at, mapping=mapping)
    card, notes = _keep_old(reading.card(command), workspace.gold / name / CARD)
    gold = write_gold(
        card,
        reading.items.values(),
        reading.ratings.values(),
        workspace=workspace,
        replace=replace,
        readme=_readme(card),
    )
    return Imported(gold, (*reading.table.notes, *reading.notes(), *notes, *_unlabelled(gold)))


def read_mapping(entries: Iterable[str]) -> dict[str, str]:
    """The `--map FROM=TO` options, cut at the last `=`.

    Raises:
        InputError: an option has no `=`, or one text is mapped to two others.
    """
    found: dict[str, str] = {}
    problems: list[str] = []
    for entry in entries:
        cell, sign, to = entry.rpartition("=")
        cell = cell.strip()
        if not sign:
            problems.append(f"--map {entry}: write FROM=TO, such as --map correct=yes")
        elif found.setdefault(cell, to) != to:
            problems.append(f"--map {entry}: {cell!r} is mapped to {found[cell]!r} already: keep one")
    if problems:
        raise InputError(problems)
    return found


def _attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None


def _table(file: str | Path, columns: Columns) -> tuple[Table, Columns]:
    """The table with the columns that the options name, a row an answer; where the options make sense."""
    problems = columns.problems()
    table = _attempt(lambda: read_table(file), problems)
    found = None if table is None else _attempt(lambda: _spread(table, columns), problems)
    if problems or found is None:
        raise InputError(problems)
    return found


def _spread(table: Table, columns: Columns) -> tuple[Table, Columns]:
    spread_table, spread_columns = spread(table, columns)
    spread_table.require(*spread_columns.names)
    return spread_table, spread_columns


def _first(problems: list[str]) -> list[str]:
    if len(problems) <= LISTED:
        return problems
    return [*problems[:LISTED], f"... and {len(problems) - LISTED} more problems"]


def _scale(text: str, pass_at: float | None) -> Scale:
    if text != "fraction" or pass_at is None:
        return Scale.parse(text, pass_at=pass_at)
    if not 0.0 <= pass_at <= 1.0:
        raise InputError(
            f"--pass-at {pass_at:g} lies outside 0..1: on the scale fraction it is a fraction too"
        )
    return Scale.parse(text, pass_at=percent(pass_at * 100.0))


def _command(
    table: Table,
    name: str,
    *,
    columns: Columns,
    scale: str,
    pass_at: float | None,
    mapping: Mapping[str, str],
) -> str:
    maps = [part for cell, to in mapping.items() for part in ("--map", f"{cell}={to}")]
    mark = [] if pass_at is None else ["--pass-at", f"{pass_at:g}"]
    start = shlex.join(["judgecal", "gold", "import", table.name, "--as", name])
    return f"{start} {columns.options()} {shlex.join([*maps, '--scale', scale, *mark])}"


def _keep_old(card: Card, old_path: Path) -> tuple[Card, list[str]]:
    """The new card with what people wrote into the one that it replaces."""
    if not old_path.exists():
        return card, []
    try:
        old = read_card(old_path)
    except InputError as error:
        return card, [f"the replaced card could not be read, so nothing of it is kept ({error.problems[0]})"]
    raters = {name: old.raters.get(name, rater) for name, rater in card.raters.items()}
    kept = {key: getattr(old, key) for key in CARD_KEPT if getattr(old, key)}
    if old.licence == UNKNOWN_LICENCE:  # nobody wrote that: what the source says now goes before it
        del kept["licence"]
    anchors = old.anchors if str(old.scale) == str(card.scale) else {}
    note = f"kept from the replaced card: raters, {', '.join(kept)}"
    return replace(card, raters=raters, anchors=anchors, **kept), [note]


def _unlabelled(gold: GoldSet) -> list[str]:
    missing = len(gold.items) - len(gold.labels)
    if not missing:
        return []
    return [
        f"{missing} of {len(gold.items)} items have no gold label (no rating, or a tie): see `gold check`"
    ]


def _readme(card: Card) -> str:
    return (
        f"# The gold set `{card.name}`\n\nImported; `made_by` in card.toml says how.\n\n"
        "Say here what the set is good for and what not, who the raters are and what they were told, and fill in "
        "`licence` and `sampling` in card.toml.\n"
    )
