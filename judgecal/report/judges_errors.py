"""Where judges err, and the diagnostics: errors, small pictures, parts, noise, cost, every metric."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from judgecal.experiment.result import Entry, JudgeEntry, PartEntry, Retest
from judgecal.experiment.verdicts import Confusion, JudgeShape
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.charts import Frame, Mark
from judgecal.report.document import (
    Block,
    Bullets,
    Cell,
    Folded,
    Gallery,
    Glossary,
    Heading,
    Paragraph,
    Picture,
    Section,
    Table,
    table,
)
from judgecal.report.intervals import of_metric
from judgecal.report.wording import glossary, sentence, sentences
from judgecal.selection.decision import JudgesDecision
from judgecal.stats.breakdown import Part
from judgecal.stats.metrics import digits_of
from judgecal.stats.retest import Repeats

_JUDGES = 3  # judges whose repeats are told in sentences
_WIDTH = 270  # pixels of a small picture
_LOSS = ("loss", "Agreement of the best judge less that of this one, in points of 100.")
_MARGIN = ("margin", "The loss that is allowed for a lower price.")
_UNSCORED = ("unscored", "No verdict could be had or read. It is never 0 and never dropped.")


# --- errors


def errors_section(decision: JudgesDecision) -> Section:
    """Errors at the pass mark, and small pictures of where verdicts lie; judges that are alike share one."""
    shapes, scale = {shape.judge: shape for shape in decision.shapes}, decision.result.gold.scale
    counts = [(judge, shape.at_cut) for judge, shape in shapes.items() if shape.at_cut is not None]
    raw = [(judge, shape.raw_at_cut) for judge, shape in shapes.items() if shape.raw_at_cut is not None]
    blocks: list[Block] = []
    if counts:
        blocks.append(_at_cut(counts, decision.chosen))
    elif scale != "nominal":  # words have none, whatever the card says
        no_mark = "The labels have no pass mark, so no verdict is a false pass: pass_at in the card sets one."
        blocks.append(Paragraph(no_mark))
    distinct = [
        (names[0] if len(names) == 1 else f"{', '.join(names)}: the same verdicts", shapes[names[0]])
        for names in decision.alike
        if names[0] in shapes
    ]
    classed = [_confusion(name, shape.confusion) for name, shape in distinct if shape.confusion]
    if classed:
        what = (
            "Counts of judgements, and their share of what people say, on all items of the headline; what "
            "lies off the diagonal are errors."
        )
        title = "Confusion: what people say, and what the judge says"
        blocks += [Gallery(classed, title=title), Paragraph(what)]
    graded = [_calibration(name, shape) for name, shape in distinct if shape.calibration]
    if graded and scale != "binary":
        what = (
            "Points: the people's mean label of raw verdicts of about one height, with a 95% interval by "
            "question and the number of judgements above. In colour: the map from verdict to label, as "
            "fitted on all of these items; the lock carries that of train and dev. It gives the middle label "
            "where the thirds of the scale count alike, so it may lie off the means. Dotted: verdicts that "
            "need no map."
        )
        blocks += [Gallery(graded, title="Mean label against raw verdict"), Paragraph(what)]
    if raw:
        what = (
            "As the judges gave them, cut at the pass mark and not at each judge's own cut. These decide "
            "nothing."
        )
        blocks.append(Folded("Errors of the raw verdicts", [_at_cut(raw, decision.chosen), Paragraph(what)]))
    once = (
        " The verdicts are calibrated, each by a map that was fitted on other questions; a lock carries the "
        "map of train and dev."
    )
    caption = (
        "Serves the question what a wrong verdict costs you. A false pass lets a bad answer through and "
        "nobody looks again; a false fail costs a second look. Some of both will be errors of the "
        f"labels.{once * any(shape.mapped for shape in decision.shapes)}"
    )
    return Section("errors", "Where people and judges part", caption, blocks)


def _at_cut(counts: Sequence[tuple[str, Part]], chosen: str | None) -> Table:
    """Errors at the pass mark; rates are of what people say."""

    def share(n: int | None, of: int | None, *, strong: bool = False) -> Cell:
        rate = (n or 0) / of if of else None
        return Cell(f"{numbers.count(n)} of {numbers.count(of)} ({numbers.percent(rate)})", rate, strong)

    return table(
        counts,
        {
            "judge": lambda row: row[0],
            "false passes, of people's fails": lambda row: share(
                row[1].false_passes, row[1].fails, strong=True
            ),
            "false fails, of people's passes": lambda row: share(row[1].false_fails, row[1].passes),
        },
        chosen=chosen,
    )


def _confusion(name: str, confusion: Confusion) -> Table:
    classes, width = confusion.classes, len(confusion.counts[0]) if confusion.counts else 0
    rows: list[list[str | Cell]] = []
    for place, (label, counts) in enumerate(zip(classes, confusion.counts, strict=True)):
        shares = [n / sum(counts) if sum(counts) else None for n in counts]
        cells = [
            Cell(f"{numbers.count(n)} ({numbers.percent(share)})", share, strong=at == place)
            for at, (n, share) in enumerate(zip(counts, shares, strict=True))
        ]
        rows.append([label, *cells])
    header = ["people ↓ judge →", *classes, *["no verdict"] * (width - len(classes))]
    return Table(header, rows, title=name)


def _calibration(name: str, shape: JudgeShape) -> Picture:
    steps = ", ".join(f"from {at:g} on {label:g}" for at, label in shape.calibration_map)
    bins = table(
        shape.calibration,
        {
            "mean raw verdict": lambda part: f"{part.verdict:.3g}",
            "people's mean label": lambda part: f"{part.label:.3g}",
            "95% interval": lambda part: (
                numbers.DASH
                if part.low is None or part.high is None
                else f"{part.low:.3g} to {part.high:.3g}"
            ),
            "judgements": lambda part: numbers.count(part.n),
        },
    )
    says = f"{name}, raw verdict to label: {steps or 'no map'}"
    return Picture(lambda: _drawn(shape), says, title=name, numbers=bins)


def _drawn(shape: JudgeShape) -> str:
    ends = (shape.low, shape.high)
    frame = Frame(_WIDTH, ends, ends, ("raw verdict", ""), left=34.0, top=18.0, tall=160.0)
    marks = [Mark("line", frame.left, frame.bottom, frame.right, frame.top, tone="equal")]
    until = [*(at for at, _ in shape.calibration_map[1:]), shape.high]
    steps = "".join(
        f"{'L' if number else 'M'}{frame.x(at)} {frame.y(label)}H{frame.x(end)}"
        for number, ((at, label), end) in enumerate(zip(shape.calibration_map, until, strict=False))
    )
    if steps:
        marks.append(Mark("path", text=steps, tone="map"))
    for part in shape.calibration:
        x = frame.x(part.verdict)
        if part.low is not None and part.high is not None:
            marks.append(Mark("line", x, frame.y(part.low), x, frame.y(part.high)))
        marks.append(Mark("dot", x, frame.y(part.label)))
        marks.append(Mark("text", x, frame.top - 4.0, text=numbers.count(part.n)))
    return frame.drawn(marks)


# --- diagnostics


def diagnostics(decision: JudgesDecision) -> Section:
    """Its parts in the order in which they are asked for."""
    judges = decision.result.judges
    words = glossary(
        _LOSS,
        _MARGIN,
        "interval",
        "floor",
        "like for like",
        "false pass, false fail",
        _UNSCORED,
        "flip rate",
        "look",
    )
    cost = table(
        judges,
        {
            "judge": lambda judge: judge.judge,
            "USD per 1,000": lambda judge: numbers.money(judge.usd_per_1k),
            "latency p50": lambda judge: numbers.seconds(judge.latency_s.p50),
            "p95": lambda judge: numbers.seconds(judge.latency_s.p95),
            "prompt tokens": lambda judge: numbers.count(judge.tokens.prompt),
            "completion tokens": lambda judge: numbers.count(judge.tokens.completion),
        },
        title="Cost and latency",
    )
    blocks: list[Block] = [
        *_by_part("tag", judges, [judge.by_tag for judge in judges]),
        *_by_part("system", judges, [judge.by_system for judge in judges]),
        *_noise(decision),
        *_unscored(judges),
        cost,
        *_metrics(decision),
        Folded("Words on this page", [Glossary(words)]),
    ]
    caption = (
        "Serves the next step: what to mend in the prompt, what to label next, whether repeats pay. Nothing "
        "here chooses a judge: of many small parts some are bad by chance."
    )
    return Section("diagnostics", "Diagnostics", caption, blocks)


def _by_part(kind: str, judges: Sequence[JudgeEntry], parts: Sequence[dict[str, PartEntry]]) -> list[Block]:
    """Failures as counts, a column a judge, the worst part first; one system is the whole table again."""
    names = {name: None for by_name in parts for name in by_name}
    if not names or (kind == "system" and len(names) < 2):
        return []
    rows = [(name, [_failures(by_name.get(name)) for by_name in parts]) for name in names]
    rows.sort(key=lambda row: -max(cell.share or 0.0 for cell in row[1]))
    marked = any(part.passes is not None for by_name in parts for part in by_name.values())
    what = (
        "False passes + false fails, of the judgements with a verdict. Counts, no tests."
        if marked
        else "Agreement of the part; there is no pass mark to count failures at. No tests."
    )
    header = [kind, *(judge.judge for judge in judges)]
    return [
        Table(header, [[name, *cells] for name, cells in rows], title=f"Failures by {kind}"),
        Paragraph(what),
    ]


def _failures(part: PartEntry | None) -> Cell:
    if part is None:
        return Cell(numbers.DASH)
    if part.passes is None:
        value = part.value.value
        return Cell(f"{numbers.plain(value)} (n {part.n})", None if value is None else 1.0 - value)
    passes, fails = part.false_passes or 0, part.false_fails or 0
    counts = f"{numbers.count(passes)} + {numbers.count(fails)} of {numbers.count(part.n)}"
    return Cell(counts, (passes + fails) / part.n if part.n else None)


def _noise(decision: JudgesDecision) -> list[Block]:
    repeated = [(judge.judge, judge.retest) for judge in decision.result.judges if judge.retest is not None]
    title = "Noise against the margin"
    if not repeated:
        once = "Each item was judged once, so the judges' own noise is not known."
        return [Heading(title), Paragraph(f"{once} With --repeats 3 it stands here beside the margin.")]
    repeats = table(
        repeated,
        {
            "judge": lambda row: row[0],
            "repeats": lambda row: str(row[1].repeats),
            "flip rate": lambda row: numbers.estimate(row[1].flip_rate),
            "within-item SD, of the range": lambda row: numbers.estimate(row[1].within_item_sd_share),
            "two runs differ by, points": lambda row: _swing(row[1].expected),
            "margin": lambda row: f"{100.0 * decision.margin:g}",
        },
        title=title,
    )
    notes = sentences(
        *(retest_notes(judge, retest) for judge, retest in repeated[:_JUDGES]),
        "Repeatability is no accuracy: a judge that errs alike every time repeats itself perfectly.",
    )
    return [repeats, Bullets(notes)]


def _swing(expected: Sequence[Repeats]) -> str:
    """Within what 95% of pairs of runs differ by noise: 1.96 sqrt(2) times the noise of one run's mean."""
    first, last = expected[0], expected[-1]
    if first.error is None or last.error is None:
        return numbers.DASH
    noise = max(0.0, first.error**2 - last.error**2) / (1.0 - 1.0 / last.repeats)
    return numbers.points(1.96 * (2.0 * noise) ** 0.5)


