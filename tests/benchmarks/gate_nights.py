"""How often does `gate` raise an alarm, and what does it find? By hand: `python -m
tests.benchmarks.gate_nights`.

A user locks a judge with three calls of each item and calls it again every night, at most three passes. Every
user has a gold set, a judge and a lock of their own: two items a question, half of the labels right; the
judge agrees with 0.85 of them, its errors hang together within a question (correlation 0.3 of the latent
scores), and two calls of an item differ in 2% of the items. Labels and verdicts are binary, or of a
percentage with half of the labels near the ends.

The first table is of 250 nights in which nothing changes. A night is an alarm where it ends in "fail" or
"changed". One without a loss beyond the margin and with calls near to the lock's (within three standard
deviations, where the rule takes about five) can be neither, so only the others go through the rule itself.

The second table is of judges that have changed: found is a "fail" or "changed" within three nights. *Drop*:
on some items the judge is now wrong, the same in each call. *Noise*: so many calls say the opposite, each
time anew, that the loss is as stated. *Another judge*: its errors are on other items. *Lenient*: so many more
items are called right. *Unscored*: so many calls give no verdict. A drop of 3 points and noise of 5% lie at
the margin and have no promise, and 33 questions show little: 8 points are five of their items.

Exits 1 where a promise breaks.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from judgecal.scale import Scale
from judgecal.selection.gate import MOST_PASSES
from judgecal.selection.rules import GateRule, LockedAndCurrent
from tests.benchmarks.driver import Bench, Floats, latent

SIZE, CALLS, MARGIN, ACCURACY, OWN = 2, 3, 0.03, 0.85, 0.02
SIZES = (33, 110, 300)
NIGHTS = 250
SCALES = {"binary": Scale.parse("binary"), "percentage": Scale.parse("percentage", pass_at=75.0)}
RULE = GateRule("macro_agreement", MARGIN)


@dataclass(frozen=True)
class Kind:
    """What has become of the judge since it was locked.

    Attributes:
        name: in words.
        drop, noise: loss of macro_agreement by items that are now wrong, and by calls that say the opposite.
        other: accuracy of another judge that answers; None where the same one does.
        lenient: share of items that are called right beside those that were; of a percentage, what is added.
        unscored: share of calls without a verdict.
        least: share of users who find it within three nights, by number of questions; no promise where it is
            empty.
    """

    name: str
    drop: float = 0.0
    noise: float = 0.0
    other: float | None = None
    lenient: float = 0.0
    unscored: float = 0.0
    least: dict[int, float] = field(default_factory=dict)


KINDS = (
    Kind("nothing"),
    Kind("drop of 3 points", drop=0.03),
    Kind("drop of 8 points", drop=0.08, least={110: 0.90, 300: 0.90}),
    Kind("noisier by 5%", noise=0.035),
    Kind("noise that costs 8 points", noise=0.08, least={110: 0.90, 300: 0.95}),
    Kind("another judge, as good", other=0.85, least={110: 0.99, 300: 0.99}),
    Kind("another judge, 8 points worse", other=0.77, least={110: 0.99, 300: 0.99}),
    Kind("5 points more lenient", lenient=0.05, least={110: 0.90, 300: 0.95}),
    Kind("8 points more lenient", lenient=0.08, least={110: 0.99, 300: 0.99}),
    Kind("unscored 0 -> 18%", unscored=0.18, least={33: 0.90, 110: 0.99, 300: 0.99}),
)


@dataclass
class User:
    """A gold set, a judge and its lock, and how the judge is called from then on."""

    rng: np.random.Generator
    questions: int
    scale: Scale
    kind: Kind = KINDS[0]

    def __post_init__(self) -> None:
        n = self.questions * SIZE
        self.top = 1.0 if self.scale.kind == "binary" else 100.0
        score = self._latent()
        if self.top == 1.0:
            self.labels = (score > 0.0).astype(np.float64)
        else:
            self.labels = np.round(10.0 * ndtr(2.5 * score)) * 10.0
        self.own = (1.0 - np.sqrt(1.0 - 2.0 * OWN)) / 2.0  # two calls differ with 2 p (1 - p)
        self.judged = self._judge(ACCURACY)
        self.groups = [str(place // SIZE) for place in range(n)]
        self.then = np.column_stack([self._flipped(self.judged, self.own) for _ in range(CALLS)])
        self.now = self._changed()

    def _latent(self) -> Floats:
        return latent(self.rng, self.questions, SIZE)

    def _judge(self, accuracy: float) -> Floats:
        """A judge of that agreement, with errors of its own."""
        if self.top == 1.0:
            return np.where(ndtr(self._latent()) < accuracy, self.labels, 1.0 - self.labels)
        spread = 28.0 * (1.0 - accuracy) / (1.0 - ACCURACY)
        return np.round(np.clip(self.labels + spread * self._latent(), 0.0, 100.0))

    def _flipped(self, verdicts: Floats, rate: float | Floats) -> Floats:
        return np.where(self.rng.random(verdicts.size) < rate, self.top - verdicts, verdicts)

    def _changed(self) -> Floats:
        """What the judge would say now without its noise."""
        kind = self.kind
        verdicts = self.judged if kind.other is None else self._judge(kind.other)
        if kind.drop:
            worst = np.where(self.labels >= self.top / 2.0, 0.0, self.top)
            share = kind.drop / (self.macro(verdicts) - self.macro(worst))
            verdicts = np.where(self._latent() < ndtri(share), worst, verdicts)
        if kind.lenient and self.top == 1.0:
            share = kind.lenient / np.mean(verdicts == 0.0)
            verdicts = np.where((verdicts == 0.0) & (self._latent() < ndtri(share)), 1.0, verdicts)
        elif kind.lenient:
            verdicts = np.minimum(verdicts + 100.0 * kind.lenient, 100.0)
        return verdicts

    def macro(self, verdicts: Floats) -> float:
        """Its macro_agreement."""
        stratum = np.minimum(2.0, np.floor(3.0 * self.labels / self.top + 1e-9))
        closeness = 1.0 - np.abs(verdicts - self.labels) / self.top
        return float(np.mean([closeness[stratum == place].mean() for place in np.unique(stratum)]))

    def call(self) -> Floats:
        """One pass over the items; NaN = unscored."""
        verdicts = self._flipped(self.now, self.own)
        if self.kind.noise:
            verdicts = self._flipped(
                verdicts, self.kind.noise / (self.macro(self.now) - self.macro(self.top - self.now))
            )
        return np.where(self.rng.random(verdicts.size) < self.kind.unscored, np.nan, verdicts)

    def night(self, passes: Callable[[int], Floats] | None = None) -> tuple[str, int]:
        """The decision of a night and its passes; `passes` gives pass 0, 1, 2, which are called where not
        given."""
        now: list[Floats] = []
        while True:
            now.append(self.call() if passes is None else passes(len(now)))
            two = LockedAndCurrent(
                self.labels.tolist(),
                self.then.tolist(),
                [[None if x != x else x for x in row] for row in np.column_stack(now).tolist()],
                self.groups,
                self.scale,
                self.scale,
            )
            last = two.settled or len(now) == MOST_PASSES
            decision = RULE.state(two, last=last).decision
            if decision != "inconclusive" or last:
                return decision, len(now)


def suspicious(user: User, nights: Floats) -> npt.NDArray[np.bool_]:
    """Nights (passes x nights x items) that might end in an alarm, whatever pass they end after."""
    stratum = np.minimum(2.0, np.floor(3.0 * user.labels / user.top + 1e-9))
    strata, of_stratum = np.unique(stratum, return_counts=True)
    weight = 1.0 / of_stratum[np.searchsorted(strata, stratum)] / len(strata) / user.top
    losses = (
        np.abs(nights - user.labels) @ weight - np.abs(user.then - user.labels[:, None]).mean(axis=1) @ weight
    )
    calls = [*np.broadcast_to(user.then.T[:, None], (CALLS, *nights.shape[1:])), *nights]
    apart = {
        pair: np.abs(calls[pair[0]] - calls[pair[1]]).sum(axis=1)
        for pair in combinations(range(len(calls)), 2)
    }
    seen = np.zeros(nights.shape[1], dtype=np.bool_)
    for m in range(1, MOST_PASSES + 1):
        dealt = {pair: sums for pair, sums in apart.items() if max(pair) < CALLS + m}
        between = np.mean([sums for (a, b), sums in dealt.items() if a < CALLS <= b], axis=0)
        away = between - np.mean([*dealt.values()], axis=0)
        shift = (nights[:m].mean(axis=0) - user.then.mean(axis=1)).sum(axis=1)
        most = 3.0 * np.sqrt(1.0 + m / CALLS)  # the nights share the lock's own noise
        seen |= (
            (losses[:m].mean(axis=0) > MARGIN)
            | (away > most * away.std())
            | (np.abs(shift) > most * shift.std())
        )
    return seen


def alarms(rng: np.random.Generator, questions: int, scale: Scale) -> Counter[str]:
    """The alarms of one user in nights without a change."""
    user = User(rng, questions, scale)
    flip = rng.random((MOST_PASSES, NIGHTS, questions * SIZE)) < user.own
    nights = np.where(flip, user.top - user.judged, user.judged)
    found = (user.night(lambda n, at=at: nights[n, at])[0] for at in np.flatnonzero(suspicious(user, nights)))
    return Counter(decision for decision in found if decision in ("fail", "changed"))


def without_change(bench: Bench) -> None:
    """The first table."""
    bench.head(f"{NIGHTS} nights each, nothing changes\n")
    bench.line(
        "| questions | scale | nights fail | nights changed | users with an alarm |\n" + "| --- " * 5 + "|"
    )
    for questions, (name, scale) in bench.some(itertools.product(SIZES, SCALES.items())):
        rng = np.random.default_rng(questions)
        each = [alarms(rng, questions, scale) for _ in range(bench.n)]
        total, alarmed = sum(each, Counter[str]()), sum(bool(night) for night in each)
        cells = f"{total['fail']} | {total['changed']} | {alarmed} ({100.0 * alarmed / bench.n:.2f}%)"
        bench.line(f"| {questions} | {name} | {cells} |", kept=alarmed < 0.01 * bench.n)


def simulate(
    kind: Kind, *, questions: int, scale: str, users: int, seed: int = 0
) -> tuple[Counter[str], float, float]:
    """Decisions of the first night, passes it took on average, and the share of users who found it in three
    nights."""
    rng = np.random.default_rng([seed, questions])
    first, passes, found = Counter[str](), 0, 0
    for _ in range(users):
        user = User(rng, questions, SCALES[scale], kind)
        decision, made = user.night()
        first[decision] += 1
        passes += made
        found += decision in ("fail", "changed") or any(
            user.night()[0] in ("fail", "changed") for _ in range(2)
        )
    return first, passes / users, found / users


def with_change(bench: Bench, users: int) -> None:
    """The second table."""
    heads = "questions | scale | the judge | pass | fail | changed | inconclusive | passes | in 3 nights | promise"
    bench.head(f"{users} users a row\n", f"| {heads} |", "| --- " * 10 + "|")
    for questions, scale, (seed, kind) in bench.some(itertools.product(SIZES, SCALES, enumerate(KINDS))):
        first, passes, found = simulate(kind, questions=questions, scale=scale, users=users, seed=seed)
        least = kind.least.get(questions)
        shares = [f"{first[one] / users:.1%}" for one in ("pass", "fail", "changed", "inconclusive")]
        promise = "" if least is None else f"{least:.0%}"
        cells = [*shares, f"{passes:.2f}", f"{found:.1%}", promise]
        row = f"| {questions} | {scale} | {kind.name} | {' | '.join(cells)} |"
        bench.line(row, kept=least is None or found >= least)


def main() -> int:
    bench = Bench(__doc__, n=500, of="users of nights without a change, 100 of the others")
    without_change(bench)
    with_change(bench, min(bench.n, 100))
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
