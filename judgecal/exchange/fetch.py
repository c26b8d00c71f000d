"""Fetch a public set of the catalogue and import it, its licence, sources and their sha256 in its card.

Results, and their documents: the catalogue, what a fetch would take, and the set that was fetched.
"""

from __future__ import annotations

import re
import shlex
import tempfile
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from judgecal.errors import InputError, refuse, unknown_name
from judgecal.exchange.export_import import LabelOptions, import_export
from judgecal.exchange.exports import formats
from judgecal.exchange.public_sets import PublicSet, read_catalogue, read_public
from judgecal.goldset.card import card_text, read_card, try_card
from judgecal.goldset.gold_set import CARD
from judgecal.goldset.import_tables import SideTables
from judgecal.goldset.imports import Imported, import_gold
from judgecal.goldset.load import content_sha
from judgecal.goldset.write import name_problems
from judgecal.records import Headline, Result
from judgecal.report.document import Block, Bullets, Document, Paragraph, Section, Table
from judgecal.report.gold import import_document
from judgecal.report.numbers import count_of
from judgecal.tables import write_json_lines
from judgecal.tables.download import Fetched, Known, Limits, fetch_file
from judgecal.workspace import Workspace, write_text

_KNOWN = re.compile(r"(\S+) \(sha256 ([0-9a-f]{64})")  # a source in a card, as `fetch_set` writes it
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
    made_by: str = field(metadata={"json": False})  # the same, as its card says it
    replaces: bool = field(metadata={"json": False})  # a set of that name
    files: dict[str, Path] = field(metadata={"json": False})  # where each is stored; those of the Hub are not


@dataclass(frozen=True, slots=True)
class FetchedSet(Result):
    """A set that was fetched."""

    public: str
    entry: PublicSet
    files: tuple[Fetched, ...]  # its raw files, none where the Hub's own client fetched it
    imported: Imported


def catalogued() -> Catalogued:
    """The catalogue."""
    return Catalogued(tuple(read_catalogue().values()))


def plan_fetch(
    public: str,
    workspace: Workspace,
    store: Path,
    *,
    name: str | None = None,
    label: str | None = None,
    replace: bool = False,
) -> FetchPlan:
    """What would be taken.

    `public`: its name in the catalogue; `store`: the folder of raw files; `name`: of the gold set, by default
    that of the catalogue; `label`: what people were asked, where the set has several, by default its first.
    """
    known = read_catalogue()
    if public not in known:
        raise unknown_name("public set", public, sorted(known))
    entry, set_ = known[public], name or public
    if entry.refusal:
        raise InputError(f"{public}: {entry.refusal} (see {entry.home})")
    metric = entry.metric(label)
    workspace.require_writable("gold fetch")
    refuse(name_problems(set_, workspace=workspace, replace=replace))
    files = {}
    for url in entry.source:
        if not url.startswith("hf:"):
            path = Path(Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path)).name or "data")
            file = f"{path.stem}{entry.file_form}" if entry.file_form else path.name
            files[url] = store / public / file
    words = ["judgecal", "gold", "fetch", public]
    words += ["--as", set_] if set_ != public else []
    words += ["--label", metric] if metric != entry.metric(None) else []
    words += ["--accept-licence"] * bool(entry.to_accept)
    stored = tuple(url for url, path in files.items() if path.exists())
    made_by = shlex.join(words)
    command = made_by + " --replace" * replace
    return FetchPlan(public, set_, metric, entry, stored, command, made_by, replace, files)


