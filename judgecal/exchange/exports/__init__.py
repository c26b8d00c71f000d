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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.records import ITEM_UNIT, Context, Item, Turn
from judgecal.tables.text import no_files
from judgecal.workspace import shown

Value = bool | int | float | str | None

_UNNAMED = "unnamed"
_DOCUMENT = ("document_id", "doc_id", "doc_uri", "id", "source", "name")


@dataclass(frozen=True, slots=True)
class Score:
    """One score of one item.

    Attributes:
        item_id: the item's.
        name: what was scored, as the tool has it (`correctness`).
        by: who gave it: a person, or a judge as judgecal prints one (`correctness@gpt-4o`, or the name
            alone).
        value: as the tool holds it; None where there is none.
        note: the person's comment or the judge's reasoning.
        where: where it stands, as messages name it (`scores.csv:12`).
        error: why a judge has no value; None where it has one.
        repeat: from 0; a judge that scored an item twice has two.
        unit: `item`, or `chunk:<n>` of the item's contexts, from 0.
        cost_usd, latency_s: of the judge's call, None where the tool does not say.
        saw_draft: whether a person was shown what a judge said before.
    """

    item_id: str
    name: str
    by: str
    value: Value
    note: str = ""
    where: str = ""
    error: str | None = None
    repeat: int = 0
    unit: str = ITEM_UNIT
    cost_usd: float | None = None
    latency_s: float | None = None
    saw_draft: bool = False


@dataclass
class Export:
    """An export as it is read.

    `n_records` counts what stands in the files: each item, each score and whatever else could have been one.
    `skipped` says why some became nothing. `notes`: what the set's owner should know of how it was read.
    `scales`: by the name of scores, where the tool declares their scale.
    """

    tool: str
    where: str
    n_records: int = 0
    items: dict[str, Item] = field(default_factory=dict)
    ratings: list[Score] = field(default_factory=list)
    judgements: list[Score] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    scales: dict[str, str] = field(default_factory=dict)
    _latest: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _repeats: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def count(self, n: int = 1) -> None:
        """So many records were met; said where the records are walked, apart from what becomes of them."""
        self.n_records += n

    def skip(self, reason: str, n: int = 1) -> None:
        """So many records that were counted become nothing."""
        if n:
            self.skipped[reason] += n

    def objects(self, value: Any, what: str, *, holders: bool = False) -> list[dict[str, Any]]:
        """The objects of a list, each of them counted; what stands there and is none is counted and skipped.

        `what`: what they are, for the reason (`score`). None is an empty list. `holders`: they hold records
        and are none themselves, so that only what is no object is counted.
        """
        listed_values = value if isinstance(value, list) else [] if value is None else [value]
        taken = objects_of(value)
        self.count(len(listed_values) - len(taken) * holders)
        self.skip(f"no {what}, where one should stand", len(listed_values) - len(taken))
        return taken

    def add_item(self, item: Item) -> None:
        """Take an item; one that is there already is a skip. Other texts under its id, or no id, are a
        problem."""
        if not item.item_id.strip():
            self.problems.append(f"{self.where}: an item has no id: {item.asked[:60]!r}")
        known = self.items.setdefault(item.item_id, item)
        if known is item:
            return
        self.skip("an item that stands there more than once")
        if known.sha != item.sha:
            self.problems.append(f"{self.where}: two items with other texts have the id {item.item_id!r}")

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
        empty = [item_id for item_id, item in self.items.items() if not _has_text(item)]
        self.skip("an item without any text", len(empty))
        for item_id in empty:
            del self.items[item_id]
        for scores in (self.ratings, self.judgements):
            known = [score for score in scores if score.item_id in self.items]
            self.skip("a score of an item that the export does not hold", len(scores) - len(known))
            there = [score for score in known if _is_there(score, self.items[score.item_id])]
            self.skip("a score of a context that the item does not have", len(known) - len(there))
            scores[:] = there
        out = len(self.items) + len(self.ratings) + len(self.judgements) + self.skipped.total()
        if out != self.n_records:
            raise RuntimeError(f"{self.tool}: {self.n_records} records in, {out} out: {dict(self.skipped)}")


def _is_value(value: Value) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(value.strip()) if isinstance(value, str) else value is not None


def _is_there(score: Score, item: Item) -> bool:
    return score.unit == ITEM_UNIT or int(score.unit.removeprefix("chunk:")) < len(item.contexts)


def _has_text(item: Item) -> bool:
    texts = (item.question, item.answer, *(context.text for context in item.contexts), *item.fields.values())
    return any(text.strip() for text in (*texts, *(turn.content for turn in item.conversation)))


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A tool whose exports are read.

    Attributes:
        name: as `--from` has it.
        holds: whether files are this tool's, by what stands in them; it raises nothing for another tool's
            file.
        read: fills the export. InputError lists what cannot be read, with file and line.
        files: what to hand over, for messages (`scores.csv and traces.csv`).
    """

    name: str
    holds: Callable[[Sequence[Path]], bool]
    read: Callable[[Sequence[Path], Export], None]
    files: str


def formats() -> dict[str, ExportFormat]:
    """The tools by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in names]
    return {one.name: one for one in found}


