"""Scales: what a label means, how it is read, and how one scale stands on another.

A scale prints and parses as one string: `percentage`, `ordinal:0:4`, `points:0:5:0.5`, `binary`, `nominal`.
`fraction` (0..1) is read on import only and stored as a percentage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from judgecal.errors import InputError

Kind = Literal["percentage", "ordinal", "points", "binary", "nominal"]
GRADED: tuple[Kind, ...] = ("percentage", "points", "ordinal")
"""The kinds of scales with grades between their ends."""
INTERVAL: tuple[Kind, ...] = ("percentage", "points")
"""Those of them whose grades are amounts and no categories (the interval level of measurement)."""
Label = float | str
"""A label or a verdict: a number on a numeric scale (binary is 1.0 or 0.0), a word on a nominal one."""

PREFERENCE: Mapping[str, float] = {"A": 1.0, "tie": 0.5, "B": 0.0}
"""What a label of a pair counts for its first answer."""
TRUE_WORDS = frozenset({"yes", "true", "pass", "correct", "1", "1.0", "100", "100.0"})
FALSE_WORDS = frozenset({"no", "false", "fail", "incorrect", "0", "0.0"})
_FORMS = "percentage, ordinal:MIN:MAX, points:MIN:MAX[:STEP], fraction (import only), binary, nominal"
# A label of exactly one third belongs above the cut, whatever floating point makes of it.
_ROUNDING = 1e-9
_OFF_STEP = 1e-6  # of a step
_POINTS = re.compile(r"points:(-?\d+(?:\.\d+)?):(-?\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?")
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale of labels.

    >>> str(judgecal.Scale.parse("ordinal:1:5")), judgecal.Scale.parse("points:0:5:0.5").step
    ('ordinal:1:5', 0.5)

    Attributes:
        kind: percentage, ordinal (whole numbers), points (numbers), binary or nominal.
        low, high: the ends (0 and 100 for percentage, 0 and 1 for binary, 0 and 0 for nominal).
        step: the labels' spacing, or None where every value between the ends is a label.
        pass_at: the people's pass mark on this scale, or None; on a binary scale the percentage, 0..100, from
            which a graded judge's verdict counts as a pass.
        categories: the words of a nominal scale, where known.
        from_fraction: labels are read as 0..1 and stored as percentages.
    """

    kind: Kind
    low: float
    high: float
    step: float | None = None
    pass_at: float | None = None
    categories: tuple[str, ...] = ()
    from_fraction: bool = False

    @classmethod
    def parse(cls, text: str, *, pass_at: float | None = None, step: float | None = None) -> Scale:
        """Read a Scale from a text such as `ordinal:1:5`, with pass mark and step."""
        scale = _parse_kind(text)
        if step is not None and not 0 < step <= scale.span:
            raise InputError(f"scale {text}: step {step:g} must be above 0 and at most {scale.span:g}")
        if pass_at is not None and scale.kind == "nominal":
            raise InputError("a nominal scale has no order, so it takes no pass_at")
        low, high = (0.0, 100.0) if scale.kind == "binary" else (scale.low, scale.high)
        if pass_at is not None and not low <= pass_at <= high:
            raise InputError(f"scale {scale}: pass_at {pass_at:g} lies outside {low:g}..{high:g}")
        return replace(scale, pass_at=pass_at, step=step if step is not None else scale.step)

    def __str__(self) -> str:
        if self.kind == "ordinal":
            return f"ordinal:{self.low:g}:{self.high:g}"
        if self.kind == "points":
            return f"points:{self.low:g}:{self.high:g}{'' if self.step is None else f':{self.step:g}'}"
        return self.kind

    @property
    def span(self) -> float:
        """Width of the scale (0 for nominal)."""
        return self.high - self.low

    @property
    def numeric(self) -> bool:
        """Whether differences of labels mean something (all but nominal)."""
        return self.kind != "nominal"

    @property
    def graded(self) -> bool:
        """Whether there are grades between the ends (percentage, points, ordinal)."""
        return self.kind in GRADED

    @property
    def of_means(self) -> Scale:
        """The scale of means of its labels: shares of yes lie in 0..1, and a mean lies between the grades."""
        if self.kind == "binary":
            return Scale("points", 0.0, 1.0)
        return Scale("points", self.low, self.high) if self.kind in ("ordinal", "points") else self

    @property
    def of_pairs(self) -> bool:
        """Whether its words say which of two answers is better."""
        return self.kind == "nominal" and {"A", "B"} <= {*self.categories} <= PREFERENCE.keys()

    def on_step(self, label: float) -> bool:
        """Return whether a label, a number, is on a step of the scale; any is where there are no steps."""
        steps = 0.0 if self.step is None else (label - self.low) / self.step
        return abs(steps - round(steps)) <= _OFF_STEP

    def read(self, text: object) -> Label:
        """Read a Label of the scale from a text or a number, and return it.

        Raises:
            ValueError: it is no label of this scale; the message says what would be.
        """
        word = str(text).strip()
        if self.kind == "nominal":
            if not word:
                raise ValueError("empty label")
            if self.categories and word not in self.categories:
                raise ValueError(f"{word!r} is none of {', '.join(self.categories)}")
            return word
        if self.kind == "binary":
            plain = word.lower().removesuffix("%")
            if plain in TRUE_WORDS | FALSE_WORDS:
                return float(plain in TRUE_WORDS)
            words = "yes/no, true/false, pass/fail, correct/incorrect, 1/0, 100/0"
            raise ValueError(f"{str(text)[:60]!r} is none of {words}")
        value = _number(text, percent=self.kind == "percentage" and not self.from_fraction)
        low, high = (0.0, 1.0) if self.from_fraction else (self.low, self.high)
        if not low <= value <= high:
            raise ValueError(f"{value:g} lies outside {low:g}..{high:g}")
        value = value * 100.0 if self.from_fraction else value
        if self.kind == "ordinal" and value != round(value):
            raise ValueError(f"{value:g} is not a whole number")
        if self.kind == "points" and not self.on_step(value):
            raise ValueError(f"{value:g} lies between the steps of {self.step:g}")
        return value

    def stratum(self, label: float) -> int:
        """Return the third of the scale where a label, a number, lies: 0, 1 or 2 (binary: 0 or 2).

        `min(2, floor(3 (y - min) / (max - min)))`; the error of floating point never moves a label down.
        """
        return min(2, math.floor(3.0 * (label - self.low) / self.span + _ROUNDING))

    def farthest(self, label: float) -> float:
        """The verdict farthest from a label; for a label in the middle, the lower end."""
        return self.high if label - self.low < self.high - label else self.low


