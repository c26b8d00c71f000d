"""The gold set: items, ratings and card, the views on them that every command takes, and who breaks ties."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from judgecal.errors import listed, refuse, unknown_name
from judgecal.goldset.card import MEMBERS, SPLIT_NAMES, SPLITS, Card
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import GOLD, Columns

CARD, ITEMS, RATINGS, DOCUMENTS = "card.toml", "items.jsonl", "ratings.jsonl", "documents.jsonl"
LABELS_LOCK = ".labels.lock"
"""Held by the process that serves the set's labelling page."""
JUDGEMENTS = "judgements.jsonl"
"""What judges said of the items before they came here; no part of what the set is."""

_LEAST_ASKED = 10
_MOSTLY = 0.5
_MORE_OFTEN = 2.0
_BY_CHANCE = 3.3  # standard deviations; about one in two thousand


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """A text of the set's corpus."""

    document_id: str
    title: str | None
    text: str


Rows = Sequence[Item] | Sequence[Rating] | Sequence[GoldDocument]
Findings = Iterator[tuple[str | Rows, str]]
"""What a check finds: where each stands (as it is printed, or rows of the set), and its message."""


def common_label(labels: Sequence[Label], scale: Scale) -> Label | None:
    """Return the Label for several labels on a Scale: majority (None on a tie) or median; None for none.

    The median of an even number is the mean of the middle two, so it may lie between two steps of the scale.
    """
    if not labels:
        return None
    if len(labels) == 1:
        return labels[0]
    if scale.graded:
        return float(statistics.median([float(label) for label in labels]))
    ranked = Counter(labels).most_common(2)
    return None if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else ranked[0][0]


