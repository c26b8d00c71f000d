"""The documents of `plan`: how many labels a rate takes, and how many questions tell two judges apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from judgecal.experiment import Experiment
from judgecal.production.results import CurvePoint, PlanResult
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.charts import Frame, Mark
from judgecal.report.document import (
    Bullets,
    Document,
    Fact,
    Picture,
    Section,
    Table,
    from_summary,
    notes_section,
    table,
)
from judgecal.report.wording import glossary, sentence, sentences
from judgecal.selection.questions_plan import QuestionsResult
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace

_MARK = 100.0
_P = TypeVar("_P")
_SHOWN = 6  # numbers of a curve where it is not drawn
_WIDE, _NARROW = 660, 340  # pixels of a curve


def plan_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The document of either plan, as it was stored."""
    if "lock" in experiment.config:
        return plan_document(experiment.read_summary(PlanResult))
    return questions_document(experiment.read_summary(QuestionsResult))


def plan_document(result: PlanResult) -> Document:
    """How many labels a rate takes."""
    half = f"± {numbers.points(result.half_width, 0 if result.half_width >= 0.01 else 1)} points"
    with_judge, plain = numbers.count(result.labels_with_judge), numbers.count(result.labels_plain)
    stratified = numbers.count(result.labels_stratified)
    saved = numbers.percent(1.0 - result.labels_with_judge / result.labels_plain)
    ends, correlation = result.labels_at_ends, result.correlation
    notes = [sentence(note) for note in result.notes]
    if correlation is not None and correlation.value is not None:
        limit = numbers.percent(1.0 - max(0.0, correlation.value) ** 2)
        known = f"Correlation {numbers.estimate(correlation, 2)}"
        notes.insert(0, f"{known}: {limit} of the labels is the least that can do.")
    labels = table(
        [
            ("alone", plain),
            ("with the judge's verdicts", with_judge),
            ("with them, drawn by strata", stratified),
        ],
        {"labels": lambda row: row[0], "n": lambda row: row[1]},
        short=True,
    )
    caption = "Serves the budget for labels. It is what to expect from the lock, not a promise."
    words = glossary("half width", "correlation", "by strata")
    return Document(
        title=f"{result.judge}: how many labels a rate takes",
        about=f"{result.judge} ({result.lock}), as it was on {result.gold.set} ({result.gold.split})",
        headline=Headline(
            "plan",
            f"For {half}, about {with_judge} labels with this judge, {plain} without it.",
            sentences(
                f"That is {saved} fewer, by the judge's own correlation with people's labels.",
                ends is not None
                and f"At the ends of that correlation's interval: {numbers.count(ends[0])} to "
                f"{numbers.count(ends[1])} labels.",
            ),
            ("Whether the judge is as good on the rows to come: the labels themselves will tell.",),
            "judgecal judge --help",
        ),
        facts=[
            Fact(with_judge, f"labels with this judge for {half}."),
            Fact(plain, "labels without it."),
            Fact(stratified, "with it, drawn by strata of its verdict."),
        ],
        sections=[
            Section("labels", "Labels needed", caption, [labels, _assumed(result.assumes)]),
            *([curve_section(result.curve, short=True)] if result.curve else []),
            *notes_section(notes, words=words, short=True),
        ],
        **from_summary(result),
    )


def _assumed(assumes: Sequence[str]) -> Bullets:
    return Bullets([f"Assumed: {text}." for text in assumes], short=True)


