"""promptfoo: the JSON or JSON lines that `promptfoo eval --output` writes.

A row is one answer of one provider to one prompt and test. Each assertion is a judge; what a person said in
the viewer stands among the assertions with the type `human`. The row's own `success` and `score` are a
mixture of all of them, and what a person said overrides it: they are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person
from judgecal.exchange.files import Placed, Row, records_of
from judgecal.exchange.texts import (
    item_of,
    number,
    object_in,
    object_of,
    passages_of,
    scalar,
    text_of,
    word,
    word_in,
)
from judgecal.records import Item
from judgecal.tables.json_files import read_json
from judgecal.workspace import shown

# The types of assertion that ask a model.
_GRADED = frozenset({
    "agent-rubric", "answer-relevance", "context-faithfulness", "context-recall", "context-relevance",
    "conversation-relevance", "factuality", "g-eval", "llm-rubric", "model-graded-closedqa",
    "model-graded-factuality", "pi", "search-rubric", "select-best", "trajectory:goal-success",
})  # fmt: skip
_REFERENCE = (
    "reference_answer", "reference", "expected_answer", "expected", "ground_truth", "ideal", "target",
)  # fmt: skip
_CONTEXTS = ("context", "contexts", "documents")
# Type of assertion -> how the reason of one that threw begins: its score of 0 is nobody's.
_THREW = {
    "javascript": "Custom function threw error:", "python": "Python code execution failed:",
    "ruby": "Ruby code execution failed:", "webhook": "Webhook error:", "regex": "Invalid regex pattern:",
}  # fmt: skip


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
        results = object_in(row, "gradingResult").get("componentResults")
        components = export.objects(results, "result of an assertion")
        output = object_in(row, "response").get("output")
        if row.get("failureReason") == 2 or output is None:
            export.skip("a row without an output: the provider failed")
            export.skip("a result of an assertion in such a row", len(components))
            continue
        item = _item(row, output, several=several)
        export.add_item(item)
        test = object_in(row, "testCase")
        grader, asserted = object_in(test, "options").get("provider"), test.get("assert")
        single = _single(components, asserted if isinstance(asserted, list) else [], export)
        assertions: dict[str, list[str]] = {}
        for result, assertion in single:
            name = word_in(assertion, "metric", "type") or "unnamed"
            # Two assertions of one row under one name that ask for other things are two judges.
            wants, wanted = id_of(assertion), assertions.setdefault(name, [])
            if wants not in wanted:
                wanted.append(wants)
            nth = wanted.index(wants) + 1
            score = Score(item.item_id, name if nth == 1 else f"{name} ({nth})", "", None, where=where)
            _take(result, assertion, score, grader, export)


def _rows(file: Path, export: Export) -> Iterator[Placed]:
    if file.suffix.lower() != ".json":
        for record in records_of(file):
            export.count()
            yield record
        return
    value = read_json(file)
    inner = object_in(object_of(value), "results")
    rows = inner.get("results") if inner else value
    if not isinstance(rows, list):
        advice = "write it with promptfoo eval --output"
        raise InputError(f"{shown(file)}: has no list `results.results`: {advice}")
    for place, row in enumerate(export.objects(rows, "row"), start=1):
        yield f"{shown(file)}:row {place}", row


def _prompt(row: Row) -> str:
    return (
        word_in(row, "promptId") or text_of(object_in(row, "prompt").get("raw")) or word_in(row, "promptIdx")
    )


def _item(row: Row, output: Any, *, several: bool) -> Item:
    """The answer of a row; rows of one answer to one prompt, as `--repeat` makes them, are one item."""
    variables = object_in(row, "vars") or object_in(row, "testCase", "vars")
    system = word_in(object_in(row, "provider"), "label", "id") or word_in(row, "provider")
    item = item_of(id_of(variables, _prompt(row), system, output), variables, output)
    fields = {name: text for name, text in item.fields.items() if name not in (*_REFERENCE, *_CONTEXTS)}
    return replace(
        item,
        reference_answers=tuple(item.fields[name] for name in _REFERENCE if name in item.fields)[:1],
        system=f"{system}, prompt {word_in(row, 'promptIdx')}" if several else system or None,
        contexts=passages_of(next((variables[name] for name in _CONTEXTS if name in item.fields), None)),
        fields=fields,
    )


def _single(components: Sequence[Row], asserted: Sequence[Any], export: Export) -> Iterator[tuple[Row, Row]]:
    """Each result with its assertion, once.

    What an assertion is made of stands again behind it. Of a set of assertions its members are taken, of any
    other assertion the whole. Only a judge that failed has no assertion: it is then the one in that place of
    the test.
    """
    place = top = 0
    inner: list[Any] = []  # the assertions of the set whose members follow
    while place < len(components):
        component = components[place]
        assertion, parts = object_in(component, "assertion"), component.get("componentResults")
        n_parts = len(parts) if isinstance(parts, list) else 0
        place += 1
        if inner:
            declared = object_of(inner.pop(0))
        else:
            declared = object_of(asserted[top]) if top < len(asserted) else {}
            top += 1
        if n_parts and not assertion:
            export.skip("a set of assertions, whose members were taken")
            members = declared.get("assert")
            inner = list(members) if isinstance(members, list) else [{}] * n_parts
            continue
        yield component, assertion or declared
        taken = min(n_parts, len(components) - place)
        export.skip("a part of an assertion that was taken whole", taken)
        place += taken


def _take(result: Row, assertion: Row, score: Score, grader: Any, export: Export) -> None:
    """One result, a rating or a judgement; `grader`: the test's own model, for assertions that name none."""
    kind, passed, note = word_in(assertion, "type"), result.get("pass"), word_in(result, "reason")
    if kind == "human":  # the viewer shows what the assertions said
        label, note = passed if isinstance(passed, bool) else None, word_in(result, "comment")
        export.add_rating(replace(score, name="pass", by=person(""), value=label, note=note))
        return
    plain = kind.removeprefix("not-")
    provider = assertion.get("provider") or (grader if plain in _GRADED else None)
    judge = judge_name(score.name, word_in(object_of(provider), "id") or word(provider))
    threw = plain in _THREW and passed is not True and note.startswith(_THREW[plain])
    failed = object_in(result, "metadata").get("graderError") is True or not result.get("assertion") or threw
    value = number(result.get("score"))
    value_or_pass = scalar(passed) if value is None else value
    error = (note or "the grader failed") if failed else None
    export.add_judgement(replace(score, by=judge, value=value_or_pass, note=note, error=error))


FORMAT = ExportFormat(
    "promptfoo",
    lambda begun: any(map(_is_rows, begun)),
    _read,
    "the file of promptfoo eval --output results.json",
)
