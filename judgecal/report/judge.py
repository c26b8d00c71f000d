"""The document of `judge`: what passes, what that rate is not, by system, and what has no verdict."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from judgecal.errors import InputError
from judgecal.production.judge_result import JudgeResult
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Document,
    Heading,
    Paragraph,
    Record,
    Section,
    Table,
    from_summary,
    notes_section,
)
from judgecal.report.intervals import (
    Axis,
    in_percent,
    interval_picture,
    said_in_words,
    share_blocks,
    share_row,
)
from judgecal.report.wording import sentence
from judgecal.selection.pass_rates import SystemRates
from judgecal.tables import Row, open_source
from judgecal.tables.partitions import ENDINGS

_EXAMPLES = 3  # rows of each verdict that are shown
_SEARCHED = 2_000  # rows of the output that they are taken from
_WORDS = (
    ("raw rate", "Share of the verdicts that pass, as the judge gave them: its own errors are in it."),
    (
        "calibrated rate",
        "The share that passes once verdicts went through the lock's map: its errors are in it too.",
    ),
    ("sensitivity", "Of what people pass, the share that the judge passes; measured when it was locked."),
    ("specificity", "Of what people fail, the share that the judge fails; measured when it was locked."),
    ("unscored", "No verdict could be had or read. It is in no rate, and its row says why."),
)


def judge_document(result: JudgeResult, examples: Sequence[Row] | None = None) -> Document:
    """What a judged table comes to; `examples` are rows of its output, None where it was not read."""
    mark = "" if result.pass_at is None else f", pass at {result.pass_at:g}"
    return Document(
        title=f"{result.experiment}: answers judged",
        about=(
            f"{result.experiment} · {numbers.count_of(result.n, 'row')} of {result.input}, judged by {result.judge} "
            f"({result.lock}){mark}; rows with their verdicts: {result.output}"
        ),
        headline=_headline(result),
        sections=[
            _systems(result),
            _not_of_people(result) if result.overall.intervals.words else _rate(result),
            *([_unscored(result)] if result.n_unscored else []),
            *([] if examples is None else [_examples(result, examples)]),
            *notes_section([*_notes(result)], words=_WORDS, short=True),
        ],
        **from_summary(result),
    )


def _headline(result: JudgeResult) -> Headline:
    """What passes; and that it is the judge's rate and not the people's."""
    words = result.overall.intervals.words
    known = _rated(result).value is not None or bool(words)
    own = "calibrated" if result.mapped else "own"
    scope = (
        f"{numbers.count(result.n_unscored)} of {numbers.count(result.n)} unscored; "
        f"{numbers.count_of(next(iter(words.values()), result.overall.intervals.average).n_groups, 'question')}."
    )
    rate = f"{in_percent(_rated(result))} of the answers pass by the judge's {own} verdicts"
    act = f"{rate}, which is not the share that people would pass." if known else "No rate to read."
    if words:
        act = f"{said_in_words(words)} by the judge's own verdicts, which are not people's."
    if result.warning:
        act = f"Warning: do not use this judge: {result.warning}."
    kind = "no rate" if not known else "calibrated rate" if result.mapped else "raw rate"
    return Headline(kind, act, (sentence(result.note), scope), tuple(_unknown(result)), _next(result))


def _next(result: JudgeResult) -> str:
    """Correct the rate; where there is none that could be, see whether the lock still holds."""
    parts = "://" in result.output or Path(result.output).is_dir()  # which `rate` does not read
    if parts or _rated(result).value is None or not {"question", "answer"} <= result.named.keys():
        return f"judgecal gate --lock {shlex.quote(result.lock)}"
    return f"judgecal rate {shlex.quote(result.output)} --lock {shlex.quote(result.lock)}"


def _rated(result: JudgeResult) -> Estimate:
    return result.overall.intervals.share_passing


def _unknown(result: JudgeResult) -> Iterator[str]:
    """What weighs most comes first."""
    rate = _rated(result)
    if rate.value is not None:
        yield "What share people would pass: the rate is the judge's, and its errors are in it."
    if rate.value is not None and rate.reason:
        yield f"How sure the rate is: {rate.reason}."
    words = [*result.overall.intervals.words.values()]
    if words:
        yield "What shares people would find: they are the judge's own, and its errors are in them."
    if words and words[0].reason:
        yield f"How sure the shares are: {words[0].reason}."
    if result.n_unscored:
        unscored = f"the {numbers.count(result.n_unscored)} unscored rows"
        yield f"What {unscored} are worth: they are in no rate, and need not be like the others."
    if len(result.systems) > 1:
        yield "Whether systems differ: they are shown side by side and were not compared on the same questions."
    yield "Whether the judge still judges as when it was locked: judgecal gate tells."
    tested = f"{result.gold.set}, where it was tested"
    yield f"Whether it agrees with people on these rows as on {tested}: nobody labelled them."


def _named(entry: SystemRates) -> str:
    return entry.system or "(none named)"


def _systems(result: JudgeResult) -> Section:
    """A row for each system, then all."""
    overall = [result.overall]
    entries = overall if [*result.systems] == overall else [*result.systems, *overall]
    rows = [
        share_row(_named(one), one.intervals.share_passing, strong=one is result.overall)
        for one in entries
        if one.intervals.share_passing.value is not None
    ]
    if result.overall.intervals.words:
        return _words(entries)
    blocks: list[Block] = []
    if rows:
        axis = Axis("% of rows that pass", low=0.0, high=100.0)
        blocks.append(
            interval_picture(
                rows, axis, title=f"Pass rate by the judge's {'calibrated ' * result.mapped}verdicts"
            )
        )
    blocks.append(_overview(entries))
    caption = (
        "Serves the question which system to look at first. The pass rate has an interval by question, and leaves "
        "unscored rows out; average and the like are of raw verdicts, on the judge's own scale."
    )
    return Section("systems", "By system", caption, blocks)


def _words(entries: list[SystemRates]) -> Section:
    """What share of the rows each word has: of all rows, then by system."""
    overall = entries[-1]
    shares = [share_row(word, share, strong=False) for word, share in overall.intervals.words.items()]
    header = ["verdict", f"share [{next(iter(overall.intervals.words.values())).level:.4g}]", "rows"]
    cells = [[one, *_word_cells(overall, one)] for one in overall.intervals.words]
    axis = Axis("% of rows with a verdict", low=0.0, high=100.0)
    blocks: list[Block] = [
        interval_picture(shares, axis, title="Share of each verdict as the judge sees it"),
        Table(header, cells, title="Verdicts", short=True),
    ]
    if len(entries) > 1:
        rows = [
            [_named(one), word, *_word_cells(one, word), numbers.count(one.n_unscored)]
            for one in entries[:-1]
            for word in one.intervals.words
        ]
        blocks.append(Table(["system", *header, "unscored"], rows, left=2, title="Verdicts by system"))
    caption = (
        "Serves the question what the answers are like. Each share has an interval by question of its own, and leaves "
        "unscored rows out; the shares add up to 100%, so that where one is larger others are smaller."
    )
    return Section("systems", "Shares of the verdicts", caption, blocks)


def _word_cells(entry: SystemRates, word: str) -> list[str]:
    share = entry.intervals.words[word]
    return [in_percent(share), f"{numbers.count(entry.words[word])}/{numbers.count(entry.n)}"]


def _digits(entries: list[SystemRates]) -> int:
    """So many as show a thousandth of the largest verdict: 3 of 0..1, 1 of 0..100."""
    largest = max(
        (abs(end) for one in entries for end in (one.min, one.max) if end is not None), default=100.0
    )
    return max(0, 3 - math.ceil(math.log10(max(1.0, largest))))


def _overview(entries: list[SystemRates]) -> Table:
    level, digits = entries[-1].intervals.share_passing.level, _digits(entries)
    header = [
        "system",
        f"passing [{level:.4g}]",
        "rows",
        "unscored",
        "average",
        "p50",
        "p90",
        "p95",
        "min",
        "max",
    ]
    rows = [
        [_named(one), in_percent(one.intervals.share_passing),
         f"{numbers.count(one.count)}/{numbers.count(one.n_expected)}", numbers.count(one.n_unscored),
         *(numbers.plain(value, digits) for value in (one.average, one.p50, one.p90, one.p95, one.min, one.max))]
        for one in entries
    ]  # fmt: skip
    return Table(header, rows, title="Overview", short=True, last=1)


def _rate(result: JudgeResult) -> Section:
    shares = [
        *([("calibrated rate, here", _rated(result), True)] if result.mapped else []),
        ("raw rate, here", result.overall.intervals.share_passing_raw, not result.mapped),
    ]
    then = (
        ("sensitivity, at lock time", result.sensitivity),
        ("specificity, at lock time", result.specificity),
    )
    shares += [(name, found, False) for name, found in then if found is not None]
    caption = (
        "Serves whoever reports the rate: it is not the share that people would pass. A judge of low sensitivity "
        "lowers it, one of low specificity raises it, and by how much depends on the share of good answers."
    )
    blocks = share_blocks(shares, Axis("%", low=0.0, high=100.0))
    return Section("rate", "What the rate is not", caption, blocks)


def _not_of_people(result: JudgeResult) -> Section:
    """Of nominal verdicts there is no rate that passes, and nothing yet that corrects their shares."""
    caption = "Serves whoever reports the shares: a judge that takes one word for another moves both of their shares."
    return Section("rate", "What the shares are not", caption, [Paragraph(sentence(result.note))])


def _unscored(result: JudgeResult) -> Section:
    rows = [[kind, numbers.count(n)] for kind, n in result.overall.unscored.items()]
    caption = (
        "Serves the next run: transport errors and the like are tried again by the same command, the others with "
        f"--retry-unscored. The column {result.columns['error']} of {result.output} has the reason of each row."
    )
    table = Table(["why", "rows"], rows, title="Unscored, and in no number above", short=True)
    return Section("unscored", "Unscored, and why", caption, [table])


def example_rows(result: JudgeResult) -> list[Row]:
    """The first rows of the output with each verdict; none where it is gone or can no longer be read."""
    path, found = Path(result.output), dict[str, list[Row]]()
    if path.is_dir():  # of partitions the first one
        path = min(
            (one for one in path.rglob("*") if one.suffix in ENDINGS and one.name[0] not in "._"),
            default=path,
        )
    if not path.is_file():
        return []
    try:
        for piece in open_source(path).pieces(_SEARCHED):
            for row in piece.rows:
                found.setdefault(_class_of(result, row), []).append(row)
    except InputError:
        return []
    return [row for _, rows in sorted(found.items()) for row in rows[:_EXAMPLES]]


def _class_of(result: JudgeResult, row: Row) -> str:
    """Pass or fail where the row says so, else the verdict; empty without one."""
    passed = row.cells.get(result.columns["passed"], "").lower()
    return {"true": "pass", "false": "fail"}.get(passed, row.cells.get(result.columns["verdict"], ""))


def _examples(result: JudgeResult, rows: Sequence[Row]) -> Section:
    caption = (
        "Serves whoever wants to see what the judge lets through and what it stops: the first rows of the output with "
        "each verdict, as they come and not drawn at random."
    )
    blocks: list[Block] = (
        [Paragraph(f"{result.output} is gone or cannot be read any more.")] if not rows else []
    )
    shown = ""
    for row in rows:
        named = _class_of(result, row) or "unscored"
        blocks += [Heading(named.capitalize())] if named != shown else []
        shown = named
        facts = [(name, text) for name, text in row.cells.items() if text]
        blocks.append(Record(f"Line {row.line}", facts))
    return Section("examples", "Examples by verdict", caption, blocks)


def _notes(result: JudgeResult) -> Iterator[str]:
    usd = f"USD per 1,000 rows: {numbers.money(result.usd_per_1k)}; paid: {numbers.money(result.usd)}."
    yield f"{usd} Model: {', '.join(result.model_ids) or 'unknown'}."
    yield from map(sentence, result.notes)
