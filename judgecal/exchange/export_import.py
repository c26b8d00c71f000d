"""Import another evaluation tool's export as a gold set, with judges' scores beside it for `agreement`.

People's scores under one name are the labels; their scale is the one that is given, or that the labels tell.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.exchange.exports import Export, Score, read_export
from judgecal.exchange.texts import Value
from judgecal.goldset.card import UNKNOWN_LICENCE, Card, RaterCard
from judgecal.goldset.gold_set import CARD
from judgecal.goldset.imports import Imported, keep_card, labels_scale, readme_of, unlabelled
from judgecal.goldset.labels import (
    NARROW,
    LabelMap,
    guess_scale,
    narrow_labels,
    percent,
    read_verdict,
    verdict_scale,
)
from judgecal.goldset.write import name_problems, write_gold
from judgecal.records import Rating
from judgecal.scale import Scale
from judgecal.tables.columns import GOLD
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """Options for the labels of an export; scale, pass mark, mapping and force as for a table."""

    labels: tuple[str, ...] = ()  # the name of the people's scores
    scale: str | None = None  # without one the labels tell it
    pass_at: float | None = None
    mapping: LabelMap = field(default_factory=lambda: LabelMap({}))
    force: bool = False
    labels_by: str | None = None  # people (where it is None) or project


@dataclass(frozen=True, slots=True)
class _Labels:
    name: str | None  # None where the export has no label of a person, and the set waits for labels
    scale: Scale
    ratings: Sequence[Rating]
    notes: Sequence[str]  # on the choice of label and scale
    explained: Mapping[str, str] = field(default_factory=dict)  # for the card
    words: Mapping[str, str] = field(default_factory=dict)  # words for yes and no, in verdicts too


def import_export(
    files: Sequence[Path],
    *,
    name: str,
    tool: str,
    workspace: Workspace,
    labels: LabelOptions,
    replace: bool = False,
) -> Imported:
    """Import files of a tool (name) to a Workspace as gold set `name`, by LabelOptions; return Imported.

    People's scores under one name are the ratings. InputError lists every problem, and nothing is written.
    """
    workspace.require_writable("gold import")
    refuse(name_problems(name, workspace=workspace, replace=replace))
    export = read_export(files, tool)
    people = _read_labels(export, labels)
    rows, unscored = _read_verdicts(export, people, labels.mapping)
    export.settle()
    fresh = _card(name, tool, files, people, labels)
    card, kept_notes = keep_card(fresh, workspace.gold / name / CARD, labels_by=labels.labels_by)
    gold = write_gold(
        card,
        export.items.values(),
        people.ratings,
        workspace=workspace,
        replace=replace,
        readme=readme_of(name, came=f"Imported from an export of {tool}"),
        judgements=rows,
    )
    missing = unlabelled(name, len(gold.items), len(gold.labels), len(gold.ratings)) if gold.ratings else []
    return Imported.of(
        gold,
        n_rows=export.n_records,
        skipped=export.skipped,
        notes=(*people.notes, *export.notes, *kept_notes, *missing),
        judges=dict(sorted(Counter(str(row["judge"]) for row in rows).items())),
        tool=tool,
        unscored=unscored,
    )


def _card(name: str, tool: str, files: Sequence[Path], people: _Labels, options: LabelOptions) -> Card:
    """Return the card of the set, with the command that made it and its scale spelt out."""
    scale, names = replace(people.scale, from_fraction=False), [file.name for file in files]
    if scale.kind == "nominal":
        words = sorted({str(rating.label) for rating in people.ratings if rating.label is not None})
        scale = replace(scale, categories=tuple(words))
    command = ["judgecal", "gold", "import", *names, "--from", tool, "--as", name]
    command += [] if people.name is None else ["--label", people.name]
    command += [part for cell, to in options.mapping.items() for part in ("--map", f"{cell}={to}")]
    command += ["--scale", "fraction" if people.scale.from_fraction else str(people.scale)]
    command += [] if options.pass_at is None else ["--pass-at", f"{options.pass_at:g}"]
    command += [] if options.labels_by is None else ["--labels-by", options.labels_by]
    source, who = f"{tool}: {', '.join(names)}", {GOLD: "the adjudicated label"}
    raters = sorted({rating.rater for rating in people.ratings})
    return Card(
        name=name,
        scale=scale,
        version="1",
        licence=UNKNOWN_LICENCE,
        source=source,
        made_by=shlex.join([*command, *["--force"] * options.force]),
        labels_by="people" if people.ratings else "unknown",
        raters={rater: RaterCard(f"{who.get(rater, rater)}: {people.name}, in {source}") for rater in raters},
        explained=people.explained,
    )


# --- the people's labels


def _cell(value: Value) -> str:
    """Return a score's value as a table would hold it: `true`, `4`, `0.5`, a text; "" for none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "" if value is None else str(value).strip()


