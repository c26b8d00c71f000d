"""What an optimisation is of, what its optimiser may see, and what it would cost; nothing is called."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal, ReplySchema, require_prices, worst_cost_usd
from judgecal.errors import InputError
from judgecal.experiment import (
    AgreementTable,
    CostEstimate,
    Experiment,
    RunOptions,
    asked_items,
    check_judge,
    gold_config,
    judge_config,
    plan_calls,
    plan_experiment,
    refuse_unequal,
    stored_rows,
    together,
)
from judgecal.experiment.judgements import refuse_unfit
from judgecal.experiment.losses import traits_of
from judgecal.experiment.trials import likely_usd
from judgecal.goldset import GoldSet, require_splits
from judgecal.judges import JudgeName, PromptJudge, units_of
from judgecal.models import ModelSpec
from judgecal.optimize.optimizers import OPTIMIZERS, candidates, check_reflection
from judgecal.optimize.probing import SplitProbes, train_probes
from judgecal.optimize.program_calls import CALL_LOG
from judgecal.optimize.programs import ModuleJudge, Optimised, model_of
from judgecal.optimize.race import laps
from judgecal.optimize.training import PLANS, Candidate, Plan, Training, notes_of, reflection_spec, stratum_of
from judgecal.probes.family import Probe
from judgecal.records import Item
from judgecal.stats import leading_metric
from judgecal.workspace import Workspace

_NEEDED_GROUPS = 2
_MONEY_ENDED = "the money ended before every candidate was on all of dev"
_NO_MONEY_FOR_TEST = "there is no money left for test: the same command with more goes on from here"
_SAFETY = 1.2  # times what a call has cost so far
_LEARNT_FROM = 10  # questions of train, for who writes instructions


_CHARS_PER_TOKEN = 4
_MARGIN = 1.25  # of the likely cost, which is a rule of thumb
_EXAMPLES_SHOWN = 12  # judged answers in one prompt of the model that writes, at most


@dataclass(frozen=True, kw_only=True)
class OptimizeSetup:
    """Everything that `optimize` needs; nothing is written or called before `run`."""

    workspace: Workspace
    gold: GoldSet
    judge: Optimised
    optimizer: str  # resolved: never `auto`
    options: RunOptions
    seed: int = 0
    final: bool = True
    # who writes instructions; None where the judge's own model does, or nobody
    reflection: ModelSpec | None = None
    out: str | None = None  # the slug of its experiment; None for the usual one
    probes: bool = False  # learn from probes of train too, choose and confirm by those of dev and test

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that the run writes to."""
        optimizer, writer = OPTIMIZERS[self.optimizer], reflection_spec(self.reflection or self.model)
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
            **({"probes": True} if self.probes else {}),
            **({"model": self.model.settings()} if isinstance(self.judge, ModuleJudge) else {}),
        }
        return plan_experiment(self.workspace, config, out=self.out)

    def check(self) -> None:
        """Refuse an unusable slug, and hold the judge against the set, before anything is written."""
        if mark := JudgeName.parse(self.judge.name).mark:
            single = self.judge.name.removesuffix(mark)
            raise InputError(f"{self.judge.name}: several calls share one prompt: optimize {single} instead")
        if self.optimizer == "labeled" and not self.training(Budget(None), probes=False).shows_labels:
            what = f"labels are shown as {self.judge.signature.verdict}, which no prompt of {self.judge.name}"
            raise InputError(f"optimizer labeled: {what} gives: choose optimizer='BootstrapFewShot'")
        self._check_train()
        check_reflection(self.optimizer, self.model, self.reflection)
        _ = self.experiment
        check_judge(self.gold, self.judge)
        models = [self.model, *([reflection_spec(self.reflection)] if self.reflection else [])]
        require_prices(models, self.options.budget_usd)
        require_splits(self.gold, dict.fromkeys(self.splits, _NEEDED_GROUPS))
        for split in self.splits:
            refuse_unequal(self.gold, self.items(split), "optimize")
            refuse_unfit(self.judge, self.items(split), alone=True)
            self.judge.check_items(self.items(split))
        if self.probes and not self.probed["dev"].made:
            raise InputError(f"--probes: the rules make no probe of the dev items of {self.gold.name}")

    def _check_train(self) -> None:
        """Refuse a train split from which no instruction can be learnt."""
        items = self.items("train")
        groups = {item.group for item in items}
        classes = {stratum_of(self.gold.labels[item.item_id], self.gold.scale) for item in items}
        problems = []
        if len(groups) < _LEARNT_FROM:
            problems.append(f"it has {len(groups)} questions, and {_LEARNT_FROM} are the least")
        if len(classes) < 2:
            problems.append("its labels are all alike (of one class, or in one third of the scale)")
        if OPTIMIZERS[self.optimizer].reflects and problems:
            what = f"optimizer {self.optimizer} cannot learn from the train split of {self.gold.name}"
            raise InputError(f"{what}: {'; '.join(problems)}: label more, or choose --optimizer labeled")

    @property
    def plan_in_words(self) -> str:
        """What `auto` is about to do, in a sentence."""
        plan, limit = self.plan, self.options.budget_usd
        gepa = f"GEPA with {plan.gepa_calls} calls" if plan.gepa_calls else "no GEPA, for want of money"
        short = f": {limit:g} USD are likely too little to finish" if self._short else ""
        candidates = f"{plan.candidates} candidate{'s' * (plan.candidates > 1)} on a third of dev"
        return f"auto plans {gepa}, {candidates}, {plan.go_on[1]} on all of it{short}."

    @property
    def metric(self) -> str:
        """The metric that optimisers climb and that decides."""
        return leading_metric(self.gold.scale)

    @property
    def model(self) -> ModelSpec:
        """The model that gives the verdict."""
        return model_of(self.judge)

    @cached_property
    def plan(self) -> Plan:
        """What `auto` may take: less where the money is short."""
        return self._plan_within or PLANS[-1]

    @property
    def _short(self) -> bool:
        return self._plan_within is None

    @property
    def reflection_alias(self) -> str | None:
        """The alias of the model that writes instructions; None where none does."""
        reflects = OPTIMIZERS[self.optimizer].reflects
        return (self.reflection or self.model).alias if reflects else None

    @property
    def call_log(self) -> Path:
        """The file of the optimiser's own calls."""
        return self.experiment.folder / CALL_LOG

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that are used; test only where it is looked at."""
        return ("train", "dev", "test") if self.final else ("train", "dev")

    def items(self, split: str) -> tuple[Item, ...]:
        """The labelled items of a split; `--limit` cuts each split alike."""
        return asked_items(self.gold, split, limit=self.options.limit)

    @cached_property
    def probed(self) -> dict[str, SplitProbes]:
        """The probes of dev and test; none where they were not asked for."""
        return {
            split: SplitProbes.of(self.gold, self.items(split), self.judge, self.seed)
            if self.probes and split in self.splits
            else SplitProbes(())
            for split in ("dev", "test")
        }

    @cached_property
    def dev(self) -> AgreementTable:
        """The agreement table of dev, in the order of a race's laps."""
        parts = laps(self.items("dev"), self.gold.labels, self.seed)
        items = tuple(item for part in parts for item in part)
        return AgreementTable(self.gold, items, self.options.repeats, self.seed)

    def table(self, split: str, *, level: float = 0.95) -> AgreementTable:
        """The agreement table of a split."""
        return AgreementTable(self.gold, self.items(split), self.options.repeats, self.seed, level)

    def training(
        self, budget: Budget, broken: frozenset[str] = frozenset(), *, probes: bool = True, **more: Any
    ) -> Training:
        """The training material of an optimiser: train items and their labels alone."""
        items = self.items("train")
        labels = {item.item_id: self.gold.labels[item.item_id] for item in items}
        made = list[Probe]()
        if self.probes and probes:
            directed = self.optimizer in ("gepa", "simba")
            # instructions are written from a sample, in which few of them would break the judge
            options: dict[str, Any] = {"directed": directed, "broken": broken if directed else frozenset()}
            made, probe_labels = train_probes(self.gold, items, self.judge, seed=self.seed, **options)
            labels |= probe_labels
        return Training(
            judge=self.judge,
            # As the judge is shown them: of a chunk judge, an item is its context; a pair in its order.
            items=[shown for item in items for *_, shown in [*units_of(self.judge, item)][:1]],
            labels=labels,
            notes={item: notes for item, notes in notes_of(self.gold).items() if item in labels},
            people=self.gold.scale,
            seed=self.seed,
            budget=budget,
            reflection=self.reflection,
            log=self.call_log,
            use_cache=self.options.use_cache,
            quiet=self.options.quiet,
            broken=broken,
            probes=[
                (shown, probe.family.kind, probe.family.what)
                for probe in made
                for *_, shown in units_of(self.judge, probe.item)
            ],
            traits=_kinds_in_words(items),
            **more,
        )

    @property
    def _taken(self) -> str:
        return f"{self.judge.name.partition('#')[0]}#{self.experiment.slug}"

    def judge_of(self, candidate: Candidate) -> Optimised:
        """The judge that a candidate's program makes."""
        if isinstance(self.judge, ModuleJudge):
            return self.judge.compiled(candidate.program, self._taken, candidate.trained_on)
        return PromptJudge(self._taken, workspace=self.workspace, program=candidate.program)

    def _seen(self, judges: Mapping[str, str]) -> dict[str, Any]:
        """What makes the look: the same verdicts of the two judges by the same metric are the same look."""
        return {
            "experiments": self.workspace.experiments,
            "gold": self.gold,
            "items": self.items("test"),
            "by": f"optimize by {self.metric}",
            "judges": judges,
        }

    def preview(self) -> CostEstimate:
        """The most that a run can take in calls, tokens and cost; nothing is written.

        The candidates of `labeled` need no calls, so theirs is the very prompt that would be sent. Those of
        another optimiser are not there yet: those of `labeled` with as many demos stand in, with room for as
        many instructions as can be written. Its own calls are counted by its settings, in the longest prompt,
        and so is the confirmation.
        """
        self.check()
        stored = stored_rows(self.experiment.journal)
        return self.planned_cost(self.plan, stored, within=self.options.budget_usd)

    def planned_cost(self, plan: Plan, stored: Journal, *, within: float | None) -> CostEstimate:
        """What a run would call at most; of `auto` by a plan, and `within` a budget that it shrinks to."""
        training = self.training(Budget(None), plan=plan)
        bounds = OPTIMIZERS[self.optimizer].bounds(training)
        judges = [self.judge_of(candidate) for candidate in candidates("labeled", training)]
        if self.optimizer != "labeled":
            # those with enough demos first, the shortest of them before the others; then the longest
            judges.sort(
                key=lambda judge: (len(judge.demos) < bounds.demos, abs(len(judge.demos) - bounds.demos))
            )
            judges = judges[: bounds.candidates]
        longest = max(judges, key=lambda judge: len(str(judge.demos)))
        dev, probes = self.items("dev"), self.probed["dev"].items
        test_items = [*self.items("test"), *self.probed["test"].items] if self.final else []
        plans = [plan_calls([self.judge], [*dev, *probes], stored, self.options)]
        if self.optimizer == "auto":  # its candidates may all have as many demos
            for part, n in zip(
                laps(dev, self.gold.labels, self.seed), (plan.candidates, *plan.go_on), strict=False
            ):
                plans += [plan_calls([judges[0]], part, stored, self.options)] * n
            plans += [plan_calls([judges[0]], probes, stored, self.options)] * plan.go_on[-1]
            plans.append(plan_calls([self.judge, judges[0]], test_items, stored, self.options))
        else:
            plans.append(plan_calls(judges, [*dev, *probes], stored, self.options))
            fit = [*self.items("train"), *test_items] if self.final else []
            plans.append(plan_calls([self.judge, longest], fit, stored, self.options))
        n_judged = together(plans[1:]).calls + bounds.task
        # the optimiser's calls of both models, at the size of its largest prompt
        works_on = self.judge if self.optimizer == "auto" else longest
        messages = max((works_on.messages(item) for item in training.items), key=_size)
        messages_shown = [
            {"role": "user", "content": messages[-1]["content"]} for _ in range(_EXAMPLES_SHOWN)
        ]
        writer, model = training.reflection_model, training.model
        plans.append(_repeated(model, bounds.task, messages, longest.schema))
        plans.append(_repeated(writer, bounds.reflection, [*messages, *messages_shown]))
        # What the instructions that are not written yet may add to every prompt of the judge, in the bound
        # alone: nearly all instructions are far shorter.
        extra = model.cost_usd(bounds.written * (writer.longest_reply or 0), 0)
        plans.append(CostEstimate(0, 0, 0, None if extra is None else n_judged * extra, 0.0))
        whole, limit = together(plans), within
        if self.optimizer == "auto" and limit is not None and whole.usd_at_most is not None:
            likely = None if whole.usd_likely is None else min(limit, whole.usd_likely)
            return dataclasses.replace(whole, usd_at_most=min(limit, whole.usd_at_most), usd_likely=likely)
        return whole

    @cached_property
    def _plan_within(self) -> Plan | None:
        """The largest plan whose likely cost, and a quarter more, is within a budget; None where none is.

        What the calls of a program of several prompts cost is known when they are made.
        """
        budget_usd = self.options.budget_usd
        priced = self.model.priced and isinstance(self.judge, PromptJudge)
        if self.optimizer != "auto" or budget_usd is None or not priced:
            return PLANS[0]
        nothing = stored_rows(self.experiment.journal.with_name("none.jsonl"))  # the same when it is resumed
        for plan in PLANS:
            likely = self.planned_cost(plan, nothing, within=None).usd_likely
            if likely is not None and _MARGIN * likely <= budget_usd:
                return plan
        return None


def _kinds_in_words(items: Sequence[Item]) -> dict[str, str]:
    """Item id -> what kind of answer it is, for who writes instructions; who gave it is none of their
    business."""
    kinds_of: list[list[str]] = [[] for _ in items]
    for (name, value), places in traits_of(items).items():
        for place in places.tolist() if name != "system" else ():
            kinds_of[place].append(f"{name} {value}")
    kinds = zip(items, kinds_of, strict=True)
    return {item.item_id: f" Of the answer: {', '.join(traits)}." for item, traits in kinds}


def _repeated(
    spec: ModelSpec, calls: int, messages: Sequence[Mapping[str, str]], schema: ReplySchema | None = None
) -> CostEstimate:
    if not calls:
        return CostEstimate(0, 0, 0, 0.0, 0.0)
    tokens = calls * _size(messages) // _CHARS_PER_TOKEN
    usd = calls * worst_cost_usd(spec, messages, schema) if spec.priced and spec.bounded else None
    likely, unbounded = likely_usd(spec, calls, tokens), () if spec.bounded else (spec.alias,)
    return CostEstimate(calls, 0, tokens, usd, usd_likely=likely, unbounded=unbounded)


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)
