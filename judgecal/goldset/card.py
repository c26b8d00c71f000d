"""card.toml: what a gold set is, where it comes from, what its labels mean, who gave them, and its splits."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Strict, ValidationError, with_config

from judgecal.artefacts import SCHEMA, read_toml, schema_problems, toml_text
from judgecal.errors import InputError
from judgecal.scale import Label, Scale
from judgecal.tables import decode, read_bytes
from judgecal.workspace import shown

CARD_KEPT = ("splits", "licence", "sampling", "labels_by", "rubric", "rubric_sha256", "explained")
"""What an import that replaces a set keeps of its card, beside its raters and anchors."""
SPLITS = ("train", "dev", "test")
"""train gives demonstrations, dev chooses, test is sealed."""

_FORBID = ConfigDict(extra="forbid")
_MEMBERS = {"train": ("train",), "dev": ("dev",), "test": ("test",), "open": ("train", "dev"), "all": SPLITS}
SPLIT_NAMES = tuple(_MEMBERS)
"""What `--split` takes: the three splits, `open` (train and dev) and `all`."""
UNKNOWN_LICENCE = "unknown: see the source"
"""What a card says of the licence where the source does not tell."""


def members(split: str) -> tuple[str, ...] | None:
    """The splits that a `--split` name stands for; None for an unknown name."""
    return _MEMBERS.get(split)


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class Splits:
    """The seed and the shares of a card's `[splits]`; the shares are of questions and sum to 1.

    Which split a question belongs to is decided by its own hash, so it never moves when a set grows.
    """

    seed: Annotated[int, Strict()] = 0
    train: Annotated[float, Strict()] = 0.25
    dev: Annotated[float, Strict()] = 0.30
    test: Annotated[float, Strict()] = 0.45

    def of(self, group: str) -> str:
        """The split of a question: `train`, `dev` or `test`."""
        text = f"{self.seed}:{group}".encode("utf-8", "surrogatepass")
        position = int(hashlib.sha256(text).hexdigest()[:16], 16) / 2**64
        if position < self.train:
            return "train"
        # The shares may sum to 1 only within rounding: without a test share nothing falls there.
        return "dev" if position < self.train + self.dev or self.test == 0.0 else "test"

    def problems(self) -> list[str]:
        """What is wrong with the shares, if anything."""
        shares = {"train": self.train, "dev": self.dev, "test": self.test}
        found = [
            f"{name} must lie between 0 and 1, found {share:g}"
            for name, share in shares.items()
            if not 0.0 <= share <= 1.0
        ]
        total = math.fsum(shares.values())
        if not found and not math.isclose(total, 1.0, abs_tol=1e-9):
            named = ", ".join(f"{name} {share:g}" for name, share in shares.items())
            found.append(f"the shares must sum to 1, found {total:g} ({named}): change one of them")
        return found


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class RaterCard:
    """Who a rater is and what the rater was told; "" where the card does not say."""

    who: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """What card.toml says; a text that it leaves out is "", a sampling or a labeller "unknown".

    `anchors`: what single labels mean, by the label as written. `rubric`: the file with the raters'
    instructions. `explained`: why findings of `gold check` may stand, by their kind.
    """

    name: str
    scale: Scale
    version: str = ""
    licence: str = ""
    source: str = ""
    made_by: str = ""
    sampling: str = "unknown"
    labels_by: str = "unknown"
    rubric: str = ""
    rubric_sha256: str = ""
    anchors: Mapping[str, str] = field(default_factory=dict)
    raters: Mapping[str, RaterCard] = field(default_factory=dict)
    splits: Splits = field(default_factory=Splits)
    explained: Mapping[str, str] = field(default_factory=dict)


class _ScaleTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    kind: str = ""
    min: float | None = None
    max: float | None = None
    step: float | None = None
    pass_at: float | None = None
    categories: list[str] = []
    anchors: dict[str, str] = {}


def _share(splits: Splits) -> Splits:
    if problems := splits.problems():
        raise ValueError(", ".join(problems))
    return splits


def _said(why: str) -> str:
    if not why.strip():
        raise ValueError("empty: say why, or take it out")
    return why


class _CardTable(BaseModel):
    model_config = _FORBID
    name: str = ""
    version: str = ""
    licence: str = ""
    source: str = ""
    made_by: str = ""
    sampling: Literal["random", "stratified", "curated", "unknown"] = "unknown"
    labels_by: Literal["people", "project", "unknown"] = "unknown"
    rubric: str = ""
    rubric_sha256: str = ""
    scale: _ScaleTable = _ScaleTable()
    raters: dict[str, RaterCard] = {}
    splits: Annotated[Splits, AfterValidator(_share)] = Splits()
    explained: dict[str, Annotated[str, AfterValidator(_said)]] = {}


def read_card(path: Path) -> Card:
    """Read a card; InputError lists every problem, each with its line."""
    card, problems = try_card(path)
    if problems or card is None:
        raise InputError(problems)
    return card


def try_card(path: Path) -> tuple[Card | None, list[str]]:
    """Read a card as far as it can be read, with every problem of it; None where its scale cannot be told.

    With the scale known, the labels of a set can be held against it in spite of an unknown key elsewhere.
    """
    try:
        text, problems = decode(read_bytes(path), shown(path))
        table = {} if problems else read_toml(path)
    except InputError as error:
        problems = list(error.problems)
    if problems:
        return None, problems
    reader = _Reader(shown(path), _key_lines(text))
    whole = reader.table(_CardTable, {key: value for key, value in table.items() if key != "schema"})
    labels = whole.scale if whole else reader.scale_alone(table.get("scale", {}))
    scale = None if labels is None else reader.scale(labels)
    if scale is None:
        return None, reader.problems
    name = path.absolute().parent.name
    return (Card(name, scale) if whole is None else reader.card(whole, scale, name)), reader.problems


class _Reader:
    """What a card's tables say, and what is wrong with them, with the line of each key."""

    def __init__(self, where: str, lines: Mapping[tuple[str, ...], int]) -> None:
        self.where, self.lines = where, lines
        self.problems: list[str] = []

    def at(self, keys: Sequence[str]) -> str:
        """`file:line` of a key; of the first line where it is not written out."""
        return f"{self.where}:{self.lines.get(tuple(keys), 1)}"

    def fail(self, what: str, *keys: str) -> None:
        self.problems.append(f"{self.at(keys)}: {what}")

    def table(self, model: type[_CardTable], table: Mapping[str, Any]) -> _CardTable | None:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            self.problems += schema_problems(error, model, self.at)
            return None

    def scale_alone(self, table: Any) -> _ScaleTable | None:
        """The scale of a card that has a problem, which is told already; None where it lies in the scale."""
        try:
            return _ScaleTable.model_validate(table)
        except ValidationError:
            return None

    def card(self, table: _CardTable, scale: Scale, name: str) -> Card:
        self._check_anchors(table.scale.anchors, scale)
        plain = dict(table) | {"name": table.name or name, "scale": scale, "anchors": table.scale.anchors}
        return Card(**plain)

    def scale(self, table: _ScaleTable) -> Scale | None:
        """The scale; None where there is a problem with it."""
        before = len(self.problems)
        kind, low, high = table.kind, table.min, table.max
        if not kind:
            self.fail("no kind in [scale]: write percentage, ordinal, points, binary or nominal", "scale")
        elif kind == "ordinal" and (low is None or high is None or low % 1 or high % 1):
            self.fail("an ordinal scale needs min and max, both whole numbers", "scale", "kind")
        elif kind == "points" and (low is None or high is None):
            self.fail("a points scale needs min and max, and step where its labels have one", "scale", "kind")
        elif kind == "fraction":
            self.fail("fraction is for imports only: store percentages, kind percentage", "scale", "kind")
        else:
            ends = f":{low:g}:{high:g}" if kind in ("ordinal", "points") else ""
            scale = self._parsed(
                f"{kind}{ends}{f':{table.step:g}' if kind == 'points' and table.step else ''}", "kind"
            )
            if scale is not None:
                self._check_ends(scale, table)
                self._check_categories(table)
                scale = self._parsed(str(scale), pass_at=table.pass_at, step=table.step)
            if scale is not None and len(self.problems) == before:
                return replace(scale, categories=tuple(table.categories))
        return None

    def _parsed(self, text: str, *key: str, **more: float | None) -> Scale | None:
        try:
            return Scale.parse(text, **more)
        except InputError as error:
            self.fail(str(error), "scale", *key)
            return None

    def _check_ends(self, scale: Scale, table: _ScaleTable) -> None:
        for key, given, right in (("min", table.min, scale.low), ("max", table.max, scale.high)):
            if given is not None and given != right:
                self.fail(
                    f"{key} of the scale {scale} is {right:g}, found {given:g}: take it out", "scale", key
                )

    def _check_categories(self, table: _ScaleTable) -> None:
        words, keys = table.categories, ("scale", "categories")
        if not all(word.strip() for word in words):
            self.fail(f"categories must be a list of words, found {words!r}", *keys)
        if words and table.kind != "nominal":
            self.fail(f"categories belong to a nominal scale, this one is {table.kind}", *keys)
        if len(set(words)) < len(words):
            self.fail(f"a category stands twice: {words!r}", *keys)

    def _check_anchors(self, anchors: Mapping[str, str], scale: Scale) -> None:
        for label in anchors:
            try:
                scale.read(label)
            except ValueError as error:
                self.fail(
                    f"anchor {label!r} is no label of the scale {scale}: {error}", "scale", "anchors", label
                )


