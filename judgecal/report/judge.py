"""The document of `judge`: what each judge passes, which of them was held against people, what is missing."""

from __future__ import annotations

import shlex
from pathlib import Path

from judgecal.production.results import ColumnRate, JudgeResult
from judgecal.records import Headline
from judgecal.report.charts import Axis, in_percent, interval_picture, share_row, word_shares_text
from judgecal.report.document import Document, Section, section, stored_document, table
from judgecal.report.wording import (
    DASH,
    count,
    count_of,
    estimate,
    failures_in_words,
    fitting,
    in_a_row,
    money,
    sentence,
    sentences,
)

_SHARE_OF = {"rating": "rows", "precision": "chunks", "share": "its scale"}
_PASSES = {"rating": "of the answers pass", "precision": "of a row's chunks pass", "share": "on average"}


def judge_document(result: JudgeResult) -> Document:
    """Lay out a JudgeResult, a table judged by a lock or a suite, as a Document."""
    who = f"{count_of(len(result.judges), 'judge')} of suite {result.suite}"
    if result.lock is not None:
        who = f"{result.judges[0].judge} ({result.lock})"
    rows = f"{result.experiment} · {count_of(result.n, 'row')} of {result.input}"
    unscored = table(
        [(name, kind, n) for name, rate in result.rates.items() for kind, n in rate.unscored.items()],
        {
            "judge": lambda row: row[0],
            "why": lambda row: failures_in_words({row[1]: row[2]}),
            "verdicts": lambda row: count(row[2]),
        },
        left=2,
        title="Without a verdict, and left out above",
        short=True,
    )
    usd = f"Paid: {money(result.usd)} USD."
    return stored_document(
        result,
        f"{result.experiment}: rows judged",
        f"{rows}, judged by {who}; rows with their verdicts: {result.output}",
        _headline(result),
        _rates(result),
        result.n_unscored > 0
        and section(
            "unscored",
            "Unscored, and why",
            "The same command tries lost connections again; --retry-unscored tries the others again. "
            f"{result.output} has the reason of each row, by judge.",
            unscored,
        ),
        _judges(result),
        notes=sentences(
            f"{usd} Model: {', '.join(result.model_ids) or 'none'}.",
            (f"{judge.name} is left out: {judge.why}." for judge in result.left_out),
            map(sentence, result.notes),
        ),
        short=True,
    )


# --- the headline


def _headline(result: JudgeResult) -> Headline:
    """What passes, and where to look first; and that the rates are the judges' own and not the people's."""
    rates = result.rates
    shares_passed = {name: rate.shown for name, rate in rates.items() if rate.shown.value is not None}
    worded = {name: rate.shares for name, rate in rates.items() if rate.shares}
    kind, what = "no rate", "No rate to read."
    beside = " ".join(sentence(reason) for rate in rates.values() if (reason := rate.shown.reason))
    if shares_passed:
        lowest = min(shares_passed, key=lambda name: shares_passed[name].value or 0.0)
        footing = "raw" if rates[lowest].calibrated.value is None else "calibrated"
        passes = f"{in_percent(shares_passed[lowest])} {_PASSES[rates[lowest].aggregate]}"
        judge = "the judge" if len(rates) == 1 else lowest
        kind, what = f"{footing} rate", f"{passes} by {judge}'s {footing} verdicts."
        beside = "That is not the share that people would pass."
        if len(shares_passed) > 1:
            what = f"Look at {lowest} first, the lowest of {len(shares_passed)} judges."
            beside = f"By its {footing} verdicts {passes}. {beside}"
    elif worded:
        name, shares = next(iter(worded.items()))
        kind, what = "raw rate", f"{word_shares_text(shares)}, says {name}."
        beside = "These are not people's verdicts."
    warned = next((judge for judge in result.judges if judge.warning), None)
    if warned is not None:
        what, beside = f"Do not use {warned.name}.", sentence(str(warned.warning))
    first = next((shares[word] for shares in worded.values() for word in shares), None)
    uncertain = next((rate.reason for rate in (*shares_passed.values(), first) if rate and rate.reason), None)
    n_groups = max(rate.average.n_groups for rate in rates.values()) if first is None else first.n_groups
    left_out = f"; left out: {in_a_row([judge.name for judge in result.left_out])}" if result.left_out else ""
    scope = f"{count(result.n_unscored)} of {count(result.n)} unscored; {count_of(n_groups, 'question')}"
    unknown = sentences(
        uncertain and f"How sure that is: {uncertain}.",
        result.n_unscored > 0
        and f"What the {count(result.n_unscored)} unscored rows are worth: they are in no rate, and need not "
        "be like the others.",
        result.judges[0].gold is not None
        and f"Whether it agrees with people here as on {result.judges[0].gold.set}, where it was tested: "
        "nobody labelled these rows.",
    )
    who = in_a_row([judge.name for judge in result.unlocked])
    unheld = f"Nobody knows whether {who} would agree with people: no lock says so." if who else ""
    because, more = fitting(beside, unheld, f"{scope}{left_out}.")
    return Headline(kind, what, because, unknown, _after(result, corrects=bool(shares_passed)), more=more)