def retest_notes(judge: str, retest: Retest) -> Iterator[str]:
    """How a judge repeats itself, and how many repeats pay, in sentences."""
    known, expected = retest.within_item_sd.value is not None, retest.expected
    digits = digits_of("mae", retest.unit) if known else 3
    flips = f", flip rate {numbers.estimate(retest.flip_rate)}" if retest.flip_rate else ""
    yield (
        f"{judge} over {retest.repeats} repeats: the same verdict in "
        f"{numbers.estimate(retest.exact_agreement)} of the pairs, unanimous on "
        f"{numbers.estimate(retest.unanimous)} of {retest.n_items} items{flips}."
    )
    if known:
        share = numbers.plain(retest.within_item_sd_share.value)
        sd = f"{numbers.estimate(retest.within_item_sd, digits)} ({share} of the range)"
        yield f"{judge}: within-item SD {sd}, ICC(1,1) {numbers.estimate(retest.icc_1_1)}."
    if retest.exact_agreement.low is None and retest.exact_agreement.reason:
        yield f"{judge}, repeats: {retest.exact_agreement.reason}."
    yield sentence(f"{judge}: {retest.why}")
    means = ", ".join(numbers.plain(repeats.sd, digits) for repeats in expected)
    rates = ", ".join(numbers.plain(repeats.flip_rate) for repeats in expected)
    more = sentences(
        bool(expected[0].sd) and f"SD of their mean {means}",
        bool(expected[0].flip_rate) and f"flip rate of their majority {rates}",
    )
    if more:  # one call an item is not already perfectly repeatable
        calls = ", ".join(str(repeats.repeats) for repeats in expected)
        yield f"{judge}, expected of {calls} calls an item: {'; '.join(more)}."
    if retest.all_cached:
        yield (
            f"{judge}: every reply came from the store, where each repeat is a call of its own, made before."
        )


