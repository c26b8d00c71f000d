"""How judged rows are laid out: the table's own columns, and those that are added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.scale import Label
from judgecal.tables import Kind, Output, Source

ADDED = ("verdict", "reasoning", "error", "passed", "model_id", "cost_usd", "latency_s")
"""The columns that are added, where the table has none of these names."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is added to a row; `error` is `kind: message` where there is no verdict."""

    verdict: Label | None
    reasoning: str = ""
    error: str | None = None
    passed: bool | None = None
    model_id: str | None = None
    cost_usd: float | None = None
    latency_s: float | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """In the order of `ADDED`."""
        return tuple(getattr(self, name) for name in ADDED)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is written.

    Attributes:
        source: the table that was read.
        own: its columns that are written.
        names: the added columns under the names that they have here.
        words: whether verdicts are words.
    """

    source: Source
    own: tuple[str, ...]
    names: Mapping[str, str]
    words: bool

    @classmethod
    def of(cls, source: Source, output: Path, *, words: bool) -> Layout:
        """The layout of a table; a name that it has already gets the next free number behind it."""
        lost = () if output.suffix.lower() == ".parquet" else source.bytes_columns
        taken = set(source.columns)
        names: dict[str, str] = {}
        for name in ADDED:
            number, free = 2, name
            while free in taken:
                free, number = f"{name}_{number}", number + 1
            names[name] = free
            taken.add(free)
        return cls(source, tuple(name for name in source.columns if name not in lost), names, words)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on each column that is not what one expects."""
        lost = [name for name in self.source.columns if name not in self.own]
        renamed = [
            f"the table has a column {name} already: what is added is called {here}"
            for name, here in self.names.items()
            if name != here
        ]
        left_out = [f"left out {', '.join(lost)}: bytes, which only .parquet can hold"] if lost else []
        return (*renamed, *left_out)

    @property
    def output(self) -> Output:
        """What the writers of tables take."""
        kinds: dict[str, Kind] = {"cost_usd": "number", "latency_s": "number", "passed": "flag"}
        kinds["verdict"] = "text" if self.words else "number"
        return Output(self.source, self.own, {self.names[name]: kinds.get(name, "text") for name in ADDED})
