"""`compare`: judges of an experiment held against each other on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgecal.errors import InputError, listed
from judgecal.experiment.agreement import Column, StoredExperiment, Table, scale_notes, verdict_matrix
from judgecal.experiment.looks import Look, look_at_test, looks_so_far
from judgecal.experiment.result import GoldSummary
from judgecal.experiment.score import run_line, summary_of_gold
from judgecal.records import Estimate, Result
from judgecal.stats import (
    PLANNED_DISCORDANCE,
    POWER,
    Comparison,
    Interaction,
    PairedDifference,
    compare_all,
    interaction,
    leading_metric,
    metric_named,
)
from judgecal.stats.significance import N_PERM
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PairCounted(Result):
    """Two judges with their unscored items left out, or counted as right."""

    a: float | None
    b: float | None
    difference: Estimate
    p_value: float | None

    @classmethod
    def of(cls, paired: PairedDifference) -> PairCounted:
        """What the statistics say, without the errors behind it."""
        return cls(paired.a, paired.b, paired.difference, paired.p_value)


@dataclass(frozen=True, slots=True)
class Pair(Result):
    """Two judges held against each other.

    Attributes:
        a, b: their names.
        metric: by which.
        difference: a - b, an unscored item counted as the verdict farthest from its label.
        p_value, p_adjusted: two-sided, of no difference; alone, and after Holm over the pairs.
        decision, why: and the sentence that says why.
        smallest_detectable: the difference that so many questions would show; None without an interval.
        p_method: how the p value was made.
        a_value, b_value: the metric of either.
        complete_case, best_case: the same with unscored items left out, and counted as right.
    """

    a: str
    b: str
    metric: str
    difference: Estimate
    p_value: float | None
    decision: Literal["A", "B", "cannot tell"]
    smallest_detectable: float | None
    why: str
    p_adjusted: float | None
    p_method: str
    a_value: float | None
    b_value: float | None
    complete_case: PairCounted
    best_case: PairCounted

    @classmethod
    def of(cls, a: str, b: str, compared: Comparison) -> Pair:
        """Two judges by name, and what the statistics say of them."""
        return cls(
            a=a,
            b=b,
            metric=compared.metric,
            difference=compared.difference,
            p_value=compared.p_value,
            decision=compared.decision,
            smallest_detectable=compared.smallest_detectable,
            why=compared.why,
            p_adjusted=compared.p_adjusted,
            p_method=compared.p_method,
            a_value=compared.a,
            b_value=compared.b,
            complete_case=PairCounted.of(compared.complete_case),
            best_case=PairCounted.of(compared.best_case),
        )


@dataclass(frozen=True, slots=True)
class GridCell(Result):
    """How far one prompt x model lies from the sum of what its prompt and its model bring."""

    signature: str
    model: str
    deviation: float | None
    p_adjusted: float | None


@dataclass(frozen=True, slots=True)
class GridTest(Result):
    """Whether prompts and models only fit in pairs; the cells, largest deviation first."""

    p_value: float | None
    decision: Literal["interaction", "cannot tell"]
    why: str
    n_groups: int
    cells: tuple[GridCell, ...]

    @classmethod
    def of(cls, tested: Interaction) -> GridTest:
        """What the statistics say of the grid."""
        cells = (GridCell(cell.row, cell.column, cell.deviation, cell.p_adjusted) for cell in tested.cells)
        return cls(tested.p_value, tested.decision, tested.why, tested.n_groups, tuple(cells))


@dataclass(frozen=True, slots=True)
class Planning(Result):
    """What `smallest_detectable` assumes: the power, and the share of items that two judges part on."""

    power: float
    discordance: float


@dataclass(frozen=True, slots=True)
class CompareResult(Result):
    """What `compare` comes to.

    Attributes:
        experiment: its slug.
        metric: by which the judges are held against each other.
        pairs: every two of them; in the JSON of two judges, the one pair's keys stand at the top instead.
        level: nominal coverage, after the looks at test are paid for.
        planning: what the smallest detectable difference assumes.
        gold: what was compared on.
        test_looks: decisions taken on the set's test labels so far.
        test_look: what this comparison adds to them, in words; None where it sees no test item.
        reused: whether the test labels had served a decision before.
        notes: what else the reader must know, a sentence each without its full stop.
        run_line: what reproduces it.
        interaction: of prompt and model, where the judges make a whole grid.
    """

    experiment: str
    metric: str
    pairs: tuple[Pair, ...]
    level: float
    planning: Planning
    gold: GoldSummary
    test_looks: int
    test_look: str | None
    reused: bool
    notes: tuple[str, ...]
    run_line: str
    interaction: GridTest | None = None

    def as_json(self) -> dict[str, Any]:
        """The contract's object: flat for two judges, with `pairs` for more."""
        plain = Result.as_json(self)
        if self.interaction is None:
            del plain["interaction"]
        return plain if len(self.pairs) > 1 else {**plain.pop("pairs")[0], **plain}


