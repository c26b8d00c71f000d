"""card.toml: what a gold set is, where it comes from, what its labels mean, and who gave them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.goldset.split import SPLITS, Splits
from judgecal.scale import Scale
from judgecal.tables import decode, read_bytes
from judgecal.workspace import check_keys, read_toml, shown

__all__ = ["CARD_KEPT", "Card", "RaterCard", "read_card", "try_card"]

SAMPLINGS = ("random", "curated", "unknown")
LABELLERS = ("people", "project", "unknown")
TEXTS = (
    "name",
    "version",
    "licence",
    "source",
    "made_by",
    "sampling",
    "labels_by",
    "rubric",
    "rubric_sha256",
)
CARD_KEPT = ("splits", "licence", "sampling", "labels_by", "rubric", "rubric_sha256", "explained")
"""What an import that replaces a set keeps of its card, beside its raters and anchors."""
_KEYS = ("schema", *TEXTS, "scale", "raters", "splits", "explained")
_SCALE_KEYS = ("kind", "min", "max", "step", "pass_at", "categories", "anchors")
RATER_KEYS = ("who", "instructions")
SPLIT_KEYS = ("seed", *SPLITS)


@dataclass(frozen=True, slots=True)
class RaterCard:
    """Who a rater is and what the rater was told; "" where the card does not say."""

    who: str = ""
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """What card.toml says; a text that it leaves out is "", a sampling or a labeller "unknown".

    Attributes:
        name: the set's name.
        scale: what a label is.
        sampling: "random" (from production), "curated" or "unknown".
        labels_by: who gave the labels: "people", "project" (its makers) or "unknown".
        anchors: what single labels mean, by the label as written.
        raters: who the raters are, by name.
        rubric, rubric_sha256: the file with the raters' instructions, and its sha256.
        explained: why findings of `gold check` may stand, by their kind.
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


