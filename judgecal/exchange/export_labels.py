"""Which of an export's scores are the people's labels, on which scale they are, and what the judges' verdicts
are.

A tool keeps scores under names (correctness, tone) and as whatever was put in: true, "yes", 4, a thumb. One
name is the label of a gold set; its scale is the one that is given, or the one that the labels tell.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.exchange.exports import Export, Score
from judgecal.exchange.texts import Value
from judgecal.goldset.imports import LISTED, labels_scale
from judgecal.goldset.labels import (
    NARROW,
    fitting_scale,
    is_part,
    narrow_labels,
    percent,
    read_label,
    read_verdict,
    says_nothing,
    typed,
    verdict_scale,
)
from judgecal.records import ITEM_UNIT, Rating
from judgecal.scale import FALSE_WORDS, TRUE_WORDS, Label, Scale
from judgecal.tables import read_table

_UP, _DOWN = "yes", "no"
_THUMBS = {
    **dict.fromkeys(
        ("👍", "thumbs_up", "thumbs up", "thumbsup", "thumb_up", "up", "like", "positive", "good"), _UP
    ),
    **dict.fromkeys(
        ("👎", "thumbs_down", "thumbs down", "thumbsdown", "thumb_down", "down", "dislike"), _DOWN
    ),
    **dict.fromkeys(("negative", "bad"), _DOWN),
}
_VOTES = {"1": _UP, "-1": _DOWN}
_MOST_WORDS = 20  # different ones; more, and mostly different, are texts and no labels
_WAITING = "binary"


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """What is known of the labels beside the export; scale, pass mark, mapping and force as for a table."""

    labels: tuple[str, ...] = ()  # the name of the scores; of `ratings` the columns, one a rater (`label`)
    scale: str | None = None  # without one the labels tell it
    pass_at: float | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    force: bool = False
    ratings: str | Path | None = None  # a table of people's labels, for an export without any
    item: str | None = None  # its column of the items' ids, by default `item_id`
    rater: str | None = None  # its column of who gave the one label, by default `rater`
    labels_by: str | None = None  # people (where it is None) or project


@dataclass(frozen=True, slots=True)
class Labels:
    """The people's labels of an export."""

    name: str | None  # None where nobody gave one, and the set waits for them
    scale: Scale
    ratings: Sequence[Rating]
    notes: tuple[str, ...] = ()  # how they were told
    explained: Mapping[str, str] = field(default_factory=dict)  # for the card
    words: Mapping[str, str] = field(default_factory=dict)  # what stands for yes and no, in verdicts too
    mapping: Mapping[str, str] = field(default_factory=dict)  # what the user rewrites, in verdicts too


