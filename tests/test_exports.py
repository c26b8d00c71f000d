"""Exports of every tool: whose a file is, what is read of it, and that what comes in is accounted for.

The files lie in `fixtures`; in `golden/exports/traps` stands what is easily taken for something else, beside what
is read of it.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import guess, read_export
from tests.support.exports import (
    EXPORTS,
    GOLDEN,
    TOOLS,
    TRAPPED,
    accounted,
    cases_of,
    golden,
    read_spoilt,
    tools_of,
    traps,
)

each_export = pytest.mark.parametrize(
    ("tool", "files"),
    [(tool, files) for tool, _, files in EXPORTS],
    ids=[f"{tool}-{name}" for tool, name, _ in EXPORTS],
)


@pytest.mark.parametrize("name", [*TOOLS, *(f"traps/{tool}" for tool in TRAPPED)])
def test_what_is_read_of_a_tools_exports_is_what_was_read(name: str, tmp_path: Path) -> None:
    stored = (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    now = golden(name) if name in TOOLS else traps(name.removeprefix("traps/"), tmp_path)
    changed = list(
        difflib.unified_diff(stored.splitlines(), now.splitlines(), "stored", "now", lineterm="", n=0)
    )
    assert not changed, "\n".join([*changed[:40], "`make golden` writes them, where they are meant"])


SPOILT = [(tool, case["files"]) for tool in TRAPPED for case in cases_of(tool) if "spoilt" in case["case"]]


@pytest.mark.parametrize(("tool", "files"), SPOILT, ids=[tool for tool, _ in SPOILT])
def test_files_with_any_value_spoilt_never_end_in_a_traceback(
    tool: str, files: dict[str, Any], tmp_path: Path
) -> None:
    assert read_spoilt(tmp_path, tool, files) > 50


@each_export
def test_a_file_is_its_own_tools_and_nobody_elses(tool: str, files: list[Path]) -> None:
    assert tools_of(files) == [tool]
    assert guess(files) == tool


@each_export
def test_counted_in_is_counted_out(tool: str, files: list[Path]) -> None:
    export = read_export(files, tool)
    assert accounted(export) == export.n_records > 0
    assert export.items
    assert all(score.item_id in export.items and score.by for score in (*export.ratings, *export.judgements))
    assert all(score.error for score in export.judgements if score.value is None)
    assert not [score.by for score in export.ratings if "@" in score.by], (
        "a rater is named by an e-mail address"
    )


@each_export
def test_a_file_that_is_cut_off_is_refused_or_counted(tool: str, files: list[Path], tmp_path: Path) -> None:
    for share in (0.1, 0.5, 0.97):
        cut = [tmp_path / file.name for file in files]
        for short, file in zip(cut, files, strict=True):
            data = file.read_bytes()
            short.write_bytes(data[: int(len(data) * share)])
        assert guess(cut) in (tool, None)
        try:
            export = read_export(cut, tool)
        except InputError as error:
            assert all(str(tmp_path) in problem for problem in error.problems)
        else:
            assert accounted(export) == export.n_records
