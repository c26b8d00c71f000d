"""The judges of the answers of systems: suites, locks and local judges, and the columns that they fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgecal.engine import Journal
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.experiment import Due, ReadRow, RunOptions, item_scale, judge_config, judgement_of
from judgecal.goldset import read_items
from judgecal.judges import Respondent, lacking_inputs
from judgecal.judges.suite import Suite, SuiteJudge, load_suite
from judgecal.production.suite import LeftOut, LoadedJudge, SuiteColumn, load_columns, survey
from judgecal.rag.evaluation.config import PanelTable
from judgecal.rag.evaluation.result import MeasuredBy
from judgecal.rag.evaluation.summary import CORRECTNESS, AnswerVerdicts
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.rag.questions import Question
from judgecal.records import ITEM_UNIT, PAIR_UNIT, Item
from judgecal.scale import Label, Scale
from judgecal.workspace import Workspace, shown

_FROM_CONTEXTS = ("context", "contexts", "chunk")
"""What an answer may bring, so that no question lacks it."""
ITEMS_FILE = "items.jsonl"
"""The answers as items, in the format of a gold set: what `gold sheet` draws from."""


@dataclass(frozen=True)
class Panel:
    """Who judges the answers."""

    suite: str
    columns: tuple[SuiteColumn, ...]  # `correctness` among them
    repeats: int  # of judges that call a model

    @property
    def members(self) -> tuple[LoadedJudge, ...]:
        """Every judge."""
        return tuple(judge for column in self.columns for judge in column.judges)

    @property
    def correctness_by(self) -> LoadedJudge:
        """The first judge of correctness."""
        return next(column for column in self.columns if column.name == CORRECTNESS).judges[0]

    @property
    def right_at(self) -> float | None:
        """The people's pass mark of a locked judge of correctness as a share, 0..1; None without one."""
        judge = self.correctness_by
        if judge.lock is None or judge.rule.mark is None:
            return None
        return _share(judge.rule.mark, judge.rule.common)

    def config(self) -> list[dict[str, Any]]:
        """What a configuration says of the judges; more repeats extend a run."""
        return [
            {"column": column.name, **judge_config(judge.judge)}
            for column in self.columns
            for judge in column.judges
        ]

    def measured_by(self) -> tuple[MeasuredBy, ...]:
        """Who fills which column."""
        return tuple(
            MeasuredBy(
                column.name,
                judge.judge.name,
                judge.lock_path,
                None if lock is None else lock.calibrated.get(lock.metric) or lock.agreement.get(lock.metric),
            )
            for column in self.columns
            for judge in column.judges
            for lock in [judge.lock]
        )

    def lacking(self, questions: Sequence[Question]) -> list[str]:
        """Questions whose answers the judge of correctness could not judge, as problems."""
        judge, groups_by_lack = self.correctness_by.judge, dict[str, list[str]]()
        for question in [question for question in questions if question.answerable]:
            probe = ReadRow(SystemAnswer("any", question.group, "An answer.").item(question))
            absent = [name for name in lacking_inputs(judge.inputs, probe.item) if name not in _FROM_CONTEXTS]
            if absent:
                groups_by_lack.setdefault(", ".join(absent), []).append(question.group)
        return [
            f"{judge.name} judges correctness by {names}, and {len(groups)} of {len(questions)} questions "
            "have none: give each of them one, or leave them out"
            for names, groups in groups_by_lack.items()
        ]

    def trained_notes(self, questions: Sequence[Question]) -> list[str]:
        """Of each judge that was trained on some of these questions, that it may be too good on them."""
        n_seen = {
            judge.judge.name: sum(question.group in judge.judge.trained_on for question in questions)
            for judge in self.members
        }
        return [
            f"{name} was trained on {n} of the {len(questions)} questions: there it may judge better "
            "than elsewhere"
            for name, n in n_seen.items()
            if n
        ]

    def _repeats_of(self, judge: Respondent) -> int:
        """How often it judges an answer: one that calls nobody says the same again."""
        return 1 if judge.model is None or judge.model.embedded else self.repeats

    def due(self, rows: Sequence[ReadRow], journal: Journal, options: RunOptions) -> list[Due]:
        """What the judges of these columns are asked, each as often as it says anything new."""
        return [
            Due(
                trial.judge,
                trial.items,
                journal,
                replace(options, repeats=self._repeats_of(trial.judge), limit=None),
            )
            for column in self.columns
            for trial in column.trials(rows, journal, options)
        ]

    def running(self, rows: Sequence[ReadRow]) -> tuple[Panel, Sequence[LeftOut]]:
        """The judges and columns that some of these answers have anything for, and who is left out."""
        columns, left_out = survey(self.columns, rows) if rows else ((), ())
        return replace(self, columns=tuple(columns)), left_out

    def verdicts(self, row: ReadRow, journal: Journal) -> dict[str, AnswerVerdicts]:
        """What the journal holds of an answer, by column; without those that it has nothing for."""
        judges = {column.name: column.judge_of(row) for column in self.columns}
        return {
            name: self._verdicts(journal, judge, row.shown(judge.judge))
            for name, (judge, lacking) in judges.items()
            if lacking is None
        }

    def _verdicts(self, journal: Journal, judge: LoadedJudge, item: Item) -> AnswerVerdicts:
        repeats = range(self._repeats_of(judge.judge))
        rows = tuple(judgement_of(journal, judge.judge, item, repeat=repeat) for repeat in repeats)
        failed = next((row for row in rows if row.verdict is None), None)
        error = None
        if failed is not None:
            error = f"{failed.error.kind}: {failed.error.message}" if failed.error else "parse: no verdict"
        shares = raw = tuple(_share(row.verdict, item_scale(judge.judge)) for row in rows)
        if judge.lock is not None and (to_people := judge.lock.calibration) is not None:
            shares = tuple(_share(to_people.apply(row.verdict), judge.rule.people) for row in rows)
        return AnswerVerdicts(shares, raw, error, rows)


