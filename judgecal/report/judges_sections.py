"""Sections of the page about judges: where they err, whether one may stand in for a person, diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from judgecal.experiment.agreement import AgreementResult, Entry, JudgeEntry, SliceEntry
from judgecal.experiment.verdicts import Confusion, SliceTable
from judgecal.records import Estimate
from judgecal.report.charts import Axis, in_percent, in_points, interval_picture, metric_text, points_text
from judgecal.report.document import (
    Block,
    Bullets,
    Cell,
    Fact,
    Folded,
    Grid,
    Rung,
    Section,
    blocks_of,
    section,
    table,
)
from judgecal.report.wording import (
    DASH,
    count,
    count_of,
    difference,
    money,
    p_value,
    percent,
    points,
    seconds,
    sentences,
    signed,
)
from judgecal.scale import Scale
from judgecal.selection.decision import Evidence
from judgecal.stats.metrics import digits_of, metric_facts
from judgecal.stats.stand_in import MIN_SHARED, AltTest, StandIn

_FEW_RATERS = 2
_MAY = {True: "may stand in", False: "to triage", None: "cannot tell"}


# --- errors


def errors_section(evidence: Evidence) -> Section:
    """Return a Section on errors, from Evidence on judges: a confusion table a judge; of pairs the order."""
    shapes, scale = {shape.judge: shape for shape in evidence.shapes}, evidence.result.gold.scale
    gold = evidence.result.gold
    cut = shapes if scale == "binary" or (gold.pass_at is not None and scale != "nominal") else {}
    classed = [_confusion(shape.judge, shape.confusion) for shape in evidence.shapes if shape.confusion]
    once = (
        " The verdicts are calibrated, each by a map fitted on other questions; a lock carries the map "
        "of train and dev."
    )
    return section(
        "errors",
        "Where people and judges disagree",
        "What the wrong verdicts are. A bad answer that passes is never looked at again; a good one "
        "that fails costs a second look. Some of both will be errors in the "
        f"labels.{once * any(shape.mapped for shape in evidence.shapes)}",
        *_orders(evidence),
        not (cut and classed)
        and scale != "nominal"  # words have none, whatever the card says
        and "The labels have no pass mark, so no verdict can be a false pass: set pass_at in the card.",
        classed
        and [
            *classed,
            "Confusion: counts of judgements, and their share of what people say, on all items of the "
            "headline; everything off the diagonal is an error.",
        ],
    )


def _orders(evidence: Evidence) -> Sequence[Block]:
    """A line a judge of pairs: whether it matters to it which answer is shown first."""
    judges = [judge for judge in evidence.result.judges if judge.consistent]
    shown = table(
        judges,
        {
            "judge": lambda judge: judge.judge,
            "first place": lambda judge: points_text(judge.first_place, 0),
            "orders agree": lambda judge: points_text(judge.consistent, 0),
        },
        title="Both orders of a pair, in %",
    )
    first = "First place: its share of all verdicts but ties, 50 where it is of no account."
    return blocks_of(bool(judges) and (first, shown))


def _confusion(judge: str, confusion: Confusion) -> Grid:
    """Its cells filter the explorer."""
    classes = confusion.classes
    rows: list[list[str | Cell]] = []

    def marks(label: str, at: int) -> str:
        return f"person:{label}\nverdict:{judge} {[*classes, 'unscored'][at]}"

    for place, (label, counts) in enumerate(zip(classes, confusion.counts, strict=True)):
        shares = [n / sum(counts) if sum(counts) else None for n in counts]
        cells = [
            Cell(f"{count(n)} ({percent(share)})", at == place, share, show=marks(label, at) * (n > 0))
            for at, (n, share) in enumerate(zip(counts, shares, strict=True))
        ]
        rows.append([label, *cells])
    width = len(confusion.counts[0]) if confusion.counts else 0
    header = ["people ↓ judge →", *classes, *["no verdict"] * (width - len(classes))]
    return Grid(header, rows, title=judge)


# --- judges beside people


def people_section(evidence: Evidence) -> Section | None:
    """Return a Section of judges beside raters, from Evidence; None where raters share no item."""
    result, margin = evidence.result, evidence.margin
    judges = [(judge, judge.stand_in) for judge in result.judges if judge.stand_in is not None]
    if not result.raters or not judges:
        return None

    def at_worst(stand_in: StandIn) -> tuple[str, str, str]:
        """How far below which rater a judge may lie, and on how many items; dashes where not known."""
        raters = stand_in.raters.items()
        bounds = [(line.at_worst, rater, line.n) for rater, line in raters if line.at_worst is not None]
        if stand_in.at_worst is None or not bounds:
            return DASH, DASH, DASH
        worst, rater, n = min(bounds)
        return points(-worst), rater, count(n)

    def why_not(judge: str, stand_in: StandIn) -> str:
        if stand_in.reason:
            return f"Cannot tell whether {judge} may stand in: {stand_in.reason}."
        if not stand_in.shown(margin) and stand_in.at_worst is not None and stand_in.at_worst > -margin:
            return f"We could not show that {judge} agrees with every person better than a constant does."
        return ""

    decisions = table(
        judges,
        {
            "judge": lambda row: row[0].judge,
            "points below, at worst": lambda row: at_worst(row[1])[0],
            "beside": lambda row: at_worst(row[1])[1],
            "items": lambda row: at_worst(row[1])[2],
            "decision": lambda row: _MAY[row[1].shown(margin)],
        },
        chosen=evidence.chosen,
    )
    reasons = sentences(
        (why_not(judge.judge, stand_in) for judge, stand_in in judges),
        (f"{rater}: {why}." for rater, why in judges[0][1].left_out.items()),
    )
    return section(
        "people",
        "Can it replace a person?",
        "We compare the judge and a rater with the same labels of the other raters, on all items that "
        "they share, also those without a gold label. The judge may stand in for a person where it is "
        f"shown to lie less than {100.0 * margin:g} points of {evidence.metric} below every rater (each "
        f"bound one-sided, at {100 * judges[0][1].level:.4g}%, so that the chance to let any of the "
        "judges in by error is at most 5%). Else use it to triage: it sorts, and a person reads.",
        decisions,
        Bullets(reasons),
        _by_rater(evidence, judges),
        _alt_tests(result),
    )


def _by_rater(evidence: Evidence, judges: list[tuple[JudgeEntry, StandIn]]) -> Grid:
    """A line a judge and rater, both compared with the other raters."""
    metric = judges[0][1].metric
    raw = {
        (judge.judge, rater.judge): judge.as_wrong[metric].value
        for rater in evidence.result.raters
        for judge in rater.judges
        if judge.calibrated
    }
    rows = []
    for judge, stand_in in judges:
        for rater, beside in stand_in.raters.items():
            as_given = [raw.get((judge.judge, rater))] * bool(raw)
            numbers = [beside.judge, *as_given, beside.person, beside.difference, beside.at_worst]
            rows.append(
                [judge.judge, rater, f"{count(beside.n)}/{count(beside.n_expected)}", *map(points, numbers)]
            )
    once = ", once calibrated (a rater as it is, where that is better)" * metric_facts(metric).calibrated
    title = f"Judge and rater by {metric}{once}, in %, both compared with the other raters"
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
    return Grid(header, rows, left=2, title=title)


def _alt_tests(result: AgreementResult) -> list[Block]:
    """What the test grants, once; then a sentence a judge."""
    tested = [(judge.judge, judge.alt_test) for judge in result.judges if judge.alt_test is not None]
    if not tested:
        return []
    *first, last = (f"{100.0 * test.epsilon:g}" for test in tested[0][1])
    return blocks_of(
        "The alternative annotator test (of calibrated verdicts where labels have an order) gives a "
        f"judge an allowance, epsilon, for costing less than a person: with {', '.join(first)} or {last} "
        "points it wins beside a rater who is nearer to the other people on up to that many more items "
        "in a hundred, and it passes by winning beside half of the raters. Where both are equally near, "
        "the published test counts a win for both. So it may pass a judge that the table above sends to "
        "triage, where only the margin is allowed.",
        Bullets([f"{judge} {alt_test_note(tests)}" for judge, tests in tested]),
    )


def alt_test_note(tests: Sequence[AltTest]) -> str:
    """Write a sentence on a judge from its list of AltTests, each at a different allowance."""
    test = tests[0]
    left_out = "; ".join(f"{rater}: {why}" for rater, why in test.left_out.items())
    if test.reason is not None:
        return f"takes no alternative annotator test: {test.reason}{f' ({left_out})' if left_out else ''}."
    granted = [100.0 * test.epsilon for test in tests if test.passed]
    outcome = f"passes the alternative annotator test at an allowance of {min(granted, default=0.0):g} points"
    if not granted:
        most = max(100.0 * test.epsilon for test in tests)
        outcome = f"does not pass the alternative annotator test at any allowance up to {most:g} points"
    few = "" if len(test.nearer) > _FEW_RATERS else "; three raters or more are advised"
    lost = f" Left out: {left_out}." if left_out else ""
    return f"{outcome} ({count_of(len(test.nearer), 'rater')}{few}).{lost}"


def ceiling_notes(result: AgreementResult) -> Iterator[str]:
    """Yield texts on an AgreementResult's ceiling: raters left out of it, and why, or that it has none."""
    few = [rater.judge for rater in result.raters if not rater.enough]
    if not result.raters:
        yield "We cannot say how far people agree: no item has labels from two raters."
    if few:
        whom = f"{', '.join(few)} {'shares' if len(few) == 1 else 'share'}"
        yield (f"{whom} fewer than {MIN_SHARED} items with another rater: only the JSON has their numbers.")
    yield from (f"{rater} is left out: {why}." for rater, why in result.tie_breakers.items())


