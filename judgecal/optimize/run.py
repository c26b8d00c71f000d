"""`optimize`: compile on train, choose on dev, confirm once on test, decide."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal, read_journal, require_prices
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
    open_journal,
    run_line,
    run_trials,
    scale_notes,
)
from judgecal.goldset import GoldSet, require_splits
from judgecal.judges import Judge, JudgeName, save_program
from judgecal.optimize.candidates import OPTIMIZERS, Candidate, Training, auto_optimizer, candidates
from judgecal.optimize.choose import Choice, Scored, choose, score_on
from judgecal.optimize.confirm import CANNOT_TELL, Confirmation, confirm
from judgecal.records import Estimate, Item
from judgecal.workspace import Workspace

__all__ = ["OptimizeRun", "decisive_metric", "resolve_optimizer"]

_NEEDED_GROUPS = 2


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
            InputError: scales do not meet, a split has too few groups, an item lacks an input, a key is not set, a
                budget meets a model without a price.
        """
        check_scales(self.gold, self.judge.name, self.judge.scale)
        require_prices([self.judge.model], self.options.budget_usd)
        require_splits(self.gold, dict.fromkeys(self.splits, _NEEDED_GROUPS))
        for split in self.splits:
            self.judge.check_items(self.items(split))
        if not self.judge.model.embedded:
            self.judge.model.key()

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

    def run(self) -> dict[str, Any]:
        """Compile, choose, confirm; the contract's object with `Estimate`s as they are."""
        self.check()
        metric = decisive_metric(self.gold)
        open_experiment(self.experiment)
        budget = Budget(self.options.budget_usd)
        with open_journal(self.experiment.journal, self.options) as journal:
            scored = self._score_all(journal, budget, metric)
            choice = choose(scored, self.table("dev"), metric)
            self._save(choice.taken)
            look, found = (
                self._confirm(journal, budget, scored[0], choice.taken, metric)
                if self.final
                else (None, None)
            )
        result = self._result(
            metric=metric, scored=scored, choice=choice, look=look, found=found, spent=budget
        )
        self.experiment.write_summary(result)
        return result

    def training(self, budget: Budget) -> Training:
        """What the optimiser may see: train items and their labels alone."""
        items = self.items("train")
        return Training(
            judge=self.judge,
            items=items,
            labels={item.item_id: self.gold.labels[item.item_id] for item in items},
            people=self.gold.scale,
            seed=self.seed,
            budget=budget,
        )

    def _score_all(self, journal: Journal, budget: Budget, metric: str) -> list[Scored]:
        """Score the judge as it is, then every candidate, on dev."""
        dev = self.table("dev")
        scored = [self._score(None, self.judge, dev, journal=journal, budget=budget, metric=metric)]
        for candidate in candidates(self.optimizer, self.training(budget)):
            judge = self.judge_of(candidate)
            scored.append(self._score(candidate, judge, dev, journal=journal, budget=budget, metric=metric))
        return scored

    def judge_of(self, candidate: Candidate) -> Judge:
        """The judge that a candidate's program makes."""
        name = JudgeName(self.judge.signature.name, self.judge.model.alias, self.experiment.slug)
        return Judge(name, workspace=self.workspace, program=candidate.program)

    def _score(
        self,
        candidate: Candidate | None,
        judge: Judge,
        dev: Table,
        *,
        journal: Journal,
        budget: Budget,
        metric: str,
    ) -> Scored:
        label = f"dev: {candidate.name if candidate else 'before'}"
        rows = run_trials(
            [judge], dev.items, journal=journal, options=self.options, budget=budget, label=label
        )
        return score_on(dev, candidate, judge, Column.of(judge, rows), metric)

    def _save(self, after: Scored) -> None:
        save_program(
            self.experiment.program,
            after.judge.program,
            signature=self.judge.signature,
            trained_on=after.candidate.trained_on if after.candidate else (),
        )

    def _confirm(
        self, journal: Journal, budget: Budget, before: Scored, after: Scored, metric: str
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
            n_items=len(self.items("test")),
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
            columns.append(Column.of(part.judge, rows))
        return look, confirm(test=test, fit=fit, before=columns[0], after=columns[1], metric=metric)

    def _result(
        self,
        *,
        metric: str,
        scored: list[Scored],
        choice: Choice,
        look: Look | None,
        found: Confirmation | None,
        spent: Budget,
    ) -> dict[str, Any]:
        after = choice.taken
        return {
            "experiment": self.experiment.slug,
            "optimizer": self.optimizer,
            "judge": f"{self.judge.signature.name}@{self.judge.model.alias}#{self.experiment.slug}",
            "metric": metric,
            "gold": self._gold_summary(),
            "dev": {
                "before": scored[0].estimates,
                "after": after.estimates,
                "candidates": [_tried(one, metric) for one in scored],
            },
            "test": _test_part(found),
            "decision": found.decision if found else CANNOT_TELL,
            "why": _why(found, after, scored[0].estimates[metric]),
            "program": _shown(self.experiment.program),
            "n_demos": len(after.judge.demos),
            "instructions_changed": after.judge.compiled.instructions
            != self.judge.signature.cls.instructions,
            "chosen": after.name,
            "choice": choice.why,
            "test_looks": look.number if look else looks_so_far(self.workspace.experiments, self.gold.name),
            "test_look": look.sentence(self.gold.name) if look else None,
            "usd": spent.spent_usd,
            "notes": scale_notes(self.gold.scale, [after.column]),
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
        groups = {split: len({i.group for i in self.items(split)}) for split in self.splits}
        items = {split: len(self.items(split)) for split in self.splits}
        return {
            "set": self.gold.name,
            "sha256": self.gold.sha256,
            "scale": str(self.gold.scale),
            "n_items": items,
            "n_groups": groups,
        }


def _tried(one: Scored, metric: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "n_demos": len(one.judge.demos),
        "judge_fingerprint": one.judge.fingerprint,
        "rated_in_training": one.candidate.rated if one.candidate else 0,
        "unusable_in_training": one.candidate.unusable if one.candidate else 0,
        metric: one.estimates[metric],
        "recalibrated": one.recalibrated,
    }


def _why(found: Confirmation | None, after: Scored, before: Estimate) -> str:
    if after.candidate is None and before.value is None:
        return f"dev cannot choose ({before.reason}), so the judge stays as it was"
    if after.candidate is None:
        return "no candidate was better on dev, so the judge stays as it was"
    return found.why if found else "test was not looked at (--no-final)"


def _shown(path: Path) -> str:
    """A path as results name it: relative to the current folder where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


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