def cell_of(value: Value) -> str:
    """A score's value as a table would hold it: `true`, `4`, `0.5`, a text; "" for none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "" if value is None else str(value).strip()


def read_labels(export: Export, options: LabelOptions) -> Labels:
    """Take one name's scores as labels; ratings under other names, and verdicts on those, are skipped.

    InputError: several names and none is chosen, a name that nobody rated under, or labels off their scale.
    """
    if options.ratings is not None:
        name: str | None = _rated_apart(export, options)
    else:
        name = _chosen(export, options.labels)
    if name is None:
        scale = labels_scale(options.scale or _WAITING, options.pass_at)
        taken = (
            ""
            if options.scale
            else f"; of those to come the scale is taken as {scale} (--scale says another)"
        )
        return Labels(None, scale, [], (f"The export holds no label of a person{taken}.",))
    _leave_others(export, name)
    as_held = [cell_of(score.value) for score in export.ratings]
    held = set(as_held)
    cells = [options.mapping.get(cell, cell).strip() for cell in as_held]
    told, words, why = scale_told(
        [cell if options.ratings is None else typed(cell) for cell in cells if cell]
    )
    how = f"The labels tell the scale {told}: {why}"
    if name in export.scales:
        told, words = export.scales[name], {}
        how = f"The scale is {told}, as the file declares it"
    if options.scale is None and told is None:
        in_export = options.ratings is None
        whose = f"{export.where}: the labels of {name}" if in_export else f"{options.ratings}: the labels"
        raise InputError(f"{whose} tell no scale ({why}): give --scale")
    scale = labels_scale(options.scale or str(told), options.pass_at)
    words = words if scale.kind == "binary" else {}
    read = (lambda cell: read_label(cell, scale)) if options.ratings is not None else scale.read
    ratings = _ratings(export, [words.get(cell.casefold(), cell) for cell in cells], scale, told, read)
    notes = [f"The label is what people said of {name}."] if options.ratings is None else []
    notes += [] if options.scale else [f"{how} (--scale says another)."]
    unused = [f"{cell}={to}" for cell, to in options.mapping.items() if cell not in held]
    notes += [f"--map {text}: no label holds that" for text in unused]
    explained = _hold_narrow(export, ratings, scale, force=options.force)
    return Labels(name, scale, ratings, tuple(notes), explained, words, options.mapping)


def _chosen(export: Export, wanted: Sequence[str]) -> str | None:
    """The name of the scores that are the label."""
    names = Counter(score.name for score in export.ratings)
    if len(wanted) > 1:
        raise InputError(f"--label {', '.join(wanted)}: a gold set has one label: choose one of them")
    if not names:
        nobody = f"nobody rated anything in {export.where}: --ratings FILE brings labels"
        refuse([f"--label {name}: {nobody}" for name in wanted])
        return None
    raters = {name: len({score.by for score in export.ratings if score.name == name}) for name in names}
    people = {name: f"{n} {'person' if n == 1 else 'people'}" for name, n in raters.items()}
    told = listed([f"{name} ({n:,} by {people[name]})" for name, n in names.most_common()], LISTED)
    if wanted and wanted[0] not in names:
        near = unknown_name("name of people's scores", wanted[0], tuple(names))
        raise InputError(f"{export.where}: --label: {near}; people rated {told}")
    if not wanted and len(names) > 1:
        raise InputError(f"{export.where}: people rated several things: choose one with --label NAME: {told}")
    return wanted[0] if wanted else next(iter(names))


def _leave_others(export: Export, name: str) -> None:
    rated = {score.name for score in export.ratings}
    for other in sorted(rated - {name}):
        n_rated, n_judged = (
            sum(score.name == other for score in scores) for scores in (export.ratings, export.judgements)
        )
        export.skip(f"a rating of {other}, and the label is {name}", n_rated)
        export.skip(f"a judgement of {other}, which people rated apart from {name}", n_judged)
    others = rated - {name}
    export.ratings[:] = [score for score in export.ratings if score.name == name]
    export.judgements[:] = [score for score in export.judgements if score.name not in others]


def _rated_apart(export: Export, options: LabelOptions) -> str:
    """Take the labels of a table of their own; those that the export holds are skipped."""
    export.skip("a rating of the export, and --ratings brings others", len(export.ratings))
    export.ratings.clear()
    table = read_table(str(options.ratings))
    item = options.item or "item_id"
    labels = options.labels or ("label",)
    rater = options.rater or ("rater" if not options.labels and "rater" in table.columns else None)
    if rater is not None and len(labels) > 1:
        raise InputError(
            f"--rater {rater} names who gave the label of each row, so it takes one --label column"
        )
    table.require(item, *labels, *([rater] if rater else []))
    name = "a rating in a table"  # any name: the columns are raters
    for row in table.rows:
        for label in labels:
            by = row.cells[rater].strip() if rater else label
            cell = row.cells[label]
            missing = cell.strip() not in options.mapping and says_nothing(cell, Scale.parse("nominal"))
            value = None if missing else cell
            export.count()
            export.add_rating(
                Score(row.cells[item].strip(), name, by or "unnamed", value, where=table.at(row))
            )
    if not any(score.item_id in export.items for score in export.ratings):
        example = next(iter(export.items), "")
        raise InputError(
            f"{table.where}: no value of column {item} with a label is the id of an item of {export.where} "
            f"(they look like {example!r})"
        )
    export.settle()
    return name


def scale_told(cells: Sequence[str]) -> tuple[str | None, Mapping[str, str], str]:
    """The scale that labels are on, as it is written, what stands for yes and no, and why; or why not."""
    distinct = {cell.casefold() for cell in cells}
    shown = listed(sorted(distinct), 4)
    if not distinct:
        return None, {}, "there is none"
    if distinct <= _THUMBS.keys():
        return "binary", _THUMBS, f"they are {shown}"
    numbers = [number for cell in cells if (number := _number(cell)) is not None]
    if not numbers:
        return _told_by_words(cells, distinct, shown)
    if distinct <= _VOTES.keys() and "-1" in distinct:
        return "binary", _VOTES, f"they are {shown}"
    if len(numbers) < len(cells):
        if distinct <= TRUE_WORDS | FALSE_WORDS:
            return "binary", {}, f"they are {shown}"
        words_too = sorted({cell for cell in cells if _number(cell) is None})
        none = shlex.quote(f"{words_too[0]}=")
        return None, {}, f"numbers and, among them, {listed(words_too, 3)}; --map {none} makes one no label"
    span = f"{min(numbers):g} to {max(numbers):g}" if len(distinct) > 1 else f"all {shown}"
    if any(cell.endswith("%") for cell in cells):
        return "percentage", {}, f"they are percentages, {span}"
    fitting = fitting_scale(numbers)
    try:
        labels_scale(fitting, None)
    except InputError:  # a single number below 0
        return None, {}, f"they are {span}"
    return fitting, {}, f"they are {span}"


def _told_by_words(
    cells: Sequence[str], distinct: set[str], shown: str
) -> tuple[str | None, Mapping[str, str], str]:
    if distinct <= TRUE_WORDS | FALSE_WORDS:
        return "binary", {}, f"they are {shown}"
    if any(map(is_part, cells)):
        return None, {}, f"they are parts of a whole: {shown}"
    if len(distinct) > _MOST_WORDS and len(distinct) > len(cells) / 2:
        return None, {}, f"{len(distinct):,} different texts"
    return "nominal", {}, f"they are words: {shown}"


def _number(cell: str) -> float | None:
    try:
        number = float(cell.removesuffix("%"))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _ratings(
    export: Export, cells: Sequence[str], scale: Scale, told: str | None, read: Callable[[str], Label]
) -> list[Rating]:
    """The labels as `read` reads a cell; those that are off the scale are one problem a value."""
    ratings: list[Rating] = []
    off: dict[str, list[str]] = {}
    why: dict[str, str] = {}
    kept: list[Score] = []
    for score, cell in zip(export.ratings, cells, strict=True):
        if not cell:
            export.skip("a rating that --map makes none")
            continue
        kept.append(score)
        try:
            label = read(cell)
        except (ValueError, OverflowError) as error:
            off.setdefault(cell, []).append(score.where or export.where)
            why[cell] = str(error)
            continue
        label = percent(label) if scale.from_fraction and isinstance(label, float) else label
        ratings.append(Rating(score.item_id, score.by, label, score.note.strip() or None, score.saw_draft))
    export.ratings[:] = kept
    problems = [f"{at[0]}: label {cell!r} of {len(at):,}: {why[cell]}" for cell, at in off.items()]
    fits = f"--scale {told} fits them all, or " if told and str(told) != str(scale) else ""
    refuse(problems + [f"{export.where}: {fits}give --map FROM=TO for them"] * bool(problems), most=LISTED)
    return ratings


def _hold_narrow(export: Export, ratings: Iterable[Rating], scale: Scale, *, force: bool) -> dict[str, str]:
    """Refuse labels in a small part of their scale, as an import of a table does."""
    labels = [rating.label for rating in ratings if isinstance(rating.label, float)]
    narrow = narrow_labels(labels, scale)
    if narrow and not (force or scale.from_fraction):
        raise InputError(f"{export.where}: {narrow}: give --scale so, or --force if it is right as it is")
    if not narrow:
        return {}
    return {NARROW: "the import was told that the scale is right" if force else "they are fractions"}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What judges said, as `agreement` reads it."""

    rows: Sequence[Mapping[str, object]]
    unscored: Mapping[str, int]  # by judge, how many of the rows have no verdict
    scales: Mapping[str, str]  # by judge, the scale that the others are read on


