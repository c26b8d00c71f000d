"""`probe`: make probes of a gold set's open items, have judges judge them, and say which break."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine.budget import Budget, CostEstimate, require_prices, together
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, notice
from judgecal.experiment.agreement import verdict_notes
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.folder import Experiment, keep_judges, open_experiment, plan_experiment
from judgecal.experiment.score import (
    asked_items,
    check_judge,
    full_name,
    gold_config,
    judge_config,
    run_line,
    summary_of_gold,
)
from judgecal.experiment.trials import (
    ExperimentJournal,
    models_of,
    plan_calls,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges import judge_named
from judgecal.judges.protocol import Judge
from judgecal.probes.family import FamilyProbes, make_probes
from judgecal.probes.result import (
    Footing,
    ProbedAnswer,
    ProbedJudge,
    ProbeResult,
    ProbeVerdict,
    ProbeVerdicts,
    family_result,
)
from judgecal.probes.rules import families_named
from judgecal.records import Item, Judgement, as_plain
from judgecal.workspace import Workspace, find_workspace

N_PROBES = 50
"""Probes of a family, where not said otherwise."""
_REFERENCES = frozenset({"reference_answer", "reference_answers", "item"})


def is_deterministic(judge: Judge) -> bool:
    """Whether a judge gives the same verdict each time by its making: a rule of ours, the embedded model."""
    return judge.kind == "local" or (judge.model is not None and judge.model.embedded)


def family_fits(judge: Judge, probes: FamilyProbes) -> bool:
    """Whether a family's probes fit a judge: what is right hangs on the reference, but for few kinds."""
    return probes[0].family.kind in ("still", "no_rise") or not _REFERENCES.isdisjoint(judge.inputs)


