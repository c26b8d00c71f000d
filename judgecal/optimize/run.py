"""`optimize`: compile on train, choose on dev, confirm once on test, decide."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal, read_journal, require_prices
from judgecal.errors import InputError
from judgecal.experiment import (
    AgreementTable,
    Experiment,
    Look,
    RunOptions,
    Verdicts,
    asked_items,
    check_judge,
    foresee_look,
    full_name,
    gold_config,
    judge_config,
    look_at_test,
    looks_so_far,
    open_experiment,
    open_experiment_journal,
    plan_experiment,
    refuse_unequal,
    require_keys,
    run_line,
    run_trials,
    seen_judges,
    stored_rows,
    verdict_notes,
)
from judgecal.experiment.folder import keep_judges
from judgecal.experiment.judgements import refuse_unfit
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.experiment.trials import Due
from judgecal.goldset import GoldSet, load_gold, require_splits, split_notes
from judgecal.judges import Judge, JudgeName, PromptJudge, judge_named, save_program, units_of
from judgecal.judges.module import instructions_of
from judgecal.models import ModelSpec, load_catalogue
from judgecal.optimize.compiling import compiling
from judgecal.optimize.optimizers import OPTIMIZERS, candidates, check_reflection, resolve_optimizer
from judgecal.optimize.probing import SplitProbes, choose_probed, train_probes
from judgecal.optimize.program_calls import CALL_LOG, logged_usd
from judgecal.optimize.programs import ModuleJudge, Optimised, model_of, to_optimise
from judgecal.optimize.result import (
    Confirmation,
    OnDev,
    OptimizedOn,
    OptimizedProbes,
    OptimizeResult,
    ProbesOf,
    ScoredCandidate,
    confirm,
    unconfirmed,
)
from judgecal.optimize.training import Candidate, Training, notes_of, reflection_spec
from judgecal.probes.family import Probe
from judgecal.probes.result import Footing
from judgecal.records import RETRIED_ON_RESUME, Item, Judgement
from judgecal.stats import leading_metric
from judgecal.workspace import Workspace, find_workspace, shown

_NEEDED_GROUPS = 2


@dataclass(frozen=True, kw_only=True)
class OptimizeRun:
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
        """Where it goes."""
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
        outputs = [one.signature.output_fields for one in self.judge.program.predictors()]
        if self.optimizer == "labeled" and not any(self.judge.signature.verdict in of for of in outputs):
            what = f"labels are shown as {self.judge.signature.verdict}, which no prompt of {self.judge.name}"
            raise InputError(f"optimizer labeled: {what} gives: choose optimizer='BootstrapFewShot'")
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

    @property
    def metric(self) -> str:
        """What is climbed and decided on."""
        return leading_metric(self.gold.scale)

    @property
    def model(self) -> ModelSpec:
        """Who is asked for the verdict."""
        return model_of(self.judge)

    @property
    def reflection_alias(self) -> str | None:
        """Who writes instructions; None where nobody does."""
        reflects = OPTIMIZERS[self.optimizer].reflects
        return (self.reflection or self.model).alias if reflects else None

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

    @cached_property
    def probed(self) -> dict[str, SplitProbes]:
        """The probes of dev and test; none where they were not asked for."""
        return {
            split: SplitProbes.of(self.gold, self.items(split), self.judge, self.seed)
            if self.probes and split in self.splits
            else SplitProbes(())
            for split in ("dev", "test")
        }

    def table(self, split: str, *, level: float = 0.95) -> AgreementTable:
        """The table of a split."""
        return AgreementTable(self.gold, self.items(split), self.options.repeats, self.seed, level)

    def run(self) -> OptimizeResult:
        """Compile, choose, confirm."""
        self.check()
        require_keys([self.judge], self.items("dev"), stored_rows(self.experiment.journal), self.options)
        if self.reflection and not self.call_log.exists():
            self.reflection.key()
        open_experiment(self.experiment)
        keep_judges(self.experiment, [self.judge])
        budget, look, confirmation = Budget(self.options.budget_usd), None, None
        probed: OptimizedProbes | None = None
        with open_experiment_journal(self.experiment, [self.judge], self.options) as journal:
            weak, hard = self._weak_on_train(journal, budget) if self.probes else (frozenset(), frozenset())
            scored, dev = self._score_all(journal, budget, hard), self.table("dev")
            on_dev = dataclasses.replace(self.probed["dev"], weak=weak)
            choice, broken = choose_probed(scored, self.metric, dev, on_dev)
            before, after = scored[0], choice.taken
            program, columns = self.experiment.program, [score.column for score in scored]
            save_program(
                program, after.judge.program, signature=self.judge.signature, trained_on=after.trained_on
            )
            lost, unchanged = _lost(columns), after.judge.fingerprint == before.judge.fingerprint
            if self.final and not lost and not unchanged:  # both over train, dev and test
                known = (*self.items("train"), *dev.items)
                fit = tuple(item for item in known if item.group not in after.trained_on)
                columns = []
                for judge, label in ((before.judge, "test: before"), (after.judge, "test: after")):
                    asked = [*fit, *self.items("test"), *self.probed["test"].items]
                    columns.append(self._judged(judge, asked, journal, budget, label))
                lost = _lost(columns)
                if not lost:
                    judges = seen_judges(self.gold, self.items("test"), [column.rows for column in columns])
                    look = look_at_test(
                        **self._seen(judges), experiment=self.experiment.slug, kind="decision"
                    )
                    confirmation = confirm(
                        test=self.table("test", level=look.level),
                        fit=dataclasses.replace(dev, items=fit),
                        before=columns[0],
                        after=columns[1],
                        metric=self.metric,
                    )
                    probed = self._held(columns, fit, weak, level=look.level)
        if lost:  # they count as wrong, and that is not the judge's doing
            why = f"{lost} calls were lost (connection or budget)"
            choice = dataclasses.replace(choice, sealed=f"{why}: the same command makes them again")
        # what judgements and the optimiser's calls are known to have cost, in all processes
        judged_usd = sum(row.cost_usd or 0.0 for row in read_journal(self.experiment.journal))
        result = self._result(
            scored,
            after,
            choice.why,
            look,
            confirmation or unconfirmed(before, choice, self.metric),
            judged_usd + logged_usd(self.call_log) + budget.unseen_usd,
        )
        if self.probes:
            held = on_dev.held(broken["before"], broken[after.name])
            result = dataclasses.replace(result, probes=ProbesOf(held, probed))
        self.experiment.write_summary(result)
        return result

    def _held(
        self, columns: Sequence[Verdicts], fit: tuple[Item, ...], weak: frozenset[str], *, level: float
    ) -> OptimizedProbes | None:
        """Both judges on the probes of test, each through its map of train and dev."""
        test = self.table("test", level=level)
        probes = dataclasses.replace(self.probed["test"], weak=weak)
        if not probes.made:
            return None
        table = dataclasses.replace(test, items=fit)
        before, after = (probes.broken(test, one, Footing.of(table, one)) for one in columns)
        return probes.held(before, after, level=level)

    def _result(
        self,
        scored: Sequence[ScoredCandidate],
        after: ScoredCandidate,
        why_taken: str,
        look: Look | None,
        confirmation: Confirmation,
        usd: float,
    ) -> OptimizeResult:
        before, gold, metric = scored[0], self.gold, self.metric
        unread, unread_before = None, unread_judge(self.judge.name, after.column.stored)
        if unread_before is not None:  # and no candidate had a verdict on dev either
            asked = ["--gold", gold.name, "--judge", self.judge.name, "--split", "dev", "--retry-unscored"]
            report = ["report", self.experiment.slug]
            in_reach = JudgeName.parse(self.judge.name).in_reach
            again = shlex.join(["judgecal", *(["score", *asked] if in_reach else report)])
            unread = Unread((unread_before,), 1, shown(self.experiment.journal), again)
        notes = [*split_notes(gold), *verdict_notes(gold.scale, [after.column], rows=self._latest_rows())]
        extra = {"optimizer": self.optimizer, "program": after.judge.fingerprint[:8]}
        if self.reflection_alias:
            extra["reflection"] = self.reflection_alias
        if look and after.candidate and (self.reflection_alias or isinstance(self.judge, ModuleJudge)):
            n = len(set(self.table("dev").groups))
            saw = "the optimiser saw every label of train"
            notes.append(f"{saw}, so both judges are calibrated on dev alone ({n} questions)")
        split, level = ("test", look.level) if look else ("dev", 0.95)
        items = {split: self.items(split) for split in self.splits}
        plain = self.judge.signature.cls.instructions
        if isinstance(self.judge, ModuleJudge):
            plain = instructions_of(self.judge.program)
        return OptimizeResult(
            experiment=self.experiment.slug,
            optimizer=self.optimizer,
            reflection_model=self.reflection_alias,
            judge=self._taken,
            metric=metric,
            gold=OptimizedOn(
                set=gold.name,
                sha256=gold.sha256,
                scale=str(gold.scale),
                labels_by=gold.card.labels_by,
                n_items={split: len(of_split) for split, of_split in items.items()},
                n_groups={split: len({item.group for item in of_split}) for split, of_split in items.items()},
            ),
            dev=OnDev(before.estimates, after.estimates, tuple(score.tried(metric) for score in scored)),
            test=confirmation.numbers,
            decision=confirmation.decision,
            why=confirmation.why,
            program=shown(self.experiment.program),
            n_demos=len(after.judge.demos),
            instructions_changed=instructions_of(after.judge.program) != plain,
            chosen=after.name,
            choice=why_taken,
            test_looks=look.number if look else looks_so_far(self.workspace.experiments, gold),
            test_look=look.sentence(gold.name) if look else None,
            usd=usd,
            notes=tuple(notes),
            run_line=run_line(self.table(split, level=level), split, [full_name(self.judge)], extra),
            unread=unread,
        )

    def training(self, budget: Budget, broken: frozenset[str] = frozenset()) -> Training:
        """What the optimiser may see: train items and their labels alone."""
        items = self.items("train")
        labels = {item.item_id: self.gold.labels[item.item_id] for item in items}
        probes = list[Probe]()
        if self.probes:
            directed = self.optimizer in ("gepa", "simba")
            # instructions are written from a sample, in which few of them would break the judge
            how: dict[str, Any] = {"directed": directed, "broken": broken if directed else frozenset()}
            probes, known = train_probes(self.gold, items, self.judge, seed=self.seed, **how)
            labels |= known
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
                for probe in probes
                for *_, shown in units_of(self.judge, probe.item)
            ],
        )

    def _score_all(self, journal: Journal, budget: Budget, hard: frozenset[str]) -> list[ScoredCandidate]:
        dev, training = self.table("dev"), self.training(budget, hard)
        made: Iterable[Candidate] = candidates(self.optimizer, training)
        at_most = OPTIMIZERS[self.optimizer].bounds(training).candidates
        if not at_most:  # they take no call: all at once
            made = list(made)
            at_most = len(made)
        scored = []
        for number, candidate in enumerate(itertools.chain([None], made), 1):
            judge = self.judge_of(candidate) if candidate else self.judge
            label = f"dev: {candidate.name if candidate else 'before'} ({number} of at most {at_most + 1})"
            column = self._judged(judge, [*dev.items, *self.probed["dev"].items], journal, budget, label)
            scored.append(ScoredCandidate.on(dev, candidate, judge, column, self.metric))
        return scored

    def _weak_on_train(self, journal: Journal, budget: Budget) -> tuple[frozenset[str], frozenset[str]]:
        """The families that break the judge on train, and the probes that do, from which it learns first."""
        table, items = self.table("train"), self.items("train")
        probes = SplitProbes.of(self.gold, items, self.judge, self.seed)
        column = self._judged(self.judge, [*items, *probes.items], journal, budget, "train: probes")
        broken = probes.broken(table, column, Footing.of(table, column))
        values = itertools.chain(*broken.values())
        hard = [item.item_id for item, one in zip(probes.items, values, strict=True) if one == 1.0]
        return probes.weakened(broken), frozenset(hard)

    def _judged(
        self, judge: Optimised, items: Sequence[Item], journal: Journal, budget: Budget, label: str
    ) -> Verdicts:
        how: dict[str, Any] = {"journal": journal, "options": self.options, "budget": budget, "label": label}
        asked: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if isinstance(judge, ModuleJudge) and Due(judge, items, journal, self.options):
            asked = compiling(self.training(budget), "dev and test", calls_at_most=None)
        with asked:
            rows = run_trials([judge], items, **how)
        return Verdicts.from_calls(judge, rows)

    @property
    def _taken(self) -> str:
        return f"{self.judge.name.partition('#')[0]}#{self.experiment.slug}"

    def judge_of(self, candidate: Candidate) -> Optimised:
        """The judge that a candidate's program makes."""
        if isinstance(self.judge, ModuleJudge):
            return self.judge.compiled(candidate.program, self._taken, candidate.trained_on)
        return PromptJudge(self._taken, workspace=self.workspace, program=candidate.program)

    def foresee(self) -> Look | None:
        """Which decision on test a run would take where something changes on dev; None where it is sealed."""
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

    def _latest_rows(self) -> Collection[Judgement]:
        return stored_rows(self.experiment.journal).latest.values()

    def unscored(self) -> int:
        """Judgements without a verdict of the two judges that the result compares."""
        compared = {self.judge.fingerprint, PromptJudge(self._taken, workspace=self.workspace).fingerprint}
        items = {item.sha for split in self.splits for item in self.items(split)}
        return sum(
            row.verdict is None
            and row.judge_fingerprint in compared
            and row.item_sha in items
            and row.repeat < self.options.repeats
            for row in self._latest_rows()
        )


