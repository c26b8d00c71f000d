"""`compare`: judges of an experiment held against each other on the same items."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator

from judgecal.errors import InputError, listed, notice
from judgecal.experiment.agreement import Column, StoredExperiment, Table, verdict_matrix, verdict_notes
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.looks import Look, foresee_look, look_at_test, looks_so_far, verdicts_sha
from judgecal.experiment.losses import prompt_model_grid
from judgecal.experiment.result import GoldSummary
from judgecal.experiment.score import gold_config, run_line, summary_of_gold
from judgecal.experiment.stored import Unread, unread_of
from judgecal.goldset import GoldSet
from judgecal.records import Judgement, Result, as_plain
from judgecal.scale import Scale
from judgecal.stats import (
    PLANNED_DISCORDANCE,
    POWER,
    Comparison,
    Interaction,
    compare_all,
    leading_metric,
    metric_named,
)
from judgecal.stats import compare as compare_arrays
from judgecal.stats.significance import N_PERM
from judgecal.workspace import Workspace, find_workspace

_DRAWS_BELOW, _MOST_DRAWS = 20, 2_000_000  # so many at the level itself; a limit to the time that it takes


def _pairs_by_name(stored: Any) -> Any:
    """The pairs as `CompareResult.as_stored` writes them, by the names of their judges."""
    pairs = stored if isinstance(stored, list) else []
    named = [isinstance(one, dict) and {type(one.get(side)) for side in "ab"} == {str} for one in pairs]
    if not pairs or not all(named):
        raise ValueError("must list the pairs, each with a, b and comparison")
    return {(one["a"], one["b"]): one.get("comparison") for one in pairs}


@dataclass(frozen=True, slots=True)
class CompareResult(Result):
    """What `compare` comes to.

    Attributes:
        experiment: the slug of the comparison itself.
        compared_from: that of the experiment which holds the judges.
        pairs: every two of the judges, by name; in the JSON of two judges, the one pair's keys stand at the
            top.
        level: nominal coverage, after the looks at test are paid for.
        test_looks: decisions taken on the set's test labels so far.
        test_look: what this comparison adds to them, in words; None where it sees no test item.
        reused: whether the test labels had served a decision before.
        notes: what else the reader must know, a sentence each without its full stop.
        interaction: of prompt and model, where the judges make a whole grid.
    """

    experiment: str
    compared_from: str
    metric: str
    pairs: Annotated[Mapping[tuple[str, str], Comparison], BeforeValidator(_pairs_by_name)] = field(
        metadata={"json": False}
    )
    level: float
    gold: GoldSummary
    test_looks: int
    test_look: str | None
    reused: bool
    notes: tuple[str, ...]
    run_line: str
    interaction: Interaction | None = field(default=None, metadata={"json": False})
    unread: Unread | None = None

    def as_json(self) -> dict[str, Any]:
        """The contract's object: flat for two judges, with `pairs` for more."""
        plain = {**Result.as_json(self), "planning": {"power": POWER, "discordance": PLANNED_DISCORDANCE}}
        if self.interaction is not None:
            plain["interaction"] = _grid_json(self.interaction)
        pairs = [_pair_json(a, b, found) for (a, b), found in self.pairs.items()]
        return {**plain, "pairs": pairs} if len(pairs) > 1 else {**pairs[0], **plain}

    def as_stored(self) -> dict[str, Any]:
        """All of it, as `summary.json` holds it and `Experiment.read_summary` reads it."""
        pairs = [{"a": a, "b": b, "comparison": found} for (a, b), found in self.pairs.items()]
        return {**as_plain(self), "pairs": pairs, "interaction": self.interaction}


def _pair_json(a: str, b: str, found: Comparison) -> dict[str, Any]:
    plain = {**as_plain(found), "a": a, "b": b, "a_value": found.a, "b_value": found.b}
    for end in ("complete_case", "best_case", "raw"):  # without how they were made
        if plain[end] is not None:
            plain[end] = {name: plain[end][name] for name in ("a", "b", "difference", "p_value")}
    return plain


