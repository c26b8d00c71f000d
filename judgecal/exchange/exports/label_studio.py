"""Label Studio (JSON, JSON-MIN, CSV, TSV): annotations are people's ratings, predictions a judge's.

JSON tells what is a label and what is data. JSON-MIN and CSV hold a row an annotation, with columns for both
alike. In JSON-MIN the labels stand between `id` and `annotator`; in CSV, whose columns are sorted, a label is
told by its form, by people differing on one task, or by its few values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed
from judgecal.exchange.exports import Export, ExportFormat, Score, apart, id_of, judge_name, person
from judgecal.exchange.texts import (
    Row,
    Value,
    field_of,
    moment_of,
    named_item,
    object_of,
    objects_of,
    records_of,
    text_of,
    word,
)
from judgecal.records import Item
from judgecal.tables import nested, outline, read_json
from judgecal.workspace import shown

_GOLD = "gold"  # the rater of what was declared the ground truth
_OWN = frozenset(
    {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history"}
)
_ROW = {"annotator", "annotation_id", "lead_time"}
_DATA = "_data_"  # a column of the task's data that a label has the name of
_LONG, _FEW = 60, 20  # characters of a label; labels of a control
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_MIXED = "a label or a field of the data, which JSON-MIN holds under one name"
_COMMENT = "a comment, taken as the note of the labels beside it"


def _holds(files: Sequence[Path]) -> bool:
    return bool(files) and all(_is_tasks(begun) or _is_rows(begun) for begun in map(outline, files))


def _is_tasks(begun: Any) -> bool:
    tasks = objects_of(begun)
    return bool(tasks) and all(
        isinstance(one.get("data"), dict) and isinstance(one.get("annotations", one.get("completions")), list)
        for one in tasks
    )


def _is_rows(begun: Any) -> bool:
    return {name for row in objects_of(begun) for name in row} >= _ROW


def _read(files: Sequence[Path], export: Export) -> None:
    tasks: list[tuple[str, Row]] = []
    tables: dict[bool, list[tuple[str, Row]]] = {True: [], False: []}
    for file in files:
        begun, is_json = outline(file), file.suffix.lower() == ".json"
        if _is_rows(begun):
            tables[is_json] += records_of(file)
        elif isinstance(begun, list) and is_json:
            found = export.objects(read_json(file), "task")
            tasks += [(f"{shown(file)}: task {n}", task) for n, task in enumerate(found, start=1)]
        else:
            raise InputError(
                f"{shown(file)}: no export of Label Studio: hand over its JSON, JSON-MIN or CSV file"
            )
    _read_tasks(tasks, export)
    for is_json, rows in tables.items():
        if rows:
            _read_rows(rows, export, in_order=is_json)


# --- JSON: a task with its annotations and predictions


def _read_tasks(tasks: Sequence[tuple[str, Row]], export: Export) -> None:
    items = [_item(task, object_of(task.get("data"))) for _, task in tasks]
    for (where, task), item in zip(tasks, apart(items), strict=True):
        export.add_item(item)
        drafts = export.objects(task.get("drafts"), "draft")
        export.skip("a draft that was not submitted", len(drafts))
        annotations = task.get("annotations", task.get("completions"))
        for annotation in sorted(export.objects(annotations, "annotation", holders=True), key=_made_at):
            _take_annotation(annotation, item.item_id, where, export)
        for prediction in export.objects(task.get("predictions"), "prediction", holders=True):
            for name, value, _ in _results(prediction, export):
                by = judge_name(name, word(prediction.get("model_version")))
                export.add_judgement(Score(item.item_id, name, by, value, where=f"{where}, prediction"))


def _item(task: Row, data: Mapping[str, Any]) -> Item:
    name = word(field_of(data, "item_id")) or word(task.get("id")) or id_of(data)
    return named_item(name, {key: value for key, value in data.items() if key not in ("item_id", "id")})


def _take_annotation(annotation: Row, item_id: str, where: str, export: Export) -> None:
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        export.count()
        export.skip("an annotation that was skipped (was_cancelled)")
        return
    by = _GOLD if annotation.get("ground_truth") is True else _rater(annotation.get("completed_by"))
    place = f"{where}, annotation {word(annotation.get('id'))}"
    drafted = annotation.get("parent_prediction") is not None
    for name, value, note in _results(annotation, export):
        export.add_rating(Score(item_id, name, by, value, note, place, saw_draft=drafted))


def _made_at(annotation: Row) -> float:
    """What somebody said later counts."""
    return moment_of(annotation.get("created_at"))


def _rater(by: Any) -> str:
    """A person: an e-mail address is hashed, the number of an account is a name."""
    name = field_of(by, "email", "username", "id") if isinstance(by, dict) else by
    text = word(name)
    return f"annotator-{text}" if text.isdecimal() else person(text)


def _results(annotation: Row, export: Export) -> Iterator[tuple[str, Value, str]]:
    """The control, label and comment of each result that is a label of the task; all of them are counted."""
    results = export.objects(annotation.get("result"), "result")
    if not results:
        export.count()
        export.skip("an annotation or a prediction without any result")
    comments = [text for one in results if (text := _comment(one.get("value")))]
    for result in results:
        value, reason = _label(result.get("value"))
        if reason:
            export.skip(reason)
        else:
            yield word(result.get("from_name")) or "label", value, "\n".join(comments)


def _comment(value: Any) -> str:
    text = value.get("text") if isinstance(value, dict) and "start" not in value else None
    return "\n".join(map(text_of, text)) if isinstance(text, list) else text_of(text)


def _label(value: Any) -> tuple[Value, str]:
    """The label of a result, or why it is none."""
    if not isinstance(value, dict):
        return None, "a result without a value"
    if {"start", "x", "original_width", "ranges"} & value.keys():
        return None, "a label of a region, not of the whole task"
    if "text" in value:
        return None, _COMMENT
    given = field_of(value, "choices", "rating", "number", "selected", "taxonomy")
    if isinstance(given, list):
        if len(given) > 1:
            return None, "several choices at once, where a label is one"
        given = "/".join(map(text_of, given[0])) if isinstance(given[0], list) else given[0]
    if not isinstance(given, bool | int | float | str):
        return None, "a result that is no choice, rating or number"
    return given, ""


# --- JSON-MIN and CSV: a row an annotation


def _read_rows(rows: Sequence[tuple[str, Row]], export: Export, *, in_order: bool) -> None:
    rows = sorted(rows, key=lambda pair: _made_at(pair[1]))  # CSV begins with the last
    cells = [(where, {name: nested(cell) for name, cell in row.items()}) for where, row in rows]
    labels, comments, mixed = _columns([row for _, row in cells], export, in_order=in_order)
    items, taken = [], {*labels, *comments, *mixed, *_OWN}
    for _, row in cells:
        data = {name.removeprefix(_DATA): one for name, one in row.items() if name not in taken}
        items.append(
            _item(row, {name: one for name, one in data.items() if not name.endswith("_transcript")})
        )
    known: set[str] = set()
    for (where, row), item in zip(cells, apart(items), strict=True):
        export.count()
        if item.item_id in known:
            export.skip("a row of a further annotation, its task repeated")
        else:
            known.add(item.item_id)
            export.add_item(item)
        note = "\n".join(text_of(row[name]) for name in comments if row.get(name) not in _EMPTY)
        for name in (name for name in (*labels, *mixed) if row.get(name) not in _EMPTY):
            export.count()
            value, reason = _cell_label(row[name]) if name in labels else (None, _MIXED)
            if reason:
                export.skip(reason)
            else:
                export.add_rating(Score(item.item_id, name, _rater(row.get("annotator")), value, note, where))


def _cell_label(cell: Any) -> tuple[Value, str]:
    """The label of a cell: a choice's text, or what JSON stands for in it."""
    if isinstance(cell, list):
        return _label(cell[0]) if len(cell) == 1 else (None, "several choices at once, where a label is one")
    return _label(cell) if isinstance(cell, dict) else (cell, "")


