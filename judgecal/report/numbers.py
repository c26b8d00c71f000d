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
    measured: Estimate | None, digits: int = 3, *, write: Callable[[float | None, int], str] = plain
) -> str:
    """`0.842 [0.781, 0.903]`; the value alone where there is no interval."""
    if measured is None:
        return DASH
    return write(measured.value, digits) + interval(measured, digits, write=write)


def interval(
    measured: Estimate, digits: int = 3, *, write: Callable[[float | None, int], str] = plain
) -> str:
    """What stands behind a value: ` [0.781, 0.903]`; empty where there is no value or no interval."""
    if measured.value is None or measured.low is None or measured.high is None:
        return ""
    return f" [{write(measured.low, digits)}, {write(measured.high, digits)}]"


def difference(measured: Estimate | None, digits: int = 3) -> str:
    """Like `estimate`, with signs: `+0.025 [+0.004, +0.046]`."""
    return estimate(measured, digits, write=signed)


def signed(value: float | None, digits: int) -> str:
    """Like `plain`, with a sign before what is above 0."""
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


def p_value(value: float | None) -> str:
    """A p value: `<0.001`, `0.042`."""
    return "<0.001" if value is not None and value < 0.001 else plain(value)


def between(values: Sequence[float | None]) -> str:
    """The range of shares, `87%` or `91 to 95%`."""
    ends = sorted((points(value, 0) for value in values if value is not None), key=float)
    if not ends:
        return "an unknown share"
    return f"{ends[-1]}%" if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}%"


def shortened(name: str, width: int) -> str:
    """A name that would run out of its place loses its middle: beginnings and ends tell judges apart."""
    half = (width - 1) // 2
    return name if len(name) <= width else f"{name[: width - 1 - half]}…{name[-half:]}"
