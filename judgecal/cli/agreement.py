"""`judgecal agreement`: verdicts that a table or a file holds, held against people's labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import JudgementFiles, argument, column, option, show_agreement
from judgecal.cli.report import open_page
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.experiment import AgreementResult, RunOptions, StoredExperiment
    from judgecal.experiment.recorded import Recorded
    from judgecal.goldset import GoldSet
    from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class LabelledTableArguments:
    """Which column of FILE is what, where its names do not tell it."""

    label: Annotated[
        list[str] | None, column("A person's labels; by default told by the names; repeatable.")
    ] = None
    verdict: Annotated[
        list[str] | None, column("A judge's verdicts; by default told by the names; repeatable.")
    ] = None
    group: Annotated[str | None, column("The question's id; by default the question's text.")] = None
    question: Annotated[str | None, column("The question, where there is one.")] = None
    answer: Annotated[str | None, column("The answer, where there is one.")] = None
    reference: Annotated[str | None, column("The reference answer.")] = None
    context: Annotated[list[str] | None, column("The contexts; repeatable.")] = None
    scale: Annotated[
        str | None, option("Of the labels, as gold import takes it; by default told by them.")
    ] = None
    mapping: Annotated[
        list[str] | None, option("Rewrite a label; repeatable.", "--map", metavar="FROM=TO")
    ] = None
    labels_by: Annotated[
        Literal["people", "project"] | None,
        option("Who gave the labels; project: you made them yourselves, or a model did."),
    ] = None

    def given(self) -> list[str]:
        """Those that only a table takes, as they are typed."""
        named = {"map": self.mapping, "labels-by": self.labels_by}
        named |= {name: getattr(self, name) for name in ("label", "group", "question", "answer")}
        named |= {name: getattr(self, name) for name in ("reference", "context", "scale")}
        return [f"--{name}" for name, value in named.items() if value]

    def run(
        self, file: Path, workspace: Workspace, how: RecordedArguments, **more: Any
    ) -> tuple[AgreementResult, StoredExperiment]:
        """The table held against itself."""
        from judgecal.experiment.from_table import TableRun
        from judgecal.goldset import Columns, read_mapping

        columns = Columns(
            self.question,
            self.answer,
            labels=tuple(self.label or ()),
            verdicts=tuple(self.verdict or ()),
            reference=self.reference,
            contexts=tuple(self.context or ()),
            group=self.group,
            item=how.item,
            usual=True,
        )
        return TableRun(
            workspace=workspace,
            file=file,
            columns=columns,
            scale=self.scale,
            mapping=read_mapping(self.mapping or ()),
            verdict_scale=how.verdict_scale,
            labels_by=self.labels_by,
            **more,
        ).run()


@dataclass(frozen=True, slots=True)
class RecordedArguments:
    """What a file of recorded judgements is, and how it is read."""

    judge_column: Annotated[
        str | None, option("Column of the judge's name; by default judge, else the file is one judge.")
    ] = None
    item: Annotated[str | None, column("The item's id; by default item_id.")] = None
    verdict_scale: Annotated[
        str | None, option("Of the verdicts; by default recognised by what they are.")
    ] = None

    def read(self, path: Path, gold: GoldSet, verdict: str | None) -> Recorded:
        """The judgements of a file."""
        from judgecal.experiment import read_recorded
        from judgecal.tables import Columns

        columns = Columns(item=self.item, verdict=verdict, usual=True)
        return read_recorded(
            path, gold, columns=columns, judge_column=self.judge_column, verdict_scale=self.verdict_scale
        )


def agreement(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        argument("A table with people's labels and a judge's verdicts, in any folder.", metavar="[FILE]"),
    ] = None,
    judgements: Annotated[
        Path | None,
        option(
            "Of a gold set: recorded judgements, CSV, TSV, JSONL, JSON or Parquet; by default those that "
            "came with it."
        ),
    ] = None,
    gold: Annotated[str | None, option("Gold set, without FILE; by default starter.")] = None,
    judge: Annotated[
        list[str] | None,
        option("A judge beside them that calls nobody, faithfulness_overlap@local; repeatable."),
    ] = None,
    split: shared.Split = "all",
    limit: Annotated[int | None, option("Only the first N items.")] = None,
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
    look: Annotated[bool, option("Write the page and open it in a browser.", "--open")] = False,
    *,
    columns: LabelledTableArguments,
    how: RecordedArguments,
    table: JudgementFiles,
) -> None:
    """Say whether a CSV's judges agree with its people's labels.

    FILE has people's labels and judges' verdicts in columns whose names tell which is which; it needs no
    workspace and no import. Without FILE judgements recorded elsewhere are held against a gold set's labels.
    """
    table.check()
    from judgecal.experiment import RunOptions
    from judgecal.judges import judge_named

    options = RunOptions(limit=limit)
    options.check()
    workspace = shared.workspace_of(ctx)
    beside = tuple(judge_named(string, workspace=workspace) for string in dict.fromkeys(judge or ()))
    more: dict[str, Any] = {"judges": beside, "options": options, "seed": seed, "out": name}
    if file is None:
        if given := columns.given():
            raise InputError(f"{', '.join(given)} without FILE: a gold set's columns are known; leave it out")
        found = _of_gold(workspace, gold or "starter", judgements, columns.verdict, how, split=split, **more)
    else:
        sets: dict[str, object] = {"--gold": gold, "--judgements": judgements, "--split": split != "all"}
        sets["--judge-column"] = how.judge_column
        if given := [option for option, value in sets.items() if value]:
            raise InputError(f"{', '.join(given)} with {file}: a table has no gold set; leave one out")
        found = columns.run(file, workspace, how, **more)
    show_agreement(workspace, found, table, json=json, full=full)
    if look:
        open_page(workspace, found[0].experiment)


def _of_gold(
    workspace: Workspace,
    name: str,
    judgements: Path | None,
    verdicts: list[str] | None,
    how: RecordedArguments,
    *,
    options: RunOptions,
    **more: Any,
) -> tuple[AgreementResult, StoredExperiment]:
    """Judgements of a file, or that came with a set, beside the set's labels."""
    from judgecal.experiment import ScoreRun
    from judgecal.goldset import load_gold

    if len(verdicts or ()) > 1:
        raise InputError("--verdict names one column of --judgements; several are columns of a table, FILE")
    gold = load_gold(name, workspace=workspace)
    recorded = how.read(judgements or _with_the_set(gold), gold, next(iter(verdicts or ()), None))
    return ScoreRun(workspace=workspace, gold=gold, recorded=recorded, options=options, **more).run()


def _with_the_set(gold: GoldSet) -> Path:
    """The judgements that an import kept beside a set."""
    from judgecal.goldset import JUDGEMENTS

    path = gold.path / JUDGEMENTS
    if not path.is_file():
        raise InputError(f"gold set {gold.name} came without judgements: name their file with --judgements")
    return path
