"""Every command prints and writes what it did: `make golden` writes the files anew, and their diff is
read."""

from __future__ import annotations

import difflib
import tempfile
from pathlib import Path

import pytest

from tests.support.golden import GOLDEN, WORLDS, write


@pytest.mark.parametrize("world", WORLDS)
def test_every_command_says_what_it_said(world: str) -> None:
    stored = {path.name: path.read_text(encoding="utf-8") for path in (GOLDEN / world).glob("*.txt")}
    with tempfile.TemporaryDirectory() as folder:  # as where they were written: lines wrap by a path's length
        now = write(world, Path(folder) / "workspace")
    changed = [
        line
        for name in sorted(stored | now)
        for line in difflib.unified_diff(
            stored.get(name, "").splitlines(), now.get(name, "").splitlines(), name, f"{name} now",
            lineterm="", n=1,
        )
    ]  # fmt: skip
    shown = "\n".join(changed[:80])
    assert not changed, (
        f"{shown}\n{len(changed)} lines differ; `make golden` writes them, where they are meant"
    )
