"""Charts within a page: Python places every mark in pixels, `plots.html` draws, the style sheet colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from judgecal.report.html import plot

_BELOW = 40.0  # pixels under the axis, for its numbers and its title
_LETTER = 6.2  # pixels of a letter beside an axis, on average


def shortened(name: str, width: int) -> str:
    """A name that would run out of its place loses its middle: beginnings and ends tell judges apart."""
    half = (width - 1) // 2
    return name if len(name) <= width else f"{name[: width - 1 - half]}…{name[-half:]}"


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis in pixels, and its number."""

    at: float
    text: str


def place(value: float, low: float, high: float, begin: float, end: float) -> float:
    """The pixel of a value on an axis from `low` to `high`."""
    return round(begin + (value - low) / (high - low) * (end - begin), 1)


def ticks(low: float, high: float, begin: float, end: float, *, most: int = 7) -> list[Tick]:
    """Round numbers on an axis, at most so many."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1.0, 2.0, 5.0, 10.0) if power * nice >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [Tick(place(n * step, low, high, begin, end), f"{n * step:.6g}") for n in range(first, last + 1)]


def apart(every: Iterable[Tick]) -> list[Tick]:
    """Those of the texts, from left to right, that do not run into the one before."""
    shown: list[Tick] = []
    for tick in every:
        half = (len(tick.text) + len(shown[-1].text if shown else "")) * _LETTER / 2.0
        if not shown or tick.at - shown[-1].at >= half + _LETTER:
            shown.append(tick)
    return shown


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing on a chart, in pixels: a bar and a line span x to x2 and y to y2; a path is `text`."""

    kind: Literal["bar", "line", "dot", "path", "text"]
    x: float = 0.0
    y: float = 0.0
    x2: float = 0.0
    y2: float = 0.0
    text: str = ""
    tone: str = "plain"  # how the style sheet knows it


@dataclass(frozen=True, slots=True)
class Frame:
    """The axes of a chart."""

    width: int
    x_range: tuple[float, float]  # what they reach, in the units of the values
    y_range: tuple[float, float]
    titles: tuple[str, str]  # of the axis below, and of the upright one, which stands above it
    log: bool = False  # whether the axis below is logarithmic
    left: float = 44.0
    top: float = 26.0
    tall: float = 190.0

    @property
    def right(self) -> float:
        """Where the axis below ends."""
        return self.width - 10.0

    @property
    def bottom(self) -> float:
        """Where the upright axis ends."""
        return self.top + self.tall

    @property
    def height(self) -> float:
        """Of the whole chart."""
        return self.bottom + _BELOW

    def x(self, value: float) -> float:
        """The pixel of a value on the axis below."""
        ends = (value, *self.x_range)
        value, low, high = map(math.log10, ends) if self.log else ends
        return place(value, low, high, self.left, self.right)

    def y(self, value: float) -> float:
        """The pixel of a value on the upright axis."""
        return place(value, *self.y_range, self.bottom, self.top)

    @property
    def y_ticks(self) -> list[Tick]:
        """Round numbers on the upright axis."""
        return ticks(*self.y_range, self.bottom, self.top, most=5)

    def numbers(self) -> list[Tick]:
        """Round numbers on the axis below."""
        low, high = self.x_range
        if not self.log:
            return ticks(low, high, self.left, self.right, most=5 if self.width < 400 else 7)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        nice = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return apart(Tick(self.x(value), f"{value:,g}") for value in nice if low <= value <= high)

    def drawn(self, marks: Sequence[Mark], below: Sequence[Tick] | None = None) -> str:
        """The chart as SVG; `below` are the numbers of the axis where they are no round ones."""
        ticks = self.numbers() if below is None else below
        return plot("chart", {"frame": self, "marks": marks, "ticks": ticks})
