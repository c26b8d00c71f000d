"""The page about judges: its first screen, the agreement table, losses, prompts and models, and all sections.

A further section is a function of `Evidence` here or beside, and a line of `judges_sections`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from judgecal.experiment.agreement import Entry, JudgeEntry, RaterEntry
from judgecal.experiment.folder import Experiment
from judgecal.experiment.score import read_result
from judgecal.experiment.stored import read_experiment
from judgecal.records import Estimate
from judgecal.report.charts import complement, hundred, in_points, ladder_picture, points_text
from judgecal.report.document import (
    Bullets,
    Document,
    Fact,
    Grid,
    Hundred,
    Ladder,
    Picture,
    Rung,
    Section,
    table,
)
from judgecal.report.explorer import Explorer, judged_explorer
from judgecal.report.judges_headline import always, deciding, entry_of, judges_headline, raters_in_words
from judgecal.report.judges_sections import (
    ceiling_notes,
    diagnostics,
    errors_section,
    people_section,
    slice_facts,
    slices_section,
)
from judgecal.report.probe import probes_section
from judgecal.report.wording import (
    DASH,
    columns_in_words,
    count,
    estimate,
    failures_in_words,
    gold_in_words,
    interval,
    money,
    percent,
    plain,
    points,
    sentence,
    sentences,
)
from judgecal.selection.decision import Evidence, decide_on_judges
from judgecal.stats.metrics import digits_of, metric_facts
from judgecal.stats.sample import as_scale
from judgecal.workspace import Workspace

_DRAWN = 7  # judges on the first screen; the table has all


def judges_document(evidence: Evidence) -> Document:
    """Lay out Evidence on judges as a Document: that of `score`, of `agreement`, and of their reports."""
    result, n = evidence.result, len(evidence.result.judges)
    about = f"{result.experiment} · {n} judge{'s' * (n != 1)} on {gold_in_words(result.gold)}"
    if result.table is not None:
        understood = columns_in_words(result.table.columns, result.table.left_out)
        about = " ".join((f"{about}.", *understood, *map(sentence, result.table.notes)))
    head = Document(
        title=f"{result.experiment}: judges compared with people",
        about=about,
        headline=judges_headline(evidence),
        sections=[],
        run_lines=(f"experiment: {result.experiment}", f"run: {result.run_line}"),
        data={
            "experiment": result.experiment,
            "run_line": result.run_line,
            "result": result.as_json(),
            "choice": evidence.pick,
            "margin": evidence.margin,
            "judges": [
                {"judge": name, "value": loss.value, "loss": loss.loss}
                | {"low": evidence.lows[name], "high": loss.upper, "reason": loss.reason}
                for name, loss in (evidence.losses.by_judge if evidence.losses else {}).items()
            ],
            "floor": evidence.floor,
        },
    )
    if evidence.unread is not None and evidence.unread.all:
        return head
    return replace(
        head,
        facts=[*first_facts(evidence)],
        picture=agreement_plot(evidence),
        hundred=hundred_answers(evidence),
        explorer=partial(_explorer, evidence),
        sections=judges_sections(evidence),
    )


def _explorer(evidence: Evidence) -> Explorer:
    return judged_explorer(
        evidence.table,
        [judge.column for judge in evidence.measured],
        evidence.open_items,
        _subject(evidence).judge,
        traits=evidence.slices.marks if evidence.slices else {},
        n_sealed=evidence.result.gold.n_test_items,
        prompts=evidence.prompts,
    )


def judges_sections(evidence: Evidence) -> list[Section]:
    """Return a list of Sections below the first screen, made from Evidence on judges."""
    sections = (
        errors_section(evidence),
        _agreement(evidence),
        slices_section(evidence.slices, as_scale(evidence.result.gold.scale)),
        probes_section(
            next((m.probes for m in evidence.measured if m.judge == _subject(evidence).judge), None)
        ),
        people_section(evidence),
        diagnostics(evidence),
    )
    return [part for part in sections if part is not None]


def judges_report(workspace: Workspace, experiment: Experiment, margin: float) -> Document:
    """Rebuild a Document from a Workspace, an Experiment (of `score` or `agreement`) and a margin."""
    stored = read_experiment(workspace, str(experiment.folder))
    result = read_result(stored, workspace)
    return judges_document(decide_on_judges(workspace, stored, margin=margin, result=result))


# --- the first screen


def _subject(evidence: Evidence) -> JudgeEntry:
    """The judge to use; where there is none, the best one."""
    best = evidence.pick.best if evidence.pick else evidence.result.judges[0].judge
    return entry_of(evidence, evidence.chosen or best)


def first_facts(evidence: Evidence) -> Iterator[Fact]:
    """Yield at most four Facts from Evidence on a judge: errors, worst slice, cost, unscored.

    The errors stand at the pass mark in a hundred; without one how far and how often verdicts lie off; of
    words, beyond chance.
    """
    judge = _subject(evidence)
    shape = next(shape for shape in evidence.shapes if shape.judge == judge.judge)
    rates = {metric_facts(name).name: rate for name, rate in shape.rates.items()}

    def in_a_hundred(share: Estimate, what: str) -> Fact:
        if share.value is None:
            return Fact("unknown", f"{what}: {share.reason}")
        return Fact(f"{points(share.value, 0)} of 100", what + interval(in_points(share), 0))

    if "tnr" in rates and "tpr" in rates:
        yield in_a_hundred(complement(rates["tnr"]), "bad answers it lets through")
        yield in_a_hundred(complement(rates["tpr"]), "good answers it rejects")
    elif "mae" in rates:
        mae, digits, once = rates["mae"], digits_of("mae", shape.unit), " once calibrated" * shape.mapped
        off = f"mean distance from people's labels{once}{interval(mae, digits)}"
        yield Fact(plain(mae.value, digits), off)
        if "within_10" in rates:
            yield in_a_hundred(rates["within_10"], f"verdicts lie within 10% of the scale{once}")
    elif "kappa" in rates:
        yield Fact(plain(rates["kappa"].value, 2), f"kappa{interval(rates['kappa'], 2)}: beyond chance")
    if judge.consistent and judge.consistent.n:
        yield in_a_hundred(judge.consistent, "pairs get one verdict in both orders")
    yield from slice_facts(evidence.slices, as_scale(evidence.result.gold.scale))
    usd, lost = judge.usd_per_1k, f"{count(judge.n_unscored)} of {count(judge.n_expected)} unscored"
    price = "price unknown" if usd is None else f"${money(usd)}" if usd else "free"
    yield Fact(price, f"per 1,000 {evidence.result.gold.noun}; {lost}" if usd else lost)


def hundred_answers(evidence: Evidence) -> Hundred | None:
    """Return a judge's Hundred (answers by outcome) from Evidence; None without a pass mark."""
    judge = _subject(evidence).judge
    shape = next(shape for shape in evidence.shapes if shape.judge == judge)
    rates, cells = {metric_facts(name).name: rate for name, rate in shape.rates.items()}, shape.confusion
    if cells is None or cells.classes != ("fail", "pass") or not {"tpr", "tnr"} <= rates.keys():
        return None
    fails, passes = (sum(row[:2]) for row in cells.counts)
    lost = sum(map(sum, cells.counts)) - fails - passes
    if not fails + passes:
        return None
    return hundred(
        judge,
        passes / (fails + passes),
        complement(rates["tpr"]),
        complement(rates["tnr"]),
        note=f"{count(lost)} of {count(fails + passes + lost)} without a verdict." * bool(lost),
        shown=evidence.basis.may_choose,
    )


