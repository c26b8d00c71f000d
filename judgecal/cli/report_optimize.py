"""The report of an experiment of `optimize`: its result, both prompts, and both judges over the test items."""

from __future__ import annotations

from judgecal.experiment.stored import find_experiment
from judgecal.optimize import OptimizeResult, read_prompts
from judgecal.report.optimize import optimize_document
from judgecal.report.rendered import Report
from judgecal.workspace import Workspace

__all__ = ["report_on_optimize"]


def report_on_optimize(workspace: Workspace, name: str, _margin: float) -> Report:
    """The report of `optimize`.

    Raises:
        InputError: as `find_experiment` and `read_summary`; or the compiled program cannot be read.
    """
    experiment = find_experiment(workspace, name)
    result = experiment.read_summary(OptimizeResult)
    return Report(optimize_document(result, read_prompts(workspace, experiment)))
