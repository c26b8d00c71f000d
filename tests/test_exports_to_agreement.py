"""What tools themselves wrote, by one command into a set and by the next into agreement, with every record
counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgecal.exchange.exports import guess
from tests.support.command import Run, one_object
from tests.support.exports import EXPORTS

AGREED: set[tuple[str, bool]] = set()
"""Whose agreement was looked at, of one file and of several: a tool's other files hold much the same."""


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("tool", "files"),
    [(tool, files) for tool, _, files in EXPORTS],
    ids=[f"{tool}-{name}" for tool, name, _ in EXPORTS],
)
def test_from_the_tools_file_to_agreement(judgecal: Run, tool: str, files: list[Path]) -> None:
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
        assert found["headline"]["next"] == "judgecal gold label brought --adjudicate"
    elif found["raters"] and found["judges"]:
        assert found["headline"]["next"] == "judgecal agreement --gold brought"
        if (tool, len(files) > 1) in AGREED:
            return
        AGREED.add((tool, len(files) > 1))
        judged = one_object(judgecal("agreement", "--gold", "brought", "--json"))["judges"]
        assert {one["judge"] for one in judged} == set(found["judges"])
