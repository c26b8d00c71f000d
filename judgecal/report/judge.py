"""The documents of `judge`: what a lock passes and what that rate is not; of a suite what each judge passes,
who of them was held against people, and what is missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from judgecal.errors import InputError
from judgecal.experiment import Experiment
from judgecal.production.judge_counts import ColumnRate
from judgecal.production.results import JudgeResult, SuiteResult
from judgecal.records import Headline
from judgecal.report.charts import (
    Axis,
    hundred,
    in_percent,
    interval_picture,
    one_less,
    said_in_words,
    share_row,
)
from judgecal.report.document import Document, Hundred, Section, section, stored_document, table
from judgecal.report.explorer import Explorer, ExplorerRow, Said
from judgecal.report.numbers import DASH, count, count_of, estimate, money
from judgecal.report.wording import failures_in_words, fitting, in_a_row, sentence, sentences
from judgecal.stats.error_rates import carried_rate
from judgecal.tables import Row, open_table
from judgecal.workspace import Workspace

_SHOWN = 500  # rows of the output that are shown
_VERDICTS = ("share", "verdict", "rating")  # what a verdict is called, of rows and of chunks
_WORST = ("unscored", "fail", "no")  # verdicts that come first
_CHIPS = 8  # verdicts at most that have a filter each
_SHARE_OF = {"rating": "rows", "precision": "chunks", "share": "its scale"}
_PASSES = {"rating": "of the rows pass", "precision": "of a row's chunks pass", "share": "on average"}
_TRIED_AGAIN = "The same command tries lost connections again; --retry-unscored tries the others again"
_UNSCORED = "Without a verdict, and left out above"


def judge_report(_workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The stored document of `judge`, with rows of its output."""
    if "suite" in experiment.config:
        suite = experiment.read_summary(SuiteResult)
        return replace(suite_document(suite), explorer=_explorer(suite))
    result = experiment.read_summary(JudgeResult)
    return replace(judge_document(result), explorer=_explorer(result))


def _judged(result: JudgeResult | SuiteResult) -> str:
    return f"{result.experiment} · {count_of(result.n, 'row')} of {result.input}, judged by"


def _notes(result: JudgeResult | SuiteResult, no_model: str) -> list[str]:
    usd = f"USD per 1,000 rows: {money(result.usd_per_1k)}; paid: {money(result.usd)}."
    return [f"{usd} Model: {', '.join(result.model_ids) or no_model}.", *map(sentence, result.notes)]


# --- one lock


def judge_document(result: JudgeResult) -> Document:
    """What a table judged by a lock comes to."""
    mark = "" if result.pass_at is None else f", pass at {result.pass_at:g}"
    rate = result.rates[result.judge]
    unscored = table(
        rate.unscored.items(),
        {"why": lambda row: failures_in_words(dict([row])), "rows": lambda row: count(row[1])},
        title=_UNSCORED,
        short=True,
    )
    shares = "the shares of words add up to 100%" if rate.words else "averages are of raw verdicts"
    return stored_document(
        result,
        f"{result.experiment}: rows judged",
        f"{_judged(result)} {result.judge} ({result.lock}){mark}; rows with their verdicts: {result.output}",
        _lock_headline(result),
        _rates(
            {**{name or "(none named)": of for name, of in result.systems.items()}, "all": rate},
            "system",
            "By system" if result.systems else "What passes",
            f"Each share has its own interval by question and leaves out rows without a verdict; {shares}.",
        ),
        _rate(result) if not rate.words else None,
        result.n_unscored > 0
        and section(
            "unscored",
            "Unscored, and why",
            f"{_TRIED_AGAIN}. The column {result.columns['error']} of {result.output} has the reason of each "
            "row.",
            unscored,
        ),
        notes=_notes(result, "unknown"),
        hundred=_hundred(result),
        short=True,
    )


def _hundred(result: JudgeResult) -> Hundred | None:
    """At the share that is right if the judge errs as when it was locked; None where that is not known."""
    rate, right_of, wrong_of = result.rates[result.judge].shown, result.sensitivity, result.specificity
    if right_of is None or wrong_of is None:
        return None
    right = carried_rate(rate, right_of, wrong_of).estimate
    if right.value is None or right.low is None:
        return None
    share = f"then {in_percent(right)} of these answers are right."
    note = f"If it errs here as on {result.gold.set}, where it was locked; {share}"
    return hundred(result.judge, right.value, one_less(right_of), one_less(wrong_of), note=note)


