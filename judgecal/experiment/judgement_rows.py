"""The judgements of an experiment as a table: a row an item, judge and repeat, with the label beside the
verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from judgecal.experiment.agreement import Column, StoredExperiment, Table
from judgecal.goldset import GoldSet
from judgecal.records import Item, Judgement
from judgecal.scale import Label


class JudgementRow(NamedTuple):
    """One judgement of an item that may be shown; the texts are the item's."""

    item_id: str
    group: str
    system: str | None
    question: str
    answer: str
    label: Label  # the gold label, on the people's scale
    judge: str
    repeat: int
    verdict: Label | None  # on the judge's own scale
    calibrated: float | None  # on the people's scale, by a map that did not see the item
    reasoning: str
    error: str | None  # `kind: message` where there is no verdict


def judgement_rows(stored: StoredExperiment) -> tuple[Any, int]:
    """A `polars.DataFrame` of the judges that were asked for, and how many items of test are left out of it.

    Items of test are shown nowhere. A judgement that was asked for and is not there has the error `absent`.
    """
    import polars

    sealed = {item.item_id for item in stored.items} & stored.gold.test_ids
    rows = [
        row
        for column in stored.columns[: stored.asked]
        for row in _rows(stored.gold, stored.table.of(column), column)
        if row.item_id not in sealed
    ]
    columns: dict[str, list[Any]] = {
        name: [getattr(row, name) for row in rows] for name in JudgementRow._fields
    }
    schema: dict[str, Any] = dict.fromkeys(columns, polars.String) | {"repeat": polars.Int64}
    for name in ("label", "verdict", "calibrated"):
        if any(
            isinstance(value, str) for value in columns[name]
        ):  # where one scale has words, numbers are texts
            columns[name] = [f"{value:g}" if isinstance(value, float) else value for value in columns[name]]
        else:
            schema[name] = polars.Float64
    return polars.DataFrame(columns, schema=schema), len(sealed)


def _rows(gold: GoldSet, table: Table, column: Column) -> Iterator[JudgementRow]:
    mapped = table.calibrated(column)
    found = {(row.item_id, row.repeat): row for row in column.rows}
    for place, item in enumerate(table.items):
        for repeat in range(table.repeats):
            calibrated = None if mapped is None else mapped[place][repeat]
            row = found.get((item.item_id, repeat))
            yield _row(item, gold.labels[item.item_id], (column.judge, repeat), row, calibrated)


def _row(
    item: Item, label: Label, key: tuple[str, int], row: Judgement | None, calibrated: float | None
) -> JudgementRow:
    texts = (item.item_id, item.group, item.system, item.question, item.answer)
    if row is None:
        return JudgementRow(*texts, label, *key, None, None, "", "absent: no judgement is recorded")
    error = None
    if row.verdict is None:
        error = f"{row.error.kind}: {row.error.message}" if row.error else "parse: no verdict"
    return JudgementRow(*texts, label, *key, row.verdict, calibrated, row.reasoning, error)
