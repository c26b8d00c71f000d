"""The document of `optimize`: what to do, the numbers of the command, and the prompt, which is never run."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest

from judgecal.goldset import load_gold
from tests.support.command import Run
from tests.support.gold import harsh_gold
from tests.support.pages import HOSTILE, LONG, Parsed, check_page, items_of, page_of, printed_by


def test_the_page(judgecal: Run, workspace_dir: Path) -> None:
    harsh_gold(workspace_dir)
    printed = printed_by(judgecal, "optimize", "--gold", "harsh")
    metric, test = printed["metric"], printed["test"]
    page = page_of(judgecal, printed["experiment"])
    change = test["calibrated"]["after"][metric]["value"] - test["calibrated"]["before"][metric]["value"]
    # one map, so that no screen has two
    assert change == pytest.approx(test["difference_recalibrated"]["value"])
    assert 'id="losses"' not in page
    carried, gold = items_of(page), load_gold(workspace_dir / "gold" / "harsh")
    changes = [next(mark for mark in item["marks"] if "change:" in mark) for item in carried["items"]]
    wrong = [tuple(said["error"] != "" for said in item["said"]) for item in carried["items"]]
    how = {(True, False): "change:better", (False, True): "change:worse"}
    assert changes == [how.get(both, "change:unchanged") for both in wrong] and "change:better" in changes
    n = carried["loud"]
    assert "change:unchanged" not in changes[:n] and set(changes[n:]) == {"change:unchanged"}
    dev = {item.item_id for item in gold.select("dev")}
    assert {item["id"] for item in carried["items"]} <= dev
    got = [changes.count(f"change:{change}") for change in ("better", "worse")]
    assert f"{got[0]} of {len(dev)} dev items got better, {got[1]} worse" in page
    assert page.count("<h3>Demo ") == printed["n_demos"] > 0


def test_the_prompt_is_shown_as_a_diff_and_never_run(judgecal: Run, workspace_dir: Path) -> None:
    printed = printed_by(judgecal, "optimize", "--limit", "30", "--no-final")
    path = workspace_dir / "experiments" / printed["experiment"] / "program.json"
    program = json.loads(path.read_text())
    lines = program["signature"]["instructions"].splitlines()
    program["signature"]["instructions"] = "\n".join([*lines[1:], HOSTILE])
    program["demos"] = [{"question": HOSTILE, "answer_under_test": LONG}]
    path.write_text(json.dumps(program))
    page = check_page(judgecal, printed, ["gain", "prompt", "candidates", "notes"])
    assert [tag for tag, _ in Parsed(page).elements if tag in ("del", "ins")] == ["del", "ins"]
    assert f"- {lines[0]}</del>" in unescape(page)
    assert "98,000 more characters" in page
    assert "Test is still sealed" in page
    short = judgecal("report", printed["experiment"], "--format", "md").out
    # The text holds a fence of three, so that of the diff has four.
    assert "\n````diff\n- " in short and short.count("````") == 2

    signature = workspace_dir / "signatures" / "correctness_v3.py"
    signature.write_text(signature.read_text().replace(lines[0], "Something else."))
    assert f"- {lines[0]}</del>" in unescape(page_of(judgecal, printed["experiment"]))  # as it was
    path.with_name("judges.json").unlink()
    page = unescape(page_of(judgecal, printed["experiment"]))
    assert "judges.json is gone, so we do not know the instructions before" in page
