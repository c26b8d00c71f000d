"""What every optimiser is: how it makes candidates, with which settings, and how many calls that can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgecal.optimize.training import Candidate, Training

__all__ = ["Bounds", "Optimizer"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an optimiser can take at most, by its own settings.

    Attributes:
        candidates: programs that it hands over to be scored on dev.
        task: calls of the judge's model while it works.
        reflection: calls of the model that writes instructions.
        written: replies of that model which one judge's instructions can hold at most.
        demos: demos of one of its programs.
    """

    candidates: int
    task: int = 0
    reflection: int = 0
    written: int = 0
    demos: int = 0

    @property
    def calls(self) -> int:
        """Calls that it makes itself, of both models."""
        return self.task + self.reflection


@dataclass(frozen=True, slots=True)
class Optimizer:
    """One optimiser.

    Attributes:
        make: makes the candidates, one by one.
        settings: what it will try, for an experiment's configuration.
        bounds: its calls at most.
        reflects: whether it uses a model that writes instructions.
    """

    make: Callable[[Training], Iterator[Candidate]]
    settings: Mapping[str, Any]
    bounds: Callable[[Training], Bounds]
    reflects: bool = False
