"""Probes that stand beside other results: those that an experiment holds of a judge, and those of a lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from judgecal.artefacts import read_toml
from judgecal.errors import InputError
from judgecal.experiment import Experiment, gold_config
from judgecal.goldset import GoldSet
from judgecal.probes.family import NoProbe, Probe, Sources, families, one_probe
from judgecal.probes.result import (
    Footing,
    ProbedAnswer,
    ProbedJudge,
    ProbeResult,
    ProbeVerdicts,
    SaidOfProbe,
    breaks,
    by_group,
    changes,
    share_of,
    worst_first,
)
from judgecal.records import Estimate, Result, digest
from judgecal.stats.intervals import MIN_GROUPS, mean_estimate
from judgecal.stats.significance import holm, sign_flip_p

_PROBE = b'command = "probe"'


@dataclass(frozen=True, slots=True)
class KeptProbes:
    """What experiments of `probe` say of one judge, the newest of each family."""

    judge: ProbedJudge
    by_family: Mapping[str, ProbeResult]

    def answers(self, family: str) -> list[tuple[ProbedAnswer, SaidOfProbe]]:
        """The probes of a family, each with what the judge said of it."""
        result = self.by_family[family]
        names = {judge.judge for judge in result.judges if judge.fingerprint == self.judge.fingerprint}
        rows = [(answer, verdict) for answer in result.answers for verdict in answer.said]
        return [
            (answer, verdict)
            for answer, verdict in rows
            if answer.family == family and verdict.judge in names
        ]

    def broken(self, family: str, *, level: float) -> Estimate:
        """The share of a family's probes that break the judge."""
        rows = self.answers(family)
        outcomes = [(verdict.broken, np.nan if None in verdict.raw else np.inf) for _, verdict in rows]
        values = np.array([neither if broken is None else float(broken) for broken, neither in outcomes])
        return share_of(values, [answer.group for answer, _ in rows], level=level)


def probe_summaries(experiments: Path) -> list[Path]:
    """The results of `probe`, the oldest first."""
    configs = (path for path in experiments.glob("*/experiment.toml") if _PROBE in path.read_bytes())
    there = [summary for path in configs if (summary := path.with_name("summary.json")).is_file()]
    return sorted(there, key=lambda path: path.stat().st_mtime_ns)


def stored_probes(experiments: Path, gold: GoldSet) -> dict[str, KeptProbes]:
    """Fingerprint of a judge -> its probes of a gold set as it is."""
    by_judge: dict[str, KeptProbes] = {}
    for path in probe_summaries(experiments):
        try:
            config = read_toml(path.with_name("experiment.toml"))
            if config.get("gold") != gold_config(gold):
                continue
            result = Experiment(path.parent, config).read_summary(ProbeResult)
        except InputError:  # damaged, or of another version: its own report says so
            continue
        for judge in result.judges:
            before, names = by_judge.get(judge.fingerprint), {family.family for family in judge.families}
            older = (
                [family for family in before.judge.families if family.family not in names] if before else []
            )
            families = tuple(sorted((*judge.families, *older), key=worst_first))
            by_family = {**(before.by_family if before else {}), **dict.fromkeys(names, result)}
            by_judge[judge.fingerprint] = KeptProbes(replace(judge, families=families), by_family)
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
    """What a lock keeps of a judge's probes, by family."""
    locked = {}
    for family, result in (kept.by_family if kept else {}).items():
        if rows := kept.answers(family) if kept else []:
            before, after = (
                np.array([footing.height(verdict.raw[at]) for _, verdict in rows]) for at in (0, 1)
            )
            answers = [answer for answer, _ in rows]
            values = breaks(answers[0].kind, before, after, footing.marks)
            pairs = zip(answers, values, strict=True)
            locked[family] = LockedProbes(
                len(rows),
                share_of(values, [answer.group for answer in answers]),
                result.seed,
                digest({answer.item_id: answer.sha for answer in answers}),
                {answer.item_id: None if np.isnan(value) else bool(value == 1.0) for answer, value in pairs},
            )
    return locked


def remade(locked: Mapping[str, LockedProbes], gold: GoldSet, where: str) -> dict[str, list[Probe]]:
    """The probes of a lock, made again; refused where the rules make others today."""
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
    """The families of a lock, the largest rise first."""
    rows, p_values = list[ProbesNow](), list[float | None]()
    for family, probes in made.items():
        then = [locked[family].outcomes[probe.item.item_id] for probe in probes]
        now, groups = verdicts.broken(probes), [probe.item.group for probe in probes]
        change = changes(np.array([np.nan if one is None else float(one) for one in then]), now)
        paired = ~np.isnan(change)
        parts = by_group(change[paired], np.array(groups)[paired])
        p_values.append(sign_flip_p(parts)[0] if len(parts) >= MIN_GROUPS else None)
        difference = mean_estimate(change, groups, low=-1.0, high=1.0, level=level)
        share = share_of(now, groups, level=level)
        rows.append(ProbesNow(family, locked[family].broken, share, difference, None, easier=False))
    rows_now = []
    for row, p in zip(rows, holm(p_values), strict=True):
        easier = p is not None and p < 1.0 - level and (row.difference.value or 0.0) > 0.0
        rows_now.append(replace(row, p_value=p, easier=easier))
    return tuple(sorted(rows_now, key=lambda row: -(row.difference.value or 0.0)))