def _grid_json(found: Interaction) -> dict[str, Any]:
    cells = [
        {"signature": one.row, "model": one.column, "deviation": one.deviation, "p_adjusted": one.p_adjusted}
        for one in found.cells
    ]
    return {**as_plain(found), "cells": cells}


def _draws(level: float, n_judges: int) -> int:
    """Sign flips that can show a p value below 1 - level after Holm: the lowest is one in so many draws."""
    pairs = n_judges * (n_judges - 1) // 2
    return min(_MOST_DRAWS, max(N_PERM, math.ceil(_DRAWS_BELOW * pairs / (1.0 - level))))


@dataclass(frozen=True, slots=True)
class CompareRun:
    """Everything that `compare` needs.

    Attributes:
        names: the judges to compare; none for all that the experiment asked for.
        metric: by which; the leading one of the set where not given.
        level: nominal coverage, before the looks at test are paid for.
        seed: of the sign flips.
        out: the slug of the comparison's own experiment; None for the usual one.
    """

    workspace: Workspace
    stored: StoredExperiment
    names: tuple[str, ...] = ()
    metric: str | None = None
    level: float = 0.95
    seed: int = 0
    out: str | None = None

    def check(self) -> Experiment:
        """Refuse what cannot be done before anything is written; gives where the result goes.

        Raises:
            InputError: as `columns` and `plan_experiment`; or the metric does not fit the set or the judges.
        """
        self._compared(self.columns, self._metric, self.level, n_perm=1)
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

    @property
    def _metric(self) -> str:
        metric = self.metric or leading_metric(self.stored.gold.scale)
        metric_named(metric, self.stored.gold.scale)
        return metric

    @property
    def columns(self) -> tuple[Column, ...]:
        """The judges compared.

        Raises:
            InputError: one is unknown or named twice, or there is only one.
        """
        if not self.names:
            columns = self.stored.columns[: self.stored.asked]
        else:
            columns = tuple(self.stored.column(name) for name in self.names)
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise InputError(f"{', '.join(twice)} is named twice: a comparison takes different judges")
        if len(columns) < 2:
            known = ", ".join(column.judge for column in self.stored.columns)
            raise InputError(f"a comparison takes two judges; {self.stored.experiment.slug} holds {known}")
        return columns

    def run(self) -> CompareResult:
        """Compare every two of the judges, and write the result into the comparison's experiment.

        Raises:
            InputError: as `check`.
        """
        experiment = self.check()  # what is wrong is told before a look is logged
        columns, gold, metric = self.columns, self.stored.gold, self._metric
        open_experiment(experiment)
        look = self._look(columns, metric, experiment)
        level = look.level_within(self.level) if look else self.level
        table = Table(gold, self.stored.items, self._repeats(columns), self.seed, level)
        prompted = [(column, self._repeats([column])) for column in columns if column.cell is not None]
        result = CompareResult(
            experiment=experiment.slug,
            compared_from=self.stored.experiment.slug,
            metric=metric,
            pairs=self._compared(columns, metric, level, n_perm=_draws(level, len(columns))),
            level=level,
            gold=summary_of_gold(table, self.stored.split),
            test_looks=look.number if look else looks_so_far(self.workspace.experiments, gold),
            test_look=look.sentence(gold.name, self.level) if look else None,
            reused=bool(look and look.reused),
            notes=tuple(self._notes(columns)),
            run_line=self._run_line(table, columns, metric),
            interaction=prompt_model_grid(table, prompted, metric).tested,
            unread=unread_of(dataclasses.replace(self.stored, columns=columns, asked=len(columns))),
        )
        experiment.write_summary(result.as_stored())
        return result

    def unlooked(self) -> dict[tuple[str, str], Comparison]:
        """Every pair, without a decision and without a look at test; nothing is written.

        Raises:
            InputError: as `columns`; or test items are held, which only a comparison looks at.
        """
        columns = self.columns
        if self._holds_test:
            raise InputError(
                f"{self.stored.experiment.slug} holds test items, and a plan looks at no test label: "
                "compare the two with judgecal compare, and plan from that experiment"
            )
        return self._compared(columns, self._metric, self.level, n_perm=_draws(self.level, len(columns)))

    def _compared(
        self, columns: Sequence[Column], metric: str, level: float, *, n_perm: int
    ) -> dict[tuple[str, str], Comparison]:
        table = self.stored.table
        verdicts = {one.judge: verdict_matrix(one.rows, table.items, self._repeats([one])) for one in columns}
        return compare_all(
            table.labels,
            verdicts,
            scale=table.gold.scale,
            scales={column.judge: column.scale for column in columns},
            metric=metric,
            groups=table.groups,
            level=level,
            seed=self.seed,
            n_perm=n_perm,
            weights=table.weights,
        )

    def _repeats(self, columns: Sequence[Column]) -> int:
        """As many as were asked for; of recorded judgements, as many as a judge gave."""
        asked = self.stored.experiment.config.get("repeats", 1)
        return max([int(asked), *(1 + row.repeat for column in columns for row in column.rows)])

    def _look(self, columns: Sequence[Column], metric: str, experiment: Experiment) -> Look | None:
        """Write a decision on test labels down; None where no test item is held."""
        seen = self._seen(columns, metric)
        if not self._holds_test:
            return None
        return look_at_test(**seen, experiment=experiment.slug, kind="decision")

    def foresee(self) -> Look | None:
        """Which decision on test labels a run would take; None where it sees no test item.

        Raises:
            InputError: as `check`.
        """
        self.check()
        seen = self._seen(self.columns, self._metric)
        return foresee_look(**seen) if self._holds_test else None

    @property
    def _holds_test(self) -> bool:
        return any(self.stored.gold.split_of(item.group) == "test" for item in self.stored.items)

    def _seen(self, columns: Sequence[Column], metric: str) -> dict[str, Any]:
        """What makes a look: the same judges by the same metric are the same one."""
        return {
            "experiments": self.workspace.experiments,
            "gold": self.stored.gold,
            "items": self.stored.items,
            "by": f"compare by {metric}",
            "judges": {
                row.judge_fingerprint: verdicts_sha(self.stored.gold, self.stored.items, column.rows)
                for column in columns
                for row in column.rows[:1]
            },
        }

    def _notes(self, columns: Sequence[Column]) -> list[str]:
        notes = []
        for column in columns:
            judged = {row.item_id for row in column.rows}
            absent = [item.item_id for item in self.stored.items if item.item_id not in judged]
            if absent:
                named = listed(absent, sealed=self.stored.gold.test_ids)
                notes.append(
                    f"{column.judge} has no judgement of {len(absent)} items ({named}): they count as "
                    "unscored"
                )
        stored = self.stored
        return [*notes, *stored.notes, *stored.table.drawn_notes, *verdict_notes(stored.gold.scale, columns)]

    def _run_line(self, table: Table, columns: Sequence[Column], metric: str) -> str:
        judges = [
            f"{column.judge}[{column.rows[0].judge_fingerprint[:8]}]" for column in columns if column.rows
        ]
        extra = {"experiment": self.stored.experiment.slug, "metric": metric}
        return run_line(table, self.stored.split, judges, extra)


