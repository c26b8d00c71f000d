"""Judgements as they are read: in rows, of whole items, and as Parquet beside the journal of calls.

A judge of single contexts stands beside labels of whole items by the mean of its verdicts on the contexts, of
yes or no the share of yes (its precision). A judge of pairs stands there by what it said in both orders;
where the two contradict each other, by a tie. Several calls of a judge become one in the same way.
"""

from __future__ import annotations

import dataclasses
import io
import json
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from judgecal.artefacts import SCHEMA, check_schema, validated
from judgecal.engine.log import PRIVATE, now
from judgecal.errors import InputError
from judgecal.goldset import GoldSet
from judgecal.goldset.card import card_text, read_card
from judgecal.goldset.gold_set import CARD
from judgecal.goldset.wording import grouped
from judgecal.judges.protocol import Judge
from judgecal.records import ITEM_UNIT, ORDERS, OTHER, PAIR_UNIT, TIE, Failure, Item, Judgement, Rating
from judgecal.scale import Scale
from judgecal.signatures import CHUNK
from judgecal.workspace import replacing, shown, write_text


def item_scale(judge: Judge) -> Scale:
    """The scale of a judge's verdicts on whole items."""
    return judge.scale.of_means if judge.unit == CHUNK else judge.scale


def whole_items(rows: Sequence[Judgement], scale: Scale | None = None) -> Sequence[Judgement]:
    """Merge Judgements of contexts, or pairs in two orders: a sequence, a Judgement an item and repeat.

    Without a verdict on one of its contexts, or in one order, an item has none. A pair on which a judge
    contradicts itself is a tie, and unscored where its `scale` is known to have none.
    """
    if {*values_of(rows, "unit")} <= {ITEM_UNIT}:
        return rows
    parts = grouped(rows, lambda row: (*row.key[:4], row.unit == ITEM_UNIT))
    return [whole_item(of_item, scale) for of_item in parts.values()]


def whole_item(rows: Sequence[Judgement], scale: Scale | None = None) -> Judgement:
    """Merge the Judgements of an item and repeat, a context or an order each, into a single Judgement."""
    first, verdicts = rows[0], {row.verdict for row in rows}
    if first.unit == ITEM_UNIT:
        return first
    changes: dict[str, Any] = {"unit": ITEM_UNIT, "order": None}
    no_ties = scale is not None and scale.categories and TIE not in scale.categories
    if first.unit == PAIR_UNIT and no_ties and None not in verdicts and verdicts not in ({"A"}, {"B"}):
        error = Failure("inconsistent", "it prefers another answer once the two change places")
        changes |= {"verdict": None, "error": error}
    return _combined(rows, **changes)


def of_calls(judge: str, rows: Sequence[Judgement]) -> Judgement:
    """Merge, under a judge's name, the Judgements of several calls on an item into a single Judgement."""
    first, calls = rows[0], len(rows)
    if calls == 1:  # two names with one fingerprint are one judge and one call
        return first if first.judge == judge else dataclasses.replace(first, judge=judge)
    latencies = [row.latency_s for row in rows if row.latency_s is not None]
    return _combined(
        rows,
        judge=judge,
        judge_fingerprint=f"{first.judge_fingerprint}*{calls}",
        repeat=first.repeat // calls,
        latency_s=max(latencies) if len(latencies) == calls else None,  # they are made side by side
    )


