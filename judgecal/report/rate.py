"""The document of `rate`: what share is right, what that takes for granted, and what labels would give."""

from __future__ import annotations

import shlex

from judgecal.production.results import Escalated, RateDifference, RateResult, ShiftSeen
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Bullets,
    Document,
    Fact,
    Paragraph,
    Section,
    from_summary,
    notes_section,
    table,
)
from judgecal.report.intervals import Axis, in_percent, in_points, interval_picture, share_row
from judgecal.report.plan import curve_section
from judgecal.report.wording import glossary, sentence, sentences


def rate_document(result: RateResult) -> Document:
    """What share of the judged rows is right."""
    labelled = f"no labels of these rows; error rates of {result.gold.set} ({result.gold.split})"
    if result.labels is not None:
        labelled = f"{numbers.count(result.n_labelled)} of them labelled ({result.labels})"
    notes = [*result.notes]
    if result.correlation is not None:
        saved = 100.0 * max(0.0, result.correlation) ** 2
        notes.insert(
            0,
            f"labels and verdicts correlate by {result.correlation:.2f}, so the verdicts save {saved:.0f}% "
            "of the labels at most",
        )
    raw = (
        "raw rate",
        "Share that passes by the calibrated verdicts, before any correction: their errors are in it.",
    )
    words = glossary("right", raw, "corrected rate", "PPI++", "Rogan-Gladen", "unscored")
    return Document(
        title=f"{result.experiment}: how many answers are right",
        about=(
            f"{result.experiment} · {numbers.count_of(result.n, 'row')} of {result.input}, judged by "
            f"{result.judge} ({result.lock}); {labelled}"
        ),
        headline=_headline(result),
        facts=_facts(result),
        sections=[
            _assumptions(result),
            _rates(result),
            *([_shift(result.shift)] if result.shift else []),
            *([_by(result)] if result.by else []),
            *([_escalated(result.escalate)] if result.escalate else []),
            *([curve_section(result.curve)] if result.curve else []),
            *notes_section([sentence(note) for note in notes], words=words, short=True),
        ],
        **from_summary(result),
    )


def _value(result: RateResult, rate: Estimate, digits: int = 0) -> str:
    """A share in percent, a mean on its scale; without its interval."""
    if rate.value is None:
        return numbers.DASH
    if result.what == "share":
        return numbers.percent(rate.value, digits)
    return numbers.plain(rate.value, digits + 1)


def _with_interval(result: RateResult, rate: Estimate) -> str:
    """`71% [67, 75]`, with a digit more where two ends would read alike."""
    if result.what != "share":
        return numbers.estimate(rate, 2)
    if rate.low is None or rate.high is None:
        return _value(result, rate)
    digits = 0 if rate.high - rate.low >= 0.03 else 1
    low, high = numbers.points(rate.low, digits), numbers.points(rate.high, digits)
    return f"{numbers.percent(rate.value, digits)} [{low}, {high}]"


def _headline(result: RateResult) -> Headline:
    """What is right and by which assumption; what the judge alone said; what would make it surer."""
    kind, says = _first(result)
    unscored, bounds = "", result.bounds
    if result.n_unscored:
        rows = f"{numbers.count(result.n_unscored)} of {numbers.count(result.n)} rows have no verdict"
        unscored = f"{rows}."
        if bounds is not None:
            low, high = (_value(result, Estimate(end)) for end in (bounds.low, bounds.high))
            unscored = f"{rows}: {low} to {high} were all of them wrong, or all right."
    because = sentences(
        result.warning and sentence(result.warning),
        unscored,
        bool(result.labels_saved)
        and f"The verdicts saved {numbers.count(result.labels_saved or 0)} labels: so many more would have "
        "been needed for as short an interval without them.",
        len(result.differences) == 1 and _apart(result, result.differences[0]),
        result.escalate is not None and _escalation_in_words(result.escalate),
    )
    corrected, labelled = result.corrected, result.labels is not None
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
        and result.shift is not None
        and result.shift.p_value is None
        and "Whether the judge still errs as when it was locked: too few labels of a class to tell.",
    )
    return Headline(kind, says, because, unknown, _next(result))


def _apart(result: RateResult, found: RateDifference) -> str:
    """Two values held against each other."""
    points = numbers.difference(in_points(found.difference), 1)
    higher = {"A": f"{found.a} is higher", "B": f"{found.b} is higher"}
    decided = higher.get(_decision(found.difference), "cannot tell")
    return f"{result.by_column} {found.a} less {found.b}: {points} points, so {decided}."


def _decision(difference: Estimate) -> str:
    if difference.value is None or not difference.clear_of_zero:
        return "cannot tell"
    return "A" if difference.value > 0.0 else "B"


def _first(result: RateResult) -> tuple[str, str]:
    """The kind, and the sentence: what the number takes for granted, and the number."""
    alone, drawn = f"the judge alone said {_value(result, result.raw)}", result.drawn
    otherwise = drawn is not None and drawn.differs
    if drawn is not None and otherwise:
        alone = (
            f"the judge passes {_value(result, drawn.labelled)} of the labelled rows and "
            f"{_value(result, Estimate(drawn.table))} of all rows, so the labels were not drawn at random"
        )
    if result.corrected.value is None:
        return "no rate", f"No corrected rate: {result.corrected.reason}; {alone}."
    what = "of these answers are right"
    if result.what != "share":
        what = f"is the mean of these answers ({result.scale})"
    about = f"about {_with_interval(result, result.corrected)} {what}"
    if result.labels is None:
        return "carried over", f"If the judge errs here as on {result.gold.set}, {about}; {alone}."
    if otherwise:
        return "not drawn at random", f"Do not use this rate: {alone}; it would be {about}."
    if result.shift is not None and result.shift.contradicts:
        return "shift", f"The labels contradict the lock's error rates: {about}; {alone}."
    return "corrected", f"A{about[1:]}; {alone}."


