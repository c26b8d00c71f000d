"""What a family of probes is, which there are, and the probes that they make of a gold set.

Where a rule cannot be sure it makes no probe, and says why.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from judgecal.errors import InputError
from judgecal.goldset import GoldSet
from judgecal.models.embedded.text import analyse, refuses
from judgecal.records import Item
from judgecal.scale import Label, Scale

Kind = Literal["full", "none", "falls", "still", "no_rise"]
"""What a family claims of its probes: that they must get full marks, or none, must fall below the answer that
they were made of, must not move, or must not rise above it."""
TENTH = 0.1
"""A verdict moves from a tenth of its scale on; of two classes, to the other one."""

_LANGUAGES: Mapping[str, str] = {
    "en": "the of is are was were and to what who how which when where did does do for by in it you",
    "de": "der die das den dem und ist sind nicht ein eine wie wer wann zu mit von im werden wird was",
    "pl": "jest są nie się na do czy jak kto co kiedy w z i oraz przez ile który gdzie",
    "fr": "le les des du est et une dans pour avec quel quelle qui quand où comment pas au sur été",
    "es": "el los las del es son una que por para con quién qué cómo cuándo dónde cuál y no",
}


class NoProbe(Exception):
    """Why a rule makes no probe of an item."""


@dataclass(frozen=True)
class Sources:
    """What rules may borrow for an answer: other questions' references, and documents."""

    items: Sequence[Item]
    documents: Mapping[str, str] = field(default_factory=dict)  # id -> text

    @classmethod
    def of(cls, gold: GoldSet, items: Iterable[Item] | None = None) -> Sources:
        """Return the Sources of a GoldSet: its labelled open items, and its documents."""
        if items is None:
            items = (item for item in gold.select("open") if item.item_id in gold.labels)
        return cls(tuple(items), {document.document_id: document.text for document in gold.documents})

    @cached_property
    def references(self) -> tuple[tuple[Item, str], ...]:
        """A reference of each question that has one and does not refuse, with its item."""
        by_group = {item.group: item for item in self.items if item.reference_answers}
        pairs = ((item, item.reference_answers[0]) for item in by_group.values())
        return tuple((item, text) for item, text in pairs if not refuses(text))

    def foreign(self, item: Item, rng: random.Random, fits: Callable[[str], bool] = bool) -> str:
        """From an Item and a random.Random, return a reference of another question that shares no word."""
        of_item = frozenset[str]().union(*(analyse(text).content for text in item.reference_answers))
        question_words = analyse(item.question).content
        for other, text in rng.sample(self.references, len(self.references)):
            theirs, given = analyse(other.question).content, analyse(text)
            alike = len(question_words & theirs) > 0.5 * min(len(question_words), len(theirs))
            holds = given.content & (of_item | question_words)
            if other.group != item.group and not (alike or given.polarity or holds) and fits(text):
                return text
        raise NoProbe("no other question has an answer that shares no word with the right one")


Rule = Callable[[Item, Sources, random.Random], str]
"""Gives the probe's answer; raises `NoProbe`."""


@dataclass(frozen=True, slots=True)
class Family:
    """A rule under a name."""

    name: str
    kind: Kind
    what: str  # its probes are, as `refusals`
    make: Rule

    def takes(self, label: Label, scale: Scale) -> bool:
        """Return whether an answer with a Label on a Scale makes a probe: right answers fall, wrong rise."""
        height = (float(label) - scale.low) / scale.span
        if self.kind == "falls":
            return height >= 1.0 - TENTH
        return self.kind != "no_rise" or height < 0.5


@dataclass(frozen=True, slots=True)
class Probe:
    """An answer made by a rule: an item like others, with an id of its own, and what it was made of."""

    item: Item
    of: Item
    family: Family


FamilyProbes = tuple[Probe, ...]
"""The probes of one family, one at the least."""


def one_probe(family: Family, item: Item, sources: Sources, *, seed: int) -> Probe:
    """From a Family, an Item, Sources and a seed, make a Probe, the same each time; raises `NoProbe`."""
    answer = family.make(item, sources, random.Random(f"{seed} {family.name} {item.item_id}"))
    if answer.strip() == item.answer.strip() and family.kind not in ("full", "none"):
        raise NoProbe("the rule leaves the answer as it is")
    given = dataclasses.replace(item, item_id=f"{item.item_id}~{family.name}", answer=answer)
    return Probe(given, item, family)


def make_probes(
    gold: GoldSet,
    items: Iterable[Item],
    chosen: Sequence[Family],
    *,
    n: int,
    seed: int,
    sources: Sources | None = None,
) -> tuple[FamilyProbes, ...]:
    """From a GoldSet, Items, Families, `n` and a seed, make up to `n` probes each: tuple of FamilyProbes.

    What must get full marks or none hangs on the question alone and is made once a question; of the others as
    many questions as there are come before a second answer of one.

    Args:
        items: labelled ones; test items are the caller's to leave out.
        sources: what the rules borrow from; by default the labelled open items.
    """
    if not gold.scale.numeric:
        raise InputError(f"gold set {gold.name} has labels without an order, so no probe has a right verdict")
    sources = sources or Sources.of(gold)
    # in one order for all families: they share answers, so that few are judged twice
    shuffled = sorted(items, key=lambda item: random.Random(f"{seed} {item.item_id}").random())
    made = []
    for family in chosen:
        drawn = [item for item in shuffled if family.takes(gold.labels[item.item_id], gold.scale)]
        if family.kind in ("full", "none"):
            drawn = [*{(item.group, item.question): item for item in drawn}.values()]
        probes, turn = list[tuple[int, Probe]](), Counter[str]()
        for item in drawn:
            with contextlib.suppress(NoProbe):
                probes.append((turn[item.group], one_probe(family, item, sources, seed=seed)))
                turn[item.group] += 1
        made.append(tuple(probe for _, probe in sorted(probes, key=lambda pair: pair[0])[:n]))
    return tuple(filter(None, made))


def language_of(item: Item) -> str:
    """Return the language of an item as a code such as `en`, by its commonest words; else raises NoProbe."""
    texts = " ".join((item.question, *item.reference_answers, item.answer[:500])).lower()
    words = Counter(re.findall(r"[^\W\d_]+", texts))
    counts = Counter(
        {name: sum(words[word] for word in frequent.split()) for name, frequent in _LANGUAGES.items()}
    )
    (best, n), (_, second) = counts.most_common(2)
    if n <= second:
        raise NoProbe("its language is not told by its words (known: en, de, es, fr, pl)")
    return best


def kept(answer: str, item: Item) -> float:
    """From an answer and an Item, return the largest share 0..1 it holds of a reference's new words."""
    held, question_words = frozenset(analyse(answer).tokens), analyse(item.question).content
    contents = [analyse(reference).content for reference in item.reference_answers]
    added = [content - question_words or content for content in contents]
    return max((len(new & held) / len(new) if new else 1.0 for new in added), default=0.0)


def right_answers(item: Item) -> tuple[str, ...]:
    """Return the tuple of references of an Item whose question has an answer; else raises NoProbe."""
    if not item.reference_answers:
        raise NoProbe("there is no reference")
    if item.expect.get("refuse") or any(map(refuses, item.reference_answers)):
        raise NoProbe("the right answer is to refuse")
    return item.reference_answers