def agreement_ladder(evidence: Evidence) -> Ladder | None:
    """Return a Ladder of judges, best first, from Evidence; None where no judge has a value.

    Judges are held against the people's label, as the headline is. People are held against each other;
    so is each judge, against the same single people, by its value `beside`.
    """
    result, metric, subject = evidence.result, evidence.metric, _subject(evidence).judge

    def has_value(entry: Entry) -> bool:
        return entry.decided_by(metric).value is not None

    judges = [judge for judge in _best_first(evidence) if has_value(judge)]
    if not judges:
        return None
    raters = [rater for rater in result.raters if rater.enough and has_value(rater)]
    rungs, free = [], None
    for judge in judges[:_DRAWN]:
        value = in_points(judge.decided_by(metric))
        lines = [line for rater in raters for line in rater.judges if line.judge == judge.judge]
        single = [end for line in lines if (end := line.decided_by(metric).value) is not None]
        beside = 100.0 * sum(single) / len(single) if single else None
        strong = judge.judge == subject
        rungs.append(Rung(judge.judge, value, estimate(value, 1), strong=strong, beside=beside))
    floor, pick = _floor(evidence), evidence.pick
    strongest = pick.free.judge if pick and pick.free else None
    every: list[Entry] = [entry for entry in (*result.judges, *floor) if entry.judge == strongest]
    if every := [entry for entry in (*every, *floor[:1]) if has_value(entry)]:
        name, value = every[0].judge, in_points(every[0].decided_by(metric))
        if evidence.floor and floor and name == floor[0].judge:
            name = always(evidence.floor[0].judge, result.gold.scale)
        text, n, n_all = points(every[0].decided_by(metric).value), every[0].n_expected, result.gold.n_items
        if n < n_all and every[0].judge in {entry.judge for entry in floor[1:]}:
            text += f" on {count(n)} of {count(n_all)} {result.gold.noun}"
        free = Rung(name, value, text)
    foot = in_points(floor[0].decided_by(metric)).value if floor else None
    what, people = f"agreement{_once(evidence)}, %", _people(result.raters, metric, result.gold.labels_by)
    return Ladder(what, rungs, free, people, foot)


