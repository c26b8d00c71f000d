"""The document of `optimize`: the decision, before and after, the prompt as a diff, what was tried."""

from __future__ import annotations

from collections import Counter

from judgecal.goldset.labels import label_text
from judgecal.judges.protocol import JudgeName
from judgecal.optimize.result import (
    BETTER,
    CANNOT_TELL,
    NOTHING_CHANGED,
    RESCALED_ONLY,
    WORSE,
    OptimizeResult,
)
from judgecal.records import Estimate, Headline
from judgecal.report.charts import (
    Axis,
    axis_of,
    change_in_points,
    change_of,
    in_percent,
    interval_picture,
    metric_row,
    metric_text,
)
from judgecal.report.document import (
    Block,
    Diff,
    Document,
    Folded,
    Grid,
    Lines,
    Paragraph,
    Section,
    section,
    stored_document,
    table,
)
from judgecal.report.judges_headline import raters_in_words, unread_headline
from judgecal.report.wording import (
    OWN_LABELS,
    fitting,
    gold_in_words,
    money,
    percent,
    sentence,
    sentences,
    shortened,
    signed,
)

_SHOWN = 120  # characters of a question and of an answer


def optimize_document(result: OptimizeResult) -> Document:
    """Lay out an OptimizeResult as a Document: gain, instruction before and after, examples."""
    tried = result.dev.candidates
    changed = "new instructions" if result.instructions_changed else "instructions unchanged"
    return stored_document(
        result,
        f"{result.experiment}: a judge optimised",
        f"{result.judge_before}, optimizer {_optimizer(result)}, on {gold_in_words(result.gold)}.",
        unread_headline(result.unread) or _headline(result),
        _gain(result),
        _probes(result),
        _prompt(result),
        _changes(result),
        _candidates(result),
        notes=sentences(
            f"We tried {len(tried):,} prompts on dev, the judge as it is among them, and took "
            f"{result.chosen}: {result.choice}.",
            f"An item without a verdict counts as {result.gold.unscored_counts_as}. Intervals are by "
            "question.",
            map(sentence, result.notes),
            f"Program: {result.program} ({result.n_demos:,} demos, {changed}), as a judge {result.judge}.",
            f"This optimisation spent {money(result.usd)} USD.",
        ),
    )


def _optimizer(result: OptimizeResult) -> str:
    writer = f" (instructions by {result.reflection_model})" if result.reflection_model else ""
    return f"{result.optimizer}{writer}"


def _mapped(result: OptimizeResult) -> Estimate | None:
    """The difference once both are calibrated; None where there is none, as of labels without an order."""
    return None if result.gold.scale == "nominal" else result.test.difference_recalibrated


# --- the headline


def _headline(result: OptimizeResult) -> Headline:
    test, keep, mapped = result.test, "Keep the judge as it is", _mapped(result)
    whom, split = raters_in_words(result.gold.labels_by)[0], "dev" if test.after is None else "test"
    if test.difference is None or test.after is None:
        act = keep if result.chosen == "before" else "Do not take the optimised judge yet"
        reasons = [result.why]
    else:
        raw = change_in_points(test.difference)
        change = f"{raw} points"
        if mapped:
            change = f"{change_in_points(mapped)} points once both are calibrated ({raw} raw)"
        reasons = [f"on test its agreement with {whom} changes by {change}"]
        act = f"{keep}: nothing better is shown"
        if result.decision == BETTER:
            act = f"Take the optimised judge: it agrees better with {whom}"
        elif result.decision == WORSE:
            act = f"{keep}: the optimised one is worse"
        elif result.decision == RESCALED_ONLY:
            act = f"{keep}: only its scale got better"
        elif (mapped or test.difference).low is None:
            reasons.insert(0, result.why)
        probed = result.probes.test if result.probes else None
        if probed and not probed.fewer:
            reasons.append(
                f"the share of probes that break it changes by {change_in_points(probed.difference)} points"
            )
        elif probed and result.decision != WORSE:
            act = act if result.decision == BETTER else "Take the optimised judge: fewer probes break it"
            share = (percent(broken.value, 1) for broken in (probed.before, probed.after))
            words = "{} of the probes of test broke it, {} do now"
            reasons.insert(0, words.format(*share))
    after = (test.after or result.dev.after)[result.metric]
    scope = f"{after.n_unscored:,} of {after.n_expected:,} unscored on {split}"
    because, more = fitting(
        *map(sentence, reasons),
        f"{scope}, {after.n_groups:,} questions.",
        "" if result.why in (act, *reasons) else sentence(result.why),
    )
    take = act.startswith("Take") or (split == "dev" and result.chosen != "before")
    judge = result.judge if take else result.judge_before
    again = f"judgecal score --gold {result.gold.set} --judge '{judge}'"
    if not JudgeName.parse(judge).in_reach:
        again = f"judgecal gold check {result.gold.set}"
    kind = "mended" if act.endswith("fewer probes break it") else result.decision
    return Headline(kind, f"{act}.", because, _unknown(result), again, more=more)


