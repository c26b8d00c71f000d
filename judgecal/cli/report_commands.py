"""The reports of `retrieval`, `gate`, `answer` and `judge`: of what their commands found, as they kept it."""

from __future__ import annotations

import dataclasses

from judgecal.answering import AnswerResult, decomposition
from judgecal.errors import InputError
from judgecal.experiment.stored import find_experiment
from judgecal.goldset import load_gold
from judgecal.report import rendered
from judgecal.report.answer import answer_document
from judgecal.report.gate import gate_document
from judgecal.report.judge import judge_document
from judgecal.report.migrate import migrate_document
from judgecal.report.retrieval import retrieval_document
from judgecal.retrieval import RetrievalResult
from judgecal.selection.gate import GateResult
from judgecal.selection.migrate import MigrateResult
from judgecal.selection.production import JudgeResult
from judgecal.workspace import Workspace

__all__ = [
    "report_on_answer",
    "report_on_gate",
    "report_on_judge",
    "report_on_migrate",
    "report_on_retrieval",
]


def report_on_retrieval(workspace: Workspace, name: str, _margin: float) -> rendered.Report:
    """The report of `retrieval`; the margin is one of judges, and has no part in it.

    Raises:
        InputError: as `find_experiment` and `read_summary`.
    """
    result = find_experiment(workspace, name).read_summary(RetrievalResult)
    return rendered.Report(retrieval_document(result))


def report_on_gate(workspace: Workspace, name: str, _margin: float) -> rendered.Report:
    """The report of `gate`; its margin is the one that it was run with.

    Raises:
        InputError: as `find_experiment` and `Experiment.read_summary`.
    """
    result = find_experiment(workspace, name).read_summary(GateResult)
    return rendered.Report(gate_document(result, _texts(workspace, result)))


def _texts(workspace: Workspace, result: GateResult) -> dict[str, tuple[str, str]]:
    """Question and answer of the flipped items; none where the gold set is not what it was, which the page says."""
    try:
        gold = load_gold(result.gold.set, workspace=workspace)
    except InputError:
        return {}
    if gold.sha256 != result.gold.sha256:
        return {}
    wanted = {one.item_id for one in result.flipped}
    return {item.item_id: (item.question, item.answer) for item in gold.items if item.item_id in wanted}


def report_on_answer(workspace: Workspace, name: str, _margin: float) -> rendered.Report:
    """The report of `answer`.

    Where the points go is told as soon as both contexts were run, whichever came first.

    Raises:
        InputError: as `find_experiment` and `read_summary`.
    """
    experiment = find_experiment(workspace, name)
    result = experiment.read_summary(AnswerResult)
    if result.decomposition is None:
        seed = int(experiment.config.get("seed", 0))
        points = decomposition(workspace, experiment, result.percentages, seed=seed)
        result = dataclasses.replace(result, decomposition=points)
    return rendered.Report(answer_document(result))


def report_on_judge(workspace: Workspace, name: str, _margin: float) -> rendered.Report:
    """The report of `judge`.

    Raises:
        InputError: as `find_experiment` and `Experiment.read_summary`.
    """
    return rendered.Report(judge_document(find_experiment(workspace, name).read_summary(JudgeResult)))


def report_on_migrate(workspace: Workspace, name: str, _margin: float) -> rendered.Report:
    """The report of `migrate`; its margin is the one that it was run with.

    Raises:
        InputError: as `find_experiment` and `Experiment.read_summary`.
    """
    return rendered.Report(migrate_document(find_experiment(workspace, name).read_summary(MigrateResult)))
