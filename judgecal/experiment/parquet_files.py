"""What an experiment keeps as Parquet: verdicts that no paid call made, and the items of a labelled table."""

from __future__ import annotations

import io
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, overload

import polars as pl

from judgecal.artefacts import SCHEMA, check_schema
from judgecal.engine.log import PRIVATE, now
from judgecal.errors import InputError, refuse
from judgecal.goldset import GoldSet
from judgecal.goldset.card import card_text, read_card
from judgecal.goldset.gold_set import CARD
from judgecal.goldset.load import read_item
from judgecal.goldset.write import item_row, text_columns
from judgecal.records import Failure, Item, Judgement, Rating
from judgecal.workspace import replacing, shown, write_text

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
_plain_values = operator.attrgetter(*_PLAIN)


class VerdictRows(Sequence[Judgement]):
    """Judgements as a polars frame with the columns of `_TYPES`; a row is made a `Judgement` when read."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    @classmethod
    def from_frame(cls, frame: pl.DataFrame) -> VerdictRows:
        """Rows of a frame that has some of the columns; the others hold what a `Judgement` has by default."""
        usual = {name: _USUAL.get(name) for name in _TYPES if name not in frame.columns}
        more = [pl.lit(value, dtype=_TYPES[name]).alias(name) for name, value in usual.items()]
        return cls(frame.with_columns(more).select(pl.col(name).cast(kind) for name, kind in _TYPES.items()))

    @classmethod
    def from_rows(cls, rows: Sequence[Judgement]) -> VerdictRows:
        """The same of judgements."""
        plain = zip(*map(_plain_values, rows), strict=True) if rows else [()] * len(_PLAIN)
        columns: dict[str, Any] = dict(zip(_PLAIN, plain, strict=True))
        words = [isinstance(row.verdict, str) for row in rows]
        columns |= {
            "verdict": [None if word else row.verdict for row, word in zip(rows, words, strict=True)],
            "word": [row.verdict if word else None for row, word in zip(rows, words, strict=True)],
            "error_kind": [row.error and row.error.kind for row in rows],
            "error_message": [row.error and row.error.message for row in rows],
            "chances": [row.chances and json.dumps(row.chances) for row in rows],
        }
        series = {name: pl.Series(values, dtype=_TYPES[name]) for name, values in columns.items()}
        return cls.from_frame(pl.DataFrame(series))

    @classmethod
    def joined(cls, parts: Sequence[VerdictRows]) -> VerdictRows:
        return cls(pl.concat([part.frame for part in parts]))

    @overload
    def __getitem__(self, index: int) -> Judgement: ...
    @overload
    def __getitem__(self, index: slice) -> VerdictRows: ...
    def __getitem__(self, index: int | slice) -> Judgement | VerdictRows:
        return VerdictRows(self.frame[index]) if isinstance(index, slice) else _row(*self.frame.row(index))

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Judgement]:
        return (_row(*values) for values in self.frame.iter_rows())

    def values(self, name: str) -> list[Any]:
        """A field of all rows."""
        if name == "error":
            kinds = self.frame.select("error_kind", "error_message").iter_rows()
            return [None if kind is None else Failure(kind, message) for kind, message in kinds]
        if name != "verdict" or self.frame["word"].null_count() == len(self):
            return self.frame[name].to_list()
        pairs = zip(self.frame["verdict"], self.frame["word"], strict=True)
        return [number if word is None else word for number, word in pairs]

    def by_judge(self) -> dict[str, VerdictRows]:
        """The rows of each judge, by its fingerprint, in the order of their first rows."""
        parts = self.frame.partition_by("judge_fingerprint", as_dict=True, maintain_order=True)
        return {str(fingerprint): VerdictRows(part) for (fingerprint,), part in parts.items()}

    def of(self, judge: str, repeats: int) -> VerdictRows:
        """The first repeats, under the name of a judge."""
        rows = self.frame.filter(pl.col("repeat") < repeats)
        return VerdictRows(rows.with_columns(pl.lit(judge).alias("judge")))

    def write(self, path: Path) -> None:
        """Write them in one step, so that no reader meets half of the file; not where it holds the same."""
        if not self.frame.drop("at").equals(read_verdicts(path).frame.drop("at")):
            write_frame(path, self.frame, {"at": now()})


def values_of(rows: Sequence[Judgement], name: str) -> list[Any]:
    """A field of all rows, without a `Judgement` for each where they lie in a frame."""
    if isinstance(rows, VerdictRows):
        return rows.values(name)
    return list(map(operator.attrgetter(name), rows))


def read_verdicts(path: Path) -> VerdictRows:
    """The verdicts that an experiment keeps beside its journal; none where there is no such file."""
    if not path.is_file():
        return VerdictRows.from_rows([])
    frame, _ = read_frame(path)
    if dict(frame.schema) != {name: kind() for name, kind in _TYPES.items()}:
        raise damaged(path, "its columns are not those of verdicts")
    return VerdictRows(frame)


def write_frame(path: Path, frame: pl.DataFrame, about: Mapping[str, Any]) -> None:
    """Write a frame as Parquet in one step, readable by its owner alone, as it holds users' texts."""
    with replacing(path) as draft, draft.open("wb") as file:  # polars takes no name that is not UTF-8
        draft.chmod(PRIVATE)
        frame.write_parquet(file, metadata={_ABOUT: json.dumps({"schema": SCHEMA, **about})})


