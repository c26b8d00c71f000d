"""What every document's sentences are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from judgecal.errors import listed

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
    """The sentences whose condition holds, in order: `n > 0 and f"{n} are left."`; lists are taken in."""
    lists = ([part] if isinstance(part, str) else part for part in parts if part and part is not True)
    return tuple(text for texts in lists for text in texts if text)


def fitting(*reasons: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What there is room for below a headline's sentence, and the rest; what weighs most comes first."""
    there = [reason for reason in reasons if reason]
    words = accumulate(len(reason.split()) for reason in there)
    n = max(1, sum(total <= _WORDS_BELOW for total in words))
    return tuple(there[:n]), tuple(there[n:])


def sentence(text: str) -> str:
    """A note as a sentence of its own; the name of a metric or a judge keeps its first letter."""
    named = not text.split(maxsplit=1)[0].rstrip(",:").isalpha()
    return f"{text}." if named else f"{text[0].upper()}{text[1:]}."


def columns_in_words(columns: Mapping[str, str], left_out: Sequence[str]) -> tuple[str, ...]:
    """What each column of a table was taken as, and which nothing is taken from."""
    used = ", ".join(f"{name} as {what}" for name, what in columns.items())
    return sentences(
        bool(columns) and f"Columns used: {used}.",
        bool(left_out) and f"Columns left: {listed(left_out, _LEFT_OUT)}.",
    )


def in_a_row(names: Sequence[str]) -> str:
    """`a, b and c`; of many the first ones, and how many more."""
    if len(names) > _IN_A_ROW:
        return listed(list(names), _IN_A_ROW)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def path_from_here(path: Path) -> str:
    """A path as it is typed here: within the current folder without what leads to that."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def failures_in_words(unscored: Mapping[str, int]) -> str:
    """Why there is no verdict, the commonest reason first; counts where there are several."""
    reasons = sorted(unscored.items(), key=lambda reason: -reason[1])
    counts = len(reasons) > 1
    parted = ((kind.rpartition(": "), n) for kind, n in reasons)  # `answer: parse` is one of no verdict
    return ", ".join(
        f"{who}{colon}{_FAILURES.get(kind, kind)}" + f" ({n:,})" * counts for (who, colon, kind), n in parted
    )