# --- diagnostics


def diagnostics(evidence: Evidence) -> Section:
    """Return a Section on cost, noise and metrics, from Evidence on judges."""
    judges = evidence.result.judges
    cost = table(
        judges,
        {
            "judge": lambda judge: judge.judge,
            "USD per 1,000": lambda judge: money(judge.usd_per_1k),
            "latency p50": lambda judge: seconds(judge.latency_s.p50),
            "p95": lambda judge: seconds(judge.latency_s.p95),
            "prompt tokens": lambda judge: count(judge.tokens.prompt),
            "completion tokens": lambda judge: count(judge.tokens.completion),
        },
        title="Cost and latency",
    )
    return section(
        "diagnostics",
        "Diagnostics",
        "What to fix in the prompt, what to label next, how far a judge repeats itself.",
        _noise(evidence),
        cost,
        _metrics(evidence),
    )


def _noise(evidence: Evidence) -> list[Block]:
    repeated = [(judge.judge, judge.retest) for judge in evidence.result.judges if judge.retest is not None]
    if not repeated:
        once = "Each item was judged once, so nobody knows how often a judge contradicts itself."
        return blocks_of(f"{once} With --repeats 3 you see its noise here beside the margin.")
    repeats = table(
        repeated,
        {
            "judge": lambda row: row[0],
            "repeats": lambda row: str(row[1].repeats),
            "same verdict": lambda row: in_percent(row[1].exact_agreement),
            "flip rate": lambda row: in_percent(row[1].flip_rate) if row[1].flip_rate else DASH,
            "margin": lambda row: f"{100.0 * evidence.margin:g}",
        },
        title="Noise against the margin (who repeats itself may still be wrong)",
    )
    notes = [
        f"{judge}, repeats: {retest.exact_agreement.reason}."
        for judge, retest in repeated
        if retest.exact_agreement.low is None and retest.exact_agreement.reason
    ]
    return [repeats, Bullets(notes)]


