"""The explorer of a page: every open item on which a judge and people part, packed for the page's script.

The texts of users go into the page alone, compressed, and reach it as text, never as markup. Test items are
counted.
"""

from __future__ import annotations

import base64
import gzip
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from judgecal.errors import visible
from judgecal.experiment.verdicts import JudgeOfItem, PartedItem
from judgecal.goldset import GOLD
from judgecal.records import Rating
from judgecal.report import numbers
from judgecal.report.document import Block
from judgecal.report.wording import sentences
from judgecal.scale import Label

MOST_PACKED = 2_000_000
"""Characters of the packed items in a page at most; one that needs more carries the worst and says so."""

_T = TypeVar("_T")
_TEXT_LIMITS = (8_000, 2_000, 500)  # characters of a text, the first with which all of them are small enough
_ALL_TEXTS = 8_000_000  # characters of all of them before they are compressed


@dataclass(frozen=True, slots=True)
class Packed:
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
        of = f"{numbers.count(len(self.items))} of {numbers.count(self.n_open)} open answers"
        return f"{of} where a judge and people part"

    @property
    def relabel(self) -> str:
        """The command that has people look at labels which look wrong again; empty without a set."""
        return f"judgecal gold label {shlex.quote(self.gold)} --flagged flagged.csv" if self.gold else ""

    @property
    def sealed(self) -> str:
        """What stands in place of the test items."""
        return f"{numbers.count_of(self.n_sealed, 'test answer')} sealed" if self.n_sealed else ""

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
        n, of, cut_at = self.packed.n_items, len(self.items), self.packed.cut_at
        worst = f"Here are the worst {numbers.count(n)} of {numbers.count(of)}"
        return " ".join(
            sentences(
                n < of and f"{worst}: a page carries at most 2 MB of items.",
                self._length(cut_at) < self._length(None)
                and f"Texts end after {numbers.count(cut_at)} characters.",
            )
        )

    def _length(self, most: int | None) -> int:
        """Characters of all texts, each cut after `most`."""
        return sum(self._lengths) if most is None else sum(min(length, most) for length in self._lengths)

    @cached_property
    def _lengths(self) -> list[int]:
        return [len(text) for parted in self.items for text in _texts(parted)]

    def _packed(self, n: int, most: int) -> str:
        judges = [
            {"name": visible(name), "prompt": visible(self.prompts.get(name, ""))} for name in self.judges
        ]
        carried = {
            "judges": judges,
            "items": [_carried(parted, self.judges, most) for parted in self.items[:n]],
        }
        text = json.dumps(carried, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(gzip.compress(text.encode("utf-8"), 6, mtime=0)).decode("ascii")


def _texts(parted: PartedItem) -> Iterator[str]:
    item = parted.item
    yield from (item.question, item.answer, *item.reference_answers, *item.fields.values())
    yield from (context.text for context in item.contexts)
    yield from (turn.content for turn in item.conversation)
    yield from (rating.note or "" for rating in parted.ratings)
    yield from (text for verdict in parted.said for text in (verdict.reasoning, verdict.raw_reply))


def _carried(parted: PartedItem, judges: Sequence[str], most: int) -> dict[str, Any]:
    """An item as the script reads it; what is empty is left out."""

    def cut(text: str) -> str:
        more = len(text) - most
        return visible(text if more <= 0 else f"{text[:most]} … ({more:,} more characters)")

    def rater(rating: Rating) -> list[str]:
        unlabelled = rating.reason or "no label"
        label = unlabelled if rating.label is None else shown(rating.label, binary=parted.binary)
        return [visible(rating.rater), visible(label), cut(rating.note or "")]

    def verdict(said: JudgeOfItem) -> dict[str, str]:
        return _filled({
            "verdict": ", ".join(shown(label, binary=said.binary) for label in said.verdicts),
            "given": ", ".join(shown(label, binary=False) for label in said.raw),
            "error": said.error or (f"unscored: {said.unscored}" if said.unscored else ""),
            "why": cut(said.reasoning),
            "raw": cut(said.raw_reply),
        })  # fmt: skip

    item, by_judge = parted.item, {said.judge: said for said in parted.said}
    further = [*item.fields.items(), *((turn.role, turn.content) for turn in item.conversation)]
    further += [(f"Context {at.document_id or place}", at.text) for place, at in enumerate(item.contexts, 1)]
    return _filled({
        "id": visible(item.item_id),
        "question": cut(item.asked),
        "references": [cut(text) for text in item.reference_answers],
        "answer": cut(item.answer),
        "further": [[name, cut(text)] for name, text in further],
        "system": visible(item.system or ""),
        "tags": list(map(visible, item.tags)),
        "label": shown(parted.label, binary=parted.binary),
        "raters": [rater(rating) for rating in parted.ratings if rating.rater != GOLD],
        "said": [verdict(by_judge[judge]) if judge in by_judge else None for judge in judges],
        "differ": parted.judges_differ,
        "people": parted.people_differ,
    })  # fmt: skip


def _filled(values: Mapping[str, _T]) -> dict[str, _T]:
    return {name: value for name, value in values.items() if value}


def shown(label: Label | None, *, binary: bool) -> str:
    """A label or a verdict: pass or fail, or a number without needless digits."""
    if label is None:
        return "unscored"
    if binary and label in (0, 1):
        return "pass" if label else "fail"
    return f"{label:g}" if isinstance(label, int | float) else visible(str(label))
