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
    """A set of the catalogue, as `catalogue.toml` explains its keys.

    Attributes:
        name: its own, which is its key in the file.
        about: what it holds.
        calibrates: the kinds of judges that its labels can be held against.
        labels_by: who gave the labels; people's alone are gold.
        scale: as `gold import --scale` has it.
        raters: who, in words.
        languages: of its texts, as two letters.
        licence: in words; `licence_read` whether it was read in the set's own repository or card.
        home: the page to read before use.
        metrics: what people were asked, where more than one thing; the first is taken unless `--label` names
            another.
        n: how many things have a label, None where nobody says; `n_exact` whether they were counted.
        terms: what to know before use.
        source: where it lies, and `sha256` of each where that is known.
        reader: of `tables/public_sets.py`, where one row is not one item.
        file_form: the ending that its form asks for, where the file's name has another.
        mapping: how far the columns are known.
        where, map: as the options of `gold import`.
        why_not: why it cannot be fetched; "" where it can.
    """

    about: str
    calibrates: tuple[str, ...]
    labels_by: Labeller
    scale: str
    raters: str
    languages: tuple[str, ...]
    licence: str
    licence_read: bool
    home: str
    name: str = ""
    metrics: tuple[str, ...] = ()
    n: int | None = None
    n_exact: bool = False
    terms: tuple[Term, ...] = ()
    source: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()
    reader: str = ""
    file_form: str = ""
    mapping: Literal["seen", "converted", "described", ""] = ""
    note: str = ""
    columns: ColumnMap = field(default_factory=ColumnMap)
    where: Mapping[str, str] = field(default_factory=dict)
    map: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""

    @property
    def refusal(self) -> str:
        """Why it is not fetched as gold; "" where it is."""
        if self.labels_by in ("model", "construction"):
            how = (
                "a model gave its labels"
                if self.labels_by == "model"
                else "its labels were made, not given by people"
            )
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
        found = [words[term] for term in self.terms]
        return "; ".join(found if self.licence_read else [*found, "its licence was not verified"])

    def metric(self, wanted: str | None) -> str:
        """What people were asked: what is wanted, else the first; "" where the set has one alone."""
        if wanted is not None and not self.metrics:
            raise InputError(
                f"--label {wanted}: the public set {self.name} has one label alone: leave it out"
            )
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
    found = validated(_Catalogue, read_toml(path), str(path)).sets
    return {name: replace(one, name=name) for name, one in found.items()}


def public_set(name: str) -> PublicSet:
    """A set of the catalogue."""
    known = read_catalogue()
    if name not in known:
        raise unknown_name("public set", name, sorted(known))
    return known[name]