def _lock_headline(result: JudgeResult) -> Headline:
    """What passes; and that it is the judge's rate and not the people's."""
    rate, words = result.rates[result.judge].shown, result.rates[result.judge].shares
    known, unscored = rate.value is not None, count(result.n_unscored)
    kind, says, beside = "no rate", "No rate to read.", f"{sentence(str(rate.reason))}" * (not words)
    if known or words:
        kind, own = ("calibrated rate", "calibrated") if result.mapped else ("raw rate", "own")
        says = f"{in_percent(rate)} of the answers pass by the judge's {own} verdicts."
        beside = "That is not the share that people would pass."
    if words:
        says, beside = f"{said_in_words(words)} by the judge's own verdicts.", "They are not people's."
    if result.warning:
        says, beside = "Do not use this judge.", sentence(result.warning)
    share = next(iter(words.values()), rate)
    unknown = sentences(
        share.value is not None and bool(share.reason) and f"How sure that is: {share.reason}.",
        result.n_unscored > 0
        and f"What the {unscored} unscored rows are worth: they are in no rate, and need not be like "
        "the others.",
        len(result.systems) > 1
        and "Whether systems differ: they are shown side by side and were not compared on the same "
        "questions.",
        f"Whether it agrees with people on these rows as on {result.gold.set}, where it was tested: nobody "
        "labelled them.",
    )
    n_groups = count_of((share if words else result.rates[result.judge].average).n_groups, "question")
    # correct the rate; where there is none that could be, see whether the lock still holds
    in_parts = "://" in result.output or Path(result.output).is_dir()  # which `rate` does not read
    correct = known and not in_parts and {"question", "answer"} <= result.named.keys()
    command = ["rate", result.output] if correct else ["gate"]
    following = shlex.join(["judgecal", *command, "--lock", result.lock])
    because, more = fitting(beside, f"{unscored} of {count(result.n)} unscored; {n_groups}.")
    return Headline(kind, says, because, unknown, following, more=more)


def _rate(result: JudgeResult) -> Section:
    rate = result.rates[result.judge]
    shares = {
        "calibrated rate, here": rate.calibrated if result.mapped else None,
        "raw rate, here": rate.raw,
        "sensitivity, at lock time": result.sensitivity,
        "specificity, at lock time": result.specificity,
    }
    known = [(name, share) for name, share in shares.items() if share is not None]
    return section(
        "rate",
        "What the rate is not",
        "It is not the share that people would pass. A judge of low sensitivity lowers it, a judge of "
        "low specificity raises it, and by how much depends on the share of good answers.",
        table(
            known,
            {
                "": lambda row: row[0],
                "share": lambda row: in_percent(row[1]) if row[1].n else row[1].reason or DASH,
                "n": lambda row: count(row[1].n),
                "unscored": lambda row: count(row[1].n_unscored),
            },
        ),
    )


def _explorer(result: JudgeResult | SuiteResult) -> Explorer | None:
    """The first rows of the output, those without a verdict and those that fail first; None where it is gone
    or can no longer be read.
    """
    path = Path(result.output)
    if path.is_dir():  # of several files the first one
        path = min((file for file in path.iterdir() if file.name[0] not in "._"), default=path)
    try:
        pieces = open_table(path).pieces(_SHOWN) if path.is_file() else iter(())
        lines = next(iter(pieces)).rows[:_SHOWN]
    except (InputError, StopIteration):
        return None
    judges = dict(result.columns) if isinstance(result, SuiteResult) else {result.judge: result.columns}

    def rank(row: ExplorerRow) -> list[int]:
        """Where the verdict of each judge stands: none, failed, another."""
        verdicts = [said.verdict for said in row.said if said]
        return sorted(_WORST.index(one) if one in _WORST else len(_WORST) for one in verdicts)

    rows = sorted((_row(result, judges, line) for line in lines), key=rank)
    verdicts = sorted({mark for row in rows for mark in row.marks})
    first, who = "The first " * (len(rows) < result.n), "judges see" if len(judges) > 1 else "judge sees"
    return Explorer(
        f"{first}{count(len(rows))} of {count(result.n)} rows as the {who} them",
        rows,
        [*judges],
        {mark: mark.partition(":")[2] for mark in verdicts if len(verdicts) <= _CHIPS * len(judges)},
        heads={"id": "line", "question": "question", "answer": "answer"},
    )


