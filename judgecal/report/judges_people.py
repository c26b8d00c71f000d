"""Judges beside people: may one stand in for a person, and the alternative annotator test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from judgecal.experiment.result import AgreementResult, AltTestEntry, JudgeEntry
from judgecal.report import numbers
from judgecal.report.document import Block, Bullets, Paragraph, Section, Table, table
from judgecal.report.wording import sentences
from judgecal.selection.decision import JudgesDecision
from judgecal.stats.alt_test import Nearer
from judgecal.stats.metrics import metric_facts
from judgecal.stats.stand_in import MIN_SHARED, Beside, StandIn

_FEW_RATERS = 2
_MAY = {True: "may stand in", False: "to triage", None: "cannot tell"}


def people_section(decision: JudgesDecision) -> Section | None:
    """Each judge beside each rater, both against the other raters; None where no two raters share an item."""
    result, margin = decision.result, decision.margin
    judges = [(judge, judge.stand_in) for judge in result.judges if judge.stand_in is not None]
    if not result.raters or not judges:
        return None
    worst = {judge.judge: _at_worst(stand_in) for judge, stand_in in judges}
    decisions = table(
        judges,
        {
            "judge": lambda row: row[0].judge,
            "points below, at worst": lambda row: worst[row[0].judge][0],
            "beside": lambda row: worst[row[0].judge][1],
            "items": lambda row: worst[row[0].judge][2],
            "decision": lambda row: _MAY[row[1].shown(margin)],
        },
        chosen=decision.chosen,
    )
    reasons = sentences(
        (_why_not(judge.judge, stand_in, margin) for judge, stand_in in judges),
        (f"{rater}: {why}." for rater, why in judges[0][1].left_out.items()),
    )
    blocks: list[Block] = [decisions, Bullets(reasons), _by_rater(decision, judges)]
    with_mean = [(judge.judge, judge.with_mean) for judge in result.judges if judge.with_mean]
    if with_mean:  # the gold label is another than the mean
        names = list(with_mean[0][1])
        rows = [[judge, *(numbers.estimate(mean[name]) for name in names)] for judge, mean in with_mean]
        what = "Raw verdicts against the mean of each item's raters"
        what += "; everywhere else the gold label is their median"
        blocks.append(Table(["judge", *names], rows, title=what))
    caption = (
        "Serves the question whether a judge can take a person's place: it and a rater are held against the "
        "same labels of the other raters, on all items that they share, those without a gold label too. It "
        f"may stand in where it is shown to lie less than {100.0 * margin:g} points of {decision.metric} "
        f"below every rater (each bound one-sided, at {judges[0][1].level:.4g}, so that all judges here "
        "together are wrongly said to in at most 5%); else it is good to triage: to sort what a person then "
        "reads."
    )
    return Section("people", "In a person's place", caption, [*blocks, *_alt_tests(result)])


def _at_worst(stand_in: StandIn) -> tuple[str, str, str]:
    """How far below which rater a judge may lie at worst, and on how many items; dashes where not known."""
    bounds = [
        (line.at_worst, rater, line.n) for rater, line in stand_in.raters.items() if line.at_worst is not None
    ]
    if stand_in.at_worst is None or not bounds:
        return numbers.DASH, numbers.DASH, numbers.DASH
    worst, rater, n = min(bounds)
    return numbers.points(-worst), rater, numbers.count(n)


def _why_not(judge: str, stand_in: StandIn, margin: float) -> str:
    if stand_in.reason:
        return f"Cannot tell whether {judge} may stand in: {stand_in.reason}."
    if not stand_in.shown(margin) and stand_in.at_worst is not None and stand_in.at_worst > -margin:
        return f"{judge} is not shown to agree with every person better than a constant does."
    return ""


class _Line(NamedTuple):
    """A judge beside a rater."""

    judge: str
    rater: str
    beside: Beside
    raw: float | None  # the judge's own number where verdicts were calibrated
    nearer: Nearer | None  # who is nearer to the others, item by item


def _by_rater(decision: JudgesDecision, judges: list[tuple[JudgeEntry, StandIn]]) -> Table:
    metric = judges[0][1].metric
    raw = {
        (judge.judge, rater.judge): judge.as_wrong[metric].value
        for rater in decision.result.raters
        for judge in rater.judges
        if judge.calibrated
    }
    lines = [
        _Line(
            judge.judge,
            rater,
            beside,
            raw.get((judge.judge, rater)),
            judge.alt_test.nearer.get(rater) if judge.alt_test else None,
        )
        for judge, stand_in in judges
        for rater, beside in stand_in.raters.items()
    ]
    once = ", once calibrated (a rater as it is, where that is better)" * metric_facts(metric).calibrated
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
    rows = []
    for line in lines:
        beside, nearer = line.beside, line.nearer
        shares = [None, None, None] if nearer is None else [nearer.judge, nearer.human, nearer.tie]
        points = [beside.judge, *[line.raw] * bool(raw), beside.person, beside.difference, beside.at_worst]
        items = f"{numbers.count(beside.n)}/{numbers.count(beside.n_expected)}"
        near = [numbers.percent(share, 1) for share in shares]
        rows.append([line.judge, line.rater, items, *map(numbers.points, points), *near])
    title = f"Judge and rater by {metric}{once}, in %, both against the other raters"
    return Table([*header, "judge nearer", "rater nearer", "alike"], rows, left=2, title=title)


def _alt_tests(result: AgreementResult) -> list[Block]:
    """What the test grants, once; then a sentence a judge."""
    tested = [(judge.judge, judge.alt_test) for judge in result.judges if judge.alt_test is not None]
    if not tested:
        return []
    points = [f"{100.0 * float(epsilon):g}" for epsilon in tested[0][1].winning_rate]
    granted = f"{', '.join(points[:-1])} or {points[-1]}"
    what = (
        "The alternative annotator test, here of verdicts once calibrated where labels have an order, "
        f"grants a judge a head start, epsilon, for costing less than a person: with {granted} points it "
        "passes beside a rater who is nearer to the other people on up to so many more items in a hundred "
        "than it is. Where both are as near, the published test counts a win for both. So it may pass a "
        "judge that the table above sends to triage, which is granted the margin alone."
    )
    return [Paragraph(what), Bullets([f"{judge} {alt_test_note(test)}" for judge, test in tested])]


def alt_test_note(test: AltTestEntry) -> str:
    """What the test comes to for one judge."""
    left_out = "; ".join(f"{rater}: {why}" for rater, why in test.left_out.items())
    if test.reason is not None:
        return f"is not tested, {test.reason}{f' ({left_out})' if left_out else ''}."
    n = len(test.nearer)
    passes = ", ".join(str(len(raters)) for raters in test.rejected.values())
    few = "" if n > _FEW_RATERS else " (three raters or more are advised)"
    lost = f" Left out: {left_out}." if left_out else ""
    shares = zip(*((near.judge, near.human, near.tie) for near in test.nearer.values()), strict=True)
    judge, rater, neither = (numbers.percent(sum(each) / n) for each in shares)
    granted = ", ".join(f"{100.0 * float(epsilon):g}" for epsilon in test.winning_rate)
    return (
        f"passes beside {passes} of {numbers.count_of(n, 'rater')}{few} where {granted} points are granted: "
        f"it is nearer on {judge} of the items, the rater on {rater}, neither on {neither}.{lost}"
    )


def ceiling_notes(result: AgreementResult) -> Iterator[str]:
    """Who stands in no ceiling, and why; that there is none."""
    few = [rater.judge for rater in result.raters if not rater.enough]
    if not result.raters:
        yield "No human ceiling: no item has labels of two raters."
    if few:
        whom = f"{', '.join(few)} {'shares' if len(few) == 1 else 'share'}"
        yield f"{whom} fewer than {MIN_SHARED} items with another rater: in the table of every metric alone."
    yield from (f"{rater} is in no ceiling: {why}." for rater, why in result.tie_breakers.items())
