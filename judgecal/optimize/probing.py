"""`optimize --probes`: probes of train to learn from, of dev to choose by, and of test to confirm by, once.

Agreement is not traded away: of the candidates that agree on dev at least as well as the judge as it was, the
one with the fewest broken probes is taken where these are fewer by more than luck, as `choose` has it; else
agreement alone chooses. On test it may be taken for probes unless its agreement is shown to fall.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.goldset import GoldSet
from judgecal.judges.prompt import PromptJudge
from judgecal.optimize.result import Choice, OptimizedProbes, ScoredCandidate, Stage, choose
from judgecal.probes.family import FamilyProbes, Probe, Sources, make_probes
from judgecal.probes.result import Footing, ProbeVerdicts, break_changes, share_of, sum_by_group
from judgecal.probes.rules import families_named
from judgecal.probes.run import family_fits
from judgecal.records import Item
from judgecal.scale import Label
from judgecal.stats.confirmation import Gains
from judgecal.stats.intervals import MIN_GROUPS, mean_estimate
from judgecal.stats.sample import Floats

N_PROBES, N_FREE = 20, 100
"""Probes of a family, on dev and on test each: of a model that is paid for, and of the embedded one."""
Broken = Mapping[str, Floats]


@dataclass(frozen=True)
class SplitProbes:
    """The probes of one split."""

    made: tuple[FamilyProbes, ...]

    @classmethod
    def of(cls, gold: GoldSet, items: Sequence[Item], judge: PromptJudge, seed: int) -> SplitProbes:
        """Return the SplitProbes of a GoldSet and Items that fit a PromptJudge, drawn by a seed."""
        n = N_FREE if judge.model.embedded else N_PROBES
        every = make_probes(gold, items, families_named(()), n=n, seed=seed, sources=Sources.of(gold, items))
        return cls(tuple(probes for probes in every if family_fits(judge, probes)))

    @property
    def items(self) -> list[Item]:
        """The probes themselves."""
        return [probe.item for made in self.made for probe in made]

    @property
    def groups(self) -> list[str]:
        """The question of each probe."""
        return [item.group for item in self.items]

    def broken(self, table: AgreementTable, column: Verdicts, footing: Footing) -> Broken:
        """From an AgreementTable, Verdicts and a Footing, return Broken: which probes break a judge.

        `inf` where one could not. No verdict is a break: else a candidate that answers no probe would look
        mended.
        """
        verdicts = ProbeVerdicts.of(footing, column)
        values = {made[0].family.name: verdicts.broken(made) for made in self.made}
        return {name: np.where(np.isnan(broken), 1.0, broken) for name, broken in values.items()}

    def held(self, before: Broken, after: Broken, *, level: float = 0.95) -> OptimizedProbes:
        """From Broken before and Broken after, return OptimizedProbes: shares broken, paired by probe."""
        families = dict[str, tuple[float | None, float | None]]()
        for made in self.made:
            groups = [probe.item.group for probe in made]
            first, second = (share_of(broken[made[0].family.name], groups) for broken in (before, after))
            families[made[0].family.name] = first.value, second.value
        change = break_changes(_flat(before), _flat(after))
        return OptimizedProbes(
            share_of(_flat(before), self.groups, level=level),
            share_of(_flat(after), self.groups, level=level),
            mean_estimate(change, self.groups, low=-1.0, high=1.0, level=level),
            families=families,
        )


def _flat(broken: Broken) -> Floats:
    return np.concatenate([*broken.values(), np.zeros(0)])


def train_probes(
    gold: GoldSet, items: Sequence[Item], judge: PromptJudge, *, seed: int
) -> tuple[list[Probe], dict[str, Label]]:
    """From a GoldSet, its train Items, a PromptJudge and a seed: Probes, and item id -> label.

    The label is what a probe must get: an end of the scale, or that of the answer which it was made of. One
    that must fall has the lower end, which a binary scale says; on a graded one nobody knows its label.
    """
    scale, made = gold.scale, SplitProbes.of(gold, items, judge, seed).made
    ends = {"full": scale.high, "none": scale.low, "falls": scale.low}
    usable = [probes for probes in made if probes[0].family.kind != "falls" or not scale.graded]
    turns = itertools.chain(*itertools.zip_longest(*usable))
    probes = [probe for probe in turns if probe is not None][: len(items)]
    return probes, {
        probe.item.item_id: ends.get(probe.family.kind, gold.labels[probe.of.item_id]) for probe in probes
    }


def choose_probed(
    scored: Sequence[ScoredCandidate],
    metric: str,
    dev: AgreementTable,
    probes: SplitProbes,
    stages: Sequence[Stage] = (),
) -> tuple[Choice, OptimizedProbes | None]:
    """Return (Choice, OptimizedProbes or None) by ScoredCandidates, metric, AgreementTable, SplitProbes."""
    before, choice = scored[0], choose(scored, metric, dev, stages)
    if not probes.made:
        return choice, None
    broken = {
        candidate.name: probes.broken(dev, candidate.column, Footing.of(dev, candidate.column))
        for candidate in scored
    }
    able = [candidate for candidate in scored[1:] if candidate.value(metric) >= before.value(metric)]
    if able and len(set(probes.groups)) >= MIN_GROUPS:
        flat = _flat(broken["before"])
        changes = [break_changes(_flat(broken[candidate.name]), flat) for candidate in able]
        fewer = np.array([sum_by_group(change, probes.groups) for change in changes])  # one sum a question
        best = max(range(len(able)), key=lambda place: (fewer[place].sum(), able[place].value(metric)))
        if float(fewer[best].sum()) > Gains.of_parts(fewer.sum(axis=1), fewer).by_luck(dev.seed):
            agrees = "of those that agree on dev no less than the judge as it was, it has the fewest broken"
            choice = Choice(able[best], f"{agrees} probes, fewer by more than luck")
    return choice, probes.held(broken["before"], broken[choice.taken.name])
