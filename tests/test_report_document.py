"""Numbers, one document with every block, and charts: nothing acts, nothing is lost, nothing overflows."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import jinja2
import pytest
from rich.cells import cell_len

from judgecal.records import Estimate, Headline, as_plain
from judgecal.report import document as doc
from judgecal.report import numbers
from judgecal.report.charts import (
    Axis,
    Frame,
    Mark,
    Tick,
    apart,
    hundred,
    in_points,
    interval_picture,
    ladder_picture,
)
from judgecal.report.html import html, rendered
from judgecal.report.markdown import markdown
from judgecal.report.terminal import terminal
from tests.support.pages import ATTACK, Parsed

EVIL = "</script><script>alert(1)</script><b>x</b> `a` | *b* @you \x1b[2J\u202eold"

# --- numbers


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.12345, 3, "0.123"), (-0.0004, 3, "0.000"), (-0.5, 1, "-0.5"), (None, 3, "-"), (12.0, 1, "12.0")],
)
def test_plain(value: float | None, digits: int, text: str) -> None:
    assert numbers.plain(value, digits) == text  # never -0.000


@pytest.mark.parametrize(
    ("estimate", "text", "difference"),
    [
        (Estimate(0.5, 0.25, 0.75), "0.500 [0.250, 0.750]", "+0.500 [+0.250, +0.750]"),
        (Estimate(-0.1, -0.2, 0.0), "-0.100 [-0.200, 0.000]", "-0.100 [-0.200, 0.000]"),
        (Estimate(0.5, reason="few"), "0.500", "+0.500"),
        (Estimate(None, reason="no pairs"), "-", "-"),
        (None, "-", "-"),
        (Estimate(0.0, 0.0, 0.0), "0.000 [0.000, 0.000]", "0.000 [0.000, 0.000]"),
    ],
)
def test_estimates(estimate: Estimate | None, text: str, difference: str) -> None:
    assert (numbers.estimate(estimate), numbers.difference(estimate)) == (text, difference)


def test_money_and_seconds() -> None:
    prices = {None: "unknown", 0.0: "0", 0.00012: "0.00012", 1.5: "1.500", 12.3456: "12.346"}
    assert {usd: numbers.money(usd) for usd in prices} == prices
    latencies = {None: "-", 0.0123: "12.3 ms", 1.0: "1.00 s", 12.345: "12.35 s"}
    assert {value: numbers.seconds(value) for value in latencies} == latencies


def test_json_holds_estimates_and_no_nan() -> None:
    value = {"a": Estimate(0.5, n=3), "b": (1, math.nan), "c": "é", "d": math.inf}
    text = json.dumps(as_plain(value), ensure_ascii=False, allow_nan=False)
    plain = json.loads(text)
    assert plain["a"]["value"] == 0.5 and plain["a"]["n"] == 3 and "é" in text
    assert (plain["b"], plain["c"], plain["d"]) == ([1, None], "é", None)
    with pytest.raises(TypeError, match="set has no JSON form"):
        as_plain({"a": {1}})


# --- blocks in every form


def every_block(text: str) -> list[doc.Block]:
    """Each kind of block once, with a text in every place that has one."""
    rows = [[text, "1"], [doc.Cell(text, True, 0.5), "2"], [text]]
    table = doc.Grid([text, "n"], rows, title=text, short=True)
    picture = doc.Picture(lambda: "<svg></svg>", text, text, lambda: "<svg></svg>", numbers=table, short=True)
    return [
        doc.Paragraph(text, short=True),
        doc.Heading(text, short=True),
        doc.Bullets([text], short=True),
        doc.Lines([text], short=True),
        table,
        picture,
        doc.Gallery([picture, table], text, short=True),
        doc.Hundred(
            text,
            [
                doc.Outcome(kind, 0.25, text, text, text)
                for kind in ("caught", "through", "rejected", "passed")
            ],
            text,
            short=True,
        ),
        doc.Folded(text, [table], short=True),
        doc.Record(text, [(text, text)], text, short=True),
        doc.Diff(f"{text}\nsame", f"{text} after\nsame", short=True),
    ]


def document(text: str) -> doc.Document:
    """A document whose every text is the one given."""
    headline = Headline("use", f"{text}.", (text,), (text,), f"judgecal select {text}")
    section = doc.Section("one", text, text, every_block(text))
    facts = (doc.Fact(text, text),)
    return doc.Document(text, text, headline, [section], facts, (text,), text, {"text": text})


def holding(*blocks: doc.Block) -> doc.Document:
    return replace(document("x"), sections=[doc.Section("one", "x", "x", blocks)])


def test_every_block_is_here() -> None:
    kinds = {kind for kind in vars(doc).values() if isinstance(kind, type) and issubclass(kind, doc.Block)}
    assert {type(block) for block in every_block("x")} == kinds - {doc.Block}


class _Tags(HTMLParser):
    """The tags of a page, its scripts, and whether they close."""

    VOID = frozenset({"meta", "wbr", "br", "input", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count = 0
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count += 1
        self.scripts += tag == "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_no_form_holds_markup_of_a_text_or_lets_it_act() -> None:
    pages, counts = {text: html(document(text)) for text in ("plain", EVIL)}, {}
    for text, page in pages.items():
        parser = _Tags()
        parser.feed(page)
        assert parser.open == [] and parser.scripts == 0
        counts[text] = parser.count
    assert counts["plain"] == counts[EVIL] - pages[EVIL].count("<wbr>")
    short = markdown(document(EVIL))
    # within code nothing is read as markup
    prose = short.partition("```diff")[0].splitlines()
    read = "\n".join(line for line in prose if not line.startswith(("`", "- `", "next: `")))
    assert "<b>" not in read and " @you" not in read
    printed = terminal(document(EVIL), full=True)
    assert printed.splitlines()[0].startswith("</script>") and printed.splitlines()[-1].startswith("next: ")
    assert "[U+202E]" in printed
    for drawn in (pages[EVIL], short, printed):
        assert "\x1b" not in drawn and "\u202e" not in drawn


def test_a_missing_value_of_a_template_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        rendered("frame.html", style="", sandbox="")


def test_what_is_not_short_stands_on_the_page_alone() -> None:
    made, only = holding(doc.Paragraph("only on the page")), "only on the page"
    assert only in html(made) and only in terminal(made, full=True)
    assert only not in markdown(made) and only not in terminal(made)


# --- the terminal


def test_a_table_is_aligned_on_what_a_terminal_shows() -> None:
    rows = [["a", "1"], ["一二", "22"], ["a heading across"], ["e\u0301", "3"]]
    section = doc.Section("s", "s", "", [doc.Grid(["name", "n"], rows, short=True)])
    shown = terminal(doc.Document("t", "", Headline("k", ""), [section]))
    # The two ideographs take four columns, the combining accent none; a heading widens nothing.
    aligned = ["name   n", "--------", "a      1", "一二  22", "a heading across", "e\u0301      3"]
    assert shown.splitlines() == aligned


METRICS = ["judge", *(f"metric_{number}" for number in range(9))]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_terminal_keeps_to_its_width(width: int) -> None:
    long = ["a judge whose name has several words 裁判", *["0.842 [0.781, 0.903]"] * 9]
    table = doc.Grid(METRICS, [long, ["a heading across " * 12]], short=True)
    words = doc.Paragraph("some words that are wrapped " * 20, short=True)
    drawn = terminal(holding(table, words), width=width, full=True)
    assert max(map(cell_len, drawn.splitlines())) <= width
    assert all(name in drawn for name in METRICS) and drawn.count("0.842") == 9


@pytest.mark.parametrize("width", [40, 80])
def test_a_terminal_shows_what_decides_in_few_lines(width: int) -> None:
    """Ten rows, the last ones among them; the columns that fit; the next command at the end."""
    rows = [[f"judge {number}", *["0.842 [0.781, 0.903]"] * 9] for number in range(30)]
    table = doc.Grid(METRICS, [*rows, ["floor", *["0.500"] * 9]], title="t " * 50, short=True, last=1)
    words = doc.Paragraph("some words that are wrapped " * 40, short=True)
    lines = terminal(holding(table, words), width=width).splitlines()
    assert max(map(cell_len, lines)) <= width and len(lines) <= 27
    assert lines[-1] == "next: judgecal select x" and "... and more: --full" in lines[-4:]
    assert [line for line in lines if line.startswith("judge ")][-1].startswith("judge 8")
    assert "... 21 more: --full" in lines and any(line.startswith("floor") for line in lines)


@pytest.mark.parametrize(
    ("judges", "others", "seen"), [(9, 9, (5, 5)), (3, 9, (3, 7)), (9, 3, (7, 3)), (4, 4, (4, 4))]
)
def test_many_raters_leave_room_for_the_judges(judges: int, others: int, seen: tuple[int, int]) -> None:
    rows = [[f"judge {n}"] for n in range(judges)] + [[f"rater {n}"] for n in range(others)]
    lines = terminal(holding(doc.Grid(["who"], rows, short=True, last=others))).splitlines()
    assert [line for line in lines if line.startswith("judge ")] == [f"judge {n}" for n in range(seen[0])]
    assert [line for line in lines if line.startswith("rater ")] == [f"rater {n}" for n in range(seen[1])]


def test_colours_are_for_a_screen_alone() -> None:
    made = replace(document("x y"), sections=[doc.Section("one", "x", "x", [doc.Grid(["j"], [["a"]])])])
    coloured = terminal(made, colour=True)
    assert "\x1b" not in terminal(made) and "\x1b[2J" not in terminal(document(EVIL), colour=True)
    assert coloured.startswith("\x1b[1mx y.\x1b[0m\n") and coloured.count("\x1b") == 2


# --- texts before and after


def test_a_diff_by_line() -> None:
    lines = doc.Diff("one\ntwo\nthree", "one\n2 <b>\nthree").lines()
    assert lines == [(" ", "one"), ("-", "two"), ("+", "2 <b>"), (" ", "three")]


@pytest.mark.parametrize("count", [3, 100_000])
def test_a_text_before_and_after_of_any_length_is_shown(count: int) -> None:
    before, after = ("\n".join(f"line {n}{end}" for n in range(count)) for end in ("", "!"))
    start = time.process_time()
    lines = doc.Diff(before=before, after=after).lines()
    assert time.process_time() - start < 50.0
    assert [text for sign, text in lines if sign != "+"] == before.splitlines()
    assert [text for sign, text in lines if sign != "-"] == after.splitlines()


# --- charts: any XML reader takes them, and numbers stand apart

ODD_CODES = (*range(32), 0x7F, 0x85, 0x2028, 0xD800, 0xDFFF, 0xFDD0, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF)
ODD = [*map(chr, ODD_CODES)]


def both_drawn(picture: doc.Picture) -> tuple[str, str]:
    """The picture wide, and for a phone."""
    assert picture.narrow is not None
    return picture.draw(), picture.narrow()


def test_no_character_of_a_name_breaks_a_picture() -> None:
    names = [numbers.shortened(f"judge {odd} of {n}", 20) for n, odd in enumerate(ODD)]
    assert len(set(names)) == len(ODD)
    rows = [doc.Rung(name, Estimate(0.1 * n), name) for n, name in enumerate(names)]
    for drawn in both_drawn(interval_picture(rows, Axis("".join(ODD)))):
        ElementTree.fromstring(drawn)
    frame = Frame(340, (1.0, 500.0), (0.0, 1.0), (ODD[27], ODD[31]))
    ElementTree.fromstring(frame.drawn([Mark("text", 1.0, 1.0, text=name) for name in names]))


@pytest.mark.parametrize("length", [5, 40, 200])
def test_names_have_the_room_that_they_need(length: int) -> None:
    """Whole up to half of the picture, and as many letters as there are, never over the lines or numbers."""
    row = doc.Rung("x" * length, Estimate(0.5, 0.4, 0.6), "0.500 [0.400, 0.600]")
    wide, narrow = (
        max((text for text in ElementTree.fromstring(drawn).itertext() if "x" in text), key=len)
        for drawn in both_drawn(interval_picture([row], Axis("share")))
    )
    assert (wide == row.name) == (length <= 60) and len(narrow) == min(length, 21) and len(wide) <= 62


def test_intervals_without_ends_are_points_and_texts_are_escaped() -> None:
    rows = [
        doc.Rung(ATTACK, Estimate(0.5, reason="few"), "0.500", strong=True),
        doc.Rung("none", Estimate(None), "-", hollow=True),
    ]
    drawn = interval_picture(rows, Axis("share", full=0.0, dashed=-0.1), title=ATTACK).draw()
    assert not Parsed(drawn).all("img") and "0.500" in drawn
    points = in_points(Estimate(0.25, 0.125, 0.5, n=7))
    assert (points.value, points.low, points.high, points.n) == (25.0, 12.5, 50.0, 7)


def test_numbers_on_an_axis_stand_apart() -> None:
    every = [Tick(0, "1"), Tick(5, "2"), Tick(30, "3"), Tick(40, "1,000")]
    assert [tick.text for tick in apart(every)] == ["1", "3"]
    frame = Frame(340, (30.0, 90_000.0), (0.2, 0.2001), ("tokens", "recall"))
    shown = frame.numbers()
    assert 4 <= len(shown) <= 10 and all(b.at - a.at > 3.1 * len(a.text + b.text) for a, b in pairwise(shown))
    assert len(frame.y_ticks) > 1


@pytest.mark.parametrize(
    ("right", "fails", "passes", "counts"),
    [
        (0.55, 0.17, 0.13, (39, 6, 9, 46)),  # 39.15, 5.85, 9.35 and 45.65: the largest remainders go up
        (1 / 3, 0.0, 1.0, (0, 67, 0, 33)),
        (0.0, None, 0.25, (75, 25, 0, 0)),
        (0.505, 0.5, 0.5, (25, 25, 25, 25)),
    ],
)
def test_a_hundred_answers_are_a_hundred_squares(
    right: float, fails: float | None, passes: float, counts: tuple[int, ...]
) -> None:
    drawn = hundred("the judge", right, Estimate(fails), Estimate(passes, 0.1, 0.2), shown=True)
    squares = drawn.squares()
    assert tuple(n for _, n, _ in squares) == counts and sum(counts) == 100
    cells = [
        10 * (x + i) + y + j
        for _, _, boxes in squares
        for x, y, w, h in boxes
        for i in range(w)
        for j in range(h)
    ]
    assert sorted(cells) == [*range(100)]
    through, rejected = squares[1][0], squares[2][0]
    assert through.rate.endswith("% of bad ones [10, 20]") and through.show == "case:false pass"
    assert (rejected.rate == "") == (fails is None)


def test_a_ladder_has_a_zone_to_the_free_judge_and_one_from_people_on() -> None:
    rung = doc.Rung("judge", Estimate(85.0, 82.0, 87.0), "85.0 [82, 87]", strong=True)
    free, people = (
        doc.Rung("words", Estimate(81.4), "81.4"),
        doc.Rung("two people", Estimate(87.0, 83.0, 89.0), "87"),
    )
    picture = ladder_picture(doc.Ladder("agreement, %", [rung], free, people, 50.0), "How far?")
    assert picture.says == "judge: 85.0 [82, 87]; free: words reaches 81.4; two people: 87"
    for drawn in both_drawn(picture):
        rects = {one.get("class"): one for one in ElementTree.fromstring(drawn) if one.tag == "rect"}
        zone, band = (float(rects[name].get("width", 0)) for name in ("free", "band"))
        assert zone > band > 0.0  # the last band begins where people's own value stands


# --- the ladder in a terminal


def a_ladder() -> doc.Document:
    def rung(
        name: str, value: float, low: float | None, high: float | None, *, strong: bool = False
    ) -> doc.Rung:
        ends = "" if low is None else f" [{low:.0f}, {high:.0f}]"
        return doc.Rung(name, Estimate(value, low, high), f"{value:.1f}{ends}", strong)

    ladder = doc.Ladder(
        "agreement, %",
        [rung("gpt-4", 84.9, 82.0, 87.0, strong=True), rung(f"bem{EVIL}", 81.4, None, None)],
        rung("a word matcher", 81.4, 78.0, 84.0),
        rung("two people", 87.0, 85.0, 90.0),
        50.0,
    )
    numbers = doc.Grid(["judge"], [["in the table"]], drawn=True, short=True)
    more = doc.Grid(["tag"], [["elsewhere"]], short=True)
    sections = [doc.Section("agreement", "", "", [numbers, more])]
    facts, picture = [doc.Fact("6 of 100", "let through")], doc.Picture(lambda: "", "", ladder=ladder)
    return doc.Document("t", "about", Headline("use", "Use it."), sections, facts, picture=picture)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_ladder_in_a_terminal(width: int) -> None:
    short, full = (terminal(a_ladder(), width=width, full=full) for full in (False, True))
    gpt, bem = (
        next(line for line in short.splitlines() if line.startswith(name)) for name in ("gpt-4", "bem")
    )
    assert max(map(cell_len, short.splitlines())) <= width and "\x1b" not in short
    # what is free ends where bem stands, people begin above gpt-4's dot
    assert gpt.count("●") == bem.count("●") == 1 and "─" in gpt and "─" not in bem
    assert gpt.index("●") > bem.index("●") == bem.rindex("░") + 1 and gpt.endswith("84.9 [82, 87]")
    assert "▒" not in gpt[: gpt.index("●")] and bem.index("▒") >= gpt.index("●")
    assert "in the table" not in short and "elsewhere" in short and "6 of 100 let through" in short
    assert "in the table" in full and full.count("6 of 100") == 1 and "●" in full
    coloured = terminal(a_ladder(), width=width, colour=True)
    assert "\x1b[1mgpt-4" in coloured and "\x1b[90m░" in coloured and "\x1b[32m▒" in coloured
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == short
