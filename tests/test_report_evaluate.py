"""The document of `evaluate`: what may be the best, what nobody knows, and texts that are never run."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from typing import Any

import pytest

from judgecal.artefacts import validated
from judgecal.rag.evaluation.document import evaluate_document
from judgecal.rag.evaluation.result import EvaluateResult, FailedAnswers
from judgecal.records import Headline
from judgecal.report.html import html
from judgecal.report.markdown import markdown
from judgecal.report.terminal import terminal
from tests.support.evaluated import evaluated, measured, questions, swept, without_factors
from tests.support.pages import ATTACK, HOSTILE, Parsed


def headline(result: EvaluateResult) -> Headline:
    return evaluate_document(result).headline


@pytest.fixture(scope="module")
def sweep() -> EvaluateResult:
    return swept()


def test_settings_that_cannot_be_told_apart(sweep: EvaluateResult) -> None:
    """The cheapest and the quickest are named with what they may lose, and none is called best."""
    found = headline(sweep)
    assert found.kind == "tied"
    assert found.sentence.startswith("None of the 5 settings can be told apart from the best")
    because = " ".join([*found.because, *found.more])
    assert "chunk.max=512 is the cheapest (USD 0.100 per 1k), at most 0.18 below the best" in because
    assert f"About {sweep.best.questions_needed:,} questions like these 83 would tell the highest" in because
    assert "10 of 415 answers are unscored and count as 0." in because
    failed, n = sweep.failures[0], sum(one.n for one in sweep.failures)
    lost = f"{n} of 415 answers never came ({sweep.labels[failed.system]}, {failed.kind}: {failed.message})."
    assert lost in found.because
    some = dataclasses.replace(sweep, not_told_apart_from_best=sweep.not_told_apart_from_best[:2])
    assert headline(some).sentence == "2 of 5 settings cannot be told apart from the best."
    assert headline(some).because[0] == "They are the base and chunk.max=256."


def test_a_single_best_only_where_it_is_shown() -> None:
    found = headline(swept(lead=0.28))
    assert found.kind == "use"
    assert found.sentence.startswith("Use ours(chunk.max=256, top_n=1): it is the best of")
    assert found.because[0].startswith("It reaches a total of 0.70 [")
    facts = {fact.says: fact.value for fact in evaluate_document(swept(lead=0.28)).facts}
    (lead,) = [value for says, value in facts.items() if says.startswith("over the runner-up")]
    assert lead.startswith("+0.1")


def test_judges_without_a_verdict_are_the_reason_where_nothing_has_a_score(sweep: EvaluateResult) -> None:
    systems = tuple(
        dataclasses.replace(system, answer_correctness=dataclasses.replace(system.answer_correctness, n=0))
        for system in sweep.systems
    )
    document = evaluate_document(dataclasses.replace(sweep, systems=systems, failures=()))
    assert document.headline.kind == "unread" and not document.facts
    mute = (
        "The judge of faithfulness gave no verdict on 3 answers, by parse: no verdict in the reply: 'maybe'."
    )
    assert document.headline.because[0] == mute
    page = unescape(html(document))
    assert "Answers without a verdict" in page and "Questions without an answer" not in page


def test_few_questions() -> None:
    found = headline(swept(9))
    assert found.kind == "too few"
    assert found.sentence == "Too few questions to decide anything." and "9 questions" in found.because[0]


def test_one_system_and_none_that_answered() -> None:
    one = without_factors(names=("ours",))
    assert headline(one).kind == "measured" and headline(one).because[0].startswith("No other system")
    asked = questions(20)
    unscored: dict[str, Any] = {"answered": None, "correctness": None, "n_unscored": 4}
    failed = [
        dataclasses.replace(row, given=dataclasses.replace(row.given, answer=None), **unscored)
        for row in measured(asked, {"a": 0.5, "b": 0.5})
    ]
    nothing = headline(evaluated(failed, asked))
    assert nothing.kind == "unread" and nothing.next.endswith("--open")


def test_a_judge_without_a_lock_is_said(sweep: EvaluateResult) -> None:
    found = headline(sweep)
    assert (
        "Nobody knows whether the judge of correctness agrees with people: it has no lock." in found.because
    )
    assert "no lock: rag/correctness@embedded of correctness." in found.unknown[0]
    assert found.next.startswith("judgecal gold sheet 3.csv --scale binary -n 60 ")
    people = dataclasses.replace(sweep, questions=dataclasses.replace(sweep.questions, made_by="people"))
    assert headline(people).next == "judgecal score --judge rag/correctness@embedded --gold starter"
    locked = headline(without_factors())
    assert "The judge of correctness agrees with people by 0.82 [0.76, 0.88]." in locked.because + locked.more
    assert "no lock" not in " ".join((*locked.because, *locked.unknown)) and locked.next.endswith("--open")


def test_texts_are_never_run() -> None:
    asked = questions(20, texts=[HOSTILE] * 20)
    rows = measured(asked, {HOSTILE: 0.4, f"{ATTACK} two": 0.9})
    document = evaluate_document(evaluated(rows, asked))
    page = Parsed(html(document))
    assert not page.all("img") and not page.scripts
    for text in (terminal(document, full=True), markdown(document)):
        assert "\x1b" not in text and "\u202e" not in text
    assert ATTACK not in markdown(document)


def test_what_was_stored_is_read_back_as_it_was(sweep: EvaluateResult) -> None:
    again = validated(EvaluateResult, sweep.as_json(), "summary.json")
    assert again == sweep and evaluate_document(again).headline == headline(sweep)
    assert re.search("<strong>None of the 5", sweep._repr_html_())


def test_failures_are_named_and_nothing_is_told_of_test_questions(sweep: EvaluateResult) -> None:
    sealed = (FailedAnswers(sweep.systems[0].system, "server", 3, None),)
    page = unescape(html(evaluate_document(dataclasses.replace(sweep, failures=sealed))))
    assert "(of test questions alone: not shown)" in page
    none = dataclasses.replace(sweep, failures=())
    assert "Questions without an answer" not in html(evaluate_document(none))
