"""Charts that any XML reader takes, numbers that stand apart, and texts before and after that are endless."""

from __future__ import annotations

import time
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from judgecal.records import Estimate
from judgecal.report.charts import Frame, Mark, Tick, apart, shortened
from judgecal.report.document import Diff
from judgecal.report.intervals import Axis, IntervalRow, interval_picture

ODD = [
    chr(n)
    for n in (*range(32), 0x7F, 0x85, 0x2028, 0xD800, 0xDFFF, 0xFDD0, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF)
]


def test_no_character_of_a_name_breaks_a_picture() -> None:
    names = [shortened(f"judge {odd} of {n}", 20) for n, odd in enumerate(ODD)]
    assert len(set(names)) == len(ODD)
    rows = [IntervalRow(name, Estimate(0.1 * n), name) for n, name in enumerate(names)]
    picture = interval_picture(rows, Axis("".join(ODD)))
    assert picture.narrow is not None
    for drawn in (picture.draw(), picture.narrow()):
        ElementTree.fromstring(drawn)
    frame = Frame(340, (1.0, 500.0), (0.0, 1.0), (ODD[27], ODD[31]), log=True)
    ElementTree.fromstring(frame.drawn([Mark("text", 1.0, 1.0, text=name) for name in names]))


@pytest.mark.parametrize("length", [5, 40, 200])
def test_names_have_the_room_that_they_need(length: int) -> None:
    """Whole up to half of the picture, and as many letters as there are, never over the lines or the
    numbers."""
    name = "x" * length
    picture = interval_picture(
        [IntervalRow(name, Estimate(0.5, 0.4, 0.6), "0.500 [0.400, 0.600]")], Axis("share")
    )
    assert picture.narrow is not None
    wide, narrow = (
        max((text for text in ElementTree.fromstring(drawn).itertext() if "x" in text), key=len)
        for drawn in (picture.draw(), picture.narrow())
    )
    assert (wide == name) == (length <= 60) and len(narrow) == min(length, 21) and len(wide) <= 62


def test_numbers_on_an_axis_stand_apart() -> None:
    assert [one.text for one in apart([Tick(0, "1"), Tick(5, "2"), Tick(30, "3"), Tick(40, "1,000")])] == [
        "1",
        "3",
    ]
    frame = Frame(340, (30.0, 90_000.0), (0.2, 0.2001), ("tokens", "recall"), log=True)
    found = frame.numbers()
    assert 5 <= len(found) <= 10 and all(b.at - a.at > 3.1 * len(a.text + b.text) for a, b in pairwise(found))
    assert len(frame.y_ticks) > 1


@pytest.mark.parametrize("count", [3, 100_000])
def test_a_text_before_and_after_of_any_length_is_shown(count: int) -> None:
    before, after = ("\n".join(f"line {n}{end}" for n in range(count)) for end in ("", "!"))
    start = time.process_time()
    lines = Diff(before=before, after=after).lines()
    assert time.process_time() - start < 50.0
    assert [text for sign, text in lines if sign != "+"] == before.splitlines()
    assert [text for sign, text in lines if sign != "-"] == after.splitlines()
