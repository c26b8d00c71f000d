"""`include@local`: the share of the expected phrases that the answer holds.

`expect.include` is a list of phrases; one that is a list itself holds alternatives, of which one is enough.
An empty answer holds none of them. An item without the rule, and a rule that is none, are unscored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgecal.judges.local._phrases import Match, check_language, named, phrases_in

SCALE = "percentage"
SOURCE = "RAG-IFEval, include"
NEEDS = "answer, expect.include"
PACKAGES = {"simplemma": "lemmas"}
CHECK = check_language


def include(
    answer: str, expect: Mapping[str, Any], *, match: Match = "substring", lemmas: str = ""
) -> tuple[float | None, str]:
    """Share of the entries that stand in the answer, in percent, and those that do not."""
    if "include" not in expect:
        return None, "the item has no rule include"
    held = phrases_in(answer, expect["include"], match, lemmas)
    if isinstance(held, str):
        return None, f"include: {held}"
    present, absent = held
    return 100.0 * len(present) / (
        len(present) + len(absent)
    ), f"not there: {named(absent)}" if absent else ""
