"""The document of `answer`: whom to take, systems and their differences, where points go, refusals,
questions."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable

from judgecal.experiment.folder import Experiment
from judgecal.rag.answering.outcomes import Counted, SystemEntry
from judgecal.rag.answering.pairwise import DifferingQuestion, OneQuestion, ShownAnswer
from judgecal.rag.answering.result import AnswerResult, Contaminated, Decomposition
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
    Table,
    notes_section,
)
from judgecal.report.intervals import Axis, IntervalRow, interval_picture
from judgecal.report.judges_headline import unread_headline
from judgecal.report.wording import sentence
from judgecal.workspace import Workspace

_SHOWN = 20  # pairs that are drawn, and questions that are named
_CONTEXTS = {
    "topk": "naive context (BM25's first documents)",
    "none": "closed book (no document)",
    "recorded": "recorded answers",
}
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
    """What an answerer test with one kind of context came to."""
    sections = [_systems(result), _refusals(result)]
    if result.comparisons:
        sections.insert(1, _comparisons(result))
    if result.decomposition is not None:
        sections.insert(-1, _decomposition(result, result.decomposition))
    if result.contaminated is not None:
        sections.append(_contaminated(result, result.contaminated))
    if result.most_different:
        sections.append(_questions(result))
    return Document(
        title=f"{result.experiment}: answerers compared",
        about=_about(result),
        headline=_headline(result),
        sections=[*sections, *notes_section(list(_notes(result)), words=_WORDS, short=True)],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=FROM_SUMMARY,
        data={"result": result},
    )


def _about(result: AnswerResult) -> str:
    gold, n = result.gold, len(result.systems)
    return (
        f"{n} system{'s' * (n != 1)} on {gold.set}@{gold.sha256[:12]}: {gold.n_questions:,} questions, "
        f"{_context(result)}, rated by {result.rated_by.described}."
    )


def _context(result: AnswerResult) -> str:
    options = result.context_options
    if result.context == "topk":
        return f"{_CONTEXTS['topk']}: {options['k']}"
    if result.context != "controlled":
        return _CONTEXTS[result.context]
    own = "left out" if result.without_reference else options["position"]
    return f"controlled context (reference document {own}, {options['distractors']} more by BM25)"


def _headline(result: AnswerResult) -> Headline:
    nothing = unread_headline(result.unread)
    if nothing is not None:
        return nothing
    act, reasons, following = _act(result)
    scope = f"{result.n_unscored:,} of {result.n_expected:,} unscored, {result.gold.n_questions:,} questions."
    return Headline(
        act.split()[0].lower(), f"{act}: {'; '.join(reasons)}.", (scope,), tuple(_unknown(result)), following
    )


def _act(result: AnswerResult) -> tuple[str, list[str], str]:
    """What to do, why, and the command that follows."""
    gold = result.gold.set
    if result.contaminated is not None:
        known = result.contaminated
        told = f"answered right ({known.right_at:g}% or more) without any document"
        if not known.questions:
            kept = [f"none of {known.n_answerable:,} answerable ones was {told}"]
            return "Keep all questions", kept, f"judgecal answer --gold {gold} --contexts controlled,topk"
        leave_out = f"judgecal answer --gold {gold} --drop-contaminated {result.experiment}"
        counts = f"{len(known.questions):,} of {known.n_answerable:,}"
        return f"Leave out {counts} questions", [f"they were {told}"], leave_out
    if result.without_reference:
        reasons = ["the reference document was left out, so a refusal is right"]
        for one in result.systems[:_SHOWN]:
            absent = one.refusals.unanswerable
            reasons.append(f"{one.system} refuses {absent.refused:,} of {absent.n:,}")
        return "Do not rank by the average here", reasons, f"judgecal answer --gold {gold}"
    return (*_choice(result), _next(result))


def _next(result: AnswerResult) -> str:
    """Where retrieval was not held apart from answering yet, that; else the questions to read."""
    if result.decomposition is None and result.context in ("controlled", "topk"):
        return f"judgecal answer --gold {result.gold.set} --contexts controlled,topk"
    return f"judgecal report {result.experiment} --open"


def _choice(result: AnswerResult) -> tuple[str, list[str]]:
    """Whom to use, by the paired comparisons."""
    best = _best(result)
    if best is None:
        return "Cannot tell whom to use", ["no answer has a rating"]
    average = f"{best.system} averages {_average(best)}"
    rated = {one.system for one in result.systems if one.n}
    others = len(rated) - 1
    if not others:
        other = "no other system has a rating" if len(result.systems) > 1 else "there is no other system"
        return "No choice to make", [f"{average}, and {other} to hold it against"]
    behind = sum(pair.higher == best.system and {pair.a, pair.b} <= rated for pair in result.comparisons)
    if behind == others:
        every = "the other one" if others == 1 else f"all {others} others"
        return f"Use {best.system}", [f"it averages {_average(best)}", f"shown to be above {every}"]
    some = (
        f"is shown to be above {behind} of {others} others"
        if behind
        else "is not shown to be above any other"
    )
    return "Cannot tell whom to use", [f"{average}, which is the highest, but {some}"]


def _best(result: AnswerResult) -> SystemEntry | None:
    """The system with the highest average; None where no answer has a rating."""
    rated = [(one.intervals.average_as_wrong.value, one) for one in result.systems if one.n]
    known = [(value, one) for value, one in rated if value is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _average(one: SystemEntry) -> str:
    """A system's average rating with its interval, where it has one: not what all answers without one count
    as."""
    return f"{numbers.estimate(one.intervals.average_as_wrong, 1)}%" if one.n else "no rating"


def _unknown(result: AnswerResult) -> Iterable[str]:
    """What weighs most comes first."""
    yield from map(sentence, result.warnings)
    unclear = [pair.smallest_detectable for pair in result.comparisons if pair.decision == "cannot tell"]
    known = [value for value in unclear if value is not None]
    if known:
        yield (
            f"Whether systems differ by less than {numbers.plain(max(known), 1)} points: these questions show a "
            "difference of that size in four runs of five, a smaller one more rarely."
        )
    if result.rated_by.band is not None:
        yield f"How far the judge itself is off: up to {result.rated_by.band:.1f} points ({result.rated_by.band_from})."
    if result.context in ("controlled", "topk") and result.decomposition is None:
        yield "Whether retrieval or the answerer loses the points: --contexts controlled,topk tells."
    if any(one.usd_per_1k is None for one in result.systems):
        yield "What the systems cost: some have no price."
    if result.not_asked:
        yield f"What becomes of {len(result.not_asked):,} questions that could not be asked."


def _systems(result: AnswerResult) -> Section:
    best = _best(result)
    name = None if best is None else best.system
    rows = [
        IntervalRow(
            one.system,
            one.intervals.average_as_wrong if one.n else Estimate(None),
            _average(one),
            strong=one.system == name,
        )
        for one in result.systems
    ]
    level = result.systems[0].intervals.average_as_wrong.level
    header = ["system", f"average [{level:.4g}]", "answered", "n", "unscored", "USD/1k", "p50"]
    cells = [
        [
            one.system,
            _average(one),
            numbers.percent(one.answered),
            f"{one.n:,}/{one.n_expected:,}",
            f"{one.n_unscored:,}",
            numbers.money(one.usd_per_1k),
            numbers.seconds(one.latency_s.p50),
        ]
        for one in result.systems
    ]
    spread = [
        [one.system, *(numbers.plain(end, 1) for end in (one.min, one.p50, one.p90, one.p95, one.max))]
        for one in result.systems
    ]
    caption = (
        "Serves the choice of a prompt and a model together. Lines that overlap may still differ, as the systems "
        "answer the same questions: the paired differences decide. The highest average is in colour; p50 is the "
        "latency of half the answers."
    )
    axis = Axis("average rating, %", low=0.0, high=100.0)
    blocks = [
        interval_picture(rows, axis, numbers=Table(header, cells, chosen=name), short=True),
        Table(["rated answers, %", "min", "p50", "p90", "p95", "max"], spread),
    ]
    return Section("systems", "The systems", caption, blocks)


def _comparisons(result: AnswerResult) -> Section:
    pairs = result.comparisons
    changes = [numbers.difference(pair.difference, 1) for pair in pairs]
    rows = [
        IntervalRow(f"{pair.a} − {pair.b}", pair.difference, change, strong=pair.decision in ("A", "B"))
        for pair, change in zip(pairs[:_SHOWN], changes, strict=False)
    ]
    cells = [
        [pair.a, pair.b, change, numbers.plain(pair.p_adjusted), pair.higher, numbers.plain(detectable, 1)]
        for pair, change in zip(pairs, changes, strict=True)
        for detectable in [pair.smallest_detectable]
    ]
    level = f"a − b [{pairs[0].difference.level:.4g}]"
    table = Table(["a", "b", level, "p (Holm)", "higher", "detectable"], cells, left=2)
    axis = Axis("difference, percentage points", full=0.0)
    picture = interval_picture(rows, axis, numbers=table, short=len(pairs) <= _SHOWN)
    notes = [f"Drawn: the first {_SHOWN} of {len(pairs)} pairs."] if len(pairs) > _SHOWN else []
    reasons = {pair.difference.reason for pair in pairs if pair.difference.low is None}
    notes += [f"No interval: {reason}." for reason in sorted(filter(None, reasons))]
    caption = (
        "Serves the same choice: each pair on the same questions, in percentage points; right of the line the first "
        "is better. In colour where it is decided; the p value is corrected for the number of pairs, the lines are "
        "not."
    )
    blocks: list[Block] = [picture, *([Bullets(notes, short=True)] if notes else [])]
    return Section("pairs", "Differences, paired by question", caption, blocks)


def _decomposition(result: AnswerResult, points: Decomposition) -> Section:
    cells = [
        [one.system, f"{one.n_questions:,}", *(numbers.estimate(e, 1) for e in (one.topk, one.controlled))]
        for one in points.systems
    ]
    losses = [
        [one.system, numbers.difference(one.retrieval, 1), numbers.estimate(one.answerer, 1)]
        for one in points.systems
    ]
    header = ["system", "questions", "naive", "controlled"]
    caption = (
        "Serves the choice of what to mend: the retriever or the answerer. Retrieval costs the controlled average "
        "less the naive one; the answerer loses what is missing to 100 with the right document in hand."
    )
    names, band = points.experiments, result.rated_by.band
    unknown = "of unknown size: it was not locked on a gold set"
    size = unknown if band is None else f"of {band:.1f} points ({result.rated_by.band_from})"
    notes = [f"The judge's own error is a band around both, {size}."]
    notes.append(f"Controlled: {names['controlled']}; naive: {names['topk']}.")
    left_out = max(one.n_left_out for one in points.systems)
    if left_out:
        notes.append(f"{left_out:,} questions were asked in one of the two runs alone and are left out.")
    blocks: list[Block] = [
        _loss(points, "retrieval", "What retrieval costs"),
        _loss(points, "answerer", "What the answerer loses"),
        Table(["system", "retrieval costs", "the answerer loses"], losses, short=True),
        Table(header, cells),
        Bullets(notes, short=True),
    ]
    return Section("points", "Where the points go", caption, blocks)


def _loss(points: Decomposition, part: str, title: str) -> Block:
    """One of the two losses, a line a system; both stand on one axis."""
    every = [loss for one in points.systems for loss in (one.retrieval, one.answerer)]
    ends = [end for loss in every for end in (loss.value, loss.low, loss.high) if end is not None]
    losses = [(one.system, one.retrieval if part == "retrieval" else one.answerer) for one in points.systems]
    axis = Axis("percentage points", full=0.0, low=min(ends, default=None), high=max(ends, default=None))
    return interval_picture(
        [IntervalRow(name, loss, numbers.estimate(loss, 1)) for name, loss in losses], axis, title=title
    )


def _refusals(result: AnswerResult) -> Section:
    header = ["system", "rightly answered", "wrongly refused", "wrongly answered", "rightly refused"]
    rows: list[list[str | Cell]] = [
        [one.system, *(_of(n, side) for side in sides for n in (side.answered, side.refused))]
        for one in result.systems
        for sides in [(one.refusals.answerable, one.refusals.unanswerable)]
    ]
    where = "by the reference" if result.context == "recorded" else "in the documents handed over"
    caption = (
        "Serves the wording of the prompt: a prompt that refuses too much loses answers, one that refuses too little "
        f"makes them up. Whether there is an answer is told {where}; a refusal is told by its wording, which is a rule "
        "and no reading."
    )
    return Section("refusals", "Refusals", caption, [Table(header, rows, short=True)])


def _of(n: int, counted: Counted) -> Cell:
    share = n / counted.n if counted.n else None
    return Cell(f"{n:,} of {counted.n:,}", share)


def _contaminated(result: AnswerResult, known: Contaminated) -> Section:
    rows = [
        [row.question, textwrap.shorten(row.text, 70, placeholder=" ..."), ", ".join(row.systems)]
        for row in known.questions
        if row.text is not None
    ]
    n_sealed = len(known.questions) - len(rows)
    blocks: list[Block] = (
        [] if known.questions else [Paragraph("No question was answered right without a document.")]
    )
    if rows:
        blocks.append(Table(["question", "wording", "known to"], rows, left=3, short=len(rows) <= _SHOWN))
    if n_sealed:
        blocks.append(
            Paragraph(
                f"{numbers.count(n_sealed)} of them are test questions, which are counted and not shown.",
                short=True,
            )
        )
    if known.questions:
        blocks.append(
            Paragraph(f"Leave them out by: judgecal answer ... --drop-contaminated {result.experiment}")
        )
    caption = (
        "Serves the choice of questions: what a model knows by heart says nothing about retrieval, and little about "
        "how it reads."
    )
    return Section("contaminated", "Known by heart", caption, blocks)


def _questions(result: AnswerResult) -> Section:
    caption = (
        "Serves the reading: look at the answers to these before any average is believed; judgecal answer ... "
        "--question ID shows them side by side. Test questions are in every number, and not among these."
    )
    records = [_record(row) for row in result.most_different]
    return Section("questions", "Questions on which the systems differ most", caption, records)


def _record(row: DifferingQuestion) -> Record:
    rated = "; ".join(f"{system}: {numbers.plain(one, 0)}%" for system, one in row.percentages.items())
    return Record(row.question, [("Question", row.text), ("Rated", rated)])


def _notes(result: AnswerResult) -> Iterable[str]:
    reasons = {one.intervals.average_as_wrong.reason for one in result.systems}
    yield from (f"No interval for the average: {reason}." for reason in sorted(filter(None, reasons)))
    if result.without_reference:
        yield "The reference document was left out: a refusal is right, and an honest answerer's percentage is low."
    for one in result.systems:
        if one.n_unscored:
            why = ", ".join(f"{count} {kind}" for kind, count in one.unscored.items())
            yield f"{one.system}: {one.n_unscored} of {one.n_expected} unscored ({why})."
    named = [row for row in result.not_asked if not row.sealed][:_SHOWN]
    yield from (f"Not asked: {row.question} ({row.message})." for row in named)
    if len(result.not_asked) > len(named):
        yield f"... and {len(result.not_asked) - len(named)} more not asked (those of test are not shown)."
    yield from map(sentence, result.notes)


def question_document(result: AnswerResult, asked: OneQuestion) -> Document:
    """One question across all systems, side by side."""
    documents = ", ".join(asked.reference_documents) or "none named"
    rank = "not ranked" if asked.rank is None else f"rank {asked.rank} by BM25, score {asked.score:.3f}"
    tied = f", {asked.ties} others with the same score" if asked.ties else ""
    handed_over = ", ".join(map(str, asked.documents or ())) or "nothing"
    if asked.documents is None:
        handed_over = "not known, the answers were recorded elsewhere"
    refusal = "" if asked.answerable else " (the right answer is a refusal)"
    facts = [
        f"reference answer: {asked.reference_answer or 'none'}{refusal}",
        f"reference document: {documents} ({rank}{tied})",
        f"handed over: {handed_over}",
    ]
    n = sum(one.percentage is not None for one in asked.answers)
    rated, again = (
        f"{n} of {len(asked.answers)} answers have a rating.",
        f"judgecal report {result.experiment}",
    )
    caption = "Serves the reading: what each system said, and what it was given."
    blocks = [Bullets(facts, short=True), *map(_answer, asked.answers)]
    return Document(
        title=f"{result.experiment}: question {asked.question}",
        about=_about(result),
        headline=Headline("question", f"{asked.question}: {asked.text}", (rated,), next=again),
        sections=[Section("question", "The question", caption, blocks)],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        foot=FROM_SUMMARY,
    )


def _answer(one: ShownAnswer) -> Record:
    again = f", repeat {one.repeat + 1}" if one.repeat else ""
    refused = ", refused" if one.refused else ""
    rated = f"unscored ({one.unscored})" if one.percentage is None else f"{one.percentage:.0f}%"
    text = "(no answer)" if one.answer is None else one.answer or "(empty)"
    return Record(f"{one.system}{again}: {rated}{refused}", [("answer", text)], short=True)


def answer_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The document of `answer`; where the points go is told as soon as both contexts were run, in either
    order.

    Raises:
        InputError: as `Experiment.read_summary`.
    """
    from judgecal.rag.answering import AnswerResult, decomposition

    result = experiment.read_summary(AnswerResult)
    if result.decomposition is None:
        seed = int(experiment.config.get("seed", 0))
        points = decomposition(workspace, experiment, result.percentages, seed=seed)
        result = dataclasses.replace(result, decomposition=points)
    return answer_document(result)
