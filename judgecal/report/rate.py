"""The documents of `rate` and `plan`: what share is right and what that takes for granted, and how many
labels a rate takes, or how many questions tell two judges apart.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from judgecal.experiment import Experiment
from judgecal.experiment.rows import sheet_command
from judgecal.production.plan import CurvePoint, PlanResult, QuestionsResult
from judgecal.production.rate import RateResult
from judgecal.records import Estimate, Headline
from judgecal.report.charts import (
    Axis,
    Frame,
    Mark,
    change_in_points,
    hundred,
    in_percent,
    interval_picture,
    one_less,
    share_row,
)
from judgecal.report.document import (
    Bullets,
    Document,
    Fact,
    Hundred,
    Picture,
    Section,
    Table,
    section,
    stored_document,
    table,
)
from judgecal.report.numbers import DASH, count, count_of, estimate, p_value, percent, plain, points
from judgecal.report.rows import rows_section
from judgecal.report.wording import fitting, sentence, sentences
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace

_RAW = (
    "raw rate",
    "Share that passes by the calibrated verdicts, before any correction, with the judge's errors in it.",
)
_P = TypeVar("_P")
_SHOWN = 6  # numbers of a curve where it is not drawn
_WIDE, _NARROW = 660, 340  # pixels of a curve


def rate_document(result: RateResult) -> Document:
    """What share of the judged rows is right."""
    labelled = f"no labels of these rows; error rates measured on {result.gold.set} ({result.gold.split})"
    if result.labels is not None:
        labelled = f"{count(result.n_labelled)} of them labelled ({result.labels})"
    saved = ""
    if result.correlation is not None:
        saved = (
            f"Labels and verdicts correlate by {result.correlation:.2f}, so the verdicts save "
            f"{100.0 * max(0.0, result.correlation) ** 2:.0f}% of the labels at most."
        )
    facts = [
        Fact(_with_interval(result, result.corrected), f"corrected, by {result.method}."),
        Fact(_with_interval(result, result.raw), "raw: the judge's calibrated verdicts alone."),
    ]
    if result.plain is not None:
        facts.append(Fact(_with_interval(result, result.plain), f"the {result.n_labelled} labels alone."))
    if result.next_labels is not None:
        half = result.next_labels.half_width
        width = f"{points(half)} points" if result.what == "share" else plain(half, 2)
        facts.append(Fact(f"± {width}", f"with {count(result.next_labels.n)} more labels."))
    return stored_document(
        result,
        f"{result.experiment}: how many {'pairs prefer a system' if result.prefers else 'answers are right'}",
        f"{result.experiment} · {count_of(result.n, 'row')} of {result.input}, judged by {result.judge} "
        f"({result.lock}); {labelled}",
        _rate_headline(result),
        section(
            "assumed",
            "What this number assumes",
            "The most important first.",
            Bullets(
                [f"Assumed: {text[0].lower()}{text[1:]}" for text in map(sentence, result.assumes)],
                short=True,
            ),
        ),
        _rates(result),
        _shift(result),
        _by(result),
        bool(result.curve) and curve_section(result.curve),
        facts=facts,
        notes=sentences(saved, map(sentence, result.notes)),
        words=("right", _RAW, "corrected rate", "PPI++", "Rogan-Gladen", "unscored"),
        hundred=_hundred(result),
        short=True,
    )


def _hundred(result: RateResult) -> Hundred | None:
    """At the corrected share, by the error rates of these labels; None without such."""
    if result.shift is None or result.what != "share" or result.corrected.value is None:
        return None
    rates = [pair["now"] for pair in result.shift.rates.values() if pair["now"].value is not None]
    if len(rates) < 2:
        return None
    note = f"At the corrected share of right answers, {_with_interval(result, result.corrected)}."
    sensitivity, specificity = map(one_less, rates)
    return hundred(result.judge, result.corrected.value, sensitivity, specificity, note=note)


def _value(result: RateResult, rate: Estimate, digits: int = 0) -> str:
    """A share in percent, a mean on its scale; without its interval."""
    if rate.value is None:
        return DASH
    return percent(rate.value, digits) if result.what == "share" else plain(rate.value, digits + 1)


def _with_interval(result: RateResult, rate: Estimate) -> str:
    """`71% [67, 75]`, with a digit more where two ends would read alike."""
    if result.what != "share":
        return estimate(rate, 2)
    if rate.low is None or rate.high is None:
        return _value(result, rate)
    digits = 0 if rate.high - rate.low >= 0.03 else 1
    return f"{percent(rate.value, digits)} [{points(rate.low, digits)}, {points(rate.high, digits)}]"


def _decision(difference: Estimate) -> str:
    if difference.value is None or not difference.clear_of_zero:
        return "cannot tell"
    return "A" if difference.value > 0.0 else "B"


def _rate_headline(result: RateResult) -> Headline:
    """What is right and by which assumption; what the judge alone said; what would make it surer."""
    kind, says, beside = _first(result)
    unscored, bounds, corrected = "", result.bounds, result.corrected
    if result.n_unscored:
        unscored = f"{count(result.n_unscored)} of {count(result.n)} rows have no verdict"
        if bounds is not None:
            low, high = (_value(result, Estimate(end)) for end in (bounds.low, bounds.high))
            unscored += f": the rate would be {low} if all of them were wrong, {high} if all were right"
        unscored += "."
    apart = ""
    if len(result.differences) == 1:
        (two,) = result.differences
        higher = {"A": f"{two.a} is higher", "B": f"{two.b} is higher"}
        decided = higher.get(_decision(two.difference), "cannot tell")
        by = f"{change_in_points(two.difference)} points"
        apart = f"{result.by_column} {two.a} less {two.b}: {by}, so {decided}."
    saved = f"The judge saved {count(result.labels_saved)} labels: without it so many more would be needed."
    because, more = fitting(
        *sentences(
            sentence(beside),
            result.warning and sentence(result.warning),
            unscored,
            apart,
            bool(result.labels_saved) and saved,
            _escalation(result),
        )
    )
    labelled, shift = result.labels is not None, result.shift
    unknown = sentences(
        not labelled
        and "Whether the judge errs on these rows as when it was locked: nobody labelled any of them.",
        labelled
        and corrected.low is None
        and corrected.value is not None
        and f"How sure the rate is: {corrected.reason}.",
        bool(result.by_column)
        and not labelled
        and f"Whether values of {result.by_column} differ: the judge may err otherwise on each of them.",
        labelled
        and shift is not None
        and shift.p_value is None
        and "Whether the judge still errs as when it was locked: too few labels of a class to tell.",
    )
    return Headline(kind, says, because, unknown, _after_rate(result), more=more)


def _first(result: RateResult) -> tuple[str, str, str]:
    """The kind; what is right, and by which assumption; what the judge alone said."""
    alone, drawn = f"the judge alone said {_value(result, result.raw)}", result.drawn
    otherwise = drawn is not None and drawn.differs
    if drawn is not None and otherwise:
        alone = (
            f"the judge passes {_value(result, drawn.labelled)} of the labelled rows and "
            f"{_value(result, Estimate(drawn.table))} of all rows, so the labels were not drawn at random"
        )
    if result.corrected.value is None:
        return "no rate", "We cannot give a corrected rate.", f"{result.corrected.reason}; {alone}"
    about = f"about {_with_interval(result, result.corrected)}"
    what, right = "of these answers are right", f"{about} are right"
    if result.prefers is not None:
        x, y = result.prefers
        what = f"of these pairs prefer {x} over {y}"
        right = f"{about} prefer {x} over {y}"
    elif result.what != "share":
        what, right = "is the mean of these answers", f"the mean is {about}"
    if result.labels is None:
        errs = f"It takes for granted that the judge errs here as on {result.gold.set}; {alone}"
        return "carried over", f"{right[0].upper()}{right[1:]}, if the judge errs as before.", errs
    if otherwise:
        not_random = "Do not use this rate: the labels were not drawn at random."
        return "not drawn at random", not_random, f"{alone}; the rate would be {about}"
    if result.shift is not None and result.shift.contradicts:
        return "shift", f"The labels contradict the lock: {right}.", alone
    return "corrected", f"A{about[1:]} {what}.", alone


def _after_rate(result: RateResult) -> str:
    """Label rows, or more of them; where the labels contradict the lock, test the judge."""
    differs = result.drawn is not None and result.drawn.differs
    if result.shift is not None and result.shift.contradicts and not differs:
        return shlex.join(["judgecal", "gate", "--lock", result.lock])
    n = result.next_labels.n if result.next_labels else 60
    strata = ["--strata", "verdict"] if result.what == "share" else []
    words = ["judgecal", "gold", "sheet", result.input, "-n", str(n), *strata, "--lock", result.lock]
    words += [word for name, column in result.typed.items() for word in (f"--{name}", column)]
    if result.labels is None or differs:
        return shlex.join([*words, "-o", "sheet.csv" if result.labels is None else "drawn.csv"])
    if result.next_labels is None:
        return f"judgecal report {result.experiment} --open"
    return shlex.join([*words, "--labels", result.labels, "-o", "sheet-2.csv"])


def _in_units(result: RateResult, rate: Estimate) -> str:
    return in_percent(rate) if result.what == "share" else estimate(rate, 2)


def _rates(result: RateResult) -> Section:
    rows = [("corrected", result.corrected), ("raw", result.raw)]
    if result.plain is not None:
        rows.append(("labels alone", result.plain))
    rates = table(
        rows,
        {
            "": lambda row: row[0],
            "rate": lambda row: _in_units(result, row[1]),
            "level": lambda row: f"{row[1].level:.4g}",
            "n": lambda row: count(row[1].n),
            "unscored": lambda row: count(row[1].n_unscored),
            "made by": lambda row: row[1].method or row[1].reason or DASH,
        },
        short=True,
    )
    means = []
    if result.mean is not None:
        means = [("corrected mean", result.mean.corrected), ("raw mean", result.mean.raw)]
    known = [(name, rate) for name, rate in rows if rate.value is not None]
    lines = [share_row(name, rate, strong=name == "corrected") for name, rate in known]
    return section(
        "rates",
        "Rates",
        "The share that people would pass, and what it is made of.",
        rates,
        bool(means)
        and table(
            means,
            {
                "": lambda row: row[0],
                result.scale: lambda row: estimate(row[1], 2),
                "level": lambda row: f"{row[1].level:.4g}",
                "n": lambda row: count(row[1].n),
            },
        ),
        result.what == "share" and bool(lines) and interval_picture(lines, Axis("%", low=0.0, high=100.0)),
        (f"No number for {name}: {rate.reason}." for name, rate in rows if rate.value is None),
    )


def _shift(result: RateResult) -> Section | None:
    shift = result.shift
    if shift is None:
        return None
    p = "no rate has enough labels" if shift.p_value is None else f"p {p_value(shift.p_value)}"
    verb = "contradict" if shift.contradicts else "do not contradict"
    rates = table(
        shift.rates.items(),
        {
            "": lambda row: row[0],
            "at lock time": lambda row: in_percent(row[1]["locked"]),
            "in these labels": lambda row: in_percent(row[1]["now"]),
        },
    )
    return section(
        "shift",
        "Error rates, then and now",
        "Does the judge err here as it did when it was locked?",
        f"The labels {verb} the error rates of the lock ({p}).",
        rates,
    )


def _by(result: RateResult) -> Section | None:
    if not result.by:
        return None
    name = str(result.by_column)
    rates = table(
        result.by,
        {
            name: lambda row: row.value or "(none named)",
            "corrected": lambda row: _in_units(result, row.corrected),
            "raw": lambda row: _in_units(result, row.raw),
            "rows": lambda row: count(row.n),
            "labels": lambda row: count(row.n_labelled),
        },
        short=True,
    )
    pairs = table(
        result.differences,
        {
            "A": lambda row: row.a,
            "B": lambda row: row.b,
            "A - B, points": lambda row: change_in_points(row.difference),
            "decision": lambda row: _decision(row.difference),
        },
        left=2,
        title="Differences",
        short=True,
    )
    caption = f"The rate for each {name}; all intervals hold at once."
    return section("by", f"By {name}", caption, rates, bool(result.differences) and pairs)


def _escalation(result: RateResult) -> str:
    """What the judge keeps, and what a person reads; empty where nobody asked."""
    escalated = result.escalate
    if escalated is None:
        return ""
    target, needed = percent(escalated.target), "more labels do not look as if they would help"
    if escalated.labels_needed is not None:
        needed = f"about {count(escalated.labels_needed)} labels would"
    if escalated.agreement is None:
        return (
            f"We could show for no part of the rows that judge and people agree on {target}: read "
            f"all of them; {needed}."
        )
    sheet = f" ({escalated.sheet})" if escalated.sheet else ""
    return (
        f"The judge keeps {percent(escalated.share)} of the rows, where it agrees with people in "
        f"{in_percent(escalated.agreement)}, shown to be {target} or more; a person reads the other "
        f"{count(escalated.n_rows)}{sheet}."
    )


# --- plan


def plan_report(_workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The document of either plan, as it was stored."""
    if "lock" in experiment.config:
        return plan_document(experiment.read_summary(PlanResult))
    return questions_document(experiment.read_summary(QuestionsResult))


