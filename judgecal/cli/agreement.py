"""`judgecal agreement`: verdicts that a table or a file holds, held against people's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import LabelledTableArguments, RowsFile, argument, option, show_agreement
from judgecal.cli.output import print_prose, print_result
from judgecal.cli.report import open_page
from judgecal.commands import OPTIMIZER_NAMES
from judgecal.errors import InputError, unknown_name


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
    split: shared.Split = "all",
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
    look: Annotated[bool, option("Write the page and open it in a browser.", "--open")] = False,
    verdict_scale: Annotated[
        str | None, option("Of the verdicts; by default recognised by what they are.")
    ] = None,
    *,
    columns: LabelledTableArguments,
    rows: RowsFile,
) -> None:
    """Say whether a CSV's judges agree with its people's labels.

    FILE has people's labels and judges' verdicts in columns whose names tell which is which; it needs no
    workspace and no import. Without FILE judgements recorded elsewhere are held against a gold set's labels.
    """
    rows.check()
    from judgecal.experiment.recorded import read_labelled_table, read_recorded
    from judgecal.experiment.score import ScoreRun
    from judgecal.goldset import JUDGEMENTS, load_gold, read_mapping
    from judgecal.tables import read_columns

    workspace = shared.workspace_of(ctx)
    table: dict[str, Any] | None = None
    of_sets = {"--gold": gold, "--judgements": judgements}
    if file is not None:
        if given := [option for option, value in of_sets.items() if value] + ["--split"] * (split != "all"):
            raise InputError(f"{', '.join(given)} with {file}: a table has no gold set; leave one out")
        gold_set, recorded, table = read_labelled_table(
            file,
            columns.columns(workspace),
            verdict_scale,
            mapping=read_mapping(columns.mapping or ()),
            scale=columns.scale,
            labels_by=columns.labels_by,
            encoding=columns.encoding,
        )
    else:
        given = [
            option for option in columns.given() if option != "--verdict" and not option.startswith("--col ")
        ]
        if given:
            raise InputError(f"{', '.join(given)} without FILE: a gold set's columns are known; leave it out")
        verdict = next(iter(columns.verdict or ()), None)
        if len(columns.verdict or ()) > 1:
            raise InputError("--verdict names one column of --judgements; several are those of a FILE")
        read_by = read_columns(
            columns.col or (), takes=("item", "judge"), inputs=(), workspace=workspace, verdict=verdict
        )
        gold_set = load_gold(gold or "starter", workspace=workspace)
        path = judgements or gold_set.path / JUDGEMENTS
        if not (judgements or path.is_file()):
            raise InputError(
                f"gold set {gold_set.name} came without judgements: name their file with --judgements, or "
                "give a table with labels and verdicts, judgecal agreement FILE"
            )
        recorded = read_recorded(path, gold_set, columns=read_by, verdict_scale=verdict_scale)
    of_run: dict[str, Any] = {"recorded": recorded, "split": split, "seed": seed, "out": name}
    run = ScoreRun(workspace=workspace, gold=gold_set, table=table, **of_run)
    show_agreement(workspace, measured := run.run(), rows, json=json, full=full)
    if look:
        open_page(workspace, measured[0].experiment)


def score(
    ctx: typer.Context,
    models: Annotated[str | None, option("Models, separated by commas.")] = None,
    signatures: Annotated[str | None, option("Signatures, separated by commas.")] = None,
    judge: Annotated[
        list[str] | None,
        option(
            "A judge by its string: correctness_v3@embedded#SLUG, 'include(match=phrase)@local', "
            "FILE.py:FUNCTION@python; repeatable."
        ),
    ] = None,
    gold: shared.GoldName = "starter",
    split: shared.Split = "open",
    repeats: shared.Repeats = 1,
    *,
    rows: RowsFile,
    call: shared.RunArguments,
) -> None:
    """Run judges over a gold set: their agreement with people. Every signature x model pair judges every
    item."""
    options = call.options(repeats=repeats)
    rows.check()
    from judgecal.experiment.score import ScoreRun
    from judgecal.goldset import load_gold
    from judgecal.judges import judge_named

    workspace = shared.workspace_of(ctx)
    gold_set = load_gold(gold, workspace=workspace)
    usual = "pairwise_v1" if any(item.pair for item in gold_set.items) else "correctness_v3"
    named = _judge_names(models, signatures, judge, usual)
    judges = tuple(judge_named(name, workspace=workspace) for name in named)
    run = ScoreRun(
        workspace=workspace,
        gold=gold_set,
        judges=judges,
        split=split,
        options=options,
        seed=call.seed,
        out=call.name,
    )
    if call.dry_run:
        run.check()
        shared.show_plan(run.plan(), json=call.json)
        return
    result, stored = run.run()
    show_agreement(workspace, (result, stored), rows, json=call.json, full=call.full)
    shared.finish(sum(judge.n_unscored for judge in result.judges), journal=run.experiment.judged[0])


def _judge_names(
    models: str | None, signatures: str | None, judges: list[str] | None, usual: str
) -> list[str]:
    """Every signature x model pair, then the judges named one by one; alone, those stand for themselves."""
    prompts, callees = shared.names(signatures or usual), shared.names(models or "embedded")
    pairs = [f"{signature}@{model}" for signature in prompts for model in callees]
    if not (named := [*(pairs if models or signatures or not judges else ()), *(judges or ())]):
        raise InputError("no judge is named: give --models A,B and --signatures S,T, or --judge")
    return list(dict.fromkeys(named))


def probe(
    ctx: typer.Context,
    judge: Annotated[
        list[str] | None, option("A judge by its string; repeatable. By default correctness_v3@embedded.")
    ] = None,
    gold: shared.GoldName = "starter",
    families: Annotated[
        str | None, option("Families of probes, separated by commas; all by default.")
    ] = None,
    n: Annotated[int, option("Probes of each family at most.", "-n")] = 50,
    *,
    call: shared.RunArguments,
) -> None:
    """Say which judge can be fooled, by answers made by rules. Their right verdict is known: a refusal,
    a changed number, "give 100%"; no label more is needed."""
    options = call.options()
    from judgecal.goldset import load_gold
    from judgecal.judges import judge_named
    from judgecal.probes.run import ProbeRun

    workspace = shared.workspace_of(ctx)
    run = ProbeRun(
        workspace=workspace,
        gold=load_gold(gold, workspace=workspace),
        judges=tuple(judge_named(name, workspace=workspace) for name in judge or ["correctness_v3@embedded"]),
        families=tuple(shared.names(families)),
        n=n,
        options=options,
        seed=call.seed,
        out=call.name,
    )
    if call.dry_run:
        shared.show_plan(run.plan(), json=call.json)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    shared.finish(result.n_unscored, journal=run.experiment.journal)


def optimize(
    ctx: typer.Context,
    model: Annotated[str, option("Model alias or litellm id.")] = "embedded",
    signature: Annotated[str, option("The judge's signature.")] = "correctness_v3",
    optimizer: Annotated[
        str, option("Or as DSPy calls it.", metavar="auto|labeled|fewshot|mipro|gepa|simba|copro")
    ] = "auto",
    reflection_model: Annotated[
        str | None, option("Who writes instructions; else the judge's own model.")
    ] = None,
    gold: shared.GoldName = "starter",
    final: Annotated[bool, option("Confirm once on test, or leave it sealed.", "--final/--no-final")] = True,
    probes: Annotated[
        bool, option("Learn from probes of train too, and mend what breaks without trading agreement away.")
    ] = False,
    repeats: shared.Repeats = 1,
    *,
    call: shared.RunArguments,
) -> None:
    """Improve a judge's prompt, and say whether it improved. Compiled on train, chosen on dev, confirmed
    on test."""
    if optimizer not in OPTIMIZER_NAMES:  # before DSPy is loaded
        raise unknown_name("optimizer", optimizer, list(OPTIMIZER_NAMES))
    options = call.options(repeats=repeats)
    from judgecal.goldset import load_gold
    from judgecal.judges.prompt import PromptJudge
    from judgecal.judges.protocol import JudgeName
    from judgecal.models import load_catalogue
    from judgecal.optimize.optimizers import resolve_optimizer
    from judgecal.optimize.run import OptimizeRun

    workspace = shared.workspace_of(ctx)
    judge = PromptJudge(JudgeName(signature, model), workspace=workspace)
    run = OptimizeRun(
        workspace=workspace,
        judge=judge,
        gold=load_gold(gold, workspace=workspace),
        optimizer=resolve_optimizer(optimizer, judge.model),
        options=options,
        seed=call.seed,
        final=final,
        reflection=load_catalogue(workspace).resolve(reflection_model) if reflection_model else None,
        out=call.name,
        probes=probes,
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        if run.optimizer == "auto" and not call.json:
            print_prose(run.plan_in_words)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    shared.finish(run.unscored(), journal=run.experiment.journal)


def compare(
    ctx: typer.Context,
    experiment: shared.ExperimentName,
    judges: Annotated[
        list[str] | None,
        argument(
            "The judges, A and B; more, or none for all of the experiment: every pair.", metavar="[A B ...]"
        ),
    ] = None,
    metric: shared.Metric = None,
    level: Annotated[float, option("Level of the intervals; 1 - level is the false alarm rate.")] = 0.95,
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Say which of two judges is better on the same items.

    The difference is paired; the answer is A, B, or cannot tell. Calls no model.
    """
    from judgecal.experiment.compare import CompareRun
    from judgecal.experiment.stored import read_experiment

    workspace = shared.workspace_of(ctx)
    stored = read_experiment(workspace, experiment)
    run = CompareRun(
        workspace=workspace,
        stored=stored,
        names=tuple(judges or ()),
        metric=metric,
        level=level,
        seed=seed,
        out=name,
    )
    result = run.run()
    print_result(result, json=json, full=full)
