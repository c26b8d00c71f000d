"""Write a gold set: all of it into a folder beside its place, then one rename; and the ratings of a set that
people are labelling. Never half a set.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from judgecal.errors import BusyError, InputError, notice, refuse
from judgecal.goldset.card import Card, card_text, read_card
from judgecal.goldset.gold_set import (
    CARD,
    DOCUMENTS,
    ITEMS,
    JUDGEMENTS,
    LABELS_LOCK,
    RATINGS,
    GoldSet,
    content_sha,
    load_gold,
)
from judgecal.goldset.rows import Document, document_row, item_row, rating_row
from judgecal.records import Item, Rating
from judgecal.tables import json_line, write_json_lines
from judgecal.workspace import Workspace, name_problem, shown

_ABANDONED = 600.0  # seconds without a line, after which nobody is writing a draft any more
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def name_problems(name: str, *, workspace: Workspace, replace: bool) -> list[str]:
    """Why a set of this name cannot be written, if it cannot."""
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
        return [f"{shown(target)}: is there already: choose another name, or give --replace to replace it"]
    return []


def write_gold(
    card: Card,
    items: Iterable[Item],
    ratings: Iterable[Rating],
    *,
    workspace: Workspace,
    documents: Iterable[Document] = (),
    replace: bool = False,
    readme: str = "",
    judgements: Sequence[Mapping[str, Any]] = (),
) -> GoldSet:
    """Write a set to `gold/<card.name>` and load it back.

    The new set is complete, and read back without a problem, before it takes its place. What a replaced set
    holds beside its card, items and ratings (a README, a rubric, documents where no new ones are given) is
    carried over.
    InputError: the workspace is the read-only starter, the name is no name or is taken without `replace`, or
    the set would not load; then nothing has been written. `judgements`: what judges said of the items, each
    {item_id, judge, verdict}; they are kept in the set's folder, and are no part of what the set is.
    """
    workspace.require_writable("gold import")
    refuse(name_problems(card.name, workspace=workspace, replace=replace))
    with drafting(card.name, workspace=workspace) as draft:
        for item in items:
            draft.add_item(item_row(item))
        for rating in ratings:
            draft.add_rating(rating)
        draft.complete(card, documents=documents, judgements=judgements, readme=readme)
        load_gold(draft.folder, workspace=workspace)
    return load_gold(card.name, workspace=workspace)


class Draft:
    """A set as it is written, row by row, into a folder beside its place; no row is held."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._items, self._ratings = (
            (folder / name).open("w", encoding="utf-8", newline="\n") for name in (ITEMS, RATINGS)
        )

    def add_item(self, row: Mapping[str, Any]) -> None:
        """Write a line of items.jsonl."""
        self._items.write(f"{json_line(row)}\n")

    def add_rating(self, rating: Rating) -> None:
        """Write a line of ratings.jsonl."""
        self._ratings.write(f"{json_line(rating_row(rating))}\n")

    def complete(
        self,
        card: Card,
        *,
        documents: Iterable[Document] = (),
        judgements: Iterable[Mapping[str, Any]] = (),
        readme: str = "",
    ) -> None:
        """Write what stands beside the rows; documents and a README stay where none are given."""
        self.close()
        # Half a surrogate pair has no place in TOML; a rater of such a name is shown with a question mark.
        (self.folder / CARD).write_text(card_text(card), encoding="utf-8", errors="replace", newline="\n")
        read_card(self.folder / CARD)
        for name, rows in ((DOCUMENTS, map(document_row, documents)), (JUDGEMENTS, iter(judgements))):
            if (first := next(rows, None)) is not None:
                write_json_lines(self.folder / name, chain([first], rows))
        if readme and not (self.folder / "README.md").exists():
            (self.folder / "README.md").write_text(readme, encoding="utf-8", newline="\n")

    def close(self) -> None:
        """End the files of the rows, which are on the disk then."""
        for file in (self._items, self._ratings):
            if not file.closed:
                file.flush()
                os.fsync(file.fileno())
                file.close()


