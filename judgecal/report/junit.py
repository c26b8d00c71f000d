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
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as Xml

from judgecal.errors import visible
from judgecal.report.charts import change_of, in_percent
from judgecal.report.document import Document
from judgecal.report.numbers import percent
from judgecal.report.wording import sentence
from judgecal.selection.gate import GateResult
from judgecal.selection.migrate import MigrateResult
from judgecal.selection.rules import UnscoredRise
from judgecal.stats.metrics import amount_of

Outcome = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Case:
    """One question of a gate: what was asked, what came out, and the numbers that say so."""

    name: str
    outcome: Outcome
    numbers: str
    kind: str = ""  # the decision, where it did not pass


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
    if isinstance(result, GateResult):
        name, cases = "judgecal gate", gate_cases(result)
    else:
        name, cases = "judgecal migrate", [_migration(result)]
    outcomes, headline = Counter(case.outcome for case in cases), document.headline
    counted = {
        "tests": str(len(cases)),
        "failures": str(outcomes["failure"]),
        "errors": str(outcomes["error"]),
    }
    counted |= {"skipped": str(outcomes["skipped"]), "time": f"{seconds:.3f}"}
    utc = f"{started.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%S}"
    top = Xml.Element("testsuites", {"name": "judgecal", **counted})
    suite = Xml.SubElement(top, "testsuite", {"name": name, **counted, "timestamp": utc})
    properties = Xml.SubElement(suite, "properties")
    values = {"decision": result.decision, "experiment": result.experiment, "lock": result.lock}
    values |= {"run_line": result.run_line, "next": headline.next}
    for key, value in values.items():
        Xml.SubElement(properties, "property", {"name": key, "value": visible(value)})
    following = [f"next: {headline.next}"] if headline.next else []
    reasons = [*headline.because, *(f"Not known: {what}" for what in headline.unknown), *following]
    for case in cases:
        spent = seconds if case is cases[0] else 0.0
        of = {"name": case.name, "classname": name.replace(" ", "."), "time": f"{spent:.3f}"}
        element = Xml.SubElement(suite, "testcase", of)
        if case.outcome == "skipped":
            Xml.SubElement(element, "skipped", {"message": visible(case.numbers)})
        elif case.outcome == "passed":
            Xml.SubElement(element, "system-out").text = visible(case.numbers)
        else:
            why = {"message": visible(headline.sentence), "type": case.kind}
            Xml.SubElement(element, case.outcome, why).text = visible("\n".join([case.numbers, *reasons]))
    Xml.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(top, encoding="unicode")}\n'


def gate_cases(result: GateResult) -> list[Case]:
    """Agreement, the judgements that are missing, who answers; then flips and model id, which decide
    nothing.
    """
    metric, scale, decision = result.metric, result.gold.scale, result.decision
    margin, odd, shares = amount_of(result.margin, metric, scale), result.odd_one_out, result.unscored
    missing = UnscoredRise(shares.rise, shares.p_at_most).too_high
    # whether the loss is shown to stay under the margin, whatever else spoke against the judge
    agrees = decision == "pass" or (result.loss_below is not None and result.loss_below < result.margin)

    def agreement() -> Case:
        name = f"agreement with the labels has not fallen by more than {margin} ({metric})"
        of = result.difference
        numbers = (
            f"Now - locked: {change_of(of, metric, scale)} at level {of.level:.4g}, n {of.n} of "
            f"{of.n_expected}, {of.n_unscored} unscored."
        )
        if agrees:
            return Case(name, "passed", numbers)
        if decision == "fail" and not missing:
            return Case(name, "failure", numbers, "fail")
        if decision == "inconclusive":
            return Case(name, "error", numbers, "inconclusive")
        return Case(
            name, "skipped", f"{numbers} The gate did not come to decide on it: {sentence(result.why)}"
        )

    def unscored() -> Case:
        name = f"the share of unscored judgements has not risen by more than {percent(shares.tolerance)}"
        numbers = f"{percent(shares.locked, 1)} when it was locked, {percent(shares.now, 1)} now."
        if not result.repeats:
            return Case(name, "error", sentence(result.why), "inconclusive")
        return Case(name, "failure", numbers, "fail") if missing else Case(name, "passed", numbers)

    def same_judge() -> Case:
        name = "the judge that was locked answers"
        numbers = sentence("it takes three calls of an item to tell" if odd is None else odd.in_words)
        if decision == "changed" or (odd is not None and odd.changed):
            return Case(name, "failure", numbers, "changed")
        if decision == "inconclusive" and (agrees or not result.repeats):
            return Case(name, "error", numbers, "inconclusive")
        return Case(name, "skipped" if odd is None or odd.between is None else "passed", numbers)

    def flips() -> Case:
        rate, noise, name = result.flip_rate, result.noise, "flip rate (reported, decides nothing)"
        if rate.value is None:
            return Case(name, "skipped", f"No flip rate: {rate.reason}.")
        floor = in_percent(noise) if noise.value is not None else f"none ({noise.reason})"
        return Case(
            name, "passed", f"{in_percent(rate)} of {rate.n} items; noise when it was locked {floor}."
        )

    def model_id() -> Case:
        name, ids = "model id (reported, decides nothing)", result.model_id
        now = ", ".join(ids.now) or "unknown"
        if result.model_changed:
            numbers = f"The model changed: the provider now answers as {now}, not {ids.locked}."
            return Case(name, "skipped", numbers)
        if ids.locked is None:
            return Case(name, "skipped", f"The lock names no model id; now {now}.")
        return Case(name, "passed", f"As it was locked: {ids.locked}.")

    return [agreement(), unscored(), same_judge(), flips(), model_id()]


def _migration(result: MigrateResult) -> Case:
    metric, scale = result.metric, result.gold.scale
    margin = amount_of(result.margin, metric, scale)
    name = f"{visible(result.new)} loses less than {margin} against {visible(result.old)} ({metric})"
    difference = change_of(result.difference, metric, scale)
    numbers = f"New - old on test: {difference} at level {result.difference.level:.4g}."
    outcomes: dict[str, Outcome] = {"pass": "passed", "fail": "failure"}
    return Case(name, outcomes.get(result.decision, "error"), numbers, result.decision)
