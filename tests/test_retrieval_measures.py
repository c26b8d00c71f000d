"""Measures, windows and means: by hand, and against trec_eval on its own example."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.goldset import GoldDocument
from judgecal.rag.questions import Collection, Question, collection_of_files
from judgecal.rag.retrieval.result import Run, by_run, measure_retrieval, read_run


def collection(grades: Mapping[str, Mapping[str, int]]) -> Collection:
    """Questions that ask for their own id, on no documents."""
    questions = tuple(Question(name, name).judged_by(named) for name, named in grades.items())
    return Collection("made-up", questions, questions_from="q")


def searched(texts: Mapping[str, str], *asked: tuple[str, str]) -> Collection:
    """Documents by their texts, and questions each with its reference."""
    documents = tuple(GoldDocument(name, None, text) for name, text in texts.items())
    questions = tuple(Question(f"q{n}", text, (), (name,)) for n, (text, name) in enumerate(asked, 1))
    return Collection("made-up", questions, documents)


def run(ranked: Mapping[str, Sequence[str]]) -> Run:
    return Run("run", "0" * 64, {name: list(ids) for name, ids in ranked.items()})


def values(found: Mapping[str, object]) -> dict[str, float]:
    return {name: round(entry.value, 4) for name, entry in found.items()}  # type: ignore[attr-defined]


def test_the_score_falls_from_one_to_a_fifth_and_then_to_nought() -> None:
    ranking = ["a", "b", "c", "d", "e", "f"]
    asked = collection({name: {name: 1} for name in ranking})
    tested = measure_retrieval(asked, run=run(dict.fromkeys(ranking, ranking)))
    assert [row.score for row in tested.ranks] == [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]
    assert [row.rank for row in tested.ranks] == [1, 2, 3, 4, 5, 6]
    # (1 + 1/2 + 1/3 + 1/4 + 1/5 + 1/6) / 6: over the full ranking, not cut at k.
    assert tested.mrr.value == pytest.approx(sum(1 / rank for rank in range(1, 7)) / 6)
    assert tested.reference_document_score.value == pytest.approx(0.5)


def test_several_reference_documents_score_as_the_best_and_recall_all() -> None:
    asked = collection({"q": {"x": 1, "b": 1, "d": 1}})
    result = measure_retrieval(asked, run=run({"q": ["a", "b", "c", "d"]}))
    # Ranks 2 and 4 of three; x is not ranked. The best is second: 0.8.
    assert result.reference_document_score.value == pytest.approx(0.8)
    assert result.recall["3"].value == pytest.approx(1 / 3)
    assert result.recall["5"].value == pytest.approx(2 / 3)
    assert result.success["3"].value == 1.0
    dcg, ideal = 1 / math.log2(3) + 1 / math.log2(5), 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert result.ndcg["5"].value == pytest.approx(dcg / ideal)


def test_grades_are_gains() -> None:
    asked = collection({"q": {"a": 0, "b": 2, "c": 1, "z": -1}})
    result = measure_retrieval(asked, k=3, run=run({"q": ["b", "u", "a", "c"]}))
    # Gains 2 at rank 1 and 1 at rank 4; ideal 2 at 1 and 1 at 2. At 3 the c is not yet there.
    ideal = 2 + 1 / math.log2(3)
    assert result.ndcg["3"].value == pytest.approx(2 / ideal)
    assert result.ndcg["5"].value == pytest.approx((2 + 1 / math.log2(5)) / ideal)
    assert result.recall["3"].value == pytest.approx(1 / 2)  # grades 0 and -1 are no references


# Of pytrec_eval 0.5, which wraps trec_eval's own code, on these files; recip_rank is in out.test too.
NDCG_CUT = {"1": 0.3333, "3": 0.2551, "5": 0.2768, "10": 0.3016, "20": 0.3525, "50": 0.3799, "100": 0.3916}
RECALL = {"1": 0.0043, "3": 0.0087, "5": 0.0173, "10": 0.0317, "20": 0.1061, "50": 0.3223, "100": 0.4980}


@pytest.mark.shared_data
def test_values_are_those_of_trec_eval(shared_data: Path) -> None:
    folder = shared_data / "trec_eval"
    expected = {line.split()[0]: line.split()[2] for line in (folder / "out.test").read_text().splitlines()}
    asked = collection_of_files(None, None, qrels=folder / "qrels.test")
    tested = measure_retrieval(asked, run=read_run(folder / "results.test"))
    assert f"{tested.mrr.value:.4f}" == expected["recip_rank"]
    assert values(tested.ndcg) == NDCG_CUT
    assert values(tested.recall) == RECALL
    found = values(tested.success)
    assert [found[k] for k in ("1", "3", "5", "10")] == [0.3333, 0.3333, 0.3333, 0.6667]
    assert tested.n_documents is None
    assert tested.mrr.reason == "3 groups: fewer than 10 give no interval"
    # Precision is recall times the number of relevant documents by k, question by question.
    ranking = by_run(read_run(folder / "results.test"), asked)
    for k in (5, 10, 15, 20, 30, 100, 200, 500):
        assert f"{(ranking.recall(k) * ranking.n_references / k).mean():.4f}" == expected[f"P_{k}"]


@pytest.mark.shared_data
def test_scifact_has_the_known_values(shared_data: Path) -> None:
    folder = shared_data / "scifact"
    asked = collection_of_files(folder / "documents.csv", folder / "queries.csv", qrels=folder / "qrels.txt")
    text = measure_retrieval(asked)
    assert (round(text.ndcg["10"].value, 3), round(text.recall["100"].value, 3)) == (0.636, 0.871)


@pytest.mark.shared_data
def test_xquad_has_the_known_values(shared_data: Path) -> None:
    folder = shared_data / "xquad"
    asked = collection_of_files(folder / "documents.csv", folder / "questions.csv")
    result = measure_retrieval(asked)
    found = {name: result.recall[name].value for name in ("1", "5")} | {"mrr": result.mrr.value}
    assert {name: round(value, 4) for name, value in found.items()} == {
        "1": 0.9185,
        "5": 0.9857,
        "mrr": 0.9481,
    }
    first = result.recall["1"]
    assert (first.n, first.n_expected, first.n_groups) == (1190, 1190, 240)
    assert first.method == "Wilson, effective n, t(239)"
    names = [row.name for row in result.windows]
    assert names == [*(f"{start:05d}_00110" for start in range(0, 1100, 110)), "01100_00090"]
    total = sum(row.n * row.score for row in result.windows)
    assert total / 1190 == pytest.approx(result.reference_document_score.value)


def test_ties_go_by_the_corpus() -> None:
    texts = {"first": "sun sky", "twin": "sun sky", "other": "rain", "more": "wind", "last": "snow"}
    asked = searched(texts, ("sun", "twin"), ("rain", "other"), ("x", "more"))
    tested = measure_retrieval(asked, k=3)
    # q3 shares no word with anything: all five score 0, and "more" is the fourth of them.
    assert [row.rank for row in tested.ranks] == [2, 1, 4]
    assert any("2 documents share their text" in note for note in tested.notes)


def test_a_question_without_reference_is_counted_and_left_out() -> None:
    asked = collection({"q1": {"a": 1}, "q2": {}, "q3": {"b": 1}})
    tested = measure_retrieval(asked, window=2, run=run({"q1": ["a"], "q2": ["a"], "q3": ["a"]}))
    assert (tested.n_questions, tested.n_without_reference) == (3, 1)
    assert (tested.mrr.value, tested.mrr.n) == (0.5, 2)
    assert [(row.name, row.n, row.score) for row in tested.windows] == [
        ("00000_00002", 1, 1.0),
        ("00002_00001", 1, 0.0),
    ]
    assert tested.ranks[1].score is None
    with pytest.raises(InputError, match="none of the 1 questions of q names a reference document"):
        measure_retrieval(collection({"q2": {}}), run=run({"q2": ["a"]}))
