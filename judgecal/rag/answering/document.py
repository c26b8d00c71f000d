"""The document of `answer`: whom to take, systems, differences, where points go, refusals, questions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from judgecal.rag.answering.result import (
    AnswerResult,
    Contaminated,
    Counted,
    Decomposition,
    OneQuestion,
    ShownAnswer,
    SystemEntry,
)
from judgecal.records import Estimate, Headline
from judgecal.report import numbers
from judgecal.report.document import (
    FROM_SUMMARY,
    Block,
    Bullets,
    Cell,
    Document,
    Paragraph,
    Record,
    Section,
    notes_section,
    table,
)
from judgecal.report.intervals import Axis, IntervalRow, interval_picture
from judgecal.report.judges_headline import unread_headline
from judgecal.report.wording import sentence, sentences

_SHOWN = 20  # pairs that are drawn, and questions that are named
_WORDS = (
    ("average", "Mean percentage of the judge; an answer or a rating that could not be had counts as 0."),
    ("answered", "Share of the questions that were answered and not refused, by the wording of the answer."),
    (
        "controlled, naive",
        "The reference document handed over; or BM25's first documents, whatever they are.",
    ),
    (
        "interval",
        "By question: two systems are compared paired on the same ones. Its level stands in the heading.",
    ),
    ("unscored", "No answer or no rating could be had. It is never dropped."),
)


def answer_document(result: AnswerResult) -> Document:
    """What an answerer test came to."""
    points, known = result.decomposition, result.contaminated
    return Document(
        title=f"{result.experiment}: answerers compared",
        about=_about(result),
        headline=_headline(result),
        sections=[
            _systems(result),
            *([_comparisons(result)] if result.comparisons else []),
            *([_decomposition(result, points)] if points is not None else []),
            _refusals(result),
            *([_contaminated(result, known)] if known is not None else []),
            *([_questions(result)] if result.most_different else []),
            *notes_section(_notes(result), words=_WORDS, short=True),
        ],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=FROM_SUMMARY,
        data={"result": result},
    )


def _about(result: AnswerResult) -> str:
    gold, options = result.gold, result.context_options
    n = len({one.system for one in result.systems})
    reference = "left out" if result.without_reference else options.get("position")
    distractors = f"{options.get('distractors')} more by BM25"
    words = {
        "controlled": f"controlled context (reference document {reference}, {distractors})",
        "topk": f"naive context (BM25's first documents): {options.get('k')}",
        "none": "closed book (no document)",
        "recorded": "recorded answers",
    }
    called = [words[kind] for kind in result.context if kind != "recorded"] or [words["recorded"]]
    return (
        f"{n} system{'s' * (n != 1)} on {gold.set}@{gold.sha256[:12]}: {gold.n_questions:,} questions, "
        f"{' and '.join(called)}, rated by {result.rated_by.described}."
    )


def _headline(result: AnswerResult) -> Headline:
    nothing = unread_headline(result.unread)
    if nothing is not None:
        return nothing
    act, reasons, following = _act(result)
    scope = f"{result.n_unscored:,} of {result.n_expected:,} unscored, {result.gold.n_questions:,} questions."
    kind, first = act.split()[0].lower(), f"{act}: {'; '.join(reasons)}."
    return Headline(kind, first, (scope,), _unknown(result), following)


def _act(result: AnswerResult) -> tuple[str, list[str], str]:
    """What to do, why, and the command that follows; of several contexts the first one leads."""
    gold, known = result.gold.set, result.contaminated
    if known is not None and result.context[0] == "none":
        right = f"answered right ({known.right_at:g}% or more) without any document"
        if not known.questions:
            reasons = [f"none of {known.n_answerable:,} answerable ones was {right}"]
            return "Keep all questions", reasons, f"judgecal answer --gold {gold} --contexts controlled,topk"
        leave_out = f"judgecal answer --gold {gold} --drop-contaminated {result.experiment}"
        counts = f"{len(known.questions):,} of {known.n_answerable:,}"
        return f"Leave out {counts} questions", [f"they were {right}"], leave_out
    if result.without_reference:
        reasons = ["the reference document was left out, so a refusal is right"]
        for one in [one for one in result.systems if one.context == "controlled"][:_SHOWN]:
            absent = one.refusals.unanswerable
            reasons.append(f"{one.system} refuses {absent.refused:,} of {absent.n:,}")
        return "Do not rank by the average here", reasons, f"judgecal answer --gold {gold}"
    following = f"judgecal report {result.experiment} --open"
    if result.decomposition is None and result.context[0] in ("controlled", "topk"):
        # retrieval apart from answering
        following = f"judgecal answer --gold {gold} --contexts controlled,topk"
    best, beside = _best(result), _beside_first(result)
    if best is None:
        return "Cannot tell whom to use", ["no answer has a rating"], following
    rated = {result.called(one) for one in beside if one.n}
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
    return [one for one in result.systems if one.context in (result.context[0], "recorded")]


def _best(result: AnswerResult) -> SystemEntry | None:
    """Of these the one with the highest average; None where no answer has a rating."""
    rated = [(one.intervals.average_as_wrong.value, one) for one in _beside_first(result) if one.n]
    known = [(value, one) for value, one in rated if value is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _average(one: SystemEntry) -> str:
    """A system's average rating with its interval; none is no 0, as which its answers count."""
    return f"{numbers.estimate(one.intervals.average_as_wrong, 1)}%" if one.n else "no rating"


