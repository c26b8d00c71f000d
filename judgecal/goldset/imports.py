"""Import a table of answers, with what people and judges said of them, as a gold set: all of it, or nothing and every
problem in one message.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.goldset.card import CARD_KEPT, Card, read_card
from judgecal.goldset.columns import Columns, left_out
from judgecal.goldset.gold_set import CARD, GoldSet, SplitCounts, split_counts
from judgecal.goldset.reading import UNKNOWN_LICENCE, Reading, percent
from judgecal.goldset.reshape import split_chunks, unpivot, with_labels
from judgecal.goldset.write import name_problems, write_gold
from judgecal.records import Result
from judgecal.scale import Scale
from judgecal.tables import Row, Table, read_table
from judgecal.workspace import Workspace

_JUDGE, _VERDICT = "judge", "verdict"
_KEPT = ("repeat", "reasoning", "cost_usd", "latency_s")  # of a recorded judgement, where the file has them
_NAMED = 20  # columns that are not taken over are named, the rest is counted
LISTED = 50
"""How many problems of one file are printed; the rest is counted."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Imported(Result):
    """What an import comes to.

    `n_rows` were read; `skipped` says why some gave neither an item nor a rating. `raters` and `judges`: how many
    ratings (`gold`'s among them) and judgements each gave. `notes`: what the set's owner should know of how it was
    read. `left_out`: columns of the table, and of a file of ratings, that nothing is taken from. `tool`: whose export
    it was, None for a table; of an export `n_rows` are its items and scores, and what is not skipped is an item, a
    rating or a judgement. `unscored`: how many of a judge's judgements have an error in the verdict's place.
    """

    set_: str
    sha256: str
    n_rows: int
    n_items: int
    n_groups: int
    n_ratings: int
    raters: Mapping[str, int]
    judges: Mapping[str, int]
    skipped: Mapping[str, int]
    splits: Mapping[str, SplitCounts]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    tool: str | None
    unscored: Mapping[str, int]
    gold: GoldSet = field(metadata={"json": False})

    @classmethod
    def of(
        cls,
        gold: GoldSet,
        *,
        n_rows: int,
        skipped: Mapping[str, int],
        notes: Iterable[str],
        judges: Mapping[str, int] | None = None,
        left_out: Iterable[str] = (),
        tool: str | None = None,
        unscored: Mapping[str, int] | None = None,
    ) -> Imported:
        """The counts of a set that has been written."""
        return cls(
            set_=gold.name,
            sha256=gold.sha256,
            n_rows=n_rows,
            n_items=len(gold.items),
            n_groups=gold.n_groups(gold.items),
            n_ratings=len(gold.ratings),
            raters=dict(sorted(Counter(rating.rater for rating in gold.ratings).items())),
            judges=dict(judges or {}),
            skipped={why: count for why, count in skipped.items() if count},
            splits=split_counts(gold),
            notes=tuple(notes),
            left_out=tuple(left_out),
            tool=tool,
            unscored=dict(unscored or {}),
            gold=gold,
        )


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands in files of its own: people's `ratings`, and `judgements` that judges gave; both name their items by
    id, in a column that is called as the items' own.

    `where`: (column, value), which rows are taken: of the ratings, or of the table itself where these are in it.
    """

    ratings: str | Path | None = None
    judgements: str | Path | None = None
    where: tuple[tuple[str, str], ...] = ()

    def problems(self, columns: Columns) -> list[str]:
        """What contradicts the columns."""
        found = []
        files = (("--ratings", self.ratings), ("--judgements", self.judgements))
        if columns.item is None or columns.chunks:
            why = "name the column of the ids with --item" if columns.item is None else "--chunks makes new ids"
            found = [f"{option} names its items by their ids: {why}" for option, file in files if file is not None]
        if self.ratings is not None and not columns.label_names:
            found.append("--ratings without --label: name the columns of the labels in that file")
        return found

    def options(self) -> list[str]:
        """The options as they are typed, files by their names."""
        files = (("--ratings", self.ratings), ("--judgements", self.judgements))
        typed = [part for option, file in files if file is not None for part in (option, Path(file).name)]
        return [*typed, *(part for name, value in self.where for part in ("--where", f"{name}={value}"))]


def import_gold(
    file: str | Path,
    *,
    name: str,
    columns: Columns,
    scale: str,
    workspace: Workspace,
    pass_at: float | None = None,
    mapping: Mapping[str, str] | None = None,
    beside: Beside | None = None,
    replace: bool = False,
    force: bool = False,
) -> Imported:
    """Read a table (a file, or the address of a data set: `hf:org/name[:split]`) and write it to `gold/<name>`.

    A `*` in the answer's and the labels' columns stands for each system's name; in a label's alone for all columns that
    fit. Without a label column the set waits for labels. The scale `fraction` is 0..1 and stored as a percentage; its
    `pass_at` is read so too. `mapping` rewrites label cells before the scale reads them; an empty text makes a missing
    rating. `replace` keeps a replaced set's splits, licence and what its card says of its raters: no question moves to
    another split because a set grew. `force` takes labels that use a small part of the scale. Columns that nothing is
    taken from are named on stderr. InputError lists the first `LISTED` problems; then nothing has been written.
    """
    workspace.require_writable("gold import")
    mapping, beside = mapping or {}, beside or Beside()
    problems = name_problems(name, workspace=workspace, replace=replace)
    labels = _attempt(lambda: labels_scale(scale, pass_at), problems)
    found = _attempt(lambda: _tables(file, columns, beside), problems)
    if found is None or labels is None:
        raise InputError(problems)
    typed, (tables, columns) = columns, found
    reading = Reading(tables.items, columns, name=name, scale=labels, mapping=mapping)
    reading.read(tables.ratings)
    reading.hold_to_scale(force=force)
    judgements = _judgements(tables.judgements, columns, reading)
    refuse(problems + reading.problems, most=LISTED)
    how = [*beside.options(), *["--force"] * force]
    card, notes = _card(reading, _command(name, tables.items, typed, (scale, pass_at, mapping), how), workspace)
    into: dict[str, Any] = {"workspace": workspace, "replace": replace, "readme": _readme(card)}
    gold = write_gold(card, reading.items.values(), reading.ratings.values(), **into, judgements=judgements)
    notes = [*tables.notes, *reading.notes(), *notes, *_unlabelled(gold)]
    unused = _say_left_out(tables.left_out(columns, (*typed.names, *dict(beside.where))))
    judges = dict(sorted(Counter(str(row[_JUDGE]) for row in judgements).items()))
    rows: dict[str, Any] = {"n_rows": tables.items.n_rows, "skipped": tables.skipped, "judges": judges}
    return Imported.of(gold, **rows, notes=notes, left_out=unused)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of an import; `ratings` is that of the items where the labels are in it. `skipped`: rows by reason."""

    items: Table
    ratings: Table
    judgements: Table | None
    skipped: Mapping[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        return self.items.notes if self.ratings is self.items else (*self.items.notes, *self.ratings.notes)

    def left_out(self, columns: Columns, typed: Sequence[str]) -> list[str]:
        """The columns that nothing is taken from; `typed`: those that the options name, some with a `*`, and those that
        choose the rows.
        """
        item, apart = columns.item or "", self.ratings is not self.items
        if not apart:
            used = [name for name in self.items.columns if any(fnmatchcase(name, one) for one in typed)]
            found = left_out(self.items, *columns.names, *typed, *used)
        else:
            found = left_out(self.items, *columns.item_names)
        beside = [(self.ratings, (item, *columns.label_names, *typed))] if apart else []
        beside += [(self.judgements, (item, _JUDGE, _VERDICT, *_KEPT))] if self.judgements is not None else []
        return [*found, *(f"{name} of {table.name}" for table, used in beside for name in left_out(table, *used))]


def _tables(file: str | Path, columns: Columns, beside: Beside) -> tuple[_Tables, Columns]:
    """The tables with the columns that the options name, a row an item; where the options make sense."""
    problems = [*columns.problems(), *beside.problems(columns)]
    items, ratings, judgements = (
        None if path is None else _attempt(partial(read_table, path), problems)
        for path in (file, beside.ratings, beside.judgements)
    )
    found = None
    if items is not None and (ratings is not None or beside.ratings is None):
        tables = _Tables(items, ratings or items, judgements, {"without any content": items.n_empty})
        found = _attempt(partial(_shaped, tables, columns, beside.where), problems)
    if problems or found is None:
        raise InputError(problems)
    return found


def _shaped(tables: _Tables, columns: Columns, where: Iterable[tuple[str, str]]) -> tuple[_Tables, Columns]:
    """The rows that are asked for, a row an item, with the columns that say what is what in them."""
    items, skipped, apart = tables.items, dict(tables.skipped), tables.ratings is not tables.items
    labelled, without = _only(tables.ratings, where)
    if not apart:
        skipped |= {without: len(items.rows) - len(labelled.rows)}
        items, columns = unpivot(labelled, columns)
        labelled = items
    columns = with_labels(columns, labelled)
    item = () if columns.item is None else (columns.item,)
    problems: list[str] = []
    _attempt(partial(items.require, *(columns.item_names if apart else columns.names)), problems)
    if apart:
        _attempt(partial(labelled.require, *item, *columns.label_names), problems)
    if tables.judgements is not None:
        _attempt(partial(tables.judgements.require, *item, _VERDICT), problems)
    refuse(problems)
    items, skipped["without a context"] = split_chunks(items, columns)
    return _Tables(items, labelled if apart else items, tables.judgements, skipped), columns


def _only(table: Table, where: Iterable[tuple[str, str]]) -> tuple[Table, str]:
    """The rows whose cells have the values asked for, and how the others are called; InputError for none."""
    wanted = dict(where)
    if not wanted:
        return table, ""
    table.require(*wanted)
    rows = [row for row in table.rows if all(row.cells[name].strip() == value for name, value in wanted.items())]
    told = ", ".join(f"{name}={value}" for name, value in wanted.items())
    if not rows:
        raise InputError(f"{table.top}: no row has {told} (--where)")
    note = f"{table.where}: {len(rows):,} of {len(table.rows):,} rows have {told}"
    return replace(table, rows=rows, notes=(*table.notes, note)), f"without {told}"


def _judgements(table: Table | None, columns: Columns, reading: Reading) -> list[dict[str, object]]:
    """What judges said of the items, as `agreement` reads it; rows of other items are counted in the notes."""
    if table is None:
        return []
    known = [row for row in table.rows if row.cells[str(columns.item)].strip() in reading.items]
    if not known:
        reading.problems.append(f"{table.where}: no value of column {columns.item} is the id of an item")
    elif len(known) < len(table.rows):
        reading.remarks.append(f"{len(table.rows) - len(known):,} rows of {table.name} name no item of the set")
    single = Path(table.name).stem
    return [_judgement(row, str(columns.item), single) for row in known]


def _judgement(row: Row, item: str, single: str) -> dict[str, object]:
    cells = row.cells
    kept = {name: row.raw[name] for name in _KEPT if cells.get(name, "").strip()}
    judge = cells.get(_JUDGE, "").strip() or single
    return {"item_id": cells[item].strip(), _JUDGE: judge, _VERDICT: row.raw.get(_VERDICT), **kept}


def read_where(entries: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The `--where COL=VALUE` options, cut at the first `=`; InputError where one has none."""
    cut = [(entry, *entry.partition("=")) for entry in entries]
    refuse(
        [
            f"--where {entry}: write COL=VALUE, such as --where metric=faithfulness"
            for entry, _, sign, _ in cut
            if not sign
        ]
    )
    return tuple((column.strip(), value.strip()) for _, column, _, value in cut)


def read_mapping(entries: Iterable[str]) -> dict[str, str]:
    """The `--map FROM=TO` options, cut at the last `=`; InputError where one has none, or a text has two."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for entry in entries:
        cell, sign, to = entry.rpartition("=")
        cell = cell.strip()
        if not sign:
            problems.append(f"--map {entry}: write FROM=TO, such as --map correct=yes")
        elif found.setdefault(cell, to) != to:
            problems.append(f"--map {entry}: {cell!r} is mapped to {found[cell]!r} already: keep one")
    refuse(problems)
    return found


def _attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None


def labels_scale(text: str, pass_at: float | None) -> Scale:
    """The scale that labels are read on, with its pass mark: on `fraction` that is a fraction too."""
    if text != "fraction" or pass_at is None:
        return Scale.parse(text, pass_at=pass_at)
    if not 0.0 <= pass_at <= 1.0:
        raise InputError(f"--pass-at {pass_at:g} lies outside 0..1: on the scale fraction it is a fraction too")
    return Scale.parse(text, pass_at=percent(pass_at * 100.0))


def _say_left_out(columns: list[str]) -> list[str]:
    """The columns that nothing is taken from, which are named on stderr."""
    if columns:
        notice(f"judgecal: not taken over: {listed(columns, _NAMED)} (--context, --field and --tag take columns)")
    return columns


def _command(
    name: str, table: Table, columns: Columns, scale: tuple[str, float | None, Mapping[str, str]], more: Sequence[str]
) -> str:
    """The command that made the set; `scale` with its pass mark and what is rewritten before it reads labels."""
    form, pass_at, mapping = scale
    maps = [part for cell, to in mapping.items() for part in ("--map", f"{cell}={to}")]
    mark = [] if pass_at is None else ["--pass-at", f"{pass_at:g}"]
    start = shlex.join(["judgecal", "gold", "import", table.name, "--as", name])
    return f"{start} {columns.options()} {shlex.join([*maps, '--scale', form, *mark, *more])}"


def _card(reading: Reading, command: str, workspace: Workspace) -> tuple[Card, list[str]]:
    card = reading.card(command)
    return keep_card(card, workspace.gold / card.name / CARD)


def keep_card(card: Card, old_path: Path) -> tuple[Card, list[str]]:
    """The new card with what people wrote into the one that it replaces."""
    if not old_path.exists():
        return card, []
    try:
        old = read_card(old_path)
    except InputError as error:
        return card, [f"the replaced card could not be read, so nothing of it is kept ({error.problems[0]})"]
    raters = {name: old.raters.get(name, rater) for name, rater in card.raters.items()}
    kept = {key: getattr(old, key) for key in CARD_KEPT if getattr(old, key)}
    if "explained" in kept:
        kept["explained"] = {**old.explained, **card.explained}
    if old.licence == UNKNOWN_LICENCE:  # nobody wrote that: what the source says now goes before it
        del kept["licence"]
    anchors = old.anchors if str(old.scale) == str(card.scale) else {}
    note = f"kept from the replaced card: raters, {', '.join(kept)}"
    return replace(card, raters=raters, anchors=anchors, **kept), [note]


def _unlabelled(gold: GoldSet) -> list[str]:
    missing = len(gold.items) - len(gold.labels)
    if not missing:
        return []
    if not gold.ratings:
        return [f"no labels yet: `judgecal gold sheet {gold.name} -o labels.csv` writes a sheet for people to fill in"]
    return [f"{missing} of {len(gold.items)} items have no gold label (no rating, or a tie): see `gold check`"]


def _readme(card: Card) -> str:
    return (
        f"# The gold set `{card.name}`\n\nImported; `made_by` in card.toml says how.\n\n"
        "Say here what the set is good for and what not, who the raters are and what they were told, and fill in "
        "`licence` and `sampling` in card.toml.\n"
    )
