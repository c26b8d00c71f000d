"""Settings by what sets them apart: `top_n=3` instead of a name that repeats the whole configuration in every
row."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from judgecal.rag.evaluation.result import EvaluateResult, SystemSetting

_T = TypeVar("_T", bound=Any)
BASE = "the base"


def labels(result: EvaluateResult) -> dict[str, str]:
    """System -> how pages call it: in a sweep of one factor at a time by that factor, in a grid by all of
    them.

    Systems without factors keep their names, and all do where two would read alike.
    """
    tables = {one.table for one in result.settings if one.settings}
    bases = {one.table: one for one in result.settings if one.system in result.bases}
    found = {}
    for one in result.settings:
        text = _told_apart(one, bases.get(one.table)) if result.design and one.settings else one.system
        found[one.system] = f"{one.table}: {text}" if text != one.system and len(tables) > 1 else text
    names = [one.system for one in result.systems]
    return found if len(set(found.values())) == len(found) else {name: name for name in names}


def _told_apart(one: SystemSetting, base: SystemSetting | None) -> str:
    known = {} if base is None else base.settings
    return (
        ", ".join(f"{factor}={value}" for factor, value in one.settings.items() if known.get(factor) != value)
        or BASE
    )


def with_labels(result: EvaluateResult) -> EvaluateResult:
    """The same result with every system under its label; `bases` keep their names, which a page says once."""
    names = labels(result)
    if all(name == label for name, label in names.items()):
        return result

    def called(name: str | None) -> str | None:
        return None if name is None else names.get(name, name)

    def all_of(rows: Iterable[_T], *fields: str) -> tuple[_T, ...]:
        return tuple(_renamed(one, names, fields) for one in rows)

    best = dataclasses.replace(
        result.best,
        highest=names.get(result.best.highest, result.best.highest),
        best=called(result.best.best),
        runner_up=called(result.best.runner_up),
        not_told_apart=all_of(result.best.not_told_apart, "name"),
    )
    return dataclasses.replace(
        result,
        settings=all_of(result.settings, "system"),
        systems=all_of(result.systems, "system"),
        documents=all_of(result.documents, "system"),
        comparisons=all_of(result.comparisons, "a", "b"),
        document_comparisons={
            document: all_of(pairs, "a", "b") for document, pairs in result.document_comparisons.items()
        },
        not_told_apart_from_best=tuple(names.get(name, name) for name in result.not_told_apart_from_best),
        best=best,
        corrected=all_of(result.corrected, "system"),
        by_complexity=all_of(result.by_complexity, "system"),
        by_tag=all_of(result.by_tag, "system"),
        failures=all_of(result.failures, "system"),
        worst=tuple(dataclasses.replace(one, answers=all_of(one.answers, "system")) for one in result.worst),
    )


def _renamed(one: _T, names: Mapping[str, str], fields: Iterable[str]) -> _T:
    return dataclasses.replace(
        one, **{name: names.get(getattr(one, name), getattr(one, name)) for name in fields}
    )