def _row(
    result: JudgeResult | SuiteResult, judges: Mapping[str, Mapping[str, str]], line: Row
) -> ExplorerRow:
    cells, columns = line.cells, {"question": "question", "answer": "answer", **result.named}
    used, said = {*columns.values()}, []
    for parts in judges.values():
        part = {name: cells.get(column, "") for name, column in parts.items()}
        given = next((part[name] for name in _VERDICTS if part.get(name)), "")
        verdict = {"true": "pass", "false": "fail"}.get(part.get("passed", "").lower(), given) or "unscored"
        why = part.get("reasoning", part.get("rationale", ""))
        said.append(Said(verdict, given * (given != verdict), part.get("error", ""), why))
        used |= {*parts.values()}
    several = len(judges) > 1
    return ExplorerRow(
        str(line.line),
        cells.get(columns["question"], ""),
        cells.get(columns["answer"], ""),
        further=[(name, text) for name, text in cells.items() if text and name not in used],
        said=said,
        marks=[
            f"verdict:{f'{judge}: ' * several}{one.verdict}" for judge, one in zip(judges, said, strict=True)
        ],
    )


# --- a suite


def suite_document(result: SuiteResult) -> Document:
    """What a table judged by a suite comes to."""
    rule, unlocked = "none: a rule checks itself", "none: nobody knows whether it agrees with people"
    left_out = table(
        result.left_out, {"judge": lambda row: row.name, "why": lambda row: row.why}, left=2, short=True
    )
    judges = table(
        result.judges,
        {
            "judge": lambda row: row.name,
            "its string": lambda row: row.judge,
            "lock": lambda row: row.lock or (rule if row.kind == "local" else unlocked),
        },
        left=3,
    )
    unscored = table(
        [(name, kind, n) for name, rate in result.rates.items() for kind, n in rate.unscored.items()],
        {
            "judge": lambda row: row[0],
            "why": lambda row: failures_in_words({row[1]: row[2]}),
            "verdicts": lambda row: count(row[2]),
        },
        left=2,
        title=_UNSCORED,
    )
    metrics = table(
        result.metrics.items(),
        {
            "metric": lambda row: row[0],
            "value": lambda row: estimate(row[1]),
            "n": lambda row: count(row[1].n),
            "unscored": lambda row: count(row[1].n_unscored),
        },
        title="Metrics of the run",
    )
    return stored_document(
        result,
        f"{result.experiment}: rows judged by a suite",
        f"{_judged(result)} {count_of(len(result.judges), 'judge')} of suite {result.suite}; rows with their "
        f"verdicts: {result.output}",
        _suite_headline(result),
        _rates(
            result.rates,
            "judge",
            "What each judge passes",
            "What to look at first? Each share has an interval by question and leaves out rows without a "
            'verdict; for a judge of chunks, "unscored" counts rows and chunks without a verdict.',
        ),
        bool(result.left_out)
        and section(
            "left_out",
            "Judges left out",
            "Why a column is missing: a judge runs only where some row has all that it asks for.",
            left_out,
        ),
        section(
            "judges",
            "The judges, and which of them were compared with people",
            "A judge without a lock was never compared with people: nobody knows what its rate is worth.",
            judges,
        ),
        result.n_unscored > 0
        and section(
            "unscored",
            "Unscored, and why",
            f"{_TRIED_AGAIN}. {result.output} has the reason of each row, by judge.",
            unscored,
        ),
        section("names", "Metrics by name", "For a dashboard that knows these names.", metrics),
        notes=_notes(result, "none"),
        short=True,
    )


