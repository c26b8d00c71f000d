"""InspectorRAGet's results: people's scores and metrics' apart by author, each counted, in either spelling of
keys."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import guess, read_export
from tests.support.command import Run, one_object

METRICS = [
    {"name": "faithfulness", "author": "human", "values": [{"value": "low", "numeric_value": 1}, {"value": "high",
                                                                                                 "numeric_value": 4}]},
    {"name": "win", "author": "human"},
    {"name": "rouge", "author": "algorithm"},
]  # fmt: skip
TASK = {"task_id": "c1<::>2", "input": [{"speaker": "user", "text": "hi"}, {"speaker": "agent", "text": "hello"},
                                        {"speaker": "user", "text": "and?"}],
        "contexts": [{"document_id": "d1"}], "targets": [{"text": "yes"}, {"text": ""}]}  # fmt: skip


def evaluation(model: str, task: str = "c1<::>2", **annotations: Any) -> dict[str, Any]:
    return {"task_id": task, "model_id": model, "model_response": f"{model} says", "annotations": annotations}


EVALUATIONS = [
    evaluation("m1", faithfulness={"ann@x.org": {"value": "high", "duration": 3}, "w2": {"value": "low"}},
               win={"w2": {"value": {"m1": 1}}}, rouge={"system": {"value": 0.5}}),
    evaluation("m2", faithfulness={"w2": {"value": None}}, rouge={"system": {"value": float("nan")}}),
    evaluation("m3", task="c9<::>1", faithfulness={"w2": {"value": "low"}}),
]  # fmt: skip


def file(tmp_path: Path, *, camel: bool = False) -> Path:
    documents = [{"document_id": "d1", "text": "the document"}]
    whole = {"name": "x", "models": [{"model_id": "m1"}], "metrics": METRICS, "documents": documents, "tasks": [TASK],
             "evaluations": EVALUATIONS}  # fmt: skip
    text = json.dumps(whole)
    if camel:
        text = re.sub(r'"([a-z]+)_([a-z]+)":', lambda m: f'"{m[1]}{m[2].capitalize()}":', text)
    path = tmp_path / "results.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("camel", [False, True])
def test_all_is_counted_and_people_are_told_from_metrics(tmp_path: Path, camel: bool) -> None:
    path = file(tmp_path, camel=camel)
    assert guess([path]) == "inspector-raget"
    found = read_export([path], "inspector-raget")
    assert found.n_records == 3 + 7 and list(found.items) == ["c1<::>2-m1", "c1<::>2-m2"]
    assert found.skipped == {"a score that is no single value": 1, "a rating without a label": 1,
                             "an answer to a task that the file does not hold": 1,
                             "a score of an item that the export does not hold": 1}  # fmt: skip
    assert [(one.by, one.value) for one in found.ratings] == [
        ("rater-" + found.ratings[0].by[6:], 4),
        ("w2", 1),
    ]
    assert "@" not in found.ratings[0].by
    assert [(one.by, one.value, one.error is None) for one in found.judgements] == [("rouge", 0.5, True),
                                                                                    ("rouge", None, False)]  # fmt: skip
    item = found.items["c1<::>2-m1"]
    assert (item.question, item.answer, item.group, item.system) == ("and?", "m1 says", "c1", "m1")
    assert [turn.content for turn in item.conversation] == ["hi", "hello"]
    assert item.contexts[0].text == "the document" and item.reference_answers == ("yes",)


def test_it_is_imported_by_its_form(judgecal: Run, tmp_path: Path) -> None:
    words = (
        "gold",
        "import",
        file(tmp_path),
        "--as",
        "it",
        "--label",
        "faithfulness",
        "--scale",
        "ordinal:1:4",
    )
    done = one_object(judgecal(*words, "--json"))
    assert done["n_items"] == 2 and sum(done["raters"].values()) == 2 and done["judges"] == {"rouge": 2}
    assert done["n_rows"] == 2 + 2 + 2 + sum(done["skipped"].values())


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"tasks": []}', encoding="utf-8")
    with pytest.raises(InputError, match="no file of InspectorRAGet"):
        read_export([path], "inspector-raget")
    assert guess([path]) is None
