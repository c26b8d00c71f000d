"""JUDGE-BENCH: a file a task: what people were asked, and what they said of each instance.

The scores of an instance have no names: `r1` is the first score of each instance, and need not be the same
person in two of them. Instances name no question that they share, so each is a group of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score
from judgecal.exchange.files import Row, outline
from judgecal.exchange.texts import number_of, object_in, objects_of, text_in, text_of
from judgecal.records import Item, Pair
from judgecal.scale import FALSE_WORDS, TRUE_WORDS
from judgecal.tables import Columns, read_json
from judgecal.workspace import shown

_MERGED = {"majority_human": "majority", "mean_human": "mean"}
_QUESTIONS, _ANSWERS = ("query", "question"), ("response", "answer")


def _is_task(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    metrics, instances = objects_of(value.get("annotations")), objects_of(value.get("instances"))
    rated = (isinstance(instance.get("annotations"), dict) for instance in instances)
    return any("metric" in metric for metric in metrics) and any(rated)


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
    for nth, instance in enumerate(export.objects(task.get("instances"), "instance"), start=1):
        item = _item(instance, nth)
        export.add_item(item)
        annotations = object_in(instance, "annotations")
        for metric in annotations:
            # What people said; where their own scores are not given, their majority or mean.
            given = object_in(annotations, metric)
            scores = given.get("individual_human_scores")
            places = enumerate(scores, start=1) if isinstance(scores, list) else ()
            said = {f"r{place}": value for place, value in places}
            for name, by in _MERGED.items():
                if not said and given.get(name) is not None:
                    said = {by: given[name]}
            export.count(len(said))
            for rater, value in said.items():
                export.add_rating(Score(item.item_id, metric, rater, value, where=export.where))
    for declared in objects_of(task.get("annotations")):
        if "metric" in declared and (scale := _scale(declared, export)):
            export.scales[str(declared["metric"])] = scale
    export.notes.append(
        "r1, r2 ... are the places of the scores in the file, which names no rater: the first score of two "
        "instances may be of two people"
    )
    raters = {"true": "experts", "false": "crowd workers"}.get(str(task.get("expert_annotator", "")).lower())
    if raters:
        export.notes.append(f"the file says that its raters are {raters}")


def _item(instance: Row, nth: int) -> Item:
    """An instance that is one text is the field `instance`, as prompts call it; of several each is one.

    Its fields are named as inputs of a signature may be.
    """
    given, value = instance.get("id"), instance.get("instance")
    item_id = str(nth) if given is None else str(given)
    if not isinstance(value, dict):
        return Item(item_id, item_id, "", "", fields={"instance": text_of(value)})
    question = text_in(value, *_QUESTIONS)
    fields = {}
    if (columns := Columns(usual=True).resolved(value)).pairs:
        question = question or text_in(value, "input", "instruction")
        texts = (text_in(value, column) for column in (columns.answer_a, columns.answer_b) if column)
        return Item(item_id, question.strip() or item_id, question, "", pair=Pair(*texts))
    for key, part in value.items():
        if key not in (*_QUESTIONS, *_ANSWERS) and (text := text_of(part)).strip():
            name = re.sub(r"\W", "_", key)
            fields[name if name.isidentifier() else f"text_{name}"] = text
    return Item(item_id, question.strip() or item_id, question, text_in(value, *_ANSWERS), fields=fields)


def _scale(metric: Row, export: Export) -> str:
    """The scale that a metric is declared on; "" where it says none that fits its scores."""
    values = [score.value for score in export.ratings if score.name == str(metric["metric"])]
    if metric.get("category") == "categorical":
        words = {str(word).strip().lower() for word in metric.get("labels_list") or values}
        return "binary" if words and words <= TRUE_WORDS | FALSE_WORDS else "nominal"
    ends = sorted(end for name in ("worst", "best") if (end := number_of(metric.get(name))) is not None)
    if len({*ends}) < 2:
        return ""
    numbers = [number for value in values if (number := number_of(value)) is not None]
    whole = all(number.is_integer() for number in (*ends, *numbers))
    return f"{'ordinal' if whole else 'points'}:{ends[0]:g}:{ends[1]:g}"


FORMAT = ExportFormat(
    "judge-bench",
    lambda files: len(files) == 1 and _is_task(outline(files[0])),
    _read,
    "the JSON file of one task",
)