def _key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of each key and each table header written in the plain way (not inside multi-line values)."""
    header: tuple[str, ...] = ()
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        section = re.match(r"\s*\[([^\[\]]+)\]", line)
        key = re.match(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""", line)
        if section:
            header = tuple(_split_key(section[1]))
            lines.setdefault(header, number)
        elif key:
            lines.setdefault((*header, *_split_key(key[1])), number)
    return lines


def _split_key(text: str) -> list[str]:
    parts = re.findall(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""", text)
    return ["".join(part) for part in parts]


def card_text(card: Card) -> str:
    """The card as TOML; `read_card` gives the same card back."""
    table: dict[str, Any] = {"schema": SCHEMA}
    table |= {key: text or None for key, text in asdict(card).items() if isinstance(text, str)}
    table["scale"] = _scale_table(card.scale) | {"anchors": dict(card.anchors) or None}
    table["raters"] = {
        name: {key: text or None for key, text in asdict(rater).items()}
        for name, rater in card.raters.items()
    }
    table["splits"] = asdict(card.splits)
    if card.explained:
        table["explained"] = dict(card.explained)
    return toml_text(table)


def _scale_table(scale: Scale) -> dict[str, Any]:
    ends = scale.graded
    return {
        "kind": scale.kind,
        "min": plain_label(scale.low) if ends else None,
        "max": plain_label(scale.high) if ends else None,
        "step": plain_label(scale.step) if ends and scale.step is not None else None,
        "pass_at": None if scale.pass_at is None else plain_label(scale.pass_at),
        "categories": list(scale.categories) or None,
    }


def plain_label(label: Label) -> Label:
    """A label as files have it: a whole number without a point."""
    return int(label) if isinstance(label, float) and label.is_integer() else label
