"""The first screen of a page about judges: four facts with their intervals, and all agreement on one axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from judgecal.experiment.result import Entry, JudgeEntry, RaterEntry
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.document import Fact, Picture
from judgecal.report.intervals import Axis, IntervalRow, in_points, interval_picture
from judgecal.report.judges_headline import always, deciding, raters_in_words
from judgecal.selection.standing import Standing
from judgecal.stats.metrics import digits_of, metric_facts

_MOST = 7  # judges that are drawn; the table has all


def subject(found: Standing) -> JudgeEntry:
    """The judge to use; where there is none, the best one."""
    name = found.chosen or (found.pick.best if found.pick else found.result.judges[0].judge)
    return next(one for one in found.result.judges if one.judge == name)


def first_facts(found: Standing) -> list[Fact]:
    """Its errors either way, its lead, and what it costs and leaves without a verdict."""
    one = subject(found)
    return [*_errors(found, one), *_lead(found, one), _price(one)]


def _errors(found: Standing, one: JudgeEntry) -> Iterator[Fact]:
    """At the pass mark in a hundred; without one how far and how often verdicts lie off; of words, beyond
    chance."""
    shape = next(shape for shape in found.shapes if shape.judge == one.judge)
    by_base = {metric_facts(name).name: (name, value) for name, value in shape.rates.items()}
    if "tnr" in by_base and "tpr" in by_base:
        yield _in_a_hundred(_complement(by_base["tnr"][1]), "bad answers it lets through")
        yield _in_a_hundred(_complement(by_base["tpr"][1]), "good answers it rejects")
    elif "mae" in by_base:
        digits = digits_of("mae", shape.unit)
        value, once = by_base["mae"][1], " once calibrated" * shape.mapped
        yield Fact(
            numbers.plain(value.value, digits),
            f"mean distance from people's labels{once}{_ends(value, digits)}",
        )
        if "within_10" in by_base:
            yield _in_a_hundred(by_base["within_10"][1], f"verdicts lie within 10% of the scale{once}")
    elif "kappa" in by_base:
        yield Fact(
            numbers.plain(by_base["kappa"][1].value, 2),
            f"kappa{_ends(by_base['kappa'][1], 2)}: beyond chance",
        )


def _in_a_hundred(share: Estimate, what: str) -> Fact:
    if share.value is None:
        return Fact("unknown", f"{what}: {share.reason}")
    return Fact(f"{numbers.points(share.value, 0)} of 100", f"{what}{_ends(in_points(share), 0)}")


def _complement(share: Estimate) -> Estimate:
    value, low, high = (None if end is None else 1.0 - end for end in (share.value, share.high, share.low))
    return Estimate(value, low if share.low is not None else None, high, reason=share.reason)


def _ends(found: Estimate, digits: int) -> str:
    if found.low is None or found.high is None:
        return ""
    return f" [{numbers.plain(found.low, digits)}, {numbers.plain(found.high, digits)}]"


def _lead(found: Standing, one: JudgeEntry) -> Iterator[Fact]:
    """Over the next judge, or below the best one; alone, over the best constant."""
    if found.losses is None:
        return
    losses = {loss.judge: loss for loss in found.losses.judges}
    own, alike = (
        losses.get(one.judge),
        {name for names in found.alike if one.judge in names for name in names},
    )
    if found.pick is not None and one.judge == (found.pick.judge or found.pick.best):
        alike |= {*found.pick.twins}
    others = [loss for loss in losses.values() if loss.judge not in alike and loss.loss is not None]
    if own is not None and own.loss and found.pick is not None and one.judge != found.pick.best:
        most = "" if own.high is None else f", at most {numbers.points(own.high)}"
        yield Fact(f"{numbers.points(own.loss)} points", f"below the best, {found.pick.best}{most}")
    elif others:
        after = min(others, key=lambda loss: loss.loss or 0.0)
        yield _ahead(Estimate(after.loss, after.low, after.high), after.judge, found)
    else:
        constant = found.losses.floor[0]
        yield _ahead(constant.loss, always(constant.judge, found.result.gold.scale), found)


def _ahead(lead: Estimate, of: str, found: Standing) -> Fact:
    shown = lead.low is not None and lead.low > 0.0
    sign = numbers.difference(in_points(Estimate(lead.value)), 1)
    known = lead.low is not None and lead.high is not None
    ends = f" {numbers.difference(in_points(lead), 1).partition(' ')[2]}" if known else ""
    on = "" if found.basis.n_items == found.result.gold.n_items else f" on the {found.basis.split} answers"
    return Fact(f"{sign} points", f"over {of}{ends}{on}{'' if shown else ': cannot tell'}")


def _price(one: JudgeEntry) -> Fact:
    usd = one.usd_per_1k
    price = "price unknown" if usd is None else "free" if usd == 0 else f"${numbers.money(usd)}"
    per = "" if not usd else "per 1,000 answers; "
    return Fact(price, f"{per}{numbers.count(one.n_unscored)} of {numbers.count(one.n_expected)} unscored")


def agreement_plot(found: Standing) -> Picture | None:
    """Judges, best first, the floor and the people's band; None where no judge has a value.

    Circles are held against the people's label, as the headline is. People are held against each other; so is
    each judge, against the same single people, by its diamond.
    """
    result, metric = found.result, found.metric
    whom, raters = raters_in_words(result.gold.labels_by)
    own = subject(found).judge
    firsts = [next(one for one in result.judges if one.judge == names[0]) for names in found.alike]
    known = sorted(
        (one for one in firsts if one.decided_by(metric).value is not None), key=_best_first(metric)
    )
    if not known:
        return None
    people = [one for one in result.raters if one.enough and one.decided_by(metric).value is not None]
    ends = [100.0 * (deciding(one, metric).value or 0.0) for one in people]
    rows = []
    if people:
        span = (
            f"{min(ends):.0f}–{max(ends):.0f}" if round(min(ends)) < round(max(ends)) else f"{max(ends):.0f}"
        )
        rows.append(IntervalRow(f"{raters} with each other", Estimate(None), span, band=True))
    named = {names[0]: names for names in found.alike}
    rows += [
        _row(one, metric, named[one.judge], people, strong=own in named[one.judge]) for one in known[:_MOST]
    ]
    judges = {one.judge for one in result.judges}
    floor = [
        one for one in result.floor if one.judge not in judges and one.decided_by(metric).value is not None
    ]
    rows += [_floor(one, metric) for one in floor]
    more = "" if len(known) <= _MOST else f" The best {_MOST} of {len(known)} judges."
    title = f"Agreement with {whom}, in %{_footing(bool(people))}{more}"
    axis = Axis(_axis(found), high=100.0, band=(min(ends), max(ends)) if people else None)
    return interval_picture(rows, axis, title=title)


def _footing(people: bool) -> str:
    return (
        ": ● with their label, ◇ with single people, as people are with each other (green)."
        if people
        else "."
    )


def _axis(found: Standing) -> str:
    once = " once calibrated" if any(one.calibrated for one in found.result.judges) else ""
    return f"{found.metric}{once}, %"


def _best_first(metric: str) -> Callable[[Entry], float]:
    return lambda one: -(one.decided_by(metric).value or 0.0)


def _row(
    one: JudgeEntry, metric: str, names: Sequence[str], people: Sequence[RaterEntry], *, strong: bool
) -> IntervalRow:
    value = in_points(one.decided_by(metric))
    beside = [
        line.decided_by(metric).value for rater in people for line in rater.judges if line.judge == one.judge
    ]
    known = [value for value in beside if value is not None]
    name = one.judge if len(names) == 1 else f"{one.judge} and {len(names) - 1} alike"
    mean = 100.0 * sum(known) / len(known) if known else None
    return IntervalRow(name, value, numbers.estimate(value, 1), strong, beside=mean)


def _floor(one: Entry, metric: str) -> IntervalRow:
    value = in_points(one.decided_by(metric))
    return IntervalRow(f"{one.judge} (floor)", value, numbers.estimate(value, 1), hollow=True)
