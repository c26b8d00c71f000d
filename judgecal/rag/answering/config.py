"""The configuration of `evaluate` that `answer` makes in memory, of its options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgecal.artefacts import validated
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.goldset import Columns
from judgecal.rag.answering.contexts import KINDS
from judgecal.rag.evaluation.config import EvaluateConfig, PanelTable, QuestionsTable, ReadConfig, SystemTable
from judgecal.rag.evaluation.local import LocalConfig
from judgecal.rag.evaluation.recorded import RecordedConfig
from judgecal.tables import read_table

_JUDGE = "correctness_v3@embedded"


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What `answer` is given; `command` is its words, which run it again."""

    command: tuple[str, ...]
    gold: str
    signatures: Sequence[str]
    models: Sequence[str]
    contexts: Sequence[str]
    k: int
    judge: str | None = None
    lock: Path | None = None
    trust_lock: bool = False
    repeats: int = 1
    answers: Path | None = None
    columns: Columns | None = None  # of the answers


def answer_config(options: AnswerOptions) -> ReadConfig:
    """Every question of a set, each answerer with each kind of contexts, and one judge of correctness."""
    problems = [str(unknown_name("context", kind, KINDS)) for kind in options.contexts if kind not in KINDS]
    if options.lock is not None and options.judge is not None:
        problems.append(
            f"--lock {options.lock} and --judge {options.judge} both name who rates: give one of them"
        )
    if not (options.signatures and options.models) and options.answers is None:
        problems.append("no answerer is named: give --models A,B and --signatures S,T, or --answers FILE")
    if not options.contexts:
        problems.append("--contexts is empty: give controlled, topk, none, own, or several by commas")
    refuse(problems)
    systems = (*_answerers(options), *_recorded(options))
    names = [system.name for system in systems]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{', '.join(twice)} is named twice: rename it in the answers, or name it once")
    judges = PanelTable(
        trust_lock=options.trust_lock,
        judge=options.judge or _JUDGE,
        repeats=options.repeats,
        locks={} if options.lock is None else {"correctness": str(options.lock)},
    )
    questions = QuestionsTable(gold=options.gold, split="all")
    tables = EvaluateConfig(questions=questions, judges=judges, systems=[])
    return ReadConfig(("answer", *options.command), Path(), tables, systems)


def _answerers(options: AnswerOptions) -> Iterator[SystemTable]:
    """Each signature x model pair x kind of contexts."""
    kinds = list(dict.fromkeys(options.contexts))
    for name, signature, model in [
        (f"{signature}@{model}", signature, model)
        for signature in options.signatures
        for model in options.models
    ]:
        for kind in kinds:
            contexts = {"kind": kind, "k": options.k}
            table = validated(
                LocalConfig,
                {"contexts": contexts, "answerer": {"signature": signature, "model": model}},
                "answer",
            )
            full = f"{name} ({kind})" if len(kinds) > 1 else name
            yield SystemTable(full, name, "local", table, {}, is_base=False)


def _recorded(options: AnswerOptions) -> Iterator[SystemTable]:
    """Each system of a file of answers."""
    if options.answers is None:
        return
    table = read_table(options.answers)
    columns = (options.columns or Columns(None, None)).resolved(table.columns, only=())
    column = columns.system or ("system" if "system" in table.columns else None)
    table.require(*([column] if column else []))
    rows = {row.cells[column].strip() or None if column else None for row in table.rows}
    for system in sorted(rows, key=str):
        recorded = RecordedConfig(
            answers=str(options.answers),
            system=system,
            question_column=columns.question,
            answer_column=columns.answer or "answer",
            system_column=column,
        )
        name = system or options.answers.stem
        yield SystemTable(name, name, "answers", recorded, {}, is_base=False)
