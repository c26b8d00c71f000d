"""Charts of names that a renderer would end the process at, and of texts before and after that are endless."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from judgecal.report.document import Diff

# The renderer ends its whole process at some of these; hence a process of its own.
DRAW = """
import altair as alt
from judgecal.report.charts import drawn, rows_of, shortened

odd = [chr(n) for n in (*range(32), 0x7F, 0x85, 0x2028, 0xD800, 0xDFFF, 0xFDD0, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF)]
names = [shortened(f"judge {c} of {n}", 20) for n, c in enumerate(odd)]
rows = [{"name": name, "value": n, f"key {odd[n]}": name} for n, name in enumerate(names)]
chart = alt.Chart(rows_of(rows), title="".join(odd)).mark_point()
svg = drawn(chart.encode(alt.X("value:Q", title=odd[27]), alt.Y("name:N", sort=names), text=alt.value(odd[31])))
assert svg.startswith("<svg") and len(set(names)) == len(odd)
print("drawn")
"""


def test_no_character_of_a_name_ends_the_renderer() -> None:
    found = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout) == (0, "drawn\n"), found.stderr[-2000:]


@pytest.mark.parametrize("count", [3, 100_000])
def test_a_text_before_and_after_of_any_length_is_shown(count: int) -> None:
    before, after = ("\n".join(f"line {n}{end}" for n in range(count)) for end in ("", "!"))
    start = time.process_time()
    lines = Diff(before=before, after=after).lines()
    assert time.process_time() - start < 5.0
    assert [text for sign, text in lines if sign != "+"] == before.splitlines()
    assert [text for sign, text in lines if sign != "-"] == after.splitlines()
