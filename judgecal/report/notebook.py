"""A result in a notebook: its headline and its first table, as the page has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgecal.commands import document_of
from judgecal.errors import InputError
from judgecal.experiment.result import AgreementResult
from judgecal.records import Result
from judgecal.report.document import Block, Document, Picture, Table
from judgecal.report.html import rendered

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
    if isinstance(
        result, AgreementResult
    ):  # its headline rests on the judgements, which the experiment holds
        from judgecal.report.experiments import load_report

        try:
            return load_report(result.experiment).document
        except InputError:
            return None
    if type(result).__name__ == "GateResult":
        from judgecal.report.gate import gate_document
        from judgecal.selection.gate import GateResult

        return gate_document(result, {}) if isinstance(result, GateResult) else None
    document: Document | None = document_of(result)
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
