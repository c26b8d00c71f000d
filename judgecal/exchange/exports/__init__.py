"""What other evaluation tools export: items, what people said of them, and what judges said.

One module a tool, found by being here: it offers `FORMAT`. A reader needs no library of the tool. Whether a
score is a person's or a judge's is told by the source that the tool recorded, never by a name. Everything
that stands in an export is counted: `n_records` goes up for each record that is met, and each ends as an
item, a rating, a judgement or a skip with its reason.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import pkgutil
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.exchange.files import Row, outline
from judgecal.exchange.texts import Value, objects_of
from judgecal.records import ITEM_UNIT, Item
from judgecal.tables.text import no_files
from judgecal.workspace import shown

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
    repeat: int = 0  # a judge that scored an item twice has two
    unit: str = ITEM_UNIT  # or `chunk:<n>` of the item's contexts, from 0
    cost_usd: float | None = None  # of the judge's call; None where the tool does not say
    saw_draft: bool = False  # whether a person was shown what a judge said before


@dataclass
class Export:
    """An export as it is read."""

    tool: str
    where: str
    n_records: int = 0  # what stands in the files: items, scores, and whatever else could have been one
    items: dict[str, Item] = field(default_factory=dict)
    ratings: list[Score] = field(default_factory=list)
    judgements: list[Score] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)  # why some became nothing
    notes: list[str] = field(default_factory=list)  # what the set's owner should know of how it was read
    problems: list[str] = field(default_factory=list)
    _latest: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _repeats: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def count(self, n: int = 1) -> None:
        """So many records were met; said where the records are walked, apart from what becomes of them."""
        self.n_records += n

    def skip(self, reason: str, n: int = 1) -> None:
        """So many records that were counted become nothing."""
        if n:
            self.skipped[reason] += n

    def count_skipped(self, reason: str, n: int) -> None:
        """So many records are met, and become nothing."""
        self.count(n)
        self.skip(reason, n)

    def objects(self, value: Any, what: str, *, holders: bool = False) -> list[Row]:
        """The objects of a list, each of them counted; what stands there and is none is counted and skipped.

        `what`: what they are, for the reason (`score`). None is an empty list. `holders`: they hold records
        and are none themselves, so that only what is no object is counted.
        """
        values = value if isinstance(value, list) else [] if value is None else [value]
        taken = objects_of(value)
        self.count(len(values) - len(taken) * holders)
        self.skip(f"no {what}, where one should stand", len(values) - len(taken))
        return taken

    def lack_texts(self, of: str, advice: str) -> None:
        """There are scores and nothing that they are of."""
        self.problems.append(
            f"{self.where}: no {of} among the files, so there is no text to judge: export {advice}, and hand "
            "over both files"
        )

    def add_item(self, item: Item) -> None:
        """Take an item; one that is there already is a skip, other texts under its id or no id a problem."""
        if not item.item_id.strip():
            self.problems.append(f"{self.where}: an item has no id: {item.asked[:60]!r}")
        known = self.items.setdefault(item.item_id, item)
        if known is item:
            return
        self.skip("an item that is there more than once")
        if known.sha != item.sha:
            self.problems.append(f"{self.where}: two items with different texts have the id {item.item_id!r}")

    def add_apart(self, items: Sequence[Item]) -> list[Item]:
        """Take items whose ids are told apart."""
        items = apart(items)
        for item in items:
            self.add_item(item)
        return items

    def add_rating(self, score: Score) -> None:
        """Take what a person said; of two by one person on one item under one name the later call counts."""
        key = (score.item_id, score.name, score.by)
        if score.unit != ITEM_UNIT:
            self.skip("a rating of a single context, where labels are of whole items")
        elif not _is_value(score.value):
            self.skip("a rating without a label")
        elif (place := self._latest.get(key)) is not None:
            self.ratings[place] = score
            self.skip("a rating that the same person gave again later")
        else:
            self._latest[key] = len(self.ratings)
            self.ratings.append(score)

    def add_judgement(self, score: Score) -> None:
        """Take what a judge said; a second one of the same item is its next repeat, never an overwrite.

        What is no value (NaN, an empty text) has an error.
        """
        key = (score.item_id, score.by, score.unit)
        error = score.error
        if error is None and not _is_value(score.value):
            error = "no verdict was recorded" if score.value is None else f"the verdict is {score.value!r}"
        value = None if error else score.value
        self.judgements.append(replace(score, repeat=self._repeats[key], value=value, error=error))
        self._repeats[key] += 1

    def settle(self) -> None:
        """Move items without any text, and scores of items and contexts that are not there, to the skips.

        Raises:
            RuntimeError: what came in is not what came out, a defect of the reader.
        """
        for item in [*self.items.values()]:
            texts = (
                item.question,
                item.answer,
                *(context.text for context in item.contexts),
                *item.fields.values(),
            )
            if not any(text.strip() for text in (*texts, *(turn.content for turn in item.conversation))):
                self.skip("an item without any text")
                del self.items[item.item_id]
        for scores in (self.ratings, self.judgements):
            known = [score for score in scores if score.item_id in self.items]
            self.skip("a score of an item that the export does not hold", len(scores) - len(known))
            scores[:] = [
                score
                for score in known
                if score.unit == ITEM_UNIT
                or int(score.unit.removeprefix("chunk:")) < len(self.items[score.item_id].contexts)
            ]
            self.skip("a score of a context that the item does not have", len(known) - len(scores))
        out = len(self.items) + len(self.ratings) + len(self.judgements) + self.skipped.total()
        if out != self.n_records:
            raise RuntimeError(f"{self.tool}: {self.n_records} records in, {out} out: {dict(self.skipped)}")


def _is_value(value: Value) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(value.strip()) if isinstance(value, str) else value is not None


@dataclass(frozen=True, slots=True)
class Sources:
    """Who gives scores, by the words that a tool records for it."""

    people: Collection[str]
    judges: Collection[str]
    what: str = "a score of the source"  # as a skip calls a score of nobody who is known

    def take(self, source: str, score: Score, export: Export, *, rater: str) -> None:
        """A judgement as it is, the same score as a rating of that rater, or a skip, as its source says."""
        if source in self.people:
            export.add_rating(replace(score, by=person(rater), error=None))
        elif source in self.judges:
            export.add_judgement(score)
        else:
            export.skip(f"{self.what} {source or 'nobody'}")


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A tool whose exports are read."""

    name: str  # as `--from` has it
    holds: Callable[[Sequence[Path]], bool]  # by what stands in files; raises nothing for another tool's
    read: Callable[[Sequence[Path], Export], None]  # fills the export; refuses with file and line
    files: str  # what to hand over, for messages (`scores.csv and traces.csv`)


