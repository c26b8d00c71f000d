"""`optimize`: compile on train, choose on dev, confirm once on test, decide."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal, read_journal, require_prices
from judgecal.experiment import (
    Column,
    Experiment,
    Look,
    RunOptions,
    Table,
    asked_items,
    check_judge,
    foresee_look,
    full_name,
    gold_config,
    judge_config,
    look_at_test,
    looks_so_far,
    open_experiment,
    open_journal,
    plan_experiment,
    refuse_unequal,
    refuse_unfit,
    require_keys,
    run_line,
    run_trials,
    stored_rows,
    verdict_notes,
    verdicts_sha,
)
from judgecal.experiment.folder import keep_judges
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.goldset import GoldSet, load_gold, require_splits, split_notes
from judgecal.judges import JudgeName, PromptJudge, save_program, units_of
from judgecal.models import ModelSpec
from judgecal.optimize.call_log import CALL_LOG, logged_usd
from judgecal.optimize.decision import (
    CANNOT_TELL,
    NOTHING_CHANGED,
    Choice,
    Confirmation,
    OnTest,
    Scored,
    choose,
    confirm,
    score_on,
)
from judgecal.optimize.optimizers import OPTIMIZERS, candidates, check_reflection, resolve_optimizer
from judgecal.optimize.result import OnDev, OptimizedOn, OptimizeResult
from judgecal.optimize.training import Candidate, Training, reflection_spec
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Judgement, Rating
from judgecal.stats import leading_metric
from judgecal.workspace import Workspace, find_workspace, shown

_NEEDED_GROUPS = 2


@dataclass(frozen=True, kw_only=True)
class OptimizeRun:
    """Everything that `optimize` needs; nothing is written or called before `run`."""

    workspace: Workspace
    gold: GoldSet
    judge: PromptJudge
    optimizer: str  # resolved: never `auto`
    options: RunOptions
    seed: int = 0
    final: bool = True
    # who writes instructions; None where the judge's own model does, or nobody
    reflection: ModelSpec | None = None
    out: str | None = None  # the slug of its experiment; None for the usual one

    @cached_property
    def experiment(self) -> Experiment:
        """Where it goes."""
        optimizer, writer = OPTIMIZERS[self.optimizer], reflection_spec(self.reflection or self.judge.model)
        config = {
            "command": "optimize",
            "gold": gold_config(self.gold),
            "judges": [judge_config(self.judge)],
            "optimizer": self.optimizer,
            "optimizer_settings": dict(optimizer.settings),
            "reflection_model": {"model": writer.alias, **writer.settings()} if optimizer.reflects else None,
            "final": self.final,
            "repeats": self.options.repeats,
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    def check(self) -> None:
        """Refuse an unusable slug, and hold the judge against the set, before anything is written."""
        check_reflection(self.optimizer, self.judge.model, self.reflection)
        _ = self.experiment
        check_judge(self.gold, self.judge)
        models = [self.judge.model, *([reflection_spec(self.reflection)] if self.reflection else [])]
        require_prices(models, self.options.limit_usd)
        require_splits(self.gold, dict.fromkeys(self.splits, _NEEDED_GROUPS))
        for split in self.splits:
            refuse_unequal(self.gold, self.items(split), "optimize")
            refuse_unfit(self.judge, self.items(split), alone=True)
            self.judge.check_items(self.items(split))

    @property
    def metric(self) -> str:
        """What is climbed and decided on."""
        return leading_metric(self.gold.scale)

    @property
    def reflection_alias(self) -> str | None:
        """Who writes instructions; None where nobody does."""
        reflects = OPTIMIZERS[self.optimizer].reflects
        return (self.reflection or self.judge.model).alias if reflects else None

    @property
    def call_log(self) -> Path:
        """Where the optimiser's own calls are kept."""
        return self.experiment.folder / CALL_LOG

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that are used; test only where it is looked at."""
        return ("train", "dev", "test") if self.final else ("train", "dev")

    def items(self, split: str) -> tuple[Item, ...]:
        """The labelled items of a split; `--limit` cuts each split alike."""
        return asked_items(self.gold, split, limit=self.options.limit)

    def table(self, split: str, *, level: float = 0.95) -> Table:
        """The table of a split."""
        return Table(self.gold, self.items(split), self.options.repeats, self.seed, level)

    def run(self) -> OptimizeResult:
        """Compile, choose, confirm."""
        self.check()
        require_keys([self.judge], self.items("dev"), stored_rows(self.experiment.journal), self.options)
        if self.reflection and not self.call_log.exists():
            self.reflection.key()
        open_experiment(self.experiment)
        keep_judges(self.experiment, [self.judge])
        budget = self.options.open_budget(self.experiment.folder)
        with open_journal(self.experiment.journal, self.options) as journal:
            scored = self._score_all(journal, budget)
            choice = choose(scored, self.metric, self.table("dev"))
            before, after = scored[0], choice.taken
            program = self.experiment.program
            save_program(
                program, after.judge.program, signature=self.judge.signature, trained_on=after.trained_on
            )
            lost = _lost([one.column for one in scored])
            judged = None
            if self.final and not lost and not _unchanged(before, after):
                judged = self._judged(journal, budget, before, after)
                lost = _lost(judged.columns)
            if lost:  # they count as wrong, and that is not the judge's doing
                why = (
                    f"{lost} calls were lost on the wire or for want of budget: the same command makes them "
                    "again"
                )
                choice = dataclasses.replace(choice, sealed=why)
            look, confirmation = self._confirm(judged) if judged and not lost else (None, None)
        result = self._result(scored, choice, look, confirmation, self._spent_usd() + budget.unseen_usd)
        self.experiment.write_summary(result)
        return result

    def _result(
        self,
        scored: Sequence[Scored],
        choice: Choice,
        look: Look | None,
        confirmation: Confirmation | None,
        usd: float,
    ) -> OptimizeResult:
        """The object of the contract; without a look at test it says so and decides nothing."""
        before, after, gold, metric = scored[0], choice.taken, self.gold, self.metric
        return OptimizeResult(
            experiment=self.experiment.slug,
            optimizer=self.optimizer,
            reflection_model=self.reflection_alias,
            judge=f"{self.judge.signature.name}@{self.judge.model.alias}#{self.experiment.slug}",
            metric=metric,
            gold=OptimizedOn(
                set=gold.name,
                sha256=gold.sha256,
                scale=str(gold.scale),
                labels_by=gold.card.labels_by,
                n_items={split: len(self.items(split)) for split in self.splits},
                n_groups={split: len({item.group for item in self.items(split)}) for split in self.splits},
            ),
            dev=OnDev(before.estimates, after.estimates, tuple(one.tried(metric) for one in scored)),
            test=confirmation.numbers if confirmation else _sealed(choice),
            decision=confirmation.decision if confirmation else _undecided(before, choice),
            why=confirmation.why if confirmation else _why(before, choice, before.estimates[metric]),
            program=shown(self.experiment.program),
            n_demos=len(after.judge.demos),
            instructions_changed=after.judge.compiled.instructions != self.judge.signature.cls.instructions,
            chosen=after.name,
            choice=choice.why,
            test_looks=look.number if look else looks_so_far(self.workspace.experiments, gold),
            test_look=look.sentence(gold.name) if look else None,
            usd=usd,
            notes=(
                *split_notes(gold),
                *verdict_notes(gold.scale, [after.column], rows=self._latest_rows()),
                *self._fit_notes(after, confirmation),
            ),
            run_line=self._run_line(after, look),
            unread=self._unread(after),
        )

    def _unread(self, after: Scored) -> Unread | None:
        """Why no candidate had a verdict on dev."""
        judge = unread_judge(self.judge.name, after.column.stored)
        if judge is None:
            return None
        asked = ["--gold", self.gold.name, "--judge", judge.judge, "--split", "dev", "--retry-unscored"]
        again = shlex.join(["judgecal", "score", *asked])
        return Unread((judge,), 1, shown(self.experiment.journal), again)

    def _fit_notes(self, after: Scored, confirmation: Confirmation | None) -> list[str]:
        """Where the maps of the recalibration were fitted, if not on all of train and dev."""
        if confirmation is None or after.candidate is None or self.reflection_alias is None:
            return []
        n = len({item.group for item in self.items("dev")})
        return [
            f"the optimiser saw every label of train, so both judges are calibrated on dev alone ({n} "
            "questions)"
        ]

    def _run_line(self, after: Scored, look: Look | None) -> str:
        extra = {"optimizer": self.optimizer, "program": after.judge.fingerprint[:8]}
        if self.reflection_alias:
            extra["reflection"] = self.reflection_alias
        split, level = ("test", look.level) if look else ("dev", 0.95)
        return run_line(self.table(split, level=level), split, [full_name(self.judge)], extra)

    def training(self, budget: Budget) -> Training:
        """What the optimiser may see: train items and their labels alone."""
        items = self.items("train")
        labels = {item.item_id: self.gold.labels[item.item_id] for item in items}
        return Training(
            judge=self.judge,
            # As the judge is shown them: of a chunk judge, an item is its one context.
            items=[shown for item in items for _, shown in units_of(self.judge, item)],
            labels=labels,
            notes=_notes(self.gold, labels),
            people=self.gold.scale,
            seed=self.seed,
            budget=budget,
            reflection=self.reflection,
            log=self.call_log,
            use_cache=self.options.use_cache,
            quiet=self.options.quiet,
        )

    def _score_all(self, journal: Journal, budget: Budget) -> list[Scored]:
        """Score the judge as it is, then every candidate as it is made, on dev."""
        dev, training = self.table("dev"), self.training(budget)
        made: Iterable[Candidate] = candidates(self.optimizer, training)
        if not (
            at_most := OPTIMIZERS[self.optimizer].bounds(training).candidates
        ):  # they take no call: all at once
            made = list(made)
            at_most = len(made)
        number = itertools.count(1)

        def score(candidate: Candidate | None, judge: PromptJudge) -> Scored:
            name = candidate.name if candidate else "before"
            label = f"dev: {name} ({next(number)} of at most {at_most + 1})"
            rows = run_trials(
                [judge], dev.items, journal=journal, options=self.options, budget=budget, label=label
            )
            return score_on(dev, candidate, judge, Column.of(judge, rows), self.metric)

        return [score(None, self.judge), *(score(one, self.judge_of(one)) for one in made)]

    def judge_of(self, candidate: Candidate) -> PromptJudge:
        """The judge that a candidate's program makes."""
        name = JudgeName(self.judge.signature.name, self.judge.model.alias, self.experiment.slug)
        return PromptJudge(name, workspace=self.workspace, program=candidate.program)

    def _judged(self, journal: Journal, budget: Budget, before: Scored, after: Scored) -> _Judged:
        """Both judges over train, dev and test."""
        known = [*self.items("train"), *self.items("dev")]
        fit = tuple(item for item in known if item.group not in after.trained_on)
        columns = []
        for judge, label in ((before.judge, "test: before"), (after.judge, "test: after")):
            how: dict[str, Any] = {
                "journal": journal,
                "options": self.options,
                "budget": budget,
                "label": label,
            }
            columns.append(Column.of(judge, run_trials([judge], [*fit, *self.items("test")], **how)))
        return _Judged(fit, (before.judge, after.judge), (columns[0], columns[1]))

    def _confirm(self, judged: _Judged) -> tuple[Look, Confirmation]:
        """On test; the maps of the recalibration are fitted on train and dev."""
        judges = {
            judge.fingerprint: verdicts_sha(self.gold, self.items("test"), column.rows)
            for judge, column in zip(judged.judges, judged.columns, strict=True)
        }
        look = look_at_test(**self._seen(judges), experiment=self.experiment.slug, kind="decision")
        test, fit = (
            self.table("test", level=look.level),
            dataclasses.replace(self.table("dev"), items=judged.fit),
        )
        earlier, later = judged.columns
        return look, confirm(test=test, fit=fit, before=earlier, after=later, metric=self.metric)

    def foresee(self) -> Look | None:
        """Which decision on test labels a run would take where something changes on dev; None where test is
        sealed."""
        return foresee_look(**self._seen({})) if self.final else None

    def _seen(self, judges: Mapping[str, str]) -> dict[str, Any]:
        """What makes the look: the same verdicts of the two judges by the same metric are the same look."""
        return {
            "experiments": self.workspace.experiments,
            "gold": self.gold,
            "items": self.items("test"),
            "by": f"optimize by {self.metric}",
            "judges": judges,
        }

    def _spent_usd(self) -> float:
        """What judgements and the optimiser's calls are known to have cost, in all processes."""
        rows = sum(row.cost_usd or 0.0 for row in read_journal(self.experiment.journal))
        return rows + logged_usd(self.call_log)

    def _latest_rows(self) -> Collection[Judgement]:
        return {row.key: row for row in read_journal(self.experiment.journal)}.values()

    def unscored(self) -> int:
        """Judgements without a verdict of the two judges that the result compares."""
        taken = PromptJudge(
            JudgeName(self.judge.signature.name, self.judge.model.alias, self.experiment.slug),
            workspace=self.workspace,
        )
        compared = {self.judge.fingerprint, taken.fingerprint}
        items = {item.sha for split in self.splits for item in self.items(split)}
        return sum(
            row.verdict is None
            and row.judge_fingerprint in compared
            and row.item_sha in items
            and row.repeat < self.options.repeats
            for row in self._latest_rows()
        )


