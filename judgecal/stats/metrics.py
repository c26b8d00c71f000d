"""The table of metrics: what each is, in which units and on which scales, and which judge it prefers.

To add one: write its function of a sample beside its kin, and add a line here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from judgecal.errors import InputError, unknown_name
from judgecal.scale import GRADED, Kind, Scale
from judgecal.stats import chance, correlation, means
from judgecal.stats.intervals import Totals
from judgecal.stats.means import Means
from judgecal.stats.sample import Sample, as_scale

Statistic = correlation.Tables | Totals
Terms = Means | Statistic | str
"""What a metric makes of a sample: its terms, or the reason why it has no value."""

_NUMERIC: tuple[Kind, ...] = (*GRADED, "binary")
_CLASSES: tuple[Kind, ...] = ("binary", "nominal")
_CATEGORIES: tuple[Kind, ...] = (*_CLASSES, "ordinal")
_ALL: tuple[Kind, ...] = (*_NUMERIC, "nominal")


@dataclass(frozen=True)
class Metric:
    """A metric of the table of metrics: its scales, direction and terms."""

    name: str  # as it is printed, without a pass mark
    kinds: tuple[Kind, ...]  # the people's scales that have it under its plain name
    terms: Callable[[Sample], Terms]  # the metric as a function of a sample
    meaning: str  # one line in plain words
    # which agrees better; neither where it ranks nobody
    direction: Literal["more", "less", "neither"] = "more"
    # a coefficient (1 is perfect), a share, which texts and tables give in percent, or in units of the common
    # scale
    unit: Literal["coefficient", "share", "scale"] = "coefficient"
    column_on: tuple[
        Kind, ...
    ] = ()  # the people's scales whose short table, of a line a judge, has a column for it
    # short tables of a line a metric have one for it; where it has a column, they do anyway
    row: bool = False
    at_mark: bool = False  # graded scales with a pass mark have it too, as name@mark
    is_rate: bool = False  # the rate of one class, which needs ten items of it for an interval
    by_class: bool = False  # on classes, it needs ten items outside the commonest one for an interval
    lowest: float = -1.0  # of a coefficient's range, which ends at 1
    calibrated: bool = False  # judges are decided by it once their verdicts are calibrated


# Tables show them in this order.
# fmt: off
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (
    Metric("macro_agreement", _NUMERIC, means.macro_agreement, column_on=_NUMERIC,
        calibrated=True, unit="share", meaning=
        "1 less the mean distance of verdict and label as a share of the range; the low, middle and "
        "high third of the labels count alike. It decides once verdicts are calibrated, as a constant "
        "wins it on some graded labels."),
    Metric("mean_agreement", _NUMERIC, means.mean_agreement, column_on=GRADED, unit="share",
        meaning=
        "1 less the mean distance of verdict and label as a share of the range; a constant can win it."),
    Metric("skill", _NUMERIC, means.skill, row=True, by_class=True, meaning=
        "Share of the best constant's error that a judge removes: 0 is as good as that constant, 1 perfect."),
    Metric("accuracy", _CLASSES, means.accuracy, column_on=_CLASSES, at_mark=True, unit="share", meaning=
        "Share of the verdicts that equal people's label."),
    Metric("balanced_accuracy", ("binary",), means.balanced_accuracy, at_mark=True, by_class=True,
        unit="share", meaning="Mean of tpr and tnr: a constant has 0.5."),
    Metric("kappa", _CATEGORIES, chance.kappa, column_on=_ALL, at_mark=True, by_class=True, meaning=
        "Agreement beyond chance (Cohen); 0 is chance, 1 is perfect."),
    Metric("kappa_quadratic", ("ordinal",), chance.kappa_quadratic, meaning=
        "Kappa where a miss weighs by the square of its distance."),
    Metric("scott_pi", _CATEGORIES, chance.scott_pi, at_mark=True, by_class=True, meaning=
        "Kappa with one distribution of labels for judge and people (Scott)."),
    Metric("gwet_ac1", _CATEGORIES, chance.gwet_ac1, at_mark=True, by_class=True, meaning=
        "Agreement beyond chance that stays steady where one label is rare (Gwet)."),
    Metric("krippendorff_alpha", _ALL, chance.krippendorff_alpha, at_mark=True, by_class=True, meaning=
        "1 less observed over expected disagreement, with judge and people as two raters (Krippendorff)."),
    Metric("mcc", ("binary",), chance.mcc, at_mark=True, by_class=True, meaning=
        "Correlation of passes and fails (Matthews)."),
    Metric("f1", ("binary",), means.f1, at_mark=True, is_rate=True, meaning=
        "Harmonic mean of the precision and the recall of passes."),
    Metric("tpr", ("binary",), means.tpr, column_on=_NUMERIC, at_mark=True, is_rate=True, unit="share",
        meaning="Of what people pass, the share that the judge passes; the rest are false fails."),
    Metric("tnr", ("binary",), means.tnr, column_on=_NUMERIC, at_mark=True, is_rate=True, unit="share",
        meaning="Of what people fail, the share that the judge fails; the rest are false passes."),
    Metric("auc", ("binary",), correlation.concordance_index, lowest=0.0, by_class=True, meaning=
        "How often a passing item has a higher verdict than a failing one, ties half: 0.5 knows nothing."),
    Metric("within_10", GRADED, means.within_10, unit="share", meaning=
        "Share of the verdicts that lie within a tenth of the range of the label."),
    Metric("concordance", GRADED, correlation.concordance, meaning=
        "How close verdicts lie to the line verdict = label (Lin)."),
    Metric("pearson", GRADED, correlation.pearson, meaning=
        "How close verdicts lie to a straight line of the labels."),
    Metric("spearman", GRADED, correlation.spearman, meaning=
        "Pearson's correlation of the ranks: the order alone counts."),
    Metric("kendall", GRADED, correlation.kendall, meaning=
        "Pairs of items in people's order less pairs in the reverse order, as a share, adjusted for "
        "ties (tau-b)."),
    Metric("concordance_index", GRADED, correlation.concordance_index, lowest=0.0, by_class=True, meaning=
        "Share of the pairs of items that the judge puts in people's order, ties half: 0.5 knows nothing."),
    Metric("icc_2_1", GRADED, chance.icc_2_1, meaning=
        "Share of the variance that lies between items, with judge and people as two raters (absolute "
        "agreement)."),
    Metric("mae", _NUMERIC, means.mae, direction="less", unit="scale", row=True, meaning=
        "Mean distance of verdict and label, in units of the scale."),
    Metric("rmse", _NUMERIC, means.rmse, direction="less", unit="scale", by_class=True, meaning=
        "Root of the mean squared distance of verdict and label: large misses weigh more."),
    Metric("bias", _NUMERIC, means.bias, direction="neither", unit="scale", column_on=_NUMERIC,
        by_class=True, meaning=
        "Mean of verdict less label: above 0 the judge is more lenient than people."),
    Metric("brier", ("binary",), means.brier, direction="less", by_class=True, meaning=
        "Mean squared distance between the label and the chance of a pass that a verdict means; once "
        "calibrated, that chance is how often people pass answers with that verdict."),
    Metric("prevalence", ("binary",), means.prevalence, direction="neither", at_mark=True, unit="share",
        meaning="Share of the labels that pass; the same for every judge."),
)}
# fmt: on


def leading_metric(scale: Scale) -> str:
    """What judges are ranked by: macro_agreement, or accuracy where labels have no order."""
    return "macro_agreement" if scale.numeric else "accuracy"


def metric_facts(name: str) -> Metric:
    """Return the Metric of a name, with or without a pass mark (`kappa@75`)."""
    base = name.partition("@")[0]
    if base not in METRICS:
        raise unknown_name("metric", name, list(METRICS))
    return METRICS[base]


def metrics_of(people: Scale) -> dict[str, tuple[Metric, bool]]:
    """Return name -> (Metric, whether it is taken at the pass mark) of those that people's Scale has."""
    fitting = {metric.name: (metric, False) for metric in METRICS.values() if people.kind in metric.kinds}
    if people.graded and people.pass_at is not None:
        mark = f"@{people.pass_at:g}"
        fitting |= {f"{metric.name}{mark}": (metric, True) for metric in METRICS.values() if metric.at_mark}
    return fitting


