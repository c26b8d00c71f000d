"""In which encoding a text file was saved, where nobody says so: UTF-8, UTF-16 or Windows-1252.

What a Western European Windows program saves as CSV is Windows-1252. Any bytes are text in it, so those of
another code page (Central European, Cyrillic, an old Mac) would be read as other letters in silence. It is
taken only where the letters are those of one Western European language, and stand where such letters stand.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

UTF_8 = "utf-8-sig"
"""With or without a byte order mark; what is taken until a byte says otherwise."""
_MARKS = ((codecs.BOM_UTF8, UTF_8), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_OTHER_FILES = (
    (b"PK\x03\x04", "a zip archive, as .xlsx and .ods are: give it its own ending"),
    (
        b"\xd0\xcf\x11\xe0",
        "an old or encrypted file of Excel: save it as .xlsx without a password, or as CSV",
    ),
)
_HEAD = 65_536  # bytes
# The letters beyond ASCII that texts of one language hold, with those of its usual loan words.
_ALPHABETS = (
    "äöüßéèêàáçôîâëïñ",  # German
    "àâæçéèêëîïôœùûüÿäöñ",  # French
    "áéíñóúüçªº",  # Spanish
    "áàâãçéêíóôõúüªº",  # Portuguese
    "àèéìîíòóùúç",  # Italian
    "áäâàèéëêïíóöôúüûç",  # Dutch
    "æøåäöéèêüáàó",  # Danish, Norwegian, Swedish, Finnish
    "áéíóúýþæöð",  # Icelandic
    "àçèéíïòóúü·",  # Catalan
    "áàâéèêëíìîïóòôúùûüçñ",  # English, with names and loan words
)
_FOREIGN = 0.05  # of the letters beyond ASCII: names from elsewhere
_ODD = 0.01  # of the lines beyond ASCII: signs where they hardly stand
_NO_PLACE = re.compile(
    "[a-zß-ÿœšž][À-ÖØ-ÞŒŠŽŸ]"  # a capital within a word
    "|[A-Za-zÀ-ÿ][«»“”„‚‹›•€£§°©®™µ±²³¹½¼¾¿¡×÷†‡‰¥¢][A-Za-zÀ-ÿ]"  # a sign within a word
    "|[A-Za-zÀ-ÿ][„‚¿¡]|[a-ln-zÀ-ÿ][²³]"  # one that begins a word, or a unit's, behind it
    "|[¤¦¨¬¯¸ˆ˜ƒ‡¹\x81\x8d\x8f\x90\x9d]"  # one that texts hardly hold
    "|[À-ÿŒœŠšŽžŸ]{4}"  # letters of another script
)


_TEXTS = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson")
_PACKED = ".gz"


def ending_of(path: Path) -> str:
    """The ending of a file's name in lower case; of a packed text file that of the text, `.csv` of
    `a.csv.gz`."""
    inner = path.with_suffix("").suffix.lower()
    return inner if is_packed(path) else path.suffix.lower()


def is_packed(path: Path) -> bool:
    """Whether a file is a text file packed by gzip, by its name."""
    return path.suffix.lower() == _PACKED and path.with_suffix("").suffix.lower() in _TEXTS


def open_bytes(path: Path) -> BinaryIO:
    """A file to be read, unpacked where it is packed."""
    return cast(BinaryIO, gzip.open(path)) if is_packed(path) else path.open("rb")


def encoding_of(path: Path) -> str:
    """The encoding that the first bytes tell: a byte order mark, or the zeros of UTF-16 without one; else
    UTF-8.

    ValueError: they are those of no text; the message says what it is.
    """
    with open_bytes(path) as file:
        head = file.read(_HEAD)
    for mark, what in _OTHER_FILES:
        if head.startswith(mark):
            raise ValueError(f"the file is {what}")
    if head.startswith(_UTF_32):
        raise ValueError("the file is UTF-32: save it as UTF-8")
    return next((name for mark, name in _MARKS if head.startswith(mark)), None) or _by_zeros(head)


def _by_zeros(head: bytes) -> str:
    """UTF-16 has a zero beside every ASCII character: behind it (little endian) or before it, and nowhere
    else."""
    zeros = head[0::2].count(0), head[1::2].count(0)
    if max(zeros) > 0 and min(zeros) == 0 and b"\n" in head and len(head) < 4 * max(zeros):
        return "utf-16-le" if zeros[1] else "utf-16-be"
    return UTF_8


def in_windows_1252(lines: Iterable[bytes]) -> str | None:
    """A line of a file that is no UTF-8, read in Windows-1252, where the whole file can be that; else None.
    It is the first one with a letter that is no ASCII, if there is one.

    A file in which other lines are UTF-8 beyond ASCII is two encodings, and none.
    """
    letters: Counter[str] = Counter()
    first: str | None = None
    lettered: str | None = None
    n_lines = n_odd = 0
    for line in lines:
        if line.isascii():
            continue
        if _is_utf_8(line):
            return None
        text = line.decode("cp1252", errors="replace")
        if "\ufffd" in text:
            return None
        n_lines += 1
        n_odd += _NO_PLACE.search(text) is not None
        found = [char for char in text.lower() if char > "\x7f" and char.isalpha()]
        letters.update(found)
        first = first or text
        lettered = lettered or (text if found else None)
    foreign = [sum(n for char, n in letters.items() if char not in alphabet) for alphabet in _ALPHABETS]
    fits = min(foreign) <= _FOREIGN * letters.total() and n_odd <= _ODD * n_lines
    return (lettered or first) if fits else None


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
