"""`optimize --probes`: probes of train to learn from, of dev to choose by, and of test to confirm by, once.

What is to be mended is what breaks: the families of which a tenth of the probes of train broke the judge as
it was. Agreement is not traded away: of the candidates that agree on dev at least as well as the judge as it
was, and break on no more probes of all families together, the one with the fewest broken probes of those to
be mended is taken where these are fewer by more than luck (as `choose` has it: in one run of five the best of
as many equal candidates gains more); else agreement alone chooses, as without probes. On test the same pair
is held to both: fewer probes break it where the paired difference is shown below 0, and it may be taken for
that unless its agreement is shown to fall.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.experiment import AgreementTable, Verdicts
from judgecal.goldset import GoldSet
from judgecal.optimize.programs import Optimised, model_of
from judgecal.optimize.result import Choice, OptimizedProbes, ScoredCandidate, Stage, choose
from judgecal.probes.family import TENTH, MadeProbes, Probe, Sources, families_named, make_probes
from judgecal.probes.result import Footing, ProbeVerdicts, by_group, changes, share_of
from judgecal.probes.run import fits
from judgecal.records import Estimate, Item
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

    made: tuple[MadeProbes, ...]
    weak: frozenset[str] = frozenset()  # the families that are to be mended; all where none is named

    @classmethod
    def of(cls, gold: GoldSet, items: Sequence[Item], judge: Optimised, seed: int) -> SplitProbes:
        """Make the probes of a split's items, borrowing from these items alone."""
        n = N_FREE if model_of(judge).embedded else N_PROBES
        every = make_probes(gold, items, families_named(()), n=n, seed=seed, sources=Sources.of(gold, items))
        return cls(tuple(probes for probes in every.values() if fits(judge, probes)))

    @property
    def items(self) -> list[Item]:
        """The probes themselves."""
        return [probe.item for made in self.made for probe in made.probes]

    @property
    def groups(self) -> list[str]:
        """The question of each probe that is to be mended."""
        weak = self.weak or {made.family.name for made in self.made}
        return [probe.item.group for made in self.made if made.family.name in weak for probe in made.probes]

    def broken(self, table: AgreementTable, column: Verdicts, footing: Footing) -> Broken:
        """Family -> which of its probes break a judge; `inf` where one could not. No verdict is a break: else
        a candidate that answers no probe would look mended."""
        verdicts = ProbeVerdicts.of(footing, column)
        values = {made.family.name: verdicts.broken(made.probes) for made in self.made}
        return {name: np.where(np.isnan(broken), 1.0, broken) for name, broken in values.items()}

    def _flat(self, broken: Broken) -> Floats:
        weak = self.weak or broken.keys()
        return np.concatenate([*(values for name, values in broken.items() if name in weak), np.zeros(0)])

    def share(self, broken: Broken, *, level: float = 0.95) -> Estimate:
        """The share of the probes to be mended that break a judge."""
        return share_of(self._flat(broken), self.groups, level=level)

    def parts(self, before: Broken, after: Broken) -> Floats:
        """Question by question, how many fewer of the probes to be mended break."""
        return by_group(changes(self._flat(after), self._flat(before)), self.groups)

    def held(self, before: Broken, after: Broken, *, level: float = 0.95) -> OptimizedProbes:
        """Compare a judge before and after, paired by probe."""
        change = changes(self._flat(before), self._flat(after))
        return OptimizedProbes(
            self.share(before, level=level),
            self.share(after, level=level),
            mean_estimate(change, self.groups, low=-1.0, high=1.0, level=level),
            families={made.family.name: (_mean(before, made), _mean(after, made)) for made in self.made},
            weak=tuple(sorted(self.weak)),
        )

    def weakened(self, broken: Broken) -> frozenset[str]:
        """The families whose probes break a judge in a tenth of the cases or more."""
        return frozenset(
            made.family.name for made in self.made if (_mean(broken, made) or 0.0) >= TENTH - 1e-9
        )


def _mean(broken: Broken, made: MadeProbes) -> float | None:
    return share_of(broken[made.family.name], [probe.item.group for probe in made.probes]).value


def train_probes(
    gold: GoldSet,
    items: Sequence[Item],
    judge: Optimised,
    *,
    seed: int,
    directed: bool,
    broken: frozenset[str] = frozenset(),
) -> tuple[list[Probe], dict[str, Label]]:
    """Probes of train, first those that break the judge (`broken`, their ids), families in turn and at most
    as many as there are answers, with a label each.

    The label is what a probe must get: an end of the scale, or that of the answer which it was made of. One
    that must fall has the lower end, which a binary scale says; on a graded one it is known only to fall, so
    that it is learnt from where the optimiser takes the direction (`directed`), and is no labelled example.
    """
    scale, made = gold.scale, SplitProbes.of(gold, items, judge, seed).made
    kinds = {"full": scale.high, "none": scale.low, "falls": scale.low}
    usable = [one for one in made if directed or one.family.kind != "falls" or not scale.graded]
    turns = itertools.chain(*itertools.zip_longest(*(one.probes for one in usable)))
    every = (probe for probe in turns if probe is not None)
    probes = sorted(every, key=lambda probe: probe.item.item_id not in broken)[: len(items)]
    return probes, {
        probe.item.item_id: kinds.get(probe.family.kind, gold.labels[probe.of.item_id]) for probe in probes
    }


def choose_probed(
    scored: Sequence[ScoredCandidate],
    metric: str,
    dev: AgreementTable,
    probes: SplitProbes,
    stages: Sequence[Stage] = (),
) -> tuple[Choice, dict[str, Broken]]:
    """Choose a candidate by the module's rule; also which dev probes break each candidate, by its name."""
    if not probes.made:
        return choose(scored, metric, dev, stages), {}
    broken = {
        candidate.name: probes.broken(dev, candidate.column, Footing.of(dev, candidate.column))
        for candidate in scored
    }
    before, usual = scored[0], choose(scored, metric, dev, stages)
    every = {
        name: sum(int((candidate == 1.0).sum()) for candidate in by_family.values())
        for name, by_family in broken.items()
    }
    able = [
        candidate
        for candidate in scored[1:]
        if candidate.value(metric) >= before.value(metric) and every[candidate.name] <= every[before.name]
    ]
    if not able:
        return usual, broken
    share = {candidate.name: probes.share(broken[candidate.name]).value or 0.0 for candidate in able}
    best = min(able, key=lambda candidate: (share[candidate.name], -candidate.value(metric)))
    fewer = np.array([probes.parts(broken["before"], broken[candidate.name]) for candidate in able])
    gain = float(fewer[able.index(best)].sum())
    if fewer.shape[1] < MIN_GROUPS or gain <= Gains.of_parts(fewer.sum(axis=1), fewer).by_luck(dev.seed):
        return usual, broken
    agrees = "of those that agree on dev no less than the judge as it was, and break on no more probes,"
    return Choice(best, f"{agrees} it has the fewest broken probes, fewer by more than luck"), broken
