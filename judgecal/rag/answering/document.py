"""The document of `answer`: whom to take, systems, differences, where points go, refusals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from judgecal.experiment import Experiment
from judgecal.rag.answered import answered_explorer
from judgecal.rag.answering.result import AnswerResult, Counted, SystemEntry
from judgecal.records import Estimate, Headline
from judgecal.report.charts import Axis, interval_picture
from judgecal.report.document import (
    Block,
    Bullets,
    Document,
    Rung,
    Section,
    Table,
    section,
    stored_document,
    table,
)
from judgecal.report.judges_headline import unread_headline
from judgecal.report.numbers import difference, estimate, money, percent, plain, seconds
from judgecal.report.wording import failures_in_words, fitting, sentence, sentences
from judgecal.workspace import Workspace

_SHOWN = 20  # pairs that are drawn, and questions that are named
_CONTEXTS = {
    "controlled": "controlled",
    "topk": "naive",
    "none": "closed book",
    "own": "own",
    "recorded": "recorded",
}


def answer_document(result: AnswerResult) -> Document:
    """What an answerer test came to."""
    parts = (_systems, _comparisons, _decomposition, _refusals)
    title, sections = f"{result.experiment}: answerers compared", [part(result) for part in parts]
    about, headline, notes = _about(result), _headline(result), _notes(result)
    return stored_document(result, title, about, headline, *sections, notes=notes, short=True)


def answer_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The stored document with the answers themselves."""
    result = experiment.read_summary(AnswerResult)
    judge, to_shares = result.judge, result.rated_by.calibration
    maps = {judge: to_shares} if to_shares else {}
    explorer = answered_explorer(workspace, experiment, {judge: judge}, maps=maps)
    return dataclasses.replace(answer_document(result), explorer=explorer)


def _about(result: AnswerResult) -> str:
    gold, options = result.gold, result.context_options
    n = len({system.system for system in result.systems})
    reference = "left out" if result.without_reference else options.get("position")
    distractors = f"{options.get('distractors')} more by BM25"
    words = {
        "controlled": f"controlled context (reference document {reference}, {distractors})",
        "topk": f"naive context (BM25's first documents): {options.get('k')}",
        "none": "closed book (no document)",
        "own": f"each question's own contexts, numbered{', shuffled' * bool(options.get('shuffle'))}",
    }
    contexts = (
        " and ".join(words[kind] for kind in result.context if kind != "recorded") or "recorded answers"
    )
    return (
        f"{n} system{'s' * (n != 1)} on {gold.set}@{gold.sha256[:12]}: {gold.n_questions:,} questions, "
        f"{contexts}, rated by {result.rated_by.described}."
    )


def _headline(result: AnswerResult) -> Headline:
    nothing = unread_headline(result.unread)
    if nothing is not None:
        return nothing
    act, reasons, following = _act(result)
    scope = f"{result.n_unscored:,} of {result.n_expected:,} unscored, {result.gold.n_questions:,} questions."
    unclear = [pair.smallest_detectable for pair in result.comparisons if pair.decision == "cannot tell"]
    detectable, band = [least for least in unclear if least is not None], result.rated_by.band
    unknown = sentences(  # what weighs most comes first
        map(sentence, result.warnings),
        bool(detectable)
        and f"Whether systems differ by less than {plain(max(detectable), 1)} points: these "
        "questions reveal a difference of that size in four runs of five, a smaller one less "
        "often.",
        band is not None
        and f"How far the judge itself is off: up to {band:.1f} points ({result.rated_by.band_from}).",
        result.decomposition is None
        and not {"controlled", "topk"}.isdisjoint(result.context)
        and "Whether retrieval or the answerer loses the points: --contexts controlled,topk tells.",
        any(system.usd_per_1k is None for system in result.systems)
        and "What the systems cost: some have no price.",
        bool(result.not_asked)
        and f"What becomes of {len(result.not_asked):,} questions that could not be asked.",
    )
    because, more = fitting(*map(sentence, reasons), scope)
    return Headline(act.split()[0].lower(), f"{act}.", because, unknown, following, more=more)


