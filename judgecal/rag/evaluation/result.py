"""What `evaluate` and `answer` come to: the systems, what sets them apart; the four states as files.

A state is a Parquet and a CSV file, each written whole when it is reached. Texts of test questions, and what
was answered to them, stand in none of them: these rows are `sealed` and counted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.rag.evaluation.comparisons import BestOf, FactorCurve, SystemComparison
from judgecal.rag.evaluation.summary import Measured, SystemSummary, mean_of
from judgecal.rag.evaluation.system import Setting, SystemAnswer
from judgecal.rag.questions import Question
from judgecal.records import Estimate, Result, as_plain
from judgecal.tables import write_table


@dataclass(frozen=True, slots=True)
class States:
    """The Parquet files of the four states, in the experiment's folder; each has a CSV file beside it."""

    questions: str
    answers: str
    measured: str
    summary: str


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """What was asked: a gold set or a file."""

    source: str
    sha256: str
    n: int
    n_answerable: int  # those that have an answer
    n_sealed: int  # those of test, whose text is shown nowhere
    made_by: str | None  # people, llm or project, as the set's card says


@dataclass(frozen=True, slots=True)
class SystemSetting:
    """How a system was set up."""

    system: str
    table: str  # its name in the configuration, which all systems of a sweep share
    kind: str  # local, http, python or answers
    settings: Mapping[str, Setting]  # its factors with their values
    shows_contexts: bool  # where not, what rests on contexts is not measured
    contexts: str = ""  # of a local system whose contexts are chosen by a rule: which kind


@dataclass(frozen=True, slots=True)
class MeasuredBy:
    """Who fills a column."""

    column: str
    judge: str
    lock: str | None  # the path of its lock; without one nobody knows whether it agrees with people
    agreement: Estimate | None  # with people, as the lock confirmed it


@dataclass(frozen=True, slots=True)
class Failures:
    """What a system did not answer, or a column has no verdict on in some repeat at least, by a kind."""

    name: str  # of the system, or of the column
    kind: str
    n: int
    message: str | None  # what the first said; None if all are of test


@dataclass(frozen=True, slots=True)
class EvaluateResult(Result):
    """What `evaluate`, or `answer`, came to."""

    experiment: str
    states: States
    questions: AskedQuestions
    bases: tuple[str, ...]  # of a sweep, the systems that others differ from in one factor
    settings: tuple[SystemSetting, ...]
    systems: tuple[SystemSummary, ...]  # each over all questions, in the order of the configuration
    documents: tuple[SystemSummary, ...]  # each over the questions of each document
    comparisons: tuple[SystemComparison, ...]  # by `total`, paired by question, after Holm
    # The same within each document that has ten questions or more, after Holm over all.
    document_comparisons: tuple[SystemComparison, ...]
    # The highest first; of one only where it is shown to be the best.
    not_told_apart_from_best: tuple[str, ...]
    best: BestOf  # the same with what lies behind it
    curves: tuple[FactorCurve, ...]
    judges: tuple[MeasuredBy, ...]
    failures: tuple[Failures, ...]  # of answers, the most frequent first
    failed_verdicts: tuple[Failures, ...]  # the most frequent first
    n_unscored: int
    usd: float | None  # what the calls of this run cost; None where a price is not known
    notes: tuple[str, ...]
    run_line: str
    again: str = ""  # the command that asks anew for what has no verdict


# --- the four states as files

NAMES = ("1_questions", "2_answers", "3_measured", "4_summary")
"""The files, without `.parquet` and `.csv`; each is there once its state is reached."""

QUESTION_COLUMNS: Mapping[str, type] = {
    "question_id": str, "question": str, "reference_answer": str, "documents": str, "tags": str,
    "answerable": bool, "sealed": bool,
}  # fmt: skip
"""Column -> type, of state 1; what holds several is a JSON list."""
ANSWER_COLUMNS: Mapping[str, type] = {
    "system": str, **QUESTION_COLUMNS, "answer": str, "contexts": str, "latency_s": float, "first_s": float,
    "prompt_tokens": int, "completion_tokens": int, "cost_usd": float, "error": str,
}  # fmt: skip
"""Of state 2: a row a system and question."""
VERDICT_COLUMNS: Mapping[str, type] = {
    "answered": bool, "correctness": float, "total": float, "n_unscored": int,
}  # fmt: skip
"""Of state 3, behind those of state 2; `correctness` is -1 where it did not answer. Then `<column>_share`,
0..1, `<column>_raw`, the same before a lock's map, and `<column>_error` for each column of the suite."""
SUMMARY_COLUMNS: Mapping[str, type] = {
    "system": str, "document": str, "n": int, "n_expected": int, "n_unscored": int, "answered": float,
    "answer_correctness": float, "total": float, "latency_s": float, "latency_p95_s": float,
    "usd_per_1k": float,
}  # fmt: skip
"""Of state 4: a row a system and document (empty: over all questions); then each column of the suite."""

