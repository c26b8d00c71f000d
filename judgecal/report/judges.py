"""The document about judges: the decision, the agreement table, losses, errors, prompts and models,
diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from judgecal.experiment.folder import Experiment
from judgecal.experiment.losses import LossPicture, PromptModelGrid
from judgecal.experiment.result import AgreementResult, Entry, JudgeEntry, RaterEntry
from judgecal.experiment.score import summarised_result
from judgecal.experiment.stored import read_experiment
from judgecal.records import Estimate
from judgecal.report import numbers
from judgecal.report.document import Block, Bullets, Cell, Document, Folded, Lines, Paragraph, Section, Table
from judgecal.report.explorer import Explorer
from judgecal.report.intervals import Axis, IntervalRow, in_points, interval_picture
from judgecal.report.judges_diagnostics import diagnostics
from judgecal.report.judges_first_screen import agreement_plot, first_facts
from judgecal.report.judges_headline import deciding, judges_headline, raters_in_words
from judgecal.report.judges_people import ceiling_notes, people_section
from judgecal.report.judges_shapes import small_multiples
from judgecal.report.unread import unread_section
from judgecal.report.wording import sentence
from judgecal.selection.standing import Standing, standing
from judgecal.stats.breakdown import Part
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace

_ONCE = (
    " The verdicts are calibrated, each by a map that was fitted on other questions; a lock carries the map of train "
    "and dev."
)
_TURNS = 5  # pairs whose order turns that are named


def judges_document(found: Standing) -> Document:
    """The document of `score`, of `agreement`, and of `report` on either."""
    result, n = found.result, len(found.result.judges)
    nothing = found.unread if found.unread is not None and found.unread.all else None
    return Document(
        title=f"{result.experiment}: judges held against people",
        about=f"{result.experiment} · {n} judge{'s' * (n != 1)} on {result.gold.in_words}",
        headline=judges_headline(found),
        facts=first_facts(found) if nothing is None else [],
        picture=agreement_plot(found) if nothing is None else None,
        explorer=explorer_of(found) if nothing is None else None,
        sections=judges_sections(found) if nothing is None else [unread_section(nothing)],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        data=judges_data(found),
    )


def judges_report(workspace: Workspace, experiment: Experiment, margin: float) -> Document:
    """The document of an experiment of `score` or `agreement`, rebuilt from its journal; its numbers too
    where need be.

    Raises:
        InputError: as `read_experiment`.
    """
    stored = read_experiment(workspace, str(experiment.folder))
    result = summarised_result(stored, workspace)
    return judges_document(standing(workspace, stored, margin=margin, result=result))


def explorer_of(found: Standing) -> Explorer:
    """The items on which judges and people part; test items are counted."""
    judges, n_open = [one.judge for one in found.result.judges], found.basis.n_items * found.basis.may_choose
    return Explorer(
        found.parted, judges, n_open, found.result.gold.n_test_items, found.prompts, found.result.gold.set
    )


def judges_data(found: Standing) -> dict[str, Any]:
    """The numbers for programs, without the texts."""
    return {
        "experiment": found.result.experiment,
        "run_line": found.result.run_line,
        "choice": found.pick,
        "margin": found.margin,
        "judges": found.losses.judges if found.losses else (),
        "floor": found.losses.floor if found.losses else (),
        "people": found.losses.people if found.losses else (),
    }


def judges_sections(found: Standing) -> list[Section]:
    """Errors, agreement, people, losses, prompts and models, diagnostics: in this order."""
    losses = None if found.losses is None else _losses(found, found.losses)
    sections = [
        _errors(found),
        _agreement(found),
        people_section(found),
        losses,
        _grid(found),
        diagnostics(found),
    ]
    return [section for section in sections if section is not None]


# --- losses


def _losses(found: Standing, losses: LossPicture) -> Section:
    margin, basis = 100.0 * found.margin, found.basis
    prices = {one.judge: _priced(one.usd_per_1k) for one in found.candidates}
    rows: list[tuple[str, Estimate, str]] = [
        (one.judge, Estimate(one.loss, one.low, one.high, reason=one.reason), prices[one.judge])
        for one in sorted(losses.judges, key=lambda one: (one.loss is None, one.loss or 0.0))
    ]
    drawn = [
        IntervalRow(name, in_points(loss), numbers.estimate(in_points(loss), 1), strong=name == found.chosen)
        for name, loss, _ in rows
    ]
    rows += [(f"{one.judge} (floor)", one.loss, _priced(0.0)) for one in losses.floor]
    rater = _rater(found)
    rows += [
        (f"{one.rater} ({rater}), {numbers.count(one.n_items)} items", one.loss, "") for one in losses.people
    ]
    table = Table(
        ["", f"points lost [{losses.losses.level:.4g}]", "USD per 1,000"],
        [[name, numbers.estimate(in_points(loss), 1), price] for name, loss, price in rows],
        chosen=found.chosen,
    )
    axis = Axis("points lost against the best judge", full=0.0, dashed=margin)
    where = f"the {basis.split} items" if basis.may_choose else "the test items alone"
    caption = (
        "Serves the choice: a judge may be taken where the right end of its line stays left of the dashed margin of "
        f"{margin:g} points of {found.metric}. That end is a bound for all judges at once, on {where} "
        f"({numbers.count(basis.n_items)} items, {numbers.count(basis.n_groups)} questions). A person below 0 "
        "agrees better with the other people than the best judge does with them."
    )
    notes = [Paragraph(f"No interval for {name}: {loss.reason}.") for name, loss, _ in rows if loss.reason]
    notes += [Paragraph(f"{one}.") for one in losses.losses.driven]
    return Section("losses", "What each judge loses", caption, [interval_picture(drawn, axis), table, *notes])


def _priced(usd: float | None) -> str:
    return "price unknown" if usd is None else "free" if usd == 0 else f"{numbers.money(usd)} USD"


# --- the agreement table


def _agreement(found: Standing) -> Section:
    result = found.result
    blocks: list[Block] = [
        _table(found),
        Bullets(list(_first_notes(result)), short=True),
        Bullets(list(_notes(result, found.metric))),
    ]
    caption = (
        "Serves the question how far a judge can be believed: the floor is what it must beat, and the raters are what "
        "people reach with each other, on all items that they share, those without a gold label too. How the judges "
        "do on that same footing stands with every metric below."
    )
    return Section("agreement", "Agreement with people", caption, blocks)


def _table(found: Standing) -> Table:
    """A line a judge, best first, those with the same verdicts on one; then the floor, and each rater among
    the others.

    Every metric of each stands in the diagnostics.
    """
    result, metric = found.result, found.metric
    by_name = {one.judge: one for one in result.judges}
    firsts = sorted((by_name[names[0]] for names in found.alike), key=lambda one: _rank(one, metric))
    named = {names[0]: names for names in found.alike}
    people = [one for one in result.raters if one.enough]
    floor = [one for one in result.floor if one.judge not in by_name]
    rater = _rater(found)
    lines: list[tuple[str, Entry]] = [(_same(named[one.judge]), one) for one in firsts]
    lines += [(f"{one.judge} (floor)", one) for one in floor] + [
        (f"{one.judge} ({rater})", one) for one in people
    ]
    columns = _columns([one for _, one in lines], found)
    chosen = next((_same(names) for names in found.alike if found.chosen in names), None)
    return Table(
        ["judge", *columns],
        [[name, *(cell(one) for cell in columns.values())] for name, one in lines],
        title=_weighing(found, bool(people)),
        short=True,
        chosen=chosen,
        last=len(floor) + len(people),
    )


def _same(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names)} (the same verdicts)"


def _rank(one: Entry, metric: str) -> tuple[bool, float]:
    """Best first, without a value last."""
    value = one.decided_by(metric).value
    return value is None, -(value or 0.0)


def _rater(found: Standing) -> str:
    return "rater" if found.result.gold.labels_by == "project" else "person"


def _weighing(found: Standing, people: bool) -> str:
    """What the numbers of the table are."""
    once = " once calibrated" if any(one.calibrated for one in found.result.judges) else ""
    beside = f"; a {_rater(found)} against each other one" if people else ""
    whom, _ = raters_in_words(found.result.gold.labels_by)
    return f"Agreement with {whom}{once}, in % ({found.metric}{beside})"


def _columns(lines: Sequence[Entry], found: Standing) -> dict[str, Callable[[Entry], str]]:
    """Header -> cell of a line, those that decide first; what says nothing here is left out."""
    metric, level = found.metric, lines[0].agreement[found.metric].level
    columns: dict[str, Callable[[Entry], str]] = {
        f"agreement [{level:.4g}]": lambda one: numbers.estimate(in_points(deciding(one, metric)), 1)
    }
    if any(one.calibrated for one in lines):
        columns["raw"] = lambda one: numbers.points(one.as_wrong[metric].value)
    if any(one.n_unscored for one in lines) or len({one.n_expected for one in lines}) > 1:
        columns["n"] = lambda one: f"{one.n}/{one.n_expected}"
    for header, base in (("false pass", "tnr"), ("false fail", "tpr")):
        name = next((name for name in lines[0].agreement if metric_facts(name).name == base), None)
        if name is not None:
            columns[header] = partial(_missed, rate=name, found=found)
    return columns


def _missed(one: Entry, *, rate: str, found: Standing) -> str:
    """What is missing of a rate, of the same verdicts as the line's agreement."""
    rates = next((shape.rates for shape in found.shapes if shape.judge == one.judge), one.calibrated)
    if isinstance(one, RaterEntry) and deciding(one, found.metric) is one.as_wrong[found.metric]:
        rates = one.agreement
    value = rates[rate].value if rate in rates else None
    return numbers.percent(None if value is None else 1.0 - value)


