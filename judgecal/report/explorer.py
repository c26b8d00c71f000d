"""The explorer of a page: every open item on which a judge and people part, packed for the page's script.

The texts of users go into the page alone, compressed, and reach it as text, never as markup. Test items are
counted.
"""

from __future__ import annotations

import base64
import gzip
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from judgecal.errors import visible
from judgecal.experiment.verdicts import JudgeOfItem, PartedItem
from judgecal.goldset import GOLD
from judgecal.records import Rating
from judgecal.report.document import Block
from judgecal.report.numbers import count, count_of
from judgecal.report.wording import sentences
from judgecal.scale import Label

MOST_PACKED = 2_000_000
"""Characters of the packed items in a page at most; one that needs more carries the worst and says so."""

_TEXT_LIMITS = (8_000, 2_000, 500)  # characters of a text, the first with which all of them are small enough
_ALL_TEXTS = 8_000_000  # characters of all of them before they are compressed


class Packed(NamedTuple):
    """The items as the page carries them."""

    text: str  # gzip in base64
    n_items: int
    cut_at: int  # from where on texts are cut


@dataclass(frozen=True)
class Explorer(Block):
    """The items, worst first; only the page shows them."""

    items: Sequence[PartedItem]
    judges: Sequence[str]  # in the order of the items' verdicts
    n_open: int  # items that may be shown, those on which all agree among them
    n_sealed: int  # test items, which are counted and not shown
    prompts: Mapping[str, str] = field(default_factory=dict)  # judge -> its prompt, where that is known
    gold: str = ""  # the set that the labels are of

    @property
    def title(self) -> str:
        """How many there are."""
        return f"{count(len(self.items))} of {count(self.n_open)} open answers where a judge and people part"

    @property
    def relabel(self) -> str:
        """The command that has people look at labels which look wrong again; empty without a set."""
        return f"judgecal gold label {shlex.quote(self.gold)} --flagged flagged.csv" if self.gold else ""

    @property
    def sealed(self) -> str:
        """What stands in place of the test items."""
        return f"{count_of(self.n_sealed, 'test answer')} sealed" if self.n_sealed else ""

    @cached_property
    def packed(self) -> Packed:
        """All of them, or as many as fit."""
        limit = next((most for most in _TEXT_LIMITS if self._length(most) <= _ALL_TEXTS), _TEXT_LIMITS[-1])
        n = len(self.items)
        text = self._packed(n, limit)
        while len(text) > MOST_PACKED:
            n = int(0.95 * n * MOST_PACKED / len(text))
            text = self._packed(n, limit)
        return Packed(text, n, limit)

    @property
    def capped(self) -> str:
        """What the page does not carry; empty where it carries all."""
        _, n, cut_at = self.packed
        return " ".join(
            sentences(
                n < len(self.items)
                and f"Here are the worst {count(n)} of {count(len(self.items))}: a page carries at most 2 MB "
                "of items.",
                self._length(cut_at) < sum(self._lengths) and f"Texts end after {count(cut_at)} characters.",
            )
        )

    def _length(self, most: int) -> int:
        """Characters of all texts, each cut after `most`."""
        return sum(min(length, most) for length in self._lengths)

    @cached_property
    def _lengths(self) -> list[int]:
        lengths: list[int] = []
        for parted in self.items:
            item = parted.item
            texts = [item.question, item.answer, *item.reference_answers, *item.fields.values()]
            texts += [context.text for context in item.contexts]
            texts += [turn.content for turn in item.conversation]
            texts += [rating.note or "" for rating in parted.ratings]
            texts += [text for verdict in parted.said for text in (verdict.reasoning, verdict.raw_reply)]
            lengths += map(len, texts)
        return lengths

    def _packed(self, n: int, most: int) -> str:
        carried = {
            "judges": [
                {"name": visible(name), "prompt": visible(self.prompts.get(name, ""))} for name in self.judges
            ],
            "items": [_carried(parted, self.judges, most) for parted in self.items[:n]],
        }
        text = json.dumps(carried, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(gzip.compress(text.encode("utf-8"), 6, mtime=0)).decode("ascii")


def _carried(parted: PartedItem, judges: Sequence[str], most: int) -> dict[str, Any]:
    """An item as the script reads it; what is empty is left out."""

    def cut(text: str) -> str:
        more = len(text) - most
        return visible(text if more <= 0 else f"{text[:most]} … ({more:,} more characters)")

    def rater(rating: Rating) -> list[str]:
        label = rating.reason or "no label"
        if rating.label is not None:
            label = _shown(rating.label, binary=parted.binary)
        return [visible(rating.rater), visible(label), cut(rating.note or "")]

    def verdict(judge: JudgeOfItem) -> dict[str, Any]:
        return _filled(
            verdict=", ".join(_shown(label, binary=judge.binary) for label in judge.verdicts),
            given=", ".join(_shown(label, binary=False) for label in judge.raw),
            error=judge.error or (f"unscored: {judge.unscored}" if judge.unscored else ""),
            why=cut(judge.reasoning),
            raw=cut(judge.raw_reply),
        )

    item, by_judge = parted.item, {judge.judge: judge for judge in parted.said}
    further = [*item.fields.items(), *((turn.role, turn.content) for turn in item.conversation)]
    further += [(f"Context {at.document_id or place}", at.text) for place, at in enumerate(item.contexts, 1)]
    return _filled(
        id=visible(item.item_id),
        question=cut(item.asked),
        references=[cut(text) for text in item.reference_answers],
        answer=cut(item.answer),
        further=[[name, cut(text)] for name, text in further],
        system=visible(item.system or ""),
        tags=list(map(visible, item.tags)),
        label=_shown(parted.label, binary=parted.binary),
        raters=[rater(rating) for rating in parted.ratings if rating.rater != GOLD],
        said=[verdict(by_judge[judge]) if judge in by_judge else None for judge in judges],
        differ=parted.judges_differ,
        people=parted.people_differ,
    )


def _filled(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _shown(label: Label | None, *, binary: bool) -> str:
    """A label or a verdict: pass or fail, or a number without needless digits."""
    if label is None:
        return "unscored"
    if binary and label in (0, 1):
        return "pass" if label else "fail"
    return f"{label:g}" if isinstance(label, int | float) else visible(str(label))
