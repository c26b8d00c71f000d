"""Items: without a label, twice in the set, one question under two names; thin splits, strata and tags;
leaks."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from judgecal.artefacts import read_json
from judgecal.errors import InputError, listed
from judgecal.goldset.card import SPLITS
from judgecal.goldset.check_wording import MEASURE, clusters, containment, shingles, words
from judgecal.goldset.finding import Checks, Findings, place, plain_text, say
from judgecal.goldset.gold_set import ITEMS, GoldSet
from judgecal.records import Item
from judgecal.tables.columns import GOLD
from judgecal.workspace import Workspace, shown

# One word in forty may differ in an answer and one in twenty in a question: a leak weighs more than a repeat.
_NEAR_ANSWER = 0.9
_NEAR_QUESTION = 0.8


def _unlabelled(gold: GoldSet) -> Findings:
    rated = {rating.item_id for rating in gold.ratings if rating.label is not None}
    unclear = {rating.item_id for rating in gold.ratings} - rated
    for item in gold.items:
        if item.item_id not in gold.labels:
            why = (
                f"the raters tie: add a rating by {GOLD!r} or by one more rater"
                if item.item_id in rated
                else "nobody who rated it could tell"
                if item.item_id in unclear
                else "nobody rated it"
            )
            yield [item], f"item {item.item_id!r} has no gold label: {why}"


def _unlike_labels(gold: GoldSet) -> Findings:
    same: defaultdict[Hashable, list[Item]] = defaultdict(list)
    for item in gold.items:
        if item.item_id in gold.labels:
            same[_question(item), plain_text(item.answer)].append(item)
    for items in same.values():
        labels = [gold.labels[item.item_id] for item in items]
        if len(set(labels)) > 1:
            yield (
                items,
                f"the same answer to the same question is labelled {listed([*map(say, labels)])}: settle it",
            )


def _question(item: Item) -> Hashable:
    contexts, fields = tuple(part.text for part in item.contexts), tuple(sorted(item.fields.items()))
    return (plain_text(item.question), item.reference_answers, contexts, fields)


def _near_duplicates(gold: GoldSet) -> Findings:
    found = clusters(gold.items, text=lambda item: item.answer, within=_question, least=_NEAR_ANSWER)
    for items, index in found:
        labels = list(dict.fromkeys(gold.labels.get(item.item_id) for item in items))
        if len(labels) > 1 and len({plain_text(item.answer) for item in items}) == 1:
            continue  # told as unlike_labels
        systems = list(dict.fromkeys(item.system for item in items if item.system))
        by = f", given by {listed(systems)}" if systems else ""
        yield (
            items,
            f"{len(items)} items have nearly the same answer to one question ({MEASURE} {index:.2f}, "
            f"reported from {_NEAR_ANSWER:g}; same numbers and negations){by}, labelled "
            f"{listed(list(dict.fromkeys(map(say, labels))))}: they count as {len(items)} and show one "
            "thing; keep one, or make them differ",
        )


def _question_in_groups(gold: GoldSet) -> Findings:
    groups: defaultdict[str, dict[str, Item]] = defaultdict(dict)
    for item in gold.items:
        if not item.question:
            continue  # it has fields in its place
        groups[plain_text(item.question)].setdefault(item.group, item)
    for found in groups.values():
        if len(found) > 1:
            splits = sorted({gold.split_of(group) for group in found}, key=SPLITS.index)
            leak = (
                f"and in {' and '.join(splits)}" if len(splits) > 1 else f"all of them in {splits[0]} so far"
            )
            yield (
                list(found.values()),
                f"one question stands in {len(found)} groups ({listed(list(found))}), {leak}: give it one "
                f"group",
            )


def _near_questions(gold: GoldSet) -> Findings:
    firsts: dict[str, Item] = {}
    for item in gold.items:
        firsts.setdefault(plain_text(item.question), item)
    found = clusters(
        firsts.values(), text=lambda item: item.question, within=lambda _: None, least=_NEAR_QUESTION
    )
    for items, index in found:
        splits = sorted({gold.split_of(item.group) for item in items}, key=SPLITS.index)
        if len(splits) > 1:
            yield (
                items,
                f"{len(items)} questions in {' and '.join(splits)} are worded nearly alike ({MEASURE} "
                f"{index:.2f}, reported from {_NEAR_QUESTION:g}; same numbers and negations): if they ask "
                "the same, give them one group, or what was learnt on one split is known on the other",
            )


def split_notes(gold: GoldSet) -> list[str]:
    """What whoever decides on a split must know: questions in two splits that no card explains."""
    checks: Checks = {
        "question_in_two_groups": _question_in_groups,
        "near_question_in_two_splits": _near_questions,
    }
    n = 0
    for kind, check in checks.items():
        for items, _ in [] if kind in gold.card.explained else check(gold):
            n += len({gold.split_of(item.group) for item in items if isinstance(item, Item)}) > 1
    if not n:
        return []
    one, them = ("question stands", "it") if n == 1 else ("questions stand", "them")
    return [
        f"{n:,} {one} in two splits, word for word or nearly so: what was learnt or chosen on one split is "
        f"known on the other, so that numbers flatter (judgecal gold check {gold.name} --full names {them})"
    ]


_LEAST_GROUPS = 10  # below this there is no interval at all
_LEAST_STRATUM = 10  # below this a class or a third of the scale has no interval of its own
_TINY_STRATUM = 3
_LEAST_TAG = 5
_THIRDS = ("low third", "middle third", "high third")


def _thin_splits(gold: GoldSet) -> Findings:
    for split in SPLITS:
        groups = gold.n_groups(gold.select(split))
        if groups < _LEAST_GROUPS:
            yield (
                split,
                f"{groups} questions in {split}: below {_LEAST_GROUPS} no interval can be given, so nothing "
                "can be decided there",
            )


def _strata(gold: GoldSet, split: str) -> list[tuple[str, int]]:
    """The classes or the thirds of the scale, and how many labels of a split are in each."""
    labels = [gold.labels[item.item_id] for item in gold.select(split) if item.item_id in gold.labels]
    scale = gold.scale
    if scale.kind == "nominal":
        words = Counter(labels)
        return [(word, words[word]) for word in scale.categories]
    counts = Counter(scale.stratum(float(label)) for label in labels)
    if scale.kind == "binary":
        return [("0", counts[0]), ("1", counts[2])]
    return [(f"in the {third}", counts[stratum]) for stratum, third in enumerate(_THIRDS)]


def _thin_strata(gold: GoldSet) -> Findings:
    for stratum, count in _strata(gold, "test"):
        if count < _LEAST_STRATUM:
            yield (
                "test",
                f"{count} items labelled {stratum} in test: below {_LEAST_STRATUM} its rate has no interval",
            )


def _tiny_strata(gold: GoldSet) -> Findings:
    if not gold.scale.numeric:
        return  # macro_agreement is not defined there
    for split in SPLITS:
        strata = _strata(gold, split)
        filled = sum(count > 0 for _, count in strata)
        for stratum, count in strata:
            if 0 < count <= _TINY_STRATUM < sum(n for _, n in strata):
                yield (
                    split,
                    f"{count} items labelled {stratum} in {split} make 1/{filled} of its macro_agreement: "
                    f"add items of that kind, or the number hangs on "
                    f"{'this one' if count == 1 else 'these few'}",
                )


def _tagged(gold: GoldSet) -> dict[str, list[Item]]:
    tags: defaultdict[str, list[Item]] = defaultdict(list)
    for item in gold.items:
        for tag in set(item.tags):
            tags[tag].append(item)
    return tags


def _thin_tags(gold: GoldSet) -> Findings:
    for tag, items in sorted(_tagged(gold).items()):
        if len(items) < _LEAST_TAG:
            yield (
                items,
                f"tag {tag!r} has {len(items)} items: below {_LEAST_TAG} that is too few to say anything of "
                f"it",
            )


def _tags_of_splits(gold: GoldSet) -> Findings:
    wanted = {tag for tag, items in _tagged(gold).items() if len(items) >= _LEAST_TAG}
    for split in SPLITS:
        items = gold.select(split)
        missing = sorted(wanted - {tag for item in items for tag in item.tags})
        if items and missing:
            yield (
                ITEMS,
                f"{split} has no item tagged {listed(missing)}: what is chosen or shown there says nothing "
                f"of {'it' if len(missing) == 1 else 'them'}",
            )


ITEM_CHECKS: Checks = {
    "unlabelled": _unlabelled,
    "unlike_labels": _unlike_labels,
    "near_duplicate": _near_duplicates,
    "question_in_two_groups": _question_in_groups,
    "near_question_in_two_splits": _near_questions,
    "thin_split": _thin_splits,
    "thin_stratum": _thin_strata,
    "tiny_stratum": _tiny_strata,
    "thin_tag": _thin_tags,
    "tag_not_in_split": _tags_of_splits,
}


_RUN = 3
_LEAST = 0.8
_LEAST_WORDS = 4  # fewer words are no wording of one's own


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A text of the workspace that goes into prompts."""

    where: str
    what: str
    texts: tuple[str, ...]


