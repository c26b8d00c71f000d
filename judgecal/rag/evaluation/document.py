"""The document of `evaluate` and `answer`: what they come to, outcomes, what may be the best, the answers."""

from __future__ import annotations

import dataclasses
import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from judgecal.errors import InputError
from judgecal.experiment.folder import Experiment
from judgecal.experiment.trials import stored_rows
from judgecal.goldset import load_gold
from judgecal.rag.evaluation.result import EvaluateResult, Failures, MeasuredBy
from judgecal.rag.evaluation.run import answered_items
from judgecal.rag.evaluation.summary import OutcomeKind, SystemSummary, outcome_of
from judgecal.rag.questions import sealed_names
from judgecal.records import Estimate, Headline, Item, Judgement
from judgecal.report import wording
from judgecal.report.charts import Axis, interval_picture
from judgecal.report.document import (
    Block,
    Cell,
    Document,
    Grid,
    Paragraph,
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
_TO_LABEL = 60  # answers for people to label, where nobody has labelled any
_MESSAGE = 180  # characters of a message in a table
_KINDS = {"controlled": "controlled", "topk": "retrieved", "own": "its own", "none": "closed book"}


def evaluate_document(result: EvaluateResult) -> Document:
    """Lay out an EvaluateResult, systems on the same questions, as a Document."""
    questions, n, states = result.questions, len(result.systems), result.states
    held = [
        f"{base.system} ({', '.join(f'{factor}={level}' for factor, level in base.settings.items())})"
        for base in result.settings
        if base.system in result.bases
    ]
    swept = f", one factor at a time from {in_a_row(held)}" if held else ""
    made = {"llm": ", made by a model", "people": ", made by people", "project": ", made by the project"}
    files = [Path(path).name for path in (states.questions, states.answers, states.measured, states.summary)]
    sealed = wording.count_of(questions.n_sealed, "question")
    notes = sentences(
        questions.made_by == "llm" and sentence(_MADE_BY_MODEL),
        questions.n_sealed > 0 and f"{sealed} of test count in every number here, and we show none of them.",
        map(sentence, result.notes),
        f"Rows of every state, in the experiment's folder: {', '.join(files)}, each with a CSV file beside "
        "it.",
    )
    return stored_document(
        result,
        f"{result.experiment}: {_noun(result)} compared",
        f"{result.experiment} · {n} {_noun(result, n)}{swept} · {wording.count_of(questions.n, 'question')} "
        f"of {questions.source}{made.get(questions.made_by or '', '')}, "
        f"{wording.count(questions.n_answerable)} with an answer",
        _headline(result),
        _outcomes(result),
        _systems(result),
        _contexts(result),
        _curves(result),
        _comparisons(result),
        _documents(result),
        _failures(result),
        _judges(result),
        notes=notes,
        short=True,
    )


def evaluate_report(workspace: Workspace, experiment: Experiment, _margin: float) -> Document:
    """Rebuild the Document of a Workspace's `evaluate` Experiment; the margin is not used."""
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
        gold = None if named is None else load_gold(str(named["set"]), workspace=workspace)
    except InputError:
        return None
    if gold is not None and named is not None:
        if gold.sha256 != named["sha256"]:
            return None
        sealed = sealed_names(gold)
    systems = list(dict.fromkeys(item.system for item in items))
    rows: dict[tuple[str, str], Judgement] = {}
    for row in stored_rows(experiment.journal).latest.values():
        rows.setdefault((row.item_id, row.judge), row)

    def verdict_of(item: Item, column: str) -> Said | None:
        row, state = rows.get((item.item_id, judges[column])), states.get(item.item_id, {})
        if row is None:
            return None
        given, share = shown(row.verdict, binary=False), state.get(f"{column}_share")
        verdict, raw = (given, "") if share is None else (wording.percent(share), given)
        error = f"unscored: {row.error.kind if row.error else 'parse'}" * (row.verdict is None)
        return Said(verdict, raw, error, row.reasoning, row.raw_reply or "")

    def shown_row(item: Item) -> ExplorerRow:
        of_judges, state = [verdict_of(item, column) for column in judges], states.get(item.item_id, {})
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
        f"{wording.count(len(there))} open answers, the lowest first",
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
    others = [system for system in result.systems if system not in tied]
    return [*tied, *sorted(others, key=lambda system: -(system.total.value or 0.0))]


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
        bool(blind) and f"Whether the answers of {in_a_row(blind)} rest on documents: no contexts are shown.",
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
    questions = wording.count_of(best.n_questions, "question")
    total = f"a total of {wording.estimate(_highest(result).total, 2)}"
    these = f"the {n} {_noun(result)}"
    if _unmeasured(result):
        kind = "unread" if result.failed_verdicts and not result.failures else "none"
        return kind, f"Nothing could be measured: no answer of any {_noun(result, 1)} has a score."
    if best.n_questions < _FEWEST:
        return (
            "too few",
            "Too few questions to decide anything.",
            f"{questions}, and {_FEWEST} are the least.",
        )
    if n == 1:
        first = f"{best.highest} reaches {total} on {questions}."
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


def _because(result: EvaluateResult, kind: str) -> Iterator[str]:
    best = result.best
    failures = result.failed_verdicts if kind == "unread" else result.failures
    n_expected = sum(system.n_expected for system in result.systems)
    if failures:  # of a test question the message is not there
        what = "verdicts" if kind == "unread" else "answers"
        n_lost, first = wording.count(sum(failed.n for failed in failures)), failures[0]
        message = textwrap.shorten(first.message or "of a test question", 80, placeholder=" ...")
        never = f"{n_lost} of {wording.count(n_expected)} {what} never came"
        yield f"{never} ({first.name}, {first.kind}: {message})."
    judges = [judge for judge in result.judges if judge.column == "correctness"]
    if any(judge.lock is None for judge in judges) and kind not in ("none", "unread"):
        yield "Nobody knows whether the judge of correctness agrees with people: it has no lock."
    if kind == "tied":
        if len(result.not_told_apart_from_best) < len(result.systems):
            total = wording.estimate(_highest(result).total, 2)
            yield f"The highest total is {total}, of {best.highest}."
        if (cheap := _cheapest(result)) is not None:
            price = f"USD {wording.money(cheap.usd_per_1k)} per 1k"
            yield f"Of those that may be the best {cheap.system} is the cheapest ({price})."
    if kind in ("tied", "cannot tell") and best.questions_needed is not None:
        needed, n = wording.count(best.questions_needed), wording.count(best.n_questions)
        yield f"About {needed} questions like these {n} would tell the highest from {best.runner_up}."
    for judge in judges:
        if judge.agreement is not None:
            agreement = wording.estimate(judge.agreement, 2)
            yield f"The judge of correctness agrees with people by {agreement}."
    if n_unscored := sum(system.n_unscored for system in result.systems):
        counts = f"{wording.count(n_unscored)} of {wording.count(n_expected)} answers"
        yield f"{counts} {'is' if n_unscored == 1 else 'are'} unscored and count as 0."


def _calibrate(result: EvaluateResult, judge: MeasuredBy) -> str:
    """The command that holds a judge against people.

    On the set that was asked, where people may have labelled it, else by having answers of this run labelled.
    """
    questions = result.questions
    if questions.made_by not in (None, "llm"):  # neither a file nor drafts
        return f"judgecal score --judge {shlex.quote(judge.judge)} --gold {shlex.quote(questions.source)}"
    rows = path_from_here(Path(result.states.measured).with_suffix(".csv"))
    return f"judgecal gold sheet {shlex.quote(rows)} --scale binary -n {_TO_LABEL} -o labels.csv"


# --- the sections


def _outcomes(result: EvaluateResult) -> Section:
    def share(system: SystemSummary, kind: OutcomeKind) -> Cell:
        share: Estimate = getattr(system.outcomes, kind).share
        text = wording.percent(share.value)
        if share.low is not None and share.high is not None:
            text += f" [{wording.points(share.low, 0)}, {wording.points(share.high, 0)}]"
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
    tied = result.not_told_apart_from_best
    some = len(tied) < len(result.systems)
    rows = [
        Rung(
            system.system,
            system.total,
            wording.estimate(system.total, 2),
            strong=some and system.system in tied,
        )
        for system in _ranked(result)
    ]
    title = "total, 0 to 1; in colour: may be the best" if some else "total, 0 to 1"
    return interval_picture(rows, Axis(title), numbers=behind, short=True)


def _systems(result: EvaluateResult) -> Section:
    ranked, best = _ranked(result), result.best
    blind = {setting.system for setting in result.settings if not setting.shows_contexts}
    columns = list(dict.fromkeys(name for system in ranked for name in system.measures))
    several, reached = len(ranked) > 1, any(system.n for system in ranked)
    losses = {candidate.name: candidate.loss_at_most for candidate in best.not_told_apart}

    def measure(name: str, system: SystemSummary) -> str:
        estimate = system.measures.get(name)
        if estimate is None or not estimate.n:  # what rests on contexts is not there where none are shown
            return "no contexts" if system.system in blind else wording.DASH
        n = "" if estimate.n == estimate.n_expected else f" ({estimate.n:,}/{estimate.n_expected:,})"
        return f"{wording.estimate(estimate, 2)}{n}"

    overview = table(
        ranked,
        {
            "system": lambda system: system.system,
            "total": lambda system: wording.estimate(system.total, 2),
            "may lose": (lambda system: wording.plain(losses.get(system.system), 2)) if several else None,
            "USD/1k": lambda system: wording.money(system.usd_per_1k),
            "p50": lambda system: wording.seconds(system.latency_s.p50),
            "answered": lambda system: wording.estimate(system.answered, 2),
            "answer_correctness": lambda system: wording.estimate(system.answer_correctness, 2),
            "total of the scored": lambda system: wording.plain(system.total_complete_case.value, 3),
            "n": lambda system: f"{system.n:,}/{system.n_expected:,}",
            "unscored": lambda system: wording.count(system.n_unscored),
        },
        chosen=best.best,
        short=True,
    )
    times = table(
        ranked,
        {
            "system": lambda system: system.system,
            "mean": lambda system: wording.seconds(system.latency_s.mean),
            "p50": lambda system: wording.seconds(system.latency_s.p50),
            "p95": lambda system: wording.seconds(system.latency_s.p95),
            "complex": lambda system: wording.seconds(system.latency_s.complex),
            "first token p50": lambda system: wording.seconds(system.ttft_s.p50),
            "first token p95": lambda system: wording.seconds(system.ttft_s.p95),
            "queries/min": lambda system: wording.plain(system.queries_per_minute, 1),
            "n": lambda system: wording.count(system.latency_s.n),
        },
        title="Latency",
    )
    judged = Grid(
        ["system", *columns],
        [[system.system, *(measure(name, system) for name in columns)] for system in ranked],
        title="Judged, 0 to 1, over the questions that have a verdict",
    )
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


def _turned(estimate: Estimate) -> Estimate:
    """A difference the other way round."""
    ends = (estimate.value, estimate.high, estimate.low)
    value, low, high = (None if end is None else -end for end in ends)
    return dataclasses.replace(estimate, value=value, low=low, high=high)


def _contexts(result: EvaluateResult) -> Section | None:
    """One answerer with several kinds of contexts: what retrieval costs; None where none has several."""
    kinds: dict[str, dict[str, str]] = {}
    for setting in result.settings:
        if setting.contexts:
            kinds.setdefault(setting.table, {})[setting.contexts] = setting.system
    kinds = {name: systems for name, systems in kinds.items() if len(systems) > 1}
    if not kinds:
        return None
    totals = {system.system: wording.estimate(system.total, 2) for system in result.systems}
    pairs = {(pair.a, pair.b): pair.difference for pair in result.comparisons}

    def costs(systems: dict[str, str]) -> str:
        """The controlled total less the retrieved one, paired by question."""
        a, b = systems.get("controlled", ""), systems.get("topk", "")
        difference = pairs.get((a, b)) or (_turned(pairs[b, a]) if (b, a) in pairs else None)
        return wording.DASH if difference is None else wording.difference(difference, 2)

    there = [kind for kind in _KINDS if any(kind in systems for systems in kinds.values())]
    rows = [
        [name, *(totals.get(systems.get(kind, ""), wording.DASH) for kind in there), costs(systems)]
        for name, systems in kinds.items()
    ]
    caption = (
        "Fix the retriever or the answerer? Total with the right document in hand (controlled), with the "
        "documents that BM25 ranks first (retrieved), and with none (closed book: what it knows by heart). "
        "Retrieval costs the controlled total less the retrieved one, paired by question; what is missing to "
        "1 with the right document in hand is lost by the answerer."
    )
    header = ["answerer", *(_KINDS[kind] for kind in there), "retrieval costs"]
    return Section("contexts", "Where the points go", caption, [Grid(header, rows, short=True)])


def _curves(result: EvaluateResult) -> Section | None:
    """What each factor of a sweep does; None without a sweep."""
    if not result.curves:
        return None
    several = len({curve.table for curve in result.curves}) > 1
    rows: list[list[str]] = []
    pictures = []
    for curve in result.curves:
        best = curve.best_of
        tied = [candidate.name for candidate in best.not_told_apart]
        verdict = f"{in_a_row(tied)} may be the best"
        if best.best is not None:
            verdict = f"{best.best} is shown to be the best"
        elif len(tied) == len(curve.levels):
            verdict = "any may be the best"
        title = f"{f'{curve.table}, ' if several else ''}{curve.factor}: {verdict}"
        rows.append([title])
        rungs = []
        for level in curve.levels:
            name, total = str(level.level), wording.estimate(level.value, 2)
            counts = map(wording.count, (level.value.n, level.value.n_unscored))
            rows.append([name, total, "yes" if name in tied else "no", *counts])
            rungs.append(Rung(name, level.value, total, strong=name in tied))
        pictures.append(interval_picture(rungs, Axis("total, 0 to 1"), title=title))
    levels = Grid(["level", "total", "may be the best", "n", "unscored"], rows, short=True)
    caption = (
        "What each factor does to the total, the others at the base. Each line is the interval of one level. "
        "Levels answer the same questions, so lines that overlap may still differ: the table says which "
        f"may be the best, at {result.best.level:.0%} for all factors together."
    )
    return Section("factors", "What each factor does", caption, [*pictures, levels])


def _comparisons(result: EvaluateResult) -> Section | None:
    """Every two systems; those that are told apart first. None where there is but one."""
    if not result.comparisons:
        return None
    best, n_pairs = result.best.best, len(result.comparisons)
    open_pairs = [pair for pair in result.comparisons if not pair.apart]
    text = f"{n_pairs - len(open_pairs):,} of {wording.count_of(n_pairs, 'pair')} differ, after Holm."
    if best is not None and any(best in (pair.a, pair.b) for pair in open_pairs):
        text += (
            f" Whether {best} is the best is one question about the highest alone and needs no "
            "correction for the number of pairs, so single pairs may stay open here."
        )
    pairs = sorted(result.comparisons, key=lambda pair: 1.0 if pair.p_adjusted is None else pair.p_adjusted)
    differences = table(
        pairs,
        {
            "a": lambda pair: pair.a,
            "b": lambda pair: pair.b,
            f"a - b ({100 * pairs[0].difference.level:.4g}% interval)": lambda pair: wording.difference(
                pair.difference, 3
            ),
            "p (Holm)": lambda pair: wording.plain(pair.p_adjusted),
            "higher": lambda pair: {"A": "a", "B": "b"}.get(pair.decision, pair.decision),
            "detectable": lambda pair: wording.plain(pair.smallest_detectable),
            "n": lambda pair: f"{pair.complete_case.n:,}/{pair.difference.n_expected:,}",
        },
        left=2,
    )
    caption = (
        "The difference in total between any two, on the same questions. Detectable: the difference "
        "that these questions would reveal in four runs of five."
    )
    return section("pairs", "Differences, paired by question", caption, text, differences)


def _documents(result: EvaluateResult) -> Section | None:
    """Totals by document, and what is told apart within one; None where no question names its document."""
    if not result.documents:
        return None
    systems = [system.system for system in result.systems]
    totals = {(str(summary.document), summary.system): summary.total for summary in result.documents}
    documents = list(dict.fromkeys(document for document, _ in totals))
    documents.sort(key=lambda document: sum(totals[document, system].value or 0.0 for system in systems))
    rows = [
        [
            f"{document} ({totals[document, systems[0]].n_expected:,})",
            *(wording.estimate(totals[document, system], 2) for system in systems),
        ]
        for document in documents
    ]
    blocks: list[Block] = [Grid(["document (n)", *systems], rows)]
    pairs = result.document_comparisons
    apart = [pair for pair in pairs if pair.apart]
    if apart:
        blocks.append(
            table(
                apart,
                {
                    "document": lambda pair: str(pair.document),
                    "higher": lambda pair: pair.a if pair.decision == "A" else pair.b,
                    "lower": lambda pair: pair.b if pair.decision == "A" else pair.a,
                    "by": lambda pair: wording.plain(abs(pair.difference.value or 0.0)),
                    "p (Holm)": lambda pair: wording.plain(pair.p_adjusted),
                },
                left=3,
                title="Differences within a document",
            )
        )
    elif pairs:
        blocks.append(Paragraph(f"None of {len(pairs):,} pairs differs within a document, after Holm."))
    caption = (
        "Which documents everybody answers badly, and which only one system does. Total, the lowest first; n "
        "is the number of questions. Within a document of ten questions or more systems are compared."
    )
    return Section("documents", "By document", caption, blocks)


def _failures(result: EvaluateResult) -> Section | None:
    """Why there are no answers, and no verdicts on answers; None where nothing failed."""

    def failed(title: str, who: str, what: str, rows: Sequence[Failures]) -> list[Block]:
        hidden = "(of test questions alone: not shown)"
        columns = table(
            rows,
            {
                who: lambda row: row.name,
                "failure": lambda row: row.kind,
                "the first said": lambda row: textwrap.shorten(
                    row.message or hidden, _MESSAGE, placeholder=" ..."
                ),
                what: lambda row: wording.count(row.n),
            },
            left=3,
            title=title,
        )
        return [columns] if rows else []

    blocks = failed("Questions without an answer", "system", "questions", result.failures)
    blocks += failed("Answers without a verdict", "column", "answers", result.failed_verdicts)
    caption = (
        "What came instead of an answer or a verdict, with the first message of its kind. A question "
        "without an answer counts as 0 in the total, and so does a question without a verdict that the "
        "total needs."
    )
    return Section("failures", "What failed", caption, blocks) if blocks else None


def _judges(result: EvaluateResult) -> Section:
    """Who filled each column, and whether anybody held it against people."""
    caption = (
        "Who judged, and whether they were compared with people. We also use a judge without a lock, "
        "but nobody knows whether it agrees with people. A lock's map takes verdicts to the people's scale; "
        "the raw verdicts are in state 3."
    )
    who = table(
        result.judges,
        {
            "column": lambda judge: judge.column,
            "judge": lambda judge: judge.judge,
            "lock": lambda judge: judge.lock or "none",
            "agreement with people": lambda judge: (
                "nobody knows" if judge.lock is None else wording.estimate(judge.agreement, 2)
            ),
        },
        left=3,
    )
    return Section("judges", "Who judged", caption, [who])
