"""The command line as a script sees it: stdout, stderr, exit codes, files, and the JSON keys of the
contract."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.transport import embedded as transport
from tests.support.command import (
    BASE,
    CLASS,
    ROOT,
    Run,
    check_estimate,
    check_estimates,
    check_table,
    journal,
    one_object,
    tree,
)
from tests.support.gold import harsh_gold, made_gold, made_items, rated, write_signature

OPTIMIZE = {
    "experiment", "optimizer", "judge", "metric", "dev", "test", "decision", "program", "n_demos",
    "instructions_changed", "test_looks", "usd",
}  # fmt: skip
DECISIONS = {"better", "worse", "rescaled only", "cannot tell"}


def break_some(monkeypatch: pytest.MonkeyPatch, words: Sequence[str]) -> None:
    """The embedded model answers in prose where the last message holds one of the words."""
    real = transport.reply

    def reply(messages: Sequence[Any]) -> str:
        text = messages[-1]["content"]
        return "I would rather not say." if any(word in text for word in words) else real(messages)

    monkeypatch.setattr(transport, "reply", reply)


# --- the contract's objects


def test_score_prints_the_contract(judgecal: Run, workspace_dir: Path) -> None:
    signatures = ["correctness_v2", "correctness_v1", "correctness_v3"]
    ran = judgecal("score", "--models", "embedded", "--signatures", ",".join(signatures), "--json")
    found = one_object(ran)
    check_table(found, BASE | {f"{name}@75" for name in CLASS})
    assert [one["judge"] for one in found["judges"]] == [f"{name}@embedded" for name in signatures]
    assert [one["judge"] for one in found["floor"]][1:] == ["correctness_v3@embedded"]
    assert found["floor"][0]["judge"] == "best constant"
    assert re.fullmatch(r"score-starter-[0-9a-f]{8}", found["experiment"])
    assert found["gold"]["n_items"] == found["judges"][0]["n_expected"]
    folder = workspace_dir / "experiments" / found["experiment"]
    written = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert written == ["experiment.toml", "judgements.jsonl", "judges.json", "summary.json"]
    assert json.loads((folder / "summary.json").read_text())["judges"] == found["judges"]


def test_optimize_prints_the_contract(judgecal: Run, workspace_dir: Path) -> None:
    ran = judgecal("optimize", "--json")
    found = one_object(ran)
    assert set(found) >= OPTIMIZE
    names = BASE | {f"{name}@75" for name in CLASS}
    for side in ("before", "after"):
        check_estimates(found["dev"][side], names)
    test = found["test"]  # the starter's demos gain no more on dev than luck
    check_estimate(test["difference"])
    assert (
        test["difference"]["value"] is None
        and "in one run of five the best of" in test["difference"]["reason"]
    )
    assert test["before"] is test["after"] is test["difference_recalibrated"] is None
    assert found["decision"] in DECISIONS and found["chosen"] == "before"
    assert (found["optimizer"], found["metric"], found["test_looks"]) == ("labeled", "macro_agreement", 0)
    assert found["judge"] == f"correctness_v3@embedded#{found['experiment']}"
    assert type(found["n_demos"]) is int and type(found["instructions_changed"]) is bool
    assert Path(found["program"]) == Path("experiments", found["experiment"], "program.json")
    assert (workspace_dir / found["program"]).is_file()
    summary = (workspace_dir / "experiments" / found["experiment"] / "summary.json").read_text()
    assert json.loads(summary)["decision"] == found["decision"]
    assert str(workspace_dir) not in summary  # an experiment is versioned: no path of this machine


def test_models_prints_one_object(judgecal: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ran = judgecal("models", "--json")
    specs = {one["alias"]: one for one in one_object(ran)["models"]}
    assert {"embedded", "gpt-4o", "gemini-flash", "claude-haiku", "llama3"} <= set(specs)
    present = {alias: specs[alias]["key_present"] for alias in ("embedded", "gpt-4o", "gemini-flash")}
    assert present == {"embedded": None, "gpt-4o": True, "gemini-flash": False}
    assert "sk-secret" not in ran.out + judgecal("models").out


def test_messages_go_to_stderr(judgecal: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    break_some(monkeypatch, ["Brennick"])
    ran = judgecal("score", "--json")
    found = one_object(ran, code=4)
    n = found["judges"][0]["n_unscored"]
    assert n > 0
    assert ran.err.startswith(f"judgecal: {n} judgements have no verdict; ")
    assert ran.err.count("\n") == 1


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
    n_unscored = again["judges"][0]["n_unscored"]
    mended = one_object(judgecal("score", "--json", "--retry-unscored"))
    assert mended["judges"][0]["n_unscored"] == 0
    assert len(journal(workspace_dir, slug)) == lines + n_unscored


@pytest.mark.parametrize(
    ("name", "verdict", "scale"),
    [
        ("yes_no", 'Literal["yes", "no"]', "binary"),
        ("true_false", "bool", "binary"),
        ("grades", "Literal[0, 1, 2, 3, 4]", "ordinal:0:4"),
        ("whole", "int", "ordinal:1:5"),
        ("float_percentage", "float", "percentage"),
    ],
)
def test_judges_of_every_scale_meet_percentage_labels(
    judgecal: Run, workspace_dir: Path, name: str, verdict: str, scale: str
) -> None:
    bounds = {"int": "ge=1, le=5", "float": "ge=0, le=100"}.get(verdict, "")
    write_signature(workspace_dir, name, [("grade", verdict, bounds)])
    ran = judgecal("score", "--signatures", name, "--json")
    found = one_object(ran)
    check_table(found, BASE)
    assert found["judges"][0]["n_unscored"] == 0
    notes = (
        []
        if scale == "percentage"
        else [
            f"{scale} verdicts on percentage labels ({name}@embedded): raw ones are taken onto "
            "percentage, ends to ends"
        ]
    )
    assert found["notes"] == notes


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


def test_repeats_double_what_is_expected(judgecal: Run) -> None:
    once = one_object(judgecal("score", "--limit", "4", "--json"))
    twice = one_object(judgecal("score", "--limit", "4", "--repeats", "2", "--json"))
    assert [one["n_expected"] for one in (*once["judges"], *twice["judges"])] == [4, 8]
    estimates = [found["judges"][0]["agreement"]["mae"] for found in (once, twice)]
    assert estimates[0]["value"] == estimates[1]["value"]  # the embedded model never changes its mind
    assert [(one["n"], one["n_expected"]) for one in estimates] == [(4, 4), (8, 8)]


SERVER = '[models.zebra]\nid = "openai/my-model"\napi_base = "http://127.0.0.1:9/v1"\ninput_usd_per_1m = 1\noutput_usd_per_1m = 2\n'


def test_own_aliases_come_first(judgecal: Run, workspace_dir: Path) -> None:
    """Whether or not their key is there."""
    (workspace_dir / "judgecal.toml").write_text(f'{SERVER}key_env = "NO_SUCH_KEY"\n')
    assert one_object(judgecal("models", "--json"))["models"][0]["alias"] == "zebra"
    text = judgecal("models").out
    assert 0 < text.index("zebra") < text.index("embedded ")


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
    said = judgecal(command, *model, "--dry-run").said
    assert re.match(
        r"It likely costs \d+\.\d{4} USD, and there is no bound: a reply of zebra has no known longest length; set max",
        said,
    )
    assert "set max_tokens under [models.NAME]" in judgecal(command, *model, "--budget-usd", "1").err.replace(
        "\n", " "
    )
    (workspace_dir / "judgecal.toml").write_text(f"{SERVER}max_tokens = 100\n")
    bounded = one_object(judgecal(command, *model, "--dry-run", "--json"))
    assert found["usd_likely"] != 0.0 and bounded["usd_likely"] < bounded["usd_at_most"]
    assert bounded["unbounded"] == []


@pytest.mark.parametrize("command", ["score", "optimize"])
def test_a_dry_run_writes_nothing_and_names_the_price(
    judgecal: Run, workspace_dir: Path, command: str
) -> None:
    toml = (
        '[models.dear]\nid = "ollama_chat/dear"\ninput_usd_per_1m = 10\noutput_usd_per_1m = 30\nmax_tokens '
        "= 100\n"
    )
    (workspace_dir / "judgecal.toml").write_text(toml)
    model = ("--models" if command == "score" else "--model", "dear")
    before = tree(workspace_dir)
    found = one_object(judgecal(command, *model, "--dry-run", "--json"))
    text = judgecal(command, *model, "--dry-run")
    assert tree(workspace_dir) == before
    look = found.pop("test_look", "")
    assert sorted(found) == sorted(
        ["calls", "stored", "prompt_tokens", "usd_likely", "usd_at_most", "unbounded", "seconds"]
    )
    would = (
        "A run would spend a look at test, if something changes on dev: decision 1 on the test labels of "
        "starter"
    )
    assert look.startswith(would) if command == "optimize" else not look
    assert found["calls"] > 0 and found["stored"] == 0
    # Each reply may be 100 tokens at 30 USD a million; a prompt token is at least a byte at 10 USD a million.
    assert found["usd_at_most"] > found["calls"] * 100 * 30e-6
    assert 0.0 < found["usd_likely"] < found["usd_at_most"] and found["unbounded"] == []
    assert re.fullmatch(
        r"It likely costs \d+\.\d{4} USD, at most \d+\.\d{4} USD\. "
        r"\d+ calls to make, 0 judgements stored already, about \d+ prompt tokens, "
        r"time unknown before the first calls" + re.escape(f" {look}" if look else ""),
        text.said,
    )
    assert [line for line in text.out.splitlines() if len(line) > 80] == []


def test_a_dry_run_says_what_is_stored_already(judgecal: Run, workspace_dir: Path) -> None:
    n = one_object(judgecal("score", "--limit", "3", "--json"))["judges"][0]["n"]
    before = tree(workspace_dir)
    found = one_object(judgecal("score", "--limit", "5", "--dry-run", "--json"))
    assert (found["calls"], found["stored"]) == (2, n)
    assert tree(workspace_dir) == before
    judgecal("optimize")
    before = tree(workspace_dir)
    assert one_object(judgecal("optimize", "--dry-run", "--json"))["calls"] >= 0
    assert tree(workspace_dir) == before


def test_a_dry_run_without_a_price_says_so(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "judgecal.toml").write_text('[models.free]\nid = "nowhere/free"\n')
    assert (
        "We cannot say what it costs: some model has no price."
        in judgecal("score", "--models", "free", "--dry-run").said
    )


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


# --- what a user may have changed


def test_without_the_floor_s_signature_the_result_stands(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "signatures" / "correctness_v3.py").unlink()
    found = one_object(judgecal("score", "--signatures", "correctness_v1", "--json"))
    assert [one["judge"] for one in found["floor"]] == ["best constant"]
    assert "unknown signature 'correctness_v3'" in found["floor_reason"]


def test_a_percentage_judge_on_binary_gold_says_how(judgecal: Run, workspace_dir: Path) -> None:
    rows = made_items(24)
    labels = rated(rows, {"full": 1, "half": 0, "none": 0})
    made_gold(workspace_dir / "gold" / "pass", rows, labels, scale='kind = "binary"')
    found = one_object(judgecal("score", "--gold", "pass", "--json"))
    check_table(found, BASE | CLASS)
    assert found["notes"] == [
        "percentage verdicts on binary labels (correctness_v3@embedded): raw verdicts are compared on 0 "
        "to 100, cut at 50"
    ]
    assert f"P{found['notes'][0][1:]}." in " ".join(judgecal("score", "--gold", "pass").out.split())
    assert found["judges"][0]["agreement"]["mae"]["value"] > 1.0  # in units of the percentage
    assert found["floor"][0]["judge"] == "best constant"
    optimized = judgecal("optimize", "--gold", "pass", "--full")
    assert optimized.code == 0
    assert "cut at 50" in optimized.out


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
    real, calls = transport.reply, []

    def reply(messages: Sequence[Any]) -> str:
        calls.append(1)
        if len(calls) == 6:
            interrupt()
        return real(messages)

    with monkeypatch.context() as broken:
        broken.setattr(transport, "reply", reply)
        ran = judgecal("score", "--name", "cut", "--json")
    assert (ran.code, ran.out) == (130, "")
    assert (
        "interrupted; what was judged so far is kept in experiments/cut/judgements.jsonl, the same "
        "command resumes" in ran.err
    )
    # A signal is answered at the loop's next turn, so a few replies may still be written.
    assert 5 <= len(journal(workspace_dir, "cut")) < whole["judges"][0]["n"]
    resumed = one_object(judgecal("score", "--name", "cut", "--json"))
    assert len(journal(workspace_dir, "cut")) == resumed["judges"][0]["n"]
    assert resumed["judges"][0]["agreement"] == whole["judges"][0]["agreement"]


def test_a_line_broken_in_the_middle_of_a_journal_is_named_and_judged_again(
    judgecal: Run, workspace_dir: Path
) -> None:
    for command in ("score", "optimize"):
        before = one_object(judgecal(command, "--json"))
        slug = before["experiment"]
        path = workspace_dir / "experiments" / slug / "judgements.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([lines[0], '{"item_id": "half\n', *lines[2:]]))
        ran = judgecal(command, "--json")
        assert ran.code == 0 and "Traceback" not in ran.err
        assert ran.err.count("judgements.jsonl:2: no judgement can be read from this line") == 1
        after = json.loads(ran.out)
        assert {key: after[key] for key in ("headline", "gold")} == {
            key: before[key] for key in ("headline", "gold")
        }
        judged = [
            json.loads(line)["item_id"] for n, line in enumerate(path.read_text().splitlines()) if n != 1
        ]
        assert json.loads(lines[1])["item_id"] in judged  # again


def test_a_folder_that_cannot_be_written_is_one_message(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "experiments").write_text("a file stands in the way")
    for command in ("score", "optimize"):
        ran = judgecal(command)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("judgecal: ") and ran.err.count("\n") == 1


def test_a_full_disk_is_one_message(judgecal: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, *judgements: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("judgecal.engine.journal.Journal.append", full)
    ran = judgecal("score")
    assert (ran.code, ran.out) == (2, "")
    assert "No space left on device; what was judged so far is kept" in ran.err
