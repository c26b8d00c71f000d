"""The document of `evaluate` and `answer`: what they come to, outcomes, what may be the best, the answers."""

from __future__ import annotations

import dataclasses
import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from judgecal.errors import InputError
from judgecal.experiment import Experiment
from judgecal.experiment.trials import stored_rows
from judgecal.goldset import unchanged_gold
from judgecal.rag.evaluation.document_parts import contexts_section, curves_section, sections_behind
from judgecal.rag.evaluation.judging import answered_items
from judgecal.rag.evaluation.result import EvaluateResult, Failures, MeasuredBy
from judgecal.rag.evaluation.summary import OutcomeKind, SystemSummary, outcome_of
from judgecal.rag.questions import sealed_names
from judgecal.records import Estimate, Headline, Item, Judgement
from judgecal.report import numbers
from judgecal.report.charts import Axis, interval_picture
from judgecal.report.document import (
    Cell,
    Document,
    Grid,
    Picture,
    Rung,
    Section,
    section,
    stored_document,
    table,
)
from judgecal.report.explorer import Explorer, ExplorerRow, Said, row_of, shown
from judgecal.report.wording import fitting, in_a_row, path_from_here, sentence, sentences
from judgecal.workspace import Workspace

_EASIER = "answers that stand wholly in one passage are easier than what users ask"
_MADE_BY_MODEL = f"a model made these questions, and {_EASIER}"
_NAMED = 3  # systems in the headline
_FEWEST = 10  # questions from which on anything is decided, as everywhere in judgecal
_OF_TOTAL = ("correctness", "answered")  # the columns that the total is made of
_TO_LABEL = 60  # answers for people to label, where nobody has labelled any
_DRAWN = 20  # systems beside each other
_BESIDE = 4  # measures in a table


def evaluate_document(result: EvaluateResult) -> Document:
    """What systems, or settings of one, come to on the same questions."""
    asked, n, states = result.questions, len(result.systems), result.states
    bases = {
        setting.system: setting.settings for setting in result.settings if setting.system in result.bases
    }
    held = [
        f"{name} ({', '.join(f'{factor}={level}' for factor, level in settings.items())})"
        for name, settings in bases.items()
    ]
    swept = f", one factor at a time from {in_a_row(held)}" if held else ""
    made = {"llm": ", made by a model", "people": ", made by people", "project": ", made by the project"}
    files = [Path(path).name for path in (states.questions, states.answers, states.measured, states.summary)]
    sealed = numbers.count_of(asked.n_sealed, "question")
    notes = sentences(
        asked.made_by == "llm" and sentence(_MADE_BY_MODEL),
        asked.n_sealed > 0 and f"{sealed} of test count in every number here, and we show none of them.",
        map(sentence, result.notes),
        f"Rows of every state, in the experiment's folder: {', '.join(files)}, each with a CSV file beside "
        "it.",
    )
    return stored_document(
        result,
        f"{result.experiment}: {_noun(result)} compared",
        f"{result.experiment} · {n} {_noun(result, n)}{swept} · {numbers.count_of(asked.n, 'question')} of "
        f"{asked.source}{made.get(asked.made_by or '', '')}, {numbers.count(asked.n_answerable)} with an "
        "answer",
        _headline(result),
        _outcomes(result),
        _systems(result),
        contexts_section(result),
        curves_section(result),
        *sections_behind(result),
        notes=notes,
        short=True,
    )


def evaluate_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """The stored document with the answers themselves, as state 3 and the journal hold them."""
    result, states = experiment.read_summary(EvaluateResult), dict[str, dict[str, Any]]()
    if (path := experiment.folder / Path(result.states.measured).name).is_file():
        import polars  # slow to load

        right_at, by_heart = result.systems[0].outcomes.right_at, dict[str, str]()
        closed = {setting.system for setting in result.settings if setting.contexts == "none"}
        for row in polars.read_parquet(path).iter_rows(named=True):
            outcome = outcome_of(row["answered"], row["answerable"], row["correctness"], right_at)
            row["marks"] = [f"outcome:{outcome}"] * (outcome is not None)
            states.setdefault(f"{row['question_id']}::{row['system']}", row)
            if row["system"] in closed and by_heart.get(row["question_id"]) != "right":
                by_heart[row["question_id"]] = "right" if outcome == "right_answer" else "not right"
        for row in states.values():
            row["heart"] = by_heart.get(row["question_id"], "")
    explorer = _explorer(workspace, experiment, result, states)
    return dataclasses.replace(evaluate_document(result), explorer=explorer)