@dataclass(frozen=True, slots=True)
class _Judged:
    """The judge before and after, on test and on the items that their maps are fitted on."""

    fit: tuple[Item, ...]
    judges: tuple[PromptJudge, PromptJudge]
    columns: tuple[Column, Column]


def _lost(columns: Iterable[Column]) -> int:
    """Calls that ended on the wire or at the budget."""
    rows = (row for column in columns for row in column.stored)
    return sum(row.error is not None and row.error.kind in RETRIED_ON_RESUME for row in rows)


def _notes(gold: GoldSet, of: Collection[str]) -> dict[str, list[Rating]]:
    """Item id -> the ratings that carry a note, of these items alone."""
    notes: dict[str, list[Rating]] = {}
    for rating in gold.ratings:
        if rating.item_id in of and (rating.note or "").strip():
            notes.setdefault(rating.item_id, []).append(rating)
    return notes


def _unchanged(before: Scored, after: Scored) -> bool:
    """Whether the judge that was taken is the judge as it was: there is nothing to look at test for."""
    return after.judge.fingerprint == before.judge.fingerprint


def _sealed(choice: Choice) -> OnTest:
    """Nothing of test; where that is by luck or lost calls, it is why there is no difference."""
    if choice.sealed is None:
        return OnTest()
    return OnTest(difference=Estimate(None, reason=f"test was not opened: {choice.sealed}"))


