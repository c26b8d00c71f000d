"""What a run would cost, before any call."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judgecal.engine import Journal, expected_seconds, worst_cost_usd
from judgecal.experiment.trials import Due, RunOptions
from judgecal.judges import JudgeName, Respondent, calls_a_model
from judgecal.records import Item
from judgecal.wings import wing

_CHARS_PER_TOKEN = 4.0  # a rule of thumb for the preview; the bill comes from the provider's own count


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a run would cost, before any call."""

    calls: int  # to be made
    stored: int  # judgements that the journal has already
    prompt_tokens: int  # an estimate, at four characters a token
    usd_at_most: float | None  # an upper bound; None where some model has no price
    # about how long the calls take where the provider keeps up; None where this journal holds no latency of
    # the models
    seconds: float | None = None
    usd_in_batches: float | None = None  # at the price of batches; None where some model has no batch API
    waiting: int = 0  # requests that wait in a batch and are paid for there; none of `calls`


def together(estimates: Sequence[CostEstimate]) -> CostEstimate:
    """Several estimates as one; what one of them does not know is not known of all."""

    def added(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return CostEstimate(
        sum(estimate.calls for estimate in estimates),
        sum(estimate.stored for estimate in estimates),
        sum(estimate.prompt_tokens for estimate in estimates),
        added([estimate.usd_at_most for estimate in estimates]),
        added([estimate.seconds for estimate in estimates]),
        added([estimate.usd_in_batches for estimate in estimates]),
        sum(estimate.waiting for estimate in estimates),
    )


def plan_calls(
    judges: Sequence[Respondent], items: Iterable[Item], journal: Journal, options: RunOptions
) -> CostEstimate:
    """What `run_trials` would call, without a call; `items` may be read from its start again."""
    return plan_trials([Due(judge, items, journal, options) for judge in judges])


def plan_trials(trials: Sequence[Due]) -> CostEstimate:
    """What `judge_to_journal` would call, without a call; a judge that calls nobody costs nothing."""
    planned: set[int] = set()  # hashes of keys: two names with one fingerprint are one call
    measured = _latencies(trials[0].journal) if trials else {}
    return together([_plan(trial, planned, measured) for trial in trials])


def _plan(due: Due, planned: set[int], measured: dict[str, float]) -> CostEstimate:
    """The calls of one judge that nobody has planned yet; they are added to `planned`."""
    judge = due.judge
    in_batch = None if judge.model is None else wing("batches beside")(judge.model, due.journal)
    wanted = calls = waiting = 0
    tokens, usd, cheap = 0.0, 0.0, 0.0
    batched = None if judge.model is None else judge.model.in_batches()
    for item, key in due:
        wanted += 1
        if hash(key) in planned:
            continue
        planned.add(hash(key))
        if calls_a_model(judge):
            messages = judge.messages(item)
            if in_batch and in_batch(messages, key.repeat, judge.schema):
                waiting += 1
                continue
            calls += 1
            tokens += sum(len(message["content"]) for message in messages) / _CHARS_PER_TOKEN
            usd += worst_cost_usd(judge.model, messages, judge.schema)
            cheap += worst_cost_usd(batched or judge.model, messages, judge.schema)
    stored = due.count_all() - wanted
    if judge.model is None or not calls:
        return CostEstimate(0, stored, 0, 0.0, 0.0, 0.0, waiting)
    seconds = expected_seconds(judge.model, calls, latency_s=measured.get(judge.model.alias))
    known = usd if judge.model.priced else None
    takes = judge.model.takes_batches or judge.model.embedded
    cheap_usd = cheap if known is not None and takes else None
    return CostEstimate(calls, stored, round(tokens), known, seconds, cheap_usd, waiting)


def _latencies(journal: Journal) -> dict[str, float]:
    """Model alias -> mean seconds of the calls that this journal holds; a recorded judge was not called."""
    by_judge: dict[str, list[float]] = {}
    for row in journal.latest.values():
        if row.latency_s is not None:
            by_judge.setdefault(row.judge, []).append(row.latency_s)
    by_model: dict[str, list[float]] = {}
    for judge, latencies in by_judge.items():
        name = JudgeName.read(judge)
        by_model.setdefault(judge if name is None else name.model, []).extend(latencies)
    return {model: statistics.fmean(latencies) for model, latencies in by_model.items()}
