"""Pages of retrieval, gate and judge: test items, text that is never run; results in a notebook."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Run
from tests.support.locks import Served, flips
from tests.support.locks import served as served
from tests.support.pages import check_page, items_of, page_of, printed_by, told

# --- gate and judge


def test_gate(judgecal: Run, served: Served) -> None:
    served.script.change = flips(0.15)
    printed = printed_by(judgecal, "gate", "--lock", served.path, "--name", "g", code=1)
    n = len(printed["flipped"])
    estimates = [printed[name] for name in ("flip_rate", "noise", "difference")]
    estimates += [printed[when][printed["metric"]] for when in ("locked", "now")]
    shown = [told(estimate, 1, 100.0) for estimate in estimates]
    page = check_page(judgecal, printed, ["loss", "flipped", "notes"], *shown)
    assert "Stop using this judge." in page
    gold = served.script.gold
    sealed = {item.item_id for item in gold.select("test")} & {one["item_id"] for one in printed["flipped"]}
    rows = items_of(page)["items"]
    assert len(rows) == n - len(sealed) > 10 and all(row["label"] for row in rows)
    assert all(row["said"][0]["verdict"] != row["said"][1]["verdict"] for row in rows)
    assert not sealed & {row["id"] for row in rows} and f"{n} items with another verdict" in page
    assert sealed and f"{len(sealed)} of test, which we count and never show" in page
    assert not [one for one in sealed if one in page]

    card = served.workspace.root / "gold" / "starter" / "items.jsonl"
    card.write_text(card.read_text() + "\n")
    changed = page_of(judgecal, "g")  # other bytes: another set
    assert "so we treat every item as a test item and show none." in changed
    assert 'id="explore"' not in changed


# --- what is not there, and parts


def test_what_cannot_be_read_is_one_message(judgecal: Run, workspace_dir: Path) -> None:
    printed = printed_by(judgecal, "retrieval", "--name", "ret")
    path = workspace_dir / "experiments" / printed["experiment"] / "summary.json"
    for text, said in (
        ("{", "no JSON"),
        ("[]", "must hold a JSON object"),
        ('{"schema": 99}', "99"),
        (None, "is not there: the command did not finish"),
    ):
        path.unlink() if text is None else path.write_text(text)
        ran = judgecal("report", "ret")
        assert ran.code == 2 and said in ran.err, ran.err
    assert judgecal("report", "--all").code == 0
    assert "summary.json: is not there" in (workspace_dir / "experiments" / "index.html").read_text()
