"""The documents of `signature list`, `signature check` and `signature new`."""

from __future__ import annotations

from judgecal.judges.signature_files import CheckedSignature, NewSignature, SignatureChecks, SignatureList
from judgecal.records import Headline
from judgecal.report.document import Block, Bullets, Document, Section, Table

_SHOWN = 8  # problems in the short form


def list_document(result: SignatureList) -> Document:
    """A row a signature."""
    n, broken = len(result.signatures), [one for one in result.signatures if one.error is not None]
    if not n:
        following = "judgecal signature new my_judge --scale binary"
        return Document(
            "Signatures", "", Headline("none", "There is no signature here yet.", next=following), []
        )
    rows = [
        (one.name, one.scale or ("cannot be loaded" if one.error else "none: it answers"), one.unit or "-",
         ", ".join(one.inputs) or "-")
        for one in result.signatures
    ]  # fmt: skip
    judging = sum(one.scale is not None for one in result.signatures)
    headline = Headline(
        "signatures",
        f"{judging} of {n} signatures can judge.",
        tuple(f"{one.name} cannot be loaded." for one in broken),
        next=f"judgecal signature check{f' {broken[0].name}' if broken else ''}",
    )
    table = Table(("signature", "scale", "unit", "inputs"), rows, left=4, short=True)
    return Document("Signatures", "", headline, [Section("signatures", "Signatures", "", [table])])


def checks_document(result: SignatureChecks) -> Document:
    """Every problem with its place, and what items lack."""
    n = sum(len(one.problems) for one in result.signatures)
    lacking = [one for one in result.signatures if one.lacking]
    names = (
        ", ".join(one.name for one in result.signatures) if len(result.signatures) == 1 else "The signatures"
    )
    said = f"{n} problem{'s' * (n != 1)}" if n else "no problem"
    headline = Headline(
        "problems" if n or lacking else "sound",
        f"{names} {'has' if len(result.signatures) == 1 else 'have'} {said}.",
        tuple(_lacks(one, result) for one in lacking),
        next=_following(result),
    )
    problems = [f"{one.where}: {one.message}" for own in result.signatures for one in own.problems]
    blocks: list[Block] = [Bullets(problems[:_SHOWN], short=True)] if problems else []
    if len(problems) > _SHOWN:
        blocks.append(Bullets(problems[_SHOWN:]))
    rows = [
        (one.name, one.scale or "-", one.unit or "-", ", ".join(one.inputs) or "-")
        for one in result.signatures
    ]
    blocks.append(Table(("signature", "scale", "unit", "inputs"), rows, left=4, short=True))
    return Document("Signatures", "", headline, [Section("signatures", "Signatures", "", blocks)])


def _lacks(one: CheckedSignature, result: SignatureChecks) -> str:
    parts = (
        f"{part.n_items} of {result.n_items} have no {part.input} ({part.first[0]})" for part in one.lacking
    )
    return f"{one.name} on {result.gold}: of the items {', '.join(parts)}."


def _following(result: SignatureChecks) -> str:
    wrong = [one.name for one in result.signatures if one.problems]
    if wrong:
        return f"judgecal signature check {wrong[0]}"
    judging = next((one.name for one in result.signatures if one.scale and not one.lacking), None)
    if judging is None:
        return "judgecal signature list"
    return f"judgecal score --signatures {judging} --models embedded --gold {result.gold or 'starter'}"


def new_document(result: NewSignature) -> Document:
    """Where the file is, and what it is read as."""
    about = f"A judge of {result.unit}s on the scale {result.scale}; it asks for {', '.join(result.inputs)}."
    headline = Headline(
        "written",
        f"{result.path} is written: fill in what stands in parentheses.",
        (about,),
        next=f"judgecal signature check {result.name}",
    )
    return Document(f"Signature {result.name}", "", headline, [])