def read_verdicts(export: Export, labels: Labels) -> Verdicts:
    """The judgements by judge, but for judges whose verdicts cannot be read on the people's scale."""
    nominal = {str(rating.label) for rating in labels.ratings} if labels.scale.kind == "nominal" else ()
    people = dataclasses.replace(labels.scale, from_fraction=False, categories=tuple(sorted(nominal)))
    rows: list[Mapping[str, object]] = []
    kept: list[Score] = []
    unscored: dict[str, int] = {}
    scales: dict[str, str] = {}
    for judge, scores in _by_judge(export.judgements).items():
        alike = {cell_of(score.value).casefold() for score in scores} - {""} <= labels.words.keys()
        words = {**(labels.words if alike else {}), **labels.mapping}
        of_judge = [_verdict_row(score, judge, words) for score in scores]
        cells = [cell_of(row["verdict"]) for row in of_judge]
        scale = verdict_scale(people, cells)
        readable = sum(read_verdict(scale, cell)[0] is not None for cell in cells)
        lost = _why_lost(export, judge, scores, people) if labels.ratings else None
        if labels.ratings and any(cells) and not readable:
            lost = (
                f"a judgement of {judge}, none of whose verdicts can be read beside labels that are {people}"
            )
        if lost is not None:
            export.skip(lost, len(scores))
            continue
        rows += of_judge
        kept += scores
        unscored[judge] = len(scores) - (readable if labels.ratings else sum(map(bool, cells)))
        scales[judge] = "fraction" if scale.from_fraction else str(scale)
    export.judgements[:] = kept
    return Verdicts(rows, unscored, scales)


