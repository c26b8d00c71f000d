"""The four states of an evaluation as files: Parquet and CSV, each written whole when it is reached.

Texts of test questions, and what was answered to them, stand in none of them: these rows are `sealed` and
counted.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.measured import Measured, mean_of
from judgecal.rag.evaluation.question_parts import complexity_of
from judgecal.rag.evaluation.result import States
from judgecal.rag.evaluation.summary import SystemSummary
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.records import Estimate, as_plain
from judgecal.tables.formats import write_frame

if TYPE_CHECKING:
    import polars as pl

NAMES = ("1_questions", "2_answers", "3_measured", "4_summary")
"""The files, without `.parquet` and `.csv`; each is there once its state is reached."""

QUESTION_COLUMNS: Mapping[str, tuple[type, str]] = {
    "question_id": (str, "the group of the question"),
    "question": (str, "its wording; empty where it is sealed"),
    "reference_answer": (str, "a vertical bar stands between equally right ones; empty where it is sealed"),
    "documents": (str, "its reference documents, a JSON list of ids"),
    "tags": (str, "a JSON list"),
    "answerable": (bool, "whether the reference gives an answer"),
    "complexity": (str, "simple, medium or complex, by the rule of judgecal.rag.evaluation.question_parts"),
    "query_words": (int, "words of the question"),
    "sealed": (bool, "whether it is one of test, whose texts are shown nowhere"),
}
"""Column -> its type and meaning, of state 1."""
ANSWER_COLUMNS: Mapping[str, tuple[type, str]] = {
    "system": (str, "its name"),
    **QUESTION_COLUMNS,
    "answer": (str, "what it gave; empty where there is none or the question is sealed"),
    "contexts": (str, "a JSON list of {text, document_id, score}, best first; empty where it shows none"),
    "n_contexts": (int, "how many; empty where it shows none"),
    "latency_s": (float, "seconds from the request to the whole answer"),
    "first_s": (float, "seconds to the first token or byte"),
    "prompt_tokens": (int, "as the model told them"),
    "completion_tokens": (int, "as the model told them"),
    "cost_usd": (float, "over all attempts; empty where it is not known"),
    "error": (str, "kind: message, where there is no answer; the kind alone where the question is sealed"),
}
"""Column -> its type and meaning, of state 2: a row a system and question."""
VERDICT_COLUMNS: Mapping[str, tuple[type, str]] = {
    "answered": (bool, "whether it answered at all; empty where that is unscored"),
    "correctness": (
        float,
        "0..1, the mean over repeats; -1 where it did not answer, empty where it is unscored",
    ),
    "total": (float, "correctness where it answered, 0 where it refused; empty where either is unscored"),
    "n_unscored": (int, "judgements that were asked for and gave no verdict"),
}
"""Column -> its type and meaning, of state 3, behind those of state 2; then `<column>_share`, 0..1,
`<column>_raw`, the same before a lock's map to the people's scale, and `<column>_error` for each column of
the suite."""
SUMMARY_COLUMNS: Mapping[str, tuple[type, str]] = {
    "system": (str, "its name"),
    "document": (str, "over the questions that name it; empty over all questions"),
    "n": (int, "questions with a total"),
    "n_expected": (int, "questions that were asked"),
    "n_unscored": (int, "questions without a total"),
    "answered": (float, "share of those where that is known"),
    "answer_correctness": (float, "the mean over the answered"),
    "total": (float, "the mean, a question without one as 0"),
    "query_words": (float, "mean words of the questions"),
    "latency_s": (float, "mean seconds of the answers"),
    "latency_p95_s": (float, "the 95th percentile"),
    "usd_per_1k": (float, "cost of a thousand answers; empty where that of any is not known"),
}
"""Column -> its type and meaning, of state 4: a row a system and document; then each column of the suite."""


@dataclass(frozen=True)
class StateFiles:
    """The files of one experiment.

    Attributes:
        folder: the experiment's.
        questions: what was asked, in order.
        sealed: groups of test.
    """

    folder: Path
    questions: Sequence[Question]
    sealed: Collection[str]

    @property
    def paths(self) -> States:
        """The Parquet files."""
        return States(*(str(self.folder / f"{name}.parquet") for name in NAMES))

    def write_questions(self) -> None:
        """State 1."""
        rows = [self._question(one) for one in self.questions]
        self._write(0, rows, {name: kind for name, (kind, _) in QUESTION_COLUMNS.items()})

    def write_answers(self, answers: Sequence[SystemAnswer]) -> None:
        """State 2."""
        self._write(1, [self._answer(one) for one in answers], _kinds(ANSWER_COLUMNS))

    def write_measured(self, measured: Sequence[Measured], columns: Sequence[str]) -> None:
        """State 3; `columns` are those of the suite."""
        kinds = _kinds(ANSWER_COLUMNS) | _kinds(VERDICT_COLUMNS)
        for name in columns:
            kinds |= {f"{name}_share": float, f"{name}_raw": float, f"{name}_error": str}
        rows = []
        for one in measured:
            row = self._answer(one.given) | {
                "answered": one.answered,
                "correctness": -1.0 if one.answered is False else one.correctness if one.answered else None,
                "total": one.total,
                "n_unscored": one.n_unscored,
            }
            for name in columns:
                row[f"{name}_share"] = one.measures.get(name)
                if name in one.verdicts:
                    error = one.verdicts[name].error
                    hidden = error is not None and one.question in self.sealed
                    row[f"{name}_raw"] = mean_of(one.verdicts[name].raw_shares)
                    row[f"{name}_error"] = error.partition(":")[0] if error and hidden else error
            rows.append(row)
        self._write(2, rows, kinds)

    def write_summary(self, summaries: Sequence[SystemSummary], columns: Sequence[str]) -> None:
        """State 4; `summaries` over all questions, and by document."""
        kinds = _kinds(SUMMARY_COLUMNS) | dict.fromkeys(columns, float)
        self._write(3, [self._summary(one, columns) for one in summaries], kinds)

    def _question(self, one: Question) -> dict[str, Any]:
        sealed = one.group in self.sealed
        return {
            "question_id": one.group,
            "question": None if sealed else one.question,
            "reference_answer": None if sealed else " | ".join(one.reference_answers),
            "documents": _json(one.reference_documents),
            "tags": _json(one.tags),
            "answerable": one.answerable,
            "complexity": complexity_of(one.question),
            "query_words": len(one.question.split()),
            "sealed": sealed,
        }

    def _answer(self, given: SystemAnswer) -> dict[str, Any]:
        question = self._by_group[given.question]
        sealed, contexts, error = given.question in self.sealed, given.contexts, given.error
        return {
            "system": given.system,
            **self._question(question),
            "answer": None if sealed else given.answer,
            "contexts": None if sealed or contexts is None else _json([as_plain(one) for one in contexts]),
            "n_contexts": None if contexts is None else len(contexts),
            "latency_s": given.latency_s,
            "first_s": given.first_s,
            "prompt_tokens": given.prompt_tokens,
            "completion_tokens": given.completion_tokens,
            "cost_usd": given.cost_usd,
            "error": None if error is None else error.kind if sealed else f"{error.kind}: {error.message}",
        }

    def _summary(self, one: SystemSummary, columns: Sequence[str]) -> dict[str, Any]:
        return {
            "system": one.system,
            "document": one.document,
            "n": one.n,
            "n_expected": one.n_expected,
            "n_unscored": one.n_unscored,
            "answered": one.answered.value,
            "answer_correctness": one.answer_correctness.value,
            "total": one.total.value,
            "query_words": self._words[one.document],
            "latency_s": one.latency_s.mean,
            "latency_p95_s": one.latency_s.p95,
            "usd_per_1k": one.usd_per_1k,
            **{name: one.measures.get(name, Estimate(None)).value for name in columns},
        }

    @cached_property
    def _words(self) -> Mapping[str | None, float]:
        """Document -> mean words of the questions that name it; None -> of all questions."""
        found: dict[str | None, list[int]] = {None: []}
        for one in self.questions:
            for name in (None, *one.reference_documents):
                found.setdefault(name, []).append(len(one.question.split()))
        return {name: statistics.fmean(counts) for name, counts in found.items()}

    @cached_property
    def _by_group(self) -> Mapping[str, Question]:
        return {one.group: one for one in self.questions}

    def _write(self, place: int, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type]) -> None:
        """Both files of a state; where it is another than before, those of later states go."""
        frame = _frame(rows, kinds)
        path = self.folder / f"{NAMES[place]}.csv"
        before = path.read_bytes() if path.exists() else b""
        write_frame(path.with_suffix(".parquet"), frame)
        write_frame(path, frame)
        if path.read_bytes() != before:
            for name in NAMES[place + 1 :]:
                (self.folder / f"{name}.csv").unlink(missing_ok=True)
                (self.folder / f"{name}.parquet").unlink(missing_ok=True)


def _kinds(columns: Mapping[str, tuple[type, str]]) -> dict[str, type]:
    return {name: kind for name, (kind, _) in columns.items()}


def _frame(rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type]) -> pl.DataFrame:
    import polars

    types = {str: polars.String, float: polars.Float64, int: polars.Int64, bool: polars.Boolean}
    schema = {name: types[kind] for name, kind in kinds.items()}
    return polars.DataFrame([{name: row.get(name) for name in kinds} for row in rows], schema=schema)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
