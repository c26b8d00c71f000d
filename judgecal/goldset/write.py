"""Write a gold set: all of it into a folder beside its place, then one rename; and the ratings of a set that
people are labelling. Never half a set.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from judgecal.errors import BusyError, InputError, notice, refuse
from judgecal.goldset.card import Card, card_text, plain_label
from judgecal.goldset.gold_set import (
    CARD,
    DOCUMENTS,
    ITEMS,
    JUDGEMENTS,
    LABELS_LOCK,
    RATINGS,
    GoldDocument,
    GoldSet,
)
from judgecal.goldset.load import content_sha, load_gold
from judgecal.records import Item, Rating
from judgecal.tables import json_line, write_json_lines
from judgecal.workspace import Workspace, name_problem, shown

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def item_row(item: Item) -> dict[str, Any]:
    """Return an Item as the dict of a line of items.jsonl, without what it lacks."""
    references, pair = item.reference_answers, item.pair
    row: dict[str, Any] = {
        "item_id": item.item_id, "group": item.group, "question": item.question, "answer": item.answer,
    }  # fmt: skip
    if pair or (item.fields and not item.question):
        row = {name: text for name, text in row.items() if text}
    if pair:
        row |= {"answer_a": pair.answer_a, "answer_b": pair.answer_b}
    if references:
        row["reference_answer"] = references[0] if len(references) == 1 else list(references)
    if item.system:
        row["system"] = item.system
    if item.reference_documents:
        row["reference_documents"] = list(item.reference_documents)
    if item.contexts:
        row["contexts"] = [
            _without_empty({"document_id": part.document_id, "text": part.text, "score": part.score})
            for part in item.contexts
        ]
    if item.conversation:
        row["conversation"] = [{"role": turn.role, "content": turn.content} for turn in item.conversation]
    for name in ("fields", "expect"):
        if value := getattr(item, name):
            row[name] = dict(value)
    if item.tags:
        row["tags"] = list(item.tags)
    if item.inclusion_probability is not None:
        row["inclusion_probability"] = item.inclusion_probability
    if pair:
        row |= _without_empty({"system_a": pair.system_a, "system_b": pair.system_b})
    return row


def rating_row(rating: Rating) -> dict[str, Any]:
    """Return a Rating as the dict of a line of ratings.jsonl."""
    row: dict[str, Any] = {"item_id": rating.item_id, "rater": rating.rater}
    if rating.label is not None:
        row["label"] = plain_label(rating.label)
    for name in ("note", "reason", "shown_left"):
        if value := getattr(rating, name):
            row[name] = value
    return row


def _without_empty(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key == "text" or value not in (None, "", [], {})}


def name_problems(name: str, *, workspace: Workspace, replace: bool) -> list[str]:
    """Return a list of problems that keep a set of a name, in a Workspace, by flag `replace`, unwritten."""
    if not _NAME.fullmatch(name):
        return [
            f"gold set name {name!r}: use letters, digits, '.', '_' and '-', and begin with a letter or digit"
        ]
    if problem := name_problem(name):
        return [f"gold set name {name[:80]!r}: {problem}"]
    target = workspace.gold / name
    if target.exists() and not target.is_dir():
        return [f"{shown(target)}: is a file, and a gold set is a folder: choose another name"]
    if target.exists() and not replace:
        return [f"{shown(target)}: is there already: choose another name, or add --replace"]
    return []


def write_gold(
    card: Card,
    items: Collection[Item],
    ratings: Collection[Rating],
    *,
    workspace: Workspace,
    documents: Collection[GoldDocument] = (),
    replace: bool = False,
    readme: str = "",
    judgements: Sequence[Mapping[str, Any]] = (),
    check: bool = True,
) -> GoldSet:
    """Write Card, Items and Ratings to `gold/<card.name>` of a Workspace, return the GoldSet. It is loaded
    back, unless its rows were held against the format before (`check=False`).

    The new set is complete, and read back without a problem, before it takes its place. What a replaced set
    holds beside its card, items and ratings (a README, a rubric, documents where no new ones are given) is
    carried over.
    InputError: the workspace is the read-only starter, the name is no name or is taken without `replace`, or
    the set would not load; then nothing has been written. `judgements`: what judges said of the items, each
    {item_id, judge, verdict}; they are kept in the set's folder, and are no part of what the set is.
    """
    workspace.require_writable("gold import")
    refuse(name_problems(card.name, workspace=workspace, replace=replace))
    with _drafting(card.name, workspace=workspace) as folder:
        texts = [_without_empty(asdict(document)) for document in documents]
        write_json_lines(folder / ITEMS, map(item_row, items))
        write_json_lines(folder / RATINGS, map(rating_row, ratings))
        for file, rows in ((DOCUMENTS, texts), (JUDGEMENTS, judgements)):
            if rows:
                write_json_lines(folder / file, rows)
        # Half a surrogate pair has no place in TOML; a rater of such a name is shown with a question mark.
        (folder / CARD).write_text(card_text(card), encoding="utf-8", errors="replace", newline="\n")
        if readme and not (folder / "README.md").exists():
            (folder / "README.md").write_text(readme, encoding="utf-8", newline="\n")
        checked = load_gold(folder, workspace=workspace) if check else None
    place = workspace.gold / card.name
    if checked is not None:
        return replace_fields(checked, path=place)
    return GoldSet(card.name, place, card, tuple(items), tuple(ratings), tuple(documents), content_sha(place))


def in_memory(card: Card, items: Sequence[Item], ratings: Sequence[Rating]) -> GoldSet:
    """Return a GoldSet of a card, items and ratings in memory, with the sha that its files would have."""
    total = hashlib.sha256(card_text(card).encode("utf-8", "replace"))
    for row in (*items, *ratings):
        total.update(orjson.dumps(row))
    nowhere = Path(os.devnull) / card.name  # a place where no file can ever be
    return GoldSet(card.name, nowhere, card, tuple(items), tuple(ratings), (), total.hexdigest())


@contextlib.contextmanager
def _drafting(name: str, *, workspace: Workspace) -> Iterator[Path]:
    """A folder for a set, which takes the set's place when the block ends without an exception; else nothing
    is left of it. What a set of that name holds beside its card, items, ratings and judgements is in it
    already.
    """
    target = (workspace.gold / name).resolve()
    _refuse_while_labelled(target)
    fresh = target.with_name(f".{name}.new-{secrets.token_hex(4)}")
    fresh.mkdir(parents=True)
    try:
        for source in target.iterdir() if target.is_dir() else ():
            if source.is_dir():
                shutil.copytree(source, fresh / source.name)
            elif source.name not in (CARD, ITEMS, RATINGS, JUDGEMENTS, LABELS_LOCK):
                shutil.copy2(source, fresh / source.name)
        yield fresh
        if (target / JUDGEMENTS).exists() and not (fresh / JUDGEMENTS).exists():
            notice(
                f"judgecal: {shown(target / JUDGEMENTS)}: left out, as it belongs to the items of the "
                "replaced set"
            )
        _refuse_while_labelled(target)
        if not target.exists():
            fresh.rename(target)
            return
        old = target.with_name(f".{target.name}.old-{secrets.token_hex(4)}")
        target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            old.rename(target)
            raise
        shutil.rmtree(old)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # gone already where it took its place


def _refuse_while_labelled(folder: Path) -> None:
    """Raters would go on with the items of the set that was there before."""
    lock = folder / LABELS_LOCK
    try:
        with FileLock(lock, timeout=0) if lock.exists() else contextlib.nullcontext():
            pass
    except Timeout:
        raise BusyError(f"{shown(folder)}: people are labelling it: end judgecal gold label first") from None


def add_ratings(
    gold: GoldSet, ratings: Sequence[Rating], *, workspace: Workspace, replace: bool = False
) -> GoldSet:
    """Add Ratings to a GoldSet of a Workspace and return the GoldSet, loaded back; other files stay.

    A rating that is there already with the same label and note is passed over. InputError: a rater
    rated some of these items otherwise, without `replace`; or the set has changed since it was loaded. Then
    nothing has been written.
    """
    workspace.require_writable("gold import")
    old = {(rating.item_id, rating.rater): rating for rating in gold.ratings}
    fresh = {(new.item_id, new.rater): new for new in ratings if old.get((new.item_id, new.rater)) != new}
    taken = Counter(rater for item_id, rater in fresh if (item_id, rater) in old)
    if taken and not replace:
        raise InputError(
            f"{rater!r} rated {count} of the items differently in {RATINGS} of gold set {gold.name!r}: "
            "add --replace to overwrite them, or name the file after who filled it in"
            for rater, count in taken.items()
        )
    if content_sha(gold.path) != gold.sha256:
        path = gold.path / RATINGS
        raise InputError(f"{shown(path)}: the set has changed since it was read: run the command again")
    RatingsFile(gold).put(fresh)
    return load_gold(gold.path, workspace=workspace)


RatingKey = tuple[str, str]
"""(item id, rater): there is one rating of each in a set."""


class RatingsFile:
    """The ratings of a set, in memory and on disk.

    What somebody else writes meanwhile (a sheet is imported, a row mended) is read before the next write, and
    stays.

    Attributes:
        ratings: by item id and rater, in the order of the file.
    """

    def __init__(self, gold: GoldSet) -> None:
        self._folder, self._path = gold.path, gold.path / RATINGS
        self.ratings: dict[RatingKey, Rating] = {}
        self._lines: dict[RatingKey, str] = {}
        self._items = {item.item_id: item for item in gold.items}
        self._read(gold)

    def _read(self, gold: GoldSet) -> None:
        self._seen = self._state()
        text = self._path.read_bytes().decode("utf-8-sig")
        lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
        self.ratings = {(rating.item_id, rating.rater): rating for rating in gold.ratings}
        # A set that loads has one rating on each line that is not blank.
        self._lines = dict(zip(self.ratings, lines, strict=True))

    def _state(self) -> list[tuple[int, int, int]]:
        stats = (path.stat() for path in (self._path, self._folder / ITEMS))
        return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]

    def reread(self) -> bool:
        """Read what somebody else wrote meanwhile in the file; return whether anybody did."""
        if self._state() == self._seen:
            return False
        gold = load_gold(self._folder, labelling=True)
        now = {item.item_id: item for item in gold.items}
        if any(item_id not in now or now[item_id].sha != item.sha for item_id, item in self._items.items()):
            raise InputError(
                f"{shown(self._folder / ITEMS)}: the items have changed since labelling began: end judgecal "
                "gold label and start it again"
            )
        self._read(gold)
        return True

    def put(self, changes: Mapping[RatingKey, Rating | None]) -> None:
        """Write a dict of changes into the file: (item id, rater) -> Rating, None to take it out.

        Raises:
            InputError: somebody changed the set meanwhile, and it no longer loads.
            OSError: the file cannot be written; then it is as it was.
        """
        self.reread()
        fresh = {key: rating for key, rating in changes.items() if self.ratings.get(key) != rating}
        if not fresh:
            return
        lines = {key: line for key, line in self._lines.items() if key not in fresh}
        ratings = {key: rating for key, rating in self.ratings.items() if key not in fresh}
        for key, rating in fresh.items():
            if rating is not None:
                lines[key], ratings[key] = json_line(rating_row(rating)), rating
        write_json_lines(self._path, (), after=lines.values())
        self._lines, self.ratings, self._seen = lines, ratings, self._state()
