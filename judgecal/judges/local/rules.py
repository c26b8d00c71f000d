"""`rules@local`: the mean over the rules of the item: include, exclude, cite, refuse, and safe with `words`.

Each rule is read as by the judge of its name, 0 to 100; `safe` needs a list of words, such as
`words=badwords.txt`. An item without any of them, and one with a rule that cannot be read, are unscored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from judgecal.judges.local._phrases import Match, check_language
from judgecal.judges.local.cite_f1 import cite_f1
from judgecal.judges.local.exclude import exclude
from judgecal.judges.local.include import include
from judgecal.judges.local.refuse import MESSAGE, refuse
from judgecal.judges.local.safe import safe
from judgecal.records import Item

SCALE = "percentage"
SOURCE = "RAG-IFEval"
NEEDS = "answer, expect.include/exclude/cite/refuse/safe"
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
    words: Path = Path(),
) -> tuple[float | None, str]:
    """The mean of the rules in percent, and what each of them says."""
    verdicts: dict[str, Callable[[], tuple[float | bool | None, str]]] = {
        "include": lambda: include(answer, expect, match=match, lemmas=lemmas),
        "exclude": lambda: exclude(answer, expect, match=match, lemmas=lemmas),
        "cite": lambda: cite_f1(answer, expect, item),
        "refuse": lambda: refuse(answer, expect, message=message),
    }
    if words != Path():
        verdicts["safe"] = lambda: safe(answer, expect, words=words, lemmas=lemmas)
    applied = {rule: verdict() for rule, verdict in verdicts.items() if rule in expect}
    if not applied:
        return None, f"the item has none of the rules {', '.join(verdicts)}"
    for value, why in applied.values():
        if value is None:
            return None, why
    shares = {
        rule: (100.0 * value if value is True else float(value or 0), why)
        for rule, (value, why) in applied.items()
    }
    reason = "; ".join(f"{rule} {share:g}{f' ({why})' * bool(why)}" for rule, (share, why) in shares.items())
    return sum(share for share, _ in shares.values()) / len(shares), reason
