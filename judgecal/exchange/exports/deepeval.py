"""DeepEval: test runs (`.latest_run_full.json`, `test_run_<time>.json`); every metric is a judge.

A test run holds no label of a person. A metric that is marked flaky decides nothing in DeepEval; what it said
of an answer is a judgement all the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name
from judgecal.exchange.texts import (
    contexts_of,
    field_of,
    number_of,
    objects_of,
    spoken,
    tags_of,
    text_of,
    turns_of,
    value_of,
)
from judgecal.records import Item
from judgecal.tables import outline, read_json
from judgecal.workspace import shown

_CASES = ("testCases", "conversationalTestCases")
_NUMBERED = re.compile(r"(conversational_)?test_case_\d+|.*\[.*\]", re.DOTALL)
"""Names that DeepEval or pytest gives by the case's position."""


def _holds(files: Sequence[Path]) -> bool:
    return bool(files) and all(_is_run(outline(file)) for file in files)


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not any(isinstance(value.get(name), list) for name in _CASES):
        return False
    cases = [case for name in _CASES for case in objects_of(value.get(name))]
    known = {"metricsData", "actualOutput", "turns"}
    return "metricsScores" in value or any(known & case.keys() for case in cases)


def _read(files: Sequence[Path], export: Export) -> None:
    cases = [case for file in files for case in _cases(file, export)]
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for record, item, _ in cases:
        texts[text_of(record.get("name"))].add(item.sha)
    flaky, alike = 0, 0
    for record, item, where in cases:
        name = text_of(record.get("name"))
        numbered = not name.strip() or _NUMBERED.fullmatch(name) or len(texts[name]) > 1
        item = replace(item, item_id=id_of(item.sha) if numbered else name)
        export.add_item(item)
        metrics = export.objects(record.get("metricsData"), "metric")
        judged = [_judgement(metric, item.item_id, where) for metric in metrics]
        for score in judged:
            export.add_judgement(score)
        flaky += sum(metric.get("flaky") is True for metric in metrics)
        alike += len({score.by for score in judged}) < len(judged)
    if flaky:
        nothing = "which decide nothing in DeepEval"
        export.notes.append(f"{flaky:,} judgements are of metrics marked flaky, {nothing}")
    if alike:
        export.notes.append(
            f"{alike:,} test cases hold metrics of one name and model; they are taken as repeats of one "
            "judge: give metrics that differ names of their own"
        )


def _cases(file: Path, export: Export) -> Iterator[tuple[dict[str, Any], Item, str]]:
    """The test cases of a run, each as its item without an id."""
    run, where = read_json(file), shown(file)
    if not isinstance(run, dict):
        raise InputError(
            f"{where}: no test run of DeepEval: hand over .latest_run_full.json or test_run_<time>.json"
        )
    system = _system(run.get("hyperparameters"))
    for key in _CASES:
        for n, case in enumerate(export.objects(run.get(key), "test case"), start=1):
            item = _conversation(case) if key == _CASES[1] else _single(case)
            yield case, replace(item, system=system, tags=tags_of(case.get("tags"))), f"{where}: {key} {n}"


def _single(case: Mapping[str, Any]) -> Item:
    """`context` is what should have been retrieved, and stands in for what was where only it is there."""
    retrieved, ideal = contexts_of(case.get("retrievalContext")), contexts_of(case.get("context"))
    fields = {"ideal_context": "\n\n".join(one.text for one in ideal)} if retrieved and ideal else {}
    question, reference = text_of(case.get("input")), text_of(case.get("expectedOutput"))
    return Item(
        "",
        question,
        question,
        text_of(case.get("actualOutput")),
        (reference,) if reference else (),
        contexts=retrieved or ideal,
        fields=fields,
    )


def _conversation(case: Mapping[str, Any]) -> Item:
    """A conversation is judged as a whole; its last answer is the answer, and `scenario` a field."""
    before, question, answer = spoken(turns_of(case.get("turns")))
    scenario, outcome = text_of(case.get("scenario")), text_of(case.get("expectedOutcome"))
    return Item(
        "",
        scenario or question,
        question or scenario,
        answer,
        (outcome,) if outcome else (),
        contexts=contexts_of(case.get("context")),
        conversation=before,
        fields={"scenario": scenario} if scenario else {},
    )


def _system(hyperparameters: Any) -> str | None:
    """The settings of the system under test: those of one value, `model=gpt-4o, temperature=0`."""
    known = hyperparameters if isinstance(hyperparameters, dict) else {}
    simple = {name: value for name, value in known.items() if isinstance(value, str | int | float)}
    return ", ".join(f"{name}={value}" for name, value in sorted(simple.items())) or None


def _judgement(metric: Mapping[str, Any], item_id: str, where: str) -> Score:
    name = text_of(field_of(metric, "name", "metric"))
    error = text_of(metric.get("error"))
    return Score(
        item_id,
        name,
        judge_name(name, metric.get("evaluationModel")),
        None if error else value_of(metric.get("score")),
        note=text_of(metric.get("reason")),
        where=f"{where}, metric {name}",
        error=error or None,
        cost_usd=number_of(metric.get("evaluationCost")),
    )


FORMAT = ExportFormat("deepeval", _holds, _read, "test_run_<time>.json or .deepeval/.latest_run_full.json")
