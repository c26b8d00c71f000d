"""The catalogue of public sets: what each holds, who labelled it, its terms, where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, with_config

from judgecal.artefacts import read_toml, validated
from judgecal.errors import InputError, unknown_name
from judgecal.tables.columns import Columns

CATALOGUE = Path(__file__).with_name("catalogue.toml")
"""The file that comes with judgecal."""
METRIC = "{metric}"
"""Stands in a label's column for what `--label` names."""

_FORBID = ConfigDict(extra="forbid")
Labeller = Literal["people", "model", "construction", "unknown"]
Term = Literal["NC", "ND", "gated", "none stated"]


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class ColumnMap:
    """The options of `gold import` by their names: which column is what."""

    question: str | None = None
    answer: str | None = None
    reference: str | None = None
    reference_separator: str | None = None
    context: tuple[str, ...] = ()
    conversation: str | None = None
    field: Mapping[str, str] = field(default_factory=dict)
    tag: tuple[str, ...] = ()
    item: str | None = None
    group: str | None = None
    system: str | None = None
    label: tuple[str, ...] = ()
    gold_label: str | None = None
    rater: str | None = None

    def columns(self, metric: str) -> Columns:
        """As a table is read by them; `metric` is what the label is of, "" where there is only one."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        contexts, tags, labels, texts = (named.pop(name) for name in ("context", "tag", "label", "field"))
        labels = tuple(name.replace(METRIC, metric) for name in labels)
        return Columns(**named, contexts=contexts, tags=tags, labels=labels, fields=tuple(texts.items()))


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class PublicSet:
    """A set of the catalogue, as `catalogue.toml` explains its keys."""

    about: str  # what it holds
    calibrates: tuple[str, ...]  # the kinds of judges that its labels can be held against
    labels_by: Labeller  # people's alone are gold
    scale: str  # as `gold import --scale` has it
    raters: str  # who, in words
    languages: tuple[str, ...]  # of its texts, as two letters
    licence: str  # in words
    licence_read: bool  # in the set's own repository or card
    home: str  # the page to read before use
    name: str = ""  # its key in the file
    metrics: tuple[
        str, ...
    ] = ()  # what people were asked, if several things: the first unless `--label` says
    n: int | None = None  # how many things have a label; None where nobody says
    n_exact: bool = False  # whether they were counted
    terms: tuple[Term, ...] = ()  # what to know before use
    source: tuple[str, ...] = ()  # where it lies
    sha256: tuple[str, ...] = ()  # of each source, where that is known
    reader: str = ""  # of `exchange/public_sets.py`, where one row is not one item
    file_form: str = ""  # the ending of its form, where the file's name has another
    mapping: Literal["seen", "converted", "described", ""] = ""  # how far the columns are known
    note: str = ""
    columns: ColumnMap = field(default_factory=ColumnMap)
    where: Mapping[str, str] = field(default_factory=dict)  # as the options of `gold import`
    map: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""  # why it cannot be fetched

    @property
    def refusal(self) -> str:
        """Why it is not fetched as gold; "" where it is."""
        if self.labels_by in ("model", "construction"):
            how = "its labels were made, not given by people"
            how = "a model gave its labels" if self.labels_by == "model" else how
            return f"{how} ({self.raters}): a judge calibrated on it would learn that, not what people say"
        return self.why_not

    @property
    def to_accept(self) -> str:
        """What must be accepted before it is fetched; "" where nothing."""
        words = {
            "NC": "it is not for commercial use",
            "ND": "nothing that is made of it may be passed on",
            "gated": "its page asks for terms of its own to be accepted",
            "none stated": "no licence is stated, so nothing is allowed beyond the law",
        }
        terms = [words[term] for term in self.terms]
        return "; ".join(terms if self.licence_read else [*terms, "its licence was not verified"])

    def metric(self, wanted: str | None) -> str:
        """What people were asked: what is wanted, else the first; "" where the set has one alone."""
        if wanted is not None and not self.metrics:
            alone = f"the public set {self.name} has one label alone"
            raise InputError(f"--label {wanted}: {alone}: leave it out")
        if wanted is not None and wanted not in self.metrics:
            raise unknown_name(f"label of the public set {self.name}", wanted, self.metrics)
        return wanted or next(iter(self.metrics), "")


@with_config(_FORBID)
@dataclass(frozen=True, slots=True)
class _Catalogue:
    sets: dict[str, PublicSet]


def read_catalogue(path: Path | None = None) -> dict[str, PublicSet]:
    """The sets of a catalogue by name, by default of the one that comes with judgecal."""
    return _read(path or CATALOGUE)


@cache
def _read(path: Path) -> dict[str, PublicSet]:
    sets = validated(_Catalogue, read_toml(path), str(path)).sets
    return {name: replace(entry, name=name) for name, entry in sets.items()}


def public_set(name: str) -> PublicSet:
    """A set of the catalogue."""
    known = read_catalogue()
    if name not in known:
        raise unknown_name("public set", name, sorted(known))
    return known[name]
