"""InspectorRAGet: tasks, documents, models, and what people and metrics said of each model's answers.

MTRAG's human evaluations are in this form. A metric whose author is `human` gives ratings, a worker a rater;
any other one is a judge. Keys are read as `task_id` and as `taskId`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, person
from judgecal.exchange.texts import field_of, objects_of, text_of
from judgecal.records import Context, Item, Turn
from judgecal.tables import outline, read_json
from judgecal.workspace import shown

_TURN = "<::>"  # between a conversation's id and the turn's, in MTRAG's task ids
_PARTS = ("tasks", "models", "metrics", "evaluations")


def _holds(files: Sequence[Path]) -> bool:
    return len(files) == 1 and _is_result(outline(files[0]))


def _is_result(value: Any) -> bool:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), list) for name in _PARTS):
        return False
    return any(_of(one, "model_response") is not None for one in objects_of(value["evaluations"]))


def _of(record: Mapping[str, Any], name: str) -> Any:
    head, *rest = name.split("_")
    return field_of(record, name, head + "".join(word.capitalize() for word in rest))


def _read(files: Sequence[Path], export: Export) -> None:
    found, where = read_json(files[0]), shown(files[0])
    if len(files) > 1 or not _is_result(found):
        raise InputError(
            f"{where}: no file of InspectorRAGet: it holds {', '.join(_PARTS)} and documents; hand over one"
        )
    tasks = {text_of(_of(one, "task_id")): one for one in objects_of(found["tasks"])}
    documents = {text_of(_of(one, "document_id")): one for one in objects_of(found.get("documents"))}
    metrics = {text_of(one.get("name")): one for one in objects_of(found["metrics"])}
    for evaluation in export.objects(found["evaluations"], "evaluation"):
        task_id = text_of(_of(evaluation, "task_id"))
        item_id = f"{task_id}-{text_of(_of(evaluation, 'model_id'))}"
        if task_id in tasks:
            export.add_item(_item(evaluation, tasks[task_id], item_id, documents))
        else:
            export.skip("an answer to a task that the file does not hold")
        for name, worker, value in _values(evaluation):
            _add(export, metrics.get(name, {}), (item_id, name, worker), value)
    export.notes.append(f"{len(tasks):,} tasks; a task's group is its conversation where its id names one")


def _values(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Metric, worker and what stands there."""
    annotations = evaluation.get("annotations")
    for name, by in (annotations if isinstance(annotations, dict) else {}).items():
        for worker, said in (by if isinstance(by, dict) else {}).items():
            yield name, worker, said.get("value") if isinstance(said, dict) else said


def _add(export: Export, metric: Mapping[str, Any], key: tuple[str, str, str], value: Any) -> None:
    item_id, name, worker = key
    export.count()
    known = {str(one.get("value")): one for one in objects_of(metric.get("values"))}
    number = field_of(known.get(str(value), {}), "numeric_value", "numericValue")
    value = value if number is None else number
    if isinstance(value, dict | list):
        export.skip("a score that is no single value")
    elif metric.get("author") == "human":
        export.add_rating(Score(item_id, name, person(f"{worker}"), value, where=export.where))
    else:
        export.add_judgement(Score(item_id, name, name, value, where=export.where))


def _item(
    evaluation: Mapping[str, Any],
    task: Mapping[str, Any],
    item_id: str,
    documents: Mapping[str, Mapping[str, Any]],
) -> Item:
    turns = _turns(task.get("input"))
    targets = [text_of(field_of(one, "text", "value")) for one in objects_of(task.get("targets"))]
    contexts = _of(evaluation, "contexts") or task.get("contexts")
    return Item(
        item_id=item_id,
        group=text_of(_of(task, "conversation_id")) or text_of(_of(task, "task_id")).partition(_TURN)[0],
        question=turns[-1].content if turns else "",
        answer=text_of(_of(evaluation, "model_response")),
        reference_answers=tuple(text for text in targets if text.strip()),
        system=text_of(_of(evaluation, "model_id")) or None,
        contexts=tuple(_context(one, documents) for one in objects_of(contexts)),
        conversation=tuple(turns[:-1]),
    )


def _turns(value: Any) -> list[Turn]:
    if isinstance(value, str):
        return [Turn("user", value)]
    return [Turn(text_of(field_of(one, "speaker", "role")), text_of(field_of(one, "text", "content")))
            for one in objects_of(value)]  # fmt: skip


def _context(value: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]]) -> Context:
    document_id = text_of(_of(value, "document_id"))
    text = field_of(value, "text") or field_of(documents.get(document_id, {}), "text")
    return Context(text_of(text), document_id or None)


FORMAT = ExportFormat("inspector-raget", _holds, _read, "the JSON file of its evaluation results")
