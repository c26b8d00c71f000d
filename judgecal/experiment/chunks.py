"""Judges of single contexts beside labels of whole items: a judge's verdict on an item is the mean of those
on its contexts, of yes or no the share of yes (its precision).

A label of a single context is a label of an item that has this context alone; there the mean is the verdict
itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from judgecal.errors import InputError
from judgecal.judges import Judge
from judgecal.records import ITEM_UNIT, Item, Judgement
from judgecal.scale import Scale


def item_scale(judge: Judge) -> Scale:
    """The scale of a judge's verdicts on whole items."""
    return judge.scale if judge.unit == ITEM_UNIT else mean_scale(judge.scale)


def mean_scale(scale: Scale) -> Scale:
    """The scale of means of verdicts: shares of yes lie in 0..1, and a mean lies between the grades."""
    if scale.kind == "binary":
        return Scale("points", 0.0, 1.0)
    return Scale("points", scale.low, scale.high) if scale.kind in ("ordinal", "points") else scale


def whole_items(rows: Sequence[Judgement]) -> Sequence[Judgement]:
    """Judgements of whole items, in the order of their first rows; those of single contexts become one an
    item and repeat.

    Without a verdict on one of its contexts an item has none. Costs, tokens, attempts and times are summed.
    """
    if all(row.unit == ITEM_UNIT for row in rows):
        return rows
    parts: dict[tuple[object, ...], list[Judgement]] = {}
    for row in rows:
        whole = row.unit == ITEM_UNIT
        parts.setdefault((*row.key[:4], whole), []).append(row)
    return [own[0] if key[-1] else whole_item(own) for key, own in parts.items()]


def whole_item(rows: Sequence[Judgement]) -> Judgement:
    """One judgement of the rows of one item and repeat, a context each; a row of a whole item is itself."""
    if rows[0].unit == ITEM_UNIT:
        return rows[0]
    first, failed = rows[0], next((row for row in rows if row.verdict is None), None)
    verdict, reasoning = None, first.reasoning
    if failed is None:  # the mean of numbers; of words the one that there is
        numbers = [float(row.verdict) for row in rows if isinstance(row.verdict, int | float)]
        verdict = sum(numbers) / len(numbers) if numbers else first.verdict
    if len(rows) > 1:
        reasoning = "\n".join(f"[{n}] {row.reasoning}" for n, row in enumerate(rows) if row.reasoning)

    def total(values: Iterable[float | None]) -> float | None:
        known = list(values)
        return None if None in known else sum(value for value in known if value is not None)

    def whole(values: Iterable[int | None]) -> int | None:
        summed = total(values)
        return None if summed is None else int(summed)

    return dataclasses.replace(
        first,
        unit=ITEM_UNIT,
        verdict=verdict,
        reasoning=reasoning,
        raw_reply=None if failed is None else failed.raw_reply,
        error=None if failed is None else failed.error,
        attempts=sum(row.attempts for row in rows),
        latency_s=total(row.latency_s for row in rows),
        prompt_tokens=whole(row.prompt_tokens for row in rows),
        completion_tokens=whole(row.completion_tokens for row in rows),
        cost_usd=total(row.cost_usd for row in rows),
        cached=any(row.cached for row in rows),
        replied_at=min((row.replied_at for row in rows if row.replied_at is not None), default=None),
    )


def refuse_unfit(judge: Judge, items: Sequence[Item], *, alone: bool = False) -> None:
    """Refuse items whose labels a judge of single contexts cannot be held against.

    Args:
        alone: whether each label must be of one context, as a prompt is trained by it.
    """
    if judge.unit == ITEM_UNIT or (judge.scale.numeric and not alone):
        return
    several = [item.item_id for item in items if len(item.contexts) > 1]
    if several:
        why = (
            "it is trained by labels of single contexts"
            if alone
            else "words have no mean over several contexts"
        )
        raise InputError(
            f"{judge.name} judges single contexts, and {len(several)} of {len(items)} items have several "
            f"({', '.join(several[:3])}): {why}; import them with --chunks, an item a context"
        )
