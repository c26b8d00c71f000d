"""Results as tables: every number of the JSON object is a row, in every format;
and which column of a table is what.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from judgecal.errors import InputError
from judgecal.goldset import load_gold
from judgecal.tables import read_table, write_table
from judgecal.tables.columns import USUAL, Columns, columns_file, write_columns
from tests.support.command import Run, one_object
from tests.support.every_command import PLANTED

JUDGES = ("--judge", "token_f1@local", "--judge", "exact_match@local")


@pytest.mark.parametrize("ending", ["csv", "tsv", "xlsx", "jsonl", "json", "parquet"])
def test_in_every_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    frame = pl.DataFrame({"name": ["a", "=b", None], "value": [0.5, None, 1.25], "n": [1, 2, 3]})
    write_table(path, frame)
    rows = read_table(path).rows
    assert [row.cells["name"].lstrip("'") for row in rows] == ["a", "=b", ""]
    assert [row.cells["value"] and float(row.cells["value"]) for row in rows] == [0.5, "", 1.25]
    if ending == "parquet":
        again = pl.read_parquet(path)
        assert again.equals(frame)


def test_a_file_that_is_there_stays(judgecal: Run, workspace_dir: Path) -> None:
    path = workspace_dir / "out.csv"
    path.write_text("mine")
    ran = judgecal("score", *JUDGES, "-o", "out.csv")
    assert ran.code == 2 and ran.out == "" and path.read_text() == "mine"
    assert "out.csv: is there already: add --replace to overwrite it, or name another file" in ran.err
    for place in ("out.doc", "nowhere/out.csv", "gold"):
        assert judgecal("score", *JUDGES, "-o", place).code == 2
    assert not (workspace_dir / "experiments").exists()
    assert judgecal("score", *JUDGES, "-o", "out.csv", "--replace").code == 0
    assert path.read_text().startswith("item_id,")


def test_judgements_stand_beside_labels_without_the_items_of_test(judgecal: Run, workspace_dir: Path) -> None:
    gold = load_gold(workspace_dir / "gold" / "starter")
    ran = judgecal("score", "--judge", "token_f1@local", "--split", "all", "--json", "-o", "rows.parquet")
    found = one_object(ran)["judges"][0]
    frame = pl.read_parquet(workspace_dir / "rows.parquet")
    sealed = [item for item in gold.items if item.item_id in gold.test_ids]
    assert (
        frame.height == len(gold.items) - len(sealed) and f"{len(sealed)} test items are left out" in ran.err
    )
    assert not set(frame["item_id"]) & gold.test_ids and not set(frame["question"]) & {
        one.question for one in sealed
    }
    assert all(word not in frame.write_csv() for word in PLANTED)
    assert {row["item_id"]: row["label"] for row in frame.to_dicts()} == {
        item.item_id: gold.labels[item.item_id] for item in gold.items if item.item_id not in gold.test_ids
    }
    assert found["n"] == len(gold.items) and judgecal("score", *JUDGES, "-o", "rows.parquet").code == 2
    dev = one_object(
        judgecal("score", "--judge", "token_f1@local", "--split", "dev", "--json", "-o", "dev.csv")
    )
    rows = pl.read_csv(workspace_dir / "dev.csv")
    for name, column in (("agreement", "verdict"), ("calibrated", "calibrated")):
        by_hand = 1.0 - (rows["label"] - rows[column]).abs().mean() / 100.0  # type: ignore[operator]
        assert dev["judges"][0][name]["mean_agreement"]["value"] == pytest.approx(by_hand)


def test_what_has_no_verdict_says_why(judgecal: Run, workspace_dir: Path) -> None:
    gold = load_gold(workspace_dir / "gold" / "starter")
    few = [item.item_id for item in gold.select("dev")]
    table = "".join(f"{item_id},{'' if place == 3 else 80}\n" for place, item_id in enumerate(few[:-1]))
    (workspace_dir / "verdicts.csv").write_text(f"item_id,verdict\n{table}")
    asked = ("--judgements", "verdicts.csv", "--split", "dev", "-o", "rows.csv")
    assert judgecal("agreement", *asked).code in (0, 4)
    rows = {row["item_id"]: row for row in pl.read_csv(workspace_dir / "rows.csv").to_dicts()}
    assert len(rows) == len(few) and rows[few[0]]["verdict"] == 80.0 and rows[few[0]]["error"] is None
    assert rows[few[3]]["verdict"] is None and rows[few[3]]["error"]
    assert rows[few[-1]]["error"] == "absent: no judgement is recorded"


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_what_we_wrote_comes_back_as_it_was(tmp_path: Path, ending: str) -> None:
    texts = [
        "=1+1", "'=1+1", "''=1", "  =1", "@x", "-cmd", "'-cmd'", "'quoted'", "'", "''", "- one", "+49 30",
        "plain",
    ]  # fmt: skip
    path = tmp_path / f"a{ending}"
    write_table(path, pl.DataFrame({"=name": texts, "n": range(len(texts))}))
    assert [row.cells["=name"] for row in read_table(path).rows] == texts


USUAL_HEADER = (
    "item_id", "group", "question", "answer", "reference", "reference_answer", "contexts", "system",
    "verdict",
)  # fmt: skip
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
        # items of fields alone do without question and answer
        (
            Columns(fields=(("policy", "text"),), item="item_id", contexts=("c",), usual=True),
            Columns(
                fields=(("policy", "text"),), item="item_id", contexts=("c",), group="group", system="system",
                reference="reference_answer", verdict="verdict",
            ),
        ),
    ],
)  # fmt: skip
def test_what_no_option_names_has_the_usual_name(typed: Columns, found: Columns) -> None:
    assert typed.resolved(USUAL_HEADER, only=USUAL) == found


def test_a_file_beside_a_table_says_what_its_header_does_not(tmp_path: Path) -> None:
    table, header = tmp_path / "out.csv", ("q", "a", "r", "question", "verdict", "policy text")
    named = Columns(
        "q", "a", reference="r", fields=(("policy", "policy text"),), reference_separator="|",
        verdict="verdict",
    )  # fmt: skip
    write_columns(table, named, header)
    assert json.loads(columns_file(table).read_text())["schema"] == 1
    assert Columns(usual=True).resolved(header, table, only=USUAL) == named
    typed = Columns("question", usual=True).resolved(header, table, only=USUAL)
    assert (typed.question, typed.answer) == ("question", "a")  # an option goes first
    fewer = Columns(usual=True).resolved(("a", "question"), table)
    assert (fewer.question, fewer.answer, fewer.reference) == (
        "question",
        "a",
        None,
    )  # what the table has no more
    write_columns(table, Columns("question", "answer"), ("question", "answer"))
    assert not columns_file(table).exists()
    for content, message in (
        ('{"qestion": "q"}', "did you mean question"),
        ('{"schema": 2}', "newer"),
        ("[]", "object"),
    ):
        columns_file(table).write_text(content)
        with pytest.raises(InputError, match=message):
            Columns(usual=True).resolved(header, table)


def test_a_judged_table_needs_no_options_again(judgecal: Run, workspace_dir: Path) -> None:
    rows = [f"q{n},{'right' if n % 3 else 'wrong'},right,old {n}" for n in range(60)]
    (workspace_dir / "answers.csv").write_text("\n".join(["q,a,r,verdict", *rows]) + "\n", encoding="utf-8")
    assert judgecal("score", "--judge", "correctness_v3@embedded", "--name", "first").code == 0
    assert judgecal("select", "first", "--allow-below-floor", "--allow-unconfirmed").code == 0
    options = (
        "--lock", "judge.lock.json", "--col", "question=q", "--col", "answer=a", "--col", "reference=r", "-o",
        "out.csv",
    )  # fmt: skip
    judged = judgecal("judge", "answers.csv", *options, "--json")
    assert json.loads(judged.out)["headline"]["next"] == "judgecal rate out.csv --lock judge.lock.json"
    rated = json.loads(judgecal("rate", "out.csv", "--lock", "judge.lock.json", "--json").out)
    assert rated["typed"] == []
    following = rated["headline"]["next"].split()
    assert "--col" not in following
    assert judgecal(*following[1:]).code == 0
    assert "right" in (workspace_dir / "sheet.csv").read_text()  # the reference that the judge saw
    again = judgecal("judge", "out.csv", "--lock", "judge.lock.json", "-o", "again.csv")
    assert (again.code, json.loads(columns_file(workspace_dir / "again.csv").read_text())["verdict"]) == (
        0,
        "verdict_3",
    )
