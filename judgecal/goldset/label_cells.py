"""What people write into a cell for a label, and what a spreadsheet of their language makes of it.

This is for labels that people typed; what a judge replies is read by the scale alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from judgecal.scale import Label, Scale
from judgecal.tables import undo

_MISSING = frozenset(
    {"n/a", "#n/a", "#nv", "#n/d", "n/d", "n.a.", "k.a.", "na", "nan", "null", "-", "--", "–", "—", "?"}
)
_MISSING_NUMBER = frozenset({"none", "nil", "."})
"""No number either; among words of a nominal scale they may mean something."""
_TRUTH = {
    "wahr": 1.0, "vrai": 1.0, "verdadero": 1.0, "vero": 1.0, "verdadeiro": 1.0, "waar": 1.0, "prawda": 1.0,
    "sant": 1.0, "sand": 1.0, "sann": 1.0, "tosi": 1.0, "pravda": 1.0, "igaz": 1.0, "doğru": 1.0, "истина": 1.0,
    "falsch": 0.0, "faux": 0.0, "falso": 0.0, "onwaar": 0.0, "fałsz": 0.0, "falskt": 0.0, "falsk": 0.0,
    "usann": 0.0, "epätosi": 0.0, "nepravda": 0.0, "hamis": 0.0, "yanlış": 0.0, "ложь": 0.0,
}  # fmt: skip
"""The truth values as Excel and LibreOffice write them in their languages."""
_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|0,\d+|\d+,\d{1,2})"  # 1,000 may be a thousand
_AMOUNT = re.compile(rf"({_NUMBER})\s*(%)?", re.ASCII)
_OUT_OF = re.compile(rf"({_NUMBER})\s*/\s*({_NUMBER})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T[\d:]+)?|\d{1,2}[./]\d{1,2}[./]\d{4}")


def says_nothing(cell: str, scale: Scale) -> bool:
    """Whether a cell says by a word or a sign that there is no label, such as `N/A` or `-`."""
    text = _plain(cell)
    word = text.casefold()
    return text not in scale.categories and (word in _MISSING or (scale.numeric and word in _MISSING_NUMBER))


def read_label(cell: str, scale: Scale) -> Label:
    """One label; `8/10` is 80 on a scale of percentages and 8 on one that ends at 10, `3,5` is 3.5, `WAHR` is
    true.

    ValueError: it is no label of the scale, or lies between two of its steps; the message says what would be.
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
    """How many label cells said that there is none, by what they said."""
    said = ", ".join(
        f"{cell!r} {n:,}" for cell, n in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    )
    return [f"label cells that say there is no label: {said}"] if said else []


def typed(cell: str) -> str:
    """A cell as every language writes it: of `3,5` `3.5`, of `WAHR` `true`; any other text as it is."""
    text = _plain(cell)
    if match := _AMOUNT.fullmatch(text):
        return match[1].replace(",", ".") + (match[2] or "")
    truth = _TRUTH.get(text.casefold())
    return text if truth is None else "true" if truth else "false"


def is_part(cell: str) -> bool:
    """Whether a cell is a part of a whole, such as `8/10`."""
    return _OUT_OF.fullmatch(_plain(cell)) is not None


def number_in(cell: str) -> float | None:
    """The number that a cell holds, of `85%` 85; None where it holds none."""
    match = _AMOUNT.fullmatch(_plain(cell))
    return _float(match[1]) if match else None


def _plain(cell: str) -> str:
    """The text of a cell without the mark against spreadsheets, and with single spaces in place of any
    others."""
    return " ".join(undo(cell).split())


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
