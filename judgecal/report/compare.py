"""The document of `compare`: who agrees better with people, the difference at each end, every pair after
Holm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from judgecal.experiment.compare import CompareResult
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Document,
    Fact,
    Paragraph,
    Picture,
    Section,
    Table,
    from_summary,
    notes_section,
)
from judgecal.report.intervals import (
    Axis,
    IntervalRow,
    axis_of,
    change_of,
    in_points,
    in_units,
    interval_picture,
    of_metric,
)
from judgecal.report.judges_headline import raters_in_words
from judgecal.report.unread import naming_unread, unread_headline
from judgecal.report.wording import in_a_row, sentence
from judgecal.stats import PLANNED_DISCORDANCE, POWER, Comparison, Interaction
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.strata import driven_in_words

_DEVIATING = 3  # cells of the grid that are named
_NAMED = 3  # of pairs in the headline
_WORDS = (
    ("A - B", "How much more of the metric the first judge has than the second one on the same items."),
    ("p (Holm)", "The p value of a pair, corrected for all pairs that are held against each other here."),
    ("cannot tell", "The items show neither judge to be better; it does not say that the two are alike."),
    ("unscored", "No verdict could be had or read. It counts as wrong here, and is never dropped."),
)


def compare_document(result: CompareResult) -> Document:
    """Two judges: the decision and the difference at each end. Several: every pair."""
    table = _of_two(result) if len(result.pairs) == 1 else _of_pairs(result)
    blocks: list[Block] = [table]
    apart = (found.difference for found in result.pairs.values() if found.decision == "cannot tell")
    if len(result.pairs) > 1 and any((one.low or 0.0) > 0.0 or (one.high or 0.0) < 0.0 for one in apart):
        stands = "Each interval is of its pair alone. A decision allows for all pairs (Holm), so it may"
        blocks.append(Paragraph(f"{stands} stay open where an interval leaves out 0.", short=True))
    if result.test_look:
        blocks.append(Paragraph(sentence(result.test_look), short=True))
    first = next(iter(result.pairs.values()))
    if (
        len(result.pairs) == 1 and first.difference.value is not None
    ):  # two names are too long for a line of a picture
        blocks.append(_picture(first, result.metric, result.gold.scale))
    caption = "Serves the choice between judges: each pair on the same items, paired by question."
    return Document(
        title=f"{result.experiment}: judges held against each other",
        about=(
            f"Judges of {result.compared_from}; {result.gold.in_words}. An unscored item counts as "
            f"{result.gold.unscored_counts_as}."
        ),
        headline=unread_headline(result.unread) or naming_unread(_headline(result), result.unread),
        facts=_facts(result),
        sections=[
            Section("pairs", "Differences", caption, blocks),
            *notes_section(list(_notes(result)), words=_WORDS),
        ],
        **from_summary(result),
    )


def _headline(result: CompareResult) -> Headline:
    again, unknown = f"judgecal select {result.compared_from}", tuple(_unknown(result))
    by, (whom, _) = _by(result), raters_in_words(result.gold.labels_by)
    if len(result.pairs) == 1:
        [(judges, found)] = result.pairs.items()
        values = filter(None, (_values(judges, found, result), sentence(found.why)))
        if (
            found.decision == "cannot tell"
            and found.smallest_detectable
            and metric_facts(result.metric).unit != "scale"
        ):
            again = f"judgecal plan {result.experiment}"  # how many questions would tell
        return Headline(found.decision, _in_words(judges, found, by, whom), tuple(values), unknown, again)
    told = {pair: found for pair, found in result.pairs.items() if found.decision != "cannot tell"}
    unclear = [f"{a} from {b}" for a, b in result.pairs if (a, b) not in told]
    if not told:
        these = f"these {_n_judges(result)} judges"
        what = f"Cannot tell any two of {these} apart by agreement with {whom}{by}."
        return Headline("cannot tell", what, (), unknown, again)
    above: dict[str, list[str]] = {}
    for pair, found in told.items():
        better, worse = pair if found.decision == "A" else pair[::-1]
        above.setdefault(worse, []).append(better)
    told_apart = [
        f"{in_a_row(better)} agree{'s' * (len(better) == 1)} better with {whom} than {worse}{by}"
        for worse, better in above.items()
    ]
    first = f"{'; '.join(told_apart[:_NAMED])}{_more(told_apart)}."
    because = [f"Cannot tell {'; '.join(unclear[:_NAMED])}{_more(unclear)}."] if unclear else []
    return Headline("told apart", first, tuple(because), unknown, again)


def _unknown(result: CompareResult) -> Iterator[str]:
    """What weighs most comes first."""
    n_tied, n = sum(found.decision == "cannot tell" for found in result.pairs.values()), len(result.pairs)
    if n_tied:
        who = (
            f"the {_n_judges(result)} judges"
            if n_tied == n
            else f"the two judges of {n_tied} of the {n} pairs"
        )
        yield f"Whether {who} are equally good: that no difference is shown is no proof that there is none."
    if result.gold.labels_by == "project":
        yield "Whether people agree with these labels: the project itself made them."
    yield "Which judge to use: cost and the allowed loss are for judgecal select to weigh."


def _facts(result: CompareResult) -> list[Fact]:
    """Of two judges the difference and what each reaches; of several, how many pairs are told apart."""
    if len(result.pairs) > 1:
        told = sum(found.decision != "cannot tell" for found in result.pairs.values())
        return [Fact(f"{told} of {len(result.pairs)}", f"pairs told apart by {result.metric}, after Holm.")]
    [((a, b), pair)] = result.pairs.items()
    metric, scale = result.metric, result.gold.scale
    once = " once calibrated" if pair.raw is not None else ""
    apart = f"A - B in {result.metric}{once}, at level {result.level:.4g}; p {_p(pair.p_value)}."
    return [
        Fact(change_of(pair.difference, metric, scale), apart),
        *(
            Fact(of_metric(Estimate(value), metric, scale), f"{side}: {judge}")
            for side, judge, value in (("A", a, pair.a), ("B", b, pair.b))
        ),
    ]


def _picture(pair: Comparison, metric: str, scale: str) -> Picture:
    """The difference of two judges held against 0, at each end."""
    ends = [(name, found) for name, _, _, found in _ends(pair) if found.value is not None]
    rows = [
        IntervalRow(
            name,
            in_units(found, metric),
            change_of(found, metric, scale),
            strong=not place,
            hollow=bool(place),
        )
        for place, (name, found) in enumerate(ends)
    ]
    return interval_picture(rows, Axis(f"A - B in {axis_of(metric)}", full=0.0))


def _more(named: Sequence[str]) -> str:
    return f"; and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""


def _n_judges(result: CompareResult) -> int:
    return len({judge for pair in result.pairs for judge in pair})


def _by(result: CompareResult) -> str:
    """By which metric, where it is not the leading one."""
    leading = "accuracy" if result.gold.scale == "nominal" else "macro_agreement"
    return "" if result.metric == leading else f" by {result.metric}"


def _in_words(judges: tuple[str, str], found: Comparison, by: str, whom: str) -> str:
    if found.decision == "cannot tell":
        return f"Cannot tell {judges[0]} from {judges[1]} by agreement with {whom}{by}."
    better, worse = judges if found.decision == "A" else judges[::-1]
    return f"{better} agrees better with {whom} than {worse}{by}."


def _values(judges: tuple[str, str], found: Comparison, result: CompareResult) -> str:
    """What both reach, how far they are apart, and what these items would show; empty of a metric that is no
    share."""
    if metric_facts(result.metric).unit == "scale" or found.a is None or found.b is None:
        return ""
    ours, theirs = (numbers.percent(value, 1) for value in (found.a, found.b))
    once = " once calibrated" if found.raw is not None else ""
    apart = numbers.difference(in_points(found.difference), 1)
    shown = ""
    if found.smallest_detectable is not None:
        shown = f"; these items would show {numbers.points(found.smallest_detectable)}"
    return f"{judges[0]} reaches {ours}{once}, {judges[1]} {theirs}: {apart} points{shown}."


def _of_two(result: CompareResult) -> Table:
    metric, scale = result.metric, result.gold.scale
    [((a, b), pair)] = result.pairs.items()
    rows = [
        [
            name,
            change_of(found, metric, scale),
            *(of_metric(Estimate(value), metric, scale) for value in (ours, theirs)),
            _count(found),
        ]
        for name, ours, theirs, found in _ends(pair)
    ]
    return Table([result.metric, f"A - B [{result.level:.4g}]", f"A: {a}", f"B: {b}", "n"], rows, short=True)


def _ends(pair: Comparison) -> list[tuple[str, float | None, float | None, Estimate]]:
    """A row for each way to count unscored items, one where none is unscored: its name, A, B, and A - B."""
    ends = [("nothing unscored", pair.a, pair.b, pair.difference)]
    if pair.difference.n_unscored:
        ends = [("unscored as wrong", pair.a, pair.b, pair.difference)]
        counted = (("unscored left out", pair.complete_case), ("unscored as right", pair.best_case))
        ends += [(name, end.a, end.b, end.difference) for name, end in counted]
    if pair.raw is not None:
        ends.append(("raw verdicts", pair.raw.a, pair.raw.b, pair.raw.difference))
    return ends


def _of_pairs(result: CompareResult) -> Table:
    metric, scale = result.metric, result.gold.scale
    header = [
        "A",
        "B",
        f"A - B [{result.level:.4g}]",
        "decision",
        "p (Holm)",
        "p",
        "detectable",
        "n",
        "unscored",
    ]
    rows = [
        [
            *judges,
            change_of(pair.difference, metric, scale),
            pair.decision,
            _p(pair.p_adjusted),
            _p(pair.p_value),
            _amount(pair.smallest_detectable, result),
            _count(pair.difference),
            str(pair.difference.n_unscored),
        ]
        for judges, pair in sorted(result.pairs.items(), key=lambda one: one[1].decision == "cannot tell")
    ]
    return Table(header, rows, left=2, short=True)


def _amount(size: float | None, result: CompareResult) -> str:
    return numbers.DASH if size is None else amount_of(size, result.metric, result.gold.scale)


def _count(found: Estimate) -> str:
    return f"{found.n}/{found.n_expected}"


def _p(p: float | None) -> str:
    return numbers.DASH if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(result: CompareResult) -> Iterator[str]:
    yield from _smallest(result)
    pairs = list(result.pairs.values())
    yield from _strata(result)
    made = dict.fromkeys(
        f"intervals {one.difference.method}; p: {one.p_method}" for one in pairs if one.p_method
    )
    yield from (f"Paired on the same items: {how}." for how in made)
    yield from _interaction(result.interaction)
    yield from map(sentence, result.notes)
    yield f"Decisions taken on the test labels of {result.gold.set} so far: {result.test_looks}."


def _strata(result: CompareResult) -> Iterator[str]:
    """How many items each stratum holds, and where one of few items makes most of an interval."""
    first = next(iter(result.pairs.values())).strata
    if first:
        counts = ", ".join(f"{one.name} {numbers.count(one.n)}" for one in first)
        yield f"{result.metric} is the mean over strata of the labels: {counts}."
    driven = driven_in_words((*judges, found.strata) for judges, found in result.pairs.items())
    yield from (f"{one}." for one in driven)


def _smallest(result: CompareResult) -> Iterable[str]:
    """What so many questions could have shown, and on which assumption."""
    detectable = [one.smallest_detectable for one in result.pairs.values()]
    assumed = (
        f"with {100 * POWER:.0f}% power, planned for judges that differ {100 * PLANNED_DISCORDANCE:.0f}% as much as "
        "two that err independently, or as much as these do where that is more"
    )
    if len(detectable) > 1:
        yield f"Detectable: the smallest difference found {assumed}, at the first step of Holm."
    elif detectable[0] is not None:
        yield f"The smallest difference that these items would show: {_amount(detectable[0], result)}, {assumed}."


def _interaction(test: Interaction | None) -> Iterable[str]:
    if test is None:
        return
    yield f"Prompt x model: {test.why}."
    for cell in test.cells[:_DEVIATING] if test.p_value is not None else ():
        change = numbers.difference(Estimate(cell.deviation))
        yield f"{cell.row}@{cell.column}: {change} beside its prompt and model, p {_p(cell.p_adjusted)}"
