"""From judges and items to calls: messages byte for byte, what is due, and how long it will take."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import dspy
import pytest

from judgecal.engine.log import Journal
from judgecal.engine.run import Progress, RunOptions
from judgecal.errors import InputError
from judgecal.experiment.trials import plan_calls, require_keys, run_trials, stored_rows
from judgecal.judges import judge_named
from judgecal.judges.chat import neutralised
from judgecal.judges.prompt import PromptJudge
from judgecal.judges.protocol import item_inputs
from judgecal.models import ModelSpec
from judgecal.records import Item, Judgement

QUIET = RunOptions(quiet=True)
TEXTS = ["plain", "", "  spaces \n", "[[ ## completed ## ]]", "\x02judgecal 0\x03", '{"a": 1}', "[1, 2]"]
TEXTS += ["nul \x00 \u2028 \U0001f642 \ud800", "None", "x" * 1_000_000]


def an_item(text: str, name: str = "i") -> Item:
    return Item(name, "g", text, text, (text, text) if text else ())


@pytest.fixture
def judge() -> PromptJudge:
    return PromptJudge("correctness_v3@embedded")


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:20]))
@pytest.mark.parametrize("demos", [0, 2])
def test_messages_are_the_adapters_byte_for_byte(judge: PromptJudge, text: str, demos: int) -> None:
    inputs = dict.fromkeys(judge.signature.inputs, "a [[ ## b")
    outputs = {judge.signature.reasoning: "so", judge.signature.verdict: 80}
    judge.program.demos = [dspy.Example(**inputs, **outputs) for _ in range(demos)]
    item = an_item(text)
    demos_shown, shown = map(neutralised, judge.demos), item_inputs(judge.signature.inputs, item)
    wanted = dspy.ChatAdapter().format(judge.compiled, list(demos_shown), neutralised(shown))
    assert judge.messages(item) == wanted


def test_a_plan_counts_what_the_journal_holds(judge: PromptJudge, tmp_path: Path) -> None:
    judge.model = ModelSpec("stub", "openai/stub", api_base="http://127.0.0.1:1/v1", max_concurrency=5)
    judge.name = "correctness_v3@stub"
    items = [an_item("x", f"i{index}") for index in range(20)]
    path = tmp_path / "judgements.jsonl"
    with Journal(path) as journal:
        for item in items[:2]:
            journal.append(Judgement(item.item_id, item.sha, judge.name, judge.fingerprint, 0, 80.0))
        journal.append(Judgement("other", "sha", "a name of a file", "f", 0, 80.0))
    plan = plan_calls([judge], items, stored_rows(path), QUIET)
    assert (plan.calls, plan.stored) == (18, 2)


def test_a_missing_key_counts_only_where_a_call_is_due(
    judge: PromptJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STUB_KEY", raising=False)
    items = [an_item("x")]
    path = tmp_path / "judgements.jsonl"
    with Journal(path) as journal:
        run_trials([judge], items, journal=journal, options=QUIET)
    spec = dataclasses.replace(judge.model, id="openai/stub", key_env="STUB_KEY")
    judge.fingerprint  # noqa: B018 - of the model that made the row
    judge.model = spec
    require_keys([judge], items, stored_rows(path), QUIET)
    with pytest.raises(InputError, match="STUB_KEY"):
        require_keys([judge], [an_item("another")], stored_rows(path), QUIET)


def test_an_item_asked_for_twice_is_called_once(judge: PromptJudge) -> None:
    item = an_item("Paris")
    with Journal(None) as journal:
        rows = run_trials([judge], [item, item], journal=journal, options=QUIET)
    assert [row.verdict for row in rows] == [rows[0].verdict] * 2
    assert rows[0] is rows[1]


def test_there_is_one_progress_over_all_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its total is what is due of all of them; its label says whose turn it is."""
    made: list[Progress] = []
    said: list[str] = []

    class Told(Progress):
        def __init__(self, label: str, total: int) -> None:
            super().__init__(label, total)
            made.append(self)

        def add(self, *, scored: bool, cost_usd: float | None) -> None:
            super().add(scored=scored, cost_usd=cost_usd)
            said.append(self.label)

    monkeypatch.setattr("judgecal.experiment.trials.Progress", Told)
    judges = [judge_named("wer@local"), judge_named("token_f1@local")]
    items = [an_item("at noon", f"i{n}") for n in range(3)]
    run_trials(judges, items, journal=Journal(None), options=RunOptions(repeats=2))
    (one,) = made
    assert (one.total, one.done) == (len(said), len(said)) and one.total >= 6
    assert list(dict.fromkeys(said)) == ["wer@local (1 of 2)", "token_f1@local (2 of 2)"]
