"""`-o FILE` of a command whose result is numbers or a list: the same as a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from judgecal.cli import options as shared
from judgecal.cli.options import option
from judgecal.cli.output import print_result
from judgecal.errors import notice

if TYPE_CHECKING:
    from judgecal.experiment import AgreementResult, StoredExperiment
    from judgecal.records import Result
    from judgecal.workspace import Workspace


def output(what: str) -> Any:
    """The option `-o` that says what is written there."""
    return shared.option(what, "--output", "-o", metavar="FILE")


@dataclass(frozen=True, slots=True)
class TableFile:
    """Where a result is written as a table, beside what is printed; a file that is there stays without
    `--replace`."""

    output: Annotated[
        Path | None,
        output(
            "Also write it as a table, .csv, .xlsx, .parquet ...: each number a row, with its interval and n."
        ),
    ] = None
    replace: shared.Replace = False

    @property
    def files(self) -> list[Path]:
        """Those that are asked for."""
        return [] if self.output is None else [self.output]

    def check(self) -> None:
        """Refuse (InputError) a place where one cannot be written, before anything is called."""
        if self.files:
            from judgecal.errors import InputError
            from judgecal.tables import check_output

            if len({path.resolve() for path in self.files}) < len(self.files):
                raise InputError(f"--output and --rows name one file, {self.files[0]}: name two")
            for path in self.files:
                check_output(path, replace=self.replace)

    def write(self, result: Result, *, parts: bool = False) -> None:
        """Every estimate of the result, a row each; with `parts` the result's parts, such as sets or
        problems."""
        if self.output is not None:
            from judgecal.tables.formats import write_frame

            frame = result.frame() if parts else result.numbers()
            write_frame(self.output, frame)
            notice(f"judgecal: {frame.height:,} row{'s' * (frame.height != 1)} in {self.output}")


@dataclass(frozen=True, slots=True)
class JudgementFiles(TableFile):
    """Beside the numbers the judgements that they rest on."""

    rows: Annotated[
        Path | None,
        option(
            "Also write a row an item and judge: label, verdict, calibrated verdict; without the items of "
            "test.",
            metavar="FILE",
        ),
    ] = None

    @property
    def files(self) -> list[Path]:
        """Both."""
        return [path for path in (self.output, self.rows) if path is not None]

    def write_rows(self, stored: StoredExperiment) -> None:
        """The judgements of an experiment."""
        if self.rows is not None:
            from judgecal.experiment.verdicts import judgement_rows
            from judgecal.tables.formats import write_frame

            frame, n_sealed = judgement_rows(stored)
            write_frame(self.rows, frame)
            left = f"; {n_sealed:,} items of test are left out, as they are shown nowhere" if n_sealed else ""
            notice(f"judgecal: {frame.height:,} rows in {self.rows}{left}")


def show_agreement(
    workspace: Workspace,
    found: tuple[AgreementResult, StoredExperiment],
    files: JudgementFiles,
    *,
    json: bool,
    full: bool,
) -> None:
    """Print what `score` and `agreement` come to, and write what was asked for."""
    from judgecal.report.judges import judges_document
    from judgecal.selection.choice import MARGIN
    from judgecal.selection.decision import decide_on_judges

    result, stored = found
    document = judges_document(decide_on_judges(workspace, stored, margin=MARGIN, result=result))
    print_result(result, document, json=json, full=full)
    files.write(result)
    files.write_rows(stored)
