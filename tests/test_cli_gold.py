"""`judgecal gold` as it is typed: results on stdout, messages on stderr, the contract's JSON keys; and
items of unequal chances."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from judgecal.cli import app
from judgecal.errors import InputError
from tests.support.command import Run, one_object

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
    words = "--as new --col question=q --col answer=a --label x --label y --col gold=gold --scale binary"
    return call(place, "import", str(place / "t.csv"), *words.split(), *more)


def test_agreement_pairs_people_and_never_gold(place: Path) -> None:
    pytest.importorskip("judgecal.stats", reason="the statistics are not there yet")
    import_set(place)
    found = result(place, "check", "new")["raters"]
    # x is 1 on the odd of 0..59 and y differs on the 12 that 5 divides, 6 of them odd: of the 120 ratings 60
    # are 1.
    # Observed disagreement 24 / 120, expected 2 * 60 * 60 / (120 * 119).
    alpha = found["reliability"]["krippendorff_alpha"]
    assert alpha["value"] == pytest.approx(1 - (24 / 120) / (2 * 60 * 60 / (120 * 119))) and alpha["n"] == 60
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"], pair["n"]) == ("x", "y", 60)
    assert pair["agreement"]["accuracy"]["value"] == pytest.approx(0.8)
    assert pair["agreement"]["accuracy"]["n_groups"] == 60
    assert "all 2 raters at once" in call(place, "check", "new", "--full").stdout


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
    done = call(place, "check", "bad")
    assert isinstance(done.exception, InputError)
    assert "bad/items.jsonl:1: broken JSON" in str(done.exception)
    listed = call(place, "check")
    assert listed.exit_code and "We cannot load" in listed.stdout
    assert "next: judgecal gold check bad" in listed.stdout and "new  binary" in listed.stdout


def test_wrong_use_writes_nothing(place: Path) -> None:
    done = import_set(place, "--map", "x")
    assert isinstance(done.exception, InputError) and "--map x: write FROM=TO" in str(done.exception)
    done = import_set(place, "--pass-at", "high")
    assert done.exit_code == 2
    assert list((place / "gold").iterdir()) == []


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


N = 400


@pytest.fixture
def people(workspace_dir: Path, judgecal: Run) -> dict[str, bool]:
    """A set of 400 answers of which 40 have a label, judged by two recorded judges; what people would say of
    each."""
    rng = np.random.default_rng(5)
    gold = rng.random(N) < 0.6
    judges = {
        name: np.where(rng.random(N) < right, gold, ~gold)
        for name, right in (("alpha", 0.95), ("beta", 0.75))
    }
    ids = [f"i{number:03d}" for number in range(N)]
    pool = ["id,q,question,answer,ann"]
    for number, item_id in enumerate(ids):
        label = "" if number >= 40 else "yes" if gold[number] else "no"
        pool.append(f"{item_id},q{number // 2},What is {number // 2}?,It is {number}.,{label}")
    verdicts = ["item_id,judge,verdict"]
    verdicts += [
        f"{i},{name},{'yes' if v else 'no'}"
        for name, own in judges.items()
        for i, v in zip(ids, own, strict=True)
    ]
    (workspace_dir / "pool.csv").write_text("\n".join(pool) + "\n")
    (workspace_dir / "verdicts.csv").write_text("\n".join(verdicts) + "\n")
    words = (
        "--col question=question --col answer=answer --col item=id --col group=q --label ann --scale binary"
    )
    ran = judgecal("gold", "import", workspace_dir / "pool.csv", "--as", "pool", *words.split())
    assert ran.code == 0, ran.err
    recorded(judgecal, workspace_dir, "pool", "first")
    return dict(zip(ids, gold.tolist(), strict=True))


def recorded(judgecal: Run, workspace: Path, gold: str, name: str) -> dict[str, Any]:
    ran = judgecal(
        "agreement", "--judgements", workspace / "verdicts.csv", "--gold", gold, "--name", name, "--json"
    )
    assert ran.code == 0, ran.err
    return one_object(ran)


def drawn(workspace: Path, people: dict[str, bool]) -> dict[str, dict[str, Any]]:
    """A labelled set `more` of items that were drawn mostly where the judges differ; its items by their ids."""
    with (workspace / "verdicts.csv").open() as file:
        said = {(row["item_id"], row["judge"]): row["verdict"] for row in csv.DictReader(file)}
    rng, folder, items = np.random.default_rng(7), workspace / "gold" / "more", dict[str, dict[str, Any]]()
    shutil.copytree(workspace / "gold" / "pool", folder)
    for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        item_id = row["item_id"]
        chance = 0.8 if said[item_id, "alpha"] != said[item_id, "beta"] else 0.25
        if rng.random() < chance:
            items[item_id] = row | {"inclusion_probability": chance}
    card = (folder / "card.toml").read_text(encoding="utf-8").replace('name = "pool"', 'name = "more"')
    (folder / "card.toml").write_text(card, encoding="utf-8")
    ratings = [{"item_id": item_id, "rater": "ann", "label": int(people[item_id])} for item_id in items]
    for file_name, rows in (("items.jsonl", [*items.values()]), ("ratings.jsonl", ratings)):
        (folder / file_name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return items


def test_judges_are_compared_on_items_of_unequal_chances(
    workspace_dir: Path, judgecal: Run, people: dict[str, bool]
) -> None:
    items = drawn(workspace_dir, people)
    found = recorded(judgecal, workspace_dir, "more", "second")
    alpha, beta = found["judges"]
    by_hand = {judge: weighted_accuracy(workspace_dir, judge, items, people) for judge in ("alpha", "beta")}
    assert alpha["agreement"]["accuracy"]["value"] == pytest.approx(by_hand["alpha"])
    assert beta["agreement"]["accuracy"]["value"] == pytest.approx(by_hand["beta"])
    assert alpha["agreement"]["kappa"]["value"] is None
    assert "unequal probabilities" in alpha["agreement"]["kappa"]["reason"]
    assert any("unequal probabilities" in note for note in found["notes"])
    compared = one_object(judgecal("compare", "second", "alpha", "beta", "--metric", "accuracy", "--json"))
    assert compared["difference"]["value"] == pytest.approx(by_hand["alpha"] - by_hand["beta"])
    assert compared["decision"] == "A"
    assert any("unequal probabilities" in note for note in compared["notes"])
    page = judgecal("report", "second", "--format", "md")
    assert page.code == 0 and "unequal probabilities" in page.out
    refused = judgecal("select", "second")
    assert refused.code == 2 and "select would count all items of gold set more alike" in refused.err


def weighted_accuracy(
    workspace: Path, judge: str, items: dict[str, dict[str, Any]], people: dict[str, bool]
) -> float:
    with (workspace / "verdicts.csv").open() as file:
        said = {
            row["item_id"]: row["verdict"] == "yes" for row in csv.DictReader(file) if row["judge"] == judge
        }
    weights = {item_id: 1.0 / row["inclusion_probability"] for item_id, row in items.items()}
    right = sum(weight for item_id, weight in weights.items() if said[item_id] == people[item_id])
    return right / sum(weights.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("first", "-n", "20", "--strata", "verdict"), "--strata is disagreement, found 'verdict'"),
        (("first", "--strata", "disagreement"), "say how many items by -n"),
        (
            ("first", "-n", "20", "--strata", "disagreement"),
            "first/rows.json: no rows without labels were kept",
        ),
        (("pool", "-n", "20", "--strata", "disagreement"), "unknown experiment 'pool'"),
    ],
)
def test_what_cannot_be_drawn(
    workspace_dir: Path,
    judgecal: Run,
    people: dict[str, bool],
    tmp_path: Path,
    words: tuple[str, ...],
    message: str,
) -> None:
    ran = judgecal("gold", "sheet", *words, "-o", tmp_path / "more.csv")
    assert ran.code == 2 and message in ran.err
    assert not (tmp_path / "more.csv").exists() and not (workspace_dir / "gold" / "more").exists()


@pytest.mark.parametrize(
    "table",
    [
        "item_id,question,answer,system\n1,What is it?,A thing,a\n1,What is it?,Another,b\n2,Who?,Me,a\n",
        "question,answer,context,system\nWhy?,I do not know,alpha,a\nWhy?,I do not know,beta,b\n",
    ],
    ids=["an id of the question", "equal answers from other contexts"],
)
def test_a_sheet_takes_a_column_of_ids_only_where_it_is_named(
    judgecal: Run, workspace_dir: Path, table: str
) -> None:
    (workspace_dir / "t.csv").write_text(table, encoding="utf-8")
    ran = judgecal("gold", "sheet", "t.csv", "--scale", "binary", "-o", "s.csv")
    assert ran.code == 0, ran.err
    if table.startswith("item_id"):
        named = judgecal(
            "gold", "sheet", "t.csv", "--col", "item=item_id", "--scale", "binary", "-o", "u.csv"
        )
        assert named.code == 2 and "rows with other texts have one id (1): leave --col item= out" in named.err
