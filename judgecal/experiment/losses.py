"""What each judge loses against the best, the floor and the people beside it, and prompts against models."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from judgecal.experiment.agreement import Column, Table, verdict_matrix
from judgecal.experiment.drawn import drawing_weights
from judgecal.experiment.floor import constant_column
from judgecal.experiment.people import first_verdicts, peer_ratings
from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label, Scale
from judgecal.stats import Interaction, compare_paired, interaction
from judgecal.stats.calibration import calibrated
from judgecal.stats.metrics import metric_facts
from judgecal.stats.paired import PairedDifference
from judgecal.stats.simultaneous import Losses, losses_against_best
from judgecal.stats.stand_in import MIN_SHARED, beside
from judgecal.stats.strata import Stratum, too_thin


@dataclass(frozen=True, slots=True)
class JudgeLoss:
    """What one judge loses against the best, as shares.

    `low` is of the paired interval, `high` the bound that holds for all judges at once and decides; `reason`
    says why either is missing. `value` is the metric itself.
    """

    judge: str
    value: float | None
    loss: float | None
    low: float | None
    high: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class FloorLoss:
    """What the best constant, or another free judge, loses against a judge by a metric: paired, with its
    interval.

    `strata`: of the labels that the difference rests on.
    """

    judge: str
    loss: Estimate
    strata: tuple[Stratum, ...] = ()
    metric: str = ""

    @property
    def shown(self) -> bool:
        """Whether the judge is shown to be better."""
        return self.loss.low is not None and self.loss.low > 0.0

    @property
    def below(self) -> bool:
        """Whether the judge is shown to be worse."""
        return self.loss.high is not None and self.loss.high < 0.0


@dataclass(frozen=True, slots=True)
class PersonLoss:
    """What a rater loses against the best judge, both against each other rater, on `n_items` shared items."""

    rater: str
    loss: Estimate
    n_items: int


@dataclass(frozen=True, slots=True)
class LossPicture:
    """What is lost against the best judge: by the judges asked for, the floor below them, the people beside
    them."""

    losses: Losses
    judges: tuple[JudgeLoss, ...]
    floor: tuple[FloorLoss, ...]
    people: tuple[PersonLoss, ...]


@dataclass(frozen=True, slots=True)
class PromptModel:
    """A judge as prompt and model (with its program); without a prompt that one is empty."""

    judge: str
    prompt: str
    model: str


@dataclass(frozen=True, slots=True)
class PromptModelGrid:
    """The judges as prompt x model; `tested` is the interaction test, None where none was made."""

    cells: tuple[PromptModel, ...]
    tested: Interaction | None = None

    @property
    def prompts(self) -> list[str]:
        """In the order of the judges."""
        return list(dict.fromkeys(cell.prompt for cell in self.cells))

    @property
    def models(self) -> list[str]:
        """In the order of the judges."""
        return list(dict.fromkeys(cell.model for cell in self.cells))

    @property
    def whole(self) -> bool:
        """Whether every prompt was asked of every model."""
        return len({(cell.prompt, cell.model) for cell in self.cells}) == len(self.prompts) * len(self.models)


def table_losses(
    table: Table, columns: Sequence[tuple[Column, int]], *, metric: str, margin: float | None, seed: int
) -> Losses:
    """The losses of judges, each with its repeats, on the items of a table; as `losses_against_best`.

    Raises:
        InputError: no judge has a value.
    """
    return losses_against_best(
        table.labels,
        {column.judge: verdict_matrix(column.rows, table.items, repeats) for column, repeats in columns},
        scale=table.gold.scale,
        scales={column.judge: column.scale for column, _ in columns},
        metric=metric,
        groups=table.groups,
        margin=margin,
        level=table.level,
        seed=seed,
        weights=table.weights,
    )


def floor_loss(
    table: Table, judge: tuple[Column, int], *, metric: str, seed: int, of: int, floor: Column | None = None
) -> FloorLoss:
    """What the best constant, or another floor, loses against a judge with its repeats, paired on a table's
    items.

    The judge is one of so many, the best of which may owe its place to luck: the interval stands at level
    1 - (1 - level) / of (Bonferroni). Of errors the difference is turned round, so that a loss is above 0.
    """
    held = dataclasses.replace(table, level=1.0 - (1.0 - table.level) / of)
    return _Pairs(held, judge, metric, seed).floor(floor or _constant(table))


def judge_losses(
    table: Table, columns: Sequence[tuple[Column, int]], losses: Losses, *, metric: str, seed: int
) -> tuple[JudgeLoss, ...]:
    """What each judge, with its repeats, loses against the best of them, with the paired interval beside the
    bound."""
    best = next(one for one in columns if one[0].judge == losses.best)
    pairs = _Pairs(table, best, metric, seed)
    return tuple(pairs.judge(one, losses) for one in columns)


def people_losses(
    table: Table, best: tuple[Column, int], *, metric: str, seed: int
) -> tuple[PersonLoss, ...]:
    """What each rater loses against the best judge, both against the other raters."""
    return _Pairs(table, best, metric, seed).people()


def _constant(table: Table) -> Column:
    return constant_column(dataclasses.replace(table, repeats=1))


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The best judge against others, paired on the same items."""

    table: Table
    best: tuple[Column, int]
    metric: str
    seed: int

    def judge(self, one: tuple[Column, int], losses: Losses) -> JudgeLoss:
        column, repeats = one
        loss = losses.by_judge[column.judge]
        low: float | None = 0.0
        if column.judge != losses.best:
            low = self._against(self.table.items, self.table.labels, (column.scale, column.rows, repeats)).low
        return JudgeLoss(column.judge, loss.value, loss.loss, low, loss.upper, loss.reason)

    def floor(self, column: Column) -> FloorLoss:
        other = (column.scale, column.rows, 1)
        made = self._compared(self.table.items, self.table.labels, other, calibrate=not column.constant)
        found = _decided(made, self.metric)
        if metric_facts(self.metric).direction == "less" and found.value is not None:
            low, high = (None if end is None else -end for end in (found.high, found.low))
            found = dataclasses.replace(found, value=-found.value, low=low, high=high)
        return FloorLoss(column.judge, found, made.strata, self.metric)

    def people(self) -> tuple[PersonLoss, ...]:
        """The best judge less each rater, both against the other raters; of those who share enough items with
        them."""
        ratings = peer_ratings(self.table)
        pairs = {rater: beside(ratings, rater) for rater in ratings}
        shared = {rater: {item for item, _ in own} for rater, own in pairs.items()}
        judged = first_verdicts(self.table, self.best[0]).keys()
        return tuple(
            self._person(rater, ratings[rater], own, len(shared[rater]))
            for rater, own in pairs.items()
            if len(shared[rater]) >= MIN_SHARED and shared[rater] <= judged
        )

    def _person(
        self, rater: str, own: Mapping[Hashable, Label], pairs: Sequence[tuple[Hashable, Label]], n_items: int
    ) -> PersonLoss:
        known = {item.item_id: item for item in (*self.table.items, *self.table.tied)}
        items = [known[str(item_id)] for item_id, _ in pairs]
        rows = [
            Judgement(str(one), known[str(one)].sha, rater, "rater", 0, label) for one, label in own.items()
        ]
        best = self.best[0], 1
        labels = [label for _, label in pairs]
        return PersonLoss(
            rater, self._against(items, labels, (self.table.gold.scale, rows, 1), best=best), n_items
        )

    def _against(
        self,
        items: Sequence[Item],
        labels: Sequence[Label],
        other: tuple[Scale, Sequence[Judgement], int],
        *,
        best: tuple[Column, int] | None = None,
    ) -> Estimate:
        return _decided(self._compared(items, labels, other, best=best), self.metric)

    def _compared(
        self,
        items: Sequence[Item],
        labels: Sequence[Label],
        other: tuple[Scale, Sequence[Judgement], int],
        *,
        best: tuple[Column, int] | None = None,
        calibrate: bool = True,
    ) -> PairedDifference:
        """The best judge's value less another's, once calibrated where the metric asks for it: what the other
        loses."""
        (column, repeats), (scale, rows, others) = best or self.best, other
        both, people, groups = max(repeats, others), self.table.gold.scale, [item.group for item in items]
        sides: Mapping[str, Iterable[object]] = {
            "best": _as_often(verdict_matrix(column.rows, items, repeats), both),
            "other": _as_often(verdict_matrix(rows, items, others), both),
        }
        scales: Mapping[str, Scale | str] = {"best": column.scale, "other": scale}
        mapped = sides if calibrate else {"best": sides["best"]}
        asked, weights = metric_facts(self.metric).calibrated, drawing_weights(self.table.gold, items)
        once = calibrated(
            labels, mapped, scale=people, scales=scales, groups=groups, asked=asked, weights=weights
        )
        sides, scales = {**sides, **once.verdicts}, {**scales, **once.scales}
        return compare_paired(
            labels,
            sides["best"],
            sides["other"],
            scale=people,
            a_scale=scales["best"],
            b_scale=scales["other"],
            metric=self.metric,
            groups=groups,
            level=self.table.level,
            seed=self.seed,
            n_perm=1,  # the interval needs no p value
            more_error=once.error_of_fit("best", "other"),
            weights=weights,
        )


