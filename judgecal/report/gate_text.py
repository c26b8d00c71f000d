"""The result of `gate` as text and as Markdown for CI: flips against noise first, then the loss, then the decision."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.layout import text_table
from judgecal.report.wording import labelled_by, sentence, unscored_counts_as
from judgecal.stats.metrics import digits_of, rows_of

__all__ = ["gate_markdown", "gate_text"]

_SHOWN = 10  # item ids that are named
_MANY_UNSCORED = 0.10
_LONGEST = 80  # characters of an id in Markdown
_MARKS = re.compile(r"([\\`*_\[#|~@]|://|(?<=www)\.)")


def gate_text(result: Mapping[str, Any]) -> str:
    """The first lines, a table of then and now, the flipped items, notes and run line."""
    header = ["", "n", "unscored", "locked", "now", "now - locked"]
    parts = [*_first_lines(result), "", text_table(header, _rows(result)), "", *_notes(result)]
    return "\n".join(parts)


def gate_markdown(result: Mapping[str, Any]) -> str:
    """The same for a job's summary: short, and texts of items or models cannot write Markdown or HTML of their own."""
    header = ["", "n", "unscored", "locked", "now", "now - locked"]
    table = [_row(header), _row(["---"] * len(header)), *(_row(row) for row in _rows(result))]
    lines = [
        f"## judgecal gate: {_escaped(result['judge'])}: {result['decision'].upper()}",
        "",
        *(f"- {_escaped(line)}" for line in _first_lines(result)),
        "",
        *table,
        "",
    ]
    flipped = result["flipped"]
    if flipped:
        ids = [_escaped(one["item_id"], longest=_LONGEST) for one in flipped[:_SHOWN]]
        lines += [f"{_flipped_head(result)}: {', '.join(ids)}{_more(flipped)}", ""]
    lines += [f"Experiment {_escaped(result['experiment'])}. Run: {_escaped(result['run_line'])}", ""]
    return "\n".join(lines)


def _first_lines(result: Mapping[str, Any]) -> Iterable[str]:
    yield _flips(result)
    if result["model_changed"]:
        model = result["model_id"]
        yield f"MODEL CHANGED: the provider now answers as {', '.join(model['now'])}; locked was {model['locked']}."
    if result["unscored"]:
        yield _unscored(result)
    yield _difference(result)
    yield f"{result['decision'].upper()}: {result['why']}."


def _flips(result: Mapping[str, Any]) -> str:
    rate, noise = result["flip_rate"], result["noise"]
    calls = result["noise_calls"]
    when = f"{calls['n_items']} items called {calls['n_calls']} times at lock time"
    changed = f"{_percent(result['changed'])} of verdicts changed at all"
    if rate.value is None:
        return f"Flip rate: none ({rate.reason}); {changed}, noise floor {_unequal(result, when)}."
    floor = f"none ({noise.reason})" if noise.value is None else f"{_percent(noise)} ({when})"
    return (
        f"Flip rate {_percent(rate)} of {rate.n} items against the locked verdicts, noise floor {floor}"
        f"{_against(rate, noise)}; {changed}."
    )


def _against(rate: Estimate, noise: Estimate) -> str:
    """Whether the flips stand out of the noise, where both have an interval."""
    if rate.low is None or noise.high is None:
        return ""
    return ": above it" if rate.low > noise.high else ": not shown to be above it"


def _unequal(result: Mapping[str, Any], when: str) -> str:
    same = result["noise_unchanged"]
    return f"none ({same.reason})" if same.value is None else f"{100.0 * (1.0 - same.value):.1f}% ({when})"


def _percent(found: Estimate) -> str:
    if found.value is None:
        return f"none ({found.reason})"
    value = f"{100.0 * found.value:.1f}%"
    if found.low is None or found.high is None:
        return value
    return f"{value} [{100.0 * found.low:.1f}%, {100.0 * found.high:.1f}%]"


