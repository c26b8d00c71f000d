"""JUDGE-BENCH: a file a task: what people were asked, and what they said of each instance.

The scores of an instance have no names: `r1` is the first score of each instance, and need not be the same
person in two of them. Instances name no question that they share, so each is a group of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score
from judgecal.exchange.texts import field_of, number_of, objects_of, text_of
from judgecal.records import Item
from judgecal.scale import FALSE_WORDS, TRUE_WORDS
from judgecal.tables import outline, read_json
from judgecal.workspace import shown

_SCORES = "individual_human_scores"
_MERGED = {"majority_human": "majority", "mean_human": "mean"}
_QUESTIONS, _ANSWERS = ("query", "question"), ("response", "answer")


def _holds(files: Sequence[Path]) -> bool:
    return len(files) == 1 and _is_task(outline(files[0]))


def _is_task(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    asked, instances = objects_of(value.get("annotations")), objects_of(value.get("instances"))
    return any("metric" in one for one in asked) and any(
        isinstance(one.get("annotations"), dict) for one in instances
    )


def _read(files: Sequence[Path], export: Export) -> None:
    if len(files) > 1:
        raise InputError(
            f"{export.where}: a file of JUDGE-BENCH is a task, and a set is made of one: hand over one file"
        )
    task, where = read_json(files[0]), shown(files[0])
    if not _is_task(task):
        raise InputError(
            f"{where}: no file of JUDGE-BENCH: it holds annotations with a metric each, and instances"
        )
    for number, instance in enumerate(export.objects(task.get("instances"), "instance"), start=1):
        item = _item(instance, number)
        export.add_item(item)
        annotations = instance.get("annotations")
        for metric, said in (annotations if isinstance(annotations, dict) else {}).items():
            _add_scores(export, item.item_id, metric, said if isinstance(said, dict) else {})
    asked = objects_of(task.get("annotations"))
    export.scales.update(
        {str(one["metric"]): scale for one in asked if "metric" in one and (scale := _scale(one, export))}
    )
    export.notes.append(
        "r1, r2 ... are the places of the scores in the file, which names no rater: the first score of two "
        "instances may be of two people"
    )
    if (expert := str(task.get("expert_annotator", "")).lower()) in ("true", "false"):
        export.notes.append(
            f"the file says that its raters are {'experts' if expert == 'true' else 'crowd workers'}"
        )


def _add_scores(export: Export, item_id: str, metric: str, said: Mapping[str, Any]) -> None:
    """Take what people said of one instance; where their own scores are not given, their majority or mean."""
    scores = said.get(_SCORES)
    if isinstance(scores, list) and scores:
        export.count(len(scores))
        for place, value in enumerate(scores, start=1):
            export.add_rating(Score(item_id, metric, f"r{place}", value, where=export.where))
    elif key := next((name for name in _MERGED if said.get(name) is not None), None):
        export.count()
        export.add_rating(Score(item_id, metric, _MERGED[key], said[key], where=export.where))


def _item(instance: Mapping[str, Any], number: int) -> Item:
    """An instance that is one text is the field `instance`, as prompts call it; of several each is one."""
    given = instance.get("id")
    item_id = str(number) if given is None else str(given)
    value = instance.get("instance")
    if not isinstance(value, dict):
        return Item(item_id, item_id, "", "", fields={"instance": text_of(value)})
    question, answer = (text_of(field_of(value, *names)) for names in (_QUESTIONS, _ANSWERS))
    taken = (*_QUESTIONS, *_ANSWERS)
    fields = {
        _name(key): text_of(part) for key, part in value.items() if key not in taken and text_of(part).strip()
    }
    return Item(item_id, question.strip() or item_id, question, answer, fields=fields)


def _name(key: str) -> str:
    """A key as the name of an input of a signature."""
    name = "".join(char if char.isalnum() or char == "_" else "_" for char in key)
    return name if name.isidentifier() else f"text_{name}"


def _scale(asked: Mapping[str, Any], export: Export) -> str:
    """The scale that a metric is declared on; "" where it says none that fits its scores."""
    values = [score.value for score in export.ratings if score.name == str(asked["metric"])]
    if asked.get("category") == "categorical":
        words = {str(word).strip().lower() for word in asked.get("labels_list") or values}
        return "binary" if words and words <= TRUE_WORDS | FALSE_WORDS else "nominal"
    ends = sorted(end for name in ("worst", "best") if (end := number_of(asked.get(name))) is not None)
    if len(ends) < 2 or ends[0] == ends[1]:
        return ""
    numbers = [number for value in values if (number := number_of(value)) is not None]
    whole = all(number.is_integer() for number in (*ends, *numbers))
    return f"{'ordinal' if whole else 'points'}:{ends[0]:g}:{ends[1]:g}"


FORMAT = ExportFormat("judge-bench", _holds, _read, "the JSON file of one task")
