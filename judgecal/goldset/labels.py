"""Labels that people typed and recorded verdicts: how a cell is read, and whether the scale fits."""

from __future__ import annotations

import math
import random
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from judgecal.errors import InputError, listed
from judgecal.records import Failure, Item
from judgecal.scale import FALSE_WORDS, TRUE_WORDS, Label, Scale
from judgecal.tables import undefuse

NARROW = "narrow_labels"
"""The finding, and the key of `[explained]` in card.toml by which such a set is used all the same."""
_SMALL = 0.2  # of the scale, from its lower end
_LEAST = 10  # labels; of fewer nothing is said
_LEAST_PARTS = 3  # labels between 0 and 1 that are hardly percentages
_STEPS = (1.0, 0.5, 0.25, 0.1)
_MOST_GRADES = 20.0  # the highest; 90 to 100 are percentages


def narrow_labels(labels: Sequence[float], scale: Scale) -> str | None:
    """Return a text on why numeric labels do not fit a Scale: they end in its lowest fifth; else None."""
    distinct = set(labels)
    of_one = scale.kind == "percentage" and all(0.0 <= label <= 1.0 for label in distinct)
    least = _LEAST_PARTS if of_one and _step_of(labels) != 1.0 else _LEAST
    if not scale.graded or len(labels) < least or len(distinct) < 2:
        return None
    if max(distinct) > scale.low + _SMALL * scale.span:
        return None
    return (
        f"all {len(labels):,} labels lie in {min(distinct):g}..{max(distinct):g}, a small part of the scale "
        f"{scale} ({scale.low:g} to {scale.high:g}): the scale {fitting_scale(labels)} fits them"
    )


def unexplained(labels: Sequence[float], scale: Scale, explained: Mapping[str, str]) -> str | None:
    """Return why labels do not fit a Scale, as text; None where a mapping `explained` has the reason."""
    why = None if NARROW in explained else narrow_labels(labels, scale)
    return why and f'{why}; write that in card.toml, or under [explained] why it may be so: {NARROW} = "..."'


class LabelMap(Mapping[str, str]):
    """What label cells are rewritten to, whatever their case; it iterates over them as they were typed."""

    def __init__(self, typed: Mapping[str, str]) -> None:
        self._typed = dict(typed)
        self._by_cell = {cell.strip().casefold(): to for cell, to in typed.items()}

    def __getitem__(self, cell: str) -> str:
        return self._by_cell[cell.strip().casefold()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._typed)

    def __len__(self) -> int:
        return len(self._typed)

    def unused(self, cells: Iterable[str]) -> list[str]:
        """Return the list of this map's own entries (texts as typed) whose FROM is none of these cells."""
        there = {cell.strip().casefold() for cell in cells}
        return [f"{cell}={to}" for cell, to in self._typed.items() if cell.strip().casefold() not in there]


def _step_of(numbers: Sequence[float]) -> float | None:
    for step in _STEPS:
        if all(abs(number / step - round(number / step)) < 1e-6 for number in numbers):
            return step
    return None


def fitting_scale(labels: Sequence[float]) -> str:
    """Return the text of the smallest scale that these numbers are labels of."""
    low, high = min(labels), max(labels)
    step = _step_of(labels)
    if set(labels) <= {0.0, 1.0}:
        return "binary"
    if step == 1.0 and high - low <= 10.0 and high <= _MOST_GRADES:
        return f"ordinal:{min(low, 1.0) if low >= 0.0 else low:g}:{high:g}"
    if low >= 0.0 and high <= 1.0:
        return "fraction"
    if low >= 0.0 and _MOST_GRADES < high <= 100.0:
        return "percentage"
    ends = f"{min(0.0, math.floor(low)):g}:{math.ceil(high):g}"
    return f"points:{ends}" if step is None else f"points:{ends}:{step:g}"


