"""What a table judged by a locked judge comes to: its rows counted one by one, and the result of them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from judgecal._version import __version__
from judgecal.experiment import StoredVerdicts, full_name, item_scale
from judgecal.judges import Judge
from judgecal.production.row_items import Judged
from judgecal.records import Estimate, Item, Judgement, Result
from judgecal.scale import Scale
from judgecal.selection.lock import Lock
from judgecal.selection.pass_rates import Overview, PassRule, SystemRates, chance
from judgecal.tables import Columns

INPUT = "input"
"""The kind of the error of a row that lacks what the judge asks for; it is never called for."""


@dataclass(frozen=True, slots=True)
class LockedOn:
    """The gold set and split that a lock was confirmed on."""

    set: str
    sha256: str
    split: str


@dataclass(frozen=True, slots=True)
class JudgedRate:
    """The share that passes by the verdicts as the judge gave them and through its map, or of nominal
    verdicts that of each word: the judge's errors are in all of them.
    """

    raw: Estimate
    calibrated: Estimate
    words: Mapping[str, Estimate]  # the most frequent first; empty where verdicts are numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResult(Result):
    """What a judged table comes to."""

    experiment: str
    lock: str
    judge: str
    gold: LockedOn
    input: str  # the tables, and the names that the added columns have in the output
    output: str
    columns: Mapping[str, str]
    named: Mapping[
        str, str
    ]  # question, answer, item and group: the columns of the table that hold them, where named
    n: int  # rows, and those without a verdict
    n_unscored: int
    systems: tuple[SystemRates, ...]  # by system (all rows alone, where none is named), and of all rows
    overall: SystemRates
    pass_at: float | None
    mapped: bool  # whether the lock has a map from verdicts to the people's scale
    rates: Mapping[str, JudgedRate]
    # of the judge when it was locked, through its map where it has one; None where the lock does not know
    sensitivity: Estimate | None
    specificity: Estimate | None
    note: str
    warning: (
        str | None
    )  # why the rate says nothing: the judge tells right from wrong no better than a coin; else None
    # usd, usd_per_1k: what the rows' calls cost, and what a thousand rows cost where a stored reply counts as
    # if it had been called for; None where some cost is not known
    usd: float | None
    usd_per_1k: float | None
    model_ids: tuple[str, ...]  # the ids that the provider answered as
    notes: tuple[str, ...]
    run_line: str


class Counted:
    """What the verdicts of a locked judge come to, counted row by row; parts of a table may be added up."""

    def __init__(self, lock: Lock, judge: Judge) -> None:
        self._rule = PassRule.of_lock(lock, item_scale(judge))
        self.overview = Overview(self._rule)
        self.model_ids: set[str] = set()
        self.costs = Costs(None if judge.model is None else judge.model.cost_usd)

    def lacking(self, item: Item, lacking: str) -> Judged:
        """Count a row that was not judged, and what is added to it."""
        self.overview.add(item.system, item.group, None, error=INPUT)
        return Judged(None, error=f"{INPUT}: {lacking}")

    def judged(self, item: Item, found: Judgement) -> Judged:
        """Count a row that was judged, and what is added to it."""
        kind = found.error.kind if found.error else "parse"
        self.overview.add(item.system, item.group, found.verdict, error=kind)
        self.costs.add(found)
        if found.model_id:
            self.model_ids.add(found.model_id)
        return Judged(
            found.verdict,
            found.reasoning,
            None if found.verdict is not None else f"{kind}: {found.error.message if found.error else ''}",
            self._rule.passes(found.verdict),
            found.model_id,
            found.cost_usd,
            found.latency_s,
            self._rule.calibrated(found.verdict),
        )

    def extend(self, other: Counted) -> None:
        """Add the rows of another part of the table, behind those that are here."""
        self.overview.extend(other.overview)
        self.costs.extend(other.costs)
        self.model_ids |= other.model_ids


class Costs:
    """What calls cost; of no use where the cost of one is not known."""

    def __init__(self, price: Callable[[int | None, int | None], float | None] | None) -> None:
        self._price, self._n = price, 0
        self.usd: float | None = 0.0
        self.usd_anew: float | None = 0.0  # what they would cost without stored replies
        self.stored = StoredVerdicts()
        self._yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
        self._n_old, self._oldest = 0, ""

    def add(self, row: Judgement) -> None:
        """Count a judgement."""
        self.stored.add(row)
        if row.verdict is not None and row.replied_at is None and row.at < self._yesterday:
            self._hold(1, row.at)
        anew = row.cost_usd
        if row.cached and self._price is not None:
            anew = self._price(row.prompt_tokens, row.completion_tokens)
        self._n += 1
        self.usd = None if self.usd is None or row.cost_usd is None else self.usd + row.cost_usd
        self.usd_anew = None if self.usd_anew is None or anew is None else self.usd_anew + anew

    def extend(self, other: Costs) -> None:
        """Count all that another one counted."""
        self._n += other._n
        self.stored.extend(other.stored)
        if other._n_old:
            self._hold(other._n_old, other._oldest)
        self.usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        self.usd_anew = (
            None if self.usd_anew is None or other.usd_anew is None else self.usd_anew + other.usd_anew
        )

    def _hold(self, n: int, at: str) -> None:
        self._n_old, self._oldest = self._n_old + n, min(at, self._oldest or at)

    def notes(self) -> list[str]:
        """How many verdicts are of stored replies or earlier runs of the command, and how old the oldest
        is."""
        if not self._n_old:
            return self.stored.notes()
        rows = f"{self._n_old:,} verdict{'s are' if self._n_old > 1 else ' is'}"
        earlier = f"{rows} of an earlier run of this command, the oldest of {self._oldest[:10]}"
        return [*self.stored.notes(), f"{earlier}: after a judgecal gate it asks for them anew"]

    @property
    def usd_per_1k(self) -> float | None:
        """What a thousand rows cost; a stored reply counts as if it had been called for."""
        return None if self.usd_anew is None or not self._n else 1000.0 * self.usd_anew / self._n


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTables:
    """What was judged, and where the rows went.

    Attributes:
        input, output: as the result names them; `name` is the input without its folders.
        columns: which column is what.
        added: the names of the added columns in the output, in the order of `Judged`.
        n_rows: of the input, all of them.
        notes: how the input was read and the output is written.
    """

    input: str
    name: str
    output: str
    columns: Columns
    added: tuple[str, ...]
    n_rows: int
    notes: tuple[str, ...]

    def named(self) -> Iterator[tuple[str, str]]:
        """What a column that is named holds, and its name."""
        columns = self.columns
        named = (("question", columns.question), ("answer", columns.answer))
        yield from (
            (name, column)
            for name, column in (*named, ("item", columns.item), ("group", columns.group))
            if column
        )


def judge_result(
    counted: Counted, tables: JudgedTables, *, slug: str, lock: Lock, lock_path: Path, judge: Judge
) -> JudgeResult:
    """What the counted rows of some tables come to; `slug` is the experiment's."""
    overall, gold = counted.overview.overall(), lock.gold
    sensitivity, specificity = PassRule.of_lock(lock, item_scale(judge)).class_rates(lock.applied)
    words = overall.intervals.words
    return JudgeResult(
        experiment=slug,
        lock=str(lock_path),
        judge=lock.judge,
        gold=LockedOn(gold.set, gold.sha256, gold.split),
        input=tables.input,
        output=tables.output,
        columns=dict(zip(Judged._fields, tables.added, strict=True)),
        named=dict(tables.named()),
        n=overall.n_expected,
        n_unscored=overall.n_unscored,
        systems=tuple(counted.overview.entries() or [overall]),
        overall=overall,
        pass_at=gold.pass_at,
        mapped=lock.calibration is not None,
        rates={
            lock.judge: JudgedRate(overall.intervals.share_passing_raw, _calibrated(overall, lock), words)
        },
        sensitivity=sensitivity,
        specificity=specificity,
        note=_note_on_words(lock) if words else _note(overall, sensitivity, specificity, lock=lock),
        warning=chance(Scale.parse(gold.scale, pass_at=gold.pass_at), lock.applied),
        usd=counted.costs.usd,
        usd_per_1k=counted.costs.usd_per_1k,
        model_ids=tuple(sorted(counted.model_ids)),
        notes=(*tables.notes, *_notes(counted, tables, overall.n_expected, lock)),
        run_line=(
            f"lock:{lock.sha256[:12]}|gold:{gold.set}@{gold.sha256[:12]}|split:{gold.split}|"
            f"judge:{full_name(judge)}|input:{tables.name}|n:{overall.n_expected}|level:0.95|by:group|"
            f"version:{__version__}"
        ),
    )


