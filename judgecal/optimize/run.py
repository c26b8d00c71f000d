"""`optimize`: compile on train, choose on dev, confirm once on test, decide; and what that would cost."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy

from judgecal.engine.budget import Budget, CostEstimate, likely_usd, require_prices, together, worst_cost_usd
from judgecal.engine.calls import ReplySchema
from judgecal.engine.log import Journal, read_journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, notice
from judgecal.experiment.agreement import refuse_unequal, verdict_notes
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.folder import Experiment, keep_judges, open_experiment, plan_experiment
from judgecal.experiment.judgements import refuse_unfit
from judgecal.experiment.looks import Look, look_at_test, looks_so_far, seen_judges
from judgecal.experiment.score import (
    asked_items,
    check_judge,
    full_name,
    gold_config,
    judge_config,
    run_line,
    summary_of_gold,
)
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.experiment.trials import ExperimentJournal, plan_calls, require_keys, run_trials, stored_rows
from judgecal.experiment.verdicts import traits_of
from judgecal.goldset import GoldSet, load_gold, require_splits, split_notes
from judgecal.judges import judge_named
from judgecal.judges.function import FunctionJudge
from judgecal.judges.prompt import PromptJudge, save_program
from judgecal.judges.protocol import Judge, JudgeName, units_of
from judgecal.models import ModelSpec, load_catalogue
from judgecal.optimize.optimizers import OPTIMIZERS, check_reflection, labelled, resolve_optimizer
from judgecal.optimize.probing import SplitProbes, choose_probed, train_probes
from judgecal.optimize.program_calls import CALL_LOG, logged_usd
from judgecal.optimize.result import (
    Changes,
    Choice,
    Confirmation,
    Finish,
    OnDev,
    OptimizedProbes,
    OptimizeResult,
    ProbesOf,
    Prompts,
    ScoredCandidate,
    confirm,
    has_lost_calls,
    race,
    unconfirmed,
)
from judgecal.optimize.training import (
    PLANS,
    Candidate,
    Plan,
    Training,
    notes_in_words,
    parts_by_question,
    reflection_spec,
    stratum_of,
)
from judgecal.probes.result import Footing
from judgecal.records import Item, Judgement
from judgecal.signatures import loaded_class, verdict_fields
from judgecal.stats import leading_metric
from judgecal.workspace import Workspace, find_workspace, shown

_NEEDED_GROUPS = 2
_LEARNT_FROM = 10  # questions of train, for who writes instructions
_LOST = "calls were lost (connection or budget): the same command makes them again"
_MARGIN = 1.25  # of the likely cost, which is a rule of thumb
_CHARS_PER_TOKEN = 4
_EXAMPLES_SHOWN = 12  # judged answers in one prompt of the model that writes, at most


@dataclass(frozen=True, kw_only=True)
class OptimizeRun:
    """Everything that `optimize` needs; nothing is written or called before `run`."""

    workspace: Workspace
    gold: GoldSet
    judge: PromptJudge
    optimizer: str  # resolved
    options: RunOptions
    seed: int = 0
    final: bool = True
    # who writes instructions; None where the judge's own model does, or nobody
    reflection: ModelSpec | None = None
    out: str | None = None  # the slug of its experiment; None for the usual one
    probes: bool = False  # learn from probes of train too, choose and confirm by those of dev and test

    # --- what it is of

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that the run writes to."""
        optimizer, writer = OPTIMIZERS[self.optimizer], self.writer
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
        }
        return plan_experiment(self.workspace, config, out=self.out)

    def check(self) -> None:
        """Refuse an unusable slug, and hold the judge against the set, before anything is written."""
        if mark := JudgeName.parse(self.judge.name).mark:
            single = self.judge.name.removesuffix(mark)
            raise InputError(f"{self.judge.name}: several calls share one prompt: optimize {single} instead")
        self._check_train()
        check_reflection(self.optimizer, self.judge.model, self.reflection)
        _ = self.experiment
        check_judge(self.gold, self.judge)
        require_prices([self.judge.model, self.writer], self.options.budget_usd)
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
        n_groups = len({item.group for item in items})
        classes = {stratum_of(self.gold.labels[item.item_id], self.gold.scale) for item in items}
        few = f"it has {n_groups} questions, and {_LEARNT_FROM} are the least"
        alike = "its labels are all alike (of one class, or in one third of the scale)"
        problems = [few] * (n_groups < _LEARNT_FROM) + [alike] * (len(classes) < 2)
        if OPTIMIZERS[self.optimizer].reflects and problems:
            what = f"optimizer {self.optimizer} cannot learn from the train split of {self.gold.name}"
            raise InputError(f"{what}: {'; '.join(problems)}: label more, or choose --optimizer labeled")

    @property
    def metric(self) -> str:
        """The metric that optimisers climb and that decides."""
        return leading_metric(self.gold.scale)

    @property
    def writer(self) -> ModelSpec:
        """The model that writes instructions, where any does."""
        return reflection_spec(self.reflection or self.judge.model)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that are used; test only where it is looked at."""
        return ("train", "dev", "test") if self.final else ("train", "dev")

    def items(self, split: str) -> tuple[Item, ...]:
        """The labelled items of a split; `--limit` cuts each split alike."""
        return asked_items(self.gold, split, limit=self.options.limit)

    def table(self, split: str, *, level: float = 0.95) -> AgreementTable:
        """Return the agreement table of a split, its intervals at a level."""
        return AgreementTable(self.gold, self.items(split), self.options.repeats, self.seed, level)

    @cached_property
    def _laps(self) -> list[tuple[Item, ...]]:
        items = self.items("dev")
        if self.optimizer != "auto":
            return [items]
        return parts_by_question(items, self.gold.labels, seed=self.seed, n=3)

    @cached_property
    def dev(self) -> AgreementTable:
        """The agreement table of dev, in the order of a race's laps."""
        return dataclasses.replace(self.table("dev"), items=tuple(itertools.chain(*self._laps)))

    @cached_property
    def probed(self) -> dict[str, SplitProbes]:
        """The probes of dev and test; none where they were not asked for."""
        return {
            split: SplitProbes.of(self.gold, self.items(split), self.judge, self.seed)
            if self.probes and split in self.splits
            else SplitProbes(())
            for split in ("dev", "test")
        }

    def training(self, budget: Budget, **more: Any) -> Training:
        """Return the Training of an optimiser under a budget: train items, their labels and probes."""
        items, notes = self.items("train"), notes_in_words(self.gold, self.judge.signature)
        labels = {item.item_id: self.gold.labels[item.item_id] for item in items}
        if self.probes:
            made, probe_labels = train_probes(self.gold, items, self.judge, seed=self.seed)
            labels |= probe_labels
            items += tuple(probe.item for probe in made)
            by_rule = " A rule made this answer ({}), and no person labelled it."
            notes |= {probe.item.item_id: by_rule.format(probe.family.what) for probe in made}
        return Training(
            judge=self.judge,
            # As the judge is shown them: of a chunk judge, an item is its context; a pair in its order.
            items=[shown for item in items for *_, shown in [*units_of(self.judge, item)][:1]],
            labels=labels,
            people=self.gold.scale,
            seed=self.seed,
            budget=budget,
            writer=self.writer,
            log=self.experiment.folder / CALL_LOG,
            use_cache=self.options.use_cache,
            quiet=self.options.quiet,
            words={item: words + notes.get(item, "") for item, words in _kinds_in_words(items).items()},
            **more,
        )

    @property
    def _taken(self) -> str:
        return f"{self.judge.name.partition('#')[0]}#{self.experiment.slug}"

    def judge_of(self, candidate: Candidate) -> PromptJudge:
        """Return the PromptJudge that a Candidate's program makes."""
        judge, program = self.judge, candidate.program
        where, loaded = self.workspace, (judge.signature, judge.model)
        made = PromptJudge(self._taken, workspace=where, program=program, loaded=loaded)
        made.trained_on = candidate.trained_on
        return made

    # --- what it would cost

    def preview(self) -> CostEstimate:
        """Return the calls, tokens and cost of the run as a CostEstimate; nothing is written."""
        self.check()
        return self._cost

    @property
    def _cost(self) -> CostEstimate:
        """Cost of the plan, of `auto` within a budget that it shrinks to."""
        within = self.options.budget_usd
        whole = self.planned_cost(self.plan, stored_rows(self.experiment.journal))
        if self.optimizer != "auto" or within is None or whole.usd_at_most is None:
            return whole
        likely = None if whole.usd_likely is None else min(within, whole.usd_likely)
        return dataclasses.replace(whole, usd_at_most=min(within, whole.usd_at_most), usd_likely=likely)

    @cached_property
    def plan(self) -> Plan:
        """What `auto` may take: the largest plan whose likely cost, and a quarter more, fits the budget."""
        budget_usd = self.options.budget_usd
        if self.optimizer != "auto" or budget_usd is None or not self.judge.model.priced:
            return PLANS[0]
        nothing = stored_rows(self.experiment.journal.with_name("none.jsonl"))  # the same when it is resumed
        for plan in PLANS:
            likely = self.planned_cost(plan, nothing).usd_likely
            if likely is not None and _MARGIN * likely <= budget_usd:
                return plan
        return PLANS[-1]

    @property
    def plan_in_words(self) -> str:
        """What `auto` is about to do, in a sentence."""
        plan = self.plan
        gepa = f"GEPA with {plan.gepa_calls} calls" if plan.gepa_calls else "no GEPA, for want of money"
        n = f"{plan.candidates} candidate{'s' * (plan.candidates > 1)} on a third of dev"
        return f"auto plans {gepa}, {n}, {plan.go_on[1]} on all of it."

    def planned_cost(self, plan: Plan, stored: Journal) -> CostEstimate:
        """Return the CostEstimate of a Plan at most, less the calls that a Journal holds.

        For each candidate that is not there yet stands one with as many of people's examples.
        """
        training = self.training(Budget(None), plan=plan)
        bounds = OPTIMIZERS[self.optimizer].bounds(training)
        judges = [self.judge_of(labelled(training, size, draw)) for size, draw in bounds.examples]
        longest = max(judges, key=lambda judge: len(str(judge.demos)))
        probes, raced = self.probed["dev"].items, self.optimizer == "auto"

        def planned(judges: Sequence[PromptJudge], items: Iterable[Item]) -> list[CostEstimate]:
            return [plan_calls([judge], items, stored, self.options) for judge in judges]

        fit = [] if raced else self.items("train")
        confirming = [*fit, *self.items("test"), *self.probed["test"].items] if self.final else []
        plans = planned([self.judge], [*self.items("dev"), *probes, *confirming])
        for lap, n in zip(self._laps, [len(judges), *plan.go_on], strict=False):
            plans += planned(judges[:n], lap)
        plans += planned(judges[: plan.go_on[-1]] if raced else judges, probes)
        plans += planned([longest], confirming)
        n_judged = together(plans[1:]).calls + bounds.task
        # the optimiser's calls of both models, at the size of its largest prompt
        works_on = self.judge if raced else longest
        messages = max((works_on.messages(item) for item in training.items), key=_size)
        writer, answers = self.writer, [messages[-1]] * _EXAMPLES_SHOWN
        plans.append(_repeated(self.judge.model, bounds.task, messages, longest.schema))
        plans.append(_repeated(writer, bounds.reflection, [*messages, *answers]))
        # What the instructions that are not written yet may add to every prompt of the judge, in the bound
        # alone: nearly all instructions are far shorter.
        extra = self.judge.model.cost_usd(bounds.written * (writer.longest_reply or 0), 0)
        plans.append(CostEstimate(0, 0, 0, None if extra is None else n_judged * extra, 0.0))
        return together(plans)

    # --- the run

    def run(self) -> OptimizeResult:
        """Compile, choose on dev, confirm on test, and return the OptimizeResult."""
        self.check()
        require_keys([self.judge], self.items("dev"), stored_rows(self.experiment.journal), self.options)
        if self.reflection and not (self.experiment.folder / CALL_LOG).exists():
            self.reflection.key()
        open_experiment(self.experiment)
        keep_judges(self.experiment, [self.judge])
        if self.optimizer == "auto" and not self.options.quiet:
            cost = self._cost
            words = f"{self.plan_in_words} At most {cost.calls:,} calls. {cost.cost_in_words}"
            notice(f"judgecal: {words}")
        budget = Budget(self.options.budget_usd)
        with ExperimentJournal(self.experiment, [self.judge], self.options) as journal:
            finish, remarks = self._score_all(journal, budget)
            before, probes = finish.scored[0], self.probed["dev"]
            choice, on_dev = choose_probed(finish.scored, self.metric, self.dev, probes, finish.stages)
            after = choice.taken
            save_program(
                self.experiment.program,
                after.judge.program,
                signature=self.judge.signature,
                trained_on=after.judge.trained_on,
            )
            if has_lost_calls(before.column) or (after is before and _LOST in remarks):
                choice = dataclasses.replace(choice, sealed=_LOST)
            look, on_test, confirmation = None, None, unconfirmed(before, choice, self.metric)
            if self.final and choice.sealed is None and after.judge.fingerprint != before.judge.fingerprint:
                look, on_test, confirmation = self._confirmed(before, choice, journal, budget)
        # what judgements and the optimiser's calls are known to have cost, in all processes
        judged_usd = sum(row.cost_usd or 0.0 for row in read_journal(self.experiment.journal))
        usd = judged_usd + logged_usd(self.experiment.folder / CALL_LOG) + budget.unseen_usd
        result = self._result(finish.everybody, choice, remarks, look, confirmation, usd)
        if on_dev is not None:
            result = dataclasses.replace(result, probes=ProbesOf(on_dev, on_test))
        self.experiment.write_summary(result)
        return result

    def _score_all(self, journal: Journal, budget: Budget) -> tuple[Finish, list[str]]:
        """The judge as it was and the candidates on dev, and what must be said of their making."""
        rivals = list[tuple[str, PromptJudge]]()

        def score(number: int | None, table: AgreementTable) -> ScoredCandidate:
            name, judge = ("before", self.judge) if number is None else rivals[number]
            probes = self.probed["dev"].items if table is self.dev else []
            column = self._judged(judge, [*table.items, *probes], journal, budget, f"dev: {name}")
            return ScoredCandidate.on(table, name, judge, column, self.metric)

        training, go_on = self.training(budget, plan=self.plan), self.plan.go_on
        if not has_lost_calls(score(None, self.dev).column):
            made = OPTIMIZERS[self.optimizer].make(training)
            rivals += [(candidate.name, self.judge_of(candidate)) for candidate in made]
        finish = race(self.dev, self._laps, range(len(rivals)), score, metric=self.metric, go_on=go_on)
        if len(finish.everybody) <= len(rivals):
            training.remarks.append(_LOST)
        return finish, training.remarks

    def _confirmed(
        self, before: ScoredCandidate, choice: Choice, journal: Journal, budget: Budget
    ) -> tuple[Look | None, OptimizedProbes | None, Confirmation]:
        """Both judges over test, and over what their maps are fitted on."""
        after, probes = choice.taken, self.probed["test"]
        fitted_on = self.dev.items if self.optimizer == "auto" else (*self.items("train"), *self.dev.items)
        fit = tuple(item for item in fitted_on if item.group not in after.judge.trained_on)
        items = [*fit, *self.items("test"), *probes.items]
        columns = [
            self._judged(judge, items, journal, budget, label)
            for judge, label in ((before.judge, "test: before"), (after.judge, "test: after"))
        ]
        if any(map(has_lost_calls, columns)):  # they count as wrong, and that is not the judge's doing
            choice = dataclasses.replace(choice, sealed=_LOST)
            return None, None, unconfirmed(before, choice, self.metric)
        look = look_at_test(
            experiments=self.workspace.experiments,
            gold=self.gold,
            items=self.items("test"),
            by=f"optimize by {self.metric}",
            judges=seen_judges(self.gold, self.items("test"), [column.rows for column in columns]),
            experiment=self.experiment.slug,
            kind="decision",
        )
        test, fit_table = self.table("test", level=look.level), dataclasses.replace(self.dev, items=fit)
        confirmation = confirm(
            test=test, fit=fit_table, before=columns[0], after=columns[1], metric=self.metric
        )
        if not probes.made:
            return look, None, confirmation
        broken = (probes.broken(test, column, Footing.of(fit_table, column)) for column in columns)
        return look, probes.held(*broken, level=look.level), confirmation

    def _judged(
        self, judge: PromptJudge, items: Sequence[Item], journal: Journal, budget: Budget, label: str
    ) -> Verdicts:
        rows = run_trials([judge], items, journal=journal, options=self.options, budget=budget, label=label)
        return Verdicts.from_calls(judge, rows)

    def _result(
        self,
        scored: Sequence[ScoredCandidate],
        choice: Choice,
        remarks: Sequence[str],
        look: Look | None,
        confirmation: Confirmation,
        usd: float,
    ) -> OptimizeResult:
        before, after, gold, metric = scored[0], choice.taken, self.gold, self.metric
        unread, unread_before = None, unread_judge(self.judge.name, after.column.stored)
        if unread_before is not None:  # and no candidate had a verdict on dev either
            options = ["--gold", gold.name, "--judge", self.judge.name, "--split", "dev", "--retry-unscored"]
            in_reach = JudgeName.parse(self.judge.name).in_reach
            again = ["score", *options] if in_reach else ["report", self.experiment.slug]
            file = shown(self.experiment.journal)
            unread = Unread((unread_before,), 1, file, shlex.join(["judgecal", *again]))
        notes = [*split_notes(gold), *verdict_notes(gold.scale, [after.column], rows=self._latest_rows())]
        extra = {"optimizer": self.optimizer, "program": after.judge.fingerprint[:8]}
        writer = self.writer.alias if OPTIMIZERS[self.optimizer].reflects else None
        extra |= {"reflection": writer} if writer else {}
        split, level = ("test", look.level) if look else ("dev", 0.95)
        prompts = Prompts.of(self.judge.program, after.judge.program)
        changes = Changes.between(self.dev, before.column, after.column) if after is not before else None
        return OptimizeResult(
            experiment=self.experiment.slug,
            optimizer=self.optimizer,
            reflection_model=writer,
            judge=self._taken,
            metric=metric,
            gold=summary_of_gold(self.table(split), split),
            dev=OnDev(before.estimates, after.estimates, tuple(score.tried(metric) for score in scored)),
            test=confirmation.numbers,
            decision=confirmation.decision,
            why=confirmation.why,
            program=shown(self.experiment.program),
            n_demos=len(after.judge.demos),
            instructions_changed=prompts.after != prompts.before,
            prompts=prompts,
            changes=changes,
            chosen=after.name,
            choice=choice.why,
            test_looks=look.number if look else looks_so_far(self.workspace.experiments, gold),
            test_look=look.sentence(gold.name) if look else None,
            usd=usd,
            notes=(*notes, *remarks),
            run_line=run_line(self.table(split, level=level), split, [full_name(self.judge)], extra),
            unread=unread,
        )

    def _latest_rows(self) -> Collection[Judgement]:
        return stored_rows(self.experiment.journal).latest.values()

    def unscored(self) -> int:
        """Return the number of judgements without a verdict of the two judges that are compared."""
        compared = {self.judge.fingerprint, PromptJudge(self._taken, workspace=self.workspace).fingerprint}
        items = {item.sha for split in self.splits for item in self.items(split)}
        return sum(
            row.verdict is None
            and row.judge_fingerprint in compared
            and row.item_sha in items
            and row.repeat < self.options.repeats
            for row in self._latest_rows()
        )


