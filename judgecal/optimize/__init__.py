"""Optimise a judge: compile on train, choose on dev, confirm once on test."""

from judgecal.optimize.candidates import OPTIMIZERS, Candidate, Training, optimizer_settings
from judgecal.optimize.confirm import Confirmation, confirm
from judgecal.optimize.metric import AgreementMetric
from judgecal.optimize.preview import preview_optimize
from judgecal.optimize.run import OptimizeRun, decisive_metric, resolve_optimizer

__all__ = [
    "OPTIMIZERS",
    "AgreementMetric",
    "Candidate",
    "Confirmation",
    "OptimizeRun",
    "Training",
    "confirm",
    "decisive_metric",
    "optimizer_settings",
    "preview_optimize",
    "resolve_optimizer",
]
