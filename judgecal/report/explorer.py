"""The explorer of a page: its rows, packed for the page's script, which filters, sorts and opens them.

The texts of users go into the page alone, compressed, and reach it as text, never as markup. Test items are
counted. A row carries marks, `KEY:VALUE`; whatever on the page has `data-show` with a mark, or several a line
each, filters the explorer to the rows that have them all.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from judgecal.errors import visible
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.verdicts import Cut, farthest
from judgecal.records import Item
from judgecal.report.document import Block
from judgecal.report.wording import count, count_of
from judgecal.scale import Label
from judgecal.stats.sample import Bools, Ints

MOST_PACKED = 2_000_000
"""Characters of the packed rows in a page at most; one that needs more carries the first and says so."""

_LONGEST = 4_000  # characters of a text; what it is about is long told by then
_CASES = ("false pass", "false fail", "too high", "too low", "another word", "unscored")
_FEW = 6  # judges, below which each has a filter of its own
_AGREED = 300  # items on which judges and people agree, of which a page shows those
_COLUMNS = 5  # below which each has a column
_ITEM = {"id": "item", "question": "question", "answer": "answer", "label": "people"}


class Said(NamedTuple):
    """What one judge said of a row, in words."""

    verdict: str
    given: str = ""  # as the judge gave it, where `verdict` is calibrated
    error: str = ""  # how it errs, or why there is no verdict; empty where it does not
    why: str = ""
    raw: str = ""  # the reply


@dataclass(frozen=True, slots=True)
class ExplorerRow:
    """A row as it is shown; what is empty is left out."""

    name: str
    question: str = ""
    answer: str = ""
    references: Sequence[str] = ()
    further: Sequence[tuple[str, str]] = ()  # more texts by name: contexts, fields
    system: str = ""
    tags: Sequence[str] = ()
    label: str = ""
    note: str = ""
    said: Sequence[Said | None] = ()  # of each judge of the explorer
    marks: Sequence[str] = ()


class Packed(NamedTuple):
    """The rows as the page carries them."""

    text: str  # gzip in base64
    n_rows: int


@dataclass(frozen=True)
class Explorer(Block):
    """The rows, worst first; only the page shows them."""

    title: str
    rows: Sequence[ExplorerRow]
    judges: Sequence[str] = ()  # in the order of `ExplorerRow.said`
    chips: Mapping[str, str] = field(default_factory=dict)  # mark -> what its filter is called
    n_quiet: int = 0  # of the rows the last ones, which are shown on request
    n_agreed: int = 0  # of which those are drawn
    n_sealed: int = 0  # test items, which are counted and not shown
    heads: Mapping[str, str] = field(default_factory=_ITEM.copy)  # part of a row -> its heading
    prompts: Mapping[str, str] = field(default_factory=dict)  # judge -> its prompt, where that is known

    @property
    def sealed(self) -> str:
        """What stands in place of the test items."""
        return f"{count_of(self.n_sealed, 'test answer')} sealed" if self.n_sealed else ""

    @property
    def quiet(self) -> str:
        """The words of the button that also shows rows on which nobody errs; empty without any."""
        drawn = f"{count(self.n_quiet)} of " * (self.n_quiet < self.n_agreed)
        return f"also show agreed ({drawn}{count(self.n_agreed)})" if self.n_quiet else ""

    @property
    def columns(self) -> list[str]:
        """The headings of the list."""
        errors = ["judges wrong"] * bool(self.judges)
        return [*self.heads.values(), *(self.judges[: self.listed] or errors)]

    @property
    def listed(self) -> int:
        """How many of the judges have a column; of many none where their errors are counted, else two."""
        n = len(self.judges)
        return n if n < _COLUMNS else 2 * (self.heads.get("label") != "people")

    @cached_property
    def packed(self) -> Packed:
        """The rows as the page carries them, as many as fit, the worst first."""
        n = len(self.rows)
        text = self._packed(n)
        while len(text) > MOST_PACKED:
            n = int(0.95 * n * MOST_PACKED / len(text))
            text = self._packed(n)
        return Packed(text, n)

    @property
    def capped(self) -> str:
        """The sentence on rows that the page does not carry; empty where it carries all."""
        n, n_all = self.packed.n_rows, len(self.rows)
        return f"These are the worst {count(n)} of {count(n_all)}: a page carries at most 2 MB of items." * (
            n < n_all
        )

    def _packed(self, n: int) -> str:
        prompts = {name: visible(self.prompts.get(name, "")) for name in self.judges}
        carried = {
            "heads": self.heads,
            "judges": [{"name": visible(name), "prompt": prompt} for name, prompt in prompts.items()],
            "listed": self.listed,
            "loud": len(self.rows) - self.n_quiet,
            "chips": [(visible(mark), visible(words)) for mark, words in self.chips.items()],
            "items": [_carried(row) for row in self.rows[:n]],
        }
        text = json.dumps(carried, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(gzip.compress(text.encode("utf-8"), 6, mtime=0)).decode("ascii")


def _carried(row: ExplorerRow) -> dict[str, Any]:
    """A row as the script reads it; what is empty is left out."""

    def cut(text: str) -> str:
        more = len(text) - _LONGEST
        return visible(text if more <= 0 else f"{text[:_LONGEST]} … ({more:,} more characters)")

    carried = {
        "id": visible(row.name),
        "question": cut(row.question),
        "references": [cut(text) for text in row.references],
        "answer": cut(row.answer),
        "further": [[visible(name), cut(text)] for name, text in row.further],
        "system": visible(row.system),
        "tags": list(map(visible, row.tags)),
        "label": visible(row.label),
        "note": visible(row.note),
        "said": [
            verdict
            and {name: text for name, text in zip(Said._fields, map(cut, verdict), strict=True) if text}
            for verdict in row.said
        ],
        "marks": list(map(visible, row.marks)),
    }
    return {name: value for name, value in carried.items() if value}


# --- items that judges and people judged


def judged_explorer(
    table: AgreementTable,
    judges: Sequence[Verdicts],
    items: Sequence[Item],
    subject: str,
    *,
    traits: Mapping[str, Sequence[str]],
    n_sealed: int,
    prompts: Mapping[str, str],
) -> Explorer:
    """Make an Explorer: AgreementTable, Verdicts, Items of it, subject, marks by item, n_sealed, prompts.

    First the items on which the `subject` or another judge errs: farthest from the label, then most judges
    wrong. Of the others every k-th, so that at most `_AGREED` stand for all.
    """
    names = [judge.judge for judge in judges]
    places = {item.item_id: place for place, item in enumerate(table.items)}
    at = np.array([places[item.item_id] for item in items], dtype=np.int64)
    worst, *errors = zip(*(farthest(table, judge) for judge in judges), strict=True)
    wrong, apart = (np.stack(of_judges, axis=1)[at] for of_judges in errors)
    parts: Bools = wrong.sum(axis=1) > 0
    worst_first = np.lexsort((-wrong.sum(axis=1), -apart.max(axis=1)))
    parted, agreed = worst_first[parts[worst_first]], np.flatnonzero(~parts)
    few = agreed[:: -(-len(agreed) // _AGREED) or 1]
    sides = [_side(table, *side, subject) for side in zip(judges, worst, strict=True)]
    scale, cuts = table.gold.scale, (Cut(table.gold.scale, table.described(judge)[1]) for judge in judges)
    classed = next((cut for cut in cuts if cut.classed), None)

    def row(place: int) -> ExplorerRow:
        item, label = items[place], table.gold.labels[items[place].item_id]
        said, of_judges = zip(*(side(int(at[place]), bool(parts[place])) for side in sides), strict=True)
        marks = [mark for of_judge in of_judges for mark in of_judge]
        marks += ["wrong:all"] * bool(wrong[place].all())
        marks += [f"person:{classed.class_of(label, people=True)}"] if classed else []
        marks += traits.get(item.item_id, ())
        return row_of(item, label=shown(label, binary=scale.kind == "binary"), said=said, marks=marks)

    several, whose = len(judges) > 1, f"{subject}: " * (len(judges) > 1)
    chips = {
        **({"wrong:all": "all judges wrong"} if several else {}),
        **{f"wrong:{name}": f"{name} wrong" for name in names if several and len(names) < _FEW},
        **{f"case:{case}": f"{whose}{case}" for case in _CASES},
    }
    noun = "pairs" if any(item.pair for item in items) else "answers"
    title = f"{count(len(parted))} of {count(len(items))} open {noun} where a judge and people part"
    rows = [row(place) for place in (*parted.tolist(), *few.tolist())]
    return Explorer(title, rows, names, chips, len(few), len(agreed), n_sealed=n_sealed, prompts=prompts)


def _side(
    table: AgreementTable, judge: Verdicts, worst: Ints, subject: str
) -> Callable[[int, bool], tuple[Said, list[str]]]:
    """What a judge said of the item at a place, with marks and, where judges part, the reason; of its repeats
    the worst one stands out.
    """
    (described, scale), raw = table.described(judge), table.verdicts(judge)
    cut, mapped = Cut(table.gold.scale, scale), described is not raw
    verdicts, as_given = as_lists(described), as_lists(raw)
    rows = table.row_at(judge)[:, : table.repeats].tolist()

    def said(place: int, parts: bool) -> tuple[Said, list[str]]:
        there = [repeat for repeat, row in enumerate(rows[place]) if row >= 0]
        given = [verdicts[place][repeat] for repeat in there] or [None]
        row = judge.rows[rows[place][worst[place]]] if worst[place] in there else None
        verdict = verdicts[place][worst[place]]
        error = cut.error(table.labels[place], verdict) if verdict is not None else None
        words = [cut.class_of(label) if label is not None else "unscored" for label in given]
        marks = [f"verdict:{judge.judge} {word}" for word in dict.fromkeys(words) if cut.classed]
        if judge.judge == subject:
            marks.append(f"case:{error or ('unscored' if verdict is None else 'agree')}")
        if error or verdict is None:
            marks.append(f"wrong:{judge.judge}")
        if verdict is None:
            error = f"unscored: {row.error.kind if row and row.error else 'missing'}"
        told = (
            ", ".join(shown(label, binary=cut.judge.kind == "binary") for label in given),
            ", ".join(shown(as_given[place][repeat], binary=False) for repeat in there if mapped),
        )
        # of agreed items there are many, and the reason would say the same
        why = (row.reasoning or row.raw_reply or "") if row and parts else ""
        return Said(*told, error or "", why), marks

    return said


def row_of(item: Item, **further: Any) -> ExplorerRow:
    """Make an ExplorerRow that shows an Item with its fields, turns and contexts."""
    contexts = [(f"Context {at.document_id or place}", at.text) for place, at in enumerate(item.contexts, 1)]
    turns = ((turn.role, turn.content) for turn in item.conversation)
    return ExplorerRow(
        **{"name": item.item_id, **further},
        question=item.asked,
        answer=item.answered,
        references=item.reference_answers,
        further=[*item.fields.items(), *turns, *contexts],
        system=item.system or "",
        tags=item.tags,
    )


def shown(label: Label | None, *, binary: bool) -> str:
    """Write a Label (or None) as text: pass or fail where `binary` is true, else the number or word."""
    if label is None:
        return "unscored"
    if binary and label in (0, 1):
        return "pass" if label else "fail"
    return f"{label:g}" if isinstance(label, int | float) else visible(str(label))
