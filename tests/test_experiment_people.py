"""People beside people and judges on that same footing: ties stay, tie-breakers go, and nothing is asked
twice."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.people import (
    alt_tests,
    judge_beside_people,
    rater_agreement,
    rater_entries,
    tied_items,
)
from judgecal.goldset import GoldSet, load_gold
from judgecal.records import Judgement
from judgecal.scale import Label, Scale
from judgecal.workspace import Workspace, find_workspace
from tests.support.command import Run, journal
from tests.support.gold import made_gold, made_items
from tests.support.pages import OPEN, decided, printed_by

BINARY = 'kind = "binary"'
N_TIED = 33  # of 120: people agree on 87, 0.725


def two_raters(folder: Path, *, splits: str = OPEN) -> list[dict[str, Any]]:
    """120 items on 40 questions; ann passes the full answers, and bob says the opposite on every third item
    or so."""
    rows = made_items(40)
    ann = [float(row["kind"] == "full") for row in rows]
    bob = [1.0 - label if at % 11 in (0, 4, 8) else label for at, label in enumerate(ann)]
    said = {"ann": ann, "bob": bob}
    assert sum(a == b for a, b in zip(ann, bob, strict=True)) == 120 - N_TIED
    made_gold(folder, rows, given(rows, said), scale=BINARY, splits=splits)
    return rows


def given(rows: list[dict[str, Any]], said: dict[str, list[float]]) -> list[tuple[str, str, Label]]:
    """What each rater said of the first rows."""
    return [
        (row["item_id"], rater, label)
        for rater, labels in said.items()
        for row, label in zip(rows, labels, strict=False)
    ]


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    two_raters(workspace.gold / "made")
    return load_gold("made", workspace=workspace)


def whole(gold: GoldSet) -> AgreementTable:
    labelled = gold.select("all")
    labelled = tuple(item for item in labelled if item.item_id in gold.labels)
    return AgreementTable(gold, labelled, tied=tied_items(gold, "all", labelled))


def column(gold: GoldSet, verdicts: Sequence[Label]) -> Verdicts:
    rows = [
        Judgement(item.item_id, item.sha, "j", "f", 0, v)
        for item, v in zip(gold.items, verdicts, strict=True)
    ]
    return Verdicts("j", gold.scale, rows)


def test_the_ceiling_of_two_raters_is_no_one(gold: GoldSet) -> None:
    table = whole(gold)
    assert (len(table.items), len(table.tied)) == (120 - N_TIED, N_TIED)
    judge = column(gold, [0.0] * 120)
    for found in rater_entries(table, [judge]):
        own = found.agreement["accuracy"]
        assert own.value == pytest.approx(0.725)
        assert own.low is not None and own.high is not None and own.low < 0.725 < own.high < 0.9
        assert (found.n, found.n_expected, own.n, found.enough) == (120, 120, 120, True)
        assert [dataclasses.replace(found, n=n).enough for n in (29, 30)] == [False, True]
        (beside,) = found.judges
        assert (beside.n, beside.n_expected) == (120, 120)
    # The judge beside ann is held against bob's labels, the same that ann is held against.
    ann, _ = rater_entries(table, [judge])
    fails = [label == 0.0 for label in gold.ratings_by_rater["bob"].values()]
    assert ann.judges[0].agreement["accuracy"].value == pytest.approx(sum(fails) / 120)


def test_gold_agreement_says_the_same_ceiling(gold: GoldSet) -> None:
    found = rater_agreement(gold)
    for one, entry in zip(found.ceiling, rater_entries(whole(gold), []), strict=True):
        assert (one.rater, one.n, one.agreement) == (entry.judge, entry.n, entry.agreement)
    assert found.pairs[0].agreement["kappa"] == found.ceiling[1].agreement["kappa"]


def test_three_raters_are_pairs_of_people(workspace: Workspace) -> None:
    """Where the two others disagree a rater is right with one of them: no item is lost, and none counts for
    both."""
    rows = made_items(40)
    said = {"ann": [1.0] * 120, "bob": [1.0] * 60 + [0.0] * 60, "cat": [1.0] * 90 + [0.0] * 30}
    path = made_gold(workspace.gold / "three", rows, given(rows, said), scale=BINARY)
    gold = load_gold(path, workspace=workspace)
    ann, bob, cat = rater_entries(AgreementTable(gold, gold.items), [])
    values = [one.agreement["accuracy"].value for one in (ann, bob, cat)]
    pairs = {pair.a + pair.b: pair.agreement["accuracy"].value for pair in rater_agreement(gold).pairs}
    assert pairs == pytest.approx({"annbob": 0.5, "anncat": 0.75, "bobcat": 0.75})
    assert values == pytest.approx([(0.5 + 0.75) / 2, (0.5 + 0.75) / 2, 0.75])
    assert (ann.n, ann.agreement["accuracy"].n) == (120, 240)


def test_ties_end_where_the_items_asked_for_end(gold: GoldSet) -> None:
    labelled = whole(gold).items
    some = tied_items(gold, "all", labelled[:10])
    places = [item.item_id for item in gold.items]
    assert some == whole(gold).tied[: len(some)]
    assert places.index(some[-1].item_id) < places.index(labelled[9].item_id)
    left_out = frozenset({some[0].group})
    assert some[0] not in tied_items(gold, "all", labelled, without_groups=left_out)


def test_a_judge_that_was_not_asked_about_ties_is_not_judged_by_them(gold: GoldSet) -> None:
    table = whole(gold)
    asked = {item.item_id for item in table.items}
    judge = column(gold, [float(label) for label in gold.ratings_by_rater["ann"].values()])
    found = judge_beside_people(table, judge)
    assert found.raters["ann"].difference == 0.0 and found.reason is None
    partly = Verdicts("j", gold.scale, [row for row in judge.rows if row.item_id in asked])
    found = judge_beside_people(table, partly)
    assert (found.at_worst, found.shown(0.03)) == (None, None)
    assert found.reason == "beside ann: the judge did not see 33 of the 120 items"


def test_another_use_of_the_scale_is_no_error_beside_people(gold: GoldSet) -> None:
    """A judge of percentages who passes with 40 and fails with 10 says what ann says, once calibrated."""
    table = whole(gold)
    ann = list(gold.ratings_by_rater["ann"].values())
    low = column(gold, [40.0 if label else 10.0 for label in ann])
    low = dataclasses.replace(low, scale=Scale.parse("percentage"))
    same = column(gold, [float(label) for label in ann])
    assert alt_tests(table, low) == alt_tests(table, same)
    assert judge_beside_people(table, low) == judge_beside_people(table, same)


def test_score_asks_about_ties_once(judgecal: Run, workspace_dir: Path) -> None:
    two_raters(workspace_dir / "gold" / "made")
    argv = ("score", "--gold", "made", "--repeats", "2", "--name", "s")
    assert f"{2 * 87 + N_TIED} calls to make" in judgecal(*argv, "--dry-run").said
    printed = printed_by(judgecal, *argv)
    counts = [printed["gold"][name] for name in ("n_items", "n_unlabelled", "n_tied")]
    assert counts == [120 - N_TIED, N_TIED, N_TIED]
    (judge,) = printed["judges"]
    assert judge["n_expected"] == 2 * 87
    assert judge["stand_in"]["raters"]["ann"]["n"] == 120
    for rater in printed["raters"]:
        assert (rater["n"], rater["judges"][0]["n"], rater["judges"][0]["n_unscored"]) == (120, 120, 0)
    assert len(journal(workspace_dir, "s")) == 2 * 87 + N_TIED
    assert "0 calls to make" in judgecal(*argv, "--dry-run").out
    _, again = decided("s")
    assert again.result.as_json() == {key: value for key, value in printed.items() if key != "headline"}


def test_ties_go_to_another_rater_and_come_back(judgecal: Run, workspace_dir: Path) -> None:
    two_raters(workspace_dir / "gold" / "made")
    printed = printed_by(judgecal, "gold", "sheet", "made", "--ties", "-o", "carol.csv")
    assert printed["n_items"] == N_TIED and "ann, bob tie on these" in " ".join(printed["notes"])
    sheet = workspace_dir / "carol.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    gold = load_gold("made", workspace=find_workspace(None))
    assert {row["item_id"] for row in table} == {item.item_id for item in gold.tied}
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows({**row, "label": "yes"} for row in table)
    assert judgecal(*printed["headline"]["next"].split()[1:]).code == 0
    settled = load_gold("made", workspace=find_workspace(None))
    assert not settled.tied and len(settled.labels) == 120 and set(settled.tie_breakers) == {"carol"}
    again = judgecal("gold", "sheet", "made", "--ties", "-o", "dan.csv")
    assert again.code == 2 and "raters of made tie on no item" in again.err
    both = judgecal("gold", "sheet", "made", "--ties", "--strata", "disagreement", "-n", "5", "-o", "e.csv")
    assert both.code == 2 and "give one of the two" in both.err
