"""When a probe is broken, how often a judge's are, and what that comes to beside its own noise.

A verdict is read as it describes the judge: calibrated, by the map of the items that were judged, on the
people's scale; raw where there is no map, or one that gives every verdict the same label. A verdict falls,
rises or moves from a tenth of the scale on, of two classes to the other one. Without a pass mark full marks
are the top third, and none are the bottom one.

Noise is what the same answer does when the judge is asked again: moves, rises or falls as the probe may, or
changes sides. A family is shown to break a judge where the share broken lies above the noise by more than the
share of probes that may not be what they claim, by question, all families of the judge together at the level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from judgecal.artefacts import read_toml
from judgecal.errors import InputError
from judgecal.experiment.agreement import GoldSummary
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.folder import Experiment
from judgecal.experiment.score import gold_config
from judgecal.experiment.verdicts import Cut
from judgecal.goldset import GoldSet
from judgecal.probes.family import TENTH, FamilyProbes, Kind, NoProbe, Probe, Sources, one_probe
from judgecal.probes.rules import families
from judgecal.records import Estimate, Item, Result, digest
from judgecal.scale import Label, Scale
from judgecal.stats import Calibration
from judgecal.stats.intervals import MIN_GROUPS, mean_estimate
from judgecal.stats.sample import Floats
from judgecal.stats.significance import holm, sign_flip_p

MISLED = 0.02
"""The share of a family's probes that may not be what they claim: 98 of 100 read one by one are."""
_EPS = 1e-9


@dataclass(frozen=True)
class Footing:
    """How the verdicts of one judge are read: as shares of a scale, with the marks from which they pass."""

    cut: Cut
    calibration: Calibration | None = None  # None: raw verdicts

    @classmethod
    def of(cls, table: AgreementTable, column: Verdicts) -> Footing:
        """From an AgreementTable and a judge's Verdicts, return the Footing, by the map fitted there."""
        mapped = table.calibrated(column) is not None
        calibration = table.calibration(column, fitted_on="the items judged") if mapped else None
        return cls.through(calibration, table.gold.scale, column.scale)

    @classmethod
    def through(cls, calibration: Calibration | None, people: Scale, judge: Scale) -> Footing:
        """From a Calibration or None, people's Scale and a judge's Scale, return the Footing; raw if None."""
        usable = calibration if calibration is not None and not calibration.constant else None
        return cls(Cut(people, people if usable else judge), usable)

    def label(self, verdict: Label | None) -> Label | None:
        """Return the verdict that describes the judge: on the scale of people where there is a map."""
        return verdict if self.calibration is None else self.calibration.apply(verdict)

    def height(self, verdict: Label | None) -> float:
        """Return a verdict (Label) as a share of the scale, 0..1; NaN without one."""
        label, common = self.label(verdict), self.cut.common
        return np.nan if label is None else (self.cut.verdict_at(label) - common.low) / common.span

    @property
    def marks(self) -> tuple[float, float]:
        """The share from which on marks are full, and the share below which there are none."""
        if self.cut.mark is None:
            return 2.0 / 3.0, 1.0 / 3.0 + 2 * _EPS
        return ((self.cut.mark - self.cut.common.low) / self.cut.common.span,) * 2


def breaks(kind: Kind, before: Floats, after: Floats, marks: tuple[float, float]) -> Floats:
    """From a Kind, heights before and after and two marks, return an array by probe: 1 broken, 0 holds.

    NaN is unscored, `inf` cannot break. `before` and `after`: heights of the verdicts on the answers and on
    the probes made of them. An answer that the judge gives nothing cannot fall, one that it gives all cannot
    rise.
    """
    lacking = np.isnan(after) if kind in ("full", "none") else np.isnan(before + after)
    rise, tenth = after - before, TENTH - _EPS
    broken = {
        "full": after < marks[0] - _EPS,
        "none": after >= marks[1] - _EPS,
        "falls": rise > -tenth,
        "still": np.abs(rise) >= tenth,
        "no_rise": rise >= tenth,
    }[kind]
    full = (kind == "falls") & (before < tenth) | (kind == "no_rise") & (before > 1.0 - tenth)
    return np.where(lacking, np.nan, np.where(full, np.inf, broken.astype(np.float64)))