@dataclass(frozen=True, kw_only=True)
class ProbeRun:
    """Everything that `probe` needs; nothing is written or called before `run`."""

    workspace: Workspace
    gold: GoldSet
    judges: tuple[Judge, ...]
    families: tuple[str, ...] = ()  # none for all
    n: int = N_PROBES
    options: RunOptions = field(default_factory=RunOptions)
    seed: int = 0
    out: str | None = None

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that the run writes to."""
        config: dict[str, Any] = {"command": "probe", "gold": gold_config(self.gold)}
        config |= {"judges": [judge_config(judge) for judge in self.judges], "n": self.n, "seed": self.seed}
        config |= {"families": [family.name for family in families_named(self.families)]}
        return plan_experiment(self.workspace, {**config, "limit": self.options.limit}, out=self.out)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The labelled open items, without the questions that a judge was trained on."""
        trained = frozenset[str]().union(*(judge.trained_on for judge in self.judges))
        return asked_items(self.gold, "open", limit=self.options.limit, without_groups=trained)

    @cached_property
    def made(self) -> tuple[FamilyProbes, ...]:
        """The probes, family by family."""
        chosen = families_named(self.families)
        return make_probes(self.gold, self.items, chosen, n=self.n, seed=self.seed)

    def _parts(self, judge: Judge) -> list[tuple[list[Item], RunOptions]]:
        """What a judge is asked: items, probes, and twice the answers that these were made of."""
        probes = [probe for made in self.made if family_fits(judge, made) for probe in made]
        originals = {probe.of.item_id: probe.of for probe in probes}
        every = {item.item_id: item for item in (*self.items, *originals.values())}
        twice = {} if is_deterministic(judge) else originals
        once = [item for name, item in every.items() if name not in twice] + [probe.item for probe in probes]
        parts = ((once, 1), ([*twice.values()], 2))
        return [(part, dataclasses.replace(self.options, repeats=n)) for part, n in parts if part]

    def check(self) -> None:
        """Refuse what cannot be judged, before anything is written."""
        if self.n < 1:
            raise InputError(f"-n must be at least 1, found {self.n}")
        _, made = self.experiment, self.made
        require_prices(models_of(self.judges), self.options.budget_usd)
        if not made:
            raise InputError(f"gold set {self.gold.name}: the rules make no probe of its open items")
        for judge in self.judges:
            check_judge(self.gold, judge, self.items)
            if not any(family_fits(judge, probes) for probes in made):
                raise InputError(f"{judge.name} sees no reference: these families say nothing of it")
            judge.check_items([item for part, _ in self._parts(judge) for item in part])

    def plan(self) -> CostEstimate:
        """Return the cost of the calls that the run would make, a CostEstimate; nothing is written."""
        self.check()
        stored = stored_rows(self.experiment.journal)
        return together([
            plan_calls([judge], part, stored, options)
            for judge in self.judges
            for part, options in self._parts(judge)
        ])  # fmt: skip

    def run(self) -> ProbeResult:
        """Make the calls that are due, and return the ProbeResult: which families break each judge."""
        plan, experiment = self.plan(), self.experiment
        for judge in self.judges:
            for part, options in self._parts(judge):
                require_keys([judge], part, stored_rows(experiment.journal), options)
        if plan.usd_at_most != 0.0 and plan.calls and not self.options.quiet:
            notice(f"judgecal: {plan.calls:,} calls to make. {plan.cost_in_words}")
        open_experiment(experiment)
        keep_judges(experiment, self.judges)
        table = AgreementTable(self.gold, self.items, seed=self.seed)
        with ExperimentJournal(experiment, self.judges, self.options) as journal:
            budget = Budget(self.options.budget_usd)
            columns = []
            for judge in self.judges:
                rows, label = list[Judgement](), f"{judge.name}: probes"
                for part, options in self._parts(judge):
                    rows += run_trials(
                        [judge], part, journal=journal, options=options, budget=budget, label=label
                    )
                columns.append(Verdicts.from_calls(judge, [*{row.key: row for row in rows}.values()]))
        probed = [self._probed(*parts, table) for parts in zip(self.judges, columns, strict=True)]
        notes = [*verdict_notes(self.gold.scale, columns)]
        for judge in self.judges:
            blind = [made[0].family.name for made in self.made if not family_fits(judge, made)]
            notes += [f"{judge.name} sees no reference, on which {', '.join(blind)} hang"] * bool(blind)
        answers = []
        for probe in itertools.chain(*self.made):
            item, name, family = probe.item, probe.item.item_id, (probe.family.name, probe.family.kind)
            what = name, item.sha, *family, item.group, item.asked, item.reference_answers
            given = tuple(by_probe[name] for _, by_probe in probed if name in by_probe)
            answers.append(ProbedAnswer(*what, probe.of.answer, item.answer, given))
        result = ProbeResult(
            experiment=experiment.slug,
            gold=summary_of_gold(table, "open"),
            judges=tuple(made for made, _ in probed),
            n_per_family=self.n,
            seed=self.seed,
            notes=tuple(notes),
            run_line=run_line(table, "open", [full_name(judge) for judge in self.judges], {"probes": self.n}),
            answers=tuple(answers),
        )
        experiment.write_summary({**as_plain(result), "answers": as_plain(result.answers)})
        return result

    def _probed(
        self, judge: Judge, column: Verdicts, table: AgreementTable
    ) -> tuple[ProbedJudge, dict[str, ProbeVerdict]]:
        """What the probes say of a judge, the worst family first, and what it said of each."""
        there, footing = [made for made in self.made if family_fits(judge, made)], Footing.of(table, column)
        verdicts = ProbeVerdicts.of(footing, column, certain=is_deterministic(judge))
        families = [family_result(made, verdicts, of=len(there), level=table.level) for made in there]
        probed = ProbedJudge(
            judge.name,
            judge.fingerprint,
            tuple(sorted(families, key=lambda family: (not family.shown, -(family.excess.value or 0.0)))),
            mapped=footing.calibration is not None,
        )
        why = {row.item_id: row.reasoning for row in column.rows if row.repeat == 0}
        by_probe = {}
        for made in there:
            for probe, value in zip(made, verdicts.broken(made), strict=True):
                name = probe.item.item_id
                raw = verdicts.first.get(probe.of.item_id), verdicts.first.get(name)
                before, after = map(footing.label, raw)
                broken = bool(value) if value in (0.0, 1.0) else None
                by_probe[name] = ProbeVerdict(judge.name, before, after, raw, broken, why.get(name, ""))
        return probed, by_probe


def probe(
    judges: str | Judge | Sequence[str | Judge],
    gold: str | GoldSet = "starter",
    *,
    families: Sequence[str] = (),
    n: int = N_PROBES,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> ProbeResult:
    """Probe judges on a gold set: which can be fooled, and by what, as a ProbeResult. It costs calls.

    Args:
        judges: by their strings, or as they are.
        families: of probes; all of them where none is named.
        n: probes of each family at most.
        budget_usd: money that may be spent.
        name: slug of the experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    named = [judges] if isinstance(judges, str) or not isinstance(judges, Sequence) else list(judges)
    run = ProbeRun(
        workspace=where,
        gold=load_gold(gold, workspace=where) if isinstance(gold, str) else gold,
        judges=tuple(judge_named(each, workspace=where) if isinstance(each, str) else each for each in named),
        families=tuple(families),
        n=n,
        options=RunOptions(budget_usd=budget_usd, quiet=True),
        seed=seed,
        out=name,
    )
    return run.run()
