"""What each judge loses against the best, the floor and the people beside it, and prompts against models."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
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
    """What one judge loses against the best, as shares."""

    judge: str
    value: float | None  # the metric itself
    loss: float | None
    low: float | None  # of the paired interval
    high: float | None  # the bound that holds for all judges at once and decides
    reason: str | None  # why either is missing


@dataclass(frozen=True, slots=True)
class FloorLoss:
    """What the best constant, or another free judge, loses against a judge by a metric, paired."""

    judge: str
    loss: Estimate
    strata: tuple[Stratum, ...] = ()  # of the labels that the difference rests on
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
    """What is lost against the best judge: by the judges, the floor below them, the people beside them."""

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
    """The losses of judges, each with its repeats, on the items of a table; as `losses_against_best`."""
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
    table = dataclasses.replace(table, level=1.0 - (1.0 - table.level) / of)
    column = floor or constant_column(dataclasses.replace(table, repeats=1))
    paired = _paired(
        table, table.items, table.labels, judge, (column, 1), metric, seed, map_other=not column.constant
    )
    loss = _decided(paired, metric)
    if metric_facts(metric).direction == "less" and loss.value is not None:
        low, high = (None if end is None else -end for end in (loss.high, loss.low))
        loss = dataclasses.replace(loss, value=-loss.value, low=low, high=high)
    return FloorLoss(column.judge, loss, paired.strata, metric)


def judge_losses(
    table: Table, columns: Sequence[tuple[Column, int]], losses: Losses, *, metric: str, seed: int
) -> tuple[JudgeLoss, ...]:
    """What each judge, with its repeats, loses against the best; the paired interval beside the bound."""
    best = next(pair for pair in columns if pair[0].judge == losses.best)
    judges = []
    for pair in columns:
        name, low = pair[0].judge, 0.0 if pair is best else None
        if pair is not best:
            low = _decided(_paired(table, table.items, table.labels, best, pair, metric, seed), metric).low
        loss = losses.by_judge[name]
        judges.append(JudgeLoss(name, loss.value, loss.loss, low, loss.upper, loss.reason))
    return tuple(judges)


def people_losses(
    table: Table, best: tuple[Column, int], *, metric: str, seed: int
) -> tuple[PersonLoss, ...]:
    """What each rater loses against the best judge, both against the other raters.

    Of those who share enough items with them.
    """
    ratings, judged = peer_ratings(table), first_verdicts(table, best[0]).keys()
    known = {item.item_id: item for item in (*table.items, *table.tied)}
    people = []
    for rater, own_labels in ratings.items():
        pairs = beside(ratings, rater)
        shared = {item_id for item_id, _ in pairs}
        if len(shared) < MIN_SHARED or not shared <= judged:
            continue
        rows = [
            Judgement(str(item_id), known[str(item_id)].sha, rater, "rater", 0, label)
            for item_id, label in own_labels.items()
        ]
        person = Column(rater, table.gold.scale, rows), 1
        items, labels = [known[str(item_id)] for item_id, _ in pairs], [label for _, label in pairs]
        loss = _decided(_paired(table, items, labels, (best[0], 1), person, metric, seed), metric)
        people.append(PersonLoss(rater, loss, len(shared)))
    return tuple(people)


def _paired(
    table: Table,
    items: Sequence[Item],
    labels: Sequence[Label],
    best: tuple[Column, int],
    other: tuple[Column, int],
    metric: str,
    seed: int,
    *,
    map_other: bool = True,
) -> PairedDifference:
    """What another loses against the best judge, once calibrated where the metric asks for it."""
    both, people, groups = max(best[1], other[1]), table.gold.scale, [item.group for item in items]
    sides: Mapping[str, Iterable[object]] = {
        name: _as_often(verdict_matrix(column.rows, items, repeats), both)
        for name, (column, repeats) in (("best", best), ("other", other))
    }
    scales: Mapping[str, Scale | str] = {"best": best[0].scale, "other": other[0].scale}
    weights = drawing_weights(table.gold, items)
    once = calibrated(
        labels,
        sides if map_other else {"best": sides["best"]},
        scale=people,
        scales=scales,
        groups=groups,
        asked=metric_facts(metric).calibrated,
        weights=weights,
    )
    sides, scales = {**sides, **once.verdicts}, {**scales, **once.scales}
    return compare_paired(
        labels,
        sides["best"],
        sides["other"],
        scale=people,
        a_scale=scales["best"],
        b_scale=scales["other"],
        metric=metric,
        groups=groups,
        level=table.level,
        seed=seed,
        n_perm=1,  # the interval needs no p value
        more_error=once.error_of_fit("best", "other"),
        weights=weights,
    )


def _decided(paired: PairedDifference, metric: str) -> Estimate:
    """The difference, without an interval where it rests on too few items."""
    thin = too_thin(paired.strata, metric)
    if thin is None:
        return paired.difference
    return dataclasses.replace(paired.difference, low=None, high=None, method="", reason=thin)


def _as_often(verdicts: list[list[Label | None]], repeats: int) -> list[list[Label | None]]:
    """The verdicts in turn until they are as many as another judge's; a mean over repeats stays itself."""
    return [[row[place % len(row)] for place in range(repeats)] for row in verdicts]


def prompt_model_grid(
    table: Table, columns: Sequence[tuple[Column, int]], metric: str, *, test: bool = True
) -> PromptModelGrid:
    """The judges, each with its repeats, as prompt x model.

    The interaction is tested where the grid is whole and at least 2 x 2; `test`: whether they have values to
    test.
    """
    cells = (PromptModel(column.judge, *(column.cell or ("", column.judge))) for column, _ in columns)
    grid = PromptModelGrid(tuple(cells))
    small = len(grid.prompts) < 2 or len(grid.models) < 2 or not grid.whole
    if small or not test or table.weights is not None:
        return grid
    placed = {(cell.prompt, cell.model): pair for cell, pair in zip(grid.cells, columns, strict=True)}
    people, groups = table.gold.scale, table.groups
    verdicts = {key: verdict_matrix(column.rows, table.items, n) for key, (column, n) in placed.items()}
    scales = {key: column.scale for key, (column, _) in placed.items()}
    once = calibrated(table.labels, verdicts, scale=people, scales=scales, groups=groups)
    tested = interaction(
        table.labels,
        once.verdicts,
        scale=people,
        scales=once.scales,
        metric=metric,
        groups=groups,
        level=table.level,
        seed=table.seed,
    )
    return dataclasses.replace(grid, tested=tested)
