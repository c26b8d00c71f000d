"""`evaluate` and `answer`: systems x questions x judges, from the configuration to the result.

Each answer and each verdict is had once, whatever interrupts the run: the systems' journals, the journal of
judgements and `items.jsonl` are in the experiment's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal._version import __version__
from judgecal.engine.budget import Budget, CostEstimate, require_prices, together
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.judgements import item_scale, stored_notes
from judgecal.experiment.score import full_name, judge_config
from judgecal.experiment.table_rows import ReadRow, judgement_of
from judgecal.experiment.trials import (
    Due,
    judge_to_journal,
    models_of,
    open_journal,
    plan_trials,
    require_keys,
    stored_rows,
)
from judgecal.goldset import item_row, read_items
from judgecal.judges.protocol import Respondent, lacking_inputs
from judgecal.judges.suite import Suite, SuiteJudge, load_suite
from judgecal.production.suite import LeftOut, LoadedJudge, SuiteColumn, load_columns, survey
from judgecal.rag.evaluation.comparisons import (
    best_of,
    compare_documents,
    compare_systems,
    factor_curves,
    values_of,
)
from judgecal.rag.evaluation.config import (
    PanelTable,
    ReadConfig,
    SystemTable,
    collection_of,
    read_evaluate_config,
    system_of,
)
from judgecal.rag.evaluation.result import (
    AskedQuestions,
    EvaluateResult,
    Failures,
    MeasuredBy,
    StateFiles,
    States,
    SystemSetting,
)
from judgecal.rag.evaluation.summary import (
    ANSWERED,
    CORRECTNESS,
    LEVEL,
    AnswerVerdicts,
    Measured,
    documents_of,
    is_complex,
    summarise,
)
from judgecal.rag.evaluation.system import Asking, System, SystemAnswer
from judgecal.rag.questions import Collection, Question, refuses, wording_notes
from judgecal.records import ITEM_UNIT, PAIR_UNIT, Context, Item, digest
from judgecal.scale import Label, Scale
from judgecal.tables import write_json_lines
from judgecal.workspace import Workspace, find_workspace, shown

_FROM_CONTEXTS = ("context", "contexts", "chunk")
"""What an answer may bring, so that no question lacks it."""
ITEMS_FILE = "items.jsonl"
"""The answers as items, in the format of a gold set: what `gold sheet` draws from."""
_LIKELY, _MOST = 2_000, 20_000
"""Characters of the contexts of an answer that is not there yet: likely ones, and for a preview's bound."""


@dataclass(frozen=True)
class Panel:
    """Who judges the answers."""

    suite: str
    columns: tuple[SuiteColumn, ...]  # `correctness` among them
    repeats: int  # of judges that call a model

    @property
    def members(self) -> tuple[LoadedJudge, ...]:
        """Every judge of the panel."""
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
        """Return the configuration of the panel's own judges, a list of dicts; more repeats extend a run."""
        return [
            {"column": column.name, **judge_config(judge.judge)}
            for column in self.columns
            for judge in column.judges
        ]

    def measured_by(self) -> tuple[MeasuredBy, ...]:
        """Return a tuple of MeasuredBy: each own judge with the column that it fills, and its lock."""
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
        """Return a list of messages on inputs that Questions lack for the panel's judge of correctness."""
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
        """Return a list of warnings, each on an own judge that was trained on some of these Questions."""
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
        """Return a list of Due calls from ReadRows, the Journal of calls already made, and RunOptions."""
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
        """Return a pair: the Panel of judges that can judge some of the ReadRows, and a list of LeftOut."""
        columns, left_out = survey(self.columns, rows) if rows else ((), ())
        return replace(self, columns=tuple(columns)), left_out

    def verdicts(self, row: ReadRow, journal: Journal) -> dict[str, AnswerVerdicts]:
        """Return column -> AnswerVerdicts for a ReadRow, from a Journal of judgements."""
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
    """Read a Panel of judges from a PanelTable, the folder where its paths start, and a Workspace."""
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
    """Read the answered Items, a tuple, from the path of an experiment's folder."""
    path = folder / ITEMS_FILE
    if not path.is_file():
        raise InputError(
            f"{shown(folder)}: holds no answers ({ITEMS_FILE}): give an experiment of `judgecal answer` or "
            "`evaluate`; the same command finishes an interrupted run"
        )
    return read_items(path)


# --- the run


