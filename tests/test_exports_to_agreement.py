"""What tools themselves wrote, by one command into a set and by the next into agreement, with every record
counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgecal.exchange.exports import formats, guess
from tests.support.command import Run, one_object
from tests.support.exports import FIXTURES

_NO_EXPORT = {".py", ".md", ".sh", ".js", ".yaml", ".yml", ".toml", ".txt", ".xml"}


def handed_over() -> list[tuple[str, tuple[Path, ...]]]:
    """Tool and files: each file of its own, and those of a folder within a tool's together."""
    found: list[tuple[str, tuple[Path, ...]]] = []
    for tool in sorted(path for path in FIXTURES.iterdir() if path.is_dir()):
        found += [(tool.name, (path,)) for path in _exports(tool)]
        folders = sorted(path for path in tool.iterdir() if path.is_dir())
        found += [(tool.name, files) for files in map(_exports, folders) if files]
    return found


def _exports(folder: Path) -> tuple[Path, ...]:
    """The files of a folder but for those that made them."""
    return tuple(
        path for path in sorted(folder.iterdir()) if path.is_file() and path.suffix not in _NO_EXPORT
    )


CASES = handed_over()
AGREED: set[tuple[str, bool]] = set()
"""Whose agreement was looked at, of one file and of several: a tool's other files hold much the same."""


def test_the_help_names_every_tool(judgecal: Run) -> None:
    said = "".join(judgecal("gold", "import", "--help").out.split())  # a line may end within a name
    assert [name for name in formats() if name not in said] == []


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("tool", "files"), CASES, ids=[f"{tool}-{files[0].name}-{len(files)}" for tool, files in CASES]
)
def test_from_the_tools_file_to_agreement(judgecal: Run, tool: str, files: tuple[Path, ...]) -> None:
    assert guess(files) == tool
    ran = judgecal("gold", "import", *files, "--as", "brought", "--json")
    if ran.code == 2 and "choose one with --label NAME" in ran.err:
        name = ran.err.partition("--label NAME: ")[2].partition(" (")[0]
        ran = judgecal("gold", "import", *files, "--as", "brought", "--label", name, "--json")
    found = one_object(ran)
    out = found["n_items"] + sum(found["raters"].values()) + sum(found["judges"].values())
    assert found["n_rows"] == out + sum(found["skipped"].values())
    assert found["tool"] == tool and found["n_items"]
    assert set(found["unscored"]) == set(found["judges"])
    if found["raters"] and not found["n_labelled"]:
        assert found["headline"]["next"] == "judgecal gold adjudicate brought"
    elif found["raters"] and found["judges"]:
        assert found["headline"]["next"] == "judgecal agreement --gold brought"
        if (tool, len(files) > 1) in AGREED:
            return
        AGREED.add((tool, len(files) > 1))
        judged = one_object(judgecal("agreement", "--gold", "brought", "--json"))["judges"]
        assert {one["judge"] for one in judged} == set(found["judges"])
