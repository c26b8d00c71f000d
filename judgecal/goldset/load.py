"""How gold sets are read: each row is held against the format, and every problem told with its line."""

from __future__ import annotations

import hashlib
import re
import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.artefacts import check_keys
from judgecal.errors import InputError, working
from judgecal.goldset.card import try_card
from judgecal.goldset.gold_set import CARD, DOCUMENTS, ITEMS, RATINGS, GoldDocument, GoldSet
from judgecal.goldset.labels import unexplained
from judgecal.records import CANNOT_TELL, Context, Item, Pair, Rating, Turn, old_objects_left_alone
from judgecal.scale import Scale
from judgecal.tables import decode, json_lines, read_bytes
from judgecal.workspace import Workspace, find_workspace, is_gold_set, shown

_ITEM_KEYS = frozenset({
    "item_id", "group", "question", "answer", "reference_answer", "system", "reference_documents",
    "document_id", "contexts", "conversation", "fields", "expect", "tags", "inclusion_probability",
    "answer_a", "answer_b", "system_a", "system_b",
})  # fmt: skip
_TURN_KEYS = frozenset({"role", "content"})
_CONTEXT_KEYS = frozenset({"document_id", "text", "score"})
_RATING_KEYS = frozenset({"item_id", "rater", "label", "note", "reason", "shown_left"})
_DOCUMENT_KEYS = frozenset({"document_id", "title", "text"})
# What items are counted and found by: these end up in files and on pages as they are.
_NAMES = frozenset({
    "item_id", "group", "system", "system_a", "system_b", "tags", "fields", "document_id",
    "reference_documents", "rater",
})  # fmt: skip
_NO_FIELDS: Mapping[str, Any] = {}
"""Of items without fields and rules of their own: one object for a hundred thousand of them."""
_HUGE = 1e300  # JSON allows whole numbers that no float can hold
_HALF = re.compile("[\ud800-\udfff]")
_FORMS: Mapping[str, Any] = {
    "text": lambda value: isinstance(value, str),
    "true or false": lambda value: isinstance(value, bool),
    "a number": lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE
    ),
    "an object": lambda value: isinstance(value, dict),
    "an object of texts": lambda value: (
        isinstance(value, dict) and all(isinstance(part, str) for part in value.values())
    ),
}
"""What a value must be, as messages say it, and whether one is."""


def unpaired(text: str) -> str | None:
    """Why a name may not hold half of a surrogate pair; None where it holds none."""
    half = _HALF.search(text)
    which = half and f"(U+{ord(half[0]):04X}), which no file or page can hold: remove it"
    return which and f"holds an unpaired surrogate {which}"


class _Row:
    """One row's fields by type; what does not fit is added to `problems`."""

    def __init__(
        self, values: Mapping[str, Any], where: str, valid: frozenset[str], problems: list[str]
    ) -> None:
        self.values, self.where, self.problems = values, where, problems
        if not valid.issuperset(values):
            problems.extend(check_keys(values, valid, where))
        for key, value in values.items():
            names = (value,) if isinstance(value, str) else value if isinstance(value, list | dict) else ()
            for text in names if key in _NAMES else ():
                if isinstance(text, str) and not text.isascii() and (problem := unpaired(text)):
                    self.fail(f"{key} {problem}")
                    break

    def fail(self, what: str) -> None:
        self.problems.append(f"{self.where}: {what}")

    def required(self, key: str, *, may_be_empty: bool = False) -> str:
        """A text that must be there; "" where it is not."""
        value = self.values.get(key)
        if value is None:
            self.fail(f"no {key}: add it")
        elif not isinstance(value, str):
            self.fail(f"{key} must be text, found {_quoted(value)}: put it in quotes")
        elif not value.strip() and not may_be_empty:
            self.fail(f"{key} is empty: fill it in")
        else:
            return value
        return ""

    def optional(self, key: str, form: str = "text") -> Any:
        """A value that may be absent, null or empty: then None; None too where it is not of the form."""
        value = self.values.get(key)
        if value is None or _FORMS[form](value):
            return None if value == "" else value
        advice = ": put it in quotes or leave it out" if form == "text" else ""
        self.fail(f"{key} must be {form}, found {_quoted(value)}{advice}")
        return None

    def number(self, key: str) -> float | None:
        value = self.optional(key, "a number")
        return None if value is None else float(value)

    def texts(self, key: str, *, or_text: bool = False) -> tuple[str, ...]:
        """A list of texts; with `or_text` a single text is a list of one, and an empty text none."""
        value = self.values.get(key)
        if value is None or (or_text and value == ""):
            return ()
        if or_text and isinstance(value, str):
            return (value,)
        if isinstance(value, list) and all(isinstance(part, str) and part.strip() for part in value):
            return tuple(value)
        form = "text or a list of texts" if or_text else "a list of texts"
        self.fail(f"{key} must be {form}, none of them empty; found {_quoted(value)}")
        return ()

    def parts(self, key: str, form: str) -> list[Any]:
        """A list that may be absent."""
        value = self.values.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self.fail(f"{key} must be a list of {form}, found {_quoted(value)}")
        return []


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_item(values: Mapping[str, Any], where: str, problems: list[str]) -> Item:
    """Read one row of items.jsonl; where `group` is missing the question is the group, and else the item.

    An item with fields of its own may do without a question and an answer; one with `answer_a` and `answer_b`
    is a pair.
    """
    row = _Row(values, where, _ITEM_KEYS, problems)
    fields, item_id = row.optional("fields", "an object of texts") or _NO_FIELDS, row.required("item_id")
    question = (row.optional("question") or "") if fields else row.required("question")
    group = row.optional("group") or question or item_id
    pair = read_pair(row)
    optional = bool(fields or pair)
    answer = (row.optional("answer") or "") if optional else row.required("answer", may_be_empty=True)
    references, system = row.texts("reference_answer", or_text=True), row.optional("system")
    document = row.optional("document_id")
    if document is not None and values.get("reference_documents") is not None:
        row.fail("both document_id and reference_documents: keep reference_documents")
    documents = row.texts("reference_documents") if document is None else (document,)
    contexts = []
    for position, part in enumerate(row.parts("contexts", "texts or of objects with a text"), start=1):
        there = f"{where}: context {position}"
        if isinstance(part, str):
            contexts.append(Context(part))
        elif isinstance(part, dict):
            inner = _Row(part, there, _CONTEXT_KEYS, problems)
            text = inner.required("text", may_be_empty=True)
            contexts.append(Context(text, inner.optional("document_id"), inner.number("score")))
        else:
            problems.append(f"{there} must be a text or an object with a text, found {_quoted(part)}")
    tags, turns = row.texts("tags"), []
    for position, part in enumerate(row.parts("conversation", "objects {role, content}"), start=1):
        there = f"{where}: turn {position} of the conversation"
        if isinstance(part, dict):
            inner = _Row(part, there, _TURN_KEYS, problems)
            turns.append(Turn(inner.required("role"), inner.required("content", may_be_empty=True)))
        else:
            problems.append(f"{there} must be an object {{role, content}}, found {_quoted(part)}")
    expect, chance = row.optional("expect", "an object") or _NO_FIELDS, row.number("inclusion_probability")
    if chance is not None and not 0.0 < chance <= 1.0:
        row.fail(f"inclusion_probability must be above 0 and at most 1, found {chance:g}")
        chance = None
    return Item(
        sys.intern(item_id), group, question, answer, references, system, documents, tuple(contexts), tags,
        tuple(turns), fields, expect, chance, pair,
    )  # fmt: skip


