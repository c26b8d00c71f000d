"""What a suite comes to: of each measure how many rows it judged, what share passes, and how sure that is."""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.production.suite_columns import Measure, Member, Naming, Said
from judgecal.records import ITEM_UNIT, Estimate, Result
from judgecal.selection.pass_rates import group_number, word_shares
from judgecal.stats.intervals import mean_estimate


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A judge of the suite that judged nothing, and why."""

    name: str
    judge: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRate:
    """What the verdicts of one measure come to.

    Attributes:
        raw: the share of the rows that pass, the mean precision, or the mean share: 0..1, by the judge's own
            verdicts.
        calibrated: the same through the maps of locks; without a value where a judge of the measure has none.
        average: the mean verdict on the judge's own scale, or as `raw` where that is no share of verdicts.
        n, n_expected, n_unscored: rows with a verdict (one with precision has one on a chunk at least), all,
            others.
        n_chunks, n_chunks_unscored: of a judge of chunks; else 0.
        words: word -> verdicts, on a nominal scale.
        shares: word -> share of the rows with a verdict, the most frequent first; of a judge of chunks empty.
        unscored: kind of failure -> verdicts that could not be had.
        judged_by: judge -> rows.
    """

    column: str
    aggregate: str
    unit: str
    scale: str
    raw: Estimate
    calibrated: Estimate
    average: Estimate
    n: int
    n_expected: int
    n_unscored: int
    n_chunks: int
    n_chunks_unscored: int
    words: Mapping[str, int]
    shares: Mapping[str, Estimate]
    unscored: Mapping[str, int]
    judged_by: Mapping[str, int]

    @property
    def shown(self) -> Estimate:
        """The rate of a headline: the calibrated one where there is one."""
        return self.raw if self.calibrated.value is None else self.calibrated


@dataclass(frozen=True, slots=True)
class SuiteMember:
    """A judge that ran. `lock`: its lock's path; without one nobody knows whether it agrees with people."""

    name: str
    judge: str
    kind: str
    lock: str | None


@dataclass(frozen=True, slots=True)
class ToLabel:
    """What `gold sheet` needs to draw rows of the table for one judge, so that people's labels can be had for
    it.

    Attributes:
        name, judge: the judge without a lock that such rows hold all the inputs of; of several the lowest
            rate's.
        scale: of its verdicts.
        n: how many rows to draw.
        columns: option -> column, where it is not the default.
    """

    name: str
    judge: str
    scale: str
    n: int
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult(Result):
    """What a table judged by a suite comes to."""

    experiment: str
    suite: str
    input: str
    output: str
    naming: str
    columns: Mapping[str, Mapping[str, str]]  # measure -> part of its result -> column of the output
    n: int  # rows, and those in which something is unscored
    n_unscored: int
    rates: Mapping[str, SuiteRate]
    metrics: Mapping[str, Estimate]  # the same numbers under the names that a dashboard knows them by
    judges: tuple[SuiteMember, ...]
    left_out: tuple[LeftOut, ...]
    to_label: (
        ToLabel | None
    )  # None where every judge has a lock, or none of the others' inputs fit on a sheet
    usd: float | None
    usd_per_1k: float | None  # a thousand rows; a stored reply counts as if it had been called for
    model_ids: tuple[str, ...]
    notes: tuple[str, ...]
    run_line: str

    @property
    def unlocked(self) -> tuple[SuiteMember, ...]:
        """Those of which nobody knows whether they agree with people; a rule that calls nobody is what it
        says."""
        return tuple(one for one in self.judges if one.lock is None and one.kind != "local")


