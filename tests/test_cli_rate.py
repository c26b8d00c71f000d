"""`rate` and `plan`: from a judged table to the share that is right, with and without labels of its rows."""

from __future__ import annotations

import csv
import dataclasses
import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgecal as api
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.production.rate import NextLabels
from judgecal.records import Estimate
from judgecal.selection.lock import LockedGold, load_lock, write_lock
from judgecal.stats import Calibration, agreement
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object
from tests.support.locks import lock_of

N = 600  # questions, each answered by two systems
KEYS = {
    "lock", "n", "n_labelled", "raw", "corrected", "method", "assumes", "by", "labels_saved", "next_labels",
    "escalate",
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """A judged table with its lock, and what people would say of each answer."""

    folder: Path
    right: dict[str, bool]

    @property
    def share(self) -> float:
        return sum(self.right.values()) / len(self.right)


def rate_of(judgecal: Run, *words: Any, code: int = 0) -> dict[str, Any]:
    return one_object(judgecal("rate", "judged.csv", *words, "--json"), code=code)


def _rates(rng: np.random.Generator, n: int) -> dict[str, Estimate]:
    """Of a judge that passes 90% of right answers and fails 80% of wrong ones."""
    right = rng.random(n) < 0.5
    passed = rng.random(n) < np.where(right, 0.9, 0.2)
    return agreement(
        np.where(right, 100.0, 0.0),
        np.where(passed, 90.0, 20.0),
        scale=api.Scale.parse("percentage", pass_at=75.0),
        groups=range(n),
        metrics=["tpr@75", "tnr@75", "prevalence@75", "mcc@75"],
    )


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the table with its lock, and labels drawn from it, wait for the next test."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def world(workspace_dir: Path, made_once: Path) -> World:
    people = made_once / "people.json"
    files = ("judge.lock.json", "judged.csv")
    if not people.exists():
        people.write_text(json.dumps(_make(workspace_dir)))
        for name in files:
            shutil.copy(workspace_dir / name, made_once)
    for name in files:
        shutil.copy(made_once / name, workspace_dir)
    return World(workspace_dir, json.loads(people.read_text()))


@pytest.fixture
def labelled(judgecal: Run, world: World, made_once: Path) -> World:
    """With labels of 300 rows that were drawn at random."""
    kept, here = made_once / "labels", world.folder / "gold" / "labels"
    if kept.exists():
        shutil.copytree(kept, here)
    else:
        draw(judgecal, world, 300)
        shutil.copytree(here, kept)
    return world


def _make(workspace_dir: Path) -> dict[str, bool]:
    """Write a judged table and its lock; answer -> whether people pass it."""
    rng = np.random.default_rng(4)
    workspace = find_workspace(workspace_dir)
    gold = load_gold("starter", workspace=workspace)
    judge = PromptJudge("correctness_v3@embedded", workspace=workspace)
    locked = LockedGold("starter", gold.sha256, "test", "percentage", 75.0)
    fit = Calibration((74.5,), (0.0, 100.0), 100, 50, "train and dev of starter")
    rates = _rates(rng, 400)
    lock = lock_of(judge, gold=locked, agreement=rates, calibrated=rates, calibration=fit, unscored=0.0)
    write_lock(workspace_dir / "judge.lock.json", lock)
    people: dict[str, bool] = {}
    rows = []
    for number in range(2 * N):
        system, question = "ab"[number % 2], f"What is {number // 2}?"
        right = bool(rng.random() < (0.75 if system == "a" else 0.55))
        passed = rng.random() < (0.9 if right else 0.2)
        answer = f"It is {number}."
        people[answer] = right
        sure = float(np.round(rng.uniform(0.0, 15.0) + 10.0 * (passed == right)))
        verdict = "" if number % 60 == 7 else f"{75 + sure if passed else 74 - sure:g}"
        rows.append(
            {
                "id": f"r{number:04d}",
                "question": question,
                "answer": answer,
                "system": system,
                "verdict": verdict,
            }
        )
    write(workspace_dir / "judged.csv", rows)
    return people


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(sheet: Path, people: dict[str, bool]) -> list[str]:
    rows = read(sheet)
    assert not {"verdict", "system", "inclusion_probability"} & rows[0].keys()  # blind
    for row in rows:
        row["label"] = "100" if people[row["answer"]] else "0"
    write(sheet, rows)
    return [row["item_id"] for row in rows]


LOCK = ("--lock", "judge.lock.json")


def test_a_drawn_sheet_leads_to_the_rate(judgecal: Run, world: World) -> None:
    options = ("-n", 60, "--strata", "verdict", "--col", "item=id", "-o", "drawn.csv", "--json", *LOCK)
    found = one_object(judgecal("gold", "sheet", "judged.csv", *options))
    fill(world.folder / "drawn.csv", world.right)
    assert judgecal(*shlex.split(found["headline"]["next"])[1:]).code == 0
    (told,) = [note for note in found["notes"] if "judgecal rate" in note]
    rated = one_object(judgecal(*shlex.split(told.partition(": judgecal ")[2]), "--json"))
    assert (rated["n_labelled"], rated["drawn"]["differs"]) == (60, False)
    assert holds(rated["corrected"], world.share)


def draw(judgecal: Run, world: World, n: int, *more: Any, sheet: str = "labels.csv") -> list[str]:
    ran = judgecal(
        "gold", "sheet", "judged.csv", "-n", n, "-o", sheet, *LOCK, "--col", "system=system", *more
    )
    assert ran.code == 0, ran.err
    found = fill(world.folder / sheet, world.right)
    name = more[more.index("--labels") + 1] if "--labels" in more else "labels"
    ran = judgecal("gold", "import", sheet, "--sheet", "--as", name)
    assert ran.code == 0, ran.err
    return found


def holds(found: dict[str, Any], true: float) -> bool:
    return bool(found["low"] <= true <= found["high"])


def test_error_rates_are_carried_over_and_the_assumption_is_said_first(judgecal: Run, world: World) -> None:
    found = rate_of(judgecal, *LOCK, "--by", "system")
    assert found.keys() >= KEYS
    assert found["method"] == "Rogan-Gladen" and found["n"] == 1200 and found["n_unscored"] == 20
    assert found["n_labelled"] == 0
    assert found["headline"]["sentence"].endswith("are right, if the judge errs as before.")
    assert "the judge errs here as on starter" in found["headline"]["because"][0]
    assert holds(found["corrected"], world.share) and "as often as it did on starter" in found["assumes"][0]
    assert [one["value"] for one in found["by"]] == ["a", "b"]
    assert all(one["corrected"]["level"] == 0.975 for one in found["by"])


def test_from_a_drawn_sheet_to_a_corrected_rate(judgecal: Run, world: World) -> None:
    items = draw(judgecal, world, 120, "--strata", "verdict")
    gold = load_gold(world.folder / "gold" / "labels")
    chances = {item.inclusion_probability for item in gold.items}
    assert gold.card.sampling == "stratified" and len(items) == 120
    assert len(chances) == 3  # pass, fail, no verdict
    assert sum(1.0 / (item.inclusion_probability or 1.0) for item in gold.items) == pytest.approx(1200)
    found = rate_of(judgecal, *LOCK, "--labels", "labels", "--by", "system")
    assert (found["method"], found["n_labelled"], found["labels"]) == ("PPI++", 120, "labels")
    assert holds(found["corrected"], world.share) and found["headline"]["kind"] == "corrected"
    assert not found["shift"]["contradicts"] and found["shift"]["p_value"] > 0.05
    assert sum(one["n_labelled"] for one in found["by"]) == 120
    made = api.rate("judged.csv", lock="judge.lock.json", labels="labels", by="system")
    assert made.corrected.value == found["corrected"]["value"]
    assert made.frame().shape[0] >= 1 and "of these answers are right" in made._repr_html_()


def test_drawing_again_leaves_out_what_was_drawn_and_joins_it(judgecal: Run, world: World) -> None:
    first = draw(judgecal, world, 60)  # at random
    assert load_gold(world.folder / "gold" / "labels").card.sampling == "random"
    second = draw(judgecal, world, 60, "--strata", "verdict", "--labels", "labels", sheet="more.csv")
    assert not set(first) & set(second) and len(second) == 60
    gold = load_gold(world.folder / "gold" / "labels")
    assert len(gold.items) == len(gold.labels) == 120
    assert sum(1.0 / (item.inclusion_probability or 1.0) for item in gold.items) == pytest.approx(1200)
    found = rate_of(judgecal, *LOCK, "--labels", "labels")
    assert found["n_labelled"] == 120 and holds(found["corrected"], world.share)
    back = judgecal("gold", "sheet", "judged.csv", "-n", 20, "-o", "x.csv", *LOCK, "--labels", "labels")
    assert back.code == 2 and "were not all equally likely to be drawn" in back.err


def test_rows_for_a_person_go_into_a_sheet(judgecal: Run, labelled: World) -> None:
    world = labelled
    asked = ("--labels", "labels", "--escalate", "0.9", "-o", "read.csv")
    found = rate_of(judgecal, *LOCK, *asked)["escalate"]
    ran = judgecal("rate", "judged.csv", *LOCK, *asked)
    assert ran.code == 2 and "is there already, and may be filled in" in ran.err
    assert 0.0 < found["share"] < 1.0 and found["sheet"] == "read.csv"
    rows = {row["answer"] for row in read(world.folder / "read.csv")}
    assert len(rows) == found["n_rows"] == round(1200 * (1.0 - found["share"]))
    table = {row["answer"]: row["verdict"] for row in read(world.folder / "judged.csv")}
    kept = [answer for answer in table if answer not in rows]
    right = [(float(table[answer]) >= 75.0) == world.right[answer] for answer in kept]
    assert np.mean(right) >= 0.9
    too_much = rate_of(judgecal, *LOCK, "--labels", "labels", "--escalate", "0.999")
    assert too_much["escalate"]["agreement"] is None and too_much["escalate"]["n_rows"] == 1200


def test_a_shift_is_said_before_the_number(judgecal: Run, labelled: World) -> None:
    world = labelled
    rows = read(world.folder / "judged.csv")
    rng = np.random.default_rng(0)
    for row in rows:
        row["verdict"] = "90" if world.right[row["answer"]] == (rng.random() < 0.7) else "20"  # a worse judge
    write(world.folder / "judged.csv", rows)
    found = rate_of(judgecal, *LOCK, "--labels", "labels")
    assert found["shift"]["contradicts"] and holds(found["corrected"], world.share)
    assert found["headline"]["sentence"].startswith("The labels contradict the lock: about ")
    assert found["headline"]["next"] == "judgecal gate --lock judge.lock.json"


def test_labels_that_were_not_drawn_are_told_in_the_headline(judgecal: Run, world: World) -> None:
    """Somebody labels rows that the judge fails, and takes them for a random draw; columns keep their
    names."""
    rows = [
        {**row, "sache": row["question"], "wort": row["answer"]} for row in read(world.folder / "judged.csv")
    ]
    failed = [row for row in rows if row["verdict"] and float(row["verdict"]) < 75]
    passed = [row for row in rows if row["verdict"] and float(row["verdict"]) >= 75]
    for row in rows:
        del row["question"], row["answer"]
    write(world.folder / "mine.csv", rows)
    labelled = [{**row, "label": 100 * world.right[row["wort"]]} for row in [*failed[:60], *passed[:20]]]
    write(world.folder / "some.csv", labelled)
    columns = ("--col", "question=sache", "--col", "answer=wort")
    ran = judgecal("gold", "import", "some.csv", "--as", "some", *columns, "--label", "label", "--scale", "percentage",
                   "--pass-at", "75", "--col", "item=id")  # fmt: skip
    assert ran.code == 0, ran.err
    found = one_object(judgecal("rate", "mine.csv", *LOCK, "--labels", "some", *columns, "--json"))
    assert found["drawn"]["differs"] and found["headline"]["kind"] == "not drawn at random"
    assert "25% of the labelled rows and 66% of all rows" in found["headline"]["because"][0]
    following = shlex.split(found["headline"]["next"])
    assert following[:4] == ["judgecal", "gold", "sheet", "mine.csv"] and "question=sache" in following
    ran = judgecal(*following[1:])
    assert ran.code == 0, ran.err


def test_a_judge_at_chance_gets_the_plain_rate(judgecal: Run, labelled: World) -> None:
    path = labelled.folder / "judge.lock.json"
    lock = load_lock(path)
    coin = {name: Estimate(0.5, 0.4, 0.6, n=100, n_groups=100) for name in ("tpr@75", "tnr@75")}
    write_lock(path, dataclasses.replace(lock, calibrated=coin))
    alone = rate_of(judgecal, *LOCK)
    assert alone["corrected"]["value"] is None and "no better than a coin" in alone["warning"]
    assert alone["headline"]["kind"] == "no rate" and alone["raw"]["value"] > 0.5
    found = rate_of(judgecal, *LOCK, "--labels", "labels")
    assert found["method"] == "labels alone" and found["corrected"] == found["plain"]


def test_all_numbers_are_of_the_verdicts_through_the_locks_map(judgecal: Run, labelled: World) -> None:
    """A judge that gives half of each verdict has the same numbers through a map of its own."""
    names = ("raw", "corrected", "plain", "shift", "by")
    options = ("rate", "judged.csv", *LOCK, "--by", "system", "--json")
    labels = ("--labels", "labels", "--escalate", "0.8")
    before = [one_object(judgecal(*options)), one_object(judgecal(*options, *labels))]
    rows = read(labelled.folder / "judged.csv")
    for row in rows:
        row["verdict"] = (
            row["verdict"] and f"{float(row['verdict']) / 2.0:g}"
        )  # all of them below the mark of 75
    write(labelled.folder / "judged.csv", rows)
    path = labelled.folder / "judge.lock.json"
    half = Calibration((37.25,), (0.0, 100.0), 100, 50, "train and dev of starter")
    write_lock(path, dataclasses.replace(load_lock(path), calibration=half, agreement={}))
    after = [one_object(judgecal(*options)), one_object(judgecal(*options, *labels))]
    for then, now in zip(before, after, strict=True):
        assert [now[name] for name in names] == [then[name] for name in names]
    assert [one[1]["escalate"]["share"] for one in (before, after)] == [before[1]["escalate"]["share"]] * 2
    assert before[1]["shift"]["rates"] and before[0]["raw"]["value"] > 0.5


def _items(world: World) -> list[dict[str, Any]]:
    path = world.folder / "gold" / "labels" / "items.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def _rewrite(world: World, rows: list[dict[str, Any]]) -> None:
    (world.folder / "gold" / "labels" / "items.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )


def test_labels_that_do_not_fit_are_one_message(judgecal: Run, world: World) -> None:
    draw(judgecal, world, 40, "--strata", "verdict", "--col", "item=id")
    asked = ("rate", "judged.csv", *LOCK, "--labels", "labels", "--col", "item=id")
    rows = _items(world)
    whole = [dict(row) for row in rows]

    def refused(*command: Any) -> str:
        ran = judgecal(*command)
        assert ran.code == 2 and ran.out == "", ran.out
        return " ".join(ran.err.split())

    del rows[3]["inclusion_probability"]
    _rewrite(world, rows)
    assert "1 of 40 labelled items have no inclusion_probability" in refused(*asked)
    _rewrite(
        world, [{key: value for key, value in row.items() if key != "inclusion_probability"} for row in whole]
    )
    assert "drawn by strata, and no item has an inclusion_probability" in refused(*asked)
    _rewrite(world, [dict(row, inclusion_probability=0.0) if n == 5 else row for n, row in enumerate(whole)])
    assert "inclusion_probability" in refused(*asked)
    _rewrite(world, [dict(row, answer="Edited.") if n == 5 else row for n, row in enumerate(whole)])
    assert "1 of 40 labelled items are none of its rows" in refused(*asked)
    _rewrite(world, whole)
    card = world.folder / "gold" / "labels" / "card.toml"
    text = card.read_text()
    card.write_text(text.replace("pass_at = 75", "pass_at = 50"))
    assert "give labels of the lock's scale" in refused(*asked)
    card.write_text(text.replace('sampling = "stratified"', 'sampling = "curated"'))
    assert "it is curated" in refused(*asked)
    card.write_text(text)
    assert "it is curated" in refused("rate", "judged.csv", *LOCK, "--labels", "starter")
    assert "unknown column 'verdict_x'" in refused("rate", "judged.csv", *LOCK, "--verdict", "verdict_x")
    unlabelled = refused("rate", "judged.csv", *LOCK, "--escalate", "0.9")
    assert "draws some, and --labels SET takes them" in unlabelled
    assert "judged.csv -n 60" in unlabelled
    odd = [dict(row, verdict="wonderful") for row in read(world.folder / "judged.csv")]
    write(world.folder / "odd.csv", odd)
    assert "none of the lock's judge, whose scale is percentage" in refused("rate", "odd.csv", *LOCK)
    assert "--strata and --labels are of a judged table" in refused(
        "gold", "sheet", "judged.csv", "-n", 40, "-o", "s.csv", "--strata", "verdict", "--scale", "binary"
    )
    assert "-n must be at least 10, found 0" in refused(
        "gold", "sheet", "judged.csv", *LOCK, "-n", 0, "-o", "s.csv"
    )
    assert "--lock: only a table" in refused("gold", "sheet", "starter", "-o", "s.csv", *LOCK)
    assert "--output without --escalate" in refused("rate", "judged.csv", *LOCK, "-o", "rates.csv")


def test_labels_that_halve_an_interval() -> None:
    """Of 1,000 rows 100 are labelled: with N rows the error falls with 1 / n - 1 / N. None where all are."""
    rate = Estimate(0.5, 0.4, 0.6, n=100, n_expected=1000, n_groups=100)
    assert NextLabels.halving(rate, n=100, n_rows=1000) == NextLabels(208, pytest.approx(0.05))
    assert NextLabels.halving(rate, n=100, n_rows=100) is None