def _unknown(result: AnswerResult) -> tuple[str, ...]:
    """What weighs most comes first."""
    unclear = [pair.smallest_detectable for pair in result.comparisons if pair.decision == "cannot tell"]
    known, band = [value for value in unclear if value is not None], result.rated_by.band
    apart = result.decomposition is None and {"controlled", "topk"} & set(result.context)
    return sentences(
        map(sentence, result.warnings),
        bool(known)
        and f"Whether systems differ by less than {numbers.plain(max(known), 1)} points: these questions "
        "show a difference of that size in four runs of five, a smaller one more rarely.",
        band is not None
        and f"How far the judge itself is off: up to {band:.1f} points ({result.rated_by.band_from}).",
        bool(apart)
        and "Whether retrieval or the answerer loses the points: --contexts controlled,topk tells.",
        any(one.usd_per_1k is None for one in result.systems)
        and "What the systems cost: some have no price.",
        bool(result.not_asked)
        and f"What becomes of {len(result.not_asked):,} questions that could not be asked.",
    )


def _systems(result: AnswerResult) -> Section:
    best = _best(result)
    rows = [
        IntervalRow(
            result.called(one),
            one.intervals.average_as_wrong if one.n else Estimate(None),
            _average(one),
            strong=one is best,
        )
        for one in result.systems
    ]
    level = result.systems[0].intervals.average_as_wrong.level
    overview = table(
        result.systems,
        {
            "system": result.called,
            f"average [{level:.4g}]": _average,
            "answered": lambda one: numbers.percent(one.answered),
            "n": lambda one: f"{one.n:,}/{one.n_expected:,}",
            "unscored": lambda one: f"{one.n_unscored:,}",
            "USD/1k": lambda one: numbers.money(one.usd_per_1k),
            "p50": lambda one: numbers.seconds(one.latency_s.p50),
        },
        chosen=None if best is None else result.called(best),
    )
    spread = table(
        result.systems,
        {
            "rated answers, %": result.called,
            "min": lambda one: numbers.plain(one.min, 1),
            "p50": lambda one: numbers.plain(one.p50, 1),
            "p90": lambda one: numbers.plain(one.p90, 1),
            "p95": lambda one: numbers.plain(one.p95, 1),
            "max": lambda one: numbers.plain(one.max, 1),
        },
    )
    caption = (
        "Serves the choice of a prompt and a model together. Lines that overlap may still differ, as the "
        "systems answer the same questions: the paired differences decide. The highest average is in "
        "colour; p50 is the latency of half the answers."
    )
    axis = Axis("average rating, %", low=0.0, high=100.0)
    blocks = [interval_picture(rows, axis, numbers=overview, short=True), spread]
    return Section("systems", "The systems", caption, blocks)


