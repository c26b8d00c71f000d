"""Every number that `stats` makes of small and awkward samples: the calls that `tests/golden/numbers` holds, made again.

A file has calls: a function, its arguments, what it gives to eleven digits; `shared.json` what they share.
The samples are made up: binary, worded, graded and percentage labels, of 9, 10, 11 and more questions, with repeats,
verdicts missing, items drawn with unequal chances, classes of 1, 2, 3, 9 and 10 items, ties and judges alike. Values
that a formula or a library gives have tests of their own; these hold all numbers at once, so that no boundary,
constant or sign moves unseen. `python -m tests.test_pinned_numbers` writes what the calls give anew.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal.records import Estimate
from judgecal.stats.sample import Ints

FOLDER = Path(__file__).parent / "golden" / "numbers"
FILES = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "shared")


@cache
def named(path: str) -> Any:
    """A function, class or property by its whole name; a property as the function that reads it."""
    module, _, names = path.partition(":")
    found = reduce(getattr, names.split("."), importlib.import_module(module))
    return found.fget if isinstance(found, property) else found


def shared_out(sizes: Sequence[int]) -> Callable[[int], list[int]]:
    """How a draw of n is shared out: in proportion to the sizes."""
    return lambda n: [max(1, round(n * size / sum(sizes))) for size in sizes]


def made(value: Any, shared: Sequence[Any]) -> Any:
    """The argument that a value of the file stands for."""
    if isinstance(value, list):
        return [made(part, shared) for part in value]
    if not isinstance(value, dict):
        return value
    (kind, of), *more = value.items()
    if kind == "shared":
        return made(shared[of], shared)
    if kind == "float":
        return float(of)
    if kind == "array":
        return np.array(of, dtype=dict(more)["dtype"])
    if kind == "pairs":
        return {made(key, shared): made(part, shared) for key, part in of}
    if kind == "sizes":
        return shared_out(of)
    return named(of)(**{name: made(part, shared) for name, part in dict(more)["fields"].items()})


def plain(value: Any) -> Any:
    """JSON of a result, properties included; of a long array its length, its sum and two sums that tell an order."""
    if isinstance(value, Estimate):
        ends = plain([value.value, value.low, value.high, value.level])
        return [
            *ends,
            value.n,
            value.n_expected,
            value.n_groups,
            value.n_unscored,
            value.method or value.reason,
        ]
    if isinstance(value, np.ndarray):
        if value.size <= 12:
            return plain(value.tolist())
        flat = np.nan_to_num(value.ravel().astype(np.float64), nan=-7.0, posinf=1e6, neginf=-1e6)
        return [value.size, *map(plain, (flat.sum(), flat @ np.arange(1.0, flat.size + 1.0), flat @ flat))]
    if dataclasses.is_dataclass(value):
        properties = [name for name, part in vars(type(value)).items() if isinstance(part, property)]
        parts = (getattr(value, name) for name in [*(f.name for f in dataclasses.fields(value)), *properties])
        return [plain(part) for part in parts if not isinstance(part, type(value))]
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.11g}") if math.isfinite(value) else str(value)
    return value.item() if isinstance(value, np.generic) else value


def gives(call: Mapping[str, Any], shared: Sequence[Any]) -> Any:
    """What a call gives now."""
    arguments = [made(part, shared) for part in call["arguments"]]
    return plain(named(call["call"])(*arguments, **{k: made(v, shared) for k, v in call["options"].items()}))


def leaves(value: Any) -> Iterator[Any]:
    """The values in a tree, in order, with the keys and the sizes of its nodes."""
    if isinstance(value, list | dict):
        yield len(value), [*value] if isinstance(value, dict) else None
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    else:
        yield value


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two leaves are the same, numbers to nine digits."""
    if isinstance(ours, float) and isinstance(theirs, float | int):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-10)
    return bool(ours == theirs) and isinstance(ours, bool) == isinstance(theirs, bool)