def _explorer(
    workspace: Workspace,
    experiment: Experiment,
    result: EvaluateResult,
    states: Mapping[str, Mapping[str, Any]],
) -> Explorer | None:
    """Every open answer, the lowest by the first judge first; None where they or their set are gone.

    `states`: answer -> its row of state 3, with the share of each column, `marks`, and as `heart` whether the
    question is answered rightly without a context.
    """
    columns = result.systems[0].measures
    judges = {judge.column: judge.judge for judge in result.judges if judge.column in columns}
    named, sealed = experiment.config.get("gold"), frozenset[str]()
    try:
        items = answered_items(experiment.folder)
    except InputError:
        return None
    if named is not None:
        gold = unchanged_gold(str(named["set"]), str(named["sha256"]), workspace=workspace)
        if gold is None:
            return None
        sealed = sealed_names(gold)
    systems = list(dict.fromkeys(item.system for item in items))
    rows: dict[tuple[str, str], Judgement] = {}
    for row in stored_rows(experiment.journal).latest.values():
        rows.setdefault((row.item_id, row.judge), row)

    def said(item: Item, column: str) -> Said | None:
        row, state = rows.get((item.item_id, judges[column])), states.get(item.item_id, {})
        if row is None:
            return None
        given, share = shown(row.verdict, binary=False), state.get(f"{column}_share")
        verdict, raw = (given, "") if share is None else (numbers.percent(share), given)
        error = f"unscored: {row.error.kind if row.error else 'parse'}" * (row.verdict is None)
        return Said(verdict, raw, error, row.reasoning, row.raw_reply or "")

    def shown_row(item: Item) -> ExplorerRow:
        of_judges, state = [said(item, column) for column in judges], states.get(item.item_id, {})
        marks = [f"system:{item.system}", *state.get("marks", ())]
        marks += ["case:unscored"] * any(judge is not None and bool(judge.error) for judge in of_judges)
        name = item.item_id.replace(f"::{item.system}", f" ({systems.index(item.system) + 1})", 1)
        rank, heart = _rank(item, json.loads(state.get("documents") or "[]")), state.get("heart", "")
        marks += [f"rank:{rank.partition(' ')[0]}"] * bool(rank) + [f"heart:{heart}"] * bool(heart)
        return row_of(item, name=name, said=of_judges, marks=marks, label=rank, note=heart)

    def height(item: Item) -> float:
        row = rows.get((item.item_id, next(iter(judges.values()), "")))
        return float(row.verdict) if row is not None and isinstance(row.verdict, int | float) else -1.0

    there = sorted((item for item in items if item.group not in sealed), key=height)
    return Explorer(
        f"{numbers.count(len(there))} open answers, the lowest first",
        list(map(shown_row, there)),
        list(judges),
        {
            **{f"outcome:{kind}": kind.replace("_", " ") for kind in get_args(OutcomeKind)},
            "heart:right": "right by heart",
            "rank:not": "reference document not handed over",
            "case:unscored": "unscored",
        },
        heads={
            **{"id": "item", "question": "question", "answer": "answer", "label": "reference document"},
            **({"note": "closed book"} if any(state.get("heart") for state in states.values()) else {}),
            "system": "system",
        },
        n_sealed=len(items) - len(there),
    )


def _rank(item: Item, references: Sequence[str]) -> str:
    """The best place of a reference document among the contexts; empty where there is neither."""
    ids = [context.document_id for context in item.contexts]
    ranks = [ids.index(name) + 1 for name in references if name in ids]
    if not ids or not references:
        return ""
    return f"{min(ranks)} of {len(ids)}" if ranks else f"not among {len(ids)}"


def _noun(result: EvaluateResult, n: int | None = None) -> str:
    """What is compared: settings of a sweep, else systems; in the plural unless there is one."""
    return f"{'setting' if result.curves else 'system'}{'s' * (n != 1)}"


def _tied(result: EvaluateResult) -> list[SystemSummary]:
    """The systems that cannot be told apart from the best, the highest first."""
    by_name = {system.system: system for system in result.systems}
    return [by_name[name] for name in result.not_told_apart_from_best if name in by_name]


def _ranked(result: EvaluateResult) -> list[SystemSummary]:
    """The systems by `total`, those that may be the best first."""
    tied = _tied(result)
    rest = [system for system in result.systems if system not in tied]
    return [*tied, *sorted(rest, key=lambda system: -(system.total.value or 0.0))]


