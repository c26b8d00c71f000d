"""Arrays in, Estimates out: agreement, its intervals, comparison of judges, calibration."""

from judgecal.stats.agreement import Agreement, Estimates, agreement
from judgecal.stats.calibration import (
    Calibration,
    PairedLabels,
    calibrated_difference,
    cross_fit,
    cross_fitted_probabilities,
    fit_calibration,
)
from judgecal.stats.compare import PairComparison, compare, compare_all
from judgecal.stats.means import best_constant
from judgecal.stats.metrics import METRICS, columns_of, leading_metric, metric_facts, metric_named, metrics_of
from judgecal.stats.paired import compare_paired
from judgecal.stats.reliability import reliability
from judgecal.stats.significance import PLANNED_DISCORDANCE, POWER
from judgecal.stats.stand_in import AltTest, alt_test, winning_rates

__all__ = [
    "METRICS", "PLANNED_DISCORDANCE", "POWER", "Agreement", "AltTest", "Calibration", "Estimates",
    "PairComparison", "PairedLabels", "agreement", "alt_test", "best_constant", "calibrated_difference",
    "columns_of", "compare", "compare_all", "compare_paired", "cross_fit", "cross_fitted_probabilities",
    "fit_calibration", "leading_metric", "metric_facts", "metric_named", "metrics_of", "reliability",
    "winning_rates",
]  # fmt: skip
