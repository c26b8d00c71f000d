"""`judgecal init`, `judgecal models` and `judgecal judges`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_document, print_json, print_result

if TYPE_CHECKING:
    from judgecal.models import ModelSpec
    from judgecal.report.document import Document
    from judgecal.workspace import Workspace


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Write the starter workspace into a new folder.

    It holds signatures, suites, the starter gold set and judgecal.toml; all of it is yours to change.
    """
    from judgecal.workspace import init_workspace

    made = init_workspace(directory)
    document = _made_document(made)
    if json:
        print_json({"headline": document.headline, "run_line": "", "workspace": made.root.as_posix()})
        return
    print_document(document, full=full)


def models(ctx: typer.Context, full: shared.Full = False, json: shared.Json = False) -> None:
    """List the models: alias, price, whether its key is there."""
    from judgecal.models import load_catalogue

    specs = load_catalogue(shared.workspace_of(ctx)).specs.values()
    if json:
        shown = (
            "alias",
            "id",
            "input_usd_per_1m",
            "output_usd_per_1m",
            "context_window",
            "key_env",
            "key_present",
        )
        print_json({"models": [{name: getattr(spec, name) for name in shown} for spec in specs]})
        return
    print_document(_models_document(list(specs)), full=full)


def judges(ctx: typer.Context, full: shared.Full = False, json: shared.Json = False) -> None:
    """List what can judge here: signatures, suites, local judges."""
    from judgecal.judges.listing import judges_here

    found = judges_here(shared.workspace_of(ctx))
    print_result(found, json=json, full=full)


def _made_document(made: Workspace) -> Document:
    from judgecal.records import Headline
    from judgecal.report.document import Document, Glossary, Paragraph, Section

    root = shlex.quote(str(made.root))
    words = [
        ("judgecal optimize", "improve the embedded judge on the starter set"),
        ("judgecal gold import --help", "make a gold set of your own labels"),
        ("judgecal judges", "see what can judge, with or without a model"),
    ]
    completion = (
        "Tab completes commands, judges, sets, experiments and models after `judgecal --install-completion`, which "
        "adds a line to your shell's start file; `judgecal --show-completion` prints it instead."
    )
    headline = Headline(
        "workspace",
        f"{made.root} is a workspace of yours: signatures/, suites/, gold/starter/, experiments/, judgecal.toml.",
        next=f"judgecal --workspace {root} optimize",
    )
    blocks = [
        Paragraph(f"Go on there (cd {root}) with one of these:", short=True),
        Glossary(words, short=True),
        Paragraph(completion, short=True),
    ]
    return Document("Workspace", "", headline, [Section("next", "What is next", "", blocks)])


def _models_document(specs: Sequence[ModelSpec]) -> Document:
    from judgecal.records import Headline
    from judgecal.report.document import Document, Section, Table

    words = {None: "none needed", True: "is set"}
    rows = [
        [
            spec.alias,
            words.get(spec.key_present, f"no {spec.key_env}"),
            spec.id,
            *(
                "unknown" if usd is None else f"{usd:g}"
                for usd in (spec.input_usd_per_1m, spec.output_usd_per_1m)
            ),
            str(spec.context_window or "-"),
        ]
        for spec in sorted(specs, key=lambda one: one.key_present is False)
    ]
    table = Table(
        ["alias", "key", "litellm id", "USD/1M in", "USD/1M out", "context"], rows, left=3, short=True
    )
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
