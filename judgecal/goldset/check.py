"""`gold check`: the sets of a workspace, and the audit of a set that loads: what is not wrong by its format,
but would mislead whoever relies on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from judgecal.errors import InputError
from judgecal.goldset import check_labels, check_texts
from judgecal.goldset.gold_set import CARD, RATINGS, Findings, GoldSet, SplitCounts, split_counts
from judgecal.goldset.labels import NARROW
from judgecal.goldset.load import load_gold
from judgecal.records import Result
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ListedSet:
    """A set of a workspace: its counts, or why it cannot be loaded."""

    set_: str
    n_items: int | None = None
    n_groups: int | None = None
    scale: str | None = None
    raters: tuple[str, ...] | None = None
    sampling: str | None = None
    labels_by: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class GoldList(Result):
    """What `gold check` comes to without a name."""

    sets: tuple[ListedSet, ...]


def list_sets(workspace: Workspace) -> GoldList:
    return GoldList(tuple(_listed(name, workspace) for name in workspace.gold_sets))


def _listed(name: str, workspace: Workspace) -> ListedSet:
    try:
        gold = load_gold(name, workspace=workspace)
    except InputError as error:
        return ListedSet(name, error=str(error))
    n_groups, card = gold.n_groups(gold.items), gold.card
    return ListedSet(
        name, len(gold.items), n_groups, str(gold.scale), gold.raters, card.sampling, card.labels_by
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding: its kind in one word, `file:line` where a line can be named, and what to do.

    `explained` is why the set's owner lets it stand, from `[explained]` of card.toml; None where it is open.
    """

    kind: str
    where: str
    message: str
    explained: str | None = None


@dataclass(frozen=True, slots=True)
class GoldCheck(Result):
    """The audit of a set; `tags`: items of each."""

    set_: str
    n_items: int
    n_groups: int
    n_documents: int
    splits: Mapping[str, SplitCounts]
    tags: Mapping[str, int]
    problems: tuple[Problem, ...]
    sha256: str = field(default="", metadata={"json": False})
    scale: str = field(default="", metadata={"json": False})
    n_labelled: int = field(default=0, metadata={"json": False})


def check_set(gold: GoldSet, workspace: Workspace) -> GoldCheck:
    """The counts of a set and every finding of its audit."""
    return GoldCheck(
        set_=gold.name,
        n_items=len(gold.items),
        n_groups=gold.n_groups(gold.items),
        n_documents=len(gold.documents),
        splits=split_counts(gold),
        tags=dict(sorted(Counter(tag for item in gold.items for tag in set(item.tags)).items())),
        problems=tuple(check_gold(gold, workspace=workspace)),
        sha256=gold.sha256,
        scale=str(gold.scale),
        n_labelled=len(gold.labels),
    )


def _card_gaps(gold: GoldSet) -> Findings:
    for key in ("version", "licence", "source", "made_by"):
        if not getattr(gold.card, key):
            yield CARD, f"no {key}: fill it in, so that others can judge what the set is good for"
    for rater in gold.raters:
        if rater not in gold.card.raters:
            yield CARD, f"no [raters.{rater}]: say who they are, and which instructions they had"
    for rater in gold.card.raters:
        if rater not in gold.raters and not any(rating.rater == rater for rating in gold.ratings):
            yield CARD, f"[raters.{rater}] has no rating in {RATINGS}"


_CHECKS: Mapping[str, Callable[[GoldSet], Findings]] = {
    "card": _card_gaps,
    "unlabelled": check_labels.unlabelled,
    "unlike_labels": check_texts.unlike_labels,
    "duplicate": check_texts.duplicates,
    "question_in_two_groups": check_texts.question_in_groups,
    "thin_split": check_labels.thin_splits,
    "thin_stratum": check_labels.thin_strata,
    "near_constant": check_labels.near_constant,
    NARROW: check_labels.narrow,
    "off_step": check_labels.off_step,
    "no_documents": check_texts.no_documents,
}
"""kind -> from a set to its findings of that kind, in the order in which they are told."""


def check_gold(gold: GoldSet, *, workspace: Workspace | None = None) -> list[Problem]:
    """Every finding of the audit, in the order of the checks; those that the card explains carry the
    explanation.

    The workspace's signatures and compiled programs are searched for the set's dev and test questions; None
    leaves that out.
    """
    explained = gold.card.explained

    def problems(kind: str, findings: Findings) -> list[Problem]:
        return [Problem(kind, gold.place(rows), message, explained.get(kind)) for rows, message in findings]

    faults = [problem for kind, check in _CHECKS.items() for problem in problems(kind, check(gold))]
    if workspace is not None:
        faults += problems("leak", check_texts.leaks(gold, workspace))
    return faults