def each_begins(test: Callable[[Any], object]) -> Callable[[Sequence[Path]], bool]:
    """Whether files are a tool's: by the outline of each of them."""
    return lambda files: bool(files) and all(test(outline(file)) for file in files)


def formats() -> dict[str, ExportFormat]:
    """The tools by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    tools = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in names]
    return {tool.name: tool for tool in tools}


def guess(files: Sequence[Path]) -> str | None:
    """The tool that files are of; None where they are nobody's, or not there. Several are refused."""
    if not all(file.exists() for file in files):
        return None
    fitting = [tool.name for tool in formats().values() if tool.holds(files)]
    if len(fitting) > 1:
        may = f"may be an export of {listed(fitting)}"
        raise InputError(f"{shown(files[0])}: {may}: name the tool with --from")
    return fitting[0] if fitting else None


def read_export(files: Sequence[Path], tool: str) -> Export:
    """Read a tool's export; every problem is listed."""
    known = formats()
    if tool not in known:
        raise unknown_name("tool", tool, tuple(known))
    refuse(no_files(files))
    export = Export(tool, ", ".join(shown(file) for file in files))
    try:
        known[tool].read(files, export)
    except RecursionError:
        raise InputError(f"{export.where}: an object in it is nested too deeply to be read") from None
    refuse(export.problems, most=50)
    export.settle()
    if n := sum(score.by == _UNNAMED for score in export.ratings):
        unnamed = f"{n:,} ratings name no person; they count as one rater, {_UNNAMED!r}"
        export.notes.append(f"{export.where}: {unnamed}")
    if not export.items:
        why = "; ".join(f"{reason}: {n:,}" for reason, n in export.skipped.most_common(3))
        raise InputError(
            f"{export.where}: holds no item ({why or 'nothing at all'}): hand over {known[tool].files}"
        )
    return export


def id_of(*parts: Any) -> str:
    """An id of texts or JSON values, for items that have none: 16 hex digits, the same on every run."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def person(name: str) -> str:
    """A person's name as a rater's; an e-mail address becomes `rater-` and 8 hex digits of its hash.

    The rater `gold` is the adjudicated label, so somebody who is only called so is `gold (a person)`.
    """
    name = name.strip()
    if "@" not in name:
        return "gold (a person)" if name == "gold" else name or _UNNAMED
    return f"rater-{hashlib.sha256(name.lower().encode()).hexdigest()[:8]}"


def judge_name(name: str, model: Any = None) -> str:
    """A judge as judgecal prints one: `name@model` where the export tells the model, else the name."""
    name = name.replace("@", " at ").strip() or "unnamed"
    return f"{name}@{model.strip()}" if isinstance(model, str) and model.strip() else name


def apart(items: Sequence[Item]) -> list[Item]:
    """Items of one id with other texts get ids of their own: 8 digits of their texts' sha behind it."""
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for item in items:
        texts[item.item_id].add(item.sha)
    return [
        replace(item, item_id=f"{item.item_id}:{item.sha[:8]}") if len(texts[item.item_id]) > 1 else item
        for item in items
    ]
