"""The table that `judge` wrote, as arrays, its texts as numbers.

And people's labels of its rows, with the chance that each was drawn with; and rows that they are asked about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.experiment.rows import LEAST_DRAWN
from judgecal.goldset import Card, GoldSet, load_gold
from judgecal.goldset.draw import DrawStratum, LabelSample, allocate, draw, drawn_card
from judgecal.goldset.write import name_problems
from judgecal.records import Item, digest
from judgecal.scale import PREFERENCE, Label, Scale
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.pass_rates import PassRule
from judgecal.stats.prediction_powered import LabelledRows
from judgecal.stats.sample import Bools, Floats, Ints
from judgecal.tables import Columns, Table, open_table
from judgecal.tables.columns import USUAL
from judgecal.workspace import Workspace, shown

if TYPE_CHECKING:
    import polars as pl

_MOST_VALUES = 50
_PARTS = ("question", "verdict", "answer", "answer_a", "answer_b", "system_a", "system_b", "item", "group")
_ANY_SPREAD = 0.5  # of labels of which nothing is known


@dataclass(frozen=True, slots=True)
class JudgedColumns:
    """Which column of a judged table is what."""

    columns: Columns
    by: str | None = None  # what the rows are compared by

    def prefers(self, judge: Scale) -> bool:
        """Whether a row is a pair, and the judge's words say which answer is better."""
        return judge.of_pairs and self.columns.pairs

    def rule(self, lock: Lock, judge: Scale) -> PassRule:
        """From a Lock and a judge's Scale, return the PassRule by which verdicts count in a rate."""
        rule = PassRule.for_scale(lock.gold, judge, lock.calibration)
        return rule.of_preferences if self.prefers(judge) else rule

    @property
    def named(self) -> dict[str, str]:
        """Part of a judged table -> its column."""
        named = {part: getattr(self.columns, part) for part in _PARTS} | {"by": self.by}
        return {part: column for part, column in named.items() if column is not None}


def judged_columns(path: Path, columns: Columns) -> Columns:
    """Return the Columns of the judged table at a path, by usual names where `columns` leaves them open."""
    resolved = columns
    if columns.usual:
        resolved = columns.resolved(open_table(path).columns, path, only=USUAL)
    looked_for = _PARTS[:2] if resolved.pairs else _PARTS[:3]
    usual: Any = {part: part for part in looked_for if getattr(resolved, part) is None}
    return replace(resolved, **usual)


@dataclass(frozen=True)
class JudgedTable:
    """The rows of a judged table."""

    where: str
    verdict: Floats  # on the judge's scale, NaN where unscored
    text: Ints  # a number for question and answer together
    group: Ints  # codes 0 and above
    value_of: Ints  # the place in `values` of what a row is compared by
    values: tuple[str, ...]  # empty where rows are not compared
    # of pairs whom verdicts and labels are about, and the other; None of rows that hold one answer
    systems: tuple[str, str] | None = None
    swapped: Bools | None = None  # rows of pairs whose answer B is the first of these systems'

    @property
    def n(self) -> int:
        return len(self.verdict)

    @cached_property
    def unscored(self) -> Bools:
        unscored: Bools = np.isnan(self.verdict)
        return unscored

    def places(self, items: Sequence[Item]) -> tuple[Ints, Ints]:
        """Return two arrays for Items: rows that hold the text of an item, and that item's place in Items."""
        if not items:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        none = ("",) * (1 if self.systems is None else 2)
        answers = [item.answers if len(item.answers) == len(none) else none for item in items]
        text = _numbers([item.question for item in items], *map(list, zip(*answers, strict=True)))
        order = np.argsort(text, kind="stable")
        at = np.minimum(np.searchsorted(text[order], self.text), len(items) - 1)
        matched = text[order][at] == self.text
        there = np.isin(text, self.text[matched]).tolist()
        lost = [item for item, is_there in zip(items, there, strict=True) if not is_there]
        if not lost:
            return np.flatnonzero(matched).astype(np.int64), order[at[matched]].astype(np.int64)
        names = listed([item.item_id for item in lost])
        raise InputError(
            f"{self.where}: {len(lost):,} of {len(items):,} labelled items are none of its rows ({names}): "
            "the labels belong to another table, or the rows have changed since the draw"
        )