def _highest(result: EvaluateResult) -> SystemSummary:
    return next(system for system in result.systems if system.system == result.best.highest)


def _cheapest(result: EvaluateResult) -> SystemSummary | None:
    """Of those that may be the best; None where a price is not known, or all cost the same."""
    systems = _tied(result)
    prices = [system.usd_per_1k for system in systems]
    if None in prices or len(set(prices)) < 2:
        return None
    return min(systems, key=lambda system: system.usd_per_1k or 0.0)


# --- the headline

_CHIPS = {"use": "use", "tied": "cannot tell", "measured": "cannot tell", "none": "none"}


def _headline(result: EvaluateResult) -> Headline:
    """The one voice of `evaluate`: which cannot be told apart from the best, and what is not known."""
    kind, first, *reached = _decided(result)
    # those that nobody held against people; that of correctness first, as the rest hangs on it
    unlocked = sorted(
        (judge for judge in result.judges if judge.lock is None),
        key=lambda judge: judge.column != "correctness",
    )
    following = f"judgecal report {result.experiment} --open"
    if kind in ("unread", "none"):
        following = result.again or following
    elif unlocked:
        following = _calibrate(result, unlocked[0])
    blind = [setting.system for setting in result.settings if not setting.shows_contexts]
    unknown = sentences(  # what weighs most comes first
        bool(unlocked)
        and f"Whether people agree with the judges that have no lock: {in_a_row([*map(_named, unlocked)])}.",
        result.questions.made_by == "llm"
        and f"How much harder the questions of users are. {sentence(_MADE_BY_MODEL)}",
        kind == "tied"
        and "Which of those that cannot be told apart is the best: that no difference is shown is "
        "no proof of none.",
        any(system.usd_per_1k is None for system in result.systems)
        and f"What some {_noun(result)} cost: not every answer has a price.",
        bool(blind) and f"Whether the answers of {in_a_row(blind)} rest on documents: no contexts are shown.",
        bool(result.curves) and "How factors act together: each was varied alone.",
    )
    because, more = fitting(*reached, *_because(result, kind))
    return Headline(kind, first, because, unknown, following, _CHIPS.get(kind, ""), more)


def _named(judge: MeasuredBy) -> str:
    """A judge with what it measures, where its name does not say that."""
    return judge.judge if judge.column == judge.judge else f"{judge.judge} of {judge.column}"


def _unmeasured(result: EvaluateResult) -> bool:
    """No answer has a score: nobody answered, or no judge could read an answer."""
    unread = result.failed_verdicts and not any(system.answer_correctness.n for system in result.systems)
    return bool(unread) or not any(system.n for system in result.systems)


def _decided(result: EvaluateResult) -> tuple[str, ...]:
    """The kind, what it comes to, and what that rests on."""
    n, best = len(result.systems), result.best
    asked = numbers.count_of(best.n_questions, "question")
    total = f"a total of {numbers.estimate(_highest(result).total, 2)}"
    these = f"the {n} {_noun(result)}"
    if _unmeasured(result):
        kind = "unread" if result.failed_verdicts and not result.failures else "none"
        return kind, f"Nothing could be measured: no answer of any {_noun(result, 1)} has a score."
    if best.n_questions < _FEWEST:
        return "too few", "Too few questions to decide anything.", f"{asked}, and {_FEWEST} are the least."
    if n == 1:
        first = f"{best.highest} reaches {total} on {asked}."
        return "measured", first, "No other system was held against it."
    if best.best is not None:
        return "use", f"Use {best.best}: it is the best of {these}.", f"It reaches {total}."
    if best.reason is not None:
        return "cannot tell", f"We cannot tell which of {these} is best.", sentence(best.reason)
    names = [*result.not_told_apart_from_best]
    if len(names) == n:
        nobody = "Neither of the two" if n == 2 else f"None of {these}"
        highest = f"The highest is {best.highest}, with {total}."
        return "tied", f"{nobody} can be told apart from the best.", highest
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    first = f"{len(names)} of {n} {_noun(result)} cannot be told apart from the best."
    return "tied", first, f"They are {in_a_row([*names[:_NAMED], *more])}."


