"""The document of `optimize`: what to do, the numbers of the command, and the prompt, which is never run."""

from __future__ import annotations

import dataclasses
import json
from html import unescape
from pathlib import Path

import pytest

from judgecal.goldset import load_gold
from judgecal.optimize.result import OnDev, OnTest, OptimizedOn, OptimizeResult, Tried
from judgecal.records import Estimate
from judgecal.report.optimize import optimize_document
from judgecal.report.terminal import terminal
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


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    why = None if low else "few"
    return Estimate(value, low, high, n=40, n_expected=41, n_groups=20, n_unscored=1, reason=why)


def optimized(change: tuple[float, float | None, float | None] | None = (0.05, 0.01, 0.09)) -> OptimizeResult:
    """A result that was better on test, or with such a change; None where test stayed sealed."""
    before, after = ({"macro_agreement": estimate(v, v - 0.1, v + 0.1)} for v in (0.6, 0.7))
    difference = None if change is None else estimate(*change)
    names = (("before", 0, 0), ("new", 20, 3))
    return OptimizeResult(
        experiment="opt", optimizer="labeled", reflection_model=None, judge="s@m#opt", metric="macro_agreement",
        gold=OptimizedOn("g", "0" * 64, "percentage", "people", {"dev": 41}, {"dev": 20, "test": 20}),
        dev=OnDev(
            before, after, tuple(Tried(one, 8, "f", n, bad, after["macro_agreement"], None) for one, n, bad in names)
        ),
        test=OnTest(before, after, difference, difference) if difference else OnTest(),
        decision="better", why="why", program="experiments/opt/program.json", n_demos=8, instructions_changed=False,
        chosen="new", choice="it had the highest macro_agreement", test_looks=2,
        test_look="test labels of g: decision 2, reused: shown at level "
                  "0.975" if difference else None, usd=0.0123,
        notes=("percentage verdicts on binary labels (s@m): cut at 50",), run_line="gold:g@0123",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("decision", "chosen", "change", "first"),
    [
        ("better", "new", (0.05, 0.01, 0.09),
         "Take the optimised judge: it agrees better with people. On test its agreement with people changes "
         "by +5.0 [+1.0, +9.0] points"),
        ("worse", "new", (-0.05, -0.09, -0.01),
         "Keep the judge as it is: the optimised one is worse. On test its agreement with people changes by "
         "-5.0 [-9.0,"),
        ("rescaled only", "new", (0.05, 0.01, 0.09),
         "Keep the judge as it is: only its scale got better. On test its agreement with people changes "
         "by +5.0"),
        ("cannot tell", "new", (0.01, -0.02, 0.04),
         "Keep the judge as it is: nothing better is shown. On test its agreement with people changes by "
         "+1.0 [-2.0,"),
        ("cannot tell", "new", (0.01, None, None),
         "Keep the judge as it is: nothing better is shown. Why. On test its agreement with people changes "
         "by +1.0"),
        ("nothing changed", "before", None, "Keep the judge as it is. Why. 1 of 41 unscored on dev, 20 "
                                            "questions."),
        ("cannot tell", "new", None,
         "Do not take the optimised judge yet. Why. 1 of 41 unscored on dev, 20 questions."),
    ],
)  # fmt: skip
def test_the_headline(
    decision: str, chosen: str, change: tuple[float, float | None, float | None] | None, first: str
) -> None:
    result = dataclasses.replace(optimized(change), decision=decision, chosen=chosen)
    headline = optimize_document(result).headline
    assert " ".join([headline.sentence, *headline.because]).startswith(first)
    assert headline.kind == decision
    assert ("this one has served 2 decisions" in " ".join(headline.unknown)) == (change is not None)


def test_a_sealed_test_split_has_no_row() -> None:
    text = terminal(optimize_document(optimized(None)), full=True)
    assert not any(line.startswith("test, ") or "recalibrated" in line for line in text.splitlines())