def _comparisons(result: AnswerResult) -> Section:
    pairs = result.comparisons
    rows = [
        IntervalRow(
            f"{pair.a} − {pair.b}",
            pair.difference,
            numbers.difference(pair.difference, 1),
            strong=pair.decision in ("A", "B"),
        )
        for pair in pairs[:_SHOWN]
    ]
    differences = table(
        pairs,
        {
            "a": lambda pair: pair.a,
            "b": lambda pair: pair.b,
            f"a − b [{pairs[0].difference.level:.4g}]": lambda pair: numbers.difference(pair.difference, 1),
            "p (Holm)": lambda pair: numbers.plain(pair.p_adjusted),
            "higher": lambda pair: pair.higher,
            "detectable": lambda pair: numbers.plain(pair.smallest_detectable, 1),
        },
        left=2,
    )
    axis = Axis("difference, percentage points", full=0.0)
    picture = interval_picture(rows, axis, numbers=differences, short=len(pairs) <= _SHOWN)
    reasons = {pair.difference.reason for pair in pairs if pair.difference.low is None}
    notes = sentences(
        len(pairs) > _SHOWN and f"Drawn: the first {_SHOWN} of {len(pairs)} pairs.",
        [f"No interval: {reason}." for reason in sorted(filter(None, reasons))],
    )
    caption = (
        "Serves the same choice: each pair on the same questions, in percentage points; right of the line "
        "the first is better. In colour where it is decided; the p value is corrected for the number of "
        "pairs, the lines are not."
    )
    blocks: list[Block] = [picture, *([Bullets(notes, short=True)] if notes else [])]
    return Section("pairs", "Differences, paired by question", caption, blocks)


def _decomposition(result: AnswerResult, points: Decomposition) -> Section:
    losses = [(one.system, one.retrieval, one.answerer) for one in points.systems]
    ends = [
        end
        for _, *pair in losses
        for loss in pair
        for end in (loss.value, loss.low, loss.high)
        if end is not None
    ]
    axis = Axis("percentage points", full=0.0, low=min(ends, default=None), high=max(ends, default=None))

    def picture(title: str, losses: Iterable[tuple[str, Estimate]]) -> Block:
        rows = [IntervalRow(name, loss, numbers.estimate(loss, 1)) for name, loss in losses]
        return interval_picture(rows, axis, title=title)

    caption = (
        "Serves the choice of what to mend: the retriever or the answerer. Retrieval costs the controlled "
        "average less the naive one; the answerer loses what is missing to 100 with the right document in "
        "hand."
    )
    band, left_out = result.rated_by.band, max(one.n_left_out for one in points.systems)
    unknown = "of unknown size: it was not locked on a gold set"
    size = unknown if band is None else f"of {band:.1f} points ({result.rated_by.band_from})"
    notes = sentences(
        f"The judge's own error is a band around both, {size}.",
        left_out > 0
        and f"{left_out:,} questions were asked with one of the two contexts alone and are left out.",
    )
    blocks: list[Block] = [
        picture("What retrieval costs", [(name, retrieval) for name, retrieval, _ in losses]),
        picture("What the answerer loses", [(name, answerer) for name, _, answerer in losses]),
        table(
            points.systems,
            {
                "system": lambda one: one.system,
                "retrieval costs": lambda one: numbers.difference(one.retrieval, 1),
                "the answerer loses": lambda one: numbers.estimate(one.answerer, 1),
            },
            short=True,
        ),
        table(
            points.systems,
            {
                "system": lambda one: one.system,
                "questions": lambda one: f"{one.n_questions:,}",
                "naive": lambda one: numbers.estimate(one.topk, 1),
                "controlled": lambda one: numbers.estimate(one.controlled, 1),
            },
        ),
        Bullets(notes, short=True),
    ]
    return Section("points", "Where the points go", caption, blocks)


def _refusals(result: AnswerResult) -> Section:
    def share(n: int, counted: Counted) -> Cell:
        return Cell(f"{n:,} of {counted.n:,}", n / counted.n if counted.n else None)

    where = "in the documents handed over"
    if all(one.context == "recorded" for one in result.systems):
        where = "by the reference"
    caption = (
        "Serves the wording of the prompt: a prompt that refuses too much loses answers, one that refuses "
        f"too little makes them up. Whether there is an answer is told {where}; a refusal is told by its "
        "wording, which is a rule and no reading."
    )
    rows = [
        (result.called(one), one.refusals.answerable, one.refusals.unanswerable) for one in result.systems
    ]
    cells = table(
        rows,
        {
            "system": lambda row: row[0],
            "rightly answered": lambda row: share(row[1].answered, row[1]),
            "wrongly refused": lambda row: share(row[1].refused, row[1]),
            "wrongly answered": lambda row: share(row[2].answered, row[2]),
            "rightly refused": lambda row: share(row[2].refused, row[2]),
        },
        short=True,
    )
    return Section("refusals", "Refusals", caption, [cells])


