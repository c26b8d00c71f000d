"""What every command prints by default, on the starter set: the answer first, few lines, nothing wider than
80."""

from __future__ import annotations

import io
import sys

import pytest
from rich.cells import cell_len

from judgecal.cli.output import print_document
from judgecal.cli.streams import SafeStream
from judgecal.records import Headline
from judgecal.report.document import Document
from tests.support.every_command import EveryCommand

WIDTH, LINES, BETWEEN = 80, 30, 25


def checked(ran_text: str) -> None:
    lines = ran_text.rstrip("\n").splitlines()
    assert [line for line in lines if cell_len(line) > WIDTH] == []
    assert len(lines) <= LINES and len(lines) - 2 <= BETWEEN
    assert [line for line in lines if not line.startswith("  -")][-1].startswith("next: judgecal ")
    assert "\x1b" not in ran_text


@pytest.mark.xdist_group("every_command")
def test_every_command_answers_first_and_in_few_lines(every_command: EveryCommand) -> None:
    for command, ran in every_command.ran.items():
        try:
            checked(ran.out)
        except AssertionError as error:
            raise AssertionError(f"{command}:\n{ran.out}") from error
    checked(every_command("compare", "three", "correctness_v1@embedded", "correctness_v3@embedded").out)
    checked(every_command("select", "three", "-o", "other.lock.json").out)
    assert every_command("gold", "check").out.rstrip().splitlines()[-1].startswith("next: ")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("no_color", "term", "coloured"), [("", "xterm", True), ("1", "xterm", False), ("", "dumb", False)]
)
def test_colours_are_for_a_terminal_that_wants_them(
    monkeypatch: pytest.MonkeyPatch, no_color: str, term: str, coloured: bool
) -> None:
    """The decision is green and bold; what a text holds of escapes never passes."""
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", term)
    shown = Screen()
    stream = SafeStream(shown)
    stream.coloured = False  # as while a command runs
    monkeypatch.setattr(sys, "stdout", stream)
    print_document(Document("t", "", Headline("pass", "PASS: \x1b[2Jgo on.", next="judgecal models"), []))
    text = shown.getvalue()
    assert (
        text.startswith("\x1b[1;32m✓ pass · PASS: " if coloured else "✓ pass · PASS: ")
        and "\x1b[2J" not in text
    )
    assert text.count("\x1b") == (2 if coloured else 0) and not stream.coloured
