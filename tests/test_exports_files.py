"""What stands in the files of other tools: cells that hold lists, and the beginnings of files."""

from __future__ import annotations

import time
from typing import Any

import pytest

from judgecal.exchange.files import nested


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('["a", null]', ["a", None]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("['two\\nlines', '\"quoted\"']", ["two\nlines", '"quoted"']),
        ("[{'role': 'user', 'n': np.float64(0.5), 'x': nan, 'y': -1}]", [{"role": "user", "n": 0.5, "x": None, "y": -1}]),
        ("{'at': datetime.datetime(2026, 1, 2)}", {"at": "datetime.datetime(2026, 1, 2)"}),
        ("[(1, 2)]", [[1, 2]]),
    ],
)  # fmt: skip
def test_a_nested_cell_is_read_as_json_or_as_python_prints_it(cell: str, value: Any) -> None:
    assert nested(cell) == value


@pytest.mark.parametrize(
    "cell",
    [
        "(yes)", "(1, 2)", "(1) (2)", "[1][2]", "[1] [2]", "[4 5]", "['one' 'two']", "[1 - 2]", "{1} {2}", "array(1) + array(2)",
        "[see 3]", "[x]", "{", "[1, 2", "0.5", "yes", "", "['a' + 'b']", "[__import__('os')]", "{'a': 1, **b}",
        "[" * 5000 + "]" * 5000, "[" + "-" * 50_000 + "1]", "['" + "a" * 300_001 + "']", "[\x00]",
    ],
)  # fmt: skip
def test_what_is_no_list_stays_text(cell: str) -> None:
    start = time.perf_counter()
    value = nested(cell)
    assert value == cell or value == ["__import__('os')"], "nothing is run"
    assert time.perf_counter() - start < 20
