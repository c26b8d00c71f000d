"""`score` and `agreement`: judges over a split beside people, called here or recorded anywhere; the floor
below them, the result and its run line."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgecal._version import __version__
from judgecal.engine.budget import Budget, CostEstimate, require_prices, together
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.agreement import (
    AgreementResult,
    Entry,
    GoldSummary,
    LabelledTable,
    StoredExperiment,
    TableRate,
    constant_entry,
    entry,
    judge_entry,
    verdict_notes,
)
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, free_items
from judgecal.experiment.folder import Experiment, keep_judges, open_experiment, plan_experiment
from judgecal.experiment.judgements import item_scale, refuse_unfit, values_of, write_items
from judgecal.experiment.looks import look_at_test, looks_so_far, seen_judges
from judgecal.experiment.people import rater_entries, tied_items, with_people
from judgecal.experiment.recorded import Recorded
from judgecal.experiment.trials import (
    ExperimentJournal,
    models_of,
    plan_calls,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.goldset import GoldSet, split_notes
from judgecal.judges import judge_named
from judgecal.judges.protocol import Judge, single_calls
from judgecal.models import EMBEDDED
from judgecal.records import Item, Judgement
from judgecal.scale import common_scale
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.prediction_powered import LabelledRows, corrected_mean, selection_test
from judgecal.stats.sample import Ints, codes_of, rescaled
from judgecal.workspace import Workspace


def asked_items(
    gold: GoldSet, split: str, *, limit: int | None = None, without_groups: frozenset[str] = frozenset()
) -> tuple[Item, ...]:
    """Return the labelled Items, from a GoldSet and a split, in file order; at most the first `limit`."""
    items = tuple(i for i in gold.select(split, without_groups=without_groups) if i.item_id in gold.labels)
    if not items:
        raise InputError(f"gold set {gold.name}: split {split} holds no labelled item")
    return items[:limit]


@dataclass(frozen=True, kw_only=True)
class ScoreRun:
    """Everything that `score` and `agreement` need; nothing is written or called before `run`."""

    workspace: Workspace
    gold: GoldSet
    judges: tuple[Judge, ...] = ()  # that are called, or call nobody
    recorded: Recorded | None = None  # then no judge is called
    split: str = "open"
    options: RunOptions = field(default_factory=RunOptions)
    seed: int = 0
    out: str | None = None  # the slug of its experiment; None for the usual one
    table: Mapping[str, Any] | None = None  # that the set was made of, where it is none of the workspace

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that the run writes to."""
        config: dict[str, Any] = {"command": "score", "gold": gold_config(self.gold), "split": self.split}
        if self.recorded is None:
            config |= {"judges": list(map(judge_config, self.judges)), "repeats": self.options.repeats}
        else:
            config |= {"command": "agreement", "recorded": self.recorded.config}
        config |= {"seed": self.seed, **({"table": self.table} if self.table else {})}
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def _trained_on(self) -> frozenset[str]:
        """The questions that are left out, as some judge was trained on them."""
        return frozenset().union(*(judge.trained_on for judge in self.judges))

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items asked for, without the questions left out; one that no judge has judged is unscored."""
        return asked_items(self.gold, self.split, limit=self.options.limit, without_groups=self._trained_on)

    @cached_property
    def tied(self) -> tuple[Item, ...]:
        """The items beside them on which raters tie, for judges to stand where raters do: asked once."""
        return tied_items(self.gold, self.split, self.items, without_groups=self._trained_on)

    @property
    def _parts(self) -> list[tuple[tuple[Item, ...], RunOptions]]:
        return [
            (items, dataclasses.replace(self.options, repeats=repeats))
            for items, repeats in ((self.items, self.options.repeats), (self.tied, 1))
        ]

    def plan(self) -> CostEstimate:
        """Return the CostEstimate of the calls that the run would make; nothing is written."""
        stored = stored_rows(self.experiment.journal)
        return together([plan_calls(self.judges, items, stored, options) for items, options in self._parts])

    def check(self) -> None:
        """Refuse an unusable slug or a judge that does not fit the set, before anything is written."""
        _, items = self.experiment, (*self.items, *self.tied)
        require_prices(models_of(self.judges), self.options.budget_usd)
        for judge in self.judges:
            check_judge(self.gold, judge, items)
            judge.check_items(items)

    def run(self) -> tuple[AgreementResult, StoredExperiment]:
        """Make the calls that are due; return the AgreementResult and the StoredExperiment.

        That test labels were looked at is written down, if they were.
        """
        self.check()
        gold, experiment, options = self.gold, self.experiment, self.options
        table = AgreementTable(gold, self.items, self.options.repeats, self.seed, tied=self.tied)
        require_keys(self.judges, (*self.items, *self.tied), stored_rows(experiment.journal), options)
        notes = list(self.recorded.notes) if self.recorded else []
        for model, judge in ((judge.model, judge) for judge in self.judges):
            if single_calls(judge.fingerprint)[1] > 1 and model is not None and model.sent_temperature == 0:
                where = f"temperature = 1 under [models.{model.alias}] in judgecal.toml"
                notes.append(f"{judge.name}: its calls may be alike at temperature 0: set {where}")
        if n := len({item.group for item in gold.select(self.split)} & self._trained_on):
            notes.append(f"we left out {n} questions that a compiled judge was trained on")
        open_experiment(experiment)
        if self.table is not None:
            write_items(experiment.folder, gold)
        experiment.summary.unlink(missing_ok=True)  # broken off, it shows no earlier numbers
        judges = self.recorded.judges if self.recorded else self.judges
        columns = list(self.recorded.columns) if self.recorded else []
        keep_judges(experiment, judges)
        recorded = [column.stored for column in columns]
        with ExperimentJournal(experiment, self.judges, options, recorded) as journal:
            judged: dict[str, list[Judgement]] = {judge.name: [] for judge in self.judges}
            budget = Budget(options.budget_usd)
            for items, options_of_items in self._parts:
                for row in run_trials(
                    self.judges, items, journal=journal, options=options_of_items, budget=budget
                ):
                    judged[row.judge].append(row)
            free, floor, why = self._floor(table, journal)
        keep_judges(experiment, [*free, *judges])
        columns += [Verdicts.from_calls(judge, judged[judge.name]) for judge in self.judges]
        prints = {
            fingerprint for column in columns for fingerprint in values_of(column.rows, "judge_fingerprint")
        }
        below = (
            column for column in floor if prints.isdisjoint(row.judge_fingerprint for row in column.rows)
        )
        stored = StoredExperiment(
            experiment=experiment,
            gold=gold,
            items=self.items,
            tied=self.tied,
            split=self.split,
            judges=tuple(columns),
            floor=tuple(below),
            seed=self.seed,
            notes=tuple(notes),
        )
        if stored.holds_test:
            look_at_test(
                self.workspace.experiments,
                gold,
                self.items,
                experiment=experiment.slug,
                kind="report",
                by="report",
                judges=seen_judges(gold, self.items, [column.rows for column in columns]),
            )
        result = made_result(self.workspace, stored, floor, why)
        experiment.write_summary(result.as_json())
        return result, stored

    def _floor(
        self, table: AgreementTable, journal: Journal
    ) -> tuple[list[Judge], tuple[Verdicts, ...], str | None]:
        """Return the free Judges of an AgreementTable, run with a Journal, Verdicts, and why others lack."""
        names, drawn = {judge.name for judge in self.judges}, free_items(table.items, table.seed)
        free, columns, reasons = list[Judge](), list[Verdicts](), list[str]()
        shared: dict[str, Any] = {"journal": journal, "options": self.options, "budget": Budget(None)}
        for name in floor_judges(table, self.judges):
            try:
                judge = judge_named(name, workspace=self.workspace)
                check_judge(self.gold, judge, drawn)
                judge.check_items(drawn)
            except InputError as error:
                reasons.append(f"the floor lacks {name}: {error}")
                continue
            items = table.items if name in names else drawn
            free.append(judge)
            columns.append(Verdicts.from_calls(judge, run_trials([judge], items, label="floor", **shared)))
        return free, tuple(columns), "; ".join(reasons) or None


FLOOR_JUDGE = f"correctness_v3@{EMBEDDED}"
PAIR_FLOOR = ("longer_answer@local", f"pairwise_v1@{EMBEDDED}")
"""What stands below judges of pairs; the second where none of them has a signature."""
_REFERENCES = frozenset({"reference_answer", "reference_answers"})
_TEXTS = frozenset({"question", "answer", "answer_under_test", "response"})


def check_judge(gold: GoldSet, judge: Judge, items: Sequence[Item] = ()) -> None:
    """Refuse, for a GoldSet, a Judge that does not fit its scale, or some items."""
    refuse_unfit(judge, items)
    try:
        common_scale(gold.scale, item_scale(judge))
    except InputError as error:
        raise InputError(f"{judge.name} on gold set {gold.name}: {error}") from None


def floor_judges(table: AgreementTable, judges: Iterable[Judge]) -> tuple[str, ...]:
    """Return the names of the free judges that stand, on an AgreementTable, below some Judges.

    Where a judge compares an answer with a reference answer that is FLOOR_JUDGE, so that all such judges have
    one floor; so it is where there is no prompt judge.
    """
    pairs, below = any(item.pair for item in table.items), list[str]()
    for signature in (judge.signature for judge in judges if judge.signature is not None):
        inputs = frozenset(signature.inputs)
        compares = bool(inputs & _REFERENCES) and inputs <= _REFERENCES | _TEXTS
        shared = compares and table.gold.scale.numeric
        below.append(FLOOR_JUDGE if shared else f"{signature.name}@{EMBEDDED}")
    usual = PAIR_FLOOR[1] if pairs else FLOOR_JUDGE
    return tuple(dict.fromkeys([*PAIR_FLOOR[: int(pairs)], *(below or [usual])]))


def made_result(
    workspace: Workspace, stored: StoredExperiment, floor: Sequence[Verdicts], why: str | None
) -> AgreementResult:
    """Return the AgreementResult of a Workspace, StoredExperiment, floor Verdicts and text `why` or None."""
    table, config, gold = stored.table, stored.experiment.config, stored.gold
    configs = {str(judge["judge"]): judge for judge in config.get("judges", ())}
    columns = stored.judges
    names = [
        configured_name(configs[column.judge]) if column.judge in configs else column.judge
        for column in columns
    ]
    judges = [
        with_people(table, column, judge_entry(table, column), n_judges=len(columns)) for column in columns
    ]
    extra = {}
    if recorded := config.get("recorded"):
        extra["recorded"] = f"{recorded['file']}@{str(recorded['sha256'])[:12]}"
    notes = (*stored.notes, *split_notes(gold), *table.drawn_notes, *verdict_notes(gold.scale, columns))
    return AgreementResult(
        experiment=stored.experiment.slug,
        gold=summary_of_gold(table, stored.split),
        judges=tuple(judges),
        floor=(constant_entry(table), *(entry(Entry, table.asked_of(column), column) for column in floor)),
        raters=rater_entries(table, columns),
        test_looks=looks_so_far(workspace.experiments, gold),
        run_line=run_line(table, stored.split, names, extra),
        notes=notes,
        floor_reason=why,
        tie_breakers={rater: breaker.why for rater, breaker in gold.tie_breakers.items()},
        table=labelled_table(workspace, stored),
    )


def read_result(stored: StoredExperiment, workspace: Workspace) -> AgreementResult:
    """Read the AgreementResult of a StoredExperiment, with the looks at test of a Workspace by now."""
    result = stored.experiment.read_summary(AgreementResult)
    n_looks = looks_so_far(workspace.experiments, stored.gold)
    return dataclasses.replace(result, experiment=stored.experiment.slug, test_looks=n_looks)


def summary_of_gold(table: AgreementTable, split: str) -> GoldSummary:
    """Return the GoldSummary from an AgreementTable and a split: counts, scale, who labelled."""
    gold = table.gold
    return GoldSummary(
        set=gold.name,
        sha256=gold.sha256,
        split=split,
        n_items=len(table.items),
        n_groups=len(set(table.groups)),
        n_unlabelled=sum(item.item_id not in gold.labels for item in gold.select(split)),
        n_tied=len(table.tied),
        n_test_items=sum(item.group in gold.test_groups for item in table.items),
        labels_by=gold.card.labels_by,
        scale=str(gold.scale),
        pass_at=gold.scale.pass_at,
        noun="pairs" if any(item.pair for item in table.items) else "answers",
    )


def run_line(
    table: AgreementTable, split: str, judges: Sequence[str], extra: Mapping[str, Any] | None = None
) -> str:
    """Return a text that reproduces an AgreementTable, a split and judges' names: n, level, seed, version."""
    parts = {
        "gold": f"{table.gold.name}@{table.gold.sha256[:12]}",
        "split": split,
        "n": len(table.items),
        "groups": len(set(table.groups)),
        "repeats": table.repeats,
        "judges": ",".join(judges),
        **(extra or {}),
        "level": f"{table.level:.4g}",
        "by": "group",
        "seed": table.seed,
        "version": __version__,
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items())


