"""`score` and `agreement`: judges over a split beside people, called here or recorded anywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, require_prices
from judgecal.errors import InputError
from judgecal.experiment.agreement import AgreementResult, StoredExperiment
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, free_items
from judgecal.experiment.folder import Experiment, keep_judges, open_experiment, plan_experiment
from judgecal.experiment.judgements import values_of, write_items
from judgecal.experiment.looks import look_at_test, seen_judges
from judgecal.experiment.people import tied_items
from judgecal.experiment.recorded import Recorded, read_labelled_table
from judgecal.experiment.summary import check_judge, floor_columns, gold_config, judge_config, made_result
from judgecal.experiment.trials import (
    CostEstimate,
    RunOptions,
    models_of,
    open_experiment_journal,
    plan_calls,
    require_keys,
    run_trials,
    stored_rows,
    together,
)
from judgecal.goldset import Columns, GoldSet
from judgecal.judges import Judge, judge_named, single_calls
from judgecal.records import Item, Judgement
from judgecal.workspace import Workspace


def asked_items(
    gold: GoldSet, split: str, *, limit: int | None = None, without_groups: frozenset[str] = frozenset()
) -> tuple[Item, ...]:
    """The labelled items of a split of a set, in file order, the first `limit`; refused without any."""
    items = tuple(i for i in gold.select(split, without_groups=without_groups) if i.item_id in gold.labels)
    if not items:
        raise InputError(f"gold set {gold.name}: split {split} holds no labelled item")
    return items[:limit]


@dataclass(frozen=True, kw_only=True)
class ScoreRun:
    """Everything that `score` and `agreement` need; nothing is written or called before `run`."""

    workspace: Workspace
    gold: GoldSet
    judges: tuple[Judge, ...]  # that are called, or call nobody
    recorded: Recorded | None = None  # then no model is called, and the judges stand beside these
    split: str = "open"
    options: RunOptions = field(default_factory=RunOptions)
    seed: int = 0
    out: str | None = None  # the slug of its experiment; None for the usual one
    table: Mapping[str, Any] | None = None  # that the set was made of, where it is none of the workspace

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that the run writes to."""
        judges = [judge_config(judge) for judge in self.judges]
        config: dict[str, Any] = {"command": "score", "gold": gold_config(self.gold), "split": self.split}
        if self.recorded is None:
            config |= {"judges": judges, "repeats": self.options.repeats}
        else:
            config |= {"command": "agreement", "recorded": self.recorded.config}
            config |= {"judges": judges} if judges else {}
        config |= {"seed": self.seed, **({"table": self.table} if self.table else {})}
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def left_out(self) -> frozenset[str]:
        """The questions that are left out: on `open`, those that some judge was trained on."""
        return self._trained_on if self.split == "open" else frozenset()

    @property
    def _trained_on(self) -> frozenset[str]:
        return frozenset().union(*(judge.trained_on for judge in self.judges))

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The items asked for, without the questions left out; one that no judge has judged is unscored."""
        items = asked_items(self.gold, self.split, limit=self.options.limit, without_groups=self.left_out)
        return free_items(items, self.seed) if self.table is not None and self.recorded is None else items

    @cached_property
    def tied(self) -> tuple[Item, ...]:
        """The items beside them on which raters tie, for judges to stand where raters do: asked once."""
        return tied_items(self.gold, self.split, self.items, without_groups=self.left_out)

    @property
    def _parts(self) -> list[tuple[tuple[Item, ...], RunOptions]]:
        return [(self.items, self.options), (self.tied, dataclasses.replace(self.options, repeats=1))]

    def plan(self) -> CostEstimate:
        """The cost of the calls that the run would make; nothing is written."""
        stored = stored_rows(self.experiment.journal)
        return together([plan_calls(self.judges, items, stored, options) for items, options in self._parts])

    def check(self) -> None:
        """Refuse an unusable slug or a judge that does not fit the set, before anything is written."""
        _, items = self.experiment, (*self.items, *self.tied)
        require_prices(models_of(self.judges), self.options.budget_usd)
        for judge in self.judges:
            if self.recorded is not None and judge.name in [column.judge for column in self.recorded.columns]:
                raise InputError(f"{self.recorded.name} holds a judge {judge.name} too: rename it there")
            calls = not (judge.model is None or judge.model.embedded)
            if self.recorded is not None and (judge.trained_on or calls):
                why = "was trained on labels" if judge.trained_on else "calls a model"
                raise InputError(
                    f"{judge.name} {why}: agreement makes no calls, so use judgecal score for it"
                )
            check_judge(self.gold, judge, items)
            judge.check_items(items)

    def run(self) -> tuple[AgreementResult, StoredExperiment]:
        """Make the calls that are due and hold all judges against people; return the result and its
        experiment.

        That test labels were looked at is written down, if they were.
        """
        self.check()
        gold, experiment, options = self.gold, self.experiment, self.options
        table = AgreementTable(gold, self.items, options.repeats, self.seed, tied=self.tied)
        require_keys(self.judges, (*self.items, *self.tied), stored_rows(experiment.journal), options)
        notes = list(self.recorded.notes) if self.recorded else []
        for model, judge in ((judge.model, judge) for judge in self.judges):
            if single_calls(judge.fingerprint)[1] > 1 and model is not None and model.sent_temperature == 0:
                where = f"temperature = 1 under [models.{model.alias}] in judgecal.toml"
                notes.append(f"{judge.name}: its calls may be alike at temperature 0: set {where}")
        groups = {item.group for item in gold.select(self.split)}
        if seen := [judge.name for judge in self.judges if judge.trained_on & groups]:
            what = "left out" if self.left_out else "among the items, so its numbers flatter it"
            n = len(groups & self._trained_on)
            notes.append(f"{n} questions that {', '.join(seen)} was trained on are {what}")
        n_labelled = len(gold.labels)
        if self.table is not None and len(self.items) < n_labelled:
            drawn = f"{len(self.items):,} of {n_labelled:,} labelled answers"
            notes.append(f"free judges answer {drawn}, drawn by question")
        open_experiment(experiment)
        keep_judges(experiment, self.judges)
        columns = list(self.recorded.columns) if self.recorded else []
        recorded = [column.stored for column in columns]
        with open_experiment_journal(experiment, self.judges, options, recorded) as journal:
            judged: dict[str, list[Judgement]] = {judge.name: [] for judge in self.judges}
            budget, names = Budget(options.budget_usd), list(judged)
            for items, options_of_items in self._parts:
                for row in run_trials(
                    self.judges, items, journal=journal, options=options_of_items, budget=budget
                ):
                    judged[row.judge].append(row)
            free, floor, why = floor_columns(self.workspace, table, journal, options, names)
        keep_judges(experiment, [*free, *self.judges])
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
        result = made_result(self.workspace, stored, columns, floor, why)
        experiment.write_summary(result.as_json())
        return result, stored


_FREE = (
    "pairwise_v1@embedded", "longer_answer@local",
    "correctness_v3@embedded", "token_f1@local", "faithfulness_overlap@local", "relevancy_overlap@local",
)  # fmt: skip
"""The judges that stand where the table has none, each where it finds what it reads."""


def run_of_table(
    workspace: Workspace,
    file: Path,
    columns: Columns,
    *,
    scale: str | None = None,
    mapping: Mapping[str, str] | None = None,
    verdict_scale: str | None = None,
    labels_by: str | None = None,
    encoding: str | None = None,
    judges: tuple[Judge, ...] = (),
    **run: Any,
) -> ScoreRun:
    """The run that holds the judges in a table's columns, or else the free judges, against its labels.

    Its rows stay as Parquet in the experiment's folder, for its page; no split of it is sealed, as whoever
    has such a table has seen all of it. What `columns` leaves open the names tell; `scale` and `mapping` are
    those of `import_gold`, `judges` stand beside the table's own and call nobody, `run` as `ScoreRun`.
    """
    of_import: dict[str, Any] = {"scale": scale, "mapping": mapping, "labels_by": labels_by}
    gold, recorded, config = read_labelled_table(file, columns, verdict_scale, encoding=encoding, **of_import)
    if recorded is None:
        judges = (*judges, *_free_judges(gold, workspace))
    of_table: dict[str, Any] = {"recorded": recorded, "judges": judges, "split": "all", "table": config}
    made_run = ScoreRun(workspace=workspace, gold=gold, **of_table, **run)
    made_run.check()
    open_experiment(made_run.experiment)
    write_items(made_run.experiment.folder, gold)
    return made_run


def _free_judges(gold: GoldSet, workspace: Workspace) -> list[Judge]:
    able, why = list[Judge](), ""
    for judge in (judge_named(name, workspace=workspace) for name in _FREE):
        try:
            check_judge(gold, judge, gold.items)
            judge.check_items(gold.items)
            able.append(judge)
        except InputError as error:
            why = error.problems[0]
    if not able:
        raise InputError(f"no column holds a judge's verdicts, and no free judge can stand there: {why}")
    return able
