"""What a command says to type next can be typed: it names no placeholder, and runs as it stands."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from judgecal.commands import COMMANDS
from tests.support.every_command import EveryCommand

PREVIEWED = ("gold label", "answer", "evaluate", "gate", "judge", "migrate", "optimize", "score", "select")
"""They call models or wait for people: run with --dry-run."""


def following(text: str) -> list[str]:
    """The words behind `judgecal` of the last `next:`."""
    line = text.replace(" \\\n", " ").rstrip().rpartition("next: judgecal ")[2]
    return shlex.split(line)


@pytest.mark.xdist_group("every_command")
def test_what_is_to_be_typed_next_can_be_typed(every_command: EveryCommand, tmp_path: Path) -> None:
    copied = EveryCommand(
        shutil.copytree(every_command.folder, tmp_path / "copy"), every_command.sealed_questions
    )
    faults = []
    texts = {command: ran.out for command, ran in every_command.ran.items()}
    texts |= {f"report {slug}": copied("report", slug).out for slug in copied.slugs}
    for command, text in texts.items():
        words = following(text)
        words = words[2:] if words[0] == "--workspace" else words
        name = next((typed for typed in (" ".join(words[:2]), words[0]) if typed in COMMANDS), None)
        if name is None or re.search(r"(?<![\w.])[A-Z]{3,}(?![\w.])|\.\.\.", " ".join(words)):
            faults.append(f"{command}: {shlex.join(words)}: cannot be typed as it stands")
            continue
        argv = [word for word in words if word != "--open"]
        ran = copied(*argv, *(["--dry-run"] if name in PREVIEWED and "--dry-run" not in argv else []))
        # it waits for people, or a lock or a sheet of that name is kept
        waits = ("no row has a label: fill some in", "is there already", "still the template")
        if ran.code not in (0, 1, 3) and not any(said in ran.err for said in waits):
            faults.append(f"{command}: {shlex.join(words)}: {ran.code}: {ran.err.strip()[-300:]}")
    assert not faults, "\n".join(faults)
