"""`answer`: every system's answers to the questions of a set, each rated by one judge, then the overview."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal._version import __version__
from judgecal.engine import Budget
from judgecal.errors import InputError, unknown_name
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    gold_config,
    judge_config,
    models_of,
    open_experiment,
    open_journal,
    plan_calls,
    plan_experiment,
    require_keys,
    run_trials,
    stored_notes,
    stored_rows,
    together,
)
from judgecal.experiment.unread import Unread, unread_judge
from judgecal.goldset import GoldSet, item_row
from judgecal.rag.answering.answerer import Answerer, Grader
from judgecal.rag.answering.contexts import ContextOptions, Served, corpus_notes, serve
from judgecal.rag.answering.outcomes import (
    ITEMS_FILE,
    LEVEL,
    Outcome,
    by_system,
    item_of,
    percentage_rows,
    system_entry,
)
from judgecal.rag.answering.pairwise import comparisons, most_different, one_question
from judgecal.rag.answering.questions import Question, Questions, RecordedAnswers
from judgecal.rag.answering.result import (
    AnswerResult,
    AskedOf,
    Dropped,
    NotAsked,
    contaminated,
    decomposition,
    right_from,
)
from judgecal.records import Item, Judgement, as_plain
from judgecal.tables import write_json_lines
from judgecal.workspace import Workspace, shown

_LONGEST_REPLY = 4096  # tokens, for the bound of a preview where the model states no limit
_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class AnswerInput:
    """What `answer` was asked, whatever the context."""

    workspace: Workspace
    gold: GoldSet
    questions: Questions  # of the set, without those that were dropped
    answerers: tuple[Answerer, ...]  # who is called
    recorded: RecordedAnswers | None
    grader: Grader
    options: RunOptions
    seed: int = 0
    right_at: float | None = None  # the percentage from which an answer is right; the set's own where None
    dropped: Dropped | None = None

    def config(self, contexts: ContextOptions) -> dict[str, Any]:
        """The configuration of the run with one kind of context."""
        return {
            "command": "answer",
            "gold": gold_config(self.gold),
            "context": contexts.config(),
            "systems": [one.config() for one in self.answerers],
            "answers": self.recorded.config() if self.recorded else None,
            "judge": judge_config(self.grader.judge),
            "drop_contaminated": as_plain(self.dropped) if self.dropped else None,
            "repeats": self.options.repeats,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class AnswerRun:
    """One run with one kind of context."""

    given: AnswerInput
    contexts: ContextOptions
    experiment: Experiment

    @property
    def answers(self) -> Path:
        """`answers.jsonl`: a journal like `judgements.jsonl`, whose verdicts are the answers' texts."""
        return self.experiment.folder / "answers.jsonl"

    @cached_property
    def asked(self) -> tuple[Question, ...]:
        """The questions asked, after `--limit`."""
        return self.given.questions.asked[: self.given.options.limit]

    @cached_property
    def served(self) -> Mapping[str, Served]:
        """What each question comes with, by group."""
        return serve(self.asked, self.given.gold, self.contexts)

    @cached_property
    def _requests(self) -> tuple[Item, ...]:
        """The questions that can be asked with such a context, as the answerers see them."""
        return tuple(
            one.item(self.served[one.group].contexts)
            for one in self.asked
            if self.served[one.group].problem is None
        )

    @cached_property
    def _recorded_rows(self) -> tuple[Judgement, ...]:
        """The answers of the file, as rows of the journal."""
        return tuple(self.given.recorded.judgements(self.asked)) if self.given.recorded else ()

    @property
    def _rating_options(self) -> RunOptions:
        """Each answer is rated once; a repeat is another answer."""
        return dataclasses.replace(self.given.options, repeats=1, limit=None)

    def check(self) -> None:
        """Hold everybody against the questions before anything is written.

        Raises:
            InputError: an answerer or the judge lacks an input, a budget meets a model without a price, or a
                recorded system has the name of one that is called.
        """
        twice = sorted(
            {one.name for one in self.given.answerers} & {row.judge for row in self._recorded_rows}
        )
        if twice:
            raise InputError(
                f"{', '.join(twice)} is called, and names a system of the answers too: rename it there"
            )
        self.given.options.check_models(models_of([*self.given.answerers, self.given.grader.judge]))
        for answerer in self.given.answerers:
            answerer.check_items(self._requests)
        self.given.grader.judge.check_items(self._expected_items(lambda _: ""))

    def _expected_items(self, text: Callable[[Outcome], str]) -> list[Item]:
        """The items that will be rated, with a text in the place of each answer that is not there yet."""
        stored = (*stored_rows(self.answers).latest.values(), *self._recorded_rows)
        rows = {(row.judge, row.item_id, row.repeat): row for row in stored}
        expected = []
        for outcome in self._outcomes(rows):
            due = outcome.answer is not None or not (outcome.recorded or outcome.served.problem)
            if due and outcome.text is None:
                blank = Judgement(
                    outcome.question.group, "", outcome.system, "", outcome.repeat, text(outcome)
                )
                outcome = dataclasses.replace(outcome, answer=blank)
            expected.append(item_of(outcome))
        return [item for item in expected if item is not None]

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written.

        Answers that are not there yet are taken to be as long as the reference for the tokens, and as long as
        the model may write for the bound of the cost.
        """
        answers = plan_calls(
            self.given.answerers, self._requests, stored_rows(self.answers), self.given.options
        )
        journal = stored_rows(self.experiment.journal)
        replies = [
            one.model.max_tokens or one.model.reply_limit or _LONGEST_REPLY for one in self.given.answerers
        ]
        longest = max(replies, default=0) * _BYTES_PER_TOKEN
        near, far = (
            plan_calls([self.given.grader.judge], self._expected_items(text), journal, self._rating_options)
            for text in (lambda one: " | ".join(one.question.reference_answers), lambda _: "x" * longest)
        )
        return together(
            [
                answers,
                dataclasses.replace(near, usd_at_most=far.usd_at_most, usd_in_batches=far.usd_in_batches),
            ]
        )

    def run(self, *, question: str | None = None) -> AnswerResult:
        """Make the calls that are due and give the result; `question` is a group to show across all systems.

        Raises:
            InputError: as `check`; or a key is not set and a call is due, or there is no such question.
        """
        self.check()
        sealed = self.given.gold.test_groups
        groups = [one.group for one in self.asked if one.group not in sealed]
        if question in sealed:
            raise InputError(f"--question {question}: it is one of test, which are counted and never shown")
        if question is not None and question not in groups:
            raise unknown_name("question", question, groups)
        require_keys(self.given.answerers, self._requests, stored_rows(self.answers), self.given.options)
        ratings, journal = self._expected_items(lambda _: ""), stored_rows(self.experiment.journal)
        require_keys([self.given.grader.judge], ratings, journal, self._rating_options)
        open_experiment(self.experiment)
        budget = self.given.options.open_budget(self.experiment.folder)
        outcomes = self._rate(self._answer(budget), budget)
        result = _result(self, outcomes, question)
        self.experiment.write_summary(result.stored())
        return result

    def _answer(self, budget: Budget) -> list[Outcome]:
        """Have every answer that is not in the journal yet."""
        with open_journal(self.answers, self.given.options) as journal:
            for row in self._recorded_rows:
                if row.key not in journal.latest:
                    journal.append(row)
            options = self.given.options
            rows = run_trials(
                self.given.answerers, self._requests, journal=journal, options=options, budget=budget
            )
        return self._outcomes(
            {(row.judge, row.item_id, row.repeat): row for row in (*self._recorded_rows, *rows)}
        )

    def _outcomes(self, rows: Mapping[tuple[str, str, int], Judgement]) -> list[Outcome]:
        """Every question x system x repeat that was asked for, by system."""
        called = [(one.name, self.given.options.repeats, False) for one in self.given.answerers]
        filed = [(name, 1, True) for name in (self.given.recorded.rows if self.given.recorded else ())]
        return [
            Outcome(
                one,
                self.served[one.group],
                name,
                repeat,
                rows.get((name, one.group, repeat)),
                recorded=recorded,
            )
            for name, repeats, recorded in (*called, *filed)
            for one in self.asked
            for repeat in range(repeats)
        ]

    def _rate(self, outcomes: Sequence[Outcome], budget: Budget) -> list[Outcome]:
        """Have every answer rated, and keep the answers as items beside the journals."""
        items = [item_of(outcome) for outcome in outcomes]
        to_rate = [item for item in items if item is not None]
        options, grader = self._rating_options, self.given.grader
        label = f"rating by {grader.judge.name}"
        with open_journal(self.experiment.journal, options) as journal:
            rows = run_trials(
                [grader.judge], to_rate, journal=journal, options=options, budget=budget, label=label
            )
        write_json_lines(self.experiment.folder / ITEMS_FILE, map(item_row, to_rate))
        ratings = {row.item_id: row for row in rows}

        def rated(outcome: Outcome, rating: Judgement) -> Outcome:
            value = None if rating.verdict is None else grader.percentage(rating.verdict)
            return dataclasses.replace(outcome, rating=rating, percentage=value)

        pairs = zip(outcomes, items, strict=True)
        return [outcome if item is None else rated(outcome, ratings[item.item_id]) for outcome, item in pairs]


def plan_answers(
    given: AnswerInput, contexts: Sequence[ContextOptions], *, out: str | None = None
) -> list[AnswerRun]:
    """A run for each kind of context, held against the questions; nothing is written.

    Raises:
        InputError: as `AnswerRun.check`; or the slug is no folder name, or is taken by another configuration.
    """
    runs = []
    for one in contexts:
        slug = f"{out}-{one.kind}" if out and len(contexts) > 1 else out
        runs.append(AnswerRun(given, one, plan_experiment(given.workspace, given.config(one), out=slug)))
        runs[-1].check()
    return runs


def _result(run: AnswerRun, outcomes: Sequence[Outcome], question: str | None) -> AnswerResult:
    """The object of the contract; `outcomes` are every question x system x repeat, unscored ones included."""
    given, gold, grader = run.given, run.given.gold, run.given.grader
    prices = {one.name: one.model.cost_usd for one in given.answerers}
    by_name = by_system(outcomes).items()
    systems = tuple(system_entry(name, answers, price=prices.get(name)) for name, answers in by_name)
    mark = right_from(gold.scale) if given.right_at is None else given.right_at
    asked = by_system([one for one in outcomes if one.recorded or one.served.problem is None])
    percentages = {name: percentage_rows(answers) for name, answers in asked.items()}
    problems = [(one.group, run.served[one.group].problem) for one in run.asked]
    sealed = gold.test_groups
    return AnswerResult(
        experiment=run.experiment.slug,
        gold=AskedOf(gold.name, gold.sha256, len(run.asked)),
        judge=grader.judge.name,
        rated_by=grader.about,
        context=run.contexts.kind,
        context_options=run.contexts.config(),
        systems=systems,
        n_expected=len(outcomes),
        n_unscored=sum(one.n_unscored for one in systems),
        comparisons=comparisons(outcomes, seed=given.seed),
        most_different=most_different(outcomes, sealed=sealed),
        not_asked=tuple(NotAsked(group, *problem, group in sealed) for group, problem in problems if problem),
        contaminated=contaminated(outcomes, right_at=mark, sealed=sealed)
        if run.contexts.kind == "none"
        else None,
        dropped=given.dropped,
        decomposition=decomposition(given.workspace, run.experiment, percentages, seed=given.seed),
        warnings=tuple(_warnings(run)),
        notes=(
            *_notes(run),
            *stored_notes(row for one in outcomes for row in (one.answer, one.rating) if row),
        ),
        run_line=_run_line(run),
        question=None if question is None else one_question(outcomes, question),
        percentages={
            name: {group: tuple(row) for group, row in rows.items()} for name, rows in percentages.items()
        },
        unread=_unread(run, outcomes),
    )


def _unread(run: AnswerRun, outcomes: Sequence[Outcome]) -> Unread | None:
    """Why no answer could be rated: the judge's commonest failure, or where nobody answered that of the
    systems."""
    if any(one.percentage is not None for one in outcomes):
        return None
    given, ratings = run.given, [one.rating for one in outcomes if one.rating is not None]
    rows = ratings or [one.answer for one in outcomes if one.answer is not None and one.text is None]
    who = given.grader.judge.name if ratings else ", ".join(dict.fromkeys(row.judge for row in rows))
    sealed = {row.item_id for one in outcomes for row in (one.rating, one.answer)
              if row is not None and one.question.group in given.gold.test_groups}  # fmt: skip
    judge = unread_judge(who, rows, sealed=sealed)
    if judge is None:
        return None
    options = {key: value for key, value in run.contexts.config().items() if key != "kind"}
    words = ["--gold", given.gold.name, "--contexts", run.contexts.kind, "--name", run.experiment.slug]
    for name, value in options.items():
        flag = "-k" if name == "k" else f"--{name.replace('_', '-')}"
        words += [flag] * (value is True) if isinstance(value, bool) else [flag, str(value)]
    parts = [(one.signature.name, one.model.alias) for one in given.answerers]
    words += ["--signatures", ",".join(dict.fromkeys(name for name, _ in parts))]
    words += [
        "--models",
        ",".join(dict.fromkeys(alias for _, alias in parts)),
        "--judge",
        given.grader.judge.name,
    ]
    words += ["--repeats", str(given.options.repeats), "--seed", str(given.seed), "--retry-unscored"]
    if given.options.limit is not None:
        words += ["--limit", str(given.options.limit)]
    plain = given.recorded is None and given.dropped is None and given.grader.about.locked_on is None
    again = shlex.join(["judgecal", "answer", *words])
    journal = run.experiment.journal if ratings else run.answers
    return Unread(
        (judge,), 1, shown(journal), again if plain else f"judgecal report {run.experiment.slug} --open"
    )


def _warnings(run: AnswerRun) -> list[str]:
    given = run.given
    warnings = given.grader.warnings(given.answerers, [one.group for one in run.asked])
    if given.dropped:
        warnings += [
            f"{model} took no part in closed-book run {given.dropped.experiment}: what it knows by heart is not known"
            for model in given.dropped.strangers([one.model.alias for one in given.answerers])
        ]
    if run.contexts.kind == "none" and any(one.reads_contexts for one in given.answerers):
        warnings.append(
            "a prompt that asks for a context gets an empty one here, and one that demands a refusal then hides "
            "what the model knows: a closed-book test is stricter with a signature whose only input is question"
        )
    return warnings


def _notes(run: AnswerRun) -> list[str]:
    given, notes = run.given, list(run.given.questions.notes)
    if given.answerers:
        notes += corpus_notes(run.asked, given.gold, run.served, run.contexts)
    if given.recorded:
        notes += given.recorded.notes()
    if given.dropped:
        n, slug = len(given.dropped.groups), given.dropped.experiment
        notes += [f"{n} questions that closed-book run {slug} found contaminated are left out"]
        notes += given.dropped.notes
    return notes


def _run_line(run: AnswerRun) -> str:
    """The line that reproduces the overview: set@sha, context, systems, judge, how intervals are made,
    version."""
    given, options = run.given, run.contexts.config()
    detail = ",".join(f"{key}={value}" for key, value in options.items() if key != "kind")
    parts = [
        f"gold:{given.gold.name}@{given.gold.sha256[:12]}",
        f"context:{options['kind']}" + (f"({detail})" if detail else ""),
        f"questions:{len(run.asked)}",
        f"repeats:{given.options.repeats}",
    ]
    if given.answerers:
        parts.append(f"systems:{','.join(one.described for one in given.answerers)}")
    if given.recorded:
        parts.append(f"recorded:{given.recorded.name}@{given.recorded.sha256[:12]}")
    parts += [f"judge:{full_name(given.grader.judge)}", f"level:{LEVEL:g}", "by:group", f"seed:{given.seed}"]
    return "|".join([*parts, f"version:{__version__}"])
