"""Which report an experiment has, by the command that made it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.report import page, rendered
    from judgecal.workspace import Workspace

__all__ = ["KINDS", "MARGIN", "load_report", "report_of"]

MARGIN = 0.03
"""The loss that is allowed where not said otherwise, in units of the metric; that of `select`."""

KINDS = {
    "score": "judgecal.cli.report_judges:report_on_judges",
    "agreement": "judgecal.cli.report_judges:report_on_judges",
    "optimize": "judgecal.cli.report_optimize:report_on_optimize",
    "retrieval": "judgecal.cli.report_commands:report_on_retrieval",
    "gate": "judgecal.cli.report_commands:report_on_gate",
    "answer": "judgecal.cli.report_commands:report_on_answer",
    "judge": "judgecal.cli.report_commands:report_on_judge",
    "migrate": "judgecal.cli.report_commands:report_on_migrate",
}
"""Command -> module:function(workspace, name, margin) -> Report. A new kind is a line here."""


def report_of(workspace: Workspace, name: str, *, margin: float = MARGIN) -> page.Report | rendered.Report:
    """The report of one experiment, rebuilt from what it kept; no model is called.

    Raises:
        InputError: there is no such experiment, it is of a kind without a report, or what it kept cannot be read.
    """
    from judgecal.experiment.stored import find_experiment

    if not margin > 0.0:
        raise InputError(f"--margin must be above 0, found {margin:g}")
    experiment = find_experiment(workspace, name)
    command = str(experiment.config.get("command"))
    if command not in KINDS:
        raise InputError(
            f"{experiment.folder}: an experiment of {command!r} has no report; those of {', '.join(KINDS)} do"
        )
    module, _, function = KINDS[command].partition(":")
    make: Callable[..., page.Report | rendered.Report] = getattr(importlib.import_module(module), function)
    return make(workspace, name, margin)


def load_report(
    experiment: str | Path, *, workspace: str | Path | None = None, margin: float = MARGIN
) -> page.Report | rendered.Report:
    """The report of an experiment; in a notebook it displays itself.

    Args:
        experiment: its slug, or the path of its folder.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
        margin: the loss against the best judge that is allowed, in units of the metric.

    Raises:
        InputError: as `report_of`.
    """
    from judgecal.workspace import find_workspace

    where = find_workspace(None if workspace is None else Path(workspace))
    return report_of(where, str(experiment), margin=margin)