def _lost(columns: Iterable[Verdicts]) -> int:
    """Calls that ended on the wire or at the budget."""
    rows = (row for column in columns for row in column.stored)
    return sum(row.error is not None and row.error.kind in RETRIED_ON_RESUME for row in rows)


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
    """Compile a judge on train, choose on dev, confirm once on test; `judgecal.optimize(...)`. This costs
    calls.

    Args:
        judge: a prompt judge, or its string, `correctness_v3@gemini-flash`; or a program of DSPy's, as
            `judgecal.Judge(program)` or `FILE.py:PROGRAM@python`: the whole of it is compiled.
        gold: a gold set, its name, or a path.
        optimizer: as `--optimizer` has it; DSPy's own names too.
        reflection_model: an alias or a litellm id of who writes instructions; else the judge's own model.
        final: whether it is confirmed on test, which is a look; only where something changed on dev.
        probes: learn from probes of train too; taken for fewer broken probes is only what agrees no less.
        limit: only the first so many items.
        model: an alias or a litellm id, of a program: what all its prompts ask, through judgecal.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    options = RunOptions(limit=limit, budget_usd=budget_usd)
    options.check()
    judge = judge_named(judge, workspace=where) if isinstance(judge, str) else judge
    gold = gold if isinstance(gold, GoldSet) else load_gold(gold, workspace=where)
    return OptimizeRun(
        workspace=where,
        judge=to_optimise(judge, gold, model, where),
        gold=gold,
        optimizer=resolve_optimizer(optimizer),
        options=options,
        seed=seed,
        final=final,
        reflection=load_catalogue(where).resolve(reflection_model) if reflection_model else None,
        probes=probes,
        out=name,
    ).run()
