"""Does a page call slices out where nothing differs? `python -m tests.benchmarks.slices`.

Sets of 60, 110 and 300 questions of one, two, five or one to five answers, wrong on 5, 13 or 30% of them, errors of
one question hanging together (correlation 0.3 or 0.8 of the latent scores; or 0.8 on the questions of half of the
kinds alone). Of up to 29 slices, as many as a page has: seven kinds of questions, three lengths, four kinds of
documents, refusals, digits, systems by turns, six tags. Errors of graded labels have a sign and a long tail.

In at most 5% of the sets where nothing differs any slice stands out. A planted one, 40% wrong on 20 questions where
others have 13%, is found in most sets of five answers a question with a correlation of 0.3; the shares of the others
are printed. All seeded; exit 1 where a share is off, the first by more than two standard errors.
"""

from __future__ import annotations

import itertools
import sys
from functools import partial

import numpy as np
from scipy.special import ndtri

from judgecal.stats.sample import Bools
from judgecal.stats.significance import slices
from tests.benchmarks.driver import Bench, Floats, Ints, slack

QUESTIONS, ANSWERS, RATES, CORRELATIONS = (
    (60, 110, 300),
    ("1", "2", "5", "1-5"),
    (0.05, 0.13, 0.3),
    ("0.3", "0.8", "part"),
)
PLANTED, PLANTED_RATE, RATE, MOST = 20, 0.4, 0.13, 0.05
WORDS = (0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05)
Setting = tuple[
    str, int, str, float, str
]  # binary or graded, questions, answers of each, share of errors, correlation


def traits(rng: np.random.Generator, n: int, of: Ints, words: Ints) -> list[Bools]:
    """Slices as a set has them: of questions, of answers, and of both."""
    lengths = rng.standard_normal(n)[of] + rng.standard_normal(len(of))
    thirds = np.searchsorted(np.quantile(lengths, [1 / 3, 2 / 3]), lengths)
    documents = rng.choice(4, n, p=[0.1, 0.5, 0.2, 0.2])[of]
    places = np.arange(len(of)) - np.searchsorted(of, of)
    digits = rng.standard_normal(n)[of] + rng.standard_normal(len(of)) > 0.5
    tags = (rng.random((6, n)) < rng.uniform(0.05, 0.3, (6, 1)))[:, of]
    kinds = [(words[of], 7), (thirds, 3), (documents, 4), (places, int(places.max()) + 1)]
    return [
        *(kind == value for kind, k in kinds for value in range(k)),
        rng.random(len(of)) < 0.1,
        digits,
        *tags,
    ]


def stood_out(setting: Setting, *, sets: int, planted: bool = False) -> float:
    """The share of sets in which a slice stands out: any, or the planted one."""
    kind, n, answers, rate, correlation = setting
    rng = np.random.default_rng(
        [n, ANSWERS.index(answers), int(100 * rate), CORRELATIONS.index(correlation), planted]
    )
    found = 0
    for _ in range(sets):
        sizes = rng.integers(1, 6, n) if answers == "1-5" else np.full(n, int(answers))
        of, words = np.repeat(np.arange(n), sizes), rng.choice(7, n, p=WORDS)
        shared = np.where(words % 2, 0.0, 0.8)[of] if correlation == "part" else float(correlation)
        score = np.sqrt(shared) * rng.standard_normal(n)[of] + np.sqrt(1.0 - shared) * rng.standard_normal(
            len(of)
        )
        slice_of = of < PLANTED
        errors: Floats = (score < ndtri(np.where(slice_of & planted, PLANTED_RATE, rate))).astype(np.float64)
        if kind == "graded":
            errors *= np.minimum(100.0, 30.0 * rng.exponential(size=len(of))) * rng.choice(
                [-1.0, 1.0], len(of), p=[0.8, 0.2]
            )
        ends = {"low": -100.0, "high": 100.0} if kind == "graded" else {}
        every = slices(errors, [slice_of] * planted + traits(rng, n, of, words), of.tolist(), **ends)
        named = every[:1] if planted else every
        found += any(one is not None and one.stands_out for one in named)
    return found / sets


def main() -> int:
    bench = Bench(__doc__, n=400, of="sets a setting")
    bench.head("Sets where nothing differs: share in which any slice stands out")
    settings: list[Setting] = [*itertools.product(["binary"], QUESTIONS, ANSWERS, RATES, CORRELATIONS[:2])]
    settings += itertools.product(["binary"], QUESTIONS, ANSWERS, [RATE], CORRELATIONS[2:])
    settings += itertools.product(["graded"], QUESTIONS, ANSWERS, [RATE], CORRELATIONS[:1])
    for setting, share in bench.each(partial(stood_out, sets=bench.n), bench.some(settings)):
        kind, n, answers, rate, correlation = setting
        text = f"{kind} {n:4} questions x {answers:3}  {rate:4.0%} wrong, correlation {correlation:4}  {share:6.1%}"
        bench.line(f"{text} of {bench.n}", kept=share <= MOST + slack(MOST, bench.n))
    bench.head(
        f"A planted slice, {PLANTED_RATE:.0%} on {PLANTED} questions, {RATE:.0%} elsewhere: share in which it is found"
    )
    planted = [
        ("binary", n, answers, RATE, c) for n in QUESTIONS for answers in ANSWERS for c in CORRELATIONS[:2]
    ]
    for setting, share in bench.each(partial(stood_out, sets=bench.n, planted=True), bench.some(planted)):
        _, n, answers, _, correlation = setting
        promised = answers == "5" and correlation == "0.3"
        text = f"{n:4} questions x {answers:3}  correlation {correlation}  {share:6.1%} of {bench.n}"
        bench.line(text, kept=not promised or share >= 0.5)
    return bench.end("numpy", "scipy")


if __name__ == "__main__":
    sys.exit(main())
