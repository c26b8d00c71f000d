"""InspectorRAGet: tasks, documents, models, and what people and metrics said of each model's answers.

MTRAG's human evaluations are in this form. A metric whose author is `human` gives ratings, a worker a rater;
any other one is a judge. Keys are read as `task_id` and as `taskId`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, person
from judgecal.exchange.files import Row, outline
from judgecal.exchange.texts import field_of, object_in, objects_of, text_in, text_of
from judgecal.records import Context, Item, Turn
from judgecal.tables import read_json
from judgecal.workspace import shown

_PARTS = ("tasks", "models", "metrics", "evaluations")


def _is_result(value: Any) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), list) for name in _PARTS):
        return False
    return any(
        _of(evaluation, "model_response") is not None for evaluation in objects_of(value["evaluations"])
    )


def _of(record: Row, name: str) -> Any:
    head, *rest = name.split("_")
    return field_of(record, name, head + "".join(word.capitalize() for word in rest))


def _read(files: Sequence[Path], export: Export) -> None:
    whole, where = read_json(files[0]), shown(files[0])
    if len(files) > 1 or not _is_result(whole):
        raise InputError(
            f"{where}: no file of InspectorRAGet: it holds {', '.join(_PARTS)} and documents; hand over one"
        )
    tasks = {text_of(_of(task, "task_id")): task for task in objects_of(whole["tasks"])}
    passages = {
        text_of(_of(document, "document_id")): field_of(document, "text")
        for document in objects_of(whole.get("documents"))
    }
    metrics = {text_in(metric, "name"): metric for metric in objects_of(whole["metrics"])}
    for evaluation in export.objects(whole["evaluations"], "evaluation"):
        task_id = text_of(_of(evaluation, "task_id"))
        item_id = f"{task_id}-{text_of(_of(evaluation, 'model_id'))}"
        if task_id in tasks:
            export.add_item(_item(evaluation, tasks[task_id], item_id, passages))
        else:
            export.skip("an answer to a task that the file does not hold")
        for name, by_worker in object_in(evaluation, "annotations").items():
            metric = metrics.get(name, {})
            known = {str(value.get("value")): value for value in objects_of(metric.get("values"))}
            for worker, given in by_worker.items() if isinstance(by_worker, dict) else ():
                export.count()
                value = given.get("value") if isinstance(given, dict) else given
                number = _of(known.get(str(value), {}), "numeric_value")
                value = value if number is None else number
                if isinstance(value, dict | list):
                    export.skip("a score that is not a single value")
                elif metric.get("author") == "human":
                    export.add_rating(Score(item_id, name, person(worker), value, where=export.where))
                else:
                    export.add_judgement(Score(item_id, name, name, value, where=export.where))
    export.notes.append(f"{len(tasks):,} tasks; a task's group is its conversation where its id names one")


def _item(evaluation: Row, task: Row, item_id: str, passages: Row) -> Item:
    asked = task.get("input")
    turns = [Turn("user", asked)] if isinstance(asked, str) else [
        Turn(text_in(turn, "speaker", "role"), text_in(turn, "text", "content")) for turn in objects_of(asked)
    ]  # fmt: skip
    targets = [text_in(target, "text", "value") for target in objects_of(task.get("targets"))]
    contexts = []
    for context in objects_of(_of(evaluation, "contexts") or task.get("contexts")):
        document_id = text_of(_of(context, "document_id"))
        text = field_of(context, "text") or passages.get(document_id)
        contexts.append(Context(text_of(text), document_id or None))
    return Item(
        item_id=item_id,
        # in MTRAG's ids of tasks the conversation's stands before the turn's
        group=text_of(_of(task, "conversation_id")) or text_of(_of(task, "task_id")).partition("<::>")[0],
        question=turns[-1].content if turns else "",
        answer=text_of(_of(evaluation, "model_response")),
        reference_answers=tuple(text for text in targets if text.strip()),
        system=text_of(_of(evaluation, "model_id")) or None,
        contexts=tuple(contexts),
        conversation=tuple(turns[:-1]),
    )


FORMAT = ExportFormat(
    "inspector-raget",
    lambda files: len(files) == 1 and _is_result(outline(files[0])),
    _read,
    "the JSON file of its evaluation results",
)
