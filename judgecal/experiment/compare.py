"""`compare`: judges of an experiment held against each other on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment.agreement import Column, Table, scale_notes, verdict_matrix
from judgecal.experiment.looks import Look, look_at_test, looks_so_far
from judgecal.experiment.score import gold_summary, run_line
from judgecal.experiment.stored import StoredExperiment
from judgecal.judges import JudgeName
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

__all__ = ["CompareRun"]

_SHOWN = 5  # item ids named in one note


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

    def run(self) -> dict[str, Any]:
        """The contract's object for two judges, for more one with `pairs`; `Estimate`s as they are.

        Raises:
            InputError: as `columns`; or the metric does not fit the set or the judges.
        """
        columns = self.columns
        metric = self.metric or leading_metric(self.stored.gold.scale)
        metric_named(metric, self.stored.gold.scale)
        self._compared(columns, metric, self.level, n_perm=1)  # what is wrong is told before a look is logged
        look = self._look(columns, metric)
        level = 1.0 - (1.0 - self.level) / max(1, look.number) if look else self.level
        found = self._compared(columns, metric, level)
        pairs = [_pair(a, b, one) for (a, b), one in found.items()]
        grid = self._interaction(columns, metric, level)
        table = Table(self.stored.gold, self.stored.items, self._repeats(columns), self.seed, level)
        return {
            "experiment": self.stored.experiment.slug,
            **(pairs[0] if len(pairs) == 1 else {"metric": metric, "pairs": pairs}),
            "level": level,
            "planning": {"power": POWER, "discordance": PLANNED_DISCORDANCE},
            **({} if grid is None else {"interaction": grid}),
            "gold": gold_summary(table, self.stored.split),
            "test_looks": self._decisions(look),
            "test_look": _told(look, self.stored.gold.name, level),
            "reused": bool(look and look.reused),
            "notes": self._notes(columns),
            "run_line": self._run_line(table, columns, metric),
        }

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
        n_test = self._n_test()
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

    def _n_test(self) -> int:
        return sum(self.stored.gold.split_of(item.group) == "test" for item in self.stored.items)

    def _decisions(self, look: Look | None) -> int:
        return look.number if look else looks_so_far(self.workspace.experiments, self.stored.gold.name)

    def _interaction(self, columns: Sequence[Column], metric: str, level: float) -> dict[str, Any] | None:
        """The prompt x model interaction, where the judges named make a grid of at least 2 x 2."""
        grid = {_cell(column.judge): self._verdicts(column) for column in columns if "@" in column.judge}
        signatures, models = {row for row, _ in grid}, {model for _, model in grid}
        if len(signatures) < 2 or len(models) < 2 or len(grid) < len(signatures) * len(models):
            return None
        gold, items = self.stored.gold, self.stored.items
        found = interaction(
            [gold.labels[item.item_id] for item in items],
            grid,
            scale=gold.scale,
            scales={_cell(column.judge): column.scale for column in columns if "@" in column.judge},
            metric=metric,
            groups=[item.group for item in items],
            level=level,
            seed=self.seed,
        )
        return _interaction_json(found)

    def _notes(self, columns: Sequence[Column]) -> list[str]:
        notes = []
        for column in columns:
            judged = {row.item_id for row in column.rows}
            absent = [item.item_id for item in self.stored.items if item.item_id not in judged]
            if absent:
                more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
                notes.append(
                    f"{column.judge} has no judgement of {len(absent)} items ({', '.join(absent[:_SHOWN])}{more}): "
                    "they count as unscored"
                )
        return [*notes, *self.stored.notes, *scale_notes(self.stored.gold.scale, columns)]

    def _run_line(self, table: Table, columns: Sequence[Column], metric: str) -> str:
        judges = [
            f"{column.judge}[{column.rows[0].judge_fingerprint[:8]}]" for column in columns if column.rows
        ]
        extra = {"experiment": self.stored.experiment.slug, "metric": metric}
        return run_line(table, self.stored.split, judges, extra)


def _cell(judge: str) -> tuple[str, str]:
    """Where a judge stands in the grid: signature, and model with its program."""
    name = JudgeName.parse(judge)
    return name.signature, judge.partition("@")[2]


def _pair(a: str, b: str, found: Comparison) -> dict[str, Any]:
    return {
        "a": a,
        "b": b,
        "metric": found.metric,
        "difference": found.difference,
        "p_value": found.p_value,
        "decision": found.decision,
        "smallest_detectable": found.smallest_detectable,
        "why": found.why,
        "p_adjusted": found.p_adjusted,
        "p_method": found.p_method,
        "a_value": found.a,
        "b_value": found.b,
        "complete_case": _end(found.complete_case),
        "best_case": _end(found.best_case),
    }


def _end(found: PairedDifference) -> dict[str, Any]:
    return {"a": found.a, "b": found.b, "difference": found.difference, "p_value": found.p_value}


def _told(look: Look | None, gold: str, level: float) -> str | None:
    if look is None:
        return None
    reused = f", reused: shown at level {level:.4g}" if look.reused else ""
    return f"test labels of {gold}: decision {look.number}{reused}"


def _interaction_json(found: Interaction) -> dict[str, Any]:
    return {
        "p_value": found.p_value,
        "decision": found.decision,
        "why": found.why,
        "n_groups": found.n_groups,
        "cells": [
            {
                "signature": cell.row,
                "model": cell.column,
                "deviation": cell.deviation,
                "p_adjusted": cell.p_adjusted,
            }
            for cell in found.cells
        ],
    }
