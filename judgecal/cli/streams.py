"""Standard output and error as a command has them: the one door that all text goes out by.

Whoever writes (a renderer, a message, a library's warning), nothing that it writes acts on a terminal, what
the encoding lacks is written with what it has, and a reader that goes away ends nothing: a gate that has
decided still says so by its exit code.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import sys
from collections.abc import Iterator
from typing import TextIO

from judgecal.errors import ERASE_LINE, visible, visible_line

_READER_GONE = (errno.EPIPE, errno.ECONNRESET, errno.ESHUTDOWN)


class SafeStream(io.TextIOBase):
    """A standard stream that is safe to write any text to.

    Attributes:
        lost: why the stream takes nothing any more; None as long as it does.
        live: the line that is redrawn, as long as it stands; whatever else is written takes its place.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost: OSError | None = None
        self.live = ""
        self.beside: SafeStream | None = None  # whose redrawn line stands on the same terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream below."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write a text, made harmless, and return its length; after the stream was lost, write nothing."""
        for stream in (self, self.beside):
            if stream and stream.live:
                stream.redraw("")
        self._write(encodable(visible(text).replace("\t", "    "), self.encoding))
        return len(text)

    def redraw(self, line: str) -> None:
        """Put a line (text) in the place of the one that was redrawn last; an empty one takes it away."""
        from rich.cells import cell_len, set_cell_size

        line, room = (
            encodable(visible_line(line), self.encoding),
            shutil.get_terminal_size((80, 24)).columns - 1,
        )
        self.live = set_cell_size(line, room) if cell_len(line) > room else line
        self._write(f"{ERASE_LINE}{self.live}")
        self.flush()

    def _write(self, text: str) -> None:
        if self.lost is None:
            with self._losing():
                self._stream.write(text)

    def flush(self) -> None:
        """Hand over the text that is buffered."""
        if self.lost is None:
            with self._losing():
                self._stream.flush()

    @property
    def reader_gone(self) -> bool:
        """Whether the stream was lost because nobody reads it any more, as in `judgecal score | head -1`."""
        return self.lost is not None and self.lost.errno in _READER_GONE

    def isatty(self) -> bool:
        """Whether the stream below is a terminal."""
        return self._stream.isatty()

    def writable(self) -> bool:
        """True even for a lost stream, which drops what it is given."""
        return True

    def fileno(self) -> int:
        """The file descriptor of the stream below."""
        return self._stream.fileno()

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
    """A text with the codes of the characters that an encoding lacks: `\\xd7` for a times sign."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


@contextlib.contextmanager
def safe_streams() -> Iterator[tuple[SafeStream, SafeStream]]:
    """Put a pair of SafeStreams, which it yields, in the place of stdout and stderr."""
    before = sys.stdout, sys.stderr
    safe = SafeStream(before[0] or io.StringIO()), SafeStream(before[1] or io.StringIO())
    sys.stdout, sys.stderr = safe
    safe[0].beside = safe[1]
    try:
        yield safe
    finally:
        for stream in safe:
            stream.flush()
        sys.stdout, sys.stderr = before


def claim_descriptors() -> None:
    """Open what was closed of stdin, stdout and stderr on nothing, so that no file of ours becomes one."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
