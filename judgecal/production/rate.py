"""`rate`: what share of judged answers is right, corrected for the judge's error, and which rows a person
must read so that on the others judge and people agree as often as was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from judgecal._version import __version__
from judgecal.errors import refuse
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.goldset import GoldSet, load_gold, write_sheets
from judgecal.production.judged import (
    JudgedColumns,
    JudgedTable,
    RowLabels,
    items_at,
    judged_columns,
    read_judged,
    read_labels,
    systems_of,
)
from judgecal.records import Estimate, Result
from judgecal.scale import Scale
from judgecal.selection.lock import Lock, LockedGold, load_lock
from judgecal.selection.pass_rates import PassRule, at_chance, class_rates
from judgecal.stats import agreement
from judgecal.stats.error_rates import EscalationLabels, carried_rate, escalation, shift_p
from judgecal.stats.intervals import check_level, mean_estimate
from judgecal.stats.prediction_powered import SelectionTest, corrected_mean, selection_test
from judgecal.stats.sample import Bools, Floats
from judgecal.tables import Columns
from judgecal.workspace import Workspace, find_workspace

_FIRST = 60  # labels that are proposed where there is none yet
_CONTRADICTS = 0.05  # below this p the labels contradict the lock's error rates


@dataclass(frozen=True, slots=True)
class NextLabels:
    """So many more labels would give about this half width."""

    n: int
    half_width: float

    @classmethod
    def halving(cls, rate: Estimate, *, n: int, n_rows: int) -> NextLabels | None:
        """Return the NextLabels that halve the interval of an Estimate from n labels of n_rows; else None."""
        if rate.low is None or rate.high is None or n >= n_rows:
            return None
        total = 1.0 / ((1.0 / n - 1.0 / n_rows) / 4.0 + 1.0 / n_rows)
        return cls(math.ceil(total) - n, (rate.high - rate.low) / 4.0)


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """Whether the labels contradict the error rates of the lock; rates: name -> {locked, now}."""

    contradicts: bool
    p_value: float | None
    rates: Mapping[str, Mapping[str, Estimate]]


@dataclass(frozen=True, slots=True)
class GroupRate:
    """The rate of the rows with one value of the column that they are compared by."""

    value: str
    n: int
    n_labelled: int
    raw: Estimate
    corrected: Estimate


@dataclass(frozen=True, slots=True)
class Escalated:
    """Which rows a person must read."""

    target: float  # the agreement that is promised on the others
    share: float  # of the rows that the judge keeps, 0..1; 0 where no threshold is shown to keep the promise
    agreement: Estimate | None  # of judge and people on these
    threshold: float | None  # rows of at least this confidence are kept
    n_rows: int  # rows that a person must read
    sheet: str | None = None  # where these rows were written, where that was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class RateResult(Result):
    """What share of judged rows is right."""

    experiment: str
    lock: str
    judge: str
    gold: LockedGold
    input: str
    labels: str | None  # the set that the labels are of
    n: int
    n_unscored: int
    n_labelled: int
    typed: tuple[str, ...]  # the options that named columns
    prefers: tuple[str, str] | None  # of pairs: the share that prefers the first; a tie counts half
    raw: Estimate
    corrected: Estimate
    plain: Estimate | None  # from the labels alone
    method: str
    assumes: tuple[str, ...]
    warning: str | None  # why there is nothing to correct by: the judge is no better than chance
    shift: ShiftTest | None
    drawn: SelectionTest | None  # None without labels
    by_column: str | None
    by: tuple[GroupRate, ...]
    labels_saved: int | None
    next_labels: NextLabels | None
    escalate: Escalated | None
    run_line: str


@dataclass(frozen=True, slots=True)
class _Rate:
    """The rate of some rows; the last two from labels."""

    raw: Estimate
    corrected: Estimate
    method: str
    plain: Estimate | None = None
    labels_saved: int | None = None


@dataclass(frozen=True)
class RateRun:
    """Everything that `rate` needs."""

    workspace: Workspace
    lock: Lock
    lock_path: Path
    judge: Scale  # of the lock's judge
    path: Path  # of the judged table
    columns: Columns
    by: str | None = None  # the column that the rows are compared by
    systems: tuple[str, str] | None = None  # of pairs the two that are compared
    gold: GoldSet | None = None  # people's labels of some rows
    escalate: float | None = None
    sheet: Path | None = None  # where the rows that a person must read are written
    level: float = 0.95
    seed: int = 0
    out: str | None = None

    @cached_property
    def rule(self) -> PassRule:
        return self.named.rule(self.lock, self.judge)

    @cached_property
    def named(self) -> JudgedColumns:
        return JudgedColumns(judged_columns(self.path, self.columns), self.by)

    @cached_property
    def experiment(self) -> Experiment:
        gold = self.gold
        config = {
            "command": "rate",
            **self.lock.config,
            "input": {"file": str(self.path), **self.named.named},
            "labels": None if gold is None else {"set": gold.name, "sha256": gold.sha256},
            "escalate": self.escalate,
            "level": self.level,
            **({} if self.prefers is None else {"systems": list(self.prefers)}),
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def prefers(self) -> tuple[str, str] | None:
        """The two systems of judged pairs, whose share is rated over the other's; None for single answers."""
        if not self.named.prefers(self.judge):
            return None
        return self.systems or systems_of(self.path, self.named) or ("A", "B")

    @cached_property
    def table(self) -> JudgedTable:
        return read_judged(self.path, self.named, self.judge, systems=self.prefers)

    @cached_property
    def labels(self) -> RowLabels | None:
        return None if self.gold is None else read_labels(self.gold, self.table)

    @cached_property
    def warning(self) -> str | None:
        """Why there is nothing to correct by: the judge is no better than chance."""
        return at_chance(self.rule.people, self.lock.applied)

    @cached_property
    def verdicts(self) -> Floats:
        """What is averaged: 1 passes, 0 fails, or the worth of a pair to the first system; NaN unscored."""
        return self.table.verdict if self.prefers else self.rule.passed(self.table.verdict)

    @cached_property
    def label_values(self) -> Floats:
        """The labels on the same footing; none without a set."""
        labels = np.empty(0) if self.labels is None else self.labels.label
        return labels if self.prefers else np.where(labels >= self.rule.people_mark, 1.0, 0.0)

    @cached_property
    def confidence(self) -> Floats:
        """How sure the judge is of each row: the distance to where verdicts begin to pass; without a verdict
        minus infinity."""
        sure = np.abs(self.table.verdict - self.rule.cut) / self.rule.judge.span
        return np.where(self.table.unscored, -np.inf, sure)

    def run(self) -> RateResult:
        """Read the judged table and its labels, and return the RateResult."""
        check_level(self.level)
        self._check()
        result = self._result()
        open_experiment(self.experiment)
        if self.sheet is not None and result.escalate is not None:  # blind, each text once
            rows = np.flatnonzero(self._for_people(result.escalate.threshold))
            first = rows[np.unique(self.table.text[rows], return_index=True)[1]]
            columns = replace(self.named.columns, item=self.columns.item)
            items = items_at(self.path, columns, first.tolist())
            write_sheets(list(items.values()), self.sheet, name=self.path.name, seed=self.seed)
        self.experiment.write_summary(result)
        return result

    def _check(self) -> None:
        gold, target, problems = self.gold, self.escalate, []

        def in_words(scale: Scale) -> str:
            return str(scale) if scale.pass_at is None else f"{scale}, pass at {scale.pass_at:g}"

        if self.systems is not None and self.prefers is None:
            problems.append(
                f"--systems is of judged pairs: {self.path} has none, or {self.lock_path} no judge of them"
            )
        if not self.prefers and self.rule.reason is not None:
            problems.append(
                f"{self.lock_path}: {self.rule.reason}, and rate is the share that passes: set one, and run "
                "judgecal select again"
            )
        locked = self.lock.gold.people
        if gold is not None and (str(gold.scale), gold.scale.pass_at) != (str(locked), locked.pass_at):
            problems.append(
                f"gold set {gold.name} is on the scale {in_words(gold.scale)}, and {self.lock_path} was "
                f"locked on {in_words(locked)}: give labels of the lock's scale"
            )
        if target is not None and not 0.0 < target < 1.0:
            problems.append(f"--escalate {target:g}: an agreement lies between 0 and 1")
        elif target is not None and gold is None:
            draw = f"judgecal gold sheet {self.path} -n {_FIRST} --lock {self.lock_path} -o sheet.csv"
            problems.append(
                f"--escalate {target:g} needs labels of the table's own rows, and there are none: {draw} "
                "draws some, and --labels SET takes them"
            )
        elif target is not None and self.prefers:
            problems.append("--escalate needs right and wrong, which preferences are not")
        refuse(problems)

    def _result(self) -> RateResult:
        lock, table, labels = self.lock, self.table, self.labels
        rate = self._rate(np.ones(table.n, dtype=np.bool_), self.level)
        more = (
            None if labels is None else NextLabels.halving(rate.corrected, n=rate.corrected.n, n_rows=table.n)
        )
        by = []
        for code, name in enumerate(table.values):
            rows = table.value_of == code
            of_value = self._rate(rows, 1.0 - (1.0 - self.level) / len(table.values))
            n_labelled = 0 if labels is None else int(rows[labels.at].sum())
            by.append(GroupRate(name, int(rows.sum()), n_labelled, of_value.raw, of_value.corrected))
        shown = "none" if self.gold is None else f"{self.gold.name}@{self.gold.sha256[:12]}"
        return RateResult(
            experiment=self.experiment.slug,
            lock=str(self.lock_path),
            judge=lock.judge,
            gold=lock.gold,
            input=str(self.path),
            labels=None if self.gold is None else self.gold.name,
            n=table.n,
            n_unscored=int(table.unscored.sum()),
            n_labelled=0 if labels is None else len(labels.at),
            typed=tuple(self.columns.typed()),
            prefers=self.prefers,
            raw=rate.raw,
            corrected=rate.corrected,
            plain=rate.plain,
            method=rate.method,
            assumes=tuple(self._assumes()),
            warning=self.warning,
            shift=None if labels is None or self.prefers else self._shift(labels, rate.raw),
            drawn=None if labels is None else self._drawn(labels),
            by_column=self.by,
            by=tuple(by),
            labels_saved=rate.labels_saved,
            next_labels=more,
            escalate=None if labels is None else self._escalated(labels),
            run_line=(
                f"{lock.run_line}|input:{self.path.name}|n:{table.n}|labels:{shown}|level:{self.level:g}|seed:{self.seed}|version:{__version__}"
            ),
        )

    # --- rates

    def _rate(self, rows: Bools, level: float) -> _Rate:
        """The rate of some rows: by the verdicts alone, and corrected by their labels or the lock's rates."""
        verdicts, groups = self.verdicts[rows], self.table.group[rows]
        raw = mean_estimate(verdicts, groups.tolist(), level=level)
        raw = replace(raw, n_unscored=int(self.table.unscored[rows].sum()))
        if self.labels is not None:
            labelled = self.labels.rows(self.label_values).among(rows)
            rate = corrected_mean(verdicts, groups, labelled, level=level, seed=self.seed)
            corrected, method = (rate.plain, "labels alone") if self.warning else (rate.estimate, "PPI++")
            return _Rate(raw, corrected, method, rate.plain, rate.labels_saved)
        if self.prefers or self.warning:
            why = "the judge did no better than chance"
            if self.prefers:
                why = "which answer is preferred cannot be carried over"
            return _Rate(raw, raw.without_value(f"{why}: label some of the table's rows"), "none")
        unknown = Estimate(None, reason="the lock does not know its judge's error rates")
        rates = class_rates(self.rule.people, self.lock.applied)
        sensitivity, specificity = (rate or unknown for rate in rates)
        carried = carried_rate(raw, sensitivity, specificity, level=level).estimate
        return _Rate(raw, carried, "none" if carried.value is None else "Rogan-Gladen")

    # --- labels held against the lock and the table

    def _shift(self, labels: RowLabels, raw: Estimate) -> ShiftTest | None:
        """The lock's error rates held against those of the labels."""
        people, applied, table = self.rule.people, self.lock.applied, self.table
        mark = "" if people.kind == "binary" else f"@{people.pass_at:g}"
        names = [f"tpr{mark}", f"tnr{mark}"]
        if not applied.keys() >= {*names}:
            return None
        weights = None if labels.chance is None else 1.0 / labels.chance
        now = agreement(
            labels.label,
            self.rule.mapped(table.verdict[labels.at]),
            scale=people,
            judge_scale=self.rule.common if self.lock.calibration is None else people,
            groups=table.group[labels.at].tolist(),
            metrics=names,
            unscored="wrong",
            weights=None if weights is None else weights / weights.mean(),
        )
        rates = {name: {"locked": applied[name], "now": now[name]} for name in names}

        def of_scored(rate: Estimate) -> Estimate:
            """Of the scored ones, as a table's verdicts are: the lock counts unscored items as wrong."""
            value, low, high = (
                None if end is None else min(1.0, end / (1.0 - self.lock.unscored))
                for end in (rate.value, rate.low, rate.high)
            )
            return replace(rate, value=value, low=low, high=high)

        # the table's verdicts, and the labels given each
        given = []
        for side in (1.0, 0.0):
            rows = self.verdicts[labels.at] == side
            of_side = np.ones(int(rows.sum())) if weights is None else weights[rows]
            groups = table.group[labels.at][rows].tolist()
            given.append(mean_estimate(self.label_values[rows], groups, weights=of_side, level=self.level))
        at_lock = [of_scored(applied[name]) for name in names]
        p = shift_p(*at_lock, passing=raw, precision=given[0], missed=given[1])
        return ShiftTest(p is not None and p < _CONTRADICTS, p, rates)

    def _drawn(self, labels: RowLabels) -> SelectionTest | None:
        """Labelled rows' verdicts held against the table's: labels drawn at random have them too."""
        if self.table.unscored.all():
            return None
        filled = np.where(self.table.unscored, np.nanmean(self.verdicts), self.verdicts)
        return selection_test(filled, self.table.group, labels.rows(filled[labels.at]), seed=self.seed)

    # --- rows for a person

    def _for_people(self, threshold: float | None) -> Bools:
        """The rows that a person must read: those below the threshold, all without one."""
        return self.confidence < (np.inf if threshold is None else threshold)

    def _escalated(self, labels: RowLabels) -> Escalated | None:
        """What is left to the judge where it must agree with people at the target."""
        target, at, sure = self.escalate, labels.at, self.confidence
        if target is None:
            return None
        weights = np.ones(len(at)) if labels.chance is None else 1.0 / labels.chance
        agrees = self.rule.passed(self.table.verdict[at]) == self.label_values
        judged = EscalationLabels(sure[at], agrees, self.table.group[at], weights)
        left = escalation(sure, judged, target=target, level=self.level)
        return Escalated(
            target=target,
            share=left.share,
            agreement=left.agreement,
            threshold=left.threshold,
            n_rows=int(self._for_people(left.threshold).sum()),
            sheet=None if self.sheet is None else str(self.sheet),
        )

    # --- in sentences

    def _assumes(self) -> list[str]:
        """What the number takes for granted; what weighs most comes first."""
        gold, labels = self.lock.gold, self.labels
        if labels is not None:
            chances = "with their recorded chances" if labels.chance is not None else "all rows as likely"
            assumed = [f"the labels of {labels.gold.name} were drawn at random from these rows, {chances}"]
            if labels.n_waiting:
                assumed.append(
                    f"the {labels.n_waiting:,} drawn items without a label would have got labels like the "
                    "others"
                )
            return [*assumed, "the number is about these rows; other questions may differ"]
        if self.prefers is not None:
            return []
        assumed = [f"the judge errs on these rows as often as it did on {gold.set} ({gold.split})"]
        if gold.ties:
            share = f"{100.0 * gold.ties:.1f}% of what they rated there"
            assumed.append(
                f"and as often where people would not agree: raters tie on {share}, which its error "
                "rates leave out"
            )
        if self.by is not None:
            assumed.append(f"and as often for every value of {self.by}")
        if self.table.unscored.any():
            assumed.append("the rows without a verdict are like the others")
        return assumed


