"""Optimisers that put examples into the prompt: `labeled` and `fewshot`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import dspy

from judgecal.optimize.compiling import compiling
from judgecal.optimize.optimizer import Bounds, Optimizer
from judgecal.optimize.training import Candidate, Training

__all__ = ["FEWSHOT", "LABELED"]

_LABELED_SIZES = (4, 8, 16, 32)
_DRAWS = 3
_BOOTSTRAPPED = 4
_BOOTSTRAP_LABELED = 12
# A reply is taken as an example of good judging where it lies within a tenth of the scale from the people.
GOOD_ENOUGH = 0.9


def _labeled(training: Training) -> Iterator[Candidate]:
    """Demos that carry people's labels: how many, and which, is for dev to say."""
    sizes = [size for size in _LABELED_SIZES if size < len(training.items)] or [len(training.items)]
    for draw in range(_DRAWS):
        ordered = training.examples(draw)
        for size in sizes:
            compiled = dspy.LabeledFewShot(k=size).compile(training.student(), trainset=ordered, sample=False)
            yield training.candidate(f"labeled-{size}-draw{draw + 1}", compiled)


def _fewshot(training: Training) -> Iterator[Candidate]:
    """Demos with the judge's own reasoning, where its verdict met the people's label, filled up with labels."""
    for draw in range(_DRAWS):
        metric = training.metric()
        optimizer = dspy.BootstrapFewShot(
            metric=metric,
            metric_threshold=GOOD_ENOUGH,
            max_bootstrapped_demos=_BOOTSTRAPPED,
            max_labeled_demos=min(_BOOTSTRAP_LABELED, len(training.items)),
            max_errors=1,
        )
        with compiling(training, "fewshot", calls_at_most=len(training.items)):
            compiled = optimizer.compile(training.student(), trainset=training.examples(draw))
        made = training.candidate(f"fewshot-draw{draw + 1}", compiled)
        yield dataclasses.replace(made, rated=metric.calls, unusable=metric.unusable)


LABELED = Optimizer(
    make=_labeled,
    settings={"sizes": list(_LABELED_SIZES), "draws": _DRAWS},
    bounds=lambda training: Bounds(candidates=0),
)
FEWSHOT = Optimizer(
    make=_fewshot,
    settings={
        "bootstrapped": _BOOTSTRAPPED,
        "labeled": _BOOTSTRAP_LABELED,
        "threshold": GOOD_ENOUGH,
        "draws": _DRAWS,
    },
    bounds=lambda training: Bounds(_DRAWS, task=_DRAWS * len(training.items), demos=_BOOTSTRAP_LABELED),
)
