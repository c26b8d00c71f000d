"""The judge card: from the lock and the experiments beside it, and nothing computed anew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import judgecal as package
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.report.card import LockCard, badge, card_document, card_of
from judgecal.report.html import Report
from judgecal.workspace import find_workspace
from tests.support.command import ROOT, Run, one_object
from tests.support.locks import lock_file

KEYS = {
    "lock", "judge", "chip", "sentence", "agreement", "ceiling", "floor", "hundred", "slices", "probes",
    "usd_per_1k", "latency_s", "gold", "voids", "gates", "unmeasured",
}  # fmt: skip


def chain(judgecal: Run, *judges: str, name: str = "judge.lock.json") -> None:
    """A set, its judges, a lock."""
    table, named = (
        str(ROOT / "examples" / "answers.csv"),
        [part for judge in judges for part in ("--judge", judge)],
    )
    typed = ("--label", "rater_a", "--label", "rater_b", "--scale", "binary", "--labels-by", "project")
    assert judgecal("gold", "import", table, "--as", "mine", *typed).code == 0
    assert judgecal("score", "--gold", "mine", *named, "--name", "first").code == 0
    assert (
        judgecal("probe", "--gold", "mine", *named, "--families", "empty,contradiction", "-n", "12").code == 0
    )
    ran = judgecal("select", "first", "-o", name, "--allow-below-floor", "--allow-unconfirmed")
    assert ran.code == 0, ran.err


def test_the_card_of_a_chain_says_what_the_lock_and_its_experiments_say(
    judgecal: Run, workspace_dir: Path
) -> None:
    chain(judgecal, "correctness_v3@embedded", "token_f1@local")
    assert judgecal("gate", "--lock", "judge.lock.json").code == 0
    lock = json.loads(Path("judge.lock.json").read_text())
    card = one_object(judgecal("report", "judge.lock.json", "--json"))
    result = card["result"]
    assert result.keys() >= KEYS and result["agreement"] == lock["calibrated"]
    assert result["chip"] == card["headline"]["chip"] and len(result["sentence"].split()) <= 12
    assert sum(result["hundred"].values()) == 100 and result["gold"]["n_groups"] == 20
    assert [gate["decision"] for gate in result["gates"]] == ["pass"] and result["unmeasured"] == []
    assert {probes["family"]: probes["broken"] for probes in result["probes"]} == {
        family: probes["broken"] for family, probes in lock["probes"].items()
    }
    text = judgecal("report", "judge.lock.json")
    assert text.code == 0 and text.out.count("\n") <= 30 and "What correctness_v3" in text.out
    assert text.out.rstrip().endswith("next: judgecal gate --lock judge.lock.json")
    assert judgecal("report", "judge.lock.json", "--format", "md").out.count("\n") <= 60
    assert judgecal("report", "judge.lock.json", "--format", "html").out.strip() == "judge.lock.card.html"
    page = Path("judge.lock.card.html").read_text()
    assert "<h1" in page and result["sentence"].split()[0] in page
    assert package.load_report("judge.lock.json").document.headline.chip == result["chip"]
    svg = judgecal("report", "judge.lock.json", "--format", "svg").out
    assert ElementTree.fromstring(svg).tag.endswith("svg") and "script" not in svg and svg.count("\n") <= 20
    shutil.rmtree("gold/mine")  # nothing of it is read again
    assert one_object(judgecal("report", "judge.lock.json", "--json"))["result"] == result
    shutil.rmtree("experiments")
    alone = one_object(judgecal("report", "judge.lock.json", "--json"))["result"]
    assert (alone["agreement"], alone["floor"], alone["gates"]) == (result["agreement"], None, [])
    assert len(alone["unmeasured"]) == 4 and "selection is not in this workspace" in alone["unmeasured"][0]


_MODULE = """
import dspy


class Careful(dspy.Module):
    def forward(self, question, reference_answer, answer):
        return dspy.Prediction(verdict=100.0 * (reference_answer.split()[0] in answer), reasoning="by a word")