def noise_moves(kind: Kind, before: Floats, again: Floats, marks: tuple[float, float]) -> Floats:
    """From a Kind, heights before and again and two marks, return an array by answer: 1 where it moves."""
    rise, tenth, mark = again - before, TENTH - _EPS, marks[kind == "none"] - _EPS
    sides = (before >= mark) != (again >= mark)
    by_kind = {"falls": rise <= -tenth, "no_rise": rise >= tenth, "still": np.abs(rise) >= tenth}
    return np.where(np.isnan(rise), np.nan, by_kind.get(kind, sides).astype(np.float64))


def share_of(broken: Floats, groups: Sequence[str], *, level: float = 0.95) -> Estimate:
    """Return the share broken as an Estimate, from an array of broken probes and the group of each."""
    could = ~np.isinf(broken)
    of_groups = [group for group, there in zip(groups, could, strict=True) if there]
    return replace(
        mean_estimate(broken[could], of_groups, level=level), n_unscored=int(np.isnan(broken).sum())
    )


def break_changes(before: Floats, after: Floats) -> Floats:
    """From arrays broken before and after, return an array: 1 newly breaks, -1 no longer.

    One that could not break at one time held then; NaN without a verdict, and where it could at neither time.
    """
    never = np.isinf(before) & np.isinf(after)
    held = (np.where(np.isinf(values), 0.0, values) for values in (after, before))
    return np.where(never, np.nan, np.subtract(*held))


@dataclass(frozen=True, slots=True)
class FamilyResult(Result):
    """One family on one judge."""

    family: str
    kind: Kind
    n: int  # probes with a verdict that could break
    n_unscored: int
    broken: Estimate  # share of them, 0..1
    noise: Estimate  # share of the same answers that do so when the judge is asked again
    excess: Estimate  # broken less noise, paired, at the level of all families together
    shown: bool  # whether it is shown to break the judge


@dataclass(frozen=True, slots=True)
class ProbedJudge(Result):
    """A judge on the probes, worst family first."""

    judge: str
    fingerprint: str
    families: tuple[FamilyResult, ...]
    mapped: bool  # whether these are calibrated verdicts

    @property
    def broken(self) -> list[FamilyResult]:
        """The families that are shown to break the judge."""
        return [family for family in self.families if family.shown]


@dataclass(frozen=True, slots=True)
class ProbeVerdict(Result):
    """What a judge said of an answer and of the probe made of it, in the verdicts that describe it."""

    judge: str
    before: Label | None
    after: Label | None
    raw: tuple[Label | None, Label | None]
    broken: bool | None  # None where it has no verdict, or could not break
    why: str