def gold_config(gold: GoldSet) -> dict[str, Any]:
    """A gold set as a configuration records it."""
    return {"set": gold.name, "sha256": gold.sha256}


def judge_config(judge: Judge) -> dict[str, Any]:
    """Return a Judge as a dict for a configuration: enough to recognise the judge later."""
    config = {"judge": judge.name, "fingerprint": judge.fingerprint}
    if judge.signature is None or judge.model is None:
        return {**config, "kind": judge.kind, "scale": str(judge.scale)}
    return {**config, "signature_fingerprint": judge.signature.fingerprint, "model": judge.model.settings()}


def full_name(judge: Judge) -> str:
    """A judge for a run line: its string, fingerprint of its signature, model, and of all that it is."""
    return configured_name(judge_config(judge))


def configured_name(config: Mapping[str, Any]) -> str:
    """Return a judge's name with short fingerprints and model, from its configuration, a mapping."""
    prompt = [str(config["signature_fingerprint"])[:8], config["model"]["id"]] if "model" in config else []
    return f"{config['judge']}[{','.join([*prompt, str(config['fingerprint'])[:8]])}]"


def labelled_table(workspace: Workspace, stored: StoredExperiment) -> LabelledTable | None:
    """Return the LabelledTable of a StoredExperiment in a Workspace; None where it is of a gold set."""
    config = stored.experiment.config.get("table")
    if config is None:
        return None
    gold, groups = stored.gold, codes_of([item.group for item in stored.gold.items], len(stored.gold.items))
    recorded = [column for column in stored.judges if column.kind == "recorded" and gold.scale.numeric]
    return LabelledTable(
        file=config["file"],
        columns=config["columns"],
        left_out=tuple(config["left_out"]),
        notes=tuple(config["notes"]),
        rates=tuple(_rate(gold, groups, column, stored.seed) for column in recorded),
        keep=_keep(workspace, gold.name, config),
    )


