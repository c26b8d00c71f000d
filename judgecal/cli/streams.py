"""Standard output and error as a command has them: the one door that all text goes out by.

Whoever writes (a renderer, a message, a library's warning), nothing that it writes acts on a terminal, what
the encoding lacks is written with what it has, and a reader that goes away ends nothing: a gate that has
decided still says so by its exit code.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO

from judgecal.errors import ERASE_LINE, visible

SILENT_S = 30.0
"""Seconds of silence on stderr after which a command says that it is at work."""

_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")
_PLAINER = {
    "\u00a0": " ",
    "·": "-",
    "×": "x",
    "‐": "-",
    "‑": "-",
    "–": "-",
    "—": "-",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "•": "*",
    "…": "...",
    "→": "->",
    "−": "-",
    "≈": "~",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
}
_READER_GONE = (
    errno.EPIPE,
    errno.ECONNRESET,
    errno.ESHUTDOWN,
    errno.EINVAL if sys.platform == "win32" else errno.EPIPE,
)


class SafeStream(io.TextIOBase):
    """A standard stream that is safe to write any text to.

    Attributes:
        coloured: whether colours pass, as the parser's help has them on a terminal; never while a command
            runs.
        lost: why the stream takes nothing any more; None as long as it does.
        written: when something was written last, by the monotonic clock.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.coloured = stream.isatty()
        self.lost: OSError | None = None
        self.written = time.monotonic()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream below."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write a text, made harmless; after the stream was lost, nothing."""
        self.written = time.monotonic()
        if self.lost is None:
            with self._losing():
                self._stream.write(encodable(self._harmless(text), self.encoding))
        return len(text)

    def flush(self) -> None:
        """Hand over what is buffered."""
        if self.lost is None:
            with self._losing():
                self._stream.flush()

    @property
    def reader_gone(self) -> bool:
        """Whether the stream was lost because nobody reads it any more, as in `judgecal score | head -1`."""
        return self.lost is not None and self.lost.errno in _READER_GONE

    def isatty(self) -> bool:
        """Whether a terminal shows it."""
        return self._stream.isatty()

    def writable(self) -> bool:
        """Always; what a lost stream is given is dropped."""
        return True

    def fileno(self) -> int:
        """That of the stream below."""
        return self._stream.fileno()

    def _harmless(self, text: str) -> str:
        if text == ERASE_LINE and self._stream.isatty():
            return text  # the progress line alone writes this, and it by itself
        parts = _COLOURS.split(text) if self.coloured else [text]
        return "".join(
            part if number % 2 else visible(part).replace("\t", "    ") for number, part in enumerate(parts)
        )

    @contextlib.contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.lost = error
            # What is still buffered must not fail again when the process ends: that would be exit code 120.
            with contextlib.suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._stream.fileno())
                os.close(null)


def encodable(text: str, encoding: str) -> str:
    """A text with what an encoding lacks in other words: "x" for "×", "e" for "é", the code of what has no
    kin."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "judgecal.plainer").decode(encoding)
    return text


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_kin, error.object[error.start : error.end])), error.end


def _kin(char: str) -> str:
    if char in _PLAINER:
        return _PLAINER[char]
    code = ord(char)
    if 0x2400 <= code <= 0x2421:  # a picture of a control character, as `visible` puts it
        return f"[U+{0x7F if code == 0x2421 else code - 0x2400:04X}]"
    plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
    return plain or f"[U+{code:04X}]"


codecs.register_error("judgecal.plainer", _plainer)


@contextlib.contextmanager
def safe_streams() -> Iterator[tuple[SafeStream, SafeStream]]:
    """Put safe streams in the place of stdout and stderr; a closed one takes what it is given, and drops
    it."""
    before = sys.stdout, sys.stderr
    safe = SafeStream(before[0] or io.StringIO()), SafeStream(before[1] or io.StringIO())
    sys.stdout, sys.stderr = safe
    try:
        yield safe
    finally:
        for stream in safe:
            stream.flush()
        sys.stdout, sys.stderr = before


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """While a command runs and stderr stays silent, as through long statistics, say each half a minute that
    it runs."""
    stream, started, ended = sys.stderr, time.monotonic(), threading.Event()

    def watch() -> None:
        while isinstance(stream, SafeStream) and not ended.wait(min(1.0, SILENT_S)):
            if time.monotonic() - stream.written >= SILENT_S:
                stream.write(f"judgecal: at work for {time.monotonic() - started:.0f} s\n")
                stream.flush()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@contextlib.contextmanager
def uncoloured() -> Iterator[None]:
    """While a command runs no colour passes: the help is done, and what is printed now quotes other people's
    texts."""
    streams: list[Any] = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, SafeStream)]
    before = [stream.coloured for stream in streams]
    for stream in streams:
        stream.coloured = False
    try:
        yield
    finally:
        for stream, coloured in zip(streams, before, strict=True):
            stream.coloured = coloured


def claim_descriptors() -> None:
    """Open what was closed of stdin, stdout and stderr on nothing, so that no file of ours becomes one of
    them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


@contextlib.contextmanager
def in_colour(wanted: bool) -> Iterator[None]:
    """Let the colours of a document pass to stdout, whose texts a renderer has made harmless itself."""
    stream = sys.stdout
    if not wanted or not isinstance(stream, SafeStream):
        yield
        return
    before, stream.coloured = stream.coloured, True
    try:
        yield
    finally:
        stream.coloured = before
