"""The report of any experiment, by the command that made it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from judgecal.commands import COMMANDS, document_of, load
from judgecal.errors import InputError
from judgecal.experiment.folder import Experiment
from judgecal.experiment.stored import find_experiment, read_experiment
from judgecal.goldset import load_gold
from judgecal.report.document import Document
from judgecal.report.html import Report
from judgecal.selection.choice import MARGIN
from judgecal.selection.decision import decide_on_judges
from judgecal.workspace import Workspace, find_workspace

REPORTS = {command.word: command.report for command in COMMANDS.values() if command.report}
"""Command, as an experiment's configuration names it -> how its document is made anew."""

_BY_OTHER_MAPS = ("agreement", "losses")  # sections about judges that hold cross-fitted numbers

PAGE = "report.html"
"""The page of an experiment, in its folder."""


def report_of(workspace: Workspace, name: str, *, margin: float = MARGIN) -> Report:
    """The report of one experiment, rebuilt from what it stored; no model is called.

    Raises:
        InputError: there is no such experiment, it is of a kind without a report, or what it stored cannot be
            read.
    """
    if not margin > 0.0:
        raise InputError(f"--margin must be above 0, found {margin:g}")
    experiment = find_experiment(workspace, name)
    command = str(experiment.config.get("command"))
    if command not in REPORTS:
        raise InputError(
            f"{experiment.folder}: an experiment of {command!r} has no report; those of {', '.join(REPORTS)} "
            "do"
        )
    maker = load(REPORTS[command])
    day = experiment.last_written
    stored = isinstance(maker, type)
    document = document_of(experiment.read_summary(maker)) if stored else maker(workspace, experiment, margin)
    return Report(document, f"{day.day} {day:%B %Y}")


def optimize_report(workspace: Workspace, experiment: Experiment, margin: float) -> Document:
    """The document of `optimize`, with both prompts, and both judges over the test items where test was
    looked at.

    What is fitted on test itself is left out: its numbers come by other maps than those that decided.

    Raises:
        InputError: as `Experiment.read_summary`; or the compiled program cannot be read.
    """
    from judgecal.optimize import OptimizeResult, read_prompts
    from judgecal.report.judges import judges_sections
    from judgecal.report.optimize import optimize_document

    result, prompts = experiment.read_summary(OptimizeResult), read_prompts(experiment)
    if result.test.before is None:
        return optimize_document(result, prompts)
    judges = decide_on_judges(workspace, read_experiment(workspace, str(experiment.folder)), margin=margin)
    entries = tuple(dataclasses.replace(judge, calibrated={}) for judge in judges.result.judges)
    raw = dataclasses.replace(judges, result=dataclasses.replace(judges.result, judges=entries))
    return optimize_document(
        result, prompts, [one for one in judges_sections(raw) if one.name not in _BY_OTHER_MAPS]
    )


def gate_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The document of `gate`, with the flipped items' texts; test items are counted, all of them where the
    set is gone.

    Raises:
        InputError: as `Experiment.read_summary`.
    """
    from judgecal.report.gate import gate_document, texts_of
    from judgecal.selection.gate import GateResult

    result = experiment.read_summary(GateResult)
    try:
        gold = load_gold(result.gold.set, workspace=workspace)
        texts = texts_of(gold) if gold.sha256 == result.gold.sha256 else {}
    except InputError:
        texts = {}
    return gate_document(result, texts)


def load_report(
    experiment: str | Path, *, workspace: str | Path | None = None, margin: float = MARGIN
) -> Report:
    """The report of an experiment; in a notebook it displays itself.

    Args:
        experiment: its slug, or the path of its folder.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
        margin: the loss against the best judge that is allowed, in units of the metric.

    Raises:
        InputError: as `report_of`.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    return report_of(where, str(experiment), margin=margin)