def _act(result: AnswerResult) -> tuple[str, list[str], str]:
    """What to do, why, and the command that follows; of several contexts the first one leads."""
    gold = result.gold.set
    both = f"judgecal answer --gold {gold} --contexts controlled,topk"
    if result.without_reference:
        reasons = ["the reference document was left out, so a refusal is right"]
        for system in [system for system in result.systems if system.context == "controlled"][:_SHOWN]:
            absent = system.refusals.unanswerable
            reasons.append(f"{system.system} refuses {absent.refused:,} of {absent.n:,}")
        return "Do not rank by the average here", reasons, f"judgecal answer --gold {gold}"
    following = f"judgecal report {result.experiment} --open"
    if result.decomposition is None and result.context[0] in ("controlled", "topk"):
        following = both  # retrieval apart from answering
    best, beside = _best(result), _beside_first(result)
    if best is None:
        return "Cannot tell whom to use", ["no answer has a rating"], following
    rated = {result.called(system) for system in beside if system.n}
    name, others = result.called(best), len(rated) - 1
    if not others:
        other = "no other system has a rating" if len(beside) > 1 else "there is no other system"
        reason = f"{name} averages {_average(best)}, and {other} to hold it against"
        return "No choice to make", [reason], following
    behind = sum(pair.higher == name and {pair.a, pair.b} <= rated for pair in result.comparisons)
    if behind == others:
        every = "the other one" if others == 1 else f"all {others} others"
        return f"Use {name}", [f"it averages {_average(best)}", f"shown to be above {every}"], following
    above = f"shown to be above {behind} of {others} others" if behind else "not shown to be above any other"
    reason = f"{name} averages {_average(best)}, which is the highest, but is {above}"
    return "Cannot tell whom to use", [reason], following


def _beside_first(result: AnswerResult) -> list[SystemEntry]:
    """The systems with the first kind of context, and those whose answers were recorded."""
    return [system for system in result.systems if system.context in (result.context[0], "recorded")]


def _best(result: AnswerResult) -> SystemEntry | None:
    """Of these the one with the highest average; None where no answer has a rating."""
    rated = [system for system in _beside_first(result) if system.n]
    return max(rated, key=lambda system: system.intervals.average_as_wrong.value or 0.0, default=None)


def _average(system: SystemEntry) -> str:
    """A system's average rating with its interval; none is no 0, as which its answers count."""
    return f"{estimate(system.intervals.average_as_wrong, 1)}%" if system.n else "no rating"


def _systems(result: AnswerResult) -> Section:
    best = _best(result)
    rows = [
        Rung(
            result.called(system),
            system.intervals.average_as_wrong if system.n else Estimate(None),
            _average(system),
            strong=system is best,
        )
        for system in result.systems
    ]
    level = result.systems[0].intervals.average_as_wrong.level
    overview = table(
        result.systems,
        {
            "system": result.called,
            f"average ({100 * level:.4g}% interval)": _average,
            "answered": lambda system: percent(system.answered),
            "n": lambda system: f"{system.n:,}/{system.n_expected:,}",
            "unscored": lambda system: f"{system.n_unscored:,}",
            "USD/1k": lambda system: money(system.usd_per_1k),
            "p50": lambda system: seconds(system.latency_s.p50),
        },
        chosen=None if best is None else result.called(best),
    )
    caption = (
        "Which prompt with which model? Lines that overlap may still differ, as the systems answer the "
        "same questions: the paired differences decide. The highest average is in colour; half of the "
        "answers come within p50."
    )
    axis = Axis("average rating, %", low=0.0, high=100.0)
    picture = interval_picture(rows, axis, numbers=overview, short=True)
    return section("systems", "The systems", caption, picture)


def _comparisons(result: AnswerResult) -> Section | None:
    pairs = result.comparisons
    if not pairs:
        return None
    rows = [
        Rung(
            f"{pair.a} − {pair.b}",
            pair.difference,
            difference(pair.difference, 1),
            strong=pair.decision in ("A", "B"),
        )
        for pair in pairs[:_SHOWN]
    ]
    differences = table(
        pairs,
        {
            "a": lambda pair: pair.a,
            "b": lambda pair: pair.b,
            f"a − b ({100 * pairs[0].difference.level:.4g}% interval)": lambda pair: difference(
                pair.difference, 1
            ),
            "p (Holm)": lambda pair: plain(pair.p_adjusted),
            "higher": lambda pair: pair.higher,
            "detectable": lambda pair: plain(pair.smallest_detectable, 1),
        },
        left=2,
    )
    axis = Axis("difference, percentage points", full=0.0)
    picture = interval_picture(rows, axis, numbers=differences, short=len(pairs) <= _SHOWN)
    notes = sentences(
        len(pairs) > _SHOWN and f"Drawn: the first {_SHOWN} of {len(pairs)} pairs.",
        _reasons("No interval", [pair.difference for pair in pairs if pair.difference.low is None]),
    )
    caption = (
        "Each pair on the same questions, in percentage points; right of the line the first is better. "
        "Decided pairs are in colour. The p value allows for the number of pairs, the lines do not."
    )
    title = "Differences, paired by question"
    return section("pairs", title, caption, picture, bool(notes) and Bullets(notes, short=True))