def _people(raters: Sequence[RaterEntry], metric: str, labels_by: str) -> Rung | None:
    """What people reach with each other, in points; None where no two share enough items."""
    each = [in_points(deciding(rater, metric)) for rater in raters if rater.enough]
    reached = [rater.value for rater in each if rater.value is not None]
    if not reached:
        return None
    low, high = min(reached), max(reached)
    span = f"{low:.0f}–{high:.0f}" if round(low) < round(high) else f"{high:.0f}"
    ends = [end for rater in each for end in (rater.low, rater.high) if end is not None]
    value = Estimate(sum(reached) / len(reached), min(ends, default=None), max(ends, default=None))
    return Rung("two raters" if labels_by == "project" else "two people", value, span)


def agreement_plot(evidence: Evidence) -> Picture | None:
    """Return a Picture that draws Evidence on judges as a ladder; None where no judge has a value."""
    ladder, n = agreement_ladder(evidence), len(evidence.result.judges)
    if ladder is None:
        return None
    more = "" if len(ladder.rungs) >= n else f" The best {len(ladder.rungs)} of {n} judges."
    whom, two = raters_in_words(evidence.result.gold.labels_by)
    weighing = {"nominal": "", "binary": ", good and bad answers weighing the same"}
    alike = weighing.get(evidence.result.gold.scale, ", low, middle and high labels weighing the same")
    level = evidence.result.judges[0].decided_by(evidence.metric).level
    single = f" ◇: with each single rater, as {two} are with each other." if ladder.people else ""
    note = f"●: agreement with {whom}{alike}; line: {level:.0%} interval.{single}{more}"
    return ladder_picture(ladder, "How far up the ladder is each judge?", note=note)


def _best_first(evidence: Evidence) -> list[JudgeEntry]:
    """The judges, best first, those without a value last."""

    def rank(judge: JudgeEntry) -> tuple[bool, float]:
        value = judge.decided_by(evidence.metric).value
        return value is None, -(value or 0.0)

    return sorted(evidence.result.judges, key=rank)


def _floor(evidence: Evidence) -> list[Entry]:
    """What a judge must beat, but for what was asked for as a judge."""
    judges = {judge.judge for judge in evidence.result.judges}
    return [constant for constant in evidence.result.floor if constant.judge not in judges]


def _once(evidence: Evidence) -> str:
    return " once calibrated" if any(judge.calibrated for judge in evidence.result.judges) else ""


def _rater(evidence: Evidence) -> str:
    return "rater" if evidence.result.gold.labels_by == "project" else "person"


# --- the agreement table