def _because(result: EvaluateResult, kind: str) -> tuple[str, ...]:
    def brief(message: str | None, width: int = 160) -> str:
        """What a failure said, shortened; nothing of a test question's."""
        text = message or "its message is of a test question"
        return textwrap.shorten(text, width, placeholder=" ...").rstrip(".")

    def mute(failed: Failures, answers: str) -> str:
        why = f"by {failed.kind}: {brief(failed.message)}"
        return f"The judge of {failed.name} gave no verdict on {answers}, {why}."

    best, reasons = result.best, list[str]()
    if kind == "none" and result.failures:
        most = result.failures[0]
        failing = f"{numbers.count(most.n)} answers of {most.name} failed by {most.kind}"
        reasons.append(f"{failing}: {brief(most.message)}.")
    elif kind == "unread" and result.failed_verdicts:
        worst = max(result.failed_verdicts, key=lambda failed: (failed.name in _OF_TOTAL, failed.n))
        reasons.append(mute(worst, numbers.count_of(worst.n, "answer")))
    else:
        first_of = {failed.name: failed for failed in reversed(result.failed_verdicts)}
        reasons += [
            mute(failed, "any answer")
            for column, failed in first_of.items()
            if not any(system.measures[column].n for system in result.systems if column in system.measures)
        ]
    if kind == "tied":
        if len(result.not_told_apart_from_best) < len(result.systems):
            total = numbers.estimate(_highest(result).total, 2)
            reasons.append(f"The highest total is {total}, of {best.highest}.")
        if (cheap := _cheapest(result)) is not None:
            price = f"USD {numbers.money(cheap.usd_per_1k)} per 1k"
            reasons.append(f"Of those that may be the best {cheap.system} is the cheapest ({price}).")
    if kind in ("tied", "cannot tell") and best.runner_up is not None:
        pair = f"the highest from the runner-up, {best.runner_up}"
        if best.questions_needed is None:
            reasons.append(f"No number of questions up to a million is known to tell {pair}.")
        else:
            needed, n = numbers.count(best.questions_needed), numbers.count(best.n_questions)
            reasons.append(f"About {needed} questions like these {n} would tell {pair}.")
    of_correctness = [judge for judge in result.judges if judge.column == "correctness"]
    n_expected = sum(system.n_expected for system in result.systems)
    n_unscored = sum(system.n_unscored for system in result.systems)
    verbs = "is unscored and counts" if n_unscored == 1 else "are unscored and count"
    lost = ""
    if kind != "none" and result.failures:
        most, n_lost = result.failures[0], sum(failed.n for failed in result.failures)
        never = f"{numbers.count(n_lost)} of {numbers.count(n_expected)} answers never came"
        lost = f"{never} ({most.name}, {most.kind}: {brief(most.message, 50)})."
    return sentences(
        lost,
        any(judge.lock is None for judge in of_correctness)
        and kind not in ("none", "unread")
        and "Nobody knows whether the judge of correctness agrees with people: it has no lock.",
        reasons,
        [
            f"The judge of correctness agrees with people by {numbers.estimate(judge.agreement, 2)}."
            for judge in of_correctness
            if judge.agreement is not None
        ],
        n_unscored > 0
        and f"{numbers.count(n_unscored)} of {numbers.count(n_expected)} answers {verbs} as 0.",
    )


def _calibrate(result: EvaluateResult, judge: MeasuredBy) -> str:
    """The command that holds a judge against people.

    On the set that was asked, where people may have labelled it, else by having answers of this run labelled.
    """
    asked = result.questions
    if asked.made_by not in (None, "llm"):  # neither a file nor drafts
        return f"judgecal score --judge {shlex.quote(judge.judge)} --gold {shlex.quote(asked.source)}"
    rows = path_from_here(Path(result.states.measured).with_suffix(".csv"))
    return f"judgecal gold sheet {shlex.quote(rows)} --scale binary -n {_TO_LABEL} -o labels.csv"


# --- the sections


def _outcomes(result: EvaluateResult) -> Section:
    def share(system: SystemSummary, kind: OutcomeKind) -> Cell:
        share: Estimate = getattr(system.outcomes, kind).share
        text = numbers.percent(share.value)
        if share.low is not None and share.high is not None:
            text += f" [{numbers.points(share.low, 0)}, {numbers.points(share.high, 0)}]"
        return Cell(text, show=f"outcome:{kind}\nsystem:{system.system}")

    level, right_at = result.systems[0].total.level, result.systems[0].outcomes.right_at
    caption = (
        "What a user meets: a refusal is neither right nor wrong by itself. Shares of the n questions "
        f"whose outcome is known, with {level:.0%} intervals; an answer is right from a correctness of "
        f"{right_at:g} on."
    )
    shares = table(
        _ranked(result),
        {
            "system": lambda system: system.system,
            "right answer": lambda system: share(system, "right_answer"),
            "wrong answer": lambda system: share(system, "wrong_answer"),
            "right refusal": lambda system: share(system, "right_refusal"),
            "wrong refusal": lambda system: share(system, "wrong_refusal"),
            "n": lambda system: f"{system.n_expected - system.outcomes.n_unscored:,}/{system.n_expected:,}",
        },
        chosen=result.best.best,
        short=True,
    )
    return Section("outcomes", "Answerable and answered", caption, [shares])


