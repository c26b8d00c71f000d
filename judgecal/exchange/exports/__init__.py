"""Exports of other evaluation tools: items, people's scores of them, and judges' scores.

One module a tool, found by being here: it offers `FORMAT`, and needs no library of the tool. Whether a score
is a person's or a judge's is told by the source that the tool recorded, never by a name. Each record is
counted, and ends as an item, a rating, a judgement or a skip with its reason.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.exchange.files import Row, outline
from judgecal.exchange.texts import Value, objects, scalar
from judgecal.records import Item, well_formed
from judgecal.workspace import no_such_file, shown

_UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class Score:
    """One score of one item."""

    item_id: str
    name: str  # what was scored, as the tool has it (`correctness`)
    by: str  # a person, or a judge as judgecal prints one (`correctness@gpt-4o`, or the name alone)
    value: Value  # as the tool holds it; None where there is none
    note: str = ""  # the person's comment or the judge's reasoning
    where: str = ""  # where it stands, as messages name it (`scores.csv:12`)
    error: str | None = None  # why a judge has no value


@dataclass
class Export:
    """An export as it is read."""

    tool: str
    where: str
    n_records: int = 0  # records in the files: items, scores, and whatever else could have been either
    items: dict[str, Item] = field(default_factory=dict)
    ratings: list[Score] = field(default_factory=list)
    judgements: list[Score] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)  # how many became nothing, by reason
    notes: list[str] = field(default_factory=list)  # remarks on the reading, for the set's owner
    problems: list[str] = field(default_factory=list)
    _latest: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _judged: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def count(self, n: int = 1) -> None:
        """Count records where they are met, apart from what becomes of them."""
        self.n_records += n

    def skip(self, reason: str, n: int = 1) -> None:
        """Skip a record, or n, that was counted already, for a reason (text)."""
        if n:
            self.skipped[reason] += n

    def count_skipped(self, reason: str, n: int) -> None:
        """Count a number (n) of records as skipped for a reason."""
        self.count(n)
        self.skip(reason, n)

    def objects(self, value: Any, what: str, *, holders: bool = False) -> list[Row]:
        """Return the list of Rows (dicts) in a value, each counted; skip others, as no `what` (text).

        With `holders` the objects hold records and are none themselves: only what is no object is counted.
        """
        values = value if isinstance(value, list) else [] if value is None else [value]
        rows = objects(values)
        self.count(len(values) - len(rows) * holders)
        self.skip(f"no {what}, where one should stand", len(values) - len(rows))
        return rows

    def lack_texts(self, what: str, advice: str) -> None:
        """Add a problem: the export has no `what` (text), so no text to judge; with an advice (text)."""
        self.problems.append(
            f"{self.where}: no {what} among the files, so there is no text to judge: export {advice}, and "
            "hand over both files"
        )

    def add_item(self, item: Item) -> None:
        """Add an Item; skip a second one like it; an id without text or with two texts is a problem."""
        if not item.item_id.strip():
            self.problems.append(f"{self.where}: an item has no id: {item.asked[:60]!r}")
        first = self.items.setdefault(item.item_id, item)
        if first is item:
            return
        self.skip("an item that is there more than once")
        if first.sha != item.sha:
            self.problems.append(f"{self.where}: two items with different texts have the id {item.item_id!r}")

    def add_apart(self, items: Sequence[Item]) -> list[Item]:
        """Add Items, return the list as added: an id with several texts gets 8 digits of each text's sha."""
        texts: defaultdict[str, set[str]] = defaultdict(set)
        for item in items:
            texts[item.item_id].add(item.sha)
        apart = [
            replace(item, item_id=f"{item.item_id}:{item.sha[:8]}") if len(texts[item.item_id]) > 1 else item
            for item in items
        ]
        for item in apart:
            self.add_item(item)
        return apart

    def add_rating(self, score: Score) -> None:
        """Add a person's Score; of two by one person on one item under one name the later call counts."""
        key = (score.item_id, score.name, score.by)
        if scalar(score.value) is None:
            self.skip("a rating without a label")
        elif (place := self._latest.get(key)) is not None:
            self.ratings[place] = score
            self.skip("a rating that the same person gave again later")
        else:
            self._latest[key] = len(self.ratings)
            self.ratings.append(score)

    def add_judgement(self, score: Score) -> None:
        """Add a judge's Score; of two on one item the later one with a value counts. No value is an error."""
        error = score.error
        if error is None and scalar(score.value) is None:
            error = "no verdict was recorded" if score.value is None else f"the verdict is {score.value!r}"
        score = replace(score, value=None if error else score.value, error=error)
        place = self._judged.setdefault((score.item_id, score.name, score.by), len(self.judgements))
        if place == len(self.judgements):
            self.judgements.append(score)
            return
        self.skip("a judgement that the same judge gave again later")
        if error is None:
            self.judgements[place] = score

    def add_by_source(
        self, source: str, score: Score, *, rater: str, people: str, judges: Collection[str]
    ) -> None:
        """By its source, add a Score for a rater, from `people` or from one of `judges`; else skip it."""
        if source == people:
            self.add_rating(replace(score, by=person(rater), error=None))
        elif source in judges:
            self.add_judgement(score)
        else:
            self.skip(f"a score of the source {source or 'nobody'}")

    def settle(self) -> None:
        """Skip the export's own items without question or fields, and its scores of items not there."""
        for item in [*self.items.values()]:
            if not item.question.strip() and not item.fields:
                self.skip("an item without a question")
                del self.items[item.item_id]
        for scores in (self.ratings, self.judgements):
            of_items = [score for score in scores if score.item_id in self.items]
            self.skip("a score of an item that the export does not hold", len(scores) - len(of_items))
            scores[:] = of_items
        out = len(self.items) + len(self.ratings) + len(self.judgements) + self.skipped.total()
        if out != self.n_records:  # a defect of the reader
            raise RuntimeError(f"{self.tool}: {self.n_records} records in, {out} out: {dict(self.skipped)}")


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A tool whose exports are read."""

    name: str  # as `--from` has it
    holds: Callable[[Sequence[Any]], bool]  # whether the outlines of files are of the tool
    read: Callable[[Sequence[Path], Export], None]  # fills the export; refuses with file and line
    files: str  # what to hand over, for messages (`scores.csv and traces.csv`)


def formats() -> dict[str, ExportFormat]:
    """Return tool name -> ExportFormat, a dict."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    tools = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in names]
    return {tool.name: tool for tool in tools}


