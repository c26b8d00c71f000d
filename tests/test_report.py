"""How numbers, tables and results are written."""

from __future__ import annotations

import json
import math

import pytest

from judgecal.records import Estimate, Headline, as_plain
from judgecal.report import numbers
from judgecal.report.document import Document, Section, Table
from judgecal.report.terminal import terminal

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
    table = Table(
        ["name", "n"], [["a", "1"], ["一二", "22"], ["a heading across"], ["e\u0301", "3"]], short=True
    )
    shown = terminal(Document("t", "", Headline("k", ""), [Section("s", "s", "", [table])]))
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
    text = json.dumps(as_plain(value), ensure_ascii=False, allow_nan=False)
    found = json.loads(text)
    assert found["a"]["value"] == 0.5 and found["a"]["n"] == 3
    assert (found["b"], found["c"], found["d"]) == ([1, None], "é", None)
    assert "é" in text
    with pytest.raises(TypeError, match="set has no JSON form"):
        as_plain({"a": {1}})