def plan_document(result: PlanResult) -> Document:
    """How many labels a rate takes."""
    half = f"± {points(result.half_width, 0 if result.half_width >= 0.01 else 1)} points"
    with_judge, plain, stratified = map(
        count, (result.labels_with_judge, result.labels_plain, result.labels_stratified)
    )
    saved = percent(1.0 - result.labels_with_judge / result.labels_plain)
    ends, correlation, least = result.labels_at_ends, result.correlation, ""
    if correlation is not None and correlation.value is not None:
        limit = percent(1.0 - max(0.0, correlation.value) ** 2)
        least = f"Correlation {estimate(correlation, 2)}: {limit} of the labels is the least that can do."
    labels = {
        "alone": plain,
        "with the judge's verdicts": with_judge,
        "with them, drawn by strata": stratified,
    }
    return stored_document(
        result,
        f"{result.judge}: how many labels a rate takes",
        f"{result.judge} ({result.lock}), as it was on {result.gold.set} ({result.gold.split})",
        Headline(
            "plan",
            f"For {half}, label about {with_judge} answers with this judge.",
            sentences(
                f"Without it {plain}: it saves {saved}, by its own correlation with people's labels.",
                ends is not None
                and f"At the ends of that correlation's interval: {count(ends[0])} to {count(ends[1])} "
                "labels.",
            ),
            ("Whether the judge is as good on the rows to come: the labels themselves will tell.",),
            "judgecal judge --help",
        ),
        section(
            "labels",
            "Labels needed",
            "How many labels to pay for. We expect this from the lock; it is no promise.",
            Table(["labels", "n"], [*labels.items()], short=True),
            _assumed(result.assumes),
        ),
        bool(result.curve) and curve_section(result.curve, short=True),
        notes=sentences(least, map(sentence, result.notes)),
        words=("half width", "correlation", "by strata"),
        short=True,
    )


