"""How gold sets are read: each row is held against the format, and every problem told with its line."""

from __future__ import annotations

import hashlib
import re
import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from judgecal.artefacts import schema_problems
from judgecal.errors import InputError
from judgecal.goldset.card import try_card
from judgecal.goldset.gold_set import CARD, DOCUMENTS, ITEMS, RATINGS, GoldDocument, GoldSet
from judgecal.goldset.labels import unexplained
from judgecal.records import CANNOT_TELL, Context, Item, Pair, Rating, Turn
from judgecal.scale import Scale
from judgecal.tables import decode, json_lines, read_bytes
from judgecal.workspace import Workspace, find_workspace, is_gold_set, shown

_HALF = re.compile("[\ud800-\udfff]")
_NO_FIELDS: Mapping[str, Any] = {}
"""Of items without fields and rules of their own: one object for a hundred thousand of them."""


def _named(text: str) -> str:
    """Refuse a name with half of a surrogate pair, as names end up in files and on pages."""
    if not text.isascii() and (half := _HALF.search(text)):
        which = f"(U+{ord(half[0]):04X}), which no file or page can hold: remove it"
        raise ValueError(f"holds an unpaired surrogate {which}")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("empty: fill it in")
    return _named(text)


def _as_list(value: Any) -> Any:
    """A single text as a list of one, an empty text as no text."""
    return [text for text in (value,) if text] if isinstance(value, str) else value


def _as_passages(value: Any) -> Any:
    """Contexts that are texts as objects with a text."""
    if not isinstance(value, list):
        return value
    return [{"text": part} if isinstance(part, str) else part for part in value]


