"""The text of a document's file: plain text, Markdown, HTML, PDF or DOCX."""

from __future__ import annotations

import codecs
import contextlib
import io
import logging
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, not_installed
from judgecal.records import well_formed
from judgecal.tables import decode, read_bytes
from judgecal.workspace import shown

_LARGEST = 256 * 2**20  # bytes of a DOCX, unpacked
_MOST_CHARACTERS = 20_000_000  # of a file; some 8,000 pages
_MOST_SECONDS = 60.0
_PIECE = 2**16  # characters of HTML that are read before somebody looks at the clock
_DEEPEST = 1000  # elements of HTML in one another
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_SIGNS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
# What a reader of a broken file runs into, beside its own errors.
_BROKEN = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RecursionError,
    NotImplementedError, OSError, zlib.error,
)  # fmt: skip
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_ENDS_A_BLOCK = frozenset((
    "address", "article", "aside", "blockquote", "caption", "dd", "div", "dl", "dt", "fieldset", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p",
    "pre", "section", "table", "ul",
))  # fmt: skip
_ENDS_A_LINE = frozenset(["li", "option", "tr"])
_NOT_SHOWN = frozenset(["script", "style", "svg", "template", "title"])
# Python's own encodings, which may give half characters or take for ever: no page is in them.
_NO_PAGES = frozenset((
    "idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a file holds."""

    text: str
    title: str | None = None  # of an HTML page; other files have none that can be relied on


class NoTextError(Exception):
    """A file gives no text, for a reason in it; says what is wrong and what to do, without its name."""


def extract(path: Path) -> Extracted:
    """The text of a file whose ending is one of `ENDINGS`.

    HTML without scripts and styles, blocks apart by an empty line; PDF page by page in the order in which the
    file writes, hyphens at line ends stay; DOCX with the text of tables and boxes, without headers, footers
    and footnotes, with changes accepted.

    Raises:
        NoTextError: the file is broken, encrypted, too long, or a PDF or DOCX without text.
    """
    extracted = ENDINGS[path.suffix.lower()](read_bytes(path), path)
    # Half a character or a NUL, as broken fonts give them, can stand in no file that we write.
    return Extracted(well_formed(extracted.text).replace("\0", ""), extracted.title)


def _joined(parts: Iterator[str], kind: str) -> str:
    """What a reader gives; NoTextError where it is longer, or takes longer, than a file may."""
    taken, size, end = list[str](), 0, time.monotonic() + _MOST_SECONDS
    for part in parts:
        taken.append(part)
        size += len(part)
        if size > _MOST_CHARACTERS:
            raise NoTextError(f"{kind} of over {_MOST_CHARACTERS:,} characters: split it")
        if time.monotonic() > end:
            raise NoTextError(
                f"{kind} that takes over {_MOST_SECONDS:g} s to read: split it, or save it as text"
            )
    return "".join(taken)


def _from_text(data: bytes, path: Path) -> Extracted:
    text, problems = decode(data, shown(path))
    if problems:
        raise InputError(problems)
    return Extracted(text)


def _from_html(data: bytes, path: Path) -> Extracted:
    from lxml import etree

    declared = _CHARSET.search(data[:4096])
    source = None
    if declared:
        with contextlib.suppress(LookupError, UnicodeError):  # no encoding, or another than it says
            name = codecs.lookup(declared[1].decode("ascii")).name
            source = None if name in _NO_PAGES else data.decode(name)
    if source is None:
        source = _from_text(data, path).text
    page = _Page()
    parser = etree.HTMLParser(target=page)

    def parts() -> Iterator[str]:
        for start in range(0, len(source), _PIECE):
            parser.feed(source[start : start + _PIECE])
            yield page.taken()
        with contextlib.suppress(etree.LxmlError):  # there is no element in it
            parser.close()
        yield page.taken()

    # Blocks apart by an empty line, without white space at the ends of lines.
    lines = (line.strip() for line in re.sub(" +", " ", _joined(parts(), "HTML")).split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Extracted(text, " ".join("".join(page.title).split()) or None)


class _Page:
    """What a reader of a page sees, and its title: takes the events of lxml's parser."""

    def __init__(self) -> None:
        self.title: list[str] = []
        self._parts: list[str] = []
        self._open: list[str] = []
        self._begun = False  # whether there is text in the line
        self._hidden = 0  # elements that are open and of which nothing is shown; the title too

    def start(self, tag: str, attributes: Any) -> None:
        if len(self._open) == _DEEPEST:  # the parser's time grows with the square of it
            raise NoTextError(f"HTML with over {_DEEPEST:,} elements in one another: save it as text")
        self._open.append(tag)
        self._hidden += tag in _NOT_SHOWN
        self._break(tag)

    def end(self, tag: str) -> None:
        self._open.pop()
        self._hidden -= tag in _NOT_SHOWN
        if tag != "br":  # it has no content, and one end of a line
            self._break(tag)

    def data(self, text: str) -> None:
        if not self._hidden:
            self._parts.append(re.sub(r"\s+", " ", text))
            self._begun = self._begun or not text.isspace()
        elif self._hidden == 1 and self._open[-1] == "title":
            self.title.append(text)

    def close(self) -> None:
        """The end of the page."""

    def _break(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._parts.append(" ")
        elif tag in _ENDS_A_BLOCK:
            self._parts.append("\n\n")
        elif tag == "br" or (tag in _ENDS_A_LINE and self._begun):
            self._parts.append("\n")
            self._begun = False

    def taken(self) -> str:
        """What is shown and was not taken before."""
        text = "".join(self._parts)
        self._parts.clear()
        return text


def _from_pdf(data: bytes, path: Path) -> Extracted:
    try:
        import pypdf
        from pypdf.errors import DependencyError, PyPdfError
    except ModuleNotFoundError as error:
        raise not_installed("PDF files are read by", "pypdf", "documents") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of each oddity, in words of the file
    encrypted = NoTextError("encrypted PDF: save it without a password")
    known: dict[int, str] = {}  # the text of a page that is listed again

    def pages() -> Iterator[str]:
        for number, page in enumerate(reader.pages):
            place = page.indirect_reference
            text = known.get(place.idnum) if place is not None else None
            text = page.extract_text() if text is None else text
            if place is not None:
                known[place.idnum] = text
            yield f"\n{text}" if number else text

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise encrypted
        text = _joined(pages(), "PDF")
    except DependencyError:  # ciphers need another library
        raise encrypted from None
    except (PyPdfError, *_BROKEN) as error:
        raise NoTextError("broken PDF: save it again") from error
    if not text.strip():
        raise NoTextError("PDF without text, perhaps scanned: run text recognition (OCR) over it first")
    return Extracted(text)


def _from_docx(data: bytes, path: Path) -> Extracted:
    try:
        import docx
    except ModuleNotFoundError as error:
        raise not_installed("DOCX files are read by", "python-docx", "documents") from error
    if data.startswith(_OLD_OFFICE):
        raise NoTextError("encrypted DOCX, or an old DOC: save it as DOCX without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise NoTextError(f"DOCX of over {_LARGEST:,} bytes unpacked: take the pictures out")
        text = _joined(_words(docx.Document(io.BytesIO(data)).element.body), "DOCX").strip()
    except (zipfile.BadZipFile, SyntaxError, *_BROKEN) as error:  # lxml's errors of syntax are Python's
        raise NoTextError("broken DOCX: save it again") from error
    if not text:
        raise NoTextError("DOCX without text, perhaps of pictures: run text recognition (OCR) over it first")
    return Extracted(text)


def _words(node: Any) -> Iterator[str]:
    """The text below a node of WordprocessingML, in the order of the file."""
    for child in node:
        if child.tag == _FALLBACK:  # the same once more, for old readers
            continue
        if child.tag == f"{_W}p":
            yield "\n" if node.tag == f"{_W}tc" else "\n\n"
        if child.tag == f"{_W}t":
            yield child.text or ""
        elif node.tag == f"{_W}r" and child.tag in _SIGNS:
            yield _SIGNS[child.tag]
        else:
            yield from _words(child)


ENDINGS: dict[str, Callable[[bytes, Path], Extracted]] = {
    ".txt": _from_text, ".text": _from_text, ".md": _from_text, ".html": _from_html, ".htm": _from_html,
    ".pdf": _from_pdf, ".docx": _from_docx,
}  # fmt: skip
"""What reads a file, by its ending in lower case."""
