"""The text of a document's file: plain text, Markdown, HTML, PDF or DOCX."""

from __future__ import annotations

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

_MOST_CHARACTERS = 20_000_000  # of a file; some 8,000 pages
_MOST_SECONDS = 60.0
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_SIGNS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
# What a reader of a broken file runs into, beside its own errors.
_BROKEN = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RecursionError,
    NotImplementedError, OSError, zlib.error,
)  # fmt: skip
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_BREAKS = {
    **dict.fromkeys((
        "address", "article", "aside", "blockquote", "caption", "dd", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main",
        "nav", "ol", "p", "pre", "section", "table", "ul",
    ), "\n\n"),
    **dict.fromkeys(("br", "li", "option", "tr"), "\n"), "td": " ", "th": " ",
}  # fmt: skip


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

    text, problems = decode(data, shown(path))
    declared = problems or b"\x1b" in data  # not UTF-8, or ISO 2022; a page that is UTF-8 need not say so
    if problems and b"charset" not in data[:4096]:
        raise InputError(problems)
    parser = etree.HTMLParser(
        encoding=None if declared else "utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data if declared else text.encode(), parser)
    except etree.XMLSyntaxError:  # there is no element in it
        root = None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise NoTextError("HTML with over 2,000 elements in one another: save it as text")
    if root is None:
        return Extracted("")
    title = " ".join(root.xpath("string(//title[not(ancestor::svg)])").split())
    etree.strip_elements(root, "script", "style", "svg", "template", "title", with_tail=False)

    def parts() -> Iterator[str]:
        for event, element in etree.iterwalk(root, events=("start", "end")):
            end = _BREAKS.get(element.tag, "")
            yield end if event == "start" or end == "\n\n" else ""  # a line ends where the next one begins
            yield re.sub(r"\s+", " ", (element.text if event == "start" else element.tail) or "")

    # Blocks apart by an empty line, without white space at the ends of lines.
    lines = (line.strip() for line in re.sub(" +", " ", _joined(parts(), "HTML")).split("\n"))
    return Extracted(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), title or None)


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
        text = _joined((f"{page.extract_text()}\n" for page in reader.pages), "PDF").removesuffix("\n")
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
