"""What an answerer is asked, one question a group; no label is read.

A set marks a question that has no answer: by the field `answerable` (no), the tag `unanswerable` or the rule
`expect.refuse` of its items. Where it marks none, a reference that says that there is nothing to find does.

Which answers decline is a rule and no reading, where no judge says it. An answer refuses where its first 160
characters hold one of the phrases that the embedded model knows (English, a few German and Polish ones), or
where it is blank. A refusal in other words is missed, and counts as an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judgecal.errors import InputError, listed, refuse
from judgecal.goldset import GoldSet
from judgecal.goldset.wording import grouped
from judgecal.models.embedded.text import take_apart
from judgecal.records import Context, Item, well_formed
from judgecal.scale import Scale

_YES_OR_NO = Scale.parse("binary")
_SOURCE = r"(?:documents?|contexts?|texts?|passages?|articles?|sources?)"
_NOTHING_TO_FIND = re.compile(
    rf"""\W*(?:
      (?:(?:the|an|this)\ )?(?:answer|question|information)
        \ (?:(?:is|was|are|were|can|could|does|do)\ ?(?:not|n't)|cannot)
        \ [^.]*\b(?:answered|found|determined
          |(?:in|by|from)\ (?:the|this|these|any)\ (?:\w+\ ){{0,2}}{_SOURCE})
      | not\ (?:\w+\ )?in\ (?:the|this)\ (?:\w+\ ){{0,2}}{_SOURCE} | unanswerable | no\ answer
    )\W*""",
    re.IGNORECASE | re.VERBOSE,
)


def refuses(answer: str, message: str | None = None) -> bool:
    """Whether an answer declines, or is blank; `message`: the words that it was told to decline with."""
    told = message is not None and message.strip(" .").casefold() in answer.casefold()
    return told or not answer.strip() or take_apart(answer).refuses


def says_unanswerable(references: Sequence[str]) -> bool:
    """Whether the reference answers say that there is none ("The answer is not in the document.").

    Narrower than `refuses`: a reference may well be about something that was not found.
    """
    return bool(references) and all(_NOTHING_TO_FIND.fullmatch(text) for text in references)


@dataclass(frozen=True)
class Question:
    """A question with what all items of its group say, each once, in file order; tags are those all share."""

    group: str
    question: str  # the wording of the group's first item
    reference_answers: tuple[str, ...]
    reference_documents: tuple[str, ...]
    tags: tuple[str, ...] = ()
    # Of its first item: the contexts that it brings along, and the rules that an answer is held to.
    contexts: tuple[Context, ...] = ()
    expect: Mapping[str, Any] = field(default_factory=dict, hash=False)
    marked: bool | None = None  # whether it has an answer, as the set says; None where that marks no question

    @cached_property
    def answerable(self) -> bool:
        """Whether it has an answer: as it is marked, else by the rule of `says_unanswerable`."""
        return not says_unanswerable(self.reference_answers) if self.marked is None else self.marked

    def item(self, contexts: tuple[Context, ...] = ()) -> Item:
        """The question as it is put to an answerer: without the reference."""
        return Item(self.group, self.group, self.question, "", contexts=contexts)


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a set, and what was noticed while they were read."""

    asked: tuple[Question, ...]
    notes: tuple[str, ...] = ()


def questions_of(gold: GoldSet, *, without: Collection[str] = ()) -> Questions:
    """One question a group, in file order; some groups may be left out, and rejected drafts are."""
    items = [item for item in gold.items if item.group not in gold.turned_down.union(without)]
    asked = by_group(items)
    if not asked:
        raise InputError(f"gold set {gold.name}: no question is left to ask")
    wordings = Counter(group for group, _ in dict.fromkeys((item.group, item.question) for item in items))
    several = [name for name, n in wordings.items() if n > 1]
    note = f"{len(several)} questions have more than one wording; we ask the first: "
    notes = (note + listed(several, sealed=gold.test_groups),) if several else ()
    return Questions(asked, (*notes, *wording_notes(asked), *gold.draft_notes()))


def sealed_names(gold: GoldSet) -> frozenset[str]:
    """The names of the questions of test."""
    groups = {item.group for item in gold.items}
    of_test = [item for item in gold.items if item.group in gold.test_groups]
    others = {name for item in of_test for name in (item.item_id, f"{item.group} {item.item_id}")}
    return gold.test_groups | (others - groups)


def wording_notes(asked: Sequence[Question]) -> list[str]:
    """That questions count as unanswerable by nothing but how their reference is worded."""
    n = sum(question.marked is None and not question.answerable for question in asked)
    how = "by the wording of their reference alone: a column answerable, or a tag unanswerable, is surer"
    return [f"{n} of {len(asked)} questions count as having no answer, {how}"] if n else []


def _marked(item: Item) -> bool | None:
    """Whether there is an answer, as the item says; ValueError: its field is neither yes nor no."""
    said = item.fields.get("answerable", "").strip()
    if said:
        return bool(_YES_OR_NO.read(said))
    return False if "unanswerable" in item.tags or item.expect.get("refuse") is True else None


def by_group(items: Iterable[Item]) -> tuple[Question, ...]:
    """One question a group, in the order in which they first occur, in texts that every file can hold.

    Each further item of a group and system that has rules (`expect`) is a question of its own, named by its
    id: a benchmark may ask one thing twice. Where any is marked, those that are not have an answer; where
    items of one differ, the first mark counts.
    """
    items = list(items)
    names: dict[str, list[str]] = {item.group: [] for item in items}
    n_ruled: Counter[tuple[str, str | None]] = Counter()

    def name_of(item: Item) -> str:
        of_group, place = names[item.group], n_ruled[item.group, item.system]
        n_ruled[item.group, item.system] += bool(item.expect)
        if place >= len(of_group):
            other = f"{item.group} {item.item_id}" if item.item_id in names else item.item_id
            of_group.append(well_formed(other if of_group else item.group))
        return of_group[place]

    groups = grouped(items, name_of)
    marks, problems = dict[str, bool](), list[str]()
    for group, item in ((group, item) for group, rows in groups.items() for item in rows):
        try:
            if (mark := _marked(item)) is not None:
                marks.setdefault(group, mark)
        except ValueError as error:
            problems.append(f"item {item.item_id}: answerable must be yes or no: {error}")
    refuse(problems)
    return tuple(
        Question(
            group,
            well_formed(rows[0].question),
            tuple(dict.fromkeys(well_formed(text) for item in rows for text in item.reference_answers)),
            tuple(dict.fromkeys(well_formed(name) for item in rows for name in item.reference_documents)),
            tuple(well_formed(tag) for tag in rows[0].tags if all(tag in item.tags for item in rows)),
            rows[0].contexts,
            rows[0].expect,
            marks.get(group, True) if marks else None,
        )
        for group, rows in groups.items()
    )