def _unknown(result: OptimizeResult) -> tuple[str, ...]:
    """What weighs most comes first."""
    looked, doubt = (_mapped(result) or result.test.difference) if result.test.after is not None else None, ""
    if looked is None:
        doubt = (
            f"Whether any gain holds: test was not looked at, and {len(result.dev.candidates)} prompts "
            "were held against each other on dev, which flatters the best of them."
        ) * (result.decision != NOTHING_CHANGED)
    elif looked.low is None or looked.high is None:
        doubt = f"How sure the difference is: {looked.reason}."
    elif result.decision == CANNOT_TELL:
        low, high = (signed(100.0 * end, 1) for end in (looked.low, looked.high))
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


def _deciding(result: OptimizeResult) -> tuple[str, list[tuple[str, str, Estimate]]]:
    """What the numbers that decide are called, and (split, when, number): calibrated, where all can be."""
    dev = {candidate.name: candidate for candidate in result.dev.candidates}
    metric, once = result.metric, result.test.calibrated
    raw = [
        (split, when, estimates[metric])
        for split, before, after in _splits(result)
        for when, estimates in (("before", before), ("after", after))
    ]
    tried = {"before": dev["before"].calibrated, "after": dev[result.chosen].calibrated}
    mapped = [("dev", when, value) for when, value in tried.items() if value is not None]
    if once is not None:
        sides = {"before": once.before, "after": once.after}
        mapped += [("test", when, side[metric]) for when, side in sides.items() if metric in side]
    decide = mapped if len(mapped) == len(raw) else raw
    return metric if decide == raw else f"{metric} once calibrated", decide


def _splits(result: OptimizeResult) -> list[tuple[str, dict[str, Estimate], dict[str, Estimate]]]:
    splits = [("dev", result.dev.before, result.dev.after)]
    if result.test.before is not None and result.test.after is not None:
        splits.append(("test", result.test.before, result.test.after))
    return splits


def _gain(result: OptimizeResult) -> Section:
    metric, scale, test = result.metric, result.gold.scale, result.test
    footing, deciding = _deciding(result)
    ends = [
        [
            f"{split}, {when}",
            f"{value.n:,}/{value.n_expected:,}",
            f"{value.n_unscored:,}",
            f"{metric_text(value, metric, scale)} at {value.level:.4g}",
        ]
        for split, when, value in deciding
    ]
    rows = [
        metric_row(f"{split}, {when}", value, metric, scale, strong=when == "after")
        for split, when, value in deciding
        if value.value is not None
    ]
    basis = "Test is still sealed: dev chose among the candidates, and flatters what it chose."
    if test.after is not None:
        basis = "Only test decides, as it took no part in the choice; dev chose, and flatters what it chose."
        if test.difference is not None:
            mapped = _mapped(result)
            ends.append(["test, after - before", "", "", change_of(mapped or test.difference, metric, scale)])
            if mapped:
                ends.append(["  raw", "", "", change_of(test.difference, metric, scale)])
    looked = " ".join(filter(None, (_summary(result), result.test_look and sentence(result.test_look))))
    return section(
        "gain",
        "Before and after",
        f"Is the optimised prompt better? {basis} On dev each map is cross-fitted; on test it is the map of "
        "those questions of train and dev that trained neither judge.",
        looked and Paragraph(looked, short=True),
        Grid([footing, "n", "unscored", "with interval"], ends, short=True),
        interval_picture(rows, Axis(f"{axis_of(metric)}, {footing.removeprefix(metric).strip() or 'raw'}"))
        if rows
        else None,
        (
            f"No interval {name}: {change.reason}."
            for name, change in (("both calibrated", _mapped(result)), ("raw", test.difference))
            if change is not None and change.low is None and change.reason
        ),
    )


