"""What `evaluate` says first: which settings cannot be told apart from the best, and what is not known."""

from __future__ import annotations

import dataclasses
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from judgecal.rag.evaluation.result import EvaluateResult, MeasuredBy
from judgecal.rag.evaluation.summary import SystemSummary
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.document import Fact
from judgecal.report.wording import in_a_row, path_from_here, sentence, sentences

_NAMED = 3
_FEWEST = 10  # questions from which on anything is decided, as everywhere in judgecal
_OF_TOTAL = ("correctness", "answered")  # the columns that the total is made of
_TO_LABEL = 60  # answers for people to label, where nobody has labelled any


def noun(result: EvaluateResult, n: int | None = None) -> str:
    """What is compared: settings of a sweep, else systems; in the plural unless there is one."""
    word = "setting" if result.design else "system"
    return f"{word}{'s' * (n != 1)}"


def candidates(result: EvaluateResult) -> list[SystemSummary]:
    """The systems that cannot be told apart from the best, the highest first."""
    by_name = {one.system: one for one in result.systems}
    return [by_name[name] for name in result.not_told_apart_from_best if name in by_name]


def cheapest(systems: Sequence[SystemSummary]) -> SystemSummary | None:
    """The one whose answers cost least; None where a price is not known, or all cost the same."""
    prices = [one.usd_per_1k for one in systems]
    if None in prices or len(set(prices)) < 2:
        return None
    return min(systems, key=lambda one: one.usd_per_1k or 0.0)


def quickest(systems: Sequence[SystemSummary]) -> SystemSummary | None:
    """The one with the lowest median latency; None where the latency of one is not known."""
    if len(systems) < 2 or any(one.latency_s.p50 is None for one in systems):
        return None
    return min(systems, key=lambda one: one.latency_s.p50 or 0.0)


def unlocked(result: EvaluateResult) -> list[MeasuredBy]:
    """The judges that nobody held against people; that of correctness first, as the rest hangs on it."""
    return sorted(
        (one for one in result.judges if one.lock is None), key=lambda one: one.column != "correctness"
    )


def evaluate_headline(result: EvaluateResult) -> Headline:
    """The one voice of `evaluate`: the command, its page, the index and a notebook print what stands here."""
    kind, first = _decided(result)
    without = unlocked(result)
    following = f"judgecal report {result.experiment} --open"
    if kind in ("unread", "none"):
        following = result.again or following
    elif without:
        following = calibrate(result, without[0])
    return Headline(kind, first, _because(result, kind), _unknown(result, kind), following)


def _called(result: EvaluateResult, system: str) -> str:
    """A system in a sentence: in a grid a label is a list, and a sentence needs the brackets of the name."""
    return result.labels[system] if result.design == "one_at_a_time" else system


def _decided(result: EvaluateResult) -> tuple[str, str]:
    """The kind, and what it comes to; the best is named with all its settings."""
    n, best = len(result.systems), result.best
    first = _called(result, best.highest)
    highest = next(one for one in result.systems if one.system == best.highest)
    total = f"a total of {numbers.estimate(highest.total, 2)}"
    these = f"the {n} {noun(result)}"
    if not any(one.n for one in result.systems):
        kind = "unread" if result.failed_verdicts and not result.failures else "none"
        return kind, f"Nothing could be measured: no answer of any {noun(result, 1)} has a score."
    if best.n_questions < _FEWEST:
        asked = numbers.count_of(best.n_questions, "question")
        return "too few", f"Too few questions to decide anything: {asked}, and {_FEWEST} are the least."
    if n == 1:
        return "measured", f"{first} reaches {total}; no other system was held against it."
    if best.best is not None:
        return "use", f"Use {best.best}: it reaches {total}, and is shown to be the best of {these}."
    if best.reason is not None:
        return "cannot tell", f"Cannot tell which of {these} is best: {best.reason}."
    names = [_called(result, name) for name in result.not_told_apart_from_best]
    if len(names) == n:
        both = "Neither of the two" if n == 2 else f"None of {these}"
        return "tied", f"{both} can be told apart from the best: the highest is {first}, with {total}."
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    named = in_a_row([*names[:_NAMED], *more])
    return "tied", f"{len(names)} of {n} {noun(result)} cannot be told apart from the best: {named}."


