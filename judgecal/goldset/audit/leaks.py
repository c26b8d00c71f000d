"""Leaks: dev and test items that stand as examples in a prompt of the workspace.

Signatures are read as text (nothing of the user's is run), programs as JSON.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from judgecal.goldset.audit.problem import Problem, item_place, plain_text
from judgecal.goldset.audit.wording import containment, shingles, words
from judgecal.goldset.gold_set import GoldSet
from judgecal.records import Item
from judgecal.workspace import Workspace, shown

__all__ = ["leaks"]

_RUN = 3
_LEAST = 0.8
_LEAST_WORDS = 4  # fewer words are no wording of one's own


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A text of the workspace that goes into prompts."""

    where: str
    what: str
    texts: tuple[str, ...]


def leaks(gold: GoldSet, workspace: Workspace) -> Iterator[Problem]:
    """Questions of dev and test whose words stand in a signature or in the demos of a compiled program."""
    questions = _sealed_questions(gold)
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
            yield _leak(gold, prompt, items, least=least)


def _sealed_questions(gold: GoldSet) -> dict[str, list[Item]]:
    questions: defaultdict[str, list[Item]] = defaultdict(list)
    for split in ("dev", "test"):
        for item in gold.select(split):
            questions[plain_text(item.question)].append(item)
    return {question: items for question, items in questions.items() if len(words(question)) >= _LEAST_WORDS}


def _leak(gold: GoldSet, prompt: _Prompt, items: list[Item], *, least: float) -> Problem:
    splits = " and ".join(sorted({gold.split_of(item.group) for item in items}))
    return Problem(
        "leak",
        f"{prompt.where}, {item_place(gold, items)}",
        f"{prompt.what} hold the questions of {len(items)} items of {splits} ({least:.0%} or more of their runs of "
        f"{_RUN} words, reported from {_LEAST:.0%}): a judge that was shown them is not tested by them; take other "
        "examples",
    )


def _signatures(workspace: Workspace) -> Iterator[_Prompt]:
    for path in sorted(workspace.signatures.glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8-sig"))
        except (SyntaxError, ValueError):  # whoever uses the signature is told; it leaks nothing
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
            state = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # no judge can be made of it: whoever names it is told
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
