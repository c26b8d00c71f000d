"""The gold set: items, ratings and card, the views on them that every command takes, and how it is read."""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from judgecal.errors import InputError, unknown_name
from judgecal.goldset.card import SPLIT_NAMES, SPLITS, Card, members, try_card
from judgecal.goldset.labels import unexplained
from judgecal.goldset.rows import Document, read_document, read_item, read_rating
from judgecal.goldset.tie_breakers import TieBreaker, tie_breakers
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import GOLD, decode, json_lines, read_bytes
from judgecal.tables.json_files import JsonLines
from judgecal.tables.text import byte_lines
from judgecal.workspace import Workspace, find_workspace, shown


def common_label(labels: Sequence[Label], scale: Scale) -> Label | None:
    """The label that stands for several: the majority (binary, nominal; None on a tie) or the median; None
    for none.

    The median of an even number is the mean of the middle two, so it may lie between two steps of the scale.
    """
    if not labels:
        return None
    if scale.graded:
        return float(statistics.median([float(label) for label in labels]))
    ranked = Counter(labels).most_common(2)
    return None if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else ranked[0][0]


@dataclass(frozen=True)
class GoldSet:
    """A set of items with what people said of them; items, ratings and documents in file order.

    `sha256` is of the content: card, items, ratings and documents, line ends aside. `lines`: the line of each
    row, by the file and the row's ids; empty for a set that was never in a file.
    """

    name: str
    path: Path
    card: Card
    items: tuple[Item, ...]
    ratings: tuple[Rating, ...]
    documents: tuple[Document, ...]
    sha256: str
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scale(self) -> Scale:
        """The people's scale."""
        return self.card.scale

    @cached_property
    def labels(self) -> dict[str, Label]:
        """Gold labels by item id: adjudicated, else majority or median; an unlabelled item is absent."""
        adjudicated = self._labels_of_all.get(GOLD, {})
        found: dict[str, Label] = {}
        for item in self.items:
            label = adjudicated.get(item.item_id)
            if label is None:
                label = common_label(self._human_labels.get(item.item_id, ()), self.scale)
            if label is not None:
                found[item.item_id] = label
        return found

    @cached_property
    def _labels_of_all(self) -> dict[str, dict[str, Label]]:
        by_rater: dict[str, dict[str, Label]] = {}
        for rating in self.ratings:
            if rating.label is not None:
                by_rater.setdefault(rating.rater, {})[rating.item_id] = rating.label
        return by_rater

    @cached_property
    def cannot_tell(self) -> dict[str, int]:
        """rater -> of how many items it could not tell; such a rating is no label anywhere."""
        return dict(sorted(Counter(one.rater for one in self.ratings if one.label is None).items()))

    @cached_property
    def _human_labels(self) -> dict[str, list[Label]]:
        by_item: dict[str, list[Label]] = {}
        for rating in self.ratings:
            if rating.rater != GOLD and rating.label is not None:
                by_item.setdefault(rating.item_id, []).append(rating.label)
        return by_item

    @property
    def raters(self) -> tuple[str, ...]:
        """The human raters by name, sorted; `gold` is none of them."""
        return tuple(sorted(self.ratings_by_rater))

    @cached_property
    def ratings_by_rater(self) -> dict[str, dict[str, Label]]:
        """rater -> item id -> label, without `gold`."""
        return {rater: labels for rater, labels in self._labels_of_all.items() if rater != GOLD}

    @cached_property
    def tie_breakers(self) -> dict[str, TieBreaker]:
        """The human raters who were mostly asked where others differ, by name."""
        return tie_breakers(self.ratings_by_rater, self.scale)

    @cached_property
    def peers(self) -> dict[str, dict[str, Label]]:
        """rater -> item id -> label, of the raters that stand beside each other: no tie-breakers."""
        return {
            rater: labels for rater, labels in self.ratings_by_rater.items() if rater not in self.tie_breakers
        }

    @cached_property
    def tied(self) -> tuple[Item, ...]:
        """The items that two peers or more have rated and that have no gold label, in file order."""
        ratings = Counter(item_id for labels in self.peers.values() for item_id in labels)
        return tuple(
            item for item in self.items if ratings[item.item_id] > 1 and item.item_id not in self.labels
        )

    @cached_property
    def drafts(self) -> dict[str, bool | None]:
        """Questions that a model made -> whether people accepted them; None where nobody has said so yet.

        They are told by the card (`made_by = "llm"`, binary labels) and by an answer that is its own
        reference: its label says whether question and reference hold at all.
        """
        if self.card.made_by != "llm" or self.scale.kind != "binary":
            return {}
        made = {item.group: item.item_id for item in self.items if item.answer in item.reference_answers}
        return {
            group: bool(self.labels[name]) if name in self.labels else None for group, name in made.items()
        }

    @cached_property
    def turned_down(self) -> frozenset[str]:
        """The questions that a model made and people turned down: nothing is asked or measured by them."""
        return frozenset(group for group, accepted in self.drafts.items() if accepted is False)

    def draft_notes(self) -> tuple[str, ...]:
        """What to say of a result on such questions: how many are left out, or accepted by nobody yet."""
        waiting = sum(accepted is None for accepted in self.drafts.values())
        told = {
            "left out, as people turned them down": len(self.turned_down),
            "made by a model, and accepted by nobody yet": waiting,
        }
        return tuple(f"{what}: {n} question{'s' * (n != 1)}" for what, n in told.items() if n)

    def shared_items(self, a: str, b: str) -> tuple[Item, ...]:
        """The items that both raters rated, in file order."""
        both = self.ratings_by_rater.get(a, {}).keys() & self.ratings_by_rater.get(b, {}).keys()
        return tuple(item for item in self.items if item.item_id in both)

    def split_of(self, group: str) -> str:
        """`train`, `dev` or `test`."""
        return self.card.splits.of(group)

    @cached_property
    def test_groups(self) -> frozenset[str]:
        """The questions of the sealed split, whose items are counted everywhere and shown nowhere."""
        return frozenset(item.group for item in self.items if self.split_of(item.group) == "test")

    @cached_property
    def test_ids(self) -> frozenset[str]:
        """The ids of the items of these questions."""
        return frozenset(item.item_id for item in self.items if item.group in self.test_groups)

    def select(self, split: str, *, without_groups: Collection[str] = ()) -> tuple[Item, ...]:
        """The items of a split (train, dev, test, open or all) in file order, without those of the groups
        that are named, such as those that a judge was trained on; InputError for an unknown split.
        """
        wanted = members(split)
        if wanted is None:
            raise unknown_name("split", split, SPLIT_NAMES)
        left_out = frozenset(without_groups)
        return tuple(
            item
            for item in self.items
            if item.group not in left_out and (split == "all" or self.split_of(item.group) in wanted)
        )

    @staticmethod
    def n_groups(items: Iterable[Item]) -> int:
        """How many questions the items belong to."""
        return len({item.group for item in items})


