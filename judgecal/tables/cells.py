"""Cells of a sheet: what a spreadsheet would run or rewrite is marked on the way out, and unmarked on the way
back.

A cell that begins with a formula character is run by a spreadsheet, and one that looks like a number, a date
or a truth value is turned into one ("November 1" comes back as "01-Nov"). Both get a leading apostrophe, as
does a text that begins with an apostrophe itself, so that the mark can always be told from the text.
"""

from __future__ import annotations

import re
import unicodedata

CELL_LIMIT = 32_767
"""Characters that a cell of Excel holds; longer texts are cut off."""

_MARK = "'"
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")
_NUMBER_LIKE = re.compile(
    r"[\d\s.,:;/\\+\-−–%$€£¥()'°]*(?:e[+-]?\d+)?[\d\s.,:;/\\+\-−–%$€£¥()'°]*", re.IGNORECASE
)
_LIST_POINT = re.compile(r"[-－]+(?:$|[ \u00a0\n]+(?![\s\-－]*[=+@＝＋＠\"(])[^|(]*[^\W\d_][^|(]*$)")
_TRUTH = frozenset(
    {"true", "false", "wahr", "falsch", "vrai", "faux", "verdadero", "falso", "prawda", "fałsz"}
)
# The first letters of the months in English, German, Spanish, French, Italian, Polish and Portuguese.
_MONTHS = (
    "jan", "feb", "fév", "mar", "mär", "mrz", "apr", "abr", "avr", "kwi", "may", "mai", "maj",
    "jun", "jui", "juin", "cze", "giu", "jul", "lip", "lug", "aug", "ago", "aoû", "sie", "sep",
    "set", "wrz", "oct", "okt", "out", "ott", "paź", "nov", "lis", "dec", "dez", "dic", "déc",
    "gru", "sty", "lut", "ene", "fev", "gen",
)  # fmt: skip
_DATE_WORDS = frozenset({"am", "pm", "st", "nd", "rd", "th", "de", "of", "a", "p"})
_LONGEST_DATE = 40
_ERROR = re.compile(r"#(?:[¿¡]?[A-Z0-9/]{2,10}[!?]|N/A|N/D|NV)|Err:\d{3}")


def defuse(text: str) -> str:
    """The text as it goes into a cell."""
    risky = text.lstrip(" \u00a0")[:1] in _FORMULA or _is_converted(text.strip())
    return _MARK + text if risky or text.startswith(_MARK) else text


def runs(text: str) -> bool:
    """Whether a spreadsheet may run a cell of a CSV file: what begins with a formula character, but for
    numbers and for the first point of a list, "- " before words.
    """
    begin = text.lstrip(" \u00a0")
    if begin[:1] not in _FORMULA or is_number(begin):
        return False
    return _LIST_POINT.match(begin) is None


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def undo(cell: str) -> str:
    """The text of a cell that `defuse` made; a cell that somebody typed stays as it is."""
    unmarked = cell.removeprefix(_MARK)
    return unmarked if cell != unmarked and defuse(unmarked) == cell else cell


def _is_converted(text: str) -> bool:
    """Whether a spreadsheet may take the text for a number, a date or a truth value."""
    if text.casefold() in _TRUTH:
        return True
    if len(text) > _LONGEST_DATE or not any(char.isdigit() for char in text):
        return False
    words = re.findall(r"[^\W\d_]+", text.casefold())
    dated = all(word in _DATE_WORDS or word.startswith(_MONTHS) for word in words)
    return _NUMBER_LIKE.fullmatch(text) is not None or (bool(words) and dated)


def is_error(text: str) -> bool:
    """Whether a text is what a spreadsheet writes where it could compute nothing, in any language."""
    return _ERROR.fullmatch(text.strip()) is not None


def same_text(cell: str, text: str) -> bool:
    """Whether a cell still holds a text, whatever a spreadsheet did to its line ends, spacing or the mark."""
    return _settled(cell) in (_settled(text), _settled(defuse(text)))


def _settled(text: str) -> str:
    """Without what no spreadsheet keeps: kinds of white space, control characters, unpaired surrogates."""
    written = text.encode("utf-8", "replace").decode("utf-8")
    spaced = "".join(" " if unicodedata.category(char) == "Cc" else char for char in written)
    return " ".join(unicodedata.normalize("NFC", spaced).split())
