"""`judgecal select`: who is taken, that test confirms once, and what is locked."""

from __future__ import annotations

import collections
import itertools
import json
import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judgecal.cli import run
from judgecal.errors import InputError
from judgecal.experiment.agreement import constant_entry
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.records import Estimate, Failure, Judgement
from judgecal.selection.confirm import shown_above_floor, whole_calls
from judgecal.selection.decision import Caps, CheapestWithin, MeasuredJudge, choose
from judgecal.selection.lock import load_lock
from judgecal.stats.simultaneous import losses_against_best
from judgecal.workspace import Workspace, find_workspace
from tests.support.command import Run, check_estimate, fresh_workspace, one_object, tree
from tests.support.gold import made_gold, made_items, rated
from tests.support.http import as_answer
from tests.support.made_judge import made_judge
from tests.support.server import StubServer, completion, failing, running

CONTRACT = {"chosen", "metric", "margin", "within_margin", "rejected", "why", "confirmed", "lock"}
SIGNATURES = "correctness_v1,correctness_v2,correctness_v3"
KEY = "sk-not-to-be-seen"
ANY = ("--allow-below-floor", "--replace")  # the judges here are made for the command, and beat no constant
PRICES = {"cheap": 1.0, "dear": 10.0}


def selected(judgecal: Run, *words: Any, code: int = 0) -> dict[str, Any]:
    """What `select` comes to, as its object."""
    return one_object(judgecal("select", *words, "--json"), code=code)


def chosen_of(
    judges: Sequence[MeasuredJudge], n_wrong: dict[str, int], n: int = 200, margin: float = 0.03
) -> CheapestWithin:
    """The choice among judges that are wrong on the first so many of n questions."""
    gold = [place % 2 for place in range(n)]
    verdicts = {
        judge: [1 - label if place < wrong else label for place, label in enumerate(gold)]
        for judge, wrong in n_wrong.items()
    }
    losses = losses_against_best(gold, verdicts, scale="binary", metric="accuracy", margin=margin)
    return choose(judges, losses, margin=margin, metric="accuracy")


# The choice

HARDLY = "; more labels would hardly show that one that costs no more is as good"


def test_the_cheapest_that_is_shown_to_lose_little_is_taken() -> None:
    judges = [made_judge("dear", usd_per_1k=9.0), made_judge("mid", usd_per_1k=5.0), made_judge("cheap")]
    n_wrong = {"dear": 0, "mid": 1, "cheap": 20}
    # With c = 1.97 of three judges and one of 200 lost, u = s = 0.005: 0.005 + c^2 u / 2 + c sqrt(s^2 + c^2
    # u^2 / 4)
    # = 0.005 + 0.0097 + 0.0138.
    assert chosen_of(judges, n_wrong, 200).within == ("mid", "dear")
    found = chosen_of(judges, n_wrong, 60)  # all of that times 200 / 60
    assert (found.judge, found.within) == ("dear", ())
    assert "but it may lose the margin of 3 points or more against the truly best" in found.why
    assert found.nearest == "mid" and found.more_questions is not None and found.more_questions > 0
    assert (
        f"mid costs no more and may be as good: about {found.more_questions:,} more labelled questions"
        in found.why
    )


@pytest.mark.parametrize(
    ("more", "words"), [(1, "1 more labelled question in"), (2, "2 more labelled questions in")]
)
def test_how_many_more_questions_would_settle_a_choice(more: int, words: str) -> None:
    by_judge = {
        "dear": SimpleNamespace(loss=0.0, upper=0.01),
        "cheap": SimpleNamespace(loss=0.02, upper=0.05),
    }
    losses: Any = SimpleNamespace(
        by_judge=by_judge, reason=None, n_groups=60, questions_needed=lambda judge, margin: 60 + more
    )
    judges = [made_judge("dear", usd_per_1k=9.0), made_judge("cheap", usd_per_1k=1.0)]
    found = choose(judges, losses, margin=0.03, metric="accuracy")
    assert found.more_questions == more and f"about {words} train and dev" in found.why


def test_an_interval_that_ends_at_the_floor_does_not_lie_above_it() -> None:
    gold = load_gold("starter")
    table = AgreementTable(gold, tuple(item for item in gold.select("open") if item.item_id in gold.labels))
    for metric, inner in (("macro_agreement", 1e-9), ("mae", -1e-9)):
        floor = constant_entry(table, [metric]).as_wrong[metric].value or 0.0
        ends = {0.0: False, inner: True}
        for beyond, shown in ends.items():
            assert shown_above_floor(table, Estimate(floor, floor + beyond, floor + beyond), metric) is shown


