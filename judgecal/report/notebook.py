"""A result in a notebook: its headline and its first table, as the page has them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

from judgecal.errors import InputError
from judgecal.experiment.result import AgreementResult
from judgecal.records import Result
from judgecal.report.document import Block, Document, Picture, Table
from judgecal.report.html import rendered

_DOCUMENTS = {
    "AnswerResult": "rag.answering.document:answer_document",
    "Catalogued": "exchange.fetch_document:catalogue_document",
    "CompareResult": "report.compare:compare_document",
    "EvaluateResult": "rag.evaluation.document:evaluate_document",
    "FetchPlan": "exchange.fetch_document:plan_document",
    "FetchedSet": "exchange.fetch_document:fetched_document",
    "GoldCheck": "report.gold:check_document",
    "GoldChecks": "report.gold:checks_document",
    "GoldList": "report.gold:list_document",
    "Imported": "report.gold_import:import_document",
    "JudgeResult": "report.judge:judge_document",
    "MigrateResult": "report.migrate:migrate_document",
    "OptimizeResult": "report.optimize:optimize_document",
    "PlanResult": "report.plan:plan_document",
    "QuestionsResult": "report.plan:questions_document",
    "RateResult": "report.rate:rate_document",
    "RaterAgreement": "report.gold:agreement_document",
    "RetrievalResult": "rag.retrieval.document:retrieval_document",
    "SelectResult": "report.select:select_document",
    "SuiteResult": "report.suite:suite_document",
}
"""Class of a result -> what makes its document of it alone."""

_ROWS = 20  # of a table that is shown


def block_of(result: Result) -> str:
    """The markup; of a part of a result its table alone."""
    document = _document(result)
    if document is None:
        return rendered("notebook.html", headline=None, facts=(), table=_table(result))
    tables = (table for section in document.sections for table in _tables(section.blocks))
    return rendered(
        "notebook.html", headline=document.headline, facts=document.facts, table=next(tables, _table(result))
    )


def _document(result: Result) -> Document | None:
    name = type(result).__name__
    if isinstance(
        result, AgreementResult
    ):  # its headline rests on the judgements, which the experiment holds
        from judgecal.report.experiments import load_report

        try:
            return load_report(result.experiment).document
        except InputError:
            return None
    if name == "GateResult":
        from judgecal.report.gate import gate_document
        from judgecal.selection.gate import GateResult

        return gate_document(result, {}) if isinstance(result, GateResult) else None
    if name not in _DOCUMENTS:
        return None
    module, _, function = _DOCUMENTS[name].partition(":")
    document: Document = getattr(importlib.import_module(f"judgecal.{module}"), function)(result)
    return document


def _tables(blocks: Sequence[Block]) -> Iterator[Table]:
    """The short tables, those that stand behind a picture too."""
    for block in blocks:
        if isinstance(block, Table) and block.short:
            yield block
        elif isinstance(block, Picture) and block.short and block.numbers is not None:
            yield block.numbers


def _table(result: Result) -> Table:
    frame = result.frame()
    rows = [["" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
            for row in frame.head(_ROWS).iter_rows()]  # fmt: skip
    return Table(list(frame.columns), rows)
