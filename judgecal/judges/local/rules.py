"""`rules@local`: the mean over the rules of the item: include, exclude, cite and refuse.

Each rule is read as by the judge of its name, 0 to 100; `safe`, which needs a list of words, is left out. An
item without any of them, and one with a rule that cannot be read, are unscored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgecal.judges.local._phrases import Match, check_language
from judgecal.judges.local.cite_f1 import cite_f1
from judgecal.judges.local.exclude import exclude
from judgecal.judges.local.include import include
from judgecal.judges.local.refuse import MESSAGE, refuse
from judgecal.records import Item

SCALE = "percentage"
SOURCE = "RAG-IFEval, all but safe"
NEEDS = "answer, expect"
PACKAGES = {"simplemma": "lemmas"}
CHECK = check_language


def rules(
    answer: str,
    expect: Mapping[str, Any],
    item: Item,
    *,
    match: Match = "substring",
    lemmas: str = "",
    message: str = MESSAGE,
) -> tuple[float | None, str]:
    """The mean of the rules in percent, and what each of them says."""
    said: dict[str, tuple[float | bool | None, str]] = {}
    if "include" in expect:
        said["include"] = include(answer, expect, match=match, lemmas=lemmas)
    if "exclude" in expect:
        said["exclude"] = exclude(answer, expect, match=match, lemmas=lemmas)
    if "cite" in expect:
        said["cite"] = cite_f1(answer, expect, item)
    if "refuse" in expect:
        met, why = refuse(answer, expect, message=message)
        said["refuse"] = (None if met is None else 100.0 * met, why)
    if not said:
        return None, "the item has none of the rules include, exclude, cite, refuse"
    unread = [why for value, why in said.values() if value is None]
    if unread:
        return None, unread[0]
    mean = sum(value for value, _ in said.values() if value is not None) / len(said)
    return mean, "; ".join(
        f"{rule} {value:g}{f' ({why})' * bool(why)}" for rule, (value, why) in said.items()
    )