CARD, ITEMS, RATINGS, DOCUMENTS = "card.toml", "items.jsonl", "ratings.jsonl", "documents.jsonl"
LABELS_LOCK = ".labels.lock"
"""Held by the process that serves the set's labelling page."""
JUDGEMENTS = "judgements.jsonl"
"""What judges said of the items before they came here; no part of what the set is."""


def list_gold(workspace: Workspace) -> list[str]:
    """The names of the sets in a workspace, sorted: the folders of `gold/` that hold a card or items."""
    if not workspace.gold.is_dir():
        return []
    folders = (folder for folder in workspace.gold.iterdir() if not folder.name.startswith("."))
    return sorted(folder.name for folder in folders if _is_set(folder))


def _is_set(folder: Path) -> bool:
    return (folder / CARD).is_file() or (folder / ITEMS).is_file()


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
    folder = _find(name_or_path, workspace)
    card, problems = try_card(folder / CARD)
    problems += _wrong_name(folder, card)
    items = _load_items(folder, problems)
    ratings = _load_ratings(folder, card.scale if card else None, items, problems)
    documents = _load_documents(folder, items, problems)
    problems += (
        _wrong_scale(folder, card, ratings.values()) if card and not problems and not labelling else []
    )
    if problems or card is None:
        raise InputError(problems)
    lines: dict[tuple[str, ...], int] = {(ITEMS, item.item_id): line for line, item in items.rows.items()}
    lines |= {(RATINGS, rating.item_id, rating.rater): line for line, rating in ratings.items()}
    lines |= {(DOCUMENTS, document.document_id): line for line, document in documents.items()}
    return GoldSet(
        name=card.name,
        path=folder,
        card=_with_categories(card, ratings.values()),
        items=tuple(items.rows.values()),
        ratings=tuple(ratings.values()),
        documents=tuple(documents.values()),
        sha256=content_sha(folder),
        lines=lines,
    )


