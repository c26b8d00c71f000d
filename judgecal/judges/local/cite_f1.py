"""`cite_f1@local`: F1 of the contexts that the answer cites against those that it should cite.

`expect.cite` is a list of document ids. The answer cites by the positions of its contexts, counted from 0:
`[0]`, `[0, 2]`, `[1,]`. A position without a context counts as a wrong citation, and an answer that cites
nothing has 0. An item without the rule, a rule that is none, and a document that is not among the item's
contexts are unscored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from judgecal.records import Item

SCALE = "percentage"
SOURCE = "RAG-IFEval, cite"
NEEDS = "answer, contexts with document ids, expect.cite"

_CITATION = re.compile(r"\[([\d\s,]+)\]", re.ASCII)


def cite_f1(answer: str, expect: Mapping[str, Any], item: Item) -> tuple[float | None, str]:
    """F1 in percent over the positions of documents, and how many are right."""
    counts = citations(answer, expect, item)
    if isinstance(counts, str):
        return None, counts
    hits, n_right, n_cited = counts
    reason = f"{hits} of {n_right} cited, {n_cited - hits} others" if n_cited else "it cites nothing"
    return 200.0 * hits / (n_right + n_cited), reason


def citations(answer: str, expect: Mapping[str, Any], item: Item) -> tuple[int, int, int] | str:
    """How many citations are right, how many there should be, how many there are; or why nobody can say."""
    if "cite" not in expect:
        return "the item has no rule cite"
    wanted = expect["cite"]
    if (
        not isinstance(wanted, list | tuple)
        or not wanted
        or not all(isinstance(citation, str) for citation in wanted)
    ):
        return "cite: the rule must be a list of document ids"
    places: dict[str, str] = {}  # by document, its first position
    here: dict[str, str] = {}  # by position, the first position of the same document
    for place, context in enumerate(item.contexts):
        here[str(place)] = places.setdefault(context.document_id or f"\0{place}", str(place))
    missing = [citation for citation in wanted if citation not in places]
    if missing:
        return f"cite: {missing[0]} is not among the contexts of the item"
    right = {places[citation] for citation in wanted}
    cited = {here.get(citation, citation) for citation in _cited(answer)}
    return len(right & cited), len(right), len(cited)


def _cited(answer: str) -> set[str]:
    """The positions in brackets, without leading zeros."""
    numbers = (number for part in _CITATION.findall(answer) for number in part.replace(",", " ").split())
    return {number.lstrip("0") or "0" for number in numbers}
