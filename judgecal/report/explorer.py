"""The explorer of a page: every open item on which a judge and people part, packed into the page for its
script.

The texts of users go into the page alone, compressed, and reach it as text: never as markup. Test items are
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
from typing import Any

from judgecal.errors import visible
from judgecal.experiment.verdicts import PartedItem, Said
from judgecal.goldset import GOLD
from judgecal.records import Rating
from judgecal.report import numbers
from judgecal.report.document import Block
from judgecal.scale import Label

MOST_PACKED = 2_000_000
"""Characters of the packed items in a page at most; a page that would need more carries the worst ones and
says so."""

_TEXT_LIMITS = (8_000, 2_000, 500)  # characters of a text, the first with which all of them are small enough
_ALL_TEXTS = 8_000_000  # characters of all of them before they are compressed


@dataclass(frozen=True, slots=True)
class Packed:
    """The items as the page carries them: gzip in base64, how many they are, and from where on texts are
    cut."""

    text: str
    n_items: int
    cut_at: int


@dataclass(frozen=True)
class Explorer(Block):
    """The items, worst first; only the page shows them.

    Attributes:
        judges: in the order of the items' verdicts.
        n_open: items that may be shown, those on which all agree among them.
        n_sealed: test items, which are counted and not shown.
        prompts: judge -> its prompt, where that is known.
        gold: the set that the labels are of.
    """

    items: Sequence[PartedItem]
    judges: Sequence[str]
    n_open: int
    n_sealed: int
    prompts: Mapping[str, str] = field(default_factory=dict)
    gold: str = ""

    @property
    def title(self) -> str:
        """How many there are."""
        of = f"{numbers.count(len(self.items))} of {numbers.count(self.n_open)} open answers"
        return f"{of} where a judge and people part"

    @property
    def relabel(self) -> str:
        """The command that has people look again at the items whose label looks wrong; empty without a
        set."""
        return f"judgecal gold label {shlex.quote(self.gold)} --flagged flagged.csv" if self.gold else ""

    @property
    def sealed(self) -> str:
        """What stands in place of the test items."""
        return f"{numbers.count_of(self.n_sealed, 'test answer')} sealed" if self.n_sealed else ""

    @cached_property
    def packed(self) -> Packed:
        """All of them, or as many as fit."""
        long = next((most for most in _TEXT_LIMITS if self._length(most) <= _ALL_TEXTS), _TEXT_LIMITS[-1])
        n, text = len(self.items), self._packed(len(self.items), long)
        while len(text) > MOST_PACKED:
            n = int(0.95 * n * MOST_PACKED / len(text))
            text = self._packed(n, long)
        return Packed(text, n, long)

    @property
    def capped(self) -> str:
        """What the page does not carry; empty where it carries all."""
        n, of, cut_at = self.packed.n_items, len(self.items), self.packed.cut_at
        few = f"Here are the worst {numbers.count(n)} of {numbers.count(of)}: a page carries at most 2 MB of items."
        cut = f"Texts end after {numbers.count(cut_at)} characters."
        return " ".join(
            [*([few] if n < of else []), *([cut] if self._length(cut_at) < self._length(None) else [])]
        )

    def _length(self, most: int | None) -> int:
        return sum(sum(map(len, lengths)) if most is None else sum(min(len(one), most) for one in lengths)
                   for lengths in self._lengths)  # fmt: skip

    @cached_property
    def _lengths(self) -> list[list[str]]:
        return [list(_texts(one)) for one in self.items]

    def _packed(self, n: int, most: int) -> str:
        judges = [
            {"name": visible(name), "prompt": visible(self.prompts.get(name, ""))} for name in self.judges
        ]
        carried = {"judges": judges, "items": [_carried(one, self.judges, most) for one in self.items[:n]]}
        text = json.dumps(carried, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(gzip.compress(text.encode("utf-8"), 6, mtime=0)).decode("ascii")


def _texts(one: PartedItem) -> Iterator[str]:
    item = one.item
    yield from (item.question, item.answer, *item.reference_answers, *item.fields.values())
    yield from (context.text for context in item.contexts)
    yield from (turn.content for turn in item.conversation)
    yield from (rating.note or "" for rating in one.ratings)
    yield from (text for said in one.said for text in (said.reasoning, said.raw_reply))


def _carried(one: PartedItem, judges: Sequence[str], most: int) -> dict[str, Any]:
    """An item as the script reads it; what is empty is left out."""

    def cut(text: str) -> str:
        more = len(text) - most
        return visible(text if more <= 0 else f"{text[:most]} … ({more:,} more characters)")

    item, said = one.item, {own.judge: own for own in one.said}
    further = [[name, cut(text)] for name, text in item.fields.items()]
    further += [[turn.role, cut(turn.content)] for turn in item.conversation]
    further += [[f"Context {context.document_id or place}", cut(context.text)]
                for place, context in enumerate(item.contexts, 1)]  # fmt: skip
    every: dict[str, Any] = {
        "id": visible(item.item_id),
        "question": cut(item.asked),
        "references": [cut(text) for text in item.reference_answers],
        "answer": cut(item.answer),
        "further": further,
        "system": visible(item.system or ""),
        "tags": list(map(visible, item.tags)),
        "label": shown(one.label, binary=one.binary),
        "raters": [_rater(rating, cut(rating.note or ""), binary=one.binary)
                   for rating in one.ratings if rating.rater != GOLD],
        "said": [_said(said[judge], cut) if judge in said else None for judge in judges],
        "differ": one.judges_differ,
        "people": one.people_differ,
    }  # fmt: skip
    return {name: value for name, value in every.items() if value}


def _rater(rating: Rating, note: str, *, binary: bool) -> list[str]:
    label = rating.reason or "no label" if rating.label is None else shown(rating.label, binary=binary)
    return [visible(rating.rater), visible(label), note]


def _said(said: Said, cut: Any) -> dict[str, str]:
    every = {
        "verdict": ", ".join(shown(one, binary=said.binary) for one in said.verdicts),
        "given": ", ".join(shown(one, binary=False) for one in said.raw),
        "error": said.error or (f"unscored: {said.unscored}" if said.unscored else ""),
        "why": cut(said.reasoning),
        "raw": cut(said.raw_reply),
    }
    return {name: value for name, value in every.items() if value}


def shown(label: Label | None, *, binary: bool) -> str:
    """A label or a verdict: pass or fail, or a number without needless digits."""
    if label is None:
        return "unscored"
    if binary and label in (0, 1):
        return "pass" if label else "fail"
    return f"{label:g}" if isinstance(label, int | float) else visible(str(label))
