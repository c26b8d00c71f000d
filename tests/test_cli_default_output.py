"""What every command prints by default, on the starter set: the answer first, few lines, nothing wider than 80."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import typer
from rich.cells import cell_len

from judgecal.cli import app
from judgecal.cli.output import print_document
from judgecal.cli.streams import SafeStream
from judgecal.records import Headline
from judgecal.report.document import Document
from tests.support.command import Run

WIDTH, LINES, BETWEEN = 80, 30, 25


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def commands() -> set[str]:
    """Every command of the program, with its group."""
    top = vars(typer.main.get_command(app))["commands"]
    groups = {name: vars(one)["commands"] for name, one in top.items() if "commands" in vars(one)}
    return (set(top) - set(groups)) | {f"{group} {name}" for group, own in groups.items() for name in own}


def checked(ran_text: str) -> None:
    lines = ran_text.rstrip("\n").splitlines()
    assert [line for line in lines if cell_len(line) > WIDTH] == []
    assert len(lines) <= LINES and len(lines) - 2 <= BETWEEN
    assert lines[-1].startswith("next: judgecal ")
    assert "\x1b" not in ran_text


def test_every_command_answers_first_and_in_few_lines(judgecal: Run, workspace_dir: Path) -> None:
    rows = [{"q": f"q{n}", "a": "The ferry runs at nine.", "r": "At nine."} for n in range(12)]
    (workspace_dir / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    table = "".join(f"i{n},g{n},why?,because,{n % 2},{n % 3 == 0:d}\n" for n in range(30))
    (workspace_dir / "set.csv").write_text(f"id,group,question,answer,ann,bob\n{table}", encoding="utf-8")
    verdicts = "".join(f"i{n},{'yes' if n % 2 else 'no'}\n" for n in range(30))
    (workspace_dir / "verdicts.csv").write_text(f"item_id,verdict\n{verdicts}", encoding="utf-8")
    columns = ("--item", "id", "--group", "group", "--question", "question", "--answer", "answer", "--scale", "binary")
    runs: dict[str, tuple[object, ...]] = {
        "models": (),
        "judges": (),
        "rules": ("starter",),
        "signature list": (),
        "signature check": (),
        "signature new": ("mine", "--scale", "binary"),
        "gold list": (),
        "gold check": ("starter",),
        "gold agreement": ("starter",),
        "gold import": ("set.csv", "--as", "small", *columns, "--label", "ann", "--label", "bob"),
        "gold sheet": ("small", "-o", "sheet.csv"),
        "score": ("--signatures", "correctness_v1,correctness_v2,correctness_v3", "--name", "three"),
        "agreement": ("--gold", "small", "--judgements", "verdicts.csv"),
        "compare": ("three",),
        "select": ("three", "--allow-below-floor", "-o", "lock"),
        "gate": ("--lock", "lock"),
        "migrate": ("--lock", "lock", "--to", "correctness_v1@embedded"),
        "judge": ("rows.jsonl", "--lock", "lock", "-o", "o.csv", "--question", "q", "--answer", "a",
                  "--reference", "r"),
        "rate": ("o.csv", "--lock", "lock", "--question", "q", "--answer", "a"),
        "plan": ("--lock", "lock"),
        "optimize": ("--limit", "40"),
        "retrieval": (),
        "answer": ("--limit", "20"),
        "report": ("three",),
    }  # fmt: skip
    assert commands() - set(runs) <= {"init"}, "a new command is missing here"
    for command, argv in runs.items():
        ran = judgecal(*command.split(), *argv)
        assert ran.code in (0, 1, 3), (command, ran.err)
        try:
            checked(ran.out)
        except AssertionError as error:
            raise AssertionError(f"{command}:\n{ran.out}") from error
    assert judgecal("gold", "check").out.rstrip().splitlines()[-1].startswith("next: ")
    checked(judgecal("compare", "three", "correctness_v1@embedded", "correctness_v3@embedded").out)
    checked(judgecal("select", "three").out)


def test_a_gate_says_its_decision_first(judgecal: Run) -> None:
    assert judgecal("score", "--limit", "60").code == 0
    slug = json.loads(judgecal("score", "--limit", "60", "--json").out)["experiment"]
    assert judgecal("select", slug, "--allow-below-floor", "-o", "a.lock.json", "--noise-calls", "0").code == 0
    assert judgecal("gate", "--lock", "a.lock.json").out.split()[0] in ("PASS:", "INCONCLUSIVE:")


class Screen(io.StringIO):
    """What looks like a terminal."""

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
    assert text.startswith("\x1b[1;32mPASS: " if coloured else "PASS: ") and "\x1b[2J" not in text
    assert text.count("\x1b") == (2 if coloured else 0) and not stream.coloured
