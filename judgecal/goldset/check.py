"""The audit of a set that loads: what is not wrong by its format, but would mislead whoever relies on it.

Each check is a small function from a set to its findings; `check_*.py` hold those of items, labels and
wording.
"""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed
from judgecal.goldset.card import try_card
from judgecal.goldset.check_items import ITEM_CHECKS, leaks
from judgecal.goldset.check_labels import LABEL_CHECKS, Baseline, baselines, near_pass_mark
from judgecal.goldset.check_wording import REFERENCE_CHECKS
from judgecal.goldset.finding import Checks, Findings, Problem, place, plain_text
from judgecal.goldset.gold_set import (
    CARD,
    DOCUMENTS,
    ITEMS,
    RATINGS,
    GoldSet,
    SplitCounts,
    list_gold,
    load_gold,
    split_counts,
)
from judgecal.goldset.rows import Document
from judgecal.records import Estimate, Result
from judgecal.tables import GOLD
from judgecal.workspace import Workspace

_COUNTED = 4_000_000  # bytes of rows from which a set is listed by counts


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
    """What `gold list` comes to."""

    sets: tuple[ListedSet, ...]


def list_sets(workspace: Workspace) -> GoldList:
    """Every set of a workspace, those that cannot be loaded too."""
    return GoldList(tuple(_listed(name, workspace) for name in list_gold(workspace)))


def _listed(name: str, workspace: Workspace) -> ListedSet:
    folder = workspace.gold / name
    rows = [path for path in (folder / ITEMS, folder / RATINGS) if path.is_file()]
    if sum(path.stat().st_size for path in rows) > _COUNTED and (counted := _counted(folder)):
        return counted
    try:
        gold = load_gold(name, workspace=workspace)
    except InputError as error:
        return ListedSet(name, error=str(error))
    return ListedSet(
        name,
        len(gold.items),
        gold.n_groups(gold.items),
        str(gold.scale),
        gold.raters,
        gold.card.sampling,
        gold.card.labels_by,
    )


def _counted(folder: Path) -> ListedSet | None:
    """A large set by its card and the counts of its rows, which are not held against the format: that is what
    `gold check` does. None where they cannot be counted."""
    import polars as pl

    card, problems = try_card(folder / CARD)
    if card is None or problems or card.name != folder.name:
        return None
    texts = {
        ITEMS: dict.fromkeys(("item_id", "group", "question"), pl.String),
        RATINGS: dict.fromkeys(("rater", "label"), pl.String),
    }
    try:
        items, ratings = (pl.scan_ndjson(folder / name, schema=schema) for name, schema in texts.items())
        names = [pl.col(name).replace("", None) for name in ("group", "question", "item_id")]
        n_items, n_groups = (
            items.select(n=pl.len(), groups=pl.coalesce(names).hash().n_unique()).collect().row(0)
        )
        labelled = ratings.filter(pl.col("label").is_not_null()).select(pl.col("rater").unique()).collect()
    except (pl.exceptions.PolarsError, OSError):
        return None
    raters = tuple(sorted({*labelled["rater"].drop_nulls()} - {GOLD}))
    return ListedSet(folder.name, n_items, n_groups, str(card.scale), raters, card.sampling, card.labels_by)


@dataclass(frozen=True, slots=True)
class NearPassMark:
    """What counts as near the pass mark, on the scale, and the share of labels that near."""

    within: float | None
    share: Estimate


@dataclass(frozen=True, slots=True)
class GoldCheck(Result):
    """What `gold check` comes to; `tags`: items of each; `baselines`: the best constant of each metric."""

    set_: str
    n_items: int
    n_groups: int
    n_documents: int
    splits: Mapping[str, SplitCounts]
    tags: Mapping[str, int]
    problems: tuple[Problem, ...]
    baselines: Mapping[str, Baseline]
    near_pass_mark: NearPassMark
    sha256: str = field(default="", metadata={"json": False})
    scale: str = field(default="", metadata={"json": False})
    n_labelled: int = field(default=0, metadata={"json": False})

    def frame(self) -> Any:
        """A `polars.DataFrame` with a row a problem: `set`, `kind`, `where`, `message`."""
        return _problem_rows([self])


@dataclass(frozen=True, slots=True)
class GoldChecks(Result):
    """The checks of all sets that load, and what is wrong with the others."""

    sets: tuple[GoldCheck, ...]
    broken: tuple[str, ...] = field(default=(), metadata={"json": False})

    def frame(self) -> Any:
        """As that of a `GoldCheck`, of all sets."""
        return _problem_rows(self.sets)