def test_a_cap_on_cost_is_finite() -> None:
    Caps(usd_per_1k=0.0).check()
    for usd in (-1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="--max-usd-per-1k must be 0 or more and finite"):
            Caps(usd_per_1k=usd).check()


def test_judges_as_good_as_the_best_are_ranked_by_cost_then_latency_then_name() -> None:
    same = {"c": 0, "b": 0, "a": 0}
    assert chosen_of([made_judge(name) for name in "cba"], same).within == ("a", "b", "c")
    slow = [made_judge("a", p95_s=2.0), made_judge("b", p95_s=None), made_judge("c")]
    assert chosen_of(slow, same).within == ("c", "a", "b")
    unpriced = [
        made_judge("a", usd_per_1k=None),
        made_judge("b", usd_per_1k=99.0),
        made_judge("c", usd_per_1k=0.0),
    ]
    assert chosen_of(unpriced, same).within == ("c", "b", "a")
    few = chosen_of(unpriced, same, 12)  # too few to show anything but that nobody was seen to be better
    assert (few.judge, few.within) == ("c", ())


def test_where_neither_cost_nor_latency_is_known_the_best_is_taken() -> None:
    # `a` is shown to lose less than 3 points (1 of 2,000), but nothing is known that would speak for it.
    unknown = {"usd_per_1k": None, "p95_s": None}
    judges = [made_judge("a", **unknown), made_judge("b", **unknown)]
    choice = chosen_of(judges, {"a": 201, "b": 200}, n=2000)
    assert (choice.judge, choice.within) == ("b", ("b", "a"))


def test_judges_at_one_cost_are_told_what_more_questions_would_do() -> None:
    """Recorded judges have no cost: none is cheaper, and none is dearer either."""
    unpriced = [made_judge(name, usd_per_1k=None, p95_s=None) for name in ("a", "b")]
    found = chosen_of(unpriced, {"a": 0, "b": 1}, 60)
    assert found.judge == "a" and found.nearest == "b" and "b costs no more and may be" in found.why
    dearer = [made_judge("a"), made_judge("b", usd_per_1k=2.0)]
    assert chosen_of(dearer, {"a": 0, "b": 1}, 60).why.endswith(HARDLY)


def test_the_only_judge_needs_no_bound() -> None:
    only = chosen_of([made_judge("a")], {"a": 3}, 9)
    assert only.within == ("a",) and only.why == "it is the only judge that may be chosen"


@pytest.mark.parametrize(
    ("cheap_wrong", "n", "why"),
    [
        (1, 30, HARDLY),  # far from significant, and no reason
        (1, 9, "9 groups: fewer than 10 give no bound"),
        (29, 1000, HARDLY),  # more than 10,000 more questions
        (30, 100, HARDLY),  # of the margin: more questions change nothing
    ],
)
def test_where_the_cheap_one_is_not_shown_good_enough_the_best_is_taken(
    cheap_wrong: int, n: int, why: str
) -> None:
    judges = [made_judge("dear", usd_per_1k=9.0), made_judge("cheap")]
    choice = chosen_of(judges, {"dear": 0, "cheap": cheap_wrong}, n)
    assert (choice.judge, choice.more_questions) == ("dear", None) and why in choice.why
    assert ("dear" in choice.within) is (n >= 100)


@pytest.mark.parametrize(
    ("caps", "changes", "why"),
    [
        (Caps(usd_per_1k=0.5), {}, "its cost is 1 USD per 1,000 judgements, and the cap is 0.5"),
        (Caps(usd_per_1k=0.5), {"usd_per_1k": None}, "nobody knows its cost"),
        (Caps(usd_per_1k=1.0), {}, None),
        (Caps(usd_per_1k=0.0), {"usd_per_1k": 0.0}, None),
        (Caps(1.0), {"n_unscored": 2}, None),
        (Caps(), {"usd_per_1k": None, "p95_s": None}, None),
    ],
)
def test_caps(caps: Caps, changes: dict[str, Any], why: str | None) -> None:
    found = caps.over(made_judge("a", **changes))
    assert found is None if why is None else why in str(found)


# The command, offline


