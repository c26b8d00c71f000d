"""Which judged rows a person must read, so that on the others judge and people agree as often as was asked
for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from judgecal.goldset import write_sheets
from judgecal.production.judged_draw import items_at
from judgecal.production.judged_table import JudgedColumns, JudgedTable
from judgecal.production.rate_result import Escalated
from judgecal.production.row_labels import RowLabels
from judgecal.selection.pass_rates import PassRule
from judgecal.stats.escalation import JudgedLabels, escalation, labels_to_start
from judgecal.stats.sample import Floats

_APART = 2.0  # of the confidence of a row on which a second judge differs, so that it is below every other


def confidence(table: JudgedTable, rule: PassRule) -> Floats:
    """How sure the judge is of each row: the distance from where verdicts begin to pass, less the spread over
    repeats.

    Below all of these where a second judge differs, and minus infinity without a verdict.
    """
    sure = np.abs(table.verdict - rule.cut) / rule.judge.span
    if len(table.spread):
        sure = sure - table.spread / rule.judge.span
    if len(table.second):
        sure = np.where(rule.passed(table.second) == rule.passed(table.verdict), sure, sure - _APART)
    return np.where(table.unscored, -np.inf, sure)


def escalated(
    table: JudgedTable, rule: PassRule, labels: RowLabels, *, label: Floats, target: float, level: float
) -> Escalated:
    """What is left to the judge where it must agree with people at the target (0..1); `label`: 1 right, 0
    wrong."""
    sure, at = confidence(table, rule), labels.at
    weight = np.ones(len(at)) if labels.chance is None else 1.0 / labels.chance
    judged = JudgedLabels(sure[at], rule.passed(table.verdict[at]) == label, table.group[at], weight)
    found = escalation(sure, judged, target=target, level=level)
    n_rows = table.n if found.threshold is None else int((sure < found.threshold).sum())
    return Escalated(target, found.share, found.agreement, found.threshold, n_rows, found.labels_needed)


def write_rows_to_read(
    table: JudgedTable,
    rule: PassRule,
    found: Escalated,
    sheet: Path,
    *,
    file: Path,
    columns: JudgedColumns,
    seed: int,
) -> None:
    """The rows that a person must read as a blind sheet, each text once; `file` and `columns` are the
    table's."""
    sure = confidence(table, rule)
    rows = np.flatnonzero(np.ones(len(sure), np.bool_) if found.threshold is None else sure < found.threshold)
    first = rows[np.unique(table.text[rows], return_index=True)[1]]
    items = items_at(file, columns.columns, first.tolist())
    write_sheets(list(items.values()), sheet, name=file.name, seed=seed)


def labels_wanted(target: float, level: float, *, table: Path, lock: Path) -> str:
    """That labels are needed, and about how many."""
    likely, kept = labels_to_start(target, level=level)
    return (
        f"--escalate {target:g} is tested on labels of these rows, and there are none: about {kept} labels of rows "
        f"that the judge is sure of would do, if people agree with it on {100.0 * likely:.3g}% of these; if it is "
        f"sure of half of the rows, draw {2 * kept}: judgecal gold sheet {table} -n {2 * kept} --lock "
        f"{lock} -o sheet.csv, and give them with --labels SET"
    )