def _decided(found: PairedDifference, metric: str) -> Estimate:
    """The difference, without an interval where it rests on too few items."""
    thin = too_thin(found.strata, metric)
    if thin is None:
        return found.difference
    return dataclasses.replace(found.difference, low=None, high=None, method="", reason=thin)


def _as_often(verdicts: list[list[Label | None]], repeats: int) -> list[list[Label | None]]:
    """The verdicts in turn until there are as many as another judge gave; a mean over the repeats stays
    itself."""
    return [[row[place % len(row)] for place in range(repeats)] for row in verdicts]


def prompt_model_grid(
    table: Table, columns: Sequence[tuple[Column, int]], metric: str, *, test: bool = True
) -> PromptModelGrid:
    """The judges as prompt x model, with the test of the interaction where the grid is whole and at least 2 x
    2.

    The judges stand each with its repeats; `test`: whether they have values of the metric, so that it can be
    tested.
    """
    grid = PromptModelGrid(
        tuple(PromptModel(column.judge, *(column.cell or ("", column.judge))) for column, _ in columns)
    )
    if (
        not test
        or table.weights is not None
        or len(grid.prompts) < 2
        or len(grid.models) < 2
        or not grid.whole
    ):
        return grid
    placed = {(cell.prompt, cell.model): one for cell, one in zip(grid.cells, columns, strict=True)}
    once = calibrated(
        table.labels,
        {key: verdict_matrix(column.rows, table.items, repeats) for key, (column, repeats) in placed.items()},
        scale=table.gold.scale,
        scales={key: column.scale for key, (column, _) in placed.items()},
        groups=table.groups,
    )
    tested = interaction(
        table.labels,
        once.verdicts,
        scale=table.gold.scale,
        scales=once.scales,
        metric=metric,
        groups=table.groups,
        level=table.level,
        seed=table.seed,
    )
    return dataclasses.replace(grid, tested=tested)
