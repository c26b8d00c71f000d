"""What holds in every module that measures or decides: results do not change, and an option that is not given
means the same everywhere."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import pytest

import judgecal.engine as engine
import judgecal.experiment as experiment
import judgecal.production as production
import judgecal.selection as selection
import judgecal.stats as stats

ROOMS = (stats, selection, production, experiment)
COUNTERS = {"Passes", "StoredVerdicts"}
"""What grows as judgements come in."""
NOT_GIVEN: dict[str, Any] = {
    "level": 0.95, "margin": 0.03, "seed": 0, "low": 0.0, "high": 1.0, "n_perm": 10_000, "n_draws": 20_000,
    "calibrate": True, "n_judges": 1, "trust_lock": False, "replace": False, "allow_below_floor": False,
    "allow_unconfirmed": False, "retry_unscored": False, "use_cache": True, "probes": False, "raw": False,
    "n": 0, "n_expected": 0, "n_tied": 0, "n_unscored": 0, "at_mark": False, "by_class": False, "is_rate": False,
    "row": False, "root": False, "plain": True, "fewest": 1, "lowest": -1.0, "epsilon": 0.0, "skewness": 0.0,
    "step": 0.0, "rest": 0.0, "pseudo": 0.0, "tiny": 0.0, "fits": True, "free": False, "people": False,
}  # fmt: skip

THRESHOLDS: dict[str, float] = {
    "CHANGED_LEVEL": 1e-5, "DOUBTFUL_LEVEL": 0.05, "DRIVING": 2.0 / 3.0, "FALSE_DISCOVERIES": 0.05, "FOLDS": 10,
    "FREE_ITEMS": 2_000, "KINDS": 0.5, "LEAST_DIFFERING": 2.0, "LEAST_DRAWN": 10, "LUCK": 0.8, "MARGIN": 0.03,
    "MIN_CLASS": 10, "MIN_GROUPS": 10, "MIN_QUESTIONS": 20, "MIN_SHARED": 30, "MOST_PASSES": 3, "NARROWER": 0.25,
    "NOISE_CALLS": 3, "N_PERM": 10_000, "OUT_OF_REACH": 10_000, "PLANNED_DISCORDANCE": 0.5, "POWER": 0.8,
    "PSEUDO": 0.35, "SIZE": 0.05, "STANDARD_ERRORS": 2.58, "UNSCORED_TOLERANCE": 0.05,
}  # fmt: skip
"""What decisions hang on, as the handbook and the contract name it."""


def defined(*more: Any) -> Iterator[tuple[str, Any]]:
    """The name and the object of every class and function, methods included."""
    for room in (*ROOMS, *more):
        for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            module = importlib.import_module(found.name)
            for thing in vars(module).values():
                if getattr(thing, "__module__", "") == module.__name__ and callable(thing):
                    yield f"{module.__name__}.{thing.__name__}", thing
                    members = vars(thing).items() if isinstance(thing, type) else ()
                    yield from ((f"{thing.__name__}.{name}", one) for name, one in members if callable(one))


def test_a_result_is_a_value_that_nothing_changes() -> None:
    classes = [thing for _, thing in defined() if is_dataclass(thing) and isinstance(thing, type)]
    changing = {
        one.__name__ for one in classes if not inspect.getattr_static(one, "__dataclass_params__").frozen
    }
    assert len(classes) > 100 and changing == COUNTERS


@pytest.mark.parametrize("option", NOT_GIVEN)
def test_an_option_that_is_not_given_means_the_same_everywhere(option: str) -> None:
    means = {
        name: inspect.signature(thing).parameters[option].default
        for name, thing in defined(engine)
        if inspect.isfunction(thing) and option in inspect.signature(thing).parameters
    }
    given = {name: default for name, default in means.items() if isinstance(default, int | float)}
    assert given and given == dict.fromkeys(given, NOT_GIVEN[option])


def test_what_decisions_hang_on_is_as_the_handbook_says() -> None:
    modules = [
        importlib.import_module(module.name)
        for room in ROOMS
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")
    ]
    held = {name: {getattr(m, name) for m in modules if hasattr(m, name)} for name in THRESHOLDS}
    assert held == {name: {value} for name, value in THRESHOLDS.items()}
