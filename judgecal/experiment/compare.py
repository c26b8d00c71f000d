"""`compare`: judges of an experiment held against each other on the same items."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from judgecal.errors import InputError, listed
from judgecal.experiment.agreement import GoldSummary, StoredExperiment, verdict_notes
from judgecal.experiment.agreement_table import Verdicts
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.looks import look_at_test, looks_so_far, seen_judges
from judgecal.experiment.score import gold_config, run_line, summary_of_gold
from judgecal.experiment.stored import Unread, read_experiment, unread_of
from judgecal.records import Result, as_plain
from judgecal.stats import (
    PLANNED_DISCORDANCE,
    POWER,
    PairComparison,
    compare_all,
    leading_metric,
    metric_facts,
    metric_named,
)
from judgecal.stats.significance import N_PERM
from judgecal.workspace import Workspace, find_workspace

_DRAWS_BELOW, _MOST_DRAWS = 20, 2_000_000  # so many at the level itself; a limit to the time that it takes


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two judges by name, and what the data say of them."""

    a: str
    b: str
    comparison: PairComparison


@dataclass(frozen=True, slots=True)
class CompareResult(Result):
    """What `compare` comes to."""

    experiment: str  # the slug of the comparison itself
    compared_from: str  # that of the experiment which holds the judges
    metric: str
    compared: Annotated[tuple[ComparedPair, ...], Field(min_length=1)]  # every two of the judges
    level: float  # nominal coverage, after the looks at test are paid for
    gold: GoldSummary
    test_looks: int  # decisions taken on the set's test labels so far
    test_look: str | None  # what this comparison adds to them, in words; None where it sees no test item
    reused: bool  # whether the test labels had served a decision before
    notes: tuple[str, ...]  # what else the reader must know, a sentence each without its full stop
    run_line: str
    unread: Unread | None = None

    @property
    def pairs(self) -> dict[tuple[str, str], PairComparison]:
        """The comparisons by the names of the judges."""
        return {(pair.a, pair.b): pair.comparison for pair in self.compared}

    def as_json(self) -> dict[str, Any]:
        """Return the result as the contract's JSON object: flat for two judges, with `pairs` for more."""
        plain = {**as_plain(self), "planning": {"power": POWER, "discordance": PLANNED_DISCORDANCE}}
        del plain["compared"]
        pairs = []
        for (a, b), compared in self.pairs.items():
            pair = {**as_plain(compared), "a": a, "b": b, "a_value": compared.a, "b_value": compared.b}
            for end in ("complete_case", "raw"):  # without how they were made
                if pair[end] is not None:
                    pair[end] = {name: pair[end][name] for name in ("a", "b", "difference", "p_value")}
            pairs.append(pair)
        return {**plain, "pairs": pairs} if len(pairs) > 1 else {**pairs[0], **plain}


def draws(level: float, n_judges: int) -> int:
    """Return the number of sign flips that can show p below 1 - level after Holm, for n_judges judges."""
    pairs = n_judges * (n_judges - 1) // 2
    return min(_MOST_DRAWS, max(N_PERM, math.ceil(_DRAWS_BELOW * pairs / (1.0 - level))))