@dataclass(frozen=True, repr=False)
class GoldSet:
    """A set of items with what people said of them; items, ratings and documents in file order.

    `sha256` is of the content: card, items, ratings and documents, line ends aside. `lines`: the line of each
    row of each file, in file order; empty for a set that was never in a file.
    """

    name: str
    path: Path
    card: Card
    items: tuple[Item, ...]
    ratings: tuple[Rating, ...]
    documents: tuple[GoldDocument, ...]
    sha256: str
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict, repr=False, compare=False)
    read_frame: ClassVar[Callable[..., GoldSet]]  # set by imports.py, which lies above

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        labels: str | Sequence[str] = (),
        scale: str | Scale | None = None,
        columns: Columns | None = None,
        name: str = "frame",
        pass_at: float | None = None,
        mapping: Mapping[str, str] | None = None,
        labels_by: Literal["people", "project"] | None = None,
        force: bool = False,
        save: bool = False,
        replace: bool = False,
    ) -> GoldSet:
        """Return the GoldSet read from a frame, polars or pandas, as `gold import` reads a table.

        What `columns` leaves open has the column of its usual name, such as `group`; what was understood,
        and the columns that are left, are said on stderr.

        Args:
            labels: a column for each rater; an empty cell is a missing label.
            scale: of the labels, as `percentage` or `ordinal:1:5`; told by the labels where not given.
            columns: which column is what, such as `Columns("question", "answer", contexts=("passages",))`.
            pass_at: the people's pass mark, on the scale of the labels.
            mapping: label cells to be read as others, `{"correct": "yes"}`; as "" there is no label.
            labels_by: who gave the labels; people where not given.
            force: keep a scale of which the labels use a small part only.
            save: write it to the current workspace, as gold/`name`, where commands find it; else nowhere.
            replace: also over a set of that name, whose splits stay.
        """
        columns = dataclasses.replace(columns or Columns(), usual=True)
        if labels:
            raters = (labels,) if isinstance(labels, str) else tuple(labels)
            columns = dataclasses.replace(columns, labels=raters)
        if isinstance(scale, Scale):
            pass_at = scale.pass_at if pass_at is None else pass_at
            scale = "fraction" if scale.from_fraction else str(scale)
        return cls.read_frame(
            frame,
            columns=columns,
            name=name,
            scale=scale,
            pass_at=pass_at,
            mapping=mapping,
            labels_by=labels_by,
            force=force,
            save=save,
            replace=replace,
        )

    def __repr__(self) -> str:
        n_raters, n_groups = len(self.raters), self.n_groups(self.items)
        raters = f"{n_raters} rater{'s' * (n_raters != 1)}" if n_raters else "nobody yet"
        return (
            f"GoldSet {self.name}: {len(self.items):,} items on {n_groups:,} questions, {self.scale} labels "
            f"by {raters}"
        )

    @property
    def scale(self) -> Scale:
        return self.card.scale

    @cached_property
    def labels(self) -> dict[str, Label]:
        """Gold labels by item id: adjudicated, else majority or median; an unlabelled item is absent."""
        settled: dict[str, Label | None] = {}
        if len(self.ratings_by_rater) == 1:
            settled.update(*self.ratings_by_rater.values())
        else:
            ratings = self.ratings_by_item.items()
            settled = {item_id: common_label([*by.values()], self.scale) for item_id, by in ratings}
        settled.update(self._labels_of_all.get(GOLD, {}))
        gold = {item.item_id: settled.get(item.item_id) for item in self.items}
        return {item_id: common for item_id, common in gold.items() if common is not None}

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
        return dict(sorted(Counter(rating.rater for rating in self.ratings if rating.label is None).items()))

    @property
    def raters(self) -> tuple[str, ...]:
        """The human raters by name, sorted; `gold` is none of them."""
        return tuple(sorted(self.ratings_by_rater))

    @cached_property
    def ratings_by_rater(self) -> dict[str, dict[str, Label]]:
        """rater -> item id -> label, without `gold`."""
        return {rater: labels for rater, labels in self._labels_of_all.items() if rater != GOLD}

    @cached_property
    def ratings_by_item(self) -> dict[str, dict[str, Label]]:
        """item id -> rater -> label, without `gold`."""
        return _by_item(self.ratings_by_rater)

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
        if len(self.peers) < 2:
            return ()
        ratings = Counter(item_id for labels in self.peers.values() for item_id in labels)
        return tuple(
            item for item in self.items if ratings[item.item_id] > 1 and item.item_id not in self.labels
        )

    @cached_property
    def turned_down(self) -> frozenset[str]:
        """The questions that a model made and people turned down: the label of an answer that is its own
        reference says whether question and reference hold. Nothing is asked or measured by them.
        """
        if self.card.made_by != "llm" or self.scale.kind != "binary":
            return frozenset()
        drafts = (item for item in self.items if item.answer in item.reference_answers)
        return frozenset(item.group for item in drafts if self.labels.get(item.item_id) == 0.0)

    def shared_items(self, a: str, b: str) -> tuple[Item, ...]:
        """Return a tuple of Items that two raters, by names `a` and `b`, have rated, in file order."""
        ratings = self.ratings_by_rater
        shared = ratings.get(a, {}).keys() & ratings.get(b, {}).keys()
        return tuple(item for item in self.items if item.item_id in shared)

    def split_of(self, group: str) -> str:
        """Return the name of the split that a group, by its name (a question), belongs to."""
        if group not in self._splits:
            self._splits[group] = self.card.splits.of(group)
        return self._splits[group]

    @cached_property
    def _splits(self) -> dict[str, str]:
        return {}

    @cached_property
    def test_groups(self) -> frozenset[str]:
        """The questions of the sealed split, whose items are counted everywhere and shown nowhere."""
        return frozenset(item.group for item in self.items if self.split_of(item.group) == "test")

    @cached_property
    def test_ids(self) -> frozenset[str]:
        return frozenset(item.item_id for item in self.items if item.group in self.test_groups)

    def select(self, split: str, *, without_groups: Collection[str] = ()) -> tuple[Item, ...]:
        """Return the Items of a split (train, dev, test, open or all) in file order. Those of
        `without_groups` are left out; InputError for an unknown split.
        """
        if split not in MEMBERS:
            raise unknown_name("split", split, SPLIT_NAMES)
        wanted, left_out = MEMBERS[split], frozenset(without_groups)
        return tuple(
            item
            for item in self.items
            if item.group not in left_out and (split == "all" or self.split_of(item.group) in wanted)
        )

    def place(self, rows: str | Rows) -> str:
        """Return a text on where rows (an item's id or Rows) of this set stand: lines, id or file alone."""
        if isinstance(rows, str):
            return rows
        places: dict[str, None] = {}
        for row in rows:
            file, ids = _row_name(row)
            line = self._places.get((file, *ids))
            unknown = row.item_id if isinstance(row, Item) else file
            places[unknown if line is None else f"{file}:{line}"] = None
        return listed(list(places))

    @cached_property
    def _places(self) -> dict[tuple[str, ...], int]:
        """The line of each row by its file and ids, for messages alone: it is larger than the rows."""
        rows: tuple[Item | Rating | GoldDocument, ...] = (*self.items, *self.ratings, *self.documents)
        lines = (line for file in (ITEMS, RATINGS, DOCUMENTS) for line in self.lines.get(file, ()))
        names = (_row_name(row) for row in rows)
        return {(file, *ids): line for (file, ids), line in zip(names, lines, strict=False)}

    @staticmethod
    def n_groups(items: Iterable[Item]) -> int:
        """How many questions the items belong to."""
        return len({item.group for item in items})


def _row_name(row: Item | Rating | GoldDocument) -> tuple[str, tuple[str, ...]]:
    """The file that a row stands in, and its ids."""
    if isinstance(row, Rating):
        return RATINGS, (row.item_id, row.rater)
    return (ITEMS, (row.item_id,)) if isinstance(row, Item) else (DOCUMENTS, (row.document_id,))