def _unscored(result: Mapping[str, Any]) -> str:
    """How many, why, and what stands without them."""
    rows, expected = result["unscored"], result["gold"]["n_items"] * max(1, result["repeats"])
    kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(row["kind"] for row in rows).most_common())
    ids = list(dict.fromkeys(row["item_id"] for row in rows))
    head = "MANY UNSCORED: " if len(rows) > _MANY_UNSCORED * expected else ""
    alone = numbers.difference(result["complete_case"], digits_of(result["metric"], result["gold"]["scale"]))
    named = ", ".join(ids[:_SHOWN])
    return (
        f"{head}{len(rows)} of {expected} judgements are unscored ({kinds}) and count as "
        f"{unscored_counts_as(result['gold'])}; without their items the difference is {alone}: {named}{_more(ids)}."
    )


def _difference(result: Mapping[str, Any]) -> str:
    digits = digits_of(result["metric"], result["gold"]["scale"])
    found = numbers.difference(result["difference"], digits)
    below = result["loss_below"]
    bound = (
        ""
        if below is None
        else f"; the loss stays below {numbers.plain(max(below, 0.0), digits)} (one-sided)"
    )
    return (
        f"Difference in {result['metric']}, now - locked: {found} at level {result['level']:.4g}, margin "
        f"{result['margin']:g}{bound}."
    )


def _rows(result: Mapping[str, Any]) -> list[list[str]]:
    """The metric of the decision, then those beside it."""
    leading = result["metric"]
    return [
        [
            name,
            f"{now.n}/{now.n_expected}",
            str(now.n_unscored),
            numbers.estimate(result["locked"][name], digits),
            numbers.estimate(now, digits),
            numbers.difference(result["difference"], digits) if name == leading else "",
        ]
        for name in dict.fromkeys([leading, *rows_of(result["now"])])
        for now, digits in ((result["now"][name], digits_of(name, result["gold"]["scale"])),)
    ]


def _notes(result: Mapping[str, Any]) -> Iterable[str]:
    gold = result["gold"]
    yield (
        f"Judged anew: {result['items']} ({gold['scale']} labels{labelled_by(gold)}), in {result['repeats']} of at "
        f"most {result['repeats_max']} passes, without stored answers or an earlier journal; means are of single calls."
    )
    yield f"An unscored item counts as {unscored_counts_as(gold)}. Intervals are by question."
    if result["smallest_detectable"] is not None:
        smallest = numbers.plain(
            result["smallest_detectable"], digits_of(result["metric"], result["gold"]["scale"])
        )
        yield f"The smallest difference that these items would show: {smallest}, with 80% power."
    yield from _flipped(result)
    yield from (sentence(note) for note in result["notes"])
    yield f"Locked {result['locked_at']} in {result['lock']}. This gate spent {numbers.money(result['usd'])} USD."
    yield f"experiment: {result['experiment']}"
    yield f"run: {result['run_line']}"


def _flipped(result: Mapping[str, Any]) -> Iterable[str]:
    """The items on the other side of the mark, with what was said then and now."""
    flipped = result["flipped"]
    if not flipped:
        return
    yield f"{_flipped_head(result)}:"
    for one in flipped[:_SHOWN]:
        now = ", ".join(_verdict(verdict) for verdict in one["now"])
        yield f"  {one['item_id']}: {_verdict(one['locked'])} -> {now}"
    if len(flipped) > _SHOWN:
        yield f"  and {len(flipped) - _SHOWN} more in {result['experiment']}/summary.json"


def _flipped_head(result: Mapping[str, Any]) -> str:
    n, passes = len(result["flipped"]), result["repeats"]
    did = "changed" if result["flip_rate"].value is None else "flipped"
    return f"{n} item{'s' * (n != 1)} {did}{' in some pass' if passes > 1 else ''}"


def _more(names: Sequence[Any]) -> str:
    return f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""


def _verdict(verdict: Any) -> str:
    if verdict is None:
        return "unscored"
    return f"{verdict:g}" if isinstance(verdict, int | float) else str(verdict)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell if cell == '---' else _escaped(cell) for cell in cells)} |"


def _escaped(text: str, *, longest: int | None = None) -> str:
    """A text as Markdown shows it letter by letter, on one line."""
    line = " ".join(str(text).split())
    if longest is not None and len(line) > longest:
        line = f"{line[:longest]}..."
    return html.escape(_MARKS.sub(r"\\\1", line), quote=False)
