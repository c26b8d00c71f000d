"""The options that several commands share, which column is what among them, and what they come to."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgecal.cli.output import print_json, print_prose, print_result
from judgecal.errors import notice

if TYPE_CHECKING:
    from judgecal.engine.budget import CostEstimate
    from judgecal.engine.run import RunOptions
    from judgecal.experiment.agreement import AgreementResult, StoredExperiment
    from judgecal.tables import Columns
    from judgecal.workspace import Workspace


def option(what: str, *names: str, **more: Any) -> Any:
    """An option with its help; its name is the parameter's where it has no other."""
    return typer.Option(*names, help=what, **more)


def argument(what: str, **more: Any) -> Any:
    """A word that stands without an option."""
    return typer.Argument(help=what, **more)


UNSCORED = 4
"""The exit code where items ended without a verdict; that of a decision goes before it."""

GoldName = Annotated[str, option("Gold set: a name under gold/, or a path.")]
Replace = Annotated[bool, option("Overwrite the file of --output.")]
Full = Annotated[bool, option("Everything that the page says, as text.")]
Json = Annotated[bool, option("Print one JSON object on stdout.")]
Seed = Annotated[int, option("Seed of every draw.", min=0)]
Name = Annotated[str | None, option("Slug of the experiment, instead of <command>-<set>-<hash>.")]
Metric = Annotated[str | None, option("The metric; macro_agreement by default, accuracy on nominal labels.")]
Repeats = Annotated[int, option("Judgements of each item by each judge.")]
Split = Annotated[str, option("Which items.", metavar="open|train|dev|test|all")]
ExperimentName = Annotated[str, argument("Slug or path of an experiment.", metavar="EXPERIMENT")]


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The options of every command that calls models."""

    budget_usd: Annotated[
        float | None, option("Spend at most this much in this run; checked before each call.")
    ] = None
    dry_run: Annotated[bool, option("Say how many calls it would take and at what cost; call nothing.")] = (
        False
    )
    seed: Seed = 0
    name: Name = None
    full: Full = False
    json: Json = False


@dataclass(frozen=True, slots=True)
class ResumeArguments(CallArguments):
    """The options of a command that calls models and resumes where it stopped."""

    no_cache: Annotated[bool, option("Use no stored answers of other experiments.")] = False
    retry_unscored: Annotated[bool, option("Also call again where a reply gave no usable verdict.")] = False

    def options(self, *, repeats: int = 1) -> RunOptions:
        """Return the engine's RunOptions of what was typed, checked."""
        from judgecal.engine.run import RunOptions

        options = RunOptions(
            repeats=repeats,
            limit=self.limit if isinstance(self, RunArguments) else None,
            budget_usd=self.budget_usd,
            retry_unscored=self.retry_unscored,
            use_cache=not self.no_cache,
        )
        options.check()
        return options


@dataclass(frozen=True, slots=True)
class RunArguments(ResumeArguments):
    """The options of a command that judges items, first ones first."""

    limit: Annotated[int | None, option("Only the first N items; a larger N extends the run.")] = None


def workspace_of(ctx: typer.Context) -> Workspace:
    """Return the Workspace of a typer.Context, whose `obj` is the folder that `--workspace` names."""
    from judgecal.workspace import find_workspace

    return find_workspace(ctx.obj)


def typed_command(ctx: typer.Context, command: str, *, without: Sequence[str] = ()) -> str:
    """From a typer.Context and a command's name, return the command line (text) as it was typed."""
    words = ["judgecal", *(["--workspace", str(ctx.obj)] if ctx.obj is not None else [])]
    words += command.split()
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(str(parameter.name))
        if parameter.name in without or source is None or source.name != "COMMANDLINE":
            continue
        value = ctx.params[str(parameter.name)]
        values = list(value) if isinstance(value, list | tuple) else [value]
        option = () if parameter.param_type_name == "argument" else parameter.opts[:1]
        words += [str(part) for value in values for part in (*option, *([] if value is True else [value]))]
    return shlex.join(words)


def names(text: str | None) -> list[str]:
    """Return the list of names in a text with commas; empty parts are left out, each name counts once."""
    parts = (part.strip() for part in (text or "").split(","))
    return list(dict.fromkeys(part for part in parts if part))


def show_plan(plan: CostEstimate, *, json: bool) -> None:
    """Print a CostEstimate, the plan of `--dry-run`, as text, or as JSON where `json` is set."""
    if json:
        names = ("calls", "stored", "prompt_tokens", "usd_likely", "usd_at_most", "unbounded")
        print_json({name: getattr(plan, name) for name in names})
        return
    print_prose(
        f"{plan.cost_in_words} {plan.calls} calls to make, {plan.stored} judgements stored already, "
        f"about {plan.prompt_tokens:,} prompt tokens"
    )


def finish(n_unscored: int, *why: str, journal: Path | None = None) -> None:
    """End a command that judges, by a number `n_unscored`: above 0 it says why, and exits with 4.

    `why` are sentences; with `journal` the one that it holds the reasons.
    """
    if n_unscored:
        reasons = [f"{n_unscored} judgements have no verdict; {journal} says why"] if journal else why
        notice(*(f"judgecal: {reason}" for reason in reasons))
        raise typer.Exit(UNSCORED)


def column(what: str) -> Any:
    """An option that names a column."""
    return option(what, metavar="COL")


TrustLock = Annotated[
    bool, option("Run the lock's own signature, which is code, where the workspace has another or none.")
]


@dataclass(frozen=True)
class LockArguments:
    """The lock of a command that needs one, and whether its code may run."""

    lock: Annotated[Path, option("The judge.lock.json of select.", metavar="LOCK")]
    trust_lock: TrustLock = False


