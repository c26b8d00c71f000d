"""The document of `optimize`: what to do, the numbers of the command, and the prompt, which is never run."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

from tests.support.command import Run
from tests.support.pages import HOSTILE, LONG, Parsed, check_page, page_of, printed_by


def test_the_prompt_is_shown_as_a_diff_and_never_run(judgecal: Run, workspace_dir: Path) -> None:
    printed = printed_by(judgecal, "optimize", "--limit", "30", "--no-final")
    path = workspace_dir / "experiments" / printed["experiment"] / "program.json"
    program = json.loads(path.read_text())
    lines = program["signature"]["instructions"].splitlines()
    program["signature"]["instructions"] = "\n".join([*lines[1:], HOSTILE])
    program["demos"] = [{"question": HOSTILE, "answer_under_test": LONG}]
    path.write_text(json.dumps(program))
    page = check_page(judgecal, printed, ["gain", "prompt", "candidates", "notes"])
    assert [tag for tag, _ in Parsed(page).elements if tag in ("del", "ins")] == ["del", "ins"]
    assert f"- {lines[0]}</del>" in unescape(page)
    assert "98,000 more characters" in page
    assert "Test is still sealed" in page
    short = judgecal("report", printed["experiment"], "--format", "md").out
    # The text holds a fence of three, so that of the diff has four.
    assert "\n````diff\n- " in short and short.count("````") == 2

    signature = workspace_dir / "signatures" / "correctness_v3.py"
    signature.write_text(signature.read_text().replace(lines[0], "Something else."))
    assert f"- {lines[0]}</del>" in unescape(page_of(judgecal, printed["experiment"]))  # as it was
    path.with_name("judges.json").unlink()
    page = unescape(page_of(judgecal, printed["experiment"]))
    assert "judges.json is gone, so we do not know the instructions before" in page