def _after(result: JudgeResult, *, corrects: bool) -> str:
    """Correct the rate of a lock; see whether a lock still holds; without one, what could judge else."""
    locks = [judge.lock for judge in result.judges if judge.lock is not None]
    if result.unlocked or not locks:
        return "judgecal judges"
    in_parts = "://" in result.output or Path(result.output).is_dir()  # which `rate` does not read
    if result.lock and corrects and not in_parts and {"question", "answer"} <= result.named.keys():
        return shlex.join(["judgecal", "rate", result.output, "--lock", result.lock])
    return shlex.join(["judgecal", "gate", "--lock", locks[0]])


# --- sections


def _judges(result: JudgeResult) -> Section:
    """Each judge with its lock."""
    rule, unlocked = "none: a rule checks itself", "none: nobody knows whether it agrees with people"
    judges = table(
        result.judges,
        {
            "judge": lambda judge: judge.judge,
            "lock": lambda judge: judge.lock or (rule if judge.kind == "local" else unlocked),
        },
        left=2,
    )
    return section(
        "judges",
        "The judges, and which of them were compared with people",
        "A rate is not the share that people would pass: rate corrects it by the error rates of a lock, "
        "which stand on its card. Of a judge without a lock nobody knows them.",
        judges,
    )


def _rates(result: JudgeResult) -> Section:
    """The shares that pass by judge, and the shares of words where verdicts are words."""
    rates = result.rates
    rows = [
        share_row(name, rate.shown, strong=len(rates) == 1)
        for name, rate in rates.items()
        if rate.shown.value is not None
    ]
    level = next((rate.raw.level for rate in rates.values()), 0.95)
    mapped = any(rate.calibrated.value is not None for rate in rates.values())

    def graded(rate: ColumnRate) -> bool:  # its mean verdict says more than its share
        return rate.aggregate == "rating" and rate.scale != "binary"

    def average(row: tuple[str, ColumnRate]) -> str:
        return estimate(row[1].average, 2) if graded(row[1]) else DASH

    passing = table(
        rates.items(),
        {
            "judge": lambda row: row[0],
            f"share ({100 * level:.4g}% interval)": lambda row: in_percent(row[1].shown),
            "raw": (lambda row: in_percent(row[1].raw)) if mapped else None,
            "rows": lambda row: f"{count(row[1].n)}/{count(row[1].n_expected)}",
            "unscored": lambda row: count(row[1].n_unscored + row[1].n_chunks_unscored),
            "raw average": average if any(map(graded, rates.values())) else None,
            "share of": (lambda row: _SHARE_OF[row[1].aggregate]) if result.suite else None,
        },
        short=True,
    )
    words = [(name, word, share) for name, rate in rates.items() for word, share in rate.shares.items()]
    verdicts = table(
        words,
        {
            "judge": lambda row: row[0],
            "verdict": lambda row: row[1],
            f"share ({100 * level:.4g}% interval)": lambda row: in_percent(row[2]),
            "verdicts": lambda row: count(round((row[2].value or 0.0) * row[2].n)),
        },
        left=2,
        title="Verdicts that are words",
        short=True,
    )
    axis = Axis("% by the judges' verdicts", low=0.0, high=100.0)
    return section(
        "rates",
        "What passes",
        "Each share has its own interval by question and leaves out rows without a verdict.",
        bool(rows) and interval_picture(rows, axis, title="What passes"),
        passing,
        bool(words) and verdicts,
    )
