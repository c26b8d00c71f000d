"""`migrate`: the decision by the margin, and the new lock."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.in_python import score
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.records import Estimate
from judgecal.scale import Label, Scale
from judgecal.selection.confirm import calibrate
from judgecal.selection.lock import LockedGold, load_lock
from judgecal.selection.pass_rates import PassRule, flip_rate
from judgecal.selection.rules import MigrationDecision, MigrationItems, _fell, error_of, migration
from judgecal.stats.intervals import t_quantile
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.locks import lock_file
from tests.support.server import StubServer, running

COLUMNS = ("--col", "question=question", "--col", "answer=answer", "--col", "reference=reference_answer")


@pytest.fixture
def gold(workspace_dir: Path) -> GoldSet:
    return load_gold(workspace_dir / "gold" / "starter")


@pytest.fixture
def judge(workspace_dir: Path) -> PromptJudge:
    return PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))


@pytest.fixture
def lock(workspace_dir: Path, judge: PromptJudge, gold: GoldSet) -> Path:
    """The embedded judge, locked on the starter."""
    fitted = calibrate(
        AgreementTable(gold, gold.items), Verdicts.from_calls(judge, score(judge, gold, split="all"))
    )
    return lock_file(workspace_dir / "judge.lock.json", judge, gold, calibration=fitted)


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """A model `mine` that says 0 to everything."""

    def script(body: dict[str, Any]) -> str:
        return "[[ ## correctness_reasoning ## ]]\nNo.\n\n[[ ## correctness_percentage ## ]]\n0\n"

    monkeypatch.setenv("MY_KEY", "sk-not-to-be-seen")
    with running(script) as stub:
        (workspace_dir / "judgecal.toml").write_text(
            f'[models.mine]\nid = "openai/mine"\napi_base = "{stub.api_base}"\nkey_env = "MY_KEY"\n'
            "input_usd_per_1m = 1.0\noutput_usd_per_1m = 1.0\nmax_tokens = 100\n"
        )
        yield stub


def production(workspace_dir: Path) -> Path:
    """The starter's items as unlabelled answers."""
    path = workspace_dir / "recent.jsonl"
    path.write_bytes((workspace_dir / "gold" / "starter" / "items.jsonl").read_bytes())
    return path


def nameless(workspace_dir: Path) -> Path:
    """Answers in columns that have no usual name."""
    path = workspace_dir / "nameless.csv"
    path.write_text("q,a,r\nwhen?,at nine,at nine\n", encoding="utf-8")
    return path


