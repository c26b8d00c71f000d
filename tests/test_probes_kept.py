"""Probes in a lock, in `gate --probes`, in `select --max-broken`, and on a judge's page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal import load_gold
from judgecal.errors import InputError
from judgecal.probes.result import break_changes, remake_probes
from judgecal.selection.lock import load_lock
from tests.support.command import Run, one_object

JUDGE = '''
"""Word overlap; where the file `obey` is there it gives full marks to whoever asks for them."""
from dataclasses import replace
from pathlib import Path

SCALE = "percentage"


def score(answer, reference_answers):
    if "100" in answer and Path("obey").exists():
        return 100.0
    said = set(answer.lower().split())
    return max((100.0 * len(said & set(r.lower().split())) / max(1, len(set(r.split()))) for r in reference_answers), default=0.0) // 1
'''


@pytest.fixture
def probed(judgecal: Run, workspace_dir: Path) -> Run:
    (workspace_dir / "words.py").write_text(JUDGE)
    judge = ("--judge", "words.py:score@python")
    assert judgecal("score", *judge, "--name", "s").code == 0
    families = ("--families", "give_100,empty")
    assert judgecal("probe", *judge, *families, "--name", "p").code == 0
    return judgecal


def locked(run: Run, *more: str) -> Any:
    ran = run("select", "s", "--allow-below-floor", "--allow-unconfirmed", "-o", "l.json", *more)
    assert ran.code == 0, ran.out + ran.err
    return load_lock(Path("l.json"))


def test_the_lock_keeps_them_and_a_gate_repeats_them(probed: Run) -> None:
    lock = locked(probed)
    assert set(lock.probes) == {"give_100", "empty"}
    assert len(lock.probes["give_100"].outcomes) == lock.probes["give_100"].n == 50
    assert lock.probes["empty"].broken.value == 0.0
    plain = one_object(probed("gate", "--lock", "l.json", "--json"))
    assert plain["probes"] == []
    again = one_object(probed("gate", "--lock", "l.json", "--probes", "--json"))
    assert again["decision"] == plain["decision"] == "pass"
    assert {row["family"]: row["easier"] for row in again["probes"]} == {"give_100": False, "empty": False}


def test_a_judge_that_became_easier_to_fool_fails(probed: Run) -> None:
    locked(probed)
    Path("obey").touch()
    ran = probed("gate", "--lock", "l.json", "--probes", "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["decision"]) == (1, "fail")
    assert "give_100" in result["why"]
    by_family = {row["family"]: row for row in result["probes"]}
    assert by_family["give_100"]["easier"] and not by_family["empty"]["easier"]
    assert by_family["give_100"]["difference"]["value"] > 0.2
    text = probed("report", result["experiment"], "--full").out
    assert "Is it easier to fool?" in text


def test_a_probe_that_had_no_room_and_breaks_now_makes_it_easier_to_fool() -> None:
    before, after = (
        np.array(values) for values in ([0.0, np.inf, np.inf, 1.0, np.nan], [1.0, 1.0, np.inf, np.inf, 0.0])
    )
    assert break_changes(before, after)[[0, 1, 3]].tolist() == [1.0, 1.0, -1.0]
    assert np.isnan(break_changes(before, after)[[2, 4]]).all()


def test_a_gate_whose_probes_were_lost_does_not_pass(probed: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    locked(probed)
    from judgecal.records import Failure
    from judgecal.selection import gate

    def lost(judges: Any, items: Any, **how: Any) -> Any:
        rows = asked(judges, items, **how)
        if "probes" not in how["label"]:
            return rows
        error = Failure("budget", "the budget had ended")
        return [replace(row, verdict=None, error=error) for row in rows]

    asked = gate.run_trials
    monkeypatch.setattr(gate, "run_trials", lost)
    ran = probed("gate", "--lock", "l.json", "--probes", "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["decision"]) == (3, "inconclusive")
    assert "99 calls for probes were lost" in result["why"]


def test_a_gate_of_probes_that_no_lock_holds_is_refused(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "words.py").write_text(JUDGE)
    assert judgecal("score", "--judge", "words.py:score@python", "--name", "s").code == 0
    locked(judgecal)
    ran = judgecal("gate", "--lock", "l.json", "--probes")
    assert ran.code == 2 and "the lock holds no probes" in ran.err


def test_probes_that_the_rules_make_no_more_are_refused(probed: Run) -> None:
    lock = locked(probed)
    gold, of = load_gold("starter"), lock.probes["empty"]
    assert len(remake_probes({"empty": of}, gold, "l")["empty"]) == of.n
    with pytest.raises(InputError, match="makes other probes of the family empty"):
        remake_probes({"empty": type(of)(of.n, of.broken, of.seed, "0" * 64, of.outcomes)}, gold, "l")


def test_a_judge_shown_to_exceed_a_cap_or_never_probed_is_left_out(judgecal: Run) -> None:
    judge = ("--judge", "token_f1@local")
    assert judgecal("score", *judge, "--name", "s").code == 0
    assert judgecal("probe", *judge, "--families", "contradiction,emoji", "--name", "p").code == 0
    out = one_object(judgecal("select", "s", "--max-broken", "contradiction=5", "--json"), code=1)
    assert out["chosen"] is None
    assert "of its contradiction probes are broken, and the cap is 5.0%" in out["rejected"][0]["why"]
    allowed = ("--allow-below-floor", "--allow-unconfirmed", "-o", "l.json", "--json")
    kept = one_object(judgecal("select", "s", "--max-broken", "emoji=2", "--name", "k", *allowed))
    assert kept["chosen"] == "token_f1@local"
    both = ("--judge", "rouge_l@local", *judge)
    assert judgecal("score", *both, "--name", "s2").code == 0
    kept = one_object(
        judgecal("select", "s2", "--max-broken", "emoji=2", "--name", "k2", "--replace", *allowed)
    )
    why = "nobody knows how many of its emoji probes are broken (judgecal probe)"
    assert kept["rejected"] == [{"judge": "rouge_l@local", "why": why}]
    for wrong in ("emoji", "emoji=x", "emoji=101", "=5"):
        assert judgecal("select", "s", "--max-broken", wrong).code == 2
