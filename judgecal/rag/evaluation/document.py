"""The document of `evaluate`: outcomes, what may be the best, factor curves, systems, what lies behind."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from judgecal.rag.evaluation.comparisons import FactorCurve
from judgecal.rag.evaluation.document_parts import (
    comparisons_section,
    complexity_section,
    corrected_section,
    documents_section,
    failures_section,
    judges_section,
    tags_section,
    worst_section,
)
from judgecal.rag.evaluation.headline import (
    candidates,
    evaluate_facts,
    evaluate_headline,
    made_by_model,
    noun,
)
from judgecal.rag.evaluation.result import EvaluateResult
from judgecal.rag.evaluation.summary import OutcomeShare, SystemSummary
from judgecal.report import numbers
from judgecal.report.charts import Frame, Mark, Tick, apart, shortened
from judgecal.report.document import (
    Block,
    Document,
    Gallery,
    Paragraph,
    Picture,
    Section,
    Table,
    from_summary,
    notes_section,
    table,
)
from judgecal.report.intervals import Axis, IntervalRow, interval_picture
from judgecal.report.wording import in_a_row, sentence

_DRAWN = 20  # systems beside each other
_CURVE = 330  # pixels
_BESIDE = 4  # measures in a table
_WORDS = (
    (
        "right answer",
        "Answered, and correct from the stated mark on; an answer to a question without one is wrong.",
    ),
    ("right refusal", "Declined where the reference says that there is no answer."),
    ("answered", "Share of the questions that were answered and not refused, by the judge of that column."),
    ("answer_correctness", "Mean correctness over the answered questions, 0 to 1."),
    ("total", "Correctness where it answered and 0 where it refused: answered times answer_correctness."),
    ("may lose", "What it loses against the truly best is shown to be less than this, for all at once."),
    (
        "utility",
        "Mean worth of an answer: 1 where right, minus the stated costs of wrong answers and wrong refusals.",
    ),
    ("unscored", "No answer or no verdict could be had. It counts as 0 in the total, and is never dropped."),
    ("queries/min", "One after the other: 60 by the mean latency."),
)


def evaluate_document(result: EvaluateResult) -> Document:
    """What systems, or settings of one, come to on the same questions."""
    headline, facts, stored = evaluate_headline(result), tuple(evaluate_facts(result)), from_summary(result)
    return Document(
        title=f"{result.experiment}: {noun(result)} compared",
        about=_about(result),
        headline=headline,
        facts=facts,
        picture=_totals(result),
        sections=[
            _outcomes(result),
            _best(result),
            *([_curves(result)] if result.curves else []),
            _systems(result),
            *corrected_section(result),
            *comparisons_section(result),
            *documents_section(result),
            *complexity_section(result),
            *tags_section(result),
            *worst_section(result),
            *failures_section(result),
            judges_section(result),
            *notes_section([sentence(note) for note in _notes(result)], words=_WORDS, short=True),
        ],
        **stored,
    )


def _about(result: EvaluateResult) -> str:
    asked, n = result.questions, len(result.systems)
    how = ", every combination" if result.design == "grid" else ""
    if result.design == "one_at_a_time":
        how = f", one factor at a time from the base {in_a_row(result.bases)}"
    made = {"llm": ", made by a model", "people": ", made by people", "project": ", made by the project"}
    return (
        f"{result.experiment} · {n} {noun(result, n)}{how} · {numbers.count_of(asked.n, 'question')} of "
        f"{asked.source}{made.get(asked.made_by or '', '')}, {numbers.count(asked.n_answerable)} with an "
        "answer"
    )


def _notes(result: EvaluateResult) -> list[str]:
    asked = result.questions
    notes = [made_by_model(result)] if asked.made_by == "llm" else []
    if asked.n_sealed:
        sealed = numbers.count_of(asked.n_sealed, "question")
        notes.append(f"{sealed} of test are in every number here, and none of them is shown")
    states = result.states
    files = [Path(one).name for one in (states.questions, states.answers, states.measured, states.summary)]
    rows = (
        f"rows of every state, in the experiment's folder: {', '.join(files)}, each with a CSV file beside it"
    )
    return [*notes, *result.notes, rows]


def ranked(result: EvaluateResult) -> list[SystemSummary]:
    """The systems by `total`, those that may be the best first."""
    tied = candidates(result)
    rest = [one for one in result.systems if one not in tied]
    return [*tied, *sorted(rest, key=lambda one: -(one.total.value or 0.0))]


def _totals(result: EvaluateResult) -> Picture | None:
    """Under the headline: the total of each, in colour where it may be the best."""
    shown = ranked(result)[:_DRAWN]
    if len(shown) < 2 or not any(one.n for one in shown):
        return None
    tied = result.not_told_apart_from_best
    some, label = len(tied) < len(result.systems), result.labels
    rows = [
        IntervalRow(
            label[one.system], one.total, numbers.estimate(one.total, 2), strong=some and one.system in tied
        )
        for one in shown
    ]
    title = "total, 0 to 1; in colour: may be the best" if some else "total, 0 to 1"
    return interval_picture(
        rows, Axis(f"{title} (the first {_DRAWN})" if len(result.systems) > _DRAWN else title)
    )


def _outcomes(result: EvaluateResult) -> Section:
    def share(cell: OutcomeShare) -> str:
        value, low, high = cell.share.value, cell.share.low, cell.share.high
        if low is None or high is None:
            return numbers.percent(value)
        return f"{numbers.percent(value)} [{numbers.points(low, 0)}, {numbers.points(high, 0)}]"

    label, best = result.labels, result.best.best
    level, right_at = result.systems[0].total.level, result.systems[0].outcomes.right_at
    caption = (
        "Serves the question what a user meets: a refusal is neither right nor wrong by itself. Shares of "
        f"the n questions whose outcome is known, with {level:.0%} intervals; an answer is right from a "
        f"correctness of {right_at:g} on. Utility counts 1 for a right answer or refusal, takes away "
        f"{result.costs.wrong:g} for a wrong answer and {result.costs.refusal:g} for a wrong refusal, and "
        "takes an unscored one for a wrong answer."
    )
    shares = table(
        ranked(result),
        {
            "system": lambda one: label[one.system],
            "right answer": lambda one: share(one.outcomes.right_answer),
            "wrong answer": lambda one: share(one.outcomes.wrong_answer),
            "right refusal": lambda one: share(one.outcomes.right_refusal),
            "wrong refusal": lambda one: share(one.outcomes.wrong_refusal),
            "utility": lambda one: numbers.estimate(one.utility, 2),
            "n": lambda one: f"{one.n_expected - one.outcomes.n_unscored:,}/{one.n_expected:,}",
        },
        chosen=best and label[best],
        short=True,
    )
    return Section("outcomes", "Answerable and answered", caption, [shares])


def _best(result: EvaluateResult) -> Section:
    label, best, several = result.labels, result.best.best, len(result.systems) > 1
    losses = {one.name: one.loss_at_most if several else None for one in result.best.not_told_apart}
    title, caption = (
        f"{noun(result).capitalize()} that may be the best",
        "Serves the choice: no difference among these is shown, which is no proof that there is none. What "
        "decides between them is cost and latency, and how far below the best one may lie.",
    )
    if not several:
        title = "What it reaches and takes"
        caption = "Serves the choice: there is nothing here to hold it against."
    elif best is not None:
        caption = (
            "Serves the choice: this one alone is shown to be the best, by total and paired by question."
        )
    may_be_best = table(
        candidates(result),
        {
            "system": lambda one: label[one.system],
            "total": lambda one: numbers.estimate(one.total, 2),
            "may lose": lambda one: numbers.plain(losses[one.system], 2),
            "USD/1k": lambda one: numbers.money(one.usd_per_1k),
            "p50": lambda one: numbers.seconds(one.latency_s.p50),
            "p95": lambda one: numbers.seconds(one.latency_s.p95),
            "first token": lambda one: numbers.seconds(one.ttft_s.p50),
        },
        chosen=best and label[best],
        short=True,
    )
    unknown = [Paragraph(f"No bounds: {result.best.reason}.")] if result.best.reason is not None else []
    return Section("best", title, caption, [may_be_best, *unknown])


def _curves(result: EvaluateResult) -> Section:
    rows: list[list[str]] = []
    for curve in result.curves:
        tied = {one.name for one in curve.best_of.not_told_apart}
        rows.append([_curve_in_words(result, curve)])
        for level in curve.levels:
            may_be, n, n_unscored = (
                "yes" if str(level.level) in tied else "no",
                level.value.n,
                level.value.n_unscored,
            )
            total = numbers.estimate(level.value, 2)
            rows.append([str(level.level), total, may_be, numbers.count(n), numbers.count(n_unscored)])
    levels = Table(["level", "total", "may be the best", "n", "unscored"], rows, short=True)
    held = "averaged over the others" if result.design == "grid" else "the others held at the base"
    caption = (
        f"Serves the next sweep: what each factor does to the total, {held}. Lines are intervals of each "
        "level by itself; levels answer the same questions, so that lines which overlap may still differ: "
        f"the table says which may be the best, at {result.best.level:.0%} for all factors together."
    )
    pictures = []
    for curve in result.curves:
        says = "; ".join(f"{level.level}: {numbers.estimate(level.value, 2)}" for level in curve.levels)
        title = _curve_in_words(result, curve)
        pictures.append(Picture(partial(_curve_drawn, curve), f"{curve.factor}: {says}", title=title))
    return Section("factors", "What each factor does", caption, [Gallery(pictures), levels])


def _curve_in_words(result: EvaluateResult, curve: FactorCurve) -> str:
    several = len({one.table for one in result.curves}) > 1
    best, factor = curve.best_of, f"{curve.table}, {curve.factor}" if several else curve.factor
    if best.best is not None:
        return f"{factor}: {best.best} is shown to be the best"
    if len(best.not_told_apart) == len(curve.levels):
        return f"{factor}: any may be the best"
    return f"{factor}: {in_a_row([one.name for one in best.not_told_apart])} may be the best"


def _curve_drawn(curve: FactorCurve) -> str:
    """Levels side by side in their order, joined where they are numbers."""
    known = [
        end
        for one in curve.levels
        for end in (one.value.value, one.value.low, one.value.high)
        if end is not None
    ]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.08 * (high - low) or 0.05
    titles = (curve.factor, "total")
    frame = Frame(_CURVE, (0.0, float(len(curve.levels))), (low - room, min(high + room, 1.0 + room)), titles)
    tied = {one.name for one in curve.best_of.not_told_apart}
    marks, course = [], []
    for place, one in enumerate(curve.levels):
        x = frame.x(place + 0.5)
        if one.value.low is not None and one.value.high is not None:
            marks.append(Mark("line", x, frame.y(one.value.low), x, frame.y(one.value.high)))
        if one.value.value is not None:
            y = frame.y(one.value.value)
            course.append(f"{x} {y}")
            marks.append(Mark("dot", x, y, tone="accent" if str(one.level) in tied else "soft"))
    if all(isinstance(one.level, int | float) and not isinstance(one.level, bool) for one in curve.levels):
        marks.insert(0, Mark("path", text=f"M{'L'.join(course)}", tone="soft"))
    most = int((frame.right - frame.left) / len(curve.levels) / 7.0)
    below = [
        Tick(frame.x(n + 0.5), shortened(str(one.level), max(most, 5))) for n, one in enumerate(curve.levels)
    ]
    return frame.drawn(marks, apart(below))


def _systems(result: EvaluateResult) -> Section:
    shown, label = ranked(result), result.labels
    blind = {one.system for one in result.settings if not one.shows_contexts}
    columns = list(dict.fromkeys(name for one in shown for name in one.measures))

    def measure(name: str, one: SystemSummary) -> str:
        estimate = one.measures.get(name)
        if estimate is None or not estimate.n:  # what rests on contexts is not there where none are shown
            return "no contexts" if one.system in blind else numbers.DASH
        n = "" if estimate.n == estimate.n_expected else f" ({estimate.n:,}/{estimate.n_expected:,})"
        return f"{numbers.estimate(estimate, 2)}{n}"

    blocks: list[Block] = [
        table(
            shown,
            {
                "system": lambda one: label[one.system],
                "total": lambda one: numbers.estimate(one.total, 3),
                "answered": lambda one: numbers.estimate(one.answered, 2),
                "answer_correctness": lambda one: numbers.estimate(one.answer_correctness, 2),
                "total of the scored": lambda one: numbers.plain(one.total_complete_case.value, 3),
                "n": lambda one: numbers.count(one.n),
                "unscored": lambda one: numbers.count(one.n_unscored),
            },
        ),
        Table(
            ["system", "mean", "p50", "p95", "first token p50", "p95", "queries/min", "n", "USD/1k"],
            [
                [
                    label[one.system],
                    *map(numbers.seconds, (one.latency_s.mean, one.latency_s.p50, one.latency_s.p95)),
                    *map(numbers.seconds, (one.ttft_s.p50, one.ttft_s.p95)),
                    numbers.plain(one.queries_per_minute, 1),
                    numbers.count(one.latency_s.n),
                    numbers.money(one.usd_per_1k),
                ]
                for one in shown
            ],
            title="Latency and cost",
        ),
    ]
    for at in range(0, len(columns), _BESIDE):  # a few columns of the suite beside each other
        some = columns[at : at + _BESIDE]
        rows = [[label[one.system], *(measure(name, one) for name in some)] for one in shown]
        title = "" if at else "Judged, 0 to 1, over the questions that have a verdict"
        blocks.append(Table(["system", *some], rows, title=title))
    caption = (
        f"Serves whoever reports the numbers: {noun(result)} by total, which counts an unscored question as "
        f"0. Intervals by question, {shown[0].total.level:.0%}."
    )
    return Section("systems", f"The {noun(result)}", caption, blocks)
