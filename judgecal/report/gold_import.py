"""The documents of `gold import`: what was read, and with --dry-run how it was understood."""

from __future__ import annotations

from collections.abc import Iterable

from judgecal.errors import listed
from judgecal.goldset import GOLD, JUDGEMENTS, Imported
from judgecal.goldset.understood import LabelSpread, Understood
from judgecal.records import Headline
from judgecal.report.document import Block, Bullets, Document, Record, Section, Table
from judgecal.report.gold import splits_table
from judgecal.report.numbers import count_of as _counted
from judgecal.report.numbers import percent
from judgecal.report.wording import path_from_here

_NAMED = 4  # raters or judges in a sentence; of more the first ones, or their number
_LINES = 3  # of raters, and of judges, in the short form
_LEFT_OUT = 8
_LABELS = 4  # of a rater's labels, in a table
_OF_ITEM = ("question", "answer", "reference_answer", "contexts")
_FACTS = 5  # of them
_FACT = 56  # characters of a text of the first item


def import_document(result: Imported, *, guessed: str | None = None) -> Document:
    """What was read, and what is to be said of the set; `guessed`: the tool that the file told."""
    blocks: list[Block] = [splits_table(result.splits)]
    lines = [*_accounted(result), *result.notes]
    blocks += [Bullets(lines, short=True)] if lines else []
    raters = listed(result.people, _NAMED) or "no single rater"
    said = (
        f"{_counted(result.n_ratings, 'rating')} by {raters}" if result.n_ratings else "and waits for labels"
    )
    following = f"judgecal gold check {result.set_}"
    if not result.n_ratings:
        following = f"judgecal gold sheet {result.set_} -o labels.csv"
    elif not result.n_labelled:  # people tie everywhere
        following = f"judgecal gold adjudicate {result.set_}"
    elif result.judges or (result.path / JUDGEMENTS).is_file():  # with the items that a sheet's labels are of
        following = f"judgecal agreement --gold {result.set_}"
    card = f"Say in {path_from_here(result.path / 'card.toml')} what is known of it."
    headline = Headline(
        "imported" if result.n_ratings else "waits for labels",
        f"{result.set_} has {_counted(result.n_items, 'item')} on {_counted(result.n_groups, 'question')}, "
        f"{said}.",
        (*_guessed(guessed), card, *_judged(result)),
        next=following,
    )
    about = f"{result.set_}@{result.sha256[:12]}, scale {result.scale}"
    return Document(f"Gold set {result.set_}", about, headline, [Section("set", "The set", "", blocks)])


def _accounted(result: Imported | Understood) -> list[str]:
    """What became of what was read: a table's rows without effect, an export's items and scores."""
    if result.tool is None:
        return [f"{count:,} of {result.n_rows:,} rows {why}." for why, count in result.skipped.items()]
    n_judged, n_skipped = sum(result.judges.values()), sum(result.skipped.values())
    parts = [
        _counted(result.n_items, "item"),
        _counted(result.n_ratings, "rating"),
        _counted(n_judged, "judgement"),
    ]
    lines = [f"{_counted(result.n_rows, 'record')} read: {', '.join(parts)}, {n_skipped:,} skipped."]
    reasons = "; ".join(f"{count:,} {why}" for why, count in result.skipped.items())
    return [*lines, *[f"Skipped: {reasons}."] * bool(reasons)]


def _judged(result: Imported) -> tuple[str, ...]:
    """How many judgements came with the set; of many judges the sum."""
    if len(result.judges) <= _NAMED:
        return tuple(
            f"{judge} gave {_counted(count, 'judgement')}{_without(result.unscored.get(judge, 0))}."
            for judge, count in result.judges.items()
        )
    total, unscored = sum(result.judges.values()), sum(result.unscored.values())
    return (f"{len(result.judges):,} judges gave {total:,} judgements{_without(unscored)}.",)


def _without(unscored: int) -> str:
    return f", {unscored:,} of them without a verdict" if unscored else ""


def _guessed(tool: str | None) -> tuple[str, ...]:
    return (
        ()
        if tool is None
        else (f"Read as an export of {tool}, told by what stands in it (--from says another).",)
    )


