"""Where a judge fails: what items have in common, as their texts show it, and the error on each part."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.result import SliceEntry
from judgecal.experiment.verdicts import Cut
from judgecal.models.embedded.text import refuses
from judgecal.records import Estimate, Item
from judgecal.scale import Label
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.slices import slices

_ASKS = {word: word for word in ("who", "what", "where", "when", "why", "how", "which")} | {
    "whom": "who",
    "whose": "who",
}
_WORD = re.compile(r"[^\W_]+")
_WITHIN = 4  # words in which a question begins to ask: "in which year", "and at the end who"
_MANY_REFERENCES = 3


@dataclass(frozen=True, slots=True)
class SliceTable:
    """One judge on the slices of some items."""

    entries: tuple[SliceEntry, ...]  # the largest error first
    whole: Estimate  # the error on all of the items
    marks: Mapping[str, Sequence[str]]  # item -> the slices that it is in


def judge_slices(table: AgreementTable, judge: Verdicts) -> SliceTable | None:
    """A judge on the slices that `traits_of` finds, by the verdicts that describe it.

    The error is the share of wrong verdicts; of graded labels verdict less label, in units of their scale.
    None where the items were drawn with unequal probabilities.
    """
    if table.weights is not None:
        return None
    verdicts, scale = table.described(judge)
    cut, graded = Cut(table.gold.scale, scale), table.gold.scale.graded
    span = cut.common.span if graded else 1.0

    @functools.cache
    def error(label: Label, verdict: Label) -> float:
        return span * cut.distance(label, verdict) if graded else float(cut.error(label, verdict) is not None)

    errors = []
    for label, row in zip(table.labels, as_lists(verdicts), strict=True):
        given = [error(label, verdict) for verdict in row if verdict is not None]
        errors.append(sum(given) / len(given) if given else math.nan)
    places: dict[tuple[str, str], list[int]] = {}
    for place, found in enumerate(traits_of(table.items)):
        for trait in found:
            places.setdefault(trait, []).append(place)
    members = np.zeros((len(places), len(errors)), dtype=np.bool_)
    for member, of in zip(members, places.values(), strict=True):
        member[of] = True
    ends: dict[str, Any] = {"low": -span if graded else 0.0, "high": span, "level": table.level}
    held = slices(errors, list(members), table.groups, **ends)
    entries, marks = list[SliceEntry](), dict[str, list[str]]()
    for (name, value), of, one in zip(places, places.values(), held, strict=True):
        if one is None:
            continue
        n, n_groups, p = one.error.n, one.error.n_groups, one.p_value
        entry = SliceEntry(judge.judge, name, value, n, n_groups, one.error, p, one.stands_out, one.rest)
        entries.append(entry)
        for place in of:
            marks.setdefault(table.items[place].item_id, []).append(entry.mark)
    entries.sort(key=lambda entry: -(entry.error.value or 0.0))
    return SliceTable(tuple(entries), mean_estimate(errors, table.groups, **ends), marks)


def traits_of(items: Sequence[Item]) -> Iterator[list[tuple[str, str]]]:
    """What is to be seen of each item, as trait and value; the bins of length are thirds of the items."""
    lengths = [len(item.answered.split()) for item in items]
    ordered = sorted(lengths)
    ends = sorted({ordered[len(items) * third // 3] for third in (1, 2)}) if items else []
    for item, length in zip(items, lengths, strict=True):
        n = len(item.reference_answers)
        traits = [
            ("question word", question_word(item.question)),
            ("answer length", _bin(length, ends)),
            ("references", f"{_MANY_REFERENCES} or more" if n >= _MANY_REFERENCES else str(n)),
            ("refusal", "yes" if refuses(item.answered) else ""),
            ("digits", "yes" if any(map(str.isdigit, item.answered)) else ""),
            ("system", item.system or ""),
            *(("tag", tag) for tag in dict.fromkeys(item.tags)),
        ]
        yield [trait for trait in traits if trait[1]]


def question_word(question: str) -> str:
    """What a question asks for; its first word where it begins with none of the English words for that."""
    words = _WORD.findall(question.lower())
    for place, word in enumerate(words[:_WITHIN]):
        if word in _ASKS:
            counted = word == "how" and words[place + 1 : place + 2] in (["many"], ["much"])
            return "how many/much" if counted else _ASKS[word]
    return words[0] if words else ""


def _bin(length: int, ends: Sequence[int]) -> str:
    """Words of an answer by the last length of each bin but the longest."""
    begin = 0
    for end in ends:
        if length <= end:
            return f"up to {end}" if not begin else f"{begin} to {end}" if begin < end else str(end)
        begin = end + 1
    return f"{begin} or more"
