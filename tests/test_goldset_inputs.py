"""Whatever a judge may ask for comes in with an import: contexts, fields, conversations, tags, notes, and
notes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgecal.errors import InputError
from judgecal.goldset import (
    Columns,
    Imported,
    check_gold,
    import_gold,
    import_sheets,
    load_gold,
    write_sheets,
)
from judgecal.judges.protocol import lacking_inputs
from judgecal.records import Context, Turn
from judgecal.tables.columns import OF_IMPORTS, read_columns, write_columns
from judgecal.workspace import Workspace

ROWS: list[dict[str, Any]] = [
    {"q": "Q1", "a": "A1", "c": ["one", {"text": "two", "document_id": "d2", "score": 0.5}], "more": "three",
     "talk": [{"role": "user", "content": "hi"}], "policy": "be kind", "kind": "long", "easy": True, "turn": 3,
     "left": "x", "meta": {"used": "m", "unused": "n"}, "y": "yes"},
    {"q": "Q2", "a": "A2", "c": [], "more": "", "talk": [], "policy": "", "kind": ["short", "odd"], "easy": False,
     "turn": 4, "left": "x", "meta": {"used": "", "unused": "n"}, "y": "no"},
]  # fmt: skip
OPTIONS: dict[str, Any] = {
    "contexts": ("c", "more"), "conversation": "talk", "fields": (("policy", "policy"), ("used", "meta.used")),
    "tags": ("kind", "easy", "turn"), "labels": ("y",),
}  # fmt: skip


def write(place: Workspace, rows: list[dict[str, Any]], ending: str) -> Path:
    path = place.root / f"t.{ending}"
    if ending == "csv":
        flat = [
            {**row, "meta.used": row["meta"]["used"], "meta.unused": row["meta"]["unused"]} for row in rows
        ]
        cells = [{name: cell if isinstance(cell, str) else json.dumps(cell) for name, cell in row.items()
                  if name != "meta"} for row in flat]  # fmt: skip
        pl.DataFrame(cells).write_csv(path)
    elif ending == "parquet":
        blank = {"text": None, "document_id": None, "score": None}
        typed = [
            {
                **row,
                "c": [part if isinstance(part, dict) else {**blank, "text": part} for part in row["c"]],
                "kind": row["kind"] if isinstance(row["kind"], list) else [row["kind"]],
            }
            for row in rows
        ]
        pl.DataFrame(typed).write_parquet(path)
    elif ending == "json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(place: Workspace, file: Path, *, scale: str = "binary", **options: Any) -> Imported:
    columns = Columns(options.pop("question", "q"), options.pop("answer", "a"), **options)
    return import_gold(file, name="new", columns=columns, scale=scale, workspace=place, replace=True)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
def test_every_format_gives_the_same_items(
    place: Workspace, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run(place, write(place, ROWS, ending), **OPTIONS)
    one, two = load_gold("new", workspace=place).items
    assert (
        one.contexts == (Context("one"), Context("two", "d2", 0.5), Context("three")) and two.contexts == ()
    )
    assert one.conversation == (Turn("user", "hi"),) and two.conversation == ()
    assert one.fields == {"policy": "be kind", "used": "m"} and two.fields == {}
    assert one.tags == ("long", "easy", "turn=3") and two.tags == ("short", "odd", "turn=4")
    assert done.left_out == ("left", "meta.unused")
    assert "judgecal: not taken over: left, meta.unused" in capsys.readouterr().err
    for option in ("--col contexts=c --col contexts=more", "--col conversation=talk", "--col policy=policy", "--col used=meta.used",
                   "--col tag=kind --col tag=easy --col tag=turn"):  # fmt: skip
        assert option in done.gold.card.made_by


def test_what_cannot_be_read_is_told_by_its_line(place: Workspace) -> None:
    file = place.root / "t.jsonl"
    rows = [{"q": "Q", "a": "A", "c": [1, {"no": "text"}], "t": "hello", "y": 1}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError) as error:
        run(place, file, contexts=("c",), conversation="t", labels=("y",))
    told = error.value.problems
    assert len(told) == 3 and all(":1: column" in problem for problem in told)
    assert "context 1 must be a text or an object with a text, found 1" in told[0]
    assert "a conversation must be a list of objects {role, content}" in told[2]


def test_items_of_fields_alone(place: Workspace) -> None:
    file = place.root / "t.csv"
    file.write_text("id,policy,reply,y\na,P,R1,keeps\nb,P,R2,breaks\nc,,,unclear\n")
    fields = (("policy", "policy"), ("agent_reply", "reply"))
    common: dict[str, Any] = {
        "question": None,
        "answer": None,
        "fields": fields,
        "item": "id",
        "labels": ("y",),
    }
    with pytest.raises(InputError, match=r"t\.csv:4: every field is empty"):
        run(place, file, scale="nominal", **common)
    file.write_text("id,policy,reply,y\na,P,R1,keeps\nb,P,R2,breaks\n")
    gold = run(place, file, scale="nominal", **common).gold
    assert [(item.question, item.answer, item.group) for item in gold.items] == [("", "", "a"), ("", "", "b")]
    assert '"question"' not in (gold.path / "items.jsonl").read_text()
    assert lacking_inputs(("policy", "agent_reply"), gold.items[0]) == []
    assert lacking_inputs(("question", "answer_under_test"), gold.items[0]) == [
        "question",
        "answer_under_test",
    ]
    found = {problem.kind for problem in check_gold(gold)}
    assert not found & {"question_in_two_groups", "duplicate"}
    with pytest.raises(
        InputError, match=r"--col question=COLUMN is missing.*\n.*--col answer=COLUMN is missing"
    ):
        run(place, file, question=None, answer=None, labels=("y",))


def test_notes_go_with_their_labels(place: Workspace) -> None:
    file = place.root / "t.csv"
    file.write_text("q,a,x,y,nx,ny\nQ1,A,yes,no,good,\nQ2,A,,no,lost,bad\n")
    gold = run(place, file, labels=("x", "y"), notes=("nx", "ny")).gold
    notes = {(rating.rater, rating.item_id): rating.note for rating in gold.ratings}
    assert notes == {("x", "new-00001"): "good", ("y", "new-00001"): None, ("y", "new-00002"): "bad"}
    with pytest.raises(InputError, match="--col note= is given 1 times and --label 2 times"):
        run(place, file, labels=("x", "y"), notes=("nx",))
    file.write_text("id,q,a,who,x,n\n1,Q1,A,ann,yes,good\n1,Q1,A,ben,no,bad\n")
    gold = run(place, file, labels=("x",), rater="who", item="id", notes=("n",)).gold
    assert {rating.rater: rating.note for rating in gold.ratings} == {"ann": "good", "ben": "bad"}


ITEMS = "id,q,a\n1,Q1,A\n2,Q2,A\n3,Q3,A\n"


def test_without_labels_the_set_waits_for_them(place: Workspace) -> None:
    (place.root / "t.csv").write_text(ITEMS)
    done = run(place, place.root / "t.csv", item="id")
    assert (done.n_items, done.n_ratings, done.gold.card.labels_by) == (3, 0, "unknown")
    assert any("no labels yet: `judgecal gold sheet new -o labels.csv`" in note for note in done.notes)


def test_the_columns_that_options_name() -> None:
    named = read_columns(["policy=policy_text", "answer_under_test=a", "context=c", "contexts=d"])
    assert (named.fields, named.answer, named.contexts) == ((("policy", "policy_text"),), "a", ("c", "d"))
    assert read_columns(["system=s"], inputs=["system"]).fields == (("system", "s"),)
    entries = ["q", "qestion=a", "answer=a", "answer=b", "policy=x", "policy=y", "item="]
    with pytest.raises(InputError) as refused:
        read_columns(entries)
    assert str(refused.value).splitlines() == [
        "--col q: write PART=COLUMN, such as --col question=COLUMN",
        "--col qestion=a: unknown part 'qestion': did you mean question or conversation?",
        "--col answer is given twice, as a and as b: keep one",
        "--col policy is given twice, as x and as y: keep one",
        "--col item=: write PART=COLUMN, such as --col question=COLUMN",
    ]
    with pytest.raises(InputError, match=r"unknown part 'polcy': did you mean policy\?"):
        read_columns(["polcy=x"], inputs=["policy"])


def test_a_workspace_names_columns_for_all_its_tables(place: Workspace) -> None:
    """An option goes before it, a table that lacks the column has the usual one."""
    place.config_file.write_text('[columns]\nquestion = "frage"\ntag = "thema"\ntitle = "t"\n')
    named = read_columns([], takes=OF_IMPORTS, workspace=place)
    header = ["frage", "question", "answer", "thema"]
    found = named.resolved(header)
    assert (found.question, found.answer, found.tags) == ("frage", "answer", ("thema",))
    assert named.resolved(header[1:]).question == "question"
    chosen = read_columns(["question=question"], workspace=place).resolved(header)
    assert (chosen.question, chosen.tags) == ("question", ())
    write_columns(place.root / "t.csv", chosen, header)
    assert named.resolved(header, place.root / "t.csv").question == "question"
    place.config_file.write_text('[columns]\nqestion = "q"\nanswer = 3\n')
    with pytest.raises(InputError) as refused:
        read_columns([], workspace=place)
    where = f"{place.config_file}: [columns]: "
    assert str(refused.value).splitlines() == [
        f"{where}unknown key 'qestion': did you mean question or conversation?",
        f"{where}answer must be the name of a column, found 3",
    ]


def test_a_sheet_shows_the_fields_and_comes_back(place: Workspace) -> None:
    file = place.root / "t.csv"
    file.write_text("id,policy,reply\na,P,R1\nb,P,R2\n")
    fields = (("policy", "policy"), ("agent_reply", "reply"))
    gold = run(place, file, question=None, answer=None, fields=fields, item="id").gold
    sheet = place.root / "ann.csv"
    write_sheets(gold.items, sheet, name="new")
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "item_id,question,reference_answer,answer,field policy,field agent_reply,label,note"
    filled = "\n".join([lines[0], *(line[: -len(",,")] + ",yes,well" for line in lines[1:])])
    sheet.write_text(filled, encoding="utf-8")
    done = import_sheets([sheet], name="new", workspace=place)
    assert {(one.item_id, one.rater, one.label, one.note) for one in done.gold.ratings} == {
        ("a", "ann", 1.0, "well"), ("b", "ann", 1.0, "well"),
    }  # fmt: skip
    sheet.write_text(filled.replace("R1", "R9"), encoding="utf-8")
    with pytest.raises(InputError, match="has another field agent_reply than the set"):
        import_sheets([sheet], name="new", workspace=place, replace=True)