def looks(workspace_dir: Path) -> list[dict[str, Any]]:
    lines = (workspace_dir / "experiments" / "test_looks.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_map_of_a_lock_has_seen_no_item_of_test(gold: GoldSet, judge: PromptJudge) -> None:
    column = Verdicts.from_calls(judge, score(judge, gold, split="all"))
    fitted = calibrate(AgreementTable(gold, gold.items), column)
    n_test = sum(item.item_id in gold.labels for item in gold.select("test"))
    assert fitted is not None and n_test > 0
    assert (fitted.n, fitted.fitted_on) == (len(gold.labels) - n_test, "train and dev of starter")


# --- the decision, by hand ---


BINARY = Scale.parse("binary")


def both(n: int, wrong: Sequence[int] = (), right: Sequence[int] = ()) -> MigrationItems:
    """n questions of an answer, half of them fails: the old judge is wrong on `right`, the new one on
    `wrong`."""
    labels = [place % 2 for place in range(n)]
    new, old = (
        [1 - label if place in set(at) else label for place, label in enumerate(labels)]
        for at in (wrong, right)
    )
    return MigrationItems(labels, [f"q{n}-{place}" for place in range(n)], old, new, (BINARY, BINARY))


def decision(
    test: MigrationItems,
    rest: MigrationItems | None = None,
    *,
    margin: float = 0.03,
    metric: str = "macro_agreement",
) -> MigrationDecision:
    return migration(test, rest, people=BINARY, metric=metric, margin=margin, level=0.97)


@pytest.mark.parametrize("metric", ["macro_agreement", "mae"])
def test_pass_rests_on_all_and_fail_on_test(metric: str) -> None:
    """The same verdicts on 60 questions of test are too few to pass (0.97^60 = 16%), those on 160 are not
    (0.8%)."""
    assert decision(both(60), metric=metric).decision == "inconclusive"
    assert decision(both(60), both(100), metric=metric).decision == "pass"
    # 20 of 60 wrong on test fail it, whatever 1000 others show.
    lost = decision(both(60, range(20)), both(1000, right=range(40)), metric=metric)
    assert lost.decision == "fail" and lost.why.startswith("on test it loses ")


def test_a_pass_that_test_does_not_bear_out_is_none() -> None:
    found = decision(both(100, range(8)), both(300, right=range(60)))
    assert found.decision == "inconclusive"
    assert "on test it does 28 points worse than on the others" in found.why
    assert "tuned it on questions of train and dev" in found.why
    # What chance explains is of the error by group, also where a rare class leaves it few degrees of freedom.
    few, more = (both(n, range(0, n, 8)) for n in (100, 300))
    few, more = (
        dataclasses.replace(one, labels=[int(n % 8 == 1) for n in range(len(one.labels))])
        for one in (few, more)
    )
    sides = [one.compared(people=BINARY, metric="macro_agreement", level=0.97) for one in (few, more)]
    for side in sides:
        assert side.planned is not None and side.complete_case.errors is not None
        assert side.planned.df < side.difference.n_groups - 1.0
        assert error_of(side) == pytest.approx(side.complete_case.errors[2])
    assert decision(both(100, range(2), range(10, 12)), both(900, range(4), range(10, 14))).decision == "pass"


def test_how_many_more_questions_would_tell() -> None:
    """A judge alike is shown to be with 0.97^n <= 0.03: 116 questions, not one more than there are."""
    found = decision(both(60))
    assert "about 56 more questions would show that it loses less" in found.why
    assert "may be as large as 5.7 points" in found.why
    # 0.94^57 is the first power below 0.03.
    assert "about 1 more question would show" in decision(both(56), margin=0.06).why


def test_where_no_number_of_questions_can_be_named() -> None:
    on_it = decision(both(60, range(6)), margin=0.1)
    assert on_it.decision == "inconclusive"
    assert "more questions will hardly show that it loses less" in on_it.why
    few = decision(both(8), both(200))
    assert few.decision == "inconclusive" and "below 10 we decide nothing by macro_agreement" in few.why


# --- flips, by hand ---


def test_test_that_falls_beyond_both_errors_bears_nothing_out() -> None:
    """2.58 times the root of both squares: errors 0.03 and 0.04, so 0.129."""

    def side(value: float, error: float) -> Any:
        half = t_quantile(0.95, 30.0) * error
        difference = Estimate(value, value - half, value + half)
        return SimpleNamespace(difference=difference, planned=SimpleNamespace(df=30.0))

    for fall, borne_out in ((0.128, True), (0.130, False)):
        for of_test, of_others in ((0.03, 0.04), (0.04, 0.03)):
            said = _fell(side(0.01 - fall, of_test), side(0.01, of_others), "macro_agreement")
            assert (said is None) is borne_out
    assert _fell(side(-0.5, 0.01), SimpleNamespace(difference=Estimate(None), planned=None), "mae") is None  # type: ignore[arg-type]


def flips_of(rules: tuple[PassRule, PassRule], rows: list[tuple[Label | None, Label | None]]) -> Estimate:
    """The flip rate of rows, each in a group of its own with the verdicts before and after."""
    groups = [f"g{number}" for number in range(len(rows))]
    return flip_rate(rules, [[[before], [after]] for before, after in rows], groups)


def test_flips_by_hand() -> None:
    people = LockedGold("set", "0" * 64, "test", "percentage", 75.0)
    percentage, ordinal = Scale.parse("percentage"), Scale.parse("ordinal:0:4")
    rows = [(80.0, 3.0)] * 6 + [(90.0, 2.0)] * 3 + [(0.0, 4.0)] + [(75.0, 0.0), (None, 4.0), (60.0, None)]
    rules = PassRule.for_scale(people, percentage), PassRule.for_scale(people, ordinal)
    rate = flips_of(rules, rows)
    # 3 of ordinal:0:4 is 75 of 100 and passes; 2 is 50 and fails.
    assert rate.value == pytest.approx(5 / 11)
    assert (rate.n, rate.n_expected, rate.n_unscored, rate.n_groups) == (11, 13, 2, 11)
    assert rate.low is not None and rate.high is not None and rate.low < 5 / 11 < rate.high


def test_without_a_pass_mark_nothing_changes_sides() -> None:
    people = LockedGold("set", "0" * 64, "test", "percentage", None)
    rule = PassRule.for_scale(people, Scale.parse("percentage"))
    found = flips_of((rule, rule), [(50.0, 60.0)] * 12)
    assert found.value is None and "no pass mark" in str(found.reason)


def test_of_words_it_counts_those_that_are_another_word() -> None:
    rule = PassRule.for_scale(LockedGold("set", "0" * 64, "test", "nominal", None), Scale.parse("nominal"))
    assert flips_of((rule, rule), [("red", "blue")] * 3 + [("red", "red")] * 9).value == 0.25


# --- the command ---


def test_an_equal_judge_may_take_the_place_and_is_locked(
    judgecal: Run, workspace_dir: Path, lock: Path
) -> None:
    """correctness_v1 on `embedded` gives the verdicts of correctness_v3: the difference is 0 everywhere."""
    table = production(workspace_dir)
    command = (
        *("migrate", "--lock", lock, "--to", "correctness_v1@embedded", "--on", table, *COLUMNS),
        *("--col", "system=system", "--margin", "0.25", "-o", "new.lock.json", "--json"),
    )
    plan = json.loads(judgecal(*command[:-1], "--dry-run", "--json").out)
    assert plan["calls"] == 220 + 2 * 220 + 3 * 220  # gold, the table by either judge, the lock's calls
    assert not (workspace_dir / "experiments").exists()
    ran = judgecal(*command)
    assert ran.code == 0
    result = json.loads(ran.out)
    assert result["decision"] == "pass"
    assert [result["difference"][name] for name in ("value", "low", "high")] == [0.0, 0.0, 0.0]
    assert 0.0 < result["loss_below"] < 0.25  # the same verdicts on so many questions show that much, not 0
    loss = f"{100 * result['loss_below']:.1f} points"
    assert result["why"] == f"it loses {loss} at most, less than the margin of 25 points"
    assert (result["differ"]["n"], result["differ"]["share"]["value"]) == (220, 0.0)
    new, old = load_lock(workspace_dir / "new.lock.json"), load_lock(lock)
    assert (new.judge, new.verdicts, new.margin) == ("correctness_v1@embedded", old.verdicts, 0.25)
    assert {name: one.value for name, one in new.agreement.items()} == {
        name: one.value for name, one in old.agreement.items()
    }
    assert (new.noise.n_items, new.noise.n_calls, new.noise.flip_rate.value) == (220, 3, 0.0)
    assert new.calibration is not None
    assert new.runnable(find_workspace(workspace_dir)).fingerprint
    (look,) = looks(workspace_dir)
    assert (look["kind"], look["n_items"], look["by"]) == ("decision", 96, "migrate by macro_agreement")
    again = json.loads(judgecal(*command, "--replace").out)
    assert again["test_looks"] == 1  # the same command is the same look
    contract = {"flip_rate", "noise", "unscored", "locked", "now", "smallest_detectable", "model_changed"}
    assert contract <= result.keys() and result["unscored"] == {"locked": 0.0, "now": 0.0}
    assert (result["flip_rate"]["value"], result["model_changed"]) == (0.0, False)
    assert result["now"]["macro_agreement"]["value"] == result["locked"]["macro_agreement"]["value"]
    before = (workspace_dir / "new.lock.json").read_bytes()
    refused = judgecal(*command)
    assert (refused.code, refused.out) == (2, "") and "add --replace to overwrite it" in refused.err
    assert (workspace_dir / "new.lock.json").read_bytes() == before


def test_a_judge_that_tells_nothing_apart_is_not_locked(
    judgecal: Run, workspace_dir: Path, lock: Path, served: StubServer
) -> None:
    """A constant 0, however wide the margin: 220 calls of it, none of the old judge."""
    command = (
        "migrate",
        "--lock",
        lock,
        "--to",
        "correctness_v3@mine",
        "-o",
        "new.lock.json",
        "--margin",
        "0.9",
    )
    ran = judgecal(*command, "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["decision"], result["new"]) == (1, "fail", "correctness_v3@mine")
    assert result["why"].startswith("it tells right from wrong no better than a coin: sensitivity")
    assert (served.calls, result["differ"]) == (220, None)
    assert result["new_lock"] is None and "no lock is written" in result["new_lock_reason"]
    assert not (workspace_dir / "new.lock.json").exists()


def test_a_judge_that_loses_is_not_locked(
    judgecal: Run, workspace_dir: Path, judge: PromptJudge, gold: GoldSet, lock: Path
) -> None:
    """The locked verdicts are the people's labels, and the new judge reads next to nothing."""
    lock_file(lock, judge, gold, verdicts={item: float(label) for item, label in gold.labels.items()})
    ran = judgecal(
        "migrate", "--lock", lock, "--to", "correctness_v1@embedded", "-o", "new.lock.json", "--json"
    )
    result = json.loads(ran.out)
    assert (ran.code, result["decision"], result["new_lock"]) == (1, "fail", None)
    assert result["difference"]["high"] < -0.03 < 0.0 < result["flip_rate"]["low"]
    assert result["why"].startswith("on test it loses ")
    assert result["why"].endswith("points at least, more than the margin of 3 points")
    # With a margin that is wide enough the same numbers say otherwise: one interval serves every margin.
    wide = json.loads(
        judgecal(
            "migrate", "--lock", lock, "--to", "correctness_v1@embedded", "--margin", "0.9", "--json"
        ).out
    )
    assert (wide["decision"], wide["difference"]) == ("pass", result["difference"])


def test_what_cannot_be_told_is_not_locked(
    judgecal: Run, workspace_dir: Path, judge: PromptJudge, gold: GoldSet, lock: Path
) -> None:
    """The locked verdicts are the new judge's own but for twelve items."""
    verdicts = dict(load_lock(lock).verdicts)
    for item in gold.select("test")[:24:2]:
        verdicts[item.item_id] = float(gold.labels[item.item_id])
    lock_file(lock, judge, gold, verdicts=verdicts)
    command = (
        "migrate", "--lock", lock, "--to", "correctness_v1@embedded", "-o", "new.lock.json", "--margin", "0.001",
    )  # fmt: skip
    ran = judgecal(*command, "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["decision"], result["new_lock"]) == (3, "inconclusive", None)
    assert (
        "no lock is written" in result["new_lock_reason"] and not (workspace_dir / "new.lock.json").exists()
    )


def test_items_without_a_locked_verdict_are_left_out(
    judgecal: Run, workspace_dir: Path, judge: PromptJudge, gold: GoldSet, lock: Path
) -> None:
    verdicts = dict(load_lock(lock).verdicts)
    first, second, *_ = [item.item_id for item in gold.select("test")]
    del verdicts[first]
    verdicts[second] = None  # it was unscored at lock time, and stays so
    lock_file(lock, judge, gold, verdicts=verdicts)
    ran = judgecal("migrate", "--lock", lock, "--to", "correctness_v1@embedded", "--json")
    result = json.loads(ran.out)
    n_test = sum(item.item_id in gold.labels for item in gold.select("test"))
    assert (result["difference"]["n_expected"], result["difference"]["n_unscored"]) == (n_test - 1, 1)
    assert result["difference"]["value"] > 0.0  # the unscored one counts as the farthest verdict


def test_calls_that_were_lost_decide_nothing(
    judgecal: Run, workspace_dir: Path, lock: Path, served: StubServer
) -> None:
    """A judge whose budget ends would lose on every item that it never saw."""
    command = (
        "migrate",
        "--lock",
        lock,
        "--to",
        "correctness_v3@mine",
        "-o",
        "new.lock.json",
        "--no-cache",
        "--json",
    )
    ran = judgecal(*command, "--budget-usd", "0.05")
    assert ran.code == 3
    result = json.loads(ran.out)
    assert (result["decision"], result["new_lock"], served.calls < 220) == ("inconclusive", None, True)
    assert result["why"].startswith(f"{220 - served.calls} calls were lost")
    assert result["test_look"].endswith("no decision taken, as calls were lost")
    assert result["headline"]["next"].startswith(f"judgecal migrate --lock {lock} --to correctness_v3@mine")
    result = json.loads(judgecal(*command).out)
    assert (result["decision"], served.calls, result["test_looks"]) == ("fail", 220, 1)


def test_a_changed_prompt_of_the_same_name_is_another_judge(
    judgecal: Run, workspace_dir: Path, lock: Path
) -> None:
    signature = workspace_dir / "signatures" / "correctness_v3.py"
    refused = judgecal("migrate", "--lock", lock, "--to", "correctness_v3@embedded")
    assert (refused.code, "is the locked judge itself" in refused.err) == (2, True)
    signature.write_text(signature.read_text().replace("reference answer", "true answer", 1))
    # The old one is in the lock alone now, and a lock runs no code unasked.
    refused = judgecal("migrate", "--lock", lock, "--to", "correctness_v3@embedded", "--json")
    assert (refused.code, "is not the text that was locked" in refused.err) == (2, True)
    trusting = ("migrate", "--lock", lock, "--trust-lock", "--json", "--to")
    result = json.loads(judgecal(*trusting, "correctness_v3@embedded").out)
    assert result["old"] == result["new"] == "correctness_v3@embedded"


def test_what_cannot_be_done_is_refused(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    for options, message in (
        (("--to", "nobody"), "'nobody' is not a judge"),
        (("--to", "answer_v1@embedded"), "cannot judge"),
        (("--to", "correctness_v1@embedded", "--margin", "0"), "--margin must be above 0"),
        (("--to", "correctness_v1@embedded", "--col", "question=q"), "--col question=q without --on"),
        (
            ("--to", "correctness_v1@embedded", "--on", nameless(workspace_dir)),
            "name the column with --col reference=",
        ),
        (
            ("--to", "correctness_v1@embedded", "-o", "no/new.lock.json"),
            "name a file in a folder that is there",
        ),
    ):
        ran = judgecal("migrate", "--lock", lock, *options)
        assert (ran.code, ran.out, message in ran.err) == (2, "", True), ran.err
    items = workspace_dir / "gold" / "starter" / "items.jsonl"
    items.write_text(items.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    ran = judgecal("migrate", "--lock", lock, "--to", "correctness_v1@embedded")
    assert (ran.code, "was locked on starter" in ran.err) == (2, True)
    assert not (workspace_dir / "experiments").exists()


def test_rows_that_decide_cost_no_look_at_test(judgecal: Run, workspace_dir: Path, lock: Path) -> None:
    """Without a label: as neither verdict differs, none can lose the margin; test stays sealed."""
    command = (
        "migrate",
        "--lock",
        lock,
        "--to",
        "correctness_v1@embedded",
        "--on",
        production(workspace_dir),
    )
    ran = judgecal(*command, *COLUMNS, "--margin", "0.25", "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["decision"], result["decided_by"]) == (0, "pass", "rows")
    assert "if good and bad answers are as common as in the gold set" in result["why"]
    assert (result["difference"]["value"], result["locked"], result["test_looks"]) == (None, {}, 0)
    assert result["differ"]["share"]["value"] == 0.0 and result["differ"]["worst_loss"]["high"] < 0.25
    assert not (workspace_dir / "experiments" / "test_looks.jsonl").exists()
    told = judgecal(*command, *COLUMNS, "--labels", "starter")
    assert told.code == 2 and "drawn with a recorded chance" in told.err
    assert "may take the place" in judgecal("report", result["experiment"]).out


def test_where_nothing_is_decided_labels_come_next(lock: Path, judgecal: Run) -> None:
    command = ("migrate", "--lock", lock, "--to", "correctness_v1@embedded", "--margin", "0.0001", "--json")
    first = json.loads(judgecal(*command).out)
    assert first["decision"] == "inconclusive"
    assert first["headline"]["next"] == "judgecal gold sheet starter -o sheet.csv"