def _by_judge(scores: Iterable[Score]) -> dict[str, list[Score]]:
    """Scores by judge; one who judged items and single contexts under one name is two."""
    by_judge: dict[str, list[Score]] = {}
    scores = list(scores)
    of_items = {score.by for score in scores if score.unit == ITEM_UNIT}
    for score in scores:
        apart = score.unit != ITEM_UNIT and score.by in of_items
        by_judge.setdefault(f"{score.by} (contexts)" if apart else score.by, []).append(score)
    return by_judge


def _why_lost(export: Export, judge: str, scores: Iterable[Score], people: Scale) -> str | None:
    several = any(
        score.unit != ITEM_UNIT and len(export.items[score.item_id].contexts) > 1 for score in scores
    )
    if people.numeric or not several:
        return None
    return f"a judgement of single contexts by {judge}: its words have no mean over the contexts of an item"


def _verdict_row(score: Score, judge: str, words: Mapping[str, str]) -> dict[str, Value]:
    """A line of judgements.jsonl, its verdict as the tool held it but for what stands for something else."""
    cell = cell_of(score.value)
    verdict: Value = words.get(cell, words.get(cell.casefold(), score.value))
    error = score.error if score.error or verdict not in ("", None) else "--map makes the verdict none"
    row: dict[str, Value] = {
        "item_id": score.item_id,
        "judge": judge,
        "repeat": score.repeat,
        "verdict": verdict,
        "unit": None if score.unit == ITEM_UNIT else score.unit,
        "reasoning": score.note or None,
        "error": error,
        "cost_usd": score.cost_usd,
        "latency_s": score.latency_s,
    }
    return {name: value for name, value in row.items() if name == "verdict" or value is not None}
