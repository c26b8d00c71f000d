"""One footing: once a map decides, all that a page, the terminal and the files say of a judge is of one
judge.

The judge here gives 40 to 70 to bad answers and 65 to 100 to good ones, so that its raw cut of 50 is badly
placed.
"""

from __future__ import annotations

import csv
import json
import random
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.goldset import load_gold
from judgecal.judges import judge_named
from judgecal.records import Judgement
from judgecal.scale import Scale
from judgecal.selection.confirm import noise_of
from judgecal.selection.lock import LockedGold
from judgecal.selection.pass_rates import PassRule, flip_rate
from judgecal.stats import Calibration
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.gold import made_gold, made_items, rated
from tests.support.pages import OPEN, items_of, page_of, printed_by, recorded

_N = 40  # questions of three answers each


def made_set(folder: Path, made: list[dict[str, Any]], **more: Any) -> Path:
    """People who pass whatever is not empty."""
    labels = rated(made, {"full": 1, "half": 1, "none": 0})
    return made_gold(folder / "gold" / "made", made, labels, scale='kind = "binary"', **more)


@pytest.fixture
def slug(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> str:
    made, rng = made_items(_N), random.Random(1)
    for place, row in enumerate(made):
        row["system"] = "one" if place % 2 else "two"
        row["tags"] = [row["kind"]]
    made_set(workspace_dir, made, splits=OPEN)
    verdicts: list[Any] = [
        rng.randint(40, 70) if row["kind"] == "none" else rng.randint(65, 100) for row in made
    ]
    verdicts[2] = None  # a bad answer without a verdict
    return recorded(judgecal, tmp_path, {"graded": verdicts}, made)


def _false_passes(rows: list[dict[str, str]], verdict: str) -> int:
    """Of a written table: how often people fail what that column passes."""
    return sum(float(row["label"]) == 0 and row[verdict] != "" and float(row[verdict]) > 0.5 for row in rows)


def test_every_number_of_false_passes_is_of_one_judge(judgecal: Run, slug: str, tmp_path: Path) -> None:
    again = ("agreement", "--gold", "made", "--judgements", tmp_path / "recorded.jsonl")
    rows = tmp_path / "rows.csv"
    judge = printed_by(judgecal, *again)["judges"][0]
    ran = judgecal(*again, "-o", rows, "--full")
    assert ran.code == 0, ran.err
    with rows.open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    scored = [row for row in written if row["verdict"] != ""]
    bad, n = sum(float(row["label"]) == 0 for row in scored), _false_passes(scored, "calibrated")
    raw = sum(float(row["label"]) == 0 and float(row["verdict"]) >= 50 for row in scored)
    assert bad == _N - 1 and raw > 2 * n > 0  # else both judges would pass for one

    page = page_of(judgecal, slug)
    told, share = unescape(re.sub(r"<[^>]+>", " ", page)), f"{100 * n / bad:.0f}"
    assert re.search(
        rf"bad, let through.*?{share}% of bad ones \[\d+, \d+\]", told, re.DOTALL
    )  # hundred answers
    assert re.search(rf"fail\s+{bad - n} \(\d+%\)\s+{n} \(\d+%\)\s+1 \(\d+%\)", told)  # confusion
    errors = [item["said"][0]["error"] for item in items_of(page)["items"]]
    assert errors.count("false pass") == n and errors.count("unscored: missing") == 1

    for text in (ran.out, judgecal("report", slug, "--full").out):
        table = re.search(r"^graded .*$", text[text.index("Agreement with people once") :], re.MULTILINE)
        assert table and table[0].split()[-2] == f"{share}%"
        assert f"{share} of 100 bad answers it lets through" in text
    # the keys stay what they are: raw as `agreement`, calibrated with unscored as wrong
    assert judge["agreement"]["tnr"]["value"] == pytest.approx(1 - raw / bad)
    assert judge["calibrated"]["tnr"]["value"] == pytest.approx(1 - (n + 1) / _N)


def test_the_raw_verdict_stands_beside_the_calibrated_one(judgecal: Run, slug: str) -> None:
    for item in items_of(page_of(judgecal, slug))["items"]:
        (said,) = item["said"]
        assert (said["verdict"], said["error"]) == ("unscored", "unscored: missing") or (
            said["verdict"] in ("pass", "fail") and 40 <= float(said["given"]) <= 100
        )


def test_a_binary_judge_has_no_map_and_no_raw_numbers_apart(
    judgecal: Run, workspace_dir: Path, tmp_path: Path
) -> None:
    made = made_items(_N)
    made_set(workspace_dir, made, splits=OPEN)
    lax = ["yes" if place % 5 else "no" for place in range(len(made))]
    slug = recorded(judgecal, tmp_path, {"lax": lax}, made)
    page = page_of(judgecal, slug)
    assert "raw verdict" not in json.dumps(items_of(page))
    assert not [item for item in items_of(page)["items"] if item["said"][0]["given"]]


def test_what_another_judge_changes_is_counted_at_each_judges_own_cut() -> None:
    """Both say 60 where people fail and 90 where they pass: raw all pass, and nothing flips once calibrated
    either."""
    people, scale = LockedGold("set", "0" * 64, "test", "binary", None), Scale.parse("percentage")
    at_75, at_50 = (Calibration((cut,), (0.0, 1.0), 40, 40) for cut in (75.0, 50.0))
    for new, flips in ((at_75, 0.0), (at_50, 0.5)):
        rules = PassRule.for_scale(people, scale, at_75), PassRule.for_scale(people, scale, new)
        calls = [[[verdict], [verdict]] for verdict in [60.0, 90.0] * 10]
        assert flip_rate(rules, calls, [f"g{n}" for n in range(20)]).value == flips


def test_the_noise_of_a_lock_is_at_its_own_cut(workspace_dir: Path) -> None:
    """Calls that say 60 and 80 flip at a cut of 70, and at 50 they do not."""
    gold = load_gold(made_set(workspace_dir, made_items(_N)), workspace=find_workspace(None))
    judge = judge_named("wer@local")
    rows = [
        Judgement(item.item_id, item.sha, judge.name, judge.fingerprint, repeat, 60.0 + 20.0 * repeat)
        for item in gold.items
        for repeat in range(2)
    ]
    called = AgreementTable(gold, gold.items, 2)
    for cut, flips in ((None, 0.0), (70.0, 1.0), (50.0, 0.0)):
        calibration = None if cut is None else Calibration((cut,), (0.0, 1.0), 40, 40)
        noise = noise_of(Verdicts.from_calls(judge, rows), called, calibration)
        assert noise.flip_rate.value == flips