def metric_named(name: str, people: Scale) -> tuple[Metric, bool]:
    """Return (Metric, whether it is at the mark), from its name and people's Scale, or raise InputError."""
    fitting = metrics_of(people)
    if name in fitting:
        return fitting[name]
    base, at, _ = name.partition("@")
    if base not in METRICS:
        raise unknown_name("metric", name, list(dict.fromkeys([*fitting, *METRICS])))
    mark = "no pass mark" if people.pass_at is None else f"the pass mark {people.pass_at:g}"
    where = f"{people} with {mark}" if at else str(people)
    raise InputError(f"metric {name!r} does not fit the scale {where}: use one of {', '.join(fitting)}")


def columns_of(names: Iterable[str], people: Scale | str) -> list[str]:
    """Return a list of those metric names with a column in short tables, from names and people's Scale."""
    scale = as_scale(people)
    return _in_order(name for name in names if scale.kind in metric_facts(name).column_on)


def rows_of(names: Iterable[str]) -> list[str]:
    """The metrics among names for a short table with a line for each metric, the leading metric first."""
    return _in_order(name for name in names if metric_facts(name).row or metric_facts(name).column_on)


def _in_order(names: Iterable[str]) -> list[str]:
    places = list(METRICS)
    return sorted(names, key=lambda name: places.index(metric_facts(name).name))


def digits_of(name: str, unit: Scale | str) -> int:
    """Return the number of digits after the point, from a metric's name and a Scale: 3 of a share. On a scale
    it shows a thousandth of the span.

    `unit` is the common scale of judge and people; the people's, where no other is known.
    """
    span = as_scale(unit).span if metric_facts(name).unit == "scale" else 1.0
    return max(0, 3 - math.ceil(math.log10(span)))


def amount_of(value: float, name: str, unit: Scale | str | None = None) -> str:
    """Return a text of an amount without a sign, from a value and its metric's name: a share in points.

    `unit` as in `digits_of`; 3 digits without one.
    """
    if metric_facts(name).unit == "share":
        points = round(100.0 * value, 1)
        return f"{points:g} point{'s' * (points != 1.0)}"
    return f"{value:.{3 if unit is None else digits_of(name, unit)}f}"
