"""`gold check`: the sets of a workspace, and the audit of a set that loads: what is not wrong by its format,
but would mislead whoever relies on it.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from judgecal.artefacts import read_json
from judgecal.errors import InputError, listed
from judgecal.goldset.card import SPLITS
from judgecal.goldset.gold_set import CARD, DOCUMENTS, RATINGS, Findings, GoldSet, SplitCounts, split_counts
from judgecal.goldset.labels import NARROW, label_text, narrow_labels
from judgecal.goldset.load import load_gold
from judgecal.goldset.wording import grouped, normal_text, plain_text, shingles, words
from judgecal.records import Item, Result
from judgecal.tables.columns import GOLD
from judgecal.workspace import Workspace, shown


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
    """Return the GoldCheck of a GoldSet and a Workspace: its counts, and every finding of its audit."""
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


def check_gold(gold: GoldSet, *, workspace: Workspace | None = None) -> list[Problem]:
    """Return the list of Problems of a GoldSet, in the order of the checks, with the card's explanations.

    The workspace's signatures and compiled programs are searched for the set's dev and test questions; None
    leaves that out.
    """
    explained = gold.card.explained

    def problems(kind: str, findings: Findings) -> list[Problem]:
        return [Problem(kind, gold.place(rows), message, explained.get(kind)) for rows, message in findings]

    faults = [problem for kind, check in _CHECKS.items() for problem in problems(kind, check(gold))]
    if workspace is not None:
        faults += problems("leak", leaks(gold, workspace))
    return faults


_HIGH_SHARE = 0.8
_LEAST_GROUPS = 10  # below this there is no interval at all
_LEAST_STRATUM = 10  # below this a class or a third of the scale has no interval of its own
_THIRDS = ("low third", "middle third", "high third")


def unlabelled(gold: GoldSet) -> Findings:
    """Yield a finding for each item of a GoldSet without a gold label, and why it has none."""
    rated = {rating.item_id for rating in gold.ratings if rating.label is not None}
    unclear = {rating.item_id for rating in gold.ratings} - rated
    for item in gold.items:
        if item.item_id not in gold.labels:
            why = "nobody rated it"
            if item.item_id in rated:
                why = f"the raters tie: add a rating by {GOLD!r} or by one more rater"
            elif item.item_id in unclear:
                why = "nobody who rated it could tell"
            yield [item], f"item {item.item_id!r} has no gold label: {why}"


def thin_splits(gold: GoldSet) -> Findings:
    """Yield a finding for each split of a GoldSet with too few questions for an interval."""
    for split in SPLITS:
        groups = gold.n_groups(gold.select(split))
        if groups < _LEAST_GROUPS:
            yield (
                split,
                f"{groups} questions in {split}: below {_LEAST_GROUPS} there is no interval, so we can "
                "decide nothing there",
            )


def _strata(gold: GoldSet, split: str) -> list[tuple[str, int]]:
    labels = [gold.labels[item.item_id] for item in gold.select(split) if item.item_id in gold.labels]
    scale = gold.scale
    if scale.kind == "nominal":
        words = Counter(labels)
        return [(word, words[word]) for word in scale.categories]
    counts = Counter(scale.stratum(float(label)) for label in labels)
    if scale.kind == "binary":
        return [("0", counts[0]), ("1", counts[2])]
    return [(f"in the {third}", counts[stratum]) for stratum, third in enumerate(_THIRDS)]


def thin_strata(gold: GoldSet) -> Findings:
    """Yield a finding for each class or third of the scale with too few items in a GoldSet's test split."""
    for stratum, count in _strata(gold, "test"):
        if count < _LEAST_STRATUM:
            yield (
                "test",
                f"{count} items labelled {stratum} in test: below {_LEAST_STRATUM} its rate has no interval",
            )


def near_constant(gold: GoldSet) -> Findings:
    """Yield a finding where most labels of a GoldSet are the same."""
    labels = list(gold.labels.values())
    label, n = Counter(labels).most_common(1)[0] if labels else ("", 0)
    if n > _HIGH_SHARE * len(labels):
        yield (
            RATINGS,
            f"{n} of {len(labels)} labels are {label_text(label)} (reported above {_HIGH_SHARE:.0%}): rank "
            "by macro_agreement, and add items of the other kind",
        )


def narrow(gold: GoldSet) -> Findings:
    """Yield a finding where labels of a GoldSet use a narrow part of the scale, as its card explains."""
    labels = [rating.label for rating in gold.ratings if rating.label is not None]
    if why := narrow_labels([float(label) for label in labels if gold.scale.graded], gold.scale):
        yield RATINGS, why


_RUN = 3  # words
_LEAST_LEAKED = 0.8  # of a question's runs
_LEAST_WORDS = 4  # fewer words are no wording of one's own


def _task(item: Item) -> Hashable:
    contexts, fields = tuple(part.text for part in item.contexts), tuple(sorted(item.fields.items()))
    return (plain_text(item.question), item.reference_answers, contexts, fields, _either_way(item))


def _either_way(item: Item) -> str:
    """The answers of a pair, which is the same whichever of them is A."""
    return "\n\n".join(sorted((item.pair.answer_a, item.pair.answer_b))) if item.pair else ""


def duplicates(gold: GoldSet) -> Findings:
    """Yield a finding for equal answers to a question in a GoldSet, but for case, accents and marks."""
    same = grouped(gold.items, lambda item: (_task(item), normal_text(item.answer or _either_way(item))))
    for items in same.values():
        labels = list(dict.fromkeys(gold.labels.get(item.item_id) for item in items))
        mend = f"they count as {len(items)} but show one thing; keep one, or make them differ"
        if len({label for label in labels if label is not None}) > 1:
            mend = "settle which label holds"
        systems = list(dict.fromkeys(item.system for item in items if item.system))
        by = f", given by {listed(systems)}" if systems else ""
        if len(items) > 1:
            yield (
                items,
                f"{len(items)} items have the same answer to one question, but for case, accents, "
                f"punctuation and articles{by}, labelled {listed([*map(label_text, labels)])}: {mend}",
            )


