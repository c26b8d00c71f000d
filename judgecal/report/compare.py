"""The document of `compare`: who agrees better with people, the difference at each end, pairs after Holm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
    table,
)
from judgecal.report.intervals import (
    Axis,
    axis_of,
    change_of,
    change_row,
    in_points,
    interval_picture,
    of_metric,
)
from judgecal.report.judges_headline import naming_unread, raters_in_words, unread_headline
from judgecal.report.wording import AS_WRONG, OWN_LABELS, glossary, in_a_row, sentence, sentences
from judgecal.stats import PLANNED_DISCORDANCE, POWER, Comparison
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.strata import driven_in_words

_NAMED = 3  # of pairs in the headline, and of cells of the grid


def compare_document(result: CompareResult) -> Document:
    """Two judges: the decision and the difference at each end. Several: every pair."""
    two = len(result.pairs) == 1
    blocks: list[Block] = [_of_two(result) if two else _of_pairs(result)]
    apart = [pair.difference for pair in result.pairs.values() if pair.decision == "cannot tell"]
    if not two and any((change.low or 0.0) > 0.0 or (change.high or 0.0) < 0.0 for change in apart):
        stands = "Each interval is of its pair alone. A decision allows for all pairs (Holm), so it may"
        blocks.append(Paragraph(f"{stands} stay open where an interval leaves out 0.", short=True))
    if result.test_look:
        blocks.append(Paragraph(sentence(result.test_look), short=True))
    first = next(iter(result.pairs.values()))
    if two and first.difference.value is not None:  # two names are too long for a line of a picture
        blocks.append(_picture(first, result.metric, result.gold.scale))
    caption = "Serves the choice between judges: each pair on the same items, paired by question."
    return Document(
        title=f"{result.experiment}: judges held against each other",
        about=(
            f"Judges of {result.compared_from}; {result.gold.in_words}. An unscored item counts as "
            f"{result.gold.unscored_counts_as}."
        ),
        headline=unread_headline(result.unread)
        or naming_unread(_of_one_pair(result) if two else _of_several(result), result.unread),
        facts=_facts(result),
        sections=[
            Section("pairs", "Differences", caption, blocks),
            *notes_section(_notes(result), words=glossary("A - B", "p (Holm)", "cannot tell", AS_WRONG)),
        ],
        **from_summary(result),
    )


def _of_one_pair(result: CompareResult) -> Headline:
    """The decision on two judges: what both reach, how far they are apart, what these items would show."""
    [((a, b), pair)] = result.pairs.items()
    share = metric_facts(result.metric).unit != "scale"
    better, worse = (b, a) if pair.decision == "B" else (a, b)
    whom, by, unclear = raters_in_words(result.gold.labels_by)[0], _by(result), pair.decision == "cannot tell"
    reached = ""
    if share and pair.a is not None and pair.b is not None:
        ours, theirs = (numbers.percent(value, 1) for value in (pair.a, pair.b))
        least, change = pair.smallest_detectable, numbers.difference(in_points(pair.difference), 1)
        shown = "" if least is None else f"; these items would show {numbers.points(least)}"
        reached = f"{a} reaches {ours}{_once(pair)}, {b} {theirs}: {change} points{shown}."
    return Headline(
        pair.decision,
        f"Cannot tell {a} from {b} by agreement with {whom}{by}."
        if unclear
        else f"{better} agrees better with {whom} than {worse}{by}.",
        sentences(reached, sentence(pair.why)),
        _unknown(result),
        f"judgecal plan {result.experiment}"  # how many questions would tell
        if unclear and pair.smallest_detectable and share
        else f"judgecal select {result.compared_from}",
    )


def _of_several(result: CompareResult) -> Headline:
    """Which judges are told apart, each worse one by the better ones."""
    whom, by = raters_in_words(result.gold.labels_by)[0], _by(result)
    again, unknown = f"judgecal select {result.compared_from}", _unknown(result)
    unclear = [f"{a} from {b}" for (a, b), pair in result.pairs.items() if pair.decision == "cannot tell"]
    above: dict[str, list[str]] = {}
    for judges, pair in result.pairs.items():
        if pair.decision != "cannot tell":
            better, worse = judges if pair.decision == "A" else judges[::-1]
            above.setdefault(worse, []).append(better)
    if not above:
        what = f"Cannot tell any two of these {_n_judges(result)} judges apart by agreement with {whom}{by}."
        return Headline("cannot tell", what, (), unknown, again)
    apart = [
        f"{in_a_row(better)} agree{'s' * (len(better) == 1)} better with {whom} than {worse}{by}"
        for worse, better in above.items()
    ]
    because = sentences(bool(unclear) and f"Cannot tell {_first(unclear)}.")
    return Headline("told apart", f"{_first(apart)}.", because, unknown, again)


def _first(clauses: Sequence[str]) -> str:
    more = f"; and {len(clauses) - _NAMED:,} more" if len(clauses) > _NAMED else ""
    return "; ".join(clauses[:_NAMED]) + more


def _n_judges(result: CompareResult) -> int:
    return len({judge for pair in result.pairs for judge in pair})


def _by(result: CompareResult) -> str:
    """By which metric, where it is not the leading one."""
    leading = "accuracy" if result.gold.scale == "nominal" else "macro_agreement"
    return "" if result.metric == leading else f" by {result.metric}"


def _once(pair: Comparison) -> str:
    return " once calibrated" if pair.raw is not None else ""


def _unknown(result: CompareResult) -> tuple[str, ...]:
    """What weighs most comes first."""
    n_tied, n = sum(pair.decision == "cannot tell" for pair in result.pairs.values()), len(result.pairs)
    who = f"the {_n_judges(result)} judges" if n_tied == n else f"the two judges of {n_tied} of the {n} pairs"
    return sentences(
        n_tied > 0
        and f"Whether {who} are equally good: that no difference is shown is no proof that there is none.",
        result.gold.labels_by == "project" and OWN_LABELS,
        "Which judge to use: cost and the allowed loss are for judgecal select to weigh.",
    )


def _facts(result: CompareResult) -> list[Fact]:
    """Of two judges the difference and what each reaches; of several, how many pairs are told apart."""
    if len(result.pairs) > 1:
        n_apart = sum(pair.decision != "cannot tell" for pair in result.pairs.values())
        return [
            Fact(f"{n_apart} of {len(result.pairs)}", f"pairs told apart by {result.metric}, after Holm.")
        ]
    [((a, b), pair)] = result.pairs.items()
    metric, scale = result.metric, result.gold.scale
    apart = f"A - B in {metric}{_once(pair)}, at level {result.level:.4g}; p {_p(pair.p_value)}."
    return [
        Fact(change_of(pair.difference, metric, scale), apart),
        Fact(of_metric(Estimate(pair.a), metric, scale), f"A: {a}"),
        Fact(of_metric(Estimate(pair.b), metric, scale), f"B: {b}"),
    ]


def _picture(pair: Comparison, metric: str, scale: str) -> Picture:
    """The difference of two judges held against 0, at each end."""
    ends = [end for end in _ends(pair) if end.difference.value is not None]
    rows = [change_row(end.name, end.difference, metric, scale, strong=end is ends[0]) for end in ends]
    return interval_picture(rows, Axis(f"A - B in {axis_of(metric)}", full=0.0))


class _End(NamedTuple):
    """What two judges reach by one way to count unscored items."""

    name: str
    a: float | None
    b: float | None
    difference: Estimate


def _ends(pair: Comparison) -> list[_End]:
    """Where nothing is unscored all ways are one."""
    unscored = pair.difference.n_unscored
    ends = [_End("unscored as wrong" if unscored else "nothing unscored", pair.a, pair.b, pair.difference)]
    counted = (("unscored left out", pair.complete_case), ("unscored as right", pair.best_case))
    ends += [_End(name, end.a, end.b, end.difference) for name, end in counted if unscored]
    if pair.raw is not None:
        ends.append(_End("raw verdicts", pair.raw.a, pair.raw.b, pair.raw.difference))
    return ends


def _of_two(result: CompareResult) -> Table:
    metric, scale = result.metric, result.gold.scale
    [((a, b), pair)] = result.pairs.items()
    return table(
        _ends(pair),
        {
            metric: lambda end: end.name,
            f"A - B [{result.level:.4g}]": lambda end: change_of(end.difference, metric, scale),
            f"A: {a}": lambda end: of_metric(Estimate(end.a), metric, scale),
            f"B: {b}": lambda end: of_metric(Estimate(end.b), metric, scale),
            "n": lambda end: f"{end.difference.n}/{end.difference.n_expected}",
        },
        short=True,
    )


def _of_pairs(result: CompareResult) -> Table:
    metric, scale = result.metric, result.gold.scale
    return table(
        sorted(result.pairs.items(), key=lambda row: row[1].decision == "cannot tell"),
        {
            "A": lambda row: row[0][0],
            "B": lambda row: row[0][1],
            f"A - B [{result.level:.4g}]": lambda row: change_of(row[1].difference, metric, scale),
            "decision": lambda row: row[1].decision,
            "p (Holm)": lambda row: _p(row[1].p_adjusted),
            "p": lambda row: _p(row[1].p_value),
            "detectable": lambda row: _amount(row[1].smallest_detectable, result),
            "n": lambda row: f"{row[1].difference.n}/{row[1].difference.n_expected}",
            "unscored": lambda row: str(row[1].difference.n_unscored),
        },
        left=2,
        short=True,
    )


def _amount(size: float | None, result: CompareResult) -> str:
    return numbers.DASH if size is None else amount_of(size, result.metric, result.gold.scale)


def _p(p: float | None) -> str:
    return numbers.DASH if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(result: CompareResult) -> tuple[str, ...]:
    pairs, grid = list(result.pairs.values()), result.interaction
    least, strata = pairs[0].smallest_detectable, pairs[0].strata
    counts = ", ".join(f"{stratum.name} {numbers.count(stratum.n)}" for stratum in strata)
    made = dict.fromkeys(
        f"intervals {pair.difference.method}; p: {pair.p_method}" for pair in pairs if pair.p_method
    )
    assumed = (
        f"with {100 * POWER:.0f}% power, planned for judges that differ {100 * PLANNED_DISCORDANCE:.0f}% as "
        "much as "
        "two that err independently, or as much as these do where that is more"
    )
    return sentences(
        f"Detectable: the smallest difference found {assumed}, at the first step of Holm."
        if len(pairs) > 1
        else least is not None
        and f"The smallest difference that these items would show: {_amount(least, result)}, {assumed}.",
        bool(strata) and f"{result.metric} is the mean over strata of the labels: {counts}.",
        [f"{why}." for why in driven_in_words((*two, pair.strata) for two, pair in result.pairs.items())],
        [f"Paired on the same items: {how}." for how in made],
        grid is not None and f"Prompt x model: {grid.why}.",
        [
            f"{cell.row}@{cell.column}: {numbers.difference(Estimate(cell.deviation))} beside its prompt and "
            "model, "
            f"p {_p(cell.p_adjusted)}"
            for cell in (grid.cells[:_NAMED] if grid is not None and grid.p_value is not None else ())
        ],
        map(sentence, result.notes),
        f"Decisions taken on the test labels of {result.gold.set} so far: {result.test_looks}.",
    )
