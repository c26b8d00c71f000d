"""One document with every block, drawn by the three renderers: nothing acts, nothing is lost, nothing
overflows."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser

import jinja2
import pytest
from rich.cells import cell_len

from judgecal.records import Headline
from judgecal.report import document as doc
from judgecal.report.html import html, rendered
from judgecal.report.judge import _overview
from judgecal.report.markdown import markdown
from judgecal.report.terminal import terminal
from judgecal.scale import Scale
from judgecal.selection.pass_rates import Overview, PassRule

EVIL = "</script><script>alert(1)</script><b>x</b> `a` | *b* @you \x1b[2J\u202eold"


def every_block(text: str) -> list[doc.Block]:
    """Each kind of block once, with a text in every place that has one."""
    table = doc.Table(
        [text, "n"], [[text, "1"], [doc.Cell(text, 0.5, True), "2"], [text]], title=text, short=True
    )
    picture = doc.Picture(lambda: "<svg></svg>", text, text, lambda: "<svg></svg>", numbers=table, short=True)
    return [
        doc.Paragraph(text, short=True),
        doc.Heading(text, short=True),
        doc.Bullets([text], short=True),
        doc.Lines([text], short=True),
        table,
        picture,
        doc.Gallery([picture, table], text, short=True),
        doc.Folded(text, [table], short=True),
        doc.Glossary([(text, text)], short=True),
        doc.Record(text, [(text, text)], text, short=True),
        doc.Diff(f"{text}\nsame", f"{text} after\nsame", short=True),
    ]


def document(text: str) -> doc.Document:
    """A document whose every text is the one given."""
    headline = Headline("use", f"{text}.", (text,), (text,), f"judgecal select {text}")
    section = doc.Section("one", text, text, every_block(text))
    facts = (doc.Fact(text, text),)
    return doc.Document(text, text, headline, [section], facts, (text,), text, {"text": text})


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


def test_the_page_holds_no_markup_of_a_text() -> None:
    seen = {}
    for text in ("plain", EVIL):
        parser = _Tags()
        parser.feed(html(document(text)))
        assert parser.open == [] and parser.scripts == 0
        seen[text] = parser.count
    assert seen["plain"] == seen[EVIL] - html(document(EVIL)).count("<wbr>")
    assert "\x1b" not in html(document(EVIL)) and "\u202e" not in html(document(EVIL))


def test_a_missing_value_of_a_template_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        rendered("frame.html", style="", sandbox="")


def test_markdown_holds_no_markup_of_a_text() -> None:
    found = markdown(document(EVIL))
    read = "\n".join(
        line
        for line in found.partition("```diff")[0].splitlines()
        if not line.startswith(("`", "- `", "next: `"))
    )  # within code nothing is read as markup
    assert "<b>" not in read and " @you" not in read and "\x1b" not in found and "\u202e" not in found


def test_the_terminal_prints_nothing_that_acts() -> None:
    found = terminal(document(EVIL), full=True)
    assert "\x1b" not in found and "\u202e" not in found and "[U+202E]" in found
    assert found.splitlines()[0].startswith("</script>") and found.splitlines()[-1].startswith("next: ")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_terminal_keeps_to_its_width(width: int) -> None:
    header = ["judge", *(f"metric_{number}" for number in range(9))]
    rows = [
        ["a judge whose name has several words 裁判", *["0.842 [0.781, 0.903]"] * 9],
        ["a heading across " * 12],
    ]
    table = doc.Table(header, rows, short=True)
    words = doc.Paragraph("some words that are wrapped " * 20, short=True)
    made = document("x")
    made = dataclasses.replace(made, sections=[doc.Section("one", "x", "x", [table, words])])
    lines = terminal(made, width=width, full=True).splitlines()
    assert max(map(cell_len, lines)) <= width
    joined = "\n".join(lines)
    assert all(name in joined for name in header) and joined.count("0.842") == 9


@pytest.mark.parametrize("width", [40, 80])
def test_a_terminal_shows_what_decides_in_few_lines(width: int) -> None:
    """Ten rows, the last ones among them; the columns that fit; the next command at the end."""
    header = ["judge", *(f"metric_{number}" for number in range(9))]
    rows = [[f"judge {number}", *["0.842 [0.781, 0.903]"] * 9] for number in range(30)]
    table = doc.Table(header, [*rows, ["floor", *["0.500"] * 9]], title="t " * 50, short=True, last=1)
    words = doc.Paragraph("some words that are wrapped " * 40, short=True)
    made = dataclasses.replace(document("x"), sections=[doc.Section("one", "x", "x", [table, words])])
    lines = terminal(made, width=width).splitlines()
    assert max(map(cell_len, lines)) <= width and len(lines) <= 27
    assert lines[-1] == "next: judgecal select x" and "... and more: --full" in lines[-4:]
    assert [line for line in lines if line.startswith("judge ")][-1].startswith("judge 8")
    assert "... 21 more: --full" in lines and any(line.startswith("floor") for line in lines)


@pytest.mark.parametrize(
    ("judges", "others", "seen"), [(9, 9, (5, 5)), (3, 9, (3, 7)), (9, 3, (7, 3)), (4, 4, (4, 4))]
)
def test_many_raters_leave_room_for_the_judges(judges: int, others: int, seen: tuple[int, int]) -> None:
    rows = [[f"judge {number}"] for number in range(judges)] + [
        [f"rater {number}"] for number in range(others)
    ]
    table = doc.Table(["who"], rows, short=True, last=others)
    made = dataclasses.replace(document("x"), sections=[doc.Section("one", "x", "x", [table])])
    lines = terminal(made).splitlines()
    shown = [[line for line in lines if line.startswith(who)] for who in ("judge ", "rater ")]
    assert shown == [
        [f"{who} {number}" for number in range(n)] for who, n in zip(("judge", "rater"), seen, strict=True)
    ]


def test_colours_are_for_a_screen_alone() -> None:
    made = dataclasses.replace(
        document("x y"), sections=[doc.Section("one", "x", "x", [doc.Table(["j"], [["a"]])])]
    )
    assert "\x1b" not in terminal(made)
    coloured = terminal(made, colour=True)
    assert coloured.startswith("\x1b[1;32mx y.\x1b[0m\n") and coloured.count("\x1b") == 2
    assert "\x1b[2J" not in terminal(document(EVIL), colour=True)


def test_what_is_not_short_stands_on_the_page_alone() -> None:
    made = document("x")
    made = dataclasses.replace(
        made, sections=[doc.Section("one", "t", "c", [doc.Paragraph("only on the page")])]
    )
    assert "only on the page" in html(made)
    assert "only on the page" not in markdown(made) and "only on the page" not in terminal(made)
    assert "only on the page" in terminal(made, full=True)


@pytest.mark.parametrize(
    ("verdicts", "scale", "average"), [((1, 0, 0), "binary", "0.333"), ((80, 75, 1), "percentage", "52.0")]
)
def test_an_average_has_as_many_digits_as_its_verdicts_ask_for(
    verdicts: tuple[float, ...], scale: str, average: str
) -> None:
    people = Scale.parse(scale)
    told = Overview(PassRule(people, people, people, None))
    for place, verdict in enumerate(verdicts):
        told.add(None, f"q{place}", verdict)
    (row,) = _overview([told.overall()]).rows
    assert average in row
