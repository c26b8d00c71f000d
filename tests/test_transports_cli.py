"""The commands over Gemini's and Anthropic's formats: the real path, from the command line to the socket."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.calls import say_half
from tests.support.command import Run, journal, one_object, tree
from tests.support.providers import CLAUDE_VERSION, GEMINI_VERSION, anthropic, gemini
from tests.support.server import running

KEY = "dummy-key-not-to-be-seen"


def test_gemini_flash_is_optimised_over_its_own_protocol(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with running(gemini(say_half)) as server:
        (workspace_dir / "judgecal.toml").write_text(
            f'[models.gemini-flash]\napi_base = "{server.root}"\n', encoding="utf-8"
        )
        ran = judgecal("optimize", "--model", "gemini-flash", "--limit", "12", "--json")
    found = one_object(ran)
    assert ran.code == 0
    assert found["judge"].startswith("correctness_v3@gemini-flash")
    assert set(server.paths) == {"/v1beta/models/gemini-3.8-flash:generateContent"}
    assert {headers["x-goog-api-key"] for headers in server.headers} == {KEY}
    rows = [row for row in journal(workspace_dir, found["experiment"]) if "gemini" in row["judge"]]
    assert rows
    assert {row["model_id"] for row in rows if not row["cached"]} == {GEMINI_VERSION}
    assert KEY.encode() not in b"".join(tree(workspace_dir.parent).values())
    assert KEY not in ran.out + ran.err


def test_a_claude_scores_over_its_own_protocol(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with running(anthropic(say_half)) as server:
        (workspace_dir / "judgecal.toml").write_text(
            f'[models.claude-haiku]\napi_base = "{server.root}"\n', encoding="utf-8"
        )
        ran = judgecal("score", "--models", "claude-haiku", "--limit", "9", "--json")
    found = one_object(ran)
    (judge,) = found["judges"]
    assert (ran.code, judge["n"], judge["n_unscored"]) == (0, 9, 0)
    # 1000 and 50 tokens a call at the price file's prices
    assert judge["usd_per_1k"] > 0.0
    assert {headers["x-api-key"] for headers in server.headers} == {KEY}
    rows = [row for row in journal(workspace_dir, found["experiment"]) if "claude" in row["judge"]]
    assert {(row["model_id"], row["prompt_tokens"]) for row in rows} == {(CLAUDE_VERSION, 1000)}
    assert KEY.encode() not in b"".join(tree(workspace_dir.parent).values())
    assert KEY not in json.dumps(rows) + ran.out + ran.err
