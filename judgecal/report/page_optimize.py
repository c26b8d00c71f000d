"""The page about an optimisation: decision, before and after, the prompt as a diff, candidates, then both judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.optimize_text import optimize_text
from judgecal.report.page import Decision, Report, Section
from judgecal.report.page_blocks import Block, Folded, Heading, Prose, Table
from judgecal.report.page_escape import terminal_text
from judgecal.report.page_intervals import Axis, IntervalRow, in_points, interval_picture
from judgecal.report.page_judges import judges_data, judges_sections
from judgecal.report.page_result import Case, Diff, closing, result_data
from judgecal.report.wording import labelled_by, sentence, unscored_counts_as
from judgecal.stats.metrics import digits_of, rows_of

__all__ = ["optimize_report"]

_FOOT = (
    "Both judges over the test items are rebuilt from the journal; what was tried on dev and the recalibrated "
    "difference are from summary.json, as the journal alone does not hold them. No model was called, and nothing here "
    "is loaded from elsewhere."
)


def optimize_report(
    result: Mapping[str, Any], prompts: Mapping[str, Any], judges: Mapping[str, Any] | None
) -> Report:
    """The report of `optimize`.

    Args:
        result: the object that the command printed, with `Estimate`s.
        prompts: `before` (None where it is not known), `after`, `demos`.
        judges: both judges on the test items as `cli.report_judges.found_of_judges` gives them; None without test.
    """
    decision = _decision(result)
    data = {} if judges is None else judges_data(judges)
    return Report(
        title=f"{result['experiment']}: a judge optimised",
        about=_about(result),
        decision=decision,
        make_sections=lambda: [
            _gain(result),
            _prompt(result, prompts),
            _candidates(result),
            *(judges_sections(judges) if judges is not None else []),
            closing(result, (), _spent(result)),
        ],
        text=terminal_text(f"{decision.sentence}\n\n{optimize_text(result)}"),
        run_lines=(f"run: {result['run_line']}",),
        foot=_FOOT,
        data={**data, **result_data(result)},
    )


def _about(result: Mapping[str, Any]) -> str:
    gold, judge = result["gold"], result["judge"].partition("#")[0]
    parts = ", ".join(
        f"{split} {numbers.count(n)} items on {numbers.count(gold['n_groups'][split])} questions"
        for split, n in gold["n_items"].items()
    )
    return (
        f"{result['experiment']} · {judge}, optimizer {result['optimizer']}{_writer(result)}, "
        f"on {gold['set']}@{gold['sha256'][:12]}: {parts}; {gold['scale']} labels{labelled_by(gold)}"
    )


def _decision(result: Mapping[str, Any]) -> Decision:
    act, why = _act(result)
    return Decision(act, "; ".join([*why, *_scope(result)]), tuple(_unknown(result)))


def _act(result: Mapping[str, Any]) -> tuple[str, list[str]]:
    test, why = result["test"], str(result["why"])
    if test["difference"] is None:
        keep = result["chosen"] == "before"
        return ("Keep the judge as it is" if keep else "Do not take it yet"), [why]
    change = f"{_change(test['difference'])} points of {result['metric']} on test"
    again = f"{_change(test['difference_recalibrated'])} once both are recalibrated"
    told = {
        "better": ("Take the optimised judge", [change, again]),
        "worse": ("Keep the judge as it is", ["the optimised one is worse", change]),
        "rescaled only": (
            "Keep the judge as it is",
            ["the gain is one of scale alone", change, again],
        ),
    }
    if result["decision"] in told:
        return told[result["decision"]]
    if result["chosen"] == "before":
        return "Keep the judge as it is", [why]
    told_why = [why] if test["difference"].low is None else []
    return "Keep the judge as it is", ["nothing better is shown", *told_why, change, again]


def _change(found: Estimate | None) -> str:
    return numbers.DASH if found is None else numbers.difference(in_points(found), 1)


def _scope(result: Mapping[str, Any]) -> Iterable[str]:
    split = "test" if result["test"]["after"] is not None else "dev"
    after = result[split]["after"][result["metric"]]
    yield f"{numbers.count(after.n_unscored)} of {numbers.count(after.n_expected)} unscored on {split}"
    yield f"{numbers.count(result['gold']['n_groups'][split])} questions"


def _unknown(result: Mapping[str, Any]) -> Iterable[str]:
    """What weighs most comes first."""
    metric, test, found = result["metric"], result["test"], result["test"]["difference"]
    if found is None:
        yield (
            f"Whether any gain holds: test was not looked at, and {len(result['dev']['candidates'])} prompts were "
            "held against each other on dev, which flatters the best of them."
        )
    elif found.low is None:
        yield f"How sure the difference is: {found.reason}."
    elif result["decision"] == "cannot tell" and result["chosen"] != "before":
        ends = [_signed(end) for end in (found.low, found.high)]
        yield f"Whether it is better or worse: anything from {ends[0]} to {ends[1]} points of {metric} fits the data."
    if found is not None and test["difference_recalibrated"] is None:
        yield "Whether a map of its scale would do as much: labels without an order have none."
    if result["gold"]["labels_by"] == "project":
        yield "Whether people agree with these labels: the project itself made them."
    if found is not None and result["test_looks"] > 1:
        yield f"What a fresh test set would say: this one has served {result['test_looks']} decisions."
    yield f"Whether another optimizer or model would do better: only {result['optimizer']}{_writer(result)} was tried."


def _writer(result: Mapping[str, Any]) -> str:
    writer = result.get("reflection_model")
    return f" with {writer}" if writer else ""


def _signed(value: float) -> str:
    return numbers.difference(Estimate(100.0 * value), 1)


def _gain(result: Mapping[str, Any]) -> Section:
    metric, test = result["metric"], result["test"]
    rows = [
        IntervalRow(f"{split}, {when}", found, numbers.estimate(found), strong=(split, when) == ("test", "after"),
                    hollow=when == "before")
        for split in ("dev", "test")
        if result[split]["before"] is not None
        for when in ("before", "after")
        for found in (result[split][when][metric],)
    ]  # fmt: skip
    blocks: list[Block] = [interval_picture(rows, Axis(metric), title=f"{metric} before and after")]
    if test["difference"] is not None:
        blocks += _differences(result)
    blocks.append(_metrics(result))
    kinds = "An empty square is the judge as it was, a disc the optimised one."
    basis = (
        "The decision rests on test alone, which took no part in the choice; dev chose, and flatters what it chose."
        if test["difference"] is not None
        else "Test was not looked at: dev chose among the candidates, and flatters what it chose."
    )
    caption = (
        f"Serves the choice between the two prompts. {basis} {kinds} An unscored item counts as "
        f"{unscored_counts_as(result['gold'])}; intervals are by question."
    )
    return Section("gain", "Before and after", caption, blocks)


def _differences(result: Mapping[str, Any]) -> list[Block]:
    """After less before, as they are and once both are recalibrated by the same kind of map."""
    test = result["test"]
    pairs = [("as they are", test["difference"]), ("both recalibrated", test["difference_recalibrated"])]
    rows = [
        IntervalRow(name, in_points(found), _change(found), strong=name == "as they are")
        for name, found in pairs
        if found is not None
    ]
    axis = Axis(f"after − before on test, points of {result['metric']}", full=0.0)
    told = (
        "Right of the line the optimised judge agrees better. A gain that goes once the verdicts of both are mapped "
        "onto the labels is a gain of scale: a map would give it for nothing."
    )
    blocks: list[Block] = [interval_picture(rows, axis, title="Difference on test"), Prose(told)]
    return blocks + [
        Prose(f"No interval {name}: {found.reason}.")
        for name, found in pairs
        if found is not None and found.low is None and found.reason
    ]


def _metrics(result: Mapping[str, Any]) -> Table:
    """The deciding metric on both splits, then those beside it on test."""
    metric, dev, test = result["metric"], result["dev"], result["test"]
    scale = result["gold"]["scale"]
    rows = [_row("dev", metric, dev, scale)]
    if test["before"] is not None:
        rows.append([*_row("test", metric, test, scale)[:-1], _change(test["difference"])])
        rows += [_row("test", name, test, scale) for name in rows_of(test["before"]) if name != metric]
    header = ["split, level", "metric", "n", "unscored", "before", "after", "points"]
    return Table(header, rows, left=2, title="Every number", short=True)


def _row(split: str, metric: str, part: Mapping[str, Any], scale: str) -> list[str]:
    before, after = part["before"][metric], part["after"][metric]
    digits = digits_of(metric, scale)
    unscored = f"{before.n_unscored} → {after.n_unscored}" if before.n_unscored != after.n_unscored else None
    return [
        f"{split}, {after.level:.4g}",
        metric,
        f"{numbers.count(after.n)} of {numbers.count(after.n_expected)}",
        unscored or numbers.count(after.n_unscored),
        numbers.estimate(before, digits),
        numbers.estimate(after, digits),
        "",
    ]


def _prompt(result: Mapping[str, Any], prompts: Mapping[str, Any]) -> Section:
    blocks: list[Block] = [Heading("Instructions"), *_instructions(prompts)]
    demos = prompts["demos"]
    if demos:
        blocks.append(Heading(f"Demos: 0 before, {numbers.count(len(demos))} after"))
        blocks.append(Prose("Each stands in the prompt in full, in this order; a demo is an item of train."))
        blocks.append(Folded("The demos", [_demo(place, demo) for place, demo in enumerate(demos, 1)]))
    else:
        blocks.append(Prose("No demos, before or after."))
    changed = "new instructions" if result["instructions_changed"] else "the same instructions"
    caption = (
        f"Serves whoever is to answer for the prompt: {changed}, {numbers.count(len(demos))} demos. Read it before "
        "it judges anything: an optimiser writes what scores, also where it is wrong."
    )
    return Section("prompt", "What changed in the prompt", caption, blocks)


def _instructions(prompts: Mapping[str, Any]) -> list[Block]:
    before, after = prompts["before"], prompts["after"]
    if before is None:
        note = "The signature is gone or has changed since, so the instructions before are not known."
        return [Prose(note), Case("After", [("instructions", after)])]
    if before == after:
        return [
            Prose("Unchanged: the demos are the whole difference."
                  if prompts["demos"] else "Unchanged."),
            Folded("The instructions", [Case("Before and after", [("instructions", after)])]),
        ]  # fmt: skip
    return [Diff(before, after, short=True)]


def _demo(place: int, demo: Mapping[str, Any]) -> Case:
    shown = [
        (str(name).replace("_", " "), _said(value)) for name, value in demo.items() if name != "augmented"
    ]
    made = "the judge's own reply, where it met the label" if demo.get("augmented") else ""
    return Case(f"Demo {place}", shown, made)


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _candidates(result: Mapping[str, Any]) -> Section:
    metric, tried = result["metric"], result["dev"]["candidates"]
    rows = [
        IntervalRow(
            one["name"], one[metric], numbers.estimate(one[metric]), one["name"] == result["chosen"],
            one["name"] == "before",
        )
        for one in tried
    ]  # fmt: skip
    table = Table(
        [
            "candidate",
            "demos",
            f"{metric} on dev [{tried[0][metric].level:.4g}]",
            "once recalibrated",
            "no verdict in training",
        ],
        [_tried(one, metric) for one in tried],
        chosen=result["chosen"],
    )
    picture = interval_picture(rows, Axis(f"{metric} on dev"), numbers=table)
    why = [Prose(sentence(result["choice"]))] if result["choice"] else []
    caption = (
        f"Serves the choice of the one prompt that test was to confirm: {result['chosen']}. Of {len(tried)} prompts "
        "some are ahead by chance, so a lead here decides nothing by itself."
    )
    return Section("candidates", "What was tried on dev", caption, [picture, *why])


def _tried(one: Mapping[str, Any], metric: str) -> Sequence[str]:
    rated, unusable = one["rated_in_training"], one["unusable_in_training"]
    return [
        one["name"],
        numbers.count(one["n_demos"]),
        numbers.estimate(one[metric]),
        numbers.estimate(one["recalibrated"]),
        f"{numbers.count(unusable)} of {numbers.count(rated)}" if rated else numbers.DASH,
    ]


def _spent(result: Mapping[str, Any]) -> Iterable[str]:
    yield f"This run spent {numbers.money(result['usd'])} USD. Program: {result['program']}."
    yield f"Use it as: judgecal score --gold {result['gold']['set']} --judge '{result['judge']}'"
    if result["test_look"]:
        yield sentence(result["test_look"])
