"""Systems that are asked; and what `evaluate` comes to, of answers whose numbers are given or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgecal.engine.budget import Budget
from judgecal.engine.run import RunOptions
from judgecal.rag.evaluation.summary import Measured
from judgecal.rag.evaluation.system import Asking, System, SystemAnswer
from judgecal.rag.questions import Question
from judgecal.records import Failure


def asking(folder: Path, **options: Any) -> Asking:
    return Asking(folder, RunOptions(quiet=True, **options), Budget(options.get("budget_usd")))


def ask(system: System, questions: Sequence[Question], folder: Path, **options: Any) -> list[SystemAnswer]:
    """What a system answers, which nothing keeps from answering."""
    assert system.check(questions) == []
    return system.answer(questions, asking(folder, **options))


def errors(answers: Sequence[SystemAnswer]) -> list[str]:
    """`kind: message` of each; empty where there is an answer."""
    return [f"{one.error.kind}: {one.error.message}" if one.error else "" for one in answers]


def handed(answer: SystemAnswer) -> list[str | None]:
    """The documents of its contexts."""
    return [context.document_id for context in answer.contexts or ()]


def measured_row(
    system: str,
    place: int,
    correctness: float | None = 1.0,
    *,
    answered: bool | None = True,
    answerable: bool = True,
    failed: bool = False,
    latency_s: float | None = None,
    cost_usd: float | None = 0.001,
    document: str = "d",
    is_complex: bool = False,
) -> Measured:
    question, share = f"q{place}", None if failed else correctness
    error = Failure("timeout", "no reply in 30 s") if failed else None
    text = None if failed else "It is so."
    given = SystemAnswer(system, question, text, error=error, latency_s=latency_s, cost_usd=cost_usd)
    measures = {"faithfulness": share}
    return Measured(system, question, (document,), answerable, is_complex, given, answered, share, measures)


def of_totals(system: str, totals: Sequence[float | None]) -> list[Measured]:
    return [measured_row(system, place, total) for place, total in enumerate(totals)]