class _Reader:
    """The parsed file, its lines, and what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.where = shown(path)
        text, self.problems = decode(read_bytes(path), self.where)
        if self.problems:
            raise InputError(self.problems)
        self.lines = _key_lines(text)
        self.table = read_toml(path)

    def at(self, *keys: str) -> str:
        """`file:line` of a key; of the first line where it is not written out."""
        return f"{self.where}:{self.lines.get(keys, 1)}"

    def fail(self, what: str, *keys: str) -> None:
        self.problems.append(f"{self.at(*keys)}: {what}")

    def section(self, table: Mapping[str, Any], *keys: str, known: tuple[str, ...] | None) -> dict[str, Any]:
        """A sub-table; its unknown keys are problems (`known` None: any key will do)."""
        value = table.get(keys[-1], {})
        if not isinstance(value, dict):
            self.fail(f"[{'.'.join(keys)}] must be a table, found {value!r}", *keys)
            return {}
        if known is not None:
            self.only(value, known, *keys)
        return value

    def only(self, table: Mapping[str, Any], known: tuple[str, ...], *keys: str) -> None:
        for key in table:
            self.problems.extend(check_keys({key: None}, known, self.at(*keys, key)))

    def text(self, table: Mapping[str, Any], *keys: str, default: str = "") -> str:
        value = table.get(keys[-1], default)
        if isinstance(value, str):
            return value
        self.fail(f"{'.'.join(keys)} must be text, found {value!r}: put it in quotes", *keys)
        return default

    def number(self, table: Mapping[str, Any], *keys: str) -> float | None:
        value = table.get(keys[-1])
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        self.fail(f"{'.'.join(keys)} must be a number, found {value!r}", *keys)
        return None

    def choice(self, *keys: str, among: tuple[str, ...]) -> str:
        value = self.text(self.table, *keys, default="unknown")
        if value not in among:
            self.fail(f"{keys[-1]} must be one of {', '.join(among)}, found {value!r}", *keys)
        return value


def read_card(path: Path) -> Card:
    """Read a card.

    Raises:
        InputError: lists every problem, each with its line.
    """
    card, problems = try_card(path)
    if problems or card is None:
        raise InputError(problems)
    return card


def try_card(path: Path) -> tuple[Card | None, list[str]]:
    """Read a card as far as it can be read, with every problem of it; None where its scale cannot be told.

    With the scale known, the labels of a set can be held against it in spite of an unknown key elsewhere.
    """
    try:
        reader = _Reader(path)
    except InputError as error:
        return None, list(error.problems)
    table = reader.table
    reader.only(table, _KEYS)
    before = len(reader.problems)
    scale = _read_scale(reader)
    scale_stands = len(reader.problems) == before
    texts = {key: reader.text(table, key) for key in TEXTS if key not in ("name", "sampling", "labels_by")}
    card = Card(
        name=reader.text(table, "name") or path.absolute().parent.name,
        scale=scale,
        sampling=reader.choice("sampling", among=SAMPLINGS),
        labels_by=reader.choice("labels_by", among=LABELLERS),
        anchors=_read_anchors(reader, scale) if scale_stands else {},
        raters=_read_raters(reader),
        splits=_read_splits(reader),
        explained=_read_explained(reader),
        **texts,
    )
    return (card if scale_stands else None), reader.problems


def _read_scale(reader: _Reader) -> Scale:
    section = reader.section(reader.table, "scale", known=_SCALE_KEYS)
    fallback = Scale("nominal", 0.0, 0.0)
    if "kind" not in section:
        reader.fail("no kind in [scale]: write percentage, ordinal, binary or nominal", "scale")
        return fallback
    kind = reader.text(section, "scale", "kind")
    low, high = reader.number(section, "scale", "min"), reader.number(section, "scale", "max")
    step, pass_at = reader.number(section, "scale", "step"), reader.number(section, "scale", "pass_at")
    if kind == "ordinal" and (low is None or high is None or low % 1 or high % 1):
        reader.fail("an ordinal scale needs min and max, both whole numbers", "scale", "kind")
        return fallback
    if kind == "fraction":
        reader.fail("fraction is for imports only: store percentages, kind percentage", "scale", "kind")
        return fallback
    try:
        scale = Scale.parse(f"ordinal:{low:.0f}:{high:.0f}" if kind == "ordinal" else kind)
    except InputError as error:
        reader.fail(str(error), "scale", "kind")
        return fallback
    _check_ends(reader, scale, low=low, high=high)
    try:
        scale = Scale.parse(str(scale), pass_at=pass_at, step=step)
    except InputError as error:
        reader.fail(str(error), "scale")
    return replace(scale, categories=_read_categories(reader, section, kind))


def _check_ends(reader: _Reader, scale: Scale, *, low: float | None, high: float | None) -> None:
    for key, found, right in (("min", low, scale.low), ("max", high, scale.high)):
        if found is not None and found != right:
            reader.fail(
                f"{key} of the scale {scale} is {right:g}, found {found:g}: take it out", "scale", key
            )


def _read_categories(reader: _Reader, section: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    value = section.get("categories", [])
    if not isinstance(value, list) or not all(isinstance(word, str) and word.strip() for word in value):
        reader.fail(f"categories must be a list of words, found {value!r}", "scale", "categories")
        return ()
    if value and kind != "nominal":
        reader.fail(f"categories belong to a nominal scale, this one is {kind}", "scale", "categories")
    if len(set(value)) < len(value):
        reader.fail(f"a category stands twice: {value!r}", "scale", "categories")
    return tuple(value)


def _read_anchors(reader: _Reader, scale: Scale) -> dict[str, str]:
    scale_table = reader.table.get("scale")
    if not isinstance(scale_table, dict):
        return {}
    anchors = reader.section(scale_table, "scale", "anchors", known=None)
    for label in anchors:
        reader.text(anchors, "scale", "anchors", label)
        try:
            scale.read(label)
        except ValueError as error:
            reader.fail(
                f"anchor {label!r} is no label of the scale {scale}: {error}", "scale", "anchors", label
            )
    return {label: str(meaning) for label, meaning in anchors.items()}


def _read_raters(reader: _Reader) -> dict[str, RaterCard]:
    raters = reader.section(reader.table, "raters", known=None)
    found = {}
    for name in raters:
        section = reader.section(raters, "raters", name, known=RATER_KEYS)
        texts = (reader.text(section, "raters", name, key) for key in RATER_KEYS)
        found[name] = RaterCard(*texts)
    return found


def _read_splits(reader: _Reader) -> Splits:
    section = reader.section(reader.table, "splits", known=SPLIT_KEYS)
    seed = section.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        reader.fail(f"seed must be a whole number, found {seed!r}", "splits", "seed")
        seed = 0
    splits = Splits(seed)
    train, dev, test = (reader.number(section, "splits", name) for name in SPLITS)
    splits = Splits(
        seed,
        train=splits.train if train is None else train,
        dev=splits.dev if dev is None else dev,
        test=splits.test if test is None else test,
    )
    reader.problems.extend(splits.problems(reader.at("splits")))
    return splits


def _read_explained(reader: _Reader) -> dict[str, str]:
    section = reader.section(reader.table, "explained", known=None)
    found = {kind: reader.text(section, "explained", kind, default="-") for kind in section}
    for kind, why in found.items():
        if not why.strip():
            reader.fail(f"[explained] {kind} is empty: say why, or take it out", "explained", kind)
    return found


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