def _assumed(assumes: Sequence[str]) -> Bullets:
    return Bullets([f"Assumed: {text}." for text in assumes], short=True)


class _Line(NamedTuple):
    name: str
    tone: str
    points: Sequence[tuple[int, float]]


def curve_section(curve: Sequence[CurvePoint], *, short: bool = False) -> Section:
    """Half width against labels; a short one stands in the terminal too, with some of its numbers."""
    widths = table(
        _some(curve) if short else curve,
        {
            "labels": lambda point: count(point.n),
            "alone": lambda point: points(point.plain),
            "with the judge": lambda point: points(point.with_judge),
            "by strata": lambda point: points(point.stratified),
        },
        title="Half width in points, by labels",
    )
    says = "; ".join(
        f"{point.n} labels: {points(point.plain)} or {points(point.with_judge)}" for point in curve
    )
    by_strata = [(point.n, 100.0 * point.stratified) for point in curve if point.stratified is not None]
    lines = (
        _Line("alone", "soft", [(point.n, 100.0 * point.plain) for point in curve]),
        _Line("with the judge", "accent", [(point.n, 100.0 * point.with_judge) for point in curve]),
        _Line("by strata", "warm", by_strata),
    )
    return section(
        "curve",
        "What more labels give",
        "How far more labels narrow the interval, for a very large table. We expect this from the lock; "
        "it is no promise.",
        _curve(lines, ("labels", "half width, points"), says, widths, short=short),
    )