def read_judged(
    path: Path, columns: JudgedColumns, judge: Scale, *, systems: tuple[str, str] | None = None
) -> JudgedTable:
    """Read the table at a path, by JudgedColumns and a judge's Scale, as a JudgedTable.

    `systems`: of pairs the rows of these two alone, and verdicts are what they count for the first; without
    it, for their answer A.
    """

    frame, where, named = _frame(path, columns), shown(path), columns.named
    if not (judge.numeric or columns.prefers(judge)):
        raise InputError(f"{where}: the lock's judge gives words without an order, which have no rate")
    swapped = None
    if systems is not None and "system_a" in named:
        a, b = (frame[named[part]].fill_null("").str.strip_chars() for part in ("system_a", "system_b"))
        frame = frame.filter(a.is_in(systems) & b.is_in(systems) & (a != b))
        swapped = (frame[named["system_b"]].str.strip_chars() == systems[0]).to_numpy()
    values, value_of = np.empty(0, dtype=str), np.zeros(frame.height, dtype=np.int64)
    if columns.by is not None:
        by = frame[columns.by].fill_null("").str.strip_chars()
        values, value_of = np.unique(by.to_numpy().astype(str), return_inverse=True)
        if len(values) > _MOST_VALUES:
            most = f"--by compares {_MOST_VALUES} at most"
            raise InputError(f"{where}: column {columns.by!r} has {len(values):,} values: {most}")
    verdict = _verdicts(frame[named["verdict"]], judge, where)
    if swapped is not None:
        verdict = np.where(swapped, 1.0 - verdict, verdict)
    groups = _hashed(frame, named["group" if "group" in named else "question"])
    return JudgedTable(
        where=where,
        verdict=verdict,
        text=_hashed(frame, named["question"], *(named[part] for part in _PARTS[2:5] if part in named)),
        group=np.unique(groups, return_inverse=True)[1].astype(np.int64),
        value_of=value_of,
        values=tuple(values.tolist()),
        systems=(systems or ("A", "B")) if columns.prefers(judge) else None,
        swapped=swapped,
    )


def systems_of(path: Path, columns: JudgedColumns) -> tuple[str, str] | None:
    """Return the names of the two systems in the table of pairs at a path, by JudgedColumns; else None."""
    if "system_a" not in columns.named or "system_b" not in columns.named:
        return None
    a, b = (columns.named[part] for part in ("system_a", "system_b"))
    frame = _frame(path, JudgedColumns(Columns(system_a=a, system_b=b)))  # once more, without its texts
    systems = (frame[column].fill_null("").str.strip_chars() for column in (a, b))
    names = sorted({name for column in systems for name in column.unique().to_list()})
    if len(names) == 2:
        return names[0], names[1]
    raise InputError(
        f"{shown(path)}: its pairs are of {len(names)} systems ({listed(names)}): say which two by --systems "
        "X,Y"
    )


def _frame(path: Path, columns: JudgedColumns) -> pl.DataFrame:
    names, table = list(dict.fromkeys(columns.named.values())), _table(path, path.stat().st_mtime_ns)
    _require(names, table.columns, path)
    return table.frame.select(names)


@lru_cache(maxsize=1)
def _table(path: Path, _changed: int) -> Table:
    """A table, read once for its header, its verdicts and its systems."""
    return open_table(path)


def _require(names: Sequence[str], header: Sequence[str], path: Path) -> None:
    missing = [name for name in names if name not in header]
    if missing:
        hint = "name the columns: --col PART=COLUMN for question, answer, item and group, --verdict COL"
        raise InputError(
            [*(f"{shown(path)}: {unknown_name('column', name, header)}" for name in missing), hint]
        )


def _hashed(frame: pl.DataFrame, *columns: str) -> Ints:
    """A number for the texts of a row; a spreadsheet's apostrophe in front counts for nothing."""
    import polars as pl

    texts = [pl.col(name).fill_null("").str.strip_prefix("'") for name in columns]
    numbers: Ints = frame.select(pl.struct(texts).hash().reinterpret(signed=True)).to_series().to_numpy()
    return numbers


