"""promptfoo: the JSON or JSON lines that `promptfoo eval --output` writes.

A row is one answer of one provider to one prompt and test. Each assertion is a judge; what a person said in
the viewer stands among the assertions with the type `human`. The row's own `success` and `score` are a
mixture of all of them, and what a person said overrides it: they are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange import traced
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person, text_of
from judgecal.records import Item
from judgecal.tables.json_files import read_json
from judgecal.tables.outline import outline
from judgecal.workspace import shown

_GRADED = frozenset({
    "agent-rubric", "answer-relevance", "context-faithfulness", "context-recall", "context-relevance",
    "conversation-relevance", "factuality", "g-eval", "llm-rubric", "model-graded-closedqa", "model-graded-factuality",
    "pi", "search-rubric", "select-best", "trajectory:goal-success",
})  # fmt: skip
"""The types of assertion that ask a model."""
_REFERENCE = (
    "reference_answer",
    "reference",
    "expected_answer",
    "expected",
    "ground_truth",
    "ideal",
    "target",
)
_CONTEXTS = ("context", "contexts", "documents")
_THREW = {
    "javascript": "Custom function threw error:", "python": "Python code execution failed:",
    "ruby": "Ruby code execution failed:", "webhook": "Webhook error:", "regex": "Invalid regex pattern:",
}  # fmt: skip
"""Type of assertion -> how the reason of one that threw begins: promptfoo writes a score of 0, which nobody
gave."""
_NO_ANSWER = "a row without an output: the provider failed"


def _holds(files: Sequence[Path]) -> bool:
    return any(_is_rows(outline(file)) for file in files)


def _is_rows(value: Any) -> bool:
    if isinstance(value, dict):
        inner = value.get("results")
        return isinstance(inner, dict) and "results" in inner and bool({"evalId", "config"} & value.keys())
    rows = value if isinstance(value, list) else []
    return any(isinstance(row, dict) and {"testIdx", "promptIdx", "vars"} <= row.keys() for row in rows)


def _read(files: Sequence[Path], export: Export) -> None:
    rows = [row for file in files for row in _rows(file, export)]
    several = len({_prompt(row) for _, row in rows}) > 1
    for where, row in rows:
        grading = traced.object_of(row.get("gradingResult"))
        components = export.objects(grading.get("componentResults"), "result of an assertion")
        item = _item(row, several=several)
        if item is None:
            export.skip(_NO_ANSWER)
            export.skip("a result of an assertion in such a row", len(components))
            continue
        export.add_item(item)
        test = traced.object_of(row.get("testCase"))
        grader = traced.object_of(test.get("options")).get("provider")
        asserted = test.get("assert")
        for one in _single(components, asserted if isinstance(asserted, list) else [], export):
            reason = traced.word(one.result.get("reason"))
            _take(one, Score(item.item_id, one.name, "", None, reason, where), grader, export)


def _rows(file: Path, export: Export) -> Iterator[tuple[str, traced.Row]]:
    if file.suffix.lower() != ".json":
        for where, row in traced.records_of(file):
            export.count()
            yield where, row
        return
    value = read_json(file)
    inner = traced.object_of(traced.object_of(value).get("results"))
    rows = inner.get("results") if inner else value
    if not isinstance(rows, list):
        raise InputError(
            f"{shown(file)}: has no list `results.results`: write it with promptfoo eval --output"
        )
    for place, row in enumerate(export.objects(rows, "row"), start=1):
        yield f"{shown(file)}:row {place}", row


def _prompt(row: traced.Row) -> str:
    return (
        traced.word(row.get("promptId"))
        or text_of(traced.object_of(row.get("prompt")).get("raw"))
        or traced.word(row.get("promptIdx"))
    )


def _item(row: traced.Row, *, several: bool) -> Item | None:
    """The answer of a row; rows of one answer to one prompt, as `--repeat` makes them, are one item."""
    output = traced.object_of(row.get("response")).get("output")
    if row.get("failureReason") == 2 or output is None:
        return None
    variables = traced.object_of(row.get("vars")) or traced.object_of(
        traced.object_of(row.get("testCase")).get("vars")
    )
    provider = row.get("provider")
    names = traced.object_of(provider)
    system = traced.word(names.get("label")) or traced.word(names.get("id")) or traced.word(provider)
    item = traced.item_of(id_of(variables, _prompt(row), system, output), variables, output)
    reference = next((item.fields[name] for name in _REFERENCE if name in item.fields), "")
    passages = next((variables[name] for name in _CONTEXTS if name in item.fields), None)
    return replace(
        item,
        reference_answers=(reference,) if reference else (),
        system=f"{system}, prompt {traced.word(row.get('promptIdx'))}" if several else system or None,
        contexts=traced.passages_of(passages),
        fields={name: text for name, text in item.fields.items() if name not in (*_REFERENCE, *_CONTEXTS)},
    )


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of one assertion; `name` tells several of one row apart."""

    result: traced.Row
    assertion: traced.Row
    name: str