def _some(curve: Sequence[_P]) -> list[_P]:
    """At most six, the last one among them."""
    step = -(-len(curve) // _SHOWN)
    return list(curve[::-1][::step][::-1])


def _curve(
    lines: Sequence[_Line],
    titles: tuple[str, str],
    says: str,
    values: Table,
    *,
    short: bool = True,
    log: bool = False,
) -> Picture:
    """Lines over a number that is to be chosen, each with its name; the values stand in their place where
    nothing can be drawn.
    """

    def drawn(width: int) -> str:
        every = [point for line in lines for point in line.points]
        numbers, heights = zip(*every, strict=True)
        room = width / (width - 7.0 * max(len(line.name) for line in lines) - 20.0)  # for the names
        first, last = float(min(numbers)) if log else 0.0, float(max(numbers))
        end = first * (last / first) ** room if log else room * last
        frame = Frame(width, (first, end), (0.0, 1.05 * max(heights) or 1.0), titles, log=log)
        marks: list[Mark] = []
        below = 0.0  # names stand behind their lines, one below the other
        for line in sorted(lines, key=lambda line: -line.points[-1][1] if line.points else 0.0):
            places = [(frame.x(n), frame.y(value)) for n, value in line.points]
            if not places:
                continue
            marks.append(Mark("path", text=f"M{'L'.join(f'{x} {y}' for x, y in places)}", tone=line.tone))
            marks += [Mark("dot", x, y, tone=line.tone) for x, y in places]
            x, below = places[-1][0], max(places[-1][1] + 4.0, below + 14.0)
            marks.append(Mark("text", x + 10.0 + 3.1 * len(line.name), below, text=line.name))
        return frame.drawn(marks)

    return Picture(lambda: drawn(_WIDE), says, narrow=lambda: drawn(_NARROW), numbers=values, short=short)


def questions_document(result: QuestionsResult) -> Document:
    """How many questions tell two judges apart."""
    share, a, b = metric_facts(result.metric).unit != "scale", result.a, result.b

    def size(difference: float) -> str:
        return f"{points(difference)} points" if share else plain(difference, 3)

    def questions(n: int | None) -> str:
        return "more than a million" if n is None else count(n)

    needed, seen, detectable = questions(result.questions), result.seen, size(result.smallest_detectable)
    sizes = table(
        [("asked for", result.difference, result.questions),
         *((row.what, row.difference, row.questions) for row in result.rows)],
        {
            "difference": lambda row: row[0],
            f"in {result.metric}": lambda row: size(row[1]),
            "questions": lambda row: questions(row[2]),
        },
        short=True,
    )  # fmt: skip
    values = table(
        _some(result.curve),
        {
            "questions": lambda point: count(point.n),
            "smallest difference": lambda point: size(point.difference),
        },
        title="The smallest difference shown, by questions",
    )
    as_seen = next((row.questions for row in result.rows), None)
    takes = f"takes {'about ' * (as_seen is not None)}{questions(as_seen)}"
    enough = result.questions is not None and result.questions <= result.n_questions
    says = "; ".join(f"{point.n} questions: {size(point.difference)}" for point in result.curve)
    axis = "smallest difference, points" if share else f"smallest difference in {result.metric}"
    times = 100.0 if share else 1.0
    line = _Line("shown in 80%", "accent", [(point.n, times * point.difference) for point in result.curve])
    following, on = result.again, result.on_rows
    sheet = sheet_command(result.compared_from, [on]) if on else None
    return stored_document(
        result,
        f"{a} and {b}: how many questions show the difference",
        f"{a} and {b} in {result.compared_from}, {result.n_questions:,} questions",
        Headline(
            "plan",
            f"To tell {a} from {b} by {size(result.difference)} takes {needed} questions.",
            sentences(
                on is not None and sentence(on.why),
                f"The {result.n_questions:,} questions there are show {detectable}.",
                seen.value is not None
                and f"The difference seen, {size(abs(seen.value))}, {takes}; it is itself not sure.",
            ),
            (
                "Whether the two differ by so much: no number of questions makes a difference that is "
                "not there.",
            ),
            sheet or following if enough or sheet else f"judgecal report {result.experiment} --open",
        ),
        rows_section([on] if on else [], result.metric, ""),
        section(
            "questions",
            "Questions needed",
            "How many questions show which of the two agrees better with people.",
            sizes,
            _assumed(result.assumes),
        ),
        section(
            "curve",
            "What more questions show",
            "Which difference a number of questions shows, in 80% of samples.",
            _curve([line], ("questions", axis), says, values, log=True),
        ),
    )
