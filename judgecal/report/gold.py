"""The documents of `gold check`, `sheet` and `import`.

What loads scipy is imported where it is used: a list of the sets does without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from judgecal.goldset import JUDGEMENTS, GoldCheck, GoldList, Imported, Problem, Sheets
from judgecal.goldset.gold_set import SplitCounts
from judgecal.goldset.wording import grouped
from judgecal.records import Headline
from judgecal.report.document import Bullets, Document, Grid, Paragraph, Section, section
from judgecal.report.wording import (
    between,
    columns_in_words,
    count,
    count_of,
    estimate,
    in_a_row,
    path_from_here,
    sentences,
)

if TYPE_CHECKING:
    from judgecal.experiment.people import CheckedSet, RaterAmongOthers

_SHOWN = 6  # kinds of findings in the short form


def list_document(result: GoldList) -> Document:
    """Lay out a GoldList, the gold sets here, as a Document, a row each."""
    n = len(result.sets)
    if not n:
        headline = Headline("none", "There is no gold set here yet.", next="judgecal gold import --help")
        return Document("Gold sets", "", headline, [])
    broken = [gold.set_ for gold in result.sets if gold.error is not None]
    headline = Headline(
        "sets",
        f"There {'is 1 gold set' if n == 1 else f'are {n} gold sets'} here.",
        tuple(f"We cannot load {name}: see judgecal gold check {name}." for name in broken),
        next=f"judgecal gold check {broken[0] if broken else result.sets[0].set_}",
    )
    rows = []
    for gold in result.sets:
        facts = (
            gold.scale,
            gold.sampling,
            gold.labels_by,
            gold.n_items,
            gold.n_groups,
            len(gold.raters or ()),
        )
        broken_row = (gold.set_, "cannot be loaded", *["-"] * 5)
        rows.append(broken_row if gold.error is not None else (gold.set_, *map(str, facts)))
    header = ("set", "scale", "sampling", "labels by", "items", "questions", "raters")
    sets = section("sets", "Sets", "", Grid(header, rows, left=4, short=True))
    return Document("Gold sets", "", headline, [sets])


# --- check


def check_document(result: CheckedSet, *, full: bool = False) -> Document:
    """Lay out a CheckedSet (counts, problems, raters) as a Document; `full` prints all."""
    check, raters = result.check, result.raters
    name, findings = check.set_, [problem for problem in check.problems if problem.explained is None]
    # what a set that was looked through is for: to hold judges against its labels, once it has some
    following = f"judgecal score --gold {name}"
    if not check.n_labelled:
        following = f"judgecal gold sheet {name} -o sheet.csv"
    if raters.n_tied:
        following = f"judgecal gold label {name} --adjudicate"
    kind, what = "sound", "nothing found but what the card explains" if check.problems else "no findings"
    if findings:
        kind, n_kinds = "findings", len({problem.kind for problem in findings})
        what = f"{count_of(len(findings), 'finding')} of {count_of(n_kinds, 'kind')}"
        following = following if full else f"judgecal gold check {name} --full"
    ties = f"Raters tie on {count_of(raters.n_tied, 'item')}, which therefore have no gold label."
    because = sentences(_people_agree(result), raters.n_tied > 0 and ties)
    headline = Headline(kind, f"{name} has {what}.", because, next=following)
    sections = [*[_raters_section(result)] * bool(raters.pairs), _check_section(check)]
    about = (
        f"{name}@{check.sha256[:12]}: {check.n_items:,} items on {check.n_groups:,} questions, "
        f"{check.n_documents:,} documents, scale {check.scale}, {check.n_labelled:,} with a gold label"
    )
    return Document(f"Gold set {name}", about, headline, sections)


def _check_section(result: GoldCheck) -> Section:
    findings = [problem for problem in result.problems if problem.explained is None]
    explained = [problem for problem in result.problems if problem.explained is not None]
    kinds = list(_by_kind(findings).values())
    lines = [f"{kind[0].kind} ({len(kind):,}): {kind[0].where}: {kind[0].message}" for kind in kinds[:_SHOWN]]
    if len(kinds) > _SHOWN:
        lines.append(f"... and {len(kinds) - _SHOWN} more kinds of findings (all of them with --full)")
    reasons = [
        f"{kind[0].kind} ({len(kind):,}): {kind[0].explained}" for kind in _by_kind(explained).values()
    ]

    def every(name: str, problems: Sequence[Problem], title: str = "") -> Grid:
        rows = [(problem.kind, problem.where, problem.message) for problem in problems]
        return Grid((name, "where", "what"), rows, left=3, title=title)

    return section(
        result.set_,
        result.set_,
        "What to know before you rely on the set.",
        splits_table(result.splits),
        bool(result.tags) and Grid(("tag", "items"), [(tag, str(n)) for tag, n in result.tags.items()]),
        bool(findings) and (Bullets(lines, short=True), every("finding", findings, "All findings")),
        bool(explained)
        and (Paragraph("Explained in the card:"), Bullets(reasons), every("explained", explained)),
    )


def splits_table(splits: Mapping[str, SplitCounts]) -> Grid:
    """Return a Grid from a mapping, split name -> SplitCounts: how many items and questions each has."""
    rows = [(name, str(part.n_items), str(part.n_groups)) for name, part in splits.items()]
    return Grid(("split", "items", "questions"), rows, short=True)


def _by_kind(problems: Sequence[Problem]) -> dict[str, list[Problem]]:
    return grouped(problems, lambda problem: problem.kind)


# --- sheet


def sheets_document(result: Sheets, following: str) -> Document:
    """Lay out Sheets (what was written) and the text of the command `following` as a Document."""
    rows = [(path, str(result.n_items)) for path in result.sheets]
    sheets, items = count_of(len(result.sheets), "sheet"), count_of(result.n_items, "item")
    headline = Headline("written", f"{sheets} of {items} of {result.set_}.", next=following)
    blocks = Grid(("sheet", "items"), rows, short=True), Bullets(result.notes, short=True)
    return Document(f"Sheets of {result.set_}", "", headline, [section("sheets", "Sheets", "", blocks)])


# --- import


def import_document(result: Imported, *, guessed: str | None = None) -> Document:
    """Lay out Imported (rows, raters, what to fix) as a Document; `guessed`: the tool recognised."""
    lines = [*columns_in_words(result.columns, ()), *_accounted(result), *result.notes]
    labels = "and waits for labels"
    if result.n_ratings:
        people = result.people
        who = ", ".join(people) or "no single rater" if len(people) < 3 else f"{len(people)} raters"
        labels = f"{count_of(result.n_ratings, 'rating')} by {who}"
    following = f"judgecal gold check {result.set_}"
    if not result.n_ratings:
        following = f"judgecal gold sheet {result.set_} -o labels.csv"
    elif not result.n_labelled:  # people tie everywhere
        following = f"judgecal gold label {result.set_} --adjudicate"
    elif result.judges or (result.path / JUDGEMENTS).is_file():  # with the items that a sheet's labels are of
        following = f"judgecal agreement --gold {result.set_}"
    n_judged, unscored = count_of(sum(result.judges.values()), "judgement"), sum(result.unscored.values())
    without = f", {unscored:,} of them without a verdict" if unscored else ""
    headline = Headline(
        "imported" if result.n_ratings else "waits for labels",
        f"{result.set_} has {_items(result)}, {labels}.",
        sentences(
            guessed and f"Read as an export of {guessed}, recognised by its content (--from overrides).",
            f"Tell us where the labels come from: {path_from_here(result.path / 'card.toml')}.",
            bool(result.judges) and f"{in_a_row([*result.judges])} gave {n_judged}{without}.",
        ),
        next=following,
    )
    about = f"{result.set_}@{result.sha256[:12]}, scale {result.scale}"
    blocks = splits_table(result.splits), *[Bullets(lines, short=True)] * bool(lines)
    return Document(f"Gold set {result.set_}", about, headline, [section("set", "The set", "", blocks)])


def _items(result: Imported) -> str:
    return f"{count_of(result.n_items, 'item')} on {count_of(result.n_groups, 'question')}"


def _accounted(result: Imported) -> list[str]:
    """What became of what was read: a table's rows without effect, an export's items and scores."""
    if result.tool is None:
        return [f"{n:,} of {result.n_rows:,} rows {why}." for why, n in result.skipped.items()]
    n_judged, n_skipped = sum(result.judges.values()), sum(result.skipped.values())
    parts = {"item": result.n_items, "rating": result.n_ratings, "judgement": n_judged}
    taken = ", ".join(count_of(n, part) for part, n in parts.items())
    reasons = "; ".join(f"{n:,} {why}" for why, n in result.skipped.items())
    return [
        f"{count_of(result.n_rows, 'record')} read: {taken}, {n_skipped:,} skipped.",
        *[f"Skipped: {reasons}."] * bool(reasons),
    ]


# --- agreement of the raters


def _raters_section(result: CheckedSet) -> Section:
    """A line a rater: the ceiling as reports print it; a table a pair of raters, and one of all of them."""
    from judgecal.stats.stand_in import MIN_SHARED

    scale, raters = result.check.scale, result.raters
    few = [rater for rater in raters.ceiling if rater.n < MIN_SHARED]
    many = [rater for rater in raters.ceiling if rater.n >= MIN_SHARED]
    names = ", ".join(rater.rater for rater in few)
    what = f"Fewer than {MIN_SHARED} items in common, so only in the whole table (--full): {names}."
    n = len(raters.raters) - len(raters.tie_breakers)
    return section(
        "raters",
        "Raters",
        "How far do people agree?",
        bool(many) and _against_others(many, scale, short=True),
        bool(few) and (Paragraph(what, short=True), _against_others(few, scale, short=False)),
        (Paragraph(f"{rater} is left out: {why}.", short=True) for rater, why in raters.tie_breakers.items()),
        bool(raters.reliability)
        and Grid(
            (f"all {n} raters at once", "value [interval]", "items", "questions"),
            [
                (name, estimate(value, 4), count(value.n), count(value.n_groups))
                for name, value in raters.reliability.items()
            ],
            title="Reliability",
        ),
        (
            Paragraph(
                f"{rater} could not tell on {count_of(n_items, 'item')}: no number here counts these",
                short=True,
            )
            for rater, n_items in raters.cannot_tell.items()
        ),
    )


def _against_others(raters: Sequence[RaterAmongOthers], scale: str, *, short: bool) -> Grid:
    from judgecal.report.charts import metric_text
    from judgecal.stats import columns_of, metric_facts

    columns = columns_of(raters[0].agreement, scale)
    names = [name for name in columns if (facts := metric_facts(name)).unit != "scale" and not facts.is_rate]
    ranked = sorted(raters, key=lambda rater: -(rater.agreement[names[0]].value or 0.0))
    rows = [
        (rater.rater, count(rater.n), *(metric_text(rater.agreement[name], name, scale) for name in names))
        for rater in ranked
    ]
    title = "Each rater compared with each other rater, on all items that both rated"
    return Grid(("rater", "items", *names), rows, title=title, short=short)


def _people_agree(result: CheckedSet) -> str:
    """How far raters who share enough items agree; empty without two of them."""
    from judgecal.stats import columns_of
    from judgecal.stats.stand_in import MIN_SHARED

    many = [rater.agreement for rater in result.raters.ceiling if rater.n >= MIN_SHARED]
    if not many:
        return ""
    leading = columns_of(many[0], result.check.scale)[0]
    who = "The project's raters" if result.raters.labels_by == "project" else "People"
    reach = between([agreement[leading].value for agreement in many])
    return f"{who} reach {reach} agreement with each other on {result.check.set_} ({leading})."