def _numbers(*columns: Sequence[str]) -> Ints:
    import polars as pl

    names = [str(place) for place in range(len(columns))]
    frame = pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))
    return _hashed(frame, *names)


def _verdicts(column: pl.Series, judge: Scale, where: str) -> Floats:
    """Verdicts as numbers; each that occurs is read once."""
    import polars as pl

    texts = column.fill_null("").str.strip_chars()
    read: dict[str, float] = {}
    problems: list[str] = []
    for text in texts.unique().to_list():
        try:
            number = text.replace(",", ".") if text.replace(",", "", 1).isdecimal() else text
            read[text] = label_number(judge.read(number)) if text else float("nan")
        except (ValueError, OverflowError) as error:
            problems.append(str(error))
    if problems:
        raise InputError(
            f"{where}: column {column.name!r}: {len(problems):,} verdicts are none of the lock's judge, "
            f"whose scale is {judge} ({listed(sorted(problems), 3)}): name the lock that the table was "
            "judged with"
        )
    verdicts: Floats = texts.replace_strict(
        list(read), list(read.values()), return_dtype=pl.Float64
    ).to_numpy()
    return verdicts


def label_number(label: Label) -> float:
    """A label as a number: of a pair what it counts for the first answer."""
    return PREFERENCE[label] if isinstance(label, str) else label


@dataclass(frozen=True)
class RowLabels:
    """The rows of a judged table that people labelled."""

    gold: GoldSet  # the set that the labels are in
    at: Ints  # the rows' places in the table
    label: Floats  # on the people's scale
    chance: Floats | None  # with which each row was drawn; None where all rows were as likely
    n_waiting: int  # items of the set that have no label yet

    def rows(self, values: Floats) -> LabelledRows:
        """The labelled rows with other values in the place of labels."""
        return LabelledRows(self.at, values, self.chance)


def read_labels(gold: GoldSet, table: JudgedTable) -> RowLabels:
    """From a GoldSet and a JudgedTable, return RowLabels: the labelled rows, with draw probabilities."""
    drawn_items = gold.items
    if table.swapped is not None and table.systems is not None:
        of_two = {table.systems, table.systems[::-1]}
        drawn_items = tuple(
            item for item in gold.items if item.pair and (item.pair.system_a, item.pair.system_b) in of_two
        )
    items = [item for item in drawn_items if item.item_id in gold.labels]
    if not items:
        raise InputError(f"gold set {gold.name}: none of its {len(drawn_items):,} items has a label yet")
    if gold.card.sampling == "curated":
        raise InputError(
            f"gold set {gold.name}: its card says that it is curated, but a rate needs labels drawn from "
            "the table's rows: leave --labels out to carry the lock's error rates over, or draw with "
            "judgecal gold sheet"
        )
    at, place = table.places(items)
    lacking = [item.item_id for item in items if item.inclusion_probability is None]
    if len(lacking) == len(items) and gold.card.sampling == "stratified":
        raise InputError(
            f"gold set {gold.name}: its card says that it was drawn by strata, and no item has an "
            "inclusion_probability: without them we cannot weight the labels"
        )
    if 0 < len(lacking) < len(items):
        raise InputError(
            f"gold set {gold.name}: {len(lacking):,} of {len(items):,} labelled items have no "
            f"inclusion_probability, and the others have ({listed(lacking)}): give it in items.jsonl, or "
            "keep them in a set of their own"
        )
    chances: Floats | None = None
    if not lacking:
        # Of a stratum that is labelled in part, that part counts as drawn: sheets and the labelling page show
        # a draw in random order, so what is labelled when people stop is a smaller draw of the same rows.
        drawn, labelled = (
            Counter(item.inclusion_probability for item in some) for some in (drawn_items, items)
        )
        labelled_of = {chance: labelled[chance] / drawn[chance] for chance in labelled}
        each = (item.inclusion_probability for item in items)
        chances = np.array([(chance or 0.0) * labelled_of[chance] for chance in each])[place]
    label = np.array([label_number(gold.labels[item.item_id]) for item in items])[place]
    if table.swapped is not None:
        label = np.where(table.swapped[at], 1.0 - label, label)
    return RowLabels(gold, at, label, chances, len(drawn_items) - len(items))


