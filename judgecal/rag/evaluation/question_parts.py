"""What systems come to on parts of the questions: those with a tag, and those of one class of complexity."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judgecal.errors import InputError
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.summary import LEVEL, Seconds, mean_share, rows_of, seconds_of, value_of
from judgecal.records import Estimate

Complexity = Literal["simple", "medium", "complex"]

LONG = 20
"""A question of more words than this is long."""
KEY_WORDS = (
    "why", "how", "explain", "compare", "comparison", "difference", "differences", "differ", "versus",
    "advantages", "disadvantages", "steps", "summarise", "summarize",
)  # fmt: skip
"""Words that ask for more than a fact. "How many" and its like ask for a number, and do not count."""
COMPLEXITY_RULE = (
    f"one point each for more than {LONG} words, for two question marks or more, and for a key word "
    f"({', '.join(KEY_WORDS)}; English only, and not how many, much, long, old, often, far or large); "
    "no point is simple, one is medium, two or three are complex"
)
"""The rule of `complexity_of`, as pages print it. We made it; nobody has rated questions by it."""

_KEY = re.compile(
    r"\b(?:(?!how\s+(?:many|much|long|old|often|far|large)\b)" + f"(?:{'|'.join(KEY_WORDS)})" + r")\b",
    re.IGNORECASE,
)
_CLASSES: tuple[Complexity, ...] = ("simple", "medium", "complex")


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """One system on one part of the questions.

    Attributes:
        part: a tag, or a class of complexity.
        total: by question, 0..1, an unscored one counted as 0; without an interval below ten questions.
        latency_s: of the answers to them.
    """

    system: str
    part: str
    total: Estimate
    latency_s: Seconds


def complexity_of(question: str) -> Complexity:
    """The class of a question by `COMPLEXITY_RULE`."""
    points = (len(question.split()) > LONG, question.count("?") >= 2, _KEY.search(question) is not None)
    return _CLASSES[min(2, sum(points))]


def by_complexity(
    measured: Sequence[Measured], questions: Iterable[Question], *, level: float = LEVEL
) -> tuple[QuestionPart, ...]:
    """Each system on each class that has questions, from simple to complex."""
    return _parts(
        measured, questions, lambda one: (complexity_of(one.question),), names=_CLASSES, level=level
    )


def by_tag(
    measured: Sequence[Measured], questions: Iterable[Question], *, level: float = LEVEL
) -> tuple[QuestionPart, ...]:
    """Each system on the questions of each tag, in the order in which the tags first occur. As
    `by_complexity`."""
    return _parts(measured, questions, lambda one: one.tags, level=level)


def _parts(
    measured: Sequence[Measured],
    questions: Iterable[Question],
    names_of: Callable[[Question], Sequence[str]],
    *,
    names: Sequence[str] = (),
    level: float,
) -> tuple[QuestionPart, ...]:
    """By part, those of `names` first and in their order."""
    rows, known = rows_of(measured), {one.group: one for one in questions}
    asked = dict.fromkeys(one.question for one in measured)
    missing = [
        f"question {one} was measured, and is not among the questions" for one in asked if one not in known
    ]
    if missing:
        raise InputError("\n".join(missing))
    inside: dict[str, list[str]] = {name: [] for name in names}
    for question in asked:
        for name in dict.fromkeys(names_of(known[question])):
            inside.setdefault(name, []).append(question)
    return tuple(
        _part(system, name, {question: answers[question] for question in groups}, level=level)
        for name, groups in inside.items()
        if groups
        for system, answers in rows.items()
    )


def _part(system: str, name: str, answers: Mapping[str, Measured | None], *, level: float) -> QuestionPart:
    total = {question: value_of(one, "total") for question, one in answers.items()}
    given = [one.given for one in answers.values() if one is not None and one.given.answer is not None]
    return QuestionPart(
        system,
        name,
        total=mean_share(total, unscored="wrong", level=level),
        latency_s=seconds_of(answer.latency_s for answer in given),
    )