def _notes(counted: Counted, tables: JudgedTables, n: int, lock: Lock) -> Iterator[str]:
    yield from counted.costs.notes()
    locked = lock.model_id
    others = sorted(counted.model_ids - {locked})
    if locked is not None and others:
        answered = f"the provider answered as {', '.join(others)}"
        yield f"{answered}, and the judge was locked on {locked}: run judgecal gate"
    if n < tables.n_rows:
        yield f"only the first {n:,} of {tables.n_rows:,} rows are in the output (--limit)"


def _calibrated(overall: SystemRates, lock: Lock) -> Estimate:
    """The share that passes on the people's scale."""
    share = overall.intervals.share_passing
    if lock.calibration is not None or lock.gold.scale == "binary" or share.value is None:
        return share
    return dataclasses.replace(
        share, value=None, low=None, high=None, method="", reason="the lock holds no calibration map"
    )


def _note(
    overall: SystemRates, sensitivity: Estimate | None, specificity: Estimate | None, *, lock: Lock
) -> str:
    """One line on what the rate is not."""
    share = overall.intervals.share_passing
    if share.value is None:
        return f"no share passing: {share.reason}"
    gold = f"{lock.gold.set}@{lock.gold.sha256[:12]} {lock.gold.split}"
    rate = f"{'raw' if lock.calibration is None else 'calibrated'} rate {_shown(share)}, not corrected for"
    if all(rate is None or rate.value is None for rate in (sensitivity, specificity)):
        return f"{rate} the judge's error, which the lock does not know on {gold}"
    return (
        f"{rate} the judge's error, whose sensitivity and specificity on {gold} are "
        f"{_shown(sensitivity)} and {_shown(specificity)}"
    )


def _note_on_words(lock: Lock) -> str:
    """One line on what the shares of words are not."""
    gold = f"{lock.gold.set}@{lock.gold.sha256[:12]} {lock.gold.split}"
    accuracy = lock.agreement.get("accuracy")
    if accuracy is None or accuracy.value is None:
        return f"the shares are not corrected for the judge's error, which the lock does not know on {gold}"
    return f"the shares are not corrected for the judge's error: its accuracy on {gold} is {_shown(accuracy)}"


def _shown(found: Estimate | None) -> str:
    if found is None or found.value is None:
        return "not known"
    if found.low is None or found.high is None:
        return f"{100.0 * found.value:.1f}%"
    return f"{100.0 * found.value:.1f} [{100.0 * found.low:.1f}, {100.0 * found.high:.1f}]%"