def _keep(workspace: Workspace, name: str, config: Mapping[str, Any]) -> str:
    """The command that imports the table; with a workspace first, where there is none."""
    free, number, place, made, made_in = name, 2, "", "judgecal", "judgecal-workspace"
    if workspace.is_starter:
        place = "" if Path(made_in).exists() else f"judgecal init {made_in} && "
        made = f"judgecal --workspace {made_in}"
    while ((Path(made_in) / "gold" if workspace.is_starter else workspace.gold) / free).exists():
        free, number = f"{name}-{number}", number + 1
    return f"{place}{made} gold import {shlex.quote(config['file'])} --as {free} {config['options']}"


def _rate(gold: GoldSet, groups: Ints, column: Verdicts, seed: int) -> TableRate:
    people, common = gold.scale, common_scale(gold.scale, column.scale)
    verdicts = column.verdicts[column.rows_of(gold.items)][:, 0]
    if people.kind == "binary":
        passed = verdicts >= (0.5 if common.pass_at is None else common.pass_at)
        verdicts = np.where(np.isnan(verdicts), np.nan, passed)
    else:
        verdicts = rescaled(verdicts, column.scale, people)
    labels = np.array([gold.labels.get(item.item_id, np.nan) for item in gold.items], dtype=np.float64)
    at = np.flatnonzero(~np.isnan(labels))
    labelled = LabelledRows(at, labels[at])
    ends: dict[str, Any] = {"low": people.low, "high": people.high, "seed": seed}
    done = corrected_mean(verdicts, groups, labelled, **ends)
    raw = mean_estimate(verdicts, groups, low=people.low, high=people.high)
    drawn = True
    if len(at) < len(verdicts):
        filled = np.where(np.isnan(verdicts), raw.value or 0.0, verdicts)
        labelled = replace(labelled, label=filled[at])
        drawn = not selection_test(filled, groups, labelled, **ends).differs
    return TableRate(column.judge, raw, done.plain, done.estimate, drawn=drawn)
