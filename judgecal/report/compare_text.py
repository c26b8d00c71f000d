"""The result of `compare` as text: the decision in words, then the numbers, then how to reproduce it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.layout import text_table
from judgecal.report.wording import labelled_by, sentence, unscored_counts_as
from judgecal.stats.metrics import digits_of

__all__ = ["compare_text"]

_ENDS = (("unscored left out", "complete_case"), ("unscored as right", "best_case"))
_DEVIATING = 3  # cells of the grid that are named


def compare_text(result: Mapping[str, Any]) -> str:
    """Two judges: the decision, the difference at each end, notes. Several: every pair after Holm."""
    table = _of_pairs(result) if "pairs" in result else _of_two(result)
    return "\n".join([_headline(result), "", table, "", *_notes(result)])


def _headline(result: Mapping[str, Any]) -> str:
    if "pairs" not in result:
        return _in_words(result)
    decided = [_in_words(pair) for pair in result["pairs"] if pair["decision"] != "cannot tell"]
    n = len(result["pairs"])
    if not decided:
        return f"Cannot tell any two of them apart by {result['metric']} ({n} pairs)."
    return "\n".join([f"{len(decided)} of {n} pairs are told apart by {result['metric']}.", *decided])


def _in_words(pair: Mapping[str, Any]) -> str:
    a, b, why = pair["a"], pair["b"], sentence(pair["why"])
    if pair["decision"] == "cannot tell":
        return f"Cannot tell {a} from {b} by {pair['metric']}. {why}"
    better, worse = (a, b) if pair["decision"] == "A" else (b, a)
    return f"{better} agrees better with people than {worse} by {pair['metric']}. {why}"


def _of_two(result: Mapping[str, Any]) -> str:
    """A row for each way to count unscored items; one where none is unscored."""
    digits = digits_of(result["metric"], result["gold"]["scale"])
    header = [result["metric"], "n", "A", "B", f"A - B [{result['level']:.4g}]"]
    main = {"a": result["a_value"], "b": result["b_value"], "difference": result["difference"]}
    ends = [("unscored as wrong", main)]
    if main["difference"].n_unscored:
        ends += [(name, result[key]) for name, key in _ENDS]
    else:
        ends = [("nothing unscored", main)]
    rows = [
        [
            name,
            _count(end["difference"]),
            numbers.plain(end["a"], digits),
            numbers.plain(end["b"], digits),
            numbers.difference(end["difference"], digits),
        ]
        for name, end in ends
    ]
    return text_table(header, rows) + f"\nA: {result['a']}\nB: {result['b']}"


def _of_pairs(result: Mapping[str, Any]) -> str:
    digits = digits_of(result["metric"], result["gold"]["scale"])
    header = [
        "A",
        "B",
        "n",
        "unscored",
        f"A - B [{result['level']:.4g}]",
        "p",
        "p (Holm)",
        "detectable",
        "decision",
    ]
    rows = [
        [
            pair["a"],
            pair["b"],
            _count(pair["difference"]),
            str(pair["difference"].n_unscored),
            numbers.difference(pair["difference"], digits),
            _p(pair["p_value"]),
            _p(pair["p_adjusted"]),
            numbers.plain(pair["smallest_detectable"], digits),
            pair["decision"],
        ]
        for pair in result["pairs"]
    ]
    return text_table(header, rows, left=2)


def _count(found: Estimate) -> str:
    return f"{found.n}/{found.n_expected}"


def _p(p: float | None) -> str:
    return numbers.DASH if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _notes(result: Mapping[str, Any]) -> Iterable[str]:
    gold = result["gold"]
    yield (
        f"{gold['set']}@{gold['sha256'][:12]}, split {gold['split']}: {gold['n_items']} items on {gold['n_groups']} "
        f"questions, {gold['scale']} labels{labelled_by(gold)}. An unscored item counts as {unscored_counts_as(gold)}."
    )
    yield from _smallest(result)
    yield from _methods(result)
    if "interaction" in result:
        yield from _interaction(result["interaction"])
    yield from (sentence(note) for note in result["notes"])
    if result["test_look"]:
        yield sentence(result["test_look"])
    yield f"Decisions taken on the test labels of {gold['set']} so far: {result['test_looks']}."
    yield f"experiment: {result['experiment']}"
    yield f"run: {result['run_line']}"


def _smallest(result: Mapping[str, Any]) -> Iterable[str]:
    """What so many questions could have shown, and on which assumption."""
    plan = result["planning"]
    assumed = (
        f"with {100 * plan['power']:.0f}% power, planned for judges that differ {100 * plan['discordance']:.0f}% as "
        "much as two that err independently, or as much as these do where that is more"
    )
    if "pairs" in result:
        yield f"Detectable: the smallest difference found {assumed}, at the first step of Holm."
    elif result["smallest_detectable"] is not None:
        smallest = numbers.plain(
            result["smallest_detectable"], digits_of(result["metric"], result["gold"]["scale"])
        )
        yield f"The smallest difference that these items would show: {smallest}, {assumed}."


def _methods(result: Mapping[str, Any]) -> Iterable[str]:
    pairs = result.get("pairs", [result])
    made = dict.fromkeys(
        f"intervals {pair['difference'].method}; p: {pair['p_method']}" for pair in pairs if pair["p_method"]
    )
    yield from (f"Paired on the same items: {how}." for how in made)


def _interaction(found: Mapping[str, Any]) -> Iterable[str]:
    yield f"Prompt x model: {found['why']}."
    if found["p_value"] is None:
        return
    for cell in found["cells"][:_DEVIATING]:
        change = numbers.difference(Estimate(cell["deviation"]))
        yield f"  {cell['signature']}@{cell['model']}: {change} beside its prompt and model, p {_p(cell['p_adjusted'])}"