def curve_section(curve: Sequence[CurvePoint], *, short: bool = False) -> Section:
    """Half width against labels; a short one stands in the terminal and in Markdown too, with some of its
    numbers.
    """
    widths = table(
        _some(curve) if short else curve,
        {
            "labels": lambda point: numbers.count(point.n),
            "alone": lambda point: numbers.points(point.plain),
            "with the judge": lambda point: numbers.points(point.with_judge),
            "by strata": lambda point: numbers.points(point.stratified),
        },
        title="Half width in points, by labels",
    )
    says = "; ".join(
        f"{point.n} labels: {numbers.points(point.plain)} or {numbers.points(point.with_judge)}"
        for point in curve
    )
    by_strata = [(point.n, point.stratified) for point in curve if point.stratified is not None]
    lines = [
        _Line("alone", "soft", [(point.n, point.plain) for point in curve]),
        _Line("with the judge", "accent", [(point.n, point.with_judge) for point in curve]),
        _Line("by strata", "warm", by_strata),
    ]
    caption = (
        "Serves the budget for labels: by what the lock knows of its judge, on a table without end. It is "
        "what to expect, not a promise."
    )
    picture = _picture(lines, ("labels", "half width, points"), says, widths, short=short)
    return Section("curve", "What more labels give", caption, [picture])


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a curve, with its name and its tone."""

    name: str
    tone: str
    points: Sequence[tuple[int, float]]


def _some(points: Sequence[_P]) -> list[_P]:
    """At most six, the last one among them."""
    step = -(-len(points) // _SHOWN)
    return list(points[::-1][::step][::-1])


def _picture(
    lines: Sequence[_Line],
    titles: tuple[str, str],
    says: str,
    values: Table,
    *,
    short: bool,
    log: bool = False,
    scale: float = _MARK,
) -> Picture:
    """Lines over a number that is to be chosen; its values stand in its place where nothing can be drawn."""

    def drawn(width: int) -> str:
        return _drawn(lines, titles, width, log=log, scale=scale)

    return Picture(lambda: drawn(_WIDE), says, narrow=lambda: drawn(_NARROW), numbers=values, short=short)


def _drawn(lines: Sequence[_Line], titles: tuple[str, str], width: int, *, log: bool, scale: float) -> str:
    """The lines; their names stand at the top right, off the lines."""
    every = [point for line in lines for point in line.points]
    most, widest = max(n for n, _ in every), scale * max(value for _, value in every)
    first = float(min(n for n, _ in every)) if log else 0.0
    frame = Frame(width, (first, 1.02 * most), (0.0, 1.05 * widest or 1.0), titles, log=log)
    marks: list[Mark] = []
    for row, line in enumerate(lines):
        places = [(frame.x(n), frame.y(scale * value)) for n, value in line.points]
        marks += (
            [Mark("path", text="M" + "L".join(f"{x} {y}" for x, y in places), tone=line.tone)]
            if places
            else []
        )
        marks += [Mark("dot", x, y, tone=line.tone) for x, y in places]
        height = frame.top + 10.0 + 16.0 * row
        marks += [Mark("dot", frame.right - 100.0, height - 4.0, tone=line.tone)]
        marks += [Mark("text", frame.right - 90.0 + 3.1 * len(line.name), height, text=line.name)]
    return frame.drawn(marks)


def questions_document(result: QuestionsResult) -> Document:
    """How many questions tell two judges apart."""
    share = metric_facts(result.metric).unit != "scale"

    def size(difference: float) -> str:
        return f"{numbers.points(difference)} points" if share else numbers.plain(difference, 3)

    def questions(n: int | None) -> str:
        return "more than a million" if n is None else numbers.count(n)

    needed, seen = questions(result.questions), result.seen
    n_questions = numbers.count(result.n_questions)
    sizes = table(
        [
            ("asked for", result.difference, result.questions),
            *((row.what, row.difference, row.questions) for row in result.rows),
        ],
        {
            "difference": lambda row: row[0],
            f"in {result.metric}": lambda row: size(row[1]),
            "questions": lambda row: questions(row[2]),
        },
        short=True,
    )
    as_seen = next((row.questions for row in result.rows), None)
    takes = "takes more than a million" if as_seen is None else f"takes about {numbers.count(as_seen)}"
    enough = result.questions is not None and result.questions <= result.n_questions
    detectable = table(
        _some(result.curve),
        {
            "questions": lambda point: numbers.count(point.n),
            "smallest difference": lambda point: size(point.difference),
        },
        title="The smallest difference shown, by questions",
    )
    says = "; ".join(f"{point.n} questions: {size(point.difference)}" for point in result.curve)
    axis = "smallest difference, points" if share else f"smallest difference in {result.metric}"
    line = _Line("shown in 80%", "accent", [(point.n, point.difference) for point in result.curve])
    scale = _MARK if share else 1.0
    picture = _picture([line], ("questions", axis), says, detectable, short=True, log=True, scale=scale)
    needed_for = "Serves the budget for questions: how many show which of the two agrees better with people."
    shown = "Serves the same budget: which difference a number of questions shows, in 80% of such samples."
    there = f"{result.n_questions:,} questions there are show"
    return Document(
        title=f"{result.a} and {result.b}: how many questions tell them apart",
        about=f"{result.a} and {result.b} in {result.compared_from}, {n_questions} questions",
        headline=Headline(
            "plan",
            f"A difference of {size(result.difference)} between {result.a} and {result.b} takes {needed} "
            f"questions{'' if result.questions is None else ' or so'}.",
            sentences(
                f"The {there} {size(result.smallest_detectable)}.",
                seen.value is not None
                and f"The difference seen, {size(abs(seen.value))}, {takes}; it is itself not sure.",
            ),
            (
                "Whether the two differ by so much: no number of questions makes a difference that is not "
                "there.",
            ),
            f"judgecal compare {result.compared_from} {result.a} {result.b}"
            if enough
            else f"judgecal report {result.experiment} --open",
        ),
        facts=[
            Fact(needed, f"questions show a difference of {size(result.difference)}."),
            Fact(size(result.smallest_detectable), f"is what the {result.n_questions:,} there are show."),
            Fact(size(abs(seen.value or 0.0)), "is the difference seen, whichever way it goes."),
        ],
        sections=[
            Section("questions", "Questions needed", needed_for, [sizes, _assumed(result.assumes)]),
            Section("curve", "What more questions show", shown, [picture]),
        ],
        **from_summary(result),
    )
