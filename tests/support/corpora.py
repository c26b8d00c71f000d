"""Small collections for the retriever test: CSV files, and a copy of RepLiQA's form."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import datasets

DOCUMENTS = [("d1", "the sun"), ("d2", "the rain in autumn"), ("d3", "snow")]
QUESTIONS = [("q1", "sun?", "d1"), ("q2", "rain?", "d2"), ("q3", "snow?", "d3")]


def table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def documents(folder: Path, rows: Iterable[Sequence[str]] = DOCUMENTS) -> Path:
    return table(folder / "documents.csv", ("document_id", "text"), rows)


def questions(folder: Path, rows: Iterable[Sequence[str]] = QUESTIONS) -> Path:
    return table(folder / "questions.csv", ("question_id", "question", "document_id"), rows)


ROWS = [
    ("aaaa", "The sun shines.", "aaaa-q1", "What shines?", "The sun."),
    ("aaaa", "The sun shines.", "aaaa-q2", "Who sings?", "The answer is not found in the document."),
    ("bbbb", "Rain falls.", "bbbb-q1", "What falls?", "Rain"),
    ("bbbb", "Rain falls.", "bbbb-q2", "Why?", "The answer is not found in the document"),
    ("cccc", "It snows on the hills.", "cccc-q1", "Where does it snow?", "On the hills; not in the town."),
]
SCHEMA = ("document_id", "document_extracted", "question_id", "question", "answer")


def local_repliqa(folder: Path, rows: Sequence[Sequence[str]] = ROWS) -> Path:
    """A folder that `load_dataset` reads as the Hub's: a Parquet file a split."""
    (folder / "data").mkdir(parents=True)
    columns: dict[str, list[str]] = {name: [row[place] for row in rows] for place, name in enumerate(SCHEMA)}
    columns |= {name: ["x"] * len(rows) for name in ("document_topic", "document_path", "long_answer")}
    for split in ("repliqa_0", "repliqa_1"):
        datasets.Dataset.from_dict(columns).to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    return folder
