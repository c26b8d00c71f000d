"""The command line as a script sees it: stdout, stderr, exit codes, files, and the JSON keys of the
contract."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.models import embedded as transport
from tests.support.command import ROOT, Run, journal, one_object, tree
from tests.support.gold import harsh_gold


def break_some(monkeypatch: pytest.MonkeyPatch, words: Sequence[str]) -> None:
    """The embedded model answers in prose where the last message holds one of the words."""
    real = transport.weighed_reply

    def reply(messages: Sequence[Any]) -> tuple[str, dict[str, float]]:
        text = messages[-1]["content"]
        return ("I would rather not say.", {}) if any(word in text for word in words) else real(messages)

    monkeypatch.setattr(transport, "weighed_reply", reply)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


# --- items without a verdict


def test_unscored_items_exit_4_and_the_journal_says_why(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_some(monkeypatch, ["Brennick"])
    found = one_object(judgecal("score", "--json"), code=4)
    (judge,) = found["judges"]
    assert judge["unscored"] == {"parse": judge["n_unscored"]}
    failed = [row for row in journal(workspace_dir, found["experiment"]) if row["verdict"] is None]
    assert len(failed) == judge["n_unscored"]
    for row in failed:
        assert row["error"]["kind"] == "parse" and row["error"]["message"]
        assert row["raw_reply"] == "I would rather not say."
    # Whatever ranks judges counts them as the farthest verdict: it can only be lower.
    complete, wrong = judge["agreement"]["macro_agreement"], judge["as_wrong"]["macro_agreement"]
    assert (wrong["n"], wrong["n_unscored"]) == (judge["n_expected"], judge["n_unscored"])
    assert complete["n"] == judge["n"]
    text = judgecal("score")
    assert text.code == 4
    assert (
        f"{judge['n_unscored']} of {judge['n_expected']} have no verdict: the reply could not be read."
        in " ".join(text.out.split())
    )


def test_unusable_replies_are_tried_again_when_asked(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        break_some(broken, ["Brennick"])
        slug = one_object(judgecal("score", "--json"), code=4)["experiment"]
    lines = len(journal(workspace_dir, slug))
    again = one_object(judgecal("score", "--json"), code=4)  # a reply without a verdict stays one
    assert (again["experiment"], len(journal(workspace_dir, slug))) == (slug, lines)
    assert again["judges"][0]["n_unscored"] > 0
    with monkeypatch.context() as broken:
        broken.setattr("judgecal.experiment.score.made_result", interrupted)
        assert judgecal("score", "--retry-unscored").code == 130
    unfinished = judgecal("report", slug)  # not the numbers of the run before
    assert unfinished.code == 2 and "did not finish" in unfinished.err
    mended = one_object(judgecal("score", "--json", "--retry-unscored"))
    assert mended["judges"][0]["n_unscored"] == 0
    assert len(journal(workspace_dir, slug)) == lines


# --- runs and their folders


def test_the_workspace_may_stand_on_either_side(
    judgecal: Run, workspace_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    slugs = {
        one_object(judgecal(*argv))["experiment"]
        for argv in (
            ("--workspace", workspace_dir, "score", "--json"),
            ("score", "--json", "--workspace", workspace_dir),
            ("score", f"--workspace={workspace_dir}", "--json"),
        )
    }
    assert len(slugs) == 1
    assert (workspace_dir / "experiments" / slugs.pop()).is_dir()
    assert not list((tmp_path / "elsewhere").iterdir())


def test_outside_a_workspace_the_starter_serves_and_stays_as_it_is(
    judgecal: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    starter = {name: tree(ROOT / name) for name in ("signatures", "gold", "experiments")}
    for command in ("score", "optimize"):
        slug = one_object(judgecal(command, "--json"))["experiment"]
        assert (tmp_path / "empty" / "experiments" / slug / "summary.json").is_file()
    assert [path.name for path in (tmp_path / "empty").iterdir()] == ["experiments"]
    assert {name: tree(ROOT / name) for name in starter} == starter


def test_the_same_command_resumes_without_a_new_line(judgecal: Run, workspace_dir: Path) -> None:
    harsh_gold(workspace_dir)  # of which there is something to learn, so that optimize looks at test
    for command in ("score", "optimize"):
        first = one_object(judgecal(command, "--gold", "harsh", "--json"))
        kept = tree(workspace_dir / "experiments" / first["experiment"])
        looks = (workspace_dir / "experiments" / "test_looks.jsonl", command == "optimize")
        again = one_object(judgecal(command, "--gold", "harsh", "--json"))
        assert again == first
        assert tree(workspace_dir / "experiments" / first["experiment"]) == kept
        assert looks[0].exists() == looks[1]
    assert len(looks[0].read_text().splitlines()) == 1


def test_a_larger_limit_extends_the_same_experiment(judgecal: Run, workspace_dir: Path) -> None:
    small = one_object(judgecal("score", "--limit", "3", "--json"))
    rows = journal(workspace_dir, small["experiment"])
    assert (small["gold"]["n_items"], len(rows)) == (3, 3)
    large = one_object(judgecal("score", "--limit", "5", "--json"))
    assert large["experiment"] == small["experiment"]
    assert journal(workspace_dir, large["experiment"])[:3] == rows
    assert len(journal(workspace_dir, large["experiment"])) == 5
    assert large["judges"][0]["n_expected"] == 5


SERVER = '[models.zebra]\nid = "openai/my-model"\napi_base = "http://127.0.0.1:9/v1"\ninput_usd_per_1m = 1\noutput_usd_per_1m = 2\n'


@pytest.mark.parametrize("command", ["score", "optimize", "probe"])
def test_without_a_longest_reply_there_is_no_bound(judgecal: Run, workspace_dir: Path, command: str) -> None:
    """What `--dry-run` says is what a budget says: set max_tokens; then there is one bound."""
    model = {"score": ("--models", "zebra"), "optimize": ("--model", "zebra")}.get(
        command, ("--judge", "correctness_v3@zebra")
    )
    (workspace_dir / "judgecal.toml").write_text(SERVER)
    found = one_object(judgecal(command, *model, "--dry-run", "--json"))
    assert (found["usd_at_most"], found["unbounded"]) == (None, ["zebra"])
    assert found["usd_likely"] > 0.0
    refused = judgecal(command, *model, "--budget-usd", "1")
    assert refused.code == 2 and "set max_tokens" in " ".join(refused.err.split())
    (workspace_dir / "judgecal.toml").write_text(f"{SERVER}max_tokens = 100\n")
    bounded = one_object(judgecal(command, *model, "--dry-run", "--json"))
    assert found["usd_likely"] != 0.0 and bounded["usd_likely"] < bounded["usd_at_most"]
    assert bounded["unbounded"] == []


@pytest.mark.parametrize("command", ["score", "optimize"])
def test_a_dry_run_writes_nothing_and_names_the_price(
    judgecal: Run, workspace_dir: Path, command: str
) -> None:
    prices = "input_usd_per_1m = 10\noutput_usd_per_1m = 30\nmax_tokens = 100\n"
    (workspace_dir / "judgecal.toml").write_text(f'[models.dear]\nid = "ollama_chat/dear"\n{prices}')
    model = ("--models" if command == "score" else "--model", "dear")
    before = tree(workspace_dir)
    found = one_object(judgecal(command, *model, "--dry-run", "--json"))
    assert tree(workspace_dir) == before
    assert found["calls"] > 0 and found["stored"] == 0
    # Each reply may be 100 tokens at 30 USD a million; a prompt token is at least a byte at 10 USD a million.
    assert found["usd_at_most"] > found["calls"] * 100 * 30e-6
    assert 0.0 < found["usd_likely"] < found["usd_at_most"] and found["unbounded"] == []


def test_a_finished_run_needs_no_key(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Model calls stop at the journal: what stands in it can be held against labels by anyone."""
    (workspace_dir / "judgecal.toml").write_text(
        '[models.mine]\nid = "judgecal/embedded"\nkey_env = "MY_KEY"\n'
    )
    monkeypatch.setenv("MY_KEY", "sk-secret")
    first = judgecal("score", "--models", "mine", "--json")
    monkeypatch.delenv("MY_KEY")
    assert one_object(judgecal("score", "--models", "mine", "--json")) == one_object(first)
    written = b"".join(tree(workspace_dir / "experiments").values())
    assert b"sk-secret" not in written and "sk-secret" not in first.out + first.err


