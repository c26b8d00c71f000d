"""DeepEval: test runs (`.latest_run_full.json`, `test_run_<time>.json`); every metric is a judge.

A test run holds no label of a person. A metric that is marked flaky decides nothing in DeepEval; what it said
of an answer is a judgement all the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, each_begins, id_of, judge_name
from judgecal.exchange.files import Row
from judgecal.exchange.texts import (
    contexts_of,
    joined,
    number_of,
    objects_of,
    spoken,
    tags_of,
    text_in,
    text_of,
    texts_of,
    turns_of,
    value_of,
)
from judgecal.records import Item
from judgecal.tables import read_json
from judgecal.workspace import shown

_CASES = ("testCases", "conversationalTestCases")
_NUMBERED = re.compile(r"(conversational_)?test_case_\d+|.*\[.*\]", re.DOTALL)
"""Names that DeepEval or pytest gives by the case's position."""


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not any(isinstance(value.get(name), list) for name in _CASES):
        return False
    cases = [case for name in _CASES for case in objects_of(value.get(name))]
    known = {"metricsData", "actualOutput", "turns"}
    return "metricsScores" in value or any(known & case.keys() for case in cases)


def _read(files: Sequence[Path], export: Export) -> None:
    cases = [case for file in files for case in _cases(file, export)]
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for case, item, _ in cases:
        texts[text_in(case, "name")].add(item.sha)
    flaky = alike = 0
    for case, item, where in cases:
        name = text_in(case, "name")
        numbered = not name.strip() or _NUMBERED.fullmatch(name) or len(texts[name]) > 1
        item = replace(item, item_id=id_of(item.sha) if numbered else name)
        export.add_item(item)
        metrics = export.objects(case.get("metricsData"), "metric")
        judges = set()
        for metric in metrics:
            scored, error = text_in(metric, "name", "metric"), text_in(metric, "error")
            judge = judge_name(scored, metric.get("evaluationModel"))
            value = None if error else value_of(metric.get("score"))
            note, cost = text_in(metric, "reason"), number_of(metric.get("evaluationCost"))
            at = f"{where}, metric {scored}"
            score = Score(item.item_id, scored, judge, value, note, at, error=error or None, cost_usd=cost)
            export.add_judgement(score)
            judges.add(judge)
            flaky += metric.get("flaky") is True
        alike += len(judges) < len(metrics)
    if flaky:
        nothing = "which decide nothing in DeepEval"
        export.notes.append(f"{flaky:,} judgements are of metrics marked flaky, {nothing}")
    if alike:
        export.notes.append(
            f"{alike:,} test cases hold metrics of one name and model; they are taken as repeats of one "
            "judge: give metrics that differ names of their own"
        )


def _cases(file: Path, export: Export) -> Iterator[tuple[Row, Item, str]]:
    """The test cases of a run, each as its item without an id; the run's settings are its system."""
    run, where = read_json(file), shown(file)
    if not isinstance(run, dict):
        raise InputError(
            f"{where}: no test run of DeepEval: hand over .latest_run_full.json or test_run_<time>.json"
        )
    settings = run.get("hyperparameters")
    known = sorted(settings.items()) if isinstance(settings, dict) else ()
    simple = [f"{name}={value}" for name, value in known if isinstance(value, str | int | float)]
    for key in _CASES:
        for n, case in enumerate(export.objects(run.get(key), "test case"), start=1):
            item = _conversation(case) if key == _CASES[1] else _single(case)
            item = replace(item, system=", ".join(simple) or None, tags=tags_of(case.get("tags")))
            yield case, item, f"{where}: {key} {n}"


def _single(case: Row) -> Item:
    """`context` is what should have been retrieved, and stands in for what was where only it is there."""
    retrieved, ideal = contexts_of(case.get("retrievalContext")), contexts_of(case.get("context"))
    question = text_of(case.get("input"))
    return Item(
        "",
        question,
        question,
        text_of(case.get("actualOutput")),
        texts_of(text_of(case.get("expectedOutput"))),
        contexts=retrieved or ideal,
        fields={"ideal_context": joined(ideal)} if retrieved and ideal else {},
    )


def _conversation(case: Row) -> Item:
    """A conversation is judged as a whole; its last answer is the answer, and `scenario` a field."""
    before, question, answer = spoken(turns_of(case.get("turns")))
    scenario = text_of(case.get("scenario"))
    return Item(
        "",
        scenario or question,
        question or scenario,
        answer,
        texts_of(text_of(case.get("expectedOutcome"))),
        contexts=contexts_of(case.get("context")),
        conversation=before,
        fields={"scenario": scenario} if scenario else {},
    )


FORMAT = ExportFormat(
    "deepeval", each_begins(_is_run), _read, "test_run_<time>.json or .deepeval/.latest_run_full.json"
)
