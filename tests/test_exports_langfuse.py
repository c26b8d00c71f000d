"""Langfuse's tables, and what is easily taken for something else in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, person, read_export
from tests.support.exports import FIXTURES, accounted, read_spoilt, written

ITSELF = FIXTURES / "langfuse"
CSV = [ITSELF / "csv" / f"{name}.csv" for name in ("scores", "traces", "dataset_items", "dataset_run_items")]


def score(source: str, value: Any, kind: str = "NUMERIC", n: int = 0, **further: Any) -> dict[str, Any]:
    own = {"id": f"s-{n}", "traceId": "t-1", "observationId": None, "source": source, "name": "correctness"}
    own |= {"dataType": kind, "value": value, "stringValue": None, "comment": "", "authorUserName": None}
    return {**own, "timestamp": f"2026-11-20T09:00:{n:02}.000Z", **further}


def trace(n: int = 1, **further: Any) -> dict[str, Any]:
    own = {
        "id": f"t-{n}",
        "input": "Why?",
        "output": "So.",
        "bookmarked": False,
        "public": False,
        "name": "x",
    }
    return {**own, "version": None, "comments": [], **further}


def read(tmp_path: Path, scores: list[dict[str, Any]], *traces: dict[str, Any], **tables: Any) -> Export:
    files = [
        written(tmp_path / "scores.json", scores),
        written(tmp_path / "traces.json", list(traces) or [trace()]),
    ]
    files += [written(tmp_path / f"{name}.json", rows) for name, rows in tables.items()]
    return read_export(files, "langfuse")


def test_two_runs_over_one_dataset_item_are_two_items_of_one_group(tmp_path: Path) -> None:
    links = [{"id": f"r-{n}", "datasetItemId": "d", "traceId": f"t-{n}"} for n in (1, 2)]
    wanted = [
        {"id": "d", "input": {"question": "Why?"}, "expectedOutput": {"answer": "So."}, "status": "ACTIVE"}
    ]
    traces = [trace(1), trace(2, input="Why? Be brief.", output="No.")]
    export = read(tmp_path, [score("EVAL", 1)], *traces, links=links, wanted=wanted)
    assert list(export.items) == ["t-1", "t-2"]
    assert {(item.group, item.reference_answer) for item in export.items.values()} == {("Why?", "So.")}


def test_averages_in_the_traces_are_nobodys(tmp_path: Path) -> None:
    """A person said 1 and the judge 0; the column has the mean of both."""
    both = [score("ANNOTATION", 1, authorUserName="Ada", n=1), score("EVAL", 0, n=2)]
    export = read(tmp_path, both, trace(correctness=[0.5], **{"v1.0": ["good"]}))
    assert [one.value for one in export.ratings] == [1]
    assert [one.value for one in export.judgements] == [0]
    assert export.skipped == {"an average over people and judges in a column of the traces": 2}
    alone = read_export([written(tmp_path / "traces.json", [trace(correctness=[0.5])])], "langfuse")
    assert not alone.ratings and not alone.judgements


def test_who_gave_a_score_is_told_by_its_source_and_never_by_its_name(tmp_path: Path) -> None:
    export = read(
        tmp_path,
        [
            score("ANNOTATION", 1, name="llm_judge", authorUserName="ada@example.com", n=1),
            score("EVAL", 0, name="human", n=2),
            score("API", 0.5, name="human", n=3),
            score("OTHER", 0.5, n=4),
        ],
    )
    assert [(one.name, one.by) for one in export.ratings] == [("llm_judge", person("ada@example.com"))]
    assert [(one.by, one.value, one.repeat) for one in export.judgements] == [
        ("human", 0, 0),
        ("human", 0.5, 1),
    ]
    assert export.skipped == {"a score of the source OTHER": 1}


@pytest.mark.parametrize(
    ("kind", "value", "text", "meant"),
    [
        ("BOOLEAN", 0, "False", False),
        ("BOOLEAN", 1, None, True),
        ("BOOLEAN", True, None, True),
        ("BOOLEAN", "0", "False", False),
        ("BOOLEAN", "true", None, True),
        ("CATEGORICAL", 0, "partly", "partly"),
        ("CATEGORICAL", "partly", None, "partly"),
        ("NUMERIC", "0.25", None, 0.25),
        ("NUMERIC", 4, None, 4),
    ],
)
def test_a_value_is_what_its_type_says(
    kind: str, value: Any, text: str | None, meant: Any, tmp_path: Path
) -> None:
    export = read(tmp_path, [score("EVAL", value, kind, stringValue=text)])
    found = export.judgements[0].value
    assert (found, type(found) is bool) == (meant, kind == "BOOLEAN")


def test_what_is_no_score_of_an_answer_is_named(tmp_path: Path) -> None:
    export = read(
        tmp_path,
        [
            score("ANNOTATION", 0, "TEXT", n=1, stringValue="Nice."),
            score("ANNOTATION", 0, "CORRECTION", n=2, stringValue="Better."),
            score("EVAL", 1, n=3, traceId=None, sessionId="s"),
            score("EVAL", 1, n=4, traceId="t-9"),
            score("EVAL", 1, n=5),
            score("EVAL", 1, n=5),
            score("EVAL", None, n=6),
            score("ANNOTATION", None, n=7, authorUserName="Ada"),
        ],
    )
    assert [(one.value, one.error) for one in export.judgements] == [
        (1, None),
        (None, "no verdict was recorded"),
    ]
    assert export.skipped == {
        "a score that stands there more than once": 1,
        "a text where a score would stand": 1,
        "a corrected output, which is no score": 1,
        "a score of a session or a run, not of a trace": 1,
        "a score of an item that the export does not hold": 1,
        "a rating without a label": 1,
    }


def test_the_score_of_an_observation_is_of_that_observation(tmp_path: Path) -> None:
    steps = [{"id": f"o-{n}", "traceId": "t-1", "parentObservationId": None, "input": "What?", "output": "This."}
             for n in (1, 2)]  # fmt: skip
    rows = [score("EVAL", 1, n=1, observationId="o-1"), score("ANNOTATION", 0, n=2, observationId="o-1")]
    export = read(tmp_path, rows, observations=steps)
    assert list(export.items) == ["t-1", "o-1"]
    assert {one.item_id for one in (*export.judgements, *export.ratings)} == {"o-1"}
    assert export.skipped == {"an observation that has no score": 1}
    named = {
        **score("EVAL", 1, n=1),
        "traceId": None,
        "subject": {"kind": "observation", "id": "o-2", "traceId": "t-1"},
    }
    export = read(tmp_path, [named], observations=steps)
    assert [one.item_id for one in export.judgements] == ["o-2"] and "o-2" in export.items


def test_what_retrievers_gave_are_the_contexts_of_the_trace(tmp_path: Path) -> None:
    found = [{"pageContent": "x", "content": f"Text {n}.", "id": f"d{n}"} for n in (1, 2)]
    steps = [{"id": f"o-{n}", "traceId": "t-1", "parentObservationId": None, "type": "RETRIEVER", "input": "Why?",
              "startTime": f"2026-11-20T09:00:0{n}Z", "output": [found[n - 1]]} for n in (2, 1)]  # fmt: skip
    export = read(tmp_path, [], trace(tags=["a", "b"]), observations=steps)
    item = export.items["t-1"]
    assert [(one.text, one.document_id) for one in item.contexts] == [("Text 1.", "d1"), ("Text 2.", "d2")]
    assert item.tags == ("a", "b")


def test_the_later_rating_of_a_person_counts_whatever_the_order_of_rows(tmp_path: Path) -> None:
    rows = [score("ANNOTATION", n, n=n, authorUserName="Ada") for n in (2, 1)]
    assert [one.value for one in read(tmp_path, rows).ratings] == [2]


def test_people_without_a_name_are_said_to_be_one(tmp_path: Path) -> None:
    export = read(tmp_path, [score("ANNOTATION", 1)])
    assert any("name no person" in note for note in export.notes)


def test_scores_alone_are_refused_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="export the table `traces`"):
        read_export(CSV[:1], "langfuse")
    bare = [{key: value for key, value in score("EVAL", 1).items() if "Id" not in key} | {"projectId": "p"}]
    export = read(tmp_path, bare)
    assert any("fields=subject" in reason for reason in export.skipped)


def test_the_header_of_the_first_row_leaves_later_columns_out(tmp_path: Path) -> None:
    """The server writes no column that its first row lacks; what is left is read, and a missing cell is
    empty."""
    lines = ['"id","traceId","source","name","dataType","value"', '"s-1","t-1","EVAL","correctness","NUMERIC","1"',
             '"s-2","t-1","ANNOTATION","correctness","NUMERIC","0"']  # fmt: skip
    scores = written(tmp_path / "scores.csv", "\n".join(lines) + "\n")
    export = read_export([scores, written(tmp_path / "traces.json", [trace()])], "langfuse")
    assert (len(export.ratings), len(export.judgements), accounted(export)) == (1, 1, 3)


def test_what_is_of_another_type_than_it_should_be_is_refused_or_counted(tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]}
    whole = {
        "scores": [score("ANNOTATION", 1, "BOOLEAN", metadata={}, subject={"kind": "trace", "id": "t-1"})],
        "traces": [trace(input=chat, output={"choices": [{"message": {"content": "So."}}]}, correctness=[1])],
        "links": [{"id": "r", "datasetItemId": "d", "traceId": "t-1"}],
        "wanted": [
            {
                "id": "d",
                "input": {"question": "Why?"},
                "expectedOutput": {"answer": "So."},
                "status": "ACTIVE",
            }
        ],
    }
    assert read_spoilt(tmp_path, "langfuse", {f"{name}.json": rows for name, rows in whole.items()}) > 50


def root(n: int, **further: Any) -> dict[str, Any]:
    """As `GET /api/public/v2/observations` gives it (langfuse 5.0.4, `ObservationV2`); texts are raw
    there."""
    own = {
        "id": f"o-{n}",
        "traceId": f"t-{n}",
        "startTime": "2026-11-20T09:00:00Z",
        "parentObservationId": None,
    }
    own |= {"type": "SPAN", "isRootObservation": True, "name": "ask", "bookmarked": False, "public": False}
    return {**own, "input": '{"question": "Why?"}', "output": "So.", "version": "v1", **further}


def test_the_root_observation_stands_for_its_trace(tmp_path: Path) -> None:
    def v3(n: int, source: str, subject: dict[str, Any], value: Any) -> dict[str, Any]:
        own = {
            "id": f"s-{n}",
            "projectId": "p",
            "name": "right",
            "source": source,
            "dataType": "BOOLEAN",
            "value": value,
        }
        return {**own, "timestamp": "2026-11-20T09:00:00Z", "subject": subject, "authorUserId": "ada"}

    inner = root(1, id="o-9", parentObservationId="o-1", isRootObservation=False, output="Step.")
    found = [
        root(1),
        inner,
        root(2, output="No."),
        root(3, id="o-8", isRootObservation=False, parentObservationId="x"),
    ]
    scores = [
        v3(0, "ANNOTATION", {"kind": "trace", "id": "t-1"}, True),
        v3(1, "EVAL", {"kind": "observation", "id": "o-1", "traceId": "t-1"}, False),
        v3(2, "EVAL", {"kind": "observation", "id": "o-2"}, True),
        v3(3, "EVAL", {"kind": "observation", "id": "o-9", "traceId": "t-1"}, True),
        v3(4, "ANNOTATION", {"kind": "experiment", "id": "e"}, True),
    ]
    files = [written(tmp_path / "scores.json", {"data": scores, "meta": {"limit": 50}})]
    files.append(written(tmp_path / "observations.json", {"data": found, "meta": {"cursor": None}}))
    export = read_export(files, "langfuse")
    assert {name: (item.question, item.answer) for name, item in export.items.items()} == {
        "t-1": ("Why?", "So."), "o-9": ("Why?", "Step."), "t-2": ("Why?", "No."),
    }  # fmt: skip
    assert [(one.item_id, one.value) for one in export.ratings] == [("t-1", True)]
    assert [(one.item_id, one.value) for one in export.judgements] == [
        ("t-1", False),
        ("t-2", True),
        ("o-9", True),
    ]
    assert export.skipped["a score of a run, not of a trace"] == 1
    assert export.skipped["an observation that has no score"] == 1