def _reasons(what: str, estimates: Iterable[Estimate]) -> list[str]:
    """Why some of these are not known, each reason once."""
    return [f"{what}: {reason}." for reason in sorted({each.reason for each in estimates if each.reason})]


def _decomposition(result: AnswerResult) -> Section | None:
    if result.decomposition is None:
        return None
    losses = result.decomposition.systems
    both = [points for loss in losses for points in (loss.retrieval, loss.answerer)]
    ends = [end for each in both for end in (each.value, each.low, each.high) if end is not None]
    axis = Axis("percentage points", full=0.0, low=min(ends, default=None), high=max(ends, default=None))

    def picture(title: str, lost: Iterable[tuple[str, Estimate]], numbers: Table | None = None) -> Block:
        rows = [Rung(name, points, estimate(points, 1)) for name, points in lost]
        return interval_picture(rows, axis, title=title, numbers=numbers, short=numbers is not None)

    behind = table(
        losses,
        {
            "system": lambda loss: loss.system,
            "retrieval costs": lambda loss: difference(loss.retrieval, 1),
            "the answerer loses": lambda loss: estimate(loss.answerer, 1),
            "questions": lambda loss: f"{loss.n_questions:,}",
        },
    )
    caption = (
        "Fix the retriever or the answerer? Retrieval costs the controlled average less the naive "
        "average; the answerer loses what is missing to 100 with the right document in hand."
    )
    band, left_out = result.rated_by.band, max(loss.n_left_out for loss in losses)
    unknown = "of unknown size: it was not locked on a gold set"
    size = unknown if band is None else f"of {band:.1f} points ({result.rated_by.band_from})"
    notes = sentences(
        f"The judge's own error is a band around both, {size}.",
        left_out > 0 and f"{left_out:,} questions have only one of the two contexts, so we left them out.",
    )
    return section(
        "points",
        "Where the points go",
        caption,
        picture("What retrieval costs", [(loss.system, loss.retrieval) for loss in losses], behind),
        picture("What the answerer loses", [(loss.system, loss.answerer) for loss in losses]),
        Bullets(notes, short=True),
    )


def _refusals(result: AnswerResult) -> Section:
    def share(n: int, counted: Counted) -> str:
        return f"{n:,} of {counted.n:,}"

    recorded = all(system.context == "recorded" for system in result.systems)
    where = "by the reference" if recorded else "in the documents handed over"
    caption = (
        "Does it refuse when it should? A prompt that refuses too much loses answers; a prompt that "
        f"refuses too little makes them up. We tell {where} whether there is an answer, and a refusal by "
        "its wording, with a fixed rule."
    )
    cells = table(
        [
            (result.called(each), each.refusals.answerable, each.refusals.unanswerable)
            for each in result.systems
        ],
        {
            "system": lambda row: row[0],
            "rightly answered": lambda row: share(row[1].answered, row[1]),
            "wrongly refused": lambda row: share(row[1].refused, row[1]),
            "wrongly answered": lambda row: share(row[2].answered, row[2]),
            "rightly refused": lambda row: share(row[2].refused, row[2]),
        },
        short=True,
    )
    return section("refusals", "Refusals", caption, cells)


def _notes(result: AnswerResult) -> tuple[str, ...]:
    named = [row for row in result.not_asked if not row.sealed][:_SHOWN]
    more = len(result.not_asked) - len(named)
    unscored = []
    for system in result.systems:
        if system.n_unscored:
            of = f"{system.n_unscored} of {system.n_expected} have no rating"
            unscored.append(f"{result.called(system)}: {of}: {failures_in_words(system.unscored)}.")
    averages = [system.intervals.average_as_wrong for system in result.systems]
    return sentences(
        _reasons("No interval for the average", averages),
        result.without_reference
        and "You left out the reference document: a refusal is right, and an honest answerer's "
        "percentage is low.",
        unscored,
        [f"Not asked: {row.question} ({row.message})." for row in named],
        more > 0 and f"... and {more} more not asked (those of test are not shown).",
        map(sentence, result.notes),
    )
