"""The result of `compare` as text: the decision in words, then the numbers, then how to reproduce it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.layout import text_table
from judgecal.report.wording import sentence
from judgecal.stats.metrics import digits_of

if TYPE_CHECKING:
    from judgecal.experiment.compare import CompareResult, GridTest, Pair

__all__ = ["compare_text"]

_DEVIATING = 3  # cells of the grid that are named


def compare_text(result: CompareResult) -> str:
    """Two judges: the decision, the difference at each end, notes. Several: every pair after Holm."""
    table = _of_pairs(result) if len(result.pairs) > 1 else _of_two(result)
    return "\n".join([_headline(result), "", table, "", *_notes(result)])


def _headline(result: CompareResult) -> str:
    if len(result.pairs) == 1:
        return _in_words(result.pairs[0])
    decided = [_in_words(pair) for pair in result.pairs if pair.decision != "cannot tell"]
    n = len(result.pairs)
    if not decided:
        return f"Cannot tell any two of them apart by {result.metric} ({n} pairs)."
    return "\n".join([f"{len(decided)} of {n} pairs are told apart by {result.metric}.", *decided])


def _in_words(pair: Pair) -> str:
    a, b, why = pair.a, pair.b, sentence(pair.why)
    if pair.decision == "cannot tell":
        return f"Cannot tell {a} from {b} by {pair.metric}. {why}"
    better, worse = (a, b) if pair.decision == "A" else (b, a)
    return f"{better} agrees better with people than {worse} by {pair.metric}. {why}"


def _of_two(result: CompareResult) -> str:
    """A row for each way to count unscored items; one where none is unscored."""
    pair, digits = result.pairs[0], digits_of(result.metric, result.gold.scale)
    header = [result.metric, "n", "A", "B", f"A - B [{result.level:.4g}]"]
    difference = pair.difference
    ends = [("nothing unscored", pair.a_value, pair.b_value, difference)]
    if difference.n_unscored:
        ends = [("unscored as wrong", pair.a_value, pair.b_value, difference)]
        ends += [
            (name, end.a, end.b, end.difference)
            for name, end in (
                ("unscored left out", pair.complete_case),
                ("unscored as right", pair.best_case),
            )
        ]
    rows = [
        [
            name,
            _count(apart),
            numbers.plain(a, digits),
            numbers.plain(b, digits),
            numbers.difference(apart, digits),
        ]
        for name, a, b, apart in ends
    ]
    return text_table(header, rows) + f"\nA: {pair.a}\nB: {pair.b}"


def _of_pairs(result: CompareResult) -> str:
    digits = digits_of(result.metric, result.gold.scale)
    header = [
        "A",
        "B",
        "n",
        "unscored",
        f"A - B [{result.level:.4g}]",
        "p",
        "p (Holm)",
        "detectable",
        "decision",
    ]
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
    return text_table(header, rows, left=2)


def _count(found: Estimate) -> str:
    return f"{found.n}/{found.n_expected}"


def _p(p: float | None) -> str:
    return numbers.DASH if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(result: CompareResult) -> Iterable[str]:
    gold = result.gold
    yield f"{gold.in_words}. An unscored item counts as {gold.unscored_counts_as}."
    yield from _smallest(result)
    yield from _methods(result)
    if result.interaction:
        yield from _interaction(result.interaction)
    yield from (sentence(note) for note in result.notes)
    if result.test_look:
        yield sentence(result.test_look)
    yield f"Decisions taken on the test labels of {gold.set} so far: {result.test_looks}."
    yield f"experiment: {result.experiment}"
    yield f"run: {result.run_line}"


def _smallest(result: CompareResult) -> Iterable[str]:
    """What so many questions could have shown, and on which assumption."""
    plan = result.planning
    assumed = (
        f"with {100 * plan.power:.0f}% power, planned for judges that differ {100 * plan.discordance:.0f}% as "
        "much as two that err independently, or as much as these do where that is more"
    )
    if len(result.pairs) > 1:
        yield f"Detectable: the smallest difference found {assumed}, at the first step of Holm."
    elif (smallest := result.pairs[0].smallest_detectable) is not None:
        shown = numbers.plain(smallest, digits_of(result.metric, result.gold.scale))
        yield f"The smallest difference that these items would show: {shown}, {assumed}."


def _methods(result: CompareResult) -> Iterable[str]:
    pairs = result.pairs
    made = dict.fromkeys(
        f"intervals {pair.difference.method}; p: {pair.p_method}" for pair in pairs if pair.p_method
    )
    yield from (f"Paired on the same items: {how}." for how in made)


def _interaction(found: GridTest) -> Iterable[str]:
    yield f"Prompt x model: {found.why}."
    if found.p_value is None:
        return
    for cell in found.cells[:_DEVIATING]:
        change = numbers.difference(Estimate(cell.deviation))
        yield f"  {cell.signature}@{cell.model}: {change} beside its prompt and model, p {_p(cell.p_adjusted)}"