@cache
def read(name: str) -> Any:
    """What a file holds."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_every_call_gives_what_it_gave(name: str) -> None:
    assert len(read(name)) >= 20
    for number, call in enumerate(read(name)):
        pairs = itertools.zip_longest(leaves(gives(call, read("shared"))), leaves(call["gives"]))
        wrong = [pair for pair in pairs if not alike(*pair)]
        assert not wrong, f"call {number}, {call['call']}: {wrong[:3]} (ours, the file's)"


def write(name: str) -> None:
    """Write a file with what its calls give now; one whose function, argument or field is gone is named and goes."""
    calls = []
    for number, call in enumerate(read(name)):
        try:
            calls.append({**call, "gives": gives(call, read("shared"))})
        except (TypeError, AttributeError, ImportError) as error:
            print(f"{name}: call {number} of {call['call']} goes: {error}", file=sys.stderr)
    lines = ",\n".join(json.dumps(call, ensure_ascii=False) for call in calls)
    (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


# --- calls of more than one step


def losses(*arguments: Any, margins: Sequence[float], **options: Any) -> list[Any]:
    """The losses of some judges, and the questions that each margin needs of each."""
    from judgecal.stats.simultaneous import losses_against_best

    found = losses_against_best(*arguments, **options)
    return [
        found,
        [[found.questions_needed(judge, margin) for judge in found.by_judge] for margin in margins],
    ]


def compared(*arguments: Any, differences: Sequence[float], **options: Any) -> list[Any]:
    """Comparisons, and the questions that find some differences."""
    from judgecal.stats import compare_all

    found = compare_all(*arguments, **options)
    plans = [one.planned for one in found.values() if one.planned is not None]
    return [
        found,
        [[plan.groups_for(size) for size in differences] + [plan.detectable(100)] for plan in plans],
    ]


def crossed(*arguments: Any, **options: Any) -> list[Any] | None:
    """A cross-fit with the verdicts and values that it makes."""
    from judgecal.stats import cross_fit

    fit = cross_fit(*arguments, **options)
    return None if fit is None else [fit.fold, fit.maps, fit.verdicts, fit.by_map]


def gains(parts: Any, before: Any, level: float, seed: int) -> list[Any]:
    """Gains from their parts, and joined to those of their first 15 questions."""
    from judgecal.stats.confirmation import Gains

    every, dev = (
        Gains.of_parts(parts.sum(axis=1), parts),
        Gains.of_parts(before.sum(axis=1), before, [0.01] * len(before)),
    )
    two = Gains.of_parts(every.values[:2], parts[:2], [0.1, 0.02])
    joined = two.joined(dev, [0, 1], [2])
    alone = Gains.of_parts(every.values[:1], parts[:1])
    return [
        every,
        every.losses_shown(level),
        [some.by_luck(seed) for some in (every, alone, two, joined)],
        joined,
    ]


def facts(metric: str) -> list[Any]:
    """What the table of metrics says of one."""
    from judgecal.stats import metric_facts

    found = dataclasses.asdict(metric_facts(metric))
    return [value for name, value in found.items() if name not in ("terms", "meaning")]


def read_of(thing: Any, name: str) -> Any:
    """A property that is kept once it was read."""
    return getattr(thing, name)


def cut_at(cut: Any, label: Any, verdict: Any) -> list[Any]:
    """The classes of a label and a verdict, their distance and the kind of error."""
    classes = [cut.class_of(label, people=True), cut.class_of(verdict)]
    return [*classes, cut.distance(label, verdict), cut.error(label, verdict)]


def traits(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The traits of items, each with the places that have it."""
    from judgecal.experiment.verdicts import traits_of
    from judgecal.records import Item

    items = [
        Item(*row[:4], reference_answers=tuple(row[4]), system=row[5], tags=tuple(row[6])) for row in rows
    ]
    return [[*trait, places.tolist()] for trait, places in traits_of(items).items()]


def shift_to_six(*rates: Any, **seen: Any) -> float | None:
    """The p of a shift to six digits: a search makes it."""
    from judgecal.stats.error_rates import shift_p

    found = shift_p(*rates, **seen)
    return None if found is None else round(found, 6)


def codes(keys: Any, n: int) -> Ints:
    """Codes of questions, numbered ones as an array."""
    from judgecal.stats.sample import codes_of

    return codes_of(
        np.array(keys) if keys and isinstance(keys[0], int) and not isinstance(keys[0], bool) else keys, n
    )


def write_all() -> None:
    """Write all files with what their calls give now."""
    for name in FILES:
        write(name)


if __name__ == "__main__":
    write_all()