@dataclass(frozen=True, slots=True)
class TieBreaker:
    """Two others differ on `differ` of `n` items that it rated, and on `rest_differ` of `rest` others."""

    n: int
    differ: int
    rest: int
    rest_differ: int

    @property
    def why(self) -> str:
        """What makes the rater one, to stand behind its name."""
        return (
            f"they were asked mostly about answers on which the others differ ({self.differ} of "
            f"{self.n}; {self.rest_differ} of the {self.rest} that they were not asked about)"
        )

    @property
    def shown(self) -> bool:
        """Whether others differ on over half of its items, twice as often as elsewhere, and not by chance."""
        if self.n < _LEAST_ASKED or self.rest < _LEAST_ASKED:
            return False
        share, elsewhere = self.differ / self.n, self.rest_differ / self.rest
        if share <= _MOSTLY or share < _MORE_OFTEN * elsewhere:
            return False
        expected = max(elsewhere, 1.0 / (self.n + 1))
        return (share - expected) / math.sqrt(expected * (1.0 - expected) / self.n) > _BY_CHANCE


def tie_breakers(ratings_by_rater: Mapping[str, Mapping[str, Label]], scale: Scale) -> dict[str, TieBreaker]:
    """Return rater -> TieBreaker, from rater -> item -> Label and a Scale: raters of disputed items.

    The rule: of a rater's items with two others or more these differ on more than half, at least twice as
    often as raters differ on the items that this one was not given, and by more than 3.3 standard errors; ten
    items of either kind at least. Two labels differ where they are other words or lie a step, and a tenth of
    the range, apart.
    """
    rated, contested = Counter[str](), Counter[str]()  # items with two raters or more; "" counts all of them
    with_others, others_differ = Counter[str](), Counter[str]()  # with two others or more
    if len(ratings_by_rater) < 3:
        return {}
    for by_rater in _by_item(ratings_by_rater).values():
        if len(by_rater) < 2:
            continue
        ordered = sorted(by_rater.values(), key=_order(scale))
        ends_differ = differ(ordered, scale)
        for rater in ("", *by_rater):
            rated[rater] += 1
            contested[rater] += ends_differ
        for rater, label in by_rater.items() if len(ordered) > 2 else ():
            lowest = ordered[1] if label == ordered[0] else ordered[0]
            highest = ordered[-2] if label == ordered[-1] else ordered[-1]
            with_others[rater] += 1
            others_differ[rater] += differ((lowest, highest), scale)
    counts = {
        rater: TieBreaker(
            with_others[rater],
            others_differ[rater],
            rated[""] - rated[rater],
            contested[""] - contested[rater],
        )
        for rater in sorted(ratings_by_rater)
    }
    return {rater: count for rater, count in counts.items() if count.shown}


def _by_item(ratings_by_rater: Mapping[str, Mapping[str, Label]]) -> dict[str, dict[str, Label]]:
    by_item: defaultdict[str, dict[str, Label]] = defaultdict(dict)
    for rater, labels in ratings_by_rater.items():
        for item_id, label in labels.items():
            by_item[item_id][rater] = label
    return dict(by_item)


def _order(scale: Scale) -> Callable[[Label], Any]:
    return float if scale.numeric else str


def tenth(scale: Scale) -> float:
    """What counts as far on a numeric scale: one step of it, and at least 10% of its range."""
    return max(scale.step or 0.0, 0.1 * scale.span)


def differ(labels: Collection[Label], scale: Scale) -> bool:
    """Return whether labels (of an item) differ on a Scale: other words, or a step and a tenth apart."""
    low, high = min(labels, key=_order(scale)), max(labels, key=_order(scale))
    return float(high) - float(low) >= tenth(scale) - 1e-9 if scale.numeric else low != high


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """How much of a set a split holds."""

    n_items: int
    n_groups: int


def split_counts(gold: GoldSet) -> dict[str, SplitCounts]:
    """Return split name -> SplitCounts (items and questions) of a GoldSet."""
    sizes = Counter(item.group for item in gold.items)
    chosen = {split: list[int]() for split in SPLITS}
    for group, size in sizes.items():
        chosen[gold.split_of(group)].append(size)
    return {split: SplitCounts(sum(each), len(each)) for split, each in chosen.items()}


def require_splits(gold: GoldSet, needed: Mapping[str, int]) -> None:
    """Refuse a GoldSet that has fewer labelled questions than `needed`, a dict split name -> number."""
    labelled = {
        split: gold.n_groups(item for item in gold.select(split) if item.item_id in gold.labels)
        for split in needed
    }
    refuse([
        f"gold set {gold.name!r}: the split {split} has {labelled[split]} labelled questions and this "
        f"command needs {least}: add questions, or choose another [splits] seed in card.toml before anyone "
        "looks at a label"
        for split, least in needed.items()
        if labelled[split] < least
    ])  # fmt: skip
