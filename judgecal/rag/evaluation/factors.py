"""Factors of a sweep: a list in a system's table where the field itself takes no list, named by its dotted
path."""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from judgecal.errors import unknown_name
from judgecal.rag.evaluation.comparisons import Design
from judgecal.rag.evaluation.system import Setting

_MOST = 1000
"""Systems of one table."""
_LISTS = (list, tuple, set, frozenset, Sequence)


@dataclass(frozen=True, slots=True)
class Variant:
    """A system's table with one value for each factor.

    Attributes:
        settings: the factors with their values, in the order of the table.
        table: what is left for the system's own configuration.
        is_base: whether the other systems differ from it in one factor.
    """

    settings: Mapping[str, Setting]
    table: dict[str, Any]
    is_base: bool = False

    def name_of(self, name: str) -> str:
        """`NAME`, or `NAME(chunk.max=512, top_n=2)`; of two tables one after the other both hold."""
        told = ", ".join(f"{factor}={printed(value)}" for factor, value in self.settings.items())
        return f"{name}({told})" if told else name


def printed(value: Setting) -> str:
    """A level as names show it, as TOML has it but for the quotes of a text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def factors_of(table: Mapping[str, Any], model: type[BaseModel]) -> dict[str, list[Any]]:
    """Dotted path -> levels, in the order of the table.

    Args:
        table: of a system, without what no system's own configuration takes.
        model: the system's configuration; what stands at a key that it has not is none.
    """
    return {".".join(path): levels for path, levels in _lists(table, model, ())}


def _lists(
    table: Mapping[str, Any], kind: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    for key, value in table.items():
        inner = _kind_of(kind, key)
        if inner is None or _takes_list(inner):
            continue
        if isinstance(value, list):
            yield (*path, key), value
        elif isinstance(value, Mapping):
            yield from _lists(value, inner, (*path, key))


def _plain(kind: Any) -> tuple[Any, ...]:
    """What a type may be: the parts of a union, without annotations."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _plain(get_args(kind)[0])
    if origin in (Union, types.UnionType):
        return tuple(part for one in get_args(kind) for part in _plain(one))
    return (kind,)


def _kind_of(kind: Any, key: str) -> Any:
    """The type of a key's value in a model or a mapping; None where there is no such key."""
    for one in _plain(kind):
        fields = getattr(one, "model_fields", {})
        if key in fields:
            return fields[key].annotation
        if get_origin(one) in (dict, Mapping):
            return get_args(one)[1]
    return None


def _takes_list(kind: Any) -> bool:
    return any(one is Any or one in _LISTS or get_origin(one) in _LISTS for one in _plain(kind))


def problems_of(
    factors: Mapping[str, Sequence[Any]], base: Mapping[str, Any], *, design: Design | None
) -> Iterator[str]:
    """What is wrong with factors and the levels that are held."""
    for factor, levels in factors.items():
        yield from _level_problems(factor, levels)
    if factors and design is None:
        yield (
            f'{", ".join(factors)}: a list makes a sweep: say design = "one_at_a_time" (the others held at the base) '
            'or design = "grid" (every combination) at the top of the file'
        )
    given = dict(_flat(base))
    if given and design == "grid":
        yield 'base: with design = "grid" no level is held: leave it out, or say design = "one_at_a_time"'
    for name, value in given.items():
        if name not in factors:
            yield f"base: {unknown_name('factor', name, list(factors))}"
        elif not any(_same(value, one) for one in factors[name]):
            yield f"base: {name} is {value!r}, and its levels are {', '.join(map(repr, factors[name]))}"
    if design == "grid" and (n := math.prod(map(len, factors.values()))) > _MOST:
        yield f'{n:,} systems: at most {_MOST:,} are taken: leave out levels, or say design = "one_at_a_time"'


def _level_problems(factor: str, levels: Sequence[Any]) -> Iterator[str]:
    if not levels:
        yield f"{factor}: the list is empty: give its levels, or one value"
    odd = [one for one in levels if not isinstance(one, str | int | float | bool)]
    if odd:
        yield f"{factor}: a level is a text, a number, true or false, found {odd[0]!r:.60}"
        return
    for a, b in itertools.combinations(levels, 2):
        if a == b or printed(a) == printed(b):
            yield f"{factor}: the levels {a!r} and {b!r} cannot be told apart: keep one"


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path -> value; a key may be dotted already."""
    for key, value in table.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, value


def _same(a: Any, b: Any) -> bool:
    """Whether two values are one level: TOML's true is no 1."""
    return type(a) is type(b) and bool(a == b)


def variants(
    table: Mapping[str, Any],
    factors: Mapping[str, Sequence[Setting]],
    base: Mapping[str, Any],
    design: Design | None,
) -> list[Variant]:
    """The systems of a table, each level in the order of the configuration.

    Args:
        factors: without problems, by `problems_of`.
        base: the level of each factor that is held; the first of each that is not named.
    """
    if not factors:
        return [Variant({}, dict(table))]
    held = dict(_flat(base))
    at = [
        next((place for place, one in enumerate(levels) if name in held and _same(held[name], one)), 0)
        for name, levels in factors.items()
    ]
    places = [range(len(levels)) for levels in factors.values()]
    if design == "grid":
        wanted = list(itertools.product(*places))
    else:
        one_changed = ((*at[:n], place, *at[n + 1 :]) for n, own in enumerate(places) for place in own)
        wanted = sorted(set(one_changed))
    found = []
    for chosen in wanted:
        settings = {
            name: levels[place] for (name, levels), place in zip(factors.items(), chosen, strict=True)
        }
        is_base = design == "one_at_a_time" and list(chosen) == at
        found.append(Variant(settings, _filled(table, settings), is_base))
    return found


def _filled(table: Mapping[str, Any], settings: Mapping[str, Setting], path: str = "") -> dict[str, Any]:
    """A table with the value of each factor in the place of its levels."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{path}.{key}" if path else key
        inner = _filled(value, settings, name) if isinstance(value, Mapping) else value
        found[key] = settings.get(name, inner)
    return found
