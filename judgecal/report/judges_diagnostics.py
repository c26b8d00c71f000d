"""The last section of a document about judges: where they fail, their noise, their cost, and what words
mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from judgecal.experiment.result import Entry, JudgeEntry, PartEntry, Retest
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Bullets,
    Cell,
    Folded,
    Glossary,
    Heading,
    Paragraph,
    Section,
    Table,
)
from judgecal.report.intervals import of_metric
from judgecal.report.wording import sentence
from judgecal.selection.standing import Standing
from judgecal.stats.metrics import digits_of
from judgecal.stats.retest import Repeats

_JUDGES = 3  # judges whose repeats are told in sentences
_WORDS = {
    "loss": "Agreement of the best judge less that of this one, in points of 100.",
    "margin": "The loss that is allowed for a lower price.",
    "interval": "By question: items of one question are not independent. Its level stands in the heading.",
    "floor": "What a judge must beat: the best constant, and the embedded model, which is free and compares words.",
    "like for like": "A person against each other person, item by item, and each judge against the same labels.",
    "false pass, false fail": "A verdict that passes what people fail; one that fails what people pass.",
    "unscored": "No verdict could be had or read. It is never 0 and never dropped.",
    "flip rate": "How often two calls on one item fall on different sides of the pass mark.",
    "look": "One use of the test labels; the more decisions, the wider the intervals.",
}


def diagnostics(found: Standing) -> Section:
    """Its parts in the order in which they are asked for."""
    judges = found.result.judges
    blocks: list[Block] = [
        *_by_part("tag", judges, [one.by_tag for one in judges]),
        *_by_part("system", judges, [one.by_system for one in judges]),
        *_noise(found),
        *_unscored(judges),
        _cost(judges),
        *_metrics(found),
        Folded("Words on this page", [Glossary(list(_WORDS.items()))]),
    ]
    caption = (
        "Serves the next step: what to mend in the prompt, what to label next, whether repeats pay. Nothing here "
        "chooses a judge: of many small parts some are bad by chance."
    )
    return Section("diagnostics", "Diagnostics", caption, blocks)


def _by_part(kind: str, judges: Sequence[JudgeEntry], parts: Sequence[dict[str, PartEntry]]) -> list[Block]:
    """Failures as counts, a column a judge, the worst part first; one system is the whole table again."""
    names = {name: None for own in parts for name in own}
    if not names or (kind == "system" and len(names) < 2):
        return []
    cells = {name: [_failures(own.get(name)) for own in parts] for name in names}
    worst = sorted(names, key=lambda name: -max(cell.share or 0.0 for cell in cells[name]))
    marked = any(part.passes is not None for own in parts for part in own.values())
    what = (
        "False passes + false fails, of the judgements with a verdict. Counts, no tests."
        if marked
        else "Agreement of the part; there is no pass mark to count failures at. No tests."
    )
    header = [kind, *(one.judge for one in judges)]
    rows: list[list[str | Cell]] = [[name, *cells[name]] for name in worst]
    return [Table(header, rows, title=f"Failures by {kind}"), Paragraph(what)]


def _failures(part: PartEntry | None) -> Cell:
    if part is None:
        return Cell(numbers.DASH)
    if part.passes is None:
        value = part.value.value
        return Cell(f"{numbers.plain(value)} (n {part.n})", None if value is None else 1.0 - value)
    passes, fails = part.false_passes or 0, part.false_fails or 0
    counts = [numbers.count(one) for one in (passes, fails, part.n)]
    return Cell(f"{counts[0]} + {counts[1]} of {counts[2]}", (passes + fails) / part.n if part.n else None)


def _noise(found: Standing) -> list[Block]:
    repeated = [(one.judge, one.retest) for one in found.result.judges if one.retest is not None]
    title = "Noise against the margin"
    if not repeated:
        once = "Each item was judged once, so the judges' own noise is not known."
        return [Heading(title), Paragraph(f"{once} With --repeats 3 it stands here beside the margin.")]
    header = ["judge", "repeats", "flip rate", "within-item SD, of the range"]
    header += ["two runs differ by, points", "margin"]
    rows = [
        [
            judge,
            str(again.repeats),
            numbers.estimate(again.flip_rate),
            numbers.estimate(again.within_item_sd_share),
            _swing(again.expected),
            f"{100.0 * found.margin:g}",
        ]
        for judge, again in repeated
    ]
    told = [line for judge, again in repeated[:_JUDGES] for line in retest_notes(judge, again)]
    told.append("Repeatability is no accuracy: a judge that errs alike every time repeats itself perfectly.")
    return [Table(header, rows, title=title), Bullets(told)]


def _swing(expected: Sequence[Repeats]) -> str:
    """Within what 95% of pairs of runs would differ by noise alone: 1.96 sqrt(2) times the noise of one run's
    mean."""
    first, last = expected[0], expected[-1]
    if first.error is None or last.error is None:
        return numbers.DASH
    noise = max(0.0, first.error**2 - last.error**2) / (1.0 - 1.0 / last.repeats)
    return numbers.points(1.96 * (2.0 * noise) ** 0.5)


def retest_notes(judge: str, found: Retest) -> Iterator[str]:
    """How a judge repeats itself, and how many repeats pay, in sentences."""
    digits = digits_of("mae", found.unit) if found.within_item_sd.value is not None else 3
    parts = [f"the same verdict in {numbers.estimate(found.exact_agreement)} of the pairs"]
    parts += [f"unanimous on {numbers.estimate(found.unanimous)} of {found.n_items} items"]
    parts += [f"flip rate {numbers.estimate(found.flip_rate)}"] if found.flip_rate else []
    yield f"{judge} over {found.repeats} repeats: {', '.join(parts)}."
    if found.within_item_sd.value is not None:
        share = numbers.plain(found.within_item_sd_share.value)
        sd = f"{numbers.estimate(found.within_item_sd, digits)} ({share} of the range)"
        yield f"{judge}: within-item SD {sd}, ICC(1,1) {numbers.estimate(found.icc_1_1)}."
    if found.exact_agreement.low is None and found.exact_agreement.reason:
        yield f"{judge}, repeats: {found.exact_agreement.reason}."
    yield sentence(f"{judge}: {found.why}")
    yield from _expected(judge, found.expected, digits)
    if found.all_cached:
        yield f"{judge}: every reply came from the store, where each repeat is a call of its own, made before."


def _expected(judge: str, expected: Sequence[Repeats], digits: int) -> Iterator[str]:
    """What more calls an item come to, where one call is not already perfectly repeatable."""
    told = []
    if expected[0].sd:
        told.append(f"SD of their mean {', '.join(numbers.plain(one.sd, digits) for one in expected)}")
    if expected[0].flip_rate:
        rates = ", ".join(numbers.plain(one.flip_rate) for one in expected)
        told.append(f"flip rate of their majority {rates}")
    if told:
        calls = ", ".join(str(one.repeats) for one in expected)
        yield f"{judge}, expected of {calls} calls an item: {'; '.join(told)}."


def _unscored(judges: Sequence[JudgeEntry]) -> list[Block]:
    lacking = [one for one in judges if one.n_unscored]
    if not lacking:
        return [Heading("Unscored"), Paragraph("Every judgement has a verdict.")]
    rows = [
        [
            one.judge,
            f"{numbers.count(one.n_unscored)} of {numbers.count(one.n_expected)}",
            ", ".join(f"{kind} {numbers.count(n)}" for kind, n in one.unscored.items()),
        ]
        for one in lacking
    ]
    what = "Wherever judges are ranked an unscored item counts as the verdict farthest from its label."
    return [Table(["judge", "unscored", "why"], rows, title="Unscored"), Paragraph(what)]


def _cost(judges: Sequence[JudgeEntry]) -> Table:
    header = ["judge", "USD per 1,000", "latency p50", "p95", "prompt tokens", "completion tokens"]
    rows = [
        [
            one.judge,
            numbers.money(one.usd_per_1k),
            numbers.seconds(one.latency_s.p50),
            numbers.seconds(one.latency_s.p95),
            numbers.count(one.tokens.prompt),
            numbers.count(one.tokens.completion),
        ]
        for one in judges
    ]
    return Table(header, rows, title="Cost and latency")


def _metrics(found: Standing) -> list[Block]:
    """All of it, calibrated and raw apart; in percent but for coefficients and what has the unit of the
    labels."""
    title, result = "Every metric of every judge, the floor and the raters", found.result
    scale = result.gold.scale
    raw = Folded(title, [_of_each(found, lambda one: (one.agreement, one.unit))])
    if not any(one.calibrated for one in result.judges):
        return [raw]
    return [
        Folded(f"{title}, once calibrated", [
            _of_each(found, lambda one: (one.calibrated, scale) if one.calibrated else (one.as_wrong, one.unit)),
            Paragraph(f"An unscored item counts as {result.gold.unscored_counts_as}."),
        ]),
        dataclasses.replace(raw, title=f"{title}, of raw verdicts"),
    ]  # fmt: skip


def _of_each(found: Standing, numbers_of: Callable[[Entry], tuple[Mapping[str, Estimate], str]]) -> Table:
    """`numbers_of`: an entry's metrics, and the scale that they are in units of."""
    result = found.result
    names = list(dict.fromkeys(name for one in result.judges for name in numbers_of(one)[0]))

    def row(one: Entry) -> list[str]:
        own, unit = numbers_of(one)
        values = [of_metric(own.get(name), name, unit, on=result.gold.scale) for name in names]
        return [one.judge, f"{numbers.count(one.n)}/{numbers.count(one.n_expected)}", *values]

    rows: list[list[str]] = [*map(row, result.judges), ["floor"], *map(row, result.floor)]
    for rater in result.raters:
        rows.append([f"{rater.judge} against each other rater, and the judges against the same labels"])
        rows += map(row, (rater, *rater.judges))
    return Table(["", "n", *names], rows)
