"""`judgecal gold`: the sets there are, what is wrong with one, how far its raters agree, and new ones from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli.options import Json, workspace_of

if TYPE_CHECKING:
    from judgecal.goldset import GoldSet, Problem
    from judgecal.records import Estimate
    from judgecal.workspace import Workspace

app = typer.Typer(help="Gold sets: list, check, agreement of the raters, import.", no_args_is_help=True)

SHOWN = 10  # findings of one kind that the text of `gold check` prints; --json has all of them


Separator = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The text between equally right references.")
]
Maps = Annotated[
    list[str] | None, typer.Option("--map", metavar="FROM=TO", help="Rewrite a label; repeatable.")
]


@app.command("list")
def list_command(ctx: typer.Context, as_json: Json = False) -> None:
    """The gold sets of the workspace."""
    from judgecal.goldset import list_gold

    workspace = workspace_of(ctx)
    rows = [_listed(name, workspace) for name in list_gold(workspace)]
    if as_json:
        _print_json({"sets": rows})
        return
    _print_table(_LIST_HEADER, [_list_row(row) for row in rows], left=4)
    for row in rows:
        if row["error"]:
            typer.echo(f"{row['set']} cannot be loaded: see `judgecal gold check {row['set']}`", err=True)
    if not rows:
        typer.echo("no gold set here yet: see `judgecal gold import --help`", err=True)


_LIST_HEADER = ("set", "scale", "sampling", "labels by", "items", "questions", "raters")


def _listed(name: str, workspace: Workspace) -> dict[str, Any]:
    from judgecal.errors import InputError
    from judgecal.goldset import load_gold

    try:
        gold = load_gold(name, workspace=workspace)
    except InputError as error:
        keys = ("n_items", "n_groups", "scale", "raters", "sampling", "labels_by")
        return {"set": name, **dict.fromkeys(keys), "error": str(error)}
    return {
        "set": name,
        "n_items": len(gold.items),
        "n_groups": gold.n_groups(gold.items),
        "scale": str(gold.scale),
        "raters": list(gold.raters),
        "sampling": gold.card.sampling,
        "labels_by": gold.card.labels_by,
        "error": None,
    }


def _list_row(row: dict[str, Any]) -> tuple[str, ...]:
    if row["error"]:
        return (row["set"], "cannot be loaded", "-", "-", "-", "-", "-")
    counts = (row["n_items"], row["n_groups"], len(row["raters"]))
    return (row["set"], row["scale"], row["sampling"], row["labels_by"], *map(str, counts))


@app.command("check")
def check_command(
    ctx: typer.Context,
    gold_set: Annotated[str | None, typer.Argument(metavar="[SET]", help="By default every set.")] = None,
    as_json: Json = False,
) -> None:
    """Every problem of a set, with file and line; exit 2 only where it cannot be loaded."""
    from judgecal.errors import InputError
    from judgecal.goldset import list_gold, load_gold

    workspace = workspace_of(ctx)
    if gold_set is not None:
        _print_checks([load_gold(gold_set, workspace=workspace)], as_json=as_json, one=True)
        return
    sets: list[GoldSet] = []
    problems: list[str] = []
    for name in list_gold(workspace):
        try:
            sets.append(load_gold(name, workspace=workspace))
        except InputError as error:
            problems.extend(error.problems)
    _print_checks(sets, as_json=as_json, one=False)
    if problems:
        raise InputError(problems)


def _print_checks(sets: Sequence[GoldSet], *, as_json: bool, one: bool) -> None:
    from judgecal.goldset import check_gold, check_summary

    checked = [(gold, check_gold(gold)) for gold in sets]
    if as_json:
        objects = [check_summary(*entry) for entry in checked]
        _print_json(objects[0] if one else {"sets": objects})
        return
    for position, (gold, problems) in enumerate(checked):
        if position:
            typer.echo()
        _print_check(gold, problems)


def _print_check(gold: GoldSet, problems: Sequence[Problem]) -> None:
    from judgecal.goldset import check_summary

    found = check_summary(gold, problems)
    typer.echo(
        f"{gold.name}@{gold.sha256[:12]}: {found['n_items']} items on {found['n_groups']} questions, "
        f"{found['n_documents']} documents, scale {gold.scale}, {len(gold.labels)} with a gold label"
    )
    splits = [(name, str(part["n_items"]), str(part["n_groups"])) for name, part in found["splits"].items()]
    _print_table(("split", "items", "questions"), splits)
    if found["tags"]:
        typer.echo()
        _print_table(("tag", "items"), [(tag, str(count)) for tag, count in found["tags"].items()])
    typer.echo()
    if not problems:
        typer.echo("no findings")
        return
    _print_table(("finding", "where", "what"), list(_shown(problems)), left=3)


def _shown(problems: Iterable[Problem]) -> Iterator[tuple[str, str, str]]:
    """The first findings of each kind; the rest of a kind is counted."""
    kinds: dict[str, list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, []).append(problem)
    for kind, found in kinds.items():
        for problem in found[:SHOWN]:
            yield kind, problem.where, problem.message
        if len(found) > SHOWN:
            yield kind, "...", f"and {len(found) - SHOWN} more (all of them with --json)"


@app.command("agreement")
def agreement_command(
    ctx: typer.Context,
    gold_set: Annotated[str, typer.Argument(metavar="SET")],
    as_json: Json = False,
) -> None:
    """How far the human raters of a set agree, pair by pair; the adjudicated label is made of their votes."""
    from judgecal.goldset import load_gold

    gold = load_gold(gold_set, workspace=workspace_of(ctx))
    pairs = [_pair(gold, a, b) for a, b in combinations(gold.raters, 2)]
    if as_json:
        _print_json({"set": gold.name, "pairs": pairs, "reliability": {}})
        return
    typer.echo(f"{gold.name}@{gold.sha256[:12]}, scale {gold.scale}: raters against raters")
    for pair in pairs:
        typer.echo(f"\n{pair['a']} with {pair['b']}, {pair['n']} items with both")
        if pair["agreement"]:
            _print_agreement(pair["agreement"])
    if not pairs:
        typer.echo(f"\nno two human raters ({len(gold.raters)} there): nothing to compare")
    if pairs:
        typer.echo("\nreliability over all raters at once is not computed yet")


def _pair(gold: GoldSet, a: str, b: str) -> dict[str, Any]:
    from judgecal.stats import agreement

    items = gold.shared_items(a, b)
    found: dict[str, Estimate] = {}
    if items:
        first, second = ([gold.ratings_by_rater[rater][item.item_id] for item in items] for rater in (a, b))
        found = agreement(first, second, scale=gold.scale, groups=[item.group for item in items])
    return {"a": a, "b": b, "n": len(items), "agreement": found}


def _print_agreement(found: dict[str, Estimate]) -> None:
    """The estimates, and below them why one has no value or no interval."""
    from judgecal.report.numbers import estimate

    rows = []
    for name, entry in found.items():
        counts = (entry.n, entry.n_expected, entry.n_unscored, entry.n_groups)
        rows.append((name, estimate(entry, 4), *map(str, counts)))
    _print_table(("metric", "value [interval]", "n", "of", "unscored", "questions"), rows, left=2)
    for name, entry in found.items():
        if entry.reason:
            typer.echo(f"{name}: {entry.reason}")


@app.command("import")
def import_command(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV, TSV or JSONL.")],
    name: Annotated[str, typer.Option("--as", metavar="SET", help="The name of the new set.")],
    question: Annotated[str, typer.Option(metavar="COL", help="The question.")],
    answer: Annotated[str, typer.Option(metavar="COL", help="The answer that was rated.")],
    scale: Annotated[str, typer.Option(help="percentage, ordinal:MIN:MAX, fraction, binary or nominal.")],
    label: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A rater's labels; repeatable.")
    ] = None,
    gold_label: Annotated[str | None, typer.Option(metavar="COL", help="The adjudicated label.")] = None,
    reference: Annotated[str | None, typer.Option(metavar="COL", help="The reference answer.")] = None,
    item: Annotated[str | None, typer.Option(metavar="COL", help="The item's id; else SET-00001 ...")] = None,
    group: Annotated[
        str | None, typer.Option(metavar="COL", help="The question's id; else its text.")
    ] = None,
    system: Annotated[str | None, typer.Option(metavar="COL", help="Who gave the answer.")] = None,
    rater: Annotated[str | None, typer.Option(metavar="COL", help="Who gave the one --label.")] = None,
    reference_separator: Separator = None,
    mapping: Maps = None,
    pass_at: Annotated[float | None, typer.Option(metavar="X", help="The people's pass mark.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a set of this name.")] = False,
    as_json: Json = False,
) -> None:
    """Make a gold set of a table with people's labels; nothing is written unless all of it is right."""
    from judgecal.goldset import Columns, import_gold, read_mapping

    columns = Columns(
        question,
        answer,
        tuple(label or ()),
        reference=reference,
        gold_label=gold_label,
        item=item,
        group=group,
        system=system,
        rater=rater,
        reference_separator=reference_separator,
    )
    done = import_gold(
        file,
        name=name,
        columns=columns,
        scale=scale,
        workspace=workspace_of(ctx),
        pass_at=pass_at,
        mapping=read_mapping(mapping or ()),
        replace=replace,
    )
    _print_import(done.gold, done.notes, as_json=as_json)


def _print_import(gold: GoldSet, notes: Iterable[str], *, as_json: bool) -> None:
    from judgecal.goldset import split_counts

    n_groups = gold.n_groups(gold.items)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        counts = {"n_items": len(gold.items), "n_groups": n_groups, "n_ratings": len(gold.ratings)}
        found = {"set": gold.name, "sha256": gold.sha256, **counts, "raters": list(gold.raters)}
        _print_json(found | {"splits": split_counts(gold), "notes": list(notes)})
        return
    typer.echo(
        f"{gold.name}@{gold.sha256[:12]}: {len(gold.items)} items on {n_groups} questions, {len(gold.ratings)} "
        f"ratings by {', '.join(gold.raters) or 'no single rater'}, scale {gold.scale}"
    )
    typer.echo(
        f"next: say in {gold.path / 'card.toml'} what is known of it, then judgecal gold check {gold.name}"
    )


def _print_json(value: dict[str, Any]) -> None:
    from judgecal.report import json_text

    typer.echo(json_text(value))


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    from judgecal.report import text_table

    typer.echo(text_table(header, rows, left=left))
