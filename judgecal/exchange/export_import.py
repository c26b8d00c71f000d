"""Import another evaluation tool's export as a gold set, what judges said beside it for `agreement`.

A tool keeps scores under names (correctness, tone) and as whatever was put in: true, "yes", 4, a thumb. One
name is the label of a gold set; its scale is the one that is given, or the one that the labels tell.
"""

from __future__ import annotations

import re
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
from judgecal.goldset.imports import LISTED, Imported, keep_card, labels_scale, readme_of, unlabelled
from judgecal.goldset.labels import (
    NARROW,
    LabelMap,
    narrow_labels,
    percent,
    read_label,
    read_verdict,
    says_nothing,
    scale_told,
    typed,
    verdict_scale,
)
from judgecal.goldset.write import name_problems, write_gold
from judgecal.records import ITEM_UNIT, Item, Rating
from judgecal.scale import Scale
from judgecal.tables import read_table
from judgecal.tables.columns import GOLD
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """What is known of the labels beside the export; scale, pass mark, mapping and force as for a table."""

    labels: tuple[str, ...] = ()  # the name of the scores; of `ratings` the columns, one a rater (`label`)
    scale: str | None = None  # without one the labels tell it
    pass_at: float | None = None
    mapping: LabelMap = field(default_factory=lambda: LabelMap({}))
    force: bool = False
    ratings: str | Path | None = None  # a table of people's labels, for an export without any
    item: str | None = None  # its column of the items' ids, by default `item_id`
    rater: str | None = None  # its column of who gave the one label, by default `rater`
    labels_by: str | None = None  # people (where it is None) or project


@dataclass(frozen=True, slots=True)
class _Labels:
    name: str | None  # None where nobody gave one, and the set waits for them
    scale: Scale
    ratings: Sequence[Rating]
    notes: Sequence[str]  # how they were told
    explained: Mapping[str, str] = field(default_factory=dict)  # for the card
    words: Mapping[str, str] = field(default_factory=dict)  # what stands for yes and no, in verdicts too


def import_export(
    files: Sequence[Path],
    *,
    name: str,
    tool: str,
    workspace: Workspace,
    labels: LabelOptions | None = None,
    replace: bool = False,
) -> Imported:
    """Read the files of a tool's export together and write them to `gold/<name>`.

    People's scores under one name are the ratings, each person a rater; judges' scores are kept in the set's
    folder as `--judgements` are. Of what stands in the files each item and each score is counted, and is an
    item, a rating, a judgement, or skipped for a reason. Without a person's label the set waits for labels.
    InputError lists what cannot be read or told; then nothing has been written.
    """
    workspace.require_writable("gold import")
    options = labels or LabelOptions()
    refuse(name_problems(name, workspace=workspace, replace=replace))
    export = read_export(files, tool)
    _well_formed(export)
    people = _read_labels(export, options)
    rows, unscored = _read_verdicts(export, people, options.mapping)
    export.settle()
    source = f"{tool}: {', '.join(file.name for file in files)}"
    fresh = _card(name, source, people, _command(files, name, tool, people, options))
    card, kept = keep_card(fresh, workspace.gold / name / CARD, labels_by=options.labels_by)
    gold = write_gold(
        card,
        map(_loadable, export.items.values()),
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
        notes=(*people.notes, *export.notes, *kept, *missing),
        judges=dict(sorted(Counter(str(row["judge"]) for row in rows).items())),
        tool=tool,
        unscored=unscored,
    )


def _well_formed(export: Export) -> None:
    """In names, an unpaired surrogate, which no file can hold, becomes its code."""

    def whole(text: str) -> str:
        return re.sub("[\ud800-\udfff]", lambda half: f"[U+{ord(half[0]):04X}]", text)

    items = [
        replace(
            item,
            item_id=whole(item.item_id),
            group=whole(item.group),
            system=item.system and whole(item.system),
            tags=tuple(map(whole, item.tags)),
            reference_documents=tuple(map(whole, item.reference_documents)),
            contexts=tuple(
                replace(context, document_id=context.document_id and whole(context.document_id))
                for context in item.contexts
            ),
            fields={whole(name): text for name, text in item.fields.items()},
        )
        for item in export.items.values()
    ]
    export.items = {item.item_id: item for item in items}
    for scores in (export.ratings, export.judgements):
        scores[:] = [replace(score, item_id=whole(score.item_id), by=whole(score.by)) for score in scores]


def _loadable(item: Item) -> Item:
    """An item as a set may hold it: without a question its texts are fields; each has a group."""
    fields = item.fields
    if not item.question.strip() and not fields:
        texts = {
            "response": item.answer,
            "transcript": "\n\n".join(f"{turn.role}: {turn.content}" for turn in item.conversation),
            "passages": "\n\n".join(context.text for context in item.contexts),
        }
        fields = {name: text for name, text in texts.items() if text.strip()}
    group = item.group if item.group.strip() else item.question.strip() or item.item_id
    return replace(item, fields=fields, group=group)


