"""The strata of a macro metric: how many items each rests on, and which of them an interval hangs on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.stats.means import LinearMean
from judgecal.stats.sample import Sample

MIN_STRATUM = 10
"""Fewer items than this in a class or stratum, and nothing is decided by a macro metric."""
DRIVING = 2.0 / 3.0
"""The share of the variance from which on one stratum drives an interval."""
NARROWER = 0.25
"""`Stratum.more` items would narrow the interval by this share."""

_THIRDS = ("low third", "middle third", "high third")


@dataclass(frozen=True, slots=True)
class Stratum:
    """One class or third of the scale in a macro metric.

    Attributes:
        name: "fail" or "pass"; of a graded scale "low third", "middle third" or "high third" of the labels.
        n: items whose label lies in it.
        n_all: items of all strata.
        share: its part of the variance of the metric, or of the difference, 0..1; None where that has none.
    """

    name: str
    n: int
    n_all: int
    share: float | None

    @property
    def thin(self) -> bool:
        """Whether it holds too few items for a decision."""
        return self.n < MIN_STRATUM

    @property
    def more(self) -> int | None:
        """Items of it beside those there are that bring it to `MIN_STRATUM`, or narrow the interval by
        `NARROWER`.

        With v its share of the variance and n items, n / (n + more) of v is left: (1 - NARROWER)^2 = 1 - v
        more / (n + more). None where the rest of the variance is too large for that.
        """
        if self.thin:
            return MIN_STRATUM - self.n
        gone = 1.0 - (1.0 - NARROWER) ** 2
        share = self.share or 0.0
        return math.ceil(self.n * gone / (share - gone)) if share > gone else None

    @property
    def in_words(self) -> str:
        """What more items of it would bring."""
        if self.more is None:
            return "more of them would hardly help"
        brings = "so that we can decide" if self.thin else "to narrow the interval by a quarter"
        return f"label {self.more} more of them {brings}"


def strata_of(linear: LinearMean, sample: Sample) -> tuple[Stratum, ...]:
    """The filled strata of a linearised macro metric (or difference); none for a metric without strata."""
    if linear.means.fewest < 2:
        return ()
    parts = ((linear.influence * linear.weights) ** 2).sum(axis=0)
    parts *= linear.groups / np.maximum(linear.groups - 1.0, 1.0)
    total, n_all = float(parts.sum()), int(linear.items.sum())
    return tuple(
        Stratum(
            _name(place, sample, linear),
            n=int(linear.items[place]),
            n_all=n_all,
            share=float(parts[place]) / total if total > 0.0 else None,
        )
        for place in np.flatnonzero(linear.items).tolist()
    )


def too_thin(strata: Sequence[Stratum], metric: str) -> str | None:
    """Why nothing is decided by a macro metric of such strata; None where each holds enough items."""
    few = " and ".join(
        f'{stratum.n} in "{stratum.name}" ({stratum.more} more would do)'
        for stratum in strata
        if stratum.thin
    )
    if not few:
        return None
    return (
        f"of {strata[0].n_all} labelled items only {few}: below {MIN_STRATUM} we decide nothing by {metric}"
    )


def stratum_that_drives(strata: Sequence[Stratum]) -> Stratum | None:
    """The stratum that makes up `DRIVING` of the variance or more, with fewer items than its even share."""
    return next(
        (
            stratum
            for stratum in strata
            if (stratum.share or 0.0) >= DRIVING and stratum.n * len(strata) < stratum.n_all
        ),
        None,
    )


def driven_in_words(pairs: Iterable[tuple[str, str, Sequence[Stratum]]]) -> list[str]:
    """A sentence, without its full stop, for each stratum that drives the interval of a difference between
    two judges.

    Of several pairs it names the one whose interval hangs on the stratum most, and counts the others.
    """
    driven: dict[str, list[tuple[str, str, Stratum]]] = {}
    for a, b, strata in pairs:
        driver = stratum_that_drives(strata)
        if driver is not None:
            driven.setdefault(driver.name, []).append((a, b, driver))
    sentences = []
    for drivers in driven.values():
        a, b, most = max(drivers, key=lambda one: one[2].share or 0.0)
        also = "" if len(drivers) == 1 else f", and {DRIVING:.0%} or more in {len(drivers) - 1} more pairs"
        sentences.append(
            f"{a} and {b}: most of the doubt about their difference ({most.share:.0%} of its variance{also}) "
            f'comes from the {most.n} "{most.name}" items of {most.n_all}; {most.in_words}'
        )
    return sentences


def _name(place: int, sample: Sample, linear: LinearMean) -> str:
    if sample.binary_gold or len(linear.items) == 2:
        return "pass" if place else "fail"
    return _THIRDS[place]
