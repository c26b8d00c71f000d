"""`exclude@local`: the share of the forbidden phrases that the answer does not hold.

`expect.exclude` is a list of phrases; of a list of alternatives none may stand there. An empty answer holds
none of them, and so has all of the share. An item without the rule, and a rule that is none, are unscored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgecal.judges.local._phrases import Match, check_language, named, phrases_in

SCALE = "percentage"
SOURCE = "RAG-IFEval, exclude"
NEEDS = "answer, expect.exclude"
PACKAGES = {"simplemma": "lemmas"}
CHECK = check_language


def exclude(
    answer: str, expect: Mapping[str, Any], *, match: Match = "substring", lemmas: str = ""
) -> tuple[float | None, str]:
    """Share of the entries that do not stand in the answer, in percent, and those that do."""
    if "exclude" not in expect:
        return None, "the item has no rule exclude"
    held = phrases_in(answer, expect["exclude"], match, lemmas)
    if isinstance(held, str):
        return None, f"exclude: {held}"
    present, absent = held
    return 100.0 * len(absent) / (len(present) + len(absent)), f"there: {named(present)}" if present else ""