def _parse_kind(text: str) -> Scale:
    fixed = {
        "percentage": Scale("percentage", 0.0, 100.0),
        "fraction": Scale("percentage", 0.0, 100.0, from_fraction=True),
        "binary": Scale("binary", 0.0, 1.0, step=1.0),
        "nominal": Scale("nominal", 0.0, 0.0),
    }
    if text in fixed:
        return fixed[text]
    ordinal, points = re.fullmatch(r"ordinal:(-?\d+):(-?\d+)", text), _POINTS.fullmatch(text)
    match = ordinal or points
    if match is None:
        raise InputError(f"unknown scale {text!r}: use one of {_FORMS}")
    low, high = float(match[1]), float(match[2])
    if low >= high:
        raise InputError(f"scale {text!r}: MIN must be below MAX")
    if ordinal:
        return Scale("ordinal", low, high, step=1.0)
    step = float(match[3]) if match[3] else None
    if step is not None and not (0.0 < step < high - low and Scale("points", low, high, step).on_step(high)):
        raise InputError(
            f"scale {text!r}: STEP must be above 0 and go into MIN to MAX a whole number of times"
        )
    return Scale("points", low, high, step)


def _number(text: object, *, percent: bool) -> float:
    """A finite number as people write it; Python's own `1_0` is none."""
    word = str(text).strip()
    word = word.removesuffix("%").rstrip() if percent else word
    if isinstance(text, bool) or not _NUMBER.fullmatch(word) or math.isinf(value := float(word)):
        other = ", but a label of the scale binary" if word.lower() in TRUE_WORDS | FALSE_WORDS else ""
        raise ValueError(f"{repr(text)[:60]} is not a number{other}")
    return value


def common_scale(people: Scale, judge: Scale) -> Scale:
    """Return the Scale to hold verdicts against labels on, given people's Scale and a judge's Scale.

    Equal scales stay. Binary labels are taken to the ends of a graded judge's scale, which is then cut at
    the people's pass mark or in the middle (50 for a percentage). Any other pair is compared on the people's
    scale.
    """
    if (people.kind == "nominal") != (judge.kind == "nominal"):
        raise InputError(f"a {judge} judge cannot be held against {people} labels: they share no order")
    if people.kind == "binary" and judge.graded:
        mark = 50.0 if people.pass_at is None else people.pass_at
        return replace(judge, pass_at=judge.low + judge.span * mark / 100.0)
    return people


def onto(target: Scale, source: Scale, label: float) -> float:
    """Map a label linearly from one numeric scale onto another (ends to ends)."""
    return target.low + (label - source.low) * target.span / source.span
