"""A rating that says "cannot tell": it is counted wherever ratings are, and is a label nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.experiment.gold_agreement import rater_agreement
from judgecal.goldset import check_gold, load_gold
from tests.support.command import Run
from tests.support.gold import made_gold, made_items

PERCENT = 'kind = "percentage"\nmin = 0\nmax = 100'


def with_rows(folder: Path, *rows: dict[str, object], scale: str = PERCENT) -> Path:
    """A set of 12 questions, 36 answers; two people labelled all but the first."""
    items = made_items(12)
    labels = [
        (row["item_id"], rater, {"full": 100, "half": 50, "none": 0}[row["kind"]])
        for row in items[1:]
        for rater in ("ann", "bob")
    ]
    made_gold(folder, items, labels, scale=scale)
    with (folder / "ratings.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return folder


def test_it_is_a_rating_and_no_label(tmp_path: Path) -> None:
    row = {
        "item_id": "i000-full",
        "rater": "ann",
        "reason": "cannot tell",
        "note": "no date",
        "rubric_sha256": "a" * 64,
    }
    gold = load_gold(with_rows(tmp_path / "one", row))
    (unclear,) = [rating for rating in gold.ratings if rating.label is None]
    assert (unclear.note, unclear.reason, unclear.rubric_sha256) == ("no date", "cannot tell", "a" * 64)
    assert gold.cannot_tell == {"ann": 1} and "i000-full" not in gold.labels
    assert "i000-full" not in gold.ratings_by_rater["ann"] and len(gold.shared_items("ann", "bob")) == 35
    found = rater_agreement(gold)
    assert found.cannot_tell == {"ann": 1} and found.pairs[0].n == 35
    messages = {problem.kind: problem.message for problem in check_gold(gold)}
    assert "'ann' could not tell 1 of 36 items" in messages["cannot_tell"]
    assert "nobody who rated it could tell" in messages["unlabelled"]


def test_who_can_tell_of_nothing_is_no_rater(tmp_path: Path) -> None:
    row = {"item_id": "i000-full", "rater": "carol", "reason": "cannot tell"}
    gold = load_gold(with_rows(tmp_path / "one", row))
    assert gold.raters == ("ann", "bob") and gold.cannot_tell == {"carol": 1}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"label": 50, "reason": "cannot tell"}, "keep one of them"),
        ({}, "no label"),
        ({"reason": "no idea"}, "no label"),
    ],
)
def test_half_of_one_is_refused(tmp_path: Path, row: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        load_gold(with_rows(tmp_path / "one", {"item_id": "i000-full", "rater": "ann", **row}))


def test_labels_of_two_rubrics_are_found(tmp_path: Path) -> None:
    rows = [
        {"item_id": "i000-full", "rater": rater, "label": 100, "rubric_sha256": sha * 64}
        for rater, sha in (("ann", "a"), ("bob", "b"))
    ]
    kinds = {problem.kind for problem in check_gold(load_gold(with_rows(tmp_path / "one", *rows)))}
    assert "rubrics" in kinds


def test_a_sheet_may_say_so(judgecal: Run, workspace_dir: Path) -> None:
    folder = with_rows(workspace_dir / "gold" / "one")
    sheet = workspace_dir / "carol.csv"
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    first = rows[0]
    sheet.write_text(
        f'item_id,question,answer,label,note\n{first["item_id"]},"{first["question"]}","{first["answer"]}",'
        "Cannot tell,which fair?\n",
        encoding="utf-8",
    )
    ran = judgecal("gold", "import", sheet, "--sheet", "--as", "one")
    assert ran.code == 0, ran.err
    assert load_gold(folder).cannot_tell == {"carol": 1}
    assert "carol could not tell 1 item" in judgecal("gold", "agreement", "one").said
    assert judgecal("score", "--gold", "one", "--split", "all", "--limit", "12").code == 0
