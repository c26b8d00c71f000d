"""Whether labels use the scale that is declared for them: grades of 0..5 read as percentages are wrong in
silence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from judgecal.scale import Scale

NARROW = "narrow_labels"
"""The finding, and the key of `[explained]` in card.toml by which such a set is used all the same."""
_SMALL = 0.2  # of the scale, from its lower end
_LEAST = 10  # labels; of fewer nothing is said
_LEAST_PARTS = 3  # labels between 0 and 1 that are hardly percentages
_MANY_OFF = 0.2  # of the labels off their scale: that is no slip of the pen
_GRADES = 3  # fewer different labels tell no scale
_STEPS = (1.0, 0.5, 0.25, 0.1)
_MOST_GRADES = 20.0  # the highest; 90 to 100 are percentages
_USUAL_STEPS = (0.5, 0.25)  # between grades, even where few labels have them


def narrow_labels(labels: Sequence[float], scale: Scale) -> str | None:
    """Why labels do not fit a scale that they all lie on: they end in its lowest fifth; None where they do
    fit."""
    distinct = set(labels)
    parts = (
        scale.kind == "percentage"
        and all(0.0 <= label <= 1.0 for label in distinct)
        and _step_of(labels) != 1.0
    )
    if not scale.graded or len(labels) < (_LEAST_PARTS if parts else _LEAST) or len(distinct) < 2:
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


class LabelNumbers:
    """The numbers that label cells hold, whether or not they are labels of the scale."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._on: Counter[float] = Counter()
        self._off: Counter[float] = Counter()
        self._n_signed = self._n_parts = 0  # cells such as `50%`, and such as `0.5`

    def add(self, number: float | None, *, fits: bool, signed: bool = False) -> None:
        """Count what one cell holds; None is no number, `signed` one with a percent sign."""
        if number is not None and math.isfinite(number):
            (self._on if fits else self._off)[number] += 1
            self._n_signed += signed
            self._n_parts += not signed and 0.0 < number < 1.0

    def mixed(self) -> str | None:
        """What to say of percentages of which some stand with a sign (`50%`) and others as parts of 1
        (`0.5`)."""
        if (
            not (self._n_signed and self._n_parts)
            or self._scale.kind != "percentage"
            or self._scale.from_fraction
        ):
            return None
        return (
            f"some labels have a percent sign ({self._n_signed:,}), and some without one lie between 0 and 1 "
            f"({self._n_parts:,}), which would be read as below 1%: write all of them in one way"
        )

    def better(self) -> str | None:
        """What to say where another scale fits all numbers: many are off this one, or they lie between its
        grades."""
        numbers = self._on | self._off
        n, n_off = self._on.total() + self._off.total(), self._off.total()
        if not n_off or len(numbers) < _GRADES or not self._scale.numeric:
            return None
        finer = _with_steps(list(numbers), self._scale)
        if n_off < _MANY_OFF * n and (finer is None or _step_of(list(numbers)) not in _USUAL_STEPS):
            return None
        scale = "fraction" if self._scale.from_fraction else self._scale
        fits = finer or fitting_scale(list(numbers))
        return f"{n_off:,} of {n:,} labels are none of the scale {scale}: --scale {fits} fits them all"


def _with_steps(numbers: Sequence[float], scale: Scale) -> str | None:
    """The same scale with the steps that the numbers have, where all lie between its ends; None where they do
    not."""
    step = _step_of(numbers)
    if scale.kind not in ("ordinal", "points") or min(numbers) < scale.low or max(numbers) > scale.high:
        return None
    ends = f"points:{scale.low:g}:{scale.high:g}"
    return (
        ends if step is None or not Scale.parse(ends, step=step).on_step(scale.high) else f"{ends}:{step:g}"
    )


def _step_of(numbers: Sequence[float]) -> float | None:
    return next((step for step in _STEPS if all(_whole(number / step) for number in numbers)), None)


def fitting_scale(labels: Sequence[float]) -> str:
    """The smallest scale that such numbers are labels of, as it is written."""
    low, high = min(labels), max(labels)
    step = _step_of(labels)
    if set(labels) <= {0.0, 1.0}:
        return "binary"
    if step == 1.0 and high - low <= 10.0 and high <= _MOST_GRADES:
        return f"ordinal:{min(low, 1.0) if low >= 0.0 else low:g}:{high:g}"
    if low >= 0.0 and high <= 1.0:
        return "fraction"
    if low >= 0.0 and _MOST_GRADES < high <= 100.0:
        return "percentage"
    ends = f"{min(0.0, math.floor(low)):g}:{math.ceil(high):g}"
    return f"points:{ends}" if step is None else f"points:{ends}:{step:g}"


def _whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-6