@dataclass(frozen=True, slots=True)
class ProbedAnswer(Result):
    """A probe with what it was made of and what the judges said of both."""

    item_id: str
    sha: str
    family: str
    kind: Kind
    group: str
    question: str
    references: tuple[str, ...]
    original: str
    answer: str
    said: tuple[ProbeVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult(Result):
    """What `probe` comes to."""

    experiment: str
    gold: GoldSummary
    judges: tuple[ProbedJudge, ...]
    n_per_family: int
    seed: int
    notes: tuple[str, ...]
    run_line: str
    answers: tuple[ProbedAnswer, ...] = field(default=(), metadata={"json": False})

    @property
    def n_unscored(self) -> int:
        """The number of probes without a verdict, over all judges and families."""
        return sum(family.n_unscored for judge in self.judges for family in judge.families)


@dataclass(frozen=True)
class ProbeVerdicts:
    """The verdicts of a judge: of answers and probes by item id, and of answers that were judged again."""

    footing: Footing
    first: Mapping[str, Label | None]
    again: Mapping[str, Label | None] | None = None  # None: the judge gives the same each time

    @classmethod
    def of(cls, footing: Footing, column: Verdicts, *, certain: bool = True) -> ProbeVerdicts:
        """Return the ProbeVerdicts of a judge's Verdicts by a Footing; repeat 1: judged again."""
        first, second = (
            {row.item_id: row.verdict for row in column.rows if row.repeat == at} for at in (0, 1)
        )
        return cls(footing, first, None if certain else second)

    def _heights(self, verdicts: Mapping[str, Label | None], items: Iterable[Item]) -> Floats:
        return np.array([self.footing.height(verdicts.get(item.item_id)) for item in items])

    def broken(self, probes: Sequence[Probe]) -> Floats:
        """Return for Probes of a family an array of floats, as `breaks` gives it: which break the judge."""
        before = self._heights(self.first, (probe.of for probe in probes))
        after = self._heights(self.first, (probe.item for probe in probes))
        return breaks(probes[0].family.kind, before, after, self.footing.marks)

    def noise(self, probes: Sequence[Probe]) -> Floats:
        """Return for Probes of a family an array of floats, as `noise_moves`: which answers move by noise."""
        if self.again is None:
            return np.zeros(len(probes))
        before, again = (
            self._heights(verdicts, (probe.of for probe in probes)) for verdicts in (self.first, self.again)
        )
        return noise_moves(probes[0].family.kind, before, again, self.footing.marks)


def family_result(
    probes: FamilyProbes, verdicts: ProbeVerdicts, *, of: int, level: float = 0.95
) -> FamilyResult:
    """Return the FamilyResult of a family's FamilyProbes by ProbeVerdicts; `of`: the number of families."""
    groups = [probe.item.group for probe in probes]
    outcomes, noise = verdicts.broken(probes), verdicts.noise(probes)
    could, broken = ~np.isinf(outcomes), share_of(outcomes, groups, level=level)
    apart, there = (outcomes - noise)[could], np.array(groups, dtype=str)[could]
    least, together = -1.0 if np.nansum(noise[could]) else 0.0, (1.0 - level) / of
    excess = mean_estimate(apart, there.tolist(), low=least, level=1.0 - together)
    # few moves either way leave no interval to trust: their signs must be rarer than the level allows, too
    rare = verdicts.again is None or sign_flip_p(sum_by_group(apart, there))[0] / 2.0 < together
    moves = share_of(np.where(could, noise, np.inf), groups, level=level)
    if verdicts.again is None and broken.n:
        never = "the same each time, by its making"
        moves = replace(broken, value=0.0, low=0.0, high=0.0, method=never, reason=None)
    return FamilyResult(
        family=probes[0].family.name,
        kind=probes[0].family.kind,
        n=broken.n,
        n_unscored=broken.n_unscored,
        broken=broken,
        noise=moves,
        excess=replace(excess, n_unscored=broken.n_unscored),
        shown=excess.low is not None and excess.low > MISLED and rare,
    )


def sum_by_group(values: Floats, groups: npt.ArrayLike) -> Floats:
    """Return an array of sums by group, of an array of values and the group of each; NaN adds nothing."""
    codes = np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1]
    return np.bincount(codes, weights=np.nan_to_num(values)).astype(np.float64)


_PROBE = b'command = "probe"'


@dataclass(frozen=True, slots=True)
class KeptProbes:
    """What the newest experiment of `probe` with a judge says of it."""

    judge: ProbedJudge
    result: ProbeResult

    def answers(self, family: str) -> list[tuple[ProbedAnswer, ProbeVerdict]]:
        """Return pairs (ProbedAnswer, ProbeVerdict), a list, of the family so named."""
        return [
            (answer, verdict)
            for answer in self.result.answers
            for verdict in answer.said
            if answer.family == family and verdict.judge == self.judge.judge
        ]

    def broken(self, family: str, *, level: float) -> Estimate:
        """Return the share of probes of the family so named that break the judge: an Estimate at a level."""
        rows = self.answers(family)
        outcomes = [(verdict.broken, np.nan if None in verdict.raw else np.inf) for _, verdict in rows]
        values = np.array([neither if broken is None else float(broken) for broken, neither in outcomes])
        return share_of(values, [answer.group for answer, _ in rows], level=level)


def stored_probes(experiments: Path, gold: GoldSet) -> dict[str, KeptProbes]:
    """From the path of the experiments and a GoldSet, return judge fingerprint -> KeptProbes."""
    by_judge: dict[str, KeptProbes] = {}
    configs = (path for path in experiments.glob("*/experiment.toml") if _PROBE in path.read_bytes())
    summaries = [summary for path in configs if (summary := path.with_name("summary.json")).is_file()]
    for path in sorted(summaries, key=lambda path: path.stat().st_mtime_ns):
        try:
            config = read_toml(path.with_name("experiment.toml"))
            if config.get("gold") != gold_config(gold):
                continue
            result = Experiment(path.parent, config).read_summary(ProbeResult)
        except InputError:  # damaged, or of another version: its own report says so
            continue
        by_judge |= {judge.fingerprint: KeptProbes(judge, result) for judge in result.judges}
    return by_judge


