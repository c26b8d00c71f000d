"""Optimise a judge: compile on train, choose on dev, confirm once on test."""

import sys
from types import ModuleType

from judgecal.optimize.optimizers import OPTIMIZERS, resolve_optimizer
from judgecal.optimize.result import Confirmation, OptimizeResult, confirm
from judgecal.optimize.run import OptimizeRun, optimize
from judgecal.optimize.training import AgreementMetric, Candidate, Training

__all__ = [
    "OPTIMIZERS", "AgreementMetric", "Candidate", "Confirmation", "OptimizeResult", "OptimizeRun",
    "Training", "confirm", "resolve_optimizer",
]  # fmt: skip


class _Called(ModuleType):
    """`judgecal.optimize(...)`: Python sets a package on its parent by name, so the package is called."""

    __call__ = staticmethod(optimize)


sys.modules[__name__].__class__ = _Called