def _suite_headline(result: SuiteResult) -> Headline:
    """Where to look first; and that the rates are the judges' own and not the people's."""
    rates = result.rates
    known = {name: rate.shown for name, rate in rates.items() if rate.shown.value is not None}
    worded = [(name, rate.shares) for name, rate in rates.items() if rate.shares]
    kind, says, beside = "raw rates", "No rate to read", ""
    if known:
        lowest = min(known, key=lambda name: known[name].value or 0.0)
        own = "own" if rates[lowest].calibrated.value is None else "calibrated"
        rate = f"{in_percent(known[lowest])} {_PASSES[rates[lowest].aggregate]}"
        says, beside = f"By {lowest}, {rate}", f"By its {own} verdicts, which are not people's."
        if known[lowest].value == 1.0 and len(known) > 1:
            says = f"All {len(known)} judges pass whatever they scored"
        elif len(known) > 1 and len({estimate.value for estimate in known.values()}) == 1:
            says = f"All {len(known)} judges pass the same share"
            beside = f"By their {own} verdicts, {rate}."
        elif len(known) > 1:
            says = f"Look at {lowest} first, the lowest of {len(known)} judges"
            beside = f"By its {own} verdicts, {rate}."
    elif worded:
        name, shares = worded[0]
        says, beside = f"{said_in_words(shares)} by {name}", "These are the judge's verdicts, not people's."
    else:
        kind = "no rate"
    n_groups = (share.n_groups for rate in rates.values() for share in (rate.raw, *rate.shares.values()))
    left_out = f"; left out: {in_a_row([judge.name for judge in result.left_out])}" if result.left_out else ""
    scope = (
        f"{count(result.n_unscored)} of {count(result.n)} rows lack a verdict from some judge; "
        f"{count_of(max(n_groups, default=0), 'question')}{left_out}."
    )
    few = next((rate.reason for rate in known.values() if rate.reason), None)
    unknown = sentences(
        "What share people would pass: each rate is its judge's, and its errors are in it.",
        few and f"How sure the rates are: {few}.",
        result.n_unscored > 0
        and "What the unscored rows are worth: they are in no rate, and need not be like the others.",
    )
    because, more = fitting(beside, _of_unlocked(result), scope)
    return Headline(kind, f"{says}.", because, unknown, _after_suite(result), more=more)


def _of_unlocked(result: SuiteResult) -> str:
    unlocked, fallible = result.unlocked, [judge for judge in result.judges if judge.kind != "local"]
    if not unlocked:
        return "Every judge that can be wrong has a lock, so it was compared with labels."
    who = in_a_row([judge.name for judge in unlocked])
    if len(unlocked) == len(fallible) > 1:
        who = "these judges"
    agree = "agree" if len(unlocked) > 1 else "agrees"
    return f"Nobody knows whether {who} {agree} with people: no lock says so."


def _after_suite(result: SuiteResult) -> str:
    """See how the judges do; where each has a lock, see whether the first still holds."""
    if result.unlocked:
        return "judgecal judges"
    locks = [judge.lock for judge in result.judges if judge.lock is not None]
    if not locks:
        return f"judgecal report {result.experiment} --open"
    return shlex.join(["judgecal", "gate", "--lock", locks[0]])


def _rates(rates: Mapping[str, ColumnRate], what: str, title: str, caption: str) -> Section:
    """The shares of judges, or of systems by one judge, and of the words where verdicts are words."""
    rows = [
        share_row(name, rate.shown, strong=name == "all")
        for name, rate in rates.items()
        if rate.shown.value is not None
    ]
    axis = Axis("% by the judges' verdicts", low=0.0, high=100.0)
    level = next((rate.raw.level for rate in rates.values()), 0.95)
    mapped = any(rate.calibrated.value is not None for rate in rates.values())

    def graded(rate: ColumnRate) -> bool:  # its mean verdict says more than its share
        return rate.aggregate == "rating" and rate.scale != "binary"

    def average(row: tuple[str, ColumnRate]) -> str:
        return estimate(row[1].average, 2) if graded(row[1]) else DASH

    passing = table(
        rates.items(),
        {
            what: lambda row: row[0],
            f"share ({100 * level:.4g}% interval)": lambda row: in_percent(row[1].shown),
            "raw": (lambda row: in_percent(row[1].raw)) if mapped else None,
            "rows": lambda row: f"{count(row[1].n)}/{count(row[1].n_expected)}",
            "unscored": lambda row: count(row[1].n_unscored + row[1].n_chunks_unscored),
            "raw average": average if any(map(graded, rates.values())) else None,
            "share of": (lambda row: _SHARE_OF[row[1].aggregate]) if what == "judge" else None,
        },
        title="Rates",
        short=True,
    )
    words = [(name, rate, word) for name, rate in rates.items() for word in rate.words]
    verdicts = table(
        words,
        {
            what: lambda row: row[0],
            "verdict": lambda row: row[2],
            f"share ({100 * level:.4g}% interval)": lambda row: (
                in_percent(row[1].shares[row[2]]) if row[2] in row[1].shares else DASH
            ),
            "verdicts": lambda row: count(row[1].words[row[2]]),
        },
        left=2,
        title="Verdicts that are words",
        short=True,
    )
    return section(
        "rates",
        title,
        caption,
        bool(rows) and interval_picture(rows, axis, title=title),
        passing,
        bool(words) and verdicts,
    )
