"""Whether labels use the scale that is declared for them: grades of 0..5 read as percentages are wrong in silence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from judgecal.scale import Scale

NARROW = "narrow_labels"
"""The finding, and the key of `[explained]` in card.toml by which such a set is used all the same."""
_SMALL = 0.2  # of the scale, from its lower end
_LEAST = 10  # labels; of fewer nothing is said
_STEPS = (1.0, 0.5, 0.25, 0.1)


def narrow_labels(labels: Sequence[float], scale: Scale) -> str | None:
    """Why labels do not fit a scale that they all lie on: they end in its lowest fifth; None where they do fit."""
    distinct = set(labels)
    if not scale.graded or len(labels) < _LEAST or len(distinct) < 2:
        return None
    if max(distinct) > scale.low + _SMALL * scale.span:
        return None
    return (
        f"all {len(labels):,} labels lie in {min(distinct):g}..{max(distinct):g}, a small part of the scale {scale} "
        f"({scale.low:g} to {scale.high:g}): the scale {fitting_scale(labels)} fits them"
    )


def unexplained(labels: Sequence[float], scale: Scale, explained: Mapping[str, str]) -> str | None:
    """The same, with what to do, where the card does not say why it may be so."""
    why = None if NARROW in explained else narrow_labels(labels, scale)
    return why and f'{why}; write that in card.toml, or under [explained] why it may be so: {NARROW} = "..."'


def fitting_scale(labels: Sequence[float]) -> str:
    """The smallest scale that such numbers are labels of, as it is written."""
    low, high = min(labels), max(labels)
    step = next((step for step in _STEPS if all(_whole(label / step) for label in labels)), None)
    if set(labels) <= {0.0, 1.0}:
        return "binary"
    if step == 1.0 and high - low <= 10.0:
        return f"ordinal:{min(low, 1.0) if low >= 0.0 else low:g}:{high:g}"
    if low >= 0.0 and high <= 1.0:
        return "fraction"
    if low >= 0.0 and 20.0 < high <= 100.0:
        return "percentage"
    ends = f"{min(0.0, math.floor(low)):g}:{math.ceil(high):g}"
    return f"points:{ends}" if step is None else f"points:{ends}:{step:g}"


def _whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-6
