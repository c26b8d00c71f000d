"""Import a table of answers, with what people and judges said of them, as a gold set: all of it, or nothing
and every problem in one message.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.goldset.card import CARD_KEPT, UNKNOWN_LICENCE, Card, Splits, read_card
from judgecal.goldset.gold_set import CARD, GoldSet, SplitCounts, split_counts
from judgecal.goldset.labels import (
    LabelMap,
    guess_scale,
    is_no_label,
    pair_scale,
    percent,
    scale_with_verdicts,
    typed,
)
from judgecal.goldset.load import load_gold
from judgecal.goldset.reading import TableItems
from judgecal.goldset.write import in_memory, name_problems, write_gold
from judgecal.records import Result
from judgecal.scale import Scale
from judgecal.tables import Table, read_table
from judgecal.tables.columns import GOLD, Columns, left_out
from judgecal.tables.parquet import frame_table
from judgecal.workspace import Workspace, find_workspace

_NAMED = 20  # columns that are not taken over are named, the rest is counted
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Imported(Result):
    """What an import comes to.

    `n_rows` were read; `skipped` says why some gave neither an item nor a rating. `n_labelled` items have a
    gold label. `raters` and `judges`: how many ratings (`gold`'s among them) and judgements each gave.
    `notes`: what the set's owner should know of how it was read. `columns`: what each column of the table is
    taken as; nothing is taken from those `left_out`. `tool`: whose export it was, None for a table; of an
    export `n_rows` are its items and scores, and what is not skipped is an item, a rating or a judgement.
    `unscored`: how many of a judge's judgements have an error in the verdict's place. `path`: the set's
    folder.
    """

    set_: str
    sha256: str
    n_rows: int
    n_items: int
    n_groups: int
    n_ratings: int
    n_labelled: int
    raters: Mapping[str, int]
    judges: Mapping[str, int]
    skipped: Mapping[str, int]
    splits: Mapping[str, SplitCounts]
    notes: tuple[str, ...]
    path: Path = field(metadata={"json": False})
    scale: str = field(metadata={"json": False})
    columns: Mapping[str, str] = field(default_factory=dict, metadata={"json": False})
    left_out: tuple[str, ...] = ()
    tool: str | None = None
    unscored: Mapping[str, int] = field(default_factory=dict)
    # of a table: the set as it was written, and its rows with what judges said in their columns
    written: GoldSet | None = field(default=None, metadata={"json": False}, repr=False, compare=False)
    read: TableItems | None = field(default=None, metadata={"json": False}, repr=False, compare=False)

    @property
    def gold(self) -> GoldSet:
        """The set; of an export read from its files each time that it is asked for."""
        return self.written or load_gold(self.path)

    @property
    def judgements(self) -> Sequence[Mapping[str, Any]]:
        """What judges said in a table's columns, row by row: {item_id, judge, verdict}."""
        return () if self.read is None else self.read.judgements

    @property
    def people(self) -> tuple[str, ...]:
        """The human raters by name; `gold` is none of them."""
        return tuple(rater for rater in self.raters if rater != GOLD)

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
        """Return Imported from a GoldSet, number of rows read, reason -> number of rows skipped, notes."""
        return cls(
            set_=gold.name,
            sha256=gold.sha256,
            n_rows=n_rows,
            n_items=len(gold.items),
            n_groups=gold.n_groups(gold.items),
            n_ratings=len(gold.ratings),
            n_labelled=len(gold.labels),
            raters=dict(sorted(Counter(rating.rater for rating in gold.ratings).items())),
            judges=dict(judges or {}),
            skipped={why: count for why, count in skipped.items() if count},
            splits=split_counts(gold),
            notes=tuple(notes),
            left_out=tuple(left_out),
            tool=tool,
            unscored=dict(unscored or {}),
            path=gold.path,
            scale=str(gold.scale),
        )


def import_gold(
    file: str | Path | Table,
    *,
    name: str,
    columns: Columns,
    scale: str | None,
    workspace: Workspace | None,
    pass_at: float | None = None,
    mapping: Mapping[str, str] | None = None,
    encoding: str | None = None,
    replace: bool = False,
    force: bool = False,
    labels_by: str | None = None,
    quiet: bool = False,
    splits: Splits | None = None,
    command: str | None = None,
) -> Imported:
    """Import a file or Table, by name, Columns, a scale or None and a Workspace or None: Imported. It is
    written to `gold/<name>`, and stays in memory without a workspace.

    Without a label column the set waits for labels. `encoding` is of separated text; by default its file
    tells it. The scale `fraction` is 0..1 and stored as a percentage; its `pass_at` is read so too. `mapping`
    rewrites label cells before the scale reads them; an empty text makes a missing rating. Without a scale
    the labels tell it. `replace` keeps a replaced set's splits, licence and what its card says of its raters:
    no question moves to another split because a set grew. `force` takes labels that use a small part of the
    scale, `labels_by` is people or project; `quiet` names no column that is left on stderr; `command` is what
    the card says of how it was made, by default the command line. Without a workspace nothing is written.
    InputError lists the first problems; then nothing has been written.
    """
    maps, scale_notes, problems = LabelMap(mapping or {}), list[str](), list[str]()
    if workspace is not None:
        workspace.require_writable("gold import")
        problems = name_problems(name, workspace=workspace, replace=replace)
    read = attempt(lambda: _read(file, columns, name, encoding), problems)
    if read is not None and not problems and (scale is None or (read.columns.pairs and scale == "nominal")):
        stated = attempt(lambda: _scale_of_labels(read, maps), problems)
        scale, maps, scale_notes = stated or (None, maps, [])
    labels = None if scale is None else attempt(partial(labels_scale, scale, pass_at), problems)
    if read is None or labels is None:
        raise InputError([*problems, *(read.problems if read else ())])
    read.rate(labels, maps, force=force)
    refuse(problems + read.problems)
    table = read.table
    typed_options = [part for cell, to in maps.items() for part in ("--map", f"{cell}={to}")]
    typed_options += ["--scale", str(scale), *([] if pass_at is None else ["--pass-at", f"{pass_at:g}"])]
    typed_options += [] if encoding is None else ["--encoding", encoding]
    typed_options += [*["--force"] * force, *(["--labels-by", labels_by] if labels_by else [])]
    words = command or shlex.join(["judgecal", "gold", "import", table.name, "--as", name])
    made_by = f"{words} {columns.options()} {shlex.join(typed_options)}"
    card = read.card(labels, made_by, splits or Splits())
    card, kept_notes = keep_card(
        card, workspace.gold / name / CARD if workspace else None, labels_by=labels_by
    )
    ratings = tuple(read.ratings.values())
    if workspace is None:
        gold = in_memory(card, read.items, ratings)
    else:
        about: Any = {"replace": replace, "readme": readme_of(name), "judgements": read.judgements}
        gold = write_gold(card, read.items, ratings, workspace=workspace, check=False, **about)
    unused = left_out(table.columns, *read.columns.names)
    if unused and not quiet:
        takes = "--col contexts=, --col tag= and --col NAME= take columns"
        notice(f"judgecal: not taken over: {listed(unused, _NAMED)} ({takes})")
    missing = unlabelled(name, len(gold.items), len(gold.labels), len(gold.ratings))
    imported = Imported.of(
        gold,
        n_rows=table.n_rows,
        skipped={"without any content": table.n_empty},
        notes=(*table.notes, *scale_notes, *read.notes, *kept_notes, *missing),
        judges={column: len(read.item_ids) for column in read.verdicts if read.item_ids},
        left_out=unused,
    )
    raters = {**dict.fromkeys(read.without_label, 0), **imported.raters}
    of_table: Any = {"written": gold, "read": read, "columns": read.columns.taken()}
    return dataclasses.replace(imported, raters=raters, **of_table)


def _read(file: str | Path | Table, columns: Columns, name: str, encoding: str | None) -> TableItems:
    """The items of a table, with its columns resolved; InputError lists what makes no sense."""
    problems: list[str] = []
    table = file if isinstance(file, Table) else attempt(lambda: read_table(file, encoding), problems)
    if table is None:
        raise InputError([*([] if columns.usual else columns.problems()), *problems])
    columns = columns.resolved(table.columns, None if isinstance(file, Table) else Path(file))
    if odd := columns.problems():
        raise InputError([*odd, f"the columns of {table.where} are {listed(table.columns, 12)}"])
    table.require(*columns.names)
    return TableItems(table, columns, name)


def attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    """Return the value of a function `step`, None where it refuses; its problems go on a list `problems`."""
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None


def _scale_of_labels(read: TableItems, mapping: LabelMap) -> tuple[str, LabelMap, list[str]]:
    """The scale that the labels of a table show, the mapping with what cells stand for on it, and a note that
    says why; InputError: they show none.
    """
    columns, held, verdicts = read.columns, read.label_texts, read.verdict_texts
    cells = [cell for cell in (mapping.get(cell, cell).strip() for cell in sorted(held)) if cell]
    cells = [cell for cell in cells if not is_no_label(cell, Scale.parse("nominal"))]
    if columns.pairs:
        scale, words, why = pair_scale(cells, set().union(*verdicts.values()) - held)
    else:
        scale, words, why = guess_scale([typed(cell) for cell in cells])
    for texts in verdicts.values() if scale and scale.startswith("ordinal") else ():
        scale = scale_with_verdicts(str(scale), texts)
    if scale is None:
        option = "--map, or the --scale of grades" if columns.pairs else "--scale"
        what = f"the labels show no scale ({why}): give {option}"
        if not cells:
            what = "no column of labels has any: name it, --label, or give the --scale that they will have"
        raise InputError(f"{read.table.top}: {what}")
    stated = {cell: mapping.get(cell, cell) for cell in sorted(held.union(*verdicts.values()))}
    by_cell = {cell: word for cell, to in stated.items() if (word := words.get(to.casefold(), cell)) != cell}
    note = f"the labels show the scale {scale}: {why} (--scale says another)"
    return scale, LabelMap({**mapping, **by_cell}), [note]


def gold_of_frame(frame: object, *, name: str, save: bool, **options: Any) -> GoldSet:
    """Return a GoldSet from a frame, a name and a flag `save`, as `import_gold` makes it of rows."""
    if options["columns"].verdicts:
        raise InputError(
            "Columns(verdicts=): this set keeps none: give them to judgecal.agreement beside labels"
        )
    made = import_gold(
        frame_table(frame).filled(),
        name=name,
        workspace=find_workspace() if save else None,
        quiet=True,
        command="judgecal.GoldSet.from_frame",
        **options,
    )
    unused = [f"not taken over: {listed(made.left_out, _NAMED)}"] * bool(made.left_out)
    notice(*(f"judgecal: {note}" for note in (*made.notes, *unused)))
    return made.gold


GoldSet.read_frame = staticmethod(gold_of_frame)


def read_mapping(entries: Iterable[str]) -> LabelMap:
    """Return the LabelMap of a list of `FROM=TO` texts, cut at the last `=`; refuse a wrong entry."""
    mapping: dict[str, str] = {}
    problems: list[str] = []
    for entry in entries:
        cell, sign, to = entry.rpartition("=")
        cell = cell.strip()
        mapped = LabelMap(mapping).get(cell, to)
        if not sign:
            problems.append(f"--map {entry}: write FROM=TO, such as --map correct=yes")
        elif mapped != to:
            problems.append(f"--map {entry}: {cell!r} is mapped to {mapped!r} already: keep one")
        elif cell not in LabelMap(mapping):
            mapping[cell] = to
    refuse(problems)
    return LabelMap(mapping)


def labels_scale(text: str, pass_at: float | None) -> Scale:
    """Return the Scale from a text and a number to pass at (or None); on `fraction` it is a fraction too."""
    if text != "fraction" or pass_at is None:
        return Scale.parse(text, pass_at=pass_at)
    if not 0.0 <= pass_at <= 1.0:
        raise InputError(
            f"--pass-at {pass_at:g} lies outside 0..1: on the scale fraction it is a fraction too"
        )
    return Scale.parse(text, pass_at=percent(pass_at * 100.0))


def keep_card(card: Card, old_path: Path | None, *, labels_by: str | None = None) -> tuple[Card, list[str]]:
    """Return a Card, from a new Card and an old card's path (or None), with what people wrote; and notes."""
    card = replace(card, labels_by=labels_by or card.labels_by)
    if old_path is None or not old_path.exists():
        return card, []
    try:
        old = read_card(old_path)
    except InputError as error:
        return card, [f"we could not read the replaced card, so we keep nothing of it ({error.problems[0]})"]
    carried = {key: getattr(old, key) for key in CARD_KEPT if getattr(old, key)}
    carried |= {"labels_by": labels_by} if labels_by else {}
    if old.licence == UNKNOWN_LICENCE:  # nobody wrote that: what the source says now goes before it
        del carried["licence"]
    raters = {name: old.raters.get(name, rater) for name, rater in card.raters.items()}
    anchors = old.anchors if str(old.scale) == str(card.scale) else {}
    note = f"kept from the replaced card: raters, {', '.join(carried)}"
    carried["explained"] = {**old.explained, **card.explained}
    return replace(card, raters=raters, anchors=anchors, **carried), [note]


def unlabelled(name: str, n_items: int, n_labelled: int, n_ratings: int) -> list[str]:
    """Return a list of notes on unlabelled items, from a set's name, n_items, n_labelled, n_ratings."""
    if not n_ratings:
        return [
            f"no labels yet: `judgecal gold sheet {name} -o labels.csv` writes a sheet for people to fill in"
        ]
    missing = n_items - n_labelled
    why = f"{missing} of {n_items} items have no gold label (no rating, or a tie): see `gold check`"
    return [why] * bool(missing)


def readme_of(name: str, *, came: str = "Imported") -> str:
    """Return the README text for a set's name, of a set nobody has described yet; `came` says whence."""
    return (
        f"# The gold set `{name}`\n\n{came}; `made_by` in card.toml says how.\n\n"
        "Say here what the set is good for and what not, who the raters are and what they were told, and "
        "fill in `licence` and `sampling` in card.toml.\n"
    )