@pytest.fixture(scope="module")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an experiment on the starter set; made once, as making it takes longer than most tests of
    it."""
    folder = fresh_workspace(tmp_path_factory.mktemp("scored") / "workspace")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JUDGECAL_CACHE_DIR", str(folder.parent / "cache"))
        patched.chdir(folder)
        assert run(["score", "--models", "embedded", "--signatures", SIGNATURES, "--json"]) == 0
    (experiment,) = (one for one in (folder / "experiments").iterdir() if one.is_dir())
    return experiment


@pytest.fixture
def scored(scored_once: Path, workspace_dir: Path) -> str:
    """The slug of that experiment, in the test's own workspace."""
    shutil.copytree(scored_once, workspace_dir / "experiments" / scored_once.name)
    return scored_once.name


def test_the_offline_way_from_score_to_lock(judgecal: Run, scored: str, workspace_dir: Path) -> None:
    before = tree(workspace_dir / "experiments" / scored)
    found = selected(judgecal, scored, *ANY)
    assert found.keys() >= CONTRACT
    # The three give the same verdicts, but on 62 questions: 0.97^62 = 15%.
    assert (found["within_margin"], found["lock"]) == ([], "judge.lock.json")
    assert {found["chosen"]} | {one["judge"] for one in found["rejected"]} == {
        f"{signature}@embedded" for signature in SIGNATURES.split(",")
    }
    for estimate in found["confirmed"].values():
        check_estimate(estimate)
    assert (
        tree(workspace_dir / "experiments" / scored) == before
    )  # compare and report still see what was asked
    gold, lock = load_gold("starter"), load_lock(workspace_dir / "judge.lock.json")
    assert lock.verdicts.keys() == gold.labels.keys() and None not in lock.verdicts.values()
    assert found["confirmed"]["macro_agreement"]["n"] == len(gold.select("test"))
    assert lock.agreement["macro_agreement"].value == found["confirmed"]["macro_agreement"]["value"]
    assert (lock.noise.n_calls, lock.noise.n_items, lock.noise.flip_rate.value) == (3, 220, 0.0)
    assert lock.calls == {item_id: (verdict,) * 3 for item_id, verdict in lock.verdicts.items()}
    assert lock.unscored == 0.0
    assert (lock.metric, lock.margin, lock.gold.split) == ("macro_agreement", 0.03, "test")
    assert lock.calibration is not None and lock.calibration.fitted_on == "train and dev of starter"
    assert (
        lock.calibrated["macro_agreement"].value == found["confirmed_calibrated"]["macro_agreement"]["value"]
    )
    lock.require_gold(gold)
    workspace = Workspace(workspace_dir, workspace_dir / "experiments")
    judge = PromptJudge(found["chosen"], workspace=workspace)
    assert lock.runnable(workspace).fingerprint == judge.fingerprint


def test_the_same_judge_is_the_same_look_whatever_the_margin_and_the_name(
    judgecal: Run, scored: str, workspace_dir: Path
) -> None:
    looks = [selected(judgecal, scored, *ANY)["test_looks"] for _ in range(2)]
    assert looks == [1, 1]
    other = selected(judgecal, scored, *ANY, "--margin", "0.05", "--name", "again")
    assert (other["test_looks"], other["reused"]) == (1, False)
    mae = selected(judgecal, scored, *ANY, "--metric", "mae")
    assert (mae["test_looks"], mae["reused"]) == (2, True)
    assert mae["confirmed"]["mae"]["level"] == pytest.approx(0.99240091)
    assert "reused" in judgecal("select", scored, *ANY, "--metric", "mae").out