def compare(
    gold_labels: GoldSet | Iterable[object],
    a_labels: Iterable[object],
    b_labels: Iterable[object],
    *,
    scale: Scale | str | None = None,
    metric: str | None = None,
    groups: Iterable[Hashable] | None = None,
    a_scale: Scale | str | None = None,
    b_scale: Scale | str | None = None,
    level: float = 0.95,
    seed: int = 0,
    n_perm: int = N_PERM,
    calibrate: bool = True,
) -> Comparison:
    """Compare two judges, paired on the same items: `judgecal.compare`, of a gold set or of plain arrays.

    >>> found = judgecal.compare([1, 0, 1, 0], [1, 0, 1, 1], [1, 1, 1, 0], scale="binary")
    >>> found.decision, found.why
    ('cannot tell', '4 groups: fewer than 10 give no interval')

    With a gold set the two sides are `Judgement` rows, as `judgecal.score` gives them, and the set says
    labels, scale and questions. Where they are of test items, that is a look: it is written into
    `experiments/test_looks.jsonl` of the workspace, said on stderr, and the decision is taken at the level
    that it leaves. Arrays do not say whether they are of a sealed test split: nothing is counted, and a
    `level` that pays for earlier looks is the caller's.

    Args:
        gold_labels: a gold set, or n labels of people.
        a_labels, b_labels: judgements of the set's items, or n verdicts (n x R); on the people's scale where
            `a_scale`, `b_scale` are not given.
        scale, groups: of arrays only, where `scale` must be given; the others as in `stats.compare`.

    Raises:
        InputError: as `stats.compare`; or a gold set comes with arrays, `scale` or `groups`, or no row is of
            it.
    """
    how: dict[str, Any] = {
        "metric": metric,
        "a_scale": a_scale,
        "b_scale": b_scale,
        "level": level,
        "seed": seed,
    }
    how |= {"n_perm": n_perm, "calibrate": calibrate}
    if isinstance(gold_labels, GoldSet):
        if scale is not None or groups is not None:
            raise InputError(
                "compare: a gold set says its scale and its questions: leave scale and groups out"
            )
        return _compare_judgements(gold_labels, _judgements(a_labels), _judgements(b_labels), how)
    if scale is None:
        raise InputError("compare: labels in an array need their scale=, such as 'percentage'")
    return compare_arrays(gold_labels, a_labels, b_labels, scale=scale, groups=groups, **how)


