"""Small collections for the retriever test: CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

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
