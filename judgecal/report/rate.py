"""The document of `rate`: what share is right, and what that number assumes."""

from __future__ import annotations

import shlex

from judgecal.production.rate import RateResult
from judgecal.records import Estimate, Headline
from judgecal.report.charts import Axis, in_percent, interval_picture, share_row
from judgecal.report.document import Bullets, Document, Fact, Section, section, stored_document, table
from judgecal.report.wording import (
    DASH,
    count,
    count_of,
    fitting,
    p_value,
    percent,
    points,
    sentence,
    sentences,
)


def rate_document(result: RateResult) -> Document:
    """Lay out a RateResult, what share of judged rows is right, as a Document."""
    labelled = f"no labels of these rows; error rates measured on {result.gold.set} ({result.gold.split})"
    if result.labels is not None:
        labelled = f"{count(result.n_labelled)} of them labelled ({result.labels})"
    facts = [
        Fact(_with_interval(result.corrected), f"corrected, by {result.method}."),
        Fact(_with_interval(result.raw), "raw: the judge's calibrated verdicts alone."),
    ]
    if result.plain is not None:
        facts.append(Fact(_with_interval(result.plain), f"the {result.n_labelled:,} labels alone."))
    if result.next_labels is not None:
        width = f"± {points(result.next_labels.half_width)} points"
        facts.append(Fact(width, f"with {count(result.next_labels.n)} more labels."))
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
        facts=facts,
        short=True,
    )


def _with_interval(rate: Estimate) -> str:
    """`71% [67, 75]`, with a digit more where two ends would read alike."""
    if rate.low is None or rate.high is None:
        return percent(rate.value)
    digits = 0 if rate.high - rate.low >= 0.03 else 1
    return f"{percent(rate.value, digits)} [{points(rate.low, digits)}, {points(rate.high, digits)}]"


def _rate_headline(result: RateResult) -> Headline:
    """What is right and by which assumption; what the judge alone said; what would make it surer."""
    kind, says, beside = _first(result)
    unscored, corrected = "", result.corrected
    if result.n_unscored:
        unscored = f"{count(result.n_unscored)} of {count(result.n)} rows have no verdict."
    saved = f"The judge saved {count(result.labels_saved)} labels: without it so many more would be needed."
    because, more = fitting(
        *sentences(
            sentence(beside),
            result.warning and sentence(result.warning),
            unscored,
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
    alone, drawn = f"the judge alone said {percent(result.raw.value)}", result.drawn
    otherwise = drawn is not None and drawn.differs
    if drawn is not None and otherwise:
        alone = (
            f"the judge passes {percent(drawn.labelled.value)} of the labelled rows and "
            f"{percent(drawn.table)} of all rows, so the labels were not drawn at random"
        )
    if result.corrected.value is None:
        return "no rate", "We cannot give a corrected rate.", f"{result.corrected.reason}; {alone}"
    about = f"about {_with_interval(result.corrected)}"
    what, right = "of these answers are right", f"{about} are right"
    if result.prefers is not None:
        x, y = result.prefers
        what = f"of these pairs prefer {x} over {y}"
        right = f"{about} prefer {x} over {y}"
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
    words = ["judgecal", "gold", "sheet", result.input, "-n", str(n), "--strata", "verdict"]
    words += ["--lock", result.lock, *result.typed]
    if result.labels is None or differs:
        return shlex.join([*words, "-o", "sheet.csv" if result.labels is None else "drawn.csv"])
    if result.next_labels is None:
        return shlex.join(["judgecal", "gate", "--lock", result.lock])
    return shlex.join([*words, "--labels", result.labels, "-o", "sheet-2.csv"])


def _rates(result: RateResult) -> Section:
    rows = [("corrected", result.corrected), ("raw", result.raw)]
    if result.plain is not None:
        rows.append(("labels alone", result.plain))
    rates = table(
        rows,
        {
            "": lambda row: row[0],
            "rate": lambda row: in_percent(row[1]),
            "level": lambda row: f"{row[1].level:.4g}",
            "n": lambda row: count(row[1].n),
            "unscored": lambda row: count(row[1].n_unscored),
            "made by": lambda row: row[1].method or row[1].reason or DASH,
        },
        short=True,
    )
    measured = [(name, rate) for name, rate in rows if rate.value is not None]
    lines = [share_row(name, rate, strong=name == "corrected") for name, rate in measured]
    return section(
        "rates",
        "Rates",
        "The share that people would pass, and what it is made of.",
        rates,
        bool(lines) and interval_picture(lines, Axis("%", low=0.0, high=100.0)),
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
            "corrected": lambda row: in_percent(row.corrected),
            "raw": lambda row: in_percent(row.raw),
            "rows": lambda row: count(row.n),
            "labels": lambda row: count(row.n_labelled),
        },
        short=True,
    )
    caption = f"The rate for each {name}; all intervals hold at once."
    return section("by", f"By {name}", caption, rates)


def _escalation(result: RateResult) -> str:
    """What the judge keeps, and what a person reads; empty where nobody asked."""
    escalated = result.escalate
    if escalated is None:
        return ""
    target = percent(escalated.target)
    if escalated.agreement is None:
        return (
            f"We could show for no part of the rows that judge and people agree on {target}: read "
            "all of them, or label more."
        )
    sheet = f" ({escalated.sheet})" if escalated.sheet else ""
    return (
        f"The judge keeps {percent(escalated.share)} of the rows, where it agrees with people in "
        f"{in_percent(escalated.agreement)}, shown to be {target} or more; a person reads the other "
        f"{count(escalated.n_rows)}{sheet}."
    )