def understood_document(result: Understood, following: str, *, guessed: str | None = None) -> Document:
    """How a file was understood; `following` is the command that imports it, `guessed` the tool."""
    said = (
        f"{_counted(result.n_ratings, 'rating')} by {_who(result.raters)}" if result.n_ratings else "no label"
    )
    headline = Headline(
        "understood" if result.n_ratings else "waits for labels",
        f"{result.set_} would have {_counted(result.n_items, 'item')} on "
        f"{_counted(result.n_groups, 'question')}, and {said}. Nothing is written.",
        (*_guessed(guessed), *_scale_said(result)),
        next=following,
    )
    blocks: list[Block] = [Bullets([*_columns_said(result), *_accounted(result), *result.notes], short=True)]
    blocks += _first_item(result)
    blocks += [Bullets([*_raters_said(result), *_judges_said(result)], short=True)]
    blocks += _whole_tables(result)
    return Document(f"Gold set {result.set_}", "", headline, [Section("file", "The file", "", blocks)])


def _who(raters: Iterable[str]) -> str:
    return listed([rater for rater in raters if rater != GOLD], _NAMED) or "no single rater"


def _scale_said(result: Understood) -> tuple[str, ...]:
    """The declared scale; a note says how another was told."""
    return (
        (f"The labels' scale is {result.scale}, as --scale says.",) if result.scale_from == "declared" else ()
    )


def _columns_said(result: Understood) -> list[str]:
    taken = [f"{column} as {what}" for column, what in result.columns.items()]
    lines = [f"Columns taken: {', '.join(taken)}."] if taken else []
    return lines + ([f"Columns left: {listed(result.left_out, _LEFT_OUT)}."] if result.left_out else [])


def _labels(one: LabelSpread) -> str:
    """`0 (33%), 1 (67%)`, or quantiles."""
    ranked = sorted(one.shares.items(), key=lambda pair: -pair[1])
    kept = dict(ranked[:_LABELS]) if len(ranked) > _LABELS + 1 else one.shares
    told = [f"{label} ({percent(share)})" for label, share in one.shares.items() if label in kept]
    told += [f"{len(one.shares) - len(kept)} more"] * (len(kept) < len(one.shares))
    told += [f"{name} {value:g}" for name, value in one.quantiles.items()]
    return ", ".join([*told, *[f"{one.n_cannot_tell:,} cannot tell"] * bool(one.n_cannot_tell)])


def _raters_said(result: Understood) -> list[str]:
    lines = [
        f"{rater} gave {_counted(one.n, 'label')}: {_labels(one)}." for rater, one in result.labels.items()
    ]
    return _first(lines, "rater")


def _judges_said(result: Understood) -> list[str]:
    lines = [
        f"{judge} gave {_counted(one.n, 'judgement')}, read as {one.scale}{_without(one.n_unscored)}."
        for judge, one in result.verdicts.items()
    ]
    return _first(lines, "judge")


def _first(lines: list[str], what: str) -> list[str]:
    if len(lines) <= _LINES:
        return lines
    return [*lines[: _LINES - 1], f"... and {_counted(len(lines) - _LINES + 1, f'more {what}')} (--full)."]


def _whole_tables(result: Understood) -> list[Block]:
    """Every rater and every judge, where the short document names the first ones."""
    labels, verdicts = result.labels.items(), result.verdicts.items()
    raters = [(rater, _labels(one), f"{one.n:,}") for rater, one in labels]
    judges = [(judge, one.scale, f"{one.n:,}", f"{one.n_unscored:,}") for judge, one in verdicts]
    blocks: list[Block] = []
    if len(raters) > _LINES:
        blocks.append(Table(("rater", "labels", "ratings"), raters, left=2))
    if len(judges) > _LINES:
        blocks.append(Table(("judge", "verdicts read as", "judgements", "unscored"), judges, left=2))
    return blocks


def _first_item(result: Understood) -> list[Block]:
    if result.first_item is None:
        return [Bullets(["Every item is of test, and none of these is shown."], short=True)]
    facts = dict(result.first_item)
    title = f"First item {facts.pop('item_id')}"
    named = [name for name in facts if name in _OF_ITEM or name.startswith("fields")][:_FACTS]
    short = [(name, text if len(text := facts[name]) <= _FACT else f"{text[:_FACT]}...") for name in named]
    whole: list[Block] = [] if dict(short) == facts else [Record(f"{title}, all of it", list(facts.items()))]
    return [Record(title, short, short=True), *whole]
