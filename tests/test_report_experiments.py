"""Pages of retrieval, gate and judge: test items, text that is never run; results in a notebook."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import Run
from tests.support.locks import served as served
from tests.support.pages import printed_by

# --- what is not there, and parts


def test_what_cannot_be_read_is_one_message(judgecal: Run, workspace_dir: Path) -> None:
    printed = printed_by(judgecal, "retrieval", "--name", "ret")
    path = workspace_dir / "experiments" / printed["experiment"] / "summary.json"
    for text, said in (
        ("{", "no JSON"),
        ("[]", "must hold a JSON object"),
        ('{"schema": 99}', "99"),
        (None, "is not there: the command did not finish"),
    ):
        path.unlink() if text is None else path.write_text(text)
        ran = judgecal("report", "ret")
        assert ran.code == 2 and said in ran.err, ran.err
    assert judgecal("report", "--all").code == 0
    assert "summary.json: is not there" in (workspace_dir / "experiments" / "index.html").read_text()
