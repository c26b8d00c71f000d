"""`judgecal init`, `models`, `judges`, `signature` and `cache`: what a workspace holds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import argument, option
from judgecal.cli.output import print_document, print_json, print_result

if TYPE_CHECKING:
    from judgecal.models import ModelSpec
    from judgecal.report.document import Document
    from judgecal.workspace import Workspace


def init(
    directory: Annotated[Path, argument("A new or empty folder.", metavar="DIR")],
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

    catalogue = load_catalogue(shared.workspace_of(ctx))
    specs = list(catalogue.specs.values())
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
    print_document(_models_document(specs[: catalogue.n_own], specs[catalogue.n_own :]), full=full)


def judges(ctx: typer.Context, full: shared.Full = False, json: shared.Json = False) -> None:
    """List what can judge here: prompts, suites, local judges. Prompts are signatures, or texts."""
    from judgecal.judges.listing import judges_here

    found = judges_here(shared.workspace_of(ctx))
    print_result(found, json=json, full=full)


def signature_list(ctx: typer.Context, full: shared.Full = False, json: shared.Json = False) -> None:
    """List the signatures: name, scale, unit and inputs. Each is run."""
    from judgecal.judges.signature_files import signatures_of

    result = signatures_of(shared.workspace_of(ctx))
    print_result(result, json=json, full=full)


def signature_new(
    ctx: typer.Context,
    name: Annotated[str, argument("The file's name, such as policy or team/policy.", metavar="NAME")],
    scale: Annotated[
        str | None, option("percentage, ordinal:MIN:MAX, points:MIN:MAX, binary or nominal.")
    ] = None,
    inputs: Annotated[
        str | None, option("What it is shown; by default question,answer_under_test.", metavar="A,B")
    ] = None,
    words: Annotated[str | None, option("The verdicts of nominal.", metavar="A,B,C")] = None,
    prompt: Annotated[
        Path | None, option("Make it of a text prompt, whose head has the scale.", metavar="FILE")
    ] = None,
    replace: Annotated[bool, option("Overwrite a file of this name.")] = False,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Write a signature that loads, to be filled in.

    It is plain DSPy, a file of the workspace.
    """
    from judgecal.judges.signature_files import new_signature

    asked = [part.strip() for part in inputs.split(",")] if inputs else []
    workspace = shared.workspace_of(ctx)
    result = new_signature(
        workspace, name, scale, inputs=asked, words=shared.names(words), prompt=prompt, replace=replace
    )
    print_result(result, json=json, full=full)


def signature_check(
    ctx: typer.Context,
    signature: Annotated[str | None, argument("By default every signature.", metavar="[NAME]")] = None,
    gold: Annotated[str | None, option("Also say what its items lack.", metavar="SET")] = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Name every problem of a signature, with file and line.

    Each is run. The exit code is 2 only where one cannot be loaded.
    """
    from judgecal.errors import InputError
    from judgecal.goldset import load_gold
    from judgecal.judges.signature_files import check_signatures

    workspace = shared.workspace_of(ctx)
    result = check_signatures(
        workspace, signature, None if gold is None else load_gold(gold, workspace=workspace)
    )
    print_result(result, json=json, full=full)
    if result.broken:
        raise InputError(result.broken)


def cache_path(json: shared.Json = False) -> None:
    """Say where replies of models are stored, and how many."""
    from judgecal.engine.cache import stored_replies

    print_result(stored_replies(clear=False), json=json)


def cache_clear(json: shared.Json = False) -> None:
    """Delete every stored reply; what experiments hold stays."""
    from judgecal.engine.cache import stored_replies

    print_result(stored_replies(clear=True), json=json)


def _made_document(made: Workspace) -> Document:
    from judgecal.records import Headline
    from judgecal.report.document import Bullets, Document, Paragraph, Section

    root = shlex.quote(str(made.root))
    commands = [
        "judgecal optimize: improve the embedded judge on the starter set",
        "judgecal gold import --help: make a gold set of your own labels",
        "judgecal judges: see what can judge, with or without a model",
    ]
    headline = Headline(
        "workspace",
        f"{made.root} is your workspace: signatures/, suites/, gold/starter/, experiments/, judgecal.toml.",
        next=f"judgecal --workspace {root} optimize",
    )
    blocks = [
        Paragraph(f"Go on there (cd {root}) with one of these:", short=True),
        Bullets(commands, short=True),
    ]
    return Document("Workspace", "", headline, [Section("next", "What is next", "", blocks)])


def _models_document(own: Sequence[ModelSpec], others: Sequence[ModelSpec]) -> Document:
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
        for specs in (own, others)
        for spec in sorted(specs, key=lambda one: one.key_present is False)
    ]
    table = Table(
        ["alias", "key", "litellm id", "USD/1M in", "USD/1M out", "context"], rows, left=3, short=True
    )
    ready = sum(spec.key_present is not False for spec in (*own, *others))
    return Document(
        title="Models",
        about="Prices in US dollars for a million tokens; judgecal.toml has further aliases.",
        headline=Headline(
            "models",
            f"{ready} of {len(rows)} models have the key that they need, or need none.",
            next="judgecal score --models embedded",
        ),
        sections=[Section("models", "Models", "", [table])],
    )