def _first_notes(result: AgreementResult) -> Iterator[str]:
    """What the reader of the table must know: what is unscored, what was passed over, looks at test
    labels."""
    gold = result.gold
    for one in result.judges:
        if one.n_unscored:
            why = ", ".join(f"{count} {kind}" for kind, count in one.unscored.items())
            yield f"{one.judge}: {one.n_unscored} of {one.n_expected} unscored ({why})."
    yield from map(sentence, result.notes)
    if gold.n_test_items:
        yield f"{numbers.count(gold.n_test_items)} of the items are test items: this look at their labels is logged."
    yield f"Decisions taken on the test labels of {gold.set} so far: {result.test_looks}."


def _notes(result: AgreementResult, metric: str) -> Iterator[str]:
    gold, judges = result.gold, result.judges
    yield f"{metric}: an unscored item counts as {gold.unscored_counts_as}; the other columns: scored items alone."
    reasons = {one.decided_by(metric).reason for one in judges if one.decided_by(metric).low is None}
    yield from (f"No interval for {metric}: {reason}." for reason in sorted(filter(None, reasons)))
    yield from order_notes(judges, metric)
    if gold.n_unlabelled:
        ties = f"; raters tie on {gold.n_tied} of them, which stand where people are held against people" * (
            gold.n_tied > 0
        )
        yield f"{gold.n_unlabelled} items have no gold label and are left out{ties}."
    yield from [sentence(result.floor_reason)] if result.floor_reason else []
    yield from ceiling_notes(result)


