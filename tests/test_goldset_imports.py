"""Importing a table as a gold set: what it says is kept, what is wrong is listed, and never half a set; of a large
one little of each row is held, and what is said is bounded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest

from judgecal.errors import InputError
from judgecal.goldset import (
    Card,
    Columns,
    Imported,
    check_gold,
    import_gold,
    load_gold,
    read_mapping,
    split_counts,
    write_gold,
)
from judgecal.records import Context, Item, Rating, Turn
from judgecal.scale import Scale
from judgecal.workspace import Workspace
from tests.support.command import Run
from tests.support.hub import hub_folder, keep_off_the_hub

WIDE = "id,q,a,ref,x,y,final\n1,Q1,A1,r | s,yes,no,yes\n2,Q2,,,no,,no\n"


def table(place: Workspace, text: str, name: str = "t.csv") -> Path:
    path = place.root / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def run(place: Workspace, text: str | None = None, *, file: str = "t.csv", **options: Any) -> Imported:
    """Import a table of this text, or of what the file holds already."""
    path = place.root / file if text is None else table(place, text, file)
    of_import = ("name", "scale", "mapping", "pass_at", "replace", "force", "beside", "progress")
    named = {"name": "new", "scale": "binary"} | {
        key: options.pop(key) for key in of_import if key in options
    }
    columns = Columns(options.pop("question", "q"), options.pop("answer", "a"), **options)
    return import_gold(path, columns=columns, workspace=place, **named)


def refused(place: Workspace, text: str, **options: Any) -> tuple[str, ...]:
    """The problems; and nothing was written, not even beside the place."""
    before = sorted(path.name for path in place.gold.rglob("*"))
    with pytest.raises(InputError) as error:
        run(place, text, **options)
    assert sorted(path.name for path in place.gold.rglob("*")) == before
    return error.value.problems


def test_wide_columns(place: Workspace) -> None:
    gold = run(
        place, WIDE, labels=("x", "y", "final"), gold_label="final", reference="ref",
        reference_separator=" | ",
    ).gold  # fmt: skip
    assert [item.item_id for item in gold.items] == ["new-00001", "new-00002"]
    assert [item.reference_answers for item in gold.items] == [("r", "s"), ()]
    assert [item.group for item in gold.items] == ["Q1", "Q2"]
    assert gold.items[1].answer == ""
    assert gold.raters == ("final", "x", "y")
    assert gold.ratings_by_rater["y"] == {"new-00001": 0.0}, "an empty cell is a missing rating"
    assert gold.labels == {"new-00001": 1.0, "new-00002": 0.0}
    card = gold.card
    assert (card.source, card.sampling, card.licence) == ("t.csv", "unknown", "unknown: see the source")
    assert card.made_by.startswith(
        "judgecal gold import t.csv --as new --col question=q --col answer=a --col reference=ref"
    )
    assert "--reference-separator ' | '" in card.made_by and str(place.root) not in card.made_by
    assert card.raters["gold"].who == "the adjudicated label: column final of t.csv"
    assert (gold.path / "README.md").exists()


def test_long_rows_share_an_item(place: Workspace) -> None:
    rows = "id,q,a,who,label\n1,Q,A,ann,3\n1,Q,A,ben,4\n2,Q,B,ann,\n2,Q,B,,\n2,Q,B,gold,2\n"
    gold = run(place, rows, labels=("label",), rater="who", item="id", scale="ordinal:0:4").gold
    assert gold.ratings_by_rater == {"ann": {"1": 3.0}, "ben": {"1": 4.0}}
    assert gold.labels == {"1": 3.5, "2": 2.0}
    gold = run(place, rows, name="other", labels=("label",), rater="who", scale="ordinal:0:4").gold
    assert [item.item_id for item in gold.items] == ["other-00001", "other-00002"]
    assert gold.labels == {"other-00001": 3.5, "other-00002": 2.0}


def test_long_rows_that_contradict_each_other(place: Workspace) -> None:
    rows = "id,q,a,who,label\n1,Q,A,ann,1\n1,Q,B,ben,0\n1,Q,A,ann,1\n2,Q,A,,1\n"
    found = refused(place, rows, labels=("label",), rater="who", item="id")
    assert "t.csv:3: item '1' has another answer than in line 2" in found[0]
    assert "t.csv:4: a second label of 'ann' for item '1', the first is in line 2: keep one" in found[1]
    assert "t.csv:5: column 'who': no rater for this label" in found[2]
    assert len(found) == 3


def test_every_problem_of_the_rows_at_once(place: Workspace) -> None:
    rows = 'id,q,a,g,x,y\n1,Q,A,g,yes,maybe\n1,"Q\nQ",A,g,no,no\n,Q,A,g,,2\n4, ,A,,yes,yes\n'
    found = refused(place, rows, labels=("x", "y"), item="id", group="g")
    assert [problem.split(": ", 1)[0].rsplit("/", 1)[-1] for problem in found] == [
        "t.csv:2", "t.csv:3", "t.csv:5", "t.csv:5", "t.csv:6", "t.csv:6",
    ]  # fmt: skip
    text = "\n".join(found)
    assert text.count("give --map FROM=TO for it") == 2
    assert "column 'y': 'maybe' is none of yes/no" in text
    assert "item '1' is in line 2 already: ids must differ" in text
    assert "column 'id': the item id is empty" in text
    assert "the question is empty" in text and "column 'g': the group is empty" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ("x", "x")}, "'x' is named 2 times: name it once"),
        ({"labels": ("x", "y"), "rater": "final"}, "takes one --label column, found 2"),
        ({"labels": ("gold",)}, "--label gold: 'gold' is kept for the adjudicated label"),
        (
            {"labels": ("x",), "reference_separator": "|"},
            "--reference-separator stands within --col reference=",
        ),
        (
            {"labels": ("x",), "reference": "ref", "reference_separator": ""},
            "--reference-separator stands within --col reference=",
        ),
        ({"labels": ("xx",)}, "t.csv:1: unknown column 'xx'"),
        ({"labels": ("x",), "question": "Q", "answer": "fnal"}, "unknown column 'fnal': did you mean final?"),
        ({"labels": ("x",), "scale": "bnary"}, "unknown scale 'bnary'"),
        ({"labels": ("x",), "name": "../x"}, "gold set name '../x': use letters"),
        ({"labels": ("x",), "scale": "nominal", "pass_at": 1}, "a nominal scale has no order"),
        ({"labels": ("x",), "scale": "fraction", "pass_at": 75}, "--pass-at 75 lies outside 0..1"),
        ({"labels": ("x",), "file": "t.parquet"}, "t.parquet: cannot be read as Parquet ("),
        ({"labels": ("ref",), "mapping": {"r | s": ""}}, "t.csv:1: no row has a label in ref"),
    ],
)
def test_options_that_cannot_be(place: Workspace, options: dict[str, Any], message: str) -> None:
    assert any(message in problem for problem in refused(place, WIDE, **options))


def test_the_starter_is_never_written(tmp_path: Path) -> None:
    starter = Workspace(tmp_path, tmp_path / "experiments", is_starter=True)
    with pytest.raises(InputError, match=r"gold import needs a workspace of your own.*judgecal init"):
        run(starter, WIDE, labels=("x",))
    assert not (tmp_path / "gold").exists()


def test_map_comes_before_the_scale(place: Workspace) -> None:
    rows = "q,a,x\nQ1,A,good\nQ2,A,bad\nQ3,A,unsure\nQ4,A, yes \n"
    done = run(place, rows, labels=("x",), mapping={"good": "yes", "bad": "no", "unsure": "", "awful": "no"})
    assert list(done.gold.labels.values()) == [1.0, 0.0, 1.0]
    assert done.notes == (
        "--map awful=no: no label cell holds that",
        "1 of 4 items have no gold label (no rating, or a tie): see `gold check`",
    )
    assert "--map good=yes" in done.gold.card.made_by


def test_read_mapping() -> None:
    assert read_mapping(["a=yes", "b = c=no", "d="]) == {"a": "yes", "b = c": "no", "d": ""}
    with pytest.raises(InputError) as error:
        read_mapping(["a", "b=yes", "b=no"])
    assert "--map a: write FROM=TO" in error.value.problems[0]
    assert "--map b=no: 'b' is mapped to 'yes' already" in error.value.problems[1]


def test_fractions_are_stored_as_percentages(place: Workspace) -> None:
    gold = run(place, "q,a,x\nQ1,A,0.07\nQ2,A,1\n", scale="fraction", labels=("x",), pass_at=0.29).gold
    assert list(gold.labels.values()) == [7.0, 100.0]
    assert str(gold.scale) == "percentage" and gold.scale.pass_at == 29.0
    assert not gold.scale.from_fraction
    assert (
        "lies outside 0..1" in refused(place, "q,a,x\nQ,A,7\n", name="b", scale="fraction", labels=("x",))[0]
    )


def test_nominal_collects_its_categories(place: Workspace) -> None:
    gold = run(place, "q,a,x\nQ1,A,b\nQ2,A,a\n", scale="nominal", labels=("x",)).gold
    assert gold.scale.categories == ("a", "b")
    assert 'categories = ["a", "b"]' in (gold.path / "card.toml").read_text(encoding="utf-8")


def test_rows_without_lines_are_named_as_rows(place: Workspace) -> None:
    rows = [{"i": 1, "q": "Q", "a": "A", "x": "yes"}, {"i": 1, "q": "Q", "a": "A", "x": "perhaps"}]
    found = refused(place, json.dumps(rows), file="t.json", labels=("x",), item="i")
    assert "t.json:row 2: item '1' is in row 1 already" in found[0]
    assert "t.json:row 2: column 'x': 'perhaps' is none of" in found[1]
    found = refused(place, '[{"q": "Q", "a": "A", "x": null}]', file="t.json", labels=("x",))
    assert found[0].endswith("t.json: no row has a label in x: fill some in")
    long = [{"q": "Q", "a": "A", "who": "ann", "x": 1}] * 2
    found = refused(place, json.dumps(long), file="t.json", labels=("x",), rater="who")
    assert "t.json:row 2: a second label of 'ann' for item 'new-00001', the first is in row 1" in found[0]


def test_the_card_of_a_data_set(place: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_off_the_hub(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    text = datasets.Value("string")
    features = {"q": text, "a": text, "x": datasets.ClassLabel(names=["correct", "odd", "incorrect"])}
    rows = [{"q": "Q1", "a": "A", "x": 0}, {"q": "Q2", "a": "B", "x": 2}, {"q": "Q3", "a": "C", "x": -1}]
    hub_folder(tmp_path / "org" / "name", {"default": {"train": rows}}, features)
    options: dict[str, Any] = {"columns": Columns("q", "a", labels=("x",)), "scale": "binary"}
    done = import_gold("hf:org/name", name="new", workspace=place, **options)
    card = done.gold.card
    assert list(done.gold.labels.values()) == [1.0, 0.0] and len(done.gold.items) == 3
    assert card.source.startswith("hf:org/name (3 rows, fingerprint ")
    assert card.licence == "unknown: see the source"
    assert card.made_by.startswith("judgecal gold import hf:org/name --as new --col question=q")
    assert card.raters["x"].who == "column x of hf:org/name"


def test_a_set_is_replaced_only_on_demand_and_keeps_what_people_wrote(place: Workspace) -> None:
    first = run(place, WIDE, labels=("x",), item="id").gold
    assert "is there already: choose another name, or add --replace" in refused(place, WIDE, labels=("x",))[0]
    card = first.path / "card.toml"
    text = (
        card.read_text(encoding="utf-8")
        .replace("seed = 0", "seed = 9")
        .replace("unknown: see the source", "MIT")
    )
    card.write_text(text.replace('who = "column x of t.csv"', 'who = "Xenia"'), encoding="utf-8")
    (first.path / "RUBRIC.md").write_text("rules", encoding="utf-8")
    done = run(place, WIDE + "3,Q3,A3,,yes,,\n", labels=("x", "y"), item="id", replace=True)
    gold = done.gold
    assert len(gold.items) == 3 and gold.card.splits.seed == 9 and gold.card.licence == "MIT"
    assert gold.card.raters["x"].who == "Xenia" and gold.card.raters["y"].who == "column y of t.csv"
    assert (gold.path / "RUBRIC.md").read_text(encoding="utf-8") == "rules"
    assert any("kept from the replaced card" in note and "splits" in note for note in done.notes)
    assert [path.name for path in place.gold.iterdir()] == ["new"], "nothing is left beside the set"


def test_a_failed_replacement_keeps_the_old_set(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    old = run(place, WIDE, labels=("x",)).gold
    refused(place, WIDE + "3,Q,A,,perhaps,,\n", labels=("x",), replace=True)
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise OSError("disk full")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="disk full"):
        run(place, WIDE, labels=("y",), replace=True)
    monkeypatch.undo()
    assert load_gold("new", workspace=place) == old
    assert [path.name for path in place.gold.iterdir()] == ["new"]


def test_write_gold_round_trip(place: Workspace) -> None:
    item = Item(
        "i",
        "g",
        "q\n?",
        "",
        reference_answers=("r", "s"),
        system="sys",
        reference_documents=("d",),
        contexts=(Context("", "d", 0.0), Context("c")),
        tags=("t",),
        conversation=(Turn("user", "hi"), Turn("assistant", "")),
        fields={"tone": "formal", "empty": ""},
        expect={"include": ["x"], "refuse": True},
        inclusion_probability=0.25,
    )
    card = Card(
        "odd", Scale.parse("ordinal:1:5", pass_at=4), source='a "quoted"\\path\x7f', anchors={"5": "best"}
    )
    rating = Rating("i", "rater one", 5.0, "note", "cites nothing")
    gold = write_gold(card, [item], [rating], workspace=place)
    assert gold.items == (item,) and gold.ratings == (rating,)
    assert gold.card == card
    with pytest.raises(InputError, match=r"items\.jsonl:1: the set is empty"):
        write_gold(card, [], [], workspace=place, replace=True)
    assert load_gold("odd", workspace=place) == gold


# --- labels on a scale that is not theirs


def graded(labels: Sequence[object]) -> str:
    return "q,a,x\n" + "".join(f"Q{place},A,{label}\n" for place, label in enumerate(labels))


@pytest.mark.parametrize(
    ("labels", "scale", "fits"),
    [
        ([0, 1, 2, 3, 4, 5] * 2, "percentage", "ordinal:0:5"),
        ([1, 2, 3, 4, 5] * 2, "percentage", "ordinal:1:5"),
        ([0, 0.5, 2.5, 5] * 3, "percentage", "points:0:5:0.5"),
        ([0.13, 0.5, 0.82] * 4, "percentage", "fraction"),
        ([0, 1] * 6, "percentage", "binary"),
        ([0, 1, 2] * 4, "ordinal:0:10", "ordinal:0:2"),
    ],
)
def test_labels_in_a_small_part_of_their_scale_are_refused(
    place: Workspace, labels: list[object], scale: str, fits: str
) -> None:
    problem = refused(place, graded(labels), scale=scale, labels=("x",))[0]
    assert (
        f"a small part of the scale {scale}" in problem
        and f"the scale {fits} fits them: give that --scale" in problem
    )
    gold = run(place, graded(labels), scale=scale, labels=("x",), force=True).gold
    assert "narrow_labels" in gold.card.explained and gold.card.made_by.endswith("--force")
    told = [one for one in check_gold(gold) if one.kind == "narrow_labels"]
    assert len(told) == 1 and told[0].explained == "you said that the scale is right"
    card = gold.path / "card.toml"
    card.write_text(
        "".join(line for line in card.open(encoding="utf-8") if not line.startswith("narrow_labels"))
    )
    with pytest.raises(InputError, match=r'fits them; write that in card.toml, or .* narrow_labels = "'):
        load_gold(gold.path, workspace=place)
    assert run(place, graded(labels), name="right", scale=fits, labels=("x",)).n_items == len(labels)


def test_fractions_that_are_all_small_are_right(place: Workspace) -> None:
    gold = run(place, graded([0.01, 0.05, 0.1] * 4), scale="fraction", labels=("x",)).gold
    assert max(gold.labels.values()) == 10.0 and gold.card.explained == {
        "narrow_labels": "they are fractions"
    }


def test_points_go_out_and_come_back_with_their_step(place: Workspace) -> None:
    gold = run(place, graded([0, 0.5, 3.5, 5] * 3), scale="points:0:5:0.5", labels=("x",), pass_at=3).gold
    again = load_gold(gold.path, workspace=place)
    assert str(again.scale) == "points:0:5:0.5" and again.scale.pass_at == 3.0
    assert sorted(set(again.labels.values())) == [0.0, 0.5, 3.5, 5.0]
    assert (
        "between the steps of 0.5"
        in refused(place, graded([0, 0.5, 3.4, 5, 5, 5, 5]), name="b", scale="points:0:5:0.5", labels=("x",))[
            0
        ]
    )


def test_a_table_that_cannot_be_read_is_not_said_to_lack_options(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "t.xlsx").write_bytes(b"no workbook")
    ran = judgecal("gold", "import", "t.xlsx", "--as", "new", "--label", "l", "--scale", "binary")
    assert ran.code == 2 and "workbook" in ran.err and "--col" not in ran.err


def test_what_stands_beside_a_table_names_its_columns(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "t.csv").write_text("f,a,l\nwhat?,this,yes\n", encoding="utf-8")
    beside = {"schema": 1, "question": "f", "answer": "a"}
    (workspace_dir / "t.csv.columns.json").write_text(json.dumps(beside), encoding="utf-8")
    ran = judgecal("gold", "import", "t.csv", "--as", "new", "--label", "l", "--scale", "binary")
    assert ran.code == 0, ran.err


COUNTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "wide": (
        "q,a,s,ann,ben,fin\nQ1,A,one,yes,no,\nQ1,B,two,yes,yes,no\nQ2,A,one,,,\nQ3,A,one,no,yes,\n,,,,,\n",
        {"labels": ("ann", "ben"), "gold_label": "fin", "system": "s"},
        "binary",
    ),
    "long": (
        "q,a,who,x,fin\nQ1,A,ann,x,z\nQ2,A,ben,y,\nQ1,A,ben,y,z\nQ2,A,ann,x,\nQ2,A,cleo,x,\nQ3,A,ann,x,\nQ3,A,ben,y,\n",
        {"labels": ("x",), "rater": "who", "gold_label": "fin"},
        "nominal",
    ),
    "graded": ("i,q,a,x\n7,Q1,A,80%\n8,Q2,A,\n9,Q2,B,35\n", {"labels": ("x",), "item": "i"}, "percentage"),
}


@pytest.mark.parametrize("case", COUNTED)
def test_what_is_counted_while_reading_is_what_the_set_holds(place: Workspace, case: str) -> None:
    text, options, scale = COUNTED[case]
    (place.root / "t.csv").write_text(text)
    done = run(place, scale=scale, **options)
    gold = load_gold("new", workspace=place)
    assert (done.n_items, done.n_groups) == (len(gold.items), gold.n_groups(gold.items))
    assert (done.n_ratings, done.sha256, done.scale) == (len(gold.ratings), gold.sha256, str(gold.scale))
    assert done.raters == Counter(rating.rater for rating in gold.ratings) and done.people == gold.raters
    assert done.splits == split_counts(gold)
    missing = len(gold.items) - len(gold.labels)
    assert missing, "a tie, or nobody rated it"
    assert f"{missing} of {len(gold.items)} items have no gold label (no rating, or a tie)" in " ".join(
        done.notes
    )


class Stopped(Exception):
    """What ends an import in the middle."""


@pytest.mark.parametrize("failure", [KeyboardInterrupt, Stopped, InputError])
def test_an_import_that_ends_in_the_middle_leaves_nothing(
    place: Workspace, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    (place.root / "old.csv").write_text("q,a,x\nQ1,A,yes\nQ2,B,no\n")
    (place.root / "t.csv").write_text("q,a,x\n" + "".join(f"Q{n},A,yes\n" for n in range(4_000)))
    run(place, file="old.csv", labels=("x",))
    old = load_gold("new", workspace=place)

    def stop(card: object) -> str:
        drafts = [path for path in place.gold.iterdir() if path.name != "new"]
        assert len(drafts) == 1 and (drafts[0] / "items.jsonl").exists(), (
            "it is written beside the set's place"
        )
        raise failure("stop")

    monkeypatch.setattr("judgecal.goldset.write.card_text", stop)
    with pytest.raises(failure):
        run(place, labels=("x",), replace=True)
    assert load_gold("new", workspace=place) == old
    assert [path.name for path in place.gold.iterdir()] == ["new"], "nothing is left beside the set"


def test_words_are_refused_with_the_map_that_mends_them(place: Workspace) -> None:
    rows = "q,a,x\nQ,A,Good\nR,B,bad\nS,C,GOOD \nT,D,so so\nU,E,good\n"
    found = refused(place, rows, labels=("x",))
    assert [problem.partition("or give ")[2] for problem in found] == ["--map FROM=TO for it"] * 5
    gold = run(place, rows, labels=("x",), mapping={"good": "yes", "BAD": "no", "so so": ""}).gold
    assert [*gold.labels.values()] == [1.0, 0.0, 1.0, 1.0]
    assert "--map good=yes --map BAD=no --map 'so so='" in gold.card.made_by


def test_verdicts_beside_labels_are_kept_with_the_set(place: Workspace) -> None:
    rows = 'label,judge,score\nyes,yes,"0,5"\nno,n/a,1\n,WAHR,\n'
    columns = {"question": None, "answer": None, "labels": ("label",), "verdicts": ("judge", "score")}
    done = run(place, rows, **columns)
    assert done.judges == {"judge": 3, "score": 3} and done.n_items == 3 and done.n_ratings == 2
    kept = [json.loads(line) for line in (done.path / "judgements.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in kept] == ["yes", "0.5", None, "1", "true", None]
    assert [item.question for item in done.gold.items] == ["row 2", "row 3", "row 4"]
