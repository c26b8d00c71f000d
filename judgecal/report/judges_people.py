"""The section that holds judges beside people: may one stand in for a person, and the alternative annotator
test."""

from __future__ import annotations

from collections.abc import Iterator

from judgecal.experiment.result import AgreementResult, AltTestEntry, JudgeEntry
from judgecal.report import numbers
from judgecal.report.document import Block, Bullets, Paragraph, Section, Table
from judgecal.selection.standing import Standing
from judgecal.stats.metrics import metric_facts
from judgecal.stats.stand_in import MIN_SHARED, StandIn

_FEW_RATERS = 2
_MAY = {True: "may stand in", False: "to triage", None: "cannot tell"}


def people_section(found: Standing) -> Section | None:
    """Each judge beside each rater, both against the other raters; None where no two raters share an item."""
    judges = [(one, one.stand_in) for one in found.result.judges if one.stand_in is not None]
    if not found.result.raters or not judges:
        return None
    blocks: list[Block] = [
        Table(
            ["judge", "points below, at worst", "beside", "items", "decision"],
            [_row(judge.judge, stand_in, found.margin) for judge, stand_in in judges],
            chosen=found.chosen,
        ),
        Bullets(list(_reasons(judges, found.margin))),
        _by_rater(found, judges),
        *_with_mean(found.result),
        *_alt_tests(found.result),
    ]
    level = judges[0][1].level
    caption = (
        "Serves the question whether a judge can take a person's place: it and a rater are held against the same "
        "labels of the other raters, on all items that they share, those without a gold label too. It may stand in "
        f"where it is shown to lie less than {100.0 * found.margin:g} points of {found.metric} below every rater (each"
        f" bound one-sided, at {level:.4g}, so that all judges here together are wrongly said to in at most 5%); else "
        "it is good to triage: to sort what a person then reads."
    )
    return Section("people", "In a person's place", caption, blocks)


def _with_mean(result: AgreementResult) -> list[Block]:
    """The judges against the mean of the raters, where the gold label is another."""
    judges = [(one.judge, one.with_mean) for one in result.judges if one.with_mean]
    if not judges:
        return []
    names = list(judges[0][1])
    rows = [[judge, *(numbers.estimate(own[name]) for name in names)] for judge, own in judges]
    what = (
        "Raw verdicts against the mean of each item's raters; everywhere else the gold label is their median"
    )
    return [Table(["judge", *names], rows, title=what)]


def _row(judge: str, found: StandIn, margin: float) -> list[str]:
    may = _MAY[found.shown(margin)]
    bounds = [(one.at_worst, rater, one.n) for rater, one in found.raters.items() if one.at_worst is not None]
    if found.at_worst is None or not bounds:
        return [judge, numbers.DASH, numbers.DASH, numbers.DASH, may]
    worst, rater, n = min(bounds)
    return [judge, numbers.points(-worst), rater, numbers.count(n), may]


def _reasons(judges: list[tuple[JudgeEntry, StandIn]], margin: float) -> Iterator[str]:
    """Why nothing can be shown of a judge, and which raters nothing hangs on, each once."""
    for judge, found in judges:
        if found.reason:
            yield f"Cannot tell whether {judge.judge} may stand in: {found.reason}."
        elif not found.shown(margin) and found.at_worst is not None and found.at_worst > -margin:
            yield f"{judge.judge} is not shown to agree with every person better than a constant does."
    yield from (f"{rater}: {why}." for rater, why in judges[0][1].left_out.items())


def _by_rater(standing: Standing, judges: list[tuple[JudgeEntry, StandIn]]) -> Table:
    """A line a judge and rater: the share of both, the difference, and who is nearer to the others item by
    item.

    Where verdicts were calibrated, the judge's raw number stands beside it.
    """
    raters, metric = standing.result.raters, judges[0][1].metric
    raw = {
        (line.judge, rater.judge): line.as_wrong
        for rater in raters
        for line in rater.judges
        if line.calibrated
    }
    header = [
        "judge",
        "beside",
        "items",
        "judge",
        *["raw"] * bool(raw),
        "rater",
        "judge less rater",
        "at worst",
    ]
    header += ["judge nearer", "rater nearer", "alike"]
    rows = []
    for judge, found in judges:
        for rater, one in found.raters.items():
            near = judge.alt_test.nearer.get(rater) if judge.alt_test else None
            shares = [None, None, None] if near is None else [near.judge, near.human, near.tie]
            own = raw.get((judge.judge, rater))
            values = [one.judge, *([None if own is None else own[metric].value] if raw else []), one.person]
            told = [numbers.points(value) for value in (*values, one.difference, one.at_worst)]
            told += [numbers.percent(share, 1) for share in shares]
            rows.append(
                [judge.judge, rater, f"{numbers.count(one.n)}/{numbers.count(one.n_expected)}", *told]
            )
    once = (
        ", once calibrated (a rater as it is, where that is better)"
        if metric_facts(metric).calibrated
        else ""
    )
    title = f"Judge and rater by {metric}{once}, in %, both against the other raters"
    return Table(header, rows, left=2, title=title)


def _alt_tests(result: AgreementResult) -> list[Block]:
    """What the test grants, once; then a sentence a judge."""
    tested = [(one.judge, one.alt_test) for one in result.judges if one.alt_test is not None]
    if not tested:
        return []
    points = [f"{100.0 * float(epsilon):g}" for epsilon in tested[0][1].winning_rate]
    granted = f"{', '.join(points[:-1])} or {points[-1]}"
    what = (
        "The alternative annotator test, here of verdicts once calibrated where labels have an order, grants a judge a "
        "head start, epsilon, for costing less than a person: with "
        f"{granted} points it passes beside a rater who is nearer to the other people on up to so many more items in "
        "a hundred than it is. Where both are as near, the published test counts a win for both. So it may pass a "
        "judge that the table above sends to triage, which is granted the margin alone."
    )
    return [Paragraph(what), Bullets([f"{judge} {alt_test_note(found)}" for judge, found in tested])]


def alt_test_note(found: AltTestEntry) -> str:
    """What the test comes to for one judge."""
    left_out = "; ".join(f"{rater}: {why}" for rater, why in found.left_out.items())
    if found.reason is not None:
        return f"is not tested, {found.reason}{f' ({left_out})' if left_out else ''}."
    tested = len(found.nearer)
    passes = ", ".join(str(len(raters)) for raters in found.rejected.values())
    few = "" if tested > _FEW_RATERS else " (three raters or more are advised)"
    lost = f" Left out: {left_out}." if left_out else ""
    near = [
        numbers.percent(sum(shares) / tested)
        for shares in zip(*((one.judge, one.human, one.tie) for one in found.nearer.values()), strict=True)
    ]
    granted = ", ".join(f"{100.0 * float(epsilon):g}" for epsilon in found.winning_rate)
    return (
        f"passes beside {passes} of {numbers.count_of(tested, 'rater')}{few} where {granted} points are granted: it is "
        f"nearer on {near[0]} of the items, the rater on {near[1]}, neither on {near[2]}.{lost}"
    )


def ceiling_notes(result: AgreementResult) -> Iterator[str]:
    """Who stands in no ceiling, and why; that there is none."""
    if not result.raters:
        yield "No human ceiling: no item has labels of two raters."
    few = [one.judge for one in result.raters if not one.enough]
    if few:
        whom = f"{', '.join(few)} {'shares' if len(few) == 1 else 'share'}"
        yield f"{whom} fewer than {MIN_SHARED} items with another rater: in the table of every metric alone."
    yield from (f"{rater} is in no ceiling: {why}." for rater, why in result.tie_breakers.items())