@dataclass(frozen=True)
class CompareRun:
    """Everything that `compare` needs."""

    workspace: Workspace
    stored: StoredExperiment
    names: tuple[str, ...] = ()  # the judges to compare; none for all that the experiment asked for
    metric: str | None = None  # by which; the leading one of the set where not given
    level: float = 0.95  # nominal coverage, before the looks at test are paid for
    seed: int = 0  # of the sign flips
    out: str | None = None  # the slug of the comparison's own experiment; None for the usual one

    def check(self) -> Experiment:
        """Refuse what cannot be compared, and return the planned Experiment; nothing is written."""
        self._compared(self.level, n_perm=1)
        config = {
            "command": "compare",
            "gold": gold_config(self.stored.gold),
            "compared_from": self.stored.experiment.slug,
            "judges": [column.judge for column in self.columns],
            "metric": self._metric,
            "level": self.level,
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def _metric(self) -> str:
        metric = self.metric or leading_metric(self.stored.gold.scale)
        metric_named(metric, self.stored.gold.scale)
        return metric

    @cached_property
    def columns(self) -> tuple[Verdicts, ...]:
        columns = tuple(self.stored.column(name) for name in self.names) or self.stored.judges
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise InputError(f"{', '.join(twice)} is named twice: a comparison takes different judges")
        if len(columns) < 2:
            names = ", ".join(column.judge for column in self.stored.columns)
            raise InputError(f"a comparison takes two judges; {self.stored.experiment.slug} holds {names}")
        return columns

    def run(self) -> CompareResult:
        """Compare every two of the judges, write the result into its experiment and return it."""
        experiment = self.check()  # what is wrong is told before a look is logged
        open_experiment(experiment)
        stored, columns, metric = self.stored, self.columns, self._metric
        gold, slug = stored.gold, stored.experiment.slug
        look = None
        if stored.holds_test:
            look = look_at_test(
                self.workspace.experiments,
                gold,
                stored.items,
                experiment=experiment.slug,
                kind="decision",
                by=f"compare by {metric}",  # the same judges by the same metric are the same look
                judges=seen_judges(gold, stored.items, [column.rows for column in columns]),
            )
        level = look.level_within(self.level) if look else self.level
        table = dataclasses.replace(stored.table, seed=self.seed, level=level, tied=())
        notes, names = [], []
        for column in columns:
            judged = {row.item_id for row in column.rows}
            absent = [item.item_id for item in stored.items if item.item_id not in judged]
            if absent:
                items = f"{len(absent)} items ({listed(absent, sealed=gold.test_ids)})"
                notes.append(f"{column.judge} has no judgement of {items}: they count as wrong")
            names += [f"{column.judge}[{row.judge_fingerprint[:8]}]" for row in column.rows[:1]]
        notes += [*stored.notes, *table.drawn_notes, *verdict_notes(gold.scale, columns)]
        extra = {"experiment": slug, "metric": metric}
        result = CompareResult(
            experiment=experiment.slug,
            compared_from=slug,
            metric=metric,
            compared=self._compared(level, n_perm=draws(level, len(columns))),
            level=level,
            gold=summary_of_gold(table, stored.split),
            test_looks=look.number if look else looks_so_far(self.workspace.experiments, gold),
            test_look=look.sentence(gold.name, self.level) if look else None,
            reused=bool(look and look.reused),
            notes=tuple(notes),
            run_line=run_line(table, stored.split, names, extra),
            unread=unread_of(dataclasses.replace(stored, judges=columns, floor=())),
        )
        experiment.write_summary(as_plain(result))
        return result

    def _compared(self, level: float, *, n_perm: int) -> tuple[ComparedPair, ...]:
        table = dataclasses.replace(self.stored.table, seed=self.seed, level=level)
        judges = {column.judge: column for column in self.columns}
        facts, scales = metric_facts(self._metric), {name: column.scale for name, column in judges.items()}
        once = table.deciding(judges, calibrated=facts.calibrated)
        raw = {name: table.verdicts(column) for name, column in judges.items()}
        options: dict[str, Any] = {"scales": scales, "metric": self._metric, "n_perm": n_perm}
        compared = compare_all(table.labels, raw, deciding=once, **options, **table.shared)
        return tuple(ComparedPair(a, b, comparison) for (a, b), comparison in compared.items())


def compare(
    experiment: str | Path,
    *judges: str,
    metric: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> CompareResult:
    """Compare judges, by their names, of an experiment on the same items: a CompareResult.

    Where the items are of test this is a look, which `experiments/test_looks.jsonl` then holds. For arrays
    of labels and verdicts there is `judgecal.stats.compare`, which counts none.

    Args:
        experiment: its slug, or the path of its folder.
        judges: two or more; all that the experiment asked for where none is named.
        metric: by which; the leading one of the labels' scale where not given.
        level: nominal coverage of the intervals, before looks at test are paid for.
        name: slug of the new experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    stored = read_experiment(where, str(experiment))
    return CompareRun(where, stored, judges, metric=metric, level=level, seed=seed, out=name).run()