careful = Careful()
SCALE = "percentage"
"""


@pytest.mark.parametrize(
    ("files", "judge"),
    [({}, "token_f1@local"),
     ({"prompts/mark.md": '+++\nscale = "percentage"\nverdict = "last number"\n+++\n{{ question }} {{ answer }} '
       '{{ reference_answer }}\n'}, "prompts/mark.md@embedded"),
     ({"check.py": "def same(answer: str, reference_answer: str) -> bool:\n    return answer == reference_answer\n"},
      "check.py:same@python"),
     ({"module.py": _MODULE}, "module.py:careful@python")],
)  # fmt: skip
def test_every_kind_of_judge_has_a_card(
    judgecal: Run, workspace_dir: Path, files: dict[str, str], judge: str
) -> None:
    for name, text in files.items():
        (workspace_dir / name).parent.mkdir(exist_ok=True)
        (workspace_dir / name).write_text(text)
    chain(judgecal, judge)
    card = one_object(judgecal("report", "judge.lock.json", "--json"))["result"]
    assert card["judge"] == judge and card["agreement"]["macro_agreement"]["n"] == 39
    assert judgecal("report", "judge.lock.json", "--format", "html").code == 0
    assert judge in Path("judge.lock.card.html").read_text()


def test_graded_labels_and_recorded_verdicts(judgecal: Run, workspace_dir: Path) -> None:
    assert judgecal("score", "--judge", "correctness_v3@embedded", "--name", "graded").code == 0
    assert judgecal("select", "graded", "--allow-below-floor", "--allow-unconfirmed").code == 0
    card = one_object(judgecal("report", "judge.lock.json", "--json"))["result"]
    assert sum(card["hundred"].values()) == 100 and card["ceiling"].keys() == {"curator_a", "curator_b"}
    Path("judge.lock.json").unlink()
    table = str(ROOT / "examples" / "judged.csv")
    typed = ("--label", "label", "--verdict", "judge", "--scale", "binary", "--labels-by", "project")
    assert judgecal("gold", "import", table, "--as", "recorded", *typed).code == 0
    assert judgecal("agreement", "--gold", "recorded", "--name", "told").code == 0
    judgecal("select", "told", "--allow-below-floor", "--allow-unconfirmed")
    ran = judgecal("report", "judge.lock.json")  # of recorded verdicts there is none
    assert ran.code == 2 and not Path("judge.lock.json").exists() and not ran.out


def test_a_changed_lock_and_a_name_that_is_none_are_refused(judgecal: Run, workspace_dir: Path) -> None:
    chain(judgecal, "token_f1@local")
    path = Path("judge.lock.json")
    path.write_text(path.read_text().replace('"margin": 0.03', '"margin": 0.04'))
    ran = judgecal("report", "judge.lock.json")
    assert ran.code == 2 and "has changed since it was locked" in ran.err and not ran.out
    assert judgecal("report", "none.lock.json").code == 2
    ran = judgecal("report", "first", "--format", "svg")
    assert ran.code == 2 and "badge of a lock" in ran.err


def test_gates_that_failed_go_before_and_two_hundred_are_drawn(judgecal: Run, workspace_dir: Path) -> None:
    chain(judgecal, "token_f1@local")
    assert judgecal("gate", "--lock", "judge.lock.json", "--name", "gated").code == 0
    summary = json.loads(Path("experiments/gated/summary.json").read_text())
    for number in range(200):
        folder = Path(f"experiments/g{number:03}")
        shutil.copytree("experiments/gated", folder)
        decision = "fail" if number == 199 else "pass"
        (folder / "summary.json").write_text(json.dumps({**summary, "decision": decision}))
        for journal in folder.glob("*.jsonl"):
            journal.unlink()
        for verdicts in folder.glob("*.parquet"):
            verdicts.unlink()
    card = card_of(Path("judge.lock.json"), find_workspace(workspace_dir))
    last_of_all = card.gates[-1].decision  # which of one second is the last is left to luck
    assert len(card.gates) == 201
    assert card.headline.chip == {"pass": "triage only"}.get(last_of_all, last_of_all)
    failed = [gate for gate in card.gates if gate.decision == "fail"]
    last = LockCard(card.path, card.lock, card.selected, card.scored, (*card.gates[:9], *failed))
    assert last.headline.sentence == "Do not use token_f1@local: it failed its last gate."
    assert "fail" in badge(last) and Report(card_document(card)).html.count("<circle") == 11  # the newest ten


def test_a_suite_of_locks_has_a_column_a_judge(judgecal: Run, workspace_dir: Path) -> None:
    chain(judgecal, "correctness_v3@embedded")
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    other = lock_file(workspace_dir / "other.lock.json", judge, load_gold("starter"))
    locks = f'[judges.right]\nlock = "judge.lock.json"\n[judges.other]\nlock = "{other.name}"\n'
    (workspace_dir / "suites" / "pair.toml").write_text(f"schema = 1\n{locks}")
    ran = judgecal("report", "suites/pair.toml", "--json")
    found = one_object(ran)
    assert found["suite"] == "pair" and [*found["judges"]] == ["right", "other"]
    assert "of the 2 locked judges of pair may be used" in found["headline"]["sentence"]
    assert judgecal("report", "suites/rag.toml").code == 2