_Name = Annotated[str, AfterValidator(_named)]
_Filled = Annotated[str, AfterValidator(_filled)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _ContextRow(_Row):
    text: str
    document_id: str | None = None
    score: float | None = None


class _TurnRow(_Row):
    role: _Filled
    content: str


class _ItemRow(_Row):
    item_id: _Filled
    group: _Name | None = None
    question: str | None = None
    answer: str | None = None
    reference_answer: Annotated[list[_Filled] | None, BeforeValidator(_as_list)] = None
    system: _Name | None = None
    reference_documents: list[_Filled] | None = None
    contexts: Annotated[list[_ContextRow] | None, BeforeValidator(_as_passages)] = None
    conversation: list[_TurnRow] | None = None
    fields_: Annotated[dict[_Name, str] | None, Field(alias="fields")] = None
    expect: dict[str, Any] | None = None
    tags: list[_Filled] | None = None
    inclusion_probability: Annotated[float | None, Field(gt=0.0, le=1.0)] = None
    answer_a: str | None = None
    answer_b: str | None = None
    system_a: _Name | None = None
    system_b: _Name | None = None


class _RatingRow(_Row):
    item_id: _Filled
    rater: _Filled
    label: Any = None
    note: str | None = None
    reason: str | None = None
    shown_left: Literal["A", "B"] | None = None


class _DocumentRow(_Row):
    document_id: _Filled
    title: str | None = None
    text: str


_R = TypeVar("_R", bound=_Row)


def _validated(model: type[_R], values: Mapping[str, Any], where: str, problems: list[str]) -> _R | None:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems.extend(schema_problems(error, model, where))
        return None


def read_item(values: Mapping[str, Any], where: str, problems: list[str]) -> Item:
    """Read an Item from a row's values, a place `where` for messages, and a list that gets problems. Where
    `group` is missing the question is the group, and else the item.

    An item with fields of its own may do without a question and an answer; one with `answer_a` and `answer_b`
    is a pair. Of a row with a problem the id alone is read.
    """
    row, item_id = _validated(_ItemRow, values, where, problems), values.get("item_id")
    item_id = sys.intern(item_id) if isinstance(item_id, str) else ""
    if row is None:
        return Item(item_id, "", "", "")
    fields, question, pair = row.fields_ or _NO_FIELDS, row.question or "", None
    if row.answer_a is not None and row.answer_b is not None:
        pair = Pair(row.answer_a, row.answer_b, row.system_a or None, row.system_b or None)
    if not fields and not question.strip():
        problems.append(f"{where}: no question: add it")
    if pair is None and (row.answer_a is not None or row.answer_b is not None):
        problems.append(f"{where}: a pair has answer_a and answer_b: add the other one")
    elif row.answer is None and not (fields or pair):
        problems.append(f"{where}: no answer: add it")
    documents = tuple(row.reference_documents or ())
    contexts = (Context(part.text, part.document_id or None, part.score) for part in row.contexts or ())
    turns = (Turn(turn.role, turn.content) for turn in row.conversation or ())
    return Item(
        item_id, row.group or question or item_id, question, row.answer or "",
        tuple(row.reference_answer or ()), row.system or None, documents, tuple(contexts),
        tuple(row.tags or ()), tuple(turns), fields, row.expect or _NO_FIELDS, row.inclusion_probability,
        pair,
    )  # fmt: skip


def read_items(path: Path) -> tuple[Item, ...]:
    """Read a tuple of Items from the path of a file like items.jsonl; refuse it with every problem."""
    where, problems = shown(path), list[str]()
    items = tuple(read_item(row, f"{where}:{line}", problems) for line, row in _read_lines(path, problems))
    if problems:
        raise InputError(problems)
    return items


def read_rating(
    values: Mapping[str, Any], where: str, *, scale: Scale | None, problems: list[str]
) -> Rating | None:
    """Read a Rating or None from a row's values, `where` (for messages), a Scale or None, a problems list.

    Without a scale (the card is broken, and says so itself) labels are not held against anything.
    """
    row = _validated(_RatingRow, values, where, problems)
    if row is None:
        return None
    problem, read, unclear = "", None, row.reason == CANNOT_TELL
    if row.label is None and not unclear:
        unless = f"a missing rating has no row; who could not tell says so by reason {CANNOT_TELL!r}"
        problem = f"no label: add it, or remove the row ({unless})"
    elif row.label is not None and unclear:
        problem = f"a label, and the reason {CANNOT_TELL!r}: keep one of them"
    elif not isinstance(row.label, str | int | float | None):
        problem = f"label must be a number or a word, found {row.label!r:.60}"
    elif row.label is not None and scale is not None:
        try:
            read = scale.read(row.label)
        except (ValueError, OverflowError) as error:
            problem = f"label outside the scale {scale}: {error}"
    if problem or (read is None and not unclear):
        problems += [f"{where}: {problem}"] if problem else []
        return None
    note, reason = row.note or None, row.reason or None
    return Rating(sys.intern(row.item_id), sys.intern(row.rater), read, note, reason, row.shown_left)


def load_gold(
    name_or_path: str | Path, *, workspace: Workspace | None = None, labelling: bool = False
) -> GoldSet:
    """Return the GoldSet of a name under the workspace's `gold/`, or of a folder's path. Every row is held
    against the format. While people are `labelling` it, first labels may lie in a small part of the scale.

    >>> gold = judgecal.load_gold("starter")
    >>> len(gold.items), gold.raters
    (220, ('curator_a', 'curator_b'))

    InputError: there is no such set, or it has problems: every one of them is listed, with file and line.
    """
    place = workspace or find_workspace()
    folder = place.find_gold(str(name_or_path))
    if not is_gold_set(folder):
        raise InputError(f"{shown(folder)}: is not a gold set: there is neither {CARD} nor {ITEMS} in it")
    card, problems = try_card(folder / CARD)
    name = folder.absolute().name
    if card is not None and card.name != name and not name.startswith("."):  # hidden: it is being written
        problems.append(
            f"{shown(folder / CARD)}: the name is {card.name!r} and the folder {name!r}: make them the "
            "same, or a report would look for another set"
        )
    items, ids = _load_items(folder / ITEMS, problems)
    ratings = _load_ratings(folder / RATINGS, card.scale if card else None, ids, problems)
    documents = _load_documents(folder, items, problems)
    given = [rating.label for rating in ratings.values() if rating.label is not None]
    if card and card.scale.graded and not problems and not labelling:
        why = unexplained([float(label) for label in given], card.scale, card.explained)
        problems += [f"{shown(folder / RATINGS)}: {why}"] if why else []
    if problems or card is None:
        raise InputError(problems)
    if card.scale.kind == "nominal" and not card.scale.categories:  # then it has those of its ratings
        words = tuple(sorted({*map(str, given), *card.anchors}))
        card = replace(card, scale=replace(card.scale, categories=words))
    lines = {ITEMS: array("q", items), RATINGS: array("q", ratings), DOCUMENTS: array("q", documents)}
    return GoldSet(
        card.name, folder, card, tuple(items.values()), tuple(ratings.values()), tuple(documents.values()),
        content_sha(folder), lines,
    )  # fmt: skip


def _read_lines(path: Path, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of one file, each with its line; none where nothing can be said of them."""
    try:
        text, wrong = decode(read_bytes(path), shown(path))
    except InputError as error:
        text, wrong = "", list(error.problems)
    problems.extend(wrong)
    return json_lines(text, shown(path), problems)


def _load_items(path: Path, problems: list[str]) -> tuple[dict[int, Item], set[str] | None]:
    """The items by line, and the ids that others may refer to; None where not all rows could be read."""
    where, items, seen, unread = shown(path), dict[int, Item](), dict[str, int](), list[str]()
    for line, row in _read_lines(path, unread):
        items[line] = item = read_item(row, f"{where}:{line}", problems)
        if (first := seen.setdefault(item.item_id, line)) != line and item.item_id:
            problems.append(
                f"{where}:{line}: item_id {item.item_id!r} is in line {first} already: ids must differ"
            )
    if not items and not unread:
        problems.append(f"{where}:1: the set is empty: a gold set needs at least one item")
    problems += unread
    return items, None if unread else set(seen)


def _load_ratings(
    path: Path, scale: Scale | None, ids: set[str] | None, problems: list[str]
) -> dict[int, Rating]:
    where, ratings, seen = shown(path), dict[int, Rating](), dict[tuple[str, str], int]()
    for line, row in _read_lines(path, problems):
        item_id, rater = row.get("item_id"), row.get("rater")
        rating = read_rating(row, f"{where}:{line}", scale=scale, problems=problems)
        if not isinstance(item_id, str) or not isinstance(rater, str):
            continue
        if item_id and ids is not None and item_id not in ids:
            problems.append(f"{where}:{line}: no item {item_id!r} in {ITEMS}: fix the id or remove the row")
        if (first := seen.setdefault((item_id, rater), line)) != line:
            problems.append(
                f"{where}:{line}: rater {rater!r} rated item {item_id!r} in line {first} already: keep one "
                "row"
            )
        if rating is not None:
            ratings[line] = rating
    return ratings


def _load_documents(folder: Path, items: Mapping[int, Item], problems: list[str]) -> dict[int, GoldDocument]:
    if not (folder / DOCUMENTS).exists():
        return {}
    where, unread = shown(folder / DOCUMENTS), list[str]()
    documents: dict[int, GoldDocument] = {}
    seen: dict[str, int] = {}
    for line, values in _read_lines(folder / DOCUMENTS, unread):
        row = _validated(_DocumentRow, values, f"{where}:{line}", problems)
        if row is None:
            continue
        documents[line] = GoldDocument(row.document_id, row.title or None, row.text)
        if (first := seen.setdefault(row.document_id, line)) != line:
            what = f"document_id {row.document_id!r} is in line {first} already: ids must differ"
            problems.append(f"{where}:{line}: {what}")
    problems += unread
    if not unread:
        problems.extend(
            f"{shown(folder / ITEMS)}:{line}: reference document {name!r} is not in {DOCUMENTS}: fix the id "
            "or add the document"
            for line, item in items.items()
            for name in item.reference_documents
            if name not in seen
        )
    return documents


def content_sha(folder: Path) -> str:
    """Return the sha256, a text, of a set's files in a folder (a path): names, lengths and texts."""
    total = hashlib.sha256()
    for name in (CARD, ITEMS, RATINGS, DOCUMENTS):
        if (folder / name).exists():
            text = read_bytes(folder / name).replace(b"\r\n", b"\n")
            total.update(f"{name}:{len(text)}\n".encode())
            total.update(text)
    return total.hexdigest()
