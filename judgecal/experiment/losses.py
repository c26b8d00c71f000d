"""What each judge loses against the best, the floor and the people beside it, and prompts against models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.experiment.agreement import Column, Table, verdict_matrix
from judgecal.experiment.score import FLOOR_JUDGE
from judgecal.experiment.stored import StoredExperiment
from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label, Scale
from judgecal.stats import best_constant, compare_paired, interaction, leading_metric
from judgecal.stats.simultaneous import Losses, losses_against_best

__all__ = [
    "LossPicture",
    "loss_picture",
    "prompt_model_grid",
    "table_losses",
]


@dataclass(frozen=True, slots=True)
class LossPicture:
    """What is lost against the best judge.

    Attributes:
        losses: of the judges asked for, with bounds that hold for all at once.
        judges: each with `judge`, `value` (Estimate), `loss`, `low` (of the paired interval), `high` (the
            simultaneous bound, which decides) and `reason`.
        floor: the best constant and `embedded`: `judge`, `loss` (paired Estimate).
        people: each rater against the other raters, less the best judge on that same footing: `rater`, `loss`,
            `n_items`, and the value of either.
    """

    losses: Losses
    judges: list[dict[str, Any]]
    floor: list[dict[str, Any]]
    people: list[dict[str, Any]]


def table_losses(table: Table, columns: Sequence[tuple[Column, int]], *, seed: int) -> Losses:
    """The losses of judges, each with its repeats, on the items of a table; by the leading metric.

    Raises:
        InputError: no judge has a value.
    """
    return losses_against_best(
        table.labels,
        {column.judge: verdict_matrix(column.rows, table.items, repeats) for column, repeats in columns},
        scale=table.gold.scale,
        scales={column.judge: column.scale for column, _ in columns},
        metric=leading_metric(table.gold.scale),
        groups=table.groups,
        level=table.level,
        seed=seed,
    )


def loss_picture(
    stored: StoredExperiment, table: Table, columns: Sequence[tuple[Column, int]]
) -> LossPicture:
    """The losses with the floor and the people beside them.

    Args:
        stored: the experiment.
        table: the items that judges may be chosen on.
        columns: the judges asked for, each with its repeats.
    """
    losses = table_losses(table, columns, seed=stored.seed)
    best = next(one for one in columns if one[0].judge == losses.best)
    pairs = _Pairs(table, best, leading_metric(table.gold.scale), stored.seed)
    return LossPicture(
        losses,
        [pairs.judge(one, losses) for one in columns],
        [pairs.floor(column) for column in _floor(stored, table)],
        [pairs.person(rater) for rater in table.gold.raters if pairs.shared(rater)],
    )


def _floor(stored: StoredExperiment, table: Table) -> list[Column]:
    """The best constant, and `embedded` where it stands below the judges and not among them."""
    scale = table.gold.scale
    label = best_constant(table.labels, scale=scale)
    name = f"constant {label:g}" if isinstance(label, float) else f"constant {label}"
    rows = [Judgement(item.item_id, item.sha, name, "constant", 0, label) for item in table.items]
    floor = [column for column in stored.columns[stored.asked :] if column.judge == FLOOR_JUDGE]
    return [Column(name, scale, rows), *floor]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The best judge against others, paired on the same items."""

    table: Table
    best: tuple[Column, int]
    metric: str
    seed: int

    def judge(self, one: tuple[Column, int], losses: Losses) -> dict[str, Any]:
        column, repeats = one
        loss = losses.by_judge[column.judge]
        low: float | None = 0.0
        if column.judge != losses.best:
            low = self._against(self.table.items, self.table.labels, (column.scale, column.rows, repeats)).low
        return {
            "judge": column.judge,
            "value": loss.value,
            "loss": loss.loss,
            "low": low,
            "high": loss.upper,
            "reason": loss.reason,
        }

    def floor(self, column: Column) -> dict[str, Any]:
        found = self._against(self.table.items, self.table.labels, (column.scale, column.rows, 1))
        return {"judge": column.judge, "loss": found}

    def shared(self, rater: str) -> tuple[Item, ...]:
        """The items that this rater and another one labelled, so that there is something to hold it against."""
        target, own = self.table.gold.label_without(rater), self.table.gold.ratings_by_rater[rater]
        return tuple(item for item in self.table.items if item.item_id in target and item.item_id in own)

    def person(self, rater: str) -> dict[str, Any]:
        """The best judge less a rater, both against the other raters' label of the same items."""
        items, gold = self.shared(rater), self.table.gold
        target, own = gold.label_without(rater), gold.ratings_by_rater[rater]
        rows = [Judgement(item.item_id, item.sha, rater, "rater", 0, own[item.item_id]) for item in items]
        labels = [target[item.item_id] for item in items]
        return {
            "rater": rater,
            "loss": self._against(items, labels, (gold.scale, rows, 1)),
            "n_items": len(items),
        }

    def _against(
        self,
        items: Sequence[Item],
        labels: Sequence[Label],
        other: tuple[Scale, Sequence[Judgement], int],
    ) -> Estimate:
        """The best judge's value less another's, with its interval: what the other loses."""
        (column, repeats), (scale, rows, others) = self.best, other
        both = max(repeats, others)
        return compare_paired(
            labels,
            _as_often(verdict_matrix(column.rows, items, repeats), both),
            _as_often(verdict_matrix(rows, items, others), both),
            scale=self.table.gold.scale,
            a_scale=column.scale,
            b_scale=scale,
            metric=self.metric,
            groups=[item.group for item in items],
            level=self.table.level,
            seed=self.seed,
            n_perm=1,  # the interval needs no p value
        ).difference


def _as_often(verdicts: list[list[Label | None]], repeats: int) -> list[list[Label | None]]:
    """The verdicts in turn until there are as many as another judge gave; a mean over the repeats stays itself."""
    return [[row[place % len(row)] for place in range(repeats)] for row in verdicts]


def prompt_model_grid(table: Table, columns: Sequence[tuple[Column, int]], metric: str) -> dict[str, Any]:
    """The judges as prompt x model, with the test of the interaction where the grid is whole and at least 2 x 2.

    Args:
        table: the items that the test is made on.
        columns: the judges, each with its repeats; a recorded one is a model without a known prompt.
        metric: of agreement.

    Returns:
        `cells` (judge, prompt, model), `prompts`, `models`, `p_value`, `decision`, `why`.
    """
    cells = [(column.judge, *(column.cell or ("", column.judge))) for column, _ in columns]
    prompts, models = (list(dict.fromkeys(cell[side] for cell in cells)) for side in (1, 2))
    found = {
        "cells": [{"judge": judge, "prompt": prompt, "model": model} for judge, prompt, model in cells],
        "prompts": prompts,
        "models": models,
        "p_value": None,
        "decision": None,
        "why": None,
    }
    grid = {cell[1:]: one for cell, one in zip(cells, columns, strict=True)}
    if len(prompts) < 2 or len(models) < 2 or len(grid) < len(prompts) * len(models):
        return found
    tested = interaction(
        table.labels,
        {key: verdict_matrix(column.rows, table.items, repeats) for key, (column, repeats) in grid.items()},
        scale=table.gold.scale,
        scales={key: column.scale for key, (column, _) in grid.items()},
        metric=metric,
        groups=table.groups,
        level=table.level,
        seed=table.seed,
    )
    return found | {"p_value": tested.p_value, "decision": tested.decision, "why": tested.why}