@dataclass(frozen=True)
class EvaluateRun:
    """What `evaluate` is to do; nothing is read before it is asked for."""

    workspace: Workspace
    config: ReadConfig
    options: RunOptions  # its `limit` goes before the file's
    repeats: int | None = None  # instead of the file's; None for those
    seed: int = 0  # of the comparisons
    out: str | None = None  # the slug of the experiment; None for the usual one

    @cached_property
    def collection(self) -> Collection:
        """The questions of the configuration, and the documents that systems search."""
        return collection_of(self.config, self.workspace)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions to ask, after the limit."""
        return self.collection.questions[: self.options.limit or self.config.tables.questions.limit]

    @cached_property
    def systems(self) -> tuple[tuple[SystemTable, System], ...]:
        """Every system, in the order of the configuration."""
        return tuple(
            (table, system_of(table, self.config, self.workspace, lambda: self.collection.documents or ()))
            for table in self.config.systems
        )

    @cached_property
    def panel(self) -> Panel:
        """The judges of the answers."""
        table = self.config.tables.judges
        wanted = table if self.repeats is None else table.model_copy(update={"repeats": self.repeats})
        return read_panel(wanted, self.config.folder, self.workspace)

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment of answers, verdicts and result, whatever limit, repeats, costs and pass mark."""
        collection, gold = self.collection, self.collection.gold
        config: dict[str, Any] = {
            "command": self.config.command,
            **({} if gold is None else {"gold": {"set": gold.name, "sha256": gold.sha256}}),
            "suite": self.panel.suite,
            "questions": {"name": collection.name, "sha256": self._sha256, "split": collection.split},
            "documents": collection.documents_sha,
            "systems": [
                {"system": table.name, "kind": table.kind, "config": digest(system.config())}
                for table, system in self.systems
            ],
            "judges": self.panel.config(),
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def _sha256(self) -> str:
        return self.collection.gold.sha256 if self.collection.gold else self.collection.questions_sha

    @cached_property
    def _by_group(self) -> dict[str, Question]:
        return {question.group: question for question in self.questions}

    # --- before the first call

    def check(self) -> None:
        """Refuse a run that cannot be done, with every problem, before any call or file."""
        problems = list[str]()

        def able(*parts: str) -> bool:
            n = len(problems)
            for part in parts:
                try:
                    getattr(self, part)
                except InputError as error:
                    problems.extend(error.problems)
            return len(problems) == n

        if able("collection", "systems"):
            # what all of a sweep lack is said once, of their table
            lacking: dict[tuple[str, str], list[str]] = {}
            for table, system in self.systems:
                for problem in system.check(self.questions):
                    lacking.setdefault((table.table, problem), []).append(table.name)
            for (table_name, problem), names in lacking.items():
                problems.append(f"{names[0] if len(names) == 1 else table_name}: {problem}")
        if able("collection", "panel"):
            problems += self.panel.lacking(self.questions)
        refuse(list(dict.fromkeys(problems)))
        models = [model for _, system in self.systems for model in system.models()]
        judges = models_of([member.judge for member in self.panel.members])
        require_prices([*models, *judges], self.options.budget_usd)

    def preview(self) -> CostEstimate:
        """Return the CostEstimate of the run's calls; answers that are not there yet are guessed."""
        self.check()
        budget = Budget(self.options.budget_usd)
        shown_rows = [
            system.preview(self.questions, self._asking(table, system, budget))
            for table, system in self.systems
        ]
        near, far = (plan_trials(self._due(self._expected(n))) for n in (_LIKELY, _MOST))
        return together([*shown_rows, replace(near, usd_at_most=far.usd_at_most)])

    def _expected(self, n_characters: int) -> list[ReadRow]:
        """Every answer as judges will see it; one that is not there yet as its reference, or as long as may
        be, with a context of so many characters.
        """
        folder = self.experiment.folder
        stored = answered_items(folder) if (folder / ITEMS_FILE).is_file() else ()
        items, rows = {item.item_id: item for item in stored}, list[ReadRow]()
        longest = "x" * n_characters
        for _, system in self.systems:
            contexts = (Context(longest),) if system.shows_contexts else None
            for question in self.questions:
                text = longest if n_characters == _MOST else " | ".join(question.reference_answers)
                guess = SystemAnswer(system.name, question.group, text, contexts)
                rows.append(ReadRow(items.get(guess.item_id) or guess.item(question)))
        return rows

    def _due(self, rows: Sequence[ReadRow]) -> list[Due]:
        return self.panel.running(rows)[0].due(rows, stored_rows(self.experiment.journal), self.options)

    def _asking(self, table: SystemTable, system: System, budget: Budget) -> Asking:
        """A system's folder is named by it, and by everything that decides its answers."""
        name = re.sub(r"[^A-Za-z0-9.=-]+", "_", table.name).strip("_.")[:60]
        folder = f"{name}-{digest([table.name, system.config()])[:8]}"
        options = replace(self.options, limit=None, repeats=1)
        return Asking(self.experiment.folder / "systems" / folder, options, budget)

    # --- the run

    def run(self) -> EvaluateResult:
        """Ask the systems, judge the answers and return their EvaluateResult; each state writes its files."""
        self.check()
        budget = Budget(self.options.budget_usd)
        for due in self._due(self._expected(_LIKELY)):
            require_keys([due.judge], due.items, due.journal, due.options)
        open_experiment(self.experiment)
        states = StateFiles(self.experiment.folder, self.questions, self.collection.sealed)
        states.write_questions()
        answers = [
            answer
            for table, system in self.systems
            for answer in system.answer(self.questions, self._asking(table, system, budget))
        ]
        states.write_answers(answers)
        panel, measured, notes = self._judged(answers, budget)
        columns = [column.name for column in panel.columns]
        states.write_measured(measured, columns)
        models = [judge.judge.model for judge in self.panel.members if judge.judge.model is not None]
        unknown = any(row.given.prompt_tokens is not None and row.given.cost_usd is None for row in measured)
        priced = not unknown and all(model.priced for model in models)
        answering = {model.id for _, system in self.systems for model in system.models()}
        favour = "answers and rates its own answers, and judges favour their own"
        notes = (
            *(f"model {name} {favour}" for name in sorted(answering & {model.id for model in models})),
            *wording_notes(self.questions),
            *self.collection.notes,
            *self.panel.trained_notes(self.questions),
            *notes,
        )
        usd = budget.spent_usd if priced else None
        result = _result(self, measured, states.paths, usd=usd, notes=notes)
        pooled = self.config.tables.judges.pooled
        states.write_summary([*result.systems, *result.documents], [*columns, *pooled])
        self.experiment.write_summary(result)
        return result

    def _judged(
        self, answers: Sequence[SystemAnswer], budget: Budget
    ) -> tuple[Panel, list[Measured], tuple[str, ...]]:
        """What the judges say of the answers, which are kept as items; what is journalled is not called.

        Gives the panel without the columns that no answer has anything for, a row for each answer, and notes.
        """
        panel = self.panel
        rows = {
            answer.item_id: ReadRow(answer.item(self._by_group[answer.question]))
            for answer in answers
            if answer.answer is not None
        }
        shown_rows = list(rows.values())
        write_json_lines(self.experiment.folder / ITEMS_FILE, (item_row(row.item) for row in shown_rows))
        running, left_out = panel.running(shown_rows)
        if rows:
            able = {CORRECTNESS, ANSWERED, *(column.name for column in running.columns)}
            panel = replace(panel, columns=tuple(column for column in panel.columns if column.name in able))
        # How a system was told to refuse.
        words = {
            table.name: table.options.answerer.refusal_message
            for table, _ in self.systems
            if table.kind == "local"
        }
        measured = []
        with open_journal(self.experiment.journal, self.options) as journal:
            if rows:
                due = running.due(shown_rows, journal, self.options)
                judge_to_journal(due, budget=budget, label=f"suite {panel.suite}")
            for answer in answers:
                verdicts = running.verdicts(rows[answer.item_id], journal) if answer.item_id in rows else {}
                question = self._by_group[answer.question]
                measured.append(_measured(answer, question, panel, verdicts, words.get(answer.system)))
        every = [verdicts for answer in measured for verdicts in answer.verdicts.values()]
        notes = [f"{judge.name} is left out: {judge.why}" for judge in left_out]
        return panel, measured, (*notes, *stored_notes(row for verdicts in every for row in verdicts.rows))


def _measured(
    answer: SystemAnswer,
    question: Question,
    panel: Panel,
    verdicts: dict[str, AnswerVerdicts],
    refusal: str | None,
) -> Measured:
    names = [column.name for column in panel.columns]
    shares = {name: verdicts[name].share if name in verdicts else None for name in names}
    answered: bool | None = None
    if answer.answer is not None:
        share = shares[ANSWERED] if ANSWERED in shares else float(not refuses(answer.answer, refusal))
        answered = None if share is None else share >= 0.5
        if CORRECTNESS not in verdicts and not question.answerable:
            shares[CORRECTNESS] = 0.0  # without a reference: whatever it says, there is nothing to say
    return Measured(
        system=answer.system,
        question=question.group,
        documents=question.reference_documents,
        answerable=question.answerable,
        is_complex=is_complex(question.question),
        given=answer,
        answered=answered,
        correctness=shares[CORRECTNESS],
        measures=shares,
        n_unscored=sum(column.shares.count(None) for column in verdicts.values()),
        verdicts=verdicts,
    )


def _result(
    run: EvaluateRun,
    measured: Sequence[Measured],
    states: States,
    *,
    usd: float | None,
    notes: tuple[str, ...],
) -> EvaluateResult:
    """All that the measured answers come to; `usd` is what this run spent, None where that is not known."""
    collection, panel, seed, table = run.collection, run.panel, run.seed, run.config.tables.judges
    right_at = next((at for at in (table.right_at, panel.right_at) if at is not None), 0.5)
    values, bases = values_of(measured), [table.name for table, _ in run.systems if table.is_base]
    best = best_of(values, seed=seed)
    swept = {table.name: (table.table, table.settings) for table, _ in run.systems}
    curves = factor_curves(values, swept, bases, seed=seed)
    split = f"({collection.split})" if collection.split else ""
    run_line = (
        f"questions:{collection.name}@{run._sha256[:12]}{split}|n:{len(run.questions)}|"
        f"systems:{len(run.systems)}|suite:{panel.suite}|"
        f"judges:{','.join(full_name(member.judge) for member in panel.members)}|repeats:{panel.repeats}|"
        f"level:{LEVEL:g}|seed:{seed}|version:{__version__}"
    )
    again = ["judgecal", run.config.command, run.config.typed, *(["--name", run.out] if run.out else [])]
    further: dict[str, Any] = {"right_at": right_at, "pooled": table.pooled}
    return EvaluateResult(
        experiment=run.experiment.slug,
        states=states,
        questions=AskedQuestions(
            source=collection.name,
            sha256=run._sha256,
            n=len(run.questions),
            n_answerable=sum(question.answerable for question in run.questions),
            n_sealed=sum(question.group in collection.sealed for question in run.questions),
            made_by=collection.gold.card.made_by if collection.gold else None,
        ),
        bases=tuple(bases) if curves else (),
        settings=tuple(
            SystemSetting(
                table.name,
                table.table,
                table.kind,
                table.settings,
                system.shows_contexts,
                contexts=_contexts_of(table),
            )
            for table, system in run.systems
        ),
        systems=summarise(measured, **further),
        documents=summarise(measured, documents_of(measured), **further),
        comparisons=compare_systems(measured, seed=seed),
        document_comparisons=compare_documents(measured, seed=seed),
        not_told_apart_from_best=tuple(candidate.name for candidate in best.not_told_apart),
        best=best,
        curves=curves,
        judges=panel.measured_by(),
        failures=_tallied(
            collection,
            (
                (answer.system, answer.question, f"{answer.given.error.kind}: {answer.given.error.message}")
                for answer in measured
                if answer.given.error is not None
            ),
        ),
        failed_verdicts=_tallied(
            collection,
            (
                (column, answer.question, verdicts.error)
                for answer in measured
                for column, verdicts in answer.verdicts.items()
                if verdicts.error is not None
            ),
        ),
        n_unscored=sum(row.total is None or row.n_unscored > 0 for row in measured),
        usd=usd,
        notes=notes,
        run_line=run_line,
        again=" ".join([*filter(None, again), "--retry-unscored"]),
    )


def _contexts_of(table: SystemTable) -> str:
    """The kind of contexts that a local system is given by a rule; empty for all that search."""
    kind: str = table.options.contexts.kind if table.kind == "local" else "search"
    return "" if kind == "search" else kind


def _tallied(collection: Collection, errors: Iterable[tuple[str, str, str]]) -> tuple[Failures, ...]:
    """Of (name, question, "kind: message"): name, kind, how many and the first message, most frequent first.

    A message may quote the question, so none of a sealed one is shown.
    """
    messages: dict[tuple[str, str], list[str | None]] = {}
    for name, question, error in errors:
        kind, _, message = error.partition(": ")
        sealed = question in collection.sealed
        messages.setdefault((name, kind), []).append(None if sealed else message)
    rows = [Failures(*key, len(some), next(filter(None, some), None)) for key, some in messages.items()]
    return tuple(sorted(rows, key=lambda row: -row.n))


def evaluate(
    config: str | Path,
    *,
    limit: int | None = None,
    repeats: int | None = None,
    budget_usd: float | None = None,
    use_cache: bool = True,
    retry_unscored: bool = False,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> EvaluateResult:
    """Return an EvaluateResult, given the path of a config file: its systems x questions x judges.

    Args:
        config: the TOML file.
        limit: only so many questions, instead of the file's limit.
        repeats: judgements of each answer, instead of the file's.
        budget_usd: for this run; None for no limit.
        name: slug of the experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    options = RunOptions(
        repeats=1 if repeats is None else repeats,
        limit=limit,
        budget_usd=budget_usd,
        use_cache=use_cache,
        retry_unscored=retry_unscored,
    )
    options.check()
    return EvaluateRun(
        workspace=find_workspace(None if workspace is None else Path(workspace)),
        config=read_evaluate_config(Path(config)),
        options=options,
        repeats=repeats,
        seed=seed,
        out=name,
    ).run()
