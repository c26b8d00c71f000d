"""The result of `select` as text: the decision in words, every judge with its bound, what test says, the lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.layout import text_table
from judgecal.report.wording import labelled_by, sentence, unscored_counts_as
from judgecal.stats.metrics import digits_of

__all__ = ["select_text"]


def select_text(result: Mapping[str, Any]) -> str:
    """The decision, then a row a judge, then the confirmation and notes."""
    lines = [_headline(result), "", _judges(result), ""]
    return "\n".join([*lines, *_confirmation(result), *_lock(result), *_notes(result)])


def _headline(result: Mapping[str, Any]) -> str:
    if result["chosen"] is None:
        return f"Nobody is chosen: none of the {len(result['judges'])} judges is within the caps."
    return f"{result['chosen']} is chosen: {result['why']}."


def _judges(result: Mapping[str, Any]) -> str:
    metric, digits = result["metric"], digits_of(result["metric"], result["gold"]["scale"])
    header = [
        "judge",
        "n",
        "unscored",
        f"{metric} [{result['level']:.4g}]",
        "loss",
        "at most",
        "USD/1k",
        "p95",
        "verdict",
    ]
    rows = [
        [
            one["judge"],
            f"{one['n']}/{one['n_expected']}",
            str(one["n_unscored"]),
            numbers.estimate(one["value"], digits),
            numbers.plain(one["loss"], digits),
            numbers.plain(one["loss_at_most"], digits),
            numbers.money(one["usd_per_1k"]),
            numbers.seconds(one["p95_s"]),
            one["verdict"],
        ]
        for one in result["judges"]
    ]
    return text_table(header, rows)


def _confirmation(result: Mapping[str, Any]) -> Iterable[str]:
    if not result["confirmed"]:
        return
    on, metric = result["confirmed_on"], result["metric"]
    found: Estimate = result["confirmed"][metric]
    value = numbers.estimate(found, digits_of(metric, result["gold"]["scale"]))
    why = f" ({found.reason})" if found.reason else ""
    yield (
        f"Confirmed on test: {metric} {value}{why} at level {found.level:.4g}, {on['n_items']} items on "
        f"{on['n_groups']} questions, {found.n_unscored} unscored. This is its agreement, not the one that won."
    )


def _lock(result: Mapping[str, Any]) -> Iterable[str]:
    if result["lock"] is None:
        yield sentence(f"no lock was written: {result['lock_reason']}")
        return
    noise = result["noise"]
    yield f"Locked in {result['lock']} (sha256 {result['lock_sha256'][:12]})."
    if noise["n_calls"] < 2:
        yield sentence(noise["flip_rate"].reason)
    else:
        yield (
            f"Noise: {noise['n_calls']} calls of {noise['n_items']} items; flip rate {_or_why(noise['flip_rate'])}, "
            f"exact agreement of two calls {_or_why(noise['exact_agreement'])}."
        )
    cut = result["own_cut"]
    if cut is not None:
        yield (
            f"Its own best cut on the items that it was chosen on: {cut['cut']:g} (balanced accuracy "
            f"{cut['balanced_accuracy']:.3f} there; {cut['n_items']} items). The people's mark decides."
        )


def _or_why(found: Estimate) -> str:
    value = numbers.estimate(found)
    return f"{value} ({found.reason})" if found.reason else value


def _notes(result: Mapping[str, Any]) -> Iterable[str]:
    gold = result["gold"]
    yield (
        f"{gold['set']}@{gold['sha256'][:12]}, chosen on train and dev: {gold['n_items']} items on {gold['n_groups']} "
        f"questions, {gold['scale']} labels{labelled_by(gold)}. An unscored item counts as {unscored_counts_as(gold)}."
    )
    if result["bounds"]:
        yield (
            f"At most: the loss against whoever is truly best, at level {result['level']:.4g} for all judges at once "
            f"({result['bounds']}). The margin is {result['margin']:g}."
        )
    yield from (f"Not taken: {one['judge']}: {one['why']}." for one in result["rejected"])
    yield from (sentence(note) for note in result["notes"])
    if result["test_look"]:
        yield sentence(result["test_look"])
    yield f"Decisions taken on the test labels of {gold['set']} so far: {result['test_looks']}."
    yield f"experiment: {result['experiment']} (chosen from {result['chosen_from']})"
    yield f"run: {result['run_line']}"
