"""The document of `compare`: who agrees better with people, the difference at each end, every pair after Holm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judgecal.experiment.compare import CompareResult, GridTest, Pair
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import FROM_SUMMARY, Block, Bullets, Document, Section, Table
from judgecal.report.wording import sentence
from judgecal.stats import digits_of

_DEVIATING = 3  # cells of the grid that are named


def compare_document(result: CompareResult) -> Document:
    """Two judges: the decision and the difference at each end. Several: every pair."""
    pairs, digits = result.pairs, digits_of(result.metric, result.gold.scale)
    table = _of_two(result, digits) if len(pairs) == 1 else _of_pairs(result, digits)
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
    pairs = result.pairs
    again = f"judgecal report {result.experiment}"
    if len(pairs) == 1:
        return Headline(pairs[0].decision, _in_words(pairs[0]), (sentence(pairs[0].why),), next=again)
    decided = [pair for pair in pairs if pair.decision != "cannot tell"]
    if not decided:
        what = f"Cannot tell any two of them apart by {result.metric} ({len(pairs)} pairs)."
        return Headline("cannot tell", what, next=again)
    what = f"{len(decided)} of {len(pairs)} pairs are told apart by {result.metric}."
    because = tuple(f"{_in_words(pair)} {sentence(pair.why)}" for pair in decided)
    return Headline("told apart", what, because, next=again)


def _in_words(pair: Pair) -> str:
    if pair.decision == "cannot tell":
        return f"Cannot tell {pair.a} from {pair.b} by {pair.metric}."
    better, worse = (pair.a, pair.b) if pair.decision == "A" else (pair.b, pair.a)
    return f"{better} agrees better with people than {worse} by {pair.metric}."


def _of_two(result: CompareResult, digits: int) -> Table:
    """A row for each way to count unscored items; one where none is unscored."""
    pair = result.pairs[0]
    ends = [("nothing unscored", pair.a_value, pair.b_value, pair.difference)]
    if pair.difference.n_unscored:
        ends = [("unscored as wrong", pair.a_value, pair.b_value, pair.difference)]
        counted = (("unscored left out", pair.complete_case), ("unscored as right", pair.best_case))
        ends += [(name, end.a, end.b, end.difference) for name, end in counted]
    rows = [
        [name, _count(found), numbers.plain(a, digits), numbers.plain(b, digits), numbers.difference(found, digits)]
        for name, a, b, found in ends
    ]
    header = [result.metric, "n", f"A: {pair.a}", f"B: {pair.b}", f"A - B [{result.level:.4g}]"]
    return Table(header, rows, short=True)


def _of_pairs(result: CompareResult, digits: int) -> Table:
    header = ["A", "B", "n", "unscored", f"A - B [{result.level:.4g}]", "p", "p (Holm)", "detectable", "decision"]
    rows = [
        [
            pair.a,
            pair.b,
            _count(pair.difference),
            str(pair.difference.n_unscored),
            numbers.difference(pair.difference, digits),
            _p(pair.p_value),
            _p(pair.p_adjusted),
            numbers.plain(pair.smallest_detectable, digits),
            pair.decision,
        ]
        for pair in result.pairs
    ]
    return Table(header, rows, left=2, short=True)


def _count(found: Estimate) -> str:
    return f"{found.n}/{found.n_expected}"


def _p(p: float | None) -> str:
    return numbers.DASH if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(result: CompareResult, digits: int) -> Iterator[str]:
    yield from _smallest(result, digits)
    pairs = [pair for pair in result.pairs if pair.p_method]
    made = dict.fromkeys(f"intervals {pair.difference.method}; p: {pair.p_method}" for pair in pairs)
    yield from (f"Paired on the same items: {how}." for how in made)
    yield from _interaction(result.interaction)
    yield from map(sentence, result.notes)
    yield from [sentence(result.test_look)] if result.test_look else []
    yield f"Decisions taken on the test labels of {result.gold.set} so far: {result.test_looks}."


def _smallest(result: CompareResult, digits: int) -> Iterable[str]:
    """What so many questions could have shown, and on which assumption."""
    assumed = (
        f"with {100 * result.planning.power:.0f}% power, planned for judges that differ "
        f"{100 * result.planning.discordance:.0f}% as much as two that err independently, or as much as these do where "
        "that is more"
    )
    smallest = result.pairs[0].smallest_detectable
    if len(result.pairs) > 1:
        yield f"Detectable: the smallest difference found {assumed}, at the first step of Holm."
    elif smallest is not None:
        yield f"The smallest difference that these items would show: {numbers.plain(smallest, digits)}, {assumed}."


def _interaction(test: GridTest | None) -> Iterable[str]:
    if test is None:
        return
    yield f"Prompt x model: {test.why}."
    for cell in test.cells[:_DEVIATING] if test.p_value is not None else ():
        change = numbers.difference(Estimate(cell.deviation))
        yield f"{cell.signature}@{cell.model}: {change} beside its prompt and model, p {_p(cell.p_adjusted)}"
