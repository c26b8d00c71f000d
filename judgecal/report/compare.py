"""The document of `compare`: who agrees better with people, the difference at each end, every pair after Holm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from judgecal.experiment.compare import CompareResult
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import FROM_SUMMARY, Block, Bullets, Document, Section, Table
from judgecal.report.wording import sentence
from judgecal.stats import PLANNED_DISCORDANCE, POWER, Comparison, Interaction, digits_of
from judgecal.stats.strata import driven_in_words

_DEVIATING = 3  # cells of the grid that are named


def compare_document(result: CompareResult) -> Document:
    """Two judges: the decision and the difference at each end. Several: every pair."""
    digits = digits_of(result.metric, result.gold.scale)
    table = _of_two(result, digits) if len(result.pairs) == 1 else _of_pairs(result, digits)
    blocks: list[Block] = [table, Bullets(list(_notes(result, digits)), short=True)]
    caption = "Serves the choice between judges: each pair on the same items, paired by question."
    return Document(
        title=f"{result.experiment}: judges held against each other",
        about=f"{result.gold.in_words}. An unscored item counts as {result.gold.unscored_counts_as}.",
        headline=_headline(result),
        sections=[Section("pairs", "Differences", caption, blocks)],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=FROM_SUMMARY,
    )


def _headline(result: CompareResult) -> Headline:
    again = f"judgecal report {result.experiment}"
    if len(result.pairs) == 1:
        [(judges, found)] = result.pairs.items()
        return Headline(found.decision, _in_words(judges, found), (sentence(found.why),), next=again)
    by = next((_decided_by(one) for one in result.pairs.values() if one.raw), result.metric)
    because = tuple(
        f"{_in_words(judges, found)} {sentence(found.why)}"
        for judges, found in result.pairs.items()
        if found.decision != "cannot tell"
    )
    if not because:
        what = f"Cannot tell any two of them apart by {by} ({len(result.pairs)} pairs)."
        return Headline("cannot tell", what, next=again)
    what = f"{len(because)} of {len(result.pairs)} pairs are told apart by {by}."
    return Headline("told apart", what, because, next=again)


def _in_words(judges: tuple[str, str], found: Comparison) -> str:
    if found.decision == "cannot tell":
        return f"Cannot tell {judges[0]} from {judges[1]} by {_decided_by(found)}."
    better, worse = judges if found.decision == "A" else judges[::-1]
    return f"{better} agrees better with people than {worse} by {_decided_by(found)}."


def _decided_by(found: Comparison) -> str:
    return found.metric if found.raw is None else f"{found.metric} once calibrated"


def _of_two(result: CompareResult, digits: int) -> Table:
    """A row for each way to count unscored items; one where none is unscored."""
    [((a, b), pair)] = result.pairs.items()
    ends = [("nothing unscored", pair.a, pair.b, pair.difference)]
    if pair.difference.n_unscored:
        ends = [("unscored as wrong", pair.a, pair.b, pair.difference)]
        counted = (("unscored left out", pair.complete_case), ("unscored as right", pair.best_case))
        ends += [(name, end.a, end.b, end.difference) for name, end in counted]
    if pair.raw is not None:
        ends.append(("verdicts as they are", pair.raw.a, pair.raw.b, pair.raw.difference))
    rows = [
        [
            name,
            _count(found),
            numbers.plain(ours, digits),
            numbers.plain(theirs, digits),
            numbers.difference(found, digits),
        ]
        for name, ours, theirs, found in ends
    ]
    return Table([result.metric, "n", f"A: {a}", f"B: {b}", f"A - B [{result.level:.4g}]"], rows, short=True)


def _of_pairs(result: CompareResult, digits: int) -> Table:
    header = ["A", "B", "n", "unscored", f"A - B [{result.level:.4g}]", "p", "p (Holm)", "detectable", "decision"]
    rows = [
        [
            *judges,
            _count(pair.difference),
            str(pair.difference.n_unscored),
            numbers.difference(pair.difference, digits),
            _p(pair.p_value),
            _p(pair.p_adjusted),
            numbers.plain(pair.smallest_detectable, digits),
            pair.decision,
        ]
        for judges, pair in result.pairs.items()
    ]
    return Table(header, rows, left=2, short=True)


def _count(found: Estimate) -> str:
    return f"{found.n}/{found.n_expected}"


def _p(p: float | None) -> str:
    return numbers.DASH if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(result: CompareResult, digits: int) -> Iterator[str]:
    yield from _smallest([one.smallest_detectable for one in result.pairs.values()], digits)
    pairs = list(result.pairs.values())
    yield from _strata(result)
    made = dict.fromkeys(f"intervals {one.difference.method}; p: {one.p_method}" for one in pairs if one.p_method)
    yield from (f"Paired on the same items: {how}." for how in made)
    yield from _interaction(result.interaction)
    yield from map(sentence, result.notes)
    yield from [sentence(result.test_look)] if result.test_look else []
    yield f"Decisions taken on the test labels of {result.gold.set} so far: {result.test_looks}."


def _strata(result: CompareResult) -> Iterator[str]:
    """How many items each stratum holds, and where one of few items makes most of an interval."""
    first = next(iter(result.pairs.values())).strata
    if first:
        counts = ", ".join(f"{one.name} {numbers.count(one.n)}" for one in first)
        yield f"{result.metric} is the mean over strata of the labels: {counts}."
    driven = driven_in_words((*judges, found.strata) for judges, found in result.pairs.items())
    yield from (f"{one}." for one in driven)


def _smallest(detectable: Sequence[float | None], digits: int) -> Iterable[str]:
    """What so many questions could have shown, and on which assumption."""
    assumed = (
        f"with {100 * POWER:.0f}% power, planned for judges that differ {100 * PLANNED_DISCORDANCE:.0f}% as much as "
        "two that err independently, or as much as these do where that is more"
    )
    if len(detectable) > 1:
        yield f"Detectable: the smallest difference found {assumed}, at the first step of Holm."
    elif detectable[0] is not None:
        yield f"The smallest difference that these items would show: {numbers.plain(detectable[0], digits)}, {assumed}."


def _interaction(test: Interaction | None) -> Iterable[str]:
    if test is None:
        return
    yield f"Prompt x model: {test.why}."
    for cell in test.cells[:_DEVIATING] if test.p_value is not None else ():
        change = numbers.difference(Estimate(cell.deviation))
        yield f"{cell.row}@{cell.column}: {change} beside its prompt and model, p {_p(cell.p_adjusted)}"
