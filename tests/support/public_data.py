"""The public data beside the checkout, put back into the form of its sources."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from tests.support.hub import hub_folder
from tests.support.public_forms import SAF, SRA, Rows, hub


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def real_nq301(rows: list[dict[str, str]]) -> tuple[bytes, bytes]:
    names = ("group", "question", "answer", "acceptable", "annotator1", "annotator2", "annotator3")
    head = "id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3"
    labels = "\n".join((head, *("\t".join(row[name] for name in names) for row in rows))) + "\n"
    named = {"Question": "question", "Gold answers": "reference_answer", "Model answer": "answer"}
    frame = pl.DataFrame(
        {"id": range(len(rows)), **{name: [row[key] for row in rows] for name, key in named.items()}}
    )
    return labels.encode(), frame.write_csv(separator="\t").encode()


def real_evouna(rows: list[dict[str, str]]) -> bytes:
    """The columns side by side again, as the repository has them."""
    found: dict[str, dict[str, Any]] = {}
    for item in rows:
        asked = {"question": item["question"], "golden_answer": item["reference_answer"], "improper": False}
        row = found.setdefault(item["group"], asked)
        for system in ("fid", "gpt35", "chatgpt", "gpt4", "newbing"):
            row.setdefault(f"answer_{system}", None)
            row.setdefault(f"judge_{system}", None)
        row[f"answer_{item['system']}"] = item["answer"]
        row[f"judge_{item['system']}"] = item["correct"] == "yes"
    return json.dumps(list(found.values())).encode()


def real_sra(rows: list[dict[str, str]]) -> Callable[[Path], None]:
    named = {"question": "question", "reference_answer": "reference_answer", "student_answer": "answer"}
    five = {"correct": 0, "contradictory": 1, "incorrect": 3}
    return hub("train", [{"id": row["item_id"], **{name: row[key] for name, key in named.items()},
                          "label": five[row["label"]]} for row in rows], SRA)  # fmt: skip


def real_saf(folder: Path, language: str) -> Callable[[Path], None]:
    files = {"train": "training", "test_unseen_answers": "unseen_answers"}
    named = {
        "id": "item_id",
        "question": "question",
        "reference_answer": "reference_answer",
        "provided_answer": "answer",
    }
    splits: dict[str, Rows] = {
        split: [{**{name: row[key] for name, key in named.items()}, "score": float(row["score_percent"]) / 100}
                for row in read_csv(folder / f"{file}_{language}.csv")]
        for split, file in files.items()
    }  # fmt: skip
    splits |= {"validation": [], "test_unseen_questions": []}
    return lambda place: (hub_folder(place, {"default": splits}, SAF), None)[1]


def real_mtrag(folder: Path) -> bytes:
    """Items, ratings and recorded judgements put together as InspectorRAGet has them."""
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    said: dict[str, dict[str, Any]] = {item["item_id"]: {} for item in items}
    for row in read_csv(folder / "ratings.csv"):
        by = {f"r{n}": {"value": int(row[f"r{n}"])} for n in range(1, 8) if row[f"r{n}"]}
        said[row["item_id"]][row["metric"]] = by
    for row in read_csv(folder / "judgements.csv"):
        said[row["item_id"]][row["judge"]] = {"system": {"value": float(row["verdict"])}}
    tasks, documents = {}, {}
    for item in items:
        documents |= {one["document_id"]: one for one in item["contexts"]}
        spoken = [{"speaker": turn["role"], "text": turn["content"]} for turn in item["conversation"]]
        asked = {"speaker": "user", "text": item["question"]}
        tasks[f"{item['group']}<::>{item['turn']}"] = {
            "task_id": f"{item['group']}<::>{item['turn']}", "input": [*spoken, asked],
            "contexts": [{"document_id": one["document_id"]} for one in item["contexts"]],
            "targets": [{"text": item["reference_answer"]}],
        }  # fmt: skip
    human = {name for metrics in said.values() for name, by in metrics.items() if "system" not in by}
    names = {name for metrics in said.values() for name in metrics}
    evaluations = [
        {"task_id": f"{item['group']}<::>{item['turn']}", "model_id": item["system"], "model_response": item["answer"],
         "annotations": said[item["item_id"]]} for item in items
    ]  # fmt: skip
    metrics = [{"name": name, "author": "human" if name in human else "algorithm"} for name in sorted(names)]
    whole = {"models": [], "metrics": metrics, "tasks": list(tasks.values()), "documents": list(documents.values()),
             "evaluations": evaluations}  # fmt: skip
    return json.dumps(whole).encode()


def real_pandalm(rows: list[dict[str, str]]) -> bytes:
    back = {"1": 1, "2": 2, "tie": 0}
    return json.dumps([
        {"idx": n, "cmp_key": row["systems"], "instruction": row["instruction"], "input": row["input"] or math.nan,
         "response1": row["response_1"], "response2": row["response_2"],
         **{f"annotator{k}": back[row[f"annotator{k}"]] for k in (1, 2, 3)}} for n, row in enumerate(rows)
    ]).encode()  # fmt: skip