@contextlib.contextmanager
def drafting(name: str, *, workspace: Workspace) -> Iterator[Draft]:
    """A draft of a set, which takes its place, whole, when the block ends without an exception; else nothing
    is left of it. What a set of that name holds beside its card, items, ratings and judgements is in it
    already.
    """
    target = (workspace.gold / name).resolve()
    _refuse_while_labelled(target)
    _clear_away(target)
    fresh = target.with_name(f".{name}.new-{secrets.token_hex(4)}")
    fresh.mkdir(parents=True)
    try:
        _carry_over(target, fresh)
        with contextlib.closing(Draft(fresh)) as draft:
            yield draft
        if (target / JUDGEMENTS).exists() and not (fresh / JUDGEMENTS).exists():
            notice(
                f"judgecal: {shown(target / JUDGEMENTS)}: left out, as it is of the items of the replaced set"
            )
        _refuse_while_labelled(target)
        _put_in_place(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # gone already where it took its place


def add_ratings(
    gold: GoldSet, ratings: Sequence[Rating], *, workspace: Workspace, replace: bool = False
) -> GoldSet:
    """Add ratings to a set of the workspace and load it back; its other files and its other lines stay as
    they are.

    A rating that is there already with the same label, note and draft is passed over. InputError: a rater
    rated some of these items otherwise, without `replace`; or the set has changed since it was loaded. Then
    nothing has been written.
    """
    workspace.require_writable("gold import")
    old = {(rating.item_id, rating.rater): rating for rating in gold.ratings}
    fresh = {(new.item_id, new.rater): new for new in ratings if old.get((new.item_id, new.rater)) != new}
    taken = Counter(rater for item_id, rater in fresh if (item_id, rater) in old)
    if taken and not replace:
        raise InputError(
            f"{rater!r} rated {count} of these items in {RATINGS} of gold set {gold.name!r} otherwise: give "
            "--replace to overwrite them, or --rater NAME if it is somebody else"
            for rater, count in taken.items()
        )
    path = gold.path / RATINGS
    if content_sha(gold.path) != gold.sha256:
        raise InputError(f"{shown(path)}: the set has changed since it was read: run the command again")
    kept = [line for line in path.read_bytes().decode("utf-8-sig").split("\n") if line.strip()]
    # A set that loads has one rating on each line that is not blank.
    lines = [
        line
        for line, rating in zip(kept, gold.ratings, strict=True)
        if (rating.item_id, rating.rater) not in fresh
    ]
    write_json_lines(path, map(rating_row, fresh.values()), after=[line.removesuffix("\r") for line in lines])
    return load_gold(gold.path, workspace=workspace)


def _carry_over(old: Path, fresh: Path) -> None:
    if not old.is_dir():
        return
    for source in old.iterdir():
        if source.name in (CARD, ITEMS, RATINGS, JUDGEMENTS, LABELS_LOCK):
            continue
        if source.is_dir():
            shutil.copytree(source, fresh / source.name)
        else:
            shutil.copy2(source, fresh / source.name)


def _clear_away(target: Path) -> None:
    """Take away drafts of the set that a killed process left: nobody has written there for some time."""
    for draft in target.parent.glob(f".{glob.escape(target.name)}.new-*"):
        with contextlib.suppress(FileNotFoundError):  # its process has just put it in place
            written = max(path.stat().st_mtime for path in (draft, *draft.iterdir()))
            if time.time() - written > _ABANDONED:
                shutil.rmtree(draft, ignore_errors=True)


def _refuse_while_labelled(folder: Path) -> None:
    """Raters would go on with the items of the set that was there before."""
    lock = folder / LABELS_LOCK
    try:
        with FileLock(lock, timeout=0) if lock.exists() else contextlib.nullcontext():
            pass
    except Timeout:
        raise BusyError(
            f"{shown(folder)}: people are labelling it: end judgecal gold label or adjudicate first"
        ) from None


def _put_in_place(fresh: Path, target: Path) -> None:
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
        self.ratings = {(one.item_id, one.rater): one for one in gold.ratings}
        # A set that loads has one rating on each line that is not blank.
        self._lines = dict(zip(self.ratings, lines, strict=True))
        self._open_end = bool(text) and not text.endswith("\n")

    def _state(self) -> list[tuple[int, int, int]]:
        found = (path.stat() for path in (self._path, self._folder / ITEMS))
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]

    def reread(self) -> bool:
        """Read what somebody else wrote, if anybody did; whether that was so."""
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
        """Write ratings; None takes one out. What is there already as it is to be is not written again.

        Raises:
            InputError: somebody changed the set meanwhile, and it no longer loads.
            OSError: the file cannot be written; then it is as it was.
        """
        self.reread()
        fresh = {key: rating for key, rating in changes.items() if self.ratings.get(key) != rating}
        if not fresh:
            return
        lines = {key: json_line(rating_row(rating)) for key, rating in fresh.items() if rating is not None}
        if self._open_end or self.ratings.keys() & fresh.keys():
            kept = {key: line for key, line in self._lines.items() if key not in fresh}
            write_json_lines(self._path, (), after=(kept | lines).values())
            self._lines, self._open_end = kept | lines, False
        else:
            self._append("".join(f"{line}\n" for line in lines.values()).encode())
            self._lines |= lines
        for key, rating in fresh.items():
            self.ratings.pop(key, None)
            if rating is not None:
                self.ratings[key] = rating
        self._seen = self._state()

    def _append(self, data: bytes) -> None:
        size = self._path.stat().st_size
        try:
            with self._path.open("ab") as file:
                file.write(data)
        except OSError:  # the disk took a part of it: half a line would keep the set from loading
            os.truncate(self._path, size)
            self._seen = self._state()
            raise

    def flush(self) -> None:
        """Have the system put what was written on the disk."""
        with self._path.open("r+b") as file:  # Windows flushes no file that was opened to read
            os.fsync(file.fileno())
