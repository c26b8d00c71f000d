"""Which column is what: by an option, by a file beside a table that we wrote, by its usual name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.tables.columns import OF_ITEMS, USUAL, Columns, beside, write_beside
from tests.support.command import Run

USUAL_HEADER = (
    "item_id",
    "group",
    "question",
    "answer",
    "reference",
    "reference_answer",
    "contexts",
    "system",
    "verdict",
)
ALL_USUAL = Columns(
    "question", "answer", item="item_id", group="group", reference="reference_answer", contexts=("contexts",),
    system="system", verdict="verdict",
)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (Columns(usual=True), ALL_USUAL),
        (Columns("q", "a"), Columns("q", "a")),  # what Python code names is all there is
        # a column that an option takes for something else is not taken by its usual name
        (
            Columns(reference="answer", tags=("system",), item="group", answer="reference", usual=True),
            Columns(
                "question", "reference", reference="answer", tags=("system",), item="group", contexts=("contexts",),
                verdict="verdict",
            ),
        ),
        # items of fields alone do without question and answer; the star of an answer is the system's name
        (
            Columns(fields=(("policy", "text"),), item="item_id", contexts=("c",), usual=True),
            Columns(
                fields=(("policy", "text"),), item="item_id", contexts=("c",), group="group", system="system",
                reference="reference_answer", verdict="verdict",
            ),
        ),
        (
            Columns("question", "answer_*", usual=True),
            Columns(
                "question", "answer_*", item="item_id", group="group", reference="reference_answer",
                contexts=("contexts",), verdict="verdict",
            ),
        ),
    ],
)  # fmt: skip
def test_what_no_option_names_has_the_usual_name(typed: Columns, found: Columns) -> None:
    assert typed.resolved(USUAL_HEADER, only=USUAL) == found


def test_only_what_is_asked_for_is_looked_for() -> None:
    assert Columns(usual=True).resolved(USUAL_HEADER, only=("answer",)) == Columns(answer="answer")
    assert Columns(usual=True).resolved(USUAL_HEADER).verdict is None
    assert set(OF_ITEMS) == set(USUAL) - {"verdict"}


def test_a_file_beside_a_table_says_what_its_header_does_not(tmp_path: Path) -> None:
    table, header = tmp_path / "out.csv", ("q", "a", "r", "question", "verdict", "policy text")
    named = Columns(
        "q",
        "a",
        reference="r",
        fields=(("policy", "policy text"),),
        reference_separator="|",
        verdict="verdict",
    )
    write_beside(table, named, header)
    assert json.loads(beside(table).read_text())["schema"] == 1
    assert Columns(usual=True).resolved(header, table, only=USUAL) == named
    assert named.untold(header, table) == [] and named.untold(header)[:4] == [
        "--question",
        "q",
        "--answer",
        "a",
    ]
    typed = Columns("question", usual=True).resolved(header, table, only=USUAL)
    assert (typed.question, typed.answer) == ("question", "a")  # an option goes first
    fewer = Columns(usual=True).resolved(("a", "question"), table)
    assert (fewer.question, fewer.answer, fewer.reference) == (
        "question",
        "a",
        None,
    )  # what the table has no more
    write_beside(table, Columns("question", "answer"), ("question", "answer"))
    assert not beside(table).exists()
    for content, message in (
        ('{"qestion": "q"}', "did you mean question"),
        ('{"schema": 2}', "newer"),
        ("[]", "object"),
    ):
        beside(table).write_text(content)
        with pytest.raises(InputError, match=message):
            Columns(usual=True).resolved(header, table)


def test_a_judged_table_needs_no_options_again(judgecal: Run, workspace_dir: Path) -> None:
    rows = [f"q{n},{'right' if n % 3 else 'wrong'},right,old {n}" for n in range(60)]
    (workspace_dir / "answers.csv").write_text("\n".join(["q,a,r,verdict", *rows]) + "\n", encoding="utf-8")
    assert judgecal("score", "--judge", "correctness_v3@embedded", "--name", "first").code == 0
    assert judgecal("select", "first", "--allow-below-floor", "--allow-unconfirmed").code == 0
    options = (
        "--lock",
        "judge.lock.json",
        "--question",
        "q",
        "--answer",
        "a",
        "--reference",
        "r",
        "-o",
        "out.csv",
    )
    judged = judgecal("judge", "answers.csv", *options, "--json")
    assert json.loads(judged.out)["headline"]["next"] == "judgecal rate out.csv --lock judge.lock.json"
    rated = json.loads(judgecal("rate", "out.csv", "--lock", "judge.lock.json", "--json").out)
    assert (rated["columns"], rated["typed"]) == (
        {"question": "q", "answer": "a", "verdict": "verdict_2"},
        {},
    )
    following = rated["headline"]["next"].split()
    assert "--question" not in following
    assert judgecal(*following[1:]).code == 0
    assert "right" in (workspace_dir / "sheet.csv").read_text()  # the reference that the judge saw
    again = judgecal("judge", "out.csv", "--lock", "judge.lock.json", "-o", "again.csv")
    assert (again.code, json.loads(beside(workspace_dir / "again.csv").read_text())["verdict"]) == (
        0,
        "verdict_3",
    )
