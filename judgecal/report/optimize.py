"""The document of `optimize`: the decision, before and after, the prompt as a diff, the candidates, both
judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from judgecal.optimize.decision import BETTER, CANNOT_TELL, NOTHING_CHANGED, RESCALED_ONLY, WORSE, Tried
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
)
from judgecal.report.intervals import (
    Axis,
    IntervalRow,
    axis_of,
    change_of,
    in_points,
    in_units,
    interval_picture,
    of_metric,
)
from judgecal.report.judges_headline import raters_in_words
from judgecal.report.unread import unread_headline
from judgecal.report.wording import sentence
from judgecal.stats import rows_of

_FOOT = (
    "Both judges over the test items are rebuilt from the journal; what was tried on dev and the calibrated "
    "difference are from summary.json, as the journal alone does not hold them. No model was called, and nothing here "
    "is loaded from elsewhere."
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
        about=f"{result.judge_before}, optimizer {result.optimizer}{_writer(result)}, on {result.gold.in_words}.",
        headline=_headline(result),
        sections=[
            _gain(result),
            *([_prompt(result, prompts)] if prompts else []),
            _candidates(result),
            *judges,
            *notes_section(list(_notes(result))),
        ],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=_FOOT,
        data={"result": result},
    )


def _headline(result: OptimizeResult) -> Headline:
    nothing = unread_headline(result.unread)
    if nothing is not None:
        return nothing
    act, reasons = _act(result)
    split = "test" if result.test.after is not None else "dev"
    after = (result.test.after or result.dev.after)[result.metric]
    scope = f"{after.n_unscored:,} of {after.n_expected:,} unscored on {split}, {result.gold.n_groups[split]:,} questions."
    why = [] if result.why in (act, *reasons) else [sentence(result.why)]
    use = act.startswith("Take") or (split == "dev" and result.chosen != "before")
    return Headline(
        result.decision,
        f"{act}.",
        (*map(sentence, reasons), *why, scope),
        tuple(_unknown(result)),
        f"judgecal score --gold {result.gold.set} --judge '{result.judge if use else result.judge_before}'",
    )


def _act(result: OptimizeResult) -> tuple[str, list[str]]:
    """What to do, and what bears it out."""
    test, keep = result.test, "Keep the judge as it is"
    if test.difference is None or test.after is None:
        return (keep if result.chosen == "before" else "Do not take the optimised judge yet"), [result.why]
    once = _recalibrated(result)
    change = (
        f"{_change(once)} points once both are calibrated ({_change(test.difference)} raw)"
        if once
        else (f"{_change(test.difference)} points")
    )
    whom, _ = raters_in_words(result.gold.labels_by)
    changes = [f"on test its agreement with {whom} changes by {change}"]
    if result.decision == BETTER:
        return f"Take the optimised judge: it agrees better with {whom}", changes
    if result.decision == WORSE:
        return f"{keep}: the optimised one agrees less with {whom}", changes
    if result.decision == RESCALED_ONLY:
        return f"{keep}: the gain is one of scale alone", changes
    unsure = [result.why] if (once or test.difference).low is None else []
    return f"{keep}: nothing better is shown", [*unsure, *changes]


def _recalibrated(result: OptimizeResult) -> Estimate | None:
    """The difference once both are calibrated; None where there is none, as labels without an order have no
    map."""
    return None if result.gold.scale == "nominal" else result.test.difference_recalibrated


def _change(difference: Estimate | None) -> str:
    return numbers.DASH if difference is None else numbers.difference(in_points(difference), 1)


def _unknown(result: OptimizeResult) -> Iterable[str]:
    """What weighs most comes first."""
    change = (_recalibrated(result) or result.test.difference) if result.test.after is not None else None
    if change is None:
        if result.decision != NOTHING_CHANGED:
            yield (
                f"Whether any gain holds: test was not looked at, and {len(result.dev.candidates)} prompts were held "
                "against each other on dev, which flatters the best of them."
            )
    elif change.low is None or change.high is None:
        yield f"How sure the difference is: {change.reason}."
    elif result.decision == CANNOT_TELL:
        low, high = (numbers.difference(Estimate(100.0 * end), 1) for end in (change.low, change.high))
        yield f"Whether it is better or worse: anything from {low} to {high} points of {_named(result)} fits the data."
    if change is not None and _recalibrated(result) is None:
        yield "Whether a map of its scale would do as much: labels without an order have none."
    if result.gold.labels_by == "project":
        yield "Whether people agree with these labels: the project itself made them."
    if change is not None and result.test_looks > 1:
        yield f"What a fresh test set would say: this one has served {result.test_looks} decisions."
    yield f"Whether another optimizer or model would do better: only {result.optimizer}{_writer(result)} was tried."


def _writer(result: OptimizeResult) -> str:
    return f" (instructions by {result.reflection_model})" if result.reflection_model else ""


def _splits(result: OptimizeResult) -> Iterable[tuple[str, dict[str, Estimate], dict[str, Estimate]]]:
    """Each split that was judged, before and after."""
    yield "dev", result.dev.before, result.dev.after
    if result.test.before is not None and result.test.after is not None:
        yield "test", result.test.before, result.test.after


def _deciding(result: OptimizeResult) -> list[tuple[str, str, Estimate]]:
    """Split, before or after, and the number that decides there: once calibrated, where all of them can
    be."""
    dev = {one.name: one for one in result.dev.candidates}
    tried = {"before": dev["before"].calibrated, "after": dev[result.chosen].calibrated}
    mapped = [("dev", when, one) for when, one in tried.items() if one is not None]
    once = result.test.calibrated
    if once is not None:
        sides = {"before": once.before, "after": once.after}
        mapped += [("test", when, one[result.metric]) for when, one in sides.items() if result.metric in one]
    raw = [
        (split, when, one[result.metric])
        for split, before, after in _splits(result)
        for when, one in (("before", before), ("after", after))
    ]
    return mapped if len(mapped) == len(raw) else raw


def _named(result: OptimizeResult) -> str:
    """The metric, and that it is once calibrated, where that decides."""
    return f"{result.metric} once calibrated" if result.gold.scale != "nominal" else result.metric


def _gain(result: OptimizeResult) -> Section:
    metric, deciding = result.metric, _deciding(result)
    rows = [
        IntervalRow(
            f"{split}, {when}",
            in_units(one, metric),
            of_metric(one, metric, result.gold.scale),
            strong=(split, when) == ("test", "after"),
            hollow=when == "before",
        )
        for split, when, one in deciding
    ]
    picture = interval_picture(
        rows, Axis(_footing(result, deciding) + _unit(metric)), numbers=_ends(result, deciding), short=True
    )
    looked = result.test.after is not None
    basis = (
        "The decision rests on test alone, which took no part in the choice; dev chose, and flatters what it chose."
        if looked
        else "Test was not looked at: dev chose among the candidates, and flatters what it chose."
    )
    caption = (
        f"Serves the choice between the two prompts. {basis} An empty square is the judge as it was, a disc the "
        "optimised one. On dev each map is cross-fitted, on test it is that of train and dev."
    )
    changes = _differences(result) if looked else []
    look = [Paragraph(sentence(result.test_look), short=True)] if result.test_look else []
    return Section("gain", "Before and after", caption, [picture, *look, *changes, _metrics(result)])


def _footing(result: OptimizeResult, deciding: Sequence[tuple[str, str, Estimate]]) -> str:
    """What these numbers are."""
    raw = [one[result.metric] for _, before, after in _splits(result) for one in (before, after)]
    return result.metric if [one for _, _, one in deciding] == raw else f"{result.metric} once calibrated"


def _unit(metric: str) -> str:
    return axis_of(metric).removeprefix(metric)


def _ends(result: OptimizeResult, deciding: Sequence[tuple[str, str, Estimate]]) -> Table:
    """The deciding metric on each split, and what changed on test."""
    test, metric, scale = result.test, result.metric, result.gold.scale
    rows = [
        [
            f"{split}, {when}",
            f"{one.n:,}/{one.n_expected:,}",
            f"{one.n_unscored:,}",
            f"{of_metric(one, metric, scale)} at {one.level:.4g}",
        ]
        for split, when, one in deciding
    ]
    if test.difference is not None and test.after is not None:
        once = _recalibrated(result)
        rows.append(["test, after - before", "", "", change_of(once or test.difference, metric, scale)])
        if once:
            rows.append(["  raw", "", "", change_of(test.difference, metric, scale)])
    return Table([_footing(result, deciding), "n", "unscored", "with interval"], rows)


def _differences(result: OptimizeResult) -> list[Block]:
    """After less before, as they are and once both through maps from train and dev."""
    once = _recalibrated(result)
    pairs = [("both calibrated", once), ("raw", result.test.difference)]
    rows = [
        IntervalRow(name, in_points(change), _change(change), strong=(name == "raw") == (once is None))
        for name, change in pairs
        if change is not None
    ]
    axis = Axis(f"after − before on test, points of {result.metric}", full=0.0)
    means = (
        "Right of the line the optimised judge agrees better. A gain that goes once the verdicts of both are mapped "
        "onto the labels is a gain of scale: a map would give it for nothing."
    )
    unsure = [
        Paragraph(f"No interval {name}: {change.reason}.")
        for name, change in pairs
        if change is not None and change.low is None and change.reason
    ]
    return [interval_picture(rows, axis, title="Difference on test"), Paragraph(means), *unsure]


def _metrics(result: OptimizeResult) -> Table:
    """The deciding metric on both splits, and those beside it on test."""
    rows = []
    for split, before, after in _splits(result):
        names = [result.metric, *(rows_of(before) if split == "test" else [])]
        rows += [_row(result, split, name, before[name], after[name]) for name in dict.fromkeys(names)]
    header = ["split", "metric", "n", "unscored", "questions", "before", "after"]
    return Table(header, rows, left=2, title="Every number, of raw verdicts")


def _row(result: OptimizeResult, split: str, name: str, before: Estimate, after: Estimate) -> list[str]:
    same = before.n_unscored == after.n_unscored
    return [
        split,
        name,
        f"{after.n:,}/{after.n_expected:,}",
        f"{after.n_unscored:,}" if same else f"{before.n_unscored:,} → {after.n_unscored:,}",
        f"{after.n_groups:,}",
        of_metric(before, name, result.gold.scale),
        of_metric(after, name, result.gold.scale),
    ]


def _prompt(result: OptimizeResult, prompts: Prompts) -> Section:
    n = len(prompts.demos)
    blocks: list[Block] = [Heading("Instructions"), *_instructions(prompts)]
    if n:
        blocks.append(Heading(f"Demos: 0 before, {n:,} after"))
        blocks.append(
            Paragraph("Each stands in the prompt in full, in this order; a demo is an item of train.")
        )
        own = "the judge's own reply, where it met the label"
        demos = [
            Record(f"Demo {place}", demo.fields, own if demo.bootstrapped else "")
            for place, demo in enumerate(prompts.demos, 1)
        ]
        blocks.append(Folded("The demos", demos))
    else:
        blocks.append(Paragraph("No demos, before or after."))
    changed = "new instructions" if result.instructions_changed else "the same instructions"
    caption = (
        f"Serves whoever is to answer for the prompt: {changed}, {n:,} demos. Read it before it judges anything: an "
        "optimiser writes what scores, also where it is wrong."
    )
    return Section("prompt", "What changed in the prompt", caption, blocks)


def _instructions(prompts: Prompts) -> list[Block]:
    before, after = prompts.before, prompts.after
    if before is None:
        note = "The experiment's judges.json is gone, so the instructions before are not known."
        return [Paragraph(note), Record("After", [("instructions", after)])]
    if before == after:
        unchanged = "Unchanged: the demos are the whole difference." if prompts.demos else "Unchanged."
        record = Record("Before and after", [("instructions", after)])
        return [Paragraph(unchanged), Folded("The instructions", [record])]
    return [Diff(before, after, short=True)]


def _candidates(result: OptimizeResult) -> Section:
    metric, tried = result.metric, result.dev.candidates
    once = all(one.calibrated is not None for one in tried)
    chose = [(one, (one.calibrated if once else None) or one.as_wrong) for one in tried]
    rows = [
        IntervalRow(
            one.name,
            in_units(value, metric),
            of_metric(value, metric, result.gold.scale),
            one.name == result.chosen,
            one.name == "before",
        )
        for one, value in chose
    ]
    axis = Axis(f"{metric} on dev{' once calibrated' * once}{_unit(metric)}")
    header = ["candidate", "demos", f"{metric} on dev once calibrated", "raw", "no verdict in training"]
    table = Table(header, [_tried(one, metric, result.gold.scale) for one in tried], chosen=result.chosen)
    caption = (
        f"Serves the choice of the one prompt that test was to confirm: {result.chosen}. Of {len(tried)} prompts some "
        "are ahead by chance, so a lead here decides nothing by itself."
    )
    picture = interval_picture(rows, axis, numbers=table)
    return Section("candidates", "What was tried on dev", caption, [picture])


def _tried(one: Tried, metric: str, scale: str) -> list[str]:
    unusable = (
        f"{one.unusable_in_training:,} of {one.rated_in_training:,}"
        if one.rated_in_training
        else numbers.DASH
    )
    dev = [of_metric(found, metric, scale) for found in (one.calibrated, one.as_wrong)]
    return [one.name, f"{one.n_demos:,}", *dev, unusable]


def _notes(result: OptimizeResult) -> Iterable[str]:
    tried = result.dev.candidates
    yield f"Tried on dev: {len(tried)}, the judge as it is among them. Taken: {result.chosen}; {result.choice}."
    yield f"An unscored item counts as {result.gold.unscored_counts_as}. Intervals are by question."
    unusable = sum(one.unusable_in_training for one in tried)
    if unusable:
        rated = sum(one.rated_in_training for one in tried)
        yield f"In training {unusable} of {rated} replies gave no verdict: they counted as wrong."
    yield from map(sentence, result.notes)
    changed = "new instructions" if result.instructions_changed else "instructions unchanged"
    yield f"Program: {result.program} ({result.n_demos} demos, {changed}), as a judge {result.judge}."
    yield f"This optimisation spent {numbers.money(result.usd)} USD."