def _agreement(evidence: Evidence) -> Section:
    result, gold, metric = evidence.result, evidence.result.gold, evidence.metric
    deciding_on = [judge.decided_by(metric) for judge in result.judges]
    reasons = {value.reason for value in deciding_on if value.low is None and value.reason}
    first = sentences(
        [
            f"{judge.judge}: {judge.n_unscored:,} of {judge.n_expected:,} have no verdict: "
            f"{failures_in_words(judge.unscored)}."
            for judge in result.judges
            if judge.n_unscored
        ],
        map(sentence, result.notes),
        bool(gold.n_test_items)
        and f"{count(gold.n_test_items)} are sealed test {gold.noun}; we noted that you looked.",
        result.table is None
        and f"Decisions taken on the test labels of {gold.set} so far: {result.test_looks}.",
    )
    stand = f"; raters tie on {gold.n_tied:,} of them, which count only where people are compared with people"
    further = sentences(
        f"In {metric} an item without a verdict counts as {gold.unscored_counts_as}; the other columns "
        "leave it out.",
        [f"No interval for {metric}: {reason}." for reason in sorted(reasons)],
        (f"{driver}." for driver in (evidence.losses.driven if evidence.losses else ())),
        bool(gold.n_unlabelled)
        and f"{gold.n_unlabelled:,} items have no gold label and are left out{stand * bool(gold.n_tied)}.",
        result.floor_reason and sentence(result.floor_reason),
        ceiling_notes(result),
    )
    caption = (
        "How far can you believe a judge? The floor is what it must beat; the raters show how far "
        "people agree with each other, on all items that they share, also those without a gold label. "
        "The table of every metric below has the judges on that same footing."
    )
    blocks = [_agreement_table(evidence), Bullets(first, short=True), Bullets(further)]
    return Section("agreement", "Agreement with people", caption, blocks)


def _agreement_table(evidence: Evidence) -> Grid:
    """A line a judge, best first; then the floor, and each rater.

    Columns that decide come first, and those that say nothing here are left out; every metric stands in the
    diagnostics.
    """
    result, metric, rater = evidence.result, evidence.metric, _rater(evidence)
    people, floor = [rater for rater in result.raters if rater.enough], _floor(evidence)
    lines: list[tuple[str, Entry]] = [
        *((judge.judge, judge) for judge in _best_first(evidence)),
        *((f"{constant.judge} (floor)", constant) for constant in floor),
        *((f"{person.judge} ({rater})", person) for person in people),
    ]
    entries = [entry for _, entry in lines]
    columns = {metric_facts(name).name: name for name in entries[0].agreement}
    level, mapped = entries[0].agreement[metric].level, any(entry.calibrated for entry in entries)
    uneven = any(entry.n_unscored for entry in entries) or len({entry.n_expected for entry in entries}) > 1
    beside = f"; each {rater} is compared with the others" * bool(people)

    shapes = {shape.judge: shape.rates for shape in evidence.shapes}

    def missed(entry: Entry, base: str) -> str:
        """What is missing of a rate, of the same verdicts as the line's agreement."""
        rates = shapes.get(entry.judge, entry.calibrated)
        if isinstance(entry, RaterEntry) and deciding(entry, metric) is entry.as_wrong[metric]:
            rates = entry.agreement
        rate = rates.get(columns[base])
        return DASH if rate is None or rate.value is None else percent(1.0 - rate.value)

    return table(
        lines,
        {
            "judge": lambda line: line[0],
            f"agreement ({100 * level:.4g}% interval)": lambda line: points_text(deciding(line[1], metric)),
            "raw": (lambda line: points(line[1].as_wrong[metric].value)) if mapped else None,
            "n": (lambda line: f"{line[1].n}/{line[1].n_expected}") if uneven else None,
            "false pass": (lambda line: missed(line[1], "tnr")) if "tnr" in columns else None,
            "false fail": (lambda line: missed(line[1], "tpr")) if "tpr" in columns else None,
        },
        title=f"Agreement with {raters_in_words(result.gold.labels_by)[0]}{_once(evidence)}, in % "
        f"({metric}{beside})",
        short=True,
        chosen=evidence.chosen,
        drawn=True,
    )