def _share(label: Label | None, scale: Scale) -> float | None:
    """A label's place on its scale, 0..1; None of none."""
    return None if label is None else (float(label) - scale.low) / scale.span


def read_panel(table: PanelTable, folder: Path, workspace: Workspace) -> Panel:
    """The judges of a configuration; paths of locks and of a suite are taken from its `folder`."""
    if table.judge is None:
        suite = load_suite(
            str(folder / table.suite) if table.suite.endswith(".toml") else table.suite, workspace=workspace
        )
    else:
        suite = Suite(table.judge, (SuiteJudge(CORRECTNESS, judge=table.judge, column=CORRECTNESS),))
    names = [judge.name for judge in suite.judges]
    unknown = [unknown_name("column to lock in the suite", name, names) for name in table.locks]
    refuse(
        [f"judges: {error}" for name, error in zip(table.locks, unknown, strict=True) if name not in names]
    )
    judges = [
        replace(judge, judge=None, lock=folder / table.locks[judge.name])
        if judge.name in table.locks
        else judge
        for judge in suite.judges
    ]
    judges += [SuiteJudge(name, judge=name, column=name) for name in table.local if name not in names]
    columns = load_columns(
        Suite(suite.name, tuple(judges)), workspace, model=table.model, trust_lock=table.trust_lock
    )
    panel, names = Panel(suite.name, columns, table.repeats), [column.name for column in columns]
    problems = []
    for judge in panel.members:
        if judge.judge.unit == PAIR_UNIT:
            problems.append(f"{judge.judge.name} judges pairs of answers, and there is one answer")
        elif not judge.judge.scale.numeric:
            problems.append(f"{judge.judge.name} gives words, which have no mean")
    if CORRECTNESS not in names:
        problems.append(
            f"suite {suite.name} has no judge called {CORRECTNESS}, which says how right an answer is: "
            f"its judges are {', '.join(names)}: rename one in the suite's file"
        )
    elif panel.correctness_by.judge.unit != ITEM_UNIT:
        problems.append(f"{panel.correctness_by.judge.name}: correctness is of whole answers")
    problems += [
        f"pooled: {measure}: there is no column {column}: its columns are {', '.join(names)}"
        for measure, some in table.pooled.items()
        for column in some
        if column not in names
    ]
    refuse([f"judges: {problem}" for problem in problems])
    return panel


def answered_items(folder: Path) -> tuple[Item, ...]:
    """The items of an experiment: question, reference, answer, system and the documents handed over."""
    path = folder / ITEMS_FILE
    if not path.is_file():
        raise InputError(
            f"{shown(folder)}: holds no answers ({ITEMS_FILE}): give an experiment of `judgecal answer` or "
            "`evaluate`; the same command finishes an interrupted run"
        )
    return read_items(path)
