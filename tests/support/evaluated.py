"""Systems that are asked; and what `evaluate` comes to, of answers whose numbers are given or drawn."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.engine import Budget
from judgecal.experiment import RunOptions
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.comparisons import best_of, compare_systems, factor_curves, values_of
from judgecal.rag.evaluation.result import (
    AskedQuestions,
    EvaluateResult,
    FailedAnswers,
    FailedVerdicts,
    MeasuredBy,
    States,
    SystemSetting,
    labelled,
)
from judgecal.rag.evaluation.summary import Measured, by_tag, complexity_of, documents_of, summarise
from judgecal.rag.evaluation.system import Asking, Setting, System, SystemAnswer
from judgecal.records import Context, Estimate, Failure

LOCKED = MeasuredBy("correctness", "rag/correctness@embedded", "c.lock.json",
                    Estimate(0.82, 0.76, 0.88, n=90, n_expected=90))  # fmt: skip
UNLOCKED = MeasuredBy("correctness", "rag/correctness@embedded", None, None)
CHUNKS, TOP_N = (128, 256, 512), (1, 2, 3)


def asking(folder: Path, **options: Any) -> Asking:
    run = RunOptions(quiet=True, **options)
    return Asking(folder, run, Budget(run.budget_usd))


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


def settings() -> dict[str, dict[str, Setting]]:
    """Chunk size and number of contexts, one factor at a time."""
    return {
        f"ours(chunk.max={size}, top_n={top_n})": {"chunk.max": size, "top_n": top_n}
        for size, top_n in itertools.product(CHUNKS, TOP_N)
        if size == CHUNKS[0] or top_n == TOP_N[0]
    }


def questions(n: int, texts: Sequence[str] = ()) -> list[Question]:
    """So many, of four documents and three tags; every tenth has no answer."""
    kinds = (
        "when does the ferry run",
        "how does the harbour compare with the port, and why?",
        "who built it",
    )
    return [
        Question(
            f"q{place}",
            texts[place] if place < len(texts) else f"{kinds[place % 3]} ({place})",
            ("not in the documents",) if place % 10 == 9 else (f"Answer {place}.",),
            (f"doc-{place % 4}",),
            tags=(("tariff", "timetable", "history")[place % 3],),
        )
        for place in range(n)
    ]


def measured(
    asked: Sequence[Question], totals: Mapping[str, float], *, contexts: bool = True, seed: int = 0
) -> list[Measured]:
    """Answers of systems whose chance to be right is given; some refuse, and one in fifty fails."""
    rng = random.Random(seed)
    luck = {one.group: rng.random() for one in asked}
    return [
        _measured(system, one, place, chance - 0.35 * (luck[one.group] - 0.5), contexts=contexts, rng=rng)
        for system, chance in totals.items()
        for place, one in enumerate(asked)
    ]


def _measured(
    system: str, question: Question, place: int, chance: float, *, contexts: bool, rng: random.Random
) -> Measured:
    answerable = place % 10 != 9
    failed, answered = rng.random() < 0.02, rng.random() < (0.93 if answerable else 0.3)
    right = (0.8 + 0.2 * rng.random()) if rng.random() < chance else 0.3 * rng.random()
    given = SystemAnswer(
        system,
        question.group,
        None if failed else f"It is answer {place}." if answered else "I do not know.",
        contexts=tuple(Context(f"text {n}", f"doc-{n}") for n in range(2)) if contexts else None,
        error=Failure("timeout", "no reply in 30 s") if failed else None,
        latency_s=None if failed else 0.2 + 0.1 * rng.random() + len(system) / 100.0,
        first_s=None if failed else 0.05 + 0.05 * rng.random(),
        cost_usd=0.0001 * (1 + len(system) % 7),
    )
    supported = None if failed or not contexts else float(rng.random() < 0.85)
    value = None if failed else right if answerable else 0.0
    measures = {
        "correctness": value,
        "answered": None if failed else float(answered),
        "faithfulness": supported,
        "relevancy": None if failed else float(rng.random() < 0.9),
    }
    documents, said = question.reference_documents, None if failed else answered
    return Measured(
        system,
        question.group,
        documents,
        answerable,
        complexity_of(question.question) == "complex",
        given,
        said,
        value,
        measures,
        n_unscored=4 * failed,
    )


def evaluated(
    rows: Sequence[Measured],
    asked: Sequence[Question],
    factors: Mapping[str, Mapping[str, Setting]] | None = None,
    *,
    judges: Sequence[MeasuredBy] = (UNLOCKED,),
    made_by: str | None = "llm",
    contexts: bool = True,
) -> EvaluateResult:
    """The result of these answers, by the functions that `evaluate` takes."""
    systems, best, factors = summarise(rows), best_of(values_of(rows)), factors or {}
    names = [one.system for one in systems]
    bases = names[:1] if factors else []
    n_answerable = sum(one.answerable for one in asked)
    pairs = {
        name: compare_systems([one for one in rows if name in one.documents]) for name in documents_of(rows)
    }
    set_up = [
        SystemSetting(name, name.partition("(")[0], "local", factors.get(name, {}), contexts)
        for name in names
    ]
    failures = {
        name: sum(row.system == name and row.given.error is not None for row in rows) for name in names
    }
    return EvaluateResult(
        experiment="evaluate-sweep",
        states=States("1.parquet", "2.parquet", "3.parquet", "4.parquet"),
        questions=AskedQuestions(
            "starter", "ab" * 32, len(asked), n_answerable, len(asked) // 4, made_by, 75
        ),
        bases=tuple(bases),
        settings=labelled(set_up, bases, swept=bool(factors)),
        systems=systems,
        documents=summarise(rows, documents_of(rows)),
        comparisons=compare_systems(rows),
        document_comparisons={name: found for name, found in pairs.items() if found},
        not_told_apart_from_best=tuple(one.name for one in best.not_told_apart),
        best=best,
        curves=factor_curves(rows, factors, table="ours", base=bases[0]) if factors else (),
        judges=tuple(judges),
        by_tag=by_tag(rows, asked),
        failures=tuple(
            FailedAnswers(name, "timeout", n, "no reply in 30 s") for name, n in failures.items() if n
        ),
        failed_verdicts=(FailedVerdicts("faithfulness", "parse", 3, "no verdict in the reply: 'maybe'"),),
        n_unscored=sum(one.total is None for one in rows),
        usd=None,
        notes=("answers of an earlier run were taken from its journal",),
        run_line="judgecal evaluate examples/sweep.toml",
    )


@functools.cache
def swept(n: int = 83, *, lead: float = 0.0, best: str = "ours(chunk.max=256, top_n=1)") -> EvaluateResult:
    """A sweep of five settings, of which one may lead the others."""
    asked, factors = questions(n), settings()
    totals = {name: 0.7 + (lead if name == best else 0.01 * place) for place, name in enumerate(factors)}
    return evaluated(measured(asked, totals), asked, factors)


@functools.cache
def without_factors(
    n: int = 40, names: Sequence[str] = ("ours", "theirs"), *, contexts: bool = True
) -> EvaluateResult:
    """Systems that share no factor."""
    asked = questions(n)
    totals = dict.fromkeys(names, 0.7)
    found = evaluated(measured(asked, totals, contexts=contexts), asked, contexts=contexts, made_by="people")
    return dataclasses.replace(found, judges=(LOCKED,))


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
