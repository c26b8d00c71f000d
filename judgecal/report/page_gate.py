"""The page about a gate: pass, fail or inconclusive, then flips against noise, the loss, and the flipped items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.gate_text import gate_text
from judgecal.report.page import Decision, Report, Section
from judgecal.report.page_blocks import Block, Folded, Prose, Table
from judgecal.report.page_escape import terminal_text
from judgecal.report.page_intervals import Axis, IntervalRow, in_points, interval_picture
from judgecal.report.page_result import FROM_SUMMARY, Case, closing, result_data
from judgecal.report.wording import labelled_by, unscored_counts_as
from judgecal.stats.metrics import digits_of, metric_facts, rows_of

__all__ = ["gate_report"]

_ACTS = {
    "pass": "Go on with this judge",
    "fail": "Stop using this judge",
    "inconclusive": "Cannot tell whether the judge has drifted",
}
_SHOWN = 10  # flipped items; the others unfold
_WORDS = (
    ("flip rate", "How often a verdict falls on the other side of the pass mark than the locked one."),
    (
        "noise",
        "How often two calls of the judge on one item did so at lock time: what flips without any drift.",
    ),
    ("margin", "The loss that is allowed."),
    ("locked", "What the judge said when it was chosen; the lock holds each verdict."),
    ("unscored", "No verdict could be had or read. It counts as wrong here, and is never dropped."),
)


def gate_report(result: Mapping[str, Any], texts: Mapping[str, tuple[str, str]]) -> Report:
    """The report of `gate`.

    Args:
        result: the object that the command printed, with `Estimate`s.
        texts: item id -> question and answer; empty where the gold set is gone or has changed.
    """
    decision = _decision(result)
    return Report(
        title=f"{result['experiment']}: a locked judge judged anew",
        about=_about(result),
        decision=decision,
        make_sections=lambda: [
            _flips(result),
            _loss(result),
            _items(result, texts),
            closing(result, _WORDS, _spent(result)),
        ],
        text=terminal_text(f"{decision.sentence}\n\n{gate_text(result)}"),
        run_lines=(f"run: {result['run_line']}",),
        foot=FROM_SUMMARY,
        data=result_data(result),
    )


def _about(result: Mapping[str, Any]) -> str:
    gold = result["gold"]
    return (
        f"{result['experiment']} · {result['judge']} against its lock of {result['locked_at']}, on {result['items']}; "
        f"{gold['scale']} labels{labelled_by(gold)}"
    )


def _decision(result: Mapping[str, Any]) -> Decision:
    metric, digits = result["metric"], digits_of(result["metric"], result["gold"]["scale"])
    change = f"{metric} {numbers.difference(result['difference'], digits)} against a margin of {result['margin']:g}"
    rows, expected = result["unscored"], result["gold"]["n_items"] * max(1, result["repeats"])
    why = [
        f"{result['decision']}, as {result['why']}",
        change,
        f"{numbers.count(len(rows))} of {numbers.count(expected)} unscored",
        f"{numbers.count(result['gold']['n_groups'])} questions",
    ]
    if result["model_changed"]:
        why.insert(1, "the provider answers with another model")
    return Decision(_ACTS[result["decision"]], "; ".join(why), tuple(_unknown(result)))


def _unknown(result: Mapping[str, Any]) -> Iterable[str]:
    """What weighs most comes first."""
    rate, noise = result["flip_rate"], result["noise"]
    if result["decision"] == "inconclusive" and result["repeats"] < result["repeats_max"]:
        yield "What further passes would show: the budget ended before they were made."
    if result["smallest_detectable"] is not None:
        digits = digits_of(result["metric"], result["gold"]["scale"])
        smallest = numbers.plain(result["smallest_detectable"], digits)
        yield (
            f"Whether there is a drift below {smallest} of {result['metric']}: these items show one of that "
            "size in four runs of five, a smaller one more rarely."
        )
    if rate.value is None:
        yield f"How many verdicts flipped: {rate.reason}."
    if noise.value is None:
        yield f"How much of the change is the judge's own noise: {noise.reason}."
    elif noise.high is not None and rate.low is not None and rate.low <= noise.high and rate.value > 0.0:
        yield "Whether the flips are more than the judge's noise at lock time: they are not shown to be."
    if result["model_id"]["locked"] is None:
        yield "Whether the provider changed the model: the lock names none."
    if result["gold"]["labels_by"] == "project":
        yield "Whether people agree with these labels: the project itself made them."
    yield "How it judges what production sends now: these items are the ones that it was locked on."


def _flips(result: Mapping[str, Any]) -> Section:
    calls = result["noise_calls"]
    candidates = [
        ("flipped since the lock", result["flip_rate"], True),
        ("noise at lock time", result["noise"], False),
        ("changed at all", result["changed"], False),
    ]
    rows = [
        IntervalRow(name, in_points(found), _percent(found), strong, hollow=name.startswith("noise"))
        for name, found, strong in candidates
        if found.value is not None
    ]
    blocks: list[Block] = []
    if rows:
        table = _rates(candidates)
        blocks.append(interval_picture(rows, Axis("% of items", low=0.0), numbers=table))
    blocks += [
        Prose(f"No number for {name}: {found.reason}.")
        for name, found, _ in candidates
        if found.value is None
    ]
    caption = (
        "Serves the question whether there is more than noise: flips that lie within the noise are what this judge "
        f"does on any day. Noise was taken from {numbers.count(calls['n_items'])} items called "
        f"{numbers.count(calls['n_calls'])} times each. The pass mark tells a flip; a change of the verdict on one "
        "side of it is none."
    )
    return Section("flips", "Flips against noise", caption, blocks)


def _percent(found: Estimate) -> str:
    return f"{numbers.estimate(in_points(found), 1)}%"


def _rates(rows: Sequence[tuple[str, Estimate, bool]]) -> Table:
    cells = [
        [name, _percent(found), f"{found.level:.4g}", numbers.count(found.n), numbers.count(found.n_unscored)]
        for name, found, _ in rows
        if found.value is not None
    ]
    return Table(["", "share of items", "level", "n", "unscored"], cells, short=True)


def _loss(result: Mapping[str, Any]) -> Section:
    metric, digits = result["metric"], digits_of(result["metric"], result["gold"]["scale"])
    rows = [
        IntervalRow(name, found, numbers.difference(found, digits), strong, hollow=not strong)
        for name, found, strong in (
            ("now − locked", result["difference"], True),
            ("without unscored items", result["complete_case"], False),
        )
        if found is not None and (strong or result["unscored"])
    ]
    less_is_better = metric_facts(metric).direction == "less"
    axis = Axis(
        f"change of {metric}", full=0.0, dashed=result["margin"] if less_is_better else -result["margin"]
    )
    side = "right" if less_is_better else "left"
    passes = result["repeats"]
    caption = (
        f"Serves the decision: pass where the loss is shown to end before the dashed margin of {result['margin']:g}, "
        f"fail where the line lies {side} of 0, the loss exceeds the margin and a further pass bears it out. "
        f"{numbers.count(passes)} of at most {numbers.count(result['repeats_max'])} passes were made, without stored "
        f"answers. An unscored item counts as {unscored_counts_as(result['gold'])}; intervals are by question."
    )
    blocks: list[Block] = [interval_picture(rows, axis), *_bound(result), _metrics(result)]
    return Section("loss", "Difference against the margin", caption, blocks)


def _bound(result: Mapping[str, Any]) -> Iterable[Prose]:
    found = result["difference"]
    if found.low is None and found.reason:
        yield Prose(f"No interval: {found.reason}.")
    if result["loss_below"] is not None:
        below = numbers.plain(
            max(result["loss_below"], 0.0), digits_of(result["metric"], result["gold"]["scale"])
        )
        yield Prose(f"The loss stays below {below}, by a one-sided bound at level {result['level']:.4g}.")


def _metrics(result: Mapping[str, Any]) -> Table:
    """The metric of the decision, then those beside it."""
    leading = result["metric"]
    names = [leading, *rows_of(result["now"])]
    rows = [
        [
            name,
            f"{numbers.count(now.n)} of {numbers.count(now.n_expected)}",
            numbers.count(now.n_unscored),
            numbers.estimate(result["locked"][name], digits_of(name, result["gold"]["scale"])),
            numbers.estimate(now, digits_of(name, result["gold"]["scale"])),
        ]
        for name in dict.fromkeys(names)
        for now in (result["now"][name],)
    ]
    level = f"[{result['now'][leading].level:.4g}]"
    return Table(
        ["metric", "n", "unscored", f"locked {level}", f"now {level}"], rows, title="Then and now", short=True,
        chosen=leading,
    )  # fmt: skip


def _items(result: Mapping[str, Any], texts: Mapping[str, tuple[str, str]]) -> Section:
    flipped, unscored = result["flipped"], result["unscored"]
    blocks: list[Block] = []
    if not flipped:
        blocks.append(Prose("No item flipped."))
    elif not texts:
        blocks.append(
            Prose("The gold set is gone or has changed since, so items are shown by their ids alone.")
        )
    blocks += [_case(one, texts) for one in flipped[:_SHOWN]]
    others = flipped[_SHOWN:]
    if others:
        title = f"{numbers.count(len(others))} more"
        blocks.append(Folded(title, [_case(one, texts) for one in others]))
    if unscored:
        kinds = Counter(str(row["kind"]) for row in unscored)
        rows = [[kind, numbers.count(n)] for kind, n in kinds.most_common()]
        blocks.append(Table(["why", "judgements"], rows, title="Unscored, and why", short=True))
    many = f"{numbers.count(len(flipped))} item{'s' * (len(flipped) != 1)}"
    caption = (
        f"Serves the search for the cause: {many} judged otherwise than when the judge was locked{_sides(flipped)}. "
        "Changes all to one side look like a drift, changes to both sides like noise."
    )
    return Section("items", "Flipped items", caption, blocks)


def _sides(flipped: Sequence[Mapping[str, Any]]) -> str:
    """How many verdicts went up and how many down, where they are numbers; a verdict of any pass counts."""
    moved = [
        verdict - one["locked"]
        for one in flipped
        for verdict in one["now"]
        if isinstance(verdict, int | float) and isinstance(one["locked"], int | float)
    ]
    up, down = sum(by > 0 for by in moved), sum(by < 0 for by in moved)
    return f" ({numbers.count(up)} verdicts went up, {numbers.count(down)} down)" if up or down else ""


def _case(one: Mapping[str, Any], texts: Mapping[str, tuple[str, str]]) -> Case:
    said = [("Locked", _verdict(one["locked"])), ("Now", ", ".join(map(_verdict, one["now"])))]
    item = str(one["item_id"])
    if item not in texts:
        return Case(item, said)
    question, answer = texts[item]
    return Case(item, [("Question", question), ("Answer", answer), *said])


def _verdict(verdict: Any) -> str:
    if verdict is None:
        return "unscored"
    return f"{verdict:g}" if isinstance(verdict, int | float) else str(verdict)


def _spent(result: Mapping[str, Any]) -> Iterable[str]:
    model = result["model_id"]
    yield f"This gate spent {numbers.money(result['usd'])} USD. Lock: {result['lock']}."
    yield f"Model: locked {model['locked'] or 'unknown'}, now {', '.join(model['now']) or 'unknown'}."