def read_frame(path: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A frame and what `write_frame` was told about it; InputError: it is damaged, or of a later schema."""
    try:
        content = path.read_bytes()
        frame = pl.read_parquet(io.BytesIO(content))
        about: dict[str, Any] = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[_ABOUT])
    except (pl.exceptions.PolarsError, OSError, ValueError, KeyError) as error:
        raise damaged(path, str(error)) from None
    check_schema(about, shown(path))
    return frame, about


def damaged(path: Path, why: str) -> InputError:
    """The refusal of a file that `write_frame` did not write so."""
    why = " ".join(why.split())[:200]
    return InputError(f"{shown(path)}: cannot be read ({why}): delete it and run the same command again")


_TEXTS = ("item_id", "group", "question", "answer", "system")


def write_items(folder: Path, gold: GoldSet) -> None:
    """Keep the set of a labelled table: its card, and its items with their ratings as one Parquet file."""
    words = [isinstance(rating.label, str) for rating in gold.ratings]
    labels = [None if word else rating.label for rating, word in zip(gold.ratings, words, strict=True)]
    texts = [rating.label if word else None for rating, word in zip(gold.ratings, words, strict=True)]
    given = pl.DataFrame(
        {
            "item_id": pl.Series([rating.item_id for rating in gold.ratings], dtype=pl.String),
            "rater": pl.Series([rating.rater for rating in gold.ratings], dtype=pl.String),
            "label": pl.Series(labels, dtype=pl.Float64),
            "word": pl.Series(texts, dtype=pl.String),
            "note": pl.Series([rating.note for rating in gold.ratings], dtype=pl.String),
        }
    )
    by_item = given.group_by("item_id", maintain_order=True).agg(
        pl.struct(*given.columns[1:]).alias("ratings")
    )
    columns = text_columns(gold.items)
    if columns is None or "reference_answer" in columns:
        rows = [item_row(item) for item in gold.items]
        columns = {name: [row.pop(name, None) for row in rows] for name in _TEXTS}
        columns["more"] = [json.dumps(row) if row else None for row in rows]
    none: list[str | None] = [None] * len(gold.items)
    columns = {name: columns.get(name, none) for name in (*_TEXTS, "more")}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    rated = frame.join(by_item, on="item_id", how="left", maintain_order="left")
    rated = rated.with_columns(pl.col("ratings").fill_null([]))
    write_text(folder / CARD, card_text(gold.card))
    write_frame(folder / ITEMS, rated, {"sha256": gold.sha256})


def read_set(folder: Path) -> GoldSet:
    frame, about = read_frame(folder / ITEMS)
    items, ratings, problems = list[Item](), list[Rating](), list[str]()
    for item_id, group, question, answer, system, more, given in frame.iter_rows():
        if more is None and question is not None and answer is not None:
            items.append(Item(item_id, group, question, answer, system=system))
        else:
            row = dict(zip(_TEXTS, (item_id, group, question, answer, system), strict=True))
            items.append(read_item(row | json.loads(more or "{}"), shown(folder / ITEMS), problems))
        for rating in given:
            label = rating["label"] if rating["word"] is None else rating["word"]
            ratings.append(Rating(item_id, rating["rater"], label, rating["note"]))
    refuse(problems)
    card = read_card(folder / CARD)
    return GoldSet(card.name, folder, card, tuple(items), tuple(ratings), (), about["sha256"])


def _row(*values: Any) -> Judgement:
    """A row of a frame, its columns in the order of `_TYPES`."""
    judged, (verdict, word, reasoning, raw_reply, kind, message), more = values[:5], values[5:11], values[11:]
    *called, chances, why_said = more
    error = None if kind is None else Failure(kind, message)
    label = verdict if word is None else word
    chances = chances and json.loads(chances)
    whole: list[Any] = [*judged, label, reasoning, raw_reply, error, *called, chances, why_said]
    return Judgement(*whole)
