"""Inspect: logs as `.json` or `.eval`; every scorer is a judge, who edited a score a person.

A sample that was run in several epochs is one item where the system answered the same each time, and its
scores are repeats; another answer is another item of the same question. A scorer's `C`, `P`, `I` and `N` are
1, 0.5, 0 and 0.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, apart, id_of, judge_name, person
from judgecal.exchange.texts import Value, objects_of, spoken, text_of, turns_of
from judgecal.records import Item
from judgecal.tables import Archive, open_archive, outline, read_json
from judgecal.workspace import shown

_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/(.*_epoch_\d+)(\.json|/sample\.json)", re.DOTALL)
_ATTACHED = re.compile(r"samples/(.*_epoch_\d+)/attachments/(\d{1,9})\.json", re.DOTALL)
_ATTACHMENT = "attachment://"
_LETTERS: Mapping[Any, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_JUDGES_FAULT = ("grader_failed", "scoring_failed")
_UNCHANGED = "UNCHANGED"


class _Sample(NamedTuple):
    """A sample of a log: where it stands, its record, and the log's header."""

    where: str
    record: dict[str, Any]
    run: Mapping[str, Any]


class _Given(NamedTuple):
    """A score and who gave it: a person, else the judge."""

    score: Score
    by_person: bool


def _holds(files: Sequence[Path]) -> bool:
    return bool(files) and all(map(_is_log, files))


def _is_log(file: Path) -> bool:
    if file.suffix.lower() == ".eval":
        try:
            with open_archive(file) as archive:
                return any(name in archive.names for name in _HEADERS)
        except InputError:
            return False
    begun = outline(file)
    run = begun.get("eval") if isinstance(begun, dict) else None
    return isinstance(run, dict) and "status" in begun and bool({"task", "run_id", "eval_id"} & run.keys())


def _read(files: Sequence[Path], export: Export) -> None:
    samples: list[_Sample] = []
    items: list[Item] = []
    for file in files:
        for sample in _samples(file, export):
            item = _item(sample)
            if sample.record.get("error") and not item.answer:
                export.skip("a sample that ended in an error and has no answer")
                _skip_scores(sample, "a score of a sample that ended in an error", export)
            elif sample.record.get("invalidation"):
                export.skip("a sample that was declared invalid")
                _skip_scores(sample, "a score of a sample that was declared invalid", export)
            else:
                samples.append(sample)
                items.append(item)
    given: list[_Given] = []
    for sample, item in zip(samples, apart(items), strict=True):
        export.add_item(item)
        given += _scores(sample, item.item_id, export)
    _add(given, export)


def _skip_scores(sample: _Sample, reason: str, export: Export) -> None:
    scores = sample.record.get("scores")
    export.count_skipped(reason, len(scores) if isinstance(scores, dict) else 0)


def _add(given: Sequence[_Given], export: Export) -> None:
    """Take the scores; a scorer's letters are numbers where it gave no other words."""
    words: defaultdict[str, set[Any]] = defaultdict(set)
    for score, _ in given:
        if isinstance(score.value, str):
            words[score.name].add(score.value)
    for score, by_person in given:
        if isinstance(score.value, str) and words[score.name] <= _LETTERS.keys():
            score = replace(score, value=_LETTERS[score.value])
        if by_person:
            export.add_rating(score)
        else:
            export.add_judgement(score)
    if export.ratings:
        export.notes.append(
            f"{len(export.ratings):,} labels are edits of a judge's score: who made them saw it, and where "
            "they agreed with it nothing was recorded, so that agreement on these items says little of the "
            "judge"
        )


# --- the samples of a log


def _samples(file: Path, export: Export) -> Iterator[_Sample]:
    """The samples of a log, counted; what is no object is skipped."""
    n_before = export.n_records
    if file.suffix.lower() == ".eval":
        with open_archive(file) as archive:
            yield from _archived(archive, export)
    else:
        log = read_json(file)
        run = _run(log)
        if run is None:
            raise InputError(
                f"{shown(file)}: no log of Inspect: hand over a .json or .eval file of its log folder"
            )
        for n, record in enumerate(export.objects(log.get("samples"), "sample"), start=1):
            yield _Sample(f"{shown(file)}: sample {n}", _resolved(record, record.get("attachments")), run)
    if export.n_records == n_before:
        export.problems.append(
            f"{shown(file)}: the log holds no samples: run the evaluation without --no-log-samples"
        )


def _run(header: Any) -> dict[str, Any] | None:
    """What a log tells of its run; older ones tell of the scorers beside the results."""
    run = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(run, dict):
        return None
    results = header.get("results")
    scores = objects_of(results.get("scores")) if isinstance(results, dict) else []
    older = [{"name": one.get("name"), "options": one.get("params")} for one in scores]
    return {**run, "scorers": run.get("scorers") or older}


def _archived(archive: Archive, export: Export) -> Iterator[_Sample]:
    name = next((name for name in _HEADERS if name in archive.names), None)
    run = _run(archive.json(name) if name else None)
    if run is None:
        raise InputError(f"{archive.where}: no log of Inspect: it has no header")
    pieces: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for name in archive.names:
        if match := _ATTACHED.fullmatch(name):
            pieces[match[1]][int(match[2])] = name
    for name in archive.names:
        if match := _SAMPLE.fullmatch(name):
            for record in export.objects([archive.json(name)], "sample"):
                whole = match[2] == ".json"
                attached = record.get("attachments") if whole else _attached(archive, pieces[match[1]])
                yield _Sample(f"{archive.where}: {match[1]}", _resolved(record, attached), run)


