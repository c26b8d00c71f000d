"""`judgecal gold` as it is typed: results on stdout, messages on stderr, the contract's JSON keys."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from judgecal.cli import app
from judgecal.errors import InputError

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
HERE = Path(__file__).resolve().parents[1]
ROWS = "q,a,x,y,gold\n" + "".join(
    f"Q{n},A{n},{n % 2},{(n % 2) if n % 5 else 1 - n % 2},{n % 2}\n" for n in range(60)
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "gold").mkdir()
    (tmp_path / "signatures").mkdir()
    (tmp_path / "t.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def call(place: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--workspace", str(place), "gold", *words])


def result(place: Path, *words: str) -> Any:
    done = call(place, *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def import_set(place: Path, *more: str) -> Result:
    columns = ("--question", "q", "--answer", "a", "--label", "x", "--label", "y", "--gold-label", "gold")
    return call(place, "import", str(place / "t.csv"), "--as", "new", *columns, "--scale", "binary", *more)


def test_import_list_check_agreement(place: Path) -> None:
    done = import_set(place, "--map", "never=yes")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("new has 60 items on 60 questions, 180 ratings by x, y.")
    assert "--map never=yes: no label cell holds that" in done.stdout
    again = json.loads(import_set(place, "--replace", "--json").stdout)
    assert (again["n_rows"], again["raters"], again["judges"], again["skipped"]) == (
        60,
        {"gold": 60, "x": 60, "y": 60},
        {},
        {},
    )
    listed = result(place, "list")["sets"]
    assert [(row["set"], row["n_items"], row["n_groups"], row["labels_by"]) for row in listed] == [
        ("new", 60, 60, "people")
    ]
    assert "binary" in call(place, "list").stdout
    checked = result(place, "check", "new")
    keys = ["headline", "run_line", "set", "n_items", "n_groups", "n_documents", "splits", "tags", "problems"]
    assert list(checked) == [*keys, "baselines", "near_pass_mark"]
    # 30 of 60 gold labels are 1
    best = checked["baselines"]["accuracy"]
    assert (best["estimate"]["value"], best["estimate"]["n"], best["estimate"]["n_expected"]) == (0.5, 60, 60)
    assert checked["near_pass_mark"]["share"]["value"] is None
    assert sum(part["n_items"] for part in checked["splits"].values()) == 60
    assert result(place, "check")["sets"] == [{key: checked[key] for key in list(checked)[2:]}]
    text = call(place, "check", "new").stdout
    assert "split  items  questions" in text


def test_agreement_pairs_people_and_never_gold(place: Path) -> None:
    pytest.importorskip("judgecal.stats", reason="the statistics are not there yet")
    import_set(place)
    found = result(place, "agreement", "new")
    assert list(found)[2:] == [
        "set",
        "pairs",
        "ceiling",
        "tie_breakers",
        "reliability",
        "saw_draft",
        "cannot_tell",
    ]
    # x is 1 on the odd of 0..59 and y differs on the 12 that 5 divides, 6 of them odd: of the 120 ratings 60
    # are 1.
    # Observed disagreement 24 / 120, expected 2 * 60 * 60 / (120 * 119).
    alpha = found["reliability"]["krippendorff_alpha"]
    assert alpha["value"] == pytest.approx(1 - (24 / 120) / (2 * 60 * 60 / (120 * 119))) and alpha["n"] == 60
    assert found["reliability"]["kappa[x,y]"]["value"] == pytest.approx(0.6)
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"], pair["n"]) == ("x", "y", 60)
    assert pair["agreement"]["accuracy"]["value"] == pytest.approx(0.8)
    assert pair["agreement"]["accuracy"]["n_groups"] == 60
    text = call(place, "agreement", "new", "--full").stdout
    assert "x with y, 60 items with both" in text and "all 2 raters at once" in text
    assert call(place, "agreement", "new").stdout.startswith("People agree with each other on 80% of new.\n")


def test_findings_of_a_kind_are_counted_in_text(place: Path) -> None:
    tags = [f"t{n}" for n in range(15)]
    import_set(place)
    items = place / "gold" / "new" / "items.jsonl"
    rows = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    rows[0]["tags"] = tags
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    text = call(place, "check", "new").stdout
    assert "thin_tag (15): " in text and "tag 't1'" not in text
    assert "tag 't1'" in call(place, "check", "new", "--full").stdout
    found = result(place, "check", "new")
    assert len([problem for problem in found["problems"] if problem["kind"] == "thin_tag"]) == 15
    assert found["tags"] == dict.fromkeys(sorted(tags), 1)


def test_explained_findings_stand_apart(place: Path) -> None:
    import_set(place)
    items = place / "gold" / "new" / "items.jsonl"
    lines = items.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) | {"tags": ["odd"] * (n < 2)} for n, line in enumerate(lines)]
    rows[3]["reference_answer"] = "One. Two. Three. Four."
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    card = place / "gold" / "new" / "card.toml"
    card.write_text(
        card.read_text(encoding="utf-8") + '\n[explained]\nthin_tag = "as meant"\n', encoding="utf-8"
    )
    problems = {problem["kind"]: problem for problem in result(place, "check", "new")["problems"]}
    assert problems["thin_tag"]["explained"] == "as meant" and problems["long_reference"]["explained"] is None
    still_open, explained = call(place, "check", "new").stdout.split("Explained in the card")
    assert "long_reference" in still_open and "thin_tag" not in still_open
    assert "thin_tag (1): as meant" in explained
    assert re.search(r"Best constant in accuracy: \S+ reaches [\d.]+% over ", still_open)


def test_a_leak_of_the_workspace_is_found(place: Path) -> None:
    rows = "".join(f"Where does the road number {n} of the county end?,A{n},1,1,1\n" for n in range(60))
    (place / "t.csv").write_text("q,a,x,y,gold\n" + rows, encoding="utf-8")
    import_set(place)
    quoted = "".join(f"- Where does the road number {n} of the county end?\n" for n in range(60))
    (place / "signatures" / "mine.py").write_text(f'"""{quoted}"""\n', encoding="utf-8")
    (leak,) = [p for p in result(place, "check", "new")["problems"] if p["kind"] == "leak"]
    assert "mine.py:1" in leak["where"] and "of dev and test" in leak["message"]


def test_a_set_that_cannot_be_loaded(place: Path) -> None:
    import_set(place)
    shutil.copytree(place / "gold" / "new", place / "gold" / "bad")
    (place / "gold" / "bad" / "items.jsonl").write_text("{\n", encoding="utf-8")
    for words in (("check", "bad"), ("check",), ("agreement", "bad")):
        done = call(place, *words)
        assert isinstance(done.exception, InputError)
        assert "bad/items.jsonl:1: broken JSON" in str(done.exception)
    assert "new@" in call(place, "check").stdout, "the sound sets are checked all the same"
    listed = call(place, "list")
    assert "cannot be loaded" in listed.stdout and "next: judgecal gold check bad" in listed.stdout
    assert [row["error"] is None for row in result(place, "list")["sets"]] == [False, True]


def test_wrong_use_writes_nothing(place: Path) -> None:
    done = import_set(place, "--map", "x")
    assert isinstance(done.exception, InputError) and "--map x: write FROM=TO" in str(done.exception)
    done = import_set(place, "--pass-at", "high")
    assert done.exit_code == 2
    assert list((place / "gold").iterdir()) == []


@pytest.mark.shared_data
def test_nq301_known_value(place: Path) -> None:
    pytest.importorskip("judgecal.stats", reason="the statistics are not there yet")
    file = DATA / "nq301" / "items.csv"
    if not file.exists():
        pytest.skip("the public data set nq301 is not beside the checkout")
    words = "--item item_id --group group --question question --reference reference_answer --answer answer"
    labels = "--label annotator1 --label annotator2 --label annotator3 --gold-label acceptable --scale binary"
    separator = ("--reference-separator", " | ")
    done = call(place, "import", str(file), "--as", "nq301", *words.split(), *labels.split(), *separator)
    assert done.exit_code == 0, done.output
    pair = result(place, "agreement", "nq301")["pairs"][0]
    assert (pair["a"], pair["b"], pair["n"]) == ("annotator1", "annotator2", 1483)
    assert pair["agreement"]["kappa"]["value"] == pytest.approx(0.7347, abs=5e-5)
    assert pair["agreement"]["accuracy"]["value"] == pytest.approx(0.8685, abs=5e-5)
