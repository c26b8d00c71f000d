"""The documents of `gold fetch`: the catalogue, what a fetch would take, and the set that was fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judgecal.exchange.catalogue import PublicSet
from judgecal.exchange.fetch import Catalogued, FetchedSet, FetchPlan
from judgecal.records import Headline
from judgecal.report.document import Block, Bullets, Document, Paragraph, Section, Table
from judgecal.report.gold_import import import_document
from judgecal.report.numbers import count_of
from judgecal.tables.columns import Columns

_MAPPINGS = {
    "seen": "seen in the file",
    "converted": "played on a copy in the source's form",
    "described": "as its card or its users describe them",
    "": "-",
}


def catalogue_document(result: Catalogued) -> Document:
    """Which sets can be fetched, by the judges that they calibrate; in full all of each, or why it cannot."""
    ready = [one for one in result.sets if not one.refusal]
    made = [one for one in result.sets if one.labels_by in ("model", "construction")]
    others = len(result.sets) - len(ready) - len(made)
    headline = Headline(
        "catalogue",
        f"{count_of(len(ready), 'public set')} with people's labels can be fetched.",
        ("None comes with judgecal: read a set's licence before use. * asks for --accept-licence.",),
        next=f"judgecal gold fetch {ready[0].name} --dry-run" if ready else "judgecal gold list",
    )
    not_gold = (
        f"Refused as gold, labelled by a model or by construction: {len(made)}; named, but not to be "
        f"fetched: {others} (--full says why)."
    )
    every = [(one.name, _n(one), one.scale, one.labels_by, _terms(one), one.about) for one in ready]
    facts = Table(
        ("set", "n", "scale", "labels by", "licence", "what"), every, left=6, title="Sets that can be fetched"
    )
    more = [
        (one.name, one.raters, ", ".join(one.languages), _MAPPINGS[one.mapping], one.home) for one in ready
    ]
    refused = [(one.name, one.labels_by, one.refusal, one.home) for one in result.sets if one.refusal]
    blocks: list[Block] = [
        Bullets([f"{kind}: {', '.join(names)}" for kind, names in _by_judge(ready).items()], short=True),
        Paragraph(not_gold, short=True),
        facts,
        Table(
            ("set", "raters", "languages", "columns", "page"),
            more,
            left=5,
            title="Who labelled them, and where",
        ),
        Table(("set", "labels by", "why not", "page"), refused, left=4, title="Sets that are not fetched"),
    ]
    return Document("Public sets", "", headline, [Section("sets", "Sets", "", blocks)])


def _by_judge(ready: Sequence[PublicSet]) -> dict[str, list[str]]:
    """The sets by the first kind of judge that they calibrate."""
    kinds: dict[str, list[str]] = {}
    for one in ready:
        kinds.setdefault(one.calibrates[0], []).append(one.name + "*" * bool(one.to_accept))
    return kinds


def _n(one: PublicSet) -> str:
    return "-" if one.n is None else f"{'' if one.n_exact else 'about '}{one.n:,}"


def _terms(one: PublicSet) -> str:
    notes: list[str] = [term for term in one.terms if term not in one.licence]
    notes += [] if one.licence_read else ["not verified"]
    return f"{one.licence} ({', '.join(notes)})" if notes else one.licence


def plan_document(plan: FetchPlan) -> Document:
    """What would be fetched, under which terms, and how it would be read."""
    one = plan.entry
    what = f"{_n(one)} items" if one.n is not None else "how many items is not known"
    terms = f"Licence: {_terms(one)}; {one.home}."
    headline = Headline(
        "would fetch",
        f"{plan.public} would be fetched as gold set {plan.set_}: {what}, {one.scale}.",
        (terms, *((f"To be accepted: {one.to_accept}.",) if one.to_accept else ())),
        next=plan.command,
    )
    lines = [f"What: {one.about}; calibrates judges of {', '.join(one.calibrates)}."]
    lines += [f"Labels by {one.labels_by}: {one.raters}."]
    lines += [f"Label: {plan.label}; --label takes {', '.join(one.metrics)}."] if one.metrics else []
    lines += [f"Source: {url}{' (stored)' if url in plan.stored else ''}" for url in one.source]
    reader = f"Read by the reader {one.reader}" if one.reader else "Read as a table"
    columns = one.columns.columns(plan.label)
    lines += [f"{reader}: {columns.options() or 'its columns are known'}"]
    lines += [f"Inputs for judges: {', '.join(inputs)}."] if (inputs := _inputs(columns)) else []
    lines += [f"Columns: {_MAPPINGS[one.mapping]}."]
    lines += [one.note] if one.note else []
    return Document(
        f"Public set {plan.public}", "", headline, [Section("plan", "Plan", "", [Bullets(lines, short=True)])]
    )


def _inputs(columns: Columns) -> list[str]:
    """What an item of the set gives to a judge, as the inputs of signatures are called."""
    named = {
        "question": columns.question,
        "answer": columns.answer,
        "reference_answer": columns.reference,
        "contexts": columns.contexts,
        "conversation": columns.conversation,
    }
    return [*(name for name, column in named.items() if column), *(name for name, _ in columns.fields)]


def fetched_document(result: FetchedSet) -> Document:
    """The import, with where it comes from and under which terms."""
    document, one = import_document(result.imported), result.entry
    said = [f"Licence: {_terms(one)}; read {one.home} before use."]
    said += [
        f"{file.url}: {file.n_bytes:,} bytes, sha256 {file.sha256}, fetched {file.day}."
        for file in result.files
    ]
    said += [one.note] if one.note else []
    source = Section("source", "Source", "", [Bullets(said, short=True)])
    return replace(document, sections=[source, *document.sections])