def _unscored(judges: Sequence[JudgeEntry]) -> list[Block]:
    lacking = [judge for judge in judges if judge.n_unscored]
    if not lacking:
        return [Heading("Unscored"), Paragraph("Every judgement has a verdict.")]
    unscored = table(
        lacking,
        {
            "judge": lambda judge: judge.judge,
            "unscored": lambda judge: (
                f"{numbers.count(judge.n_unscored)} of {numbers.count(judge.n_expected)}"
            ),
            "why": lambda judge: ", ".join(
                f"{kind} {numbers.count(n)}" for kind, n in judge.unscored.items()
            ),
        },
        title="Unscored",
    )
    what = "Wherever judges are ranked an unscored item counts as the verdict farthest from its label."
    return [unscored, Paragraph(what)]


def _metrics(decision: JudgesDecision) -> list[Block]:
    """Calibrated and raw apart; in percent but for coefficients and what has the unit of the labels."""
    title, result = "Every metric of every judge, the floor and the raters", decision.result
    scale = result.gold.scale
    raw = Folded(title, [_of_each(decision, lambda entry: (entry.agreement, entry.unit))])
    if not any(judge.calibrated for judge in result.judges):
        return [raw]
    mapped = _of_each(
        decision,
        lambda entry: (entry.calibrated, scale) if entry.calibrated else (entry.as_wrong, entry.unit),
    )
    what = Paragraph(f"An unscored item counts as {result.gold.unscored_counts_as}.")
    return [
        Folded(f"{title}, once calibrated", [mapped, what]),
        dataclasses.replace(raw, title=f"{title}, of raw verdicts"),
    ]


def _of_each(
    decision: JudgesDecision, metrics_of: Callable[[Entry], tuple[Mapping[str, Estimate], str]]
) -> Table:
    """`metrics_of`: an entry's metrics, and the scale that they are in units of."""
    result = decision.result
    names = list(dict.fromkeys(name for judge in result.judges for name in metrics_of(judge)[0]))

    def row(entry: Entry) -> list[str]:
        metrics, unit = metrics_of(entry)
        values = [of_metric(metrics.get(name), name, unit, on=result.gold.scale) for name in names]
        return [entry.judge, f"{numbers.count(entry.n)}/{numbers.count(entry.n_expected)}", *values]

    rows: list[list[str]] = [*map(row, result.judges), ["floor"], *map(row, result.floor)]
    for rater in result.raters:
        rows.append([f"{rater.judge} against each other rater, and the judges against the same labels"])
        rows += map(row, (rater, *rater.judges))
    return Table(["", "n", *names], rows)