def guess(files: Sequence[Path]) -> str | None:
    """Return the name of the tool that files (paths) are exported from, or None; several are refused."""
    begun = [outline(file) for file in files]
    fitting = [tool.name for tool in formats().values() if tool.holds(begun)]
    if len(fitting) > 1:
        may = f"may be an export of {listed(fitting)}"
        raise InputError(f"{shown(files[0])}: {may}: name the tool with --from")
    return next(iter(fitting), None) if all(file.exists() for file in files) else None


def read_export(files: Sequence[Path], tool: str) -> Export:
    """Read files (paths), exported from the tool so named, into an Export; InputError lists every problem."""
    tools = formats()
    if tool not in tools:
        raise unknown_name("tool", tool, tuple(tools))
    refuse([str(no_such_file(path)) for path in files if not path.is_file()])
    export = Export(tool, ", ".join(shown(file) for file in files))
    try:
        tools[tool].read(files, export)
    except RecursionError:
        raise InputError(f"{export.where}: an object in it is nested too deeply to be read") from None
    refuse(export.problems)
    export.settle()
    if not export.items:
        why = "; ".join(f"{reason}: {n:,}" for reason, n in export.skipped.most_common(3))
        raise InputError(
            f"{export.where}: holds no item ({why or 'nothing at all'}): hand over {tools[tool].files}"
        )
    return export


def id_of(*parts: Any) -> str:
    """Return an id (16 hex digits, the same on every run) of texts or JSON values, for items without one."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def person(name: str) -> str:
    """Return a person's name (text) as a rater's: an e-mail address as `rater-` and 8 digits of its hash."""
    name = well_formed(name).strip()
    if "@" not in name:  # the rater `gold` is the adjudicated label
        return "gold (a person)" if name == "gold" else name or _UNNAMED
    return f"rater-{hashlib.sha256(name.lower().encode()).hexdigest()[:8]}"


def judge_name(name: str, model: str = "") -> str:
    """Return a judge's name (a text) as judgecal prints it: `name@model` with a model that is not empty."""
    name, model = well_formed(name).replace("@", " at ").strip() or _UNNAMED, model.strip()
    return f"{name}@{model}" if model else name