def fetch_set(
    plan: FetchPlan, workspace: Workspace, *, again: bool = False, limits: Limits | None = None
) -> FetchedSet:
    """Fetch what is not here, or with `again` all of it, and import it.

    Each file must be what the card of the set that is replaced says, or the catalogue, which goes first.
    """
    entry, card_path = plan.entry, workspace.gold / plan.set_ / CARD
    before = try_card(card_path)[0] if card_path.exists() else None
    source_before = before.source if before else ""
    advice = "--as another name takes the file as it is now"
    of_card = _KNOWN.findall(source_before)
    known = {url: Known(sha256, f"says the card of {plan.set_}", advice) for url, sha256 in of_card}
    for url, sha256 in zip(entry.source, entry.sha256, strict=True) if entry.sha256 else ():
        known[url] = Known(sha256, "says the catalogue", f"see {entry.home}")
    files = {
        url: fetch_file(url, path, known=known.get(url), again=again, limits=limits)
        for url, path in plan.files.items()
    }
    imported = _import(plan, workspace, [plan.files.get(url, url) for url in entry.source])
    card = read_card(card_path)
    parts = [
        f"{file.url} (sha256 {file.sha256}, {file.n_bytes:,} bytes, fetched {file.day})"
        for file in files.values()
    ]
    of_hub = f"{card.source}, fetched {datetime.now(UTC).date().isoformat()}"
    terms = "".join(f", {term}" for term in entry.terms if term not in entry.licence)
    verified = "" if entry.licence_read else ", not verified"
    card = replace(
        card,
        licence=f"{entry.licence}{terms}{verified}; read {entry.home} before use",
        source="; ".join([*(parts or [of_hub]), entry.home]),
        made_by=plan.made_by,
        labels_by=entry.labels_by,
        sampling="curated" if card.sampling == "unknown" else card.sampling,
    )
    write_text(card_path, card_text(card))
    notes = (*imported.notes, *another_revision(source_before, card.source))
    imported = replace(imported, sha256=content_sha(imported.path), notes=notes)
    return FetchedSet(plan.public, entry, tuple(files.values()), imported)


def _import(plan: FetchPlan, workspace: Workspace, sources: Sequence[str | Path]) -> Imported:
    entry, label = plan.entry, plan.label

    def of_table(source: str | Path) -> Imported:
        return import_gold(
            source,
            name=plan.set_,
            columns=entry.columns.columns(label),
            scale=entry.scale,
            mapping=dict(entry.map),
            beside=SideTables(where=tuple(entry.where.items())),
            workspace=workspace,
            replace=plan.replaces,
        )

    if entry.reader in formats():
        declared = entry.reader == "judge-bench"  # whose files say which scale a metric is on
        options = LabelOptions(labels=(label,) if label else (), scale=None if declared else entry.scale)
        return import_export(
            [Path(source) for source in sources],
            name=plan.set_,
            tool=entry.reader,
            workspace=workspace,
            labels=options,
            replace=plan.replaces,
        )
    if not entry.reader:
        return of_table(sources[0])
    rows = read_public(entry.reader, sources, label)
    with tempfile.TemporaryDirectory(prefix="judgecal-", ignore_cleanup_errors=True) as folder:
        table = Path(folder) / f"{plan.public}.jsonl"
        write_json_lines(table, rows)
        return of_table(table)


def another_revision(before: str, now: str) -> list[str]:
    """What to say where the Hub has another revision of a data set than a card's source names."""
    old, new = (_REVISION.search(text) for text in (before, now))
    if old is None or new is None or old[1] == new[1]:
        return []
    return [f"The Hub's revision was {old[1]} when the set was last fetched, and is {new[1]} now."]


# --- documents

_MAPPINGS = {
    "seen": "seen in the file",
    "converted": "played on a copy in the source's form",
    "described": "as its card or its users describe them",
    "": "-",
}