def _wrong_name(folder: Path, card: Card | None) -> list[str]:
    """Results name a set by its card and look it up by its folder; a hidden folder is a set being written."""
    name = folder.absolute().name
    if card is None or card.name == name or name.startswith("."):
        return []
    return [
        f"{shown(folder / CARD)}: the name is {card.name!r} and the folder {name!r}: make them the same, or "
        "a report would look for another set"
    ]


def _wrong_scale(folder: Path, card: Card, ratings: Iterable[Rating]) -> list[str]:
    if not card.scale.graded:
        return []
    why = unexplained(
        [float(rating.label) for rating in ratings if rating.label is not None], card.scale, card.explained
    )
    return [f"{shown(folder / RATINGS)}: {why}"] if why else []


def _find(name_or_path: str | Path, workspace: Workspace | None) -> Path:
    place = workspace or find_workspace()
    names = list_gold(place)
    if str(name_or_path) in names:
        return place.gold / name_or_path
    folder = Path(name_or_path)
    if folder.is_dir():
        if not _is_set(folder):
            raise InputError(f"{shown(folder)}: is no gold set: there is neither {CARD} nor {ITEMS} in it")
        return folder
    raise unknown_name("gold set", str(name_or_path), names)


@dataclass
class _Items:
    """The items read, by line; the ids that others may refer to; whether all ids are known."""

    rows: dict[int, Item] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    complete: bool = True


def _read_rows(path: Path, problems: list[str]) -> JsonLines | None:
    """The rows of one file; None where nothing can be said of its rows."""
    where = shown(path)
    try:
        text, wrong = decode(read_bytes(path), where)
    except InputError as error:
        problems.extend(error.problems)
        return None
    problems.extend(wrong)
    if wrong and not text:
        return None
    lines = json_lines(text, where)
    problems.extend(lines.problems)
    return lines


def _load_items(folder: Path, problems: list[str]) -> _Items:
    path = folder / ITEMS
    lines = _read_rows(path, problems)
    if lines is None:
        return _Items(complete=False)
    where = shown(path)
    if not lines.rows and not lines.problems:
        problems.append(f"{where}:1: the set is empty: a gold set needs at least one item")
    found = _Items(ids=set(lines.lost_ids), complete=len(lines.problems) <= len(lines.lost_ids))
    seen: dict[str, int] = {}
    for line, row in lines.rows:
        item = read_item(row, f"{where}:{line}", problems)
        if item.item_id and seen.setdefault(item.item_id, line) != line:
            first = seen[item.item_id]
            problems.append(
                f"{where}:{line}: item_id {item.item_id!r} stands in line {first} already: ids must differ"
            )
        found.rows[line] = item
        found.ids.add(item.item_id)
    return found


