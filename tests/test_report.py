"""How numbers, tables and results are written."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from judgecal.records import Estimate
from judgecal.report import agreement_text, json_text, numbers, text_table

# --- numbers


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.12345, 3, "0.123"),
        (-0.0004, 3, "0.000"),  # never -0.000
        (-0.5, 1, "-0.5"),
        (None, 3, "-"),
        (12.0, 1, "12.0"),
    ],
)
def test_plain(value: float | None, digits: int, text: str) -> None:
    assert numbers.plain(value, digits) == text


@pytest.mark.parametrize(
    ("found", "text", "difference"),
    [
        (Estimate(0.5, 0.25, 0.75), "0.500 [0.250, 0.750]", "+0.500 [+0.250, +0.750]"),
        (Estimate(-0.1, -0.2, 0.0), "-0.100 [-0.200, 0.000]", "-0.100 [-0.200, 0.000]"),
        (Estimate(0.5, reason="few"), "0.500", "+0.500"),
        (Estimate(None, reason="no pairs"), "-", "-"),
        (None, "-", "-"),
        (Estimate(0.0, 0.0, 0.0), "0.000 [0.000, 0.000]", "0.000 [0.000, 0.000]"),
    ],
)
def test_estimates(found: Estimate | None, text: str, difference: str) -> None:
    assert (numbers.estimate(found), numbers.difference(found)) == (text, difference)


@pytest.mark.parametrize(
    ("usd", "text"),
    [(None, "unknown"), (0.0, "0"), (0.00012, "0.00012"), (1.5, "1.500"), (12.3456, "12.346")],
)
def test_money(usd: float | None, text: str) -> None:
    assert numbers.money(usd) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.0123, "12.3 ms"), (1.0, "1.00 s"), (12.345, "12.35 s")]
)
def test_seconds(value: float | None, text: str) -> None:
    assert numbers.seconds(value) == text


# --- tables and JSON


def test_a_table_is_aligned_on_what_a_terminal_shows() -> None:
    shown = text_table(["name", "n"], [["a", "1"], ["一二", "22"], ["a heading across"], ["e\u0301", "3"]])
    # The two ideographs take four columns, the combining accent none; a heading widens nothing.
    assert shown.splitlines() == [
        "name   n",
        "--------",
        "a      1",
        "一二  22",
        "a heading across",
        "e\u0301      3",
    ]


def test_json_holds_estimates_and_no_nan() -> None:
    value = {"a": Estimate(0.5, n=3), "b": (1, math.nan), "c": "é", "d": math.inf}
    found = json.loads(json_text(value))
    assert found["a"]["value"] == 0.5 and found["a"]["n"] == 3
    assert (found["b"], found["c"], found["d"]) == ([1, None], "é", None)
    assert "é" in json_text(value)
    with pytest.raises(TypeError, match="set has no JSON form"):
        json_text({"a": {1}})


# --- the agreement table


def entry(judge: str, value: float, *, n: int = 20, unscored: int = 0, **more: Any) -> dict[str, Any]:
    counts: dict[str, Any] = {"n": n, "n_expected": n + unscored, "n_unscored": unscored}
    metrics = {
        "mean_agreement": Estimate(value, **counts),
        "macro_agreement": Estimate(value, value - 0.1, value + 0.1, **counts),
        "kappa@75": Estimate(0.5, **counts),
        "bias": Estimate(-2.0, **counts),
    }
    return {
        "judge": judge,
        **counts,
        "agreement": metrics,
        "as_wrong": metrics,
        "latency_s": {"p50": 0.5, "p95": 0.9},
        "usd_per_1k": None,
        "unit": "percentage",
        "unscored": {"parse": unscored} if unscored else {},
        **more,
    }


@pytest.fixture
def table() -> dict[str, Any]:
    """What `score` hands over, cut down."""
    gold = {
        "set": "s",
        "sha256": "0123456789abcdef" * 4,
        "split": "open",
        "n_items": 22,
        "n_groups": 11,
        "n_unlabelled": 3,
        "n_test_items": 4,
        "labels_by": "people",
        "scale": "percentage",
        "pass_at": 75.0,
    }
    return {
        "experiment": "score-s-01234567",
        "gold": gold,
        "judges": [entry("a@b", 0.8, unscored=2), entry("c@d", 0.7)],
        "floor": [entry("constant 50", 0.5, usd_per_1k=0.0, unit="binary")],
        "raters": [{**entry("ann", 0.9), "judges": [entry("a@b", 0.75)]}],
        "test_looks": 1,
        "run_line": "gold:s@0123|split:open",
        "notes": ["percentage verdicts on binary labels (a@b): cut at 50"],
    }


def test_the_agreement_table_as_text(table: dict[str, Any]) -> None:
    lines = agreement_text(table).splitlines()
    heading = "s@0123456789ab, split open: 22 items on 11 questions, percentage labels by people"
    assert lines[0] == f"{heading}, pass at 75"
    cells = {line.split()[0]: line for line in lines if line.startswith(("judge", "a@b ", "c@d "))}
    assert cells["judge"].split()[:4] == ["judge", "n", "unscored", "macro_agreement"]
    assert (
        " ".join(cells["a@b"].split()) == "a@b 20/22 2 0.800 [0.700, 0.900] 0.800 0.500 -2.0 unknown 500.0 ms"
    )
    floor, raters = (
        lines.index("floor"),
        lines.index(next(line for line in lines if line.startswith("raters"))),
    )
    # Its bias is in another unit than the judges', so it does not stand in their column.
    constant = "constant 50 20/20 0 0.500 [0.400, 0.600] 0.500 0.500 - 0 500.0 ms"
    assert " ".join(lines[floor + 1].split()) == constant
    assert lines[raters + 1].split()[0] == "ann"
    assert lines[raters + 2].startswith("    a@b")
    assert not lines[raters + 1].endswith(("ms", "unknown"))  # nobody called a person
    for sentence in (
        "a@b: 2 of 22 unscored (2 parse).",
        "3 items have no gold label (raters tie, or nobody rated them) and are left out.",
        "Percentage verdicts on binary labels (a@b): cut at 50.",
        "4 of the items are test items: this look at their labels is logged.",
        "Decisions taken on the test labels of s so far: 1.",
        "experiment: score-s-01234567",
        "run: gold:s@0123|split:open",
    ):
        assert sentence in lines


def test_recorded_judgements_have_no_columns_of_cost_and_latency(table: dict[str, Any]) -> None:
    recorded = [{**one, "latency_s": {"p50": None, "p95": None}} for one in table["judges"]]
    lines = agreement_text({**table, "judges": recorded}).splitlines()
    assert lines[2].split()[-1] == "bias" and not [line for line in lines if line.endswith("ms")]


def test_labels_of_the_project_are_called_so(table: dict[str, Any]) -> None:
    shown = agreement_text({**table, "gold": {**table["gold"], "labels_by": "project"}})
    assert "labels by the project itself, not by people" in shown


def test_what_is_missing_is_said(table: dict[str, Any]) -> None:
    few = Estimate(0.8, reason="3 groups: fewer than 10 give no interval", n=20, n_expected=20)
    one = {**table["judges"][0], "as_wrong": {"macro_agreement": few}}
    shown = agreement_text({**table, "judges": [one], "raters": [], "floor_reason": "some items have none"})
    assert "No interval for macro_agreement: 3 groups: fewer than 10 give no interval." in shown
    assert "No human ceiling: no item has labels of two raters." in shown
    assert "Some items have none." in shown
