"""The local judges: a function each, in the module of its kind. A new one is a function, and nothing else.

The first paragraph of its docstring says what its verdict is; keyword-only parameters with a default are
settings (`judges/settings.py`). What modules share is in those with a leading underscore. A fingerprint is
over the text of a judge's module, and of what this one shares.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class LocalRule:
    """A local judge as its module declares it."""

    call: Callable[..., Any]
    scale: str | None  # None for what the function's return type says
    source: str  # where the rule comes from
    needs: str  # of an item, in words; empty for the names of the parameters
    check: Callable[[Mapping[str, str]], Sequence[str]]
    """Refuses settings that it cannot take; else the versions of packages that they need."""


_RULES: dict[str, LocalRule] = {}


def local_judge(
    scale: str | None = None,
    *,
    source: str,
    needs: str = "",
    check: Callable[[Mapping[str, str]], Sequence[str]] = lambda _: (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that declares a local judge from a `source` (text); options as in `LocalRule`."""

    def declare(call: Callable[..., Any]) -> Callable[..., Any]:
        _RULES[call.__name__] = LocalRule(call, scale, source, needs, check)
        return call

    return declare


@cache
def local_rules() -> Mapping[str, LocalRule]:
    """Return name -> LocalRule of every local judge, sorted."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_RULES.items()))