def rate(
    judged: str | Path,
    *,
    lock: str | Path,
    labels: str | None = None,
    by: str | None = None,
    escalate: float | None = None,
    systems: tuple[str, str] | None = None,
    columns: Columns | None = None,
    trust_lock: bool = False,
    level: float = 0.95,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> RateResult:
    """From the paths of a judged table and its lock, return the RateResult: the share that is right.

    Args:
        judged: the table that `judge` wrote.
        lock: the lock that it was judged with.
        labels: the gold set with people's labels of rows drawn from the table; without it the lock's error
            rates are carried over.
        by: the column by which rows are compared.
        escalate: the agreement that is to be kept on the rows that no person reads, 0..1.
        systems: of judged pairs the two that are compared: the share that prefers the first, ties half; the
            two that the table holds where not given.
        columns: which column is what; those of the usual names where not given.
        trust_lock: run the lock's own signature where the workspace has another.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    locked = load_lock(Path(lock))
    return RateRun(
        workspace=where,
        lock=locked,
        lock_path=Path(lock),
        judge=locked.runnable(where, trust_lock=trust_lock).scale,
        path=Path(judged),
        columns=columns or Columns(usual=True),
        by=by,
        systems=systems,
        gold=None if labels is None else load_gold(labels, workspace=where),
        escalate=escalate,
        level=level,
        seed=seed,
        out=name,
    ).run()