def _kinds_in_words(items: Sequence[Item]) -> dict[str, str]:
    """Item id -> what kind of answer it is, for who writes instructions; who gave it is none of their
    business."""
    kinds: dict[str, list[str]] = {item.item_id: [] for item in items}
    for (name, value), places in traits_of(items).items():
        for place in places.tolist() if name != "system" else ():
            kinds[items[place].item_id].append(f"{name} {value}")
    return {item_id: f" Of the answer: {', '.join(traits)}." for item_id, traits in kinds.items()}


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


def optimize(
    judge: str | Judge,
    gold: str | GoldSet = "starter",
    *,
    optimizer: str = "auto",
    reflection_model: str | None = None,
    final: bool = True,
    probes: bool = False,
    limit: int | None = None,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    model: str | None = None,
    workspace: str | Path | None = None,
) -> OptimizeResult:
    """Optimise a judge on a gold set by calls and return the OptimizeResult: train, dev, test once.

    Args:
        judge: a prompt judge, or its string, `correctness_v3@gemini-flash`; or a program of DSPy's with one
            prompt, as `judgecal.Judge(program)` or `FILE.py:PROGRAM@python`: that prompt is compiled.
        gold: a gold set, its name, or a path.
        optimizer: as `--optimizer` has it; DSPy's own names too.
        reflection_model: an alias or a litellm id of who writes instructions; else the judge's own model.
        final: whether it is confirmed on test, which is a look; only where something changed on dev.
        probes: learn from probes of train too; taken for fewer broken probes is only what agrees no less.
        limit: only the first so many items.
        model: an alias or a litellm id, of a program: what its prompt asks, through judgecal.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    options = RunOptions(limit=limit, budget_usd=budget_usd)
    options.check()
    judge = judge_named(judge, workspace=where) if isinstance(judge, str) else judge
    gold = gold if isinstance(gold, GoldSet) else load_gold(gold, workspace=where)
    optimised = to_optimise(judge, gold, model, where)
    return OptimizeRun(
        workspace=where,
        judge=optimised,
        gold=gold,
        optimizer=resolve_optimizer(optimizer, optimised.model),
        options=options,
        seed=seed,
        final=final,
        reflection=load_catalogue(where).resolve(reflection_model) if reflection_model else None,
        probes=probes,
        out=name,
    ).run()


def to_optimise(judge: Judge, gold: GoldSet, model: str | None, workspace: Workspace) -> PromptJudge:
    """Return the PromptJudge to optimise of a Judge, a GoldSet, a model's name or None, and a Workspace.

    Of a program of DSPy's it is its one prompt, whatever `forward` makes of the reply. A number without
    bounds is on the people's scale.
    """
    if isinstance(judge, PromptJudge):
        if model is None:
            return judge
        raise InputError(f"{judge.name} has a model already: leave model= out")
    program = judge.program if isinstance(judge, FunctionJudge) else None
    if program is None:
        raise InputError(f"{judge.name} has no prompt: take a signature@model, or a program of DSPy's")
    if model is None:
        what = "say which model its prompt is to ask, model=ALIAS or a litellm id"
        raise InputError(f"{judge.name} is a program of DSPy's: {what}; the calls then are judgecal's own")
    prompts = program.predictors()
    wants = {*prompts[0].signature.input_fields} if len(prompts) == 1 else None
    if wants != {*judge.inputs} or "forward" in vars(program):
        what = "is not one prompt that takes what forward takes, so no prompt alone can judge"
        how = "compile it by DSPy's own optimisers, with judgecal.examples and judgecal.metric, and score it"
        raise InputError(f"{judge.name} {what}: {how}")
    prompt = prompts[0].deepcopy()
    cls, verdicts = prompt.signature, verdict_fields(prompt.signature)
    field = cls.output_fields[verdicts[0]] if verdicts else None
    if field and field.annotation in (int, float) and not field.metadata:
        bounds = {"ge": gold.scale.low, "le": gold.scale.high}
        cls = cls.delete(verdicts[0]).append(verdicts[0], dspy.OutputField(**bounds), field.annotation)
        prompt.signature = cls
    prompt.set_lm(None)
    prompt._compiled = False  # DSPy would leave it alone
    loaded = loaded_class(cls, judge.name), load_catalogue(workspace).resolve(model)
    made = PromptJudge(judge.name, workspace=workspace, program=prompt, loaded=loaded)
    made.trained_on = judge.trained_on
    return made
