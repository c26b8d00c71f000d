"""Import another evaluation tool's export as a gold set, what judges said beside it for `agreement`."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from judgecal.errors import refuse
from judgecal.exchange.export_labels import LabelOptions, Labels, read_labels, read_verdicts
from judgecal.exchange.exports import Export, read_export
from judgecal.goldset.card import UNKNOWN_LICENCE, Card, RaterCard
from judgecal.goldset.gold_set import CARD
from judgecal.goldset.imports import Imported, keep_card, readme_of, unlabelled
from judgecal.goldset.write import name_problems, write_gold
from judgecal.records import Item
from judgecal.tables.columns import GOLD
from judgecal.workspace import Workspace

_HALF = re.compile("[\ud800-\udfff]")
_WHO = {GOLD: "the adjudicated label"}


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
    people = read_labels(export, options)
    judges = read_verdicts(export, people)
    export.settle()
    source = f"{tool}: {', '.join(file.name for file in files)}"
    fresh = _card(name, source, people, _command(files, name, tool, people, options))
    card, kept = keep_card(fresh, workspace.gold / name / CARD, labels_by=options.labels_by)
    gold = write_gold(
        card,
        map(loadable, export.items.values()),
        people.ratings,
        workspace=workspace,
        replace=replace,
        readme=readme_of(name, came=f"Imported from an export of {tool}"),
        judgements=judges.rows,
    )
    missing = unlabelled(name, len(gold.items), len(gold.labels), len(gold.ratings)) if gold.ratings else []
    counts = Counter(str(row["judge"]) for row in judges.rows)
    return Imported.of(
        gold,
        n_rows=export.n_records,
        skipped=export.skipped,
        notes=(*people.notes, *export.notes, *kept, *missing),
        judges=dict(sorted(counts.items())),
        tool=tool,
        unscored=judges.unscored,
    )


def _well_formed(export: Export) -> None:
    """Names with an unpaired surrogate, which no file can hold, with its code in its place."""
    export.items = {_whole(name): _whole_names(item) for name, item in export.items.items()}
    for scores in (export.ratings, export.judgements):
        scores[:] = [
            dataclasses.replace(score, item_id=_whole(score.item_id), by=_whole(score.by))
            if _HALF.search(score.item_id + score.by)
            else score
            for score in scores
        ]


def _whole_names(item: Item) -> Item:
    documents = [context.document_id or "" for context in item.contexts]
    names = (item.item_id, item.group, item.system or "", *item.tags, *item.reference_documents, *documents)
    if not _HALF.search("".join((*names, *item.fields))):
        return item
    return dataclasses.replace(
        item,
        item_id=_whole(item.item_id),
        group=_whole(item.group),
        system=None if item.system is None else _whole(item.system),
        tags=tuple(map(_whole, item.tags)),
        reference_documents=tuple(map(_whole, item.reference_documents)),
        contexts=tuple(
            dataclasses.replace(context, document_id=context.document_id and _whole(context.document_id))
            for context in item.contexts
        ),
        fields={_whole(name): text for name, text in item.fields.items()},
    )


def _whole(text: str) -> str:
    return _HALF.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def loadable(item: Item) -> Item:
    """An item as a set may hold it: without a question its texts are fields; each has a group."""
    if not item.question.strip() and not item.fields:
        texts = {
            "response": item.answer,
            "transcript": "\n\n".join(f"{turn.role}: {turn.content}" for turn in item.conversation),
            "passages": "\n\n".join(context.text for context in item.contexts),
        }
        item = dataclasses.replace(item, fields={name: text for name, text in texts.items() if text.strip()})
    if item.group.strip():
        return item
    return dataclasses.replace(item, group=item.question.strip() or item.item_id)


def _card(name: str, source: str, people: Labels, command: str) -> Card:
    scale = dataclasses.replace(people.scale, from_fraction=False)
    if scale.kind == "nominal":
        words = sorted({str(rating.label) for rating in people.ratings if rating.label is not None})
        scale = dataclasses.replace(scale, categories=tuple(words))
    raters = sorted({rating.rater for rating in people.ratings})
    return Card(
        name=name,
        scale=scale,
        version="1",
        licence=UNKNOWN_LICENCE,
        source=source,
        made_by=command,
        labels_by="people" if people.ratings else "unknown",
        raters={
            rater: RaterCard(who=f"{_WHO.get(rater, rater)}: {people.name}, in {source}") for rater in raters
        },
        explained=people.explained,
    )


def _command(files: Sequence[Path], name: str, tool: str, people: Labels, options: LabelOptions) -> str:
    """The command that made the set, its scale spelt out."""
    words = ["judgecal", "gold", "import", *(file.name for file in files), "--from", tool, "--as", name]
    columns = (("--item", options.item), ("--rater", options.rater))
    if options.ratings is not None:
        words += ["--ratings", Path(options.ratings).name]
        words += [part for option, value in columns if value for part in (option, value)]
        words += [part for label in options.labels for part in ("--label", label)]
    elif people.name is not None:
        words += ["--label", people.name]
    words += [part for cell, to in options.mapping.items() for part in ("--map", f"{cell}={to}")]
    words += ["--scale", "fraction" if people.scale.from_fraction else str(people.scale)]
    words += [] if options.pass_at is None else ["--pass-at", f"{options.pass_at:g}"]
    words += [] if options.labels_by is None else ["--labels-by", options.labels_by]
    return shlex.join([*words, *["--force"] * options.force])
