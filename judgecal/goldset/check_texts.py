"""What is wrong with the texts of a set: repeated answers and questions, questions that a prompt of the
workspace gives away, reference answers that no document supports, and missing documents.

What a reference must not say is for people to judge. These checks are heuristics on words, numbers and names;
their messages say so, and what they rest on.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import asdict
from typing import Any

from judgecal.artefacts import read_json
from judgecal.errors import InputError, listed
from judgecal.goldset.card import SPLITS
from judgecal.goldset.gold_set import DOCUMENTS, Findings, GoldSet
from judgecal.goldset.labels import label_text
from judgecal.goldset.wording import grouped, normal_text, plain_text, shingles, words
from judgecal.records import Item
from judgecal.workspace import Workspace, shown

_RUN = 3  # words
_LEAST_LEAKED = 0.8  # of a question's runs
_LEAST_WORDS = 4  # fewer words are no wording of one's own


def _task(item: Item) -> Hashable:
    contexts, fields = tuple(part.text for part in item.contexts), tuple(sorted(item.fields.items()))
    return (plain_text(item.question), item.reference_answers, contexts, fields, _either_way(item))


def _either_way(item: Item) -> str:
    """The answers of a pair, which is the same whichever of them is A."""
    return "\n\n".join(sorted((item.pair.answer_a, item.pair.answer_b))) if item.pair else ""


def unlike_labels(gold: GoldSet) -> Findings:
    labelled = [item for item in gold.items if item.item_id in gold.labels]
    for items in grouped(labelled, lambda item: (_task(item), item.pair, plain_text(item.answer))).values():
        labels = [gold.labels[item.item_id] for item in items]
        if len(set(labels)) > 1:
            given = listed([*map(label_text, labels)])
            yield items, f"the same answer to the same question has the labels {given}: settle it"


def duplicates(gold: GoldSet) -> Findings:
    same = grouped(gold.items, lambda item: (_task(item), normal_text(item.answer or _either_way(item))))
    for items in same.values():
        labels = list(dict.fromkeys(gold.labels.get(item.item_id) for item in items))
        unlike = len({label for label in labels if label is not None}) > 1
        if len(items) == 1 or (unlike and len({(plain_text(item.answer), item.pair) for item in items}) == 1):
            continue  # alone, or told as unlike_labels
        systems = list(dict.fromkeys(item.system for item in items if item.system))
        by = f", given by {listed(systems)}" if systems else ""
        yield (
            items,
            f"{len(items)} items have the same answer to one question, but for case, accents, punctuation "
            f"and articles{by}, labelled {listed([*dict.fromkeys(map(label_text, labels))])}: they count as "
            f"{len(items)} but show one thing; keep one, or make them differ",
        )


def _splits(gold: GoldSet, items: list[Item]) -> list[str]:
    return sorted({gold.split_of(item.group) for item in items}, key=SPLITS.index)


def question_in_groups(gold: GoldSet) -> Findings:
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
    """What whoever decides on a split must know: questions in two splits that no card explains."""
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
    """Questions of dev and test whose words stand in a signature or in the demos of a compiled program."""
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
    """Where there is a documents.jsonl, a set that names what it lacks does not load."""
    naming = [item for item in gold.items if item.reference_documents]
    if naming and not gold.documents:
        names = {name for item in naming for name in item.reference_documents}
        yield (
            naming,
            f"{len(naming)} items name {len(names)} reference documents ({listed(sorted(names))}) and the "
            f"set has no {DOCUMENTS}: the retriever test and the answerer test need them",
        )
