"""Systems beside each other: paired comparisons, the questions on which they differ most, one question across all."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.answering.outcomes import (
    BEST,
    MEAN,
    Outcome,
    by_system,
    in_points,
    mean_percentage,
    percentage_rows,
)
from judgecal.records import Estimate
from judgecal.stats.compare import Comparison, compare_all

__all__ = ["comparisons", "decomposed", "most_different", "one_question"]

_Rows = Mapping[str, Sequence[float | None]]


def comparisons(outcomes: Sequence[Outcome], *, level: float = 0.95, seed: int = 0) -> list[dict[str, Any]]:
    """Every two systems, paired on the same questions, an unscored answer counted as 0; p values after Holm decide.

    Differences are a - b in percentage points.
    """
    systems = {name: percentage_rows(found) for name, found in by_system(outcomes).items()}
    if len(systems) < 2:
        return []
    found = _compared(systems, level=level, seed=seed)
    return [{"a": a, "b": b, **_entry(one)} for (a, b), one in found.items()]


def _compared(rows: Mapping[str, _Rows], *, level: float, seed: int) -> dict[tuple[str, str], Comparison]:
    """Compare mean percentages: each is the mean agreement with a label of 100, the farthest from which is 0."""
    groups = list(next(iter(rows.values())))
    width = max(len(row) for one in rows.values() for row in one.values())
    return compare_all(
        [BEST] * len(groups),
        {name: [_padded(one[group], width) for group in groups] for name, one in rows.items()},
        scale="percentage",
        metric=MEAN,
        groups=groups,
        level=level,
        seed=seed,
    )


def _padded(row: Sequence[float | None], width: int) -> list[float | None]:
    """A system that answered once stands beside one that answered several times with its one answer."""
    return list(row) * width if len(row) == 1 else list(row)


def _entry(found: Comparison) -> dict[str, Any]:
    detectable = found.smallest_detectable
    return {
        "difference": in_points(found.difference),
        "p_value": found.p_value,
        "p_adjusted": found.p_adjusted,
        "decision": found.decision,
        "why": found.why,
        "smallest_detectable": None if detectable is None else BEST * detectable,
        "complete_case": in_points(found.complete_case.difference),
    }


def decomposed(
    system: str, controlled: _Rows, naive: _Rows, *, level: float = 0.95, seed: int = 0
) -> dict[str, Any] | None:
    """Where a system loses its points: what retrieval costs, and what the answerer itself loses.

    Retrieval: the controlled average minus that of the naive chain, paired by question. The answerer: 100 minus the
    controlled average. Both on the questions that were asked in either run; None where there is none.
    """
    shared = [group for group in controlled if group in naive]
    if not shared:
        return None
    ours = {group: controlled[group] for group in shared}
    theirs = {group: naive[group] for group in shared}
    found = _compared({"controlled": ours, "topk": theirs}, level=level, seed=seed)["controlled", "topk"]
    own = mean_percentage(ours, unscored="wrong", level=level)
    return {
        "system": system,
        "n_questions": len(shared),
        "n_left_out": len(controlled.keys() | naive.keys()) - len(shared),
        "controlled": own,
        "topk": mean_percentage(theirs, unscored="wrong", level=level),
        "retrieval": in_points(found.difference),
        "retrieval_decision": {"A": "costs", "B": "helps"}.get(found.decision, found.decision),
        "p_value": found.p_value,
        "answerer": _from_best(own),
    }


def _from_best(found: Estimate) -> Estimate:
    """100 minus an estimate: the ends change places."""
    if found.value is None:
        return found
    low, high = (None if end is None else BEST - end for end in (found.high, found.low))
    return dataclasses.replace(found, value=BEST - found.value, low=low, high=high)


def most_different(outcomes: Sequence[Outcome], *, shown: int = 10) -> list[dict[str, Any]]:
    """The questions on which the systems lie farthest apart, the widest first; unscored answers are left out."""
    means: dict[str, dict[str, float]] = {}
    wording: dict[str, str] = {}
    for system, found in by_system(outcomes).items():
        for group, row in percentage_rows(found).items():
            rated = [value for value in row if value is not None]
            if rated:
                means.setdefault(group, {})[system] = statistics.fmean(rated)
        wording.update({outcome.question.group: outcome.question.question for outcome in found})
    spread = {group: max(row.values()) - min(row.values()) for group, row in means.items()}
    widest = sorted((group for group in spread if spread[group] > 0), key=lambda group: -spread[group])
    return [
        {"question": group, "text": wording[group], "spread": spread[group], "percentages": means[group]}
        for group in widest[:shown]
    ]


def one_question(outcomes: Sequence[Outcome], group: str) -> dict[str, Any]:
    """One question that was asked, across all systems: where BM25 ranks its reference document, and every answer."""
    found = [outcome for outcome in outcomes if outcome.question.group == group]
    question, served = found[0].question, found[0].served
    handed_over = any(not one.recorded for one in found)
    return {
        "question": group,
        "text": question.question,
        "reference_answer": " | ".join(question.reference_answers) or None,
        "reference_documents": list(question.reference_documents),
        "answerable": question.answerable,
        "rank": served.rank,
        "score": served.score,
        "ties": served.ties,
        "documents": [context.document_id for context in served.contexts] if handed_over else None,
        "answers": [
            {
                "system": one.system,
                "repeat": one.repeat,
                "answer": one.text,
                "percentage": one.percentage,
                "refused": one.refused,
                "reasoning": None if one.rating is None else one.rating.reasoning,
                "unscored": one.unscored,
            }
            for one in found
        ],
    }
