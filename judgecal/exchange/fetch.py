"""Fetch a public set of the catalogue and import it, its licence, sources and their sha256 in its card."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from judgecal.errors import InputError, refuse
from judgecal.exchange.catalogue import PublicSet, public_set, read_catalogue
from judgecal.exchange.export_import import import_export
from judgecal.exchange.export_labels import LabelOptions
from judgecal.exchange.exports import formats
from judgecal.exchange.public_sets import load_source, read_public
from judgecal.goldset.card import card_text, read_card, try_card
from judgecal.goldset.gold_set import CARD, content_sha
from judgecal.goldset.import_tables import SideTables
from judgecal.goldset.imports import Imported, import_gold
from judgecal.goldset.write import name_problems
from judgecal.records import Result
from judgecal.tables import write_json_lines
from judgecal.tables.download import Fetched, Known, Limits, fetch_file
from judgecal.workspace import Workspace, write_text

HUB = "hf:"
_KNOWN = re.compile(r"(\S+) \(sha256 ([0-9a-f]{64})")  # a source in a card, as `_source` writes it
_REVISION = re.compile(r"revision ([0-9a-f]{40})")  # of a data set of the Hub, as its source has it


@dataclass(frozen=True, slots=True)
class Catalogued(Result):
    """The sets of the catalogue, in its order."""

    sets: tuple[PublicSet, ...]


@dataclass(frozen=True, slots=True)
class FetchPlan(Result):
    """What a fetch would take."""

    public: str
    set_: str
    label: str
    entry: PublicSet
    stored: tuple[str, ...]  # which of its files are here already
    command: str  # fetches it, with what it needs


@dataclass(frozen=True, slots=True)
class FetchedSet(Result):
    """A set that was fetched."""

    public: str
    entry: PublicSet
    files: tuple[Fetched, ...]  # its raw files, none where the Hub's own client fetched it
    imported: Imported


@dataclass(frozen=True, slots=True)
class Fetch:
    """A set to fetch."""

    public: str  # its name in the catalogue
    workspace: Workspace
    store: Path  # the folder of raw files
    name: str | None = None  # of the gold set; by default that of the catalogue
    label: str | None = None  # what people were asked, where the set has several; by default its first
    replace: bool = False  # a set of that name
    again: bool = False  # fetch files anew that are here already

    @property
    def set_(self) -> str:
        """The name of the gold set."""
        return self.name or self.public

    def plan(self) -> FetchPlan:
        """What would be taken."""
        entry = public_set(self.public)
        if entry.refusal:
            raise InputError(f"{self.public}: {entry.refusal} (see {entry.home})")
        label = entry.metric(self.label)
        self.workspace.require_writable("gold fetch")
        refuse(name_problems(self.set_, workspace=self.workspace, replace=self.replace))
        stored = tuple(
            url for url in entry.source if not url.startswith(HUB) and self._path(entry, url).exists()
        )
        command = self._command(label, entry) + " --replace" * self.replace
        return FetchPlan(self.public, self.set_, label, entry, stored, command)

    def run(self, plan: FetchPlan, *, limits: Limits | None = None) -> FetchedSet:
        """Fetch what is not here, and import it."""
        entry = plan.entry
        before = self._card_source()
        known = self._known(entry, before)
        files: dict[str, Fetched] = {}
        for url in entry.source:
            if not url.startswith(HUB):
                path = self._path(entry, url)
                files[url] = fetch_file(url, path, known=known.get(url), again=self.again, limits=limits)
        sources = [files[url].path if url in files else url for url in entry.source]
        imported = self._import(entry, plan.label, sources)
        imported = self._with_card(imported, plan, tuple(files.values()), before)
        return FetchedSet(self.public, entry, tuple(files.values()), imported)

    def _path(self, entry: PublicSet, url: str) -> Path:
        name = Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path)).name or "data"
        return self.store / self.public / (f"{Path(name).stem}{entry.file_form}" if entry.file_form else name)

    def _card_source(self) -> str:
        """Where the replaced set's card says that it comes from; "" without one that can be read."""
        path = self.workspace.gold / self.set_ / CARD
        card = try_card(path)[0] if path.exists() else None
        return "" if card is None else card.source

    def _known(self, entry: PublicSet, before: str) -> dict[str, Known]:
        """What each file must be: as the replaced set's card has it, or the catalogue, which goes first."""
        advice = "--as another name takes the file as it is now"
        card, home = f"says the card of {self.set_}", f"see {entry.home}"
        known = {url: Known(sha256, card, advice) for url, sha256 in _KNOWN.findall(before)}
        pinned = zip(entry.source, entry.sha256, strict=True) if entry.sha256 else ()
        return known | {url: Known(sha256, "says the catalogue", home) for url, sha256 in pinned}

    def _command(self, label: str, entry: PublicSet) -> str:
        words = ["judgecal", "gold", "fetch", self.public]
        words += ["--as", self.set_] if self.set_ != self.public else []
        words += ["--label", label] if label != entry.metric(None) else []
        words += ["--accept-licence"] * bool(entry.to_accept)
        return shlex.join(words)

    def _import(self, entry: PublicSet, label: str, sources: Sequence[str | Path]) -> Imported:
        if entry.reader in formats():
            files = [Path(source) for source in sources]
            declared = entry.reader == "judge-bench"  # whose files say which scale a metric is on
            options = LabelOptions(labels=(label,) if label else (), scale=None if declared else entry.scale)
            return import_export(
                files,
                name=self.set_,
                tool=entry.reader,
                workspace=self.workspace,
                labels=options,
                replace=self.replace,
            )
        if not entry.reader:
            return self._import_table(entry, label, sources[0])
        rows = read_public(entry.reader, [load_source(source) for source in sources], label)
        folder = Path(tempfile.mkdtemp(prefix="judgecal-"))
        try:
            write_json_lines(folder / f"{self.public}.jsonl", rows)
            return self._import_table(entry, label, folder / f"{self.public}.jsonl")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _import_table(self, entry: PublicSet, label: str, source: str | Path) -> Imported:
        return import_gold(
            source,
            name=self.set_,
            columns=entry.columns.columns(label),
            scale=entry.scale,
            mapping=dict(entry.map),
            beside=SideTables(where=tuple(entry.where.items())),
            workspace=self.workspace,
            replace=self.replace,
        )

    def _with_card(
        self, imported: Imported, plan: FetchPlan, files: Sequence[Fetched], before: str
    ) -> Imported:
        """The set with a card that says where it comes from and under which terms, as `before` did."""
        entry, path = plan.entry, imported.path / CARD
        card = read_card(path)
        card = replace(
            card,
            licence=_licence(entry),
            source=_source(entry, card.source, files),
            made_by=self._command(plan.label, entry),
            labels_by=entry.labels_by,
            sampling="curated" if card.sampling == "unknown" else card.sampling,
        )
        write_text(path, card_text(card))
        notes = (*imported.notes, *another_revision(before, card.source))
        return replace(imported, sha256=content_sha(imported.path), notes=notes)


def _licence(entry: PublicSet) -> str:
    terms = "".join(f", {term}" for term in entry.terms if term not in entry.licence)
    verified = "" if entry.licence_read else ", not verified"
    return f"{entry.licence}{terms}{verified}; read {entry.home} before use"


def _source(entry: PublicSet, of_import: str, files: Sequence[Fetched]) -> str:
    if not files:
        return f"{of_import}, fetched {datetime.now(UTC).date().isoformat()}; {entry.home}"
    parts = [
        f"{file.url} (sha256 {file.sha256}, {file.n_bytes:,} bytes, fetched {file.day})" for file in files
    ]
    return "; ".join([*parts, entry.home])


def another_revision(before: str, now: str) -> list[str]:
    """What to say where the Hub has another revision of a data set than a card's source names."""
    old, new = (_REVISION.search(text) for text in (before, now))
    if old is None or new is None or old[1] == new[1]:
        return []
    return [f"The Hub's revision was {old[1]} when the set was last fetched, and is {new[1]} now."]


def catalogued() -> Catalogued:
    """The catalogue."""
    return Catalogued(tuple(read_catalogue().values()))
