"""`judgecal retrieval` end to end: sources, outputs, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import Run, one_object


@pytest.mark.shared_data
def test_qrels_and_a_run_alone(judgecal: Run, shared_data: Path) -> None:
    folder = shared_data / "trec_eval"
    argv = ("retrieval", "--qrels", folder / "qrels.test", "--run", folder / "results.test")
    found = one_object(judgecal(*argv, "--json"))
    assert (found["n_questions"], found["n_documents"]) == (3, None)
    assert round(found["mrr"]["value"], 4) == 0.4064
    text = judgecal(*argv, "--full").said
    assert "would answer as well: it counts as none" in text


@pytest.mark.parametrize(
    ("argv", "messages"),
    [
        (("--gold", "starter", "--qrels", "q"), ["--gold and --documents/--questions exclude each other"]),
        (("--documents", "d.csv"), ["--questions FILE is missing"]),
        (("--questions", "q.csv"), ["--documents FILE is missing"]),
        (("--qrels", "q"), ["--documents FILE is missing"]),
        (("--documents", "d.csv", "--questions", "q.csv"), ["d.csv: there is no such file"]),
        (("-k", "0", "--window", "0"), ["Invalid value for '-k'"]),
        (("-k", "9" * 400), ["Invalid value for '-k'"]),
        (("--gold", "startr"), ["did you mean starter"]),
    ],
)
def test_wrong_use_is_one_message(
    judgecal: Run, argv: tuple[str, ...], messages: list[str], workspace_dir: Path
) -> None:
    before = sorted(workspace_dir.rglob("*"))
    ran = judgecal("retrieval", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert [message for message in messages if message not in ran.err] == []
    assert sorted(workspace_dir.rglob("*")) == before
