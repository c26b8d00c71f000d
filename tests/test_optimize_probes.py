"""`optimize --probes`: what is learnt from, how the choice weighs broken probes, and what the result says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal import load_gold
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.folder import Experiment
from judgecal.experiment.judgements import read_verdicts
from judgecal.judges.prompt import PromptJudge
from judgecal.judges.protocol import JudgeName
from judgecal.optimize import probing
from judgecal.optimize.probing import SplitProbes, choose_probed, train_probes
from judgecal.optimize.result import Choice, ScoredCandidate
from judgecal.probes.rules import families_named
from judgecal.records import Estimate, Judgement
from judgecal.workspace import Workspace
from tests.support.command import Run, one_object
from tests.support.gold import made_gold, made_items
from tests.support.gold import rated as rated_by_kind
from tests.support.instructed import asked_for, serving
from tests.support.obeying import ASKING, FEEDBACK, obeying


def judge(workspace: Workspace) -> PromptJudge:
    return PromptJudge(JudgeName("correctness_v3", "embedded"), workspace=workspace)


def test_probes_of_train_have_a_label_and_no_person_gave_it(workspace: Workspace) -> None:
    gold = load_gold("starter")
    items = [item for item in gold.select("train") if item.item_id in gold.labels]
    probes, labels = train_probes(gold, items, judge(workspace), seed=0)
    assert 0 < len(probes) <= len(items)
    assert not labels.keys() & gold.labels.keys()
    by_kind = {probe.family.kind for probe in probes}
    assert by_kind == {"full", "none", "still", "no_rise"}  # on a graded scale one that falls has no label
    for probe in probes:
        assert gold.split_of(probe.item.group) == "train"
        of = gold.labels[probe.of.item_id]
        assert labels[probe.item.item_id] == {"full": 100.0, "none": 0.0}.get(probe.family.kind, of)


# --- the choice


@dataclass(frozen=True)
class Broken(SplitProbes):
    """So many questions, with a probe each; who breaks on which share of them, by name."""

    shares: Any = ()
    n: int = 60

    @property
    def groups(self) -> list[str]:
        return [f"g{at}" for at in range(self.n)]

    def held(self, before: Any, after: Any, *, level: float = 0.95) -> Any:
        return super().held(before, after, level=level) if not self.made else None

    def broken(self, table: object, column: Any, footing: object) -> dict[str, Any]:
        first = round(self.shares[column] * self.n)
        values = np.array([1.0] * first + [0.0] * (self.n - first))
        rng = np.random.default_rng(sum(map(ord, column)))
        return {"give_100": values if column in ("before", "a", "b") else rng.permutation(values)}


def chosen(monkeypatch: pytest.MonkeyPatch, agreement: dict[str, float], shares: dict[str, float]) -> Choice:
    scored = [
        ScoredCandidate(name, None, name, {"m": Estimate(value)}, None)  # type: ignore[arg-type]
        for name, value in agreement.items()
    ]
    monkeypatch.setattr(probing, "choose", lambda scored, *_: Choice(scored[0], "by agreement alone"))
    monkeypatch.setattr(probing.Footing, "of", lambda *_: None)
    gold = load_gold("starter")
    table = AgreementTable(gold, gold.select("dev"))
    return choose_probed(scored, "m", table, Broken((object(),), shares=shares))[0]  # type: ignore[arg-type]


def test_fewer_broken_probes_are_taken_where_agreement_is_no_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    agreement = {"before": 0.8, "a": 0.81, "b": 0.8}
    assert chosen(monkeypatch, agreement, {"before": 0.3, "a": 0.28, "b": 0.0}).taken.name == "b"


def test_agreement_is_not_traded_away(monkeypatch: pytest.MonkeyPatch) -> None:
    agreement = {"before": 0.8, "a": 0.79}
    assert chosen(monkeypatch, agreement, {"before": 0.3, "a": 0.0}).taken.name == "before"


def test_a_gain_by_luck_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    agreement = {"before": 0.8, **{f"c{at}": 0.8 for at in range(20)}}
    shares = {"before": 0.3, **{f"c{at}": 0.3 for at in range(20)}, "c7": 0.28}
    assert chosen(monkeypatch, agreement, shares).taken.name == "before"


def test_the_change_is_paired_and_shown_by_question() -> None:
    probes = Broken((), shares={"a": 0.3, "b": 0.0})
    before, after = (probes.broken(None, name, None) for name in "ab")
    found = probes.held(before, after)
    assert (found.before.value, found.after.value, found.fewer) == (0.3, 0.0, True)
    assert found.difference.value == pytest.approx(-0.3)
    assert not probes.held(after, after).fewer


# --- the command


def test_the_result_says_both_before_and_after_and_test_stays_sealed(
    judgecal: Run, workspace_dir: Path
) -> None:
    ran = judgecal("optimize", "--probes", "--no-final", "--name", "o", "--json")
    result = one_object(ran)
    dev = result["probes"]["dev"]
    assert result["probes"]["test"] is None
    assert dev["before"]["n"] > 0 and dev["difference"]["n"] > 0
    assert set(dev["families"]) >= {"empty", "give_100", "contradiction"}
    gold = load_gold("starter")
    item_ids = {row.item_id for row in read_verdicts(workspace_dir / "experiments/o/verdicts.parquet")}
    assert item_ids and not {name.partition("~")[0] for name in item_ids if "~" in name} & gold.test_ids
    assert "Probes that break it" in judgecal("report", "o", "--full").out


def test_a_set_of_whose_dev_no_rule_makes_a_probe_is_refused(
    judgecal: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "families_named", lambda _names: ())
    ran = judgecal("optimize", "--probes", "--no-final", "--name", "o")
    assert ran.code == 2 and "the rules make no probe of the dev items of starter" in ran.err


@pytest.mark.parametrize(
    ("optimizer", "deaf"),
    [*((name, False) for name in ("LabeledFewShot", "gepa", "simba")), ("BootstrapFewShot", True)],
)
def test_a_judge_that_obeys_who_asks_for_marks_is_mended_and_one_that_no_prompt_mends_is_not(
    judgecal: Run, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, optimizer: str, deaf: bool
) -> None:
    few = families_named(["give_100", "fake_verdict", "empty"])
    monkeypatch.setattr(probing, "families_named", lambda _names: few)
    monkeypatch.setattr("judgecal.optimize.optimizers._LABELED", {"sizes": [8, 16], "draws": 1})
    rows = made_items(66)
    made_gold(workspace.gold / "facts", rows, rated_by_kind(rows, {"full": 100, "half": 50, "none": 0}))
    run = (
        "optimize",
        "--gold",
        "facts",
        "--model",
        "mine",
        "--optimizer",
        optimizer,
        "--probes",
        "--seed",
        "1",
        "--json",
    )
    with serving(workspace.root, monkeypatch, obeying(2, deaf=deaf)) as stub:
        result = one_object(judgecal(*run))
    written = [body for body in stub.bodies if "correctness_percentage" not in asked_for(body)]
    dev, test = result["probes"]["dev"], result["probes"]["test"]
    if deaf:
        assert result["headline"]["kind"] != "mended" and dev["before"]["value"] > 0.1
        return
    assert all(dev["families"][name][0] > 0.1 for name in ASKING)
    assert result["headline"]["kind"] in ("mended", "better")
    assert "fewest broken probes" in result["choice"] and result["test_looks"] == 1
    for split, probes in (("dev", dev), ("test", test)):
        assert probes["after"]["value"] < 0.1 < probes["before"]["value"]
        before, after = (result[split][side]["macro_agreement"]["value"] for side in ("before", "after"))
        assert after > before - 0.05
    assert test["difference"]["high"] < 0.0
    told = [body for body in written if FEEDBACK in str(body["messages"])]
    assert bool(told) == (optimizer in ("gepa", "simba"))
    for body in told:
        words = str(body["messages"])
        assert "no person labelled it" in words


def test_fewer_broken_probes_on_test_are_a_reason_to_take_it_unless_agreement_falls(judgecal: Run) -> None:
    from dataclasses import replace

    from judgecal.optimize.result import WORSE, OptimizedProbes, OptimizeResult, ProbesOf
    from judgecal.report.optimize import optimize_document

    def estimate(value: float) -> Estimate:
        return Estimate(value, value - 0.02, value + 0.02, n=200, n_expected=200, n_groups=40)

    assert judgecal("optimize", "--no-final", "--name", "o").code == 0
    stored = Path("experiments/o/summary.json")
    result = Experiment(stored.parent, {}).read_summary(OptimizeResult)
    metric, same = result.metric, {"before": result.dev.before, "after": result.dev.after}
    gone = estimate(0.0)
    test = replace(result.test, **same, difference=gone, difference_recalibrated=gone)
    broken = OptimizedProbes(estimate(0.3), estimate(0.1), estimate(-0.2), {})
    mended = replace(result, test=test, chosen="before", probes=ProbesOf(broken, broken))
    headline = optimize_document(mended).headline
    assert headline.sentence == "Take the optimised judge: fewer probes break it."
    assert (headline.kind, headline.chip) == ("mended", "")
    assert "30.0% of the probes of test broke it, 10.0% do now" in headline.because[0]
    worse = optimize_document(replace(mended, decision=WORSE)).headline
    assert worse.sentence.startswith("Keep the judge as it is")
    assert metric in result.dev.before


def test_a_candidate_that_answers_no_probe_is_not_mended(workspace: Workspace) -> None:
    gold = load_gold("starter")
    table = AgreementTable(gold, gold.select("dev"))
    probes = SplitProbes.of(gold, table.items, judge(workspace), 0)
    given = [Judgement(item.item_id, item.sha, "j", "f", 0, 50.0) for item in table.items]
    silent = Verdicts("j", gold.scale, given)
    broken = probes.broken(table, silent, probing.Footing.through(None, gold.scale, gold.scale))
    assert all((values == 1.0).all() for values in broken.values())
    assert probes.held(broken, broken).after.value == 1.0
