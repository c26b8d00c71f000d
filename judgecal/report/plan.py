"""The documents of `plan`: how many labels a rate takes, and how many questions tell two judges apart."""

from __future__ import annotations

from collections.abc import Sequence
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
)
from judgecal.report.wording import sentence
from judgecal.selection.questions_plan import QuestionsResult
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace

_WORDS = (
    ("half width", "Half the length of an interval: 71% [67, 75] has a half width of 4 points."),
    (
        "correlation",
        "Of the judge's verdicts with people's labels; by r the verdicts save r squared of the labels.",
    ),
    ("by strata", "Labels are shared out by the verdict, more where the judge errs more often."),
)
_MARK = 100.0
_P = TypeVar("_P")
_SHOWN = 6  # numbers of a curve where it is not drawn
_WIDE, _NARROW = 660, 340  # pixels of a curve


def plan_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The document of either plan, as it was stored.

    Raises:
        InputError: as `Experiment.read_summary`.
    """
    if "lock" in experiment.config:
        return plan_document(experiment.read_summary(PlanResult))
    return questions_document(experiment.read_summary(QuestionsResult))


def plan_document(result: PlanResult) -> Document:
    """How many labels a rate takes."""
    half = f"± {numbers.points(result.half_width, 0 if result.half_width >= 0.01 else 1)} points"
    with_judge, plain = numbers.count(result.labels_with_judge), numbers.count(result.labels_plain)
    stratified, saved = (
        numbers.count(result.labels_stratified),
        1.0 - result.labels_with_judge / result.labels_plain,
    )
    rows = [
        ["alone", plain],
        ["with the judge's verdicts", with_judge],
        ["with them, drawn by strata", stratified],
    ]
    because = [
        f"That is {numbers.percent(saved)} fewer, by the judge's own correlation with people's labels."
    ]
    if result.labels_at_ends is not None:
        few, many = map(numbers.count, result.labels_at_ends)
        because.append(f"At the ends of that correlation's interval: {few} to {many} labels.")
    found = result.correlation
    notes = [sentence(note) for note in result.notes]
    if found is not None and found.value is not None:
        limit = numbers.percent(1.0 - max(0.0, found.value) ** 2)
        notes.insert(
            0, f"Correlation {numbers.estimate(found, 2)}: {limit} of the labels is the least that can do."
        )
    caption = "Serves the budget for labels. It is what to expect from the lock, not a promise."
    blocks = [Table(["labels", "n"], rows, short=True), _assumed(result.assumes)]
    return Document(
        title=f"{result.judge}: how many labels a rate takes",
        about=f"{result.judge} ({result.lock}), as it was on {result.gold.set} ({result.gold.split})",
        headline=Headline(
            "plan",
            f"For {half}, about {with_judge} labels with this judge, {plain} without it.",
            tuple(because),
            ("Whether the judge is as good on the rows to come: the labels themselves will tell.",),
            "judgecal judge --help",
        ),
        facts=[
            Fact(with_judge, f"labels with this judge for {half}."),
            Fact(plain, "labels without it."),
            Fact(stratified, "with it, drawn by strata of its verdict."),
        ],
        sections=[
            Section("labels", "Labels needed", caption, blocks),
            *([curve_section(result.curve, short=True)] if result.curve else []),
            *notes_section(notes, words=_WORDS, short=True),
        ],
        **from_summary(result),
    )


def _assumed(assumes: Sequence[str]) -> Bullets:
    return Bullets([f"Assumed: {one}." for one in assumes], short=True)


def curve_section(curve: Sequence[CurvePoint], *, short: bool = False) -> Section:
    """Half width against labels; a short one stands in the terminal and in Markdown too, with some of its
    numbers."""
    rows = [
        [
            numbers.count(one.n),
            *(numbers.points(value) for value in (one.plain, one.with_judge, one.stratified)),
        ]
        for one in (_some(curve) if short else curve)
    ]
    table = Table(
        ["labels", "alone", "with the judge", "by strata"], rows, title="Half width in points, by labels"
    )
    says = "; ".join(
        f"{one.n} labels: {numbers.points(one.plain)} or {numbers.points(one.with_judge)}" for one in curve
    )
    lines = [
        _Line("alone", "soft", [(one.n, one.plain) for one in curve]),
        _Line("with the judge", "accent", [(one.n, one.with_judge) for one in curve]),
        _Line("by strata", "warm", [(one.n, one.stratified) for one in curve if one.stratified is not None]),
    ]
    titles = ("labels", "half width, points")
    caption = (
        "Serves the budget for labels: by what the lock knows of its judge, on a table without end. It is what to "
        "expect, not a promise."
    )
    return Section(
        "curve", "What more labels give", caption, [_picture(lines, titles, says, table, short=short)]
    )


class _Line:
    """A line of a curve, with its name and its tone."""

    def __init__(self, name: str, tone: str, points: Sequence[tuple[int, float]]) -> None:
        self.name, self.tone, self.points = name, tone, points


def _some(points: Sequence[_P]) -> list[_P]:
    """At most six, the last one among them."""
    step = -(-len(points) // _SHOWN)
    return list(points[::-1][::step][::-1])


def _picture(
    lines: Sequence[_Line],
    titles: tuple[str, str],
    says: str,
    table: Table,
    *,
    short: bool,
    log: bool = False,
    scale: float = _MARK,
) -> Picture:
    """Lines over a number that is to be chosen; the table stands in its place where nothing can be drawn."""

    def drawn(width: int) -> str:
        return _drawn(lines, titles, width, log=log, scale=scale)

    return Picture(lambda: drawn(_WIDE), says, narrow=lambda: drawn(_NARROW), numbers=table, short=short)


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
    needed = _questions(result.questions)
    cells = [
        ["asked for", _size(result, result.difference), needed],
        *([one.what, _size(result, one.difference), _questions(one.questions)] for one in result.rows),
    ]
    table = Table(["difference", f"in {result.metric}", "questions"], cells, short=True)
    caption = "Serves the budget for questions: how many show which of the two agrees better with people."
    return Document(
        title=f"{result.a} and {result.b}: how many questions tell them apart",
        about=f"{result.a} and {result.b} in {result.compared_from}, {numbers.count(result.n_questions)} questions",
        headline=_questions_headline(result, needed),
        facts=[
            Fact(needed, f"questions show a difference of {_size(result, result.difference)}."),
            Fact(
                _size(result, result.smallest_detectable),
                f"is what the {result.n_questions:,} there are show.",
            ),
            Fact(
                _size(result, abs(result.seen.value or 0.0)), "is the difference seen, whichever way it goes."
            ),
        ],
        sections=[
            Section("questions", "Questions needed", caption, [table, _assumed(result.assumes)]),
            _detectable(result),
        ],
        **from_summary(result),
    )


def _questions(n: int | None) -> str:
    return "more than a million" if n is None else numbers.count(n)


def _is_share(result: QuestionsResult) -> bool:
    return metric_facts(result.metric).unit != "scale"


def _size(result: QuestionsResult, difference: float) -> str:
    return f"{numbers.points(difference)} points" if _is_share(result) else numbers.plain(difference, 3)


def _questions_headline(result: QuestionsResult, needed: str) -> Headline:
    seen = result.seen
    because = [
        f"The {result.n_questions:,} questions there are show {_size(result, result.smallest_detectable)}."
    ]
    if seen.value is not None:
        as_seen = next((one.questions for one in result.rows), None)
        takes = "takes more than a million" if as_seen is None else f"takes about {numbers.count(as_seen)}"
        because.append(
            f"The difference seen, {_size(result, abs(seen.value))}, {takes}; it is itself not sure."
        )
    return Headline(
        "plan",
        f"A difference of {_size(result, result.difference)} between {result.a} and {result.b} takes {needed} "
        f"questions{'' if result.questions is None else ' or so'}.",
        tuple(because),
        ("Whether the two differ by so much: no number of questions makes a difference that is not there.",),
        f"judgecal compare {result.compared_from} {result.a} {result.b}"
        if result.questions is not None and result.questions <= result.n_questions
        else f"judgecal report {result.experiment} --open",
    )


def _detectable(result: QuestionsResult) -> Section:
    rows = [[numbers.count(one.n), _size(result, one.difference)] for one in _some(result.curve)]
    table = Table(
        ["questions", "smallest difference"], rows, title="The smallest difference shown, by questions"
    )
    says = "; ".join(f"{one.n} questions: {_size(result, one.difference)}" for one in result.curve)
    share = _is_share(result)
    titles = (
        "questions",
        "smallest difference, points" if share else f"smallest difference in {result.metric}",
    )
    line = _Line("shown in 80%", "accent", [(one.n, one.difference) for one in result.curve])
    picture = _picture([line], titles, says, table, short=True, log=True, scale=_MARK if share else 1.0)
    caption = "Serves the same budget: which difference a number of questions shows, in 80% of such samples."
    return Section("curve", "What more questions show", caption, [picture])