def _totals(result: EvaluateResult, behind: Grid) -> Picture:
    """The total of each, in colour where it may be the best."""
    drawn, tied = _ranked(result)[:_DRAWN], result.not_told_apart_from_best
    some = len(tied) < len(result.systems)
    rows = [
        Rung(
            system.system,
            system.total,
            numbers.estimate(system.total, 2),
            strong=some and system.system in tied,
        )
        for system in drawn
    ]
    title = "total, 0 to 1; in colour: may be the best" if some else "total, 0 to 1"
    axis = Axis(f"{title} (the first {_DRAWN})" if len(result.systems) > _DRAWN else title)
    return interval_picture(rows, axis, numbers=behind, short=True)


def _systems(result: EvaluateResult) -> Section:
    ranked, best = _ranked(result), result.best
    blind = {setting.system for setting in result.settings if not setting.shows_contexts}
    columns = list(dict.fromkeys(name for system in ranked for name in system.measures))
    several, reached = len(ranked) > 1, any(system.n for system in ranked)
    losses = {candidate.name: candidate.loss_at_most for candidate in best.not_told_apart}

    def measure(name: str, system: SystemSummary) -> str:
        estimate = system.measures.get(name)
        if estimate is None or not estimate.n:  # what rests on contexts is not there where none are shown
            return "no contexts" if system.system in blind else numbers.DASH
        n = "" if estimate.n == estimate.n_expected else f" ({estimate.n:,}/{estimate.n_expected:,})"
        return f"{numbers.estimate(estimate, 2)}{n}"

    overview = table(
        ranked,
        {
            "system": lambda system: system.system,
            "total": lambda system: numbers.estimate(system.total, 2),
            "may lose": (lambda system: numbers.plain(losses.get(system.system), 2)) if several else None,
            "USD/1k": lambda system: numbers.money(system.usd_per_1k),
            "p50": lambda system: numbers.seconds(system.latency_s.p50),
            "answered": lambda system: numbers.estimate(system.answered, 2),
            "answer_correctness": lambda system: numbers.estimate(system.answer_correctness, 2),
            "total of the scored": lambda system: numbers.plain(system.total_complete_case.value, 3),
            "n": lambda system: f"{system.n:,}/{system.n_expected:,}",
            "unscored": lambda system: numbers.count(system.n_unscored),
        },
        chosen=best.best,
        short=True,
    )
    times = table(
        ranked,
        {
            "system": lambda system: system.system,
            "mean": lambda system: numbers.seconds(system.latency_s.mean),
            "p50": lambda system: numbers.seconds(system.latency_s.p50),
            "p95": lambda system: numbers.seconds(system.latency_s.p95),
            "complex": lambda system: numbers.seconds(system.latency_s.complex),
            "first token p50": lambda system: numbers.seconds(system.ttft_s.p50),
            "first token p95": lambda system: numbers.seconds(system.ttft_s.p95),
            "queries/min": lambda system: numbers.plain(system.queries_per_minute, 1),
            "n": lambda system: numbers.count(system.latency_s.n),
        },
        title="Latency",
    )
    judged = []
    for at in range(0, len(columns), _BESIDE):  # a few columns of the suite beside each other
        some = columns[at : at + _BESIDE]
        rows = [[system.system, *(measure(name, system) for name in some)] for system in ranked]
        title = "" if at else "Judged, 0 to 1, over the questions that have a verdict"
        judged.append(Grid(["system", *some], rows, title=title))
    caption = (
        f"The {_noun(result)} by total, which counts a question without a verdict as 0. Intervals by "
        f"question, {ranked[0].total.level:.0%}."
    )
    return section(
        "systems",
        f"The {_noun(result)}",
        caption,
        _totals(result, overview) if several and reached else overview,
        best.reason is not None and f"No bounds: {best.reason}.",
        times,
        judged,
    )