def _columns(
    rows: Sequence[Row], export: Export, *, in_order: bool
) -> tuple[list[str], list[str], list[str]]:
    """The columns that hold labels, those that hold people's comments, and those that hold labels or data."""
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if name not in _OWN]
    differ = [name for name in names if _differs(rows, name)]
    mixed: list[str] = []
    if in_order and all("id" in row for row in rows):
        sure = list(dict.fromkeys(name for row in rows for name in _between(row)))
        mixed = [name for name in differ if name not in sure]
    else:
        sure = [
            name for name in names if f"{_DATA}{name}" in names or name in differ or _has_form(rows, name)
        ]
    labels = [name for name in sure if _is_short(rows, name)]
    guessed = [] if labels else [name for name in names if _is_short(rows, name) and _has_few(rows, name)]
    if not labels and not guessed:
        raise InputError(
            f"{export.where}: which columns are labels is not told, found {listed(names, 8)}: export JSON, "
            "which tells"
        )
    how = " by their few values" * bool(guessed)
    export.notes.append(
        f"taken for labels{how}: {listed(labels or guessed)}; only JSON tells labels from data of the same "
        "name, and holds predictions and which annotation is the ground truth"
    )
    return labels or guessed, [name for name in sure if name not in labels], mixed


def _between(row: Row) -> list[str]:
    """The names between `id` and `annotator`: JSON-MIN writes data, id, labels, and who gave them."""
    names = list(row)
    return names[names.index("id") + 1 : names.index("annotator")] if "annotator" in names else []


def _differs(rows: Sequence[Row], name: str) -> bool:
    """Whether two annotations of one task differ in a column, as its data cannot."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.get("id") not in _EMPTY:
            values[word(row["id"])].add(text_of(row.get(name)))
    return any(len(one) > 1 for one in values.values())


def _has_form(rows: Sequence[Row], name: str) -> bool:
    """Whether a column holds what only a label is written as: `[{"rating": 3}]`, `{"choices": [...]}`."""
    cells = [row[name] for row in rows if row.get(name) not in _EMPTY]
    firsts = [cell[0] if isinstance(cell, list) and len(cell) == 1 else cell for cell in cells]
    return any(
        isinstance(one, dict) and one.keys() & {"rating", "number", "choices", "taxonomy"} for one in firsts
    )


def _is_short(rows: Sequence[Row], name: str) -> bool:
    texts = [text_of(_cell_label(row[name])[0]) for row in rows if row.get(name) not in _EMPTY]
    return any(texts) and all(len(text) <= _LONG and "\n" not in text for text in texts)


def _has_few(rows: Sequence[Row], name: str) -> bool:
    """Whether a column has at most 20 values and at least one of them more than once."""
    texts = [text_of(row[name]) for row in rows if row.get(name) not in _EMPTY]
    return len(set(texts)) <= min(_FEW, len(texts) - 1)


FORMAT = ExportFormat("label-studio", _holds, _read, "the JSON export of a project (or its JSON-MIN or CSV)")
