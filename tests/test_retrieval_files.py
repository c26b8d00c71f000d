"""Reading collections and runs: each thing that is wrong is named, and nothing leaves n in silence."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.rag.questions import Collection, collection_of_files, read_qrels
from judgecal.rag.retrieval.result import measure_retrieval, read_run

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


def files(
    folder: Path, docs: Iterable[Sequence[str]] = DOCUMENTS, asked: Iterable[Sequence[str]] = QUESTIONS
) -> Collection:
    return collection_of_files(documents(folder, docs), questions(folder, asked))


def read(folder: Path, *rows: Iterable[Sequence[str]], **more: Iterable[Sequence[str]]) -> Any:
    return measure_retrieval(files(folder, *rows, **more))


def test_a_reference_document_that_the_corpus_lacks_scores_nought_and_is_named(tmp_path: Path) -> None:
    result = read(tmp_path, DOCUMENTS[:2])
    # Two documents and BM25's floor of idf: "rain" stands in half of them and weighs nothing, so q2's comes
    # second by a tie. (1 + 0.8 + 0) / 3.
    assert result.reference_document_score.value == pytest.approx(0.6)
    assert result.reference_document_score.n == 3
    assert result.n_unfindable == 1
    assert any("3 questions name 1 reference documents that the corpus lacks (d3)" in n for n in result.notes)


def test_a_question_with_another_reference_is_not_lost(tmp_path: Path) -> None:
    result = read(tmp_path, asked=[("q1", "sun?", '["d1", "gone"]'), *QUESTIONS[1:]])
    assert result.reference_document_score.value == 1.0
    assert result.recall["1"].value == pytest.approx((0.5 + 1 + 1) / 3)
    assert result.n_unfindable == 0


def test_empty_documents_are_named_and_stay_in_the_corpus(tmp_path: Path) -> None:
    result = read(tmp_path, [*DOCUMENTS, ("d4", ""), ("d5", "  ")])
    assert result.n_documents == 5
    assert "2 of 5 documents are empty, and no search can find them: d4, d5" in result.notes


def test_an_id_with_two_texts_is_an_error_and_with_one_text_is_said(tmp_path: Path) -> None:
    result = read(tmp_path, [*DOCUMENTS, DOCUMENTS[0], DOCUMENTS[0]])
    assert result.n_documents == 3
    assert any("2 rows repeat a document with the same text and count once: d1" in n for n in result.notes)
    with pytest.raises(InputError, match=r"documents\.csv:5: document 'd1' has another text than at .*csv:2"):
        read(tmp_path, [*DOCUMENTS, ("d1", "the moon")])


def test_a_document_without_id_and_a_question_without_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"documents\.csv:3: document_id is empty"):
        read(tmp_path, [DOCUMENTS[0], ("", "no id")])
    with pytest.raises(InputError, match=r"questions\.csv:2: column 'question': the question is empty"):
        read(tmp_path, asked=[("q1", " ", "d1")])
    with pytest.raises(InputError, match="question 'q1' has another text before"):
        read(tmp_path, asked=[QUESTIONS[0], ("q1", "moon?", "d2")])


def test_a_question_on_several_lines_has_several_references(tmp_path: Path) -> None:
    found = files(tmp_path, asked=[*QUESTIONS, ("q1", "sun?", "d2")])
    assert found.questions[0].reference_documents == ("d1", "d2")
    assert len(found.questions) == 3


def test_qrels_in_both_forms_and_their_faults(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q1 0 d1 2\nq1\t0\td2\t0\n\nq9 0 d1 1\n")
    assert read_qrels(path) == {"q1": {"d1": 2, "d2": 0}, "q9": {"d1": 1}}
    beir = tmp_path / "test.tsv"
    beir.write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert read_qrels(beir) == {"q1": {"d1": 1}}
    found = collection_of_files(documents(tmp_path), questions(tmp_path), qrels=path)
    assert found.questions[0].grades == {"d1": 2, "d2": 0}
    assert (
        "1 of 2 questions of the qrels are not in questions.csv, so we could not ask them: q9" in found.notes
    )
    path.write_text("q1 0 d1 1\nq1 0 d1 0\nq1 d2\n")
    with pytest.raises(InputError) as told:
        read_qrels(path)
    assert ["qrels:2" in told.value.problems[0], "qrels:3" in told.value.problems[1]] == [True, True]


def test_a_trec_run_is_sorted_as_trec_eval_sorts_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.run"
    path.write_text("q1 Q0 a 1 1.5 t\nq1 Q0 b 2 1.5 t\nq1 Q0 c 3 9 t\nq1 Q0 d 4 1.50000000001 t\n")
    run = read_run(path)
    assert run.ranked == {"q1": ["c", "d", "b", "a"]}  # in single precision d ties with a and b
    path.write_text("q1 Q0 a 1 1.5 t\nq1 Q0 a 2 1.4 t\nq1 Q0 b high t\n")
    with pytest.raises(
        InputError, match=r"(?s)run:2: question q1 has document a twice.*run:3: not `question Q0"
    ):
        read_run(path)


def test_what_of_a_run_does_not_meet_is_said(tmp_path: Path) -> None:
    path = tmp_path / "mine.run"
    path.write_text("q1 Q0 x 1 2 t\nq1 Q0 d1 2 1 t\nq8 Q0 d1 1 1 t\n")
    result = measure_retrieval(files(tmp_path), run=read_run(path))
    assert result.reference_document_score.value == pytest.approx(0.8 / 3)
    assert (result.mrr.n, result.mrr.value) == (3, pytest.approx(0.5 / 3))
    assert "1 questions of the run are not in the set, so we skipped them: q8" in result.notes
    assert "1 documents of the run are not in the corpus and keep their ranks: x" in result.notes
    assert "2 of 3 questions are missing from the run and score 0: q2, q3" in result.notes
    assert "bm25" not in result.run_line and "run:mine.run@" in result.run_line