def guess(files: Sequence[Path]) -> str | None:
    """The tool that files are of; None where they are nobody's, or not there. InputError: more than one says
    so."""
    if not all(file.exists() for file in files):
        return None
    fitting = [one.name for one in formats().values() if one.holds(files)]
    if len(fitting) > 1:
        raise InputError(
            f"{shown(files[0])}: may be an export of {listed(fitting)}: name the tool with --from"
        )
    return fitting[0] if fitting else None


def read_export(files: Sequence[Path], tool: str) -> Export:
    """Read a tool's export; InputError lists every problem."""
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
        export.notes.append(
            f"{export.where}: {n:,} ratings name no person; they count as one rater, {_UNNAMED!r}"
        )
    if not export.items:
        why = "; ".join(f"{reason}: {n:,}" for reason, n in export.skipped.most_common(3))
        raise InputError(
            f"{export.where}: holds no item ({why or 'nothing at all'}): hand over {known[tool].files}"
        )
    return export


def id_of(*parts: Any) -> str:
    """An id of texts or JSON values, for items that the tool gives none: 16 hex digits, the same on every
    run."""
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


def apart(items: Sequence[Item]) -> list[Item]:
    """Items of one id with other texts get ids of their own: 8 digits of their texts' sha behind it."""
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for item in items:
        texts[item.item_id].add(item.sha)
    alone = {item_id for item_id, shas in texts.items() if len(shas) == 1}
    return [
        one if one.item_id in alone else replace(one, item_id=f"{one.item_id}:{one.sha[:8]}") for one in items
    ]


def judge_name(name: str, model: Any = None) -> str:
    """A judge as judgecal prints one: `name@model` where the export tells the model, else the name."""
    name = name.replace("@", " at ").strip() or "unnamed"
    return f"{name}@{model.strip()}" if isinstance(model, str) and model.strip() else name


def value_of(value: Any) -> Value:
    """A score's value: a truth value, a number or a text as it is, a list of one as its one; else JSON
    text."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def contexts_of(value: Any) -> tuple[Context, ...]:
    """Passages: a list of texts, or of objects that hold one; a single text is one passage."""
    values = value if isinstance(value, list) else [] if value in (None, "") else [value]
    return tuple(_context(one) for one in values)


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of what is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def turns_of(value: Any) -> tuple[Turn, ...]:
    """The turns of a conversation: objects with a role (or type) and a content, which may be parts with
    texts."""
    return tuple(
        Turn(text_of(field_of(one, "role", "type")), _content(one.get("content")))
        for one in objects_of(value)
        if one.get("content")
    )


def _content(value: Any) -> str:
    if isinstance(value, list):
        parts = [field_of(one, "text", "content") if isinstance(one, dict) else one for one in value]
        return "\n".join(text for text in map(text_of, parts) if text)
    return text_of(value)


def spoken(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], str, str]:
    """The turns before the last question, that question, and what was answered to it ("" where nothing
    was)."""
    asks = [place for place, turn in enumerate(turns) if turn.role in ("user", "human")]
    if not asks:
        return tuple(turns[:-1]), "", turns[-1].content if turns else ""
    answers = [turn.content for turn in turns[asks[-1] + 1 :] if turn.role in ("assistant", "ai")]
    return tuple(turns[: asks[-1]]), turns[asks[-1]].content, answers[-1] if answers else ""


def tags_of(value: Any) -> tuple[str, ...]:
    """Tags: the texts of a list."""
    return tuple(one for one in value if isinstance(one, str) and one) if isinstance(value, list) else ()


def number_of(value: Any) -> float | None:
    """A finite number; None for anything else."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if number else None


def _context(value: Any) -> Context:
    if not isinstance(value, dict):
        return Context(text_of(value))
    if isinstance(inner := value.get("document"), dict):
        value = {**value, **inner}
    about = value.get("metadata")
    text = field_of(value, "text", "content", "context", "page_content", "document")
    document = field_of(value, *_DOCUMENT) or (
        field_of(about, *_DOCUMENT) if isinstance(about, dict) else None
    )
    return Context(
        text_of(value if text is None else text), text_of(document) or None, number_of(value.get("score"))
    )


def text_of(value: Any) -> str:
    """A value as the text of an item: itself, the one text of an object or a chat message, else JSON; None is
    ""."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict) and len(value) == 1:
        return text_of(next(iter(value.values())))
    return json.dumps(value, ensure_ascii=False)


def field_of(record: Mapping[str, Any], *names: str) -> Any:
    """The first of the names that a record has with a value; None where it has none of them."""
    return next((record[name] for name in names if record.get(name) not in (None, "", [], {})), None)
