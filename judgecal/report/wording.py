"""Words that several reports share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from judgecal.errors import listed

_IN_A_ROW = 4


def sentence(text: str) -> str:
    """A note as a sentence of its own; the name of a metric or a judge keeps its first letter."""
    named = not text.split(maxsplit=1)[0].rstrip(",:").isalpha()
    return f"{text}." if named else f"{text[0].upper()}{text[1:]}."


def in_a_row(names: Sequence[str]) -> str:
    """`a, b and c`; of many the first ones, and how many more."""
    if len(names) > _IN_A_ROW:
        return listed(list(names), _IN_A_ROW)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def path_from_here(path: Path) -> str:
    """A path as it is typed here: within the current folder without what leads to that."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