def _card(name: str, source: str, people: _Labels, command: str) -> Card:
    scale = replace(people.scale, from_fraction=False)
    if scale.kind == "nominal":
        words = sorted({str(rating.label) for rating in people.ratings if rating.label is not None})
        scale = replace(scale, categories=tuple(words))
    raters = sorted({rating.rater for rating in people.ratings})
    who = {GOLD: "the adjudicated label"}
    return Card(
        name=name,
        scale=scale,
        version="1",
        licence=UNKNOWN_LICENCE,
        source=source,
        made_by=command,
        labels_by="people" if people.ratings else "unknown",
        raters={rater: RaterCard(f"{who.get(rater, rater)}: {people.name}, in {source}") for rater in raters},
        explained=people.explained,
    )


def _command(files: Sequence[Path], name: str, tool: str, people: _Labels, options: LabelOptions) -> str:
    """The command that made the set, its scale spelt out."""
    words = ["judgecal", "gold", "import", *(file.name for file in files), "--from", tool, "--as", name]
    if options.ratings is not None:
        words += ["--ratings", Path(options.ratings).name]
        columns = {"item": options.item, "rater": options.rater}
        words += [word for part, name in columns.items() if name for word in ("--col", f"{part}={name}")]
        words += [part for label in options.labels for part in ("--label", label)]
    elif people.name is not None:
        words += ["--label", people.name]
    words += [part for cell, to in options.mapping.items() for part in ("--map", f"{cell}={to}")]
    words += ["--scale", "fraction" if people.scale.from_fraction else str(people.scale)]
    words += [] if options.pass_at is None else ["--pass-at", f"{options.pass_at:g}"]
    words += [] if options.labels_by is None else ["--labels-by", options.labels_by]
    return shlex.join([*words, *["--force"] * options.force])


# --- the people's labels