def leaks(gold: GoldSet, workspace: Workspace) -> Findings:
    """Questions of dev and test whose words stand in a signature or in the demos of a compiled program."""
    of_question: defaultdict[str, list[Item]] = defaultdict(list)
    for item in (item for split in ("dev", "test") for item in gold.select(split)):
        of_question[plain_text(item.question)].append(item)
    questions = {text: items for text, items in of_question.items() if len(words(text)) >= _LEAST_WORDS}
    index: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    runs = {question: shingles(question, _RUN, ends=False) for question in questions}
    for question, own in runs.items():
        for run in own:
            index[run].add(question)
    for prompt in (*_signatures(workspace), *_programs(workspace)):
        found: dict[str, float] = {}
        for text in prompt.texts:
            there = shingles(text, _RUN, ends=False)
            for question in {question for run in there for question in index.get(run, ())}:
                found[question] = max(found.get(question, 0.0), containment(runs[question], there))
        items = [
            item
            for question in questions
            if found.get(question, 0.0) >= _LEAST
            for item in questions[question]
        ]
        if items:
            least = min(found[plain_text(item.question)] for item in items)
            splits = " and ".join(sorted({gold.split_of(item.group) for item in items}))
            yield (
                f"{prompt.where}, {place(gold, items)}",
                f"{prompt.what} hold the questions of {len(items)} items of {splits} ({least:.0%} or more of "
                f"their runs of {_RUN} words, reported from {_LEAST:.0%}): a judge that was shown them is "
                "not tested by them; take other examples",
            )


def _signatures(workspace: Workspace) -> Iterator[_Prompt]:
    for path in sorted(workspace.signatures.glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8-sig"))
        except (
            SyntaxError,
            ValueError,
            RecursionError,
            OSError,
        ):  # whoever uses it is told; it leaks nothing
            continue
        strings = [
            node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        if strings:
            line = max(strings, key=lambda node: len(str(node.value))).lineno
            yield _Prompt(
                f"{shown(path)}:{line}", "the signature's texts", tuple(str(node.value) for node in strings)
            )


def _programs(workspace: Workspace) -> Iterator[_Prompt]:
    for path in sorted(workspace.experiments.glob("*/program.json")):
        try:
            state = read_json(path, absent="gone since it was listed")
        except (InputError, OSError):  # no judge can be made of it: whoever names it is told
            continue
        texts = tuple(_texts(state))
        if texts:
            yield _Prompt(shown(path), "the program's examples and instructions", texts)


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