# --- draw


def items_at(path: Path, columns: Columns, places: Iterable[int]) -> dict[int, Item]:
    """Return place -> Item of the rows at places of the table at a path, by Columns.

    An item without an id of its own is known by its text; no two of the rows may have one id.
    """
    source, wanted = open_table(path), set(places)
    source.require(*columns.item_names)
    items: dict[int, Item] = {}
    sha_of: dict[str, str] = {}
    twice: list[str] = []
    for number, row in enumerate(source.each()):
        if number not in wanted:
            continue
        item = columns.read_row(row)
        item = replace(item, item_id=item.item_id or digest([item.question, *item.answers])[:16])
        text = replace(item, contexts=(), conversation=(), fields={}).sha  # what a rater is asked about
        if sha_of.setdefault(item.item_id, text) != text:
            twice.append(item.item_id)
        elif len(sha_of) > len(items):
            items[number] = item
    if twice:
        raise InputError(
            f"{source.where}: rows with other texts have one id ({listed(twice)}): leave --col item= out"
        )
    return items


def draw_rows(
    path: Path,
    columns: Columns,
    workspace: Workspace,
    *,
    lock_path: Path | None,
    trust_lock: bool,
    labels: str | None,
    scale: str | None,
    strata: str | None,
    n: int | None,
    name: str,
    seed: int,
) -> LabelSample:
    """Draw LabelSample: path, Columns, Workspace, lock, trust_lock, labels, scale, strata, n, name, seed.

    Of a judged one, with its lock, a draw by strata of the verdict, or of all rows alike;
    `labels` is the set with what was drawn of it before, which the new rows join.
    """
    problems = []
    if strata not in (None, "verdict"):
        problems.append(f"--strata of a table is verdict, found {strata!r}")
    if lock_path is not None and n is None:
        problems.append("a sheet of a judged table is drawn: say how many rows by -n")
    if lock_path is None and (strata is not None or labels is not None):
        problems.append("--strata and --labels are of a judged table: name its lock (--lock)")
    if (lock_path is None) == (scale is None):
        problems.append("say the scale of the labels by --scale, or the lock of a judged table by --lock")
    refuse(problems)
    # what the table calls item_id may be its question's
    columns = replace(judged_columns(path, columns), item=columns.item)
    if lock_path is None:
        workspace.require_writable("gold sheet FILE")
        refuse(name_problems(name, workspace=workspace, replace=False))
        return _answers_to_label(path, columns, Scale.parse(str(scale)), n=n, name=name, seed=seed)
    lock = load_lock(lock_path)
    judge = lock.runnable(workspace, trust_lock=trust_lock).scale
    named = JudgedColumns(columns)
    rule, table = named.rule(lock, judge), read_judged(path, named, judge)
    before = None if labels is None else load_gold(labels, workspace=workspace)
    workspace.require_writable("gold sheet -n")
    problems = [] if before else name_problems(name, workspace=workspace, replace=False)
    if (n or 0) < LEAST_DRAWN:
        problems.append(f"-n must be at least {LEAST_DRAWN}, found {n or 0}")
    refuse(problems)
    chance_of, new, counts = _draw(table, rule, before, n=n or 0, by_verdict=strata is not None, seed=seed)
    items = tuple(
        replace(item, inclusion_probability=chance_of[place])
        for place, item in items_at(path, columns, new).items()
    )
    if before is None:
        try:
            anchors = load_gold(lock.gold.set, workspace=workspace).card.anchors
        except InputError:  # the lock's set need not be here: then the sheet has no anchors
            anchors = Card(lock.gold.set, lock.gold.people).anchors
        source = f"drawn from {path.name}, judged by {lock.judge} ({counts}), seed {seed}"
        card = drawn_card(name, lock.gold.people, source, "stratified" if strata else "random")
        waits = f"the rows and their inclusion_probability are gold set {name}, which waits for the labels"
        return LabelSample(replace(card, anchors=anchors), items, (f"drawn: {counts}", waits))
    rows = zip(*(places.tolist() for places in table.places(before.items)), strict=True)
    now = {number: chance_of[row] for row, number in rows if row in chance_of}
    earlier = tuple(
        replace(item, inclusion_probability=now.get(number, item.inclusion_probability))
        for number, item in enumerate(before.items)
    )
    joined = (
        f"they join gold set {before.name}, whose {len(earlier):,} items have new inclusion_probabilities"
    )
    return LabelSample(before.card, items, (f"drawn: {counts}", joined), before=before, earlier=earlier)