def _metrics(evidence: Evidence) -> list[Block]:
    """Calibrated and raw apart; in percent but for coefficients and what has the unit of the labels."""
    result, scale = evidence.result, evidence.result.gold.scale

    def of_each(metrics_of: Callable[[Entry], tuple[Mapping[str, Estimate], str]]) -> Grid:
        """`metrics_of`: an entry's metrics, and the scale that they are in units of."""
        names = list(dict.fromkeys(name for judge in result.judges for name in metrics_of(judge)[0]))

        def row(entry: Entry) -> list[str]:
            metrics, unit = metrics_of(entry)
            values = [metric_text(metrics.get(name), name, unit, on=scale) for name in names]
            return [entry.judge, f"{count(entry.n)}/{count(entry.n_expected)}", *values]

        return Grid(["", "n", *names], [*map(row, result.judges), ["floor"], *map(row, result.floor)])

    title = "Every metric of every judge and of the floor"
    mapped = any(judge.calibrated for judge in result.judges)
    raw = of_each(lambda entry: (entry.agreement, entry.unit))
    once = of_each(
        lambda entry: (entry.calibrated, scale) if entry.calibrated else (entry.as_wrong, entry.unit)
    )
    what = f"An item without a verdict counts as {result.gold.unscored_counts_as}."
    return blocks_of(
        mapped and Folded(f"{title}, once calibrated", blocks_of(once, what)),
        Folded(f"{title}{', of raw verdicts' * mapped}", [raw]),
    )