def _problem_rows(checks: Iterable[GoldCheck]) -> Any:
    import polars

    rows = [(one.set_, found.kind, found.where, found.message) for one in checks for found in one.problems]
    return polars.DataFrame(
        rows, schema=dict.fromkeys(("set", "kind", "where", "message"), polars.String), orient="row"
    )


def check_sets(workspace: Workspace) -> GoldChecks:
    """Check every set of a workspace."""
    checks: list[GoldCheck] = []
    broken: list[str] = []
    for name in list_gold(workspace):
        try:
            checks.append(check_set(load_gold(name, workspace=workspace), workspace))
        except InputError as error:
            broken.extend(error.problems)
    return GoldChecks(tuple(checks), tuple(broken))


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
        baselines=baselines(gold),
        near_pass_mark=NearPassMark(*near_pass_mark(gold)),
        sha256=gold.sha256,
        scale=str(gold.scale),
        n_labelled=len(gold.labels),
    )


def _card_gaps(gold: GoldSet) -> Findings:
    for key in ("version", "licence", "source", "made_by"):
        if not getattr(gold.card, key):
            yield CARD, f"no {key}: say it, so that others can judge what the set is good for"
    for rater in gold.raters:
        if rater not in gold.card.raters:
            yield CARD, f"no [raters.{rater}]: say who it is, and with which instructions"
    for rater in gold.card.raters:
        if rater not in gold.raters and not any(rating.rater == rater for rating in gold.ratings):
            yield CARD, f"[raters.{rater}] has no rating in {RATINGS}"


def _idle_explanations(gold: GoldSet, kinds: Collection[str]) -> Findings:
    """Explanations of kinds that this audit did not find: out of date, or a slip of the pen."""
    for kind in gold.card.explained:
        if kind not in kinds:
            near = difflib.get_close_matches(kind, sorted(kinds), n=1)
            hint = f"; did you mean {near[0]}?" if near else ": take it out"
            yield CARD, f"[explained] {kind} explains nothing that was found{hint}"


def _no_documents(gold: GoldSet) -> Findings:
    # Where there is a documents.jsonl, a set that names what it lacks does not load.
    naming = [item for item in gold.items if item.reference_documents]
    if naming and not gold.documents:
        names = {name for item in naming for name in item.reference_documents}
        yield (
            naming,
            f"{len(naming)} items name {len(names)} reference documents ({listed(sorted(names))}) and the "
            f"set has no {DOCUMENTS}: the retriever test and the answerer test need them",
        )


def _empty_documents(gold: GoldSet) -> Findings:
    for document in gold.documents:
        if not document.text.strip():
            yield (
                [document],
                f"document {document.document_id!r} has no text: nothing can be found in it; fill it in or "
                f"take it out",
            )


def _same_documents(gold: GoldSet) -> Findings:
    same: defaultdict[str, list[Document]] = defaultdict(list)
    for document in gold.documents:
        if document.text.strip():
            same[plain_text(document.text)].append(document)
    for documents in same.values():
        if len(documents) > 1:
            yield (
                documents,
                f"documents {listed([repr(document.document_id) for document in documents])} have one text "
                "(but for case and spacing): a retriever cannot tell them apart, and finding the one counts "
                "as missing the other; keep one",
            )


_CHECKS: Checks = {
    "card": _card_gaps,
    **ITEM_CHECKS,
    **LABEL_CHECKS,
    **REFERENCE_CHECKS,
    "no_documents": _no_documents,
    "empty_document": _empty_documents,
    "same_document": _same_documents,
}


def check_gold(gold: GoldSet, *, workspace: Workspace | None = None) -> list[Problem]:
    """Every finding of the audit, in the order of the checks; those that the card explains carry the
    explanation.

    The workspace's signatures and compiled programs are searched for the set's dev and test questions; None
    leaves that out.
    """
    explained = gold.card.explained

    def problems(kind: str, findings: Findings) -> list[Problem]:
        return [Problem(kind, place(gold, rows), message, explained.get(kind)) for rows, message in findings]

    found = [problem for kind, check in _CHECKS.items() for problem in problems(kind, check(gold))]
    if workspace is not None:
        found += problems("leak", leaks(gold, workspace))
        # Without the workspace a leak may be what is explained.
        found += problems("idle_explanation", _idle_explanations(gold, {problem.kind for problem in found}))
    return found
