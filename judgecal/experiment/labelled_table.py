"""What a result says of the table that its labels and verdicts came from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from judgecal.experiment.agreement import StoredExperiment
from judgecal.experiment.agreement_table import Verdicts
from judgecal.experiment.result import LabelledTable, TableRate
from judgecal.goldset import GoldSet
from judgecal.records import Estimate
from judgecal.scale import common_scale
from judgecal.stats.prediction_powered import LabelledRows, corrected_mean, drawn_otherwise
from judgecal.stats.sample import Ints, codes_of, moved
from judgecal.workspace import Workspace


def labelled_table(
    workspace: Workspace, stored: StoredExperiment, columns: Sequence[Verdicts]
) -> LabelledTable | None:
    """What an experiment says of its table; None of one on a gold set of the workspace."""
    config = stored.experiment.config.get("table")
    if config is None:
        return None
    gold, groups = stored.gold, codes_of([item.group for item in stored.gold.items], len(stored.gold.items))
    recorded = [column for column in columns if column.kind == "recorded" and gold.scale.numeric]
    return LabelledTable(
        file=config["file"],
        columns=config["columns"],
        left_out=tuple(config["left_out"]),
        notes=tuple(config["notes"]),
        rates=tuple(_rate(gold, groups, column, stored.seed) for column in recorded),
        keep=_keep(workspace, gold.name, config),
    )


def _keep(workspace: Workspace, name: str, config: Mapping[str, Any]) -> str:
    """The command that imports the table; with a workspace first, where there is none."""
    free, number, place, made, made_in = name, 2, "", "judgecal", "judgecal-workspace"
    if workspace.is_starter:
        place = "" if Path(made_in).exists() else f"judgecal init {made_in} && "
        made = f"judgecal --workspace {made_in}"
    while ((Path(made_in) / "gold" if workspace.is_starter else workspace.gold) / free).exists():
        free, number = f"{name}-{number}", number + 1
    return f"{place}{made} gold import {shlex.quote(config['file'])} --as {free} {config['options']}"


def _rate(gold: GoldSet, groups: Ints, column: Verdicts, seed: int) -> TableRate:
    people, common = gold.scale, common_scale(gold.scale, column.scale)
    verdicts = column.on_items(gold.items, column.values)[:, 0]
    if people.kind == "binary":
        passed = verdicts >= (0.5 if common.pass_at is None else common.pass_at)
        verdicts = np.where(np.isnan(verdicts), np.nan, passed)
    else:
        verdicts = moved(verdicts, column.scale, people)
    labels = np.array([gold.labels.get(item.item_id, np.nan) for item in gold.items], dtype=np.float64)
    at = np.flatnonzero(~np.isnan(labels))
    labelled = LabelledRows(at, labels[at])
    ends: dict[str, Any] = {"low": people.low, "high": people.high, "seed": seed}
    done, scored = corrected_mean(verdicts, groups, labelled, **ends), verdicts[~np.isnan(verdicts)]
    raw = Estimate(
        float(scored.mean()) if len(scored) else None,
        n=len(scored),
        n_expected=len(verdicts),
        n_groups=len(np.unique(groups)),
        n_unscored=len(verdicts) - len(scored),
        reason=None if len(scored) else "no row has a verdict",
    )
    drawn = True
    if len(at) < len(verdicts):
        filled = np.where(np.isnan(verdicts), raw.value or 0.0, verdicts)
        labelled = replace(labelled, label=filled[at])
        drawn = not drawn_otherwise(filled, groups, labelled, **ends).differs
    return TableRate(column.judge, raw, done.plain, done.estimate, drawn=drawn)
