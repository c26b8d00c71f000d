"""Optimise a judge: compile on train, choose on dev, confirm once on test."""

from judgecal.optimize.decision import Confirmation, confirm
from judgecal.optimize.metric import AgreementMetric
from judgecal.optimize.optimizers import OPTIMIZERS, optimizer_settings, reflection_config
from judgecal.optimize.run import OptimizeRun, Preview, decisive_metric, preview_optimize, resolve_optimizer
from judgecal.optimize.training import Candidate, Training

__all__ = [
    "OPTIMIZERS",
    "AgreementMetric",
    "Candidate",
    "Confirmation",
    "OptimizeRun",
    "Preview",
    "Training",
    "confirm",
    "decisive_metric",
    "optimizer_settings",
    "preview_optimize",
    "reflection_config",
    "resolve_optimizer",
]
