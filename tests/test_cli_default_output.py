"""What every command prints by default, on the starter set: the answer first, few lines, nothing wider than
80."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

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