def _draw(
    table: JudgedTable, rule: PassRule, before: GoldSet | None, *, n: int, by_verdict: bool, seed: int
) -> tuple[dict[int, float], list[int], str]:
    """Draw n rows, each text once, and none that was drawn before.

    The chance of each row that was ever drawn, by its place; those drawn now; and counts in words.
    """
    first = np.sort(np.unique(table.text, return_index=True)[1])
    at, place = table.places(before.items if before else ())
    done = np.intersect1d(first, at)
    if not len(np.setdiff1d(first, done)):
        raise InputError(f"{table.where}: every row was drawn already")
    strata = _strata(table, rule, first) if by_verdict else [("all rows", first)]
    strata = [stratum for stratum in strata if len(stratum[1])]
    if before is not None:
        chance = np.array([item.inclusion_probability or -1.0 for item in before.items])
        for name, rows in strata:
            chances = chance[place[np.isin(at, rows)]]
            if len(chances) and float(np.ptp(chances)) > 1e-9:
                raise InputError(
                    f"gold set {before.name}: its rows of the stratum {name!r} were not all equally "
                    "likely to be drawn, so these strata cannot continue the draw: draw as before "
                    "(--strata verdict), or leave --labels out for a set of its own"
                )
    drawn_before = [np.isin(rows, done) for _, rows in strata]
    sizes = allocate(
        [len(rows) for _, rows in strata],
        [_ANY_SPREAD] * len(strata),
        n,
        before=[int(drawn.sum()) for drawn in drawn_before],
    )
    chance_of: dict[int, float] = {}
    new: list[int] = []
    counts = []
    rng = np.random.default_rng(seed)
    for (name, rows), drawn, size in zip(strata, drawn_before, sizes, strict=True):
        chosen = rng.choice(rows[~drawn], size - int(drawn.sum()), replace=False).tolist()
        new += chosen
        chance_of |= dict.fromkeys((*chosen, *rows[drawn].tolist()), size / len(rows))
        counts.append(f"{name}: {len(chosen):,} of {len(rows):,}")
    return chance_of, new, ", ".join(counts)


def _strata(table: JudgedTable, rule: PassRule, first: Ints) -> list[tuple[str, Ints]]:
    """Name and rows of each stratum: pass and fail (thirds without a mark), and no verdict."""
    scored: Bools = ~table.unscored
    if rule.mark is not None:
        passed = rule.passed(table.verdict) == 1.0
        verdicts = [("pass", scored & passed), ("fail", scored & ~passed)]
    else:
        third = np.minimum(2, np.floor(3.0 * (table.verdict - rule.judge.low) / rule.judge.span + 1e-9))
        verdicts = [(name, scored & (third == at)) for at, name in enumerate(("low", "middle", "high"))]
    return [(name, first[rows[first]]) for name, rows in [*verdicts, ("no verdict", ~scored)]]


def _answers_to_label(
    path: Path, columns: Columns, scale: Scale, *, n: int | None, name: str, seed: int
) -> LabelSample:
    """The rows of a table that nobody has judged, all of them or n drawn at random.

    A row whose question is empty is left out and counted: there is nothing to label.
    """
    read = items_at(path, columns, range(open_table(path).n_rows)).values()
    items = tuple(item for item in read if item.question.strip())
    size, empty = len(items) if n is None else min(n, len(items)), len(read) - len(items)
    drawn = draw([DrawStratum("all rows", items, _ANY_SPREAD)], size, seed=seed)
    counts = ", ".join(f"{size} of {there}" for size, there in drawn.counts.values())
    card = drawn_card(name, scale, f"{counts} rows of {path.name}, seed {seed}", "random")
    left_out = (f"left out: {empty} rows whose question is empty",) if empty else ()
    waits = f"the rows are gold set {name}, which waits for the labels"
    return LabelSample(card, drawn.items, (f"drawn: {counts}", *left_out, waits))
