"""How numbers are written, in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from judgecal.records import Estimate

DASH = "-"


def plain(value: float | None, digits: int = 3) -> str:
    """A number with fixed digits; a dash where it is undefined; never `-0.000`."""
    if value is None:
        return DASH
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def estimate(
    found: Estimate | None, digits: int = 3, *, write: Callable[[float | None, int], str] = plain
) -> str:
    """`0.842 [0.781, 0.903]`; the value alone where there is no interval."""
    if found is None:
        return DASH
    value = write(found.value, digits)
    if found.value is None or found.low is None or found.high is None:
        return value
    return f"{value} [{write(found.low, digits)}, {write(found.high, digits)}]"


def difference(found: Estimate | None, digits: int = 3) -> str:
    """Like `estimate`, with signs: `+0.025 [+0.004, +0.046]`."""
    return estimate(found, digits, write=_signed)


def _signed(value: float | None, digits: int) -> str:
    text = plain(value, digits)
    return f"+{text}" if value is not None and value > 0.0 and float(text) else text


def money(usd: float | None) -> str:
    """US dollars with enough digits for a thousandth of a cent."""
    if usd is None:
        return "unknown"
    return "0" if usd == 0 else f"{usd:.5f}" if usd < 0.01 else f"{usd:.3f}"


def seconds(value: float | None) -> str:
    """A latency, in ms below a second."""
    if value is None:
        return DASH
    return f"{value:.2f} s" if value >= 1.0 else f"{1000.0 * value:.1f} ms"


def points(value: float | None, digits: int = 1) -> str:
    """A share or a difference of shares in points, `2.1`; the word is the reader's."""
    return plain(None if value is None else 100.0 * value, digits)


def percent(value: float | None, digits: int = 0) -> str:
    """A share as `12%`."""
    return DASH if value is None else f"{points(value, digits)}%"


def count(value: int | None) -> str:
    """A whole number with its thousands apart."""
    return DASH if value is None else f"{value:,}"


def count_of(value: int | None, thing: str) -> str:
    """A whole number of things: `1 question`, `2 questions`."""
    return f"{count(value)} {thing}{'s' * (value != 1)}"


def between(values: Sequence[float | None]) -> str:
    """The range of shares, `87%` or `91 to 95%`."""
    ends = sorted(points(value, 0) for value in values if value is not None)
    if not ends:
        return "an unknown share"
    low, high = min(ends, key=float), max(ends, key=float)
    return f"{high}%" if low == high else f"{low} to {high}%"
