"""Label Studio (JSON, JSON-MIN, CSV, TSV): annotations are people's ratings, predictions a judge's.

JSON tells what is a label and what is data. JSON-MIN and CSV hold a row an annotation, with columns for both
alike. In JSON-MIN the labels stand between `id` and `annotator`; in CSV, whose columns are sorted, a label is
told by its form, by people differing on one task, or by its few values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person
from judgecal.exchange.files import Placed, Row, columns_of, nested, outline, records_of
from judgecal.exchange.texts import (
    Value,
    field_of,
    has,
    in_time,
    named_item,
    object_of,
    objects,
    text_of,
    word,
    word_in,
)
from judgecal.records import Item
from judgecal.tables import read_json
from judgecal.workspace import shown

_OWN = frozenset(
    {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history"}
)
_ROW = {"annotator", "annotation_id", "lead_time"}
_DATA = "_data_"  # a column of the task's data that a label has the name of
_LONG, _FEW = 60, 20  # characters of a label; labels of a control
_SEVERAL = "several choices at once, where a label is one"


def _is_tasks(begun: Any) -> bool:
    tasks = objects(begun)
    return bool(tasks) and all(
        isinstance(task.get("data"), dict)
        and isinstance(task.get("annotations", task.get("completions")), list)
        for task in tasks
    )


def _read(files: Sequence[Path], export: Export) -> None:
    tasks: list[Placed] = []
    tables: dict[bool, list[Placed]] = {True: [], False: []}
    for file in files:
        begun, is_json = outline(file), file.suffix.lower() == ".json"
        if columns_of(begun) >= _ROW:
            tables[is_json] += records_of(file)
        elif isinstance(begun, list) and is_json:
            placed = enumerate(export.objects(read_json(file), "task"), start=1)
            tasks += [(f"{shown(file)}: task {n}", task) for n, task in placed]
        else:
            raise InputError(
                f"{shown(file)}: no export of Label Studio: hand over its JSON, JSON-MIN or CSV file"
            )
    _read_tasks(tasks, export)
    for is_json, rows in tables.items():
        if rows:
            _read_rows(rows, export, in_order=is_json)


# --- JSON: a task with its annotations and predictions


def _read_tasks(tasks: Sequence[Placed], export: Export) -> None:
    items = [_item(task, object_of(task.get("data"))) for _, task in tasks]
    for (where, task), item in zip(tasks, export.add_apart(items), strict=True):
        drafts = export.objects(task.get("drafts"), "draft")
        export.skip("a draft that was not submitted", len(drafts))
        annotations = task.get("annotations", task.get("completions"))
        made = [("", one) for one in export.objects(annotations, "annotation", holders=True)]
        for _, annotation in in_time(made, "created_at"):  # what somebody said later counts
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                export.count_skipped("an annotation that was skipped (was_cancelled)", 1)
                continue
            # what was declared the ground truth is the adjudicated label
            by = "gold" if annotation.get("ground_truth") is True else _rater(annotation.get("completed_by"))
            at = f"{where}, annotation {word_in(annotation, 'id')}"
            for name, value, note in _results(annotation, export):
                export.add_rating(Score(item.item_id, name, by, value, note, at))
        for prediction in export.objects(task.get("predictions"), "prediction", holders=True):
            for name, value, _ in _results(prediction, export):
                by = judge_name(name, word_in(prediction, "model_version"))
                export.add_judgement(Score(item.item_id, name, by, value, where=f"{where}, prediction"))


def _item(task: Row, data: Row) -> Item:
    name = word_in(data, "item_id") or word_in(task, "id") or id_of(data)
    return named_item(name, {key: value for key, value in data.items() if key not in ("item_id", "id")})


def _rater(by: Any) -> str:
    """A person: an e-mail address is hashed, the number of an account is a name."""
    text = word(field_of(by, "email", "username", "id") if isinstance(by, dict) else by)
    return f"annotator-{text}" if text.isdecimal() else person(text)


def _results(annotation: Row, export: Export) -> Iterator[tuple[str, Value, str]]:
    """The control, label and comment of each result that is a label of the task; all of them are counted."""
    results = export.objects(annotation.get("result"), "result")
    if not results:
        export.count_skipped("an annotation or a prediction without any result", 1)
    comments = []
    for result in results:
        value = result.get("value")
        if isinstance(value, dict) and "start" not in value:
            texts = value.get("text")
            comments.append("\n".join(map(text_of, texts)) if isinstance(texts, list) else text_of(texts))
    for result in results:
        label, reason = _label(result.get("value"))
        if reason:
            export.skip(reason)
        else:
            yield word_in(result, "from_name") or "label", label, "\n".join(filter(None, comments))


def _label(value: Any) -> tuple[Value, str]:
    """The label of a result, or why it is none."""
    if not isinstance(value, dict):
        return None, "a result without a value"
    if {"start", "x", "original_width", "ranges"} & value.keys():
        return None, "a label of a region, not of the whole task"
    if "text" in value:
        return None, "a comment, taken as the note of the labels beside it"
    label = field_of(value, "choices", "rating", "number", "selected", "taxonomy")
    if isinstance(label, list):
        if len(label) > 1:
            return None, _SEVERAL
        label = "/".join(map(text_of, label[0])) if isinstance(label[0], list) else label[0]
    if not isinstance(label, bool | int | float | str):
        return None, "a result that is not a choice, rating or number"
    return label, ""


# --- JSON-MIN and CSV: a row an annotation


def _read_rows(rows: Sequence[Placed], export: Export, *, in_order: bool) -> None:
    rows = in_time(rows, "created_at")  # CSV begins with the last
    cells = [(where, {name: nested(cell) for name, cell in row.items()}) for where, row in rows]
    labels, comments, mixed = _columns([row for _, row in cells], export, in_order=in_order)
    items, taken = [], {*labels, *comments, *mixed, *_OWN}
    for _, row in cells:
        data = {name.removeprefix(_DATA): value for name, value in row.items() if name not in taken}
        data = {name: value for name, value in data.items() if not name.endswith("_transcript")}
        items.append(_item(row, data))
    export.count(len(items))
    for (where, row), item in zip(cells, export.add_apart(items), strict=True):
        note = "\n".join(text_of(row[name]) for name in comments if has(row.get(name)))
        for name in (name for name in (*labels, *mixed) if has(row.get(name))):
            value, reason = _cell_label(row[name])
            if name in mixed:
                reason = "a label or a field of the data, which JSON-MIN holds under one name"
            export.count()
            if reason:
                export.skip(reason)
            else:
                export.add_rating(Score(item.item_id, name, _rater(row.get("annotator")), value, note, where))


def _cell_label(cell: Any) -> tuple[Value, str]:
    """The label of a cell: a choice's text, or what JSON stands for in it."""
    if isinstance(cell, list):
        return _label(cell[0]) if len(cell) == 1 else (None, _SEVERAL)
    return _label(cell) if isinstance(cell, dict) else (cell, "")


