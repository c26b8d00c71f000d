"""The document of `rate`: what share is right, what that takes for granted, and what labels would give."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from judgecal.production.results import Escalated, RateDifference, RateResult
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Bullets,
    Document,
    Fact,
    Paragraph,
    Section,
    Table,
    from_summary,
    notes_section,
)
from judgecal.report.intervals import Axis, in_percent, in_points, interval_picture, share_row
from judgecal.report.plan import curve_section
from judgecal.report.wording import sentence

_WORDS = (
    ("right", "What people pass: their label reaches the pass mark of their scale."),
    (
        "raw rate",
        "Share that passes by the calibrated verdicts, before any correction: their errors are in it.",
    ),
    ("corrected rate", "Estimate of the share that people would pass, with the judge's errors taken out."),
    ("PPI++", "Labels of some rows say how far the verdicts on all rows are off; their weight is tuned."),
    ("Rogan-Gladen", "The raw rate, solved for the share that is right, by error rates measured elsewhere."),
    ("unscored", "No verdict could be had or read."),
)
_MARK = 100.0


def rate_document(result: RateResult) -> Document:
    """What share of the judged rows is right."""
    return Document(
        title=f"{result.experiment}: how many answers are right",
        about=(
            f"{result.experiment} · {numbers.count_of(result.n, 'row')} of {result.input}, judged by {result.judge} "
            f"({result.lock}); {_labels_in_words(result)}"
        ),
        headline=_headline(result),
        facts=_facts(result),
        sections=[
            _assumptions(result),
            _rates(result),
            *([_shift(result)] if result.shift else []),
            *([_by(result)] if result.by else []),
            *([_escalated(result.escalate)] if result.escalate else []),
            *([curve_section(result.curve)] if result.curve else []),
            *notes_section([sentence(note) for note in _notes(result)], words=_WORDS, short=True),
        ],
        **from_summary(result),
    )


def _labels_in_words(result: RateResult) -> str:
    if result.labels is None:
        return f"no labels of these rows; error rates of {result.gold.set} ({result.gold.split})"
    return f"{numbers.count(result.n_labelled)} of them labelled ({result.labels})"


def _shown(result: RateResult, found: Estimate, digits: int = 0) -> str:
    """A share in percent, a mean on its scale; the value without its interval."""
    if found.value is None:
        return numbers.DASH
    return (
        numbers.percent(found.value, digits)
        if result.what == "share"
        else numbers.plain(found.value, digits + 1)
    )


def _with_interval(result: RateResult, found: Estimate) -> str:
    """`71% [67, 75]`, with a digit more where two ends would read alike."""
    if result.what != "share":
        return numbers.estimate(found, 2)
    if found.low is None or found.high is None:
        return _shown(result, found)
    digits = 0 if found.high - found.low >= 0.03 else 1
    low, high = numbers.points(found.low, digits), numbers.points(found.high, digits)
    return f"{numbers.percent(found.value, digits)} [{low}, {high}]"


def _headline(result: RateResult) -> Headline:
    kind, first = _first(result)
    because = []
    if result.warning:
        because.append(sentence(result.warning))
    if result.n_unscored:
        because.append(_unscored(result))
    if result.labels_saved:
        because.append(
            f"The verdicts saved {numbers.count(result.labels_saved)} labels: so many more would have been needed for "
            "as short an interval without them."
        )
    if len(result.differences) == 1:
        because.append(_apart(result, result.differences[0]))
    if result.escalate is not None:
        because.append(_escalation_in_words(result.escalate))
    return Headline(kind, first, tuple(because), tuple(_unknown(result)), _next(result))


def _apart(result: RateResult, found: RateDifference) -> str:
    """Two values held against each other."""
    shown = numbers.difference(in_points(found.difference), 1)
    decided = {"A": f"{found.a} is higher", "B": f"{found.b} is higher"}.get(
        _told(found.difference), "cannot tell"
    )
    return f"{result.by_column} {found.a} less {found.b}: {shown} points, so {decided}."


def _first(result: RateResult) -> tuple[str, str]:
    """The kind, and the sentence: what the number takes for granted, and the number."""
    alone = f"the judge alone said {_shown(result, result.raw)}"
    drawn = result.drawn
    if drawn is not None and drawn.differs:
        alone = (
            f"the judge passes {_shown(result, drawn.labelled)} of the labelled rows and "
            f"{_shown(result, Estimate(drawn.table))} of all rows, so the labels were not drawn at random"
        )
    if result.corrected.value is None:
        return "no rate", f"No corrected rate: {result.corrected.reason}; {alone}."
    what = (
        "of these answers are right"
        if result.what == "share"
        else f"is the mean of these answers ({result.scale})"
    )
    rate = f"about {_with_interval(result, result.corrected)} {what}; {alone}"
    if result.labels is None:
        return "carried over", f"If the judge errs here as on {result.gold.set}, {rate}."
    if drawn is not None and drawn.differs:
        return "not drawn at random", f"Do not use this rate: {alone}; it would be {rate.partition(';')[0]}."
    if result.shift is not None and result.shift.contradicts:
        return "shift", f"The labels contradict the lock's error rates: {rate}."
    return "corrected", f"{rate[0].upper()}{rate[1:]}."


def _unscored(result: RateResult) -> str:
    rows = f"{numbers.count(result.n_unscored)} of {numbers.count(result.n)} rows have no verdict"
    if result.bounds is None:
        return f"{rows}."
    low, high = (Estimate(end) for end in (result.bounds.low, result.bounds.high))
    between = f"{_shown(result, low)} to {_shown(result, high)}"
    return f"{rows}: {between} were all of them wrong, or all right."


def _unknown(result: RateResult) -> Iterator[str]:
    """What weighs most comes first."""
    if result.labels is None:
        yield "Whether the judge errs on these rows as when it was locked: nobody labelled any of them."
    elif result.corrected.low is None and result.corrected.value is not None:
        yield f"How sure the rate is: {result.corrected.reason}."
    if result.by_column and result.labels is None:
        yield f"Whether values of {result.by_column} differ: the judge may err otherwise on each of them."
    if result.labels is not None and result.shift is not None and result.shift.p_value is None:
        yield "Whether the judge still errs as when it was locked: too few labels of a class to tell."


def _next(result: RateResult) -> str:
    differs = result.drawn is not None and result.drawn.differs
    if result.shift is not None and result.shift.contradicts and not differs:
        return shlex.join(["judgecal", "gate", "--lock", result.lock])
    words = [
        "judgecal",
        "gold",
        "sheet",
        result.input,
        "-n",
        str(result.next_labels.n if result.next_labels else 60),
    ]
    words += [*(["--strata", "verdict"] if result.what == "share" else []), "--lock", result.lock]
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
        shown = (
            f"± {numbers.points(half)} points" if result.what == "share" else f"± {numbers.plain(half, 2)}"
        )
        facts.append(Fact(shown, f"is what {numbers.count(result.next_labels.n)} more labels would give."))
    return facts


def _assumptions(result: RateResult) -> Section:
    told = [sentence(one) for one in result.assumes]
    blocks: list[Block] = [Bullets([f"Assumed: {one[0].lower()}{one[1:]}" for one in told], short=True)]
    caption = "Serves whoever reports the number: what it takes for granted, what weighs most first."
    return Section("assumed", "What is taken for granted", caption, blocks)


def _rates(result: RateResult) -> Section:
    rows = [("corrected", result.corrected), ("raw", result.raw)]
    rows += [("labels alone", result.plain)] if result.plain is not None else []
    cells = [[name, *_cells(result, name, found)] for name, found in rows]
    table = Table(["", "rate", "level", "n", "unscored", "made by"], cells, short=True)
    known = [(name, found) for name, found in rows if found.value is not None]
    blocks: list[Block] = [table]
    if result.mean is not None:
        means = [("corrected mean", result.mean.corrected), ("raw mean", result.mean.raw)]
        blocks.append(
            Table(["", result.scale, "level", "n"], [[n, *_cells(result, n, one)[:3]] for n, one in means])
        )
    if result.what == "share" and known:
        lines = [share_row(name, found, strong=name == "corrected") for name, found in known]
        blocks.append(interval_picture(lines, Axis("%", low=0.0, high=_MARK)))
    blocks += [Paragraph(f"No number for {name}: {one.reason}.") for name, one in rows if one.value is None]
    caption = "Serves the report of quality: the share that people would pass, beside what it is made of."
    return Section("rates", "Rates", caption, blocks)


def _cells(result: RateResult, name: str, found: Estimate) -> list[str]:
    share = result.what == "share" and not name.endswith("mean")
    value = in_percent(found) if share else numbers.estimate(found, 2)
    counted = [numbers.count(found.n), numbers.count(found.n_unscored)]
    return [value, f"{found.level:.4g}", *counted, found.method or found.reason or numbers.DASH]


def _shift(result: RateResult) -> Section:
    assert result.shift is not None
    p = result.shift.p_value
    told = "no rate has enough labels" if p is None else f"p {'<0.001' if p < 0.001 else f'{p:.3f}'}"
    said = "contradict" if result.shift.contradicts else "do not contradict"
    rows = [
        [name, in_percent(pair["locked"]), in_percent(pair["now"])]
        for name, pair in result.shift.rates.items()
    ]
    blocks: list[Block] = [
        Paragraph(f"The labels {said} the error rates of the lock ({told})."),
        Table(["", "at lock time", "in these labels"], rows),
    ]
    caption = "Serves whoever relies on the lock: whether the judge errs here as it did when it was locked."
    return Section("shift", "Error rates, then and now", caption, blocks)


def _by(result: RateResult) -> Section:
    rows = [
        [
            one.value or "(none named)",
            in_percent(one.corrected) if result.what == "share" else numbers.estimate(one.corrected, 2),
            in_percent(one.raw) if result.what == "share" else numbers.estimate(one.raw, 2),
            numbers.count(one.n),
            numbers.count(one.n_labelled),
        ]
        for one in result.by
    ]
    name = str(result.by_column)
    blocks: list[Block] = [Table([name, "corrected", "raw", "rows", "labels"], rows, short=True)]
    if result.differences:
        apart = [
            [one.a, one.b, numbers.difference(in_points(one.difference), 1), _told(one.difference)]
            for one in result.differences
        ]
        blocks.append(
            Table(["A", "B", "A - B, points", "decision"], apart, left=2, title="Differences", short=True)
        )
    caption = f"Serves the choice between values of {name}: intervals that hold all at once."
    return Section("by", f"By {name}", caption, blocks)


def _told(difference: Estimate) -> str:
    if difference.value is None or not difference.clear_of_zero:
        return "cannot tell"
    return "A" if difference.value > 0.0 else "B"


def _escalated(found: Escalated) -> Section:
    caption = (
        "Serves who shares the work between judge and people: tested from safe to bold on the labelled rows."
    )
    return Section("escalate", "Rows for a person", caption, [Paragraph(_escalation_in_words(found))])


def _escalation_in_words(found: Escalated) -> str:
    """What the judge keeps, and what a person reads."""
    target = numbers.percent(found.target)
    if found.agreement is None:
        needed = "no number of labels looks as if it would"
        if found.labels_needed is not None:
            needed = f"about {numbers.count(found.labels_needed)} labels would"
        return f"No part of the rows is shown to agree with people at {target}: read all of them; {needed}."
    return (
        f"The judge keeps {numbers.percent(found.share)} of the rows, where it agrees with people in "
        f"{in_percent(found.agreement)}, shown to be {target} or more; a person reads the other "
        f"{numbers.count(found.n_rows)}{f' ({found.sheet})' if found.sheet else ''}."
    )


def _notes(result: RateResult) -> Iterator[str]:
    if result.correlation is not None:
        yield (
            f"labels and verdicts correlate by {result.correlation:.2f}, so the verdicts save "
            f"{100.0 * max(0.0, result.correlation) ** 2:.0f}% of the labels at most"
        )
    yield from result.notes