@dataclass(frozen=True, slots=True)
class CompareRun:
    """Everything that `compare` needs.

    Attributes:
        workspace: where the looks at test are logged.
        stored: the experiment.
        names: the judges to compare; none for all that the experiment asked for.
        metric: by which; the leading one of the set where not given.
        level: nominal coverage, before the looks at test are paid for.
        seed: of the sign flips.
    """

    workspace: Workspace
    stored: StoredExperiment
    names: tuple[str, ...] = ()
    metric: str | None = None
    level: float = 0.95
    seed: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        """The judges compared.

        Raises:
            InputError: one is unknown or named twice, or there is only one.
        """
        if not self.names:
            columns = self.stored.columns[: self.stored.asked]
        else:
            columns = tuple(self.stored.column(name) for name in self.names)
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise InputError(f"{', '.join(twice)} is named twice: a comparison takes different judges")
        if len(columns) < 2:
            known = ", ".join(column.judge for column in self.stored.columns)
            raise InputError(f"a comparison takes two judges; {self.stored.experiment.slug} holds {known}")
        return columns

    def run(self) -> CompareResult:
        """Compare every two of the judges.

        Raises:
            InputError: as `columns`; or the metric does not fit the set or the judges.
        """
        columns, gold = self.columns, self.stored.gold
        metric = self.metric or leading_metric(gold.scale)
        metric_named(metric, gold.scale)
        self._compared(columns, metric, self.level, n_perm=1)  # what is wrong is told before a look is logged
        look = self._look(columns, metric)
        level = 1.0 - (1.0 - self.level) / max(1, look.number) if look else self.level
        compared = self._compared(columns, metric, level)
        table = Table(gold, self.stored.items, self._repeats(columns), self.seed, level)
        return CompareResult(
            experiment=self.stored.experiment.slug,
            metric=metric,
            pairs=tuple(Pair.of(a, b, one) for (a, b), one in compared.items()),
            level=level,
            planning=Planning(POWER, PLANNED_DISCORDANCE),
            gold=summary_of_gold(table, self.stored.split),
            test_looks=look.number if look else looks_so_far(self.workspace.experiments, gold.name),
            test_look=_look_in_words(look, gold.name, level),
            reused=bool(look and look.reused),
            notes=tuple(self._notes(columns)),
            run_line=self._run_line(table, columns, metric),
            interaction=self._interaction(columns, metric, level),
        )

    def _compared(
        self, columns: Sequence[Column], metric: str, level: float, *, n_perm: int = N_PERM
    ) -> dict[tuple[str, str], Comparison]:
        gold, items = self.stored.gold, self.stored.items
        return compare_all(
            [gold.labels[item.item_id] for item in items],
            {column.judge: self._verdicts(column) for column in columns},
            scale=gold.scale,
            scales={column.judge: column.scale for column in columns},
            metric=metric,
            groups=[item.group for item in items],
            level=level,
            seed=self.seed,
            n_perm=n_perm,
        )

    def _verdicts(self, column: Column) -> list[list[Any]]:
        return verdict_matrix(column.rows, self.stored.items, self._repeats([column]))

    def _repeats(self, columns: Sequence[Column]) -> int:
        """As many as were asked for; of recorded judgements, as many as a judge gave."""
        asked = self.stored.experiment.config.get("repeats", 1)
        return max([int(asked), *(1 + row.repeat for column in columns for row in column.rows)])

    def _look(self, columns: Sequence[Column], metric: str) -> Look | None:
        """Write a decision on test labels down; the same judges by the same metric are the same one."""
        n_test = sum(self.stored.gold.split_of(item.group) == "test" for item in self.stored.items)
        if not n_test:
            return None
        judges = " and ".join(sorted(column.judge for column in columns))
        return look_at_test(
            self.workspace.experiments,
            gold=self.stored.gold.name,
            gold_sha256=self.stored.gold.sha256,
            experiment=f"{self.stored.experiment.slug}: compare {judges} by {metric}",
            kind="decision",
            n_items=n_test,
        )

    def _interaction(self, columns: Sequence[Column], metric: str, level: float) -> GridTest | None:
        """The prompt x model interaction, where the judges named make a grid of at least 2 x 2."""
        grid = {column.cell: self._verdicts(column) for column in columns if column.cell is not None}
        signatures, models = {row for row, _ in grid}, {model for _, model in grid}
        if len(signatures) < 2 or len(models) < 2 or len(grid) < len(signatures) * len(models):
            return None
        gold, items = self.stored.gold, self.stored.items
        tested = interaction(
            [gold.labels[item.item_id] for item in items],
            grid,
            scale=gold.scale,
            scales={column.cell: column.scale for column in columns if column.cell is not None},
            metric=metric,
            groups=[item.group for item in items],
            level=level,
            seed=self.seed,
        )
        return GridTest.of(tested)

    def _notes(self, columns: Sequence[Column]) -> list[str]:
        notes = []
        for column in columns:
            judged = {row.item_id for row in column.rows}
            absent = [item.item_id for item in self.stored.items if item.item_id not in judged]
            if absent:
                notes.append(
                    f"{column.judge} has no judgement of {len(absent)} items ({listed(absent)}): they count as unscored"
                )
        return [*notes, *self.stored.notes, *scale_notes(self.stored.gold.scale, columns)]

    def _run_line(self, table: Table, columns: Sequence[Column], metric: str) -> str:
        judges = [f"{column.judge}[{column.rows[0].judge_fingerprint[:8]}]" for column in columns if column.rows]
        extra = {"experiment": self.stored.experiment.slug, "metric": metric}
        return run_line(table, self.stored.split, judges, extra)


def _look_in_words(look: Look | None, gold: str, level: float) -> str | None:
    if look is None:
        return None
    reused = f", reused: shown at level {level:.4g}" if look.reused else ""
    return f"test labels of {gold}: decision {look.number}{reused}"
