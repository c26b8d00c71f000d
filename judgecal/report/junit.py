"""The decision of `gate` and `migrate` as JUnit XML, which servers of continuous integration show as tests.

A case fails or errs only where the decision is not "pass", so that the file never says otherwise than the
exit code:

- `failure`: what was asked is shown not to hold (`fail`, `changed`).
- `error`: it cannot be told (`inconclusive`). No `skipped`, which servers show as green: the exit code is 3.
- `skipped`: what decides nothing is unknown or worth a look, as when the provider answers as another model.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as Xml

from judgecal.errors import visible
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.document import Document
from judgecal.report.intervals import change_of, in_percent
from judgecal.report.wording import sentence
from judgecal.selection.gate import GateResult
from judgecal.selection.gate_rule import UnscoredRise
from judgecal.selection.migrate import MigrateResult
from judgecal.stats.metrics import amount_of

Outcome = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Case:
    """One question of a gate: what was asked, what came out, and the numbers that say so. `kind`: the
    decision."""

    name: str
    outcome: Outcome
    said: str
    kind: str = ""


def junit(
    result: GateResult | MigrateResult, document: Document, *, started: datetime.datetime, seconds: float
) -> str:
    """The XML: one suite, its cases, and as properties what reproduces it.

    Args:
        result: what was decided.
        document: the same for a reader; its headline is the message of a case that did not pass.
        started: when the command began; with a time zone, it is written as UTC.
        seconds: how long it took; the calls are made for the first case, so that the time is its own.
    """
    gate = isinstance(result, GateResult)
    cases = gate_cases(result) if isinstance(result, GateResult) else [_migration(result)]
    named = "judgecal gate" if gate else "judgecal migrate"
    of = Counter(case.outcome for case in cases)
    counted = {"tests": str(len(cases)), "failures": str(of["failure"]), "errors": str(of["error"])}
    counted |= {"skipped": str(of["skipped"]), "time": f"{seconds:.3f}"}
    utc = started.astimezone(datetime.UTC)
    top = Xml.Element("testsuites", {"name": "judgecal", **counted})
    suite = Xml.SubElement(
        top, "testsuite", {"name": named, **counted, "timestamp": f"{utc:%Y-%m-%dT%H:%M:%S}"}
    )
    _properties(suite, result, document)
    for case in cases:
        spent = seconds if case is cases[0] else 0.0
        _case(suite, case, document.headline, {"classname": named.replace(" ", "."), "time": f"{spent:.3f}"})
    Xml.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(top, encoding="unicode")}\n'


def _properties(suite: Xml.Element, result: GateResult | MigrateResult, document: Document) -> None:
    told = {"decision": result.decision, "experiment": result.experiment, "lock": result.lock}
    told |= {"run_line": result.run_line, "next": document.headline.next}
    properties = Xml.SubElement(suite, "properties")
    for name, value in told.items():
        Xml.SubElement(properties, "property", {"name": name, "value": visible(value)})


def _case(suite: Xml.Element, case: Case, headline: Headline, more: dict[str, str]) -> None:
    element = Xml.SubElement(suite, "testcase", {"name": case.name, **more})
    if case.outcome == "skipped":
        Xml.SubElement(element, "skipped", {"message": visible(case.said)})
    elif case.outcome != "passed":
        found = Xml.SubElement(
            element, case.outcome, {"message": visible(headline.sentence), "type": case.kind}
        )
        lines = [case.said, *headline.because, *(f"Not known: {one}" for one in headline.unknown)]
        found.text = visible("\n".join([*lines, *([f"next: {headline.next}"] if headline.next else [])]))
    else:
        Xml.SubElement(element, "system-out").text = visible(case.said)


def gate_cases(result: GateResult) -> Sequence[Case]:
    """Agreement, the judgements that are missing, who answers; then flips and model id, which decide
    nothing."""
    return [_agreement(result), _unscored(result), _same_judge(result), *_beside(result)]


def _kept(result: GateResult) -> bool:
    """Whether the loss is shown to stay under the margin, whatever else spoke against the judge."""
    return result.decision == "pass" or (result.loss_below is not None and result.loss_below < result.margin)


def _agreement(result: GateResult) -> Case:
    metric, scale = result.metric, result.gold.scale
    name = (
        f"agreement with the labels has not fallen by more than {amount_of(result.margin, metric, scale)} "
        f"({metric})"
    )
    difference = change_of(result.difference, metric, scale)
    counted = (
        f"n {result.difference.n} of {result.difference.n_expected}, {result.difference.n_unscored} unscored"
    )
    said = f"Now - locked: {difference} at level {result.difference.level:.4g}, {counted}."
    if _kept(result):
        return Case(name, "passed", said)
    if result.decision == "fail" and not _missing(result):
        return Case(name, "failure", said, "fail")
    if result.decision == "inconclusive":
        return Case(name, "error", said, "inconclusive")
    return Case(name, "skipped", f"{said} The gate did not come to decide on it: {sentence(result.why)}")


def _missing(result: GateResult) -> bool:
    return UnscoredRise(result.unscored.rise, result.unscored.p_at_most).too_high


def _unscored(result: GateResult) -> Case:
    shares = result.unscored
    name = f"the share of unscored judgements has not risen by more than {numbers.percent(shares.tolerance)}"
    said = f"{numbers.percent(shares.locked, 1)} when it was locked, {numbers.percent(shares.now, 1)} now."
    if not result.repeats:
        return Case(name, "error", sentence(result.why), "inconclusive")
    return Case(name, "failure", said, "fail") if _missing(result) else Case(name, "passed", said)


def _same_judge(result: GateResult) -> Case:
    name, odd = "the judge that was locked answers", result.odd_one_out
    said = sentence("it takes three calls of an item to tell" if odd is None else odd.in_words)
    if result.decision == "changed" or (odd is not None and odd.changed):
        return Case(name, "failure", said, "changed")
    if result.decision == "inconclusive" and (_kept(result) or not result.repeats):
        return Case(name, "error", said, "inconclusive")
    return Case(name, "skipped" if odd is None or odd.between is None else "passed", said)


def _beside(result: GateResult) -> Iterator[Case]:
    """What the gate reports and does not decide by."""
    rate, noise, name = result.flip_rate, result.noise, "flip rate (reported, decides nothing)"
    if rate.value is None:
        yield Case(name, "skipped", f"No flip rate: {rate.reason}.")
    else:
        floor = in_percent(noise) if noise.value is not None else f"none ({noise.reason})"
        yield Case(name, "passed", f"{in_percent(rate)} of {rate.n} items; noise when it was locked {floor}.")
    name, ids = "model id (reported, decides nothing)", result.model_id
    now = ", ".join(ids.now) or "unknown"
    if result.model_changed:
        yield Case(
            name, "skipped", f"MODEL CHANGED: the provider now answers as {now}; locked was {ids.locked}."
        )
    elif ids.locked is None:
        yield Case(name, "skipped", f"The lock names no model id; now {now}.")
    else:
        yield Case(name, "passed", f"As it was locked: {ids.locked}.")


def _migration(result: MigrateResult) -> Case:
    metric, scale = result.metric, result.gold.scale
    margin = amount_of(result.margin, metric, scale)
    name = f"{visible(result.new)} loses less than {margin} against {visible(result.old)} ({metric})"
    difference = change_of(result.difference, metric, scale)
    said = f"New - old on test: {difference} at level {result.difference.level:.4g}."
    outcomes: dict[str, Outcome] = {"pass": "passed", "fail": "failure"}
    return Case(name, outcomes.get(result.decision, "error"), said, result.decision)
