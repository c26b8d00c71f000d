"""Phoenix's spans and annotations, and what is easily taken for something else in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, read_export
from tests.support.exports import FIXTURES, read_spoilt, written

ITSELF = FIXTURES / "phoenix"
CSV = [ITSELF / "frames" / name for name in ("spans.csv", "annotations.csv")]


def span(n: int = 1, parent: int | None = None, kind: str = "CHAIN", **attributes: Any) -> dict[str, Any]:
    own = {
        "span_kind": kind,
        "parent_id": parent and f"s-{parent}",
        "start_time": f"2026-11-20T09:00:{n:02}+00:00",
    }
    texts = {"input.value": "Why?", "output.value": "So."} if kind == "CHAIN" else {}
    return {**own, "context": {"trace_id": "t", "span_id": f"s-{n}"}, "attributes": {**texts, **attributes}}


def annotation(kind: str, n: int = 1, of: int = 1, **result: Any) -> dict[str, Any]:
    further = {name: result.pop(name) for name in ("identifier", "metadata", "user_id", "name", "document_position")
               if name in result}  # fmt: skip
    own = {
        "id": f"a-{n}",
        "span_id": f"s-{of}",
        "name": "correctness",
        "annotator_kind": kind,
        "identifier": "",
    }
    return {
        **own,
        "updated_at": f"2026-11-20T10:00:{n:02}+00:00",
        "metadata": {},
        "result": result,
        **further,
    }


def read(tmp_path: Path, said: list[dict[str, Any]], *spans: dict[str, Any]) -> Export:
    found = [written(tmp_path / "spans.json", {"data": list(spans) or [span()], "next_cursor": None})]
    return read_export(
        [*found, written(tmp_path / "annotations.json", {"data": said})] if said else found, "phoenix"
    )


def test_of_two_retrievers_a_documents_place_is_counted_on(tmp_path: Path) -> None:
    one = {"retrieval.documents": [{"document": {"content": "One."}}]}
    two = {
        "retrieval.documents.1.document.content": "Three.",
        "retrieval.documents.0.document.content": "Two.",
    }
    spans = [span(), span(2, 1, "RETRIEVER", **one), span(3, 1, "RETRIEVER", **two)]
    said = [annotation(kind, of=3, document_position=1, score=1) for kind in ("LLM", "HUMAN")]
    export = read(tmp_path, said, *spans)
    assert [context.text for context in export.items["s-1"].contexts] == ["One.", "Two.", "Three."]
    assert [(score.item_id, score.unit) for score in export.judgements] == [("s-1", "chunk:2")]
    assert export.skipped["a rating of a single context, where labels are of whole items"] == 1


def test_a_documents_place_that_is_none_is_named_and_an_empty_cell_is_no_place(tmp_path: Path) -> None:
    documents = span(2, 1, "RETRIEVER", **{"retrieval.documents": [{"document.content": "One."}]})
    said = [
        annotation("LLM", n, of=2, document_position=place, score=1)
        for n, place in enumerate(("x", -1, 7, ""))
    ]
    export = read(tmp_path, said, span(), documents)
    assert [(score.item_id, score.unit) for score in export.judgements] == [("s-2", "item")]
    assert export.skipped == {
        "an annotation of a document that does not tell its place": 2,
        "a score of a context that the item does not have": 1,
    }


def test_evaluators_of_one_name_differ_by_their_identifier(tmp_path: Path) -> None:
    said = [
        annotation("LLM", n, score=n, identifier=identifier) for n, identifier in enumerate(("", "b", "b"))
    ]
    export = read(tmp_path, said)
    assert [(one.by, one.repeat) for one in export.judgements] == [
        ("correctness", 0), ("correctness (b)", 0), ("correctness (b)", 1),
    ]  # fmt: skip
    export = read(tmp_path, [annotation("LLM", score=1, identifier="only")])
    assert [one.by for one in export.judgements] == ["correctness"]


def test_who_gave_a_score_is_told_by_the_kind_and_never_by_the_name(tmp_path: Path) -> None:
    said = [
        annotation("HUMAN", 1, score=1, name="llm judge", user_id="u-1"),
        annotation("LLM", 2, score=0, name="human"),
        annotation("CODE", 3, score=0, name="human"),
        annotation("ROBOT", 4, score=0),
    ]
    export = read(tmp_path, said)
    assert [(one.name, one.by) for one in export.ratings] == [("llm judge", "u-1")]
    assert [(one.by, one.repeat) for one in export.judgements] == [("human", 0), ("human", 1)]
    assert export.skipped == {"an annotation of the kind ROBOT": 1}


def test_under_one_name_all_values_are_scores_or_all_are_labels(tmp_path: Path) -> None:
    both = [
        annotation("HUMAN", 1, label="good", score=1, user_id="a"),
        annotation("LLM", 2, label="bad", score=0),
    ]
    export = read(tmp_path, both)
    assert [one.value for one in (*export.ratings, *export.judgements)] == [1, 0]
    export = read(tmp_path, [*both, annotation("HUMAN", 3, label="good", user_id="b")])
    assert [one.value for one in (*export.ratings, *export.judgements)] == ["good", "good", "bad"]


def test_what_could_not_be_read_of_a_judge_is_unscored(tmp_path: Path) -> None:
    said = [annotation("LLM", 1, label="NOT_PARSABLE", score=0), annotation("LLM", 2, explanation="nothing")]
    export = read(tmp_path, said)
    assert [(one.value, one.error) for one in export.judgements] == [
        (None, "the judge's reply could not be read"), (None, "no verdict was recorded"),
    ]  # fmt: skip


def test_an_annotation_of_a_trace_is_of_its_root(tmp_path: Path) -> None:
    said = annotation("LLM", score=1)
    del said["span_id"]
    export = read(tmp_path, [{**said, "trace_id": "t"}], span(), span(2, 1))
    assert [one.item_id for one in export.judgements] == ["s-1"]


def test_a_step_with_annotations_is_an_item_and_one_without_is_not(tmp_path: Path) -> None:
    export = read(
        tmp_path,
        [annotation("HUMAN", of=2, score=1, user_id="a")],
        span(),
        span(2, 1),
        span(3, 1),
        span(3, 1),
    )
    assert list(export.items) == ["s-1", "s-2"]
    assert export.skipped == {
        "a span within a trace, without annotations": 1,
        "a span that stands there more than once": 1,
    }


def test_nested_attributes_are_read_as_flat_ones(tmp_path: Path) -> None:
    attributes = {"input": {"value": json.dumps({"question": "Why?"}), "mime_type": "application/json"},
                  "output": {"value": "So."}, "llm": {"model_name": "small"}}  # fmt: skip
    item = read(tmp_path, [], span(kind="LLM", **attributes)).items["s-1"]
    assert (item.question, item.answer, item.system) == ("Why?", "So.", "small")


def test_annotations_alone_are_refused_with_what_is_missing() -> None:
    with pytest.raises(InputError, match="get_spans_dataframe"):
        read_export(CSV[1:], "phoenix")


def test_what_is_of_another_type_than_it_should_be_is_refused_or_counted(tmp_path: Path) -> None:
    listed = {"retrieval.documents": [{"document": {"content": "One.", "score": 0.5}}]}
    flat = {"retrieval.documents.0.document.content": "Two."}
    whole = {
        "spans": [span(**{"input.mime_type": "application/json"}), span(2, 1, "RETRIEVER", **listed),
                  span(3, 1, "RETRIEVER", **flat)],
        "annotations": [annotation("HUMAN", label="a", score=1, user_id="u", metadata={"model": "m"}),
                        annotation("LLM", 2, of=2, document_position=0, label="a", identifier="i")],
    }  # fmt: skip
    assert read_spoilt(tmp_path, "phoenix", {f"{name}.json": rows for name, rows in whole.items()}) > 50