def _read_labels(export: Export, options: LabelOptions) -> _Labels:
    """Take one name's scores as labels; ratings under other names, and verdicts on those, are skipped."""
    name = _chosen(export, options.labels)
    if name is None:
        scale = labels_scale(options.scale or "binary", options.pass_at)
        assumed = (
            "" if options.scale else f"; we assume the scale {scale} for labels to come (--scale overrides)"
        )
        return _Labels(None, scale, [], [f"The export holds no label of a person{assumed}."])
    others = {score.name for score in export.ratings} - {name}
    for other in sorted(others):
        n_rated = sum(score.name == other for score in export.ratings)
        n_judged = sum(score.name == other for score in export.judgements)
        export.skip(f"a rating of {other}, and the label is {name}", n_rated)
        export.skip(f"a judgement of {other}, which people rated apart from {name}", n_judged)
    export.ratings[:] = [score for score in export.ratings if score.name == name]
    export.judgements[:] = [score for score in export.judgements if score.name not in others]

    stored = [_cell(score.value) for score in export.ratings]
    cells = [options.mapping.get(cell, cell).strip() for cell in stored]
    guessed, words, why = guess_scale([cell for cell in cells if cell])
    if options.scale is None and guessed is None:
        whose = f"{export.where}: the labels of {name}"
        raise InputError(f"{whose} do not tell their scale ({why}): give --scale")
    scale = labels_scale(options.scale or str(guessed), options.pass_at)
    words = words if scale.kind in ("binary", "nominal") else {}
    ratings: list[Rating] = []
    rated: list[Score] = []
    off: dict[str, tuple[str, list[str]]] = {}  # by cell, why it is no label, and where it stands
    for score, cell in zip(export.ratings, cells, strict=True):
        if not cell:
            export.skip("a rating that --map makes none")
            continue
        rated.append(score)
        cell = words.get(cell.casefold(), cell)
        try:
            label = scale.read(cell)
        except (ValueError, OverflowError) as error:
            off.setdefault(cell, (str(error), []))[1].append(score.where or export.where)
            continue
        label = percent(label) if scale.from_fraction and isinstance(label, float) else label
        ratings.append(Rating(score.item_id, score.by, label, score.note.strip() or None))
    export.ratings[:] = rated
    problems = [f"{at[0]}: label {cell!r} of {len(at):,}: {error}" for cell, (error, at) in off.items()]
    fits = f"--scale {guessed} fits them all, or " if guessed and guessed != str(scale) else ""
    refuse(problems + [f"{export.where}: {fits}give --map FROM=TO for them"] * bool(problems))

    narrow = narrow_labels([rating.label for rating in ratings if isinstance(rating.label, float)], scale)
    if narrow and not (options.force or scale.from_fraction):
        raise InputError(f"{export.where}: {narrow}: give that --scale, or --force if the scale is right")
    right = "you said that the scale is right" if options.force else "they are fractions"
    notes = [f"The label is what people said of {name}."]
    notes += [] if options.scale else [f"The labels show the scale {guessed}: {why} (--scale says another)."]
    notes += [f"--map {entry}: no label holds that" for entry in options.mapping.unused(stored)]
    return _Labels(name, scale, ratings, notes, {NARROW: right} if narrow else {}, words)


def _chosen(export: Export, wanted: Sequence[str]) -> str | None:
    """Return the name of the people's scores that are the label; None where people scored nothing."""
    if len(wanted) > 1:
        raise InputError(f"--label {', '.join(wanted)}: a gold set has one label: choose one of them")
    names = Counter(score.name for score in export.ratings)
    if not names:
        refuse([f"--label {name}: nobody rated anything in {export.where}" for name in wanted])
        return None
    rated = [f"{name} ({n:,})" for name, n in names.most_common()]
    if wanted and wanted[0] not in names:
        near = unknown_name("name of people's scores", wanted[0], tuple(names))
        raise InputError(f"{export.where}: --label: {near}; people rated {listed(rated, 50)}")
    if not wanted and len(names) > 1:
        several = "people rated several things: choose one with --label NAME"
        raise InputError(f"{export.where}: {several}: {listed(rated, 50)}")
    return wanted[0] if wanted else next(iter(names))


# --- the judges' verdicts


def _read_verdicts(
    export: Export, labels: _Labels, mapping: Mapping[str, str]
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the judgements as `agreement` reads them, and by judge how many of them have no verdict."""
    nominal = {str(rating.label) for rating in labels.ratings} if labels.scale.kind == "nominal" else ()
    people = replace(labels.scale, from_fraction=False, categories=tuple(sorted(nominal)))
    by_judge: dict[str, list[Score]] = {}
    for score in export.judgements:
        by_judge.setdefault(score.by, []).append(score)
    rows: list[dict[str, Any]] = []
    taken: list[Score] = []
    unscored: dict[str, int] = {}
    for judge, scores in by_judge.items():
        alike = {_cell(score.value).casefold() for score in scores} - {""} <= labels.words.keys()
        words = LabelMap({**(labels.words if alike else {}), **mapping})
        of_judge = [_verdict_row(score, judge, words) for score in scores]
        cells = [_cell(row["verdict"]) for row in of_judge]
        scale = verdict_scale(people, cells)
        readable = sum(read_verdict(scale, cell)[0] is not None for cell in cells)
        if labels.ratings and any(cells) and not readable:
            why = f"none of whose verdicts can be read beside labels that are {people}"
            export.skip(f"a judgement of {judge}, {why}", len(scores))
        else:
            rows += of_judge
            taken += scores
            unscored[judge] = len(scores) - (readable if labels.ratings else sum(map(bool, cells)))
    export.judgements[:] = taken
    return rows, unscored


def _verdict_row(score: Score, judge: str, words: Mapping[str, str]) -> dict[str, Any]:
    """Return a line of judgements.jsonl; its verdict is the tool's, or the word that stands for it."""
    verdict: Value = words.get(_cell(score.value), score.value)
    error = score.error if score.error or verdict not in ("", None) else "--map makes the verdict none"
    row = {"item_id": score.item_id, "judge": judge, "verdict": verdict}
    further = {"reasoning": score.note or None, "error": error}
    return row | {name: value for name, value in further.items() if value is not None}
