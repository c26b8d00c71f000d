"""`judgecal init`, `judgecal models` and `judgecal judges`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_document, print_json, print_line, print_result
from judgecal.errors import notice

if TYPE_CHECKING:
    from judgecal.models import ModelSpec
    from judgecal.report.document import Document


def init(directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")]) -> None:
    """Write the starter workspace: signatures, suites, the starter gold set, judgecal.toml."""
    from judgecal.workspace import init_workspace

    made = init_workspace(directory)
    print_line(f"{made.root}: signatures/, suites/, gold/starter/, experiments/, judgecal.toml")
    notice(f"next: cd {made.root} && judgecal optimize")


def models(ctx: typer.Context, full: shared.Full = False, json: shared.Json = False) -> None:
    """Aliases with litellm id, price, context window, and whether the key is present."""
    from judgecal.models import load_catalogue

    specs = load_catalogue(shared.workspace_of(ctx)).specs.values()
    if json:
        shown = ("alias", "id", "input_usd_per_1m", "output_usd_per_1m", "context_window", "key_env", "key_present")
        print_json({"models": [{name: getattr(spec, name) for name in shown} for spec in specs]})
        return
    print_document(_models_document(list(specs)), full=full)


def judges(ctx: typer.Context, full: shared.Full = False, json: shared.Json = False) -> None:
    """What can judge here: signatures, suites, and local judges with their source and needs."""
    from judgecal.judges.listing import judges_here
    from judgecal.report.judges_here import judges_here_document

    found = judges_here(shared.workspace_of(ctx))
    print_result(found, judges_here_document(found), json=json, full=full)


def _models_document(specs: Sequence[ModelSpec]) -> Document:
    from judgecal.records import Headline
    from judgecal.report.document import Document, Section, Table

    words = {None: "none needed", True: "is set"}
    rows = [
        [
            spec.alias,
            words.get(spec.key_present, f"no {spec.key_env}"),
            spec.id,
            *("unknown" if usd is None else f"{usd:g}" for usd in (spec.input_usd_per_1m, spec.output_usd_per_1m)),
            str(spec.context_window or "-"),
        ]
        for spec in sorted(specs, key=lambda one: one.key_present is False)
    ]
    table = Table(["alias", "key", "litellm id", "USD/1M in", "USD/1M out", "context"], rows, left=3, short=True)
    ready = sum(spec.key_present is not False for spec in specs)
    return Document(
        title="Models",
        about="Prices in US dollars for a million tokens; further aliases stand in judgecal.toml.",
        headline=Headline(
            "models",
            f"{ready} of {len(specs)} models have the key that they need, or need none.",
            next="judgecal score --models embedded",
        ),
        sections=[Section("models", "Models", "", [table])],
    )