def catalogue_document(result: Catalogued) -> Document:
    """Which sets can be fetched, by the judges that they calibrate; in full all of each, or why it cannot."""
    ready = [entry for entry in result.sets if not entry.refusal]
    n_made = sum(entry.labels_by in ("model", "construction") for entry in result.sets)
    others = len(result.sets) - len(ready) - n_made
    headline = Headline(
        "catalogue",
        f"{count_of(len(ready), 'public set')} with people's labels can be fetched.",
        ("None comes with judgecal: read a set's licence before use. * asks for --accept-licence.",),
        next=f"judgecal gold fetch {ready[0].name} --dry-run" if ready else "judgecal gold list",
    )
    kinds: dict[str, list[str]] = {}
    for entry in ready:
        kinds.setdefault(entry.calibrates[0], []).append(entry.name + "*" * bool(entry.to_accept))
    not_gold = (
        f"Refused as gold, labelled by a model or by construction: {n_made}; named, but not to be "
        f"fetched: {others} (--full says why)."
    )
    every = [
        (entry.name, _n(entry), entry.scale, entry.labels_by, _terms(entry), entry.about) for entry in ready
    ]
    more = [
        (entry.name, entry.raters, ", ".join(entry.languages), _MAPPINGS[entry.mapping], entry.home)
        for entry in ready
    ]
    refused = [
        (entry.name, entry.labels_by, entry.refusal, entry.home) for entry in result.sets if entry.refusal
    ]
    header = ("set", "n", "scale", "labels by", "licence", "what")
    of_more = ("set", "raters", "languages", "columns", "page")
    of_refused = ("set", "labels by", "why not", "page")
    blocks: list[Block] = [
        Bullets([f"{kind}: {', '.join(names)}" for kind, names in kinds.items()], short=True),
        Paragraph(not_gold, short=True),
        Table(header, every, left=6, title="Sets that can be fetched"),
        Table(of_more, more, left=5, title="Who labelled them, and where"),
        Table(of_refused, refused, left=4, title="Sets that are not fetched"),
    ]
    return Document("Public sets", "", headline, [Section("sets", "Sets", "", blocks)])


def _n(entry: PublicSet) -> str:
    return "-" if entry.n is None else f"{'' if entry.n_exact else 'about '}{entry.n:,}"


def _terms(entry: PublicSet) -> str:
    notes: list[str] = [term for term in entry.terms if term not in entry.licence]
    notes += [] if entry.licence_read else ["not verified"]
    return f"{entry.licence} ({', '.join(notes)})" if notes else entry.licence


def plan_document(plan: FetchPlan) -> Document:
    """What would be fetched, under which terms, and how it would be read."""
    entry, columns = plan.entry, plan.entry.columns.columns(plan.label)
    what = f"{_n(entry)} items" if entry.n is not None else "how many items is not known"
    because = [f"Licence: {_terms(entry)}; {entry.home}."]
    because += [f"To be accepted: {entry.to_accept}."] if entry.to_accept else []
    headline = Headline(
        "would fetch",
        f"{plan.public} would be fetched as gold set {plan.set_}: {what}, {entry.scale}.",
        tuple(because),
        next=plan.command,
    )
    parts = ("question", "answer", "answer_a", "answer_b", "reference", "contexts", "conversation")
    inputs = [{"reference": "reference_answer"}.get(part, part) for part in parts if getattr(columns, part)]
    inputs += [name for name, _ in columns.fields]
    reader = f"Read by the reader {entry.reader}" if entry.reader else "Read as a table"
    lines = [f"What: {entry.about}; calibrates judges of {', '.join(entry.calibrates)}."]
    lines += [f"Labels by {entry.labels_by}: {entry.raters}."]
    lines += [f"Label: {plan.label}; --label takes {', '.join(entry.metrics)}."] if entry.metrics else []
    lines += [f"Source: {url}{' (stored)' if url in plan.stored else ''}" for url in entry.source]
    lines += [f"{reader}: {columns.options() or 'its columns are known'}"]
    lines += [f"Inputs for judges: {', '.join(inputs)}."] if inputs else []
    lines += [f"Columns: {_MAPPINGS[entry.mapping]}."]
    lines += [entry.note] if entry.note else []
    section = Section("plan", "Plan", "", [Bullets(lines, short=True)])
    return Document(f"Public set {plan.public}", "", headline, [section])


def fetched_document(result: FetchedSet) -> Document:
    """The import, with where it comes from and under which terms."""
    document, entry = import_document(result.imported), result.entry
    lines = [f"Licence: {_terms(entry)}; read {entry.home} before use."]
    lines += [
        f"{file.url}: {file.n_bytes:,} bytes, sha256 {file.sha256}, fetched {file.day}."
        for file in result.files
    ]
    lines += [entry.note] if entry.note else []
    source = Section("source", "Source", "", [Bullets(lines, short=True)])
    return replace(document, sections=[source, *document.sections])