def _cell(value: Value) -> str:
    """A score's value as a table would hold it: `true`, `4`, `0.5`, a text; "" for none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "" if value is None else str(value).strip()


def _read_labels(export: Export, options: LabelOptions) -> _Labels:
    """Take one name's scores as labels; ratings under other names, and verdicts on those, are skipped.

    InputError: several names and none is chosen, a name that nobody rated under, or labels off their scale.
    """
    in_table = options.ratings is not None
    name = _rated_apart(export, options) if in_table else _chosen(export, options.labels)
    if name is None:
        scale = labels_scale(options.scale or "binary", options.pass_at)
        taken = f"; we assume the scale {scale} for labels to come (--scale overrides)"
        return _Labels(
            None, scale, [], [f"The export holds no label of a person{'' if options.scale else taken}."]
        )
    others = {score.name for score in export.ratings} - {name}
    for other in sorted(others):
        n_rated = sum(score.name == other for score in export.ratings)
        n_judged = sum(score.name == other for score in export.judgements)
        export.skip(f"a rating of {other}, and the label is {name}", n_rated)
        export.skip(f"a judgement of {other}, which people rated apart from {name}", n_judged)
    export.ratings[:] = [score for score in export.ratings if score.name == name]
    export.judgements[:] = [score for score in export.judgements if score.name not in others]

    as_held = [_cell(score.value) for score in export.ratings]
    cells = [options.mapping.get(cell, cell).strip() for cell in as_held]
    guessed, words, why = scale_told([typed(cell) if in_table else cell for cell in cells if cell])
    how = f"The labels show the scale {guessed}: {why}"
    if options.scale is None and guessed is None:
        whose = f"{options.ratings}: the labels" if in_table else f"{export.where}: the labels of {name}"
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
            label = read_label(cell, scale) if in_table else scale.read(cell)
        except (ValueError, OverflowError) as error:
            off.setdefault(cell, (str(error), []))[1].append(score.where or export.where)
            continue
        label = percent(label) if scale.from_fraction and isinstance(label, float) else label
        ratings.append(Rating(score.item_id, score.by, label, score.note.strip() or None, score.saw_draft))
    export.ratings[:] = rated
    problems = [f"{at[0]}: label {cell!r} of {len(at):,}: {error}" for cell, (error, at) in off.items()]
    fits = f"--scale {guessed} fits them all, or " if guessed and guessed != str(scale) else ""
    refuse(problems + [f"{export.where}: {fits}give --map FROM=TO for them"] * bool(problems), most=LISTED)

    narrow = narrow_labels([rating.label for rating in ratings if isinstance(rating.label, float)], scale)
    if narrow and not (options.force or scale.from_fraction):
        raise InputError(f"{export.where}: {narrow}: give that --scale, or --force if the scale is right")
    right = "you said that the scale is right" if options.force else "they are fractions"
    notes = [] if in_table else [f"The label is what people said of {name}."]
    notes += [] if options.scale else [f"{how} (--scale says another)."]
    notes += [f"--map {entry}: no label holds that" for entry in options.mapping.unused(as_held)]
    return _Labels(name, scale, ratings, notes, {NARROW: right} if narrow else {}, words)


def _chosen(export: Export, wanted: Sequence[str]) -> str | None:
    if len(wanted) > 1:
        raise InputError(f"--label {', '.join(wanted)}: a gold set has one label: choose one of them")
    names = Counter(score.name for score in export.ratings)
    if not names:
        nobody = f"nobody rated anything in {export.where}: --ratings FILE brings labels"
        refuse([f"--label {name}: {nobody}" for name in wanted])
        return None
    rated = []
    for name, n in names.most_common():
        n_people = len({score.by for score in export.ratings if score.name == name})
        rated.append(f"{name} ({n:,} by {n_people} {'person' if n_people == 1 else 'people'})")
    if wanted and wanted[0] not in names:
        near = unknown_name("name of people's scores", wanted[0], tuple(names))
        raise InputError(f"{export.where}: --label: {near}; people rated {listed(rated, LISTED)}")
    if not wanted and len(names) > 1:
        several = "people rated several things: choose one with --label NAME"
        raise InputError(f"{export.where}: {several}: {listed(rated, LISTED)}")
    return wanted[0] if wanted else next(iter(names))


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
            f"--col rater={rater} names who gave the label of each row, so it takes one --label column"
        )
    table.require(item, *labels, *([rater] if rater else []))
    name = "a rating in a table"  # any name: the columns are raters
    nominal = Scale.parse("nominal")
    for row in table.rows:
        for label in labels:
            by, cell = row.cells[rater].strip() if rater else label, row.cells[label]
            missing = cell.strip() not in options.mapping and says_nothing(cell, nominal)
            value, item_id = None if missing else cell, row.cells[item].strip()
            export.count()
            export.add_rating(Score(item_id, name, by or "unnamed", value, where=table.at(row)))
    if not any(score.item_id in export.items for score in export.ratings):
        example = next(iter(export.items), "")
        raise InputError(
            f"{table.where}: no value of column {item} with a label is the id of an item of {export.where} "
            f"(they look like {example!r})"
        )
    export.settle()
    return name


# --- the judges' verdicts


def _read_verdicts(
    export: Export, labels: _Labels, mapping: Mapping[str, str]
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The judgements, as `agreement` reads them, and by judge how many of them have no verdict.

    Judges whose verdicts cannot be read on the people's scale are skipped.
    """
    nominal = {str(rating.label) for rating in labels.ratings} if labels.scale.kind == "nominal" else ()
    people = replace(labels.scale, from_fraction=False, categories=tuple(sorted(nominal)))
    # Who judged items and single contexts under one name is two judges.
    of_items = {score.by for score in export.judgements if score.unit == ITEM_UNIT}
    by_judge: dict[str, list[Score]] = {}
    for score in export.judgements:
        of_contexts = score.unit != ITEM_UNIT and score.by in of_items
        by_judge.setdefault(f"{score.by} (contexts)" if of_contexts else score.by, []).append(score)
    rows: list[dict[str, Any]] = []
    readable_scores: list[Score] = []
    unscored: dict[str, int] = {}
    for judge, scores in by_judge.items():
        alike = {_cell(score.value).casefold() for score in scores} - {""} <= labels.words.keys()
        words = LabelMap({**(labels.words if alike else {}), **mapping})
        of_judge = [_verdict_row(score, judge, words) for score in scores]
        cells = [_cell(row["verdict"]) for row in of_judge]
        scale = verdict_scale(people, cells)
        readable = sum(read_verdict(scale, cell)[0] is not None for cell in cells)
        lost = ""
        if labels.ratings and any(cells) and not readable:
            lost = (
                f"a judgement of {judge}, none of whose verdicts can be read beside labels that are {people}"
            )
        elif (
            labels.ratings
            and not people.numeric
            and any(
                score.unit != ITEM_UNIT and len(export.items[score.item_id].contexts) > 1 for score in scores
            )
        ):
            no_mean = "its words have no mean over the contexts of an item"
            lost = f"a judgement of single contexts by {judge}: {no_mean}"
        if lost:
            export.skip(lost, len(scores))
            continue
        rows += of_judge
        readable_scores += scores
        unscored[judge] = len(scores) - (readable if labels.ratings else sum(map(bool, cells)))
    export.judgements[:] = readable_scores
    return rows, unscored


def _verdict_row(score: Score, judge: str, words: Mapping[str, str]) -> dict[str, Any]:
    """A line of judgements.jsonl, its verdict as the tool held it but for what stands for something else."""
    cell = _cell(score.value)
    verdict: Value = words.get(cell, score.value)
    row: dict[str, Any] = {
        "item_id": score.item_id,
        "judge": judge,
        "repeat": score.repeat,
        "verdict": verdict,
        "unit": None if score.unit == ITEM_UNIT else score.unit,
        "reasoning": score.note or None,
        "error": score.error if score.error or verdict not in ("", None) else "--map makes the verdict none",
        "cost_usd": score.cost_usd,
    }
    return {name: value for name, value in row.items() if name == "verdict" or value is not None}