_UP = (
    "👍", "thumbs_up", "thumbs up", "thumbsup", "thumb_up", "up", "like", "positive", "good", "ok", "okay",
    "right", "accept", "accepted", "approved", "valid", "relevant", "supported", "grounded", "helpful", "y",
    "ja", "oui", "sí", "si", "richtig", "gut",
)  # fmt: skip
_DOWN = (
    "👎", "thumbs_down", "thumbs down", "thumbsdown", "thumb_down", "down", "dislike", "negative", "bad",
    "not ok", "wrong", "reject", "rejected", "invalid", "irrelevant", "unsupported", "ungrounded",
    "hallucinated", "unhelpful", "n", "nein", "non", "falsch", "schlecht",
)  # fmt: skip
_SAME = {*_UP[:9], *_DOWN[:9], "y", "n", *TRUE_WORDS, *FALSE_WORDS}
"""Words that mean the same as others of their side; of all others two of a side may be two grades."""
_THUMBS = {**dict.fromkeys(_UP, "yes"), **dict.fromkeys(_DOWN, "no")}
_VOTES = {"1": "yes", "-1": "no"}
_LONGEST_WORD = 40  # characters
_MOST_WORDS = 20  # different ones; more, and mostly different, are texts and no labels


def guess_scale(cells: Sequence[str]) -> tuple[str | None, Mapping[str, str], str]:
    """Guess the scale of label cells: its text or None, a dict of what cells mean yes and no, and why."""
    distinct = {cell.casefold() for cell in cells}
    shown = listed(sorted(distinct), 4)
    numbers = {cell: number for cell in cells if (number := _finite(cell)) is not None}
    words = sorted({*cells} - numbers.keys())
    if not distinct:
        return None, {}, "there is none"
    if distinct <= _VOTES.keys() and "-1" in distinct:
        return "binary", _VOTES, f"they are {shown}"
    meant = {**dict.fromkeys(TRUE_WORDS, "yes"), **dict.fromkeys(FALSE_WORDS, "no"), **_THUMBS}
    if words and distinct <= meant.keys():
        sides = Counter(meant[word] for word in distinct)
        if distinct <= _SAME or max(sides.values()) == 1:
            return "binary", _THUMBS, f"they are {shown}"
    if words and numbers:
        none = shlex.quote(f"{words[0]}=")
        return None, {}, f"numbers and, among them, {listed(words, 3)}; --map {none} makes one no label"
    if words:
        if any(map(is_part, cells)):
            return None, {}, f"they are parts of a whole: {shown}"
        if len(distinct) > _MOST_WORDS and len(distinct) > len(cells) / 2:
            return None, {}, f"{len(distinct):,} different texts"
        return "nominal", {}, f"they are words: {shown}"
    low, high = min(numbers.values()), max(numbers.values())
    span = f"{low:g} to {high:g}" if len(distinct) > 1 else f"all {shown}"
    if any(cell.endswith("%") for cell in cells):
        return "percentage", {}, f"they are percentages, {span}"
    fitting = fitting_scale([numbers[cell] for cell in cells])
    try:
        Scale.parse(fitting)
    except InputError:  # a single number below 0
        return None, {}, f"they are {span}"
    return fitting, {}, f"they are {span}"


def scale_with_verdicts(scale: str, cells: Iterable[str]) -> str:
    """Return the text of a scale, from its text and verdict cells, with an end grade more if they hold it."""
    labels_scale = Scale.parse(scale)
    numbers = [number for cell in cells if (number := number_in(cell)) is not None]
    together = Scale.parse(fitting_scale([labels_scale.low, labels_scale.high, *numbers]))
    near = abs(together.low - labels_scale.low) <= 1.0 and abs(together.high - labels_scale.high) <= 1.0
    return str(together) if together.kind == "ordinal" and near else scale


def _finite(cell: str) -> float | None:
    try:
        number = float(cell.removesuffix("%"))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


_MISSING = frozenset(
    {"n/a", "#n/a", "#nv", "#n/d", "n/d", "n.a.", "k.a.", "na", "nan", "null", "-", "--", "–", "—", "?"}
)
_MISSING_NUMBER = frozenset({"none", "nil", "."})
"""No number either; among words of a nominal scale they may mean something."""
_TRUTH = {
    "wahr": 1.0, "vrai": 1.0, "verdadero": 1.0, "vero": 1.0, "verdadeiro": 1.0, "waar": 1.0, "prawda": 1.0,
    "sant": 1.0, "sand": 1.0, "sann": 1.0, "tosi": 1.0, "pravda": 1.0, "igaz": 1.0, "doğru": 1.0,
    "истина": 1.0, "falsch": 0.0, "faux": 0.0, "falso": 0.0, "onwaar": 0.0, "fałsz": 0.0, "falskt": 0.0,
    "falsk": 0.0, "usann": 0.0, "epätosi": 0.0, "nepravda": 0.0, "hamis": 0.0, "yanlış": 0.0, "ложь": 0.0,
}  # fmt: skip
"""The truth values as Excel and LibreOffice write them in their languages."""
_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|0,\d+|\d+,\d{1,2})"  # 1,000 may be a thousand
_AMOUNT = re.compile(rf"({_NUMBER})\s*(%)?", re.ASCII)
_OUT_OF = re.compile(rf"({_NUMBER})\s*/\s*({_NUMBER})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T[\d:]+)?|\d{1,2}[./]\d{1,2}[./]\d{4}")