def columns_option(parts: str) -> Any:
    """Return the command-line option that names columns; the text `parts` lists those that it takes."""
    return option(
        f"The column of a part, where its name does not tell it: {parts}; repeatable.",
        "--col",
        metavar="PART=COLUMN",
    )


_PARTS_OF_ITEMS = (
    "question, answer, reference, contexts, conversation, item, group, system, of a pair answer_a, answer_b, "
    "system_a, system_b, or the name of an input of the judge"
)


@dataclass(frozen=True)
class ColumnArguments:
    """Which column of a table of answers is what; a table that judgecal wrote tells it itself."""

    col: Annotated[list[str] | None, columns_option(_PARTS_OF_ITEMS)] = None
    reference_separator: Annotated[
        str | None, option("The text between equally right references.", metavar="TEXT")
    ] = None

    def given(self) -> list[str]:
        """Return the list of the options that are given, as they are typed."""
        others = [field.name for field in dataclasses.fields(self) if field.name != "col"]
        return [f"--col {entry}" for entry in self.col or ()] + [
            f"--{name.replace('_', '-').replace('mapping', 'map')}" for name in others if getattr(self, name)
        ]

    def columns(
        self,
        workspace: Workspace,
        *,
        takes: Collection[str] | None = None,
        inputs: Collection[str] | None = None,
        **more: Any,
    ) -> Columns:
        """Return the Columns that these options name in a Workspace, usual names for the others."""
        from judgecal.tables import OF_ITEMS, read_columns

        parts = OF_ITEMS if takes is None else takes
        more = {"reference_separator": self.reference_separator, **more}
        return read_columns(self.col or (), takes=parts, inputs=inputs, workspace=workspace, **more)


@dataclass(frozen=True)
class JudgedArguments(ColumnArguments):
    """Those of a table that a judge judged."""

    verdict: Annotated[str | None, column("The judge's verdict; by default verdict.")] = None

    def columns(self, workspace: Workspace, **more: Any) -> Columns:
        """Return the Columns of a judged table in a workspace, the one of the verdict among them."""
        return super().columns(workspace, verdict=self.verdict, **more)


@dataclass(frozen=True)
class LabelledTableArguments(ColumnArguments):
    """Which column of a table of people's labels is what, and how labels and verdicts are read."""

    label: Annotated[
        list[str] | None,
        column("A rater's labels; repeatable. Of a tool's export the name of people's scores."),
    ] = None
    verdict: Annotated[
        list[str] | None, column("A judge's verdicts; by default told by the names; repeatable.")
    ] = None
    scale: Annotated[
        str | None,
        option(
            "Of the labels: percentage (0..100), ordinal:MIN:MAX, points:MIN:MAX[:STEP], fraction (0..1), "
            "binary or nominal; by default told by the labels."
        ),
    ] = None
    mapping: Annotated[
        list[str] | None,
        option("Rewrite a label, whatever its case; repeatable.", "--map", metavar="FROM=TO"),
    ] = None
    labels_by: Annotated[
        Literal["people", "project"] | None,
        option("Who gave the labels; project: you made them yourselves, or a model did."),
    ] = None
    encoding: Annotated[str | None, option("Of separated text; by default told by the file.")] = None

    def columns(self, workspace: Workspace, **more: Any) -> Columns:
        """Return the Columns, labels and verdicts among them, that these options name in a Workspace."""
        from judgecal.tables import OF_IMPORTS

        named = {"labels": tuple(self.label or ()), "verdicts": tuple(self.verdict or ()), **more}
        return super().columns(workspace, takes=OF_IMPORTS, **named)


def output(what: str) -> Any:
    """The option `-o` that says what is written there."""
    return option(what, "--output", "-o", metavar="FILE")


@dataclass(frozen=True, slots=True)
class RowsFile:
    """Where the judgements go that the numbers rest on; a file that is there stays without `--replace`."""

    output: Annotated[
        Path | None,
        output(
            "Also write a row an item and judge, .csv, .xlsx, .parquet ...: label, verdict, calibrated "
            "verdict; without the items of test."
        ),
    ] = None
    replace: Replace = False

    def check(self) -> None:
        """Refuse (InputError) the object's own place if no table can be written there, before any call."""
        if self.output is not None:
            from judgecal.tables import check_output

            check_output(self.output, replace=self.replace)

    def write(self, stored: StoredExperiment) -> None:
        """Write the judgements of a StoredExperiment to the object's own output file, a row each."""
        if self.output is not None:
            from judgecal.experiment.verdicts import judgement_rows
            from judgecal.tables import write_table

            frame, n_sealed = judgement_rows(stored)
            write_table(self.output, frame)
            left = f"; {n_sealed:,} test items are left out, as we never show them" if n_sealed else ""
            notice(f"judgecal: {frame.height:,} rows in {self.output}{left}")


def show_agreement(
    workspace: Workspace,
    measured: tuple[AgreementResult, StoredExperiment],
    rows: RowsFile,
    *,
    json: bool,
    full: bool,
) -> None:
    """Print an (AgreementResult, StoredExperiment) pair of a Workspace by flags, write a RowsFile."""
    from judgecal.report.judges import judges_document
    from judgecal.selection.decision import decide_on_judges
    from judgecal.stats.significance import MARGIN

    result, stored = measured
    decision = decide_on_judges(workspace, stored, margin=MARGIN, result=result)
    stored.experiment.write_summary(decision.result)
    print_result(decision.result, judges_document(decision), json=json, full=full)
    rows.write(stored)
