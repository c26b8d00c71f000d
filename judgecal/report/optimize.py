"""The document of `optimize`: the decision, before and after, the prompt as a diff, what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from judgecal.optimize.decision import BETTER, CANNOT_TELL, NOTHING_CHANGED, RESCALED_ONLY, WORSE
from judgecal.optimize.result import OptimizeResult, Prompts
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    Block,
    Diff,
    Document,
    Folded,
    Heading,
    Paragraph,
    Record,
    Section,
    Table,
    notes_section,
    table,
)
from judgecal.report.intervals import (
    Axis,
    IntervalRow,
    axis_of,
    change_of,
    in_points,
    interval_picture,
    metric_row,
    of_metric,
)
from judgecal.report.judges_headline import raters_in_words, unread_headline
from judgecal.report.wording import OWN_LABELS, sentence, sentences
from judgecal.stats import rows_of

_FOOT = (
    "Both judges over the test items are rebuilt from the journal; what was tried on dev and the calibrated "
    "difference are from summary.json, as the journal alone does not hold them. No model was called, and "
    "nothing here is loaded from elsewhere."
)


def optimize_document(
    result: OptimizeResult, prompts: Prompts | None = None, judges: Sequence[Section] = ()
) -> Document:
    """What an optimisation came to.

    Args:
        result: the object of the command.
        prompts: the prompt before and after, where it was read back.
        judges: the sections about both judges on the test items, where test was looked at.
    """
    return Document(
        title=f"{result.experiment}: a judge optimised",
        about=f"{result.judge_before}, optimizer {_optimizer(result)}, on {result.gold.in_words}.",
        headline=unread_headline(result.unread) or _headline(result),
        sections=[
            _gain(result),
            *([_prompt(result, prompts)] if prompts else []),
            _candidates(result),
            *judges,
            *notes_section(_notes(result)),
        ],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=_FOOT,
        data={"result": result},
    )


def _optimizer(result: OptimizeResult) -> str:
    writer = f" (instructions by {result.reflection_model})" if result.reflection_model else ""
    return f"{result.optimizer}{writer}"


def _mapped(result: OptimizeResult) -> Estimate | None:
    """The difference once both are calibrated; None where there is none, as of labels without an order."""
    return None if result.gold.scale == "nominal" else result.test.difference_recalibrated


def _points(change: Estimate | None) -> str:
    return numbers.DASH if change is None else numbers.difference(in_points(change), 1)


# --- the headline


def _headline(result: OptimizeResult) -> Headline:
    act, reasons = _act(result)
    split = "test" if result.test.after is not None else "dev"
    after = (result.test.after or result.dev.after)[result.metric]
    scope = f"{after.n_unscored:,} of {after.n_expected:,} unscored on {split}"
    use = act.startswith("Take") or (split == "dev" and result.chosen != "before")
    because = sentences(
        map(sentence, reasons),
        result.why not in (act, *reasons) and sentence(result.why),
        f"{scope}, {result.gold.n_groups[split]:,} questions.",
    )
    judge = result.judge if use else result.judge_before
    again = f"judgecal score --gold {result.gold.set} --judge '{judge}'"
    return Headline(result.decision, f"{act}.", because, _unknown(result), again)


def _act(result: OptimizeResult) -> tuple[str, list[str]]:
    """What to do, and what bears it out."""
    test, keep, mapped = result.test, "Keep the judge as it is", _mapped(result)
    if test.difference is None or test.after is None:
        return (keep if result.chosen == "before" else "Do not take the optimised judge yet"), [result.why]
    change = f"{_points(test.difference)} points"
    if mapped:
        change = f"{_points(mapped)} points once both are calibrated ({_points(test.difference)} raw)"
    whom, _ = raters_in_words(result.gold.labels_by)
    changes = [f"on test its agreement with {whom} changes by {change}"]
    if result.decision == BETTER:
        return f"Take the optimised judge: it agrees better with {whom}", changes
    if result.decision == WORSE:
        return f"{keep}: the optimised one agrees less with {whom}", changes
    if result.decision == RESCALED_ONLY:
        return f"{keep}: the gain is one of scale alone", changes
    unsure = [result.why] if (mapped or test.difference).low is None else []
    return f"{keep}: nothing better is shown", [*unsure, *changes]


def _unknown(result: OptimizeResult) -> tuple[str, ...]:
    """What weighs most comes first."""
    looked = (_mapped(result) or result.test.difference) if result.test.after is not None else None
    doubt = ""
    if looked is None:
        doubt = (
            f"Whether any gain holds: test was not looked at, and {len(result.dev.candidates)} prompts were "
            "held against each other on dev, which flatters the best of them."
        ) * (result.decision != NOTHING_CHANGED)
    elif looked.low is None or looked.high is None:
        doubt = f"How sure the difference is: {looked.reason}."
    elif result.decision == CANNOT_TELL:
        low, high = (numbers.signed(100.0 * end, 1) for end in (looked.low, looked.high))
        once = " once calibrated" * (result.gold.scale != "nominal")
        points = f"anything from {low} to {high} points of {result.metric}{once} fits the data"
        doubt = f"Whether it is better or worse: {points}."
    return sentences(
        doubt,
        looked is not None
        and _mapped(result) is None
        and "Whether a map of its scale would do as much: labels without an order have none.",
        result.gold.labels_by == "project" and OWN_LABELS,
        looked is not None
        and result.test_looks > 1
        and f"What a fresh test set would say: this one has served {result.test_looks} decisions.",
        f"Whether another optimizer or model would do better: only {_optimizer(result)} was tried.",
    )


# --- before and after


class _Deciding(NamedTuple):
    """The number that decides on a split, before or after."""

    split: str
    when: str
    estimate: Estimate


def _deciding(result: OptimizeResult) -> tuple[str, list[_Deciding]]:
    """What the numbers that decide are called, and they: once calibrated, where all of them can be."""
    dev = {candidate.name: candidate for candidate in result.dev.candidates}
    metric, once = result.metric, result.test.calibrated
    raw = [
        _Deciding(split, when, estimates[metric])
        for split, before, after in _splits(result)
        for when, estimates in (("before", before), ("after", after))
    ]
    tried = {"before": dev["before"].calibrated, "after": dev[result.chosen].calibrated}
    mapped = [_Deciding("dev", when, value) for when, value in tried.items() if value is not None]
    if once is not None:
        sides = {"before": once.before, "after": once.after}
        mapped += [_Deciding("test", when, side[metric]) for when, side in sides.items() if metric in side]
    decide = mapped if len(mapped) == len(raw) else raw
    same = [row.estimate for row in decide] == [row.estimate for row in raw]
    return metric if same else f"{metric} once calibrated", decide


def _splits(result: OptimizeResult) -> list[tuple[str, dict[str, Estimate], dict[str, Estimate]]]:
    """Each split that was judged, before and after."""
    splits = [("dev", result.dev.before, result.dev.after)]
    if result.test.before is not None and result.test.after is not None:
        splits.append(("test", result.test.before, result.test.after))
    return splits


def _gain(result: OptimizeResult) -> Section:
    metric, scale, looked = result.metric, result.gold.scale, result.test.after is not None
    footing, deciding = _deciding(result)
    rows = [
        metric_row(
            f"{row.split}, {row.when}",
            row.estimate,
            metric,
            scale,
            strong=(row.split, row.when) == ("test", "after"),
            hollow=row.when == "before",
        )
        for row in deciding
    ]
    axis = Axis(footing + axis_of(metric).removeprefix(metric))
    ends = _ends(result, footing, deciding)
    blocks: list[Block] = [interval_picture(rows, axis, numbers=ends, short=True)]
    if result.test_look:
        blocks.append(Paragraph(sentence(result.test_look), short=True))
    blocks += [*_differences(result)] * looked
    basis = (
        "The decision rests on test alone, which took no part in the choice; dev chose, and flatters what it "
        "chose."
        if looked
        else "Test was not looked at: dev chose among the candidates, and flatters what it chose."
    )
    caption = (
        f"Serves the choice between the two prompts. {basis} An empty square is the judge as it was, a disc "
        "the optimised one. On dev each map is cross-fitted, on test it is that of train and dev."
    )
    return Section("gain", "Before and after", caption, [*blocks, _every_metric(result)])


def _ends(result: OptimizeResult, footing: str, deciding: Sequence[_Deciding]) -> Table:
    """The deciding metric on each split, and what changed on test."""
    test, metric, scale = result.test, result.metric, result.gold.scale
    rows = [
        [
            f"{split}, {when}",
            f"{estimate.n:,}/{estimate.n_expected:,}",
            f"{estimate.n_unscored:,}",
            f"{of_metric(estimate, metric, scale)} at {estimate.level:.4g}",
        ]
        for split, when, estimate in deciding
    ]
    if test.difference is not None and test.after is not None:
        mapped = _mapped(result)
        rows.append(["test, after - before", "", "", change_of(mapped or test.difference, metric, scale)])
        if mapped:
            rows.append(["  raw", "", "", change_of(test.difference, metric, scale)])
    return Table([footing, "n", "unscored", "with interval"], rows)


def _differences(result: OptimizeResult) -> list[Block]:
    """After less before, as they are and once both through maps from train and dev."""
    mapped = _mapped(result)
    pairs = (("both calibrated", mapped), ("raw", result.test.difference))
    known = [(name, change) for name, change in pairs if change is not None]
    rows = [
        IntervalRow(name, in_points(change), _points(change), strong=(name == "raw") == (mapped is None))
        for name, change in known
    ]
    axis = Axis(f"after − before on test, points of {result.metric}", full=0.0)
    means = (
        "Right of the line the optimised judge agrees better. A gain that goes once the verdicts of both are "
        "mapped onto the labels is a gain of scale: a map would give it for nothing."
    )
    unsure = [
        f"No interval {name}: {change.reason}."
        for name, change in known
        if change.low is None and change.reason
    ]
    picture = interval_picture(rows, axis, title="Difference on test")
    return [picture, Paragraph(means), *map(Paragraph, unsure)]


def _every_metric(result: OptimizeResult) -> Table:
    """The deciding metric on both splits, and those beside it on test."""
    rows = [
        (split, name, before[name], after[name])
        for split, before, after in _splits(result)
        for name in dict.fromkeys([result.metric, *(rows_of(before) if split == "test" else [])])
    ]

    def unscored(before: Estimate, after: Estimate) -> str:
        same = before.n_unscored == after.n_unscored
        return f"{after.n_unscored:,}" if same else f"{before.n_unscored:,} → {after.n_unscored:,}"

    return table(
        rows,
        {
            "split": lambda row: row[0],
            "metric": lambda row: row[1],
            "n": lambda row: f"{row[3].n:,}/{row[3].n_expected:,}",
            "unscored": lambda row: unscored(row[2], row[3]),
            "questions": lambda row: f"{row[3].n_groups:,}",
            "before": lambda row: of_metric(row[2], row[1], result.gold.scale),
            "after": lambda row: of_metric(row[3], row[1], result.gold.scale),
        },
        left=2,
        title="Every number, of raw verdicts",
    )


# --- the prompt, and what was tried


def _prompt(result: OptimizeResult, prompts: Prompts) -> Section:
    n, before, after = len(prompts.demos), prompts.before, prompts.after
    blocks: list[Block] = [Heading("Instructions")]
    if before is None:
        note = "The experiment's judges.json is gone, so the instructions before are not known."
        blocks += [Paragraph(note), Record("After", [("instructions", after)])]
    elif before == after:
        record = Record("Before and after", [("instructions", after)])
        whole = "Unchanged: the demos are the whole difference." if n else "Unchanged."
        blocks += [Paragraph(whole), Folded("The instructions", [record])]
    else:
        blocks.append(Diff(before, after, short=True))
    if n:
        each = "Each stands in the prompt in full, in this order; a demo is an item of train."
        bootstrapped = "the judge's own reply, where it met the label"
        demos = [
            Record(f"Demo {place}", demo.fields, bootstrapped * demo.bootstrapped)
            for place, demo in enumerate(prompts.demos, 1)
        ]
        blocks += [Heading(f"Demos: 0 before, {n:,} after"), Paragraph(each), Folded("The demos", demos)]
    else:
        blocks.append(Paragraph("No demos, before or after."))
    changed = "new instructions" if result.instructions_changed else "the same instructions"
    caption = (
        f"Serves whoever is to answer for the prompt: {changed}, {n:,} demos. Read it before it judges "
        "anything: an optimiser writes what scores, also where it is wrong."
    )
    return Section("prompt", "What changed in the prompt", caption, blocks)


def _candidates(result: OptimizeResult) -> Section:
    metric, scale, tried = result.metric, result.gold.scale, result.dev.candidates
    once = all(candidate.calibrated is not None for candidate in tried)
    chose = [
        (candidate.name, (candidate.calibrated if once else None) or candidate.as_wrong)
        for candidate in tried
    ]
    rows = [
        metric_row(name, value, metric, scale, strong=name == result.chosen, hollow=name == "before")
        for name, value in chose
    ]
    numbers_behind = table(
        tried,
        {
            "candidate": lambda candidate: candidate.name,
            "demos": lambda candidate: f"{candidate.n_demos:,}",
            f"{metric} on dev once calibrated": lambda candidate: of_metric(
                candidate.calibrated, metric, scale
            ),
            "raw": lambda candidate: of_metric(candidate.as_wrong, metric, scale),
            "no verdict in training": lambda candidate: (
                f"{candidate.unusable_in_training:,} of {candidate.rated_in_training:,}"
                if candidate.rated_in_training
                else numbers.DASH
            ),
        },
        chosen=result.chosen,
    )
    axis = Axis(f"{metric} on dev{' once calibrated' * once}{axis_of(metric).removeprefix(metric)}")
    caption = (
        f"Serves the choice of the one prompt that test was to confirm: {result.chosen}. Of {len(tried)} "
        "prompts some are ahead by chance, so a lead here decides nothing by itself."
    )
    picture = interval_picture(rows, axis, numbers=numbers_behind)
    return Section("candidates", "What was tried on dev", caption, [picture])


def _notes(result: OptimizeResult) -> tuple[str, ...]:
    tried = result.dev.candidates
    unusable = sum(candidate.unusable_in_training for candidate in tried)
    rated = sum(candidate.rated_in_training for candidate in tried)
    changed = "new instructions" if result.instructions_changed else "instructions unchanged"
    return sentences(
        f"Tried on dev: {len(tried)}, the judge as it is among them. Taken: {result.chosen}; "
        f"{result.choice}.",
        f"An unscored item counts as {result.gold.unscored_counts_as}. Intervals are by question.",
        unusable > 0 and f"In training {unusable} of {rated} replies gave no verdict: they counted as wrong.",
        map(sentence, result.notes),
        f"Program: {result.program} ({result.n_demos} demos, {changed}), as a judge {result.judge}.",
        f"This optimisation spent {numbers.money(result.usd)} USD.",
    )