def judged_by(judge: str, calls: int, rows: Iterable[Judgement]) -> list[Judgement]:
    """Return a list of Judgements by a judge, by its name, of `calls` calls, from those of single calls."""
    calls_made = sorted(rows, key=lambda row: row.repeat)
    parts = grouped(calls_made, lambda row: row.key._replace(repeat=row.repeat // calls))
    return [of_calls(judge, part) for part in parts.values() if len(part) == calls]


def _combined(rows: Sequence[Judgement], **changes: Any) -> Judgement:
    """Rows of one item as one: the mean of numbers, the commonest word; none where a row has no verdict.

    Costs, tokens, attempts and times are summed.
    """
    first, failed = rows[0], next((row for row in rows if row.verdict is None), None)
    verdict, reasoning, error = None, first.reasoning, failed.error if failed else None
    if failed is None:
        numbers = [float(row.verdict) for row in rows if isinstance(row.verdict, int | float)]
        (word, n), *others = Counter(row.verdict for row in rows).most_common(2)
        verdict = sum(numbers) / len(numbers) if numbers else word
        if not numbers and others and others[0][1] == n:
            verdict = TIE if first.unit == PAIR_UNIT else None
            tied = f"its verdicts tie: {n} are {word} and {n} {others[0][0]}"
            error = Failure("inconsistent", tied) if verdict is None else None
    if len(rows) > 1:
        names = dict(zip(ORDERS, ("A first", "B first, as A"), strict=True))
        reasons = ((names.get(str(row.order), str(n)), row.reasoning) for n, row in enumerate(rows))
        reasoning = "\n".join(f"[{name}] {text}" for name, text in reasons if text)

    made = [row for row in rows if row.error is None or row.error.kind != "budget"] or rows

    def total(name: str) -> Any:
        values = [getattr(row, name) for row in made]
        return None if None in values else sum(values)

    summed = ("attempts", "latency_s", "prompt_tokens", "completion_tokens", "cost_usd")
    values = {name: total(name) for name in summed} | {"verdict": verdict, "error": error} | changes
    return dataclasses.replace(
        first,
        reasoning=reasoning,
        raw_reply=None if failed is None else failed.raw_reply,
        cached=any(row.cached for row in rows),
        chances=None,  # they are of one call
        why_said=next((row.why_said for row in rows if row.why_said), None),
        replied_at=min((row.replied_at for row in rows if row.replied_at is not None), default=None),
        **values,
    )


def refuse_unfit(judge: Judge, items: Sequence[Item], *, alone: bool = False) -> None:
    """Refuse, for a Judge, Items that it cannot be held against: pairs, single answers, several contexts.

    Args:
        alone: whether each label must be of one context, as a prompt is trained by it.
    """
    of_pairs, n_pairs = judge.unit == PAIR_UNIT, sum(item.pair is not None for item in items)
    unfit = len(items) - n_pairs if of_pairs else n_pairs
    if unfit and judge.kind != "recorded":
        what, are, such = "single answers", "pairs", "pairwise_v1"
        if of_pairs:
            what, are, such = are, what, "correctness_v3"
        raise InputError(
            f"{judge.name} judges {what}, and {unfit} of {len(items)} items are {are}: "
            f"take a judge of {are}, such as {such}@embedded"
        )
    words = set(judge.scale.categories) or {*OTHER}
    if of_pairs and (judge.scale.numeric or not {*OTHER} <= words <= {*OTHER, TIE}):
        given = ", ".join(judge.scale.categories) or judge.scale
        raise InputError(f"{judge.name}: a judge of pairs says A, B or tie, and its verdicts are {given}")
    several = [item.item_id for item in items if len(item.contexts) > 1]
    if several and judge.unit == CHUNK and (alone or not judge.scale.numeric):
        trained = "it is trained by labels of single contexts"
        why = trained if alone else "words have no mean over several contexts"
        raise InputError(
            f"{judge.name} judges single contexts, and {len(several)} of {len(items)} items have several "
            f"({', '.join(several[:3])}): {why}; import a table with one context in each row"
        )


@dataclass(slots=True)
class StoredVerdicts:
    """A count of judgements, a row at a time, for what a result must say of stored replies."""

    n: int = 0  # verdicts that were read from stored replies; a reply of the same run is none
    n_called: int = 0  # all verdicts of models
    oldest: str | None = None  # when the oldest of those replies was given, UTC in ISO 8601
    of_chances: Counter[str] = field(default_factory=Counter)  # why said; empty where not

    def add(self, row: Judgement) -> None:
        """Count a Judgement, where it has a verdict of a model; return nothing."""
        if row.verdict is None or row.model_id is None:
            return
        if row.chances or row.why_said:
            self.of_chances[row.why_said or ""] += 1
        self.extend(StoredVerdicts(int(row.replied_at is not None), 1, row.replied_at))

    def extend(self, other: StoredVerdicts) -> None:
        """Add the counts of another `StoredVerdicts`."""
        self.n += other.n
        self.n_called += other.n_called
        self.of_chances += other.of_chances
        self.oldest = min((at for at in (self.oldest, other.oldest) if at is not None), default=None)

    def notes(self) -> list[str]:
        """Return the notes for a reader, a list of sentences: on tokens' chances and on stored replies."""
        notes, of_chances = [], self.of_chances
        if n := of_chances.total():
            counted = "; ".join(
                f"{count:,} as said, as {why}" for why, count in of_chances.most_common() if why
            )
            begins = f"{of_chances['']:,} of {n:,} verdicts have the chances of their tokens"
            notes.append(f"{begins}, given what the model wrote before them{'; ' * bool(counted)}{counted}")
        if self.oldest is None:
            return notes
        share = f"{self.n:,} of {self.n_called:,}" if self.n < self.n_called else f"all {self.n:,}"
        oldest = f"{self.oldest[:10]} {self.oldest[11:16]} UTC"
        return [
            *notes,
            f"{share} verdicts come from stored replies, which cost nothing; the oldest reply is of {oldest}"
            "; --no-cache asks again",
        ]


def stored_notes(rows: Iterable[Judgement]) -> list[str]:
    """Return notes, a list of sentences, on the stored replies and chances among judgements."""
    counted = StoredVerdicts()
    for row in rows:
        counted.add(row)
    return counted.notes()


ITEMS = "items.parquet"
"""The items of a labelled table with their ratings; the card of its labels lies beside it."""
_ABOUT = "judgecal"
_TYPES: Mapping[str, Any] = {
    "item_id": pl.String, "item_sha": pl.String, "judge": pl.String, "judge_fingerprint": pl.String,
    "repeat": pl.Int64, "verdict": pl.Float64, "word": pl.String, "reasoning": pl.String,
    "raw_reply": pl.String, "error_kind": pl.String, "error_message": pl.String, "attempts": pl.Int64,
    "latency_s": pl.Float64, "prompt_tokens": pl.Int64, "completion_tokens": pl.Int64,
    "cost_usd": pl.Float64, "model_id": pl.String, "cached": pl.Boolean, "replied_at": pl.String,
    "at": pl.String, "unit": pl.String, "order": pl.String, "chances": pl.String, "why_said": pl.String,
}  # fmt: skip
"""A verdict is a number, or on a nominal scale a `word`; `chances` is JSON."""
_USUAL = {field.name: field.default for field in fields(Judgement) if field.default is not MISSING}
_ASIDE = ("word", "error_kind", "error_message", "chances")  # made of other fields
_PLAIN = [name for name in _TYPES if name not in (*_ASIDE, "verdict")]


class VerdictRows(Sequence[Judgement]):
    """Judgements as a polars frame with the columns of `_TYPES`; a row is made a `Judgement` when read."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> VerdictRows:
        """Return the VerdictRows of a polars frame that has some of the columns; others get usual values."""
        usual = {name: _USUAL.get(name) for name in _TYPES if name not in frame.columns}
        more = [pl.lit(value, dtype=_TYPES[name]).alias(name) for name, value in usual.items()]
        return cls(frame.with_columns(more).select(pl.col(name).cast(kind) for name, kind in _TYPES.items()))

    @classmethod
    def from_rows(cls, rows: Sequence[Judgement]) -> VerdictRows:
        """Return the VerdictRows of Judgements."""
        verdicts = [row.verdict for row in rows]
        columns: dict[str, Any] = {name: list(map(operator.attrgetter(name), rows)) for name in _PLAIN} | {
            "verdict": [None if isinstance(verdict, str) else verdict for verdict in verdicts],
            "word": [verdict if isinstance(verdict, str) else None for verdict in verdicts],
            "error_kind": [row.error and row.error.kind for row in rows],
            "error_message": [row.error and row.error.message for row in rows],
            "chances": [row.chances and json.dumps(row.chances) for row in rows],
        }
        return cls(pl.DataFrame(columns, schema=_TYPES))

    @classmethod
    def joined(cls, parts: Sequence[VerdictRows]) -> VerdictRows:
        return cls(pl.concat([part.frame for part in parts]))

    def __getitem__(self, index: Any) -> Any:
        return VerdictRows(self.frame[index]) if isinstance(index, slice) else _row(*self.frame.row(index))

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Judgement]:
        return (_row(*values) for values in self.frame.iter_rows())

    def by_judge(self) -> dict[str, VerdictRows]:
        """Return fingerprint -> VerdictRows of each judge, in the order of their first rows."""
        parts = self.frame.partition_by("judge_fingerprint", as_dict=True, maintain_order=True)
        return {str(fingerprint): VerdictRows(part) for (fingerprint,), part in parts.items()}

    def of(self, judge: str, repeats: int) -> VerdictRows:
        """Return VerdictRows of the first `repeats` repeats (a number), renamed to a judge, by its name."""
        rows = self.frame.filter(pl.col("repeat") < repeats)
        return VerdictRows(rows.with_columns(pl.lit(judge).alias("judge")))

    def write(self, path: Path) -> None:
        """Write the object's own rows as Parquet to a path in one step, unless it holds the same."""
        if not self.frame.drop("at").equals(read_verdicts(path).frame.drop("at")):
            write_frame(path, self.frame, {"at": now()})


def values_of(rows: Sequence[Judgement], name: str) -> list[Any]:
    """Return the list of values, in Judgements, of the field so named."""
    if not isinstance(rows, VerdictRows):
        return list(map(operator.attrgetter(name), rows))
    frame = rows.frame
    if name == "error":
        kinds = frame.select("error_kind", "error_message").iter_rows()
        return [None if kind is None else Failure(kind, message) for kind, message in kinds]
    if name != "verdict" or frame["word"].null_count() == len(frame):
        return frame[name].to_list()
    pairs = zip(frame["verdict"], frame["word"], strict=True)
    return [number if word is None else word for number, word in pairs]


def read_verdicts(path: Path) -> VerdictRows:
    """Read the VerdictRows in the Parquet file at a path; no rows without a file."""
    if not path.is_file():
        return VerdictRows.from_rows([])
    frame, _ = read_frame(path)
    if dict(frame.schema) != {name: kind() for name, kind in _TYPES.items()}:
        raise damaged(path, "its columns are not those of verdicts")
    return VerdictRows(frame)


def write_frame(path: Path, frame: pl.DataFrame, about: Mapping[str, Any]) -> None:
    """Write to a path, as Parquet in one step, a polars frame and a mapping `about` it as metadata."""
    with replacing(path) as draft, draft.open("wb") as file:  # polars takes no name that is not UTF-8
        draft.chmod(PRIVATE)
        frame.write_parquet(file, metadata={_ABOUT: json.dumps({"schema": SCHEMA, **about})})


def read_frame(path: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Read the Parquet at a path: a polars DataFrame and a dict of metadata about it; refuse it damaged."""
    try:
        content = path.read_bytes()
        frame = pl.read_parquet(io.BytesIO(content))
        about: dict[str, Any] = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[_ABOUT])
    except (pl.exceptions.PolarsError, OSError, ValueError, KeyError) as error:
        raise damaged(path, str(error)) from None
    check_schema(about, shown(path))
    return frame, about


def damaged(path: Path, why: str) -> InputError:
    """Return the InputError for a damaged file, from its path and a text `why` it cannot be read."""
    why = " ".join(why.split())[:200]
    return InputError(f"{shown(path)}: cannot be read ({why}): delete it and run the same command again")


@dataclass(frozen=True, slots=True)
class _KeptSet:
    items: tuple[Item, ...]
    ratings: tuple[Rating, ...]


def write_items(folder: Path, gold: GoldSet) -> None:
    """Write into a folder the GoldSet of a table: the card, and items and ratings as Parquet."""
    rows = [("items", gold.items), ("ratings", gold.ratings)]
    frames = [
        pl.DataFrame({"part": name, "json": [orjson.dumps(row).decode() for row in part]})
        for name, part in rows
    ]
    write_text(folder / CARD, card_text(gold.card))
    write_frame(folder / ITEMS, pl.concat(frames), {"sha256": gold.sha256})


def read_set(folder: Path) -> GoldSet:
    """Read the GoldSet that `write_items` wrote into a folder, a path."""
    path, rows = folder / ITEMS, dict[str, list[Any]](items=[], ratings=[])
    frame, about = read_frame(path)
    try:
        for part, text in frame.select("part", "json").iter_rows():
            rows[part].append(orjson.loads(text))
    except (pl.exceptions.PolarsError, ValueError, KeyError) as error:
        raise damaged(path, str(error)) from None
    read, card = validated(_KeptSet, rows, shown(path)), read_card(folder / CARD)
    return GoldSet(card.name, folder, card, read.items, read.ratings, (), about["sha256"])


def _row(*values: Any) -> Judgement:
    """A row of a frame, its columns in the order of `_TYPES`."""
    judged, (verdict, word, reasoning, raw_reply, kind, message), more = values[:5], values[5:11], values[11:]
    *called, chances, why_said = more
    error = None if kind is None else Failure(kind, message)
    label = verdict if word is None else word
    chances = chances and json.loads(chances)
    whole: list[Any] = [*judged, label, reasoning, raw_reply, error, *called, chances, why_said]
    return Judgement(*whole)