def _judgements(rows: Iterable[object]) -> list[Judgement]:
    given = list(rows)
    judgements = [row for row in given if isinstance(row, Judgement)]
    if len(judgements) < len(given):
        raise InputError("compare: with a gold set both sides are judgements, as judgecal.score gives them")
    return judgements


def _compare_judgements(
    gold: GoldSet, a: Sequence[Judgement], b: Sequence[Judgement], how: Mapping[str, Any]
) -> Comparison:
    """Two judges on the labelled items that either of them judged; a look where test items are among
    these."""
    judged = {row.item_id for row in (*a, *b)}
    items = tuple(item for item in gold.items if item.item_id in judged and item.item_id in gold.labels)
    if not items:
        raise InputError(f"compare: no judgement is of a labelled item of gold set {gold.name}")
    table, level = Table(gold, items), how["level"]
    verdicts = [
        verdict_matrix(rows, items, 1 + max((row.repeat for row in rows), default=0)) for rows in (a, b)
    ]
    shared = {**how, "scale": gold.scale, "groups": table.groups, "weights": table.weights}
    if all(gold.split_of(item.group) != "test" for item in items):
        return compare_arrays(table.labels, *verdicts, **shared)
    metric = compare_arrays(
        table.labels, *verdicts, **{**shared, "n_perm": 1}
    ).metric  # wrong use costs no look
    judges = {rows[0].judge_fingerprint: verdicts_sha(gold, items, rows) for rows in (a, b) if rows}
    by = f"compare by {metric}"
    about: dict[str, Any] = {"experiment": "judgecal.compare", "kind": "decision", "by": by, "judges": judges}
    look = look_at_test(find_workspace().experiments, gold, items, **about)
    notice(f"judgecal: {look.sentence(gold.name, level)}")
    level = look.level_within(level)
    shared |= {"level": level, "n_perm": max(how["n_perm"], _draws(level, 2))}
    return compare_arrays(table.labels, *verdicts, **shared)
