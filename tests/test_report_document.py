"""Numbers, one document with every block, and charts: nothing acts, nothing is lost, nothing overflows."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from judgecal.records import Estimate, Headline
from judgecal.report import document as doc
from judgecal.report import wording
from judgecal.report.charts import Axis, hundred, interval_picture
from judgecal.report.html import html, markdown
from judgecal.report.terminal import terminal

EVIL = "</script><script>alert(1)</script><b>x</b> `a` | *b* @you \x1b[2J\u202eold"

# --- numbers


# --- blocks in every form


def every_block(text: str) -> list[doc.Block]:
    """Each kind of block once, with a text in every place that has one."""
    rows = [[text, "1"], [doc.Cell(text, True, 0.5), "2"], [text]]
    table = doc.Grid([text, "n"], rows, title=text, short=True)
    picture = doc.Picture(lambda: "<svg></svg>", text, text, numbers=table, short=True)
    return [
        doc.Paragraph(text, short=True),
        doc.Bullets([text], short=True),
        doc.Lines([text], short=True),
        table,
        picture,
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


def test_what_is_not_short_stands_on_the_page_alone() -> None:
    made, only = holding(doc.Paragraph("only on the page")), "only on the page"
    assert only in html(made) and only in terminal(made, full=True)
    assert only not in markdown(made) and only not in terminal(made)


# --- the terminal


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
    """Ten rows; the columns that fit; the next command at the end."""
    rows = [[f"judge {number}", *["0.842 [0.781, 0.903]"] * 9] for number in range(30)]
    table = doc.Grid(METRICS, rows, title="t " * 50, short=True)
    words = doc.Paragraph("some words that are wrapped " * 40, short=True)
    lines = terminal(holding(table, words), width=width).splitlines()
    assert max(map(cell_len, lines)) <= width and len(lines) <= 27
    assert lines[-1] == "next: judgecal select x" and "... and more: --full" in lines[-4:]
    assert [line for line in lines if line.startswith("judge ")][-1].startswith("judge 9")
    assert "... 20 more: --full" in lines


# --- charts: any XML reader takes them, and numbers stand apart

ODD_CODES = (*range(32), 0x7F, 0x85, 0x2028, 0xD800, 0xDFFF, 0xFDD0, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF)
ODD = [*map(chr, ODD_CODES)]


def test_no_character_of_a_name_breaks_a_picture() -> None:
    names = [wording.shortened(f"judge {odd} of {n}", 20) for n, odd in enumerate(ODD)]
    assert len(set(names)) == len(ODD)
    rows = [doc.Rung(name, Estimate(0.1 * n), name) for n, name in enumerate(names)]
    ElementTree.fromstring(interval_picture(rows, Axis("".join(ODD))).draw())


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