def _summary(result: OptimizeResult) -> str:
    """What is new in the prompt and in the verdicts, in two sentences; empty where the judge stays."""
    if result.changes is None:
        return ""
    signs = Counter(sign for sign, text in Diff(result.prompts.before, result.prompts.after).lines() if text)
    sentences_changed = "no sentence is new"
    if result.instructions_changed:
        sentences_changed = f"{signs['+']:,} sentences are new, {signs['-']:,} gone"
    better, worse = result.changes.n_better, result.changes.n_worse
    sides = f"On dev {better:,} answers changed sides for the better, {worse:,} for the worse."
    return f"In its prompt {sentences_changed}; it has {result.n_demos:,} examples. {sides}"


def _probes(result: OptimizeResult) -> Section | None:
    """Broken probes before and after, on dev and on test."""
    if result.probes is None:
        return None
    splits = [("dev", result.probes.dev), *([("test", result.probes.test)] if result.probes.test else [])]
    whole = [
        [
            name,
            *map(in_percent, (broken.before, broken.after)),
            change_in_points(broken.difference),
            f"{broken.after.n:,}",
        ]
        for name, broken in splits
    ]
    return section(
        "probes",
        "Probes that break it",
        "Of the candidates that agree on dev no less than the judge as it was, we take the one with the "
        "fewest broken probes, where they are fewer by more than luck; else agreement alone chooses.",
        Grid(["broken probes", "before", "after", "after - before, points", "n"], whole, short=True),
    )


def _changes(result: OptimizeResult) -> Section | None:
    """Which kinds of answers are judged otherwise, and some of those answers; None where the judge stays."""
    if result.changes is None or not result.changes.answers:
        return None
    kinds = [[kind, f"{better:,}", f"{worse:,}"] for kind, (better, worse) in result.changes.kinds.items()]
    answers = [
        [
            "better" if answer.better else "worse",
            *map(label_text, (answer.label, answer.before, answer.after)),
            shortened(answer.question, _SHOWN),
            shortened(answer.answer, _SHOWN),
        ]
        for answer in result.changes.answers
    ]
    return section(
        "changes",
        "Answers that it judges otherwise",
        "On which open answers did the judge change sides?",
        Grid(["dev answers", "better", "worse"], kinds),
        Grid(["now", "people", "before", "after", "question", "answer"], answers, left=6),
    )


# --- the prompt, and what was tried


def _prompt(result: OptimizeResult) -> Section:
    prompts = result.prompts
    n, before, after = len(prompts.demos), prompts.before, prompts.after
    parts: list[Block | str] = [Diff(before, after, short=True)]
    if before == after:
        parts = [
            "Only the demos differ." if n else "Unchanged.",
            Folded("The instructions", [Lines(after.splitlines())]),
        ]
    fields = [*dict.fromkeys(name for demo in prompts.demos for name in demo)]
    demos = Grid(
        fields, [[demo.get(name, "") for name in fields] for demo in prompts.demos], left=len(fields)
    )
    changed = "new instructions" if result.instructions_changed else "the same instructions"
    return section(
        "prompt",
        "What changed in the prompt",
        f"{changed[0].upper()}{changed[1:]}, {n:,} demos. Read the prompt before it judges anything: an "
        "optimiser writes what scores, even where that is wrong.",
        *parts,
        Folded(f"Demos: 0 before, {n:,} after, items of train", [demos])
        if n
        else "No demos, before or after.",
    )


def _candidates(result: OptimizeResult) -> Section:
    metric, scale, tried = result.metric, result.gold.scale, result.dev.candidates
    behind = table(
        tried,
        {
            "candidate": lambda candidate: candidate.name,
            "demos": lambda candidate: f"{candidate.n_demos:,}",
            "answers": lambda candidate: f"{candidate.as_wrong.n_expected:,}",
            f"{metric} on dev once calibrated": lambda candidate: metric_text(
                candidate.calibrated, metric, scale
            ),
            "raw": lambda candidate: metric_text(candidate.as_wrong, metric, scale),
        },
        chosen=result.chosen,
    )
    return section(
        "candidates",
        "What was tried on dev",
        f"Dev chose the prompt that test was to confirm: {result.chosen}. Of {len(tried):,} prompts some "
        "are ahead by chance, so a lead here decides nothing."
        + " A prompt with fewer answers went no further: they showed it to be worse, or others were ahead."
        * (len({candidate.as_wrong.n_expected for candidate in tried}) > 1),
        behind,
    )