def test_nobody_within_the_caps(judgecal: Run, served: StubServer, workspace_dir: Path) -> None:
    slug = score_both(judgecal)
    found = selected(judgecal, slug, *ANY, "--max-usd-per-1k", "0.5", code=1)
    assert found["chosen"] is None and found["lock"] is None and found["within_margin"] == []
    assert found["confirmed"] == {}
    assert len(found["rejected"]) == 2 and "and the cap is 0.5" in found["rejected"][0]["why"]
    assert not (workspace_dir / "judge.lock.json").exists()
    assert not (workspace_dir / "experiments" / "test_looks.jsonl").exists()
    ran = judgecal("select", slug, *ANY, "--max-usd-per-1k", "0.5")
    assert ran.code == 1 and ran.said.startswith("Choose nobody. No judge is within the caps.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--margin", "0"), "--margin must be above 0"),
        (("--margin", "inf"), "and finite"),
        (("--max-usd-per-1k", "nan"), "must be 0 or more and finite"),
        (("--metric", "macro_agreemnt"), "did you mean macro_agreement"),
        (("--metric", "bias"), "ranks nobody"),
        (("-o", "gold"), "is a folder"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything(
    judgecal: Run, scored: str, workspace_dir: Path, words: tuple[str, ...], message: str
) -> None:
    before = tree(workspace_dir)
    ran = judgecal("select", scored, *ANY, *words)
    assert (ran.code, ran.out) == (2, "") and message in ran.err
    assert tree(workspace_dir) == before


def test_a_judge_that_has_changed_is_not_confirmed(judgecal: Run, scored: str, workspace_dir: Path) -> None:
    for path in (workspace_dir / "signatures").glob("correctness_v*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace("correct", "fine"), encoding="utf-8")
    ran = judgecal("select", scored, *ANY)
    assert ran.code == 2 and "has changed since" in ran.err
    assert not (workspace_dir / "experiments" / "test_looks.jsonl").exists()


def test_an_experiment_of_test_alone_cannot_choose(judgecal: Run) -> None:
    slug = one_object(judgecal("score", "--split", "test", "--json"))["experiment"]
    ran = judgecal("select", slug, *ANY)
    assert ran.code == 2 and "no item of train or dev to choose on" in ran.err


def test_a_judge_that_beats_no_constant_is_refused(judgecal: Run, scored: str, workspace_dir: Path) -> None:
    ran = judgecal("select", scored, "--json")
    found = one_object(ran, code=1)
    assert found["chosen"] is None and found["lock"] is None
    assert found["headline"]["kind"] == "none"
    assert "is not shown to agree better with the labels than always saying" in found["why"]
    assert re.search(r"\([+-]\d+\.\d to [+-]\d+\.\d points\)", found["why"])
    assert {one["verdict"] for one in found["judges"]} == {"not above the floor"}
    assert len(found["rejected"]) == 3
    assert not (workspace_dir / "judge.lock.json").exists()
    assert not (workspace_dir / "experiments" / "test_looks.jsonl").exists()
    allowed = selected(judgecal, scored, "--allow-below-floor")
    assert allowed["chosen"] and allowed["lock"]


def test_a_lock_that_is_there_is_not_written_over(judgecal: Run, scored: str, workspace_dir: Path) -> None:
    path = workspace_dir / "judge.lock.json"
    path.write_text("mine")
    ran = judgecal("select", scored, "--allow-below-floor")
    assert (ran.code, path.read_text()) == (2, "mine") and "add --replace to overwrite it" in ran.err
    assert not (workspace_dir / "experiments" / "test_looks.jsonl").exists()
    assert judgecal("select", scored, *ANY).code == 0 and load_lock(path)


# Recorded judgements


@pytest.fixture
def recorded(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> str:
    """A binary set of 40 questions; `sharp` is always right, `lax` passes every half answer."""
    return record(judgecal, workspace_dir, tmp_path, lax=lambda place, kind: kind != "none")


def record(judgecal: Run, workspace_dir: Path, tmp_path: Path, **passes: Callable[[int, str], bool]) -> str:
    """What `agreement` makes of `sharp` and other judges, each with what it passes."""
    rows = made_items(40)
    made_gold(
        workspace_dir / "gold" / "pass",
        rows,
        rated(rows, {"full": 1, "half": 0, "none": 0}),
        scale='kind = "binary"',
    )
    lines = ["item_id,judge,verdict"]
    for place, row in enumerate(rows):
        lines.append(f"{row['item_id']},sharp,{'yes' if row['kind'] == 'full' else 'no'}")
        lines += [
            f"{row['item_id']},{name},{'yes' if own(place, row['kind']) else 'no'}"
            for name, own in passes.items()
        ]
    path = tmp_path / "rec.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert judgecal("agreement", "--gold", "pass", "--judgements", path, "--name", "rec").code == 0
    return "rec"


def test_recorded_judgements_choose_and_confirm_without_a_lock(
    judgecal: Run, recorded: str, workspace_dir: Path
) -> None:
    found = selected(judgecal, recorded)
    assert (found["chosen"], found["lock"], found["within_margin"]) == ("sharp", None, ["sharp"])
    assert "recorded" in found["lock_reason"] and found["rejected"][0]["judge"] == "lax"
    gold = load_gold("pass", workspace=Workspace(workspace_dir, workspace_dir / "experiments"))
    assert found["confirmed"]["macro_agreement"]["value"] == 1.0
    assert found["confirmed"]["macro_agreement"]["n"] == len(gold.select("test"))
    assert found["gold"]["n_items"] == len(gold.select("open")) and found["test_looks"] == 1
    assert not (workspace_dir / "judge.lock.json").exists()
    assert "We wrote no lock: its judgements were recorded" in judgecal("select", recorded).out


def of_splits(judgecal: Run, workspace_dir: Path, tmp_path: Path, test: Callable[[int, bool], bool]) -> str:
    """`leaky` is right on every question of train and dev, and on test gives what is said of the place and
    label."""
    rows = made_items(60)
    people = {"full": 1, "half": 0, "none": 0}
    made_gold(workspace_dir / "gold" / "pass", rows, rated(rows, people), scale='kind = "binary"')
    gold = load_gold("pass", workspace=Workspace(workspace_dir, workspace_dir / "experiments"))
    lines = ["item_id,judge,verdict"]
    for place, item in enumerate(gold.items):
        label = bool(gold.labels[item.item_id])
        passes = test(place, label) if gold.split_of(item.group) == "test" else label
        lines.append(f"{item.item_id},leaky,{'yes' if passes else 'no'}")
    path = tmp_path / "leaky.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert judgecal("agreement", "--gold", "pass", "--judgements", path, "--name", "leaky").code == 0
    return "leaky"


def test_test_refuses_a_judge_that_is_no_better_than_a_constant_there(
    judgecal: Run, workspace_dir: Path, tmp_path: Path
) -> None:
    slug = of_splits(judgecal, workspace_dir, tmp_path, lambda place, label: place % 5 == 0)
    found = selected(judgecal, slug, code=1)
    assert (found["chosen"], found["confirmed_on_test"], found["within_margin"]) == (None, False, [])
    assert found["refused"]["judge"] == "leaky" and found["rejected"] == [found["refused"]]
    than = r"on test it does no better than the best constant \([a-z ]+ \d+\.\d% against \d+\.\d%\)"
    assert re.search(than, found["refused"]["why"])
    assert "--allow-below-floor locks it" in found["why"] and "--allow-unconfirmed locks it" in found["why"]
    assert "have leaked into the prompt" in found["why"]
    ran = judgecal("select", slug)
    assert ran.code == 1 and ran.said.startswith("Do not use leaky: test does not bear out what chose it.")
    assert selected(judgecal, slug, "--allow-below-floor", code=1)["refused"]
    both = selected(judgecal, slug, "--allow-below-floor", "--allow-unconfirmed")
    assert (both["chosen"], both["confirmed_on_test"], both["refused"]) == ("leaky", False, None)


def test_test_refuses_a_judge_that_falls_too_far(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    slug = of_splits(judgecal, workspace_dir, tmp_path, lambda place, label: label != (place % 4 == 0))
    found = selected(judgecal, slug, code=1)
    assert found["why"].startswith("on test its agreement with the labels is ") and "leaked" in found["why"]
    assert "--allow-below-floor" not in found["why"]
    allowed = selected(judgecal, slug, "--allow-unconfirmed")
    assert (allowed["chosen"], allowed["confirmed_on_test"]) == ("leaky", False)
    assert (
        "Test does not confirm it: on test its agreement"
        in judgecal("select", slug, "--allow-unconfirmed").said
    )


def test_recorded_judgements_without_test_items(judgecal: Run, recorded: str, tmp_path: Path) -> None:
    path = tmp_path / "rec.csv"
    assert (
        judgecal("agreement", "--gold", "pass", "--judgements", path, "--split", "dev", "--name", "dev").code
        == 0
    )
    ran = judgecal("select", "dev")
    assert ran.code == 2 and "no test item to confirm on" in ran.err


# Served models


def say(percentage: float) -> str:
    return (
        f"[[ ## correctness_reasoning ## ]]\nSo.\n\n[[ ## correctness_percentage ## ]]\n{percentage:g}\n\n"
        "[[ ## completed ## ]]"
    )


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """Two models that always say 50 and 60, at prices of 1 and 10 USD a million tokens."""
    monkeypatch.setenv("MY_KEY", KEY)
    with running(lambda body: say(50 if "cheap" in body["model"] else 60)) as stub:
        (workspace_dir / "judgecal.toml").write_text(
            "".join(
                f'[models.{name}]\nid = "openai/{name}"\napi_base = "{stub.api_base}"\nkey_env = "MY_KEY"\n'
                f"input_usd_per_1m = {usd}\noutput_usd_per_1m = {usd}\nmax_tokens = 100\ntemperature = 0.0\n"
                for name, usd in PRICES.items()
            )
        )
        yield stub


def score_both(judgecal: Run) -> str:
    return str(one_object(judgecal("score", "--models", "cheap,dear", "--json"))["experiment"])


def test_a_served_judge_is_called_on_test_and_for_its_noise(
    judgecal: Run, served: StubServer, workspace_dir: Path
) -> None:
    slug = score_both(judgecal)
    called, n_test = served.calls, len(load_gold("starter").select("test"))
    plan = selected(judgecal, slug, *ANY, "--dry-run")
    assert (plan["calls"], served.calls) == (n_test + 660, called)
    found = selected(judgecal, slug, *ANY)
    assert served.calls == called + n_test + 660
    assert selected(judgecal, slug, *ANY, "--dry-run")["calls"] == 0
    again = selected(judgecal, slug, *ANY)
    assert served.calls == called + n_test + 660  # an identical select pays for nothing again
    assert again["chosen"] == found["chosen"]
    assert selected(judgecal, slug, *ANY, "--name", "anew", "--dry-run")["calls"] >= 660  # its noise
    text = (workspace_dir / "judge.lock.json").read_text(encoding="utf-8")
    lock = load_lock(workspace_dir / "judge.lock.json")
    assert "api_base" not in text and served.root not in text and KEY not in text
    gold = load_gold("starter")
    counts = collections.Counter(item.system for item in gold.select("test") if item.item_id in gold.labels)
    assert (lock.gold.sampling, dict(lock.gold.systems)) == (gold.card.sampling, dict(counts))
    assert lock.model.model_id == completion("x")["model"]
    assert lock.model.settings == {"temperature": 0.0, "max_tokens": 100, "structured": "auto"}
    for file in (workspace_dir / "experiments").rglob("*"):
        assert file.is_dir() or KEY.encode() not in file.read_bytes()


def test_the_cost_of_a_stored_reply_is_that_of_a_call(judgecal: Run, served: StubServer) -> None:
    score_both(judgecal)
    slug = one_object(judgecal("score", "--models", "cheap,dear", "--name", "again", "--json"))["experiment"]
    found = selected(judgecal, slug, *ANY, "--max-usd-per-1k", "5")
    costs = {one["judge"]: one["usd_per_1k"] for one in found["judges"]}
    # 1000 prompt and 50 completion tokens a call.
    assert costs == {"correctness_v3@cheap": pytest.approx(1.05), "correctness_v3@dear": pytest.approx(10.5)}
    assert found["chosen"] == "correctness_v3@cheap"


def test_noise_of_a_judge_that_flips(judgecal: Run, served: StubServer, workspace_dir: Path) -> None:
    """Every other call says 90, the others 10: of three calls at most two of the three pairs differ; calls
    arrive in no fixed order, and three random ones would differ in half of the pairs. The map was fitted on a
    judge that said the same of everything, so that no difference crosses the lock's cut."""
    slug = score_both(judgecal)
    turn = itertools.count()
    served.script = lambda body: say(90 if next(turn) % 2 else 10)
    assert judgecal("select", slug, *ANY).code == 0
    noise = load_lock(workspace_dir / "judge.lock.json").noise
    assert noise.flip_rate.value == 0.0


def test_a_repeat_with_a_lost_call_is_no_call_of_the_lock() -> None:
    """Of three calls of two items one of the second repeat ran into a timeout; a reply that is no verdict
    counts."""
    gold = load_gold("starter")
    items = gold.items[:2]
    failures = {(0, 1): Failure("timeout", "late"), (1, 2): Failure("parse", "no number")}
    rows = [
        Judgement(item.item_id, item.sha, "j", "f", repeat, None if error else 10.0 * repeat, error=error)
        for place, item in enumerate(items)
        for repeat in range(3)
        for error in (failures.get((place, repeat)),)
    ]
    calls = whole_calls(Verdicts("j", gold.scale, rows), AgreementTable(gold, items, 3))
    assert calls == {items[0].item_id: (0.0, 20.0), items[1].item_id: (0.0, None)}


def test_calls_that_are_lost_leave_no_lock_and_are_made_again(
    judgecal: Run, served: StubServer, workspace_dir: Path
) -> None:
    slug = score_both(judgecal)
    found = selected(judgecal, slug, *ANY, "--budget-usd", "0.02", code=4)
    assert found["lock"] is None and "the same command makes them again" in found["lock_reason"]
    assert found["confirmed"]["macro_agreement"]["n_unscored"] > 0 and found["usd"] <= 0.02
    assert not (workspace_dir / "judge.lock.json").exists()
    whole = selected(judgecal, slug, *ANY)
    assert whole["lock"] and (found["test_looks"], whole["test_looks"]) == (
        0,
        1,
    )  # with calls lost nothing is decided


def test_a_model_that_changed_between_score_and_lock_is_named(judgecal: Run, served: StubServer) -> None:
    slug = score_both(judgecal)
    served.script = lambda body: as_answer(completion(say(50), model="stub-model-2026-02-02"))
    found = selected(judgecal, slug, *ANY)
    assert any("the model under the alias has changed" in note for note in found["notes"])


def test_a_key_that_is_missing_costs_no_look(
    judgecal: Run, served: StubServer, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slug = score_both(judgecal)
    monkeypatch.delenv("MY_KEY")
    ran = judgecal("select", slug, *ANY)
    assert ran.code == 2 and "MY_KEY" in ran.err
    assert not (workspace_dir / "experiments" / "test_looks.jsonl").exists()


def test_a_budget_without_a_price_costs_no_look(
    judgecal: Run, served: StubServer, workspace_dir: Path
) -> None:
    config = workspace_dir / "judgecal.toml"
    free = "".join(line for line in config.read_text().splitlines(keepends=True) if "usd_per_1m" not in line)
    config.write_text(free)
    slug = score_both(judgecal)
    found = selected(judgecal, slug, *ANY, "--dry-run")
    assert found["usd_at_most"] is None
    ran = judgecal("select", slug, *ANY, "--budget-usd", "1")
    assert ran.code == 2 and "price" in ran.err
    assert not (workspace_dir / "experiments" / "test_looks.jsonl").exists()


def test_unparsed_replies_end_in_exit_4_with_a_lock(
    judgecal: Run, served: StubServer, workspace_dir: Path
) -> None:
    slug = score_both(judgecal)
    served.script = lambda body: "I would rather not say."
    found = selected(judgecal, slug, *ANY, "--allow-unconfirmed", code=4)
    assert found["lock"] and found["confirmed"]["macro_agreement"]["n_unscored"] > 0
    noise = json.loads((workspace_dir / "judge.lock.json").read_text(encoding="utf-8"))["noise"]
    assert noise["flip_rate"]["value"] is None and noise["flip_rate"]["reason"]


def test_a_server_that_is_down_is_no_verdict(judgecal: Run, served: StubServer, workspace_dir: Path) -> None:
    slug = score_both(judgecal)
    served.script = lambda body: failing(400, "no such model")
    found = selected(judgecal, slug, *ANY, code=1)
    assert not (workspace_dir / "judge.lock.json").exists()
    assert "96 of 96 test items have no verdict, and count as wrong" in found["refused"]["why"]
    n_test = found["confirmed_on"]["n_items"]
    assert found["confirmed"]["macro_agreement"]["n_unscored"] == n_test
    assert found["confirmed_complete"]["macro_agreement"]["n"] == 0


def test_a_lock_says_on_how_many_items_raters_tie(judgecal: Run, workspace_dir: Path) -> None:
    """What is locked is of the items on which they agree, and a rate that rests on it says so."""
    made = made_items(60)
    ann = rated(made, {"full": 1, "half": 0, "none": 0})
    bob = [(item, "bob", label if n % 4 else 1 - int(label)) for n, (item, _, label) in enumerate(ann)]
    made_gold(workspace_dir / "gold" / "made", made, [*ann, *bob], scale='kind = "binary"')
    gold = load_gold("made", workspace=find_workspace(workspace_dir))
    assert (
        judgecal("score", "--gold", "made", "--judge", "correctness_v3@embedded", "--name", "rec").code == 0
    )
    anyway = ("--allow-unconfirmed", *ANY)
    assert judgecal("select", "rec", *anyway).code == 0
    lock = load_lock(Path("judge.lock.json"))
    test, tied = gold.select("test"), {item.item_id for item in gold.tied}
    assert lock.gold.ties == pytest.approx(sum(item.item_id in tied for item in test) / len(test)) and tied
