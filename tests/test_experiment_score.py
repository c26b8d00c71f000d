"""Experiments: folders, trials and the agreement table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.calls import Reply
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.agreement import Entry, Latency, Tokens, entry, verdict_notes
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment, read_config
from judgecal.experiment.trials import open_journal, plan_calls, run_trials, stored_rows
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.records import Estimate, Failure, Judgement, Result
from judgecal.scale import Label, Scale
from judgecal.workspace import Workspace
from tests.support.command import tree
from tests.support.gold import made_gold, made_items, rated

CONFIG: dict[str, Any] = {
    "command": "score",
    "gold": {"set": "s", "sha256": "0" * 64},
    "split": "open",
    "judges": [
        {"judge": "a@b", "fingerprint": "0" * 16, "model": {"id": "x/y", "api_base": None, "temperature": 0}}
    ],
    "seed": 0,
}


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    """Four questions with three answers, two raters who differ on the half answers, no adjudication."""
    rows = made_items(4)
    ann = rated(rows, {"full": 100, "half": 60, "none": 0})
    bob = [(item_id, "bob", 40 if label == 60 else label) for item_id, _, label in ann]
    path = made_gold(workspace.gold / "four", rows, [*ann, *bob])
    return load_gold(path, workspace=workspace)


def rows_of(gold: GoldSet, verdicts: Sequence[Label | None], **more: Any) -> list[Judgement]:
    """One row for each item of a set; a missing verdict is a reply in prose."""
    prose = Failure("parse", "prose")
    return [
        Judgement(item.item_id, item.sha, "j", "f", 0, v, error=prose if v is None else None, **more)
        for item, v in zip(gold.items, verdicts, strict=True)
    ]


# --- the folder


def test_the_default_slug_is_command_set_and_eight_hex_digits(workspace: Workspace) -> None:
    made = plan_experiment(workspace, CONFIG, out=None)
    assert made.slug.startswith("score-s-") and len(made.slug) == len("score-s-") + 8
    assert int(made.slug[-8:], 16) >= 0
    assert plan_experiment(workspace, dict(CONFIG), out=None).slug == made.slug
    assert plan_experiment(workspace, {**CONFIG, "seed": 1}, out=None).slug != made.slug
    assert not workspace.experiments.exists()


def test_a_configuration_comes_back_from_its_file(workspace: Workspace) -> None:
    made = plan_experiment(workspace, CONFIG, out="mine")
    open_experiment(made)
    stored = read_config(made.folder)
    assert stored["judges"] == [
        {"judge": "a@b", "fingerprint": "0" * 16, "model": {"id": "x/y", "temperature": 0}}
    ]
    before = tree(made.folder)
    open_experiment(plan_experiment(workspace, CONFIG, out="mine"))
    assert tree(made.folder) == before


@pytest.mark.parametrize("out", ["../up", "a/b", "..", ".", ".hidden", "a\\b"])
def test_a_slug_is_one_folder_name(workspace: Workspace, out: str) -> None:
    with pytest.raises(InputError, match="one folder name"):
        plan_experiment(workspace, CONFIG, out=out)


def test_another_configuration_never_meets_the_verdicts(workspace: Workspace) -> None:
    open_experiment(plan_experiment(workspace, CONFIG, out="mine"))
    other = {**CONFIG, "split": "dev", "gold": {**CONFIG["gold"], "sha256": "1" * 64}}
    with pytest.raises(InputError, match=r"another configuration \(it differs in gold, split\)"):
        plan_experiment(workspace, other, out="mine")
    (workspace.experiments / "notes").mkdir()
    (workspace.experiments / "notes" / "a.txt").touch()
    with pytest.raises(InputError, match="is not an experiment"):
        plan_experiment(workspace, CONFIG, out="notes")


@dataclass(frozen=True, slots=True)
class Found(Result):
    """A result with everything that is nested in one."""

    judge: str
    agreement: dict[str, Estimate | None]
    unscored: tuple[int, ...] = ()
    others: tuple[Found, ...] = ()


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    found = Found("j@m", {"kappa": Estimate(0.5, 0.4, 0.6, n=9), "mae": None}, (1, 2), (Found("k@m", {}),))
    experiment = Experiment(tmp_path, {})
    experiment.write_summary(found)
    assert experiment.read_summary(Found) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "did not finish"),
        ("{", "no JSON"),
        ("[]", "must hold a JSON object"),
        ('{"schema": 99}', "schema 99 is newer"),
        ('{"schema": 1, "judge": "j"}', "agreement"),
    ],
)
def test_what_is_no_result_is_one_message(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "summary.json").write_text(text)
    with pytest.raises(InputError, match=said):
        Experiment(tmp_path, {}).read_summary(Found)


# --- the table


def entered(gold: GoldSet, rows: Sequence[Judgement], price: Any = None) -> Entry:
    return entry(Entry, AgreementTable(gold, gold.items), Verdicts("j", gold.scale, rows, price))


def test_an_entry_counts_what_is_missing(gold: GoldSet) -> None:
    # 12 items: 10 verdicts, one unusable reply, one item without any row. The labels are 100, 50, 0 in turn.
    verdicts: list[Label | None] = [100.0, 50.0, 0.0] * 4
    verdicts[0] = None
    found = entered(gold, rows_of(gold, verdicts)[:11])
    assert (found.n, found.n_expected, found.n_unscored) == (10, 12, 2)
    assert found.unscored == {"missing": 1, "parse": 1}
    agreement, as_wrong = found.agreement["mean_agreement"], found.as_wrong["mean_agreement"]
    assert (agreement.value, agreement.n, agreement.n_unscored) == (1.0, 10, 2)
    # The two missing ones have labels 100 and 0: the farthest verdict is a whole range away.
    assert as_wrong.value == pytest.approx(10 / 12)
    assert as_wrong.n == 12


def test_a_stored_reply_costs_what_a_call_would(gold: GoldSet) -> None:
    called = rows_of(
        gold, [50.0] * 12, cost_usd=0.002, latency_s=1.0, prompt_tokens=100, completion_tokens=10
    )
    stored = rows_of(gold, [50.0] * 12, cost_usd=0.0, cached=True, prompt_tokens=200, completion_tokens=10)
    mixed = [*called[:6], *stored[6:]]

    def price(prompt: int | None, completion: int | None) -> float:
        return ((prompt or 0) + 10 * (completion or 0)) * 1e-5  # 200 and 10 tokens: 0.003

    found = entered(gold, mixed, price)
    assert found.usd_per_1k == pytest.approx(1000 * (6 * 0.002 + 6 * 0.003) / 12)
    assert found.latency_s == Latency(1.0, 1.0)  # of the calls that were made
    assert found.tokens == Tokens(1800, 120)
    unpriced = entered(gold, rows_of(gold, [50.0] * 12))
    assert (unpriced.usd_per_1k, unpriced.latency_s) == (None, Latency(None, None))


def test_verdicts_are_laid_out_by_item_and_repeat(gold: GoldSet) -> None:
    first, second = gold.items[:2]
    rows = [
        Judgement(second.item_id, second.sha, "j", "f", 1, 7.0),
        Judgement(first.item_id, first.sha, "j", "f", 0, 5.0),
        Judgement("elsewhere", "", "j", "f", 0, 9.0),
    ]
    verdicts = AgreementTable(gold, (first, second), 2).verdicts(Verdicts("j", gold.scale, rows))
    assert as_lists(verdicts) == [[5.0, None], [None, 7.0]]


@pytest.mark.parametrize(
    ("people", "judge", "note"),
    [
        ("percentage", "percentage", None),
        ("nominal", "nominal", None),
        ("binary", "percentage", "raw verdicts are compared on 0 to 100, cut at 50"),
        ("binary", "ordinal:1:5", "raw verdicts are compared on 1 to 5, cut at 3"),
        ("percentage", "ordinal:0:4", "raw ones are taken onto percentage, ends to ends"),
        ("ordinal:0:4", "ordinal:1:5", "raw ones are taken onto ordinal:0:4, ends to ends"),
    ],
)
def test_another_scale_is_said(people: str, judge: str, note: str | None) -> None:
    notes = verdict_notes(Scale.parse(people), [Verdicts("j", Scale.parse(judge), [])])
    assert notes == ([] if note is None else [f"{judge} verdicts on {people} labels (j): {note}"])


# --- trials


QUIET = RunOptions(quiet=True)


def test_options_that_cannot_be_run_are_listed_together() -> None:
    with pytest.raises(InputError) as caught:
        RunOptions(repeats=0, limit=0, budget_usd=float("nan")).check()
    named = [problem.split()[0] for problem in caught.value.problems]
    assert named == ["--repeats", "--limit", "--budget-usd"]


def test_a_journal_is_resumed_and_planned(gold: GoldSet, workspace: Workspace, tmp_path: Path) -> None:
    judge = PromptJudge("correctness_v3@embedded", workspace=workspace)
    path = tmp_path / "judgements.jsonl"
    with open_journal(path, QUIET) as journal:
        run_trials([judge], gold.items[:5], journal=journal, options=QUIET)
    kept = path.read_bytes()
    stored = stored_rows(path)
    twice = RunOptions(repeats=2, quiet=True)
    plan = plan_calls([judge], gold.items, stored, twice)
    assert (plan.calls, plan.stored, plan.usd_at_most) == (24 - 5, 5, 0.0)
    assert plan.prompt_tokens > 0
    with open_journal(path, QUIET) as journal:
        rows = run_trials([judge], gold.items, journal=journal, options=twice)
    assert [(row.item_id, row.repeat) for row in rows] == [(i.item_id, r) for i in gold.items for r in (0, 1)]
    assert path.read_bytes().startswith(kept)
    assert len(path.read_text().splitlines()) == 24


@pytest.mark.parametrize(
    ("options", "stored"),
    [
        (RunOptions(quiet=True), True),
        (RunOptions(quiet=True, use_cache=False), False),
        (RunOptions(quiet=True, retry_unscored=True), True),
    ],
)
def test_stored_replies_are_used_unless_told_otherwise(
    gold: GoldSet, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, options: RunOptions, stored: bool
) -> None:
    """`--no-cache` must have something to turn off; what it has called for is stored all the same."""
    handed: list[bool] = []

    def run_calls(calls: Sequence[Any], spec: Any, *, record: Any, cache: Any, **_: Any) -> None:
        cache.put("k", Reply("85", "m"))
        handed.append(cache.get("k") is not None)
        for call in calls:
            record(Judgement(*call.key[:2], call.judge, *call.key[2:], 50.0))

    monkeypatch.setattr("judgecal.experiment.trials.run_calls", run_calls)
    judge = PromptJudge("correctness_v3@llama3", workspace=workspace)  # local: it needs no key
    with open_journal(None, options) as journal:
        run_trials([judge], gold.items[:2], journal=journal, options=options)
    assert handed == [stored]


def test_a_judgement_that_is_stored_needs_no_key(gold: GoldSet, workspace: Workspace) -> None:
    judge = PromptJudge("correctness_v3@gpt-4o", workspace=workspace)
    with open_journal(None, QUIET) as journal:
        for item in gold.items[:2]:
            journal.append(Judgement(item.item_id, item.sha, judge.name, judge.fingerprint, 0, 50.0))
        rows = run_trials([judge], gold.items[:2], journal=journal, options=QUIET)
        assert [row.verdict for row in rows] == [50.0, 50.0]
        with pytest.raises(InputError, match="OPENAI_API_KEY"):
            run_trials([judge], gold.items[:3], journal=journal, options=QUIET)
