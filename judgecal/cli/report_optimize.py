"""The report of an experiment of `optimize`: its result, both prompts, and both judges over the test items."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from judgecal.cli.report_judges import found_of_judges
from judgecal.cli.report_summary import read_summary
from judgecal.errors import InputError
from judgecal.experiment import Experiment, read_experiment
from judgecal.experiment.stored import find_experiment
from judgecal.judges import JudgeName
from judgecal.report.page import Report
from judgecal.report.page_optimize import optimize_report
from judgecal.signatures import load_signature
from judgecal.workspace import Workspace

__all__ = ["report_on_optimize"]


def report_on_optimize(workspace: Workspace, name: str, margin: float) -> Report:
    """The report of `optimize`.

    What was tried on dev and the recalibrated difference stand in `summary.json` alone; both judges over the test
    items are rebuilt from the journal, where test was looked at.

    Raises:
        InputError: as `read_summary` and `read_experiment`; or the compiled program cannot be read.
    """
    experiment = find_experiment(workspace, name)
    result = read_summary(experiment)
    judges = None
    if result["test"]["before"] is not None:
        judges = found_of_judges(workspace, read_experiment(workspace, name), margin=margin)
    return optimize_report(result, _prompts(workspace, experiment), judges)


def _prompts(workspace: Workspace, experiment: Experiment) -> dict[str, Any]:
    """Instructions before (None where the signature is gone or has changed) and after, and the demos."""
    path = experiment.program
    try:
        program = json.loads(path.read_text(encoding="utf-8"))
        after = str(program["signature"]["instructions"])
        demos = [dict(demo) for demo in program["demos"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: the compiled program cannot be read ({error}); delete it and run the same command again"
        ) from error
    return {
        "before": _instructions(workspace, experiment.config["judges"][0]),
        "after": after,
        "demos": demos,
    }


def _instructions(workspace: Workspace, judge: Mapping[str, Any]) -> str | None:
    """Those of the signature as it was before, if it still is what it was."""
    try:
        loaded = load_signature(JudgeName.parse(str(judge["judge"])).signature, workspace=workspace)
    except InputError:
        return None  # the page says so
    return str(loaded.cls.instructions) if loaded.fingerprint == judge["signature_fingerprint"] else None