def read_pair(row: _Row) -> Pair | None:
    """The two answers of a row, where it has any; an answer may be empty, and must be there."""
    if not {"answer_a", "answer_b"} & row.values.keys():
        return None
    a, b = (row.required(name, may_be_empty=True) for name in ("answer_a", "answer_b"))
    return Pair(a, b, row.optional("system_a"), row.optional("system_b"))


def read_items(path: Path) -> tuple[Item, ...]:
    """Read a file in the format of items.jsonl; InputError lists every problem with its line."""
    where = shown(path)
    text, problems = decode(read_bytes(path), where)
    items = tuple(
        read_item(row, f"{where}:{line}", problems) for line, row in json_lines(text, where, problems)
    )
    if problems:
        raise InputError(problems)
    return items


def read_rating(
    values: Mapping[str, Any], where: str, *, scale: Scale | None, problems: list[str]
) -> Rating | None:
    """Read one row of ratings.jsonl, its label by the scale; None where the row is no rating.

    Without a scale (the card is broken, and says so itself) labels are not held against anything.
    """
    row = _Row(values, where, _RATING_KEYS, problems)
    item_id, rater, label = row.required("item_id"), row.required("rater"), values.get("label")
    note, reason = row.optional("note"), row.optional("reason")
    unclear, read, left = reason == CANNOT_TELL, None, row.optional("shown_left")
    if left not in (None, "A", "B"):
        row.fail(f"shown_left must be A or B, found {_quoted(left)}")
    if label is None and not unclear:
        unless = f"a missing rating has no row; who could not tell says so by reason {CANNOT_TELL!r}"
        row.fail(f"no label: add it, or remove the row ({unless})")
        return None
    if label is not None:
        if unclear:
            row.fail(f"a label, and the reason {CANNOT_TELL!r}: keep one of them")
            return None
        if not isinstance(label, str | int | float):
            row.fail(f"label must be a number or a word, found {_quoted(label)}")
            return None
        if scale is None:
            return None
        try:
            read = scale.read(label)
        except (ValueError, OverflowError) as error:
            row.fail(f"label outside the scale {scale}: {error}")
            return None
    return Rating(sys.intern(item_id), sys.intern(rater), read, note, reason, left)


def load_gold(
    name_or_path: str | Path, *, workspace: Workspace | None = None, labelling: bool = False
) -> GoldSet:
    """Load a set by its name under the workspace's `gold/`, or by the path of its folder; every row is held
    against the format. While people are `labelling` it, their first labels may lie in a small part of the
    scale.

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
    with old_objects_left_alone():
        items, ids = _load_items(folder / ITEMS, problems)
    with old_objects_left_alone(), working(f"Reading {len(items):,} items"):
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


def unchanged_gold(name: str, sha256: str, *, workspace: Workspace) -> GoldSet | None:
    """Load the set of a name if its content has the sha256; None where it has not, or cannot be read."""
    try:
        gold = load_gold(name, workspace=workspace)
    except InputError:
        return None
    return gold if gold.sha256 == sha256 else None


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
        row = _Row(values, f"{where}:{line}", _DOCUMENT_KEYS, problems)
        name, title = row.required("document_id"), row.optional("title")
        documents[line] = GoldDocument(name, title, row.required("text", may_be_empty=True))
        if (first := seen.setdefault(name, line)) != line and name:
            row.fail(f"document_id {name!r} is in line {first} already: ids must differ")
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
    """sha256 over the name, length and text of each file of a set in a folder, whatever its line ends."""
    total = hashlib.sha256()
    for name in (CARD, ITEMS, RATINGS, DOCUMENTS):
        if (folder / name).exists():
            text = read_bytes(folder / name).replace(b"\r\n", b"\n")
            total.update(f"{name}:{len(text)}\n".encode())
            total.update(text)
    return total.hexdigest()