def test_out_made_by_another_configuration_is_refused(judgecal: Run, workspace_dir: Path) -> None:
    assert judgecal("score", "--name", "mine", "--split", "dev").code == 0
    before = tree(workspace_dir)
    ran = judgecal("score", "--name", "mine", "--split", "train")
    assert (ran.code, ran.out) == (2, "")
    assert "it differs in split" in ran.err and "choose another --name" in ran.err
    ran = judgecal("optimize", "--name", "mine")
    assert (ran.code, ran.out) == (2, "")
    assert tree(workspace_dir) == before


def test_a_report_on_test_items_is_a_look(judgecal: Run, workspace_dir: Path) -> None:
    log = workspace_dir / "experiments" / "test_looks.jsonl"
    judgecal("score", "--split", "open")
    assert not log.exists()
    for _ in range(2):
        found = one_object(judgecal("score", "--split", "test", "--json"))
        assert found["test_looks"] == 0  # a look, and no decision
        assert found["gold"]["n_test_items"] == found["gold"]["n_items"]
    assert "we noted that you looked" in judgecal("score", "--split", "test").out
    assert "we noted that you looked" not in judgecal("score", "--split", "open").out
    (row,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (row["kind"], row["gold"], row["experiment"]) == ("report", "starter", found["experiment"])


# --- interruption and damage


def _raise() -> None:
    raise KeyboardInterrupt


def _signal() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("interrupt", [_raise, _signal])
def test_an_interrupted_run_exits_130_and_resumes(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[], None]
) -> None:
    whole = one_object(judgecal("score", "--name", "whole", "--json"))
    real, calls = transport.weighed_reply, []

    def reply(messages: Sequence[Any]) -> tuple[str, dict[str, float]]:
        calls.append(1)
        if len(calls) == 6:
            interrupt()
        return real(messages)

    with monkeypatch.context() as broken:
        broken.setattr(transport, "weighed_reply", reply)
        ran = judgecal("score", "--name", "cut", "--json")
    assert (ran.code, ran.out) == (130, "")
    assert (
        "interrupted; what was judged so far is kept in experiments/cut/verdicts.parquet, the same "
        "command resumes" in ran.err
    )
    # A signal is answered at the loop's next turn, so a few replies may still be written.
    assert 5 <= len(journal(workspace_dir, "cut")) < whole["judges"][0]["n"]
    resumed = one_object(judgecal("score", "--name", "cut", "--json"))
    assert len(journal(workspace_dir, "cut")) == resumed["judges"][0]["n"]
    assert resumed["judges"][0]["agreement"] == whole["judges"][0]["agreement"]


def test_damaged_verdicts_are_refused(judgecal: Run, workspace_dir: Path) -> None:
    before = judgecal("score", "--name", "mine")
    path = workspace_dir / "experiments" / "mine" / "verdicts.parquet"
    content = path.read_bytes()
    for damaged in (b"", content[:-9], b"PAR1" + content[200:], content[:40] + b"x" * 400 + content[440:]):
        path.write_bytes(damaged)
        for command in (
            ("score", "--name", "mine"),
            ("report", "mine"),
            ("compare", "mine"),
            ("select", "mine"),
        ):
            ran = judgecal(*command)
            assert (ran.code, ran.out) == (2, "") and path.read_bytes() == damaged
            assert "verdicts.parquet: cannot be read (" in ran.err and "delete it and run" in ran.err
    path.unlink()
    assert judgecal("score", "--name", "mine").out == before.out
