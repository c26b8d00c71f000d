"""`answer`: every system answers the questions of a set, one judge rates; a preset of evaluate's run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from judgecal._version import __version__
from judgecal.engine import Budget
from judgecal.errors import InputError, listed, refuse
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    gold_config,
    judge_config,
    open_experiment,
    plan_experiment,
    require_keys,
    stored_notes,
    stored_rows,
)
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.goldset import GoldSet
from judgecal.goldset.wording import grouped
from judgecal.rag.answering.answerer import Answerer, Grader
from judgecal.rag.answering.contexts import (
    ANSWERS_FILE,
    ContextAnswerers,
    ContextKind,
    ContextOptions,
    corpus_notes,
    serve,
)
from judgecal.rag.answering.questions import Question, Questions, RecordedAnswers
from judgecal.rag.answering.result import (
    AnswerResult,
    AskedOf,
    NotAsked,
    SystemRows,
    comparisons,
    decomposition,
    system_entry,
)
from judgecal.rag.evaluation.judging import SystemRun, panel_of
from judgecal.rag.evaluation.summary import LEVEL, Measured
from judgecal.rag.evaluation.system import RecordedTable, System, SystemAnswer
from judgecal.workspace import Workspace, shown

_LONGEST_REPLY = 4096  # tokens, for the bound of a preview where the model states no limit
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class AnswerRun:
    """What `answer` was asked; nothing is written before it runs."""

    workspace: Workspace
    gold: GoldSet
    read: Questions  # of the set
    answerers: tuple[Answerer, ...]  # who is called
    contexts: ContextOptions
    recorded: RecordedAnswers | None
    grader: Grader
    options: RunOptions
    seed: int = 0
    out: str | None = None

    @property
    def questions(self) -> tuple[Question, ...]:
        """Those that are asked, after the limit."""
        return self.read.asked[: self.options.limit]

    @cached_property
    def called(self) -> ContextAnswerers:
        """Who is called, with the contexts."""
        return ContextAnswerers(
            self.answerers, serve(self.questions, self.gold, self.contexts, seed=self.seed)
        )

    @property
    def kinds(self) -> tuple[ContextKind, ...]:
        """Every kind of context in the result."""
        recorded: tuple[ContextKind, ...] = ("recorded",) if self.recorded else ()
        return (*self.contexts.kinds, *recorded) if self.answerers else recorded

    @property
    def context_options(self) -> dict[str, Any]:
        """The options that some context depends on."""
        kinds = self.contexts.kinds if self.answerers else ()
        return {name: value for kind in kinds for name, value in self.contexts.of(kind).items()}

    @cached_property
    def experiment(self) -> Experiment:
        """Where answers, ratings and result go; the limit is no part of it."""
        config: dict[str, Any] = {
            "command": "answer",
            "gold": gold_config(self.gold),
            "context": {"kinds": list(self.kinds), **self.context_options},
            "systems": [answerer.config() for answerer in self.answerers],
            "answers": self.recorded.config() if self.recorded else None,
            "judge": judge_config(self.grader.judge),
            "repeats": self.options.repeats,
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def _trial(self) -> SystemRun:
        systems: list[System] = [self.called] if self.answerers else []
        systems += [RecordedTable(self.recorded)] if self.recorded else []
        return SystemRun(
            self.experiment,
            self.questions,
            [(system, self.experiment.folder) for system in systems],
            panel_of(self.grader.loaded),
            self.options,
            live=False,
            guess=self._guess,
        )

    def _guess(self, far: bool) -> Iterator[SystemAnswer]:
        """As long as the reference, or as the model may write."""
        models = [answerer.model for answerer in self.answerers]
        replies = [model.max_tokens or model.reply_limit or _LONGEST_REPLY for model in models]
        longest = "x" * (max(replies, default=0) * _BYTES_PER_TOKEN)
        for name, _, kind in self.called.systems():
            for question in self.questions:
                served = self.called.served[kind][question.group]
                text = longest if far else " | ".join(question.reference_answers)
                for repeat in range(self.options.repeats if served.problem is None else 0):
                    yield SystemAnswer(name, question.group, text, served.contexts, repeat=repeat)
        for system, answers in self.recorded.rows.items() if self.recorded else ():
            for question in self.questions:
                if question.group in answers:
                    yield SystemAnswer(system, question.group, answers[question.group])

    def check(self) -> None:
        """Hold everybody against the questions before anything is written."""
        recorded = self.recorded.rows if self.recorded else {}
        twice = sorted({answerer.name for answerer in self.answerers} & set(recorded))
        if twice:
            raise InputError(
                f"{', '.join(twice)} is called, and names a system of the answers too: rename it there"
            )
        self._trial.check_prices()
        refuse(self.called.check(self.questions))
        self.grader.judge.check_items([row.item for row in self._trial.expected()])

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        return self._trial.preview()

    def run(self) -> AnswerResult:
        """Make the calls that are due, and write the result."""
        self.check()
        requests, journal = self.called.requests(self.questions), self.experiment.folder / ANSWERS_FILE
        require_keys(self.answerers, requests, stored_rows(journal), self.options)
        self._trial.require_keys()
        open_experiment(self.experiment)
        budget = Budget(self.options.budget_usd)
        _, measured, *_ = self._trial.judge(self._trial.ask(budget), budget)
        rows = grouped(measured, lambda row: row.system)
        systems = [
            SystemRows(name, answerer.name, kind, tuple(rows[name]), self.called.served[kind])
            for name, answerer, kind in self.called.systems()
        ]
        recorded = self.recorded.rows if self.recorded else ()
        systems += [SystemRows(name, name, "recorded", tuple(rows[name]), {}) for name in recorded]
        result = _result(self, systems)
        self.experiment.write_summary(result)
        return result


def _result(run: AnswerRun, systems: Sequence[SystemRows]) -> AnswerResult:
    """The object of the contract; `systems` hold every question and repeat, unscored ones included."""
    gold, sealed, served = run.gold, run.gold.test_groups, run.called.served
    entries = tuple(map(system_entry, systems))
    problems = {
        question.group: problem
        for by_group in served.values()
        for question in run.questions
        if run.answerers and (problem := by_group[question.group].problem)
    }
    judgements = [row.rating for system in systems for row in system.rows if row.rating is not None]
    return AnswerResult(
        experiment=run.experiment.slug,
        gold=AskedOf(gold.name, gold.sha256, len(run.questions)),
        judge=run.grader.judge.name,
        rated_by=run.grader.about,
        context=run.kinds,
        context_options=run.context_options,
        systems=entries,
        n_expected=sum(entry.n_expected for entry in entries),
        n_unscored=sum(entry.n_unscored for entry in entries),
        comparisons=comparisons(systems, seed=run.seed),
        not_asked=tuple(NotAsked(group, *problem, group in sealed) for group, problem in problems.items()),
        decomposition=None
        if run.context_options.get("without_reference")
        else decomposition(systems, seed=run.seed),
        warnings=tuple(_warnings(run)),
        notes=(*_notes(run), *stored_notes([*run.called.rows, *judgements])),
        run_line=_run_line(run),
        unread=_unread(run, [row for system in systems for row in system.rows]),
    )


def _unread(run: AnswerRun, measured: Sequence[Measured]) -> Unread | None:
    """Why no answer could be rated: the commonest failure of the judge, or of the systems."""
    if any(row.percentage is not None for row in measured):
        return None
    sealed, experiment, judge_name = run.gold.test_groups, run.experiment, run.grader.judge.name
    ratings = [row.rating for row in measured if row.rating is not None]
    rows = ratings or [row for row in run.called.rows if row.verdict is None]
    who = judge_name if ratings else ", ".join(dict.fromkeys(row.judge for row in rows))
    hidden = {row.given.item_id for row in measured if row.question in sealed}
    judge = unread_judge(who, rows, sealed=hidden | set(sealed))
    if judge is None:
        return None
    words = ["--gold", run.gold.name, "--contexts", ",".join(run.kinds), "--name", experiment.slug]
    for name, value in run.context_options.items():
        flag = "-k" if name == "k" else f"--{name.replace('_', '-')}"
        words += [flag] * (value is True) if isinstance(value, bool) else [flag, str(value)]
    signatures = dict.fromkeys(answerer.signature.name for answerer in run.answerers)
    models = dict.fromkeys(answerer.model.alias for answerer in run.answerers)
    words += ["--signatures", ",".join(signatures), "--models", ",".join(models), "--judge", judge_name]
    words += ["--repeats", str(run.options.repeats), "--seed", str(run.seed), "--retry-unscored"]
    if run.options.limit is not None:
        words += ["--limit", str(run.options.limit)]
    again = shlex.join(["judgecal", "answer", *words])
    if run.recorded or run.grader.about.locked_on is not None:
        again = f"judgecal report {experiment.slug} --open"
    journal = experiment.journal if ratings else experiment.folder / ANSWERS_FILE
    return Unread((judge,), 1, shown(journal), again)


def _warnings(run: AnswerRun) -> list[str]:
    warnings = run.grader.warnings(run.answerers, [each.group for each in run.questions])
    if "none" in run.kinds and any(answerer.reads_contexts for answerer in run.answerers):
        warnings.append(
            "a prompt that asks for a context gets an empty one here, and one that demands a refusal then "
            "hides what the model knows: a closed-book test is stricter with a signature whose only input "
            "is question"
        )
    return warnings


def _notes(run: AnswerRun) -> list[str]:
    notes, recorded = list(run.read.notes), run.recorded
    if run.answerers:
        notes += corpus_notes(run.questions, run.gold, run.called.served)
    if recorded and recorded.unmatched:
        named = listed([repr(name[:60]) for name in recorded.unmatched], 3)
        of = f"{len(recorded.unmatched)} of {recorded.n_rows} rows of {recorded.name}"
        notes.append(f"{of} name no question that we asked: {named}")
    return list(dict.fromkeys(notes))


def _run_line(run: AnswerRun) -> str:
    """The line that reproduces the overview: set, contexts, systems, judge, how intervals are made."""
    kinds = []
    for kind in run.contexts.kinds:
        detail = ",".join(f"{name}={value}" for name, value in run.contexts.of(kind).items())
        kinds.append(kind + (f"({detail})" if detail else ""))
    parts = [
        f"gold:{run.gold.name}@{run.gold.sha256[:12]}",
        f"context:{'+'.join(kinds)}",
        f"questions:{len(run.questions)}",
        f"repeats:{run.options.repeats}",
    ]
    if run.answerers:
        parts.append(f"systems:{','.join(answerer.described for answerer in run.answerers)}")
    if run.recorded:
        parts.append(f"recorded:{run.recorded.name}@{run.recorded.sha256[:12]}")
    parts += [f"judge:{full_name(run.grader.judge)}", f"level:{LEVEL:g}", "by:group", f"seed:{run.seed}"]
    return "|".join([*parts, f"version:{__version__}"])
