"""The document of `answer`: whom to take, the numbers of the command, and texts that are never run."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from judgecal.experiment.stored import find_experiment
from judgecal.rag.answering.document import answer_document
from judgecal.rag.answering.result import AnswerResult, Contaminated, KnownQuestion
from judgecal.report.html import html
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.locks import Served
from tests.support.locks import served as served
from tests.support.pages import ATTACK, HOSTILE, Parsed, check_page, printed_by, told


def test_it_tells_where_the_points_go(judgecal: Run) -> None:
    argv = ["answer", "--models", "embedded", "--limit", "12", "--contexts", "controlled,topk"]
    printed = printed_by(judgecal, *argv)
    average = told(printed["systems"][0]["intervals"]["average_as_wrong"], 1)
    costs = told(printed["decomposition"]["systems"][0]["retrieval"], 1)
    check_page(judgecal, printed, ["systems", "points", "refusals", "notes"], average, costs)


def test_systems_of_recorded_answers(judgecal: Run, served: Served, tmp_path: Path) -> None:
    first = {item.group: item for item in served.script.gold.items}
    rows = [
        {"question": item.question, "answer": answer, "system": system}
        for item in first.values()
        for system, answer in (("right", item.reference_answer), (HOSTILE, "Nothing."))
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = printed_by(judgecal, "answer", "--answers", path, "--limit", "20", "--name", "rec")
    check_page(judgecal, printed, ["systems", "pairs", "refusals", "questions", "notes"])

    result = find_experiment(find_workspace(None), "rec").read_summary(AnswerResult)
    sentence = answer_document(result).headline.sentence
    assert sentence.startswith("Use right: it averages ") and "shown to be above the other one" in sentence
    equal = tuple(dataclasses.replace(pair, decision="cannot tell") for pair in result.comparisons)
    sentence = answer_document(dataclasses.replace(result, comparisons=equal)).headline.sentence
    assert (
        sentence.startswith("Cannot tell whom to use: ") and "is not shown to be above any other" in sentence
    )
    unrated = [dataclasses.replace(one, n=0, n_unscored=one.n_expected) for one in result.systems]
    nobody = answer_document(dataclasses.replace(result, systems=tuple(unrated)))
    assert nobody.headline.sentence == "Cannot tell whom to use: no answer has a rating."
    lost = answer_document(dataclasses.replace(result, systems=(result.systems[0], unrated[1])))
    assert (
        "and no other system has a rating" in lost.headline.sentence and "0.0%" not in lost.headline.sentence
    )
    assert "no rating" in html(lost) and "0.0%" not in html(nobody).partition("<main>")[0]
    by_heart = Contaminated(75.0, 9, 0, (KnownQuestion("q", ATTACK, ("m",)),))
    closed = answer_document(dataclasses.replace(result, context=("none",), contaminated=by_heart))
    told_first = "Leave out 1 of 9 questions: they were answered right (75% or more)"
    assert closed.headline.sentence.startswith(told_first)
    page = html(closed)
    assert 'section id="contaminated"' in page and not Parsed(page).all("img")
