"""Whatever a judge may ask for comes in with an import: contexts, fields, conversations, tags, notes, other
files, and the answers of several systems side by side.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgecal.errors import InputError
from judgecal.goldset import (
    JUDGEMENTS,
    Columns,
    Imported,
    SideTables,
    check_gold,
    import_gold,
    import_sheets,
    load_gold,
    write_sheets,
)
from judgecal.judges import lacking_inputs
from judgecal.records import Context, Turn
from judgecal.tables.columns import OF_IMPORTS, read_columns, write_beside
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


def run(
    place: Workspace, file: Path, *, beside: SideTables | None = None, scale: str = "binary", **options: Any
) -> Imported:
    columns = Columns(options.pop("question", "q"), options.pop("answer", "a"), **options)
    return import_gold(
        file, name="new", columns=columns, scale=scale, workspace=place, beside=beside, replace=True
    )


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
    assert not found & {"question_in_two_groups", "near_duplicate", "unlike_labels"}
    with pytest.raises(
        InputError, match=r"--col question=COLUMN is missing.*\n.*--col answer=COLUMN is missing"
    ):
        run(place, file, question=None, answer=None, labels=("y",))


def test_a_context_an_item(place: Workspace) -> None:
    file = place.root / "t.jsonl"
    rows = [
        {"id": "a", "q": "Q1", "a": "A", "c": ["one", "two"], "y": [1, 0], "z": "yes"},
        {"id": "b", "q": "Q2", "a": "A", "c": ["three"], "y": [1], "z": "no"},
        {"id": "c", "q": "Q3", "a": "A", "c": [], "y": [], "z": "no"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(place, file, contexts=("c",), labels=("y", "z"), item="id", chunks=True)
    assert [item.item_id for item in done.gold.items] == ["a-chunk-0", "a-chunk-1", "b-chunk-0"]
    assert [[part.text for part in item.contexts] for item in done.gold.items] == [
        ["one"],
        ["two"],
        ["three"],
    ]
    assert [item.group for item in done.gold.items] == ["Q1", "Q1", "Q2"], (
        "chunks of one answer stay together"
    )
    assert done.gold.ratings_by_rater["y"] == {"a-chunk-0": 1.0, "a-chunk-1": 0.0, "b-chunk-0": 1.0}
    assert done.gold.ratings_by_rater["z"]["a-chunk-1"] == 1.0
    assert done.skipped == {"without a context": 1} and "--chunks" in done.gold.card.made_by
    rows[0]["y"] = [1]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"t\.jsonl:1: column 'y': 1 labels for 2 contexts"):
        run(place, file, contexts=("c",), labels=("y",), chunks=True)


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
RATINGS = "id,metric,r1,r2\n1,good,4,3\n1,nice,1,1\n2,good,2,\n9,good,1,1\n"
SAID = "id,judge,verdict,reasoning\n1,j1,0.5,so\n1,j2,1,\n2,j1,,\n9,j1,1,\n"


def test_ratings_and_judgements_in_files_of_their_own(
    place: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("items.csv", ITEMS), ("ratings.csv", RATINGS), ("said.csv", SAID)):
        (place.root / name).write_text(text)
    beside = SideTables(place.root / "ratings.csv", place.root / "said.csv", (("metric", "good"),))
    done = run(place, place.root / "items.csv", beside=beside, item="id", labels=("r*",), scale="ordinal:1:4")
    assert done.gold.ratings_by_rater == {"r1": {"1": 4.0, "2": 2.0}, "r2": {"1": 3.0}}
    assert (done.n_rows, done.n_items, dict(done.judges)) == (3, 3, {"j1": 2, "j2": 1})
    told = " ".join(done.notes)
    assert "3 of 4 rows have metric=good" in told and "1 rows of ratings.csv name no item" in told
    assert "1 rows of said.csv name no item" in told
    kept = [json.loads(line) for line in (done.gold.path / JUDGEMENTS).read_text().splitlines()]
    assert kept[0] == {"item_id": "1", "judge": "j1", "verdict": "0.5", "reasoning": "so"} and len(kept) == 3
    assert "--ratings ratings.csv --judgements said.csv --where metric=good" in done.gold.card.made_by
    assert capsys.readouterr().err == ""
    with pytest.raises(
        InputError, match="--ratings names its items by their ids: name the column of the ids"
    ):
        run(place, place.root / "items.csv", beside=beside, labels=("r1",), scale="ordinal:1:4")
    nobody = SideTables(place.root / "ratings.csv", None, (("metric", "bad"),))
    with pytest.raises(InputError, match=r"no row has metric=bad \(--where\)"):
        run(place, place.root / "items.csv", beside=nobody, item="id", labels=("r1",), scale="ordinal:1:4")
    with pytest.raises(InputError, match=r"ratings\.csv:1: no column fits --label s\*"):
        run(place, place.root / "items.csv", beside=beside, item="id", labels=("s*",), scale="ordinal:1:4")


def test_judgements_are_kept_as_agreement_reads_them(place: Workspace) -> None:
    """What `agreement` would refuse is refused with the import, whose next step it is."""
    items, said = place.root / "items.csv", place.root / "said.csv"
    items.write_text(ITEMS)
    said.write_text("id,judge,verdict\n1,j,0.5\n2,j,0.5\n1,j,0.7\n")
    with pytest.raises(InputError, match=r"said\.csv:4: j judged item 1 in line 2 already"):
        run(place, items, beside=SideTables(None, said), item="id")
    said.write_text(
        "id,judge,verdict,unit,error\n1,j,0.5,chunk:0,\n1,j,0.4,chunk:1,\n2,j,,chunk:0,too long\n"
    )
    done = run(place, items, beside=SideTables(None, said), item="id")
    kept = [json.loads(line) for line in (done.gold.path / JUDGEMENTS).read_text().splitlines()]
    assert [row["unit"] for row in kept] == ["chunk:0", "chunk:1", "chunk:0"] and kept[2][
        "error"
    ] == "too long"


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
    write_beside(place.root / "t.csv", chosen, header)
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
    made = import_sheets([sheet], name="fresh", workspace=place, scale="binary").gold
    assert [dict(item.fields) for item in sorted(made.items, key=lambda one: one.item_id)] == [
        {"policy": "P", "agent_reply": "R1"}, {"policy": "P", "agent_reply": "R2"},
    ]  # fmt: skip
    sheet.write_text(filled.replace("R1", "R9"), encoding="utf-8")
    with pytest.raises(InputError, match="has another field agent_reply than the set"):
        import_sheets([sheet], name="new", workspace=place, replace=True)


SIDE_BY_SIDE = [
    {"id": 1, "q": "Q1", "ref": ["r"], "answer_a": "A1", "judge_a": True, "answer_b": "B1", "judge_b": False},
    {"id": 2, "q": "Q2", "ref": None, "answer_a": "A2", "judge_a": None, "answer_b": None, "judge_b": None},
    {"id": 3, "q": "Q3", "ref": None, "answer_a": None, "judge_a": False, "answer_b": "B3", "judge_b": True},
]


def import_wide(place: Workspace, rows: list[dict[str, Any]], **options: Any) -> Imported:
    path = place.root / "t.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    options = {"answer": "answer_*", "labels": ("judge_*",)} | options
    columns = Columns("q", options.pop("answer"), **options)
    return import_gold(path, name="new", columns=columns, scale="binary", workspace=place)


def test_an_item_of_each_system(place: Workspace) -> None:
    done = import_wide(place, SIDE_BY_SIDE, reference="ref", item="id")
    gold = done.gold
    assert [(item.item_id, item.system, item.question, item.answer) for item in gold.items] == [
        ("1-a", "a", "Q1", "A1"),
        ("1-b", "b", "Q1", "B1"),
        ("2-a", "a", "Q2", "A2"),  # b gave neither an answer nor a label there
        ("3-a", "a", "Q3", ""),
        ("3-b", "b", "Q3", "B3"),
    ]
    assert gold.items[1].reference_answers == ("r",)
    assert gold.ratings_by_rater == {"judge": {"1-a": 1.0, "1-b": 0.0, "3-a": 0.0, "3-b": 1.0}}
    assert gold.n_groups(gold.items) == 3
    assert done.notes[0].endswith("t.json: 5 answers in 3 rows, of 2 systems: a, b")
    assert "--col 'answer=answer_*' --col reference=ref --label 'judge_*'" in gold.card.made_by


def test_ids_of_its_own_and_several_raters(place: Workspace) -> None:
    rows = [{"q": "Q", "a x": "1", "b x": "2", "ann a": 1, "ann b": 0, "ben a": 1, "ben b": 1, "ann": "note"}]
    gold = import_wide(place, rows, answer="* x", labels=("ann *", "ben *"), gold_label="ben *").gold
    assert [item.item_id for item in gold.items] == ["new-00001", "new-00002"]
    # `ann` is a column of the table already, so that rater keeps the name of the pattern
    assert gold.ratings_by_rater["ann *"] == {"new-00001": 1.0, "new-00002": 0.0}
    assert gold.ratings_by_rater["ben"] == {"new-00001": 1.0, "new-00002": 1.0}
    assert gold.labels == {"new-00001": 1.0, "new-00002": 1.0}


def test_a_column_of_that_very_name_is_that_column(place: Workspace) -> None:
    gold = import_wide(place, [{"q": "Q", "answer_*": "A", "x": 1}], labels=("x",)).gold
    assert [item.answer for item in gold.items] == ["A"]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"answer": "reply_*"}, ["t.json: no column fits --col answer=reply_*: known: id, q, ref, answer_a"]),
        ({"answer": "*_*"}, ["--col answer=*_*: write one *"]),
        (
            {"labels": ("grade_*", "judge_a"), "system": "id"},
            [
                "--col system=id: --col answer=answer_* names the systems already",
                "no column 'grade_a' beside answer_*",
                "no column 'grade_b' beside answer_*",
                "write one * in judge_a too",
            ],
        ),
        ({"reference": "reff"}, ["t.json: unknown column 'reff': did you mean ref?"]),
        ({"answer": "answer_a", "labels": ("grade_*",)}, ["t.json: no column fits --label grade_*"]),
    ],
)
def test_options_that_do_not_fit(place: Workspace, options: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(InputError) as error:
        import_wide(place, SIDE_BY_SIDE, **options)
    assert len(error.value.problems) == len(messages)
    assert all(message in problem for message, problem in zip(messages, error.value.problems, strict=True))
    assert list(place.gold.iterdir()) == []


def test_a_problem_names_the_row_that_it_came_from(place: Workspace) -> None:
    with pytest.raises(InputError, match=r"t\.json:row 2: column 'judge': 'maybe' is none of"):
        import_wide(place, [SIDE_BY_SIDE[0], SIDE_BY_SIDE[1] | {"judge_b": "maybe"}])