def order_notes(judges: Sequence[JudgeEntry], metric: str) -> Iterator[str]:
    """A sentence for each pair of judges whose order hangs on how their unscored items count."""
    turned = [pair for pair in combinations(judges, 2) if _turns(*(_ends(one, metric) for one in pair))]
    for pair in turned[:_TURNS]:
        (a, best_a), (b, best_b) = (_ends(one, metric) for one in pair)
        yield (
            f"The order of {pair[0].judge} and {pair[1].judge} hangs on unscored items: {metric} {numbers.plain(a)} "
            f"against {numbers.plain(b)} with unscored items as wrong, {numbers.plain(best_a)} against "
            f"{numbers.plain(best_b)} as right."
        )
    hidden = len(turned) - _TURNS
    if hidden > 0:
        yield f"So it is with {hidden} more pair{'s' * (hidden > 1)}."


def _ends(judge: JudgeEntry, metric: str) -> tuple[float | None, float | None]:
    """The metric with unscored items counted as wrong, and as right; equal where nothing is unscored."""
    worst = judge.decided_by(metric).value
    return worst, judge.best_case[metric].value if judge.best_case and metric in judge.best_case else worst


def _turns(a: tuple[float | None, float | None], b: tuple[float | None, float | None]) -> bool:
    apart = [x - y for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    return len(apart) == 2 and apart[0] * apart[1] < 0.0


# --- errors


def _errors(found: Standing) -> Section:
    counts = [(shape.judge, shape.at_cut) for shape in found.shapes if shape.at_cut is not None]
    raw = [(shape.judge, shape.raw_at_cut) for shape in found.shapes if shape.raw_at_cut is not None]
    blocks: list[Block] = [*_at_mark(counts, found), *small_multiples(found)]
    if raw:
        told = "As the judges gave them, cut at the pass mark and not at each judge's own cut. These decide nothing."
        blocks.append(Folded("Errors of the raw verdicts", [_at_cut(raw, found.chosen), Paragraph(told)]))
    caption = (
        "Serves the question what a wrong verdict costs you. A false pass lets a bad answer through and nobody looks "
        "again; a false fail costs a second look. Some of both will be errors of the labels."
        f"{_ONCE * any(shape.mapped for shape in found.shapes)}"
    )
    return Section("errors", "Where people and judges part", caption, blocks)


def _at_mark(counts: Sequence[tuple[str, Part]], found: Standing) -> Iterator[Block]:
    if counts:
        yield _at_cut(counts, found.chosen)
    elif found.result.gold.scale != "nominal":  # words have none, whatever the card says
        yield Paragraph(
            "The labels have no pass mark, so no verdict is a false pass: pass_at in the card sets one."
        )


def _at_cut(counts: Sequence[tuple[str, Part]], chosen: str | None) -> Table:
    """Errors at the pass mark; rates are of what people say."""
    header = ["judge", "false passes, of people's fails", "false fails, of people's passes"]
    rows: list[list[str | Cell]] = [
        [judge, _share_of(at.false_passes, at.fails, strong=True), _share_of(at.false_fails, at.passes)]
        for judge, at in counts
    ]
    return Table(header, rows, chosen=chosen)


def _share_of(n: int | None, of: int | None, *, strong: bool = False) -> Cell:
    share = (n or 0) / of if of else None
    return Cell(f"{numbers.count(n)} of {numbers.count(of)} ({numbers.percent(share)})", share, strong)


# --- prompts and models


def _grid(found: Standing) -> Section:
    grid, metric = found.grid, found.metric
    values = {one.judge: one.decided_by(metric).value for one in found.result.judges}
    by_cell = {(cell.prompt, cell.model): values[cell.judge] for cell in grid.cells}
    blocks: list[Block] = []
    if len(grid.cells) > 1 and grid.prompts != [""]:
        rows: list[list[str | Cell]] = [
            [
                prompt,
                *(Cell(numbers.plain(value := by_cell.get((prompt, model))), value) for model in grid.models),
            ]
            for prompt in grid.prompts
        ]
        blocks.append(Table(["prompt", *grid.models], rows, title=f"{metric} by prompt and model"))
    blocks += [
        Folded(f"The prompt of {judge}", [Lines(text.splitlines())]) for judge, text in found.prompts.items()
    ]
    caption = (
        "Serves the choice of prompt and model together: a prompt that fits one model may not fit another, and a "
        f"newer model may do worse. {_interaction(grid)}"
    )
    return Section("pairs", "Prompt and model", caption, blocks)


def _interaction(grid: PromptModelGrid) -> str:
    if grid.tested is not None:
        return f"Interaction test: {grid.tested.why}."
    if grid.prompts == [""]:
        recorded = "These judgements were recorded elsewhere, so their prompts are not known"
        return f"{recorded} and no interaction can be tested."
    return "No interaction test: it takes at least two prompts and two models, every pair of them."
