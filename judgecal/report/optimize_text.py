"""The result of `optimize` as text: the decision first, then before and after, then how to reproduce it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.layout import text_table
from judgecal.report.wording import labelled_by, sentence, unscored_counts_as
from judgecal.stats.metrics import digits_of, rows_of

__all__ = ["optimize_text", "own_calls_text"]


def optimize_text(result: Mapping[str, Any]) -> str:
    """Decision, table, candidates, run line."""
    parts = [_sentence(result), "", _table(result), "", *_notes(result)]
    return "\n".join(parts)


def own_calls_text(optimizer: str, *, task: int, reflection: int, writer: str | None) -> str:
    """How many of the previewed calls are the optimiser's own."""
    parts = [f"at most {task} of the judge's model"]
    if writer:
        parts.append(f"at most {reflection} of {writer}, which writes the instructions")
    return f"Of these {optimizer} itself makes {' and '.join(parts)}; the settings are bounds, and it may need fewer."


def _sentence(result: Mapping[str, Any]) -> str:
    gold = result["gold"]
    judge = result["judge"].partition("#")[0]
    return (
        f"{judge} on {gold['set']} ({gold['scale']} labels{labelled_by(gold)}), "
        f"optimizer {result['optimizer']}{_writer(result)}: {result['decision'].upper()}\n{sentence(result['why'])}"
    )


def _writer(result: Mapping[str, Any]) -> str:
    writer = result.get("reflection_model")
    return f" (instructions by {writer})" if writer else ""


def _table(result: Mapping[str, Any]) -> str:
    metric, dev, test = result["metric"], result["dev"], result["test"]
    header = ["", "n", "unscored", "questions", "before", "after", "after - before"]
    rows = [_row(f"dev  {metric}", dev["before"][metric], dev["after"][metric], "")]
    if test["before"] is not None:
        change = numbers.difference(test["difference"])
        rows.append(_row(f"test {metric}", test["before"][metric], test["after"][metric], change))
        again = numbers.difference(test["difference_recalibrated"])
        rows.append(["     once both are recalibrated", "", "", "", "", "", again])
        scale = result["gold"]["scale"]
        rows += [
            _beside(name, test, digits_of(name, scale)) for name in rows_of(test["before"]) if name != metric
        ]
    return text_table(header, rows)


def _row(name: str, before: Estimate, after: Estimate, change: str, digits: int = 3) -> list[str]:
    unscored = f"{before.n_unscored} -> {after.n_unscored}" if before.n_unscored or after.n_unscored else "0"
    ends = [numbers.estimate(before, digits), numbers.estimate(after, digits)]
    return [name, f"{after.n}/{after.n_expected}", unscored, str(after.n_groups), *ends, change]


def _beside(name: str, test: Mapping[str, Any], digits: int) -> list[str]:
    return _row(f"test {name}", test["before"][name], test["after"][name], "", digits)


def _notes(result: Mapping[str, Any]) -> Iterable[str]:
    dev = result["dev"]["candidates"]
    yield f"Tried on dev: {len(dev)}, the judge as it is among them. Taken: {result['chosen']}; {result['choice']}."
    yield f"An unscored item counts as {unscored_counts_as(result['gold'])}. Intervals are by question."
    unusable = sum(one["unusable_in_training"] for one in dev)
    if unusable:
        rated = sum(one["rated_in_training"] for one in dev)
        yield f"In training {unusable} of {rated} replies gave no verdict: they counted as wrong."
    yield from (sentence(note) for note in result["notes"])
    changed = "new instructions" if result["instructions_changed"] else "instructions unchanged"
    yield f"Program: {result['program']} ({result['n_demos']} demos, {changed})."
    yield f"This run spent {numbers.money(result['usd'])} USD."
    yield f"Use it as: judgecal score --gold {result['gold']['set']} --judge '{result['judge']}'"
    if result["test_look"]:
        yield sentence(result["test_look"])
    yield f"experiment: {result['experiment']}"
    yield f"run: {result['run_line']}"
