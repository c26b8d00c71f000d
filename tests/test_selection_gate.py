"""The gate: when a locked judge passes, fails or cannot be told, and what a night costs and leaves behind."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import t as student

from judgecal.engine.budget import Budget
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, JudgecalError
from judgecal.experiment.trials import run_trials as run_trials_of_judges
from judgecal.judges.prompt import PromptJudge
from judgecal.records import Failure, Item, Judgement
from judgecal.scale import Scale
from judgecal.selection.gate import Passes, plan_gate
from judgecal.selection.lock import load_lock, write_lock
from judgecal.selection.rules import GateRule, LockedAndCurrent
from judgecal.stats import Calibration, compare_paired
from tests.benchmarks.gate_nights import KINDS, simulate
from tests.support.command import Run, check_estimate, one_object, tree
from tests.support.locks import KEY, Served, drawn, flips
from tests.support.locks import served as served  # a fixture
from tests.support.server import MODEL_ID

USD_A_CALL = (1000 * 2.0 + 50 * 10.0) / 1e6  # what the stub counts, at the prices below
CONTRACT = {"lock", "decision", "flip_rate", "noise", "locked", "now", "difference", "smallest_detectable"}
PERCENTAGE = Scale.parse("percentage", pass_at=75.0)


# The rule


def gated(judgecal: Run, served: Served, *words: Any, code: int = 0) -> dict[str, Any]:
    """What the gate of its lock comes to, as its object."""
    return one_object(judgecal("gate", "--lock", served.path, *words, "--json"), code=code)


def two_times(
    labels: list[float], then: list[Any], now: list[list[Any]], *, size: int = 1, calls: int = 3
) -> LockedAndCurrent:
    """The lock called each item so often, with the same verdict each time."""
    groups = [str(place // size) for place in range(len(labels))]
    return LockedAndCurrent(
        labels, [[verdict] * calls for verdict in then], now, groups, PERCENTAGE, PERCENTAGE
    )


def alternating(n: int) -> list[float]:
    return [0.0, 100.0] * (n // 2)


@pytest.mark.parametrize("passes", [1, 2])
def test_no_difference_on_any_item_passes_even_without_a_margin(passes: int) -> None:
    labels = alternating(20)
    two = two_times(labels, labels, [[label] * passes for label in labels])
    state = GateRule("macro_agreement", 0.0).state(two, last=False)
    found = state.comparison.difference
    assert (state.decision, found.low, found.high, state.loss_below) == ("pass", 0.0, 0.0, 0.0)


def test_a_clear_loss_is_confirmed_by_a_second_pass() -> None:
    """10 of 40 items turned over: 5 in either class of 20, so macro_agreement falls by 0.25."""
    labels = alternating(40)
    now = [[100.0 - label if place < 10 else label] for place, label in enumerate(labels)]
    rule = GateRule("macro_agreement", 0.03)
    one = two_times(labels, labels, now)
    assert rule.state(one, last=False).decision == "inconclusive"
    assert rule.state(one, last=True).decision == "fail"
    again = rule.state(two_times(labels, labels, [row * 2 for row in now]), last=False)
    assert again.decision == "fail" and again.comparison.difference.value == pytest.approx(-0.25)


def turned_over_once(n: int) -> tuple[list[float], list[list[float]]]:
    """Labels, and two passes of which either turns n items over, but not one of them twice."""
    labels = alternating(40)
    now = [
        [100.0 - label if place < n else label, 100.0 - label if n <= place < 2 * n else label]
        for place, label in enumerate(labels)
    ]
    return labels, now


def test_noise_that_costs_more_than_the_margin_fails_over_two_passes() -> None:
    labels, now = turned_over_once(10)
    state = GateRule("macro_agreement", 0.03).state(two_times(labels, labels, now), last=False)
    difference = state.comparison.difference
    assert difference.value == pytest.approx(-0.25) and difference.high is not None
    assert difference.high < -0.03
    assert state.decision == "fail" and "the whole of its interval" in state.why


def test_a_loss_beyond_the_margin_is_never_called_noise() -> None:
    labels, now = turned_over_once(4)
    state = GateRule("macro_agreement", 0.08).state(two_times(labels, labels, now), last=False)
    assert state.decision == "inconclusive"
    assert "its interval includes the margin" in state.why and "noise" not in state.why


def test_a_gain_passes_and_few_questions_tell_nothing() -> None:
    labels = alternating(40)
    then = [100.0 - label if place < 4 else label for place, label in enumerate(labels)]
    rule = GateRule("macro_agreement", 0.03)
    assert rule.state(two_times(labels, then, [[x] for x in labels]), last=True).decision == "pass"
    few = rule.state(two_times(labels, labels, [[x] for x in labels], size=5), last=True)
    assert (few.decision, few.loss_below) == ("inconclusive", None) and "fewer than 10" in few.why


def test_a_stratum_of_few_items_decides_nothing() -> None:
    labels = [*[0.0] * 8, *[100.0] * 40]
    lost = [[100.0 - label] * 3 for label in labels]
    rule = GateRule("macro_agreement", 0.03)
    for now in ([[label] for label in labels], [[100.0] for _ in labels]):  # as locked; all 8 lost
        found = rule.state(two_times(labels, labels, now), last=True)
        assert (found.decision, found.loss_below) == ("inconclusive", None)
        assert (
            '8 in "low third" (2 more would do): below 10 we decide nothing by macro_agreement' in found.why
        )
        assert found.why.endswith("So this lock can never pass: label more of them and lock again")
    assert (
        GateRule("mean_agreement", 0.03).state(two_times(labels, labels, lost), last=True).decision == "fail"
    )
    # Who answers, and how often nobody does, rest on no stratum.
    assert rule.state(two_times(labels, labels, lost), last=True).decision == "changed"
    gone = rule.state(two_times(labels, labels, [[None] * 3 for _ in labels]), last=True)
    assert gone.decision == "fail" and "of the verdicts are missing" in gone.why


def test_a_lock_of_one_call_takes_two_passes() -> None:
    labels = alternating(40)
    rule = GateRule("macro_agreement", 0.03)
    one = two_times(labels, labels, [[x] for x in labels], calls=1)
    found = rule.state(one, last=False)
    assert (found.decision, found.same_judge) == ("inconclusive", None)
    assert "whether the same judge answers" in found.why
    assert rule.state(one, last=True).decision == "pass"
    assert (
        rule.state(two_times(labels, labels, [[x, x] for x in labels], calls=1), last=False).decision
        == "pass"
    )


def swapped(labels: list[float], n: int) -> list[float]:
    """As many verdicts become right as become wrong: 2 n items of each class differ, and the agreement is the
    same."""
    return [100.0 - label if place < 2 * n else label for place, label in enumerate(labels)]


def test_a_loss_of_calls_that_are_not_shown_to_differ_fails_nobody() -> None:
    """Ten questions of four items; in one question, turned over, lies the whole loss: of one question no
    proof."""
    labels = alternating(40)
    now = [[100.0 - label] * 2 if place < 4 else [label] * 2 for place, label in enumerate(labels)]
    two = two_times(labels, labels, now, size=4)
    state = GateRule("macro_agreement", 0.0, 0.51).state(two, last=True)
    assert state.comparison.difference.high is not None and state.comparison.difference.high < 0.0
    assert state.decision == "inconclusive" and "are not shown to differ" in state.why
    assert "noise" not in state.why


def test_another_judge_of_the_same_accuracy_is_changed() -> None:
    labels = alternating(400)
    then, now = swapped(labels, 20), list(reversed(swapped(labels[::-1], 20)))
    rule = GateRule("macro_agreement", 0.03)
    state = rule.state(two_times(labels, then, [[x, x] for x in now]), last=True)
    assert state.comparison.difference.value == pytest.approx(0.0)
    assert state.decision == "changed"
    assert state.why.startswith("verdicts lie 20 from the locked ones and moved by +0")
    assert state.same_judge is not None and (state.same_judge.n, state.same_judge.n_differ) == (400, 80)


def test_a_hint_of_another_judge_is_worth_another_pass() -> None:
    """Five of 1,000 items differ, all the same way: rare, and no proof after one pass."""
    labels = alternating(1000)
    then = [100.0 - label if place < 5 else label for place, label in enumerate(labels)]
    rule = GateRule("macro_agreement", 0.03)
    one = rule.state(two_times(labels, then, [[x] for x in labels]), last=False)
    assert one.same_judge is not None and one.same_judge.doubtful and not one.same_judge.changed
    assert one.decision == "inconclusive" and "a further pass tells from chance" in one.why
    assert rule.state(two_times(labels, then, [[x] for x in labels]), last=True).decision == "pass"


@pytest.mark.parametrize("metric", ["bias", "prevalence@75"])
def test_a_metric_that_ranks_nobody_decides_nothing(metric: str) -> None:
    with pytest.raises(InputError, match=f"{metric} ranks nobody"):
        GateRule(metric, 0.03)


def test_a_rise_of_unscored_verdicts_fails_whatever_the_loss() -> None:
    """18% of the verdicts are gone, of items that were wrong before: nothing is lost, and yet it fails."""
    labels = alternating(100)
    then = [100.0 - label if place < 18 else label for place, label in enumerate(labels)]
    now = [[None if place < 18 else label] for place, label in enumerate(labels)]
    state = GateRule("macro_agreement", 0.03).state(two_times(labels, then, now), last=False)
    assert state.comparison.difference.value == 0.0
    assert state.decision == "fail" and "18.0% more of the verdicts are missing" in state.why
    assert "and we allow 5%" in state.why
    few = [[None if place < 5 else label] for place, label in enumerate(labels)]
    assert GateRule("macro_agreement", 0.03).state(two_times(labels, then, few), last=True).decision != "fail"


def test_a_verdict_that_is_missing_now_as_then_is_no_reason_not_to_pass() -> None:
    verdicts = [None, *alternating(60)[1:]]
    two = two_times(alternating(60), verdicts, [[verdict] * 2 for verdict in verdicts])
    assert GateRule("macro_agreement", 0.03).state(two, last=True).decision == "pass"


def test_nothing_that_could_be_read_is_no_pass() -> None:
    """Not even beside a lock that could read nothing either."""
    nothing = [[None, None] for _ in range(60)]
    state = GateRule("macro_agreement", 0.03).state(
        two_times(alternating(60), [None] * 60, nothing), last=True
    )
    assert state.decision == "inconclusive" and "no call has a verdict" in state.why


def test_the_map_of_the_lock_decides_and_the_raw_verdicts_stand_beside_it() -> None:
    """Verdicts of 100 become 60, which the map takes for 100 all the same: no loss, and yet another judge."""
    labels = alternating(60)
    two = two_times(labels, labels, [[min(x, 60.0)] * 2 for x in labels])
    mapped = dataclasses.replace(
        two, calibrate=lambda verdict: None if verdict is None else 100.0 * (verdict > 50.0)
    )
    rule = GateRule("macro_agreement", 0.03)
    plain, through = rule.state(two, last=True), rule.state(mapped, last=True)
    assert plain.decision == "fail"
    assert through.comparison.difference.value == 0.0 and through.loss_below == 0.0
    assert through.decision == "changed"


@pytest.mark.parametrize("worse", [True, False])
def test_where_less_is_better_a_loss_is_a_rise(worse: bool) -> None:
    """20 of 100 items move from their label by 50: mae rises by 10, or falls by 10 where they had lain there
    before."""
    labels = alternating(100)
    moved = [50.0 if place < 20 else label for place, label in enumerate(labels)]
    then, now = (labels, moved) if worse else (moved, labels)
    state = GateRule("mae", 3.0).state(two_times(labels, then, [[x, x] for x in now]), last=True)
    assert state.comparison.difference.value == pytest.approx(10.0 if worse else -10.0)
    assert state.decision == ("fail" if worse else "changed")  # better is another judge, too


def test_an_unscored_verdict_counts_as_wrong() -> None:
    labels = alternating(40)
    now = [[None if place < 10 else label] * 2 for place, label in enumerate(labels)]
    state = GateRule("macro_agreement", 0.03).state(two_times(labels, labels, now), last=False)
    assert state.decision == "fail" and state.comparison.difference.n_unscored == 10
    assert state.comparison.complete_case.difference.value == 0.0


@pytest.mark.parametrize(
    ("margin", "level", "message"), [(-0.1, 0.95, "--margin is -0.1"), (math.nan, 0.4, "--level is 0.4")]
)
def test_a_rule_out_of_range(margin: float, level: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        GateRule("macro_agreement", margin, level)


# The bound


def test_the_bound_is_that_of_t() -> None:
    labels = alternating(80)
    then = [abs(label - 40.0) for label in labels]
    now = [verdict + {0: 20.0, 4: -20.0}.get(place % 8, 0.0) for place, verdict in enumerate(then)]
    two = two_times(labels, then, [[verdict] for verdict in now])
    bound = GateRule("mean_agreement", 0.03).state(two, last=True).loss_below
    t = compare_paired(labels, now, then, scale=PERCENTAGE, metric="mean_agreement", level=0.90, n_perm=1)
    assert bound is not None and bound > 0.0 and bound == pytest.approx(-(t.difference.low or 0.0))


def test_the_bound_solves_hall_s_cubic() -> None:
    """Losses of single items, by definition: T + s T^2 / 3 + s^2 T^3 / 27 + s / 6 = -t, s = skewness /
    G^(1/2)."""
    labels = [100.0] * 30 + [0.0] * 30
    now = [60.0, 0.0, 80.0, *([100.0] * 27), *([0.0] * 28), 40.0, 10.0]
    two = two_times(labels, labels, [[x] for x in now])
    bound = GateRule("mean_agreement", 0.03).state(two, last=True).loss_below
    losses = np.abs(np.array(now) - np.array(labels)) / 100.0
    n, away = len(losses), losses - losses.mean()
    error = math.sqrt((away**2).sum() / (n * (n - 1)))
    skew = (away**3).mean() / (away**2).mean() ** 1.5 / math.sqrt(n)
    root = brentq(
        lambda x: x + skew * x**2 / 3 + skew**2 * x**3 / 27 + skew / 6 + student.ppf(0.95, n - 1), -50, 50
    )
    assert bound == pytest.approx(losses.mean() - error * root)
    assert bound > losses.mean() + error * student.ppf(0.95, n - 1)  # more cautious than t


def test_a_coefficient_has_a_bound_too() -> None:
    labels = alternating(60)
    now = [100.0 - x if place % 12 == 0 else x for place, x in enumerate(labels)]
    state = GateRule("kappa@75", 0.03).state(two_times(labels, labels, [[x, x] for x in now]), last=True)
    assert state.loss_below is not None and state.comparison.difference.value is not None
    assert state.loss_below > -state.comparison.difference.value > 0.0


# Nights, simulated


def test_nights() -> None:
    """The full table is `python -m tests.benchmarks.gate_nights`."""
    drop, noise, other = (next(one for one in KINDS if one.name.startswith(name)) for name in NAMES)
    same, passes, alarms = simulate(KINDS[0], questions=110, scale="binary", users=20)
    assert same["pass"] >= 18 and passes < 1.5 and alarms == 0.0
    for kind in (drop, noise, other):
        assert simulate(kind, questions=110, scale="binary", users=10)[2] >= 0.9


NAMES = ("drop of 8", "noise that costs 8", "another judge, as good")


# The command


def other_way(item: Item, n: int, verdict: float) -> float:
    return 100.0 - verdict


def experiments(served: Served) -> list[Path]:
    return sorted(served.workspace.experiments.glob("gate-starter-*"))


def test_score_select_gate_offline(judgecal: Run, workspace_dir: Path) -> None:
    scored = one_object(judgecal("score", "--json"))
    one_object(judgecal("select", scored["experiment"], "--allow-below-floor", "--json"))
    ran = judgecal("gate", "--lock", "judge.lock.json")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("✓ pass · Go on with this judge until the next gate.\nEvery item agrees ")
    found = one_object(judgecal("gate", "--lock", "judge.lock.json", "--json"))
    assert found.keys() >= CONTRACT | {"model_changed", "repeats", "usd", "experiment", "margin", "run_line"}
    assert found["decision"] == "pass" and found["repeats"] == 1 and found["usd"] == 0.0
    assert found["model_changed"] is False
    estimates = [found["flip_rate"], found["noise"], found["difference"]]
    assert found["odd_one_out"]["n"] == 220 and found["odd_one_out"]["n_differ"] == 0
    for one in [*estimates, *found["locked"].values(), *found["now"].values()]:
        check_estimate(one)
    assert (found["difference"]["low"], found["difference"]["high"]) == (0.0, 0.0)
    assert found["now"]["macro_agreement"]["n"] == 220 == found["locked"]["macro_agreement"]["n"] / 3
    for name, then in found["locked"].items():
        assert found["now"][name]["value"] == pytest.approx(then["value"])
    folders = list((workspace_dir / "experiments").glob("gate-starter-*"))
    assert len(folders) == 2
    assert all(re.search(r"-[0-9a-f]{8}-\d{8}T\d{6}\.\d{3}Z$", one.name) for one in folders)
    text = Path("judge.lock.json").read_text()
    Path("judge.lock.json").write_text(text.replace("reference_answer", "reference_anzwer", 1))
    refused = judgecal("gate", "--lock", "judge.lock.json")
    assert refused.code == 2 and "its content has changed since it was locked" in refused.err


def test_the_same_verdicts_pass_and_are_called_afresh_each_night(judgecal: Run, served: Served) -> None:
    for night in (1, 2):
        found = gated(judgecal, served)
        assert (found["decision"], served.stub.calls) == ("pass", 220 * night)
        assert found["usd"] == pytest.approx(220 * USD_A_CALL)
        assert (found["locked_model"], found["models"]) == (MODEL_ID, [MODEL_ID])
    looks = (served.workspace.experiments / "test_looks.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in looks] == ["gate", "gate"] and found["test_looks"] == 0


@pytest.mark.parametrize(
    ("splits", "flattered"), [({"test"}, False), ({"dev"}, True), ({"dev", "test"}, True)]
)
def test_items_that_chose_the_judge_are_said_to_flatter_it(
    served: Served, splits: set[str], flattered: bool
) -> None:
    plan = plan_gate(served.workspace, load_lock(served.path), served.path)
    kept = {item.item_id for item in plan.items if plan.gold.split_of(item.group) in splits}
    verdicts = {name: verdict for name, verdict in plan.lock.verdicts.items() if name in kept}
    notes = dataclasses.replace(plan, lock=dataclasses.replace(plan.lock, verdicts=verdicts)).run().notes
    assert any("some of the items chose the judge" in note for note in notes) == flattered


def test_other_answers_than_at_lock_time_fail(judgecal: Run, served: Served) -> None:
    served.script.change = other_way
    ran = judgecal("gate", "--lock", served.path, "--json")
    found = one_object(ran, code=1)
    assert (found["decision"], found["repeats"], served.stub.calls) == ("fail", 2, 440)
    assert found["difference"]["high"] < 0.0 and found["difference"]["value"] < -0.03
    # Over the mark of 75 then and not now, or the other way round: v >= 75 or 100 - v >= 75.
    assert found["flip_rate"]["value"] == pytest.approx(
        sum(v >= 75 or v <= 25 for v in served.script.verdicts.values()) / 220
    )
    text = judgecal("report", found["experiment"], "--format", "md").out
    assert text.startswith("**✕ fail · Stop using this judge.** ") and "correctness\\_v3\\@mine" in text
    again = "judgecal score --judge correctness_v3@mine --gold starter --no-cache"
    assert found["headline"]["next"] == again


def noisy_lock(served: Served, change: Callable[[Item, int, float], float]) -> None:
    """A lock whose three calls are as noisy as those of now."""
    script = served.script
    script.change = change
    calls = {
        item.item_id: tuple(change(item, -call, script.verdicts[item.item_id]) for call in (1, 2, 3))
        for item in script.gold.items
    }
    write_lock(served.path, dataclasses.replace(served.lock, calls=calls))


def test_the_judge_s_own_noise_never_fails(judgecal: Run, served: Served) -> None:
    noisy_lock(served, flips(0.05))
    ran = judgecal("gate", "--lock", served.path, "--json")
    assert ran.code in (0, 3), ran.out
    found = json.loads(ran.out)
    assert found["decision"] in ("pass", "inconclusive") and not found["odd_one_out"]["p_at_most"] < 0.001
    assert found["repeats"] == served.stub.calls / 220


HALVES = Calibration((50.0,), (0.0, 100.0), n=124, n_groups=62, fitted_on="train and dev of starter")


def test_the_map_of_the_lock_decides(judgecal: Run, served: Served) -> None:
    """Verdicts move by up to 45 points, and never over the cut of the map: calibrated nothing is lost."""
    write_lock(served.path, dataclasses.replace(served.lock, calibration=HALVES))
    served.script.change = lambda item, n, verdict: 95.0 if verdict >= 50.0 else 45.0
    ran = judgecal("gate", "--lock", served.path, "--json")
    found = one_object(ran, code=3)
    assert found["decision"] == "changed" and found["difference"]["value"] == 0.0
    then, now = (found[f"{when}_calibrated"]["macro_agreement"]["value"] for when in ("locked", "now"))
    assert then == pytest.approx(now)
    assert found["flip_rate"]["value"] == 0.0  # none crosses the lock's cut


def test_a_map_with_one_label_decides_nothing(served: Served) -> None:
    """Through it no judge could lose anything."""
    constant = Calibration((), (50.0,), n=124, n_groups=62)
    write_lock(served.path, dataclasses.replace(served.lock, calibration=constant))
    served.script.change = other_way
    found = plan_gate(served.workspace, load_lock(served.path), served.path).run()
    assert (found.decision, found.now_calibrated) == ("fail", {})


def test_an_outage_is_no_failure_of_the_judge(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_trials_of_judges
    down = Failure("timeout", "no answer")

    def run_trials(*args: Any, **given: Any) -> list[Judgement]:
        rows = whole(*args, **given)
        return [
            dataclasses.replace(row, verdict=None, error=down) if place < 40 else row
            for place, row in enumerate(rows)
        ]

    monkeypatch.setattr("judgecal.selection.gate.run_trials", run_trials)
    found = plan_gate(served.workspace, load_lock(served.path), served.path).run()
    assert (found.decision, found.repeats) == ("inconclusive", 0)
    assert "40 of 220 calls of a pass lost their connection" in found.why


def test_a_changed_model_is_named_first(judgecal: Run, served: Served) -> None:
    served.script.model_id = "stub-model-2026-09-09"
    ran = judgecal("gate", "--lock", served.path, "--name", "g")
    assert ran.code == 0
    assert ran.said.startswith("Go on with this judge, under its new model id. The model changed: ")
    named = f"The model changed: the provider now answers as stub-model-2026-09-09, not {MODEL_ID}."
    assert named in " ".join(ran.out.splitlines()[:5])
    assert "The model changed: " in judgecal("report", "g", "--format", "md").out.splitlines()[0]
    assert gated(judgecal, served)["model_changed"] is True


def test_neither_endpoint_nor_key_is_written(judgecal: Run, served: Served) -> None:
    served.script.change = flips(0.02)
    ran = judgecal("gate", "--lock", served.path)
    (folder,) = experiments(served)
    written = [*tree(folder).values(), served.path.read_bytes(), (ran.out + ran.err).encode()]
    address = served.stub.root.partition("//")[2]
    assert [text for text in written if KEY.encode() in text or address.encode() in text] == []
    assert served.stub.headers[0]["authorization"] == f"Bearer {KEY}"


def unsure(item: Item, n: int, verdict: float) -> float:
    """One call in twelve says the opposite: a loss near the margin."""
    return 100.0 - verdict if drawn(item, n) < 0.08 else verdict


def test_it_spends_repeats_before_it_cannot_tell(judgecal: Run, served: Served) -> None:
    noisy_lock(served, unsure)
    found = gated(judgecal, served, "--level", "0.9999999", code=3)
    assert (found["repeats"], served.stub.calls) == (3, 660)
    assert found["now"]["macro_agreement"]["n_expected"] == 660


def test_probes_that_a_lock_does_not_hold_are_not_made(judgecal: Run, served: Served) -> None:
    ran = judgecal("gate", "--lock", served.path, "--probes")
    assert ran.code == 2 and "the lock holds no probes: run judgecal probe --judge" in ran.err
    assert served.stub.calls == 0


@pytest.mark.parametrize(
    ("calls", "passes"), [(250, 1), (550, 2)]
)  # a second where 1.1 times its price is left
def test_repeats_stop_where_the_budget_does(judgecal: Run, served: Served, calls: int, passes: int) -> None:
    noisy_lock(served, unsure)
    budget = str(calls * USD_A_CALL)
    argv = ("gate", "--lock", served.path, "--level", "0.9999999", "--budget-usd", budget, "--json")
    found = one_object(judgecal(*argv), code=3)
    assert (found["repeats"], served.stub.calls) == (passes, 220 * passes) and found["usd"] <= float(budget)
    assert f"another pass would not fit the budget of {float(budget):g} USD" in found["why"]
    served.script.change = other_way
    assert one_object(judgecal(*argv), code=1)["repeats"] == passes  # they show more than the margin lost


def test_a_budget_for_less_than_a_pass_goes_on_later(judgecal: Run, served: Served) -> None:
    budget = str(60 * USD_A_CALL)
    found = gated(judgecal, served, "--budget-usd", budget, code=3)
    assert found["repeats"] == 0 and "no whole pass" in found["why"] and 0 < served.stub.calls < 61
    whole = gated(judgecal, served, "--name", found["experiment"])
    assert (whole["experiment"], whole["decision"]) == (found["experiment"], "pass")
    assert served.stub.calls == 220
    ended = judgecal("gate", "--lock", served.path, "--name", found["experiment"])
    assert ended.code == 2 and "this gate has ended" in ended.err and served.stub.calls == 220


def test_unscored_items_are_counted_with_reasons(judgecal: Run, served: Served) -> None:
    silent = set(sorted(served.script.verdicts)[:30])
    served.script.change = lambda item, n, verdict: None if item.item_id in silent else verdict
    ran = judgecal("gate", "--lock", served.path)
    assert ran.code == 1
    line = ran.said
    assert "30 of 220 judgements have no verdict (the reply could not be read)" in line
    assert not [item for item in silent if item in line]


def test_a_dry_run_calls_nothing(judgecal: Run, served: Served) -> None:
    ran = judgecal("gate", "--lock", served.path, "--dry-run")
    assert ran.code == 0 and "220 calls to make" in ran.out and "up to two more" in ran.out
    assert gated(judgecal, served, "--dry-run")["calls"] == 220
    assert served.stub.calls == 0 and not served.workspace.experiments.exists()


def test_a_server_that_is_not_there_is_one_message(judgecal: Run, served: Served) -> None:
    toml = served.workspace.config_file
    toml.write_text(toml.read_text().replace(served.stub.api_base, "http://127.0.0.1:9/v1"))
    ran = judgecal("gate", "--lock", served.path)
    said = [line for line in ran.err.splitlines() if line.startswith("judgecal: ")]
    assert (ran.code, ran.out) == (2, "") and "cannot be reached" in said[-1]


def test_everything_that_is_not_as_locked_is_one_message(judgecal: Run, served: Served) -> None:
    with (served.workspace.gold / "starter" / "card.toml").open("a") as card:
        card.write("\n")
    toml = served.workspace.config_file
    toml.write_text(toml.read_text() + "temperature = 0.5\n")
    ran = judgecal("gate", "--lock", served.path, "--margin", "-1")
    assert ran.code == 2
    for part in ("sha256", "temperature is 0.5", "--margin"):
        assert part in ran.err
    assert served.stub.calls == 0


def test_the_key_is_asked_for_before_anything_is_written(
    judgecal: Run, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY")
    ran = judgecal("gate", "--lock", served.path)
    assert ran.code == 2 and "MY_KEY" in ran.err and experiments(served) == []


def test_items_without_a_locked_verdict_are_left_out_and_said(served: Served) -> None:
    some = dict(list(served.lock.verdicts.items())[:100])
    lock = dataclasses.replace(served.lock, verdicts=some)
    found = plan_gate(served.workspace, lock, served.path).run()
    assert found.difference.n == 100 == served.stub.calls
    strange = dataclasses.replace(served.lock, verdicts={**some, "no-such-item": 1.0})
    with pytest.raises(InputError, match="no-such-item"):
        plan_gate(served.workspace, strange, served.path).run()


def test_a_first_pass_without_one_reply_is_one_message(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = Failure("server", "503 for now")

    def run_trials(judges: list[PromptJudge], items: list[Item], **given: Any) -> list[Judgement]:
        return [Judgement(one.item_id, one.sha, "j", "f", 0, None, error=down) for one in items]

    monkeypatch.setattr("judgecal.selection.gate.run_trials", run_trials)
    passes = Passes(served.script.judge, served.script.gold.items, Journal(None), RunOptions(), Budget(None))
    with pytest.raises(JudgecalError, match="no call came through; the first said: 503 for now"):
        passes.another()
    passes.n, passes.rows = 1, [Judgement("i", "sha", "j", "f", 0, 1.0, cost_usd=10.0)]
    passes.budget.limit_usd = 1.1 * 10.0  # just enough for another pass, be its replies a tenth longer
    passes.another()
    assert "would not fit the budget" not in str(passes.stopped)
    passes.rows = [Judgement("i", "sha", "j", "f", repeat, 1.0) for repeat in range(3)]
    for n, counted in ((0, [0]), (1, [0]), (2, [0, 1])):  # a pass that was broken off does not count
        passes.n = n
        assert [row.repeat for row in passes.counted] == counted
