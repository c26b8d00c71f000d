"""Progress on stderr: done, unscored, rate, cost, time left, and how many calls go at once."""

from __future__ import annotations

import sys
import time
from typing import TextIO

__all__ = ["Progress"]

_REDRAW_S = 0.2
_PLAIN_LINE_S = 30.0


class Progress:
    """A line that is redrawn on a terminal, and a plain line every 30 s elsewhere.

    Args:
        label: what is being done.
        total: judgements to be had in this run.
        stream: where to write; stderr by default.

    Attributes:
        done, unscored, cost_usd: what was counted.
        at_once: calls that may be in flight; 0 where nobody has said so.
    """

    def __init__(self, label: str, total: int, *, stream: TextIO | None = None) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self.unscored = 0
        self.cost_usd = 0.0
        self.at_once = 0
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._start = self._shown = time.monotonic()
        self._drawn = False

    def add(self, *, scored: bool, cost_usd: float | None) -> None:
        """Count one judgement and show the state when it is time."""
        self.done += 1
        self.unscored += not scored
        self.cost_usd += cost_usd or 0.0
        self.show()

    def show(self) -> None:
        """Show the state when it is time; also called while nothing comes, so that a slow run is no silent one."""
        now = time.monotonic()
        if now - self._shown >= (_REDRAW_S if self._live else _PLAIN_LINE_S):
            self._shown = now
            self._write(self.line(now - self._start))

    def line(self, elapsed_s: float) -> str:
        """The state as one line of text."""
        rate = self.done / elapsed_s if elapsed_s > 0 else 0.0
        parts = [f"{self.label}: {self.done}/{self.total}", f"{rate:.{0 if rate >= 10 else 1}f}/s"]
        if self.at_once:
            parts.append(f"{self.at_once} at once")
        if self.unscored:
            parts.append(f"{self.unscored} unscored")
        if self.cost_usd:
            parts.append(f"{self.cost_usd:.4f} USD")
        if rate:
            parts.append(f"{_clock((self.total - self.done) / rate)} left")
        return ", ".join(parts)

    def close(self) -> None:
        """Take the redrawn line away; what it counted stands in the result."""
        if self._drawn and self._live:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\x1b[2K{text}" if self._live else f"{text}\n")
        self._stream.flush()
        self._drawn = True


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