def _single(components: list[traced.Row], asserted: list[Any], export: Export) -> list[_Result]:
    """Each assertion once.

    What an assertion is made of stands again behind it. Of a set of assertions its members are taken, of any
    other assertion the whole. Only a judge that failed has no assertion: it is then the one in that place of
    the test.
    """
    found: list[_Result] = []
    place = top = 0
    inner: list[Any] = []  # the assertions of the set whose members follow
    while place < len(components):
        one = components[place]
        assertion, parts = traced.object_of(one.get("assertion")), one.get("componentResults")
        n_parts = len(parts) if isinstance(parts, list) else 0
        place += 1
        if inner:
            declared = traced.object_of(inner.pop(0))
        else:
            declared = traced.object_of(asserted[top]) if top < len(asserted) else {}
            top += 1
        if n_parts and not assertion:
            export.skip("a set of assertions, whose members were taken")
            members = declared.get("assert")
            inner = list(members) if isinstance(members, list) else [{}] * n_parts
            continue
        found.append(_Result(one, assertion or declared, ""))
        taken = min(n_parts, len(components) - place)
        export.skip("a part of an assertion that was taken whole", taken)
        place += taken
    return _named(found)


def _named(results: list[_Result]) -> list[_Result]:
    """Two assertions of one row under one name that ask for other things are two judges."""
    asked: dict[str, list[str]] = {}
    named = []
    for one in results:
        name = traced.word(one.assertion.get("metric")) or traced.word(one.assertion.get("type")) or "unnamed"
        known, wanted = asked.setdefault(name, []), id_of(one.assertion)
        if wanted not in known:
            known.append(wanted)
        nth = known.index(wanted) + 1
        named.append(replace(one, name=name if nth == 1 else f"{name} ({nth})"))
    return named


def _take(one: _Result, score: Score, grader: Any, export: Export) -> None:
    """One result, as a rating or a judgement; `grader` is the test's own model for assertions that name
    none."""
    result, assertion, passed = one.result, one.assertion, one.result.get("pass")
    kind = traced.word(assertion.get("type"))
    if kind == "human":
        label = passed if isinstance(passed, bool) else None
        said = replace(
            score, name="pass", by=person(""), value=label, note=traced.word(result.get("comment"))
        )
        export.add_rating(replace(said, saw_draft=True))  # the viewer shows what the assertions said
        return
    provider = assertion.get("provider") or (grader if kind.removeprefix("not-") in _GRADED else None)
    model = traced.word(traced.object_of(provider).get("id")) or traced.word(provider)
    failed = traced.object_of(result.get("metadata")).get("graderError") is True or not result.get(
        "assertion"
    )
    threw = _THREW.get(kind.removeprefix("not-"))
    failed = failed or (threw is not None and passed is not True and (score.note or "").startswith(threw))
    value = traced.number(result.get("score"))
    error = (score.note or "the grader failed") if failed else None
    value_or_pass = value if value is not None else traced.scalar(passed)
    export.add_judgement(replace(score, by=judge_name(one.name, model), value=value_or_pass, error=error))


FORMAT = ExportFormat("promptfoo", _holds, _read, "the file of promptfoo eval --output results.json")
