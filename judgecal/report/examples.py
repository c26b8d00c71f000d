"""The strange examples on a page: all that was said of an item, to filter, to sort, to read without a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.experiment.verdicts import Example, Said
from judgecal.goldset import GOLD
from judgecal.records import Rating
from judgecal.report.document import Block
from judgecal.scale import Label

_MOST = 8_000  # characters of a text that are shown
_LEAST = 500
_ALL_TEXTS = 2_000_000  # characters of all of them together
_LONG = 900  # from here on a text has a window of its own
_RIGHT_SHOWN = 3  # judges that do not err whose words are shown at once
_ERRORS = ("false pass", "false fail", "too high", "too low", "another word")


def facts(examples: Sequence[Example]) -> list[dict[str, Any]]:
    """What the page's script filters and sorts by; the texts stand in the page once."""
    return [
        {
            "id": f"case-{place}",
            "place": place,
            "item": one.item.item_id,
            "lists": one.worst_of,
            "tags": one.item.tags,
            "system": one.item.system,
            "distance": one.distance,
            "wrong": one.n_wrong,
        }
        for place, one in enumerate(examples)
    ]


@dataclass(frozen=True, slots=True)
class Examples(Block):
    """Items on which judges and people part most, worst first, and how many judges there are.

    Users' texts do not go into a pull request or a terminal: only the page shows them.
    """

    items: Sequence[Example]
    n_judges: int

    def choices(self) -> list[tuple[str, str, str, list[str]]]:
        """Name, title, the word for any, and the values of each filter that has something to choose."""
        lists = [pair for one in self.items for pair in one.worst_of]
        kinds = {kind for _, kind in lists}
        every = [
            ("judge", "Worst of judge", "any judge", sorted({judge for judge, _ in lists})),
            ("kind", "Error", "any error", [kind for kind in _ERRORS if kind in kinds]),
            ("tag", "Tag", "any tag", sorted({tag for one in self.items for tag in one.item.tags})),
            ("system", "System", "any system", sorted({s for one in self.items if (s := one.item.system)})),
        ]
        return [one for one in every if len(one[3]) > 1]

    def heading(self, one: Example) -> tuple[list[str], str]:
        """The kinds of error, and by how many judges."""
        kinds = list(dict.fromkeys(said.error for said in one.said if said.error))
        by = f" by {one.n_wrong} of {self.n_judges} judges" if self.n_judges > 1 else ""
        return [kinds[0].capitalize(), *kinds[1:]] if kinds else [], by

    def meta(self, one: Example) -> str:
        """The line under the heading."""
        system = f"system {one.item.system}" if one.item.system else ""
        return " · ".join(filter(None, (f"item {one.item.item_id}", system, ", ".join(one.item.tags))))

    def texts(self, one: Example) -> list[tuple[str, str, str]]:
        """Name, text and style of what was judged."""
        every = [
            ("Question", one.item.question, "text"),
            ("Reference", one.item.reference_answer, "text"),
            ("Answer", one.item.answer, "text answer"),
        ]
        return [(name, text, style) for name, text, style in every if text is not None]

    def clipped(self, text: str) -> tuple[str, int]:
        """A text's beginning, and how many more characters it has: many judges still make a small file."""
        texts = sum(3 + len(one.said) for one in self.items)
        room = max(_LEAST, min(_MOST, _ALL_TEXTS // max(1, texts)))
        return text[:room], max(0, len(text) - room)

    def long(self, text: str) -> bool:
        """Whether a text has a window of its own."""
        return len(text) > _LONG

    def ratings(self, one: Example) -> tuple[list[Rating], list[Rating]]:
        """The single raters' labels, those without a note first."""
        raters = [rating for rating in one.ratings if rating.rater != GOLD]
        return [one for one in raters if not one.note], [one for one in raters if one.note]

    def judges(self, one: Example) -> tuple[list[Said], list[Said]]:
        """Those that are shown at once, and the rest: who errs comes first, of many others only their number."""
        wrong = [said for said in one.said if said.error is not None]
        right = [said for said in one.said if said.error is None]
        return ([*wrong, *right], []) if len(right) <= _RIGHT_SHOWN else (wrong, right)

    def label(self, label: Label | None, *, binary: bool) -> str:
        """A label or a verdict: pass or fail, or a number without needless digits."""
        if label is None:
            return "unscored"
        if binary and label in (0, 1):
            return "pass" if label else "fail"
        return f"{label:g}" if isinstance(label, int | float) else str(label)
