"""Label Studio: the JSON export of a project. Annotations are people's ratings, predictions a judge's.

JSON-MIN and CSV do not tell labels from data: they are tables, whose labels `--label` names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person
from judgecal.exchange.files import Placed, Row, outline
from judgecal.exchange.texts import (
    Value,
    field_of,
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
    for file in files:
        if not _is_tasks(outline(file)):
            raise InputError(f"{shown(file)}: no JSON export of Label Studio: hand over its file of tasks")
        placed = enumerate(export.objects(read_json(file), "task"), start=1)
        tasks += [(f"{shown(file)}: task {n}", task) for n, task in placed]
    _read_tasks(tasks, export)


def _read_tasks(tasks: Sequence[Placed], export: Export) -> None:
    items = [_item(task, object_of(task.get("data"))) for _, task in tasks]
    for (where, task), item in zip(tasks, export.add_apart(items), strict=True):
        drafts = export.objects(task.get("drafts"), "draft")
        export.skip("a draft that was not submitted", len(drafts))
        annotations = task.get("annotations", task.get("completions"))
        made = [("", annotation) for annotation in export.objects(annotations, "annotation", holders=True)]
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


FORMAT = ExportFormat(
    "label-studio", lambda begun: all(map(_is_tasks, begun)), _read, "the JSON export of a project"
)