def _undecided(before: Scored, choice: Choice) -> str:
    return NOTHING_CHANGED if choice.sealed is None and _unchanged(before, choice.taken) else CANNOT_TELL


def _why(before: Scored, choice: Choice, on_dev: Estimate) -> str:
    """Why test was not looked at."""
    if choice.sealed is not None:
        return choice.sealed
    if choice.taken.candidate is None and on_dev.value is None:
        return f"dev cannot choose ({on_dev.reason}), so the judge stays as it was"
    if choice.taken.candidate is None:
        return "no candidate was better on dev, so the judge stays as it was"
    if _unchanged(before, choice.taken):
        return "the candidate that was taken is the judge as it was"
    return "test was not looked at (--no-final)"


def optimize(
    judge: str,
    gold: str = "starter",
    *,
    optimizer: str = "auto",
    final: bool = True,
    limit: int | None = None,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> OptimizeResult:
    """Compile a judge on train, choose on dev, confirm once on test; `judgecal.optimize(...)`. This costs
    calls.

    Args:
        judge: a prompt judge by its string, `correctness_v3@gemini-flash`.
        gold: a gold set by its name, or a path.
        optimizer: as `--optimizer` has it.
        final: whether it is confirmed on test, which is a look; only where something changed on dev.
        limit: only the first so many items.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    options = RunOptions(limit=limit, budget_usd=budget_usd)
    options.check()
    return OptimizeRun(
        workspace=where,
        judge=PromptJudge(JudgeName.parse(judge), workspace=where),
        gold=load_gold(gold, workspace=where),
        optimizer=resolve_optimizer(optimizer),
        options=options,
        seed=seed,
        final=final,
        out=name,
    ).run()
