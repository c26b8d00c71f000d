"""The report of an experiment that holds judges: what it is made of, from the layers that know it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from judgecal.experiment import StoredExperiment, Table, read_experiment
from judgecal.experiment.losses import LossPicture, loss_picture, prompt_model_grid
from judgecal.experiment.stored import stored_result, stored_table
from judgecal.experiment.verdicts import judge_shape, strange_examples
from judgecal.report.page import Report
from judgecal.report.page_judges import judges_report
from judgecal.selection.choice import Measured, choose, measure, open_items
from judgecal.stats import leading_metric
from judgecal.workspace import Workspace

__all__ = ["found_of_judges", "report_on_judges"]


def report_on_judges(workspace: Workspace, name: str, margin: float) -> Report:
    """The report of an experiment of `score` or `agreement`.

    Raises:
        InputError: as `read_experiment`.
    """
    return judges_report(found_of_judges(workspace, read_experiment(workspace, name), margin=margin))


def found_of_judges(workspace: Workspace, kept: StoredExperiment, *, margin: float) -> dict[str, Any]:
    """Everything that a page about judges shows, with `Estimate`s as they are; no model is called.

    Judges are held against each other on the items that may choose (train and dev), as `select` does; where the
    experiment holds test items alone, on those, and then nobody is chosen. Counts and tables are over all items.
    """
    whole, metric = stored_table(kept), leading_metric(kept.gold.scale)
    chosen_on = open_items(kept)
    table = dataclasses.replace(whole, items=chosen_on or kept.items)
    measured = measure(kept, table)
    pairs = [(one.column, one.repeats) for one in measured]
    columns = [one.column for one in measured]
    picture = loss_picture(kept, table, pairs)
    return {
        "command": kept.experiment.config["command"],
        "result": stored_result(kept, columns, workspace),
        "card": {"sampling": kept.gold.card.sampling, "n_raters": len(kept.gold.raters)},
        "basis": {
            "split": _split_of(kept, chosen=bool(chosen_on)),
            "n_items": len(table.items),
            "n_groups": len(set(table.groups)),
            "may_choose": bool(chosen_on),
        },
        "metric": metric,
        "margin": margin,
        "picture": {"judges": picture.judges, "floor": picture.floor, "people": picture.people},
        "candidates": [
            {**dataclasses.asdict(one.candidate), "value": one.entry["as_wrong"][metric]} for one in measured
        ],
        "choice": _choice(measured, picture, margin=margin, table=table, may=bool(chosen_on)),
        "grid": prompt_model_grid(table, pairs, metric),
        "shapes": [judge_shape(kept, whole, column, repeats=repeats) for column, repeats in pairs],
        "examples": strange_examples(kept, columns, table.items),
    }


def _split_of(kept: StoredExperiment, *, chosen: bool) -> str:
    """Which items judges are held against each other on, in a word."""
    if not chosen:
        return "test"
    return "open" if kept.split == "all" else kept.split


def _choice(
    measured: Sequence[Measured], picture: LossPicture, *, margin: float, table: Table, may: bool
) -> dict[str, Any]:
    """Whom `select` would take without caps; where no price is known, the best."""
    losses = picture.losses
    shared = {"best": losses.best, "level": losses.level, "method": losses.method}
    if not may:
        return {**shared, "judge": None, "within": [], "more_questions": None, "cheaper": None}
    made = choose(
        [one.candidate for one in measured],
        losses,
        margin=margin,
        metric=leading_metric(table.gold.scale),
    )
    if any(one.candidate.usd_per_1k is None for one in measured if one.candidate.judge in made.within):
        return {
            **shared,
            "judge": losses.best,
            "within": list(made.within),
            "more_questions": None,
            "cheaper": None,
        }
    more = {"more_questions": made.more_questions, "cheaper": made.nearest}
    return {**shared, "judge": made.judge, "within": list(made.within), **more}
