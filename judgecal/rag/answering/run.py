"""`answer`: every system answers the questions of a set, one judge rates; a preset of evaluate's run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from judgecal._version import __version__
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    gold_config,
    judge_config,
    open_experiment,
    plan_experiment,
    stored_notes,
)
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.goldset import GoldSet
from judgecal.rag.answering.answerer import Answerer, Grader
from judgecal.rag.answering.contexts import (
    ContextAnswerers,
    ContextKind,
    ContextOptions,
    Served,
    corpus_notes,
    serve,
    system_name,
)
from judgecal.rag.answering.questions import Question, Questions, RecordedAnswers
from judgecal.rag.answering.result import (
    AnswerResult,
    AskedOf,
    Dropped,
    NotAsked,
    SystemRows,
    comparisons,
    contaminated,
    decomposition,
    most_different,
    one_question,
    right_from,
    system_entry,
)
from judgecal.rag.evaluation.judging import panel_of
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.recorded import RecordedTable
from judgecal.rag.evaluation.summary import LEVEL
from judgecal.rag.evaluation.system import System, SystemAnswer
from judgecal.rag.evaluation.system_run import SystemRun
from judgecal.records import as_plain
from judgecal.workspace import Workspace, shown

_LONGEST_REPLY = 4096  # tokens, for the bound of a preview where the model states no limit
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class AnswerRun:
    """What `answer` was asked; nothing is written before it runs."""

    workspace: Workspace
    gold: GoldSet
    found: Questions  # of the set, without those that were dropped
    answerers: tuple[Answerer, ...]  # who is called
    contexts: tuple[ContextOptions, ...]
    recorded: RecordedAnswers | None
    grader: Grader
    options: RunOptions
    seed: int = 0
    right_at: float | None = None  # the percentage from which an answer is right; the set's own where None
    dropped: Dropped | None = None
    out: str | None = None

    @property
    def questions(self) -> tuple[Question, ...]:
        """Those that are asked, after the limit."""
        return self.found.asked[: self.options.limit]

    @cached_property
    def served(self) -> dict[ContextKind, dict[str, Served]]:
        """What each question comes with, by kind of context and group."""
        return {one.kind: serve(self.questions, self.gold, one) for one in self.contexts}

    @cached_property
    def called(self) -> ContextAnswerers:
        """Who is called, with the contexts."""
        return ContextAnswerers(self.answerers, self.served)

    @property
    def kinds(self) -> tuple[ContextKind, ...]:
        """Every kind of context in the result."""
        recorded: tuple[ContextKind, ...] = ("recorded",) if self.recorded else ()
        return (*(one.kind for one in self.contexts), *recorded) if self.answerers else recorded

    @property
    def context_options(self) -> dict[str, Any]:
        """The options that some context depends on."""
        return {
            name: value
            for one in self.contexts
            for name, value in one.config().items()
            if self.answerers and name != "kind"
        }

    @cached_property
    def experiment(self) -> Experiment:
        """Where answers, ratings and result go; the limit is no part of it."""
        config: dict[str, Any] = {
            "command": "answer",
            "gold": gold_config(self.gold),
            "context": {"kinds": list(self.kinds), **self.context_options},
            "systems": [one.config() for one in self.answerers],
            "answers": self.recorded.config() if self.recorded else None,
            "judge": judge_config(self.grader.judge),
            "drop_contaminated": as_plain(self.dropped) if self.dropped else None,
            "repeats": self.options.repeats,
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def _trial(self) -> SystemRun:
        folder = self.experiment.folder
        systems: list[System] = [self.called] if self.answerers else []
        systems += [RecordedTable(self.recorded)] if self.recorded else []
        return SystemRun(
            self.experiment,
            self.questions,
            [(one, folder) for one in systems],
            panel_of(self.grader.judge),
            self.options,
            live=False,
            guess=self._guess,
        )

    def _guess(self, far: bool) -> Iterator[SystemAnswer]:
        """As long as the reference, or as the model may write."""
        replies = [one.model.max_tokens or one.model.reply_limit or _LONGEST_REPLY for one in self.answerers]
        longest = "x" * (max(replies, default=0) * _BYTES_PER_TOKEN)
        for answerer in self.answerers:
            for kind, served in self.served.items():
                name = system_name(answerer.name, kind, self.served)
                for question in self.questions:
                    here = served[question.group]
                    text = longest if far else " | ".join(question.reference_answers)
                    for repeat in range(self.options.repeats if here.problem is None else 0):
                        yield SystemAnswer(name, question.group, text, here.contexts, repeat=repeat)
        for system, answers in self.recorded.rows.items() if self.recorded else ():
            for question in self.questions:
                if question.group in answers:
                    yield SystemAnswer(system, question.group, answers[question.group])

    def check(self) -> None:
        """Hold everybody against the questions before anything is written."""
        recorded = self.recorded.rows if self.recorded else {}
        twice = sorted({one.name for one in self.answerers} & set(recorded))
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

    def run(self, *, question: str | None = None) -> AnswerResult:
        """Make the calls that are due; `question` is a group to show across all systems."""
        self.check()
        groups = {one.group: one for one in self.questions}
        if question in self.gold.test_groups:
            raise InputError(f"--show {question}: it is one of test, which are counted and never shown")
        if question is not None and question not in groups:
            raise unknown_name(
                "question", question, [name for name in groups if name not in self.gold.test_groups]
            )
        self.called.require_keys(self.questions, self.experiment.folder, self.options)
        self._trial.require_keys()
        open_experiment(self.experiment)
        budget = self.options.open_budget(self.experiment.folder)
        _, measured, _ = self._trial.judge(self._trial.ask(budget), budget)
        result = _result(self, self._by_system(measured), None if question is None else groups[question])
        self.experiment.write_summary(result)
        return result

    def _by_system(self, measured: Sequence[Measured]) -> list[SystemRows]:
        rows: dict[str, list[Measured]] = {}
        for one in measured:
            rows.setdefault(one.system, []).append(one)
        systems = [
            SystemRows(name, answerer.name, kind, tuple(rows[name]), served)
            for answerer in self.answerers
            for kind, served in self.served.items()
            for name in [system_name(answerer.name, kind, self.served)]
        ]
        recorded = self.recorded.rows if self.recorded else ()
        return systems + [SystemRows(name, name, "recorded", tuple(rows[name]), {}) for name in recorded]


def _result(run: AnswerRun, systems: Sequence[SystemRows], question: Question | None) -> AnswerResult:
    """The object of the contract; `systems` hold every question and repeat, unscored ones included."""
    gold, sealed = run.gold, run.gold.test_groups
    entries = tuple(map(system_entry, systems))
    mark = right_from(gold.scale) if run.right_at is None else run.right_at
    first = run.served[run.contexts[0].kind]
    problems = {
        one.group: problem
        for served in run.served.values()
        for one in run.questions
        if run.answerers and (problem := served[one.group].problem)
    }
    judgements = [row.rating for one in systems for row in one.rows if row.rating is not None]
    return AnswerResult(
        experiment=run.experiment.slug,
        gold=AskedOf(gold.name, gold.sha256, len(run.questions)),
        judge=run.grader.judge.name,
        rated_by=run.grader.about,
        context=run.kinds,
        context_options=run.context_options,
        systems=entries,
        n_expected=sum(one.n_expected for one in entries),
        n_unscored=sum(one.n_unscored for one in entries),
        comparisons=comparisons(systems, seed=run.seed),
        most_different=most_different(systems, run.questions, sealed=sealed),
        not_asked=tuple(NotAsked(group, *problem, group in sealed) for group, problem in problems.items()),
        contaminated=contaminated(systems, run.questions, right_at=mark, sealed=sealed),
        dropped=run.dropped,
        decomposition=None
        if run.context_options.get("without_reference")
        else decomposition(systems, seed=run.seed),
        warnings=tuple(_warnings(run)),
        notes=(*_notes(run), *stored_notes([*run.called.rows, *judgements])),
        run_line=_run_line(run),
        question=None if question is None else one_question(systems, question, first[question.group]),
        unread=_unread(run, systems),
    )


def _unread(run: AnswerRun, systems: Sequence[SystemRows]) -> Unread | None:
    """Why no answer could be rated: the commonest failure of the judge, or of the systems."""
    measured = [row for one in systems for row in one.rows]
    if any(row.percentage is not None for row in measured):
        return None
    ratings = [row.rating for row in measured if row.rating is not None]
    rows = ratings or [row for row in run.called.rows if row.verdict is None]
    who = run.grader.judge.name if ratings else ", ".join(dict.fromkeys(row.judge for row in rows))
    hidden = {row.given.item_id for row in measured if row.question in run.gold.test_groups}
    judge = unread_judge(who, rows, sealed=hidden | set(run.gold.test_groups))
    if judge is None:
        return None
    words = ["--gold", run.gold.name, "--contexts", ",".join(run.kinds), "--name", run.experiment.slug]
    for name, value in run.context_options.items():
        flag = "-k" if name == "k" else f"--{name.replace('_', '-')}"
        words += [flag] * (value is True) if isinstance(value, bool) else [flag, str(value)]
    signatures = dict.fromkeys(one.signature.name for one in run.answerers)
    models = dict.fromkeys(one.model.alias for one in run.answerers)
    words += ["--signatures", ",".join(signatures), "--models", ",".join(models)]
    words += [
        "--judge",
        run.grader.judge.name,
        "--repeats",
        str(run.options.repeats),
        "--seed",
        str(run.seed),
    ]
    words += ["--retry-unscored"]
    if run.options.limit is not None:
        words += ["--limit", str(run.options.limit)]
    again = shlex.join(["judgecal", "answer", *words])
    if run.recorded or run.dropped or run.grader.about.locked_on is not None:
        again = f"judgecal report {run.experiment.slug} --open"
    journal = run.experiment.journal if ratings else run.called.journal(run.experiment.folder)
    return Unread((judge,), 1, shown(journal), again)


def _warnings(run: AnswerRun) -> list[str]:
    warnings = run.grader.warnings(run.answerers, [one.group for one in run.questions])
    if run.dropped:
        warnings += [
            f"{model} took no part in closed-book run {run.dropped.experiment}: what it knows by heart is "
            "not known"
            for model in run.dropped.strangers([one.model.alias for one in run.answerers])
        ]
    if "none" in run.kinds and any(one.reads_contexts for one in run.answerers):
        warnings.append(
            "a prompt that asks for a context gets an empty one here, and one that demands a refusal then "
            "hides what the model knows: a closed-book test is stricter with a signature whose only input "
            "is question"
        )
    return warnings


def _notes(run: AnswerRun) -> list[str]:
    notes = list(run.found.notes)
    if run.answerers:
        for one in run.contexts:
            notes += corpus_notes(run.questions, run.gold, run.served[one.kind], one)
    if run.recorded:
        notes += run.recorded.notes()
    if run.dropped:
        n, slug = len(run.dropped.groups), run.dropped.experiment
        notes += [f"{n} questions that closed-book run {slug} found contaminated are left out"]
        notes += run.dropped.notes
    return list(dict.fromkeys(notes))


def _run_line(run: AnswerRun) -> str:
    """The line that reproduces the overview: set, contexts, systems, judge, how intervals are made."""
    kinds = []
    for one in run.contexts:
        detail = ",".join(f"{key}={value}" for key, value in one.config().items() if key != "kind")
        kinds.append(one.kind + (f"({detail})" if detail else ""))
    parts = [
        f"gold:{run.gold.name}@{run.gold.sha256[:12]}",
        f"context:{'+'.join(kinds)}",
        f"questions:{len(run.questions)}",
        f"repeats:{run.options.repeats}",
    ]
    if run.answerers:
        parts.append(f"systems:{','.join(one.described for one in run.answerers)}")
    if run.recorded:
        parts.append(f"recorded:{run.recorded.name}@{run.recorded.sha256[:12]}")
    parts += [f"judge:{full_name(run.grader.judge)}", f"level:{LEVEL:g}", "by:group", f"seed:{run.seed}"]
    return "|".join([*parts, f"version:{__version__}"])
