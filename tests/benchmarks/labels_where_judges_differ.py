"""May I switch? How many labels it takes where judges differ: `python -m tests.benchmarks.labels_where_judges_differ`
(some 20 minutes; `--growing` makes five decisions on one draw).

In each world two judges share so many of their verdicts on 4,000 rows (questions of one row or of four, alike
within the question), and there is a gold set, of which train and dev alone are seen. Through the code of
`migrate --on` and `gold sheet --strata disagreement` the labels are planned from those, drawn, and decided by;
beside them as many as that code plans of rows drawn at random.

Worlds: binary labels of which 35% or 10% fail, labels in tens with their mean and with the mean over thirds.
In one the judges are equally good, in the other the new one loses the margin of 3 points, where so few
verdicts can. Printed: labels planned at random and where they differ (medians), how often rows alone and the
planned labels pass the new judge, and the share of 95% intervals that hold the truth.

Exit code 1 where, by more than two standard errors, a worse judge passes in more than 5%, an interval of the
drawn labels holds in less than 0.93 or more than 0.98, an equal judge passes by the planned labels in less
than 80%; or where labels drawn where judges differ are not 4 times fewer at 85% shared verdicts, 8 at 95%,
but for worlds where ten labels of each class are what sets the number (marked). There, and where nine equal
judges of ten pass, intervals may hold more often: so few labels make them wider than they need be.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from judgecal.experiment.looks import Look
from judgecal.experiment.rows import UnlabelledRows
from judgecal.goldset import Card, GoldSet
from judgecal.goldset.draw import allocate, draw
from judgecal.records import Item, Rating
from judgecal.scale import Scale
from judgecal.stats.calibration import Calibration
from judgecal.stats.disagreement import VerdictPairs, draw_strata, loss_on_labels, worst_loss
from judgecal.stats.prediction_powered import LabelledRows
from judgecal.stats.sample import Bools
from tests.benchmarks.driver import Bench, Floats, Ints, latent, slack

MARGIN, ROWS, MOST = 0.03, 4000, 0.05
SAVING = {0.85: 4.0, 0.95: 8.0}
SCALES = {"binary": Scale.parse("binary"), "tens": Scale.parse("percentage", step=10.0)}


class World(NamedTuple):
    """What is drawn: who shares how much, on which labels, and what the new judge loses."""

    kind: str
    metric: str
    fails: float
    size: int  # rows of a question
    gold: int  # questions of the gold set
    lenient: float  # by how much the new judge is the more lenient
    shared: float
    worse: bool


KINDS: tuple[tuple[Any, ...], ...] = (
    ("binary", "macro_agreement", 0.35, 1, 150, 0.0),
    ("binary", "macro_agreement", 0.35, 4, 60, 0.15),
    ("binary", "macro_agreement", 0.1, 1, 300, 0.0),
    ("tens", "macro_agreement", 0.35, 1, 300, 0.0),
    ("tens", "mean_agreement", 0.35, 4, 60, 0.0),
)
WORLDS = [
    World(*kind, shared, worse)
    for worse, shared, kind in itertools.product((False, True), (0.7, 0.85, 0.95, 0.97), KINDS)
]


def made(
    rng: np.random.Generator, world: World, n_groups: int, theta: float
) -> tuple[Floats, Floats, Floats]:
    """Labels and the verdicts of the old and the new judge; where they differ the old one is nearer with chance
    theta, within each class."""
    n = n_groups * world.size
    of_label, apart, who, right = (latent(rng, n_groups, world.size) for _ in range(4))
    if world.kind == "binary":
        gold = (ndtr(of_label) < 1.0 - world.fails).astype(np.float64)
        harder = 1.5 if world.fails < 0.3 else 1.0  # bad answers are harder where they are rare
        share = (1.0 - world.shared) / (1.0 - world.fails + world.fails * harder)
        differ = ndtr(apart) < np.where(gold == 1.0, share, share * harder)
        chance = np.where(gold == 1.0, theta - world.lenient, theta + world.lenient)
        old = np.where(np.where(differ, ndtr(who) < chance, ndtr(right) < 0.92), gold, 1.0 - gold)
        return gold, old, np.where(differ, 1.0 - old, old)
    gold = np.round(10.0 * ndtr(of_label + 0.8 * ndtri(1.0 - world.fails))) * 10.0
    near = np.clip(gold + 10.0 * np.round(right), 0.0, 100.0)
    step = 10.0 * rng.integers(2, 9, n)
    up = (near - step < 0.0) | ((near + step <= 100.0) & (rng.random(n) < 0.5))
    far = np.clip(np.where(up, near + step, near - step), 0.0, 100.0)
    first = ndtr(who) < theta
    old, other = np.where(first, near, far), np.where(first, far, near)
    return gold, old, np.where(ndtr(apart) < 1.0 - world.shared, other, old)


def lost(world: World, gold: Floats, old: Floats, new: Floats) -> float:
    """What the new judge loses on rows that are all labelled."""
    two = VerdictPairs(old, new, np.arange(len(gold)), SCALES[world.kind], world.metric)
    shares = np.bincount(two.class_of(gold), minlength=3) / len(gold) if two.macro else None
    return float(two.losses(np.arange(len(gold)), gold, shares).mean())


@cache
def truth(world: World) -> tuple[float, float] | None:
    """Theta and the true loss; None where so few verdicts cannot lose the margin."""
    large = world._replace(size=1)
    at = [lost(world, *made(np.random.default_rng(1), large, 400_000, theta)) for theta in (0.5, 0.8)]
    wanted = MARGIN * 1.0001 if world.worse else 0.0
    theta = 0.5 + 0.3 * (wanted - at[0]) / (at[1] - at[0])
    if theta + world.lenient > 1.0:
        return None
    return theta, lost(world, *made(np.random.default_rng(2), large, 2_000_000, theta))


@cache
def items_of(name: str, n_groups: int, size: int) -> tuple[Item, ...]:
    return tuple(
        Item(f"{name}{group}-{at}", f"{name}{group}", f"{name}{group}?", str(at), ())
        for group in range(n_groups)
        for at in range(size)
    )


def rows_of(
    metric: str,
    maps: tuple[Calibration | None, Calibration | None],
    scale: Scale,
    items: Sequence[Item],
    labels: Floats,
    verdicts: Sequence[Floats],
    known: Bools,
) -> UnlabelledRows:
    """Items of which some are a gold set, as `migrate` has the others."""
    said = [[None if one != one else one for one in side.tolist()] for side in verdicts]
    inside, left = np.flatnonzero(known).tolist(), np.flatnonzero(~known).tolist()
    ratings = tuple(Rating(items[at].item_id, "gold", float(labels[at])) for at in inside)
    of_known = tuple(items[at] for at in inside)
    gold = GoldSet("made", Path(), Card("made", scale, sampling="random"), of_known, ratings, (), "")
    on_known = [[side[at] for at in inside] for side in said]
    others = ((items[at], [side[at] for side in said]) for at in left)
    rows = UnlabelledRows.of(gold, metric, ("old", "new"), maps, (of_known, on_known), others, where="made")
    assert rows is not None
    return rows


def judged(rng: np.random.Generator, world: World, theta: float) -> tuple[Floats, UnlabelledRows]:
    """The rows' labels, which nobody sees, and the rows as `migrate` has them."""
    n_known, scale = round(0.55 * world.gold), SCALES[world.kind]
    ours, theirs = (made(rng, world, n, theta) for n in (n_known, ROWS // world.size))
    labels, *verdicts = (np.concatenate(both) for both in zip(ours, theirs, strict=True))
    items = [*items_of("known", n_known, world.size), *items_of("row", ROWS // world.size, world.size)]
    known = np.arange(len(items)) < len(ours[0])
    return theirs[0], rows_of(world.metric, (None, None), scale, items, labels, verdicts, known)


def labelled(
    rng: np.random.Generator, rows: UnlabelledRows, hidden: Floats, n: int, before: Ints | None = None
) -> LabelledRows:
    """Labels as `gold sheet --strata disagreement` draws them, with those drawn before."""
    done = () if before is None else [rows.items[at].item_id for at in before]
    drawn = draw(rows.draws(), n, seed=int(rng.integers(2**31)), before=done, at_large=0.0)
    chance_of = {i.item_id: i.inclusion_probability or 0.0 for i in (*drawn.items, *drawn.earlier)}
    at = np.array([place for place, i in enumerate(rows.items) if i.item_id in chance_of], dtype=np.int64)
    return LabelledRows(at, hidden[at], np.array([chance_of[rows.items[place].item_id] for place in at]))


def at_random(rng: np.random.Generator, rows: UnlabelledRows, hidden: Floats, n: int) -> LabelledRows:
    at = rng.choice(len(hidden), n, replace=False)
    return LabelledRows(at, hidden[at], np.full(n, n / len(hidden)))


class Found(NamedTuple):
    """Of one world: plans (at random, where judges differ; None where all rows would not do), and by draw
    whether rows alone decided, labels passed the new judge, the interval held, ten of a class set the number."""

    true: float
    planned: list[tuple[int | None, int | None]]
    by_rows: list[bool]
    passes: list[bool]
    held: list[bool | None]
    thin: list[bool]


def measured(world: World, *, reps: int) -> Found | None:
    """One world: a tenth as many plans, each by a gold set and rows of its own, then draws by these plans."""
    true = truth(world)
    if true is None:
        return None
    rng, level = np.random.default_rng(0), Look(1, new=True).level
    found = Found(true[1], [], [], [], [], [])
    strata = []
    for _ in range(max(min(20, reps), reps // 10)):
        _, rows = judged(rng, world, true[0])
        first = rows.decide(margin=MARGIN, level=level)
        found.planned.append((first.labels_at_random, first.labels_needed))
        found.by_rows.append(first.decision == "pass")
        strata.append(rows.outlook[0].shares)
    sizes = [n for _, n in found.planned if n is not None] or [400]
    groups = np.repeat(np.arange(ROWS // world.size), world.size)
    for rep in range(reps):
        hidden, old, new = made(rng, world, ROWS // world.size, true[0])
        two = VerdictPairs(old, new, groups, SCALES[world.kind], world.metric)
        codes, spreads = draw_strata(two, strata[rep % len(strata)])
        counts = np.bincount(codes)
        drawn = allocate(counts.tolist(), spreads.tolist(), sizes[rep % len(sizes)], at_large=0.0)
        at = np.concatenate([
            rng.choice(np.flatnonzero(codes == code), n, replace=False) for code, n in enumerate(drawn)
        ])  # fmt: skip
        some = LabelledRows(at, hidden[at], np.repeat(np.array(drawn) / counts, drawn))
        upper, loss = loss_on_labels(two, some, level=level).upper, loss_on_labels(two, some, level=0.95).loss
        found.passes.append(upper is not None and upper < MARGIN)
        found.held.append(None if loss.low is None or loss.high is None else loss.low <= true[1] <= loss.high)
        of_class = np.bincount(two.class_of(some.label), minlength=3)
        found.thin.append(two.macro and int(of_class[of_class > 0].min()) < 25)
    return found


def growing(world: World, *, reps: int) -> float | None:
    """How often one of five decisions on one growing draw, the first without a label too, passes the judge."""
    true = truth(world)
    if true is None:
        return None
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(reps):
        hidden, rows = judged(rng, world, true[0])
        two, before = rows.pair, None
        worst = worst_loss(two, rows.outlook[1], level=Look(1, new=True).level)
        passed = worst is not None and worst.high is not None and worst.high < MARGIN
        for number in range(1, 6):
            some = labelled(rng, rows, hidden, 60, before)
            upper = loss_on_labels(two, some, level=Look(number, new=True).level).upper
            passed |= upper is not None and upper < MARGIN
            before = some.at
        wrong += passed
    return wrong / reps


def _share(values: Sequence[bool | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def show(bench: Bench, world: World, found: Found) -> None:
    """One world's line, with its promises."""
    known = [one for one in found.planned if one[1] is not None]
    n = [float(np.median([one[side] or np.inf for one in known])) if known else np.inf for side in (0, 1)]
    passes, held, rows = _share(found.passes), _share(found.held), _share(found.by_rows)
    thin, saving = _share(found.thin) > 0.5, n[0] / n[1] if known else float("nan")
    most = 1.0 if thin or passes > 0.9 else 0.98 + slack(0.98, len(found.held))
    kept = [0.93 - slack(0.93, len(found.held)) <= held <= most]
    if world.worse:
        kept.append(max(passes, rows) <= MOST + slack(MOST, len(found.passes)))
    elif len(known) > 0.5 * len(found.planned):
        kept.append(max(passes, rows) >= 0.8 - slack(0.8, len(found.passes)))
        kept.append(thin or saving >= SAVING.get(world.shared, 0.0))
    bench.line(
        f"{world.kind:6} {world.metric:15} {world.fails:.0%} fail  {world.size} a question  gold {world.gold:3}  "
        f"share {world.shared:.0%}  loses {100 * found.true:+.1f}  planned {len(known) / len(found.planned):4.0%}  "
        f"labels {n[0]:5.0f} / {n[1]:5.0f} = {saving:4.1f}{' (ten of a class)' * thin}  passes without a label "
        f"{rows:.2f}, by labels {passes:.3f}  held {held:.3f}",
        kept=all(kept),
    )


def main() -> int:
    bench = Bench(__doc__, n=400, of="draws of each world", growing=False, only="")
    worlds = [world for world in WORLDS if bench.options.only in str(world)][: 1 if bench.quick else None]
    if bench.options.growing:
        bench.head("five decisions on one growing draw, 60 labels each: a judge that loses the margin passes")
        for world in worlds:
            wrong = growing(world, reps=bench.n) if world.worse else None
            if wrong is not None:
                text = f"{world.kind:6} {world.metric:15} {world.fails:.0%} fail  share {world.shared:.0%}  {wrong:.3f}"
                bench.line(text, kept=wrong <= MOST + slack(MOST, bench.n))
        return bench.end()
    bench.head("labels planned at random / where judges differ; what the latter come to")
    for world in worlds:
        found = measured(world, reps=bench.n)
        if found is not None:
            show(bench, world, found)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