def _because(result: EvaluateResult, kind: str) -> tuple[str, ...]:
    def brief(message: str | None) -> str:
        """What a failure said, shortened; nothing of a test question's."""
        text = message or "its message is of a test question"
        return textwrap.shorten(text, 160, placeholder=" ...").rstrip(".")

    best, n_systems, reasons = result.best, len(result.systems), list[str]()
    if kind == "none" and result.failures:
        most = result.failures[0]
        failing = f"{numbers.count(most.n)} answers of {_called(result, most.system)} failed by {most.kind}"
        reasons.append(f"{failing}: {brief(most.message)}.")
    elif kind == "unread" and result.failed_verdicts:
        failed = max(result.failed_verdicts, key=lambda one: (one.column in _OF_TOTAL, one.n))
        on = numbers.count_of(failed.n, "answer")
        mute = f"The judge of {failed.column} gave no verdict on {on}, by {failed.kind}"
        reasons.append(f"{mute}: {brief(failed.message)}.")
    else:
        for column in dict.fromkeys(one.column for one in reversed(result.failed_verdicts)):
            of_column = [one.measures[column] for one in result.systems if column in one.measures]
            failed = next(one for one in result.failed_verdicts if one.column == column)
            if not any(estimate.n for estimate in of_column):
                mute = f"The judge of {column} gave no verdict on any answer, by {failed.kind}"
                reasons.append(f"{mute}: {brief(failed.message)}.")
    if kind == "tied":
        if len(result.not_told_apart_from_best) < n_systems:
            highest = next(one for one in result.systems if one.system == best.highest)
            total = numbers.estimate(highest.total, 2)
            reasons.append(f"The highest total is {total}, of {_called(result, highest.system)}.")
        reasons += _economy(result)
    if kind in ("tied", "cannot tell") and best.runner_up is not None:
        pair = f"the highest from the runner-up, {_called(result, best.runner_up)}"
        if best.questions_needed is None:
            reasons.append(f"No number of questions up to a million is known to tell {pair}.")
        else:
            needed, n = numbers.count(best.questions_needed), numbers.count(best.n_questions)
            reasons.append(f"About {needed} questions like these {n} would tell {pair}.")
    of_correctness = [one for one in result.judges if one.column == "correctness"]
    n, n_unscored = (
        sum(getattr(one, name) for one in result.systems) for name in ("n_expected", "n_unscored")
    )
    verbs = "is unscored and counts" if n_unscored == 1 else "are unscored and count"
    return sentences(
        reasons,
        any(one.lock is None for one in of_correctness)
        and "Nobody knows whether the judge of correctness agrees with people: it has no lock.",
        [
            f"The judge of correctness agrees with people by {numbers.estimate(one.agreement, 2)}."
            for one in of_correctness
            if one.agreement is not None
        ],
        n_unscored > 0 and f"{numbers.count(n_unscored)} of {numbers.count(n)} answers {verbs} as 0.",
    )


def _economy(result: EvaluateResult) -> Iterator[str]:
    """Who of those that may be the best costs and waits least, and how far below the best it may lie."""
    tied = candidates(result)
    cheap, quick = cheapest(tied), quickest(tied)
    merits: dict[str, list[str]] = {}
    if cheap is not None:
        price = numbers.money(cheap.usd_per_1k)
        merits.setdefault(cheap.system, []).append(f"cheapest (USD {price} per 1k)")
    if quick is not None:
        median = numbers.seconds(quick.latency_s.p50)
        merits.setdefault(quick.system, []).append(f"quickest (median {median})")
    at_most = {one.name: one.loss_at_most for one in result.best.not_told_apart}
    parts = []
    for name, whys in merits.items():
        below = at_most.get(name)
        bound = "" if below is None else f", at most {numbers.plain(below, 2)} below the best"
        parts.append(f"{_called(result, name)} is the {' and the '.join(whys)}{bound}")
    if parts:
        yield f"Of those that may be the best {'; '.join(parts)}."