def _load_ratings(folder: Path, scale: Scale | None, items: _Items, problems: list[str]) -> dict[int, Rating]:
    path = folder / RATINGS
    lines = _read_rows(path, problems)
    if lines is None:
        return {}
    where = shown(path)
    found: dict[int, Rating] = {}
    seen: dict[tuple[object, object], int] = {}
    for line, row in lines.rows:
        item_id, rater = row.get("item_id"), row.get("rater")
        rating = read_rating(row, f"{where}:{line}", scale=scale, problems=problems)
        if not isinstance(item_id, str) or not isinstance(rater, str):
            continue
        if item_id and items.complete and item_id not in items.ids:
            problems.append(
                f"{where}:{line}: no item {item_id!r} in {ITEMS}: mend the id or take the row out"
            )
        if seen.setdefault((item_id, rater), line) != line:
            first = seen[item_id, rater]
            problems.append(
                f"{where}:{line}: rater {rater!r} rated item {item_id!r} in line {first} already: keep one "
                f"row"
            )
        if rating is not None:
            found[line] = rating
    return found


def _load_documents(folder: Path, items: _Items, problems: list[str]) -> dict[int, Document]:
    path = folder / DOCUMENTS
    lines = _read_rows(path, problems) if path.exists() else None
    if lines is None:
        return {}
    where = shown(path)
    found: dict[int, Document] = {}
    seen: dict[str, int] = {}
    for line, row in lines.rows:
        found[line] = document = read_document(row, f"{where}:{line}", problems)
        first = seen.setdefault(document.document_id, line)
        if document.document_id and first != line:
            problems.append(
                f"{where}:{line}: document_id {document.document_id!r} stands in line {first} already: ids "
                f"must differ"
            )
    if not lines.problems:
        problems.extend(
            f"{shown(folder / ITEMS)}:{line}: reference document {name!r} is not in {DOCUMENTS}: mend the id "
            "or add the document"
            for line, item in items.rows.items()
            for name in item.reference_documents
            if name not in seen
        )
    return found


def _with_categories(card: Card, ratings: Iterable[Rating]) -> Card:
    """A nominal card that lists no categories has those of its ratings."""
    if card.scale.kind != "nominal" or card.scale.categories:
        return card
    words = {str(rating.label) for rating in ratings if rating.label is not None} | set(card.anchors)
    return replace(card, scale=replace(card.scale, categories=tuple(sorted(words))))


def content_sha(folder: Path) -> str:
    """sha256 over the name, length and text of each of the set's files, whatever its line ends."""
    total = hashlib.sha256()
    for name in (CARD, ITEMS, RATINGS, DOCUMENTS):
        path = folder / name
        if path.exists():
            total.update(f"{name}:{sum(map(len, _unix_lines(path)))}\n".encode())
            for line in _unix_lines(path):
                total.update(line)
    return total.hexdigest()


def _unix_lines(path: Path) -> Iterator[bytes]:
    return (line[:-2] + b"\n" if line.endswith(b"\r\n") else line for line in byte_lines(path))


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """How much of a set a split holds."""

    n_items: int
    n_groups: int


def split_counts(gold: GoldSet) -> dict[str, SplitCounts]:
    """What each of train, dev and test holds."""
    chosen = {split: gold.select(split) for split in SPLITS}
    return {split: SplitCounts(len(items), gold.n_groups(items)) for split, items in chosen.items()}


def require_splits(gold: GoldSet, needed: Mapping[str, int]) -> None:
    """Refuse (InputError) a set whose splits (by name) hold too few questions with a labelled item."""
    problems = []
    for split, least in needed.items():
        found = gold.n_groups([item for item in gold.select(split) if item.item_id in gold.labels])
        if found < least:
            problems.append(
                f"gold set {gold.name!r}: the split {split} has {found} labelled questions and this command "
                f"needs {least}: add questions, or choose another [splits] seed in card.toml before anyone "
                f"looks at a label"
            )
    if problems:
        raise InputError(problems)
