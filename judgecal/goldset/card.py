"""card.toml: what a gold set is, where it comes from, what its labels mean, who gave them, and its splits."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

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

MEMBERS = {"train": ("train",), "dev": ("dev",), "test": ("test",), "open": ("train", "dev"), "all": SPLITS}
"""The splits that a `--split` name stands for: one of the three, `open` (train and dev) or `all`."""
SPLIT_NAMES = tuple(MEMBERS)
UNKNOWN_LICENCE = "unknown: see the source"
"""What a card says of the licence where the source does not tell."""
_FORBID = ConfigDict(extra="forbid")


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
        """Return the name of the split, train, dev or test, of a group's name (a question), by its hash."""
        text = f"{self.seed}:{group}".encode("utf-8", "surrogatepass")
        position = int(hashlib.sha256(text).hexdigest()[:16], 16) / 2**64
        if position < self.train:
            return "train"
        # The shares may sum to 1 only within rounding: without a test share nothing falls there.
        return "dev" if position < self.train + self.dev or self.test == 0.0 else "test"


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


def _whole(splits: Splits) -> Splits:
    shares = {"train": splits.train, "dev": splits.dev, "test": splits.test}
    wrong = [
        f"{name} must lie between 0 and 1, found {share:g}"
        for name, share in shares.items()
        if not 0.0 <= share <= 1.0
    ]
    total = math.fsum(shares.values())
    if not wrong and not math.isclose(total, 1.0, abs_tol=1e-9):
        named = ", ".join(f"{name} {share:g}" for name, share in shares.items())
        wrong = [f"the shares must sum to 1, found {total:g} ({named}): change one of them"]
    if wrong:
        raise ValueError(", ".join(wrong))
    return splits


def _filled_in(why: str) -> str:
    if not why.strip():
        raise ValueError("empty: say why, or remove it")
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
    splits: Annotated[Splits, AfterValidator(_whole)] = Splits()
    explained: dict[str, Annotated[str, AfterValidator(_filled_in)]] = {}


def read_card(path: Path) -> Card:
    """Read the Card at the path of a card.toml; InputError lists every problem with its line."""
    card, problems = try_card(path)
    if problems or card is None:
        raise InputError(problems)
    return card


def try_card(path: Path) -> tuple[Card | None, list[str]]:
    """Read a path's Card as far as it can be read: Card, or None without a scale, and a list of problems.

    With the scale known, the labels of a set can be held against it in spite of an unknown key elsewhere.
    """
    try:
        text, problems = decode(read_bytes(path), shown(path))
        table = {} if problems else read_toml(path)
    except InputError as error:
        problems = list(error.problems)
    if problems:
        return None, problems
    where, lines = shown(path), _key_lines(text)

    def at(keys: Sequence[str]) -> str:
        """`file:line` of a key; of the first line where it is not written out."""
        return f"{where}:{lines.get(tuple(keys), 1)}"

    whole: _CardTable | None = None
    try:
        whole = _CardTable.model_validate({key: value for key, value in table.items() if key != "schema"})
        labels = whole.scale
    except ValidationError as error:
        problems += schema_problems(error, _CardTable, at)
        try:
            labels = _ScaleTable.model_validate(table.get("scale", {}))
        except ValidationError:
            return None, problems
    scale, wrong = _scale_of(labels)
    name = path.absolute().parent.name
    card = None if scale is None else Card(name, scale)
    if whole is not None and scale is not None:
        for label in labels.anchors:
            try:
                scale.read(label)
            except ValueError as error:
                wrong.append(
                    (f"anchor {label!r} is not a label of the scale {scale}: {error}", "anchors", label)
                )
        card = Card(**dict(whole) | {"name": whole.name or name, "scale": scale, "anchors": labels.anchors})
    return card, [*problems, *(f"{at(('scale', *keys))}: {what}" for what, *keys in wrong)]


def _scale_of(table: _ScaleTable) -> tuple[Scale | None, list[tuple[str, ...]]]:
    """The scale, None where there is a problem with it; each problem with its keys in `[scale]`."""
    kind, low, high, words = table.kind, table.min, table.max, table.categories
    if not kind:
        return None, [("no kind in [scale]: write percentage, ordinal, points, binary or nominal",)]
    if kind == "ordinal" and (low is None or high is None or low % 1 or high % 1):
        return None, [("an ordinal scale needs min and max, both whole numbers", "kind")]
    if kind == "points" and (low is None or high is None):
        return None, [("a points scale needs min and max, and step where its labels have one", "kind")]
    if kind == "fraction":
        return None, [("fraction is for imports only: store percentages, kind percentage", "kind")]
    ends = f":{low:g}:{high:g}" if kind in ("ordinal", "points") else ""
    try:
        scale = Scale.parse(f"{kind}{ends}{f':{table.step:g}' if kind == 'points' and table.step else ''}")
    except InputError as error:
        return None, [(str(error), "kind")]
    wrong: list[tuple[str, ...]] = [
        (f"{key} of the scale {scale} is {right:g}, found {given:g}: remove it", key)
        for key, given, right in (("min", low, scale.low), ("max", high, scale.high))
        if given is not None and given != right
    ]
    if not all(word.strip() for word in words):
        wrong.append((f"categories must be a list of words, found {words!r}", "categories"))
    if words and kind != "nominal":
        wrong.append((f"categories belong to a nominal scale, this one is {kind}", "categories"))
    if len(set(words)) < len(words):
        wrong.append((f"a category is there twice: {words!r}", "categories"))
    try:
        scale = Scale.parse(str(scale), pass_at=table.pass_at, step=table.step)
    except InputError as error:
        wrong.append((str(error),))
    return (None if wrong else replace(scale, categories=tuple(words))), wrong


def _key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of each key and each table header written in the plain way (not inside multi-line values)."""

    def parts(key: str) -> tuple[str, ...]:
        return tuple("".join(part) for part in re.findall(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""", key))

    header: tuple[str, ...] = ()
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if section := re.match(r"\s*\[([^\[\]]+)\]", line):
            header = parts(section[1])
            lines.setdefault(header, number)
        elif key := re.match(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""", line):
            lines.setdefault((*header, *parts(key[1])), number)
    return lines


def card_text(card: Card) -> str:
    """Return a Card as TOML text; `read_card` gives the same card back."""
    plain = asdict(card)
    scale, graded = card.scale, card.scale.graded
    ends = {"min": scale.low, "max": scale.high, "step": scale.step} if graded else {}
    numbers = {key: None if value is None else plain_label(value) for key, value in ends.items()}
    return toml_text({
        "schema": SCHEMA,
        **{key: text or None for key, text in plain.items() if isinstance(text, str)},
        "scale": {
            "kind": scale.kind,
            **numbers,
            "pass_at": None if scale.pass_at is None else plain_label(scale.pass_at),
            "categories": list(scale.categories) or None,
            "anchors": plain["anchors"] or None,
        },
        "raters": {
            name: {key: text or None for key, text in rater.items()}
            for name, rater in plain["raters"].items()
        },
        "splits": plain["splits"],
        "explained": plain["explained"] or None,
    })  # fmt: skip


def plain_label(label: Label) -> Label:
    """A label as files have it: a whole number without a point."""
    return int(label) if isinstance(label, float) and label.is_integer() else label