def _unknown(result: EvaluateResult, kind: str) -> tuple[str, ...]:
    """What weighs most comes first."""
    blind = [_called(result, one.system) for one in result.settings if not one.shows_contexts]
    return sentences(
        [
            f"Whether {one.judge}, the judge of {one.column}, agrees with people: nobody knows, as it has no "
            f"lock. Calibrate it: {calibrate(result, one)}"
            for one in unlocked(result)
        ],
        result.questions.made_by == "llm"
        and f"How much harder the questions of users are. {sentence(made_by_model(result))}",
        kind == "tied"
        and "Which of those that cannot be told apart is the best: that no difference is shown is no proof "
        "of none.",
        any(one.usd_per_1k is None for one in result.systems)
        and f"What some {noun(result)} cost: not every answer has a price.",
        bool(blind) and f"Whether the answers of {in_a_row(blind)} rest on documents: no contexts are shown.",
        result.design == "one_at_a_time" and "How factors act together: each was varied alone.",
    )


def made_by_model(result: EvaluateResult) -> str:
    """What questions of a model's own making are worth."""
    text = (
        "a model made these questions, and answers that stand wholly in one passage are easier than what "
        "users ask"
    )
    easy, n = result.questions.n_lexically_easy, result.questions.n_with_document
    if easy is None:
        return text
    return (
        f"{text}; {numbers.count(easy)} of {numbers.count(n)} with a document are lexically easy: BM25 ranks "
        "it first"
    )


def calibrate(result: EvaluateResult, one: MeasuredBy) -> str:
    """The command that holds a judge against people: on the set that was asked, where people may have
    labelled it, else by having answers of this run labelled.
    """
    if result.questions.made_by not in (None, "llm"):  # neither a file nor drafts
        return (
            f"judgecal score --judge {shlex.quote(one.judge)} --gold {shlex.quote(result.questions.source)}"
        )
    table = path_from_here(Path(result.states.measured).with_suffix(".csv"))
    return f"judgecal gold sheet {shlex.quote(table)} --scale binary -n {_TO_LABEL} -o labels.csv"


def evaluate_facts(result: EvaluateResult) -> Iterator[Fact]:
    """The large numbers under the headline; of the best, how far it leads and what it takes."""
    best, n = result.best, len(result.systems)
    if not any(one.n for one in result.systems):
        return
    highest = next(one for one in result.systems if one.system == best.highest)
    yield Fact(numbers.estimate(highest.total, 2), "is the highest total." if n > 1 else "is its total.")
    if n > 1 and best.best is None:
        yield Fact(f"{len(best.not_told_apart)} of {n}", f"{noun(result)} that may be the best.")
    if best.best is None and best.questions_needed is not None:
        asked = numbers.count(best.n_questions)
        yield Fact(
            f"about {numbers.count(best.questions_needed)}",
            f"questions would tell it from the runner-up; {asked} were asked.",
        )
    cheap = cheapest(candidates(result))
    if cheap is not None:
        yield Fact(f"USD {numbers.money(cheap.usd_per_1k)}", "per 1k answers is the least of these.")
    if best.best is None:
        return
    for pair in result.comparisons:
        if best.runner_up is not None and {pair.a, pair.b} == {highest.system, best.runner_up}:
            lead = pair.difference
            if pair.a != highest.system:  # a difference the other way round
                value, high, low = (
                    None if end is None else -end for end in (lead.value, lead.low, lead.high)
                )
                lead = dataclasses.replace(lead, value=value, low=low, high=high)
            yield Fact(numbers.difference(lead, 2), f"over the runner-up, {result.labels[best.runner_up]}.")
    if highest.usd_per_1k is not None:
        yield Fact(f"USD {numbers.money(highest.usd_per_1k)}", "per 1k answers.")
    if highest.latency_s.p50 is not None:
        yield Fact(numbers.seconds(highest.latency_s.p50), "is its median latency.")