@dataclass(frozen=True, slots=True)
class LockedProbes:
    """The probes of one family in a lock, with the verdicts as the lock's map has them."""

    n: int
    broken: Estimate
    seed: int
    sha: str  # of their texts
    outcomes: Mapping[str, bool | None]  # probe -> whether it is broken; None: no verdict


def locked_probes(kept: KeptProbes | None, footing: Footing) -> dict[str, LockedProbes]:
    """From KeptProbes (or None) and a Footing, return family -> LockedProbes, as a lock holds them."""
    locked = dict[str, LockedProbes]()
    if kept is None:
        return locked
    for family in [result.family for result in kept.judge.families]:
        if not (rows := kept.answers(family)):
            continue
        before, after = (np.array([footing.height(verdict.raw[at]) for _, verdict in rows]) for at in (0, 1))
        answers = [answer for answer, _ in rows]
        values = breaks(answers[0].kind, before, after, footing.marks)
        pairs = zip(answers, values, strict=True)
        locked[family] = LockedProbes(
            len(rows),
            share_of(values, [answer.group for answer in answers]),
            kept.result.seed,
            digest({answer.item_id: answer.sha for answer in answers}),
            {answer.item_id: None if np.isnan(value) else bool(value == 1.0) for answer, value in pairs},
        )
    return locked


def remake_probes(locked: Mapping[str, LockedProbes], gold: GoldSet, where: str) -> dict[str, list[Probe]]:
    """From family -> LockedProbes, a GoldSet and `where`, remake family -> Probes; refuse if they differ."""
    sources, items = Sources.of(gold), {item.item_id: item for item in gold.items}
    made: dict[str, list[Probe]] = {}
    for family, probes in locked.items():
        try:
            originals = [items[name.rpartition("~")[0]] for name in probes.outcomes]
            made[family] = [
                one_probe(families()[family], item, sources, seed=probes.seed) for item in originals
            ]
        except (NoProbe, KeyError):
            made[family] = []
        if digest({probe.item.item_id: probe.item.sha for probe in made[family]}) != probes.sha:
            raise InputError(
                f"{where}: this judgecal makes other probes of the family {family} than the lock holds: run "
                "judgecal probe and judgecal select again, or gate without --probes"
            )
    return made


@dataclass(frozen=True, slots=True)
class ProbesNow(Result):
    """A family of a lock on its judge now."""

    family: str
    locked: Estimate
    now: Estimate
    difference: Estimate  # now - locked, paired by probe
    p_value: float | None  # of no difference, after Holm over the families; None below ten questions
    easier: bool  # whether the judge is shown to break on more of them


def probes_now(
    locked: Mapping[str, LockedProbes],
    made: Mapping[str, Sequence[Probe]],
    verdicts: ProbeVerdicts,
    *,
    level: float,
) -> tuple[ProbesNow, ...]:
    """Return a ProbesNow a family, by family -> LockedProbes, family -> Probes, ProbeVerdicts and a level."""
    rows, p_values = list[ProbesNow](), list[float | None]()
    for family, probes in made.items():
        then = [locked[family].outcomes[probe.item.item_id] for probe in probes]
        now, groups = verdicts.broken(probes), [probe.item.group for probe in probes]
        change = break_changes(np.array([np.nan if one is None else float(one) for one in then]), now)
        paired = ~np.isnan(change)
        parts = sum_by_group(change[paired], np.array(groups)[paired])
        p_values.append(sign_flip_p(parts)[0] if len(parts) >= MIN_GROUPS else None)
        difference = mean_estimate(change, groups, low=-1.0, high=1.0, level=level)
        share = share_of(now, groups, level=level)
        rows.append(ProbesNow(family, locked[family].broken, share, difference, None, easier=False))
    rows_now = []
    for row, p in zip(rows, holm(p_values), strict=True):
        easier = p is not None and p < 1.0 - level and (row.difference.value or 0.0) > 0.0
        rows_now.append(replace(row, p_value=p, easier=easier))
    return tuple(sorted(rows_now, key=lambda row: -(row.difference.value or 0.0)))