def _next(result: RateResult) -> str:
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


def _facts(result: RateResult) -> list[Fact]:
    facts = [
        Fact(_with_interval(result, result.corrected), f"corrected, by {result.method}."),
        Fact(_with_interval(result, result.raw), "raw: by the judge's calibrated verdicts alone."),
    ]
    if result.plain is not None:
        facts.append(Fact(_with_interval(result, result.plain), f"by the {result.n_labelled} labels alone."))
    if result.next_labels is not None:
        half = result.next_labels.half_width
        width = f"{numbers.points(half)} points" if result.what == "share" else numbers.plain(half, 2)
        more = numbers.count(result.next_labels.n)
        facts.append(Fact(f"± {width}", f"is what {more} more labels would give."))
    return facts


def _assumptions(result: RateResult) -> Section:
    assumed = [sentence(text) for text in result.assumes]
    blocks = [Bullets([f"Assumed: {text[0].lower()}{text[1:]}" for text in assumed], short=True)]
    caption = "Serves whoever reports the number: what it takes for granted, what weighs most first."
    return Section("assumed", "What is taken for granted", caption, blocks)


def _in_units(result: RateResult, rate: Estimate) -> str:
    return in_percent(rate) if result.what == "share" else numbers.estimate(rate, 2)


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
            "n": lambda row: numbers.count(row[1].n),
            "unscored": lambda row: numbers.count(row[1].n_unscored),
            "made by": lambda row: row[1].method or row[1].reason or numbers.DASH,
        },
        short=True,
    )
    blocks: list[Block] = [rates]
    if result.mean is not None:
        means = table(
            [("corrected mean", result.mean.corrected), ("raw mean", result.mean.raw)],
            {
                "": lambda row: row[0],
                result.scale: lambda row: numbers.estimate(row[1], 2),
                "level": lambda row: f"{row[1].level:.4g}",
                "n": lambda row: numbers.count(row[1].n),
            },
        )
        blocks.append(means)
    known = [(name, rate) for name, rate in rows if rate.value is not None]
    if result.what == "share" and known:
        lines = [share_row(name, rate, strong=name == "corrected") for name, rate in known]
        blocks.append(interval_picture(lines, Axis("%", low=0.0, high=100.0)))
    blocks += [
        Paragraph(f"No number for {name}: {rate.reason}.") for name, rate in rows if rate.value is None
    ]
    caption = "Serves the report of quality: the share that people would pass, beside what it is made of."
    return Section("rates", "Rates", caption, blocks)


def _shift(shift: ShiftSeen) -> Section:
    p = "no rate has enough labels"
    if shift.p_value is not None:
        p = f"p {'<0.001' if shift.p_value < 0.001 else f'{shift.p_value:.3f}'}"
    verb = "contradict" if shift.contradicts else "do not contradict"
    rates = table(
        shift.rates.items(),
        {
            "": lambda row: row[0],
            "at lock time": lambda row: in_percent(row[1]["locked"]),
            "in these labels": lambda row: in_percent(row[1]["now"]),
        },
    )
    caption = "Serves whoever relies on the lock: whether the judge errs here as it did when it was locked."
    blocks = [Paragraph(f"The labels {verb} the error rates of the lock ({p})."), rates]
    return Section("shift", "Error rates, then and now", caption, blocks)


def _by(result: RateResult) -> Section:
    name = str(result.by_column)
    rates = table(
        result.by,
        {
            name: lambda row: row.value or "(none named)",
            "corrected": lambda row: _in_units(result, row.corrected),
            "raw": lambda row: _in_units(result, row.raw),
            "rows": lambda row: numbers.count(row.n),
            "labels": lambda row: numbers.count(row.n_labelled),
        },
        short=True,
    )
    blocks: list[Block] = [rates]
    if result.differences:
        pairs = table(
            result.differences,
            {
                "A": lambda row: row.a,
                "B": lambda row: row.b,
                "A - B, points": lambda row: numbers.difference(in_points(row.difference), 1),
                "decision": lambda row: _decision(row.difference),
            },
            left=2,
            title="Differences",
            short=True,
        )
        blocks.append(pairs)
    caption = f"Serves the choice between values of {name}: intervals that hold all at once."
    return Section("by", f"By {name}", caption, blocks)


def _escalated(escalated: Escalated) -> Section:
    caption = (
        "Serves who shares the work between judge and people: tested from safe to bold on the labelled rows."
    )
    return Section("escalate", "Rows for a person", caption, [Paragraph(_escalation_in_words(escalated))])


def _escalation_in_words(escalated: Escalated) -> str:
    """What the judge keeps, and what a person reads."""
    target, needed = numbers.percent(escalated.target), "no number of labels looks as if it would"
    if escalated.labels_needed is not None:
        needed = f"about {numbers.count(escalated.labels_needed)} labels would"
    if escalated.agreement is None:
        return f"No part of the rows is shown to agree with people at {target}: read all of them; {needed}."
    sheet = f" ({escalated.sheet})" if escalated.sheet else ""
    return (
        f"The judge keeps {numbers.percent(escalated.share)} of the rows, where it agrees with people in "
        f"{in_percent(escalated.agreement)}, shown to be {target} or more; a person reads the other "
        f"{numbers.count(escalated.n_rows)}{sheet}."
    )
