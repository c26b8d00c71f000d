"""The options of the commands that take a table: which column is what, with one set of names and defaults."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from judgecal.cli.options import option

if TYPE_CHECKING:
    from judgecal.tables import Columns


def column(what: str) -> Any:
    """An option that names a column."""
    return option(what, metavar="COL")


Question = Annotated[str | None, column("The question; by default question. Not needed with --field.")]
Answer = Annotated[str | None, column("The answer, which may be empty; by default answer.")]
Item = Annotated[str | None, column("The row's id; by default item_id, else a hash of its texts.")]
Group = Annotated[str | None, column("The question's id, for intervals; by default group, else its text.")]
System = Annotated[str | None, column("Who gave the answer; by default system.")]
Verdict = Annotated[str | None, column("The judge's verdict; by default verdict.")]
TrustLock = Annotated[
    bool, option("Run the lock's own signature, which is code, where the workspace has another or none.")
]


@dataclass(frozen=True)
class LockArguments:
    """The lock of a command that needs one, and whether its code may run."""

    lock: Annotated[Path, option("The judge.lock.json of select.", metavar="LOCK")]
    trust_lock: TrustLock = False


@dataclass(frozen=True)
class ColumnArguments:
    """The column options of a table of answers; a table that judgecal wrote needs none of them."""

    question: Question = None
    answer: Answer = None
    reference: Annotated[
        str | None, column("The reference answer; by default reference_answer or reference.")
    ] = None
    context: Annotated[
        list[str] | None,
        column(
            "The contexts: a text, or a list of texts or of {document_id, text, score}; repeatable; by "
            "default "
            "contexts or context."
        ),
    ] = None
    conversation: Annotated[
        str | None, column("The turns before: a list of {role, content}; by default conversation.")
    ] = None
    field: Annotated[
        list[str] | None, option("Any other input of the judge, by its name; repeatable.", metavar="NAME=COL")
    ] = None
    item: Item = None
    group: Group = None
    system: System = None
    reference_separator: Annotated[
        str | None, option("The text between equally right references.", metavar="TEXT")
    ] = None

    def given(self) -> list[str]:
        """The options that are given, as they are typed."""
        return [
            f"--{field.name.replace('_', '-')}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name)
        ]

    def columns(self) -> Columns:
        """As tables are read by them, with the usual names for what none of them names."""
        from judgecal.tables import Columns, read_fields

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
            usual=True,
        )


@dataclass(frozen=True)
class JudgedArguments(ColumnArguments):
    """Those of a table that a judge judged."""

    verdict: Verdict = None

    def columns(self) -> Columns:
        """As tables are read by them."""
        return dataclasses.replace(super().columns(), verdict=self.verdict)