def _contaminated(result: AnswerResult, known: Contaminated) -> Section:
    shown = [row for row in known.questions if row.text is not None]
    n_sealed = len(known.questions) - len(shown)
    blocks: list[Block] = []
    if not known.questions:
        blocks.append(Paragraph("No question was answered right without a document."))
    if shown:
        columns = table(
            shown,
            {
                "question": lambda row: row.question,
                "wording": lambda row: textwrap.shorten(str(row.text), 70, placeholder=" ..."),
                "known to": lambda row: ", ".join(row.systems),
            },
            left=3,
            short=len(shown) <= _SHOWN,
        )
        blocks.append(columns)
    if n_sealed:
        sealed = f"{numbers.count(n_sealed)} of them are test questions, which are counted and not shown."
        blocks.append(Paragraph(sealed, short=True))
    if known.questions:
        blocks.append(
            Paragraph(f"Leave them out by: judgecal answer ... --drop-contaminated {result.experiment}")
        )
    caption = (
        "Serves the choice of questions: what a model knows by heart says nothing about retrieval, and "
        "little about how it reads."
    )
    return Section("contaminated", "Known by heart", caption, blocks)


def _questions(result: AnswerResult) -> Section:
    caption = (
        "Serves the reading: look at the answers to these before any average is believed; judgecal answer "
        "... --show ID shows them side by side. Test questions are in every number, and not among these."
    )
    records = []
    for row in result.most_different:
        rated = "; ".join(f"{system}: {numbers.plain(mean, 0)}%" for system, mean in row.percentages.items())
        records.append(Record(row.question, [("Question", row.text), ("Rated", rated)]))
    return Section("questions", "Questions on which the systems differ most", caption, records)


def _notes(result: AnswerResult) -> tuple[str, ...]:
    reasons = {one.intervals.average_as_wrong.reason for one in result.systems}
    named = [row for row in result.not_asked if not row.sealed][:_SHOWN]
    more = len(result.not_asked) - len(named)
    unscored = []
    for one in result.systems:
        if one.n_unscored:
            why = ", ".join(f"{count} {kind}" for kind, count in one.unscored.items())
            unscored.append(f"{result.called(one)}: {one.n_unscored} of {one.n_expected} unscored ({why}).")
    return sentences(
        [f"No interval for the average: {reason}." for reason in sorted(filter(None, reasons))],
        result.without_reference
        and "The reference document was left out: a refusal is right, and an honest answerer's percentage is "
        "low.",
        unscored,
        [f"Not asked: {row.question} ({row.message})." for row in named],
        more > 0 and f"... and {more} more not asked (those of test are not shown).",
        map(sentence, result.notes),
    )


def question_document(result: AnswerResult, asked: OneQuestion) -> Document:
    """One question across all systems, side by side."""
    documents = ", ".join(asked.reference_documents) or "none named"
    rank = "not ranked" if asked.rank is None else f"rank {asked.rank} by BM25, score {asked.score:.3f}"
    tied = f", {asked.ties} others with the same score" if asked.ties else ""
    refusal = "" if asked.answerable else " (the right answer is a refusal)"
    facts = [
        f"reference answer: {asked.reference_answer or 'none'}{refusal}",
        f"reference document: {documents} ({rank}{tied})",
    ]
    handed = {one.context: one.documents for one in asked.answers if one.documents is not None}
    for context, names in handed.items():
        which = f" ({context})" if len(handed) > 1 else ""
        facts.append(f"handed over{which}: {', '.join(map(str, names)) or 'nothing'}")
    if not handed:
        facts.append("handed over: not known, the answers were recorded elsewhere")

    def record(one: ShownAnswer) -> Record:
        again = f", repeat {one.repeat + 1}" if one.repeat else ""
        refused = ", refused" if one.refused else ""
        rated = f"unscored ({one.unscored})" if one.percentage is None else f"{one.percentage:.0f}%"
        text = "(no answer)" if one.answer is None else one.answer or "(empty)"
        return Record(f"{result.called(one)}{again}: {rated}{refused}", [("answer", text)], short=True)

    n = sum(one.percentage is not None for one in asked.answers)
    rated, again = (
        f"{n} of {len(asked.answers)} answers have a rating.",
        f"judgecal report {result.experiment}",
    )
    caption = "Serves the reading: what each system said, and what it was given."
    blocks = [Bullets(facts, short=True), *map(record, asked.answers)]
    return Document(
        title=f"{result.experiment}: question {asked.question}",
        about=_about(result),
        headline=Headline("question", f"{asked.question}: {asked.text}", (rated,), next=again),
        sections=[Section("question", "The question", caption, blocks)],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=FROM_SUMMARY,
    )
