"""Do prompts and models only fit in pairs? A test of the prompt x model interaction of agreement."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from judgecal.scale import Scale
from judgecal.stats.agreement import check_level, prepare
from judgecal.stats.intervals import MIN_GROUPS
from judgecal.stats.metrics import Metric, leading_metric, metric_named
from judgecal.stats.parts import group_parts
from judgecal.stats.sample import Floats, as_scale
from judgecal.stats.significance import N_PERM, random_bits

__all__ = ["Cell", "Interaction", "interaction"]

_BLOCK = 250_000  # signs in one block: small enough to stay in the cache
_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class Cell:
    """One prompt with one model.

    Attributes:
        row, column: the prompt and the model.
        value: the metric of that judge.
        deviation: value - (mean of its row) - (mean of its column) + (mean of all): what the pair has beyond its parts.
        p_adjusted: of this deviation by chance, held against the largest of all cells; None without a test.
    """

    row: str
    column: str
    value: float
    deviation: float
    p_adjusted: float | None


@dataclass(frozen=True, slots=True)
class Interaction:
    """Whether agreement is the sum of what the prompt brings and what the model brings.

    Attributes:
        p_value: of additivity; None where it could not be tested.
        decision: "interaction" where additivity is refuted, else "cannot tell".
        why: the decision in a sentence.
        cells: of the grid, the largest deviation first; empty where the grid has no values.
        n_groups: questions that the test rests on.
    """

    p_value: float | None
    decision: Literal["interaction", "cannot tell"]
    why: str
    cells: tuple[Cell, ...]
    n_groups: int


def interaction(
    gold_labels: Iterable[object],
    grid: Mapping[tuple[str, str], Iterable[object]],
    *,
    scale: Scale | str,
    scales: Mapping[tuple[str, str], Scale | str] | None = None,
    metric: str | None = None,
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    n_perm: int = N_PERM,
) -> Interaction:
    """Test whether the agreement of prompt x model judges on the same items is additive.

    The metric of every judge is taken apart by group (`group_parts`), and each group's parts are centred by
    prompt and by model. Were agreement additive, these contrasts would sum to about 0 in every cell: their sums,
    studentised by sum of squares as in the clustered McNemar test, are squared and added over the cells, and held
    against the same under random signs of whole groups ((1 + hits) / (1 + draws)). The cells' own p values are
    those of the largest one (Westfall and Young 1993), so that all may be read at once. Unscored verdicts count as
    the farthest from their labels.

    Args:
        gold_labels, scale, groups: as in `agreement`.
        grid: (prompt, model) -> n verdicts, or n rows of repeats.
        scales: (prompt, model) -> that judge's scale; the people's where not given.
        metric: a name of the people's scale; the leading one where not given.
        level: below 1 - level additivity is refuted.
        seed, n_perm: of the random signs.

    Returns:
        "cannot tell" with the reason where a cell is missing, where there are fewer than two prompts or models or
        fewer than ten groups, or where a judge has no value.

    Raises:
        InputError: as `agreement`.
    """
    check_level(level)
    people = as_scale(scale)
    chosen, at_mark = metric_named(metric or leading_metric(people), people)
    rows, columns = (list(dict.fromkeys(key[side] for key in grid)) for side in (0, 1))
    lacking = [f"{row}@{column}" for row in rows for column in columns if (row, column) not in grid]
    if lacking or len(rows) < 2 or len(columns) < 2:
        return _untested(
            f"the grid lacks {', '.join(lacking)}" if lacking else "it takes two prompts and two models", 0
        )
    labels, codes = list(gold_labels), None if groups is None else list(groups)
    own = scales or {}
    found: list[Floats] = []
    for key in ((row, column) for row in rows for column in columns):
        parts, reason = _parts(labels, grid[key], own.get(key), people, codes, (chosen, at_mark))
        if reason:
            return _untested(f"{key[0]}@{key[1]} has no value: {reason}", 0)
        found.append(parts)
    by_group = np.stack(found, axis=1).reshape(-1, len(rows), len(columns))
    return _tested(by_group, rows, columns, level=level, seed=seed, n_perm=n_perm)


def _parts(
    labels: Sequence[object],
    verdicts: Iterable[object],
    judge_scale: Scale | str | None,
    people: Scale,
    groups: Sequence[Hashable] | None,
    metric: tuple[Metric, bool],
) -> tuple[Floats, str]:
    sample = prepare(
        labels, verdicts, people=people, judge_scale=judge_scale, groups=groups, unscored="wrong"
    )
    parts = group_parts(metric[0], sample, at_mark=metric[1])
    return (np.empty(0), parts) if isinstance(parts, str) else (parts, "")


def _untested(why: str, n_groups: int, cells: tuple[Cell, ...] = ()) -> Interaction:
    return Interaction(None, "cannot tell", why, cells, n_groups)


def _tested(
    by_group: Floats, rows: Sequence[str], columns: Sequence[str], *, level: float, seed: int, n_perm: int
) -> Interaction:
    """From G x prompts x models parts of the metric."""
    n_groups = len(by_group)
    centred = by_group - by_group.mean(axis=1, keepdims=True)
    contrasts = (centred - centred.mean(axis=2, keepdims=True)).reshape(n_groups, -1)
    values, deviations = by_group.sum(axis=0).ravel(), contrasts.sum(axis=0)
    names = [(row, column) for row in rows for column in columns]

    def cells(p_values: Sequence[float | None]) -> tuple[Cell, ...]:
        made = [
            Cell(*name, value=value, deviation=deviation, p_adjusted=p)
            for name, value, deviation, p in zip(
                names, values.tolist(), deviations.tolist(), p_values, strict=True
            )
        ]
        return tuple(sorted(made, key=lambda cell: -abs(cell.deviation)))

    if n_groups < MIN_GROUPS:
        few = f"{n_groups} group{'s' * (n_groups != 1)}: fewer than {MIN_GROUPS} give no test"
        return _untested(few, n_groups, cells([None] * len(names)))
    p, by_cell = _random_signs(contrasts, seed=seed, n_perm=n_perm)
    ordered = cells(by_cell)
    refuted = p < round(1.0 - level, 12)
    first = ordered[0]
    most = f"{first.row}@{first.column} lies {first.deviation:+.3g} from what its prompt and model bring by themselves"
    why = (
        f"prompts and models fit in pairs, p = {p:.3g}: {most}"
        if refuted
        else f"that prompt and model add up is not refuted, p = {p:.3g}"
    )
    return Interaction(p, "interaction" if refuted else "cannot tell", why, ordered, n_groups)


def _random_signs(contrasts: Floats, *, seed: int, n_perm: int) -> tuple[float, list[float | None]]:
    """P of the G x cells contrasts together, and of each cell against the largest."""
    spread = np.sqrt((contrasts**2).sum(axis=0))
    moving = spread > _EPS
    if not moving.any():
        return 1.0, [1.0] * len(spread)
    scaled = contrasts[:, moving] / spread[moving]
    seen = np.abs(scaled.sum(axis=0)) * (1.0 - 1e-9)  # ties are ties in spite of rounding
    rng = np.random.default_rng(seed)
    together, largest = 0, np.zeros(len(seen))
    block = max(1, _BLOCK // len(scaled))
    for start in range(0, n_perm, block):
        signs = 1.0 - 2.0 * random_bits(rng, (min(block, n_perm - start), len(scaled)))
        drawn = np.abs(signs @ scaled)
        together += int(np.sum((drawn**2).sum(axis=1) >= (seen**2).sum()))
        largest += (drawn.max(axis=1)[:, None] >= seen).sum(axis=0)
    by_cell = np.ones(len(spread))
    by_cell[moving] = (1.0 + largest) / (1.0 + n_perm)
    return (1.0 + together) / (1.0 + n_perm), list(by_cell.tolist())
