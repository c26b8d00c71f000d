"""`optimize`: compile on train, choose on dev, confirm once on test, decide; and what that would call."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgecal.engine import Budget, Journal, read_journal, require_prices, worst_cost_usd
from judgecal.errors import unknown_name
from judgecal.experiment import (
    Column,
    CostEstimate,
    Experiment,
    Look,
    RunOptions,
    Table,
    asked_items,
    check_judge,
    gold_config,
    judge_config,
    look_at_test,
    looks_so_far,
    open_experiment,
    open_journal,
    plan_calls,
    plan_experiment,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.goldset import GoldSet, require_splits
from judgecal.judges import JudgeName, PromptJudge, save_program
from judgecal.models import ModelSpec
from judgecal.optimize.call_log import CALL_LOG
from judgecal.optimize.decision import Confirmation, Scored, choose, confirm, score_on
from judgecal.optimize.optimizers import (
    OPTIMIZERS,
    auto_optimizer,
    candidates,
    check_reflection,
    optimizer_settings,
    reflection_config,
)
from judgecal.optimize.result import OptimizeResult, Outcome
from judgecal.optimize.training import Bounds, Candidate, Training, reflection_spec
from judgecal.records import Item
from judgecal.workspace import Workspace

__all__ = [
    "OptimizeRun",
    "Preview",
    "decisive_metric",
    "plan_optimize",
    "preview_optimize",
    "resolve_optimizer",
]

_NEEDED_GROUPS = 2
_CHARS_PER_TOKEN = 4
_INSTRUCTION_TOKENS = 4096  # of a model that states no longest reply
_EXAMPLES_SHOWN = 10  # judged answers in one prompt of the model that writes, at most


def resolve_optimizer(name: str, judge: PromptJudge) -> str:
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
        reflection: the model that writes instructions; None where the judge's own does, or nobody.
    """

    workspace: Workspace
    gold: GoldSet
    judge: PromptJudge
    optimizer: str
    options: RunOptions
    seed: int
    final: bool
    experiment: Experiment
    reflection: ModelSpec | None = None

    def check(self) -> None:
        """Hold the judge against the set before anything is written.

        Raises:
            InputError: scales do not meet, a split has too few groups, an item lacks an input, a
                budget meets a model without a price.
        """
        check_judge(self.gold, self.judge)
        check_reflection(self.optimizer, self.judge.model, self.reflection)
        require_prices(self.models, self.options.budget_usd)
        require_splits(self.gold, dict.fromkeys(self.splits, _NEEDED_GROUPS))
        for split in self.splits:
            self.judge.check_items(self.items(split))

    @property
    def models(self) -> list[ModelSpec]:
        """The models that it calls."""
        return [self.judge.model, *([reflection_spec(self.reflection)] if self.reflection else [])]

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
        """Compile, choose, confirm.

        Raises:
            InputError: as `check`; or the key is not set and a call is due.
        """
        self.check()
        require_keys([self.judge], self.items("dev"), stored_rows(self.experiment.journal), self.options)
        if self.reflection and not self.call_log.exists():
            self.reflection.key()
        metric = decisive_metric(self.gold)
        open_experiment(self.experiment)
        budget = Budget(self.options.budget_usd)
        with open_journal(self.experiment.journal, self.options) as journal:
            scored = self._score_all(journal, budget, metric)
            choice = choose(scored, self.table("dev"), metric)
            self._save(choice.taken)
            look, confirmation = (
                self._confirm(journal, budget, scored[0], choice.taken, metric)
                if self.final
                else (None, None)
            )
        looks = look.number if look else looks_so_far(self.workspace.experiments, self.gold.name)
        level = look.level if look else 0.95
        result = Outcome(
            experiment=self.experiment,
            optimizer=self.optimizer,
            reflection=self.reflection_alias,
            judge=self.judge,
            metric=metric,
            tables={
                split: self.table(split, level=level if split == "test" else 0.95) for split in self.splits
            },
            scored=scored,
            choice=choice,
            look=look,
            confirmation=confirmation,
            looks=looks,
            usd=budget.spent_usd,
        ).result()
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
            reflection=self.reflection,
            log=self.call_log,
            use_cache=self.options.use_cache,
            quiet=self.options.quiet,
        )

    def _score_all(self, journal: Journal, budget: Budget, metric: str) -> list[Scored]:
        """Score the judge as it is, then every candidate, on dev."""
        dev = self.table("dev")
        scored = [self._score(None, self.judge, dev, journal=journal, budget=budget, metric=metric)]
        for candidate in candidates(self.optimizer, self.training(budget)):
            judge = self.judge_of(candidate)
            scored.append(self._score(candidate, judge, dev, journal=journal, budget=budget, metric=metric))
        return scored

    def judge_of(self, candidate: Candidate) -> PromptJudge:
        """The judge that a candidate's program makes."""
        name = JudgeName(self.judge.signature.name, self.judge.model.alias, self.experiment.slug)
        return PromptJudge(name, workspace=self.workspace, program=candidate.program)

    def _score(
        self,
        candidate: Candidate | None,
        judge: PromptJudge,
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

    def unscored(self) -> int:
        """Judgements of this experiment that ended without a verdict."""
        return sum(
            row.verdict is None
            for row in {row.key: row for row in read_journal(self.experiment.journal)}.values()
        )


def plan_optimize(
    workspace: Workspace,
    judge: PromptJudge,
    gold: GoldSet,
    *,
    optimizer: str,
    options: RunOptions,
    seed: int = 0,
    final: bool = True,
    reflection: ModelSpec | None = None,
    out: str | None = None,
) -> OptimizeRun:
    """The run of a judge, an optimiser (or `auto`) and a gold set; nothing is written.

    Raises:
        InputError: there is no such optimiser, or the model that writes instructions cannot; the slug is no folder
            name, or is taken by another configuration.
    """
    optimizer = resolve_optimizer(optimizer, judge)
    config = {
        "command": "optimize",
        "gold": gold_config(gold),
        "judges": [judge_config(judge)],
        "optimizer": optimizer,
        "optimizer_settings": optimizer_settings(optimizer),
        **reflection_config(optimizer, judge.model, reflection),
        "final": final,
        "repeats": options.repeats,
        "seed": seed,
    }
    experiment = plan_experiment(workspace, config, out=out)
    return OptimizeRun(workspace, gold, judge, optimizer, options, seed, final, experiment, reflection)


@dataclass(frozen=True, slots=True)
class Preview:
    """Calls, tokens and cost of a run.

    Attributes:
        plan: of the whole run, at most.
        optimizer: its name.
        bounds: the optimiser's own part of the calls, at most; what its record holds already is not taken off.
        reflection: alias of the model that writes instructions, if one does.
    """

    plan: CostEstimate
    bounds: Bounds
    optimizer: str
    reflection: str | None

    @property
    def own_calls(self) -> str:
        """How many of the calls are the optimiser's own, in a sentence; empty where it makes none."""
        if not self.bounds.task:
            return ""
        parts = [f"at most {self.bounds.task} of the judge's model"]
        if self.reflection:
            parts.append(
                f"at most {self.bounds.reflection} of {self.reflection}, which writes the instructions"
            )
        return (
            f"Of these {self.optimizer} itself makes {' and '.join(parts)}; the settings are bounds, and it may need "
            "fewer."
        )


def preview_optimize(run: OptimizeRun) -> Preview:
    """Calls, tokens and cost at most; nothing is written.

    The candidates of `labeled` need no calls, so theirs is the very prompt that would be sent. Those of another
    optimiser are not there yet: those of `labeled` with as many demos stand in, with room for as many instructions as
    can be written. Its own calls are counted by its settings, in the longest prompt, and so is the confirmation.
    """
    run.check()
    stored = stored_rows(run.experiment.journal)
    training = run.training(Budget(None))
    bounds = OPTIMIZERS[run.optimizer].bounds(training)
    judges = _stand_ins(run, training, bounds)
    longest = max(judges, key=lambda judge: len(str(judge.demos)))
    plans = [plan_calls([run.judge, *judges], run.items("dev"), stored, run.options)]
    if run.final:
        rest = [item for split in ("train", "test") for item in run.items(split)]
        plans.append(plan_calls([run.judge, longest], rest, stored, run.options))
    scored = _sum(plans)
    plans.append(_own_calls(training, longest, bounds))
    plans.append(_room_for_instructions(training, scored.calls + bounds.task, bounds))
    return Preview(_sum(plans), bounds, run.optimizer, run.reflection_alias)


def _stand_ins(run: OptimizeRun, training: Training, bounds: Bounds) -> list[PromptJudge]:
    made = list(candidates("labeled", training))
    if run.optimizer != "labeled":
        # Those with enough demos first, the shortest of them before the others; then the longest there are.
        made.sort(key=lambda one: (one.n_demos < bounds.demos, abs(one.n_demos - bounds.demos)))
        made = made[: bounds.candidates]
    return [run.judge_of(candidate) for candidate in made]


def _own_calls(training: Training, longest: PromptJudge, bounds: Bounds) -> CostEstimate:
    """The optimiser's calls of both models, at the size of its largest prompt."""
    messages = max((longest.messages(item) for item in training.items), key=_size)
    shown = [{"role": "user", "content": messages[-1]["content"]} for _ in range(_EXAMPLES_SHOWN)]
    task = _repeated(training.judge.model, bounds.task, messages)
    return _sum([task, _repeated(training.reflection_model, bounds.reflection, [*messages, *shown])])


def _repeated(spec: ModelSpec, calls: int, messages: Sequence[Mapping[str, str]]) -> CostEstimate:
    usd = calls * worst_cost_usd(spec, messages) if spec.priced or not calls else None
    return CostEstimate(calls, 0, calls * _size(messages) // _CHARS_PER_TOKEN, usd, None if calls else 0.0)


def _room_for_instructions(training: Training, calls: int, bounds: Bounds) -> CostEstimate:
    """What the instructions that are not written yet may add to every prompt of the judge."""
    tokens = bounds.written * (training.reflection_model.max_tokens or _INSTRUCTION_TOKENS)
    extra = training.judge.model.cost_usd(tokens, 0)
    # The bound is in its cost: nearly all instructions are far shorter, so the estimate of tokens leaves it out.
    return CostEstimate(0, 0, 0, None if extra is None else calls * extra, 0.0)


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)


def _sum(plans: list[CostEstimate]) -> CostEstimate:
    costs = [plan.usd_at_most for plan in plans]
    known = [cost for cost in costs if cost is not None]
    seconds = [plan.seconds for plan in plans]
    told = [took for took in seconds if took is not None]
    return CostEstimate(
        calls=sum(plan.calls for plan in plans),
        stored=sum(plan.stored for plan in plans),
        prompt_tokens=sum(plan.prompt_tokens for plan in plans),
        usd_at_most=sum(known) if len(known) == len(costs) else None,
        seconds=sum(told) if len(told) == len(seconds) else None,
    )
