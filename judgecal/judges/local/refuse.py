"""`refuse@local`: 1 where the answer refuses as the rule wants it, or does not where it must not.

`expect.refuse` is true or false. An answer refuses where it holds the message that the system was told to
refuse with: the same words in the same order, whatever the case and the signs between them. The message is a
setting, by default RAG-IFEval's. An empty answer does not refuse. An item without the rule, and a rule that
is none, are unscored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgecal.judges.local._phrases import phrases_in

SCALE = "binary"
SOURCE = "RAG-IFEval, refuse"
NEEDS = "answer, expect.refuse"
MESSAGE = "Nie udało mi się odnaleźć odpowiedzi na pytanie"


def refuse(answer: str, expect: Mapping[str, Any], *, message: str = MESSAGE) -> tuple[bool | None, str]:
    """Whether the answer holds the message as the rule says, and what it does."""
    if "refuse" not in expect:
        return None, "the item has no rule refuse"
    wanted = expect["refuse"]
    if not isinstance(wanted, bool):
        return None, "refuse: the rule must be true or false"
    held = phrases_in(answer, message, "substring", "")
    if isinstance(held, str):
        return None, f"refuse: {held}: set message to the words of a refusal"
    refuses = bool(held[0])
    return refuses == wanted, "the answer refuses" if refuses else "the answer does not refuse"
