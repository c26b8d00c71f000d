"""`rate`: what share of judged answers is right, corrected for the judge's error, and which rows a person
must read so that on the others judge and people agree as often as was asked for.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from judgecal._version import __version__
from judgecal.errors import refuse
from judgecal.experiment import Experiment, open_experiment, plan_experiment
from judgecal.goldset import GoldSet, load_gold, write_sheets
from judgecal.production.judged_draw import items_at
from judgecal.production.judged_table import JudgedColumns, JudgedTable, RowLabels, read_judged, read_labels
from judgecal.production.rate_plan import curve_of, next_labels, spread_at_lock
from judgecal.production.results import (
    Bounds,
    Escalated,
    LockedOn,
    Pair,
    RateDifference,
    RateOf,
    RateResult,
    ShiftSeen,
)
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.selection.lock import Lock, load_lock
from judgecal.selection.pass_rates import PassRule, chance
from judgecal.stats import agreement
from judgecal.stats.error_rates import JudgedSample, carried_rate, shift
from judgecal.stats.escalation import JudgedLabels, escalation, labels_to_start
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
_APART = 2.0  # of the confidence of a row on which a second judge differs, so that it is below every other


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
    second: str | None = None  # that of another judge's verdicts
    repeats: tuple[str, ...] = ()  # those of further verdicts of the judge
    gold: GoldSet | None = None  # people's labels of some rows
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
    def named(self) -> JudgedColumns:
        """Which column of the table is what."""
        return JudgedColumns.of(self.path, self.columns, by=self.by, second=self.second, repeats=self.repeats)

    @cached_property
    def experiment(self) -> Experiment:
        """Where the result goes."""
        gold = self.gold
        config = {
            "command": "rate",
            "gold": {"set": self.lock.gold.set, "sha256": self.lock.gold.sha256},
            "lock": self.lock.sha256,
            "input": {"file": str(self.path), **self.named.named},
            "labels": None if gold is None else {"set": gold.name, "sha256": gold.sha256},
            "escalate": self.escalate,
            "level": self.level,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    # --- what is read

    @cached_property
    def table(self) -> JudgedTable:
        """The rows."""
        return read_judged(self.path, self.named, self.judge)

    @cached_property
    def labels(self) -> RowLabels | None:
        """The rows that people labelled."""
        return None if self.gold is None else read_labels(self.gold, self.table)

    @property
    def is_share(self) -> bool:
        """Whether rows pass or fail; else their mean is taken."""
        return self.rule.mark is not None

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest rate that there is."""
        return (0.0, 1.0) if self.is_share else (self.rule.people.low, self.rule.people.high)

    @cached_property
    def warning(self) -> str | None:
        """Why there is nothing to correct by: the judge is no better than chance."""
        return chance(self.rule.people, self.lock.applied)

    @cached_property
    def verdicts(self) -> Floats:
        """What is averaged: verdicts through the lock's map, 1 and 0 where there is a mark; NaN unscored."""
        return (self.rule.passed if self.is_share else self.rule.mapped)(self.table.verdict)

    @cached_property
    def label_values(self) -> Floats:
        """The labels on the same footing; none without a set."""
        labels = np.empty(0) if self.labels is None else self.labels.label
        if not self.is_share:
            return labels
        return np.array([float(bool(self.rule.label_passes(label))) for label in labels])

    def run(self) -> RateResult:
        """Read the table and its labels, and say what they come to."""
        check_level(self.level)
        self._check()
        result = self._result()
        open_experiment(self.experiment)
        if self.sheet is not None and result.escalate is not None:
            self._write_sheet(result.escalate, self.sheet)
        self.experiment.write_summary(result)
        return result

    def _check(self) -> None:
        people, gold, target, problems = self.rule.people, self.gold, self.escalate, []

        def in_words(scale: Scale) -> str:
            return str(scale) if scale.pass_at is None else f"{scale}, pass at {scale.pass_at:g}"

        if not people.numeric:
            problems.append(
                f"{self.lock_path}: its labels are words without an order: rate takes marks or numbers"
            )
        if gold is not None and (str(gold.scale), gold.scale.pass_at) != (str(people), people.pass_at):
            problems.append(
                f"gold set {gold.name} is on the scale {in_words(gold.scale)}, and {self.lock_path} was "
                f"locked on {in_words(people)}: give labels of the lock's scale"
            )
        if target is not None and not 0.0 < target < 1.0:
            problems.append(f"--escalate {target:g}: an agreement lies between 0 and 1")
        elif target is not None and gold is None:
            likely, kept = labels_to_start(target, level=self.level)
            problems.append(
                f"--escalate {target:g} is tested on labels of these rows, and there are none: about {kept} "
                "labels of rows that the judge is sure of would do, if people agree with it on "
                f"{100.0 * likely:.3g}% of these; if it is sure of half of the rows, draw {2 * kept}: "
                f"judgecal gold sheet {self.path} -n {2 * kept} --lock {self.lock_path} -o sheet.csv, and "
                "give them with --labels SET"
            )
        elif target is not None and not self.is_share:
            problems.append(f"--escalate takes right and wrong: {self.rule.reason}")
        refuse(problems)

    def _result(self) -> RateResult:
        lock, table, labels, gold = self.lock, self.table, self.labels, self.lock.gold
        every = np.ones(table.n, dtype=np.bool_)
        raw, by_labels = self._raw(every, self.level), self._corrected(every, self.level)
        if by_labels is None:
            corrected, method = self._carried(raw, self.level)
            more = next_labels(None, spread=spread_at_lock(lock)) if self.is_share else None
        else:
            corrected, method = by_labels.estimate, "labels alone" if self.warning else "PPI++"
            more = next_labels(corrected, n=corrected.n, n_rows=table.n)
        by = self._by()
        shown = "none" if self.gold is None else f"{self.gold.name}@{self.gold.sha256[:12]}"
        return RateResult(
            experiment=self.experiment.slug,
            lock=str(self.lock_path),
            judge=lock.judge,
            gold=LockedOn(gold.set, gold.sha256, gold.split),
            input=str(self.path),
            labels=None if self.gold is None else self.gold.name,
            n=table.n,
            n_unscored=int(table.unscored.sum()),
            n_labelled=0 if labels is None else len(labels.at),
            columns=self.named.named,
            typed=self.named.untold(self.path),
            what="share" if self.is_share else "mean",
            scale=str(self.rule.people),
            pass_at=self.rule.people.pass_at,
            raw=raw,
            corrected=corrected,
            plain=None if by_labels is None else by_labels.plain,
            method=method,
            assumes=tuple(self._assumes()),
            warning=self.warning,
            shift=self._shift(),
            drawn=self._drawn(),
            bounds=self._bounds(corrected),
            correlation=None if by_labels is None else by_labels.correlation,
            mean=self._mean(),
            by_column=self.by,
            by=by,
            differences=self._differences(),
            labels_saved=None if by_labels is None else by_labels.labels_saved,
            next_labels=more,
            curve=curve_of(spread_at_lock(lock)) if self.is_share else (),
            escalate=self._escalated(),
            notes=tuple(self._notes(compared=bool(by))),
            run_line=(
                f"lock:{lock.sha256[:12]}|gold:{gold.set}@{gold.sha256[:12]}|split:{gold.split}|"
                f"input:{self.path.name}|n:{table.n}|labels:{shown}|level:{self.level:g}|seed:{self.seed}|"
                f"version:{__version__}"
            ),
        )

    # --- rates

    def _raw(self, rows: Bools, level: float) -> Estimate:
        """The rate of some rows by the verdicts alone, through the lock's map."""
        low, high = self.ends
        groups = self.table.group[rows].tolist()
        rate = mean_estimate(self.verdicts[rows], groups, low=low, high=high, level=level)
        return dataclasses.replace(rate, n_unscored=int(self.table.unscored[rows].sum()))

    def _corrected(self, rows: Bools, level: float) -> Corrected | None:
        """The rate of some rows from their labels; None where there is no set of labels."""
        if self.labels is None:
            return None
        (low, high), labelled = self.ends, self.labels.rows(self.label_values).among(rows)
        verdicts, groups = self.verdicts[rows], self.table.group[rows]
        rate = corrected_mean(verdicts, groups, labelled, low=low, high=high, level=level, seed=self.seed)
        return dataclasses.replace(rate, estimate=rate.plain) if self.warning else rate

    def _carried(self, raw: Estimate, level: float) -> tuple[Estimate, str]:
        """The rate of some rows without labels of theirs, and by what."""
        reason = "the judge was seen to be no better than chance: label some of these rows"
        if not self.is_share:
            reason = f"{self.rule.reason}, so error rates cannot be carried over: label some of these rows"
        if not self.is_share or self.warning:
            return dataclasses.replace(raw, value=None, low=None, high=None, method="", reason=reason), "none"
        unknown = Estimate(None, reason="the lock does not know its judge's error rates")
        sensitivity, specificity = (rate or unknown for rate in self.rule.class_rates(self.lock.applied))
        rate = carried_rate(raw, sensitivity, specificity, level=level).estimate
        return rate, "none" if rate.value is None else "Rogan-Gladen"

    def _bounds(self, corrected: Estimate) -> Bounds | None:
        """The corrected rate of the scored rows with every other row at one end or the other."""
        scored = ~self.table.unscored
        if scored.all() or not scored.any():
            return None
        of_scored = self._corrected(scored, self.level)
        rate = corrected if of_scored is None else of_scored.estimate
        low, high = (rate.value if end is None else end for end in (rate.low, rate.high))
        if low is None or high is None:
            return None
        share, (lowest, highest) = float(scored.mean()), self.ends
        return Bounds(share * low + (1.0 - share) * lowest, share * high + (1.0 - share) * highest)

    def _mean(self) -> Pair | None:
        """The mean of graded labels beside the share that passes."""
        people, labels = self.rule.people, self.labels
        if not self.is_share or not people.graded or labels is None:
            return None
        verdicts, groups = self.rule.mapped(self.table.verdict), self.table.group
        ends: dict[str, Any] = {"low": people.low, "high": people.high, "level": self.level}
        raw = mean_estimate(verdicts, groups.tolist(), **ends)
        mean = corrected_mean(verdicts, groups, labels.rows(labels.label), seed=self.seed, **ends)
        return Pair(raw, mean.plain if self.warning else mean.estimate)

    @property
    def _parts(self) -> list[tuple[str, Bools]]:
        """The rows of each value that is compared."""
        codes = self.table.value_of
        return [] if codes is None else [(name, codes == code) for code, name in enumerate(self.table.values)]

    def _by(self) -> tuple[RateOf, ...]:
        """The rate of each value; the intervals hold all at once (Bonferroni)."""
        level = 1.0 - (1.0 - self.level) / max(1, len(self._parts))
        rates = []
        for name, rows in self._parts:
            raw, by_labels = self._raw(rows, level), self._corrected(rows, level)
            rate = self._carried(raw, level)[0] if by_labels is None else by_labels.estimate
            n_labelled = 0 if self.labels is None else int(rows[self.labels.at].sum())
            rates.append(RateOf(name, int(rows.sum()), n_labelled, raw, rate))
        return tuple(rates)

    def _differences(self) -> tuple[RateDifference, ...]:
        """Every pair of values, all intervals at once, from labels alone: the judge may differ on each."""
        if self.labels is None or not self.is_share or len(self._parts) > _MOST_COMPARED:
            return ()
        pairs = list(itertools.combinations(self._parts, 2))
        verdicts = np.zeros(self.table.n) if self.warning else self.verdicts
        groups, labelled = self.table.group, self.labels.rows(self.label_values)
        level = 1.0 - (1.0 - self.level) / max(1, len(pairs))
        return tuple(
            RateDifference(a, b, corrected_difference(
                verdicts, groups, labelled, (rows_a, rows_b), level=level, seed=self.seed
            ))
            for (a, rows_a), (b, rows_b) in pairs
        )  # fmt: skip

    # --- labels held against the lock and the table

    def _shift(self) -> ShiftSeen | None:
        """The lock's error rates held against those of the labels."""
        labels, applied = self.labels, self.lock.applied
        if labels is None or not self.is_share:
            return None
        people = self.rule.people
        mark = "" if people.kind == "binary" else f"@{people.pass_at:g}"
        names = [name for name in (f"tpr{mark}", f"tnr{mark}") if name in applied]
        if not names:
            return None
        weights = None if labels.chance is None else 1.0 / labels.chance
        now = agreement(
            labels.label,
            self.rule.mapped(self.table.verdict[labels.at]),
            scale=people,
            judge_scale=self.rule.common if self.lock.calibration is None else people,
            groups=self.table.group[labels.at].tolist(),
            metrics=names,
            unscored="wrong",
            weights=None if weights is None else weights / weights.mean(),
        )
        rates = {name: {"locked": applied[name], "now": now[name]} for name in names}
        if len(names) < 2:
            return ShiftSeen(False, None, rates)

        def of_scored(rate: Estimate) -> Estimate:
            """Of the scored ones, as a table's verdicts are: the lock counts unscored items as wrong."""
            ends = [
                None if end is None else min(1.0, end / (1.0 - self.lock.unscored))
                for end in (rate.value, rate.low, rate.high)
            ]
            return dataclasses.replace(rate, value=ends[0], low=ends[1], high=ends[2])

        # the table's verdicts, and the labels given each
        verdicts, groups = self.verdicts[labels.at], self.table.group[labels.at]
        every, given = np.ones(self.table.n, dtype=np.bool_), []
        for side in (1.0, 0.0):
            own = verdicts == side
            of_side = np.ones(int(own.sum())) if weights is None else weights[own]
            values = self.label_values[own]
            given.append(mean_estimate(values, groups[own].tolist(), weights=of_side, level=self.level))
        sample = JudgedSample(self._raw(every, self.level), *given)
        seen = shift(of_scored(applied[names[0]]), of_scored(applied[names[1]]), sample)
        return ShiftSeen(seen.contradicts, seen.p_value, rates)

    def _drawn(self) -> DrawSeen | None:
        """Labelled rows' verdicts held against the table's: labels drawn at random have them too."""
        if self.labels is None or self.table.unscored.all():
            return None
        filled = np.where(self.table.unscored, np.nanmean(self.verdicts), self.verdicts)
        labelled, (low, high) = self.labels.rows(filled[self.labels.at]), self.ends
        return drawn_otherwise(filled, self.table.group, labelled, low=low, high=high, seed=self.seed)

    # --- rows for a person

    def _confidence(self) -> Floats:
        """How sure the judge is of each row: how far from where verdicts begin to pass, less their spread.

        Below all of these where a second judge differs, and minus infinity without a verdict.
        """
        table, rule = self.table, self.rule
        sure = np.abs(table.verdict - rule.cut) / rule.judge.span
        if len(table.spread):
            sure = sure - table.spread / rule.judge.span
        if len(table.second):
            sure = np.where(rule.passed(table.second) == rule.passed(table.verdict), sure, sure - _APART)
        return np.where(table.unscored, -np.inf, sure)

    def _escalated(self) -> Escalated | None:
        """What is left to the judge where it must agree with people at the target."""
        target, labels = self.escalate, self.labels
        if target is None or labels is None:
            return None
        sure, at = self._confidence(), labels.at
        weights = np.ones(len(at)) if labels.chance is None else 1.0 / labels.chance
        agrees = self.rule.passed(self.table.verdict[at]) == self.label_values
        judged = JudgedLabels(sure[at], agrees, self.table.group[at], weights)
        kept = escalation(sure, judged, target=target, level=self.level)
        n_rows = self.table.n if kept.threshold is None else int((sure < kept.threshold).sum())
        sheet = None if self.sheet is None else str(self.sheet)
        return Escalated(
            target, kept.share, kept.agreement, kept.threshold, n_rows, kept.labels_needed, sheet
        )

    def _write_sheet(self, escalated: Escalated, sheet: Path) -> None:
        """The rows that a person must read as a blind sheet, each text once."""
        sure, threshold = self._confidence(), escalated.threshold
        rows = np.flatnonzero(np.ones(len(sure), np.bool_) if threshold is None else sure < threshold)
        first = rows[np.unique(self.table.text[rows], return_index=True)[1]]
        columns = dataclasses.replace(self.named.columns, item=self.columns.item)
        items = items_at(self.path, columns, first.tolist())
        write_sheets(list(items.values()), sheet, name=self.path.name, seed=self.seed)

    # --- in sentences

    def _assumes(self) -> list[str]:
        """What the number takes for granted; what weighs most comes first."""
        gold, labels = self.lock.gold, self.labels
        if labels is not None:
            how = "with their recorded chances" if labels.chance is not None else "all rows as likely"
            assumed = [f"the labels of {labels.gold.name} were drawn at random from these rows, {how}"]
            if labels.n_waiting:
                assumed.append(
                    f"the {labels.n_waiting} drawn items without a label would have had labels like the "
                    "others"
                )
            return [*assumed, "the number is about these rows; other questions may differ"]
        assumed = [f"the judge errs on these rows as often as it did on {gold.set} ({gold.split})"]
        if gold.ties:
            share = f"{100.0 * gold.ties:.1f}% of what they rated there"
            assumed.append(
                f"and as often where people would not agree: raters tie on {share}, which is not in its "
                "error rates"
            )
        if self.by is not None:
            assumed.append(f"and as often for every value of {self.by}")
        if self.table.unscored.any():
            assumed.append("the rows without a verdict are like the others")
        return assumed

    def _notes(self, *, compared: bool) -> list[str]:
        notes = []
        if self.gold is not None and self.gold.card.sampling not in ("random", "stratified"):
            notes.append(
                f"the card of {self.gold.name} does not say how it was sampled (sampling in card.toml): that "
                "it was drawn from these rows is taken on trust"
            )
        if self.lock.unscored and self.gold is None:
            share = f"{100.0 * self.lock.unscored:.1f}%"
            notes.append(
                f"{share} of the calls at lock time gave no verdict, and count as wrong in its error rates"
            )
        if compared:
            notes.append(f"intervals by {self.by} hold all at once (Bonferroni)")
        return notes


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
        gold=None if labels is None else load_gold(labels, workspace=where),
        escalate=escalate,
        level=level,
        seed=seed,
        out=name,
    ).run()