_Row = dict[str, Any]


class StateFiles:
    """The files of one experiment; `sealed` are the groups of test."""

    def __init__(self, folder: Path, questions: Sequence[Question], sealed: Collection[str]) -> None:
        self._folder, self._questions, self._sealed = folder, questions, sealed
        self._question_rows = {question.group: self._question(question) for question in questions}

    @property
    def paths(self) -> States:
        """The Parquet files."""
        return States(*(str(self._folder / f"{name}.parquet") for name in NAMES))

    def write_questions(self) -> None:
        """Write state 1, the questions."""
        self._write(0, self._question_rows.values(), QUESTION_COLUMNS)

    def write_answers(self, answers: Iterable[SystemAnswer]) -> None:
        """Write state 2, the systems' answers."""
        self._write(1, map(self._answer, answers), ANSWER_COLUMNS)

    def write_measured(self, measured: Iterable[Measured], columns: Sequence[str]) -> None:
        """Write state 3, Measured answers, as a file; given too: the names of the judges' columns."""
        kinds = {"share": float, "raw": float, "error": str}
        of_suite = {f"{column}_{part}": kind for column in columns for part, kind in kinds.items()}
        rows = []
        for answer in measured:
            correctness = (
                -1.0 if answer.answered is False else answer.correctness if answer.answered else None
            )
            row = self._answer(answer.given) | {"answerable": answer.answerable}
            row |= _row(VERDICT_COLUMNS, answer, correctness=correctness)
            for column in columns:
                row[f"{column}_share"] = answer.measures.get(column)
                if column in answer.verdicts:
                    error = answer.verdicts[column].error
                    if error is not None and answer.question in self._sealed:
                        error = error.partition(":")[0]
                    row[f"{column}_raw"] = mean_of(answer.verdicts[column].raw_shares)
                    row[f"{column}_error"] = error
            rows.append(row)
        self._write(2, rows, {**ANSWER_COLUMNS, **VERDICT_COLUMNS, **of_suite})

    def write_summary(self, summaries: Iterable[SystemSummary], columns: Sequence[str]) -> None:
        """Write state 4, a row a SystemSummary, as a file; given too: the names of the judges' columns."""
        rows = [
            _row(
                SUMMARY_COLUMNS,
                summary,
                answered=summary.answered.value,
                answer_correctness=summary.answer_correctness.value,
                total=summary.total.value,
                latency_s=summary.latency_s.mean,
                latency_p95_s=summary.latency_s.p95,
            )
            | {column: estimate.value for column, estimate in summary.measures.items()}
            for summary in summaries
        ]
        self._write(3, rows, {**SUMMARY_COLUMNS, **dict.fromkeys(columns, float)})

    def _question(self, question: Question) -> _Row:
        sealed = question.group in self._sealed
        return _row(
            QUESTION_COLUMNS,
            question,
            question_id=question.group,
            question=None if sealed else question.question,
            reference_answer=None if sealed else " | ".join(question.reference_answers),
            documents=_json(question.reference_documents),
            tags=_json(question.tags),
            sealed=sealed,
        )

    def _answer(self, given: SystemAnswer) -> _Row:
        sealed, contexts, error = given.question in self._sealed, given.contexts, given.error
        return _row(
            ANSWER_COLUMNS,
            given,
            **self._question_rows[given.question],
            answer=None if sealed else given.answer,
            contexts=None if sealed or contexts is None else _json(as_plain(contexts)),
            error=error and (error.kind if sealed else f"{error.kind}: {error.message}"),
        )

    def _write(self, state: int, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, type]) -> None:
        """Both files of a state; where it is another than before, those of later states go."""
        import polars

        types = {str: polars.String, float: polars.Float64, int: polars.Int64, bool: polars.Boolean}
        schema = {name: types[kind] for name, kind in columns.items()}
        frame = polars.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
        path = self._folder / f"{NAMES[state]}.csv"
        before = path.read_bytes() if path.exists() else b""
        write_table(path.with_suffix(".parquet"), frame)
        write_table(path, frame)
        if path.read_bytes() != before:
            for name in NAMES[state + 1 :]:
                (self._folder / f"{name}.csv").unlink(missing_ok=True)
                (self._folder / f"{name}.parquet").unlink(missing_ok=True)


def _row(columns: Iterable[str], source: object, **values: Any) -> _Row:
    """A value for each column: the one that is given, else the source's attribute of this name."""
    return {name: values[name] if name in values else getattr(source, name) for name in columns}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