def _splits(gold: GoldSet, items: list[Item]) -> list[str]:
    return sorted({gold.split_of(item.group) for item in items}, key=SPLITS.index)


def question_in_groups(gold: GoldSet) -> Findings:
    """Yield a finding, the items and a message, for each question of a GoldSet in more than one group."""
    questioned = [item for item in gold.items if item.question]  # else it has fields in its place
    texts = {question: normal_text(question) for question in {item.question for item in questioned}}
    for items in grouped(questioned, lambda item: texts[item.question]).values():
        firsts = [same[0] for same in grouped(items, lambda item: item.group).values()]
        if len(firsts) > 1:
            splits = _splits(gold, firsts)
            leak = (
                f"and in {' and '.join(splits)}" if len(splits) > 1 else f"all of them in {splits[0]} so far"
            )
            groups = listed([item.group for item in firsts])
            yield (firsts, f"one question is in {len(firsts)} groups ({groups}), {leak}: give it one group")


def split_notes(gold: GoldSet) -> list[str]:
    """Return notes (texts) on the questions of a GoldSet in two splits, unless its card explains them."""
    shares = asdict(gold.card.splits)
    if "question_in_two_groups" in gold.card.explained or 1.0 in map(shares.get, SPLITS):
        return []
    n = sum(
        len({gold.split_of(item.group) for item in items if isinstance(item, Item)}) > 1
        for items, _ in question_in_groups(gold)
    )
    questions, them = ("question stands", "it") if n == 1 else ("questions stand", "them")
    note = (
        f"{n:,} {questions} in two splits: what was learnt or chosen on one "
        f"split is known on the other, so that numbers flatter (judgecal gold check {gold.name} --full "
        f"names {them})"
    )
    return [note] * bool(n)


def leaks(gold: GoldSet, workspace: Workspace) -> Findings:
    """Yield, from a GoldSet and a Workspace, a finding where prompts or demos hold its test questions."""
    sealed = [item for split in ("dev", "test") for item in gold.select(split)]
    questions = {
        text: items
        for text, items in grouped(sealed, lambda item: plain_text(item.question)).items()
        if len(words(text)) >= _LEAST_WORDS
    }
    runs = {question: shingles(question, _RUN, ends=False) for question in questions}
    holding: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for question, own_runs in runs.items():
        for run in own_runs:
            holding[run].add(question)
    for where, what, texts in _prompts(workspace):
        shares: dict[str, float] = {}
        for text in texts:
            there = shingles(text, _RUN, ends=False)
            for question in {question for run in there for question in holding.get(run, ())}:
                share = len(runs[question] & there) / len(runs[question])
                shares[question] = max(shares.get(question, 0.0), share)
        leaked = [question for question in questions if shares.get(question, 0.0) >= _LEAST_LEAKED]
        items = [item for question in leaked for item in questions[question]]
        if items:
            splits = " and ".join(sorted({gold.split_of(item.group) for item in items}))
            least = min(shares[question] for question in leaked)
            yield (
                f"{where}, {gold.place(items)}",
                f"{what} hold the questions of {len(items)} items of {splits} ({least:.0%} or more of "
                f"their runs of {_RUN} words, reported from {_LEAST_LEAKED:.0%}): they cannot test a "
                "judge that saw them; take other examples",
            )


def _prompts(workspace: Workspace) -> Iterator[tuple[str, str, list[str]]]:
    """The texts of the workspace that go into prompts, where each of them stands, and what they are."""
    for path in sorted(workspace.signatures.glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8-sig"))
        except (SyntaxError, ValueError, RecursionError, OSError):  # whoever uses it is told
            continue
        strings = [
            (node.lineno, node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        if strings:
            line, _ = max(strings, key=lambda string: len(string[1]))
            yield f"{shown(path)}:{line}", "the signature's texts", [text for _, text in strings]
    for path in sorted(workspace.experiments.glob("*/program.json")):
        try:
            texts = list(_texts(read_json(path, absent="gone since it was listed")))
        except (InputError, OSError):  # no judge can be made of it: whoever names it is told
            continue
        if texts:
            yield shown(path), "the program's examples and instructions", texts


def _texts(state: Any, *, inside: bool = False) -> Iterator[str]:
    """The texts under `demos` and `instructions`, wherever a program of several steps has them."""
    if isinstance(state, str) and inside:
        yield state
    elif isinstance(state, dict):
        for key, value in state.items():
            yield from _texts(value, inside=inside or key in ("demos", "instructions"))
    elif isinstance(state, list):
        for value in state:
            yield from _texts(value, inside=inside)


def no_documents(gold: GoldSet) -> Findings:
    """Yield a finding where items of a GoldSet name reference documents and the set has none."""
    naming = [item for item in gold.items if item.reference_documents]
    if naming and not gold.documents:
        names = {name for item in naming for name in item.reference_documents}
        yield (
            naming,
            f"{len(naming)} items name {len(names)} reference documents ({listed(sorted(names))}) and the "
            f"set has no {DOCUMENTS}: the retriever test and the answerer test need them",
        )


_CHECKS: Mapping[str, Callable[[GoldSet], Findings]] = {
    "card": _card_gaps,
    "unlabelled": unlabelled,
    "duplicate": duplicates,
    "question_in_two_groups": question_in_groups,
    "thin_split": thin_splits,
    "thin_stratum": thin_strata,
    "near_constant": near_constant,
    NARROW: narrow,
    "no_documents": no_documents,
}
