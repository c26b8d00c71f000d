"""The options of the commands that take a table of answers: which column is what."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from judgecal.goldset import Columns


def column(what: str) -> Any:
    """An option that names a column."""
    return typer.Option(metavar="COL", help=what)


TrustLock = Annotated[
    bool,
    typer.Option(
        "--trust-lock",
        help="Run the lock's own signature, which is code, where the workspace has another or none.",
    ),
]


@dataclass(frozen=True)
class LockArguments:
    """The lock of a command that needs one, and whether its code may run."""

    lock: Annotated[Path, typer.Option("--lock", metavar="LOCK", help="The judge.lock.json of select.")]
    trust_lock: TrustLock = False


@dataclass(frozen=True)
class ColumnArguments:
    """The column options of a table of answers."""

    question: Annotated[str | None, column("The question; items with --field may do without.")] = None
    answer: Annotated[str | None, column("The answer; an empty one counts too.")] = None
    reference: Annotated[str | None, column("The reference answer.")] = None
    context: Annotated[
        list[str] | None,
        column("The contexts: a text, or a list of texts or of {document_id, text, score}; repeatable."),
    ] = None
    conversation: Annotated[str | None, column("The turns before: a list of {role, content}.")] = None
    field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COL", help="Any other input of the judge, by its name; repeatable."),
    ] = None
    item: Annotated[str | None, column("The row's id; by default a hash of its texts.")] = None
    group: Annotated[str | None, column("The question's id, for intervals; by default its text.")] = None
    system: Annotated[str | None, column("Who gave the answer.")] = None
    reference_separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The text between equally right references.")
    ] = None

    def given(self) -> list[str]:
        """The options that are given, as they are typed."""
        return [
            f"--{field.name.replace('_', '-')}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name)
        ]

    def columns(self) -> Columns:
        """As tables are read by them.

        Raises:
            InputError: a field's name is none.
        """
        from judgecal.goldset import Columns, read_fields

        return Columns(
            self.question,
            self.answer,
            reference=self.reference,
            item=self.item,
            group=self.group,
            system=self.system,
            reference_separator=self.reference_separator,
            contexts=tuple(self.context or ()),
            conversation=self.conversation,
            fields=read_fields(self.field or ()),
        )