def _columns(
    rows: Sequence[Row], export: Export, *, in_order: bool
) -> tuple[list[str], list[str], list[str]]:
    """The columns that hold labels, those that hold people's comments, and those that hold labels or data."""
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if name not in _OWN]
    cells = {name: [row[name] for row in rows if has(row.get(name))] for name in names}
    labelled = {name: [text_of(_cell_label(cell)[0]) for cell in column] for name, column in cells.items()}
    short = {
        name
        for name, texts in labelled.items()
        if any(texts) and all(len(text) <= _LONG and "\n" not in text for text in texts)
    }
    # Two annotations of one task differ in a label, and never in its data.
    values: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        for name in names if has(row.get("id")) else ():
            values[name, word(row["id"])].add(text_of(row.get(name)))
    differ = {name for (name, _), texts in values.items() if len(texts) > 1}
    mixed: list[str] = []
    if in_order and all("id" in row for row in rows):
        # JSON-MIN writes data, id, labels, and who gave them.
        sure = list(dict.fromkeys(
            name for row in rows if "annotator" in row
            for name in list(row)[list(row).index("id") + 1 : list(row).index("annotator")]
        ))  # fmt: skip
        mixed = [name for name in names if name in differ and name not in sure]
    else:
        sure = [
            name for name in names if f"{_DATA}{name}" in names or name in differ or _has_form(cells[name])
        ]
    labels = [name for name in sure if name in short]
    # By their few values: at most 20, and at least one of them more than once.
    texts = {name: [*map(text_of, column)] for name, column in cells.items() if not labels and name in short}
    guessed = [name for name, given in texts.items() if len({*given}) <= min(_FEW, len(given) - 1)]
    if not labels and not guessed:
        raise InputError(
            f"{export.where}: it does not say which columns are labels, found {listed(names, 8)}: export "
            "JSON, which does"
        )
    reason = " by their few values" * bool(guessed)
    export.notes.append(
        f"taken for labels{reason}: {listed(labels or guessed)}; only JSON tells labels from data of the "
        "same name, and holds predictions and which annotation is the ground truth"
    )
    return labels or guessed, [name for name in sure if name not in labels], mixed


def _has_form(cells: Sequence[Any]) -> bool:
    """Whether a column holds what only a label is written as: `[{"rating": 3}]`, `{"choices": [...]}`."""
    firsts = (cell[0] if isinstance(cell, list) and len(cell) == 1 else cell for cell in cells)
    forms = {"rating", "number", "choices", "taxonomy"}
    return any(isinstance(first, dict) and first.keys() & forms for first in firsts)


FORMAT = ExportFormat(
    "label-studio",
    lambda begun: all(_is_tasks(part) or columns_of(part) >= _ROW for part in begun),
    _read,
    "the JSON export of a project (or its JSON-MIN or CSV)",
)
