"""Rows of a judged table that are drawn to be labelled, each with its chance; and rows that are handed to
people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
_UNSCORED = "no verdict"
_ANY_SPREAD = 0.5  # of labels of which nothing is known


def items_at(path: Path, columns: Columns, places: Iterable[int]) -> dict[int, Item]:
    """The items of some rows of a table, by their places, counted from 0; of equal ones the first.

    An item without an id of its own is known by its text. InputError: a column is missing, or two of the rows
    have one id.
    """
    source, wanted = open_source(path), set(places)
    source.require(*columns.item_names)
    rows = (row for piece in source.pieces() for row in piece.rows)
    found: dict[int, Item] = {}
    known: dict[str, str] = {}
    twice: list[str] = []
    for number, row in enumerate(rows):
        if number not in wanted:
            continue
        item = columns.read_row(row)
        item = replace(item, item_id=item.item_id or digest([item.question, item.answer])[:16])
        first = known.setdefault(item.item_id, item.sha)
        if first != item.sha:
            twice.append(item.item_id)
        elif len(known) > len(found):
            found[number] = item
    if twice:
        raise InputError(
            f"{source.where}: rows with other texts have one id ({listed(twice)}): leave --item out"
        )
    return found


@dataclass(frozen=True)
class JudgedDraw:
    """A draw of rows of a judged table.

    Attributes:
        table: read by the system where it is to be drawn by strata of that too.
        by_verdict: whether it is by strata of the verdict, shared out by the lock's error rates; else all
            rows alike.
        before: the set with what was drawn of this table before; the new rows join it.
        name: of the set that the rows make, where there is none before.
    """

    workspace: Workspace
    path: Path
    table: JudgedTable
    columns: Columns
    lock: Lock
    judge: Scale
    n: int
    name: str
    by_verdict: bool = True
    before: GoldSet | None = None
    seed: int = 0

    def drawing(self) -> Drawing:
        """The rows, and the set with them; nothing is written.

        Raises:
            InputError: n is too small, the name is taken, nothing is left to draw, or what was drawn before
                had other strata.
        """
        self.workspace.require_writable("gold sheet -n")
        problems = [] if self.before else name_problems(self.name, workspace=self.workspace, replace=False)
        if self.n < LEAST_DRAWN:
            problems.append(f"-n must be at least {LEAST_DRAWN}, found {self.n}")
        refuse(problems)
        first, done = self._rows()
        if not len(np.setdiff1d(first, done)):
            raise InputError(f"{self.table.where}: every row of it was drawn already")
        strata = self._strata(first)
        sizes = allocate(
            [len(rows) for _, rows, _ in strata],
            [spread for _, _, spread in strata],
            self.n,
            before=[int(np.isin(rows, done).sum()) for _, rows, _ in strata],
        )
        chance_of: dict[int, float] = {}
        new: list[int] = []
        counts = []
        rng = np.random.default_rng(self.seed)
        for (name, rows, _), size in zip(strata, sizes, strict=True):
            own = np.isin(rows, done)
            chosen = rng.choice(rows[~own], size - int(own.sum()), replace=False)
            new += chosen.tolist()
            chance_of |= dict.fromkeys((*chosen.tolist(), *rows[own].tolist()), size / len(rows))
            counts.append(f"{name}: {len(chosen)} of {len(rows)}")
        return self._drawing(chance_of, new, ", ".join(counts))

    def _rows(self) -> tuple[Ints, Ints]:
        """The first row of each text, and those of what was drawn before."""
        _, first = np.unique(self.table.text, return_index=True)
        if self.before is None:
            return np.sort(first), np.empty(0, np.int64)
        at, _ = self.table.places(self.before.items)
        return np.sort(first), np.intersect1d(first, at)

    def _strata(self, first: Ints) -> list[tuple[str, Ints, float]]:
        """Name, rows and spread of the labels of each stratum; what was drawn before must be as likely within
        each."""
        if not self.by_verdict:
            strata = [("all rows", first, _ANY_SPREAD)]
        else:
            spreads = self._spreads()
            strata = [
                (f"{name}{part}", first[(own & rows)[first]], spreads.get(name, _ANY_SPREAD))
                for name, own in self._kinds()
                for part, rows in self._systems()
            ]
        strata = [one for one in strata if len(one[1])]
        if self.before is not None:
            at, place = self.table.places(self.before.items)
            chance = np.array([item.inclusion_probability or -1.0 for item in self.before.items])
            for name, rows, _ in strata:
                own = chance[place[np.isin(at, rows)]]
                if len(own) and float(np.ptp(own)) > 1e-9:
                    raise InputError(
                        f"gold set {self.before.name}: its rows of the stratum {name!r} were not all as likely to be "
                        "drawn, so they cannot be drawn on by these strata: draw as before (--strata verdict), or "
                        "leave --labels out for a set of its own"
                    )
        return strata

    def _kinds(self) -> list[tuple[str, Bools]]:
        """The strata of the verdict: pass and fail, or thirds of the scale where there is no mark; and no
        verdict."""
        verdict, rule = self.table.verdict, PassRule.of_lock(self.lock, self.judge)
        known: Bools = ~self.table.unscored
        if rule.mark is not None:
            passed = rule.passed(verdict) == 1.0
            return [("pass", known & passed), ("fail", known & ~passed), (_UNSCORED, ~known)]
        third = np.minimum(2, np.floor(3.0 * (verdict - self.judge.low) / self.judge.span + 1e-9))
        names = ("low", "middle", "high")
        return [*((name, known & (third == place)) for place, name in enumerate(names)), (_UNSCORED, ~known)]

    def _systems(self) -> list[tuple[str, Bools]]:
        """The rows of each system, where the table was read by it; else all."""
        codes = self.table.value_of
        if codes is None:
            return [("", np.ones(self.table.n, dtype=np.bool_))]
        return [(f" of {name or 'none'}", codes == code) for code, name in enumerate(self.table.values)]

    def _spreads(self) -> dict[str, float]:
        """The standard deviation of right and wrong by verdict, from the lock's error rates and what passes
        here."""
        rates = PassRule.of_lock(self.lock, self.judge).class_rates(self.lock.applied)
        sensitivity, specificity = rates
        if (
            sensitivity is None
            or specificity is None
            or sensitivity.value is None
            or specificity.value is None
        ):
            return {}
        passed = dict(self._kinds())["pass"][~self.table.unscored].astype(np.float64)
        raw = mean_estimate(passed, range(len(passed)))
        right = carried_rate(raw, sensitivity, specificity).estimate.value
        if right is None:
            return {}
        spread = Spread(min(0.98, max(0.02, right)), sensitivity.value, specificity.value)
        return {name: own for name, (_, own) in zip(("pass", "fail"), spread.by_stratum, strict=False)}

    def _drawing(self, chance_of: Mapping[int, float], new: Sequence[int], counts: str) -> Drawing:
        drawn = tuple(
            replace(item, inclusion_probability=chance_of[place])
            for place, item in items_at(self.path, self.columns, new).items()
        )
        told = f"drawn: {counts}"
        if self.before is None:
            waits = f"the rows and their inclusion_probability are gold set {self.name}, which waits for the labels"
            return Drawing(self._card(counts), drawn, (told, waits))
        at, place = self.table.places(self.before.items)
        now = {
            number: chance_of[row]
            for row, number in zip(at.tolist(), place.tolist(), strict=True)
            if row in chance_of
        }
        earlier = tuple(
            replace(item, inclusion_probability=now.get(number, item.inclusion_probability))
            for number, item in enumerate(self.before.items)
        )
        joined = f"they join gold set {self.before.name}, whose {len(earlier)} items have new inclusion_probabilities"
        return Drawing(self.before.card, drawn, (told, joined), before=self.before, earlier=earlier)

    def _card(self, counts: str) -> Card:
        gold, people = self.lock.gold, PassRule.of(self.lock.gold, self.judge).people
        try:
            card = load_gold(gold.set, workspace=self.workspace).card
        except InputError:  # the lock's set need not be here: then the sheet has no anchors
            card = Card(gold.set, people)
        return Card(
            name=self.name,
            scale=people,
            version="1",
            licence=UNKNOWN_LICENCE,
            source=f"drawn from {self.path.name}, judged by {self.lock.judge} ({counts}), seed {self.seed}",
            made_by="people",
            sampling="stratified" if self.by_verdict else "random",
            labels_by="people",
            anchors=card.anchors,
        )


def answers_to_label(
    path: Path, columns: Columns, scale: str, *, n: int | None, name: str, seed: int, workspace: Workspace
) -> Drawing:
    """The rows of a table that nobody has judged, all of them or n drawn at random, as a set that waits for
    labels.

    A row whose question is empty is left out and counted: there is nothing to label.

    Raises:
        InputError: the name is taken, the scale is none, a column is missing, or the file cannot be read.
    """
    workspace.require_writable("gold sheet FILE")
    refuse(name_problems(name, workspace=workspace, replace=False))
    read = items_at(path, columns, range(open_source(path).n_rows)).values()
    found = tuple(item for item in read if item.question.strip())
    empty = len(read) - len(found)
    drawn = draw(
        [Stratum("all rows", found, _ANY_SPREAD)], len(found) if n is None else min(n, len(found)), seed=seed
    )
    counts = ", ".join(f"{size} of {there}" for size, there in drawn.counts.values())
    card = Card(
        name=name,
        scale=Scale.parse(scale),
        version="1",
        licence=UNKNOWN_LICENCE,
        source=f"{counts} rows of {path.name}, seed {seed}",
        made_by="people",
        sampling="random",
        labels_by="people",
    )
    waits = f"the rows are gold set {name}, which waits for the labels"
    left_out = (f"left out: {empty} rows whose question is empty",) if empty else ()
    return Drawing(card, drawn.items, (f"drawn: {counts}", *left_out, waits))


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
    """The rows of a table that people are asked about, as the set `name`: of a judged one, with its lock, a draw."""
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
    if strata == _BY_SYSTEM and named.columns.system is None:
        refuse([f"--strata {_BY_SYSTEM}: name the column by --system"])
    if lock_path is None:
        return answers_to_label(
            path, named.columns, str(scale), n=n, name=name, seed=seed, workspace=workspace
        )
    lock = load_lock(lock_path)
    judge = lock.runnable(workspace, trust_lock=trust_lock).scale
    by = named.columns.system if strata == _BY_SYSTEM else None
    return JudgedDraw(
        workspace=workspace,
        path=path,
        table=read_judged(path, JudgedColumns(named.columns, by), judge),
        columns=named.columns,
        lock=lock,
        judge=judge,
        n=n or 0,
        name=name,
        by_verdict=strata is not None,
        before=None if labels is None else load_gold(labels, workspace=workspace),
        seed=seed,
    ).drawing()