class Tally:
    """The rows of one measure, counted on the way into the output."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self._groups, self._verdicts, self._labels = array("q"), array("d"), array("d")
        self._raw, self._shares = array("d"), array("d")
        self._codes = array("d")
        self._code_of = {word: code for code, word in enumerate(measure.members[0].judge.scale.categories)}
        self._n = 0
        self._chunks: Counter[bool] = Counter()
        self._words: Counter[str] = Counter()
        self._unscored: Counter[str] = Counter()
        self._judged_by: Counter[str] = Counter()

    def add(self, member: Member, group: str, said: Sequence[Said]) -> bool:
        """Count a row; whether something of it is unscored."""
        verdicts = [one.verdict for one in said if one.verdict is not None]
        numbers = [float(one) for one in verdicts if not isinstance(one, str)]
        labels = [
            float(one) for one in map(member.label, verdicts) if one is not None and not isinstance(one, str)
        ]
        words = [one for one in verdicts if isinstance(one, str)]
        self._groups.append(group_number(group))
        self._codes.append(
            self._code_of.setdefault(words[0], len(self._code_of)) if len(words) == 1 else math.nan
        )
        for shares, raw in ((self._shares, False), (self._raw, True)):
            share = self.measure.share(member, said, raw=raw)
            shares.append(math.nan if share is None else share)
        self._verdicts.append(numbers[0] if len(numbers) == 1 else math.nan)
        self._labels.append(labels[0] if len(labels) == 1 else math.nan)
        self._n += bool(verdicts)
        self._words.update(words)
        self._unscored.update((one.error or "").partition(":")[0] for one in said if one.verdict is None)
        self._judged_by[member.judge.name] += bool(verdicts)
        if self.measure.aggregate == "precision":
            self._chunks.update(one.verdict is not None for one in said)
        return len(verdicts) < len(said)

    @property
    def name(self) -> str:
        """The measure's."""
        return self.measure.name

    def rate(self) -> SuiteRate:
        """What they come to."""
        measure, judge = self.measure, self.measure.members[0].judge
        raw = self._mean(self._raw, 0.0, 1.0, _no_share(measure))
        calibrated = self._mean(self._shares, 0.0, 1.0, _no_share(measure))
        if not measure.calibrates:
            unknown = "no lock of its judges has a map for this"
            calibrated = dataclasses.replace(
                calibrated, value=None, low=None, high=None, method="", reason=unknown
            )
        average = raw
        if measure.aggregate == "rating":
            scale = judge.scale
            average = self._mean(
                self._verdicts, scale.low, scale.high, "its verdicts are words, which have no mean"
            )
        return SuiteRate(
            column=measure.column,
            aggregate=measure.aggregate,
            unit=judge.unit,
            scale=str(judge.scale),
            raw=raw,
            calibrated=calibrated,
            average=average,
            n=self._n,
            n_expected=len(self._groups),
            n_unscored=len(self._groups) - self._n,
            n_chunks=self._chunks.total(),
            n_chunks_unscored=self._chunks[False],
            words=dict(self._words),
            shares=self._shares_of_words() if judge.unit == ITEM_UNIT else {},
            unscored=dict(self._unscored),
            judged_by=dict(self._judged_by),
        )

    def _shares_of_words(self) -> dict[str, Estimate]:
        return word_shares(np.frombuffer(self._codes, dtype=np.float64), self._groups, self._code_of)

    def _mean(self, values: array[float], low: float, high: float, undefined: str) -> Estimate:
        """The mean of the rows that have a value, by question; `undefined`: why scored ones have none."""
        found = mean_estimate(values, self._groups, low=low, high=high)
        reason = undefined if found.value is None and self._n else found.reason
        return dataclasses.replace(found, n_unscored=len(self._groups) - self._n, reason=reason)

    def metrics(self, rate: SuiteRate, naming: Naming) -> dict[str, Estimate]:
        """The numbers under their names; where a rating is yes or no, its average is the share of yes."""
        average = rate.shown if self.measure.rated or self.measure.aggregate != "rating" else rate.average
        if (
            self.measure.calibrates
            and not self.measure.rated
            and naming != "plain"
            and rate.average.value is not None
        ):
            people = self.measure.members[0].rule.people
            average = self._mean(self._labels, people.low, people.high, "")
        values = {"share": rate.shown, "average": average}
        names = self.measure.metrics(naming)
        return {name: values[part] for part, name in names.items() if part == "average" or self.measure.rated}


def _no_share(measure: Measure) -> str:
    if not measure.members[0].judge.scale.numeric:
        return "its verdicts are words, and none of them is said to pass"
    return "nobody has set a mark from which its verdicts pass: a lock carries one"
