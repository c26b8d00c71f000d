"""The decision of `gate` and `migrate` as JUnit XML, which servers of continuous integration show as tests.

One case, which never says otherwise than the exit code: a `failure` where what was asked is shown not to hold
(`fail`, `changed`), an `error` where it cannot be told (`inconclusive`). No `skipped`, which servers show as
green.
"""

from __future__ import annotations

import datetime
from xml.etree import ElementTree as Xml

from judgecal.errors import visible
from judgecal.report.charts import change_of
from judgecal.report.document import Document
from judgecal.selection.gate import GateResult
from judgecal.selection.migrate import MigrateResult
from judgecal.stats.metrics import amount_of

_TAGS = {"pass": "system-out", "inconclusive": "error"}


def junit(
    result: GateResult | MigrateResult, document: Document, *, started: datetime.datetime, seconds: float
) -> str:
    """The XML: one suite, its case, and as properties what reproduces it.

    Args:
        result: what was decided.
        document: the same for a reader; its headline is the message of a case that did not pass.
        started: when the command began; with a time zone, it is written as UTC.
        seconds: how long it took.
    """
    metric, scale, headline = result.metric, result.gold.scale, document.headline
    margin = amount_of(result.margin, metric, scale)
    if isinstance(result, GateResult):
        name, numbers = "judgecal gate", "Now - locked"
        case = f"agreement with the labels has not fallen by more than {margin} ({metric})"
    else:
        name, numbers = "judgecal migrate", "New - old on test"
        case = f"{result.new} loses less than {margin} against {result.old} ({metric})"
    of = result.difference
    numbers += (
        f": {change_of(of, metric, scale)} at level {of.level:.4g}, n {of.n} of {of.n_expected}, "
        f"{of.n_unscored} unscored."
    )
    tag, took = _TAGS.get(result.decision, "failure"), {"time": f"{seconds:.3f}"}
    counted = {"tests": "1", "failures": str(int(tag == "failure")), "errors": str(int(tag == "error"))}
    counted |= {"skipped": "0", **took}
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
    named = {"name": visible(case), "classname": name.replace(" ", "."), **took}
    why = {} if tag == "system-out" else {"message": visible(headline.sentence), "type": result.decision}
    outcome = Xml.SubElement(Xml.SubElement(suite, "testcase", named), tag, why)
    outcome.text = visible("\n".join([headline.sentence, numbers, *reasons]))
    Xml.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(top, encoding="unicode")}\n'