def _attached(archive: Archive, pieces: Mapping[int, str]) -> dict[str, Any]:
    """The texts that a sample in pieces refers to by number; each piece goes by the number of its first."""
    texts: dict[str, Any] = {}
    for first, name in pieces.items():
        piece = archive.json(name)
        texts |= {str(first + n): text for n, text in enumerate(piece if isinstance(piece, list) else [])}
    return texts


def _resolved(record: dict[str, Any], attached: Any) -> dict[str, Any]:
    """The record with the texts in place that it refers to, in what is read of it."""
    if not isinstance(attached, dict) or not attached:
        return record
    return record | {key: _with(record.get(key), attached) for key in ("input", "target", "output", "scores")}


def _with(value: Any, attached: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, dict):
        return {key: _with(inner, attached) for key, inner in value.items()}
    return [_with(inner, attached) for inner in value] if isinstance(value, list) else value


# --- a sample's item and scores


def _item(sample: _Sample) -> Item:
    record = sample.record
    asked, target, choices = record.get("input"), record.get("target"), record.get("choices")
    before, question, _ = spoken(turns_of(asked)) if isinstance(asked, list) else ((), text_of(asked), "")
    options = [
        f"{chr(65 + n)}) {text_of(one)}" for n, one in enumerate(choices if isinstance(choices, list) else [])
    ]
    name = text_of(record.get("id")) or id_of(asked)
    return Item(
        name,
        question or name,
        question,
        _answer(record.get("output")),
        tuple(text for one in (target if isinstance(target, list) else [target]) if (text := text_of(one))),
        system=text_of(sample.run.get("model")) or None,
        conversation=before,
        fields={"choices": "\n".join(options)} if options else {},
    )


def _answer(output: Any) -> str:
    known = output if isinstance(output, dict) else {}
    said = turns_of([one.get("message") for one in objects_of(known.get("choices"))[:1]])
    return text_of(known.get("completion")) or (said[0].content if said else "")


def _scores(sample: _Sample, item_id: str, export: Export) -> Iterator[_Given]:
    """What the scorers gave, and what people made of it."""
    scores = sample.record.get("scores")
    named = scores if isinstance(scores, dict) else {} if scores is None else {"": scores}
    for name, score in named.items():
        if not isinstance(score, dict):
            export.count()
            export.skip("no score, where one should stand")
            continue
        history = objects_of(score.get("history"))
        edits = [one for one in history if isinstance(one.get("provenance"), dict)]
        first = next((one for one in history if one not in edits), None if edits else score)
        where = f"{sample.where}, scorer {name}"
        if first is not None:
            judge = _model(name, sample.run)
            for part, value in _parts(name, first.get("value"), export):
                judged = Score(item_id, part, judge_name(part, judge), value, where=where)
                yield _Given(_judgement(judged, first), by_person=False)
        for edit in edits:
            for part, value in _parts(name, edit.get("value"), export):
                author, reason = (text_of(edit["provenance"].get(key)) for key in ("author", "reason"))
                if not author:
                    export.skip("an edit without an author")
                elif value == _UNCHANGED:
                    export.skip("an edit that leaves the value as it is")
                else:
                    edited = Score(item_id, part, person(author), value, reason, where, saw_draft=True)
                    yield _Given(edited, by_person=True)


def _parts(name: str, value: Any, export: Export) -> list[tuple[str, Value]]:
    """A score by its name, or each value of an object by the name and its own, counted; a list is skipped."""
    parts = {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    export.count(len(parts))
    single = [(part, one) for part, one in parts.items() if not isinstance(one, list | dict)]
    export.skip("a score that is a list of values", len(parts) - len(single))
    return single


def _judgement(score: Score, record: Mapping[str, Any]) -> Score:
    """With the scorer's explanation; without a value where it was not the system that failed."""
    metadata = record.get("metadata")
    older = metadata.get("unscored_reason") if isinstance(metadata, dict) else None
    reason, note = text_of(record.get("reason") or older), text_of(record.get("explanation"))
    if reason in _JUDGES_FAULT or score.value is None:
        error = ": ".join(filter(None, (reason, note))) or "the scorer gave no value (NaN)"
        return replace(score, value=None, error=error, note=note)
    return replace(score, note=note)


def _model(name: str, run: Mapping[str, Any]) -> str | None:
    """The model that a scorer asks, where it is told; Inspect's own graders ask the role or the system's."""
    options = [one.get("options") for one in objects_of(run.get("scorers")) if one.get("name") == name]
    roles = run.get("model_roles")
    grader = options[0].get("model") if options and isinstance(options[0], dict) else None
    if grader is None and "model_graded" in name:
        grader = (roles.get("grader") if isinstance(roles, dict) else None) or run.get("model")
    models = grader if isinstance(grader, list) else [grader]
    names = [one.get("model") if isinstance(one, dict) else one for one in models]
    return "+".join(one for one in names if isinstance(one, str)) or None


FORMAT = ExportFormat("inspect", _holds, _read, "the .eval or .json files of its log folder")