def label_text(label: Label | None) -> str:
    """Return a label as the text that messages print."""
    if label is None:
        return "none"
    return label if isinstance(label, str) else f"{label:g}"


def percent(value: float) -> float:
    """0.07 * 100 is 7.000000000000001 in floating point; the label is 7."""
    return round(value, 9)


def is_no_label(cell: str, scale: Scale) -> bool:
    """Return whether a cell, for a Scale, says that there is no label (`N/A`, `-`) and is no category."""
    text = _plain(cell)
    word = text.casefold()
    return text not in scale.categories and (word in _MISSING or (scale.numeric and word in _MISSING_NUMBER))


def read_label(cell: str, scale: Scale) -> Label:
    """Read a cell, on a Scale, as a Label: `8/10` is 80 of percentages, `3,5` is 3.5, `WAHR` is true.

    ValueError: it is not a label of the scale, or lies between two of its steps; the message says which are.
    """
    text = _plain(cell)
    if scale.kind == "nominal":
        return scale.read(text)
    if scale.kind == "binary" and text.casefold() in _TRUTH:
        return _TRUTH[text.casefold()]
    if _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is a date: a spreadsheet makes one of 8/10, so format the column as text")
    label = scale.read(_on_scale(text, scale))
    if isinstance(label, float) and not scale.on_step(label):
        raise ValueError(f"{label:g} lies between the steps of {scale.step:g}")
    return label


