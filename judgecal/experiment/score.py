"""`score`: every judge over a split, then the agreement table; and what every run writes of itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal._version import __version__
from judgecal.engine import Journal
from judgecal.errors import InputError
from judgecal.experiment.agreement import Column, StoredExperiment, Table, entry, judge_entry, verdict_notes
from judgecal.experiment.costs import CostEstimate, plan_calls, together
from judgecal.experiment.floor import (
    check_judge,
    constant_entry,
    floor_columns,
    floor_judges,
    no_floor_judge,
    with_floor,
)
from judgecal.experiment.folder import Experiment, keep_judges, open_experiment, plan_experiment
from judgecal.experiment.looks import look_at_test, looks_so_far, verdicts_sha
from judgecal.experiment.people import rater_entries, tied_items, with_people
from judgecal.experiment.result import AgreementResult, GoldSummary
from judgecal.experiment.trials import (
    Due,
    Judgements,
    RunOptions,
    judge_to_journal,
    models_of,
    open_journal,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.goldset import GoldSet, split_notes
from judgecal.judges import Judge, judge_named
from judgecal.records import Item
from judgecal.workspace import Workspace


def asked_items(
    gold: GoldSet, split: str, *, limit: int | None = None, without_groups: frozenset[str] = frozenset()
) -> tuple[Item, ...]:
    """The labelled items of a split, in file order, the first `limit` of them; refused without any."""
    items = tuple(i for i in gold.select(split, without_groups=without_groups) if i.item_id in gold.labels)
    if not items:
        raise InputError(f"gold set {gold.name}: split {split} holds no labelled item")
    return items[:limit]


def gold_config(gold: GoldSet) -> dict[str, Any]:
    """What a configuration says of its gold set."""
    return {"set": gold.name, "sha256": gold.sha256}


def judge_config(judge: Judge) -> dict[str, Any]:
    """What a configuration says of a judge: enough to know that it is the same one."""
    config = {"judge": judge.name, "fingerprint": judge.fingerprint}
    if judge.signature is None or judge.model is None:
        return {**config, "kind": judge.kind, "scale": str(judge.scale)}
    return {**config, "signature_fingerprint": judge.signature.fingerprint, "model": judge.model.settings()}


@dataclass(frozen=True, kw_only=True)
class ScoreRun:
    """Everything that `score` needs; nothing is written or called before `run`."""

    workspace: Workspace
    gold: GoldSet
    judges: tuple[Judge, ...]
    split: str = "open"
    options: RunOptions = field(default_factory=RunOptions)
    seed: int = 0
    out: str | None = None  # the slug of its experiment; None for the usual one

    @cached_property
    def experiment(self) -> Experiment:
        """Where it goes."""
        config = {
            "command": "score",
            "gold": gold_config(self.gold),
            "split": self.split,
            "judges": [judge_config(judge) for judge in self.judges],
            "repeats": self.options.repeats,
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def left_out(self) -> frozenset[str]:
        """The questions that are left out: on `open`, those that some judge was trained on."""
        trained = frozenset().union(*(judge.trained_on for judge in self.judges))
        return trained if self.split == "open" else frozenset()

    @property
    def items(self) -> tuple[Item, ...]:
        """The items asked for, without the questions left out."""
        return asked_items(self.gold, self.split, limit=self.options.limit, without_groups=self.left_out)

    @property
    def tied(self) -> tuple[Item, ...]:
        """The items beside them on which raters tie, for judges to stand where raters do: asked once."""
        return tied_items(self.gold, self.split, self.items, without_groups=self.left_out)

    def plan(self) -> CostEstimate:
        """What the run would call; nothing is written."""
        stored, judges = stored_rows(self.experiment.journal), self.judges
        planned = plan_calls(judges, self.items, stored, self.options)
        return together([planned, plan_calls(judges, self.tied, stored, self._once)])

    @property
    def _once(self) -> RunOptions:
        return dataclasses.replace(self.options, repeats=1)

    def check(self) -> None:
        """Hold the slug, and every judge against the set and its own needs, before anything is written."""
        _, items = self.experiment, (*self.items, *self.tied)
        self.options.check_models(models_of(self.judges))
        for judge in self.judges:
            check_judge(self.gold, judge, items)
            judge.check_items(items)

    def run(self) -> tuple[AgreementResult, StoredExperiment]:
        """Make the calls that are due; the result, and the experiment that it is of."""
        self.check()
        table = Table(self.gold, self.items, self.options.repeats, self.seed, tied=self.tied)
        stored = stored_rows(self.experiment.journal)
        require_keys(self.judges, (*table.items, *table.tied), stored, self.options)
        groups = {item.group for item in self.gold.select(self.split)}
        seen, notes = [judge.name for judge in self.judges if judge.trained_on & groups], list[str]()
        if seen:
            n = len(groups & frozenset().union(*(judge.trained_on for judge in self.judges)))
            what = "left out" if self.left_out else "among the items, so its numbers flatter it"
            notes.append(f"{n} questions that {', '.join(seen)} was trained on are {what}")

        def judged(journal: Journal) -> list[Column]:
            budget = self.options.open_budget(self.experiment.folder)
            if self.options.batch:  # else the two parts wait for a batch one after the other
                parts = [(table.items, self.options), (table.tied, self._once)]
                trials = [Due(judge, items, journal, how) for items, how in parts for judge in self.judges]
                judge_to_journal(trials, budget=budget, label="score")
            rows = run_trials(self.judges, table.items, journal=journal, options=self.options, budget=budget)
            tied = run_trials(self.judges, table.tied, journal=journal, options=self._once, budget=budget)
            return [Column.of(judge, [*rows.of(judge.name), *tied.of(judge.name)]) for judge in self.judges]

        return hold_against_people(
            self.workspace,
            self.experiment,
            table,
            self.split,
            self.judges,
            judged,
            options=self.options,
            notes=notes,
        )


def hold_against_people(
    workspace: Workspace,
    experiment: Experiment,
    table: Table,
    split: str,
    judges: Sequence[Judge],
    judged: Callable[[Journal], Sequence[Column]],
    *,
    options: RunOptions,
    notes: Sequence[str] = (),
) -> tuple[AgreementResult, StoredExperiment]:
    """Have judges judge the items of a table, and write what they come to beside people into an experiment.

    That test labels were looked at is written down, if they were.

    Args:
        judges: those that are called; they are kept for the report, and the floor stands below them.
        judged: brings their judgements into the journal, and gives all columns of the table.
    """
    gold = table.gold
    open_experiment(experiment)
    keep_judges(experiment, judges)
    with open_journal(experiment.journal, options) as journal:
        columns = tuple(judged(journal))
        names = [judge.name for judge in judges]
        floor, why = floor_columns(workspace, table, journal, options, judges=names)
    stored = StoredExperiment(
        experiment=experiment,
        gold=gold,
        items=table.items,
        tied=table.tied,
        split=split,
        columns=with_floor(columns, floor),
        asked=len(columns),
        seed=table.seed,
        notes=tuple(notes),
    )
    if any(gold.split_of(item.group) == "test" for item in table.items):
        look_at_test(
            workspace.experiments,
            gold,
            table.items,
            experiment=experiment.slug,
            kind="report",
            by="report",
            judges={
                row.judge_fingerprint: verdicts_sha(gold, table.items, column.rows)
                for column in columns
                for row in column.rows[:1]
            },
        )
    result = _result(workspace, stored, columns, floor, why)
    experiment.write_summary(result.as_json())
    return result, stored


def summary_of_gold(table: Table, split: str) -> GoldSummary:
    """The `gold` object of the contract, with what was left out for want of a label."""
    gold = table.gold
    return GoldSummary(
        set=gold.name,
        sha256=gold.sha256,
        split=split,
        n_items=len(table.items),
        n_groups=len(set(table.groups)),
        n_unlabelled=sum(item.item_id not in gold.labels for item in gold.select(split)),
        n_tied=len(table.tied),
        n_test_items=sum(gold.split_of(item.group) == "test" for item in table.items),
        labels_by=gold.card.labels_by,
        scale=str(gold.scale),
        pass_at=gold.scale.pass_at,
    )


def stored_result(
    stored: StoredExperiment, columns: Sequence[Column], workspace: Workspace
) -> AgreementResult:
    """What `score` and `agreement` printed, made again from the journal and the gold set alone.

    No model is called: a judge of the floor is there where the journal holds it, and else there is the
    reason. `columns` are its judges, priced where their prices are known.
    """
    below = stored.columns[stored.asked :]
    called = {column.judge: column for column in (*columns, *below) if column.kind != "recorded"}
    judges = [column.judge for column in columns if column.kind != "recorded"]
    wanted = floor_judges(workspace, stored.table, judges)
    names = dict.fromkeys([*wanted, *(column.judge for column in below)])
    floor = [called[name] for name in names if name in called]
    reasons = [
        no_floor_judge(stored.table, name) or f"the floor lacks {name}: the journal holds no judgement of it"
        for name in wanted
        if name not in called
    ]
    return _result(workspace, stored, columns, floor, "; ".join(reasons) or None)


def summarised_result(stored: StoredExperiment, workspace: Workspace) -> AgreementResult | None:
    """The result that `summary.json` holds, with the looks at test as they are now.

    None where it is not of this journal, gold set and code, or cannot be read: the journal tells it all
    again.
    """
    experiment, gold = stored.experiment, stored.gold
    if not experiment.is_summary_current:
        return None
    try:
        result = experiment.read_summary(AgreementResult)
    except InputError:
        return None  # damaged, or of another shape
    same = (result.gold.sha256, result.gold.n_items) == (gold.sha256, len(stored.items))
    if not same or not set(stored.notes) <= set(result.notes):
        return None
    n_looks = looks_so_far(workspace.experiments, gold)
    return dataclasses.replace(result, experiment=experiment.slug, test_looks=n_looks)


def _result(
    workspace: Workspace,
    stored: StoredExperiment,
    columns: Sequence[Column],
    floor: Sequence[Column],
    why: str | None,
) -> AgreementResult:
    table, config = stored.table, stored.experiment.config
    configs = {str(judge["judge"]): judge for judge in config.get("judges", ())}
    recorded = config.get("recorded")
    return AgreementResult(
        experiment=stored.experiment.slug,
        gold=summary_of_gold(table, stored.split),
        judges=tuple(
            with_people(table, column, judge_entry(table.of(column), column), n_judges=len(columns))
            for column in columns
        ),
        floor=(constant_entry(table), *(entry(table, column) for column in floor)),
        raters=rater_entries(table, columns),
        test_looks=looks_so_far(workspace.experiments, stored.gold),
        run_line=run_line(
            dataclasses.replace(table, repeats=max(table.of(column).repeats for column in columns)),
            stored.split,
            [_name_in_run_line(column, configs.get(column.judge)) for column in columns],
            recorded and {"recorded": f"{recorded['file']}@{str(recorded['sha256'])[:12]}"},
        ),
        notes=(
            *stored.notes,
            *split_notes(stored.gold),
            *table.drawn_notes,
            *verdict_notes(stored.gold.scale, columns),
        ),
        floor_reason=why,
        tie_breakers={rater: breaker.why for rater, breaker in stored.gold.tie_breakers.items()},
    )


def run_line(table: Table, split: str, judges: Sequence[str], extra: Mapping[str, Any] | None = None) -> str:
    """The line that reproduces a table: set@sha, split, n, judges, how intervals are made, seed, version."""
    parts = [f"gold:{table.gold.name}@{table.gold.sha256[:12]}", f"split:{split}", f"n:{len(table.items)}"]
    parts += [f"groups:{len(set(table.groups))}", f"repeats:{table.repeats}", f"judges:{','.join(judges)}"]
    parts += [f"{key}:{value}" for key, value in (extra or {}).items()]
    return "|".join(
        [*parts, f"level:{table.level:.4g}", "by:group", f"seed:{table.seed}", f"version:{__version__}"]
    )


def full_name(judge: Judge) -> str:
    """A judge for a run line: its string, fingerprint of its signature, model, and of all that it is."""
    return _configured_name(judge_config(judge))


def _name_in_run_line(column: Column, config: Mapping[str, Any] | None) -> str:
    """As `full_name`; of a judge that the configuration does not list, what its judgements tell."""
    if config is not None:
        return _configured_name(config)
    called = column.kind != "recorded" and column.rows
    return f"{column.judge}[{column.rows[0].judge_fingerprint[:8]}]" if called else column.judge


def _configured_name(config: Mapping[str, Any]) -> str:
    prompt = [str(config["signature_fingerprint"])[:8], config["model"]["id"]] if "model" in config else []
    return f"{config['judge']}[{','.join([*prompt, str(config['fingerprint'])[:8]])}]"


def score(
    judge: Judge | str,
    gold: GoldSet,
    *,
    split: str = "open",
    repeats: int = 1,
    limit: int | None = None,
    budget_usd: float | None = None,
    journal: str | Path | None = None,
    batch: bool = False,
    quiet: bool = True,
) -> Judgements:
    """Have one judge judge a split of a gold set: a row an item and repeat, unscored ones included.

    >>> rows = judgecal.score("exact_match@local", judgecal.load_gold("starter"), limit=3)
    >>> [row.verdict for row in rows], len(rows.unscored)
    ([0.0, 0.0, 0.0], 0)

    Args:
        split: train, dev, test, open or all; on `open` the questions that the judge was trained on are left
            out.
        limit: only the first so many items.
        budget_usd: money that may be spent.
        journal: a `judgements.jsonl` to resume from and to append to; None keeps nothing.
        batch: by the batch API of the judge's provider, at half the price and within a day; it takes a
            journal.
        quiet: no progress on stderr.
    """
    judge = judge_named(judge) if isinstance(judge, str) else judge
    options = RunOptions(repeats=repeats, limit=limit, budget_usd=budget_usd, quiet=quiet, batch=batch)
    options.check()
    options.check_models(models_of([judge]))
    check_judge(gold, judge)
    trained = judge.trained_on if split == "open" else frozenset[str]()
    items = asked_items(gold, split, limit=limit, without_groups=trained)
    with open_journal(None if journal is None else Path(journal), options) as rows:
        return run_trials([judge], items, journal=rows, options=options)
