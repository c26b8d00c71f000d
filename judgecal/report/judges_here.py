"""The document of `judgecal judges`: what can judge in a workspace."""

from __future__ import annotations

from collections.abc import Sequence

from judgecal.judges.listing import JudgesHere, LocalHere, SignatureHere, SuiteHere
from judgecal.records import Headline
from judgecal.report import numbers
from judgecal.report.document import Block, Document, Paragraph, Section, Table, notes_section

_NONE = "-"


def judges_here_document(found: JudgesHere) -> Document:
    """Local judges with their source and needs, signatures, suites; and what cannot be loaded."""
    notes = [f"signature {one.name}: {one.problem}" for one in found.signatures if one.problem]
    notes += [f"suite {one.name}: {one.problem}" for one in found.suites if one.problem]
    notes += [one.problem for one in found.local if one.problem]
    if found.no_verdict:
        notes.append(f"Signatures without a verdict, which cannot judge: {', '.join(found.no_verdict)}.")
    sections = [
        Section("local", "Local judges", "Rules and metrics that call nobody.", _local(found)),
        Section(
            "signatures",
            "Signatures",
            "Prompts that judge on any model: SIGNATURE@MODEL.",
            _signatures(found),
        ),
        Section("suites", "Suites", "Judges that run together.", _suites(found)),
    ]
    return Document(
        title="Judges",
        about="",
        headline=_headline(found),
        sections=[*sections, *notes_section(notes)],
        run_lines=("run: judgecal judges",),
    )


def _headline(found: JudgesHere) -> Headline:
    parts = [
        numbers.count_of(len([one for one in found.signatures if not one.problem]), "signature"),
        numbers.count_of(len([one for one in found.suites if not one.problem]), "suite"),
        numbers.count_of(len([one for one in found.local if not one.problem]), "local judge"),
    ]
    everything: list[SignatureHere | SuiteHere | LocalHere] = [*found.signatures, *found.suites, *found.local]
    broken = sum(bool(one.problem) for one in everything)
    they_are = "it is" if broken == 1 else "they are"
    because = (
        (f"{numbers.count(broken)} more cannot judge as {they_are}: --full says why.",) if broken else ()
    )
    sentence = f"{parts[0]}, {parts[1]} and {parts[2]} can judge here."
    return Headline("judges", sentence, because, next="judgecal score --judge exact_match@local")


def _signatures(found: JudgesHere) -> list[Block]:
    ready = [one for one in found.signatures if not one.problem]
    named = Paragraph(f"Signatures: {_by_folder([one.name for one in ready])}.", short=True)
    return [
        named,
        Table(["signature", "scale", "unit", "inputs"], [_signature_row(one) for one in ready], left=4),
    ]


def _by_folder(names: Sequence[str]) -> str:
    """Names with commas, those of a sub-folder together: `mosaic/* (9)`."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, slash, own = name.rpartition("/")
        folders.setdefault(folder + slash, []).append(own)
    alone = folders.pop("", [])
    return ", ".join([*alone, *(f"{folder}* ({len(own)})" for folder, own in folders.items())]) or "none"


def _signature_row(one: SignatureHere) -> list[str]:
    return [one.name, one.scale, one.unit, ", ".join(one.inputs)]


def _suites(found: JudgesHere) -> list[Block]:
    ready = [one for one in found.suites if not one.problem]
    named = Paragraph(f"Suites: {', '.join(one.name for one in ready) or 'none'}.", short=True)
    rows = [[one.name, ", ".join(one.judges)] for one in ready]
    return [named, Table(["suite", "judges"], rows, left=2)] if rows else [named]


def _local(found: JudgesHere) -> list[Block]:
    return [
        Table(["local judge", "needs"], [[one.judge, one.needs] for one in found.local], left=2, short=True),
        Table(["local judge", "source", "settings"], [_origin(one) for one in found.local], left=3),
        Table(
            ["local judge", "scale", "verdict"],
            [[one.judge, one.scale, one.about] for one in found.local],
            left=3,
        ),
    ]


def _origin(one: LocalHere) -> list[str]:
    return [one.judge, one.source or _NONE, "; ".join(one.settings) or _NONE]
