"""What the judge of a family learns from the demos of its prompt: a map from its measures to the people's
verdicts.

Without demos the share that the family gives is the verdict: as a number, cut at one half where the answer is
yes or no, or as the label whose place between bad and good is nearest. With demos a logistic model is fitted
to them, held near that share by a penalty, over the share and the measures of `evidence`; where the labels
have no order there is one model a label, and the likeliest label is the verdict. A few demos move it little,
and none of it can learn more than how words, numbers and names lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from judgecal.models.embedded.evidence import NAMES
from judgecal.models.embedded.families import Finding, find
from judgecal.models.embedded.judge import Vector, decisiveness, newton, sigmoid
from judgecal.models.embedded.prompt import Layout, Scale, read_examples, read_layout

# How hard a fit is held to its prior: by the intercept, the slope of the family's share, and each measure.
_ORDERED = (1.0, 4.0, 2.0)
_NOMINAL = (0.3, 2.0, 1.0)
_CAUTION = 0.2


@dataclass(frozen=True, slots=True)
class Learnt:
    """A row of coefficients for the verdict, or for each label of a scale without an order."""

    rows: Vector


def judged(layout: Layout, prefix: tuple[str, ...], inputs: Mapping[str, str]) -> tuple[Any, str]:
    """The verdict on one item as the field's type takes it, and why; `prefix` are the system message and the
    demos.

    The layout has a scale.
    """
    assert layout.scale is not None
    finding = find(layout, inputs)
    learnt = learnt_from(prefix) if len(prefix) > 1 else None
    if learnt is None:
        return layout.scale.write(finding.share), finding.why
    logits = learnt.rows @ _measures(finding, layout.scale)
    if layout.scale.kind == "nominal":
        return layout.scale.words[int(np.argmax(logits))], finding.why
    return layout.scale.write(float(sigmoid(logits)[0])), finding.why


def _measures(finding: Finding, scale: Scale) -> Vector:
    """What a fit sees of an item: 1, the share, the measures about their middle; of several labels, the
    share's nearness to the level of each comes first.
    """
    measures = [value - 0.5 for value in finding.values]
    if scale.kind == "nominal":
        near = [1.0 - 2.0 * abs(finding.share - level) for level in scale.levels]
        return np.array([1.0, *near, *measures])
    return np.array([1.0, math.log(finding.share / (1.0 - finding.share)), *measures])


@lru_cache(maxsize=64)
def learnt_from(prefix: tuple[str, ...]) -> Learnt | None:
    """The fit to the demos of a prompt's prefix, once per prefix and process; None without a readable one."""
    layout = read_layout(prefix[0])
    scale, examples = layout.scale, read_examples(prefix[0], prefix[1:])
    if scale is None or not examples:
        return None
    design = np.array([_measures(find(layout, example.inputs), scale) for example in examples])
    labels = np.array([example.label for example in examples])
    if scale.kind == "nominal":
        return Learnt(
            np.array([_label_fit(design, labels, place, scale) for place in range(len(scale.words))])
        )
    prior = np.array([0.0, 1.0, *[0.0] * len(NAMES)])
    point = newton(design, labels, prior=prior, penalty=_penalty(_ORDERED, 1))
    return Learnt((point * decisiveness(design @ point, labels, caution=_CAUTION))[None, :])


def _label_fit(design: Vector, labels: Vector, place: int, scale: Scale) -> Vector:
    """How likely one label is: at first by how near the share lies to its level."""
    n = len(scale.words)
    prior = np.zeros(design.shape[1])
    prior[1 + place] = 2.0
    return newton(design, (labels == place).astype(np.float64), prior=prior, penalty=_penalty(_NOMINAL, n))


def _penalty(held: Sequence[float], n_shares: int) -> Vector:
    return np.array([held[0], *[held[1]] * n_shares, *[held[2]] * len(NAMES)])
