"""The text of a document's file: plain text, Markdown, HTML, PDF or DOCX."""

from __future__ import annotations

import io
import logging
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, not_installed
from judgecal.tables import decode, read_bytes
from judgecal.workspace import shown

_LARGEST = 256 * 2**20  # bytes of a DOCX, unpacked
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
_ENDS_A_BLOCK = frozenset(
    (
        "address", "article", "aside", "blockquote", "caption", "dd", "div", "dl", "dt", "fieldset", "figcaption",
        "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre",
        "section", "table", "ul",
    )
)  # fmt: skip
_ENDS_A_LINE = frozenset(["br", "li", "option", "tr"])
_NOT_SHOWN = frozenset(["script", "style", "svg", "template"])


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a file holds. `title` is that of an HTML page; other files have none that can be relied on."""

    text: str
    title: str | None = None


class NoTextError(Exception):
    """A file gives no text, for a reason in the file; `str(error)` says what is wrong and what to do, for any file."""


def extract(path: Path) -> Extracted:
    """The text of a file whose ending is one of `ENDINGS`.

    HTML without scripts and styles, blocks apart by an empty line; PDF page by page in the order in which the file
    writes, hyphens at line ends stay; DOCX with the text of tables and boxes, without headers, footers and footnotes,
    with changes accepted.

    Raises:
        NoTextError: the file is broken, encrypted, or a PDF or DOCX without text.
        InputError: it cannot be read, is no UTF-8, or what reads it is not installed.
    """
    extracted = ENDINGS[path.suffix.lower()](read_bytes(path), path)
    # Half a character or a NUL, as broken fonts give them, can stand in no file that we write.
    text = extracted.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
    return Extracted(text, extracted.title)


def _from_text(data: bytes, path: Path) -> Extracted:
    text, problems = decode(data, shown(path))
    if problems:
        raise InputError(problems)
    return Extracted(text)


def _from_html(data: bytes, path: Path) -> Extracted:
    declared = _CHARSET.search(data[:4096])
    try:
        source = data.decode(declared[1].decode("ascii")) if declared else _from_text(data, path).text
    except (LookupError, UnicodeError):  # no encoding, or another than it says
        source = _from_text(data, path).text
    page = _Page()
    page.feed(source)
    page.close()
    return Extracted(page.text(), " ".join("".join(page.title).split()) or None)


class _Page(HTMLParser):
    """What a reader of a page sees, and its title."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self._parts: list[str] = []
        self._open: list[str] = []  # those of which nothing is shown, and the title

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in _NOT_SHOWN or tag == "title":
            self._open.append(tag)
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._open:
            self._parts.append(re.sub(r"\s+", " ", data))
        elif self._open == ["title"]:
            self.title.append(data)

    def _break(self, tag: str) -> None:
        if tag in _ENDS_A_BLOCK:
            self._parts.append("\n\n")
        elif tag in _ENDS_A_LINE:
            self._parts.append("\n")
        elif tag in ("td", "th"):
            self._parts.append(" ")

    def text(self) -> str:
        """Blocks apart by an empty line, without white space at the ends of lines."""
        lines = (line.strip() for line in re.sub(" +", " ", "".join(self._parts)).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _from_pdf(data: bytes, path: Path) -> Extracted:
    try:
        import pypdf
        from pypdf.errors import DependencyError, PyPdfError
    except ModuleNotFoundError as error:
        raise not_installed("PDF files are read by", "pypdf", "documents") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of each oddity, in words of the file
    encrypted = NoTextError("encrypted PDF: save it without a password")
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise encrypted
        pages = [page.extract_text() for page in reader.pages]
    except DependencyError:  # ciphers need another library
        raise encrypted from None
    except (PyPdfError, *_BROKEN) as error:
        raise NoTextError("broken PDF: save it anew") from error
    if not any(page.strip() for page in pages):
        raise NoTextError("PDF without text, perhaps scanned: run text recognition (OCR) over it first")
    return Extracted("\n".join(pages))


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
        text = "".join(_words(docx.Document(io.BytesIO(data)).element.body)).strip()
    except (zipfile.BadZipFile, SyntaxError, *_BROKEN) as error:  # lxml's errors of syntax are Python's
        raise NoTextError("broken DOCX: save it anew") from error
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
