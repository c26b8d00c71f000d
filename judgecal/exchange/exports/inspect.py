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
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person
from judgecal.exchange.files import Archive, Row, open_archive, outline
from judgecal.exchange.texts import (
    Value,
    object_in,
    object_of,
    objects_of,
    spoken,
    text_of,
    texts_of,
    turns_of,
)
from judgecal.records import Item
from judgecal.tables import read_json
from judgecal.workspace import shown

_HEADERS = ("header.json", "_journal/start.json")
_SAMPLE = re.compile(r"samples/(.*_epoch_\d+)(\.json|/sample\.json)", re.DOTALL)
_ATTACHED = re.compile(r"samples/(.*_epoch_\d+)/attachments/(\d{1,9})\.json", re.DOTALL)
_ATTACHMENT = "attachment://"
_LETTERS: Mapping[Any, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


class _Sample(NamedTuple):
    """A sample of a log: where it stands, its record, and what the log tells of its run."""

    where: str
    record: Row
    run: Row


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
            item, scores = _item(sample), sample.record.get("scores")
            why = ""
            if sample.record.get("error") and not item.answer:
                why, further = "ended in an error", " and has no answer"
            elif sample.record.get("invalidation"):
                why, further = "was declared invalid", ""
            if why:
                export.skip(f"a sample that {why}{further}")
                n_scores = len(scores) if isinstance(scores, dict) else 0
                export.count_skipped(f"a score of a sample that {why}", n_scores)
            else:
                samples.append(sample)
                items.append(item)
    given: list[Score] = []
    words: defaultdict[str, set[Any]] = defaultdict(set)
    for sample, item in zip(samples, export.add_apart(items), strict=True):
        given += _scores(sample, item.item_id, export)
    for score in given:
        if isinstance(score.value, str):
            words[score.name].add(score.value)
    for score in given:
        # A scorer's letters are numbers where it gave no other words.
        if isinstance(score.value, str) and words[score.name] <= _LETTERS.keys():
            score = replace(score, value=_LETTERS[score.value])
        (export.add_rating if score.saw_draft else export.add_judgement)(score)
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


def _run(header: Any) -> Row | None:
    """What a log tells of its run; older ones tell of the scorers beside the results."""
    run = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(run, dict):
        return None
    results = header.get("results")
    scores = objects_of(results.get("scores")) if isinstance(results, dict) else []
    older = [{"name": score.get("name"), "options": score.get("params")} for score in scores]
    return {**run, "scorers": run.get("scorers") or older}


def _archived(archive: Archive, export: Export) -> Iterator[_Sample]:
    header = next((name for name in _HEADERS if name in archive.names), None)
    run = _run(archive.json(header) if header else None)
    if run is None:
        raise InputError(f"{archive.where}: not a log of Inspect: it has no header")
    pieces: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for name in archive.names:
        if match := _ATTACHED.fullmatch(name):
            pieces[match[1]][int(match[2])] = name
    for name in archive.names:
        if match := _SAMPLE.fullmatch(name):
            for record in export.objects([archive.json(name)], "sample"):
                attached = record.get("attachments")
                if match[2] != ".json":  # a sample in pieces; each of its texts goes by its number
                    attached = {}
                    for first, piece in pieces[match[1]].items():
                        texts = archive.json(piece)
                        if isinstance(texts, list):
                            attached |= {str(number): text for number, text in enumerate(texts, start=first)}
                yield _Sample(f"{archive.where}: {match[1]}", _resolved(record, attached), run)


def _resolved(record: Row, attached: Any) -> Row:
    """The record with the texts in place that it refers to, in what is read of it."""
    if not isinstance(attached, dict) or not attached:
        return record

    def resolved(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            return attached.get(value.removeprefix(_ATTACHMENT), value)
        if isinstance(value, dict):
            return {key: resolved(inner) for key, inner in value.items()}
        return [resolved(inner) for inner in value] if isinstance(value, list) else value

    return record | {key: resolved(record.get(key)) for key in ("input", "target", "output", "scores")}


# --- a sample's item and scores


def _item(sample: _Sample) -> Item:
    record = sample.record
    asked, choices, output = record.get("input"), record.get("choices"), record.get("output")
    before, question, _ = spoken(turns_of(asked)) if isinstance(asked, list) else ((), text_of(asked), "")
    listed = enumerate(choices) if isinstance(choices, list) else ()
    options = "\n".join(f"{chr(65 + n)}) {text_of(choice)}" for n, choice in listed)
    reply = output if isinstance(output, dict) else {}
    said = turns_of([choice.get("message") for choice in objects_of(reply.get("choices"))[:1]])
    name = text_of(record.get("id")) or id_of(asked)
    return Item(
        name,
        question or name,
        question,
        text_of(reply.get("completion")) or (said[0].content if said else ""),
        texts_of(record.get("target")),
        system=text_of(sample.run.get("model")) or None,
        conversation=before,
        fields={"choices": options} if options else {},
    )


def _scores(sample: _Sample, item_id: str, export: Export) -> Iterator[Score]:
    """What the scorers gave, and what people made of it, which they saw before."""
    scores = sample.record.get("scores")
    named = scores if isinstance(scores, dict) else {} if scores is None else {"": scores}
    for name, score in named.items():
        if not isinstance(score, dict):
            export.count_skipped("no score, where one should stand", 1)
            continue
        history = objects_of(score.get("history"))
        edits = [given for given in history if isinstance(given.get("provenance"), dict)]
        first = next((given for given in history if given not in edits), None if edits else score)
        where = f"{sample.where}, scorer {name}"
        if first is not None:
            reason = text_of(first.get("reason") or object_in(first, "metadata").get("unscored_reason"))
            note, model = text_of(first.get("explanation")), _model(name, sample.run)
            for part, value in _parts(name, first.get("value"), export):
                error = None
                if reason in ("grader_failed", "scoring_failed") or value is None:  # else the system failed
                    error = ": ".join(filter(None, (reason, note))) or "the scorer gave no value (NaN)"
                judge, verdict = judge_name(part, model), None if error else value
                yield Score(item_id, part, judge, verdict, note, where, error=error)
        for edit in edits:
            for part, value in _parts(name, edit.get("value"), export):
                author, reason = (text_of(edit["provenance"].get(key)) for key in ("author", "reason"))
                if not author:
                    export.skip("an edit without an author")
                elif value == "UNCHANGED":
                    export.skip("an edit that leaves the value as it is")
                else:
                    yield Score(item_id, part, person(author), value, reason, where, saw_draft=True)


def _parts(name: str, value: Any, export: Export) -> list[tuple[str, Value]]:
    """A score by its name, or each value of an object by the name and its own, counted; a list is skipped."""
    parts = (
        {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    )
    export.count(len(parts))
    single = [(part, one) for part, one in parts.items() if not isinstance(one, list | dict)]
    export.skip("a score that is a list of values", len(parts) - len(single))
    return single


def _model(name: str, run: Row) -> str | None:
    """The model that a scorer asks, where it is told; Inspect's own graders ask the role or the system's."""
    options = [
        scorer.get("options") for scorer in objects_of(run.get("scorers")) if scorer.get("name") == name
    ]
    grader = object_of(options[0]).get("model") if options else None
    if grader is None and "model_graded" in name:
        grader = object_in(run, "model_roles").get("grader") or run.get("model")
    models = grader if isinstance(grader, list) else [grader]
    names = (model.get("model") if isinstance(model, dict) else model for model in models)
    return "+".join(model for model in names if isinstance(model, str)) or None


FORMAT = ExportFormat("inspect", _holds, _read, "the .eval or .json files of its log folder")