def missing_notes(counts: Mapping[str, int]) -> list[str]:
    """Return a list of notes on label cells that say there is no label, from a dict of text -> count."""
    cells = ", ".join(
        f"{cell!r} {n:,}" for cell, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return [f"label cells that say there is no label: {cells}"] if cells else []


def typed(cell: str) -> str:
    """Return a cell's text as a text that every language writes: of `3,5` `3.5`, of `WAHR` `true`."""
    text = _plain(cell)
    if match := _AMOUNT.fullmatch(text):
        return match[1].replace(",", ".") + (match[2] or "")
    truth = _TRUTH.get(text.casefold())
    return text if truth is None else "true" if truth else "false"


def is_part(cell: str) -> bool:
    """Whether a cell is a part of a whole, such as `8/10`."""
    return _OUT_OF.fullmatch(_plain(cell)) is not None


def number_in(cell: str) -> float | None:
    """Return the number (a float) that a cell's text holds, of `85%` 85; None where it holds none."""
    match = _AMOUNT.fullmatch(_plain(cell))
    return _float(match[1]) if match else None


def _plain(cell: str) -> str:
    """The text of a cell without the mark against spreadsheets, with single spaces."""
    return " ".join(undefuse(cell).split())


def _float(number: str) -> float:
    return float(number.replace(",", "."))


def _on_scale(text: str, scale: Scale) -> str:
    """A number as the scale reads one; any other text as it is.

    ValueError: it is a part of another whole than the scale's.
    """
    if match := _AMOUNT.fullmatch(text):
        return f"{_float(match[1]) / 100.0:.12g}" if match[2] and scale.from_fraction else typed(text)
    match = _OUT_OF.fullmatch(text)
    if match is None or scale.kind == "binary":
        return text
    part, whole = _float(match[1]), _float(match[2])
    if scale.kind == "percentage" and 0.0 <= part <= whole and whole > 0.0:
        return f"{part / whole * (1.0 if scale.from_fraction else 100.0):.12g}"
    if whole != scale.high:
        raise ValueError(f"{text!r} is out of {whole:g}, and the scale ends at {scale.high:g}")
    return f"{part:.12g}"


_FRACTIONS = 10  # verdicts of 0 and 1 alone; fewer may be so by chance


@lru_cache(maxsize=4096)  # few cells of a table differ
def read_verdict(scale: Scale, text: str) -> tuple[Label | None, Failure | None]:
    """Read, on a Scale, the text of a recorded verdict: (Label, None), or (None, Failure)."""
    if not text.strip():
        return None, Failure("parse", "no verdict was recorded")
    try:
        verdict = scale.read(text)
        return (percent(verdict) if scale.from_fraction and isinstance(verdict, float) else verdict), None
    except ValueError as error:
        return None, Failure("parse", str(error))


def verdict_scale(people: Scale, cells: Iterable[str]) -> Scale:
    """Guess the Scale of a judge's verdicts, from the people's Scale and the cells of verdicts.

    On the people's scale (grades may have verdicts between them), or where more of them can be read so as yes
    and no or as percentages; of the latter, where all lie in a small part of them (1 to 10), on the scale
    that fits. All of 0..1 are fractions of 1 where the people's scale does not hold them, holds them as a
    small part of it only, or counts in percent.
    """
    # The steps of a points scale are those of people's labels.
    whole = replace(people, step=None) if people.kind == "points" else people
    if not people.numeric:
        return whole
    written = Counter(cell.strip() for cell in cells)
    del written[""]

    def readable(scale: Scale) -> int:
        return sum(n for cell, n in written.items() if read_verdict(scale, cell)[0] is not None)

    between = [Scale("points", people.low, people.high)] if people.kind == "ordinal" else []
    forms = (whole, *between, Scale.parse("binary"), Scale.parse("percentage"))
    scale, fraction = max(forms, key=readable), Scale.parse("fraction")  # of equals the first
    read_as_share = {cell: read_verdict(fraction, cell)[0] for cell in written}
    shares = [read_as_share[cell] for cell in written.elements()]
    if not shares or None in shares:
        verdicts = [read_verdict(scale, cell)[0] for cell in written.elements()]
        numbers = [verdict for verdict in verdicts if isinstance(verdict, float)]
        signed = any(cell.endswith("%") for cell in written)
        small = scale.kind == "percentage" and not signed and narrow_labels(numbers, scale)
        return Scale.parse(fitting_scale(numbers)) if small else scale
    inner = any(share not in (0.0, 100.0) for share in shares)
    if not inner and (len(shares) < _FRACTIONS or people.kind in ("binary", "percentage")):
        return scale  # 0 and 1 alone may be labels as they are
    holds = scale is whole and whole.kind != "percentage" and readable(whole) == written.total()
    narrow = inner and narrow_labels([float(cell) for cell in written.elements()], whole)
    return scale if holds and not narrow else fraction


PAIR_LABELS = ("A", "B", "tie")
"""The item's own first answer is better, its second, or neither."""
_WORDS: Mapping[str, str] = {
    "a": "A", "left": "A", "model_a": "A", "b": "B", "right": "B", "model_b": "B", "tie": "tie",
}  # fmt: skip


def pair_scale(cells: Collection[str], more: Iterable[str] = ()) -> tuple[str | None, Mapping[str, str], str]:
    """Return the scale (text or None) of cells that label pairs, a dict of what cells stand for, and why."""
    words = {cell.casefold() for cell in (*cells, *more)}
    meanings = {word: _WORDS[word] for word in sorted(words & _WORDS.keys())}
    if unclear := sorted({cell.casefold() for cell in cells} - meanings.keys()):
        why = f"labels of pairs are A, B or tie, and {', '.join(unclear[:4])} may be either"
        return None, {}, f"{why}; --map {unclear[0]}=A says it"
    in_words = ", ".join(f"{cell} is {to}" for cell, to in meanings.items() if cell != to.casefold())
    return "nominal", meanings, f"they are of pairs{', ' * bool(in_words)}{in_words}"


def left_of(item: Item, scale: Scale | None, by: object) -> Literal["A", "B"] | None:
    """Return which answer, A or B, is left: from a pair's Item, a Scale or None, and a seed `by`. None of no
    pair, and where the scale has other labels than a pair's, so that A stays on the left.
    """
    sided = item.pair and scale and scale.kind == "nominal" and {*scale.categories} <= {*PAIR_LABELS}
    return random.Random(f"{by}:{item.item_id}").choice(("A", "B")) if sided else None


def by_side(label: str, left: str | None) -> str:
    """Return a pair's label A or B as `left` or `right`, or back, from it and the `left` answer or None."""
    sides = {"A": ("left", "right"), "B": ("right", "left")}.get(left or "", ("A", "B"))
    return dict(zip((*sides, "A", "B"), ("A", "B", *sides), strict=True)).get(label, label)
