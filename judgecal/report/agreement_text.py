"""The agreement table as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.breakdown_text import alt_test_lines, order_notes, part_blocks, retest_notes
from judgecal.report.layout import text_table
from judgecal.report.wording import labelled_by, sentence, unscored_counts_as
from judgecal.stats.metrics import columns_of, digits_of, metric_facts

__all__ = ["agreement_text", "headline_metric"]


def headline_metric(estimates: Mapping[str, Estimate]) -> str:
    """The metric that the table leads with: macro_agreement, or accuracy where labels have no order."""
    return "macro_agreement" if "macro_agreement" in estimates else "accuracy"


def agreement_text(result: Mapping[str, Any]) -> str:
    """The table of `score` and `agreement`: judges, floor, raters; then what the reader must know.

    The leading metric counts an unscored item as the verdict farthest from its label; the columns after it are
    over the scored items alone.
    """
    entries = result["judges"]
    shown = columns_of(entries[0]["agreement"], result["gold"]["scale"])
    unit = entries[0]["unit"]
    priced = any(one["usd_per_1k"] is not None or one["latency_s"]["p50"] is not None for one in entries)
    header = ["judge", "n", "unscored", f"{shown[0]} [{_level(entries)}]", *shown[1:], "USD/1k", "p50"]
    rows: list[list[str]] = [_row(one, shown, unit=unit) for one in entries]
    rows += [["floor"], *(_row(one, shown, unit=unit, indent="  ") for one in result["floor"])]
    if result["raters"]:
        rows.append(
            [
                "raters, each against the other raters; under each the judges, on the same items against the same"
            ]
        )
        rows += [row for rater in result["raters"] for row in _rater_rows(rater, shown, unit)]
    kept = len(header) if priced else len(header) - 2  # recorded judgements have no cost and no latency
    table = text_table(header[:kept], [row[:kept] for row in rows])
    stands = [*alt_test_lines(result), ""] if any("alt_test" in one for one in entries) else []
    beside = [*stands, *part_blocks(result)]
    return "\n".join([_heading(result), "", table, "", *beside, *_notes(result, shown)])


def _level(entries: Sequence[Mapping[str, Any]]) -> str:
    lead = headline_metric(entries[0]["agreement"])
    return f"{entries[0]['agreement'][lead].level:.4g}"


def _row(
    one: Mapping[str, Any], shown: Sequence[str], *, unit: str, indent: str = "", called: bool = True
) -> list[str]:
    """A line of the table; without cost and latency where nobody was called for it.

    A bias in another unit than the first judge's (points beside shares of 1) would mislead: it is left out.
    """
    agreement = one["agreement"]
    return [
        f"{indent}{one['judge']}",
        f"{one['n']}/{one['n_expected']}",
        str(one["n_unscored"]),
        numbers.estimate(one["as_wrong"][shown[0]]),
        *(
            _cell(agreement.get(name), name, one["unit"])
            if one["unit"] == unit or metric_facts(name).unit == "share"
            else numbers.DASH
            for name in shown[1:]
        ),
        numbers.money(one["usd_per_1k"]) if called else "",
        numbers.seconds(one["latency_s"]["p50"]) if called else "",
    ]


def _cell(found: Estimate | None, name: str, unit: str) -> str:
    return numbers.plain(found.value if found else None, digits_of(name, unit))


def _rater_rows(rater: Mapping[str, Any], shown: Sequence[str], unit: str) -> Iterable[list[str]]:
    yield _row(rater, shown, unit=unit, indent="  ", called=False)
    for judge in rater["judges"]:
        yield _row(judge, shown, unit=unit, indent="    ", called=False)


def _heading(result: Mapping[str, Any]) -> str:
    gold = result["gold"]
    mark = f", pass at {gold['pass_at']:g}" if gold["pass_at"] is not None else ""
    return (
        f"{gold['set']}@{gold['sha256'][:12]}, split {gold['split']}: {gold['n_items']} items on {gold['n_groups']} "
        f"questions, {gold['scale']} labels{labelled_by(gold)}{mark}"
    )


def _notes(result: Mapping[str, Any], shown: Sequence[str]) -> Iterable[str]:
    worst = unscored_counts_as(result["gold"])
    yield f"{shown[0]}: an unscored item counts as {worst}; the other columns: scored items alone."
    yield from _missing_intervals(result, shown[0])
    for one in result["judges"]:
        if one["n_unscored"]:
            reasons = ", ".join(f"{count} {kind}" for kind, count in one["unscored"].items())
            yield f"{one['judge']}: {one['n_unscored']} of {one['n_expected']} unscored ({reasons})."
    yield from order_notes(result, shown[0])
    yield from retest_notes(result)
    if result["gold"]["n_unlabelled"]:
        n = result["gold"]["n_unlabelled"]
        yield f"{n} items have no gold label (raters tie, or nobody rated them) and are left out."
    for note in (result.get("floor_reason"), *result.get("notes", ())):
        if note:
            yield sentence(note)
    if not result["raters"]:
        yield "No human ceiling: no item has labels of two raters."
    gold = result["gold"]
    if gold["n_test_items"]:
        yield f"{gold['n_test_items']} of the items are test items: this look at their labels is logged."
    yield f"Decisions taken on the test labels of {gold['set']} so far: {result['test_looks']}."
    yield f"experiment: {result['experiment']}"
    yield f"run: {result['run_line']}"


def _missing_intervals(result: Mapping[str, Any], lead: str) -> Iterable[str]:
    reasons = {one["as_wrong"][lead].reason for one in result["judges"] if one["as_wrong"][lead].low is None}
    for reason in sorted(reason for reason in reasons if reason):
        yield f"No interval for {lead}: {reason}."
