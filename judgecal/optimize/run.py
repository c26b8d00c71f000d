"""`optimize`: compile on train, choose on dev, confirm once on test, decide."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.engine import Budget, Journal, read_journal
from judgecal.errors import unknown_name
from judgecal.experiment import (
    Column,
    Experiment,
    Look,
    RunOptions,
    Table,
    asked_items,
    check_scales,
    look_at_test,
    looks_so_far,
    open_experiment,
    require_metric,
    run_line,
    run_trials,
)
from judgecal.goldset import GoldSet, require_splits
from judgecal.judges import Judge, JudgeName, save_program
from judgecal.optimize.candidates import OPTIMIZERS, Candidate, Training, auto_optimizer, candidates
from judgecal.optimize.confirm import CANNOT_TELL, Confirmation, confirm
from judgecal.records import Estimate, Item
from judgecal.workspace import Workspace

__all__ = ["OptimizeRun", "decisive_metric", "resolve_optimizer"]

_NEEDED_GROUPS = {"train": 2, "dev": 2, "test": 2}


def resolve_optimizer(name: str, judge: Judge) -> str:
    """The optimiser's own name; `auto` is resolved by the model.

    Raises:
        InputError: there is no such optimiser; the message names the nearest.
    """
    if name == "auto":
        return auto_optimizer(judge.model)
    if name not in OPTIMIZERS:
        raise unknown_name("optimizer", name, ["auto", *OPTIMIZERS])
    return name


def decisive_metric(gold: GoldSet) -> str:
    """What is climbed and decided on: macro_agreement, or accuracy where labels have no order."""
    return "macro_agreement" if gold.scale.numeric else "accuracy"


@dataclass(frozen=True, slots=True)
class _Scored:
    """A candidate with its judgements on dev and what they come to."""

    candidate: Candidate | None
    judge: Judge
    column: Column
    estimates: dict[str, Estimate]

    def value(self, metric: str) -> float:
        """The metric on dev, an unscored item counted as wrong; below everything where it is undefined."""
        found = require_metric(self.estimates, metric).value
        return float("-inf") if found is None else found


@dataclass(frozen=True, slots=True)
class OptimizeRun:
    """Everything that `optimize` needs.

    Attributes:
        workspace, gold, judge, optimizer, options, seed, final: what was asked; `optimizer` is resolved.
        experiment: where the results go.
    """

    workspace: Workspace
    gold: GoldSet
    judge: Judge
    optimizer: str
    options: RunOptions
    seed: int
    final: bool
    experiment: Experiment

    def check(self) -> None:
        """Hold the judge against the set before anything is written.

        Raises:
            InputError: scales do not meet, a split has too few groups, an item lacks an input, a key is not set.
        """
        check_scales(self.gold, self.judge.name, self.judge.scale)
        needed = {split: n for split, n in _NEEDED_GROUPS.items() if self.final or split != "test"}
        require_splits(self.gold, needed)
        for split in needed:
            self.judge.check_items(self.items(split))
        if not self.judge.model.embedded:
            self.judge.model.key()

    def items(self, split: str) -> tuple[Item, ...]:
        """The labelled items of a split; `--limit` cuts each split alike."""
        return asked_items(self.gold, split, limit=self.options.limit)

    def table(self, split: str, *, level: float = 0.95) -> Table:
        """The table of a split."""
        return Table(self.gold, self.items(split), self.options.repeats, self.seed, level)

    def run(self) -> dict[str, Any]:
        """Compile, choose, confirm; the contract's object with `Estimate`s as they are."""
        self.check()
        metric = decisive_metric(self.gold)
        open_experiment(self.experiment)
        budget = Budget(self.options.budget_usd)
        with Journal(self.experiment.journal) as journal:
            scored, tried = self._choose(journal, budget, metric)
            before, after = scored[0], _best(scored, metric)
            self._save(after)
            look, found = (
                self._confirm(journal, budget, before, after, metric) if self.final else (None, None)
            )
        result = self._result(
            metric=metric, before=before, after=after, tried=tried, look=look, found=found, spent=budget
        )
        self.experiment.write_summary(result)
        return result

    def _choose(
        self, journal: Journal, budget: Budget, metric: str
    ) -> tuple[list[_Scored], list[dict[str, Any]]]:
        """Score the judge as it is, then every candidate, on dev."""
        dev = self.table("dev")
        scored = [self._score(None, self.judge, dev, journal, budget)]
        training = Training(
            judge=self.judge,
            items=self.items("train"),
            labels=self.gold.labels,
            people=self.gold.scale,
            seed=self.seed,
            budget=budget,
        )
        for candidate in candidates(self.optimizer, training):
            judge = self.judge_of(candidate)
            scored.append(self._score(candidate, judge, dev, journal, budget))
        return scored, [_tried(one, metric) for one in scored]

    def judge_of(self, candidate: Candidate) -> Judge:
        """The judge that a candidate's program makes."""
        name = JudgeName(self.judge.signature.name, self.judge.model.alias, self.experiment.slug)
        return Judge(name, workspace=self.workspace, program=candidate.program)

    def _score(
        self, candidate: Candidate | None, judge: Judge, dev: Table, journal: Journal, budget: Budget
    ) -> _Scored:
        label = f"dev: {candidate.name if candidate else 'before'}"
        rows = run_trials(
            [judge], dev.items, journal=journal, options=self.options, budget=budget, label=label
        )
        column = Column(judge.name, judge.scale, rows)
        return _Scored(candidate, judge, column, dev.agreements(column)["as_wrong"])

    def _save(self, after: _Scored) -> None:
        save_program(
            self.experiment.program,
            after.judge.program,
            signature=self.judge.signature,
            trained_on=after.candidate.trained_on if after.candidate else (),
        )

    def _confirm(
        self, journal: Journal, budget: Budget, before: _Scored, after: _Scored, metric: str
    ) -> tuple[Look, Confirmation]:
        """Both judges over train, dev and test: the maps of the recalibration are fitted on the first two."""
        trained = after.candidate.trained_on if after.candidate else frozenset()
        fit = dataclasses.replace(
            self.table("open"),
            items=tuple(i for s in ("train", "dev") for i in self.items(s) if i.group not in trained),
        )
        look = look_at_test(
            self.workspace.experiments,
            gold=self.gold.name,
            gold_sha256=self.gold.sha256,
            experiment=self.experiment.slug,
            kind="decision",
        )
        test = self.table("test", level=look.level)
        columns = []
        for part, name in ((before, "before"), (after, "after")):
            rows = run_trials(
                [part.judge],
                [*fit.items, *test.items],
                journal=journal,
                options=self.options,
                budget=budget,
                label=f"test: {name}",
            )
            columns.append(Column(part.judge.name, part.judge.scale, rows))
        return look, confirm(test=test, fit=fit, before=columns[0], after=columns[1], metric=metric)

    def _result(
        self,
        *,
        metric: str,
        before: _Scored,
        after: _Scored,
        tried: list[dict[str, Any]],
        look: Look | None,
        found: Confirmation | None,
        spent: Budget,
    ) -> dict[str, Any]:
        return {
            "experiment": self.experiment.slug,
            "optimizer": self.optimizer,
            "judge": f"{self.judge.signature.name}@{self.judge.model.alias}#{self.experiment.slug}",
            "metric": metric,
            "gold": self._gold_summary(),
            "dev": {"before": before.estimates, "after": after.estimates, "candidates": tried},
            "test": _test_part(found),
            "decision": found.decision if found else CANNOT_TELL,
            "why": _why(found, after),
            "program": str(self.experiment.program),
            "n_demos": len(after.judge.demos),
            "instructions_changed": after.judge.compiled.instructions
            != self.judge.signature.cls.instructions,
            "chosen": after.candidate.name if after.candidate else "before",
            "test_looks": look.number if look else looks_so_far(self.workspace.experiments, self.gold.name),
            "test_look": look.sentence(self.gold.name) if look else None,
            "usd": spent.spent_usd,
            "run_line": run_line(
                self.table("test" if self.final else "dev"),
                "test" if self.final else "dev",
                [self.judge],
                {"optimizer": self.optimizer, "program": after.judge.fingerprint},
            ),
        }

    def unscored(self) -> int:
        """Judgements of this experiment that ended without a verdict."""
        return sum(
            row.verdict is None
            for row in {row.key: row for row in read_journal(self.experiment.journal)}.values()
        )

    def _gold_summary(self) -> dict[str, Any]:
        groups = {split: len({i.group for i in self.items(split)}) for split in _NEEDED_GROUPS}
        items = {split: len(self.items(split)) for split in _NEEDED_GROUPS}
        return {
            "set": self.gold.name,
            "sha256": self.gold.sha256,
            "scale": str(self.gold.scale),
            "n_items": items,
            "n_groups": groups,
        }


def _best(scored: Sequence[_Scored], metric: str) -> _Scored:
    """The highest on dev; of equals the one with fewer demos, so that a tie leaves the judge as it was."""
    return max(scored, key=lambda one: (one.value(metric), -len(one.judge.demos)))


def _tried(one: _Scored, metric: str) -> dict[str, Any]:
    return {
        "name": one.candidate.name if one.candidate else "before",
        "n_demos": len(one.judge.demos),
        "judge_fingerprint": one.judge.fingerprint,
        metric: one.estimates[metric],
    }


def _why(found: Confirmation | None, after: _Scored) -> str:
    if after.candidate is None:
        return "no candidate was better on dev, so the judge stays as it was"
    return found.why if found else "test was not looked at (--no-final)"


def _test_part(found: Confirmation | None) -> dict[str, Any]:
    if found is None:
        return {"before": None, "after": None, "difference": None, "difference_recalibrated": None}
    return {
        "before": found.before,
        "after": found.after,
        "difference": found.difference,
        "difference_recalibrated": found.recalibrated,
        "p_value": found.p_value,
        "complete_case": {"before": found.before_complete, "after": found.after_complete},
    }
