"""The explorer of answers, those of `answer` and of `evaluate`: contexts, and what each judge said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment import Experiment
from judgecal.experiment.trials import stored_rows
from judgecal.goldset import unchanged_gold
from judgecal.rag.answering.questions import sealed_names
from judgecal.rag.evaluation.judging import answered_items
from judgecal.records import Item, Judgement
from judgecal.report.explorer import Explorer, ExplorerRow, Said, row_of, shown
from judgecal.report.numbers import count, percent
from judgecal.workspace import Workspace

_NONE: Mapping[str, Any] = MappingProxyType({})


def _rank(item: Item, references: Sequence[str]) -> str:
    """The best place of a reference document among the contexts; empty where there is neither."""
    ids = [context.document_id for context in item.contexts]
    ranks = [ids.index(name) + 1 for name in references if name in ids]
    if not ids or not references:
        return ""
    return f"{min(ranks)} of {len(ids)}" if ranks else f"not among {len(ids)}"


def answered_explorer(
    workspace: Workspace,
    experiment: Experiment,
    judges: Mapping[str, str],
    states: Mapping[str, Mapping[str, Any]] = _NONE,
    chips: Mapping[str, str] = _NONE,
) -> Explorer | None:
    """Every open answer, the lowest by the first judge first; None where they or their set are gone.

    Args:
        judges: column -> the judge that fills it.
        states: answer -> its row of state 3, with the share of each column, `marks`, and as `heart` whether
            the question is answered rightly without a context; where there is none, verdicts stand as the
            judge gave them.
        chips: mark -> what its filter is called.
    """
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
        row, state = rows.get((item.item_id, judges[column])), states.get(item.item_id, _NONE)
        if row is None:
            return None
        given, share = shown(row.verdict, binary=False), state.get(f"{column}_share")
        verdict, raw = (given, "") if share is None else (percent(share), given)
        error = f"unscored: {row.error.kind if row.error else 'parse'}" * (row.verdict is None)
        return Said(verdict, raw, error, row.reasoning, row.raw_reply or "")

    def shown_row(item: Item) -> ExplorerRow:
        of_judges = [said(item, column) for column in judges]
        marks = [f"system:{item.system}", *states.get(item.item_id, _NONE).get("marks", ())]
        marks += ["case:unscored"] * any(one is not None and bool(one.error) for one in of_judges)
        name = item.item_id.replace(f"::{item.system}", f" ({systems.index(item.system) + 1})", 1)
        state = states.get(item.item_id, _NONE)
        rank, heart = _rank(item, json.loads(state.get("documents") or "[]")), state.get("heart", "")
        marks += [f"rank:{rank.partition(' ')[0]}"] * bool(rank) + [f"heart:{heart}"] * bool(heart)
        return row_of(item, name=name, said=of_judges, marks=marks, label=rank, note=heart)

    def height(item: Item) -> float:
        row = rows.get((item.item_id, next(iter(judges.values()), "")))
        return float(row.verdict) if row is not None and isinstance(row.verdict, int | float) else -1.0

    there = sorted((item for item in items if item.group not in sealed), key=height)
    return Explorer(
        f"{count(len(there))} open answers, the lowest first",
        list(map(shown_row, there)),
        list(judges),
        {
            **chips,
            "heart:right": "right by heart",
            "rank:not": "reference document not handed over",
            "case:unscored": "unscored",
        },
        heads={
            **{"id": "item", "question": "question", "answer": "answer", "label": "reference document"},
            **({"note": "closed book"} if any("heart" in state for state in states.values()) else {}),
            "system": "system",
        },
        n_sealed=len(items) - len(there),
    )