_DRAWN = 12  # lines of the picture; the table has all
_NAMES = {
    "answer length": ("answers of {} words", "{} words"),
    "refusal": ("answers that refuse", "refusals"),
    "digits": ("answers with digits", "with digits"),
    "system": ("answers of {}", "{}"),
    "tag": ('answers tagged "{}"', "{}"),
}
"""Trait -> its items in a sentence, and at a line."""


def slice_name(entry: SliceEntry, *, short: bool = False) -> str:
    """Return the items of a SliceEntry in words, a text to stand behind `on`."""
    return _NAMES[entry.trait][short].format(entry.value)


def standing_out(slices: SliceTable, scale: Scale) -> list[SliceEntry]:
    """Return a list of SliceEntries that stand out, from a SliceTable and a Scale, worst first."""

    def worse(entry: SliceEntry) -> float:
        more = (entry.error.value or 0.0) - entry.rest
        return abs(more) if scale.graded else more

    return sorted((entry for entry in slices.entries if entry.stands_out), key=worse, reverse=True)


def slice_facts(slices: SliceTable | None, scale: Scale) -> Iterator[Fact]:
    """Yield a Fact on the slice that stands out most, from a SliceTable (or None) and a Scale."""
    for entry in standing_out(slices, scale)[:1] if slices else ():
        if scale.graded:
            digits = digits_of("mae", scale)
            elsewhere = f"{signed(entry.rest, digits)} elsewhere"
            what = f"verdict less label on {slice_name(entry)}; {elsewhere}"
            yield Fact(signed(entry.error.value, digits), what)
        else:
            what = f"wrong on {slice_name(entry)}; {percent(entry.rest)} elsewhere"
            yield Fact(percent(entry.error.value), what)


def slices_section(slices: SliceTable | None, scale: Scale) -> Section | None:
    """Return a Section on slices, from a SliceTable (or None) and a Scale; None without a slice."""
    if slices is None or not slices.entries:
        return None
    entries, digits = slices.entries, digits_of("mae", scale) if scale.graded else 0

    def line(entry: SliceEntry) -> str:
        return slice_name(entry, short=True)

    def wrong(error: Estimate) -> str:
        if scale.graded:
            return difference(error, digits)
        return f"{count(round((error.value or 0.0) * error.n))} of {count(error.n)}"

    def drawn(name: str, error: Estimate, *, strong: bool = False, show: str = "") -> Rung:
        value = error if scale.graded else in_points(error)
        return Rung(name, value, wrong(error), strong, hollow=not show, show=show)

    shown = sorted(entries, key=lambda entry: (not entry.stands_out, entry.p_value))[:_DRAWN]
    judge, outliers = entries[0].judge, standing_out(slices, scale)
    rows = [
        drawn(line(entry), entry.error, strong=entry.stands_out, show=f"{entry.mark}\nwrong:{judge}")
        for entry in shown
    ]
    rows.append(drawn("all", slices.whole))
    rows.sort(key=lambda row: -(row.value.value or 0.0))
    numbers = table(
        entries,
        {
            "answers": line,
            "verdict less label" if scale.graded else "wrong": lambda entry: (
                difference(entry.error, digits) if scale.graded else in_percent(entry.error)
            ),
            "others": lambda entry: signed(entry.rest, digits) if scale.graded else percent(entry.rest, 1),
            "n (questions)": lambda entry: f"{count(entry.n)} ({count(entry.n_groups)})",
            "p": lambda entry: p_value(entry.p_value),
            "stands out": (lambda entry: "yes" if entry.stands_out else "") if outliers else None,
        },
    )
    overall = slices.whole.value or 0.0
    axis = Axis("verdict less label", dashed=overall)
    if not scale.graded:
        axis = Axis("wrong verdicts, % of the answers", dashed=100.0 * overall, low=0.0)
    few = f" The {_DRAWN} of {len(entries):,} that differ most." * (len(entries) > _DRAWN)
    differ = "In bold: differs from all others (Holm)." if outliers else "No line is shown to differ."
    note = f"{judge} on the open answers; line: 95% interval by question; dashed: all. {differ}{few}"
    picture = interval_picture(rows, axis, numbers=numbers, note=note)
    return Section("slices", "Where does it fail?", "", [picture], card=True)
