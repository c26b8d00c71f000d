"""The document of `judge --suite`: what each judge passes, who of them was held against people, and what is
missing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from judgecal.production.suite_result import SuiteRate, SuiteResult, ToLabel
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.document import Block, Document, Section, Table, from_summary, notes_section
from judgecal.report.intervals import Axis, in_percent, interval_picture, said_in_words, share_row
from judgecal.report.wording import in_a_row, sentence

_OF = {"rating": "rows", "precision": "chunks", "share": "its scale"}
_SAID = {"rating": "of the rows pass", "precision": "of a row's chunks pass", "share": "on average"}
_WORDS = (
    (
        "share",
        "Of the rows with a verdict, the share that passes, through the lock's map where the judge has one.",
    ),
    (
        "precision",
        "Of a row's chunks that have a verdict, the share that passes; here its mean over the rows.",
    ),
    ("average", "The mean verdict on the judge's own scale."),
    ("unscored", "No verdict could be had or read. It is in no rate, and its row says why."),
    (
        "lock",
        "A judge that was held against people's labels and confirmed once, with all that it takes to run it again.",
    ),
)


def suite_document(result: SuiteResult) -> Document:
    """What a table judged by a suite comes to."""
    return Document(
        title=f"{result.experiment}: rows judged by a suite",
        about=(
            f"{result.experiment} · {numbers.count_of(result.n, 'row')} of {result.input}, judged by "
            f"{numbers.count_of(len(result.judges), 'judge')} of suite {result.suite}; rows with their verdicts: "
            f"{result.output}"
        ),
        headline=_headline(result),
        sections=[
            _rates(result),
            *([_left_out(result)] if result.left_out else []),
            _judges(result),
            *([_unscored(result)] if result.n_unscored else []),
            _names(result),
            *notes_section([*_notes(result)], words=_WORDS, short=True),
        ],
        **from_summary(result),
    )


def _headline(result: SuiteResult) -> Headline:
    """Where to look first; and that the rates are the judges' own and not the people's."""
    known = {name: rate.shown for name, rate in result.rates.items() if rate.shown.value is not None}
    if not known:
        because = (_of_unlocked(result), _scope(result))
        worded = {name: rate.shares for name, rate in result.rates.items() if rate.shares}
        name, shares = next(iter(worded.items()), ("", {}))
        kind, say = "no rate", "No rate to read."
        if shares:
            kind, say = (
                "raw rates",
                f"{said_in_words(shares)} by the verdicts of {name}, which are not people's.",
            )
        return Headline(kind, say, because, tuple(_unknown(result)), _next(result))
    lowest = min(known, key=lambda name: known[name].value or 0.0)
    rate = f"{in_percent(known[lowest])} {_SAID[result.rates[lowest].aggregate]}"
    own = "calibrated" if result.rates[lowest].calibrated.value is not None else "own"
    say = f"By the {'calibrated ' * (own == 'calibrated')}verdicts of {lowest}, {rate}"
    if known[lowest].value == 1.0 and len(known) > 1:
        say = f"All {len(known)} judges pass whatever they scored"
    elif len(known) > 1 and len({one.value for one in known.values()}) == 1:
        say = f"All {len(known)} judges pass the same share: by their {own} verdicts {rate}"
    elif len(known) > 1:
        say = f"Look at {lowest} first, the lowest of {len(known)}: by its {own} verdicts {rate}"
    return Headline(
        "raw rates", f"{say}.", (_of_unlocked(result), _scope(result)), tuple(_unknown(result)), _next(result)
    )


def _of_unlocked(result: SuiteResult) -> str:
    unlocked, asked = result.unlocked, [one for one in result.judges if one.kind != "local"]
    if not unlocked:
        return "Every judge that can be wrong has a lock: it was held against labels."
    label = f"; people's labels could tell of {result.to_label.name} first" if result.to_label else ""
    who = "these judges" if len(unlocked) == len(asked) > 1 else in_a_row([one.name for one in unlocked])
    return f"Nobody knows whether {who} {'agree' if len(unlocked) > 1 else 'agrees'} with people: no lock says so{label}."


def _scope(result: SuiteResult) -> str:
    groups = max(
        (one.n_groups for rate in result.rates.values() for one in (rate.raw, *rate.shares.values())),
        default=0,
    )
    unscored = f"{numbers.count(result.n_unscored)} of {numbers.count(result.n)} rows are unscored in part"
    left_out = f"; left out: {in_a_row([one.name for one in result.left_out])}" if result.left_out else ""
    return f"{unscored}; {numbers.count_of(groups, 'question')}{left_out}."


def _unknown(result: SuiteResult) -> Iterator[str]:
    """What weighs most comes first."""
    yield "What share people would pass: each rate is its judge's, and its errors are in it."
    few = next(
        (
            rate.shown.reason
            for rate in result.rates.values()
            if rate.shown.value is not None and rate.shown.reason
        ),
        "",
    )
    if few:
        yield f"How sure the rates are: {few}."
    if result.n_unscored:
        yield "What the unscored rows are worth: they are in no rate, and need not be like the others."


def _next(result: SuiteResult) -> str:
    """Have people label rows for a judge that has no lock; else see whether the first lock still holds."""
    if result.to_label is not None:
        return _sheet(result, result.to_label)
    if result.unlocked:
        return "judgecal judges"
    locks = [one.lock for one in result.judges if one.lock is not None]
    return (
        f"judgecal gate --lock {shlex.quote(locks[0])}"
        if locks
        else f"judgecal report {result.experiment} --open"
    )


def _sheet(result: SuiteResult, label: ToLabel) -> str:
    """The command that draws rows of the table for people to label; the sheet is named after the judge."""
    name = re.sub(r"[^a-z0-9]+", "-", label.name.lower()).strip("-") or "judge"
    words = ["judgecal", "gold", "sheet", result.input, "-o", f"{name}-labels.csv", "-n", str(label.n)]
    words += ["--scale", label.scale]
    words += [word for option, column in label.columns.items() for word in (f"--{option}", column)]
    return shlex.join(words)


def _rates(result: SuiteResult) -> Section:
    rows = [
        share_row(name, rate.shown, strong=False)
        for name, rate in result.rates.items()
        if rate.shown.value is not None
    ]
    blocks: list[Block] = []
    if rows:
        axis = Axis("% by the judges' verdicts", low=0.0, high=100.0)
        blocks.append(interval_picture(rows, axis, title="What each judge passes"))
    level = next((rate.raw.level for rate in result.rates.values()), 0.95)
    graded = any(_is_graded(rate) for rate in result.rates.values())
    mapped = any(rate.calibrated.value is not None for rate in result.rates.values())
    header = ["judge", f"share [{level:.4g}]", *(["raw"] * mapped), "rows", "unscored"]
    header += [*(["raw average"] * graded), "share of"]
    cells = [
        [name, in_percent(rate.shown), *([in_percent(rate.raw)] * mapped),
         f"{numbers.count(rate.n)}/{numbers.count(rate.n_expected)}",
         numbers.count(rate.n_unscored + rate.n_chunks_unscored), *([_average(rate)] * graded), _OF[rate.aggregate]]
        for name, rate in result.rates.items()
    ]  # fmt: skip
    blocks.append(Table(header, cells, title="Rates", short=True))
    words = [
        [name, word, in_percent(rate.shares[word]) if word in rate.shares else numbers.DASH, numbers.count(n)]
        for name, rate in result.rates.items()
        for word, n in rate.words.items()
    ]
    if words:
        titles = ["judge", "verdict", f"share [{level:.4g}]", "verdicts"]
        blocks.append(Table(titles, words, left=2, title="Verdicts that are words", short=True))
    caption = (
        "Serves the question what to look at first. A share has an interval by question and leaves unscored rows out; "
        "of a judge of chunks, unscored counts its rows and chunks without a verdict."
    )
    return Section("rates", "What each judge passes", caption, blocks)


def _is_graded(rate: SuiteRate) -> bool:
    """Whether its mean verdict says more than its share."""
    return rate.aggregate == "rating" and rate.scale != "binary"


def _average(rate: SuiteRate) -> str:
    return numbers.estimate(rate.average, 2) if _is_graded(rate) else numbers.DASH


def _left_out(result: SuiteResult) -> Section:
    rows = [[one.name, one.why] for one in result.left_out]
    caption = "Serves whoever misses a column: a judge runs where some row has all that it asks for."
    return Section(
        "left_out", "Judges left out", caption, [Table(["judge", "why"], rows, left=2, short=True)]
    )


def _judges(result: SuiteResult) -> Section:
    rows = [[one.name, one.judge, one.lock or _WITHOUT[one.kind == "local"]] for one in result.judges]
    caption = (
        "Serves whoever reports a rate: a judge without a lock was never held against people here, so nobody knows "
        "what its rate is worth."
    )
    return Section("judges", "The judges, and who was held against people", caption, [
        Table(["judge", "its string", "lock"], rows, left=3)
    ])  # fmt: skip


_WITHOUT = {
    True: "none: a rule, which is what it says",
    False: "none: nobody knows whether it agrees with people",
}


def _unscored(result: SuiteResult) -> Section:
    rows = [
        [name, kind, numbers.count(n)]
        for name, rate in result.rates.items()
        for kind, n in rate.unscored.items()
    ]
    caption = (
        "Serves the next run: transport errors and the like are tried again by the same command, the others with "
        f"--retry-unscored; input says that the row lacks what the judge asks for. {result.output} has the reason of "
        "each row in the judge's column of errors."
    )
    table = Table(["judge", "why", "verdicts"], rows, left=2, title="Unscored, and in no number above")
    return Section("unscored", "Unscored, and why", caption, [table])


def _names(result: SuiteResult) -> Section:
    columns = [
        [name, part, column] for name, parts in result.columns.items() for part, column in parts.items()
    ]
    metrics = [
        [name, numbers.estimate(found), numbers.count(found.n), numbers.count(found.n_unscored)]
        for name, found in result.metrics.items()
    ]
    caption = f"Serves whoever reads {result.output}, or has a dashboard that knows these names."
    return Section("names", "Columns and metrics by name", caption, [
        Table(["metric", "value", "n", "unscored"], metrics, title="Metrics of the run"),
        Table(["judge", "part", "column"], columns, left=3, title="Columns of the output"),
    ])  # fmt: skip


def _notes(result: SuiteResult) -> Iterator[str]:
    usd = f"USD per 1,000 rows: {numbers.money(result.usd_per_1k)}; paid: {numbers.money(result.usd)}."
    yield f"{usd} Model: {', '.join(result.model_ids) or 'none'}."
    yield from map(sentence, result.notes)
