"""Rows of a table that people are asked about: of a judged one a draw, each row with its chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from judgecal.errors import InputError, listed, refuse
from judgecal.experiment.drawn import LEAST_DRAWN, Drawing
from judgecal.goldset import Card, GoldSet, load_gold
from judgecal.goldset.card import UNKNOWN_LICENCE
from judgecal.goldset.draw import Stratum, allocate, draw
from judgecal.goldset.write import name_problems
from judgecal.production.judged_table import JudgedColumns, JudgedTable, read_judged
from judgecal.records import Item, digest
from judgecal.scale import Scale
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.pass_rates import PassRule
from judgecal.stats.error_rates import carried_rate
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.labels_needed import Spread
from judgecal.stats.sample import Bools, Ints
from judgecal.tables import Columns, open_source
from judgecal.workspace import Workspace

_BY_SYSTEM = "verdict,system"
_ANY_SPREAD = 0.5  # of labels of which nothing is known


def items_at(path: Path, columns: Columns, places: Iterable[int]) -> dict[int, Item]:
    """The items of some rows of a table, by their places, counted from 0; of equal ones the first.

    An item without an id of its own is known by its text; no two of the rows may have one id.
    """
    source, wanted = open_source(path), set(places)
    source.require(*columns.item_names)
    items: dict[int, Item] = {}
    sha_of: dict[str, str] = {}
    twice: list[str] = []
    for number, row in enumerate(row for piece in source.pieces() for row in piece.rows):
        if number not in wanted:
            continue
        item = columns.read_row(row)
        item = replace(item, item_id=item.item_id or digest([item.question, item.answer])[:16])
        text = replace(item, contexts=(), conversation=(), fields={}).sha  # what a rater is asked about
        if sha_of.setdefault(item.item_id, text) != text:
            twice.append(item.item_id)
        elif len(sha_of) > len(items):
            items[number] = item
    if twice:
        raise InputError(
            f"{source.where}: rows with other texts have one id ({listed(twice)}): leave --item out"
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
) -> Drawing:
    """The rows of a table that people are asked about, as the set `name`; nothing is written.

    Of a judged one, with its lock, a draw by strata of the verdict (and the system), or of all rows alike;
    `labels` is the set with what was drawn of it before, which the new rows join.
    """
    problems = []
    if strata not in (None, "verdict", _BY_SYSTEM):
        problems.append(f"--strata of a table is verdict or {_BY_SYSTEM}, found {strata!r}")
    if strata is not None and lock_path is None:
        problems.append(
            "--strata verdict is of a judged table: name the lock that it was judged with (--lock)"
        )
    if n is None and lock_path is not None:
        problems.append("a sheet of a judged table is drawn: say how many rows by -n")
    if lock_path is None and labels is not None:
        problems.append("--labels is of a judged table: name the lock that it was judged with (--lock)")
    if lock_path is None and scale is None:
        problems.append("say the scale of the labels by --scale, or name the lock of a judged table (--lock)")
    if lock_path is not None and scale is not None:
        problems.append("--scale with --lock: the labels are on the lock's scale; leave it out")
    refuse(problems)
    named = JudgedColumns.of(path, columns)
    if columns.item is None:  # what the table calls item_id may be its question's
        named = replace(named, columns=replace(named.columns, item=None))
    if strata == _BY_SYSTEM and named.columns.system is None:
        refuse([f"--strata {_BY_SYSTEM}: name the column by --system"])
    if lock_path is None:
        workspace.require_writable("gold sheet FILE")
        refuse(name_problems(name, workspace=workspace, replace=False))
        return _answers_to_label(path, named.columns, Scale.parse(str(scale)), n=n, name=name, seed=seed)
    lock = load_lock(lock_path)
    judge = lock.runnable(workspace, trust_lock=trust_lock).scale
    by = named.columns.system if strata == _BY_SYSTEM else None
    table = read_judged(path, JudgedColumns(named.columns, by), judge)
    before = None if labels is None else load_gold(labels, workspace=workspace)
    workspace.require_writable("gold sheet -n")
    problems = [] if before else name_problems(name, workspace=workspace, replace=False)
    if (n or 0) < LEAST_DRAWN:
        problems.append(f"-n must be at least {LEAST_DRAWN}, found {n or 0}")
    refuse(problems)
    rule = PassRule.of_lock(lock, judge)
    drawn = _draw(table, rule, lock, before, n=n or 0, by_verdict=strata is not None, seed=seed)
    items = tuple(
        replace(item, inclusion_probability=drawn.chance_of[place])
        for place, item in items_at(path, named.columns, drawn.new).items()
    )
    if before is None:
        try:
            anchors = load_gold(lock.gold.set, workspace=workspace).card.anchors
        except InputError:  # the lock's set need not be here: then the sheet has no anchors
            anchors = Card(lock.gold.set, rule.people).anchors
        source = f"drawn from {path.name}, judged by {lock.judge} ({drawn.counts}), seed {seed}"
        card = _card(name, rule.people, source, sampling="random" if strata is None else "stratified")
        waits = f"the rows and their inclusion_probability are gold set {name}, which waits for the labels"
        return Drawing(replace(card, anchors=anchors), items, (f"drawn: {drawn.counts}", waits))
    rows = zip(*(places.tolist() for places in table.places(before.items)), strict=True)
    now = {number: drawn.chance_of[row] for row, number in rows if row in drawn.chance_of}
    earlier = tuple(
        replace(item, inclusion_probability=now.get(number, item.inclusion_probability))
        for number, item in enumerate(before.items)
    )
    joined = f"they join gold set {before.name}, whose {len(earlier)} items have new inclusion_probabilities"
    return Drawing(before.card, items, (f"drawn: {drawn.counts}", joined), before=before, earlier=earlier)


def _card(name: str, scale: Scale, source: str, *, sampling: str) -> Card:
    """That of a set which waits for people's labels."""
    return Card(
        name=name,
        scale=scale,
        version="1",
        licence=UNKNOWN_LICENCE,
        source=source,
        made_by="people",
        sampling=sampling,
        labels_by="people",
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Rows by their places: the chance of each that was ever drawn, those drawn now, and counts in words."""

    chance_of: dict[int, float]
    new: Sequence[int]
    counts: str


def _draw(
    table: JudgedTable,
    rule: PassRule,
    lock: Lock,
    before: GoldSet | None,
    *,
    n: int,
    by_verdict: bool,
    seed: int,
) -> _Drawn:
    """Draw n rows, each text once, and none that was drawn before."""
    first = np.sort(np.unique(table.text, return_index=True)[1])
    at, place = table.places(before.items if before else ())
    done = np.intersect1d(first, at)
    if not len(np.setdiff1d(first, done)):
        raise InputError(f"{table.where}: every row of it was drawn already")
    strata = _strata(table, rule, lock, first) if by_verdict else [("all rows", first, _ANY_SPREAD)]
    strata = [stratum for stratum in strata if len(stratum[1])]
    if before is not None:
        chance = np.array([item.inclusion_probability or -1.0 for item in before.items])
        for name, rows, _ in strata:
            chances = chance[place[np.isin(at, rows)]]
            if len(chances) and float(np.ptp(chances)) > 1e-9:
                raise InputError(
                    f"gold set {before.name}: its rows of the stratum {name!r} were not all as likely to be "
                    "drawn, so they cannot be drawn on by these strata: draw as before (--strata verdict), "
                    "or leave --labels out for a set of its own"
                )
    drawn_before = [np.isin(rows, done) for _, rows, _ in strata]
    sizes = allocate(
        [len(rows) for _, rows, _ in strata],
        [spread for *_, spread in strata],
        n,
        before=[int(drawn.sum()) for drawn in drawn_before],
    )
    chance_of: dict[int, float] = {}
    new: list[int] = []
    counts = []
    rng = np.random.default_rng(seed)
    for (name, rows, _), drawn, size in zip(strata, drawn_before, sizes, strict=True):
        chosen = rng.choice(rows[~drawn], size - int(drawn.sum()), replace=False).tolist()
        new += chosen
        chance_of |= dict.fromkeys((*chosen, *rows[drawn].tolist()), size / len(rows))
        counts.append(f"{name}: {len(chosen)} of {len(rows)}")
    return _Drawn(chance_of, new, ", ".join(counts))


def _strata(table: JudgedTable, rule: PassRule, lock: Lock, first: Ints) -> list[tuple[str, Ints, float]]:
    """Name, rows and spread of the labels of each stratum.

    Strata are pass and fail, or thirds of the scale where there is no mark, and no verdict; of each system,
    where the table was read by it.
    """
    known: Bools = ~table.unscored
    if rule.mark is not None:
        passed = rule.passed(table.verdict) == 1.0
        verdicts = [("pass", known & passed), ("fail", known & ~passed)]
    else:
        third = np.minimum(2, np.floor(3.0 * (table.verdict - rule.judge.low) / rule.judge.span + 1e-9))
        verdicts = [(name, known & (third == at)) for at, name in enumerate(("low", "middle", "high"))]
    systems: list[tuple[str, Bools]] = [("", np.ones(table.n, dtype=np.bool_))]
    if table.value_of is not None:
        codes = table.value_of
        systems = [(f" of {name or 'none'}", codes == code) for code, name in enumerate(table.values)]
    # the standard deviation of right and wrong by verdict, from the lock's error rates and what passes here
    spreads: dict[str, float] = {}
    rates = [rate for rate in rule.class_rates(lock.applied) if rate is not None and rate.value is not None]
    if len(rates) == 2:
        passing = verdicts[0][1][known].astype(np.float64)
        right = carried_rate(mean_estimate(passing, range(len(passing))), *rates).estimate.value
        if right is not None:
            spread = Spread(min(0.98, max(0.02, right)), rates[0].value or 0.0, rates[1].value or 0.0)
            by_stratum = zip(("pass", "fail"), spread.by_stratum, strict=False)
            spreads = {name: deviation for name, (_, deviation) in by_stratum}
    return [
        (f"{name}{system}", first[(of_verdict & of_system)[first]], spreads.get(name, _ANY_SPREAD))
        for name, of_verdict in [*verdicts, ("no verdict", ~known)]
        for system, of_system in systems
    ]


def _answers_to_label(
    path: Path, columns: Columns, scale: Scale, *, n: int | None, name: str, seed: int
) -> Drawing:
    """The rows of a table that nobody has judged, all of them or n drawn at random.

    A row whose question is empty is left out and counted: there is nothing to label.
    """
    read = items_at(path, columns, range(open_source(path).n_rows)).values()
    items = tuple(item for item in read if item.question.strip())
    size, empty = len(items) if n is None else min(n, len(items)), len(read) - len(items)
    drawn = draw([Stratum("all rows", items, _ANY_SPREAD)], size, seed=seed)
    counts = ", ".join(f"{size} of {there}" for size, there in drawn.counts.values())
    card = _card(name, scale, f"{counts} rows of {path.name}, seed {seed}", sampling="random")
    left_out = (f"left out: {empty} rows whose question is empty",) if empty else ()
    waits = f"the rows are gold set {name}, which waits for the labels"
    return Drawing(card, drawn.items, (f"drawn: {counts}", *left_out, waits))
