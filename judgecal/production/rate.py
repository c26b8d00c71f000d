"""`rate`: what share of judged answers is right, corrected for the judge's error."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgecal._version import __version__
from judgecal.errors import InputError
from judgecal.experiment import Experiment, open_experiment, plan_experiment
from judgecal.goldset import GoldSet, load_gold
from judgecal.production.escalate import escalated, labels_wanted, write_rows_to_read
from judgecal.production.judge_result import LockedOn
from judgecal.production.judged_table import JudgedColumns, JudgedTable, read_judged
from judgecal.production.rate_plan import curve_of, next_labels, spread_at_lock
from judgecal.production.rate_result import (
    Bounds,
    Escalated,
    NextLabels,
    Pair,
    RateDifference,
    RateOf,
    RateResult,
    ShiftSeen,
)
from judgecal.production.row_labels import read_labels
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.pass_rates import PassRule, chance
from judgecal.stats import agreement
from judgecal.stats.error_rates import JudgedSample, carried_rate, shift
from judgecal.stats.intervals import check_level, mean_estimate
from judgecal.stats.prediction_powered import (
    Corrected,
    DrawSeen,
    corrected_difference,
    corrected_mean,
    drawn_otherwise,
)
from judgecal.stats.sample import Bools, Floats
from judgecal.tables import Columns
from judgecal.workspace import Workspace, find_workspace

_MOST_COMPARED = 6  # values of --by of which every pair is held against each other


@dataclass(frozen=True)
class RateRun:
    """Everything that `rate` needs."""

    workspace: Workspace
    lock: Lock
    lock_path: Path
    judge: Scale  # of the lock's judge
    table: Path
    columns: Columns
    by: str | None = None  # the column that the rows are compared by
    second: str | None = None  # that of another judge's verdicts
    repeats: tuple[str, ...] = ()  # those of further verdicts of the judge
    labels: GoldSet | None = None
    escalate: float | None = None
    sheet: Path | None = None  # where the rows that a person must read are written
    level: float = 0.95
    seed: int = 0
    out: str | None = None

    @cached_property
    def rule(self) -> PassRule:
        """The people's pass mark for the judge's verdicts."""
        return PassRule.of_lock(self.lock, self.judge)

    @cached_property
    def experiment(self) -> Experiment:
        """Where the result goes."""
        labels = None if self.labels is None else {"set": self.labels.name, "sha256": self.labels.sha256}
        config = {
            "command": "rate",
            "gold": {"set": self.lock.gold.set, "sha256": self.lock.gold.sha256},
            "lock": self.lock.sha256,
            "input": {"file": str(self.table), **self.named.named},
            "labels": labels,
            "escalate": self.escalate,
            "level": self.level,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def named(self) -> JudgedColumns:
        """Which column of the table is what."""
        return JudgedColumns.of(
            self.table, self.columns, by=self.by, second=self.second, repeats=self.repeats
        )

    @cached_property
    def judged(self) -> JudgedTable:
        """The table, read."""
        return read_judged(self.table, self.named, self.judge)

    def run(self) -> RateResult:
        """Read the table and its labels, and say what they come to.

        Raises:
            InputError: the labels are another set's or on another scale, a probability is missing or 0, a
                column is not there, a verdict is none of the lock's judge, or there is no order to take a
                mean of.
        """
        check_level(self.level)
        self._check()
        result = _Rated(self).result()
        open_experiment(self.experiment)
        if self.sheet is not None and result.escalate is not None:
            how: dict[str, Any] = {"file": self.table, "columns": self.named, "seed": self.seed}
            write_rows_to_read(self.judged, self.rule, result.escalate, self.sheet, **how)
        self.experiment.write_summary(result)
        return result

    def _check(self) -> None:
        problems = []
        people = self.rule.people
        if not people.numeric:
            problems.append(
                f"{self.lock_path}: its labels are words without an order: rate takes marks or numbers"
            )
        if self.labels is not None and (str(self.labels.scale), self.labels.scale.pass_at) != (
            str(people),
            people.pass_at,
        ):
            problems.append(
                f"gold set {self.labels.name} is on the scale {_scale_in_words(self.labels.scale)}, and "
                f"{self.lock_path} was locked on {_scale_in_words(people)}: give labels of the lock's scale"
            )
        if self.escalate is not None and not 0.0 < self.escalate < 1.0:
            problems.append(f"--escalate {self.escalate:g}: an agreement lies between 0 and 1")
        elif self.escalate is not None and self.labels is None:
            problems.append(labels_wanted(self.escalate, self.level, table=self.table, lock=self.lock_path))
        elif self.escalate is not None and self.rule.mark is None:
            problems.append(f"--escalate takes right and wrong: {self.rule.reason}")
        if problems:
            raise InputError(problems)


def _of_scored(rate: Estimate, unscored: float) -> Estimate:
    """A rate that counts unscored items as wrong, of the scored ones: what a table's verdicts can be held
    against."""
    ends = (
        None if one is None else min(1.0, one / (1.0 - unscored)) for one in (rate.value, rate.low, rate.high)
    )
    value, low, high = ends
    return dataclasses.replace(rate, value=value, low=low, high=high)


def _scale_in_words(scale: Scale) -> str:
    return str(scale) if scale.pass_at is None else f"{scale}, pass at {scale.pass_at:g}"


class _Rated:
    """A run with its table read."""

    def __init__(self, run: RateRun) -> None:
        self.run, self.table, self.rule = run, run.judged, run.rule
        self.labels = None if run.labels is None else read_labels(run.labels, self.table)
        self.share = self.rule.mark is not None
        self.warning = chance(self.rule.people, run.lock.applied)
        self.verdict, self.label = self._values()

    @property
    def low(self) -> float:
        return 0.0 if self.share else self.rule.people.low

    @property
    def high(self) -> float:
        return 1.0 if self.share else self.rule.people.high

    def _values(self) -> tuple[Floats, Floats | None]:
        """What is averaged, as shares where there is a mark: verdicts through the lock's map, and labels."""
        label = None if self.labels is None else self.labels.label
        if not self.share:
            return self.rule.mapped(self.table.verdict), label
        passing = (
            None if label is None else np.array([float(bool(self.rule.label_passes(one))) for one in label])
        )
        return self.rule.passed(self.table.verdict), passing

    def result(self) -> RateResult:
        """All of it."""
        run, lock, table = self.run, self.run.lock, self.table
        every = np.ones(table.n, dtype=np.bool_)
        raw = self.raw(every, run.level)
        found = self.corrected(every, run.level)
        corrected, method = (found.estimate, self._method) if found else self.carried(raw, run.level)
        return RateResult(
            experiment=run.experiment.slug,
            lock=str(run.lock_path),
            judge=lock.judge,
            gold=LockedOn(lock.gold.set, lock.gold.sha256, lock.gold.split),
            input=str(run.table),
            labels=None if run.labels is None else run.labels.name,
            n=table.n,
            n_unscored=int(table.unscored.sum()),
            n_labelled=0 if self.labels is None else len(self.labels.at),
            columns=run.named.named,
            typed=run.named.untold(run.table),
            what="share" if self.share else "mean",
            scale=str(self.rule.people),
            pass_at=self.rule.people.pass_at,
            raw=raw,
            corrected=corrected,
            plain=found.plain if found else None,
            method=method,
            assumes=tuple(self._assumes()),
            warning=self.warning,
            shift=self._shift(),
            drawn=self._drawn(),
            bounds=self._bounds(corrected),
            correlation=found.correlation if found else None,
            mean=self._mean(),
            by_column=run.by,
            by=tuple(self._by()),
            differences=tuple(self._differences()),
            labels_saved=found.labels_saved if found else None,
            next_labels=self._next(found),
            curve=curve_of(spread_at_lock(lock)) if self.share else (),
            escalate=self._escalated(),
            notes=tuple(self._notes()),
            run_line=self._run_line(),
        )

    def raw(self, rows: Bools, level: float) -> Estimate:
        """The rate of some rows by the verdicts alone, through the lock's map."""
        found = mean_estimate(
            self.verdict[rows], self.table.group[rows].tolist(), low=self.low, high=self.high, level=level
        )
        return dataclasses.replace(found, n_unscored=int(self.table.unscored[rows].sum()))

    def corrected(self, rows: Bools, level: float) -> Corrected | None:
        """The rate of some rows from their labels; None where there is no set of labels."""
        if self.labels is None or self.label is None:
            return None
        own = self.labels.rows(self.label).among(rows)
        how: dict[str, Any] = {"low": self.low, "high": self.high, "level": level, "seed": self.run.seed}
        found = corrected_mean(self.verdict[rows], self.table.group[rows], own, **how)
        return dataclasses.replace(found, estimate=found.plain) if self.warning else found

    @property
    def _method(self) -> str:
        return "labels alone" if self.warning else "PPI++"

    def carried(self, raw: Estimate, level: float) -> tuple[Estimate, str]:
        """The rate of some rows without labels of theirs, and by what."""
        if not self.share:
            reason = f"{self.rule.reason}, so error rates cannot be carried over: label some of these rows"
            return dataclasses.replace(raw, value=None, low=None, high=None, method="", reason=reason), "none"
        if self.warning:
            reason = "the judge was seen to be no better than chance: label some of these rows"
            return dataclasses.replace(raw, value=None, low=None, high=None, method="", reason=reason), "none"
        sensitivity, specificity = self.rule.class_rates(self.run.lock.applied)
        unknown = Estimate(None, reason="the lock does not know its judge's error rates")
        found = carried_rate(raw, sensitivity or unknown, specificity or unknown, level=level)
        return found.estimate, "Rogan-Gladen" if found.estimate.value is not None else "none"

    def _assumes(self) -> Iterator[str]:
        """What the number takes for granted; what weighs most comes first."""
        gold = self.run.lock.gold
        if self.labels is not None:
            how = "with their recorded chances" if self.labels.chance is not None else "all rows as likely"
            yield f"the labels of {self.labels.gold.name} were drawn at random from these rows, {how}"
            if self.labels.n_waiting:
                yield f"the {self.labels.n_waiting} drawn items without a label would have had labels like the others"
            yield "the number is about these rows; other questions may differ"
        else:
            yield f"the judge errs on these rows as often as it did on {gold.set} ({gold.split})"
            if gold.ties:
                of = f"{100.0 * gold.ties:.1f}% of what they rated there"
                yield f"and as often where people would not agree: raters tie on {of}, which is not in its error rates"
            if self.run.by is not None:
                yield f"and as often for every value of {self.run.by}"
            if self.table.unscored.any():
                yield "the rows without a verdict are like the others"

    def _shift(self) -> ShiftSeen | None:
        """The lock's error rates held against those of the labels."""
        if self.labels is None or not self.share:
            return None
        mark = "" if self.rule.people.kind == "binary" else f"@{self.rule.people.pass_at:g}"
        names = [name for name in (f"tpr{mark}", f"tnr{mark}") if name in self.run.lock.applied]
        if not names:
            return None
        weights = None if self.labels.chance is None else 1.0 / self.labels.chance
        now = agreement(
            self.labels.label,
            self.rule.mapped(self.table.verdict[self.labels.at]),
            scale=self.rule.people,
            judge_scale=self.rule.common if self.run.lock.calibration is None else self.rule.people,
            groups=self.table.group[self.labels.at].tolist(),
            metrics=names,
            unscored="wrong",
            weights=None if weights is None else weights / weights.mean(),
        )
        rates = {name: {"locked": self.run.lock.applied[name], "now": now[name]} for name in names}
        if len(names) < 2:
            return ShiftSeen(False, None, rates)
        sensitivity, specificity = (
            _of_scored(one["locked"], self.run.lock.unscored) for one in rates.values()
        )
        found = shift(sensitivity, specificity, self._sample())
        return ShiftSeen(found.contradicts, found.p_value, rates)

    def _sample(self) -> JudgedSample:
        """The table's verdicts, and the labels given each."""
        assert self.labels is not None and self.label is not None
        at, verdict = self.labels.at, self.verdict[self.labels.at]
        chance = np.ones(len(at)) if self.labels.chance is None else self.labels.chance
        given = []
        for side in (1.0, 0.0):
            kept = verdict == side
            weights = 1.0 / chance[kept]
            groups = self.table.group[at][kept].tolist()
            given.append(mean_estimate(self.label[kept], groups, weights=weights, level=self.run.level))
        return JudgedSample(self.raw(np.ones(self.table.n, dtype=np.bool_), self.run.level), *given)

    def _drawn(self) -> DrawSeen | None:
        """The verdicts of the labelled rows held against the table's: labels drawn at random have them
        too."""
        if self.labels is None or self.table.unscored.all():
            return None
        filled = np.where(self.table.unscored, np.nanmean(self.verdict), self.verdict)
        own = self.labels.rows(filled[self.labels.at])
        ends: dict[str, Any] = {"low": self.low, "high": self.high, "seed": self.run.seed}
        return drawn_otherwise(filled, self.table.group, own, **ends)

    def _bounds(self, corrected: Estimate) -> Bounds | None:
        """The corrected rate of the scored rows with every other row at one end or the other."""
        scored = ~self.table.unscored
        if scored.all() or not scored.any():
            return None
        own = corrected
        if self.labels is not None:
            found = self.corrected(scored, self.run.level)
            own = corrected if found is None else found.estimate
        low, high = (own.value if end is None else end for end in (own.low, own.high))
        if low is None or high is None:
            return None
        share = float(scored.mean())
        return Bounds(share * low + (1.0 - share) * self.low, share * high + (1.0 - share) * self.high)

    def _mean(self) -> Pair | None:
        """The mean of graded labels beside the share that passes."""
        people, labels = self.rule.people, self.labels
        if not self.share or not people.graded or labels is None:
            return None
        verdict = self.rule.mapped(self.table.verdict)
        ends: dict[str, Any] = {"low": people.low, "high": people.high, "level": self.run.level}
        raw = mean_estimate(verdict, self.table.group.tolist(), **ends)
        found = corrected_mean(
            verdict, self.table.group, labels.rows(labels.label), seed=self.run.seed, **ends
        )
        return Pair(raw, found.plain if self.warning else found.estimate)

    def _parts(self) -> list[tuple[str, Bools]]:
        if self.table.value_of is None:
            return []
        return [(name, self.table.value_of == code) for code, name in enumerate(self.table.values)]

    def _by(self) -> Iterator[RateOf]:
        """The rate of each value; the intervals hold all at once (Bonferroni)."""
        parts = self._parts()
        level = 1.0 - (1.0 - self.run.level) / max(1, len(parts))
        for name, rows in parts:
            raw, found = self.raw(rows, level), self.corrected(rows, level)
            estimate = found.estimate if found else self.carried(raw, level)[0]
            n_labelled = 0 if self.labels is None else int(rows[self.labels.at].sum())
            yield RateOf(name, int(rows.sum()), n_labelled, raw, estimate)

    def _differences(self) -> Iterator[RateDifference]:
        """Every pair of values, all intervals at once; only from labels, as the judge may err otherwise on
        each."""
        parts = self._parts()
        if self.labels is None or self.label is None or not self.share or len(parts) > _MOST_COMPARED:
            return
        pairs = list(itertools.combinations(parts, 2))
        verdict = np.zeros(self.table.n) if self.warning else self.verdict
        for (a, ours), (b, theirs) in pairs:
            level, labelled = 1.0 - (1.0 - self.run.level) / len(pairs), self.labels.rows(self.label)
            how: dict[str, Any] = {"level": level, "seed": self.run.seed}
            found = corrected_difference(verdict, self.table.group, labelled, (ours, theirs), **how)
            yield RateDifference(a, b, found)

    def _next(self, found: Corrected | None) -> NextLabels | None:
        if found is not None:
            return next_labels(found.estimate, n=found.estimate.n, n_rows=self.table.n)
        return next_labels(None, spread=spread_at_lock(self.run.lock)) if self.share else None

    def _escalated(self) -> Escalated | None:
        if self.run.escalate is None or self.labels is None or self.label is None:
            return None
        how: dict[str, Any] = {"label": self.label, "target": self.run.escalate, "level": self.run.level}
        found = escalated(self.table, self.rule, self.labels, **how)
        return dataclasses.replace(found, sheet=None if self.run.sheet is None else str(self.run.sheet))

    def _notes(self) -> Iterator[str]:
        if self.labels is not None and self.labels.gold.card.sampling not in ("random", "stratified"):
            yield (
                f"the card of {self.labels.gold.name} does not say how it was sampled (sampling in card.toml): that it "
                "was drawn from these rows is taken on trust"
            )
        if self.run.lock.unscored and self.labels is None:
            share = 100.0 * self.run.lock.unscored
            yield f"{share:.1f}% of the calls at lock time gave no verdict, and count as wrong in its error rates"
        if self._parts():
            yield f"intervals by {self.run.by} hold all at once (Bonferroni)"

    def _run_line(self) -> str:
        gold, labels = self.run.lock.gold, self.run.labels
        told = "none" if labels is None else f"{labels.name}@{labels.sha256[:12]}"
        return (
            f"lock:{self.run.lock.sha256[:12]}|gold:{gold.set}@{gold.sha256[:12]}|split:{gold.split}|"
            f"input:{self.run.table.name}|n:{self.table.n}|labels:{told}|level:{self.run.level:g}|"
            f"seed:{self.run.seed}|version:{__version__}"
        )


def rate(
    judged: str | Path,
    *,
    lock: str | Path,
    labels: str | None = None,
    by: str | None = None,
    escalate: float | None = None,
    columns: Columns | None = None,
    trust_lock: bool = False,
    level: float = 0.95,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> RateResult:
    """What share of judged answers is right, corrected for the judge's error; no model is called.

    Args:
        judged: the table that `judge` wrote.
        lock: the lock that it was judged with.
        labels: the gold set with people's labels of rows drawn from the table; without it the lock's error
            rates are carried over.
        by: the column by which rows are compared.
        escalate: the agreement that is to be kept on the rows that no person reads, 0..1.
        columns: which column is what; those of the usual names where not given.
        trust_lock: run the lock's own signature where the workspace has another.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.

    Raises:
        InputError: as `RateRun.run`.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    locked = load_lock(Path(lock))
    return RateRun(
        workspace=where,
        lock=locked,
        lock_path=Path(lock),
        judge=locked.runnable(where, trust_lock=trust_lock).scale,
        table=Path(judged),
        columns=columns or Columns(usual=True),
        by=by,
        labels=None if labels is None else load_gold(labels, workspace=where),
        escalate=escalate,
        level=level,
        seed=seed,
        out=name,
    ).run()
