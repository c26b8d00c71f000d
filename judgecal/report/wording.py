"""What every document's sentences are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from judgecal.errors import listed
from judgecal.records import Estimate

if TYPE_CHECKING:
    from judgecal.experiment.agreement import GoldSummary

_IN_A_ROW = 4
_LEFT_OUT = 8  # columns that are named
_WORDS_BELOW = 40  # of a headline, below its sentence

CHIPS = {
    "use": ("●", "good"), "pass": ("✓", "good"), "triage only": ("◐", "careful"), "changed": ("△", "careful"),
    "too few": ("○", "open"), "cannot tell": ("○", "open"), "none": ("✕", "bad"), "fail": ("✕", "bad"),
    "unread": ("?", "bad"),
}  # fmt: skip
"""The decisions that a headline can have in a word, each with its shape and its tone."""

OWN_LABELS = "Whether people agree with these labels: the project itself made them."
"""What is not known of whatever rests on labels that no person gave."""

_FAILURES = {
    "absent": "not recorded",
    "budget": "the budget had ended",
    "code": "the judge's code failed",
    "context_length": "the prompt was too long",
    "input": "the item lacks what the judge asks for",
    "length": "the reply was cut off",
    "out_of_range": "the verdict was off the scale",
    "parse": "the reply could not be read",
    "rate_limit": "the provider was too busy",
    "refused": "the provider refused",
    "server": "the server failed",
    "timeout": "no reply in time",
    "transport": "the connection was lost",
}


def sentences(*parts: str | bool | Iterable[str] | None) -> tuple[str, ...]:
    """Return a tuple of the texts whose condition holds, in order: `n > 0 and f"{n} are left."`."""
    lists = ([part] if isinstance(part, str) else part for part in parts if part and part is not True)
    return tuple(text for texts in lists for text in texts if text)


def fitting(*reasons: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two tuples of the reasons given: those that fit below a headline, and the others."""
    there = [reason for reason in reasons if reason]
    words = accumulate(len(reason.split()) for reason in there)
    n = max(1, sum(total <= _WORDS_BELOW for total in words))
    return tuple(there[:n]), tuple(there[n:])


def sentence(text: str) -> str:
    """Return a text as a sentence, first letter raised unless a metric's or a judge's name begins it."""
    named = not text.split(maxsplit=1)[0].rstrip(",:").isalpha()
    return f"{text}." if named else f"{text[0].upper()}{text[1:]}."


def columns_in_words(columns: Mapping[str, str], left_out: Sequence[str]) -> tuple[str, ...]:
    """Return a tuple of sentences on columns (column -> what it was taken as) and names of those left out."""
    used = ", ".join(f"{name} as {what}" for name, what in columns.items())
    return sentences(
        bool(columns) and f"Columns used: {used}.",
        bool(left_out) and f"Columns left: {listed(left_out, _LEFT_OUT)}.",
    )


def in_a_row(names: Sequence[str]) -> str:
    """Join names as text, `a, b and c`; of many the first few, and the number of more."""
    if len(names) > _IN_A_ROW:
        return listed(list(names), _IN_A_ROW)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def path_from_here(path: Path) -> str:
    """Write a Path as text as it is typed here: within the current folder relative to it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def failures_in_words(unscored: Mapping[str, int]) -> str:
    """Write a mapping, kind of failure -> count of unscored judgements, as text, commonest first."""
    reasons = sorted(unscored.items(), key=lambda reason: -reason[1])
    counts = len(reasons) > 1
    parted = ((kind.rpartition(": "), n) for kind, n in reasons)  # `answer: parse` is one of no verdict
    return ", ".join(
        f"{who}{colon}{_FAILURES.get(kind, kind)}" + f" ({n:,})" * counts for (who, colon, kind), n in parted
    )


DASH = "-"


def plain(value: float | None, digits: int = 3) -> str:
    """Write a number (or None) as text with fixed digits; a dash where it is undefined; never `-0.000`."""
    if value is None:
        return DASH
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def estimate(
    measured: Estimate | None, digits: int = 3, *, write: Callable[[float | None, int], str] = plain
) -> str:
    """Write an Estimate (or None) as text, `0.842 [0.781, 0.903]`; the value alone without an interval."""
    if measured is None:
        return DASH
    return write(measured.value, digits) + interval(measured, digits, write=write)


def interval(
    measured: Estimate, digits: int = 3, *, write: Callable[[float | None, int], str] = plain
) -> str:
    """Write the interval of an Estimate as text, to stand behind its value: ` [0.781, 0.903]`, or empty."""
    if measured.value is None or measured.low is None or measured.high is None:
        return ""
    return f" [{write(measured.low, digits)}, {write(measured.high, digits)}]"


def difference(measured: Estimate | None, digits: int = 3) -> str:
    """Like `estimate`, with signs: `+0.025 [+0.004, +0.046]`."""
    return estimate(measured, digits, write=signed)


def signed(value: float | None, digits: int) -> str:
    """Write a number (or None) as text with its sign (`+` above 0), given how many digits."""
    text = plain(value, digits)
    return f"+{text}" if value is not None and value > 0.0 and float(text) else text


def money(usd: float | None) -> str:
    """Write an amount of USD (or None) as text, with enough digits for a thousandth of a cent."""
    if usd is None:
        return "unknown"
    return "0" if usd == 0 else f"{usd:.5f}" if usd < 0.01 else f"{usd:.3f}"


def seconds(value: float | None) -> str:
    """Write a latency in seconds (or None) as text, in ms below a second."""
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
    """Write a whole number with a comma at its thousands."""
    return DASH if value is None else f"{value:,}"


def count_of(value: int | None, thing: str) -> str:
    """A whole number of things: `1 question`, `2 questions`."""
    return f"{count(value)} {thing}{'s' * (value != 1)}"


def p_value(value: float | None) -> str:
    """A p value: `<0.001`, `0.042`."""
    return "<0.001" if value is not None and value < 0.001 else plain(value)


def between(values: Sequence[float | None]) -> str:
    """Write the range of shares (numbers or None) as text: `87%` or `91 to 95%`."""
    ends = sorted((points(value, 0) for value in values if value is not None), key=float)
    if not ends:
        return "an unknown share"
    return f"{ends[-1]}%" if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}%"


def shortened(name: str, width: int) -> str:
    """Cut a name's text to a width in its middle, since beginnings and ends tell judges apart."""
    half = (width - 1) // 2
    return name if len(name) <= width else f"{name[: width - 1 - half]}…{name[-half:]}"


def gold_in_words(gold: GoldSummary) -> str:
    """Return a GoldSummary as a text: set, split, items, questions, scale, who labelled, pass mark."""
    whom = {"people": " by people", "project": " by the project itself, not by people"}
    mark = f", pass at {gold.pass_at:g}" if gold.pass_at is not None else ""
    return (
        f"{gold.set}@{gold.sha256[:12]}, split {gold.split}: {gold.n_items:,} items on {gold.n_groups:,} "
        f"questions, {gold.scale} labels{whom.get(gold.labels_by, '')}{mark}"
    )
