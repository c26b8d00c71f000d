"""Arrays in, Estimates out: agreement, its intervals, comparison of judges, recalibration."""

from judgecal.stats.agreement import agreement
from judgecal.stats.calibration import PairedLabels, recalibrated_agreement, recalibrated_difference
from judgecal.stats.comparison import PairedDifference, compare_paired
from judgecal.stats.means import best_constant
from judgecal.stats.metrics import METRICS, Metric, metrics_of

__all__ = [
    "METRICS",
    "Metric",
    "PairedDifference",
    "PairedLabels",
    "agreement",
    "best_constant",
    "compare_paired",
    "metrics_of",
    "recalibrated_agreement",
    "recalibrated_difference",
]
